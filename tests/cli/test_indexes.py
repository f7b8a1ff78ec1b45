"""`searchapp indexes` on both engines, with killed builds, damaged files and the indexes of others about."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from searchapp.lucene.index.versions import IndexFolder
from tests.cli.conftest import SAMPLE, Cli

OWN = """
name = "cooking"
examples = "train"
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
    assert set(result) == {"nlps", "own-cooking", "examples-own-cooking-dev"}
    nlps = result["nlps"]
    assert (nlps["task"], nlps["documents"], nlps["state"], nlps["serves"]) == ("nlps", 70, "serves", True)
    assert "-nlps-000001" in nlps["version"] and nlps["bytes"] > 1000 and nlps["owner"] is None
    assert (result["own-cooking"]["task"], result["own-cooking"]["owner"]) == ("cooking", str(own))
    assert result["examples-own-cooking-dev"]["owner"] == str(own)
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
    assert "has no index yet: `searchapp index TASK` makes one" in result.stderr
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
        assert "there is no index 'nlp' (did you mean nlps?) of searchapp's: there are nlps" in result.stderr
    assert len(listed(indexed)) == 1


def test_indexes_of_other_prefixes_are_left_alone(indexed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose prefix begins with ours, or the name of whose index looks like one of ours."""
    mine = os.environ.get("SEARCHAPP_INDEX_PREFIX", "searchapp")
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-examples-nlps"):
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
        assert indexed("index", "nlps", "--data", SAMPLE).code == 0
        assert [one["index"] for one in listed(indexed)] == ["nlps"]
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", mine)
    before = [one["index"] for one in listed(indexed)]
    for name in ("own-nlps", "nlps-nlps", "examples-nlps-nlps"):
        assert name not in before
        assert indexed("indexes", "remove", name, "--yes").code == 2
    for prefix in (f"{mine}-own", f"{mine}-nlps", f"{mine}-examples-nlps"):
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
        assert [one["state"] for one in listed(offline)] == ["serves", "building"]
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
    gone = cli("tasks")
    assert gone.code == 0
    assert f"cooking, with 3 documents indexed, can't be read: {own}: missing file" in gone.stderr
    assert cli("tasks", "--json").json["unreadable"] == [{"task": "cooking", "file": str(own), "indexed": 3}]
