"""A version opened for searching: its fields, postings and ids.

Every file is open, almost nothing of it is read. Ids of documents are kept once they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import Damaged
from searchapp.lucene.index import impacts, layout
from searchapp.lucene.index.arrays import Column, Columns
from searchapp.lucene.index.documents import Documents
from searchapp.lucene.index.impacts import Impacts
from searchapp.lucene.index.layout import FieldSummary, Manifest, refuted
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.terms import TermPositions, Terms
from searchapp.lucene.similarity import BM25, FieldStatistics, Float32s, idf

FEW = 200_000
"""Up to so many documents there is room for the ids of all."""

READ_TOGETHER = 8
"""So many ids are read together in the time of one that is read alone."""

REMEMBERED = 1_000_000
"""Among more documents, how many ids are kept; all are forgotten when there are so many."""


class KnownIds(Protocol):
    """The ids of an index."""

    def of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents, which are given as numbers of shape `(n,)`."""


def known_ids(ids: Terms, ranks: Column, by_rank: Column) -> KnownIds:
    """Those of an index: `ids` in bytewise order, each document's place there, and each place's document."""
    return _OfFew(ids, ranks, by_rank) if len(ranks) <= FEW else _OfMany(ids, ranks)


class _OfFew:
    """An array of ids, which gives those of a batch at once."""

    def __init__(self, ids: Terms, ranks: Column, by_rank: Column) -> None:
        self._ids = ids
        self._ranks = ranks
        self._by_rank = by_rank
        self._known: NDArray[np.object_] = np.full(len(ranks), None, object)
        self._read_alone = 0
        self._knows_all = False

    def of(self, documents: NDArray[Any]) -> list[str]:
        ids: list[str | None] = self._known.take(documents).tolist()
        if not self._knows_all and None in ids:
            self._read(
                [document for document, id_ in zip(documents.tolist(), ids, strict=True) if id_ is None]
            )
            ids = self._known.take(documents).tolist()
        return cast("list[str]", ids)

    def _read(self, documents: Sequence[int]) -> None:
        """Read the ids of documents; those of all once reading one by one has taken as long."""
        self._read_alone += len(documents)
        if self._read_alone * READ_TOGETHER >= len(self._known):
            self._known[self._by_rank.all()] = [id_.decode() for id_ in self._ids]
            self._knows_all = True
            return
        ranks = self._ranks.all()
        for document in documents:
            self._known[document] = self._ids[int(ranks[document])].decode()


class _OfMany(dict[int, str]):
    """The ids that were asked for."""

    def __init__(self, ids: Terms, ranks: Column) -> None:
        super().__init__()
        self._ids = ids
        self._ranks = ranks

    def of(self, documents: NDArray[Any]) -> list[str]:
        return list(map(self.__getitem__, documents.tolist()))

    def __missing__(self, document: int) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        self[document] = id_ = self._ids[int(self._ranks.all()[document])].decode()
        return id_


WITHOUT_NORM = 1
"""The length code of every document in a field that keeps no lengths, as Lucene has it."""

REMEMBERED_TERMS = 200_000
"""Terms of a field whose rank is kept once it was looked up."""

Numbers = NDArray[np.int32]

Mask = NDArray[np.bool_]
"""A truth value for each document."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: documents ascending, and how often in each."""

    documents: Numbers
    frequencies: Float32s


@dataclass(frozen=True, slots=True)
class BoundedPostings:
    """Where a term occurs, how often, the impact of each posting, and the greatest impact: see `impacts`."""

    documents: Numbers
    frequencies: NDArray[np.unsignedinteger]
    impacts: Impacts
    greatest: int


class FieldReader:
    """One field of a version. A keyword field has no frequencies, positions and norms; a number no terms.

    That of a part of an index (see `part_reader`) has the statistics of the whole, and leaves out what is dead.
    """

    edges_above: Float32s = impacts.EDGES
    """The greatest x, see `impacts`, that each impact stands for in the field's files."""

    edges_below: Float32s = impacts.EDGES
    """The same, no greater than any x that the next impact stands for."""

    def __init__(
        self, columns: Columns, field: Field, summary: FieldSummary, documents: int, made_with: BM25 | None
    ) -> None:
        """`made_with` is the similarity that impacts in files are of: with another one they bound no scores."""
        self.field = field
        self.documents = documents
        self.statistics = FieldStatistics(summary.documents, summary.tokens)

        def load(part: str) -> Column:
            return columns.column(f"{summary.prefix}.{part}")

        self._present = load("present")
        self._documents = load("documents")
        if field.is_number:
            self._values = load("values")
            return
        self.terms = Terms.of(columns.column, summary.prefix)
        self._starts = load("starts")
        self._ranks: dict[str, int | None] = {}
        self._knows_all = False
        self.similarity = field.similarity or BM25()
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        if field.is_text:
            self._norms = load("norms")
            self._frequencies = load("frequencies")
            self._position_starts = load("position-starts")
            self._positions = load("positions")
            self._impacts = self._greatest = None
            if self.similarity == (made_with or BM25()):
                self._impacts, self._greatest = load(impacts.IMPACTS), load(impacts.GREATEST)

    @property
    def present(self) -> Numbers:
        """The documents that have a value."""
        return self._present.all()

    def idf(self, document_frequency: int) -> np.float32:
        """The inverse document frequency of what BM25 believes to be in this many documents."""
        return idf(document_frequency, self.statistics.documents)

    def weight(self, boost: np.float32, document_frequency: int) -> np.float32:
        """The limit that the score of a term in this many documents tends to, see `BM25.weight`."""
        return self.similarity.weight(boost, self.idf(document_frequency))

    def ranks(self, terms: Iterable[str]) -> list[int]:
        """The ranks of those terms that occur, in their order."""
        known = self._ranks.get if self._knows_all else self.rank
        return [rank for rank in map(known, terms) if rank is not None]

    def elsewhere(self, terms: Iterable[str]) -> tuple[int, int]:  # noqa: ARG002
        """How many terms occur in other parts of the index only, and in how many documents: the sum of all terms."""
        return 0, 0

    def rank(self, term: str) -> int | None:
        """The rank of a term in the field's dictionary, None when it does not occur."""
        try:
            return self._ranks[term]
        except KeyError:
            if self._knows_all:
                return None
            rank = self.terms.rank(term)
            if len(self._ranks) < REMEMBERED_TERMS:
                self._ranks[term] = rank
            return rank

    def remember_terms(self) -> None:
        """Read the whole dictionary, so that no term is looked up in the file from now on."""
        if self._knows_all or len(self.terms) > REMEMBERED_TERMS:
            return
        self._ranks = {term.decode(): rank for rank, term in enumerate(self.terms)}
        self._knows_all = True

    def document_frequency(self, term: str) -> int:
        """In how many documents of the index a term is."""
        rank = self.rank(term)
        if rank is None:
            return 0
        part = self._part(rank)
        return int(part.stop - part.start)

    def _part(self, rank: int) -> slice:
        """Where the postings of a term stand among the field's."""
        return slice(*self._starts[rank : rank + 2].tolist())

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        """The documents that have a term of one of the ranks; a document may come several times."""
        pieces = [self._documents[self._part(rank)] for rank in ranks]
        return np.concatenate(pieces) if pieces else np.empty(0, np.int32)

    def documents_with_terms(self, terms: Iterable[str]) -> Numbers:
        """The documents that have one of the terms, as `documents_with`."""
        return self.documents_with(rank for rank in map(self.rank, terms) if rank is not None)

    def postings(self, term: str) -> Postings:
        rank = self.rank(term)
        if rank is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        part = self._part(rank)
        documents = self._documents[part]
        if not self.field.is_text:
            return Postings(documents, np.ones(len(documents), np.float32))
        return Postings(documents, self._frequencies[part].astype(np.float32))

    @property
    def has_impacts(self) -> bool:
        """Whether the impacts are in files; those of another similarity are computed each time they are needed."""
        return self._impacts is not None

    def bounded(self, rank: int) -> BoundedPostings:
        """The postings of the term of a rank, in a text field, with what bounds their scores."""
        part = self._part(rank)
        documents, frequencies = self._documents[part], self._frequencies[part]
        if self._impacts is not None and self._greatest is not None:
            greatest = int(self._greatest[rank : rank + 1][0])
            return BoundedPostings(documents, frequencies, self._impacts[part], greatest)
        found = impacts.of_postings(self._impact_table, frequencies, self._norms.all()[documents])
        return BoundedPostings(documents, frequencies, found, int(found.max()))

    @cached_property
    def _impact_table(self) -> Impacts:
        return impacts.table(self.norm_inverses)

    @cached_property
    def frequencies_by_impact(self) -> NDArray[np.uint8] | None:
        """See `impacts.frequencies`."""
        return impacts.frequencies(self._impact_table)

    @property
    def postings_count(self) -> int:
        """How many postings the field has, of all terms."""
        return len(self._documents)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the postings of each term begin among the field's, by rank; then how many the field has."""
        return self._starts.all()

    def document_frequencies(self) -> NDArray[np.int64]:
        """In how many documents of the index each term is, by rank."""
        return np.diff(self._starts.all())

    def counted(self, documents: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of the documents that are marked have each term, by rank."""
        sums = np.concatenate([[0], np.cumsum(documents[self._documents.all()])])
        starts = self._starts.all()
        return np.asarray(sums[starts[1:]] - sums[starts[:-1]])

    def parts(self, terms: Sequence[str]) -> list[slice]:
        """Where the postings of each term stand among the field's; nothing of a term that does not occur."""
        return self._slices(self.starts, terms)

    def _slices(self, of_rank: NDArray[np.int64], terms: Sequence[str]) -> list[slice]:
        ranks = list(map(self.rank, terms))
        known = [rank for rank in ranks if rank is not None]
        starts, ends = of_rank[known].tolist(), of_rank[[rank + 1 for rank in known]].tolist()
        found = map(slice, starts, ends)
        return [slice(0, 0) if rank is None else next(found) for rank in ranks]

    def all_postings(self) -> Postings:
        """The postings of all terms, by rank, which stand where `starts` and `parts` say."""
        return self._postings_in([slice(0, self.postings_count)])

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, NDArray[np.int64]]:
        """The postings of terms, one term after the other, and how many each has."""
        parts = self._slices(self._starts.all(), terms)
        return self._postings_in(parts), np.array([part.stop - part.start for part in parts], np.int64)

    def living(self, found: Postings) -> Postings:
        """Postings without those of dead documents, of which there are none here: see `part_reader`."""
        return found

    def _postings_in(self, parts: Sequence[slice]) -> Postings:
        """The postings that stand there, one part after the other."""
        documents = _joined(self._documents, parts)
        if not self.field.is_text:
            return Postings(documents, np.ones(len(documents), np.float32))
        return Postings(documents, _joined(self._frequencies, parts).astype(np.float32))

    def positions(self, term: str) -> TermPositions | None:
        """Where a term stands in the documents, None if it does not occur."""
        rank = self.rank(term)
        if rank is None:
            return None
        part, ends = self._part(rank), self._position_starts[rank : rank + 2].tolist()
        return TermPositions(self._documents[part], self._frequencies[part], self._positions, *ends)

    def inverses(self, documents: Numbers) -> Float32s:
        """The norm inverse of BM25 for each of some documents."""
        if not self.field.is_text:
            return np.full(len(documents), self.norm_inverses[WITHOUT_NORM], np.float32)
        return np.asarray(self.norm_inverses[self._norms.all()[documents]])

    @property
    def norms(self) -> NDArray[np.uint8]:
        """The codes of a text field's length in all documents."""
        return self._norms.all()

    def length_codes(self, documents: Numbers) -> NDArray[np.uint8]:
        """The codes of a text field's length in some documents."""
        return np.asarray(self.norms.take(documents))

    def length_code(self, document: int) -> int:
        """The code of the field's length in a document, see `similarity.LENGTHS`."""
        return int(self._norms.all()[document]) if self.field.is_text else WITHOUT_NORM

    def between(self, low: Any, high: Any) -> Numbers:
        """The documents with a number from `low` to `high`, both included."""
        return self._documents[self.places(low, high)]

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        """Whether all numbers of the field are from `low` to `high`, and whether these lie beyond all numbers."""
        return extent(low, high, self.places(low, high), self.values_count)

    @property
    def values_count(self) -> int:
        """How many numbers the field has, of all documents."""
        return len(self._values)

    def places(self, low: Any, high: Any) -> slice:
        """Where the numbers from `low` to `high` stand among all, which are ascending."""
        values = self._values.all()
        first, end = np.searchsorted(values, low, "left"), np.searchsorted(values, high, "right")
        if low == 0 and not np.signbit(low):
            first = self._zero()
        if high == 0 and np.signbit(high):
            end = self._zero()
        return slice(int(first), int(end))

    def _zero(self) -> np.int64:
        """The place of the first 0 that is not -0.0, which is another number to Lucene and comes before."""
        values = self._values.all()
        first, end = np.searchsorted(values, 0, "left"), np.searchsorted(values, 0, "right")
        return np.int64(first + np.count_nonzero(np.signbit(values[first:end])))

    def smallest(self, documents: NDArray[Any]) -> NDArray[np.float64]:
        """The smallest number that each of some documents has in the field, NaN where it has none."""
        of_all = np.full(self.documents, np.nan)
        of_all[self._documents.all()[::-1]] = self._values.all()[::-1]  # the first one is written last
        return np.asarray(of_all[documents])


def extent(low: Any, high: Any, places: slice, count: int) -> tuple[bool, bool]:
    """See `FieldReader.extent`: `places` are those of the numbers from `low` to `high` among this many."""
    if low > high or not count:
        return False, True
    return (places.start, places.stop) == (0, count), places.stop == 0 or places.start == count


def _joined(values: Column, parts: Sequence[slice]) -> NDArray[Any]:
    """The parts one after the other; a single one is not copied."""
    if len(parts) == 1:
        return values[parts[0]]
    return np.concatenate([values[part] for part in parts]) if parts else values[0:0]


__all__ = ["BoundedPostings", "FieldReader", "IndexReader", "Mask", "Numbers", "Postings"]


class IndexReader:
    """A version of an index, open; or a part of one, see `part_reader`.

    `first` is the number that its first document has in the index. `live` marks the documents that count, None if all
    do; the others are `dead`, as numbers.
    """

    is_part = False
    first = 0
    dead: Numbers | None = None
    live: Mask | None = None

    def __init__(self, folder: Path, schema: Schema | None = None, manifest: Manifest | None = None) -> None:
        """Open a version, which is verified whole unless it has been since its files were written or changed.

        It is scored by the similarities of the `schema`, which is in all else that which it was made with. Its
        `manifest` is read unless it is given.

        Raises:
            EngineRefused: it is not searchapp's, or a newer searchapp's.
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        self.folder = folder
        self.manifest = manifest or Manifest.read(folder)
        verified_now = layout.require(folder, self.manifest)
        self.info = self.manifest.info
        self.schema = schema or self.manifest.schema
        self.count = self.whole_count = self.info.documents
        self.sources = Documents(folder)
        try:
            columns = Columns(folder, self.manifest)
            if verified_now:
                columns.trust()
            self._open_columns(columns)
        except BaseException as error:
            self.sources.close()
            if isinstance(error, ValueError | KeyError):
                raise refuted(folder, str(error)) from error
            raise
        self._known_ids = known_ids(self.ids, self._ranks, self._by_rank)

    def _open_columns(self, columns: Columns) -> None:
        self.ids = Terms.of(columns.column, "ids")
        self._by_rank = columns.column("ids.documents")
        self._ranks = columns.column("ids.ranks")
        made_with = self.manifest.schema.fields
        self.fields = {
            name: FieldReader(
                columns, field, self.manifest.fields[name], self.count, made_with[name].similarity
            )
            for name, field in self.schema.fields.items()
        }
        lengths = {len(self.ids), len(self._by_rank), len(self._ranks), self.sources.count}
        if lengths != {self.count}:
            raise refuted(self.folder, "its files do not agree on the number of documents")

    @property
    def ranks(self) -> Numbers:
        """Each document's place in the bytewise order of ids, by which equal scores are ordered."""
        return self._ranks.all()

    @property
    def by_rank(self) -> Numbers:
        """The document at each place of the bytewise order of ids."""
        return self._by_rank.all()

    def in_all(self, field: str) -> bool:
        """Whether all documents have a value in a field."""
        return self.fields[field].statistics.documents == self.whole_count

    def document(self, document_id: str) -> int | None:
        """The number of the document with an id."""
        rank = self.ids.rank(document_id)
        return None if rank is None else int(self._by_rank[rank : rank + 1][0])

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents; those that were asked for once are kept."""
        return self._known_ids.of(documents)

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        """The sources of documents."""
        return self.sources.sources(documents.tolist())

    # As a whole, or as a part of one

    @property
    def parts(self) -> Sequence[IndexReader]:
        """All parts of the index."""
        return (self,)

    def everything(self) -> Mask:
        """Marks of all documents that count."""
        return np.ones(self.count, bool) if self.live is None else self.live.copy()

    def sum_of_parts(self, here: int, count: Callable[[IndexReader], int]) -> int:  # noqa: ARG002
        """What is counted `here`, and in the other parts of the index."""
        return here

    # Files

    @property
    def is_there(self) -> bool:
        """Whether the files still have their names, which another version may have, once an index was removed."""
        try:
            return Manifest.read(self.folder).digest == self.manifest.digest
        except Damaged:
            return self.folder.is_dir()

    def reopened(self) -> IndexReader:
        """The same, opened once more."""
        return IndexReader(self.folder, self.schema, self.manifest)

    def verify(self) -> None:
        """Read every file and compare it with the digest it was written with.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        layout.verify(self.folder, self.manifest)

    def close(self) -> None:
        self.sources.close()
