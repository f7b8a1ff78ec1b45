"""Says which modules of searchapp are longer than they may be, and fails if any is: they do more than one thing.

python scripts/module_lengths.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 400
"""Lines of a module."""


def too_long(folder: Path) -> list[tuple[Path, int]]:
    """The modules below a folder that are too long, and how many lines each has."""
    lengths = ((file, len(file.read_text(encoding="utf-8").splitlines())) for file in folder.rglob("*.py"))
    return sorted((file, lines) for file, lines in lengths if lines > MOST)


def main() -> None:
    """Check the modules."""
    found = too_long(ROOT / "searchapp")
    for file, lines in found:
        print(
            f"{file.relative_to(ROOT)} has {lines} lines and may have {MOST}: split it by what it does",
            file=sys.stderr,
        )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
