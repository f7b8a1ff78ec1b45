"""The signals that rank by a model trained on solved topics, on a few that leave no doubt."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from searchapp.errors import DataError
from searchapp.model import Document, Example, Topic
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, SignalScorer, Trained
from searchapp.ranking.signals.multiclass import MultiClass, softmax
from searchapp.ranking.signals.multilabel import MultiLabel, logistic

PLACES = {"city": 1.0, "place": 0.5}
PEOPLE = {"poet": 1.0, "person": 0.5}
DATE = {"date": 1.0}
NAMES = ["Ara", "Bel", "Cor", "Dun", "Eka", "Fen"]
EXAMPLES = [
    Example(Topic(f"{kind}{place}", f"{words} {name}?"), gold)
    for kind, words, gold in (("w", "Where is", PLACES), ("p", "Who wrote", PEOPLE), ("d", "When fell", DATE))
    for place, name in enumerate(NAMES)
]
KIND = {"city": "thing", "place": "thing", "poet": "thing", "person": "thing", "date": "literal"}
DOCUMENTS = [Document(name, name, {"kind": kind}) for name, kind in KIND.items()]

MULTICLASS = MultiClass(
    "m",
    1.0,
    cost=1.0,
    min_samples=2,
    seed=1,
    steepness=8.0,
    cutoff=10,
    power=1.0,
    category_field="kind",
    category_cost=1.0,
    category_steepness=5.0,
)
MULTILABEL = MultiLabel("m", 1.0, cost=1.0, min_samples=2, seed=1, steepness=3.0)


def stored(signal: Trained, examples: Sequence[Example] = EXAMPLES, workers: int = 1) -> StoredModel:
    header, arrays = signal.train(examples, DOCUMENTS, workers)
    return StoredModel.of({"topics": [one.topic.id for one in examples], **header}, arrays)


def prepared(signal: Trained, examples: Sequence[Example] = EXAMPLES) -> SignalScorer:
    no_index: Any = None
    return signal.prepare(Inputs(no_index, model=lambda _signal: stored(signal, examples)))


def asked(text: str, id_: str = "") -> SignalRequest:
    return SignalRequest([Topic(id_, text)], 10, Normalization.max)


def scores(signal: Trained, text: str, examples: Sequence[Example] = EXAMPLES) -> dict[str, float]:
    (answer,) = prepared(signal, examples).answers(asked(text), lambda _done: None)
    return dict(answer)


def test_the_value_is_decided_first_and_documents_follow_by_their_gain() -> None:
    found = scores(MULTICLASS, "Where is Gor?")
    assert sorted(found, key=lambda name: -found[name])[:2] == ["city", "place"]
    # The gain of place is half of that of city, whatever the ideal, if nothing but PLACES is likely.
    assert found["place"] / found["city"] == pytest.approx(0.5, abs=0.05)
    assert 0.5 < found["city"] <= 1.0 and found["date"] == pytest.approx(1 - found["city"], abs=1e-9)


def test_without_a_field_documents_have_their_expected_gain() -> None:
    signal = dataclasses.replace(MULTICLASS, category_field=None)
    found = scores(signal, "Who wrote Gor?")
    ideal = 1.0 + 0.5 / math.log2(3)
    assert found["poet"] == pytest.approx(1 / ideal, abs=0.05)
    assert found["person"] == pytest.approx(0.5 / ideal, abs=0.05)
    plain = scores(dataclasses.replace(signal, cutoff=None, power=2.0), "Who wrote Gor?")
    assert plain["person"] == pytest.approx(0.25 * plain["poet"])


def test_a_rare_answer_is_no_class_unless_its_value_has_no_other() -> None:
    rare = [
        Example(Topic("r", "Where is Gor?"), {"village": 1.0}),
        Example(Topic("n", "Why so?"), {"why": 1.0}),
    ]
    documents = [
        *DOCUMENTS,
        Document("village", "village", {"kind": "thing"}),
        Document("why", "why", {"kind": "x"}),
    ]
    header, _arrays = MULTICLASS.train([*EXAMPLES, *rare], documents, 1)
    assert header["labels"] == ["literal", "thing", "x", "city", "date", "poet", "why"]
    # An answer that is no document any more teaches nothing.
    header, _arrays = MULTICLASS.train([*EXAMPLES, *rare], DOCUMENTS, 1)
    assert header["labels"] == ["literal", "thing", "city", "date", "poet"]


def test_each_document_has_a_probability_of_its_own() -> None:
    found = scores(MULTILABEL, "Where is Gor?")
    assert found.keys() == KIND.keys()
    assert min(found["city"], found["place"]) > 0.5 > max(found["poet"], found["person"], found["date"])
    assert found["city"] == pytest.approx(found["place"])


@pytest.mark.parametrize("signal", [MULTICLASS, MULTILABEL], ids=["multiclass", "multilabel"])
def test_training_is_the_same_every_time_and_in_any_number_of_processes(signal: Trained) -> None:
    digest = stored(signal).digest
    assert stored(signal).digest == digest
    assert stored(signal, workers=2).digest == digest


@pytest.mark.parametrize("signal", [MULTICLASS, MULTILABEL], ids=["multiclass", "multilabel"])
def test_a_solved_topic_is_not_ranked_by_its_own_answer(signal: Trained) -> None:
    scorer = prepared(signal)
    with pytest.raises(DataError, match="trained on the topic w0"):
        list(scorer.answers(asked("Where is Ara?", "w0"), lambda _done: None))


@pytest.mark.parametrize("signal", [MULTICLASS, MULTILABEL], ids=["multiclass", "multilabel"])
def test_an_explanation_has_the_score_and_the_features(signal: Trained) -> None:
    scorer = prepared(signal)
    explanation = scorer.explain(asked("Where is Gor?"), "city")
    assert explanation is not None and explanation.value == scores(signal, "Where is Gor?")["city"]
    assert "begins “where is”" in str(explanation)
    assert scorer.explain(asked("Where is Gor?"), "nowhere") is None


def test_shares_do_not_overflow() -> None:
    found = softmax(np.array([[1e4, 1e4, -1e4]]))
    np.testing.assert_array_equal(found, [[0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(logistic(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(DataError, match="lower `min_samples`"):
        MULTILABEL.train(EXAMPLES[:1], DOCUMENTS, 1)
    with pytest.raises(DataError, match="no document has the field color"):
        dataclasses.replace(MULTICLASS, category_field="color").train(EXAMPLES, DOCUMENTS, 1)
