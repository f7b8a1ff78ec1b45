"""Upper bounds of the scores of all documents, from what several clauses give to them.

Where many documents have to be looked at, adding up what bounds their scores takes a third of the time that adding up
the scores takes: impacts are bytes, which need not be computed, and a greatest score grows evenly with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from searchapp.engines.embedded.bounded_clause import BoundedClause
from searchapp.engines.embedded.rows import Doubles
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.impacts import Impacts

BLOCK = 1 << 16
"""Documents whose bounds are added up at a time: they stay in the processor's cache."""

ROUNDING = 2.0**-23
"""Twice what one rounded operation makes a float32 less, of the number."""


def add(sums: Float32s, clauses: Iterable[tuple[BoundedClause, Impacts | None]], valid: int) -> None:
    """Add what bounds the scores of clauses to the bounds of all documents, float32 of shape (documents,).

    The impacts of a clause in all documents are given beside it, if they are laid out. As `clauses` are gone through,
    those of the last `valid` of them hold; the memory of others may be in use again.
    """
    laid_out: list[tuple[np.float32, Impacts]] = []
    for clause, impacts in clauses:
        if impacts is None:
            np.add.at(sums, clause.documents, clause.upper.astype(np.float32).take(clause.impacts))
            continue
        laid_out.append((clause.factor, impacts))
        if len(laid_out) == valid:
            _add_laid_out(sums, laid_out)
            laid_out.clear()
    _add_laid_out(sums, laid_out)


def _add_laid_out(sums: Float32s, laid_out: Sequence[tuple[np.float32, Impacts]]) -> None:
    if not laid_out:
        return
    given = np.empty(min(BLOCK, len(sums)), np.float32)
    for first in range(0, len(sums), BLOCK):
        of_block = sums[first : first + BLOCK]
        some = given[: len(of_block)]
        for factor, impacts in laid_out:
            some[:] = impacts[first : first + BLOCK]
            some *= factor
            of_block += some


def least(bound: float, clauses: int) -> np.float32:
    """What a sum of so many clauses is at least where it would be `bound` without rounding."""
    bound *= 1 - (clauses + 2) * ROUNDING
    return np.float32(np.nextafter(np.float32(bound), np.float32(-np.inf)))


def most(sums: Float32s, clauses: int) -> Doubles:
    """What sums of so many clauses would be at most without rounding."""
    return sums.astype(np.float64) * (1 + (clauses + 2) * ROUNDING)
