"""Occurrences of a query in the text of a field of a document, with offsets.

Source: org.apache.lucene.search.{Matches, MatchesUtils, DisjunctionMatchesIterator, ExactPhraseMatcher,
SloppyPhraseMatcher}, org.apache.lucene.queries.spans.SpanWeight, and the method `matches` of weights
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from searchapp.lucene.analysis.characters import replace_halves
from searchapp.lucene.errors import unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction
from searchapp.lucene.queries.boosting import Boosting
from searchapp.lucene.queries.combined import CombinedFields
from searchapp.lucene.queries.distance_feature import DistanceFeature
from searchapp.lucene.queries.function_score import FunctionScore
from searchapp.lucene.queries.fuzzy import expanded_fuzzy
from searchapp.lucene.queries.match_all import MatchAll
from searchapp.lucene.queries.nested import Nested
from searchapp.lucene.queries.phrase import Heap, MultiPhrase, PhrasePrefix, SloppyMatcher
from searchapp.lucene.queries.query import Leaf, MarkedLeaf, Query, rewrite
from searchapp.lucene.queries.spans import SpanPhrase
from searchapp.lucene.queries.term import MultiTerm, Synonym, Term
from searchapp.lucene.queries.terms_set import Covering
from searchapp.lucene.records import Token


class Match(NamedTuple):
    """An occurrence in a text; offsets are of UTF-16 code units."""

    first: int  # positions of its first and last token
    last: int
    start: int
    end: int
    label: str  # identifies the query of which this is an occurrence
    words: tuple[Match, ...] = ()  # the occurrences to mark instead of this one


class FieldMatcher:
    """Finds the occurrences of a query in one field of a document.

    Args:
        tokens: those of the field's text.
        has: whether the document matches a query that is not on the terms of the field.
    """

    def __init__(
        self, field: str, tokens: Iterable[Token], has: Callable[[Query], bool], schema: Schema
    ) -> None:
        self._field = field
        self._has = has
        self._schema = schema
        self._tokens: defaultdict[str, list[Token]] = defaultdict(list)
        for token in tokens:
            self._tokens[replace_halves(token.term)].append(token)
        self._terms = sorted(self._tokens)

    def matches(self, query: Query) -> list[Match]:
        """Return the occurrences of a query before rewriting, by ascending position."""
        matches = self._matches(rewrite(self._expanded(query))) or []
        return [word for match in matches for word in match.words or (match,)]

    def _expanded(self, query: Query) -> Query:
        """Replace the queries that stand for indexed terms by those for terms of this text, as for an index of it."""
        if (expanded := expanded_fuzzy(query, self._field, self._terms)) is not None:
            return expanded
        if isinstance(query, PhrasePrefix) and query.field == self._field:
            return query.expanded_among(self._terms)
        if isinstance(query, CombinedFields):
            return Bool(
                should=tuple(Term(name, term) for term in query.terms for name, _weight in query.fields)
            )
        children = query.children()
        expanded_children = tuple(map(self._expanded, children))
        is_same = all(new is old for new, old in zip(expanded_children, children, strict=True))
        return query if is_same else query.with_children(expanded_children)

    def _matches(self, query: Query) -> list[Match] | None:
        """Return the occurrences of a query, None if the document does not match it."""
        match query:
            case MarkedLeaf(field=self._field):
                return self._of_leaf(query) or None
            case Leaf():
                return [] if self._has(query) else None
            case TermsDisjunction():
                return self._matches(query.as_bool())
            case Bool():
                return self._of_bool(query)
            case Covering():
                found = [part for clause in query.clauses if (part := self._matches(clause)) is not None]
                as_many = Covering((MatchAll(),) * len(found), query.minimum)
                return self._union(found) if self._has(as_many) else None
            case DisMax():
                return self._union(map(self._matches, query.queries))
            case Boosting():
                return self._matches(query.positive)
            case FunctionScore(min_score=None):
                return self._matches(query.query)
            case FunctionScore() | DistanceFeature():  # Elasticsearch has no occurrences of it
                return [] if self._has(query) else None
        (child,) = query.children()
        return self._matches(child)

    def _of_bool(self, query: Bool) -> list[Match] | None:
        if any(self._matches(clause) is not None for clause in query.must_not):
            return None
        required = [self._matches(clause) for clause in (*query.must, *query.filter)]
        optional = [found for clause in query.should if (found := self._matches(clause)) is not None]
        if None in required or len(optional) < query.minimum:
            return None
        return self._union([*required, *optional])

    @staticmethod
    def _union(parts: Iterable[list[Match] | None]) -> list[Match] | None:
        present = [part for part in parts if part is not None]
        return merged(present) if present else None

    def _of_leaf(self, leaf: MarkedLeaf) -> list[Match]:
        match leaf:
            case Term():
                return self._of_terms([leaf.term], leaf.term)
            case Synonym():
                return self._of_terms(leaf.terms, " ".join(leaf.terms))
            case MultiPhrase():
                matches = self._sloppy(leaf) if leaf.slop else self._exact(leaf)
                label = " ".join(term for terms in leaf.terms for term in terms)
                return [Match(*match, label) for match in matches]
            case SpanPhrase():
                return list(self._of_spans(leaf))
        # Other leaves stand for terms without an order of positions.
        terms = leaf.term_spans([token for tokens in self._tokens.values() for token in tokens])
        return self._of_terms(sorted(terms), repr(leaf))

    def _of_spans(self, phrase: SpanPhrase) -> Iterator[Match]:
        """Yield the occurrences of a phrase of a token graph, with those of their words."""
        words: dict[int, Match] = {}
        tokens = [(term, token) for term in phrase.terms for token in self._tokens.get(term, ())]
        for term, token in tokens:
            if token.position in words:
                raise unsupported(
                    "highlights of phrases of a token graph in texts with several words at a position"
                )
            words[token.position] = Match(token.position, token.position, token.start, token.end, term)
        label = phrase.notation(self._schema)
        for first, after, positions in phrase.occurrences(token for _term, token in tokens):
            inner = tuple(words[position] for position in positions)
            yield Match(first, after - 1, inner[0].start, inner[-1].end, label, inner)

    def _of_terms(self, terms: Iterable[str], label: str) -> list[Match]:
        lists = [self._tokens[term] for term in terms if term in self._tokens]
        return merged([[Match(*_place(token), label) for token in tokens] for tokens in lists])

    def _alternatives(self, terms: Sequence[str]) -> list[Token]:
        """Return the tokens of any of the terms."""
        tokens = [token for term in terms for token in self._tokens.get(term, ())]
        return sorted(tokens, key=lambda token: token.position)

    def _exact(self, phrase: MultiPhrase) -> Iterator[tuple[int, int, int, int]]:
        lists = list(map(self._alternatives, phrase.terms))
        offsets = [position - phrase.positions[0] for position in phrase.positions]
        ends = {token.position: token.end for token in reversed(lists[-1])}
        positions = [{token.position for token in tokens} for tokens in lists]
        for token in lists[0]:
            start = token.position
            if all(start + offset in others for offset, others in zip(offsets, positions, strict=True)):
                last = start + offsets[-1]
                end = token.end if len(lists) == 1 else ends[last]
                yield start, last, token.start, end

    def _sloppy(self, phrase: MultiPhrase) -> Iterator[tuple[int, int, int, int]]:
        lists = list(map(self._alternatives, phrase.terms))
        if not all(lists):
            return
        matcher = SloppyMatcher(phrase.terms, phrase.positions, phrase.slop)
        tokens_of = dict(zip(matcher.cursors, lists, strict=True))
        for cursor, tokens in tokens_of.items():
            cursor.begin([token.position for token in tokens])
        for lead in matcher.occurrences():
            token = tokens_of[lead.cursor][lead.number]
            others = [(cursor, tokens[cursor.number]) for cursor, tokens in tokens_of.items()]
            firsts = [token, *(other for _cursor, other in others)]
            lasts = [token, *(other for cursor, other in others if cursor is not lead.cursor)]
            yield (
                min(first.position for first in firsts),
                max(last.position for last in lasts),
                min(first.start for first in firsts),
                max(last.end for last in lasts),
            )


def has_nested(query: Query) -> bool:
    """Return whether Elasticsearch marks the words of a query (`word_matches`) instead of its occurrences."""
    children = query.children()
    if isinstance(query, FunctionScore | Boosting):  # only the query that it scores
        children = children[:1]
    return isinstance(query, Nested) or any(map(has_nested, children))


def word_matches(query: Query, field: str, tokens: Sequence[Token]) -> tuple[list[Match], dict[str, int]]:
    """Return the words of a query in a text that need not match it, and the frequency of each label.

    Source: org.apache.lucene.search.uhighlight.{MemoryIndexOffsetStrategy, PhraseHelper}
    """
    spans_of: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    sets: dict[str, set[str]] = {}  # the words of each query for a set of terms
    is_limited = False  # by the positions of phrases
    leaves = [leaf for leaf, _boost in query.leaves() if isinstance(leaf, MarkedLeaf) and leaf.field == field]
    for leaf in leaves:
        if isinstance(leaf, MultiTerm):
            sets[repr(leaf)] = set(leaf.term_spans(tokens))
            continue
        if isinstance(leaf, SpanPhrase | PhrasePrefix) or (isinstance(leaf, MultiPhrase) and leaf.slop):
            raise unsupported(
                "highlights of phrases with slop, a prefix or a token graph beside the query `nested`"
            )
        is_limited = is_limited or isinstance(leaf, MultiPhrase)
        for term, spans in leaf.term_spans(tokens).items():
            spans_of[term] += spans
    if is_limited and _contains(query, (FunctionScore, CombinedFields)):
        raise unsupported("highlights of phrases and scored or combined queries beside the query `nested`")

    def labels(token: Token) -> Iterator[str]:
        if any(first <= token.position <= last for first, last in spans_of.get(token.term, ())):
            yield token.term
        yield from (label for label, words in sets.items() if token.term in words)

    found = [Match(*_place(token), label) for token in tokens for label in labels(token)]
    return sorted(found, key=lambda match: match[2:5]), Counter(match.label for match in found)


def _contains(query: Query, kinds: tuple[type, ...]) -> bool:
    return isinstance(query, kinds) or any(_contains(child, kinds) for child in query.children())


def _place(token: Token) -> tuple[int, int, int, int]:
    return token.position, token.position, token.start, token.end


def merged(lists: Sequence[list[Match]]) -> list[Match]:
    """Merge lists by position; Lucene's heap decides the order of matches with the same positions."""
    streams = [_Stream(matches) for matches in lists if matches]
    if len(streams) < 2:
        return streams[0].matches if streams else []
    heap = Heap(streams)
    result: list[Match] = []
    while True:
        top = heap.top
        result.append(top.matches[top.number])
        if top.advance():
            heap.update_top()
        elif len(heap) > 1:
            heap.pop()
            heap.update_top()
        else:
            return result


class _Stream:
    """A list of matches inside a heap."""

    __slots__ = ("key", "matches", "number")

    def __init__(self, matches: list[Match]) -> None:
        self.matches = matches
        self.number = -1
        self.advance()

    def advance(self) -> bool:
        if self.number + 1 == len(self.matches):
            return False
        self.number += 1
        self.key = _Key(self.matches[self.number][:2])
        return True


class _Key(tuple[int, int]):
    """Positions; equal ones are less than each other, as in Lucene."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return tuple.__le__(self, other)  # type: ignore[operator]
