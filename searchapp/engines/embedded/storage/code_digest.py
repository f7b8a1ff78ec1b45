"""Which code turns texts into postings: where it is another one, nothing is carried over from an older version.

A number that somebody raises with each change of an analyzer would be forgotten one day, and then old postings would
stand beside new ones. So it is the code itself that counts: every file of the analyzers and of this engine, and what
they build on that knows characters.
"""

from __future__ import annotations

import hashlib
import platform
import unicodedata
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import searchapp
from searchapp.digests import digest_json

CODE = ("analysis", "engines/embedded", "engines/index_settings.py", "model.py")
"""What the postings of a document depend on, besides mapping and document."""

_COMPILED = {".so", ".sha256", ".pyd", ".dylib", ".c"}
"""What only scores, and may be compiled later."""


@cache
def code_digest() -> str:
    """What identifies the code; empty where its files can't be read."""
    folder = Path(searchapp.__file__).parent
    try:
        return digest_json(
            {
                "files": {file.relative_to(folder).as_posix(): _digest(file) for file in _files(folder)},
                "python": platform.python_version(),
                "unicode": unicodedata.unidata_version,
                "regex": version("regex"),
            }
        )
    except (OSError, PackageNotFoundError):
        return ""


def _files(folder: Path) -> list[Path]:
    """The files of the code.

    Raises:
        OSError: it is not there as files.
    """
    found = []
    for name in CODE:
        place = folder / name
        inner = sorted(place.rglob("*")) if place.is_dir() else [place]
        files = [
            file
            for file in inner
            if file.suffix not in _COMPILED and "__pycache__" not in file.parts and not file.is_dir()
        ]
        if not files:
            raise FileNotFoundError(place)
        found += files
    return found


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
