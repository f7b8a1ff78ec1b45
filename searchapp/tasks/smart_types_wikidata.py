"""The task `smart-types-wikidata`: the types are labels, of which no list is published.

The documents are therefore the labels that occur in the train file, in all its folds. That is a vocabulary and
not gold: which of its questions has a label is not looked at. A label that no question of the train file has
cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from searchapp.evaluation import smart_types as answers
from searchapp.evaluation.base import Scorer, ScorerOptions
from searchapp.evaluation.smart_types_wikidata import MEASURE, SmartTypesWikidataScorer
from searchapp.formats import smart_types
from searchapp.formats.problems import Problems
from searchapp.formats.smart_types import RESOURCE, Question
from searchapp.model import Document
from searchapp.tasks import folds
from searchapp.tasks.smart_types import SmartTypes, resource_document

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


class SmartTypesWikidata(SmartTypes):
    """The task for Wikidata."""

    official_measure = MEASURE
    scorer: Scorer = _SCORER

    def __init__(self) -> None:
        super().__init__("wikidata", "Wikidata", FILES, bom=True)

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        super().validate_official(path, data, split, options, problems)
        if data is None or split is None or problems.stopped or self.is_masked(data, split):
            return
        given = list(smart_types.read_predictions(path, Problems(lenient=True), bom=True))
        for prediction, error in _SCORER.stops(given, self.split_file(data, split), split):
            detail = f"{error.problem}; the official scorer stops at it ({error.official})"
            problems.add(path, "part of a label", f"line {prediction.line}", detail)

    def document_files(self, data: Path) -> list[Path]:
        return [self.split_file(data, folds.NAMES[0])]

    def resource_types(self, data: Path, problems: Problems) -> Iterator[Document]:
        # The problems of the train file's gold are told by who checks the splits, but for a file that is missing.
        path = self.split_file(data, folds.NAMES[0])
        own = Problems(lenient=True) if path.is_file() else problems
        labels: dict[str, None] = {}
        for question in self.train_questions(data, own):
            if question.category == RESOURCE:
                labels.update(dict.fromkeys(question.types))
        for label in sorted(labels):
            yield resource_document(label, label, [])

    def known_types(self, data: Path) -> Container[str] | None:
        return None

    def grades_of(self, data: Path, question: Question) -> Mapping[str, float]:
        """1 / sqrt(place) for the types of a resource, in the order of the gold, which the scorer goes by."""
        if question.category != RESOURCE:
            return {answers.document_id(str(question.category), type_): SINGLE for type_ in question.types}
        return {
            answers.document_id(RESOURCE, type_): place**-0.5 for place, type_ in enumerate(question.types, 1)
        }


TASK = SmartTypesWikidata()
