"""Compare two recordings of `scripts.oracle.record`: the machine layer must be identical, the human layer approved.

    python -m scripts.oracle.compare BEFORE AFTER [--update]

Each changed line of the human layer must be in `approved.txt`, which people review: lines `- old` and `+ new` below
the name of the recorded file. `--update` adds missing lines. Other differences give exit code 1.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

APPROVED = Path(__file__).parent / "approved.txt"


def read_recording(folder: Path) -> dict[str, str]:
    """Return the text of each recorded file by its name, such as `machine/nlps/search.out`."""
    files = (file for layer in ("machine", "human") for file in sorted((folder / layer).rglob("*")))
    return {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in files if file.is_file()
    }


def changed_lines(before: str | None, after: str | None) -> list[str]:
    """Return removed and added lines, marked `- ` and `+ `; a new or missing file is one line."""
    if before is None or after is None:
        return ["- the file" if after is None else "+ the file"]
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [f"{line[0]} {line[1:]}" for line in lines if line[0] in "+-" and line[:3] not in ("---", "+++")]


def read_approved(path: Path) -> dict[str, set[str]]:
    """Return the approved lines of each recorded file. Lines that begin with `#` give the reason."""
    approved: dict[str, set[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith(("- ", "+ ")):
            approved.setdefault(name, set()).add(line)
        elif line and not line.startswith("#"):
            name = line
    return approved


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument(
        "--update", action="store_true", help="add unapproved lines of the human layer to approved.txt"
    )
    options = parser.parse_args()
    before, after = read_recording(options.before), read_recording(options.after)
    approved = read_approved(APPROVED)
    failures: dict[str, list[str]] = {}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            lines = changed_lines(before.get(name), after.get(name))
            if name.startswith("human/"):
                lines = [line for line in lines if line not in approved.get(name, ())]
            if lines:
                failures[name] = lines
    for name, lines in failures.items():
        print(name, *lines, sep="\n", end="\n\n")
    if options.update:
        human = {name: lines for name, lines in failures.items() if name.startswith("human/")}
        with APPROVED.open("a", encoding="utf-8") as file:
            file.writelines("\n".join([name, *lines]) + "\n\n" for name, lines in human.items())
    machine = sum(name.startswith("machine/") for name in failures)
    print(f"{len(before):,} files: {machine:,} of the machine layer differ, {len(failures) - machine:,} of the human "
          "layer differ without approval", file=sys.stderr)  # fmt: skip
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
