"""Queries that analyze text: `match`, `match_phrase`, `multi_match`, and the leaf `Phrase`.

A phrase is terms on consecutive positions of a text, found by `phrases.c` or by NumPy.

Synonyms of several words make a graph of tokens: "united states" with "usa" over both words. As in Lucene's
`GraphTokenStreamFiniteStrings`, each part of the text between two places that no token spans becomes a query of its
own.
"""

from __future__ import annotations

import ctypes
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native, parameters
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index import arrays
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.reader import (
    RARE_SHARE,
    FieldReader,
    IndexReader,
    Numbers,
    Postings,
    TermPositions,
)
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.boolean import Bool, TermsDisjunction, with_minimum
from searchapp.lucene.queries.dis_max import DisMax
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.parser import Parser, required
from searchapp.lucene.queries.query import (
    Leaf,
    PositionSpans,
    Query,
    ScoredLeaf,
    boosted,
    explained,
    multiplied_by,
)
from searchapp.lucene.queries.scores import most_of_a_rare_term
from searchapp.lucene.queries.term import Synonym, Term, of_value
from searchapp.lucene.records import Explanation, Token

_TERM = struct.Struct("=12q")
"""`Term` of phrases.c."""


def postings(
    library: ctypes.CDLL, terms: Sequence[TermPositions], positions: Sequence[int], among: Numbers | None
) -> Postings:
    """The documents where terms stand at relative positions, of some documents, ascending, or of all; and how often.

    Raises:
        IndexError: a number points where nothing is: files were altered.
    """
    wanted = min((term.documents for term in terms), key=len) if among is None else among
    wanted = np.ascontiguousarray(wanted, np.int32)
    packed, kept = [], []
    for term, position in zip(terms, positions, strict=True):
        documents, frequencies, places = term.whole()
        types = documents.dtype.str, frequencies.dtype.kind, places.dtype.str
        if types != ("<i4", "u", "<i4") or len(documents) != len(frequencies):
            raise IndexError("the positions of a term are not those of documents")
        kept.append((documents, frequencies, places))
        packed.append(
            _TERM.pack(
                *(documents.ctypes.data, frequencies.ctypes.data, places.ctypes.data),
                *(len(documents), frequencies.itemsize, len(places), position - positions[0]),
                *(0, 0, 0, 0, 0),
            )
        )
    found, counts = np.empty(len(wanted), np.int32), np.empty(len(wanted), np.float32)
    size = library.searchapp_phrase(
        ctypes.create_string_buffer(b"".join(packed)),
        len(terms),
        wanted.ctypes.data,
        len(wanted),
        found.ctypes.data,
        counts.ctypes.data,
    )
    if size < 0:
        raise IndexError("the positions of a term are not those of documents")
    return Postings(found[:size].copy(), counts[:size].copy())


TOGETHER = 1 << 15
"""Documents whose positions are looked at together: they stay in the processor's cache."""

COMPILED = 64
"""Of fewer documents NumPy reads the positions that lie between them, where compiled functions read all of a term."""

OUTSIDE = np.int64(1 << 48)
"""A place beyond all those where a phrase may begin."""

MARKED = 1 << 24
"""Up to so many places are marked; of more, in documents of very many words, each is searched for."""


@dataclass(frozen=True, slots=True)
class Phrase(ScoredLeaf):
    """Terms at relative positions, scored by the number of places where all stand."""

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

    def index_frequency(self, reader: IndexReader, here: int) -> int:
        """To find the phrases of all parts of an index takes too long: a phrase never counts as common."""
        return min(here, most_of_a_rare_term(reader.whole_count))

    def idf(self, field: FieldReader) -> np.float32:
        """The sum of the terms' idfs, in double."""
        parts = (field.idf(field.document_frequency(term)) for term in self.terms)
        return np.float32(sum(map(float, parts)))

    def frequency(self, field: FieldReader, document: int) -> float:
        return float(self.postings_among(field, np.array([document], np.int32)).frequencies.sum())

    def postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """The documents where the phrase stands, of some documents, ascending, or of all, and how often.

        First it is found which documents have all terms; positions are only read there, and some documents at a time.
        """
        return field.living(self._postings_among(field, among))

    def _postings_among(self, field: FieldReader, among: Numbers | None) -> Postings:
        """The same, dead documents too."""
        terms = [field.positions(term) for term in self.terms]
        known = [term for term in terms if term is not None]
        if len(known) < len(terms):
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        library = native.library()
        if library is not None and (among is None or len(among) >= COMPILED):
            return postings(library, known, self.positions, among)
        documents = _in_all([term.documents for term in known], field.documents, among)
        counts = [np.empty(0, np.int64)]
        for first in range(0, len(documents), TOGETHER):
            counts.append(self._counts(known, documents[first : first + TOGETHER]))
        count = np.concatenate(counts)
        return Postings(documents[count > 0], count[count > 0].astype(np.float32))

    def _counts(self, terms: Sequence[TermPositions], documents: Numbers) -> NDArray[np.int64]:
        """How often the phrase stands in each of some documents, all of which have all terms.

        Each document has room for the places where the phrase may begin, up to where it would with the last one of the
        rarest term. What other terms have elsewhere lies in the room of another document, or in none. A first term that
        stands twice on one position (as itself and as a synonym, say) begins the phrase twice; how often the others
        stand on theirs makes no difference.
        """
        base = int(documents[0])
        starts = np.full(int(documents[-1]) - base + 1, OUTSIDE)
        count, left = 0, documents
        ends = firsts = found = np.empty(0, np.int64)
        # The rarest first: each of the others is looked at only in the documents that are left.
        order = np.argsort([len(term.documents) for term in terms], kind="stable").tolist()
        for turn, number in enumerate(order):
            there, counts, positions = terms[number].of(left)
            ends_there = np.cumsum(counts)
            before = self.positions[number] - self.positions[0]
            if not turn:
                last = positions[ends_there - 1]
                if len(there) > len(documents):
                    last = last[np.isin(there, documents, assume_unique=True)]
                ends = np.cumsum(np.maximum(last.astype(np.int64) - before + 1, 0))
                starts[documents - base] = np.append(0, ends[:-1])
                count = int(ends[-1])
            places = _repeated(starts[there - base] - before, ends_there)
            places += positions
            if turn:
                hits = np.flatnonzero(_among(places, found, count))
                # It must be the room of its own document.
                found = places[hits]
                rows = ends.searchsorted(found, "right")
                stays = documents[rows] == there[ends_there.searchsorted(hits, "right")]
                found, left = found[stays], _distinct(documents[rows[stays]])
            elif before or len(there) > len(documents):
                found = places[(positions >= before) & (places < count)]
            else:
                found = places
            if not number:
                firsts = found
            if not len(found):
                return np.zeros(len(documents), np.int64)
        begun = firsts[_among(firsts, found, count)]
        return np.bincount(ends.searchsorted(begun, "right"), minlength=len(documents))

    def explained_idf(self, field: FieldReader) -> Explanation:
        terms = [Term(self.field, term).explained_idf(field) for term in self.terms]
        return explained(self.idf(field), "idf, sum of:", terms)

    def frequency_notation(self, frequency: np.float32) -> str:
        return f"phraseFreq={printed(frequency)}"

    def notation(self, schema: Schema) -> str:  # noqa: ARG002
        words = ["?"] * (self.positions[-1] + 1)
        for term, position in zip(self.terms, self.positions, strict=True):
            words[position] = term
        return f'{self.field}:"{" ".join(words)}"'

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        found = list(self._spans(tokens))
        return dict.fromkeys(self.terms, found) if found else {}

    def _spans(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """First and last position of each place where the terms stand in order, with at most as many holes as here."""
        where: defaultdict[str, list[int]] = defaultdict(list)
        for token in tokens:
            where[token.term].append(token.position)
        holes = max(0, self.positions[-1] - self.positions[0] - len(self.positions) + 1)
        for start in where[self.terms[0]]:
            last, skipped = start, 0
            for term in self.terms[1:]:
                following = next((place for place in where[term] if place > last), None)
                if following is None:
                    return
                skipped += following - last - 1
                last = following
            if skipped <= holes:
                yield start, last


def _in_all(lists: Sequence[Numbers], count: int, among: Numbers | None) -> Numbers:
    """The documents of `among`, None for all of `count`, that are in all of several ascending lists."""
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
    """Each of the documents once; they are ascending, so that they need not be sorted."""
    return documents[np.diff(documents, prepend=-1) > 0]


def _repeated(numbers: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number as often as it takes to get to its end, as `repeat`; faster where most come once or twice."""
    steps = np.zeros(ends[-1], np.int64)
    steps[0] = numbers[0]
    steps[ends[:-1]] = np.diff(numbers)
    return np.cumsum(steps, out=steps)


def _among(places: NDArray[np.int64], others: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Which of some places are among others, which are ascending and less than `count`."""
    if count <= MARKED:
        marked = np.zeros(count + 2, bool)  # what lies outside is looked for at either end
        marked[others + 1] = True
        return marked.take(places + 1, mode="clip")
    return arrays.find_sorted(others, places)[1]


LONGEST = 1001
"""States of a graph that Lucene is sure to follow: its search goes 1000 deep."""

MOST_PATHS = 1024

Step = tuple[str, int]
"""A term and by how many positions it lies behind the term before."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: `paths` are the ways to read it.

    `stacked` says that all of them are one term long and end at the same place, as terms on one position do.
    """

    paths: tuple[tuple[Step, ...], ...]
    stacked: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    start: int
    end: int
    step: Step


def parts(tokens: Sequence[tuple[str, int, int]]) -> list[Part]:
    """The parts of a text, one after the other.

    Args:
        tokens: terms with their positions, which ascend, and over how many positions they reach

    Raises:
        Refused: the text is too long for a graph, or reads in too many ways, or in none
    """
    edges = _live(list(_edges(tokens)))
    if not edges:
        raise unsupported("a text of which a synonym of several words leaves no way to read it")
    states = sorted({state for edge in edges for state in (edge.start, edge.end)})
    if len(states) > LONGEST:
        raise unsupported(f"a text of more than {LONGEST - 1} positions with synonyms of several words")
    covered = {state for edge in edges for state in range(edge.start + 1, edge.end)}
    cuts = [state for state in states if state not in covered]
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge.start].append(edge)
    return [_part(leaving, start, end) for start, end in pairwise(cuts)]


def _part(leaving: dict[int, list[_Edge]], start: int, end: int) -> Part:
    found = []
    for path in _paths(leaving, start, end):
        found.append(path)
        if len(found) > MOST_PATHS:
            raise unsupported(f"a text that synonyms let read in more than {MOST_PATHS} ways")
    return Part(tuple(found), len({edge.end for edge in leaving[start]}) == 1)


def _paths(leaving: dict[int, list[_Edge]], start: int, end: int) -> Iterator[tuple[Step, ...]]:
    if start == end:
        yield ()
        return
    for edge in leaving[start]:
        for rest in _paths(leaving, edge.end, end):
            yield (edge.step, *rest)


def _edges(tokens: Sequence[tuple[str, int, int]]) -> Iterator[_Edge]:
    """The tokens as edges between states; a hole between two tokens is no state, the token after it is longer.

    A token takes the step of the first one on its position, whichever path it ends up on.
    """
    at = before = -1
    gap = 0
    step = 1
    for term, position, length in tokens:
        if position > before:
            step = position - before
            gap = step - 1
            at += 1
        else:
            at -= gap
        yield _Edge(at, at + length + gap, (term, step))
        at += gap
        before = position


def _live(edges: list[_Edge]) -> list[_Edge]:
    """Those on a way from the beginning to the end: a filter may have taken the token that led to another."""
    reached = {0}
    for edge in edges:  # they begin in ascending order
        if edge.start in reached:
            reached.add(edge.end)
    reaching = {max(edge.end for edge in edges)}
    for edge in sorted(edges, key=lambda edge: -edge.start):
        if edge.end in reaching:
            reaching.add(edge.start)
    return [edge for edge in edges if edge.start in reached and edge.end in reaching]


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


def read_match(parser: Parser, content: Any) -> Query:
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


def read_match_phrase(parser: Parser, content: Any) -> Query:
    """The terms of a text, one right after the other."""
    known = ("slop", "analyzer", "zero_terms_query")
    name, given = parser.on_field(content, "match_phrase", "query", known)
    parameters.without_null(given, known, "the query `match_phrase`")
    if parameters.integer(given.get("slop", 0), "`slop`") != 0:
        raise unsupported(f"`slop: {given['slop']}` of the query `match_phrase`, only 0")
    _zero_terms(given)  # refused even where it plays no part
    query = _phrase(parser, name, required(given, "query", "match_phrase"), given)
    return boosted(query, given, "match_phrase")


def read_multi_match(parser: Parser, content: Any) -> Query:
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
    for part in parts(tokens):
        if part.stacked:
            clauses.append(_stacked(field, [term for ((term, _step),) in part.paths]))
        else:
            ways = tuple(_path(field, path) for path in part.paths)
            clauses.append(Bool(should=ways) if len(ways) > 1 else ways[0])
    return Bool(must=tuple(clauses)) if operator == "and" else Bool(should=tuple(clauses))


def _path(field: Field, path: tuple[Step, ...]) -> Query:
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
