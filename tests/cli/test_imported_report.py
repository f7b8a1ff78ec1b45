"""A report names the tool of an imported run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli

pytestmark = pytest.mark.shared_indexes


def test_the_tool_of_an_imported_run_is_in_its_report(indexed: Cli, run: Path, tmp_path: Path) -> None:
    for name, tool in (("named", ["--tool", "<b>pyserini</b> 1.2\x1b[2J"]), ("unnamed", [])):
        imported, page = tmp_path / name, tmp_path / f"{name}.html"
        given = ("--task", "nlps", "--split", "dev", "--data", SAMPLE, "--out", imported, *tool)
        assert indexed("runs", "import", run / "run.trec", *given).code == 0
        described = indexed("report", imported, "--cutoff", 50, "--out", page, "--json").json
        (inputs,) = described["reproduction"]["runs"]
        html = page.read_text(encoding="utf-8")
        if tool:
            assert inputs["tool"] == tool[1]
            shown = "<bdi>&lt;b&gt;pyserini&lt;/b&gt; 1.2␛[2J</bdi>"
            assert f"made by {shown} and imported" in html
            assert f'<tr><th scope="row">tool</th><td>{shown}</td></tr>' in html
        else:
            assert inputs["tool"] == "" and "the run of another tool, or a pool" in html
