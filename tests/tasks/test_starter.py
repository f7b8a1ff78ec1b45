"""Task files that searchapp writes from the data of a user."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.errors import InvalidFiles, UsageError
from searchapp.formats.problems import Problems
from searchapp.tasks.base import DataSplit
from searchapp.tasks.own import starter


def write_task(folder: Path, documents: Path, topics: Path, gold: Path) -> Path:
    """Write a task file for these files; return its path."""
    path = folder / "task.toml"
    splits = {"dev": (starter.detect(topics), starter.detect(gold, gold=True))}
    path.write_text(starter.task_file_text(path, "mine", [starter.detect(documents)], splits))
    return path


def test_a_task_file_without_data_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(starter.task_file_text(path, "mine"))
    task = tasks.load(str(path))
    assert (task.name, task.info.splits) == ("mine", ())


def test_all_commented_settings_are_valid(tmp_path: Path) -> None:
    lines = starter.task_file_text(tmp_path / "task.toml", "mine").splitlines()
    commented = [
        line.removeprefix("# ")
        for line in lines
        if line.startswith("# ") and (" = " in line or "[" in line[:3])
    ]
    assert commented[0].startswith("about = ")
    used = [line for line in lines if line and not line.startswith("#")]
    tomllib.loads("\n".join([*used[:3], *commented[:5], *used[3:], *commented[5:]]))


def test_columns_are_detected(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    documents, topics, gold = (tmp_path / "data" / name for name in ("d.csv", "t.jsonl", "g.tsv"))
    documents.write_text('doc_id,title,body,Year\nd1,T,"A text, long",1999\n')
    topics.write_text('{"query_id": 1, "query": "x", "kind": "k"}\n')
    gold.write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n")
    path = write_task(tmp_path, documents, topics, gold)
    settings = tomllib.loads(path.read_text())
    assert settings["documents"] == {"file": "data/d.csv", "id": "doc_id", "text": "body"}
    assert settings["topics"]["dev"] == {
        "file": "data/t.jsonl",
        "id": "query_id",
        "text": "query",
        "gold": {"file": "data/g.tsv", "topic": "query-id", "document": "corpus-id", "grade": "score"},
    }
    assert settings["grades"] == ["not relevant", "relevant, grade 1", "relevant, grade 2"]
    assert '# columns: "doc_id", "title", "body", "Year"' in path.read_text()
    assert '# fields = ["title"]' in path.read_text()  # `Year` can't be a field's name
    problems = Problems()
    assert tasks.load(str(path)).collection(tmp_path).check_split("dev", problems) == 1
    assert not list(problems)


def test_the_first_column_is_the_default_id_and_the_longest_the_default_text(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("nr\tshort\tlong\n1\ta\tabc\n")
    text = starter.task_file_text(tmp_path / "task.toml", "mine", [starter.detect(path)])
    assert 'id = "nr"\ntext = "long"' in text


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("d.dat", "x", "has an unknown suffix: give it a name that ends in .csv or .tsv or .jsonl"),
        ("d.csv", "id\n1\n", "has 1 column: it needs an id and a text"),
        ("d.csv", 'id,text\n1,"x\n', "line 2: broken row"),
    ],
)
def test_an_unsupported_file_is_rejected(tmp_path: Path, name: str, content: str, error: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises((UsageError, InvalidFiles), match=error):
        starter.task_file_text(tmp_path / "task.toml", "mine", [starter.detect(path)])


@pytest.mark.parametrize(
    ("path", "name"),
    [("My Task.toml", "my-task"), ("2024.toml", "task-2024"), ("nlps.toml", "my-task"), ("é.toml", "task")],
)
def test_the_name_of_a_task_is_derived_from_its_file(path: str, name: str) -> None:
    assert starter.name_for(Path(path)) == name


@pytest.mark.parametrize("name", ["d.tsv", "d.dat"])
def test_a_table_without_a_header_line_keeps_its_first_line(tmp_path: Path, name: str) -> None:
    documents, topics, gold = tmp_path / name, tmp_path / "t.csv", tmp_path / "g.tsv"
    documents.write_text("d1\tfirst things first\nd2\tand then the second\n")
    topics.write_text('1,"what, first?"\n2,second thoughts\n')
    gold.write_text("1\td1\t1\n2\td2\t2\n")
    files = [starter.detect(documents), starter.detect(topics), starter.detect(gold, gold=True)]
    assert [file.header for file in files] == [False, False, False]
    assert files[0].assumed == (
        f"{documents}: it seems to have no header line ('d1' looks like what is below it); if it has one, "
        "use --header; its columns are named id, text"
    )
    task = tasks.load(str(write_task(tmp_path, documents, topics, gold)))
    problems = Problems()
    assert [document.id for document in task.collection(tmp_path).documents.read(problems)] == ["d1", "d2"]
    texts = [topic.text for topic in task.collection(tmp_path).topics("dev", problems)]
    assert texts == ["what, first?", "second thoughts"]
    assert task.collection(tmp_path).check_split("dev", problems) == 2
    assert task.official.grades([gold], DataSplit(task.collection(tmp_path), "dev")) == {
        "1": {"d1": 1},
        "2": {"d2": 2},
    }
    assert task.info.grades == ("not relevant", "relevant, grade 1", "relevant, grade 2")
    assert not list(problems)


def test_the_options_for_header_lines_override_the_detection(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("d1\tfirst\nd2\tsecond\n")
    table = starter.detect(path, header=True)
    assert (table.columns, table.assumed) == (("d1", "first"), None)
    path.write_text("id\ttext\nd2\tsecond\n")
    table = starter.detect(path, header=False)
    assert (table.columns, table.header, table.assumed) == (("id", "text"), False, None)
    assert len(table.records) == 2
    assert (starter.detect(path).assumed or "").endswith("(the first line has 'id'); if not, use --no-header")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("q1\td1\nq2\td1\n", {"q1": {"d1": 1}, "q2": {"d1": 1}}),
        ("q1\td1\t2\nq2\td1\t0\n", {"q1": {"d1": 2}, "q2": {"d1": 0}}),
        ("q1\t0\td1\t2\nq2\t0\td1\t0\n", {"q1": {"d1": 2}, "q2": {"d1": 0}}),
    ],
)
def test_gold_without_a_header_line_is_read_by_the_number_of_columns(
    tmp_path: Path, content: str, expected: dict[str, dict[str, int]]
) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    (tmp_path / "t.jsonl").write_text('{"id": "q1", "text": "x"}\n{"id": "q2", "text": "x"}\n')
    (tmp_path / "g.tsv").write_text(content)
    path = write_task(tmp_path, *(tmp_path / name for name in ("d.jsonl", "t.jsonl", "g.tsv")))
    task = tasks.load(str(path))
    split = DataSplit(task.collection(tmp_path), "dev")
    assert task.official.grades([tmp_path / "g.tsv"], split) == expected


def test_a_format_that_the_suffix_does_not_indicate_is_written(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("id\ttext\n1\ta, b\n")
    (tmp_path / "t.dat").write_text('{"id": "q1", "text": "x"}\n')
    (tmp_path / "g.dat").write_text("q1 0 1 1\n")
    path = write_task(tmp_path, *(tmp_path / name for name in ("d.csv", "t.dat", "g.dat")))
    settings = tomllib.loads(path.read_text())
    assert settings["documents"] == {"file": "d.csv", "format": "tsv", "id": "id", "text": "text"}
    assert settings["topics"]["dev"]["format"] == "jsonl"
    assert settings["topics"]["dev"]["gold"] == {"file": "g.dat", "format": "trec"}
    problems = Problems()
    assert tasks.load(str(path)).collection(tmp_path).check_split("dev", problems) == 1
    assert not list(problems)


def test_files_of_documents_must_have_the_same_header_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttext\n1\ta\n")
    (tmp_path / "b.tsv").write_text("2\tb\n3\tc\n")
    files = [starter.detect(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    with pytest.raises(UsageError, match="the files of documents differ in header lines or columns"):
        starter.task_file_text(tmp_path / "task.toml", "mine", files)
