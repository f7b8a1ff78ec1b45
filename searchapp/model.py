"""The records that everything else passes around.

They are frozen and hold no behaviour beyond what follows from their fields. Identifiers are text everywhere:
a shared task may use 128-bit integers, UUIDs or line numbers, and none of them is ever calculated with.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Document:
    """Something that can be retrieved: a premise, a fact, a sentence.

    `fields` holds whatever the task's mapping names besides `id` and `text`.
    """

    id: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def source(self) -> dict[str, Any]:
        """The JSON object that is indexed."""
        return {"id": self.id, "text": self.text, **self.fields}


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that is asked: a statement to prove, a question, a debate.

    `id` is empty for words typed by a person. `fields` are further template variables (`{{topic.answer}}`).
    """

    id: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def variables(self) -> dict[str, Any]:
        """What a query template may refer to as `topic.<name>`."""
        return {**self.fields, "id": self.id, "text": self.text}


@dataclass(frozen=True, slots=True)
class Judgment:
    """How relevant a document is to a topic; grade 0 means judged and not relevant."""

    topic_id: str
    document_id: str
    grade: int = 1


def float32(value: float) -> float:
    """The float32 nearest to a value: a score that was printed as decimal text becomes exact again."""
    (nearest,) = struct.unpack("f", struct.pack("f", value))
    return float(nearest)


class Hit(NamedTuple):
    """A retrieved document; a named tuple because runs have millions of them.

    `score` is a float32 held in a float, exactly, so that engines can be compared to the last bit.
    """

    document_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents retrieved for one topic, best first: rank r is `hits[r - 1]`."""

    topic_id: str
    hits: tuple[Hit, ...]

    def document_ids(self) -> list[str]:
        return [hit.document_id for hit in self.hits]


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of one system for the topics of one split, in the order of the topics."""

    tag: str
    rankings: tuple[Ranking, ...]

    def __iter__(self) -> Iterator[Ranking]:
        return iter(self.rankings)

    def __len__(self) -> int:
        return len(self.rankings)


@dataclass(frozen=True, slots=True)
class Token:
    """A term as it is indexed, its position, and the characters of the text that it stands for."""

    term: str
    position: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnalysisStep:
    """One piece of an analyzer and what it gives: text after a char filter, tokens after all others."""

    kind: str
    name: str
    text: str | None = None
    tokens: tuple[Token, ...] = ()
