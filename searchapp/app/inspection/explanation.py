"""Explain why a document has its rank for a query or a topic, or why it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import Any

from searchapp.app.index import require_documents
from searchapp.app.inspection.live_ranking import TopicRanker
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.embeddings.reranking import Reranking
from searchapp.engines.base import Engine
from searchapp.errors import UsageError
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hit, Hits, Topic
from searchapp.progress import Progress
from searchapp.ranking import paging, search_results
from searchapp.ranking.ranker import RankedTopic, SignalShare
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search_results import ExplanationLine
from searchapp.ranking.signals.base import Vote
from searchapp.tasks.base import Collection, Task
from searchapp.text import Span, counted, merge_spans


class RankStatus(StrEnum):
    """The relation of a document to a ranking."""

    ranked = "ranked"
    unknown = "unknown"  # no document of this id is indexed
    filtered = "filtered"  # it matches, but a filter excludes it
    excluded = "excluded"  # it matches partly, but lacks a required clause, or has an excluded one
    below_minimum = "below minimum"  # it matches partly, but less than the recipe's query requires
    below_depth = (
        "below depth"  # it is behind the `FUSED_DEPTH` documents that a recipe of several signals ranks
    )
    origin = "origin"  # the hits are similar to it
    no_match = "no match"
    not_in_run = "not in the run"  # the run lacks it, and its recipe is unknown


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a document has its rank, or none."""

    document_id: str
    status: RankStatus
    rank: int | None = None  # from 1
    score: float | None = None
    explanation: Explanation | None = None
    shares: tuple[SignalShare, ...] = ()  # the share of each signal, for a recipe of several

    @property
    def votes(self) -> list[Vote]:
        return [vote for share in self.shares for vote in share.votes]


def status_sentence(reason: Reason, task: str, of_topic: str = "") -> str:
    """Return the status as a sentence that lacks its subject, the document's id."""
    sentences = {
        RankStatus.ranked: f"is at rank {reason.rank or 0:,}{of_topic}, with the score {reason.score or 0.0:.4f}",
        RankStatus.unknown: f"is not indexed: no document of {task} has this id",
        RankStatus.filtered: "matches, but a filter excludes it",
        RankStatus.excluded: "matches part of the query, but a + or - excludes it",
        RankStatus.below_minimum: "matches part of the query, but less than the recipe requires",
        RankStatus.below_depth: f"matches, but ranks below the depth of the ranking{of_topic}",
        RankStatus.origin: "is the document whose text is the query",
        RankStatus.no_match: "matches no part of the query",
        RankStatus.not_in_run: "is not in the run, and the run's recipe is unknown",
    }
    return sentences[reason.status]


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part of one or both of two scores: a term of a field, a signal, or another part."""

    what: str
    upper: float | None  # None if the score has no such part
    lower: float | None
    upper_figures: tuple[tuple[str, str], ...] = ()  # the figures from which the part was computed
    lower_figures: tuple[tuple[str, str], ...] = ()

    @property
    def gain(self) -> float:
        return (self.upper or 0.0) - (self.lower or 0.0)


# In characters: longer texts are compared and shown up to here.
LONGEST_COMPARED = 20_000


@dataclass(frozen=True, slots=True)
class ComparedText:
    """The text of one of two documents, and the words whose terms the other document lacks."""

    text: str
    own: tuple[Span, ...]
    is_cut: bool = False  # whether it is longer than `LONGEST_COMPARED`


@dataclass(frozen=True, slots=True)
class HitComparison:
    """Why one hit is above another; the parts with the greatest differences come first."""

    upper: Reason
    lower: Reason
    signals: tuple[PartDifference, ...]
    terms: tuple[PartDifference, ...]
    texts: tuple[ComparedText, ...] = ()  # of the upper and the lower one

    @property
    def decides(self) -> PartDifference | None:
        """The greatest advantage of the upper one; None for equal scores, which ids order."""
        if self.upper.score == self.lower.score:
            return None
        most = max(self.signals or self.terms, key=lambda part: part.gain, default=None)
        return most if most is not None and most.gain > 0 else None


def find_reason(searcher: TaskSearcher, request: SearchRequest, document_id: str) -> Reason:
    """Explain the status of a document in the whole ranking of a request.

    Raises:
        as `TaskSearcher.search` does.
    """
    if not paging.sources(searcher.index, [document_id]):
        return Reason(document_id, RankStatus.unknown)
    if document_id == request.like:
        return Reason(document_id, RankStatus.origin)
    for rank, hit in enumerate(searcher.ranking(request), start=1):
        if hit.document_id == document_id:
            return hit_reason(searcher, request, rank, hit)
    unfiltered_request = replace(request, filters=())
    if request.filters and searcher.matches(unfiltered_request, document_id):
        return Reason(document_id, RankStatus.filtered)
    if searcher.matches(unfiltered_request, document_id, signs=False):
        return Reason(document_id, RankStatus.excluded)
    return Reason(document_id, RankStatus.below_depth if searcher.is_cut(request) else RankStatus.no_match)


def hit_reason(searcher: TaskSearcher, request: SearchRequest, rank: int, hit: Hit) -> Reason:
    """Explain the rank of a hit.

    Raises:
        as `TaskSearcher.search` does.
    """
    document, score = hit
    explanation = searcher.explain(request, document)
    return Reason(
        document, RankStatus.ranked, rank, score, explanation, tuple(searcher.shares(request, document))
    )


def compare_hits(
    searcher: TaskSearcher, request: SearchRequest, first: tuple[int, Hit], second: tuple[int, Hit]
) -> HitComparison:
    """Explain why one of two hits, each with its rank, is above the other.

    Raises:
        as `TaskSearcher.search` does.
    """
    upper, lower = (hit_reason(searcher, request, *ranked) for ranked in sorted((first, second)))
    of_lower = {share.signal: share.value for share in lower.shares}
    signals = [
        PartDifference(share.signal, share.value, of_lower.get(share.signal)) for share in upper.shares
    ]
    upper_lines, lower_lines = _by_term(upper.explanation), _by_term(lower.explanation)
    terms = []
    for name in upper_lines | lower_lines:
        upper_line, lower_line = upper_lines.get(name), lower_lines.get(name)
        terms.append(
            PartDifference(
                name,
                None if upper_line is None else upper_line.value,
                None if lower_line is None else lower_line.value,
                () if upper_line is None else upper_line.figures,
                () if lower_line is None else lower_line.figures,
            )
        )
    texts = compare_texts(searcher, (upper.document_id, lower.document_id))
    return HitComparison(upper, lower, _greatest_first(signals), _greatest_first(terms), texts)


def compare_texts(searcher: TaskSearcher, documents: tuple[str, str]) -> tuple[ComparedText, ...]:
    """Return the texts of two documents; none if one of them is not indexed any more.

    Raises:
        EngineError: the engine failed.
    """
    sources = paging.sources(searcher.index, documents)
    if len(sources) < len(documents):
        return ()
    texts = [str(sources[document].get("text", "")) for document in documents]
    tokens = [searcher.text_tokens(text[:LONGEST_COMPARED]) for text in texts]
    terms = [{token.term for token in of_text} for of_text in tokens]
    compared = []
    for text, own_tokens, other_terms in zip(texts, tokens, reversed(terms), strict=True):
        shown = text[:LONGEST_COMPARED]
        # Offsets of tokens count UTF-16 code units.
        index = [number for number, character in enumerate(shown) for _ in range(1 + (character > "\uffff"))]
        index.append(len(shown))
        own = [
            (index[token.start], index[token.end]) for token in own_tokens if token.term not in other_terms
        ]
        compared.append(ComparedText(shown, tuple(merge_spans(own)), len(text) > LONGEST_COMPARED))
    return tuple(compared)


def _greatest_first(parts: Sequence[PartDifference]) -> tuple[PartDifference, ...]:
    return tuple(sorted(parts, key=lambda part: -abs(part.gain)))


def _by_term(explanation: Explanation | None) -> dict[str, ExplanationLine]:
    """Return the innermost parts of a score; equal ones are added."""
    lines = [] if explanation is None else search_results.shorten_explanation(explanation)
    parts: dict[str, ExplanationLine] = {}
    for line, following in zip_longest(lines, lines[1:]):
        if following is not None and following.depth > line.depth:
            continue
        before = parts.get(line.what)
        parts[line.what] = line if before is None else replace(line, value=line.value + before.value)
    return parts


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic in the ranking of a `run` or, without one, in the present ranking."""

    topic: Topic
    depth: int
    run: Hits | None = None
    is_document: bool = False  # whether the topic is a document, which is not ranked for itself

    @property
    def can_be_ranked(self) -> bool:
        """Whether it can be ranked now: for topics of a run only the ids may be known."""
        return self.run is None or bool(self.topic.text)


@dataclass(frozen=True, slots=True)
class RankExplanation:
    """The reason for the rank of one document."""

    reason: Reason
    # The depth of the ranking that has it, if it is greater than the requested depth.
    deeper: int | None = None
    # Whether the recipe ranks differently now than in the run, from which ranks and scores are.
    differs: bool = False

    def sentence(self, task: str, of_topic: str = "") -> str:
        """Return a sentence that lacks its subject, the document's id."""
        deeper = "" if self.deeper is None else f", in a ranking of {counted(self.deeper, 'document')}"
        differs = "; the recipe now ranks differently than in the run" if self.differs else ""
        return f"{status_sentence(self.reason, task, of_topic)}{deeper}{differs}"


class Explainer:
    """Explains the status of documents for topics; thread-safe.

    Args:
        ranker: None if the recipe of a run is unknown
        indexed: returns the indexed ones of some documents
    """

    def __init__(self, ranker: TopicRanker | None, indexed: Callable[[Sequence[str]], Set[str]]) -> None:
        self._ranker = ranker
        self._indexed = indexed

    def reasons(
        self, request: TopicRequest, documents: Sequence[str]
    ) -> tuple[dict[str, Reason], RankedTopic | None, bool]:
        """Return the reason of each document without an explanation, the ranking, and whether it differs from the run.

        Raises:
            EngineError: the engine failed.
        """
        ranker, topic = self._ranker, request.topic
        first, ranked = request.run, None
        if first is None and ranker is not None:
            ranked = ranker.rank_topic(topic, request.depth)
            first = ranked.hits
        reasons = _ranked(first or Hits(), documents)
        left = [document for document in documents if document not in reasons]
        if not left:
            return reasons, ranked, False
        indexed = self._indexed(left)
        if ranker is None or not request.can_be_ranked:
            for document in left:
                status = RankStatus.not_in_run if document in indexed else RankStatus.unknown
                reasons[document] = Reason(document, status)
            return reasons, ranked, False
        ranked = ranker.deep(topic, indexed - {topic.id} if request.is_document else indexed, request.depth)
        deep = _ranked(ranked.hits, left)
        for document in left:
            if document not in indexed:
                reasons[document] = Reason(document, RankStatus.unknown)
            elif document in deep and deep[document].score:
                reasons[document] = deep[document]
            elif document in deep:
                reasons[document] = Reason(document, RankStatus.no_match)
            else:
                reasons[document] = Reason(document, _unranked_standing(ranker, request, document))
        return reasons, ranked, _differs(request, ranker)

    def explain(self, request: TopicRequest, document_id: str) -> RankExplanation:
        """Return the reason of a document with the shares of signals and the explanation of its score.

        Raises:
            as `reasons` does.
        """
        reasons, ranked, differs = self.reasons(request, [document_id])
        reason, ranker = reasons[document_id], self._ranker
        if ranker is None or reason.status is not RankStatus.ranked or not request.can_be_ranked:
            return RankExplanation(reason, differs=differs)
        # Fusion gives a document another score in a deeper ranking: the ranking that has it is explained.
        ranked = ranked or ranker.rank_topic(request.topic, request.depth)
        reason = replace(
            reason, explanation=ranker.explain(ranked, document_id), shares=ranker.shares(ranked, document_id)
        )
        deeper = ranked.depth if ranked.depth > request.depth else None
        return RankExplanation(reason, deeper, _differs(request, ranker))


def _unranked_standing(ranker: TopicRanker, request: TopicRequest, document: str) -> RankStatus:
    """Return the status of an indexed document that even a deep ranking lacks."""
    if request.is_document and document == request.topic.id:
        return RankStatus.filtered
    query = ranker.recipe.body(request.topic, 1)["query"]
    score = ranker.score(document, query)
    if score:
        return RankStatus.below_depth
    if score is None:
        if ranker.score(document, without_filters(query)) is not None:
            return RankStatus.filtered
        loose = loosen(query)
        if loose != query and ranker.score(document, loose) is not None:
            return RankStatus.below_minimum
    return RankStatus.no_match


def _ranked(hits: Hits, documents: Sequence[str]) -> dict[str, Reason]:
    positions = {document: position for position, document in enumerate(hits.document_ids)}
    return {
        document: Reason(
            document, RankStatus.ranked, positions[document] + 1, hits.scores[positions[document]]
        )
        for document in documents
        if document in positions
    }


def _differs(request: TopicRequest, ranker: TopicRanker) -> bool:
    if request.run is None:
        return False
    return ranker.rank_topic(request.topic, request.depth).hits.document_ids != request.run.document_ids


def without_filters(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's query without the clauses that only exclude documents."""
    described = query.get("bool")
    if not isinstance(described, Mapping):
        return dict(query)
    return {
        "bool": {name: clause for name, clause in described.items() if name not in ("filter", "must_not")}
    }


def loosen(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's query that any word of any clause matches.

    >>> loosen({"bool": {"must": [{"match_phrase": {"text": "a b"}}, {"term": {"kind": "c"}}]}})
    {'bool': {'should': [{'match': {'text': {'query': 'a b'}}}]}}
    """
    (kind, described), *_ = query.items()
    if not isinstance(described, Mapping):
        return dict(query)
    if kind == "bool":
        clauses = [loosen(clause) for name in ("must", "should") for clause in _clauses(described.get(name))]
        of_words = [clause for clause in clauses if not _WITHOUT_WORDS & clause.keys()]
        return {"bool": {"should": of_words or clauses}} if clauses else dict(query)
    if kind in ("match", "match_phrase", "match_phrase_prefix"):
        return {"match": {field: _any_word(value) for field, value in described.items()}}
    if kind in ("multi_match", "combined_fields"):
        return {kind: {name: value for name, value in _any_word(described).items() if name != "type"}}
    return {kind: {name: _loosen_within(name, value) for name, value in described.items()}}


# Queries that match no words of a text.
_WITHOUT_WORDS = frozenset(("term", "terms", "range", "exists", "ids", "match_all"))

_ALL_WORDS = frozenset(("operator", "minimum_should_match", "slop", "max_expansions"))


def _clauses(described: Any) -> Sequence[Mapping[str, Any]]:
    return [described] if isinstance(described, Mapping) else described or []


def _any_word(described: Any) -> dict[str, Any]:
    options = described if isinstance(described, Mapping) else {"query": described}
    return {name: value for name, value in options.items() if name not in _ALL_WORDS}


def _loosen_within(name: str, described: Any) -> Any:
    if name in ("filter", "query", "positive") and isinstance(described, Mapping):
        return loosen(described)
    if name == "queries" and isinstance(described, Sequence):
        return [loosen(value) for value in described]
    return described


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A document and a topic, and the recipe that ranks the topic."""

    task: Task
    collection: Collection
    recipe: Recipe
    topic_id: str
    document_id: str
    split: str | None = None  # by default the first split that has the topic
    depth: int | None = None  # by default the task's own


@dataclass(frozen=True, slots=True)
class ExplainedTopic:
    """The explanation of a document for a topic of a split, in a ranking of a depth."""

    topic: Topic
    split: str
    depth: int
    explained: RankExplanation


def explain(
    request: ExplainRequest,
    engine: Engine,
    progress: Progress,
    home: Path | None = None,
    reranking: Reranking | None = None,
) -> ExplainedTopic:
    """Rank a topic and explain the status of a document; store models of the recipe in `home`.

    Raises:
        UsageError: no split, or not the given one, has the topic.
        DataError: files of the task are missing or damaged, the index has other documents, or an input is missing.
        EngineError: there is no index, or the engine failed.
    """
    split, topic = _topic(request)
    info = request.task.info
    depth = request.depth or info.default_depth
    ranker = TopicRanker.open(
        request.task, engine, request.collection, split, request.recipe, progress, home, reranking
    )
    require_documents(request.task, ranker.index, request.collection)

    def indexed(documents: Sequence[str]) -> set[str]:
        with ranker.lock:
            return set(paging.sources(ranker.index, documents))

    topic_request = TopicRequest(topic, depth, is_document=info.topics_are_documents)
    explanation = Explainer(ranker, indexed).explain(topic_request, request.document_id)
    return ExplainedTopic(topic, split, depth, explanation)


def _topic(request: ExplainRequest) -> tuple[str, Topic]:
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
    raise UsageError(f"{where} {has} topic {request.topic_id!r}: give another --topic or --split")
