"""The signal `vectors` by hand: cosines of vectors of bytes, and votes of the nearest training topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from searchapp.errors import DataError
from searchapp.model import Document, Topic
from searchapp.progress import no_progress
from searchapp.ranking.learning import write_model
from searchapp.ranking.signals.base import GradedDocuments, Inputs, Normalization
from searchapp.ranking.signals.vectors import DIGEST, VectorSignal, as_bytes, stored_vectors
from tests.ranking.signals.terms import answer, asked

VOTES = VectorSignal("votes", file="v.npz", k=2, power=3.0)
SOLVED = {
    "near": (Topic("near", "a"), [4.0, 1.0], {"d1": 1.0}),
    "b": (Topic("b", "b"), [1.0, 1.0], {"d1": 2.0, "d2": 1.0}),
    "a": (Topic("a", "b"), [1.0, 1.0], {"d2": 2.0}),
    "opposite": (Topic("opposite", "c"), [-1.0, 0.0], {"d3": 9.0}),
    "empty": (Topic("empty", "d"), [0.0, 0.0], {"d3": 9.0}),
}
ASKED = Topic("t", "asked"), [1.0, 0.0]
DOCUMENTS = {"d1": [1.0, 0.0], "d2": [0.0, 1.0], "nothing": [0.0, 0.0]}


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    texts = {topic.text: vector for topic, vector, _gold in SOLVED.values()} | {ASKED[0].text: ASKED[1]}
    vectors = (np.array(list(rows.values()), np.float32) for rows in (DOCUMENTS, texts))
    stored = stored_vectors({DIGEST: "x"}, list(DOCUMENTS), list(texts), tuple(vectors))  # type: ignore[arg-type]
    write_model(tmp_path / "v.npz", stored)
    index: Any = SimpleNamespace(info=SimpleNamespace(documents_digest="x", version="i"))
    gold = {id_: grades for id_, (_topic, _vector, grades) in SOLVED.items()}
    topics = {id_: topic for id_, (topic, _vector, _gold) in SOLVED.items()}
    documents = {id_: Document(id_, "") for id_ in DOCUMENTS}
    return Inputs(index, labels=lambda: GradedDocuments(documents, gold, topics))


def cosine(first: list[float], second: list[float]) -> float:
    one, other = (as_bytes(np.array([vector], float)).astype(int)[0] for vector in (first, second))
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def test_the_nearest_training_topics_vote_with_their_grades(inputs: Inputs, tmp_path: Path) -> None:
    scorer = replace(VOTES, folder=tmp_path).prepare(inputs)
    weight = (cosine([1, 1], ASKED[1]) / cosine([4, 1], ASKED[1])) ** 3
    # "a" is before "b", which has the same cosine.
    assert answer(scorer, asked(ASKED[0], normalization=Normalization.max)) == pytest.approx(
        {"d1": 1.0 / max(1, 2 * weight), "d2": 2 * weight / max(1, 2 * weight)}, rel=1e-6
    )
    by_cosine = dict(answer(scorer, asked(ASKED[0])))
    assert by_cosine == pytest.approx(
        {"d1": cosine([4, 1], ASKED[1]), "d2": 2 * weight * cosine([4, 1], ASKED[1])}, rel=1e-6
    )
    for document, score in by_cosine.items():
        explanation = scorer.explain(asked(ASKED[0]), document)
        assert explanation is not None and explanation.value == score
    assert [vote.topic_id for vote in scorer.votes(asked(ASKED[0]), "d2")] == ["a"]


def test_no_topic_votes_for_itself_or_without_its_gold(inputs: Inputs, tmp_path: Path) -> None:
    signal = replace(VOTES, folder=tmp_path, k=9)
    near = SOLVED["near"][0]
    assert "d1" in dict(answer(signal.prepare(inputs), asked(ASKED[0])))
    voters = {vote.topic_id for vote in signal.prepare(inputs).votes(asked(near), "d1")}
    assert voters == {"b"}
    known = inputs.labels()
    withheld = replace(known, gold={id_: known.gold[id_] for id_ in ("near", "a", "opposite", "empty")})
    scorer = signal.prepare(replace(inputs, labels=lambda: withheld))
    assert dict(answer(scorer, asked(near))).keys() == {"d2"}
    assert not dict(answer(scorer, asked(SOLVED["empty"][0])))
    with pytest.raises(DataError, match="needs training topics"):
        signal.prepare(replace(inputs, labels=lambda: replace(known, gold={})))


def test_documents_without_a_vector_are_not_ranked(inputs: Inputs, tmp_path: Path) -> None:
    scorer = VectorSignal("v", file="v.npz", folder=tmp_path).prepare(inputs)
    (hits,) = scorer.answers(asked(ASKED[0]), no_progress)
    assert list(hits) == [("d1", 1.0), ("d2", 0.5)]
    (none,) = scorer.answers(asked(SOLVED["empty"][0]), no_progress)
    assert not none
