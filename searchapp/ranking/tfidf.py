"""The baseline of the premise selection task's organisers: cosine of tf-idf vectors.

It needs no index and no analyzer of the task's: words are runs of two and more word characters in lower case.
A word's weight in a text is its count times ln((1 + N) / (1 + n)) + 1, where n of the N documents have it, and
every vector has length 1 (the defaults of scikit-learn's `TfidfVectorizer`, which the organisers' script uses
with the documents as corpus).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Advance, no_progress
from searchapp.model import Document, Hits, Topic

_WORD = re.compile(r"\b\w\w+\b")

Weights = NDArray[np.float64]


class TfIdf:
    """The vectors of documents, as postings: for each word the documents that have it and its weight in them."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._ids: list[str] = []
        places: defaultdict[str, list[int]] = defaultdict(list)
        counts: defaultdict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(documents):
            self._ids.append(document.id)
            for word, count in _words(document.text).items():
                places[word].append(number)
                counts[word].append(count)
        # In the bytewise order of ids, in which equal scores are ordered.
        self._order = np.array(sorted(range(len(self._ids)), key=lambda number: self._ids[number].encode()))
        squares = np.zeros(len(self._ids))
        self._postings: dict[str, tuple[NDArray[np.intp], Weights]] = {}
        self._idf: dict[str, float] = {}
        for word, numbers in places.items():
            idf = float(np.log((1 + len(self._ids)) / (1 + len(numbers))) + 1)
            where, weights = np.array(numbers, np.intp), np.array(counts[word]) * idf
            squares[where] += weights**2
            self._idf[word] = idf
            self._postings[word] = where, weights
        self._lengths = np.sqrt(squares)

    def rank(
        self,
        topics: Sequence[Topic],
        depth: int,
        advance: Advance = no_progress,
        *,
        topics_are_documents: bool,
    ) -> Iterator[Hits]:
        """The `depth` documents nearest to each topic, those without a common word last.

        With `topics_are_documents` a topic is not retrieved for itself.
        """
        for topic in topics:
            cosines = self._cosines(topic.text).astype(np.float32)
            best = self._order[np.argsort(-cosines[self._order], kind="stable")][: depth + 1]
            hits = [
                (self._ids[number], float(cosines[number]))
                for number in best
                if not (topics_are_documents and self._ids[number] == topic.id)
            ][:depth]
            yield Hits([document for document, _ in hits], [score for _, score in hits])
            advance(1)

    def _cosines(self, text: str) -> Weights:
        dots = np.zeros(len(self._ids))
        square = 0.0
        for word, count in _words(text).items():
            if word not in self._idf:
                continue  # no document has it: the vectors have no place for it
            weight = count * self._idf[word]
            square += weight**2
            where, weights = self._postings[word]
            dots[where] += weight * weights
        cosines: Weights = np.zeros_like(dots)
        np.divide(dots, self._lengths * np.sqrt(square), out=cosines, where=dots > 0)
        return cosines


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))
