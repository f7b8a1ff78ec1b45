"""An index opened for searching: its segments, their fields, postings and ids.

Each segment is searched by itself, with the statistics of the live documents of all segments. So scores are those of
an index that was built anew from the live documents, to the last bit; document numbers of a segment follow those of
the segment before. Every file is open, almost nothing of it is read. Ids of documents are kept once they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import Damaged
from searchapp.lucene.index import impacts, layout
from searchapp.lucene.index.arrays import Column, Columns, Mask, Numbers
from searchapp.lucene.index.documents import Documents
from searchapp.lucene.index.impacts import Impacts
from searchapp.lucene.index.layout import FieldSummary, Manifest, Segment, refuted
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.terms import TermPositions, Terms
from searchapp.lucene.similarity import BM25, FieldStatistics, Float32s, idf
from searchapp.model import IndexInfo

FEW = 200_000
"""Up to so many documents there is room for the ids of all."""

READ_TOGETHER = 8
"""So many ids are read together in the time of one that is read alone."""

REMEMBERED = 1_000_000
"""Among more documents, how many ids are kept; all are forgotten when there are so many."""


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
        """The ids of documents, which are given as numbers of shape `(n,)`."""
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
        """As `_OfFew.of`."""
        return list(map(self.__getitem__, documents.tolist()))

    def __missing__(self, document: int) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        self[document] = id_ = self._ids[int(self._ranks.all()[document])].decode()
        return id_


RankedDocuments = tuple[NDArray[np.int32], Float32s]
"""Documents and their scores, best first."""

WITHOUT_NORM = 1
"""The length code of every document in a field that keeps no lengths, as Lucene has it."""

REMEMBERED_TERMS = 200_000
"""Terms of a field whose rank is kept once it was looked up."""


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


SLACK = 2.0**-20
"""More than what rounding makes of the proportion of two norms, and of what is multiplied by it."""


class FieldReader:
    """One field of a segment. A keyword field has no frequencies, positions and norms; a number no terms.

    Its statistics are those of the live documents of all segments, and nobody is told of documents that are dead. Only
    `bounded` and `positions` give these as well: who asks for bounds leaves them out where it scores, and phrases leave
    them out when they are found.
    """

    edges_above: Float32s = impacts.EDGES
    """The greatest x, see `impacts`, that each impact stands for in the field's files."""

    def __init__(
        self,
        columns: Columns,
        field: Field,
        summary: FieldSummary,
        documents: int,
        made_with: BM25 | None,
        live: Mask | None = None,
        deleted: DeletedTerms | None = None,
    ) -> None:
        """`made_with` is the similarity that impacts in files are of: with another one they bound no scores.

        `live` marks the documents that are not dead, None if none is; `deleted` is what the dead ones have.
        """
        self.field = field
        self.documents = documents
        self._live = live
        self._deleted = deleted
        self._made_with = FieldStatistics(summary.documents, summary.tokens)
        self.live_statistics = self._made_with
        if deleted is not None:
            self.live_statistics = FieldStatistics(
                summary.documents - deleted.summary.documents, summary.tokens - deleted.summary.tokens
            )
        self._others: Sequence[FieldReader] = ()

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
        if field.is_text:
            self._norms = load("norms")
            self._frequencies = load("frequencies")
            self._position_starts = load("position-starts")
            self._positions = load("positions")
            self._impacts = self._greatest = None
            if self.similarity == (made_with or BM25()):
                self._impacts, self._greatest = load(impacts.IMPACTS), load(impacts.GREATEST)

    def join(self, segments: Sequence[FieldReader]) -> None:
        """Take the statistics of the field in all segments of the index, this one included."""
        self._others = [one for one in segments if one is not self]
        self.statistics = FieldStatistics(
            sum(one.live_statistics.documents for one in segments),
            sum(one.live_statistics.tokens for one in segments),
        )
        if self.field.is_number:
            return
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        if self.field.is_text and self._impacts is not None and self.statistics != self._made_with:
            self._scale_edges(self.similarity.norm_inverses(self._made_with))

    def _scale_edges(self, made_with: Float32s) -> None:
        """Let the impacts in files, which were made with other norms, bound the scores of these."""
        same = made_with == self.norm_inverses
        if same.all():
            return
        with np.errstate(all="ignore"):
            ratios = np.where(same, 1.0, self.norm_inverses.astype(np.float64) / made_with)
        if not (np.isfinite(ratios) & (ratios > 0)).all():
            self._impacts = self._greatest = None  # they are computed anew
            return
        with np.errstate(over="ignore"):
            self.edges_above = (impacts.EDGES * (ratios.max() * (1 + SLACK))).astype(np.float32)

    @property
    def present(self) -> Numbers:
        """The documents that have a value."""
        return self._of_live(self._present.all())

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

    def elsewhere(self, terms: Iterable[str]) -> tuple[int, int]:
        """How many terms occur in other segments only, and in how many documents: the sum of all terms."""
        found = [self.document_frequency(term) for term in terms if self.rank(term) is None]
        return sum(map(bool, found)), sum(found)

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
        here = self._live_frequency(term)
        return here + sum(one._live_frequency(term) for one in self._others) if self._others else here

    def _live_frequency(self, term: str) -> int:
        """In how many live documents of the segment a term is."""
        rank = self.rank(term)
        if rank is None:
            return 0
        part = self._part(rank)
        found = int(part.stop - part.start)
        return found if self._deleted is None else found - self._deleted.document_frequency(rank)

    def _part(self, rank: int) -> slice:
        """Where the postings of a term stand among the field's."""
        return slice(*self._starts[rank : rank + 2].tolist())

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        """The documents that have a term of one of the ranks; a document may come several times."""
        pieces = [self._documents[self._part(rank)] for rank in ranks]
        return self._of_live(np.concatenate(pieces)) if pieces else np.empty(0, np.int32)

    def documents_with_terms(self, terms: Iterable[str]) -> Numbers:
        """The documents that have one of the terms, as `documents_with`."""
        return self.documents_with(rank for rank in map(self.rank, terms) if rank is not None)

    def postings(self, term: str) -> Postings:
        rank = self.rank(term)
        if rank is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        return self.living(self._postings_in([self._part(rank)]))

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

    @property
    def postings_count(self) -> int:
        """How many postings the field has, of all terms."""
        return len(self._documents)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the live postings of each term begin among the field's, by rank; then how many the field has."""
        return self._starts.all() if self._live is None else self._live_starts

    @cached_property
    def _live_starts(self) -> NDArray[np.int64]:
        assert self._live is not None
        before = np.append(0, np.cumsum(self._live.take(self._documents.all())))
        return np.asarray(before[self._starts.all()], np.int64)

    def document_frequencies(self) -> NDArray[np.int64]:
        """In how many documents of the index each term is, by rank."""
        if not self._others and self._deleted is None:
            return np.diff(self._starts.all())
        return self._document_frequencies

    @cached_property
    def _document_frequencies(self) -> NDArray[np.int64]:
        found = np.diff(self._starts.all())
        if self._deleted is not None:
            found[self._deleted.ranks] -= self._deleted.counts
        for other in self._others:
            # The smaller dictionary is looked through.
            if len(self.terms) < len(other.terms):
                found += np.fromiter(
                    (other._live_frequency(term.decode()) for term in self.terms), np.int64, len(found)
                )
                continue
            for term in map(bytes.decode, other.terms):
                rank = self.terms.rank(term)
                if rank is not None:
                    found[rank] += other._live_frequency(term)
        return found

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
        return self.living(self._postings_in([slice(0, self.postings_count)]))

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, NDArray[np.int64]]:
        """The postings of terms, one term after the other, and how many each has."""
        parts = self._slices(self._starts.all(), terms)
        found, counts = (
            self._postings_in(parts),
            np.array([part.stop - part.start for part in parts], np.int64),
        )
        kept = self._kept(found.documents)
        if kept is None:
            return found, counts
        before = np.append(0, np.cumsum(kept))
        counts = np.diff(before[np.append(0, np.cumsum(counts))])
        return Postings(found.documents[kept], found.frequencies[kept]), counts

    def living(self, found: Postings) -> Postings:
        """Postings without those of dead documents."""
        kept = self._kept(found.documents)
        return found if kept is None else Postings(found.documents[kept], found.frequencies[kept])

    def _of_live(self, documents: Numbers) -> Numbers:
        kept = self._kept(documents)
        return documents if kept is None else documents[kept]

    def _kept(self, documents: Numbers) -> Mask | None:
        """Which documents are not dead, None if none is."""
        if self._live is None:
            return None
        kept = self._live.take(documents)
        return None if kept.all() else kept

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

    def length_code(self, document: int) -> int:
        """The code of the field's length in a document, see `similarity.LENGTHS`."""
        return int(self._norms.all()[document]) if self.field.is_text else WITHOUT_NORM

    def between(self, low: Any, high: Any) -> Numbers:
        """The documents with a number from `low` to `high`, both included."""
        return self._of_live(self._documents[_places(self._values.all(), low, high)])

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        """Whether all numbers of the index are from `low` to `high`, and whether these lie beyond all numbers."""
        values = [one._live_values for one in (self, *self._others)]
        places = [_places(some, low, high) for some in values]
        count, start = sum(map(len, values)), sum(place.start for place in places)
        stop = sum(place.stop for place in places)
        if low > high or not count:
            return False, True
        return (start, stop) == (0, count), stop == 0 or start == count

    @property
    def _live_values(self) -> NDArray[Any]:
        """The numbers of live documents, ascending."""
        return self._values.all() if self._live is None else self._values_of_live

    @cached_property
    def _values_of_live(self) -> NDArray[Any]:
        assert self._live is not None
        values: NDArray[Any] = self._values.all()[self._live[self._documents.all()]]
        return values

    def smallest(self, documents: NDArray[Any]) -> NDArray[np.float64]:
        """The smallest number that each of some documents has in the field, NaN where it has none."""
        of_all = np.full(self.documents, np.nan)
        of_all[self._documents.all()[::-1]] = self._values.all()[::-1]  # the first one is written last
        return np.asarray(of_all[documents])


def _places(values: NDArray[Any], low: Any, high: Any) -> slice:
    """Where the numbers from `low` to `high` stand among ascending ones."""

    def zero() -> int:
        """The place of the first 0 that is not -0.0, which is another number to Lucene and comes before."""
        first, end = np.searchsorted(values, 0, "left"), np.searchsorted(values, 0, "right")
        return int(first + np.count_nonzero(np.signbit(values[first:end])))

    first, end = int(np.searchsorted(values, low, "left")), int(np.searchsorted(values, high, "right"))
    if low == 0 and not np.signbit(low):
        first = zero()
    if high == 0 and np.signbit(high):
        end = zero()
    return slice(first, end)


def _joined(values: Column, parts: Sequence[slice]) -> NDArray[Any]:
    """The parts one after the other; a single one is not copied."""
    if len(parts) == 1:
        return values[parts[0]]
    return np.concatenate([values[part] for part in parts]) if parts else values[0:0]


@dataclass(frozen=True, slots=True)
class DeletedTerms:
    """What the dead documents of a segment have of a field: document frequencies by ascending ranks, see `layout`."""

    summary: FieldSummary
    ranks: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Columns, field: Field, summary: FieldSummary) -> DeletedTerms:
        """Open those of a field; numbers have no terms."""
        if field.is_number:
            return cls(summary, np.empty(0, np.int64), np.empty(0, np.int64))
        ranks, counts = (columns.column(f"{summary.prefix}.{part}").all() for part in ("ranks", "counts"))
        return cls(summary, ranks, counts)

    def document_frequency(self, rank: int) -> int:
        """In how many dead documents the term of a rank is."""
        place = int(self.ranks.searchsorted(rank))
        return int(self.counts[place]) if place < len(self.ranks) and self.ranks[place] == rank else 0


__all__ = ["BoundedPostings", "DirectoryReader", "FieldReader", "IndexReader", "Mask", "Numbers", "Postings"]


class IndexReader:
    """A segment, open.

    `first` is the number that its first document has in the index. `live` marks the documents that count, None if all
    do; the others are `dead`, as numbers. `others` are the other segments of the index, `whole_count` counts its
    documents, and `is_part` says whether other documents count in the index than those of the segment's files.
    """

    others: Sequence[IndexReader]
    whole_count: int
    is_part: bool

    def __init__(
        self, segment: Segment, schema: Schema, made_with: Schema, index: Columns, first: int = 0
    ) -> None:
        """Open a segment, which is verified whole unless it has been since its files were written or changed.

        It is scored by the similarities of the `schema`, and was `made_with` perhaps others. `index` has the files of
        the version that names the segment. `DirectoryReader` lists the errors.
        """
        self.folder, self.manifest, deletions = segment
        verified_now = layout.require(self.folder, self.manifest)
        self.schema = schema
        self.first = first
        self.count = self.manifest.documents
        self.live: Mask | None = None
        self.dead: Numbers | None = None
        self.sources = Documents(self.folder)
        try:
            columns = Columns(self.folder, self.manifest)
            if verified_now:
                columns.trust()
            if deletions.documents:
                self._read_dead(index.column(deletions.prefix).all(), deletions.documents)
            self.ids = Terms.of(columns.column, "ids")
            self._by_rank = columns.column("ids.documents")
            self._ranks = columns.column("ids.ranks")
            self.fields = {
                name: FieldReader(
                    columns,
                    field,
                    self.manifest.fields[name],
                    self.count,
                    made_with.fields[name].similarity,
                    self.live,
                    DeletedTerms.of(index, field, deletions.fields[name]) if deletions.documents else None,
                )
                for name, field in schema.fields.items()
            }
            lengths = {len(self.ids), len(self._by_rank), len(self._ranks), self.sources.count}
            if lengths != {self.count}:
                raise ValueError("its files do not agree on the number of documents")
        except BaseException as error:
            self.sources.close()
            if isinstance(error, ValueError | KeyError):
                raise refuted(self.folder, str(error)) from error
            raise
        few = self.count <= FEW
        self._known_ids = (
            _OfFew(self.ids, self._ranks, self._by_rank) if few else _OfMany(self.ids, self._ranks)
        )

    def _read_dead(self, dead: Numbers, count: int) -> None:
        ascends = dead[0] >= 0 and dead[-1] < self.count and (np.diff(dead) > 0).all() if len(dead) else False
        if len(dead) != count or not ascends:
            raise ValueError("its files do not agree on the deleted documents")
        self.dead = np.ascontiguousarray(dead, np.int32)
        self.live = np.ones(self.count, bool)
        self.live[dead] = False

    @property
    def ranks(self) -> Numbers:
        """Each document's place in the bytewise order of ids, by which equal scores are ordered."""
        return self._ranks.all()

    @property
    def by_rank(self) -> Numbers:
        """The document at each place of the bytewise order of ids."""
        return self._by_rank.all()

    def in_all(self, field: str) -> bool:
        """Whether all documents of the index have a value in a field."""
        return self.fields[field].statistics.documents == self.whole_count

    def document(self, document_id: str) -> int | None:
        """The number of the live document with an id."""
        rank = self.ids.rank(document_id)
        if rank is None:
            return None
        found = int(self._by_rank[rank : rank + 1][0])
        return found if self.live is None or self.live[found] else None

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents; those that were asked for once are kept."""
        return self._known_ids.of(documents)

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        """The sources of documents."""
        return self.sources.sources(documents.tolist())

    def everything(self) -> Mask:
        """Marks of all documents that count."""
        return np.ones(self.count, bool) if self.live is None else self.live.copy()

    def sum_of_parts(self, here: int, count: Callable[[IndexReader], int]) -> int:
        """What is counted `here`, and in the other segments of the index."""
        return here + sum(map(count, self.others))

    def close(self) -> None:
        self.sources.close()


def shared_out(
    documents: NDArray[Any], segments: Sequence[IndexReader]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """For each segment, which of some documents are in it, and their numbers there."""
    for one in segments:
        places = np.flatnonzero((documents >= one.first) & (documents < one.first + one.count))
        yield places, documents[places] - one.first


class DirectoryReader:
    """An index, open: its segments, and its documents by their numbers in the index."""

    def __init__(self, folder: Path, schema: Schema | None = None, manifest: Manifest | None = None) -> None:
        """Open a version, whose segments are verified whole unless they have been since they were written or changed.

        It is scored by the similarities of the `schema`, which is in all else that which it was made with. Its
        `manifest` is read unless it is given.

        Raises:
            EngineRefused: it is not searchapp's, or a newer searchapp's.
            DataError: it is damaged.
            SearchappError: it can't be read.
        """
        self.folder = folder
        self.manifest = manifest or Manifest.read(folder)
        self.info: IndexInfo = self.manifest.info
        self.count = self.info.documents
        self.schema = schema or self.manifest.schema
        self._stored = self.manifest.segments(folder)
        opened: list[IndexReader] = []
        self.parts: Sequence[IndexReader] = opened
        try:
            columns = Columns(folder, self.manifest)
            first = 0
            for segment in [one for one in self._stored if one.live] or self._stored[-1:]:
                opened.append(IndexReader(segment, self.schema, self.manifest.schema, columns, first))
                first += segment.manifest.documents
        except BaseException:
            self.close()
            raise
        if self.count != sum(one.live for one in self._stored):
            self.close()
            raise refuted(folder, "its segments do not agree on the number of documents")
        for one in opened:
            one.others, one.whole_count = [other for other in opened if other is not one], self.count
            one.is_part = len(opened) > 1 or one.dead is not None
        for name in self.schema.fields:
            fields = [one.fields[name] for one in opened]
            for field in fields:
                field.join(fields)
        self.fields = opened[0].fields

    @property
    def is_there(self) -> bool:
        """Whether the files still have their names, which another version may have, once an index was removed."""
        for folder, manifest, _deletions in self._stored:
            try:
                if Manifest.read(folder).digest != manifest.digest:
                    return False
            except Damaged:
                if not folder.is_dir():
                    return False
        return True

    def reopened(self) -> DirectoryReader:
        """The same, opened once more."""
        return DirectoryReader(self.folder, self.schema, self.manifest)

    def verify(self) -> None:
        """Read every file and compare it with the digest it was written with.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        for folder, manifest, _deletions in self._stored:
            layout.verify(folder, manifest)

    def close(self) -> None:
        for one in self.parts:
            one.close()

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents."""
        if len(self.parts) == 1:
            return self.parts[0].ids_of(documents)
        found = np.empty(len(documents), object)
        for one, (places, numbers) in zip(self.parts, shared_out(documents, self.parts), strict=True):
            found[places] = one.ids_of(numbers)
        ids: list[str] = found.tolist()
        return ids

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        """The sources of documents."""
        found: list[Any] = [None] * len(documents)
        for one, (places, numbers) in zip(self.parts, shared_out(documents, self.parts), strict=True):
            for place, source in zip(places.tolist(), one.sources_of(numbers), strict=True):
                found[place] = source
        return found

    def merged(self, answers: Sequence[RankedDocuments], first: int, size: int) -> RankedDocuments:
        """The best `size` from the place `first` on of what each segment has found, best first; of equals by id."""
        documents = np.concatenate(
            [one.first + found for one, (found, _scores) in zip(self.parts, answers, strict=True)]
        )
        scores = np.concatenate([found for _documents, found in answers])
        order = np.argsort(-scores, kind="stable")
        end = first + size
        if len(order) > end > 0:  # all that are as good as the last one
            order = order[: int((-scores[order]).searchsorted(-scores[order[end - 1]], "right"))]
        documents, scores = documents[order], scores[order]
        segments = np.searchsorted([one.first for one in self.parts], documents, "right")
        edges = (np.flatnonzero(np.diff(scores)) + 1).tolist()
        for begin, stop in pairwise([0, *edges, len(scores)]):
            equal = documents[begin:stop]
            if begin < min(end, stop) and (segments[begin:stop] != segments[begin]).any():
                documents[begin:stop] = equal[np.argsort(np.array(self.ids_of(equal), object), kind="stable")]
        return documents[first:end].astype(np.int32, copy=False), scores[first:end]
