from __future__ import annotations

import math

import pytest

from searchapp.model import Document, Hits, Topic, float32
from searchapp.ranking.signals.base import Normalization, SignalRequest
from searchapp.ranking.signals.tfidf import Vectors

DOCUMENTS = [
    Document("b", "Every finite group has a finite order."),
    Document("a", "A ring"),
    Document("c", "The order of a group"),
]


def rank(depth: int, *topics: Topic, topics_are_documents: bool = False) -> list[Hits]:
    vectors = Vectors(DOCUMENTS, topics_are_documents=topics_are_documents)
    answers = list(vectors.answers(SignalRequest(topics, depth, Normalization.none), lambda _done: None))
    assert all(isinstance(answer, Hits) for answer in answers)
    return [answer for answer in answers if isinstance(answer, Hits)]


def test_the_cosine_is_what_one_computes_by_hand() -> None:
    (hits,) = rank(3, Topic("t", "Group, finite!"))
    rare, shared = math.log(4 / 2) + 1, math.log(4 / 3) + 1  # in one of three documents, in two
    # b: every, finite twice, group, has, order; c: the, order, of, group
    b = math.sqrt(rare**2 + (2 * rare) ** 2 + shared**2 + rare**2 + shared**2)
    c = math.sqrt(rare**2 + shared**2 + rare**2 + shared**2)
    topic = math.sqrt(shared**2 + rare**2)
    assert hits.document_ids == ("b", "c", "a")
    expected = [(shared**2 + 2 * rare**2) / (b * topic), shared**2 / (c * topic), 0.0]
    assert hits.scores == pytest.approx([float32(value) for value in expected], rel=1e-6)


def test_a_word_of_no_document_has_no_place_in_the_vectors() -> None:
    with_it, without = rank(2, Topic("1", "finite zebra"), Topic("2", "finite"))
    assert with_it == without


def test_equal_scores_are_in_the_order_of_ids_and_a_topic_is_not_retrieved_for_itself() -> None:
    (hits,) = rank(2, Topic("b", "zebra"), topics_are_documents=True)
    assert hits.document_ids == ("a", "c")
    assert hits.scores == (0.0, 0.0)


def test_the_parts_of_an_explanation_add_up_to_the_cosine() -> None:
    topic = Topic("t", "The finite order, finite!")
    (hits,) = rank(3, topic)
    for document, score in hits:
        explained = Vectors(DOCUMENTS).explain(SignalRequest([topic], 3, Normalization.none), document)
        assert explained is not None and explained.value == score
        assert sum(part.value for part in explained.details) == pytest.approx(score, rel=1e-6)
    assert Vectors(DOCUMENTS).explain(SignalRequest([topic], 3, Normalization.none), "unknown") is None
