"""The query `regexp`: terms that match a regular expression in Lucene's syntax as a whole.

    org.apache.lucene.util.automaton.RegExp (Lucene 10)

An expression becomes a deterministic automaton, whose states are the derivatives of the expression: what must follow
the characters read so far. Derivatives also exist for the intersection and the complement of expressions.

    J. Brzozowski, Derivatives of Regular Expressions, JACM 1964.
    S. Owens, J. Reppy and A. Turon, Regular-expression derivatives re-examined, JFP 2009 (classes of characters).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.analysis.characters import utf16_length
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.arrays import Int64s, Mask
from searchapp.lucene.index.mapping import Field, Schema
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import Parser, Query, apply_boost_parameter, required
from searchapp.lucene.queries.term import LONGEST_PREFIX, MultiTerm, require_no_key, require_terms

FLAGS = {"intersection": 1, "complement": 0x10000, "empty": 4, "anystring": 8, "interval": 32, "none": 0}
NAMED = 16  # enables named automata, which Elasticsearch does not have
ALL = 0xFF
MOST_STATES = 1_024
# Lucene's limit of the work to build an automaton; below `MOST_STATES` states it is not reached.
DEFAULT_WORK = 10_000

END = 0x110000  # follows the last code point
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CLASSES = {"d": "0-9", "s": r"\t\n\r ", "w": "0-9A-Z_a-z"}

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # first and last code points, ascending and disjoint

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def _expression(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose objects, keys of the table of states, compute their hash once."""
    kind = dataclass(frozen=True)(kind)
    compute = kind.__hash__

    def cached(expression: T) -> int:
        values = expression.__dict__
        if "hash" not in values:
            values["hash"] = compute(expression)
        value: int = values["hash"]
        return value

    kind.__hash__ = cached  # type: ignore[method-assign,assignment]
    return kind


@_expression
class Characters:
    """One of a set of characters."""

    ranges: Ranges

    is_nullable = False  # whether the empty text matches

    @cached_property
    def edges(self) -> set[int]:
        """The code points at which the derivative changes."""
        return {edge for first, last in self.ranges for edge in (first, last + 1)}

    def after(self, character: int) -> Expression:
        """Return the derivative: the expression of what may follow a character."""
        return EPSILON if any(first <= character <= last for first, last in self.ranges) else NOTHING


@_expression
class Digits:
    """A fixed number of digits with a value between two bounds."""

    low: int
    high: int
    count: int

    is_nullable = False

    @cached_property
    def edges(self) -> set[int]:
        return set(range(ord("0"), ord("9") + 2))

    def after(self, character: int) -> Expression:
        if not ord("0") <= character <= ord("9"):
            return NOTHING
        unit = 10 ** (self.count - 1)
        value = (character - ord("0")) * unit
        return _digits(max(0, self.low - value), min(unit - 1, self.high - value), self.count - 1)


@_expression
class Concatenation:
    """Expressions one after another."""

    parts: tuple[Expression, ...]

    @cached_property
    def is_nullable(self) -> bool:
        return all(part.is_nullable for part in self.parts)

    @cached_property
    def edges(self) -> set[int]:
        edges: set[int] = set()
        for part in self.parts:
            edges |= part.edges
            if not part.is_nullable:
                break
        return edges

    @cached_property
    def rest(self) -> Expression:
        """What follows the first part."""
        return self.parts[1] if len(self.parts) == 2 else Concatenation(self.parts[1:])

    def after(self, character: int) -> Expression:
        if not self.parts:
            return NOTHING
        following = _concatenation(self.parts[0].after(character), self.rest)
        return _union(following, self.rest.after(character)) if self.parts[0].is_nullable else following


@_expression
class Repetition:
    """An expression several times."""

    inner: Expression
    least: int
    most: int | None

    @cached_property
    def is_nullable(self) -> bool:
        return not self.least or self.inner.is_nullable

    @cached_property
    def edges(self) -> set[int]:
        return self.inner.edges

    def after(self, character: int) -> Expression:
        most = None if self.most is None else self.most - 1
        return _concatenation(
            self.inner.after(character), _repetition(self.inner, max(0, self.least - 1), most)
        )


@_expression
class Union:
    """One of several expressions."""

    parts: frozenset[Expression]

    @cached_property
    def is_nullable(self) -> bool:
        return any(part.is_nullable for part in self.parts)

    @cached_property
    def edges(self) -> set[int]:
        return set().union(*(part.edges for part in self.parts))

    def after(self, character: int) -> Expression:
        return _union(*(part.after(character) for part in self.parts))


@_expression
class Intersection:
    """Several expressions at once."""

    parts: frozenset[Expression]

    @cached_property
    def is_nullable(self) -> bool:
        return all(part.is_nullable for part in self.parts)

    @cached_property
    def edges(self) -> set[int]:
        return set().union(*(part.edges for part in self.parts))

    def after(self, character: int) -> Expression:
        return _intersection(*(part.after(character) for part in self.parts))


@_expression
class Complement:
    """What an expression does not match."""

    inner: Expression

    @cached_property
    def is_nullable(self) -> bool:
        return not self.inner.is_nullable

    @cached_property
    def edges(self) -> set[int]:
        return self.inner.edges

    def after(self, character: int) -> Expression:
        return Complement(self.inner.after(character))


Expression: TypeAlias = Characters | Digits | Concatenation | Repetition | Union | Intersection | Complement

NOTHING = Characters(())
EPSILON = Concatenation(())  # the empty text
ANY = Characters(((0, END - 1),))


def _concatenation(*parts: Expression) -> Expression:
    if NOTHING in parts:
        return NOTHING
    parts = tuple(part for part in parts if part != EPSILON)
    if len(parts) == 1:
        return parts[0]
    lists = (part.parts if isinstance(part, Concatenation) else (part,) for part in parts)
    return Concatenation(tuple(chain.from_iterable(lists)))


def _repetition(inner: Expression, least: int, most: int | None) -> Expression:
    return EPSILON if most == 0 else Repetition(inner, least, most)


def _union(*parts: Expression) -> Expression:
    flat: set[Expression] = set()
    for part in parts:
        flat |= part.parts if isinstance(part, Union) else {part}
    flat.discard(NOTHING)
    return flat.pop() if len(flat) == 1 else Union(frozenset(flat)) if flat else NOTHING


def _intersection(*parts: Expression) -> Expression:
    flat: set[Expression] = set()
    for part in parts:
        flat |= part.parts if isinstance(part, Intersection) else {part}
    if NOTHING in flat:
        return NOTHING
    return flat.pop() if len(flat) == 1 else Intersection(frozenset(flat))


def _digits(low: int, high: int, count: int) -> Expression:
    if low > high:
        return NOTHING
    return Digits(low, high, count) if count else EPSILON


def _characters(ranges: Iterable[tuple[int, int]], *, is_negated: bool = False) -> Expression:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    if is_negated:
        ends = [(-1, -1), *merged, (END, END)]
        merged = [(end + 1, start - 1) for (_, end), (start, _) in pairwise(ends) if start - end > 1]
    return Characters(tuple(merged))


def _cases(character: str) -> Ranges:
    """Return a character in both cases, and the two signs whose lower case is an ASCII letter."""
    if not character.isascii() and len({character, character.lower(), character.upper()}) > 1:
        raise unsupported(f"`case_insensitive` for {character!r}, only for ASCII letters")
    signs = {"k": "\u212a", "s": "\u017f"}.get(character.lower(), "")
    forms = {character.lower(), character.upper(), *signs} if character.isascii() else {character}
    return tuple((ord(form), ord(form)) for form in sorted(forms))


class ExpressionReader:
    """Reads an expression by recursive descent, as `RegExp`."""

    def __init__(self, text: str, flags: int, is_case_insensitive: bool) -> None:
        self._text = text
        self._flags = flags
        self._is_case_insensitive = is_case_insensitive
        self._position = 0

    def read(self) -> Expression:
        if not self._text:  # Lucene's automaton of no characters in both cases matches nothing
            return NOTHING if self._is_case_insensitive else EPSILON
        expression = self._union()
        if self._position < len(self._text):
            raise self._error("end expected")
        return expression

    def _empty_part(self) -> Expression:
        if self._is_case_insensitive:  # whether Lucene's matches depends on the parts around it
            raise unsupported("an empty part of a regular expression with `case_insensitive`")
        return EPSILON

    def _error(self, problem: str) -> Exception:
        return invalid(
            f"the regular expression {parameters.shown(self._text)!r}: {problem} at character {self._position}"
        )

    def _peek(self, characters: str) -> bool:
        following = self._text[self._position : self._position + 1]
        return bool(following) and following in characters

    def _match(self, character: str) -> bool:
        is_next = self._peek(character)
        self._position += is_next
        return is_next

    def _next(self) -> str:
        if self._position == len(self._text):
            raise self._error("unexpected end")
        self._position += 1
        return self._text[self._position - 1]

    def _has(self, flag: str) -> bool:
        return bool(self._flags & FLAGS[flag])

    def _union(self) -> Expression:
        parts = [self._intersection()]
        while self._match("|"):
            parts.append(self._intersection())
        return _union(*parts)

    def _intersection(self) -> Expression:
        parts = [self._concatenation()]
        while self._has("intersection") and self._match("&"):
            parts.append(self._concatenation())
        return _intersection(*parts)

    def _concatenation(self) -> Expression:
        ends = ")|&" if self._has("intersection") else ")|"
        parts = [self._repetition()]
        while self._position < len(self._text) and not self._peek(ends):
            parts.append(self._repetition())
        return _concatenation(*parts)

    def _repetition(self) -> Expression:
        expression = self._complement()
        while self._peek("?*+{"):
            sign = self._next()
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(sign) or self._bounds()
            if most is None and _matches_nothing(expression):  # which Lucene does not repeat zero times
                expression = NOTHING
            else:
                expression = _repetition(expression, least, most)
        return expression

    def _bounds(self) -> tuple[int, int | None]:
        match = re.compile(r"([0-9]+)(?:(,)([0-9]*))?\}").match(self._text, self._position)
        if match is None:
            raise self._error("expected numbers and `}`")
        self._position = match.end()
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if max(least, most or 0) > parameters.LARGEST_INTEGER or (most is not None and least > most):
            raise self._error("invalid numbers of repetitions")
        return least, most

    def _complement(self) -> Expression:
        if self._has("complement") and self._match("~"):
            return Complement(self._complement())
        return self._class() if self._match("[") else self._simple()

    def _class(self) -> Expression:
        is_negated = self._match("^")
        ranges: list[tuple[int, int]] = []
        while True:
            if self._match("\\"):
                ranges += self._predefined() or self._range_of(self._next())
            else:
                first = self._next()
                if self._match("-"):
                    self._match("\\")
                    last = self._next()
                    if first > last:
                        raise self._error("invalid range")
                    ranges.append((ord(first), ord(last)))
                else:
                    ranges += self._range_of(first)
            if self._position == len(self._text) or self._peek("]"):
                break
        if not self._match("]"):
            raise self._error("`]` expected")
        return _characters(ranges, is_negated=is_negated)

    def _range_of(self, character: str) -> Ranges:
        return _cases(character) if self._is_case_insensitive else ((ord(character), ord(character)),)

    def _predefined(self) -> Ranges | None:
        """Return the characters of a class such as `d`; None without a letter."""
        if not self._peek(LETTERS):
            return None
        letter = self._next()
        described = _CLASSES.get(letter.lower())
        if described is None:
            raise self._error(f"invalid character class {letter}")
        named = re.findall(
            r"(.)(?:-(.))?",
            described.replace(r"\t", "\t").replace(r"\n", "\n").replace(r"\r", "\r"),
            re.DOTALL,
        )
        ranges = [(ord(first), ord(last or first)) for first, last in named]
        expression = _characters(ranges, is_negated=letter.isupper())
        assert isinstance(expression, Characters)
        return expression.ranges

    def _simple(self) -> Expression:
        if self._match("."):
            return ANY
        if self._has("empty") and self._match("#"):
            return NOTHING
        if self._has("anystring") and self._match("@"):
            return Repetition(ANY, 0, None)
        if self._match('"'):
            start = self._position
            end = self._text.find('"', start)
            if end < 0:
                raise self._error('`"` expected')
            self._position = end + 1
            if end == start:
                return self._empty_part()
            return _concatenation(*(Characters(self._range_of(c)) for c in self._text[start:end]))
        if self._match("("):
            if self._match(")"):
                return self._empty_part()
            expression = self._union()
            if not self._match(")"):
                raise self._error("`)` expected")
            return expression
        if (self._has("interval") or self._flags & NAMED) and self._match("<"):
            return self._interval()
        if self._match("\\") and (ranges := self._predefined()) is not None:
            return Characters(ranges)
        return Characters(self._range_of(self._next()))

    def _interval(self) -> Expression:
        match = re.compile(r"([0-9]+)-([0-9]+)>").match(self._text, self._position)
        if match is None or not self._has("interval"):
            raise self._error("expected two numbers and `>`")
        self._position = match.end()
        low, high = sorted((int(match[1]), int(match[2])))
        if high > parameters.LARGEST_INTEGER:
            raise self._error("a number is too great")
        if len(match[1]) == len(match[2]):
            return _digits(low, high, len(match[1]))
        zeros = Repetition(Characters(((ord("0"), ord("0")),)), 0, None)
        numbers = (
            _digits(max(low, 10 ** (count - 1) if count > 1 else 0), min(high, 10**count - 1), count)
            for count in range(1, len(str(high)) + 1)
        )
        return _concatenation(zeros, _union(*numbers))


def _matches_nothing(expression: Expression) -> bool:
    """Return whether no text matches; only intersections and complements need an automaton."""
    if expression == NOTHING:
        return True
    return _has_sets(expression) and Automaton(expression).is_empty


def _has_sets(expression: Expression) -> bool:
    if isinstance(expression, Intersection | Complement):
        return True
    if isinstance(expression, Repetition):
        return _has_sets(expression.inner)
    return isinstance(expression, Concatenation | Union) and any(map(_has_sets, expression.parts))


class Automaton:
    """The deterministic automaton of an expression; state 0 is the first one, and -1 leads nowhere."""

    def __init__(self, expression: Expression) -> None:
        """Compute the states.

        Raises:
            Refused: there are more than `MOST_STATES`.
        """
        numbers = {expression: 0}
        states = [expression]
        transitions: list[tuple[list[int], list[int]]] = []
        for state in states:  # grows
            edges = sorted({0, *state.edges} - {END})
            targets = []
            for edge in edges:
                following = state.after(edge)
                number = numbers.setdefault(following, len(states))
                if number == len(states):
                    states.append(following)
                targets.append(number)
            if len(states) > MOST_STATES:
                raise unsupported(
                    f"a regular expression with an automaton of more than {MOST_STATES:,} states"
                )
            transitions.append((edges, targets))
        # Characters from one edge to the next one are alike in all states.
        self._edges = np.array(sorted({edge for edges, _targets in transitions for edge in edges}), np.uint32)
        self._table = np.array(
            [
                np.array(targets)[np.searchsorted(edges, self._edges, "right") - 1]
                for edges, targets in transitions
            ],
            np.int32,
        )
        self._accepts = np.array([state.is_nullable for state in states])
        live = self._accepts
        while (more := live | live[self._table].any(axis=1)).sum() > live.sum():
            live = more
        self._table[~live[self._table]] = -1
        self.is_empty = not live[0]

    @property
    def beginning(self) -> str:
        """The text with which all matching texts begin."""
        text, state, edges = "", 0, [*self._edges.tolist(), END]
        while not self._accepts[state] and len(text) < MOST_STATES:
            live = np.flatnonzero(self._table[state] >= 0).tolist()
            if len(live) != 1 or edges[live[0] + 1] - edges[live[0]] > 1:
                break
            text += chr(edges[live[0]])
            state = int(self._table[state, live[0]])
        return text

    def matching(self, points: NDArray[np.uint32], begins: Int64s) -> Mask:
        """Return which texts match, given their concatenated code points, the start of each and the last end."""
        classes = self._edges.searchsorted(points, "right") - 1
        lengths = np.diff(begins)
        states = np.zeros(len(lengths), np.int32)
        active = np.arange(len(lengths))
        for position in range(int(lengths.max(initial=0))):
            active = active[lengths[active] > position]
            states[active] = following = self._table[states[active], classes[begins[active] + position]]
            active = active[following >= 0]
        return np.asarray((states >= 0) & self._accepts[states])


@lru_cache(16)
def compile_expression(text: str, flags: int, is_case_insensitive: bool) -> tuple[str, Automaton]:
    """Return the common beginning of all matching texts, and the automaton of an expression.

    Raises:
        Refused: the expression is invalid, too complex, or has too many parentheses inside each other.
    """
    try:
        automaton = Automaton(ExpressionReader(text, flags, is_case_insensitive).read())
    except RecursionError:
        raise unsupported(f"the deeply nested regular expression {parameters.shown(text)!r}") from None
    return automaton.beginning, automaton


@dataclass(frozen=True, slots=True)
class Regexp(MultiTerm):
    """Documents with a term that matches a regular expression."""

    text: str
    flags: int
    is_case_insensitive: bool
    is_explained: bool = (
        True  # whether Lucene's explanation shows the expression, not the address of an object
    )

    def ranks(self, terms: Terms) -> Iterable[int]:
        beginning, automaton = self._compiled
        ranks = terms.with_prefix(beginning)
        return (ranks.start + np.flatnonzero(automaton.matching(*terms.code_points(ranks)))).tolist()

    def accepts(self, term: str) -> bool:
        points = np.array(list(map(ord, term)), np.uint32)
        return bool(self._compiled[1].matching(points, np.array([0, len(term)]))[0])

    @property
    def _compiled(self) -> tuple[str, Automaton]:
        return compile_expression(self.text, self.flags, self.is_case_insensitive)

    def notation(self, schema: Schema) -> str:
        if not self.is_explained:
            raise unsupported("the explanation of a pattern in the query `query_string`")
        return f"{self.field}:/{self.text}/"


def _collapsed(text: str) -> str:
    """Replace several signs of repetition by one, as Elasticsearch does, except in classes and texts in quotes."""

    def collapse(match: re.Match[str]) -> str:
        signs = match[2]
        return match[1] if signs is None else signs[0] if len(set(signs)) == 1 else "*"

    return re.sub(r'(?s)(\\.|"(?:\\.|[^"])*"?|\[(?:\\.|[^\]])*\]?)|([+*?]{2,})', collapse, text)


def of_expression(field: Field, text: str) -> Query:
    """Return the query for terms that match an expression in a query language."""
    if utf16_length(text) > LONGEST_PREFIX:
        raise invalid(f"the regular expression for {field.name} has more than {LONGEST_PREFIX:,} characters")
    require_terms(field, "regexp")
    require_no_key(field, "regexp")
    text, flags = field.normalized(text), ALL | FLAGS["complement"]
    compile_expression(text, flags, False)
    return Regexp(field.name, text, flags, False, is_explained=False)


def read_regexp(parser: Parser, content: Any) -> Query:
    """Read `regexp`: terms that match a regular expression."""
    known = ("flags", "flags_value", "case_insensitive", "max_determinized_states")
    name, options = parser.on_field(content, "regexp", "value", known)
    text = parameters.raw_text(required(options, "value", "regexp"), f"the expression for {name}")
    if utf16_length(text) > LONGEST_PREFIX:
        raise invalid(f"the regular expression for {name} has more than {LONGEST_PREFIX:,} characters")
    work = parameters.integer(
        options.get("max_determinized_states", DEFAULT_WORK), "`max_determinized_states`"
    )
    if work < DEFAULT_WORK:
        raise unsupported(f"`max_determinized_states: {work}`, only {DEFAULT_WORK:,} or more")
    is_case_insensitive = parameters.flag(options.get("case_insensitive", False), "`case_insensitive`")
    field = parser.field(name)
    text = field.normalized(_collapsed(text)) if field else _collapsed(text)
    compile_expression(text, _read_flags(options), is_case_insensitive)
    if field is None:
        return MatchNone(late=True)
    require_terms(field, "regexp")
    require_no_key(field, "regexp")
    query = Regexp(field.name, text, _read_flags(options), is_case_insensitive)
    return apply_boost_parameter(query, options, "regexp")


def _read_flags(options: Mapping[str, Any]) -> int:
    """Return the enabled parts of the syntax; of `flags` and `flags_value` the last one counts."""
    flags = ALL | FLAGS["complement"]
    for option, value in options.items():
        if option == "flags_value":
            flags = parameters.integer(value, "`flags_value`") & (ALL | FLAGS["complement"])
        elif option == "flags":
            words = [] if value is None else parameters.raw_text(value, "`flags`").lower().split("|")
            named = [word for word in words if word]
            if unknown := [word for word in named if word not in FLAGS and word != "all"]:
                raise invalid(f"`flags` of the query `regexp` has the unknown flag {unknown[0]!r}")
            if not words or words == [""]:
                flags = ALL
            elif "all" in named:
                flags = ALL | FLAGS["complement"]
            else:
                flags = sum({FLAGS[word] for word in named})
    return flags
