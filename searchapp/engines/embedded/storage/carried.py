"""What a new version of an index takes over from an older one: the documents that have not changed.

With a version stands a digest of each document, `digests.npy`, by which `comparison` finds them. They need not be
analyzed again: their postings are copied under new numbers (see `joined`), so that the new version is, file by file and
byte by byte, the one that would be built from all documents.
"""

from __future__ import annotations

import hashlib
import marshal
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage.columns import Column, Columns
from searchapp.engines.embedded.storage.documents import FILE, stored_text
from searchapp.engines.embedded.storage.layout import Manifest
from searchapp.engines.embedded.storage.terms import Terms
from searchapp.engines.embedded.storage.verified import refuting
from searchapp.errors import Replaced
from searchapp.model import Document

Int32s = NDArray[np.int32]
Mask = NDArray[np.bool_]

DIGESTS = "digests"
"""The file with two numbers for each document: the digest of its source."""

DIGEST_BYTES = 16

NEW = -1
"""In the place of the number that a document had: it is a new one, or has changed."""


_MARSHAL_VERSION = 2
"""In later ones it depends on who else refers to a value by which bytes it is written."""


def written(document: Document) -> bytes:
    """A document as bytes, which differ where the texts differ that documents are stored as.

    The text itself would do, but takes several times as long to write. Another version of Python may write other bytes:
    it takes nothing over.
    """
    values: Any = document.id, document.text, document.fields
    try:
        return marshal.dumps(values, _MARSHAL_VERSION)
    except ValueError:  # a value is of a type of somebody's own, such as a kind of str
        # Half of a surrogate pair is refused when the document is indexed.
        return b"\0" + stored_text(document.source()).encode("utf-8", "surrogatepass")


def digest_of(document: Document) -> bytes:
    """The digest of a document."""
    return hashlib.blake2b(written(document), digest_size=DIGEST_BYTES).digest()


def in_order(numbers: Int32s) -> Int32s:
    """The numbers; NEW in the place of those that are not in a longest strictly ascending sequence of them."""
    places = np.flatnonzero(numbers >= 0)
    if (np.diff(numbers[places]) > 0).all():
        return numbers
    lasts: list[int] = []  # the smallest number that a sequence of 1, 2, ... ends with, and where that stands
    at: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers[places].tolist()):
        length = bisect_left(lasts, number)
        lasts[length : length + 1] = [number]
        at[length : length + 1] = [place]
        before.append(at[length - 1] if length else NEW)
    found = np.full_like(numbers, NEW)
    place = at[-1]
    while place != NEW:
        found[places[place]] = numbers[places[place]]
        place = before[place]
    return found


class Carried:
    """The documents that a new version takes over from the one in a folder, which has so many of them, `older`.

    `manifest` is the digest of its manifest: an index that is removed and made again has versions of the same names.
    `numbers` has for each document of the new version the number that it had there, or NEW. `served` is the name of the
    version that serves, where that is another one, which builds upon the one in the folder.
    """

    def __init__(
        self,
        folder: Path,
        manifest: str,
        numbers: Int32s,
        older: int,
        kept: list[Document] | None = None,
        served: str = "",
    ) -> None:
        self.folder = folder
        self.version = served or folder.name
        self.manifest = manifest
        self.numbers = numbers
        self._older = older
        self._kept = kept

    @cached_property
    def is_carried(self) -> Mask:
        """For each document of the new version whether it is carried over."""
        return self.numbers >= 0

    @property
    def documents(self) -> int:
        """How many documents are carried over."""
        return int(np.count_nonzero(self.is_carried))

    @property
    def left_out(self) -> int:
        """How many documents of the older version are not in the new one."""
        return self._older - self.documents

    @property
    def analyzed(self) -> int:
        """How many documents of the new version are not carried over."""
        return len(self.numbers) - self.documents

    @cached_property
    def renumbered(self) -> Int32s:
        """For each document of the older version its number in the new one, or NEW if that has it not."""
        found = np.full(self._older, NEW, np.int32)
        places = np.flatnonzero(self.is_carried)
        found[self.numbers[places]] = places
        return found

    @cached_property
    def added(self) -> Int32s:
        """The numbers in the new version of the documents that are not carried over."""
        return np.flatnonzero(~self.is_carried).astype(np.int32)

    def copy(self, older: NDArray[Any], new: NDArray[Any]) -> None:
        """Put what an array has for each document that is carried over in its place in a new array."""
        new[self.is_carried] = older[self.numbers[self.is_carried]]

    def new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Those of all documents that are not carried over; they are not drawn if the new ones were kept."""
        if self._kept is not None:
            yield from self._kept
            return
        for number, document in enumerate(documents):
            if number >= len(self.is_carried) or not self.is_carried[number]:
                yield document


class Older:
    """The version that documents are carried over from, opened; its numbers are verified when they are read."""

    def __init__(self, carried: Carried) -> None:
        """Open it.

        Raises:
            DataError: it is damaged.
            EngineRefused, SearchappError: it can't be read, or another version has its name now.
        """
        self.carried = carried
        self._manifest = Manifest.read(carried.folder)
        if self._manifest.digest != carried.manifest:
            raise Replaced(self._manifest.info.version)
        self._columns = Columns(carried.folder, self._manifest)
        with refuting(carried.folder):
            # It is copied past Python, which can compare no checksums then.
            self._manifest.verify_file(carried.folder, FILE)

    def column(self, name: str) -> Column:
        """The numbers in one of its files."""
        return self._columns.column(name)

    def terms(self, name: str) -> Terms:
        """The terms in two of its files."""
        return Terms.of(self._columns.column, name)

    def field(self, name: str) -> OlderField:
        """One of its fields."""
        return OlderField(self, self._manifest.fields[name].prefix)

    def place(self, added: int) -> int:
        """The number in the new version of the document that is added as this one, counted from 0."""
        places = self.carried.added
        return int(places[added]) if added < len(places) else len(self.carried.numbers)

    def digests(self, added: NDArray[np.int64]) -> NDArray[np.int64]:
        """The digests of all documents of the new version, from those of the documents that are added."""
        joined = np.empty((len(self.carried.numbers), 2), np.int64)
        joined[self.carried.added] = added.reshape(-1, 2)
        self.carried.copy(self.column(DIGESTS).all().reshape(-1, 2), joined)
        return joined.reshape(-1)


class OlderField:
    """One field of an older version."""

    def __init__(self, version: Older, prefix: str) -> None:
        self.carried = version.carried
        self._version = version
        self._prefix = prefix

    @property
    def terms(self) -> Terms:
        """Its terms."""
        return self._version.terms(self._prefix)

    def column(self, part: str) -> Column:
        """The numbers in one of its files."""
        return self._version.column(f"{self._prefix}.{part}")

    def documents(self, older: Int32s, added: Int32s) -> Int32s:
        """The numbers in the new version of some documents that are carried over, and some that are added."""
        renumbered = self.carried.renumbered[older]
        joined = np.concatenate([renumbered[renumbered >= 0], self.carried.added[added]])
        joined.sort(kind="stable")
        return joined

    def numbers(self, values: NDArray[Any], of_values: Int32s) -> tuple[NDArray[Any], Int32s]:
        """All numbers of the field in any order but that of one document, and the new numbers of their documents.

        Given are those of the documents that are added.
        """
        renumbered = self.carried.renumbered[self.column("documents").all()]
        left = renumbered >= 0
        return (
            np.concatenate([self.column("values").all()[left], values]),
            np.concatenate([renumbered[left], self.carried.added[of_values]]),
        )

    def copy(self, part: str, values: NDArray[Any]) -> None:
        """Put what a file has for each document that is carried over in its place among `values`."""
        self.carried.copy(self.column(part).all(), values)
