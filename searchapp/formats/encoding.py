"""Text files: UTF-8, gzip, recognition of other kinds of file by their first bytes.

A user's own file may be compressed with gzip, which `opened` undoes; the message on any other kind of file says what
it is and what to do.
"""

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

LOOKED_AT = 4096
"""The bytes at the beginning of a file that are looked at."""

LONGEST_LINE = 1 << 26
"""In bytes. A few kilobytes of gzip can hold a line that no memory holds."""

GZIP = b"\x1f\x8b"
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
"""How compressed files begin."""

_PACKED_DOCUMENTS = {
    b"xl/": "an Excel workbook",
    b"word/": "a Word document",
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "an OpenDocument spreadsheet",
    b"mimetypeapplication/vnd.oasis.opendocument.text": "an OpenDocument text",
}
"""What stands in the beginning of a zip file that is one of these."""

_EXPORT = "save its table as CSV in UTF-8, and use that file"
_EXTRACT = "extract its text, one JSON object per line (JSONL), and use that file"
_CONVERT = "write its rows as JSONL or CSV, for instance with pandas or DuckDB, and use that file"
_AS_TABLE = "write each topic as a line `id<tab>text` of a file that ends in .tsv, and use that file"
_AS_JSONL = "write each document as a JSON object with id and text, one per line, and use that file"
_ADVICE = {"workbook": _EXPORT, "spreadsheet": _EXPORT, "document": _EXTRACT, "text": _EXTRACT}
_OTHERS = {
    b"PAR1": ("a Parquet file", _CONVERT),
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
    b"<top>": ("a TREC topics file", _AS_TABLE),
    b"<topics": ("a TREC topics file in XML", _AS_TABLE),
    b"<DOC>": ("a file of TREC documents", _AS_JSONL),
    b"<?xml": ("an XML file", _CONVERT),
    b"\x89PNG": ("an image", _EXTRACT),
    b"\xff\xd8\xff": ("an image", _EXTRACT),
}
"""How other files begin that people take for tables or texts."""

_TAR_PLACE, _TAR = 257, b"ustar"


class Foreign(NamedTuple):
    """What a file is instead of text in UTF-8, and what to do about it."""

    what: str
    advice: str

    def __str__(self) -> str:
        return f"it is {self.what}: {self.advice}"


def foreign(head: bytes) -> Foreign | None:
    """What a file is that begins like this; None if it may well be text in UTF-8."""
    for magic, method in COMPRESSED.items():
        if _begins(head, magic):
            if method == "zip" and (packed := _packed(head)):
                return packed
            return Foreign(f"compressed with {method}", "unpack it, or compress it with gzip")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, (what, advice) in _OTHERS.items():
        if _begins(text, magic):
            return Foreign(what, advice)
    if head[_TAR_PLACE:].startswith(_TAR):
        return Foreign("a tar archive", "unpack it, and name the file to use")
    if coding := _wide(head):
        return Foreign(coding, f"save it as UTF-8, for instance with `iconv -f {coding} -t UTF-8`")
    return None


def _begins(head: bytes, magic: bytes) -> bool:
    """Whether a file begins so; where text could begin so as well, it must hold bytes that no text has."""
    if head[: len(magic)].lower() != magic.lower():
        return False
    return not magic.isalnum() or b"\0" in head or not _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end == len(head) and error.reason == "unexpected end of data"  # cut within a character
    return True


def _packed(head: bytes) -> Foreign | None:
    """What a zip file is whose content shows more than that it is one."""
    for sign, what in _PACKED_DOCUMENTS.items():
        if sign in head:
            return Foreign(what, _ADVICE[what.rpartition(" ")[2]])
    return None


def _wide(head: bytes) -> str | None:
    """The encoding of a text whose characters take two or four bytes each."""
    for mark, coding in (
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if head.startswith(mark):
            return coding
    even, odd = head[::2], head[1::2]
    # Without a mark: nearly every second byte of what is mostly ASCII is NUL, and none of the others.
    for zeros, others, coding in ((odd, even, "UTF-16LE"), (even, odd, "UTF-16BE")):
        if len(zeros) >= 4 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return coding
    return None


def undecodable(path: Path, error: UnicodeDecodeError, line: int | None = None) -> str:
    """The sentence that a file is not UTF-8: where, and what to do; `line` is counted at LF unless it is given."""
    return f"{path}: line {line or _line(error)}: {_byte(error)} is not UTF-8; {remedy(path)}"


def add_undecodable(path: Path, error: UnicodeDecodeError, problems: Problems) -> None:
    """Record the same as a problem of the file."""
    detail = f"{_byte(error)} is not valid there; {remedy(path)}"
    problems.add(path, "not UTF-8", f"line {_line(error)}", detail, skippable=False)


def read_whole(path: Path, problems: Problems) -> str | None:
    """The text of a file, with its byte-order mark if it has one; None and a problem if it can't be read."""
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
    """The advice that ends the message on a file that is not UTF-8, by how the file begins."""
    with open_file(path) as file:
        head = file.read(LOOKED_AT)
    found = foreign(head)
    if found is None:
        return SAVE_AS_UTF8
    if found.what.startswith("compressed with "):
        return f"unpack the file, which is {found.what}"
    return str(found) if found.what.startswith("UTF-") else f"name another file: this one is {found.what}"


class BrokenFile(OSError):
    """A compressed file ends too early, or is damaged."""


class LongLine(OSError):
    """A line is longer than `LONGEST_LINE`."""


class Opened:
    """A user's own file, to be read once from its beginning, by lines or pieces; `head` is how it begins."""

    def __init__(self, file: BufferedReader | gzip.GzipFile) -> None:
        self._file = file
        with _told():
            self.head = file.peek(LOOKED_AT)[:LOOKED_AT]

    def __iter__(self) -> Iterator[bytes]:
        with _told():
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
        with _told():
            return self._file.read(size)

    def readline(self, size: int = -1) -> bytes:
        with _told():
            return self._file.readline(size)


@contextmanager
def _told() -> Iterator[None]:
    """Every way in which unpacking can fail as one kind of error."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = "ends too early" if isinstance(error, EOFError) else "is damaged"
        raise BrokenFile(f"the gzip file {what}: fetch it again, or pack it again") from error


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """A user's own file; one that is compressed with gzip is unpacked on the way.

    Raises:
        OSError: it can't be opened or read; `BrokenFile` if what it was compressed from can't be got back.
    """
    with open_file(path) as file:
        if file.peek(len(GZIP)).startswith(GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield Opened(unpacked)
        else:
            yield Opened(file)


GZIP_SUFFIX = ".gz"

GZIP_LEVEL = 1
"""The quickest: what is random in a run, the order of its ids, no level makes smaller."""


@contextmanager
def packing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to whose content is compressed as a whole, the same content to the same bytes."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=file, mtime=0) as packed,
    ):
        yield cast("BinaryIO", cast("IO[bytes]", packed))
