from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp import resources, tasks
from searchapp.app.comparison import Scoring
from searchapp.app.evaluate import GoldSource
from searchapp.app.search import read_gold_topics
from searchapp.errors import DataError, InvalidFiles, UsageError
from searchapp.formats.problems import Problems
from searchapp.ranking import recipes
from searchapp.resources import SAMPLES
from searchapp.tasks.base import DataSplit, Task
from searchapp.tasks.folders import data_folder

SAMPLE = SAMPLES / "own"

LEAST = 'name = "mine"\n[documents]\nfile = "docs.jsonl"\n'


def task_of(folder: Path, text: str) -> Task:
    path = folder / "mine.toml"
    path.write_text(text)
    return tasks.load(str(path))


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidFiles) as caught:
        task_of(folder, text)
    return [f"{problem.where}: {problem.kind}: {problem.detail}" for problem in caught.value.problems]


def checked(task: Task, data: Path, split: str) -> list[str]:
    problems = Problems()
    task.collection(data).check_split(split, problems)
    return [f"{Path(one.file).name}: {one.where}: {one.kind}: {one.detail}" for one in problems]


@pytest.fixture
def sample() -> Task:
    return tasks.load(str(SAMPLE / "cooking.toml"))


def test_the_sample_is_read_as_it_says(sample: Task) -> None:
    assert (sample.name, sample.info.index_name, sample.info.splits) == (
        "cooking",
        "own-cooking",
        ("dev", "train"),
    )
    assert sample.info.grades == ("not relevant", "fits with changes", "answers the question")
    problems = Problems()
    documents = list(sample.collection(SAMPLE).documents.read(problems))
    assert (len(documents), documents[0].id) == (42, "r01")
    assert documents[0].text.startswith("Red lentil soup\nSimmer red lentils")
    assert documents[0].fields == {"title": "Red lentil soup", "kind": "soup", "minutes": 30}
    topics = sample.collection(SAMPLE).topics("dev", problems)
    assert topics[0].variables() == {"id": "q1", "text": "soup with lentils", "level": "easy"}
    assert checked(sample, SAMPLE, "dev") == checked(sample, SAMPLE, "train") == []
    assert not list(problems)


def test_solved_topics_bring_their_relevant_documents(sample: Task) -> None:
    problems = Problems()
    examples = list(sample.collection(SAMPLE).examples("dev", problems))
    assert len(examples) == 6
    assert examples[0].gold == {"r02": 2.0, "r04": 2.0, "r05": 1.0}


def test_fields_that_the_mapping_does_not_name_are_kept_and_not_indexed(sample: Task) -> None:
    shipped = resources.index_mapping("text")["mappings"]["properties"]
    properties = sample.index_mapping()["mappings"]["properties"]
    assert {name: properties[name] for name in shipped} == shipped
    for name in ("title", "kind", "minutes"):
        assert properties[name] == {"type": "object", "enabled": False}


def test_a_mapping_of_ones_own_indexes_the_fields_that_it_names(tmp_path: Path) -> None:
    mapping = {
        "mappings": {
            "properties": {"id": {"type": "keyword"}, "text": {"type": "text"}, "year": {"type": "integer"}}
        }
    }
    (tmp_path / "own.json").write_text(json.dumps(mapping))
    task = task_of(tmp_path, 'mapping = "own.json"\n' + LEAST + 'fields = ["year", "kind"]\n')
    made = task.index_mapping()["mappings"]
    assert made["dynamic"] == "strict"
    assert made["properties"]["year"] == {"type": "integer"}
    assert made["properties"]["kind"] == {"type": "object", "enabled": False}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"mappings": {"properties": {"id": {"type": "keyword"}}}}',
            "must have a property text of type text",
        ),
        ('{"settings": {}}', "must have a property id of type keyword"),
        ("[]", "a JSON object was expected"),
        ("{", "not JSON"),
    ],
)
def test_a_mapping_that_cannot_serve_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "own.json").write_text(content)
    task = task_of(tmp_path, 'mapping = "own.json"\n' + LEAST)
    with pytest.raises(DataError, match=message):
        task.index_mapping()


def test_an_unknown_mapping_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"unknown mapping 'txt' \(did you mean text\?\): choose .*premises or .*text"
    ):
        task_of(tmp_path, 'mapping = "txt"\n' + LEAST).index_mapping()


def test_a_task_has_the_shipped_recipes_and_its_own(sample: Task, tmp_path: Path) -> None:
    assert recipes.names(sample.recipe_book()) == ["bm25", "half", "neighbours", "words"]
    half = recipes.load(sample.recipe_book(), "half")
    assert half.query.template.name == "cooking/half.json"
    assert half.parameters == {"half": 0.5}
    plain = task_of(tmp_path, LEAST)
    assert recipes.names(plain.recipe_book()) == ["bm25", "words"]  # it has no solved topics to learn from
    assert recipes.load(plain.recipe_book(), plain.info.default_recipe).query.template.name == "mine/bm25"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            'template = "bm26"',
            "unknown template 'bm26' (did you mean bm25?): choose bm25 or similar or words",
        ),
        ('template = "none.json"', "none.json: there is no such file"),
        ("template = 3", "the recipe mine/own: template must be text in quotes: correct mine.toml"),
        (
            'template = "bm25"\nparameters = 3',
            "the recipe mine/own: parameters must be a table: correct mine.toml",
        ),
        (
            'signals = [{ signal = "neighbours", template = 3, k = 1, power = 1.0 }]',
            "the name of a template must be a string, not 3",
        ),
        ('template = "whole.json"', 'mine/whole.json: size: a template must have "size": "{{depth}}"'),
        (
            'templat = "bm25"',
            "mine/own has the unknown key 'templat' (did you mean template?): correct mine.toml",
        ),
    ],
)
def test_a_bad_recipe_is_refused(tmp_path: Path, recipe: str, message: str) -> None:
    (tmp_path / "whole.json").write_text('{"query": {"match_all": {}}}')
    task = task_of(tmp_path, f"{LEAST}[recipes.own]\n{recipe}\n")
    with pytest.raises(DataError, match=re.escape(message)):
        recipes.load(task.recipe_book(), "own")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LEAST.split("\n", 1)[1], ": missing key: the file needs name"),
        (
            "colour = 1\n" + LEAST,
            "line 1: unknown key: the file has 'colour': the known keys are name, title, about, ",
        ),
        (
            LEAST + "flie = 1\n",
            "line 4: unknown key: [documents] has 'flie' (did you mean file?): the known keys are file, "
            "files, format, ",
        ),
        ('name = "mine"\n', ": missing key: the file needs documents"),
        ('name = "mine"\n[documents]\n', "line 2: missing key: [documents] needs one of file and files"),
        (LEAST + 'files = ["a.csv"]\n', "line 2: missing key: [documents] needs one of file and files"),
        (
            LEAST.replace("jsonl", "dat"),
            "line 3: unknown format: docs.dat has an unknown suffix: add format = csv or tsv",
        ),
        (LEAST + 'format = "xml"\n', "line 4: unknown format: 'xml': choose csv or tsv or jsonl"),
        (LEAST + "text = 7\n", "line 4: wrong value: text must be text in quotes or a list of these"),
        (
            LEAST + 'fields = ["My field"]\n',
            "line 4: unusable name: 'My field' is not a valid name of a field",
        ),
        (
            LEAST + 'fields = ["a"]\ncontext = ["a", "b"]\n',
            "line 5: wrong value: context must be two of the fields",
        ),
        ("depth = 0\n" + LEAST, "line 1: wrong value: depth must be a whole number of at least 1"),
        ('grades = ["no"]\n' + LEAST, "line 1: wrong value: grades needs at least two labels"),
        (
            'training_split = "train"\n' + LEAST,
            "line 1: unknown split: training_split names 'train': the file has no [topics.NAME]",
        ),
        (
            'markup = "tex"\n' + LEAST,
            "line 1: wrong value: markup is 'tex' (did you mean latex?): choose plain or latex or wiki",
        ),
        (
            "topics_are_documents = 1\n" + LEAST,
            "line 1: wrong value: topics_are_documents must be true or false",
        ),
        (
            'training_split = "a"\n' + LEAST + '[topics.a]\nfile = "t.csv"\n',
            "line 1: missing gold: the training split a needs gold",
        ),
        (LEAST + '[topics.A]\nfile = "t.csv"\n', "line 4: unusable name: 'A' is not a valid name of a split"),
        (LEAST + "[topics.a]\n", "line 4: missing key: [topics.a] needs file"),
        (
            LEAST + '[topics.a]\nfile = "t.csv"\ngold = "g.dat"\n',
            "line 6: unknown format: g.dat has an unknown suffix: add gold = "
            "{ file = 'g.dat', format = ... }",
        ),
        (
            LEAST + '[topics.a]\nfile = "t.csv"\ngold = { file = "g.csv", rade = "x" }\n',
            "line 6: unknown key: [topics.a.gold] has 'rade' (did you mean grade?): the known keys are file, "
            "format, topic, document, grade, columns",
        ),
        ("recipes = 3\n" + LEAST, "line 1: wrong value: recipes must be a table [recipes]"),
        (LEAST + 'x = "\n', "line 4 column 6: not TOML: illegal character '\\n'"),
        ("\udcff", "line 1: not UTF-8: byte 0xff; save the file as UTF-8"),
    ],
)
def test_what_is_wrong_with_a_task_file_is_told_with_its_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    if text == "\udcff":
        (tmp_path / "mine.toml").write_bytes(b"\xff")
        with pytest.raises(InvalidFiles) as caught:
            tasks.load(str(tmp_path / "mine.toml"))
        told = [f"{one.where}: {one.kind}: {one.detail}" for one in caught.value.problems]
    else:
        told = problems_of(tmp_path, text)
    (only,) = told
    assert only.startswith(problem)


@pytest.mark.parametrize(
    "name", ["nlps", "Mine", "a b", "-a", "a-", "é", "x" * 61, "a-000001", "a/b", "1a", ""]
)
def test_a_name_that_cannot_name_an_index_or_is_taken_is_refused(tmp_path: Path, name: str) -> None:
    (problem, *_) = problems_of(tmp_path, LEAST.replace("mine", name))
    assert problem.startswith(("line 1: unusable name", "line 1: wrong value"))


def test_a_missing_task_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFiles, match=r"none.toml: missing file"):
        tasks.load(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"or give the TOML file of your own task"):
        tasks.load("none")


def test_paths_lead_from_the_task_file(tmp_path: Path) -> None:
    task = task_of(tmp_path, LEAST.replace("docs.jsonl", "../there/docs.csv"))
    data = data_folder(task, Path("home"))
    assert data == tmp_path
    (file,) = task.collection(data).documents.files
    assert file.resolve() == (tmp_path.parent / "there" / "docs.csv").resolve()


def test_gold_is_checked_against_topics_documents_and_grades(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    (tmp_path / "t.tsv").write_text("id\ttext\nq1\tx\n")
    (tmp_path / "g.txt").write_text("q1 0 d1 1\nq2 0 d1 1\nq1 0 d9 1\nq1 0 d1 0\nq1 0 d2 2\n")
    text = 'measure = "nDCG@x"\n' + LEAST + '[topics.dev]\nfile = "t.tsv"\ngold = "g.txt"\n'
    told = checked(task_of(tmp_path, text), tmp_path, "dev")
    assert told[0].startswith("mine.toml: : unknown measure: there is no measure 'nDCG@x'")
    assert told[1:] == [
        "g.txt: line 2: unknown topic: q2 is not in the split dev",
        "g.txt: line 3: unknown document: d9",
        "g.txt: line 4: duplicate document: d1 of topic q1; the first grade counts",
        "g.txt: line 5: unknown grade: 2: the grades of the task are 0 to 1; add more with `grades`",
    ]


def test_grades_of_a_splits_own_gold_are_those_of_its_topics(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    gold, other = tmp_path / "g.txt", tmp_path / "other.txt"
    text = LEAST
    for split, topic in (("train", "q1"), ("dev", "q2")):
        (tmp_path / f"{split}.tsv").write_text(f"id\ttext\n{topic}\tx\n")
        text += f'[topics.{split}]\nfile = "{split}.tsv"\ngold = "g.txt"\n'
    for file in (gold, other):
        file.write_text("q1 0 d1 1\nq2 0 d1 1\n")
    task = task_of(tmp_path, text)
    collection = task.collection(tmp_path)
    for split, topic in (("train", "q1"), ("dev", "q2")):
        source = GoldSource(task=task.reference, data=tmp_path, split=split)
        assert set(Scoring(source).grades(task, source)) == {topic}
        named = replace(source, gold=(other,))
        assert set(Scoring(named).grades(task, named)) == {"q1", "q2"}, "as `evaluate` scores them"
    found = read_gold_topics(task, collection)
    assert {topic.topic.id: (topic.split, topic.topic.text) for topic in found.citing("d1")} == {
        "q1": ("train", "x"),
        "q2": ("dev", "x"),
    }


def test_a_split_without_gold_has_none_to_score_against(tmp_path: Path) -> None:
    task = task_of(tmp_path, LEAST + '[topics.test]\nfile = "t.tsv"\n')
    assert not task.collection(tmp_path).is_masked("test")
    with pytest.raises(
        UsageError, match=r"the split test of mine has no gold: name its file under gold in \[topics.test\]"
    ):
        task.collection(tmp_path).gold_files("test")
    with pytest.raises(UsageError, match=r"mine has no split 'dev': choose test"):
        task.collection(tmp_path).topics("dev", Problems())


def test_everything_wrong_with_a_run_file_is_found(sample: Task, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 r01 1 2 t\nq1 Q0 r99 2 1 t\nqx Q0 r01 1 1 t\nq2 Q0 r01 2 1 t\n")
    problems = Problems()
    part = DataSplit(sample.collection(SAMPLE), "dev")
    sample.official.validate(path, part, problems)
    told = [f"{one.where}: {one.kind}" for one in problems]
    assert told[:3] == ["line 4: ranks out of order", "line 2: unknown document", "line 3: unknown topic"]
    assert len(told) == 3  # q3 to q8 have no line and count as 0, as in `evaluate`
    alone = Problems()
    sample.official.validate(path, None, alone)
    assert [one.kind for one in alone] == ["ranks out of order"]


def test_grades_of_people_are_written_as_qrels(sample: Task, tmp_path: Path) -> None:
    ((name, write),) = sample.official.gold(
        {"q1": {"r01": 2}}, DataSplit(sample.collection(SAMPLE), "dev")
    ).items()
    with (tmp_path / name).open("wb") as file:
        write(file)
    assert (name, (tmp_path / name).read_text()) == ("dev.qrels", "q1 0 r01 2\n")
