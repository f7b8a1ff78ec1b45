"""The live documents of a segment: what a merge takes over of them, and what the deleted ones have.

The live documents of a segment, under the numbers that they get in a new segment, are a run of postings as that which
an `Inverter` sorts: `inverter.merge` joins the runs of several segments and of new documents. Arrays are read a window
at a time, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.errors import invalid
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import ArrayFile, ArrayOnDisk, Column, Columns, Int64s, Mask, Numbers
from searchapp.lucene.index.documents import FILE
from searchapp.lucene.index.inverter import Run
from searchapp.lucene.index.layout import Deletions, FieldSummary, Segment, refuting, require
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.terms import Terms

DIGESTS = "digests"
"""The file with two numbers for each document: the digest of its source."""

DEAD = -1
"""In the place of the new number of a deleted document."""

WINDOW = 1 << 20
"""Postings that are looked at together."""


class LiveDocuments:
    """The documents of a segment that were not deleted, under new numbers from `first` on, in the same order.

    `mask`, of shape `(documents of the segment,)`, marks them.
    """

    def __init__(self, segment: Segment, mask: Mask, first: int = 0) -> None:
        """Open the segment.

        Raises:
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        self.segment = segment
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.first = first
        self._columns = Columns(segment.folder, segment.manifest)
        self._numbers = np.where(mask, np.cumsum(mask, dtype=np.int32) - 1 + first, DEAD).astype(np.int32)

    def require_sound(self, *, whole: bool) -> None:
        """Make sure that the documents can be copied, or that the `whole` segment is as it was written.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        folder, manifest, _deletions = self.segment
        if whole:
            require(folder, manifest)
            return
        with refuting(folder):
            # They are copied past Python, which can compare no checksums then.
            manifest.verify_file(folder, FILE)

    def digests(self) -> NDArray[np.int64]:
        """The digests of the documents, one after the other."""
        return self._columns.column(DIGESTS).all().reshape(-1, 2)[self.mask].reshape(-1)

    def present(self, name: str) -> Numbers:
        """The new numbers of the documents that have a value in a field."""
        numbers: Numbers = self._numbers[self._field(name, "present").all()]
        return numbers[numbers >= 0]

    def norms(self, name: str) -> NDArray[np.uint8]:
        """The code of the length of a text field in each document."""
        norms: NDArray[np.uint8] = self._field(name, "norms").all()[self.mask]
        return norms

    def values(self, name: str) -> tuple[NDArray[Any], Numbers]:
        """The numbers of a field, and the new numbers of their documents."""
        documents = self._numbers[self._field(name, "documents").all()]
        is_live = documents >= 0
        return self._field(name, "values").all()[is_live], documents[is_live]

    def ids(self, scratch: Path) -> Run:
        """The ids as terms of one posting each; what does not fit into memory goes to `scratch`."""
        starts = np.arange(len(self.mask) + 1)
        return self._run("ids", starts, scratch, positional=False)

    def postings(self, field: Field, scratch: Path) -> Run:
        """The postings of a text or keyword field, as `ids`."""
        starts = self._field(field.name, "starts").all()
        return self._run(self._prefix(field.name), starts, scratch, positional=field.is_text)

    def _run(self, prefix: str, starts: Int64s, scratch: Path, *, positional: bool) -> Run:
        characters, term_starts = self._terms(prefix).arrays()
        documents = frequencies = positions = self._columns.column(f"{prefix}.documents")
        position_starts = starts
        if positional:  # elsewhere nobody looks at frequencies and positions
            position_starts = self._columns.column(f"{prefix}.position-starts").all()
            frequencies = self._columns.column(f"{prefix}.frequencies")
            positions = self._columns.column(f"{prefix}.positions")
        if self.first == 0 and self.mask.all():
            arrays_ = documents.all(), frequencies.all(), position_starts, positions.all()
            return Run(characters, term_starts, starts, *arrays_)
        dead_postings, dead_tokens = self._deleted(starts, documents, frequencies if positional else None)
        postings = np.diff(starts) - dead_postings
        tokens = np.diff(position_starts) - dead_tokens if positional else postings
        name = f"{self.segment.folder.name}.{prefix}"
        with ExitStack() as stack:

            def file(part: str, dtype: np.dtype[Any], counts: Int64s) -> ArrayFile:
                return stack.enter_context(ArrayFile(scratch, f"{name}.{part}", dtype, int(counts.sum())))

            new_documents = file("documents", np.dtype(np.int32), postings)
            if positional:
                new_frequencies = file("frequencies", frequencies.dtype, postings)
                new_positions = file("positions", np.dtype(np.int32), tokens)
            place = 0
            for part in _windows(len(documents)):
                numbers = self._numbers.take(documents[part], mode="clip")
                is_live = numbers >= 0
                new_documents.append(numbers[is_live])
                if positional:
                    counts = frequencies[part]
                    new_frequencies.append(counts[is_live])
                    end = place + int(counts.sum(dtype=np.int64))
                    new_positions.append(positions[place:end][np.repeat(is_live, counts)])
                    place = end
        remains = postings > 0
        lengths = np.diff(term_starts)
        parts = ("documents", "frequencies", "positions") if positional else ("documents",) * 3
        of_documents, of_frequencies, of_positions = (
            ArrayOnDisk(scratch, f"{name}.{part}") for part in parts
        )
        return Run(
            characters[np.repeat(remains, lengths)],
            _starts(lengths[remains]),
            _starts(postings[remains]),
            of_documents,
            of_frequencies,
            _starts(tokens[remains]),
            of_positions,
        )

    def _deleted(
        self, starts: Int64s, documents: Column, frequencies: Column | None
    ) -> tuple[Int64s, Int64s]:
        """How many postings and, given the frequencies, tokens each term has in deleted documents, by rank."""
        postings, tokens = np.zeros(len(starts) - 1, np.int64), np.zeros(len(starts) - 1, np.int64)
        if self.mask.all():
            return postings, tokens
        for part in _windows(len(documents)):
            dead = np.flatnonzero(~self.mask.take(documents[part], mode="clip"))
            ranks = np.searchsorted(starts, dead + part.start, side="right") - 1
            np.add.at(postings, ranks, 1)
            if frequencies is not None:
                np.add.at(tokens, ranks, frequencies[part][dead].astype(np.int64))
        return postings, tokens

    def write_deletions(self, folder: Path, schema: Schema) -> Deletions:
        """Write which documents were deleted and what they have of each field, beside the segment that is kept."""
        dead = np.flatnonzero(~self.mask).astype(np.int32)
        if not len(dead):
            return Deletions()
        prefix = f"dead-{self.segment.folder.name}"
        arrays.save(folder, prefix, dead)
        fields = {
            name: self._write_deleted(field, folder, f"{prefix}.{self._prefix(name)}")
            for name, field in schema.fields.items()
        }
        return Deletions(prefix, len(dead), fields)

    def _write_deleted(self, field: Field, folder: Path, prefix: str) -> FieldSummary:
        documents = np.count_nonzero(~self.mask[self._field(field.name, "present").all()])
        if field.is_number:
            return FieldSummary(prefix, int(documents), int(documents))
        frequencies = None
        if field.is_text:
            documents = np.count_nonzero(self._field(field.name, "norms").all()[~self.mask])
            frequencies = self._field(field.name, "frequencies")
        starts = self._field(field.name, "starts").all()
        postings, tokens = self._deleted(starts, self._field(field.name, "documents"), frequencies)
        ranks = np.flatnonzero(postings)
        arrays.save(folder, f"{prefix}.ranks", ranks)
        arrays.save(folder, f"{prefix}.counts", postings[ranks])
        return FieldSummary(prefix, int(documents), int((tokens if field.is_text else postings).sum()))

    def require_other_ids(self, ids: Terms, ranks: Iterable[int]) -> None:
        """Make sure that no document has one of the ids of some ranks.

        Raises:
            EngineRefused: one has.
        """
        known, by_rank = self._terms("ids"), self._columns.column("ids.documents").all()
        for document_id in (ids[rank].decode() for rank in ranks):
            found = known.rank(document_id)
            if found is not None and self.mask[by_rank[found]]:
                raise duplicate(document_id)

    def live_ids(self) -> tuple[Terms, Iterable[int]]:
        """The ids of all documents of the segment, and the ranks of those that were not deleted."""
        by_rank = self._columns.column("ids.documents").all()
        return self._terms("ids"), np.flatnonzero(self.mask[by_rank]).tolist()

    def _terms(self, prefix: str) -> Terms:
        return Terms.of(self._columns.column, prefix)

    def _prefix(self, name: str) -> str:
        return self.segment.manifest.fields[name].prefix

    def _field(self, name: str, part: str) -> Column:
        return self._columns.column(f"{self._prefix(name)}.{part}")


def duplicate(document_id: str) -> Exception:
    """Return the error for two documents that have an id."""
    return invalid(f"two documents have the id {document_id}")


def _windows(length: int) -> Iterator[slice]:
    """Slices that cover this many postings, one after the other."""
    return (slice(first, min(first + WINDOW, length)) for first in range(0, length, WINDOW))


def _starts(counts: Int64s) -> Int64s:
    """Where each of some pieces begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
