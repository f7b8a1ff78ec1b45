"""Collect what the home screen shows: the engine, the tasks with their indexes, the runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from searchapp import tasks
from searchapp.app import index as indexes
from searchapp.app.runs import KnownRun, recent_runs
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine, EngineInfo
from searchapp.errors import DataError, EngineError, SearchappError
from searchapp.fetching.sources import has_data
from searchapp.files import DocumentsDigest
from searchapp.formats.problems import Problems
from searchapp.judging.agreement import judged_in
from searchapp.model import IndexInfo
from searchapp.resources import SAMPLES
from searchapp.tasks import folders, sample_names
from searchapp.tasks.base import Task

ATTEMPTS = 1
TIMEOUT_SECONDS = 5.0
"""How often, and how long, a server is asked whether it answers."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task and what there is of it.

    `folder` is where its files are looked for, `has_files` whether there are any; `sample` the collection that ships
    with searchapp, None where there is none. `index` is the one that people search, None where there is none or no
    engine could be asked; `is_sample` says that it holds the sample. `judged` counts the graded documents in the log.
    """

    task: Task
    folder: Path
    has_files: bool
    sample: Path | None
    index: IndexInfo | None
    is_sample: bool
    judged: int

    @property
    def files(self) -> Path | None:
        """The folder with the files that go with what is indexed, if they are at hand."""
        if self.has_files:
            return self.folder
        return self.sample if self.is_sample else None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything at one moment.

    `engine` is the one in use, None where `trouble` says why it does not answer. `notes` are sentences on what could
    not be read.
    """

    engine: EngineInfo | None
    trouble: str
    tasks: tuple[TaskState, ...]
    runs: tuple[KnownRun, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the engine answers and nothing is indexed."""
        return self.engine is not None and not any(one.index for one in self.tasks)


@dataclass
class _Looking:
    """What is found out on the way."""

    settings: Settings
    notes: list[str] = field(default_factory=list)
    judged: Mapping[str, int] = field(default_factory=dict)

    def state(self, task: Task, index: IndexInfo | None) -> TaskState:
        home = self.settings.home
        try:
            folder = folders.find(task, home).path
        except DataError:  # which is noted once
            folder = folders.own_folder(task, home)
        sample = _sample(task)
        return TaskState(
            task,
            folder,
            _has_files(folder),
            sample,
            index,
            sample is not None and index is not None and index.documents_digest == _digest(task, sample),
            self.judged.get(task.name, 0),
        )


def look(settings: Settings, folder: Path) -> Overview:
    """How everything is now; runs are looked for in `folder` too."""
    looking = _Looking(settings)
    try:
        looking.judged = judged_in(settings.judgments)
    except (sqlite3.Error, OSError) as error:
        looking.notes.append(f"{settings.judgments} can't be read: {error}")
    info, trouble, found, own_files = None, "", {}, []
    try:
        with closing(open_engine(settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)) as engine:
            info = engine.info()
            every = [*tasks.names(), *sample_names()]
            found = {name: _serving(engine, tasks.load(name)) for name in every}
            own_files = [one.file for one in indexes.own_tasks(indexes.stored_versions(engine))]
            own = _own(looking, own_files, engine)
    except (EngineError, DataError) as error:
        info, trouble = None, str(error)
        own = _own(looking, own_files, None)
    names = [*tasks.names(), *(name for name in sample_names() if found.get(name) is not None)]
    shipped = [looking.state(tasks.load(name), found.get(name)) for name in names]
    runs = recent_runs(settings.home, folder)
    return Overview(info, trouble, (*shipped, *own), tuple(runs), tuple(looking.notes))


def _serving(engine: Engine, task: Task) -> IndexInfo | None:
    """The index that people search."""
    for name in task.info.index_names:
        with suppress(DataError):  # damaged: the doctor says more
            if (info := engine.index_info(name)) is not None:
                return info
    return None


def _own(looking: _Looking, indexed: list[Path], engine: Engine | None) -> list[TaskState]:
    """The tasks of the user's own: those that are indexed, and those whose folder is folders."""
    known: list[Path] = []
    try:
        known = [
            Path(name) for name in folders.remembered_folders(looking.settings.home) if name.endswith(".toml")
        ]
    except DataError as error:
        looking.notes.append(str(error))
    states = []
    for file in sorted({*indexed, *(one for one in known if one.is_file())}):
        try:
            task = tasks.load(str(file))
        except (SearchappError, OSError) as error:
            looking.notes.append(f"the task {file} can't be read: {error}")
            continue
        states.append(looking.state(task, None if engine is None else _serving(engine, task)))
    return states


def _sample(task: Task) -> Path | None:
    """The folder of the sample of a task that ships with searchapp."""
    is_shipped = task.info.file is None and task.info.folder is None
    return SAMPLES / task.name if is_shipped else None


_digests: dict[str, str] = {}


def _digest(task: Task, sample: Path) -> str:
    """The digest of the documents of a sample."""
    if task.name not in _digests:
        seen = DocumentsDigest()
        for _document in seen.watch(task.collection(sample).documents.read(Problems(lenient=True))):
            pass
        _digests[task.name] = seen.hexdigest()
    return _digests[task.name]


def _has_files(folder: Path) -> bool:
    try:
        return has_data(folder)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Files:
    """What is in the files of a task: the number of topics of each split whose files are there.

    `problem` says why there is nothing to count.
    """

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
