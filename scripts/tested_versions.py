"""Write searchapp/tested_versions.json: the lowest and the highest tested version of Python and of each dependency.

python scripts/tested_versions.py (`make lock` runs it)
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "searchapp" / "tested_versions.json"
EXTRAS = ("cwl-eval", "irds", "learn", "mcp", "model2vec", "parquet", "pyterrier")
"""The tested extras for users."""


def project() -> dict[str, Any]:
    """Return the table [project] of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def dependencies() -> list[str]:
    """Return the requirements of searchapp and of its extras for users, as in pyproject.toml."""
    table = project()
    return [
        *table["dependencies"],
        *(text for extra in EXTRAS for text in table["optional-dependencies"][extra]),
    ]


def pins(file: str) -> dict[str, str]:
    """Return the version of each package in a requirements file."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE))


def as_text() -> str:
    """Return the content of the file.

    `make test-lowest` installs requirements-lowest.txt, and `make` requirements-dev.txt.
    """
    lowest, locked = pins("requirements-lowest.txt"), pins("requirements-dev.txt")
    pythons = re.findall(r"Python :: (\d+\.\d+)", "\n".join(project()["classifiers"]))
    versions = {"python": (pythons[0], pythons[-1])}
    for name in sorted(re.match(r"[\w.-]+", text)[0] for text in dependencies()):  # type: ignore[index]
        versions[name] = (lowest[name], locked[name])
    lines = (f"  {json.dumps(name)}: {json.dumps(ends)}" for name, ends in versions.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), encoding="utf-8")
