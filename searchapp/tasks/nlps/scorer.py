"""The official scorer of natural language premise selection (TextGraphs-16, 2022): MAP@500.

The average precision of a statement is the mean of the precisions at its hits. The usual definition divides their sum
by the number of gold premises, this one by the number of premises *found*: a system that finds one premise of ten at
rank 1 has AP 1. `score` returns the official figure and warns by how much it is too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation.base import GoldFiles, OfficialScore, Predictions, Qrels, Scored
from searchapp.formats import json_files
from searchapp.formats.problems import shown
from searchapp.formats.two_column import Memo, TwoColumnFiles
from searchapp.lucene.dataclass import dataclass
from searchapp.text import have

# The official cut-off.
CUTOFF = 500


def read_gold(path: Path) -> dict[str, list[Any]]:
    """Return the unchecked premises of each statement as the official scorer reads them.

    A byte-order mark is accepted; a repeated statement has its last value, at its first position.

    Raises:
        NotScorable: the file is not UTF-8 or not JSON, or a statement lacks `premises`.
        DataError: the file can't be opened, or has another structure.
    """
    statements = json_files.load(path, bom=True)
    if not isinstance(statements, dict):
        raise DataError(
            f"{path}: the gold must be an object of statements, not a {type(statements).__name__}"
        )
    return {statement: _premises(path, statement, entry) for statement, entry in statements.items()}


def _premises(path: Path, statement: str, entry: Any) -> list[Any]:
    where = f"{path}: statement {shown(statement)}"
    if not isinstance(entry, dict):
        raise DataError(f"{where}: the value must be an object with the key `premises`")
    if "premises" not in entry:
        raise NotScorable(f"{where} has no key `premises`", "KeyError: 'premises'")
    if not isinstance(entry["premises"], list):
        raise DataError(f"{where}: `premises` must be a list of integers")
    return entry["premises"]


def score(predictions: Predictions, gold: Mapping[str, Sequence[Any]], cutoff: int = CUTOFF) -> OfficialScore:
    """Return the official MAP@`cutoff`, the mean over all gold statements; nan without any.

    Raises:
        NotScorable: a statement, the first in the order of the gold, has no prediction, fewer than `cutoff` entries,
            or an entry that is not an integer.
        UsageError: `cutoff` is less than 1.
    """
    if cutoff < 1:
        raise UsageError(f"the cut-off must be at least 1, not {cutoff}")
    # As Python reads integers: ` 7`, `+7`, `007` and `7` are one premise.
    integers = Memo[str | None, int](lambda text: int(text or ""))
    results = {
        statement: _score_statement(statement, predictions, premises, cutoff, integers)
        for statement, premises in gold.items()
    }
    measure = f"MAP@{cutoff}"
    return OfficialScore(
        measure,
        {measure: _mean([result.average_precision for result in results.values()])},
        {statement: result.average_precision for statement, result in results.items()},
        tuple(_warnings(results, gold, cutoff)),
    )


class NlpsScorer(TwoColumnFiles):
    """The official scorer of `nlps`."""

    def qrels(self, gold: GoldFiles) -> Qrels:
        return honest_qrels(read_gold(gold.file))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        statements = read_gold(gold.file)
        official = score(predictions, statements, gold.options.cutoff or CUTOFF)
        return Scored(official, len(statements), _honest_rankings(predictions), honest_qrels(statements))


def honest_qrels(gold: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, int]]:
    """Return the gold as grades: every premise of a statement is relevant, written as a number or as text."""
    return {
        statement: {_normalized_id(premise): 1 for premise in premises}
        for statement, premises in gold.items()
    }


def _honest_rankings(predictions: Predictions) -> dict[str, list[str]]:
    """Return the rankings with each premise once, in any spelling, and without missing values."""
    ids = Memo[str | None, str | None](lambda id_: None if id_ is None else _normalized_id(id_))
    return {
        statement: [id_ for id_ in dict.fromkeys(map(ids.__getitem__, documents)) if id_ is not None]
        for statement, documents in predictions.items()
    }


def _normalized_id(value: object) -> str:
    """Normalize the spelling of a number: `007` and ` 7` become `7`."""
    text = str(value)
    if text.isascii() and text.isdigit() and not text.startswith("0"):
        return text  # nearly all ids are normalized already
    try:
        return str(int(text))
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class _StatementScore:
    precisions: tuple[float, ...]
    # Without the hits that repeat a premise in another spelling.
    honest_precisions: tuple[float, ...]
    relevant: int

    @property
    def average_precision(self) -> float:
        return _mean(self.precisions) if self.precisions else 0.0

    @property
    def honest_average_precision(self) -> float:
        return math.fsum(self.honest_precisions) / self.relevant if self.relevant else 0.0


def _score_statement(
    statement: str,
    predictions: Predictions,
    premises: Sequence[Any],
    cutoff: int,
    integers: Mapping[str | None, int],
) -> _StatementScore:
    if statement not in predictions:
        message = f"statement {shown(statement)} of the gold has no predictions"
        raise NotScorable(message, f"KeyError: {statement!r}")
    ranked = predictions[statement]
    if len(ranked) < cutoff:
        raise NotScorable(
            f"statement {shown(statement)} has {len(ranked)} premises without repeats, not {cutoff}",
            "ValueError: invalid format of the prediction file, the systems have to retrieve at least "
            f"{cutoff} premises for each statement",
        )
    # Only numbers can equal a retrieved id: gold premises as text are never found.
    relevant = {premise for premise in premises if isinstance(premise, int | float)}
    precisions: list[float] = []
    honest: list[float] = []
    hits: set[int] = set()
    try:
        retrieved = list(map(integers.__getitem__, ranked[:cutoff]))
    except ValueError:
        retrieved = [_integer(statement, rank, text) for rank, text in enumerate(ranked[:cutoff], 1)]
    for rank, premise in enumerate(retrieved, 1):
        if premise not in relevant:
            continue
        precisions.append((len(precisions) + 1) / rank)
        if premise not in hits:
            hits.add(premise)
            honest.append(len(hits) / rank)
    texts = {premise for premise in premises if isinstance(premise, str)}
    return _StatementScore(tuple(precisions), tuple(honest), len(relevant) + len(texts))


def _integer(statement: str, rank: int, text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError as error:
        where = f"statement {shown(statement)}: the premise at rank {rank}"
        if text is None:
            official = "ValueError: cannot convert float NaN to integer"
            raise NotScorable(f"{where} is a missing value", official) from None
        raise NotScorable(f"{where} is not an integer: {shown(text)}", json_files.official(error)) from error


def _warnings(
    results: Mapping[str, _StatementScore], gold: Mapping[str, Sequence[Any]], cutoff: int
) -> Iterator[str]:
    if not results:
        yield f"the gold has no statement, so MAP@{cutoff} is not a number"
        return
    if incomplete := sum(len(result.honest_precisions) < result.relevant for result in results.values()):
        honest = _mean([result.honest_average_precision for result in results.values()])
        yield (
            f"the official MAP@{cutoff} divides by the number of retrieved gold premises, not of all "
            f"gold premises, and some are missing for {incomplete} of {len(results)} statements: "
            f"divided by all, it is {honest:.6f}"
        )
    if inflated := sum(result.precisions != result.honest_precisions for result in results.values()):
        yield (
            f"{inflated} of {len(results)} statements {have(inflated)} a premise in several spellings "
            "(7 and 07), each "
            "of which the official scorer counts as a hit"
        )
    if texts := sum(any(isinstance(premise, str) for premise in premises) for premises in gold.values()):
        yield (
            f"{texts} of {len(results)} statements {have(texts)} gold premises as strings, which the official scorer "
            "never finds"
        )
    if empty := sum(result.relevant == 0 for result in results.values()):
        yield f"{empty} of {len(results)} statements {have(empty)} no gold premise; the official AP of each is 0"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
