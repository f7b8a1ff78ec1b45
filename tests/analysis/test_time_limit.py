"""A pattern that takes too long on a text is rejected and never returns a part of its matches."""

from __future__ import annotations

import copy
import time
from collections import Counter
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
from searchapp.lucene.analysis.backtracking import ALWAYS_SHORT
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
        lambda: slow.text_finder(0)(text),
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
        ("(?:a|aa)*c", 0),
        ("(?:a*[ab]b*c)*", 0),  # no loop takes from another, but `[ab]` may match either way
        ("a*a*a*a*b", 0),
        ("a?" * 20, 0),
        ("a*a*a*b", 400),
        ("a*xb*(?:a|c*)b*", 2_000),
        (r"(a*)b\1", 2_000),
        ("(?=a*b)a*c", 2_000),
        (r"\s*\{?\s*-?[0-9.]+\s*(?:em|ex)\s*", 2_000),
        ("(?i)[a-c]*x?[B]*!", 2_000),
        ("[^x]*y?é*!", 2_000),
        (r"\s+(?:x|y+)$", 20_000),
        (r"(?:a+|b+|c+)\.", 20_000),
        ("(?:a+)?b", 20_000),
        ("(a|b)*c", 20_000),
        (r"""(?:[a-z]+\s*=\s*"[^"]*"\s*){1,20}""", 20_000),
        (r"^a*+(b++)c{2,3}\d?$", 20_000),
        (r"^(?:ab){3}c{2,3}\d?$", ALWAYS_SHORT),
    ],
)
def test_only_patterns_that_can_take_long_have_a_time_limit(source: str, longest: int) -> None:
    assert pattern(source)._limit.longest == longest


@pytest.mark.parametrize(
    ("source", "words", "spaces", "is_allowed"),
    [
        (r"\s*\{?\s*-?[0-9.]+\s*(?:em|ex)\s*", 3_000, 2, True),
        (r"\s*\{?\s*-?[0-9.]+\s*(?:em|ex)\s*", 300, 300, False),
        (r"[^x]*y?é*!", 1_500, 1, True),
        (r"[^x]*y?[^y]*!", 1_500, 1, False),
        (r"\s*a?\s*b?\s*c", 1_500, 2, True),
        (r"\s*a?\s*b?\s*c", 3_000, 2, False),
        (r"(a*)b\1", 1_500, 1, False),
        (r"(?=a*b)a*c", 1_500, 1, False),
        (r"(?:a|aa)*c", 1, 1, False),
    ],
)
def test_loops_that_share_only_short_runs_need_no_time_limit(
    source: str, words: int, spaces: int, is_allowed: bool
) -> None:
    text = ("aé" + " " * spaces) * words
    compiled = pattern(source)
    assert compiled._limit.allows(text) == is_allowed
    if is_allowed:
        began = time.process_time()
        matches = [match.span() for match in compiled._quick.finditer(text)]
        assert time.process_time() - began < 5
        assert matches == [match.span() for match in compiled._limited.finditer(text[:100])]


def test_random_patterns_without_a_limit_for_short_texts_never_take_exponential_time() -> None:
    random = Random(36)

    def expression(depth: int) -> str:
        parts = []
        for _ in range(random.randrange(1, 4)):
            part = random.choice(["a", "b", "[ab]", "[^a]", "c"])
            if depth and random.random() < 0.5:
                inner = "|".join(expression(depth - 1) for _ in range(random.randrange(1, 3)))
                part = f"(?:{inner})"
            parts.append(part + random.choice(["", "", "*", "+", "*?", "?", "{1,2}", "{2}"]))
        return "".join(parts)

    kinds: Counter[bool] = Counter()
    for _ in range(400):
        compiled = pattern(f"(?:{expression(3)})[!?]")
        kinds[compiled._limit.longest > 0] += 1
        if compiled._limit.longest:
            for word in {"".join(random.choices("abc", k=random.randrange(1, 5))) for _ in range(6)}:
                compiled._limited.match(word * 15)  # raises `PatternTimeout` after exponential time
    assert min(kinds[True], kinds[False]) > 50, kinds


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
