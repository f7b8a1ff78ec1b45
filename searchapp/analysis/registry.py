"""Analyzers by name, from the `settings.analysis` of an index mapping.

The pieces that the settings define go by the names they have there; the pieces that need no settings go by their
type, as in Elasticsearch. Whatever is not in the tables below is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from searchapp.analysis import char_filters, standard, stream_filters, term_filters, tokenizers
from searchapp.analysis.analyzer import DEFAULT_POSITION_GAP, Analyzer, NamedCharFilter, NamedTokenFilter
from searchapp.analysis.built_in import BUILT_IN
from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.errors import BadSettings, NotSupported
from searchapp.analysis.options import Options
from searchapp.analysis.shared import Shared
from searchapp.analysis.synonyms import synonym_filter
from searchapp.analysis.tokenizers import Tokenizer
from searchapp.analysis.tokens import StreamFilter, TermFilter

Piece = TypeVar("Piece")
Makers = Mapping[str, Callable[[Options], Piece]]
AnyFilter = TermFilter | StreamFilter


def _html_strip_filter(options: Options) -> CharFilter:
    """Loaded when a mapping asks for it: its patterns take longer to prepare than all others together."""
    from searchapp.analysis.html_strip import html_strip_filter

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
    "standard": standard.standard_tokenizer,
    "whitespace": tokenizers.whitespace_tokenizer,
}
TOKEN_FILTERS: Final[Makers[AnyFilter]] = {
    "asciifolding": term_filters.asciifolding,
    "edge_ngram": stream_filters.edge_ngram,
    "keyword_marker": term_filters.keyword_marker,
    "length": term_filters.length,
    "lowercase": term_filters.lowercase,
    "ngram": stream_filters.ngram,
    "pattern_replace": term_filters.pattern_replace,
    "porter_stem": term_filters.porter_stem,
    "shingle": stream_filters.shingle,
    "snowball": term_filters.snowball,
    "stemmer": term_filters.stemmer,
    "stemmer_override": term_filters.stemmer_override,
    "stop": term_filters.stop,
    "trim": term_filters.trim,
    "truncate": term_filters.truncate,
    "unique": stream_filters.unique,
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
        for section in sorted(settings_analysis.keys() - set(_SECTIONS)):
            raise NotSupported(f"the section `{section}` of the analysis settings")
        self._shared = Shared()
        sections = [_section(settings_analysis, name) for name in _SECTIONS]
        analyzers, char_filters_, tokenizers_, filters = sections
        self._char_filters = {
            name: _made("char_filter", name, settings, CHAR_FILTERS)
            for name, settings in char_filters_.items()
        }
        self._tokenizers = {
            name: _made("tokenizer", name, settings, TOKENIZERS) for name, settings in tokenizers_.items()
        }
        self._synonyms = {
            name: settings for name, settings in filters.items() if settings.get("type") == SYNONYMS
        }
        self._filters = {
            name: _made("filter", name, settings, TOKEN_FILTERS)
            for name, settings in filters.items()
            if name not in self._synonyms
        }
        self._analyzers = {name: self._defined(name, settings) for name, settings in analyzers.items()}

    def analyzer(self, name: str) -> Analyzer:
        """The analyzer that the settings define by this name, or else the built-in one.

        Raises:
            NotSupported: there is no such analyzer here
        """
        if name not in self._analyzers:
            self._analyzers[name] = _built_in(name, "standard" if name == DEFAULT else name, {})
        return self._analyzers[name]

    def _defined(self, name: str, settings: Mapping[str, Any]) -> Analyzer:
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
        tokenizer = _known(self._tokenizers, "tokenizer", tokenizer_name, TOKENIZERS)
        char_filters_ = [
            NamedCharFilter(filter_, _known(self._char_filters, "char_filter", filter_, CHAR_FILTERS))
            for filter_ in names[0]
        ]
        filters: list[NamedTokenFilter] = []
        for filter_ in names[1]:
            if filter_ in self._synonyms:
                before = Analyzer(name, tokenizer, filters, char_filters_)
                made: AnyFilter = self._synonym_filter(filter_, before)
            else:
                made = _known(self._filters, "filter", filter_, TOKEN_FILTERS)
            filters.append(NamedTokenFilter(filter_, made))
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


def _section(settings: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    section = settings.get(name, {})
    if not isinstance(section, Mapping) or not all(isinstance(piece, Mapping) for piece in section.values()):
        raise BadSettings(f"`{name}` in the analysis settings must be an object of objects")
    for piece in section:
        if "." in piece:
            raise BadSettings(f"`{piece}` among `{name}` has a dot in its name, which stands for an object")
    return section


def _made(kind: str, name: str, settings: Mapping[str, Any], makers: Makers[Piece]) -> Piece:
    """The piece that the settings describe."""
    options = Options(f"{kind} `{name}`", settings)
    type_ = options.text("type")
    if type_ not in makers:
        raise NotSupported(f"the {kind} type {type_} of `{name}`")
    piece = makers[type_](options)
    options.finish()
    return piece


def _known(defined: dict[str, Piece], kind: str, name: str, makers: Makers[Piece]) -> Piece:
    """The piece that the settings define by this name, or the one that goes by the name of its type.

    The latter has the type's default settings, and is made once for all analyzers, which can share what it does.

    Raises:
        NotSupported: Elasticsearch may have a piece of this name
        BadSettings: the type needs settings
    """
    if name not in defined:
        if name not in makers:
            raise NotSupported(f"the {kind} `{name}`, which the analysis settings do not define,")
        defined[name] = _made(kind, name, {"type": name, **UNCONFIGURED.get(name, {})}, makers)
    return defined[name]


def _built_in(name: str, type_: str, settings: Mapping[str, Any]) -> Analyzer:
    if not isinstance(type_, str) or type_ not in BUILT_IN:
        raise NotSupported(f"the analyzer `{name}`" + (f" of type {type_}" if type_ != name else ""))
    options = Options(f"analyzer `{name}`", settings)
    analyzer = BUILT_IN[type_](name, options)
    options.finish()
    return analyzer
