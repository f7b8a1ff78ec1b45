"""Tasks of users: task files, mappings, recipes, gold and runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp import resources, tasks
from searchapp.app.comparison import Scoring
from searchapp.app.evaluate import GoldSource
from searchapp.app.search import read_gold_topics
from searchapp.errors import DataError, InvalidFiles, Problem, UsageError
from searchapp.formats.problems import Problems
from searchapp.ranking import recipes
from searchapp.resources import SAMPLES
from searchapp.tasks.base import DataSplit, Task
from searchapp.tasks.folders import data_folder
from tests.files import kinds, notes

SAMPLE = SAMPLES / "own"

MINIMAL = 'name = "mine"\n[documents]\nfile = "docs.jsonl"\n'


def task_of(folder: Path, text: str) -> Task:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")  # a lone surrogate is an invalid byte
    return tasks.load(str(path))


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidFiles) as caught:
        task_of(folder, text)
    return listed(caught.value.problems)


def listed(problems: Iterable[Problem]) -> list[str]:
    return [f"{problem.where}: {problem.kind}: {problem.detail}" for problem in problems]


def checked(task: Task, data: Path, split: str) -> list[str]:
    problems = Problems()
    task.collection(data).check_split(split, problems)
    return [
        f"{Path(problem.file).name}: {text}" for problem, text in zip(problems, listed(problems), strict=True)
    ]


@pytest.fixture
def sample() -> Task:
    return tasks.load(str(SAMPLE / "cooking.toml"))


def test_the_sample_task_is_read(sample: Task) -> None:
    assert (sample.name, sample.info.index_name) == ("cooking", "own-cooking")
    assert sample.info.splits == ("dev", "train")
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


def test_training_topics_have_their_relevant_documents(sample: Task) -> None:
    problems = Problems()
    examples = list(sample.collection(SAMPLE).examples("dev", problems))
    assert len(examples) == 6
    assert examples[0].gold == {"r02": 2.0, "r04": 2.0, "r05": 1.0}


def test_fields_without_a_mapping_are_stored_and_not_indexed(sample: Task) -> None:
    shipped = resources.index_mapping("text")["mappings"]["properties"]
    properties = sample.index_mapping()["mappings"]["properties"]
    assert {name: properties[name] for name in shipped} == shipped
    for name in ("title", "kind", "minutes"):
        assert properties[name] == {"type": "object", "enabled": False}


def test_an_own_mapping_indexes_its_fields(tmp_path: Path) -> None:
    mapping = {
        "mappings": {
            "properties": {"id": {"type": "keyword"}, "text": {"type": "text"}, "year": {"type": "integer"}}
        }
    }
    (tmp_path / "own.json").write_text(json.dumps(mapping))
    task = task_of(tmp_path, 'mapping = "own.json"\n' + MINIMAL + 'fields = ["year", "kind"]\n')
    mappings = task.index_mapping()["mappings"]
    assert mappings["dynamic"] == "strict"
    assert mappings["properties"]["year"] == {"type": "integer"}
    assert mappings["properties"]["kind"] == {"type": "object", "enabled": False}


def _task_with_words(folder: Path, words: bytes, name: str = "lists/stop.txt", **more: object) -> Task:
    (folder / "lists").mkdir(exist_ok=True)
    (folder / "lists" / "stop.txt").write_bytes(words)
    filters = {
        "filter.few.type": "stop",
        "filter.few.stopwords_path": name,
        "filter.same": {"type": "synonym", "synonyms_path": "lists/stop.txt"},
        **more,
    }
    properties = {"id": {"type": "keyword"}, "text": {"type": "text"}}
    mapping = {"settings": {"index.analysis": filters}, "mappings": {"properties": properties}}
    (folder / "own.json").write_text(json.dumps(mapping))
    return task_of(folder, 'mapping = "own.json"\n' + MINIMAL)


def test_word_lists_are_part_of_the_mapping(tmp_path: Path) -> None:
    # Elasticsearch 9.4.3 has the same tokens with such files in its own folder.
    words = "# a\nof\r\n \t\n  the \rfoo #x\n\n #x\nx\u2028y".encode()
    mapping = _task_with_words(tmp_path, words).index_mapping()
    few, same = mapping["settings"]["analysis"]["filter"].values()
    assert few == {"type": "stop", "stopwords": ["of", "the", "foo #x", "#x", "x\u2028y"]}
    assert same["synonyms"] == ["# a", "of", " \t", "  the ", "foo #x", " #x", "x\u2028y"]


@pytest.mark.parametrize(
    ("words", "name", "more", "message"),
    [
        (b"a\n\xe9\n", "lists/stop.txt", {}, r"stop\.txt: line 2: not UTF-8"),
        (b"", "stop.txt", {}, "`stopwords_path` of filter.few: .*stop.txt can't be read: no such file"),
        (b"", "../stop.txt", {}, "outside of the folder"),
        (b"", "lists/stop.txt", {"filter.few.stopwords": ["a"]}, "both `stopwords` and `stopwords_path`"),
    ],
)
def test_an_unreadable_word_list_is_rejected(
    tmp_path: Path, words: bytes, name: str, more: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        _task_with_words(tmp_path, words, name, **more).index_mapping()


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
def test_an_invalid_mapping_is_rejected(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "own.json").write_text(content)
    task = task_of(tmp_path, 'mapping = "own.json"\n' + MINIMAL)
    with pytest.raises(DataError, match=message):
        task.index_mapping()


def test_the_error_for_an_unknown_mapping_lists_the_mappings(tmp_path: Path) -> None:
    message = r"unknown mapping 'txt' \(did you mean text\?\): choose .*premises or .*text"
    with pytest.raises(DataError, match=message):
        task_of(tmp_path, 'mapping = "txt"\n' + MINIMAL).index_mapping()


def test_a_task_has_the_shipped_recipes_and_its_own(sample: Task, tmp_path: Path) -> None:
    assert recipes.names(sample.recipe_book()) == ["bm25", "half", "neighbours", "words"]
    half = recipes.load(sample.recipe_book(), "half")
    assert half.query.template.name == "cooking/half.json"
    assert half.parameters == {"half": 0.5}
    plain = task_of(tmp_path, MINIMAL)
    assert recipes.names(plain.recipe_book()) == ["bm25", "words"]  # it has no training topics
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
        (
            'template = "sections.json"',
            "mine/sections.json: query.bool.must[0].match.text: {{#lang}} of a search template is not supported: write "
            "a template for each case, with variables as whole values\n"
            "mine/sections.json: query.bool.must[1].match.text: {{{raw}}} of a search template is not supported",
        ),
        (
            'templat = "bm25"',
            "mine/own has the unknown key 'templat' (did you mean template?): correct mine.toml",
        ),
    ],
)
def test_an_invalid_recipe_is_rejected(tmp_path: Path, recipe: str, message: str) -> None:
    texts = ["{{#lang}}{{query}}{{/lang}}", "{{{raw}}}"]
    body = {"query": {"bool": {"must": [{"match": {"text": text}} for text in texts]}}}
    (tmp_path / "sections.json").write_text(json.dumps(body))
    task = task_of(tmp_path, f"{MINIMAL}[recipes.own]\n{recipe}\n")
    with pytest.raises(DataError, match=re.escape(message)):
        recipes.load(task.recipe_book(), "own")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (MINIMAL.split("\n", 1)[1], ": missing key: the file needs name"),
        (
            "colour = 1\n" + MINIMAL,
            "line 1: unknown key: the file has 'colour': the known keys are name, title, about, ",
        ),
        (
            MINIMAL + "flie = 1\n",
            "line 4: unknown key: [documents] has 'flie' (did you mean file?): the known keys are file, "
            "files, index, format, ",
        ),
        ('name = "mine"\n', ": missing key: the file needs documents"),
        (
            'name = "mine"\n[documents]\n',
            "line 2: missing key: [documents] needs one of file, files and index",
        ),
        (
            MINIMAL + 'files = ["a.csv"]\n',
            "line 2: missing key: [documents] needs one of file, files and index",
        ),
        (
            MINIMAL.replace("jsonl", "dat"),
            "line 3: unknown format: docs.dat has an unknown suffix: add format = csv or tsv",
        ),
        (MINIMAL + 'format = "xml"\n', "line 4: unknown format: 'xml': choose csv or tsv or jsonl"),
        (MINIMAL + "text = 7\n", "line 4: wrong value: text must be text in quotes or a list of these"),
        (
            MINIMAL + 'fields = ["My field"]\n',
            "line 4: unusable name: 'My field' is not a valid name of a field",
        ),
        (
            MINIMAL + 'fields = ["a"]\ncontext = ["a", "b"]\n',
            "line 5: wrong value: context must be two of the fields",
        ),
        ("depth = 0\n" + MINIMAL, "line 1: wrong value: depth must be a whole number of at least 1"),
        ('grades = ["no"]\n' + MINIMAL, "line 1: wrong value: grades needs at least two labels"),
        (
            'training_split = "train"\n' + MINIMAL,
            "line 1: unknown split: training_split names 'train': the file has no [topics.NAME]",
        ),
        (
            'markup = "tex"\n' + MINIMAL,
            "line 1: wrong value: markup is 'tex' (did you mean latex?): choose plain or latex or wiki",
        ),
        (
            "topics_are_documents = 1\n" + MINIMAL,
            "line 1: wrong value: topics_are_documents must be true or false",
        ),
        (
            'training_split = "a"\n' + MINIMAL + '[topics.a]\nfile = "t.csv"\n',
            "line 1: missing gold: the training split a needs gold",
        ),
        (
            MINIMAL + '[topics.A]\nfile = "t.csv"\n',
            "line 4: unusable name: 'A' is not a valid name of a split",
        ),
        (MINIMAL + "[topics.a]\n", "line 4: missing key: [topics.a] needs file"),
        (
            MINIMAL + '[topics.a]\nfile = "t.csv"\ngold = "g.dat"\n',
            "line 6: unknown format: g.dat has an unknown suffix: add gold = "
            "{ file = 'g.dat', format = ... }",
        ),
        (
            MINIMAL + '[topics.a]\nfile = "t.csv"\ngold = { file = "g.csv", rade = "x" }\n',
            "line 6: unknown key: [topics.a.gold] has 'rade' (did you mean grade?): the known keys are file, "
            "format, topic, document, grade, columns",
        ),
        ("recipes = 3\n" + MINIMAL, "line 1: wrong value: recipes must be a table [recipes]"),
        (MINIMAL + 'x = "\n', "line 4 column 6: not TOML: illegal character '\\n'"),
        ("\udcff", "line 1: not UTF-8: byte 0xff; save the file as UTF-8"),
    ],
)
def test_problems_of_a_task_file_are_reported_with_their_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    (only,) = problems_of(tmp_path, text)
    assert only.startswith(problem)


@pytest.mark.parametrize(
    "name", ["nlps", "Mine", "a b", "-a", "a-", "é", "x" * 61, "a-000001", "a/b", "1a", ""]
)
def test_a_name_that_is_taken_or_invalid_for_an_index_is_rejected(tmp_path: Path, name: str) -> None:
    (problem, *_) = problems_of(tmp_path, MINIMAL.replace("mine", name))
    assert problem.startswith(("line 1: unusable name", "line 1: wrong value"))


def test_a_missing_task_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidFiles, match=r"none.toml: missing file"):
        tasks.load(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"or give the TOML file of your own task"):
        tasks.load("none")


def test_paths_are_relative_to_the_task_file(tmp_path: Path) -> None:
    task = task_of(tmp_path, MINIMAL.replace("docs.jsonl", "../data/docs.csv"))
    data = data_folder(task, Path("home"))
    assert data == tmp_path
    (file,) = task.collection(data).documents.files
    assert file.resolve() == (tmp_path.parent / "data" / "docs.csv").resolve()


def test_gold_is_checked_against_topics_documents_and_grades(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    (tmp_path / "t.tsv").write_text("id\ttext\nq1\tx\n")
    (tmp_path / "g.txt").write_text("q1 0 d1 1\nq2 0 d1 1\nq1 0 d9 1\nq1 0 d1 0\nq1 0 d2 2\n")
    text = 'measure = "nDCG@x"\n' + MINIMAL + '[topics.dev]\nfile = "t.tsv"\ngold = "g.txt"\n'
    problems = checked(task_of(tmp_path, text), tmp_path, "dev")
    assert problems[0].startswith("mine.toml: : unknown measure: there is no measure 'nDCG@x'")
    assert problems[1:] == [
        "g.txt: line 4: duplicate document: d1 of topic q1; the first grade counts",
        "g.txt: line 5: unknown grade: 2: the grades of the task are 0 to 1; add more with `grades`",
    ]


def test_unknown_topics_and_documents_of_gold_are_notes_unless_all_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    (tmp_path / "t.tsv").write_text("id\ttext\nq1\tx\n")
    task = task_of(tmp_path, MINIMAL + '[topics.dev]\nfile = "t.tsv"\ngold = "g.txt"\n')
    unknown = [("unknown topic", "line 1"), ("unknown document", "line 2")]
    for further_line, problems_expected, notes_expected in (
        ("", unknown, []),
        ("q1 0 d1 -2\n", [], [("negative grade", "line 3"), *unknown]),
    ):
        (tmp_path / "g.txt").write_text("q2 0 d1 1\nq1 0 d9 1\n" + further_line)
        problems = Problems()
        assert task.collection(tmp_path).check_split("dev", problems) == 1
        assert (kinds(problems), notes(problems)) == (problems_expected, notes_expected)
    gold = task.collection(tmp_path).gold_files("dev")
    assert task.official.grades(gold, DataSplit(task.collection(tmp_path), "dev")) == {
        "q1": {"d9": 1, "d1": 0}
    }


def test_grades_are_restricted_to_the_split_except_for_named_gold_files(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "x"}\n')
    gold, other = tmp_path / "g.txt", tmp_path / "other.txt"
    text = MINIMAL
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
        assert set(Scoring(named).grades(task, named)) == {"q1", "q2"}, "`evaluate` scores them the same way"
    topics = read_gold_topics(task, collection)
    assert {topic.topic.id: (topic.split, topic.topic.text) for topic in topics.citing("d1")} == {
        "q1": ("train", "x"),
        "q2": ("dev", "x"),
    }


def test_a_split_without_gold_has_no_gold_files(tmp_path: Path) -> None:
    task = task_of(tmp_path, MINIMAL + '[topics.test]\nfile = "t.tsv"\n')
    assert not task.collection(tmp_path).is_masked("test")
    message = r"the split test of mine has no gold: name its file under gold in \[topics.test\]"
    with pytest.raises(UsageError, match=message):
        task.collection(tmp_path).gold_files("test")
    with pytest.raises(UsageError, match=r"mine has no split 'dev': choose test"):
        task.collection(tmp_path).topics("dev", Problems())


def test_all_problems_of_a_run_file_are_reported(sample: Task, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 r01 1 2 t\nq1 Q0 r99 2 1 t\nqx Q0 r01 1 1 t\nq2 Q0 r01 2 1 t\n")
    problems = Problems()
    part = DataSplit(sample.collection(SAMPLE), "dev")
    sample.official.validate(path, part, problems)
    # q3 to q8 have no line and count as 0, like in `evaluate`.
    assert kinds(problems) == [
        ("ranks out of order", "line 4"),
        ("unknown document", "line 2"),
        ("unknown topic", "line 3"),
    ]
    without_task = Problems()
    sample.official.validate(path, None, without_task)
    assert [kind for kind, _ in kinds(without_task)] == ["ranks out of order"]


def test_judged_grades_are_written_as_qrels(sample: Task, tmp_path: Path) -> None:
    split = DataSplit(sample.collection(SAMPLE), "dev")
    ((name, write),) = sample.official.gold({"q1": {"r01": 2}}, split).items()
    with (tmp_path / name).open("wb") as file:
        write(file)
    assert (name, (tmp_path / name).read_text()) == ("dev.qrels", "q1 0 r01 2\n")
