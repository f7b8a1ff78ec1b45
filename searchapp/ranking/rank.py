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
from searchapp.ranking.fusion import FUSION, Given, Weighted
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import (
    LEADERS,
    Answer,
    Asked,
    Inputs,
    Need,
    Retriever,
    Scorer,
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


@dataclass(frozen=True, slots=True)
class RankedTopic:
    """A topic ranked to a depth: its hits, and what each signal of the recipe said of it, from which they were made."""

    topic: Topic
    depth: int
    answers: tuple[Answer, ...]
    hits: Hits


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
        self._askers = [_asker(self._scorers, place) for place in range(len(self._scorers))]
        self._shared: dict[int, Iterator[Hits]] = {}
        self._topics_are_documents = inputs.topics_are_documents
        names = [signal.name for signal in recipe.signals]
        self._fusion = recipe.fusion
        if len(names) > 1:
            self._fusion = recipe.fusion.ready(names, lambda: inputs.fusion(recipe))

    def rank(self, topics: Sequence[Topic], depth: int, tag: str, advance: Advance = no_progress) -> Run:
        """The first `depth` documents for every topic, in the order of the topics.

        Raises:
            DataError: the template retrieves a topic for itself, although topics are documents.
            EngineError: the engine failed on the way.
        """
        every = self.answers(topics, depth, advance)
        rankings = tuple(
            Ranking(topic.id, self._hits(topic, answers, depth))
            for topic, answers in zip(topics, every, strict=True)
        )
        return Run(tag, rankings)

    def rank_topic(self, topic: Topic, depth: int) -> RankedTopic:
        """The first `depth` documents for one topic, with all that it takes to say what made their scores.

        Raises:
            as `rank` does.
        """
        (answers,) = self.answers([topic], depth)
        return RankedTopic(topic, depth, tuple(answers), self._hits(topic, answers, depth))

    def explain(self, found: RankedTopic, document_id: str) -> Explanation | None:
        """Why a document has its score for a topic; None where no signal speaks for it.

        The details are those of the signals, each with its value before it is weighed.
        """
        if len(self._scorers) == 1:
            (asked,) = self._asked_alone(found)
            return self._scorers[0].explain(asked, document_id)
        weighted = self._weighted(found.answers)
        score = self._fusion.fused(weighted).get(document_id)
        if score is None:
            return None
        parts = [
            scorer.explain(asked, document_id)
            for scorer, asked in zip(self._scorers, self._asked_alone(found), strict=True)
        ]
        details = tuple(
            Explanation(
                part.value, f"{signal.name}, weight {signal.weight:g}: {part.description}", part.details
            )
            for signal, part in zip(self.recipe.signals, parts, strict=True)
            if part is not None
        )
        said, of_fusion = self._fusion.explained(weighted, document_id)
        return Explanation(score, said, (*details, *of_fusion))

    def shares(self, found: RankedTopic, document_id: str) -> list[Share]:
        """What each signal gives to a document's score, with who voted where votes count.

        They add up to the score, see `Fusion.given`.
        """
        if len(found.answers) == 1:
            given = Given([dict(found.answers[0]).get(document_id)])
        else:
            given = self._fusion.given(self._weighted(found.answers), document_id)
        asking = self._asked_alone(found)
        shares = [
            Share(signal.name, signal.weight, value, tuple(scorer.votes(asked, document_id)))
            for signal, scorer, value, asked in zip(
                self.recipe.signals, self._scorers, given.signals, asking, strict=True
            )
        ]
        return [*shares, Share(self._fusion.by, 1.0, given.rest)] if given.rest else shares

    def answers(
        self, topics: Sequence[Topic], depth: int, advance: Advance = no_progress
    ) -> Iterator[Sequence[Answer]]:
        """What each signal says of each topic, in the order of the topics.

        Raises:
            EngineError: the engine failed on the way.
        """
        return zip(*self._answers(topics, depth, advance), strict=True)

    def models(self) -> dict[str, dict[str, Any]]:
        """What a run records of the models that it was ranked by, by the names of the signals, and `FUSION`."""
        found = zip(self.recipe.signals, (scorer.model() for scorer in self._scorers), strict=True)
        fusion = {FUSION: model} if (model := self._fusion.model()) else {}
        return {signal.name: model for signal, model in found if model} | fusion

    def _hits(self, topic: Topic, answers: Sequence[Answer], depth: int) -> Hits:
        """The ranking that the signals' answers make.

        Raises:
            DataError: it has the topic itself, although topics are documents.
        """
        if len(answers) == 1:
            hits = as_hits(answers[0], depth, self._itself(topic))
        else:
            hits = ranked(self._fusion.fused(self._weighted(answers)), depth, self._itself(topic))
        if self._topics_are_documents and topic.id in hits.document_ids:
            raise DataError(
                f"{self.recipe.query.template.name} retrieves topic {topic.id} for itself: "
                "exclude it in the template with must_not"
            )
        return hits

    def _leaders(self, topic: Topic, answers: Sequence[Answer]) -> Hits:
        """What the first signals of the recipe rank highest, fused without what is learned of all of them."""
        if len(answers) == 1:
            return as_hits(answers[0], LEADERS, self._itself(topic))[:LEADERS]
        weights = [signal.weight for signal in self.recipe.signals]
        fused = self.recipe.fusion.fused(list(zip(weights, answers, strict=False)))
        return ranked(fused, LEADERS, self._itself(topic))

    def _itself(self, topic: Topic) -> str | None:
        """The document that a topic is, which it is not ranked for."""
        return topic.id if self._topics_are_documents else None

    def _weighted(self, answers: Sequence[Answer]) -> Weighted:
        return [(signal.weight, answer) for signal, answer in zip(self.recipe.signals, answers, strict=True)]

    def _asked_alone(self, found: RankedTopic) -> list[Asked]:
        """What each signal is asked of one topic, with candidates and leaders in the answers of all of them."""
        answers, depth = found.answers, found.depth
        candidates = [as_hits(answers[0], depth)] if self.recipe.needs(Need.candidates) else []
        asked = Asked([found.topic], depth, self._fusion.scale, candidates)
        return [
            replace(asked, leaders=[self._leaders(found.topic, answers[:place])])
            if Need.leaders in signal.needs
            else asked
            for place, signal in enumerate(self.recipe.signals)
        ]

    def _answers(self, topics: Sequence[Topic], depth: int, advance: Advance) -> list[Iterator[Answer]]:
        """What each signal says of each topic, as deep as the fusion looks.

        The last signal, which often has the most to do, says how far it is.
        """
        self._fusion.require_unseen(topics)
        depth = max(depth, self._fusion.reach) if len(self._scorers) > 1 else depth
        asked = Asked(topics, depth, self._fusion.scale)
        if self._is_one_request(topics):
            found = retrieved_together(self._retrievers, asked)
            advance(1)
            return [iter([answer]) for answer in found]
        if self.recipe.needs(Need.candidates):
            first = list(self._scorers[0].answers(asked, no_progress))
            asked = Asked(topics, depth, asked.scale, [as_hits(answer, depth) for answer in first])
            answers: list[Iterator[Answer]] = [iter(first)]
        else:
            answers = [self._said(0, asked, self._advance_of(0, advance))]
        for place, signal in enumerate(self.recipe.signals[1:], start=1):
            told = asked
            if Need.leaders in signal.needs:
                # Drawn in step with the answers themselves, so that those of a few topics are held.
                pairs = [itertools.tee(one) for one in answers]
                answers = [kept for kept, _ in pairs]
                before = zip(topics, zip(*(copy for _, copy in pairs), strict=True), strict=True)
                told = replace(asked, leaders=itertools.starmap(self._leaders, before))
            answers.append(self._said(place, told, self._advance_of(place, advance)))
        self._shared.clear()  # who shares hits has them
        return answers

    def _said(self, place: int, asked: Asked, advance: Advance) -> Iterator[Answer]:
        """What the signal at a place says of each topic; signals that ask an index for the same share the hits."""
        scorer, asker = self._scorers[place], self._askers[place]
        if self._askers.count(asker) == 1 or not isinstance(scorer, Retriever):
            return scorer.answers(asked, advance)
        if asker not in self._shared:
            self._shared[asker] = scorer.retrieved(asked, no_progress)
        hits, self._shared[asker] = itertools.tee(self._shared[asker])
        return map(scorer.answer, asked.topics, hits, itertools.repeat(asked))

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


def _asker(scorers: Sequence[Scorer], place: int) -> int:
    """The place of the first scorer that asks the same as the one at a place."""
    scorer = scorers[place]
    if not isinstance(scorer, Retriever):
        return place
    before = (
        other
        for other in range(place)
        if isinstance(one := scorers[other], Retriever) and one.asks_as(scorer)
    )
    return next(before, place)


def as_hits(answer: Answer, depth: int, without: str | None = None) -> Hits:
    """A signal's answer as hits: those of an engine as they are, scores in their order, `without` a document."""
    return answer if isinstance(answer, Hits) else ranked(answer, depth, without)
