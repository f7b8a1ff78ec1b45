r"""Reads what a person types into clauses.

    query   = { clause }
    clause  = [ "+" | "-" ] atom
    atom    = word | word "*" | '"' phrase '"' | field ":" atom | "(" query ")"

People type mathematics and prose, so a sign counts only where it can mean nothing else: `+`, `-`, a quotation mark
and a parenthesis at the beginning of an atom, a colon behind the name of a field, a star behind a letter or digit at
the end of a word. `f(x)`, `x - 1`, `don't`, `a*b` and `f: A` are words. What stands between two dollar signs is one
word where they stand as TeX's do, right at what they enclose and not before a number: `$5 and $6` are three words. A
backslash takes the meaning of a sign away, before an atom that begins with it (`\-1`, `\"`, `\(`, `\)`), before a field
(`\speaker:`), a star at the end (`x\*`), a parenthesis that would close a group, and in phrases a quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from searchapp.errors import UsageError

DEEPEST = 20
"""How far groups may stand in each other."""

MOST_SIGNS = 250
"""How many clauses may be more than a word. Each is asked in a few fields, and servers allow 1,024 clauses or more."""

LONGEST_WORD = 10_000
"""The most characters without white space among them: engines differ about terms of more than 32,766 bytes."""

LONGEST_PREFIX = 500
"""The most characters of the beginning of a word: engines refuse more than 1,000, and small letters may be more."""

LONGEST_PHRASE = 1_000
"""In words: with many more, a server is at work for minutes."""


class BrokenQuery(UsageError):
    """A query that can't be read: `at` is the place of the character that is wrong, from 0, `what` says why."""

    def __init__(self, what: str, at: int) -> None:
        self.what = what
        self.at = at
        super().__init__(f"character {at + 1} of the query: {what}")


class Occur(Enum):
    """Whether documents may, must or must not match a clause."""

    may = ""
    must = "+"
    must_not = "-"


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it was typed; it may come to several terms, or none."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that stand side by side."""

    text: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """How a word begins."""

    text: str


@dataclass(frozen=True, slots=True)
class InField:
    """What is sought in one field; `at` is the place of what stands behind the colon."""

    field: str
    inner: Atom
    at: int


@dataclass(frozen=True, slots=True)
class Group:
    """Clauses in parentheses, or all of a query."""

    clauses: tuple[Clause, ...]


Atom: TypeAlias = Word | Phrase | Prefix | InField | Group


@dataclass(frozen=True, slots=True)
class Clause:
    """An atom, and whether it must match."""

    occur: Occur
    atom: Atom


def parsed(text: str, fields: Collection[str] = ()) -> Group:
    """The clauses of a query; `fields` are the names that mean a field before a colon.

    >>> parsed('ring +"prime ideal" -(x*)').clauses[1]
    Clause(occur=<Occur.must: '+'>, atom=Phrase(text='prime ideal'))

    Raises:
        BrokenQuery: a quotation mark or parenthesis has no partner, there are too many signs, a prefix is too long,
            groups stand too far in each other, or a character is half of one.
    """
    require_text(text)
    reader = _Reader(text, fields)
    clauses = tuple(reader.clauses(0))
    if not reader.is_at_end:
        raise BrokenQuery(
            'no "(" is open that this ")" could close: put \\ before it if it is meant as it is', reader.at
        )
    return Group(clauses)


def without_signs(query: Group) -> Group:
    """A query that asks for the same, but lets every clause be missing: what must not match is not in it.

    >>> without_signs(parsed("+ring -field")).clauses
    (Clause(occur=<Occur.may: ''>, atom=Word(text='ring')),)
    """
    left = (clause for clause in query.clauses if clause.occur is not Occur.must_not)
    return Group(tuple(Clause(Occur.may, clause.atom) for clause in left))


def require_text(text: str) -> None:
    """Make sure that a text is made of whole characters, as what a terminal sends need not be, and of words.

    Raises:
        BrokenQuery: it is not.
    """
    half = _HALF.search(text)
    if half is not None:
        raise BrokenQuery("this is no character: the text is not UTF-8", half.start())
    endless = _ENDLESS.search(text)
    if endless is not None:
        raise BrokenQuery(
            f"here stand more than {LONGEST_WORD:,} characters without a blank", endless.start()
        )


_HALF = re.compile("[\ud800-\udfff]")
_ENDLESS = re.compile(rf"(?<!\S)\S{{{LONGEST_WORD + 1}}}")
_SPACE = re.compile(r"\s*")
_FORMULA = re.compile(r"\$\$.+?\$\$|\$(?!\s)(?:[^$\\]|\\.)*(?<!\s)\$(?!\d)", re.DOTALL)
_QUOTED = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL)


class _Reader:
    """Reads a text from its beginning; `at` is the place of the next character."""

    def __init__(self, text: str, fields: Collection[str]) -> None:
        self.at = 0
        self._signs = 0
        self._text = text
        names = "|".join(sorted(map(re.escape, fields), key=len, reverse=True))
        self._field = re.compile(rf"({names}):(?=[^\s)])") if names else None

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self._text)

    def clauses(self, depth: int) -> Iterator[Clause]:
        """The clauses up to the end, or up to a parenthesis that closes a group."""
        while True:
            self._skip_space()
            if self.is_at_end or self._next() == ")":
                return
            begun, occur = self.at, Occur.may
            if self._next() in "+-" and self._is_sign():
                occur = Occur(self._next())
                self.at += 1
            clause = Clause(occur, self._atom(depth))
            self._signs += depth > 0 or occur is not Occur.may or not isinstance(clause.atom, Word)
            if self._signs > MOST_SIGNS:
                raise BrokenQuery(
                    f"at most {MOST_SIGNS} parts of a query may be more than words, or stand in groups: leave out "
                    "what begins here",
                    begun,
                )
            yield clause

    def _is_sign(self) -> bool:
        """Whether a plus or minus stands right before what it is about."""
        following = self._text[self.at + 1 : self.at + 2]
        return bool(following) and not following.isspace() and following not in "+-)"

    def _atom(self, depth: int, in_field: bool = False) -> Atom:
        if self._next() == "(":
            return self._group(depth)
        if self._next() == '"':
            return self._phrase()
        named = self._field_at(self.at)
        if named is None:
            return self._word(depth)
        if in_field:
            raise BrokenQuery("a field can't stand inside of another: leave one of them out", self.at)
        self.at = named.end()
        return InField(named[1], self._atom(depth, in_field=True), named.end())

    def _group(self, depth: int) -> Group:
        opened = self.at
        if depth == DEEPEST:
            raise BrokenQuery(f"groups stand in each other more than {DEEPEST} deep", opened)
        self.at += 1
        clauses = tuple(self.clauses(depth + 1))
        if self.is_at_end:
            raise BrokenQuery('this "(" is not closed: add ")" or put \\ before it', opened)
        self.at += 1
        return Group(clauses)

    def _phrase(self) -> Phrase:
        opened = self.at
        quoted = _QUOTED.match(self._text, opened + 1)
        if quoted is None:
            raise BrokenQuery("this quotation mark is not closed: add another or put \\ before it", opened)
        if len(quoted[1].split()) > LONGEST_PHRASE:
            raise BrokenQuery(f"a phrase has at most {LONGEST_PHRASE:,} words", opened)
        self.at = quoted.end()
        return Phrase(quoted[1].replace('\\"', '"'))

    def _word(self, depth: int) -> Word | Prefix:
        """Up to the next space, or the parenthesis that closes the group; parentheses in pairs belong to the word."""
        start, open_ = self.at, 0
        parts: list[str] = []
        if self._is_escaped():
            self.at = start = start + 1
            parts.append(self._next())
            self.at += 1
        while not self.is_at_end and not self._next().isspace():
            step = 1
            character = self._next()
            if character == "\\" and self._text[self.at + 1 : self.at + 2] == "$":
                step = 2
            elif character == "$" and (formula := _FORMULA.match(self._text, self.at)):
                step = len(formula[0])
            elif character == "\\" and depth and self._text[self.at + 1 : self.at + 2] == ")":
                self.at += 1
            elif character == ")" and open_ == 0 and depth:
                break
            else:
                open_ += (character == "(") - (character == ")" and open_ > 0)
            parts.append(self._text[self.at : self.at + step])
            self.at += step
        word = "".join(parts)
        if word.endswith("\\*"):
            return Word(f"{word[:-2]}*")
        if word.endswith("*") and word[-2:-1].isalnum():
            if len(word) > LONGEST_PREFIX + 1:
                raise BrokenQuery(f"the beginning of a word has at most {LONGEST_PREFIX} characters", start)
            return Prefix(word[:-1])
        return Word(word)

    def _is_escaped(self) -> bool:
        """Whether a backslash stands before what would be a sign or the name of a field."""
        rest = self._text[self.at : self.at + 2]
        if rest[:1] != "\\":
            return False
        return rest[1:] in set('+-"()') or self._field_at(self.at + 1) is not None

    def _field_at(self, place: int) -> re.Match[str] | None:
        return self._field.match(self._text, place) if self._field is not None else None

    def _next(self) -> str:
        return self._text[self.at]

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self.at)
        assert found is not None
        self.at = found.end()
