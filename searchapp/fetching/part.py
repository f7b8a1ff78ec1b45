"""A download that has not arrived yet: its bytes so far, and what the server called this version of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


class Part:
    """The unfinished form of the file `path`, beside it: `NAME.part`, and `NAME.version` with the validator.

    The validator is what HTTP's If-Range takes, a strong entity tag or a date: with it a server sends the rest only
    of the very file that the bytes so far are of (RFC 9110, 13.1.5).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.with_name(f"{path.name}.part")
        self._version = path.with_name(f"{path.name}.version")

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def validator(self) -> str | None:
        try:
            return self._version.read_text(encoding="ascii").strip() or None
        except (OSError, ValueError):
            return None

    def begin(self, validator: str | None) -> None:
        """Forget what there is, to start again with the version that the validator names."""
        self.discard()
        self.file.touch()
        if validator and validator.isascii():
            self._version.write_text(validator, encoding="ascii")

    def open(self) -> BinaryIO:
        """To append to. Every piece is with the system at once, so that none is lost whatever ends the process."""
        return self.file.open("ab", buffering=0)

    def discard(self) -> None:
        """Remove every trace of it."""
        self.file.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the file its name, once it is on disk."""
        with self.file.open("rb") as file:
            os.fsync(file.fileno())
        self.file.replace(self.path)
        self._version.unlink(missing_ok=True)
