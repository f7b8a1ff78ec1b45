"""Natural language premise selection (TextGraphs-16, 2022).

A topic is a mathematical statement, the documents are all statements of the knowledge base, and the gold of a
topic are the statements that its proof uses. The statement itself is one of the documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import UsageError
from searchapp.formats import proofwiki, two_column
from searchapp.formats.problems import Problems
from searchapp.model import Document, Run, Topic

NEAREST = 500
"""The cut-off of the official measure, and the number of premises that its scorer demands."""

KNOWLEDGE_BASE = "knowledge_base.json"


class Nlps:
    """The task `nlps`."""

    name = "nlps"
    title = "Natural language premise selection (TextGraphs-16)"
    about = "For a mathematical statement, rank the statements that its proof uses."
    mapping = "premises"
    splits = ("train", "dev", "test")
    topics_are_documents = True
    default_recipe = "bm25"
    search_recipe = "words"
    default_depth = NEAREST
    official_measure = f"MAP@{NEAREST}"
    official_file = "predict.txt"
    measures = ("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", f"R@{NEAREST}")

    def split_file(self, data: Path, split: str) -> Path:
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {split!r}: choose {' or '.join(self.splits)}")
        return data / f"{split}_set.json"

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        return proofwiki.read_knowledge_base(data / KNOWLEDGE_BASE, problems)

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        known = self._document_ids(data)
        statements = proofwiki.read_statements(
            self.split_file(data, split), problems, known=known, masked=split == "test"
        )
        return [Topic(statement.id, statement.text) for statement in statements]

    def is_masked(self, split_file: Path) -> bool:
        statements = proofwiki.read_statements(split_file, Problems(lenient=True), masked=True)
        return all(statement.premises is None for statement in statements)

    def official_shortfall(self, run: Run, nearest: int | None) -> str | None:
        needed = nearest or NEAREST
        for ranking in run:
            distinct = len(set(ranking.document_ids()))
            if distinct < needed:
                return (
                    f"statement {ranking.topic_id} has {distinct} premises, the official file needs at least "
                    f"{needed} for each: rank deeper with --depth, or name the cut-off with --nearest"
                )
        return None

    def write_official(self, file: BinaryIO, run: Run) -> None:
        two_column.write_two_column(file, run)

    def validate_official(
        self, path: Path, data: Path, split: str, nearest: int | None, problems: Problems
    ) -> None:
        statements = {topic.id for topic in self.topics(data, split, Problems(lenient=True))}
        premises = self._document_ids(data)
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
        needed = nearest or NEAREST
        for statement in sorted(statements):
            count = len(seen.get(statement, ()))
            if statement not in seen:
                problems.add(path.name, "missing statement", f"statement {statement}", "it has no row")
            elif count < needed:
                detail = f"{count} valid premises, at least {needed} are needed"
                problems.add(path.name, "too few premises", f"statement {statement}", detail)

    def _document_ids(self, data: Path) -> frozenset[str]:
        """The ids of the knowledge base; its problems are told by who reads its documents."""
        documents = proofwiki.read_knowledge_base(data / KNOWLEDGE_BASE, Problems(lenient=True))
        return frozenset(document.id for document in documents)


TASK = Nlps()
