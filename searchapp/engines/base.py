"""What every search engine can do for searchapp.

An engine holds indexes by name. `Engine.open` gives a handle on the version of an index that serves at that
moment; the handle answers from that one version or, where the engine has dropped it, raises `Replaced`: neither a
batch of topics nor what a person looks at comes half from an old and half from a new index.
Bodies are Elasticsearch search bodies, whichever engine runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from searchapp.engines.changes import Carried, Comparison
from searchapp.model import AnalysisStep, Document, Hit, Hits
from searchapp.progress import Advance, Progress, no_progress

Body = Mapping[str, Any]

BEST_FIRST: Sequence[Mapping[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
"""The `sort` of every search body: by score, equal scores by the bytes of the id."""

BEYOND_FLOAT32 = (
    "this query gives a score that is infinite or not a number: give its parts smaller boosts and weights"
)
"""What an engine says in the place of scores that order nothing."""

Terms = Mapping[str, Collection[str]]
"""Terms by the field that they are terms of."""

NO_TERMS: Terms = {}


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine answers: its name, its version, and where it is."""

    name: str
    version: str
    location: str


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What an index is made of.

    `mapping` is a create-index body without shards and replicas. `digest` identifies everything that an answer
    can depend on, mapping and documents alike: two indexes of one digest give the same answers, on any engine
    and any number of shards. `documents_digest` identifies the documents alone. `owner` says whose index it is
    where a name alone does not: the file of a user's own task. With `replicas` None each shard has a second copy where
    there is a second node to keep it.
    """

    mapping: Mapping[str, Any]
    documents: int
    digest: str
    documents_digest: str = ""
    shards: int = 1
    owner: str = ""
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index as it stands: `version` names the one build of `name` that serves."""

    name: str
    version: str
    documents: int
    digest: str
    mapping_digest: str
    shards: int
    created: str
    documents_digest: str = ""
    owner: str = ""


class State(StrEnum):
    """What one version of an index is there for.

    `unreadable`: it should serve, but is damaged, or was made by a newer searchapp. `leftover`: nobody uses it, and
    the next build goes on with it or removes it.
    """

    serves = "serves"
    building = "building"
    leftover = "leftover"
    unreadable = "unreadable"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of the index `name`, whether it serves or not.

    `info` is None as long as it does not say what it was built from. `bytes` is what it takes on disk, replicas
    included, None where the engine does not say. `says_name`: it holds its own name, so that it can't be taken for an
    index of another prefix.
    """

    name: str
    version: str
    state: State
    info: IndexInfo | None
    bytes: int | None
    says_name: bool


@dataclass(frozen=True, slots=True)
class Repair:
    """What was found and done for the index `name`.

    `serving` is the version that serves now, `removed` are those that do not and were deleted, and `problem` is what
    is still wrong, as the beginning of a sentence.
    """

    name: str
    serving: str | None
    removed: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a score came about: a value, what it is, and the values it was computed from."""

    value: float
    description: str
    details: tuple[Explanation, ...] = ()

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> Explanation:
        """From the `_explanation` object of a search response."""
        details = tuple(cls.from_json(child) for child in node.get("details", ()))
        return cls(_number(node["value"]), node["description"], details)

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "description": self.description,
            "details": [child.to_json() for child in self.details],
        }


def _number(value: Any) -> float:
    """A value of an explanation; what JSON has no number for comes as text."""
    return float(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Found:
    """A hit with what a person wants to see of it.

    `highlights` maps a field to its fragments, the matched terms marked as the body's `highlight` asked.
    """

    hit: Hit
    source: Mapping[str, Any]
    highlights: Mapping[str, Sequence[str]]
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many documents match a query and, for some fields, how many of them have each value.

    `values` has for each field its commonest values, equal counts by the bytes of the value; a document counts once for
    each of its values."""

    total: int
    values: Mapping[str, Sequence[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class RightsOfUse:
    """What a user of a server lacks for one use of it, "reading": privileges with what they are on; nothing is enough.

    `use` lists the commands that the use is.
    """

    use_name: str
    use: str
    missing: tuple[str, ...]


class Index(Protocol):
    """A handle on one version of an index.

    Every method that asks the index raises `Replaced` when that version is gone: open another handle, if what was
    seen so far may come from the old one.
    """

    @property
    def info(self) -> IndexInfo:
        """What this version was built from."""

    @property
    def is_at_hand(self) -> bool:
        """Whether it answers without a server, which may be far away: then small questions cost nothing."""

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        """The hits of each body, in the order of the bodies; the bodies are drawn as needed."""

    def search_beside(self, asked: Sequence[tuple[Index, Body]]) -> list[Hits]:
        """The hits of a body on each of some indexes of the same engine, which a server is asked for in one request."""

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[Found]:
        """The hits of one body with source, highlights and, if the body asks for it, explanations.

        With `terms` what `unknown` named becomes known on the way.
        """

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[Found], int]:
        """The same, and how many documents match in all."""

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        """How many documents match a query, and the values of keyword fields, this many of each."""

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        """What the analyzer of a field, or a named analyzer, makes of a text, step by step."""

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        """In how many documents each of some terms stands, by field and term; 0 where no field has such terms."""

    def unknown(self, terms: Terms) -> Terms:
        """Those of some terms whose `frequencies` a server would have to be asked for."""

    def twin(self) -> Index:
        """Another handle on the same version, for another thread: one handle is asked from one thread at a time.

        Raises:
            Replaced: the version is gone.
        """

    def close(self) -> None:
        """Give back files; the handle is asked for nothing any more."""


def one_by_one(asked: Iterable[tuple[Index, Body]]) -> list[Hits]:
    """The hits of a body on each of some indexes, which are asked one after the other."""
    return [hits for index, body in asked for hits in index.search([body])]


class Engine(Protocol):
    """A place that holds indexes."""

    @property
    def has_shards(self) -> bool:
        """Whether it can keep an index in several shards."""

    def info(self) -> EngineInfo:
        """Which engine this is."""

    def index_info(self, name: str) -> IndexInfo | None:
        """The version of an index that serves now, or None."""

    def flaw(self, name: str) -> str:
        """What keeps the index that serves from ranking, as the beginning of a sentence; empty if nothing does.

        It holds something else than what it was built from, and must be built again.
        """

    def stored(self) -> list[StoredVersion]:
        """Every version of every index of this prefix that searchapp has made, by name and version."""

    def compare(self, name: str, mapping: Mapping[str, Any]) -> Comparison | None:
        """A comparison with the documents of an index, of which a new version with this mapping may take some over.

        None where it is built from all documents in any case."""

    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: Carried | None = None,
    ) -> IndexInfo:
        """Build a new version of an index beside the old one, and let it serve once it is complete.

        What a comparison said can be `carried` over is taken from the version that serves, with the same result. Where
        that is damaged by now, or another one serves, Damaged or Replaced is raised.

        Whatever happens on the way, including the end of this process, the old version still serves. Documents
        that can be drawn more than once are, if what was built of them is lost on the way. What a build that broke off
        has left of the same documents and mapping may be used.
        """

    def shards_for(self, documents: int) -> int:
        """The number of shards that fits a new index of this many documents here.

        Raises:
            EngineError: the engine failed.
        """

    def replicate(self, name: str, replicas: int) -> None:
        """Give every shard of the version that serves this many copies beside the first.

        Raises:
            EngineRefused: there is no such index, or the engine keeps no copies.
            EngineError: the engine failed.
        """

    def remove(self, name: str) -> None:
        """Remove an index and every version of it that searchapp has made; one that is not there is no error.

        Raises:
            EngineRefused: another process is building it.
        """

    def open(self, name: str) -> Index:
        """A handle on the version that serves now.

        Raises:
            EngineRefused: there is no such index.
        """

    def close(self) -> None:
        """Give back connections and files."""


class OnDisk(Engine, Protocol):
    """An engine whose indexes are files on this machine."""

    def names(self) -> list[str]:
        """The indexes that have a version to serve, sound or not, in order."""

    def open_like(self, name: str, mapping: Mapping[str, Any]) -> Index:
        """A handle that scores as if the index had been made with a mapping, which has other similarities.

        Raises:
            EngineRefused: there is no such index, or the mapping differs in more than similarities.
        """

    def verify(self, name: str, progress: Progress) -> IndexInfo | None:
        """Read every file of the version that serves and compare it with its digest; None if none serves.

        Raises:
            Damaged: a file is missing or altered.
            EngineRefused: it is another searchapp's.
            SearchappError: a file can't be read.
        """


@dataclass(frozen=True, slots=True)
class ShardedIndex:
    """How an index is spread on a server.

    Of each of its `shards` there shall be `replicas` besides the primary; `copies` of both kinds are at work. `size` is
    what they take on disk, in bytes. `searches` is how many searches shards have answered since their nodes started,
    and `milliseconds` how long one took on average, 0 if there were too few. `slow` has a clause for each slow copy.
    """

    shards: int
    replicas: int
    copies: int
    size: int
    searches: int
    milliseconds: float
    slow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """What a server says of itself: how many nodes there are of each version, None if that can't be known; how it is
    (`green`, `yellow`, `red`), and its indexes by the names of their versions."""

    version: str
    nodes: Mapping[str, int] | None = None
    health: str = ""
    indexes: Mapping[str, ShardedIndex] = field(default_factory=dict)
    is_serverless: bool = False


class OnServer(Engine, Protocol):
    """An engine that several people may build indexes on."""

    def rights(self) -> list[RightsOfUse] | None:
        """What this user lacks for each use of the server; None where everybody may do everything.

        Raises:
            EngineError: the server does not answer, or refuses.
        """

    def survey(self) -> Survey:
        """Nodes and shards, as far as the one who asks may know of them.

        Raises:
            EngineError: the server does not answer.
        """

    def repair(self, name: str) -> Repair:
        """Let one version of an index serve again, and delete what builders have left.

        Raises:
            EngineError: the server does not answer, or refuses.
        """
