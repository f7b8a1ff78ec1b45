"""The official scorer of explanation regeneration with ratings (TextGraphs-15, 2021): NDCG.

NDCG (Järvelin and Kekäläinen, 2002) has the gain 2 ** grade - 1 of Burges et al. (2005), without cut-off.
The official figure has two quirks, and `score` also returns an honest figure without them: unranked rated facts
follow a million ranks later, and a question without rated facts scores 1.

The breakdowns are Tables 3 to 6 of the overview of TextGraphs-15 (Thayaparan et al., 2021). A breakdown by facts
restricts the rated facts, by knowledge type, rating or lexical overlap with the question. The other facts keep their
ranks and count as not relevant. A row excludes questions without such facts (the official scorer would give them 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import (
    Breakdown,
    BreakdownRow,
    GoldFiles,
    OfficialScore,
    Predictions,
    Qrels,
    Ranked,
    Scored,
    Terms,
    distinct,
    mean,
    ranks_of,
)
from searchapp.formats import json_files
from searchapp.formats.problems import Problems, shown
from searchapp.formats.two_column import TwoColumnFiles
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document
from searchapp.tasks.explanation import worldtree
from searchapp.text import have

# How many ranks the official scorer appends to a ranking that lacks a rated fact.
FURTHER_RANKS = 1_000_000

# The ratings of a question's facts.
Ratings = Mapping[str, float]


def dcg(ranked_grades: Iterable[tuple[int, float]]) -> float:
    """Return the discounted cumulative gain of grades at ranks."""
    return math.fsum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in ranked_grades)


def ndcg(ranked: Ranked, grades: Ratings) -> float:
    """Return the NDCG of a ranking, in which unranked facts gain nothing.

    There must be grades, all above 0.
    """
    return ndcg_at(ranks_of(ranked, grades), grades)


def ndcg_at(ranks: Mapping[str, int], grades: Ratings) -> float:
    """Return the same as `ndcg` from the ranks of graded facts."""
    ideal = dcg(enumerate(sorted(grades.values(), reverse=True), 1))
    return dcg((rank, grades[fact]) for fact, rank in ranks.items()) / ideal


def official_ndcg_at(ranks: Mapping[str, int], length: int, grades: Ratings) -> float:
    """Return the official NDCG from the ranks of graded facts in a ranking of this length.

    In a ranking of n facts, the j-th unranked fact of the gold, from 0, gets the rank n + 1,000,000 - j. Negative
    grades count only there. The ideal ranking has the same grades in descending order, with negative ones behind all
    ranks without a grade.
    """
    if not grades:
        return 1.0
    ranked = [(rank, max(0.0, grades[fact])) for fact, rank in ranks.items()]
    missing = [grade for fact, grade in grades.items() if fact not in ranks]
    length += FURTHER_RANKS if missing else 0
    ranked += [(length - index, grade) for index, grade in enumerate(missing)]
    descending = sorted((grade for _rank, grade in ranked), reverse=True)
    ideal = dcg(
        (rank if grade >= 0 else length - len(descending) + rank, grade)
        for rank, grade in enumerate(descending, 1)
    )
    return dcg(ranked) / ideal if ideal else 0.0


TYPES = {"RET": "retrieval", "INSUPP": "inference-supporting", "COMPLEX": "complex inference"}
THRESHOLDS = (0, 2, 4)
PRECISION_AT = (1, 3, 5, 10, 20, 50)
# Percent.
OVERLAPS = tuple(range(100, -1, -10))


@dataclass(frozen=True, slots=True)
class RankedRatings:
    """The inputs of breakdowns, with fact ids in lower case."""

    rankings: Predictions
    # The ratings above 0 of each question's facts.
    gold: Mapping[str, Ratings]
    # Texts and knowledge types of facts; question and right answer as one text.
    texts: Mapping[str, str]
    types: Mapping[str, str]
    questions: Mapping[str, str]
    terms: Terms

    def row(self, group: str, counts: Callable[[str, str, float], bool]) -> BreakdownRow:
        """Return the mean NDCG over the facts for which `counts`, given question, id and rating, is true."""
        values = []
        for question, grades in self.gold.items():
            restricted = {fact: grade for fact, grade in grades.items() if counts(question, fact, grade)}
            if restricted:
                values.append(ndcg(self.rankings.get(question, ()), restricted))
        return BreakdownRow(group, len(values), {"NDCG": mean(values)})


def _by_type(inputs: RankedRatings) -> Breakdown:
    """Table 3."""

    def row(type_: str, name: str) -> BreakdownRow:
        return inputs.row(name, lambda _question, fact, _grade: inputs.types.get(fact) == type_)

    rows = tuple(row(*item) for item in TYPES.items())
    return Breakdown("type", "NDCG of the facts of one type of knowledge", rows)


def _by_rating(inputs: RankedRatings) -> Breakdown:
    """Table 4."""

    def row(threshold: int) -> BreakdownRow:
        return inputs.row(f"> {threshold}", lambda _question, _fact, grade: grade > threshold)

    return Breakdown("rating", "NDCG of the facts rated above a threshold", tuple(map(row, THRESHOLDS)))


def _by_precision(inputs: RankedRatings) -> Breakdown:
    """Table 5."""
    precisions: dict[int, list[float]] = {k: [] for k in PRECISION_AT}
    for question, grades in inputs.gold.items():
        if grades:
            ranks = ranks_of(inputs.rankings.get(question, ())[: PRECISION_AT[-1]], grades).values()
            for k in PRECISION_AT:
                precisions[k].append(sum(rank <= k for rank in ranks) / k)
    rows = tuple(
        BreakdownRow(f"P@{k}", len(values), {"precision": mean(values)}) for k, values in precisions.items()
    )
    return Breakdown("precision", "precision at k, facts rated above 0 being relevant", rows)


def _by_overlap(inputs: RankedRatings) -> Breakdown:
    """Table 6."""
    overlaps: dict[tuple[str, str], float] = {}
    for question, grades in inputs.gold.items():
        question_terms = inputs.terms(inputs.questions.get(question, ""))
        for fact in grades:
            overlaps[question, fact] = overlap(question_terms, inputs.terms(inputs.texts.get(fact, "")))

    def row(percent: int) -> BreakdownRow:
        return inputs.row(
            f"<= {percent}%", lambda question, fact, _grade: overlaps[question, fact] * 100 <= percent
        )

    title = "NDCG of the facts that share at most a number of terms with question and answer"
    return Breakdown("overlap", title, tuple(map(row, OVERLAPS)))


def overlap(question: frozenset[str], fact: frozenset[str]) -> float:
    """Return the share of common terms |Q and F| / |Q or F|; 0 without terms.

    >>> overlap(frozenset({"ice", "melt"}), frozenset({"ice", "solid"}))
    0.3333333333333333
    """
    union = question | fact
    return len(question & fact) / len(union) if union else 0.0


BREAKDOWNS: Mapping[str, Callable[[RankedRatings], Breakdown]] = {
    "type": _by_type,
    "rating": _by_rating,
    "precision": _by_precision,
    "overlap": _by_overlap,
}


MEASURE = "mean NDCG"

# Gains of this rating overflow the integers of the official scorer.
LIMIT = 63

# The ratings of each question's facts, unchecked.
UncheckedRatings = Mapping[str, Mapping[str, Any]]


def read_gold(path: Path) -> dict[str, dict[str, Any]]:
    """Return the unchecked ratings as the official scorer reads them, ids unchanged.

    A repeated question has its last list, a repeated fact its last rating, both at their first positions.

    Raises:
        NotScorable: the file is not UTF-8 or not JSON, or a key is missing.
        DataError: the file can't be opened, or has another structure.
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


def score(predictions: Predictions, gold: UncheckedRatings) -> OfficialScore:
    """Return the official figure of rankings, and the honest one if they differ.

    Raises:
        NotScorable: a rating is not a number.
        DataError: a rating is out of range.
    """
    per_topic, honest_values, lacking = {}, [], 0
    for question, grades in gold.items():
        ranked = predictions.get(question, ())
        ranks = ranks_of(ranked, grades)
        per_topic[question] = official_ndcg_at(ranks, len(ranked), _numbers(question, grades, ranks))
        lacking += question in predictions and len(ranks) < len(grades)
        positive = {fact.lower(): grade for fact, grade in grades.items() if grade > 0}
        if positive:
            # Rankings have ids in lower case, the gold may not.
            if not positive.keys() <= grades.keys():
                ranks = ranks_of(ranked, positive)
            hits = {fact: rank for fact, rank in ranks.items() if fact in positive}
            honest_values.append(ndcg_at(hits, positive))
    value = mean(list(per_topic.values())) if per_topic else -1.0
    honest = mean(honest_values) if honest_values else math.nan
    warnings = tuple(_warnings(predictions, gold, lacking, honest))
    return OfficialScore(
        MEASURE, {MEASURE: value}, per_topic, warnings, {MEASURE: honest} if warnings else {}
    )


def _numbers(question: str, grades: Mapping[str, Any], ranks: Mapping[str, int]) -> Ratings:
    wrong = {fact: grade for fact, grade in grades.items() if not isinstance(grade, int | float)}
    for fact, grade in grades.items():
        if fact not in wrong and not abs(grade) < LIMIT:  # includes nan
            raise DataError(
                f"question {shown(question)}: the rating {grade} of {shown(fact)} is out of range"
            )
    # The script stops at the first ranked one.
    for fact in [*(fact for fact in ranks if fact in wrong), *wrong]:
        kind = type(wrong[fact]).__name__
        raise NotScorable(
            f"question {shown(question)}: the rating of {shown(fact)} is not a number: {shown(str(wrong[fact]))}",
            f"TypeError: '>' not supported between instances of '{kind}' and 'int'",
        )
    return grades


def _warnings(predictions: Predictions, gold: UncheckedRatings, lacking: int, honest: float) -> Iterator[str]:
    """Yield the reasons why the official figure misleads; `lacking` counts questions with unranked rated facts."""
    if not gold:
        yield "the gold has no question, so the official NDCG is -1"
        return
    without_it = f"without this quirk it is {honest:.6f}"
    if unanswered := [
        question for question, grades in gold.items() if grades and question not in predictions
    ]:
        yield (
            f"{len(unanswered)} of {len(gold)} questions {have(len(unanswered))} no ranking; the "
            f"official NDCG of each is not 0, because missing facts still gain after {FURTHER_RANKS:,} "
            f"ranks: {without_it}"
        )
    if lacking:
        yield (
            f"{lacking} of {len(gold)} questions {have(lacking)} rated facts that are not ranked; "
            f"these still gain a little, as if they were ranked {FURTHER_RANKS:,} ranks later: {without_it}"
        )
    if empty := sum(not grades for grades in gold.values()):
        yield (
            f"{empty} of {len(gold)} questions {have(empty)} no rated facts; the official NDCG of each is 1: "
            f"{without_it}"
        )
    if zero := sum(bool(grades) and all(grade <= 0 for grade in grades.values()) for grades in gold.values()):
        yield (
            f"{zero} of {len(gold)} questions {have(zero)} no fact rated above 0; the official NDCG of "
            "each is at most 0"
        )
    if upper := sum(any(fact != fact.lower() for fact in grades) for grades in gold.values()):
        yield (
            f"{upper} of {len(gold)} questions {have(upper)} rated facts with upper-case letters, "
            "which are never found, because the official scorer converts only ranked facts to lower "
            f"case: {without_it}"
        )
    if negative := sum(any(grade < 0 for grade in grades.values()) for grades in gold.values()):
        yield (
            f"{negative} of {len(gold)} questions {have(negative)} ratings below 0, which count only "
            "for facts that are not ranked"
        )


class Explanation2021Scorer(TwoColumnFiles):
    """The official scorer of `explanation-2021`."""

    breakdowns = tuple(BREAKDOWNS)

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
        questions: dict[str, str] = {}
        if {"type", "overlap"} & set(wanted):
            facts = list(worldtree.read_facts(folder / "tables", problems))
        if "type" in wanted:
            types = worldtree.read_knowledge_types(folder / worldtree.FILE, problems)
        if "overlap" in wanted:
            questions = {
                question.id: f"{question.text} {question.answer}"
                for question in worldtree.read_ratings(gold.file, problems)
            }
        problems.raise_if_any()
        inputs = RankedRatings(
            predictions,
            {
                question: {fact.lower(): grade for fact, grade in grades.items() if grade > 0}
                for question, grades in read_gold(gold.file).items()
            },
            {fact.id.lower(): fact.text for fact in facts},
            {fact.id.lower(): types.get(str(fact.fields["table"]), "") for fact in facts},
            questions,
            worldtree.content_words,
        )
        return [BREAKDOWNS[name](inputs) for name in wanted]


def _qrels(gold: UncheckedRatings) -> Qrels:
    """Return the ratings as integers, as general measures require: fractions are rounded up."""
    return {
        question: {fact.lower(): max(0, math.ceil(grade)) for fact, grade in grades.items()}
        for question, grades in gold.items()
    }
