"""Unsupported pieces are rejected by name, and invalid settings with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from searchapp.lucene.analysis import AnalysisRegistry, BadSettings, NotSupported
from searchapp.lucene.errors import Undefined

Settings = dict[str, Any]


def _filter(**settings: Any) -> Settings:
    return {"filter": {"mine": settings}}


def _char_filter(**settings: Any) -> Settings:
    return {"char_filter": {"mine": settings}}


def _tokenizer(**settings: Any) -> Settings:
    return {"tokenizer": {"mine": settings}}


def _pattern(pattern: str, **settings: Any) -> Settings:
    return _char_filter(type="pattern_replace", pattern=pattern, **settings)


def _analyzer(**settings: Any) -> Settings:
    return {"analyzer": {"mine": settings}}


def _synonym(**settings: Any) -> Settings:
    return {
        **_filter(type="synonym", **settings),
        "analyzer": {"with": {"tokenizer": "standard", "filter": ["mine"]}},
    }


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (_filter(type="hunspell"), "the filter type hunspell of `mine`"),
        (_filter(type="stemmer", language="light_english"), "the language light_english of filter `mine`"),
        (_filter(type="stemmer", language="finnish"), "the language finnish"),
        (_filter(type="snowball", language="Kp"), "the language Kp"),
        (_filter(type="snowball", language="DANISH"), "the language DANISH"),
        (_filter(type="lowercase", language="turkish"), "`language` of filter `mine`"),
        (_filter(type="elision", articles_path="words.txt"), "`articles_path`"),
        (_filter(type="keep", keep_words_path="words.txt"), "`keep_words_path`"),
        (_tokenizer(type="ngram", token_chars=["titlecase_letter"]), "'titlecase_letter' in `token_chars`"),
        (_tokenizer(type="char_group", tokenize_on_chars=["\\u00e9"]), "in `tokenize_on_chars`"),
        (
            _tokenizer(type="ngram", token_chars=["custom"], custom_token_chars="a😀"),
            "`custom_token_chars` 'a😀'",
        ),
        (_filter(type="stop", stopwords_path="words.txt"), "`stopwords_path`"),
        (_filter(type="stop", stopwords="_finnish_"), "the stop words _finnish_"),
        (_filter(type="stop", remove_trailing=False), "`remove_trailing` false"),
        (_filter(type="unique", surprise=1), "`surprise` of filter `mine`"),
        (_filter(type="edge_ngram", side="back"), "`side`"),
        (_filter(type="stemmer_override", rules_path="rules.txt"), "`rules_path`"),
        (_filter(type="keyword_marker", keywords_path="words.txt"), "`keywords_path`"),
        (_filter(type="word_delimiter", type_table_path="types.txt"), "`type_table_path`"),
        (_filter(type="word_delimiter_graph", protected_words_path="words.txt"), "`protected_words_path`"),
        (_synonym(synonyms_path="synonyms.txt"), "`synonyms_path`"),
        (_synonym(synonyms=[], format="wordnet"), "`format` wordnet"),
        (_char_filter(type="mapping", mappings_path="rules.txt"), "`mappings_path`"),
        (_char_filter(type="html_strip", read_ahead=1), "`read_ahead` of char_filter `mine`"),
        (_char_filter(type="icu_normalizer"), "the char_filter type icu_normalizer"),
        (_tokenizer(type="thai"), "the tokenizer type thai"),
        (_filter(type="phonetic", encoder="soundex"), "the filter type phonetic"),
        (_filter(type="common_grams", common_words_path="words.txt"), "`common_words_path`"),
        (
            {"analyzer": {"mine": {"tokenizer": "standard", "filter": ["shingle", "cjk_bigram"]}}},
            "the filter `cjk_bigram` after the filter `shingle`",
        ),
        (_tokenizer(type="simple_pattern", pattern="a|b"), "the pattern 'a|b'"),
        (_tokenizer(type="standard", unknown=1), "`unknown` of tokenizer `mine`"),
        (_analyzer(type="finnish"), "the analyzer `mine` of type finnish"),
        (_analyzer(type="english", stem_exclusion_path="x"), "`stem_exclusion_path`"),
        (_analyzer(tokenizer="standard", extra=1), "`extra` of analyzer `mine`"),
        ({"normalisers": {}}, "the section `normalisers`"),
        (_pattern("a", flags="COMMENTS"), "flag COMMENTS"),
        (_pattern("a", flags="UNICODE_CASE|DOTALL"), "flag UNICODE_CASE"),
        (_pattern("a(?i)b"), "the inline flag (?i)"),
        (_pattern("[a-z&&[^b]]"), "&& in a class"),
        (_pattern("[a[b]]"), "a class inside a class"),
        (_pattern(r"\X"), r"\X"),
        (_pattern(r"\R"), r"\R"),
        (_pattern(r"\p{IsLatin}"), r"\p{IsLatin}"),
        (_pattern(r"\p{Lu}", flags="CASE_INSENSITIVE"), r"\p{Lu}"),
        (_pattern("(?<=a|bc)d"), "a look-behind of variable length"),
        (_pattern(r"(?<=\x{1F600})a"), "an escaped character above U+FFFF in a look-behind"),
        (_pattern(r"(?<![b\x{01F600}])a"), "an escaped character above U+FFFF in a look-behind"),
        (_pattern("(a|(b))+", replacement="$2"), "a group inside a repeated, atomic or negative group"),
    ],
)
def test_the_error_names_a_piece_that_only_elasticsearch_supports(settings: Settings, name: str) -> None:
    with pytest.raises(NotSupported) as error:
        AnalysisRegistry(settings)
    message = str(error.value)
    assert name in message
    assert "the embedded engine does not support " in message
    assert message.endswith("; Elasticsearch does")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (_filter(type="length", min=3, max=1), "`min` 3 must be at least 0 and at most `max` 1"),
        (_filter(type="length", min="x"), "`min` must be an integer, not 'x'"),
        (_filter(type="unique", only_on_same_position="maybe"), "must be true or false"),
        (_filter(type="shingle", min_shingle_size=3), "shingle sizes"),
        (_filter(type="shingle", max_shingle_size=9), "index.max_shingle_diff"),
        (_filter(type="ngram", min_gram=1, max_gram=5), "index.max_ngram_diff"),
        (_tokenizer(type="ngram", max_gram=5), "index.max_ngram_diff"),
        (_filter(type="elision"), "`articles` is missing"),
        (_filter(type="keep"), "`keep_words` is missing"),
        (_filter(type="stemmer_override", rules=["a -> b"]), "'a -> b'"),
        (_filter(type="keyword_marker"), "`keywords` is missing"),
        (_filter(type="truncate", length=0), "must be positive"),
        (_tokenizer(type="path_hierarchy", delimiter="ab"), "`delimiter` must be one character, not 'ab'"),
        (_tokenizer(type="path_hierarchy", skip=-1), "`skip` must not be negative"),
        (_filter(type="word_delimiter", type_table=["a => DIGITS"]), "not of the form: character => LOWER"),
        (_filter(type="word_delimiter", type_table=["ab => DIGIT"]), "'ab => DIGIT' is not of the form"),
        (_filter(type="word_delimiter", type_table=["a"]), "the rule 'a' has no =>"),
        (_filter(), "`type` is missing"),
        (_synonym(synonyms=["a => b => c"]), "more than one =>"),
        (_synonym(synonyms=["!!! => c"]), "the synonym '!!!' loses words"),
        (_char_filter(type="mapping", mappings=["a -> b"]), "has no =>"),
        (_char_filter(type="mapping", mappings=["a => b", "a => c"]), "two rules replace 'a'"),
        (_char_filter(type="mapping", mappings=[" => b"]), "has nothing to replace"),
        (_char_filter(type="mapping", mappings=["\\u12 => b"]), "not complete"),
        (_pattern("(a", replacement="x"), ""),
        (_pattern("a", replacement="$1"), "refers to a missing group"),
        (_pattern("a", replacement="x\\"), "which Java rejects at a match"),
        (_pattern("a{"), "nothing to repeat"),
        (_pattern("*a"), "nothing to repeat"),
        (_pattern("a)"), "an unmatched )"),
        (_pattern("[a"), "a class without ]"),
        (_pattern("a", flags="LOUD"), "unknown flag LOUD"),
        (_tokenizer(type="pattern", pattern="a", group=1), "`group` is 1"),
        (_tokenizer(type="standard", max_token_length=0), "from 1 to 1048576"),
        (_analyzer(filter=["lowercase"]), "`tokenizer` is missing"),
        (_analyzer(tokenizer="standard", position_increment_gap=-1), "a negative `position_increment_gap`"),
        ({"analyzer": ["standard"]}, "must be an object of objects"),
    ],
)
def test_invalid_settings_are_rejected_with_a_reason(settings: Settings, message: str) -> None:
    with pytest.raises((BadSettings, NotSupported)) as error:
        AnalysisRegistry(settings)
    assert message in str(error.value)


def test_the_sizes_of_grams_are_limited_by_settings_of_the_index() -> None:
    settings = {**_filter(type="ngram", max_gram=9), **_tokenizer(type="ngram", max_gram=9)}
    AnalysisRegistry(settings, {"max_ngram_diff": 8})
    with pytest.raises(BadSettings, match=r"differ by more than 7 \(index.max_ngram_diff\)"):
        AnalysisRegistry(settings, {"max_ngram_diff": 7})


def test_an_unknown_analyzer_is_rejected_when_it_is_used() -> None:
    with pytest.raises(
        Undefined, match="unknown analyzer `hebrew`: define it under `settings.analysis.analyzer`"
    ):
        AnalysisRegistry({}).analyzer("hebrew")
    with pytest.raises(Undefined, match=r"unknown analyzer `englsh` \(did you mean english\?\)"):
        AnalysisRegistry({}).analyzer("englsh")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            _analyzer(tokenizer="standard", filter=["phonetic"]),
            "unknown filter `phonetic`: define",
        ),
        (_analyzer(tokenizer="thai"), "unknown tokenizer `thai`: define"),
        (_analyzer(tokenizer="standard", filter=["lowrcase"]), "(did you mean lowercase?)"),
    ],
)
def test_unknown_names_are_not_reported_as_features_of_elasticsearch(
    settings: Settings, message: str
) -> None:
    with pytest.raises(Undefined) as error:
        AnalysisRegistry(settings)
    assert message in str(error.value) and str(error.value).endswith("use Elasticsearch if it defines it")


def test_all_problems_are_reported_with_their_paths() -> None:
    settings = {
        "filter": {"stems": {"type": "stemmer", "language": "english", "a": 1, "b": 2}, "long": {}},
        "tokenizer": {"mine": {"type": "thai"}},
        "analyzer": {
            "broken": {"tokenizer": "standard", "filter": ["stems"]},
            "other": {"tokenizer": "mine", "filter": ["lowercase", "x", "y"]},
        },
    }
    with pytest.raises(NotSupported) as error:
        AnalysisRegistry(settings)
    paths = [line.partition(": ")[0] for line in error.value.lines]
    assert [path.removeprefix("settings.analysis.") for path in paths] == [
        "tokenizer.mine",
        "filter.stems",
        "filter.long",
        "analyzer.other.filter[1]",
        "analyzer.other.filter[2]",
    ]
    assert "`a` and `b` of filter `stems`" in str(error.value)


def test_a_repeatedly_rejected_pattern_is_reported_with_the_name_of_each_setting() -> None:
    for name in ("one", "other"):
        settings = {"char_filter": {name: {"type": "pattern_replace", "pattern": "a{2}+(?u)"}}}
        with pytest.raises(NotSupported, match=f"char_filter `{name}`"):
            AnalysisRegistry(settings)


def test_patterns_with_different_flags_are_different_patterns() -> None:
    def replace(**flags: str) -> str:
        own = {"type": "pattern_replace", "pattern": "A.", "replacement": "-", **flags}
        analyzer = {"mine": {"tokenizer": "keyword", "char_filter": ["own"]}}
        registry = AnalysisRegistry({"char_filter": {"own": own}, "analyzer": analyzer})
        return registry.analyzer("mine").terms("abA.A-")[0][0]

    case = replace(flags="CASE_INSENSITIVE")
    literal = replace(flags="LITERAL")
    assert (replace(), case, literal) == ("ab--", "---", "ab-A-")
