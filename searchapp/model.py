"""Records that all packages share, frozen and without behaviour.

Identifiers are texts: tasks use 128-bit integers, UUIDs or line numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, NamedTuple, overload

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BEYOND_FLOAT32 as BEYOND_FLOAT32
from searchapp.lucene.records import AnalysisStep as AnalysisStep
from searchapp.lucene.records import Body as Body
from searchapp.lucene.records import Counts as Counts
from searchapp.lucene.records import Document as Document
from searchapp.lucene.records import Explanation as Explanation
from searchapp.lucene.records import Token as Token


class Markup(StrEnum):
    """The markup of texts: none, LaTeX between dollar signs, or wiki markup with LaTeX."""

    plain = "plain"
    latex = "latex"
    wiki = "wiki"


@dataclass(frozen=True, slots=True)
class Option:
    """An answer of a multiple-choice question; its label is a letter such as A."""

    label: str
    text: str
    is_right: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need: a statement to prove, a question, a debate.

    `id` is empty for typed words, and `like` names the document whose text they are, if any. `fields` are further
    template variables (`{{topic.answer}}`). Screens show `options`; no template reads them, so they do not influence
    rankings.
    """

    id: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Option, ...] = ()
    like: str = ""

    def variables(self) -> dict[str, Any]:
        """Return the values of `topic.<name>` in a query template."""
        return {**self.fields, "id": self.id, "text": self.text}


def float32(value: float) -> float:
    """Return the nearest float32, which restores a score from decimal text exactly."""
    (nearest,) = struct.unpack("f", struct.pack("f", value))
    return float(nearest)


class Hit(NamedTuple):
    """A retrieved document; `score` is exactly a float32, so that engines can be compared bit for bit."""

    document_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Example:
    """A training topic; `gold` has the grade of each answer, in the order of the gold."""

    topic: Topic
    gold: Mapping[str, float]


class Hits(Sequence[Hit]):
    """The documents retrieved for one topic, best first.

    Stored in two columns, because a run has a million hits and most code needs only the ids.
    """

    __slots__ = ("document_ids", "scores")

    def __init__(self, document_ids: Sequence[str] = (), scores: Sequence[float] = ()) -> None:
        if len(document_ids) != len(scores):
            raise ValueError("there must be a score for every document")
        self.document_ids: Final = tuple(document_ids)
        self.scores: Final = tuple(scores)

    @classmethod
    def of(cls, *hits: Hit) -> Hits:
        return cls([hit.document_id for hit in hits], [hit.score for hit in hits])

    def __len__(self) -> int:
        return len(self.document_ids)

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit, self.document_ids, self.scores)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Hits: ...
    def __getitem__(self, index: int | slice) -> Hit | Hits:
        if isinstance(index, slice):
            return Hits(self.document_ids[index], self.scores[index])
        return Hit(self.document_ids[index], self.scores[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hits):
            return NotImplemented
        return self.document_ids == other.document_ids and self.scores == other.scores

    def __hash__(self) -> int:
        return hash((self.document_ids, self.scores))

    def __repr__(self) -> str:
        return f"Hits.of({', '.join(map(repr, self))})"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents retrieved for one topic, best first: rank r is `hits[r - 1]`."""

    topic_id: str
    hits: Hits

    def document_ids(self) -> tuple[str, ...]:
        return self.hits.document_ids


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
class IndexInfo:
    """The live version of an index."""

    name: str
    version: str
    documents: int
    digest: str
    mapping_digest: str
    shards: int
    created: str
    documents_digest: str = ""
    owner: str = ""
    is_foreign: bool = False  # whether another program made it, which may change it at any time


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """An index of another program on a server, and how its documents are read; it is never written to."""

    index: str  # a name, an alias, a pattern, or several of them between commas
    id: str | None  # a keyword field with the ids of documents; None for `_id`
    text: tuple[str, ...]  # fields whose values form the text, one line each
    fields: Mapping[str, str]  # paths in the source by the names of other fields


def document_of(id_: str, source: Mapping[str, Any]) -> Document:
    """Return an indexed document, whose source also has its id and text."""
    fields = {name: value for name, value in source.items() if name not in ("id", "text")}
    return Document(id_, str(source.get("text", "")), fields)
