"""The notebooks of the documentation run, and print what is stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts.notebooks import NOTEBOOKS, run
from tests.cli.conftest import clear_variables, run_command
from tests.profile import FULL


def outputs(notebook: Any) -> list[list[object]]:
    """Return the outputs of each cell: printed texts, and the tables or texts of results."""
    return [
        [output.get("text") or output["data"].get("text/html") or output["data"] for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path))


def test_the_one_on_the_sample_prints_what_is_stored() -> None:
    path = NOTEBOOKS / "python.ipynb"
    printed = outputs(run(path))
    assert printed == outputs(nbformat.read(path, as_version=4)) and any(printed)


def test_the_experiment_runs_on_the_sample(tmp_path: Path) -> None:
    text = (NOTEBOOKS / "experiment.ipynb").read_text("utf-8")
    assert text.count("nlps/dev") == text.count('sa.task(\\"nlps\\")') == 1
    on_sample = tmp_path / "sample.ipynb"
    on_sample.write_text(
        text.replace("nlps/dev", "nlps-sample/dev").replace('(\\"nlps\\")', '(\\"nlps-sample\\")')
    )
    (table,) = outputs(run(on_sample))[-2]
    assert all(f"<td>{name}</td>" in str(table) for name in ("bm25s", "bm25", "neighbours", "best"))


@pytest.mark.data
@pytest.mark.skipif(not FULL, reason="trains a model for minutes; the sample is ranked above")
def test_the_experiment_prints_what_is_stored(nlps_data: Path) -> None:
    assert run_command("index", "nlps", "--data", nlps_data).code == 0
    path = NOTEBOOKS / "experiment.ipynb"
    assert outputs(run(path)) == outputs(nbformat.read(path, as_version=4))
