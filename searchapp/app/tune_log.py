"""The trials of a tuning that are done, each appended durably to a file: a tuning goes on where it was ended.

The first line says what is tuned and how, each other one what a trial came to on some topics. A line ends with the
SHA-256 of what is before it. A last line without it was being written when the process or the machine was stopped,
and counts as not written; anything else that is not as it was written is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, SearchappError
from searchapp.files import alone_in, reason, sync_folder
from searchapp.inputs import parse_json

FILE = "trials.jsonl"
FORMAT = 1

BUSY = "process {process} is at this tuning in %s: wait until it is done"


@dataclass(frozen=True, slots=True)
class Done:
    """What a trial came to on some topics: their values by their ids or, where it failed, why."""

    trial: int
    rung: int
    values: Mapping[str, float]
    error: str | None = None


class TuneLog:
    """The log in a folder, which one process has for itself; `about` says what is tuned and how.

    Raises:
        DataError: there is a log of something else, or it is damaged.
        SearchappError: another process is at it, or it can't be written.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.path = folder / FILE
        self.done: dict[tuple[int, int], Done] = {}
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise SearchappError(f"{self.path} can't be written: {reason(error)}") from error
        try:
            self._begin({"format": FORMAT, **about})
        except BaseException:
            self.close()
            raise

    def _begin(self, head: Mapping[str, Any]) -> None:
        """Read what is done, or write what is tuned into a new file."""
        try:
            held = self._whole_lines()
        except OSError as error:
            raise SearchappError(f"{self.path} can't be read: {reason(error)}") from error
        if not held:
            self._append(head)
            with suppress(OSError):
                sync_folder(self.path.parent)
            return
        if held[0] != parse_json(json.dumps(head)):
            raise DataError(
                f"{self.path} is the log of another tuning, or of the same with other data: name another folder with "
                "--log, or begin anew with --restart"
            )
        for line in held[1:]:
            one = Done(line["trial"], line["rung"], line["values"], line.get("error"))
            self.done[one.trial, one.rung] = one

    def append(self, done: Done) -> None:
        """Keep what a trial came to; it is on the disk when this returns.

        Raises:
            SearchappError: it can't be; what was there before is still there.
        """
        line: dict[str, Any] = {"trial": done.trial, "rung": done.rung, "values": dict(done.values)}
        self._append(line if done.error is None else {**line, "error": done.error})
        self.done[done.trial, done.rung] = done

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=True).encode()
        left = memoryview(text + b" " + hashlib.sha256(text).hexdigest().encode() + b"\n")
        end = self._file.seek(0, os.SEEK_END)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise SearchappError(
                f"{self.path} could not be written: {reason(error)}; the same command goes on from the trials before"
            ) from error

    def _whole_lines(self) -> list[Any]:
        """What stands in the file; a last line that was not written whole is removed."""
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        torn = lines.pop()
        found = []
        for number, line in enumerate(lines, 1):
            text, _, digest = line.rpartition(b" ")
            if hashlib.sha256(text).hexdigest().encode() != digest:
                if number == len(lines) and not torn:
                    torn = line + b"\n"
                    break
                raise DataError(
                    f"{self.path}: line {number} was changed since it was written: begin anew with --restart"
                )
            found.append(parse_json(text.decode()))
        if torn:
            self._file.truncate(self._file.seek(0, os.SEEK_END) - len(torn))
        return found


@contextmanager
def opened(folder: Path, about: Mapping[str, Any], *, restart: bool = False) -> Iterator[TuneLog]:
    """The log in a folder, for this process alone; with `restart` what is there is forgotten."""
    with alone_in(folder, BUSY % folder):
        if restart:
            try:
                (folder / FILE).unlink(missing_ok=True)
            except OSError as error:
                raise SearchappError(f"{folder / FILE} can't be removed: {reason(error)}") from error
        log = TuneLog(folder, about)
        try:
            yield log
        finally:
            log.close()
