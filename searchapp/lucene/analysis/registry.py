"""Analyzers by name: the built-in ones, and those of the `settings.analysis` of a mapping.

A component without settings may be named by its type, as in Elasticsearch. Unknown components are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from searchapp.lucene.analysis import char_filters, stream_filters, token_filters, tokenizers
from searchapp.lucene.analysis.analyzer import DEFAULT_POSITION_GAP, Analyzer, Normalizer, SharedAnalysis
from searchapp.lucene.analysis.char_filters import CharFilter
from searchapp.lucene.analysis.characters import fold, lower
from searchapp.lucene.analysis.flatten_graph import FlattenGraphFilter
from searchapp.lucene.analysis.options import LIMITS, TRIMMED, Options
from searchapp.lucene.analysis.scripts import (
    normalized_arabic,
    normalized_hindi,
    normalized_indic,
    normalized_persian,
    normalized_sorani,
)
from searchapp.lucene.analysis.stemmers import porter, possessive_english
from searchapp.lucene.analysis.synonyms import SynonymFilter, SynonymGraphFilter, synonym_filter
from searchapp.lucene.analysis.token_filters import (
    ENGLISH_STOPWORDS,
    NO_WORDS,
    AnyFilter,
    StreamFilter,
    TermFilter,
    change_terms,
    keep_terms,
    lowercase,
    mark_keywords,
    stem_terms,
    stop_words,
    stopword_list,
)
from searchapp.lucene.analysis.tokenizers import (
    KeywordTokenizer,
    Tokenizer,
    keyword_tokenizer,
    lowercase_tokenizer,
    standard_tokenizer,
    whitespace_tokenizer,
)
from searchapp.lucene.analysis.word_delimiter import WordDelimiterFilter, WordDelimiterGraphFilter
from searchapp.lucene.errors import BadSettings, ErrorCollector, NotSupported, Undefined

Parts = tuple[Tokenizer, tuple[AnyFilter, ...]]


def _standard(options: Options) -> Parts:
    stopwords = stop_words(stopword_list(options, "_none_"))
    return standard_tokenizer(options), (lowercase(options), stopwords)


def _stop(options: Options) -> Parts:
    options.refuse("stopwords_path")
    return lowercase_tokenizer(options), (stop_words(stopword_list(options, "_english_")),)


def _language(
    options: Options,
    language: str,
    stem: TermFilter,
    *,
    first: TermFilter | None = None,
    normal: TermFilter | None = None,
) -> Parts:
    """Return the parts of the analyzer of a language.

    Args:
        options: settings
        language: its stop words
        stem: the stemmer
        first: a filter before all others
        normal: a filter after stop words and before the stemmer
    """
    options.refuse("stopwords_path", "stem_exclusion_path")
    stopwords = stop_words(stopword_list(options, f"_{language}_"))
    words = options.strings("stem_exclusion", [])
    if words == [NO_WORDS] and not options.is_list("stem_exclusion"):
        words = []
    exclusion = mark_keywords(frozenset(words).__contains__)
    filters = (first, lowercase(options), stopwords, exclusion, normal, stem)
    return standard_tokenizer(Options(options.piece, {})), tuple(filter(None, filters))


_ARTICLES = {
    "french": "l m t qu n s j d c jusqu quoiqu lorsqu puisqu",
    "italian": "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d",
}


def _elision_settings(language: str) -> Mapping[str, Any]:
    return {"articles": _ARTICLES[language].split(), "articles_case": True}


def _elision(language: str) -> TermFilter:
    return token_filters.elision(Options("filter `elision`", _elision_settings(language)))


def _german_normalization() -> TermFilter:
    return token_filters.german_normalization(Options("filter", {}))


# Stems of the Dutch analyzer that differ from its stemmer.
_DUTCH_STEMS = ["fiets => fiets", "bromfiets => bromfiets", "ei => eier", "kind => kinder"]


def _fingerprint(options: Options) -> Parts:
    options.refuse("stopwords_path")
    stopwords = stop_words(stopword_list(options, "_none_"))
    joining = stream_filters.FingerprintFilter(options)
    return standard_tokenizer(Options(options.piece, {})), (
        *(change_terms(lower), change_terms(fold), stopwords, joining),
    )


# Of Lucene's `CJKAnalyzer`: without "an", with letters that apostrophes leave.
_CJK_STOPWORDS = [*(word for word in ENGLISH_STOPWORDS if word != "an"), "s", "t", "www"]


def _cjk(options: Options) -> Parts:
    options.refuse("stopwords_path")
    words = stopword_list(options, "_none_") if "stopwords" in options else _CJK_STOPWORDS
    bigrams = stream_filters.CjkBigramFilter(Options(options.piece, {}))
    width = token_filters.cjk_width(options)
    filters = (width, change_terms(lower), bigrams, stop_words(words))
    return standard_tokenizer(Options(options.piece, {})), filters


def _pattern(options: Options) -> Parts:
    options.refuse("stopwords_path")
    lowercases = options.boolean("lowercase", True)
    filters = (*([change_terms(lower)] if lowercases else []), stop_words(stopword_list(options, "_none_")))
    return tokenizers.pattern_tokenizer(options), filters


def _with_stemmer(
    language: str, stem: str = "", **more: Callable[[], TermFilter]
) -> Callable[[Options], Parts]:
    def parts(options: Options) -> Parts:
        filter_ = token_filters.stemmer(Options("filter", {"language": stem or language}))
        return _language(options, language, filter_, **{name: make() for name, make in more.items()})

    return parts


# Components of Lucene's `EnglishAnalyzer`, `KeywordAnalyzer`, `SimpleAnalyzer` and so on, from their settings.
BUILT_IN: Final[Mapping[str, Callable[[Options], Parts]]] = {
    "cjk": _cjk,
    "danish": _with_stemmer("danish"),
    "dutch": _with_stemmer(
        "dutch", normal=lambda: token_filters.stemmer_override(Options("filter", {"rules": _DUTCH_STEMS}))
    ),
    "english": lambda options: _language(
        options, "english", stem_terms(porter), first=change_terms(possessive_english)
    ),
    "fingerprint": _fingerprint,
    "french": _with_stemmer("french", "light_french", first=partial(_elision, "french")),
    "german": _with_stemmer("german", "light_german", normal=_german_normalization),
    "italian": _with_stemmer("italian", "light_italian", first=partial(_elision, "italian")),
    "norwegian": _with_stemmer("norwegian"),
    "portuguese": _with_stemmer("portuguese", "light_portuguese"),
    "russian": _with_stemmer("russian"),
    "spanish": _with_stemmer("spanish", "light_spanish"),
    "swedish": _with_stemmer("swedish"),
    "keyword": lambda options: (keyword_tokenizer(Options(options.piece, {})), ()),
    "pattern": _pattern,
    "simple": lambda options: (lowercase_tokenizer(options), ()),
    "standard": _standard,
    "stop": _stop,
    "whitespace": lambda options: (whitespace_tokenizer(Options(options.piece, {})), ()),
}


# The patterns of each of these take longer to compile than all others together.
def _html_strip_filter(options: Options) -> CharFilter:
    from searchapp.lucene.analysis.html_strip import HtmlStripFilter

    return HtmlStripFilter(options)


def _classic_tokenizer(options: Options) -> Tokenizer:
    from searchapp.lucene.analysis.classic import classic_tokenizer

    return classic_tokenizer(options)


def _classic_filter(options: Options) -> AnyFilter:
    from searchapp.lucene.analysis.classic import ClassicFilter

    return ClassicFilter(options)


def _url_email_tokenizer(options: Options) -> Tokenizer:
    from searchapp.lucene.analysis.url_email import url_email_tokenizer

    return url_email_tokenizer(options)


Piece = TypeVar("Piece")
Makers = Mapping[str, Callable[[Options], Piece]]

CHAR_FILTERS: Final[Makers[CharFilter]] = {
    "html_strip": _html_strip_filter,
    "mapping": char_filters.mapping_filter,
    "pattern_replace": char_filters.pattern_replace_filter,
}
TOKENIZERS: Final[Makers[Tokenizer]] = {
    "char_group": tokenizers.char_group_tokenizer,
    "classic": _classic_tokenizer,
    "edge_ngram": partial(tokenizers.gram_tokenizer, edge=True),
    "keyword": tokenizers.keyword_tokenizer,
    "letter": tokenizers.letter_tokenizer,
    "lowercase": tokenizers.lowercase_tokenizer,
    "ngram": partial(tokenizers.gram_tokenizer, edge=False),
    "path_hierarchy": tokenizers.path_tokenizer,
    "pattern": tokenizers.pattern_tokenizer,
    "simple_pattern": tokenizers.simple_pattern_tokenizer,
    "standard": tokenizers.standard_tokenizer,
    "uax_url_email": _url_email_tokenizer,
    "whitespace": tokenizers.whitespace_tokenizer,
}
_NORMALIZATIONS = {
    "arabic_normalization": normalized_arabic,
    "hindi_normalization": normalized_hindi,
    "indic_normalization": normalized_indic,
    "persian_normalization": normalized_persian,
    "sorani_normalization": normalized_sorani,
}


def _normalization(name: str) -> Callable[[Options], TermFilter]:
    return lambda _options: change_terms(_NORMALIZATIONS[name])


TOKEN_FILTERS: Final[Makers[AnyFilter]] = {
    **{name: _normalization(name) for name in _NORMALIZATIONS},
    "apostrophe": token_filters.apostrophe,
    "cjk_bigram": stream_filters.CjkBigramFilter,
    "asciifolding": token_filters.asciifolding,
    "cjk_width": token_filters.cjk_width,
    "classic": _classic_filter,
    "common_grams": stream_filters.CommonGramsFilter,
    "decimal_digit": token_filters.decimal_digit,
    "dictionary_decompounder": stream_filters.dictionary_decompounder,
    "edge_ngram": partial(token_filters.NGramFilter, edge=True),
    "elision": token_filters.elision,
    "fingerprint": stream_filters.FingerprintFilter,
    "flatten_graph": lambda _options: FlattenGraphFilter(),
    "german_normalization": token_filters.german_normalization,
    "keep": token_filters.keep,
    "keep_types": stream_filters.KeepTypesFilter,
    "keyword_marker": token_filters.keyword_marker,
    "keyword_repeat": token_filters.keyword_repeat,
    "length": token_filters.length,
    "limit": stream_filters.LimitFilter,
    "lowercase": token_filters.lowercase,
    "ngram": partial(token_filters.NGramFilter, edge=False),
    "pattern_capture": stream_filters.PatternCaptureFilter,
    "pattern_replace": token_filters.pattern_replace,
    "porter_stem": lambda _options: stem_terms(porter),
    "remove_duplicates": token_filters.remove_duplicates,
    "reverse": token_filters.reverse,
    "scandinavian_folding": token_filters.scandinavian_folding,
    "scandinavian_normalization": token_filters.scandinavian_normalization,
    "shingle": token_filters.ShingleFilter,
    "snowball": token_filters.snowball,
    "stemmer": token_filters.stemmer,
    "stemmer_override": token_filters.stemmer_override,
    "stop": token_filters.stop,
    "trim": token_filters.trim,
    "truncate": token_filters.truncate,
    "unique": token_filters.unique,
    "uppercase": token_filters.uppercase,
    "word_delimiter": WordDelimiterFilter,
    "word_delimiter_graph": WordDelimiterGraphFilter,
}
# Settings of a filter named by its type, if they differ from the defaults of a defined one.
UNCONFIGURED: Final[Mapping[str, Mapping[str, Any]]] = {
    "common_grams": {"common_words": []},
    "edge_ngram": {"max_gram": 1},
    "elision": _elision_settings("french"),
    "truncate": {"length": 10},
}
_UNCHANGING: Final = ("fingerprint", "keyword", "whitespace")  # built-in analyzers
# The filters whose settings are analyzed by the preceding components.
SYNONYMS: Final = {"synonym": SynonymFilter, "synonym_graph": SynonymGraphFilter}

MULTIPLEXER: Final = "multiplexer"  # the filter type that applies other filters of the settings

_REMOVING: Final = ("keep", "length", "stop")  # filters that remove tokens

DEFAULT: Final = "default"  # the analyzer of fields without one; by default the standard analyzer

# Types of the pieces of a normalizer, which Elasticsearch applies to prefixes, patterns and ranges on text too.
NORMALIZING: Final[Mapping[str, frozenset[str]]] = {
    "char_filter": frozenset({"mapping", "pattern_replace"}),
    "filter": frozenset(
        {
            *("asciifolding", "cjk_width", "decimal_digit", "elision", "german_normalization"),
            *("lowercase", "pattern_replace", "scandinavian_folding", "scandinavian_normalization", "trim"),
            "uppercase",
            *_NORMALIZATIONS,
        }
    ),
}
# A normalizer is the analyzer with this before its name, because names of analyzers must not begin with "_".
NORMALIZER: Final = "_normalizer "

# Before the size of shingles and the name of an analyzer, for the sub-fields of a `search_as_you_type`.
SHINGLES: Final = "_shingles "

SHINGLED = ("standard", "simple", "whitespace")  # analyzers that leave no gaps between tokens

_SECTIONS = ("analyzer", "char_filter", "tokenizer", "filter", "normalizer")


class AnalysisRegistry:
    """The analyzers of an index.

    All components are built at once, so that opening an index rejects unsupported settings.

    Args:
        settings_analysis: the object `settings.analysis`, possibly empty.
        limits: settings of the index that limit the sizes of grams.

    Raises:
        NotSupported: only Elasticsearch supports a component or a parameter.
        BadSettings: Elasticsearch also rejects the settings.
    """

    def __init__(
        self, settings_analysis: Mapping[str, Any], limits: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self._limits = {**LIMITS, **limits}
        problems = ErrorCollector()
        for section in sorted(settings_analysis.keys() - set(_SECTIONS)):
            with problems.at(f"settings.analysis.{section}"):
                raise NotSupported(f"the section `{section}` of the analysis settings")
        self._shared = SharedAnalysis()
        sections = [_section(settings_analysis, name, problems) for name in _SECTIONS]
        analyzers, char_filter_settings, tokenizer_settings, filters, normalizers = sections
        self._types = {
            kind: {name: settings.get("type") for name, settings in section.items()}
            for kind, section in (("char_filter", char_filter_settings), ("filter", filters))
        }
        self._synonyms = {
            name: settings for name, settings in filters.items() if settings.get("type") in SYNONYMS
        }
        multiplexers = {
            name: settings for name, settings in filters.items() if settings.get("type") == MULTIPLEXER
        }
        others = {
            name: settings
            for name, settings in filters.items()
            if name not in {*self._synonyms, *multiplexers}
        }
        self._char_filters = self._pieces("char_filter", char_filter_settings, CHAR_FILTERS, problems)
        self._tokenizers = self._pieces("tokenizer", tokenizer_settings, TOKENIZERS, problems)
        self._filters = self._pieces("filter", others, TOKEN_FILTERS, problems)
        self._filters |= self._pieces("filter", multiplexers, {MULTIPLEXER: self._multiplexer}, problems)
        self._analyzers: dict[str, Analyzer] = {}
        for name, settings in analyzers.items():
            with problems.at(f"settings.analysis.analyzer.{name}"), suppress(_Broken):
                self._analyzers[name] = self._defined(name, settings, problems)
        for name, settings in normalizers.items():
            with problems.at(f"settings.analysis.normalizer.{name}"), suppress(_Broken):
                self._analyzers[NORMALIZER + name] = self._custom("normalizer", name, settings, problems)
        problems.raise_if_any()

    def analyzer(self, name: str) -> Analyzer:
        """Return the analyzer that the settings define, otherwise the built-in one; or the normalizer of a field.

        Raises:
            NotSupported: there is no such analyzer.
        """
        if name not in self._analyzers:
            self._analyzers[name] = self._undefined(name)
        return self._analyzers[name]

    def _undefined(self, name: str) -> Analyzer:
        """Return an analyzer or a normalizer that the settings do not define."""
        if name.startswith(NORMALIZER):
            return self._undefined_normalizer(name)
        if name.startswith(SHINGLES):
            return _shingled(name)
        if name not in (*BUILT_IN, DEFAULT):
            names = [key for key in self._analyzers if not key.startswith(NORMALIZER)]
            raise Undefined("analyzer", name, [*names, *BUILT_IN])
        return _built_in(name, "standard" if name == DEFAULT else name, {})

    def named(self, name: str) -> Analyzer:
        """Return the analyzer that a request or a mapping names.

        Raises:
            NotSupported: there is no such analyzer.
        """
        if name.startswith(NORMALIZER):
            raise Undefined("analyzer", name, ())
        return self.analyzer(name)

    def _undefined_normalizer(self, key: str) -> Analyzer:
        name = key.removeprefix(NORMALIZER)
        if name != "lowercase":
            names = [key.removeprefix(NORMALIZER) for key in self._analyzers if key.startswith(NORMALIZER)]
            raise Undefined("normalizer", name, [*names, "lowercase"])
        return _lowercase_normalizer()

    def _defined(self, name: str, settings: Mapping[str, Any], problems: ErrorCollector) -> Analyzer:
        if name.startswith("_"):
            raise BadSettings(f"the name of the analyzer `{name}` begins with _")
        type_ = settings.get("type", "custom")
        if type_ != "custom":
            return _built_in(name, type_, settings)
        return self._custom("analyzer", name, settings, problems)

    def _custom(
        self, section: str, name: str, settings: Mapping[str, Any], problems: ErrorCollector
    ) -> Analyzer:
        """Return a custom analyzer or normalizer."""
        options = Options(f"{section} `{name}`", settings)
        path = f"settings.analysis.{section}.{name}"
        is_normalizer = section == "normalizer"
        gap = DEFAULT_POSITION_GAP
        if not is_normalizer:
            gap = options.integer("position_increment_gap", DEFAULT_POSITION_GAP)
            if gap < 0:
                raise options.not_supported("a negative `position_increment_gap`")
        elif options.text("type", "custom") == "lowercase":
            options.finish()
            return _lowercase_normalizer()
        elif options.text("type", "custom") != "custom":
            raise options.bad(f"the type {options.text('type')} of a normalizer is unknown")
        elif "tokenizer" in options:
            raise options.bad("a normalizer must not have a `tokenizer`")
        tokenizer_name = "keyword" if is_normalizer else options.text("tokenizer")
        char_filter_names, filter_names = options.strings("char_filter", []), options.strings("filter", [])
        options.finish()
        tokenizer: Tokenizer | None = KeywordTokenizer() if is_normalizer else None
        with problems.at(f"{path}.tokenizer"), suppress(_Broken):
            tokenizer = tokenizer or self._find_piece(
                self._tokenizers, "tokenizer", tokenizer_name, TOKENIZERS
            )
        replacing: list[tuple[str, CharFilter]] = []
        for index, piece in enumerate(char_filter_names):
            with problems.at(f"{path}.char_filter[{index}]"), suppress(_Broken):
                if is_normalizer:
                    self._require_normalizing("char_filter", piece, options)
                replacing.append(
                    (piece, self._find_piece(self._char_filters, "char_filter", piece, CHAR_FILTERS))
                )
        filters: list[tuple[str, AnyFilter]] = []
        if tokenizer is not None and tokenizer.skips_tokens:
            filters.append(("", keep_terms(bool)))
        for index, piece in enumerate(filter_names):
            with problems.at(f"{path}.filter[{index}]"), suppress(_Broken):
                if is_normalizer:
                    self._require_normalizing("filter", piece, options)
                if piece not in self._synonyms:
                    filter_ = self._find_piece(self._filters, "filter", piece, TOKEN_FILTERS)
                    _require_compatible(options, piece, filter_, filters)
                    filters.append((piece, filter_))
                elif tokenizer is not None:
                    filters.append((piece, self._synonym_filter(piece, tokenizer, filters, replacing)))
        if tokenizer is None:
            raise _Broken
        return Analyzer(
            name,
            tokenizer,
            filters,
            replacing,
            tokenizer_name=tokenizer_name,
            position_increment_gap=gap,
            shared=self._shared,
            normalizer=self._normalizer_of(replacing, filters),
        )

    def _normalizer_of(
        self, char_filters: list[tuple[str, CharFilter]], filters: list[tuple[str, AnyFilter]]
    ) -> Normalizer:
        changing = (piece for name, piece in filters if self._normalizes("filter", name))
        return (
            [piece for name, piece in char_filters if self._normalizes("char_filter", name)],
            # The only filter of several tokens folds characters and keeps the original.
            [change_terms(fold) if isinstance(piece, StreamFilter) else piece for piece in changing],
        )

    def _normalizes(self, kind: str, name: str) -> bool:
        return self._types[kind].get(name, name) in NORMALIZING[kind]

    def _require_normalizing(self, kind: str, name: str, options: Options) -> None:
        if not self._normalizes(kind, name):
            known = [*self._types[kind], *(CHAR_FILTERS if kind == "char_filter" else TOKEN_FILTERS)]
            if name not in known:
                raise Undefined(kind, name, known)
            raise options.bad(f"a normalizer must not have the {kind} `{name}`")
        if isinstance(self._filters.get(name), StreamFilter):
            raise options.not_supported(f"`preserve_original` of the filter `{name}`")

    def _synonym_filter(
        self,
        name: str,
        tokenizer: Tokenizer,
        filters: list[tuple[str, AnyFilter]],
        replacing: list[tuple[str, CharFilter]],
    ) -> AnyFilter:
        options = Options(f"filter `{name}`", self._synonyms[name])
        make = SYNONYMS[options.text("type")]
        # Rules are analyzed without other synonyms.
        preceding = [entry for entry in filters if not isinstance(entry[1], tuple(SYNONYMS.values()))]
        before = Analyzer(name, tokenizer, preceding, replacing)
        filter_ = synonym_filter(options, [piece for _, piece in preceding], before.terms, make)
        options.finish()
        return filter_

    def _multiplexer(self, options: Options) -> AnyFilter:
        branches: list[list[TermFilter]] = [[]] if options.boolean("preserve_original", True) else []
        names: list[str] = []
        for written in options.strings("filters", []):
            names = [name.strip(TRIMMED) for name in written.split(",")]
            branches.append([self._branch_filter(name, options) for name in names if name])
        # The positions between two values of a field would depend on the increments of all chains.
        removing = [name for name in names if self._types["filter"].get(name, name) in _REMOVING]
        if len(branches) > 1 and removing:
            raise options.not_supported(f"the filter `{removing[0]}` in the last of several chains")
        return stream_filters.MultiplexerFilter(branches)

    def _branch_filter(self, name: str, options: Options) -> TermFilter:
        if name in self._synonyms:
            raise options.not_supported(f"the filter `{name}`")
        filter_ = self._find_piece(self._filters, "filter", name, TOKEN_FILTERS)
        if isinstance(filter_, StreamFilter | token_filters.LeavingHalves):
            raise options.not_supported(f"the filter `{name}`, which reads or makes several tokens,")
        return filter_

    def _pieces(
        self,
        kind: str,
        section: Mapping[str, Mapping[str, Any]],
        makers: Makers[Piece],
        problems: ErrorCollector,
    ) -> dict[str, Piece | None]:
        pieces: dict[str, Piece | None] = dict.fromkeys(section)
        for name, settings in section.items():
            with problems.at(f"settings.analysis.{kind}.{name}"):
                pieces[name] = self._make_piece(kind, name, settings, makers)
        return pieces

    def _make_piece(self, kind: str, name: str, settings: Mapping[str, Any], makers: Makers[Piece]) -> Piece:
        options = Options(f"{kind} `{name}`", settings, self._limits)
        type_ = options.text("type")
        if type_ not in makers:
            raise NotSupported(f"the {kind} type {type_} of `{name}`")
        piece = makers[type_](options)
        options.finish()
        return piece

    def _find_piece(
        self, defined: dict[str, Piece | None], kind: str, name: str, makers: Makers[Piece]
    ) -> Piece:
        if name not in defined:
            if name not in makers:
                raise Undefined(kind, name, [*defined, *makers])
            defaults = UNCONFIGURED.get(name, {}) if kind == "filter" else {}
            defined[name] = self._make_piece(kind, name, {"type": name, **defaults}, makers)
        piece = defined[name]
        if piece is None:
            raise _Broken
        return piece


def _require_compatible(
    options: Options, name: str, filter_: AnyFilter, preceding: Sequence[tuple[str, AnyFilter]]
) -> None:
    """Reject a filter that reads the types of tokens or the end of the text after one that does not keep them."""
    for other_name, other in preceding:
        loses_types = isinstance(other, StreamFilter) and not other.keeps_types
        if (loses_types and getattr(filter_, "needs_types", False)) or (
            getattr(other, "leaves_end", False) and getattr(filter_, "needs_end", False)
        ):
            raise options.not_supported(f"the filter `{name}` after the filter `{other_name}`")


class _Broken(Exception):
    """An analyzer uses an invalid component, which is reported separately."""


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
                raise BadSettings(f"`{piece}` among `{name}` has a dot in its name")
        return section
    return {}


def _lowercase_normalizer() -> Analyzer:
    filter_ = change_terms(lower)
    return Analyzer("lowercase", KeywordTokenizer(), [("lowercase", filter_)], normalizer=([], [filter_]))


def _shingled(name: str) -> Analyzer:
    size, base = name.removeprefix(SHINGLES).split(" ", 1)
    if base not in SHINGLED:
        raise NotSupported(
            f"the analyzer `{base}` for the type search_as_you_type, only {', '.join(SHINGLED)}"
        )
    tokenizer, filters = BUILT_IN[base](Options(name, {}))
    sizes = {"min_shingle_size": int(size), "max_shingle_size": int(size), "output_unigrams": False}
    shingles = TOKEN_FILTERS["shingle"](Options(name, sizes, LIMITS))
    normalizer = list(_normalizer(base, Options(name, {})))
    return Analyzer(
        name, tokenizer, [("", piece) for piece in (*filters, shingles)], normalizer=([], normalizer)
    )


def _built_in(name: str, type_: str, settings: Mapping[str, Any]) -> Analyzer:
    if not isinstance(type_, str) or type_ not in BUILT_IN:
        raise NotSupported(f"the analyzer `{name}`" + (f" of type {type_}" if type_ != name else ""))
    options = Options(f"analyzer `{name}`", settings)
    tokenizer, filters = BUILT_IN[type_](options)
    normalizer = list(_normalizer(type_, options))
    options.finish()
    return Analyzer(name, tokenizer, [("", filter_) for filter_ in filters], normalizer=([], normalizer))


def _normalizer(type_: str, options: Options) -> Iterator[TermFilter]:
    """Yield the filters of `normalize` of Lucene's analyzer."""
    if type_ in _ARTICLES:
        yield _elision(type_)
    if type_ == "cjk":
        yield token_filters.cjk_width(options)
    if type_ not in _UNCHANGING and (type_ != "pattern" or options.boolean("lowercase", True)):
        yield change_terms(lower)
    if type_ == "german":
        yield _german_normalization()
