"""`searchapp indexes` on both engines, with killed builds, damaged files and the indexes of others about."""

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
    """The file of a task of somebody's own, with solved topics."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "d.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "text": f"soup number {n}"}) + "\n" for n in range(3))
    )
    (folder / "g.qrels").write_text("0 0 1 1\n1 0 2 1\n")
    (folder / "cooking.toml").write_text(OWN)
    return folder / "cooking.toml"


def listed(cli: Cli, *options: object) -> list[dict[str, Any]]:
    result = cli("indexes", "list", "--json", *options)
    assert result.code == 0, result.stderr
    found: list[dict[str, Any]] = result.json["indexes"]
    return found


def test_every_index_is_listed_with_what_it_is_of(indexed: Cli, own: Path, tmp_path: Path) -> None:
    assert indexed("index", own).code == 0
    ranked = indexed("rank", own, "--split", "dev", "--recipe", "neighbours", "--out", tmp_path / "run")
    assert ranked.code == 0, ranked.stderr
    result = {one["index"]: one for one in listed(indexed)}
    assert set(result) == {"nlps", "own-cooking", "training-own-cooking-dev"}
    nlps = result["nlps"]
    assert (nlps["task"], nlps["documents"], nlps["state"], nlps["live"]) == ("nlps", 70, "live", True)
    assert "-nlps-000001" in nlps["version"] and nlps["bytes"] > 1000 and nlps["owner"] is None
    assert (result["own-cooking"]["task"], result["own-cooking"]["owner"]) == ("cooking", str(own))
    assert result["training-own-cooking-dev"]["owner"] == str(own)
    shown = indexed("indexes", "list").stdout
    for word in (
        "index",
        "version",
        "state",
        "documents",
        "size",
        "age",
        "task file",
        "own-cooking",
        str(own),
    ):
        assert word in shown


def test_without_an_index_the_list_is_empty(cli: Cli) -> None:
    result = cli("indexes", "list")
    assert (result.code, result.stdout) == (0, "")
    assert "has no index yet: `searchapp index TASK` builds one" in result.stderr
    assert listed(cli) == []


def test_an_index_is_removed_with_its_versions_and_nothing_else(indexed: Cli, own: Path) -> None:
    assert indexed("index", own).code == 0
    refused = indexed("indexes", "remove", "nlps")
    assert refused.code == 2 and "add --yes" in refused.stderr
    assert len(listed(indexed)) == 2
    removed = indexed("indexes", "remove", "nlps", "--yes", "--json")
    assert removed.code == 0, removed.stderr
    assert [one["index"] for one in removed.json["removed"]] == ["nlps"]
    assert [one["index"] for one in listed(indexed)] == ["own-cooking"]
    assert indexed("search", "nlps", "x").code == 3
    assert indexed("search", own, "soup").code == 0
    assert indexed("index", "nlps", "--data", SAMPLE).code == 0  # nothing is in the way of a new one


def test_a_name_that_no_index_has_removes_nothing(indexed: Cli) -> None:
    for names in (["nlp"], ["nlps", "nlp"]):
        result = indexed("indexes", "remove", *names, "--yes")
        assert result.code == 2
        assert "searchapp has no index 'nlp' (did you mean nlps?): choose from nlps" in result.stderr
    assert len(listed(indexed)) == 1


def test_indexes_of_other_prefixes_are_left_alone(indexed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose prefix begins with ours, or the name of whose index looks like one of ours."""
    mine = os.environ.get("SEARCHAPP_INDEX_PREFIX", "searchapp")
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-training-nlps"):
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert indexed("index", "nlps", "--data", SAMPLE).code == 0
        assert [one["index"] for one in listed(indexed)] == ["nlps"]
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", mine)
    before = [one["index"] for one in listed(indexed)]
    for name in ("own-nlps", "nlps-nlps", "training-nlps-nlps"):
        assert name not in before
        assert indexed("indexes", "remove", name, "--yes").code == 2
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-training-nlps"):
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert indexed("search", "nlps", "group").code == 0
        assert indexed("indexes", "remove", "nlps", "--yes").code == 0
        assert listed(indexed) == []


def test_partial_and_damaged_indexes_are_listed_and_removed(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    folder = tmp_path / "home" / "indexes" / "searchapp-nlps"
    (folder / "000002").mkdir()
    (folder / "000002" / "part").write_bytes(b"12345")
    assert [(one["version"], one["state"], one["bytes"]) for one in listed(offline)][1] == (
        "searchapp-nlps-000002", "leftover", 5,
    )  # fmt: skip
    with IndexFolder(folder)._locked():
        assert [one["state"] for one in listed(offline)] == ["live", "building"]
        refused = offline("indexes", "remove", "nlps", "--yes")
        assert refused.code == 3 and "is building the index" in refused.stderr
    (folder / "000001" / "manifest.json").write_text("{")
    assert [one["state"] for one in listed(offline)] == ["unreadable", "leftover"]
    assert "unreadable" in offline("indexes", "list").stdout
    assert offline("indexes", "remove", "nlps", "--yes").code == 0
    assert not folder.exists()


def test_what_searchapp_did_not_make_is_left_alone(offline: Cli, tmp_path: Path) -> None:
    indexes = tmp_path / "home" / "indexes"
    (indexes / "searchapp-nlps").mkdir(parents=True)
    (indexes / "searchapp-nlps" / "thesis.txt").write_text("years of work")
    (indexes / "searchapp-checkthat").write_text("a file")
    (indexes / "other-nlps").mkdir()
    assert listed(offline) == []
    for name in ("nlps", "checkthat", "../../home", "other-nlps"):
        assert offline("indexes", "remove", name, "--yes").code == 2
    assert (indexes / "searchapp-nlps" / "thesis.txt").exists()


@pytest.mark.elasticsearch
def test_unnamed_indexes_have_their_tasks_name(
    indexed_server: Cli, index_prefix: str, elasticsearch_url: str
) -> None:
    import httpx

    (described,) = httpx.get(f"{elasticsearch_url}/{index_prefix}-nlps/_mapping").json().values()
    meta = described["mappings"]["_meta"]
    del meta["searchapp"]["name"]  # as it was before names were written down
    address = f"{elasticsearch_url}/{index_prefix}-nlps/_mapping"
    assert httpx.put(address, json={"_meta": meta}).status_code == 200
    assert [(one["index"], one["documents"]) for one in listed(indexed_server)] == [("nlps", 70)]
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
        assert [one["index"] for one in listed(indexed_server)] == ["nlps"]
        for name in ("mine", "checkthat"):
            assert indexed_server("indexes", "remove", name, "--yes").code == 2
        assert indexed_server("indexes", "remove", "nlps", "--yes").code == 0
        for name in foreign:
            assert httpx.head(f"{elasticsearch_url}/{name}").status_code == 200
    finally:
        for name in foreign:
            httpx.delete(f"{elasticsearch_url}/{name}")


def test_own_tasks_that_are_indexed_are_among_the_tasks(cli: Cli, own: Path) -> None:
    assert cli("index", own).code == 0
    described = cli("tasks", "--json").json
    task = described["tasks"][-1]
    assert (task["task"], task["file"], task["indexed"]) == ("cooking", str(own), 3)
    assert described["unreadable"] == []
    shown = cli("tasks").stdout
    assert "cooking  cooking" in shown and f"file     {own}" in shown and "indexed  3 documents" in shown
    shutil.move(own, own.with_suffix(".old"))
    result = cli("tasks")
    assert result.code == 0
    assert f"the task cooking (3 documents indexed) can't be read: {own}: missing file" in result.stderr
    assert cli("tasks", "--json").json["unreadable"] == [{"task": "cooking", "file": str(own), "indexed": 3}]


@pytest.fixture
def split(indexed_server: Cli, elasticsearch_url: str, index_prefix: str) -> Cli:
    """The sample of nlps is indexed, and its alias on a second version as well."""
    server, alias = Server(elasticsearch_url), f"{index_prefix}-nlps"
    (serving,) = server.request("GET", f"/_alias/{alias}").json()
    described = server.request("GET", f"/{serving}").json()[serving]
    kept = {name: described["settings"]["index"][name] for name in ("analysis", "similarity")}
    body: dict[str, Any] = {"mappings": described["mappings"], "settings": kept, "aliases": {alias: {}}}
    assert server.request("PUT", f"/{alias}-000009-0123abcd", body, timeout=60).status == 200
    return indexed_server


def test_an_ambiguous_alias_is_refused_until_repaired(split: Cli, index_prefix: str) -> None:
    (sound,) = (
        index["version"]
        for index in split("indexes", "list", "--json").json["indexes"]
        if "-000001-" in index["version"]
    )
    for command in (("search", "nlps", "group"), ("index", "nlps", "--data", SAMPLE, "--rebuild")):
        result = split(*command)
        assert result.code == 3 and "`searchapp indexes repair nlps`" in result.stderr
    repaired = split("indexes", "repair", "nlps", "--json")
    assert repaired.code == 0
    (one,) = repaired.json["indexes"]
    # The newest is empty, which is not what it says it was built from.
    assert one == {
        "name": "nlps",
        "live": sound,
        "removed": [f"{index_prefix}-nlps-000009-0123abcd"],
        "problem": None,
    }
    assert split("search", "nlps", "group").code == 0
    assert split("indexes", "repair").stdout == f"nlps: {sound} is live\n"


def test_irreparable_indexes_are_errors(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str
) -> None:
    spoil(elasticsearch_url, f"{index_prefix}-nlps")
    result = indexed_server("indexes", "repair")
    assert result.code == 3 and "searchapp index nlps --rebuild" in result.stderr


def test_there_is_nothing_to_repair(server: Cli) -> None:
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
        assert (
            "1 deleted copy of a document, which affects its scores" in result.stderr
            and "searchapp index nlps --rebuild" in result.stderr
        )
    assert not (tmp_path / "run").exists()
    checks = {check["name"]: check for check in indexed_server("doctor", "--json").json["checks"]}
    assert checks["index nlps"]["verdict"] == "failed"
    assert "deleted" in checks["index nlps"]["finding"]

    # The same documents under the same mapping, and yet something has changed.
    again = indexed_server("index", "nlps", "--data", SAMPLE, "--json")
    assert again.code == 0 and again.json["built"] is True
    assert indexed_server(*rank, tmp_path / "run").code == 0


def test_damaged_solved_topics_are_rebuilt(
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


def serving(home: Path, name: str = "*cooking") -> Path:
    """The folder of the version that serves."""
    (folder,) = (home / "indexes").glob(f"searchapp-{name}")
    return folder / (folder / "current").read_text().split()[0]


def content_of(home: Path, name: str = "*cooking") -> list[Any]:
    """What the index has, whatever its segments are."""
    with closing(DirectoryReader(serving(home, name))) as reader:
        return content(reader)


def taken_over(result: Any) -> list[int]:
    return [index["reused"] for index in result.json["indexes"]]


def test_it_says_how_many_documents_were_taken_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    result = offline("index", task, "--json")
    assert "indexed 42 documents into" in result.stderr
    assert taken_over(result) == [0]
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    edit(task, lambda documents: documents.insert(20, {**documents[20], "id": "new"}))
    second = offline("index", task, "--json", "--verbose")
    assert "41 documents are reused, 1 are removed, 2 are analyzed; all is merged" in second.stderr
    assert "indexed 43 documents (41 reused, 2 analyzed) into" in second.stderr
    assert taken_over(second) == [41]
    ours = content_of(tmp_path / "home")
    assert offline("search", task, "leeks", "--json").json["hits"][0]["id"] == "r08"
    third = offline("index", task, "--json", "--rebuild")
    assert "indexed 43 documents into" in third.stderr
    assert taken_over(third) == [0]
    assert content_of(tmp_path / "home") == ours


def test_skipped_documents_are_not_carried_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[3].pop("id"))
    assert offline("index", task).code == 4
    lenient = offline("index", task, "--lenient", "--json")
    assert "indexed 41 documents (41 reused, 0 analyzed)" in lenient.stderr
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
    assert "note: all documents were analyzed again: the previous version is damaged (" in (result.stderr)
    assert "indexed 42 documents into" in result.stderr
    ours = content_of(tmp_path / "home")
    offline("index", task, "--rebuild")
    assert content_of(tmp_path / "home") == ours


def test_another_mapping_carries_nothing_over(offline: Cli, task: Path, tmp_path: Path) -> None:
    offline("index", task)
    edit(task, lambda documents: documents[7].update(text="Now with leeks."))
    task.write_text(task.read_text().replace('fields = ["title", "kind", "minutes"]', 'fields = ["title"]'))
    result = offline("index", task, "--json", "--verbose")
    assert "no document can be reused, because it has another mapping" in result.stderr
    assert taken_over(result) == [0]


def test_each_index_of_a_task_takes_over_its_own_documents(offline: Cli, tmp_path: Path) -> None:
    """A debate that moves from test to training is taken over by the index of all debates, and new in the other one."""
    data = Path(shutil.copytree(SAMPLES / "checkthat", tmp_path / "data"))
    offline("index", "checkthat", "--data", data)
    (debate,) = (data / "test_annotated").iterdir()
    debate.rename(data / "training" / debate.name)
    second = offline("index", "checkthat", "--data", data, "--json").json
    (only,) = second["indexes"]
    assert second["removed"] and 0 < only["reused"] < only["documents"]
    ours = content_of(tmp_path / "home", "checkthat")
    output = offline("index", "checkthat", "--data", data, "--json", "--rebuild").json
    assert [index["reused"] for index in output["indexes"]] == [0]
    assert content_of(tmp_path / "home", "checkthat") == ours
