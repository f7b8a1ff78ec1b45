"""The interface of signals: their parameters, their needs, and their answers to topics.

A signal is read from its own table of a recipe, is prepared once with its inputs, and then answers topics. To add one,
write a module beside this one and name its class in `searchapp.ranking.signals.KINDS`; the shortest examples are
`direct`, which searches an engine, and `popular`, which does not. `Voting` is the base of signals in which the nearest
topics or documents vote, `Trained` of those that rank by a model trained on solved topics.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from searchapp.engines.base import BEST_FIRST
from searchapp.errors import DataError, QueryRefused
from searchapp.model import Document, Example, Explanation, Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking import paging
from searchapp.ranking.learning import FeatureContribution, Linear
from searchapp.ranking.templates import (
    WEIGHT,
    WINDOW,
    RecipeTable,
    TopicQuery,
    number,
    template,
    whole,
    written_parameters,
)
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.engines.base import Index
    from searchapp.model import Body
    from searchapp.progress import Advance
    from searchapp.ranking.learning import StoredModel
    from searchapp.ranking.signals.terms import TermSpace


LEADERS = 100
"""How many of the first documents of the signals before it a signal gets."""

Scores = Mapping[str, float]
"""A score, in double, for each document of a signal, by the document's id."""

Answer = Hits | Scores
"""A signal's answer to a topic: hits in an engine's order, or scores in any order."""


class Need(StrEnum):
    """The inputs of a signal beside the index of the documents."""

    examples = "examples"
    """An index of solved topics, and their gold."""

    labels = "labels"
    """The graded documents of solved topics."""

    texts = "texts"
    """The texts of all documents, without an engine."""

    candidates = "candidates"
    """The first documents of the recipe's first signal."""

    leaders = "leaders"
    """The first documents of the fused signals before it in the recipe."""

    terms = "terms"
    """The terms of all documents and of the solved topics, without an engine, see `searchapp.ranking.signals.terms`."""

    model = "model"
    """A model that was trained on solved topics."""


class Scale(StrEnum):
    """The scale on which signals are added."""

    shares = "shares"
    """Shares of the greatest score of the topic, so that every topic's signals weigh the same."""

    scores = "scores"
    """Unchanged scores: votes weigh more for a topic that is close to solved ones, or whose neighbours agree."""


@dataclass(frozen=True, slots=True)
class SolvedTopics:
    """An index of solved topics, whose documents have the topics' ids, and the graded answers of each.

    The `withheld` ones are in the index too: they have no gold, and must not be among the nearest.
    """

    index: Index
    gold: Mapping[str, Mapping[str, float]]
    withheld: frozenset[str] = frozenset()

    def without(self, topics: frozenset[str]) -> SolvedTopics:
        """Return the solved topics with some more withheld."""
        gold = {topic: answers for topic, answers in self.gold.items() if topic not in topics}
        return SolvedTopics(self.index, gold, self.withheld | topics)

    def nearest(self, body: Body) -> Body:
        """Return a search body that excludes withheld topics."""
        if not self.withheld:
            return body
        others = {"bool": {"must": [body["query"]], "must_not": [{"ids": {"values": sorted(self.withheld)}}]}}
        return {**body, "query": others}


@dataclass(frozen=True, slots=True)
class GradedDocuments:
    """The documents by their ids, and the graded answers of each solved topic."""

    documents: Mapping[str, Document]
    gold: Mapping[str, Mapping[str, float]]

    def without(self, topic: Topic) -> dict[str, float]:
        """Return the grades of all answers but the topic's own: no topic is ranked by its gold."""
        return {
            document: grade
            for solved, answers in self.gold.items()
            if solved != topic.id
            for document, grade in answers.items()
        }


def _not_given(*_arguments: object) -> Any:
    raise AssertionError("the signal asks for what its `needs` do not name")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of signals: the index of the documents, and functions that return the rest.

    With `topics_are_documents` a topic is itself a document, under the same id, and must not be found for itself.
    """

    index: Index
    topics_are_documents: bool = False
    examples: Callable[[], SolvedTopics] = _not_given
    labels: Callable[[], GradedDocuments] = _not_given
    documents: Callable[[], Iterable[Document]] = _not_given
    terms: Callable[[], TermSpace] = _not_given
    model: Callable[..., Any] = _not_given
    """Returns the `StoredModel` of a trained signal; one that leaves topics out also gets the id of the ranked topic.
    """

    fusion: Callable[[Any], Any] = _not_given
    """Returns the `StoredModel` of the learned fusion of a recipe."""


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """A request to signals for `depth` documents for each topic, or as many as a signal's `window`, on a scale.

    `candidates` are the hits of the first signal for each topic; empty for a signal that does not need them.
    """

    topics: Sequence[Topic]
    depth: int
    scale: Scale
    candidates: Sequence[Hits] = ()
    leaders: Iterable[Hits] = ()
    """At most `LEADERS` first documents of the signals before it for each topic; empty for a signal that does not need
    them.
    """


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of a solved topic, or a graded document, for a document.

    `topic_id` is empty where a graded document votes, whose id is `document_id` then.
    """

    topic_id: str
    document_id: str
    grade: float
    score: float
    value: float


class SignalScorer(ABC):
    """A signal that is ready to answer topics."""

    @abstractmethod
    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        """Yield the answer to each topic, in the order of the topics.

        The caller puts hits on the scale; `Scores` are on `request.scale` already. The answer to a solved topic must
        not come from its own gold.

        Raises:
            QueryRefused: with the topic's id in the message, and that of a document that is the query.
            EngineError: the engine failed on the way.
        """

    @abstractmethod
    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        """Explain the score of a document for the only topic of a request; None without a score."""

    def votes(self, request: SignalRequest, document_id: str) -> Sequence[Vote]:  # noqa: ARG002  # for those that let vote
        """Return the votes for a document, for the only topic of a request, the greatest first."""
        return ()

    def model(self) -> dict[str, Any]:
        """Return the record of the signal's model in a run; empty without one."""
        return {}


class TopicScorer(SignalScorer):
    """A signal that answers one topic after the other, whatever the answers of others."""

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic in request.topics:
            yield self.scores(topic, request)
            advance(1)

    @abstractmethod
    def scores(self, topic: Topic, request: SignalRequest) -> Answer:
        """Return the answer to a topic."""


class Retriever(SignalScorer):
    """A signal that answers each topic from the hits of one query, whatever the answers of others."""

    @property
    @abstractmethod
    def searched(self) -> Index:
        """The index of the query."""

    @abstractmethod
    def body(self, topic: Topic, request: SignalRequest) -> Body:
        """Return the search body for a topic."""

    @abstractmethod
    def answer(self, topic: Topic, hits: Hits, request: SignalRequest) -> Answer:
        """Return the answer to a topic from the hits of its body."""

    def asks_as(self, other: Retriever) -> bool:  # noqa: ARG002  # most have a query of their own
        """Return whether another signal has the same searches, so that they are run once."""
        return False

    def retrieved(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        """Yield the hits of each topic's body.

        Raises:
            as `answers` does.
        """
        return searched(self.searched, request.topics, lambda topic: self.body(topic, request), advance)

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, hits in zip(request.topics, self.retrieved(request, advance), strict=True):
            yield self.answer(topic, hits, request)


@dataclass(frozen=True, slots=True)
class Signal(ABC):
    """A signal as a recipe describes it; `name` identifies it in the recipe, `weight` is its weight in a fusion."""

    kind: ClassVar[str]
    """The name of the class in recipes."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    listed_first: ClassVar[tuple[str, ...]] = ()
    """The parameters that come before the weight where all are listed."""

    name: str
    weight: float = number("what the signal counts in the fusion", default=1.0)
    window: int = field(default=0, kw_only=True)
    """How many documents it ranks at least, so that a fusion does not depend on the depth of a run; 0 for a signal that
    is alone, or unlimited.
    """

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """Return the signal that a table of a recipe describes.

        Raises:
            DataError: a key is missing or has a wrong type.
            UsageError: a number is out of range.
        """
        return cls(name=table.name, **table.parameters(cls))

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """The queries of the signal; none if it searches no engine."""
        values = (getattr(self, parameter.name) for parameter in fields(self))
        return tuple(value for value in values if isinstance(value, TopicQuery))

    def parameters(self) -> dict[str, Any]:
        """Return the record of the signal in a run beside kind, weight and queries."""
        written = written_parameters(self)
        return {
            key: value
            for key, value in written.items()
            if key not in (WEIGHT, WINDOW) and not isinstance(value, TopicQuery)
        }

    @abstractmethod
    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Get the inputs, and return the signal ready to answer topics."""

    def manifest(self) -> dict[str, Any]:
        """Return the record of the signal in a run."""
        described: dict[str, Any] = {"signal": self.kind, "name": self.name, "weight": self.weight}
        for query in self.queries:
            described |= {"template": query.template.name, "template_digest": query.digest}
        described |= {"window": self.window} if self.window else {}
        return described | self.parameters()


def searched(
    index: Index, topics: Sequence[Topic], body: Callable[[Topic], Body], advance: Advance
) -> Iterator[Hits]:
    """Yield the hits of each topic's search body.

    Raises:
        QueryRefused: with the topic's id in the message.
    """
    bodies = map(body, topics)
    first = next(bodies, None)
    if first is None:
        return
    all_bodies = itertools.chain([first], bodies)
    is_deep = _is_deep(first)  # as those of all topics
    try:
        yield from paging.deep(index, all_bodies, advance) if is_deep else index.search(all_bodies, advance)
    except QueryRefused as error:
        raise QueryRefused.of(error, error.place, f"topic {topics[error.place].id}: ") from error


def _is_deep(body: Body) -> bool:
    """Return whether a body exceeds the engine's own limit of hits."""
    size = body.get("size")
    return isinstance(size, int) and size > paging.WINDOW


def retrieve_in_one_request(retrievers: Sequence[Retriever], request: SignalRequest) -> list[Answer]:
    """Return the answers of some signals to the only topic: with one request to a server.

    Raises:
        QueryRefused: with the topic's id in the message.
        EngineError: the engine failed on the way.
    """
    (topic,) = request.topics
    bodies = [(retriever.searched, retriever.body(topic, request)) for retriever in retrievers]
    if any(_is_deep(body) for _, body in bodies):
        return [answer for retriever in retrievers for answer in retriever.answers(request, no_progress)]
    try:
        results = bodies[0][0].search_beside(bodies)
    except QueryRefused as error:
        raise QueryRefused.of(error, 0, f"topic {topic.id}: ") from error
    return [
        retriever.answer(topic, hits, request) for retriever, hits in zip(retrievers, results, strict=True)
    ]


def one_document(document_id: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the search body that finds one document and its score, if a query matches it."""
    only = {"ids": {"values": [document_id]}}
    wanted = only if query is None else {"bool": {"must": [query], "filter": [only]}}
    return {"query": wanted, "size": 1, "sort": BEST_FIRST, "_source": False}


def shares_of(scores: Scores) -> dict[str, float]:
    """Return scores by document as shares of the greatest; all 0 where that is not above 0."""
    greatest = max(scores.values(), default=0.0)
    if greatest <= 0:
        return dict.fromkeys(scores, 0.0)
    return {document: score / greatest for document, score in scores.items()}


def ranked(scores: Scores, depth: int, without: str | None = None) -> Hits:
    """Return the best `depth` documents, equal float32 scores by the bytes of their ids, as engines order them."""
    import numpy as np  # which is slow to import, and a server's rankings may need none of it

    documents = list(scores)
    with np.errstate(over="ignore"):  # greater numbers become infinite, and are refused when they are written
        descending = -np.fromiter(scores.values(), np.float64, len(documents)).astype(np.float32)
    order = descending.argsort(kind="stable")
    descending = descending[order]
    best = [documents[place] for place in order.tolist()]
    equal = np.flatnonzero(descending[1:] == descending[:-1])
    for group in np.split(equal, np.flatnonzero(np.diff(equal) != 1) + 1) if len(equal) else ():
        first, end = int(group[0]), int(group[-1]) + 2
        best[first:end] = sorted(best[first:end], key=str.encode)
    ordered = (-descending).tolist()
    if without in scores:
        place = best.index(without)
        del best[place], ordered[place]
    return Hits(best[:depth], ordered[:depth])


def number_in(document: Document, field: str) -> float:
    """Return the number in a field of a document; tables of own tasks have it as text.

    Raises:
        DataError: there is none.
    """
    with suppress(TypeError, ValueError):
        number = float(document.fields.get(field, ""))
        if math.isfinite(number):
            return number
    raise DataError(
        f"the document {document.id} has no number in {field}: correct the recipe, or choose another one"
    )


def gold_of(examples: Iterable[Example]) -> dict[str, Mapping[str, float]]:
    """Return the graded answers of solved topics by the topics' ids."""
    return {example.topic.id: example.gold for example in examples}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(Signal):
    """A signal in which the nearest `k` results of `query` vote with the weight (s / s1) ** `power`.

    s is the score of one of them, s1 that of the first.
    """

    query: TopicQuery = template()
    k: int = whole("how many of the nearest vote")
    power: float = number(
        "how steeply a vote falls with the score: (s / s1) ** power, s1 being that of the nearest"
    )


SEED = 2021
"""The default seed: that of the folds."""

SHOWN = 8
"""How many features an explanation names: those with the greatest weight."""

AT_ONCE = 256
"""How many topics a linear model ranks together."""

RECORDED = ("key", "solved", "withheld", "labels", "features", "candidates", "trees", "versions")
"""The keys of a model's header that a run records; of lists the length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Signal):
    """A signal with a linear model of topics: minimum samples per label `fewest`, C = `cost`, and a `seed`.

    The model has no features of the kinds `without`, which an ablation leaves out.
    """

    features: ClassVar[tuple[str, ...]] = ()
    """The kinds of features of its model that can be left out."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    leaves_out: ClassVar[bool] = False
    """Whether it ranks a solved topic too, by a model of the others."""

    most_kept: ClassVar[int] = 16
    """How many models of a task are kept: the last trained ones."""

    ranking_only: ClassVar[frozenset[str]] = frozenset()
    """The keys of parameters that the training does not depend on."""

    cost: float = number(
        "C of the linear model: what a mistake costs, the greater the less it is regularised"
    )
    fewest: int = whole("how many solved topics a label must have")
    seed: int = whole("the seed of the training", default=SEED)
    without: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        # super() does not work in a method of a dataclass with slots, which is another class than the one it stands in
        described = Signal.parameters(self)
        return described | ({"without": list(self.without)} if self.without else {})

    def training(self) -> dict[str, Any]:
        """Return the parameters of the training."""
        trained = {key: value for key, value in self.parameters().items() if key not in self.ranking_only}
        return {"signal": self.kind, **trained}

    @abstractmethod
    def train(
        self, examples: Sequence[Example], documents: Iterable[Document], workers: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return header and arrays of the model of solved topics; the number of `workers` does not change it.

        Raises:
            UsageError: scikit-learn is not installed.
            DataError: there are too few solved topics.
        """


class TrainedScorer(SignalScorer):
    """Ranks by a linear model of topics, `AT_ONCE` topics at a time."""

    def __init__(self, stored: StoredModel) -> None:
        self._stored = stored
        self._linear = Linear.read(stored.header, stored.arrays)

    def model(self) -> dict[str, Any]:
        return model_record(self._stored)

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        require_unseen(self._stored, request.topics)
        for start in range(0, len(request.topics), AT_ONCE):
            topics = request.topics[start : start + AT_ONCE]
            for scores in self.scored(self._linear.margins([topic.text for topic in topics])):
                yield scores
                advance(1)

    @abstractmethod
    def scored(self, margins: Any) -> Iterator[Scores]:
        """Yield the scores of each topic from the margins (topics, labels)."""


def model_record(stored: StoredModel) -> dict[str, Any]:
    """Return the record of a model in a run."""
    record = {key: stored.header[key] for key in RECORDED if key in stored.header}
    counts = {key: len(value) if isinstance(value, list) else value for key, value in record.items()}
    return {"digest": stored.digest, **counts}


def require_unseen(stored: StoredModel, topics: Sequence[Topic]) -> None:
    """Make sure that a model was not trained on one of the topics, whose answers it knows.

    Raises:
        DataError: it was.
    """
    seen = frozenset(stored.header.get("topics", ()))
    for topic in topics:
        if topic.id in seen:
            raise DataError(
                f"the recipe's model was trained on the topic {topic.id} and knows its answers: rank another "
                "split, or choose another recipe"
            )


def require_labels(examples: Sequence[Example], labels: Sequence[str], what: str) -> None:
    """Make sure that a model has labels.

    Raises:
        DataError: it has none.
    """
    if not labels:
        raise DataError(
            f"none of the {len(examples):,} solved topics has {what} that enough others have: lower `fewest` with "
            "--set, or choose another recipe"
        )


def feature_details(
    parts: Sequence[FeatureContribution], intercept: float, what: str = "words"
) -> tuple[Explanation, ...]:
    """Explain a margin by the `SHOWN` features with the greatest weight, the sum of the others, and the intercept."""
    details = [Explanation(part.value, part.feature) for part in parts[:SHOWN]]
    if rest := parts[SHOWN:]:
        details.append(Explanation(sum(part.value for part in rest), counted(len(rest), "further feature")))
    return (*details, Explanation(intercept, f"intercept, whatever the {what}"))
