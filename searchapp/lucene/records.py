"""Records of the search library: documents, tokens, explanations of scores, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]
"""A search body, as Elasticsearch accepts it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be retrieved by its id; `fields` are the further properties that the mapping names."""

    id: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def source(self) -> dict[str, Any]:
        """Return the JSON object that is indexed."""
        return {"id": self.id, "text": self.text, **self.fields}


@dataclass(frozen=True, slots=True)
class Token:
    """A term as it is indexed, its position, and the characters of the text that it stands for."""

    term: str
    position: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnalysisStep:
    """A component of an analyzer and its output: text after a char filter, tokens after all others."""

    kind: str
    name: str
    text: str | None = None
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The computation of a score: a value, its description, and the values from which it was computed."""

    value: float
    description: str
    details: tuple[Explanation, ...] = ()

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> Explanation:
        """Return the explanation in the `_explanation` object of a search response."""
        details = tuple(cls.from_json(child) for child in node.get("details", ()))
        value = node["value"]
        # Infinities and NaN, which JSON does not have, arrive as text.
        return cls(float(value) if isinstance(value, str) else value, node["description"], details)

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "description": self.description,
            "details": [child.to_json() for child in self.details],
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of documents that match a query, and the commonest values of some keyword fields among them.

    A document counts once for each of its values. Values with equal counts are ordered by their bytes.
    """

    total: int
    values: Mapping[str, Sequence[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """A hit: a document with its score, a float32, and its source as the body's `_source` selects it."""

    id: str
    score: float
    source: Mapping[str, Any]
    highlights: Mapping[str, Sequence[str]]
    """Fragments with marked matches, by field."""
    explanation: Explanation | None = None
