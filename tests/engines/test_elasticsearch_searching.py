from __future__ import annotations

import struct
from typing import Any

import pytest

from searchapp.engines.elasticsearch import ElasticsearchEngine, searching
from searchapp.engines.elasticsearch.searching import _batches
from searchapp.errors import EngineRefused, QueryRefused, Replaced
from searchapp.model import Document, float32
from tests.engines.conftest import GROUPS, MAPPING, match, spec_of
from tests.server.faults import FaultProxy
from tests.server.rest import Server


@pytest.fixture
def groups(engine: ElasticsearchEngine) -> ElasticsearchEngine:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    return engine


def test_hits_come_by_score_and_then_by_the_bytes_of_their_id(engine: ElasticsearchEngine) -> None:
    ids = ["b", "a", "10", "9", "é", "z", "Z", "😀"]
    documents = [Document(id_, "the same text") for id_ in ids]
    engine.build("ties", spec_of(documents), documents)
    (hits,) = engine.open("ties").search([match("same")])
    assert [hit.document_id for hit in hits] == sorted(ids, key=str.encode)
    assert len({hit.score for hit in hits}) == 1


def test_ids_are_not_read_where_documents_are_stored(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, groups: ElasticsearchEngine
) -> None:
    index = behind_proxy.open("groups")
    found = index.find({**match("normal subgroup"), "_source": True})
    before = len(fault_proxy.requests)
    (hits,) = index.search([match("normal subgroup")])
    assert list(hits) == [one.hit for one in found]
    (asked,) = fault_proxy.requests[before:]
    assert b'"stored_fields":"_none_"' in asked.body.replace(b" ", b"")


@pytest.mark.parametrize(
    "id_",
    [{"normalizer": "lowercase"}, {"ignore_above": 2}, {"null_value": "none"}],
    ids=lambda more: next(iter(more)),
)
def test_ids_that_are_sorted_in_another_form_come_as_they_are(
    engine: ElasticsearchEngine, id_: dict[str, Any]
) -> None:
    documents = [Document(name, "the same text") for name in ("Bb", "aA", "longer", "C")]
    properties = {**MAPPING["mappings"]["properties"], "id": {"type": "keyword", **id_}}
    mapping = {**MAPPING, "mappings": {**MAPPING["mappings"], "properties": properties}}
    engine.build("forms", spec_of(documents, mapping), documents)
    (hits,) = engine.open("forms").search([match("same")])
    assert sorted(hit.document_id for hit in hits) == ["Bb", "C", "aA", "longer"]


def test_ids_that_nothing_is_sorted_by_are_refused(engine: ElasticsearchEngine) -> None:
    documents = [Document(name, "the same text") for name in ("a", "longer")]
    mapping = {**MAPPING, "settings": {**MAPPING["settings"], "mapping": {"ignore_above": 2}}}
    engine.build("long", spec_of(documents, mapping), documents)
    with pytest.raises(EngineRefused, match="missing from the sort field: index again"):
        list(engine.open("long").search([match("same")]))


def test_scores_are_float32(groups: ElasticsearchEngine) -> None:
    (hits,) = groups.open("groups").search([match("normal subgroup")])
    assert [hit.document_id for hit in hits] == ["1", "10"]
    assert all(struct.unpack("f", struct.pack("f", hit.score)) == (hit.score,) for hit in hits)


def test_every_body_has_its_answer_in_order_whatever_the_batches(
    groups: ElasticsearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [match("field"), match("cyclic"), match("homomorphism"), match("kernel"), match("zebra")]
    index = groups.open("groups")
    at_once = list(index.search(bodies))
    ids = [[hit.document_id for hit in hits] for hits in at_once]
    assert ids == [["3"], ["2"], ["10"], ["10"], []]
    monkeypatch.setattr(searching, "BATCH_BODIES", 2)
    assert list(index.search(bodies)) == at_once


def test_statistics_are_collected_from_several_shards_only(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    """A server turns `dfs_query_then_fetch` into `query_then_fetch` by itself where there is but one shard."""
    server = Server(elasticsearch_url)
    for shards in (1, 2):
        version = engine.build("groups", spec_of(GROUPS, shards=shards), GROUPS).version
        path = f"/{version}/_search?search_type={searching.SEARCH_TYPE}"
        profiles = server.request("POST", path, {**match("normal subgroup"), "profile": True}).json()[
            "profile"
        ]["shards"]
        assert len(profiles) == shards
        assert [one for one in profiles if "dfs" in one] == (profiles if shards > 1 else [])


def test_several_indexes_are_asked_in_one_request(
    groups: ElasticsearchEngine, behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    others = [Document("a", "a cyclic group"), Document("b", "a group that is cyclic, and a ring")]
    groups.build("others", spec_of(others, shards=2), others)
    asked = [
        (behind_proxy.open("groups"), match("field")),
        (behind_proxy.open("others"), match("cyclic ring")),
        (behind_proxy.open("groups"), match("nothing")),
    ]
    alone = [hits for index, body in asked for hits in index.search([body])]
    assert [list(hits.document_ids) for hits in alone] == [["3"], ["b", "a"], []]
    before = fault_proxy.count(path="_msearch$")
    assert asked[0][0].search_beside(asked) == alone
    assert fault_proxy.count(path="_msearch$") == before + 1
    # A busy server is asked again, and one may be set not to take such requests: it is asked for one only once.
    fault_proxy.reject(2, path="^/_msearch$")
    assert asked[0][0].search_beside(asked) == alone
    fault_proxy.answer(
        400, "illegal_argument_exception", "explicit index is not allowed", path="^/_msearch$", times=None
    )
    before = fault_proxy.count(path="^/_msearch$")
    for _ in range(2):
        assert asked[0][0].search_beside(asked) == alone
    assert fault_proxy.count(path="^/_msearch$") == before + 1


def test_of_several_indexes_the_one_that_is_refused_or_gone_is_named(groups: ElasticsearchEngine) -> None:
    groups.build("others", spec_of(GROUPS), GROUPS)
    there, gone = groups.open("groups"), groups.open("others")
    with pytest.raises(QueryRefused, match=r"on .*others-000001-.*: .*klingon"):
        there.search_beside([(there, match("field")), (gone, {"query": {"klingon": {}}})])
    groups.remove("others")
    with pytest.raises(Replaced, match="others-000001"):
        there.search_beside([(there, match("field")), (gone, match("field"))])


def test_the_number_of_searches_done_is_reported(groups: ElasticsearchEngine) -> None:
    done: list[int] = []
    list(groups.open("groups").search([match("field")] * 3, done.append))
    assert sum(done) == 3


def test_batches_are_bounded_by_count_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "BATCH_BODIES", 3)
    monkeypatch.setattr(searching, "BATCH_BYTES", 100)
    small, large = {"q": "x"}, {"q": "x" * 200}
    sizes = [len(batch) for batch in _batches([small] * 4 + [large] + [small])]
    assert sizes == [3, 1, 1, 1]


def test_three_shards_rank_as_one(engine: ElasticsearchEngine) -> None:
    documents = [
        Document(str(number), f"group {'normal ' * (number % 5)}subgroup {'ring ' * (number % 3)}")
        for number in range(200)
    ]
    bodies = [match("normal subgroup", 200), match("ring group normal", 50), match("subgroup", 7)]
    engine.build("one", spec_of(documents), documents)
    engine.build("three", spec_of(documents, shards=3), documents)
    assert engine.open("three").info.shards == 3
    assert list(engine.open("one").search(bodies)) == list(engine.open("three").search(bodies))


def test_a_query_that_is_refused_is_a_sentence(groups: ElasticsearchEngine) -> None:
    with pytest.raises(EngineRefused, match=r"refused a query on .*groups-000001-.*: .*klingon"):
        list(groups.open("groups").search([{"query": {"klingon": {}}}]))


def test_a_found_document_has_source_highlights_and_explanation(groups: ElasticsearchEngine) -> None:
    body = {
        **match("subgroup"),
        "_source": True,
        "explain": True,
        "highlight": {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}},
    }
    found = groups.open("groups").find(body)[0]
    assert found.source == {"id": "1", "text": GROUPS[0].text}
    assert "<em>subgroup</em>" in found.highlights["text"][0]
    assert found.explanation is not None
    assert float32(found.explanation.value) == found.hit.score


def test_a_very_long_text_is_highlighted_like_any_other(engine: ElasticsearchEngine) -> None:
    long = Document("long", "ring " * 250_000 + "needle")
    engine.build("long", spec_of([long]), [long])
    highlight = {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}}
    (found,) = engine.open("long").find({**match("needle"), "highlight": highlight})
    assert found.highlights["text"][0].endswith("ring <em>needle</em>")


def test_a_custom_analyzer_is_shown_step_by_step(groups: ElasticsearchEngine) -> None:
    steps = groups.open("groups").analyze("A Normal subgroup", field="text")
    assert [(step.kind, step.name) for step in steps] == [("tokenizer", "standard"), ("filter", "lowercase")]
    last = steps[-1].tokens
    assert [(token.term, token.position, token.start, token.end) for token in last] == [
        ("a", 0, 0, 1),
        ("normal", 1, 2, 8),
        ("subgroup", 2, 9, 17),
    ]


def test_a_char_filter_and_a_built_in_analyzer_are_shown(engine: ElasticsearchEngine) -> None:
    mapping: dict[str, Any] = {
        "settings": {
            "analysis": {
                "char_filter": {"le": {"type": "mapping", "mappings": ["≤ => \\\\le"]}},
                "analyzer": {"math": {"char_filter": ["le"], "tokenizer": "whitespace"}},
            }
        },
        "mappings": MAPPING["mappings"]
        | {"properties": {"id": {"type": "keyword"}, "text": {"type": "text"}}},
    }
    engine.build("math", spec_of([], mapping), [])
    index = engine.open("math")
    char_filter, tokenizer = index.analyze("x ≤ y", analyzer="math")
    assert (char_filter.kind, char_filter.text) == ("char_filter", "x \\le y")
    assert [token.term for token in tokenizer.tokens] == ["x", "\\le", "y"]
    (builtin,) = index.analyze("Two words", field="text")
    assert [token.term for token in builtin.tokens] == ["two", "words"]
