"""Measure the coverage of the intervals of `judgments trust`.

python benchmarks/agreement_intervals.py [kappa] [...] [--samples 1000] [--topics 5 10 20 50] [--systems 10]
    [--resamples 1000]

Draws samples of topics from simulated populations with known coefficients, and prints for each coefficient and number
of topics: the value of the population, the mean of the samples minus this value, and the share of the 95 % intervals
that contain the value. The correlations of systems are means over 20 populations with other systems each.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from searchapp.app.trust import correlation_of_systems
from searchapp.evaluation.rank_correlation import kendall_tau_b, tau_ap
from searchapp.evaluation.significance import Values
from searchapp.judging.agreement import GradeTable, Weights, cohen_kappa, krippendorff_alpha
from searchapp.judging.trust import Coefficient, Resampling

POPULATION, DOCUMENTS, GRADES = 5_000, 20, 3
SYSTEM_POPULATIONS = 20

AGREEMENTS: dict[str, Callable[[GradeTable], float]] = {
    "kappa": cohen_kappa,
    "quadratic-kappa": lambda table: cohen_kappa(table, Weights.quadratic),
    "alpha": krippendorff_alpha,
}
CORRELATIONS: dict[str, Callable[[Values, Values], float]] = {"tau-b": kendall_tau_b, "tau-AP": tau_ap}


def simulated_tables(seed: int = 1) -> list[GradeTable]:
    """Return the grades 0 to 2 of people and of a lenient model, for some 20 documents of each topic.

    Topics differ in the share of relevant documents (beta(1.2, 3)), in the share of documents that the model grades as
    people do (beta(6, 2)), and in how often its other grades are one too high (beta(2, 4)) instead of random.
    """
    random = np.random.default_rng(seed)
    tables: list[GradeTable] = []
    for _ in range(POPULATION):
        size = int(random.integers(DOCUMENTS // 2, 3 * DOCUMENTS // 2 + 1))
        relevant, equal, lenient = random.beta(1.2, 3), random.beta(6, 2), random.beta(2, 4)
        people = random.choice(GRADES, size, p=[1 - relevant, 0.6 * relevant, 0.4 * relevant])
        other = np.where(
            random.random(size) < lenient,
            np.minimum(people + 1, GRADES - 1),
            random.integers(GRADES, size=size),
        )
        model = np.where(random.random(size) < equal, people, other)
        tables.append(Counter(zip(people.tolist(), model.tolist(), strict=True)))
    return tables


def simulated_values(systems: int, seed: int = 1) -> Values:
    """Return the values of systems by topic, first under people's and then under a model's judgments.

    The standard deviation of the means of systems is .08 and that of a system's values around topic and system .12.
    The model shifts each system (.02) and each value (.1).
    """
    random = np.random.default_rng(seed)
    difficulty = random.beta(1.5, 2, (POPULATION, 1))
    people = difficulty + random.normal(0, 0.08, systems) + random.normal(0, 0.12, (POPULATION, systems))
    model = people + random.normal(0, 0.02, systems) + random.normal(0, 0.1, (POPULATION, systems))
    values: Values = np.clip(np.concatenate([people, model], axis=1), 0, 1)
    return values


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the intervals of a coefficient contain the value of the population."""

    # The mean over populations.
    population: float
    bias: float
    coverage: float


def coverage_of(name: str, samples: int, topics: int, resamples: int, systems: int = 10) -> Coverage:
    """Return the coverage of a coefficient for samples of a number of topics."""
    draws = (np.random.default_rng(seed).integers(POPULATION, size=topics) for seed in range(samples))
    options = [Resampling(resamples, seed) for seed in range(samples)]
    if name in AGREEMENTS:
        formula, tables = AGREEMENTS[name], simulated_tables()
        of_all = [formula(sum(map(Counter, tables), Counter[tuple[int, int]]()))] * samples
        drawn = [
            Coefficient.of([tables[place] for place in draw], formula, each)
            for draw, each in zip(draws, options, strict=True)
        ]
    else:
        correlation = CORRELATIONS[name]
        values = [simulated_values(systems, seed) for seed in range(min(SYSTEM_POPULATIONS, samples))]
        means = [of.mean(axis=0) for of in values]
        known = [correlation(of[:systems], of[systems:]) for of in means]
        of_all = [known[number % len(values)] for number in range(samples)]
        drawn = [
            correlation_of_systems(values[number % len(values)][draw], correlation, each)
            for number, (draw, each) in enumerate(zip(draws, options, strict=True))
        ]
    # Values of tau that differ by rounding alone are equal.
    pairs = list(zip(drawn, of_all, strict=True))
    covered = [of.low - 1e-9 <= population <= of.high + 1e-9 for of, population in pairs]
    bias = np.mean([of.value - population for of, population in pairs])
    return Coverage(float(np.mean(of_all)), float(bias), float(np.mean(covered)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*AGREEMENTS, *CORRELATIONS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--topics", type=int, nargs="+", default=[5, 10, 20, 50])
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    if unknown := set(given.names) - {*names}:
        parser.error(f"unknown coefficient {min(unknown)}: name {', '.join(names)}")
    print(f"{'coefficient':<16} {'topics':>6} {'population':>10} {'bias':>7} {'coverage':>9}")
    for name in given.names or names:
        for topics in given.topics:
            of = coverage_of(name, given.samples, topics, given.resamples, given.systems)
            print(
                f"{name:<16} {topics:>6} {of.population:>10.3f} {of.bias:>+7.3f} {of.coverage:>9.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
