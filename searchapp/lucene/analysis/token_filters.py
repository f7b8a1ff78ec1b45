"""Token filters, which change, mark, remove or combine tokens.

A term filter is a function of a term and its keyword mark; `TermChain` caches its results. A stream filter reads the
whole token stream.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, repeat
from typing import ClassVar, Generic, NamedTuple, TypeVar

from searchapp.lucene.analysis.char_filters import replacement_template
from searchapp.lucene.analysis.characters import (
    ascii_digits,
    fold,
    has_halves,
    joined_units,
    lower,
    read_table,
    upper,
    usual_width,
    utf16_length,
    utf16_units,
)
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import JAVA_WHITESPACE, TRIMMED, Options
from searchapp.lucene.analysis.stemmers import minimal_english, porter, porter2, possessive_english
from searchapp.lucene.analysis.tokenizers import gram_sizes
from searchapp.lucene.dataclass import dataclass

Span = tuple[int, int]  # start and end of a token in the text, in UTF-16 code units

R = TypeVar("R")

TokenRow = tuple[str, int, int, Span, bool]  # term, position, length in positions, span, keyword mark


@dataclass(slots=True)
class TokenStream:
    """A token stream as parallel lists, which are much faster than an object per token."""

    terms: list[str]
    positions: list[int]
    # None unless the caller requested offsets.
    spans: list[Span] | None = None
    # Which tokens stemmers must not change; None: no token.
    keywords: list[bool] | None = None
    # Number of positions that each token spans; None: one each.
    lengths: list[int] | None = None
    # Number of removed positions after the last token.
    trailing: int = 0
    end_offset: int = 0
    # Kinds of the tokens by their tokenizer; only for filters that read them.
    types: list[str] | None = None

    @property
    def end_position(self) -> int:
        """The position after all tokens, including removed ones at the end."""
        return (self.positions[-1] if self.positions else -1) + 1 + self.trailing

    def rows(self) -> Iterator[TokenRow]:
        """Yield the tokens, without offsets all with the same span."""
        count = len(self.terms)
        return zip(
            self.terms,
            self.positions,
            self.lengths or repeat(1, count),
            self.spans or repeat((0, 0), count),
            self.keywords or repeat(False, count),
            strict=True,
        )

    def with_rows(self, rows: Sequence[TokenRow]) -> TokenStream:
        """Return the stream with other tokens, without their types."""
        terms, positions, lengths, spans, keywords = map(list, zip(*rows, strict=True)) if rows else ([],) * 5
        return replace(
            self,
            terms=terms,
            positions=positions,
            lengths=lengths,
            spans=None if self.spans is None else spans,
            keywords=keywords,
            types=None,
        )

    def keep(self, indices: Sequence[int]) -> TokenStream:
        """Return the tokens at these indices, possibly repeated; removed tokens leave empty positions."""
        positions = [self.positions[i] for i in indices]
        removed = (self.positions[-1] if self.positions else -1) - (positions[-1] if positions else -1)
        return replace(
            self,
            terms=[self.terms[i] for i in indices],
            positions=positions,
            spans=self.spans and [self.spans[i] for i in indices],
            keywords=self.keywords and [self.keywords[i] for i in indices],
            lengths=self.lengths and [self.lengths[i] for i in indices],
            types=self.types and [self.types[i] for i in indices],
            trailing=self.trailing + removed,
        )


Outcome = tuple[str, bool] | None
# Maps a term and its keyword mark to the changed pair; None removes the token.
TermFilter = Callable[[str, bool], Outcome]


class StreamFilter(ABC):
    """A token filter that reads several tokens at a time, or makes several tokens of one."""

    keeps_types: ClassVar[bool] = False  # whether it carries `TokenStream.types` over
    reads_marks: ClassVar[bool] = False  # whether it reads keyword marks

    @abstractmethod
    def apply(self, tokens: TokenStream) -> TokenStream:
        """Return the filtered tokens; the argument is invalid afterwards."""


AnyFilter = TermFilter | StreamFilter


class UniqueFilter(StreamFilter):
    """Keep the first occurrence of each term in the text, or at each position (Elasticsearch's filter)."""

    keeps_types: ClassVar[bool] = True

    def __init__(self, only_on_same_position: bool) -> None:
        self.only_on_same_position = only_on_same_position

    def apply(self, tokens: TokenStream) -> TokenStream:
        keys: list[str] | list[tuple[str, int]] = tokens.terms
        if self.only_on_same_position:
            keys = list(zip(tokens.terms, tokens.positions, strict=True))
        count = len(keys)
        # A dict keeps the last value.
        first = dict(zip(reversed(keys), range(count - 1, -1, -1), strict=True))
        return tokens if len(first) == count else tokens.keep(sorted(first.values()))


class RepeatFilter(StreamFilter):
    """Repeat tokens on their positions; `repeat` returns the terms and keyword marks that replace a token."""

    keeps_types: ClassVar[bool] = True

    def __init__(self, repeat: Callable[[str, bool], Sequence[tuple[str, bool]]]) -> None:
        self._repeat = repeat

    def apply(self, tokens: TokenStream) -> TokenStream:
        marks = tokens.keywords or [False] * len(tokens.terms)
        repeated = list(map(self._repeat, tokens.terms, marks))
        out = tokens.keep([i for i, pairs in enumerate(repeated) for _ in pairs])
        out.terms = [term for pairs in repeated for term, _mark in pairs]
        out.keywords = [mark for pairs in repeated for _term, mark in pairs]
        return out


class _ShinglePart(NamedTuple):
    term: str
    is_filler: bool
    span: Span
    keyword: bool


class ShingleFilter(StreamFilter):
    """Join neighbouring tokens (Lucene's `ShingleFilter`).

    Fillers replace empty positions, in a row at most one fewer than the tokens of the longest shingle. All shingles
    that begin with the same token share its position.
    """

    def __init__(self, options: Options) -> None:
        self.shortest = options.integer("min_shingle_size", 2)
        self.longest = options.integer("max_shingle_size", 2)
        self.unigrams = options.boolean("output_unigrams", True)
        self.unigrams_if_alone = options.boolean("output_unigrams_if_no_shingles", False)
        self.separator = options.text("token_separator", " ")
        self.filler = options.text("filler_token", "_")
        if not 2 <= self.shortest <= self.longest:
            raise options.bad("shingle sizes must be at least 2, and the minimum at most the maximum")
        # Elasticsearch builds no graph of shingles of several sizes, which would have too many paths.
        self.disables_graphs = self.unigrams or self.shortest < self.longest
        self.gives_pairs = self.longest == 2 and not self.unigrams and not self.unigrams_if_alone
        options.require_range(self.shortest - self.unigrams, self.longest, "max_shingle_diff")

    def apply(self, tokens: TokenStream) -> TokenStream:
        terms, halves = tokens.terms, has_halves(tokens.terms)
        is_plain = tokens.spans is None and not tokens.trailing and not halves
        if is_plain and self.gives_pairs and tokens.positions == list(range(len(terms))):
            pairs = list(map(self.separator.join, pairwise(terms)))
            return TokenStream(
                pairs, list(range(len(pairs))), keywords=tokens.keywords and tokens.keywords[:-1]
            )
        parts = list(self._parts(tokens))
        sizes = list(range(self.shortest, self.longest + 1))
        if self.unigrams or (self.unigrams_if_alone and len(parts) < self.shortest):
            sizes.insert(0, 1)
        joined, positions, lengths = list[str](), list[int](), list[int]()
        spans, keywords = list[Span](), list[bool]()
        for first in range(len(parts)):
            windows = (parts[first : first + size] for size in sizes if first + size <= len(parts))
            shingles = [window for window in windows if not all(part.is_filler for part in window)]
            if not shingles:
                break  # Lucene's filter ends the stream at the first position without a shingle
            for shingle in shingles:
                term = self.separator.join([part.term for part in shingle])
                joined.append(joined_units(term) if halves else term)
                positions.append(first)
                spans.append((shingle[0].span[0], shingle[-1].span[1]))
                keywords.append(shingle[0].keyword)
                size = len(shingle)
                lengths.append(size if self.unigrams else max(1, size - self.shortest + 1))
        return replace(
            tokens,
            terms=joined,
            positions=positions,
            spans=None if tokens.spans is None else spans,
            keywords=keywords,
            lengths=lengths,
        )

    def _parts(self, tokens: TokenStream) -> Iterator[_ShinglePart]:
        previous = -1
        spans, keywords = tokens.spans or repeat((0, 0)), tokens.keywords or repeat(False)
        rows = zip(tokens.terms, tokens.positions, spans, keywords, strict=False)
        for term, position, span, keyword in rows:
            filler = _ShinglePart(self.filler, True, (span[0], span[0]), keyword)
            yield from repeat(filler, min(position - previous - 1, self.longest - 1))
            yield _ShinglePart(term, False, span, keyword)
            previous = position
        filler = _ShinglePart(self.filler, True, (tokens.end_offset, tokens.end_offset), False)
        yield from repeat(filler, min(tokens.trailing, self.longest - 1))


class NGramFilter(StreamFilter):
    """Split each term into substrings, or prefixes with `edge`, of a length in characters.

    As in Lucene's `NGramTokenFilter` and `EdgeNGramTokenFilter`, a gram has the position and the offsets of its term.
    """

    keeps_types: ClassVar[bool] = True

    def __init__(self, options: Options, edge: bool) -> None:
        self._low, self._high = gram_sizes(options, edge)
        self._original = options.boolean("preserve_original", False)
        self._edge = edge
        if edge and options.text("side", "front") != "front":
            raise options.not_supported("`side`")

    def apply(self, tokens: TokenStream) -> TokenStream:
        grams = [self.grams(term) for term in tokens.terms]
        out = tokens.keep([i for i, parts in enumerate(grams) for _ in parts])
        out.terms = [part for parts in grams for part in parts]
        out.trailing -= tokens.trailing  # Lucene's filters drop the gaps at the end of their input
        return out

    def grams(self, term: str) -> list[str]:
        length = len(term)
        starts = range(1) if self._edge else range(length)
        sizes = range(self._low, self._high + 1)
        grams = [term[start : start + size] for start in starts for size in sizes if start + size <= length]
        if self._original and not self._low <= length <= self._high:
            grams.append(term)
        return grams


REMEMBERED_TERMS = 500_000  # a cache is emptied at this size


class TermMemo(dict[str, R], Generic[R]):
    """The results of a function for each term, computed at the first use."""

    def __init__(self, compute: Callable[[str], R]) -> None:
        self._compute = compute

    def __missing__(self, term: str) -> R:
        if len(self) >= REMEMBERED_TERMS:
            self.clear()
        self[term] = result = self._compute(term)
        return result


def outcome(filters: Sequence[TermFilter], term: str, keyword: bool = False) -> Outcome:
    """Apply filters to a term and its keyword mark; None if one of them removes it."""
    pair: Outcome = (term, keyword)
    for filter_ in filters:
        if pair is None:
            break
        pair = filter_(*pair)
    return pair


def term_outcome(filters: Sequence[TermFilter], term: str) -> str | None:
    """Apply filters to a term without keyword mark; None if one of them removes it."""
    pair = outcome(filters, term)
    return pair and pair[0]


class TermChain(StreamFilter):
    """Apply several term filters; `keeps_marks`: whether a later filter reads keyword marks."""

    keeps_types: ClassVar[bool] = True

    def __init__(self, filters: Sequence[TermFilter], keeps_marks: bool = True) -> None:
        self._keeps_marks = keeps_marks
        self._unmarked = TermMemo(partial(outcome, filters))
        self._marked = TermMemo(partial(outcome, filters, keyword=True))
        self.terms = TermMemo(partial(term_outcome, filters))

    def apply(self, tokens: TokenStream) -> TokenStream:
        if tokens.keywords is None and not self._keeps_marks:
            return _with_terms(tokens, list(map(self.terms.__getitem__, tokens.terms)))
        outcomes = [
            self._marked[term] if marked else self._unmarked[term]
            for term, marked in zip(tokens.terms, tokens.keywords or repeat(False), strict=False)
        ]
        tokens = _with_terms(tokens, [pair and pair[0] for pair in outcomes])
        marks = [pair[1] for pair in outcomes if pair is not None]
        tokens.keywords = marks if any(marks) else None
        return tokens


def _with_terms(tokens: TokenStream, terms: Sequence[str | None]) -> TokenStream:
    remaining = [term for term in terms if term is not None]
    if len(remaining) < len(terms):
        tokens = tokens.keep([i for i, term in enumerate(terms) if term is not None])
    tokens.terms = remaining
    return tokens


def stream_filters(
    filters: Sequence[AnyFilter], chain: Callable[[tuple[TermFilter, ...], bool], TermChain] = TermChain
) -> list[StreamFilter]:
    """Convert filters to stream filters; `chain` combines each run of term filters."""
    stages: list[StreamFilter] = []
    run: tuple[TermFilter, ...] = ()
    has_chain = False
    for filter_ in (*reversed(filters), None):
        if filter_ is not None and not isinstance(filter_, StreamFilter):
            run = (filter_, *run)
            continue
        if run:
            stages.insert(0, chain(run, has_chain))
            run, has_chain = (), True
        if filter_ is not None:
            stages.insert(0, filter_)
            has_chain = has_chain or filter_.reads_marks
    return stages


def change_terms(change: Callable[[str], str]) -> TermFilter:
    """Return a filter that changes every term."""
    return lambda term, keyword: (change(term), keyword)


def stem_terms(stem: Callable[[str], str]) -> TermFilter:
    """Return a filter that changes every term except keywords."""
    return lambda term, keyword: (term if keyword else stem(term), keyword)


def keep_terms(is_wanted: Callable[[str], bool]) -> TermFilter:
    """Return a filter that removes unwanted terms."""
    return lambda term, keyword: (term, keyword) if is_wanted(term) else None


def mark_keywords(is_keyword: Callable[[str], bool]) -> TermFilter:
    """Return a filter that marks keywords."""
    return lambda term, keyword: (term, keyword or is_keyword(term))


@dataclass(frozen=True, slots=True)
class LeavingHalves:
    """A filter that may leave half of a surrogate pair, which later filters process."""

    filter: TermFilter
    leaves_halves: ClassVar[bool] = True

    def __call__(self, term: str, keyword: bool) -> Outcome:
        return self.filter(term, keyword)


# fmt: off
ENGLISH_STOPWORDS = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not",
    "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was",
    "will", "with",
)  # Lucene's list
# fmt: on

NO_WORDS = "_none_"


def lowercase(options: Options) -> TermFilter:
    """Make a filter of type `lowercase` (Lucene's `LowerCaseFilter`)."""
    options.refuse("language")
    return change_terms(lower)


def uppercase(_options: Options) -> TermFilter:
    """Make a filter of type `uppercase` (Lucene's `UpperCaseFilter`)."""
    return change_terms(upper)


def asciifolding(options: Options) -> AnyFilter:
    """Make a filter of type `asciifolding` (Lucene's `ASCIIFoldingFilter`)."""
    if not options.boolean("preserve_original", False):
        return change_terms(fold)

    def both(term: str, keyword: bool) -> list[tuple[str, bool]]:
        return [(form, keyword) for form in dict.fromkeys((fold(term), term))]

    return RepeatFilter(both)


def keyword_repeat(_options: Options) -> StreamFilter:
    """Make a filter of type `keyword_repeat`, which adds a copy that stemmers do not change."""
    return RepeatFilter(lambda term, _keyword: [(term, True), (term, False)])


def unique(options: Options) -> StreamFilter:
    """Make a filter of type `unique`."""
    return UniqueFilter(options.boolean("only_on_same_position", False))


def remove_duplicates(_options: Options) -> StreamFilter:
    """Make a filter of type `remove_duplicates`: terms once on each position."""
    return UniqueFilter(only_on_same_position=True)


def reverse(_options: Options) -> TermFilter:
    """Make a filter of type `reverse`, by characters (Lucene's `ReverseStringFilter`)."""
    return change_terms(lambda term: term[::-1])


def apostrophe(_options: Options) -> TermFilter:
    """Make a filter of type `apostrophe`, which removes the first apostrophe and all characters after it."""
    return change_terms(lambda term: re.split("['\u2019]", term, maxsplit=1)[0])


def elision(options: Options) -> TermFilter:
    """Make a filter of type `elision`, which removes an article and its apostrophe (Lucene's `ElisionFilter`)."""
    options.refuse("articles_path")
    articles = options.strings("articles", [])
    if not articles:
        raise options.bad("`articles` is missing")
    if articles == [NO_WORDS] and not options.is_list("articles"):
        articles = []
    is_article = membership(articles, options.boolean("articles_case", False))

    def without_article(term: str) -> str:
        article, *rest = re.split("['\u2019]", term, maxsplit=1)
        return rest[0] if rest and is_article(article) else term

    return change_terms(without_article)


_SCANDINAVIAN = str.maketrans("äöÄÖ", "æøÆØ")
_FOLDED = str.maketrans("åäæöøÅÄÆÖØ", "aaaooAAAOO")
_LIGATURES = {"aa": "å", "ao": "å", "ae": "æ", "oe": "ø", "oo": "ø"}


def scandinavian_normalization(_options: Options) -> TermFilter:
    """Make a filter of type `scandinavian_normalization`: ä, ae and the like become å, æ and ø.

    Source: org.apache.lucene.analysis.miscellaneous.ScandinavianNormalizer
    """

    def letter(match: re.Match[str]) -> str:
        normal = _LIGATURES[match[0].lower()]
        return normal.upper() if match[0][0].isupper() else normal

    return change_terms(lambda term: re.sub("[aA][aAoOeE]|[oO][oOeE]", letter, term).translate(_SCANDINAVIAN))


def scandinavian_folding(_options: Options) -> TermFilter:
    """Make a filter of type `scandinavian_folding`: å, ä, æ, aa and the like become a, and likewise o.

    Source: org.apache.lucene.analysis.miscellaneous.ScandinavianFoldingFilter
    """
    return change_terms(lambda term: re.sub("([aA])[aAeEoO]|([oO])[eEoO]", r"\1\2", term).translate(_FOLDED))


def decimal_digit(_options: Options) -> TermFilter:
    """Make a filter of type `decimal_digit`: all digits of Unicode become those of ASCII."""
    return change_terms(ascii_digits)


def cjk_width(_options: Options) -> TermFilter:
    """Make a filter of type `cjk_width`: wide ASCII and narrow Katakana get their usual width."""
    return change_terms(usual_width)


def keep(options: Options) -> TermFilter:
    """Make a filter of type `keep`, which removes all other terms (Lucene's `KeepWordFilter`)."""
    options.refuse("keep_words_path")
    options.strings("keep_words")
    return keep_terms(word_set(options, "keep_words"))


def trim(_options: Options) -> TermFilter:
    """Make a filter of type `trim` (Lucene's `TrimFilter`)."""
    return change_terms(lambda term: term.strip(JAVA_WHITESPACE))


def stop(options: Options) -> TermFilter:
    """Make a filter of type `stop` (Lucene's `StopFilter`)."""
    options.refuse("stopwords_path")
    if not options.boolean("remove_trailing", True):
        raise options.not_supported("`remove_trailing` false")
    words = stopword_list(options, "_english_")
    # The default words are compared with their case.
    return stop_words(words, options.boolean("ignore_case", False) and "stopwords" in options)


def stop_words(words: Sequence[str], ignore_case: bool = False) -> TermFilter:
    """Return a filter that removes these words."""
    is_stop_word = membership(words, ignore_case)
    return keep_terms(lambda term: not is_stop_word(term))


def membership(words: Sequence[str], ignore_case: bool) -> Callable[[str], bool]:
    """Return whether a term is one of these words."""
    if not ignore_case:
        return frozenset(words).__contains__
    lowered = frozenset(map(lower, words))
    return lambda term: lower(term) in lowered


def word_set(options: Options, name: str, default: list[str] | None = None) -> Callable[[str], bool]:
    """Read a setting with words, and the one that ends in `_case`; return whether a term is one of the words."""
    words = options.strings(name, default)
    words = [] if words == [NO_WORDS] and not options.is_list(name) else words
    return membership(words, options.boolean(f"{name}_case", False))


def stopword_list(options: Options, default: str, name: str = "stopwords") -> list[str]:
    """Read a setting with words, and replace the names of lists such as `_english_` by their words."""
    setting = options.strings(name, []) if name in options else [default]
    if setting == [NO_WORDS] and not options.is_list(name):  # in a list, `_none_` is a word
        return []
    words: list[str] = []
    for word in setting:
        language = word[1:-1]
        if word == f"_{language}_" and language in _stop_words():
            words += _stop_words()[language]
        elif re.fullmatch("_[a-z]+_", word) and word != NO_WORDS:
            raise options.not_supported(f"the stop words {word}")
        else:
            words.append(word)
    return words


@cache
def _stop_words() -> dict[str, Sequence[str]]:
    """Return stop words by language."""
    words = {language: tuple(words.split()) for language, words in read_table("stop_words.txt")}
    return {"english": ENGLISH_STOPWORDS, **words}


def length(options: Options) -> TermFilter:
    """Make a filter of type `length`, in code units (Lucene's `LengthFilter`)."""
    low, high = options.integer("min", 0), options.integer("max", 2**31 - 1)
    if not 0 <= low <= high:
        raise options.bad(f"`min` {low} must be at least 0 and at most `max` {high}")
    return keep_terms(lambda term: low <= utf16_length(term) <= high)


def truncate(options: Options) -> TermFilter:
    """Make a filter of type `truncate`, in code units (Lucene's `TruncateTokenFilter`, which skips keywords)."""
    units = options.integer("length")
    if units < 1:
        raise options.bad(f"`length` must be positive, not {units}")
    return LeavingHalves(stem_terms(lambda term: joined_units(utf16_units(term)[:units])))


_ENGLISH = {
    "english": stem_terms(porter),
    "porter": stem_terms(porter),
    "porter2": stem_terms(porter2),
    "minimal_english": stem_terms(minimal_english),
    "possessive_english": change_terms(possessive_english),
}


@cache
def _stemmers() -> dict[str, TermFilter]:
    """Return the filter of each language, which Elasticsearch also knows without underscores."""
    # Only few indexes need these modules.
    from searchapp.lucene.analysis.light_stemmers import LIGHT
    from searchapp.lucene.analysis.snowball import SNOWBALL

    stems = {**SNOWBALL, "german2": SNOWBALL["german"], **LIGHT}
    filters = {**_ENGLISH, **{name: stem_terms(stem) for name, stem in stems.items()}}
    return filters | {name.replace("_", ""): filter_ for name, filter_ in filters.items()}


def stemmer(options: Options) -> TermFilter:
    """Make a filter of type `stemmer`; `name` is the older name of `language`."""
    language = options.text("language", options.text("name", "porter"))
    known = _ENGLISH if language.lower() in _ENGLISH else _stemmers()
    if language.lower() not in known:
        raise options.not_supported(f"the language {language}")
    return known[language.lower()]


def snowball(options: Options) -> TermFilter:
    """Make a filter of type `snowball`; `name` is the older name of `language`."""
    from searchapp.lucene.analysis.snowball import SNOWBALL  # see `_stemmers`

    language = options.text("language", options.text("name", "English"))
    name = language[:1].lower() + language[1:]
    if name == "english":
        return _ENGLISH["porter2"]
    if name not in (*SNOWBALL, "german2"):
        raise options.not_supported(f"the language {language}")
    return _stemmers()[name]


def german_normalization(_options: Options) -> TermFilter:
    """Make a filter of type `german_normalization`."""
    from searchapp.lucene.analysis.light_stemmers import normalized_german  # see `_stemmers`

    return change_terms(normalized_german)


def keyword_marker(options: Options) -> TermFilter:
    """Make a filter of type `keyword_marker`, which protects terms from stemmers."""
    options.refuse("keywords_path")
    ignore_case = options.boolean("ignore_case", False)
    if "keywords_pattern" not in options:
        return mark_keywords(membership(options.strings("keywords"), ignore_case))
    if "keywords" in options:
        raise options.bad("`keywords` and `keywords_pattern` exclude each other")
    return mark_keywords(compile_java(options, "keywords_pattern", has_flags=False).matches)


def stemmer_override(options: Options) -> TermFilter:
    """Make a filter of type `stemmer_override`: a rule `a, b => c` makes c a keyword; the first rule wins."""
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
        return (term, keyword) if keyword or term not in overrides else (overrides[term], True)

    return override


def pattern_replace(options: Options) -> TermFilter:
    """Make a filter of type `pattern_replace` (Lucene's `PatternReplaceFilter`)."""
    pattern = compile_java(options)
    template = replacement_template(options, pattern)
    count = 0 if options.boolean("all", True) else 1
    substitution = cache(lambda: pattern.substitution(template, count))  # parses the pattern at the first use
    change = change_terms(lambda term: substitution()(term))
    return LeavingHalves(change) if pattern.leaves_halves else change
