"""Report what commands import: modules, CPU time, and the modules that take longest.

    python -m scripts.imports

Each command runs once, on the sample of nlps in an empty home directory. Times contain the cost of measuring them.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

TASK = "nlps-sample"
COMMANDS: Mapping[str, Sequence[str]] = {
    "--version": ("--version",),
    "tasks": ("tasks",),
    "tasks show": ("tasks", "show", "nlps"),
    "runs list": ("runs", "list"),
    "indexes list": ("indexes", "list"),
    "search": ("search", TASK, "ring", "--size", "3"),
}
HEAVIEST = 10

_LINE = re.compile(r"import time: +(\d+) \| +\d+ \| *(\S+)")


class Imports(NamedTuple):
    """The imports of a command."""

    own_ms: Mapping[str, float]  # time of each module, without the modules that it imports
    cpu_ms: float  # of the whole command

    def heaviest(self) -> list[tuple[str, float]]:
        return sorted(self.own_ms.items(), key=lambda item: -item[1])[:HEAVIEST]


def measure_imports(words: Sequence[str], home: Path) -> Imports:
    """Run a command in a home directory and return its imports.

    Raises:
        subprocess.CalledProcessError: the command fails.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "searchapp", *words],
        cwd=home,
        env={**variables, "SEARCHAPP_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_ms = {name: int(own) / 1000 for own, name in _LINE.findall(result.stderr)}
    return Imports(own_ms, 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))


def main() -> None:
    """Print the report."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        measure_imports(("index", TASK), home)
        for command, words in COMMANDS.items():
            imports = measure_imports(words, home)
            heaviest = ", ".join(f"{module} {own:.1f}" for module, own in imports.heaviest())
            print(f"{command}: {len(imports.own_ms)} modules, {imports.cpu_ms:.0f} ms of CPU time")
            print(f"    longest, in ms: {heaviest}")


if __name__ == "__main__":
    main()
