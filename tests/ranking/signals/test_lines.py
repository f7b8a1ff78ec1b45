"""The signal `lines`: a model of the lines of transcripts, which has not seen the one that it ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from searchapp.errors import DataError
from searchapp.model import Document, Example, Hits, Topic
from searchapp.ranking import recipes
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, SignalScorer
from searchapp.ranking.signals.lines import Lines
from tests.ranking.signals.test_labelled import Neighbours

SIGNAL = Lines(
    "lines",
    1.0,
    cost=1.0,
    min_samples=1,
    seed=1,
    style_weight=0.1,
    topic_balance=0.5,
    context_weight=0.0,
    group_field="debate",
    position_field="line",
    speaker_field="speaker",
)
SAID = ["Taxes rose by {} percent.", "Thank you.", "We lost {} jobs.", "God bless you all.", "Good night."]
RELEVANT = (1, 3)


def debate(name: str) -> list[Document]:
    return [
        Document(f"{name}:{line}", text.format(line), {"debate": name, "line": line, "speaker": "ANN"})
        for line, text in enumerate(SAID, start=1)
    ]


def topic(name: str) -> Topic:
    return Topic(name, name, {"debate": name})


DOCUMENTS = [document for name in ("d", "a", "b", "c") for document in reversed(debate(name))]
EXAMPLES = [Example(topic(name), {f"{name}:{line}": 1.0 for line in RELEVANT}) for name in ("a", "b", "c")]


class Trainer:
    """Trains a model for each topic that is asked for, as the use case does; `asked` are these topics."""

    def __init__(
        self,
        examples: Sequence[Example] = EXAMPLES,
        *,
        sees_all: bool = False,
        documents: Sequence[Document] = DOCUMENTS,
    ) -> None:
        self.examples = examples
        self.sees_all = sees_all
        self.documents = documents
        self.asked: list[str] = []

    def model(self, signal: Lines, ranked: str) -> StoredModel:
        self.asked.append(ranked)
        seen = [one for one in self.examples if self.sees_all or one.topic.id != ranked]
        header, arrays = signal.train(seen, self.documents, 1)
        return StoredModel.of({"topics": [one.topic.id for one in seen], **header}, arrays)


def scorer(
    signal: Lines = SIGNAL, trainer: Trainer | None = None, documents: Sequence[Document] = DOCUMENTS
) -> SignalScorer:
    model = (trainer or Trainer()).model
    return signal.prepare(Inputs(Neighbours(Hits()), documents=lambda: documents, model=model))  # type: ignore[arg-type]


def asked(*names: str) -> SignalRequest:
    return SignalRequest([topic(name) for name in names], 10, Normalization.max)


def scores(one: SignalScorer, *names: str) -> list[dict[str, float]]:
    return [dict(answer) for answer in one.answers(asked(*names), lambda _done: None)]


def test_every_line_of_the_debate_gets_a_probability_and_no_other() -> None:
    (found,) = scores(scorer(), "d")
    assert sorted(found) == [f"d:{line}" for line in range(1, 6)]
    best = sorted(found, key=lambda line: -found[line])[:2]
    assert sorted(best) == ["d:1", "d:3"] and found[best[1]] > 0.5 > found["d:2"]
    assert all(0 < score < 1 for score in found.values())


def test_a_solved_debate_is_ranked_by_the_others() -> None:
    trainer = Trainer()
    one = scorer(trainer=trainer)
    before = scores(one, "a", "d")
    assert trainer.asked == ["a", "d"]
    assert [model["labels"] for model in one.model()["models"]] == [1, 1]
    flipped = Example(topic("a"), {f"a:{line}": 1.0 for line in (2, 4)})
    after = scores(scorer(trainer=Trainer([flipped, *EXAMPLES[1:]])), "a", "d")
    assert after[0] == before[0] and after[1] != before[1]


def test_a_model_that_has_seen_the_debate_is_refused() -> None:
    with pytest.raises(DataError, match="trained on the topic a: rank another split"):
        scores(scorer(trainer=Trainer(sees_all=True)), "a")


def test_the_lines_around_count() -> None:
    def logits(around: float) -> dict[str, float]:
        (found,) = scores(scorer(replace(SIGNAL, context_weight=around)), "d")
        return {line: math.log(score / (1 - score)) for line, score in found.items()}

    alone, together = logits(0.0), logits(0.25)
    assert together["d:2"] == pytest.approx(alone["d:2"] + 0.25 * (alone["d:1"] + alone["d:3"]))
    # The first line stands in for the one before it.
    assert together["d:1"] == pytest.approx(1.25 * alone["d:1"] + 0.25 * alone["d:2"])


def test_reactions_are_ranked_last_and_count_neither_as_neighbours_nor_in_training() -> None:
    def with_reactions(documents: Sequence[Document]) -> list[Document]:
        applause = [
            Document(f"{name}:{line}", "(APPLAUSE)", {"debate": name, "line": line, "speaker": "SYSTEM"})
            for name in "dabc"
            for line in (0.5, 2.5)
        ]
        return [*documents, *applause]

    signal = replace(SIGNAL, context_weight=0.25, reaction_speaker="SYSTEM")
    (plain,) = scores(scorer(replace(SIGNAL, context_weight=0.25)), "d")
    heard = scorer(signal, Trainer(documents=with_reactions(DOCUMENTS)), with_reactions(DOCUMENTS))
    (found,) = scores(heard, "d")
    assert found == {**plain, "d:0.5": 0.0, "d:2.5": 0.0}
    explained = heard.explain(asked("d"), "d:2.5")
    assert explained is not None and explained.value == 0 and "a reaction" in explained.description


def spoken_by(speakers: Sequence[str]) -> list[Document]:
    """The documents with a host in each training debate, and the speakers of the five lines of the debate d."""

    def speaker(name: str, line: int) -> str:
        if name == "d":
            return speakers[line - 1]
        return "ANN" if line in RELEVANT else f"HOST of {name}"

    return [
        replace(one, fields={**one.fields, "speaker": speaker(one.fields["debate"], one.fields["line"])})
        for one in DOCUMENTS
    ]


def test_log_odds_of_the_speaker_are_added_to_the_margin() -> None:
    def logits(documents: Sequence[Document], weight: float) -> list[float]:
        signal = replace(SIGNAL, speaker_weight=weight)
        (found,) = scores(scorer(signal, Trainer(documents=documents), documents), "d")
        return [math.log(found[f"d:{line}"] / (1 - found[f"d:{line}"])) for line in range(1, 6)]

    documents = spoken_by(["ANN", "HOST of a", "ZOE", "", "HOST of b"])
    without, added = logits(documents, 0.0), logits(documents, 0.5)
    # 6 of 15 lines are relevant: all of ANN's 6, none of each host's 3. Each host is in one debate only.
    share, of_new = 6 / 15, (0 + 6 / 15) / (9 + 1)
    ann, host = (6 + of_new) / 7, (0 + of_new) / 4
    expected = [0.5 * (logit(each) - logit(share)) for each in (ann, host, of_new, of_new, host)]
    assert [one - other for one, other in zip(added, without, strict=True)] == pytest.approx(expected)


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


def test_an_explanation_names_the_speaker_and_whether_training_topics_have_them() -> None:
    documents = spoken_by(["ANN", "ZOE [/b]", "ANN", "ANN", "ANN"])
    one = scorer(replace(SIGNAL, speaker_weight=1.0), Trainer(documents=documents), documents)
    for line, said in ((1, "speaker “ANN”"), (2, "speaker “ZOE [/b]”, who is in no training topic")):
        explained = one.explain(asked("d"), f"d:{line}")
        assert explained is not None
        own = explained.details[0]
        assert said in [part.description for part in own.details]
        assert sum(part.value for part in own.details) == pytest.approx(own.value)


def test_an_explanation_adds_up_to_the_score() -> None:
    one = scorer(replace(SIGNAL, context_weight=0.2))
    (found,) = scores(one, "a")
    explained = one.explain(asked("a"), "a:3")
    assert explained is not None and explained.value == pytest.approx(found["a:3"])
    total = sum(part.value for part in explained.details)
    assert 1 / (1 + math.exp(-total)) == pytest.approx(explained.value)
    own = explained.details[0]
    assert sum(part.value for part in own.details) == pytest.approx(own.value)
    assert any(part.description.startswith("words “") for part in own.details)
    assert one.explain(asked("a"), "b:3") is None


def test_a_topic_without_lines_has_no_answers() -> None:
    assert list(
        scorer().answers(SignalRequest([Topic("", "taxes")], 10, Normalization.max), lambda _done: None)
    ) == [{}]


def test_places_may_be_written_as_text() -> None:
    assert scores(scorer(), "d") == scores(scorer(documents=texts()), "d")


def texts() -> list[Document]:
    """The documents as the table of an own task has them."""
    return [replace(one, fields={**one.fields, "line": str(one.fields["line"])}) for one in DOCUMENTS]


def test_training_is_the_same_every_time() -> None:
    digests = {Trainer().model(SIGNAL, "a").digest for _ in range(2)}
    assert len(digests) == 1
    assert Trainer().model(replace(SIGNAL, context_weight=0.5, speaker_weight=0.5), "a").digest in digests
    assert (
        Trainer().model(replace(SIGNAL, topic_balance=1.0), "a").digest in digests
    )  # all have as many relevant lines


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ([Example(topic("x"), {"x:1": 1.0})], "the training topic x has no documents with its debate"),
        ([Example(topic("a"), {})], "the lines of the 1 training topic are all relevant or all not relevant"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(examples: list[Example], said: str) -> None:
    with pytest.raises(DataError, match=said):
        SIGNAL.train(examples, DOCUMENTS, 1)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"line": "first"}, "number in the field line"),
        ({"line": None}, "number in the field line"),
        ({"line": "nan"}, "number in the field line"),
        ({"speaker": 7}, "text in the field speaker"),
    ],
)
def test_documents_must_say_where_they_stand_and_who_speaks(field: dict[str, Any], said: str) -> None:
    wrong = Document("d:9", "Well.", {"debate": "d", "line": 9, "speaker": "ANN", **field})
    with pytest.raises(DataError, match=f"the document d:9 has no {said}: correct the recipe"):
        SIGNAL.train(EXAMPLES, [*DOCUMENTS, wrong], 1)


def test_the_recipe_records_its_parameters() -> None:
    (described, labelled, _direct) = recipes.load("checkthat", "best").manifest()["signals"]
    assert (
        described["signal"] == "lines"
        and described["context_weight"] == 0.2
        and described["speaker_weight"] == 0.5
        and described["group_field"] == "debate"
    )
    assert (labelled["candidates"], labelled["position_decay"]) == (600, 1.0)
