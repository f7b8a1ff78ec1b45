"""The official scorer of explanation regeneration with ratings (TextGraphs-15, 2021): NDCG, with its quirks.

A fact of rating g at rank r gains (2 ** g - 1) / log2(r + 1), without cut-off. Rated facts that are not ranked are
put at the end of a million further ranks, so that a question that is not answered scores a little above 0. A
question without rated facts scores 1. `score` returns the official figure, and beside it one with neither.

NDCG is that of Järvelin and Kekäläinen (2002) with the gain 2 ** grade - 1 of Burges et al. (2005), without cut-off.

The breakdowns are Tables 3 to 6 of the overview of TextGraphs-15 (Thayaparan et al., 2021).
A breakdown by facts looks at some rated facts only: those of a type of knowledge, those rated above a threshold,
those whose lexical overlap with the question is at most a threshold. The others stay where they are in the
ranking and count as not relevant. A question without such facts is left out of the row (the official scorer
would give it 1).

Lexical overlap is the share of common terms, |Q and F| / |Q or F|, of the content words Q of question and right
answer and F of the fact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import (
    Breakdown,
    GoldFiles,
    OfficialScore,
    Predictions,
    Qrels,
    Ranked,
    Row,
    Scored,
    Terms,
    distinct,
    mean,
    ranks_of,
)
from searchapp.formats import json_files
from searchapp.formats.problems import Problems, shown
from searchapp.formats.two_column import TwoColumnFiles
from searchapp.model import Document
from searchapp.tasks.explanation import worldtree

FURTHER_RANKS = 1_000_000
"""How many ranks the official scorer appends to a ranking that lacks a rated fact."""

Grades = Mapping[str, float]


def gained(places: Iterable[tuple[int, float]]) -> float:
    """The discounted cumulative gain of grades at ranks."""
    return math.fsum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in places)


def ndcg(ranked: Ranked, grades: Grades) -> float:
    """The gain of a ranking as a share of the greatest that there can be; what is not ranked gains nothing.

    All grades must be above 0, and there must be some.
    """
    return ndcg_at(ranks_of(ranked, grades), grades)


def ndcg_at(ranks: Mapping[str, int], grades: Grades) -> float:
    """The same from the ranks of those graded facts that are ranked."""
    return gained((rank, grades[fact]) for fact, rank in ranks.items()) / gained(
        enumerate(sorted(grades.values(), reverse=True), 1)
    )


def official_ndcg_at(ranks: Mapping[str, int], length: int, grades: Grades) -> float:
    """What the organisers' script makes of a ranking of this length, in which those graded facts have these ranks.

    Of the facts that are not ranked, m0, m1, ... in the order of the gold, mj is put at rank n + 1,000,000 - j.
    There a negative grade counts; at the ranks proper it is 0. The greatest gain is that of the same grades in
    descending order, in which the negative ones are last, behind all ranks without a grade.
    """
    if not grades:
        return 1.0
    placed = [(rank, max(0.0, grades[fact])) for fact, rank in ranks.items()]
    missing = [grade for fact, grade in grades.items() if fact not in ranks]
    length += FURTHER_RANKS if missing else 0
    placed += [(length - number, grade) for number, grade in enumerate(missing)]
    in_order = sorted((grade for _rank, grade in placed), reverse=True)
    ideal = [
        (place if grade >= 0 else length - len(in_order) + place, grade)
        for place, grade in enumerate(in_order, 1)
    ]
    greatest = gained(ideal)
    return gained(placed) / greatest if greatest else 0.0


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


MEASURE = "mean NDCG"

LIMIT = 63
"""From here on gains do not fit into the integers of the official scorer, whose figures then make no sense."""

Gold = Mapping[str, Mapping[str, Any]]
"""The ratings of each question's facts, unchecked."""


def read_gold(path: Path) -> dict[str, dict[str, Any]]:
    """The ratings as the official scorer reads them: nothing is checked or folded.

    Of a repeated question the last list is kept, of a repeated fact the last rating, both at their first places.

    Raises:
        NotScorable: not UTF-8, not JSON, or a key is missing.
        DataError: the file cannot be opened, or is JSON of another shape.
    """
    value = json_files.load(path)
    questions = _member(path, "the file", value, worldtree.PROBLEMS)
    if not isinstance(questions, list):
        raise DataError(f"{path}: {worldtree.PROBLEMS} must be a list, not {type(questions).__name__}")
    gold: dict[str, dict[str, Any]] = {}
    for number, question in enumerate(questions, 1):
        where = f"question {number}"
        id_ = _member(path, where, question, "qid")
        documents = _member(path, where, question, "documents")
        if not isinstance(id_, str) or not isinstance(documents, list):
            raise DataError(f"{path}: {where}: qid must be a text and documents a list")
        grades: dict[str, Any] = {}
        for document in documents:
            fact = _member(path, where, document, "uuid")
            if not isinstance(fact, str):
                raise DataError(f"{path}: {where}: uuid must be a text, not {type(fact).__name__}")
            grades[fact] = _member(path, where, document, "relevance")
        gold[id_] = grades
    return gold


def _member(path: Path, where: str, holder: Any, key: str) -> Any:
    if not isinstance(holder, dict):
        raise DataError(f"{path}: {where} must be an object, not {type(holder).__name__}")
    if key not in holder:
        raise NotScorable(f"{path}: {where} has no {key!r}", f"KeyError: {key!r}")
    return holder[key]


def score(predictions: Predictions, gold: Gold) -> OfficialScore:
    """The official figure of rankings.

    Raises:
        NotScorable: a rating is not a number.
        DataError: a rating is too large to be gained.
    """
    per_topic, honestly, lacking = {}, [], 0
    for question, grades in gold.items():
        ranked = predictions.get(question, ())
        ranks = ranks_of(ranked, grades)
        per_topic[question] = official_ndcg_at(ranks, len(ranked), _numbers(question, grades, ranks))
        lacking += question in predictions and len(ranks) < len(grades)
        positive = {fact.lower(): grade for fact, grade in grades.items() if grade > 0}
        if positive:
            in_lower_case = positive.keys() <= grades.keys()
            found = {fact: rank for fact, rank in ranks.items() if fact in positive}
            honestly.append(ndcg_at(found, positive) if in_lower_case else ndcg(ranked, positive))
    value = mean(list(per_topic.values())) if per_topic else -1.0
    honest = mean(honestly) if honestly else math.nan
    warnings = tuple(_warnings(predictions, gold, lacking, honest))
    return OfficialScore(
        MEASURE, {MEASURE: value}, per_topic, warnings, {MEASURE: honest} if warnings else {}
    )


def _numbers(question: str, grades: Mapping[str, Any], ranks: Mapping[str, int]) -> Grades:
    """The grades, all of which are numbers that can be gained."""
    wrong = {fact: grade for fact, grade in grades.items() if not isinstance(grade, int | float)}
    for fact, grade in grades.items():
        if fact not in wrong and not abs(grade) < LIMIT:  # not a number, too
            raise DataError(
                f"question {shown(question)}: the rating {grade} of {shown(fact)} is out of range"
            )
    # The script meets the first one that is ranked.
    for fact in [*(fact for fact in ranks if fact in wrong), *wrong]:
        kind = type(wrong[fact]).__name__
        raise NotScorable(
            f"question {shown(question)}: the rating of {shown(fact)} is not a number: {shown(str(wrong[fact]))}",
            f"TypeError: '>' not supported between instances of '{kind}' and 'int'",
        )
    return grades


def _warnings(predictions: Predictions, gold: Gold, lacking: int, honest: float) -> Iterator[str]:
    """Where the official figure misleads, as sentences; `lacking` counts questions with rated facts not ranked.

    The figure `honest` is the mean NDCG of the questions with a positive rating, in which what is not ranked gains
    nothing and letter case does not count.
    """
    if not gold:
        yield "the gold has no question, for which the official figure is -1"
        return
    without_it = f"without that it is {honest:.6f}"
    unanswered = [question for question, grades in gold.items() if grades and question not in predictions]
    if unanswered:
        yield (
            f"{len(unanswered)} of {len(gold)} questions are not answered, for which the official NDCG is not 0 but "
            f"what their facts gain after {FURTHER_RANKS:,} ranks: {without_it}"
        )
    if lacking:
        yield (
            f"{lacking} of {len(gold)} questions have rated facts that are not ranked, which still gain a little as "
            f"if they were found after {FURTHER_RANKS:,} more: {without_it}"
        )
    empty = sum(not grades for grades in gold.values())
    if empty:
        yield f"{empty} of {len(gold)} questions have no rated facts; the official NDCG of each is 1: {without_it}"
    zero = sum(bool(grades) and all(grade <= 0 for grade in grades.values()) for grades in gold.values())
    if zero:
        yield f"{zero} of {len(gold)} questions have no fact rated above 0; the official NDCG of each is 0 at best"
    upper = sum(any(fact != fact.lower() for fact in grades) for grades in gold.values())
    if upper:
        yield (
            f"{upper} of {len(gold)} questions have rated facts with upper-case letters, which are never found, since "
            f"the official scorer folds those of the rankings alone: {without_it}"
        )
    negative = sum(any(grade < 0 for grade in grades.values()) for grades in gold.values())
    if negative:
        yield f"{negative} of {len(gold)} questions have ratings below 0, which count only where they are not ranked"


class Explanation2021Scorer(TwoColumnFiles):
    """The official scorer of `explanation-2021`; `terms` are what lexical overlap is a matter of."""

    breakdowns = BREAKDOWNS

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(read_gold(gold.file))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        ratings = read_gold(gold.file)
        official = score(predictions, ratings)
        rankings = {
            question: distinct(predictions[question]) for question in ratings if question in predictions
        }
        return Scored(official, len(ratings), rankings, _qrels(ratings))

    def breakdown(
        self, predictions: Predictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        folder = gold.require_folder()
        problems = Problems()
        facts: list[Document] = []
        types: Mapping[str, str] = {}
        asked: dict[str, str] = {}
        if {"type", "overlap"} & set(wanted):
            facts = list(worldtree.read_facts(folder / "tables", problems))
        if "type" in wanted:
            types = worldtree.read_knowledge_types(folder / worldtree.FILE, problems)
        if "overlap" in wanted:
            questions = worldtree.read_ratings(gold.file, problems)
            asked = {question.id: f"{question.text} {question.answer}" for question in questions}
        problems.raise_if_any()
        material = BreakdownInputs(
            predictions,
            {
                question: {fact.lower(): grade for fact, grade in grades.items() if grade > 0}
                for question, grades in read_gold(gold.file).items()
            },
            {fact.id.lower(): fact.text for fact in facts},
            {fact.id.lower(): types.get(str(fact.fields["table"]), "") for fact in facts},
            asked,
            self._terms,
        )
        return [breakdown(name, material) for name in wanted]


def _qrels(gold: Gold) -> Qrels:
    """The ratings as whole grades, which the field's measures take: a fraction counts as the next one."""
    return {
        question: {fact.lower(): max(0, math.ceil(grade)) for fact, grade in grades.items()}
        for question, grades in gold.items()
    }
