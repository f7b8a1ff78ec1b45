from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest

from searchapp.formats.encoding import remedy


def zipped(content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.txt", content)
    return target.getvalue()


@pytest.mark.parametrize(
    ("compress", "method"),
    [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz"), (zipped, "zip")],
)
def test_a_compressed_file_is_to_be_unpacked(compress: object, method: str, tmp_path: Path) -> None:
    assert callable(compress)
    path = tmp_path / "file"
    path.write_bytes(compress(b"4465\t102\n" * 9))
    assert remedy(path) == f"unpack the file, which is compressed with {method}"


@pytest.mark.parametrize("content", [b"", b"\xff\xfea\0", "Größe".encode("latin-1")])
def test_another_file_is_to_be_saved_anew(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert remedy(path) == "save the file as UTF-8"
