"""Every error that searchapp raises on purpose.

    SearchappError                 1  something failed
    ├── UsageError                 2  the request itself makes no sense
    │   └── OtherDocuments         2    an index would be replaced by other documents
    ├── EngineError                3  the engine is unreachable or refused
    │   ├── EngineUnreachable      3    no answer: wrong address, not running, TLS, timeouts
    │   └── EngineRefused          3    an answer that says no: credentials, version, mapping, load
    │       ├── QueryRefused       3      to one query of a batch
    │       ├── BeingBuilt         3      another process builds this index
    │       ├── EngineBusy         3      too much to do at this moment
    │       └── Replaced           3      the version that was opened is gone
    ├── DataError                  4  a file is not what its format promises
    │   ├── Damaged                4    the files of an index were altered
    │   ├── InvalidFiles           4    one or more files, with every problem found in them
    │   └── NotScorable            4    the official scorer would not score this file
    └── GateMissed                 5  a figure is below `--fail-under`

The number is the exit code of the command. The message is one sentence that says what is wrong, where, and
what to do about it; it is printed as it stands, without a traceback.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from searchapp.lucene.errors import ErrorCollector as ErrorCollector
from searchapp.lucene.errors import ReportedError


class SearchappError(ReportedError):
    """The base of all errors for the user; `lines` are its message, mostly one."""

    exit_code = 1


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an exception of Python, a system call or the loader of libraries says that there is no memory
    left.
    """
    if isinstance(error, ImportError | RuntimeError):
        return any(words in str(error) for words in ("failed to map segment", "can't start new thread"))
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


class UsageError(SearchappError):
    """A usage error: unknown name, options that exclude each other."""

    exit_code = 2


class OtherDocuments(UsageError):
    """Indexing would replace most documents of an index; `finding` says which, `advice` what to do."""

    def __init__(self, finding: str, advice: str) -> None:
        super().__init__(f"{finding}: {advice}")
        self.finding = finding


class EngineError(SearchappError):
    """The search engine is unreachable or refused."""

    exit_code = 3


class EngineUnreachable(EngineError):
    """No usable answer came from the engine, after the retries."""


class EngineRefused(EngineError):
    """The engine answered with a refusal."""


class QueryRefused(EngineRefused):
    """The engine refused one query of a batch: the one at `place`, counted from 0."""

    def __init__(self, message: str, place: int, further: Sequence[str] = ()) -> None:
        self.place = place
        super().__init__(message, *further)

    @classmethod
    def of(cls, error: EngineRefused, place: int, what: str = "") -> QueryRefused:
        """Return the refusal of the query at a place of a batch with all lines of an error, and `what` before the
        first.
        """
        first, *further = error.lines
        return cls(f"{what}{first}", place, further)


class BeingBuilt(EngineRefused):
    """Another process builds the same index; `builder` is its number, if it is known."""

    def __init__(self, index: str, builder: str) -> None:
        self.builder = builder or "unknown"
        super().__init__(f"process {self.builder} is building {index} at this moment: wait until it is done")


class EngineBusy(EngineRefused):
    """The engine is overloaded at the moment."""


class Replaced(EngineRefused):
    """A newer version has replaced the version of an index that a handle reads."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"{version} was replaced by a newer version during the search: run the command again"
        )


class DataError(SearchappError):
    """A file does not conform to its format."""

    exit_code = 4


class GateMissed(SearchappError):
    """A figure is below the value of `--fail-under`."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file.

    Args:
        file: its name
        kind: a short constant phrase ("duplicate id") by which problems are counted
        where: the place inside the file ("statement 4465", "line 12", or "" for the file as a whole)
        detail: the rest of the sentence
        key: the key that an object lacks: a message has the first object of a file that lacks it, and their number
    """

    file: str
    kind: str
    where: str = ""
    detail: str = ""
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}: {self.where}" if self.where else self.file
        return f"{place}: {self.kind}{': ' + self.detail if self.detail else ''}"


class Damaged(DataError):
    """The files of an index were altered; `problem` says how."""

    problem = ""


class InvalidFiles(DataError):
    """Files with `problems`, which the message counts by kind."""

    SHOWN = 10

    def __init__(self, problems: Sequence[Problem], advice: str = "") -> None:
        self.problems = tuple(problems)
        self.advice = advice
        super().__init__(*self._lines())

    def counts(self) -> dict[str, int]:
        """Return the number of problems of each kind, the commonest first."""
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
        """Yield the problems; those of one file whose objects lack the same key are one group."""
        groups: dict[object, list[Problem]] = {}
        for place, problem in enumerate(self.problems):
            group_key = (problem.file, problem.kind, problem.key) if problem.key else place
            groups.setdefault(group_key, []).append(problem)
        return groups.values()


def _in_one_line(group: Sequence[Problem]) -> str:
    return str(group[0]) + (f"; {len(group):,} objects lack it, this is the first" if len(group) > 1 else "")


class NotScorable(DataError):
    """The organisers' own scorer stops on this file or refuses it, so there is no official figure.

    `official` is the error of their script, as `class: message`.
    """

    def __init__(self, message: str, official: str) -> None:
        self.problem = message
        self.official = official
        super().__init__(f"{message}; the official scorer would not score this file ({official})")

    def of(self, source: str) -> NotScorable:
        """Return the same with the name of the file before it, unless the message begins with it."""
        if self.problem.startswith(f"{source}: "):
            return self
        return NotScorable(f"{source}: {self.problem}", self.official)
