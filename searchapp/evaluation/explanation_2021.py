"""The official scorer of explanation regeneration with ratings (TextGraphs-15, 2021): NDCG, with its quirks.

A fact of rating g at rank r gains (2 ** g - 1) / log2(r + 1), without cut-off. Rated facts that are not ranked are
put at the end of a million further ranks, so that a question that is not answered scores a little above 0. A
question without rated facts scores 1. `score` returns the official figure, and beside it one with neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation import json_files
from searchapp.evaluation.base import Breakdown, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.evaluation.explanation_2021_breakdowns import BREAKDOWNS, BreakdownInputs, breakdown
from searchapp.evaluation.explanation_rankings import (
    Predictions,
    Terms,
    distinct,
    mean,
    ranks_of,
)
from searchapp.evaluation.graded_gain import (
    FURTHER_RANKS,
    Grades,
    ndcg,
    ndcg_at,
    official_ndcg_at,
)
from searchapp.evaluation.two_column_files import TwoColumnFiles
from searchapp.formats import knowledge_types, worldtree, worldtree_ratings
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document

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
    questions = _member(path, "the file", value, worldtree_ratings.PROBLEMS)
    if not isinstance(questions, list):
        raise DataError(
            f"{path}: {worldtree_ratings.PROBLEMS} must be a list, not {type(questions).__name__}"
        )
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
            types = knowledge_types.read_knowledge_types(folder / knowledge_types.FILE, problems)
        if "overlap" in wanted:
            questions = worldtree_ratings.read_ratings(gold.file, problems)
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
