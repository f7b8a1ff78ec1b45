"""Search results for users: highlighted texts, fields, and shortened explanations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchapp.engines.base import BEST_FIRST, Index, SearchHit
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import mapped_fields
from searchapp.model import Body, Explanation, Hit
from searchapp.ranking.highlighting import ChosenTerms, HighlightRequest, Marker, remove_marks
from searchapp.ranking.paging import matching_sources
from searchapp.text import Span, merge_spans

_WEIGHT = re.compile(r"weight\((?P<term>.*) in \d+\) \[.*\], result of:", re.DOTALL)

# The figure that follows from df and N.
IDF = "idf"

# The leaves of a BM25 explanation that differ from term to term, by the first word of their description.
_FIGURE_NAMES = {
    "boost": "boost",
    "freq": "tf",
    "phraseFreq=": "tf",
    "n": "df",
    "N": "N",
    "dl": "length",
    "avgdl": "average length",
}


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """One line of a shortened explanation."""

    depth: int  # indentation, 0 for the score itself
    value: float  # part of the score
    what: str
    figures: tuple[tuple[str, str], ...] = ()  # factors of a term's score, by name: tf, df, idf, N and so on

    @property
    def text(self) -> str:
        if not self.figures:
            return self.what
        figures = ", ".join(f"{name} {value}" for name, value in self.figures if name != IDF)
        return f"{self.what}  ({figures})"


def shorten_explanation(explanation: Explanation) -> list[ExplanationLine]:
    """Return the sums and maxima of a score, and one line for each term, the greatest first."""
    return list(_lines(explanation, 0))


def _lines(node: Explanation, depth: int) -> Iterator[ExplanationLine]:
    match = _WEIGHT.fullmatch(node.description)
    if match:
        figures_by_name: dict[str, list[str]] = {}
        for name, value in _figures(node):
            figures_by_name.setdefault(name, []).append(f"{value:g}")
        # A phrase has a df and the field's N for each of its words; its idf is the sum of theirs.
        figures = tuple(
            (name, values[0] if name == IDF else "+".join(dict.fromkeys(values)))
            for name, values in figures_by_name.items()
        )
        yield ExplanationLine(depth, node.value, match["term"].replace(":", ": ", 1), figures)
        return
    yield ExplanationLine(depth, node.value, node.description.rstrip(":"))
    for child in sorted(node.details, key=lambda child: -child.value):
        if child.value != 0:
            yield from _lines(child, depth + 1)


def _figures(node: Explanation) -> Iterator[tuple[str, float]]:
    first = re.split(r"[, ]|(?<==)", node.description, maxsplit=1)[0]
    name = _FIGURE_NAMES.get(first)
    if first == IDF:
        yield IDF, node.value
    elif name and not node.details:
        yield name, node.value
    for child in node.details:
        yield from _figures(child)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A retrieved document for users."""

    rank: int
    hit: Hit
    text: str
    source: Mapping[str, Any]
    matches: tuple[Span, ...]  # matches of the query in `text`, ascending and disjoint
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """The first results of a query, and the number of all hits."""

    results: Sequence[SearchResult]
    total: int


def find(index: Index, marker: Marker, body: Body, first: int = 0) -> list[SearchResult]:
    """Return the hits of a search body; the first has the rank `first` + 1."""
    hits, _total = _find_with_marks(index, marker, body["query"], body, with_total=False)
    return [_result(rank, hit) for rank, hit in enumerate(hits, start=first + 1)]


def page(index: Index, marker: Marker, body: Body) -> ResultPage:
    """Return the first hits of a search body, and the number of all hits."""
    hits, total = _find_with_marks(index, marker, body["query"], body, with_total=True)
    return ResultPage([_result(rank, hit) for rank, hit in enumerate(hits, start=1)], total)


def documents_with_matches(
    index: Index, marker: Marker, documents: Sequence[str], query: Mapping[str, Any]
) -> dict[str, SearchResult]:
    """Return documents by id with the matches of a query, also documents without a match.

    Ids that the index lacks are missing. Ranks count among these documents.
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
    }
    hits, _total = _find_with_marks(index, marker, query, body, with_total=False)
    results = (_result(rank, hit) for rank, hit in enumerate(hits, start=1))
    return {result.hit.document_id: result for result in results}


def _find_with_marks(
    index: Index, marker: Marker, query: Mapping[str, Any], body: Body, *, with_total: bool
) -> tuple[list[SearchHit], int]:
    # A server gets one request, whose answer also counts the documents of each word. Words with unknown counts are
    # marked, and marks of words with too little weight are removed afterwards.
    request = marker.request_for(query)
    unknown = marker.unknown(request)
    provisional = marker.chosen(request, unknown)
    body_with_marks = {**body, "_source": True, "highlight": marker.highlight(request, provisional)}
    hits, total = (
        index.page(body_with_marks, unknown) if with_total else (index.find(body_with_marks, unknown), 0)
    )
    if not (hits and unknown) or (chosen := marker.chosen(request)) == provisional:
        return hits, total
    highlights = _highlights_of(index, marker, request, chosen, hits)
    return [replace(hit, highlights=of_hit) for hit, of_hit in zip(hits, highlights, strict=True)], total


def _highlights_of(
    index: Index, marker: Marker, request: HighlightRequest, chosen: ChosenTerms, hits: Sequence[SearchHit]
) -> Sequence[Mapping[str, Sequence[str]]]:
    if (marked_terms := marker.marked_terms(request, chosen)) is not None:
        narrowed = [marked_terms.narrow(hit.highlights) for hit in hits]
        certain = [hit for hit in narrowed if hit is not None]
        if len(certain) == len(narrowed):
            return certain
    ids = [hit.hit.document_id for hit in hits]
    body = {"query": {"ids": {"values": ids}}, "size": len(ids), "sort": BEST_FIRST, "_source": False}
    answer = index.find({**body, "highlight": marker.highlight(request, chosen)})
    highlights = {hit.hit.document_id: hit.highlights for hit in answer}
    return [highlights.get(hit, {}) for hit in ids]


def documents_around(
    index: Index, document: Mapping[str, Any], fields: tuple[str, str], reach: int
) -> list[Mapping[str, Any]]:
    """Return a document and up to `reach` documents before and after it in the same text, in order.

    `fields` are the field that identifies the text and the field with the position in it.
    """
    text, number = fields
    position = document[number]
    query = {
        "bool": {
            "filter": [
                {"term": {text: document[text]}},
                {"range": {number: {"gte": position - reach, "lte": position + reach}}},
            ]
        }
    }
    documents = matching_sources(index, query, 2 * reach + 1)
    return sorted(documents.values(), key=lambda document_: document_[number])


def text_fields(properties: Mapping[str, Any]) -> list[str]:
    """Return the full names of the text fields and sub-fields in a mapping's `properties`.

    >>> text_fields({"id": {"type": "keyword"}, "text": {"type": "text", "fields": {"words": {"type": "text"}}}})
    ['text', 'text.words']
    """
    return [field.name for field in mapped_fields(properties) if field.type == "text"]


def _result(rank: int, hit: SearchHit) -> SearchResult:
    text = str(hit.source.get("text", ""))
    return SearchResult(
        rank=rank,
        hit=hit.hit,
        text=text,
        source=hit.source,
        matches=tuple(merge_spans(_spans(text, hit.highlights.values()))),
        explanation=hit.explanation,
    )


def _spans(text: str, highlighted: Iterable[Sequence[str]]) -> Iterator[Span]:
    """Yield the marked ranges of fragments that are the whole text, or whole lines of it.

    Sub-fields of `text` analyze the same text; other fields may be lines of the text.
    """
    for fragments in highlighted:
        for fragment in fragments:
            plain, spans = remove_marks(fragment)
            if plain == text:
                yield from spans
            elif plain and (start := f"\n{text}\n".find(f"\n{plain}\n")) >= 0:
                yield from ((start + first, start + last) for first, last in spans)
