"""An index that holds something else than what it was built from: what the commands make of it."""

from __future__ import annotations

import re
from pathlib import Path

from searchapp.tasks.checkthat.task import WITH_TEST
from tests.cli.conftest import SAMPLE, Cli
from tests.engines.conftest import deleted, spoil


def test_commands_refuse_a_damaged_index(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    spoil(elasticsearch_url, f"{index_prefix}-nlps")
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out")
    for command in ((*rank, tmp_path / "run"), ("search", "nlps", "group")):
        result = indexed_server(*command)
        assert result.code == 3
        assert (
            "1 deleted copy of documents" in result.stderr
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
    spoil(elasticsearch_url, f"{index_prefix}-examples-nlps-dev")
    checks = {check["name"]: check for check in indexed_server("doctor", "--json").json["checks"]}
    assert checks["index nlps"]["verdict"] == "ok" and "index examples-nlps-dev" in checks
    assert (
        "the next `searchapp rank` that needs it builds it again"
        in checks["index examples-nlps-dev"]["finding"]
    )
    assert indexed_server(*command, tmp_path / "after").code == 0
    runs = [(tmp_path / name / "run.trec").read_bytes() for name in ("before", "after")]
    assert runs[0] == runs[1]
    assert deleted(elasticsearch_url, f"{index_prefix}-examples-nlps-dev") == 0


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
        assert result.code and re.search(rf"{WITH_TEST}-000001-\w+ holds", result.stdout + result.stderr)
        assert "`searchapp index checkthat --rebuild`" in result.stdout + result.stderr
