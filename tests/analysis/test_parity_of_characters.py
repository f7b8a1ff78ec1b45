"""Each assigned code point alone, between letters and between digits, compared with a real Elasticsearch."""

from __future__ import annotations

import unicodedata

import pytest

from searchapp.lucene.analysis.characters import parse_ranges, read_table
from tests.analysis.parity import InlineOracle
from tests.profile import FULL, SEED
from tests.search.pieces import Settings

TEXTS_PER_REQUEST = 1000  # of at most 9 tokens each; the limit of Elasticsearch is 10,000

# All Java versions of Elasticsearch 9 treat the characters assigned in Python 3.11 alike.
CHARACTERS = [
    char
    for char in map(chr, [*range(0x20000), *range(0x20000, 0x110000, 0x400), *range(0xE0000, 0xE0200)])
    if unicodedata.category(char) not in ("Cs", "Cn", "Co")
]


STEP = 1 if FULL else 5
"""The short profile tests every fifth character."""


def edges() -> frozenset[str]:
    """Return the first and last characters of the ranges in the table of word breaks, and their neighbours.

    The short profile tests these with the tokenizer that uses the table, because wrong ranges differ at their ends.
    """
    ranges = [range_ for _name, values in read_table("word_break.txt") for range_ in parse_ranges(values)]
    codes = {code for first, last in ranges for code in (first - 1, first, last, last + 1)}
    return frozenset(chr(code) for code in codes if 0 <= code < 0x110000)


def characters_for(analyzer: Settings) -> list[str]:
    """Return the characters to test with an analyzer."""
    further = edges() if analyzer["tokenizer"]["type"] == "standard" else frozenset()
    return [char for number, char in enumerate(CHARACTERS) if number % STEP == SEED % STEP or char in further]


def _analyzer(tokenizer: str, *filters: str, char_filter: str = "") -> Settings:
    return {
        "char_filter": [{"type": char_filter}] if char_filter else [],
        "tokenizer": {"type": tokenizer},
        "filter": [{"type": filter_} for filter_ in filters],
    }


def require_same_tokens(oracle: InlineOracle, analyzer: Settings, texts: list[str]) -> None:
    for start in range(0, len(texts), TEXTS_PER_REQUEST):
        batch = texts[start : start + TEXTS_PER_REQUEST]
        if oracle.ours(analyzer, batch) != oracle.servers(analyzer, batch):
            assert [
                text for text in batch if oracle.ours(analyzer, [text]) != oracle.servers(analyzer, [text])
            ] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "analyzer",
    [
        _analyzer("standard"),
        _analyzer("letter"),
        _analyzer("lowercase"),
        _analyzer("whitespace"),
        _analyzer("keyword", "trim"),
        _analyzer("keyword", "lowercase"),
        _analyzer("keyword", "asciifolding"),
    ],
    ids=lambda analyzer: "-".join([analyzer["tokenizer"]["type"], *(f["type"] for f in analyzer["filter"])]),
)
def test_each_character_has_the_tokens_of_the_server(oracle: InlineOracle, analyzer: Settings) -> None:
    texts = [f"{char} a{char}b 1{char}2 a{char}" for char in characters_for(analyzer)]
    require_same_tokens(oracle, analyzer, texts)


@pytest.mark.timeout(600)
def test_each_character_in_a_tag_has_the_tokens_of_the_server(oracle: InlineOracle) -> None:
    analyzer = _analyzer("keyword", char_filter="html_strip")
    texts = [
        f"<{char}>|</b{char}>|<b {char}x='<'>|<b x{char}='<'>|&#55{char}96;&#xDE00;"
        for char in characters_for(analyzer)
    ]
    require_same_tokens(oracle, analyzer, texts)
