"""The hits of search bodies page by page, to any depth.

A page begins after the score and id of the previous page's last hit (`search_after`). They order hits completely, and
a version of an index never changes, so that pages are consistent across copies of a shard without a point in time,
which would be lost with its node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from searchapp.engines.base import Index
from searchapp.errors import QueryRefused
from searchapp.model import Body, Hits
from searchapp.progress import Advance, no_progress

# The last rank that an engine returns in one request.
WINDOW = 10_000

# How many deeper bodies are paged together: their hits must fit into memory.
AT_ONCE = 16


def deep(index: Index, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
    """Yield the hits of each body, which may exceed the engine's limit, in the order of the bodies.

    Raises:
        QueryRefused: the error has the position of the body.
        EngineError: the engine failed.
    """
    waiting = iter(bodies)
    done = 0
    while batch := list(itertools.islice(waiting, AT_ONCE)):
        try:
            yield from _deep(index, batch)
        except QueryRefused as error:
            raise QueryRefused.of(error, done + error.place) from error
        done += len(batch)
        advance(len(batch))


def _deep(index: Index, bodies: list[Body]) -> list[Hits]:
    pages: list[list[Hits]] = [[] for _ in bodies]
    missing = {place: int(body["size"]) for place, body in enumerate(bodies)}
    while missing:
        places = list(missing)
        requests = []
        for place in places:
            body = {**bodies[place], "size": min(WINDOW, missing[place])}
            requests.append(_behind(body, pages[place][-1]) if pages[place] else body)
        try:
            results = list(index.search(requests))
        except QueryRefused as error:
            raise QueryRefused.of(error, places[error.place]) from error
        for place, body, hits in zip(places, requests, results, strict=True):
            pages[place].append(hits)
            missing[place] -= len(hits)
            if len(hits) < body["size"] or not missing[place]:
                del missing[place]
    return [_joined(some) for some in pages]


def _behind(body: Mapping[str, Any], page: Hits) -> dict[str, Any]:
    last = page[len(page) - 1]
    return {**body, "search_after": [last.score, last.document_id]}


def _joined(pages: list[Hits]) -> Hits:
    if len(pages) == 1:
        return pages[0]
    ids = itertools.chain.from_iterable(page.document_ids for page in pages)
    return Hits(list(ids), list(itertools.chain.from_iterable(page.scores for page in pages)))


def from_rank(index: Index, body: Mapping[str, Any], first: int, size: int) -> dict[str, Any] | None:
    """Return the body for `size` hits after the first `first`; None if there are no more.

    Raises:
        EngineError: the engine failed.
    """
    placed = {**body, "size": size}
    if first == 0 or first + size <= WINDOW:
        return placed | {"from": first}
    left = first
    for hits in windows(index, body, first):
        left -= len(hits)
        if left == 0:
            return _behind(placed, hits)
    return None


def windows(index: Index, body: Mapping[str, Any], most: int | None = None) -> Iterator[Hits]:
    """Yield the first `most` hits of a body, or all, in the engine's largest pages.

    Raises:
        EngineError: the engine failed or rejected the body.
    """
    request = {key: value for key, value in body.items() if key != "explain"} | {"_source": False}
    while most is None or most > 0:
        size = WINDOW if most is None else min(WINDOW, most)
        (hits,) = index.search([request | {"size": size}])
        if hits:
            yield hits
        if len(hits) < size:
            return
        request = _behind(request, hits)
        most = None if most is None else most - size


def matching_only(query: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template's query without the clause that adds non-matching documents to its ranking.

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
