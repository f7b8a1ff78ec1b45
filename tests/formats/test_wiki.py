"""Rendering of wiki markup."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats.markup import Rewritten, formulas
from searchapp.formats.wiki import rendered
from searchapp.text import merge_spans


def styled_texts(result: Rewritten) -> list[tuple[str, str]]:
    return [(style.name, result.text[style.start : style.end]) for style in result.styles]


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("A '''set''' and ''one''.", "A set and one."),
        ("'''''both'''''", "both"),
        ("It is finite {{iff}} it {{IFF }} is", "It is finite if and only if it if and only if is"),
        ("{{WRT|Integration}}", "with respect to (Integration)"),
        ("a [[Definition:Set|set]], [[Set]] and [[x|]]", "a set, Set and x"),
        ("[[File:circle.png|thumb|A circle]]", "A circle"),
        ("[[a|x = y]] [[a|b|c]]", "x = y b|c"),
        ("see [https://a.org/b the page] or [https://a.org]", "see the page or https://a.org"),
        ("== Proof ==\n=== Of '''it''' ===", "Proof\nOf it"),
        ("a == b ==", "a == b =="),
        ("* a\n** b\n*c", "• a\n  • b\n• c"),
        ("# a\n# b\n\n# c\n## d\n# e", "1. a\n2. b\n\n1. c\n  1. d\n2. e"),
        (":$x$\n::$y$", "  $x$\n    $y$"),
        ("; word", "word"),
        ("so<ref>see ''there''</ref>.", "so [see there]."),
        ("a<br/>b<br>c 10<sup>2</sup>", "a\nb\nc 10^2"),
        ("<nowiki>''{{iff}}''</nowiki> <pre>[[a]]</pre>", "''{{iff}}'' [[a]]"),
        ("a<!-- not ''this'' -->b", "ab"),
        ("1&nbsp;&lt;&#50;&unknown;", "1\xa0<2&unknown;"),
        ("__NOTOC__a __INIT__", "a "),
        ("{{Defof|Set|sets}} {{Defof|Class}}", "sets Class"),
        (
            "{{TFAE|def = Injection|view = an '''injection'''}}",
            "The following definitions of the concept of an injection are equivalent:",
        ),
        ("{{EuclidPropStatement|book = IX|prop=27|body = An odd $n {{=}} 2$.}}", "An odd $n {{=}} 2$."),
        ("{{explain|What is $H$?|by=[[User:A|A]]}}", "(explain: What is $H$? · by=A)"),
        ("{{unheard of}}", "(unheard of)"),
        ("{{qed}} {{qed|lemma}}", "∎ ∎ (lemma)"),
    ],
)
def test_markup_is_rendered(markup: str, shown: str) -> None:
    assert rendered(markup).text == shown


def test_equations_are_rendered_with_both_sides_and_the_reason() -> None:
    markup = (
        "Then:\n{{begin-eqn}}\n{{eqn | l = \\map f {a}\n      | o = \\le\n      | r = b\n      | c = by '''A'''\n}}\n"
        "{{eqn | r = c\n | c = \n}}\n{{end-eqn}}\nand\n{{axiom | n = 1 | q = \\forall x | m = x \\ge 0}}"
    )
    shown = rendered(markup, lambda latex: f"<{latex}>")
    assert shown.text == (
        "Then:\n    <\\map f {a}> <\\le> <b>   by A\n    = <c>\nand\n    (<1>) <\\forall x>: <x \\ge 0>"
    )
    assert styled_texts(shown) == [("bold", "A")]


def test_text_after_a_bar_in_an_equation_is_shown() -> None:
    assert rendered("{{eqn | l = |x| | r = y}}").text.split() == ["=", "y", "|", "x"]


def test_a_table_is_rendered_row_by_row() -> None:
    markup = '{| border="1"\n|-\n! A || B\n|-\n| align="right" | $|x|$\n| b || c\n|}\nrest'
    assert rendered(markup).text == " A   │  B\n $|x|$  │  b   │  c\nrest"


def test_styles_cover_their_words() -> None:
    assert sorted(styled_texts(rendered("== H ==\na '''b ''c''''' [[x|''y'']] {{zz}}"))) == [
        ("aside", "(zz)"),
        ("bold", "b c"),
        ("heading", "H"),
        ("italic", "c"),
        ("italic", "y"),
        ("link", "y"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a '''b", "''a", "f'' and g", "don't", "{{iff", "iff}}", "[[a", "a]]", "[http://a b",
        "a | b", "<n", "a < b > c",
        "<!-- a", "{{x}}", "{{{iff}}}", "{|", "|}", "x|y", "{{a|[[b}}"[:5], "&", "__A__", "=", "==", "== a", "<n 5>",
        r"$\left({{x}}\right)$", r"\(a ''b''\)", r"\begin{a}''x''\end{a}",
    ],
)  # fmt: skip
def test_text_without_markup_is_not_changed(text: str) -> None:
    assert rendered(text).text == text


def test_unclosed_markup_is_not_rendered() -> None:
    assert rendered("{{explain|[[a '''b''' }} ''c''").text == "(explain: [[a b) c"
    assert rendered("'''a\nb''' ''c''").text == "'''a\nb''' c"
    assert rendered("{{a|" * 30 + "x" + "}}" * 30).text.count("x") == 1


WORDS = st.integers(0, 999).map(lambda number: f"w{number}w")
SIGNS = st.sampled_from(
    [
        "'''", "''", "'''''", "{{", "}}", "{{zz|", "{{eqn | l = ", " | r = ", " | c = ", "[[",
        "]]", "[http://a ", "]", "\n",
        "\n* ", "\n# ", "\n:", "\n; ", "\n== ", " ==", "\n{|", "\n|-", "\n| ", "\n|}", " || ",
        "<b>", "</b>", "<ref>", "</ref>",
        "<nowiki>", "</nowiki>", "$", "$$", "\\(", "\\)", "\\begin{a}", "\\end{a}", "&amp;",
        "{{iff}}", " ", "'", "{", "}", "<", "=",
    ]
)  # fmt: skip
TEXTS = st.lists(WORDS | SIGNS, max_size=40).map("".join)


BARS, LINKS = ("{{zz|", "{{eqn | l = ", " | r = ", " | c = ", "\n| ", " || "), ("[[", "]]")
TABLES = ("\n{|", "\n|-", "\n|}")
"""Signs that hide words: a link with a bar shows only its last part, a table hides its attributes."""


def without(*left_out: str) -> st.SearchStrategy[str]:
    return st.lists(WORDS | SIGNS.filter(lambda sign: sign not in left_out), max_size=40).map("".join)


@given(without(*BARS, *TABLES) | without(*LINKS, *TABLES))
def test_each_word_is_rendered_exactly_once(text: str) -> None:
    shown = rendered(text).text
    assert sorted(re.findall(r"w\d+w", shown)) == sorted(re.findall(r"w\d+w", text))


@given(TEXTS | st.text(max_size=60), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=5))
def test_spans_are_moved_to_the_rendered_characters(text: str, spans: list[tuple[int, int]]) -> None:
    result = rendered(text, lambda latex: latex.replace("w", "W-"))
    moved = result.moved(spans)
    assert moved == merge_spans(moved) and all(0 <= start < end <= len(result.text) for start, end in moved)
    marked = {offset for start, end in spans for offset in range(start, end)}
    expected: set[int] = set()
    end_before = 0
    for piece in result.pieces:
        assert end_before <= piece.start < piece.end <= len(text)
        end_before = piece.end
        offsets = range(piece.first, piece.last)
        if piece.is_kept:
            assert result.text[piece.first : piece.last] == text[piece.start : piece.end]
            expected |= {offset for offset in offsets if offset - piece.first + piece.start in marked}
        elif marked & set(range(piece.start, piece.end)):
            expected |= set(offsets)
    assert {offset for start, end in moved for offset in range(start, end)} == expected
    assert all(0 <= style.start < style.end <= len(result.text) for style in result.styles)


@given(st.lists(WORDS | SIGNS, min_size=1, max_size=30), st.data())
def test_a_marked_word_is_marked_in_the_rendered_text(parts: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(parts) - 1))
    parts[index] = "Marked"
    start = len("".join(parts[:index]))
    result = rendered("".join(parts))
    is_shown = "Marked" in result.text
    assert is_shown or {"[[", *TABLES} & {
        *parts[:index]
    }  # targets of links and attributes of tables are hidden
    shown = "".join(result.text[a:b] for a, b in result.moved([(start, start + 6)]))
    assert shown == ("Marked" if is_shown else "")


@given(st.text("$\\()[]{}abeginend \n*", max_size=60))
def test_formulas_are_disjoint_and_in_order(text: str) -> None:
    spans = list(formulas(text))
    assert all(start < end for start, end in spans)
    assert all(span[1] <= following[0] for span, following in pairwise(spans))


@pytest.mark.parametrize(
    "sign",
    [
        "{{", "[[", "''", "<b>", "{|\n", "{{a|", "[http://a ",
        "<!--", "\n|}", "$", "\\(", "\\begin{a}", "<nowiki>", "| ", "\n== ",
    ],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_a_long_text_of_unclosed_markup_is_rendered_in_linear_time(sign: str) -> None:
    length = 200_000  # would take minutes if the rest of the text were searched for the end of each sign
    assert len(rendered(sign * (length // len(sign))).text) <= 2 * length
