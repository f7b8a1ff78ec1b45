"""Queries that analyze text: `match`, `match_bool_prefix`, `match_phrase`, `match_phrase_prefix`, `multi_match`,
`combined_fields`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, islice, pairwise, product
from typing import Any, TypeVar

from searchapp.lucene import parameters
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import InvalidRequest, Refused, invalid, unsupported
from searchapp.lucene.index.mapping import BOOLEAN, DATE, IP, KEYWORD, TEXT, Field
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction, with_minimum
from searchapp.lucene.queries.combined import FEW_FREQUENCIES, STEP, CombinedFields, blended
from searchapp.lucene.queries.fuzzy import Fuzziness
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.phrase import MultiPhrase, Phrase, PhrasePrefix
from searchapp.lucene.queries.query import (
    Parser,
    Query,
    apply_boost,
    apply_boost_parameter,
    multiply_boosts,
    required,
)
from searchapp.lucene.queries.spans import Span, SpanNear, SpanOr, SpanPhrase
from searchapp.lucene.queries.term import Synonym, of_prefix, of_value

# Synonyms of several words make a graph of tokens: "united states" with "usa" over both words. As in Lucene's
# `GraphTokenStreamFiniteStrings`, each part of the text between two positions that no token spans becomes a query.
LONGEST_GRAPH = 1001  # states of a graph for which Lucene's recursion, limited to 1000, surely suffices

MOST_PATHS = 1024

Step = tuple[str, int]  # a term, and its distance in positions from the previous term


@dataclass(frozen=True, slots=True)
class GraphPart:
    """A part of a text, with its alternative sequences of terms."""

    paths: tuple[tuple[Step, ...], ...]
    # Whether all paths are one term long and end at the same position.
    stacked: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    start: int
    end: int
    step: Step


def graph_parts(tokens: Sequence[tuple[str, int, int]]) -> list[GraphPart]:
    """Split a text into consecutive parts.

    Args:
        tokens: terms with ascending positions, and their lengths in positions.

    Raises:
        Refused: the text is too long for a graph, or has too many paths, or none.
    """
    edges = _connected(list(_edges(tokens)))
    if not edges:
        raise unsupported("a text in which a synonym of several words leaves no path through its tokens")
    states = sorted({state for edge in edges for state in (edge.start, edge.end)})
    if len(states) > LONGEST_GRAPH:
        raise unsupported(f"a text of more than {LONGEST_GRAPH - 1} positions with synonyms of several words")
    covered = {state for edge in edges for state in range(edge.start + 1, edge.end)}
    cuts = [state for state in states if state not in covered]
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge.start].append(edge)
    return [_part(leaving, start, end) for start, end in pairwise(cuts)]


def _part(leaving: dict[int, list[_Edge]], start: int, end: int) -> GraphPart:
    paths = []
    for path in _paths(leaving, start, end):
        paths.append(path)
        if len(paths) > MOST_PATHS:
            raise unsupported(f"a text with more than {MOST_PATHS} paths through its synonyms")
    return GraphPart(tuple(paths), len({edge.end for edge in leaving[start]}) == 1)


def _paths(leaving: dict[int, list[_Edge]], start: int, end: int) -> Iterator[tuple[Step, ...]]:
    paths: list[tuple[int, tuple[Step, ...]]] = [(start, ())]  # a stack: a path may have 1,000 steps
    while paths:
        state, steps = paths.pop()
        if state == end:
            yield steps
        else:
            paths += [(edge.end, (*steps, edge.step)) for edge in reversed(leaving[state])]


def _edges(tokens: Sequence[tuple[str, int, int]]) -> Iterator[_Edge]:
    """Yield the tokens as edges between states; a gap lengthens the next edge instead of adding a state.

    A token has the step of the first token on its position.
    """
    state = previous = -1
    gap = 0
    step = 1
    for term, position, length in tokens:
        if position > previous:
            step = position - previous
            gap = step - 1
            state += 1
        else:
            state -= gap
        yield _Edge(state, state + length + gap, (term, step))
        state += gap
        previous = position


def _connected(edges: list[_Edge]) -> list[_Edge]:
    """Return the edges on a path from the beginning to the end; filters may have removed tokens."""
    reached = {0}
    for edge in edges:  # in ascending order of their starts
        if edge.start in reached:
            reached.add(edge.end)
    reaching = {max(edge.end for edge in edges)}
    for edge in sorted(edges, key=lambda edge: -edge.start):
        if edge.end in reaching:
            reaching.add(edge.start)
    return [edge for edge in edges if edge.start in reached and edge.end in reaching]


GENERATES_PHRASES = "auto_generate_synonyms_phrase_query"
_MATCH = ("operator", "minimum_should_match", "analyzer", "zero_terms_query", "lenient", GENERATES_PHRASES)
_ZERO_TERMS: dict[str, Query] = {"none": MatchNone(late=True), "all": MatchAll(late=True)}
NAMELESS = " "  # replaces an empty name of a field, which matches nothing
_PHRASES = ("phrase", "phrase_prefix")
# By the types of `multi_match`.
TIE_BREAKERS = {
    **dict.fromkeys(("best_fields", "boolean", "cross_fields", *_PHRASES), 0.0),
    **dict.fromkeys(("bool_prefix", "most_fields"), 1.0),
}

OfTerms = Callable[[list[str]], Query]
OptionalQuery = TypeVar("OptionalQuery", Query, Query | None)


@dataclass(frozen=True, slots=True)
class _FieldMatch:
    # None: nothing matches.
    field: Field | None
    analyzer: str | None
    operator: str
    minimum: str | None
    zero_terms: Query
    boost: float
    fuzziness: Fuzziness | None
    # Whether the last term is a prefix.
    has_prefix: bool = False
    is_lenient: bool = False
    # Whether a synonym of several words is a phrase; otherwise all its words must occur.
    generates_phrases: bool = True

    @classmethod
    def read(
        cls, parser: Parser, name: str, options: Mapping[str, Any], query: str, *, has_prefix: bool = False
    ) -> _FieldMatch:
        field = parser.field(name or NAMELESS)
        parameters.without_null(options, (*_MATCH, *Fuzziness.NAMES), f"the query `{query}`")
        minimum = options.get("minimum_should_match")
        return cls(
            field,
            _analyzer(parser, options) or (field.search_analyzer if field else None),
            parameters.choice(options.get("operator", "or"), ("or", "and"), f"`operator` of `{query}`"),
            None if minimum is None else parameters.raw_text(minimum, "minimum_should_match"),
            _zero_terms(options),
            parameters.boost(options.get("boost", 1), f"the query `{query}`"),
            Fuzziness.read(options),
            has_prefix,
            parameters.flag(options.get("lenient", False), f"`lenient` of `{query}`"),
            parameters.flag(options.get(GENERATES_PHRASES, True), f"`{GENERATES_PHRASES}`"),
        )

    def query(self, parser: Parser, words: Any, of_terms: OfTerms | None = None) -> Query:
        """Return the query for a text; `of_terms` returns the one for the terms on a position."""
        text = parameters.text(words, "the text of a query")
        field = self.field
        if field is None:
            return MatchNone(late=True)
        if self.is_lenient and not field.is_text:
            strict = replace(self, is_lenient=False)
            return lenient_query(field, self.analyzer, lambda: strict.query(parser, words, of_terms))
        if self.analyzer is None:
            if of_terms is not None:
                return of_terms([text])
            takes_prefix = self.has_prefix and field.type in (TEXT, KEYWORD)
            return of_prefix(field, text) if takes_prefix else self._term(field, words)
        _refuse_analyzed_boolean(field)
        graph = _graph(parser, self.analyzer, text)
        if graph is None:
            is_plain = self.operator == "or" and self.minimum is None and not self.has_prefix
            is_exact = self.fuzziness is None and not field.normalize and of_terms is None
            if is_plain and not field.is_number and is_exact:
                distinct = parser.distinct_terms(self.analyzer, text)
                if distinct is not None and len(distinct) > 1:
                    return TermsDisjunction(field.name, distinct)
            positions = parser.terms(self.analyzer, text)
            if not positions:
                return self.zero_terms
            of_terms = of_terms or partial(_stacked, field, of_term=self._term)
            *clauses, last = [of_terms(terms) for _position, terms in positions]
            if self.has_prefix and len(terms := positions[-1][1]) == 1 and self._ends_in_token(parser, text):
                last = of_prefix(field, terms[0])
            if _is_single(positions):
                return last
            clauses.append(last)
        elif self.has_prefix or of_terms is not None:
            kind = "a prefix" if self.has_prefix else "a search of several fields as one"
            raise unsupported(f"{kind} on {field.name}, whose analyzer produces a synonym of several words,")
        else:
            clauses = [self._part_query(field, part) for part in graph_parts(graph)]
        query = Bool(must=tuple(clauses)) if self.operator == "and" else Bool(should=tuple(clauses))
        return with_minimum(query, self.minimum)

    def phrase_query(self, parser: Parser, phrase: _PhraseMatch, words: Any) -> Query:
        """Return the query for a text as a phrase."""
        field = self.field
        assert field is not None
        if not self.is_lenient:
            return phrase.query(parser, field.name, words)
        return lenient_query(field, self.analyzer, lambda: phrase.query(parser, field.name, words))

    def _term(self, field: Field, value: Any) -> Query:
        return of_value(field, value) if self.fuzziness is None else self.fuzziness.query(field, value)

    def _part_query(self, field: Field, part: GraphPart) -> Query:
        if part.stacked:
            return _stacked(field, [term for ((term, _step),) in part.paths], self._term)
        paths = tuple(self._path_query(field, path) for path in part.paths)
        return Bool(should=paths) if len(paths) > 1 else paths[0]

    def _path_query(self, field: Field, path: tuple[Step, ...]) -> Query:
        if len(path) == 1:
            return self._term(field, path[0][0])
        if not field.has_positions or not self.generates_phrases:
            return Bool(must=tuple(self._term(field, term) for term, _step in path))
        return _path_phrase(field, path)

    def _ends_in_token(self, parser: Parser, text: str) -> bool:
        """Return whether no space, punctuation or removed word follows the last token: only then it is a prefix."""
        assert self.analyzer is not None
        last = parser.analyzers.analyzer(self.analyzer).emitted(text)[0][-1]
        return last.end == utf16_length(text)


def lenient_query(
    field: Field, analyzer: str | None, make: Callable[[], OptionalQuery]
) -> OptionalQuery | MatchNone:
    """Return a query on a field; one that matches nothing for a text of the wrong type."""
    try:
        return make()
    except InvalidRequest:
        if analyzer and not field.is_text:  # only some of several terms may be invalid
            raise unsupported(f"`lenient` with an analyzer on {field.name}, which is {field.type},") from None
        return MatchNone(late=True)


def _path_phrase(field: Field, path: Sequence[Step], slop: int = 0) -> Query:
    """Return the phrase of a path through a graph."""
    positions = accumulate((step for _term, step in path[1:]), initial=0)
    return Phrase.of(field.name, (term for term, _step in path), positions, slop)


def _path_span(path: Sequence[Step]) -> Span:
    """Return the span of a path; as in Elasticsearch, a gap precedes the word before it."""
    clauses: list[Span | int] = []
    last = None
    for term, step in path:
        clauses += [step - 1] if step > 1 else []
        clauses += [] if last is None else [last]
        last = term
    assert last is not None
    return SpanNear((*clauses, last)) if clauses else last


def _graph_phrase(field: Field, parts: Sequence[GraphPart], slop: int) -> Query:
    """Return the phrase of a token graph: a sequence of spans, or with slop one phrase for each path."""
    if slop:
        paths = list(islice(product(*(part.paths for part in parts)), MOST_PATHS + 1))
        if len(paths) > MOST_PATHS:
            raise unsupported(f"a text with more than {MOST_PATHS} paths through its synonyms")
        return Bool(should=tuple(_path_phrase(field, [*chain(*path)], slop) for path in paths))
    spans: list[Span] = []
    for part in parts:
        alternatives = tuple(path[0][0] if part.stacked else _path_span(path) for path in part.paths)
        spans.append(SpanOr(alternatives) if len(alternatives) > 1 else alternatives[0])
    return SpanPhrase(field.name, SpanNear(tuple(spans)) if len(spans) > 1 else spans[0])


def of_text(
    parser: Parser,
    field: Field,
    text: str,
    kind: str,
    *,
    operator: str = "or",
    analyzer: str | None = None,
    slop: int = 0,
    generates_phrases: bool = True,
) -> Query | None:
    """Return the query for a text in a field as part of a query language; None if the analyzer leaves no term.

    Args:
        kind: a type of `multi_match` except `cross_fields`.
        operator: combines the terms, `or` or `and`.
        analyzer: None for that of the field.
        slop: of a phrase.
        generates_phrases: whether a synonym of several words is a phrase.
    """
    empty = MatchNone(late=True)
    if kind in _PHRASES:
        most = MOST_EXPANSIONS if kind == "phrase_prefix" else None
        phrase = _PhraseMatch({"analyzer": analyzer} if analyzer else {}, slop, empty, most)
        query = phrase.query(parser, field.name, text)
    else:
        name = analyzer or field.search_analyzer
        has_prefix = kind == "bool_prefix"
        match = _FieldMatch(
            field, name, operator, None, empty, 1.0, None, has_prefix, generates_phrases=generates_phrases
        )
        query = match.query(parser, text)
    return None if query is empty else query


def read_match(parser: Parser, content: Any) -> Query:
    """Read `match`: the terms of a text in one field."""

    name, options = parser.on_field(content, "match", "query", (*_MATCH, *Fuzziness.NAMES))
    match = _FieldMatch.read(parser, name, options, "match")
    required(options, "query", "match")
    holder, key = (options, "query") if isinstance(content[name], Mapping) else (content, name)
    return apply_boost(parser.read_text(holder, key, partial(match.query, parser)), match.boost)


def read_match_bool_prefix(parser: Parser, content: Any) -> Query:
    """Read `match_bool_prefix`: the terms of a text in one field, the last one as a prefix."""
    name = "match_bool_prefix"
    known = ("operator", "minimum_should_match", "analyzer", *Fuzziness.NAMES)
    field, options = parser.on_field(content, name, "query", known)
    match = _FieldMatch.read(parser, field, options, name, has_prefix=True)
    words = _date_text(match.field, required(options, "query", name))
    return apply_boost(match.query(parser, words), match.boost)


def _date_text(field: Field | None, words: Any) -> Any:
    # A number is the text of a date here, and milliseconds in `term` and `match`.
    return parameters.text(words, "a date") if field and field.type == DATE else words


def read_match_phrase(parser: Parser, content: Any) -> Query:
    """Read `match_phrase`: the terms of a text on consecutive positions."""
    return _read_phrase(parser, content, "match_phrase", has_prefix=False)


def read_match_phrase_prefix(parser: Parser, content: Any) -> Query:
    """Read `match_phrase_prefix`: a phrase whose last term is a prefix."""
    return _read_phrase(parser, content, "match_phrase_prefix", has_prefix=True)


def _read_phrase(parser: Parser, content: Any, query: str, *, has_prefix: bool) -> Query:
    known = ("slop", "analyzer", "zero_terms_query", *(("max_expansions",) if has_prefix else ()))
    name, options = parser.on_field(content, query, "query", known)
    parameters.without_null(options, known, f"the query `{query}`")
    phrase = _PhraseMatch.read(options, has_prefix=has_prefix)
    words = required(options, "query", query)
    return apply_boost_parameter(phrase.query(parser, name, words), options, query)


MOST_EXPANSIONS = 50  # Elasticsearch's default of `max_expansions`


@dataclass(frozen=True, slots=True)
class _PhraseMatch:
    options: Mapping[str, Any]
    slop: int
    zero_terms: Query
    most: int | None  # of the terms for the last term, which is a prefix; None: it is no prefix

    @classmethod
    def read(cls, options: Mapping[str, Any], *, has_prefix: bool) -> _PhraseMatch:
        slop = _not_negative(options.get("slop", 0), "`slop`")
        most = _not_negative(options.get("max_expansions", MOST_EXPANSIONS), "`max_expansions`")
        return cls(options, slop, _zero_terms(options), most if has_prefix else None)

    def query(self, parser: Parser, name: str, words: Any) -> Query:
        field = parser.field(name)
        named = _analyzer(parser, self.options)
        text = parameters.text(words, f"the text for {name}")
        if field is None:
            return MatchNone(late=True)
        analyzer = named or field.quote_analyzer
        if analyzer is None:
            if self.most is not None:
                raise _not_text(field)
            return of_value(field, words)
        _refuse_analyzed_boolean(field)
        if (graph := _graph(parser, analyzer, text)) is not None:
            if self.most is not None or not field.has_positions:
                phrase = "phrase with a prefix" if field.has_positions else "phrase without positions"
                raise unsupported(
                    f"a {phrase} on {field.name}, whose analyzer produces a synonym of several words,"
                )
            return _graph_phrase(field, graph_parts(graph), self.slop)
        positions = parser.terms(analyzer, text)
        if not positions:
            return self.zero_terms
        if self.most is None and _is_single(positions):
            return _stacked(field, positions[0][1])
        if field.typed:  # Elasticsearch searches a field of shingles for it
            raise unsupported(f"a phrase on {field.name}, which is search_as_you_type,")
        if not field.is_text:
            raise _not_text(field)
        if not field.has_positions and (self.most is None or len(positions) > 1):
            raise invalid(
                f"a phrase needs positions, but {field.name} has `index_options: {field.index_options}`"
            )
        numbers = tuple(position for position, _terms in positions)
        terms = tuple(tuple(alternatives) for _position, alternatives in positions)
        if self.most is not None:
            return PhrasePrefix(field.name, terms, numbers, self.slop, self.most)
        has_one = all(len(alternatives) == 1 for alternatives in terms)
        return (Phrase if has_one else MultiPhrase)(field.name, terms, numbers, self.slop)


def _not_negative(value: Any, label: str) -> int:
    number = parameters.integer(value, label)
    if number < 0:
        raise invalid(f"{label} is {number}, but must not be negative")
    return number


def _not_text(field: Field) -> Refused:
    return invalid(
        f"a phrase of several terms, or with a prefix, needs a text field, {field.name} is {field.type}"
    )


def read_multi_match(parser: Parser, content: Any) -> Query:
    """Read `multi_match`: the terms of a text in several fields, ignoring fields that the mapping lacks."""
    known = ("query", "fields", "type", "tie_breaker", "slop", *_MATCH, *Fuzziness.NAMES)
    options = parser.options(content, "multi_match", known)
    parameters.without_null(options, known, "the query `multi_match`")
    kind = parameters.raw_text(options.get("type", "best_fields"), "`type` of the query `multi_match`")
    if kind not in TIE_BREAKERS:
        raise unsupported(f"`type: {kind}` of the query `multi_match`")
    phrase = _PhraseMatch.read(options, has_prefix=kind == "phrase_prefix")
    if phrase.slop and kind == "bool_prefix":
        raise invalid(f"`slop` of the query `multi_match` is not allowed with `type: {kind}`")
    if "fuzziness" in options and kind in (*_PHRASES, "cross_fields"):
        raise invalid(f"`fuzziness` of the query `multi_match` is not allowed with `type: {kind}`")
    default_fields = [name for name in parser.reader.schema.default_fields if name != "*"]
    boosts = _field_boosts(options.get("fields") or default_fields, "multi_match")
    words = required(options, "query", "multi_match")
    tie_breaker = parameters.signless(options.get("tie_breaker", TIE_BREAKERS[kind]), "tie_breaker")
    parameters.text(words, "the text of a query")  # reject it even if nothing matches
    matches = [
        (
            name,
            _FieldMatch.read(parser, name, options, "multi_match", has_prefix=kind == "bool_prefix"),
            boost,
        )
        for name, boost in boosts.items()
    ]
    matches = [entry for entry in matches if entry[1].field is not None]
    _require_distinct([match.field for _name, match, _boost in matches], "multi_match")
    if kind == "cross_fields":
        groups: defaultdict[str | None, list[tuple[_FieldMatch, float]]] = defaultdict(list)
        for _name, match, boost in matches:
            groups[match.analyzer].append((match, boost))
        queries = [_of_group(parser, group, words, tie_breaker) for group in groups.values()]
    else:
        queries = [
            apply_boost(
                match.phrase_query(parser, phrase, value) if kind in _PHRASES else match.query(parser, value),
                boost,
            )
            for name, match, boost in matches
            for value in (_date_text(match.field, words),)
        ]
    if len(queries) > 1:
        queries = [DisMax(tuple(queries), parameters.share(tie_breaker, "tie_breaker"))]
    return apply_boost_parameter(queries[0] if queries else MatchNone(late=True), options, "multi_match")


def _of_group(
    parser: Parser, group: Sequence[tuple[_FieldMatch, float]], words: Any, tie_breaker: float
) -> Query:
    """Return the query for a text in any of the fields of `cross_fields` with one analyzer."""
    (match, boost), *others = group
    if not others:
        return apply_boost(match.query(parser, _date_text(match.field, words)), boost)
    fields = [(member.field, boost) for member, boost in group if member.field is not None]
    if match.is_lenient and not all(field.is_text for field, _boost in fields):
        raise unsupported("`lenient` with `type: cross_fields` on fields other than texts")
    if match.analyzer is not None:
        for field, _boost in fields:
            _refuse_analyzed_boolean(field)
    tie_breaker = parameters.share(tie_breaker, "tie_breaker")
    return match.query(parser, words, partial(blended, parser.reader, fields, tie_breaker))


def read_combined_fields(parser: Parser, content: Any) -> Query:
    """Read `combined_fields`: the terms of a text in several fields, as if they were one field."""
    query = "combined_fields"
    known = ("query", "fields", "operator", "minimum_should_match", "zero_terms_query", GENERATES_PHRASES)
    options = dict(parser.options(content, query, known))
    if options.get("minimum_should_match") is None:
        options.pop("minimum_should_match", None)
    words = required(options, "query", query)
    if not isinstance(words, str):
        raise invalid(f"`query` of the query `{query}` must be text, not {words!r}")
    described = options.get("fields", ())
    if not isinstance(described, str | list | tuple):
        raise invalid(f"`fields` of the query `{query}` must be a list of names, not {described!r}")
    boosts = named_boosts([described] if isinstance(described, str) else described, query)
    if not boosts:
        raise unsupported(f"the query `{query}` without fields")
    if any(boost < 1 for boost in boosts.values()):
        raise invalid(f"the boost of a field of the query `{query}` must be at least 1")
    named = [(parser.field(name or NAMELESS), boost) for name, boost in boosts.items()]
    fields = [(field, boost) for field, boost in named if field is not None]
    for field, _boost in fields:
        if not field.is_text:
            raise invalid(f"the query `{query}` needs text fields, {field.name} is {field.type}")
        if field.has_own_similarity:
            raise invalid(f"the query `{query}` needs the default similarity, {field.name} has its own")
        if not field.has_doc_values:
            raise unsupported(f"the query `{query}` on {field.name}, which has no norms,")
    if not fields:
        return MatchNone(late=True)
    if len({field.search_analyzer for field, _boost in fields}) > 1:
        raise invalid(f"the fields of the query `{query}` must have the same search analyzer")
    _require_distinct([field for field, _boost in fields], query)
    weights = sorted(
        ((field.name, boost) for field, boost in fields), key=lambda weight: weight[0].encode("utf-16-be")
    )

    def of_terms(terms: list[str]) -> Query:
        combined = CombinedFields(tuple(weights), tuple(sorted(set(terms))))
        if not combined.has_exact_sums:
            raise unsupported(
                f"boosts of fields of the query `{query}` that are not multiples of {STEP}, "
                f"with more than {FEW_FREQUENCIES} fields or synonyms,"
            )
        return combined

    match = _FieldMatch.read(parser, fields[0][0].name, options, query)
    return apply_boost(match.query(parser, words, of_terms), match.boost)


def _require_distinct(fields: Sequence[Field | None], query: str) -> None:
    names = [field.name for field in fields if field is not None]
    if len(set(names)) < len(names):
        raise unsupported(f"a field and its alias in one query `{query}`")


def named_boosts(described: Any, query: str) -> dict[str, float]:
    """Return names and patterns of fields with their boosts (`QueryParserHelper.parseFieldsAndWeights`)."""
    label = f"a field of the query `{query}`"
    boosts: dict[str, float] = {}
    for described_field in parameters.listed(described, f"`fields` of the query `{query}`"):
        text = parameters.raw_text(described_field, label)
        name, caret, number = text.partition("^")
        boost = parameters.any_number(number, f"the boost of {label}") if caret else 1.0
        # Elasticsearch looks for the name with its boost: `a^2, a` is a^2, but `a^2, a^3` is a^3.
        boosts[name] = multiply_boosts(boost, boosts.get(text, 1.0))
    return {name: parameters.boost(boost, f"{label}, {name},") for name, boost in boosts.items()}


def _field_boosts(described: Any, query: str) -> dict[str, float]:
    """Return the fields of a query and their boosts; the last boost of a repeated field counts."""
    label = f"a field of the query `{query}`"
    boosts: dict[str, Any] = {}
    for field in described if isinstance(described, list | tuple) else [described]:
        name, caret, boost = parameters.raw_text(field, label).partition("^")
        boosts[name] = parameters.any_number(boost, f"the boost of {label}") if caret else 1
    if not boosts:
        raise unsupported(f"the query `{query}` without fields")
    return {name: parameters.boost(boost, f"{label}, {name},") for name, boost in boosts.items()}


def _refuse_analyzed_boolean(field: Field) -> None:
    if field.type in (BOOLEAN, IP):
        raise unsupported(f"an analyzer for {field.name}, which is {field.type}")


def _graph(parser: Parser, analyzer: str, text: str) -> list[tuple[str, int, int]] | None:
    """Return terms, positions and lengths in positions of a text if several tokens form a graph; otherwise None."""
    named = parser.analyzers.analyzer(analyzer)
    tokens = named.graph(text) if named.branches else None
    return tokens if tokens and len(tokens) > 1 else None


def _is_single(positions: list[tuple[int, list[str]]]) -> bool:
    """Return whether there is one position; in Elasticsearch, gaps before several terms count as positions."""
    position, terms = positions[0]
    return len(positions) == 1 and (len(terms) == 1 or position == 0)


def _stacked(field: Field, terms: list[str], of_term: Callable[[Field, Any], Query] = of_value) -> Query:
    if len(terms) == 1:
        return of_term(field, terms[0])
    if field.is_number:
        raise unsupported(f"several terms at one position for {field.name}, which is {field.type},")
    return Synonym(field.name, tuple(sorted(terms)))


def _analyzer(parser: Parser, options: Mapping[str, Any]) -> str | None:
    """Return the analyzer that a query names, which must exist even if no text is analyzed."""
    if "analyzer" not in options:
        return None
    name = parameters.name(options["analyzer"], "`analyzer`")
    parser.analyzers.named(name)
    return name


def _zero_terms(options: Mapping[str, Any]) -> Query:
    name = options.get("zero_terms_query", "none")
    return _ZERO_TERMS[parameters.choice(name, tuple(_ZERO_TERMS), "zero_terms_query")]
