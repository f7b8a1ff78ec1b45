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
    """The layers of the package from top to bottom, each with its modules by their names inside the package."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (
        one
        for one in contracts["contracts"]
        if one["type"] == "layers" and one["containers"] == ["searchapp"]
    )
    return [[module.strip() for module in re.split("[:|]", layer)] for layer in contract["layers"]]


def picture() -> str:
    """Return the layers as text, one line each, from top to bottom."""
    return "\n".join(["```text", *("  ".join(modules) for modules in layers()), "```"])


def drawn(text: str) -> str:
    """A document with the picture between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{picture()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    TARGET.write_text(drawn(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
