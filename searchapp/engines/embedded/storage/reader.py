"""A version opened for searching: every file is open, next to nothing of it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage import verified
from searchapp.engines.embedded.storage.columns import Columns
from searchapp.engines.embedded.storage.documents import Documents
from searchapp.engines.embedded.storage.field_reader import (
    BoundedPostings,
    FieldReader,
    Mask,
    Numbers,
    Postings,
)
from searchapp.engines.embedded.storage.known_ids import known_ids
from searchapp.engines.embedded.storage.layout import Manifest
from searchapp.engines.embedded.storage.terms import Terms
from searchapp.engines.embedded.storage.verified import refuted
from searchapp.errors import Damaged

__all__ = ["BoundedPostings", "FieldReader", "IndexReader", "Mask", "Numbers", "Postings"]


class IndexReader:
    """A version of an index, open; or a part of one, see `part_reader`.

    `first` is the number that its first document has in the index. `live` marks the documents that count, None if all
    do; the others are `dead`, as numbers.
    """

    is_part = False
    first = 0
    dead: Numbers | None = None
    live: Mask | None = None

    def __init__(self, folder: Path, schema: Schema | None = None, manifest: Manifest | None = None) -> None:
        """Open a version, which is verified whole unless it has been since its files were written or changed.

        It is scored by the similarities of the `schema`, which is in all else that which it was made with. Its
        `manifest` is read unless it is given.

        Raises:
            EngineRefused: it is not searchapp's, or a newer searchapp's.
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        self.folder = folder
        self.manifest = manifest or Manifest.read(folder)
        verified_now = verified.require(folder, self.manifest)
        self.info = self.manifest.info
        self.schema = schema or self.manifest.schema
        self.count = self.whole_count = self.info.documents
        self.sources = Documents(folder, has_checksums=self.manifest.has_checksums)
        try:
            columns = Columns(folder, self.manifest)
            if verified_now:
                columns.trust()
            self._open_columns(columns)
        except BaseException as error:
            self.sources.close()
            if isinstance(error, ValueError | KeyError):
                raise refuted(folder, str(error)) from error
            raise
        self._known_ids = known_ids(self.ids, self._ranks, self._by_rank)

    def _open_columns(self, columns: Columns) -> None:
        self.ids = Terms.of(columns.column, "ids")
        self._by_rank = columns.column("ids.documents")
        self._ranks = columns.column("ids.ranks")
        made_with = self.manifest.schema.fields
        self.fields = {
            name: FieldReader(
                columns, field, self.manifest.fields[name], self.count, made_with[name].similarity
            )
            for name, field in self.schema.fields.items()
        }
        lengths = {len(self.ids), len(self._by_rank), len(self._ranks), self.sources.count}
        if lengths != {self.count}:
            raise refuted(self.folder, "its files do not agree on the number of documents")

    @property
    def ranks(self) -> Numbers:
        """Each document's place in the bytewise order of ids, by which equal scores are ordered."""
        return self._ranks.all()

    @property
    def by_rank(self) -> Numbers:
        """The document at each place of the bytewise order of ids."""
        return self._by_rank.all()

    def in_all(self, field: str) -> bool:
        """Whether all documents have a value in a field."""
        return self.fields[field].statistics.documents == self.whole_count

    def document(self, document_id: str) -> int | None:
        """The number of the document with an id."""
        rank = self.ids.rank(document_id)
        return None if rank is None else int(self._by_rank[rank : rank + 1][0])

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents; those that were asked for once are kept."""
        return self._known_ids.of(documents)

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        """The sources of documents."""
        return self.sources.sources(documents.tolist())

    # As a whole, or as a part of one

    @property
    def parts(self) -> Sequence[IndexReader]:
        """All parts of the index."""
        return (self,)

    def everything(self) -> Mask:
        """Marks of all documents that count."""
        return np.ones(self.count, bool) if self.live is None else self.live.copy()

    def sum_of_parts(self, here: int, count: Callable[[IndexReader], int]) -> int:  # noqa: ARG002
        """What is counted `here`, and in the other parts of the index."""
        return here

    # Files

    @property
    def is_there(self) -> bool:
        """Whether the files still have their names, which another version may have, once an index was removed."""
        try:
            return Manifest.read(self.folder).digest == self.manifest.digest
        except Damaged:
            return self.folder.is_dir()

    def reopened(self) -> IndexReader:
        """The same, opened once more."""
        return IndexReader(self.folder, self.schema, self.manifest)

    def verify(self) -> None:
        """Read every file and compare it with the digest it was written with.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        verified.verify(self.folder, self.manifest)

    def close(self) -> None:
        self.sources.close()
