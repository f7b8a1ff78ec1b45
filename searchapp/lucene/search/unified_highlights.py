"""The highlighter `unified`: passages between boundaries of sentences or words, ranked like small documents.

Source: org.apache.lucene.search.uhighlight.{FieldHighlighter, PassageScorer, SplittingBreakIterator},
org.elasticsearch.lucene.search.uhighlight.{CustomFieldHighlighter, CustomPassageFormatter,
BoundedBreakIteratorScanner}

The values of a field are one text with a null character between them. All offsets are of UTF-16 code units.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from searchapp.lucene.analysis.characters import joined_units
from searchapp.lucene.analysis.options import JAVA_WHITESPACE
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import unsupported
from searchapp.lucene.search.break_iterator import DONE, BreakIterator
from searchapp.lucene.search.highlight_options import HighlightOptions, encoded

if TYPE_CHECKING:
    from searchapp.lucene.search.matches import Match

SEPARATOR = "\0"  # between the values of a field

PARAGRAPH = "\u2029"  # dropped at the end of a passage, like the separator

STABLE_SORT = 16  # passages; Lucene sorts more of them in an order that is not stable

_CONTROLS = "".join(map(chr, range(0x21)))  # removed by `String.trim`


class _Boundaries(Protocol):
    def preceding(self, offset: int) -> int: ...

    def following(self, offset: int) -> int: ...


class _BoundedSentences:
    """Sentences joined up to a length; longer ones are divided between words."""

    def __init__(self, text: str, size: int) -> None:
        self._sentences = BreakIterator("sentence", text)
        self._words = BreakIterator("word", text)
        self._size = size
        self._window = (-1, -1)
        self._end = 0

    def preceding(self, offset: int) -> int:
        first, last = self._window
        if first < offset < last:
            start, end = self._end, last
        else:
            start, end = self._sentence(offset)
            self._window = start, end
        if end - start > self._size:
            if offset - self._size > start:
                start = max(start, self._words.preceding(offset - self._size))
            target = offset + max(0, self._size - (offset - start))
            if target < self._window[1]:
                end = min(self._window[1], self._words.following(target))
        self._end = end
        return start

    def _sentence(self, offset: int) -> tuple[int, int]:
        text_end = self._sentences.end
        start = max(0, self._sentences.preceding(offset))
        target = offset + max(0, self._size - (offset - start))
        end = text_end if target + 1 > text_end else self._sentences.preceding(target + 1)
        return start, self._sentences.following(target) if end == start else end

    def following(self, offset: int) -> int:
        return max(offset, self._end)


class _Whole:
    """A text without boundaries."""

    def __init__(self, text: str) -> None:
        self._end = len(text)

    def preceding(self, offset: int) -> int:
        return 0 if offset else DONE

    def following(self, offset: int) -> int:
        return self._end if offset < self._end else DONE


class _Splitting:
    """The boundaries of each value."""

    def __init__(self, text: str, boundaries: Callable[[str], _Boundaries]) -> None:
        self._text = text
        self._boundaries = boundaries
        self._start = 0
        end = text.find(SEPARATOR)
        self._set_slice(0, len(text) if end < 0 else end)

    def _set_slice(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        if start != end:
            self._inner = self._boundaries(self._text[start:end])

    def following(self, offset: int) -> int:
        text = self._text
        if not self._start <= offset + 1 <= self._end:
            if offset == len(text):
                return DONE
            start = text.rfind(SEPARATOR, 0, offset + 1) + 1
            end = text.find(SEPARATOR, max(offset + 1, start))
            self._set_slice(start, len(text) if end < 0 else end)
        if self._start == self._end:
            return offset + 1
        return (
            self._start
            if offset == self._start - 1
            else self._start + self._inner.following(offset - self._start)
        )

    def preceding(self, offset: int) -> int:
        text = self._text
        if not self._start <= offset - 1 <= self._end:
            end = text.find(SEPARATOR, offset)
            end = len(text) if end < 0 else end
            self._set_slice(min(text.rfind(SEPARATOR, 0, offset) + 1, end), end)
        if self._start == self._end:
            return offset - 1
        return (
            self._end
            if offset == self._end + 1
            else self._start + self._inner.preceding(offset - self._start)
        )


@dataclass(slots=True)
class _Passage:
    start: int
    end: int
    matches: list[Match] = field(default_factory=list)
    score: float = math.nan


def unified_highlights(
    text: str,
    matches: Iterable[Match],
    frequencies: Mapping[str, int],
    options: HighlightOptions,
    *,
    is_tokenized: bool,
) -> list[str]:
    """Return the best passages of a text with marked matches.

    Args:
        text: the values of a field as UTF-16 code units, separated by `SEPARATOR`.
        matches: occurrences of the query; in one field by ascending position.
        frequencies: those of the labels of matches in the text, which are 1 for occurrences of whole queries.
        is_tokenized: whether an analyzer divides the text.
    """
    if not text:
        return []
    most = options.fragments
    is_whole = not most or not is_tokenized
    passages = _passages(
        text,
        matches,
        frequencies,
        most or 2**31 - 2,
        _Splitting(text, _boundaries(options, is_whole=is_whole)),
    )
    if not passages and options.no_match_size > 0:
        passages = _beginning(text, options.no_match_size)
    snippets = [(_formatted(text, passage, options), passage.score) for passage in passages]
    snippets = [(snippet, score) for snippet, score in snippets if snippet.strip(JAVA_WHITESPACE)]
    if options.by_score:
        if len(snippets) > STABLE_SORT and len({score for _snippet, score in snippets}) < len(snippets):
            raise unsupported(
                f"`order: score` of more than {STABLE_SORT} highlights of which some score the same"
            )
        snippets.sort(key=lambda pair: -pair[1])
    return [joined_units(snippet) for snippet, _score in snippets]


def _boundaries(options: HighlightOptions, *, is_whole: bool) -> Callable[[str], _Boundaries]:
    if is_whole:
        return _Whole
    kind = options.scanner or "sentence"
    if kind == "sentence" and options.size > 0:
        return lambda text: _BoundedSentences(text, options.size)
    return lambda text: BreakIterator(kind, text)


def _passages(
    text: str,
    matches: Iterable[Match],
    frequencies: Mapping[str, int],
    most: int,
    boundaries: _Boundaries,
) -> list[_Passage]:
    """Return at most the given number of passages by ascending start."""
    length = len(text)
    best: list[tuple[float, int, int]] = []  # a heap of score, start and number
    passages: list[_Passage] = []

    def add(passage: _Passage) -> None:
        passage.score = _score(passage, length, frequencies)
        if len(best) == most and passage.score < best[0][0]:
            return
        heapq.heappush(best, (passage.score, passage.start, len(passages)))
        passages.append(passage)
        if len(best) > most:
            heapq.heappop(best)

    passage: _Passage | None = None
    last_end = 0
    for match in matches:
        start, end = match.start, match.end
        if start < length < end:
            continue
        if passage is None or start >= passage.end:
            if passage is not None:
                add(passage)
                passage = None
            if start >= length:
                break
            center = start + (end - start) // 2
            first = min(start, max(boundaries.preceding(max(start + 1, center)), last_end))
            last_end = max(end, min(boundaries.following(min(end - 1, center)), length))
            passage = _Passage(first, last_end)
        passage.matches.append(match)
    if passage is not None:
        add(passage)
    return [passages[number] for _score_, start, number in sorted(best, key=lambda entry: entry[1])]


_K1, _B, _PIVOT, _ONE = np.float32(1.2), np.float32(0.75), np.float32(87), np.float32(1)


def _score(passage: _Passage, length: int, frequencies: Mapping[str, int]) -> float:
    """Return the score of a passage of a text: BM25 with the text as the collection, as float32."""
    counts: dict[str, int] = {}
    for match in passage.matches:
        counts[match.label] = counts.get(match.label, 0) + 1
    documents = _ONE + np.float32(length) / _PIVOT
    norm = _K1 * ((_ONE - _B) + _B * (np.float32(passage.end - passage.start) / _PIVOT))
    score = 0.0
    for label, count in counts.items():
        idf = math.log(1 + (float(documents) + 0.5) / (frequencies.get(label, 1) + 0.5))
        weight, frequency = (_K1 + _ONE) * np.float32(idf), np.float32(count)
        score += float(frequency / (frequency + norm) * weight)
    score *= float(_ONE + _ONE / np.float32(math.log(_PIVOT + np.float32(passage.start))))
    return float(np.float32(score))


def _beginning(text: str, size: int) -> list[_Passage]:
    """Return the beginning of the first value up to the first boundary of a word after a size."""
    start = len(text) - len(text.lstrip(SEPARATOR))
    if start == len(text):
        return []
    end = text.find(SEPARATOR, start)
    end = len(text) if end < 0 else end
    if size + start < end:
        end = BreakIterator("word", text).following(size + start)
    return [_Passage(start, len(text) if end == DONE else end)]


def _formatted(text: str, passage: _Passage, options: HighlightOptions) -> str:
    pieces: list[str] = []
    done = passage.start
    for start, end in _joined(passage.matches):
        end = min(end, passage.end)
        if start < done or end < start:
            raise unsupported("highlights of a text whose tokens are not in the order of their characters")
        marked = encoded(text[start:end], options)
        pieces += [encoded(text[done:start], options), options.before[0], marked, options.after[0]]
        done = end
    pieces.append(encoded(text[done : max(done, passage.end)], options))
    snippet = "".join(pieces)
    if snippet.endswith((PARAGRAPH, SEPARATOR)):
        snippet = snippet[:-1]
    return snippet.strip(_CONTROLS) if options.fragments else snippet


def _joined(matches: Sequence[Match]) -> list[tuple[int, int]]:
    """Return the ranges of matches; each is joined with the following ones that begin inside it."""
    ranges: list[tuple[int, int]] = []
    for match in matches:
        if ranges and match.start < ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], match.end)
        else:
            ranges.append((match.start, match.end))
    return ranges
