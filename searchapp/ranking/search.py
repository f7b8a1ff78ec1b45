"""What people see of hits: the text with the matched characters marked, and what stands beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.engines.base import BEST_FIRST, Explanation, Found, Index
from searchapp.model import Hit
from searchapp.ranking import marking

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A retrieved document as a person sees it.

    `matches` are the half-open ranges of characters of `text` that matched the query, ascending and disjoint.
    """

    rank: int
    hit: Hit
    text: str
    source: Mapping[str, Any]
    matches: tuple[Span, ...]
    explanation: Explanation | None


def find(
    index: Index, marks: Mapping[str, Any], body: Mapping[str, Any], first: int = 0
) -> list[SearchResult]:
    """The hits of a search body as a person sees them; the rank of the first one is `first` + 1.

    `marks` are those of the query, see `marking.highlight`.
    """
    asked = {**body, "_source": True, "highlight": marks}
    return [_result(rank, found) for rank, found in enumerate(index.find(asked), start=first + 1)]


def seen_by(
    index: Index, documents: Sequence[str], query: Mapping[str, Any], marks: Mapping[str, Any]
) -> dict[str, SearchResult]:
    """Documents by their ids with what matches a query in them, also those where nothing does.

    `marks` are those of the query, see `marking.highlight`. Ids that the index does not have are missing. The rank of
    each is that among these documents.
    """
    body = {
        "query": {
            "bool": {
                "filter": [{"ids": {"values": list(documents)}}],
                "should": [query],
                "minimum_should_match": 0,
            }
        },
        "size": len(documents),
        "sort": BEST_FIRST,
        "_source": True,
        "highlight": marks,
    }
    results = (_result(rank, found) for rank, found in enumerate(index.find(body), start=1))
    return {result.hit.document_id: result for result in results}


def sources(index: Index, documents: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The documents of these ids as they were indexed; ids that the index does not have are missing."""
    query = {"ids": {"values": list(documents)}}
    return _sources(index, {"query": query, "size": len(documents)})


def beside(
    index: Index, document: Mapping[str, Any], fields: tuple[str, str], reach: int
) -> list[Mapping[str, Any]]:
    """A document and up to `reach` of those before and behind it in the same text, in their order.

    `fields` are the names of what says in which text a document stands, and of its number there.
    """
    text, number = fields
    here = document[number]
    query = {
        "bool": {
            "filter": [
                {"term": {text: document[text]}},
                {"range": {number: {"gte": here - reach, "lte": here + reach}}},
            ]
        }
    }
    found = _sources(index, {"query": query, "size": 2 * reach + 1})
    return sorted(found.values(), key=lambda one: one[number])


def _sources(index: Index, body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found = index.find({**body, "sort": BEST_FIRST, "_source": True})
    return {one.hit.document_id: one.source for one in found}


def text_fields(properties: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The full names of the text fields and sub-fields in the `properties` of a mapping.

    >>> text_fields({"id": {"type": "keyword"}, "text": {"type": "text", "fields": {"words": {"type": "text"}}}})
    ['text', 'text.words']
    """
    found = []
    for name, field in properties.items():
        if field.get("type") == "text":
            found.append(prefix + name)
        for inner in ("properties", "fields"):
            found += text_fields(field.get(inner, {}), f"{prefix}{name}.")
    return found


def unmarked(marked: str) -> tuple[str, list[Span]]:
    """A text without its marks, and the ranges that were marked."""
    spans, parts, length, start = [], [], 0, 0
    for piece in _pieces(marked):
        if piece == marking.OPEN:
            start = length
        elif piece == marking.CLOSE:
            if length > start:
                spans.append((start, length))
        else:
            parts.append(piece)
            length += len(piece)
    return "".join(parts), spans


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same characters as disjoint ranges in ascending order; ranges that touch become one.

    >>> union([(4, 6), (0, 2), (1, 3), (6, 7)])
    ((0, 3), (4, 7))
    """
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def _pieces(marked: str) -> Iterator[str]:
    for is_mark, characters in itertools.groupby(
        marked, key=lambda character: character in (marking.OPEN, marking.CLOSE)
    ):
        if is_mark:
            yield from characters
        else:
            yield "".join(characters)


def _result(rank: int, found: Found) -> SearchResult:
    text = str(found.source.get("text", ""))
    return SearchResult(
        rank=rank,
        hit=found.hit,
        text=text,
        source=found.source,
        matches=union(_spans(text, found.highlights.values())),
        explanation=found.explanation,
    )


def _spans(text: str, highlighted: Iterable[Sequence[str]]) -> Iterator[Span]:
    """The marked ranges of all fragments that are the whole text: sub-fields of `text` analyse the same text."""
    for fragments in highlighted:
        for fragment in fragments:
            plain, spans = unmarked(fragment)
            if plain == text:
                yield from spans
