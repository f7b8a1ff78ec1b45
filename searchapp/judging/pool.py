"""Pools: the documents that any of several runs has near the top, which are those worth judging.

K. Sparck Jones and C. J. van Rijsbergen, Report on the need for and provision of an "ideal" information retrieval
test collection, 1975.
"""

from __future__ import annotations

from collections.abc import Iterable

from searchapp.model import Run


def pool(runs: Iterable[Run], depth: int) -> dict[str, list[str]]:
    """For each topic the union of the first `depth` documents of every run.

    Documents come in the order of the best rank that any run gives them, equal ones in the order of the runs; topics in
    the order in which the runs have them.
    """
    best: dict[str, dict[str, int]] = {}
    for run in runs:
        for ranking in run:
            ranks = best.setdefault(ranking.topic_id, {})
            for rank, document in enumerate(ranking.document_ids()[:depth], 1):
                ranks[document] = min(rank, ranks.get(document, rank))
    return {topic: sorted(ranks, key=lambda document: ranks[document]) for topic, ranks in best.items()}
