"""Text files: UTF-8, gzip, recognition of other kinds of file by their first bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from searchapp.files import open_file, read_bytes
from searchapp.formats.problems import Problems

SAVE_AS_UTF8 = "save the file as UTF-8"

HEAD_BYTES = 4096  # how much of a file is read to recognise its kind

LONGEST_LINE = 1 << 26  # in bytes: a few kilobytes of gzip can contain a line that exceeds the memory

GZIP = b"\x1f\x8b"
# Compression methods by the magic number of their files.
COMPRESSED = {
    GZIP: "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!": "RAR",
    b"\x1f\x9d": "compress",
}

# Documents by a text near the beginning of their zip file.
_ZIPPED_DOCUMENTS = {
    b"xl/": "an Excel workbook",
    b"word/": "a Word document",
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "an OpenDocument spreadsheet",
    b"mimetypeapplication/vnd.oasis.opendocument.text": "an OpenDocument text",
}

_EXPORT = "save its table as CSV in UTF-8, and use that file"
_EXTRACT = "extract its text, one JSON object per line (JSONL), and use that file"
_CONVERT = "write its rows as JSONL or CSV, for instance with pandas or DuckDB, and use that file"
_COLLECTION = "`searchapp tasks new FILE --from trec:DIR` makes a task of a folder with such files"
_ADVICE = {"workbook": _EXPORT, "spreadsheet": _EXPORT, "document": _EXTRACT, "text": _EXTRACT}
# Other files that users mistake for tables or texts, by their beginning.
_MAGIC_NUMBERS = {
    b"PAR1": ("a Parquet file", f"{_CONVERT}, or give it a name that ends in .parquet"),
    b"ARROW1": ("an Arrow file", _CONVERT),
    b"FEA1": ("a Feather file", _CONVERT),
    b"ORC": ("an ORC file", _CONVERT),
    b"Obj\x01": ("an Avro file", _CONVERT),
    b"SQLite format 3\x00": ("an SQLite database", _CONVERT),
    b"\x93NUMPY": ("a NumPy array", _CONVERT),
    b"\x80\x04\x95": ("a Python pickle", _CONVERT),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel or Word file", _EXPORT),
    b"%PDF-": ("a PDF file", _EXTRACT),
    b"{\\rtf": ("an RTF document", _EXTRACT),
    b"<!DOCTYPE html": ("an HTML page", _EXTRACT),
    b"<html": ("an HTML page", _EXTRACT),
    b"<top>": ("a TREC topics file", _COLLECTION),
    b"<topics": ("a TREC topics file in XML", _COLLECTION),
    b"<DOC>": ("a file of TREC documents", _COLLECTION),
    b"<?xml": ("an XML file", _CONVERT),
    b"\x89PNG": ("an image", _EXTRACT),
    b"\xff\xd8\xff": ("an image", _EXTRACT),
}

_TAR_OFFSET, _TAR = 257, b"ustar"


class ForeignKind(NamedTuple):
    """The kind of a file that is not text in UTF-8, and advice."""

    kind: str
    advice: str

    def __str__(self) -> str:
        return f"it is {self.kind}: {self.advice}"


def foreign_kind(head: bytes) -> ForeignKind | None:
    """Recognise the kind of a file by its beginning; None if it may be text in UTF-8."""
    for magic, method in COMPRESSED.items():
        if _begins(head, magic):
            for sign, kind in _ZIPPED_DOCUMENTS.items() if method == "zip" else ():
                if sign in head:
                    return ForeignKind(kind, _ADVICE[kind.rpartition(" ")[2]])
            return ForeignKind(f"compressed with {method}", "unpack it, or compress it with gzip")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, (kind, advice) in _MAGIC_NUMBERS.items():
        if _begins(text, magic):
            return ForeignKind(kind, advice)
    if head[_TAR_OFFSET:].startswith(_TAR):
        return ForeignKind("a tar archive", "unpack it, and give the file to use")
    if coding := _wide_encoding(head):
        return ForeignKind(coding, f"save it as UTF-8, for instance with `iconv -f {coding} -t UTF-8`")
    return None


def _begins(head: bytes, magic: bytes) -> bool:
    if head[: len(magic)].lower() != magic.lower():
        return False
    # A text may begin like a magic number of letters: require bytes that no text has.
    return not magic.isalnum() or b"\0" in head or not _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end == len(head) and error.reason == "unexpected end of data"  # cut within a character
    return True


def _wide_encoding(head: bytes) -> str | None:
    for mark, coding in (
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if head.startswith(mark):
            return coding
    even, odd = head[::2], head[1::2]
    # Without a mark: nearly every second byte of ASCII text is NUL, and none of the others.
    for zeros, others, coding in ((odd, even, "UTF-16LE"), (even, odd, "UTF-16BE")):
        if len(zeros) >= 4 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return coding
    return None


def undecodable(path: Path, error: UnicodeDecodeError, line: int | None = None) -> str:
    """Return the message on a file that is not UTF-8."""
    return f"{path}: line {line or _line(error)}: {_byte(error)} is not UTF-8; {remedy(path)}"


def add_undecodable(path: Path, error: UnicodeDecodeError, problems: Problems) -> None:
    """Report a file that is not UTF-8."""
    detail = f"{_byte(error)} is not valid there; {remedy(path)}"
    problems.add(path, "not UTF-8", f"line {_line(error)}", detail, skippable=False)


def read_utf8(path: Path, problems: Problems) -> str | None:
    """Return the text of a file, with its byte-order mark; report a file that can't be read and return None."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
    except OSError as error:
        problems.add_unopened(path, error)
    return None


def _line(error: UnicodeDecodeError) -> int:
    return error.object[: error.start].count(b"\n") + 1


def _byte(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x} at offset {error.start}"


def remedy(path: Path) -> str:
    """Return the advice on a file that is not UTF-8."""
    with open_file(path) as file:
        foreign = foreign_kind(file.read(HEAD_BYTES))
    if foreign is None:
        return SAVE_AS_UTF8
    if foreign.kind.startswith("compressed with "):
        return f"unpack the file, which is {foreign.kind}"
    return (
        str(foreign) if foreign.kind.startswith("UTF-") else f"give another file: this one is {foreign.kind}"
    )


class BrokenFile(OSError):
    """A compressed file ends too early, or is damaged."""


class LongLine(OSError):
    """A line is longer than `LONGEST_LINE`."""


class UnpackedFile:
    """A user's file, read once from its beginning; `head` has its first bytes."""

    def __init__(self, file: BufferedReader | gzip.GzipFile) -> None:
        self._file = file
        with _unpacking():
            self.head = file.peek(HEAD_BYTES)[:HEAD_BYTES]

    def __iter__(self) -> Iterator[bytes]:
        with _unpacking():
            for number in count(1):
                line = self._file.readline(LONGEST_LINE + 1)
                if len(line) > LONGEST_LINE:
                    raise LongLine(
                        f"line {number} is longer than {LONGEST_LINE:,} bytes, the limit of a line: split it"
                    )
                if not line:
                    return
                yield line

    def read(self, size: int = -1) -> bytes:
        with _unpacking():
            return self._file.read(size)

    def readline(self, size: int = -1) -> bytes:
        with _unpacking():
            return self._file.readline(size)


@contextmanager
def _unpacking() -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        damage = "ends too early" if isinstance(error, EOFError) else "is damaged"
        raise BrokenFile(f"the gzip file {damage}: fetch it or compress it again") from error


@contextmanager
def open_unpacked(path: Path) -> Iterator[UnpackedFile]:
    """Open a user's file; unpack gzip.

    Raises:
        OSError: the file can't be opened or read; `BrokenFile` if it can't be unpacked.
    """
    with open_file(path) as file:
        if file.peek(len(GZIP)).startswith(GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield UnpackedFile(unpacked)
        else:
            yield UnpackedFile(file)


GZIP_SUFFIX = ".gz"

GZIP_LEVEL = 1  # the fastest: no level compresses the random part of a run, the order of its ids


@contextmanager
def write_gzip(path: Path) -> Iterator[BinaryIO]:
    """Open a file for compressed content; the same content gives the same bytes."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=file, mtime=0) as packed,
    ):
        yield cast("BinaryIO", cast("IO[bytes]", packed))
