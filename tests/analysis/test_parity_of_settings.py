"""Random settings on random texts, against a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, note, reject, settings
from hypothesis import strategies as st

from searchapp.analysis import AnalysisRegistry, NotSupported
from searchapp.analysis.registry import TOKEN_FILTERS, TOKENIZERS
from tests.analysis.parity import InlineOracle, built_analyzer
from tests.analysis.strategies import (
    ESCAPED_TAGS,
    HTML,
    MAY_BE_EMPTY,
    SYNONYM_TEXTS,
    SYNONYMS,
    TEXTS,
    Settings,
    analyzers,
)
from tests.server.rest import Server

MOST_TOKENS = 10_000
"""What `_analyze` gives at most where no index says otherwise; n-grams of long shingles are more."""
LISTS_OF_TEXTS = st.lists(TEXTS, min_size=1, max_size=8)
AFTER_HTML: list[Settings] = [
    {"type": "html_strip"},
    {"type": "mapping", "mappings": ["word => longer", "\\n => "]},
    {"type": "pattern_replace", "pattern": "x", "replacement": ""},
]
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def oracle(elasticsearch_url: str) -> Iterator[InlineOracle]:
    with InlineOracle(Server(elasticsearch_url)) as oracle:
        yield oracle


@settings(suppress_health_check=SLOW)
@given(analyzer=analyzers(), texts=LISTS_OF_TEXTS)
def test_random_analyzers_give_what_the_server_gives(
    oracle: InlineOracle, analyzer: Settings, texts: list[str]
) -> None:
    try:
        built_analyzer(analyzer)
    except NotSupported:
        reject()  # a property beside CASE_INSENSITIVE, say
    texts = _splittable(analyzer, texts)
    note(f"{analyzer} {texts}")
    tokens = oracle.ours(analyzer, texts)
    assume(len(tokens) <= MOST_TOKENS)
    assert tokens == oracle.servers(analyzer, texts)


@settings(suppress_health_check=SLOW)
@given(
    escaped=ESCAPED_TAGS,
    tokenizer=st.sampled_from(["keyword", "whitespace", "standard", "letter"]),
    after=st.lists(st.sampled_from(AFTER_HTML), max_size=1),
    texts=st.lists(HTML, min_size=1, max_size=50),
)
def test_random_html_is_stripped_as_the_server_strips_it(
    oracle: InlineOracle, escaped: list[str], tokenizer: str, after: list[Settings], texts: list[str]
) -> None:
    html_strip = {"type": "html_strip", "escaped_tags": escaped}
    analyzer = {"char_filter": [html_strip, *after], "tokenizer": {"type": tokenizer}, "filter": []}
    assert oracle.ours(analyzer, texts) == oracle.servers(analyzer, texts)


@settings(suppress_health_check=SLOW)
@given(
    rules=SYNONYMS,
    expand=st.booleans(),
    texts=st.lists(SYNONYM_TEXTS, min_size=1, max_size=8),
    stop=st.booleans(),
    after=st.sampled_from(
        [[], [], [{"type": "ngram"}], [{"type": "edge_ngram", "max_gram": 2}], [{"type": "unique"}]]
    ),
)
def test_random_synonyms_give_what_the_server_gives(
    oracle: InlineOracle, rules: list[str], expand: bool, texts: list[str], stop: bool, after: list[Settings]
) -> None:
    analyzer = {
        "char_filter": [],
        "tokenizer": {"type": "whitespace"},
        "filter": [
            *([{"type": "stop", "stopwords": ["is", "can't"]}] if stop else []),
            {"type": "synonym", "synonyms": rules, "expand": expand},
            {"type": "stop", "stopwords": ["red"]},
            *after,
        ],
    }
    assert oracle.ours(analyzer, texts) == oracle.servers(analyzer, texts)
    ours = built_analyzer(analyzer)
    for text in texts[:2]:
        lengths = ours.stream(text).lengths or [1] * len(ours.terms(text))
        assert lengths == oracle.lengths(analyzer, text)


@settings(suppress_health_check=SLOW)
@given(
    name=st.sampled_from(["standard", "simple", "whitespace", "keyword", "stop", "english"]),
    texts=LISTS_OF_TEXTS,
)
def test_built_in_analyzers_give_what_the_server_gives(
    oracle: InlineOracle, name: str, texts: list[str]
) -> None:
    assert oracle.ours(name, texts) == oracle.servers(name, texts)


def test_html_strip_by_name_is_the_servers(oracle: InlineOracle) -> None:
    definition = {"tokenizer": "standard", "char_filter": ["html_strip"]}
    text = "<p>The <b>ru</b>nning &amp; f&ouml;xes<br>a &lt;b&gt;</p>"
    analyzer = AnalysisRegistry({"analyzer": {"it": definition}}).analyzer("it")
    assert analyzer.tokens(text) == oracle.servers(definition, [text])


NEEDS_SETTINGS = {"keyword_marker", "pattern_replace", "stemmer_override", "simple_pattern"}


@pytest.mark.parametrize("name", sorted({*TOKENIZERS, *TOKEN_FILTERS} - NEEDS_SETTINGS))
def test_pieces_that_go_by_the_name_of_their_type_have_the_servers_defaults(
    oracle: InlineOracle, name: str
) -> None:
    definition = {"tokenizer": name} if name in TOKENIZERS else {"tokenizer": "standard", "filter": [name]}
    text = "The running foxes' a 12 abcdefghijklmno \\frac É The"
    analyzer = AnalysisRegistry({"analyzer": {"it": definition}}).analyzer("it")
    assert analyzer.tokens(text) == oracle.servers(definition, [text])


@pytest.mark.parametrize("type_", sorted(TOKEN_FILTERS.keys() - NEEDS_SETTINGS - {"truncate"}))
def test_defined_filters_without_settings_have_the_servers_defaults(oracle: InlineOracle, type_: str) -> None:
    analyzer = {"char_filter": [], "tokenizer": {"type": "whitespace"}, "filter": [{"type": type_}]}
    texts = ["The running foxes' a 12 abcdefghijklmno \\frac É The"]
    assert oracle.ours(analyzer, texts) == oracle.servers(analyzer, texts)


def _splittable(analyzer: Settings, texts: list[str]) -> list[str]:
    """Without emoji where a pattern may match nothing: Java then looks for it between their two halves."""
    pieces = [*analyzer["char_filter"], analyzer["tokenizer"], *analyzer["filter"]]
    if any(piece.get("pattern") in MAY_BE_EMPTY for piece in pieces):
        return ["".join(char for char in text if char <= "\uffff") for text in texts]
    return texts
