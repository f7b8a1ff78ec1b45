"""Both engines make the same suggestions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from searchapp.errors import EngineRefused
from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair, body
from tests.search.drawing import Draw

WORDS = [
    "river",
    "driver",
    "rivets",
    "cover",
    "water",
    "étude",
    "𝐀bcde",
    "fish",
    "banana",
    "hello",
    "xyz",
    "x",
]
LETTERS = "aeirstx𝐀é"

MAPPING = {
    "mappings": {
        "properties": {
            "id": {"type": "keyword"},
            "text": {"type": "text", "analyzer": "whitespace"},
            "title": {"type": "text", "analyzer": "english"},
            "tag": {"type": "keyword"},
        }
    }
}

Json = dict[str, Any]


def misspelled(draw: Draw) -> str:
    letters = [*draw.choice(WORDS)]
    for _ in range(draw.number(0, 3)):
        place = draw.number(0, len(letters))
        letters[place : place + draw.number(0, 1)] = [draw.choice(LETTERS)] if draw.chance(0.7) else []
    return "".join(letters)


def misspelled_text(draw: Draw, maximum: int = 6) -> str:
    return " ".join(draw.several(lambda: misspelled(draw), maximum, 1))


def suggestion(draw: Draw) -> Json:
    options = {
        "suggest_mode": lambda: draw.choice(["missing", "popular", "always", "ALWAYS"]),
        "sort": lambda: draw.choice(["score", "frequency"]),
        "string_distance": lambda: draw.choice(
            ["internal", "levenshtein", "damerau_levenshtein", "jaro_winkler", "ngram"]
        ),
        "accuracy": lambda: draw.choice([0, 0.3, 0.7, "0.6", 1, 2]),
        "max_edits": lambda: draw.choice([1, 2, "2", 3]),
        "max_inspections": lambda: draw.choice([1, 2, 10]),
        "max_term_freq": lambda: draw.choice([0, 0.05, 0.5, 1, 3, 30, 1.5]),
        "prefix_length": lambda: draw.choice([0, 1, 2, 4]),
        "min_word_length": lambda: draw.choice([1, 2, 4, 6, 0]),
        "min_doc_freq": lambda: draw.choice([0, 1, 3, 0.02, 0.1]),
        "size": lambda: draw.choice([1, 2, 20, 0]),
        "shard_size": lambda: draw.choice([1, 3, 10]),
        "analyzer": lambda: "standard",
    }
    field = draw.choice(["text", "title", "tag", "nowhere"] if draw.chance(0.1) else ["text", "title", "tag"])
    text = {"text": misspelled_text(draw)} if draw.chance(0.8) else {}
    return {**text, "term": {"field": field, **draw.some_of(options, 0.3)}}


def outcome(index: Any, request: Json) -> Any:
    try:
        return index.answer(request)["suggest"]
    except EngineRefused:
        return "rejected"


def test_random_suggestions_are_those_of_the_server(make_pair: Callable[..., EnginePair]) -> None:
    draw = Draw("suggest")
    engines = make_pair(
        [
            Document(
                str(number), misspelled_text(draw), {"title": misspelled_text(draw), "tag": misspelled(draw)}
            )
            for number in range(100)
        ],
        MAPPING,
    )
    answered = 0
    for _ in range(150):
        suggestions: Json = {"text": misspelled_text(draw)} if draw.chance(0.7) else {}
        suggestions |= {f"s{number}": suggestion(draw) for number in range(draw.number(1, 3))}
        request = body({"match_all": {}}, 0, suggest=suggestions)
        ours, theirs = outcome(engines.embedded, request), outcome(engines.server, request)
        assert ours == theirs, suggestions
        answered += ours != "rejected"
    assert answered > 50


@pytest.mark.parametrize("kind", ["phrase", "completion"])
def test_other_suggesters_are_rejected(make_pair: Callable[..., EnginePair], kind: str) -> None:
    engines = make_pair([Document("1", "a")])
    with pytest.raises(EngineRefused, match=f"the suggester `{kind}`"):
        engines.embedded.answer(
            body({"match_all": {}}, suggest={"s": {"text": "a", kind: {"field": "text"}}})
        )
