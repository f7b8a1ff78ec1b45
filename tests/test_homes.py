"""Home directories of earlier versions, made by `scripts/freeze_home.py`, open and print the same."""

from __future__ import annotations

import fcntl
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.freeze_home import FOLDER, QUESTIONS, comparable
from searchapp.lucene.index.layout import IndexManifest
from tests.cli.conftest import clear_variables, run_command
from tests.server.rest import Server

HOMES = sorted((Path(__file__).parent / "fixtures" / "homes").glob("*.tar.gz"))


@pytest.fixture(params=HOMES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The extracted folder of a version, with its home in use. Processes take turns, because its path is fixed."""
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", "home")
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(FOLDER, ignore_errors=True)  # after a killed test
        with tarfile.open(request.param) as archive:
            archive.extractall(FOLDER, filter="data")
        (folder,) = FOLDER.iterdir()
        monkeypatch.chdir(folder)
        yield folder
        monkeypatch.undo()
        shutil.rmtree(FOLDER)


def answers(folder: Path) -> Any:
    return json.loads((folder / "answers.json").read_text(encoding="utf-8"))


def require_part(expected: Any, actual: Any, where: str = "") -> None:
    """Require that a JSON value equals another; its objects may have more keys."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), where
        for key, value in expected.items():
            assert key in actual, f"{where}/{key}"
            require_part(value, actual[key], f"{where}/{key}")
    elif isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), where
        for number, value in enumerate(expected):
            require_part(value, actual[number], f"{where}/{number}")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-9), where
    else:
        assert actual == expected, where


def restore(server: Server, stored: Any, prefix: str) -> None:
    """Create the index of a team's judgments as another server stored it, with another prefix."""
    ((name, index),) = stored["index"].items()
    name, alias = (text.replace("searchapp", prefix, 1) for text in (name, "searchapp-judgments"))
    body = {"mappings": index["mappings"], "aliases": {alias: {}}, "settings": {"number_of_shards": 1}}
    assert server.request("PUT", f"/{name}", body, timeout=60).status == 200
    for id_, document in stored["documents"].items():
        assert server.request("PUT", f"/{name}/_create/{id_}", document, timeout=60).status == 201


def test_a_home_has_answers_to_all_questions(folder: Path) -> None:
    assert list(answers(folder)) == sorted(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_command_prints_the_same_as_the_version_that_made_the_home(folder: Path, question: str) -> None:
    answer = answers(folder)[question]
    result = run_command(*answer["command"])
    assert result.code == 0, result.stderr
    require_part(answer["output"], comparable(result.json, folder))


def rank_again(folder: Path, name: str) -> list[list[str]]:
    """Repeat the command that made a run; return the rows of the new `run.trec`."""
    steps = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    step = next(step for step in steps if step[-1] == f"runs/{name}")
    result = run_command(*step[:-1], "again")
    assert result.code == 0, result.stderr
    return rows(folder / "again")


def rows(run: Path) -> list[list[str]]:
    return [line.split() for line in (run / "run.trec").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["bm25", "half"])
def test_the_indexes_of_the_home_give_the_same_run(folder: Path, name: str) -> None:
    assert rank_again(folder, name) == rows(folder / "runs" / name)


def test_documents_of_an_index_of_the_home_are_reused_in_another_format(folder: Path) -> None:
    recipes = folder / "data" / "own" / "recipes.jsonl"
    _first, *others = recipes.read_text(encoding="utf-8").splitlines(keepends=True)
    recipes.write_text("".join(others), encoding="utf-8")
    result = run_command("index", "data/own/cooking.toml")
    assert result.code == 0, result.stderr
    assert f"{len(others)} reused, 0 analyzed" in result.stderr
    shown = run_command("search", "data/own/cooking.toml", "soup", "--json").json
    texts = {document["id"]: document["text"] for document in map(json.loads, others)}
    assert shown["hits"] and all(texts[hit["id"]] in hit["text"] for hit in shown["hits"])


def test_an_altered_document_of_the_home_is_not_shown(folder: Path) -> None:
    """The command repeats the verification of files only after a change of their sizes and times."""
    (documents,) = folder.glob("home/indexes/searchapp-own-cooking/*/documents.sqlite")
    documents.write_bytes(documents.read_bytes().replace(b"soup", b"Soup"))
    IndexManifest.read(documents.parent).mark_verified()
    result = run_command("search", "data/own/cooking.toml", "soup")
    assert result.code != 0
    assert "in documents.sqlite was altered" in result.stderr


def test_a_trained_recipe_ranks_the_same_documents(folder: Path) -> None:
    """Another version of searchapp or scikit-learn may train the model again, which changes scores and order."""
    ranked, before = rank_again(folder, "best"), rows(folder / "runs" / "best")
    assert {(row[0], row[2]) for row in ranked} == {(row[0], row[2]) for row in before}


@pytest.mark.elasticsearch
def test_judgments_that_a_team_shared_are_fetched(
    folder: Path, elasticsearch_url: str, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(folder.glob("judgments-*.json"))
    assert len(files) == 2  # of both tested versions of Elasticsearch
    for number, file in enumerate(files):
        prefix = f"{index_prefix}-{number}"
        restore(Server(elasticsearch_url), json.loads(file.read_text(encoding="utf-8")), prefix)
        monkeypatch.setenv("SEARCHAPP_HOME", str(folder / f"home-{number}"))
        monkeypatch.setenv("SEARCHAPP_URL", elasticsearch_url)
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert run_command("judgments", "sync").code == 0
        listed = run_command("judgments", "list", "nlps", "--json").json
        require_part(answers(folder)["judgments"]["output"], comparable(listed, folder))
