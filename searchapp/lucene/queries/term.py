"""Queries of indexed terms: `term`, `prefix`, `wildcard`, `range`, and synonyms scored as one term.

`Synonym` has no reader: analysis creates it from several terms on one position.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field as dataclass_field
from functools import lru_cache, partial, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import (
    BOOLEAN,
    DATE,
    FLATTENED,
    IP,
    KEYED,
    PREFIXES,
    RANGES,
    Field,
    Schema,
    indexed_text,
)
from searchapp.lucene.index.reader import FieldReader, IndexReader, Postings
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.queries import ip_range, number_range, ranges
from searchapp.lucene.queries.match_all import Exists, MatchNone
from searchapp.lucene.queries.query import (
    EVERYWHERE,
    Constant,
    Leaf,
    MarkedLeaf,
    Parser,
    PositionSpans,
    Query,
    ScoredLeaf,
    apply_boost_parameter,
    explain_idf,
    frequency_of,
    required,
)
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows
from searchapp.lucene.records import Explanation, Token


@dataclass(frozen=True, slots=True)
class Term(ScoredLeaf):
    """A term, scored by BM25."""

    has_few_documents: ClassVar[bool] = True

    term: str
    # The document frequency to score with if it is not the term's own; Lucene ignores it when it compares queries.
    blended: int | None = dataclass_field(default=None, compare=False)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        if self.blended is None:
            yield self.field, (self.term,), boost

    def row(self, rows: ScoreRows, boost: np.float32) -> ScoreRow:
        if self.blended is None:
            return rows.of_terms(self.field, [self.term], boost)[0]
        return ScoredLeaf.row(self, rows, boost)

    @property
    def score_key(self) -> Hashable:
        return self if self.blended is None else (self, self.blended)

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_with_terms((self.term,))

    def postings(self, field: FieldReader) -> Postings:
        return field.postings(self.term)

    def idf(self, field: FieldReader) -> np.float32:
        return field.idf(self._document_frequency(field))

    def frequency(self, field: FieldReader, document: int) -> float:
        return frequency_of(self.term, field, document)

    def idf_explanation(self, field: FieldReader) -> Explanation:
        return explain_idf(self._document_frequency(field), field.statistics.documents)

    def _document_frequency(self, field: FieldReader) -> int:
        return field.document_frequency(self.term) if self.blended is None else self.blended

    def frequency_notation(self, frequency: np.float32) -> str:
        return "freq, occurrences of term within document"

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:{self.term}"

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return {self.term: EVERYWHERE}


def of_value(field: Field, value: Any) -> Query:
    """Return the query for documents with this exact value, a term, a number or a date."""
    if field.is_number:
        return number_range.of_number(field, value)
    if field.type == IP:
        return ip_range.of_address(field, value)
    return Term(field.name, indexed_term(field, value))


def indexed_term(field: Field, value: Any) -> str:
    """Return the term of a text, keyword or boolean field for a value of a query."""
    text = parameters.term(value, f"the term for {field.name}")
    if field.type == BOOLEAN:
        if text not in ("true", "false"):
            raise invalid(f"{field.name} is a boolean field, but a query searches for {value!r}")
        return indexed_text(text, field)
    return field.normalized(text)


def read_term(parser: Parser, content: Any) -> Query:
    """Read `term`: an indexed term or a number."""
    name, options = parser.on_field(content, "term", "value", ("term",))
    key, value = value_of(options, "term")
    for given, parameter in options.items():
        if isinstance(parameter, Mapping) or (given == "value" and isinstance(parameter, list | tuple)):
            raise invalid(f"the query `term` on {name} needs one value, not {parameter!r}")
    if isinstance(value, list | tuple):  # Elasticsearch searches for a term that no document has
        raise unsupported("a list as `term` of the query `term`")
    parameters.term(value, f"the term for {name}")
    field = parser.field(name, *RANGES)
    if field is None:
        return MatchNone()
    if field.is_range:
        bounds = {"gte": value, "lte": value}
        query = ranges.between(parser, field, bounds, "gte", "lte", None, None, "intersects")
        return apply_boost_parameter(query, options, "term")
    holder, key = (options, key) if isinstance(content[name], Mapping) else (content, name)
    return apply_boost_parameter(parser.read_text(holder, key, partial(of_value, field)), options, "term")


def value_of(options: Mapping[str, Any], query: str) -> tuple[str, Any]:
    """Return the name and the value of `value`, or of its older name, that of the query; the last one counts."""
    key = next((key for key in reversed([*options]) if key in ("value", query)), "value")
    required({"value": options.get(key)}, "value", query)
    return key, options[key]


@dataclass(frozen=True, slots=True)
class Synonym(ScoredLeaf):
    """Terms scored as one: summed frequencies, the greatest document frequency."""

    terms: tuple[str, ...]

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def rewritten(self) -> Leaf:
        return Term(self.field, self.terms[0]) if len(self.terms) == 1 else self

    def postings(self, field: FieldReader) -> Postings:
        postings = [field.postings(term) for term in self.terms]
        documents = reduce(np.union1d, (term.documents for term in postings))
        frequencies = np.zeros(len(documents), np.float32)
        for term in postings:
            frequencies[np.searchsorted(documents, term.documents)] += term.frequencies
        return Postings(documents, frequencies)

    def idf(self, field: FieldReader) -> np.float32:
        return field.idf(self._document_frequency(field))

    def frequency(self, field: FieldReader, document: int) -> float:
        return sum(frequency_of(term, field, document) for term in self.terms)

    def idf_explanation(self, field: FieldReader) -> Explanation:
        return explain_idf(self._document_frequency(field), field.statistics.documents)

    def _document_frequency(self, field: FieldReader) -> int:
        return max(map(field.document_frequency, self.terms))

    def notation(self, schema: Schema) -> str:
        return f"Synonym({self.filter_notation(schema)})"

    def filter_notation(self, schema: Schema) -> str:
        # In a filter the terms are clauses of a disjunction.
        return " ".join(f"{self.field}:{term}" for term in self.terms)

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return dict.fromkeys(self.terms, EVERYWHERE)


@dataclass(frozen=True, slots=True)
class MultiTerm(MarkedLeaf):
    """Documents with a term of a set that depends on the index, with the score 1."""

    @property
    def is_multi_term(self) -> bool:
        return True

    @abstractmethod
    def ranks(self, terms: Terms) -> Iterable[int]:
        """Return the ranks of the terms in the set."""

    @abstractmethod
    def accepts(self, term: str) -> bool:
        """Return whether a term is in the set."""

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        field = reader.fields[self.field]
        return field.documents_with(self.ranks(field.terms))

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return {token.term: EVERYWHERE for token in tokens if self.accepts(token.term)}


LONGEST_PREFIX = 1_000  # UTF-16 code units; Elasticsearch's default of `index.max_regex_length`


@dataclass(frozen=True, slots=True)
class Prefix(MultiTerm):
    """Documents with a term that begins with the prefix."""

    prefix: str

    def ranks(self, terms: Terms) -> Iterable[int]:
        return terms.with_prefix(self.prefix)

    def accepts(self, term: str) -> bool:
        return term.startswith(self.prefix)

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:{self.prefix}*"


LONGEST_GRAM = 20  # UTF-16 code units of the indexed prefixes of a `search_as_you_type`


@dataclass(frozen=True, slots=True)
class IndexedPrefix(Prefix):
    """A prefix that Elasticsearch looks up as a term of another field.

    Source: org.elasticsearch.index.mapper.extras.SearchAsYouTypeFieldMapper
    """

    typed: str

    @property
    def is_multi_term(self) -> bool:
        return False

    def notation(self, schema: Schema) -> str:
        return f"{self.typed}{PREFIXES}:{self.prefix}"

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return {}


def read_prefix(parser: Parser, content: Any) -> Query:
    """Read `prefix`."""
    name, options = parser.on_field(content, "prefix", "value", ())
    value = parameters.raw_text(required(options, "value", "prefix"), f"the prefix for {name}")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    query = of_prefix(field, value)
    if len(value.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST_PREFIX:
        raise invalid(f"the prefix for {name} has more than {LONGEST_PREFIX:,} characters")
    return apply_boost_parameter(query, options, "prefix")


def of_prefix(field: Field, prefix: str) -> Query:
    """Return the query for documents with a term that begins with a prefix."""
    require_terms(field, "prefix")
    if field.typed and 0 < utf16_length(prefix) <= LONGEST_GRAM:
        return Constant(IndexedPrefix(field.name, prefix, field.typed))
    return Prefix(field.name, field.normalized(prefix))


def require_terms(field: Field, query: str) -> None:
    """Reject a query on a field without terms."""
    if not field.has_terms:
        raise invalid(f"the query `{query}` needs a text or keyword field, {field.name} is {field.type}")


def require_no_key(field: Field, query: str) -> None:
    """Reject a query on a key of a flattened field."""
    if field.is_keyed:
        raise invalid(f"the query `{query}` on a key of {field.source}, which is flattened")


def of_existing(field: Field) -> Query:
    """Return the query for documents with a value in a field, or with a key in a flattened field."""
    if field.is_keyed:
        return Prefix(field.name, field.normalized(""))
    if field.type == FLATTENED and not field.has_doc_values:  # an empty object exists there
        raise unsupported(f"`exists` on {field.name}, which is flattened with `doc_values: false`,")
    return Exists(field.name + KEYED if field.type == FLATTENED else field.name)


# Lucene rejects patterns with large automata, which grow exponentially with the number of `?` after a `*`.
MOST_UNKNOWN = 8


@dataclass(frozen=True, slots=True)
class Wildcard(MultiTerm):
    """Documents with a term that matches a pattern of `*` (any characters), `?` (one) and escapes."""

    pattern: str
    is_case_insensitive: bool
    is_explained: bool = True  # whether Lucene's explanation shows the pattern, not the address of an object

    def ranks(self, terms: Terms) -> Iterable[int]:
        beginning, expression = _compile_wildcard(self.pattern, self.is_case_insensitive)
        return (rank for rank in terms.with_prefix(beginning) if expression.fullmatch(terms[rank].decode()))

    def accepts(self, term: str) -> bool:
        return _compile_wildcard(self.pattern, self.is_case_insensitive)[1].fullmatch(term) is not None

    def notation(self, schema: Schema) -> str:
        if not self.is_explained:
            raise unsupported("the explanation of a pattern in the query `query_string`")
        if self.is_case_insensitive:
            return f"CaseInsensitiveWildcardQuery{{:{self.pattern}}}"
        return f"{self.field}:{self.pattern}"


@lru_cache(16)
def _compile_wildcard(pattern: str, is_case_insensitive: bool) -> tuple[str, re.Pattern[str]]:
    """Return the literal beginning of the terms, and an expression that matches whole terms."""
    if not pattern:
        return "", re.compile("(?!)")  # in Lucene an empty pattern matches not even an empty term
    beginning, runs, is_literal, unknown = "", [""], not is_case_insensitive, 0
    characters = iter(pattern)
    for character in characters:
        if character == "*":
            runs.append("")
        elif character == "?":
            runs[-1] += "."
            unknown += len(runs) > 1
        else:
            literal = next(characters, character) if character == "\\" else character
            # Elasticsearch compares an escaped letter with its case.
            is_plain = is_case_insensitive and character != "\\"
            is_letter = is_plain and literal.isascii() and literal.isalpha()
            runs[-1] += f"[{literal.lower()}{literal.upper()}]" if is_letter else re.escape(literal)
            beginning += literal if is_literal else ""
            continue
        is_literal = False
    first, *others = runs
    if unknown > MOST_UNKNOWN:
        raise unsupported(f"the wildcard pattern {pattern!r} with more than {MOST_UNKNOWN} `?` after a `*`")
    # Atomic groups: the first occurrence of a run leaves the most characters for the others.
    ending = "".join(f"(?>.*?{run})" for run in others[:-1]) + f".*{others[-1]}" if others else ""
    return beginning, re.compile(first + ending, re.DOTALL)


_WILDCARDS = re.compile(r"\\.|[?*]+")


def normalized_wildcard(pattern: str, normalize: Callable[[str], str]) -> str:
    """Normalize the text between wildcards and escapes, as Elasticsearch does, even if it is empty."""
    parts, end = list[str](), 0
    for match in _WILDCARDS.finditer(pattern):
        if match.start():
            parts.append(normalize(pattern[end : match.start()]))
        parts.append(match[0])
        end = match.end()
    if end < len(pattern):
        parts.append(normalize(pattern[end:]))
    return "".join(parts)


def read_wildcard(parser: Parser, content: Any) -> Query:
    """Read `wildcard`."""
    known = ("wildcard", "case_insensitive")
    name, options = parser.on_field(content, "wildcard", "value", known)
    pattern = parameters.raw_text(value_of(options, "wildcard")[1], f"the pattern for {name}")
    is_case_insensitive = parameters.flag(options.get("case_insensitive", False), "`case_insensitive`")
    field = parser.field(name)
    if field is None:
        return MatchNone()
    if field.normalize:
        pattern = normalized_wildcard(pattern, field.normalize)
    return apply_boost_parameter(of_wildcard(field, pattern, is_case_insensitive), options, "wildcard")


def of_wildcard(
    field: Field, pattern: str, is_case_insensitive: bool = False, *, is_explained: bool = True
) -> Query:
    """Return the query for documents with a term that matches a pattern."""
    require_terms(field, "wildcard")
    require_no_key(field, "wildcard")
    _compile_wildcard(pattern, is_case_insensitive)
    return Wildcard(field.name, pattern, is_case_insensitive, is_explained)


@dataclass(frozen=True, slots=True)
class TermRange(MultiTerm):
    """Documents with a term between bounds, in the order of code points; None is no bound."""

    low: str | None
    high: str | None
    has_low: bool
    has_high: bool

    def ranks(self, terms: Terms) -> Iterable[int]:
        first = 0 if self.low is None else terms.insertion(self.low, is_after=not self.has_low)
        end = len(terms) if self.high is None else terms.insertion(self.high, is_after=self.has_high)
        return range(first, end)

    def accepts(self, term: str) -> bool:
        is_above = self.low is None or term > self.low or (self.has_low and term == self.low)
        return is_above and (self.high is None or term < self.high or (self.has_high and term == self.high))

    def notation(self, schema: Schema) -> str:
        low, high = ({None: "*", "*": r"\*"}.get(bound, bound) for bound in (self.low, self.high))
        return f"{self.field}:{'{['[self.has_low]}{low} TO {high}{'}]'[self.has_high]}"


def read_range(parser: Parser, content: Any) -> Query:
    """Read `range`: terms, numbers or dates between bounds; without bounds, all documents with a value."""
    name, options = parameters.single(content, "the query `range`")
    options = parser.options(options, "range", ("gt", "gte", "lt", "lte", "format", "time_zone", "relation"))
    relation = parameters.choice(
        options.get("relation", "intersects"), ranges.RELATIONS, "`relation` of the query `range`"
    )
    bounds = {bound: value for bound, value in options.items() if bound in ("gt", "gte", "lt", "lte")}
    # Both are checked for all types of fields.
    formats, zone = number_range.date_format(options), number_range.time_zone(options)
    for bound, value in bounds.items():
        if isinstance(value, Mapping | list | tuple):
            raise unsupported(f"{value!r} as `{bound}` of the query `range`, only a value")
        if value is not None:
            parameters.term(value, f"`{bound}` for {name}")
    field = parser.field(name, *RANGES)
    if field is None:
        return MatchNone()
    # Of two bounds on one side the last one counts, even if it is null.
    low = next((bound for bound in reversed(bounds) if bound in ("gt", "gte")), "gte")
    high = next((bound for bound in reversed(bounds) if bound in ("lt", "lte")), "lte")
    has_bounds = bounds.get(low) is not None or bounds.get(high) is not None
    if field.is_range and has_bounds:
        query = ranges.between(parser, field, bounds, low, high, formats, zone, relation)
    elif field.type == DATE:
        query = number_range.of_dates(parser, field, bounds, low, high, formats, zone)
    else:
        query = between(field, bounds, low, high) if has_bounds else Constant(of_existing(field))
    return apply_boost_parameter(query, options, "range")


def between(field: Field, bounds: Mapping[str, Any], low: str, high: str) -> Query:
    """Return the query for the terms or numbers between two bounds, see `number_range.between`."""
    if field.is_number:
        return number_range.between(field, bounds, low, high)
    if field.type == IP:
        return ip_range.between(field, bounds, low, high)
    if field.is_keyed and (bounds.get(low) is None or bounds.get(high) is None):
        raise invalid(f"a range on a key of {field.source}, which is flattened, needs two bounds")
    ends = (bounds.get(low), bounds.get(high))
    first, last = (None if end is None else indexed_term(field, end) for end in ends)
    return TermRange(field.name, first, last, low == "gte", high == "lte")


@dataclass(frozen=True, slots=True)
class TermInSet(MarkedLeaf):
    """Documents with one of the terms, with the score 1."""

    has_few_documents: ClassVar[bool] = True

    terms: tuple[str, ...]

    @property
    def is_multi_term(self) -> bool:
        return len(self.terms) > 1

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return reader.fields[self.field].documents_with_terms(self.terms)

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:({' '.join(self.terms)})"

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return dict.fromkeys(self.terms, EVERYWHERE)
