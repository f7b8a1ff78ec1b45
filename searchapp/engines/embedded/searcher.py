"""Searches one part of an index: most indexes have no other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import topk
from searchapp.engines.embedded.body import Frame, Request
from searchapp.engines.embedded.explain import Explainer
from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.pruning import Pruned, Pruner
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.rows import Rows
from searchapp.engines.embedded.schema import Analyzers
from searchapp.engines.embedded.scoring import Scorer, finite_scores
from searchapp.engines.embedded.storage.reader import IndexReader, Mask
from searchapp.engines.embedded.sums import Scores
from searchapp.engines.embedded.together import Together
from searchapp.errors import EngineRefused


class Searcher:
    """Finds and scores the documents of a part, whose numbers are those of the part."""

    def __init__(self, reader: IndexReader, analyzers: Analyzers) -> None:
        self.reader = reader
        rows = Rows(reader)
        self.scorer = Scorer(reader, rows)
        self.pruner = Pruner(reader, rows, analyzers)
        self.together = Together(reader, rows)
        self._found: tuple[str, Scores] | None = None
        """The scores of the query that was asked last, whose next hits are often asked for."""

    def found(self, requests: Sequence[Request], *, alone: bool) -> tuple[list[Answer | None], int, int]:
        """The answers that can be had without scoring each query by itself, None for those of others.

        Besides, for how many of these not all documents were scored, and how many the compiled functions scored.
        """
        some = [self.pruned(request, alone=alone) for request in requests]
        found: list[Answer | None] = [None if one is None else one[:2] for one in some]
        pruned = sum(one is not None for one in some)
        compiled = sum(one is not None and one.is_compiled for one in some)
        self._answer_together(requests, found)
        left = found.count(None)
        # The body that is refused is refused again when it is answered, by its place.
        with suppress(EngineRefused), finite_scores():
            self.scorer.prepare(
                request.query for request, one in zip(requests, found, strict=True) if one is None
            )
        return found, pruned, compiled + len(requests) - pruned - left

    def _answer_together(self, requests: Sequence[Request], found: list[Answer | None]) -> None:
        """Put the answers into `found` that can be had together, of the requests that have none."""
        places = [place for place, one in enumerate(found) if one is None]
        if not places:
            return
        with suppress(EngineRefused), finite_scores():
            answers = self.together.best([requests[place] for place in places])
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer

    def pruned(self, request: Request, *, alone: bool = True) -> Pruned | None:
        """The best documents of a query where they can be found without scoring all documents, None elsewhere."""
        frame = request.frame
        if frame.after is not None:
            return None
        found = self.pruner.best(request.query, frame.first + frame.size, alone=alone)
        if found is None or not frame.first:
            return found
        return Pruned(found.documents[frame.first :], found.scores[frame.first :], found.is_compiled)

    def best(self, request: Request) -> Answer:
        """The best documents of a query, all of which are scored."""
        return self.best_of(self.scored(request), request.frame)

    def remembers(self, words: str) -> bool:
        """Whether all scores of a query in these words are known, see `best_again`."""
        return self._found is not None and self._found[0] == words

    def best_again(self, request: Request, words: str) -> Answer | Pruned:
        """The best documents of a query in these words; if all are scored, the scores are kept for its next hits."""
        if self._found is not None and self._found[0] == words:
            return self.best_of(self._found[1], request.frame)
        pruned = self.pruned(request)
        if pruned is not None:
            return pruned
        self._found = words, self.scored(request)
        return self.best_of(self._found[1], request.frame)

    def scored(self, request: Request) -> Scores:
        """The scores of all documents."""
        scorer = self.scorer.complete if request.frame.counts_all else self.scorer
        return scorer.scores(request.query)

    def best_of(self, scores: Scores, frame: Frame) -> Answer:
        """The documents that a frame asks for."""
        first, size = frame.first, frame.size
        if frame.after is not None:
            score, id_ = frame.after
            scores = topk.behind(scores, self.reader.ranks, score, self.reader.ids.place_behind(id_))
        documents = topk.best(scores, self.reader.ranks, first + size)[first:]
        return documents.astype(np.int32), scores.values[documents]

    def matching(self, query: Query) -> Mask:
        """The documents that a query matches."""
        return self.scorer.matching(query)

    def explanations(self, query: Query, documents: Sequence[int]) -> list[Explanation]:
        """How a query comes to the scores of documents that it matches."""
        explainer = Explainer(self.reader, self.scorer)
        return [explainer.explanation(query, document) for document in documents]
