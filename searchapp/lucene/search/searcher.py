"""An open index that ranks, searches, counts, explains and analyzes."""

from __future__ import annotations

import logging
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.errors import (
    IndexReplaced,
    InvalidInput,
    Refused,
    RefusedQuery,
    invalid,
    unsupported,
)
from searchapp.lucene.index.arrays import Mask, Numbers
from searchapp.lucene.index.index_settings import without_similarities
from searchapp.lucene.index.layout import IndexManifest
from searchapp.lucene.index.mapping import ID, KEYWORD
from searchapp.lucene.index.reader import DirectoryReader, Ranking, SegmentReader, by_segment
from searchapp.lucene.index.versions import IndexFolder
from searchapp.lucene.parameters import decimal
from searchapp.lucene.queries import dsl
from searchapp.lucene.queries.query import Constant, Parser, Query, rewrite
from searchapp.lucene.queries.scores import FiniteScores, ScoreRows, Scores
from searchapp.lucene.records import AnalysisStep, Body, Counts, Document, Explanation, ScoredDocument
from searchapp.lucene.search.compiled import NOTHING, Pruner, Workspace, search_batch
from searchapp.lucene.search.highlight import Highlighter, TokenCache
from searchapp.lucene.search.request import BodyReader, Frame, Request
from searchapp.lucene.search.sorting import DocumentClause, ScoreClause, TermClause, select
from searchapp.lucene.search.spelling import SimilarTerm, similar_terms
from searchapp.lucene.similarity import ONE, Float32s

if TYPE_CHECKING:
    from searchapp.lucene.search.aggregations import Aggregations, Documents
    from searchapp.lucene.search.knn import KnnSection
    from searchapp.lucene.search.rescoring import Rescore

_log = logging.getLogger("searchapp.requests")

SMALLEST_BATCH = 8  # topics of a smaller batch are scored one by one

SAMPLING_RATE = 16  # one score in this many is sampled to estimate the score at a rank

DAMAGE_ERRORS = (IndexError, TypeError, ValueError, OverflowError, MemoryError, sqlite3.Error)

NOT_MATCHING = np.float32(-1)  # less than every score

_LARGEST_BITS = np.int64(0x7FFFFFFF)


class DamageCheck:
    """Verify the files of an index after an error that an altered file can cause."""

    def __init__(self, reader: DirectoryReader) -> None:
        self._reader = reader

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, DAMAGE_ERRORS) and self._reader.exists:
            self._reader.verify()


def top_k(scores: Scores, ranks: Numbers, size: int) -> NDArray[np.intp]:
    """Return the first `size` matching documents by score descending; `ranks` orders equal scores."""
    if size == 0:
        return np.empty(0, np.intp)
    candidates = _sampled_candidates(scores.values, size)
    if candidates is None:
        values = np.where(scores.mask(), scores.values, NOT_MATCHING)
        bound = np.float32(0)
        if size < len(values):
            bound = max(np.partition(values, len(values) - size)[len(values) - size], bound)
        candidates = np.flatnonzero(values >= bound)
    # The bits of a non-negative float32 order like the float, so that score and rank form one integer key.
    bits = scores.values[candidates].view(np.int32).astype(np.int64)
    keys = (_LARGEST_BITS - bits) << 32 | ranks[candidates]
    if len(keys) <= size:
        return candidates[keys.argsort()]
    chosen = np.argpartition(keys, size)[:size]
    return candidates[chosen[keys[chosen].argsort()]]


def _sampled_candidates(values: Float32s, size: int) -> NDArray[np.intp] | None:
    """Return matching documents that include the best `size`; None if the sample is insufficient.

    The sample estimates a score that about 1.5 times `size` documents reach. A count of these documents verifies it.
    """
    sample = values[::SAMPLING_RATE]
    expected = size / SAMPLING_RATE
    rank = int(expected + 3 * math.sqrt(expected)) + 1
    if 2 * rank > len(sample):
        return None
    bound = np.partition(sample, len(sample) - rank)[len(sample) - rank]
    if not bound > 0:
        return None
    candidates = np.flatnonzero(values >= bound)
    return candidates if len(candidates) >= size else None


class RankedBatch(NamedTuple):
    """The rankings of a batch."""

    rankings: Sequence[Ranking]
    pruned: int  # queries answered without scoring all documents
    compiled: int  # queries scored by C functions

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes send few large arrays faster.
        documents, scores = map(np.concatenate, zip(NOTHING, *self.rankings, strict=True))
        sizes = [len(found) for found, _scores in self.rankings]
        return _unpickle_batch, (documents, scores, sizes, self.pruned, self.compiled)


def _unpickle_batch(
    documents: Numbers, scores: Float32s, sizes: Sequence[int], pruned: int, compiled: int
) -> RankedBatch:
    parts = [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]
    return RankedBatch([(documents[part], scores[part]) for part in parts], pruned, compiled)


class HitPage(NamedTuple):
    """Hits of a request in order, and what its response reports of all matching documents."""

    documents: Numbers
    scores: Float32s  # NaN if the sort needs no scores
    values: Sequence[tuple[Any, ...]]  # of the sort
    fields: Sequence[Mapping[str, Sequence[Any]]]  # the value by which each hit is collapsed
    total: int
    matching: Sequence[Mask] = ()  # by segment, without the `post_filter`
    max_score: float | None = None

    def part(self, first: int, end: int) -> HitPage:
        """Return the page of the hits from `first` to `end`."""
        part = slice(first, end)
        return self._replace(
            documents=self.documents[part],
            scores=self.scores[part],
            values=self.values[part],
            fields=self.fields[part],
        )


# The orders of hits without a `sort`.
BEST_FIRST = (ScoreClause(True), TermClause(False, ID, False, None, False))
RESCORED = (ScoreClause(True), DocumentClause())


class SegmentSearcher:
    """Ranks the documents of a segment."""

    def __init__(self, reader: SegmentReader) -> None:
        self.reader = reader
        self.rows = ScoreRows(reader)
        self.pruner = Pruner(reader)
        self._workspaces: list[Workspace] = []

    def rank_batch(
        self, requests: Sequence[Request], *, alone: bool
    ) -> tuple[list[Ranking | None], int, int]:
        """Rank a batch with C functions; None for requests that NumPy must score.

        Also return the number of pruned queries, and of queries scored by C functions.
        """
        rankings = [self.pruned(request, alone=alone) for request in requests]
        pruned = len(rankings) - rankings.count(None)
        if pruned == len(requests):
            return rankings, pruned, pruned
        # `rank` rejects an invalid body again, and reports its index.
        with suppress(Refused), FiniteScores():
            indices = [index for index, ranking in enumerate(rankings) if ranking is None]
            batch = search_batch(
                self.rows, self.reader, [requests[index] for index in indices], self._workspaces
            )
            for index, ranking in zip(indices, batch, strict=True):
                rankings[index] = ranking
        unanswered = rankings.count(None)
        if not unanswered:
            return rankings, pruned, len(requests)
        with suppress(Refused), FiniteScores():
            self._prepare_rows(
                request.query for request, ranking in zip(requests, rankings, strict=True) if ranking is None
            )
        return rankings, pruned, len(requests) - unanswered

    def _prepare_rows(self, queries: Iterable[Query]) -> None:
        terms: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
        for query in queries:
            for field, query_terms, boost in query.scored_terms():
                terms[field, boost] += query_terms
        for (field, boost), field_terms in terms.items():
            self.rows.prepare(field, field_terms, np.float32(boost))

    def pruned(self, request: Request, *, alone: bool = True) -> Ranking | None:
        frame = request.frame
        if frame.after is not None:
            return None
        ranking = self.pruner.best(request.query, frame.end, alone=alone)
        if ranking is None or not frame.first:
            return ranking
        documents, scores = ranking
        return documents[frame.first :], scores[frame.first :]

    def rank(self, request: Request) -> Ranking:
        return self.select(request.query.scores(self.rows), request.frame)

    def select(self, scores: Scores, frame: Frame) -> Ranking:
        ranks = self.reader.ranks
        if frame.after is not None:
            score, id_ = frame.after
            bound, rank = np.float32(score), self.reader.ids.insertion(id_, is_after=True)
            is_after = (scores.values < bound) | ((scores.values == bound) & (ranks >= rank))
            mask = scores.mask() & is_after
            scores = Scores(np.where(mask, scores.values, np.float32(0)), mask)
        documents = top_k(scores, ranks, frame.end)[frame.first :]
        return documents.astype(np.int32), scores.values[documents]


class Index:
    """An index in a folder, opened at one version, which stays readable after newer versions are written.

    Bodies and mappings are Elasticsearch's. All methods raise errors of `searchapp.lucene.errors`.
    """

    def __init__(self, reader: DirectoryReader, analyzers: AnalysisRegistry | None = None) -> None:
        self.analyzers = analyzers or AnalysisRegistry(reader.schema.analysis, reader.schema.limits)
        self._tokens = TokenCache(self.analyzers)
        self._open(reader)

    def _open(self, reader: DirectoryReader) -> None:
        self.reader = reader
        self._damage_check = DamageCheck(reader)
        self._nearest: dict[KnnSection, Query] = {}  # of the sections `knn` of a batch of bodies
        self.searchers = [SegmentSearcher(part) for part in reader.parts]
        rows = [searcher.rows for searcher in self.searchers]
        self._find_nearest = partial(_find_nearest, rows, self._nearest)
        self.bodies = BodyReader(Parser(reader.parts[0], self.analyzers, dsl.reader), self._find_nearest)
        self._documents: Documents | None = None  # of aggregations, which cache values
        # The last query and its scores, because its next page is often requested.
        self._last_scores: tuple[str, list[Scores]] | None = None

    def _prepare_nearest(self, bodies: Iterable[Body]) -> None:
        """Find the documents of the sections `knn` of a batch together, for `BodyReader`."""
        self._nearest.clear()
        sections: list[KnnSection] = []
        for body in bodies:
            if body.get("knn"):
                with suppress(Refused), FiniteScores():
                    sections += self.bodies.sections(body)
        if sections:
            self._nearest.update(self._find_nearest(sections))

    @classmethod
    def create(cls, folder: Path, mapping: Mapping[str, Any], documents: Iterable[Document] = ()) -> Index:
        """Write an index from a create-index body and documents, replacing the one in the folder, and open it.

        Raises:
            LuceneError: the mapping or a document is rejected, or another process writes the index.
            OSError: the folder is not writable.
        """
        documents = list(documents)
        from searchapp.lucene.index.writer import write_version  # slow to import

        write_version(IndexFolder(folder), mapping, documents, len(documents))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, mapping: Mapping[str, Any] | None = None) -> Index:
        """Open the live version of an index; a `mapping` overrides the stored similarities.

        Raises:
            Refused: there is no index, or the mapping differs in more than similarities.
            CorruptIndex: the index is damaged.
            UnreadableFile: a file can't be read.
        """

        def read(version: Path) -> DirectoryReader:
            if mapping is None:
                return DirectoryReader(version)
            manifest = IndexManifest.read(version)
            if without_similarities(manifest.mapping) != without_similarities(mapping):
                raise Refused(
                    f"{version} was built with another mapping, which differs in more than its similarities"
                )
            return DirectoryReader(version, manifest.schema_of(mapping), manifest)

        reader = IndexFolder(folder).read_live(read)
        if reader is None:
            raise Refused(f"there is no index in {folder}")
        return cls(reader)

    def add(self, documents: Iterable[Document]) -> None:
        """Write a version with additional documents, and open it.

        Raises:
            LuceneError: as `create`, or a document has an id of the index.
            IndexReplaced: a newer version was written since this one was opened.
        """
        from searchapp.lucene.index.segments import SegmentPlan  # slow to import
        from searchapp.lucene.index.writer import write_version

        documents = list(documents)
        manifest = self.reader.manifest
        folder = IndexFolder(manifest.folder.parent)
        if folder.live() != manifest.folder:
            raise IndexReplaced(manifest.version)
        plan = SegmentPlan.appending(manifest, len(documents))
        total = manifest.total + len(documents)
        write_version(folder, manifest.mapping, documents, total, lambda _version: manifest.user_data, plan)
        self.close()
        self._open(DirectoryReader(folder.folder / folder.live_name()))

    def reopen(self) -> Index:
        """Open the same version again, for another thread.

        Raises:
            IndexReplaced: it was removed.
        """
        try:
            return Index(self.reader.reopen(), self.analyzers)
        except InvalidInput:
            if self.reader.exists:
                raise
            raise IndexReplaced(self.reader.manifest.version) from None

    def close(self) -> None:
        self.reader.close()

    @property
    def count(self) -> int:
        return self.reader.count

    def search(self, body: Body) -> list[ScoredDocument]:
        """Return the hits of a search body with sources, highlights and, on request, explanations."""
        with self._damage_check, FiniteScores():
            request = self.bodies.read(body)
            return self._hits(request, self._page(request, _written_query(body)))

    def answer(self, body: Body) -> dict[str, Any]:
        """Return the response to a search body as JSON, without the time, the shards and the index's name.

        Equal hits are sorted by id.
        """
        with self._damage_check, FiniteScores():
            request = self.bodies.read(body)
            page = self._page(request, _written_query(body))
            hits = self._hits(request, page)
            if request.is_plain and (request.aggregations or not request.frame.is_total(len(hits))):
                masks = [request.query.matching(searcher.rows) for searcher in self.searchers]
                page = page._replace(matching=masks, total=sum(map(np.count_nonzero, masks)))
            response: dict[str, Any] = {
                "hits": {
                    **request.frame.reported_total(
                        int(page.total), is_empty=not any(part.reader.count for part in self.searchers)
                    ),
                    "max_score": page.max_score,
                    "hits": [_hit_json(hit) for hit in hits],
                }
            }
            if request.aggregations:
                response["aggregations"] = self._aggregated(request.aggregations, page.matching)
            if request.suggest is not None:
                response["suggest"] = request.suggest(self.reader.parts)
            return response

    def _aggregated(self, aggregations: Aggregations, matching: Sequence[Mask]) -> dict[str, Any]:
        from searchapp.lucene.search.aggregations import Documents, aggregate  # slow to import

        if self._documents is None:
            self._documents = Documents(self.reader, [searcher.rows for searcher in self.searchers])
        return aggregate(aggregations, self._documents, np.concatenate(matching))

    def _page(self, request: Request, query: str) -> HitPage:
        """Return the hits of a request whose query is written as `query`."""
        if not request.is_plain:
            return self._sorted_page(request)
        documents, scores = self._rank_page(request, query)
        values = zip(map(decimal, scores.tolist()), self.reader.ids_of(documents), strict=True)
        return HitPage(documents, scores, list(values), [{}] * len(documents), len(documents))

    def _sorted_page(self, request: Request) -> HitPage:
        """Return the hits of a request with other parts than its query, and all matching documents."""
        frame = request.frame
        clauses = RESCORED if request.rescores else BEST_FIRST if frame.sort is None else frame.sort
        shows_scores = frame.track_scores or any(isinstance(clause, ScoreClause) for clause in clauses)
        is_scored = shows_scores or frame.min_score is not None
        # Without scores, Lucene omits boosts, on which the `min_score` of a `function_score` depends.
        unscored = rewrite(Constant(request.query))
        parts: list[tuple[SegmentReader, Scores | None, Mask]] = []
        masks: list[Mask] = []
        for searcher in self.searchers:
            scores = request.query.scores(searcher.rows) if is_scored else None
            mask = unscored.matching(searcher.rows) if scores is None else scores.mask()
            if frame.min_score is not None and scores is not None:
                mask = mask & (scores.values >= np.float32(frame.min_score))
            masks.append(mask)
            if request.post_filter is not None:
                mask = mask & request.post_filter.matching(searcher.rows)
            parts.append((searcher.reader, scores, mask))
        end = max([frame.end, *(rescore.window for rescore in request.rescores)])
        chosen = select(clauses, parts, end if frame.size else 0, frame.after, frame.collapse)
        hit_scores = np.full(len(chosen.documents), np.nan, np.float32)
        max_score: float | None = None
        for number, (_reader, scores, mask) in enumerate(parts):
            if scores is not None and shows_scores:
                own = chosen.segments == number
                hit_scores[own] = scores.values[chosen.documents[own]]
                if frame.track_scores and frame.size and mask.any():
                    max_score = max(max_score or 0, float(scores.values[mask].max()))
        firsts = np.array([part.first for part in self.reader.parts])
        page = HitPage(
            (firsts[chosen.segments] + chosen.documents).astype(np.int32),
            *(hit_scores, chosen.values),
            [
                {} if group is None or frame.collapse is None else {frame.collapse.name: [group]}
                for group in chosen.groups
            ],
            sum(int(np.count_nonzero(mask)) for _reader, _scores, mask in parts),
            *(masks, None if max_score is None else decimal(max_score)),
        )
        for rescore in request.rescores if frame.size else ():
            page = self._rescored(page, rescore)
        return page.part(frame.first, frame.end)

    def _rescored(self, page: HitPage, rescore: Rescore) -> HitPage:
        second = np.zeros(len(page.documents), np.float32)
        matches = np.zeros(len(page.documents), bool)
        for searcher, (_part, indices, numbers) in zip(
            self.searchers, by_segment(page.documents, self.reader.parts), strict=True
        ):
            second_scores = rescore.query.scores(searcher.rows)
            second[indices] = second_scores.values[numbers]
            matches[indices] = second_scores.mask()[numbers]
        order, scores = rescore.apply(page.scores, page.documents, second, matches)
        max_score = decimal(scores[0]) if len(scores) else None
        return page._replace(
            documents=page.documents[order],
            scores=scores,
            values=[()] * len(scores),  # the body has no sort
            max_score=max_score,
        )

    def _hits(self, request: Request, page: HitPage) -> list[ScoredDocument]:
        """Return the hits of a page with sources, highlights and explanations."""
        frame = request.frame
        highlighter = None
        if frame.highlight is not None:
            highlighter = Highlighter(
                *(request.marked, request.marked_in, frame.highlight),
                *(self.reader.schema, self._tokens, self._matcher()),
            )
        documents = page.documents
        if highlighter is None and frame.source is None:
            sources: list[Any] = [None] * len(documents)
        else:
            sources = self.reader.sources_of(documents)
        schema, filter_ = self.reader.schema, frame.source
        shown = sources
        if filter_ is not None and schema.hides_vectors:
            shown = [schema.shown_source(source, bool(filter_.shows_vectors)) for source in sources]
        elif filter_ is not None and filter_.shows_vectors is False:
            filter_ = replace(filter_, excludes=(*filter_.excludes, *schema.vectors))
        explanations = self._explanations(request, documents) if frame.explain else {}
        return [
            ScoredDocument(
                id_,
                score,
                None if filter_ is None else filter_.apply(shown_source),
                highlighter.highlights(source, document) if highlighter else {},
                explanations.get(document),
                values,
                fields,
            )
            for id_, score, values, fields, document, source, shown_source in zip(
                self.reader.ids_of(documents),
                page.scores.tolist(),
                page.values,
                page.fields,
                documents.tolist(),
                sources,
                shown,
                strict=True,
            )
        ]

    def explain(self, body: Body, document_id: str) -> Explanation | None:
        """Return the explanation of a document's score for the query of a body; None if it does not match."""
        with self._damage_check, FiniteScores():
            query = self.bodies.read(body).explained
            for searcher in self.searchers:
                number = searcher.reader.document(document_id)
                if number is not None:
                    return query.explanation(searcher.rows, number, ONE)
        return None

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        """Return the steps of analysis by a field's analyzer, a named analyzer, or `standard`."""
        if analyzer is None and field is not None:
            described = self.reader.schema.fields.get(field)
            if described is None:
                raise invalid(f"the index {self._name} has no field {field}")
            analyzer = described.analyzer or "keyword"
        return self.analyzers.analyzer(analyzer or "standard").steps(text)

    @property
    def _name(self) -> str:
        return str(self.reader.manifest.user_data.get("name", self.reader.manifest.version))

    def count_matches(self, query: Body, fields: Mapping[str, int]) -> Counts:
        """Count the matching documents, and the given number of the most frequent values of keyword fields.

        Raises:
            Refused: a field is not a keyword field.
        """
        order = [{"_score": "desc"}, {"id": "asc"}]
        with self._damage_check, FiniteScores():
            read = self.bodies.read({"query": query, "sort": order}).query
            masks = [(searcher.reader, read.matching(searcher.rows)) for searcher in self.searchers]
            total = sum(int(np.count_nonzero(mask)) for _reader, mask in masks)
            return Counts(total, {name: _commonest(masks, name, most) for name, most in fields.items()})

    def document_frequencies(self, terms: Mapping[str, Iterable[str]]) -> dict[str, dict[str, int]]:
        """Return document frequencies by field and term; 0 for unknown and numeric fields."""
        fields = {name: field for name, field in self.reader.fields.items() if field.field.has_postings}
        with self._damage_check:
            return {
                name: {
                    term: fields[name].document_frequency(term) if name in fields else 0
                    for term in field_terms
                }
                for name, field_terms in terms.items()
            }

    def similar_terms(self, field: str, term: str, size: int) -> list[SimilarTerm]:
        """Return at most `size` terms of a text field that are closest to `term`; see `spelling`."""
        readers = [searcher.reader.fields.get(field) for searcher in self.searchers]
        fields = [reader for reader in readers if reader is not None and reader.field.is_text]
        with self._damage_check:
            return similar_terms(fields, term, size)

    def rank(self, bodies: Sequence[Body]) -> RankedBatch:
        """Return the best documents for each search body of a batch.

        Raises:
            RefusedQuery: a body is rejected.
        """
        with self._damage_check:
            requests: list[Request] = []
            self._prepare_nearest(bodies)
            try:
                for body in bodies:
                    requests.append(self.bodies.ranked(body))
            except Refused as error:
                raise RefusedQuery(len(requests), *error.lines) from error
            plain_requests = [request for request in requests if request.is_plain]
            segment_requests = self._segment_requests(plain_requests)
            alone = len(requests) < SMALLEST_BATCH
            batches = [searcher.rank_batch(segment_requests, alone=alone) for searcher in self.searchers]
            first, *others = [batch for batch, _pruned, _compiled in batches]
            if others or None in first or len(first) < len(requests):
                rankings = self._completed(requests, segment_requests, [first, *others])
            else:
                rankings = cast("list[Ranking]", first)
            _batch, pruned, compiled = batches[0]  # of the largest segment
            return RankedBatch(rankings, pruned, compiled)

    def _completed(
        self,
        requests: Sequence[Request],
        segment_requests: Sequence[Request],
        batches: Sequence[Sequence[Ranking | None]],
    ) -> list[Ranking]:
        """Merge the rankings of each segment for the plain requests, and rank what is missing."""
        rankings: list[Ranking] = []
        indices = count()
        try:
            with FiniteScores():
                for request in requests:
                    if not request.is_plain:
                        page = self._sorted_page(request)
                        rankings.append((page.documents, page.scores))
                        continue
                    index = next(indices)
                    parts = []
                    for searcher, batch in zip(self.searchers, batches, strict=True):
                        ranking = batch[index]
                        parts.append(searcher.rank(segment_requests[index]) if ranking is None else ranking)
                    rankings.append(self._merge_rankings(request, parts))
        except Refused as error:
            raise RefusedQuery(len(rankings), *error.lines) from error
        return rankings

    def prepare(self, bodies: Iterable[Body]) -> None:
        """Compute data that forked worker processes share to rank similar bodies; skip rejected bodies."""
        queries = []
        with self._damage_check:
            for body in bodies:
                if body.get("knn"):  # whose documents the workers find
                    continue
                with suppress(Refused):
                    queries.append(self.bodies.ranked(body).query)
            for searcher in self.searchers:
                searcher.pruner.prepare(queries)

    def _segment_requests(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Return the requests for each segment; several segments must rank from the first hit."""
        return requests if len(self.searchers) == 1 else [request.from_first() for request in requests]

    def _merge_rankings(self, request: Request, rankings: Sequence[Ranking]) -> Ranking:
        if len(rankings) == 1:
            return rankings[0]
        return self.reader.merge_rankings(rankings, request.frame.first, request.frame.size)

    def _rank_page(self, request: Request, query: str) -> Ranking:
        """Return the best documents of a query, and cache all scores for its next pages."""
        (segment_request,) = self._segment_requests([request])
        if self._last_scores is None or self._last_scores[0] != query or request.depends_on_time:
            pruned = [searcher.pruned(segment_request) for searcher in self.searchers]
            is_pruned = None not in pruned
            self.log_batch(1, int(is_pruned), int(is_pruned))
            if is_pruned:
                return self._merge_rankings(request, [ranking for ranking in pruned if ranking is not None])
            scores = [request.query.scores(searcher.rows) for searcher in self.searchers]
            self._last_scores = query, scores
        rankings = [
            searcher.select(scores, segment_request.frame)
            for searcher, scores in zip(self.searchers, self._last_scores[1], strict=True)
        ]
        return self._merge_rankings(request, rankings)

    def _matcher(self) -> Callable[[Query, int], bool]:
        """Return a function that returns whether a document matches a query, and keeps its matches."""

        @cache
        def mask(query: Query) -> Mask:
            return np.concatenate([query.matching(searcher.rows) for searcher in self.searchers])

        return lambda query, document: bool(mask(query)[document])

    def log_batch(self, queries: int, pruned: int, compiled: int) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        noun = "1 query" if queries == 1 else f"{queries} queries"
        by_c = f", {compiled} scored by compiled functions" if compiled else ""
        _log.info("%s: %s, %d of them pruned%s", self.reader.manifest.version, noun, pruned, by_c)

    def _explanations(self, request: Request, documents: Numbers) -> dict[int, Explanation | None]:
        query = request.explained
        explanations: dict[int, Explanation | None] = {}
        parts = by_segment(documents, self.reader.parts)
        for searcher, (_part, indices, numbers) in zip(self.searchers, parts, strict=True):
            for document, number in zip(documents[indices].tolist(), numbers.tolist(), strict=True):
                explanations[document] = query.explanation(searcher.rows, number, ONE)
        return explanations


# No method, because the reader of bodies would keep the index alive until garbage collection.
def _find_nearest(
    rows: Sequence[ScoreRows], known: Mapping[KnnSection, Query], sections: Sequence[KnnSection]
) -> Mapping[KnnSection, Query]:
    """Return the documents of sections `knn`, which may be `known`."""
    from searchapp.lucene.search.knn import find_nearest  # slow to import

    new = [section for section in sections if section not in known]
    return {**known, **find_nearest(new, rows)}


def _written_query(body: Body) -> str:
    return repr([body[name] for name in ("query", "knn") if name in body])


def _hit_json(hit: ScoredDocument) -> dict[str, Any]:
    optional = {
        "_source": hit.source,
        "highlight": hit.highlights or None,
        "_explanation": None if hit.explanation is None else hit.explanation.to_json(),
        "fields": hit.fields or None,
        "sort": list(hit.sort) or None,
    }
    present = {key: value for key, value in optional.items() if value is not None}
    score = None if math.isnan(hit.score) else decimal(hit.score)
    return {"_id": hit.id, "_score": score, **present}


def _commonest(masks: Sequence[tuple[SegmentReader, Mask]], name: str, most: int) -> list[tuple[str, int]]:
    counts: Counter[bytes] = Counter()
    for reader, mask in masks:
        field = reader.fields.get(name)
        if field is None or field.field.type != KEYWORD:
            raise unsupported(f"counting the values of {name}, only of keyword fields")
        by_rank = field.count_by_term(mask)
        ranks = np.flatnonzero(by_rank)
        if len(masks) == 1:
            ranks = ranks[np.argsort(-by_rank[ranks], kind="stable")][:most]
        counts.update({field.terms[rank]: int(by_rank[rank]) for rank in ranks.tolist()})
    commonest = sorted(counts.items(), key=lambda value: (-value[1], value[0]))[:most]
    return [(term.decode(), count) for term, count in commonest]
