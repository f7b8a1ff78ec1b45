"""A small part beside a large version: the documents that this does not have, and those of it that are dead.

What it takes to write it is in proportion to how much has changed since the base was built; `in_parts` has the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.storage import arrays, verified
from searchapp.engines.embedded.storage.carried import Int32s
from searchapp.engines.embedded.storage.columns import Columns
from searchapp.engines.embedded.storage.documents import Documents
from searchapp.engines.embedded.storage.in_parts import (
    DEAD,
    GONE,
    NEW,
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

MakeWriter = Callable[[Path], IndexWriter]
"""Makes the writer of a version into an empty folder."""


class Served(NamedTuple):
    """The version that serves: its folder, the digest of its manifest, its base, and its new part if it is in parts.

    The base of a version that is not in parts is the version itself.
    """

    folder: Path
    digest: str
    base: Stored
    new: Stored | None

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
        return cls(folder, manifest.digest, parts.base, parts.new)

    @property
    def documents(self) -> Sequence[Stored]:
        """What has its documents, counted through: the base with the dead ones, then the new part."""
        return [self.base] if self.new is None else [self.base, self.new]


class SmallPart:
    """What a version in parts is made of, whose base is that of the version that serves.

    `dead` are the numbers, ascending, of the documents of the base that the collection does not have.
    """

    def __init__(
        self, served: Served, is_new: NDArray[np.bool_], dead: Int32s, kept: list[Document] | None
    ) -> None:
        """`is_new` says of each document of the collection whether the base lacks it; `kept` has these, or is None."""
        self._served = served
        self._is_new = is_new
        self._kept = kept
        self.dead = dead

    @property
    def version(self) -> str:
        """The name of the version that serves."""
        return self._served.folder.name

    @cached_property
    def analyzed(self) -> int:
        """How many documents the base lacks."""
        return int(np.count_nonzero(self._is_new))

    @property
    def documents(self) -> int:
        """How many documents of the base stay."""
        return len(self._is_new) - self.analyzed

    @property
    def left_out(self) -> int:
        """How many documents of the base are dead."""
        return len(self.dead)

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
        if read_manifest(self._served.folder).digest != self._served.digest:
            raise Replaced(info.version)
        base = self._served.base
        verified.require(*base)  # what is altered in it must not serve any longer
        advance(self.documents)
        with verified.refuting(base.folder):
            parts = _Base(base, self.dead)
            try:
                new = _write(
                    folder / NEW, info, self.analyzed, parts.added(self._new(documents)), writer, advance
                )
                gone = _write(folder / GONE, info, len(self.dead), parts.gone(), writer)
            finally:
                parts.close()
        arrays.save(folder, DEAD, self.dead)
        dead = (folder / f"{DEAD}{arrays.SUFFIX}").read_bytes()
        digests = base.manifest.digest, new, gone, hashlib.sha256(dead).hexdigest()
        PartsManifest(info, mapping, base.manifest.analysis, base.folder.name, *digests).write(folder)

    def _new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Those of all documents that the base lacks; they are not drawn if these were kept."""
        if self._kept is not None:
            yield from self._kept
            return
        for number, document in enumerate(documents):
            if number >= len(self._is_new) or self._is_new[number]:
                yield document


class _Base:
    """The base, as far as it takes to write what is beside it."""

    def __init__(self, base: Stored, dead: Int32s) -> None:
        columns = Columns(*base)
        self._ids = Terms.of(columns.column, "ids")
        self._by_rank, self._ranks = columns.column("ids.documents"), columns.column("ids.ranks")
        self._sources = Documents(base.folder, has_checksums=True)
        self._dead = dead.tolist()

    def added(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents, none of which has the id of one that stays.

        Raises:
            EngineRefused: one has.
        """
        dead = set(self._dead)
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

    def gone(self) -> Iterator[Document]:
        """The dead documents: their fields have everything, id and text included."""
        for number in self._dead:
            (source,) = self._sources.sources([number])
            rank = int(self._ranks[number : number + 1][0])
            yield Document(self._ids[rank].decode(), "", source)

    def close(self) -> None:
        self._sources.close()


def _write(
    folder: Path,
    info: IndexInfo,
    count: int,
    documents: Iterable[Document],
    writer: MakeWriter,
    advance: Advance = no_progress,
) -> str:
    """Write a part of so many documents; returns the digest of its manifest."""
    folder.mkdir()
    info = replace(info, version=f"{info.version}/{folder.name}", documents=count)
    return writer(folder).write(documents, info, advance, few=True)
