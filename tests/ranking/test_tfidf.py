from __future__ import annotations

import math

import pytest

from searchapp.model import Document, Topic, float32
from searchapp.ranking.tfidf import TfIdf

DOCUMENTS = [
    Document("b", "Every finite group has a finite order."),
    Document("a", "A ring"),
    Document("c", "The order of a group"),
]


def test_the_cosine_is_what_one_computes_by_hand() -> None:
    (hits,) = TfIdf(DOCUMENTS).rank([Topic("t", "Group, finite!")], 3, topics_are_documents=False)
    rare, shared = math.log(4 / 2) + 1, math.log(4 / 3) + 1  # in one of three documents, in two
    # b: every, finite twice, group, has, order; c: the, order, of, group
    b = math.sqrt(rare**2 + (2 * rare) ** 2 + shared**2 + rare**2 + shared**2)
    c = math.sqrt(rare**2 + shared**2 + rare**2 + shared**2)
    topic = math.sqrt(shared**2 + rare**2)
    assert hits.document_ids == ("b", "c", "a")
    expected = [(shared**2 + 2 * rare**2) / (b * topic), shared**2 / (c * topic), 0.0]
    assert hits.scores == pytest.approx([float32(value) for value in expected], rel=1e-6)


def test_a_word_of_no_document_has_no_place_in_the_vectors() -> None:
    vectors = TfIdf(DOCUMENTS)
    with_it, without = vectors.rank(
        [Topic("1", "finite zebra"), Topic("2", "finite")], 2, topics_are_documents=False
    )
    assert with_it == without


def test_equal_scores_are_in_the_order_of_ids_and_a_topic_is_not_retrieved_for_itself() -> None:
    (hits,) = TfIdf(DOCUMENTS).rank([Topic("b", "zebra")], 2, topics_are_documents=True)
    assert hits.document_ids == ("a", "c")
    assert hits.scores == (0.0, 0.0)
