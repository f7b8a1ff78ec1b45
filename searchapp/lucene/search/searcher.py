"""Search a segment of an index with the statistics of the whole; count documents and values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from searchapp.lucene.errors import Refused, unsupported
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask
from searchapp.lucene.queries.query import Query
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.records import Counts, Explanation
from searchapp.lucene.search import topk
from searchapp.lucene.search.kernels import best_together
from searchapp.lucene.search.pruning import Pruner
from searchapp.lucene.search.request import Frame, Request
from searchapp.lucene.search.topk import Answer, finite_scores
from searchapp.lucene.similarity import ONE


def counts(parts: Sequence[tuple[IndexReader, Mask]], fields: Mapping[str, int]) -> Counts:
    """The counts of the documents that are marked in the parts of an index, with so many values of each keyword field.

    Raises:
        Refused: a field is no keyword field.
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


class Searcher:
    """Finds and scores the documents of a part, whose numbers are those of the part."""

    def __init__(self, reader: IndexReader) -> None:
        self.reader = reader
        self.rows = ScoreRows(reader)
        self.pruner = Pruner(reader)
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
        with suppress(Refused), finite_scores():
            self._prepare(request.query for request, one in zip(requests, found, strict=True) if one is None)
        return found, pruned, len(requests) - left

    def _prepare(self, queries: Iterable[Query]) -> None:
        """Compute together what the scores of several queries have in common, before they are asked for."""
        wanted: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
        for query in queries:
            for field, terms, boost in query.scored_terms():
                wanted[field, boost] += terms
        for (field, boost), every in wanted.items():
            self.rows.prepare(field, every, np.float32(boost))

    def _answer_together(self, requests: Sequence[Request], found: list[Answer | None]) -> None:
        """Put the answers into `found` that can be had together, of the requests that have none."""
        places = [place for place, one in enumerate(found) if one is None]
        if not places:
            return
        with suppress(Refused), finite_scores():
            answers = best_together(self.rows, [requests[place] for place in places])
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
        return self.best_of(request.query.scores(self.rows), request.frame)

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
            self._found = words, request.query.scores(self.rows)
        return self.best_of(self._found[1], request.frame), False

    def best_of(self, scores: Scores, frame: Frame) -> Answer:
        """The documents that a frame asks for."""
        first, size = frame.first, frame.size
        if frame.after is not None:
            score, id_ = frame.after
            scores = topk.behind(scores, self.reader.ranks, score, self.reader.ids.rank_after(id_))
        documents = topk.best(scores, self.reader.ranks, first + size)[first:]
        return documents.astype(np.int32), scores.values[documents]

    def explanations(self, query: Query, documents: Sequence[int]) -> list[Explanation]:
        """How a query comes to the scores of documents that it matches.

        Raises:
            Refused: the query has a part whose explanation is not known here.
        """
        found = [query.explanation(self.rows, document, ONE) for document in documents]
        return [one for one in found if one is not None]
