"""From `data get` to a valid official file, with files in the shapes of the organisers."""

from __future__ import annotations

import hashlib
import io
import json
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from searchapp.fetching import sources
from searchapp.tasks import load, names
from searchapp.tasks.base import DataSplit
from tests.cli import official_shapes as shapes
from tests.cli.conftest import Cli
from tests.cli.ranked_samples import SCORED_WITH
from tests.fetching.server import FileServer

SPLITS = {"nlps": "test", "checkthat": "test_annotated"}
"""The split without published gold, or the one published later with it; `test` for the other tasks."""

SCORED = ("dev", "training", "fold1")
"""Splits with gold, of which each task has one."""


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server that is set as the mirror."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FileServer() as server:
        monkeypatch.setenv("SEARCHAPP_DATA_MIRROR", server.url)
        yield server


def serve_files(task: str, files: Mapping[str, bytes], web: FileServer) -> dict[str, Any]:
    """Put files on the server, and return the entry of the task in the list of sources with their digests."""
    table: dict[str, Any] = tomllib.loads(sources._FILE.read_text(encoding="utf-8"))[task]
    for group in table.get("groups", ()):
        for file in group["files"]:
            content = files[file["path"]]
            header = b"blob %d\0" % len(content)
            file |= {"size": len(content), "git_blob": hashlib.sha1(header + content).hexdigest()}
            put_on(web, group["base"] + file["path"], content)
    for archive in table.get("archives", ()):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as zip_file:
            for member in archive["members"]:
                for path in files:
                    name = path.rpartition("/")[2]
                    inside = member["from"].rpartition("/")[0]
                    if member["to"] + name == path and not member.get("optional"):
                        entry = f"{archive['top']}{inside}/{name}" if inside else f"{archive['top']}{name}"
                        if entry not in zip_file.namelist():
                            zip_file.writestr(entry, files[path])
        archive["sha256"] = hashlib.sha256(buffer.getvalue()).hexdigest()
        put_on(web, archive["url"], buffer.getvalue())
    return table


def scored_split(task: str) -> str:
    return next(split for split in SCORED if split in load(task).info.splits)


def put_on(web: FileServer, url: str, content: bytes) -> None:
    address = urlsplit(url)
    web.files[f"/{address.netloc}{address.path}"] = content


def make_official(cli: Cli, task: str, split: str, where: list[object], out: Path) -> Path:
    """Rank, export and validate a split, and return the official file or folder."""
    ranked = cli("rank", task, *where, "--split", split, "--out", out)
    assert ranked.code == 0, ranked.stderr
    official = out.with_suffix(".official")
    exported = cli("export", out, "--out", official, *SCORED_WITH.get(task, []))
    assert exported.code == 0, exported.stderr
    for file in sorted(official.iterdir()) if official.is_dir() else [official]:
        options = ["--task", task, *where, "--split", split, *SCORED_WITH.get(task, [])]
        validated = cli("validate", file, *options)
        assert validated.code == 0, validated.stderr
        assert "a valid" in validated.stderr
    return official


@pytest.mark.parametrize("task", names())
def test_fetched_files_can_be_indexed_ranked_exported_and_validated(
    offline: Cli, task: str, web: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = shapes.files_of(task)
    table = serve_files(task, files, web)
    monkeypatch.setattr(sources, "_read", lambda: {task: table})
    got = offline("data", "get", task, "--accept-terms")
    assert got.code == 0, got.stderr
    indexed = offline("index", task, "--json")
    assert indexed.code == 0, indexed.stderr
    assert (indexed.json["missing"], indexed.json["skipped"]) == ([], 0)
    for split in (SPLITS.get(task, "test"), scored_split(task)):
        official = make_official(offline, task, split, [], tmp_path / split)
        options = ["--task", task, "--split", split, *SCORED_WITH.get(task, [])]
        scored = offline("evaluate", official, *options, "--json")
        if split == "test":
            assert scored.code == 4
            assert "the gold is masked" in scored.stderr and "give gold with --gold" in scored.stderr
        else:
            assert scored.code == 0, scored.stderr
            of_run = offline("evaluate", tmp_path / split, *SCORED_WITH.get(task, []), "--json").json
            figures, of_run_figures = scored.json["official"], of_run["official"]
            # The file has more labels than the ranking, see docs/tasks/smart-types.md.
            if task == "smart-types-wikidata":
                assert figures.pop("honest")["MRR"] <= of_run_figures.pop("honest")["MRR"]
            assert figures == of_run_figures


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("task", ["smart-types-dbpedia", "smart-types-wikidata"])
def test_the_files_of_2020_have_their_own_names(offline: Cli, task: str, gold: bool, tmp_path: Path) -> None:
    make = shapes.types_dbpedia_2020 if task.endswith("dbpedia") else shapes.types_wikidata_2020
    data = shapes.put(make(gold=gold), tmp_path / "data")
    indexed = offline("index", task, "--data", data, "--json")
    assert indexed.code == 0, indexed.stderr
    assert indexed.json["missing"] == []
    official = make_official(offline, task, "test", ["--data", data], tmp_path / "run")
    ids = {type(entry["id"]) for entry in json.loads(official.read_bytes())}
    assert ids == {str if task.endswith("dbpedia") else int}
    scored = offline("evaluate", tmp_path / "run", "--json")
    assert scored.code == (0 if gold else 4), scored.stderr
    make_official(offline, task, "fold1", ["--data", data], tmp_path / "fold")


@pytest.mark.parametrize("base", ["dbpedia", "wikidata"])
def test_relations_of_a_test_file_with_gold_are_read(offline: Cli, base: str, tmp_path: Path) -> None:
    task = f"smart-relations-{base}"
    data = shapes.put(shapes.relations_with_gold(base), tmp_path / "data")
    indexed = offline("index", task, "--data", data, "--json")
    assert indexed.code == 0 and indexed.json["missing"] == [], indexed.stderr
    make_official(offline, task, "test", ["--data", data], tmp_path / "run")
    scored = offline("evaluate", tmp_path / "run", "--json")
    assert scored.code == 0 and scored.json["topics"] == 5, scored.stderr
    # Without the file with gold, the file without gold is ranked.
    (data / f"smart-2021-rl-{base}-test.json").unlink()
    make_official(offline, task, "test", ["--data", data], tmp_path / "masked")
    assert offline("evaluate", tmp_path / "masked").code == 4


def test_the_files_of_the_later_year_are_preferred(offline: Cli, tmp_path: Path) -> None:
    both = {**shapes.types_dbpedia_2020(gold=True), **shapes.files_of("smart-types-dbpedia")}
    data = shapes.put(both, tmp_path / "data")
    task = load("smart-types-dbpedia")
    assert [task.collection(data).split_files(split)[0].name for split in ("fold0", "test")] == [
        "task1_dbpedia_train.json",
        "task1_dbpedia_test.json",
    ]


def test_ids_have_the_type_of_the_file_of_the_split(offline: Cli, tmp_path: Path) -> None:
    """The ids are strings in the train file and integers in the test file, as when files of two years are mixed."""
    task = "smart-types-dbpedia"
    data = shapes.put(shapes.files_of(task), tmp_path / "data")
    train = data / "task1_dbpedia_train.json"
    questions = json.loads(train.read_bytes())
    train.write_text(json.dumps([{**question, "id": f"dbpedia_{question['id']}"} for question in questions]))
    where: list[object] = ["--data", data]
    assert offline("index", task, *where).code == 0
    kinds = {}
    for split in ("fold1", "test"):
        official = make_official(offline, task, split, where, tmp_path / split)
        kinds[split] = {type(entry["id"]) for entry in json.loads(official.read_bytes())}
    assert kinds == {"fold1": {str}, "test": {int}}


def test_ids_of_the_wrong_type_are_reported(offline: Cli, tmp_path: Path) -> None:
    for task in ("smart-types-dbpedia", "smart-relations-dbpedia"):
        data = shapes.put(shapes.files_of(task), tmp_path / task)
        test = next(data.glob("*test*.json"))
        questions = json.loads(test.read_bytes())
        test.write_text(json.dumps([{**entry, "id": number} for number, entry in enumerate(questions)]))
        where: list[object] = ["--data", data]
        assert offline("index", task, *where).code == 0
        official = make_official(offline, task, "test", where, tmp_path / f"run-{task}")
        answers = json.loads(official.read_bytes())
        official.write_text(json.dumps([{**answer, "id": str(answer["id"])} for answer in answers]))
        result = offline("validate", official, "--task", task, *where, "--split", "test", "--json")
        assert result.code == 4
        kinds = [problem["kind"] for problem in result.json["problems"]]
        assert kinds == ["wrong type of id"] * len(answers)
        assert "is a string here and an integer in the questions" in result.stderr


@pytest.mark.parametrize(
    "task", ["smart-types-dbpedia", "smart-relations-dbpedia", "smart-relations-wikidata"]
)
def test_a_run_over_integer_ids_has_the_figures_of_its_file(offline: Cli, task: str, tmp_path: Path) -> None:
    data = shapes.put(shapes.files_of(task), tmp_path / "data")
    train = next(data.glob("*train.json"))
    questions = json.loads(train.read_bytes())
    train.write_text(json.dumps([{**entry, "id": number} for number, entry in enumerate(questions)]))
    where: list[object] = ["--data", data]
    assert offline("index", task, *where).code == 0
    official = make_official(offline, task, "fold1", where, tmp_path / "run")
    of_file = offline("evaluate", official, "--task", task, *where, "--split", "fold1", "--json").json
    of_run = offline("evaluate", tmp_path / "run", "--json").json
    assert of_run["official"] == of_file["official"] and of_run["official"]["value"] > 0.3
    (gold,) = (file for name, file in judged_gold(task, data, tmp_path).items() if "train" in name)
    assert {type(entry["id"]) for entry in json.loads(gold.read_bytes())} == {int}


def judged_gold(task: str, data: Path, folder: Path) -> dict[str, Path]:
    """Write the gold files for judgments of one topic."""
    loaded = load(task)
    files = {}
    grades = {"3": {"dbo:Person": 1}}
    for name, write in loaded.official.gold(grades, DataSplit(loaded.collection(data), "fold1")).items():
        files[name] = folder / f"judged-{name}"
        with files[name].open("wb") as file:
            write(file)
    return files


def test_an_export_reads_ids_from_the_given_folder(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    data = shapes.put(shapes.files_of(task), tmp_path / "data")
    assert offline("index", task, "--data", data).code == 0
    official = make_official(offline, task, "test", ["--data", data], tmp_path / "run")
    moved = data.rename(tmp_path / "moved")
    refused = offline("export", tmp_path / "run", "--out", tmp_path / "again.json")
    assert (
        refused.code == 4
        and "task1_dbpedia_test.json is expected" in refused.stderr
        and "--data" in refused.stderr
    )
    assert offline("export", tmp_path / "run", "--out", tmp_path / "again.json", "--data", moved).code == 0
    assert (tmp_path / "again.json").read_bytes() == official.read_bytes()


def test_unusual_gold_of_2021_is_reported_as_a_note(offline: Cli, tmp_path: Path) -> None:
    data = shapes.put(shapes.files_of("smart-types-dbpedia"), tmp_path / "data")
    result = offline("index", "smart-types-dbpedia", "--data", data)
    assert result.code == 0
    assert "unusual, but not an error: 2 problems: no gold (1), unknown type (1)" in result.stderr


# Explanations


@pytest.mark.parametrize("masked", ["empty", "no column"])
def test_masked_questions_of_2019(offline: Cli, masked: str, tmp_path: Path) -> None:
    task = "explanation-2019"
    files = shapes.files_of(task)
    name = "questions/ARC-Elementary+EXPL-Test-Masked.tsv"
    if masked == "no column":
        columns = tuple(column for column in shapes.COLUMNS_OF_2019 if column != "explanation")
        sample = dict(shapes._sample(task))["questions/ARC-Elementary+EXPL-Dev.tsv"]
        files[name] = shapes.questions_of_2019(sample, columns)
    data = shapes.put(files, tmp_path / "data")
    assert offline("index", task, "--data", data).code == 0
    make_official(offline, task, "test", ["--data", data], tmp_path / "run")
    result = offline("evaluate", tmp_path / "run")
    assert result.code == 4 and "masked" in result.stderr


def worldtree_2(folder: Path) -> Path:
    """Write the sample in the layout of WorldTree 2, with a test question that has no options."""
    sample = dict(shapes._sample("explanation-2019"))
    files = {name: content for name, content in sample.items() if name.startswith("tables/")}
    for split in ("Train", "Dev"):
        rows = sample[f"questions/ARC-Elementary+EXPL-{split}.tsv"]
        questions = shapes.questions_of_2019(rows, shapes.COLUMNS_OF_WORLDTREE_2)
        files[f"questions/questions.{split.lower()}.tsv"] = questions
    dev = files["questions/questions.dev.tsv"].decode().splitlines()
    cells = dict(zip(shapes.COLUMNS_OF_WORLDTREE_2, dev[1].split("\t"), strict=True))
    cells |= {"QuestionID": "T_open", "question": "Say why a puddle in the sun dries.", "AnswerKey": ""}
    files["questions/questions.test.tsv"] = "\n".join([*dev, "\t".join(cells.values()), ""]).encode()
    return shapes.put(files, folder)


def test_questions_in_the_layout_of_worldtree_2_are_read(offline: Cli, tmp_path: Path) -> None:
    task, data = "explanation-2019", worldtree_2(tmp_path / "data")
    indexed = offline("index", task, "--data", data, "--json")
    assert indexed.code == 0, indexed.stderr
    assert indexed.json["missing"] == []
    assert "no options: no options such as ... (A) ... (B) ...: only the text is the query" in indexed.stderr
    for recipe in ("bm25", "neighbours", "tfidf"):
        out = tmp_path / recipe
        options = ["--data", data, "--split", "test", "--recipe", recipe, "--out", out]
        assert offline("rank", task, *options).code == 0
        assert "T_open\t" in (out / "predict.txt").read_text()
    # The official script of 2019 does not know the header.
    refused = offline("evaluate", tmp_path / "bm25")
    assert refused.code == 4
    assert "that of WorldTree 2, QuestionID (evaluate --lenient continues)" in refused.stderr
    assert "not in index" in refused.stderr
    options = ["--task", task, "--data", data, "--split", "test"]
    invalid = offline("validate", tmp_path / "bm25" / "predict.txt", *options)
    assert invalid.code == 4 and "not scorable" in invalid.stderr
    scored = offline("evaluate", tmp_path / "bm25", "--lenient", "--by", "all", "--json")
    assert scored.code == 0, scored.stderr
    assert scored.json["official"]["value"] > 0.8
    assert any("header of WorldTree 2" in warning for warning in scored.json["warnings"])


# Lenient reading


def test_every_command_can_skip_invalid_entries(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    data = shapes.put(shapes.files_of(task), tmp_path / "data")
    train = data / "task1_dbpedia_train.json"
    questions = json.loads(train.read_bytes())
    questions[2]["category"] = "Resource"
    train.write_text(json.dumps(questions))
    refused = offline("index", task, "--data", data)
    assert refused.code == 4 and "; --lenient leaves these entries out" in refused.stderr
    assert offline("index", task, "--data", data, "--lenient").code == 0
    options = ["--data", data, "--split", "test", "--recipe", "neighbours", "--out", tmp_path / "run"]
    ranked = offline("rank", task, *options)
    assert ranked.code == 4 and "; --lenient leaves these entries out" in ranked.stderr
    ranked = offline("rank", task, *options, "--lenient")
    assert ranked.code == 0 and "left out: " in ranked.stderr
    # No topic was skipped, so that the run has an official file.
    official = tmp_path / "run" / "task1_dbpedia_predictions.json"
    options = ["--task", task, "--data", data, "--split", "test"]
    assert offline("validate", official, *options).code == 0


def test_lenient_is_not_suggested_for_an_unreadable_file(offline: Cli, tmp_path: Path) -> None:
    data = shapes.put(shapes.files_of("nlps"), tmp_path / "data")
    (data / "train_set.json").write_text("{")
    result = offline("index", "nlps", "--data", data)
    assert result.code == 4 and "--lenient" not in result.stderr
