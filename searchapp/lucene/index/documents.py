"""Sources of documents, as JSON in compressed blocks.

`documents.npy` is a sequence of zstd frames, each of about `BLOCK_BYTES` bytes of documents, one per line. They share
`documents.dictionary.npy`, trained on the first documents of the segment, so that small blocks compress well and one
document is read fast. `documents.starts.npy` has the first byte of each block, `documents.numbers.npy` its first
document; both also have the end.

Indexes of formats before 8 have SQLite tables instead: `documents.sqlite`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import numpy as np

from searchapp.lucene.errors import UnreadableFile
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import StoredArrays
from searchapp.lucene.index.layout import IndexManifest, reading, refuted

if TYPE_CHECKING:
    import zstandard

NAME = "documents"
SQLITE = "documents.sqlite"

BLOCK_BYTES = 4096

SAMPLE_BYTES = 1 << 18  # the dictionary is trained on this many bytes of documents
DICTIONARY_SHARE = 8  # the dictionary has at most one in this many bytes of the sample
FEWEST_SAMPLES = 100  # with fewer documents there is no dictionary
# The bytes of a segment of the dictionary, and of the pieces whose frequencies choose it. zstd's search for other sizes
# takes four times as long, and finds dictionaries that compress less.
SEGMENT_BYTES, PIECE_BYTES = 200, 8

CACHED_BLOCKS = 64

stored_text = json.JSONEncoder(ensure_ascii=False).encode


class DocumentWriter:
    """Writes the documents of a segment, numbered from 0, by way of a temporary file."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self._path = scratch / NAME
        self._file = self._path.open("wb")
        self._compressor: zstandard.ZstdCompressor | None = None
        self._dictionary = b""
        self._sample: list[bytes] = []  # the first documents, until the dictionary is trained
        self._block: list[bytes] = []
        self._bytes = 0  # of the sample or the block
        self._starts = [0]
        self._numbers = [0]
        self.count = 0

    def add(self, text: bytes) -> None:
        """Add a document, given its `stored_text` in UTF-8."""
        self.count += 1
        self._bytes += len(text) + 1
        if self._compressor is not None:
            self._block.append(text)
            if self._bytes >= BLOCK_BYTES:
                self._write_block()
            return
        self._sample.append(text)
        if self._bytes >= SAMPLE_BYTES:
            self._train()

    def close(self) -> None:
        """Write the files."""
        if self._compressor is None:
            self._train()
        self._write_block()
        self._file.close()
        with arrays.ArrayFile(self._folder, NAME, np.uint8, self._starts[-1]) as file:
            file.append_content(self._path)
        arrays.save(self._folder, f"{NAME}.dictionary", np.frombuffer(self._dictionary, np.uint8))
        arrays.save(self._folder, f"{NAME}.starts", np.array(self._starts, np.int64))
        arrays.save(self._folder, f"{NAME}.numbers", np.array(self._numbers, np.int32))

    def abandon(self) -> None:
        """Close the temporary file."""
        self._file.close()

    def _train(self) -> None:
        """Train the dictionary, and add the documents of the sample to blocks."""
        import zstandard  # not needed to read a mapping or a manifest

        sample, size = self._sample, self._bytes
        dictionary = None
        if len(sample) >= FEWEST_SAMPLES:
            try:
                dictionary = zstandard.train_dictionary(
                    size // DICTIONARY_SHARE, [*sample], k=SEGMENT_BYTES, d=PIECE_BYTES
                )
            except zstandard.ZstdError:  # the documents have too little in common
                dictionary = None
        self._dictionary = b"" if dictionary is None else dictionary.as_bytes()
        self._compressor = zstandard.ZstdCompressor(dict_data=dictionary)
        self._sample, self._bytes, self.count = [], 0, 0
        for text in sample:
            self.add(text)

    def _write_block(self) -> None:
        if not self._block:
            return
        assert self._compressor is not None
        frame = self._compressor.compress(b"\n".join(self._block))
        self._file.write(frame)
        self._starts.append(self._starts[-1] + len(frame))
        self._numbers.append(self.count)
        self._block, self._bytes = [], 0


class DocumentStore(Protocol):
    """The documents of a segment, readable even after the files were removed."""

    count: int

    def texts(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the stored texts of consecutive documents in UTF-8.

        Raises:
            CorruptIndex: a document was altered.
        """

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return the sources of documents.

        Raises:
            CorruptIndex: a document was altered.
        """

    def close(self) -> None:
        """Release the files."""


def open_documents(manifest: IndexManifest, columns: StoredArrays) -> DocumentStore:
    """Open the documents of a segment.

    Raises:
        CorruptIndex: a file is missing or altered.
        UnreadableFile: a file can't be read.
    """
    if SQLITE in manifest.files:
        return SqliteDocuments(manifest)
    try:
        return BlockDocuments(manifest.folder, columns)
    except (ValueError, KeyError) as error:
        raise refuted(manifest.folder, str(error)) from error


class BlockDocuments:
    """The documents of compressed blocks."""

    def __init__(self, folder: Path, columns: StoredArrays) -> None:
        self._folder = folder
        self._content = columns.open(NAME)
        self._dictionary = columns.open(f"{NAME}.dictionary")
        self._starts = columns.open(f"{NAME}.starts").all()
        self._numbers = columns.open(f"{NAME}.numbers").all()
        self.count = int(self._numbers[-1])
        if len(self._starts) != len(self._numbers) or self._starts[-1] != len(self._content):
            raise ValueError("its files do not agree on the blocks of documents")
        self._lock = threading.Lock()
        self._decompressor: zstandard.ZstdDecompressor | None = None
        self._blocks: dict[int, list[bytes]] = {}

    def texts(self, first: int, end: int) -> Iterator[bytes]:
        while first < end:
            block = int(self._numbers.searchsorted(first, "right")) - 1
            begin, stop = self._numbers[block : block + 2].tolist()
            with self._lock:
                lines = self._lines(block)
            yield from lines[first - begin : end - begin]
            first = stop

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        blocks = self._numbers.searchsorted(numbers, "right") - 1
        places = numbers - self._numbers[blocks]
        sources: list[Any] = [None] * len(numbers)
        for index in np.argsort(blocks, kind="stable").tolist():  # reads each block once
            with self._lock:
                text = self._lines(int(blocks[index]))[int(places[index])]
            try:
                sources[index] = json.loads(text)
            except ValueError as error:
                raise refuted(self._folder, f"document {numbers[index]} is not JSON") from error
        return sources

    def _lines(self, block: int) -> list[bytes]:
        if block not in self._blocks:
            if len(self._blocks) == CACHED_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = self._read_lines(block)
        return self._blocks[block]

    def _read_lines(self, block: int) -> list[bytes]:
        import zstandard  # most searches need no sources

        if self._decompressor is None:
            content = self._dictionary.all().tobytes()
            dictionary = zstandard.ZstdCompressionDict(content) if content else None
            self._decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
        begin, end = self._starts[block : block + 2].tolist()
        try:
            lines = self._decompressor.decompress(self._content[begin:end].data).split(b"\n")
        except zstandard.ZstdError as error:
            raise refuted(self._folder, f"{NAME}{arrays.SUFFIX}: {error}") from error
        first, stop = self._numbers[block : block + 2].tolist()
        if len(lines) != stop - first:
            raise refuted(self._folder, f"a block of {NAME}{arrays.SUFFIX} has {len(lines)} documents")
        return lines

    def close(self) -> None:
        self._blocks.clear()


_IMMUTABLE = "?mode=ro&immutable=1"

_SELECT = "SELECT source, checksum FROM document WHERE number = ?"


class SqliteDocuments:
    """The documents of a segment that a version before format 8 wrote: a row with a checksum for each."""

    def __init__(self, manifest: IndexManifest) -> None:
        self._folder = folder = manifest.folder
        self._require_readable()
        path = quote(os.fsencode(folder / SQLITE))
        try:
            self._connection = sqlite3.connect(f"file:{path}{_IMMUTABLE}", uri=True, check_same_thread=False)
        except sqlite3.OperationalError as error:
            self._require_readable()  # another process may have removed it
            raise UnreadableFile(folder / SQLITE, str(error)) from error
        self._connection.text_factory = bytes
        self._lock = threading.Lock()
        try:
            with self._damage_reported():
                # The first query opens the file, while it still exists.
                query = "SELECT coalesce(max(number) + 1, 0) FROM document"
                self.count: int = self._connection.execute(query).fetchone()[0]
        except BaseException:
            self._connection.close()
            raise

    def _require_readable(self) -> None:
        # SQLite does not report why it can't open a file.
        with reading(self._folder, SQLITE), (self._folder / SQLITE).open("rb"):
            pass

    def texts(self, first: int, end: int) -> Iterator[bytes]:
        for number in range(first, end):
            with self._lock, self._damage_reported():
                text = self._text(number)
            yield text

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        with self._lock, self._damage_reported():
            return [json.loads(self._text(number)) for number in numbers]

    def _text(self, number: int) -> bytes:
        text, checksum = self._connection.execute(_SELECT, (number,)).fetchone() or (None, None)
        if not isinstance(text, bytes) or checksum != zlib.crc32(text, number):
            raise refuted(self._folder, f"document {number} in {SQLITE} was altered")
        return text

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise refuted(self._folder, f"{SQLITE}: {error}") from error

    def close(self) -> None:
        self._connection.close()
