"""Detection of file formats, and reading of compressed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from searchapp.formats import encoding
from searchapp.formats.encoding import BrokenFile, LongLine, foreign_kind, open_unpacked, remedy, write_gzip


def zipped(*names: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return target.getvalue()


def tarred() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "method"),
    [
        (gzip.compress(b"4465\t102\n"), "gzip"),
        (bz2.compress(b"4465\t102\n"), "bzip2"),
        (lzma.compress(b"4465\t102\n"), "xz"),
        (zipped("a.txt"), "zip"),
    ],
)
def test_the_remedy_for_a_compressed_file_is_to_unpack_it(
    content: bytes, method: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert remedy(path) == f"unpack the file, which is compressed with {method}"


@pytest.mark.parametrize("content", [b"", "Größe".encode("latin-1")])
def test_the_remedy_for_another_encoding_is_to_save_the_file_as_utf_8(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert remedy(path) == "save the file as UTF-8"


def test_the_remedy_names_the_format_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("id\ttext\n".encode("utf-16"))
    assert remedy(path) == "it is UTF-16: save it as UTF-8, for instance with `iconv -f UTF-16 -t UTF-8`"
    path.write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    assert remedy(path) == "give another file: this one is a PDF file"


@pytest.mark.parametrize(
    ("content", "kind", "advice"),
    [
        (b"PAR1\x15\x04\0", "a Parquet file", "write its rows as JSONL or CSV"),
        (b"%PDF-1.4\n", "a PDF file", "extract its text"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook", "save its table as CSV"),
        (zipped("[Content_Types].xml", "word/document.xml"), "a Word document", "extract its text"),
        (zipped("docs.jsonl"), "compressed with zip", "unpack it"),
        (bz2.compress(b"x"), "compressed with bzip2", "unpack it, or compress it with gzip"),
        (lzma.compress(b"x"), "compressed with xz", "unpack it"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "compressed with zstd", "unpack it"),
        (b"SQLite format 3\x00", "an SQLite database", "write its rows"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Word file", "save its table as CSV"),
        (b"\n\n<top>\n<num> Number: 301\n", "a TREC topics file", "--from trec:DIR"),
        (b"\xef\xbb\xbf<topics>\n", "a TREC topics file in XML", "--from trec:DIR"),
        (b"<DOC>\n<DOCNO> a </DOCNO>\n", "a file of TREC documents", "--from trec:DIR"),
        (b"<!DOCTYPE html><html>", "an HTML page", "extract its text"),
        (tarred(), "a tar archive", "unpack it"),
        ("id\ttext\n".encode("utf-16"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
        ("id\ttext\n".encode("utf-16-le"), "UTF-16LE", "iconv -f UTF-16LE -t UTF-8"),
        ("id\ttext\n".encode("utf-16-be"), "UTF-16BE", "iconv -f UTF-16BE -t UTF-8"),
        ("id\ttext\n".encode("utf-32"), "UTF-32", "iconv -f UTF-32 -t UTF-8"),
    ],
)
def test_a_format_is_detected_by_its_first_bytes(content: bytes, kind: str, advice: str) -> None:
    foreign = foreign_kind(content)
    assert foreign is not None
    assert foreign.kind == kind
    assert advice in foreign.advice


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"id\ttext\n",
        "\ufeffid\n".encode(),
        b"a\0b\0",
        b"PK",
        b'{"a": "PAR1"}',
        b"ORCHID\t1\n",
        b"PAR1 0 d1 1\n",
        b"BZh9\n" + 2047 * b"\xc3\xa9",  # the detected part ends within a character
    ],
)
def test_text_is_not_detected_as_another_format(content: bytes) -> None:
    assert foreign_kind(content) is None


CONTENT = b"".join(b"line %d\n" % number for number in range(5000))

plain_and_gzip = pytest.mark.parametrize(
    "pack", [lambda content: content, gzip.compress], ids=["plain", "gzip"]
)


@plain_and_gzip
def test_plain_and_gzip_files_have_the_same_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(pack(CONTENT))
    with open_unpacked(path) as file:
        assert CONTENT.startswith(file.head) and len(file.head) > 1000
        assert list(file) == CONTENT.splitlines(keepends=True)
    with open_unpacked(path) as file:
        assert file.read() == CONTENT
    path.write_bytes(pack(CONTENT[:9]) + pack(CONTENT[9:]))  # the result of `cat a.gz b.gz`
    with open_unpacked(path) as file:
        assert b"".join(file) == CONTENT


def test_a_pipe_is_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, gzip.compress(b"a\nb\n", mtime=0))
    os.close(write)
    with open_unpacked(Path(f"/dev/fd/{read}")) as file:
        assert list(file) == [b"a\n", b"b\n"]
    os.close(read)


def damaged() -> Iterator[tuple[str, bytes]]:
    intact = gzip.compress(CONTENT, mtime=0)
    yield "without last byte", intact[:-1]
    yield "half", intact[: len(intact) // 2]
    yield "5 bytes", intact[:5]
    yield "changed byte", intact[:200] + bytes([intact[200] ^ 0xFF]) + intact[201:]
    yield "wrong checksum", intact[:-8] + b"\0\0\0\0" + intact[-4:]
    yield "wrong length", intact[:-4] + b"\0\0\0\0"
    yield "text after the magic bytes", intact[:2] + b"no gzip at all"


@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in damaged()])
def test_a_damaged_gzip_file_is_rejected_with_advice(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    message = "the gzip file (ends too early|is damaged): fetch it or compress it again"
    with pytest.raises(BrokenFile, match=message), open_unpacked(path) as file:
        list(file)


@plain_and_gzip
def test_a_line_above_the_limit_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(encoding, "LONGEST_LINE", 1000)
    path = tmp_path / "file"
    path.write_bytes(pack(b"a\n" + b"x" * 999 + b"\nlast"))
    with open_unpacked(path) as file:
        assert [len(line) for line in file] == [2, 1000, 4]
    path.write_bytes(pack(b"a\n" + b"x" * 1001))
    with (
        open_unpacked(path) as file,
        pytest.raises(LongLine, match="line 2 is longer than 1,000 bytes, the limit"),
    ):
        for line in file:
            assert line == b"a\n"


def test_compressed_files_of_equal_content_are_equal(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with write_gzip(tmp_path / name) as file:
            file.write(b"first\n")
            file.write(b"second\n")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert gzip.decompress((tmp_path / "a").read_bytes()) == b"first\nsecond\n"
