"""How many of the optional clauses must match: `2`, `-1`, `75%`, `-25%`, `2<75%`, `2<-25% 9<-3`.

As `org.elasticsearch.common.lucene.search.Queries.calculateMinShouldMatch` reads it.
"""

from __future__ import annotations

import re

import numpy as np

from searchapp.engines.embedded.refusals import invalid


def required(optional: int, specification: str) -> int:
    """The number of `optional` clauses that must match; it may be more than there are.

    >>> [required(5, text) for text in ("2", "-1", "75%", "-25%", "5<50%", "2<-25% 4<-3", "9")]
    [2, 4, 3, 4, 5, 2, 9]
    """
    text = re.sub(r"\s*<\s*", "<", specification.strip())
    if "<" not in text:
        return _simple(optional, text)
    result = optional
    for condition in text.split():
        bound, _, then = condition.partition("<")
        if optional <= _integer(bound, specification):
            return result
        result = _simple(optional, then)
    return result


def _simple(optional: int, text: str) -> int:
    if text.endswith("%"):
        share = np.float32(optional * _integer(text[:-1], text)) * (np.float32(1) / np.float32(100))
        count = int(share)  # towards zero, as Java casts
        return max(0, optional + count if share < 0 else count)
    count = _integer(text, text)
    return max(0, optional + count if count < 0 else count)


def _integer(text: str, specification: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise invalid(f"minimum_should_match {specification!r} is no number, percentage or condition")
    return int(text)
