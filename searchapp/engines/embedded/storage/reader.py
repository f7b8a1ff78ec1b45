"""A version opened for searching: every file is open, next to nothing of it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.schema import Field, Schema
from searchapp.engines.embedded.similarity import BM25, FieldStatistics, Float32s
from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.documents import Documents
from searchapp.engines.embedded.storage.layout import FieldSummary, Manifest, damaged
from searchapp.engines.embedded.storage.terms import Terms

WITHOUT_NORM = 1
"""The length code of every document in a field that keeps no lengths, as Lucene has it."""

REMEMBERED_TERMS = 200_000
"""Terms of a field whose rank is kept once it was looked up."""

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: documents ascending, and how often in each."""

    documents: Numbers
    frequencies: Float32s


class FieldReader:
    """One field of a version. A keyword field has no frequencies, positions and norms; a number no terms."""

    def __init__(self, folder: Path, field: Field, summary: FieldSummary, documents: int) -> None:
        self.field = field
        self.documents = documents
        self.statistics = FieldStatistics(summary.documents, summary.tokens)

        def load(part: str) -> NDArray[Any]:
            return arrays.load(folder, f"{summary.prefix}.{part}")

        self.present: Numbers = load("present")
        self._documents: Numbers = load("documents")
        if field.is_number:
            self._values = load("values")
            return
        self.terms = Terms.open(folder, summary.prefix)
        self._starts = load("starts")
        self._ranks: dict[str, int | None] = {}
        self.similarity = field.similarity or BM25()
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        if field.is_text:
            self.norms = load("norms")
            self._frequencies = load("frequencies")
            self._position_starts = load("position-starts")
            self._positions: Numbers = load("positions")

    def rank(self, term: str) -> int | None:
        """The rank of a term in the field's dictionary, None when it does not occur."""
        try:
            return self._ranks[term]
        except KeyError:
            rank = self.terms.rank(term)
            if len(self._ranks) < REMEMBERED_TERMS:
                self._ranks[term] = rank
            return rank

    def document_frequency(self, term: str) -> int:
        rank = self.rank(term)
        return 0 if rank is None else int(self._starts[rank + 1] - self._starts[rank])

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        """The documents that have a term of one of the ranks; a document may come several times."""
        pieces = [self._documents[self._starts[rank] : self._starts[rank + 1]] for rank in ranks]
        return self._checked(np.concatenate(pieces)) if pieces else np.empty(0, np.int32)

    def postings(self, term: str) -> Postings:
        rank = self.rank(term)
        if rank is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        part = slice(self._starts[rank], self._starts[rank + 1])
        documents = self._checked(self._documents[part])
        if not self.field.is_text:
            return Postings(documents, np.ones(len(documents), np.float32))
        return Postings(documents, self._frequencies[part].astype(np.float32))

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, NDArray[np.int64]]:
        """The postings of several terms, one after the other, and how many there are of each."""
        ranks = [rank for rank in map(self.rank, terms) if rank is not None]
        starts, ends = self._starts[ranks].tolist(), self._starts[[rank + 1 for rank in ranks]].tolist()
        parts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        counts = np.zeros(len(terms), np.int64)
        known = [place for place, term in enumerate(terms) if self.rank(term) is not None]
        counts[known] = [end - start for start, end in zip(starts, ends, strict=True)]
        documents = self._checked(_joined(self._documents, parts))
        if not self.field.is_text:
            return Postings(documents, np.ones(len(documents), np.float32)), counts
        return Postings(documents, _joined(self._frequencies, parts).astype(np.float32)), counts

    def positions(self, term: str, among: Numbers) -> tuple[Numbers, Numbers]:
        """Document and position of each occurrence of a term in some documents, in this order, ascending."""
        rank = self.rank(term)
        if rank is None:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        part = slice(self._starts[rank], self._starts[rank + 1])
        documents, frequencies = (
            self._checked(self._documents[part]),
            self._frequencies[part].astype(np.int64),
        )
        positions = self._positions[self._position_starts[rank] : self._position_starts[rank + 1]]
        wanted = np.isin(documents, among, assume_unique=True)
        return np.repeat(documents[wanted], frequencies[wanted]), positions[np.repeat(wanted, frequencies)]

    def inverses(self, documents: Numbers) -> Float32s:
        """The norm inverse of BM25 for each of some documents."""
        if not self.field.is_text:
            return np.full(len(documents), self.norm_inverses[WITHOUT_NORM], np.float32)
        return np.asarray(self.norm_inverses[self.norms[documents]])

    def length_code(self, document: int) -> int:
        """The code of the field's length in a document, see `similarity.LENGTHS`."""
        return int(self.norms[document]) if self.field.is_text else WITHOUT_NORM

    def between(self, low: Any, high: Any) -> Numbers:
        """The documents with a number from `low` to `high`, both included."""
        first, end = np.searchsorted(self._values, low, "left"), np.searchsorted(self._values, high, "right")
        return self._checked(self._documents[first:end])

    def smallest(self, documents: NDArray[Any]) -> NDArray[np.float64]:
        """The smallest number that each of some documents has in the field, NaN where it has none."""
        of_all = np.full(self.documents, np.nan)
        of_all[self._checked(self._documents)[::-1]] = self._values[::-1]  # the first one is written last
        return np.asarray(of_all[documents])

    def _checked(self, documents: Numbers) -> Numbers:
        """The same documents, if they exist: what counts into arrays must not count beside them."""
        if len(documents) and not (documents.min() >= 0 and documents.max() < self.documents):
            raise IndexError(f"{self.field.name} names a document that does not exist")
        return documents


def _joined(values: NDArray[Any], parts: Sequence[slice]) -> NDArray[Any]:
    return np.concatenate([values[part] for part in parts]) if parts else values[:0]


class IndexReader:
    """A version of an index, open.

    `ranks` gives each document's place in the bytewise order of ids, by which equal scores are ordered.
    """

    def __init__(self, folder: Path) -> None:
        """Open a version.

        Raises:
            EngineRefused: it is not searchapp's, or a newer searchapp's.
            DataError: it is damaged.
            FileNotFoundError: it is gone, for a newer version serves by now.
        """
        self.folder = folder
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        self.manifest = Manifest.read(folder)
        self.info = self.manifest.info
        self.schema = Schema.of(self.manifest.mapping)
        self.count = self.info.documents
        try:
            self.sources = Documents(folder)
            self.ids = Terms.open(folder, "ids")
            self._by_rank: Numbers = arrays.load(folder, "ids.documents")
            self.ranks: Numbers = arrays.load(folder, "ids.ranks")
            self.fields = {
                name: FieldReader(folder, field, self.manifest.fields[name], self.count)
                for name, field in self.schema.fields.items()
            }
        except (OSError, ValueError, KeyError, sqlite3.Error) as error:
            raise damaged(folder, str(error)) from error
        lengths = {len(self.ids), len(self._by_rank), len(self.ranks), self.sources.count}
        if lengths != {self.count}:
            raise damaged(folder, "its files do not agree on the number of documents")
        self._known_ids: NDArray[np.object_] = np.full(self.count, None, object)

    def document(self, document_id: str) -> int | None:
        """The number of the document with an id."""
        rank = self.ids.rank(document_id)
        return None if rank is None else int(self._by_rank[rank])

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents; those that were asked for once are kept."""
        ids = self._known_ids[documents]
        for place in np.flatnonzero(ids == None):  # noqa: E711  # elementwise
            document = documents[place]
            ids[place] = self._known_ids[document] = self.ids[int(self.ranks[document])].decode()
        return list(ids)

    def close(self) -> None:
        self.sources.close()
