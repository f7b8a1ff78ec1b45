"""What both tasks of explanation regeneration have in common: the facts, and the file that ranks them.

A topic is a question with its right answer, the documents are the facts of the WorldTree tables, and the gold of a
topic are the facts that explain the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from searchapp import resources
from searchapp.errors import UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats import two_column, worldtree
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document, Option, Run
from searchapp.names import refused
from searchapp.tasks.base import ShippedTask, Writer

if TYPE_CHECKING:
    from searchapp.analysis import Analyzer

MAPPING = "facts"
EXAMPLES = "train"
"""The split whose questions are the solved examples of the others."""

EVERY_FACT = 10_000
"""The depth at which every fact is ranked; Elasticsearch returns no more without further settings."""


class ExplanationTask(ShippedTask):
    """The facts and the official file; what questions look like is the single task's matter."""

    mapping = MAPPING
    examples_mapping: str | None = "science_questions"
    splits = ("train", "dev", "test")
    topics_are_documents = False
    default_recipe = "bm25"
    search_recipe = "words"
    default_depth = EVERY_FACT
    official_file = "predict.txt"
    folds_questions: bool
    """Whether the official scorer folds the letter case of question ids."""
    needs_every_fact: bool
    """Whether a ranking that lacks facts is a mistake."""

    def split_files(self, data: Path, split: str) -> list[Path]:
        return [self._split_file(data, split)]

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, split)

    def example_files(self, data: Path, split: str) -> list[Path]:
        return [self._split_file(data, EXAMPLES)]

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        return worldtree.read_facts(data / "tables", problems)

    def document_files(self, data: Path) -> list[Path]:
        return worldtree.table_files(data / "tables")

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        return {self.official_file: lambda file: two_column.write_two_column(file, run)}

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        if data is None or split is None:
            raise UsageError(f"say which split {path} answers with --split: {' or '.join(self.splits)}")
        own = Problems(lenient=True)
        asked = self._asked(data, split, own)
        facts = self._known(data, own)
        own.raise_if_any()
        seen = self._valid_rows(path, split, set(map(self._folded, asked)), facts, problems)
        for id_, must_answer in asked.items():
            question = self._folded(id_)
            count = len(seen.get(question, ()))
            where = f"question {shown(id_)}"
            if question in seen and self.needs_every_fact and count < len(facts):
                detail = f"{count:,} of {len(facts):,} facts are ranked: rank every one"
                problems.add(path.name, "too few facts", where, detail)
            elif question not in seen and must_answer:
                problems.add(path.name, "missing question", where, "it has no row")

    def _valid_rows(
        self, path: Path, split: str, questions: Collection[str], facts: Collection[str], problems: Problems
    ) -> dict[str, set[str]]:
        """The facts of each question that has a row of its own, as far as the rows are right."""
        seen: dict[str, set[str]] = {}
        for row in two_column.read_rows(path):
            where = f"line {row.line}"
            if row.topic_id is None or row.document_id is None:
                noun = "question" if row.topic_id is None else "fact"
                detail = f"the {noun} is empty or reads as a missing value"
                problems.add(path.name, "missing value", where, detail)
                continue
            question = self._folded(row.topic_id)
            fact = row.document_id.lower()
            if question not in questions:
                detail = f"{shown(row.topic_id)} is not in the split {split}"
                problems.add(path.name, "unknown question", where, detail)
                continue
            ranked = seen.setdefault(question, set())
            if fact not in facts:
                detail = f"{shown(row.document_id)} is in no table"
                problems.add(path.name, "unknown fact", where, detail)
            elif fact in ranked:
                detail = f"{shown(row.document_id)} for {shown(row.topic_id)}"
                problems.add(path.name, "repeated fact", where, detail)
            else:
                ranked.add(fact)
        return seen

    def _known(self, data: Path, problems: Problems) -> frozenset[str]:
        """The ids of all facts, in lower case."""
        return frozenset(document.id.lower() for document in self.documents(data, problems))

    def _fact_ids(self, data: Path) -> frozenset[str]:
        """The ids of all facts; what is wrong with them is told by who reads the documents."""
        return frozenset(document.id for document in self.documents(data, Problems(lenient=True)))

    def _asked(self, data: Path, split: str, problems: Problems) -> dict[str, bool]:
        """The ids of a split's questions, and whether each must be answered."""
        raise NotImplementedError

    def _folded(self, question: str) -> str:
        """The id of a question as the official scorer compares it."""
        return question.lower() if self.folds_questions else question

    def _split_file(self, data: Path, split: str) -> Path:
        raise NotImplementedError

    def _require_split(self, split: str) -> str:
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {refused(split, self.splits)}")
        return split


def options_of(options: Mapping[str, str], right: str) -> tuple[Option, ...]:
    """The options of a question by their labels, for people; `right` is the label of the right one."""
    return tuple(Option(label, text, label == right) for label, text in options.items())


def content_words(text: str) -> frozenset[str]:
    """The terms of a text by which lexical overlap is measured: those that the facts are indexed under."""
    return frozenset(term for term, _position in _analyzer().terms(text))


@cache
def _analyzer() -> Analyzer:
    from searchapp.analysis import AnalysisRegistry

    return AnalysisRegistry(resources.index_mapping(MAPPING)["settings"]["analysis"]).analyzer("fact")
