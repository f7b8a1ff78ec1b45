"""Measure how recipes rank debates of an event, kind or year that their training debates lack.

python benchmarks/unlike_debates.py --data DIR [--by event kind year] [--recipe neighbours best] [--home DIR]

Each group of training debates in turn is copied into the folder `test_annotated`, and the others into `training`. Then
commands of searchapp index, rank and evaluate them. An event has one voice or several, as in `evaluate --by event`;
kinds are speeches, press conferences and debates; the year is the first four characters of a debate's name.

Each line of output has MAP over all debates; the MAP of each kind, and their mean, in which few debates of a kind weigh
as much as many of another; and the minimum, quartiles and maximum of AP.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

PRESS = {"20170216_trump_press", "20180926_un_press"}


def run(home: Path, *arguments: object) -> str:
    """Run a command of searchapp; return its output."""
    command = [sys.executable, "-m", "searchapp", *map(str, arguments)]
    environ = {**os.environ, "SEARCHAPP_HOME": str(home)}
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def groups(data: Path, by: str) -> dict[str, list[str]]:
    """Return the names of the debates of each group."""
    names = [path.stem for path in sorted((data / "training").glob("*.tsv"))]
    if by == "year":
        group = {name: name[:4] for name in names}
    else:
        group = {name: voices(data / "training" / f"{name}.tsv") for name in names}
        if by == "kind":
            kinds = {"one": "speeches", "several": "debates"}
            group = {
                name: "press conferences" if name in PRESS else kinds[voice] for name, voice in group.items()
            }
    result: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        result[group[name]].append(name)
    return dict(result)


def voices(debate: Path) -> str:
    """Return "one" if a speaker has the share of a main speaker in the official breakdown, else "several"."""
    from searchapp.tasks.checkthat.scorer import MIN_MAIN_SPEAKER_SHARE, REACTIONS

    lines: defaultdict[str, int] = defaultdict(int)
    for line in debate.read_text(encoding="utf-8").splitlines():
        speaker = line.split("\t")[1]
        if speaker not in REACTIONS:
            lines[speaker] += 1
    return "one" if max(lines.values()) >= MIN_MAIN_SPEAKER_SHARE * sum(lines.values()) else "several"


def main() -> None:
    """Print mean and spread of the AP of debates, for each kind of group and each recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--by", nargs="+", choices=("event", "kind", "year"), default=("event", "kind", "year")
    )
    parser.add_argument("--recipe", nargs="+", default=("neighbours", "best"))
    parser.add_argument(
        "--home", type=Path, help="home directory of searchapp; a temporary folder by default"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        home = arguments.home or work / "home"
        kinds = groups(arguments.data, "kind")
        for by in arguments.by:
            figures: dict[str, dict[str, float]] = {recipe: {} for recipe in arguments.recipe}
            for group, held_out in groups(arguments.data, by).items():
                folder = work / f"{by}-{group.replace(' ', '-')}"
                for path in (arguments.data / "training").glob("*.tsv"):
                    part = folder / ("test_annotated" if path.stem in held_out else "training")
                    part.mkdir(parents=True, exist_ok=True)
                    (part / path.name).write_bytes(path.read_bytes())
                run(home, "index", "checkthat", "--data", folder, "--replace", "--quiet")
                for recipe, values in figures.items():
                    values |= rank(home, folder, recipe)
            for recipe, values in figures.items():
                print(f"without the {by}, {recipe}: {summary(values, kinds)}", flush=True)


def rank(home: Path, folder: Path, recipe: str) -> dict[str, float]:
    """Rank the debates in `test_annotated`; return the AP of each."""
    out = folder / recipe
    options = ["--data", folder, "--split", "test_annotated", "--recipe", recipe, "--out", out]
    run(home, "rank", "checkthat", *options, "--quiet")
    official = json.loads(run(home, "evaluate", out, "--lenient", "--json", "--per-topic"))["official"]
    return {Path(name).stem: figures["AP"] for name, figures in official["per_topic"].items()}


def summary(ap: Mapping[str, float], kinds: Mapping[str, Sequence[str]]) -> str:
    """Format the means of AP over all debates and each kind, and the minimum, quartiles and maximum."""
    values = list(ap.values())
    of_kinds = {kind: statistics.fmean(ap[name] for name in names) for kind, names in kinds.items()}
    shown = [min(values), *statistics.quantiles(values, n=4, method="inclusive"), max(values)]
    return (
        f"MAP {statistics.fmean(values):.4f}; mean of kinds {statistics.fmean(of_kinds.values()):.4f} "
        f"({', '.join(f'{kind} {value:.4f}' for kind, value in of_kinds.items())}); "
        f"AP {', '.join(f'{value:.3f}' for value in shown)}"
    )


if __name__ == "__main__":
    main()
