"""An index in two parts that are searched as one: a large base, and what was added or changed since.

Each part is searched by itself, with the statistics of the whole (see `storage.part_reader`), and the best of both are
merged. Documents of the new part are numbered behind those of the base.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import IndexInfo
from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.in_parts import Stored
from searchapp.engines.embedded.storage.part_reader import PartReader, WholeField
from searchapp.engines.embedded.storage.reader import IndexReader, Numbers
from searchapp.engines.embedded.storage.verified import refuted


def shared_out(
    documents: NDArray[Any], parts: Sequence[IndexReader]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """For each part, which of some documents are in it, and their numbers there."""
    for part in parts:
        places = np.flatnonzero((documents >= part.first) & (documents < part.first + part.count))
        yield places, documents[places] - part.first


class Parts:
    """The whole of an index that is stored in parts, open: in the place of an `IndexReader`."""

    def __init__(
        self, info: IndexInfo, base: IndexReader, new: IndexReader, gone: IndexReader, dead: Numbers
    ) -> None:
        """`info` is that of the whole.

        `dead` are the numbers, ascending, of the documents of the base that do not count any more; `gone` is an
        index of these documents, `new` one of those that are not in the base. All three are opened with the same
        schema, and are closed with this.

        Raises:
            DataError: the parts do not fit together.
        """
        self._opened = base, new, gone
        self._dead = dead = np.ascontiguousarray(dead, np.int32)
        self.info = info
        self.folder = new.folder
        self.schema = base.schema
        self.count = info.documents
        is_ascending = not len(dead) or (dead[0] >= 0 and dead[-1] < base.count and (np.diff(dead) > 0).all())
        if not is_ascending or {len(dead), base.count + new.count - self.count} != {gone.count}:
            raise refuted(self.folder, "its parts do not agree on the number of documents")
        fields = {
            name: WholeField(field, new.fields[name], gone.fields[name])
            for name, field in base.fields.items()
        }
        parts: list[IndexReader] = []
        parts.append(PartReader(base, fields, parts, whole_count=self.count, dead=dead))
        if new.count:
            parts.append(PartReader(new, fields, parts, whole_count=self.count, first=base.count))
        self.parts: Sequence[IndexReader] = parts
        self.fields = parts[0].fields
        self._places: NDArray[np.int64] = np.full(new.count, -1, np.int64)
        """Before which of the base's ids, by their order, each new document's id comes; -1 where nobody has asked."""

    @classmethod
    def of(
        cls,
        info: IndexInfo,
        parts: Sequence[Stored],
        dead: Numbers,
        schema: Schema | None = None,
    ) -> Parts:
        """Open the base, the new part and what is gone; `schema` as `IndexReader` has it.

        Raises:
            DataError, EngineRefused, SearchappError: as `IndexReader`.
        """
        readers: list[IndexReader] = []
        try:
            for folder, manifest in parts:
                readers.append(IndexReader(folder, schema, manifest))
            base, new, gone = readers
            return cls(info, base, new, gone, dead)
        except BaseException:
            for reader in readers:
                reader.close()
            raise

    @property
    def is_there(self) -> bool:
        """Whether the files still have their names."""
        return all(reader.is_there for reader in self._opened)

    def reopened(self) -> Parts:
        """The same index, opened once more."""
        parts = [Stored(reader.folder, reader.manifest) for reader in self._opened]
        return Parts.of(self.info, parts, self._dead, self.schema)

    def verify(self) -> None:
        """Compare every file of the parts with its digest, see `IndexReader.verify`."""
        for reader in self._opened:
            reader.verify()

    def close(self) -> None:
        for reader in self._opened:
            reader.close()

    # Documents by their numbers in the whole

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents."""
        base = self.parts[0]
        new = np.flatnonzero(documents >= base.count)
        if not len(new):
            return base.ids_of(documents)
        found = [""] * len(documents)
        if base.count:
            found = base.ids_of(np.where(documents < base.count, documents, 0))
        for place, id_ in zip(new.tolist(), self.parts[1].ids_of(documents[new] - base.count), strict=True):
            found[place] = id_
        return found

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        """The sources of documents."""
        found: list[Any] = [None] * len(documents)
        for part, (places, numbers) in zip(self.parts, shared_out(documents, self.parts), strict=True):
            for place, source in zip(places.tolist(), part.sources_of(numbers), strict=True):
                found[place] = source
        return found

    def merged(self, answers: Sequence[Answer], first: int, size: int) -> Answer:
        """The best `size` from the place `first` on of what each part has found, best first."""
        documents, scores = answers[0]
        new, of_new = answers[1]
        if len(scores) == first + size > 0:  # most of what a small part has comes behind
            better = int((-of_new).searchsorted(-scores[-1], "right"))
            new, of_new = new[:better], of_new[:better]
        if len(new):
            places = self._places_among((new, of_new), answers[0])
            documents = np.insert(documents, places, new + self.parts[1].first)
            scores = np.insert(scores, places, of_new)
        return documents[first : first + size].astype(np.int32, copy=False), scores[first : first + size]

    def _places_among(self, new: Answer, base: Answer) -> NDArray[np.intp]:
        """Before which of the base's best documents each of the new ones comes."""
        falling = -base[1]
        firsts = falling.searchsorted(-new[1], "left")
        ends = falling.searchsorted(-new[1], "right")
        tied = np.flatnonzero(firsts < ends)
        if not len(tied):
            return firsts
        places, ranks = firsts.copy(), self.parts[0].ranks
        in_base = self._places_in_base(new[0][tied])
        for first in np.unique(firsts[tied]).tolist():  # of equal scores ids decide
            equal = firsts[tied] == first
            some = tied[equal]
            places[some] += ranks[base[0][first : ends[some[0]]]].searchsorted(in_base[equal])
        return places

    def _places_in_base(self, documents: Numbers) -> NDArray[np.int64]:
        """Before which of the base's ids, by their order, the ids of new documents come."""
        unknown = documents[self._places[documents] < 0]
        for document, id_ in zip(unknown.tolist(), self.parts[1].ids_of(unknown), strict=True):
            self._places[document] = bisect_left(self.parts[0].ids, id_.encode())
        return self._places[documents]
