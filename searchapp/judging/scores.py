"""The scores of a ranking by the grades given so far, fast enough to follow every key that is pressed.

A topic's scores take time in proportion to its grades, not to its ranking. They are those of the measures AP, nDCG@10
and Judged@10 of ir-measures, which a test compares them with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

CUT_OFF = 10
"""The depth of nDCG and Judged."""


@dataclass(frozen=True, slots=True)
class TopicScores:
    """Average precision, normalised discounted cumulative gain, and the share of the first documents that is graded.

    All are fractions. A grade above 0 is relevant, and what has no grade is not, so the first two grow more reliable
    as the third one grows.
    """

    ap: float
    ndcg: float
    judged: float


def score(ranks: Mapping[str, int], grades: Mapping[str, int]) -> TopicScores:
    """The scores of one ranking; `ranks` counts from 1, `grades` may have documents that are not in the ranking.

    AP = 1/R sum over relevant documents found of (relevant ones up to its rank / its rank)
    nDCG@10 = sum of grade / log2(rank + 1) up to rank 10, over the same sum of the best order of all grades
    """
    found = sorted((ranks[document], grade) for document, grade in grades.items() if document in ranks)
    relevant = sum(grade > 0 for grade in grades.values())
    hits = [rank for rank, grade in found if grade > 0]
    precisions = math.fsum(count / rank for count, rank in enumerate(hits, 1))
    best = sorted(grades.values(), reverse=True)[:CUT_OFF]
    ideal = math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    gained = math.fsum(grade / math.log2(rank + 1) for rank, grade in found if rank <= CUT_OFF)
    first = min(CUT_OFF, len(ranks))
    return TopicScores(
        ap=precisions / relevant if relevant else 0.0,
        ndcg=gained / ideal if ideal else 0.0,
        judged=sum(rank <= CUT_OFF for rank, _grade in found) / first if first else 0.0,
    )


def mean(scores: Collection[TopicScores]) -> TopicScores | None:
    """The means over topics; None when there are none."""
    if not scores:
        return None
    n = len(scores)
    return TopicScores(
        math.fsum(one.ap for one in scores) / n,
        math.fsum(one.ndcg for one in scores) / n,
        math.fsum(one.judged for one in scores) / n,
    )
