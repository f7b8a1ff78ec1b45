"""Collect the content of the home screen: the engine, the tasks with their indexes, the runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from searchapp import tasks
from searchapp.app import index as indexes
from searchapp.app.runs import KnownRun, recent_runs
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine, EngineInfo
from searchapp.errors import DataError, EngineError, EngineRefused, SearchappError
from searchapp.fetching.sources import has_data
from searchapp.formats.problems import Problems
from searchapp.judging.agreement import judged_in
from searchapp.lucene.dataclass import dataclass
from searchapp.model import IndexInfo
from searchapp.resources import SAMPLES
from searchapp.tasks import folders, sample_names
from searchapp.tasks.base import Task

ATTEMPTS = 1
TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task with its files, index and judgments."""

    task: Task
    folder: Path  # the expected folder of its files
    has_files: bool
    sample: Path | None  # the folder of its shipped sample
    index: IndexInfo | None  # the searched index; None also if no engine answers
    is_sample: bool  # whether the index has the sample
    judged: int  # number of graded documents in the log

    @property
    def files(self) -> Path | None:
        if self.has_files:
            return self.folder
        return self.sample if self.is_sample else None


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of engine, tasks and runs at one moment."""

    engine: EngineInfo | None
    trouble: str  # why the engine does not answer
    tasks: tuple[TaskState, ...]  # own tasks first
    runs: tuple[KnownRun, ...]
    notes: tuple[str, ...] = ()  # messages on unreadable files

    @property
    def is_empty(self) -> bool:
        return self.engine is not None and not any(state.index for state in self.tasks)


def look(settings: Settings, folder: Path) -> Overview:
    """Return the present state, with the runs in `folder`."""
    notes: list[str] = []
    judged: Mapping[str, int] = {}
    try:
        judged = judged_in(settings.judgments)
    except (sqlite3.Error, OSError) as error:
        notes.append(f"{settings.judgments} can't be read: {error}")

    def state(task: Task, index: IndexInfo | None) -> TaskState:
        return _state(task, settings.home, index, judged.get(task.name, 0))

    info, trouble, serving, indexed = None, "", {}, []
    try:
        with closing(open_engine(settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)) as engine:
            info = engine.info()
            serving = {name: _serving(engine, tasks.load(name)) for name in tasks.shipped_names()}
            indexed = [own.file for own in indexes.own_tasks(indexes.stored_versions(engine))]
            own_states = [
                state(task, _serving(engine, task))
                for task in _own_tasks(settings.home, indexed, notes.append)
            ]
    except (EngineError, DataError) as error:
        info, trouble = None, str(error)
        own_states = [state(task, None) for task in _own_tasks(settings.home, indexed, notes.append)]
    names = [*tasks.names(), *(name for name in sample_names() if serving.get(name) is not None)]
    shipped = [state(tasks.load(name), serving.get(name)) for name in names]
    runs = recent_runs(settings.home, folder)
    return Overview(info, trouble, (*own_states, *shipped), tuple(runs), tuple(notes))


def _state(task: Task, home: Path, index: IndexInfo | None, judged: int) -> TaskState:
    try:
        folder = folders.find(task, home).path
    except DataError:  # `_own_tasks` notes it
        folder = folders.own_folder(task, home)
    try:
        has_files = has_data(folder)
    except OSError:
        has_files = False
    is_shipped = task.info.file is None and task.info.folder is None
    sample = SAMPLES / task.name if is_shipped else None
    is_sample = (
        sample is not None and index is not None and index.documents_digest == _sample_digest(task.name)
    )
    return TaskState(task, folder, has_files, sample, index, is_sample, judged)


def _serving(engine: Engine, task: Task) -> IndexInfo | None:
    for name in task.info.index_names:
        with suppress(DataError, EngineRefused):  # damaged or changed: other commands have the details
            if (info := indexes.serving_info(task, engine, name)) is not None:
                return info
    return None


def _own_tasks(home: Path, indexed: Iterable[Path], note: Callable[[str], None]) -> Iterator[Task]:
    known: list[Path] = []
    try:
        known = [Path(name) for name in folders.remembered_folders(home) if name.endswith(".toml")]
    except DataError as error:
        note(str(error))
    for file in sorted({*indexed, *(path for path in known if path.is_file())}):
        try:
            yield tasks.load(str(file))
        except (SearchappError, OSError) as error:
            note(f"the task {file} can't be read: {error}")


@cache
def _sample_digest(name: str) -> str:
    documents = tasks.load(name).collection(SAMPLES / name).documents
    return indexes.digest_of(documents.read(Problems(lenient=True))).hexdigest()


@dataclass(frozen=True, slots=True)
class Files:
    """The number of topics of each split whose files exist, or the `problem` of reading them."""

    topics: Mapping[str, int]
    problem: str = ""


def look_into(task: Task, folder: Path) -> Files:
    """Count the topics in a task's files."""
    topics: dict[str, int] = {}
    try:
        collection = task.collection(folder)
        for split in task.info.splits:
            if any(file.exists() for file in collection.split_files(split)):
                with suppress(SearchappError):
                    topics[split] = len(collection.topics(split, Problems(lenient=True)))
    except (SearchappError, OSError) as error:
        return Files(topics, str(error))
    return Files(topics)
