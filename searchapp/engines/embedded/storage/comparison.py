"""Which documents of a collection an index has already, found while the collection is read, and what to make of it.

With a version stands a digest of each document, see `carried`. Documents that are there already need not be analyzed
again, if the mapping and the code that analyzes are the same. Where little has changed in a large version, a small part
is to be written beside it, see `small_part`; elsewhere all is to be merged into one version, see `carried`.

The documents are compared with those of the base of a version in parts, the dead ones included, and those of its new
part. Postings keep the order of their documents when numbers only move. So when all is merged, those documents are
carried over that form the longest ascending sequence; others that changed their places count as changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from searchapp.digests import digest_json
from searchapp.engines.embedded.storage.arrays import located
from searchapp.engines.embedded.storage.carried import (
    DIGESTS,
    NEW,
    Carried,
    Int32s,
    digest_of,
    in_order,
    written,
)
from searchapp.engines.embedded.storage.columns import Columns
from searchapp.engines.embedded.storage.in_parts import read_manifest
from searchapp.engines.embedded.storage.small_part import Served, SmallPart
from searchapp.engines.index_settings import without_similarities
from searchapp.model import Document

_log = logging.getLogger("searchapp.requests")

FEWEST_DOCUMENTS = 20_000
"""So many documents the base of a version in parts has at least: to merge fewer takes hardly longer."""

SMALL = 64
"""At most one in so many documents of the base may be dead, and at most as many be new: they are searched beside it."""

CHUNK = 4096
"""Documents that are looked up together."""

KEPT_BYTES = 64 << 20
"""How much of new documents is kept from the first reading; where there is more, they are read once again."""

WORTH_IT = 4
"""One of so many older documents must be left for it to pay: all are read, and reading costs less than analyzing."""


class Comparison:
    """Compares the documents of a collection with those of a version, while they are read."""

    def __init__(self, served: Served, mapping: Mapping[str, Any]) -> None:
        self._served = served
        self._mapping = mapping
        digests = np.concatenate([Columns(*one).column(DIGESTS).all() for one in served.documents])
        self._order = np.argsort(digests[0::2], kind="stable").astype(np.int32)
        self._first, self._second = digests[0::2][self._order], digests[1::2][self._order]
        self._waiting: list[Document] = []
        self._numbers: list[Int32s] = []
        self._kept: list[Document] | None = []
        self._kept_bytes = 0

    @classmethod
    def of(cls, folder: Path, mapping: Mapping[str, Any], code: str) -> Comparison | None:
        """A comparison with the version in a folder; None where nothing of it can be carried over.

        A new version shall have this mapping, and be made by the code of this digest, empty if nobody knows it.

        Raises:
            DataError, EngineRefused, SearchappError: the version can't be read.
        """
        manifest = read_manifest(folder)
        served = Served.of(folder, manifest)
        # Which similarity scores a field is no matter of its postings: impacts are computed anew.
        wanted, found = (digest_json(without_similarities(one)) for one in (mapping, manifest.mapping))
        if not code:
            why = "nobody knows which code analyzes, or its files have changed since searchapp was started"
        elif manifest.analysis != code or f"{DIGESTS}.npy" not in served.base.manifest.files:
            why = "it was made by another version of searchapp, Python or regex"
        elif wanted != found:
            why = "it has another mapping"
        elif not manifest.info.documents:
            why = "it has no documents"
        else:
            return cls(served, mapping)
        _log.info("%s: no document can be taken over, %s", manifest.info.version, why)
        return None

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, each of which is compared on its way."""
        for document in documents:
            self._waiting.append(document)
            if len(self._waiting) == CHUNK:
                self._look_up()
            yield document
        self._look_up()

    def carried(self, *, merged: bool = False) -> Carried | SmallPart | None:
        """What can be carried over, once all documents have passed; None where that does not pay.

        It is for a small part beside the base where little has changed, unless all is to be `merged`.
        """
        numbers = np.concatenate([np.empty(0, np.int32), *self._numbers])
        return (None if merged else self._small_part(numbers)) or self._merged(numbers)

    def _small_part(self, numbers: Int32s) -> SmallPart | None:
        """What a small part is made of; None where it would not be small."""
        base = self._served.base.manifest
        count = base.info.documents
        most = count // SMALL
        if count < FEWEST_DOCUMENTS or not base.has_checksums:
            return None
        if digest_json(self._mapping) != digest_json(base.mapping):
            return None  # impacts of other similarities bound no scores
        in_base = (numbers >= 0) & (numbers < count)
        added = len(numbers) - np.count_nonzero(in_base)
        alive = np.zeros(count, bool)
        alive[numbers[in_base]] = True
        left = np.count_nonzero(alive)
        if left + added != len(numbers) or max(added, count - left) > most:
            return None  # a document that comes twice is refused where all is merged
        dead = np.flatnonzero(~alive).astype(np.int32)
        return SmallPart(self._served, numbers, dead, self._kept)

    def _merged(self, numbers: Int32s) -> Carried | None:
        """What of the base one version of all documents is made of."""
        folder, manifest = self._served.base
        older = manifest.info.documents
        numbers = np.where(numbers < older, numbers, np.int32(NEW))
        ordered = in_order(numbers)
        kept = self._kept if ordered is numbers else None
        found = Carried(folder, manifest.digest, ordered, older, kept, self._served.folder.name)
        if found.documents * WORTH_IT >= older:
            return found
        _log.info(
            "%s: %d documents that have not changed are too few to be taken over",
            found.version,
            found.documents,
        )
        return None

    def _look_up(self) -> None:
        if not self._waiting:
            return
        digests = np.frombuffer(b"".join(map(digest_of, self._waiting)), np.int64).reshape(-1, 2)
        places, there = located(self._first, digests[:, 0])
        known = there & (self._second[places] == digests[:, 1])
        numbers = np.where(known, self._order[places], np.int32(NEW))
        self._numbers.append(numbers)
        if self._kept is not None:
            in_base = known & (numbers < self._served.base.manifest.info.documents)
            new = [self._waiting[place] for place in np.flatnonzero(~in_base)]
            self._kept += new
            self._kept_bytes += sum(len(written(document)) for document in new)
            if self._kept_bytes > KEPT_BYTES:
                self._kept = None
        self._waiting.clear()
