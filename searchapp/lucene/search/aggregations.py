"""Aggregations of search bodies over all matching documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.arrays import Mask
from searchapp.lucene.queries.query import Parser
from searchapp.lucene.queries.scores import ScoreRows

# Computes the `aggregations` of a response from the rows and the matching documents of each segment.
Aggregations = Callable[[Sequence[tuple[ScoreRows, Mask]]], dict[str, Any]]


def read_aggregations(key: str, value: Any, parser: Parser) -> Aggregations:  # noqa: ARG001
    """Read the aggregations of a search body under `key`, which is `aggs` or `aggregations`."""
    raise unsupported(f"`{key}` in a search body")
