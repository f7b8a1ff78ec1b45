"""The official scorer of answer type prediction with DBpedia (SMART): accuracy and lenient NDCG.

Lenient NDCG has gains that fall linearly with the distance to a gold type in the hierarchy:

    K. Balog and R. Neumayer, "Hierarchical target type identification for entity-oriented queries", CIKM 2012

Types count only if the category is right. The official NDCG counts repeated types again, so that it can exceed 1.
`score` warns about that and returns an honest figure too.

The type hierarchy is a tab-separated file. The root, `owl:Thing`, has no row:

    Type        Depth  Parent
    dbo:Agent   1      owl:Thing
    dbo:Person  2      dbo:Agent
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation.base import Breakdown, Figures, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.files import read_text, unreadable
from searchapp.formats.encoding import add_undecodable, undecodable
from searchapp.formats.json_files import load_list, official
from searchapp.formats.problems import EntryProblems, Problems, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.tasks.smart_types import answers
from searchapp.tasks.smart_types.answers import (
    BOOLEAN,
    LITERAL,
    RESOURCE,
    QuestionResult,
    TypesPredictions,
    TypesScorer,
    make_breakdown,
    require_key,
)
from searchapp.tasks.splits import in_split
from searchapp.text import counted, have

HEADER = ["type", "depth", "parent"]
COLUMNS = len(HEADER)
_MOST_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Types with their stated depths and their parents."""

    # As in the column, which the official scorer uses even if it contradicts the tree.
    depths: Mapping[str, int]
    parents: Mapping[str, str]
    # Of all rows, including those that a later row of the same type replaces.
    greatest_depth: int

    def __contains__(self, type_: object) -> bool:
        return type_ in self.depths

    def has_circles(self) -> bool:
        try:
            _ = self.paths
        except DataError:
            return True
        return False

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The path of each type: itself, its parent, and so on up to the last type with a row.

        Raises:
            DataError: the types have a cycle.
        """
        return {type_: self._path(type_) for type_ in self.depths}

    def _path(self, type_: str) -> tuple[str, ...]:
        path = [type_]
        while (parent := self.parents[path[-1]]) in self.depths:
            if parent in path:
                raise DataError(
                    f"the type hierarchy has a cycle: {shown(parent)} is its own ancestor; "
                    "correct the parents"
                )
            path.append(parent)
        return tuple(path)


def read_as_scored(path: Path) -> Hierarchy:
    """Read the hierarchy as the official scorer does: the last row of a repeated type counts.

    Raises:
        NotScorable: the official scorer stops on the file.
        DataError: the file can't be read.
    """
    depths: dict[str, int] = {}
    parents: dict[str, str] = {}
    greatest = 0
    try:
        lines = list(_lines(path))
    except UnicodeDecodeError as error:
        raise DataError(undecodable(path, error)) from error
    except OSError as error:
        raise unreadable(path, error) from error
    for line, text in lines[1:]:
        cells = text.rstrip().split("\t")
        if len(cells) < COLUMNS:
            message = f"{path}: line {line} has {len(cells)} of the {COLUMNS} cells type, depth, parent"
            raise NotScorable(message, "IndexError: list index out of range")
        try:
            depth = int(cells[1])
        except ValueError as error:
            raise NotScorable(
                f"{path}: line {line}: the depth is not an integer: {shown(cells[1])}", f"ValueError: {error}"
            ) from error
        depths[cells[0]], parents[cells[0]] = depth, cells[2]
        greatest = max(greatest, depth)
    return Hierarchy(depths, parents, greatest)


def read_hierarchy(path: Path, problems: Problems) -> Hierarchy:
    """Read the hierarchy and report all problems of its file; an invalid row is skipped."""
    depths: dict[str, int] = {}
    parents: dict[str, str] = {}
    rows: dict[str, str] = {}
    try:
        lines = list(_lines(path))
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
        return Hierarchy({}, {}, 0)
    except OSError as error:
        problems.add_unopened(path, error)
        return Hierarchy({}, {}, 0)
    if len(lines) < 2:
        problems.add(path, "empty file", detail="expected a header row and rows of types", skippable=False)
    elif (header := lines[0][1].lower().removeprefix("\ufeff").split("\t")) != HEADER:
        detail = f"{shown(' '.join(header))}; expected {', '.join(HEADER)}, separated by tabs"
        problems.add(path, "wrong header row", "line 1", detail, skippable=False)
    for number, text in lines[1:]:
        cells, row = text.split("\t"), EntryProblems(path, f"line {number}", problems)
        if len(cells) != COLUMNS:
            row.wrong(
                "wrong number of columns",
                f"{len(cells)}; expected the {COLUMNS} columns type, depth and parent",
            )
        elif any(cell.split() != [cell] for cell in cells):
            row.wrong("blank or spaced cell", "a name is one word without white space")
        elif not (cells[1].isascii() and cells[1].isdigit() and len(cells[1]) <= _MOST_DIGITS):
            row.wrong("wrong depth", f"{shown(cells[1])} is not a whole number")
        elif cells[0] in depths:
            row.wrong("duplicate type", f"{shown(cells[0])} already has a row")
        else:
            depths[cells[0]], parents[cells[0]], rows[cells[0]] = int(cells[1]), cells[2], row.where
    hierarchy = Hierarchy(depths, parents, max(depths.values(), default=0))
    for type_, detail in _contradictions(hierarchy):
        problems.add(path, "wrong parent", rows.get(type_, ""), detail, skippable=False)
    return hierarchy


def _contradictions(hierarchy: Hierarchy) -> Iterator[tuple[str, str]]:
    """Yield types whose rows contradict the tree, and why; the empty type is the whole tree."""
    # A parent without a row is a root of any name.
    roots = {parent for parent in hierarchy.parents.values() if parent not in hierarchy}
    if len(roots) > 1:
        yield (
            "",
            f"the parents without a row form more than one root: {', '.join(sorted(roots))}",
        )
    for type_, parent in hierarchy.parents.items():
        expected = hierarchy.depths.get(parent, 0) + 1
        if hierarchy.depths[type_] != expected:
            yield (
                type_,
                f"{shown(type_)} has depth {hierarchy.depths[type_]}, but its parent {shown(parent)} makes it "
                f"{expected}",
            )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = read_text(path)  # with universal newlines, as the scorer
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    yield from enumerate(lines, 1)


def most_specific(gold: Sequence[str], hierarchy: Hierarchy) -> list[str]:
    """Return the distinct gold types without ancestors of other gold types."""
    paths = hierarchy.paths
    ancestors = {ancestor for type_ in gold for ancestor in paths[type_][1:]}
    return [type_ for type_ in dict.fromkeys(gold) if type_ not in ancestors]


def gains(gold: Sequence[str], hierarchy: Hierarchy) -> dict[str, float]:
    """Return the gain 1 - d / H of each type that has one; all of `gold` must be in the hierarchy.

    d is the number of steps to the nearest most specific gold type up or down a path, H the greatest depth. Types
    with gains are those on the paths of the most specific gold types, and of types below one of them with a greater
    stated depth.
    """
    paths, depths = hierarchy.paths, hierarchy.depths
    distances: dict[str, int] = {}
    for target in most_specific(gold, hierarchy):
        below = [target]
        below += [type_ for type_, path in paths.items() if depths[type_] > depths[target] and target in path]
        for type_ in dict.fromkeys(step for lower in below for step in paths[lower]):
            distance = _distance(paths[type_], paths[target])
            distances[type_] = min(distance, distances.get(type_, distance))
    return {type_: 1 - distance / hierarchy.greatest_depth for type_, distance in distances.items()}


def _distance(path: Sequence[str], other: Sequence[str]) -> int:
    """Return the steps between the first types of two paths; one is on the other's path."""
    return other.index(path[0]) if path[0] in other else path.index(other[0])


def ndcg(predicted: Sequence[str], type_gains: Mapping[str, float], cutoff: int) -> float:
    """Return the DCG of the predicted types over the ideal DCG, both at `cutoff`; repeated types gain again."""
    ideal = _dcg(sorted(type_gains.values(), reverse=True)[:cutoff])
    return _dcg([type_gains.get(type_, 0.0) for type_ in predicted[:cutoff]]) / ideal


def _dcg(ranked_gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ranked_gains, 1))


CUTOFFS = (5, 10)
MEASURES = ("Accuracy", "NDCG@5", "NDCG@10")
# The figure that ranks submissions here: the task has three official figures in no order.
MEASURE = "NDCG@5"

GoldEntries = Mapping[Any, Mapping[str, Any]]


def read_gold(path: Path, hierarchy: Hierarchy, split: str | None = None) -> dict[Any, dict[str, Any]]:
    """Return the gold questions of a split, by id, as the official scorer reads them.

    Questions without text and types that the hierarchy lacks are dropped. A repeated id has its last entry at its
    first position.

    Raises:
        NotScorable: the file is not JSON, or a question lacks a key.
        DataError: the file can't be read.
    """
    gold = {}
    for number, entry in enumerate(load_list(path, "questions"), start=1):
        entry_name = f"{path}: entry {number}: gold question"
        if not require_key(entry, "question", entry_name):
            continue
        id_ = answers.hashable_id(entry, entry_name)
        category = require_key(entry, "category", entry_name)
        types = require_key(entry, "type", entry_name)
        if not in_split(split, str(id_)):
            continue
        if category == RESOURCE:
            try:
                types = [type_ for type_ in types if type_ in hierarchy]
            except TypeError as error:
                message = f"{path}: gold question {shown(str(id_))}: `type` is not a list of types"
                raise NotScorable(message, official(error)) from error
        gold[id_] = {**entry, "type": types}
    return gold


def score(predictions: TypesPredictions, gold: GoldEntries, hierarchy: Hierarchy) -> OfficialScore:
    """Return the official figures, and honest ones that count a repeated type once.

    Raises:
        NotScorable: the official scorer stops.
    """
    results = _results(predictions, gold, hierarchy)
    if not results:
        raise NotScorable("the gold has no question to score", "ZeroDivisionError: division by zero")
    with_ndcg = [result for result in results.values() if result.ndcg is not None]
    if not with_ndcg:
        message = "every question is excluded from NDCG, because none has a gold type in the hierarchy"
        raise NotScorable(message, "ZeroDivisionError: division by zero")
    accuracy = sum(result.accuracy for result in results.values()) / len(results)
    values, honest = {"Accuracy": accuracy}, {}
    for index, cutoff in enumerate(CUTOFFS):
        values[f"NDCG@{cutoff}"] = _mean([result.ndcg[index] for result in with_ndcg if result.ndcg])
        honest[f"NDCG@{cutoff}"] = _mean([result.honest[index] for result in with_ndcg if result.honest])
    per_topic = {_topic_name(id_, results): result.figures() for id_, result in results.items()}
    return OfficialScore(MEASURE, values, per_topic, tuple(_warnings(predictions, gold, results)), honest)


class SmartTypesDbpediaScorer(TypesScorer):
    """The official scorer of `smart-types-dbpedia`."""

    def read(self, files: Sequence[Path]) -> TypesPredictions:
        (path,) = files
        entries = load_list(path, "predictions")
        for number, entry in enumerate(entries, start=1):
            entry_name = f"{path}: entry {number}: prediction"
            answers.hashable_id(entry, entry_name)
            require_key(entry, "category", entry_name)
            require_key(entry, "type", entry_name)
        return TypesPredictions(entries)

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(read_gold(gold.files[0], _hierarchy(gold), gold.options.split))

    def score(self, predictions: TypesPredictions, gold: GoldFiles) -> Scored:
        hierarchy = _hierarchy(gold)
        questions = read_gold(gold.files[0], hierarchy, gold.options.split)
        predicted = _aligned(predictions, questions)
        return Scored(
            score(predicted, questions, hierarchy),
            len(questions),
            {
                _topic_name(id_, questions): answers.documents_of(entry)
                for id_, entry in _last_by_id(predicted).items()
                if id_ in questions
            },
            _qrels(questions),
        )

    def breakdown(
        self, predictions: TypesPredictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        hierarchy = _hierarchy(gold, gold.require_folder() / HIERARCHY)
        questions = read_gold(gold.files[0], hierarchy, gold.options.split)
        results = _results(_aligned(predictions, questions), questions, hierarchy)
        of_questions = [
            QuestionResult(
                questions[id_],
                result.figures(),
                len(questions[id_]["type"] or ()),
                _topic_name(id_, questions),
            )
            for id_, result in results.items()
        ]
        return [make_breakdown(name, of_questions) for name in self.breakdowns if name in wanted]


# The official name for the file of the type hierarchy.
HIERARCHY = "dbpedia_types.tsv"


def _hierarchy(gold: GoldFiles, default: Path | None = None) -> Hierarchy:
    """Read the hierarchy of the options, else the second gold file (as in a data folder), else `other`."""
    path = gold.options.hierarchy or (gold.files[1] if len(gold.files) > 1 else default)
    if path is None:
        raise UsageError(f"scoring {gold.files[0]} needs a type hierarchy: name its file with --hierarchy")
    return read_as_scored(path)


def _qrels(gold: GoldEntries) -> Qrels:
    return {
        _topic_name(id_, gold): dict.fromkeys(answers.documents_of(entry), 1) for id_, entry in gold.items()
    }


def _aligned(predictions: TypesPredictions, gold: GoldEntries) -> TypesPredictions:
    return TypesPredictions(predictions.aligned([{"id": id_} for id_ in gold]))


def _last_by_id(predictions: TypesPredictions) -> dict[Any, Mapping[str, Any]]:
    return {entry["id"]: entry for entry in predictions.entries}


@dataclass(frozen=True, slots=True)
class _NdcgResult:
    accuracy: int
    # NDCG at each cut-off; None if the question is excluded.
    ndcg: tuple[float, ...] | None
    honest: tuple[float, ...] | None

    def figures(self) -> Figures:
        values = self.ndcg or (None,) * len(CUTOFFS)
        return dict(zip(MEASURES, (self.accuracy, *values), strict=True))


def _constant_result(accuracy: int, value: float | None) -> _NdcgResult:
    values = None if value is None else (value,) * len(CUTOFFS)
    return _NdcgResult(accuracy, values, values)


def _results(
    predictions: TypesPredictions, gold: GoldEntries, hierarchy: Hierarchy
) -> dict[Any, _NdcgResult]:
    predicted = _last_by_id(predictions)
    cache: dict[tuple[str, ...], dict[str, float]] = {}  # many questions have the same gold types
    results = {}
    for id_, question in gold.items():
        try:
            results[id_] = _result(predicted.get(id_), question, hierarchy, cache)
        except (TypeError, IndexError, KeyError) as error:
            message = f"question {shown(str(id_))}: the types of the gold or of the prediction are not a list of text"
            raise NotScorable(message, official(error)) from error
    return results


def _result(
    predicted: Mapping[str, Any] | None,
    question: Mapping[str, Any],
    hierarchy: Hierarchy,
    cache: dict[tuple[str, ...], dict[str, float]],
) -> _NdcgResult:
    category = question["category"]
    if predicted is None or predicted["category"] != category:
        return _constant_result(0, 0.0)
    if category == BOOLEAN:
        return _constant_result(1, 1.0)
    types, relevant = predicted["type"], question["type"]
    if len(types) == 0:
        return _constant_result(1, 0.0)
    if category == LITERAL:
        return _constant_result(1, 1.0 if types[0] == relevant[0] else 0.0)
    if category != RESOURCE:
        message = f"question {shown(str(question['id']))} has the unknown category {shown(str(category))}"
        raise NotScorable(message, f"Exception: Invalid category: {category}")
    if not relevant:
        return _constant_result(1, None)
    if tuple(relevant) not in cache:
        cache[tuple(relevant)] = gains(relevant, hierarchy)
    type_gains, listed = cache[tuple(relevant)], list(types)
    distinct = list(dict.fromkeys(listed))
    return _NdcgResult(
        1,
        tuple(ndcg(listed, type_gains, cutoff) for cutoff in CUTOFFS),
        tuple(ndcg(distinct, type_gains, cutoff) for cutoff in CUTOFFS),
    )


def _warnings(
    predictions: TypesPredictions, gold: GoldEntries, results: Mapping[Any, _NdcgResult]
) -> Iterator[str]:
    predicted = _last_by_id(predictions)
    repeating = sum(
        len(types) > len(set(types))
        for id_, entry in predicted.items()
        if id_ in gold and (types := answers.listed_types(entry["type"]))
    )
    if repeating:
        honest = _mean([result.honest[0] for result in results.values() if result.honest])
        yield (
            f"{repeating} of {len(gold)} questions {have(repeating)} repeated predicted types, and the "
            f"official NDCG counts each repeat, so it can exceed 1: with each type once, NDCG@5 is {honest:.6f}"
        )
    if missing := sum(id_ not in predicted for id_ in gold):
        yield f"{missing} of {len(gold)} questions {have(missing)} no prediction and the value 0"
    if unknown := sum(id_ not in gold for id_ in predicted):
        yield f"{counted(unknown, 'prediction')} for questions without gold ignored"
    if repeated := len(predictions.entries) - len(predicted):
        yield f"{counted(repeated, 'prediction')} for a question that has a later one: only the last one counts"
    if left_out := sum(result.ndcg is None for result in results.values()):
        yield (
            f"{left_out} of {len(gold)} questions {have(left_out)} no gold type in the hierarchy; NDCG "
            "excludes them instead of counting them as 0"
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _topic_name(id_: Any, ids: Mapping[Any, Any]) -> str:
    """Return an id as text, which marks a number that equals the text of another id."""
    return str(id_) if isinstance(id_, str) or str(id_) not in ids else f"{id_} (number)"
