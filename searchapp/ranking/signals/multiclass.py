"""The signal `multiclass`: a linear model predicts a topic's answer, and documents rank by their expected gain.

The class of a training topic is the set of documents with its best grade, such as the most specific types of an
answer. Class probabilities are the softmax of `steepness` times the margins. A document's score is its expected gain,

    E[gain(d)] = sum over classes c of p(c) * mean over the training topics of c of grade(d) ^ power / ideal

where ideal is the discounted cumulative gain of a topic's own gains, best first, down to the rank `cutoff` (without
it 1): this order maximizes the expected NDCG. If grades are 1 / sqrt(rank), a `power` of 2 makes them reciprocal
ranks.

`category_field` names a field of the documents with few values, one for all answers of a topic, such as the category
of a type. A separate model predicts the value, and classes compete within their value. A document's score is then the
probability of its value times its share of the greatest expected gain in it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Explanation
from searchapp.ranking import learning
from searchapp.ranking.learning import KINDS, StoredModel, Vocabulary, invalid_part, numbers, sparse, texts
from searchapp.ranking.signals.base import (
    Inputs,
    Scores,
    SignalRequest,
    SignalScorer,
    TrainedLinear,
    TrainedScorer,
    feature_details,
    require_labels,
)
from searchapp.ranking.templates import number, text, whole

Float64Array = NDArray[np.float64]
# The least score of a ranked document: most documents have nearly no gain for most topics.
MIN_SCORE = 1e-5

# How many classes an explanation lists: those with the greatest part.
SHOWN_CLASSES = 5

# The least share of a document's expected gain for a class in an explanation.
MIN_SHOWN_SHARE = 0.01

# The only value if documents are not grouped by a field.
NO_VALUE = ""


def _has_values(read: Mapping[str, Any]) -> bool:
    return read["category_field"] is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiClass(TrainedLinear):
    """One label for each class that at least `min_samples` training topics have."""

    kind: ClassVar[str] = "multiclass"
    features: ClassVar[tuple[str, ...]] = KINDS
    ranking_only: ClassVar[frozenset[str]] = frozenset({"steepness", "category_steepness"})
    listed_first: ClassVar[tuple[str, ...]] = ("cost", "steepness", "category_field")

    cutoff: int | None = whole("cut-off of the expected gain; omitted: none", default=None)
    power: float = number("exponent of a grade in the expected gain", default=1.0)
    category_field: str | None = text(
        "the field of documents that is predicted first; omitted: none", default=None
    )
    category_cost: float = number(
        "cost of the model that predicts the field", when=_has_values, default_of="cost"
    )
    steepness: float = number("steepness of the logistic function from margins to probabilities")
    category_steepness: float = number(
        "steepness for the model that predicts the field", when=_has_values, default_of="steepness"
    )

    def parameters(self) -> dict[str, Any]:
        """Return the record of the signal in a run, with `power` only if it has an effect."""
        # super() fails in a dataclass with slots: the decorator creates a new class.
        described = TrainedLinear.parameters(self)
        return {key: value for key, value in described.items() if key != "power" or value != 1.0}

    def train(
        self, examples: Sequence[Example], documents: Iterable[Document], workers: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        learning.require_learn()
        value_of = _value_function(self.category_field, documents)
        # Topics whose answer is no longer among the documents are not used.
        topics = [example for example in examples if any(grade > 0 for grade in example.gold.values())]
        topics = [example for example in topics if value_of(_best_documents(example.gold)[0]) is not None]
        values = [str(value_of(_best_documents(example.gold)[0])) for example in topics]
        classes = _topic_classes(
            [_best_documents(example.gold) for example in topics], values, self.min_samples
        )
        labels = sorted({name for name in classes if name is not None})
        require_labels(examples, labels, "an answer among the documents")
        distinct_values = sorted(set(values))
        rows_of_value = {
            value: [row for row, other in enumerate(values) if other == value] for value in distinct_values
        }
        rows = {label: [row for row, class_ in enumerate(classes) if class_ == label] for label in labels}
        value_of_label = [distinct_values.index(values[rows[label][0]]) for label in labels]
        vocabulary, vectors = Vocabulary.of([example.topic.text for example in topics], self.without)
        # The labels of the model: first the values, then the classes, each against the others of its value.
        work = list(
            learning.training_jobs(
                {index: rows_of_value[value] for index, value in enumerate(distinct_values)},
                self.category_cost,
            )
        )
        for index, value in enumerate(distinct_values):
            class_rows = {
                len(distinct_values) + column: rows[labels[column]]
                for column, value_index in enumerate(value_of_label)
                if value_index == index
            }
            work += learning.training_jobs(class_rows, self.cost, rows_of_value[value])
        linear = learning.train_linear(
            vocabulary, vectors, [*distinct_values, *labels], work, self.seed, workers
        )
        gains = [self._mean_gains([topics[row].gold for row in rows[label]]) for label in labels]
        documents_with_gain = sorted(set().union(*gains))
        header = linear.header() | {"documents": documents_with_gain, "values": distinct_values}
        return header, linear.arrays() | _gain_arrays(gains, documents_with_gain) | _integer_array(
            "class_value", value_of_label
        )

    def _mean_gains(self, golds: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Return the mean gain of each document: its grade ^ power / the ideal of the topic's grades."""
        totals: defaultdict[str, float] = defaultdict(float)
        for gold in golds:
            gains = {document: grade**self.power for document, grade in gold.items() if grade > 0}
            ideal = _ideal_gain(gains.values(), self.cutoff)
            for document, gain in gains.items():
                totals[document] += gain / ideal
        return {document: total / len(golds) for document, total in totals.items()}

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _ExpectedGains(self, inputs.model(self))


def _best_documents(gold: Mapping[str, float]) -> list[str]:
    best = max(gold.values())
    return sorted(document for document, grade in gold.items() if grade == best)


def _topic_classes(
    answers: Sequence[Sequence[str]], values: Sequence[str], min_samples: int
) -> list[str | None]:
    """Return the class of each topic: all its best documents, or the most common one if too few topics have them all.

    None for a topic with a rare answer, unless all answers of its value are rare.
    """
    sets = Counter(" ".join(answer) for answer in answers)
    singles = Counter(document for answer in answers for document in answer)
    names: list[str] = []
    for answer in answers:
        name = " ".join(answer)
        if sets[name] < min_samples:
            name = max(answer, key=lambda document: (singles[document], document))
        names.append(name)
    count = Counter(names)
    most: dict[str, int] = {}
    for name, value in zip(names, values, strict=True):
        most[value] = max(count[name], most.get(value, 0))
    return [
        name if count[name] >= min(min_samples, most[value]) else None
        for name, value in zip(names, values, strict=True)
    ]


def _value_function(field: str | None, documents: Iterable[Document]) -> Any:
    """Return a function that returns a document's value in a field, None for an unknown document."""
    if field is None:
        return lambda _document: NO_VALUE
    values = {document.id: document.fields.get(field) for document in documents}
    if not any(isinstance(value, str) for value in values.values()):
        raise DataError(f"no document has the field {field}, which groups documents: correct the recipe")
    return lambda document: value if isinstance(value := values.get(document), str) else None


def _ideal_gain(grades: Iterable[float], cutoff: int | None) -> float:
    if cutoff is None:
        return 1.0
    best = sorted(grades, reverse=True)[:cutoff]
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))


def _gain_arrays(gains: Sequence[Mapping[str, float]], documents: Sequence[str]) -> dict[str, Any]:
    columns = {document: column for column, document in enumerate(documents)}
    rows = [sorted((columns[document], gain) for document, gain in of_class.items()) for of_class in gains]
    return {
        "gains": np.array([gain for row in rows for _column, gain in row], dtype=np.float64),
        **_integer_array("gains_at", [column for row in rows for column, _gain in row]),
        **_integer_array("gains_ends", [0, *np.cumsum([len(row) for row in rows]).tolist()]),
    }


def _integer_array(name: str, values: Sequence[int]) -> dict[str, Any]:
    return {name: np.array(values, dtype=np.int32)}


class _ExpectedGains(TrainedScorer):
    def __init__(self, signal: MultiClass, stored: StoredModel) -> None:
        super().__init__(stored)
        self._signal = signal
        header, arrays = stored.header, stored.arrays
        self._documents, self._values = texts(header, "documents"), texts(header, "values")
        classes = len(self._linear.labels) - len(self._values)
        if classes < 1 or not self._values:
            raise invalid_part("labels")
        value_of_class = numbers(arrays, "class_value", classes, below=len(self._values))
        gains = sparse(arrays, "gains", (classes, len(self._documents)))
        self._classes_of_value = [
            (value_of_class == value).nonzero()[0] for value in range(len(self._values))
        ]
        self._gains = [gains[classes_of_value] for classes_of_value in self._classes_of_value]

    def _probabilities(self, margins: Float64Array) -> tuple[Float64Array, list[Float64Array]]:
        """Return the probabilities of values, (topics, values), and of each value's classes, (topics, classes)."""
        count = len(self._values)
        values = softmax(self._signal.category_steepness * margins[:, :count])
        classes = self._signal.steepness * margins[:, count:]
        return values, [softmax(classes[:, columns]) for columns in self._classes_of_value]

    def _scores(self, margins: Float64Array) -> Float64Array:
        values, classes = self._probabilities(margins)
        scores = np.zeros((len(margins), len(self._documents)))
        for value, (of_classes, gains) in enumerate(zip(classes, self._gains, strict=True)):
            expected = (gains.T @ of_classes.T).T
            if self._signal.category_field is not None:
                expected = values[:, [value]] * expected / expected.max(axis=1, keepdims=True)
            scores += expected
        return scores

    def scored(self, margins: Float64Array) -> Iterator[Scores]:
        for scores in self._scores(margins):
            (columns,) = (scores >= MIN_SCORE).nonzero()
            pairs = zip(columns.tolist(), scores[columns].tolist(), strict=True)
            yield {self._documents[column]: score for column, score in pairs}

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        if document_id not in self._documents:
            return None
        document = self._documents.index(document_id)
        margins = self._linear.margins([topic.text])
        score = float(self._scores(margins)[0, document])
        values, classes = self._probabilities(margins)
        by = self._signal.category_field
        parts: list[Explanation] = []
        for value, (of_classes, gains) in enumerate(zip(classes, self._gains, strict=True)):
            document_gains = gains[:, [document]].toarray()[:, 0]
            if not document_gains.any():
                continue
            if by is not None:
                description = f"probability of the {by} {self._values[value]}"
                parts.append(
                    self._label_explanation(topic.text, value, float(values[0, value]), description, margins)
                )
            gain_parts = of_classes[0] * document_gains
            total = float(gain_parts.sum())
            order = sorted(range(len(gain_parts)), key=lambda class_: (-gain_parts[class_], class_))[
                :SHOWN_CLASSES
            ]
            shown_classes = [class_ for class_ in order if gain_parts[class_] >= MIN_SHOWN_SHARE * total]
            details = []
            for class_ in shown_classes:
                label = len(self._values) + int(self._classes_of_value[value][class_])
                description = (
                    f"answer {self._linear.labels[label]}: its probability {of_classes[0, class_]:.4f}"
                )
                description += f" * the gain {document_gains[class_]:.4f}"
                details.append(
                    self._label_explanation(
                        topic.text, label, float(gain_parts[class_]), description, margins
                    )
                )
            maximum = (
                f", of at most {float((gains.T @ of_classes[0]).max()):.4f} with this {by}" if by else ""
            )
            parts.append(Explanation(total, f"expected gain{maximum}", tuple(details)))
        description = (
            f"probability of the {by} times the share of the greatest gain" if by else "expected gain"
        )
        return Explanation(score, f"{description}, by a linear model", tuple(parts))

    def _label_explanation(
        self, text: str, label: int, value: float, description: str, margins: Float64Array
    ) -> Explanation:
        parts, intercept = self._linear.parts(text, label), float(self._linear.intercepts[label])
        description = f"{description}; its margin {margins[0, label]:.4f} is the sum of"
        return Explanation(value, description, feature_details(parts, intercept))


def softmax(values: Float64Array) -> Float64Array:
    """Return the softmax of each row, without overflow."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)
