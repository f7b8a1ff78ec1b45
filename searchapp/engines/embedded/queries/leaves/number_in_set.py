"""Any of several numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.number_value import NumberValue, required_integer, signed
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.schema import INTEGERS, Field, Schema
from searchapp.engines.embedded.storage.reader import IndexReader


@dataclass(frozen=True, slots=True, eq=False)
class NumberInSet(Leaf):
    """Documents that have one of the numbers, with the score 1."""

    field: str
    numbers: tuple[float, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberInSet) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.field, signed(self.numbers)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        field = reader.fields[self.field]
        return np.concatenate([field.between(number, number) for number in self.numbers])

    def may_match(self, reader: IndexReader, scores: bool, known: bool) -> bool:  # noqa: ARG002
        """As for a range from the least to the greatest of the numbers."""
        _whole, none = reader.fields[self.field].extent(self.numbers[0], self.numbers[-1])
        return not none

    def described(self, schema: Schema) -> str:
        kind = schema.fields[self.field].type
        if kind in INTEGERS:
            return f"{self.field}:{{{' '.join(map(str, self.numbers))}}}"
        precision = np.float32 if kind == "float" else np.float64
        return f"{self.field}:{{{' '.join(printed(number, precision) for number in self.numbers)}}}"


def of_numbers(field: Field, values: Iterable[Any]) -> Query:
    """The documents that have one of several numbers."""
    every = [NumberValue.read(value, f"a number for {field.name}") for value in values]
    if field.type not in INTEGERS:
        numbers = [given.float32() if field.type == "float" else given.double for given in every]
        if not all(map(math.isfinite, numbers)):
            raise invalid(f"a number for {field.name} is no finite {field.type}")
    else:
        numbers = [required_integer(given, field) for given in every if not given.has_decimals]
    if not numbers:
        return MatchNone(late=True)
    # -0.0 is a number of its own to Lucene.
    different = {(number, math.copysign(1, number)): number for number in numbers}
    return NumberInSet(field.name, tuple(different[key] for key in sorted(different)))
