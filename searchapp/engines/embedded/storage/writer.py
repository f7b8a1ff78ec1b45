"""Documents in, the files of a complete version out."""

from __future__ import annotations

import shutil
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from searchapp import processes
from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Analyzers, Schema
from searchapp.engines.embedded.storage import arrays, verified
from searchapp.engines.embedded.storage.carried import DIGESTS, Older, digest_of
from searchapp.engines.embedded.storage.columns import looked_through
from searchapp.engines.embedded.storage.documents import DocumentsWriter, stored_text
from searchapp.engines.embedded.storage.fields import Entry, FieldWriter, NotIndexable, Packed, field_writer
from searchapp.engines.embedded.storage.inverter import Inverter
from searchapp.engines.embedded.storage.joined import Side, join_runs
from searchapp.engines.embedded.storage.layout import CHECKSUMS, FieldSummary, Manifest
from searchapp.engines.embedded.storage.merger import merge
from searchapp.engines.embedded.storage.packed import PackedTokens
from searchapp.engines.embedded.storage.terms import Terms
from searchapp.engines.embedded.values import listed
from searchapp.model import Document
from searchapp.progress import Advance, no_progress

SCRATCH = "scratch"
BATCH_DOCUMENTS = 256
FEW_BATCHES = 8
"""Where fewer change, they are analyzed here: to fork the process, which knows all documents, takes longer."""

COPIED_DOCUMENTS = 10_000
"""Documents of an older version that are copied at a time."""

Indexed = tuple[str, dict[str, Any]]
"""The id of a document and its source."""

LONGEST_ID = 512
"""Bytes of an id, as in Elasticsearch."""


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
        self._mapping = mapping
        self._schema = schema
        self._scratch = folder / SCRATCH
        self._scratch.mkdir()
        self._documents = DocumentsWriter(folder, older.carried.folder if older else None)
        self._ids = Inverter(self._scratch, "ids")
        self._fields = [
            field_writer(field, f"field{number}", folder, self._scratch, analyzers)
            for number, field in enumerate(schema.fields.values())
        ]
        self._added = 0
        self._indexed = {field.source for field in schema.fields.values()}
        self._sources = self._indexed | schema.stored
        self._digests = (self._scratch / DIGESTS).open("wb")

    def write(
        self,
        documents: Iterable[Document],
        info: IndexInfo,
        advance: Advance = no_progress,
        *,
        few: bool = False,
    ) -> str:
        """Index documents and write everything; returns the digest of the manifest.

        After an error the folder is for the caller to remove. `few`: see `add_all`.

        Raises:
            EngineRefused: there is a document that can't be indexed, or there are not as many as there should be.
            DataError: the older version is damaged.
        """
        try:
            self.add_all(documents, advance, few=few)
            return self.finish(info)
        except BaseException:
            self.abandon()
            raise

    def add_all(self, documents: Iterable[Document], advance: Advance, *, few: bool = False) -> None:
        """Index documents; their texts are analyzed on all cores, unless they are `few`, or few have changed.

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

        worth_it = FEW_BATCHES if few or self._older else processes.WORTH_IT
        for packed in processes.spread(self._packed, batches(), worth_it=worth_it):
            some, batch = drawn.popleft()
            first, before = self._added, self._documents.count
            for document_id, source in batch:
                self._add(document_id, source)
            self._digests.write(b"".join(map(digest_of, some)))
            self._ids.add(PackedTokens.one_each([document_id for document_id, _source in batch]), first)
            for field, of_field in zip(self._fields, packed, strict=True):
                field.add(first, of_field)
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
        except NotIndexable as error:
            raise _refused(batch[error.place][0], error.problem) from error

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
        self._added += 1

    def _carry(self, end: int, advance: Advance = no_progress) -> None:
        """Copy the documents that are carried over and come before the one of a number."""
        assert self._older
        numbers = self._older.carried.numbers[self._documents.count : end]
        if not len(numbers):
            return
        edges = [0, len(numbers)]
        if numbers[-1] - numbers[0] >= len(numbers):  # they ascend, with gaps
            edges[1:1] = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
        for begin, stop in pairwise(edges):
            first, last = int(numbers[begin]), int(numbers[stop - 1]) + 1
            for some in range(first, last, COPIED_DOCUMENTS):
                advance(self._documents.copy(some, min(some + COPIED_DOCUMENTS, last)))

    def finish(self, info: IndexInfo) -> str:
        """Write everything that is not written yet, the manifest last; returns its digest."""
        self._write_ids(info)
        self._documents.close()
        self._digests.close()
        digests = np.fromfile(self._scratch / DIGESTS, np.int64)
        arrays.save(self._folder, DIGESTS, self._older.digests(digests) if self._older else digests)
        del digests
        summaries = {writer.field.name: self._finish(writer) for writer in self._fields}
        shutil.rmtree(self._scratch)
        names = sorted(file.name for file in self._folder.iterdir())
        known = {name: looked_through(self._folder, name) for name in names}
        files = {name: stored for name, (stored, _checksums) in known.items()}
        manifest = Manifest(info, self._mapping, summaries, files, analysis=self._code)
        checksums = [number for name, _ in manifest.with_checksums() for number in known[name][1]]
        arrays.save(self._folder, CHECKSUMS.removesuffix(arrays.SUFFIX), np.array(checksums, np.uint32))
        files[CHECKSUMS], _ = looked_through(self._folder, CHECKSUMS)
        manifest.write(self._folder)
        verified.remember(self._folder, manifest)
        return manifest.digest

    def _finish(self, writer: FieldWriter) -> FieldSummary:
        older = self._older.field(writer.field.name) if self._older else None
        return writer.finish(self._documents.count, older)

    def abandon(self) -> None:
        """Give back what is open; the folder is for the caller to remove."""
        with suppress(OSError):
            self._digests.close()
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


def _refused(document_id: str, problem: str) -> Exception:
    return invalid(f"the document {document_id}: {problem}; nothing was changed")
