"""The task `smart-types-dbpedia`: the types are those of a hierarchy."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from searchapp.evaluation import smart_types as answers
from searchapp.evaluation.base import Scorer
from searchapp.evaluation.lenient_ndcg import gains
from searchapp.evaluation.smart_types_dbpedia import HIERARCHY, MEASURE, SmartTypesDbpediaScorer
from searchapp.formats import type_hierarchy
from searchapp.formats.problems import Problems
from searchapp.formats.smart_relations import words_of
from searchapp.formats.smart_types import RESOURCE, Question
from searchapp.formats.type_hierarchy import Hierarchy
from searchapp.model import Document
from searchapp.tasks import folds
from searchapp.tasks.base import Grades
from searchapp.tasks.smart_types import SmartTypes, resource_document

FILES = {
    "train": ("task1_dbpedia_train.json", "smarttask_dbpedia_train.json"),
    "test": (
        "task1_dbpedia_test.json",
        "smarttask_dbpedia_test.json",
        "smarttask_dbpedia_test_questions.json",
    ),
}
"""The organisers' names of 2021, of 2020, and of 2020 for the test file without gold."""

UNLISTED = frozenset({"dbo:Location"})
"""Types of the organisers' gold that their hierarchy lacks; their scorer drops them."""


class SmartTypesDbpedia(SmartTypes):
    """The task for DBpedia."""

    official_measure = MEASURE
    scorer: Scorer = SmartTypesDbpediaScorer(folds.in_split)

    def __init__(self) -> None:
        super().__init__("dbpedia", "DBpedia", FILES, bom=False)
        self._gains = lru_cache(maxsize=None)(_gains)

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return [self.split_file(data, split), data / HIERARCHY]

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        # The scorer leaves out types that the hierarchy lacks; the one in the data is as good as one beside the gold.
        return super().gold_grades(files if len(files) > 1 else [*files, data / HIERARCHY], data, split)

    def document_files(self, data: Path) -> list[Path]:
        return [data / HIERARCHY]

    def resource_types(self, data: Path, problems: Problems) -> Iterator[Document]:
        hierarchy = type_hierarchy.read(data / HIERARCHY, problems)
        if not hierarchy.has_circles():
            for type_, path in hierarchy.paths.items():
                yield resource_document(type_, _words(type_), [_words(step) for step in path[1:]])

    def known_types(self, data: Path) -> Container[str] | None:
        hierarchy = _hierarchy(data)
        # Without any type to compare with, every one would be unknown: one problem is enough.
        return frozenset(hierarchy.depths) | UNLISTED if hierarchy.depths else None

    def grades_of(self, data: Path, question: Question) -> Mapping[str, float]:
        """What each type would gain if this question's gold were the topic's: votes add up to expected gains."""
        if question.category != RESOURCE:
            return {answers.document_id(str(question.category), type_): 1.0 for type_ in question.types}
        return self._gains(_hierarchy(data), question.types)


def _words(type_: str) -> str:
    """The words of a type's name, without the prefix of its namespace."""
    return words_of(type_.rpartition(":")[2])


_hierarchies: dict[tuple[Path, int, int], Hierarchy] = {}


def _hierarchy(data: Path) -> Hierarchy:
    """The hierarchy in a data folder; what is wrong with it is told by who reads the documents."""
    path = data / HIERARCHY
    if not path.is_file():
        return Hierarchy({}, {}, 0)
    key = (path, path.stat().st_mtime_ns, path.stat().st_size)
    if key not in _hierarchies:
        _hierarchies.clear()
        _hierarchies[key] = type_hierarchy.read(path, Problems(lenient=True))
    return _hierarchies[key]


def _gains(hierarchy: Hierarchy, types: tuple[str, ...]) -> Mapping[str, float]:
    listed = [type_ for type_ in types if type_ in hierarchy]
    if not listed:
        return {}
    return {answers.document_id(RESOURCE, type_): gain for type_, gain in gains(listed, hierarchy).items()}


TASK = SmartTypesDbpedia()
