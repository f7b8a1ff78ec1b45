"""Which words of a query are marked in a document: those that carry weight.

A statement that is a topic shares its little words, its `x` and its `=` with nearly every document, and to mark them is
to mark everything. The weight of a term is its inverse document frequency over all documents of the index,

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))        n of the N documents have the term

and a term is marked when it has at least two fifths of the weight of the query's heaviest one that any document has.
So a query of nothing but common words still has words marked, and since no weight is above ln(2N), a term in fewer
than about N^(3/5) documents always is. A word of the query is as common as in the field where it is commonest,
whatever terms the fields' analyzers make of it: it is not marked in one place and left out in another.

In short sentences "for" is as rare as "people": no count of documents distinguishes them. So the words of Lucene's list
of English function words are not marked, unless a query has no others.

    S. Robertson, Understanding inverse document frequency, Journal of Documentation 60(5), 2004.

What counts are the fields of the text that the query scores. A field whose terms are pairs of words is left out, where
there is another: two of its terms that stand far from each other overlap what is between them, term by term, and the
highlighter marks all of it. Phrases, prefixes and terms that a query asks for exactly are marked as they are.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from searchapp.analysis.term_filters import ENGLISH_STOPWORDS
from searchapp.engines.base import Index
from searchapp.errors import EngineBusy, EngineRefused, Replaced
from searchapp.model import Token

TEXT = "text"
"""The field that people read, with its sub-fields."""

OPEN, CLOSE = "\ue000", "\ue001"
"""What a match is put between. Private-use characters: no text has them."""

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
    fields = _text_fields(mapping)
    described = {
        "type": "plain",
        "number_of_fragments": 0,
        "pre_tags": [OPEN],
        "post_tags": [CLOSE],
        "fields": {name: {} for name in fields},
    }
    try:
        return {**described, "highlight_query": _weighty(index, fields, query)}
    except (EngineBusy, Replaced):
        raise
    except (EngineRefused, AttributeError, KeyError, TypeError, ValueError):
        # More words than the server analyzes at once; or a query that makes no sense, which the search will refuse.
        return described


@dataclass(frozen=True, slots=True)
class _Field:
    """What analyzes a query in a field, and whether the field's terms reach over several words."""

    search_analyzer: str
    has_pairs: bool


@dataclass(frozen=True, slots=True)
class _Words:
    """Words that a query looks for in a field, each by itself; `query` is what asks for them."""

    field: str
    text: str
    analyzer: str | None
    query: Query


def _weighty(index: Index, fields: Mapping[str, _Field], query: Query) -> dict[str, Any]:
    """A query for what is to be marked of another one."""
    words: list[_Words] = []
    wanted: list[Query] = []
    for part in _parts(query):
        if not isinstance(part, _Words):
            wanted.append(part)
        elif part.field in fields:
            words.append(part)
    alone = [part for part in words if not fields[part.field].has_pairs]
    asked: defaultdict[Word, set[Term]] = defaultdict(set)
    function_words: defaultdict[Word, set[Term]] = defaultdict(set)
    analyzed: dict[tuple[str, str], Sequence[Token] | None] = {}
    for part in alone:
        key = part.analyzer or fields[part.field].search_analyzer, part.text
        if key not in analyzed:
            analyzed[key] = _tokens(index, *key)
        tokens = analyzed[key]
        if tokens is None:
            wanted.append(part.query)
        for token in tokens or ():
            is_function_word = part.text[token.start : token.end].lower() in ENGLISH_STOPWORDS
            kind = function_words if is_function_word else asked
            kind[part.text, token.start, token.end].add((part.field, token.term))
    heaviest = _heaviest(index, asked or function_words)
    wanted += [{"terms": {field: chosen}} for field, chosen in heaviest.items()] or [
        part.query for part in words if not alone
    ]
    return {"bool": {"should": wanted}} if wanted else {"match_none": {}}


def _tokens(index: Index, analyzer: str, text: str) -> Sequence[Token] | None:
    """The tokens of a text; None where a synonym is laid over several words, which may ask for a phrase then."""
    tokens = index.analyze(text, analyzer=analyzer)[-1].tokens
    for one, following in pairwise(tokens):
        if following.position != one.position and following.start < one.end:
            return None
    return tokens


def _heaviest(index: Index, asked: Mapping[Word, Collection[Term]]) -> dict[str, list[str]]:
    """The terms of each field whose words carry weight."""
    terms: defaultdict[str, list[str]] = defaultdict(list)
    for field, term in sorted({each for some in asked.values() for each in some}):
        terms[field].append(term)
    counts = index.frequencies(terms)
    most: Counter[Term] = Counter()
    for some in asked.values():
        documents = max(counts[field][term] for field, term in some)
        most |= Counter(
            dict.fromkeys(some, documents)
        )  # which keeps what occurs, and the greater of two counts
    weights = {term: weight(documents, index.info.documents) for term, documents in most.items()}
    bound = SHARE * max(weights.values(), default=0.0)
    return {
        field: chosen
        for field, some in terms.items()
        if (chosen := [term for term in some if weights.get((field, term), -1.0) >= bound])
    }


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
    default = "default" if "default" in own else "standard"
    main = mapping["mappings"]["properties"].get(TEXT, {})
    sub_fields = {f"{TEXT}.{name}": field for name, field in main.get("fields", {}).items()}
    found = {}
    for name, field in {TEXT: main, **sub_fields}.items():
        if field.get("type") == "text":
            analyzer = field.get("analyzer")
            found[name] = _Field(
                search_analyzer(mapping, field),
                _has_pairs(analysis, own.get(analyzer or default, {})),
            )
    return found


def _has_pairs(analysis: Mapping[str, Any], analyzer: Mapping[str, Any]) -> bool:
    filters = analyzer.get("filter", ())
    filters = [filters] if isinstance(filters, str) else filters
    kinds = (analysis.get("filter", {}).get(name, {}).get("type", name) for name in filters)
    tokenizer = str(analyzer.get("tokenizer", ""))
    cut = analysis.get("tokenizer", {}).get(tokenizer, {}).get("type", tokenizer)
    return cut in _TOKENIZERS_OF_PAIRS or any(kind in _FILTERS_OF_PAIRS for kind in kinds)
