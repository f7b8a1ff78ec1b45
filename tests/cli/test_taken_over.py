"""`searchapp index` of a collection of which a little has changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.lucene.index.reader import DirectoryReader
from tests.cli.conftest import SAMPLES, Cli
from tests.engines.embedded.segmented import content


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The task file of the sample, in a copy that a test may edit."""
    return Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"


def edit(task: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the documents of a task."""
    file = task.with_name("recipes.jsonl")
    documents = [json.loads(line) for line in file.read_text().splitlines()]
    change(documents)
    file.write_text("".join(f"{json.dumps(document)}\n" for document in documents))


def serving(home: Path, name: str = "*cooking") -> Path:
    """The folder of the version that serves."""
    (folder,) = (home / "indexes").glob(f"searchapp-{name}")
    return folder / (folder / "current").read_text().split()[0]


def content_of(home: Path, name: str = "*cooking") -> list[Any]:
    """What the index has, whatever its segments are."""
    with closing(DirectoryReader(serving(home, name))) as reader:
        return content(reader)


def taken_over(result: Any) -> list[int]:
    return [index["taken_over"] for index in result.json["indexes"]]


def test_it_says_how_many_documents_were_taken_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    first = offline("index", task, "--json")
    assert "42 documents are indexed and serve as" in first.stderr
    assert taken_over(first) == [0]
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    edit(task, lambda documents: documents.insert(20, {**documents[20], "id": "new"}))
    second = offline("index", task, "--json", "--verbose")
    assert "41 documents are taken over, 1 are left out, 2 are analyzed; all is merged" in second.stderr
    assert "43 documents are indexed (41 taken over, 2 analyzed) and serve as" in second.stderr
    assert taken_over(second) == [41]
    ours = content_of(tmp_path / "home")
    assert offline("search", task, "leeks", "--json").json["hits"][0]["id"] == "r08"
    third = offline("index", task, "--json", "--rebuild")
    assert "43 documents are indexed and serve as" in third.stderr
    assert taken_over(third) == [0]
    assert content_of(tmp_path / "home") == ours


def test_skipped_documents_are_not_carried_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[3].pop("id"))
    assert offline("index", task).code == 4
    lenient = offline("index", task, "--lenient", "--json")
    assert "41 documents are indexed (41 taken over, 0 analyzed)" in lenient.stderr
    ours = content_of(tmp_path / "home")
    offline("index", task, "--lenient", "--rebuild")
    assert content_of(tmp_path / "home") == ours


def test_of_a_damaged_version_nothing_is_taken_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    file = serving(tmp_path / "home") / "documents.sqlite"
    content = file.read_bytes()
    place = content.index(b"lentils")
    file.write_bytes(content[:place] + b"L" + content[place + 1 :])
    result = offline("index", task, "--json")
    assert "note: no document could be taken over, all were analyzed: the version before is damaged (" in (
        result.stderr
    )
    assert "42 documents are indexed and serve as" in result.stderr
    ours = content_of(tmp_path / "home")
    offline("index", task, "--rebuild")
    assert content_of(tmp_path / "home") == ours


def test_another_mapping_carries_nothing_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    task.write_text(task.read_text().replace('fields = ["title", "kind", "minutes"]', 'fields = ["title"]'))
    result = offline("index", task, "--json", "--verbose")
    assert "no document can be taken over, it has another mapping" in result.stderr
    assert taken_over(result) == [0]


def test_each_index_of_a_task_takes_over_its_own_documents(offline: Cli, tmp_path: Path) -> None:
    """A debate that moves from test to training is taken over by the index of all debates, and new in the other one."""
    data = Path(shutil.copytree(SAMPLES / "checkthat", tmp_path / "data"))
    offline("index", "checkthat", "--data", data)
    (debate,) = (data / "test_annotated").iterdir()
    debate.rename(data / "training" / debate.name)
    second = offline("index", "checkthat", "--data", data, "--json").json
    (only,) = second["indexes"]
    assert second["removed"] and 0 < only["taken_over"] < only["documents"]
    ours = content_of(tmp_path / "home", "checkthat")
    whole = offline("index", "checkthat", "--data", data, "--json", "--rebuild").json
    assert [index["taken_over"] for index in whole["indexes"]] == [0]
    assert content_of(tmp_path / "home", "checkthat") == ours
