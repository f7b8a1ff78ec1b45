"""Which documents of several runs to judge, and in which order.

Every design begins with the first `depth` documents of each run (K. Sparck Jones and C. J. van Rijsbergen, Report on
the need for and provision of an "ideal" information retrieval test collection, 1975) and orders or samples them.

    G. V. Cormack, C. R. Palmer, C. L. A. Clarke, Efficient Construction of Large Test Collections, SIGIR 1998
        (move-to-front pooling, for each topic)
    B. Carterette, J. Allan, R. Sitaraman, Minimal Test Collections for Retrieval Evaluation, SIGIR 2006 (first the
        documents that decide the difference of two runs; here of their DCG)
    E. Yilmaz, E. Kanoulas, J. A. Aslam, A Simple and Efficient Sampling Method for Estimating AP and NDCG, SIGIR 2008
        (strata by rank)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, Any

from searchapp.errors import DataError, UsageError
from searchapp.judging.assignment import shuffled
from searchapp.lucene.dataclass import dataclass

if TYPE_CHECKING:
    from searchapp.evaluation.sampling import SampledEstimate, SampledTopic
    from searchapp.model import Ranking, Run
    from searchapp.tasks.base import Grades

DEPTH = 10  # documents of each run in a pool


class PoolOrder(StrEnum):
    """How a pool's documents are selected and ordered."""

    # By the best rank in any run.
    depth = "depth"
    # By reciprocal rank fusion of the runs.
    rrf = "rrf"
    # Move-to-front: by the priority of the runs, given the judgments so far.
    mtf = "mtf"
    # By the difference of the document's discount between the runs.
    disagreement = "disagreement"
    # A stratified random sample, in random order.
    sample = "sample"


@dataclass(frozen=True, slots=True)
class StratumDesign:
    """The documents whose best rank is above that of the stratum before and at most `to`, and the sampled share."""

    to: int
    share: float


STRATA = (StratumDesign(10, 1.0), StratumDesign(100, 0.2))


def parse_strata(text: str) -> tuple[StratumDesign, ...]:
    """Read strata such as 10=1,100=0.2.

    Raises:
        UsageError: the text has another form, ranks do not increase, or a share is not above 0 and at most 1.
    """
    strata: list[StratumDesign] = []
    for part in text.split(","):
        rank, _, share = part.strip().partition("=")
        try:
            stratum = StratumDesign(int(rank), float(share))
        except ValueError:
            raise UsageError(
                f"--strata {text}: use the form RANK=SHARE,RANK=SHARE, such as 10=1,100=0.2"
            ) from None
        if stratum.to <= (strata[-1].to if strata else 0):
            raise UsageError(f"--strata {text}: ranks must be at least 1 and increase, unlike {part.strip()}")
        if not 0 < stratum.share <= 1:
            raise UsageError(f"--strata {text}: the share of {part.strip()} must be above 0 and at most 1")
        strata.append(stratum)
    return tuple(strata)


@dataclass(frozen=True, slots=True)
class PoolDesign:
    """How a pool is made of runs."""

    by: PoolOrder = PoolOrder.depth
    # Documents per topic from each run; a sample has the last rank of its strata instead.
    depth: int = DEPTH
    # Documents per topic of the pool; None means all.
    size: int | None = None
    strata: tuple[StratumDesign, ...] = STRATA
    seed: int = 0
    # Leave out documents that have a grade; move-to-front always does.
    unjudged: bool = False

    def described(self) -> dict[str, Any]:
        """Return the entry of a manifest's recipe."""
        if self.by is PoolOrder.sample:
            strata = [{"to": stratum.to, "share": stratum.share} for stratum in self.strata]
            return {"by": self.by.value, "depth": self.strata[-1].to, "strata": strata, "seed": self.seed}
        return {
            "by": self.by.value,
            "depth": self.depth,
            "size": self.size,
            "unjudged": self.leaves_out_judged,
        }

    @property
    def leaves_out_judged(self) -> bool:
        return self.unjudged or self.by is PoolOrder.mtf


def pool(runs: Iterable[Run], design: PoolDesign, grades: Grades | None = None) -> dict[str, list[str]]:
    """Return the documents to judge for each topic, in the order of judging, given the grades so far.

    Samples are drawn by `draw_sample`.
    """
    documents = {}
    for topic, rankings in _rankings_by_topic(runs).items():
        judged = (grades or {}).get(topic, {})
        ordered = _ordered(rankings, design, judged)
        if design.leaves_out_judged:
            ordered = [document for document in ordered if document not in judged]
        documents[topic] = ordered[: design.size]
    return documents


def _rankings_by_topic(runs: Iterable[Run]) -> dict[str, list[Ranking]]:
    rankings: dict[str, list[Ranking]] = {}
    for run in runs:
        for ranking in run:
            rankings.setdefault(ranking.topic_id, []).append(ranking)
    return rankings


def _ordered(rankings: Sequence[Ranking], design: PoolDesign, judged: Mapping[str, int]) -> list[str]:
    from searchapp.ranking.fusion import ReciprocalRankFusion  # imports NumPy

    best = _best_ranks(rankings, design.depth)
    match design.by:
        case PoolOrder.rrf:
            scores = ReciprocalRankFusion().fused([(1.0, ranking.hits) for ranking in rankings])
        case PoolOrder.disagreement:
            scores = _disagreement(rankings, best)
        case PoolOrder.mtf:
            return _moved_to_front(rankings, design.depth, judged)
        case _:
            return sorted(best, key=best.__getitem__)
    return sorted(best, key=lambda document: (-scores[document], document))


def _best_ranks(rankings: Iterable[Ranking], depth: int) -> dict[str, int]:
    """Return the best rank of each of the first `depth` documents, in the order of the runs."""
    best: dict[str, int] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking.document_ids()[:depth], 1):
            best[document] = min(rank, best.get(document, rank))
    return best


def _disagreement(rankings: Sequence[Ranking], documents: Iterable[str]) -> dict[str, float]:
    """Return the sum over pairs of runs of the difference of a document's discount, 1 / log2(rank + 1).

    That is how much the grade of the document changes the differences of the runs' DCG.
    """
    discounts = [
        {
            document: 1 / math.log2(rank + 1)
            for rank, document in reversed(list(enumerate(ranking.document_ids(), 1)))
        }
        for ranking in rankings
    ]
    return {
        document: math.fsum(
            abs(first.get(document, 0.0) - second.get(document, 0.0))
            for first, second in combinations(discounts, 2)
        )
        for document in documents
    }


def _moved_to_front(rankings: Sequence[Ranking], depth: int, judged: Mapping[str, int]) -> list[str]:
    """Return the documents in the order of move-to-front pooling.

    The run with the highest priority gives its next document. A document that is not relevant or not judged yet lowers
    the priority of its run. Of equal runs one goes on that found a relevant document, or else the one with most
    documents left.
    """
    waiting = [list(reversed(ranking.document_ids()[:depth])) for ranking in rankings]
    priorities = [0] * len(waiting)
    order: dict[str, None] = {}
    successful: int | None = None

    def precedence(number: int) -> tuple[int, bool, int, int]:
        return priorities[number], number == successful, len(waiting[number]), -number

    while any(waiting):
        current = max((number for number, documents in enumerate(waiting) if documents), key=precedence)
        document = waiting[current].pop()
        if document in order:
            continue
        order[document] = None
        if judged.get(document, 0) > 0:
            successful = current
        else:
            successful = None
            priorities[current] -= 1
    return list(order)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Documents of a topic, of which a simple random sample is judged."""

    sampled: tuple[str, ...]
    unsampled: tuple[str, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        return self.sampled + self.unsampled

    @property
    def probability(self) -> float:
        """The inclusion probability of each document."""
        return len(self.sampled) / len(self.documents) if self.sampled else 0.0


# The strata of each topic.
Sample = Mapping[str, Sequence[Stratum]]


def draw_sample(runs: Iterable[Run], strata: Sequence[StratumDesign], seed: int) -> dict[str, list[Stratum]]:
    """Draw a share of each stratum, rounded up, but at least two documents, which estimates of variances need."""
    sample: dict[str, list[Stratum]] = {}
    for topic, rankings in _rankings_by_topic(runs).items():
        best = _best_ranks(rankings, strata[-1].to)
        above = 0
        for stratum in strata:
            documents = sorted(document for document, rank in best.items() if above < rank <= stratum.to)
            # Rounded first, because 0.1 × 30 is more than 3 in floating point.
            number = max(math.ceil(round(stratum.share * len(documents), 9)), min(2, len(documents)))
            order = shuffled(documents, seed, f"stratum to {stratum.to} of {topic}")
            drawn = Stratum(tuple(sorted(order[:number])), tuple(sorted(order[number:])))
            sample.setdefault(topic, []).append(drawn)
            above = stratum.to
    return sample


def sampled_documents(sample: Sample, seed: int) -> dict[str, list[str]]:
    """Return the documents to judge for each topic in random order, so that the first ones are a sample too."""
    return {
        topic: shuffled(
            [document for stratum in strata for document in stratum.sampled], seed, f"order of {topic}"
        )
        for topic, strata in sample.items()
    }


def sample_record(sample: Sample) -> dict[str, Any]:
    """Return the JSON of a sample for `read_sample`."""
    return {
        topic: [
            {
                "probability": stratum.probability,
                "sampled": list(stratum.sampled),
                "unsampled": list(stratum.unsampled),
            }
            for stratum in strata
        ]
        for topic, strata in sample.items()
    }


def sampled_topics(sample: Sample, grades: Grades) -> dict[str, SampledTopic]:
    """Return the topics with a judged document in each stratum; grades of other documents do not count."""
    from searchapp.evaluation.sampling import SampledTopic  # imports NumPy

    topics = {}
    for topic_id, strata in sample.items():
        known = grades.get(topic_id, {})
        drawn = (document for stratum in strata for document in stratum.sampled)
        topic = SampledTopic(
            [stratum.documents for stratum in strata],
            {document: known[document] for document in drawn if document in known},
        )
        if known and ((topic.judged > 0) | (topic.sizes == 0)).all():
            topics[topic_id] = topic
    return topics


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """How many relevant documents of a sampled pool are found, and an estimate of those that are not."""

    # Topics with an estimate, of the topics of the sample.
    topics: int
    of_topics: int
    # Relevant documents of these topics with a grade, sampled or not.
    found: int
    # Documents of these topics without a grade.
    unjudged: int
    # Relevant documents without a grade.
    missing: SampledEstimate

    def recall(self, missing: float) -> float:
        """Return the found share of the relevant documents; 1 if there are none."""
        return self.found / (self.found + missing) if self.found + missing else 1.0


def judging_progress(sample: Sample, grades: Grades) -> JudgingProgress:
    """Estimate how many relevant documents of a sampled pool are not found yet.

    Raises:
        DataError: no topic has a judged document in each stratum.
    """
    topics = sampled_topics(sample, grades)
    if not topics:
        raise DataError(
            "no topic of the sample has a judged document in each stratum: judge the pool with `searchapp judge --run`"
        )
    from searchapp.evaluation.sampling import SampledEstimate, relevant_documents

    found = unjudged = 0
    for topic_id in topics:
        known = grades[topic_id]
        of_topic = [known.get(document) for stratum in sample[topic_id] for document in stratum.documents]
        found += sum(grade is not None and grade > 0 for grade in of_topic)
        unjudged += sum(grade is None for grade in of_topic)
    relevant = relevant_documents(list(topics.values()))
    # Grades of documents outside the sample can exceed or exhaust the estimate.
    missing = [
        min(max(number - found, 0.0), float(unjudged))
        for number in (relevant.value, relevant.low, relevant.high)
    ]
    return JudgingProgress(len(topics), len(sample), found, unjudged, SampledEstimate(*missing))
