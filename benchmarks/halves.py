"""Measure how judgments of half of a split's topics improve the rankings of the other half.

    python benchmarks/halves.py --data DIR [--task TASK ...] [--divisions 1] [--seed 1]

DIR contains the folders nlps, worldtree2019, worldtree2021 and smart. `searchapp judgments import` imports the gold of
a random half of the topics as judgments. The split is ranked by `bm25`, by `neighbours` with the training data only,
and by `neighbours` with the judgments; the official figure of the unjudged half is printed. Then the halves change
roles. Figures are means over all halves, with the minimum and maximum gain of judging, and how often there was a gain.
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

from usage import make_parser

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
"""The folder and split of each task; checkthat is missing because all its topics are training topics."""

DEPTHS = {"explanation-2021": 1_000}
"""Full depth takes minutes, and changes the figure in the fourth decimal place."""

LENIENT = {"smart-types-wikidata": ["--lenient"]}
"""Options of `evaluate`, for tasks whose official script stops at some labels."""


@dataclass(frozen=True)
class Experiment:
    """A task, its data and the folder for results."""

    task: Task
    data: Path
    split: str
    folder: Path

    def run(self, *arguments: str) -> str:
        """Run a command; return its output."""
        environment = {**os.environ, "SEARCHAPP_HOME": str(self.folder / "home")}
        command = [SEARCHAPP, *arguments]
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

    def rank(self, name: str, recipe: str, *more: str) -> dict[str, float]:
        """Rank by a recipe; return the official figures of topics."""
        out = str(self.folder / name)
        options = ["--data", str(self.data), "--split", self.split, "--recipe", recipe, "--out", out]
        if self.task.name in DEPTHS:
            options += ["--depth", str(DEPTHS[self.task.name])]
        self.run("--quiet", "rank", self.task.name, *options, *more)
        flags = LENIENT.get(self.task.name, [])
        official = json.loads(self.run("evaluate", out, "--json", "--per-topic", *flags))["official"]
        figures = {
            topic: _figure(value, official["measure"]) for topic, value in official["per_topic"].items()
        }
        return {topic: figure for topic, figure in figures.items() if not math.isnan(figure)}

    def rank_judged(self, name: str, grades: Grades) -> dict[str, float]:
        """Import grades as judgments, and rank by the recipe that learns from them."""
        qrels, log = self.folder / f"judged-{name}.qrels", str(self.folder / f"log-{name}.sqlite")
        with qrels.open("wb") as file:
            trec.write_qrels(file, grades)
        source = ["--format", "qrels", "--annotator", "gold", "--log", log]
        self.run("--quiet", "judgments", "import", self.task.name, str(qrels), *source)
        return self.rank(f"judged-{name}", "neighbours", "--with-judgments", "--log", log)


def _figure(value: Any, measure: str) -> float:
    """Return the official figure of a topic, which may have several, or else its reciprocal rank."""
    if isinstance(value, dict):
        value = value.get(measure, value.get("rr"))
    return math.nan if value is None else float(value)


@dataclass(frozen=True)
class Half:
    """Mean figures of the unjudged topics, with the size of the judged half."""

    judged: int
    judgments: int
    bm25: float
    neighbours: float
    with_judgments: float

    @property
    def gain(self) -> float:
        return self.with_judgments - self.neighbours


def measure(experiment: Experiment, seeds: range) -> list[Half]:
    """Measure both halves of several random divisions."""
    name = experiment.task.name
    collection = experiment.task.collection(experiment.data)
    split = DataSplit(collection, experiment.split)
    gold = experiment.task.official.grades(collection.gold_files(experiment.split), split)
    experiment.run("--quiet", "index", name, "--data", str(experiment.data))
    bm25, neighbours = (experiment.rank(recipe, recipe) for recipe in ("bm25", "neighbours"))
    topics = sorted(topic for topic, grades in gold.items() if any(grades.values()))
    result = []
    for seed in seeds:
        shuffled = random.Random(seed).sample(topics, len(topics))
        halves = (shuffled[: len(topics) // 2], shuffled[len(topics) // 2 :])
        for side, (judged, others) in enumerate((halves, halves[::-1])):
            grades = {topic: gold[topic] for topic in judged}
            after = experiment.rank_judged(f"{seed}-{side}", grades)
            scored = [key for topic in others if (key := _scored_as(topic, after)) is not None]
            figures = (fmean(run[topic] for topic in scored) for run in (bm25, neighbours, after))
            result.append(Half(len(judged), sum(map(len, grades.values())), *figures))
    return result


def row(task: str, halves: Sequence[Half]) -> str:
    """Return a row of the table."""
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
    """Return the name of a topic in the figures; the scorer of explanation-2019 folds the letter case."""
    return next((name for name in (topic, topic.lower()) if name in figures), None)


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the folders of the tasks")
    parser.add_argument("--task", nargs="+", choices=FOLDERS, default=list(FOLDERS), help="only these tasks")
    parser.add_argument("--divisions", type=int, default=1, help="random divisions in halves (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first division (default 1)")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.divisions)
    print("| task | judged | judgments | bm25 | neighbours | with judgments | gain | from, to | raised |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in options.task:
        folder, split = FOLDERS[name]
        with tempfile.TemporaryDirectory() as temporary:
            experiment = Experiment(tasks.load(name), options.data / folder, split, Path(temporary))
            print(row(name, measure(experiment, seeds)), flush=True)


if __name__ == "__main__":
    main()
