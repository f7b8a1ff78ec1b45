"""What each signal of a recipe says of topics, asked once and kept, so that it can be fused in many ways.

Signals answer as they do in the recipe: one that is told what others rank highest is told the same, whether these count
in the end or not. So a ranking by some of the signals costs a fusion and not a search. A document that a signal speaks
for takes 12 bytes.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from searchapp.engines.base import Explanation
from searchapp.model import Hits, Ranking, Run, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.fusion import Fusion
from searchapp.ranking.rank import Ranker, as_hits
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Answer, Asked, Inputs, Need, Scorer, Signal, ranked

FIXED = frozenset({Need.texts, Need.candidates, Need.leaders})
"""What a signal may need whose answers are the same whichever topics are solved, if those are that it is told of."""


@dataclass(slots=True)
class Seconds:
    """What work has taken: `cpu` of this process and of those that it has seen end, and `clock` by the clock."""

    cpu: float = 0.0
    clock: float = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Add what is taken inside."""
        started = Seconds.now()
        try:
            yield
        finally:
            took = Seconds.now() - started
            self.cpu, self.clock = self.cpu + took.cpu, self.clock + took.clock

    @classmethod
    def now(cls) -> Seconds:
        """What this process has taken so far."""
        used = os.times()
        return cls(time.process_time() + used.children_user + used.children_system, time.perf_counter())

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.cpu + other.cpu, self.clock + other.clock)

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.cpu - other.cpu, self.clock - other.clock)


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


class _Watched(Scorer):
    """A signal whose `seconds` are counted without those of others that it draws answers from.

    `inner` is what all signals of the recipe have taken so far.
    """

    def __init__(self, scorer: Scorer, inner: Seconds) -> None:
        self.seconds = Seconds()
        self._scorer = scorer
        self._inner = inner

    def answers(self, asked: Asked, advance: Advance) -> Iterator[Answer]:
        answers = self._scorer.answers(asked, advance)
        while True:
            started, inner = Seconds.now(), replace(self._inner)
            answer = next(answers, None)
            took = Seconds.now() - started
            self.seconds += took - (self._inner - inner)
            self._inner.cpu, self._inner.clock = inner.cpu + took.cpu, inner.clock + took.clock
            if answer is None:
                return
            yield answer

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        return self._scorer.explain(asked, document_id)


class _Known(Scorer):
    """A signal that says what it said before."""

    def __init__(self, scorer: Scorer, kept: _Kept) -> None:
        self._scorer = scorer
        self._kept = kept

    def answers(self, asked: Asked, advance: Advance) -> Iterator[Answer]:  # noqa: ARG002  # they are all there
        return self._kept.answers()

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        return self._scorer.explain(asked, document_id)


class _WatchedRanker(Ranker):
    """A recipe whose signals are asked while it is seen what each takes; the answers of some are `known` already."""

    def __init__(self, recipe: Recipe, inputs: Inputs, known: Sequence[_Kept | None]) -> None:
        super().__init__(recipe, inputs)
        inner = Seconds()
        self.watched = [_Watched(scorer, inner) for scorer in self._scorers]
        self._scorers = [
            watched if kept is None else _Known(watched, kept)
            for watched, kept in zip(self.watched, known, strict=True)
        ]

    @property
    def fusion(self) -> Fusion:
        """What fuses the signals, with its model if it has one."""
        return self._fusion


class Apart:
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
        before: Apart | None = None,
        again: Collection[int] = (),
    ) -> None:
        self.recipe = recipe
        self.topics = topics
        self._inputs = inputs
        self._depth = depth
        self._numbers: dict[str, int] = {} if before is None else before._numbers
        known: list[_Kept | None] = [None] * len(recipe.signals)
        if before is not None:
            new = depending(recipe.signals, again)
            known = [None if place in new else kept for place, kept in enumerate(before._kept)]
        ranker = _WatchedRanker(recipe, inputs, known)
        self._kept: list[_Kept] = [_Kept(self._numbers) if kept is None else kept for kept in known]
        asked = [place for place, kept in enumerate(known) if kept is None]
        for answers in ranker.answers(topics, depth, advance):
            for place in asked:
                self._kept[place].add(answers[place])
        self._fusion = ranker.fusion
        self.seconds: list[Seconds] = [
            ranker.watched[place].seconds if before is None or known[place] is None else before.seconds[place]
            for place in range(len(recipe.signals))
        ]

    def run(
        self, tag: str, only: Sequence[int] = (), fusion: Fusion | None = None, *, whole: bool = False
    ) -> tuple[Run, Seconds]:
        """The rankings by the signals at these places, by all without any, and what it took to fuse them.

        By all signals it is what `Ranker.rank` makes. `fusion` fuses them in place of the recipe's own; one that is
        learned is trained for the signals that are left. With `whole` documents that other signals alone speak for
        follow in the order of their ids, as far as the depth goes.
        """
        places = list(only) or list(range(len(self._kept)))
        fusing = self._fusing(places, fusion)
        seconds = Seconds()
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


def learning(signals: Sequence[Signal]) -> list[int]:
    """The places of the signals whose answers change with what is solved."""
    return [place for place, signal in enumerate(signals) if signal.needs - FIXED]


def is_told(signal: Signal) -> bool:
    """Whether a signal is told what others rank highest, so that it can't be the first of a recipe."""
    return bool(signal.needs & {Need.candidates, Need.leaders})


def told_by(signals: Sequence[Signal], place: int) -> range:
    """The places of the signals that a signal is told of, what they rank highest."""
    if Need.leaders in signals[place].needs:
        return range(place)
    return range(1 if place and is_told(signals[place]) else 0)


def depending(signals: Sequence[Signal], again: Collection[int]) -> set[int]:
    """The places of these signals, and of those that are told what they rank highest."""
    found = set(again)
    for place in range(len(signals)):
        if found.intersection(told_by(signals, place)):
            found.add(place)
    return found
