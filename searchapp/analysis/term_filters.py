"""Token filters that look at one token at a time: they change its term, mark it as a keyword, or remove it.

Each is a function of a term and its keyword mark, so what a whole chain of them makes of a term is worked out
once and remembered (`TermChain`). The settings are read here, one function a filter type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from searchapp.analysis.char_filters import Replacement
from searchapp.analysis.folding import fold
from searchapp.analysis.java_regex import compile_java
from searchapp.analysis.offsets import joined_units, utf16_length, utf16_units
from searchapp.analysis.options import JAVA_WHITESPACE, TRIMMED, Options
from searchapp.analysis.porter2 import porter2
from searchapp.analysis.stemming import minimal_english, porter, possessive_english
from searchapp.analysis.tokens import StreamFilter, TermFilter, Tokens
from searchapp.analysis.unicode_tables import lower

REMEMBERED_TERMS = 500_000
"""A chain forgets all terms when it knows this many, so that memory stays bounded whatever is indexed."""

# fmt: off
ENGLISH_STOPWORDS = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not",
    "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was",
    "will", "with",
)  # Lucene's list
# fmt: on

NO_WORDS = "_none_"

Outcome = tuple[str, bool] | None


class _Memory(dict[str, Outcome]):
    """What becomes of each term that starts with the given keyword mark."""

    def __init__(self, filters: Sequence[TermFilter], keyword: bool) -> None:
        self._filters = filters
        self._keyword = keyword

    def __missing__(self, term: str) -> Outcome:
        if len(self) >= REMEMBERED_TERMS:
            self.clear()
        self[term] = found = outcome(self._filters, term, self._keyword)
        return found


class _Terms(dict[str, str | None]):
    """What becomes of each term that is no keyword, but for its mark; None where it is removed."""

    def __init__(self, filters: Sequence[TermFilter]) -> None:
        self._filters = filters

    def __missing__(self, term: str) -> str | None:
        if len(self) >= REMEMBERED_TERMS:
            self.clear()
        found = outcome(self._filters, term, keyword=False)
        self[term] = becomes = None if found is None else found[0]
        return becomes


def outcome(filters: Sequence[TermFilter], term: str, keyword: bool) -> Outcome:
    """What filters in a row make of a term and its keyword mark; None if one removes it."""
    found: Outcome = (term, keyword)
    for filter_ in filters:
        if found is None:
            break
        found = filter_(*found)
    return found


class TermChain(StreamFilter):
    """Several term filters in a row, as one stream filter.

    `keeps_marks` says whether somebody looks at the marks of keywords behind it; without, there are none.
    """

    def __init__(self, filters: Sequence[TermFilter], keeps_marks: bool = True) -> None:
        self._plain = _Memory(filters, keyword=False)
        self._marked = _Memory(filters, keyword=True)
        self._terms = _Terms(filters)
        self._keeps_marks = keeps_marks

    @property
    def unmarked(self) -> Callable[[str], str | None]:
        """What becomes of a term that is no keyword, but for its mark; None where it is removed."""
        return self._terms.__getitem__

    def apply(self, tokens: Tokens) -> Tokens:
        if tokens.keywords is None and not self._keeps_marks:
            return self._unmarked(tokens)
        if tokens.keywords is None:
            plain = self._plain
            outcomes = [plain[term] for term in tokens.terms]
        else:
            pairs = zip(tokens.terms, tokens.keywords, strict=True)
            outcomes = [self._marked[term] if marked else self._plain[term] for term, marked in pairs]
        if None in outcomes:
            tokens = tokens.keep([i for i, outcome in enumerate(outcomes) if outcome is not None])
        kept = [outcome for outcome in outcomes if outcome is not None]
        tokens.terms = [term for term, _ in kept]
        tokens.keywords = [marked for _, marked in kept] if any(marked for _, marked in kept) else None
        return tokens

    def _unmarked(self, tokens: Tokens) -> Tokens:
        """The same where no mark comes in and none goes out, as at the end of most analyzers."""
        becomes = self._terms
        terms = [becomes[term] for term in tokens.terms]
        if all(terms) or None not in terms:  # a term may also become empty
            tokens.terms = terms  # type: ignore[assignment]
            return tokens
        if tokens.spans is not None or tokens.lengths is not None:
            tokens = tokens.keep([i for i, term in enumerate(terms) if term is not None])
        else:
            last = tokens.positions[-1]
            kept = [at for at, term in zip(tokens.positions, terms, strict=True) if term is not None]
            tokens.positions = kept
            tokens.trailing += last - (kept[-1] if kept else -1)
        tokens.terms = [term for term in terms if term is not None]
        return tokens


def changing(change: Callable[[str], str]) -> TermFilter:
    """A filter that changes every term."""
    return lambda term, keyword: (change(term), keyword)


def stemming(stem: Callable[[str], str]) -> TermFilter:
    """A filter that changes every term but keywords."""
    return lambda term, keyword: (term if keyword else stem(term), keyword)


@dataclass(frozen=True, slots=True)
class LeavingHalves:
    """A filter that may leave half of a character beyond U+FFFF; the filters behind it see just that."""

    filter: TermFilter
    leaves_halves: ClassVar[bool] = True

    def __call__(self, term: str, keyword: bool) -> tuple[str, bool] | None:
        return self.filter(term, keyword)


def keeping(wanted: Callable[[str], bool]) -> TermFilter:
    """A filter that removes the terms that are not wanted."""
    return lambda term, keyword: (term, keyword) if wanted(term) else None


def marking(words: Sequence[str]) -> TermFilter:
    """A filter that marks these words as keywords."""
    marked = frozenset(words)
    return lambda term, keyword: (term, keyword or term in marked)


def lowercase(options: Options) -> TermFilter:
    """A filter of type `lowercase` (Lucene's `LowerCaseFilter`)."""
    options.refuse("language")
    return changing(lower)


def asciifolding(options: Options) -> TermFilter:
    """A filter of type `asciifolding` (Lucene's `ASCIIFoldingFilter`)."""
    if options.boolean("preserve_original", False):
        raise options.not_supported("`preserve_original`")
    return changing(fold)


def trim(_options: Options) -> TermFilter:
    """Without white space at both ends (Lucene's `TrimFilter`)."""
    return changing(lambda term: term.strip(JAVA_WHITESPACE))


def stop(options: Options) -> TermFilter:
    """A filter of type `stop` (Lucene's `StopFilter`)."""
    options.refuse("stopwords_path")
    if not options.boolean("remove_trailing", True):
        raise options.not_supported("`remove_trailing` false")
    words = stopword_list(options, "_english_")
    ignore_case = options.boolean("ignore_case", False)
    return stop_words(words, ignore_case and "stopwords" in options)  # the default words have their case


def stop_words(words: Sequence[str], ignore_case: bool = False) -> TermFilter:
    """A filter that removes these words."""
    if ignore_case:
        lowered = frozenset(map(lower, words))
        return keeping(lambda term: lower(term) not in lowered)
    exact = frozenset(words)
    return keeping(lambda term: term not in exact)


def stopword_list(options: Options, default: str) -> list[str]:
    """The setting `stopwords`, with the names of lists such as `_english_` replaced by their words.

    `_none_` alone, not in a list, stands for no words; beside others it is a word.
    """
    given = options.strings("stopwords", []) if "stopwords" in options else [default]
    if given == [NO_WORDS] and not options.is_list("stopwords"):
        return []
    words: list[str] = []
    for word in given:
        if word == "_english_":
            words += ENGLISH_STOPWORDS
        elif re.fullmatch("_[a-z]+_", word) and word != NO_WORDS:
            raise options.not_supported(f"the stop words {word}")
        else:
            words.append(word)
    return words


def length(options: Options) -> TermFilter:
    """Terms from `min` to `max` code units (Lucene's `LengthFilter`)."""
    low, high = options.integer("min", 0), options.integer("max", 2**31 - 1)
    if not 0 <= low <= high:
        raise options.bad(f"`min` {low} and `max` {high} are no range")
    return keeping(lambda term: low <= utf16_length(term) <= high)


def truncate(options: Options) -> TermFilter:
    """The first `length` code units (Lucene's `TruncateTokenFilter`, which leaves keywords alone)."""
    units = options.integer("length")
    if units < 1:
        raise options.bad(f"`length` must be positive, not {units}")
    return LeavingHalves(stemming(lambda term: joined_units(utf16_units(term)[:units])))


def snowball_english() -> TermFilter:
    """Porter's second English stemmer (Lucene's `SnowballFilter`)."""
    return stemming(porter2)


def porter_stem(_options: Options) -> TermFilter:
    """Porter's first stemmer (Lucene's `PorterStemFilter`)."""
    return stemming(porter)


def stemmer(options: Options) -> TermFilter:
    """A filter of type `stemmer`; the older name of `language` is `name`."""
    language = options.text("language", options.text("name", "porter"))
    match language.lower():
        case "english" | "porter":
            return stemming(porter)
        case "porter2":
            return snowball_english()
        case "minimal_english" | "minimalenglish":
            return stemming(minimal_english)
        case "possessive_english" | "possessiveenglish":
            return changing(possessive_english)
    raise options.not_supported(f"the language {language}")


def snowball(options: Options) -> TermFilter:
    """A filter of type `snowball`; the one language here is English."""
    language = options.text("language", "English")
    if language.lower() != "english":
        raise options.not_supported(f"the language {language}")
    return snowball_english()


def keyword_marker(options: Options) -> TermFilter:
    """A filter of type `keyword_marker`: stemmers leave the terms that it marks as they are."""
    options.refuse("keywords_path")
    ignore_case = options.boolean("ignore_case", False)
    if "keywords_pattern" in options:
        if "keywords" in options:
            raise options.bad("`keywords` and `keywords_pattern` exclude each other")
        pattern = compile_java(options, "keywords_pattern", has_flags=False)
        return lambda term, keyword: (term, keyword or pattern.matches(term))
    words = options.strings("keywords")
    if ignore_case:
        lowered = frozenset(map(lower, words))
        return lambda term, keyword: (term, keyword or lower(term) in lowered)
    return marking(words)


def stemmer_override(options: Options) -> TermFilter:
    """A filter of type `stemmer_override`: rules `a, b => c`, which make c a keyword; the first rule wins."""
    options.refuse("rules_path")
    overrides: dict[str, str] = {}
    for rule in options.strings("rules"):
        sides = rule.split("=>")
        keys = [key.strip(TRIMMED) for key in sides[0].split(",")]
        stem = sides[-1].strip(TRIMMED)
        if len(sides) != 2 or not stem or "," in stem or not all(keys):
            raise options.bad(f"the rule {rule!r} is not of the form: word, word => stem")
        for key in keys:
            overrides.setdefault(key, stem)

    def override(term: str, keyword: bool) -> tuple[str, bool]:
        if keyword or term not in overrides:
            return term, keyword
        return overrides[term], True

    return override


def pattern_replace(options: Options) -> TermFilter:
    """A filter of type `pattern_replace` (Lucene's `PatternReplaceFilter`)."""
    pattern = compile_java(options)
    template = Replacement(options.text("replacement", ""), pattern, options).template
    count = 0 if options.boolean("all", True) else 1
    change = changing(lambda term: pattern.substitute(template, term, count))
    return LeavingHalves(change) if pattern.leaves_halves else change
