"""The finer figures that the organisers of TextGraphs-13 report: by role, by lexical overlap, at the first ranks.

They are computed as in the worked example of the task's description:

- by role, the facts of a question that have other roles are taken out of the ranking, so that they neither count
  nor are in the way;
- by lexical overlap, the ranking is divided: facts that share a content word with the question or its right
  answer are ranked among themselves, and so are the others;
- precision at k divides by k, or by the number of the explanation's facts where that is less, so that 1 can always
  be reached.

A fact that is not ranked adds nothing. A question counts in a row if its explanation has facts of that kind; the
figures that the organisers publish count a question without such facts as 0, which is given beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from searchapp.evaluation.base import Breakdown, Row
from searchapp.evaluation.explanation_rankings import (
    Ranked,
    Terms,
    average_precision,
    mean,
    ranks_of,
    without,
)

PRECISION_AT = (1, 2, 3, 4, 5)
ALL_QUESTIONS = "MAP over all questions"


@dataclass(frozen=True, slots=True)
class BreakdownInputs:
    """What breakdowns are made from, all ids in lower case.

    `gold` has the facts of each question's explanation with their roles, `texts` those of the facts, `asked`
    question and right answer as one text, `terms` makes content words of a text.
    """

    rankings: Mapping[str, Ranked]
    gold: Mapping[str, Mapping[str, tuple[str, ...]]]
    texts: Mapping[str, str]
    asked: Mapping[str, str]
    terms: Terms

    def answered(self) -> Iterable[tuple[str, Ranked, Mapping[str, tuple[str, ...]]]]:
        """Each question that has an explanation and a ranking, with both."""
        for question, facts in self.gold.items():
            if facts and question in self.rankings:
                yield question, self.rankings[question], facts


def breakdown(name: str, material: BreakdownInputs) -> Breakdown:
    """The breakdown of that name, one of `BREAKDOWNS`."""
    return _MAKERS[name](material)


def by_role(material: BreakdownInputs) -> Breakdown:
    """MAP of the facts of each role."""
    figures: dict[str, list[float]] = {"CENTRAL": [], "GROUNDING": [], "LEXGLUE": []}
    questions = 0
    for _question, ranked, facts in material.answered():
        questions += 1
        for role in dict.fromkeys(role for roles in facts.values() for role in roles):
            of_role = [fact for fact, roles in facts.items() if role in roles]
            others = facts.keys() - set(of_role)
            ranks = ranks_of(without(ranked, others), of_role)
            figures.setdefault(role, []).append(average_precision(ranks.values(), len(of_role)))
    return Breakdown(
        "role",
        "MAP of the facts of a role, the explanation's other facts taken out of the ranking",
        _rows(figures, questions),
    )


def by_overlap(material: BreakdownInputs) -> Breakdown:
    """MAP of the facts that share a content word with question or answer, and of those that do not."""
    figures: dict[str, list[float]] = {"LEXOVERLAP": [], "NOLEXOVERLAP": []}
    terms = {fact: material.terms(text) for fact, text in material.texts.items()}
    questions = 0
    for question, ranked, facts in material.answered():
        questions += 1
        asked = material.terms(material.asked.get(question, ""))
        overlapping = {fact for fact, words in terms.items() if not asked.isdisjoint(words)}
        for group, inside in (("LEXOVERLAP", True), ("NOLEXOVERLAP", False)):
            of_group = [fact for fact in facts if (fact in overlapping) is inside]
            if of_group:
                among = [fact for fact in ranked if (fact in overlapping) is inside]
                ranks = ranks_of(among, of_group)
                figures[group].append(average_precision(ranks.values(), len(of_group)))
    return Breakdown(
        "overlap",
        "MAP of the facts with and without a content word of question or answer, each kind ranked by itself",
        _rows(figures, questions),
    )


def by_precision(material: BreakdownInputs) -> Breakdown:
    """Precision at the first ranks."""
    figures: dict[int, list[float]] = {k: [] for k in PRECISION_AT}
    for _question, ranked, facts in material.answered():
        ranks = ranks_of(ranked[: PRECISION_AT[-1]], facts).values()
        for k in PRECISION_AT:
            figures[k].append(sum(rank <= k for rank in ranks) / min(k, len(facts)))
    return Breakdown(
        "precision",
        "precision at k, divided by the length of the explanation where that is less than k",
        tuple(Row(f"P@{k}", len(values), {"precision": mean(values)}) for k, values in figures.items()),
    )


def by_length(material: BreakdownInputs) -> Breakdown:
    """MAP by the number of facts that the explanation has."""
    figures: dict[int, dict[str, float]] = {}
    for question, ranked, facts in material.answered():
        ranks = ranks_of(ranked, facts)
        figures.setdefault(len(facts), {})[question] = average_precision(ranks.values(), len(facts))
    rows = tuple(
        Row(str(length), len(of_topic), {"MAP": mean(list(of_topic.values()))}, tuple(of_topic))
        for length, of_topic in sorted(figures.items())
    )
    return Breakdown("length", "MAP by the number of facts of the explanation", rows, histogram="MAP")


def _rows(figures: Mapping[str, list[float]], questions: int) -> tuple[Row, ...]:
    return tuple(
        Row(
            group,
            len(values),
            {"MAP": mean(values), ALL_QUESTIONS: sum(values) / questions if questions else 0.0},
        )
        for group, values in figures.items()
    )


_MAKERS: Mapping[str, Callable[[BreakdownInputs], Breakdown]] = {
    "role": by_role,
    "overlap": by_overlap,
    "precision": by_precision,
    "length": by_length,
}
BREAKDOWNS = tuple(_MAKERS)
"""The names of what questions can be broken down by."""
