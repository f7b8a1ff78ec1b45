"""Queries that analyze text: `match`, `match_phrase`, `multi_match`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries import graph
from searchapp.engines.embedded.queries.boosts import boosted, multiplied_by
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.engines.embedded.queries.leaves.synonym import Synonym
from searchapp.engines.embedded.queries.leaves.term import of_value
from searchapp.engines.embedded.queries.minimum_should_match import with_minimum
from searchapp.engines.embedded.queries.nodes import Bool, DisMax, Query, TermsDisjunction
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.refusals import invalid, unsupported
from searchapp.engines.embedded.schema import Field

_MATCH = ("operator", "minimum_should_match", "analyzer", "zero_terms_query")
_ZERO_TERMS: dict[str, Query] = {"none": MatchNone(late=True), "all": MatchAll(late=True)}
NAMELESS = " "
"""A name that no field has, for a field without a name, which nothing matches."""
_TIE_BREAKERS = {"best_fields": 0.0, "boolean": 0.0, "most_fields": 1.0}


@dataclass(frozen=True, slots=True)
class _Matching:
    """How a text is matched in a field: all that a query says but the text. No `field`: nothing matches."""

    field: Field | None
    analyzer: str | None
    operator: str
    minimum: str | None
    zero_terms: Query
    boost: float

    @classmethod
    def read(cls, parser: Parser, name: str, given: Mapping[str, Any], query: str) -> _Matching:
        field = parser.field(name or NAMELESS)
        parameters.without_null(given, _MATCH, f"the query `{query}`")
        minimum = given.get("minimum_should_match")
        return cls(
            field,
            _analyzer(parser, given) or (field.search_analyzer if field else None),
            parameters.choice(given.get("operator", "or"), ("or", "and"), f"`operator` of `{query}`"),
            None if minimum is None else parameters.raw_text(minimum, "minimum_should_match"),
            _zero_terms(given),
            parameters.boost(given.get("boost", 1), f"the query `{query}`"),
        )

    def query(self, parser: Parser, words: Any) -> Query:
        """The query for a text, without its boost."""
        text = parameters.text(words, "the text of a query")
        field = self.field
        if field is None:
            return MatchNone(late=True)
        if self.analyzer is None:
            return of_value(field, words)
        branching = _graph(parser, self.analyzer, text)
        if branching is not None:
            return with_minimum(_branching(field, branching, self.operator), self.minimum)
        if self.operator == "or" and self.minimum is None and not field.is_number:
            different = parser.different_terms(self.analyzer, text)
            if different is not None and len(different) > 1:
                return TermsDisjunction(field.name, different)
        positions = parser.terms(self.analyzer, text)
        if not positions:
            return self.zero_terms
        if _is_single(positions):
            return _stacked(field, positions[0][1])
        clauses = tuple(_stacked(field, terms) for _position, terms in positions)
        found = Bool(must=clauses) if self.operator == "and" else Bool(should=clauses)
        return with_minimum(found, self.minimum)


def match(parser: Parser, content: Any) -> Query:
    """The terms of a text in one field."""

    def read(name: str, given: Mapping[str, Any]) -> _Matching:
        return _Matching.read(parser, name, parser.options(given, "match", ("query", *_MATCH)), "match")

    name, given = parameters.single(content, "the query `match`")
    holder, key = given, "query"
    if not isinstance(given, Mapping):
        holder, key = content, name
        given = {"query": given}
    matching = parser.remembered(name, given, "query", read)
    required(given, "query", "match")
    return multiplied_by(parser.note(holder, key, partial(matching.query, parser)), matching.boost)


def match_phrase(parser: Parser, content: Any) -> Query:
    """The terms of a text, one right after the other."""
    known = ("slop", "analyzer", "zero_terms_query")
    name, given = parser.on_field(content, "match_phrase", "query", known)
    parameters.without_null(given, known, "the query `match_phrase`")
    if parameters.integer(given.get("slop", 0), "`slop`") != 0:
        raise unsupported(f"`slop: {given['slop']}` of the query `match_phrase`, only 0")
    _zero_terms(given)  # refused even where it plays no part
    query = _phrase(parser, name, required(given, "query", "match_phrase"), given)
    return boosted(query, given, "match_phrase")


def multi_match(parser: Parser, content: Any) -> Query:
    """The terms of a text in several fields; fields that the mapping has not are left out."""
    known = ("query", "fields", "type", "tie_breaker", *_MATCH)
    given = parser.options(content, "multi_match", known)
    parameters.without_null(given, known, "the query `multi_match`")
    kind = parameters.raw_text(given.get("type", "best_fields"), "`type` of the query `multi_match`")
    if kind not in _TIE_BREAKERS:
        raise unsupported(f"`type: {kind}` of the query `multi_match`")
    boosts = _fields(given.get("fields", ()))
    words = required(given, "query", "multi_match")
    tie_breaker = parameters.signless(given.get("tie_breaker", _TIE_BREAKERS[kind]), "tie_breaker")
    parameters.text(words, "the text of a query")  # refused even where nothing matches
    queries = []
    for name, boost in boosts.items():
        matching = _Matching.read(parser, name, given, "multi_match")
        if matching.field is not None:
            queries.append(multiplied_by(matching.query(parser, words), boost))
    if not queries:
        best: Query = MatchNone(late=True)
    elif len(queries) == 1:
        best = queries[0]
    else:
        best = DisMax(tuple(queries), parameters.share(tie_breaker, "tie_breaker"))
    return boosted(best, given, "multi_match")


def _fields(described: Any) -> dict[str, float]:
    """The fields of a `multi_match` and their boosts; of a field that is named twice the last boost counts."""
    place = "a field of the query `multi_match`"
    boosts: dict[str, Any] = {}
    for one in described if isinstance(described, list | tuple) else [described]:
        name, caret, boost = parameters.raw_text(one, place).partition("^")
        boosts[name] = parameters.any_number(boost, f"the boost of {place}") if caret else 1
    if not boosts:
        raise unsupported("the query `multi_match` without fields")
    return {name: parameters.boost(boost, f"{place}, {name},") for name, boost in boosts.items()}


def _phrase(parser: Parser, name: str, words: Any, given: Mapping[str, Any]) -> Query:
    field = parser.field(name)
    named = _analyzer(parser, given)
    text = parameters.text(words, f"the text for {name}")
    if field is None:
        return MatchNone(late=True)
    analyzer = named or field.search_analyzer
    if analyzer is None:
        return of_value(field, words)
    if _graph(parser, analyzer, text) is not None:
        raise unsupported(
            f"`match_phrase` on {field.name}, whose analyzer lays a synonym over several words,"
        )
    positions = parser.terms(analyzer, text)
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
        return of_value(field, terms[0])
    if not field.is_text:
        return Bool(must=tuple(of_value(field, term) for term in terms))
    steps = (0, *(step for _term, step in path[1:]))
    return Phrase(field.name, terms, tuple(accumulate(steps)))


def _stacked(field: Field, terms: list[str]) -> Query:
    """The terms of one position."""
    if len(terms) == 1:
        return of_value(field, terms[0])
    if field.is_number:
        raise unsupported(f"several terms on one position for {field.name}, which is {field.type},")
    return Synonym(field.name, tuple(sorted(terms)))


def _analyzer(parser: Parser, given: Mapping[str, Any]) -> str | None:
    """The analyzer that a query names, which must exist even where nothing is analyzed with it."""
    if "analyzer" not in given:
        return None
    name = parameters.name(given["analyzer"], "`analyzer`")
    parser.analyzers.analyzer(name)
    return name


def _zero_terms(given: Mapping[str, Any]) -> Query:
    return _ZERO_TERMS[
        parameters.choice(given.get("zero_terms_query", "none"), tuple(_ZERO_TERMS), "zero_terms_query")
    ]
