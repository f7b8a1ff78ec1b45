"""What each signal of a recipe says of topics, asked once and kept, so that it can be fused in many ways.

What a signal says does not depend on which others count, but for those that need candidates: they have those of the
recipe's first signal, whether that one counts or not. So a ranking by some of the signals costs a fusion and not a
search. A document that a signal speaks for takes 12 bytes.
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
from searchapp.ranking.signals.base import Answer, Asked, Need, Signal

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
        cpu, clock = _cpu(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu += _cpu() - cpu
            self.clock += time.perf_counter() - clock

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.cpu + other.cpu, self.clock + other.clock)


def _cpu() -> float:
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


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


class Apart:
    """The answers of each signal of a recipe for some topics, and `seconds`, what each signal took to give them.

    With `before`, of the same topics and depth, only the signals at the places `again` are asked, and those whose
    candidates change with them; the others say what they said before.

    Raises:
        as `Ranker.rank` does.
    """

    def __init__(
        self,
        ranker: Ranker,
        topics: Sequence[Topic],
        depth: int,
        advance: Advance = no_progress,
        before: Apart | None = None,
        again: Collection[int] = (),
    ) -> None:
        self.topics = topics
        self.seconds: list[Seconds] = []
        self._ranker = ranker
        self._depth = depth
        self._numbers: dict[str, int] = {} if before is None else before._numbers
        self._kept: list[_Kept] = []
        recipe = ranker.recipe
        asked = Asked(topics, depth, recipe.fusion.scale)
        for place, (signal, scorer) in enumerate(zip(recipe.signals, ranker.scorers, strict=True)):
            is_new = place in again or (Need.candidates in signal.needs and 0 in again)
            if before is None or is_new:
                seconds = Seconds()
                kept = self._asked(scorer.answers(asked, advance), seconds)
            else:
                seconds, kept = before.seconds[place], before._kept[place]
            if place == 0 and recipe.needs(Need.candidates):
                candidates = [as_hits(answer, depth) for answer in kept.answers()]
                asked = replace(asked, candidates=candidates)
            self._kept.append(kept)
            self.seconds.append(seconds)

    def _asked(self, answers: Iterator[Answer], seconds: Seconds) -> _Kept:
        kept = _Kept(self._numbers)
        while True:
            with seconds.taken():
                answer = next(answers, None)
            if answer is None:
                return kept
            kept.add(answer)

    def run(self, tag: str, only: Sequence[int] = (), *, whole: bool = False) -> tuple[Run, Seconds]:
        """The rankings by the signals at these places, by all without any, and what it took to fuse them.

        By all signals it is what `Ranker.rank` makes. With `whole` documents that other signals alone speak for follow
        in the order of their ids, as far as the depth goes.
        """
        seconds = Seconds()
        rankings = []
        every = zip(*(kept.answers() for kept in self._kept), strict=True)
        for topic, answers in zip(self.topics, every, strict=True):
            with seconds.taken():
                hits = self._ranker.hits(topic, answers, self._depth, only)
            if whole and len(hits) < self._depth:
                there = self._ranker.hits(topic, answers, self._depth)
                hits = _completed(hits, there.document_ids, self._depth)
            rankings.append(Ranking(topic.id, hits))
        return Run(tag, tuple(rankings)), seconds


def _completed(hits: Hits, documents: Iterable[str], depth: int) -> Hits:
    """Hits with those of the documents behind them that they lack, by the bytes of their ids, as far as the depth."""
    known = set(hits.document_ids)
    further = sorted((one for one in documents if one not in known), key=str.encode)[: depth - len(hits)]
    last = min(0.0, hits.scores[-1] - 1.0) if hits else 0.0
    return Hits((*hits.document_ids, *further), (*hits.scores, *[last] * len(further)))


def learning(signals: Sequence[Signal]) -> list[int]:
    """The places of the signals whose answers change with what is solved."""
    return [place for place, signal in enumerate(signals) if signal.needs & LEARNS]
