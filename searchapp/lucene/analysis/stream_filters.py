"""Token filters that join, split, choose or count the tokens of a text."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import ClassVar

from searchapp.lucene.analysis.characters import joined_units, utf16_length, utf16_units
from searchapp.lucene.analysis.java_pattern import JavaRegex
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.token_filters import (
    NO_WORDS,
    Outcome,
    RepeatFilter,
    StreamFilter,
    TermFilter,
    TermMemo,
    TokenRow,
    TokenStream,
    membership,
    stopword_list,
    word_set,
)


class LimitFilter(StreamFilter):
    """Keep the first tokens of a text.

    Source: org.apache.lucene.analysis.miscellaneous.LimitTokenCountFilter
    """

    keeps_types: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        self._count = options.integer("max_token_count", 1)
        if self._count < 1:
            raise options.bad(f"`max_token_count` must be positive, not {self._count}")
        self._reads_all = options.boolean("consume_all_tokens", False)
        self.leaves_end = not self._reads_all  # whether the end offset depends on the tokenizer's reading

    def apply(self, tokens: TokenStream) -> TokenStream:
        if len(tokens.terms) < self._count:
            return tokens
        kept = tokens.keep(range(self._count))
        gap = kept.positions[-1] - (kept.positions[-2] if self._count > 1 else -1) - 1
        # A filter that removed tokens before the last one reports them again at the end of the text.
        kept.trailing = tokens.trailing if self._reads_all else max(gap, 0)
        return kept


class MultiplexerFilter(StreamFilter):
    """Apply several chains of filters to each token, and put their distinct results on its position.

    Source: org.elasticsearch.analysis.common.MultiplexerTokenFilterFactory
    """

    keeps_types: ClassVar[bool] = True
    reads_marks: ClassVar[bool] = True

    def __init__(self, branches: Sequence[Sequence[TermFilter]]) -> None:
        self._branches = branches or [[]]

    def apply(self, tokens: TokenStream) -> TokenStream:
        rows: list[TokenRow] = []
        indices: list[int] = []
        seen: set[str] = set()
        position = -1
        for index, (term, place, length, span, marked) in enumerate(tokens.rows()):
            if place != position:
                position, seen = place, set()
            for branch in self._branches:
                outcome: Outcome = (term, marked)
                for filter_ in branch:
                    outcome = outcome and filter_(*outcome)
                if outcome and outcome[0] not in seen:
                    seen.add(outcome[0])
                    rows.append((outcome[0], place, length, span, outcome[1]))
                    indices.append(index)
        if not tokens.terms:
            return tokens
        types = tokens.types and [tokens.types[index] for index in indices]
        # Tokens that earlier filters removed at the end do not count.
        trailing = position - (rows[-1][1] if rows else -1)
        return replace(tokens.with_rows(rows), types=types, trailing=trailing)


class FingerprintFilter(StreamFilter):
    """Join the distinct terms of a text in alphabetical order to one, unless it is too long.

    Source: org.apache.lucene.analysis.miscellaneous.FingerprintFilter
    """

    needs_offsets: ClassVar[bool] = True
    needs_end: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        self._separator = options.text("separator", " ")
        if utf16_length(self._separator) != 1:
            raise options.bad(f"`separator` must be one character, not {self._separator!r}")
        self._longest = options.integer("max_output_size", 255)

    def apply(self, tokens: TokenStream) -> TokenStream:
        distinct = sorted(set(map(utf16_units, tokens.terms)))
        term = self._separator.join(distinct)
        rows: list[TokenRow] = []
        if distinct and len(term) <= self._longest:
            rows = [(joined_units(term), 0, 1, (0, tokens.end_offset), False)]
        return replace(tokens.with_rows(rows), trailing=1)


class CommonGramsFilter(StreamFilter):
    """Join common words with their neighbours; with `query_mode`, only words without such pairs stay.

    Source: org.apache.lucene.analysis.commongrams.{CommonGramsFilter, CommonGramsQueryFilter}
    """

    branches: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        options.refuse("common_words_path")
        if "common_words" not in options:
            raise options.bad("`common_words` is missing")
        words = stopword_list(options, NO_WORDS, "common_words")
        self._is_common = membership(words, options.boolean("ignore_case", False))
        self._is_query = options.boolean("query_mode", False)

    def apply(self, tokens: TokenStream) -> TokenStream:
        rows: list[TokenRow] = []
        are_pairs: list[bool] = []
        before: TokenRow | None = None
        for row in tokens.rows():
            term, _position, _length, span, _marked = row
            if before is not None and (self._is_common(before[0]) or self._is_common(term)):
                rows.append((f"{before[0]}_{term}", before[1], 2, (before[3][0], span[1]), False))
                are_pairs.append(True)
            rows.append(row)
            are_pairs.append(False)
            before = row
        return tokens.with_rows(self._for_query(rows, are_pairs) if self._is_query else rows)

    @staticmethod
    def _for_query(rows: Sequence[TokenRow], are_pairs: Sequence[bool]) -> list[TokenRow]:
        """Leave out the words before a pair, and the last word of the text after a pair."""
        kept: list[TokenRow] = []
        position = -1
        for number, (row, is_pair) in enumerate(zip(rows, are_pairs, strict=True)):
            is_last = number + 1 == len(rows)
            if not is_pair and (are_pairs[number - 1] and number > 0 if is_last else are_pairs[number + 1]):
                continue
            term, old_position, length, span, marked = row
            increment = old_position - (rows[number - 1][1] if number else -1)
            position += 1 if is_pair else increment
            kept.append((term, position, 1 if is_pair else length, span, marked))
        return kept


class PatternCaptureFilter(StreamFilter):
    """Add what the groups of patterns match in a term, on its position.

    Source: org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter
    """

    leaves_halves: ClassVar[bool] = True
    keeps_types: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        patterns = options.strings("patterns")
        self._patterns = [
            compile_java(Options(options.piece, {"pattern": pattern}), has_flags=False)
            for pattern in patterns
        ]
        for pattern in self._patterns:
            pattern.check_groups(options)
        self._original = options.boolean("preserve_original", True)
        self._terms = TermMemo(self._captured)

    def apply(self, tokens: TokenStream) -> TokenStream:
        terms = [self._terms[term] for term in tokens.terms]
        out = tokens.keep([index for index, parts in enumerate(terms) for _ in parts])
        out.terms = [part for parts in terms for part in parts]
        return out

    def _captured(self, term: str) -> list[str]:
        captures = heapq.merge(
            *(self._captures(pattern, term) for pattern in self._patterns), key=itemgetter(0)
        )
        parts = [joined_units(part) for _start, part in captures]
        return [term, *parts] if self._original or not parts else parts

    def _captures(self, pattern: JavaRegex, term: str) -> Iterator[tuple[int, str]]:
        """Yield the start and text of what the groups match, in the order of matches and groups."""
        text, matches = pattern.find_in_units(term)
        for match in matches:
            for group in range(1, pattern.groups + 1):
                start, end = match.span(group)
                if start < end and not (self._original and (start, end) == (0, len(text))):
                    yield start, text[start:end]


class KeepTypesFilter(StreamFilter):
    """Keep the tokens of some types, or remove them with `mode: exclude`.

    Source: org.apache.lucene.analysis.core.TypeTokenFilter
    """

    keeps_types: ClassVar[bool] = True
    needs_types: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        if "types" not in options:
            raise options.bad("`types` is missing")
        self._types = frozenset(options.strings("types", []))
        mode = options.text("mode", "include").lower()
        if mode not in ("include", "exclude"):
            raise options.bad(f"`mode` must be include or exclude, not {mode!r}")
        self._includes = mode == "include"

    def apply(self, tokens: TokenStream) -> TokenStream:
        assert tokens.types is not None
        kept = [i for i, type_ in enumerate(tokens.types) if (type_ in self._types) == self._includes]
        return tokens.keep(kept)


_SCRIPTS = {"han": "<IDEOGRAPHIC>", "hiragana": "<HIRAGANA>", "katakana": "<KATAKANA>", "hangul": "<HANGUL>"}


class CjkBigramFilter(StreamFilter):
    """Join neighbouring characters of Chinese, Japanese and Korean tokens; a character without neighbour stays.

    Tokens are neighbours if the end offset of one is the start offset of the other.

    Source: org.apache.lucene.analysis.cjk.CJKBigramFilter
    """

    keeps_types: ClassVar[bool] = True
    needs_offsets: ClassVar[bool] = True
    needs_types: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        ignored = options.strings("ignored_scripts", [])
        self._types = frozenset(type_ for script, type_ in _SCRIPTS.items() if script not in ignored)
        self._unigrams = self.disables_graphs = options.boolean("output_unigrams", False)

    def apply(self, tokens: TokenStream) -> TokenStream:
        rows: list[TokenRow] = []
        types: list[str] = []
        run: list[tuple[str, int, int]] = []  # characters with their offsets
        position = previous = -1
        last_end = 0
        for row, type_ in zip(tokens.rows(), tokens.types or (), strict=True):
            term, old_position, length, (start, end), marked = row
            increment, previous = old_position - previous, old_position
            if type_ in self._types:
                if start != last_end:
                    position = self._write(run, rows, types, position)
                    run = []
                run += _characters(term, start, end)
                last_end = end
                continue
            position = self._write(run, rows, types, position) + increment
            run = []
            rows.append((term, position, length, (start, end), marked))
            types.append(type_)
        self._write(run, rows, types, position)
        return replace(tokens.with_rows(rows), types=types)

    def _write(
        self, run: Sequence[tuple[str, int, int]], rows: list[TokenRow], types: list[str], position: int
    ) -> int:
        """Append the grams of a run of characters and return the last position."""
        for number, (character, start, end) in enumerate(run):
            if self._unigrams or len(run) == 1:
                position += 1
                rows.append((character, position, 1, (start, end), False))
                types.append("<SINGLE>")
            if number + 1 < len(run):
                position += not self._unigrams
                other, _, other_end = run[number + 1]
                length = 2 if self._unigrams else 1
                rows.append((joined_units(character + other), position, length, (start, other_end), False))
                types.append("<DOUBLE>")
        return position


def _characters(term: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the characters of a token and their offsets; those of the token if its text was changed."""
    is_original = end - start == utf16_length(term)
    for character in term:
        if is_original:
            end = start + utf16_length(character)
        yield character, start, end
        start = end if is_original else start


def dictionary_decompounder(options: Options) -> StreamFilter:
    """Make a filter of type `dictionary_decompounder`, which adds the known words inside a word on its position.

    The longest known word at a character counts, and the next one begins behind it, whatever `only_longest_match` is.

    Source: org.apache.lucene.analysis.compound.DictionaryCompoundWordTokenFilter
    """
    options.refuse("word_list_path")
    options.strings("word_list")
    is_word = word_set(options, "word_list")
    least = options.integer("min_word_size", 5)
    shortest, longest = options.integer("min_subword_size", 2), options.integer("max_subword_size", 15)
    options.boolean("only_longest_match", False)
    for name, size in (
        ("min_word_size", least),
        ("min_subword_size", shortest),
        ("max_subword_size", longest),
    ):
        if size < 0:
            raise options.bad(f"`{name}` must not be negative")

    def parts(term: str, keyword: bool) -> list[tuple[str, bool]]:
        units = utf16_units(term)
        words = [term]
        start = 0
        while len(units) >= least and start <= len(units) - shortest:
            sizes = range(shortest, min(longest, len(units) - start) + 1)
            found = [joined_units(units[start : start + size]) for size in sizes]
            known = [word for word in found if is_word(word)]
            words += known[-1:]
            start += max(utf16_length(known[-1]) if known else 1, 1)
        return [(word, keyword) for word in words]

    return RepeatFilter(parts)
