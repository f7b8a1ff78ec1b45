"""Measure bias and coverage of the estimates of `evaluate --sample` and `judgments progress`.

python benchmarks/sampling.py [--samples 1000] [--topics 30] [--share 0.2] [--relevant 80]

Draws samples from simulated topics whose judgments are complete, and prints for xinfAP, infNDCG and the number of
relevant documents: the value with all judgments, the mean of the estimates minus this value, two standard errors of
the mean, and the share of the 95 % intervals that contain the value.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchapp.app.pooling import StratumDesign, draw_sample, sampled_topics
from searchapp.evaluation.sampling import (
    SampledEstimate,
    SampledTopic,
    mean_estimate,
    relevant_documents,
)
from searchapp.model import Hits, Ranking, Run

RUNS, DOCUMENTS, RETRIEVED = 8, 4_000, 300
MEASURES = {"xinfAP": SampledTopic.xinfap, "infNDCG": SampledTopic.infndcg}


def simulated_runs(topics: int, relevant: int, seed: int = 1) -> tuple[list[Run], dict[str, dict[str, int]]]:
    """Return runs and complete grades; topics have from 5 to 2 × `relevant` relevant documents with grades 1 to 3.

    Each run scores a document by its relevance, a difficulty of the document that all runs share, and noise.
    """
    random = np.random.default_rng(seed)
    rankings: list[list[Ranking]] = [[] for _ in range(RUNS)]
    grades = {}
    for topic in map(str, range(topics)):
        of_topic = np.zeros(DOCUMENTS, dtype=int)
        number = int(random.integers(5, 2 * relevant))
        of_topic[random.choice(DOCUMENTS, number, replace=False)] = random.integers(1, 4, number)
        difficulty = random.normal(0, 1, DOCUMENTS)
        for of_run in rankings:
            quality = random.uniform(0.6, 1.6)
            scores = quality * (1.2 * (of_topic > 0) + 0.3 * of_topic)
            scores += 0.6 * difficulty + random.normal(0, 1, DOCUMENTS)
            documents = [str(document) for document in np.argsort(-scores)[:RETRIEVED]]
            of_run.append(Ranking(topic, Hits(documents, [-float(rank) for rank in range(RETRIEVED)])))
        grades[topic] = {str(document): int(grade) for document, grade in enumerate(of_topic)}
    return [Run(str(number), tuple(of_run)) for number, of_run in enumerate(rankings)], grades


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of an estimate over many samples."""

    full: float
    bias: float
    # The standard error of the bias.
    error: float
    coverage: float


def accuracies(
    samples: int, topics: int, share: float, relevant: int, to: int = 100
) -> Mapping[str, Accuracy]:
    """Return the accuracy of each estimate for the first run; the share is of documents from rank 11 to `to`."""
    runs, grades = simulated_runs(topics, relevant)
    estimates: dict[str, list[SampledEstimate]] = {}
    full: dict[str, float] = {}

    def estimate(of_topics: Mapping[str, SampledTopic]) -> dict[str, SampledEstimate]:
        means = {
            name: mean_estimate(
                [method(of_topics[ranking.topic_id], ranking.document_ids()) for ranking in runs[0]]
            )
            for name, method in MEASURES.items()
        }
        return means | {"relevant documents": relevant_documents(list(of_topics.values()))}

    everything = draw_sample(runs, [StratumDesign(10, 1.0), StratumDesign(to, 1.0)], 0)
    full = {name: of.value for name, of in estimate(sampled_topics(everything, grades)).items()}
    for seed in range(samples):
        drawn = draw_sample(runs, [StratumDesign(10, 1.0), StratumDesign(to, share)], seed)
        for name, of in estimate(sampled_topics(drawn, grades)).items():
            estimates.setdefault(name, []).append(of)
    return {name: _accuracy(full[name], of) for name, of in estimates.items()}


def _accuracy(full: float, estimates: Sequence[SampledEstimate]) -> Accuracy:
    values = np.array([estimate.value for estimate in estimates])
    covered = [estimate.low <= full <= estimate.high for estimate in estimates]
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Accuracy(full, float(values.mean()) - full, error, float(np.mean(covered)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument(
        "--relevant", type=int, default=80, help="mean number of relevant documents per topic"
    )
    given = parser.parse_args()
    print(f"{'estimate':<20} {'full':>10} {'bias':>9} {'2 errors':>9} {'coverage':>9}")
    for name, of in accuracies(given.samples, given.topics, given.share, given.relevant).items():
        print(f"{name:<20} {of.full:>10.4f} {of.bias:>+9.4f} {2 * of.error:>9.4f} {of.coverage:>9.1%}")


if __name__ == "__main__":
    main()
