"""Relation prediction for questions over DBpedia and over Wikidata (SMART 2021).

A topic is a question, the documents are the relations of the official vocabulary, and the gold of a question are
the relations that its answer is found by. Only the train file has gold; its splits are the folds of
`tasks.folds`, each ranked with the questions of the other four as solved examples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from searchapp.errors import UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.smart_relations import CutOff, RelationScorer
from searchapp.formats import smart_relations
from searchapp.formats.json_array import official_ids
from searchapp.formats.problems import Problems
from searchapp.formats.smart_relations import Question
from searchapp.model import Document, Example, Run, Topic
from searchapp.names import refused
from searchapp.tasks import folds
from searchapp.tasks.answered import check_answered
from searchapp.tasks.base import Grades, ShippedTask, Writer

TEST = "test"

CUT_OFF = CutOff(share=0.65, most=3)
"""How much of a ranking is the answer; see docs/smart-relations.md for the choice."""

Vocabulary = Callable[[Path, Problems], Iterator[Document]]


class SmartRelations(ShippedTask):
    """The task for one knowledge base."""

    mapping = "relations"
    examples_mapping: str | None = "questions"
    splits = (*folds.NAMES, TEST)
    topics_are_documents = False
    default_recipe = "neighbours"
    search_recipe = "words"
    default_depth = 100
    official_measure = "F1"
    measures = ("AP", "RR", "R@1", "R@2", "R@5", "R@10", "R@50", "R@100")
    grades = ("not the relation", "the relation")

    def __init__(self, knowledge_base: str, name: str, read_vocabulary: Vocabulary, *, slots: bool) -> None:
        self.name = f"smart-relations-{knowledge_base}"
        self.title = f"Relation prediction for questions over {name} (SMART 2021)"
        self.about = f"For a question, find the relations of {name} that lead to its answer."
        self.official_file = f"smart-2021-rl-{knowledge_base}-predictions.json"
        self.scorer = RelationScorer(knowledge_base, CUT_OFF, folds.in_split)
        self._files = f"smart-2021-rl-{knowledge_base}"
        self._read_vocabulary = read_vocabulary
        self._slots = slots

    def split_files(self, data: Path, split: str) -> list[Path]:
        return [self._split_file(data, split)]

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, split)

    def _split_file(self, data: Path, split: str) -> Path:
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {refused(split, self.splits)}")
        return data / f"{self._files}-{'test-questions' if split == TEST else 'train'}.json"

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        return self._read_vocabulary(self._vocabulary_file(data), problems)

    def document_files(self, data: Path) -> list[Path]:
        return [self._vocabulary_file(data)]

    def _vocabulary_file(self, data: Path) -> Path:
        return data / f"{self._files}-relation-vocabulary.json"

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        questions = smart_relations.read_questions(
            self._split_file(data, split), problems, slots=self._slots, gold=False
        )
        return [_topic(question) for question in questions if folds.in_split(split, question.id)]

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        path = self._split_file(data, split)
        return sum(1 for _ in self._questions(path, data, problems, masked=split == TEST))

    def _questions(
        self, path: Path, data: Path, problems: Problems, *, masked: bool = False
    ) -> Iterator[Question]:
        own = Problems(lenient=True)  # those of the vocabulary are told by who reads its documents
        known = frozenset(document.id for document in self.documents(data, own))
        # Without any relation to compare with, every one would be unknown: one problem is enough.
        return smart_relations.read_questions(
            path, problems, slots=self._slots, known=known or None, masked=masked
        )

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        (path,) = self.example_files(data, split)
        for question in self._questions(path, data, problems):
            solved = bool(question.slots)
            if solved and (split == TEST or not folds.in_split(split, question.id)):
                yield Example(_topic(question), _grades(question))

    def example_files(self, data: Path, split: str) -> list[Path]:
        self._split_file(data, split)  # for its error
        return [self._split_file(data, folds.NAMES[0])]

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        def relations(of_topic: Mapping[str, int]) -> list[Any]:
            found = [relation for relation, grade in of_topic.items() if grade > 0]
            return [[relation] for relation in found] if self._slots else found

        path = self._split_file(data, split)
        official = official_ids(path)
        gold = [
            {"id": official.get(question, question), "relations": relations(of_topic)}
            for question, of_topic in grades.items()
        ]
        text = json.dumps(gold, ensure_ascii=False, indent=1) + "\n"
        return {path.name: lambda file: file.write(text.encode())}

    def is_masked(self, data: Path, split: str) -> bool:
        if split != TEST:
            return False
        path = self._split_file(data, split)
        read = smart_relations.read_questions(path, Problems(lenient=True), slots=self._slots, masked=True)
        questions = list(read)
        return bool(questions) and all(question.slots is None for question in questions)

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        for ranking in run:
            if not ranking.hits:
                return (
                    f"question {ranking.topic_id} has no relation, and the official file needs one for each: "
                    "choose another recipe"
                )
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        official = official_ids(self._split_file(data, split))
        answers = [
            (official.get(ranking.topic_id, ranking.topic_id), CUT_OFF.answer(ranking.hits))
            for ranking in run
        ]
        return {self.official_file: lambda file: smart_relations.write_predictions(file, answers)}

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        if data is None or split is None:
            if not list(smart_relations.read_predictions(path, problems)) and not len(problems):
                problems.add(path, "no prediction", detail="the list is empty", skippable=False)
            return
        needed = Problems(lenient=True)
        topics = {topic.id for topic in self.topics(data, split, needed)}
        vocabulary = frozenset(document.id for document in self.documents(data, needed))
        needed.raise_if_any()
        official = official_ids(self._split_file(data, split))
        questions = {text: id_ for text, id_ in official.items() if folds.in_split(split, text)}
        given = smart_relations.read_predictions(path, problems, vocabulary)
        lack = "it has no good prediction and would score 0"
        check_answered(path, given, questions, topics, split, problems, lack)


def _topic(question: Question) -> Topic:
    return Topic(question.id, question.text)


def _grades(question: Question) -> dict[str, float]:
    """The votes of a solved question: one for each slot, shared by the relations that may fill it."""
    grades: dict[str, float] = {}
    for slot in question.slots or ():
        for relation in slot:
            grades[relation] = grades.get(relation, 0.0) + 1 / len(slot)
    return grades
