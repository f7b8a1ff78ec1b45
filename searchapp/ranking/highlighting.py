"""Highlighting: the words of a query to mark in a document, texts with marks, and the snippet of a result list.

A statement that is a topic shares its little words, its `x` and its `=` with nearly every document, and to mark them
is to mark everything. The weight of a term is its inverse document frequency over all documents of the index,

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N documents have the term

and a term is marked when it has at least two fifths of the weight of the query's heaviest one that any document has. So
a query of common words only still has words marked, and since no weight is above ln(2N), a term in fewer than about
N^(3/5) documents always is. A word of the query is as common as in the field where it is commonest, whatever terms the
fields' analyzers make of it: it is marked in all places or in none.

In short sentences "for" is as rare as "people": counts of documents do not distinguish them. So the words of Lucene's
list of English function words are not marked, unless a query has no others.

    S. Robertson, Understanding inverse document frequency, Journal of Documentation 60(5), 2004.

The fields of the text that the query scores count. A field whose terms are pairs of words is left out, where there is
another: two of its terms that stand far from each other overlap the terms between them, and the highlighter marks all
of it. Phrases, prefixes and exact terms of a query are marked as they are.

`TextAnalyzer` analyzes typed texts in this process, also for an index on a server; the server is used only for
analyzers that this process does not know.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from searchapp.engines.base import NO_TERMS, Index, Terms
from searchapp.errors import EngineBusy, EngineRefused, Replaced
from searchapp.lucene.analysis.registry import AnalysisRegistry
from searchapp.lucene.analysis.token_filters import ENGLISH_STOPWORDS
from searchapp.lucene.errors import BadSettings, NotSupported
from searchapp.model import Token

Span = tuple[int, int]
"""A range of characters, the end not included."""

OPEN, CLOSE = "\ue000", "\ue001"
"""The marks around a match: private-use characters, which no text has."""


def unmarked(marked: str) -> tuple[str, list[Span]]:
    """Return a text without its marks, and the marked ranges."""
    spans, parts, length, start = [], [], 0, 0
    for piece in _pieces(marked):
        if piece == OPEN:
            start = length
        elif piece == CLOSE:
            if length > start:
                spans.append((start, length))
        else:
            parts.append(piece)
            length += len(piece)
    return "".join(parts), spans


@dataclass(frozen=True, slots=True)
class MarkedTerms:
    """The marks of a query: the chosen terms of each field, and the words of phrases where a phrase stands.

    `tokens` returns the tokens of a text in a field.
    """

    chosen: Mapping[str, Collection[str]]
    phrases: Mapping[str, Sequence[Sequence[Token]]]
    tokens: Callable[[str, str], Sequence[Token]]

    def narrowed(self, highlights: Mapping[str, Sequence[str]]) -> dict[str, list[str]] | None:
        """Return highlights in which more terms are marked, with the marks of these alone.

        The highlighter marks overlapping tokens as one: return None then, and wherever its marks are uncertain.
        """
        narrowed: dict[str, list[str]] = {}
        for field, texts in highlights.items():
            for marked in texts:
                text, spans = unmarked(marked)
                tokens = self.tokens(field, text)
                marked_spans = self._wanted(field, tokens)
                if max(text, default="") > "\uffff" or not {*spans} <= _apart(
                    tokens
                ):  # there offsets count otherwise
                    return None
                spans_left = [span for span in spans if span in marked_spans]
                if spans_left:
                    narrowed.setdefault(field, []).append(_marked(text, spans_left))
        return narrowed

    def _wanted(self, field: str, tokens: Sequence[Token]) -> set[Span]:
        chosen = self.chosen.get(field, ())
        found = {(token.start, token.end) for token in tokens if token.term in chosen}
        for phrase in self.phrases.get(field, ()):
            terms = {word.term for word in phrase}
            for first, last in _occurrences(phrase, tokens):
                inside = (token for token in tokens if first <= token.position <= last)
                found |= {(token.start, token.end) for token in inside if token.term in terms}
        return found


def _occurrences(phrase: Sequence[Token], tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the first and last position of each occurrence of a phrase.

    The highlighter allows as many words in between as the analyzer left out of the phrase, wherever they are.
    """
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for token in tokens:
        positions[token.term].append(token.position)
    gaps = phrase[-1].position - phrase[0].position - len(phrase) + 1
    for first in positions[phrase[0].term]:
        last, between = first, 0
        for word in phrase[1:]:
            following = next((position for position in positions[word.term] if position > last), None)
            if following is None:
                return
            between += following - last - 1
            last = following
        if between <= gaps:
            yield first, last


def _apart(tokens: Sequence[Token]) -> set[Span]:
    """Return the ranges of tokens that no token of another range overlaps."""
    places = sorted({(token.start, token.end) for token in tokens})
    overlapping: set[Span] = set()
    reach, widest = 0, (0, 0)
    for place in places:
        if place[0] < reach:
            overlapping |= {place, widest}
        if place[1] > reach:
            reach, widest = place[1], place
    return {*places} - overlapping


def _marked(text: str, spans: Sequence[Span]) -> str:
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], OPEN, text[start:end], CLOSE]
        done = end
    return "".join([*pieces, text[done:]])


def _pieces(marked: str) -> Iterator[str]:
    for is_mark, characters in itertools.groupby(marked, key=lambda character: character in (OPEN, CLOSE)):
        if is_mark:
            yield from characters
        else:
            yield "".join(characters)


ELLIPSIS = "…"

_TO_SQUEEZE = re.compile(r"\A\s|\s\s|[^\S ]|\s\Z")
"""White space that is no single blank between words."""


def squeezed(text: str, matches: Sequence[Span]) -> tuple[str, list[Span]]:
    r"""Return the text on one line, every run of white space one blank, with the ranges of the matches in it.

    >>> squeezed("Let  $G$\nbe a group.", [(14, 19)])
    ('Let $G$ be a group.', [(13, 18)])
    """
    if not _TO_SQUEEZE.search(text):
        return text, list(matches)
    characters: list[str] = []
    offsets = []  # of each character of the text, and of its end, in the squeezed text
    for character in text:
        offsets.append(len(characters))
        if not character.isspace():
            characters.append(character)
        elif characters and characters[-1] != " ":
            characters.append(" ")
    offsets.append(len(characters))
    return "".join(characters).rstrip(), [(offsets[start], offsets[end]) for start, end in matches]


def snippet(text: str, matches: Sequence[Span], length: int) -> tuple[str, list[Span]]:
    """Return about `length` characters of the text on one line, with as many matches as possible, and their ranges.

    A text that fits is shown whole. A longer one is shown from its beginning if that holds the most matches, else
    from a word somewhat before the first match of the best window.
    """
    line, spans = squeezed(text, matches)
    if len(line) <= length:
        return line, spans
    start = _best_start(line, spans, length)
    end = start + length
    if end < len(line):
        end = max(line.rfind(" ", start, end), start + length // 2)
    end = start + len(line[start:end].rstrip())
    head = ELLIPSIS if start > 0 else ""
    tail = ELLIPSIS if end < len(line) else ""
    shift = len(head) - start
    inside = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if a < end and b > start]
    return head + line[start:end] + tail, inside


def _best_start(line: str, spans: Sequence[Span], length: int) -> int:
    """Return the start of the window with the most matches; the earliest of equals, and the beginning above all."""
    lead = length // 6  # some words before the first match, to read it in its sentence
    best, most = 0, sum(end <= length for _start, end in spans)
    for first, _end in spans:
        begin = max(0, first - lead)
        covered = sum(begin <= start and end <= begin + length for start, end in spans)
        if covered > most:
            best, most = begin, covered
    return line.find(" ", best) + 1 if best else 0


REMEMBERED = 1_000
"""Texts whose tokens are cached."""

LONGEST_REMEMBERED = 1_000
"""The most characters of a cached text."""


class TextAnalyzer:
    """The tokens of texts on one version of an index, by the names of analyzers.

    Args:
        index: analyzes texts by analyzers that this process does not know
        mapping: the create-index body of the index
    """

    def __init__(self, index: Index, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._settings = mapping.get("settings", {}).get("analysis", {})
        self._kept: dict[tuple[str, str], Sequence[Token]] = {}

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        """Return the tokens of a text, those of the last step of `Index.analyze`.

        Raises:
            EngineError: the engine failed, or refused the text.
        """
        key = analyzer, text
        if key not in self._kept:
            tokens = self._tokens(analyzer, text)
            if len(text) > LONGEST_REMEMBERED:
                return tokens
            if len(self._kept) >= REMEMBERED:
                self._kept.clear()
            self._kept[key] = tokens
        return self._kept[key]

    def _tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        if not self._index.is_at_hand and self._registry is not None:
            with suppress(NotSupported):
                return self._registry.analyzer(analyzer).tokens(text)
        return self._index.analyze(text, analyzer=analyzer)[-1].tokens

    @cached_property
    def _registry(self) -> AnalysisRegistry | None:
        """The analyzers of the index; None where only Elasticsearch knows a part of them."""
        try:
            return AnalysisRegistry(self._settings)
        except (NotSupported, BadSettings):
            return None


TEXT = "text"
"""The field for readers, with its sub-fields."""

SHARE = 0.4
"""The least weight of a marked term, as a share of the heaviest one's."""

Query = Mapping[str, Any]

Word = tuple[str, int, int]
"""A word of a query: its text, and its range of characters there."""

Term = tuple[str, str]
"""A field and a term of it."""


def highlight(index: Index, mapping: Mapping[str, Any], query: Query) -> dict[str, Any]:
    """Return the `highlight` of a search body that marks the words of a query that carry weight, over the whole text.

    `mapping` is the create-index body of the index.
    """
    marker = Marker(index, TextAnalyzer(index, mapping), mapping)
    wanted = marker.wanted(query)
    return marker.highlight(wanted, marker.chosen(wanted))


Chosen = Mapping[str, Sequence[str]] | None
"""The marked terms of each field; None where they are unknown, and the whole query is marked."""


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """What to mark of a query.

    Args:
        as_asked: queries that are marked as they are
        words: words that are marked if they carry weight, with their terms
        otherwise: queries that are marked if nothing else is
        is_read: False for a query that can't be read
    """

    as_asked: tuple[Query, ...]
    words: Mapping[Word, Collection[Term]]
    otherwise: tuple[Query, ...]
    is_read: bool = True

    @property
    def terms(self) -> dict[str, list[str]]:
        """The terms of the words, by field."""
        terms: defaultdict[str, list[str]] = defaultdict(list)
        for name, term in sorted({each for some in self.words.values() for each in some}):
            terms[name].append(term)
        return terms


class Marker:
    """Chooses the marks of queries in the documents of one version of an index.

    Args:
        index: counts the documents of terms
        analyzed: the tokens of words
        mapping: the create-index body of the index
    """

    def __init__(self, index: Index, analyzed: TextAnalyzer, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._analyzed = analyzed
        self._fields = _text_fields(mapping)
        self._last: tuple[Query, HighlightRequest] | None = None

    def wanted(self, query: Query) -> HighlightRequest:
        """Return what to mark of a query, the same for all pages of its ranking.

        Raises:
            EngineBusy: the engine is overloaded
            Replaced: this version of the index is gone
        """
        if self._last is None or self._last[0] != query:
            try:
                wanted = _wanted(self._fields, self._analyzed, query)
            except (EngineBusy, Replaced):
                raise
            except (EngineRefused, AttributeError, KeyError, TypeError, ValueError):
                # More words than the server analyzes at once; or a query that makes no sense, which the search will
                # refuse.
                wanted = HighlightRequest((), {}, (), is_read=False)
            self._last = query, wanted
        return self._last[1]

    def unknown(self, wanted: HighlightRequest) -> Terms:
        """Return the terms whose frequencies need a request to a server."""
        return self._index.unknown(wanted.terms)

    def chosen(self, wanted: HighlightRequest, unknown: Terms = NO_TERMS) -> Chosen:
        """Return the terms of the wanted words that carry weight, and those of words with an `unknown` term.

        Raises:
            EngineError: the engine failed.
        """
        try:
            return self._heaviest(wanted, unknown) if wanted.is_read else None
        except (EngineBusy, Replaced):
            raise
        except EngineRefused:  # more terms than it counts at once
            return None

    def weighty(self, wanted: HighlightRequest, chosen: Chosen) -> MarkedTerms | None:
        """Return the marks; None where not only words and phrases are marked, or the marks are unknown."""
        phrases: defaultdict[str, list[Sequence[Token]]] = defaultdict(list)
        for query in wanted.as_asked:
            (name, content), *_ = query.items()
            if name == "match_none":
                continue
            if name != "match_phrase":
                return None
            ((field, parameters),) = content.items()
            if (
                not isinstance(parameters, Mapping)
                or parameters.keys() - {"query", "boost"}
                or parameters.get("boost") == 0
            ):
                return None
            if field in self._fields:
                words = self._analyzed.tokens(self._fields[field].search_analyzer, str(parameters["query"]))
                if len({word.position for word in words}) < len(words):
                    return None  # of words at one place any will do
                phrases[field] += [words] if words else []
        if chosen is None or not (chosen or phrases):
            return None

        def tokens(field: str, text: str) -> Sequence[Token]:
            return self._analyzed.tokens(self._fields[field].analyzer, text)

        return MarkedTerms(chosen, phrases, tokens)

    def highlight(self, wanted: HighlightRequest, chosen: Chosen) -> dict[str, Any]:
        """Return the `highlight` of a search body that marks what is wanted, and of its words the chosen terms."""
        described = {
            "type": "plain",
            "number_of_fragments": 0,
            "pre_tags": [OPEN],
            "post_tags": [CLOSE],
            "fields": {name: {} for name in self._fields},
        }
        if chosen is None:
            return described
        should = [*wanted.as_asked, *({"terms": {name: some}} for name, some in chosen.items())]
        if not chosen:
            should += wanted.otherwise
        query = {"bool": {"should": should}} if should else {"match_none": {}}
        return {**described, "highlight_query": query}

    def _heaviest(self, wanted: HighlightRequest, unknown: Terms) -> dict[str, list[str]]:
        terms = wanted.terms
        left_out = {(name, term) for name, terms_of_field in unknown.items() for term in terms_of_field}
        counts = self._index.frequencies(
            {
                name: [term for term in terms_of_field if (name, term) not in left_out]
                for name, terms_of_field in terms.items()
            }
        )
        most: dict[Term, int] = {}
        always: set[Term] = set()
        for terms_of_field in wanted.words.values():
            if not left_out.isdisjoint(terms_of_field):
                always.update(terms_of_field)
                continue
            documents = max(counts[name][term] for name, term in terms_of_field)
            if documents:  # a word that no document has decides nothing
                most |= {term: max(documents, most.get(term, 0)) for term in terms_of_field}
        weights = {term: weight(documents, self._index.info.documents) for term, documents in most.items()}
        bound = SHARE * max(weights.values(), default=0.0)
        return {
            name: chosen
            for name, terms_of_field in terms.items()
            if (
                chosen := [
                    term
                    for term in terms_of_field
                    if (name, term) in always or weights.get((name, term), -1.0) >= bound
                ]
            )
        }


@dataclass(frozen=True, slots=True)
class _Field:
    """The analyzers of documents and queries in a field, and whether its terms reach over several words."""

    analyzer: str
    search_analyzer: str
    has_pairs: bool


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that a query matches in a field one by one, and the query for them."""

    field: str
    text: str
    analyzer: str | None
    query: Query


def _wanted(fields: Mapping[str, _Field], analyzed: TextAnalyzer, query: Query) -> HighlightRequest:
    words: list[_Words] = []
    as_asked: list[Query] = []
    for part in _parts(query):
        if not isinstance(part, _Words):
            as_asked.append(part)
        elif part.field in fields:
            words.append(part)
    single_words = [part for part in words if not fields[part.field].has_pairs]
    content_words: defaultdict[Word, set[Term]] = defaultdict(set)
    function_words: defaultdict[Word, set[Term]] = defaultdict(set)
    for part in single_words:
        tokens = analyzed.tokens(part.analyzer or fields[part.field].search_analyzer, part.text)
        if _lies_over_several(tokens):
            as_asked.append(part.query)
            continue
        for token in tokens:
            is_function_word = part.text[token.start : token.end].lower() in ENGLISH_STOPWORDS
            kind = function_words if is_function_word else content_words
            kind[part.text, token.start, token.end].add((part.field, token.term))
    otherwise = () if single_words else tuple(part.query for part in words)
    return HighlightRequest(tuple(as_asked), content_words or function_words, otherwise)


def _lies_over_several(tokens: Sequence[Token]) -> bool:
    """Return whether a synonym covers several words, which may need a phrase then."""
    return any(
        following.position != token.position and following.start < token.end
        for token, following in pairwise(tokens)
    )


def weight(documents: int, of_all: int) -> float:
    """Return the inverse document frequency of a term in this many documents.

    >>> round(weight(5, 10), 4), weight(1, 1_000_000) > weight(1000, 1_000_000) > 0
    (0.6931, True)
    """
    return math.log(1 + (of_all - documents + 0.5) / (documents + 0.5))


# What a query asks for

_INNER = {
    "bool": ("must", "should", "filter"),
    "dis_max": ("queries",),
    "constant_score": ("filter",),
    "boosting": ("positive",),
    "function_score": ("query",),
}
"""Queries made of others, and the keys of those that make a document match."""

_BY_WORD = {"query", "analyzer", "boost", "operator", "minimum_should_match", "zero_terms_query", "lenient"}
"""The parameters of a `match` that matches the words unchanged, one by one."""

_SEVERAL = {"fields", "type", "tie_breaker"}
_BY_FIELD = ("best_fields", "most_fields", "cross_fields")


def _parts(query: Query) -> Iterator[_Words | Query]:
    """Yield the words that a query matches one by one, and the other queries that make a document match."""
    (name, content), *_ = query.items()
    if name in _INNER:
        if content.get("boost", 1) != 0:
            for place in _INNER[name]:
                inner = content.get(place, ())
                for query_ in [inner] if isinstance(inner, Mapping) else inner:
                    yield from _parts(query_)
    elif name == "match":
        ((field, parameters),) = content.items()
        parameters = parameters if isinstance(parameters, Mapping) else {"query": parameters}
        yield from _words(query, [field], parameters, parameters.keys() <= _BY_WORD)
    elif name == "multi_match":
        fields = [content["fields"]] if isinstance(content["fields"], str) else content["fields"]
        plain = content.keys() <= _BY_WORD | _SEVERAL and content.get("type", _BY_FIELD[0]) in _BY_FIELD
        plain = plain and not any("*" in field for field in fields)
        yield from _words(query, [field.partition("^")[0] for field in fields], content, plain)
    else:
        yield query


def _words(
    query: Query, fields: Sequence[str], parameters: Query, is_plain: bool
) -> Iterator[_Words | Query]:
    if parameters.get("boost", 1) == 0:
        return
    if not is_plain or not isinstance(parameters["query"], str):
        yield query
        return
    for field in fields:
        described = {**{key: parameters[key] for key in ("query", "analyzer") if key in parameters}}
        yield _Words(field, parameters["query"], parameters.get("analyzer"), {"match": {field: described}})


# What the mapping says

_FILTERS_OF_PAIRS = ("shingle", "cjk_bigram", "common_grams")
_TOKENIZERS_OF_PAIRS = ("ngram",)
"""The token filters and tokenizers whose terms reach over several words."""


def index_analyzer(mapping: Query, field: Query) -> str:
    """Return the name of the analyzer of documents in a text field, which `field` describes as the mapping does."""
    own = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    named: str = field.get("analyzer") or ("default" if "default" in own else "standard")
    return named


def search_analyzer(mapping: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    """Return the name of the analyzer of queries in a text field, which `field` describes as the mapping does."""
    own = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    unnamed = next((name for name in ("default_search", "default") if name in own), "standard")
    named: str = field.get("search_analyzer", field.get("analyzer") or unnamed)
    return named


def _text_fields(mapping: Mapping[str, Any]) -> dict[str, _Field]:
    analysis = mapping.get("settings", {}).get("analysis", {})
    own = analysis.get("analyzer", {})
    main = mapping["mappings"]["properties"].get(TEXT, {})
    sub_fields = {f"{TEXT}.{name}": field for name, field in main.get("fields", {}).items()}
    found = {}
    for name, field in {TEXT: main, **sub_fields}.items():
        if field.get("type") == "text":
            found[name] = _Field(
                index_analyzer(mapping, field),
                search_analyzer(mapping, field),
                _has_pairs(analysis, own.get(index_analyzer(mapping, field), {})),
            )
    return found


def _has_pairs(analysis: Mapping[str, Any], analyzer: Mapping[str, Any]) -> bool:
    filters = analyzer.get("filter", ())
    filters = [filters] if isinstance(filters, str) else filters
    kinds = (analysis.get("filter", {}).get(name, {}).get("type", name) for name in filters)
    tokenizer = str(analyzer.get("tokenizer", ""))
    cut = analysis.get("tokenizer", {}).get(tokenizer, {}).get("type", tokenizer)
    return cut in _TOKENIZERS_OF_PAIRS or any(kind in _FILTERS_OF_PAIRS for kind in kinds)
