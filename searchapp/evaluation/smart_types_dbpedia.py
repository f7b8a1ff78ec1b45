"""The official scorer of answer type prediction with DBpedia (SMART): accuracy and lenient NDCG, with its quirks.

Each question's category must be predicted; the types count only where it is. NDCG counts every predicted type,
also one that was predicted before: a submission that repeats its best type can score more than 1. `score` warns
of that and has the honest figure beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation import smart_types
from searchapp.evaluation.base import (
    Breakdown,
    Figures,
    GoldFiles,
    OfficialScore,
    Qrels,
    Scored,
)
from searchapp.evaluation.json_files import load_list, official
from searchapp.evaluation.lenient_ndcg import gains, ndcg
from searchapp.evaluation.smart_types import InSplit, Predictions, required
from searchapp.evaluation.smart_types_breakdowns import BREAKDOWNS, Single, broken_down
from searchapp.formats import type_hierarchy
from searchapp.formats.problems import shown
from searchapp.formats.smart_types import BOOLEAN, LITERAL, RESOURCE
from searchapp.formats.type_hierarchy import Hierarchy
from searchapp.model import Run

CUTOFFS = (5, 10)
MEASURES = ("Accuracy", "NDCG@5", "NDCG@10")
MEASURE = "NDCG@5"
"""The figure that ranks submissions here: the organisers name three and no order."""

Ids = Mapping[Any, Mapping[str, Any]]


def read_gold(
    path: Path, hierarchy: Hierarchy, belongs: Callable[[str], bool] = lambda _id: True
) -> dict[Any, dict[str, Any]]:
    """The gold questions that count, by id, as the official scorer reads them.

    Questions without text are left out, and so are those whose id does not belong to what is scored. Types of a
    resource that the hierarchy lacks are dropped. A repeated id keeps its last entry at the place of its first.

    Raises:
        NotScorable: not JSON, or a question without one of the keys.
        DataError: the file cannot be read.
    """
    gold = {}
    for number, entry in enumerate(load_list(path, "questions"), start=1):
        what = f"{path}: entry {number}: gold question"
        if not required(entry, "question", what):
            continue
        id_ = smart_types.hashable_id(entry, what)
        category = required(entry, "category", what)
        types = required(entry, "type", what)
        if not belongs(str(id_)):
            continue
        if category == RESOURCE:
            try:
                types = [type_ for type_ in types if type_ in hierarchy]
            except TypeError as error:
                message = f"{path}: gold question {shown(str(id_))}: `type` is not a list of types"
                raise NotScorable(message, official(error)) from error
        gold[id_] = {**entry, "type": types}
    return gold


def score(predictions: Predictions, gold: Ids, hierarchy: Hierarchy) -> OfficialScore:
    """The official figures, and honest ones that count a repeated type once.

    Raises:
        NotScorable: the official scorer stops.
    """
    results = _results(predictions, gold, hierarchy)
    if not results:
        raise NotScorable("the gold has no question to score", "ZeroDivisionError: division by zero")
    with_ndcg = [result for result in results.values() if result.ndcg is not None]
    if not with_ndcg:
        message = "every question is left out of NDCG, for none has a gold type that the hierarchy knows"
        raise NotScorable(message, "ZeroDivisionError: division by zero")
    accuracy = sum(result.accuracy for result in results.values()) / len(results)
    values, honest = {"Accuracy": accuracy}, {}
    for place, cutoff in enumerate(CUTOFFS):
        values[f"NDCG@{cutoff}"] = _mean([result.ndcg[place] for result in with_ndcg if result.ndcg])
        honest[f"NDCG@{cutoff}"] = _mean([result.honest[place] for result in with_ndcg if result.honest])
    per_topic = {_name(id_, results): result.figures() for id_, result in results.items()}
    return OfficialScore(MEASURE, values, per_topic, tuple(_warnings(predictions, gold, results)), honest)


class SmartTypesDbpediaScorer:
    """The official scorer of `smart-types-dbpedia`; `in_split` says which questions of the gold file are in a fold."""

    files_make_one = False
    breakdowns: tuple[str, ...] = BREAKDOWNS

    def __init__(self, in_split: InSplit) -> None:
        self._in_split = in_split

    def read(self, files: Sequence[Path]) -> Predictions:
        (path,) = files
        entries = load_list(path, "predictions")
        for number, entry in enumerate(entries, start=1):
            what = f"{path}: entry {number}: prediction"
            smart_types.hashable_id(entry, what)
            required(entry, "category", what)
            required(entry, "type", what)
        return Predictions(entries)

    def predictions(self, run: Run) -> Predictions:
        return smart_types.of_run(run)

    def qrels(self, gold: GoldFiles) -> Qrels:
        hierarchy = _hierarchy(gold, gold.options.hierarchy)
        return _qrels(read_gold(gold.files[0], hierarchy, partial(self._in_split, gold.options.split)))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        hierarchy = _hierarchy(gold, gold.options.hierarchy)
        questions = read_gold(gold.files[0], hierarchy, partial(self._in_split, gold.options.split))
        predicted = _aligned(predictions, questions)
        return Scored(
            score(predicted, questions, hierarchy),
            len(questions),
            {
                _name(id_, questions): smart_types.documents_of(entry)
                for id_, entry in _last(predicted).items()
                if id_ in questions
            },
            _qrels(questions),
        )

    def breakdown(
        self, predictions: Predictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        hierarchy = _hierarchy(gold, gold.require_folder() / HIERARCHY)
        questions = read_gold(gold.files[0], hierarchy, partial(self._in_split, gold.options.split))
        results = _results(_aligned(predictions, questions), questions, hierarchy)
        singles = [
            Single(questions[id_], result.figures(), len(questions[id_]["type"] or ()), _name(id_, questions))
            for id_, result in results.items()
        ]
        return [broken_down(name, singles) for name in BREAKDOWNS if name in wanted]


HIERARCHY = "dbpedia_types.tsv"
"""The organisers' name for the file of the type hierarchy."""


def _hierarchy(gold: GoldFiles, named: Path | None) -> Hierarchy:
    """The hierarchy that goes with the gold files; the data folder's second gold file is one."""
    path = gold.files[1] if len(gold.files) > 1 else named
    if path is None:
        raise UsageError(f"{gold.files[0]} is scored with a type hierarchy: name the file with --hierarchy")
    return type_hierarchy.read_as_scored(path)


def _qrels(gold: Ids) -> Qrels:
    return {
        _name(id_, gold): dict.fromkeys(smart_types.documents_of(entry), 1) for id_, entry in gold.items()
    }


def _aligned(predictions: Predictions, gold: Ids) -> Predictions:
    return Predictions(predictions.aligned([{"id": id_} for id_ in gold]))


def _last(predictions: Predictions) -> dict[Any, Mapping[str, Any]]:
    """The predictions by id: of a repeated one the last counts."""
    return {entry["id"]: entry for entry in predictions.entries}


@dataclass(frozen=True, slots=True)
class _Result:
    """Of one question; NDCG at each cut-off, None where the question is left out."""

    accuracy: int
    ndcg: tuple[float, ...] | None
    honest: tuple[float, ...] | None

    def figures(self) -> Figures:
        values = self.ndcg or (None,) * len(CUTOFFS)
        return dict(zip(MEASURES, (self.accuracy, *values), strict=True))


def _same(accuracy: int, value: float | None) -> _Result:
    values = None if value is None else (value,) * len(CUTOFFS)
    return _Result(accuracy, values, values)


def _results(predictions: Predictions, gold: Ids, hierarchy: Hierarchy) -> dict[Any, _Result]:
    predicted = _last(predictions)
    known: dict[tuple[str, ...], dict[str, float]] = {}  # many questions have the same gold types
    results = {}
    for id_, question in gold.items():
        try:
            results[id_] = _result(predicted.get(id_), question, hierarchy, known)
        except (TypeError, IndexError, KeyError) as error:
            message = f"question {shown(str(id_))}: the types of the gold or of the prediction are not a list of text"
            raise NotScorable(message, official(error)) from error
    return results


def _result(
    predicted: Mapping[str, Any] | None,
    question: Mapping[str, Any],
    hierarchy: Hierarchy,
    known: dict[tuple[str, ...], dict[str, float]],
) -> _Result:
    category = question["category"]
    if predicted is None or predicted["category"] != category:
        return _same(0, 0.0)
    if category == BOOLEAN:
        return _same(1, 1.0)
    types, wanted = predicted["type"], question["type"]
    if len(types) == 0:
        return _same(1, 0.0)
    if category == LITERAL:
        return _same(1, 1.0 if types[0] == wanted[0] else 0.0)
    if category != RESOURCE:
        message = f"question {shown(str(question['id']))} has the category {shown(str(category))}, not one of the three"
        raise NotScorable(message, f"Exception: Invalid category: {category}")
    if not wanted:
        return _same(1, None)
    if tuple(wanted) not in known:
        known[tuple(wanted)] = gains(wanted, hierarchy)
    gained, listed = known[tuple(wanted)], list(types)
    distinct = list(dict.fromkeys(listed))
    return _Result(
        1,
        tuple(ndcg(listed, gained, cutoff) for cutoff in CUTOFFS),
        tuple(ndcg(distinct, gained, cutoff) for cutoff in CUTOFFS),
    )


def _warnings(predictions: Predictions, gold: Ids, results: Mapping[Any, _Result]) -> Iterator[str]:
    """Where the official figures mislead, as sentences."""
    predicted = _last(predictions)
    repeating = sum(
        len(types) > len(set(types))
        for id_, entry in predicted.items()
        if id_ in gold and (types := smart_types.as_types(entry["type"]))
    )
    if repeating:
        honest = _mean([result.honest[0] for result in results.values() if result.honest])
        yield (
            f"{repeating} of {len(gold)} questions are answered with repeated types, each of which the official "
            f"NDCG counts again, so that it can exceed 1: with each type once NDCG@5 is {honest:.6f}"
        )
    missing = sum(id_ not in predicted for id_ in gold)
    if missing:
        yield f"{missing} of {len(gold)} questions have no prediction and score 0"
    unknown = sum(id_ not in gold for id_ in predicted)
    if unknown:
        yield f"{unknown} predictions are for questions that the gold does not have, and are ignored"
    repeated = len(predictions.entries) - len(predicted)
    if repeated:
        yield f"{repeated} predictions are for a question that has a later one, which alone counts"
    left_out = sum(result.ndcg is None for result in results.values())
    if left_out:
        yield (
            f"{left_out} of {len(gold)} questions have no gold type that the hierarchy knows; they are left out of "
            "NDCG, not counted as 0"
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _name(id_: Any, ids: Mapping[Any, Any]) -> str:
    """An id as text; of a number that another question has as text, with a mark that it is one."""
    return str(id_) if isinstance(id_, str) or str(id_) not in ids else f"{id_} (number)"
