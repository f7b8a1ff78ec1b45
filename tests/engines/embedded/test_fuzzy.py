"""Fuzzy queries find the terms that a comparison of all terms finds, and reject random scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from searchapp.lucene import Document, Index
from searchapp.lucene.errors import Refused
from searchapp.lucene.queries.fuzzy import similar_terms
from searchapp.lucene.search.spelling import edit_distance
from tests.engines.embedded.conftest import MAPPING, EnginePair, body

Json = dict[str, Any]

WORDS = ["cat", "cat", "cat", "car", "cart", "bar", "bat", "tar", "the", "then", "than"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    documents = [Document(str(number), word) for number, word in enumerate(WORDS)]
    return Index.create(tmp_path_factory.mktemp("fuzzy"), MAPPING, documents)


def scores(index: Index, query: Json) -> dict[str, float]:
    """Return the score of each word."""
    return {WORDS[int(hit.id)]: hit.score for hit in index.search(body(query))}


def fuzzy_match(words: str, **more: Any) -> Json:
    return {"match": {"text": {"query": words, "fuzziness": 1, **more}}}


def test_similar_terms_are_those_of_a_comparison_of_all_terms(tmp_path: Path) -> None:
    random = Random(5)

    def word() -> str:
        return "".join(random.choice("abcé😀\u0441") for _ in range(random.randrange(1, 8)))

    words = sorted({word() for _ in range(2_000)})
    large = Index.create(tmp_path, MAPPING, [Document("1", " ".join(words))])
    terms = large.reader.fields["text"].terms
    for _ in range(40):
        wanted, most, prefix = word(), random.randrange(3), random.randrange(3)
        expected = {
            other: edit_distance(wanted, other) for other in words if other.startswith(wanted[:prefix])
        }
        expected = {other: edits for other, edits in expected.items() if edits <= most}
        assert similar_terms(terms, wanted, most, prefix) == expected


def test_a_swap_is_two_edits_without_transpositions(index: Index) -> None:
    query = {"value": "acr", "fuzziness": 1}
    assert set(scores(index, {"fuzzy": {"text": query}})) == {"car"}
    assert not scores(index, {"fuzzy": {"text": {**query, "transpositions": False}}})


def test_the_best_terms_are_kept_and_equal_weights_follow_the_order_of_terms(index: Index) -> None:
    query = {"value": "car", "fuzziness": 1, "max_expansions": 3}
    assert set(scores(index, {"fuzzy": {"text": query}})) == {"car", "bar", "cart"}


def test_all_terms_have_the_greatest_document_frequency_unless_the_rewrite_says_otherwise(
    index: Index,
) -> None:
    blended = scores(index, fuzzy_match("car"))
    own = scores(index, fuzzy_match("car", fuzzy_rewrite="top_terms_50"))
    assert blended["cat"] == own["cat"] and blended["car"] < own["car"]
    assert np.isclose(blended["cat"] / blended["car"], 2 / 3)


def test_a_term_that_resembles_two_words_is_rejected_if_its_score_is_random(index: Index) -> None:
    # `cat` is similar to `car` and `bat`, `bar` only to words that occur once.
    index.search(body(fuzzy_match("car cat")))
    with pytest.raises(Refused, match=r"share the similar term text:\w+ and score it differently"):
        index.search(body(fuzzy_match("tar car")))
    index.search(body(fuzzy_match("tar car", fuzzy_rewrite="top_terms_50")))
    index.search(body(fuzzy_match("tar car", operator="and")))


def test_the_first_of_equal_clauses_decides_how_a_term_is_scored(index: Index) -> None:
    exact, similar = {"match": {"text": "car"}}, fuzzy_match("car")
    first, second = (
        scores(index, {"bool": {"should": clauses}}) for clauses in ([exact, similar], [similar, exact])
    )
    assert first["car"] > second["car"] and first["cat"] == second["cat"]
    with pytest.raises(Refused, match="share the similar term"):
        index.search(body({"bool": {"should": [exact, exact, similar]}}))


def test_highlights_mark_each_similar_term_and_not_only_the_best(index: Index) -> None:
    highlight = {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}}
    query = {"fuzzy": {"text": {"value": "car", "fuzziness": 1, "max_expansions": 1}}}
    hits = index.search(body({"bool": {"should": [query, {"match_all": {}}]}}, highlight=highlight))
    marked = {WORDS[int(hit.id)] for hit in hits if hit.highlights}
    assert marked == {"car", "cat", "cart", "bar", "tar"}
    query["fuzzy"]["text"] |= {"value": "ba", "fuzziness": 2}
    with pytest.raises(Refused, match="highlights of a fuzzy query for 'ba'"):
        index.search(body({"bool": {"should": [query, {"match_all": {}}]}}, highlight=highlight))


def test_explanations_show_the_shared_document_frequency(index: Index) -> None:
    explanation = index.explain(body(fuzzy_match("car")), str(WORDS.index("cart")))
    assert explanation is not None
    (weight,) = explanation.details
    assert weight.description.startswith("weight(text:cart in 4)")
    (frequency,) = (
        value.value
        for part in weight.details[0].details
        for value in part.details
        if value.description == "n, number of documents containing term"
    )
    assert frequency == WORDS.count("cat")


@pytest.mark.elasticsearch
def test_terms_without_weight_match_as_on_the_server(make_pair: Callable[..., EnginePair]) -> None:
    pair = make_pair([Document(str(number), word) for number, word in enumerate([*WORDS, "b", "xy"])])
    for value in ("c", "ba", "b"):
        for expansions in (1, 3, 50):
            query = {"value": value, "fuzziness": 2, "max_expansions": expansions}
            assert pair.require_same_hits({"fuzzy": {"text": query}})
