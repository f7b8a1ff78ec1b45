"""The Engine protocol: what every search engine can do for searchapp.

An engine holds indexes by name. `Engine.open` gives a handle on the version of an index that serves at that moment;
the handle answers from that one version or, where the engine has dropped it, raises `Replaced`: no batch of topics
and no screen shows half an old and half a new index. Bodies are Elasticsearch search bodies, whichever engine runs
them.

`Carried` and `Comparison` say which documents a new version may take over from an older one.

A batch of topics is patient: its requests are repeated for minutes. A person at a screen wants to hear soon what is
wrong, and has typed on before a slow request is done:

    waiting = Waiting(request_seconds=10, patience=2)
    with waiting:                         in the thread that asks
        index.find(body)
    waiting.leave()                       in any thread: what is asked from here on raises `RequestCancelled`

It holds for all that the thread asks of any engine in the block; what is done `without_cancellation` comes to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol

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
from searchapp.progress import Advance, Progress, no_progress


class Carried(Protocol):
    """Those of some documents that a new version of an index can take over from the one that serves."""

    @property
    def version(self) -> str:
        """What names the version within its index."""

    @property
    def documents(self) -> int:
        """How many documents are carried over."""


class Comparison(Protocol):
    """Compares documents with those that the serving version of an index was built from."""

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, each of which is compared on its way."""

    @property
    def unchanged(self) -> int:
        """How many of the documents that have passed are in the serving version as they are."""

    def carried(self) -> Carried | None:
        """What can be carried over, once all documents have passed; None where a whole build costs no more."""


class RequestCancelled(Exception):
    """Whoever asked wants no answer any more; nobody is told."""


class Patience:
    """Whoever waits.

    Args:
        request_seconds: what a server is given for one request, if it would be given more
        patience: how many seconds a request is repeated at most
    """

    def __init__(self, request_seconds: float, patience: float) -> None:
        self.request_seconds = request_seconds
        self.patience = patience
        self._has_left = threading.Event()
        self._token: Token[Patience | None] | None = None

    def __enter__(self) -> Patience:
        self._token = _WAITING.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _WAITING.reset(self._token)

    def leave(self) -> None:
        """Want no answer any more."""
        self._has_left.set()

    @property
    def has_left(self) -> bool:
        return self._has_left.is_set()

    def pause(self, seconds: float) -> None:
        """Let some time go by before another attempt, as long as somebody waits for that."""
        self._has_left.wait(seconds)


_WAITING: ContextVar[Patience | None] = ContextVar("waiting", default=None)


def current_patience() -> Patience | None:
    """Whoever waits for what this thread asks; None where that is nobody."""
    return _WAITING.get()


def require_not_cancelled() -> None:
    """Go on only if the answer is still wanted.

    Raises:
        RequestCancelled: it is not.
    """
    waiting = _WAITING.get()
    if waiting is not None and waiting.has_left:
        raise RequestCancelled


@contextmanager
def without_cancellation(request_seconds: float = 30.0) -> Iterator[None]:
    """Do something that comes to its end also when whoever waits for it leaves: others will want it too.

    A server is given this many seconds for a request; requests are repeated no longer than otherwise.
    """
    waiting = _WAITING.get()
    if waiting is None:
        yield
    else:
        with Patience(request_seconds, waiting.patience):
            yield


BEST_FIRST: Sequence[Mapping[str, str]] = [{"_score": "desc"}, {"id": "asc"}]
"""The `sort` of every search body: by score, equal scores by the bytes of the id."""

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


class VersionState(StrEnum):
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
    state: VersionState
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
class SearchHit:
    """A hit with what a person wants to see of it.

    `highlights` maps a field to its fragments, the matched terms marked as the body's `highlight` asked.
    """

    hit: Hit
    source: Mapping[str, Any]
    highlights: Mapping[str, Sequence[str]]
    explanation: Explanation | None = None


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

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:
        """The hits of one body with source, highlights and, if the body asks for it, explanations.

        With `terms` what `unknown` named becomes known on the way.
        """

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
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


def search_one_by_one(asked: Iterable[tuple[Index, Body]]) -> list[Hits]:
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
