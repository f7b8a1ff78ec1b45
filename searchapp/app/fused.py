"""The rankings that recipes of several signals make of typed words: the first `FUSED_DEPTH` documents, kept a while.

What a person looks at is asked for piece by piece: a page, a document, why it is where it is. The ranking behind them
is made once, and again when the words, or what else chooses among its documents, are others.
"""

from __future__ import annotations

from collections.abc import Callable

from searchapp.engines.base import BEST_FIRST, Explanation, Index
from searchapp.engines.waiting import at_leisure
from searchapp.model import Hits
from searchapp.ranking.language.compiled import Compiled
from searchapp.ranking.rank import RankedTopic, Ranker, Share
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Inputs

FUSED_DEPTH = 1000
"""How many documents are ranked where several signals are fused."""


class FusedRankings:
    """What recipes rank on one version of an index; `inputs` gives what their signals need, when one is asked first.

    Every method raises `EngineError` where the engine failed, and `DataError` where what a signal needs is missing.
    """

    def __init__(self, index: Index, inputs: Callable[[], Inputs]) -> None:
        self._index = index
        self._inputs = inputs
        self._rankers: dict[str, Ranker] = {}
        self._ranked: tuple[tuple[str, str], RankedTopic, Hits] | None = None
        self._chosen: tuple[tuple[str, Compiled], Hits] | None = None

    def hits(self, recipe: Recipe, compiled: Compiled) -> Hits:
        """The documents that a recipe ranks for words, without those that the rest of the query leaves out."""
        key = recipe.name, compiled
        if self._chosen is None or self._chosen[0] != key:
            hits, chosen = self._all(recipe, compiled), compiled.choosing()
            if chosen is not None and hits:
                only = {"bool": {"filter": [chosen, {"ids": {"values": hits.document_ids}}]}}
                body = {"query": only, "size": len(hits), "sort": BEST_FIRST, "_source": False}
                (left,) = self._index.search([body])
                kept = set(left.document_ids)
                hits = Hits.of(*(hit for hit in hits if hit.document_id in kept))
            self._chosen = key, hits
        return self._chosen[1]

    def is_cut(self, recipe: Recipe, compiled: Compiled) -> bool:
        """Whether documents with the words may be behind those that the recipe ranks."""
        return len(self._all(recipe, compiled)) == FUSED_DEPTH

    def shares(self, recipe: Recipe, compiled: Compiled, document_id: str) -> list[Share]:
        """What each signal gives to a document's score; nothing where it is not ranked."""
        if document_id not in self.hits(recipe, compiled).document_ids:
            return []
        return self._ranker(recipe).shares(self._kept(recipe, compiled)[0], document_id)

    def explain(self, recipe: Recipe, compiled: Compiled, document_id: str) -> Explanation | None:
        """Why a document has its score; None where it is not ranked."""
        if document_id not in self.hits(recipe, compiled).document_ids:
            return None
        return self._ranker(recipe).explain(self._kept(recipe, compiled)[0], document_id)

    def _all(self, recipe: Recipe, compiled: Compiled) -> Hits:
        """The documents that a recipe ranks for words, whatever else was typed."""
        return self._kept(recipe, compiled)[1]

    def _kept(self, recipe: Recipe, compiled: Compiled) -> tuple[RankedTopic, Hits]:
        """What a recipe ranks for words, and those of its hits that have a score."""
        key = recipe.name, compiled.words
        if self._ranked is None or self._ranked[0] != key:
            found = self._ranker(recipe).rank_topic(recipe.typed(compiled.words), FUSED_DEPTH)
            self._ranked = key, found, Hits.of(*(hit for hit in found.hits if hit.score > 0))
        return self._ranked[1:]

    def _ranker(self, recipe: Recipe) -> Ranker:
        if recipe.name not in self._rankers:
            with at_leisure():  # prepared once for all that is typed
                self._rankers[recipe.name] = Ranker(recipe, self._inputs())
        return self._rankers[recipe.name]
