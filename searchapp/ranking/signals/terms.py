"""Documents and training topics as vectors of terms, for signals that compute without an engine.

The terms are those of the index analyzer of the documents' field `text`, each counted once in a text. A term's weight
is its inverse document frequency over documents and training topics together,

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N texts have the term

as in BM25 (Robertson and Zaragoza, "The probabilistic relevance framework", 2009). A topic's vector has, for each
term, the weights of the topic's fields with the term, times the idf, normalized to length 1; unknown terms count in
the length. All sums are in double precision and in a fixed order, so that every process gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.lucene.analysis.registry import DEFAULT
from searchapp.lucene.errors import BadSettings, NotSupported
from searchapp.lucene.index.mapping import analyzers_of
from searchapp.model import Document, Example, Explanation, Topic

# Weights of terms (terms,), or scores of texts (texts,).
Floats = NDArray[np.float64]
# Returns the terms of a text, with repetitions.
Terms = Callable[[str], Iterable[str]]


def terms_of(mapping: Mapping[str, Any]) -> Terms:
    """Return a function for the index analyzer of a mapping's field `text`.

    Raises:
        DataError: only Elasticsearch supports the analyzer.
    """
    field = mapping.get("mappings", {}).get("properties", {}).get("text", {})
    try:
        analyzer = analyzers_of(mapping).analyzer(field.get("analyzer", DEFAULT))
    except (NotSupported, BadSettings) as error:
        raise DataError(
            f"terms of documents can't be computed without Elasticsearch: {error}; choose a recipe "
            "without term signals"
        ) from error
    return lambda text: (term for term, _position in analyzer.terms(text))


class TermSpace:
    """The vectors of documents and training topics.

    Raises:
        DataError: two documents, or two training topics, have the same id.
    """

    def __init__(self, documents: Sequence[Document], training: Sequence[Example], terms: Terms) -> None:
        self._terms = terms
        self._sources = documents, training
        self._numbers: dict[str, int] = {}
        by_id = {document.id: document for document in documents}
        texts = {id_: document.text for id_, document in by_id.items()}
        examples = {example.topic.id: example for example in training}
        # Bytewise order of ids, the order of equal scores.
        self.documents = tuple(sorted(texts, key=str.encode))
        self.training_ids = tuple(sorted(examples, key=str.encode))
        self.fields: Mapping[str, Mapping[str, Any]] = {id_: by_id[id_].fields for id_ in self.documents}
        self.gold: Mapping[str, Mapping[str, float]] = {id_: examples[id_].gold for id_ in self.training_ids}
        self.topics: Mapping[str, Topic] = {id_: examples[id_].topic for id_ in self.training_ids}
        rows = [self._row(texts[id_]) for id_ in self.documents]
        topic_rows = [self._row(self.topics[id_].text) for id_ in self.training_ids]
        self.names = tuple(self._numbers)  # terms
        counts = np.zeros(len(self.names))
        for row in (*rows, *topic_rows):
            counts[row] += 1
        count = len(rows) + len(topic_rows)
        self.idf: Floats = np.log(1 + (count - counts + 0.5) / (counts + 0.5))
        self._unseen = float(np.log(1 + (count + 0.5) / 0.5))
        # The idf of each document's terms: a sparse matrix by rows, (documents, terms).
        self.matrix = self._matrix(rows)
        # The Euclidean lengths of the rows, (documents,); 1 for a document without terms.
        self.lengths: Floats = np.sqrt(np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel())
        self.lengths[self.lengths == 0] = 1.0

    def require_training_topics(self, signal: str) -> TermSpace:
        """Return the space itself.

        Raises:
            DataError: it has no training topic.
        """
        if not self.training_ids:
            raise DataError(
                f"the signal {signal} needs training topics, and this task has none: choose another recipe"
            )
        return self

    def without(self, withheld: Collection[str]) -> TermSpace:
        documents, training = self._sources
        return TermSpace(
            documents, [example for example in training if example.topic.id not in withheld], self._terms
        )

    def _row(self, text: str) -> list[int]:
        numbers = self._numbers
        return sorted({numbers.setdefault(term, len(numbers)) for term in self._terms(text)})

    def _matrix(self, rows: Sequence[Sequence[int]]) -> Any:
        from scipy.sparse import csr_matrix

        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        columns = np.array([column for row in rows for column in row], dtype=np.int64)
        return csr_matrix((self.idf[columns], columns, starts), shape=(len(rows), len(self.names)))

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {id_: row for row, id_ in enumerate(self.documents)}

    @cached_property
    def unit(self) -> Any:
        """The matrix with rows of length 1, (documents, terms)."""
        from scipy.sparse import diags

        return (diags(1.0 / self.lengths) @ self.matrix).tocsr()

    def topic_vector(self, topic: Topic, boosts: Mapping[str, float]) -> Floats:
        """Return the vector of a topic, (terms,); its text weighs 1, other fields their `boosts`.

        All 0 if the topic has only unknown terms.
        """
        weights = np.zeros(len(self.names))
        unseen: dict[str, float] = {}
        for text, weight in ((topic.text, 1.0), *((topic.fields.get(name), boosts[name]) for name in boosts)):
            for term in dict.fromkeys(self._terms(text) if isinstance(text, str) else ()):
                number = self._numbers.get(term)
                if number is None:
                    unseen[term] = unseen.get(term, 0.0) + weight
                else:
                    weights[number] += weight
        weights *= self.idf
        beyond = sum((weight * self._unseen) ** 2 for weight in unseen.values())
        length = float(np.sqrt(weights @ weights + beyond))
        return weights / length if length else weights

    def training_vectors(self, boosts: Mapping[str, float]) -> Any:
        """Return the vectors of the training topics: a sparse matrix by rows, (training topics, terms)."""
        from scipy.sparse import csr_matrix, vstack

        return vstack(
            [csr_matrix(self.topic_vector(self.topics[id_], boosts)) for id_ in self.training_ids]
        ).tocsr()

    def positive_scores(self, ids: Sequence[str], scores: Floats) -> dict[str, float]:
        (rows,) = np.nonzero(scores > 0)
        return {ids[row]: float(scores[row]) for row in rows.tolist()}

    def shared_terms(self, vector: Floats, row: Any, scale: float = 1.0) -> tuple[Explanation, ...]:
        """Explain the product of a vector and a row of a matrix by terms, the greatest first."""
        parts = [
            (float(scale * vector[column] * weight), self.names[column])
            for column, weight in zip(row.indices, row.data, strict=True)
            if vector[column] > 0
        ]
        return tuple(Explanation(value, f"{term} in both") for value, term in sorted(parts, reverse=True))
