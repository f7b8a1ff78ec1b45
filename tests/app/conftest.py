from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import searchapp
from searchapp import tasks
from searchapp.app.index import index_task
from searchapp.app.search import TaskSearcher
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.progress import SilentProgress

SAMPLES = Path(searchapp.__file__).parent / "samples"

MakeSearcher = Callable[..., TaskSearcher]


@pytest.fixture(scope="session")
def make_searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeSearcher]:
    """Opens the sample of a task on the embedded engine, by default with the folder of its files."""
    home = tmp_path_factory.mktemp("searchers")
    with closing(EmbeddedEngine(home, "test")) as engine:

        def make(name: str, data: Path | None = None) -> TaskSearcher:
            task = tasks.load(name)
            index_task(task, engine, task.collection(SAMPLES / name), SilentProgress())
            return TaskSearcher.open(task, engine, SilentProgress(), home, data or SAMPLES / name)

        yield make
