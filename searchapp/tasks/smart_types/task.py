"""Answer type prediction for questions over DBpedia and Wikidata (SMART 2020 and 2021).

A topic is a question, the documents are the answer types (see `answers`). Only the train file has gold; its splits
are the folds of `tasks.splits`.

DBpedia has a type hierarchy. Wikidata types are labels without a published list: the documents are the labels of the
whole train file. This uses no gold: which question has a label is not read. Other labels can't be predicted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

from searchapp.files import first_existing, read_bytes
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Run, Topic
from searchapp.tasks.base import (
    CachedReader,
    DataSplit,
    DocumentSource,
    Grades,
    TaskInfo,
    Writer,
    json_writer,
    shipped,
)
from searchapp.tasks.smart_types import answers, scorer_dbpedia
from searchapp.tasks.smart_types.answers import RESOURCE, TypesQuestion
from searchapp.tasks.smart_types.scorer_dbpedia import HIERARCHY, Hierarchy, SmartTypesDbpediaScorer, gains
from searchapp.tasks.smart_types.scorer_dbpedia import MEASURE as MEASURE_DBPEDIA
from searchapp.tasks.smart_types.scorer_wikidata import MEASURE as MEASURE_WIKIDATA
from searchapp.tasks.smart_types.scorer_wikidata import SmartTypesWikidataScorer, WholeLabels
from searchapp.tasks.splits import (
    FOLD_NAMES,
    AnswersFormat,
    FoldFiles,
    GoldReading,
    fold_task_info,
    words_of,
)

# The first words of questions for each type of the categories other than resource.
OPENINGS: Mapping[str, tuple[str, ...]] = {
    "boolean:boolean": (
        *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will"),
        *("is it", "did the", "is the", "was the", "does the", "true or"),
    ),
    "literal:date": (
        *("when", "what year", "which year", "what date", "what time"),
        *("in which year", "in what year"),
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

# The words of these types; a resource type has its name.
MEANINGS = {
    "boolean:boolean": "yes or no, true or false",
    "literal:date": "date day month year time birth death begin end founding inception",
    "literal:number": "number count amount quantity population total height length area mass percentage",
    "literal:string": "string identifier ID code title nickname motto spelling symbol postal",
}

# The first words of questions for resource types with these names.
RESOURCE_OPENINGS = {
    "person": ("who", "whose", "whom", "name the person", "who is", "who was"),
    "place": ("where", "where is", "where was", "where did", "in which place"),
}


KnowledgeBaseScorer = SmartTypesDbpediaScorer | SmartTypesWikidataScorer


def _task_info(key: str, name: str, measure: str) -> TaskInfo:
    return fold_task_info(
        name=f"smart-types-{key}",
        title=f"Answer type prediction for questions over {name} (SMART)",
        about=f"For a question, predict the category of its answer and rank the types of {name}.",
        mapping="types",
        official_measure=measure,
        official_file=f"task1_{key}_predictions.json",
        measures=("AP", "RR", "P@1", "R@5", "R@10", "nDCG@10"),
        grades=("not the type", "the type"),
        guidelines=Path(__file__).with_name("guidelines.md"),
    )


class TypesCollection(FoldFiles):
    """The types of a knowledge base, a train file and a test file, which lacks gold in some years."""

    # The official names of the train and test files over the years; the first existing file is read.
    names: ClassVar[Mapping[str, tuple[str, ...]]]
    # The files that the official scorer needs in addition to the questions.
    more_gold: Sequence[Path] = ()

    def __init__(self, info: TaskInfo, folder: Path) -> None:
        documents = DocumentSource(self.type_files, self._read_documents)
        super().__init__(info, folder, documents, lambda name: first_existing(folder, self.names[name]))

    @abstractmethod
    def type_files(self) -> list[Path]:
        """Return the files of the types."""

    @abstractmethod
    def resource_types(self, problems: Problems) -> Iterator[Document]:
        """Read the types as documents."""

    @abstractmethod
    def votes(self, question: TypesQuestion) -> Mapping[str, float]:
        """Return the votes of a training topic, by document."""

    def complete(self, category: str, types: Sequence[str]) -> Sequence[str]:
        """Return the official file's list for a category and its types, best first."""
        return types

    def gold_files(self, split: str) -> list[Path]:
        return [*super().gold_files(split), *self.more_gold]

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[TypesQuestion]:
        return answers.read_questions(
            path, problems, bom=self.bom, known=gold.known, gold=not gold.skipped, masked=gold.masked
        )

    def example(self, question: TypesQuestion) -> Example | None:
        return Example(Topic(question.id, question.text), self.votes(question)) if question.has_gold else None

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        category, types = _answer(grades)
        return Example(topic, self.votes(TypesQuestion(topic.id, topic.text, category, types)))

    def _read_documents(self, problems: Problems) -> Iterator[Document]:
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
        yield from self.resource_types(problems)


@dataclass(frozen=True, slots=True)
class TypesFormat(AnswersFormat[answers.TypesPredictions, TypesCollection]):
    """A category and a list of types for each question."""

    noun = "type"
    lack = "it has no valid prediction"

    info: TaskInfo
    bom: bool
    scorer: KnowledgeBaseScorer

    @property
    def breakdowns(self) -> KnowledgeBaseScorer:
        return self.scorer

    def entries(self, run: Run, split: DataSplit[TypesCollection]) -> Iterable[Mapping[str, Any]]:
        return self.predictions(run, split).entries

    def predictions(self, run: Run, split: DataSplit[TypesCollection]) -> answers.TypesPredictions:
        return answers.predictions_of_run(run, split.collection.complete)

    def read(
        self, path: Path, problems: Problems, split: DataSplit[TypesCollection] | None
    ) -> Iterator[answers.TypesPrediction]:
        known = None if split is None else split.collection.known_ids()
        return answers.read_predictions(path, problems, bom=self.bom, known=known)

    def gold(self, grades: Grades, split: DataSplit[TypesCollection]) -> Mapping[str, Writer]:
        texts = {topic.id: topic.text for topic in split.topics(Problems(lenient=True))}
        official = split.collection.official_ids(split.name)
        gold = []
        for question, of_topic in grades.items():
            category, types = _answer(of_topic)
            entry = {"id": official.get(question, question), "question": texts.get(question, question)}
            gold.append({**entry, "category": category, "type": types})
        questions_file = split.collection.file(split.name)
        # The scorer's other gold files, such as a hierarchy, do not depend on the judges.
        other_files = {path.name: _copy_of(path) for path in split.collection.more_gold}
        return {questions_file.name: json_writer(gold), **other_files}

    def grades(
        self,
        files: Sequence[Path],
        split: DataSplit[TypesCollection],
    ) -> Grades:
        # Without a hierarchy among the files, the scorer drops types that the hierarchy of the data lacks.
        gold = files if len(files) > 1 else [*files, *split.collection.more_gold]
        return self.scorer.qrels(split.gold(gold))


def resource_document(type_: str, words: str, ancestors: list[str]) -> Document:
    """Return the document of a resource type; `words` is its displayed name."""
    fields: dict[str, object] = {"type": type_, "category": RESOURCE}
    if ancestors:
        fields["ancestors"] = ancestors
    if words in RESOURCE_OPENINGS:
        fields["asked"] = list(RESOURCE_OPENINGS[words])
    return Document(answers.document_id(RESOURCE, type_), words, fields)


def _answer(grades: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """Return the category of the best graded document, and its relevant types."""
    relevant = (document for document, grade in grades.items() if grade > 0)
    types = [
        answers.category_and_type(document)
        for document in sorted(relevant, key=lambda document: -grades[document])
    ]
    category = types[0][0] if types else ""
    return category, tuple(type_ for of_category, type_ in types if of_category == category)


def _copy_of(path: Path) -> Writer:
    return lambda file: file.write(read_bytes(path))


# The official names of 2021, of 2020, and of 2020 for the test file without gold.
FILES_DBPEDIA = {
    "train": ("task1_dbpedia_train.json", "smarttask_dbpedia_train.json"),
    "test": (
        "task1_dbpedia_test.json",
        "smarttask_dbpedia_test.json",
        "smarttask_dbpedia_test_questions.json",
    ),
}

# Types of the official gold that the official hierarchy lacks; the scorer drops them.
UNLISTED = frozenset({"dbo:Location"})


class DbpediaCollection(TypesCollection):
    """The types of a hierarchy."""

    names = FILES_DBPEDIA

    def __init__(self, info: TaskInfo, folder: Path) -> None:
        super().__init__(info, folder)
        path = folder / HIERARCHY
        self.more_gold = [path]
        self._hierarchy = CachedReader(lambda problems: scorer_dbpedia.read_hierarchy(path, problems))
        self._cached_gains = cache(self._gains)

    def type_files(self) -> list[Path]:
        return [self.folder / HIERARCHY]

    def resource_types(self, problems: Problems) -> Iterator[Document]:
        hierarchy = self._hierarchy(problems)
        if not hierarchy.has_circles():
            for type_, path in hierarchy.paths.items():
                yield resource_document(type_, _words(type_), [_words(step) for step in path[1:]])

    def known_ids(self) -> Set[str] | None:
        hierarchy = self._known_hierarchy()
        # Without a hierarchy every type would be unknown: its reader reports that.
        return frozenset(hierarchy.depths) | UNLISTED if hierarchy.depths else None

    def votes(self, question: TypesQuestion) -> Mapping[str, float]:
        """Return the gain of each type for this question's gold: votes add up to expected gains."""
        if question.category != RESOURCE:
            return {answers.document_id(str(question.category), type_): 1.0 for type_ in question.types}
        return self._cached_gains(question.types)

    def _gains(self, types: tuple[str, ...]) -> Mapping[str, float]:
        hierarchy = self._known_hierarchy()
        listed = [type_ for type_ in types if type_ in hierarchy]
        if not listed:
            return {}
        return {
            answers.document_id(RESOURCE, type_): gain for type_, gain in gains(listed, hierarchy).items()
        }

    def _known_hierarchy(self) -> Hierarchy:
        # The reader of the documents reports the problems.
        return self._hierarchy(Problems(lenient=True))


def _words(type_: str) -> str:
    return words_of(type_.rpartition(":")[2])


DBPEDIA = _task_info("dbpedia", "DBpedia", MEASURE_DBPEDIA)
TASK_DBPEDIA = shipped(
    DBPEDIA,
    partial(DbpediaCollection, DBPEDIA),
    TypesFormat(DBPEDIA, bom=False, scorer=SmartTypesDbpediaScorer()),
)


# The official names of 2021, of 2020, and of 2020 for the test file without gold.
FILES_WIKIDATA = {
    "train": ("task1_wikidata_train.json", "lcquad2_anstype_wikidata_train.json"),
    "test": (
        "task1_wikidata_test.json",
        "lcquad2_anstype_wikidata_test_gold.json",
        "lcquad2_anstype_wikidata_test.json",
    ),
}

# The vote of a training topic for a literal or boolean; votes for resource types are scattered.
LITERAL_VOTE = 0.5


class WikidataCollection(TypesCollection):
    """The labels in the train file."""

    names = FILES_WIKIDATA
    bom = True

    def __init__(self, info: TaskInfo, folder: Path) -> None:
        super().__init__(info, folder)
        self._whole_labels = cache(lambda: WholeLabels(self._labels(Problems(lenient=True))))

    def type_files(self) -> list[Path]:
        return [self.file(FOLD_NAMES[0])]

    def resource_types(self, problems: Problems) -> Iterator[Document]:
        # The check of the splits reports the problems of the train file, unless it is missing.
        own_problems = Problems(lenient=True) if self.type_files()[0].is_file() else problems
        for label in self._labels(own_problems):
            yield resource_document(label, label, [])

    def _labels(self, problems: Problems) -> list[str]:
        labels: set[str] = set()
        for question in self.questions(self.type_files()[0], problems, GoldReading()):
            if question.category == RESOURCE:
                labels.update(question.types)
        return sorted(labels)

    def complete(self, category: str, types: Sequence[str]) -> Sequence[str]:
        """Put each type behind the types that contain it, so that the official scorer does not stop."""
        return self._whole_labels().complete(types) if category == RESOURCE else types

    def known_ids(self) -> Set[str] | None:
        return None

    def votes(self, question: TypesQuestion) -> Mapping[str, float]:
        """Return 1 / sqrt(rank) for resource types, in the order of the gold, which the scorer uses."""
        if question.category != RESOURCE:
            return {
                answers.document_id(str(question.category), type_): LITERAL_VOTE for type_ in question.types
            }
        return {
            answers.document_id(RESOURCE, type_): rank**-0.5 for rank, type_ in enumerate(question.types, 1)
        }


class WikidataFormat(TypesFormat):
    """The format for Wikidata, which reports types that stop the official scorer because a label contains them."""

    def validate(
        self,
        path: Path,
        split: DataSplit[TypesCollection] | None,
        problems: Problems,
    ) -> None:
        super().validate(path, split, problems)
        if split is None or problems.stopped or split.collection.is_masked(split.name):
            return
        assert isinstance(self.scorer, SmartTypesWikidataScorer)
        predictions = list(answers.read_predictions(path, Problems(lenient=True), bom=True))
        for prediction, error in self.scorer.stopping_predictions(
            predictions, split.collection.file(split.name), split.name
        ):
            detail = f"{error.problem}; the official scorer fails there ({error.official})"
            problems.add(path, "part of a label", f"line {prediction.line}", detail)


WIKIDATA = _task_info("wikidata", "Wikidata", MEASURE_WIKIDATA)
TASK_WIKIDATA = shipped(
    WIKIDATA,
    partial(WikidataCollection, WIKIDATA),
    WikidataFormat(WIKIDATA, bom=True, scorer=SmartTypesWikidataScorer()),
)
