"""Each assigned code point by itself, between letters and between digits, against a real Elasticsearch."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest

from searchapp.lucene.analysis.characters import parse_ranges, read_table
from tests.analysis.parity import InlineOracle
from tests.profile import FULL, SEED
from tests.search.pieces import Settings
from tests.server.rest import Server

TEXTS_PER_REQUEST = 1000  # of at most 9 tokens: Elasticsearch's limit is 10,000

# What Python 3.11 knows is assigned means the same to all Java versions that run Elasticsearch 9.
CHARACTERS = [
    char
    for char in map(chr, [*range(0x20000), *range(0x20000, 0x110000, 0x400), *range(0xE0000, 0xE0200)])
    if unicodedata.category(char) not in ("Cs", "Cn", "Co")
]


EVERY = 1 if FULL else 5
"""Every how many characters an analyzer sees one."""


def edges() -> frozenset[str]:
    """The first and last characters of the ranges in our own table of words, and their neighbours outside.

    The short profile has these seen too by the tokenizer that reads the table: where ranges differ from the server's,
    they differ there.
    """
    ranges = [range_ for _name, values in read_table("word_break.txt") for range_ in parse_ranges(values)]
    found = {code for first, last in ranges for code in (first - 1, first, last, last + 1)}
    return frozenset(chr(code) for code in found if 0 <= code < 0x110000)


def seen_by(analyzer: Settings) -> list[str]:
    """The characters that an analyzer sees."""
    further = edges() if analyzer["tokenizer"]["type"] == "standard" else frozenset()
    return [char for place, char in enumerate(CHARACTERS) if place % EVERY == SEED % EVERY or char in further]


def _analyzer(tokenizer: str, *filters: str, char_filter: str = "") -> Settings:
    return {
        "char_filter": [{"type": char_filter}] if char_filter else [],
        "tokenizer": {"type": tokenizer},
        "filter": [{"type": filter_} for filter_ in filters],
    }


@pytest.fixture(scope="module")
def oracle(elasticsearch_url: str) -> Iterator[InlineOracle]:
    with InlineOracle(Server(elasticsearch_url)) as oracle:
        yield oracle


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
def test_each_character_is_treated_as_the_server_treats_it(oracle: InlineOracle, analyzer: Settings) -> None:
    texts = [f"{char} a{char}b 1{char}2 a{char}" for char in seen_by(analyzer)]
    for start in range(0, len(texts), TEXTS_PER_REQUEST):
        batch = texts[start : start + TEXTS_PER_REQUEST]
        if oracle.ours(analyzer, batch) != oracle.servers(analyzer, batch):
            assert [
                text for text in batch if oracle.ours(analyzer, [text]) != oracle.servers(analyzer, [text])
            ] == []


@pytest.mark.timeout(600)
def test_each_character_in_a_tag_is_treated_as_the_server_treats_it(oracle: InlineOracle) -> None:
    analyzer = _analyzer("keyword", char_filter="html_strip")
    texts = [
        f"<{char}>|</b{char}>|<b {char}x='<'>|<b x{char}='<'>|&#55{char}96;&#xDE00;"
        for char in seen_by(analyzer)
    ]
    for start in range(0, len(texts), TEXTS_PER_REQUEST):
        batch = texts[start : start + TEXTS_PER_REQUEST]
        if oracle.ours(analyzer, batch) != oracle.servers(analyzer, batch):
            assert [
                text for text in batch if oracle.ours(analyzer, [text]) != oracle.servers(analyzer, [text])
            ] == []
