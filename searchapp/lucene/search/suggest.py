"""Suggesters of search bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries.query import Parser

# Computes the `suggest` of a response from the segments.
Suggest = Callable[[Sequence[IndexReader]], dict[str, Any]]


def read_suggest(value: Any, parser: Parser) -> Suggest:  # noqa: ARG001
    """Read the `suggest` of a search body."""
    raise unsupported("`suggest` in a search body")
