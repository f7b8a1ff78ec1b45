"""The notebooks of the documentation run, and print what is stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts.notebooks import NOTEBOOKS, run
from tests.cli.conftest import clear_variables


def outputs(notebook: Any) -> list[list[object]]:
    """Return the outputs of each cell: printed texts, and the tables or texts of results."""
    return [
        [output.get("text") or output["data"].get("text/html") or output["data"] for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_it_prints_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path))
    path = NOTEBOOKS / "python.ipynb"
    printed = outputs(run(path))
    assert printed == outputs(nbformat.read(path, as_version=4)) and any(printed)
