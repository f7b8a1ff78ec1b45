"""What judging half of a split's topics does for the other half.

    python benchmarks/halves.py --data DIR [--task TASK ...] [--divisions 1] [--seed 1]

DIR holds the folders nlps, worldtree2019, worldtree2021 and smart. A scripted person judges a random half of the topics
as the gold does: the gold's grades go into a judgment log by `searchapp judgments import`. The whole split is ranked by
`bm25`, by `neighbours` with the training data alone, and by `neighbours` with the judgments too; the official figure of
the half that nobody judged is printed. Then the halves change sides. Figures are means over all halves, with the least
and the greatest gain of judging, and how often there was one.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from usage import parser_of

from searchapp import tasks
from searchapp.formats import trec
from searchapp.tasks.base import DataSplit, Grades, Task

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))

FOLDERS = {
    "nlps": ("nlps", "dev"),
    "explanation-2019": ("worldtree2019", "dev"),
    "explanation-2021": ("worldtree2021", "dev"),
    "smart-types-dbpedia": ("smart", "fold0"),
    "smart-types-wikidata": ("smart", "fold0"),
    "smart-relations-dbpedia": ("smart", "fold0"),
}
"""The folder and split of each task; the others have no data here, or, checkthat, no topic that is not solved."""

DEPTHS = {"explanation-2021": 1_000}
"""Ranking every fact for every question takes minutes, and changes the figure in the fourth place."""

LENIENT = {"smart-types-wikidata": ["--lenient"]}
"""Options of `evaluate`: the official script stops on some labels."""


@dataclass(frozen=True)
class Bench:
    """A task, its data, and where everything is written."""

    task: Task
    data: Path
    split: str
    folder: Path

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        environment = {**os.environ, "SEARCHAPP_HOME": str(self.folder / "home")}
        command = [SEARCHAPP, *arguments]
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

    def rank(self, name: str, recipe: str, *more: str) -> dict[str, float]:
        """The official figure of each topic that has one."""
        out = str(self.folder / name)
        options = ["--data", str(self.data), "--split", self.split, "--recipe", recipe, "--out", out]
        if self.task.name in DEPTHS:
            options += ["--depth", str(DEPTHS[self.task.name])]
        self.run("--quiet", "rank", self.task.name, *options, *more)
        found = json.loads(
            self.run("evaluate", out, "--json", "--per-topic", *LENIENT.get(self.task.name, []))
        )
        per_topic = found["official"]["per_topic"]
        figures = {topic: _figure(value, found["official"]["measure"]) for topic, value in per_topic.items()}
        return {topic: figure for topic, figure in figures.items() if not math.isnan(figure)}

    def judged(self, name: str, grades: Grades) -> dict[str, float]:
        """The same once the grades have gone into a judgment log, for the recipe that learns from them."""
        qrels, log = self.folder / f"judged-{name}.qrels", str(self.folder / f"log-{name}.sqlite")
        with qrels.open("wb") as file:
            trec.write_qrels(file, grades)
        whose = ["--format", "qrels", "--annotator", "gold", "--log", log]
        self.run("--quiet", "judgments", "import", self.task.name, str(qrels), *whose)
        return self.rank(f"judged-{name}", "neighbours", "--with-judgments", "--log", log)


def _figure(value: Any, measure: str) -> float:
    """One figure of a topic, which may have several: the official one by its name, or the reciprocal rank."""
    if isinstance(value, dict):
        value = value.get(measure, value.get("rr"))
    return math.nan if value is None else float(value)


@dataclass(frozen=True)
class Half:
    """What the judgments of one half did for the other: mean figures of the topics that nobody judged."""

    judged: int
    judgments: int
    bm25: float
    neighbours: float
    with_judgments: float

    @property
    def gain(self) -> float:
        return self.with_judgments - self.neighbours


def measured(bench: Bench, seeds: range) -> list[Half]:
    """Both halves of each of several random divisions."""
    name = bench.task.name
    collection = bench.task.collection(bench.data)
    part = DataSplit(collection, bench.split)
    gold = bench.task.official.grades(collection.gold_files(bench.split), part)
    bench.run("--quiet", "index", name, "--data", str(bench.data))
    bm25, neighbours = (bench.rank(recipe, recipe) for recipe in ("bm25", "neighbours"))
    topics = sorted(topic for topic, grades in gold.items() if any(grades.values()))
    found = []
    for seed in seeds:
        shuffled = random.Random(seed).sample(topics, len(topics))
        halves = (shuffled[: len(topics) // 2], shuffled[len(topics) // 2 :])
        for side, (judged, others) in enumerate((halves, halves[::-1])):
            grades = {topic: gold[topic] for topic in judged}
            after = bench.judged(f"{seed}-{side}", grades)
            scored = [key for topic in others if (key := _scored_as(topic, after)) is not None]
            figures = (fmean(run[topic] for topic in scored) for run in (bm25, neighbours, after))
            found.append(Half(len(judged), sum(map(len, grades.values())), *figures))
    return found


def row(task: str, halves: Sequence[Half]) -> str:
    """A line of the table."""
    gains = [half.gain for half in halves]
    figures = [
        fmean(getattr(half, name) for half in halves) for name in ("bm25", "neighbours", "with_judgments")
    ]
    cells = [
        task,
        f"{fmean(half.judged for half in halves):,.0f}",
        f"{fmean(half.judgments for half in halves):,.0f}",
        *(f"{figure:.4f}" for figure in figures),
        f"{fmean(gains):+.4f}",
        f"{min(gains):+.4f} to {max(gains):+.4f}",
        f"{sum(gain > 0 for gain in gains)} of {len(gains)}",
    ]
    return f"| {' | '.join(cells)} |"


def _scored_as(topic: str, figures: dict[str, float]) -> str | None:
    """The name that the scorer has for a topic: that of explanation-2019 folds the letter case."""
    return next((name for name in (topic, topic.lower()) if name in figures), None)


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the folders of the tasks")
    parser.add_argument("--task", nargs="+", choices=FOLDERS, default=list(FOLDERS), help="only these tasks")
    parser.add_argument("--divisions", type=int, default=1, help="random divisions in halves (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="of the first division (default 1)")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.divisions)
    print("| task | judged | judgments | bm25 | neighbours | with judgments | gain | from, to | raised |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in given.task:
        folder, split = FOLDERS[name]
        with tempfile.TemporaryDirectory() as temporary:
            bench = Bench(tasks.load(name), given.data / folder, split, Path(temporary))
            print(row(name, measured(bench, seeds)), flush=True)


if __name__ == "__main__":
    main()
