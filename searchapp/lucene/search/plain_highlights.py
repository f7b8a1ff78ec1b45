"""The highlighter `plain`: fragments of about equal length, ranked by the distinct terms in them.

Source: org.apache.lucene.search.highlight.{Highlighter, QueryScorer, TokenGroup, WeightedSpanTermExtractor,
SimpleFragmenter, SimpleSpanFragmenter}, org.elasticsearch.search.fetch.subphase.highlight.PlainHighlighter

Overlapping tokens form a group, which is marked from its first to its last matching token. All offsets are of UTF-16
code units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from searchapp.lucene.analysis.characters import has_halves, joined_units, replace_halves
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.parameters import to_float32
from searchapp.lucene.queries.fuzzy import Fuzzy
from searchapp.lucene.queries.query import EVERYWHERE, MarkedLeaf
from searchapp.lucene.records import Token
from searchapp.lucene.search.highlight_options import HighlightOptions, encoded

LARGEST_GROUP = 50  # further overlapping tokens are ignored

# The leaves of a query on a field in order, with their boosts. The last leaf with a term decides on its weight; a
# phrase limits the positions of terms only if no other leaf has them.
MarkedLeaves = Sequence[tuple[MarkedLeaf, float]]


@dataclass(slots=True)
class _WeightedTerm:
    weight: float
    is_limited: bool  # to the spans of phrases
    spans: list[tuple[int, int]] = field(default_factory=list)  # first and last positions

    def matches(self, position: int) -> bool:
        return not self.is_limited or any(first <= position <= last for first, last in self.spans)


@dataclass(slots=True)
class _Fragment:
    score: float
    order: int
    text: str


def plain_highlights(
    values: Sequence[tuple[str, Sequence[Token]]], leaves: MarkedLeaves, options: HighlightOptions
) -> list[str]:
    """Return the best fragments of the values of a field with marked matches, or the beginning of the first value.

    Args:
        values: texts as UTF-16 code units, and their tokens, possibly with lone surrogates.
    """
    most = options.fragments or 1
    fragments: list[_Fragment] = []
    base = 0
    for text, tokens in values:
        terms = _weighted_terms(tokens, leaves)
        if not terms and not options.fragments:
            base += 1
            continue
        found = _fragments(text, tokens, terms, options)
        best = sorted(found, key=lambda fragment: (-fragment.score, fragment.order))[:most]
        fragments += [
            replace(fragment, order=base + fragment.order) for fragment in best if fragment.score > 0
        ]
        base += len(best)
    if options.by_score:
        fragments.sort(key=lambda fragment: -fragment.score)
    else:
        fragments.sort(key=lambda fragment: fragment.order)
    if options.fragments or len(values) < 2:
        fragments = fragments[:most]
    if not fragments and options.no_match_size > 0 and values:
        return _beginning(*values[0], options.no_match_size)
    return [joined_units(fragment.text) for fragment in fragments]  # a group may end inside a surrogate pair


def _weighted_terms(tokens: Sequence[Token], leaves: MarkedLeaves) -> dict[str, _WeightedTerm]:
    """Return the terms to mark in a text; terms with lone surrogates are not in the index."""
    if has_halves(token.term for token in tokens):
        tokens = [replace(token, term=replace_halves(token.term)) for token in tokens]
    terms: dict[str, _WeightedTerm] = {}
    for leaf, boost in leaves:
        for term, spans in leaf.term_spans(tokens).items():
            if spans is EVERYWHERE:
                weight = leaf.weight_of(term, boost) if isinstance(leaf, Fuzzy) else boost
                terms[term] = _WeightedTerm(weight, is_limited=False)
            else:
                terms.setdefault(term, _WeightedTerm(boost, is_limited=True)).spans += spans
    return terms


def _fragments(
    text: str, tokens: Sequence[Token], terms: Mapping[str, _WeightedTerm], options: HighlightOptions
) -> list[_Fragment]:
    starts_fragment = _fragmenter(len(text), terms, options)
    fragments = [_Fragment(0.0, 0, "")]
    found: set[str] = set()
    pieces: list[str] = []
    done = reach = 0  # the ends of the text in `pieces`, and of the last group
    for first, last in _groups(tokens):
        if first and starts_fragment(tokens[first], tokens[first].position - tokens[first - 1].position):
            pieces.append(encoded(text[done:reach], options))
            done = reach
            fragments[-1].text = "".join(pieces)
            pieces.clear()
            found.clear()
            fragments.append(_Fragment(0.0, len(fragments), ""))
        matching: list[Token] = []
        for number in range(first, last):
            token = tokens[number]
            term = terms.get(token.term)
            if term is None or not term.matches(token.position):
                continue
            if token.term not in found:
                found.add(token.term)
                fragments[-1].score = to_float32(fragments[-1].score + term.weight)
            if term.weight > 0 and number < first + LARGEST_GROUP:
                matching.append(token)
        start, end = tokens[first].start, tokens[first].end
        if matching:
            start, end = min(token.start for token in matching), max(token.end for token in matching)
        if matching or start < reach:  # a large group may begin inside the one before, whose text is repeated
            pieces.append(encoded(text[done : max(start, reach)], options))
            piece = encoded(text[start:end], options)
            pieces.append(f"{options.before[0]}{piece}{options.after[0]}" if matching else piece)
            done = max(reach, end)
        reach = max(reach, end)
    pieces.append(encoded(text[done:], options))
    fragments[-1].text = "".join(pieces)
    return fragments


def _groups(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first token of each group, and after its last token."""
    first = 0
    while first < len(tokens):
        group_end = tokens[first].end
        last = first + 1
        while last < len(tokens) and tokens[last].start < group_end:
            if last - first < LARGEST_GROUP:
                group_end = max(group_end, tokens[last].end)
            last += 1
        yield first, last
        first = last


def _fragmenter(
    length: int, terms: Mapping[str, _WeightedTerm], options: HighlightOptions
) -> Callable[[Token, int], bool]:
    """Return whether a fragment begins at a token, which is so many positions after the token before it.

    It must be called with the first token of each group but the first, in order.
    """
    if not options.fragments:
        return lambda _token, _step: False
    size, count = options.size, 1
    spares = 0 if options.fragmenter == "simple" else (size & 0xFFFFFFFF) >> 1  # at the end of a text
    position, waits_for = -1, -1

    def starts_fragment(token: Token, step: int) -> bool:
        nonlocal count, position, waits_for
        if options.fragmenter != "simple":
            position += step  # Lucene does not count the tokens inside groups
            if waits_for > position:
                return False
            spans = terms[token.term].spans if token.term in terms else []
            waits_for = next((last + 1 for first, last in spans if first == position), -1)
        is_new = token.end >= size * count and length - token.end >= spares
        count += is_new
        return is_new

    return starts_fragment


def _beginning(text: str, tokens: Sequence[Token], size: int) -> list[str]:
    """Return the beginning of a text up to the last token that ends within a size."""
    end = len(text)
    if end > size:
        end = -1
        for token in tokens:
            if token.end > size:
                break
            end = token.end
            if end == size:
                break
    return [joined_units(text[:end])] if end > 0 else []
