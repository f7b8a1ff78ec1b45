"""What the embedded engine says when it is asked for something that it does not have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from searchapp.engines.base import BEYOND_FLOAT32
from searchapp.errors import EngineRefused

ELSEWHERE = "Elasticsearch does: use --engine elasticsearch"


def unsupported(piece: str) -> EngineRefused:
    """The error for a piece of a mapping or of a search body that only Elasticsearch understands.

    >>> print(unsupported("the query `fuzzy`"))
    the embedded engine does not support the query `fuzzy`; Elasticsearch does: use --engine elasticsearch
    """
    return EngineRefused(f"the embedded engine does not support {piece}; {ELSEWHERE}")


def invalid(problem: str) -> EngineRefused:
    """The error for a mapping or a search body that Elasticsearch would refuse as well."""
    return EngineRefused(f"this can't be searched or indexed: {problem}")


def beyond_float32() -> EngineRefused:
    """The error for scores that no ranking can be made of, which Elasticsearch would give all the same."""
    return EngineRefused(BEYOND_FLOAT32)


def known_only(given: Mapping[str, Any], known: Collection[str], place: str) -> None:
    """Refuse parameters that nobody here reads: to ignore one would rank silently otherwise."""
    for name in given:
        if name not in known:
            raise unsupported(f"`{name}` in {place}")
