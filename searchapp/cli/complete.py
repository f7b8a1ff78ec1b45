"""Completion by the Tab key: the possible values of an argument or option."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from searchapp.cli.output import COMPLETION_VARIABLE, show
from searchapp.config.settings import ENGINES, INDEXES, Settings
from searchapp.files import parse_toml, read_text

if TYPE_CHECKING:
    from searchapp.tasks.base import Task


# Maximum number of searched files.
MOST_FILES = 2000
# Levels of folders that are searched for runs.
DEEPEST_RUN = 3
# Maximum bytes of a task file.
LARGEST_TASK_FILE = 1 << 18

# Names without special characters of any shell: shells run completions as part of their scripts.
_OFFERED = re.compile(r"[\w.,:@%+=/~ -]+")
_SPECIAL_IN_BASH = re.compile(r"([^\w.,:@%+=/-])")


class Typed:
    """The command line up to the word to complete.

    Attributes:
        prefix: the text of a path up to its last slash
        folder: the folder of this text
    """

    def __init__(self, context: typer.Context, word: str) -> None:
        self.word = word
        folder, slash, _ = word.rpartition("/")
        self.prefix = folder + slash
        self.folder = Path(self.prefix or ".")
        self.command = context.info_name
        self._values = _arguments(context)
        above: Any = context
        while above is not None:  # values nearer to the word have precedence
            self._values = {**above.params, **{name: value for name, value in self._values.items() if value}}
            above = above.parent

    def settings(self) -> Settings:
        from searchapp.config.resolution import resolve

        return resolve(self._values, os.environ)

    def task(self) -> Task:
        """Load the typed task, or the task of a typed run.

        Raises:
            SearchappError: it cannot be read.
        """
        from searchapp.tasks import load

        return load(self._named() or _task_of(self.runs()[0]))

    def task_named(self) -> str | None:
        """Return the name of the typed task, if any."""
        from searchapp.tasks import load

        named = self._named()
        return load(named).name if named else None

    def _named(self) -> str | None:
        """Return the typed task, or the file of an own task of this name that the embedded engine has
        indexed."""
        from searchapp.tasks import names

        named = self._values.get("task")
        if not named or named in names() or self.settings().uses_server:
            return named
        from searchapp.app.index import reference

        return reference(self.settings(), named)

    def runs(self) -> list[Path]:
        given = self._values.get("runs") or self._values.get("run") or []
        return list(map(Path, given if isinstance(given, list | tuple) else [given]))

    def path(self, name: str) -> Path | None:
        return Path(self._values[name]) if self._values.get(name) else None


def _arguments(context: Any) -> dict[str, Any]:
    """Return the arguments that Click does not assign when a last option still lacks its value."""
    values: dict[str, Any] = {}
    words = list(context.args)
    for param in context.command.params:
        if param.param_type_name == "argument" and words:
            values[param.name] = words if param.nargs == -1 else words.pop(0)
    return values


def offer(run: Callable[[], int]) -> int:
    """Print only completions, whatever happens, and return the exit code for the shell."""
    offered = io.StringIO()
    try:
        with redirect_stdout(offered), redirect_stderr(io.StringIO()):
            return run()
    except Exception:
        return 1
    finally:
        for line in offered.getvalue().splitlines():
            show(_quoted(line))


def _quoted(name: str) -> str:
    """Quote a name for Bash; other shells quote completions themselves."""
    if not os.environ[COMPLETION_VARIABLE].endswith("complete_bash"):
        return name
    words, index = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    typed = words[int(index)] if index.isdecimal() and int(index) < len(words) else ""
    return name if typed[:1] in ("'", '"') else _SPECIAL_IN_BASH.sub(r"\\\1", name)


def complete(kind: str, context: typer.Context, word: str) -> list[str]:
    """Return the names of a kind, a function of this module, that begin with the typed word."""
    find: Callable[[Typed], Iterable[str]] = globals()[kind]
    try:
        names = [name for name in find(Typed(context, word)) if name.startswith(word)]
    except Exception:  # an incomplete command line need not be valid
        return []
    return [name for name in names if _OFFERED.fullmatch(name)]


def tasks(typed: Typed) -> Iterator[str]:
    """Own tasks by file, then shipped ones by name."""
    from searchapp.tasks import names

    for file in sorted(islice(typed.folder.iterdir(), MOST_FILES)):
        shown = typed.prefix + file.name
        if shown.startswith(typed.word) and file.suffix == ".toml" and _is_task_file(file):
            yield shown
    yield from names()


def official_tasks(_typed: Typed) -> Iterable[str]:
    """Tasks with downloadable files."""
    from searchapp.fetching.sources import names

    return names()


def engines(_typed: Typed) -> Iterable[str]:
    """Engines."""
    return ENGINES


def splits(typed: Typed) -> Iterable[str]:
    """Splits of the task."""
    return typed.task().info.splits


def recipes(typed: Typed) -> Iterable[str]:
    """Recipes of the task; for `search` only recipes that can rank words."""
    from searchapp.ranking.recipes import load

    book = typed.task().recipe_book()
    return [
        name for name in sorted(book.recipes) if typed.command != "search" or load(book, name).takes_words
    ]


def saved(typed: Typed) -> Iterable[str]:
    """Saved searches of the task."""
    from searchapp.app.saved_searches import SavedSearchFile

    return SavedSearchFile(typed.settings().home, typed.task().name).searches()


def fields(typed: Typed) -> Iterable[str]:
    """Text fields of the task's mapping."""
    from searchapp.ranking.search_results import text_fields

    return text_fields(typed.task().index_mapping()["mappings"]["properties"])


def analyzers(typed: Typed) -> Iterable[str]:
    """Analyzers of the task's mapping."""
    analysis: Mapping[str, Mapping[str, Any]] = typed.task().index_mapping()["settings"]["analysis"]
    return sorted(analysis["analyzer"])


def breakdowns(typed: Typed) -> Iterable[str]:
    """Breakdowns of the task's figures."""
    from searchapp.app.evaluate import ALL

    known = typed.task().breakdowns
    return [*known, ALL] if known else []


def measures(typed: Typed) -> Iterable[str]:
    """Additional measures of the task."""
    return typed.task().info.measures


def annotators(typed: Typed) -> Iterable[str]:
    """Annotators of the task."""
    from searchapp.judging.log import annotators_in

    return annotators_in(
        typed.path("log") or typed.path("log_file") or typed.settings().judgments, typed.task().name
    )


def indexes(typed: Typed) -> Iterable[str]:
    """Indexes of the embedded engine; a server is not asked."""
    settings = typed.settings()
    if settings.uses_server:
        return []
    start = f"{settings.index_prefix}-"
    folders = (settings.home / INDEXES).iterdir()
    return sorted(folder.name.removeprefix(start) for folder in folders if folder.name.startswith(start))


def runs(typed: Typed) -> Iterator[str]:
    """Run directories in and below the typed folder, of the typed task if any."""
    task = typed.task_named()
    for folder in _runs_below(typed.folder):
        shown = typed.prefix + folder.relative_to(typed.folder).as_posix()
        if shown.startswith(typed.word) and (task is None or _described(folder).get("task") == task):
            yield shown


def _runs_below(start: Path) -> Iterator[Path]:
    from searchapp.runs.directory import MANIFEST

    level, left = [start], MOST_FILES
    for _ in range(DEEPEST_RUN):
        below: list[Path] = []
        for folder in level:
            for entry in folder.iterdir():
                left -= 1
                if left < 0:
                    return
                if not entry.name.startswith(".") and entry.is_dir():
                    below.append(entry)
        runs = {folder for folder in below if (folder / MANIFEST).is_file()}
        yield from sorted(runs)
        level = sorted(set(below) - runs)


def _described(run: Path) -> Mapping[str, Any]:
    from searchapp import resources
    from searchapp.runs.directory import MANIFEST

    return resources.read_json(run / MANIFEST, file_names=True)


def _task_of(run: Path) -> str:
    described = _described(run)
    return str(described.get("variant") or described.get("task_file") or described["task"])


def _is_task_file(path: Path) -> bool:
    """Return whether a TOML file looks like a task file, not like another tool's project file."""
    try:
        if path.stat().st_size > LARGEST_TASK_FILE:
            return False
        keys = parse_toml(read_text(path)).keys()
        return {"name", "documents"} <= keys or "extends" in keys
    except (OSError, ValueError):
        return False
