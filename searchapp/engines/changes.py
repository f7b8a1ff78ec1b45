"""What an engine says of a collection that it has indexed before: which documents a new version may take over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from searchapp.model import Document


class Carried(Protocol):
    """Those of some documents that a new version of an index can take over from the one that serves."""

    @property
    def version(self) -> str:
        """What names the version within its index."""

    @property
    def documents(self) -> int:
        """How many documents are carried over."""


class Comparison(Protocol):
    """Compares documents with those that the serving version of an index was built from."""

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, each of which is compared on its way."""

    def carried(self) -> Carried | None:
        """What can be carried over, once all documents have passed; None where a whole build costs no more."""
