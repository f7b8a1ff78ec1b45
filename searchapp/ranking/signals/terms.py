"""Documents and solved topics as vectors of terms, in which several signals compute without an engine.

The terms are those of the analyzer of the documents' field `text` in the index, each counted once in a text. A term's
weight is its inverse document frequency over documents and solved topics together,

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N texts have the term

as in BM25 (Robertson and Zaragoza, "The probabilistic relevance framework", 2009). A topic's vector has, for each term,
the sum of the weights of its fields that have the term, times the idf, and length 1; an unknown term counts in the
length. Everything is computed in double in one order, so that it is the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.lucene.analysis.registry import DEFAULT, AnalysisRegistry
from searchapp.lucene.errors import BadSettings, NotSupported
from searchapp.model import Document, Example, Explanation, Topic

Floats = NDArray[np.float64]
"""Weights of terms (terms,), or scores of texts (texts,): float64, without unit."""
Terms = Callable[[str], Iterable[str]]
"""Returns the terms of a text, with repetitions."""


def terms_of(mapping: Mapping[str, Any]) -> Terms:
    """Return the function of the analyzer of a mapping's field `text`.

    Raises:
        DataError: only Elasticsearch knows the analyzer.
    """
    field = mapping.get("mappings", {}).get("properties", {}).get("text", {})
    try:
        registry = AnalysisRegistry(mapping.get("settings", {}).get("analysis", {}))
        analyzer = registry.analyzer(field.get("analyzer", DEFAULT))
    except (NotSupported, BadSettings) as error:
        raise DataError(
            f"the terms of documents can't be had without Elasticsearch, whose analyzer has {error}: choose a recipe "
            "without signals of terms"
        ) from error
    return lambda text: (term for term, _position in analyzer.terms(text))


class TermSpace:
    """The vectors of documents and solved topics.

    `documents` are the documents' ids in their bytewise order, in which equal scores are ordered, `solved` the ids
    of the solved topics in the same order, `gold` the graded answers of each.

    Raises:
        DataError: two documents, or two solved topics, have the same id.
    """

    def __init__(self, documents: Sequence[Document], solved: Sequence[Example], terms: Terms) -> None:
        self._terms = terms
        self._made_of = documents, solved
        self._numbers: dict[str, int] = {}
        by_id = {document.id: document for document in documents}
        texts = {id_: document.text for id_, document in by_id.items()}
        examples = {example.topic.id: example for example in solved}
        self.documents = tuple(sorted(texts, key=str.encode))
        self.solved = tuple(sorted(examples, key=str.encode))
        self.fields: Mapping[str, Mapping[str, Any]] = {id_: by_id[id_].fields for id_ in self.documents}
        self.gold: Mapping[str, Mapping[str, float]] = {id_: examples[id_].gold for id_ in self.solved}
        self.topics: Mapping[str, Topic] = {id_: examples[id_].topic for id_ in self.solved}
        rows = [self._row(texts[id_]) for id_ in self.documents]
        topic_rows = [self._row(self.topics[id_].text) for id_ in self.solved]
        self.names = tuple(self._numbers)
        """The terms, by their numbers."""
        counts = np.zeros(len(self.names))
        for row in (*rows, *topic_rows):
            counts[row] += 1
        count = len(rows) + len(topic_rows)
        self.idf: Floats = np.log(1 + (count - counts + 0.5) / (counts + 0.5))
        self._unseen = float(np.log(1 + (count + 0.5) / 0.5))
        self.matrix = self._matrix(rows)
        """(documents, terms): the idf of the terms that a document has, as a sparse matrix in rows."""
        self.lengths: Floats = np.sqrt(np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel())
        """(documents,): the Euclidean lengths of the rows; 1 of a document without terms."""
        self.lengths[self.lengths == 0] = 1.0

    def require_solved(self, signal: str) -> TermSpace:
        """Return the space itself, for a signal that needs solved topics.

        Raises:
            DataError: there is no solved topic.
        """
        if not self.solved:
            raise DataError(
                f"the signal {signal} needs solved topics, and this task has none: choose another recipe"
            )
        return self

    def without(self, withheld: Collection[str]) -> TermSpace:
        """Return the space without some solved topics."""
        documents, solved = self._made_of
        return TermSpace(
            documents, [example for example in solved if example.topic.id not in withheld], self._terms
        )

    def _row(self, text: str) -> list[int]:
        numbers = self._numbers
        return sorted({numbers.setdefault(term, len(numbers)) for term in self._terms(text)})

    def _matrix(self, rows: Sequence[Sequence[int]]) -> Any:
        from scipy.sparse import csr_matrix

        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        places = np.array([place for row in rows for place in row], dtype=np.int64)
        return csr_matrix((self.idf[places], places, starts), shape=(len(rows), len(self.names)))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The row of each document."""
        return {id_: place for place, id_ in enumerate(self.documents)}

    @cached_property
    def unit(self) -> Any:
        """(documents, terms): the matrix with rows of length 1."""
        from scipy.sparse import diags

        return (diags(1.0 / self.lengths) @ self.matrix).tocsr()

    def asked(self, topic: Topic, boosts: Mapping[str, float]) -> Floats:
        """Return the vector of a topic: (terms,). Its text weighs 1; `boosts` are the weights of further fields of it.

        All 0 where it has only unknown terms.
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

    def asked_by_solved(self, boosts: Mapping[str, float]) -> Any:
        """Return the vectors of the solved topics as a sparse matrix in rows: (solved, terms)."""
        from scipy.sparse import csr_matrix, vstack

        return vstack([csr_matrix(self.asked(self.topics[id_], boosts)) for id_ in self.solved]).tocsr()

    def positive(self, ids: Sequence[str], scores: Floats) -> dict[str, float]:
        """Return the scores above 0 by their ids, in the order of the ids."""
        (places,) = np.nonzero(scores > 0)
        return {ids[place]: float(scores[place]) for place in places.tolist()}

    def common(self, vector: Floats, row: Any, scale: float = 1.0) -> tuple[Explanation, ...]:
        """Explain the product of a vector and a row of a matrix by terms, the greatest first."""
        parts = [
            (float(scale * vector[place] * weight), self.names[place])
            for place, weight in zip(row.indices, row.data, strict=True)
            if vector[place] > 0
        ]
        return tuple(Explanation(value, f"{term} in both") for value, term in sorted(parts, reverse=True))
