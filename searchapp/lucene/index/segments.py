"""Reuse of segments when a collection changes.

`CollectionDiff` compares documents with those of the index by their digests, while the collection is read.
`count_kept` is the merge policy: a large segment with few deletions and few documents in smaller segments is kept;
all others are merged with the new documents.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from searchapp.lucene import analysis
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import IndexReplaced, Refused, invalid
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import (
    ArrayFile,
    ArrayReader,
    Int64s,
    Mask,
    Numbers,
    StoredArray,
    StoredArrays,
    find_sorted,
    marked,
)
from searchapp.lucene.index.documents import DocumentStore, open_documents, stored_text
from searchapp.lucene.index.dynamic import FieldGuesser
from searchapp.lucene.index.index_settings import without_similarities
from searchapp.lucene.index.layout import (
    Deletions,
    FieldSummary,
    IndexManifest,
    NestedSummary,
    Segment,
    digest_json,
)
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.packed import Sliced
from searchapp.lucene.index.postings import PostingsRun, StoredPostings, offsets, open_postings
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.records import Document
from searchapp.lucene.vectors import VECTORS

_log = logging.getLogger("searchapp.requests")

SMALL_SEGMENT = 20_000  # a smaller segment is merged, which takes hardly longer than keeping it

# Per deletion, and per document in smaller segments, a kept segment has at least this many documents.
KEPT_SHARE = 64

CHUNK = 4096  # documents looked up at a time

BUFFER_BYTES = 64 << 20  # memory for new documents; if they need more, the collection is read again

WINDOW = 1 << 20  # postings read at a time

DIGESTS = "digests"  # the array of digests, two numbers per document

DIGEST_BYTES = 16

DELETED = -1  # the new number of a deleted document

_MARSHAL_VERSION = 2  # later versions write bytes that depend on the references to a value


def document_bytes(document: Document) -> bytes:
    """Return bytes that differ for documents with different stored texts.

    Another version of Python may write other bytes, which causes a new analysis of all documents.
    """
    values: Any = document.id, document.text, document.fields
    try:
        return marshal.dumps(values, _MARSHAL_VERSION)
    except ValueError:  # for example a value of a subclass of str
        # The writer rejects lone surrogates later.
        return b"\0" + stored_text(document.source()).encode("utf-8", "surrogatepass")


def digest_of(document: Document) -> bytes:
    """Return the digest of a document, `DIGEST_BYTES` long."""
    return hashlib.blake2b(document_bytes(document), digest_size=DIGEST_BYTES).digest()


class LiveSegment(NamedTuple):
    """A segment, and a mask of its documents that the collection still contains."""

    segment: Segment
    mask: Mask

    @property
    def live(self) -> int:
        return int(np.count_nonzero(self.mask))


@dataclass(frozen=True)
class SegmentPlan:
    """The use of the live version's segments in a new version."""

    manifest: IndexManifest
    kept: Sequence[LiveSegment]
    merged: Sequence[LiveSegment]
    is_new: Mask  # documents of the collection to analyze; later documents are analyzed too
    new_documents: Sequence[Document] | None = (
        None  # documents to analyze; None if they exceed `BUFFER_BYTES`
    )
    left_out: int = 0  # documents of all segments that the collection lacks

    @property
    def version(self) -> str:
        return self.manifest.folder.name

    @property
    def analyzed(self) -> int:
        return int(np.count_nonzero(self.is_new))

    @property
    def documents(self) -> int:
        """The number of documents that need no analysis."""
        return len(self.is_new) - self.analyzed

    @classmethod
    def appending(cls, manifest: IndexManifest, count: int) -> SegmentPlan:
        """Return the plan for a version that adds `count` documents to the live one."""
        columns = StoredArrays(manifest)
        live = []
        for segment in manifest.segments():
            mask = np.ones(segment.manifest.documents, bool)
            if segment.deletions.documents:
                mask[columns.open(segment.deletions.prefix).all()] = False
            live.append(LiveSegment(segment, mask))
        return cls.of(manifest, live, count, np.empty(0, bool))

    @classmethod
    def of(
        cls, manifest: IndexManifest, segments: Sequence[LiveSegment], new: int, is_new: Mask, **details: Any
    ) -> SegmentPlan:
        """Apply the merge policy, see `count_kept`."""
        live = sorted(
            (segment for segment in segments if segment.live), key=lambda segment: -len(segment.mask)
        )
        count = count_kept(live, new)
        return cls(manifest, live[:count], live[count:], is_new, **details)

    def new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents to analyze; read `documents` only if they are not in memory."""
        if self.new_documents is not None:
            yield from self.new_documents
            return
        for number, document in enumerate(documents):
            if number >= len(self.is_new) or self.is_new[number]:
                yield document

    def open(self) -> tuple[list[LiveDocuments], list[LiveDocuments]]:
        """Open the live documents of the kept and of the merged segments, numbered in this order.

        Raises:
            IndexReplaced: the live version has changed since the comparison.
        """
        live = IndexManifest.read(self.manifest.folder)  # a rebuilt index reuses the names of versions
        if live.digest != self.manifest.digest:
            raise IndexReplaced(live.version)
        kept = [LiveDocuments(*live_segment) for live_segment in self.kept]
        for documents in kept:
            documents.segment.manifest.require_verified()  # a new version must not contain damage
        merged: list[LiveDocuments] = []
        for live_segment in self.merged:
            merged.append(LiveDocuments(*live_segment, merged[-1] if merged else None))
        return kept, merged


def count_kept(segments: Sequence[LiveSegment], new: int) -> int:
    """Return how many of the segments, sorted by size descending, are kept beside `new` documents."""
    smaller = new + sum(segment.live for segment in segments)
    for number, segment in enumerate(segments):
        size = len(segment.mask)
        smaller -= segment.live
        if size < SMALL_SEGMENT or max(size - segment.live, smaller) > size // KEPT_SHARE:
            return number
    return len(segments)


class CollectionDiff:
    """Compares the documents of a collection with the live version while they are read."""

    def __init__(self, manifest: IndexManifest, mapping: Mapping[str, Any]) -> None:
        self._manifest = manifest
        self._segments = manifest.segments()
        # Stored impacts do not bound the scores of another similarity.
        self._may_keep = digest_json(mapping) == digest_json(manifest.mapping)
        digests = np.concatenate(
            [StoredArrays(segment.manifest).open(DIGESTS).all() for segment in self._segments]
        )
        self._order = np.argsort(digests[0::2], kind="stable").astype(np.int32)
        self._first, self._second = digests[0::2][self._order], digests[1::2][self._order]
        self._is_live = np.zeros(len(self._order), bool)
        self._pending: list[Document] = []
        self._is_new: list[Mask] = []
        self._new: list[Document] | None = []
        self._new_bytes = 0
        self._guesser = FieldGuesser(mapping)

    @classmethod
    def of(cls, folder: Path, mapping: Mapping[str, Any]) -> CollectionDiff | None:
        """Return a comparison with the version in a folder; None if a version with this mapping can't reuse it.

        Raises:
            LuceneError: the version can't be read.
        """
        manifest = IndexManifest.read(folder)
        # Postings do not depend on the similarity; a merge computes impacts anew.
        requested, stored = (
            digest_json(without_similarities(mapping_)) for mapping_ in (mapping, manifest.mapping)
        )
        if manifest.analysis != analysis.identity():
            why = "it was written with another version of searchapp, Python or regex"
        elif requested != stored:
            why = "it has another mapping"
        elif not manifest.total:
            why = "it has no documents"
        else:
            return cls(manifest, mapping)
        _log.info("%s: no document can be reused, because %s", manifest.version, why)
        return None

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            with suppress(Refused):  # the writer rejects the document
                self._guesser.read_all([document])
            self._pending.append(document)
            if len(self._pending) == CHUNK:
                self._look_up()
            yield document
        self._look_up()

    @property
    def unchanged(self) -> int:
        return int(np.count_nonzero(self._is_live))

    def carried(self, *, merged: bool = False) -> SegmentPlan | None:
        """Return the plan after the comparison, or None if all documents have changed; `merged` keeps no segment."""
        if not self._is_live.any():
            _log.info("%s: no document can be reused, because all have changed", self._manifest.folder.name)
            return None
        if self._guesser.added != self._manifest.added:
            _log.info(
                "%s: no document can be reused, because documents add other fields to the mapping",
                self._manifest.folder.name,
            )
            return None
        is_new = np.concatenate([np.empty(0, bool), *self._is_new])
        ends = np.cumsum([segment.manifest.documents for segment in self._segments])
        masks = np.split(self._is_live, ends[:-1])
        plan = SegmentPlan.of(
            self._manifest,
            list(map(LiveSegment, self._segments, masks)),
            int(np.count_nonzero(is_new)),
            is_new,
            new_documents=self._new,
            left_out=int(np.count_nonzero(~self._is_live)),
        )
        if self._may_keep and not merged:
            return plan
        return replace(plan, kept=[], merged=[*plan.kept, *plan.merged])

    def _look_up(self) -> None:
        if not self._pending:
            return
        digests = np.frombuffer(b"".join(map(digest_of, self._pending)), np.int64).reshape(-1, 2)
        indices, is_known = find_sorted(self._first, digests[:, 0])
        is_known &= self._second[indices] == digests[:, 1]
        numbers = np.where(is_known, self._order[indices], np.int32(DELETED))
        is_known &= ~self._is_live[numbers]  # the writer rejects duplicates
        known, first = np.unique(numbers[is_known], return_index=True)
        is_new = np.ones(len(numbers), bool)
        is_new[np.flatnonzero(is_known)[first]] = False
        self._is_live[known] = True
        self._is_new.append(is_new)
        if self._new is not None:
            new = [self._pending[index] for index in np.flatnonzero(is_new)]
            self._new += new
            self._new_bytes += sum(len(document_bytes(document)) for document in new)
            if self._new_bytes > BUFFER_BYTES:
                self._new = None
        self._pending.clear()


class LiveDocuments:
    """The live documents of a segment, renumbered in the same order, after those of a previous segment.

    The nested objects of each path are `LiveNested`. Arrays are read in windows, in bounded memory.
    """

    def __init__(self, segment: Segment, mask: Mask, previous: LiveDocuments | None = None) -> None:
        self._open(segment, StoredArrays(segment.manifest), segment.manifest.fields, mask, previous)
        self.nested: dict[str, LiveNested] = {}
        for path, type_ in segment.manifest.schema.nested.items():
            parents = self.nested.get(type_.parent, self)
            self.nested[path] = LiveNested(
                segment.manifest.nested[path], parents, previous.nested[path] if previous else None
            )

    def _open(
        self,
        segment: Segment,
        stored: StoredArrays,
        summaries: Mapping[str, FieldSummary],
        mask: Mask,
        previous: LiveDocuments | None,
    ) -> None:
        self.segment = segment
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.first: int = previous.first + previous.count if previous else 0
        self.summaries = summaries
        self._arrays = stored
        numbers = np.cumsum(mask, dtype=np.int32) - 1 + self.first
        self._numbers = np.where(mask, numbers, DELETED).astype(np.int32)

    def documents(self) -> DocumentStore:
        """Open the documents, deleted ones included, under their old numbers."""
        return open_documents(self.segment.manifest, self._arrays)

    def digests(self) -> Int64s:
        """Return the digests, shape `(2 * count,)`."""
        return self._arrays.open(DIGESTS).all().reshape(-1, 2)[self.mask].reshape(-1)

    def present(self, name: str) -> Numbers:
        """Return the new numbers of the documents with a value in a field."""
        numbers: Numbers = self._numbers[self._present(name)]
        return numbers[numbers >= 0]

    def _present(self, name: str) -> Numbers:
        stored = self._field(name, "present").all()
        return marked(stored, len(self.mask)) if self._arrays.is_packed else stored

    def norms(self, name: str) -> NDArray[np.uint8]:
        """Return the length codes of a text field, shape `(count,)`."""
        norms: NDArray[np.uint8] = self._field(name, "norms").all()[self.mask]
        return norms

    def values(self, name: str, *parts: str) -> list[NDArray[Any]]:
        """Return the new numbers of the documents of a field's values, and the arrays of the values."""
        documents = self._numbers[self._field(name, "documents").all()]
        is_live = documents >= 0
        return [documents[is_live], *(self._field(name, part).all()[is_live] for part in parts)]

    def vectors(self, field: Field) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of the vectors of a field."""
        stored, width = self._field(field.name, VECTORS), field.vector_bytes
        is_live = self.mask[self._present(field.name)]
        for part in _windows(len(stored)):
            yield stored[part][np.repeat(is_live, width)[part]]

    def ids(self, scratch: Path) -> PostingsRun:
        """Return the ids as terms with one posting each; store large arrays in the folder `scratch`."""
        documents = self._arrays.open("ids.documents")
        starts = StoredArray(np.arange(len(self.mask) + 1))
        return self._run(
            "ids", StoredPostings(starts, documents, documents, documents), scratch, positional=False
        )

    def postings(self, field: Field, scratch: Path) -> PostingsRun:
        """Return the postings of a text or keyword field; store large arrays in the folder `scratch`."""
        return self._run(
            self._prefix(field.name), self._postings(field), scratch, positional=field.is_counted
        )

    def _postings(self, field: Field) -> StoredPostings:
        return open_postings(
            self._arrays.open,
            self._prefix(field.name),
            self.summaries[field.name].tokens if field.is_counted else None,
            is_packed=self._arrays.is_packed,
        )

    def _run(self, prefix: str, postings: StoredPostings, scratch: Path, *, positional: bool) -> PostingsRun:
        characters, term_starts = self._terms(prefix).arrays()
        starts, documents = postings.starts.all(), postings.documents
        # A field without positions substitutes its documents, which `PostingsRun` does not read then.
        frequencies: Sliced = documents
        positions: Sliced = documents
        position_starts = starts
        if positional:
            frequencies, positions = postings.frequencies, postings.positions
            position_starts = postings.position_starts()
        if self.first == 0 and self.mask.all():
            return PostingsRun(
                characters, term_starts, starts, documents, frequencies, position_starts, positions
            )
        deleted, deleted_tokens = self._count_deleted(starts, documents, frequencies if positional else None)
        counts = np.diff(starts) - deleted
        tokens = np.diff(position_starts) - deleted_tokens if positional else counts
        name = f"{self.segment.folder.name}.{prefix}"
        with ExitStack() as stack:

            def file(part: str, dtype: DTypeLike, counts: Int64s) -> ArrayFile:
                return stack.enter_context(ArrayFile(scratch, f"{name}.{part}", dtype, int(counts.sum())))

            new_documents = file("documents", np.int32, counts)
            if positional:
                new_frequencies = file("frequencies", frequencies.dtype, counts)
                new_positions = file("positions", positions.dtype, tokens)
            first_position = 0
            for part in _windows(len(documents)):
                numbers = self._numbers.take(documents[part], mode="clip")
                is_live = numbers >= 0
                new_documents.append(numbers[is_live])
                if positional:
                    repeats = frequencies[part]
                    new_frequencies.append(repeats[is_live])
                    end = first_position + int(repeats.sum(dtype=np.int64))
                    new_positions.append(positions[first_position:end][np.repeat(is_live, repeats)])
                    first_position = end
        remains = counts > 0
        lengths = np.diff(term_starts)
        parts = ("documents", "frequencies", "positions") if positional else ("documents",) * 3
        run_documents, run_frequencies, run_positions = (
            ArrayReader(scratch, f"{name}.{part}") for part in parts
        )
        return PostingsRun(
            characters[np.repeat(remains, lengths)],
            offsets(lengths[remains]),
            offsets(counts[remains]),
            run_documents,
            run_frequencies,
            offsets(tokens[remains]),
            run_positions,
        )

    def _count_deleted(
        self, starts: Int64s, documents: Sliced, frequencies: Sliced | None
    ) -> tuple[Int64s, Int64s]:
        """Count postings and, given the frequencies, tokens in deleted documents, by rank of term."""
        postings, tokens = np.zeros(len(starts) - 1, np.int64), np.zeros(len(starts) - 1, np.int64)
        if self.mask.all():
            return postings, tokens
        for part in _windows(len(documents)):
            deleted = np.flatnonzero(~self.mask.take(documents[part], mode="clip"))
            ranks = np.searchsorted(starts, deleted + part.start, side="right") - 1
            np.add.at(postings, ranks, 1)
            if frequencies is not None:
                np.add.at(tokens, ranks, frequencies[part][deleted].astype(np.int64))
        return postings, tokens

    def write_deletions(self, folder: Path, schema: Schema) -> Deletions:
        """Write the deleted documents and their field statistics to the version that keeps the segment."""
        deleted = np.flatnonzero(~self.mask).astype(np.int32)
        if not len(deleted):
            return Deletions()
        prefix = f"dead-{self.segment.folder.name}"
        arrays.save(folder, prefix, deleted)
        nested = {
            path: documents._write_deleted_fields(folder, prefix, schema)
            for path, documents in self.nested.items()
        }
        return Deletions(prefix, len(deleted), self._write_deleted_fields(folder, prefix, schema), nested)

    def _write_deleted_fields(self, folder: Path, prefix: str, schema: Schema) -> dict[str, FieldSummary]:
        return {
            name: self._write_deleted(schema.fields[name], folder, f"{prefix}.{summary.prefix}")
            for name, summary in self.summaries.items()
        }

    def _write_deleted(self, field: Field, folder: Path, prefix: str) -> FieldSummary:
        documents = int(np.count_nonzero(~self.mask[self._present(field.name)]))
        if not field.has_postings:
            return FieldSummary(prefix, documents, documents)
        stored = self._postings(field)
        frequencies = None
        if field.is_counted:
            documents = int(np.count_nonzero(self._field(field.name, "norms").all()[~self.mask]))
            frequencies = stored.frequencies
        postings, tokens = self._count_deleted(stored.starts.all(), stored.documents, frequencies)
        ranks = np.flatnonzero(postings)
        arrays.save(folder, f"{prefix}.ranks", ranks)
        arrays.save(folder, f"{prefix}.counts", postings[ranks])
        return FieldSummary(prefix, documents, int((tokens if field.is_counted else postings).sum()))

    def require_other_ids(self, ids: Terms, ranks: Iterable[int]) -> None:
        """Check that no live document has an id of the given ranks."""
        known, by_rank = self._terms("ids"), self._arrays.open("ids.documents").all()
        for document_id in (ids[rank].decode() for rank in ranks):
            rank = known.rank(document_id)
            if rank is not None and self.mask[by_rank[rank]]:
                raise duplicate_id(document_id)

    def live_ids(self) -> tuple[Terms, Iterable[int]]:
        by_rank = self._arrays.open("ids.documents").all()
        return self._terms("ids"), np.flatnonzero(self.mask[by_rank]).tolist()

    def _terms(self, prefix: str) -> Terms:
        return Terms.open(self._arrays.open, prefix, is_packed=self._arrays.is_packed)

    def _prefix(self, name: str) -> str:
        return self.summaries[name].prefix

    def _field(self, name: str, part: str) -> StoredArray:
        return self._arrays.open(f"{self._prefix(name)}.{part}")


class LiveNested(LiveDocuments):
    """The nested objects of a path in the live documents of a segment."""

    def __init__(self, summary: NestedSummary, outer: LiveDocuments, previous: LiveDocuments | None) -> None:
        """Select the objects inside `outer`, the live documents or nested objects of the parent path."""
        self._outer = outer
        self._prefix_of_path = summary.prefix
        self._parents = outer._arrays.open(f"{summary.prefix}.parents").all()
        self._open(outer.segment, outer._arrays, summary.fields, outer.mask[self._parents], previous)

    def parents(self) -> Numbers:
        """Return the new numbers of the parents, shape `(count,)`."""
        parents: Numbers = self._outer._numbers[self._parents[self.mask]]
        return parents

    def places(self) -> Numbers:
        """Return the place of each object in its document's block, shape `(count,)`."""
        places: Numbers = self._arrays.open(f"{self._prefix_of_path}.places").all()[self.mask]
        return places


def duplicate_id(document_id: str) -> Refused:
    """Return the error for two documents with the same id."""
    return invalid(f"two documents have the id {document_id}")


def _windows(length: int) -> Iterator[slice]:
    return (slice(first, min(first + WINDOW, length)) for first in range(0, length, WINDOW))
