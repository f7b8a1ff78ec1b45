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
from dataclasses import replace
from typing import Any

from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Ranking, Run, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.fusion import FUSION, Fusion, ScoreParts, Weighted
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import (
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
        self.fusion = _ready_fusion(recipe, inputs)
        self._retrievers = [scorer for scorer in self.scorers if isinstance(scorer, Retriever)]
        self._first_equal_indexes = [_first_equal(self.scorers, index) for index in range(len(self.scorers))]
        self._shared: dict[int, Iterator[Hits]] = {}
        self._topics_are_documents = inputs.topics_are_documents

    def rank(self, topics: Sequence[Topic], depth: int, tag: str, advance: Advance = no_progress) -> Run:
        """Return the first `depth` documents for every topic, in the order of the topics.

        Raises:
            DataError: the template retrieves a topic for itself, although topics are documents.
            EngineError: the engine failed.
        """
        answers_of_topics = self.answers(topics, depth, advance)
        rankings = tuple(
            Ranking(topic.id, self._hits(topic, answers, depth))
            for topic, answers in zip(topics, answers_of_topics, strict=True)
        )
        return Run(tag, rankings)

    def rank_topic(self, topic: Topic, depth: int) -> RankedTopic:
        """Rank one topic and keep the answers that explain its scores; raises the errors of `rank`."""
        (answers,) = self.answers([topic], depth)
        return RankedTopic(topic, depth, tuple(answers), self._hits(topic, answers, depth))

    def explain(self, ranked_topic: RankedTopic, document_id: str) -> Explanation | None:
        """Explain a document's score by the signals' scores before weighting; None without a score."""
        requests = self._requests(ranked_topic)
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
                description = f"{signal.name}, weight {signal.weight:g}: {part.description}"
                details.append(Explanation(part.value, description, part.details))
        description, fusion_details = self.fusion.explained(weighted, document_id)
        return Explanation(score, description, (*details, *fusion_details))

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
                self.recipe.signals, self.scorers, parts.signals, self._requests(ranked_topic), strict=True
            )
        ]
        return [*shares, SignalShare(self.fusion.method, 1.0, parts.other)] if parts.other else shares

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
        hits = _fused_hits(self.fusion, self._weighted(answers), depth, self._own_document(topic))
        if self._topics_are_documents and topic.id in hits.document_ids:
            raise DataError(
                f"{self.recipe.query.template.name} retrieves the topic {topic.id} as a document for "
                "itself: exclude it in the template with must_not"
            )
        return hits

    def _leaders(self, topic: Topic, answers: Sequence[Answer], depth: int) -> Hits:
        """Return the first documents of the preceding signals, fused without a model."""
        return _fused_hits(self.recipe.fusion, self._weighted(answers), depth, self._own_document(topic))

    def _own_document(self, topic: Topic) -> str | None:
        return topic.id if self._topics_are_documents else None

    def _weighted(self, answers: Sequence[Answer]) -> Weighted:
        return _weighted(self.recipe.signals, answers)

    def _requests(self, ranked_topic: RankedTopic) -> list[SignalRequest]:
        topic, answers = ranked_topic.topic, ranked_topic.answers
        candidates = [as_hits(answers[0], len(answers[0]))] if self.recipe.needs(Need.candidates) else []
        request = SignalRequest([topic], ranked_topic.depth, self.fusion.normalization, candidates)
        return [
            replace(request, leaders=[self._leaders(topic, answers[:index], signal.leaders)])
            if Need.leaders in signal.needs
            else request
            for index, signal in enumerate(self.recipe.signals)
        ]

    def _answers(self, topics: Sequence[Topic], depth: int, advance: Advance) -> list[Iterator[Answer]]:
        self.fusion.require_unseen(topics)
        last = len(self.scorers) - 1
        request = SignalRequest(
            topics, max(depth, self.fusion.reach) if last else depth, self.fusion.normalization
        )
        # One topic on a server takes one request, if no signal depends on another one's answers. Many topics go in
        # batches, whose number would be the same.
        is_distant = not any(retriever.searched.is_local for retriever in self._retrievers)
        if len(topics) == 1 and last and len(self._retrievers) == len(self.scorers) and is_distant:
            results = retrieve_in_one_request(self._retrievers, request)
            advance(1)
            return [iter([answer]) for answer in results]
        answers: list[Iterator[Answer]] = []
        for index, signal in enumerate(self.recipe.signals):
            signal_request = request
            if Need.leaders in signal.needs:
                # Consumed together with the answers, so that memory contains only a few topics.
                pairs = [itertools.tee(answers_of_signal) for answers_of_signal in answers]
                answers = [remaining for remaining, _ in pairs]
                preceding = zip(*(copy for _, copy in pairs), strict=True)
                leaders = map(self._leaders, topics, preceding, itertools.repeat(signal.leaders))
                signal_request = replace(request, leaders=leaders)
            if index == 0 and self.recipe.needs(Need.candidates):
                first = list(self.scorers[0].answers(request, no_progress))
                request = replace(request, candidates=[as_hits(answer, len(answer)) for answer in first])
                answers.append(iter(first))
            else:
                answers.append(
                    self._answers_of(index, signal_request, advance if index == last else no_progress)
                )
        self._shared.clear()  # the iterators keep the hits
        return answers

    def _answers_of(self, index: int, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        """Return the answers of the signal at a position; signals with the same searches share the hits."""
        scorer, shared_index = self.scorers[index], self._first_equal_indexes[index]
        if self._first_equal_indexes.count(shared_index) == 1 or not isinstance(scorer, Retriever):
            return scorer.answers(request, advance)
        if shared_index not in self._shared:
            self._shared[shared_index] = scorer.retrieved(request, no_progress)
        hits, self._shared[shared_index] = itertools.tee(self._shared[shared_index])
        return map(scorer.answer, request.topics, hits, itertools.repeat(request))


def _ready_fusion(recipe: Recipe, inputs: Inputs) -> Fusion:
    names = [signal.name for signal in recipe.signals]
    return recipe.fusion.ready(names, lambda: inputs.fusion(recipe)) if len(names) > 1 else recipe.fusion


def _first_equal(scorers: Sequence[SignalScorer], index: int) -> int:
    """Return the position of the first scorer with the same searches as the scorer at a position."""
    scorer = scorers[index]
    if isinstance(scorer, Retriever):
        for earlier_index, earlier in enumerate(scorers[:index]):
            if isinstance(earlier, Retriever) and earlier.asks_as(scorer):
                return earlier_index
    return index


def as_hits(answer: Answer, depth: int, without: str | None = None) -> Hits:
    """Return an engine's hits unchanged, and scores as a ranking `without` a document."""
    return answer if isinstance(answer, Hits) else ranked(answer, depth, without)


def _weighted(signals: Sequence[Signal], answers: Sequence[Answer]) -> Weighted:
    """Return the answers of the first signals with their weights, which are 1 if all are 0."""
    weights = [signal.weight for signal, _ in zip(signals, answers, strict=False)]
    return list(zip(weights if any(weights) else itertools.repeat(1.0), answers, strict=False))


def _fused_hits(fusion: Fusion, weighted: Weighted, depth: int, own_document: str | None) -> Hits:
    if len(weighted) == 1:
        hits = as_hits(weighted[0][1], depth, own_document)
        return hits if len(hits) <= depth else hits[:depth]
    return ranked(fusion.fused(weighted), depth, own_document)


# Needs of signals that do not depend on training topics, unless a preceding signal does.
UNTRAINED_NEEDS = frozenset({Need.texts, Need.candidates, Need.leaders})


@dataclass(slots=True)
class WorkTime:
    """Seconds of work."""

    cpu: float = 0.0  # of this process and its ended children
    clock: float = 0.0  # wall-clock time

    @contextmanager
    def measure(self) -> Iterator[None]:
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
        for index, are_hits in enumerate(self._are_hits):
            start, end = self._ends[index], self._ends[index + 1]
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

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        if self._stored is not None:
            yield from self._stored.answers()
            return
        answers = self._scorer.answers(request, advance)
        while True:
            started, total_before = WorkTime.now(), replace(self._total)
            answer = next(answers, None)
            taken = WorkTime.now() - started
            self.seconds.add(taken - (self._total - total_before))
            self._total.cpu, self._total.clock = (
                total_before.cpu + taken.cpu,
                total_before.clock + taken.clock,
            )
            if answer is None:
                return
            yield answer

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        return self._scorer.explain(request, document_id)


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
        indexes = range(len(recipe.signals))
        new_indexes = set(indexes) if before is None else dependent_signals(recipe.signals, again)
        self._stored: list[_StoredAnswers] = [
            _StoredAnswers(numbers) if before is None or index in new_indexes else before._stored[index]
            for index in indexes
        ]
        ranker = Ranker(recipe, inputs)
        total = WorkTime()
        timed = [
            _TimedScorer(scorer, total, None if index in new_indexes else self._stored[index])
            for index, scorer in enumerate(ranker.scorers)
        ]
        ranker.scorers = [*timed]
        for answers in ranker.answers(topics, depth, advance):
            for index in new_indexes:
                self._stored[index].add(answers[index])
        self._fusion = ranker.fusion
        self.seconds: list[WorkTime] = [
            timed[index].seconds if before is None or index in new_indexes else before.seconds[index]
            for index in indexes
        ]

    def run(
        self, tag: str, only: Sequence[int] = (), fusion: Fusion | None = None, *, whole: bool = False
    ) -> tuple[Run, WorkTime]:
        """Return the ranking by the signals at some positions (all by default), and the time of the fusion.

        `fusion` replaces the recipe's; without it, a learned fusion is trained for the remaining signals. With
        `whole`, documents of the other signals follow in the order of their ids, up to the depth.
        """
        indexes = list(only) or list(range(len(self._stored)))
        if fusion is None and len(indexes) in (1, len(self._stored)):
            fusion = self._fusion
        elif fusion is None:
            signals = tuple(self.recipe.signals[index] for index in indexes)
            fusion = _ready_fusion(replace(self.recipe, signals=signals), self._inputs)
        seconds = WorkTime()
        rankings = []
        answers_of_topics = zip(*(stored.answers() for stored in self._stored), strict=True)
        for topic, answers in zip(self.topics, answers_of_topics, strict=True):
            with seconds.measure():
                hits = self._hits(topic, answers, indexes, fusion)
            if whole and len(hits) < self._depth:
                all_hits = self._hits(topic, answers, range(len(answers)), self._fusion)
                hits = _completed(hits, all_hits.document_ids, self._depth)
            rankings.append(Ranking(topic.id, hits))
        return Run(tag, tuple(rankings)), seconds

    def _hits(self, topic: Topic, answers: Sequence[Answer], indexes: Sequence[int], fusion: Fusion) -> Hits:
        signals = [self.recipe.signals[index] for index in indexes]
        weighted = _weighted(signals, [answers[index] for index in indexes])
        own_document = topic.id if self._inputs.topics_are_documents else None
        return _fused_hits(fusion, weighted, self._depth, own_document)


def _completed(hits: Hits, documents: Iterable[str], depth: int) -> Hits:
    """Return hits followed by missing documents up to the depth, by the bytes of their ids."""
    ranked_documents = set(hits.document_ids)
    missing = sorted((document for document in documents if document not in ranked_documents), key=str.encode)
    missing = missing[: depth - len(hits)]
    last = min(0.0, hits.scores[-1] - 1.0) if hits else 0.0
    return Hits((*hits.document_ids, *missing), (*hits.scores, *[last] * len(missing)))


def learned_signals(signals: Sequence[Signal]) -> list[int]:
    """Return the positions of the signals that depend on training topics."""
    return [index for index, signal in enumerate(signals) if signal.needs - UNTRAINED_NEEDS]


def depends_on_others(signal: Signal) -> bool:
    """Return whether a signal needs the first documents of others, and so can't be a recipe's first signal."""
    return bool(signal.needs & {Need.candidates, Need.leaders})


def dependencies(signals: Sequence[Signal], index: int) -> range:
    """Return the positions of the signals whose first documents a signal needs."""
    if Need.leaders in signals[index].needs:
        return range(index)
    return range(1 if index and depends_on_others(signals[index]) else 0)


def dependent_signals(signals: Sequence[Signal], again: Collection[int]) -> set[int]:
    """Return the positions `again`, and those of signals that need their first documents."""
    indexes = set(again)
    for index in range(len(signals)):
        if indexes.intersection(dependencies(signals, index)):
            indexes.add(index)
    return indexes
