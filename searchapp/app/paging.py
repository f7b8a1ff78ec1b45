"""The hits of a search body page by page, to any depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.engines.base import Index
from searchapp.model import Hits

WINDOW = 10_000
"""The last rank that an engine gives by itself; what lies behind is asked for from there on."""


def from_rank(index: Index, body: Mapping[str, Any], first: int, size: int) -> dict[str, Any] | None:
    """The body for `size` hits behind the `first` ones; None where there are no more.

    Raises:
        EngineError: the engine failed on the way there.
    """
    placed = {**body, "size": size}
    if first == 0 or first + size <= WINDOW:
        return placed | {"from": first}
    left = first
    for hits in windows(index, body, first):
        left -= len(hits)
        if left == 0:
            last = hits[len(hits) - 1]
            return placed | {"search_after": [last.score, last.document_id]}
    return None


def windows(index: Index, body: Mapping[str, Any], most: int | None = None) -> Iterator[Hits]:
    """The first `most` hits of a body, or all, in pieces as large as an engine gives them.

    Raises:
        EngineError: the engine failed, or refused the body.
    """
    asked = {key: value for key, value in body.items() if key != "explain"} | {"_source": False}
    while most is None or most > 0:
        size = WINDOW if most is None else min(WINDOW, most)
        (hits,) = index.search([asked | {"size": size}])
        if hits:
            yield hits
        if len(hits) < size:
            return
        last = hits[len(hits) - 1]
        asked["search_after"] = [last.score, last.document_id]
        most = None if most is None else most - size


def matching_only(query: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template's query without the clause that fills its ranking up with documents that match nothing.

    >>> matching_only({"bool": {"must": [{"match_all": {"boost": 0}}], "should": [{"match": {"text": "a"}}]}})
    {'bool': {'should': [{'match': {'text': 'a'}}], 'minimum_should_match': 1}}
    """
    described = query.get("bool")
    if not isinstance(described, Mapping) or not described.get("should"):
        return query
    filling = {"match_all": {"boost": 0}}
    if described.get("must") not in (filling, [filling]):
        return query
    rest = {name: value for name, value in described.items() if name != "must"}
    minimum = described.get("minimum_should_match", 0)
    return {"bool": rest | {"minimum_should_match": 1 if minimum in (0, "0") else minimum}}
