"""A small part beside a large version: the documents that this does not have, and those of it that are dead.

What it takes to write it is in proportion to how much has changed since the base was built; `in_parts` has the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.storage import arrays, verified
from searchapp.engines.embedded.storage.carried import NEW as NOWHERE
from searchapp.engines.embedded.storage.carried import Carried, Int32s, Older, in_order
from searchapp.engines.embedded.storage.columns import Columns
from searchapp.engines.embedded.storage.documents import Documents
from searchapp.engines.embedded.storage.in_parts import (
    DEAD,
    GONE,
    NEW,
    OpenedParts,
    PartsManifest,
    Stored,
    read_manifest,
)
from searchapp.engines.embedded.storage.layout import Manifest
from searchapp.engines.embedded.storage.terms import Terms
from searchapp.engines.embedded.storage.writer import IndexWriter
from searchapp.errors import Replaced
from searchapp.model import Document
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
        self._known = np.maximum(numbers[self._is_new] - np.int32(base), NOWHERE)
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
        return _carried(self._served.parts.gone, np.where(there, places, NOWHERE).astype(np.int32))

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
        verified.require(*base)  # what is altered in it must not serve any longer
        advance(len(self._is_new) - len(self._known))
        new, gone = self._new_part, self._gone_part
        beside = _Base(base)
        try:
            added = beside.added(self._new(documents), set(self.dead.tolist()))
            added = new.new(added) if new else added
            of_new = _write(folder / NEW, info, len(self._known), new, added, writer, advance)
            dead = beside.documents(self.dead[gone.added] if gone else self.dead)
            of_gone = _write(folder / GONE, info, len(self.dead), gone, dead, writer)
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
        self._sources = Documents(base.folder, has_checksums=True)

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
