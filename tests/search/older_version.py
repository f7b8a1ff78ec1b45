"""Reproduce the differences of Elasticsearch 8.19 from 9.x, so that everything else is compared bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from searchapp.lucene.queries import boolean

NEW_IN_LUCENE_10 = (boolean._inline_required,)
"""Rewriting rules of `bool` that Lucene 9.12 doesn't have.

Lucene 10.1 inlines the clauses of an inner conjunction without a boost and sums all clauses in double
(https://github.com/apache/lucene/pull/13994). Earlier versions round the sum of the inner conjunction to float32.
"""


@contextmanager
def rewriting() -> Iterator[None]:
    """Make the embedded engine rewrite queries as Lucene 9.12 does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            boolean, "_RULES", tuple(rule for rule in boolean._RULES if rule not in NEW_IN_LUCENE_10)
        )
        yield
