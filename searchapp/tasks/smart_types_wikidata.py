"""The task `smart-types-wikidata`: the types are labels, of which no list is published.

The documents are therefore the labels that occur in the train file, in all its folds. That is a vocabulary and
not gold: which of its questions has a label is not looked at. A label that no question of the train file has
cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from searchapp.evaluation import smart_types as answers
from searchapp.evaluation.smart_types_wikidata import MEASURE, SmartTypesWikidataScorer
from searchapp.evaluation.whole_labels import WholeLabels
from searchapp.formats import smart_types
from searchapp.formats.problems import Problems
from searchapp.formats.smart_types import RESOURCE, Question
from searchapp.model import Document
from searchapp.tasks import folds
from searchapp.tasks.base import Part
from searchapp.tasks.smart_types import KnowledgeBase, TrainFile, TypesCollection, resource_document, task

FILES = {
    "train": ("task1_wikidata_train.json", "lcquad2_anstype_wikidata_train.json"),
    "test": (
        "task1_wikidata_test.json",
        "lcquad2_anstype_wikidata_test_gold.json",
        "lcquad2_anstype_wikidata_test.json",
    ),
}
"""The organisers' names of 2021, of 2020, and of 2020 for the test file without gold."""

SINGLE = 0.5
"""The vote of a solved question for a literal or for boolean; its votes for resource types are scattered."""

_SCORER = SmartTypesWikidataScorer(folds.in_split)


class WikidataTypes:
    """The labels that occur in the train file."""

    def __init__(self, train: TrainFile) -> None:
        self._train = train
        self._wholes = cache(lambda: WholeLabels(self._labels(Problems(lenient=True))))
        self.gold_files: list[Path] = []

    @property
    def files(self) -> list[Path]:
        return [self._train.path]

    def resource_types(self, problems: Problems) -> Iterator[Document]:
        # The problems of the train file's gold are reported by the check of the splits, except that it is missing.
        own = Problems(lenient=True) if self._train.path.is_file() else problems
        for label in self._labels(own):
            yield resource_document(label, label, [])

    def _labels(self, problems: Problems) -> list[str]:
        labels: set[str] = set()
        for question in self._train.questions(problems):
            if question.category == RESOURCE:
                labels.update(question.types)
        return sorted(labels)

    def listed(self, category: str, types: Sequence[str]) -> Sequence[str]:
        """The types, each behind those that it is a part of, so that the official script stops at none of them."""
        return self._wholes().completed(types) if category == RESOURCE else types

    def known(self) -> Container[str] | None:
        return None

    def votes(self, question: Question) -> Mapping[str, float]:
        """1 / sqrt(place) for the types of a resource, in the order of the gold, which the scorer goes by."""
        if question.category != RESOURCE:
            return {answers.document_id(str(question.category), type_): SINGLE for type_ in question.types}
        return {
            answers.document_id(RESOURCE, type_): place**-0.5 for place, type_ in enumerate(question.types, 1)
        }


def _check(path: Path, part: Part[TypesCollection], problems: Problems) -> None:
    """Find the predictions with a type at which the official scorer stops."""
    if problems.stopped or part.collection.is_masked(part.split):
        return
    given = list(smart_types.read_predictions(path, Problems(lenient=True), bom=True))
    for prediction, error in _SCORER.stops(given, part.collection.file(part.split), part.split):
        detail = f"{error.problem}; the official scorer stops at it ({error.official})"
        problems.add(path, "part of a label", f"line {prediction.line}", detail)


TASK = task(
    KnowledgeBase(
        "wikidata",
        "Wikidata",
        FILES,
        bom=True,
        measure=MEASURE,
        scorer=_SCORER,
        types=WikidataTypes,
    ),
    _check,
)
