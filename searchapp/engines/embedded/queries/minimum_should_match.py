"""How many of the optional clauses must match: `2`, `-1`, `75%`, `-25%`, `2<75%`, `2<-25% 9<-3`.

As `org.elasticsearch.common.lucene.search.Queries.calculateMinShouldMatch` reads the parameter.
"""

from __future__ import annotations

import re

import numpy as np

from searchapp.engines.embedded.queries.nodes import Bool
from searchapp.engines.embedded.refusals import invalid

_TRIMMED = "".join(map(chr, range(0x21)))
_HALF = 1 << 31


def with_minimum(query: Bool, specification: str | None) -> Bool:
    """The query with a `minimum_should_match`, if one is specified."""
    if specification is None:
        return query
    minimum = required(len(query.should), specification)
    return Bool(query.must, query.must_not, query.should, query.filter, minimum)


def required(optional: int, specification: str) -> int:
    """The number of `optional` clauses that must match, which may be more than there are.

    >>> [required(5, text) for text in ("2", "-1", "75%", "-25%", "5<50%", "2<-25% 4<-3", "9")]
    [2, 4, 3, 4, 5, 2, 9]

    Raises:
        EngineRefused: the specification is no number, percentage or condition.
    """
    text = specification.strip(_TRIMMED)
    if "<" not in text:
        return _simple(optional, text)
    result = optional
    for condition in re.sub(r"[ \t\n\x0b\f\r]*<[ \t\n\x0b\f\r]*", "<", text).rstrip(" ").split(" "):
        bound, *then = condition.split("<")
        if optional <= _integer(bound, specification):
            return result
        if not any(then):
            raise invalid(f"minimum_should_match {specification!r} has a condition that says nothing")
        result = required(optional, then[0])
    return result


def _simple(optional: int, text: str) -> int:
    if "%" in text:
        # Java's integers of 32 bits begin anew beyond their end.
        product = (optional * _integer(text[:-1], text) + _HALF) % (2 * _HALF) - _HALF
        share = np.float32(product) * (np.float32(1) / np.float32(100))
        count = int(share)  # towards zero, as Java casts
        return max(0, optional + count if share < 0 else count)
    count = _integer(text, text)
    return max(0, optional + count if count < 0 else count)


def _integer(text: str, specification: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text) or max(text) > "\uffff" or not -_HALF <= int(text) < _HALF:
        raise invalid(f"minimum_should_match {specification!r} is no number, percentage or condition")
    return int(text)
