"""What to do about a file that is not UTF-8."""

from __future__ import annotations

from pathlib import Path

COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""How compressed files begin."""


def remedy(path: Path) -> str:
    """The advice that ends the message on a file that is not UTF-8, by how the file begins."""
    with path.open("rb") as file:
        head = file.read(8)
    for magic, method in COMPRESSED.items():
        if head.startswith(magic):
            return f"unpack the file, which is compressed with {method}"
    return "save the file as UTF-8"
