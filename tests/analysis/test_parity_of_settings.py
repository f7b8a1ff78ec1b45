"""Random settings on random texts, compared with a real Elasticsearch."""

from __future__ import annotations

from contextlib import suppress

import pytest

from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.analysis.registry import TOKEN_FILTERS, TOKENIZERS
from tests.analysis.parity import InlineOracle
from tests.profile import FULL, SEED
from tests.scheduling import OLDER
from tests.search import analyzers
from tests.server.rest import Server


def test_random_analyzers_give_the_tokens_of_the_server(
    compared_url: str, request: pytest.FixtureRequest
) -> None:
    is_older = OLDER in request.node.name
    number = 20_000 if FULL else 100 if is_older else 300
    compared = 0
    with InlineOracle(Server(compared_url)) as oracle:
        for case in analyzers.cases(SEED, number):
            with suppress(analyzers.NotCompared):
                assert analyzers.difference(oracle, case) is None, case
                compared += 1
    assert compared > (0.8 if is_older else 0.98) * number  # pieces of 8.19 differ more


def test_html_strip_without_settings_gives_the_tokens_of_the_server(oracle: InlineOracle) -> None:
    definition = {"tokenizer": "standard", "char_filter": ["html_strip"]}
    text = "<p>The <b>ru</b>nning &amp; f&ouml;xes<br>a &lt;b&gt;</p>"
    analyzer = AnalysisRegistry({"analyzer": {"it": definition}}).analyzer("it")
    assert analyzer.tokens(text) == oracle.servers(definition, [text])


NEEDS_SETTINGS = {
    *("char_group", "keep", "keyword_marker", "pattern_replace", "stemmer_override", "simple_pattern"),
    *("dictionary_decompounder", "keep_types", "pattern_capture"),
}


@pytest.mark.parametrize("name", sorted({*TOKENIZERS, *TOKEN_FILTERS} - NEEDS_SETTINGS))
def test_pieces_named_by_their_type_have_the_defaults_of_the_server(oracle: InlineOracle, name: str) -> None:
    definition = {"tokenizer": name} if name in TOKENIZERS else {"tokenizer": "standard", "filter": [name]}
    text = "The running foxes' a 12 abcdefghijklmno \\frac É The"
    analyzer = AnalysisRegistry({"analyzer": {"it": definition}}).analyzer("it")
    assert analyzer.tokens(text) == oracle.servers(definition, [text])


@pytest.mark.parametrize(
    "type_", sorted(TOKEN_FILTERS.keys() - NEEDS_SETTINGS - {"common_grams", "elision", "truncate"})
)
def test_defined_filters_without_settings_have_the_defaults_of_the_server(
    oracle: InlineOracle, type_: str
) -> None:
    analyzer = {"char_filter": [], "tokenizer": {"type": "whitespace"}, "filter": [{"type": type_}]}
    texts = ["The running foxes' a 12 abcdefghijklmno \\frac É The"]
    assert oracle.ours(analyzer, texts) == oracle.servers(analyzer, texts)
