"""Natural language premise selection (TextGraphs-16, 2022).

A topic is a mathematical statement, the documents are all statements of the knowledge base, and the gold of a
topic are the statements that its proof uses. The statement itself is one of the documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.nlps import NEAREST, NlpsScorer
from searchapp.formats import json_stream, proofwiki, two_column
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document, Example, Run, Topic
from searchapp.names import refused
from searchapp.tasks.base import Grades, ShippedTask, Writer

EXAMPLES = "train"
"""The split whose statements are the solved examples of the others."""

KNOWLEDGE_BASE = "knowledge_base.json"


class Nlps(ShippedTask):
    """The task `nlps`."""

    name = "nlps"
    title = "Natural language premise selection (TextGraphs-16)"
    about = "For a mathematical statement, rank the statements that its proof uses."
    mapping = "premises"
    examples_mapping = "premises"
    splits = ("train", "dev", "test")
    topics_are_documents = True
    default_recipe = "bm25"
    search_recipe = "words"
    default_depth = NEAREST
    official_measure = f"MAP@{NEAREST}"
    official_file = "predict.txt"
    scorer = NlpsScorer()
    measures = ("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", f"R@{NEAREST}")

    def split_files(self, data: Path, split: str) -> list[Path]:
        return [self._split_file(data, split)]

    def gold_files(self, data: Path, split: str) -> list[Path]:
        return self.split_files(data, split)

    def _split_file(self, data: Path, split: str) -> Path:
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {refused(split, self.splits)}")
        return data / f"{split}_set.json"

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        return proofwiki.read_knowledge_base(data / KNOWLEDGE_BASE, problems)

    def document_files(self, data: Path) -> list[Path]:
        return [data / KNOWLEDGE_BASE]

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        return list(proofwiki.read_topics(self._split_file(data, split), problems))

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        own = Problems(lenient=True)  # those of the knowledge base are told by who reads its documents
        known = frozenset(document.id for document in self.documents(data, own))
        path = self._split_file(data, split)
        # Without any premise to compare with, every one would be unknown: one problem is enough.
        statements = proofwiki.read_statements(path, problems, known=known or None, masked=split == "test")
        return sum(1 for _ in statements)

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        knowledge = {document.id for document in self.documents(data, Problems(lenient=True))}
        path = self._split_file(data, EXAMPLES)
        for statement in proofwiki.read_statements(path, problems, known=knowledge):
            topic = Topic(statement.id, statement.text)
            yield Example(topic, dict.fromkeys(map(str, statement.premises or ()), 1.0))

    def example_files(self, data: Path, split: str) -> list[Path]:
        return [self._split_file(data, EXAMPLES)]

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        texts = {topic.id: topic.text for topic in self.topics(data, split, Problems(lenient=True))}
        statements = {
            topic: {
                "text": texts.get(topic, ""),
                "premises": [_number(premise) for premise, grade in of_topic.items() if grade > 0],
            }
            for topic, of_topic in grades.items()
        }
        text = json.dumps(statements, ensure_ascii=False, indent=1) + "\n"
        return {f"{split}_set.json": lambda file: file.write(text.encode())}

    def is_masked(self, data: Path, split: str) -> bool:
        if split != "test":
            return False
        path = self._split_file(data, split)
        statements = list(proofwiki.read_statements(path, Problems(lenient=True), masked=True))
        return bool(statements) and all(statement.premises is None for statement in statements)

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        needed = options.nearest or NEAREST
        for ranking in run:
            distinct = len(set(ranking.document_ids()))
            if distinct < needed:
                return (
                    f"statement {ranking.topic_id} has {distinct} premises, "
                    f"and the official file needs at least {needed} for each: rank deeper with `rank --depth`, or "
                    "choose a smaller cut-off with `export --nearest`"
                )
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        return {self.official_file: lambda file: two_column.write_two_column(file, run)}

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        if data is None or split is None:
            raise UsageError(f"say which split {path} answers with --split: {' or '.join(self.splits)}")
        statements = self._ids(self._split_file(data, split))
        premises = self._ids(data / KNOWLEDGE_BASE)
        seen: dict[str, set[str]] = {}
        for row in two_column.read_rows(path):
            where = f"line {row.line}"
            if row.topic_id not in statements:
                problems.add(
                    path.name, "unknown statement", where, f"{row.topic_id} is not in the split {split}"
                )
                continue
            distinct = seen.setdefault(row.topic_id, set())
            if row.document_id not in premises:
                problems.add(
                    path.name, "unknown premise", where, f"{row.document_id} is not in {KNOWLEDGE_BASE}"
                )
            elif row.document_id == row.topic_id:
                problems.add(path.name, "statement among its own premises", where, str(row.document_id))
            elif row.document_id in distinct:
                problems.add(path.name, "repeated premise", where, f"{row.document_id} for {row.topic_id}")
            else:
                distinct.add(row.document_id)
        needed = options.nearest or NEAREST
        for statement in sorted(statements):
            count = len(seen.get(statement, ()))
            if statement not in seen:
                problems.add(path.name, "missing statement", f"statement {statement}", "it has no row")
            elif count < needed:
                detail = f"{count} valid premises, at least {needed} are needed"
                problems.add(path.name, "too few premises", f"statement {statement}", detail)

    def _ids(self, path: Path) -> frozenset[str]:
        """Every id in one of the task's files, whatever else is wrong with its entry.

        Raises:
            InvalidFiles: the file is missing, or no JSON object.
        """
        problems = Problems(lenient=True)
        ids = frozenset(id_ for id_, _value in json_stream.read_members(path, problems))
        problems.raise_if_any()
        return ids


def _number(premise: str) -> int:
    """A premise's id as the organisers' gold has it.

    Raises:
        DataError: it is no premise's.
    """
    try:
        return int(premise)
    except ValueError as error:
        raise DataError(
            f"{shown(premise)} is no premise, whose ids are whole numbers, so that no gold can name it: take the "
            "judgment on it back, or leave out its annotator"
        ) from error


TASK = Nlps()
