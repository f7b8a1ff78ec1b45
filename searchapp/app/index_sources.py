"""Where the documents come from that people judge: from their own disk where it has them, else from the server.

Two indexes of one digest give the same answers, on whichever engine. So an embedded index of the digest that was
ranked is as good as the server's, answers at once, and is there when the server is not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from searchapp.app.index import index_task, open_index
from searchapp.engines import open_on_disk, open_server
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, EngineRefused, EngineUnreachable, SearchappError
from searchapp.progress import Progress
from searchapp.settings import Settings
from searchapp.tasks.base import Task

ATTEMPTS = 2
TIMEOUT_SECONDS = 10.0
"""How often, and how long, a server is asked for what somebody is waiting to read."""


class IndexSource(Protocol):
    """Opens the indexes that documents are read from."""

    def index(
        self, task: Task, folder: Path | None, name: str | None = None, digest: str | None = None
    ) -> Index:
        """The index of a name, or the one that people search, of a task whose files are in a folder.

        `digest` is that of the index that was ranked, where it is known.

        Raises:
            EngineError: it can't be had.
            DataError: it is damaged.
        """

    def spare(self, task: Task, folder: Path | None, name: str | None = None) -> Index | None:
        """An index to go on with when the server that `index` came from is gone; None if there is none."""


class LocalFirst:
    """The documents of the engine that the settings select or, where that is a server, of an equal index on disk.

    With `copy` one is made from the task's files where there is none of the task yet, so that judging needs the server
    no more. `warn` is called with what people must know.
    """

    def __init__(
        self, settings: Settings, progress: Progress, warn: Callable[[str], None], *, copy: bool
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._warn = warn
        self._copy = copy
        self._here = open_on_disk(settings)
        self._server: Engine | None = None

    def index(
        self, task: Task, folder: Path | None, name: str | None = None, digest: str | None = None
    ) -> Index:
        if not self._settings.uses_server:
            return open_index(task, self._here, name)
        gone: EngineUnreachable | None = None
        there: Index | None = None
        if digest is None:
            there, gone = self._from_server(task, name)
            digest = there.info.digest if there is not None else None
        here = self._equal(task, name, digest)
        if here is None and self._copy and digest is not None:
            self._make(task, folder, name)
            here = self._equal(task, name, digest)
        if here is not None:
            return here
        if there is None and gone is None:
            there, gone = self._from_server(task, name)
        if there is not None:
            return there
        spare = self.spare(task, folder, name)
        if spare is None:
            raise EngineUnreachable(
                f"{gone}; the documents are not on this machine either: `searchapp index {task.reference} --engine "
                "embedded --data DIR` puts them there"
            ) from gone
        self._warn(f"{gone}; until then documents come from {spare.info.version}, on this machine")
        return spare

    def spare(self, task: Task, folder: Path | None, name: str | None = None) -> Index | None:
        if not self._settings.uses_server:
            return None
        found = self._on_disk(task, name)
        if found is None:
            self._make(task, folder, name)
            found = self._on_disk(task, name)
        return found

    def close(self) -> None:
        """Let go of both engines."""
        self._here.close()
        if self._server is not None:
            self._server.close()

    def _from_server(self, task: Task, name: str | None) -> tuple[Index | None, EngineUnreachable | None]:
        try:
            if self._server is None:
                self._server = open_server(self._settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)
            return open_index(task, self._server, name), None
        except EngineUnreachable as error:
            return None, error

    def _equal(self, task: Task, name: str | None, digest: str | None) -> Index | None:
        found = self._on_disk(task, name)
        return found if found is not None and found.info.digest == digest else None

    def _on_disk(self, task: Task, name: str | None) -> Index | None:
        with suppress(EngineRefused, DataError):
            return open_index(task, self._here, name)
        return None

    def _make(self, task: Task, folder: Path | None, name: str | None) -> None:
        """Index the task's files here, unless they are not there or something of the task is indexed already."""
        names = task.info.index_names if name is None else (name,)
        if folder is None or any(self._here.index_info(one) for one in names):
            return
        with suppress(SearchappError):  # then the server has what this machine has not
            index_task(task, self._here, task.collection(folder), self._progress)
