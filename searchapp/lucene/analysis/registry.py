"""Analyzers by name: the built-in ones and those of the `settings.analysis` of an index mapping.

Defined pieces go by their names in the settings; pieces that need no settings go by their type, as in
Elasticsearch. Anything that is not in the tables below is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from searchapp.errors import ErrorCollector
from searchapp.lucene.analysis import char_filters, token_filters, tokenizers
from searchapp.lucene.analysis.analyzer import (
    DEFAULT_POSITION_GAP,
    Analyzer,
    NamedCharFilter,
    NamedTokenFilter,
    Shared,
)
from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.stemmers import porter, possessive_english
from searchapp.lucene.analysis.synonyms import synonym_filter
from searchapp.lucene.analysis.token_filters import (
    NO_WORDS,
    StreamFilter,
    TermFilter,
    changing,
    lowercase,
    marking,
    stemming,
    stop_words,
    stopword_list,
)
from searchapp.lucene.analysis.tokenizers import (
    Tokenizer,
    keyword_tokenizer,
    lowercase_tokenizer,
    standard_tokenizer,
    whitespace_tokenizer,
)
from searchapp.lucene.errors import BadSettings, NotSupported, Undefined


def _analyzer(name: str, tokenizer: Tokenizer, *filters: TermFilter) -> Analyzer:
    named = [NamedTokenFilter(str(number), filter_) for number, filter_ in enumerate(filters)]
    return Analyzer(name, tokenizer, named, built_in=True)


def standard(name: str, options: Options) -> Analyzer:
    """Words by UAX #29 in lower case (Lucene's `StandardAnalyzer`)."""
    stopwords = stop_words(stopword_list(options, "_none_"))
    return _analyzer(name, standard_tokenizer(options), lowercase(options), stopwords)


def simple(name: str, options: Options) -> Analyzer:
    """Runs of letters in lower case (Lucene's `SimpleAnalyzer`)."""
    return _analyzer(name, lowercase_tokenizer(options))


def whitespace(name: str, options: Options) -> Analyzer:
    """What stands between white space (Lucene's `WhitespaceAnalyzer`)."""
    return _analyzer(name, whitespace_tokenizer(Options(options.piece, {})))


def keyword(name: str, options: Options) -> Analyzer:
    """The whole text (Lucene's `KeywordAnalyzer`)."""
    return _analyzer(name, keyword_tokenizer(Options(options.piece, {})))


def stop(name: str, options: Options) -> Analyzer:
    """Runs of letters in lower case without stop words (Lucene's `StopAnalyzer`)."""
    options.refuse("stopwords_path")
    return _analyzer(name, lowercase_tokenizer(options), stop_words(stopword_list(options, "_english_")))


def english(name: str, options: Options) -> Analyzer:
    """Words without possessive, stop words and inflection (Lucene's `EnglishAnalyzer`)."""
    options.refuse("stopwords_path", "stem_exclusion_path")
    return _analyzer(
        name,
        standard_tokenizer(Options(options.piece, {})),
        changing(possessive_english),
        lowercase(options),
        stop_words(stopword_list(options, "_english_")),
        marking(_stem_exclusion(options)),
        stemming(porter),
    )


def _stem_exclusion(options: Options) -> list[str]:
    words = options.strings("stem_exclusion", [])
    return words if words != [NO_WORDS] or options.is_list("stem_exclusion") else []


BUILT_IN: Final[Mapping[str, Callable[[str, Options], Analyzer]]] = {
    "english": english,
    "keyword": keyword,
    "simple": simple,
    "standard": standard,
    "stop": stop,
    "whitespace": whitespace,
}


Piece = TypeVar("Piece")
Makers = Mapping[str, Callable[[Options], Piece]]
AnyFilter = TermFilter | StreamFilter


def _html_strip_filter(options: Options) -> CharFilter:
    """Loaded when a mapping asks for it: its patterns take longer to prepare than all others together."""
    from searchapp.lucene.analysis.html_strip import html_strip_filter

    return html_strip_filter(options)


CHAR_FILTERS: Final[Makers[CharFilter]] = {
    "html_strip": _html_strip_filter,
    "mapping": char_filters.mapping_filter,
    "pattern_replace": char_filters.pattern_replace_filter,
}
TOKENIZERS: Final[Makers[Tokenizer]] = {
    "keyword": tokenizers.keyword_tokenizer,
    "letter": tokenizers.letter_tokenizer,
    "lowercase": tokenizers.lowercase_tokenizer,
    "pattern": tokenizers.pattern_tokenizer,
    "simple_pattern": tokenizers.simple_pattern_tokenizer,
    "standard": tokenizers.standard_tokenizer,
    "whitespace": tokenizers.whitespace_tokenizer,
}
TOKEN_FILTERS: Final[Makers[AnyFilter]] = {
    "asciifolding": token_filters.asciifolding,
    "edge_ngram": token_filters.edge_ngram,
    "keyword_marker": token_filters.keyword_marker,
    "length": token_filters.length,
    "lowercase": token_filters.lowercase,
    "ngram": token_filters.ngram,
    "pattern_replace": token_filters.pattern_replace,
    "porter_stem": token_filters.porter_stem,
    "shingle": token_filters.shingle,
    "snowball": token_filters.snowball,
    "stemmer": token_filters.stemmer,
    "stemmer_override": token_filters.stemmer_override,
    "stop": token_filters.stop,
    "trim": token_filters.trim,
    "truncate": token_filters.truncate,
    "unique": token_filters.unique,
}
UNCONFIGURED: Final[Mapping[str, Mapping[str, Any]]] = {
    "edge_ngram": {"max_gram": 1},
    "truncate": {"length": 10},
}
"""Where a filter that goes by the name of its type has other settings than a defined one without any."""
SYNONYMS: Final = "synonym"
"""The one filter whose settings are themselves analysed, by the pieces that stand before it."""

DEFAULT: Final = "default"
"""The analyzer of fields that name none; where it is not defined, it is the standard one."""

_SECTIONS = ("analyzer", "char_filter", "tokenizer", "filter")


class AnalysisRegistry:
    """The analyzers that an index has.

    Every piece is built at once, so that settings that can't be kept are refused when an index is opened.

    Args:
        settings_analysis: the object `settings.analysis`, which may be empty

    Raises:
        NotSupported: a piece or a parameter that only Elasticsearch has
        BadSettings: settings that Elasticsearch rejects too
    """

    def __init__(self, settings_analysis: Mapping[str, Any]) -> None:
        problems = ErrorCollector()
        for section in sorted(settings_analysis.keys() - set(_SECTIONS)):
            with problems.at(f"settings.analysis.{section}"):
                raise NotSupported(f"the section `{section}` of the analysis settings")
        self._shared = Shared()
        sections = [_section(settings_analysis, name, problems) for name in _SECTIONS]
        analyzers, char_filters_, tokenizers_, filters = sections
        self._synonyms = {
            name: settings for name, settings in filters.items() if settings.get("type") == SYNONYMS
        }
        others = {name: settings for name, settings in filters.items() if name not in self._synonyms}
        self._char_filters = _each("char_filter", char_filters_, CHAR_FILTERS, problems)
        self._tokenizers = _each("tokenizer", tokenizers_, TOKENIZERS, problems)
        self._filters = _each("filter", others, TOKEN_FILTERS, problems)
        self._analyzers: dict[str, Analyzer] = {}
        for name, settings in analyzers.items():
            with problems.at(f"settings.analysis.analyzer.{name}"), suppress(_Broken):
                self._analyzers[name] = self._defined(name, settings, problems)
        problems.raise_if_any()

    def analyzer(self, name: str) -> Analyzer:
        """The analyzer that the settings define by this name, or else the built-in one.

        Raises:
            NotSupported: there is no such analyzer here
        """
        if name not in self._analyzers:
            if name not in (*BUILT_IN, DEFAULT):
                raise Undefined("analyzer", name, [*self._analyzers, *BUILT_IN])
            self._analyzers[name] = _built_in(name, "standard" if name == DEFAULT else name, {})
        return self._analyzers[name]

    def _defined(self, name: str, settings: Mapping[str, Any], problems: ErrorCollector) -> Analyzer:
        type_ = settings.get("type", "custom")
        if type_ != "custom":
            return _built_in(name, type_, settings)
        options = Options(f"analyzer `{name}`", settings)
        gap = options.integer("position_increment_gap", DEFAULT_POSITION_GAP)
        if gap < 0:
            raise options.not_supported("a negative `position_increment_gap`")
        tokenizer_name = options.text("tokenizer")
        names = options.strings("char_filter", []), options.strings("filter", [])
        options.finish()
        path = f"settings.analysis.analyzer.{name}"
        tokenizer = None
        with problems.at(f"{path}.tokenizer"), suppress(_Broken):
            tokenizer = _known(self._tokenizers, "tokenizer", tokenizer_name, TOKENIZERS)
        char_filters_: list[NamedCharFilter] = []
        for place, filter_ in enumerate(names[0]):
            with problems.at(f"{path}.char_filter[{place}]"), suppress(_Broken):
                char_filter = _known(self._char_filters, "char_filter", filter_, CHAR_FILTERS)
                char_filters_.append(NamedCharFilter(filter_, char_filter))
        filters: list[NamedTokenFilter] = []
        for place, filter_ in enumerate(names[1]):
            with problems.at(f"{path}.filter[{place}]"), suppress(_Broken):
                if filter_ in self._synonyms:
                    if tokenizer is None:
                        raise _Broken
                    before = Analyzer(name, tokenizer, filters, char_filters_)
                    made: AnyFilter = self._synonym_filter(filter_, before)
                else:
                    made = _known(self._filters, "filter", filter_, TOKEN_FILTERS)
                filters.append(NamedTokenFilter(filter_, made))
        if tokenizer is None:
            raise _Broken
        return Analyzer(
            name,
            tokenizer,
            filters,
            char_filters_,
            tokenizer_name=tokenizer_name,
            position_increment_gap=gap,
            shared=self._shared,
        )

    def _synonym_filter(self, name: str, before: Analyzer) -> AnyFilter:
        """The filter of this name, in an analyzer that consists of `before` so far."""
        options = Options(f"filter `{name}`", self._synonyms[name])
        synonyms = synonym_filter(options, before)
        options.finish()
        return synonyms


class _Broken(Exception):
    """An analyzer names a piece that is wrong itself, which is reported there."""


def _section(
    settings: Mapping[str, Any], name: str, problems: ErrorCollector
) -> Mapping[str, Mapping[str, Any]]:
    section = settings.get(name, {})
    with problems.at(f"settings.analysis.{name}"):
        if not isinstance(section, Mapping) or not all(
            isinstance(piece, Mapping) for piece in section.values()
        ):
            raise BadSettings(f"`{name}` in the analysis settings must be an object of objects")
        for piece in section:
            if "." in piece:
                raise BadSettings(
                    f"`{piece}` among `{name}` has a dot in its name, which stands for an object"
                )
        return section
    return {}


def _each(
    kind: str, section: Mapping[str, Mapping[str, Any]], makers: Makers[Piece], problems: ErrorCollector
) -> dict[str, Piece | None]:
    """The pieces that the settings describe, None in the place of each that is wrong."""
    made: dict[str, Piece | None] = dict.fromkeys(section)
    for name, settings in section.items():
        with problems.at(f"settings.analysis.{kind}.{name}"):
            made[name] = _made(kind, name, settings, makers)
    return made


def _made(kind: str, name: str, settings: Mapping[str, Any], makers: Makers[Piece]) -> Piece:
    """The piece that the settings describe."""
    options = Options(f"{kind} `{name}`", settings)
    type_ = options.text("type")
    if type_ not in makers:
        raise NotSupported(f"the {kind} type {type_} of `{name}`")
    piece = makers[type_](options)
    options.finish()
    return piece


def _known(defined: dict[str, Piece | None], kind: str, name: str, makers: Makers[Piece]) -> Piece:
    """The piece that the settings define by this name, or the one that goes by the name of its type.

    The latter has the type's default settings, and is made once for all analyzers, which can share what it does.

    Raises:
        NotSupported: Elasticsearch may have a piece of this name
        BadSettings: the type needs settings
        _Broken: the settings define one that is wrong
    """
    if name not in defined:
        if name not in makers:
            raise Undefined(kind, name, [*defined, *makers])
        defined[name] = _made(kind, name, {"type": name, **UNCONFIGURED.get(name, {})}, makers)
    piece = defined[name]
    if piece is None:
        raise _Broken
    return piece


def _built_in(name: str, type_: str, settings: Mapping[str, Any]) -> Analyzer:
    if not isinstance(type_, str) or type_ not in BUILT_IN:
        raise NotSupported(f"the analyzer `{name}`" + (f" of type {type_}" if type_ != name else ""))
    options = Options(f"analyzer `{name}`", settings)
    analyzer = BUILT_IN[type_](name, options)
    options.finish()
    return analyzer
