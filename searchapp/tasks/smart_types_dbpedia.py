"""The task `smart-types-dbpedia`: the types are those of a hierarchy."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from searchapp.evaluation import smart_types as answers
from searchapp.evaluation.lenient_ndcg import gains
from searchapp.evaluation.smart_types_dbpedia import HIERARCHY, MEASURE, SmartTypesDbpediaScorer
from searchapp.formats import type_hierarchy
from searchapp.formats.problems import Problems
from searchapp.formats.smart_relations import words_of
from searchapp.formats.smart_types import RESOURCE, Question
from searchapp.formats.type_hierarchy import Hierarchy
from searchapp.model import Document
from searchapp.tasks import folds
from searchapp.tasks.documents import Once
from searchapp.tasks.smart_types import KnowledgeBase, resource_document, task

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


class DbpediaTypes:
    """The types of a hierarchy."""

    def __init__(self, folder: Path) -> None:
        path = folder / HIERARCHY
        self.files = [path]
        self.gold_files = [path]
        self._hierarchy = Once(lambda problems: type_hierarchy.read(path, problems))
        self._gains = lru_cache(maxsize=None)(self._of_gold)

    def resource_types(self, problems: Problems) -> Iterator[Document]:
        hierarchy = self._hierarchy(problems)
        if not hierarchy.has_circles():
            for type_, path in hierarchy.paths.items():
                yield resource_document(type_, _words(type_), [_words(step) for step in path[1:]])

    def known(self) -> Container[str] | None:
        hierarchy = self._known_hierarchy()
        # Without any type to compare with, every one would be unknown: one problem is enough.
        return frozenset(hierarchy.depths) | UNLISTED if hierarchy.depths else None

    def votes(self, question: Question) -> Mapping[str, float]:
        """What each type would gain if this question's gold were the topic's: votes add up to expected gains."""
        if question.category != RESOURCE:
            return {answers.document_id(str(question.category), type_): 1.0 for type_ in question.types}
        return self._gains(question.types)

    def listed(self, category: str, types: Sequence[str]) -> Sequence[str]:
        return answers.as_ranked(category, types)

    def _of_gold(self, types: tuple[str, ...]) -> Mapping[str, float]:
        hierarchy = self._known_hierarchy()
        listed = [type_ for type_ in types if type_ in hierarchy]
        if not listed:
            return {}
        return {
            answers.document_id(RESOURCE, type_): gain for type_, gain in gains(listed, hierarchy).items()
        }

    def _known_hierarchy(self) -> Hierarchy:
        """The hierarchy; the reader of the documents reports what is wrong with it."""
        return self._hierarchy(Problems(lenient=True))


def _words(type_: str) -> str:
    """The words of a type's name, without the prefix of its namespace."""
    return words_of(type_.rpartition(":")[2])


TASK = task(
    KnowledgeBase(
        "dbpedia",
        "DBpedia",
        FILES,
        bom=False,
        measure=MEASURE,
        scorer=SmartTypesDbpediaScorer(folds.in_split),
        types=lambda train: DbpediaTypes(train.folder),
    )
)
