"""Write a version: documents in, complete files out, with one writer for each field."""

from __future__ import annotations

import shutil
import sqlite3
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from searchapp import processes
from searchapp.files import NESTED_TOO_DEEP
from searchapp.lucene import analysis
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.errors import PatternTimeout, invalid, unsupported
from searchapp.lucene.index import arrays, impacts, layout
from searchapp.lucene.index.arrays import Numbers, looked_through
from searchapp.lucene.index.documents import DocumentsWriter, stored_text
from searchapp.lucene.index.inverter import Inverter, PackedTokens, merge
from searchapp.lucene.index.layout import CHECKSUMS, FieldSummary, KeptSegment, Manifest
from searchapp.lucene.index.mapping import FLOATS, Field, Schema, indexed_text, listed, number
from searchapp.lucene.index.merge import DIGESTS, LiveDocuments, duplicate
from searchapp.lucene.index.segments import SegmentPlan, digest_of
from searchapp.lucene.index.terms import Terms
from searchapp.lucene.similarity import BM25, FieldStatistics, encode_lengths
from searchapp.model import Document, IndexInfo
from searchapp.progress import Advance, no_progress
from searchapp.text import counted

Entry = Any
"""What a field keeps of a document, see `entry` of its writer; None when the document has no value."""

Packed = Any
"""What a field keeps of a batch of documents, see `packed` of its writer."""

Joined = tuple[list[str], list[int]]
"""Terms and positions of a document's texts."""

LONGEST_TERM = 32766
"""Bytes of the longest term that Lucene takes; it refuses the document otherwise."""

LAST_POSITION = 2**31 - 1 - 128
"""The last position at which Lucene takes a term."""


class FieldWriter:
    """Takes the values of one field and writes its files at the end."""

    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        self.field = field
        self._prefix = prefix
        self._folder = folder
        self._scratch = scratch
        self._present = array("i")

    def entry(self, values: list[Any]) -> Entry:
        """What is kept of the values of a document: their tokens, terms or numbers; None for nothing.

        Raises:
            TypeError, OverflowError: a value is not of the field's type.
        """
        raise NotImplementedError

    def packed(self, entries: list[tuple[int, Any]]) -> Packed:
        """The entries of documents, which come with their places in a batch, as they are sent and added."""
        return entries

    def add(self, first: int, packed: Packed) -> None:
        """Keep what was packed of a batch whose first document has this number."""
        raise NotImplementedError

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        """Write the files of the field for so many documents, with those of `merged` segments, which come first."""
        raise NotImplementedError

    def _finish_present(self, merged: Sequence[LiveDocuments]) -> int:
        """Write which documents have a value; returns how many."""
        of_merged = [one.present(self.field.name) for one in merged]
        present = np.concatenate([*of_merged, np.frombuffer(self._present, np.int32)])
        self._save("present", present)
        return len(present)

    def _merge(self, inverter: Inverter, merged: Sequence[LiveDocuments]) -> tuple[int, int]:
        """Write the postings; returns the number of postings and that of tokens."""
        runs = [*(one.postings(self.field, self._scratch) for one in merged), *inverter.runs()]
        return merge(runs, self._folder, self._prefix, positional=self.field.is_text)

    def _save(self, part: str, values: np.ndarray[Any, Any]) -> None:
        arrays.save(self._folder, f"{self._prefix}.{part}", values)


class NotIndexable(Exception):
    """The document at a place of a batch can't be indexed."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


class _TextWriter(FieldWriter):
    def __init__(
        self, field: Field, prefix: str, folder: Path, scratch: Path, analyzers: AnalysisRegistry
    ) -> None:
        super().__init__(field, prefix, folder, scratch)
        assert field.analyzer is not None
        self._analyzer = analyzers.analyzer(field.analyzer)
        self._inverter = Inverter(scratch, prefix)
        self._lengths = array("i")

    def entry(self, values: list[Any]) -> list[str] | Joined:
        """The texts; their tokens, if these are not found for many documents at once."""
        field = self.field
        texts = [value if isinstance(value, str) else indexed_text(value, field) for value in values]
        return texts if self._analyzer.bulk else self._joined(texts)

    def _joined(self, texts: list[str]) -> Joined:
        terms, positions = self._analyzer.joined(texts)
        if positions and positions[-1] > LAST_POSITION:
            raise OverflowError(f"{self.field.name} has a term at a position beyond {LAST_POSITION:,}")
        return terms, positions

    def packed(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers]:
        """The tokens, and the length of the field in each document: stacked tokens do not make it longer."""
        tokens, lengths = self._in_bulk(entries) or self._one_by_one(entries)
        _refuse_immense(tokens, self.field)
        return tokens, lengths

    def _in_bulk(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers] | None:
        bulk = self._analyzer.bulk
        if bulk is None or any(len(texts) != 1 for _, texts in entries):
            return None
        found = bulk.tokens([texts[0] for _, texts in entries])
        if found is None:
            return None
        documents = np.array([place for place, _ in entries], np.int32)
        tokens = PackedTokens(found.vocabulary, found.terms, found.positions, documents, found.counts)
        return tokens, found.counts

    def _one_by_one(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers]:
        documents: list[tuple[int, list[str], list[int]]] = []
        for place, entry in entries:
            try:
                terms, positions = self._joined(entry) if self._analyzer.bulk else entry
            except OverflowError as error:
                raise NotIndexable(place, str(error)) from error
            documents.append((place, terms, positions))
        lengths = [len(set(positions)) for _place, _terms, positions in documents]
        return PackedTokens.of(documents), np.array(lengths, np.int32)

    def add(self, first: int, packed: tuple[PackedTokens, Numbers]) -> None:
        tokens, lengths = packed
        self._present.frombytes((tokens.documents + np.int32(first)).tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._inverter.add(tokens, first)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        self._finish_present(merged)
        norms = np.zeros(documents, np.uint8)
        for one in merged:
            norms[one.first : one.first + one.count] = one.norms(self.field.name)
        present = np.frombuffer(self._present, np.int32)
        norms[present] = encode_lengths(np.frombuffer(self._lengths, np.int32).astype(np.int64))
        self._save("norms", norms)
        _postings, tokens = self._merge(self._inverter, merged)
        # Only the length 0 has the code 0.
        summary = FieldSummary(self._prefix, int(np.count_nonzero(norms)), tokens)
        statistics = FieldStatistics(summary.documents, summary.tokens)
        inverses = (self.field.similarity or BM25()).norm_inverses(statistics)
        impacts.write(self._folder, self._prefix, norms, inverses)
        return summary


class _KeywordWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._inverter = Inverter(scratch, prefix)

    def entry(self, values: list[Any]) -> list[str]:
        """The terms."""
        return [indexed_text(value, self.field) for value in values]

    def packed(self, entries: list[tuple[int, list[str]]]) -> PackedTokens:
        tokens = PackedTokens.of((place, terms, range(len(terms))) for place, terms in entries)
        _refuse_immense(tokens, self.field)
        return tokens

    def add(self, first: int, packed: PackedTokens) -> None:
        self._present.frombytes((packed.documents + np.int32(first)).tobytes())
        self._inverter.add(packed, first)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:  # noqa: ARG002
        present = self._finish_present(merged)
        postings, _tokens = self._merge(self._inverter, merged)
        return FieldSummary(self._prefix, present, postings)


class _NumberWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._values = array("d" if field.type in FLOATS else "q")
        self._documents = array("i")

    def entry(self, values: list[Any]) -> list[Any] | None:
        """The numbers."""
        numbers = [number(value, self.field) for value in values]
        return [one for one in numbers if one is not None] or None

    def add(self, first: int, packed: list[tuple[int, list[Any]]]) -> None:
        for place, numbers in packed:
            self._present.append(first + place)
            self._values.extend(numbers)
            self._documents.extend([first + place] * len(numbers))

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:  # noqa: ARG002
        of_merged = [one.values(self.field.name) for one in merged]
        values = np.concatenate(
            [*(some for some, _of in of_merged), np.frombuffer(self._values, self._values.typecode)]
        )
        of_values = np.concatenate(
            [*(of for _some, of in of_merged), np.frombuffer(self._documents, np.int32)]
        )
        order = np.lexsort((of_values, ~np.signbit(values), values))  # -0.0 before 0.0, as Lucene has them
        self._save("values", values[order])
        self._save("documents", of_values[order])
        present = self._finish_present(merged)
        return FieldSummary(self._prefix, present, present)


def field_writer(
    field: Field, prefix: str, folder: Path, scratch: Path, analyzers: AnalysisRegistry
) -> FieldWriter:
    """The writer of a field; what it puts aside on the way goes to `scratch`."""
    if field.is_text:
        return _TextWriter(field, prefix, folder, scratch, analyzers)
    if field.is_number:
        return _NumberWriter(field, prefix, folder, scratch)
    return _KeywordWriter(field, prefix, folder, scratch)


def _refuse_immense(tokens: PackedTokens, field: Field) -> None:
    if max(map(len, tokens.vocabulary), default=0) * 4 <= LONGEST_TERM:
        return
    for rank, term in enumerate(tokens.vocabulary):
        if len(term.encode(errors="surrogatepass")) > LONGEST_TERM:
            at = int(np.flatnonzero(tokens.terms == rank)[0])
            place = int(np.searchsorted(np.cumsum(tokens.counts), at, "right"))
            problem = f"{field.name} has a term of more than {LONGEST_TERM} bytes"
            raise NotIndexable(int(tokens.documents[place]), problem)


SCRATCH = "scratch"
BATCH_DOCUMENTS = 256
FEW_BATCHES = 8
"""Where fewer change, they are analyzed here: to fork the process, which knows all documents, takes longer."""

COPIED_DOCUMENTS = 10_000
"""Documents of a merged segment that are copied at a time."""

Indexed = tuple[str, dict[str, Any]]
"""The id of a document and its source."""

LONGEST_ID = 512
"""Bytes of an id, as in Elasticsearch."""


class IndexWriter:
    """Writes a version into an empty folder: a segment of merged and new documents, and which others are kept."""

    def __init__(
        self,
        folder: Path,
        mapping: Mapping[str, Any],
        schema: Schema,
        analyzers: AnalysisRegistry,
        plan: SegmentPlan | None = None,
    ) -> None:
        """Prepare to write.

        By a `plan` only new documents are analyzed; what it
        names of the version that serves is opened: errors are those of `SegmentPlan.opened`.
        """
        self._folder = folder
        self._plan = plan
        self._kept, self._merged = plan.opened() if plan else ([], [])
        self._mapping = mapping
        self._schema = schema
        self._scratch = folder / SCRATCH
        self._scratch.mkdir()
        self._documents = DocumentsWriter(folder)
        self._ids = Inverter(self._scratch, "ids")
        self._fields = [
            field_writer(field, f"field{number}", folder, self._scratch, analyzers)
            for number, field in enumerate(schema.fields.values())
        ]
        self._added = 0
        self._indexed = {field.source for field in schema.fields.values()}
        self._sources = self._indexed | schema.stored
        self._digests = (self._scratch / DIGESTS).open("wb")

    def write(self, documents: Iterable[Document], info: IndexInfo, advance: Advance = no_progress) -> None:
        """Index all documents of the collection and write everything.

        After an error the folder is for the caller to remove.

        Raises:
            EngineRefused: there is a document that can't be indexed, or there are not as many as there should be.
            DataError: a segment that is kept or merged is damaged.
        """
        try:
            advance(sum(one.count for one in self._kept))
            for one in self._merged:
                self._copy(one, advance)
            self.add_all(self._plan.new(documents) if self._plan else documents, advance)
            self.finish(info)
        except BaseException:
            self.abandon()
            raise

    def _copy(self, merged: LiveDocuments, advance: Advance) -> None:
        """Copy the live documents of a segment."""
        self._digests.write(merged.digests().tobytes())
        with self._documents.copying(merged.segment.folder) as copy:
            numbers = np.flatnonzero(merged.mask)
            edges = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
            for begin, stop in pairwise(edges):
                first, last = int(numbers[begin]), int(numbers[stop - 1]) + 1
                for some in range(first, last, COPIED_DOCUMENTS):
                    advance(copy(some, min(some + COPIED_DOCUMENTS, last)))
        self._added += merged.count

    def add_all(self, documents: Iterable[Document], advance: Advance) -> None:
        """Index documents; their texts are analyzed on all cores, unless few have changed.

        Raises:
            EngineRefused: one has a field that the mapping does not name, or a value of another type.
        """
        drawn: deque[tuple[list[Document], list[Indexed]]] = deque()

        def batches() -> Iterator[list[Indexed]]:
            waiting = iter(documents)
            while some := list(islice(waiting, BATCH_DOCUMENTS)):
                batch = [(document.id, document.source()) for document in some]
                drawn.append((some, batch))
                yield batch

        worth_it = FEW_BATCHES if self._plan else processes.WORTH_IT
        for packed in processes.map_in_processes(self._packed, batches(), worth_it=worth_it):
            some, batch = drawn.popleft()
            first = self._added
            for document_id, source in batch:
                self._add(document_id, source)
            self._digests.write(b"".join(map(digest_of, some)))
            self._ids.add(PackedTokens.one_each([document_id for document_id, _source in batch]), first)
            for field, of_field in zip(self._fields, packed, strict=True):
                field.add(first, of_field)
            advance(len(batch))

    def _packed(self, batch: list[Indexed]) -> list[Packed]:
        """What each field keeps of the documents: the part of the work that needs nothing but them."""
        of_field: list[list[tuple[int, Entry]]] = [[] for _ in self._fields]
        for place, (document_id, source) in enumerate(batch):
            try:
                entries = self._entries(document_id, source)
            except (TypeError, OverflowError) as error:
                raise _refused(document_id, str(error)) from error
            for kept, entry in zip(of_field, entries, strict=True):
                if entry is not None:
                    kept.append((place, entry))
        try:
            return [field.packed(kept) for field, kept in zip(self._fields, of_field, strict=True)]
        except NotIndexable as error:
            raise _refused(batch[error.place][0], error.problem) from error
        except PatternTimeout as error:
            if len(batch) == 1:
                raise PatternTimeout(f"the document {batch[0][0]}: {error}; nothing was changed") from error
            for document in batch:  # the one that takes too long is named
                self._packed([document])
            raise

    def _entries(self, document_id: str, source: dict[str, Any]) -> list[Entry]:
        for name in source:
            if name not in self._sources:
                raise self._unknown(document_id, name)
        values = {name: listed(source[name]) for name in self._indexed if name in source}
        return [
            field.entry(some) if (some := values.get(field.field.source)) else None for field in self._fields
        ]

    def _unknown(self, document_id: str, name: str) -> Exception:
        """What a property that the mapping does not name is: an object for one with a dot, or nothing."""
        if any(known.startswith(f"{name}.") or name.startswith(f"{known}.") for known in self._sources):
            return unsupported(
                f"{name} of the document {document_id}, which the mapping names in another way,"
            )
        return _refused(document_id, f"the mapping has no field {name}")

    def _add(self, document_id: str, source: dict[str, Any]) -> None:
        try:
            text = stored_text(source)
        except RecursionError as error:
            raise _refused(document_id, f"it {NESTED_TOO_DEEP}") from error
        try:
            self._documents.add(document_id, text)
            encoded = document_id.encode()
        except UnicodeEncodeError as error:
            raise _refused(document_id, "it has half of a surrogate pair, which is no text") from error
        if not 0 < len(encoded) <= LONGEST_ID:
            raise _refused(document_id, f"its id has {len(encoded)} bytes, not 1 to {LONGEST_ID}")
        self._added += 1

    def finish(self, info: IndexInfo) -> None:
        """Write everything that is not written yet, the manifest last."""
        self._write_ids(info)
        self._documents.close()
        self._digests.close()
        arrays.save(self._folder, DIGESTS, np.fromfile(self._scratch / DIGESTS, np.int64))
        summaries = {
            writer.field.name: writer.finish(self._documents.count, self._merged) for writer in self._fields
        }
        shutil.rmtree(self._scratch)
        kept = {
            one.segment.folder.name: KeptSegment(
                one.segment.manifest.digest, one.write_deletions(self._folder, self._schema)
            )
            for one in self._kept
        }
        names = sorted(file.name for file in self._folder.iterdir())
        known = {name: looked_through(self._folder, name) for name in names}
        files = {name: stored for name, (stored, _checksums) in known.items()}
        manifest = Manifest(
            info, self._mapping, self._documents.count, summaries, files, analysis.identity(), kept
        )
        checksums = [number for name, _ in manifest.with_checksums() for number in known[name][1]]
        arrays.save(self._folder, CHECKSUMS.removesuffix(arrays.SUFFIX), np.array(checksums, np.uint32))
        files[CHECKSUMS], _ = looked_through(self._folder, CHECKSUMS)
        manifest.write(self._folder)
        layout.remember(self._folder, manifest)

    def abandon(self) -> None:
        """Give back what is open; the folder is for the caller to remove."""
        with suppress(OSError):
            self._digests.close()
        with suppress(sqlite3.Error):
            self._documents.abandon()

    def _write_ids(self, info: IndexInfo) -> None:
        documents = self._documents.count
        in_all = documents + sum(one.count for one in self._kept)
        if in_all != info.documents:
            raise invalid(f"{counted(in_all, 'document')} came instead of {info.documents:,}: index again")
        runs = [*(one.ids(self._scratch) for one in self._merged), *self._ids.runs()]
        merge(runs, self._folder, "ids", positional=False)
        starts = arrays.load(self._folder, "ids.starts")
        ids = Terms.open(self._folder, "ids")
        if len(starts) <= documents:
            raise duplicate(ids[int(np.argmax(np.diff(starts) > 1))].decode())
        for place, one in enumerate(self._kept):
            one.require_other_ids(ids, range(len(ids)))
            for smaller in self._kept[place + 1 :]:
                one.require_other_ids(*smaller.live_ids())
        (self._folder / f"ids.starts{arrays.SUFFIX}").unlink()  # each id has one document
        numbers = arrays.load(self._folder, "ids.documents")
        ranks = np.empty_like(numbers)
        ranks[numbers] = np.arange(len(numbers), dtype=np.int32)
        arrays.save(self._folder, "ids.ranks", ranks)


def _refused(document_id: str, problem: str) -> Exception:
    return invalid(f"the document {document_id}: {problem}; nothing was changed")
