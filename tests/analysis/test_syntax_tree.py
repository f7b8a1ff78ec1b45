"""What the syntax tree of a pattern shows is true of its matches."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from searchapp.lucene import native
from searchapp.lucene.analysis import AnalysisRegistry, Analyzer, bulk
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import Options
from tests.analysis.test_bulk import analyze_bulk, analyze_each

pytestmark = pytest.mark.usefixtures("pieces_of_few_texts")


def pattern_analyzer(pattern: str, flags: str = "", group: int = 0) -> Analyzer:
    tokenizer: dict[str, Any] = {"type": "pattern", "pattern": pattern, "flags": flags, "group": group}
    return AnalysisRegistry(
        {"tokenizer": {"own": tokenizer}, "analyzer": {"own": {"tokenizer": "own"}}}
    ).analyzer("own")


def has_pieces(analyzer: Analyzer) -> bool:
    assert analyzer.bulk is not None
    rule = analyzer.bulk.tokenizer.ascii_rule
    return rule is not None and rule.following is not None


elements = st.sampled_from(["a", "b", r"\.", " ", "[ab]", r"[^a]", r"\w", r"\s", r"\W", "[a-z.]", r"\b", "é"])
patterns = st.recursive(
    elements,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["?", "+", "*", "+?", "{2}", "{1,2}", "++"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda ahead: f"(?={ahead})"),
        inner.map(lambda ahead: f"(?!{ahead})"),
        inner.map(lambda atom: f"(?>{atom})"),
    ),
    max_leaves=6,
)


# Most of these match something, but not nothing.
full_patterns = patterns | st.tuples(st.sampled_from(["[ab ](?:{})", "(?:{})[a.]"]), patterns).map(
    lambda pair: pair[0].format(pair[1])
)


@hypothesis.given(
    full_patterns,
    st.sampled_from(["", "CASE_INSENSITIVE"]),
    st.lists(st.text("abA. \né", max_size=20), max_size=3),
)
def test_the_tokens_of_pieces_are_those_of_the_texts(pattern: str, flags: str, texts: list[str]) -> None:
    analyzer = pattern_analyzer(pattern, flags)
    terms = analyze_bulk(analyzer, texts)
    assert terms is None or terms == analyze_each(analyzer, texts)


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"[a-z]+", "", 0),  # a run needs no pieces
        (r"[a-z]+(?:'[a-z]+)?|[0-9]", "it's 12 it's 1", 3),
        (r"a(?= b)|[b-z]+", "a b c a bc a", 4),
        (r"\b[a-z]+\b|[-+]", "a-b a-b", 2),
        (r"(?i:the) [a-z]+|[a-z]+", "The fox the fox", 2),
    ],
)
def test_equal_pieces_are_divided_once(pattern: str, text: str, pieces: int) -> None:
    analyzer = pattern_analyzer(pattern)
    assert analyze_bulk(analyzer, [text, text]) == analyze_each(analyzer, [text, text])
    assert analyzer.bulk is not None
    divided = analyzer.bulk.work._pieces.values()
    assert sum(map(len, divided)) == (pieces if native.library() else 0)


def test_pieces_that_are_hardly_repeated_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "FEWEST_REPETITIONS", 4)
    analyzer = pattern_analyzer("[a-z]+-?")
    short = ["a- b- c-", *[""] * 9]
    for texts, pieces in ((["a- b- c-", "a- d"], 0), (["a- b- a-", "a- b- a- b- a-"], 2), (short, 3)):
        assert analyze_bulk(analyzer, texts) == analyze_each(analyzer, texts)
        assert analyzer.bulk is not None
        assert sum(map(len, analyzer.bulk.work._pieces.values())) == (pieces if native.library() else 0)


@pytest.mark.parametrize("pattern", [r"(?<=a)b", r"^a", r"a$", r"\Ba", r"(a)\1", r"a*"])
def test_patterns_that_read_other_text_have_no_pieces(pattern: str) -> None:
    assert not has_pieces(pattern_analyzer(pattern))
    assert has_pieces(pattern_analyzer("ab"))


@hypothesis.given(full_patterns, st.sampled_from(["", "CASE_INSENSITIVE"]), st.text("abA. \né", max_size=20))
def test_quick_substitutions_are_those_of_each_match(pattern: str, flags: str, text: str) -> None:
    java = compile_java(Options("own", {"pattern": pattern, "flags": flags}))
    for template in ("-", r"<\g<0>>"):
        out, end = "", 0
        for match in java.find(text):
            out += text[end : match.start()] + match.expand(template)
            end = match.end()
        assert java.substitution(template)(text) == java.substitute(template, text) == out + text[end:]
