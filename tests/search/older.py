"""What Elasticsearch 8.19 does differently from 9.x, so that all else is compared to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from searchapp.lucene.queries import boolean

NEW_IN_LUCENE_10 = (boolean._inline_required,)
"""Rules of `bool` that Lucene 9.12 doesn't have.

Lucene 10.1 takes the clauses of a conjunction without a boost inside another one for clauses of the outer one, and adds
them all up in double (https://github.com/apache/lucene/pull/13994); before, the sum of the inner one was rounded to
float32 by itself.
"""


@contextmanager
def rewriting() -> Iterator[None]:
    """Let the embedded engine rewrite queries as Lucene 9.12 does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            boolean, "_RULES", tuple(rule for rule in boolean._RULES if rule not in NEW_IN_LUCENE_10)
        )
        yield
