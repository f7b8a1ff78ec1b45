"""Queries that analyze text: `match`, `match_bool_prefix`, `match_phrase`, `multi_match`, and the leaf `Phrase`."""

from __future__ import annotations

import ctypes
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native, parameters
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index import arrays
from searchapp.lucene.index.mapping import BOOLEAN, Field, Schema
from searchapp.lucene.index.reader import (
    RARE_SHARE,
    FieldReader,
    IndexReader,
    Numbers,
    Postings,
    TermPositions,
)
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction, with_minimum
from searchapp.lucene.queries.fuzzy import Fuzziness
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.query import (
    Leaf,
    Parser,
    PositionSpans,
    Query,
    ScoredLeaf,
    apply_boost,
    apply_boost_parameter,
    explain,
    required,
)
from searchapp.lucene.queries.scores import most_of_a_rare_term
from searchapp.lucene.queries.term import Synonym, Term, of_prefix, of_value
from searchapp.lucene.records import Explanation, Token

_TERM = struct.Struct("=12q")  # `Term` of phrases.c


def _compiled_postings(
    library: ctypes.CDLL, terms: Sequence[TermPositions], positions: Sequence[int], documents: Numbers
) -> Postings:
    """Return the ascending documents that have the terms at relative positions, with the frequencies."""
    documents = np.ascontiguousarray(documents, np.int32)
    packed, alive = [], []
    for term, position in zip(terms, positions, strict=True):
        term_documents, frequencies, term_positions = term.all()
        types = term_documents.dtype.str, frequencies.dtype.kind, term_positions.dtype.str
        if types != ("<i4", "u", "<i4") or len(term_documents) != len(frequencies):
            raise IndexError("the positions of a term are not those of documents")
        alive.append((term_documents, frequencies, term_positions))
        packed.append(
            _TERM.pack(
                *(term_documents.ctypes.data, frequencies.ctypes.data, term_positions.ctypes.data),
                *(len(term_documents), frequencies.itemsize, len(term_positions), position - positions[0]),
                *(0, 0, 0, 0, 0),
            )
        )
    matching, counts = np.empty(len(documents), np.int32), np.empty(len(documents), np.float32)
    size = library.searchapp_phrase(
        ctypes.create_string_buffer(b"".join(packed)),
        len(terms),
        documents.ctypes.data,
        len(documents),
        matching.ctypes.data,
        counts.ctypes.data,
    )
    if size < 0:
        raise IndexError("the positions of a term are not those of documents")
    return Postings(matching[:size].copy(), counts[:size].copy())


DOCUMENTS_AT_ONCE = 1 << 15  # documents whose positions fit into the processor's cache

COMPILED = 64  # for fewer documents NumPy is faster: the C function reads all positions of a term

OUTSIDE = np.int64(1 << 48)  # greater than every start of a phrase

# Maximum size of a bitmap of starts; above it, in very long documents, each start is searched.
MARKED = 1 << 24


@dataclass(frozen=True, slots=True)
class Phrase(ScoredLeaf):
    """Terms at relative positions, scored by their number of occurrences."""

    terms: tuple[str, ...]
    positions: tuple[int, ...]

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def rewritten(self) -> Leaf:
        if len(self.terms) == 1:
            return Term(self.field, self.terms[0])
        first = self.positions[0]
        if not first:
            return self
        return Phrase(self.field, self.terms, tuple(position - first for position in self.positions))

    def postings(self, field: FieldReader) -> Postings:
        return self.postings_among(field, None)

    def index_frequency(self, reader: IndexReader, segment_frequency: int) -> int:
        # Counting the phrase in all segments takes too long: a phrase is never common.
        return min(segment_frequency, most_of_a_rare_term(reader.whole_count))

    def idf(self, field: FieldReader) -> np.float32:
        return np.float32(sum(float(field.idf(field.document_frequency(term))) for term in self.terms))

    def frequency(self, field: FieldReader, document: int) -> float:
        return float(self.postings_among(field, np.array([document], np.int32)).frequencies.sum())

    def postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """Return the documents with the phrase, among ascending documents or all (None), and its frequencies."""
        return field.live_postings(self._postings_among(field, among))

    def _postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        positions = [field.positions(term) for term in self.terms]
        terms = [term for term in positions if term is not None]
        if len(terms) < len(positions):
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        library = native.library()
        if library is not None and (among is None or len(among) >= COMPILED):
            rarest = min((term.documents for term in terms), key=len)
            return _compiled_postings(library, terms, self.positions, rarest if among is None else among)
        # Positions are read only in documents that have all terms, and of some documents at a time.
        documents = _in_all([term.documents for term in terms], field.documents, among)
        counts = [np.empty(0, np.int64)]
        for first in range(0, len(documents), DOCUMENTS_AT_ONCE):
            counts.append(self._counts(terms, documents[first : first + DOCUMENTS_AT_ONCE]))
        count = np.concatenate(counts)
        return Postings(documents[count > 0], count[count > 0].astype(np.float32))

    def _counts(self, terms: Sequence[TermPositions], documents: Numbers) -> NDArray[np.int64]:
        """Return the frequency of the phrase in each document; all documents have all terms."""
        # The possible starts of the phrase in all documents are numbered consecutively: a document has as many as the
        # last position of the rarest term requires. Starts that other terms imply outside this range fall into another
        # document's range, and are dropped. A first term that occurs twice on a position (as itself and as a synonym)
        # counts twice; repetitions of the other terms do not.
        base = int(documents[0])
        starts = np.full(int(documents[-1]) - base + 1, OUTSIDE)
        count, remaining = 0, documents
        ends = firsts = matches = np.empty(0, np.int64)
        # Rarest term first: positions of the others are read only in the remaining documents.
        order = np.argsort([len(term.documents) for term in terms], kind="stable").tolist()
        for turn, number in enumerate(order):
            term_documents, counts, positions = terms[number].select(remaining)
            position_ends = np.cumsum(counts)
            offset = self.positions[number] - self.positions[0]
            if not turn:
                last = positions[position_ends - 1]
                if len(term_documents) > len(documents):
                    last = last[np.isin(term_documents, documents, assume_unique=True)]
                ends = np.cumsum(np.maximum(last.astype(np.int64) - offset + 1, 0))
                starts[documents - base] = np.append(0, ends[:-1])
                count = int(ends[-1])
            candidates = _repeated(starts[term_documents - base] - offset, position_ends)
            candidates += positions
            if turn:
                hits = np.flatnonzero(_among(candidates, matches, count))
                # Drop starts in another document's range.
                matches = candidates[hits]
                rows = ends.searchsorted(matches, "right")
                is_own = documents[rows] == term_documents[position_ends.searchsorted(hits, "right")]
                matches, remaining = matches[is_own], _distinct(documents[rows[is_own]])
            elif offset or len(term_documents) > len(documents):
                matches = candidates[(positions >= offset) & (candidates < count)]
            else:
                matches = candidates
            if not number:
                firsts = matches
            if not len(matches):
                return np.zeros(len(documents), np.int64)
        begins = firsts[_among(firsts, matches, count)]
        return np.bincount(ends.searchsorted(begins, "right"), minlength=len(documents))

    def idf_explanation(self, field: FieldReader) -> Explanation:
        terms = [Term(self.field, term).idf_explanation(field) for term in self.terms]
        return explain(self.idf(field), "idf, sum of:", terms)

    def frequency_notation(self, frequency: np.float32) -> str:
        return f"phraseFreq={printed(frequency)}"

    def notation(self, schema: Schema) -> str:
        words = ["?"] * (self.positions[-1] + 1)
        for term, position in zip(self.terms, self.positions, strict=True):
            words[position] = term
        return f'{self.field}:"{" ".join(words)}"'

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        spans = list(self._spans(tokens))
        return dict.fromkeys(self.terms, spans) if spans else {}

    def _spans(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """Yield the first and last position of the terms in order, with at most as many gaps as the phrase."""
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for token in tokens:
            positions[token.term].append(token.position)
        holes = max(0, self.positions[-1] - self.positions[0] - len(self.positions) + 1)
        for start in positions[self.terms[0]]:
            last, skipped = start, 0
            for term in self.terms[1:]:
                following = next((position for position in positions[term] if position > last), None)
                if following is None:
                    return
                skipped += following - last - 1
                last = following
            if skipped <= holes:
                yield start, last


def _in_all(lists: Sequence[Numbers], count: int, among: Numbers | None) -> Numbers:
    """Return the documents of `among` (None: all of `count`) that are in all ascending lists."""
    ordered = sorted(lists, key=len)
    documents = ordered[0] if among is None else among
    for others in ordered if among is not None else ordered[1:]:
        if len(documents) * RARE_SHARE < len(others):
            documents = documents[arrays.find_sorted(others, documents)[1]]
        else:
            marked = np.zeros(count, bool)
            marked[others] = True
            documents = documents[marked.take(documents)]
    return documents


def _distinct(documents: Numbers) -> Numbers:
    return documents[np.diff(documents, prepend=-1) > 0]


def _repeated(numbers: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Repeat each number up to its end; faster than `np.repeat` for few repetitions."""
    steps = np.zeros(ends[-1], np.int64)
    steps[0] = numbers[0]
    steps[ends[:-1]] = np.diff(numbers)
    return np.cumsum(steps, out=steps)


def _among(candidates: NDArray[np.int64], others: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    if count <= MARKED:
        marked = np.zeros(count + 2, bool)  # starts outside map to either end
        marked[others + 1] = True
        return marked.take(candidates + 1, mode="clip")
    return arrays.find_sorted(others, candidates)[1]


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
    if start == end:
        yield ()
        return
    for edge in leaving[start]:
        for rest in _paths(leaving, edge.end, end):
            yield (edge.step, *rest)


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


_MATCH = ("operator", "minimum_should_match", "analyzer", "zero_terms_query")
_ZERO_TERMS: dict[str, Query] = {"none": MatchNone(late=True), "all": MatchAll(late=True)}
NAMELESS = " "  # replaces an empty name of a field, which matches nothing
_TIE_BREAKERS = {"best_fields": 0.0, "boolean": 0.0, "bool_prefix": 1.0, "most_fields": 1.0, "phrase": 0.0}


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
        )

    def query(self, parser: Parser, words: Any) -> Query:
        text = parameters.text(words, "the text of a query")
        field = self.field
        if field is None:
            return MatchNone(late=True)
        if self.analyzer is None:
            takes_prefix = self.has_prefix and not field.is_number and field.type != BOOLEAN
            return of_prefix(field, text) if takes_prefix else self._term(field, words)
        _refuse_analyzed_boolean(field)
        graph = _graph(parser, self.analyzer, text)
        if graph is None:
            is_plain = self.operator == "or" and self.minimum is None and not self.has_prefix
            is_exact = self.fuzziness is None and not field.normalize
            if is_plain and not field.is_number and is_exact:
                distinct = parser.distinct_terms(self.analyzer, text)
                if distinct is not None and len(distinct) > 1:
                    return TermsDisjunction(field.name, distinct)
            positions = parser.terms(self.analyzer, text)
            if not positions:
                return self.zero_terms
            *clauses, last = [_stacked(field, terms, self._term) for _position, terms in positions]
            if self.has_prefix and len(terms := positions[-1][1]) == 1 and self._ends_in_token(parser, text):
                last = of_prefix(field, terms[0])
            if _is_single(positions):
                return last
            clauses.append(last)
        elif self.has_prefix:
            raise unsupported(
                f"a prefix on {field.name}, whose analyzer produces a synonym of several words,"
            )
        else:
            clauses = [self._part_query(field, part) for part in graph_parts(graph)]
        query = Bool(must=tuple(clauses)) if self.operator == "and" else Bool(should=tuple(clauses))
        return with_minimum(query, self.minimum)

    def _term(self, field: Field, value: Any) -> Query:
        return of_value(field, value) if self.fuzziness is None else self.fuzziness.query(field, value)

    def _part_query(self, field: Field, part: GraphPart) -> Query:
        if part.stacked:
            return _stacked(field, [term for ((term, _step),) in part.paths], self._term)
        paths = tuple(self._path_query(field, path) for path in part.paths)
        return Bool(should=paths) if len(paths) > 1 else paths[0]

    def _path_query(self, field: Field, path: tuple[Step, ...]) -> Query:
        terms = tuple(term for term, _step in path)
        if len(terms) == 1:
            return self._term(field, terms[0])
        if not field.is_text:
            return Bool(must=tuple(self._term(field, term) for term in terms))
        return Phrase(field.name, terms, tuple(accumulate((step for _term, step in path[1:]), initial=0)))

    def _ends_in_token(self, parser: Parser, text: str) -> bool:
        """Return whether no space, punctuation or removed word follows the last token: only then it is a prefix."""
        assert self.analyzer is not None
        last = parser.analyzers.analyzer(self.analyzer).emitted(text)[-1]
        return last.end == utf16_length(text)


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
    return apply_boost(match.query(parser, required(options, "query", name)), match.boost)


def read_match_phrase(parser: Parser, content: Any) -> Query:
    """Read `match_phrase`: the terms of a text on consecutive positions."""
    known = ("slop", "analyzer", "zero_terms_query")
    name, options = parser.on_field(content, "match_phrase", "query", known)
    parameters.without_null(options, known, "the query `match_phrase`")
    _require_no_slop(options, "match_phrase")
    zero_terms = _zero_terms(options)
    query = _phrase(parser, name, required(options, "query", "match_phrase"), options, zero_terms)
    return apply_boost_parameter(query, options, "match_phrase")


def _require_no_slop(options: Mapping[str, Any], query: str) -> None:
    if parameters.integer(options.get("slop", 0), "`slop`") != 0:
        raise unsupported(f"`slop: {options['slop']}` of the query `{query}`, only 0")


def read_multi_match(parser: Parser, content: Any) -> Query:
    """Read `multi_match`: the terms of a text in several fields, ignoring fields that the mapping lacks."""
    known = ("query", "fields", "type", "tie_breaker", "slop", *_MATCH, *Fuzziness.NAMES)
    options = parser.options(content, "multi_match", known)
    parameters.without_null(options, known, "the query `multi_match`")
    kind = parameters.raw_text(options.get("type", "best_fields"), "`type` of the query `multi_match`")
    if kind not in _TIE_BREAKERS:
        raise unsupported(f"`type: {kind}` of the query `multi_match`")
    _require_no_slop(options, "multi_match")
    if kind == "phrase" and "fuzziness" in options:
        raise invalid("`fuzziness` of the query `multi_match` is not allowed with `type: phrase`")
    boosts = _field_boosts(options.get("fields", ()))
    words = required(options, "query", "multi_match")
    tie_breaker = parameters.signless(options.get("tie_breaker", _TIE_BREAKERS[kind]), "tie_breaker")
    parameters.text(words, "the text of a query")  # reject it even if nothing matches
    queries, names = [], []
    for name, boost in boosts.items():
        match = _FieldMatch.read(parser, name, options, "multi_match", has_prefix=kind == "bool_prefix")
        if match.field is None:
            continue
        query = (
            _phrase(parser, name, words, options, match.zero_terms)
            if kind == "phrase"
            else match.query(parser, words)
        )
        names.append(match.field.name)
        queries.append(apply_boost(query, boost))
    if len(set(names)) < len(names):
        raise unsupported("a field and its alias in one query `multi_match`")
    if len(queries) > 1:
        queries = [DisMax(tuple(queries), parameters.share(tie_breaker, "tie_breaker"))]
    return apply_boost_parameter(queries[0] if queries else MatchNone(late=True), options, "multi_match")


def _field_boosts(described: Any) -> dict[str, float]:
    """Return the fields of a `multi_match` and their boosts; the last boost of a repeated field counts."""
    label = "a field of the query `multi_match`"
    boosts: dict[str, Any] = {}
    for field in described if isinstance(described, list | tuple) else [described]:
        name, caret, boost = parameters.raw_text(field, label).partition("^")
        boosts[name] = parameters.any_number(boost, f"the boost of {label}") if caret else 1
    if not boosts:
        raise unsupported("the query `multi_match` without fields")
    return {name: parameters.boost(boost, f"{label}, {name},") for name, boost in boosts.items()}


def _phrase(parser: Parser, name: str, words: Any, options: Mapping[str, Any], zero_terms: Query) -> Query:
    field = parser.field(name)
    named = _analyzer(parser, options)
    text = parameters.text(words, f"the text for {name}")
    if field is None:
        return MatchNone(late=True)
    analyzer = named or field.quote_analyzer
    if analyzer is None:
        return of_value(field, words)
    _refuse_analyzed_boolean(field)
    if _graph(parser, analyzer, text) is not None:
        raise unsupported(
            f"`match_phrase` on {field.name}, whose analyzer produces a synonym of several words,"
        )
    positions = parser.terms(analyzer, text)
    if not positions:
        return zero_terms
    if _is_single(positions):
        return _stacked(field, positions[0][1])
    if not field.is_text:
        raise invalid(
            f"`match_phrase` on {name}, which is not text, with an analyzer that makes several terms"
        )
    if any(len(terms) > 1 for _position, terms in positions):
        raise unsupported(f"`match_phrase` on {name}, whose analyzer puts several terms at one position,")
    terms = tuple(terms[0] for _position, terms in positions)
    return Phrase(field.name, terms, tuple(position for position, _terms in positions))


def _refuse_analyzed_boolean(field: Field) -> None:
    if field.type == BOOLEAN:
        raise unsupported(f"an analyzer for {field.name}, which is boolean")


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
