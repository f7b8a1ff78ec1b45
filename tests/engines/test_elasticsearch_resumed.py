"""A build that broke off is gone on with by the next one of the same documents, and by no other."""

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
from tests.engines.conftest import deleted, match, spec_of
from tests.engines.test_elasticsearch_indexing import indexes
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

    class Slowly:
        def __iter__(self):
            for document in DOCUMENTS:
                time.sleep(0.01)
                yield document

    done = 0

    def advance(number):
        global done
        done += number
        print(done, flush=True)

    engine.build("groups", spec_of(DOCUMENTS, shards=int(sys.argv[3])), Slowly(), advance)
    """
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)


def broken_off(url: str, prefix: str, how: signal.Signals, shards: int = 1) -> str:
    """Start a process that builds an index, end it after half of the documents, and return the version that it left."""
    with Program(BUILDER, url, prefix, shards) as program:
        while int(program.read_line()) < 100:
            pass
        program.send_signal(how)
        assert program.wait() != 0
    (version,) = (index for index in indexes(url, prefix) if "-groups-" in index)
    return version


def ranked(engine: ElasticsearchEngine, name: str) -> list[Hits]:
    return list(engine.open(name).search([match(f"group {number}", 200) for number in range(7)]))


def sent_documents(proxy: FaultProxy) -> int:
    """The documents in all bulk requests, past the code under test."""
    import gzip

    bodies = [
        gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        for request in proxy.requests
        if request.path.endswith("/_bulk")
    ]
    return sum(len(body.splitlines()) // 2 for body in bodies)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
@pytest.mark.parametrize("shards", [1, 3])
def test_the_next_build_goes_on_where_the_one_before_was(
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    how: signal.Signals,
    shards: int,
) -> None:
    engine.build("undisturbed", spec_of(DOCUMENTS), DOCUMENTS)
    begun = broken_off(elasticsearch_url, index_prefix, how, shards)
    said: list[str] = []
    behind_proxy._connection.notify = said.append
    done: list[int] = []
    info = behind_proxy.build("groups", spec_of(DOCUMENTS, shards=shards), DOCUMENTS, done.append)
    assert info.version == begun
    assert f"continuing with {info.version}, which has 1" in " ".join(said)
    assert sent_documents(fault_proxy) <= 100, "what was there is not sent again"
    assert sum(done) == len(DOCUMENTS), "what was there counts as done"
    assert deleted(elasticsearch_url, info.version) == 0
    assert ranked(engine, "groups") == ranked(engine, "undisturbed")
    settings = Server(elasticsearch_url).request("GET", f"/{info.version}/_settings").json()
    assert settings[info.version]["settings"]["index"]["blocks"] == {"write": "true"}
    alias = f"{index_prefix}-groups"
    assert indexes(elasticsearch_url, index_prefix)[info.version] == [alias]


def test_other_documents_are_begun_from_the_start(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    begun = broken_off(elasticsearch_url, index_prefix, signal.SIGKILL)
    others = [*DOCUMENTS[:-1], Document("199", "another text")]
    info = engine.build("groups", spec_of(others), others)
    assert info.version != begun
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}


def test_another_number_of_shards_is_begun_from_the_start(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    begun = broken_off(elasticsearch_url, index_prefix, signal.SIGKILL)
    info = engine.build("groups", spec_of(DOCUMENTS, shards=2), DOCUMENTS)
    assert info.version != begun and info.shards == 2


def test_what_holds_deleted_copies_is_begun_from_the_start(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    begun = broken_off(elasticsearch_url, index_prefix, signal.SIGKILL)
    server = Server(elasticsearch_url)
    server.request("POST", f"/{begun}/_refresh")
    server.request("PUT", f"/{begun}/_doc/1?refresh=true", {"id": "1", "text": "somebody else's"})
    assert deleted(elasticsearch_url, begun) == 1
    info = engine.build("groups", spec_of(DOCUMENTS), DOCUMENTS)
    assert info.version != begun
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}


def test_a_server_that_goes_away_leaves_what_it_holds(
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    behind_proxy._connection.own_patience = 0.5
    said: list[str] = []
    behind_proxy._connection.notify = said.append
    fault_proxy.refuse_from(8, path=BULK)
    with pytest.raises(EngineUnreachable, match=r"could not send documents to [\w-]+: start it"):
        behind_proxy.build("groups", spec_of(DOCUMENTS), DOCUMENTS)
    ((begun, (alias,)),) = indexes(elasticsearch_url, index_prefix).items()
    assert said[-1] == f"{begun} keeps its documents: run the same command to continue"
    assert engine.index_info("groups") is None
    assert alias.startswith(f"{begun}-building-")
    assert engine.build("groups", spec_of(DOCUMENTS), DOCUMENTS).version == begun


def test_what_is_refused_leaves_nothing(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    def changing() -> Iterator[Document]:
        yield from DOCUMENTS[:100]
        raise DataError("the files changed during indexing: index again")

    with pytest.raises(DataError):
        engine.build("groups", spec_of(DOCUMENTS), changing())
    assert indexes(elasticsearch_url, index_prefix) == {}


def test_a_builder_that_was_overtaken_leaves_the_version_to_who_goes_on_with_it(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    index_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stands still while another goes on with its version, and then has to give up."""
    monkeypatch.setattr(locks, "BEAT_SECONDS", 60.0)  # it stands still: no beat tells it
    server, alias = Server(elasticsearch_url), f"{index_prefix}-groups"
    with closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as other:

        def paused() -> Iterator[Document]:
            yield from DOCUMENTS[:100]
            state = server.request("GET", f"/{index_prefix}-locks/_doc/{alias}").json()["_source"]
            taken = state | {"token": "another", "holder": None}
            server.request("PUT", f"/{index_prefix}-locks/_doc/{alias}", taken)
            (begun,) = indexes(elasticsearch_url, index_prefix)
            assert other.build("groups", spec_of(DOCUMENTS), DOCUMENTS).version == begun
            yield from DOCUMENTS[100:]

        with pytest.raises(EngineError) as caught:
            engine.build("groups", spec_of(DOCUMENTS), paused())
    assert isinstance(caught.value, Overtaken) or "no such index" in str(caught.value)
    assert list(indexes(elasticsearch_url, index_prefix).values()) == [[alias]]
    assert len(ranked(engine, "groups")[0]) == 200
