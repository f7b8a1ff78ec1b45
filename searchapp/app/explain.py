"""Why a document is at its rank for a topic as a recipe ranks it, or why it has none.

A topic is ranked as deep as it is asked for, and deeper where a document is behind that. What each signal gave, and how
that came about, is of the ranking that has the document. What is in a run has the rank and the score of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from searchapp.app.ranked_now import Ranks
from searchapp.app.why import Standing, Why, said
from searchapp.model import Hits, Topic
from searchapp.ranking.rank import RankedTopic


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic that is ranked `depth` documents deep: as it is in a `run`, if there is one, or as it is ranked now.

    With `is_document` the topic is a document, which is not ranked for itself.
    """

    topic: Topic
    depth: int
    run: Hits | None = None
    is_document: bool = False

    @property
    def can_be_ranked(self) -> bool:
        """Whether it can be ranked now: a run may have topics of which nothing is known but their ids."""
        return self.run is None or bool(self.topic.text)


@dataclass(frozen=True, slots=True)
class Standings:
    """What became of documents; with `differs` the recipe no longer makes the ranking of the run."""

    whys: Mapping[str, Why]
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of one document, and what made its score.

    `deeper` is how deep a ranking it is in, where the one that was asked for ends before it; `differs` as of
    `Standings`: then the rank and score of what is in the run are those of the run, and all else is of now.
    """

    why: Why
    deeper: int | None = None
    differs: bool = False

    def said(self, task: str, of_topic: str = "") -> str:
        """What became of it, as the rest of a sentence that begins with its id."""
        deeper = "" if self.deeper is None else f", in a ranking {self.deeper:,} documents deep"
        differs = "; the recipe ranks otherwise now than for the run" if self.differs else ""
        return f"{said(self.why, task, of_topic)}{deeper}{differs}"


class Explainer:
    """Says what became of documents for topics; its methods may be called from several threads.

    Args:
        ranks: the recipe, ready to rank; None where nobody knows how a run was ranked
        indexed: which of some documents the index has
    """

    def __init__(self, ranks: Ranks | None, indexed: Callable[[Sequence[str]], Set[str]]) -> None:
        self._ranks = ranks
        self._indexed = indexed

    def standings(self, request: TopicRequest, documents: Sequence[str]) -> Standings:
        """What became of documents, without what made their scores.

        Raises:
            EngineError: the engine failed.
        """
        return self._placed(request, documents)[0]

    def explain(self, request: TopicRequest, document_id: str) -> Explained:
        """What became of a document, with what each signal gave to its score and how that came about.

        Raises:
            as `standings` does.
        """
        placed, found = self._placed(request, [document_id])
        why, ranks = placed.whys[document_id], self._ranks
        if ranks is None or why.standing is not Standing.ranked or not request.can_be_ranked:
            return Explained(why, differs=placed.differs)
        # Several signals give a document another score in a deeper ranking: it is explained in the one that it is in.
        if found is None:
            found = ranks.rank_topic(request.topic, request.depth)
        why = replace(
            why, explanation=ranks.explain(found, document_id), shares=ranks.shares(found, document_id)
        )
        deeper = found.depth if found.depth > request.depth else None
        return Explained(why, deeper, _differs(request, ranks))

    def _placed(
        self, request: TopicRequest, documents: Sequence[str]
    ) -> tuple[Standings, RankedTopic | None]:
        """What became of documents, and the ranking that those have been looked for in which the run lacks."""
        ranks, topic = self._ranks, request.topic
        first, found = request.run, None
        if first is None and ranks is not None:
            found = ranks.rank_topic(topic, request.depth)
            first = found.hits
        whys = _ranked(first or Hits(), documents)
        left = [one for one in documents if one not in whys]
        if not left:
            return Standings(whys), found
        there = self._indexed(left)
        if ranks is None or not request.can_be_ranked:
            standings = (Standing.not_in_run if one in there else Standing.unknown for one in left)
            whys |= {one: Why(one, standing) for one, standing in zip(left, standings, strict=True)}
            return Standings(whys), found
        found = ranks.deep(topic, there - {topic.id} if request.is_document else there, request.depth)
        placed = _ranked(found.hits, left)
        whys |= {one: self._standing(ranks, request, one, placed.get(one), one in there) for one in left}
        return Standings(whys, _differs(request, ranks)), found

    def _standing(
        self, ranks: Ranks, request: TopicRequest, document: str, deep: Why | None, there: bool
    ) -> Why:
        """What became of a document that the first ranking lacks; `deep` is what a deeper one has of it."""
        topic = request.topic
        if not there:
            return Why(document, Standing.unknown)
        if deep is not None:
            return deep if deep.score else Why(document, Standing.no_match)
        if request.is_document and document == topic.id:
            return Why(document, Standing.filtered)
        query = ranks.recipe.body(topic, 1)["query"]
        whole, free = (ranks.score(document, one) for one in (query, unfiltered(query)))
        if whole:
            return Why(document, Standing.behind)
        if whole is None and free is not None:
            return Why(document, Standing.filtered)
        loose = loosened(query)
        if whole is None and loose != query and ranks.score(document, loose) is not None:
            return Why(document, Standing.too_little)
        return Why(document, Standing.no_match)


def _ranked(hits: Hits, documents: Sequence[str]) -> dict[str, Why]:
    """The ranks and scores of those documents that a ranking has."""
    places = {document: place for place, document in enumerate(hits.document_ids)}
    return {
        one: Why(one, Standing.ranked, places[one] + 1, hits.scores[places[one]])
        for one in documents
        if one in places
    }


def _differs(request: TopicRequest, ranks: Ranks) -> bool:
    """Whether the recipe makes another ranking than that of the run: the index may be another one by now."""
    if request.run is None:
        return False
    now = ranks.rank_topic(request.topic, request.depth).hits
    return now.document_ids != request.run.document_ids


def unfiltered(query: Mapping[str, Any]) -> dict[str, Any]:
    """A template's query without the clauses that only leave documents out.

    >>> unfiltered({"bool": {"should": [{"match": {"text": "a"}}], "filter": [{"term": {"debate": "b"}}]}})
    {'bool': {'should': [{'match': {'text': 'a'}}]}}
    """
    described = query.get("bool")
    if not isinstance(described, Mapping):
        return dict(query)
    return {"bool": {name: one for name, one in described.items() if name not in ("filter", "must_not")}}


def loosened(query: Mapping[str, Any]) -> dict[str, Any]:
    """A template's query that a word suffices for: any clause of it, and of a clause any word.

    >>> loosened({"match": {"text": {"query": "a b", "operator": "and"}}})
    {'match': {'text': {'query': 'a b'}}}
    >>> loosened({"bool": {"must": [{"match_phrase": {"text": "a b"}}, {"term": {"kind": "c"}}]}})
    {'bool': {'should': [{'match': {'text': {'query': 'a b'}}}]}}
    """
    (kind, described), *_ = query.items()
    if not isinstance(described, Mapping):
        return dict(query)
    if kind == "bool":
        wanted = [loosened(one) for name in ("must", "should") for one in _clauses(described.get(name))]
        words = [one for one in wanted if not _WITHOUT_WORDS & one.keys()]
        return {"bool": {"should": words or wanted}} if wanted else dict(query)
    if kind in ("match", "match_phrase"):
        return {"match": {field: _any_word(one) for field, one in described.items()}}
    if kind == "multi_match":
        return {kind: {name: one for name, one in _any_word(described).items() if name != "type"}}
    return {kind: {name: _loosened_within(name, one) for name, one in described.items()}}


_WITHOUT_WORDS = frozenset(("term", "terms", "range", "exists", "ids", "match_all"))
"""Queries that ask for no word of a text."""

_ALL_WORDS = frozenset(("operator", "minimum_should_match", "slop"))


def _clauses(described: Any) -> Sequence[Mapping[str, Any]]:
    return [described] if isinstance(described, Mapping) else described or []


def _any_word(described: Any) -> dict[str, Any]:
    """What a clause asks for, without what says how much of it is needed."""
    asked = described if isinstance(described, Mapping) else {"query": described}
    return {name: one for name, one in asked.items() if name not in _ALL_WORDS}


def _loosened_within(name: str, described: Any) -> Any:
    """The same of queries in one that is made of others, such as `dis_max`."""
    if name in ("filter", "query", "positive") and isinstance(described, Mapping):
        return loosened(described)
    if name == "queries" and isinstance(described, Sequence):
        return [loosened(one) for one in described]
    return described
