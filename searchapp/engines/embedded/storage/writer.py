"""Documents in, the files of a complete version out."""

from __future__ import annotations

import shutil
import sqlite3
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from searchapp import processes
from searchapp.digests import digest_file
from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import FLOATS, Analyzers, Field, Schema
from searchapp.engines.embedded.similarity import BM25, FieldStatistics, encode_lengths
from searchapp.engines.embedded.storage import arrays, impacts, verified
from searchapp.engines.embedded.storage.carried import DIGESTS, Older, OlderField, digest_of
from searchapp.engines.embedded.storage.columns import checksums_of
from searchapp.engines.embedded.storage.documents import DocumentsWriter, stored_text
from searchapp.engines.embedded.storage.inverter import Inverter
from searchapp.engines.embedded.storage.joined import Side, join_runs
from searchapp.engines.embedded.storage.layout import CHECKSUMS, FieldSummary, Manifest, StoredFile
from searchapp.engines.embedded.storage.merger import merge
from searchapp.engines.embedded.storage.packed import Int32s, PackedTokens
from searchapp.engines.embedded.storage.terms import Terms
from searchapp.engines.embedded.values import indexed_text, listed, number
from searchapp.model import Document
from searchapp.progress import Advance, no_progress

SCRATCH = "scratch"
BATCH_DOCUMENTS = 256
COPIED_DOCUMENTS = 10_000
"""Documents of an older version that are copied at a time."""

Indexed = tuple[str, dict[str, Any]]
"""The id of a document and its source."""

Entry = Any
"""What a field keeps of a document, see `entry` of its writer; None when the document has no value."""

Packed = Any
"""What a field keeps of a batch of documents, see `packed` of its writer."""

LONGEST_ID = 512
"""Bytes of an id, as in Elasticsearch."""

LONGEST_TERM = 32766
"""Bytes of the longest term that Lucene takes; it refuses the document otherwise."""

LAST_POSITION = 2**31 - 1 - 128
"""The last position at which Lucene takes a term."""


class IndexWriter:
    """Writes a version into an empty folder."""

    def __init__(
        self,
        folder: Path,
        mapping: Mapping[str, Any],
        schema: Schema,
        analyzers: Analyzers,
        *,
        code: str = "",
        older: Older | None = None,
    ) -> None:
        """Prepare to write.

        `code` is the digest of the code that the analyzers are of. With an `older` version only those documents are
        added that are not carried over from it; `finish` raises DataError if it is damaged.
        """
        self._folder = folder
        self._code = code
        self._older = older
        self._digests = bytearray()
        self._mapping = mapping
        self._schema = schema
        self._scratch = folder / SCRATCH
        self._scratch.mkdir()
        self._documents = DocumentsWriter(folder, older.carried.folder if older else None)
        self._ids = Inverter(self._scratch, "ids")
        self._fields = [
            _writer(field, f"field{number}", folder, self._scratch, analyzers)
            for number, field in enumerate(schema.fields.values())
        ]
        self._added = 0
        self._sources = {field.source for field in schema.fields.values()} | schema.stored

    def add_all(self, documents: Iterable[Document], advance: Advance) -> None:
        """Index documents; their texts are analyzed on all cores.

        Raises:
            EngineRefused: one has a field that the mapping does not name, or a value of another type.
        """
        drawn: deque[list[Indexed]] = deque()

        def batches() -> Iterator[list[Indexed]]:
            waiting = ((document.id, document.source()) for document in documents)
            while batch := list(islice(waiting, BATCH_DOCUMENTS)):
                drawn.append(batch)
                yield batch

        for packed in processes.spread(self._packed, batches()):
            batch = drawn.popleft()
            first, before = self._added, self._documents.count
            for document_id, source in batch:
                self._add(document_id, source)
            self._ids.add(PackedTokens.one_each([document_id for document_id, _source in batch]), first)
            for field, some in zip(self._fields, packed, strict=True):
                field.add(first, some)
            advance(self._documents.count - before)
        if self._older:
            self._carry(len(self._older.carried.numbers), advance)

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
        except _NotIndexable as error:
            raise _refused(batch[error.place][0], error.problem) from error

    def _entries(self, document_id: str, source: dict[str, Any]) -> list[Entry]:
        for name in source:
            if name not in self._sources:
                raise self._unknown(document_id, name)
        values = {name: listed(value) for name, value in source.items()}
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
        if self._older:
            self._carry(self._older.place(self._added))
        text = stored_text(source)
        try:
            self._documents.add(document_id, text)
            encoded = document_id.encode()
        except UnicodeEncodeError as error:
            raise _refused(document_id, "it has half of a surrogate pair, which is no text") from error
        if not 0 < len(encoded) <= LONGEST_ID:
            raise _refused(document_id, f"its id has {len(encoded)} bytes, not 1 to {LONGEST_ID}")
        self._digests += digest_of(text)
        self._added += 1

    def _carry(self, end: int, advance: Advance = no_progress) -> None:
        """Copy the documents that are carried over and come before the one of a number."""
        assert self._older
        numbers = self._older.carried.numbers[self._documents.count : end]
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        for some in np.split(numbers, breaks) if len(numbers) else ():
            last = int(some[-1]) + 1
            for first in range(int(some[0]), last, COPIED_DOCUMENTS):
                advance(self._documents.copy(first, min(first + COPIED_DOCUMENTS, last)))

    def finish(self, info: IndexInfo) -> None:
        """Write everything that is not written yet; the manifest last."""
        self._write_ids(info)
        self._documents.close()
        digests = np.frombuffer(self._digests, np.int64)
        arrays.save(self._folder, DIGESTS, self._older.digests(digests) if self._older else digests)
        summaries = {writer.field.name: self._finish(writer) for writer in self._fields}
        shutil.rmtree(self._scratch)
        files = {file.name: _stored(file) for file in sorted(self._folder.iterdir())}
        manifest = Manifest(info, self._mapping, summaries, files, analysis=self._code)
        checksums = [
            number for name, _ in manifest.with_checksums() for number in checksums_of(self._folder / name)
        ]
        arrays.save(self._folder, CHECKSUMS.removesuffix(arrays.SUFFIX), np.array(checksums, np.uint32))
        files[CHECKSUMS] = _stored(self._folder / CHECKSUMS)
        manifest.write(self._folder)
        verified.remember(self._folder, manifest)

    def _finish(self, writer: _FieldWriter) -> FieldSummary:
        older = self._older.field(writer.field.name) if self._older else None
        return writer.finish(self._documents.count, older)

    def abandon(self) -> None:
        """Give back what is open; the folder is for the caller to remove."""
        with suppress(sqlite3.Error):
            self._documents.abandon()

    def _write_ids(self, info: IndexInfo) -> None:
        documents = self._documents.count
        if documents != info.documents:
            raise invalid(f"{documents} documents came instead of {info.documents}: index again")
        if self._older:
            added = self._older.carried.added
            older = Side.of_older_ids(self._older)
            join_runs(older, self._ids.runs(), added, self._scratch, self._folder, "ids")
        else:
            merge(self._ids.runs(), self._folder, "ids", positional=False)
        starts = arrays.load(self._folder, "ids.starts")
        if len(starts) <= documents:
            ids = Terms.open(self._folder, "ids")
            twice = ids[int(np.argmax(np.diff(starts) > 1))].decode()
            raise invalid(f"two documents have the id {twice}")
        (self._folder / f"ids.starts{arrays.SUFFIX}").unlink()  # each id has one document
        numbers = arrays.load(self._folder, "ids.documents")
        ranks = np.empty_like(numbers)
        ranks[numbers] = np.arange(len(numbers), dtype=np.int32)
        arrays.save(self._folder, "ids.ranks", ranks)


def _stored(file: Path) -> StoredFile:
    if file.suffix != arrays.SUFFIX:
        return StoredFile(file.stat().st_size, digest_file(file))
    dtype, length = arrays.described(file)
    return StoredFile(file.stat().st_size, digest_file(file), dtype, length)


def _refused(document_id: str, problem: str) -> Exception:
    return invalid(f"the document {document_id}: {problem}; nothing was changed")


Joined = tuple[list[str], list[int]]
"""Terms and positions of a document's texts."""


class _FieldWriter:
    """Takes the values of one field and writes its files at the end."""

    def __init__(self, field: Field, prefix: str, folder: Path) -> None:
        self.field = field
        self._prefix = prefix
        self._folder = folder
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

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:
        """Write the files of the field for so many documents, with those of `older` that are carried over."""
        raise NotImplementedError

    def _finish_present(self, older: OlderField | None) -> int:
        """Write which documents have a value; returns how many."""
        present = np.frombuffer(self._present, np.int32)
        if older:
            present = older.documents(older.column("present").all(), present)
        self._save("present", present)
        return len(present)

    def _merge(self, inverter: Inverter, older: OlderField | None, *, positional: bool) -> tuple[int, int]:
        """Write the postings; returns the number of postings and that of tokens."""
        if older is None:
            return merge(inverter.runs(), self._folder, self._prefix, positional=positional)
        side, scratch = Side.of_older(older, positional=positional), self._folder / SCRATCH
        return join_runs(side, inverter.runs(), older.carried.added, scratch, self._folder, self._prefix)

    def _save(self, part: str, values: np.ndarray[Any, Any]) -> None:
        arrays.save(self._folder, f"{self._prefix}.{part}", values)


class _NotIndexable(Exception):
    """The document at a place of a batch can't be indexed."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


class _TextWriter(_FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path, analyzers: Analyzers) -> None:
        super().__init__(field, prefix, folder)
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

    def packed(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s]:
        """The tokens, and the length of the field in each document: stacked tokens do not make it longer."""
        tokens, lengths = self._in_bulk(entries) or self._one_by_one(entries)
        _refuse_immense(tokens, self.field)
        return tokens, lengths

    def _in_bulk(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s] | None:
        bulk = self._analyzer.bulk
        if bulk is None or any(len(texts) != 1 for _, texts in entries):
            return None
        found = bulk.tokens([texts[0] for _, texts in entries])
        if found is None:
            return None
        documents = np.array([place for place, _ in entries], np.int32)
        tokens = PackedTokens(found.vocabulary, found.terms, found.positions, documents, found.counts)
        return tokens, found.counts

    def _one_by_one(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s]:
        if self._analyzer.bulk:
            try:
                entries = [(place := of, self._joined(texts)) for of, texts in entries]
            except OverflowError as error:
                raise _NotIndexable(place, str(error)) from error
        tokens = PackedTokens.of((place, terms, positions) for place, (terms, positions) in entries)
        lengths = [len(set(positions)) for _, (_terms, positions) in entries]
        return tokens, np.array(lengths, np.int32)

    def add(self, first: int, packed: tuple[PackedTokens, Int32s]) -> None:
        tokens, lengths = packed
        self._present.frombytes((tokens.documents + np.int32(first)).tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._inverter.add(tokens, first)

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:
        self._finish_present(older)
        norms = np.zeros(documents, np.uint8)
        present = np.frombuffer(self._present, np.int32)
        places = older.carried.added[present] if older else present
        norms[places] = encode_lengths(np.frombuffer(self._lengths, np.int32).astype(np.int64))
        if older:
            older.copy("norms", norms)
        self._save("norms", norms)
        _postings, tokens = self._merge(self._inverter, older, positional=True)
        # Only the length 0 has the code 0.
        summary = FieldSummary(self._prefix, int(np.count_nonzero(norms)), tokens)
        statistics = FieldStatistics(summary.documents, summary.tokens)
        inverses = (self.field.similarity or BM25()).norm_inverses(statistics)
        impacts.write(self._folder, self._prefix, norms, inverses)
        return summary


class _KeywordWriter(_FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder)
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

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:  # noqa: ARG002
        present = self._finish_present(older)
        postings, _tokens = self._merge(self._inverter, older, positional=False)
        return FieldSummary(self._prefix, present, postings)


class _NumberWriter(_FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path) -> None:
        super().__init__(field, prefix, folder)
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

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:  # noqa: ARG002
        values = np.frombuffer(self._values, self._values.typecode)
        of_values = np.frombuffer(self._documents, np.int32)
        if older:
            values, of_values = older.numbers(values, of_values)
        order = np.lexsort((of_values, ~np.signbit(values), values))  # -0.0 before 0.0, as Lucene has them
        self._save("values", values[order])
        self._save("documents", of_values[order])
        present = self._finish_present(older)
        return FieldSummary(self._prefix, present, present)


def _writer(field: Field, prefix: str, folder: Path, scratch: Path, analyzers: Analyzers) -> _FieldWriter:
    if field.is_text:
        return _TextWriter(field, prefix, folder, scratch, analyzers)
    if field.is_number:
        return _NumberWriter(field, prefix, folder)
    return _KeywordWriter(field, prefix, folder, scratch)


def _refuse_immense(tokens: PackedTokens, field: Field) -> None:
    if max(map(len, tokens.vocabulary), default=0) * 4 <= LONGEST_TERM:
        return
    for rank, term in enumerate(tokens.vocabulary):
        if len(term.encode(errors="surrogatepass")) > LONGEST_TERM:
            at = int(np.flatnonzero(tokens.terms == rank)[0])
            place = int(np.searchsorted(np.cumsum(tokens.counts), at, "right"))
            problem = f"{field.name} has a term of more than {LONGEST_TERM} bytes"
            raise _NotIndexable(int(tokens.documents[place]), problem)
