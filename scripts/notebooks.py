"""Run the notebooks of docs/notebooks again and store their outputs: `python -m scripts.notebooks [NAME…]`.

`experiment` needs the official nlps data, which `searchapp index nlps --data FOLDER` makes known. It trains for a
minute.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"

SECONDS = 600  # for a cell


def run(path: Path) -> Any:
    """Return a notebook with the outputs of a new run.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    asyncio.run(client.async_execute())
    for cell in notebook.cells:  # warnings of other packages differ between machines
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = nbformat.from_dict({"kernelspec": notebook.metadata["kernelspec"]})
    return notebook


def main(names: list[str]) -> None:
    """Run the notebooks of these names, by default all."""
    for name in names or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")):
        path = NOTEBOOKS / f"{name}.ipynb"
        nbformat.write(run(path), path)
        print(path.relative_to(Path.cwd()))


if __name__ == "__main__":
    main(sys.argv[1:])
