"""The ranker: runs a recipe's signals on an index and fuses them into one ranking for each topic.

`SignalAnswers` runs each signal once and stores its answers, 12 bytes for each document, so that a ranking by some of
the signals costs a fusion and no search.
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
    """A signal's part of a document's score; `value` is None if the signal has no score."""

    signal: str
    weight: float
    value: float | None
    votes: tuple[Vote, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedTopic:
    """A topic's hits, with the answers of the signals for explanations."""

    topic: Topic
    depth: int
    answers: tuple[Answer, ...]
    hits: Hits


class Ranker:
    """A recipe with prepared signals, which ranks topics.

    Raises:
        DataError: an input of a signal is missing or invalid.
        EngineError: the engine failed.
    """

    def __init__(self, recipe: Recipe, inputs: Inputs) -> None:
        self.recipe = recipe
        self.scorers = [signal.prepare(inputs) for signal in recipe.signals]
        self.fusion = _ready(recipe, inputs)
        self._retrievers = [scorer for scorer in self.scorers if isinstance(scorer, Retriever)]
        self._shared_places = [_first_equal(self.scorers, place) for place in range(len(self.scorers))]
        self._shared: dict[int, Iterator[Hits]] = {}
        self._topics_are_documents = inputs.topics_are_documents

    def rank(self, topics: Sequence[Topic], depth: int, tag: str, advance: Advance = no_progress) -> Run:
        """Return the first `depth` documents for every topic, in the order of the topics.

        Raises:
            DataError: the template retrieves a topic for itself, although topics are documents.
            EngineError: the engine failed.
        """
        every = self.answers(topics, depth, advance)
        rankings = tuple(
            Ranking(topic.id, self._hits(topic, answers, depth))
            for topic, answers in zip(topics, every, strict=True)
        )
        return Run(tag, rankings)

    def rank_topic(self, topic: Topic, depth: int) -> RankedTopic:
        """Rank one topic and keep the answers that explain its scores; raises the errors of `rank`."""
        (answers,) = self.answers([topic], depth)
        return RankedTopic(topic, depth, tuple(answers), self._hits(topic, answers, depth))

    def explain(self, ranked_topic: RankedTopic, document_id: str) -> Explanation | None:
        """Explain a document's score by the signals' scores before weighting; None without a score."""
        requests = self._requests_of(ranked_topic)
        if len(self.scorers) == 1:
            return self.scorers[0].explain(requests[0], document_id)
        weighted = self._weighted(ranked_topic.answers)
        score = self.fusion.fused(weighted).get(document_id)
        if score is None:
            return None
        details = []
        for signal, scorer, request in zip(self.recipe.signals, self.scorers, requests, strict=True):
            part = scorer.explain(request, document_id)
            if part is not None:
                said = f"{signal.name}, weight {signal.weight:g}: {part.description}"
                details.append(Explanation(part.value, said, part.details))
        said, of_fusion = self.fusion.explained(weighted, document_id)
        return Explanation(score, said, (*details, *of_fusion))

    def shares(self, ranked_topic: RankedTopic, document_id: str) -> list[SignalShare]:
        """Return the part of each signal in a document's score, with its votes; the parts add up to the score."""
        answers = ranked_topic.answers
        if len(answers) == 1:
            parts = ScoreParts([dict(answers[0]).get(document_id)])
        else:
            parts = self.fusion.given(self._weighted(answers), document_id)
        shares = [
            SignalShare(signal.name, signal.weight, value, tuple(scorer.votes(request, document_id)))
            for signal, scorer, value, request in zip(
                self.recipe.signals, self.scorers, parts.signals, self._requests_of(ranked_topic), strict=True
            )
        ]
        return [*shares, SignalShare(self.fusion.method, 1.0, parts.rest)] if parts.rest else shares

    def answers(
        self, topics: Sequence[Topic], depth: int, advance: Advance = no_progress
    ) -> Iterator[Sequence[Answer]]:
        """Yield the answers of all signals to each topic, in the order of the topics.

        Raises:
            EngineError: the engine failed.
        """
        return zip(*self._answers(topics, depth, advance), strict=True)

    def models(self) -> dict[str, dict[str, Any]]:
        """Return the record of each model in a run, by the name of the signal or `FUSION`."""
        models = {
            signal.name: scorer.model()
            for signal, scorer in zip(self.recipe.signals, self.scorers, strict=True)
        }
        return {name: model for name, model in (models | {FUSION: self.fusion.model()}).items() if model}

    def _hits(self, topic: Topic, answers: Sequence[Answer], depth: int) -> Hits:
        """Return the ranking that the answers make.

        Raises:
            DataError: it contains the topic itself, although topics are documents.
        """
        hits = _fused_hits(self.fusion, self._weighted(answers), depth, self._itself(topic))
        if self._topics_are_documents and topic.id in hits.document_ids:
            raise DataError(
                f"{self.recipe.query.template.name} retrieves topic {topic.id} for itself: "
                "exclude it in the template with must_not"
            )
        return hits

    def _leaders(self, topic: Topic, answers: Sequence[Answer]) -> Hits:
        """Return the first documents of the preceding signals, fused without a model."""
        return _fused_hits(self.recipe.fusion, self._weighted(answers), LEADERS, self._itself(topic))

    def _itself(self, topic: Topic) -> str | None:
        return topic.id if self._topics_are_documents else None

    def _weighted(self, answers: Sequence[Answer]) -> Weighted:
        return [(signal.weight, answer) for signal, answer in zip(self.recipe.signals, answers, strict=False)]

    def _requests_of(self, ranked_topic: RankedTopic) -> list[SignalRequest]:
        topic, answers = ranked_topic.topic, ranked_topic.answers
        candidates = [as_hits(answers[0], len(answers[0]))] if self.recipe.needs(Need.candidates) else []
        request = SignalRequest([topic], ranked_topic.depth, self.fusion.normalization, candidates)
        return [
            replace(request, leaders=[self._leaders(topic, answers[:place])])
            if Need.leaders in signal.needs
            else request
            for place, signal in enumerate(self.recipe.signals)
        ]

    def _answers(self, topics: Sequence[Topic], depth: int, advance: Advance) -> list[Iterator[Answer]]:
        """Return the answers of each signal, as deep as the fusion needs."""
        self.fusion.require_unseen(topics)
        last = len(self.scorers) - 1
        request = SignalRequest(
            topics, max(depth, self.fusion.reach) if last else depth, self.fusion.normalization
        )
        # One topic on a server takes one request, if no signal depends on another one's answers. Many topics go in
        # batches, whose number would be the same.
        is_distant = not any(retriever.searched.is_at_hand for retriever in self._retrievers)
        if len(topics) == 1 and last and len(self._retrievers) == len(self.scorers) and is_distant:
            results = retrieve_in_one_request(self._retrievers, request)
            advance(1)
            return [iter([answer]) for answer in results]
        answers: list[Iterator[Answer]] = []
        for place, signal in enumerate(self.recipe.signals):
            of_signal = request
            if Need.leaders in signal.needs:
                # Consumed together with the answers, so that memory contains only a few topics.
                pairs = [itertools.tee(of_other) for of_other in answers]
                answers = [kept for kept, _ in pairs]
                before = zip(topics, zip(*(copy for _, copy in pairs), strict=True), strict=True)
                of_signal = replace(request, leaders=itertools.starmap(self._leaders, before))
            if place == 0 and self.recipe.needs(Need.candidates):
                first = list(self.scorers[0].answers(request, no_progress))
                request = replace(request, candidates=[as_hits(answer, len(answer)) for answer in first])
                answers.append(iter(first))
            else:
                answers.append(self._answers_of(place, of_signal, advance if place == last else no_progress))
        self._shared.clear()  # the iterators keep the hits
        return answers

    def _answers_of(self, place: int, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        """Return the answers of the signal at a position; signals with the same searches share the hits."""
        scorer, shared_place = self.scorers[place], self._shared_places[place]
        if self._shared_places.count(shared_place) == 1 or not isinstance(scorer, Retriever):
            return scorer.answers(request, advance)
        if shared_place not in self._shared:
            self._shared[shared_place] = scorer.retrieved(request, no_progress)
        hits, self._shared[shared_place] = itertools.tee(self._shared[shared_place])
        return map(scorer.answer, request.topics, hits, itertools.repeat(request))


def _ready(recipe: Recipe, inputs: Inputs) -> Fusion:
    names = [signal.name for signal in recipe.signals]
    return recipe.fusion.ready(names, lambda: inputs.fusion(recipe)) if len(names) > 1 else recipe.fusion


def _first_equal(scorers: Sequence[SignalScorer], place: int) -> int:
    """Return the position of the first scorer with the same searches as the scorer at a position."""
    scorer = scorers[place]
    if isinstance(scorer, Retriever):
        for other, earlier in enumerate(scorers[:place]):
            if isinstance(earlier, Retriever) and earlier.asks_as(scorer):
                return other
    return place


def as_hits(answer: Answer, depth: int, without: str | None = None) -> Hits:
    """Return an engine's hits unchanged, and scores as a ranking `without` a document."""
    return answer if isinstance(answer, Hits) else ranked(answer, depth, without)


def _fused_hits(fusion: Fusion, weighted: Weighted, depth: int, itself: str | None) -> Hits:
    """Return the fused ranking; that of a single signal is unchanged."""
    if len(weighted) == 1:
        hits = as_hits(weighted[0][1], depth, itself)
        return hits if len(hits) <= depth else hits[:depth]
    return ranked(fusion.fused(weighted), depth, itself)


# Needs of signals that do not depend on training topics, unless a preceding signal does.
FIXED = frozenset({Need.texts, Need.candidates, Need.leaders})


@dataclass(slots=True)
class WorkTime:
    """Seconds of work."""

    cpu: float = 0.0  # of this process and its ended children
    clock: float = 0.0  # wall-clock time

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Add the time of the block."""
        started = WorkTime.now()
        try:
            yield
        finally:
            self.add(WorkTime.now() - started)

    @classmethod
    def now(cls) -> WorkTime:
        used = os.times()
        return cls(time.process_time() + used.children_user + used.children_system, time.perf_counter())

    def add(self, other: WorkTime) -> None:
        self.cpu, self.clock = self.cpu + other.cpu, self.clock + other.clock

    def __add__(self, other: WorkTime) -> WorkTime:
        return WorkTime(self.cpu + other.cpu, self.clock + other.clock)

    def __sub__(self, other: WorkTime) -> WorkTime:
        return WorkTime(self.cpu - other.cpu, self.clock - other.clock)


class _StoredAnswers:
    """A signal's answers to topics in their order; all signals share the `numbers` of documents."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers: dict[str, int] = numbers
        self._documents = array("i")
        self._scores = array("d")
        self._ends = array("q", [0])
        self._are_hits: list[bool] = []

    def add(self, answer: Answer) -> None:
        numbers = self._numbers
        if isinstance(answer, Hits):
            documents, scores = answer.document_ids, answer.scores
        else:
            documents, scores = tuple(answer), tuple(answer.values())
        self._documents.extend([numbers.setdefault(document, len(numbers)) for document in documents])
        self._scores.extend(scores)
        self._ends.append(len(self._documents))
        self._are_hits.append(isinstance(answer, Hits))

    def answers(self) -> Iterator[Answer]:
        ids = list(self._numbers)
        for place, are_hits in enumerate(self._are_hits):
            start, end = self._ends[place], self._ends[place + 1]
            documents = [ids[number] for number in self._documents[start:end]]
            scores = self._scores[start:end].tolist()
            yield Hits(documents, scores) if are_hits else dict(zip(documents, scores, strict=True))


class _TimedScorer(SignalScorer):
    """A signal whose `seconds` exclude the time of other signals whose answers it draws."""

    def __init__(self, scorer: SignalScorer, total: WorkTime, stored: _StoredAnswers | None) -> None:
        self.seconds = WorkTime()
        self._scorer = scorer
        self._total = total  # of all signals of the recipe
        self._stored = stored  # answers of an earlier ranking, which replace the signal's

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        if self._stored is not None:
            yield from self._stored.answers()
            return
        answers = self._scorer.answers(asked, advance)
        while True:
            started, inner = WorkTime.now(), replace(self._total)
            answer = next(answers, None)
            taken = WorkTime.now() - started
            self.seconds.add(taken - (self._total - inner))
            self._total.cpu, self._total.clock = inner.cpu + taken.cpu, inner.clock + taken.clock
            if answer is None:
                return
            yield answer

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        return self._scorer.explain(asked, document_id)


class SignalAnswers:
    """The answers of a recipe's signals to topics, with the `seconds` of each signal; raises the errors of
    `Ranker.rank`.

    With the answers `before`, to the same topics and depth, only the signals at positions `again` run, and signals
    that depend on their first documents.
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
        numbers: dict[str, int] = {} if before is None else before._numbers
        self._numbers: dict[str, int] = numbers
        places = range(len(recipe.signals))
        new = set(places) if before is None else dependent_signals(recipe.signals, again)
        self._stored: list[_StoredAnswers] = [
            _StoredAnswers(numbers) if before is None or place in new else before._stored[place]
            for place in places
        ]
        ranker = Ranker(recipe, inputs)
        total = WorkTime()
        timed = [
            _TimedScorer(scorer, total, None if place in new else self._stored[place])
            for place, scorer in enumerate(ranker.scorers)
        ]
        ranker.scorers = [*timed]
        for answers in ranker.answers(topics, depth, advance):
            for place in new:
                self._stored[place].add(answers[place])
        self._fusion = ranker.fusion
        self.seconds: list[WorkTime] = [
            timed[place].seconds if before is None or place in new else before.seconds[place]
            for place in places
        ]

    def run(
        self, tag: str, only: Sequence[int] = (), fusion: Fusion | None = None, *, whole: bool = False
    ) -> tuple[Run, WorkTime]:
        """Return the ranking by the signals at some positions (all by default), and the time of the fusion.

        `fusion` replaces the recipe's; without it, a learned fusion is trained for the remaining signals. With
        `whole`, documents of the other signals follow in the order of their ids, up to the depth.
        """
        places = list(only) or list(range(len(self._stored)))
        if fusion is None and len(places) in (1, len(self._stored)):
            fusion = self._fusion
        elif fusion is None:
            signals = tuple(self.recipe.signals[place] for place in places)
            fusion = _ready(replace(self.recipe, signals=signals), self._inputs)
        seconds = WorkTime()
        rankings = []
        every = zip(*(stored.answers() for stored in self._stored), strict=True)
        for topic, answers in zip(self.topics, every, strict=True):
            with seconds.taken():
                hits = self._hits(topic, answers, places, fusion)
            if whole and len(hits) < self._depth:
                all_hits = self._hits(topic, answers, range(len(answers)), self._fusion)
                hits = _completed(hits, all_hits.document_ids, self._depth)
            rankings.append(Ranking(topic.id, hits))
        return Run(tag, tuple(rankings)), seconds

    def _hits(self, topic: Topic, answers: Sequence[Answer], places: Sequence[int], fusion: Fusion) -> Hits:
        weighted = [(self.recipe.signals[place].weight, answers[place]) for place in places]
        itself = topic.id if self._inputs.topics_are_documents else None
        return _fused_hits(fusion, weighted, self._depth, itself)


def _completed(hits: Hits, documents: Iterable[str], depth: int) -> Hits:
    """Return hits followed by missing documents up to the depth, by the bytes of their ids."""
    known = set(hits.document_ids)
    further = sorted((document for document in documents if document not in known), key=str.encode)
    further = further[: depth - len(hits)]
    last = min(0.0, hits.scores[-1] - 1.0) if hits else 0.0
    return Hits((*hits.document_ids, *further), (*hits.scores, *[last] * len(further)))


def learned_signals(signals: Sequence[Signal]) -> list[int]:
    """Return the positions of the signals that depend on training topics."""
    return [place for place, signal in enumerate(signals) if signal.needs - FIXED]


def depends_on_others(signal: Signal) -> bool:
    """Return whether a signal needs the first documents of others, and so can't be a recipe's first signal."""
    return bool(signal.needs & {Need.candidates, Need.leaders})


def dependencies(signals: Sequence[Signal], place: int) -> range:
    """Return the positions of the signals whose first documents a signal needs."""
    if Need.leaders in signals[place].needs:
        return range(place)
    return range(1 if place and depends_on_others(signals[place]) else 0)


def dependent_signals(signals: Sequence[Signal], again: Collection[int]) -> set[int]:
    """Return the positions `again`, and those of signals that need their first documents."""
    places = set(again)
    for place in range(len(signals)):
        if places.intersection(dependencies(signals, place)):
            places.add(place)
    return places
