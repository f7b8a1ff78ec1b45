"""The tokens of a field in some documents, as arrays.

Texts are analyzed in other processes, which send what they make of a batch of documents. Each term goes once a batch,
not once a token: so there is little to send, and little left to do for the one process that collects it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]

DocumentTokens = tuple[int, Sequence[str], Sequence[int]]
"""The number of a document in its batch, the terms that stand in a field, and their positions."""


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """Tokens in the order in which the analyzer gives them, document after document.

    `terms` are numbers of the vocabulary, a token each, like `positions`; `documents` are numbers in the batch, in
    ascending order, and `counts` says how many tokens each of them has.
    """

    vocabulary: list[str]
    terms: Int32s
    positions: Int32s
    documents: Int32s
    counts: Int32s

    @classmethod
    def of(cls, documents: Iterable[DocumentTokens]) -> PackedTokens:
        """Pack the tokens of documents."""
        numbers: list[int] = []
        counts: list[int] = []
        terms: list[str] = []
        positions: list[int] = []
        for number, some, places in documents:
            numbers.append(number)
            counts.append(len(some))
            terms += some
            positions += places
        of_term: defaultdict[str, int] = defaultdict()
        of_term.default_factory = of_term.__len__  # a new term takes the next number
        packed = np.fromiter(map(of_term.__getitem__, terms), np.int32, len(terms))
        # It refers to the terms, which would wait for the garbage collector.
        of_term.default_factory = None
        return cls(
            list(of_term),
            packed,
            np.fromiter(positions, np.int32, len(positions)),
            np.array(numbers, np.int32),
            np.array(counts, np.int32),
        )

    @classmethod
    def one_each(cls, terms: list[str]) -> PackedTokens:
        """The tokens of documents which have one term each."""
        numbers = np.arange(len(terms), dtype=np.int32)
        return cls(terms, numbers, np.zeros_like(numbers), numbers, np.ones_like(numbers))

    def cut(self, documents: int) -> tuple[PackedTokens, PackedTokens]:
        """The tokens of the first documents, and those of the others."""
        tokens = int(self.counts[:documents].sum())
        first = PackedTokens(
            self.vocabulary,
            self.terms[:tokens],
            self.positions[:tokens],
            self.documents[:documents],
            self.counts[:documents],
        )
        rest = PackedTokens(
            self.vocabulary,
            self.terms[tokens:],
            self.positions[tokens:],
            self.documents[documents:],
            self.counts[documents:],
        )
        return first, rest
