"""Highlighting: which words of a query are marked in a document, texts with marks, and the snippet a result list shows.

A statement that is a topic shares its little words, its `x` and its `=` with nearly every document, and to mark them
is to mark everything. The weight of a term is its inverse document frequency over all documents of the index,

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N documents have the term

and a term is marked when it has at least two fifths of the weight of the query's heaviest one that any document has.
So a query of nothing but common words still has words marked, and since no weight is above ln(2N), a term in fewer
than about N^(3/5) documents always is. A word of the query is as common as in the field where it is commonest,
whatever terms the fields' analyzers make of it: it is not marked in one place and left out in another.

In short sentences "for" is as rare as "people": no count of documents distinguishes them. So the words of Lucene's
list of English function words are not marked, unless a query has no others.

    S. Robertson, Understanding inverse document frequency, Journal of Documentation 60(5), 2004.

What counts are the fields of the text that the query scores. A field whose terms are pairs of words is left out,
where there is another: two of its terms that stand far from each other overlap what is between them, term by term,
and the highlighter marks all of it. Phrases, prefixes and terms that a query asks for exactly are marked as they are.

`TextAnalyzer` computes the tokens of typed texts here, by the interpreter of analysis settings, also for an index on a
server; only what the interpreter does not know is asked for.
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
"""What a match is put between. Private-use characters: no text has them."""


def unmarked(marked: str) -> tuple[str, list[Span]]:
    """A text without its marks, and the ranges that were marked."""
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
    """What is marked of a query: the chosen terms of each field, and the words of phrases where a phrase stands.

    `tokens` gives what a field's analyzer makes of a text.
    """

    chosen: Mapping[str, Collection[str]]
    phrases: Mapping[str, Sequence[Sequence[Token]]]
    tokens: Callable[[str, str], Sequence[Token]]

    def narrowed(self, highlights: Mapping[str, Sequence[str]]) -> dict[str, list[str]] | None:
        """Highlights in which more terms are marked, with the marks of these alone.

        The highlighter marks tokens that overlap as one: None where that is so, or anything else makes it uncertain
        what it would have marked.
        """
        left: dict[str, list[str]] = {}
        for field, texts in highlights.items():
            for marked in texts:
                text, spans = unmarked(marked)
                tokens = self.tokens(field, text)
                wanted = self._wanted(field, tokens)
                if max(text, default="") > "\uffff" or not {*spans} <= _apart(
                    tokens
                ):  # there offsets count otherwise
                    return None
                kept = [span for span in spans if span in wanted]
                if kept:
                    left.setdefault(field, []).append(_marked(text, kept))
        return left

    def _wanted(self, field: str, tokens: Sequence[Token]) -> set[Span]:
        """Where something is marked."""
        chosen = self.chosen.get(field, ())
        found = {(token.start, token.end) for token in tokens if token.term in chosen}
        for phrase in self.phrases.get(field, ()):
            terms = {word.term for word in phrase}
            for first, last in _occurrences(phrase, tokens):
                inside = (token for token in tokens if first <= token.position <= last)
                found |= {(token.start, token.end) for token in inside if token.term in terms}
        return found


def _occurrences(phrase: Sequence[Token], tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """First and last position of each place where the words of a phrase stand in order.

    There the highlighter allows as many words between as the analyzer left out of the phrase, wherever they are.
    """
    where: defaultdict[str, list[int]] = defaultdict(list)
    for token in tokens:
        where[token.term].append(token.position)
    left_out = phrase[-1].position - phrase[0].position - len(phrase) + 1
    for first in where[phrase[0].term]:
        last, between = first, 0
        for word in phrase[1:]:
            following = next((position for position in where[word.term] if position > last), None)
            if following is None:
                return
            between += following - last - 1
            last = following
        if between <= left_out:
            yield first, last


def _apart(tokens: Sequence[Token]) -> set[Span]:
    """The places of a text at which a token stands, and that none overlaps which stands elsewhere."""
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
    r"""The text on one line, every run of white space one blank, and the matches where they are then.

    >>> squeezed("Let  $G$\nbe a group.", [(14, 19)])
    ('Let $G$ be a group.', [(13, 18)])
    """
    if not _TO_SQUEEZE.search(text):
        return text, list(matches)
    kept: list[str] = []
    places = []  # of each character of the text, and of its end, in the squeezed text
    for character in text:
        places.append(len(kept))
        if not character.isspace():
            kept.append(character)
        elif kept and kept[-1] != " ":
            kept.append(" ")
    places.append(len(kept))
    return "".join(kept).rstrip(), [(places[start], places[end]) for start, end in matches]


def snippet(text: str, matches: Sequence[Span], length: int) -> tuple[str, list[Span]]:
    """At most about `length` characters of the text on one line, chosen to hold as many matches as possible.

    A text that fits is shown whole. A longer one is shown from its beginning if that holds the most matches,
    else from a word somewhat before the first match of the best window. The ranges are those inside the piece.
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
    """Where the window with the most matches begins; the earliest of equals, and the beginning above all."""
    lead = length // 6  # some words before the first match, to read it in its sentence
    best, most = 0, sum(end <= length for _start, end in spans)
    for first, _end in spans:
        begin = max(0, first - lead)
        covered = sum(begin <= start and end <= begin + length for start, end in spans)
        if covered > most:
            best, most = begin, covered
    return line.find(" ", best) + 1 if best else 0


REMEMBERED = 1_000
"""Texts whose tokens are kept."""

LONGEST_REMEMBERED = 1_000
"""Characters of a text that is kept."""


class TextAnalyzer:
    """The tokens of texts on one version of an index, by the names of analyzers.

    Args:
        index: is asked for what is not known here
        mapping: the create-index body of the index
    """

    def __init__(self, index: Index, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._settings = mapping.get("settings", {}).get("analysis", {})
        self._kept: dict[tuple[str, str], Sequence[Token]] = {}

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        """The tokens of a text, as `Index.analyze` ends.

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
        """The analyzers of the index; None where its mapping has what Elasticsearch alone knows."""
        try:
            return AnalysisRegistry(self._settings)
        except (NotSupported, BadSettings):
            return None


TEXT = "text"
"""The field that people read, with its sub-fields."""

SHARE = 0.4
"""The least weight of a term that is marked, as a share of the heaviest one's."""

Query = Mapping[str, Any]

Word = tuple[str, int, int]
"""A word of a query: the text that it stands in, its first character and the one behind its last."""

Term = tuple[str, str]
"""A field and a term of it."""


def highlight(index: Index, mapping: Mapping[str, Any], query: Query) -> dict[str, Any]:
    """The `highlight` of a search body that marks what carries weight in a query, over the whole text.

    `mapping` is the create-index body of the index.
    """
    marker = Marker(index, TextAnalyzer(index, mapping), mapping)
    wanted = marker.wanted(query)
    return marker.highlight(wanted, marker.chosen(wanted))


Chosen = Mapping[str, Sequence[str]] | None
"""The terms of each field that are marked; None where that can't be known, and all that a query asks for is."""


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """What is to be marked of a query: what is marked as it is asked for, and words, if they carry weight.

    `otherwise` is marked where there is nothing else. None of it is known of a query that can't be read.
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
    """Says what is marked of queries in the documents of one version of an index.

    Args:
        index: is asked how many documents have a term
        analyzed: what its analyzers make of the words
        mapping: the create-index body of the index
    """

    def __init__(self, index: Index, analyzed: TextAnalyzer, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._analyzed = analyzed
        self._fields = _text_fields(mapping)
        self._last: tuple[Query, HighlightRequest] | None = None

    def wanted(self, query: Query) -> HighlightRequest:
        """What is to be marked of a query, which is the same for all pages of its ranking.

        Raises:
            EngineBusy: the engine has too much to do
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
        """The terms whose frequencies a server would have to be asked for."""
        return self._index.unknown(wanted.terms)

    def chosen(self, wanted: HighlightRequest, unknown: Terms = NO_TERMS) -> Chosen:
        """The terms of the wanted words that carry weight.

        Those of words with a term that is `unknown` are among them, whatever they weigh: nobody is asked for it.

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
        """What is marked; None where that is not only words and phrases, or not known."""
        phrases: defaultdict[str, list[Sequence[Token]]] = defaultdict(list)
        for query in wanted.as_asked:
            (name, content), *_ = query.items()
            if name == "match_none":
                continue
            if name != "match_phrase":
                return None
            ((field, given),) = content.items()
            if not isinstance(given, Mapping) or given.keys() - {"query", "boost"} or given.get("boost") == 0:
                return None
            if field in self._fields:
                words = self._analyzed.tokens(self._fields[field].search_analyzer, str(given["query"]))
                if len({word.position for word in words}) < len(words):
                    return None  # of words at one place any will do
                phrases[field] += [words] if words else []
        if chosen is None or not (chosen or phrases):
            return None

        def tokens(field: str, text: str) -> Sequence[Token]:
            return self._analyzed.tokens(self._fields[field].analyzer, text)

        return MarkedTerms(chosen, phrases, tokens)

    def highlight(self, wanted: HighlightRequest, chosen: Chosen) -> dict[str, Any]:
        """The `highlight` of a search body that marks what is wanted, and of its words the chosen terms."""
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
        """The terms of each field whose words carry weight."""
        terms = wanted.terms
        left_out = {(name, term) for name, some in unknown.items() for term in some}
        counts = self._index.frequencies(
            {name: [term for term in some if (name, term) not in left_out] for name, some in terms.items()}
        )
        most: dict[Term, int] = {}
        always: set[Term] = set()
        for some in wanted.words.values():
            if not left_out.isdisjoint(some):
                always.update(some)
                continue
            documents = max(counts[name][term] for name, term in some)
            if documents:  # a word that no document has decides nothing
                most |= {term: max(documents, most.get(term, 0)) for term in some}
        weights = {term: weight(documents, self._index.info.documents) for term, documents in most.items()}
        bound = SHARE * max(weights.values(), default=0.0)
        return {
            name: chosen
            for name, some in terms.items()
            if (
                chosen := [
                    one for one in some if (name, one) in always or weights.get((name, one), -1.0) >= bound
                ]
            )
        }


@dataclass(frozen=True, slots=True)
class _Field:
    """What analyzes documents and queries in a field, and whether the field's terms reach over several words."""

    analyzer: str
    search_analyzer: str
    has_pairs: bool


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that a query looks for in a field, each by itself; `query` is what asks for them."""

    field: str
    text: str
    analyzer: str | None
    query: Query


def _wanted(fields: Mapping[str, _Field], analyzed: TextAnalyzer, query: Query) -> HighlightRequest:
    """What is to be marked of a query."""
    words: list[_Words] = []
    as_asked: list[Query] = []
    for part in _parts(query):
        if not isinstance(part, _Words):
            as_asked.append(part)
        elif part.field in fields:
            words.append(part)
    alone = [part for part in words if not fields[part.field].has_pairs]
    asked: defaultdict[Word, set[Term]] = defaultdict(set)
    function_words: defaultdict[Word, set[Term]] = defaultdict(set)
    for part in alone:
        tokens = analyzed.tokens(part.analyzer or fields[part.field].search_analyzer, part.text)
        if _lies_over_several(tokens):
            as_asked.append(part.query)
            continue
        for token in tokens:
            is_function_word = part.text[token.start : token.end].lower() in ENGLISH_STOPWORDS
            kind = function_words if is_function_word else asked
            kind[part.text, token.start, token.end].add((part.field, token.term))
    otherwise = () if alone else tuple(part.query for part in words)
    return HighlightRequest(tuple(as_asked), asked or function_words, otherwise)


def _lies_over_several(tokens: Sequence[Token]) -> bool:
    """Whether a synonym is laid over several words, which may ask for a phrase then."""
    return any(
        following.position != one.position and following.start < one.end
        for one, following in pairwise(tokens)
    )


def weight(documents: int, of_all: int) -> float:
    """The inverse document frequency of a term that is in this many documents.

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
"""Queries made of others, and where those are that make a document match."""

_BY_WORD = {"query", "analyzer", "boost", "operator", "minimum_should_match", "zero_terms_query", "lenient"}
"""The parameters of a `match` that looks for the words as they are, one by one."""

_SEVERAL = {"fields", "type", "tie_breaker"}
_BY_FIELD = ("best_fields", "most_fields", "cross_fields")


def _parts(query: Query) -> Iterator[_Words | Query]:
    """The words that a query looks for one by one, and whatever else in it makes a document match."""
    (name, content), *_ = query.items()
    if name in _INNER:
        if content.get("boost", 1) != 0:
            for place in _INNER[name]:
                inner = content.get(place, ())
                for one in [inner] if isinstance(inner, Mapping) else inner:
                    yield from _parts(one)
    elif name == "match":
        ((field, given),) = content.items()
        given = given if isinstance(given, Mapping) else {"query": given}
        yield from _words(query, [field], given, given.keys() <= _BY_WORD)
    elif name == "multi_match":
        fields = [content["fields"]] if isinstance(content["fields"], str) else content["fields"]
        plain = content.keys() <= _BY_WORD | _SEVERAL and content.get("type", _BY_FIELD[0]) in _BY_FIELD
        plain = plain and not any("*" in field for field in fields)
        yield from _words(query, [field.partition("^")[0] for field in fields], content, plain)
    else:
        yield query


def _words(query: Query, fields: Sequence[str], given: Query, is_plain: bool) -> Iterator[_Words | Query]:
    if given.get("boost", 1) == 0:
        return
    if not is_plain or not isinstance(given["query"], str):
        yield query
        return
    for field in fields:
        described = {**{key: given[key] for key in ("query", "analyzer") if key in given}}
        yield _Words(field, given["query"], given.get("analyzer"), {"match": {field: described}})


# What the mapping says

_FILTERS_OF_PAIRS = ("shingle", "cjk_bigram", "common_grams")
_TOKENIZERS_OF_PAIRS = ("ngram",)
"""What makes terms that reach over several words."""


def index_analyzer(mapping: Query, field: Query) -> str:
    """The name of what analyzes the documents in a text field, which `field` describes as the mapping does."""
    own = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    named: str = field.get("analyzer") or ("default" if "default" in own else "standard")
    return named


def search_analyzer(mapping: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    """The name of what analyzes queries in a text field, which `field` describes as the mapping does."""
    own = mapping.get("settings", {}).get("analysis", {}).get("analyzer", {})
    unnamed = next((name for name in ("default_search", "default") if name in own), "standard")
    named: str = field.get("search_analyzer", field.get("analyzer") or unnamed)
    return named


def _text_fields(mapping: Mapping[str, Any]) -> dict[str, _Field]:
    """The field that people read and its sub-fields, those of the type `text`."""
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
