"""The official scorer of explanation regeneration (TextGraphs-13, 2019): mean average precision.

Two quirks: a question with an unranked fact scores 0, and an unanswered question is excluded. `score` also returns an
honest figure without them.

The breakdowns follow the worked example in the task's description:

- by role, the question's facts of other roles are removed from the ranking; - by lexical overlap, facts that share a
content word with the question or its right answer are ranked separately from the other facts; - precision at k
divides by k, or by the number of facts if that is less, so that 1 is always reachable.

A row averages over the questions with such facts; the official figures, which count other questions as 0, are a
second column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from searchapp.errors import NotScorable
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
    average_precision,
    distinct,
    mean,
    ranks_of,
    without,
)
from searchapp.formats import two_column
from searchapp.formats.problems import Problems, shown
from searchapp.formats.two_column import TwoColumnFiles
from searchapp.lucene.dataclass import dataclass
from searchapp.tasks.explanation import worldtree
from searchapp.text import counted, have

MEASURE = "MAP"

# The facts of each question's explanation with their roles, all ids in lower case.
Explanations = Mapping[str, Mapping[str, tuple[str, ...]]]

PRECISION_AT = (1, 2, 3, 4, 5)
MAP_OVER_ALL = "MAP over all questions"


@dataclass(frozen=True, slots=True)
class RankedExplanations:
    """The inputs of breakdowns, with ids in lower case."""

    rankings: Mapping[str, Ranked]
    gold: Explanations
    # The texts of facts; question and right answer as one text.
    texts: Mapping[str, str]
    questions: Mapping[str, str]
    terms: Terms

    def answered(self) -> Iterable[tuple[str, Ranked, Mapping[str, tuple[str, ...]]]]:
        """Yield each question with explanation and ranking."""
        for question, facts in self.gold.items():
            if facts and question in self.rankings:
                yield question, self.rankings[question], facts


def _by_role(inputs: RankedExplanations) -> Breakdown:
    precisions: dict[str, list[float]] = {"CENTRAL": [], "GROUNDING": [], "LEXGLUE": []}
    questions = 0
    for _question, ranked, facts in inputs.answered():
        questions += 1
        for role in dict.fromkeys(role for roles in facts.values() for role in roles):
            of_role = [fact for fact, roles in facts.items() if role in roles]
            ranks = ranks_of(without(ranked, facts.keys() - set(of_role)), of_role)
            precisions.setdefault(role, []).append(average_precision(ranks.values(), len(of_role)))
    title = "MAP of the facts of a role, without the other facts of the explanation in the ranking"
    return Breakdown("role", title, _rows(precisions, questions))


def _by_overlap(inputs: RankedExplanations) -> Breakdown:
    precisions: dict[str, list[float]] = {"LEXOVERLAP": [], "NOLEXOVERLAP": []}
    terms = {fact: inputs.terms(text) for fact, text in inputs.texts.items()}
    questions = 0
    for question, ranked, facts in inputs.answered():
        questions += 1
        question_terms = inputs.terms(inputs.questions.get(question, ""))
        overlapping = {fact for fact, words in terms.items() if not question_terms.isdisjoint(words)}
        for group, overlaps in (("LEXOVERLAP", True), ("NOLEXOVERLAP", False)):
            of_group = [fact for fact in facts if (fact in overlapping) is overlaps]
            if of_group:
                ranks = ranks_of([fact for fact in ranked if (fact in overlapping) is overlaps], of_group)
                precisions[group].append(average_precision(ranks.values(), len(of_group)))
    title = (
        "MAP of the facts with and without a content word of question or answer, each kind ranked separately"
    )
    return Breakdown("overlap", title, _rows(precisions, questions))


def _by_precision(inputs: RankedExplanations) -> Breakdown:
    precisions: dict[int, list[float]] = {k: [] for k in PRECISION_AT}
    for _question, ranked, facts in inputs.answered():
        ranks = ranks_of(ranked[: PRECISION_AT[-1]], facts).values()
        for k in PRECISION_AT:
            precisions[k].append(sum(rank <= k for rank in ranks) / min(k, len(facts)))
    rows = tuple(
        BreakdownRow(f"P@{k}", len(values), {"precision": mean(values)}) for k, values in precisions.items()
    )
    title = "precision at k, divided by the length of the explanation if it is less than k"
    return Breakdown("precision", title, rows)


def _by_length(inputs: RankedExplanations) -> Breakdown:
    precisions: dict[int, dict[str, float]] = {}
    for question, ranked, facts in inputs.answered():
        ranks = ranks_of(ranked, facts)
        precisions.setdefault(len(facts), {})[question] = average_precision(ranks.values(), len(facts))
    rows = tuple(
        BreakdownRow(str(length), len(of_topic), {"MAP": mean(list(of_topic.values()))}, tuple(of_topic))
        for length, of_topic in sorted(precisions.items())
    )
    return Breakdown("length", "MAP by the number of facts of the explanation", rows, histogram="MAP")


def _rows(precisions: Mapping[str, list[float]], questions: int) -> tuple[BreakdownRow, ...]:
    return tuple(
        BreakdownRow(
            group,
            len(values),
            {"MAP": mean(values), MAP_OVER_ALL: sum(values) / questions if questions else 0.0},
        )
        for group, values in precisions.items()
    )


BREAKDOWNS: Mapping[str, Callable[[RankedExplanations], Breakdown]] = {
    "role": _by_role,
    "overlap": _by_overlap,
    "precision": _by_precision,
    "length": _by_length,
}


# The name of the column `questionID` in WorldTree 2, which the official script of 2019 does not know.
V2_ID = "QuestionID"


def read_gold(path: Path, *, lenient: bool = False) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the explanations as the official scorer reads them; `lenient` accepts the layout of WorldTree 2.

    Rows without a question id or an explanation are dropped. A repeated question has its last row at its first
    position. A repeated fact counts once.

    Raises:
        NotScorable: the file is not UTF-8, a quote is open, a column is missing, a row is too long, or a fact has no
            role.
        DataError: the file can't be opened.
    """
    rows = two_column.split_cells(two_column.read_text(path), path)
    header = next((cells for _line, _row, cells in rows), [])
    if not header:
        message = f"{path} is empty: the gold must be a table with a header"
        raise NotScorable(message, "pandas.errors.EmptyDataError: No columns to parse from file")
    if lenient and is_of_worldtree_2(header):
        header[header.index(V2_ID)] = worldtree.QUESTION_ID
    missing = [name for name in (worldtree.QUESTION_ID, worldtree.EXPLANATION) if name not in header]
    if missing:
        # The wording of pandas for both columns in an index of texts.
        both = "None of [Index(['questionID', 'explanation'], dtype='object')] are in the [columns]"
        official = f'KeyError: "{missing} not in index"' if len(missing) == 1 else f'KeyError: "{both}"'
        message = f"{path}: the header has no column {' and no column '.join(missing)}"
        if is_of_worldtree_2(header):
            message += f", but that of WorldTree 2, {V2_ID} (evaluate --lenient continues)"
        raise NotScorable(message, official)
    question_at, explanation_at = header.index(worldtree.QUESTION_ID), header.index(worldtree.EXPLANATION)
    explanations: dict[str, str] = {}
    for line, row, cells in rows:
        if len(cells) > len(header):
            raise NotScorable(
                f"{path}: line {line}: {len(cells)} cells, but {len(header)} in the header",
                "pandas.errors.ParserError: Error tokenizing data. C error: "
                f"Expected {len(header)} fields in line {row}, saw {len(cells)}",
            )
        cells += [""] * (len(header) - len(cells))
        question, explanation = cells[question_at], cells[explanation_at]
        if question not in two_column.MISSING and explanation not in two_column.MISSING:
            explanations[question.lower()] = _require_roles(path, line, explanation)
    return {question: _roles(explanation) for question, explanation in explanations.items()}


def is_of_worldtree_2(header: Sequence[str]) -> bool:
    """Return whether a file of questions has the header of WorldTree 2."""
    return worldtree.QUESTION_ID not in header and V2_ID in header


def _stops_at_header(path: Path) -> bool:
    rows = two_column.split_cells(two_column.read_text(path), path)
    return is_of_worldtree_2(next((cells for _line, _row, cells in rows), []))


def _require_roles(path: Path, line: int, explanation: str) -> str:
    # The script also checks earlier rows of a repeated question.
    for item in explanation.split():
        if "|" not in item:
            raise NotScorable(
                f"{path}: line {line}: the fact {shown(item)} has no role after a bar",
                "ValueError: not enough values to unpack (expected 2, got 1)",
            )
    return explanation


def _roles(explanation: str) -> dict[str, tuple[str, ...]]:
    roles: dict[str, tuple[str, ...]] = {}
    for item in explanation.split():
        fact, _bar, role = item.lower().partition("|")
        roles[fact] = tuple(dict.fromkeys((*roles.get(fact, ()), role.upper())))
    return roles


def fold_question_ids(predictions: Predictions) -> dict[str, Ranked]:
    """Return the rankings by question id in lower case; the last spelling by code point counts."""
    return {question.lower(): predictions[question] for question in sorted(predictions)}


def score(predictions: Predictions, gold: Explanations) -> OfficialScore:
    """Return the official figure of rankings, and the honest one if they differ."""
    rankings = fold_question_ids(predictions)
    ranks = {
        question: ranks_of(rankings[question], facts)
        for question, facts in gold.items()
        if question in rankings
    }
    per_topic = {
        question: average_precision(of_facts.values(), len(of_facts))
        if len(of_facts) == len(gold[question])
        else 0.0
        for question, of_facts in ranks.items()
    }
    honest = [
        average_precision(ranks.get(question, {}).values(), len(facts))
        for question, facts in gold.items()
        if facts
    ]
    honest_value = mean(honest) if honest else math.nan
    warnings = tuple(_warnings(predictions, gold, ranks, honest_value))
    value = mean(list(per_topic.values()))
    return OfficialScore(
        MEASURE, {MEASURE: value}, per_topic, warnings, {MEASURE: honest_value} if warnings else {}
    )


def _warnings(
    predictions: Predictions, gold: Explanations, ranks: Mapping[str, Mapping[str, int]], honest: float
) -> Iterator[str]:
    instead = f"with missing questions and facts as misses, it is {honest:.6f}"
    if not gold:
        yield "the gold has no explanation, so the official MAP is 0 for any ranking"
        return
    if unanswered := len(gold) - len(ranks):
        yield f"the official MAP excludes questions without ranking, {unanswered} of {len(gold)}: {instead}"
    if incomplete := sum(0 < len(gold[question]) != len(of_facts) for question, of_facts in ranks.items()):
        yield (
            f"{incomplete} of {len(gold)} questions {have(incomplete)} a ranking that lacks a fact of "
            f"the explanation, for which the official AP is 0: {instead}"
        )
    if empty := sum(not gold[question] for question in ranks):
        yield (
            f"{empty} of {len(gold)} questions {have(empty)} an explanation without facts; "
            "the official AP of each is 0"
        )
    if spellings := len(predictions) - len({question.lower() for question in predictions}):
        yield (
            f"{counted(spellings, 'ranking')} of a question that also has a ranking under an id in "
            "other letter case: the id that sorts last counts"
        )


class Explanation2019Scorer(TwoColumnFiles):
    """The official scorer of `explanation-2019`."""

    breakdowns = tuple(BREAKDOWNS)

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(read_gold(gold.file, lenient=gold.options.lenient))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        explanations = read_gold(gold.file, lenient=gold.options.lenient)
        rankings = fold_question_ids(predictions)
        official = score(predictions, explanations)
        if _stops_at_header(gold.file):
            warning = f"{gold.file} has the header of WorldTree 2, at which the official scorer of 2019 fails"
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
        questions: dict[str, str] = {}
        if "overlap" in wanted:
            problems = Problems()
            texts = {fact.id.lower(): fact.text for fact in worldtree.read_facts(folder / "tables", problems)}
            questions = {
                question.id.lower(): f"{question.text} {question.answer}"
                for question in worldtree.read_questions(gold.file, problems)
            }
            problems.raise_if_any()
        # The computation of the figures has already raised errors that stop the official script.
        explanations = read_gold(gold.file, lenient=True)
        inputs = RankedExplanations(
            fold_question_ids(predictions), explanations, texts, questions, worldtree.content_words
        )
        return [BREAKDOWNS[name](inputs) for name in wanted]


def _qrels(gold: Explanations) -> Qrels:
    return {question: dict.fromkeys(facts, 1) for question, facts in gold.items()}
