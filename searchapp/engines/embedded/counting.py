"""Counts the documents that match a query, and the values that they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from searchapp.engines.base import Counts
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Mask


def counts(parts: Sequence[tuple[IndexReader, Mask]], fields: Mapping[str, int]) -> Counts:
    """The counts of the documents that are marked in the parts of an index, with so many values of each keyword field.

    Raises:
        EngineRefused: a field is no keyword field.
    """
    return Counts(
        sum(int(np.count_nonzero(matching)) for _reader, matching in parts),
        {
            name: _commonest([(_keywords(reader, name), matching) for reader, matching in parts], most)
            for name, most in fields.items()
        },
    )


def _keywords(reader: IndexReader, name: str) -> FieldReader:
    field = reader.fields.get(name)
    if field is None or field.field.is_number or field.field.is_text:
        raise unsupported(f"counting the values of {name}, only of keyword fields")
    return field


def _commonest(parts: Sequence[tuple[FieldReader, Mask]], most: int) -> list[tuple[str, int]]:
    """The commonest values of a field, equal counts in the order of the values, which is that of the terms."""
    counted: Counter[bytes] = Counter()
    for field, matching in parts:
        counted.update(dict(_counted(field, matching, most if len(parts) == 1 else len(field.terms))))
    first = sorted(counted.items(), key=lambda value: (-value[1], value[0]))[:most]
    return [(term.decode(), count) for term, count in first]


def _counted(field: FieldReader, matching: Mask, most: int) -> Iterator[tuple[bytes, int]]:
    """The `most` commonest values of a field in a part, and their counts."""
    counted = field.counted(matching)
    found = np.flatnonzero(counted)
    first = found[np.argsort(-counted[found], kind="stable")][:most]
    return ((field.terms[rank], int(counted[rank])) for rank in first.tolist())
