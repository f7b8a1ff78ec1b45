"""The next build of the same documents resumes an interrupted build; other builds start over."""

from __future__ import annotations

import signal
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, indexing, locks
from searchapp.engines.elasticsearch.locks import Overtaken
from searchapp.errors import DataError, EngineError, EngineUnreachable
from searchapp.model import Document, Hits
from tests.engines.conftest import deleted, indexes, match, spec_of
from tests.programs import Program
from tests.server.faults import FaultProxy
from tests.server.rest import Server

DOCUMENTS = [Document(str(number), f"group {number % 7} of {number % 3}") for number in range(200)]
BULK = r"/_bulk$"

BUILDER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from searchapp.engines.elasticsearch import ElasticsearchEngine, indexing
    from searchapp.config.settings import Settings
    from tests.engines.conftest import spec_of
    from searchapp.model import Document

    DOCUMENTS = [Document(str(number), f"group {number % 7} of {number % 3}") for number in range(200)]
    indexing.BATCH_DOCUMENTS = 10
    engine = ElasticsearchEngine.connect(Settings(home=Path("."), url=sys.argv[1], index_prefix=sys.argv[2]))

    class SlowDocuments:
        def __iter__(self):
            for document in DOCUMENTS:
                time.sleep(0.01)
                yield document

    count = 0

    def advance(number):
        global count
        count += number
        print(count, flush=True)

    engine.build("groups", spec_of(DOCUMENTS, shards=int(sys.argv[3])), SlowDocuments(), advance)
    """
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)


def interrupt_build(url: str, prefix: str, number: signal.Signals, shards: int = 1) -> str:
    """Signal a process that has built half of an index, and return its unfinished version."""
    with Program(BUILDER, url, prefix, shards) as program:
        while int(program.read_line()) < 100:
            pass
        program.send_signal(number)
        assert program.wait() != 0
    (version,) = (index for index in indexes(url, prefix) if "-groups-" in index)
    return version


def ranked(engine: ElasticsearchEngine, name: str) -> list[Hits]:
    return list(engine.open(name).search([match(f"group {number}", 200) for number in range(7)]))


def sent_documents(proxy: FaultProxy) -> int:
    """Count the documents in all bulk requests."""
    import gzip

    bodies = [
        gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        for request in proxy.requests
        if request.path.endswith("/_bulk")
    ]
    return sum(len(body.splitlines()) // 2 for body in bodies)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("shards", [1, 3])
def test_the_next_build_resumes_an_interrupted_build(
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    number: signal.Signals,
    shards: int,
) -> None:
    engine.build("undisturbed", spec_of(DOCUMENTS), DOCUMENTS)
    unfinished = interrupt_build(elasticsearch_url, index_prefix, number, shards)
    messages: list[str] = []
    behind_proxy._connection.notify = messages.append
    progress: list[int] = []
    info = behind_proxy.build("groups", spec_of(DOCUMENTS, shards=shards), DOCUMENTS, progress.append)
    assert info.version == unfinished
    assert f"continuing with {info.version}, which has 1" in " ".join(messages)
    assert sent_documents(fault_proxy) <= 100, "documents on the server are not sent again"
    assert sum(progress) == len(DOCUMENTS), "documents on the server count as indexed"
    assert deleted(elasticsearch_url, info.version) == 0
    assert ranked(engine, "groups") == ranked(engine, "undisturbed")
    settings = Server(elasticsearch_url).request("GET", f"/{info.version}/_settings").json()
    assert settings[info.version]["settings"]["index"]["blocks"] == {"write": "true"}
    alias = f"{index_prefix}-groups"
    assert indexes(elasticsearch_url, index_prefix)[info.version] == [alias]


def test_a_build_of_other_documents_starts_over(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    unfinished = interrupt_build(elasticsearch_url, index_prefix, signal.SIGKILL)
    changed = [*DOCUMENTS[:-1], Document("199", "another text")]
    info = engine.build("groups", spec_of(changed), changed)
    assert info.version != unfinished
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}


def test_a_build_with_another_number_of_shards_starts_over(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    unfinished = interrupt_build(elasticsearch_url, index_prefix, signal.SIGKILL)
    info = engine.build("groups", spec_of(DOCUMENTS, shards=2), DOCUMENTS)
    assert info.version != unfinished and info.shards == 2


def test_a_version_with_deleted_copies_is_not_resumed(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    unfinished = interrupt_build(elasticsearch_url, index_prefix, signal.SIGKILL)
    server = Server(elasticsearch_url)
    server.request("POST", f"/{unfinished}/_refresh")
    server.request("PUT", f"/{unfinished}/_doc/1?refresh=true", {"id": "1", "text": "a foreign text"})
    assert deleted(elasticsearch_url, unfinished) == 1
    info = engine.build("groups", spec_of(DOCUMENTS), DOCUMENTS)
    assert info.version != unfinished
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}


def test_documents_on_an_unreachable_server_are_kept(
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    behind_proxy._connection.own_patience = 0.5
    messages: list[str] = []
    behind_proxy._connection.notify = messages.append
    fault_proxy.refuse_from(8, path=BULK)
    with pytest.raises(EngineUnreachable, match=r"could not send documents to [\w-]+: start it"):
        behind_proxy.build("groups", spec_of(DOCUMENTS), DOCUMENTS)
    ((unfinished, (alias,)),) = indexes(elasticsearch_url, index_prefix).items()
    assert messages[-1] == f"{unfinished} keeps its documents: run the same command to continue"
    assert engine.index_info("groups") is None
    assert alias.startswith(f"{unfinished}-building-")
    assert engine.build("groups", spec_of(DOCUMENTS), DOCUMENTS).version == unfinished


def test_a_rejected_build_leaves_no_version(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    def fail_halfway() -> Iterator[Document]:
        yield from DOCUMENTS[:100]
        raise DataError("the files changed during indexing: index again")

    with pytest.raises(DataError):
        engine.build("groups", spec_of(DOCUMENTS), fail_halfway())
    assert indexes(elasticsearch_url, index_prefix) == {}


def test_a_builder_whose_lock_was_taken_over_leaves_the_version_to_the_next(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    index_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The builder pauses while another one resumes its version, and then must give up."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 60.0)  # so that no heartbeat detects the takeover
    server, alias = Server(elasticsearch_url), f"{index_prefix}-groups"
    with closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as second:

        def pause_halfway() -> Iterator[Document]:
            yield from DOCUMENTS[:100]
            state = server.request("GET", f"/{index_prefix}-locks/_doc/{alias}").json()["_source"]
            foreign_lock = state | {"token": "another", "holder": None}
            server.request("PUT", f"/{index_prefix}-locks/_doc/{alias}", foreign_lock)
            (unfinished,) = indexes(elasticsearch_url, index_prefix)
            assert second.build("groups", spec_of(DOCUMENTS), DOCUMENTS).version == unfinished
            yield from DOCUMENTS[100:]

        with pytest.raises(EngineError) as error:
            engine.build("groups", spec_of(DOCUMENTS), pause_halfway())
    assert isinstance(error.value, Overtaken) or "no such index" in str(error.value)
    assert list(indexes(elasticsearch_url, index_prefix).values()) == [[alias]]
    assert len(ranked(engine, "groups")[0]) == 200
