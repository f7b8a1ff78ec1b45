"""Errors for analysis settings, mappings and queries that are unsupported or invalid, and the functions that make
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from searchapp.errors import DataError, EngineRefused, UsageError
from searchapp.model import BEYOND_FLOAT32
from searchapp.text import suggestion


class NotSupported(UsageError):
    """A piece that the embedded engine can't run exactly as Elasticsearch does; `piece` names it."""

    def __init__(self, piece: str) -> None:
        self.piece = piece
        super().__init__(
            f"{piece} is not supported by the embedded engine; "
            "Elasticsearch supports it: use --engine elasticsearch"
        )


class Undefined(NotSupported):
    """The name of a piece that neither the analysis settings define nor the embedded engine has."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.piece = f"the {kind} `{name}`"
        UsageError.__init__(
            self,
            f"there is no {kind} `{name}`{suggestion(name, known)}: define it under `settings.analysis.{kind}`, or use "
            "--engine elasticsearch if Elasticsearch has it",
        )


class BadSettings(DataError):
    """Analysis settings that make no sense to Elasticsearch either."""


class PatternTimeout(DataError):
    """A regular expression of the analysis settings did not finish on a text in time."""


ELSEWHERE = "Elasticsearch does: use --engine elasticsearch"


class Reported(EngineRefused):
    """Parts of a query were refused, each of which is recorded with its JSON path already."""


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
    unknown = [f"`{name}`" for name in given if name not in known]
    if unknown:
        raise unsupported(f"{' and '.join(unknown)} in {place}")
