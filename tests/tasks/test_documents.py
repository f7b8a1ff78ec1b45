"""A collection reads its documents once per command, and reports their problems to each caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from searchapp.app.index import index_task
from searchapp.app.rank import RunRequest, make_run
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.resources import SAMPLES
from searchapp.tasks.base import CachedReader, DocumentSource
from searchapp.tasks.explanation import worldtree
from searchapp.tasks.nlps import task as proofwiki
from searchapp.tasks.own import task as own


class CountingReader:
    """Yields two documents and a problem, and counts how often it is called."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self, problems: Problems) -> Iterator[Document]:
        self.readings += 1
        yield Document("1", "first")
        problems.add("file", "odd", "line 2")
        yield Document("3", "third")


def ids(documents: DocumentSource, problems: Problems) -> list[str]:
    return [document.id for document in documents.read(problems)]


@pytest.mark.parametrize(("cached", "readings"), [(True, 1), (False, 3)])
def test_documents_have_their_problems_each_time_they_are_read(cached: bool, readings: int) -> None:
    reader = CountingReader()
    documents = DocumentSource(lambda: [Path("file")], reader, cached=cached)
    for _ in range(2):
        problems = Problems()
        assert ids(documents, problems) == ["1", "3"]
        assert [problem.kind for problem in problems] == ["odd"]
    assert documents.ids() == documents.ids() == {"1", "3"}
    assert reader.readings == readings


def test_documents_read_in_part_are_read_again() -> None:
    reader, problems = CountingReader(), Problems()
    documents = DocumentSource(list, reader)
    assert next(documents.read(problems)).id == "1"
    assert ids(documents, problems) == ["1", "3"]
    assert (len(problems), reader.readings) == (1, 2)


def test_a_problem_is_reported_once_to_the_same_caller() -> None:
    problems = Problems()

    def read_file(own: Problems) -> list[str]:
        own.add("file", "odd", "line 1")
        own.add("file", "worse", skippable=False)
        return ["read"]

    read = CachedReader(read_file)
    assert read(problems) is read(problems)
    assert [problem.kind for problem in problems] == ["odd", "worse"]
    assert problems.stopped


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the documents of each file are read."""
    counts: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        read: Callable[..., Any] = getattr(module, name)

        def counting(path: Path, *arguments: Any, **options: Any) -> Any:
            counts[path.name] += 1
            return read(path, *arguments, **options)

        monkeypatch.setattr(module, name, counting)

    count(proofwiki, "read_knowledge_base")
    count(worldtree, "read_facts")
    count(own, "read_texts")
    return counts


@pytest.mark.parametrize(("name", "file"), [("nlps", "knowledge_base.json"), ("explanation-2021", "tables")])
def test_a_command_reads_the_documents_of_a_shared_task_once(
    readings: Counter[str], name: str, file: str, tmp_path: Path
) -> None:
    task = tasks.load(name)
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        index_task(task, engine, task.collection(SAMPLES / name), SilentProgress())
        assert readings[file] == 1
        recipe = recipes.load(task.recipe_book(), "neighbours")
        request = RunRequest(task.collection(SAMPLES / name), "dev", recipe, 10, "t")
        make_run(task, engine, request, tmp_path / "run", SilentProgress())
        assert readings[file] == 2


def test_the_documents_of_an_own_task_are_streamed(readings: Counter[str], tmp_path: Path) -> None:
    task = tasks.load(str(SAMPLES / "own" / "cooking.toml"))
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        index_task(task, engine, task.collection(SAMPLES / "own"), SilentProgress())
    # Once for their problems, once for their ids although two splits have gold, and once for the engine.
    assert readings["recipes.jsonl"] == 3
