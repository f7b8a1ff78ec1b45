"""Queries on IP addresses: a range, a network, a set of addresses.

org.elasticsearch.index.mapper.IpFieldMapper
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid
from searchapp.lucene.index import addresses
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries.match_all import Exists, MatchAll, MatchNone
from searchapp.lucene.queries.query import Leaf, Query

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IpRange(Leaf):
    """Documents with an address from `low` to `high`, inclusive, with the score 1."""

    field: str
    low: int
    high: int
    covers_field: bool = False  # whether the range includes all addresses of the field

    def resolved(self, reader: IndexReader) -> Leaf:
        """Follow `PointRangeQuery.rewrite`."""
        extremes = reader.fields[self.field].extreme_terms
        if extremes is None:
            return MatchNone()
        first, last = (int(term, 16) for term in extremes)
        if self.low > self.high or self.low > last or self.high < first:
            return MatchNone()
        covers_field = self.low <= first and last <= self.high
        if covers_field and reader.in_all(self.field):
            return MatchAll()
        return replace(self, covers_field=covers_field)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        field = reader.fields[self.field]
        first = field.terms.insertion(addresses.term_of(self.low), is_after=False)
        return field.documents_with(
            range(first, field.terms.insertion(addresses.term_of(self.high), is_after=True))
        )

    def notation(self, schema: Schema) -> str:
        by_values = self.constant_notation(schema)
        if not schema.fields[self.field].has_doc_values:
            return by_values
        by_index = Exists(self.field).notation(schema) if self.covers_field else self._by_index()
        return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={by_values})"

    def constant_notation(self, schema: Schema) -> str:
        if not schema.fields[self.field].has_doc_values:
            return self._by_index()
        low, high = (
            " ".join(f"{byte:x}" for byte in end.to_bytes(addresses.BITS // 8))
            for end in (self.low, self.high)
        )
        return f"{self.field}:[[{low}] TO [{high}]]"

    def _by_index(self) -> str:
        low, high = map(addresses.printed_address, (self.low, self.high))
        return f"{self.field}:[{low} TO {high}]"


@dataclass(frozen=True, slots=True)
class IpInSet(Leaf):
    """Documents with one of the addresses, which ascend, with the score 1."""

    field: str
    numbers: tuple[int, ...]

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_with_terms(map(addresses.term_of, self.numbers))

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:{{{' '.join(map(addresses.printed_address, self.numbers))}}}"


def _read(value: Any, field: Field, read: Callable[[str], T]) -> T:
    label = f"the address for {field.name}"
    try:
        return read(parameters.text(value, label))
    except ValueError as error:
        raise invalid(f"{label}: {error}") from error


def is_network(value: Any) -> bool:
    """Return whether a value is in CIDR notation."""
    return isinstance(value, str) and "/" in value


def of_address(field: Field, value: Any) -> Query:
    """Return the query for an address or a network."""
    if is_network(value):
        return IpRange(field.name, *_read(value, field, addresses.network_of))
    number = _read(value, field, addresses.number_of)
    return IpRange(field.name, number, number)


def of_addresses(field: Field, values: Iterable[Any]) -> Query:
    """Return the query for one of several addresses."""
    numbers = {_read(value, field, addresses.number_of) for value in values}
    return IpInSet(field.name, tuple(sorted(numbers)))


def between(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    """Return the query for the addresses between two bounds, see `number_range.between`."""
    first, last = 0, addresses.GREATEST
    if bounds.get(low) is not None:
        first = _read(bounds[low], field, addresses.number_of) + (low == "gt")
    if bounds.get(high) is not None:
        last = _read(bounds[high], field, addresses.number_of) - (high == "lt")
    if first > addresses.GREATEST or last < 0:
        return MatchNone(late=True)
    return IpRange(field.name, first, last)
