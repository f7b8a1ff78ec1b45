"""Write the list of layers in docs/inside/architecture.md from the import contract in pyproject.toml.

python scripts/architecture.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "inside" / "architecture.md"
BEGIN, END = "<!-- layers: begin -->", "<!-- layers: end -->"


def layers() -> list[list[str]]:
    """Return the layers from top to bottom, each as the names of its modules inside the package."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (
        contract
        for contract in contracts["contracts"]
        if contract["type"] == "layers" and contract["containers"] == ["searchapp"]
    )
    return [[module.strip() for module in re.split("[:|]", layer)] for layer in contract["layers"]]


def diagram() -> str:
    """Return the layers as text, a line for each, from top to bottom."""
    return "\n".join(["```text", *("  ".join(modules) for modules in layers()), "```"])


def updated(text: str) -> str:
    """Return the document with the current diagram between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{diagram()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    TARGET.write_text(updated(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
