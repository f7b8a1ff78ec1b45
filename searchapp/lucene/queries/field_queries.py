"""Fields of a query language by names and patterns, and the queries of a word, phrase or prefix in several fields.

org.elasticsearch.index.search.{QueryParserHelper, MultiMatchQueryParser}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.mapping import KEYWORD, METADATA, Field
from searchapp.lucene.queries.boolean import Bool, DisMax
from searchapp.lucene.queries.fulltext import NAMELESS, lenient_query, of_text
from searchapp.lucene.queries.fuzzy import Fuzziness
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import Parser, Query, apply_boost, multiply_boosts
from searchapp.lucene.queries.term import Synonym, of_prefix

Boosts = Mapping[str, float]  # by the names of fields

EVERY_FIELD = "*"

# Fields that no text can be searched for.
_WITHOUT_TERMS = ("the type binary", "the type geo_point")


def matching_boosts(
    parser: Parser, named: Boosts, suffix: str = "", *, takes_all: bool = False
) -> dict[str, float]:
    """Return the fields that names and patterns match, with the products of their boosts.

    Args:
        suffix: replaces a field by the one with this end of the name, if the mapping has it.
        takes_all: whether a pattern matches fields that have no terms too.
    """
    boosts: dict[str, float] = {}
    for pattern, weight in named.items():
        own: dict[str, float] = {}
        names = set(_matching_names(parser, pattern))
        for name in sorted(names):
            if suffix and parser.field(name + suffix) is not None:
                name += suffix
            concrete = parser.reader.schema.aliases.get(name, name)
            if takes_all or "*" not in pattern or _has_terms(parser, concrete):
                parser.field(name)  # reject a field that is not searched
                name = concrete if concrete in names else name
                own[name] = multiply_boosts(own.get(name, 1.0), weight)
        for name, boost in own.items():
            boosts[name] = multiply_boosts(boost, boosts.get(name, 1.0))
    return boosts


def _matching_names(parser: Parser, pattern: str) -> Iterator[str]:
    if "*" not in pattern:
        if parser.field(pattern or NAMELESS) is not None:
            yield pattern
        return
    matches = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL).fullmatch
    if pattern != EVERY_FIELD and any(map(matches, METADATA)):
        raise unsupported(
            f"the pattern `{pattern}` for the names of fields, which matches fields of Elasticsearch,"
        )
    schema = parser.reader.schema
    fields = [name for name, field in schema.fields.items() if not field.is_keyed]
    yield from filter(matches, (*fields, *schema.unsearched, *schema.aliases))


def _has_terms(parser: Parser, name: str) -> bool:
    """Return whether a document of the index has a term or number in a field."""
    reader = parser.reader
    if reader.schema.unsearched.get(name) in _WITHOUT_TERMS:
        return False
    if unindexed := reader.schema.unindexed.get(name):
        return (
            unindexed.has_doc_values
            and not unindexed.is_text
            and not unindexed.is_geometry
            and not unindexed.is_vector
        )
    if name not in reader.fields:
        return True
    if reader.fields[name].field.is_geometry or reader.fields[name].field.is_vector:
        return False
    return (
        reader.sum_of_parts(len(reader.fields[name].present), lambda part: len(part.fields[name].present)) > 0
    )


@dataclass(frozen=True, slots=True)
class FieldQueries:
    """Makes the queries of words, phrases and patterns in several fields; None if analyzers leave no term."""

    parser: Parser
    name: str  # of the query
    kind: str  # a type of `multi_match`
    operator: str
    analyzer: str | None
    is_lenient: bool
    analyzes_wildcards: bool
    fuzziness: Fuzziness
    normalizes_terms: bool = True  # also those that the analyzer made of a prefix
    tie_breaker: float = 1.0
    phrase_tie_breaker: float = 0.0
    slop: int = 0  # of phrases without their own
    generates_phrases: bool = True  # of synonyms of several words

    def words(self, boosts: Boosts, text: str) -> Query | None:
        return self._texts(boosts, text, self.kind, self.slop, self.analyzer, self.tie_breaker)

    def phrase(self, boosts: Boosts, text: str, slop: int, analyzer: str | None) -> Query | None:
        return self._texts(boosts, text, "phrase", slop, analyzer, self.phrase_tie_breaker)

    def _texts(
        self, boosts: Boosts, text: str, kind: str, slop: int, analyzer: str | None, tie_breaker: float
    ) -> Query | None:
        if slop < 0:
            raise unsupported(f"the slop {slop} of a phrase in the query `{self.name}`")

        def of_field(field: Field) -> Query | None:
            return of_text(
                self.parser,
                field,
                text,
                kind,
                operator=self.operator,
                analyzer=analyzer,
                slop=slop,
                generates_phrases=self.generates_phrases,
            )

        return self.combined(boosts, of_field, tie_breaker)

    def fuzzy(self, boosts: Boosts, text: str, fuzziness: Any = None) -> Query | None:
        """Return the query for words that resemble one; `fuzziness` replaces that of the query."""
        own = self.fuzziness if fuzziness is None else Fuzziness.read({"fuzziness": fuzziness})
        assert own is not None
        edits = own.edits(text)

        def of_field(field: Field) -> Query:
            name = self.analyzer or field.search_analyzer
            return self.fuzziness.query(field, self.normalized(name, text) if name else text, edits)

        return self.combined(boosts, of_field)

    def prefix(self, boosts: Boosts, text: str) -> Query | None:
        return self.combined(boosts, lambda field: self.prefix_of(field, text))

    def prefix_of(self, field: Field, text: str) -> Query | None:
        name = self.analyzer or field.search_analyzer
        if self.analyzes_wildcards and not field.is_text and (self.analyzer or field.type != KEYWORD):
            raise unsupported(f"`analyze_wildcard` on {field.name}, which is {field.type},")
        if name is None:
            return of_prefix(field, text)
        if not self.analyzes_wildcards:
            return of_prefix(field, self.normalized(name, text))
        positions = [terms for _position, terms in self.parser.terms(name, text)]
        if not positions:
            return None
        if self.normalizes_terms:
            positions = [[self.normalized(name, term) for term in terms] for terms in positions]
        *others, last = positions
        prefixes = [of_prefix(field, term) for term in last]
        if len(prefixes) == 1 and not others:
            return prefixes[0]
        synonyms = [Synonym(field.name, tuple(sorted(terms))) for terms in others]
        last_clause = prefixes[0] if len(prefixes) == 1 else Bool(should=tuple(prefixes))
        return joined(self.operator, [*synonyms, last_clause])

    def normalized(self, analyzer: str, text: str) -> str:
        """Return a text changed only by filters of characters."""
        return self.parser.analyzers.analyzer(analyzer).normalized(text)

    def combined(
        self, boosts: Boosts, make: Callable[[Field], Query | None], tie_breaker: float | None = None
    ) -> Query | None:
        """Return the best match in one of the fields."""
        queries = []
        for name, boost in boosts.items():
            field = self.parser.field(name)
            assert field is not None
            query = self._of_field(field, make)
            if query is not None:
                queries.append(apply_boost(query, boost))
        if len(queries) > 1:
            tie_breaker = self.tie_breaker if tie_breaker is None else tie_breaker
            return DisMax(tuple(queries), parameters.share(tie_breaker, "tie_breaker"))
        return queries[0] if queries else None if boosts else MatchNone(late=True)

    def _of_field(self, field: Field, make: Callable[[Field], Query | None]) -> Query | None:
        if not self.is_lenient:
            return make(field)
        return lenient_query(field, self.analyzer, lambda: make(field))


# Parameters of `Fuzziness.read` by their names in query languages.
FUZZY = {
    "fuzzy_prefix_length": "prefix_length",
    "fuzzy_max_expansions": "max_expansions",
    "fuzzy_transpositions": "fuzzy_transpositions",
}


def fuzziness_of(options: Mapping[str, Any]) -> Fuzziness:
    """Return the fuzziness of a query in a language, by default `AUTO`."""
    fuzziness = Fuzziness.read({FUZZY.get(name, name): value for name, value in options.items()}, "AUTO")
    assert fuzziness is not None
    return fuzziness


def joined(operator: str, clauses: Sequence[Query]) -> Bool:
    """Return clauses that must all match with the operator `and`, otherwise at least one."""
    return Bool(must=tuple(clauses)) if operator == "and" else Bool(should=tuple(clauses))
