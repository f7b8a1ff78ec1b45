"""An analyzer: char filters, a tokenizer and token filters in a row.

`Shared`: the analyzers of an index are paths in one tree of pieces, because the fields of a document mostly have
one source and a topic is matched against all of them. Where paths part, the output for the last few texts is
remembered.
`different_terms`: the distinct terms of a text, for queries of many terms. Tokens that are equal before a chain of
token filters are equal behind it, so the chain runs once for each distinct token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import TypeVar, cast

from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.characters import (
    Corrections,
    has_halves,
    joined_units,
    utf16_length,
    utf16_places,
    whole,
)
from searchapp.lucene.analysis.token_filters import (
    ShingleFilter,
    Span,
    StreamFilter,
    TermChain,
    TermFilter,
    Tokens,
    UniqueFilter,
)
from searchapp.lucene.analysis.tokenizers import Tokenizer
from searchapp.model import AnalysisStep, Token

REMEMBERED_TEXTS = 64
LONGEST_REMEMBERED = 20_000
"""Characters; longer texts are not remembered, which bounds the memory of all steps together."""

R = TypeVar("R")
AnyFilter = TermFilter | StreamFilter
Path = tuple[object, ...]
"""Char filters, a tokenizer and token filters in a row, or the beginning of that; pieces are the same by identity."""

Analysis = Callable[[str], Tokens]
"""The tokens of a text, without offsets. Their lists must not be changed."""


class Shared:
    """The analyzers of one index, which share whatever they begin with.

    All of them are to be added before the first one is used: one that comes later shares what it finds.
    """

    def __init__(self) -> None:
        from searchapp.lucene.analysis.bulk import BulkWork  # NumPy, see `Analyzer`

        self.bulk = BulkWork()
        self._followers: dict[Path, set[object]] = defaultdict(set)
        """What stands behind each beginning: further pieces, and the ends of analyzers."""
        self._marks_used: set[Path] = set()
        """Beginnings behind which a filter looks at one term at a time, and so at whether it is a keyword."""
        self._steps: dict[Path, Callable[[str], object]] = {}
        self._chains: dict[tuple[tuple[TermFilter, ...], bool], TermChain] = {}

    def analysis(
        self, char_filters: Sequence[CharFilter], tokenizer: Tokenizer, filters: Sequence[AnyFilter]
    ) -> Analysis:
        """The analysis by these pieces; what it shares is settled when it is used first."""
        pieces: Path = (*char_filters, tokenizer, *filters)
        end = object()
        for length, piece in enumerate((*pieces, end)):
            self._followers[pieces[:length]].add(piece)
        front = len(char_filters) + 1
        for place, filter_ in enumerate(filters, front):
            if not isinstance(filter_, StreamFilter):
                self._marks_used.update(pieces[:length] for length in range(front, place + 1))
        made: list[Analysis] = []

        def analyze(text: str) -> Tokens:
            if not made:
                made.append(self._tokens(tuple(char_filters), tokenizer, tuple(filters)))
            return made[0](text)

        return analyze

    def _parts(self, path: Path) -> bool:
        """Whether paths part behind this beginning."""
        return len(self._followers[path]) > 1

    def _step(self, path: Path, function: Callable[[str], R]) -> Callable[[str], R]:
        """What is called for this beginning of a path: it remembers where paths part."""
        step = _remembering(function) if self._parts(path) else function
        self._steps[path] = step
        return step

    def _text(self, char_filters: tuple[CharFilter, ...]) -> Callable[[str], str]:
        """The text behind some char filters."""
        if char_filters in self._steps:
            return self._steps[char_filters]  # type: ignore[return-value]
        if not char_filters:
            return _unchanged
        length = len(char_filters) - 1
        while length and not self._parts(char_filters[:length]):
            length -= 1
        before = self._text(char_filters[:length])
        replacing = [char_filter.replace for char_filter in char_filters[length:]]

        def text(of: str) -> str:
            filtered = before(of)
            for replace in replacing:
                filtered = replace(filtered)
            return filtered

        return self._step(char_filters, text)

    def terms(self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer) -> Callable[[str], list[str]]:
        """The tokens before any token filter."""
        path = (*char_filters, tokenizer)
        if path in self._steps:
            return self._steps[path]  # type: ignore[return-value]
        text, cut = self._text(char_filters), tokenizer.terms
        return self._step(path, lambda of: cut(text(of)))

    def _tokens(
        self, char_filters: tuple[CharFilter, ...], tokenizer: Tokenizer, filters: tuple[AnyFilter, ...]
    ) -> Analysis:
        """The tokens behind some token filters, which may be none."""
        front = (*char_filters, tokenizer)
        path = (*front, *filters)
        if filters and path in self._steps:
            return self._steps[path]  # type: ignore[return-value]
        length = len(filters) - 1
        while length > 0 and not self._parts((*front, *filters[:length])):
            length -= 1
        if length > 0:
            before = self._tokens(char_filters, tokenizer, filters[:length])
            stages = self._stages(filters[length:], path in self._marks_used)

            def behind(of: str) -> Tokens:
                tokens = before(of).copy()
                for stage in stages:
                    tokens = stage.apply(tokens)
                return tokens

            return self._step(path, behind)
        terms = self.terms(char_filters, tokenizer)
        stages = self._stages(filters, path in self._marks_used)

        def analyzed(of: str) -> Tokens:
            found = terms(of)
            tokens = Tokens(found, list(range(len(found))))
            for stage in stages:
                tokens = stage.apply(tokens)
            return tokens

        return self._step(path, analyzed) if filters else analyzed

    def _stages(self, filters: Sequence[AnyFilter], marks_used: bool) -> list[StreamFilter]:
        """The filters as stream filters; `marks_used` says whether marks of keywords are looked at behind them."""
        return fused(filters, self.chain, marks_used)

    def chain(self, filters: tuple[TermFilter, ...], keeps_marks: bool) -> TermChain:
        """The chain of some filters, which remembers its terms for all that have it."""
        key = filters, keeps_marks
        if key not in self._chains:
            self._chains[key] = TermChain(filters, keeps_marks)
        return self._chains[key]


def fused(
    filters: Sequence[AnyFilter],
    chain: Callable[[tuple[TermFilter, ...], bool], TermChain] = TermChain,
    marks_used: bool = True,
) -> list[StreamFilter]:
    """The filters as stream filters; neighbours that look at one term at a time become one chain."""
    stages: list[StreamFilter] = []
    singles: list[TermFilter] = []
    for filter_ in reversed(filters):
        if not isinstance(filter_, StreamFilter):
            singles.insert(0, filter_)
            continue
        if singles:
            stages.insert(0, chain(tuple(singles), marks_used))
            marks_used, singles = True, []
        stages.insert(0, filter_)
    if singles:
        stages.insert(0, chain(tuple(singles), marks_used))
    return stages


def _remembering(function: Callable[[str], R]) -> Callable[[str], R]:
    """A function of a text that remembers its last results."""
    remembered = lru_cache(REMEMBERED_TEXTS)(function)

    def step(text: str) -> R:
        return remembered(text) if len(text) <= LONGEST_REMEMBERED else function(text)

    return step


def _unchanged(text: str) -> str:
    return text


Different = Callable[[str], tuple[str, ...] | None]
"""The terms of a text in the order in which they come first, each alone on its position; None for a text of which it
takes all steps to know them."""


def different_terms(
    shared: Shared, char_filters: Sequence[CharFilter], tokenizer: Tokenizer, filters: Sequence[AnyFilter]
) -> Different | None:
    """What gives the different terms of a text by these pieces, None where only all steps of an analysis do.

    No piece may leave half of a character.
    """
    *others, last = filters or (None,)
    if not isinstance(last, UniqueFilter) or last.only_on_same_position:
        return None
    pairs = others.pop() if others and isinstance(others[-1], ShingleFilter) else None
    if isinstance(pairs, ShingleFilter) and not pairs.gives_pairs:
        return None
    singles: list[TermFilter] = []
    for filter_ in others:
        if filter_ is None or isinstance(filter_, StreamFilter):
            return None
        singles.append(filter_)
    becomes = shared.chain(tuple(singles), keeps_marks=False).unmarked
    made: list[Callable[[str], list[str]]] = []

    def cut(text: str) -> list[str]:
        if not made:
            made.append(shared.terms(tuple(char_filters), tokenizer))
        return made[0](text)

    def terms(text: str) -> tuple[str, ...]:
        found = dict.fromkeys(map(becomes, dict.fromkeys(cut(text))))
        found.pop(None, None)
        return cast("tuple[str, ...]", tuple(found))

    if not isinstance(pairs, ShingleFilter):
        return terms
    join = pairs.separator.join

    def pairs_of_terms(text: str) -> tuple[str, ...] | None:
        found = list(map(becomes, cut(text)))
        if None in found:  # the filter puts its filler where a term was removed
            return None
        kept = cast("list[str]", found)
        if has_halves(kept):  # which may meet
            return None
        return tuple(dict.fromkeys(map(join, pairwise(kept))))

    return pairs_of_terms


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
        from searchapp.lucene.analysis.bulk import BulkAnalysis

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
