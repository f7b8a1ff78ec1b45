"""What a text means whose tokens make a graph: "united states", say, with "usa" laid over both words.

Lucene makes a query of each part of the text between two places that no token reaches over, as its
`GraphTokenStreamFiniteStrings` finds these places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from searchapp.engines.embedded.refusals import unsupported

LONGEST = 1001
"""States of a graph that Lucene is sure to follow: its search goes 1000 deep."""

MOST_PATHS = 1024

Step = tuple[str, int]
"""A term and by how many positions it lies behind the term before."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: `paths` are the ways to read it.

    `stacked` says that all of them are one term long and end at the same place, as terms on one position do.
    """

    paths: tuple[tuple[Step, ...], ...]
    stacked: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    start: int
    end: int
    step: Step


def parts(tokens: Sequence[tuple[str, int, int]]) -> list[Part]:
    """The parts of a text, one after the other.

    Args:
        tokens: terms with their positions, which ascend, and over how many positions they reach

    Raises:
        EngineRefused: the text is too long for a graph, or reads in too many ways, or in none
    """
    edges = _live(list(_edges(tokens)))
    if not edges:
        raise unsupported("a text of which a synonym of several words leaves no way to read it")
    states = sorted({state for edge in edges for state in (edge.start, edge.end)})
    if len(states) > LONGEST:
        raise unsupported(f"a text of more than {LONGEST - 1} positions with synonyms of several words")
    covered = {state for edge in edges for state in range(edge.start + 1, edge.end)}
    cuts = [state for state in states if state not in covered]
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge.start].append(edge)
    return [_part(leaving, start, end) for start, end in pairwise(cuts)]


def _part(leaving: dict[int, list[_Edge]], start: int, end: int) -> Part:
    found = []
    for path in _paths(leaving, start, end):
        found.append(path)
        if len(found) > MOST_PATHS:
            raise unsupported(f"a text that synonyms let read in more than {MOST_PATHS} ways")
    return Part(tuple(found), len({edge.end for edge in leaving[start]}) == 1)


def _paths(leaving: dict[int, list[_Edge]], start: int, end: int) -> Iterator[tuple[Step, ...]]:
    if start == end:
        yield ()
        return
    for edge in leaving[start]:
        for rest in _paths(leaving, edge.end, end):
            yield (edge.step, *rest)


def _edges(tokens: Sequence[tuple[str, int, int]]) -> Iterator[_Edge]:
    """The tokens as edges between states; a hole between two tokens is no state, the token after it is longer.

    A token takes the step of the first one on its position, whichever path it ends up on.
    """
    at = before = -1
    gap = 0
    step = 1
    for term, position, length in tokens:
        if position > before:
            step = position - before
            gap = step - 1
            at += 1
        else:
            at -= gap
        yield _Edge(at, at + length + gap, (term, step))
        at += gap
        before = position


def _live(edges: list[_Edge]) -> list[_Edge]:
    """Those on a way from the beginning to the end: a filter may have taken the token that led to another."""
    reached = {0}
    for edge in edges:  # they begin in ascending order
        if edge.start in reached:
            reached.add(edge.end)
    reaching = {max(edge.end for edge in edges)}
    for edge in sorted(edges, key=lambda edge: -edge.start):
        if edge.end in reaching:
            reaching.add(edge.start)
    return [edge for edge in edges if edge.start in reached and edge.end in reaching]
