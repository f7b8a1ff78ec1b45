"""Looking through a whole judgment log for damage, and copying it while others write."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import beside, reason, sync_folder
from searchapp.judging.chain import Stored
from searchapp.judging.log import JudgmentLog, NotSaved


@dataclass(frozen=True, slots=True)
class LogVerification:
    """What a log turned out to be.

    `events` counts those that are as they were written, `unsealed` those of them that an earlier searchapp wrote, and
    that no checksum covers yet. `damaged` and `missing` are places; `problems` are sentences on everything that is
    wrong, these events as well.
    """

    events: int
    unsealed: int
    damaged: tuple[int, ...]
    missing: tuple[int, ...]
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(log: JudgmentLog) -> LogVerification:
    """Look through a whole log: SQLite's own structure, every event and its checksum, and the end of the log.

    Raises:
        NotSaved: the file can't be read.
    """
    problems = [damage.words for damage in log.damage.found if damage.place is None]
    counted = unsealed = 0
    damaged: list[int] = []
    missing: list[int] = []
    try:
        problems += (f"SQLite says: {line}" for line in log.structure())
        with log.at_one_moment():
            for stored in log.stored():
                wrong = _wrong(log, stored)
                if wrong is not None:
                    damaged.append(stored.sequence)
                    problems.append(f"event {stored.sequence} {wrong}")
                    continue
                counted += 1
                if stored.own is None and not stored.is_covered:
                    unsealed += 1
                elif stored.own != stored.checksum(stored.before):
                    problems.append(f"event {stored.sequence} is as it was, a checksum beside it is not")
            missing = log.missing()
            problems += (f"event {place} is gone" for place in missing)
            covered = counted - unsealed + len(damaged) + len(missing)
            if not log.head_holds() or log.head.events != covered:
                problems.append(
                    f"the log has {covered:,} events up to its last checksum, and says something else of its end"
                )
    except DataError as error:
        problems.append(str(error))
    return LogVerification(counted, unsealed, tuple(damaged), tuple(missing), tuple(problems))


def _wrong(log: JudgmentLog, stored: Stored) -> str | None:
    """What is wrong with an event; None if nothing is."""
    if not log.is_sound(stored):
        return "is damaged: it is not what was written"
    try:
        stored.event().check()
    except (ValueError, DataError) as error:
        return f"can't be read: {error}"
    return None


def back_up(log: JudgmentLog, file: Path) -> LogVerification:
    """Copy a log as it is at one moment to a new file, which needs none beside it; returns what the copy is.

    Others may write at the same time. A copy of a damaged log is kept as well: it may be all that there will be.

    Raises:
        UsageError: the file exists, or its folder does not.
        SearchappError: it can't be written.
    """
    if file.exists() or file.is_symlink():
        raise UsageError(f"{file} exists already: choose another name")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}: make it, or choose another place")
    temporary = beside(file)
    try:
        log.copy_to(temporary)
        verdict = _verified(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        _put(temporary, file)
    except FileExistsError:
        raise UsageError(f"{file} exists already: choose another name") from None
    except (OSError, sqlite3.Error) as error:
        why = reason(error) if isinstance(error, OSError) else str(error).lower()
        raise SearchappError(f"{file} can't be written: {why}; nothing was left behind") from error
    finally:
        for end in (
            "",
            "-wal",
            "-shm",
            "-journal",
        ):  # what SQLite has beside a file that was not closed in order
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
    return verdict


def _verified(copy: Path) -> LogVerification:
    """What the copy of a log is, which needs no file beside it from then on.

    Raises:
        sqlite3.Error: SQLite can't write beside it.
    """
    try:
        with closing(JudgmentLog(copy)) as log:
            verdict = verify(log)
            log.keep_in_one_file()
    except NotSaved as error:  # which would name the copy as it is called until it is complete
        raise error.__cause__ or error from None
    return verdict


def _put(temporary: Path, file: Path) -> None:
    """Give a complete file its name, unless somebody else has taken it since."""
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # not every file system has links
        temporary.rename(file)
    sync_folder(file.parent)
