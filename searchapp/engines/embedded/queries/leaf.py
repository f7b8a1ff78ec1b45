"""What the engine asks of a leaf, a query without others inside.

All that belongs to one leaf query stands in one module of `leaves`: how it is read from a search body, which documents
match it, how it is scored, noted, explained and highlighted.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded.explanations import constant
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader, Mask
from searchapp.model import Token

Places = Sequence[tuple[int, int]]
"""First and last positions of the parts of a text."""

EVERYWHERE: Places = ((0, sys.maxsize),)


class Leaf:
    """A query without others inside, which gives the same score to each document it matches; a `ScoredLeaf` does not.

    Equal leaves are equal values. The class is abstract by its methods and not by its metaclass, which would make each
    `isinstance` of a clause slower, and a topic has hundreds of clauses.
    """

    __slots__ = ()

    matches_nothing: ClassVar[bool] = False
    """Whether no document matches, whatever the index holds."""

    has_few_documents: ClassVar[bool] = False
    """Whether it is cheaper, as a rule, to go through the leaf's documents than through all of the index."""

    @property
    def clause_count(self) -> int:
        """How many clauses Elasticsearch counts the leaf as."""
        return 1

    @property
    def is_multi_term(self) -> bool:
        """Whether Lucene first has to look for the terms that the leaf stands for (`MultiTermQuery`)."""
        return False

    # Simplifying

    def settled(self, reader: IndexReader) -> Leaf:  # noqa: ARG002
        """The leaf that Lucene makes of this one once the index is known: see `settle`."""
        return self

    def rewritten(self) -> Leaf:
        """The leaf that Lucene scores in the place of this one: see `rewrite`."""
        return self

    # Matching

    @abstractmethod
    def documents(self, reader: IndexReader) -> NDArray[Any]:
        """The documents that match, in any order; a document may come several times."""

    def mask(self, reader: IndexReader) -> Mask:
        """The documents that match, as one truth value for each document of the index."""
        mask = np.zeros(reader.count, bool)
        mask[self.documents(reader)] = True
        return mask

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:  # noqa: ARG002
        """Whether Lucene finds something to look at for the query: the terms of a phrase are there, say.

        Where scores don't count, which `scores` says, Lucene puts off looking for a term, if it is not `known` that
        the term is absent.
        """
        return any(len(self.documents(part)) > 0 for part in reader.parts)

    # Showing

    @abstractmethod
    def described(self, schema: Schema) -> str:
        """The leaf in Lucene's notation (`Query.toString`).

        Raises:
            EngineRefused: the notation is not known here.
        """

    def described_as_filter(self, schema: Schema) -> str:
        """What explanations show of a leaf that only filters."""
        return self.described(schema)

    def described_as_constant(self, schema: Schema) -> str:
        """What explanations show of a leaf that gives each document the same score."""
        return self.described(schema)

    def explanation(self, reader: IndexReader, document: int, boost: np.float32) -> Explanation | None:
        """How the leaf comes to the score of a document; None when the document does not match.

        Raises:
            EngineRefused: the explanation is not known here.
        """
        if not self.mask(reader)[document]:
            return None
        return constant(boost, self.described_as_constant(reader.schema))


@dataclass(frozen=True, slots=True)
class MarkedLeaf(Leaf):
    """A leaf on the terms of a field, which highlighting marks in the field's text."""

    field: str

    @abstractmethod
    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:
        """The terms to mark among the tokens of a text, and in which places: `EVERYWHERE`, or where a phrase stands.

        Terms that the text does not have make no difference.
        """
