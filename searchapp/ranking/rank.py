"""Ranks topics: a recipe's signals, run on an index and made one ranking."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from searchapp.engines.base import Explanation
from searchapp.errors import DataError
from searchapp.model import Hits, Ranking, Run, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import (
    LEADERS,
    Answer,
    Asked,
    Inputs,
    Need,
    Retriever,
    Vote,
    ranked,
    retrieved_together,
)


@dataclass(frozen=True, slots=True)
class Share:
    """What a signal gives to a document's score; `value` is None where it does not speak for the document."""

    signal: str
    weight: float
    value: float | None
    votes: tuple[Vote, ...] = ()


class Ranker:
    """A recipe that is ready to rank topics: its signals are prepared once.

    Raises:
        DataError: what a signal needs is missing or not what it should be.
        EngineError: the engine failed on the way.
    """

    def __init__(self, recipe: Recipe, inputs: Inputs) -> None:
        self.recipe = recipe
        self._scorers = [signal.prepare(inputs) for signal in recipe.signals]
        self._retrievers = [scorer for scorer in self._scorers if isinstance(scorer, Retriever)]
        self._topics_are_documents = inputs.topics_are_documents

    def rank(self, topics: Sequence[Topic], depth: int, tag: str, advance: Advance = no_progress) -> Run:
        """The first `depth` documents for every topic, in the order of the topics.

        Raises:
            DataError: the template retrieves a topic for itself, although topics are documents.
            EngineError: the engine failed on the way.
        """
        rankings = tuple(
            Ranking(topic.id, hits)
            for topic, hits in zip(topics, self._hits(topics, depth, advance), strict=True)
        )
        if self._topics_are_documents:
            for ranking in rankings:
                self._require_other(ranking)
        return Run(tag, rankings)

    def explain(self, topic: Topic, document_id: str, depth: int) -> Explanation | None:
        """Why a document has its score for a topic; None where no signal speaks for it.

        The details are those of the signals, each with its value before it is weighed.
        """
        parts = [
            scorer.explain(asked, document_id)
            for scorer, asked in zip(self._scorers, self._asked_alone(topic, depth), strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        score = dict(next(self._fused([topic], depth, no_progress))).get(document_id)
        if score is None:
            return None
        details = tuple(
            Explanation(
                part.value, f"{signal.name}, weight {signal.weight:g}: {part.description}", part.details
            )
            for signal, part in zip(self.recipe.signals, parts, strict=True)
            if part is not None
        )
        return Explanation(score, f"fused by {self.recipe.fusion.by}", details)

    def shares(self, topic: Topic, document_id: str, depth: int) -> list[Share]:
        """What each signal gives to a document's score, with who voted where votes count.

        Every fusion adds what the signals give, so that the shares add up to the score.
        """
        shares = []
        answers = [answer for (answer,) in self._answers([topic], depth, no_progress)]
        asking = self._asked_alone(topic, depth)
        for signal, scorer, answer, asked in zip(
            self.recipe.signals, self._scorers, answers, asking, strict=True
        ):
            is_alone = len(self._scorers) == 1
            given = dict(answer) if is_alone else self.recipe.fusion.fused([(signal.weight, answer)])
            votes = tuple(scorer.votes(asked, document_id))
            shares.append(Share(signal.name, signal.weight, given.get(document_id), votes))
        return shares

    def models(self) -> dict[str, dict[str, Any]]:
        """What a run records of the models that its signals rank by, by the names of the signals."""
        found = zip(self.recipe.signals, (scorer.model() for scorer in self._scorers), strict=True)
        return {signal.name: model for signal, model in found if model}

    def _hits(self, topics: Sequence[Topic], depth: int, advance: Advance) -> Iterator[Hits]:
        if len(self._scorers) == 1:
            (answers,) = self._answers(topics, depth, advance)
            for topic, answer in zip(topics, answers, strict=True):
                yield as_hits(answer, depth, self._itself(topic))
            return
        for topic, scores in zip(topics, self._fused(topics, depth, advance), strict=True):
            yield ranked(scores, depth, self._itself(topic))

    def _asked_alone(self, topic: Topic, depth: int) -> list[Asked]:
        """What each signal is asked of one topic, with the leaders of those before it."""
        asked = Asked([topic], depth, self.recipe.fusion.scale)
        if not self.recipe.needs(Need.leaders):
            return [asked] * len(self._scorers)
        answers = [answer for (answer,) in self._answers([topic], depth, no_progress)]
        return [
            replace(asked, leaders=[self._leaders(topic, answers[:place])] if place else ())
            for place in range(len(self._scorers))
        ]

    def _leaders(self, topic: Topic, answers: Sequence[Answer]) -> Hits:
        """What the first signals of the recipe, fused, rank highest."""
        if len(answers) == 1:
            return as_hits(answers[0], LEADERS, self._itself(topic))[:LEADERS]
        weights = [signal.weight for signal in self.recipe.signals]
        fused = self.recipe.fusion.fused(list(zip(weights, answers, strict=False)))
        return ranked(fused, LEADERS, self._itself(topic))

    def _itself(self, topic: Topic) -> str | None:
        """The document that a topic is, which it is not ranked for."""
        return topic.id if self._topics_are_documents else None

    def _fused(self, topics: Sequence[Topic], depth: int, advance: Advance) -> Iterator[dict[str, float]]:
        weights = [signal.weight for signal in self.recipe.signals]
        for answers in zip(*self._answers(topics, depth, advance), strict=True):
            yield self.recipe.fusion.fused(list(zip(weights, answers, strict=True)))

    def _answers(self, topics: Sequence[Topic], depth: int, advance: Advance) -> list[Iterator[Answer]]:
        """What each signal says of each topic; the last signal, which often has the most to do, says how far it is."""
        asked = Asked(topics, depth, self.recipe.fusion.scale)
        if self._is_one_request(topics):
            found = retrieved_together(self._retrievers, asked)
            advance(1)
            return [iter([answer]) for answer in found]
        if self.recipe.needs(Need.candidates):
            first = list(self._scorers[0].answers(asked, no_progress))
            asked = Asked(topics, depth, asked.scale, [as_hits(answer, depth) for answer in first])
            answers: list[Iterator[Answer]] = [iter(first)]
        else:
            answers = [self._scorers[0].answers(asked, self._advance_of(0, advance))]
        signals = zip(self.recipe.signals[1:], self._scorers[1:], strict=True)
        for place, (signal, scorer) in enumerate(signals, start=1):
            told = asked
            if Need.leaders in signal.needs:
                # Drawn in step with the answers themselves, so that those of a few topics are held.
                pairs = [itertools.tee(one) for one in answers]
                answers = [kept for kept, _ in pairs]
                before = zip(topics, zip(*(copy for _, copy in pairs), strict=True), strict=True)
                told = replace(asked, leaders=itertools.starmap(self._leaders, before))
            answers.append(scorer.answers(told, self._advance_of(place, advance)))
        return answers

    def _is_one_request(self, topics: Sequence[Topic]) -> bool:
        """Whether a server far away is asked for one topic, by signals that do not wait for each other's answers.

        Many topics go in batches, which are as few for each signal by itself.
        """
        retrievers = self._retrievers
        return (
            len(topics) == 1
            and 1 < len(retrievers) == len(self._scorers)
            and not any(one.searched.is_at_hand for one in retrievers)
        )

    def _advance_of(self, place: int, advance: Advance) -> Advance:
        return advance if place == len(self._scorers) - 1 else no_progress

    def _require_other(self, ranking: Ranking) -> None:
        if ranking.topic_id in ranking.document_ids():
            raise DataError(
                f"{self.recipe.query.template.name} retrieves topic {ranking.topic_id} for itself: "
                "exclude it in the template with must_not"
            )


def as_hits(answer: Answer, depth: int, without: str | None = None) -> Hits:
    """A signal's answer as hits: those of an engine as they are, scores in their order, `without` a document."""
    return answer if isinstance(answer, Hits) else ranked(answer, depth, without)
