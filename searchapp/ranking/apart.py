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

from searchapp.model import Hits, Ranking, Run, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking.rank import Ranker, as_hits
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Answer, Asked, Inputs, Need, Signal, ranked

LEARNS = frozenset({Need.examples, Need.labels, Need.model})
"""What a signal needs whose answers depend on solved topics."""


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
            self.add(Seconds.now(), started)

    @classmethod
    def now(cls) -> Seconds:
        """What this process has taken so far."""
        used = os.times()
        return cls(time.process_time() + used.children_user + used.children_system, time.perf_counter())

    def add(self, end: Seconds, start: Seconds) -> None:
        """Add what lies between two moments."""
        self.cpu += end.cpu - start.cpu
        self.clock += end.clock - start.clock

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.cpu + other.cpu, self.clock + other.clock)


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


class _Watched(Ranker):
    """A recipe whose signals are asked while it is seen what each takes; the answers of some are `known` already."""

    def __init__(self, recipe: Recipe, inputs: Inputs, known: Sequence[_Kept | None]) -> None:
        super().__init__(recipe, inputs)
        self.seconds = [Seconds() for _ in recipe.signals]
        self._known = known
        self._inner = Seconds()
        """What was taken by all signals, so that one that asks others does not count what these take."""

    def every(self, topics: Sequence[Topic], depth: int, advance: Advance) -> Iterator[Sequence[Answer]]:
        """What each signal says of each topic."""
        return zip(*self._answers(topics, depth, advance), strict=True)

    def _said(self, place: int, asked: Asked, advance: Advance) -> Iterator[Answer]:
        known = self._known[place]
        if known is not None:
            return known.answers()
        return self._watched(place, super()._said(place, asked, advance))

    def _watched(self, place: int, answers: Iterator[Answer]) -> Iterator[Answer]:
        while True:
            started, inner = Seconds.now(), self._inner
            answer = next(answers, None)
            ended = Seconds.now()
            took = Seconds()
            took.add(ended, started)
            of_others = Seconds()
            of_others.add(self._inner, inner)
            self.seconds[place].add(took, of_others)
            self._inner = inner + took
            if answer is None:
                return
            yield answer


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
        ranker = _Watched(recipe, inputs, known)
        self._kept: list[_Kept] = [_Kept(self._numbers) if kept is None else kept for kept in known]
        asked = [place for place, kept in enumerate(known) if kept is None]
        for answers in ranker.every(topics, depth, advance):
            for place in asked:
                self._kept[place].add(answers[place])
        self.seconds: list[Seconds] = [
            ranker.seconds[place] if before is None or known[place] is None else before.seconds[place]
            for place in range(len(recipe.signals))
        ]

    def run(
        self, tag: str, only: Sequence[int] = (), recipe: Recipe | None = None, *, whole: bool = False
    ) -> tuple[Run, Seconds]:
        """The rankings by the signals at these places, by all without any, and what it took to fuse them.

        By all signals it is what `Ranker.rank` makes. `recipe` fuses them, by default that of the signals, which has no
        others then. With `whole` documents that other signals alone speak for follow in the order of their ids, as far
        as the depth goes.
        """
        places = list(only) or list(range(len(self._kept)))
        fused_by = recipe or self.recipe
        fuser = Fuser(replace(fused_by, signals=tuple(fused_by.signals[one] for one in places)), self._inputs)
        of_all = Fuser(self.recipe, self._inputs) if whole else None
        seconds = Seconds()
        rankings = []
        every = zip(*(kept.answers() for kept in self._kept), strict=True)
        for topic, answers in zip(self.topics, every, strict=True):
            with seconds.taken():
                hits = fuser.hits(topic, [answers[place] for place in places], self._depth)
            if of_all is not None and len(hits) < self._depth:
                hits = _completed(hits, of_all.hits(topic, answers, self._depth).document_ids, self._depth)
            rankings.append(Ranking(topic.id, hits))
        return Run(tag, tuple(rankings)), seconds


class Fuser:
    """Makes one ranking of what the signals of a recipe have said."""

    def __init__(self, recipe: Recipe, inputs: Inputs) -> None:
        self._recipe = recipe
        self._topics_are_documents = inputs.topics_are_documents
        self._fusion = recipe.fusion

    def hits(self, topic: Topic, answers: Sequence[Answer], depth: int) -> Hits:
        """The ranking of a topic by what each signal says of it; what one says alone is ranked as it is."""
        itself = topic.id if self._topics_are_documents else None
        if len(answers) == 1:
            return as_hits(answers[0], depth, itself)
        signals = self._recipe.signals
        weighted = [(signal.weight, answer) for signal, answer in zip(signals, answers, strict=True)]
        return ranked(self._fusion.fused(weighted), depth, itself)


def _completed(hits: Hits, documents: Iterable[str], depth: int) -> Hits:
    """Hits with those of the documents behind them that they lack, by the bytes of their ids, as far as the depth."""
    known = set(hits.document_ids)
    further = sorted((one for one in documents if one not in known), key=str.encode)[: depth - len(hits)]
    last = min(0.0, hits.scores[-1] - 1.0) if hits else 0.0
    return Hits((*hits.document_ids, *further), (*hits.scores, *[last] * len(further)))


def learning(signals: Sequence[Signal]) -> list[int]:
    """The places of the signals whose answers change with what is solved."""
    return [place for place, signal in enumerate(signals) if signal.needs & LEARNS]


def told_by(signals: Sequence[Signal], place: int) -> range:
    """The places of the signals that a signal is told of, what they rank highest."""
    return range(1 if place and Need.candidates in signals[place].needs else 0)


def depending(signals: Sequence[Signal], again: Collection[int]) -> set[int]:
    """The places of these signals, and of those that are told what they rank highest."""
    found = set(again)
    for place in range(len(signals)):
        if found.intersection(told_by(signals, place)):
            found.add(place)
    return found
