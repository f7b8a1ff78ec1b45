"""Problems: everything that is wrong with the files of one request, collected to be reported at once; unusable ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from searchapp.errors import InvalidFiles, Problem
from searchapp.files import reason

MAX_SHOWN = 40

MOST_KEYS = 12
"""How many keys of an object a message names."""


class Problems:
    """The problems found so far, in the order in which they were met.

    Readers add to it and go on with the next entry. With `lenient`, an entry that has a problem is left out
    and only reported; a problem that is not `skippable` (a missing file, one that is no JSON) stays an error.

        problems = Problems(lenient=True)
        documents = list(read_knowledge_base(path, problems))
        problems.raise_if_any()
        if problems.skipped: print("left out:", problems.skipped)
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self._found: list[Problem] = []
        self._fatal: list[Problem] = []
        self._notes: list[Problem] = []

    def add(
        self, file: str | Path, kind: str, where: str = "", detail: str = "", *, skippable: bool = True
    ) -> None:
        """Record one problem; the words are those of `errors.Problem`."""
        self._record(Problem(str(file), kind, where, detail), skippable=skippable)

    def add_missing(
        self, file: str | Path, key: str, where: str, keys: Iterable[str], *, skippable: bool = True
    ) -> None:
        """Record that the object at a place lacks a key, and which keys it has.

        However many objects of a file lack the key, a message has one line about it.
        """
        there = f"the object has {some(list(keys), MOST_KEYS) or 'no keys'}"
        self._record(Problem(str(file), "missing key", where, f"{key}: {there}", key), skippable=skippable)

    def _record(self, problem: Problem, *, skippable: bool) -> None:
        self._found.append(problem)
        if not skippable:
            self._fatal.append(problem)

    def note(self, file: str | Path, kind: str, where: str = "", detail: str = "") -> None:
        """Record something odd that is no reason to stop or to leave anything out, but should be known.

        Real files have such places; `detail` says what is made of them.
        """
        self._notes.append(Problem(str(file), kind, where, detail))

    def add_all(self, others: Problems) -> None:
        """Record what a reading has found that is reported elsewhere too; what is recorded already is not repeated."""
        for own, new in (
            (self._found, others._found),
            (self._fatal, others._fatal),
            (self._notes, others._notes),
        ):
            known = set(own)
            own += [problem for problem in new if problem not in known]

    def add_unopened(self, file: Path, error: OSError) -> None:
        """Record that a file cannot be opened: which one is expected, and where."""
        if isinstance(error, FileNotFoundError):
            detail = f"{file.name} is expected in the folder {file.absolute().parent}"
            self.add(file, "missing file", detail=detail, skippable=False)
        else:
            self.add(file, "unreadable file", detail=reason(error), skippable=False)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def stopped(self) -> bool:
        """Whether there is a problem that no entry can be left out for, such as a file that is not read to its end."""
        return bool(self._fatal)

    def raise_if_any(self, advice: str = "") -> None:
        """Raise what has been found, unless `lenient` lets it pass.

        Raises:
            InvalidFiles: holds all problems, also those that `lenient` alone would have let pass.
        """
        if self._fatal or (self._found and not self.lenient):
            raise InvalidFiles(self._found, advice)

    @property
    def notes(self) -> InvalidFiles | None:
        """What was noted, ready to be printed and counted; None when nothing was."""
        return InvalidFiles(self._notes) if self._notes else None

    @property
    def skipped(self) -> InvalidFiles | None:
        """What was left out under `lenient`, ready to be printed and counted; None when nothing was."""
        return InvalidFiles(self._found) if self.lenient and self._found else None


def shown(text: str) -> str:
    """An id or a value as it can be printed in a message: short, on one line, and without lone surrogates."""
    short = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return short if short.isprintable() and short.split() == [short] else ascii(short)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names as a message shows them, and how many others there are.

    >>> some(["q1", "q2"]), some(["q1", "q2", "q3", "q4", "q5"])
    ('q1, q2', 'q1, q2, q3 and 2 more')
    """
    first = ", ".join(map(shown, names[:most]))
    return f"{first} and {len(names) - most:,} more" if len(names) > most else first


MAX_ID_BYTES = 512
"""As Elasticsearch has it."""


def unusable_id(id_: str) -> tuple[str, str] | None:
    """Kind and detail of the problem of an id; None for a good one."""
    if 0 < len(id_) <= MAX_ID_BYTES and id_.isascii() and id_.isprintable() and " " not in id_:
        return None  # nearly all are, and a collection has many
    if id_.split() != [id_]:
        return "unusable id", "an id must not be empty or hold whitespace, which run files cannot carry"
    if not encodable(id_):
        return "lone surrogate", "the id has an escape that is half of a character"
    if any(unicodedata.category(character) == "Cc" for character in id_):
        return "unusable id", "an id must not hold control characters, which can act on a terminal"
    if len(id_.encode()) > MAX_ID_BYTES:
        return "unusable id", f"an id must not be longer than {MAX_ID_BYTES} bytes, as Elasticsearch has it"
    return None


def encodable(text: str) -> bool:
    """Whether a text can be written in UTF-8: one with half a surrogate pair can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
