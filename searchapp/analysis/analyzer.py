"""An analyzer: char filters, a tokenizer and token filters in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.different import different_terms
from searchapp.analysis.offsets import Corrections, joined_units, utf16_length, utf16_places, whole
from searchapp.analysis.shared import Shared, fused
from searchapp.analysis.tokenizers import Tokenizer
from searchapp.analysis.tokens import Span, StreamFilter, TermFilter, Tokens
from searchapp.model import AnalysisStep, Token

DEFAULT_POSITION_GAP = 100
"""Positions between two values of one field, unless the analyzer sets `position_increment_gap`."""


@dataclass(frozen=True, slots=True)
class NamedCharFilter:
    """A char filter and the name that the settings give it."""

    name: str
    filter: CharFilter


@dataclass(frozen=True, slots=True)
class NamedTokenFilter:
    """A token filter, which looks at one term at a time or at the stream, and its name."""

    name: str
    filter: TermFilter | StreamFilter


class Analyzer:
    """Makes terms of text, exactly as Elasticsearch's analyzer of the same settings does.

    A built-in analyzer is a whole to Elasticsearch, a custom one is the sum of its parts: that is how `steps`
    reports them.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        filters: Sequence[NamedTokenFilter] = (),
        char_filters: Sequence[NamedCharFilter] = (),
        *,
        tokenizer_name: str = "",
        built_in: bool = False,
        position_increment_gap: int = DEFAULT_POSITION_GAP,
        shared: Shared | None = None,
    ) -> None:
        """`shared` lets analyzers that begin with the same pieces share what those make of a text."""
        # It needs NumPy, which completing a command line does without.
        from searchapp.analysis.bulk import BulkAnalysis

        self.name = name
        self.position_increment_gap = position_increment_gap
        self._built_in = built_in
        self._char_filters = tuple(char_filters)
        self._tokenizer = tokenizer
        self._tokenizer_name = tokenizer_name
        self._filters = tuple(filters)
        pieces = tuple(named.filter for named in filters)
        replacing = tuple(named.filter for named in char_filters)
        self._stages = fused(pieces)
        self._leaves_halves = any(map(_leaves_halves, (tokenizer, *replacing, *pieces)))
        self.branches = _branches(pieces)
        """Whether a token may reach over several positions, so that queries have to look at `graph`."""
        shared = shared or Shared()
        self._analyze = shared.analysis(replacing, tokenizer, pieces)
        self.bulk = BulkAnalysis.of(
            shared.bulk, replacing, tokenizer, pieces, leaves_halves=self._leaves_halves
        )
        """The same for many texts at once, None where they are analyzed one by one."""

        self.different = (
            None if self._leaves_halves else different_terms(shared, replacing, tokenizer, pieces)
        )
        """The different terms of a text, None where only all steps tell them."""

    @property
    def keeps_tokens_apart(self) -> bool:
        """Whether each filter looks at one term at a time."""
        return all(not isinstance(named.filter, StreamFilter) for named in self._filters)

    def terms(self, text: str) -> list[tuple[str, int]]:
        """The terms with their positions, in the order of their tokens."""
        tokens = self.stream(text)
        return list(zip(tokens.terms, tokens.positions, strict=True))

    def terms_of_each(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The terms of each text, in the order of their tokens; all at once where that can be done."""
        found = self.bulk.tokens(texts) if self.bulk else None
        if found is None:
            yield from (self.stream(text).terms for text in texts)
            return
        terms = iter([found.vocabulary[number] for number in found.terms.tolist()])
        for count in found.counts.tolist():
            yield list(islice(terms, count))

    def joined(self, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """The terms of several values of one field and their positions, as they are indexed.

        After each value, one without terms included, come the holes that its last words left and then the gap.
        """
        if len(texts) == 1:
            tokens = self.stream(texts[0])
            return tokens.terms, tokens.positions
        terms: list[str] = []
        positions: list[int] = []
        base = 0
        for text in texts:
            tokens = self.stream(text)
            terms += tokens.terms
            positions += [base + position for position in tokens.positions]
            base += tokens.past_end + self.position_increment_gap
        return terms, positions

    def graph(self, text: str) -> list[tuple[str, int, int]] | None:
        """The terms with positions and over how many positions they reach; None if each reaches over one."""
        tokens = self.stream(text)
        if not tokens.lengths or max(tokens.lengths) == 1:
            return None
        return list(zip(tokens.terms, tokens.positions, tokens.lengths, strict=True))

    def tokens(self, text: str) -> list[Token]:
        """The tokens with positions and offsets in the text, which count UTF-16 code units."""
        return list(_as_tokens(self.stream(text, offsets=True)))

    def stream(self, text: str, *, offsets: bool = False) -> Tokens:
        """The tokens as parallel lists, with what else is known of them; `spans` only if asked for."""
        tokens = self._emitted(text) if offsets else self._analyze(text)
        if self._leaves_halves:
            tokens = tokens.copy()
            tokens.terms = [*map(whole, tokens.terms)]
        return tokens

    def emitted(self, text: str) -> list[Token]:
        """As `tokens`, but with the halves of characters that the index has as U+FFFD."""
        tokens = self._emitted(text)
        rows = zip(tokens.terms, tokens.positions, tokens.spans or (), strict=True)
        return [Token(term, position, start, end) for term, position, (start, end) in rows]

    def _emitted(self, text: str) -> Tokens:
        """The tokens with their offsets."""
        tokens = self._tokenized_with_offsets(text)
        for stage in self._stages:
            tokens = stage.apply(tokens)
        return tokens

    def steps(self, text: str) -> list[AnalysisStep]:
        """What each piece gives, as `_analyze` explains it."""
        if self._built_in:
            return [AnalysisStep("analyzer", self.name, tokens=tuple(self.tokens(text)))]
        steps = []
        filtered = text
        for char_filter in self._char_filters:
            filtered = char_filter.filter.replace(filtered)
            steps.append(AnalysisStep("char_filter", char_filter.name, text=filtered))
        tokens = self._tokenized_with_offsets(text)
        steps.append(AnalysisStep("tokenizer", self._tokenizer_name, tokens=tuple(_as_tokens(tokens))))
        for named in self._filters:
            for stage in fused([named.filter]):
                tokens = stage.apply(tokens)
            steps.append(AnalysisStep("filter", named.name, tokens=tuple(_as_tokens(tokens))))
        return steps

    def _tokenized_with_offsets(self, text: str) -> Tokens:
        corrections: list[Corrections] = []
        for char_filter in self._char_filters:
            text, correction = char_filter.filter.replace_tracked(text)
            corrections.append(correction)
        text, found = self._tokenizer.cut(text)
        terms = [self._tokenizer.normalize(joined_units(text[start:end])) for start, end in found]
        spans = _corrected(found, utf16_places(text), corrections, self._tokenizer.stops_after)
        end = _corrected([(0, len(text))], [0] * len(text) + [utf16_length(text)], corrections)[0][1]
        return Tokens(terms, list(range(len(terms))), spans, end_offset=end)


def _leaves_halves(piece: object) -> bool:
    """Whether a piece may leave half of a character beyond U+FFFF, which the index has as U+FFFD."""
    return bool(getattr(piece, "leaves_halves", False))


def _branches(filters: Sequence[object]) -> bool:
    """Whether the last filter that makes graphs, or takes them away, makes them."""
    said = [filter_.branches for filter_ in filters if hasattr(filter_, "branches")]
    return bool(said and said[-1])


def _corrected(
    spans: Sequence[Span],
    places: list[int] | None,
    corrections: Sequence[Corrections],
    stops_after: int | None = None,
) -> list[Span]:
    """Spans of characters in the filtered text, as spans of code units in the text as it was.

    `stops_after` is the length of a token behind which the tokenizer has not read on.
    """

    def correct(offset: int, unread: bool = False) -> int:
        for correction in reversed(corrections):
            offset = correction.correct(offset, unread=unread)
            unread = False  # the filters before the last one are always a little ahead
        return offset

    units = spans if places is None else [(places[start], places[end]) for start, end in spans]
    return [(correct(start), correct(end, unread=end - start == stops_after)) for start, end in units]


def _as_tokens(tokens: Tokens) -> Iterator[Token]:
    for term, position, (start, end) in zip(tokens.terms, tokens.positions, tokens.spans or (), strict=True):
        yield Token(whole(term), position, start, end)
