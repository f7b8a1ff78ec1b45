"""Terms, positions, offsets and steps of analyzers."""

from __future__ import annotations

import pytest

from searchapp.lucene.analysis import AnalysisRegistry, tokenizers
from searchapp.lucene.analysis.characters import parse_ranges, read_table
from searchapp.model import AnalysisStep, Token

SETTINGS = {
    "char_filter": {"quotes": {"type": "mapping", "mappings": ["’ => '"]}},
    "filter": {"possessives": {"type": "stemmer", "language": "possessive_english"}},
    "analyzer": {
        "mine": {
            "char_filter": "quotes",
            "tokenizer": "standard",
            "filter": ["lowercase", "possessives"],
            "position_increment_gap": "7",
        }
    },
}


def test_terms_have_positions() -> None:
    assert AnalysisRegistry({}).analyzer("english").terms("The running foxes") == [("run", 1), ("fox", 2)]


def test_offsets_count_utf16_code_units() -> None:
    assert AnalysisRegistry({}).analyzer("standard").tokens("😀 a") == [
        Token("😀", 0, 0, 2),
        Token("a", 1, 3, 4),
    ]


def test_a_custom_analyzer_has_a_step_for_each_piece() -> None:
    assert AnalysisRegistry(SETTINGS).analyzer("mine").steps("Dog’s") == [
        AnalysisStep("char_filter", "quotes", text="Dog's"),
        AnalysisStep("tokenizer", "standard", tokens=(Token("Dog's", 0, 0, 5),)),
        AnalysisStep("filter", "lowercase", tokens=(Token("dog's", 0, 0, 5),)),
        AnalysisStep("filter", "possessives", tokens=(Token("dog", 0, 0, 5),)),
    ]


def test_a_built_in_analyzer_has_one_step() -> None:
    assert AnalysisRegistry({}).analyzer("simple").steps("A") == [
        AnalysisStep("analyzer", "simple", tokens=(Token("a", 0, 0, 1),))
    ]


def test_filters_of_characters_normalize_a_text_and_others_leave_it() -> None:
    assert AnalysisRegistry(SETTINGS).analyzer("mine").normalized("The DOG’s") == "the dog's"
    assert AnalysisRegistry({}).analyzer("english").normalized("The Foxes") == "the foxes"
    assert AnalysisRegistry({}).analyzer("keyword").normalized("É b") == "É b"
    folding = {"tokenizer": "standard", "filter": ["both", "unique", "porter_stem", "trim"]}
    settings = {
        "filter": {"both": {"type": "asciifolding", "preserve_original": True}},
        "analyzer": {"folding": folding},
    }
    assert AnalysisRegistry(settings).analyzer("folding").normalized(" Étés ") == "Etes"


def test_the_position_gap_is_set_by_the_analyzer_or_100() -> None:
    registry = AnalysisRegistry(SETTINGS)
    assert registry.analyzer("mine").position_increment_gap == 7
    assert registry.analyzer("standard").position_increment_gap == 100


def test_a_custom_analyzer_replaces_the_built_in_one_of_its_name() -> None:
    registry = AnalysisRegistry({"analyzer": {"standard": {"type": "keyword"}}})
    assert registry.analyzer("standard").terms("A b") == [("A b", 0)]


def test_built_in_analyzers_accept_settings() -> None:
    registry = AnalysisRegistry(
        {"analyzer": {"mine": {"type": "english", "stem_exclusion": ["foxes"], "stopwords": ["a"]}}}
    )
    assert registry.analyzer("mine").terms("a the foxes dogs") == [("the", 1), ("foxes", 2), ("dog", 3)]


def test_holes_after_the_last_token_are_counted() -> None:
    stream = AnalysisRegistry({}).analyzer("english").stream("foxes of the", offsets=True)
    assert (stream.trailing, stream.end_offset) == (2, 12)


@pytest.mark.parametrize("name", ["standard", "simple", "whitespace", "keyword", "stop", "english"])
def test_only_keyword_has_a_token_for_an_empty_text(name: str) -> None:
    assert AnalysisRegistry({}).analyzer(name).terms("") == ([("", 0)] if name == "keyword" else [])


def test_each_character_has_the_class_of_its_table() -> None:
    table = [
        (name, low, high)
        for name, ranges in read_table("word_break.txt")
        for low, high in parse_ranges(ranges)
    ]
    letters = tokenizers.STANDARD_RULES.classes.letters
    assert len(set(letters.values())) == len(letters)
    for code in {edge + step for _name, low, high in table for edge in (low, high) for step in (-1, 0, 1)}:
        names = [name for name, low, high in table if low <= code <= high]
        assert len(names) <= 1  # so that one letter identifies the class
        expected = letters[names[0]] if names else tokenizers._ClassLetters.NONE
        assert tokenizers.STANDARD_RULES.classes[code] == expected
