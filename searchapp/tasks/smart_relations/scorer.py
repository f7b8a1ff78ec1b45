"""The official scorer of relation prediction (SMART 2021), for DBpedia and Wikidata.

It computes precision, recall and F1 of each question, and their means over all gold questions (macro figures). The
call for participation announced micro F1, which is `Micro F1` among the honest figures.

For DBpedia the gold is a list of slots, each a list of interchangeable relations. A predicted relation is right if
any slot has it, however often it is repeated. Each slot in turn is filled by its first relation that is still unused
among the predicted ones, which is not always the best assignment. The honest figures use the best assignment, and
count a repeated relation at most once for each of its slots.

For Wikidata the gold is flat, and gold and prediction are compared as multisets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import Breakdown, BreakdownRow, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.formats.json_files import load_list
from searchapp.formats.problems import shown
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Run
from searchapp.tasks.splits import in_split
from searchapp.text import choices_hint, counted, have

MEASURES = ("Precision", "Recall", "F1")


class RelationCounts(NamedTuple):
    """Counts of one question: predicted relations, right ones, gold slots, filled ones."""

    predicted: int = 0
    right: int = 0
    slots: int = 0
    filled: int = 0

    def figures(self) -> dict[str, float]:
        """Return precision, recall and F1; a division by 0 gives 0."""
        precision = self.right / self.predicted if self.predicted else 0.0
        recall = self.filled / self.slots if self.slots else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return dict(zip(MEASURES, (precision, recall, f1), strict=True))


def count_slots(predicted: Any, gold: Any, where: str) -> tuple[RelationCounts, RelationCounts]:
    """Return the official and the honest counts of a DBpedia question."""
    if not isinstance(predicted, list):
        kind = type(predicted).__name__
        raise NotScorable(
            f"{where}: the predicted relations must be a list, not {json_name(predicted)}",
            f"AttributeError: '{kind}' object has no attribute 'copy'",
        )
    if not isinstance(gold, list) or not all(isinstance(slot, list | str) for slot in gold):
        raise DataError(f"{where}: the gold relations must be a list of lists")
    if not predicted or not gold:
        what = "predicted relations" if not predicted else "gold relations"
        raise NotScorable(f"{where} has no {what}", "ZeroDivisionError: division by zero")
    # Like the official script, iterate over the letters of a slot that is a text.
    accepted = [relation for slot in gold for relation in slot]
    right = sum(relation in accepted for relation in predicted)
    unused, filled = list(predicted), 0
    for slot in gold:
        for relation in slot:
            if relation in unused:
                unused.remove(relation)
                filled += 1
                break
    slots = [[slot] if isinstance(slot, str) else slot for slot in gold]
    return (
        RelationCounts(len(predicted), right, len(gold), filled),
        RelationCounts(
            len(predicted), _count_right_once(predicted, slots), len(gold), _best_assignment(predicted, slots)
        ),
    )


def _count_right_once(predicted: Sequence[Any], slots: Sequence[Sequence[Any]]) -> int:
    """Count the right predicted relations, a repeated one at most once for each slot that has it."""
    return sum(
        predicted[:index].count(relation) < sum(relation in slot for slot in slots)
        for index, relation in enumerate(predicted)
    )


def _best_assignment(predicted: Sequence[Any], slots: Sequence[Sequence[Any]]) -> int:
    """Return the greatest number of slots that distinct predictions can fill (Kuhn's algorithm)."""
    slot_of: dict[int, int] = {}  # by the index of the predicted relation

    def fill(slot: int, visited: set[int]) -> bool:
        for index, relation in enumerate(predicted):
            if relation in slots[slot] and index not in visited:
                visited.add(index)
                if index not in slot_of or fill(slot_of[index], visited):
                    slot_of[index] = slot
                    return True
        return False

    return sum(fill(slot, set()) for slot in range(len(slots)))


def count_multisets(predicted: Any, gold: Any, where: str) -> tuple[RelationCounts, RelationCounts]:
    """Return the official and the honest counts of a Wikidata question, which are equal."""
    for what, relations in (("predicted", predicted), ("gold", gold)):
        if isinstance(relations, dict):
            raise DataError(f"{where}: the {what} relations must be a list, not an object")
        if not isinstance(relations, list | str):
            raise NotScorable(
                f"{where}: the {what} relations must be a list, not {json_name(relations)}",
                f"TypeError: object of type '{type(relations).__name__}' has no len()",
            )
    if not predicted:
        counts = RelationCounts(slots=len(gold))
        return counts, counts
    for what, relations in (("predicted", predicted), ("gold", gold)):
        nested = next((relation for relation in relations if isinstance(relation, list | dict)), None)
        if nested is not None:
            raise NotScorable(
                f"{where}: the {what} relations must be a flat list",
                f"TypeError: unhashable type: '{type(nested).__name__}'",
            )
    if not gold:
        raise NotScorable(f"{where} has no gold relations", "ZeroDivisionError: division by zero")
    common = (Counter(predicted) & Counter(gold)).total()
    counts = RelationCounts(len(predicted), common, len(gold), common)
    return counts, counts


def json_name(value: Any) -> str:
    """Return the name of a value's JSON type, with its article."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


MICRO_MEASURES = ("Micro precision", "Micro recall", "Micro F1")
KNOWLEDGE_BASES = ("dbpedia", "wikidata")
OTHER_GROUP = "(other)"
_COMMON_WORDS = 15


@dataclass(frozen=True, slots=True)
class CutOff:
    """Cuts a ranking to the list of relations in the official file.

    The list has the first relation, and at most `most` in all whose score is at least `share` of the first score. It
    skips a relation that differs from a listed one only in namespace or letter case (`dbo:birthPlace`,
    `dbp:birthplace`).
    """

    share: float
    most: int

    def answer(self, hits: Hits) -> list[str]:
        """Return the relations of a ranking that form the answer, best first."""
        answer: dict[str, str] = {}
        for relation, score in hits:
            if answer and not (score >= self.share * hits.scores[0] > 0):
                break
            answer.setdefault(relation.rpartition(":")[2].lower(), relation)
            if len(answer) == self.most:
                break
        return list(answer.values())


@dataclass(frozen=True, slots=True)
class RelationPredictions:
    """The unchecked predictions of a file or a run, by id."""

    answers: Mapping[Any, Any]
    # The rankings of a run, whose ids are always text. General measures use them instead of the answers.
    rankings: Mapping[str, Sequence[str]] | None = None
    # About entries that the official script skips.
    warnings: tuple[str, ...] = ()
    # The name of the file.
    source: str = "the run"

    def key(self, id_: Any) -> Any:
        """Return the id under which a gold question is answered."""
        return id_ if self.rankings is None else str(id_)


@dataclass(frozen=True, slots=True)
class _ScoredQuestion:
    name: str
    text: str
    gold: Any
    official: RelationCounts
    honest: RelationCounts


class RelationScorer:
    """The official scorer of one of the two tasks."""

    files_make_one = False

    def __init__(self, knowledge_base: str, cut_off: CutOff) -> None:
        self._knowledge_base = knowledge_base
        self._cut_off = cut_off
        self.breakdowns: tuple[str, ...] = ("relations", "first-word")
        if knowledge_base == "dbpedia":
            self.breakdowns += ("namespace",)

    def read(self, files: Sequence[Path]) -> RelationPredictions:
        """Return the predictions of a file with `relations`, the last one of each id."""
        (path,) = files
        answers: dict[Any, Any] = {}
        skipped = repeated = 0
        for number, entry in enumerate(load_list(path, "predictions"), 1):
            id_ = _id_of(entry, path, number)
            if "relations" not in entry:
                skipped += 1
                continue
            repeated += id_ in answers
            answers[id_] = entry["relations"]
        warnings = []
        if skipped:
            warnings.append(f"{path}: {counted(skipped, 'prediction')} without `relations` skipped")
        if repeated:
            warnings.append(
                f"{path}: {counted(repeated, 'prediction')} with a repeated id: the last one counts"
            )
        return RelationPredictions(answers, warnings=tuple(warnings), source=str(path))

    def predictions(self, run: Run) -> RelationPredictions:
        return RelationPredictions(
            {ranking.topic_id: self._cut_off.answer(ranking.hits) for ranking in run},
            {ranking.topic_id: ranking.document_ids() for ranking in run},
        )

    def qrels(self, gold: GoldFiles) -> Qrels:
        return _qrels(self._scored_questions(RelationPredictions({}), gold))

    def score(self, predictions: RelationPredictions, gold: GoldFiles) -> Scored:
        questions = self._scored_questions(predictions, gold)
        if not questions:
            raise NotScorable(
                f"{gold.file} contains no question to score", "ZeroDivisionError: division by zero"
            )
        per_topic = {question.name: question.official.figures() for question in questions}
        official = OfficialScore(
            "F1",
            _means(per_topic.values()),
            per_topic,
            (*predictions.warnings, *_warnings(questions)),
            _honest(questions),
        )
        rankings = predictions.rankings
        if rankings is None:
            names = {str(id_) for id_ in predictions.answers}
            answered_names = {question.name for question in questions} & names
            rankings = {
                str(id_): list(_relations(answer))
                for id_, answer in predictions.answers.items()
                if str(id_) in answered_names
            }
        return Scored(official, len(questions), rankings, _qrels(questions))

    def breakdown(
        self, predictions: RelationPredictions, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        questions = self._scored_questions(predictions, gold)
        for name in wanted:
            if name == "relations":
                yield _breakdown(name, "by number of gold relations", questions, _size)
            elif name == "first-word":
                title = f"by the {_COMMON_WORDS} most frequent first words of the question"
                yield _breakdown(name, title, questions, _common_first_word(questions))
            elif name == "namespace":
                yield _breakdown(name, "by namespaces of the gold relations", questions, _namespaces)

    def _scored_questions(self, predictions: RelationPredictions, gold: GoldFiles) -> list[_ScoredQuestion]:
        """Return the gold questions with their counts, in the order of the file; a repeated id has its last entry."""
        path, split = gold.file, gold.options.split
        knowledge_base = gold.options.knowledge_base or self._knowledge_base
        entries: dict[Any, dict[str, Any]] = {}
        for number, entry in enumerate(load_list(path, "questions"), 1):
            id_ = _id_of(entry, path, number)
            if "relations" not in entry:
                raise NotScorable(
                    f"{path}: question {shown(str(id_))} has no `relations`", "KeyError: 'relations'"
                )
            if in_split(split, str(id_)):
                entries[id_] = entry
        if knowledge_base not in KNOWLEDGE_BASES:
            raise NotScorable(
                f"unknown knowledge base {choices_hint(knowledge_base, KNOWLEDGE_BASES)}",
                f"Exception: Invalid KB: {knowledge_base}",
            )
        count = count_slots if knowledge_base == "dbpedia" else count_multisets
        names: dict[str, None] = {}
        questions = []
        for id_, entry in entries.items():
            # The number 4 and the text "4" are two questions; the later one in the file gets the longer name.
            name = str(id_)
            if name in names:
                name = f"{name} ({type(id_).__name__})"
            names[name] = None
            where = f"question {shown(str(id_))}"
            key = predictions.key(id_)
            if key in predictions.answers and isinstance(predictions.answers[key], dict):
                # The official script would read the keys of an object, which no user intends.
                raise DataError(
                    f"{predictions.source}: {where}: the predicted relations must be a list, not an object"
                )
            if key in predictions.answers:
                counts, honest = count(predictions.answers[key], entry["relations"], where)
            else:
                size = len(entry["relations"]) if isinstance(entry["relations"], list) else 0
                counts = honest = RelationCounts(slots=size)
            text = entry.get("question")
            questions.append(
                _ScoredQuestion(
                    name, text if isinstance(text, str) else "", entry["relations"], counts, honest
                )
            )
        return questions


def _qrels(gold: Sequence[_ScoredQuestion]) -> Qrels:
    return {question.name: dict.fromkeys(_relations(question.gold), 1) for question in gold}


def _honest(questions: Sequence[_ScoredQuestion]) -> dict[str, float]:
    honest: dict[str, float] = {}
    official = _means(question.official.figures() for question in questions)
    macro = _means(question.honest.figures() for question in questions)
    honest |= {name: value for name, value in macro.items() if value != official[name]}
    counts = [question.honest for question in questions]
    micro = RelationCounts(*map(sum, zip(*counts, strict=True))).figures()
    return honest | dict(zip(MICRO_MEASURES, micro.values(), strict=True))


def _warnings(questions: Sequence[_ScoredQuestion]) -> Iterator[str]:
    total = len(questions)
    if unanswered := sum(question.official.predicted == 0 for question in questions):
        yield f"{unanswered} of {total} questions {have(unanswered)} no predicted relation and the value 0"
    unfilled = sum(question.official.filled < question.honest.filled for question in questions)
    if flat := sum(isinstance(question.gold, list) and _is_letters(question) for question in questions):
        yield (
            f"the gold of {flat} of {total} questions is a flat list; the official scorer of DBpedia "
            "compares its letters, so nothing is right; the honest values read it as one relation per slot"
        )
    elif unfilled:
        yield (
            f"in {unfilled} of {total} questions, the official scorer leaves slots empty that "
            "predicted relations could fill; the honest values use the best assignment"
        )
    if inflated := sum(question.official.right > question.honest.right for question in questions):
        yield (
            f"{inflated} of {total} questions {have(inflated)} a predicted relation more often than "
            "the gold has slots for it, and each repeat counts as right, except in the honest values"
        )


def _is_letters(question: _ScoredQuestion) -> bool:
    # Only for DBpedia are slots that are texts read letter by letter.
    return question.official != question.honest and any(isinstance(slot, str) for slot in question.gold)


def _breakdown(
    name: str, title: str, questions: Sequence[_ScoredQuestion], group_of: Callable[[_ScoredQuestion], str]
) -> Breakdown:
    groups: dict[str, list[_ScoredQuestion]] = {}
    for question in questions:
        groups.setdefault(group_of(question), []).append(question)
    if name == "relations":
        order = sorted(groups, key=int)
    else:
        order = sorted(groups, key=lambda group: (group == OTHER_GROUP, -len(groups[group]), group))
    rows = tuple(
        BreakdownRow(
            group,
            len(groups[group]),
            _means(question.official.figures() for question in groups[group]),
            tuple(question.name for question in groups[group]),
        )
        for group in order
    )
    return Breakdown(name, title, rows, counted="questions")


def _size(question: _ScoredQuestion) -> str:
    return str(len(question.gold)) if isinstance(question.gold, list) else "0"


def _first_word(question: _ScoredQuestion) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in question.text.lower()).split()
    return words[0] if words else "(none)"


def _common_first_word(questions: Sequence[_ScoredQuestion]) -> Callable[[_ScoredQuestion], str]:
    words = Counter(map(_first_word, questions))
    common = {word for word, _count in words.most_common(_COMMON_WORDS)}
    return lambda question: word if (word := _first_word(question)) in common else OTHER_GROUP


def _namespaces(question: _ScoredQuestion) -> str:
    namespaces = sorted({relation.partition(":")[0] for relation in _relations(question.gold)})
    return " and ".join(namespaces) or "(none)"


def _relations(value: Any) -> Iterator[str]:
    entries = value if isinstance(value, list) else []
    flat = (inner for entry in entries for inner in (entry if isinstance(entry, list) else [entry]))
    yield from dict.fromkeys(relation for relation in flat if isinstance(relation, str))


def _means(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    rows = list(figures)
    return {name: math.fsum(row[name] for row in rows) / len(rows) for name in MEASURES}


def _id_of(entry: Mapping[str, Any], path: Path, number: int) -> Any:
    """Return the id with its JSON type: the number 4 is not the text "4"."""
    if "id" not in entry:
        raise NotScorable(f"{path}: entry {number} has no `id`", "KeyError: 'id'")
    id_ = entry["id"]
    if isinstance(id_, list | dict):
        raise NotScorable(
            f"{path}: entry {number}: the id is {json_name(id_)}, not a text",
            f"TypeError: unhashable type: '{type(id_).__name__}'",
        )
    return id_
