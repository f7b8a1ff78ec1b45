"""The finer figures of the overview of TextGraphs-15 (Thayaparan et al., 2021), Tables 3 to 6.

A breakdown by facts looks at some rated facts only: those of a type of knowledge, those rated above a threshold,
those whose lexical overlap with the question is at most a threshold. The others stay where they are in the
ranking and count as not relevant. A question without such facts is left out of the row (the official scorer
would give it 1).

Lexical overlap is the share of common terms, |Q and F| / |Q or F|, of the content words Q of question and right
answer and F of the fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from searchapp.evaluation.base import Breakdown, Row
from searchapp.evaluation.explanation_rankings import Predictions, Terms, mean, ranks_of
from searchapp.evaluation.graded_gain import Grades, ndcg

TYPES = {"RET": "retrieval", "INSUPP": "inference-supporting", "COMPLEX": "complex inference"}
THRESHOLDS = (0, 2, 4)
PRECISION_AT = (1, 3, 5, 10, 20, 50)
OVERLAPS = tuple(range(100, -1, -10))
"""Percent."""


@dataclass(frozen=True, slots=True)
class BreakdownInputs:
    """What breakdowns are made from, ids of facts in lower case.

    `gold` has the ratings above 0 of each question's facts, `texts` those of the facts, `types` their types of
    knowledge as the tables' file writes them, `asked` question and right answer as one text, `terms` makes
    content words of a text.
    """

    rankings: Predictions
    gold: Mapping[str, Grades]
    texts: Mapping[str, str]
    types: Mapping[str, str]
    asked: Mapping[str, str]
    terms: Terms

    def restricted(self, counts: Callable[[str, str, float], bool]) -> tuple[int, float]:
        """How many questions have facts that count, and their mean NDCG.

        `counts` is asked of question, fact and rating.
        """
        values = []
        for question, grades in self.gold.items():
            some = {fact: grade for fact, grade in grades.items() if counts(question, fact, grade)}
            if some:
                values.append(ndcg(self.rankings.get(question, ()), some))
        return len(values), mean(values)


def breakdown(name: str, material: BreakdownInputs) -> Breakdown:
    """The breakdown of that name, one of `BREAKDOWNS`."""
    return _MAKERS[name](material)


def by_type(material: BreakdownInputs) -> Breakdown:
    """NDCG of the facts of each type of knowledge (Table 3)."""
    rows = []
    for type_, name in TYPES.items():
        count, value = material.restricted(
            lambda _question, fact, _grade, wanted=type_: material.types.get(fact) == wanted  # type: ignore[misc]
        )
        rows.append(Row(name, count, {"NDCG": value}))
    return Breakdown("type", "NDCG of the facts of one type of knowledge", tuple(rows))


def by_rating(material: BreakdownInputs) -> Breakdown:
    """NDCG of the facts rated above a threshold (Table 4)."""
    rows = []
    for threshold in THRESHOLDS:
        count, value = material.restricted(
            lambda _question, _fact, grade, least=threshold: grade > least  # type: ignore[misc]
        )
        rows.append(Row(f"> {threshold}", count, {"NDCG": value}))
    return Breakdown("rating", "NDCG of the facts rated above a threshold", tuple(rows))


def by_precision(material: BreakdownInputs) -> Breakdown:
    """Precision at k, facts rated above 0 being relevant (Table 5)."""
    figures: dict[int, list[float]] = {k: [] for k in PRECISION_AT}
    for question, grades in material.gold.items():
        if grades:
            ranks = ranks_of(material.rankings.get(question, ())[: PRECISION_AT[-1]], grades).values()
            for k in PRECISION_AT:
                figures[k].append(sum(rank <= k for rank in ranks) / k)
    rows = tuple(Row(f"P@{k}", len(values), {"precision": mean(values)}) for k, values in figures.items())
    return Breakdown("precision", "precision at k, facts rated above 0 being relevant", rows)


def by_overlap(material: BreakdownInputs) -> Breakdown:
    """NDCG of the facts whose lexical overlap with question and answer is at most a threshold (Table 6)."""
    overlaps: dict[tuple[str, str], float] = {}
    for question, grades in material.gold.items():
        asked = material.terms(material.asked.get(question, ""))
        for fact in grades:
            overlaps[question, fact] = overlap(asked, material.terms(material.texts.get(fact, "")))
    rows = []
    for percent in OVERLAPS:
        count, value = material.restricted(
            lambda question, fact, _grade, most=percent: overlaps[question, fact] * 100 <= most  # type: ignore[misc]
        )
        rows.append(Row(f"<= {percent}%", count, {"NDCG": value}))
    return Breakdown(
        "overlap",
        "NDCG of the facts that share at most this many terms with question and answer",
        tuple(rows),
    )


def overlap(asked: frozenset[str], fact: frozenset[str]) -> float:
    """The share of common terms among all terms of two texts; 0 when neither has any.

    >>> overlap(frozenset({"ice", "melt"}), frozenset({"ice", "solid"}))
    0.3333333333333333
    """
    together = asked | fact
    return len(asked & fact) / len(together) if together else 0.0


_MAKERS: Mapping[str, Callable[[BreakdownInputs], Breakdown]] = {
    "type": by_type,
    "rating": by_rating,
    "precision": by_precision,
    "overlap": by_overlap,
}
BREAKDOWNS = tuple(_MAKERS)
"""The names of what the figure can be broken down by."""
