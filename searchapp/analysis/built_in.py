"""Elasticsearch's analyzers that need no definition: standard, simple, whitespace, keyword, stop, english."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from searchapp.analysis.analyzer import Analyzer, NamedTokenFilter
from searchapp.analysis.options import Options
from searchapp.analysis.standard import standard_tokenizer
from searchapp.analysis.stemming import porter, possessive_english
from searchapp.analysis.term_filters import (
    NO_WORDS,
    changing,
    lowercase,
    marking,
    stemming,
    stop_words,
    stopword_list,
)
from searchapp.analysis.tokenizers import (
    Tokenizer,
    keyword_tokenizer,
    lowercase_tokenizer,
    whitespace_tokenizer,
)
from searchapp.analysis.tokens import TermFilter


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
