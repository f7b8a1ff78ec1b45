"""Query languages: `simple_query_string`, which accepts every text, and `query_string`, Lucene's classic syntax.

    org.apache.lucene.queryparser.simple.SimpleQueryParser
    org.apache.lucene.queryparser.classic.{QueryParser.jj, QueryParserBase}
    org.elasticsearch.index.search.{QueryParserHelper, SimpleQueryStringQueryParser, QueryStringQueryParser}

An operator of a language makes a `Bool`, a word or phrase in several fields a `DisMax`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

from searchapp.lucene import parameters
from searchapp.lucene.analysis.characters import joined_units
from searchapp.lucene.analysis.options import TRIMMED
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import Refused, invalid, unsupported
from searchapp.lucene.index.mapping import DATE, Field
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction, read_exists, with_minimum
from searchapp.lucene.queries.field_queries import (
    EVERY_FIELD,
    FUZZY,
    Boosts,
    FieldQueries,
    fuzziness_of,
    joined,
    matching_boosts,
)
from searchapp.lucene.queries.fulltext import GENERATES_PHRASES, NAMELESS, TIE_BREAKERS, named_boosts
from searchapp.lucene.queries.fuzzy import MOST_EDITS
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.number_range import NumberRange, bounds_of_dates, time_zone
from searchapp.lucene.queries.query import (
    Boost,
    Parser,
    Query,
    apply_boost_parameter,
    required,
)
from searchapp.lucene.queries.regexp import of_expression
from searchapp.lucene.queries.term import between, normalized_wildcard, of_prefix, of_wildcard

# Queries inside each other, and parentheses; more could exceed Python's recursion limit.
MOST_NESTED = 50


def _analyzer_of(parser: Parser, options: Mapping[str, Any], parameter: str) -> str | None:
    if parameter not in options:
        return None
    name = parameters.name(options[parameter], f"`{parameter}`")
    parser.analyzers.named(name)
    return name


def _named(parser: Parser, options: Mapping[str, Any], query: str) -> dict[str, float]:
    """Return the fields of a query, or those of the index, with boosts; empty for all fields of the mapping."""
    if named := named_boosts(options.get("fields", ()), query):
        return named
    fields = parser.reader.schema.default_fields
    return {} if EVERY_FIELD in fields else named_boosts(fields, query)


def _suffix_of(options: Mapping[str, Any]) -> str:
    return parameters.raw_text(options.get("quote_field_suffix", ""), "`quote_field_suffix`")


def _with_parameters(query: Query | None, options: Mapping[str, Any], name: str) -> Query:
    """Apply `minimum_should_match` and `boost` to the query of a text."""
    if (
        isinstance(query, Boost) and name == "query_string"
    ):  # the simple language changes no query with a boost
        inner = {key: value for key, value in options.items() if key != "boost"}
        boosted = Boost(_with_parameters(query.query, inner, name), query.boost)
        return apply_boost_parameter(boosted, options, name)
    minimum = options.get("minimum_should_match")
    if minimum is not None:
        specification = parameters.raw_text(minimum, "minimum_should_match")
        query = query.as_bool() if isinstance(query, TermsDisjunction) else query
        query = with_minimum(query, specification) if isinstance(query, Bool) else query
    if isinstance(query, Bool) and query.must and 0 < query.minimum < len(query.should):
        # Its scores depend on the division of the index into segments, see `dsl.normal_form`.
        raise unsupported(f"`minimum_should_match` of the query `{name}` with required and optional clauses")
    result = MatchNone(late=True) if query is None or query.matches_nothing else query
    _require_shallow(result, name)
    return apply_boost_parameter(result, options, name)


def _require_shallow(query: Query, name: str) -> None:
    level: Sequence[Query] = [query]
    for _depth in range(MOST_NESTED):
        level = [child for parent in level for child in parent.children()]
        if not level:
            return
    raise _too_deep(name)


def _too_deep(name: str) -> Refused:
    return unsupported(f"more than {MOST_NESTED} nested parts in the query `{name}`")


# `simple_query_string`

# The names of flags, their bits, and the operators that they enable; `"~` is the slop of a phrase.
_FLAGS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "AND": (1, ("+",)),
    "NOT": (2, ("-",)),
    "OR": (4, ("|",)),
    "PREFIX": (8, ("*",)),
    "PHRASE": (16, ('"',)),
    "PRECEDENCE": (32, ("(", ")")),
    "ESCAPE": (64, ("\\",)),
    "WHITESPACE": (128, (" ", "\t", "\n", "\r")),
    "FUZZY": (256, ("~",)),
    "NEAR": (512, ('"~',)),
    "SLOP": (512, ('"~',)),
}
_EVERY_BIT = -1
_END_OF_WORD = frozenset('"|+() \t\n\r')


def _operators(value: Any) -> frozenset[str]:
    """Return the operators that the parameter `flags` enables."""
    bits = _bits(value)
    return frozenset(sign for bit, signs in _FLAGS.values() if bits & bit for sign in signs)


def _bits(value: Any) -> int:
    if parameters.is_number(value):
        bits = parameters.integer(value, "`flags`")
        return bits if bits >= 0 else _EVERY_BIT
    text = parameters.raw_text(value, "`flags`")
    bits = 0 if text else _EVERY_BIT
    for name in filter(None, text.split("|")):
        flag = name.upper()
        if flag in ("ALL", "NONE"):
            return _EVERY_BIT if flag == "ALL" else 0
        if flag not in _FLAGS:
            raise invalid(
                f"`flags` of the query `simple_query_string` has {name!r}: use {', '.join(_FLAGS)}, ALL or NONE"
            )
        bits |= _FLAGS[flag][0]
    return bits


@dataclass(slots=True)
class _Branch:
    """The state of a part of the text, between parentheses or the whole."""

    index: int
    end: int
    depth: int = 0
    operator: str = ""  # before the next clause, `and` or `or`
    previous: str = ""  # the operator of `clauses`, empty for a single one
    is_negated: bool = False
    clauses: list[Query] = field(default_factory=list)

    def query(self) -> Query | None:
        if not self.previous:
            return self.clauses[0] if self.clauses else None
        return joined(self.previous, self.clauses)


@dataclass(frozen=True, slots=True)
class _SimpleParser:
    """Parses a text; a clause joins all that precedes it, so that `a | b + c` is `(a | b) + c`."""

    text: str
    operators: frozenset[str]
    fields: FieldQueries
    boosts: Boosts
    phrase_boosts: Boosts
    ends: dict[int, int] = field(default_factory=dict)  # of parentheses, by their starts

    def query(self) -> Query | None:
        if self.text.strip(TRIMMED) == "*":
            return MatchAll(late=True)
        escape, starts = r"\\." if "\\" in self.operators else "(?!)", list[int]()
        for match in re.finditer(f"{escape}|[()]", self.text, re.DOTALL):
            if match[0] == "(":
                starts.append(match.start())
            elif match[0] == ")" and starts:
                self.ends[starts.pop()] = match.start()
        return self._parse(_Branch(0, len(self.text)))

    def _parse(self, branch: _Branch) -> Query | None:
        if branch.depth > MOST_NESTED:
            raise _too_deep(self.fields.name)
        while branch.index < branch.end:
            sign = self.text[branch.index]
            if sign not in self.operators or sign in "\\*~":
                self._read_word(branch)
            elif sign == "(":
                self._read_parentheses(branch)
            elif sign == '"':
                self._read_phrase(branch)
            else:
                branch.index += 1
                if sign == "-":
                    branch.is_negated = not branch.is_negated
                    continue
                if sign in "+|" and branch.clauses:
                    branch.operator = branch.operator or ("and" if sign == "+" else "or")
            branch.is_negated = False
        return branch.query()

    def _add(self, branch: _Branch, clause: Query | None) -> None:
        if clause is None:
            return
        if branch.is_negated:
            clause = Bool(must_not=(clause,), should=(MatchAll(),))
        if branch.clauses:
            operator = branch.operator or self.fields.operator
            before = branch.query() if branch.previous != operator else None
            if before is not None:
                branch.clauses = [before]
                branch.previous = operator
        branch.clauses.append(clause)
        branch.operator = ""

    def _read_parentheses(self, branch: _Branch) -> None:
        start, end = branch.index + 1, self.ends.get(branch.index)
        if end is None:
            branch.index = start  # ignore a parenthesis that is not closed
            return
        if end == start:
            branch.operator = ""
        else:
            self._add(branch, self._parse(_Branch(start, end, branch.depth + 1)))
        branch.index = end + 1

    def _read_phrase(self, branch: _Branch) -> None:
        start = branch.index + 1
        words, index, is_closed = self._unescaped(start, branch.end, lambda sign, _words: sign == '"')
        if not is_closed:
            branch.index = start  # ignore a quote that is not closed
            return
        if index == start and not self._has_slop(branch, index):
            branch.operator = ""
            branch.index = index + 1
            return
        slop = 0
        if self._has_slop(branch, index):
            index += 1
            if index + 1 < branch.end:
                slop, index = self._number(index, branch.end)
        self._add(branch, self.fields.phrase(self.phrase_boosts, words, slop, self.fields.analyzer))
        branch.index = index + 1  # the sign after a slop is skipped

    def _has_slop(self, branch: _Branch, quote: int) -> bool:
        return quote + 1 < branch.end and self.text[quote + 1] == "~" and '"~' in self.operators

    def _read_word(self, branch: _Branch) -> None:
        def ends(sign: str, word: str) -> bool:
            return (sign in _END_OF_WORD and sign in self.operators) or (
                sign == "~" and bool(word) and sign in self.operators
            )

        start = branch.index
        word, index, _is_closed = self._unescaped(start, branch.end, ends)
        branch.index = index
        if not word:
            return
        is_fuzzy = index < branch.end and self.text[index] == "~"
        edits = 0
        if is_fuzzy:
            edits, branch.index = self._number(index, branch.end)
        if edits:
            self._add(branch, self.fields.fuzzy(self.boosts, word, min(edits, MOST_EDITS)))
        elif not is_fuzzy and self._is_prefix(start, index, word):
            self._add(branch, self.fields.prefix(self.boosts, word[:-1]) or DisMax((), 1.0))
        else:
            self._add(branch, self.fields.words(self.boosts, word))

    def _is_prefix(self, start: int, end: int, word: str) -> bool:
        """Return whether a word ends in a `*` that is not escaped."""
        if "*" not in self.operators or len(word) == 1 or self.text[end - 1] != "*":
            return False
        escapes = len(self.text[start : end - 1]) - len(self.text[start : end - 1].rstrip("\\"))
        return escapes % 2 == 0 or "\\" not in self.operators

    def _unescaped(self, start: int, end: int, ends: Callable[[str, str], bool]) -> tuple[str, int, bool]:
        """Return the characters without escapes up to an end, its index, and whether it was found."""
        characters: list[str] = []
        index, is_escaped = start, False
        while index < end:
            sign = self.text[index]
            if not is_escaped and sign == "\\" and sign in self.operators:
                is_escaped = True
            elif not is_escaped and ends(sign, "".join(characters[:1])):
                return "".join(characters), index, True
            else:
                characters.append(sign)
                is_escaped = False
            index += 1
        return "".join(characters), index, False

    def _number(self, tilde: int, end: int) -> tuple[int, int]:
        """Return the number after a `~`, by default 2, at least 0, and the index after it."""
        index = tilde + 1
        while index < end and not (self.text[index] in _END_OF_WORD and self.text[index] in self.operators):
            index += 1
        digits = self.text[tilde + 1 : index]
        if not digits:
            return 2, index
        is_integer = re.fullmatch(r"[+-]?\d+", digits) and max(digits) <= "\uffff"
        number = int(digits) if is_integer and len(digits) <= 1000 else 0
        return (number if 0 <= number <= parameters.LARGEST_INTEGER else 0), index


def read_simple_query_string(parser: Parser, content: Any) -> Query:
    """Read `simple_query_string`: a text with operators, of which it ignores those that make no sense."""
    name = "simple_query_string"
    known = (
        "query",
        "fields",
        "flags",
        "default_operator",
        "analyzer",
        "analyze_wildcard",
        "lenient",
        "minimum_should_match",
        "quote_field_suffix",
        GENERATES_PHRASES,
        *FUZZY,
    )
    options = parser.options(content, name, known)
    parameters.without_null(options, known, f"the query `{name}`")
    text = parameters.raw_text(required(options, "query", name), f"`query` of the query `{name}`")
    operators = _operators(options.get("flags", ""))
    operator = parameters.choice(options.get("default_operator", "or"), ("or", "and"), "`default_operator`")
    named = _named(parser, options, name) or {EVERY_FIELD: 1.0}
    boosts = matching_boosts(parser, named)
    analyzes_wildcards = parameters.flag(options.get("analyze_wildcard", False), "`analyze_wildcard`")
    if analyzes_wildcards and any(boost in parser.reader.schema.aliases for boost in boosts):
        raise unsupported(f"`analyze_wildcard` of the query `{name}` on an alias")
    fields = FieldQueries(
        parser,
        name,
        "most_fields",
        operator,
        _analyzer_of(parser, options, "analyzer"),
        parameters.flag(options.get("lenient", EVERY_FIELD in named), "`lenient`"),
        analyzes_wildcards,
        fuzziness_of(options),
        generates_phrases=parameters.flag(options.get(GENERATES_PHRASES, True), f"`{GENERATES_PHRASES}`"),
    )
    suffix = _suffix_of(options)
    simple = _SimpleParser(
        text,
        operators,
        fields,
        boosts,
        matching_boosts(parser, boosts, suffix) if suffix else boosts,
    )
    return _with_parameters(simple.query(), options, name)


# `query_string`

_START = r'(?:[^ \t\n\r\u3000+\-!():^\[\]"{}~*?\\/]|\\.)'
_REST = rf"(?:{_START}|[+-])"
# The tokens of each state of the lexer: the longest match counts, of several the first. None is skipped.
_TOKENS: Mapping[str, tuple[tuple[str | None, re.Pattern[str]], ...]] = {
    state: tuple((kind, re.compile(pattern, re.DOTALL)) for kind, pattern in tokens)
    for state, tokens in {
        "query": (
            (None, r"[ \t\n\r\u3000]"),
            ("AND", "AND|&&"),
            ("OR", r"OR|\|\|"),
            ("NOT", "NOT|!"),
            ("+", r"\+"),
            ("-", "-"),
            ("bare operator", r"[+!-][ \t\n\r\u3000]"),
            ("(", r"\("),
            (")", r"\)"),
            (":", ":"),
            ("*", r"\*"),
            ("^", r"\^"),
            ("phrase", r'"(?:[^"\\]|\\.)*"'),
            ("word", rf"{_START}{_REST}*"),
            ("~", rf"~{_REST}*"),
            ("prefix", rf"{_START}{_REST}*\*"),
            ("pattern", rf"(?:{_START}|[*?])(?:{_REST}|[*?])*"),
            ("expression", r"/(?:\\/|[^/])*/"),
            ("[", r"\["),
            ("{", r"\{"),
        ),
        "boost": (("number", r"[0-9]+(?:\.[0-9]+)?"),),
        "range": (
            (None, r"[ \t\n\r\u3000]"),
            ("TO", "TO"),
            ("]", r"\]"),
            ("}", r"\}"),
            ("quoted bound", r'"(?:\\"|[^"])+"'),
            ("bound", r"[^ \]}]+"),
        ),
    }.items()
}
_NEXT_STATE = {"^": "boost", "number": "query", "[": "range", "{": "range", "]": "query", "}": "query"}

_AFTER_WORDS = (":", "*", "~", "^", "AND", "OR")  # before these, a word is a clause of its own
_TERMS = ("word", "*", "prefix", "pattern", "expression", "bare operator")
_CLAUSES = ("AND", "OR", "NOT", "+", "-", "(", "phrase", "[", "{", *_TERMS)
_BOUNDS = ("bound", "quoted bound", "TO")

_EXISTS = "_exists_"
_SPECIAL = re.compile(r'[\\+\-!():^\[\]"{}~*?|&/]')


class _LexedToken(NamedTuple):
    kind: str
    text: str
    start: int


def _lexed(text: str) -> Iterator[_LexedToken]:
    state, start = "query", 0
    while start < len(text):
        matches = [(kind, match) for kind, token in _TOKENS[state] if (match := token.match(text, start))]
        if not matches:
            raise _unreadable(text, start)
        kind, match = max(matches, key=lambda pair: pair[1].end())
        if kind is not None:
            yield _LexedToken(kind, match[0], start)
            state = _NEXT_STATE.get(kind, state)
        start = match.end()
    yield _LexedToken("end", "", len(text))


def _unreadable(text: str, start: int) -> Refused:
    rest = (
        f"at {parameters.shown(text[start:])!r} (character {start + 1})"
        if start < len(text)
        else "at its end"
    )
    return invalid(
        f"the text of the query `query_string` can't be read {rest}: escape special characters with \\, "
        "or use the query `simple_query_string`, which accepts every text"
    )


def _unescaped(token: str, text: str, start: int) -> str:
    """Return the characters that a token stands for (`QueryParserBase.discardEscapeChar`)."""

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] in ("", "u"):
            raise _unreadable(text, start)
        return match[2]

    return joined_units(re.sub(r"\\u([0-9a-fA-F]{4})|\\(.?)", character, token, flags=re.DOTALL))


class _ClassicParser:
    """Parses a text with the grammar of Lucene's `QueryParser.jj`."""

    def __init__(
        self,
        text: str,
        fields: FieldQueries,
        default_field: str | None,
        boosts: Boosts,
        options: Mapping[str, Any],
    ) -> None:
        self._text = text
        self._tokens = list(_lexed(text))
        self._position = 0
        self._fields = fields
        self._default_field = default_field  # None: those of `boosts`
        self._boosts = boosts
        self._suffix = _suffix_of(options)
        self._zone = time_zone(options, "query_string")
        self._quote_analyzer = _analyzer_of(fields.parser, options, "quote_analyzer") or fields.analyzer
        self._allows_leading = parameters.flag(
            options.get("allow_leading_wildcard", True), "`allow_leading_wildcard`"
        )

    def query(self) -> Query | None:
        query = self._query(self._default_field, 0)
        self._take("end")
        return query

    # Grammar

    def _kind(self, ahead: int = 0) -> str:
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)].kind

    def _take(self, *kinds: str) -> _LexedToken:
        token = self._tokens[self._position]
        if token.kind not in kinds:
            raise _unreadable(self._text, token.start)
        self._position += token.kind != "end"
        return token

    def _accept(self, *kinds: str) -> str:
        """Return the text of the next token and go on, if it has one of the kinds; otherwise empty."""
        return self._take(*kinds).text if self._kind() in kinds else ""

    def _characters(self, token: str) -> str:
        return _unescaped(token, self._text, self._tokens[max(0, self._position - 1)].start)

    def _query(self, field: str | None, depth: int) -> Query | None:
        if depth > MOST_NESTED:
            raise _too_deep(self._fields.name)
        clauses: list[tuple[str, Query]] = []
        first: Query | None = None
        if self._are_words():
            first = self._words(field, clauses)
        else:
            sign = self._accept("+", "-", "NOT")
            clause = self._clause(field, depth)
            _add_clause(clauses, "", sign, clause, self._fields.operator)
            first = None if sign else clause
        is_alone = self._kind() not in _CLAUSES
        while self._kind() in _CLAUSES:
            if self._are_words():
                self._words(field, clauses)
            else:
                conjunction = self._take("AND", "OR").kind if self._kind() in ("AND", "OR") else ""
                sign = self._accept("+", "-", "NOT")
                _add_clause(clauses, conjunction, sign, self._clause(field, depth), self._fields.operator)
        if first is not None and (is_alone or len(clauses) == 1):
            return first
        return _bool_of(clauses)

    def _are_words(self) -> bool:
        return self._kind() == self._kind(1) == "word" and self._kind(2) not in _AFTER_WORDS

    def _words(self, field: str | None, clauses: list[tuple[str, Query]]) -> Query | None:
        """Parse words without operators, which are analyzed together; their terms become clauses."""
        words = [self._take("word").text]
        while self._kind() == "word" and self._kind(1) not in _AFTER_WORDS:
            words.append(self._take("word").text)
        query = self._of_text(field, self._characters(" ".join(words)))
        if query is not None:
            inner = query.as_bool() if isinstance(query, TermsDisjunction) else query
            role = "must" if self._fields.operator == "and" else "should"
            clauses += [
                (role, clause) for clause in (inner.children() if isinstance(inner, Bool) else [inner])
            ]
        return query

    def _clause(self, field: str | None, depth: int) -> Query | None:
        if self._kind() in ("word", "*") and self._kind(1) == ":":
            field = self._characters(self._take("word", "*").text)
            self._take(":")
        if not self._accept("("):
            return self._term(field)
        query = self._query(field, depth + 1)
        self._take(")")
        return _boosted(query, self._boost())

    def _term(self, field: str | None) -> Query | None:
        token = self._take("phrase", "[", "{", *_TERMS)
        if token.kind in ("[", "{"):
            low = self._bound()
            self._take("TO")
            high = self._bound()
            has_high = self._take("]", "}").kind == "]"
            boost = self._boost()
            return _boosted(self._range(field, low, high, token.kind == "[", has_high), boost)
        characters = self._characters(token.text)
        if token.kind == "bare operator":
            characters = characters[:1]
        boost = self._boost()
        tilde = self._accept("~")
        boost = self._boost() if boost is None and tilde else boost
        return _boosted(self._of_token(field, token, characters, tilde), boost)

    def _bound(self) -> str | None:
        token = self._take(*_BOUNDS)
        text = token.text[1:-1] if token.kind == "quoted bound" else token.text
        characters = self._characters(text)
        return None if characters == "*" else characters

    def _boost(self) -> float | None:
        return parameters.float32_of_text(self._take("number").text) if self._accept("^") else None

    # Queries

    def _of_token(self, field: str | None, token: _LexedToken, characters: str, tilde: str) -> Query | None:
        if token.kind == "phrase":
            return self._phrase(field, characters[1:-1], _slop(tilde, self._fields.slop))
        if token.kind in ("*", "pattern"):
            return self._pattern(field, token.text)
        if token.kind == "prefix":
            return self._fields.combined(
                self._boosts_of(field), lambda field: self._prefix_of(field, characters[:-1])
            )
        if token.kind == "expression":
            if self._fields.analyzer:
                raise unsupported("a regular expression with `analyzer` in the query `query_string`")
            return self._fields.combined(
                self._boosts_of(field), lambda field: of_expression(field, token.text[1:-1])
            )
        if tilde:
            return self._fields.fuzzy(self._boosts_of(field), characters, tilde[1:] or None)
        return self._of_text(field, characters)

    def _of_text(self, field: str | None, text: str) -> Query | None:
        if field == _EXISTS:
            return self._exists(text)
        if field is not None and len(text) > 1 and text[0] in "<>":
            is_closed = len(text) > 2 and text[1] == "="
            bound = text[2:] if is_closed else text[1:]
            if text[0] == ">":
                return self._range(field, bound, None, is_closed, True)
            return self._range(field, None, bound, True, is_closed)
        return self._fields.words(self._boosts_of(field), text)

    def _phrase(self, field: str | None, text: str, slop: int) -> Query | None:
        if field == _EXISTS:
            return self._exists(text)
        return self._fields.phrase(self._boosts_of(field, self._suffix), text, slop, self._quote_analyzer)

    def _exists(self, field: str) -> Query:
        return read_exists(self._fields.parser, {"field": field or NAMELESS})

    def _pattern(self, field: str | None, pattern: str) -> Query | None:
        only_field = self._default_field if field is None else field
        if pattern == "*" and only_field is not None:
            return MatchAll(late=True) if only_field == EVERY_FIELD else self._exists(only_field)
        boosts = self._boosts_of(field)
        if boosts and pattern != "*" and pattern[0] in "*?" and not self._allows_leading:
            raise invalid(f"the pattern {parameters.shown(pattern)!r} begins with a wildcard")
        return self._fields.combined(boosts, lambda field: self._pattern_of(field, pattern))

    def _pattern_of(self, field: Field, pattern: str) -> Query:
        if pattern == "*":
            return self._exists(field.name)
        if field.is_keyed:
            raise unsupported(
                f"a pattern on a key of {field.source}, which is flattened, in the query `query_string`"
            )
        forced = self._fields.analyzer if self._fields.analyzes_wildcards or field.is_text else None
        if forced and not field.has_terms:
            raise unsupported(f"a pattern with `analyze_wildcard` on {field.name}, which is {field.type},")
        analyzer = forced or field.search_analyzer
        if analyzer is not None:
            pattern = normalized_wildcard(pattern, partial(self._fields.normalized, analyzer))
        return of_wildcard(field, pattern, is_explained=forced is not None)

    def _prefix_of(self, field: Field, text: str) -> Query | None:
        return self._fields.prefix_of(field, text) if field.is_text else of_prefix(field, text)

    def _range(
        self, field: str | None, low: str | None, high: str | None, has_low: bool, has_high: bool
    ) -> Query | None:
        below, above = "gte" if has_low else "gt", "lte" if has_high else "lt"

        def of_field(field: Field) -> Query:
            analyzer = self._fields.analyzer or field.search_analyzer
            bounds = {
                name: self._fields.normalized(analyzer, bound) if analyzer else bound
                for name, bound in ((below, low), (above, high))
                if bound not in (None, "*")
            }
            if field.type == DATE:
                ends = bounds_of_dates(self._fields.parser, field, bounds, below, above, None, self._zone)
                return NumberRange(field.name, *ends)
            return between(field, bounds, below, above)

        return self._fields.combined(self._boosts_of(field), of_field)

    def _boosts_of(self, field: str | None, suffix: str = "") -> Boosts:
        if field is None and suffix:
            return matching_boosts(self._fields.parser, self._boosts, suffix)
        if field is None or field == self._default_field == EVERY_FIELD:
            return self._boosts
        return matching_boosts(self._fields.parser, {field: 1.0}, suffix, takes_all=field != EVERY_FIELD)


def _boosted(query: Query | None, boost: float | None) -> Query | None:
    if query is None or boost is None:
        return query
    return Boost(query, parameters.finite(boost, "a boost in the query `query_string`"))


def _add_clause(
    clauses: list[tuple[str, Query]], conjunction: str, sign: str, clause: Query | None, operator: str
) -> None:
    """Add a clause as `QueryParserBase.addClause`: operators change the preceding clause too."""
    if clauses and (conjunction == "AND" or (conjunction == "OR" and operator == "and")):
        role, before = clauses[-1]
        if role != "must_not":
            clauses[-1] = ("must" if conjunction == "AND" else "should", before)
    if clause is None:
        return
    if sign in ("-", "NOT", "!"):
        role = "must_not"
    elif operator == "and":
        role = "should" if conjunction == "OR" else "must"
    else:
        role = "must" if sign == "+" or conjunction == "AND" else "should"
    clauses.append((role, clause))


def _bool_of(clauses: Sequence[tuple[str, Query]]) -> Query | None:
    if not clauses:
        return None
    must, must_not, should = (
        tuple(clause for role, clause in clauses if role == wanted)
        for wanted in ("must", "must_not", "should")
    )
    return Bool(must, must_not, should, () if must or should else (MatchAll(),))


def _slop(tilde: str, default: int) -> int:
    try:
        slop = parameters.float32_of_text(tilde[1:]) if tilde else default
    except ValueError:
        return default
    return 0 if slop != slop else int(max(min(slop, parameters.LARGEST_INTEGER), -1))


def read_query_string(parser: Parser, content: Any) -> Query:
    """Read `query_string`: a text in the syntax of Lucene's classic query parser."""
    name = "query_string"
    known = (
        "query", "default_field", "fields", "default_operator", "analyzer", "quote_analyzer", "allow_leading_wildcard",
        "analyze_wildcard", "lenient", "type", "tie_breaker", "escape", "phrase_slop", "minimum_should_match",
        "quote_field_suffix", "fuzziness", "time_zone", GENERATES_PHRASES, *FUZZY,
    )  # fmt: skip
    options = parser.options(content, name, known)
    parameters.without_null(options, known, f"the query `{name}`")
    text = parameters.raw_text(required(options, "query", name), f"`query` of the query `{name}`")
    if parameters.flag(options.get("escape", False), "`escape`"):
        text = _SPECIAL.sub(r"\\\g<0>", text)
    kind = parameters.raw_text(options.get("type", "best_fields"), f"`type` of the query `{name}`")
    if kind not in TIE_BREAKERS or kind == "cross_fields":
        raise unsupported(f"`type: {kind}` of the query `{name}`")
    tie_breaker = parameters.signless(options.get("tie_breaker", TIE_BREAKERS[kind]), "tie_breaker")
    named = {} if "default_field" in options else _named(parser, options, name)
    default_field = None if named else EVERY_FIELD
    if "default_field" in options:
        if options.get("fields"):
            raise invalid(f"the query `{name}` has `fields` and `default_field`: leave one out")
        default_field = parameters.raw_text(options["default_field"], "`default_field`")
    takes_all = EVERY_FIELD in (default_field, *named)
    fields = FieldQueries(
        parser,
        name,
        kind,
        parameters.choice(options.get("default_operator", "or"), ("or", "and"), "`default_operator`"),
        _analyzer_of(parser, options, "analyzer"),
        parameters.flag(options.get("lenient", takes_all), "`lenient`"),
        parameters.flag(options.get("analyze_wildcard", False), "`analyze_wildcard`"),
        fuzziness_of(options),
        normalizes_terms=False,
        tie_breaker=tie_breaker,
        phrase_tie_breaker=tie_breaker,
        slop=parameters.integer(options.get("phrase_slop", 0), "`phrase_slop`"),
        generates_phrases=parameters.flag(options.get(GENERATES_PHRASES, True), f"`{GENERATES_PHRASES}`"),
    )
    boosts = matching_boosts(parser, named or ({EVERY_FIELD: 1.0} if takes_all else {}))
    if not text.strip(TRIMMED):
        return MatchNone(late=True)
    classic = _ClassicParser(text, fields, default_field, boosts, options)
    return _with_parameters(classic.query(), options, name)
