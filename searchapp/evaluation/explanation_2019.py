"""The official scorer of explanation regeneration (TextGraphs-13, 2019): mean average precision, with its quirks.

The average precision of a question divides by the number of all facts of its explanation, as it is usually
defined. But a question of whose facts one is not ranked scores 0 as a whole, and a question that is not answered
is left out. `score` returns the official figure, and beside it the one with neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.evaluation.explanation_2019_breakdowns import BREAKDOWNS, BreakdownInputs, breakdown
from searchapp.evaluation.explanation_rankings import (
    Predictions,
    Ranked,
    Terms,
    average_precision,
    distinct,
    ranks_of,
)
from searchapp.evaluation.two_column_files import TwoColumnFiles
from searchapp.formats import two_column, worldtree
from searchapp.formats.problems import Problems, shown

MEASURE = "MAP"

Gold = Mapping[str, Mapping[str, tuple[str, ...]]]
"""The facts of each question's explanation with their roles, all ids in lower case."""


V2_ID = "QuestionID"
"""What WorldTree 2 calls the column `questionID`, by which the organisers' script of 2019 does not know it."""


def read_gold(path: Path, *, lenient: bool = False) -> dict[str, dict[str, tuple[str, ...]]]:
    """The explanations as the official scorer reads them; with `lenient` also those in the layout of WorldTree 2.

    Rows without a question id or an explanation are dropped, a repeated question keeps its last row at the place
    of its first, a repeated fact counts once.

    Raises:
        NotScorable: not UTF-8, an open quote, no such column, a row that is too long, a fact without a role.
        DataError: the file cannot be opened.
    """
    rows = two_column.split_cells(two_column.read_text(path), path)
    _line, _row, header = next(rows, (0, 0, []))
    if not header:
        message = f"{path} is empty: the gold is a table with a header"
        raise NotScorable(message, "pandas.errors.EmptyDataError: No columns to parse from file")
    if lenient and is_of_worldtree_2(header):
        header[header.index(V2_ID)] = worldtree.QUESTION_ID
    missing = [name for name in (worldtree.QUESTION_ID, worldtree.EXPLANATION) if name not in header]
    if missing:
        # The wording for both is that of pandas for an index of texts.
        both = "None of [Index(['questionID', 'explanation'], dtype='object')] are in the [columns]"
        official = f'KeyError: "{missing} not in index"' if len(missing) == 1 else f'KeyError: "{both}"'
        message = f"{path}: the header has no column {' and no column '.join(missing)}"
        if is_of_worldtree_2(header):
            message += f", but that of WorldTree 2, {V2_ID} (evaluate --lenient continues)"
        raise NotScorable(message, official)
    question_at, explanation_at = header.index(worldtree.QUESTION_ID), header.index(worldtree.EXPLANATION)
    explained: dict[str, str] = {}
    for line, row, cells in rows:
        if len(cells) > len(header):
            raise NotScorable(
                f"{path}: line {line}: {len(cells)} cells, where the header has {len(header)}",
                "pandas.errors.ParserError: Error tokenizing data. C error: "
                f"Expected {len(header)} fields in line {row}, saw {len(cells)}",
            )
        cells += [""] * (len(header) - len(cells))
        question, explanation = cells[question_at], cells[explanation_at]
        if question not in two_column.MISSING and explanation not in two_column.MISSING:
            explained[question.lower()] = _checked(path, line, explanation)
    return {question: _roles(explanation) for question, explanation in explained.items()}


def is_of_worldtree_2(header: Sequence[str]) -> bool:
    """Whether a header is that of the questions of WorldTree 2."""
    return worldtree.QUESTION_ID not in header and V2_ID in header


def _stops_at_header(path: Path) -> bool:
    _line, _row, header = next(two_column.split_cells(two_column.read_text(path), path), (0, 0, []))
    return is_of_worldtree_2(header)


def _checked(path: Path, line: int, explanation: str) -> str:
    """The explanation, each of whose items has a bar: the script looks at repeated questions' too."""
    for item in explanation.split():
        if "|" not in item:
            raise NotScorable(
                f"{path}: line {line}: the fact {shown(item)} has no role behind a bar",
                "ValueError: not enough values to unpack (expected 2, got 1)",
            )
    return explanation


def _roles(explanation: str) -> dict[str, tuple[str, ...]]:
    roles: dict[str, tuple[str, ...]] = {}
    for item in explanation.split():
        fact, _bar, role = item.lower().partition("|")
        roles[fact] = tuple(dict.fromkeys((*roles.get(fact, ()), role.upper())))
    return roles


def folded(predictions: Predictions) -> dict[str, Ranked]:
    """The rankings by question id in lower case; of several spellings the last by code point counts."""
    return {question.lower(): predictions[question] for question in sorted(predictions)}


def score(predictions: Predictions, gold: Gold) -> OfficialScore:
    """The official figure of rankings."""
    rankings = folded(predictions)
    ranks = {
        question: ranks_of(rankings[question], facts)
        for question, facts in gold.items()
        if question in rankings
    }
    per_topic = {
        question: average_precision(found.values(), len(found)) if len(found) == len(gold[question]) else 0.0
        for question, found in ranks.items()
    }
    value = math.fsum(per_topic.values()) / len(per_topic) if per_topic else 0.0
    honest = {
        question: average_precision(ranks.get(question, {}).values(), len(facts))
        for question, facts in gold.items()
        if facts
    }
    honest_value = math.fsum(honest.values()) / len(honest) if honest else math.nan
    warnings = tuple(_warnings(predictions, gold, ranks, honest_value))
    return OfficialScore(
        MEASURE, {MEASURE: value}, per_topic, warnings, {MEASURE: honest_value} if warnings else {}
    )


def _warnings(
    predictions: Predictions, gold: Gold, ranks: Mapping[str, Mapping[str, int]], honest: float
) -> Iterator[str]:
    """Where the official figure misleads, as sentences."""
    instead = f"with missing questions and facts as misses and nothing else changed it is {honest:.6f}"
    if not gold:
        yield "the gold has no explanation, so that the official MAP is 0 whatever is ranked"
        return
    unanswered = len(gold) - len(ranks)
    if unanswered:
        yield f"the official MAP leaves out {unanswered} of {len(gold)} questions, which are not answered: {instead}"
    incomplete = sum(0 < len(gold[question]) != len(found) for question, found in ranks.items())
    if incomplete:
        yield (
            f"{incomplete} of {len(gold)} questions lack a fact of their explanation in the ranking, for which the "
            f"official AP of the whole question is 0: {instead}"
        )
    empty = sum(not gold[question] for question in ranks)
    if empty:
        yield f"{empty} of {len(gold)} questions have an explanation of no facts; the official AP of each is 0"
    spellings = len(predictions) - len({question.lower() for question in predictions})
    if spellings:
        yield (
            f"{spellings} rankings are of questions that another spelling in upper and lower case answers too: "
            "the spelling that sorts last counts"
        )


class Explanation2019Scorer(TwoColumnFiles):
    """The official scorer of `explanation-2019`; `terms` are what lexical overlap is a matter of."""

    breakdowns = BREAKDOWNS

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(read_gold(gold.file, lenient=gold.options.lenient))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        explanations = read_gold(gold.file, lenient=gold.options.lenient)
        rankings = folded(predictions)
        official = score(predictions, explanations)
        if _stops_at_header(gold.file):
            warning = (
                f"{gold.file} has the header of WorldTree 2, at which the organisers' script of 2019 stops"
            )
            official = replace(official, warnings=(warning, *official.warnings))
        return Scored(
            official,
            len(explanations),
            {question: distinct(rankings[question]) for question in explanations if question in rankings},
            _qrels(explanations),
        )

    def breakdown(
        self, predictions: Predictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        folder = gold.require_folder()
        texts: dict[str, str] = {}
        asked: dict[str, str] = {}
        if "overlap" in wanted:
            problems = Problems()
            texts = {fact.id.lower(): fact.text for fact in worldtree.read_facts(folder / "tables", problems)}
            questions = worldtree.read_questions(gold.file, problems)
            asked = {each.id.lower(): f"{each.text} {each.answer}" for each in questions}
            problems.raise_if_any()
        # What stops the organisers' script was met when the figures themselves were computed.
        gold_read = read_gold(gold.file, lenient=True)
        material = BreakdownInputs(folded(predictions), gold_read, texts, asked, self._terms)
        return [breakdown(name, material) for name in wanted]


def _qrels(gold: Gold) -> Qrels:
    return {question: dict.fromkeys(facts, 1) for question, facts in gold.items()}
