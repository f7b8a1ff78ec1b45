"""What a shared task brings: where its files lie, its mapping, its topics, its official file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from searchapp.formats.problems import Problems
from searchapp.model import Document, Run, Topic


class Task(Protocol):
    """One shared task.

    `mapping` names the index mapping of its documents. With `topics_are_documents` a topic is itself one of
    the documents, under the same id, and must never be retrieved for itself. `default_recipe` ranks topics,
    `search_recipe` what a person types. `measures` are the names, in ir-measures' notation, of what is
    reported beside the official figure.
    """

    name: str
    title: str
    about: str
    mapping: str
    splits: tuple[str, ...]
    topics_are_documents: bool
    default_recipe: str
    search_recipe: str
    default_depth: int
    official_measure: str
    official_file: str
    measures: tuple[str, ...]

    def split_file(self, data: Path, split: str) -> Path:
        """The file of a split's topics and gold.

        Raises:
            UsageError: the task has no such split.
        """

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        """The documents in the order of their file; what is wrong with them goes to `problems`."""

    def document_files(self, data: Path) -> list[Path]:
        """The files that the documents are read from."""

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        """The topics of a split in the order of their file; what their gold is like does not matter here."""

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        """Find everything that is wrong with a split's topics and gold; returns the number of good topics."""

    def is_masked(self, split_file: Path) -> bool:
        """Whether the organisers have left the gold out of a split's file."""

    def official_shortfall(self, run: Run, nearest: int | None) -> str | None:
        """Why no official file can be made of a run, as a clause; None when it can."""

    def write_official(self, file: BinaryIO, run: Run) -> None:
        """Write the official file of a run."""

    def validate_official(
        self, path: Path, data: Path, split: str, nearest: int | None, problems: Problems
    ) -> None:
        """Find everything that is wrong with an official file."""
