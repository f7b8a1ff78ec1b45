"""Search an index: one part, or a large base and a small part with its changes as one; count documents and values.

Each part is searched by itself, with the statistics of the whole: base + new - gone (see `index.versions`). So
rankings are those of one index of all documents, to the last bit. The best of both parts are merged; documents of
the new part are numbered behind those of the base.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import EngineRefused
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index import impacts
from searchapp.lucene.index.layout import refuted
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Numbers, Postings, extent
from searchapp.lucene.index.versions import Stored
from searchapp.lucene.queries.query import Query
from searchapp.lucene.search import scoring
from searchapp.lucene.search.explanation import Explainer
from searchapp.lucene.search.kernels import Together
from searchapp.lucene.search.pruning import Pruner
from searchapp.lucene.search.request import Frame, Request
from searchapp.lucene.search.scoring import Answer, Scorer, Scores, finite_scores
from searchapp.lucene.search.term_scores import Rows
from searchapp.lucene.similarity import FieldStatistics, Float32s
from searchapp.model import Counts, Explanation, IndexInfo


def counts(parts: Sequence[tuple[IndexReader, Mask]], fields: Mapping[str, int]) -> Counts:
    """The counts of the documents that are marked in the parts of an index, with so many values of each keyword field.

    Raises:
        EngineRefused: a field is no keyword field.
    """
    return Counts(
        sum(int(np.count_nonzero(matching)) for _reader, matching in parts),
        {
            name: _commonest([(_keywords(reader, name), matching) for reader, matching in parts], most)
            for name, most in fields.items()
        },
    )


def _keywords(reader: IndexReader, name: str) -> FieldReader:
    field = reader.fields.get(name)
    if field is None or field.field.is_number or field.field.is_text:
        raise unsupported(f"counting the values of {name}, only of keyword fields")
    return field


def _commonest(parts: Sequence[tuple[FieldReader, Mask]], most: int) -> list[tuple[str, int]]:
    """The commonest values of a field, equal counts in the order of the values, which is that of the terms."""
    counted: Counter[bytes] = Counter()
    for field, matching in parts:
        counted.update(dict(_counted(field, matching, most if len(parts) == 1 else len(field.terms))))
    first = sorted(counted.items(), key=lambda value: (-value[1], value[0]))[:most]
    return [(term.decode(), count) for term, count in first]


def _counted(field: FieldReader, matching: Mask, most: int) -> Iterator[tuple[bytes, int]]:
    """The `most` commonest values of a field in a part, and their counts."""
    counted = field.counted(matching)
    found = np.flatnonzero(counted)
    first = found[np.argsort(-counted[found], kind="stable")][:most]
    return ((field.terms[rank], int(counted[rank])) for rank in first.tolist())


T = TypeVar("T")

SLACK = 2.0**-20
"""More than what rounding makes of the proportion of two norms, and of what is multiplied by it."""


class WholeField:
    """What counts of a field in the whole index."""

    def __init__(self, base: FieldReader, new: FieldReader, gone: FieldReader) -> None:
        self._base, self._new, self._gone = base, new, gone
        self.statistics = FieldStatistics(
            self._sum(lambda field: field.statistics.documents),
            self._sum(lambda field: field.statistics.tokens),
        )

    def _sum(self, count: Callable[[FieldReader], int]) -> int:
        return count(self._base) + count(self._new) - count(self._gone)

    def document_frequency(self, term: str) -> int:
        """In how many documents a term is."""
        one, other = self._base.document_frequency(term), self._new.document_frequency(term)
        return one + other - self._gone.document_frequency(term) if one else other

    def document_frequencies(self, field: FieldReader) -> NDArray[np.int64]:
        """In how many documents each term of the base or of the new part is, by its rank there."""
        if field.terms is not self._base.terms:
            terms = (term.decode() for term in field.terms)
            return np.fromiter(map(self.document_frequency, terms), np.int64, len(field.terms))
        found = self._base.document_frequencies()
        self._add(found, self._new, 1)
        self._add(found, self._gone, -1)
        return found

    def _add(self, frequencies: NDArray[np.int64], other: FieldReader, sign: int) -> None:
        """Add the document frequencies of another index, with a sign, to those of the base."""
        for term, count in zip(other.terms, other.document_frequencies().tolist(), strict=True):
            rank = self._base.terms.rank(term.decode())
            if rank is not None:
                frequencies[rank] += sign * count

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        """See `FieldReader.extent`."""
        count = self._sum(lambda field: field.values_count)
        start = self._sum(lambda field: field.places(low, high).start)
        stop = self._sum(lambda field: field.places(low, high).stop)
        return extent(low, high, slice(start, stop), count)


class PartField(FieldReader):
    """A field of a part: its statistics are those of the whole, and nobody is told of documents that are dead.

    Only `bounded` and `positions` give these as well: who asks for bounds leaves them out where it scores, and phrases
    leave them out when they are found.
    """

    def __init__(self, field: FieldReader, whole: WholeField, live: Mask | None) -> None:
        """`live` marks the documents that are not dead, None if none is."""
        vars(self).update(vars(field))  # it is the same field, as it was opened
        self._whole = whole
        self._live = live
        self.statistics = whole.statistics
        if field.field.is_number:
            return
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        if field.field.is_text and self._impacts is not None:
            self._scale_edges(field.norm_inverses)

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

    # Of the whole

    def document_frequency(self, term: str) -> int:
        return self._whole.document_frequency(term)

    def document_frequencies(self) -> NDArray[np.int64]:
        return self._document_frequencies

    @cached_property
    def _document_frequencies(self) -> NDArray[np.int64]:
        return self._whole.document_frequencies(self)

    def elsewhere(self, terms: Iterable[str]) -> tuple[int, int]:
        found = [self.document_frequency(term) for term in terms if self.rank(term) is None]
        return sum(map(bool, found)), sum(found)

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        return self._whole.extent(low, high)

    # Without the dead

    @property
    def present(self) -> Numbers:
        return self._of_live(super().present)

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        return self._of_live(super().documents_with(ranks))

    def postings(self, term: str) -> Postings:
        return self.living(super().postings(term))

    def living(self, found: Postings) -> Postings:
        kept = self._kept(found.documents)
        return found if kept is None else Postings(found.documents[kept], found.frequencies[kept])

    def between(self, low: Any, high: Any) -> Numbers:
        return self._of_live(super().between(low, high))

    @property
    def starts(self) -> NDArray[np.int64]:
        return super().starts if self._live is None else self._live_starts

    @cached_property
    def _live_starts(self) -> NDArray[np.int64]:
        assert self._live is not None
        before = np.append(0, np.cumsum(self._live.take(self._documents.all())))
        return np.asarray(before[super().starts], np.int64)

    def all_postings(self) -> Postings:
        return self.living(super().all_postings())

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, NDArray[np.int64]]:
        found, counts = super().postings_of(terms)
        kept = self._kept(found.documents)
        if kept is None:
            return found, counts
        before = np.append(0, np.cumsum(kept))
        counts = np.diff(before[np.append(0, np.cumsum(counts))])
        return Postings(found.documents[kept], found.frequencies[kept]), counts

    def _of_live(self, documents: Numbers) -> Numbers:
        kept = self._kept(documents)
        return documents if kept is None else documents[kept]

    def _kept(self, documents: Numbers) -> Mask | None:
        """Which documents are not dead, None if none is."""
        if self._live is None:
            return None
        kept = self._live.take(documents)
        return None if kept.all() else kept


class PartReader(IndexReader):
    """A part of an index, open."""

    def __init__(
        self,
        reader: IndexReader,
        fields: dict[str, WholeField],
        parts: Sequence[IndexReader],
        *,
        whole_count: int,
        first: int = 0,
        dead: Numbers | None = None,
    ) -> None:
        """`first` is the number that its first document has in the whole, `parts` will hold all parts."""
        vars(self).update(vars(reader))  # it is the same index, as it was opened
        self.first = first
        self.whole_count = whole_count
        self._parts = parts
        if dead is not None and len(dead):
            self.dead = dead
            self.live = np.ones(reader.count, bool)
            self.live[dead] = False
        self.fields = {
            name: PartField(field, fields[name], self.live) for name, field in reader.fields.items()
        }

    is_part = True

    @property
    def parts(self) -> Sequence[IndexReader]:
        return self._parts

    def document(self, document_id: str) -> int | None:
        found = super().document(document_id)
        return None if found is None or (self.live is not None and not self.live[found]) else found

    def sum_of_parts(self, here: int, count: Callable[[IndexReader], int]) -> int:
        return sum(here if part is self else count(part) for part in self._parts)


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


class Searcher:
    """Finds and scores the documents of a part, whose numbers are those of the part."""

    def __init__(self, reader: IndexReader) -> None:
        self.reader = reader
        rows = Rows(reader)
        self.scorer = Scorer(reader, rows)
        self.pruner = Pruner(reader)
        self.together = Together(reader, rows)
        self._found: tuple[str, Scores] | None = None
        """The scores of the query that was asked last, whose next hits are often asked for."""

    def found(self, requests: Sequence[Request], *, alone: bool) -> tuple[list[Answer | None], int, int]:
        """The answers that can be had without scoring each query by itself, None for those of others.

        Besides, for how many of these not all documents were scored, and how many the compiled functions scored.
        """
        found = [self.pruned(request, alone=alone) for request in requests]
        pruned = sum(one is not None for one in found)
        self._answer_together(requests, found)
        left = found.count(None)
        # The body that is refused is refused again when it is answered, by its place.
        with suppress(EngineRefused), finite_scores():
            self.scorer.prepare(
                request.query for request, one in zip(requests, found, strict=True) if one is None
            )
        return found, pruned, len(requests) - left

    def _answer_together(self, requests: Sequence[Request], found: list[Answer | None]) -> None:
        """Put the answers into `found` that can be had together, of the requests that have none."""
        places = [place for place, one in enumerate(found) if one is None]
        if not places:
            return
        with suppress(EngineRefused), finite_scores():
            answers = self.together.best([requests[place] for place in places])
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer

    def pruned(self, request: Request, *, alone: bool = True) -> Answer | None:
        """The best documents of a query where they can be found without scoring all documents, None elsewhere."""
        frame = request.frame
        if frame.after is not None:
            return None
        found = self.pruner.best(request.query, frame.first + frame.size, alone=alone)
        return None if found is None else (found[0][frame.first :], found[1][frame.first :])

    def best(self, request: Request) -> Answer:
        """The best documents of a query, all of which are scored."""
        return self.best_of(self.scored(request), request.frame)

    def remembers(self, words: str) -> bool:
        """Whether all scores of a query in these words are known, see `best_again`."""
        return self._found is not None and self._found[0] == words

    def best_again(self, request: Request, words: str) -> tuple[Answer, bool]:
        """The best documents of a query in these words, and whether not all documents were scored.

        If all are scored, the scores are kept for its next hits.
        """
        if self._found is None or self._found[0] != words:
            pruned = self.pruned(request)
            if pruned is not None:
                return pruned, True
            self._found = words, self.scored(request)
        return self.best_of(self._found[1], request.frame), False

    def scored(self, request: Request) -> Scores:
        """The scores of all documents."""
        return self.scorer.scores(request.query)

    def best_of(self, scores: Scores, frame: Frame) -> Answer:
        """The documents that a frame asks for."""
        first, size = frame.first, frame.size
        if frame.after is not None:
            score, id_ = frame.after
            scores = scoring.behind(scores, self.reader.ranks, score, self.reader.ids.place_behind(id_))
        documents = scoring.best(scores, self.reader.ranks, first + size)[first:]
        return documents.astype(np.int32), scores.values[documents]

    def matching(self, query: Query) -> Mask:
        """The documents that a query matches."""
        return self.scorer.matching(query)

    def explanations(self, query: Query, documents: Sequence[int]) -> list[Explanation]:
        """How a query comes to the scores of documents that it matches."""
        explainer = Explainer(self.reader, self.scorer)
        return [explainer.explanation(query, document) for document in documents]
