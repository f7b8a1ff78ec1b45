"""The official scorer of answer type prediction with Wikidata (SMART): accuracy and MRR, with its quirks.

It goes through the *predictions*: a question without one counts nowhere, one with several counts several times.
And its rank is the place of the first type found *in the gold list*, wherever it stands in the prediction: the
order of the gold, which means nothing, decides whether the right type at the first place scores 1 or 1/5. `score`
has the usual figures beside it: over all questions, by the place in the prediction.

Worse, it stops at a predicted label that is a part of what the gold lists without being in it ("city" where the
gold has "big city"), which nearly every real submission has somewhere. A notebook that the organisers published
beside the script compares whole labels; so does `score` when asked to, under another name of the figure.

`WholeLabels` makes lists that the script does not stop at. The script looks for each predicted label in the *printed*
gold list, one after the other, and stops where it finds one as a part of a label that is not itself in the list:
"city" where the gold has "big city". It is content with the first label that it finds whole, and where that stands in
the prediction does not count. So a list in which every label stands behind all labels that it is a part of is safe:
if the gold has one of those, that one is found first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.errors import NotScorable
from searchapp.evaluation.base import Breakdown, Figures, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.formats.json_files import load_list
from searchapp.formats.problems import shown
from searchapp.model import Run
from searchapp.tasks.smart_types import answers
from searchapp.tasks.smart_types.answers import (
    BOOLEAN,
    BREAKDOWNS,
    LITERAL,
    RESOURCE,
    InSplit,
    Prediction,
    Predictions,
    Single,
    broken_down,
)
from searchapp.text import counted

MEASURE = "MRR"
"""The figure that ranks submissions here: the organisers name two and no order."""

KEYS = ("id", "category", "type")
_MISSING = float("nan")
"""What the script, which makes a table of the entries, has where an entry lacks a key that others have."""

Entries = Sequence[Mapping[str, Any]]


WHOLE = "MRR (whole labels)"
"""What MRR is called when whole labels are compared, and not parts of the printed list."""


def score(predictions: Entries, gold: Entries, *, whole_labels: bool = False) -> OfficialScore:
    """The official figures, and the usual ones as honest.

    With `whole_labels` the first predicted type that the gold lists gives the rank, also where the script finds
    parts of labels and stops.

    Raises:
        NotScorable: the official scorer stops, for another reason than parts of labels if they don't matter.
    """
    measure = WHOLE if whole_labels else MEASURE
    results = _results(predictions, gold, whole_labels=whole_labels)
    found = sum(result.question is not None for result in results)
    if not found:
        message = "no prediction is for a question of the gold; ids of numbers and of text differ"
        raise NotScorable(message, "ZeroDivisionError: division by zero")
    accuracy = sum(result.right for result in results) / len(results)
    values = {"accuracy": accuracy, measure: sum(result.reciprocal for result in results) / found}
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
        warnings.insert(0, "whole labels are compared, which is not what the organisers' script does")
    return OfficialScore(measure, values, per_topic, tuple(warnings), honest)


class SmartTypesWikidataScorer:
    """The official scorer of `smart-types-wikidata`; `in_split` says which questions of the gold file are in a fold."""

    files_make_one = False
    breakdowns: tuple[str, ...] = BREAKDOWNS

    def __init__(self, in_split: InSplit) -> None:
        self._in_split = in_split

    def read(self, files: Sequence[Path]) -> Predictions:
        (path,) = files
        return Predictions(load_list(path, "predictions", bom=True))

    def predictions(self, run: Run) -> Predictions:
        return answers.of_run(run)

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(self._gold(gold.files[0], gold.options.split))

    def score(self, predictions: Predictions, gold: GoldFiles) -> Scored:
        questions = self._gold(gold.files[0], gold.options.split)
        predicted = predictions.aligned(questions)
        official = score(predicted, questions, whole_labels=gold.options.lenient)
        qrels = _qrels(questions)
        rankings = {str(entry.get("id")): answers.documents_of(entry) for entry in reversed(predicted)}
        return Scored(official, len(qrels), rankings, qrels)

    def breakdown(
        self, predictions: Predictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        questions = self._gold(gold.files[0], gold.options.split)
        predicted = predictions.aligned(questions)
        try:
            results = _results(predicted, questions)
        except NotScorable:  # then these are asked for with whole labels
            results = _results(predicted, questions, whole_labels=True)
        singles = [
            Single(
                result.question,
                {"accuracy": int(result.right), MEASURE: result.reciprocal},
                len(answers.as_types(result.question["type"])),
                str(result.id),
            )
            for result in results
            if result.question is not None
        ]
        return [broken_down(name, singles) for name in BREAKDOWNS if name in wanted]

    def stops(
        self, predictions: Sequence[Prediction], gold: Path, split: str
    ) -> Iterator[tuple[Prediction, NotScorable]]:
        """The good predictions of a file whose types the official scorer stops at."""
        entries = [
            {"id": one.official_id, "category": one.category, "type": list(one.types)} for one in predictions
        ]
        for place, error in stops(entries, self._gold(gold, split)):
            yield predictions[place], error

    def _gold(self, path: Path, split: str | None) -> list[dict[str, Any]]:
        return [
            entry
            for entry in load_list(path, "questions", bom=True)
            if self._in_split(split, str(entry.get("id")))
        ]


@dataclass(frozen=True, slots=True)
class _Result:
    """Of one prediction; `question` is None when the gold has no question of its id."""

    id: Any
    question: Mapping[str, Any] | None
    right: bool
    rank: int

    @property
    def reciprocal(self) -> float:
        return 1 / self.rank if self.rank else 0.0


def _results(predictions: Entries, gold: Entries, *, whole_labels: bool = False) -> list[_Result]:
    _require_columns(predictions, "prediction", ("id", "category"))
    _require_columns(gold, "gold question", KEYS)
    no_types = not any("type" in entry for entry in predictions)
    questions = _by_id(gold)
    results: list[_Result] = []
    before = 0
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
            rank = before
        before = rank
        results.append(_Result(id_, question, right, rank))
    return results


def stops(predictions: Entries, gold: Entries) -> Iterator[tuple[int, NotScorable]]:
    """The places of all predictions whose types the official scorer stops at, of which it meets the first alone."""
    questions = _by_id(gold)
    for place, entry in enumerate(predictions):
        question = questions.get(_key(entry["id"]))
        category = entry["category"]
        if question is None or category != question["category"] or category not in (LITERAL, RESOURCE):
            continue
        try:
            _rank(entry["id"], entry["type"], question["type"], whole_labels=False)
        except NotScorable as error:
            yield place, error


def _by_id(gold: Entries) -> dict[Any, Mapping[str, Any]]:
    """The gold questions by id, the first of several, with a missing value for each key that one lacks."""
    questions: dict[Any, Mapping[str, Any]] = {}
    for entry in gold:
        questions.setdefault(
            _key(entry.get("id")), {key: entry.get(key, _MISSING) for key in (*entry, *KEYS)}
        )
    return questions


def _key(id_: Any) -> tuple[type, Any]:
    """An id so that only an equal one of the same type equals it."""
    return (type(id_), id_ if id_.__hash__ is not None else str(id_))


def _require_columns(entries: Entries, what: str, keys: Sequence[str]) -> None:
    for key in keys:
        if not any(key in entry for entry in entries):
            raise NotScorable(f"not one {what} has the key `{key}`", f"KeyError: '{key}'")


def _rank(id_: Any, predicted: Any, wanted: Any, whole_labels: bool) -> int:
    """1 + the place in the gold of the first predicted type that occurs in the gold's printed form; 0 for none."""
    where = f"the prediction for question {shown(str(id_))}"
    printed = wanted if isinstance(wanted, str) else str(wanted)
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
        labels = answers.as_types(wanted)
        return next((labels.index(type_) + 1 for type_ in candidates if type_ in labels), 0)
    for type_ in candidates:
        if not isinstance(type_, str):
            kind = type(type_).__name__
            official = f"TypeError: 'in <string>' requires string as left operand, not {kind}"
            raise NotScorable(f"{where} has a type that is not text", official)
        if type_ not in printed:
            continue
        if isinstance(wanted, str):
            return wanted.index(type_) + 1
        if not isinstance(wanted, list):
            official = f"AttributeError: {type(wanted).__name__!r} object has no attribute 'index'"
            raise NotScorable(f"{where}: the gold has no list of types", official)
        if type_ not in wanted:
            part = "which is only a part of what the gold lists (evaluate --lenient continues)"
            message = f"{where} has the type {shown(type_)}, {part}"
            raise NotScorable(message, f"ValueError: {type_!r} is not in list")
        return wanted.index(type_) + 1
    return 0


def _honest(predictions: Entries, gold: Entries) -> dict[str, float]:
    """Accuracy and MRR as usual: over all gold questions, by the place in the first prediction of each."""
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
        wanted = set(answers.documents_of(question))
        ranked = answers.documents_of(answer)
        places = (place for place, document in enumerate(ranked, 1) if document in wanted)
        if place := next(places, 0):
            reciprocals += 1 / place
    return {"accuracy": right / len(questions), MEASURE: reciprocals / len(questions)}


def _warnings(results: Sequence[_Result], gold: Entries, honest: Mapping[str, float]) -> Iterator[str]:
    """Where the official figures mislead, as sentences."""
    answered = {_key(result.id) for result in results if result.question is not None}
    late = sum(result.rank > 1 for result in results)
    if late:
        yield (
            f"{late} of {len(results)} predictions get the place of the type in the gold list, whose order means "
            "nothing, as their rank: by the place in the prediction, over all questions, MRR is "
            f"{honest[MEASURE]:.6f}"
        )
    missing = len({_key(entry.get("id")) for entry in gold} - answered)
    if missing:
        yield f"{counted(missing, 'question')} of the gold without a prediction, left out by the official scorer"
    unknown = sum(result.question is None for result in results)
    if unknown:
        yield (
            f"{counted(unknown, 'prediction')} for questions that the gold does not have: wrong in the accuracy, and "
            "not in MRR"
        )
    repeated = len(results) - unknown - len(answered)
    if repeated:
        yield f"{counted(repeated, 'prediction')} for a question that has one already; the official scorer counts each"


def _qrels(gold: Entries) -> Qrels:
    """The grades of each question; of one that comes again those of its first entry."""
    found = {str(entry.get("id")): answers.documents_of(entry) for entry in reversed(gold)}
    return {question: dict.fromkeys(documents, 1) for question, documents in reversed(found.items())}


class WholeLabels:
    """The labels of a vocabulary, by those that they are a part of; labels that it lacks are not looked at."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        # Longest first, so that the order is the same whatever the order of the vocabulary.
        self._printed = {
            label: str([label]) for label in sorted(vocabulary, key=lambda one: (-len(str([one])), one))
        }
        self._known: dict[str, tuple[str, ...]] = {}

    def wholes(self, label: str) -> Sequence[str]:
        """The other labels of the vocabulary that a label is a part of when they are printed, the longest first."""
        if label not in self._known:
            self._known[label] = tuple(
                other for other, printed in self._printed.items() if label in printed and other != label
            )
        return self._known[label]

    def completed(self, labels: Iterable[str]) -> list[str]:
        """The labels, in their order, each behind all those of the vocabulary that it is a part of."""
        found: dict[str, None] = {}
        for label in labels:
            self._add(label, found, set())
        return list(found)

    def _add(self, label: str, found: dict[str, None], above: set[str]) -> None:
        if label in found or label in above:
            return
        for whole in self.wholes(label):
            self._add(whole, found, above | {label})
        found[label] = None
