"""Queries that analyze text: `match`, `match_phrase`, `multi_match`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from searchapp.engines.embedded.queries import graph, minimum_should_match, parameters
from searchapp.engines.embedded.queries.nodes import (
    Bag,
    Bool,
    DisMax,
    MatchAll,
    MatchNone,
    Phrase,
    Query,
    Synonym,
    Term,
)
from searchapp.engines.embedded.queries.parse import Parser, boosted, multiplied_by, reads, required
from searchapp.engines.embedded.queries.termlevel import of_number
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Field

_MATCH = ("operator", "minimum_should_match", "analyzer", "zero_terms_query")
_ZERO_TERMS: dict[str, Query] = {"none": MatchNone(late=True), "all": MatchAll()}
_TIE_BREAKERS = {"best_fields": 0.0, "most_fields": 1.0}


@dataclass(frozen=True, slots=True)
class _Matching:
    """How a text is matched in a field: all that a query says but the text. No `field`: nothing matches."""

    field: Field | None
    analyzer: str | None
    operator: str
    minimum: int | str | None
    zero_terms: Query
    boost: float

    @classmethod
    def read(cls, parser: Parser, name: str, given: Mapping[str, Any], query: str) -> _Matching:
        field = parser.field(name)
        with_minimum(Bool(), given.get("minimum_should_match"))  # refused even where it plays no part
        analyzer = _analyzer(given) or (field.search_analyzer if field else None)
        return cls(
            field,
            analyzer,
            parameters.choice(given.get("operator", "or"), ("or", "and"), f"`operator` of `{query}`"),
            given.get("minimum_should_match"),
            _zero_terms(given),
            parameters.boost(given.get("boost", 1), f"the query `{query}`"),
        )

    def query(self, parser: Parser, words: Any) -> Query:
        """The query for a text, without its boost."""
        field = self.field
        if field is None:
            return MatchNone(late=True)
        if field.is_number:
            return of_number(field, words)
        text = parameters.text(words, f"the text for {field.name}")
        if self.analyzer is None:
            return Term(field.name, text)
        branching = _graph(parser, self.analyzer, text)
        if branching is not None:
            return with_minimum(_branching(field, branching, self.operator), self.minimum)
        if self.operator == "or" and self.minimum is None:
            different = parser.different_terms(self.analyzer, text)
            if different is not None and len(different) > 1:
                return Bag(field.name, different)
        positions = parser.terms(self.analyzer, text)
        if not positions:
            return self.zero_terms
        if _is_single(positions):
            return _stacked(field, positions[0][1])
        clauses = tuple(_stacked(field, terms) for _position, terms in positions)
        found = Bool(must=clauses) if self.operator == "and" else Bool(should=clauses)
        return with_minimum(found, self.minimum)


@reads("match")
def match(parser: Parser, content: Any) -> Query:
    """The terms of a text in one field."""

    def read(name: str, given: Mapping[str, Any]) -> _Matching:
        return _Matching.read(parser, name, parser.options(given, "match", ("query", *_MATCH)), "match")

    name, given = parameters.single(content, "the query `match`")
    if not isinstance(given, Mapping):
        given = {"query": given}
    matching = parser.remembered(name, given, "query", read)
    return multiplied_by(matching.query(parser, required(given, "query", "match")), matching.boost)


@reads("match_phrase")
def match_phrase(parser: Parser, content: Any) -> Query:
    """The terms of a text, one right after the other."""
    known = ("slop", "analyzer", "zero_terms_query")
    name, given = parser.on_field(content, "match_phrase", "query", known)
    if str(given.get("slop", 0)) != "0":
        raise unsupported(f"`slop: {given['slop']}` of the query `match_phrase`, only 0")
    _zero_terms(given)  # refused even where it plays no part
    query = _phrase(parser, name, required(given, "query", "match_phrase"), given)
    return boosted(query, given, "match_phrase")


@reads("multi_match")
def multi_match(parser: Parser, content: Any) -> Query:
    """The terms of a text in several fields."""
    given = parser.options(content, "multi_match", ("query", "fields", "type", "tie_breaker", *_MATCH))
    kind = str(given.get("type", "best_fields"))
    if kind not in _TIE_BREAKERS:
        raise unsupported(f"`type: {kind}` of the query `multi_match`")
    fields = required(given, "fields", "multi_match")
    words = required(given, "query", "multi_match")
    queries = []
    for described in [fields] if isinstance(fields, str) else parameters.listed(fields, "`fields`"):
        name, caret, boost = parameters.name(described, "a field of the query `multi_match`").partition("^")
        query = _Matching.read(parser, name, given, "multi_match").query(parser, words)
        queries.append(boosted(query, {"boost": boost} if caret else {}, f"multi_match` on `{name}"))
    if not queries:
        raise unsupported("the query `multi_match` without fields")
    tie_breaker = parameters.share(given.get("tie_breaker", _TIE_BREAKERS[kind]), "tie_breaker")
    best = queries[0] if len(queries) == 1 else DisMax(tuple(queries), tie_breaker)
    return boosted(best, given, "multi_match")


def _phrase(parser: Parser, name: str, words: Any, given: Mapping[str, Any]) -> Query:
    field = parser.field(name)
    if field is None:
        return MatchNone(late=True)
    positions = _terms(parser, field, words, given)
    if positions is None:
        return of_number(field, words)
    if not positions:
        return _zero_terms(given)
    if _is_single(positions):
        return _stacked(field, positions[0][1])
    if not field.is_text:
        raise invalid(
            f"`match_phrase` on {name}, which is no text, with an analyzer that makes several terms"
        )
    if any(len(terms) > 1 for _position, terms in positions):
        raise unsupported(f"`match_phrase` on {name}, whose analyzer puts several terms on one position,")
    terms = tuple(terms[0] for _position, terms in positions)
    return Phrase(field.name, terms, tuple(position for position, _terms in positions))


def _terms(
    parser: Parser, field: Field, words: Any, given: Mapping[str, Any]
) -> list[tuple[int, list[str]]] | None:
    """The terms of a text on each position, ascending; None for a field of numbers, which has none."""
    if field.is_number:
        return None
    text = parameters.text(words, f"the text for {field.name}")
    analyzer = _analyzer(given) or field.search_analyzer
    if analyzer is None:
        return [(0, [text])]
    if _graph(parser, str(analyzer), text) is not None:
        raise unsupported(
            f"`match_phrase` on {field.name}, whose analyzer lays a synonym over several words,"
        )
    return parser.terms(str(analyzer), text)


def _graph(parser: Parser, analyzer: str, text: str) -> list[tuple[str, int, int]] | None:
    """Terms, positions and lengths in positions of a text, if several tokens make a graph of it."""
    found = parser.analyzers.analyzer(analyzer)
    tokens = found.graph(text) if found.branches else None
    return tokens if tokens and len(tokens) > 1 else None


def _is_single(positions: list[tuple[int, list[str]]]) -> bool:
    """Whether there is but one position; to Elasticsearch, holes before several terms count as some more."""
    position, terms = positions[0]
    return len(positions) == 1 and (len(terms) == 1 or position == 0)


def _branching(field: Field, tokens: list[tuple[str, int, int]], operator: str) -> Bool:
    """The query of a text with synonyms that reach over several words: each part is read in one of its ways."""
    clauses: list[Query] = []
    for part in graph.parts(tokens):
        if part.stacked:
            clauses.append(_stacked(field, [term for ((term, _step),) in part.paths]))
        else:
            ways = tuple(_path(field, path) for path in part.paths)
            clauses.append(Bool(should=ways) if len(ways) > 1 else ways[0])
    return Bool(must=tuple(clauses)) if operator == "and" else Bool(should=tuple(clauses))


def _path(field: Field, path: tuple[graph.Step, ...]) -> Query:
    """One way to read a part of a text: a phrase, or all of its terms in a field that knows no positions."""
    terms = tuple(term for term, _step in path)
    if len(terms) == 1:
        return Term(field.name, terms[0])
    if not field.is_text:
        return Bool(must=tuple(Term(field.name, term) for term in terms))
    steps = (0, *(step for _term, step in path[1:]))
    return Phrase(field.name, terms, tuple(accumulate(steps)))


def _stacked(field: Field, terms: list[str]) -> Query:
    """The terms of one position."""
    if len(terms) == 1:
        return Term(field.name, terms[0])
    return Synonym(field.name, tuple(sorted(terms)))


def _analyzer(given: Mapping[str, Any]) -> str | None:
    return parameters.name(given["analyzer"], "`analyzer`") if "analyzer" in given else None


def _zero_terms(given: Mapping[str, Any]) -> Query:
    return _ZERO_TERMS[
        parameters.choice(given.get("zero_terms_query", "none"), tuple(_ZERO_TERMS), "zero_terms_query")
    ]


def with_minimum(query: Bool, specification: Any) -> Bool:
    """The query with its `minimum_should_match`, if it has one."""
    if specification is None:
        return query
    if isinstance(specification, bool) or not isinstance(specification, int | str):
        raise invalid(f"minimum_should_match must be a number or text, not {specification!r}")
    minimum = minimum_should_match.required(len(query.should), str(specification))
    return Bool(query.must, query.must_not, query.should, query.filter, minimum)
