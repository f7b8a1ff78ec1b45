"""How recipes rank debates unlike those that they learned from: all of one kind, or year, are left out at once.

python benchmarks/unlike_debates.py --data DIR [--by event kind year] [--recipe neighbours best] [--home DIR]

Each group of training debates in turn goes into the folder `test_annotated`, beside a `training` of the others; every
command is one that people type too. An event is one voice or several, as `evaluate --by event` tells them; kinds are
speeches, press conferences, and debates; a year is in the first four figures of a debate's name.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

PRESS = {"20170216_trump_press", "20180926_un_press"}


def run(home: Path, *arguments: object) -> str:
    """What a command of searchapp prints."""
    command = [sys.executable, "-m", "searchapp", *map(str, arguments)]
    environ = {**os.environ, "SEARCHAPP_HOME": str(home)}
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def groups(data: Path, by: str) -> dict[str, list[str]]:
    """The names of the debates of each group."""
    names = [path.stem for path in sorted((data / "training").glob("*.tsv"))]
    if by == "year":
        group = {name: name[:4] for name in names}
    else:
        group = {name: voices(data / "training" / f"{name}.tsv") for name in names}
        if by == "kind":
            group = {
                name: "press conferences"
                if name in PRESS
                else {"one": "speeches", "several": "debates"}[found]
                for name, found in group.items()
            }
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        found[group[name]].append(name)
    return dict(found)


def voices(debate: Path) -> str:
    """Whether one voice or several have three quarters of what is said, as the official breakdown tells."""
    from searchapp.tasks.checkthat.scorer import MIN_MAIN_SPEAKER_SHARE, REACTIONS

    spoken: defaultdict[str, int] = defaultdict(int)
    for line in debate.read_text(encoding="utf-8").splitlines():
        speaker = line.split("\t")[1]
        if speaker not in REACTIONS:
            spoken[speaker] += 1
    return "one" if max(spoken.values()) >= MIN_MAIN_SPEAKER_SHARE * sum(spoken.values()) else "several"


def main() -> None:
    """Print the AP of the debates of each group, and their spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--by", nargs="+", choices=("event", "kind", "year"), default=("event", "kind", "year")
    )
    parser.add_argument("--recipe", nargs="+", default=("neighbours", "best"))
    parser.add_argument("--home", type=Path, help="Where searchapp keeps its state; a new folder by default.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as new:
        work = Path(new)
        home = arguments.home or work / "home"
        for by in arguments.by:
            found: dict[str, dict[str, float]] = {recipe: {} for recipe in arguments.recipe}
            for group, left_out in groups(arguments.data, by).items():
                folder = work / f"{by}-{group.replace(' ', '-')}"
                for path in (arguments.data / "training").glob("*.tsv"):
                    part = folder / ("test_annotated" if path.stem in left_out else "training")
                    part.mkdir(parents=True, exist_ok=True)
                    (part / path.name).write_bytes(path.read_bytes())
                run(home, "index", "checkthat", "--data", folder, "--quiet")
                for recipe, values in found.items():
                    values |= ranked(home, folder, recipe)
            for recipe, values in found.items():
                print(f"without the {by}, {recipe}: {spread(list(values.values()))}", flush=True)


def ranked(home: Path, folder: Path, recipe: str) -> dict[str, float]:
    """The AP of each debate in `test_annotated`, ranked by the others."""
    out = folder / recipe
    options = ["--data", folder, "--split", "test_annotated", "--recipe", recipe, "--out", out]
    run(home, "rank", "checkthat", *options, "--quiet")
    official = json.loads(run(home, "evaluate", out, "--lenient", "--json", "--per-topic"))["official"]
    return {name: figures["AP"] for name, figures in official["per_topic"].items()}


def spread(values: list[float]) -> str:
    """Mean, least, quartiles and greatest of some values."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    shown = [min(values), *quartiles, max(values)]
    return f"MAP {statistics.fmean(values):.4f} ({', '.join(f'{value:.3f}' for value in shown)})"


if __name__ == "__main__":
    main()
