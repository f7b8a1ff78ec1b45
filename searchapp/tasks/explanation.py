"""What both tasks of explanation regeneration have in common: the facts, and the file that ranks them.

A topic is a question with its right answer, the documents are the facts of the WorldTree tables, and the gold of a
topic are the facts that explain the answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from searchapp import resources
from searchapp.errors import UsageError
from searchapp.formats import two_column, worldtree
from searchapp.formats.problems import Problems, shown
from searchapp.model import Option
from searchapp.tasks import base
from searchapp.tasks.base import OfficialFile, Part, Submission, Writer
from searchapp.tasks.documents import DocumentSource
from searchapp.tasks.split_files import TEST, TRAIN

if TYPE_CHECKING:
    from searchapp.analysis import Analyzer

MAPPING = "facts"
EXAMPLES_MAPPING = "science_questions"
SPLITS = (TRAIN, "dev", TEST)

EVERY_FACT = 10_000
"""The depth at which every fact is ranked; Elasticsearch returns no more without further settings."""

OFFICIAL_FILE = "predict.txt"


def facts_in(folder: Path) -> DocumentSource:
    """The facts of the tables in a folder."""
    tables = folder / "tables"
    return DocumentSource(
        lambda: worldtree.table_files(tables), lambda problems: worldtree.read_facts(tables, problems)
    )


class RankingFile(ABC):
    """The official file: a row for each fact of a question's ranking.

    `folds_questions` says whether the official scorer folds the letter case of question ids, `needs_every_fact`
    whether a ranking that lacks facts is a mistake.
    """

    folds_questions: bool
    needs_every_fact: bool

    @abstractmethod
    def asked(self, part: Part[base.Collection], problems: Problems) -> Mapping[str, bool]:
        """The ids of a split's questions, and whether each must be answered."""

    def files(self, submission: Submission[base.Collection]) -> Mapping[str, Writer]:
        """What writes it, for any run: a ranking may be short."""
        return {OFFICIAL_FILE: lambda file: two_column.write_two_column(file, submission.run)}

    def validate(self, file: OfficialFile[base.Collection], problems: Problems) -> None:
        """Find everything that is wrong with one."""
        path, part = file.path, file.part
        if part is None:
            raise UsageError(f"name the split that {path} is for with --split: {' or '.join(SPLITS)}")
        own = Problems(lenient=True)
        asked = self.asked(part, own)
        facts = {document.id.lower() for document in part.collection.documents.read(own)}
        own.raise_if_any()
        seen = self._valid_rows(path, part.split, set(map(self._folded, asked)), facts, problems)
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
        self, path: Path, split: str, questions: Set[str], facts: Collection[str], problems: Problems
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

    def _folded(self, question: str) -> str:
        """The id of a question as the official scorer compares it."""
        return question.lower() if self.folds_questions else question


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
