"""Which code turns texts into postings: where it is another one, nothing is carried over from an older version.

A number that somebody raises with each change of an analyzer would be forgotten one day, and then old postings would
stand beside new ones. So it is the code itself that counts: every file of the analyzers and of this engine, and what
they build on that knows characters.
"""

from __future__ import annotations

import platform
import time
import unicodedata
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import searchapp
from searchapp.digests import digest_file, digest_json
from searchapp.errors import DataError

CODE = ("analysis", "engines/embedded", "engines/index_settings.py", "model.py")
"""What the postings of a document depend on, besides mapping and document."""

_COMPILED = {".so", ".sha256", ".pyd", ".dylib", ".c", ".h"}
"""What only scores, and may be compiled later."""


_LOADED = time.time()
"""When this process had begun to load the code: files that have changed since are not what it runs."""


@cache
def code_digest() -> str:
    """What identifies the code that this process runs; empty where its files can't be read, or are others by now."""
    folder = Path(searchapp.__file__).parent
    try:
        files = _files(folder)
        if any(_changed(file) > _LOADED for file in files):
            return ""
        return digest_json(
            {
                "files": {file.relative_to(folder).as_posix(): digest_file(file) for file in files},
                "python": platform.python_version(),
                "unicode": unicodedata.unidata_version,
                "regex": version("regex"),
            }
        )
    except (OSError, DataError, PackageNotFoundError):
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


def _changed(file: Path) -> float:
    """When a file was last written, or put into the place of another one."""
    status = file.stat()
    return max(status.st_mtime, status.st_ctime)
