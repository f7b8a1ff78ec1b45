"""Measure the official scorers on generated rankings of all facts for all questions in memory.

    python benchmarks/scorers.py [--questions 2206] [--facts 9720] [--repeat 3]

The rankings are seeded shuffles of all facts; each question has 1 to 16 gold facts. WorldTree has 2,206 questions, and
its second version 9,720 facts. The aim: under 5 s for each task.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

from searchapp.model import Hits, Ranking, Run
from searchapp.tasks.explanation import scorer_2019, scorer_2021
from searchapp.tasks.explanation.task import TASK_2019

ROLES = ("CENTRAL", "GROUNDING", "LEXGLUE")
RATINGS = (6, 4, 2)


def main() -> None:
    """Generate, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_206)
    parser.add_argument("--facts", type=int, default=9_720)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    draw = random.Random(2019)
    facts = [f"{draw.getrandbits(64):016x}" for _ in range(options.facts)]
    rankings = {}
    explained = {}
    for number in range(options.questions):
        rankings[f"q{number}"] = draw.sample(facts, len(facts))
        explained[f"q{number}"] = draw.sample(facts, draw.randint(1, 16))
    roles = {q: {fact: (draw.choice(ROLES),) for fact in gold} for q, gold in explained.items()}
    ratings = {q: {fact: draw.choice(RATINGS) for fact in gold} for q, gold in explained.items()}
    run = Run("x", tuple(Ranking(q, Hits(ranked, [0.0] * len(ranked))) for q, ranked in rankings.items()))

    def measure(function: Callable[[], object]) -> float:
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin

    rows: dict[str, Callable[[], object]] = {
        "explanation-2019: score": lambda: scorer_2019.score(rankings, roles),
        "explanation-2021: score": lambda: scorer_2021.score(rankings, ratings),
        "both: predictions of a run": lambda: TASK_2019.official.scorer.predictions(run),
    }
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(options.repeat):
        for name, function in rows.items():
            seconds[name].append(measure(function))
    print(f"{options.questions:,} questions x {options.facts:,} facts, median of {options.repeat}")
    for name, values in seconds.items():
        print(f"| {name} | {statistics.median(values):.2f} s |")


if __name__ == "__main__":
    main()
