"""The exceptions of searchapp, with the exit codes of commands.

    SearchappError                 1  failure
    ├── UsageError                 2  usage error
    │   └── OtherDocuments         2    indexing would replace other documents
    ├── EngineError                3  engine unreachable or refused
    │   ├── EngineUnreachable      3    no answer: wrong address, not running, TLS, timeout
    │   └── EngineRefused          3    error from the engine: credentials, version, mapping, load
    │       ├── QueryRefused       3      error of one query in a batch
    │       ├── BeingBuilt         3      another process builds the index
    │       ├── EngineBusy         3      overload
    │       └── Replaced           3      the opened version is gone
    ├── DataError                  4  invalid file
    │   ├── Damaged                4    index files were altered
    │   ├── InvalidFiles           4    files with all their problems
    │   └── NotScorable            4    the official scorer rejects the file
    ├── ModelUnavailable           1  an endpoint or a command of a model fails
    └── GateMissed                 5  a figure is below `--fail-under`

A message states what is wrong, where, and what to do.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterable, Sequence

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector as ErrorCollector
from searchapp.lucene.errors import ReportedError


class SearchappError(ReportedError):
    """The base of all errors for the user; `lines` are its message."""

    exit_code = 1


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether Python, a system call or the library loader reports a lack of memory."""
    if isinstance(error, ImportError | RuntimeError):
        return any(words in str(error) for words in ("failed to map segment", "can't start new thread"))
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


class UsageError(SearchappError):
    """A usage error, such as an unknown name or contradicting options."""

    exit_code = 2


class OtherDocuments(UsageError):
    """Indexing would replace most documents of an index."""

    def __init__(self, finding: str, advice: str) -> None:
        super().__init__(f"{finding}: {advice}")
        self.finding = finding


class EngineError(SearchappError):
    """The search engine is unreachable or refused the request."""

    exit_code = 3


class EngineUnreachable(EngineError):
    """The engine did not answer, even after retries."""


class EngineRefused(EngineError):
    """The engine answered with an error."""


class QueryRefused(EngineRefused):
    """The engine refused one query of a batch; `place` is its index."""

    def __init__(self, message: str, index: int, further: Sequence[str] = ()) -> None:
        self.place = index
        super().__init__(message, *further)

    @classmethod
    def of(cls, error: EngineRefused, index: int, prefix: str = "") -> QueryRefused:
        """Return the error of one query with all lines of another, and `what` before the first."""
        first, *further = error.lines
        return cls(f"{prefix}{first}", index, further)


class BeingBuilt(EngineRefused):
    """Another process (`builder`) builds the same index."""

    def __init__(self, index: str, builder: str) -> None:
        self.builder = builder or "unknown"
        super().__init__(f"process {self.builder} is building {index} at this moment: wait until it is done")


class EngineBusy(EngineRefused):
    """The engine is overloaded."""


class Replaced(EngineRefused):
    """A newer version has replaced the opened version of an index."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"{version} was replaced by a newer version during the search: run the command again"
        )


class DataError(SearchappError):
    """A file does not conform to its format."""

    exit_code = 4


class ModelUnavailable(SearchappError):
    """An endpoint or a command that gives texts to a model fails; a later attempt may not."""

    def __init__(self, finding: str) -> None:
        super().__init__(f"{finding}: finished answers are stored, and the same command resumes")
        self.finding = finding


class GateMissed(SearchappError):
    """A figure is below the value of `--fail-under`."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file.

    Args:
        file: its name
        kind: a constant phrase ("duplicate id") by which problems are counted
        where: the position ("statement 4465", "line 12"), or "" for the whole file
        detail: the rest of the sentence
        key: a key that objects lack; a message shows only the first such object of a file and their number
    """

    file: str
    kind: str
    where: str = ""
    detail: str = ""
    key: str = ""

    def __str__(self) -> str:
        location = f"{self.file}: {self.where}" if self.where else self.file
        return f"{location}: {self.kind}{': ' + self.detail if self.detail else ''}"


class Damaged(DataError):
    """The files of an index were altered in the way that `problem` describes."""

    problem = ""


class InvalidFiles(DataError):
    """Files with `problems`, which the message counts by kind."""

    SHOWN = 10

    def __init__(self, problems: Sequence[Problem], advice: str = "") -> None:
        self.problems = tuple(problems)
        self.advice = advice
        super().__init__(*self._lines())

    def counts(self) -> dict[str, int]:
        """Return the number of problems of each kind, most frequent first."""
        return dict(Counter(problem.kind for problem in self.problems).most_common())

    def _lines(self) -> list[str]:
        groups = list(self._groups())
        shown = [_in_one_line(group) for group in groups[: self.SHOWN]]
        if len(groups) == 1:
            lines = shown
        else:
            by_kind = ", ".join(f"{kind} ({count})" for kind, count in self.counts().items())
            lines = [f"{len(self.problems)} problems: {by_kind}", *(f"  {line}" for line in shown)]
            if left := sum(map(len, groups[self.SHOWN :])):
                lines.append(f"  and {left} more")
        if self.advice:
            lines[0] += f"; {self.advice}"
        return lines

    def _groups(self) -> Iterable[Sequence[Problem]]:
        groups: dict[object, list[Problem]] = {}
        for index, problem in enumerate(self.problems):
            group_key = (problem.file, problem.kind, problem.key) if problem.key else index
            groups.setdefault(group_key, []).append(problem)
        return groups.values()


def _in_one_line(group: Sequence[Problem]) -> str:
    return str(group[0]) + (f"; {len(group):,} objects lack it, the first is shown" if len(group) > 1 else "")


class NotScorable(DataError):
    """The official scorer stops on this file or rejects it; `official` is its error, as `class: message`."""

    def __init__(self, message: str, official: str) -> None:
        self.problem = message
        self.official = official
        super().__init__(f"{message}; the official scorer would not score this file ({official})")

    def of(self, source: str) -> NotScorable:
        """Return the error with a file name before the message, unless the message begins with it."""
        if self.problem.startswith(f"{source}: "):
            return self
        return NotScorable(f"{source}: {self.problem}", self.official)
