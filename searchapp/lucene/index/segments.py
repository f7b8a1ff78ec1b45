"""Changes beside a large version: compare a collection with an index, and write a small part with the differences.

`Comparison`: finds the documents that the index has already, by their digests, while the collection is read. They
need not be analyzed again if mapping and analysis code are the same. Few changes of a large version become a small
part beside it; else all is merged into one version (see `merge`). Documents are compared with the base of a version
in parts, dead ones included, and with its new part. Postings keep the order of their documents when numbers only
move, so a merge takes over the documents of the longest ascending sequence; others that changed their places count
as changed.
`SmallPart`: the cost of writing it is in proportion to the changes since the base was built.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchapp.errors import Replaced
from searchapp.files import digest_json
from searchapp.lucene.errors import invalid
from searchapp.lucene.index import arrays, layout
from searchapp.lucene.index.arrays import Columns, located
from searchapp.lucene.index.documents import Documents
from searchapp.lucene.index.index_settings import without_similarities
from searchapp.lucene.index.layout import Manifest
from searchapp.lucene.index.merge import DIGESTS, NEW, Carried, Int32s, Older, digest_of, in_order, written
from searchapp.lucene.index.terms import Terms
from searchapp.lucene.index.versions import (
    DEAD,
    GONE_FOLDER,
    NEW_FOLDER,
    OpenedParts,
    PartsManifest,
    Stored,
    read_manifest,
)
from searchapp.lucene.index.writer import IndexWriter
from searchapp.model import Document, IndexInfo
from searchapp.progress import Advance, no_progress

MakeWriter = Callable[[Path, Older | None], IndexWriter]
"""Makes the writer of a version into an empty folder, with what is carried over from an older one."""


class Served(NamedTuple):
    """The version that serves: its folder, the digest of its manifest, its base, and its parts if it is in parts.

    The base of a version that is not in parts is the version itself.
    """

    folder: Path
    digest: str
    base: Stored
    parts: OpenedParts | None

    @classmethod
    def of(cls, folder: Path, manifest: Manifest | PartsManifest) -> Served:
        """The version in a folder.

        Raises:
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        if isinstance(manifest, Manifest):
            return cls(folder, manifest.digest, Stored(folder, manifest), None)
        parts = manifest.opened(folder)
        return cls(folder, manifest.digest, parts.base, parts)

    @property
    def documents(self) -> Sequence[Stored]:
        """What has its documents, counted through: the base with the dead ones, then the new part."""
        return [self.base] if self.parts is None else [self.base, self.parts.new]


class SmallPart:
    """What a version in parts is made of, whose base is that of the version that serves.

    `dead` are the numbers, ascending, of the documents of the base that the collection does not have. What the parts of
    the version that serves have of the new ones is carried over, as it is where all is merged.
    """

    def __init__(self, served: Served, numbers: Int32s, dead: Int32s, kept: list[Document] | None) -> None:
        """`numbers` has for each document of the collection the number that it has in what is served, see
        `Served.documents`, or less than 0; `kept` are those that the base lacks, or None.
        """
        base = served.base.manifest.info.documents
        self._served = served
        self._is_new = (numbers < 0) | (numbers >= base)
        self._known = np.maximum(numbers[self._is_new] - np.int32(base), NEW)
        self._kept = kept
        self.dead = dead

    @property
    def version(self) -> str:
        """The name of the version that serves."""
        return self._served.folder.name

    @property
    def documents(self) -> int:
        """How many documents are not analyzed again."""
        carried = self._new_part.documents if self._new_part else 0
        return len(self._is_new) - len(self._known) + carried

    @property
    def left_out(self) -> int:
        """How many documents of the base are dead."""
        return len(self.dead)

    @property
    def analyzed(self) -> int:
        """How many documents of the collection are analyzed."""
        return len(self._is_new) - self.documents

    @cached_property
    def _new_part(self) -> Carried | None:
        """What the new part takes over from the one of before."""
        return _carried(self._served.parts.new, in_order(self._known)) if self._served.parts else None

    @cached_property
    def _gone_part(self) -> Carried | None:
        """What the part of dead documents takes over from the one of before."""
        if self._served.parts is None:
            return None
        places, there = arrays.located(self._served.parts.dead, self.dead)
        return _carried(self._served.parts.gone, np.where(there, places, NEW).astype(np.int32))

    def write(
        self,
        folder: Path,
        info: IndexInfo,
        mapping: Mapping[str, Any],
        documents: Iterable[Document],
        writer: MakeWriter,
        advance: Advance = no_progress,
    ) -> None:
        """Write the version into an empty folder, the manifest last; `documents` are all of the collection.

        Raises:
            Replaced: what serves is not what was compared.
            DataError: it is damaged.
            EngineRefused: a document can't be indexed, or an id comes twice.
        """
        served = read_manifest(self._served.folder)
        if served.digest != self._served.digest:
            raise Replaced(served.info.version)
        base = self._served.base
        layout.require(*base)  # what is altered in it must not serve any longer
        advance(len(self._is_new) - len(self._known))
        new, gone = self._new_part, self._gone_part
        beside = _Base(base)
        try:
            added = beside.added(self._new(documents), set(self.dead.tolist()))
            added = new.new(added) if new else added
            of_new = _write(folder / NEW_FOLDER, info, len(self._known), new, added, writer, advance)
            dead = beside.documents(self.dead[gone.added] if gone else self.dead)
            of_gone = _write(folder / GONE_FOLDER, info, len(self.dead), gone, dead, writer)
        finally:
            beside.close()
        arrays.save(folder, DEAD, self.dead)
        digest = hashlib.sha256((folder / f"{DEAD}{arrays.SUFFIX}").read_bytes()).hexdigest()
        digests = base.manifest.digest, of_new, of_gone, digest
        PartsManifest(info, mapping, base.manifest.analysis, base.folder.name, *digests).write(folder)

    def _new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Those of all documents that the base lacks; they are not drawn if these were kept."""
        if self._kept is not None:
            yield from self._kept
            return
        for number, document in enumerate(documents):
            if number >= len(self._is_new) or self._is_new[number]:
                yield document


def _carried(part: Stored, numbers: Int32s) -> Carried | None:
    """What of a part can be carried over, given the numbers there, or less than 0; None for nothing."""
    found = Carried(part.folder, part.manifest.digest, numbers, part.manifest.info.documents)
    return found if found.documents else None


class _Base:
    """The base, as far as it takes to write what is beside it."""

    def __init__(self, base: Stored) -> None:
        columns = Columns(*base)
        self._ids = Terms.of(columns.column, "ids")
        self._by_rank, self._ranks = columns.column("ids.documents"), columns.column("ids.ranks")
        self._sources = Documents(base.folder)

    def added(self, documents: Iterable[Document], dead: Collection[int]) -> Iterator[Document]:
        """The documents, none of which has the id of one of the base that is not dead.

        Raises:
            EngineRefused: one has.
        """
        for document in documents:
            number = self._number(document.id)
            if number is not None and number not in dead:
                raise invalid(f"two documents have the id {document.id}")
            yield document

    def _number(self, document_id: str) -> int | None:
        try:
            rank = self._ids.rank(document_id)
        except UnicodeEncodeError:
            return None  # refused where it is written
        return None if rank is None else int(self._by_rank[rank : rank + 1][0])

    def documents(self, numbers: Int32s) -> Iterator[Document]:
        """Documents of the base by their numbers: their fields have everything, id and text included."""
        for number in numbers.tolist():
            (source,) = self._sources.sources([number])
            rank = int(self._ranks[number : number + 1][0])
            yield Document(self._ids[rank].decode(), "", source)

    def close(self) -> None:
        self._sources.close()


def _write(
    folder: Path,
    info: IndexInfo,
    count: int,
    carried: Carried | None,
    documents: Iterable[Document],
    writer: MakeWriter,
    advance: Advance = no_progress,
) -> str:
    """Write a part of so many documents, of which all but the given ones are carried over.

    Returns the digest of its manifest.
    """
    folder.mkdir()
    info = replace(info, version=f"{info.version}/{folder.name}", documents=count)
    older = Older(carried) if carried else None
    return writer(folder, older).write(documents, info, advance, few=True)


_log = logging.getLogger("searchapp.requests")

FEWEST_DOCUMENTS = 20_000
"""So many documents the base of a version in parts has at least: to merge fewer takes hardly longer."""

SMALL = 64
"""At most one in so many documents of the base may be dead, and at most as many be new: they are searched beside it."""

CHUNK = 4096
"""Documents that are looked up together."""

KEPT_BYTES = 64 << 20
"""How much of new documents is kept from the first reading; where there is more, they are read once again."""

WORTH_IT = 4
"""One of so many older documents must be left for it to pay: all are read, and reading costs less than analyzing."""


class Comparison:
    """Compares the documents of a collection with those of a version, while they are read."""

    def __init__(self, served: Served, mapping: Mapping[str, Any]) -> None:
        self._served = served
        self._mapping = mapping
        digests = np.concatenate([Columns(*one).column(DIGESTS).all() for one in served.documents])
        self._order = np.argsort(digests[0::2], kind="stable").astype(np.int32)
        self._first, self._second = digests[0::2][self._order], digests[1::2][self._order]
        self._waiting: list[Document] = []
        self._numbers: list[Int32s] = []
        self._kept: list[Document] | None = []
        self._kept_bytes = 0

    @classmethod
    def of(cls, folder: Path, mapping: Mapping[str, Any], code: str) -> Comparison | None:
        """A comparison with the version in a folder; None where nothing of it can be carried over.

        A new version shall have this mapping, and be made by the code of this digest, empty if nobody knows it.

        Raises:
            DataError, EngineRefused, SearchappError: the version can't be read.
        """
        manifest = read_manifest(folder)
        served = Served.of(folder, manifest)
        # Which similarity scores a field is no matter of its postings: impacts are computed anew.
        wanted, found = (digest_json(without_similarities(one)) for one in (mapping, manifest.mapping))
        if not code:
            why = "nobody knows which code analyzes, or its files have changed since searchapp was started"
        elif manifest.analysis != code:
            why = "it was made by another version of searchapp, Python or regex"
        elif wanted != found:
            why = "it has another mapping"
        elif not manifest.info.documents:
            why = "it has no documents"
        else:
            return cls(served, mapping)
        _log.info("%s: no document can be taken over, %s", manifest.info.version, why)
        return None

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, each of which is compared on its way."""
        for document in documents:
            self._waiting.append(document)
            if len(self._waiting) == CHUNK:
                self._look_up()
            yield document
        self._look_up()

    @property
    def unchanged(self) -> int:
        """How many of the documents that have passed are in the serving version as they are."""
        return sum(int(np.count_nonzero(numbers != NEW)) for numbers in self._numbers)

    def carried(self, *, merged: bool = False) -> Carried | SmallPart | None:
        """What can be carried over, once all documents have passed; None where that does not pay.

        It is for a small part beside the base where little has changed, unless all is to be `merged`.
        """
        numbers = np.concatenate([np.empty(0, np.int32), *self._numbers])
        return (None if merged else self._small_part(numbers)) or self._merged(numbers)

    def _small_part(self, numbers: Int32s) -> SmallPart | None:
        """What a small part is made of; None where it would not be small."""
        base = self._served.base.manifest
        count = base.info.documents
        most = count // SMALL
        if count < FEWEST_DOCUMENTS:
            return None
        if digest_json(self._mapping) != digest_json(base.mapping):
            return None  # impacts of other similarities bound no scores
        in_base = (numbers >= 0) & (numbers < count)
        added = len(numbers) - np.count_nonzero(in_base)
        alive = np.zeros(count, bool)
        alive[numbers[in_base]] = True
        left = np.count_nonzero(alive)
        if left + added != len(numbers) or max(added, count - left) > most:
            return None  # a document that comes twice is refused where all is merged
        dead = np.flatnonzero(~alive).astype(np.int32)
        return SmallPart(self._served, numbers, dead, self._kept)

    def _merged(self, numbers: Int32s) -> Carried | None:
        """What of the base one version of all documents is made of."""
        folder, manifest = self._served.base
        older = manifest.info.documents
        numbers = np.where(numbers < older, numbers, np.int32(NEW))
        ordered = in_order(numbers)
        kept = self._kept if ordered is numbers else None
        found = Carried(folder, manifest.digest, ordered, older, kept, self._served.folder.name)
        if found.documents * WORTH_IT >= older:
            return found
        _log.info(
            "%s: %d documents that have not changed are too few to be taken over",
            found.version,
            found.documents,
        )
        return None

    def _look_up(self) -> None:
        if not self._waiting:
            return
        digests = np.frombuffer(b"".join(map(digest_of, self._waiting)), np.int64).reshape(-1, 2)
        places, there = located(self._first, digests[:, 0])
        known = there & (self._second[places] == digests[:, 1])
        numbers = np.where(known, self._order[places], np.int32(NEW))
        self._numbers.append(numbers)
        if self._kept is not None:
            in_base = known & (numbers < self._served.base.manifest.info.documents)
            new = [self._waiting[place] for place in np.flatnonzero(~in_base)]
            self._kept += new
            self._kept_bytes += sum(len(written(document)) for document in new)
            if self._kept_bytes > KEPT_BYTES:
                self._kept = None
        self._waiting.clear()
