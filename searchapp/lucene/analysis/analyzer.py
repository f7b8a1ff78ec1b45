"""Analyzers: char filters, a tokenizer and token filters, applied in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, TypeVar, cast

from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.characters import (
    Corrections,
    has_halves,
    joined_units,
    replace_halves,
    utf16_length,
    utf16_offsets,
)
from searchapp.lucene.analysis.token_filters import (
    AnyFilter,
    ShingleFilter,
    Span,
    StreamFilter,
    TermChain,
    TermFilter,
    TokenStream,
    UniqueFilter,
    stream_filters,
    term_outcome,
)
from searchapp.lucene.analysis.tokenizers import Tokenizer
from searchapp.lucene.records import AnalysisStep, Token

if TYPE_CHECKING:
    from searchapp.lucene.analysis.bulk import BulkAnalysis, BulkWork

REMEMBERED_TEXTS = 64
LONGEST_REMEMBERED = 20_000  # characters; results of longer texts are not cached

R = TypeVar("R")
CharFilters = tuple[CharFilter, ...]
Normalizer = tuple[Sequence[CharFilter], Sequence[TermFilter]]


def _remembering(function: Callable[[str], R]) -> Callable[[str], R]:
    remembered = lru_cache(REMEMBERED_TEXTS)(function)
    return lambda text: remembered(text) if len(text) <= LONGEST_REMEMBERED else function(text)


class SharedAnalysis:
    """Caches of texts after equal char filters and tokenizers, and of term chains, for the analyzers of an index."""

    # The fields of a document usually have one source, and a topic is matched against all fields.
    def __init__(self) -> None:
        self._texts: dict[CharFilters, Callable[[str], str]] = {(): lambda text: text}
        self._terms: dict[tuple[CharFilters, Tokenizer], Callable[[str], list[str]]] = {}
        self._chains: dict[tuple[tuple[TermFilter, ...], bool], TermChain] = {}

    @cached_property
    def bulk(self) -> BulkWork:
        from searchapp.lucene.analysis.bulk import BulkWork  # for indexing only

        return BulkWork()

    def _text(self, char_filters: CharFilters) -> Callable[[str], str]:
        if char_filters not in self._texts:
            previous, last = self._text(char_filters[:-1]), char_filters[-1]
            self._texts[char_filters] = _remembering(lambda text: last.replace(previous(text)))
        return self._texts[char_filters]

    def terms(self, char_filters: CharFilters, tokenizer: Tokenizer) -> Callable[[str], list[str]]:
        """Return the function from a text to its tokens before token filters; callers must not modify its results."""
        key = char_filters, tokenizer
        if key not in self._terms:
            filtered = self._text(char_filters)
            self._terms[key] = _remembering(
                (lambda text: tokenizer.terms(filtered(text))) if char_filters else tokenizer.terms
            )
        return self._terms[key]

    def chain(self, filters: tuple[TermFilter, ...], keeps_marks: bool) -> TermChain:
        key = filters, keeps_marks
        if key not in self._chains:
            self._chains[key] = TermChain(filters, keeps_marks)
        return self._chains[key]


def _distinct_terms(
    shared: SharedAnalysis, terms: Callable[[str], list[str]], filters: Sequence[AnyFilter]
) -> Callable[[str], tuple[str, ...] | None] | None:
    """Return the function from a text to its distinct terms; None for filters that require the full analysis.

    The function returns the terms in the order of their first tokens, or None for a text that requires the full
    analysis: also one that repeats a term, without a filter that removes repetitions.
    """
    *others, last = filters or (None,)
    if not isinstance(last, UniqueFilter):
        return _unrepeated_terms(shared, terms, filters)
    if last.only_on_same_position:
        return None
    pairs = others.pop() if others and isinstance(others[-1], ShingleFilter) else None
    if isinstance(pairs, ShingleFilter) and not pairs.gives_pairs:
        return None
    if any(isinstance(filter_, StreamFilter) for filter_ in others):
        return None
    outcome = shared.chain(tuple(others), False).terms.__getitem__  # type: ignore[arg-type]

    def distinct(text: str) -> tuple[str, ...]:
        outcomes = dict.fromkeys(map(outcome, dict.fromkeys(terms(text))))
        outcomes.pop(None, None)
        return cast("tuple[str, ...]", tuple(outcomes))

    if not isinstance(pairs, ShingleFilter):
        return distinct
    join = pairs.separator.join

    def distinct_pairs(text: str) -> tuple[str, ...] | None:
        outcomes = list(map(outcome, terms(text)))
        if None in outcomes:  # the shingle filter inserts a filler for a removed term
            return None
        present = cast("list[str]", outcomes)
        if has_halves(present):  # a pair may join two surrogates
            return None
        return tuple(dict.fromkeys(map(join, pairwise(present))))

    return distinct_pairs


def _unrepeated_terms(
    shared: SharedAnalysis, terms: Callable[[str], list[str]], filters: Sequence[AnyFilter]
) -> Callable[[str], tuple[str, ...] | None] | None:
    """Return the function from a text to its terms, or to None if one is repeated; see `_distinct_terms`."""
    if any(isinstance(filter_, StreamFilter) for filter_ in filters):
        return None
    outcome = shared.chain(tuple(filters), False).terms.__getitem__  # type: ignore[arg-type]

    def unrepeated(text: str) -> tuple[str, ...] | None:
        outcomes = tuple([term for term in map(outcome, terms(text)) if term is not None])
        return outcomes if len(set(outcomes)) == len(outcomes) else None

    return unrepeated


DEFAULT_POSITION_GAP = 100  # positions between two values of a field, without `position_increment_gap`


class Analyzer:
    """Converts text to terms, exactly as Elasticsearch's analyzer with the same settings.

    Args:
        tokenizer_name: None for a built-in analyzer, which `steps` reports as one step.
        normalizer: the filters of `normalized`; None if they are unknown.
        shared: caches of the index.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        filters: Sequence[tuple[str, AnyFilter]] = (),
        char_filters: Sequence[tuple[str, CharFilter]] = (),
        *,
        tokenizer_name: str | None = None,
        position_increment_gap: int = DEFAULT_POSITION_GAP,
        shared: SharedAnalysis | None = None,
        normalizer: Normalizer = ((), ()),
    ) -> None:
        self.name = name
        self.position_increment_gap = position_increment_gap
        self._char_filters = tuple(char_filters)
        self._tokenizer = tokenizer
        self._tokenizer_name = tokenizer_name
        self._filters = tuple(filters)
        self._normalizer = normalizer
        self._shared = shared = shared or SharedAnalysis()
        pieces = tuple(filter_ for _, filter_ in filters)
        replacing = tuple(char_filter for _, char_filter in char_filters)
        self._leaves_halves = any(
            getattr(piece, "leaves_halves", False) for piece in (tokenizer, *replacing, *pieces)
        )
        # Whether a token may span several positions, so that queries read `graph`.
        self.branches = any(getattr(piece, "branches", False) for piece in pieces) and not any(
            getattr(piece, "disables_graphs", False) for piece in pieces
        )
        self._needs_offsets = any(getattr(piece, "needs_offsets", False) for piece in pieces)
        self._needs_types = any(getattr(piece, "needs_types", False) for piece in pieces)
        self._terms = shared.terms(replacing, tokenizer)
        self._stages = stream_filters(pieces, shared.chain)
        # Returns the distinct terms of a text; None if they require the full analysis.
        self.distinct_terms = None if self._leaves_halves else _distinct_terms(shared, self._terms, pieces)

    @cached_property
    def bulk(self) -> BulkAnalysis | None:
        """The analysis of many texts at once; None for components that process one text at a time."""
        from searchapp.lucene.analysis.bulk import BulkAnalysis  # for indexing only

        char_filters = tuple(char_filter for _, char_filter in self._char_filters)
        filters = tuple(filter_ for _, filter_ in self._filters)
        return BulkAnalysis.of(
            self._shared.bulk, char_filters, self._tokenizer, filters, leaves_halves=self._leaves_halves
        )

    def terms(self, text: str) -> list[tuple[str, int]]:
        tokens = self.stream(text)
        return list(zip(tokens.terms, tokens.positions, strict=True))

    def terms_of_each(self, texts: Sequence[str]) -> Iterator[list[str]]:
        tokens = self.bulk.tokens(texts) if self.bulk else None
        if tokens is None:
            yield from (self.stream(text).terms for text in texts)
            return
        terms = iter([tokens.vocabulary[number] for number in tokens.terms.tolist()])
        for count in tokens.counts.tolist():
            yield list(islice(terms, count))

    def normalize(self, text: str) -> str:
        """Return the only term that a normalizer makes of a text."""
        (term,) = self.stream(text).terms
        return term

    def joined(self, texts: Sequence[str], gap: int | None = None) -> tuple[list[str], list[int]]:
        """Return the terms and positions of several values; `gap` replaces the analyzer's own."""
        terms: list[str] = []
        positions: list[int] = []
        base = 0
        for text in texts:
            tokens = self.stream(text)
            terms += tokens.terms
            positions += [base + position for position in tokens.positions] if base else tokens.positions
            # Also after a value without terms.
            base += tokens.end_position + (self.position_increment_gap if gap is None else gap)
        return terms, positions

    def graph(self, text: str) -> list[tuple[str, int, int]] | None:
        """Return terms, positions and lengths in positions; None if each token spans one position."""
        tokens = self.stream(text)
        if not tokens.lengths or max(tokens.lengths) == 1:
            return None
        return list(zip(tokens.terms, tokens.positions, tokens.lengths, strict=True))

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens with positions and offsets in UTF-16 code units."""
        return list(_as_tokens(self.stream(text, offsets=True)))

    def stream(self, text: str, *, offsets: bool = False) -> TokenStream:
        """Return the tokens as parallel lists; `spans` only with `offsets`."""
        if offsets or self._needs_offsets or self._needs_types:
            tokens = self._tokens_with_offsets(text)
        else:
            terms = self._terms(text)
            tokens = TokenStream(terms, list(range(len(terms))))
        for stage in self._stages:
            tokens = stage.apply(tokens)
        if self._leaves_halves:
            tokens.terms = [*map(replace_halves, tokens.terms)]
        return tokens

    def emitted(self, text: str) -> tuple[list[Token], int]:
        """Return the tokens as `tokens` does, and the position after them and removed tokens.

        Lone surrogates are kept, which the index replaces by U+FFFD.
        """
        tokens = self._tokens_with_offsets(text)
        for stage in self._stages:
            tokens = stage.apply(tokens)
        rows = zip(tokens.terms, tokens.positions, tokens.spans or (), strict=True)
        return [
            Token(term, position, start, end) for term, position, (start, end) in rows
        ], tokens.end_position

    def normalized(self, text: str) -> str:
        """Return a word as one term, changed only by filters of characters, as for prefixes, patterns and ranges."""
        char_filters, filters = self._normalizer
        for char_filter in char_filters:
            text = char_filter.replace(text)
        return replace_halves(term_outcome(filters, text) or "")

    def steps(self, text: str) -> list[AnalysisStep]:
        """Return the output of each component, as `_analyze` explains it."""
        if self._tokenizer_name is None:
            return [AnalysisStep("analyzer", self.name, tokens=tuple(self.tokens(text)))]
        steps = []
        filtered = text
        for name, char_filter in self._char_filters:
            filtered = char_filter.replace(filtered)
            steps.append(AnalysisStep("char_filter", name, text=filtered))
        tokens = self._tokens_with_offsets(text)
        filters = list(self._filters)
        while filters and not filters[0][0]:  # a part of the tokenizer
            tokens = stream_filters([filters.pop(0)[1]])[0].apply(tokens)
        steps.append(AnalysisStep("tokenizer", self._tokenizer_name, tokens=tuple(_as_tokens(tokens))))
        for name, filter_ in filters:
            stage = filter_ if isinstance(filter_, StreamFilter) else TermChain((filter_,))
            tokens = stage.apply(tokens)
            steps.append(AnalysisStep("filter", name, tokens=tuple(_as_tokens(tokens))))
        return steps

    def _tokens_with_offsets(self, text: str) -> TokenStream:
        corrections: list[Corrections] = []
        for _, char_filter in self._char_filters:
            text, correction = char_filter.replace_tracked(text)
            corrections.append(correction)
        text, token_spans = self._tokenizer.cut(text)
        terms = [self._tokenizer.normalize(joined_units(text[start:end])) for start, end in token_spans]
        spans = _corrected(token_spans, utf16_offsets(text), corrections, self._tokenizer.stops_after)
        end = _corrected([(0, utf16_length(text))], None, corrections)[0][1]
        types = self._tokenizer.types(text, token_spans) if self._needs_types else None
        return TokenStream(terms, list(range(len(terms))), spans, end_offset=end, types=types)


def _corrected(
    spans: Sequence[Span],
    unit_offsets: list[int] | None,
    corrections: Sequence[Corrections],
    stops_after: int | None = None,
) -> list[Span]:
    """Convert spans in the filtered text to spans of code units in the original text.

    Args:
        spans: in characters, or in code units without `unit_offsets`.
        unit_offsets: the code unit of each character.
        corrections: of each char filter.
        stops_after: length of a token after which the tokenizer stopped reading.
    """

    def correct(offset: int, unread: bool = False) -> int:
        for correction in reversed(corrections):
            offset = correction.correct(offset, unread=unread)
            unread = False  # earlier char filters always read ahead
        return offset

    units = (
        spans if unit_offsets is None else [(unit_offsets[start], unit_offsets[end]) for start, end in spans]
    )
    return [(correct(start), correct(end, unread=end - start == stops_after)) for start, end in units]


def _as_tokens(tokens: TokenStream) -> Iterator[Token]:
    for term, position, (start, end) in zip(tokens.terms, tokens.positions, tokens.spans or (), strict=True):
        yield Token(replace_halves(term), position, start, end)
