"""Searches in Elasticsearch: order, scores, batches, details and analysis."""

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


def test_hits_are_ordered_by_score_and_by_the_bytes_of_their_id(engine: ElasticsearchEngine) -> None:
    ids = ["b", "a", "10", "9", "é", "z", "Z", "😀"]
    documents = [Document(id_, "the same text") for id_ in ids]
    engine.build("ties", spec_of(documents), documents)
    (hits,) = engine.open("ties").search([match("same")])
    assert [hit.document_id for hit in hits] == sorted(ids, key=str.encode)
    assert len({hit.score for hit in hits}) == 1


def test_rankings_do_not_read_stored_ids(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, groups: ElasticsearchEngine
) -> None:
    index = behind_proxy.open("groups")
    details = index.find({**match("normal subgroup"), "_source": True})
    before = len(fault_proxy.requests)
    (hits,) = index.search([match("normal subgroup")])
    assert list(hits) == [result.hit for result in details]
    (request,) = fault_proxy.requests[before:]
    assert b'"stored_fields":"_none_"' in request.body.replace(b" ", b"")


@pytest.mark.parametrize(
    "id_",
    [{"normalizer": "lowercase"}, {"ignore_above": 2}, {"null_value": "none"}],
    ids=lambda options: next(iter(options)),
)
def test_ids_with_another_sort_form_are_returned_unchanged(
    engine: ElasticsearchEngine, id_: dict[str, Any]
) -> None:
    documents = [Document(name, "the same text") for name in ("Bb", "aA", "longer", "C")]
    properties = {**MAPPING["mappings"]["properties"], "id": {"type": "keyword", **id_}}
    mapping = {**MAPPING, "mappings": {**MAPPING["mappings"], "properties": properties}}
    engine.build("forms", spec_of(documents, mapping), documents)
    (hits,) = engine.open("forms").search([match("same")])
    assert sorted(hit.document_id for hit in hits) == ["Bb", "C", "aA", "longer"]


def test_ids_missing_from_the_sort_field_are_rejected(engine: ElasticsearchEngine) -> None:
    documents = [Document(name, "the same text") for name in ("a", "longer")]
    mapping = {**MAPPING, "settings": {**MAPPING["settings"], "mapping": {"ignore_above": 2}}}
    engine.build("long", spec_of(documents, mapping), documents)
    with pytest.raises(EngineRefused, match="missing from the sort field: index again"):
        list(engine.open("long").search([match("same")]))


def test_scores_are_float32(groups: ElasticsearchEngine) -> None:
    (hits,) = groups.open("groups").search([match("normal subgroup")])
    assert [hit.document_id for hit in hits] == ["1", "10"]
    assert all(struct.unpack("f", struct.pack("f", hit.score)) == (hit.score,) for hit in hits)


def test_rankings_have_the_order_of_their_bodies_in_all_batch_sizes(
    groups: ElasticsearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [match("field"), match("cyclic"), match("homomorphism"), match("kernel"), match("zebra")]
    index = groups.open("groups")
    rankings = list(index.search(bodies))
    ids = [[hit.document_id for hit in hits] for hits in rankings]
    assert ids == [["3"], ["2"], ["10"], ["10"], []]
    monkeypatch.setattr(searching, "BATCH_BODIES", 2)
    assert list(index.search(bodies)) == rankings


def test_statistics_are_collected_only_from_several_shards(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    """A server replaces `dfs_query_then_fetch` by `query_then_fetch` for a single shard."""
    server = Server(elasticsearch_url)
    for shards in (1, 2):
        version = engine.build("groups", spec_of(GROUPS, shards=shards), GROUPS).version
        path = f"/{version}/_search?search_type={searching.SEARCH_TYPE}"
        profiles = server.request("POST", path, {**match("normal subgroup"), "profile": True}).json()[
            "profile"
        ]["shards"]
        assert len(profiles) == shards
        assert [profile for profile in profiles if "dfs" in profile] == (profiles if shards > 1 else [])


def test_several_indexes_are_searched_in_one_request(
    groups: ElasticsearchEngine, behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    others = [Document("a", "a cyclic group"), Document("b", "a group that is cyclic, and a ring")]
    groups.build("others", spec_of(others, shards=2), others)
    requests = [
        (behind_proxy.open("groups"), match("field")),
        (behind_proxy.open("others"), match("cyclic ring")),
        (behind_proxy.open("groups"), match("nothing")),
    ]
    expected = [hits for index, body in requests for hits in index.search([body])]
    assert [list(hits.document_ids) for hits in expected] == [["3"], ["b", "a"], []]
    before = fault_proxy.count(path="_msearch$")
    assert requests[0][0].search_beside(requests) == expected
    assert fault_proxy.count(path="_msearch$") == before + 1
    # A busy server gets the request again; a server that rejects such requests gets it only once.
    fault_proxy.reject(2, path="^/_msearch$")
    assert requests[0][0].search_beside(requests) == expected
    fault_proxy.answer(
        400, "illegal_argument_exception", "explicit index is not allowed", path="^/_msearch$", times=None
    )
    before = fault_proxy.count(path="^/_msearch$")
    for _ in range(2):
        assert requests[0][0].search_beside(requests) == expected
    assert fault_proxy.count(path="^/_msearch$") == before + 1


def test_the_index_of_a_rejected_query_and_a_removed_index_are_named(groups: ElasticsearchEngine) -> None:
    groups.build("others", spec_of(GROUPS), GROUPS)
    first, second = groups.open("groups"), groups.open("others")
    with pytest.raises(QueryRefused, match=r"on .*others-000001-.*: .*klingon"):
        first.search_beside([(first, match("field")), (second, {"query": {"klingon": {}}})])
    groups.remove("others")
    with pytest.raises(Replaced, match="others-000001"):
        first.search_beside([(first, match("field")), (second, match("field"))])


def test_the_number_of_searches_done_is_reported(groups: ElasticsearchEngine) -> None:
    progress: list[int] = []
    list(groups.open("groups").search([match("field")] * 3, progress.append))
    assert sum(progress) == 3


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


def test_the_error_for_a_rejected_query_names_the_index(groups: ElasticsearchEngine) -> None:
    with pytest.raises(EngineRefused, match=r"refused a query on .*groups-000001-.*: .*klingon"):
        list(groups.open("groups").search([{"query": {"klingon": {}}}]))


def test_hits_have_source_highlights_and_explanation(groups: ElasticsearchEngine) -> None:
    body = {
        **match("subgroup"),
        "_source": True,
        "explain": True,
        "highlight": {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}},
    }
    result = groups.open("groups").find(body)[0]
    assert result.source == {"id": "1", "text": GROUPS[0].text}
    assert "<em>subgroup</em>" in result.highlights["text"][0]
    assert result.explanation is not None
    assert float32(result.explanation.value) == result.hit.score


def test_a_very_long_text_is_highlighted_like_any_other(engine: ElasticsearchEngine) -> None:
    long = Document("long", "ring " * 250_000 + "needle")
    engine.build("long", spec_of([long]), [long])
    highlight = {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}}
    (result,) = engine.open("long").find({**match("needle"), "highlight": highlight})
    assert result.highlights["text"][0].endswith("ring <em>needle</em>")


def test_a_custom_analyzer_is_shown_step_by_step(groups: ElasticsearchEngine) -> None:
    steps = groups.open("groups").analyze("A Normal subgroup", field="text")
    assert [(step.kind, step.name) for step in steps] == [("tokenizer", "standard"), ("filter", "lowercase")]
    tokens = steps[-1].tokens
    assert [(token.term, token.position, token.start, token.end) for token in tokens] == [
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
