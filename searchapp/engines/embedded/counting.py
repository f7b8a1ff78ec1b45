"""Counts the documents that match a query, and the values that they have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Counts
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader


def counts(reader: IndexReader, matching: NDArray[np.bool_], fields: Mapping[str, int]) -> Counts:
    """The counts of the documents that are marked, with this many values of each keyword field.

    `matching` has the shape (documents,).

    Raises:
        EngineRefused: a field is no keyword field.
    """
    return Counts(
        int(np.count_nonzero(matching)),
        {name: _commonest(_keywords(reader, name), matching, most) for name, most in fields.items()},
    )


def _keywords(reader: IndexReader, name: str) -> FieldReader:
    field = reader.fields.get(name)
    if field is None or field.field.is_number or field.field.is_text:
        raise unsupported(f"counting the values of {name}, only of keyword fields")
    return field


def _commonest(field: FieldReader, matching: NDArray[np.bool_], most: int) -> list[tuple[str, int]]:
    """The commonest values of a field, equal counts in the order of the values, which is that of the terms."""
    counted = field.counted(matching)
    found = np.flatnonzero(counted)
    first = found[np.argsort(-counted[found], kind="stable")][:most]
    return [(field.terms[rank].decode(), int(counted[rank])) for rank in first.tolist()]
