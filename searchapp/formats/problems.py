"""Problems of the files of one request, collected and reported together; unusable ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from searchapp.errors import InvalidFiles, Problem
from searchapp.files import reason

MAX_SHOWN = 40  # characters of an id or value in a message

MOST_KEYS = 12  # keys of an object in a message


class Problems:
    """Collects problems in the order in which readers report them.

    A reader reports a problem and continues with the next entry. With `lenient`, entries with problems are left out,
    and only problems that are not `skippable` (a missing file) are errors.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self._problems: list[Problem] = []
        self._fatal: list[Problem] = []
        self._notes: list[Problem] = []

    def add(
        self, file: str | Path, kind: str, where: str = "", detail: str = "", *, skippable: bool = True
    ) -> None:
        """Record one problem; the parameters are fields of `errors.Problem`."""
        self._record(Problem(str(file), kind, where, detail), skippable=skippable)

    def add_missing(
        self, file: str | Path, key: str, where: str, keys: Iterable[str], *, skippable: bool = True
    ) -> None:
        """Record that an object with these keys lacks a key: one line for all objects of a file."""
        keys_clause = f"the object has {some(list(keys), MOST_KEYS) or 'no keys'}"
        self._record(
            Problem(str(file), "missing key", where, f"{key}: {keys_clause}", key), skippable=skippable
        )

    def _record(self, problem: Problem, *, skippable: bool) -> None:
        self._problems.append(problem)
        if not skippable:
            self._fatal.append(problem)

    def note(self, file: str | Path, kind: str, where: str = "", detail: str = "") -> None:
        """Record an oddity for which nothing is left out."""
        self._notes.append(Problem(str(file), kind, where, detail))

    def add_all(self, others: Problems) -> None:
        for own, new in (
            (self._problems, others._problems),
            (self._fatal, others._fatal),
            (self._notes, others._notes),
        ):
            known = set(own)
            own += [problem for problem in new if problem not in known]

    def add_unopened(self, file: Path, error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            detail = f"{file.name} is expected in the folder {file.absolute().parent}"
            self.add(file, "missing file", detail=detail, skippable=False)
        else:
            self.add(file, "unreadable file", detail=reason(error), skippable=False)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems)

    def __len__(self) -> int:
        return len(self._problems)

    @property
    def stopped(self) -> bool:
        return bool(self._fatal)

    def raise_if_any(self, advice: str = "") -> None:
        """Raise all problems, unless `lenient` accepts every one of them.

        Raises:
            InvalidFiles: has all problems, including skippable ones.
        """
        if self._fatal or (self._problems and not self.lenient):
            raise InvalidFiles(self._problems, advice)

    @property
    def notes(self) -> InvalidFiles | None:
        return InvalidFiles(self._notes) if self._notes else None

    @property
    def skipped(self) -> InvalidFiles | None:
        return InvalidFiles(self._problems) if self.lenient and self._problems else None


class EntryProblems:
    """Reports the problems of one entry of a file; `good` until the first one."""

    def __init__(self, path: str | Path, where: str, problems: Problems) -> None:
        self.path = path
        self.where = where
        self.good = True
        self.problems = problems

    def wrong(self, kind: str, detail: str = "") -> None:
        self.good = False
        self.problems.add(self.path, kind, self.where, detail)

    def note(self, kind: str, detail: str) -> None:
        """Note an oddity for which the entry is not left out."""
        self.problems.note(self.path, kind, self.where, detail)


def shown(text: str) -> str:
    """Return an id or a value for a message: short, on one line, and without lone surrogates."""
    short = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return short if short.isprintable() and short.split() == [short] else ascii(short)


def some(names: Sequence[str], most: int = 3) -> str:
    """Return the first names for a message, and the number of others."""
    first = ", ".join(map(shown, names[:most]))
    return f"{first} and {len(names) - most:,} more" if len(names) > most else first


MAX_ID_BYTES = 512  # the limit of Elasticsearch


def unusable_id(id_: str) -> tuple[str, str] | None:
    """Return kind and detail of the problem of an id; None for a good one."""
    if 0 < len(id_) <= MAX_ID_BYTES and id_.isascii() and id_.isprintable() and " " not in id_:
        return None  # the fast path: a collection has many ids
    if id_.split() != [id_]:
        return "unusable id", "an id must not be empty or contain white space, which run files do not allow"
    if not encodable(id_):
        return "lone surrogate", "the id has an escape that is half of a surrogate pair"
    if any(unicodedata.category(character) == "Cc" for character in id_):
        return "unusable id", "an id must not contain control characters, which can affect a terminal"
    if len(id_.encode()) > MAX_ID_BYTES:
        return (
            "unusable id",
            f"an id must not be longer than {MAX_ID_BYTES} bytes, the limit of Elasticsearch",
        )
    return None


def encodable(text: str) -> bool:
    """Return whether UTF-8 can encode a text: half a surrogate pair can't be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
