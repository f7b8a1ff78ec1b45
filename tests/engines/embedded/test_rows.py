"""Term scores are summed as in Lucene, on every code path."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries import scores as term_scores
from searchapp.model import Document, float32
from tests.engines.embedded.conftest import body, spec_of
from tests.search.drawing import Draw

pytestmark = pytest.mark.usefixtures("either_way")

WORDS = [*"aaaaaabbbbccc", "d", "ring", "r", "ri"]
"""Terms with high and low document frequencies."""

QUERIES: list[Any] = [
    {"match": {"text": "a b c d ring"}},
    {"match": {"text": {"query": "a c", "boost": 0.3}}},
    {"match": {"text.alike": "ring ri"}},
    {"match_phrase": {"text": "a b"}},
    {"bool": {"must": [{"match": {"text": "d"}}], "should": [{"match": {"text": "a"}}]}},
    {"term": {"tag": "x"}},
    {"match": {"text": "zebra"}},
]


def documents(count: int = 300) -> list[Document]:
    draw = Draw("rows")
    return [
        Document(
            str(number), " ".join(draw.several(lambda: draw.choice(WORDS), 12)), {"tag": draw.choice("xyz")}
        )
        for number in range(count)
    ]


def build_and_open(engine: EmbeddedEngine, content: list[Document] | None = None) -> EmbeddedIndex:
    content = documents() if content is None else content
    engine.build("rows", spec_of(content), content)
    return engine.open("rows")


def scores(index: EmbeddedIndex, query: Any) -> dict[str, float]:
    (hits,) = index.search([body(query, 1_000)])
    return dict(hits)


def match(text: str, field: str = "text") -> Any:
    return {"match": {field: text}}


def test_the_scores_of_terms_are_added_as_doubles_and_rounded_once(embedded: EmbeddedEngine) -> None:
    index = build_and_open(embedded)
    terms = ["d", "ring", "a", "c", "b"]
    single = [scores(index, match(term)) for term in terms]
    assert scores(index, match(" ".join(terms))) == {
        document: float32(sum(by_document.get(document, 0.0) for by_document in single))
        for document in set().union(*single)
    }


def test_a_repeated_term_counts_twice(embedded: EmbeddedEngine) -> None:
    index = build_and_open(embedded)
    once = scores(index, match("c"))
    assert scores(index, match("c c")) == {document: 2 * score for document, score in once.items()}


def test_words_at_one_position_are_scored_as_one_word_with_the_highest_document_frequency(
    embedded: EmbeddedEngine,
) -> None:
    content = [Document("1", "r x"), Document("2", "ri x"), Document("3", "ri y"), Document("4", "r ri")]
    index = build_and_open(embedded, content)
    alike = scores(index, match("ri", "text.alike"))  # its search analyzer produces r and ri
    assert alike["1"] == alike["2"] == alike["3"] < alike["4"]
    assert alike["1"] < scores(index, match("ring", "text.alike"))["1"] * 1.0001


@pytest.mark.parametrize(
    "constants",
    [
        {"SMALL_FIELD": 0},
        {"SMALL_FIELD": 0, "POSTINGS_AT_ONCE": 1},
        {"MANY_TERMS": 10**6},
        {"COMMON_SHARE": 0},
        {"COMMON_SHARE": 10**6},
        {"COMMON_SHARE_OF_MANY": 10**6, "MANY_DOCUMENTS": 0},
        {"COMMON_SHARE": 10**6, "DENSE_ROWS": 10**9},
        {"SMALL_FIELD": 0, "LONG_LIST": 2},
    ],
    ids=repr,
)
def test_scores_are_the_same_on_all_code_paths(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, constants: dict[str, int]
) -> None:
    build_and_open(embedded)
    expected = [scores(embedded.open("rows"), query) for query in QUERIES]
    for name, value in constants.items():
        monkeypatch.setattr(term_scores, name, value)
    assert [scores(embedded.open("rows"), query) for query in QUERIES] == expected
    (*batch,) = embedded.open("rows").search(body(query, 1_000) for query in QUERIES)
    assert list(map(dict, batch)) == expected


def test_rows_dropped_from_the_cache_are_computed_again(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build_and_open(embedded)
    expected = [scores(index, query) for query in QUERIES]
    few_bytes = partial(_rows_of, limit=2_000)
    monkeypatch.setattr("searchapp.lucene.search.searcher.ScoreRows", few_bytes)
    small_cache = embedded.open("rows")
    for _ in range(2):
        assert [scores(small_cache, query) for query in QUERIES] == expected
    assert [scores(small_cache, match(word)) for word in "abc"] == [
        scores(index, match(word)) for word in "abc"
    ]


def _rows_of(reader: IndexReader, limit: int) -> term_scores.ScoreRows:
    return term_scores.ScoreRows(reader, limit)


def test_repeated_queries_give_the_same_scores(embedded: EmbeddedEngine) -> None:
    index = build_and_open(embedded)
    assert [scores(index, query) for query in QUERIES] == [scores(index, query) for query in QUERIES]
    assert any(score > 0 for query in QUERIES for score in scores(index, query).values())
