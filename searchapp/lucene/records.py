"""Records of the search library: documents, tokens, explanations of scores, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from html import escape
from typing import Any

from searchapp.lucene.dataclass import dataclass

Body = Mapping[str, Any]  # a search body of Elasticsearch


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be retrieved by its id; `fields` are additional properties of the mapping."""

    id: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def source(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, **self.fields}


@dataclass(frozen=True, slots=True)
class Token:
    """An indexed term, its position, and its range of characters in the text."""

    term: str
    position: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnalysisStep:
    """A component of an analyzer and its output: text after a char filter, tokens after the others."""

    kind: str
    name: str
    text: str | None = None
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The computation of a score: a value, its description, and the values it was computed from."""

    value: float
    description: str
    details: tuple[Explanation, ...] = ()

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> Explanation:
        """Parse the `_explanation` object of a search response."""
        details = tuple(cls.from_json(child) for child in node.get("details", ()))
        value = node["value"]
        # Infinities and NaN arrive as text.
        return cls(float(value) if isinstance(value, str) else value, node["description"], details)

    def _repr_html_(self, depth: int = 0) -> str:
        """Return lists for notebooks that can be folded; the outer two are open."""
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in self.description)
        line = f"{self.value:.5g} {escape(shown)}"
        if not self.details:
            return f"<div>{line}</div>"
        state = " open" if depth < 2 else ""
        details = "".join(child._repr_html_(depth + 1) for child in self.details)
        return f'<details{state}><summary>{line}</summary><div style="margin-left: 2em">{details}</div></details>'

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "description": self.description,
            "details": [child.to_json() for child in self.details],
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of matching documents, and the most frequent values of keyword fields among them.

    A document counts once for each value. Values with equal counts are ordered by their bytes.
    """

    total: int
    values: Mapping[str, Sequence[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """A hit: a document with its float32 score."""

    id: str
    score: float
    source: Mapping[str, Any] | None  # filtered by the body's `_source`; None with `_source: false`
    highlights: Mapping[str, Sequence[str]]  # fragments with marked matches, by field
    explanation: Explanation | None = None
    sort: Sequence[Any] = ()  # its values of the body's sort
    fields: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # the value by which hits are collapsed
