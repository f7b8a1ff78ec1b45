from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.errors import InvalidFiles, UsageError
from searchapp.formats import graded
from searchapp.formats.problems import Problems
from searchapp.tasks import starter


def test_what_is_written_without_any_file_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(starter.text_of(path, "mine"))
    task = tasks.load(str(path))
    assert (task.name, task.splits) == ("mine", ())


def test_every_line_that_is_commented_out_can_be_used(tmp_path: Path) -> None:
    lines = starter.text_of(tmp_path / "task.toml", "mine").splitlines()
    settings = [
        line.removeprefix("# ")
        for line in lines
        if line.startswith("# ") and (" = " in line or "[" in line[:3])
    ]
    assert settings[0].startswith("about = ")
    used = [line for line in lines if line and not line.startswith("#")]
    tomllib.loads("\n".join([*used[:3], *settings[:5], *used[3:], *settings[5:]]))


def test_columns_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    documents, topics, gold = (tmp_path / "data" / name for name in ("d.csv", "t.jsonl", "g.tsv"))
    documents.write_text('doc_id,title,body,Year\nd1,T,"A text, long",1999\n')
    topics.write_text('{"query_id": 1, "query": "x", "kind": "k"}\n')
    gold.write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n")
    path = tmp_path / "task.toml"
    seen = [starter.look_at(documents), starter.look_at(topics), starter.look_at(gold, graded.FORMATS)]
    path.write_text(starter.text_of(path, "mine", seen[:1], seen[1], seen[2]))
    held = tomllib.loads(path.read_text())
    assert held["documents"] == {"file": "data/d.csv", "id": "doc_id", "text": "body"}
    assert held["topics"]["dev"] == {
        "file": "data/t.jsonl",
        "id": "query_id",
        "text": "query",
        "gold": {"file": "data/g.tsv", "topic": "query-id", "document": "corpus-id", "grade": "score"},
    }
    assert held["grades"] == ["not relevant", "relevant, grade 1", "relevant, grade 2"]
    assert '# columns: "doc_id", "title", "body", "Year"' in path.read_text()
    assert '# fields = ["title"]' in path.read_text()  # `Year` can't be a field's name
    problems = Problems()
    assert tasks.load(str(path)).check_split(tmp_path, "dev", problems) == 1
    assert not list(problems)


def test_without_a_known_name_the_first_column_is_the_id_and_the_longest_the_text(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("nr\tshort\tlong\n1\ta\tabc\n")
    text = starter.text_of(tmp_path / "task.toml", "mine", [starter.look_at(path)])
    assert 'id = "nr"\ntext = "long"' in text


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("d.dat", "x", "does not tell its format: give it a name that ends in .csv or .tsv or .jsonl"),
        ("d.csv", "id\n1\n", "has 1 columns: an id and a text are needed"),
        ("d.csv", 'id,text\n1,"x\n', "line 2: broken row"),
    ],
)
def test_a_file_that_cannot_be_described_is_refused(
    tmp_path: Path, name: str, content: str, error: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises((UsageError, InvalidFiles), match=error):
        starter.text_of(tmp_path / "task.toml", "mine", [starter.look_at(path)])


@pytest.mark.parametrize(
    ("path", "name"),
    [("My Task.toml", "my-task"), ("2024.toml", "task-2024"), ("nlps.toml", "my-task"), ("é.toml", "task")],
)
def test_a_file_gives_its_task_a_name(path: str, name: str) -> None:
    assert starter.name_for(Path(path)) == name
