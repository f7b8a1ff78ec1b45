"""The protocols of a search engine, and of a handle on one version of an index.

A handle answers only from the version that was live when it was opened or, if the engine has dropped it, raises
`Replaced`, so that no batch and no screen mixes an old and a new index. Engines accept Elasticsearch search bodies.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar, Token
from dataclasses import field
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from searchapp import errors
from searchapp.errors import SearchappError
from searchapp.files import reason
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import (
    BUILD_AGAIN,
    ELSEWHERE,
    OTHER_FOLDER,
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
    BEYOND_FLOAT32,
    AnalysisStep,
    Body,
    Counts,
    Document,
    Explanation,
    ForeignIndex,
    Hit,
    Hits,
    IndexInfo,
    float32,
)
from searchapp.progress import Advance, no_progress

if TYPE_CHECKING:
    from searchapp.lucene.index.segments import CollectionDiff, SegmentPlan
    from searchapp.lucene.search.spelling import SimilarTerm


# Errors of searchapp for those of the search library; the first matching class counts.
TRANSLATIONS: Sequence[tuple[type[LuceneError], type[SearchappError]]] = (
    (CorruptIndex, errors.Damaged),
    (InvalidInput, errors.DataError),
    (NotSupported, errors.UsageError),
    (IndexLocked, errors.BeingBuilt),
    (IndexReplaced, errors.Replaced),
    (RefusedQuery, errors.QueryRefused),
    (Refused, errors.EngineRefused),
)


# Options and commands that complete messages of the search library, by the ends of these.
_ADVICE = {
    ELSEWHERE: ": use --engine elasticsearch",
    BUILD_AGAIN: " with `searchapp index`",
    OTHER_FOLDER: " with --home",
}


def _with_advice(line: str) -> str:
    return line + next((advice for end, advice in _ADVICE.items() if line.endswith(end)), "")


class TranslatedErrors(ContextDecorator):
    """Raise errors of the search library as errors of searchapp, with advice and the same attributes."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, UnreadableFile):
            cause = error.__cause__
            why = reason(cause) if isinstance(cause, OSError) else str(cause)
            raise SearchappError(f"{error.path} can't be read: {why}") from cause
        if isinstance(error, LuceneError):
            kind = next(kind for lucene_kind, kind in TRANSLATIONS if isinstance(error, lucene_kind))
            lines = tuple(map(_with_advice, error.lines))
            raise restored(kind, ("\n".join(lines),), vars(error) | {"lines": lines}) from error


class RequestCancelled(Exception):
    """The caller has cancelled the request; the user is not informed."""


class Patience:
    """Limits how long the current thread waits for an engine inside a `with` block; any thread may call `cancel`.

    Args:
        request_seconds: time limit of a request, if shorter than the connection's.
        retry_seconds: time limit of retries.
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
        self._cancelled.wait(seconds)


_PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


def current_patience() -> Patience | None:
    """Return the `Patience` of this thread."""
    return _PATIENCE.get()


def require_not_cancelled() -> None:
    """Raise `RequestCancelled` if this thread's `Patience` was cancelled."""
    patience = _PATIENCE.get()
    if patience is not None and patience.is_cancelled:
        raise RequestCancelled


@contextmanager
def without_cancellation(request_seconds: float = 30.0) -> Iterator[None]:
    """Ignore cancellation in the block, because later callers reuse its result."""
    patience = _PATIENCE.get()
    if patience is None:
        yield
    else:
        with Patience(request_seconds, patience.retry_seconds):
            yield


# The `sort` of every search body; equal scores by the bytes of the id.
BEST_FIRST: Sequence[Mapping[str, str]] = [{"_score": "desc"}, {"id": "asc"}]

# The body with which all documents are read, a page at a time.
ALL_DOCUMENTS: Body = {
    "query": {"match_all": {}},
    "size": 500,
    "sort": BEST_FIRST,
    "_source": ["*"],  # with the vectors
    "track_total_hits": False,
}

Terms = Mapping[str, Collection[str]]  # terms by field

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

    mapping: Mapping[str, Any]  # a create-index body without shards and replicas
    documents: int
    digest: str  # indexes with equal digests give the same answers on any engine
    documents_digest: str = ""
    shards: int = 1
    owner: str = ""  # the file of a user's own task, whose name alone does not identify the index
    replicas: int | None = None  # None: one replica as soon as there is a second node


class VersionState(StrEnum):
    """The use of a version of an index."""

    live = "live"
    building = "building"
    leftover = "leftover"  # the next build resumes or removes it
    unreadable = "unreadable"  # live, but damaged or made by a newer searchapp


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of the index `name`, live or not."""

    name: str
    version: str
    state: VersionState
    info: IndexInfo | None  # None if the version does not record its source yet
    bytes: int | None  # size on disk with replicas; None if the engine does not report it
    records_name: bool  # whether the version records its own name, which excludes an index of another prefix


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair: the live version, deleted versions, and a remaining problem."""

    name: str
    serving: str | None
    removed: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A hit with its source, highlighted fragments by field and, on request, its explanation."""

    hit: Hit
    source: Mapping[str, Any]
    highlights: Mapping[str, Sequence[str]]
    explanation: Explanation | None = None


def hit_score(hit: Mapping[str, Any], number: int = 0) -> float:
    """Return the score of a hit of the query with the index `number` in a batch.

    Raises:
        QueryRefused: the score is infinite or not a number.
    """
    score = hit.get("_score")
    if not isinstance(score, int | float):
        raise errors.QueryRefused(BEYOND_FLOAT32, number)
    return float32(score)


def search_hit(hit: Mapping[str, Any]) -> SearchHit:
    """Parse a hit with its source, highlights and explanation."""
    explanation = hit.get("_explanation")
    return SearchHit(
        hit=Hit(hit["_id"], hit_score(hit)),
        source=hit.get("_source", {}),
        highlights=hit.get("highlight", {}),
        explanation=Explanation.from_json(explanation) if explanation else None,
    )


@dataclass(frozen=True, slots=True)
class RightsOfUse:
    """The missing privileges for one use of a server, which `use` describes by its commands."""

    use_name: str
    use: str
    missing: tuple[str, ...]


class Index(Protocol):
    """A handle on one version of an index, for one thread at a time.

    Methods that read the index raise `Replaced` if the version is gone.
    """

    @property
    def info(self) -> IndexInfo: ...

    @property
    def is_local(self) -> bool:
        """Whether small requests are free because no server is involved."""

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        """Yield the hits of each body in order; draw bodies as needed."""

    def search_beside(self, requests: Sequence[tuple[Index, Body]]) -> list[Hits]:
        """Return the hits of bodies on several indexes of the same engine, with one request to a server."""

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:
        """Return the hits of a body with sources, and fetch the frequencies of `terms` in the same request."""

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
        """Return the hits as `find` does, and the number of all matching documents."""

    def answer(self, body: Body) -> dict[str, Any]:
        """Return the response of Elasticsearch's `_search` to a body; equal hits are sorted by id.

        The keys are `hits`, `aggregations` and `suggest`; what differs between servers is left out: the time, the
        shards and the names of indexes.
        """

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        """Count the matching documents, and the `fields[name]` most frequent values of each keyword field."""

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        """Return the steps of analysis by a field's analyzer or a named analyzer."""

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        """Return document frequencies by field and term; 0 for unknown fields and terms."""

    def similar_terms(self, terms: Terms, size: int) -> dict[str, dict[str, list[SimilarTerm]]]:
        """Return, by text field and term, at most `size` other terms of the field with the fewest edits.

        The most frequent come first; see `lucene.search.spelling`. Each term must be in no document. All take one
        request to a server.
        """

    def unknown(self, terms: Terms) -> Terms:
        """Return the terms whose `frequencies` require a request."""

    def stored_documents(self) -> Iterator[Document]:
        """Yield all documents with all fields of their sources."""

    def twin(self) -> Index:
        """Return another handle on the same version, for another thread."""

    def close(self) -> None: ...


def search_one_by_one(requests: Iterable[tuple[Index, Body]]) -> list[Hits]:
    """Search each body separately."""
    return [hits for index, body in requests for hits in index.search([body])]


class Engine(Protocol):
    """A store of indexes by name."""

    @property
    def has_shards(self) -> bool: ...

    def info(self) -> EngineInfo: ...

    def index_info(self, name: str) -> IndexInfo | None:
        """Return the live version of an index; None without one."""

    def flaw(self, name: str) -> str:
        """Return why the live version must be rebuilt, as the beginning of a sentence; empty if it is sound."""

    def stored(self) -> list[StoredVersion]:
        """Return all versions of all indexes of this prefix that searchapp has made, by name and version."""

    def compare(self, name: str, mapping: Mapping[str, Any]) -> CollectionDiff | None:
        """Return a comparison of new documents with an index; None if nothing can be reused."""

    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: SegmentPlan | None = None,
    ) -> IndexInfo:
        """Build a new version beside the old one, and make it live once it is complete.

        `documents` are iterated again, if possible, after the loss of a part of the version. A build may resume an
        interrupted one of the same documents and mapping, and reuse the `carried` segments of the live version.

        Raises:
            Damaged: the live version, whose segments are reused, is damaged.
            Replaced: the live version lacks the carried segments.
        """

    def shards_for(self, documents: int) -> int:
        """Return a suitable number of shards for this many documents."""

    def replicate(self, name: str, replicas: int) -> None:
        """Set the number of replicas of the live version.

        Raises:
            EngineRefused: there is no such index, or the engine has no replicas.
        """

    def remove(self, name: str) -> None:
        """Remove all versions of an index that searchapp has made, if any.

        Raises:
            EngineRefused: another process is building it.
        """

    def open(self, name: str) -> Index:
        """Return a handle on the live version.

        Raises:
            EngineRefused: there is no such index.
        """

    def foreign_info(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> IndexInfo:
        """Return the present state of another program's index; its digest changes with the documents.

        Raises:
            EngineRefused: it can't be read, lacks a part of `mapping`, or the engine is not a server.
        """

    def open_foreign(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> Index:
        """Return a handle on the present state of another program's index, to which nothing is written.

        Raises:
            EngineRefused: as `foreign_info`.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ShardedIndex:
    """The shards of an index on a server."""

    shards: int
    replicas: int
    copies: int  # active primary shards and replicas
    size: int  # bytes on disk of all copies
    searches: int  # since the nodes started
    milliseconds: float  # mean time of a search; 0 if there were too few
    slow: tuple[str, ...] = ()  # a clause for each slow copy


@dataclass(frozen=True, slots=True)
class Survey:
    """The state of a server, as far as the user may read it."""

    version: str
    nodes: Mapping[str, int] | None = None  # number of nodes by version; None if unknown
    health: str = ""
    indexes: Mapping[str, ShardedIndex] = field(default_factory=dict)  # by name of the version
    is_serverless: bool = False
