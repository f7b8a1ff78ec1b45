"""Relation prediction for questions over DBpedia and over Wikidata (SMART 2021).

A topic is a question, the documents are the relations of the official vocabulary, and the gold of a question are
the relations that its answer is found by. Only the train file has gold; its splits are the folds of
`tasks.folds`, each ranked with the questions of the other four as solved examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.smart_relations import CutOff, Predictions, RelationScorer
from searchapp.formats import smart_relations
from searchapp.formats.json_array import OfficialId, official_ids
from searchapp.formats.problems import Problems
from searchapp.formats.smart_relations import Question
from searchapp.model import Document, Example, Topic
from searchapp.tasks import folds
from searchapp.tasks.answered import check_answered, check_not_empty, require_answers
from searchapp.tasks.base import (
    Grades,
    OfficialFile,
    Part,
    Submission,
    Task,
    TaskInfo,
    Writer,
)
from searchapp.tasks.documents import DocumentSource
from searchapp.tasks.shipped import json_writer, shipped
from searchapp.tasks.split_files import TEST, SplitFiles

CUT_OFF = CutOff(share=0.65, most=3)
"""How much of a ranking is the answer; see docs/smart-relations.md for the choice."""


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """What the two tasks differ in.

    `key` is how files and scorer call the knowledge base, `name` how people do. With `slots` the gold has slots of
    interchangeable relations.
    """

    key: str
    name: str
    read_vocabulary: Callable[[Path, Problems], Iterator[Document]]
    slots: bool


def task(base: KnowledgeBase) -> Task:
    """The task for one knowledge base."""
    scorer = RelationScorer(base.key, CUT_OFF, folds.in_split)
    info = TaskInfo(
        name=f"smart-relations-{base.key}",
        title=f"Relation prediction for questions over {base.name} (SMART 2021)",
        about=f"For a question, find the relations of {base.name} that lead to its answer.",
        mapping="relations",
        examples_mapping="questions",
        splits=(*folds.NAMES, TEST),
        default_recipe="neighbours",
        default_depth=100,
        official_measure="F1",
        official_file=f"smart-2021-rl-{base.key}-predictions.json",
        measures=("AP", "RR", "R@1", "R@2", "R@5", "R@10", "R@50", "R@100"),
        grades=("not the relation", "the relation"),
    )
    return shipped(info, partial(RelationsCollection, info, base), RelationsFormat(info, base, scorer))


class RelationsCollection(SplitFiles):
    """A vocabulary, a train file and a test file without gold."""

    def __init__(self, info: TaskInfo, base: KnowledgeBase, folder: Path) -> None:
        def named(what: str) -> Path:
            return folder / f"smart-2021-rl-{base.key}-{what}.json"

        vocabulary = named("relation-vocabulary")
        documents = DocumentSource(
            lambda: [vocabulary], lambda problems: base.read_vocabulary(vocabulary, problems)
        )
        super().__init__(
            info,
            folder,
            documents,
            lambda split: named("test-questions" if split == TEST else "train"),
            examples=folds.NAMES[0],
        )
        self._base = base

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = smart_relations.read_questions(
            self.file(split), problems, slots=self._base.slots, gold=False
        )
        return [_topic(question) for question in questions if folds.in_split(split, question.id)]

    def check_split(self, split: str, problems: Problems) -> int:
        return sum(1 for _ in self._questions(self.file(split), problems, masked=split == TEST))

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        self.info.require_split(split)
        return tuple(fold for fold in folds.NAMES if fold != split)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        solving = self.solved_splits(split)
        (path,) = self.example_files(split)
        for question in self._questions(path, problems):
            solved = bool(question.slots)
            if solved and folds.fold_of(question.id) in solving:
                yield Example(_topic(question), _votes(question))

    def solved(self, path: Path) -> Iterable[bool]:
        questions = smart_relations.read_questions(
            path, Problems(lenient=True), slots=self._base.slots, masked=True
        )
        return (question.slots is not None for question in questions)

    def _questions(self, path: Path, problems: Problems, *, masked: bool = False) -> Iterator[Question]:
        return smart_relations.read_questions(
            path, problems, slots=self._base.slots, known=self.known_ids(), masked=masked
        )


@dataclass(frozen=True, slots=True)
class RelationsFormat:
    """A list of relations for each question."""

    info: TaskInfo
    base: KnowledgeBase
    scorer: RelationScorer

    @property
    def breakdowns(self) -> RelationScorer:
        return self.scorer

    def files(self, submission: Submission[RelationsCollection]) -> Mapping[str, Writer]:
        require_answers(submission.run, "relation")
        official = _official_ids(submission.part)
        answers = [
            (official.get(ranking.topic_id, ranking.topic_id), CUT_OFF.answer(ranking.hits))
            for ranking in submission.run
        ]
        return {self.info.official_file: lambda file: smart_relations.write_predictions(file, answers)}

    def predictions(self, submission: Submission[RelationsCollection]) -> Predictions:
        return self.scorer.predictions(submission.run)

    def validate(self, file: OfficialFile[RelationsCollection], problems: Problems) -> None:
        path, part = file.path, file.part
        if part is None:
            check_not_empty(path, smart_relations.read_predictions(path, problems), problems)
            return
        needed = Problems(lenient=True)
        topics = {topic.id for topic in part.topics(needed)}
        vocabulary = frozenset(document.id for document in part.collection.documents.read(needed))
        needed.raise_if_any()
        official = _official_ids(part)
        questions = {text: id_ for text, id_ in official.items() if folds.in_split(part.split, text)}
        given = smart_relations.read_predictions(path, problems, vocabulary)
        lack = "it has no good prediction and would score 0"
        check_answered(path, given, questions, topics, part.split, problems, lack)

    def gold(self, grades: Grades, part: Part[RelationsCollection]) -> Mapping[str, Writer]:
        def relations(of_topic: Mapping[str, int]) -> Sequence[str | list[str]]:
            found = [relation for relation, grade in of_topic.items() if grade > 0]
            return [[relation] for relation in found] if self.base.slots else found

        official = _official_ids(part)
        gold = [
            {"id": official.get(question, question), "relations": relations(of_topic)}
            for question, of_topic in grades.items()
        ]
        (path,) = part.files
        return {path.name: json_writer(gold)}

    def grades(self, files: Sequence[Path], part: Part[RelationsCollection]) -> Grades:
        return self.scorer.qrels(GoldFiles(files, ScorerOptions(split=part.split)))


def _official_ids(part: Part[RelationsCollection]) -> Mapping[str, OfficialId]:
    (path,) = part.files
    return official_ids(path)


def _topic(question: Question) -> Topic:
    return Topic(question.id, question.text)


def _votes(question: Question) -> dict[str, float]:
    """The votes of a solved question: one for each slot, shared by the relations that may fill it."""
    votes: dict[str, float] = {}
    for slot in question.slots or ():
        for relation in slot:
            votes[relation] = votes.get(relation, 0.0) + 1 / len(slot)
    return votes
