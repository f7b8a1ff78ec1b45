"""The protocols of a search engine and of a handle on one version of an index.

`Engine.open` returns a handle on the version that serves at that moment. The handle answers from that version only or,
where the engine has dropped it, raises `Replaced`: no batch of topics and no screen mixes an old and a new index.
Bodies are Elasticsearch search bodies, whichever engine runs them.

A batch of topics repeats its requests for minutes. A screen wants errors soon, and cancels requests that the next key
has made obsolete:

    patience = Patience(request_seconds=10, retry_seconds=2)
    with patience:                        in the thread that sends requests
        index.find(body)
    patience.cancel()                     in any thread: later requests raise `RequestCancelled`
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from searchapp import errors
from searchapp.errors import SearchappError
from searchapp.files import reason
from searchapp.lucene.errors import (
    CorruptIndex,
    IndexLocked,
    IndexReplaced,
    InvalidInput,
    LuceneError,
    NotSupported,
    Refused,
    RefusedQuery,
    UnreadableFile,
    restored,
)
from searchapp.model import (
    AnalysisStep,
    Body,
    Counts,
    Document,
    Explanation,
    Hit,
    Hits,
    IndexInfo,
)
from searchapp.progress import Advance, no_progress

if TYPE_CHECKING:
    from searchapp.lucene.index.segments import CollectionDiff, SegmentPlan


TRANSLATIONS: Sequence[tuple[type[LuceneError], type[SearchappError]]] = (
    (CorruptIndex, errors.Damaged),
    (InvalidInput, errors.DataError),
    (NotSupported, errors.UsageError),
    (IndexLocked, errors.BeingBuilt),
    (IndexReplaced, errors.Replaced),
    (RefusedQuery, errors.QueryRefused),
    (Refused, errors.EngineRefused),
)
"""The errors of searchapp for those of the search library; the first class that fits counts."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of the search library as errors of searchapp, with the same message and attributes."""
    try:
        yield
    except UnreadableFile as error:
        cause = error.__cause__
        why = reason(cause) if isinstance(cause, OSError) else str(cause)
        raise SearchappError(f"{error.path} can't be read: {why}") from cause
    except LuceneError as error:
        kind = next(kind for lucene_kind, kind in TRANSLATIONS if isinstance(error, lucene_kind))
        raise restored(kind, error.args, vars(error)) from error


class RequestCancelled(Exception):
    """The caller needs no answer any more; the user is not informed."""


class Patience:
    """Bounds how long the current thread waits for an engine; `cancel` ends the wait.

    Args:
        request_seconds: the time limit of one request, if it is below the connection's own
        retry_seconds: how long a request is repeated at most
    """

    def __init__(self, request_seconds: float, retry_seconds: float) -> None:
        self.request_seconds = request_seconds
        self.retry_seconds = retry_seconds
        self._cancelled = threading.Event()
        self._token: Token[Patience | None] | None = None

    def __enter__(self) -> Patience:
        self._token = _PATIENCE.set(self)
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._token is not None
        _PATIENCE.reset(self._token)

    def cancel(self) -> None:
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def sleep(self, seconds: float) -> None:
        """Wait before the next attempt, until `cancel` at most."""
        self._cancelled.wait(seconds)


_PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


def current_patience() -> Patience | None:
    """Return the `Patience` of this thread, if it has one."""
    return _PATIENCE.get()


def require_not_cancelled() -> None:
    """Raise `RequestCancelled` if this thread's `Patience` was cancelled."""
    patience = _PATIENCE.get()
    if patience is not None and patience.is_cancelled:
        raise RequestCancelled


@contextmanager
def without_cancellation(request_seconds: float = 30.0) -> Iterator[None]:
    """Finish the work in the block even if the caller cancels, because later callers reuse its result."""
    patience = _PATIENCE.get()
    if patience is None:
        yield
    else:
        with Patience(request_seconds, patience.retry_seconds):
            yield


BEST_FIRST: Sequence[Mapping[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
"""The `sort` of every search body: by score, equal scores by the bytes of the id."""

Terms = Mapping[str, Collection[str]]
"""Terms by field."""

NO_TERMS: Terms = {}


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """The name, version and location of an engine."""

    name: str
    version: str
    location: str


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """The content and layout of an index to build."""

    mapping: Mapping[str, Any]
    """A create-index body without shards and replicas."""
    documents: int
    digest: str
    """Identifies everything that answers depend on: indexes of one digest give the same answers on any engine."""
    documents_digest: str = ""
    shards: int = 1
    owner: str = ""
    """The file of a user's own task, where the name alone does not identify the index."""
    replicas: int | None = None
    """Copies of each shard; None for one copy as soon as there is a second node."""


class VersionState(StrEnum):
    """What one version of an index is used for."""

    serves = "serves"
    building = "building"
    leftover = "leftover"
    """Unused; the next build resumes or removes it."""
    unreadable = "unreadable"
    """It should serve, but is damaged or was made by a newer searchapp."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of the index `name`, whether it serves or not."""

    name: str
    version: str
    state: VersionState
    info: IndexInfo | None
    """None as long as the version does not record its source."""
    bytes: int | None
    """Size on disk with replicas; None where the engine does not report it."""
    says_name: bool
    """Whether the version records its own name, so that it can't be taken for an index of another prefix."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of repairing the index `name`: the live version, the deleted ones, and a remaining problem."""

    name: str
    serving: str | None
    removed: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A hit with its source, highlighted fragments by field and, if the body asks for it, its explanation."""

    hit: Hit
    source: Mapping[str, Any]
    highlights: Mapping[str, Sequence[str]]
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class RightsOfUse:
    """The privileges that a user lacks for one use of a server, which `use` describes by its commands."""

    use_name: str
    use: str
    missing: tuple[str, ...]


class Index(Protocol):
    """A handle on one version of an index, used by one thread at a time.

    Every method that reads the index raises `Replaced` when the version is gone.
    """

    @property
    def info(self) -> IndexInfo: ...

    @property
    def is_at_hand(self) -> bool:
        """Whether it answers without a server, so that small questions cost nothing."""

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        """Yield the hits of each body, in order; the bodies are drawn as needed."""

    def search_beside(self, asked: Sequence[tuple[Index, Body]]) -> list[Hits]:
        """Return the hits of bodies on indexes of the same engine; a server gets one request."""

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:
        """Return the hits of a body with sources, and learn the frequencies of `terms` in the same request."""

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
        """Return the hits as `find` does, and the number of all matching documents."""

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        """Count the documents that match a query, and the commonest values of keyword fields, `fields[name]` each."""

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        """Return each step of analyzing a text by the analyzer of a field, or a named analyzer."""

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        """Return the document frequency of each term by field; 0 for unknown fields and terms."""

    def unknown(self, terms: Terms) -> Terms:
        """Return the terms whose `frequencies` need a request to a server."""

    def twin(self) -> Index:
        """Return another handle on the same version, for another thread."""

    def close(self) -> None: ...


def search_one_by_one(asked: Iterable[tuple[Index, Body]]) -> list[Hits]:
    """Return the hits of bodies on indexes, searched in turn."""
    return [hits for index, body in asked for hits in index.search([body])]


class Engine(Protocol):
    """A store of indexes by name."""

    @property
    def has_shards(self) -> bool:
        """Whether an index can have several shards."""

    def info(self) -> EngineInfo: ...

    def index_info(self, name: str) -> IndexInfo | None:
        """Return the serving version of an index, if there is one."""

    def flaw(self, name: str) -> str:
        """Return why the serving index must be rebuilt, as the beginning of a sentence; empty if it is sound."""

    def stored(self) -> list[StoredVersion]:
        """Return every version of every index of this prefix that searchapp has made, by name and version."""

    def compare(self, name: str, mapping: Mapping[str, Any]) -> CollectionDiff | None:
        """Return a comparison of new documents with an index; None where a build starts from nothing anyway."""

    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: SegmentPlan | None = None,
    ) -> IndexInfo:
        """Build a new version beside the old one, which serves until the new one is complete.

        `documents` are drawn again, if they can be, when a part of the version is lost. A build may resume an
        interrupted one of the same documents and mapping, and take the `carried` segments from the serving version.

        Raises:
            Damaged: the serving version, from which segments are carried, is damaged.
            Replaced: another version serves than the one that segments are carried from.
        """

    def shards_for(self, documents: int) -> int:
        """Return the number of shards that fits a new index of this many documents."""

    def replicate(self, name: str, replicas: int) -> None:
        """Set the number of replicas of the serving version.

        Raises:
            EngineRefused: there is no such index, or the engine has no replicas.
        """

    def remove(self, name: str) -> None:
        """Remove all versions of an index that searchapp has made; a missing index is no error.

        Raises:
            EngineRefused: another process is building it.
        """

    def open(self, name: str) -> Index:
        """Return a handle on the serving version.

        Raises:
            EngineRefused: there is no such index.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ShardedIndex:
    """How an index is distributed on a server."""

    shards: int
    replicas: int
    copies: int
    """Primary shards and replicas at work."""
    size: int
    """Bytes on disk of all copies."""
    searches: int
    """Searches that the shards have answered since their nodes started."""
    milliseconds: float
    """Mean time of a search; 0 if there were too few."""
    slow: tuple[str, ...] = ()
    """A clause for each slow copy."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The state of a server as far as the user may see it."""

    version: str
    nodes: Mapping[str, int] | None = None
    """Number of nodes of each version; None if unknown."""
    health: str = ""
    indexes: Mapping[str, ShardedIndex] = field(default_factory=dict)
    """Indexes by the names of their versions."""
    is_serverless: bool = False
