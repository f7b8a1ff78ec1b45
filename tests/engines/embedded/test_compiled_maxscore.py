"""The compiled search for the best documents: the same ids, order and bits of scores as with all of them scored."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
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
from searchapp.lucene import native
from searchapp.lucene.index.reader import BoundedPostings, FieldReader
from searchapp.lucene.search import kernels, pruning
from searchapp.model import Document
from tests.engines.embedded.conftest import Both, body, compiled_with, spec_of
from tests.engines.embedded.test_kernels import TOPICS, recipe
from tests.engines.embedded.test_pruning import INDEXES, answers, drawn, fields, match, pruner_of, words

Json = dict[str, Any]

SIZES = [1, 2, 3, 10, 50, 699, 1_000]


@pytest.fixture(scope="module", params=["as it is built", "small"])
def functions(request: pytest.FixtureRequest, _common: Path) -> Iterator[None]:
    """The functions, and those that look at so few documents at a time that small indexes go all their ways."""
    with compiled_with(_common, *(["-DSMALL"] if request.param == "small" else [])):
        yield


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmbeddedIndex]]:
    found = {**INDEXES, "larger": drawn(9_000, 6, "larger")}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("maxscore"), "test")) as engine:
        for name, documents in found.items():
            engine.build(name, spec_of(documents), documents)
        yield {name: engine.open(name) for name in found}


@pytest.fixture(scope="module", autouse=True)
def always() -> Iterator[None]:
    """Let indexes of all sizes be pruned, at any depth, and leave out as many documents as it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "MOST_SHARE", 0)
        patch.setattr(pruning, "EXCLUDED_SHARE", 0)
        yield


@given(
    name=st.sampled_from(list(INDEXES)),
    query=TOPICS,
    size=st.sampled_from(SIZES),
    maps=st.sampled_from([0, 300, 1 << 20]),
    looked_up=st.sampled_from([1, 16, 10**6]),
)
def test_it_finds_what_scoring_all_documents_finds(
    functions: None,
    indexes: dict[str, EmbeddedIndex],
    name: str,
    query: Json,
    size: int,
    maps: int,
    looked_up: int,
) -> None:
    index = indexes[name]
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(kernels, "LOOKED_UP", looked_up)
        patch.setattr(kernels, "MAP_SHARE", 10**6)
        pruner = pruner_of(index, maps)
        for _time in range(2):  # with what is kept of the time before
            found, expected = answers(index, query, size, pruner)
            assert found is None or found == expected


FOUND: list[Json] = [
    match("abcdefg"),
    match("a"),
    match("a", "text.alike", 0.3),
    {"bool": {"should": [match("ab"), match("cd", "text.gaps")]}},
    {"bool": {"should": [match("ab", boost=2.0), match("abc")]}},
    {"dis_max": {"queries": [match("ab"), match("bc", "text.gaps", 2.0)], "tie_breaker": 0.5}},
    {"bool": {"should": [match("ab"), {"term": {"text": {"value": "c", "boost": 3}}}], "boost": 0.7}},
    fields("abcdefg"),
    fields("abcdefg", {"term": {"id": "7"}}),
    {"bool": {"should": [match("ab")], "must_not": [{"term": {"id": "7"}}, {"term": {"id": "77"}}]}},
    {"bool": {"should": [match("ab")], "must_not": [{"term": {"tag": "x"}}]}},
    {"match": {"text": {"query": "absent"}}},
]


@pytest.mark.parametrize("name", ["random", "long", "alike", "frequent", "larger"])
def test_sums_and_maxima_of_terms_are_found(
    functions: None, indexes: dict[str, EmbeddedIndex], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "MAP_SHARE", 10**6)
    for query, size, looked_up in itertools.product(FOUND, (1, 5, 40), (1, 10**6)):
        monkeypatch.setattr(kernels, "LOOKED_UP", looked_up)
        pruner = pruner_of(indexes[name])
        for _time in range(2):
            found, expected = answers(indexes[name], query, size, pruner)
            assert found == expected
            found_by = pruner.best(indexes[name]._bodies.read(body(query, size)).query, size)
            assert found_by is not None
            assert found_by.is_compiled or not expected[0]


@pytest.mark.parametrize(
    "query",
    [
        {"match_all": {}},
        {"term": {"tag": "x"}},
        {"match_phrase": {"text": "a b"}},
        words("cd", "text", 1.0, 0.5),
        match("ab", boost=0.0),
        match("ab", boost=1e-30),
        {"bool": {"should": [match("ab")], "filter": [match("c")]}},
        {"function_score": {"query": match("ab"), "weight": 2}},
    ],
    ids=repr,
)
def test_what_is_no_sum_or_maximum_of_positive_terms_is_left_to_others(
    functions: None, indexes: dict[str, EmbeddedIndex], query: Json
) -> None:
    index = indexes["random"]
    assert pruner_of(index).best(index._bodies.read(body(query, 5)).query, 5) is None


def test_documents_without_a_term_follow_where_all_match(
    functions: None, indexes: dict[str, EmbeddedIndex]
) -> None:
    index = indexes["random"]
    with_terms = index.counts(match("efg"), {}).total
    pruner = pruner_of(index)
    found, expected = answers(index, fields("efg"), with_terms, pruner)
    assert found == expected
    assert answers(index, fields("efg"), with_terms + 1, pruner)[0] is None


@pytest.mark.parametrize("boost", [1e38, 3e38])
def test_scores_beyond_float32_are_refused(
    functions: None, indexes: dict[str, EmbeddedIndex], boost: float
) -> None:
    several = [body(match("a")), body({"bool": {"should": [match("abc", boost=boost)], "boost": boost}})]
    with pytest.raises(QueryRefused, match="infinite or not a number") as refused:
        list(indexes["random"].search(several))
    assert refused.value.place == 1


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
    bodies = [body(match("ab"), 5)] * embedded_index.TOGETHER
    together = list(index.search(bodies))
    assert ", 0 of them pruned" in caplog.messages[-1]
    monkeypatch.setattr(pruning, "FEWEST_OF_BATCH", index.info.documents)
    assert list(index.search(bodies)) == together
    assert (
        f", {len(bodies)} of them pruned, {len(bodies)} scored by compiled functions" in caplog.messages[-1]
    )


def test_what_a_large_batch_needs_is_marked_for_its_processes(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = indexes["random"].twin()
    monkeypatch.setattr(embedded_index, "LARGE", 0)
    monkeypatch.setattr(pruning, "FEWEST_DOCUMENTS", 0)
    bodies = [body(match("abcg"[number % 3 :]), 5) for number in range(embedded_index.FIRST_OF_LARGE + 9)]
    bodies[3] = body(recipe([match("abc")], "7"), 5)
    assert list(index.search(bodies)) == [hits for one in bodies for hits in indexes["random"].search([one])]
    assert {("text", "b"), ("text", "c")} <= set(index._searchers[0].pruner._compiled._marks.known)
    index.close()


def test_memory_for_terms_at_hand_is_bounded(
    functions: None, indexes: dict[str, EmbeddedIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchapp.lucene.search.kernels.MOST_TERMS", 3)
    index = indexes["random"]
    pruner = pruner_of(index)
    for boost in (1.0, 2.0, 3.0):
        found, expected = answers(index, match("abc", boost=boost), 5, pruner)
        assert found == expected
        assert sum(map(len, pruner._compiled._terms.values())) <= 3


def test_what_is_at_work_is_not_waited_for(functions: None, indexes: dict[str, EmbeddedIndex]) -> None:
    """A process may have been forked meanwhile, in which the work never ends."""
    index = indexes["random"].twin()
    expected = list(index.search([body(match("ab"), 5)]))
    with index._searchers[0].pruner._compiled._lock:
        index._searchers[0].pruner.prepare([])
        assert index._searchers[0].pruner.best(index._bodies.read(body(match("ab"), 5)).query, 5) is None
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
        pruner_of(index).best(index._bodies.read(body(match("e"), 5)).query, 700)


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
    monkeypatch.setattr(kernels, "MAP_SHARE", 10**6)
    for looked_up, terms in itertools.product((1, 10**6), ("abcdefg", "ge")):
        monkeypatch.setattr(kernels, "LOOKED_UP", looked_up)
        pruner = pruner_of(index)
        for _time in range(2):
            assert pruner.best(index._bodies.read(body(match(terms), 5)).query, 5) is not None


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
        for query, size in itertools.product(FOUND, (3, 100)):
            engines.require_same_hits(query, size)


def test_a_library_is_not_needed(indexes: dict[str, EmbeddedIndex]) -> None:
    index = indexes["random"]
    with native.without():
        assert pruner_of(index).best(index._bodies.read(body(match("ab"), 5)).query, 5) is None


def test_nearly_all_of_many_scores_may_be_equal(functions: None, embedded: EmbeddedEngine) -> None:
    found = [Document(f"{number * 7919 % 30_011}", "a b" if number % 3 else "a") for number in range(20_000)]
    embedded.build("equal", spec_of(found), found)
    index = embedded.open("equal")
    for terms, size in itertools.product(["a", "ab", "b"], [1, 50, 9_000]):
        compiled = list(index.search([body(match(terms), size)]))
        with native.without():
            assert list(index.search([body(match(terms), size)])) == compiled
