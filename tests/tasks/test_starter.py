from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.errors import InvalidFiles, UsageError
from searchapp.formats.problems import Problems
from searchapp.tasks.base import DataSplit
from searchapp.tasks.own import starter


def test_what_is_written_without_any_file_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(starter.task_file_text(path, "mine"))
    task = tasks.load(str(path))
    assert (task.name, task.info.splits) == ("mine", ())


def test_every_line_that_is_commented_out_can_be_used(tmp_path: Path) -> None:
    lines = starter.task_file_text(tmp_path / "task.toml", "mine").splitlines()
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
    seen = [starter.detect(documents), starter.detect(topics), starter.detect(gold, gold=True)]
    path.write_text(starter.task_file_text(path, "mine", seen[:1], seen[1], seen[2]))
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
    assert tasks.load(str(path)).collection(tmp_path).check_split("dev", problems) == 1
    assert not list(problems)


def test_without_a_known_name_the_first_column_is_the_id_and_the_longest_the_text(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("nr\tshort\tlong\n1\ta\tabc\n")
    text = starter.task_file_text(tmp_path / "task.toml", "mine", [starter.detect(path)])
    assert 'id = "nr"\ntext = "long"' in text


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        (
            "d.dat",
            "x",
            "has an unknown suffix: give it a name that ends in .csv or .tsv or .jsonl",
        ),
        ("d.csv", "id\n1\n", "has 1 column: it needs an id and a text"),
        ("d.csv", 'id,text\n1,"x\n', "line 2: broken row"),
    ],
)
def test_a_file_that_cannot_be_described_is_refused(
    tmp_path: Path, name: str, content: str, error: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises((UsageError, InvalidFiles), match=error):
        starter.task_file_text(tmp_path / "task.toml", "mine", [starter.detect(path)])


@pytest.mark.parametrize(
    ("path", "name"),
    [("My Task.toml", "my-task"), ("2024.toml", "task-2024"), ("nlps.toml", "my-task"), ("é.toml", "task")],
)
def test_a_file_gives_its_task_a_name(path: str, name: str) -> None:
    assert starter.name_for(Path(path)) == name


@pytest.mark.parametrize("name", ["d.tsv", "d.dat"])
def test_a_table_without_a_header_line_keeps_its_first_line(tmp_path: Path, name: str) -> None:
    documents, topics, gold = tmp_path / name, tmp_path / "t.csv", tmp_path / "g.tsv"
    documents.write_text("d1\tfirst things first\nd2\tand then the second\n")
    topics.write_text('1,"what, first?"\n2,second thoughts\n')
    gold.write_text("1\td1\t1\n2\td2\t2\n")
    seen = [starter.detect(documents), starter.detect(topics), starter.detect(gold, gold=True)]
    assert [one.header for one in seen] == [False, False, False]
    assert seen[0].assumed == (
        f"{documents}: it seems to have no header line ('d1' looks like what is below it); if it has one, "
        "use --header; its columns are named id, text"
    )
    path = tmp_path / "task.toml"
    path.write_text(starter.task_file_text(path, "mine", seen[:1], seen[1], seen[2]))
    task = tasks.load(str(path))
    problems = Problems()
    assert [one.id for one in task.collection(tmp_path).documents.read(problems)] == ["d1", "d2"]
    assert [one.text for one in task.collection(tmp_path).topics("dev", problems)] == [
        "what, first?",
        "second thoughts",
    ]
    assert task.collection(tmp_path).check_split("dev", problems) == 2
    assert task.official.grades([gold], DataSplit(task.collection(tmp_path), "dev")) == {
        "1": {"d1": 1},
        "2": {"d2": 2},
    }
    assert task.info.grades == ("not relevant", "relevant, grade 1", "relevant, grade 2")
    assert not list(problems)


def test_what_the_person_says_of_header_lines_holds(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("d1\tfirst\nd2\tsecond\n")
    said = starter.detect(path, header=True)
    assert (said.columns, said.assumed) == (("d1", "first"), None)
    path.write_text("id\ttext\nd2\tsecond\n")
    said = starter.detect(path, header=False)
    assert (said.columns, said.header, said.assumed) == (("id", "text"), False, None)
    assert len(said.records) == 2
    assert (starter.detect(path).assumed or "").endswith("(the first line has 'id'); if not, use --no-header")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("q1\td1\nq2\td1\n", {"q1": {"d1": 1}, "q2": {"d1": 1}}),
        ("q1\td1\t2\nq2\td1\t0\n", {"q1": {"d1": 2}, "q2": {"d1": 0}}),
        ("q1\t0\td1\t2\nq2\t0\td1\t0\n", {"q1": {"d1": 2}, "q2": {"d1": 0}}),
    ],
)
def test_gold_without_a_header_line_is_understood_by_its_columns(
    tmp_path: Path, content: str, expected: dict[str, dict[str, int]]
) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    (tmp_path / "t.jsonl").write_text('{"id": "q1", "text": "x"}\n{"id": "q2", "text": "x"}\n')
    (tmp_path / "g.tsv").write_text(content)
    path = tmp_path / "task.toml"
    documents, topics = starter.detect(tmp_path / "d.jsonl"), starter.detect(tmp_path / "t.jsonl")
    gold = starter.detect(tmp_path / "g.tsv", gold=True)
    path.write_text(starter.task_file_text(path, "mine", [documents], topics, gold))
    task = tasks.load(str(path))
    part = DataSplit(task.collection(tmp_path), "dev")
    assert task.official.grades([tmp_path / "g.tsv"], part) == expected


def test_the_format_is_written_where_the_name_does_not_tell_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("id\ttext\n1\ta, b\n")
    (tmp_path / "t.dat").write_text('{"id": "q1", "text": "x"}\n')
    (tmp_path / "g.dat").write_text("q1 0 1 1\n")
    path = tmp_path / "task.toml"
    documents, topics = starter.detect(tmp_path / "d.csv"), starter.detect(tmp_path / "t.dat")
    gold = starter.detect(tmp_path / "g.dat", gold=True)
    path.write_text(starter.task_file_text(path, "mine", [documents], topics, gold))
    held = tomllib.loads(path.read_text())
    assert held["documents"] == {"file": "d.csv", "format": "tsv", "id": "id", "text": "text"}
    assert held["topics"]["dev"]["format"] == "jsonl"
    assert held["topics"]["dev"]["gold"] == {"file": "g.dat", "format": "trec"}
    problems = Problems()
    assert tasks.load(str(path)).collection(tmp_path).check_split("dev", problems) == 1
    assert not list(problems)


def test_files_of_documents_must_agree_on_their_header_lines(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttext\n1\ta\n")
    (tmp_path / "b.tsv").write_text("2\tb\n3\tc\n")
    seen = [starter.detect(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    with pytest.raises(UsageError, match="the files of documents differ in header lines or columns"):
        starter.task_file_text(tmp_path / "task.toml", "mine", seen)
