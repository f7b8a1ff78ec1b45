"""The best documents found without scoring all: the same ids, order and bits of scores as with all of them scored."""

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
from searchapp.lucene.index.reader import BoundedPostings, FieldReader
from searchapp.lucene.search import compiled, searcher
from searchapp.lucene.search.compiled import BITMAP_BYTES, Pruner
from searchapp.model import Document, Hit
from tests.engines.embedded.conftest import MAPPING, Both, body, compiled_with, spec_of
from tests.search.drawing import Draw

WORDS = [*"aaaaaaaabbbbcccdd", "e", "f", "g"]
"""Some are in most documents, others in few."""

QUERY_WORDS = [*"abcdefg", "absent"]

Json = dict[str, Any]


def drawn(count: int, longest: int, seed: str) -> list[Document]:
    draw = Draw(seed)
    return [
        Document(
            f"{number * 7919 % count}",
            " ".join(draw.several(lambda: draw.one(WORDS), longest)),
            {"tag": draw.one("xyz")},
        )
        for number in range(count)
    ]


def alike(count: int) -> list[Document]:
    """Documents of four texts, so that nearly all scores are equal."""
    draw = Draw("alike")
    return [
        Document(f"é{number}" if number % 3 else str(number), draw.one(["a", "b a", "c b a", "e"]))
        for number in range(count)
    ]


def frequent(count: int) -> list[Document]:
    """Frequencies beyond what one byte holds, and documents of all lengths."""
    return [Document(str(number), "a " * (number * 5 % 700) + "b " * (number % 3)) for number in range(count)]


INDEXES = {
    "random": drawn(700, 12, "random"),
    "long": drawn(300, 200, "long"),
    "alike": alike(500),
    "frequent": frequent(200),
    "tiny": drawn(3, 4, "tiny"),
    "one": [Document("1", "a b b")],
    "textless": [Document(str(number), "") for number in range(5)],
}


@pytest.fixture(scope="module", params=["as it is built", "small"])
def functions(request: pytest.FixtureRequest, _common: Path) -> Iterator[None]:
    """The functions, and those that look at so few documents at a time that small indexes go all their ways."""
    with compiled_with(_common, *(["-DSMALL"] if request.param == "small" else [])):
        yield


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmbeddedIndex]]:
    found = {**INDEXES, "larger": drawn(9_000, 6, "larger")}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("pruning"), "test")) as engine:
        for name, documents in found.items():
            engine.build(name, spec_of(documents), documents)
        yield {name: engine.open(name) for name in found}


@pytest.fixture(scope="module", autouse=True)
def always() -> Iterator[None]:
    """Let indexes of all sizes be pruned, at any depth, and leave out as many documents as it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "SIZE_SHARE", 0)
        patch.setattr(compiled, "EXCLUDED_SHARE", 0)
        yield


def pruner_of(index: EmbeddedIndex, marks: int = BITMAP_BYTES) -> Pruner:
    return Pruner(index.index.searchers[0].reader, marks)


def answers(index: EmbeddedIndex, query: Json, size: int, pruner: Pruner) -> tuple[Any, Any]:
    """What is found with and without pruning; scores as bits."""
    request = index.index.bodies.read(body(query, size))
    (documents, scores) = index.index.searchers[0].rank(request)
    found = pruner.best(request.query, size)
    expected = documents.tolist(), scores.view(np.int32).tolist()
    return None if found is None else (found[0].tolist(), found[1].view(np.int32).tolist()), expected


def match(words: Sequence[str], field: str = "text", boost: float = 1.0) -> Json:
    return {"match": {field: {"query": " ".join(words), "boost": boost}}}


def words(terms: Sequence[str], field: str, boost: float, more: float) -> Json:
    """The search of a person: some words, rather as a phrase."""
    phrase = {"match_phrase": {field: {"query": " ".join(terms), "boost": more}}}
    return {"bool": {"must": [match(terms)], "should": [phrase], "boost": boost}}


def fields(terms: Sequence[str], *excluded: Json) -> Json:
    """The search of a topic: in several fields, all documents match."""
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
WORDS_OF_PEOPLE = st.builds(
    words,
    st.lists(st.sampled_from(QUERY_WORDS), min_size=1, max_size=4),
    st.sampled_from(["text", "text.gaps"]),
    BOOSTS,
    BOOSTS,
)
REQUIRED = st.builds(
    lambda required, optional, boost: {"bool": {"must": [required], "should": optional, "boost": boost}},
    st.one_of(MATCHES, WORDS_OF_PEOPLE, PHRASES),
    st.lists(st.one_of(MATCHES, TERMS, PHRASES), max_size=3),
    BOOSTS,
)
OF_TOPICS = st.builds(
    fields,
    st.lists(st.sampled_from(QUERY_WORDS), min_size=2, max_size=9),
    st.sampled_from([{"term": {"id": "7"}}, {"term": {"text": "e"}}, {"term": {"tag": "x"}}]),
)
QUERIES = st.one_of(
    MATCHES,
    OF_TOPICS,
    WORDS_OF_PEOPLE,
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
"""Sums and maxima of terms, some of which are rounded apart and not pruned."""


@given(
    name=st.sampled_from(list(INDEXES)),
    query=QUERIES,
    size=st.sampled_from([1, 2, 3, 10, 50, 699, 1_000]),
    marks=st.sampled_from([0, 300, 1 << 20]),
    looked_up=st.sampled_from([1, 16, 10**6]),
)
def test_it_finds_what_scoring_all_documents_finds(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    name: str,
    query: Json,
    size: int,
    marks: int,
    looked_up: int,
) -> None:
    index = indexes[name]
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(compiled, "SEEK_COST", looked_up)
        patch.setattr(compiled, "BITMAP_SHARE", 10**6)
        pruner = pruner_of(index, marks)
        for _time in range(2):  # with what is kept of the time before
            found, expected = answers(index, query, size, pruner)
            assert found is None or found == expected


PRUNED: list[Json] = [
    match("abcdefg"),
    match("a"),
    match("ab", boost=0.3),
    {"bool": {"should": [match("ab"), match("cd", "text.gaps")]}},
    {"dis_max": {"queries": [match("ab"), match("bc", "text.gaps", 2.0)], "tie_breaker": 0.5}},
    {"bool": {"should": [match("ab"), {"term": {"text": {"value": "c", "boost": 3}}}], "boost": 0.7}},
    {"match_phrase": {"text": "a b"}},
    {"match_phrase": {"text.gaps": {"query": "b a b", "boost": 0.4}}},
    words("cd", "text", 1.0, 0.5),
    words("dc", "text.gaps", 0.3, 2.0),
    words("c", "text", 1.0, 0.5),
    words("efg", "text", 1.0, 0.5),
    words("ab", "text", 1.0, 0.5),
    {"bool": {"must": [match("d")], "should": [{"match_phrase": {"text": "b c"}}]}},
    words("aaba", "text", 1.0, 2.0),
    {"bool": {"should": [match("abc"), {"match_phrase": {"text": {"query": "b c", "boost": 3.0}}}]}},
    {"bool": {"should": [match("ab", boost=2.0), match("c")]}},
    fields("abcdefg"),
    fields("abcdefg", {"term": {"id": "7"}}),
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
def test_sums_and_maxima_of_terms_are_found(
    functions: None, indexes: dict[str, EmbeddedIndex], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "BITMAP_SHARE", 10**6)
    for query, size, looked_up in itertools.product(PRUNED, (1, 5, 40), (1, 10**6)):
        monkeypatch.setattr(compiled, "SEEK_COST", looked_up)
        pruner = pruner_of(indexes[name])
        for _time in range(2):
            found, expected = answers(indexes[name], query, size, pruner)
            assert found == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_an_impact_is_looked_up_by_length_and_frequency(dtype: type[np.unsignedinteger[Any]]) -> None:
    table = np.random.default_rng(3).integers(0, 256, (256, 256)).astype(np.uint8)
    frequencies = np.array([1, 2, 254, 255, min(np.iinfo(dtype).max, 70_000)], dtype)
    frequencies, norms = np.tile(frequencies, 256), np.repeat(np.arange(256, dtype=np.uint8), 5)
    pairs = zip(norms.tolist(), frequencies.tolist(), strict=True)
    expected = [table[norm, min(frequency, impacts.COUNTED)] for norm, frequency in pairs]
    assert impacts.of_postings(table, frequencies, norms).tolist() == expected


def test_very_frequent_terms_of_very_long_documents_are_not_overrated(
    functions: None, embedded: EmbeddedEngine
) -> None:
    """From `impacts.COUNTED` on all have the greatest impact, though in a long document the score may be less."""
    several = [Document(f"short{number}", "a a") for number in range(300)]
    several += [Document(f"long{number}", "a " * 256 + "z " * 20_000) for number in range(20)]
    several += [Document(f"best{number}", "a " * 60) for number in range(20)]
    embedded.build("overrated", spec_of(several), several)
    index = embedded.open("overrated")
    found, expected = answers(index, match("a"), 5, pruner_of(index))
    assert found == expected
    assert all(320 <= document < 340 for document in expected[0])


def test_a_phrase_whose_first_term_is_repeated_on_its_position_is_found(
    functions: None, embedded: EmbeddedEngine
) -> None:
    """It begins there as often, and so stands more often than its other terms."""
    mapping = copy.deepcopy(MAPPING)
    analysis = mapping["settings"]["analysis"]
    analysis["filter"]["first"] = {"type": "truncate", "length": 1}
    repeating = {"tokenizer": "whitespace", "filter": ["beginnings", "first"]}
    analysis["analyzer"]["repeating"] = repeating  # of "abc" it makes three times "a"
    field = {"type": "text", "analyzer": "repeating", "search_analyzer": "words"}
    mapping["mappings"]["properties"]["text"]["fields"]["repeating"] = field
    documents = [Document(str(number), "a b" + " c" * (number % 5)) for number in range(100)]
    documents.append(Document("repeated", "abc b c c c"))
    embedded.build("repeating", spec_of(documents, mapping), documents)
    index = embedded.open("repeating")
    found, expected = answers(index, {"match_phrase": {"text.repeating": "a b"}}, 2, pruner_of(index))
    assert found == expected
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
def test_what_is_no_sum_or_maximum_of_positive_terms_is_scored_whole(
    functions: None, indexes: dict[str, EmbeddedIndex], query: Json
) -> None:
    found, expected = answers(indexes["random"], query, 5, pruner_of(indexes["random"]))
    assert found is None
    assert expected[0]


@pytest.mark.parametrize("boost", [1e38, 3e38])
def test_scores_beyond_float32_are_refused(
    functions: None, indexes: dict[str, EmbeddedIndex], boost: float
) -> None:
    several = [
        body(match("a")),
        body(words("cd", "text", 1.0, 1e-3)),
        body({"bool": {"should": [match("abc", boost=boost)], "boost": boost}}),
    ]
    with pytest.raises(QueryRefused, match="infinite or not a number") as refused:
        list(indexes["random"].search(several))
    assert refused.value.place == 2
    with pytest.raises(QueryRefused):
        list(indexes["random"].search([body(words("cd", "text", boost, boost))]))


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


def test_what_leaves_out_many_documents_is_not_pruned(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"]
    query = {"bool": {"should": [match("ab")], "must_not": [{"term": {"tag": "x"}}]}}
    found, expected = answers(index, query, 10, pruner_of(index))
    assert found == expected
    monkeypatch.setattr(compiled, "EXCLUDED_SHARE", 64)
    assert answers(index, query, 10, pruner_of(index))[0] is None


def test_documents_without_a_term_follow_where_all_match(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["random"]
    with_terms = index.counts(match("efg"), {}).total
    pruner = pruner_of(index)
    found, expected = answers(index, fields("efg"), 5, pruner)
    assert found == expected
    assert answers(index, fields("efg"), with_terms + 1, pruner)[0] is None
    (hits,) = index.search([body(fields("efg"), with_terms + 1)])
    assert [hit.score > 0 for hit in hits] == [True] * with_terms + [False]


def test_pages_batches_and_single_searches_agree(
    functions: None, indexes: dict[str, EmbeddedIndex], caplog: pytest.LogCaptureFixture
) -> None:
    index = indexes["random"]
    everything: list[Hit] = list(*index.search([body(match("ab"), 700)]))
    whole = body(match("abc"), 5), body({"match_all": {}}, 5), body(match("ab"), 5, **{"from": 7})
    caplog.set_level(logging.INFO, "searchapp.requests")
    at_once = list(index.search(whole))
    assert caplog.messages == [
        f"{index.info.version}: 3 queries, 2 of them pruned, 2 scored by compiled functions"
    ]
    assert at_once == [hits for one in whole for hits in index.search([one])]
    assert list(at_once[2]) == everything[7:12]
    assert [found.hit for found in index.find(whole[2])] == everything[7:12]
    assert (
        caplog.messages[-1]
        == f"{index.info.version}: 1 query, 1 of them pruned, 1 scored by compiled functions"
    )
    after = [everything[6].score, everything[6].document_id]
    assert list(*index.search([body(match("ab"), 5, search_after=after)])) == everything[7:12]
    found, total = index.page(body(match("ab"), 5))
    assert ([one.hit for one in found], total) == (everything[:5], len(everything))


def test_verbose_says_what_was_compiled(
    functions: None, indexes: dict[str, EmbeddedIndex], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    index = indexes["random"]
    asked = [body(match("ab"), 5, **{"from": 2}), body({"match_all": {}})]
    compiled = list(index.search(asked))
    assert [found.hit for found in index.find(asked[0])] == list(compiled[0])
    with native.without():
        assert list(index.search(asked)) == compiled
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
    together = list(index.search(bodies))
    assert ", 0 of them pruned" in caplog.messages[-1]
    monkeypatch.setattr(compiled, "SMALLEST_PRUNED", index.info.documents)
    assert list(index.search(bodies)) == together
    assert (
        f", {len(bodies)} of them pruned, {len(bodies)} scored by compiled functions" in caplog.messages[-1]
    )


def test_what_a_large_batch_needs_is_marked_for_its_processes(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"].twin()
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 0)
    bodies = [body(match("abcg"[number % 3 :]), 5) for number in range(embedded_index.FIRST_OF_LARGE + 9)]
    bodies[3] = body(fields("bce"), 5)
    assert list(index.search(bodies)) == [hits for one in bodies for hits in indexes["random"].search([one])]
    assert {("text", "b"), ("text", "c")} <= set(index.index.searchers[0].pruner._bitmaps._maps)
    bodies[5] = body({"bool": {"should": [match("abc", boost=1e38)], "boost": 1e38}})
    with pytest.raises(QueryRefused) as refused:
        list(index.search(bodies))
    assert refused.value.place == 5
    index.close()


def test_memory_for_marks_is_bounded(functions: None, indexes: dict[str, EmbeddedIndex]) -> None:
    index = indexes["random"]
    pruner = pruner_of(index, 2 * 16 * (700 // 64 + 1) + 5)
    for _time in range(2):
        for word in "abcd":
            found, expected = answers(index, match([word, "a"]), 5, pruner)
            assert found == expected
        pruner.prepare([index.index.bodies.read(body(match("abcd"))).query] * compiled.REPEATED)
    assert len(pruner._bitmaps._maps) == 2
    assert len({marks.ctypes.data for marks in pruner._bitmaps._maps.values()}) == 2


def test_memory_for_terms_at_hand_is_bounded(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "CACHED_TERM_BYTES", 3 * compiled.TERM_BYTES)
    index = indexes["random"]
    pruner = pruner_of(index)
    for boost in (1.0, 2.0, 3.0):
        found, expected = answers(index, match("abc", boost=boost), 5, pruner)
        assert found == expected
        assert sum(map(len, pruner._terms.values())) <= 3


def test_what_is_at_work_is_not_waited_for(functions: None, indexes: dict[str, EmbeddedIndex]) -> None:
    """A process may have been forked meanwhile, in which the work never ends."""
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


def lose_one(found: BoundedPostings) -> BoundedPostings:
    return replace(found, impacts=found.impacts[:-1])


def lose_all(found: BoundedPostings) -> BoundedPostings:
    return BoundedPostings(found.documents[:0], found.frequencies[:0], found.impacts[:0], found.greatest)


def with_documents(change: Callable[[np.ndarray[Any, Any]], object]) -> Callable[[Any], BoundedPostings]:
    def altered(found: BoundedPostings) -> BoundedPostings:
        documents = found.documents.copy()
        change(documents)
        return replace(found, documents=documents)

    return altered


def first_is_negative(documents: np.ndarray[Any, Any]) -> None:
    documents[0] = -1


def last_is_nowhere(documents: np.ndarray[Any, Any]) -> None:
    documents[-1] = 700


def as_longs(found: BoundedPostings) -> BoundedPostings:
    return replace(found, documents=found.documents.astype(np.int64))


def one_in_the_middle_is(number: int) -> Callable[[np.ndarray[Any, Any]], None]:
    def change(documents: np.ndarray[Any, Any]) -> None:
        documents[len(documents) // 2] = number

    return change


@pytest.mark.parametrize(
    "alter",
    [
        lose_one,
        lose_all,
        as_longs,
        with_documents(first_is_negative),
        with_documents(last_is_nowhere),
        with_documents(one_in_the_middle_is(-5)),
        with_documents(one_in_the_middle_is(700)),
        with_documents(one_in_the_middle_is(2**31 - 1)),
    ],
)
def test_postings_that_point_nowhere_are_no_crash(
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
def test_postings_out_of_order_are_no_crash(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    alter: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is found then is of no use: the checksums of files tell before."""
    index = indexes["random"]
    bounded = FieldReader.bounded

    def altered(field: FieldReader, rank: int) -> BoundedPostings:
        found = bounded(field, rank)
        return replace(found, documents=np.ascontiguousarray(alter(found.documents)))

    monkeypatch.setattr(FieldReader, "bounded", altered)
    monkeypatch.setattr(compiled, "BITMAP_SHARE", 10**6)
    for looked_up, terms in itertools.product((1, 10**6), ("abcdefg", "ge")):
        monkeypatch.setattr(compiled, "SEEK_COST", looked_up)
        pruner = pruner_of(index)
        for _time in range(2):
            assert pruner.best(index.index.bodies.read(body(match(terms), 5)).query, 5) is not None


def test_equal_scores_are_ordered_by_id_at_every_depth(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["alike"]
    for size in range(1, 60):
        found, expected = answers(index, match("abce"), size, pruner_of(index))
        assert found == expected


def test_elasticsearch_finds_the_same(functions: None, both: Callable[..., Both]) -> None:
    for documents in (INDEXES["random"], INDEXES["alike"]):
        engines = both(documents)
        for query, size in itertools.product(PRUNED, (3, 100)):
            engines.require_same_hits(query, size)


def test_every_impact_bounds_its_posting(indexes: dict[str, EmbeddedIndex]) -> None:
    for index in indexes.values():
        for field in index.index.reader.fields.values():
            if not field.field.is_text:
                continue
            assert field.has_impacts
            for rank in range(len(field.terms)):
                found = field.bounded(rank)
                x = found.frequencies.astype(np.float32) * field.inverses(found.documents)
                assert (x <= impacts.EDGES[found.impacts]).all()
                small = found.frequencies < impacts.COUNTED
                assert (x > impacts.EDGES[found.impacts - 1])[small].all()
                assert found.greatest == found.impacts.max()


def test_scores_grow_with_impacts_whatever_the_weight() -> None:
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
    asked = [body(match(words), 10) for words in ("abc", "g", "a")]
    expected = list(index.search(asked))
    with native.without():
        assert pruner_of(index).best(index.index.bodies.read(asked[0]).query, 10) is None
        assert list(index.search(asked)) == expected


def test_impacts_that_are_in_no_file_are_computed(
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
            found, expected = answers(index, query, 5, pruner)
            assert found == expected


def test_nearly_all_of_many_scores_may_be_equal(functions: None, embedded: EmbeddedEngine) -> None:
    found = [Document(f"{number * 7919 % 30_011}", "a b" if number % 3 else "a") for number in range(20_000)]
    embedded.build("equal", spec_of(found), found)
    index = embedded.open("equal")
    for terms, size in itertools.product(["a", "ab", "b"], [1, 50, 9_000]):
        compiled = list(index.search([body(match(terms), size)]))
        with native.without():
            assert list(index.search([body(match(terms), size)])) == compiled
