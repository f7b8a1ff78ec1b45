"""What a collection reads once in a command, although several parts of the command ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from searchapp.formats.problems import Problems
from searchapp.model import Document

T = TypeVar("T")


class Once(Generic[T]):
    """What a reader makes of a file, with the problems that it found, which every caller gets."""

    def __init__(self, read: Callable[[Problems], T]) -> None:
        self._read = read
        self._found: tuple[T, Problems] | None = None

    def __call__(self, problems: Problems) -> T:
        """What has been read; what was wrong with the file goes to `problems`."""
        if self._found is None:
            own = Problems(lenient=True)
            self._found = self._read(own), own
        value, found = self._found
        problems.add_all(found)
        return value


class DocumentSource:
    """Documents in the order of their files.

    Those of a shared task are `kept`: the largest of them has 16,000 short ones, and indexing it asks for them once for
    each split besides. A user's own may be a million of any length: they are read again for each caller, one at a time,
    and only their ids are kept, once somebody has asked for these.
    """

    def __init__(
        self,
        files: Callable[[], list[Path]],
        read: Callable[[Problems], Iterator[Document]],
        *,
        kept: bool = True,
    ) -> None:
        self._files = files
        self._read = read
        self._keeps = kept
        self._kept: tuple[list[Document], Problems] | None = None
        self._ids: frozenset[str] | None = None

    @property
    def files(self) -> list[Path]:
        """The files that they are read from."""
        return self._files()

    def read(self, problems: Problems) -> Iterator[Document]:
        """The documents; what is wrong with them goes to `problems`."""
        if not self._keeps:
            yield from self._read(problems)
            return
        if self._kept is not None:
            documents, found = self._kept
            problems.add_all(found)
            yield from documents
            return
        documents, found = [], Problems(lenient=True)
        try:
            for document in self._read(found):
                documents.append(document)
                yield document
        finally:  # a caller that stops early has read a part of them, and gets that part's problems
            problems.add_all(found)
        self._kept = documents, found

    def ids(self) -> frozenset[str]:
        """The ids of all of them; the reader of the documents reports what is wrong with them."""
        if self._ids is None:
            self._ids = frozenset(document.id for document in self.read(Problems(lenient=True)))
        return self._ids
