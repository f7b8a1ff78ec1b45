"""The official scorer of answer type prediction with Wikidata (SMART): accuracy and MRR.

It iterates over the *predictions*: a question without one does not count, one with several counts several times. The
rank is the position of the first right type *in the gold list*, whose order is arbitrary: the right type at rank 1
scores 1 or 1/5. `score` also returns the usual figures: over all questions, by the rank in the prediction.

The scorer stops at a predicted label that is a part of a gold label but not in the gold list ("city" if the gold has
"big city"), as nearly every real submission has somewhere. A notebook published with the script compares whole
labels, as `score` does with `whole_labels`, which names the figure differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, Figures, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.formats.json_files import load_list
from searchapp.formats.problems import shown
from searchapp.lucene.dataclass import dataclass
from searchapp.tasks.smart_types import answers
from searchapp.tasks.smart_types.answers import (
    BOOLEAN,
    LITERAL,
    RESOURCE,
    QuestionResult,
    TypesPrediction,
    TypesPredictions,
    TypesScorer,
    make_breakdown,
)
from searchapp.tasks.splits import in_split
from searchapp.text import counted

# The figure that ranks submissions here: the task has two official figures in no order.
MEASURE = "MRR"

KEYS = ("id", "category", "type")
# The value of a missing key in the script's table of entries.
_MISSING = float("nan")

Entries = Sequence[Mapping[str, Any]]


# The name of MRR that compares whole labels, not parts of the printed list.
WHOLE_LABELS_MEASURE = "MRR (whole labels)"


def score(predictions: Entries, gold: Entries, *, whole_labels: bool = False) -> OfficialScore:
    """Return the official figures, and the usual ones as honest figures.

    With `whole_labels` the first predicted type in the gold list determines the rank, even if the script stops at a
    part of a label.

    Raises:
        NotScorable: the official scorer stops; with `whole_labels`, not at a part of a label.
    """
    measure = WHOLE_LABELS_MEASURE if whole_labels else MEASURE
    results = _results(predictions, gold, whole_labels=whole_labels)
    answers_count = sum(result.question is not None for result in results)
    if not answers_count:
        message = "no prediction is for a question of the gold; ids that are numbers differ from ids that are strings"
        raise NotScorable(message, "ZeroDivisionError: division by zero")
    accuracy = sum(result.right for result in results) / len(results)
    values = {"accuracy": accuracy, measure: sum(result.reciprocal for result in results) / answers_count}
    honest = _honest(predictions, gold)
    seen: Counter[str] = Counter()
    per_topic: dict[str, Figures] = {}
    for result in results:
        name = str(result.id)
        seen[name] += 1
        key = name if seen[name] == 1 else f"{name} (prediction {seen[name]})"
        per_topic[key] = {"rank": result.rank, "rr": result.reciprocal}
    warnings = list(_warnings(results, gold, honest))
    if whole_labels:
        warnings.insert(0, "whole labels are compared, unlike in the official scorer")
    return OfficialScore(measure, values, per_topic, tuple(warnings), honest)


class SmartTypesWikidataScorer(TypesScorer):
    """The official scorer of `smart-types-wikidata`."""

    def read(self, files: Sequence[Path]) -> TypesPredictions:
        (path,) = files
        return TypesPredictions(load_list(path, "predictions", bom=True))

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(_read_gold(gold.files[0], gold.options.split))

    def score(self, predictions: TypesPredictions, gold: GoldFiles) -> Scored:
        questions = _read_gold(gold.files[0], gold.options.split)
        predicted = predictions.aligned(questions)
        official = score(predicted, questions, whole_labels=gold.options.lenient)
        qrels = _qrels(questions)
        rankings = {str(entry.get("id")): answers.documents_of(entry) for entry in reversed(predicted)}
        return Scored(official, len(qrels), rankings, qrels)

    def breakdown(
        self, predictions: TypesPredictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        questions = _read_gold(gold.files[0], gold.options.split)
        predicted = predictions.aligned(questions)
        try:
            results = _results(predicted, questions)
        except NotScorable:  # `score` has raised the error, unless it compares whole labels
            results = _results(predicted, questions, whole_labels=True)
        of_questions = [
            QuestionResult(
                result.question,
                {"accuracy": int(result.right), MEASURE: result.reciprocal},
                len(answers.listed_types(result.question["type"])),
                str(result.id),
            )
            for result in results
            if result.question is not None
        ]
        return [make_breakdown(name, of_questions) for name in self.breakdowns if name in wanted]

    def stopping_predictions(
        self, predictions: Sequence[TypesPrediction], gold: Path, split: str
    ) -> Iterator[tuple[TypesPrediction, NotScorable]]:
        """Yield the valid predictions of a file at whose types the official scorer stops."""
        entries = [
            {"id": prediction.official_id, "category": prediction.category, "type": list(prediction.types)}
            for prediction in predictions
        ]
        for index, error in stopping_predictions(entries, _read_gold(gold, split)):
            yield predictions[index], error


def _read_gold(path: Path, split: str | None) -> list[dict[str, Any]]:
    entries = load_list(path, "questions", bom=True)
    return [entry for entry in entries if in_split(split, str(entry.get("id")))]


@dataclass(frozen=True, slots=True)
class _RankResult:
    id: Any
    # None if the gold has no question with this id.
    question: Mapping[str, Any] | None
    right: bool
    rank: int

    @property
    def reciprocal(self) -> float:
        return 1 / self.rank if self.rank else 0.0


def _results(predictions: Entries, gold: Entries, *, whole_labels: bool = False) -> list[_RankResult]:
    _require_columns(predictions, "prediction", ("id", "category"))
    _require_columns(gold, "gold question", KEYS)
    no_types = not any("type" in entry for entry in predictions)
    questions = _by_id(gold)
    results: list[_RankResult] = []
    previous_rank = 0
    for entry in predictions:
        id_, category = entry.get("id", _MISSING), entry.get("category", _MISSING)
        question = questions.get(_key(id_))
        right = question is not None and category == question["category"]
        if question is None or not right:
            rank = 0
        elif category == BOOLEAN:
            rank = 1
        elif category in (LITERAL, RESOURCE):
            if no_types:
                raise NotScorable("no prediction has the key `type`", "KeyError: 'type'")
            rank = _rank(id_, entry.get("type", _MISSING), question["type"], whole_labels)
        else:
            rank = previous_rank
        previous_rank = rank
        results.append(_RankResult(id_, question, right, rank))
    return results


def stopping_predictions(predictions: Entries, gold: Entries) -> Iterator[tuple[int, NotScorable]]:
    """Yield the indexes of predictions at whose types the official scorer would stop."""
    questions = _by_id(gold)
    for index, entry in enumerate(predictions):
        question = questions.get(_key(entry["id"]))
        category = entry["category"]
        if question is None or category != question["category"] or category not in (LITERAL, RESOURCE):
            continue
        try:
            _rank(entry["id"], entry["type"], question["type"], whole_labels=False)
        except NotScorable as error:
            yield index, error


def _by_id(gold: Entries) -> dict[Any, Mapping[str, Any]]:
    questions: dict[Any, Mapping[str, Any]] = {}
    for entry in gold:
        questions.setdefault(
            _key(entry.get("id")), {key: entry.get(key, _MISSING) for key in (*entry, *KEYS)}
        )
    return questions


def _key(id_: Any) -> tuple[type, Any]:
    return (type(id_), id_ if id_.__hash__ is not None else str(id_))


def _require_columns(entries: Entries, what: str, keys: Sequence[str]) -> None:
    for key in keys:
        if not any(key in entry for entry in entries):
            raise NotScorable(f"no {what} has the key `{key}`", f"KeyError: '{key}'")


def _rank(id_: Any, predicted: Any, gold_types: Any, whole_labels: bool) -> int:
    """Return 1 + the index in the gold of the first predicted type that the printed gold contains; 0 without any."""
    where = f"the prediction for question {shown(str(id_))}"
    printed = gold_types if isinstance(gold_types, str) else str(gold_types)
    try:
        candidates = list(predicted)
    except TypeError as error:
        raise NotScorable(f"{where} has no list of types", f"TypeError: {error}") from error
    if not candidates:
        raise NotScorable(
            f"{where} has an empty list of types",
            "UnboundLocalError: cannot access local variable 'rank' where it is not associated with a value",
        )
    if whole_labels:
        labels = answers.listed_types(gold_types)
        return next((labels.index(type_) + 1 for type_ in candidates if type_ in labels), 0)
    for type_ in candidates:
        if not isinstance(type_, str):
            kind = type(type_).__name__
            official = f"TypeError: 'in <string>' requires string as left operand, not {kind}"
            raise NotScorable(f"{where} has a type that is not text", official)
        if type_ not in printed:
            continue
        if isinstance(gold_types, str):
            return gold_types.index(type_) + 1
        if not isinstance(gold_types, list):
            official = f"AttributeError: {type(gold_types).__name__!r} object has no attribute 'index'"
            raise NotScorable(f"{where}: the gold has no list of types", official)
        if type_ not in gold_types:
            part = "which is only a part of a gold label (evaluate --lenient continues)"
            message = f"{where} has the type {shown(type_)}, {part}"
            raise NotScorable(message, f"ValueError: {type_!r} is not in list")
        return gold_types.index(type_) + 1
    return 0


def _honest(predictions: Entries, gold: Entries) -> dict[str, float]:
    """Return accuracy and MRR over all gold questions, by the rank in the first prediction of each."""
    first: dict[Any, Mapping[str, Any]] = {}
    for entry in predictions:
        first.setdefault(_key(entry.get("id")), entry)
    questions: dict[Any, Mapping[str, Any]] = {}
    for entry in gold:
        questions.setdefault(_key(entry.get("id")), entry)
    right, reciprocals = 0, 0.0
    for key, question in questions.items():
        answer = first.get(key)
        if answer is None or answer.get("category") != question.get("category"):
            continue
        right += 1
        relevant = set(answers.documents_of(question))
        ranked = answers.documents_of(answer)
        ranks = (rank for rank, document in enumerate(ranked, 1) if document in relevant)
        if rank := next(ranks, 0):
            reciprocals += 1 / rank
    return {"accuracy": right / len(questions), MEASURE: reciprocals / len(questions)}


def _warnings(results: Sequence[_RankResult], gold: Entries, honest: Mapping[str, float]) -> Iterator[str]:
    answered_ids = {_key(result.id) for result in results if result.question is not None}
    if misplaced := sum(result.rank > 1 for result in results):
        yield (
            f"{misplaced} of {len(results)} predictions get the position in the gold list, whose order "
            "has no meaning, as their rank: by the position in the prediction, over all questions, "
            f"MRR is {honest[MEASURE]:.6f}"
        )
    if missing := len({_key(entry.get("id")) for entry in gold} - answered_ids):
        yield f"{counted(missing, 'question')} of the gold without a prediction, which the official scorer ignores"
    if unknown := sum(result.question is None for result in results):
        yield (
            f"{counted(unknown, 'prediction')} for questions without gold: counted as wrong in the "
            "accuracy, ignored in MRR"
        )
    if repeated := len(results) - unknown - len(answered_ids):
        yield f"{counted(repeated, 'prediction')} for a question that already has one; the official scorer counts each"


def _qrels(gold: Entries) -> Qrels:
    relevant = {str(entry.get("id")): answers.documents_of(entry) for entry in reversed(gold)}
    return {question: dict.fromkeys(documents, 1) for question, documents in reversed(relevant.items())}


class WholeLabels:
    """Makes lists at which the official script does not stop.

    The script searches each predicted label in the *printed* gold list, in order, stops at a label found only as a
    part, and returns at the first whole label. So a list is safe if every label follows all labels that contain it.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        # Longest first: the order of the vocabulary has no influence.
        self._printed = {
            label: str([label]) for label in sorted(vocabulary, key=lambda label: (-len(str([label])), label))
        }
        self._containing: dict[str, tuple[str, ...]] = {}

    def containing_labels(self, label: str) -> Sequence[str]:
        """Return the other labels whose printed form contains a label, the longest first."""
        if label not in self._containing:
            self._containing[label] = tuple(
                other for other, printed in self._printed.items() if label in printed and other != label
            )
        return self._containing[label]

    def complete(self, labels: Iterable[str]) -> list[str]:
        """Return the labels in order, each after all labels of the vocabulary that contain it."""
        result: dict[str, None] = {}

        def add(label: str, parents: set[str]) -> None:
            if label not in result and label not in parents:
                for containing in self.containing_labels(label):
                    add(containing, parents | {label})
                result[label] = None

        for label in labels:
            add(label, set())
        return list(result)
