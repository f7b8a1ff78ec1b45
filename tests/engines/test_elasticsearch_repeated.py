"""Requests that reach the server twice: scores are those of an index whose every document was written once."""

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

BULK = r"/_bulk$"
SAMPLE = SAMPLES / "nlps"
REAL_TOPICS = None if FULL else 50
REAL_EVERY = 1 if FULL else 5
"""Every how many of the real documents one is indexed, in as many requests."""

DISTURBED_RUNS = 200 if FULL else 3


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)


def documents(data: Path = SAMPLE) -> list[Document]:
    return list(load("nlps").collection(data).documents.read(Problems()))


def ranked(
    engine: ElasticsearchEngine, name: str, data: Path = SAMPLE, topics: int | None = None
) -> list[Ranking]:
    """What the dev topics of nlps retrieve, with scores."""
    task = load("nlps")
    recipe = recipes.load(task.recipe_book(), "bm25", {})
    chosen = task.collection(data).topics("dev", Problems(lenient=True))[:topics]
    return list(Ranker(recipe, Inputs(engine.open(name))).rank(chosen, 500, "run").rankings)


def build(engine: ElasticsearchEngine, name: str, data: Path = SAMPLE, every: int = 1) -> None:
    """Index the sample, or every so many documents of other data, in several bulk requests."""
    some = documents(data)[::every]
    engine.build(name, spec_of(some, load("nlps").index_mapping()), some)


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
def test_a_bulk_request_whose_answer_goes_astray_changes_no_score(
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
    assert fault_proxy.count(path=BULK) == 5 - (fault == "doubled")  # 70 documents by 20, and one again


def test_a_bulk_request_that_arrives_when_the_index_serves_changes_nothing(
    behind_proxy: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, fault_proxy: FaultProxy
) -> None:
    info = behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    (late,) = [request for request in fault_proxy.requests if request.path.endswith("/_bulk")]
    answer = fault_proxy._forward(late)
    assert answer is not None and b"index_not_found_exception" in answer.body
    alias = f"{index_prefix}-groups"
    body = b'{"index":{"_id":"1"}}\n{"id":"1","text":"another"}\n'
    answered = Server(elasticsearch_url).request("POST", f"/{alias}/_bulk", body).json()
    assert "cluster_block_exception" in str(answered)
    assert deleted(elasticsearch_url, info.version) == 0


def test_an_index_whose_creation_was_not_confirmed_is_used(
    behind_proxy: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, fault_proxy: FaultProxy
) -> None:
    """The request is repeated and finds the index there: its own, which must not be left behind."""
    fault_proxy.lose(method="PUT", path=r"-groups-\d+-\w+$")
    info = behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    listed = Server(elasticsearch_url).request("GET", f"/_cat/indices/{index_prefix}-groups-*?h=index")
    assert listed.body.decode().split() == [info.version]


def test_ids_that_are_there_twice_are_noticed(engine: ElasticsearchEngine) -> None:
    """Such a document is answered like one that was sent before: that it is another one shows in the count."""
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
    """A build that says it succeeded ranks as one that nothing disturbed; any other ends with a sentence."""
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


def test_the_real_collection_ranks_the_same_when_answers_are_lost(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    nlps_data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What made 1,000 deleted copies before, which changed the scores of every dev topic."""
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", indexing.BATCH_DOCUMENTS // REAL_EVERY)
    build(engine, "nlps", nlps_data, REAL_EVERY)
    undisturbed = ranked(engine, "nlps", nlps_data, REAL_TOPICS)
    for fault in FAULTS.values():
        fault(fault_proxy)
    build(behind_proxy, "nlps", nlps_data, REAL_EVERY)
    assert fault_proxy.count(path=BULK) > 10
    assert deleted(elasticsearch_url, f"{index_prefix}-nlps") == 0
    assert ranked(engine, "nlps", nlps_data, REAL_TOPICS) == undisturbed


# An index with deleted documents


@pytest.fixture
def spoilt(engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str) -> ElasticsearchEngine:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    spoil(elasticsearch_url, f"{index_prefix}-groups")
    return engine


def test_an_index_with_deleted_documents_does_not_rank(spoilt: ElasticsearchEngine) -> None:
    sentence = (
        r"groups-000001-\w+ has 1 deleted .* affects its scores.*: "
        "build it again with `searchapp index groups --rebuild`"
    )
    with pytest.raises(EngineRefused, match=sentence):
        spoilt.open("groups")
    assert "deleted" in spoilt.flaw("groups")


def test_an_index_with_a_document_more_does_not_rank(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    server = Server(elasticsearch_url)
    server.request("PUT", f"/{info.version}/_settings", {"index.blocks.write": None})
    server.request("PUT", f"/{info.version}/_doc/99?refresh=true", {"id": "99", "text": "one more"})
    with pytest.raises(EngineRefused, match="has 5 documents instead of 4: build it again"):
        engine.open("groups")


def test_an_index_that_takes_the_place_of_a_searched_one_is_looked_at_too(
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
