from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.ranking.query_language import (
    MAX_DEPTH,
    MAX_OPERATORS,
    MAX_PREFIX_LENGTH,
    Atom,
    BrokenQuery,
    FieldQuery,
    Occur,
    QueryClause,
    QueryGroup,
    QueryPhrase,
    QueryPrefix,
    QueryWord,
    parse_query,
    without_signs,
)

FIELDS = ("id", "text", "text.names", "speaker", "line")

PIECES = st.sampled_from(
    [
        *'+-"()\\*:$ ab',
        "speaker:",
        "text.names:",
        "line:",
        "ring",
        "$x y$",
        "\\(",
        "\\)",
        "\\*",
        "\u3000",
        "\ud800",
        "é",
    ]
)
TYPED = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


def may(atom: Atom) -> QueryClause:
    return QueryClause(Occur.may, atom)


def must(atom: Atom) -> QueryClause:
    return QueryClause(Occur.must, atom)


def must_not(atom: Atom) -> QueryClause:
    return QueryClause(Occur.must_not, atom)


def words(*texts: str) -> list[QueryClause]:
    return [may(QueryWord(text)) for text in texts]


def group(*clauses: QueryClause) -> QueryGroup:
    return QueryGroup(clauses)


@pytest.mark.parametrize(
    ("typed", "clauses"),
    [
        ("", []),
        (" \t\n", []),
        ("normal  subgroup", words("normal", "subgroup")),
        ("+ring -field", [must(QueryWord("ring")), must_not(QueryWord("field"))]),
        ('"prime ideal"', [may(QueryPhrase("prime ideal"))]),
        ('+"prime ideal" -"a b"', [must(QueryPhrase("prime ideal")), must_not(QueryPhrase("a b"))]),
        ('"a"b(c)d', [may(QueryPhrase("a")), *words("b(c)d")]),
        ("algebr*", [may(QueryPrefix("algebr"))]),
        ("-algebr*", [must_not(QueryPrefix("algebr"))]),
        ("speaker:HOLT", [may(FieldQuery("speaker", QueryWord("HOLT"), 8))]),
        ('+speaker:"A B"', [must(FieldQuery("speaker", QueryPhrase("A B"), 9))]),
        ("line:-5", [may(FieldQuery("line", QueryWord("-5"), 5))]),
        ("text.names:a*", [may(FieldQuery("text.names", QueryPrefix("a"), 11))]),
        (
            "speaker:(A -B)",
            [may(FieldQuery("speaker", group(may(QueryWord("A")), must_not(QueryWord("B"))), 8))],
        ),
        ("+(a b)", [must(group(*words("a", "b")))]),
        ("-(+a -b)", [must_not(group(must(QueryWord("a")), must_not(QueryWord("b"))))]),
        ("((a)b)", [may(group(may(group(*words("a"))), *words("b")))]),
        ("()", [may(group())]),
        # where a sign can mean nothing else
        ("- 1", words("-", "1")),
        ("x -", words("x", "-")),
        ("+", words("+")),
        ("-- +- ++a", words("--", "+-", "++a")),
        ("x+y wi-fi a-", words("x+y", "wi-fi", "a-")),
        ("f(x) g(x (y) z)", [*words("f(x)", "g(x"), may(group(*words("y"))), *words("z)")]),
        ("(f(x) y)", [may(group(*words("f(x)", "y")))]),
        ("(-)", [may(group(*words("-")))]),
        ('don\'t 5" a"b"', words("don't", '5"', 'a"b"')),
        ("a*b * ** $* -*", [*words("a*b", "*", "**", "$*"), must_not(QueryWord("*"))]),
        ("speaker: A", words("speaker:", "A")),
        ("a:b Speaker:A xspeaker:A", words("a:b", "Speaker:A", "xspeaker:A")),
        ("(speaker:)", [may(group(*words("speaker:")))]),
        # formulae
        ("$x -y$ -z", [*words("$x -y$"), must_not(QueryWord("z"))]),
        ("-$x (y$", [must_not(QueryWord("$x (y$"))]),
        ("($a) b$ c)", [may(group(*words("$a) b$", "c")))]),
        ("$$ x -y $$", words("$$ x -y $$")),
        ("f$x y$g", words("f$x y$g")),
        ("$5 -tax $6", [*words("$5"), must_not(QueryWord("tax")), *words("$6")]),
        ("$ -x$", [*words("$"), must_not(QueryWord("x$"))]),
        (r"\$x y\$", words(r"\$x", r"y\$")),
        (r"$a\$ b$", words(r"$a\$ b$")),
        ("$a", words("$a")),
        # what is meant as it is
        (r"\-1 \+x", words("-1", "+x")),
        (r"\( a \)", words("(", "a", ")")),
        (r"(a \) b\))", [may(group(*words("a", ")", "b)")))]),
        (r"\"a b\"", words('"a', r"b\"")),
        (r"\speaker:A \a:b", words("speaker:A", r"\a:b")),
        (r"ring\* \*", words("ring*", "*")),
        (r'"a \" b" "\\"', [may(QueryPhrase('a " b')), may(QueryPhrase("\\\\"))]),
        (r"\frac \\ \\-x \ ", words(r"\frac", "\\\\", r"\\-x", "\\")),
        (
            "speaker:\\-x speaker:x\\*",
            [may(FieldQuery("speaker", QueryWord("-x"), 8)), may(FieldQuery("speaker", QueryWord("x*"), 20))],
        ),
    ],
)
def test_a_text_is_read(typed: str, clauses: list[QueryClause]) -> None:
    assert parse_query(typed, FIELDS) == QueryGroup(tuple(clauses))


@pytest.mark.parametrize(
    ("typed", "at", "said"),
    [
        ('a "b', 2, "not closed"),
        ('"a\\"', 0, "not closed"),
        ("a (b", 2, "not closed"),
        ("(a (b)", 0, "not closed"),
        ("+(", 1, "not closed"),
        ("a )", 2, 'this ")" has no "("'),
        ("(a))", 3, 'this ")" has no "("'),
        ("speaker:line:5", 8, "can't contain another"),
        ("a " + "(" * (MAX_DEPTH + 1), 2 + MAX_DEPTH, "deep"),
        ("x" * (MAX_PREFIX_LENGTH + 1) + "*", 0, "at most 500"),
        ("a \udcff", 2, "not UTF-8"),
        ("a " + "b" * 10_001, 2, "more than 10,000 characters"),
        ("+a " * MAX_OPERATORS + "+b", 3 * MAX_OPERATORS, "at most 250"),
        ("(" + "a " * (MAX_OPERATORS + 1) + ")", 1 + 2 * MAX_OPERATORS, "at most 250"),
    ],
)
def test_a_broken_query_says_where(typed: str, at: int, said: str) -> None:
    with pytest.raises(BrokenQuery) as caught:
        parse_query(typed, FIELDS)
    assert caught.value.at == at
    assert said in caught.value.what
    assert str(caught.value) == f"character {at + 1} of the query: {caught.value.what}"


def test_groups_stand_in_each_other_to_a_depth() -> None:
    assert parse_query("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH)


def test_words_alone_may_be_many() -> None:
    assert len(parse_query("word " * 5_000).clauses) == 5_000


@pytest.mark.parametrize("piece", ["(", '"', "\\", "$", "$a", "+", '\\"', "$$", "a(", "*", "-("])
def test_a_long_text_is_read_at_once(piece: str) -> None:
    """A scan to the end for each sign takes minutes."""
    with suppress(BrokenQuery):
        parse_query(f"{piece * 1_000} " * (200 // len(piece)), FIELDS)


@given(TYPED)
def test_a_text_is_read_or_broken_at_one_of_its_characters(typed: str) -> None:
    try:
        parse_query(typed, FIELDS)
    except BrokenQuery as error:
        assert 0 <= error.at <= len(typed)


@given(
    st.lists(
        st.text(alphabet="aBé1.,'*+-:\\/", min_size=1).filter(lambda word: word[0] not in "+-\\"), max_size=8
    )
)
def test_words_alone_are_what_was_typed(typed: list[str]) -> None:
    typed = [word for word in typed if not word.endswith("*")]
    assert [clause.atom for clause in parse_query("  ".join(typed), FIELDS).clauses] == [
        QueryWord(word) for word in typed
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_word_can_be_typed_with_backslashes(text: str) -> None:
    """What documents have can be searched for, whatever it is: before a sign stands a backslash."""
    for word in text.replace("$", "").split():
        escaped = "\\" + word if word[0] in '+-"()' else word
        if escaped.endswith("*"):
            escaped = escaped[:-1] + "\\*"
        if word[0] != "\\" and not word.endswith("\\*"):
            assert parse_query(escaped, FIELDS).clauses == (may(QueryWord(word)),)


def test_a_query_without_signs_lets_every_clause_be_missing() -> None:
    query = parse_query('+a -b "c d" +(e -f) -(g)', FIELDS)
    assert without_signs(query) == group(
        may(QueryWord("a")),
        may(QueryPhrase("c d")),
        may(group(may(QueryWord("e")), must_not(QueryWord("f")))),
    )
