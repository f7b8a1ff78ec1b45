"""Reuse the segments of an index when its collection changes: compare documents, and decide what is kept and merged.

`Comparison`: finds the documents that the index has already, by their digests, while the collection is read. They
need not be analyzed again if mapping and analysis are the same; deleted documents of a segment may come back.
`kept`: the merge policy. A large segment of which little was deleted, and beside which little is left, is kept as it
is; the live documents of all others are merged with the new documents into the segment of the new version.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from searchapp.errors import Replaced
from searchapp.files import digest_json
from searchapp.lucene import analysis
from searchapp.lucene.index.arrays import Columns, Mask, located
from searchapp.lucene.index.documents import stored_text
from searchapp.lucene.index.index_settings import without_similarities
from searchapp.lucene.index.layout import Manifest, Segment
from searchapp.lucene.index.merge import DIGESTS, LiveDocuments
from searchapp.model import Document

_log = logging.getLogger("searchapp.requests")

FEWEST_DOCUMENTS = 20_000
"""A segment of fewer documents is merged: that takes hardly longer than to keep it."""

SMALL = 64
"""Of a segment that is kept at most one in so many documents is deleted, and at most as many are in smaller ones."""

CHUNK = 4096
"""Documents that are looked up together."""

KEPT_BYTES = 64 << 20
"""How much of new documents is kept from the first reading; where there is more, they are read once again."""

NEW = -1
"""In the place of the number of a document in the index: it is a new one, or has changed."""

DIGEST_BYTES = 16

_MARSHAL_VERSION = 2
"""In later ones it depends on who else refers to a value by which bytes it is written."""


def document_bytes(document: Document) -> bytes:
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
    return hashlib.blake2b(document_bytes(document), digest_size=DIGEST_BYTES).digest()


class LiveSegment(NamedTuple):
    """A segment, and a mask of its documents, of shape `(documents,)`: those that the collection still has."""

    segment: Segment
    mask: Mask

    @property
    def live(self) -> int:
        """How many documents are left."""
        return int(np.count_nonzero(self.mask))


@dataclass(frozen=True)
class SegmentPlan:
    """What a new version makes of the segments of the one that serves.

    `folder` and `digest` are those of the version that serves and of its manifest: an index that is removed and made
    again has versions of the same names. `is_new` marks the documents of the collection that are to be analyzed;
    `new_documents` has them, unless they take too much memory. `left_out` counts the documents of all segments that
    the collection does not have.
    """

    folder: Path
    digest: str
    kept: Sequence[LiveSegment]
    merged: Sequence[LiveSegment]
    left_out: int
    is_new: Mask
    new_documents: Sequence[Document] | None

    @property
    def version(self) -> str:
        """The name of the version that serves."""
        return self.folder.name

    @property
    def analyzed(self) -> int:
        """How many documents are analyzed."""
        return int(np.count_nonzero(self.is_new))

    @property
    def documents(self) -> int:
        """How many documents are not analyzed again."""
        return len(self.is_new) - self.analyzed

    def new(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Those of all documents that are to be analyzed; they are not drawn if these were kept."""
        if self.new_documents is not None:
            yield from self.new_documents
            return
        for number, document in enumerate(documents):
            if number >= len(self.is_new) or self.is_new[number]:
                yield document

    def opened(self) -> tuple[list[LiveDocuments], list[LiveDocuments]]:
        """The live documents of the segments that are kept, and of those that are merged, numbered in this order.

        Raises:
            Replaced: what serves is not what was compared.
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        served = Manifest.read(self.folder)
        if served.digest != self.digest:
            raise Replaced(served.info.version)
        kept = [LiveDocuments(*one) for one in self.kept]
        for documents in kept:
            documents.require_sound(whole=True)  # what is altered in it must not serve any longer
        merged: list[LiveDocuments] = []
        first = 0
        for one in self.merged:
            merged.append(LiveDocuments(*one, first))
            merged[-1].require_sound(whole=False)
            first += one.live
        return kept, merged


def kept(segments: Sequence[LiveSegment], new: int) -> int:
    """How many of the segments, which come from the largest to the smallest, are kept beside so many new documents."""
    beside = new + sum(one.live for one in segments)
    for number, one in enumerate(segments):
        size = len(one.mask)
        beside -= one.live
        if size < FEWEST_DOCUMENTS or max(size - one.live, beside) > size // SMALL:
            return number
    return len(segments)


class Comparison:
    """Compares the documents of a collection with those of a version, while they are read."""

    def __init__(self, folder: Path, manifest: Manifest, mapping: Mapping[str, Any]) -> None:
        self._folder = folder
        self._digest = manifest.digest
        self._mapping = mapping
        self._segments = manifest.segments(folder)
        columns = [Columns(one.folder, one.manifest) for one in self._segments]
        digests = np.concatenate([one.column(DIGESTS).all() for one in columns])
        self._order = np.argsort(digests[0::2], kind="stable").astype(np.int32)
        self._first, self._second = digests[0::2][self._order], digests[1::2][self._order]
        self._is_live = np.zeros(len(self._order), bool)
        self._waiting: list[Document] = []
        self._is_new: list[Mask] = []
        self._new: list[Document] | None = []
        self._new_bytes = 0

    @classmethod
    def of(cls, folder: Path, mapping: Mapping[str, Any]) -> Comparison | None:
        """A comparison with the version in a folder; None where nothing of it can be carried over.

        A new version shall have this mapping.

        Raises:
            DataError, EngineRefused, SearchappError: the version can't be read.
        """
        manifest = Manifest.read(folder)
        # Which similarity scores a field is no matter of its postings: impacts are computed anew.
        wanted, found = (digest_json(without_similarities(one)) for one in (mapping, manifest.mapping))
        if manifest.analysis != analysis.identity():
            why = "it was made by another version of searchapp, Python or regex"
        elif wanted != found:
            why = "it has another mapping"
        elif not manifest.info.documents:
            why = "it has no documents"
        else:
            return cls(folder, manifest, mapping)
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

    @property
    def unchanged(self) -> int:
        """How many of the documents that have passed are in the serving version as they are."""
        return int(np.count_nonzero(self._is_live))

    def carried(self, *, merged: bool = False) -> SegmentPlan | None:
        """What is made of the segments, once all documents have passed; None where no document is left of them.

        None of them is kept if all are to be `merged`, or if similarities have changed: their impacts bound no scores.
        """
        is_new = np.concatenate([np.empty(0, bool), *self._is_new])
        ends = np.cumsum([one.manifest.documents for one in self._segments])
        masks = np.split(self._is_live, ends[:-1])
        left = [LiveSegment(*one) for one in zip(self._segments, masks, strict=True) if one[1].any()]
        if not left:
            _log.info("%s: no document can be taken over, all have changed", self._folder.name)
            return None
        left.sort(key=lambda one: -len(one.mask))
        same = digest_json(self._mapping) == digest_json(left[0].segment.manifest.mapping)
        count = kept(left, int(np.count_nonzero(is_new))) if same and not merged else 0
        left_out = int(np.count_nonzero(~self._is_live))
        return SegmentPlan(
            self._folder, self._digest, left[:count], left[count:], left_out, is_new, self._new
        )

    def _look_up(self) -> None:
        if not self._waiting:
            return
        digests = np.frombuffer(b"".join(map(digest_of, self._waiting)), np.int64).reshape(-1, 2)
        places, there = located(self._first, digests[:, 0])
        known = there & (self._second[places] == digests[:, 1])
        numbers = np.where(known, self._order[places], np.int32(NEW))
        known &= ~self._is_live[numbers]  # a document that comes twice is refused where it is written
        found, first = np.unique(numbers[known], return_index=True)
        is_new = np.ones(len(numbers), bool)
        is_new[np.flatnonzero(known)[first]] = False
        self._is_live[found] = True
        self._is_new.append(is_new)
        if self._new is not None:
            new = [self._waiting[place] for place in np.flatnonzero(is_new)]
            self._new += new
            self._new_bytes += sum(len(document_bytes(document)) for document in new)
            if self._new_bytes > KEPT_BYTES:
                self._new = None
        self._waiting.clear()
