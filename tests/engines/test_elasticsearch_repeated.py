"""Repeated requests do not change scores: each document is written once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.errors import EngineError, EngineRefused, Replaced
from searchapp.formats.problems import Problems
from searchapp.model import Document, Ranking
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.signals.base import Inputs
from searchapp.resources import SAMPLES
from searchapp.tasks import load
from tests.engines.conftest import GROUPS, deleted, match, spec_of, spoil
from tests.profile import FULL
from tests.server.faults import FaultProxy
from tests.server.rest import Server

pytestmark = pytest.mark.usefixtures("short_waits")

BULK = r"/_bulk$"
SAMPLE = SAMPLES / "nlps"
REAL_TOPICS = None if FULL else 50
REAL_STEP = 1 if FULL else 5
"""Every n-th real document is indexed, in requests of correspondingly fewer documents."""

DISTURBED_RUNS = 200 if FULL else 3


def documents(data: Path = SAMPLE) -> list[Document]:
    return list(load("nlps").collection(data).documents.read(Problems()))


def ranked(
    engine: ElasticsearchEngine, name: str, data: Path = SAMPLE, topics: int | None = None
) -> list[Ranking]:
    """Return the rankings of the dev topics of nlps."""
    task = load("nlps")
    recipe = recipes.load(task.recipe_book(), "bm25", {})
    selected = task.collection(data).topics("dev", Problems(lenient=True))[:topics]
    return list(Ranker(recipe, Inputs(engine.open(name))).rank(selected, 500, "run").rankings)


def build(engine: ElasticsearchEngine, name: str, data: Path = SAMPLE, step: int = 1) -> None:
    """Index every n-th document of the sample or of other data, in several bulk requests."""
    selected = documents(data)[::step]
    engine.build(name, spec_of(selected, load("nlps").index_mapping()), selected)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 20)


FAULTS: dict[str, Callable[[FaultProxy], None]] = {
    "lost": lambda proxy: proxy.lose(path=BULK),
    "lost behind a gateway": lambda proxy: proxy.lose(status=504, path=BULK),
    "broken off": lambda proxy: proxy.cut(path=BULK),
    "shortened": lambda proxy: proxy.shorten(path=BULK),
    "doubled": lambda proxy: proxy.double(path=BULK),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bulk_request_with_a_lost_response_changes_no_score(
    behind_proxy: ElasticsearchEngine,
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    small_batches: None,
    fault: str,
) -> None:
    build(engine, "undisturbed")
    FAULTS[fault](fault_proxy)
    build(behind_proxy, "disturbed")
    assert deleted(elasticsearch_url, f"{index_prefix}-disturbed") == 0
    assert ranked(engine, "disturbed") == ranked(engine, "undisturbed")
    assert fault_proxy.count(path=BULK) == 5 - (fault == "doubled")  # 70 documents by 20, and one repetition


def test_a_bulk_request_that_arrives_after_the_build_changes_nothing(
    behind_proxy: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, fault_proxy: FaultProxy
) -> None:
    info = behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    (late,) = [request for request in fault_proxy.requests if request.path.endswith("/_bulk")]
    late_response = fault_proxy._forward(late)
    assert late_response is not None and b"index_not_found_exception" in late_response.body
    alias = f"{index_prefix}-groups"
    body = b'{"index":{"_id":"1"}}\n{"id":"1","text":"another"}\n'
    response = Server(elasticsearch_url).request("POST", f"/{alias}/_bulk", body).json()
    assert "cluster_block_exception" in str(response)
    assert deleted(elasticsearch_url, info.version) == 0


def test_an_index_whose_creation_got_no_response_is_used(
    behind_proxy: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, fault_proxy: FaultProxy
) -> None:
    """The repeated request finds the index that the first one created; the build must use it."""
    fault_proxy.lose(method="PUT", path=r"-groups-\d+-\w+$")
    info = behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    listed = Server(elasticsearch_url).request("GET", f"/_cat/indices/{index_prefix}-groups-*?h=index")
    assert listed.body.decode().split() == [info.version]


def test_duplicate_ids_are_detected(engine: ElasticsearchEngine) -> None:
    """The server treats such a document as a repetition; only the number of documents differs."""
    twice = [*GROUPS, Document("1", "Another text under the same id.")]
    with pytest.raises(EngineRefused, match="has 4 documents instead of 5"):
        engine.build("groups", spec_of(twice), twice)
    assert engine.index_info("groups") is None


@pytest.mark.parametrize("seed", range(DISTURBED_RUNS))
def test_one_fault_in_twenty_requests_changes_no_ranking(
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
    small_batches: None,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """A successful build ranks like an undisturbed one; a failed build ends with a message of one line."""
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 10.0)
    build(engine, "undisturbed")
    settings = settings_for(fault_proxy.url)
    connected = Connection.open(settings, timeout=1.0)
    with closing(ElasticsearchEngine(connected, settings.index_prefix)) as disturbed:
        fault_proxy.disturb(0.05, seed, seconds=1.5)
        problems = []
        for _ in range(3):
            try:
                build(disturbed, "disturbed")
            except EngineError as error:
                problems.append(str(error))
    print(
        f"{fault_proxy.disturbed} of {fault_proxy.count()} requests disturbed, {len(problems)} of 3 builds failed"
    )
    assert not any("\n" in problem for problem in problems), problems
    alias = f"{index_prefix}-disturbed"
    assert len(Server(elasticsearch_url).request("GET", f"/_alias/{alias}").json()) == 1
    assert deleted(elasticsearch_url, alias) == 0
    assert ranked(engine, "disturbed") == ranked(engine, "undisturbed")


def test_the_real_collection_ranks_the_same_after_lost_responses(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    nlps_data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """These faults once made 1,000 deleted copies, which changed the scores of every dev topic."""
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", indexing.BATCH_DOCUMENTS // REAL_STEP)
    build(engine, "nlps", nlps_data, REAL_STEP)
    undisturbed = ranked(engine, "nlps", nlps_data, REAL_TOPICS)
    for fault in FAULTS.values():
        fault(fault_proxy)
    build(behind_proxy, "nlps", nlps_data, REAL_STEP)
    assert fault_proxy.count(path=BULK) > 10
    assert deleted(elasticsearch_url, f"{index_prefix}-nlps") == 0
    assert ranked(engine, "nlps", nlps_data, REAL_TOPICS) == undisturbed


# An index with deleted documents


@pytest.fixture
def index_with_deletion(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> ElasticsearchEngine:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    spoil(elasticsearch_url, f"{index_prefix}-groups")
    return engine


def test_an_index_with_deleted_documents_is_rejected(index_with_deletion: ElasticsearchEngine) -> None:
    message = (
        r"groups-000001-\w+ has 1 deleted .* affects its scores.*: "
        "build it again with `searchapp index groups --rebuild`"
    )
    with pytest.raises(EngineRefused, match=message):
        index_with_deletion.open("groups")
    assert "deleted" in index_with_deletion.flaw("groups")


def test_an_index_with_an_additional_document_is_rejected(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    server = Server(elasticsearch_url)
    server.request("PUT", f"/{info.version}/_settings", {"index.blocks.write": None})
    server.request("PUT", f"/{info.version}/_doc/99?refresh=true", {"id": "99", "text": "one more"})
    with pytest.raises(EngineRefused, match="has 5 documents instead of 4: build it again"):
        engine.open("groups")


def test_an_index_that_replaces_a_searched_one_is_checked_too(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    index = engine.open("groups")
    engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
    spoil(elasticsearch_url, f"{index_prefix}-groups")
    with pytest.raises(Replaced):
        index.find(match("group"))
    with pytest.raises(EngineRefused, match="deleted"):
        engine.open("groups")
