"""The interface of signals: parameters, needs, and answers to topics.

A recipe's table describes a signal; `prepare` gives it its inputs, and the resulting scorer answers topics. To add a
signal, write a module beside this one and list its class in `searchapp.ranking.signals.KINDS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from searchapp.engines.base import BEST_FIRST
from searchapp.errors import DataError, QueryRefused
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.queries import dsl
from searchapp.model import Document, Example, Explanation, Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking import paging
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
    from searchapp.ranking.learning import FeatureContribution, StoredModel
    from searchapp.ranking.signals.terms import TermSpace


# How many first documents of the preceding signals a signal gets by default.
LEADERS = 100

# The score of each document by its id, in double precision.
Scores = Mapping[str, float]

# A signal's answer to a topic: hits in an engine's order, or scores in any order.
Answer = Hits | Scores


class Need(StrEnum):
    """An input of a signal, in addition to the index of the documents."""

    # An index of training topics, and their gold.
    examples = "examples"

    # The graded documents of training topics.
    labels = "labels"

    # The texts of all documents, without an engine.
    texts = "texts"

    # The first documents of the recipe's first signal.
    candidates = "candidates"

    # The first documents of the preceding signals' fusion.
    leaders = "leaders"

    # The terms of all documents and training topics, without an engine: `searchapp.ranking.signals.terms`.
    terms = "terms"

    # A model trained on topics with gold.
    model = "model"


class Normalization(StrEnum):
    """The normalization of scores before they are added."""

    # Shares of the topic's greatest score, so that signals weigh the same in every topic.
    max = "max"

    # Unchanged scores: votes weigh more for a topic with close or agreeing neighbours.
    none = "none"


@dataclass(frozen=True, slots=True)
class TrainingTopics:
    """An index of training topics, whose documents have the topics' ids, and the graded answers of each topic."""

    index: Index
    gold: Mapping[str, Mapping[str, float]]
    # Topics of the index that must not be among the nearest; they have no gold.
    withheld: frozenset[str] = frozenset()

    def without(self, topics: frozenset[str]) -> TrainingTopics:
        gold = {topic: answers for topic, answers in self.gold.items() if topic not in topics}
        return TrainingTopics(self.index, gold, self.withheld | topics)

    def nearest(self, body: Body) -> Body:
        if not self.withheld:
            return body
        withheld = {"must_not": [{"ids": {"values": sorted(self.withheld)}}]}
        remaining = {**body}
        if body["query"] != dsl.NOTHING:
            remaining["query"] = {"bool": {"must": [body["query"]], **withheld}}
        if "knn" in body:
            remaining["knn"] = [
                {**section, "filter": [*dsl.listed(section.get("filter")), {"bool": withheld}]}
                for section in dsl.listed(body["knn"])
            ]
        return remaining


@dataclass(frozen=True, slots=True)
class GradedDocuments:
    """The documents and the training topics by their ids, and the graded answers of each training topic."""

    documents: Mapping[str, Document]
    gold: Mapping[str, Mapping[str, float]]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    def without(self, topic: Topic) -> dict[str, float]:
        """Return the grades of all answers except the topic's own: no topic is ranked by its gold."""
        return {
            document: grade
            for topic_id, answers in self.gold.items()
            if topic_id != topic.id
            for document, grade in answers.items()
        }


def _not_given(*_arguments: object) -> Any:
    raise AssertionError("the signal asks for what its `needs` do not name")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of signals: the index of the documents, and functions that return the rest."""

    index: Index
    # Whether a topic is itself a document, under the same id, and must not be retrieved for itself.
    topics_are_documents: bool = False
    examples: Callable[[], TrainingTopics] = _not_given
    labels: Callable[[], GradedDocuments] = _not_given
    documents: Callable[[], Iterable[Document]] = _not_given
    terms: Callable[[], TermSpace] = _not_given
    # Returns the `StoredModel` of a trained signal. A signal with one model per topic also passes the topic's id.
    model: Callable[..., Any] = _not_given

    # Returns the `StoredModel` of a recipe's learned fusion.
    fusion: Callable[[Any], Any] = _not_given
    # Returns the scores of documents by a reranker: `searchapp.embeddings.reranking.Reranking.scores`.
    rerank: Callable[..., list[list[float]]] = _not_given
    # PyTerrier transformers by signal.
    transformers: Mapping[str, Any] = field(default_factory=dict)

    # Returns the vector of typed words, (1, dimensions), by the source that a file of vectors records; None if only
    # stored vectors rank.
    embed_words: Callable[[str, Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """A request for `depth` documents per topic, or for a signal's `window` if that is larger."""

    topics: Sequence[Topic]
    depth: int
    normalization: Normalization
    # The hits of the first signal for each topic; empty if the signal needs none.
    candidates: Sequence[Hits] = ()
    # For each topic, the first documents of the preceding signals (`Signal.leaders`); empty if the signal needs none.
    leaders: Iterable[Hits] = ()


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of a training topic, or of a graded document, for a document."""

    topic_id: str  # empty if a graded document votes
    document_id: str  # the graded document; it is the voter if `topic_id` is empty
    grade: float
    score: float
    value: float


class SignalScorer(ABC):
    """A signal that is ready to answer topics."""

    @abstractmethod
    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        """Yield the answer to each topic, in the order of the topics.

        The caller scales hits; `Scores` are already normalized. The answer to a training topic must not use
        its own gold.

        Raises:
            QueryRefused: the message has the topic's id, and a document's if that document is the query.
            EngineError: the engine failed.
        """

    @abstractmethod
    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        """Explain the score of a document for the request's only topic; None without a score."""

    def votes(self, request: SignalRequest, document_id: str) -> Sequence[Vote]:  # noqa: ARG002  # for signals with votes
        """Return the votes for a document, for the request's only topic, greatest first."""
        return ()

    def model(self) -> dict[str, Any]:
        """Return the record of the signal's model in a run; empty without a model."""
        return {}


class TopicScorer(SignalScorer):
    """A signal that answers each topic independently."""

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic in request.topics:
            yield self.scores(topic, request)
            advance(1)

    @abstractmethod
    def scores(self, topic: Topic, request: SignalRequest) -> Answer:
        """Return the answer to a topic."""


class Retriever(SignalScorer):
    """A signal that answers each topic from the hits of one query."""

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

    def asks_as(self, other: Retriever) -> bool:  # noqa: ARG002  # for overriding methods
        """Return whether another signal has the same searches, so that they run once."""
        return False

    def retrieved(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        """Yield the hits of each topic's body; raises the errors of `answers`."""
        return searched(self.searched, request.topics, lambda topic: self.body(topic, request), advance)

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, hits in zip(request.topics, self.retrieved(request, advance), strict=True):
            yield self.answer(topic, hits, request)


@dataclass(frozen=True, slots=True)
class Signal(ABC):
    """A signal as a recipe describes it."""

    # The name of the class in recipes.
    kind: ClassVar[str]

    needs: ClassVar[frozenset[Need]] = frozenset()

    # Whether it asks a model outside of searchapp, an endpoint or a command, about typed words.
    is_external: ClassVar[bool] = False

    # The greatest number of first documents of the preceding signals that it gets if it needs them.
    leaders: ClassVar[int] = LEADERS

    # The parameters that a list shows before the weight.
    listed_first: ClassVar[tuple[str, ...]] = ()

    name: str
    weight: float = number("weight in the fusion", default=1.0)
    # The minimum number of documents to rank, so that a fusion does not depend on the depth of a run; 0 for no
    # minimum.
    window: int = field(default=0, kw_only=True)

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """Return the signal that a recipe's table describes.

        Raises:
            DataError: a key is missing or has a wrong type.
            UsageError: a number is out of range.
        """
        return cls(name=table.name, **table.parameters(cls))

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        values = (getattr(self, parameter.name) for parameter in fields(self))
        return tuple(value for value in values if isinstance(value, TopicQuery))

    def parameters(self) -> dict[str, Any]:
        """Return the record of the signal in a run, without kind, weight and queries."""
        written = written_parameters(self)
        return {
            key: value
            for key, value in written.items()
            if key not in (WEIGHT, WINDOW) and not isinstance(value, TopicQuery)
        }

    def files(self) -> Sequence[Path]:
        """Return the files that the signal reads, beside the data of the task.

        Raises:
            DataError: there are none where there must be some.
        """
        return ()

    @abstractmethod
    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Load the inputs and return the signal ready to answer topics."""

    def manifest(self) -> dict[str, Any]:
        described: dict[str, Any] = {"signal": self.kind, "name": self.name, "weight": self.weight}
        for query in self.queries:
            described |= {"template": query.template.name, "template_digest": query.digest}
        described |= {"window": self.window} if self.window else {}
        return described | self.parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSignal(Signal):
    """A signal of files, whose paths are relative to the file of the recipe."""

    folder: Path = Path()

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        return cls(name=table.name, folder=table.place.book.folder, **table.parameters(cls))


def searched(
    index: Index, topics: Sequence[Topic], body: Callable[[Topic], Body], advance: Advance
) -> Iterator[Hits]:
    """Yield the hits of each topic's search body.

    Raises:
        QueryRefused: the message has the topic's id.
    """
    try:
        yield from paging.hits_of(index, map(body, topics), advance)
    except QueryRefused as error:
        raise QueryRefused.of(error, error.place, f"topic {topics[error.place].id}: ") from error


def retrieve_in_one_request(retrievers: Sequence[Retriever], request: SignalRequest) -> list[Answer]:
    """Return the answers of signals to the only topic, with one request to a server.

    Raises:
        QueryRefused: the message has the topic's id.
        EngineError: the engine failed.
    """
    (topic,) = request.topics
    bodies = [(retriever.searched, retriever.body(topic, request)) for retriever in retrievers]
    if any(paging.takes_several_requests(body) for _, body in bodies):
        return [answer for retriever in retrievers for answer in retriever.answers(request, no_progress)]
    try:
        results = bodies[0][0].search_beside(bodies)
    except QueryRefused as error:
        raise QueryRefused.of(error, 0, f"topic {topic.id}: ") from error
    return [
        retriever.answer(topic, hits, request) for retriever, hits in zip(retrievers, results, strict=True)
    ]


def one_document(document_id: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a search body for one document and its score, if the query matches it."""
    only = {"ids": {"values": [document_id]}}
    query_with_filter = only if query is None else {"bool": {"must": [query], "filter": [only]}}
    return {"query": query_with_filter, "size": 1, "sort": BEST_FIRST, "_source": False}


def shares_of(scores: Scores) -> dict[str, float]:
    """Return scores as shares of the greatest; all 0 if that is not above 0."""
    greatest = max(scores.values(), default=0.0)
    if greatest <= 0:
        return dict.fromkeys(scores, 0.0)
    return {document: score / greatest for document, score in scores.items()}


def ranked(scores: Scores, depth: int, without: str | None = None) -> Hits:
    """Return the best `depth` documents, ordered as engines do: equal float32 scores by the bytes of the ids."""
    import numpy as np  # slow to import, and rankings of a server may not need it

    documents = list(scores)
    with np.errstate(over="ignore"):  # an overflow becomes infinite, which the writer of runs rejects
        descending = -np.fromiter(scores.values(), np.float64, len(documents)).astype(np.float32)
    order = descending.argsort(kind="stable")
    descending = descending[order]
    best = [documents[index] for index in order.tolist()]
    equal = np.flatnonzero(descending[1:] == descending[:-1])
    for group in np.split(equal, np.flatnonzero(np.diff(equal) != 1) + 1) if len(equal) else ():
        first, end = int(group[0]), int(group[-1]) + 2
        best[first:end] = sorted(best[first:end], key=str.encode)
    ordered = (-descending).tolist()
    if without in scores:
        index = best.index(without)
        del best[index], ordered[index]
    return Hits(best[:depth], ordered[:depth])


def number_in(document: Document, field: str) -> float:
    """Return the number in a document's field; tables of own tasks contain it as text.

    Raises:
        DataError: the field has no number.
    """
    with suppress(TypeError, ValueError):
        number = float(document.fields.get(field, ""))
        if math.isfinite(number):
            return number
    raise DataError(
        f"the document {document.id} has no number in the field {field}: correct the recipe, or choose another one"
    )


def gold_of(examples: Iterable[Example]) -> dict[str, Mapping[str, float]]:
    """Return the graded answers of training topics by topic id."""
    return {example.topic.id: example.gold for example in examples}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(Signal):
    """A signal in which the `k` nearest results of `query` vote with the weight (s / s1) ** `power`.

    s is the score of a result, s1 the score of the first result.
    """

    query: TopicQuery = template()
    k: int = whole("number of nearest neighbours that vote")
    power: float = number(
        "how steeply votes fall with the score s: (s / s1) ** power, with the nearest neighbour's score s1"
    )


# The default seed, the same as of the folds.
SEED = 2021

# How many features an explanation lists: those with the greatest weight.
SHOWN = 8

# How many topics a linear model ranks in one batch.
AT_ONCE = 256

# The keys of a model's header that a run records (a list by its length).
RECORDED = (
    "key",
    "training_topics",
    "withheld",
    "labels",
    "features",
    "candidates",
    "trees",
    "processor",
    "versions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Signal):
    """A signal with a model that is trained on topics with gold."""

    # The kinds of features that an ablation can omit.
    features: ClassVar[tuple[str, ...]] = ()

    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    # Whether it also ranks training topics, each by a model of the others.
    leaves_out: ClassVar[bool] = False

    # How many models of a task are cached; the oldest are removed.
    most_kept: ClassVar[int] = 16

    # The parameters that training does not depend on.
    ranking_only: ClassVar[frozenset[str]] = frozenset()

    seed: int = whole("the seed of the training", default=SEED)

    def training(self) -> dict[str, Any]:
        trained = {key: value for key, value in self.parameters().items() if key not in self.ranking_only}
        return {"signal": self.kind, **trained}

    @abstractmethod
    def train(
        self, examples: Sequence[Example], documents: Iterable[Document], workers: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return header and arrays of a model; the number of `workers` does not change it.

        Raises:
            UsageError: scikit-learn is not installed.
            DataError: there are too few training topics.
        """

    def release(self) -> None:
        """Free what `train` keeps for the next model of the same documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedLinear(Trained):
    """A signal with a linear model of topics."""

    cost: float = number("C of the linear model, the inverse of its regularisation strength")
    min_samples: int = whole("minimum number of training topics of a label")
    without: tuple[str, ...] = ()  # kinds of features to omit, for ablation studies

    def parameters(self) -> dict[str, Any]:
        # super() fails in a dataclass with slots: the decorator creates a new class.
        described = Trained.parameters(self)
        return described | ({"without": list(self.without)} if self.without else {})


class TrainedScorer(SignalScorer):
    """Ranks by a linear model of topics, `AT_ONCE` topics at a time."""

    def __init__(self, stored: StoredModel) -> None:
        from searchapp.ranking.learning import Linear  # slow to import

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
    """Check that a model was not trained on one of the topics.

    Raises:
        DataError: it was.
    """
    seen = frozenset(stored.header.get("topics", ()))
    for topic in topics:
        if topic.id in seen:
            raise DataError(
                f"the recipe's model was trained on the topic {topic.id}: rank another split, or "
                "choose another recipe"
            )


def require_labels(examples: Sequence[Example], labels: Sequence[str], what: str) -> None:
    """Check that a model has labels.

    Raises:
        DataError: it has none.
    """
    if not labels:
        raise DataError(
            f"none of the {len(examples):,} training topics has {what} that enough others have: lower "
            "`min_samples` with "
            "--set, or choose another recipe"
        )


def feature_details(
    parts: Sequence[FeatureContribution], intercept: float, what: str = "words"
) -> tuple[Explanation, ...]:
    """Explain a margin by the `SHOWN` largest contributions, the sum of the others, and the intercept."""
    details = [Explanation(part.value, part.feature) for part in parts[:SHOWN]]
    if other_parts := parts[SHOWN:]:
        details.append(
            Explanation(sum(part.value for part in other_parts), counted(len(other_parts), "further feature"))
        )
    return (*details, Explanation(intercept, f"intercept, whatever the {what}"))
