"""The two regular expressions of a Java pattern with word boundaries match the same without combining marks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.lucene.analysis.java_pattern import NOT_BOUNDARY, WORD_BOUNDARY, JavaRegex
from searchapp.lucene.analysis.java_regex import compile_java
from searchapp.lucene.analysis.options import Options

UNMARKED = st.text(st.sampled_from("ab9_ -.éÉßÅ’“中あ𝐀😀\u00a0\u200d\u2028"))
PATTERNS = {name: JavaRegex(0, name, re.ASCII, True, True, False) for name in (WORD_BOUNDARY, NOT_BOUNDARY)}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=["boundary", "no boundary"])
@given(text=UNMARKED)
def test_without_combining_marks_both_find_the_same(pattern: JavaRegex, text: str) -> None:
    assert pattern._pattern_for(text) is pattern._quick
    quick, exact = (
        [match.start() for match in regex.finditer(text)] for regex in (pattern._quick, pattern._exact)
    )
    assert quick == exact


@pytest.mark.parametrize(
    ("pattern", "text", "replaced"),
    [
        ("a{1,2}{2}", "aaaaaab", "___b"),
        ("a{2}{3}{2}", "aaaaaab", "___b"),
        ("(ab)+{2}", "ababab", "_"),
        ("a+{0}", "aaaaaab", "_b"),
        ("a?{2}b", "ababab", "___"),
        ("a*{2}", "aac", "__c_"),
        ("a|{2}b", "aac", "__c"),
        ("{2}", "b", "_b_"),
    ],
)
def test_a_counted_quantifier_after_another_one_repeats_nothing(
    pattern: str, text: str, replaced: str
) -> None:
    """Elasticsearch 9.4.3 does the same: in Java the second quantifier repeats the empty text before it."""
    assert compile_java(Options("p", {"pattern": pattern})).substitute("_", text) == replaced


def test_a_combining_mark_belongs_to_the_preceding_letter() -> None:
    pattern = PATTERNS[WORD_BOUNDARY]
    assert [match.start() for match in pattern.find("e\u0301 x")] == [0, 2, 3, 4]
