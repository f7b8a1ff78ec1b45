"""Tasks with a file for each split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from searchapp import tasks
from searchapp.errors import UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, Topic
from searchapp.tasks.base import Collection, DocumentSource, TaskInfo
from searchapp.tasks.splits import TEST, TRAIN, GoldReading, SplitFiles

INFO = TaskInfo(
    name="lines",
    title="Lines",
    about="A line is a topic and, after a tab, its document.",
    mapping="text",
    training_mapping=None,
    splits=(TRAIN, TEST),
    default_depth=10,
    official_measure="AP",
    official_file="run.trec",
    measures=("AP",),
)


class Line(NamedTuple):
    id: str
    document: str = ""

    @property
    def has_gold(self) -> bool:
        return bool(self.document)


class Lines(SplitFiles):
    """A minimal collection with a file for each split."""

    def __init__(self, folder: Path, documents: list[str]) -> None:
        source = DocumentSource(list, lambda _problems: (Document(text, text) for text in documents))
        super().__init__(INFO, folder, source, lambda split: folder / f"{split}.tsv")

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[Line]:
        return (Line(*line.split("\t")) for line in path.read_text().splitlines())

    def topic(self, question: Line) -> Topic:
        return Topic(question.id, question.id)

    def example(self, question: Line) -> Example | None:
        return Example(self.topic(question), {question.document: 1.0}) if question.has_gold else None


def test_a_split_is_a_file_in_the_only_index(tmp_path: Path) -> None:
    lines: Collection = Lines(tmp_path, ["a"])
    assert lines.split_files(TEST) == lines.gold_files(TEST) == [tmp_path / "test.tsv"]
    assert lines.example_files(TEST) == [tmp_path / "train.tsv"]
    assert lines.index_of(TEST) == "lines" and list(lines.indexes) == ["lines"]


@pytest.mark.parametrize(("test", "masked"), [("q1\nq2\n", True), ("q1\tdocument\nq2\n", False), ("", False)])
def test_only_a_test_split_without_gold_is_masked(tmp_path: Path, test: str, masked: bool) -> None:
    for split in INFO.splits:
        (tmp_path / f"{split}.tsv").write_text(test)
    lines = Lines(tmp_path, [])
    assert lines.is_masked(TEST) == masked
    assert not lines.is_masked(TRAIN)


def test_gold_is_checked_against_the_documents_if_there_are_any(tmp_path: Path) -> None:
    assert Lines(tmp_path, ["a", "b"]).known_ids() == {"a", "b"}
    assert Lines(tmp_path, []).known_ids() is None


@pytest.mark.parametrize(
    "name",
    ["nlps", "explanation-2019", "explanation-2021", "smart-types-dbpedia", "smart-relations-wikidata"],
)
def test_all_methods_reject_an_unknown_split(name: str, tmp_path: Path) -> None:
    collection = tasks.load(name).collection(tmp_path)
    for method in (
        collection.index_of,
        collection.split_files,
        collection.gold_files,
        collection.example_files,
        collection.is_masked,
    ):
        with pytest.raises(UsageError, match="has no split 'trial'"):
            method("trial")
