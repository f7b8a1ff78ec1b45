"""Errors of the search library, the functions that make the commonest ones, and the collection of several into one.

ReportedError                a message for the user, in one or more lines
└── LuceneError
    ├── NotSupported         a piece of an analysis that only Elasticsearch runs
    │   └── Undefined        the name of a piece that is not defined
    ├── InvalidInput         invalid settings, patterns or files
    │   ├── BadSettings      settings that Elasticsearch rejects as well
    │   ├── PatternTimeout   a regular expression did not finish in time
    │   ├── OldFormat        the index has the layout of an earlier version
    │   └── CorruptIndex     the files of an index were altered
    ├── Refused              a mapping, a search body or a document is rejected
    │   ├── InvalidRequest   Elasticsearch rejects it as well
    │   ├── Reported         its problems are recorded already
    │   ├── IndexLocked      another process writes the index
    │   └── IndexReplaced    the opened version of the index is gone
    └── UnreadableFile       the system does not let a file be read
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

# The ends of messages that an application may complete with advice of its own.
ELSEWHERE = "Elasticsearch does"
BUILD_AGAIN = "build it again"
OTHER_FOLDER = "choose another folder"

MOST_GATHERED = 40  # maximum number of reported problems of a document

BEYOND_FLOAT32 = (
    "this query produces a score that is infinite or not a number: use smaller boosts and weights"
)

SIMILARITY_CUTOFF = 0.6  # minimum `difflib` ratio, from 0 to 1, of a suggested correction


class ReportedError(Exception):
    """Base of all errors with a message for the user; `lines` are the message."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        # The default calls the class with the message alone, which does not fit all `__init__` methods.
        return restored, (type(self), self.args, self.__dict__)


def restored(
    kind: type[ReportedError], arguments: tuple[object, ...], state: Mapping[str, object]
) -> ReportedError:
    """Return an error of a class with the message and attributes of another, without calling `__init__`."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class ErrorCollector:
    """Collects the errors of independent parts of a JSON document, and raises them as one.

    problems = ErrorCollector()
    for name, field in fields.items():
        with problems.at(f"mappings.properties.{name}"):
            read(field)
    problems.raise_if_any()
    """

    def __init__(self) -> None:
        self._first: ReportedError | None = None
        self._lines: list[str] = []

    def at(self, path: str = "") -> _ErrorRecorder:
        """Record an error of the `with` block with its JSON path; lines of a collected error already have paths."""
        return _ErrorRecorder(self, path)

    def add(self, error: ReportedError, path: str) -> None:
        self._first = self._first or error
        lines = [f"{path}: {line}" if path else line for line in error.lines]
        self._lines += [line for line in lines if line not in self._lines]

    def raise_if_any(self) -> None:
        """Raise the first error with the lines of all errors."""
        if self._first is not None:
            more = len(self._lines) - MOST_GATHERED
            shown = self._lines[:MOST_GATHERED] + ([f"and {more:,} more"] if more > 0 else [])
            self._first.lines = tuple(shown)
            self._first.args = ("\n".join(shown),)
            raise self._first


class _ErrorRecorder:
    """Suppresses and records a `ReportedError`; mypy does not see that a generator suppresses errors."""

    def __init__(self, problems: ErrorCollector, path: str) -> None:
        self._problems = problems
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, ReportedError):
            return False
        self._problems.add(error, self._path)
        return True


class LuceneError(ReportedError):
    """Base of all errors of the search library."""


class NotSupported(LuceneError):
    """The embedded engine can't run a `piece` exactly as Elasticsearch does."""

    def __init__(self, piece: str) -> None:
        self.piece = piece
        super().__init__(f"the embedded engine does not support {piece}; {ELSEWHERE}")


class Undefined(NotSupported):
    """Neither the analysis settings nor the embedded engine define the name of a piece."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.piece = f"the {kind} `{name}`"
        LuceneError.__init__(
            self,
            f"unknown {kind} `{name}`{suggestion(name, known)}: define it under `settings.analysis.{kind}`, or use "
            "Elasticsearch if it defines it",
        )


class InvalidInput(LuceneError):
    """Invalid settings, patterns or files."""


class BadSettings(InvalidInput):
    """Index settings that Elasticsearch rejects as well."""


class PatternTimeout(InvalidInput):
    """A regular expression of the analysis settings did not finish on a text in time."""


class OldFormat(InvalidInput):
    """The index has the layout of an earlier version."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"the index in {folder} was written by an earlier version: {BUILD_AGAIN}")


class CorruptIndex(InvalidInput):
    """The files of an index were altered; `problem` describes the damage."""

    def __init__(self, folder: Path, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the index in {folder} is damaged ({problem}): {BUILD_AGAIN}")


class Refused(LuceneError):
    """A mapping, a search body or a document is rejected."""


class InvalidRequest(Refused):
    """Elasticsearch rejects the mapping, search body or document as well."""


class Reported(Refused):
    """Parts of a query were rejected, and are already recorded with their JSON paths."""


class RefusedQuery(Refused):
    """The search body with the index `place` in a batch is rejected."""

    def __init__(self, index: int, *lines: str) -> None:
        self.place = index
        super().__init__(*lines)


class IndexLocked(Refused):
    """Another process writes the index; `builder` is its process number or "unknown"."""

    def __init__(self, index: str, builder: str) -> None:
        self.builder = builder or "unknown"
        super().__init__(f"process {self.builder} is building {index}: wait until it is done")


class IndexReplaced(Refused):
    """A newer version has replaced the opened version of an index."""

    def __init__(self, version: str) -> None:
        super().__init__(f"{version} was replaced by a newer version during the search: search again")


class UnreadableFile(LuceneError):
    """The system denies reading a file of an index; `__cause__` is its error."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(f"{path} can't be read: {why}")


def unsupported(piece: str) -> Refused:
    """Return the error for a piece of a mapping or search body that only Elasticsearch supports.

    >>> print(unsupported("the query `fuzzy`"))
    the embedded engine does not support the query `fuzzy`; Elasticsearch does
    """
    return Refused(f"the embedded engine does not support {piece}; {ELSEWHERE}")


def invalid(problem: str) -> InvalidRequest:
    """Return the error for a mapping or a search body that Elasticsearch also rejects."""
    return InvalidRequest(f"invalid request: {problem}")


def known_only(options: Mapping[str, Any], known: Collection[str], label: str) -> None:
    """Reject unknown parameters: ignoring one could change the ranking silently.

    Raises:
        Refused: there is one.
    """
    unknown = [f"`{name}`" for name in options if name not in known]
    if unknown:
        raise unsupported(f"{' and '.join(unknown)} in {label}")


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to a misspelled one; None if no name is similar.

    >>> closest_name("NLPS", ["nlps", "checkthat"]), closest_name("chekthat", ["nlps", "checkthat"])
    ('nlps', 'checkthat')
    """
    from difflib import get_close_matches

    by_folded_name = {candidate.casefold(): candidate for candidate in known}
    folded = name.strip().casefold()
    completions = [candidate for candidate in by_folded_name if folded and candidate.startswith(folded)]
    matches = (
        completions
        if len(completions) == 1
        else get_close_matches(folded, by_folded_name, 1, SIMILARITY_CUTOFF)
    )
    return by_folded_name[matches[0]] if matches else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the suggestion at the end of a message about an unknown name; empty if no known name is similar.

    >>> suggestion("nlp", ["nlps", "checkthat"]), suggestion("x", ["nlps"])
    (' (did you mean nlps?)', '')
    """
    similar = closest_name(name, known)
    return "" if similar is None else f" (did you mean {similar}?)"
