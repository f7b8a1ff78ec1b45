"""Answer type prediction for questions over DBpedia and over Wikidata (SMART 2020 and 2021).

A topic is a question, the documents are the answer types: those of the knowledge base for the category
`resource`, `boolean:boolean`, `literal:date`, `literal:number` and `literal:string` for the others, so that one
ranking says category and types (see `evaluation.smart_types`). Only the train file has gold; its splits are the
folds of `tasks.folds`, each ranked with the questions of the other four as solved examples.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from searchapp.errors import UsageError
from searchapp.evaluation import smart_types as answers
from searchapp.evaluation.base import Scorer, ScorerOptions
from searchapp.files import first_there
from searchapp.formats import smart_types
from searchapp.formats.json_array import OfficialId, official_ids
from searchapp.formats.problems import Problems
from searchapp.formats.smart_types import RESOURCE, Question
from searchapp.inputs import read_bytes
from searchapp.model import Document, Example, Run, Topic
from searchapp.names import refused
from searchapp.tasks import folds
from searchapp.tasks.answered import check_answered
from searchapp.tasks.base import Grades, ShippedTask, Writer

TRAIN, TEST = "train", "test"

OPENINGS: Mapping[str, tuple[str, ...]] = {
    "boolean:boolean": (
        *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will"),
        *("is it", "did the", "is the", "was the", "does the", "true or"),
    ),
    "literal:date": (
        "when",
        "what year",
        "which year",
        "what date",
        "what time",
        "in which year",
        "in what year",
    ),
    "literal:number": (
        "how",
        "count",
        "how many",
        "how much",
        "how often",
        "how long",
        "how tall",
        "how big",
    ),
    "literal:string": (),
}
"""How questions open that ask for a type of the categories other than resource."""

MEANINGS = {
    "boolean:boolean": "yes or no, true or false",
    "literal:date": "date day month year time birth death begin end founding inception",
    "literal:number": "number count amount quantity population total height length area mass percentage",
    "literal:string": "string identifier ID code title nickname motto spelling symbol postal",
}
"""The words of those types; the words of a resource type are its name."""

RESOURCE_OPENINGS = {
    "person": ("who", "whose", "whom", "name the person", "who is", "who was"),
    "place": ("where", "where is", "where was", "where did", "in which place"),
}
"""How questions open that ask for a resource type of this name."""


class SmartTypes(ShippedTask):
    """The task for one knowledge base.

    `files` are the organisers' names, over the years, of the train file and of the test file: the first that is there
    is read. A byte-order mark may stand in the files with `bom`.
    """

    mapping = "types"
    examples_mapping: str | None = "questions"
    splits = (*folds.NAMES, TEST)
    topics_are_documents = False
    default_recipe = "neighbours"
    search_recipe = "words"
    default_depth = 100
    measures = ("AP", "RR", "P@1", "R@5", "R@10", "nDCG@10")
    grades = ("not the type", "the type")
    official_measure: str
    scorer: Scorer

    def __init__(
        self, knowledge_base: str, name: str, files: Mapping[str, tuple[str, ...]], *, bom: bool
    ) -> None:
        self.name = f"smart-types-{knowledge_base}"
        self.title = f"Answer type prediction for questions over {name} (SMART)"
        self.about = f"For a question, predict the category of its answer and rank the types of {name}."
        self.official_file = f"task1_{knowledge_base}_predictions.json"
        self._files = files
        self._bom = bom

    @abstractmethod
    def resource_types(self, data: Path, problems: Problems) -> Iterator[Document]:
        """The types of the knowledge base as documents."""

    @abstractmethod
    def known_types(self, data: Path) -> Container[str] | None:
        """The types that a question's resource may have; None if any may be there."""

    @abstractmethod
    def grades_of(self, data: Path, question: Question) -> Mapping[str, float]:
        """The votes of a solved question, by document."""

    def split_files(self, data: Path, split: str) -> list[Path]:
        return [self.split_file(data, split)]

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, split)

    def split_file(self, data: Path, split: str) -> Path:
        """The file of a split; the folds are in the train file."""
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {refused(split, self.splits)}")
        return first_there(data, self._files[TEST if split == TEST else TRAIN])

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        for document, meaning in MEANINGS.items():
            category, type_ = answers.category_and_type(document)
            # An alternative spelling of the same word would only make the name longer.
            fields = {
                "type": type_,
                "category": category,
                "meaning": meaning,
                "asked": list(OPENINGS[document]),
            }
            yield Document(document, type_, fields)
        yield from self.resource_types(data, problems)

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        questions = self._questions(self.split_file(data, split), problems, gold=False)
        return [_topic(question) for question in questions if folds.in_split(split, question.id)]

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        texts = {topic.id: topic.text for topic in self.topics(data, split, Problems(lenient=True))}
        official = self._official_ids(data, split)
        gold = [
            {
                "id": official.get(question, question),
                "question": texts.get(question, question),
                "category": category,
                "type": types,
            }
            for question, (category, types) in ((one, _answer(of_topic)) for one, of_topic in grades.items())
        ]
        text = json.dumps(gold, ensure_ascii=False, indent=1) + "\n"
        own = self.split_file(data, split)
        # The scorer's other gold files, such as a hierarchy, are what they are, whoever judges.
        others = (path for path in self.gold_files(data, split) if path != own)
        return {
            own.name: lambda file: file.write(text.encode()),
            **{path.name: _copied(path) for path in others},
        }

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        questions = self._questions(
            self.split_file(data, split), problems, known=self.known_types(data), masked=split == TEST
        )
        return sum(1 for _ in questions)

    def _questions(
        self,
        path: Path,
        problems: Problems,
        *,
        known: Container[str] | None = None,
        gold: bool = True,
        masked: bool = False,
    ) -> Iterator[Question]:
        return smart_types.read_questions(
            path, problems, bom=self._bom, known=known, gold=gold, masked=masked
        )

    def _official_ids(self, data: Path, split: str) -> Mapping[str, OfficialId]:
        """The ids of a split's file as they stand there: the scorer tells 7 from "7"."""
        return official_ids(self.split_file(data, split), bom=self._bom)

    def train_questions(self, data: Path, problems: Problems) -> Iterator[Question]:
        """The questions of the train file with their gold."""
        return self._questions(self.split_file(data, folds.NAMES[0]), problems, known=self.known_types(data))

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        self.split_file(data, split)  # for its error
        for question in self.train_questions(data, problems):
            solved = question.category is not None
            if solved and (split == TEST or not folds.in_split(split, question.id)):
                yield Example(_topic(question), self.grades_of(data, question))

    def judged_example(self, topic: Topic, grades: Mapping[str, float], data: Path) -> Example:
        category, types = _answer(grades)
        return Example(topic, self.grades_of(data, Question(topic.id, topic.text, category, types)))

    def example_files(self, data: Path, split: str) -> list[Path]:
        return [self.split_file(data, folds.NAMES[0])]

    def is_masked(self, data: Path, split: str) -> bool:
        if split != TEST:
            return False
        questions = list(self._questions(self.split_file(data, split), Problems(lenient=True), masked=True))
        return bool(questions) and all(question.category is None for question in questions)

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        for ranking in run:
            if not ranking.hits:
                return (
                    f"question {ranking.topic_id} has no type, and the official file needs one for each: "
                    "choose another recipe"
                )
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        official = self._official_ids(data, split)
        rows = [
            (official.get(ranking.topic_id, ranking.topic_id), *answers.prediction(ranking.hits))
            for ranking in run
        ]
        return {self.official_file: lambda file: smart_types.write_predictions(file, rows)}

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        if data is None or split is None:
            if not list(smart_types.read_predictions(path, problems, bom=self._bom)) and not len(problems):
                problems.add(path, "no prediction", detail="the list is empty", skippable=False)
            return
        needed = Problems(lenient=True)
        topics = {topic.id for topic in self.topics(data, split, needed)}
        for _document in self.documents(data, needed):
            pass
        needed.raise_if_any()
        questions = {
            text: id_ for text, id_ in self._official_ids(data, split).items() if folds.in_split(split, text)
        }
        given = smart_types.read_predictions(path, problems, bom=self._bom, known=self.known_types(data))
        check_answered(path, given, questions, topics, split, problems, "it has no good prediction")


def resource_document(type_: str, words: str, ancestors: list[str]) -> Document:
    """The document of a type of the knowledge base; `words` is its name as people write it."""
    fields: dict[str, object] = {"type": type_, "category": RESOURCE}
    if ancestors:
        fields["ancestors"] = ancestors
    if words in RESOURCE_OPENINGS:
        fields["asked"] = list(RESOURCE_OPENINGS[words])
    return Document(answers.document_id(RESOURCE, type_), words, fields)


def _topic(question: Question) -> Topic:
    return Topic(question.id, question.text)


def _answer(grades: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """The category and types that graded documents amount to: the category is that of the best one."""
    relevant = sorted(
        (document for document, grade in grades.items() if grade > 0), key=lambda one: -grades[one]
    )
    named = [answers.category_and_type(document) for document in relevant]
    category = named[0][0] if named else ""
    return category, tuple(type_ for of_category, type_ in named if of_category == category)


def _copied(path: Path) -> Writer:
    return lambda file: file.write(read_bytes(path))
