"""The hits of search bodies page by page, to any depth, and documents by their ids.

A page begins after the score and id of the previous page's last hit (`search_after`). They order hits completely, and
a version of an index never changes, so that pages are consistent across copies of a shard without a point in time,
which would be lost with its node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from searchapp.engines.base import BEST_FIRST, Index
from searchapp.errors import QueryRefused
from searchapp.formats.problems import encodable
from searchapp.lucene.queries import dsl
from searchapp.model import Body, Hits
from searchapp.progress import Advance, no_progress

# The last rank that an engine returns in one request.
WINDOW = 10_000

# Bodies whose hits take several requests go together in batches of this size: their hits must fit into memory.
BATCH_SIZE = 16

_IDS_AT_ONCE = 1000


def takes_several_requests(body: Body) -> bool:
    """Return whether the hits of a body may take more than one request."""
    return finds_nearest(body) or body.get("size", 0) > WINDOW


def hits_of(index: Index, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
    """Yield the hits of each body, to any depth, in the order of the bodies, which have the same parts and size.

    Raises:
        QueryRefused: the error has the position of the body.
        EngineError: the engine failed.
    """
    remaining = iter(bodies)
    first = next(remaining, None)
    if first is None:
        return
    remaining = itertools.chain([first], remaining)
    if not takes_several_requests(first):
        yield from index.search(remaining, advance)
        return
    find = _nearest_hits if finds_nearest(first) else _deep_hits
    finished = 0
    while batch := list(itertools.islice(remaining, BATCH_SIZE)):
        try:
            yield from find(index, batch)
        except QueryRefused as error:
            raise QueryRefused.of(error, finished + error.place) from error
        finished += len(batch)
        advance(len(batch))


def _deep_hits(index: Index, bodies: Sequence[Body]) -> list[Hits]:
    pages: list[list[Hits]] = [[] for _ in bodies]
    missing = {number: int(body["size"]) for number, body in enumerate(bodies)}
    while missing:
        numbers = list(missing)
        requests = []
        for number in numbers:
            body = {**bodies[number], "size": min(WINDOW, missing[number])}
            requests.append(_next_page_body(body, pages[number][-1]) if pages[number] else body)
        try:
            results = list(index.search(requests))
        except QueryRefused as error:
            raise QueryRefused.of(error, numbers[error.place]) from error
        for number, body, hits in zip(numbers, requests, results, strict=True):
            pages[number].append(hits)
            missing[number] -= len(hits)
            if len(hits) < body["size"] or not missing[number]:
                del missing[number]
    return [_joined_pages(body_pages) for body_pages in pages]


def _next_page_body(body: Mapping[str, Any], page: Hits) -> dict[str, Any]:
    last = page[len(page) - 1]
    return {**body, "search_after": [last.score, last.document_id]}


def _joined_pages(pages: list[Hits]) -> Hits:
    if len(pages) == 1:
        return pages[0]
    ids = itertools.chain.from_iterable(page.document_ids for page in pages)
    return Hits(list(ids), list(itertools.chain.from_iterable(page.scores for page in pages)))


def from_rank(index: Index, body: Mapping[str, Any], first: int, size: int) -> dict[str, Any] | None:
    """Return the body for `size` hits after the first `first`; None if there are no more.

    Raises:
        EngineError: the engine failed.
    """
    page_body = {**body, "size": size}
    if first == 0 or first + size <= WINDOW:
        return page_body | {"from": first}
    remaining = first
    for hits in hits_in_windows(index, body, first):
        remaining -= len(hits)
        if remaining == 0:
            return _next_page_body(page_body, hits)
    return None


def hits_in_windows(index: Index, body: Mapping[str, Any], max_hits: int | None = None) -> Iterator[Hits]:
    """Yield the first `most` hits of a body, or all, in the engine's largest pages.

    Raises:
        EngineError: the engine failed or rejected the body.
    """
    request = {key: value for key, value in body.items() if key != "explain"} | {"_source": False}
    while max_hits is None or max_hits > 0:
        size = WINDOW if max_hits is None else min(WINDOW, max_hits)
        (hits,) = index.search([request | {"size": size}])
        if hits:
            yield hits
        if len(hits) < size:
            return
        request = _next_page_body(request, hits)
        max_hits = None if max_hits is None else max_hits - size


# Documents asked for beyond the nearest ones, so that the last one with an equal score is among them.
MORE_NEAREST = 16

_PARTS_OF_NEAREST = {"knn", "query", "size", "sort", "_source", "track_total_hits"}


def finds_nearest(body: Body) -> bool:
    """Return whether a body only has a section `knn`; equal scores are then ordered by id on any number of shards."""
    sections = dsl.listed(body.get("knn"))
    return (
        len(sections) == 1
        and isinstance(sections[0], Mapping)
        and body.keys() <= _PARTS_OF_NEAREST
        and body.get("query") in (None, dsl.NOTHING)
    )


def _nearest_hits(index: Index, bodies: Sequence[Body]) -> list[Hits]:
    """Return the nearest documents of each body that `finds_nearest`; equal scores by id.

    Engines choose among the documents with the score of the last one by their numbers in the index and its shards.
    """
    found: dict[int, Hits] = {}
    counts = [_count_of(body) for body in bodies]
    more = {number: min(MORE_NEAREST, WINDOW - count) for number, count in enumerate(counts)}
    while more:
        numbers = list(more)
        requests = [_nearest_body(bodies[number], counts[number] + more[number]) for number in numbers]
        try:
            results = list(index.search(requests))
        except QueryRefused as error:
            raise QueryRefused.of(error, numbers[error.place]) from error
        for number, hits in zip(numbers, results, strict=True):
            count = counts[number]
            if len(hits) == count + more[number] < WINDOW and hits[count - 1].score == hits[-1].score:
                more[number] = min(4 * more[number], WINDOW - count)
            else:
                del more[number]
                found[number] = hits[: min(count, bodies[number].get("size", count))]
    return [found[number] for number in range(len(bodies))]


def _count_of(body: Body) -> int:
    """Return the `k` of a body's section `knn`; `WINDOW` if engines reject or convert it or `num_candidates`."""
    (section,) = dsl.listed(body["knn"])
    k = section.get("k", body.get("size"))
    candidates = section.get("num_candidates", k)
    is_valid = type(k) is type(candidates) is int and 1 <= k <= candidates <= WINDOW
    return k if is_valid else WINDOW


def _nearest_body(body: Body, count: int) -> Body:
    (section,) = dsl.listed(body["knn"])
    if count == WINDOW == _count_of(body):
        return body
    return {**body, "knn": {**section, "k": count, "num_candidates": count}, "size": count}


def sources(index: Index, documents: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the indexed documents of these ids; ids that the index lacks are missing.

    Raises:
        EngineError: the engine failed.
    """
    # Engines reject ids that no document can have.
    ids = [document for document in documents if document and encodable(document)]
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(ids), WINDOW):
        window = ids[start : start + WINDOW]
        found |= matching_sources(index, {"ids": {"values": window}}, len(window))
    return found


def indexed_ids(index: Index, ids: Iterable[str]) -> set[str]:
    """Return the ids that documents of the index have.

    Raises:
        EngineError: the engine failed.
    """
    waiting = iter(ids)
    batches = iter(lambda: list(itertools.islice(waiting, _IDS_AT_ONCE)), [])
    bodies = (
        {"query": {"ids": {"values": batch}}, "size": len(batch), "_source": False, "sort": BEST_FIRST}
        for batch in batches
    )
    return {document for hits in index.search(bodies) for document in hits.document_ids}


def matching_sources(index: Index, query: Mapping[str, Any], size: int) -> dict[str, Mapping[str, Any]]:
    """Return the first `size` documents that match a query, by id."""
    hits = index.find({"query": query, "size": size, "sort": BEST_FIRST, "_source": True})
    return {hit.hit.document_id: hit.source for hit in hits}


def matching_only(query: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template's query without the clause that adds non-matching documents to its ranking.

    >>> matching_only({"bool": {"must": [{"match_all": {"boost": 0}}], "should": [{"match": {"text": "a"}}]}})
    {'bool': {'should': [{'match': {'text': 'a'}}], 'minimum_should_match': 1}}
    """
    clauses = query.get("bool")
    if not isinstance(clauses, Mapping) or not clauses.get("should"):
        return query
    match_everything = {"match_all": {"boost": 0}}
    if clauses.get("must") not in (match_everything, [match_everything]):
        return query
    other_clauses = {name: value for name, value in clauses.items() if name != "must"}
    minimum = clauses.get("minimum_should_match", 0)
    return {"bool": other_clauses | {"minimum_should_match": 1 if minimum in (0, "0") else minimum}}
