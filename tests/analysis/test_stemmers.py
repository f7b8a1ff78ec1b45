"""Stemmers and analyzers of languages give the terms of Lucene's."""

from __future__ import annotations

import random
from typing import Any

import pytest

from searchapp.lucene.analysis import AnalysisRegistry
from tests.analysis.parity import InlineOracle
from tests.search.pieces import LANGUAGES, STEMMERS

STEMS = {
    "danish": "hundene:hund løst:løst rigst:rig venligheden:ven kattens:kat oplyst:oplyst ledigt:led",
    "dutch": "lopende:lopend gemeen:gemen kinderen:kinder mogelijkheden:mogelijk eieren:eier voedingen:voeding",
    "french": "continuellement:continuel majestueusement:majestu naïves:naïv élection:élect confusément:confus "
    "nationaliser:nationalis chevaux:cheval fiançailles:fiançaill ybyyïive:ybyyï",
    "german": "häuser:haus aufeinander:aufeinand systems:system fuß:fuss trauer:trau ereignisse:ereignis quelle:quell",
    "italian": "abbandonata:abbandon divano:divan mangiandogli:mang perché:perc amichevolmente:amichevol",
    "norwegian": "havnedistriktene:havnedistrikt hetslov:het bygdens:bygd lovlig:lov dyktigste:dyktigst erte:ert",
    "portuguese": "quilométricas:quilométr ações:açõ amável:amável cantaríamos:cant canções:cançõ inocência:inocent",
    "russian": "важнейшие:важн ёлками:елк бывшись:бывш читающего:чита новостью:новост прекраснейшей:прекрасн",
    "spanish": "cheques:chequ tomándoselo:tom rápidamente:rapid averigüé:averigü nación:nacion contribuyendo:contribu",
    "swedish": "jaktkarlarne:jaktkarl löst:löst friskt:frisk kvinnornas:kvinn fullt:fullt klostergården:klostergård",
}
"""Words and their stems by the Snowball stemmers of Lucene 10.4."""


def terms(text: str, *filters: Any, name: str = "words") -> list[str]:
    """Return the terms of a custom analyzer, or of a built-in one."""
    definitions = {f"filter{number}": piece for number, piece in enumerate(filters)}
    words = {"tokenizer": "whitespace", "filter": [*definitions]}
    registry = AnalysisRegistry({"filter": definitions, "analyzer": {"words": words}})
    return [term for term, _position in registry.analyzer(name).terms(text)]


@pytest.mark.parametrize("language", sorted(STEMS))
def test_snowball_stems(language: str) -> None:
    words, stems = zip(*(pair.split(":") for pair in STEMS[language].split()), strict=True)
    for filter_ in (
        {"type": "snowball", "language": language.capitalize()},
        {"type": "stemmer", "language": language},
    ):
        assert terms(" ".join(words), filter_) == list(stems)


def test_analyzers_of_languages_elide_normalize_and_stem() -> None:
    assert terms("L'Île des chevaux", name="french") == ["île", "cheval"]
    assert terms("Die Haeuser der Straßen", name="german") == ["haus", "strass"]
    assert terms("dell'Acquedotto e gli amicizie", name="italian") == ["acquedott", "amiciz"]
    assert terms("De fietsen en het ei", name="dutch") == ["fiets", "eier"]


def test_keywords_and_stop_words_of_languages() -> None:
    marker = {"type": "keyword_marker", "keywords": ["häuser"]}
    assert terms("häuser häuser's", marker, {"type": "stemmer", "language": "light_german"}) == [
        "häuser",
        "hauser's",
    ]
    assert terms("und oder x", {"type": "stop", "stopwords": ["_german_", "x"]}) == []
    settings = {"type": "german", "stopwords": ["haus"], "stem_exclusion": ["straßen"]}
    analyzer = AnalysisRegistry({"analyzer": {"mine": settings}}).analyzer("mine")
    assert [term for term, _position in analyzer.terms("Das Haus der Straßen")] == ["das", "der", "strassen"]


@pytest.mark.elasticsearch
@pytest.mark.parametrize("language", [*LANGUAGES, *STEMMERS[len(LANGUAGES) :]])
def test_random_words_have_the_stems_of_the_server(oracle: InlineOracle, language: str) -> None:
    chooser = random.Random(language)
    known = " ".join(pair.split(":")[0] for pairs in STEMS.values() for pair in pairs.split())
    endings = [word[-size:] for word in known.split() for size in (1, 2, 3, 4, 5)]
    words = ["".join(chooser.choices(endings, k=chooser.randint(1, 4))) for _ in range(500)]
    filters = [{"type": "lowercase"}, {"type": "stemmer", "language": language}]
    definition = {"char_filter": [], "tokenizer": {"type": "whitespace"}, "filter": filters}
    for analyzer in (definition, language) if language in LANGUAGES else (definition,):
        assert oracle.ours(analyzer, [" ".join(words)]) == oracle.servers(analyzer, [" ".join(words)])
