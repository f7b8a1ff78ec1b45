"""The signal `tfidf`, the official baseline of premise selection: cosine of tf-idf vectors.

Words are runs of two or more word characters in lower case. A word's weight in a text is its count times ln((1 + N) /
(1 + n)) + 1, where n of the N documents have it; vectors have length 1 (the defaults of scikit-learn's
`TfidfVectorizer`, which the official script fits on the documents).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Explanation, Hits, Topic
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
)
from searchapp.ranking.templates import window

# Weights of documents, or their cosines.
Weights = NDArray[np.float64]
_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class TfIdf(Signal):
    """The cosine of each document's vector with the topic's."""

    kind: ClassVar[str] = "tfidf"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.texts})

    window: int = window()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return Vectors(
            inputs.documents(), topics_are_documents=inputs.topics_are_documents, window=self.window
        )


class Vectors(TopicScorer):
    """The vectors of documents as postings; ranks at least `window` documents."""

    def __init__(
        self, documents: Iterable[Document], *, topics_are_documents: bool = False, window: int = 0
    ) -> None:
        self._window = window
        self._topics_are_documents = topics_are_documents
        self._ids: list[str] = []
        numbers_of_word: defaultdict[str, list[int]] = defaultdict(list)
        counts: defaultdict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(documents):
            self._ids.append(document.id)
            for word, count in _words(document.text).items():
                numbers_of_word[word].append(number)
                counts[word].append(count)
        # Document numbers in the bytewise order of ids, the order of equal scores: (documents,).
        by_id = sorted(range(len(self._ids)), key=lambda number: self._ids[number].encode())
        self._order: NDArray[np.intp] = np.array(by_id, np.intp)
        squares = np.zeros(len(self._ids))
        # For each word the numbers of its documents, ascending, and its weight in them: (documents with the word,).
        self._postings: dict[str, tuple[NDArray[np.intp], Weights]] = {}
        self._idf: dict[str, float] = {}
        for word, word_numbers in numbers_of_word.items():
            idf = float(np.log((1 + len(self._ids)) / (1 + len(word_numbers))) + 1)
            document_numbers, weights = np.array(word_numbers, np.intp), np.array(counts[word]) * idf
            squares[document_numbers] += weights**2
            self._idf[word] = idf
            self._postings[word] = document_numbers, weights
        self._lengths: Weights = np.sqrt(squares)  # of each document's vector, (documents,)

    def scores(self, topic: Topic, request: SignalRequest) -> Answer:
        depth = max(self._window, request.depth)
        cosines = self._cosines(topic.text).astype(np.float32)
        best = self._order[np.argsort(-cosines[self._order], kind="stable")][: depth + 1]
        hits = [
            (self._ids[number], float(cosines[number]))
            for number in best
            if not (self._topics_are_documents and self._ids[number] == topic.id)
        ][:depth]
        return Hits([document for document, _ in hits], [score for _, score in hits])

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        if document_id not in self._ids:
            return None
        number = self._ids.index(document_id)
        weights = self._weights(topic.text)
        length = self._lengths[number] * np.sqrt(sum(weight**2 for weight in weights.values()))
        details = []
        for word, weight in weights.items():
            where, weights_of_word = self._postings[word]
            (positions,) = np.nonzero(where == number)
            if len(positions):
                value = float(weight * weights_of_word[positions[0]] / length)
                details.append(Explanation(value, f"{word} in both texts"))
        cosine = float(self._cosines(topic.text).astype(np.float32)[number])
        return Explanation(
            cosine, "cosine of the tf-idf vectors of the topic and the document", tuple(details)
        )

    def _weights(self, text: str) -> dict[str, float]:
        return {word: count * self._idf[word] for word, count in _words(text).items() if word in self._idf}

    def _cosines(self, text: str) -> Weights:
        """Return the cosine of a text with each document, from 0 to 1, (documents,)."""
        dots = np.zeros(len(self._ids))
        square = 0.0
        for word, weight in self._weights(text).items():
            square += weight**2
            where, weights = self._postings[word]
            dots[where] += weight * weights
        cosines: Weights = np.zeros_like(dots)
        np.divide(dots, self._lengths * np.sqrt(square), out=cosines, where=dots > 0)
        return cosines


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))
