"""Pruning returns the ids, order and score bits of an exhaustive search."""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines import embedded as embedded_index
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import QueryRefused
from searchapp.lucene import native, similarity
from searchapp.lucene.index import impacts
from searchapp.lucene.index.arrays import StoredArray
from searchapp.lucene.index.packed import BLOCK
from searchapp.lucene.index.reader import BoundedPostings, FieldReader
from searchapp.lucene.search import compiled, searcher
from searchapp.lucene.search.compiled import BITMAP_BYTES, Pruner
from searchapp.model import Document, Hit
from tests.engines.embedded.conftest import MAPPING, EnginePair, body, compiled_with, spec_of
from tests.search.drawing import Draw

WORDS = [*"aaaaaaaabbbbcccdd", "e", "f", "g"]
"""Terms with high and low document frequencies."""

QUERY_WORDS = [*"abcdefg", "absent"]

Json = dict[str, Any]


def random_documents(count: int, longest: int, seed: str) -> list[Document]:
    draw = Draw(seed)
    return [
        Document(
            f"{number * 7919 % count}",
            " ".join(draw.several(lambda: draw.choice(WORDS), longest)),
            {"tag": draw.choice("xyz")},
        )
        for number in range(count)
    ]


def tied_documents(count: int) -> list[Document]:
    """Return documents of four texts, whose scores are nearly all equal."""
    draw = Draw("alike")
    return [
        Document(f"é{number}" if number % 3 else str(number), draw.choice(["a", "b a", "c b a", "e"]))
        for number in range(count)
    ]


def documents_with_high_frequencies(count: int) -> list[Document]:
    """Return documents of all lengths, with frequencies that need more than one byte."""
    return [Document(str(number), "a " * (number * 5 % 700) + "b " * (number % 3)) for number in range(count)]


INDEXES = {
    "random": random_documents(700, 12, "random"),
    "long": random_documents(300, 200, "long"),
    "alike": tied_documents(500),
    "frequent": documents_with_high_frequencies(200),
    "tiny": random_documents(3, 4, "tiny"),
    "one": [Document("1", "a b b")],
    "textless": [Document(str(number), "") for number in range(5)],
}


@pytest.fixture(scope="module", params=["default", "small"])
def functions(request: pytest.FixtureRequest, _common: Path) -> Iterator[None]:
    """Compile the functions by default, and with small blocks, which reach all code paths."""
    with compiled_with(_common, *(["-DSMALL"] if request.param == "small" else [])):
        yield


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmbeddedIndex]]:
    collections = {**INDEXES, "larger": random_documents(9_000, 6, "larger")}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("pruning"), "test")) as engine:
        for name, documents in collections.items():
            engine.build(name, spec_of(documents), documents)
        yield {name: engine.open(name) for name in collections}


@pytest.fixture(scope="module", autouse=True)
def prune_always() -> Iterator[None]:
    """Prune indexes of all sizes, at any depth and with any share of excluded documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "SIZE_SHARE", 0)
        patch.setattr(compiled, "EXCLUDED_SHARE", 0)
        yield


def pruner_of(index: EmbeddedIndex, bitmap_bytes: int = BITMAP_BYTES) -> Pruner:
    return Pruner(index.index.searchers[0].reader, bitmap_bytes)


def answers(index: EmbeddedIndex, query: Json, size: int, pruner: Pruner) -> tuple[Any, Any]:
    """Return the hits with and without pruning, scores as bits."""
    request = index.index.bodies.read(body(query, size))
    (documents, scores) = index.index.searchers[0].rank(request)
    pruned = pruner.best(request.query, size)
    expected = documents.tolist(), scores.view(np.int32).tolist()
    return None if pruned is None else (pruned[0].tolist(), pruned[1].view(np.int32).tolist()), expected


def match(words: Sequence[str], field: str = "text", boost: float = 1.0) -> Json:
    return {"match": {field: {"query": " ".join(words), "boost": boost}}}


def words_and_phrase(terms: Sequence[str], field: str, boost: float, phrase_boost: float) -> Json:
    """Return a query as typed searches make it: words, preferably as a phrase."""
    phrase = {"match_phrase": {field: {"query": " ".join(terms), "boost": phrase_boost}}}
    return {"bool": {"must": [match(terms)], "should": [phrase], "boost": boost}}


def several_fields(terms: Sequence[str], *excluded: Json) -> Json:
    """Return a query as templates make it: several fields, and all documents match."""
    should = [match(terms, "text", 0.4), match(terms, "text.gaps"), match(terms[1:], "text.alike", 3.0)]
    must = [{"match_all": {"boost": 0}}]
    return {"bool": {"must": must, "should": should, "must_not": list(excluded)}}


BOOSTS = st.sampled_from([1.0, 1.0, 0.3, 2.0, 1e-7, 33.0, 1e6])
FIELDS = st.sampled_from(["text", "text.gaps", "text.alike"])
MATCHES = st.builds(match, st.lists(st.sampled_from(QUERY_WORDS), min_size=1, max_size=9), FIELDS, BOOSTS)
TERMS = st.builds(
    lambda word, field, boost: {"term": {field: {"value": word, "boost": boost}}},
    st.sampled_from(QUERY_WORDS),
    FIELDS,
    BOOSTS,
)
PHRASES = st.builds(
    lambda terms, field, boost: {"match_phrase": {field: {"query": " ".join(terms), "boost": boost}}},
    st.lists(st.sampled_from(QUERY_WORDS), min_size=1, max_size=3),
    st.sampled_from(["text", "text.gaps"]),
    BOOSTS,
)
TYPED_SEARCHES = st.builds(
    words_and_phrase,
    st.lists(st.sampled_from(QUERY_WORDS), min_size=1, max_size=4),
    st.sampled_from(["text", "text.gaps"]),
    BOOSTS,
    BOOSTS,
)
REQUIRED = st.builds(
    lambda required, optional, boost: {"bool": {"must": [required], "should": optional, "boost": boost}},
    st.one_of(MATCHES, TYPED_SEARCHES, PHRASES),
    st.lists(st.one_of(MATCHES, TERMS, PHRASES), max_size=3),
    BOOSTS,
)
TEMPLATE_QUERIES = st.builds(
    several_fields,
    st.lists(st.sampled_from(QUERY_WORDS), min_size=2, max_size=9),
    st.sampled_from([{"term": {"id": "7"}}, {"term": {"text": "e"}}, {"term": {"tag": "x"}}]),
)
QUERIES = st.one_of(
    MATCHES,
    TEMPLATE_QUERIES,
    TYPED_SEARCHES,
    REQUIRED,
    TERMS,
    st.builds(
        lambda clauses, boost: {"bool": {"should": clauses, "boost": boost}},
        st.lists(st.one_of(MATCHES, TERMS, PHRASES), min_size=1, max_size=3),
        BOOSTS,
    ),
    st.builds(
        lambda clauses, tie, boost: {"dis_max": {"queries": clauses, "tie_breaker": tie, "boost": boost}},
        st.lists(st.one_of(MATCHES, PHRASES), min_size=1, max_size=3),
        st.sampled_from([0.0, 0.3, 1.0]),
        BOOSTS,
    ),
)
"""Sums and maxima of terms; the pruner declines some of them because their rounding differs."""


@given(
    name=st.sampled_from(list(INDEXES)),
    query=QUERIES,
    size=st.sampled_from([1, 2, 3, 10, 50, 699, 1_000]),
    bitmap_bytes=st.sampled_from([0, 300, 1 << 20]),
    seek_cost=st.sampled_from([1, 16, 10**6]),
)
def test_pruning_returns_the_hits_of_an_exhaustive_search(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    name: str,
    query: Json,
    size: int,
    bitmap_bytes: int,
    seek_cost: int,
) -> None:
    index = indexes[name]
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(compiled, "SEEK_COST", seek_cost)
        patch.setattr(compiled, "BITMAP_SHARE", 10**6)
        patch.setattr(compiled, "LARGE_BITMAP_SHARE", 10**6)
        pruner = pruner_of(index, bitmap_bytes)
        for _time in range(2):  # the second time with cached terms and bitmaps
            pruned, expected = answers(index, query, size, pruner)
            assert pruned is None or pruned == expected


PRUNED: list[Json] = [
    match("abcdefg"),
    match("a"),
    match("ab", boost=0.3),
    {"bool": {"should": [match("ab"), match("cd", "text.gaps")]}},
    {"dis_max": {"queries": [match("ab"), match("bc", "text.gaps", 2.0)], "tie_breaker": 0.5}},
    {"bool": {"should": [match("ab"), {"term": {"text": {"value": "c", "boost": 3}}}], "boost": 0.7}},
    {"match_phrase": {"text": "a b"}},
    {"match_phrase": {"text.gaps": {"query": "b a b", "boost": 0.4}}},
    words_and_phrase("cd", "text", 1.0, 0.5),
    words_and_phrase("dc", "text.gaps", 0.3, 2.0),
    words_and_phrase("c", "text", 1.0, 0.5),
    words_and_phrase("efg", "text", 1.0, 0.5),
    words_and_phrase("ab", "text", 1.0, 0.5),
    {"bool": {"must": [match("d")], "should": [{"match_phrase": {"text": "b c"}}]}},
    words_and_phrase("aaba", "text", 1.0, 2.0),
    {"bool": {"should": [match("abc"), {"match_phrase": {"text": {"query": "b c", "boost": 3.0}}}]}},
    {"bool": {"should": [match("ab", boost=2.0), match("c")]}},
    several_fields("abcdefg"),
    several_fields("abcdefg", {"term": {"id": "7"}}),
    {"bool": {"should": [match("ab")], "must_not": [{"term": {"id": "7"}}, {"term": {"id": "77"}}]}},
    match("a", "text.alike", 0.3),
    {"match_phrase": {"text.alike": "c"}},
    {"bool": {"should": [match("ab", boost=2.0), match("abc")]}},
    {"bool": {"should": [match("ab")], "must_not": [{"term": {"tag": "x"}}]}},
    {"bool": {"must": [match("ab", boost=2.0)], "should": [{"term": {"text": "a"}}]}},
    {"bool": {"must": [match("d")], "should": [match("ab"), match("c", boost=3.0)]}},
    {
        "bool": {
            "must": [
                {"multi_match": {"query": "a b d", "fields": ["text", "text.gaps^3"], "tie_breaker": 0.4}}
            ],
            "should": [
                {"match_phrase": {"text": "a b"}},
                {"match_phrase": {"text.gaps": {"query": "d a", "boost": 0.3}}},
            ],
        }
    },
    {"dis_max": {"queries": [{"match_phrase": {"text": "a b"}}, {"match_phrase": {"text.gaps": "a b"}}]}},
    {"match": {"text": {"query": "absent"}}},
]


@pytest.mark.parametrize("name", ["random", "long", "alike", "frequent", "larger"])
def test_sums_and_maxima_of_terms_are_pruned(
    functions: None, indexes: dict[str, EmbeddedIndex], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "BITMAP_SHARE", 10**6)
    for query, size, seek_cost in itertools.product(PRUNED, (1, 5, 40), (1, 10**6)):
        monkeypatch.setattr(compiled, "SEEK_COST", seek_cost)
        pruner = pruner_of(indexes[name])
        for _time in range(2):
            pruned, expected = answers(indexes[name], query, size, pruner)
            assert pruned == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_impacts_are_looked_up_by_length_and_frequency(dtype: type[np.unsignedinteger[Any]]) -> None:
    table = np.random.default_rng(3).integers(0, 256, (256, 256)).astype(np.uint8)
    frequencies = np.array([1, 2, 254, 255, min(np.iinfo(dtype).max, 70_000)], dtype)
    frequencies, norms = np.tile(frequencies, 256), np.repeat(np.arange(256, dtype=np.uint8), 5)
    pairs = zip(norms.tolist(), frequencies.tolist(), strict=True)
    expected = [table[norm, min(frequency, impacts.COUNTED)] for norm, frequency in pairs]
    assert impacts.of_postings(table, frequencies, norms).tolist() == expected


def test_very_frequent_terms_of_very_long_documents_are_not_overrated(
    functions: None, embedded: EmbeddedEngine
) -> None:
    """Frequencies from `impacts.COUNTED` on have the greatest impact, even if a long document lowers the score."""
    documents = [Document(f"short{number}", "a a") for number in range(300)]
    documents += [Document(f"long{number}", "a " * 256 + "z " * 20_000) for number in range(20)]
    documents += [Document(f"best{number}", "a " * 60) for number in range(20)]
    embedded.build("overrated", spec_of(documents), documents)
    index = embedded.open("overrated")
    pruned, expected = answers(index, match("a"), 5, pruner_of(index))
    assert pruned == expected
    assert all(320 <= document < 340 for document in expected[0])


def test_a_phrase_whose_first_term_is_repeated_on_its_position_is_found(
    functions: None, embedded: EmbeddedEngine
) -> None:
    """The phrase occurs as often as its first term, and more often than its other terms."""
    mapping = copy.deepcopy(MAPPING)
    analysis = mapping["settings"]["analysis"]
    analysis["filter"]["first"] = {"type": "truncate", "length": 1}
    repeating = {"tokenizer": "whitespace", "filter": ["beginnings", "first"]}
    analysis["analyzer"]["repeating"] = repeating  # it turns "abc" into three "a"
    field = {"type": "text", "analyzer": "repeating", "search_analyzer": "words"}
    mapping["mappings"]["properties"]["text"]["fields"]["repeating"] = field
    documents = [Document(str(number), "a b" + " c" * (number % 5)) for number in range(100)]
    documents.append(Document("repeated", "abc b c c c"))
    embedded.build("repeating", spec_of(documents, mapping), documents)
    index = embedded.open("repeating")
    pruned, expected = answers(index, {"match_phrase": {"text.repeating": "a b"}}, 2, pruner_of(index))
    assert pruned == expected
    assert expected[0][0] == 100


@pytest.mark.parametrize(
    "query",
    [
        {"match_all": {}},
        match("ab", boost=0.0),
        match("a", boost=1e-30),
        {"term": {"tag": "x"}},
        {"bool": {"must": [match("a")], "should": [match("bc", boost=2.0)]}},
        {"bool": {"must": [match("a"), match("b")], "should": [match("c")]}},
        {
            "bool": {
                "must": [match("ab")],
                "should": [{"match_phrase": {"text": {"query": "a b", "boost": 1e-30}}}],
            }
        },
        {"bool": {"should": [match("ab")], "must_not": [match("cd")]}},
        {"bool": {"should": [match("ab")], "must_not": [{"match_phrase": {"text": "b c"}}]}},
        {"bool": {"must": [{"match_all": {"boost": 0}}]}},
        {"bool": {"must": [{"match_all": {"boost": 0}}, match("a")], "should": [match("ab")]}},
        {"bool": {"should": [match("ab")], "filter": [match("c")]}},
        {"match": {"text": {"query": "a b c", "minimum_should_match": 2}}},
        {"match": {"text": {"query": "a b c", "operator": "and"}}},
        {"function_score": {"query": match("ab"), "weight": 2}},
        {"constant_score": {"filter": match("ab")}},
    ],
    ids=repr,
)
def test_other_queries_than_sums_or_maxima_of_positive_terms_are_not_pruned(
    functions: None, indexes: dict[str, EmbeddedIndex], query: Json
) -> None:
    pruned, expected = answers(indexes["random"], query, 5, pruner_of(indexes["random"]))
    assert pruned is None
    assert expected[0]


@pytest.mark.parametrize("boost", [1e38, 3e38])
def test_scores_beyond_float32_are_rejected(
    functions: None, indexes: dict[str, EmbeddedIndex], boost: float
) -> None:
    bodies = [
        body(match("a")),
        body(words_and_phrase("cd", "text", 1.0, 1e-3)),
        body({"bool": {"should": [match("abc", boost=boost)], "boost": boost}}),
    ]
    with pytest.raises(QueryRefused, match="infinite or not a number") as error:
        list(indexes["random"].search(bodies))
    assert error.value.place == 2
    with pytest.raises(QueryRefused):
        list(indexes["random"].search([body(words_and_phrase("cd", "text", boost, boost))]))


def test_small_indexes_and_large_depths_are_not_pruned(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"]
    query, pruner = index.index.bodies.read(body(match("ab"))).query, pruner_of(index)
    assert pruner.best(query, 10) is not None
    assert pruner.best(query, 0) is None
    monkeypatch.setattr(compiled, "SIZE_SHARE", 64)
    assert pruner.best(query, 10) is not None
    assert pruner.best(query, 11) is None


def test_queries_that_exclude_many_documents_are_not_pruned(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"]
    query = {"bool": {"should": [match("ab")], "must_not": [{"term": {"tag": "x"}}]}}
    pruned, expected = answers(index, query, 10, pruner_of(index))
    assert pruned == expected
    monkeypatch.setattr(compiled, "EXCLUDED_SHARE", 64)
    assert answers(index, query, 10, pruner_of(index))[0] is None


def test_documents_without_a_term_come_last_if_all_match(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["random"]
    with_terms = index.counts(match("efg"), {}).total
    pruner = pruner_of(index)
    pruned, expected = answers(index, several_fields("efg"), 5, pruner)
    assert pruned == expected
    assert answers(index, several_fields("efg"), with_terms + 1, pruner)[0] is None
    (hits,) = index.search([body(several_fields("efg"), with_terms + 1)])
    assert [hit.score > 0 for hit in hits] == [True] * with_terms + [False]


def test_pages_batches_and_single_searches_agree(
    functions: None, indexes: dict[str, EmbeddedIndex], caplog: pytest.LogCaptureFixture
) -> None:
    index = indexes["random"]
    everything: list[Hit] = list(*index.search([body(match("ab"), 700)]))
    bodies = body(match("abc"), 5), body({"match_all": {}}, 5), body(match("ab"), 5, **{"from": 7})
    caplog.set_level(logging.INFO, "searchapp.requests")
    rankings = list(index.search(bodies))
    assert caplog.messages == [
        f"{index.info.version}: 3 queries, 2 of them pruned, 2 scored by compiled functions"
    ]
    assert rankings == [hits for request in bodies for hits in index.search([request])]
    assert list(rankings[2]) == everything[7:12]
    assert [hit.hit for hit in index.find(bodies[2])] == everything[7:12]
    assert (
        caplog.messages[-1]
        == f"{index.info.version}: 1 query, 1 of them pruned, 1 scored by compiled functions"
    )
    after = [everything[6].score, everything[6].document_id]
    assert list(*index.search([body(match("ab"), 5, search_after=after)])) == everything[7:12]
    page, total = index.page(body(match("ab"), 5))
    assert ([hit.hit for hit in page], total) == (everything[:5], len(everything))


def test_verbose_counts_pruned_and_compiled_queries(
    functions: None, indexes: dict[str, EmbeddedIndex], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    index = indexes["random"]
    bodies = [body(match("ab"), 5, **{"from": 2}), body({"match_all": {}})]
    rankings = list(index.search(bodies))
    assert [hit.hit for hit in index.find(bodies[0])] == list(rankings[0])
    with native.without():
        assert list(index.search(bodies)) == rankings
    version = index.info.version
    assert caplog.messages == [
        f"{version}: 2 queries, 1 of them pruned, 1 scored by compiled functions",
        f"{version}: 1 query, 1 of them pruned, 1 scored by compiled functions",
        f"{version}: 2 queries, 0 of them pruned",
    ]


def test_many_topics_of_a_small_index_are_scored_together(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    index = indexes["random"]
    bodies = [body(match("ab"), 5)] * searcher.SMALLEST_BATCH
    rankings = list(index.search(bodies))
    assert ", 0 of them pruned" in caplog.messages[-1]
    monkeypatch.setattr(compiled, "SMALLEST_PRUNED", index.info.documents)
    assert list(index.search(bodies)) == rankings
    assert (
        f", {len(bodies)} of them pruned, {len(bodies)} scored by compiled functions" in caplog.messages[-1]
    )


def test_a_large_batch_makes_bitmaps_before_its_processes_start(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"].twin()
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 0)
    bodies = [body(match("abcg"[number % 3 :]), 5) for number in range(embedded_index.FIRST_OF_LARGE + 9)]
    bodies[3] = body(several_fields("bce"), 5)
    assert list(index.search(bodies)) == [
        hits for request in bodies for hits in indexes["random"].search([request])
    ]
    assert {("text", "b"), ("text", "c")} <= set(index.index.searchers[0].pruner._bitmaps._maps)
    bodies[5] = body({"bool": {"should": [match("abc", boost=1e38)], "boost": 1e38}})
    with pytest.raises(QueryRefused) as error:
        list(index.search(bodies))
    assert error.value.place == 5
    index.close()


def test_memory_for_bitmaps_is_bounded(functions: None, indexes: dict[str, EmbeddedIndex]) -> None:
    index = indexes["random"]
    pruner = pruner_of(index, 2 * 16 * (700 // 64 + 1) + 5)
    for _time in range(2):
        for word in "abcd":
            pruned, expected = answers(index, match([word, "a"]), 5, pruner)
            assert pruned == expected
        pruner.prepare([index.index.bodies.read(body(match("abcd"))).query] * compiled.REPEATED)
    assert len(pruner._bitmaps._maps) == 2
    assert len(set(pruner._bitmaps._maps.values())) == 2


def test_memory_for_cached_terms_is_bounded(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "CACHED_TERM_BYTES", 3 * compiled.TERM_BYTES)
    index = indexes["random"]
    pruner = pruner_of(index)
    for boost in (1.0, 2.0, 3.0):
        pruned, expected = answers(index, match("abc", boost=boost), 5, pruner)
        assert pruned == expected
        assert sum(map(len, pruner._terms.values())) <= 3


def test_a_locked_pruner_is_not_waited_for(functions: None, indexes: dict[str, EmbeddedIndex]) -> None:
    """A forked process inherits a held lock that no thread of it ever releases."""
    index = indexes["random"].twin()
    expected = list(index.search([body(match("ab"), 5)]))
    with index.index.searchers[0].pruner._lock:
        index.index.searchers[0].pruner.prepare([])
        assert (
            index.index.searchers[0].pruner.best(index.index.bodies.read(body(match("ab"), 5)).query, 5)
            is None
        )
        assert list(index.search([body(match("ab"), 5)])) == expected
    index.close()


def drop_last_impact(postings: BoundedPostings) -> BoundedPostings:
    return replace(postings, impacts=postings.impacts[:-1])


def drop_all(postings: BoundedPostings) -> BoundedPostings:
    return replace(postings, impacts=postings.impacts[:0], part=slice(0, 0))


def beyond_the_end(postings: BoundedPostings) -> BoundedPostings:
    size, end = len(postings.impacts), len(postings.documents)
    return replace(postings, part=slice(end - size + 1, end + 1))


def unpacked(
    postings: BoundedPostings, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> BoundedPostings:
    """Return the postings in arrays, as in an index of format 7, with changed documents."""
    return replace(
        postings,
        documents=StoredArray(change(postings.documents.parts([postings.part]))),
        frequencies=StoredArray(postings.frequencies.parts([postings.part])),
        part=slice(0, len(postings.impacts)),
    )


def with_documents(change: Callable[[np.ndarray[Any, Any]], object]) -> Callable[[Any], BoundedPostings]:
    def alter(postings: BoundedPostings) -> BoundedPostings:
        def changed(documents: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            change(documents)
            return documents

        return unpacked(postings, changed)

    return alter


def make_first_negative(documents: np.ndarray[Any, Any]) -> None:
    documents[0] = -1


def make_last_too_large(documents: np.ndarray[Any, Any]) -> None:
    documents[-1] = 700


def as_longs(postings: BoundedPostings) -> BoundedPostings:
    return unpacked(postings, lambda documents: documents.astype(np.int64))


def set_middle(number: int) -> Callable[[np.ndarray[Any, Any]], None]:
    def change(documents: np.ndarray[Any, Any]) -> None:
        documents[len(documents) // 2] = number

    return change


@pytest.mark.parametrize(
    "alter",
    [
        drop_last_impact,
        drop_all,
        beyond_the_end,
        as_longs,
        with_documents(make_first_negative),
        with_documents(make_last_too_large),
        with_documents(set_middle(-5)),
        with_documents(set_middle(700)),
        with_documents(set_middle(2**31 - 1)),
    ],
)
def test_invalid_postings_raise_an_error_instead_of_crashing(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    alter: Callable[[BoundedPostings], BoundedPostings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = indexes["random"]
    bounded = FieldReader.bounded
    monkeypatch.setattr(FieldReader, "bounded", lambda field, rank: alter(bounded(field, rank)))
    with pytest.raises(IndexError, match="postings"):
        pruner_of(index).best(index.index.bodies.read(body(match("e"), 5)).query, 700)


@pytest.mark.parametrize("alter", [np.flip, np.zeros_like, lambda documents: np.roll(documents, 1)])
def test_unordered_postings_do_not_crash(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    alter: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hits are undefined: checksums of files report such damage before."""
    index = indexes["random"]
    bounded = FieldReader.bounded

    def bounded_altered(field: FieldReader, rank: int) -> BoundedPostings:
        postings = bounded(field, rank)
        return unpacked(postings, lambda documents: np.ascontiguousarray(alter(documents)))

    monkeypatch.setattr(FieldReader, "bounded", bounded_altered)
    monkeypatch.setattr(compiled, "BITMAP_SHARE", 10**6)
    for seek_cost, terms in itertools.product((1, 10**6), ("abcdefg", "ge")):
        monkeypatch.setattr(compiled, "SEEK_COST", seek_cost)
        pruner = pruner_of(index)
        for _time in range(2):
            assert pruner.best(index.index.bodies.read(body(match(terms), 5)).query, 5) is not None


def test_equal_scores_are_ordered_by_id_at_every_depth(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["alike"]
    for size in range(1, 60):
        pruned, expected = answers(index, match("abce"), size, pruner_of(index))
        assert pruned == expected


def test_elasticsearch_returns_the_same_hits(functions: None, make_pair: Callable[..., EnginePair]) -> None:
    for documents in (INDEXES["random"], INDEXES["alike"]):
        pair = make_pair(documents)
        for query, size in itertools.product(PRUNED, (3, 100)):
            pair.require_same_hits(query, size)


def test_every_impact_bounds_its_posting(indexes: dict[str, EmbeddedIndex]) -> None:
    for index in indexes.values():
        for field in index.index.reader.fields.values():
            if not field.field.is_text:
                continue
            assert field.has_impacts
            for rank in range(len(field.terms)):
                postings = field.bounded(rank)
                frequencies = postings.frequencies.parts([postings.part])
                x = frequencies.astype(np.float32) * field.inverses(postings.documents.parts([postings.part]))
                assert (x <= impacts.EDGES[postings.impacts]).all()
                small = frequencies < impacts.COUNTED
                assert (x > impacts.EDGES[postings.impacts - 1])[small].all()
                assert postings.greatest == postings.impacts.max()
                assert postings.of_blocks is not None
                blocks = np.arange(postings.part.start, postings.part.stop) // BLOCK
                assert (postings.impacts <= postings.of_blocks[blocks - blocks[0]]).all()


def test_scores_grow_with_impacts_for_every_weight() -> None:
    draw = Draw("weights")
    for _ in range(200):
        weight = np.float32(10 ** draw.fraction(*np.log10(compiled.WEIGHTS)))
        upper = similarity.scores(weight, impacts.EDGES, np.ones(256, np.float32))
        assert upper[0] == 0
        assert upper[-1] == weight
        assert (np.diff(upper) >= 0).all()


def test_without_compiled_functions_all_documents_are_scored(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["random"]
    bodies = [body(match(words), 10) for words in ("abc", "g", "a")]
    expected = list(index.search(bodies))
    with native.without():
        assert pruner_of(index).best(index.index.bodies.read(bodies[0]).query, 10) is None
        assert list(index.search(bodies)) == expected


def test_missing_impacts_are_computed(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"]
    field = index.index.searchers[0].reader.fields["text"]
    monkeypatch.setattr(field, "_impacts", None)
    assert not field.has_impacts
    for limit in (compiled.CACHED_TERM_BYTES, 100):
        monkeypatch.setattr(compiled, "CACHED_TERM_BYTES", limit)
        pruner = pruner_of(index)
        for query in PRUNED:
            pruned, expected = answers(index, query, 5, pruner)
            assert pruned == expected


def test_nearly_all_of_many_scores_can_be_equal(functions: None, embedded: EmbeddedEngine) -> None:
    documents = [
        Document(f"{number * 7919 % 30_011}", "a b" if number % 3 else "a") for number in range(20_000)
    ]
    embedded.build("equal", spec_of(documents), documents)
    index = embedded.open("equal")
    for terms, size in itertools.product(["a", "ab", "b"], [1, 50, 9_000]):
        rankings = list(index.search([body(match(terms), size)]))
        with native.without():
            assert list(index.search([body(match(terms), size)])) == rankings
