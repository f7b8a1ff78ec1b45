"""A pattern that takes too long on a text is rejected and never returns a part of its matches."""

from __future__ import annotations

import copy
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import DataError
from searchapp.lucene.analysis import java_pattern
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.errors import PatternTimeout
from searchapp.model import Document
from tests.engines.embedded.conftest import MAPPING, body

SLOW = "(a|aa)+$"
TEXT = "a" * 60 + "b"


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time limit of patterns."""
    monkeypatch.setattr(java_pattern, "SECONDS", 0.05)


def pattern(source: str) -> Any:
    return compile_java(Options("p", {"pattern": source}))


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("text", [TEXT, f"e\u0301 {TEXT}"], ids=["plain", "combining mark"])
def test_a_search_that_takes_too_long_is_rejected(text: str) -> None:
    slow = pattern(rf"(?:\b|x){SLOW}")
    searches = (
        lambda: list(slow.find(text)),
        lambda: slow.substitute("", text),
        lambda: slow.substitution("")(text),
        lambda: slow.find_texts(text, 0),
        lambda: slow.matches(TEXT),
    )
    for search in searches:
        with pytest.raises(PatternTimeout, match=r"takes longer than 0.05 s on a text of \d+ characters"):
            search()


@pytest.mark.parametrize(
    ("source", "longest"),
    [
        ("(a+)+$", 0),
        ("(?:a{1,2}){30}", 0),
        ("(a|b)*c", 0),
        ("a*a*a*b", 0),
        ("a?" * 20, 0),
        (r"\s+(?:x|y+)$", 2_000),
        (r"(?:a+|b+|c+)\.", 20_000),
        ("(?:a+)?b", 20_000),
        (r"^a*+(b++)c{2,3}\d?$", java_pattern.ALWAYS_SHORT),
    ],
)
def test_only_patterns_that_can_take_long_have_a_time_limit(source: str, longest: int) -> None:
    assert pattern(source)._longest == longest


@pytest.mark.parametrize("name", ["premises", "facts", "sentences", "questions", "relations", "types"])
def test_patterns_find_the_same_with_a_time_limit(name: str) -> None:
    random = Random(name)
    pieces = [*r"ab A1 \{}[]|$'é.,-=", "\\math", "{{eqn", "begin{x}", "the ", "'s", "12.5 cm", "\n"]
    texts = ["".join(random.choices(pieces, k=random.randrange(60))) for _ in range(200)]
    analysis = resources.index_mapping(name)["settings"]["analysis"]
    definitions = [
        item for kind in ("char_filter", "tokenizer", "filter") for item in analysis.get(kind, {}).items()
    ]
    patterns = [
        compile_java(Options(key, settings)) for key, settings in definitions if "pattern" in settings
    ]
    assert patterns
    for compiled in patterns:
        for text in texts:
            quick, limited = (
                [match.span() for match in regex.finditer(text)]
                for regex in (compiled._quick, compiled._limited)
            )
            assert quick == limited


@pytest.mark.usefixtures("short_limit")
def test_indexing_names_the_document_and_searching_rejects_the_query(tmp_path: Path) -> None:
    mapping = copy.deepcopy(MAPPING)
    analysis = mapping["settings"]["analysis"]
    analysis["char_filter"] = {"slow": {"type": "pattern_replace", "pattern": SLOW, "replacement": ""}}
    analysis["analyzer"]["words"] = {**analysis["analyzer"]["words"], "char_filter": ["slow"]}
    documents = [Document(f"d{number}", "b a") for number in range(5)]
    slow = [*documents, Document("slow", TEXT)]
    with closing(EmbeddedEngine.at(Settings(home=tmp_path))) as engine:
        engine.build("one", IndexSpec(mapping, 5, "1"), documents)
        with pytest.raises(DataError, match=r"^the document slow: the pattern .* takes longer") as error:
            engine.build("one", IndexSpec(mapping, 6, "2"), slow)
        assert error.value.exit_code == 4
        index = engine.open("one")
        assert index.info.digest == "1"
        for use in (
            lambda: list(index.search([body({"match": {"text": TEXT}})])),
            lambda: index.analyze(TEXT, field="text"),
        ):
            with pytest.raises(DataError):
                use()
