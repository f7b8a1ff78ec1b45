"""The ranker: a recipe's signals, run on an index and fused into one ranking for each topic.

`SignalAnswers` asks each signal once and keeps its answers, so that they can be fused in many ways: a ranking by some
of the signals costs a fusion and not a search. Signals answer as they do in the recipe: one that is told what others
rank highest is told the same, whether these count in the end or not. A document of a signal takes 12 bytes.
"""

from __future__ import annotations

import itertools
import os
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from searchapp.errors import DataError
from searchapp.model import Explanation, Hits, Ranking, Run, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.fusion import FUSION, Fusion, ScoreParts, Weighted
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import (
    LEADERS,
    Answer,
    Inputs,
    Need,
    Retriever,
    Signal,
    SignalRequest,
    SignalScorer,
    Vote,
    ranked,
    retrieve_in_one_request,
)


@dataclass(frozen=True, slots=True)
class SignalShare:
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

    def shares(self, found: RankedTopic, document_id: str) -> list[SignalShare]:
        """What each signal gives to a document's score, with who voted where votes count.

        They add up to the score, see `Fusion.given`.
        """
        if len(found.answers) == 1:
            given = ScoreParts([dict(found.answers[0]).get(document_id)])
        else:
            given = self._fusion.given(self._weighted(found.answers), document_id)
        asking = self._asked_alone(found)
        shares = [
            SignalShare(signal.name, signal.weight, value, tuple(scorer.votes(asked, document_id)))
            for signal, scorer, value, asked in zip(
                self.recipe.signals, self._scorers, given.signals, asking, strict=True
            )
        ]
        return [*shares, SignalShare(self._fusion.by, 1.0, given.rest)] if given.rest else shares

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

    def _asked_alone(self, found: RankedTopic) -> list[SignalRequest]:
        """What each signal is asked of one topic, with candidates and leaders in the answers of all of them."""
        answers, depth = found.answers, found.depth
        candidates = [as_hits(answers[0], len(answers[0]))] if self.recipe.needs(Need.candidates) else []
        asked = SignalRequest([found.topic], depth, self._fusion.scale, candidates)
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
        asked = SignalRequest(topics, depth, self._fusion.scale)
        if self._is_one_request(topics):
            found = retrieve_in_one_request(self._retrievers, asked)
            advance(1)
            return [iter([answer]) for answer in found]
        if self.recipe.needs(Need.candidates):
            first = list(self._scorers[0].answers(asked, no_progress))
            asked = replace(asked, candidates=[as_hits(answer, len(answer)) for answer in first])
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

    def _said(self, place: int, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
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


def _asker(scorers: Sequence[SignalScorer], place: int) -> int:
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


FIXED = frozenset({Need.texts, Need.candidates, Need.leaders})
"""What a signal may need whose answers are the same whichever topics are solved, if those are that it is told of."""


@dataclass(slots=True)
class WorkTime:
    """What work has taken: `cpu` of this process and of those that it has seen end, and `clock` by the clock."""

    cpu: float = 0.0
    clock: float = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Add what is taken inside."""
        started = WorkTime.now()
        try:
            yield
        finally:
            took = WorkTime.now() - started
            self.cpu, self.clock = self.cpu + took.cpu, self.clock + took.clock

    @classmethod
    def now(cls) -> WorkTime:
        """What this process has taken so far."""
        used = os.times()
        return cls(time.process_time() + used.children_user + used.children_system, time.perf_counter())

    def __add__(self, other: WorkTime) -> WorkTime:
        return WorkTime(self.cpu + other.cpu, self.clock + other.clock)

    def __sub__(self, other: WorkTime) -> WorkTime:
        return WorkTime(self.cpu - other.cpu, self.clock - other.clock)


class _Kept:
    """A signal's answers for topics in their order; `numbers` are those of documents, for all signals together."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._documents = array("i")
        self._scores = array("d")
        self._ends = array("q", [0])
        self._are_hits: list[bool] = []

    def add(self, answer: Answer) -> None:
        """Keep what the signal says of the next topic."""
        numbers = self._numbers
        if isinstance(answer, Hits):
            documents, scores = answer.document_ids, answer.scores
        else:
            documents, scores = tuple(answer), tuple(answer.values())
        self._documents.extend([numbers.setdefault(one, len(numbers)) for one in documents])
        self._scores.extend(scores)
        self._ends.append(len(self._documents))
        self._are_hits.append(isinstance(answer, Hits))

    def answers(self) -> Iterator[Answer]:
        """What the signal said of each topic."""
        ids = list(self._numbers)
        for place, are_hits in enumerate(self._are_hits):
            start, end = self._ends[place], self._ends[place + 1]
            documents = [ids[number] for number in self._documents[start:end]]
            scores = self._scores[start:end].tolist()
            yield Hits(documents, scores) if are_hits else dict(zip(documents, scores, strict=True))


class _Watched(SignalScorer):
    """A signal whose `seconds` are counted without those of others that it draws answers from.

    `inner` is what all signals of the recipe have taken so far.
    """

    def __init__(self, scorer: SignalScorer, inner: WorkTime) -> None:
        self.seconds = WorkTime()
        self._scorer = scorer
        self._inner = inner

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        answers = self._scorer.answers(asked, advance)
        while True:
            started, inner = WorkTime.now(), replace(self._inner)
            answer = next(answers, None)
            took = WorkTime.now() - started
            self.seconds += took - (self._inner - inner)
            self._inner.cpu, self._inner.clock = inner.cpu + took.cpu, inner.clock + took.clock
            if answer is None:
                return
            yield answer

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        return self._scorer.explain(asked, document_id)


class _Known(SignalScorer):
    """A signal that says what it said before."""

    def __init__(self, scorer: SignalScorer, kept: _Kept) -> None:
        self._scorer = scorer
        self._kept = kept

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:  # noqa: ARG002  # they are all there
        return self._kept.answers()

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        return self._scorer.explain(asked, document_id)


class _WatchedRanker(Ranker):
    """A recipe whose signals are asked while it is seen what each takes; the answers of some are `known` already."""

    def __init__(self, recipe: Recipe, inputs: Inputs, known: Sequence[_Kept | None]) -> None:
        super().__init__(recipe, inputs)
        inner = WorkTime()
        self.watched = [_Watched(scorer, inner) for scorer in self._scorers]
        self._scorers = [
            watched if kept is None else _Known(watched, kept)
            for watched, kept in zip(self.watched, known, strict=True)
        ]

    @property
    def fusion(self) -> Fusion:
        """What fuses the signals, with its model if it has one."""
        return self._fusion


class SignalAnswers:
    """The answers of each signal of a recipe for some topics, and `seconds`, what each signal took to give them.

    With `before`, of the same topics and depth, only the signals at the places `again` are asked, and those that are
    told what these rank highest; the others say what they said before.

    Raises:
        as `Ranker.rank` does.
    """

    def __init__(
        self,
        recipe: Recipe,
        inputs: Inputs,
        topics: Sequence[Topic],
        depth: int,
        advance: Advance = no_progress,
        before: SignalAnswers | None = None,
        again: Collection[int] = (),
    ) -> None:
        self.recipe = recipe
        self.topics = topics
        self._inputs = inputs
        self._depth = depth
        self._numbers: dict[str, int] = {} if before is None else before._numbers
        known: list[_Kept | None] = [None] * len(recipe.signals)
        if before is not None:
            new = dependent_signals(recipe.signals, again)
            known = [None if place in new else kept for place, kept in enumerate(before._kept)]
        ranker = _WatchedRanker(recipe, inputs, known)
        self._kept: list[_Kept] = [_Kept(self._numbers) if kept is None else kept for kept in known]
        asked = [place for place, kept in enumerate(known) if kept is None]
        for answers in ranker.answers(topics, depth, advance):
            for place in asked:
                self._kept[place].add(answers[place])
        self._fusion = ranker.fusion
        self.seconds: list[WorkTime] = [
            ranker.watched[place].seconds if before is None or known[place] is None else before.seconds[place]
            for place in range(len(recipe.signals))
        ]

    def run(
        self, tag: str, only: Sequence[int] = (), fusion: Fusion | None = None, *, whole: bool = False
    ) -> tuple[Run, WorkTime]:
        """The rankings by the signals at these places, by all without any, and what it took to fuse them.

        By all signals it is what `Ranker.rank` makes. `fusion` fuses them in place of the recipe's own; one that is
        learned is trained for the signals that are left. With `whole` documents that other signals alone speak for
        follow in the order of their ids, as far as the depth goes.
        """
        places = list(only) or list(range(len(self._kept)))
        fusing = self._fusing(places, fusion)
        seconds = WorkTime()
        rankings = []
        every = zip(*(kept.answers() for kept in self._kept), strict=True)
        for topic, answers in zip(self.topics, every, strict=True):
            with seconds.taken():
                hits = self._hits(topic, answers, places, fusing)
            if whole and len(hits) < self._depth:
                there = self._hits(topic, answers, range(len(answers)), self._fusion)
                hits = _completed(hits, there.document_ids, self._depth)
            rankings.append(Ranking(topic.id, hits))
        return Run(tag, tuple(rankings)), seconds

    def _fusing(self, places: Sequence[int], fusion: Fusion | None) -> Fusion:
        """What fuses the signals at these places."""
        if fusion is not None:
            return fusion
        if len(places) in (1, len(self._kept)):
            return self._fusion
        recipe = replace(self.recipe, signals=tuple(self.recipe.signals[place] for place in places))
        names = [signal.name for signal in recipe.signals]
        return recipe.fusion.ready(names, lambda: self._inputs.fusion(recipe))

    def _hits(self, topic: Topic, answers: Sequence[Answer], places: Sequence[int], fusion: Fusion) -> Hits:
        """The ranking of a topic by the signals at these places; what one says alone is ranked as it is."""
        itself = topic.id if self._inputs.topics_are_documents else None
        if len(places) == 1:
            return as_hits(answers[places[0]], self._depth, itself)[: self._depth]
        weighted = [(self.recipe.signals[place].weight, answers[place]) for place in places]
        return ranked(fusion.fused(weighted), self._depth, itself)


def _completed(hits: Hits, documents: Iterable[str], depth: int) -> Hits:
    """Hits with those of the documents behind them that they lack, by the bytes of their ids, as far as the depth."""
    known = set(hits.document_ids)
    further = sorted((one for one in documents if one not in known), key=str.encode)[: depth - len(hits)]
    last = min(0.0, hits.scores[-1] - 1.0) if hits else 0.0
    return Hits((*hits.document_ids, *further), (*hits.scores, *[last] * len(further)))


def learned_signals(signals: Sequence[Signal]) -> list[int]:
    """The places of the signals whose answers change with what is solved."""
    return [place for place, signal in enumerate(signals) if signal.needs - FIXED]


def depends_on_others(signal: Signal) -> bool:
    """Whether a signal is told what others rank highest, so that it can't be the first of a recipe."""
    return bool(signal.needs & {Need.candidates, Need.leaders})


def dependencies(signals: Sequence[Signal], place: int) -> range:
    """The places of the signals that a signal is told of, what they rank highest."""
    if Need.leaders in signals[place].needs:
        return range(place)
    return range(1 if place and depends_on_others(signals[place]) else 0)


def dependent_signals(signals: Sequence[Signal], again: Collection[int]) -> set[int]:
    """The places of these signals, and of those that are told what they rank highest."""
    found = set(again)
    for place in range(len(signals)):
        if found.intersection(dependencies(signals, place)):
            found.add(place)
    return found
