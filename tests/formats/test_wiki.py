"""Wiki markup as what it means."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats.markup import Rewritten, formulas
from searchapp.formats.wiki import rendered
from searchapp.text import merge_spans


def styled(found: Rewritten) -> list[tuple[str, str]]:
    return [(one.name, found.text[one.start : one.end]) for one in found.styles]


@pytest.mark.parametrize(
    ("written", "shown"),
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
def test_markup_is_shown_as_what_it_means(written: str, shown: str) -> None:
    assert rendered(written).text == shown


def test_equations_are_lines_with_both_sides_and_the_reason() -> None:
    written = (
        "Then:\n{{begin-eqn}}\n{{eqn | l = \\map f {a}\n      | o = \\le\n      | r = b\n      | c = by '''A'''\n}}\n"
        "{{eqn | r = c\n | c = \n}}\n{{end-eqn}}\nand\n{{axiom | n = 1 | q = \\forall x | m = x \\ge 0}}"
    )
    shown = rendered(written, lambda latex: f"<{latex}>")
    assert shown.text == (
        "Then:\n    <\\map f {a}> <\\le> <b>   by A\n    = <c>\nand\n    (<1>) <\\forall x>: <x \\ge 0>"
    )
    assert styled(shown) == [("bold", "A")]


def test_what_a_bar_in_an_equation_cuts_off_is_shown() -> None:
    assert rendered("{{eqn | l = |x| | r = y}}").text.split() == ["=", "y", "|", "x"]


def test_a_table_is_shown_row_by_row() -> None:
    written = '{| border="1"\n|-\n! A || B\n|-\n| align="right" | $|x|$\n| b || c\n|}\nrest'
    assert rendered(written).text == " A   │  B\n $|x|$  │  b   │  c\nrest"


def test_styles_stand_on_their_words() -> None:
    assert sorted(styled(rendered("== H ==\na '''b ''c''''' [[x|''y'']] {{zz}}"))) == [
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
def test_what_is_no_markup_stays(text: str) -> None:
    assert rendered(text).text == text


def test_markup_that_is_not_closed_leaves_the_rest_as_it_is() -> None:
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
"""A link with a bar shows its last words alone, a table not what it looks like."""


def without(*left_out: str) -> st.SearchStrategy[str]:
    return st.lists(WORDS | SIGNS.filter(lambda sign: sign not in left_out), max_size=40).map("".join)


@given(without(*BARS, *TABLES) | without(*LINKS, *TABLES))
def test_no_word_is_lost_and_none_shown_twice(text: str) -> None:
    shown = rendered(text).text
    wanted = re.findall(r"w\d+w", text)
    assert sorted(re.findall(r"w\d+w", shown)) == sorted(wanted)


@given(TEXTS | st.text(max_size=60), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=5))
def test_marks_are_on_the_same_characters(text: str, spans: list[tuple[int, int]]) -> None:
    found = rendered(text, lambda latex: latex.replace("w", "W-"))
    moved = found.moved(spans)
    assert moved == merge_spans(moved) and all(0 <= start < end <= len(found.text) for start, end in moved)
    shown = {place for start, end in moved for place in range(start, end)}
    wanted: set[int] = set()
    written = {place for start, end in spans for place in range(start, end)}
    behind = 0
    for piece in found.pieces:
        assert behind <= piece.start < piece.end <= len(text)
        behind = piece.end
        places = range(piece.first, piece.last)
        if piece.is_kept:
            assert found.text[piece.first : piece.last] == text[piece.start : piece.end]
            wanted |= {place for place in places if place - piece.first + piece.start in written}
        elif written & set(range(piece.start, piece.end)):
            wanted |= set(places)
    assert shown == wanted
    assert all(0 <= one.start < one.end <= len(found.text) for one in found.styles)


@given(st.lists(WORDS | SIGNS, min_size=1, max_size=30), st.data())
def test_a_word_that_is_marked_is_marked_where_it_is_shown(parts: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parts) - 1))
    parts[place] = "Marked"
    start = len("".join(parts[:place]))
    found = rendered("".join(parts))
    is_shown = "Marked" in found.text
    assert is_shown or {"[[", *TABLES} & {*parts[:place]}  # where a link leads, or what a table looks like
    shown = "".join(found.text[a:b] for a, b in found.moved([(start, start + 6)]))
    assert shown == ("Marked" if is_shown else "")


@given(st.text("$\\()[]{}abeginend \n*", max_size=60))
def test_formulas_are_disjoint_and_in_order(text: str) -> None:
    found = list(formulas(text))
    assert all(start < end for start, end in found)
    assert all(one[1] <= following[0] for one, following in pairwise(found))


@pytest.mark.parametrize(
    "sign",
    [
        "{{", "[[", "''", "<b>", "{|\n", "{{a|", "[http://a ",
        "<!--", "\n|}", "$", "\\(", "\\begin{a}", "<nowiki>", "| ", "\n== ",
    ],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_a_long_text_of_what_is_never_closed_is_read(sign: str) -> None:
    length = (
        200_000  # which would take minutes if each sign were looked for an end as far as that of the text
    )
    assert len(rendered(sign * (length // len(sign))).text) <= 2 * length
