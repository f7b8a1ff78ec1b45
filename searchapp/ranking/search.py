"""One search for a person: the hits of typed words, with the matched characters marked."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.engines.base import Explanation, Found, Index
from searchapp.model import Hit, Topic
from searchapp.ranking.recipes import Recipe

Span = tuple[int, int]

# Private-use characters: no text has them, so what is between them is a match and nothing else.
_OPEN, _CLOSE = "\ue000", "\ue001"


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


def search(
    index: Index, mapping: Mapping[str, Any], recipe: Recipe, words: str, size: int, *, explain: bool = False
) -> list[SearchResult]:
    """The first `size` documents for the words, ranked as the recipe ranks a topic's text.

    `mapping` is the create-index body of the index: all its text fields are highlighted.
    """
    body = {
        **recipe.body(Topic("", words), size),
        "_source": True,
        "explain": explain,
        "highlight": {
            "type": "plain",
            "number_of_fragments": 0,
            "pre_tags": [_OPEN],
            "post_tags": [_CLOSE],
            "fields": {field: {} for field in text_fields(mapping["mappings"]["properties"])},
        },
    }
    return [_result(rank, found) for rank, found in enumerate(index.find(body), start=1)]


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
        if piece == _OPEN:
            start = length
        elif piece == _CLOSE:
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
    for is_mark, characters in itertools.groupby(marked, key=lambda character: character in (_OPEN, _CLOSE)):
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
