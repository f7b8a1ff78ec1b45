"""The characteristic terms of relevant texts: those that tell them from the others, each as often as it weighs.

The weight is that of relevance feedback (Robertson and Spärck Jones, "Relevance weighting of search terms", JASIS
1976), the terms are chosen by it times the number of relevant texts that have the term (Robertson, "On term selection
for query expansion", Journal of Documentation 1990).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

FEWEST = 2
"""Relevant texts that must have a term: what is in one alone is chance."""

COPIES = 4
"""How often a term is repeated in the query whose relevance weight equals its idf."""


@dataclass
class TermCounts:
    """In how many texts, and in how many relevant ones, each term is."""

    texts: int = 0
    relevant: int = 0
    containing: Counter[str] = field(default_factory=Counter)
    containing_relevant: Counter[str] = field(default_factory=Counter)

    def add(self, terms: Iterable[str], relevant: bool) -> None:
        """Count a text by its terms."""
        distinct = set(terms)
        self.texts += 1
        self.containing.update(distinct)
        if relevant:
            self.relevant += 1
            self.containing_relevant.update(distinct)

    def without(self, other: TermCounts) -> TermCounts:
        """These counts without those of some of their texts."""
        return TermCounts(
            self.texts - other.texts,
            self.relevant - other.relevant,
            _without(self.containing, other.containing),
            _without(self.containing_relevant, other.containing_relevant),
        )

    def include(self, other: TermCounts) -> None:
        """Count the texts of the other as well."""
        self.texts += other.texts
        self.relevant += other.relevant
        self.containing.update(other.containing)
        self.containing_relevant.update(other.containing_relevant)

    def weight(self, term: str) -> float:
        """The relevance weight of a term: log of its odds in relevant texts over those in the others."""
        r, n = self.containing_relevant[term], self.containing[term]
        among = (r + 0.5) / (self.relevant - r + 0.5)
        others = (n - r + 0.5) / (self.texts - n - self.relevant + r + 0.5)
        return math.log(among / others)

    def query(self, terms: int) -> list[str]:
        """The `terms` most characteristic terms, best first, each repeated so that its BM25 comes to its weight.

        BM25 multiplies each copy by the term's idf, so there are COPIES * weight / idf, rounded.
        """
        weights = {term: self.weight(term) for term, r in self.containing_relevant.items() if r >= FEWEST}
        best = sorted(weights, key=lambda term: (-self.containing_relevant[term] * weights[term], term))
        return [
            term for term in best[:terms] for _copy in range(round(COPIES * weights[term] / self._idf(term)))
        ]

    def _idf(self, term: str) -> float:
        """The idf of BM25 as Lucene has it."""
        n = self.containing[term]
        return math.log(1 + (self.texts - n + 0.5) / (n + 0.5))


def _without(counts: Counter[str], gone: Counter[str]) -> Counter[str]:
    """The counts that are left: only those of what is gone are looked at, which is less than what is there."""
    left = counts.copy()
    left.subtract(gone)
    return left
