"""Prefixes, patterns, ranges and similar words of `query_string` are changed as by each analyzer of a language."""

from __future__ import annotations

from collections.abc import Callable

from searchapp.lucene.analysis.registry import BUILT_IN
from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair

TEXTS = [
    "L'étude des maisons et l'eau au bord des quais",
    "Die Häuser und Bücher am Hafen, Straße und größte Straßen",
    "Dell'università e degl'insegnanti, l'amica d'oro",
    "Husene og bøkene ved havnen, böckerna vid hamnen",
    "De huizen en kinderen met fietsen aan de haven",
    "Дома и книги у гавани; Las casas y los niños; As casas e os livros",
    "hauser houses haus etude universita",
]
ANALYZERS = sorted(BUILT_IN)
MAPPING = {
    "mappings": {
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "fields": {name: {"type": "text", "analyzer": name} for name in ANALYZERS},
            },
        }
    }
}
WORDS = (
    "L'ÉTUD*", "HÄUS*", "haeus*", "h?us*", "Straß*", "dell'UNI*", "degl'*", "Bø*", "ДОМ*", "niñ*", "L'e?u",
    "hauser~", "L'étude~1", "Häuser~1", "kinderen~", "[l'a TO l'f]", "[Hä TO HZ]",
)  # fmt: skip


def test_words_are_normalized_as_by_the_analyzers_of_languages(make_pair: Callable[..., EnginePair]) -> None:
    engines = make_pair([Document(str(number), text) for number, text in enumerate(TEXTS)], MAPPING)
    for name in ANALYZERS:
        for word in WORDS:
            engines.require_same_hits({"query_string": {"query": word, "fields": [f"text.{name}"]}})
