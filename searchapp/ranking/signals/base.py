"""What every signal of a recipe is: what it reads, what it needs, and what it answers.

A signal is read from its own table of a recipe, is prepared once with what it needs, and then answers topics. To add
one, write a module beside this one and name its class in `searchapp.ranking.signals.KINDS`; the shortest to begin with
are `direct`, which asks an engine, and `popular`, which asks none. `Voting` is the base of those for which the nearest
of something votes, `Trained` of those that rank by a model trained on solved topics.
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
"""How many documents a signal is told of that those before it rank highest."""

Scores = Mapping[str, float]
"""A score, in double, for each document that a signal speaks for, by the document's id."""

Answer = Hits | Scores
"""What a signal says of a topic: hits as an engine orders them, or scores in any order."""


class Need(StrEnum):
    """What a signal needs beside the index of the documents."""

    examples = "examples"
    """An index of solved topics, and their gold."""

    labels = "labels"
    """The documents that solved topics grade."""

    texts = "texts"
    """The texts of all documents, without an engine."""

    candidates = "candidates"
    """What the first signal of the recipe ranks highest."""

    leaders = "leaders"
    """What the signals before it in the recipe, fused, rank highest."""

    terms = "terms"
    """The terms of all documents and of the solved topics, without an engine, see `searchapp.ranking.signals.terms`."""

    model = "model"
    """A model that was trained on solved topics, see `searchapp.ranking.signals.base`."""


class Scale(StrEnum):
    """On what scale signals are added."""

    shares = "shares"
    """As shares of the greatest score of the topic, so that every topic's signals weigh the same."""

    scores = "scores"
    """As they come: votes weigh more for a topic that is much like solved ones, or whose neighbours agree."""


@dataclass(frozen=True, slots=True)
class SolvedTopics:
    """Solved topics: an index of them, whose documents have the topics' ids, and the graded answers of each.

    Those that are `withheld` are in the index all the same: they have no gold, and must not be among the nearest.
    """

    index: Index
    gold: Mapping[str, Mapping[str, float]]
    withheld: frozenset[str] = frozenset()

    def without(self, topics: frozenset[str]) -> SolvedTopics:
        """The same, some topics withheld."""
        gold = {topic: answers for topic, answers in self.gold.items() if topic not in topics}
        return SolvedTopics(self.index, gold, self.withheld | topics)

    def nearest(self, body: Body) -> Body:
        """A search body that finds solved topics, for those that are not withheld."""
        if not self.withheld:
            return body
        others = {"bool": {"must": [body["query"]], "must_not": [{"ids": {"values": sorted(self.withheld)}}]}}
        return {**body, "query": others}


@dataclass(frozen=True, slots=True)
class GradedDocuments:
    """What is known of documents: the documents by their ids, and the graded answers of each solved topic."""

    documents: Mapping[str, Document]
    gold: Mapping[str, Mapping[str, float]]

    def without(self, topic: Topic) -> dict[str, float]:
        """The grades of all answers but the topic's own: no topic is ranked by its gold."""
        return {
            document: grade
            for solved, answers in self.gold.items()
            if solved != topic.id
            for document, grade in answers.items()
        }


def _not_given(*_asked: object) -> Any:
    raise AssertionError("the signal asks for what its `needs` do not name")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where signals get what they need: the index of the documents, and the rest when it is asked for.

    With `topics_are_documents` a topic is itself a document, under the same id, and must not be found for itself.
    """

    index: Index
    topics_are_documents: bool = False
    examples: Callable[[], SolvedTopics] = _not_given
    labels: Callable[[], GradedDocuments] = _not_given
    documents: Callable[[], Iterable[Document]] = _not_given
    terms: Callable[[], TermSpace] = _not_given
    model: Callable[..., Any] = _not_given
    """Gives a signal of `searchapp.ranking.signals.base` the `StoredModel` that it was trained to; one that leaves
    topics out also names the topic that it is going to rank."""

    fusion: Callable[[Any], Any] = _not_given
    """Gives a recipe whose fusion is learned, see `searchapp.ranking.fusion`, the `StoredModel` model of that."""


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """What signals are asked: `depth` documents for each topic, scores on a scale.

    A signal with a greater `window` ranks more. `candidates` are what the first signal ranks, one for each topic; empty
    for a signal that needs none.
    """

    topics: Sequence[Topic]
    depth: int
    scale: Scale
    candidates: Sequence[Hits] = ()
    leaders: Iterable[Hits] = ()
    """What the signals before it rank highest, `LEADERS` documents at most, for each topic in their order; empty for a
    signal that does not need them."""


@dataclass(frozen=True, slots=True)
class Vote:
    """What a solved topic, or a graded document, gives to a document: its grade there, and what that counts.

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
    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        """What the signal says of each topic, in the order of the topics.

        Hits come with scores of any kind, and are put on the scale by whoever asked; `Scores` must be on `asked.scale`
        already. A topic may be a solved one too: what is said of it must not come from its own gold.

        Raises:
            QueryRefused: with the topic's id in the message, and the document's, if that asks for it.
            EngineError: the engine failed on the way.
        """

    @abstractmethod
    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        """Why the only topic that is asked gives a document its score; None where the signal does not speak for it."""

    def votes(self, asked: SignalRequest, document_id: str) -> Sequence[Vote]:  # noqa: ARG002  # for those that let vote
        """Who voted for a document, for the only topic that is asked, the greatest first; nobody for most signals."""
        return ()

    def model(self) -> dict[str, Any]:
        """What a run records of the model that the signal ranks by; nothing for most signals."""
        return {}


class TopicScorer(SignalScorer):
    """A signal that answers one topic after the other, whatever other signals say."""

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic in asked.topics:
            yield self.scores(topic, asked)
            advance(1)

    @abstractmethod
    def scores(self, topic: Topic, asked: SignalRequest) -> Answer:
        """Return what the signal says of a topic."""


class Retriever(SignalScorer):
    """A signal that answers each topic from the hits of one query, whatever other signals say."""

    @property
    @abstractmethod
    def searched(self) -> Index:
        """The index that it asks."""

    @abstractmethod
    def body(self, topic: Topic, asked: SignalRequest) -> Body:
        """The search body for a topic."""

    @abstractmethod
    def answer(self, topic: Topic, hits: Hits, asked: SignalRequest) -> Answer:
        """What the signal says of a topic by the hits of its body."""

    def asks_as(self, other: Retriever) -> bool:  # noqa: ARG002  # most have a query of their own
        """Whether another one asks the same, so that it is enough to ask once."""
        return False

    def retrieved(self, asked: SignalRequest, advance: Advance) -> Iterator[Hits]:
        """The hits of each topic's body.

        Raises:
            as `answers` does.
        """
        return searched(self.searched, asked.topics, lambda topic: self.body(topic, asked), advance)

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, hits in zip(asked.topics, self.retrieved(asked, advance), strict=True):
            yield self.answer(topic, hits, asked)


@dataclass(frozen=True, slots=True)
class Signal(ABC):
    """A signal as a recipe describes it; `name` identifies it in the recipe, `weight` is what it counts in a fusion."""

    kind: ClassVar[str]
    """What a recipe calls signals of this class."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    listed_first: ClassVar[tuple[str, ...]] = ()
    """The parameters that come before the weight where all are listed."""

    name: str
    weight: float = number("what the signal counts in the fusion", default=1.0)
    window: int = field(default=0, kw_only=True)
    """How many documents it ranks at least, so that a fusion does not depend on the depth of a run; 0 for a signal
    that is alone, or has no end of its own."""

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """The signal that a table of a recipe describes.

        Raises:
            DataError: a key is missing or not what it should be.
            UsageError: a number is not what it should be.
        """
        return cls(name=table.name, **table.parameters(cls))

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """The queries that the signal asks; none where it asks no engine."""
        values = (getattr(self, one.name) for one in fields(self))
        return tuple(value for value in values if isinstance(value, TopicQuery))

    def parameters(self) -> dict[str, Any]:
        """What a run records of the signal beside kind, weight and queries."""
        written = written_parameters(self)
        return {
            key: value
            for key, value in written.items()
            if key not in (WEIGHT, WINDOW) and not isinstance(value, TopicQuery)
        }

    @abstractmethod
    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Make ready to answer topics, with what the signal needs."""

    def manifest(self) -> dict[str, Any]:
        """What a run records of the signal."""
        described: dict[str, Any] = {"signal": self.kind, "name": self.name, "weight": self.weight}
        for query in self.queries:
            described |= {"template": query.template.name, "template_digest": query.digest}
        described |= {"window": self.window} if self.window else {}
        return described | self.parameters()


def searched(
    index: Index, topics: Sequence[Topic], body: Callable[[Topic], Body], advance: Advance
) -> Iterator[Hits]:
    """The hits of each topic's search body.

    Raises:
        QueryRefused: with the topic's id in the message.
    """
    bodies = map(body, topics)
    first = next(bodies, None)
    if first is None:
        return
    every = itertools.chain([first], bodies)
    is_deep = _is_deep(first)  # as those of all topics
    try:
        yield from paging.deep(index, every, advance) if is_deep else index.search(every, advance)
    except QueryRefused as error:
        raise QueryRefused.of(error, error.place, f"topic {topics[error.place].id}: ") from error


def _is_deep(body: Body) -> bool:
    """Whether a body asks for more than an engine gives by itself."""
    size = body.get("size")
    return isinstance(size, int) and size > paging.WINDOW


def retrieve_in_one_request(retrievers: Sequence[Retriever], asked: SignalRequest) -> list[Answer]:
    """What some signals say of the only topic that is asked: one request to a server, instead of one for each.

    Raises:
        QueryRefused: with the topic's id in the message.
        EngineError: the engine failed on the way.
    """
    (topic,) = asked.topics
    bodies = [(retriever.searched, retriever.body(topic, asked)) for retriever in retrievers]
    if any(_is_deep(body) for _, body in bodies):
        return [answer for retriever in retrievers for answer in retriever.answers(asked, no_progress)]
    try:
        results = bodies[0][0].search_beside(bodies)
    except QueryRefused as error:
        raise QueryRefused.of(error, 0, f"topic {topic.id}: ") from error
    return [retriever.answer(topic, hits, asked) for retriever, hits in zip(retrievers, results, strict=True)]


def one_document(document_id: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The search body that finds one document and its score, if a query matches it."""
    only = {"ids": {"values": [document_id]}}
    wanted = only if query is None else {"bool": {"must": [query], "filter": [only]}}
    return {"query": wanted, "size": 1, "sort": BEST_FIRST, "_source": False}


def shares_of(scores: Iterable[tuple[str, float]], greatest: float) -> dict[str, float]:
    """Scores by document as shares of the greatest; all 0 where that is not above 0."""
    if greatest <= 0:
        return {document: 0.0 for document, _ in scores}
    return {document: score / greatest for document, score in scores}


def ranked(scores: Scores, depth: int, without: str | None = None) -> Hits:
    """The best `depth` documents, equal float32 scores by the bytes of their ids, as engines order them."""
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
    """The number in a field of a document; tables of own tasks have it as text.

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
    """The graded answers of solved topics by the topics' ids."""
    return {example.topic.id: example.gold for example in examples}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(Signal):
    """`query` finds the nearest `k`; each votes with the weight (s / s1) ** `power`.

    s is the score of one of them, s1 that of the first.
    """

    query: TopicQuery = template()
    k: int = whole("how many of the nearest vote")
    power: float = number(
        "how steeply a vote falls with the score: (s / s1) ** power, s1 being that of the nearest"
    )


SEED = 2021
"""The seed where a recipe names none: that of the folds."""

SHOWN = 8
"""How many features an explanation names: those that weigh most."""

AT_ONCE = 256
"""How many topics a linear model ranks together."""

RECORDED = ("key", "solved", "withheld", "labels", "features", "candidates", "trees", "versions")
"""What a run records of the header of a model; of lists how long they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Signal):
    """A signal with a linear model of topics: at least `fewest` solved topics a label, C = `cost`, and a `seed`.

    The model has no features of the kinds `without`, which an ablation leaves out.
    """

    features: ClassVar[tuple[str, ...]] = ()
    """The kinds of features of its model, as far as each can be left out."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    leaves_out: ClassVar[bool] = False
    """Whether a solved topic may be ranked too, by a model of the others."""

    most_kept: ClassVar[int] = 16
    """How many models of a task are kept: those that were trained last."""

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
        """What its model depends on beside the solved topics."""
        trained = {key: value for key, value in self.parameters().items() if key not in self.ranking_only}
        return {"signal": self.kind, **trained}

    @abstractmethod
    def train(
        self, examples: Sequence[Example], documents: Iterable[Document], workers: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Header and arrays of the model that solved topics make; `workers` processes change nothing but the time.

        Raises:
            UsageError: scikit-learn is not installed.
            DataError: the solved topics do not suffice.
        """


class TrainedScorer(SignalScorer):
    """Ranks by a linear model of topics, `AT_ONCE` topics at a time."""

    def __init__(self, stored: StoredModel) -> None:
        self._stored = stored
        self._linear = Linear.read(stored.header, stored.arrays)

    def model(self) -> dict[str, Any]:
        return model_record(self._stored)

    def answers(self, asked: SignalRequest, advance: Advance) -> Iterator[Answer]:
        require_unseen(self._stored, asked.topics)
        for start in range(0, len(asked.topics), AT_ONCE):
            topics = asked.topics[start : start + AT_ONCE]
            for scores in self.scored(self._linear.margins([topic.text for topic in topics])):
                yield scores
                advance(1)

    @abstractmethod
    def scored(self, margins: Any) -> Iterator[Scores]:
        """Yield the scores of each topic from the margins (topics, labels)."""


def model_record(stored: StoredModel) -> dict[str, Any]:
    """What a run records of a model."""
    record = {key: stored.header[key] for key in RECORDED if key in stored.header}
    counts = {key: len(value) if isinstance(value, list) else value for key, value in record.items()}
    return {"digest": stored.digest, **counts}


def require_unseen(stored: StoredModel, topics: Sequence[Topic]) -> None:
    """Make sure that none of the topics is among the solved ones of a model, which knows their answers.

    Raises:
        DataError: one of them is.
    """
    seen = frozenset(stored.header.get("topics", ()))
    for topic in topics:
        if topic.id in seen:
            raise DataError(
                f"the recipe's model was trained on the topic {topic.id} and knows its answers: rank another "
                "split, or choose another recipe"
            )


def require_labels(examples: Sequence[Example], labels: Sequence[str], what: str) -> None:
    """Make sure that there is something to train for.

    Raises:
        DataError: no label is left.
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
