"""The query `fuzzy`, and terms of other queries with `fuzziness`: indexed terms within two edits of a term.

    org.apache.lucene.search.{FuzzyQuery, FuzzyTermsEnum, TopTermsRewrite, BlendedTermQuery}

An edit inserts, deletes or replaces a character, or swaps two adjacent ones; a character that was swapped is not
edited again (optimal string alignment). The terms are weighted by 1 - edits / length of the shorter term. The best
ones, equal weights in the order of terms, are scored with the greatest of their document frequencies.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.arrays import Int64s
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.queries.boolean import Bool
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import (
    MOST_CLAUSES,
    Boost,
    Leaf,
    Parser,
    Query,
    apply_boost_parameter,
)
from searchapp.lucene.queries.term import (
    MultiTerm,
    Term,
    indexed_term,
    require_no_key,
    require_terms,
    value_of,
)

MOST_EDITS = 2
MOST_EXPANSIONS = 50  # by default
# In characters. Lucene rejects longer terms, if their automata have too many states.
LONGEST_TERM = 50


@dataclass(frozen=True, slots=True)
class Fuzzy(MultiTerm):
    """Documents with a term that resembles another one; `resolved` replaces it by the indexed terms."""

    term: str
    edits: int
    prefix: int  # characters at the beginning that must be equal
    expansions: int
    swaps: bool  # whether a swap of two characters is one edit
    blends: bool  # whether all terms are scored with the same document frequency

    def resolved(self, reader: IndexReader) -> Query:
        segments = [part.fields[self.field] for part in (reader, *reader.others)]
        edits: dict[str, int] = {}
        for field in segments:
            edits |= self._similar(field.terms)
        weights = {term: self._weight(term, count) for term, count in edits.items()}
        # Terms of deleted documents only have the document frequency 0.
        indexed = (term for term in _best_first(weights) if segments[0].document_frequency(term))
        terms = sorted(islice(indexed, self.expansions))
        frequencies = {term: segments[0].document_frequency(term) for term in terms}
        greatest = max(frequencies.values(), default=0)
        clauses: list[Query] = []
        for term in terms:
            is_own = not self.blends or frequencies[term] == greatest
            query = Term(self.field, term, None if is_own else greatest)
            weight = max(0.0, weights[term])
            clauses.append(query if weight == 1 else Boost(query, weight))
        return _Expanded(Bool(should=tuple(clauses)), 1.0, self)

    def _weight(self, term: str, edits: int) -> float:
        return weight(self.term, term, edits)

    def ranks(self, terms: Terms) -> Iterable[int]:
        return sorted(rank for rank in map(terms.rank, self._similar(terms)) if rank is not None)

    def _similar(self, terms: Terms) -> dict[str, int]:
        return similar_terms(terms, self.term, self._most, self.prefix, swaps=self.swaps)

    @property
    def _most(self) -> int:
        return self.edits if self.term else 0  # each edit of an empty term would have an infinite weight

    def accepts(self, term: str) -> bool:
        prefix = self.term[: self.prefix]
        rest = term.removeprefix(prefix)
        if not term.startswith(prefix):
            return False
        for _rest, edits in _within(self.term[self.prefix :], [rest], self._most, swaps=self.swaps):
            if self._weight(term, edits) <= 0:
                raise unsupported(
                    f"highlights of a fuzzy query for {self.term!r} that matches a term by changing all of it,"
                )
            return True
        return False

    def weight_of(self, term: str, boost: float) -> float:
        """Return the weight of a term that the query accepts."""
        ((_term, edits),) = _within(
            self.term[self.prefix :], [term[self.prefix :]], self._most, swaps=self.swaps
        )
        return parameters.to_float32(boost * self._weight(term, edits))

    def expanded_among(self, terms: Iterable[str]) -> Query:
        """Return the terms that this query stands for in an index of terms, without weights."""
        weights = {}
        prefix = self.term[: self.prefix]
        rest = [term.removeprefix(prefix) for term in terms if term.startswith(prefix)]
        for end, edits in _within(self.term[self.prefix :], rest, self._most, swaps=self.swaps):
            weights[prefix + end] = self._weight(prefix + end, edits)
        best = sorted(islice(_best_first(weights), self.expansions))
        return Bool(should=tuple(Term(self.field, term) for term in best))

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:{self.term}~{self.edits}"


def _best_first(weights: Mapping[str, float]) -> Iterator[str]:
    return iter(sorted(weights, key=lambda term: (-weights[term], term)))


def expanded_fuzzy(query: Query, field: str, terms: Iterable[str]) -> Query | None:
    """Return the terms that a fuzzy query on a field stands for in an index of terms; None for another query."""
    is_fuzzy = isinstance(query, _Expanded) and query.fuzzy.field == field
    return query.fuzzy.expanded_among(terms) if is_fuzzy and isinstance(query, _Expanded) else None


@dataclass(frozen=True, slots=True)
class _Expanded(Boost):
    """The similar terms of an index; highlighting marks all that the fuzzy query accepts."""

    fuzzy: Fuzzy

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return _Expanded(children[0], self.boost, self.fuzzy)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        yield self.fuzzy, boost


def similar_terms(
    terms: Terms, term: str, most: int, prefix: int = 0, *, swaps: bool = True
) -> dict[str, int]:
    """Return the indexed terms within `most` edits of a term, with their edits.

    Args:
        prefix: number of characters at the beginning that must be equal.
        swaps: whether a swap of two adjacent characters is one edit.
    """
    if not most:
        return {} if terms.rank(term) is None else {term: 0}
    beginning, end = term[:prefix], term[prefix:]
    ranks = terms.with_prefix(beginning)
    lengths, sets = (values[ranks.start : ranks.stop] for values in terms.shapes)
    own_set = np.uint32(sum({1 << (ord(character) & 31) for character in term}))
    near = np.flatnonzero(np.abs(lengths - len(term)) <= most)
    # An edit changes at most two elements of the set.
    near = near[_bit_counts(sets[near] ^ own_set) <= 2 * most]
    ends = (terms[ranks.start + index].decode()[len(beginning) :] for index in near.tolist())
    return {beginning + other: edits for other, edits in _within(end, ends, most, swaps=swaps)}


def weight(term: str, other: str, edits: int) -> float:
    """Return the weight of a term that resembles another one, as float32."""
    if not edits:
        return 1.0
    shorter = min(len(term), len(other))
    return parameters.to_float32(1 - parameters.to_float32(edits / shorter)) if shorter else -math.inf


def _bit_counts(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    pairs = numbers - ((numbers >> 1) & 0x55555555)
    fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
    return np.asarray((((fours + (fours >> 4)) & 0x0F0F0F0F) * np.uint32(0x01010101)) >> 24, np.uint32)


def _within(term: str, others: Iterable[str], most: int, *, swaps: bool) -> Iterator[tuple[str, int]]:
    """Yield the terms within `most` edits of a term, with their edits."""
    by_length: defaultdict[int, list[str]] = defaultdict(list)
    for other in others:
        by_length[len(other)].append(other)
    wanted = _code_points(term)
    for length, same_length in by_length.items():
        if abs(length - len(term)) <= most:
            points = _code_points("".join(same_length)).reshape(len(same_length), length)
            counts = _edits(points, wanted, most, swaps=swaps).tolist()
            yield from (pair for pair in zip(same_length, counts, strict=True) if pair[1] <= most)


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def _edits(others: NDArray[np.uint32], term: NDArray[np.uint32], most: int, *, swaps: bool) -> Int64s:
    """Return the edits between a term and each row of `others`, or any greater number than `most`."""
    count, length = others.shape
    beyond = np.full(count, most + 1, np.int8)
    columns = others.T
    before: dict[int, NDArray[np.int8]] = {}
    last = {j: np.full(count, j, np.int8) for j in range(min(length, most) + 1)}
    for i, character in enumerate(term.tolist(), start=1):
        row: dict[int, NDArray[np.int8]] = {}
        # Farther from the diagonal, there are more than `most` insertions or deletions.
        for j in range(max(0, i - most), min(length, i + most) + 1):
            if j == 0:
                row[j] = np.full(count, i, np.int8)
                continue
            edits = last.get(j - 1, beyond) + (columns[j - 1] != character)
            edits = np.minimum(edits, np.minimum(last.get(j, beyond), row.get(j - 1, beyond)) + 1)
            if swaps and i > 1 and j > 1:
                is_swap = (columns[j - 2] == character) & (columns[j - 1] == term[i - 2])
                edits = np.where(is_swap, np.minimum(edits, before.get(j - 2, beyond) + 1), edits)
            row[j] = edits.astype(np.int8)
        before, last = last, row
    return last.get(length, beyond).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Fuzziness:
    """The parameters of the fuzzy terms of a query."""

    NAMES = ("fuzziness", "prefix_length", "max_expansions", "fuzzy_transpositions", "fuzzy_rewrite")

    one_from: float  # characters of the shortest term that may differ in one edit
    two_from: float
    prefix: int
    expansions: int
    swaps: bool
    blends: bool

    @classmethod
    def read(cls, options: Mapping[str, Any], default: str | None = None) -> Fuzziness | None:
        """Read the parameters `NAMES`; return None without `fuzziness` and default, after checking the others."""
        prefix = parameters.integer(options.get("prefix_length", 0), "`prefix_length`")
        if prefix < 0:
            raise invalid(f"`prefix_length` must not be negative, but is {prefix}")
        expansions = parameters.integer(options.get("max_expansions", MOST_EXPANSIONS), "`max_expansions`")
        if expansions < 1:
            raise invalid(f"`max_expansions` must be positive, but is {expansions}")
        swaps = parameters.flag(options.get("fuzzy_transpositions", True), "`fuzzy_transpositions`")
        blends = True
        if "fuzzy_rewrite" in options:
            expansions, blends = _read_rewrite(options["fuzzy_rewrite"])
        value = options.get("fuzziness", default)
        if value is None:
            return None
        return cls(*_read_edits(value), prefix, min(expansions, MOST_CLAUSES), swaps, blends)

    def edits(self, text: str) -> int:
        """Return the number of edits by which a term may differ from a text."""
        return (len(text) >= self.one_from) + (len(text) >= self.two_from)

    def query(self, field: Field, value: Any, edits: int | None = None) -> Query:
        """Return the query for documents with a term that resembles a value; `edits` replaces the number for it."""
        require_terms(field, "fuzzy")
        require_no_key(field, "fuzzy")
        term = indexed_term(field, value)
        edits = self.edits(parameters.term(value, f"the term for {field.name}")) if edits is None else edits
        if edits and len(term) > LONGEST_TERM:
            raise unsupported(f"a fuzzy query for a term of more than {LONGEST_TERM} characters")
        return Fuzzy(field.name, term, edits, self.prefix, self.expansions, self.swaps, self.blends)


def _read_rewrite(value: Any) -> tuple[int, bool]:
    """Return the number of terms, and whether they are scored with the same document frequency."""
    text = parameters.raw_text(value, "the rewrite of a fuzzy query")
    match = re.fullmatch("top_terms_(blended_freqs_)?([0-9]{1,9})", text)
    if match is None or not int(match[2]):
        raise unsupported(
            f"the rewrite `{text}` of a fuzzy query, only `top_terms_N` and `top_terms_blended_freqs_N`"
        )
    return int(match[2]), match[1] is not None


def _read_edits(value: Any) -> tuple[float, float]:
    """Return the lengths from which a term may differ in one edit and in two edits."""
    text = parameters.raw_text(value, "`fuzziness`").upper()
    edits: float
    if text == "AUTO":
        return 3, 6
    if match := re.fullmatch("AUTO:([0-9]{1,9}),([0-9]{1,9})", text):
        one, two = int(match[1]), int(match[2])
        if one <= two:
            return one, two
    try:
        edits = (
            parameters.float32_of_text(text) if isinstance(value, str) else parameters.integer(value, "it")
        )
    except ValueError:
        edits = math.inf
    if edits not in range(MOST_EDITS + 1):
        raise invalid(f"`fuzziness` must be AUTO, AUTO:low,high, 0, 1 or 2, not {value!r}")
    return (math.inf, math.inf) if not edits else (0, math.inf if edits == 1 else 0)


def read_fuzzy(parser: Parser, content: Any) -> Query:
    """Read `fuzzy`: terms that resemble a term."""
    own = {"transpositions": "fuzzy_transpositions", "rewrite": "fuzzy_rewrite"}
    known = ("term", "fuzziness", "prefix_length", "max_expansions", *own)
    name, options = parser.on_field(content, "fuzzy", "value", known)
    parameters.without_null(options, known, "the query `fuzzy`")
    value = value_of(options, "term")[1]
    parameters.term(value, f"the term for {name}")
    fuzziness = Fuzziness.read({own.get(key, key): item for key, item in options.items()}, "AUTO")
    field = parser.field(name)
    if field is None or fuzziness is None:
        return MatchNone()
    return apply_boost_parameter(fuzziness.query(field, value), options, "fuzzy")
