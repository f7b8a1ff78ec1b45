"""Highlighting: which words of a query to mark in a document, texts with marks, and snippets for result lists.

A topic shares common words with nearly every document. A term is therefore marked only if its inverse document
frequency is at least two fifths of the greatest one among the query's terms that occur in a document:

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N documents have the term

    S. Robertson, Understanding inverse document frequency, Journal of Documentation 60(5), 2004.

The field in which a word is most common decides, so that a word is marked everywhere or nowhere. Words of Lucene's
list of English function words are marked only if a query has no others: in short sentences "for" is as rare as
"people". Phrases, prefixes and exact terms of a query are marked unchanged.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any

from searchapp.engines.base import NO_TERMS, Index, Terms
from searchapp.errors import EngineBusy, EngineRefused, Replaced
from searchapp.lucene.analysis.registry import AnalysisRegistry
from searchapp.lucene.analysis.token_filters import ENGLISH_STOPWORDS
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BadSettings, NotSupported
from searchapp.lucene.index.index_settings import mapped_fields
from searchapp.model import AnalysisStep, Token
from searchapp.tasks.base import TEXT_FIELDS
from searchapp.text import Span

# The marks around a match: private-use characters, which no text contains.
OPEN, CLOSE = "\ue000", "\ue001"

_MARK = re.compile(f"([{OPEN}{CLOSE}])")


def remove_marks(marked: str) -> tuple[str, list[Span]]:
    """Return a text without its marks, and the marked ranges."""
    spans, parts, length, start = [], [], 0, 0
    for piece in _MARK.split(marked):
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
    """The marks of a query: the chosen terms of each field, and phrases."""

    chosen: Mapping[str, Collection[str]]
    phrases: Mapping[str, Sequence[Sequence[Token]]]
    tokens: Callable[[str, str], Sequence[Token]]  # of a field and a text in it

    def narrow(self, highlights: Mapping[str, Sequence[str]]) -> dict[str, list[str]] | None:
        """Reduce the marks of highlights to these terms and phrases.

        Return None where the highlighter's marks are ambiguous: it marks overlapping tokens as one.
        """
        narrowed: dict[str, list[str]] = {}
        for field, texts in highlights.items():
            for marked in texts:
                text, spans = remove_marks(marked)
                tokens = self.tokens(field, text)
                marked_spans = self._wanted_spans(field, tokens)
                # Elasticsearch counts a character above U+FFFF as two.
                if max(text, default="") > "\uffff" or not {*spans} <= _disjoint_spans(tokens):
                    return None
                spans_left = [span for span in spans if span in marked_spans]
                if spans_left:
                    narrowed.setdefault(field, []).append(_with_marks(text, spans_left))
        return narrowed

    def _wanted_spans(self, field: str, tokens: Sequence[Token]) -> set[Span]:
        chosen = self.chosen.get(field, ())
        spans = {(token.start, token.end) for token in tokens if token.term in chosen}
        for phrase in self.phrases.get(field, ()):
            terms = {word.term for word in phrase}
            for first, last in _occurrences(phrase, tokens):
                inside = (token for token in tokens if first <= token.position <= last)
                spans |= {(token.start, token.end) for token in inside if token.term in terms}
        return spans


def _occurrences(phrase: Sequence[Token], tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for token in tokens:
        positions[token.term].append(token.position)
    # As the highlighter does, allow as many words in between as the analyzer removed from the phrase, at any position.
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


def _disjoint_spans(tokens: Sequence[Token]) -> set[Span]:
    """Return the ranges of tokens that do not overlap tokens of another range."""
    spans = sorted({(token.start, token.end) for token in tokens})
    overlapping: set[Span] = set()
    reach, widest = 0, (0, 0)
    for span in spans:
        if span[0] < reach:
            overlapping |= {span, widest}
        if span[1] > reach:
            reach, widest = span[1], span
    return {*spans} - overlapping


def _with_marks(text: str, spans: Sequence[Span]) -> str:
    pieces, end_of_last = [], 0
    for start, end in spans:
        pieces += [text[end_of_last:start], OPEN, text[start:end], CLOSE]
        end_of_last = end
    return "".join([*pieces, text[end_of_last:]])


ELLIPSIS = "…"

# White space other than single blanks between words.
_EXTRA_SPACE = re.compile(r"\A\s|\s\s|[^\S ]|\s\Z")


def collapse_whitespace(text: str, matches: Sequence[Span]) -> tuple[str, list[Span]]:
    r"""Return the text on one line with runs of white space collapsed, and the ranges of the matches in it.

    >>> squeezed("Let  $G$\nbe a group.", [(14, 19)])
    ('Let $G$ be a group.', [(13, 18)])
    """
    if not _EXTRA_SPACE.search(text):
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

    A snippet starts at the beginning of the text if that has the most matches, else some words before the first match
    of the best window.
    """
    line, spans = collapse_whitespace(text, matches)
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
    """Return the start of the window with the most matches; the beginning wins ties, then the earliest window."""
    lead = length // 6  # some words before the first match, as context
    best, most = 0, sum(end <= length for _start, end in spans)
    for first, _end in spans:
        begin = max(0, first - lead)
        covered = sum(begin <= start and end <= begin + length for start, end in spans)
        if covered > most:
            best, most = begin, covered
    return line.find(" ", best) + 1 if best else 0


# How many texts' tokens are cached.
CACHED_TEXTS = 1_000

# The longest cached text, in characters.
LONGEST_CACHED_TEXT = 1_000


class TextAnalyzer:
    """Returns the tokens of texts, by the analyzers of one version of an index; `mapping` is its create-index body."""

    def __init__(self, index: Index, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._mapping = mapping
        self._cache: dict[tuple[str, str], Sequence[Token]] = {}

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        """Return the tokens of a text: those of the last step of `Index.analyze`.

        Raises:
            EngineError: the engine failed or rejected the text.
        """
        key = analyzer, text
        if key not in self._cache:
            tokens = self._tokens(analyzer, text)
            if len(text) > LONGEST_CACHED_TEXT:
                return tokens
            if len(self._cache) >= CACHED_TEXTS:
                self._cache.clear()
            self._cache[key] = tokens
        return self._cache[key]

    def _tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        # Texts for an index on a server are analyzed in this process if it supports the analyzer.
        if not self._index.is_local and self._registry is not None:
            with suppress(NotSupported):
                return self._registry.analyzer(analyzer).tokens(text)
        return self._index.analyze(text, analyzer=analyzer)[-1].tokens

    def has_tokens(self, analyzer: str, text: str) -> bool:
        """Return whether an analyzer leaves tokens of a text; True if the user may not analyze on the server.

        Raises:
            EngineError: the engine failed.
        """
        try:
            return bool(self.tokens(analyzer, text))
        except (EngineBusy, Replaced):
            raise
        except EngineRefused:
            return True

    def removes_stop_word(self, analyzer: str, text: str) -> bool:
        """Return whether the first step of an analyzer without tokens of a text is a filter of stop words.

        Raises:
            EngineError: the engine failed or rejected the text.
        """
        steps: Sequence[AnalysisStep] = ()
        if not self._index.is_local and self._registry is not None:
            with suppress(NotSupported):
                steps = self._registry.analyzer(analyzer).steps(text)
        for step in steps or self._index.analyze(text, analyzer=analyzer):
            if step.kind != "char_filter" and not step.tokens:
                analysis = self._mapping.get("settings", {}).get("analysis", {})
                described = analysis.get("filter", {}).get(step.name, {})
                if step.kind == "analyzer":  # a built-in one, whose steps are unknown
                    return text.lower() in ENGLISH_STOPWORDS
                return step.kind == "filter" and described.get("type", step.name) == "stop"
        return False

    @cached_property
    def _registry(self) -> AnalysisRegistry | None:
        """The index's analyzers; None if only Elasticsearch supports all their parts."""
        # It imports NumPy, which completion does without.
        from searchapp.lucene.index.mapping import analyzers_of

        try:
            return analyzers_of(self._mapping)
        except (NotSupported, BadSettings):
            return None


# The displayed field, with its sub-fields, unless `displayed_fields` returns others.
TEXT = "text"

# The least weight of a marked term, as a share of the greatest weight.
MIN_WEIGHT_SHARE = 0.4

Query = Mapping[str, Any]

# A word of a query: the query's text, and the word's range of characters there.
Word = tuple[str, int, int]

# A field and a term of it.
Term = tuple[str, str]


def highlight(index: Index, mapping: Mapping[str, Any], query: Query) -> dict[str, Any]:
    """Return the `highlight` of a search body that marks the query's words with enough weight in the whole text.

    `mapping` is the create-index body of the index.
    """
    marker = Marker(index, TextAnalyzer(index, mapping), mapping)
    request = marker.request_for(query)
    return marker.highlight(request, marker.chosen(request))


# The marked terms of each field; None if they are unknown, which marks the whole query.
ChosenTerms = Mapping[str, Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """The candidates for marks of a query."""

    unchanged: tuple[Query, ...]  # marked unchanged
    words: Mapping[Word, Collection[Term]]  # marked if they have enough weight
    fallback: tuple[Query, ...]  # marked if no word is
    is_parsed: bool = True  # False for a query that can't be parsed

    @property
    def terms(self) -> dict[str, list[str]]:
        terms: defaultdict[str, list[str]] = defaultdict(list)
        for name, term in sorted({each for some in self.words.values() for each in some}):
            terms[name].append(term)
        return terms


class Marker:
    """Chooses the marks of queries in the documents of one version of an index; `mapping` is its create-index body."""

    def __init__(self, index: Index, analyzed: TextAnalyzer, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._analyzed = analyzed
        self._fields = _text_fields(mapping)
        self._last: tuple[Query, HighlightRequest] | None = None

    def request_for(self, query: Query) -> HighlightRequest:
        """Return the candidates for marks of a query, which are the same for all pages of its ranking.

        Raises:
            EngineBusy: the engine is overloaded.
            Replaced: this version of the index no longer exists.
        """
        if self._last is None or self._last[0] != query:
            try:
                request = _highlight_request(self._fields, self._analyzed, query)
            except (EngineBusy, Replaced):
                raise
            except (EngineRefused, AttributeError, KeyError, TypeError, ValueError):
                # More words than the server analyzes in one request, or an invalid query, which the search rejects.
                request = HighlightRequest((), {}, (), is_parsed=False)
            self._last = query, request
        return self._last[1]

    def unknown(self, request: HighlightRequest) -> Terms:
        """Return the terms whose frequencies require a request to a server."""
        return self._index.unknown(request.terms)

    def chosen(self, request: HighlightRequest, unknown: Terms = NO_TERMS) -> ChosenTerms:
        """Return the terms of words with enough weight, and of words with an `unknown` term.

        Raises:
            EngineError: the engine failed.
        """
        try:
            return self._heavy_terms(request, unknown) if request.is_parsed else None
        except (EngineBusy, Replaced):
            raise
        except EngineRefused:  # more terms than the server counts in one request
            return None

    def marked_terms(self, request: HighlightRequest, chosen: ChosenTerms) -> MarkedTerms | None:
        """Return the marks; None if they are unknown or include queries other than words and phrases."""
        phrases: defaultdict[str, list[Sequence[Token]]] = defaultdict(list)
        for query in request.unchanged:
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
                    return None  # at one position, any of several words matches
                phrases[field] += [words] if words else []
        if chosen is None or not (chosen or phrases):
            return None

        def tokens(field: str, text: str) -> Sequence[Token]:
            return self._analyzed.tokens(self._fields[field].analyzer, text)

        return MarkedTerms(chosen, phrases, tokens)

    def highlight(self, request: HighlightRequest, chosen: ChosenTerms) -> dict[str, Any]:
        """Return the `highlight` section of a search body that marks the chosen terms and the unchanged queries."""
        described = {
            "type": "plain",
            "number_of_fragments": 0,
            "pre_tags": [OPEN],
            "post_tags": [CLOSE],
            "fields": {name: {} for name in self._fields},
        }
        if chosen is None:
            return described
        should = [*request.unchanged, *({"terms": {name: terms}} for name, terms in chosen.items())]
        if not chosen:
            should += request.fallback
        query = {"bool": {"should": should}} if should else {"match_none": {}}
        return {**described, "highlight_query": query}

    def _heavy_terms(self, request: HighlightRequest, unknown: Terms) -> dict[str, list[str]]:
        terms = request.terms
        unknown_terms = {(name, term) for name, terms_of_field in unknown.items() for term in terms_of_field}
        counts = self._index.frequencies(
            {
                name: [term for term in terms_of_field if (name, term) not in unknown_terms]
                for name, terms_of_field in terms.items()
            }
        )
        document_counts: dict[Term, int] = {}
        always_marked: set[Term] = set()
        for terms_of_field in request.words.values():
            if not unknown_terms.isdisjoint(terms_of_field):
                always_marked.update(terms_of_field)
                continue
            documents = max(counts[name][term] for name, term in terms_of_field)
            if documents:  # a word in no document has no influence on the bound
                document_counts |= {
                    term: max(documents, document_counts.get(term, 0)) for term in terms_of_field
                }
        weights = {
            term: weight(documents, self._index.info.documents) for term, documents in document_counts.items()
        }
        bound = MIN_WEIGHT_SHARE * max(weights.values(), default=0.0)
        return {
            name: chosen
            for name, terms_of_field in terms.items()
            if (
                chosen := [
                    term
                    for term in terms_of_field
                    if (name, term) in always_marked or weights.get((name, term), -1.0) >= bound
                ]
            )
        }


@dataclass(frozen=True, slots=True)
class _Field:
    analyzer: str
    search_analyzer: str
    has_pairs: bool  # whether terms can span several words


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that a query matches one by one in a field."""

    field: str
    text: str
    analyzer: str | None
    query: Query  # the query for these words alone


def _highlight_request(
    fields: Mapping[str, _Field], analyzed: TextAnalyzer, query: Query
) -> HighlightRequest:
    words: list[_Words] = []
    unchanged: list[Query] = []
    for part in _parts(query):
        if not isinstance(part, _Words):
            unchanged.append(part)
        elif part.field in fields:
            words.append(part)
    # Terms of several words are marked only if there are no others: the highlighter marks all text between overlapping
    # terms.
    single_words = [part for part in words if not fields[part.field].has_pairs]
    content_words: defaultdict[Word, set[Term]] = defaultdict(set)
    function_words: defaultdict[Word, set[Term]] = defaultdict(set)
    for part in single_words:
        tokens = analyzed.tokens(part.analyzer or fields[part.field].search_analyzer, part.text)
        if _has_multiword_synonym(tokens):
            unchanged.append(part.query)
            continue
        for token in tokens:
            is_function_word = part.text[token.start : token.end].lower() in ENGLISH_STOPWORDS
            kind = function_words if is_function_word else content_words
            kind[part.text, token.start, token.end].add((part.field, token.term))
    fallback = () if single_words else tuple(part.query for part in words)
    return HighlightRequest(tuple(unchanged), content_words or function_words, fallback)


def _has_multiword_synonym(tokens: Sequence[Token]) -> bool:
    """Return whether a synonym covers several words, which may require a phrase query."""
    return any(
        following.position != token.position and following.start < token.end
        for token, following in pairwise(tokens)
    )


def weight(documents: int, of_all: int) -> float:
    """Return the inverse document frequency of a term.

    >>> round(weight(5, 10), 4), weight(1, 1_000_000) > weight(1000, 1_000_000) > 0
    (0.6931, True)
    """
    return math.log(1 + (of_all - documents + 0.5) / (documents + 0.5))


# Parts of a query

# The keys of compound queries whose queries make a document match.
_INNER = {
    "bool": ("must", "should", "filter"),
    "dis_max": ("queries",),
    "constant_score": ("filter",),
    "boosting": ("positive",),
    "function_score": ("query",),
    "nested": ("query",),
}

# The parameters of a `match` that matches unchanged words one by one.
_BY_WORD = {"query", "analyzer", "boost", "operator", "minimum_should_match", "zero_terms_query", "lenient"}

_SEVERAL = {"fields", "type", "tie_breaker"}
_BY_FIELD = ("best_fields", "most_fields", "cross_fields")


def _parts(query: Query) -> Iterator[_Words | Query]:
    """Yield the words that a query matches one by one, and the other queries that make a document match."""
    (name, content), *_ = query.items()
    if name in _INNER:
        if content.get("boost", 1) != 0:
            for key in _INNER[name]:
                inner = content.get(key, ())
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


# Fields of the mapping

# Token filters and tokenizers whose terms span several words.
_FILTERS_OF_PAIRS = ("shingle", "cjk_bigram", "common_grams")
_TOKENIZERS_OF_PAIRS = ("ngram",)


def index_analyzer(mapping: Query, field: Query) -> str:
    """Return the name of the index analyzer of a text field; `field` is its part of the mapping."""
    analyzers = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    name: str = field.get("analyzer") or ("default" if "default" in analyzers else "standard")
    return name


def search_analyzer(mapping: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    """Return the name of the search analyzer of a text field; `field` is its part of the mapping."""
    analyzers = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    default = next((name for name in ("default_search", "default") if name in analyzers), "standard")
    name: str = field.get("search_analyzer", field.get("analyzer") or default)
    return name


def displayed_fields(mapping: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the fields that form the displayed text."""
    names: Sequence[str] = mapping["mappings"].get("_meta", {}).get(TEXT_FIELDS, (TEXT,))
    return names


def _text_fields(mapping: Mapping[str, Any]) -> dict[str, _Field]:
    analysis = mapping.get("settings", {}).get("analysis", {})
    analyzers = analysis.get("analyzer", {})
    displayed = displayed_fields(mapping)
    return {
        field.name: _Field(
            index_analyzer(mapping, field.described),
            search_analyzer(mapping, field.described),
            _has_pairs(analysis, analyzers.get(index_analyzer(mapping, field.described), {})),
        )
        for field in mapped_fields(mapping["mappings"]["properties"])
        if field.source in displayed and field.type == "text"
    }


def _has_pairs(analysis: Mapping[str, Any], analyzer: Mapping[str, Any]) -> bool:
    filters = analyzer.get("filter", ())
    filters = [filters] if isinstance(filters, str) else filters
    kinds = (analysis.get("filter", {}).get(name, {}).get("type", name) for name in filters)
    tokenizer = str(analyzer.get("tokenizer", ""))
    tokenizer_type = analysis.get("tokenizer", {}).get(tokenizer, {}).get("type", tokenizer)
    return tokenizer_type in _TOKENIZERS_OF_PAIRS or any(kind in _FILTERS_OF_PAIRS for kind in kinds)
