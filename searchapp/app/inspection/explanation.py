"""Explain why a document has its rank for a query or a topic, or why it has none.

A topic is ranked deeper where the document is behind the depth that was asked for. The contributions of
signals are those of the ranking that has the document. A document in a run keeps the rank and the score of
the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import Any

from searchapp.app.index import require_documents
from searchapp.app.inspection.live_ranking import Ranks
from searchapp.app.search import Searcher, SearchRequest
from searchapp.engines.base import Engine
from searchapp.errors import UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Explanation, Hit, Hits, Topic
from searchapp.progress import Progress
from searchapp.ranking import search_results
from searchapp.ranking.ranker import RankedTopic, SignalShare
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search_results import ExplanationLine
from searchapp.ranking.signals.base import Vote
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted


class Standing(StrEnum):
    """What became of a document."""

    ranked = "ranked"
    unknown = "unknown"
    """No document of this id is indexed."""

    filtered = "filtered"
    """It matches, but a filter leaves it out."""

    left_out = "left out"
    """It has something of the query, but a clause that must match does not, or one that must not does."""

    too_little = "too little"
    """It has something of the topic, but less than the recipe's query wants."""

    behind = "behind"
    """It is not among the documents that a recipe of several signals ranks, FUSED_DEPTH at most."""

    no_match = "no match"
    """It does not match what is looked for."""

    not_in_run = "not in the run"
    """It is not in a run of which nobody knows how it was made."""


@dataclass(frozen=True, slots=True)
class Why:
    """What became of a document; `rank`, from 1, `score` and `explanation` are those of a ranked one."""

    document_id: str
    standing: Standing
    rank: int | None = None
    score: float | None = None
    explanation: Explanation | None = None
    shares: tuple[SignalShare, ...] = ()
    """What each signal gave, for a recipe of several."""

    @property
    def votes(self) -> list[Vote]:
        """Who voted for it, the greatest votes of each signal first."""
        return [vote for share in self.shares for vote in share.votes]


def said(why: Why, task: str, of_topic: str = "") -> str:
    """What became of a document, as the rest of a sentence that begins with its id; `task` is a name.

    >>> said(Why("17", Standing.ranked, 3, 0.5), "nlps")
    'is at rank 3, with the score 0.5000'
    """
    sentences = {
        Standing.ranked: f"is at rank {why.rank or 0:,}{of_topic}, with the score {why.score or 0.0:.4f}",
        Standing.unknown: f"is not indexed: no document of {task} has this id",
        Standing.filtered: "matches, but a filter leaves it out",
        Standing.left_out: "has something of what is searched for, but a + or - leaves it out",
        Standing.too_little: "has something of what is searched for, but less than the recipe's query wants",
        Standing.behind: f"matches, but is behind the last document that is ranked{of_topic}",
        Standing.no_match: "has nothing of what is searched for",
        Standing.not_in_run: "is not in the run, and nobody knows how that was ranked",
    }
    return sentences[why.standing]


@dataclass(frozen=True, slots=True)
class Difference:
    """What gives something to one or both of two scores: a term of a field, a signal, or another part.

    `upper` and `lower` are None where a score has no such part; `figures` are those that it was computed from, which
    differ from document to document.
    """

    what: str
    upper: float | None
    lower: float | None
    upper_figures: tuple[tuple[str, str], ...] = ()
    lower_figures: tuple[tuple[str, str], ...] = ()

    @property
    def gain(self) -> float:
        """By how much it puts the upper one above the other; less than 0 where it speaks for the lower one."""
        return (self.upper or 0.0) - (self.lower or 0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Why one hit is above another: what decides most comes first, whichever of the two it speaks for."""

    upper: Why
    lower: Why
    signals: tuple[Difference, ...]
    terms: tuple[Difference, ...]

    @property
    def decides(self) -> Difference | None:
        """What speaks most for the upper one; None where the scores are equal, and the ids decide."""
        if self.upper.score == self.lower.score:
            return None
        most = max(self.signals or self.terms, key=lambda one: one.gain, default=None)
        return most if most is not None and most.gain > 0 else None


def why(searcher: Searcher, request: SearchRequest, document_id: str) -> Why:
    """What became of a document in the ranking of a request, whatever part of it the request asks for.

    Raises:
        as `Searcher.search` does.
    """
    if not search_results.sources(searcher.index, [document_id]):
        return Why(document_id, Standing.unknown)
    for rank, hit in enumerate(searcher.ranking(request), start=1):
        if hit.document_id == document_id:
            return ranked(searcher, request, rank, hit)
    unfiltered = replace(request, filters=())
    if request.filters and searcher.matches(unfiltered, document_id):
        return Why(document_id, Standing.filtered)
    if searcher.matches(unfiltered, document_id, signs=False):
        return Why(document_id, Standing.left_out)
    return Why(document_id, Standing.behind if searcher.is_cut(request) else Standing.no_match)


def ranked(searcher: Searcher, request: SearchRequest, rank: int, hit: Hit) -> Why:
    """Why a hit of a request is where it is.

    Raises:
        as `Searcher.search` does.
    """
    document, score = hit
    explanation = searcher.explain(request, document)
    return Why(document, Standing.ranked, rank, score, explanation, tuple(searcher.shares(request, document)))


def compare(
    searcher: Searcher, request: SearchRequest, first: tuple[int, Hit], second: tuple[int, Hit]
) -> Comparison:
    """Why one of two hits, each with its rank, is above the other in the ranking of a request.

    Raises:
        as `Searcher.search` does.
    """
    upper, lower = (ranked(searcher, request, *one) for one in sorted((first, second)))
    return Comparison(upper, lower, _signals(upper, lower), _terms(upper, lower))


def _signals(upper: Why, lower: Why) -> tuple[Difference, ...]:
    of_lower = {share.signal: share.value for share in lower.shares}
    found = [Difference(one.signal, one.value, of_lower.get(one.signal)) for one in upper.shares]
    return tuple(sorted(found, key=lambda one: -abs(one.gain)))


def _terms(upper: Why, lower: Why) -> tuple[Difference, ...]:
    of_upper, of_lower = _by_term(upper.explanation), _by_term(lower.explanation)
    found = []
    for what in dict.fromkeys([*of_upper, *of_lower]):
        one, other = of_upper.get(what), of_lower.get(what)
        found.append(
            Difference(
                what,
                None if one is None else one.value,
                None if other is None else other.value,
                () if one is None else one.figures,
                () if other is None else other.figures,
            )
        )
    return tuple(sorted(found, key=lambda each: -abs(each.gain)))


def _by_term(explanation: Explanation | None) -> dict[str, ExplanationLine]:
    """The parts of a score that have no parts themselves, by what they are; equal ones are added."""
    lines = [] if explanation is None else search_results.shortened(explanation)
    found: dict[str, ExplanationLine] = {}
    for line, following in zip_longest(lines, lines[1:]):
        if following is not None and following.depth > line.depth:
            continue
        before = found.get(line.what)
        found[line.what] = line if before is None else replace(line, value=line.value + before.value)
    return found


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
        deeper = "" if self.deeper is None else f", in a ranking {counted(self.deeper, 'document')} deep"
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


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A document and a topic, and how the topic is ranked: by a recipe, `depth` documents deep, or deeper to find it.

    Without a `split` it is the first one of the task's that has the topic; `depth` is the task's own by default.
    """

    task: Task
    collection: Collection
    recipe: Recipe
    topic_id: str
    document_id: str
    split: str | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedTopic:
    """What became of a document for a topic of a split, in a ranking `depth` documents deep."""

    topic: Topic
    split: str
    depth: int
    explained: Explained


def explain(
    request: ExplainRequest, engine: Engine, progress: Progress, home: Path | None = None
) -> ExplainedTopic:
    """Rank a topic, and say what became of a document; models of the recipe are kept in `home`.

    Raises:
        UsageError: no split, or not the one that is named, has the topic.
        DataError: the files of the task are missing or damaged, the index holds other documents, or the recipe has not
            what it needs.
        EngineError: there is no index, or the engine failed.
    """
    split, topic = _topic(request)
    info = request.task.info
    depth = request.depth or info.default_depth
    ranks = Ranks.open(request.task, engine, request.collection, split, request.recipe, progress, home)
    require_documents(request.task, ranks.index, request.collection)

    def indexed(documents: Sequence[str]) -> set[str]:
        with ranks.lock:
            return set(search_results.sources(ranks.index, documents))

    asked = TopicRequest(topic, depth, is_document=info.topics_are_documents)
    explained = Explainer(ranks, indexed).explain(asked, request.document_id)
    return ExplainedTopic(topic, split, depth, explained)


def _topic(request: ExplainRequest) -> tuple[str, Topic]:
    """The topic of the request and its split."""
    collection = request.collection
    splits = (request.split,) if request.split else request.task.info.splits
    for split in splits:
        if request.split is None and not all(file.exists() for file in collection.split_files(split)):
            continue
        for topic in collection.topics(split, Problems(lenient=True)):
            if topic.id == request.topic_id:
                return split, topic
    where = f"{request.task.name} {request.split}" if request.split else f"no split of {request.task.name}"
    has = "has no" if request.split else "has the"
    raise UsageError(
        f"{where} {has} topic {request.topic_id!r}: name another one with --topic, or another --split"
    )
