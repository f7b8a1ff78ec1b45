"""`searchapp indexes` on both engines, with incomplete builds, damaged files and foreign indexes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.lucene.index.reader import DirectoryReader
from searchapp.lucene.index.versions import IndexFolder
from searchapp.tasks.checkthat.task import WITH_TEST
from tests.cli.conftest import SAMPLE, SAMPLES, Cli
from tests.engines.conftest import deleted, spoil
from tests.engines.embedded.segmented import content
from tests.server.rest import Server

OWN = """
name = "cooking"
training_split = "train"
[documents]
file = "d.jsonl"
[topics.train]
file = "d.jsonl"
gold = "g.qrels"
[topics.dev]
file = "d.jsonl"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file of an own task with training topics."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "d.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "text": f"soup number {n}"}) + "\n" for n in range(3))
    )
    (folder / "g.qrels").write_text("0 0 1 1\n1 0 2 1\n")
    (folder / "cooking.toml").write_text(OWN)
    return folder / "cooking.toml"


def list_indexes(cli: Cli, *options: object) -> list[dict[str, Any]]:
    result = cli("indexes", "list", "--json", *options)
    assert result.code == 0, result.stderr
    indexes: list[dict[str, Any]] = result.json["indexes"]
    return indexes


def test_every_index_is_listed_with_its_task_and_state(indexed: Cli, own: Path, tmp_path: Path) -> None:
    assert indexed("index", own).code == 0
    ranked = indexed("rank", own, "--split", "dev", "--recipe", "neighbours", "--out", tmp_path / "run")
    assert ranked.code == 0, ranked.stderr
    indexes = {index["index"]: index for index in list_indexes(indexed)}
    assert set(indexes) == {"nlps", "own-cooking", "training-own-cooking-dev"}
    nlps = indexes["nlps"]
    assert (nlps["task"], nlps["documents"], nlps["state"], nlps["live"]) == ("nlps", 70, "live", True)
    assert "-nlps-000001" in nlps["version"] and nlps["bytes"] > 1000 and nlps["owner"] is None
    assert (indexes["own-cooking"]["task"], indexes["own-cooking"]["owner"]) == ("cooking", str(own))
    assert indexes["training-own-cooking-dev"]["owner"] == str(own)
    text = indexed("indexes", "list").stdout
    columns = ("index", "version", "state", "documents", "size", "age", "task file")
    assert all(word in text for word in (*columns, "own-cooking", str(own)))


def test_without_an_index_the_list_is_empty(cli: Cli) -> None:
    result = cli("indexes", "list")
    assert (result.code, result.stdout) == (0, "")
    assert "has no index yet: `searchapp index TASK` builds one" in result.stderr
    assert list_indexes(cli) == []


def test_removing_an_index_affects_no_other(indexed: Cli, own: Path) -> None:
    assert indexed("index", own).code == 0
    refused = indexed("indexes", "remove", "nlps")
    assert refused.code == 2 and "add --yes" in refused.stderr
    assert len(list_indexes(indexed)) == 2
    removed = indexed("indexes", "remove", "nlps", "--yes", "--json")
    assert removed.code == 0, removed.stderr
    assert [index["index"] for index in removed.json["removed"]] == ["nlps"]
    assert [index["index"] for index in list_indexes(indexed)] == ["own-cooking"]
    assert indexed("search", "nlps", "x").code == 3
    assert indexed("search", own, "soup").code == 0
    assert indexed("index", "nlps", "--data", SAMPLE).code == 0  # a new one can be built


def test_removing_an_unknown_index_removes_nothing(indexed: Cli) -> None:
    for names in (["nlp"], ["nlps", "nlp"]):
        result = indexed("indexes", "remove", *names, "--yes")
        assert result.code == 2
        assert "searchapp has no index 'nlp' (did you mean nlps?): choose from nlps" in result.stderr
    assert len(list_indexes(indexed)) == 1


def test_indexes_of_other_prefixes_are_left_alone(indexed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they begin with our prefix, so that their full names look like names of our indexes."""
    mine = os.environ.get("SEARCHAPP_INDEX_PREFIX", "searchapp")
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-training-nlps"):
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert indexed("index", "nlps", "--data", SAMPLE).code == 0
        assert [index["index"] for index in list_indexes(indexed)] == ["nlps"]
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", mine)
    before = [index["index"] for index in list_indexes(indexed)]
    for name in ("own-nlps", "nlps-nlps", "training-nlps-nlps"):
        assert name not in before
        assert indexed("indexes", "remove", name, "--yes").code == 2
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-training-nlps"):
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert indexed("search", "nlps", "group").code == 0
        assert indexed("indexes", "remove", "nlps", "--yes").code == 0
        assert list_indexes(indexed) == []


def test_partial_and_damaged_indexes_are_listed_and_removed(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    folder = tmp_path / "home" / "indexes" / "searchapp-nlps"
    (folder / "000002").mkdir()
    (folder / "000002" / "part").write_bytes(b"12345")
    leftover = list_indexes(offline)[1]
    assert leftover["version"] == "searchapp-nlps-000002"
    assert (leftover["state"], leftover["bytes"]) == ("leftover", 5)
    with IndexFolder(folder)._locked():
        assert [index["state"] for index in list_indexes(offline)] == ["live", "building"]
        refused = offline("indexes", "remove", "nlps", "--yes")
        assert refused.code == 3 and "is building the index" in refused.stderr
    (folder / "000001" / "manifest.json").write_text("{")
    assert [index["state"] for index in list_indexes(offline)] == ["unreadable", "leftover"]
    assert "unreadable" in offline("indexes", "list").stdout
    assert offline("indexes", "remove", "nlps", "--yes").code == 0
    assert not folder.exists()


def test_foreign_files_and_folders_are_left_alone(offline: Cli, tmp_path: Path) -> None:
    indexes = tmp_path / "home" / "indexes"
    (indexes / "searchapp-nlps").mkdir(parents=True)
    (indexes / "searchapp-nlps" / "thesis.txt").write_text("years of work")
    (indexes / "searchapp-checkthat").write_text("a file")
    (indexes / "other-nlps").mkdir()
    assert list_indexes(offline) == []
    for name in ("nlps", "checkthat", "../../home", "other-nlps"):
        assert offline("indexes", "remove", name, "--yes").code == 2
    assert (indexes / "searchapp-nlps" / "thesis.txt").exists()


@pytest.mark.elasticsearch
def test_unnamed_indexes_have_their_tasks_name(
    indexed_server: Cli, index_prefix: str, elasticsearch_url: str
) -> None:
    import httpx

    (index,) = httpx.get(f"{elasticsearch_url}/{index_prefix}-nlps/_mapping").json().values()
    meta = index["mappings"]["_meta"]
    del meta["searchapp"]["name"]  # as in indexes of older versions
    address = f"{elasticsearch_url}/{index_prefix}-nlps/_mapping"
    assert httpx.put(address, json={"_meta": meta}).status_code == 200
    (listed,) = list_indexes(indexed_server)
    assert (listed["index"], listed["documents"]) == ("nlps", 70)
    assert indexed_server("search", "nlps", "group").code == 0
    assert indexed_server("indexes", "remove", "nlps", "--yes").code == 0


@pytest.mark.elasticsearch
def test_indexes_of_other_programs_are_left_alone(
    indexed_server: Cli, index_prefix: str, elasticsearch_url: str
) -> None:
    import httpx

    foreign = [f"{index_prefix}-mine", f"{index_prefix}-checkthat-000001-0123abcd"]
    for name in foreign:
        assert httpx.put(f"{elasticsearch_url}/{name}", json={}).status_code == 200
    try:
        assert [index["index"] for index in list_indexes(indexed_server)] == ["nlps"]
        for name in ("mine", "checkthat"):
            assert indexed_server("indexes", "remove", name, "--yes").code == 2
        assert indexed_server("indexes", "remove", "nlps", "--yes").code == 0
        for name in foreign:
            assert httpx.head(f"{elasticsearch_url}/{name}").status_code == 200
    finally:
        for name in foreign:
            httpx.delete(f"{elasticsearch_url}/{name}")


def test_indexed_own_tasks_are_listed_with_the_tasks(cli: Cli, own: Path) -> None:
    assert cli("index", own).code == 0
    listed = cli("tasks", "--json").json
    task = listed["tasks"][0]
    assert (task["task"], task["file"], task["indexed"]) == ("cooking", str(own), 3)
    assert listed["unreadable"] == []
    text = cli("tasks").stdout
    assert "cooking  cooking" in text and f"file     {own}" in text and "indexed  3 documents" in text
    shutil.move(own, own.with_suffix(".old"))
    result = cli("tasks")
    assert result.code == 0
    assert f"the task cooking (3 documents indexed) can't be read: {own}: missing file" in result.stderr
    assert cli("tasks", "--json").json["unreadable"] == [{"task": "cooking", "file": str(own), "indexed": 3}]


@pytest.fixture
def ambiguous(indexed_server: Cli, elasticsearch_url: str, index_prefix: str) -> Cli:
    """As `indexed_server`, with the alias of the index on a second version as well."""
    server, alias = Server(elasticsearch_url), f"{index_prefix}-nlps"
    (live,) = server.request("GET", f"/_alias/{alias}").json()
    index = server.request("GET", f"/{live}").json()[live]
    settings = {name: index["settings"]["index"][name] for name in ("analysis", "similarity")}
    body: dict[str, Any] = {"mappings": index["mappings"], "settings": settings, "aliases": {alias: {}}}
    assert server.request("PUT", f"/{alias}-000009-0123abcd", body, timeout=60).status == 200
    return indexed_server


def test_an_ambiguous_alias_is_refused_until_repaired(ambiguous: Cli, index_prefix: str) -> None:
    (intact,) = (
        index["version"]
        for index in ambiguous("indexes", "list", "--json").json["indexes"]
        if "-000001-" in index["version"]
    )
    for command in (("search", "nlps", "group"), ("index", "nlps", "--data", SAMPLE, "--rebuild")):
        result = ambiguous(*command)
        assert result.code == 3 and "`searchapp indexes repair nlps`" in result.stderr
    repaired = ambiguous("indexes", "repair", "nlps", "--json")
    assert repaired.code == 0
    # The newest version is empty, which contradicts the digest it records.
    (index,) = repaired.json["indexes"]
    assert index == {
        "name": "nlps",
        "live": intact,
        "removed": [f"{index_prefix}-nlps-000009-0123abcd"],
        "problem": None,
    }
    assert ambiguous("search", "nlps", "group").code == 0
    assert ambiguous("indexes", "repair").stdout == f"nlps: {intact} is live\n"


def test_irreparable_indexes_are_errors(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str
) -> None:
    spoil(elasticsearch_url, f"{index_prefix}-nlps")
    result = indexed_server("indexes", "repair")
    assert result.code == 3 and "searchapp index nlps --rebuild" in result.stderr


def test_repairing_without_indexes_reports_that_there_are_none(server: Cli) -> None:
    result = server("indexes", "repair")
    assert result.code == 0 and "has no index yet" in result.stderr


def test_the_embedded_engine_needs_no_repair(offline: Cli) -> None:
    result = offline("indexes", "repair")
    assert result.code == 2 and "--url" in result.stderr


def test_commands_refuse_a_damaged_index(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    spoil(elasticsearch_url, f"{index_prefix}-nlps")
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out")
    for command in ((*rank, tmp_path / "run"), ("search", "nlps", "group")):
        result = indexed_server(*command)
        assert result.code == 3
        assert "1 deleted copy of a document, which affects its scores" in result.stderr
        assert "searchapp index nlps --rebuild" in result.stderr
    assert not (tmp_path / "run").exists()
    checks = {check["name"]: check for check in indexed_server("doctor", "--json").json["checks"]}
    assert checks["index nlps"]["verdict"] == "failed"
    assert "deleted" in checks["index nlps"]["finding"]

    # Documents and mapping have not changed, but the index is built again.
    again = indexed_server("index", "nlps", "--data", SAMPLE, "--json")
    assert again.code == 0 and again.json["built"] is True
    assert indexed_server(*rank, tmp_path / "run").code == 0


def test_a_damaged_index_of_training_topics_is_rebuilt(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    command = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out")
    assert indexed_server(*command, tmp_path / "before").code == 0
    spoil(elasticsearch_url, f"{index_prefix}-training-nlps-dev")
    checks = {check["name"]: check for check in indexed_server("doctor", "--json").json["checks"]}
    assert checks["index nlps"]["verdict"] == "ok" and "index training-nlps-dev" in checks
    assert "`searchapp rank` builds it again when needed" in checks["index training-nlps-dev"]["finding"]
    assert indexed_server(*command, tmp_path / "after").code == 0
    runs = [(tmp_path / name / "run.trec").read_bytes() for name in ("before", "after")]
    assert runs[0] == runs[1]
    assert deleted(elasticsearch_url, f"{index_prefix}-training-nlps-dev") == 0


def test_a_damaged_index_of_an_own_task_is_named_by_file(
    server: Cli, elasticsearch_url: str, index_prefix: str
) -> None:
    file = SAMPLE.parent / "own" / "cooking.toml"
    assert server("index", file).code == 0
    spoil(elasticsearch_url, f"{index_prefix}-own-cooking")
    result = server("search", file, "group")
    assert result.code == 3 and f"searchapp index {file} --rebuild" in result.stderr
    for command in (("doctor",), ("indexes", "repair")):
        result = server(*command)
        assert result.code and f"searchapp index {file} --rebuild" in result.stdout + result.stderr


def test_a_damaged_index_of_splits_is_named_by_its_task(
    server: Cli, elasticsearch_url: str, index_prefix: str
) -> None:
    assert server("index", "checkthat", "--data", SAMPLE.parent / "checkthat").code == 0
    spoil(elasticsearch_url, f"{index_prefix}-{WITH_TEST}")
    for command in (("search", "checkthat", "jobs"), ("doctor",), ("indexes", "repair")):
        result = server(*command)
        assert result.code and re.search(rf"{WITH_TEST}-000001-\w+ has", result.stdout + result.stderr)
        assert "`searchapp index checkthat --rebuild`" in result.stdout + result.stderr


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


def live_version(home: Path, name: str = "*cooking") -> Path:
    """Return the folder of the live version."""
    (folder,) = (home / "indexes").glob(f"searchapp-{name}")
    return folder / (folder / "current").read_text().split()[0]


def content_of(home: Path, name: str = "*cooking") -> list[Any]:
    """Return the content of an index, which does not depend on its segments."""
    with closing(DirectoryReader(live_version(home, name))) as reader:
        return content(reader)


def reused_counts(result: Any) -> list[int]:
    return [index["reused"] for index in result.json["indexes"]]


def test_the_number_of_reused_documents_is_reported(offline: Cli, task: Path, tmp_path: Path) -> None:
    result = offline("index", task, "--json")
    assert "indexed 42 documents into" in result.stderr
    assert reused_counts(result) == [0]
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    edit(task, lambda documents: documents.insert(20, {**documents[20], "id": "new"}))
    second = offline("index", task, "--json", "--verbose")
    assert "41 documents are reused, 1 are removed, 2 are analyzed; all is merged" in second.stderr
    assert "indexed 43 documents (41 reused, 2 analyzed) into" in second.stderr
    assert reused_counts(second) == [41]
    content_before = content_of(tmp_path / "home")
    assert offline("search", task, "leeks", "--json").json["hits"][0]["id"] == "r08"
    third = offline("index", task, "--json", "--rebuild")
    assert "indexed 43 documents into" in third.stderr
    assert reused_counts(third) == [0]
    assert content_of(tmp_path / "home") == content_before


def test_skipped_documents_are_not_reused(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[3].pop("id"))
    assert offline("index", task).code == 4
    lenient = offline("index", task, "--lenient", "--json")
    assert "indexed 41 documents (41 reused, 0 analyzed)" in lenient.stderr
    content_before = content_of(tmp_path / "home")
    offline("index", task, "--lenient", "--rebuild")
    assert content_of(tmp_path / "home") == content_before


def test_nothing_is_reused_from_a_damaged_version(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    file = live_version(tmp_path / "home") / "documents.npy"
    content = file.read_bytes()
    file.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    result = offline("index", task, "--json")
    assert "note: all documents were analyzed again: the previous version is damaged (" in (result.stderr)
    assert "indexed 42 documents into" in result.stderr
    content_before = content_of(tmp_path / "home")
    offline("index", task, "--rebuild")
    assert content_of(tmp_path / "home") == content_before


def test_nothing_is_reused_with_another_mapping(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    task.write_text(task.read_text().replace('fields = ["title", "kind", "minutes"]', 'fields = ["title"]'))
    result = offline("index", task, "--json", "--verbose")
    assert "no document can be reused, because it has another mapping" in result.stderr
    assert reused_counts(result) == [0]


def test_each_index_of_a_task_reuses_its_own_documents(offline: Cli, tmp_path: Path) -> None:
    """A debate that moves from test to training was part of the index of all debates, but not of the other one."""
    data = Path(shutil.copytree(SAMPLES / "checkthat", tmp_path / "data"))
    offline("index", "checkthat", "--data", data)
    (debate,) = (data / "test_annotated").iterdir()
    debate.rename(data / "training" / debate.name)
    second = offline("index", "checkthat", "--data", data, "--json").json
    (only,) = second["indexes"]
    assert second["removed"] and 0 < only["reused"] < only["documents"]
    content_before = content_of(tmp_path / "home", "checkthat")
    output = offline("index", "checkthat", "--data", data, "--json", "--rebuild").json
    assert [index["reused"] for index in output["indexes"]] == [0]
    assert content_of(tmp_path / "home", "checkthat") == content_before
