"""The query language: what people type to search, words and a few signs that say more than words.

    normal subgroup            documents about these words, ranked by the recipe
    "normal subgroup"          also those with the phrase
    +normal -abelian           must have, must not have
    algebr*                    words that begin so
    speaker:CLINTON            a value of a field
    +(abelian "prime ideal")   groups

    query   = { clause }
    clause  = [ "+" | "-" ] atom
    atom    = word | word "*" | '"' phrase '"' | field ":" atom | "(" query ")"

People type mathematics and prose, so a sign counts only where it can mean nothing else: `+`, `-`, a quotation mark
and a parenthesis at the beginning of an atom, a colon behind the name of a field, a star behind a letter or digit at
the end of a word. `f(x)`, `x - 1`, `don't`, `a*b` and `f: A` are words. What stands between two dollar signs is one
word where they stand as TeX's do, right at what they enclose and not before a number: `$5 and $6` are three words. A
backslash before an atom, before a field, before a star or parenthesis at the end, or in a phrase before a quotation
mark takes the meaning of the sign away.

The compiler makes a search body of the clauses, in Elasticsearch's query DSL, so that both engines give the same
hits:

- Words go to the recipe in their order, as the text of a topic does: words alone are asked as that topic is.
- A phrase, a prefix, a field or a group that may match adds its BM25 score where it does (a prefix and a value of a
  field add 1); without words one of them has to match.
- What must match is scored likewise, but words that must: the recipe scores them already, and documents without them
  are left out. Words that the analyzer drops, such as `the`, leave out nothing, in phrases and groups neither.
- What must not match, and the filters, leave out documents and score nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, assert_never

from searchapp.errors import UsageError
from searchapp.formats.problems import shown
from searchapp.ranking.highlighting import TextAnalyzer, index_analyzer, search_analyzer
from searchapp.text import choices_hint

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
class QueryWord:
    """A word as it was typed; it may come to several terms, or none."""

    text: str


@dataclass(frozen=True, slots=True)
class QueryPhrase:
    """Words that stand side by side."""

    text: str


@dataclass(frozen=True, slots=True)
class QueryPrefix:
    """How a word begins."""

    text: str


@dataclass(frozen=True, slots=True)
class FieldQuery:
    """What is sought in one field; `at` is the place of what stands behind the colon."""

    field: str
    inner: Atom
    at: int


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Clauses in parentheses, or all of a query."""

    clauses: tuple[QueryClause, ...]


Atom: TypeAlias = QueryWord | QueryPhrase | QueryPrefix | FieldQuery | QueryGroup


@dataclass(frozen=True, slots=True)
class QueryClause:
    """An atom, and whether it must match."""

    occur: Occur
    atom: Atom


def parsed(text: str, fields: Collection[str] = ()) -> QueryGroup:
    """The clauses of a query; `fields` are the names that mean a field before a colon.

    >>> parsed('ring +"prime ideal" -(x*)').clauses[1]
    QueryClause(occur=<Occur.must: '+'>, atom=QueryPhrase(text='prime ideal'))

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
    return QueryGroup(clauses)


def without_signs(query: QueryGroup) -> QueryGroup:
    """A query that asks for the same, but lets every clause be missing: what must not match is not in it.

    >>> without_signs(parsed("+ring -field")).clauses
    (QueryClause(occur=<Occur.may: ''>, atom=QueryWord(text='ring')),)
    """
    left = (clause for clause in query.clauses if clause.occur is not Occur.must_not)
    return QueryGroup(tuple(QueryClause(Occur.may, clause.atom) for clause in left))


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

    def clauses(self, depth: int) -> Iterator[QueryClause]:
        """The clauses up to the end, or up to a parenthesis that closes a group."""
        while True:
            self._skip_space()
            if self.is_at_end or self._next() == ")":
                return
            begun, occur = self.at, Occur.may
            if self._next() in "+-" and self._is_sign():
                occur = Occur(self._next())
                self.at += 1
            clause = QueryClause(occur, self._atom(depth))
            self._signs += depth > 0 or occur is not Occur.may or not isinstance(clause.atom, QueryWord)
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
        return FieldQuery(named[1], self._atom(depth, in_field=True), named.end())

    def _group(self, depth: int) -> QueryGroup:
        opened = self.at
        if depth == DEEPEST:
            raise BrokenQuery(f"groups stand in each other more than {DEEPEST} deep", opened)
        self.at += 1
        clauses = tuple(self.clauses(depth + 1))
        if self.is_at_end:
            raise BrokenQuery('this "(" is not closed: add ")" or put \\ before it', opened)
        self.at += 1
        return QueryGroup(clauses)

    def _phrase(self) -> QueryPhrase:
        opened = self.at
        quoted = _QUOTED.match(self._text, opened + 1)
        if quoted is None:
            raise BrokenQuery("this quotation mark is not closed: add another or put \\ before it", opened)
        if len(quoted[1].split()) > LONGEST_PHRASE:
            raise BrokenQuery(f"a phrase has at most {LONGEST_PHRASE:,} words", opened)
        self.at = quoted.end()
        return QueryPhrase(quoted[1].replace('\\"', '"'))

    def _word(self, depth: int) -> QueryWord | QueryPrefix:
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
            return QueryWord(f"{word[:-2]}*")
        if word.endswith("*") and word[-2:-1].isalnum():
            if len(word) > LONGEST_PREFIX + 1:
                raise BrokenQuery(f"the beginning of a word has at most {LONGEST_PREFIX} characters", start)
            return QueryPrefix(word[:-1])
        return QueryWord(word)

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


ID = "id"

_INTEGERS = {"long", "integer", "short", "byte"}
_FLOATS = {"double", "float", "half_float"}


class FieldKind(Enum):
    """What a field holds: text that is analyzed, values that are the same or not, numbers."""

    text = "text"
    value = "value"
    integer = "integer"
    number = "number"


@dataclass(frozen=True, slots=True)
class SearchFields:
    """Fields by their full names, and the names of those texts that words without a field are looked for in.

    `analyzers` are what queries in the texts are analyzed by, `indexed_by` what the texts are; `filters` the fields by
    whose values documents are chosen: all that are no text, but the id.
    """

    kinds: Mapping[str, FieldKind]
    searched: tuple[str, ...]
    analyzers: Mapping[str, str]
    indexed_by: Mapping[str, str]
    filters: tuple[str, ...]

    @classmethod
    def of(cls, mapping: Mapping[str, Any], query: Mapping[str, Any]) -> SearchFields:
        """The fields of a create-index body; words are looked for in those texts that a recipe's query matches.

        A query that matches sub-fields stands for the text itself: `text.prose` has only a part of what `text` says.
        """
        described = dict(_described(mapping.get("mappings", {}).get("properties", {})))
        kinds = {name: kind for name, one in described.items() if (kind := _kind(one.field)) is not None}
        matched = {described[name].whole for name in _matched(query) if name in described}
        texts = [name for name, kind in kinds.items() if kind is FieldKind.text]
        whole = [name for name in texts if name == described[name].whole]
        return cls(
            kinds,
            tuple(name for name in whole if name in matched) or tuple(whole),
            {name: search_analyzer(mapping, described[name].field) for name in texts},
            {name: index_analyzer(mapping, described[name].field) for name in texts},
            tuple(
                name
                for name, kind in kinds.items()
                if kind is not FieldKind.text and name != ID and name == described[name].whole
            ),
        )

    @property
    def facets(self) -> tuple[str, ...]:
        """Those of the `filters` whose values are counted: numbers are too many."""
        return tuple(name for name in self.filters if self.kinds[name] is FieldKind.value)


class _Described(NamedTuple):
    """A field as the mapping describes it; `whole` is the field that it is a sub-field of, or itself."""

    field: Mapping[str, Any]
    whole: str


def _described(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, _Described]]:
    for short, field in properties.items():
        name = prefix + short
        yield name, _Described(field, name)
        for inner, also in field.get("fields", {}).items():
            yield f"{name}.{inner}", _Described(also, name)
        yield from _described(field.get("properties", {}), f"{name}.")


def _kind(field: Mapping[str, Any]) -> FieldKind | None:
    """What a field holds; None if it can't be searched."""
    type_ = field.get("type", "")
    if field.get("index", True) in (False, "false"):
        return None
    if type_ == "text":
        return FieldKind.text
    if type_ == "keyword":
        return FieldKind.value
    if type_ in _INTEGERS:
        return FieldKind.integer
    return FieldKind.number if type_ in _FLOATS else None


def _matched(query: Any) -> Iterator[str]:
    """The fields of every `match`, `match_phrase` and `multi_match` anywhere in a query."""
    if isinstance(query, Mapping):
        for key, content in query.items():
            if key in ("match", "match_phrase") and isinstance(content, Mapping):
                yield from content
            elif key == "multi_match" and isinstance(content, Mapping):
                named = content.get("fields", ())
                yield from (name.partition("^")[0] for name in ([named] if isinstance(named, str) else named))
            else:
                yield from _matched(content)
    elif isinstance(query, list | tuple):
        for one in query:
            yield from _matched(one)


Query = dict[str, Any]

NOTHING: Query = {"match_none": {}}

_LARGEST = {FieldKind.integer: float(2**63), FieldKind.number: 3e38}
"""No number as large as these is sought: 64 bits hold no such integer, float32 no such number."""

_MOST_DIGITS = 400
_INTEGER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)

_LONGEST_VALUE = 32_766
"""The most bytes of a value that engines look for."""

_LONGEST_ANALYZED = 1_000
"""The most characters that are looked through for a word that the analyzer keeps: longer texts have one."""


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """The documents that have a value in a field."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A typed query: `words` are for the recipe, the rest are clauses of a `bool`.

    `required` are words that must match, which score nothing by themselves.
    """

    words: str
    should: tuple[Query, ...]
    must: tuple[Query, ...]
    required: tuple[Query, ...]
    filters: tuple[Query, ...]
    must_not: tuple[Query, ...]

    @property
    def is_words_alone(self) -> bool:
        """Whether it says no more than which words to rank by."""
        return not (self.should or self.must or self.required or self.filters or self.must_not)

    def query(self, ranking: Mapping[str, Any] | None) -> Query:
        """The query, given that of the recipe for the words, if there are any.

        Where nothing must match and nothing may, all documents are left, each with the score 1.
        """
        if ranking is not None and self.is_words_alone:
            return dict(ranking)
        should = (dict(ranking), *self.should) if ranking is not None else self.should
        must = self.must or (() if should or self.required else ({"match_all": {}},))
        needs_one = bool(should) and not must and not self.required
        return _bool(
            should=should,
            must=must,
            filter=(*self.required, *self.filters),
            must_not=self.must_not,
            minimum_should_match=1 if needs_one else None,
        )

    def choosing(self) -> Query | None:
        """What a document has to match to be left, whatever its score; None if each is.

        This is for rankings that no single query makes.
        """
        should = () if self.words else self.should
        needs_one = bool(should) and not self.must and not self.required
        chosen = _bool(
            should=should if needs_one else (),
            filter=(*self.must, *self.required, *self.filters),
            must_not=self.must_not,
            minimum_should_match=1 if needs_one else None,
        )
        return chosen if chosen["bool"] else None


class QueryCompiler:
    """Compiles queries for some fields of an index."""

    def __init__(self, fields: SearchFields, analyzed: TextAnalyzer) -> None:
        self._fields = fields
        self._analyzed = analyzed

    def compiled(self, query: QueryGroup, filters: Sequence[FieldFilter] = ()) -> CompiledQuery:
        """The clauses of a query and of filters.

        Raises:
            BrokenQuery: a field is asked for something that it can't hold.
            UsageError: a filter is on a field that there is not, or that is a text.
        """
        words: list[str] = []
        clauses: dict[Occur, list[Query]] = {occur: [] for occur in Occur}
        required: list[Query] = []
        for clause in query.clauses:
            atom, occur = clause.atom, clause.occur
            matching = None if isinstance(atom, QueryWord) and occur is Occur.may else self._matching(atom)
            if isinstance(atom, QueryWord) and occur is not Occur.must_not:
                words.append(atom.text)
                required += [matching] if matching is not None else []
            elif matching is not None:
                clauses[occur].append(matching)
            elif occur is Occur.may:
                clauses[occur].append(NOTHING)
        return CompiledQuery(
            " ".join(words),
            tuple(clauses[Occur.may]),
            tuple(clauses[Occur.must]),
            tuple(required),
            tuple(_one_of(several) for several in self._by_field(filters)),
            tuple(clauses[Occur.must_not]),
        )

    def _by_field(self, filters: Sequence[FieldFilter]) -> Iterator[list[Query]]:
        """The filters, those of one field together: any of its values will do."""
        by_field: dict[str, list[Query]] = {}
        for one in filters:
            if one.field not in self._fields.filters:
                raise UsageError(
                    f"documents can't be filtered by {choices_hint(one.field, self._fields.filters)}"
                    if self._fields.filters
                    else "the documents of this task have no fields to filter by"
                )
            try:
                require_text(one.value)
                asked = self._value(one.field, one.value, 0)
            except BrokenQuery as error:
                raise UsageError(f"the filter {one.field}={shown(one.value)}: {error.what}") from None
            by_field.setdefault(one.field, []).append(asked)
        yield from by_field.values()

    def _matching(self, atom: Atom) -> Query | None:
        """The documents that match an atom, whichever texts it stands in; None if it says nothing at all."""
        match atom:
            case QueryGroup():
                return self._group(atom)
            case FieldQuery(name, inner, at):
                return self._in_field(name, inner, at)
            case QueryWord() | QueryPhrase() | QueryPrefix():
                return self._in_texts(atom)
            case _:
                assert_never(atom)

    def _group(self, group: QueryGroup, field: tuple[str, int] | None = None) -> Query | None:
        parts: dict[Occur, list[Query]] = {occur: [] for occur in Occur}
        for clause in group.clauses:
            inner = (
                self._matching(clause.atom)
                if field is None
                else self._in_field(field[0], clause.atom, field[1])
            )
            if inner is not None:
                parts[clause.occur].append(inner)
        should, must, must_not = parts[Occur.may], parts[Occur.must], parts[Occur.must_not]
        if not (should or must or must_not):
            return None
        if not should and not must:
            must = [{"match_all": {}}]
        return _bool(
            should=should,
            must=must,
            must_not=must_not,
            minimum_should_match=1 if should and not must else None,
        )

    def _in_texts(self, atom: QueryWord | QueryPhrase | QueryPrefix) -> Query | None:
        every = [self._in_text(name, atom) for name in self._fields.searched]
        said = [one for one in every if one is not None]
        return _one_of(said) if said else None

    def _in_field(self, name: str, inner: Atom, at: int) -> Query | None:
        if isinstance(inner, QueryGroup):
            return self._group(inner, (name, at))
        if isinstance(inner, FieldQuery):
            raise BrokenQuery("a field can't stand inside of another: leave one of them out", at)
        if self._fields.kinds[name] is FieldKind.text:
            return self._in_text(name, inner)
        if isinstance(inner, QueryPrefix):
            if self._fields.kinds[name] is not FieldKind.value:
                raise BrokenQuery(f"{name} holds numbers, which have no beginnings: leave out the *", at)
            return {"prefix": {name: {"value": inner.text}}}
        return self._value(name, inner.text, at)

    def _in_text(self, name: str, atom: QueryWord | QueryPhrase | QueryPrefix) -> Query | None:
        match atom:
            case QueryPrefix(text):
                return _one_of([{"prefix": {name: {"value": one}}} for one in self._beginnings(name, text)])
            case _ if not self._says_something(name, atom.text):
                return None
            case QueryWord(text):
                return {"match": {name: {"query": text, "operator": "and"}}}
            case QueryPhrase(text):
                return {"match_phrase": {name: {"query": text}}}
            case _:
                assert_never(atom)

    def _says_something(self, name: str, typed: str) -> bool:
        """Whether the analyzer of a field leaves anything of a text that is looked for."""
        if len(typed) > _LONGEST_ANALYZED:
            return True
        return bool(self._analyzed.tokens(self._fields.analyzers[name], typed))

    def _beginnings(self, name: str, typed: str) -> list[str]:
        """How terms begin whose words begin as typed: in lower case, and as the analyzer leaves it."""
        terms = {token.term for token in self._analyzed.tokens(self._fields.indexed_by[name], typed)}
        return sorted({typed.lower(), *(terms if len(terms) == 1 else ())})

    def _value(self, name: str, typed: str, at: int) -> Query:
        if self._fields.kinds[name] is FieldKind.value:
            if len(typed.encode()) > _LONGEST_VALUE:
                raise BrokenQuery(f"a value of {name} has at most {_LONGEST_VALUE:,} bytes in UTF-8", at)
            return {"term": {name: {"value": typed}}}
        return {"term": {name: {"value": self._number(name, typed, at)}}}

    def _number(self, name: str, typed: str, at: int) -> int | float:
        is_whole = self._fields.kinds[name] is FieldKind.integer
        if not (_INTEGER if is_whole else _NUMBER).fullmatch(typed):
            what = "whole numbers" if is_whole else "numbers"
            raise BrokenQuery(f"{name} holds {what}, and {shown(typed)!r} is none", at)
        number: int | float = math.inf
        if len(typed) <= _MOST_DIGITS:
            number = int(typed) if is_whole else float(typed)
        if abs(number) >= _LARGEST[self._fields.kinds[name]]:
            raise BrokenQuery(f"{name} holds no number as large as {shown(typed)}", at)
        return number


def _one_of(queries: Sequence[Query]) -> Query:
    """The best of several queries."""
    return queries[0] if len(queries) == 1 else {"dis_max": {"queries": list(queries)}}


def _bool(minimum_should_match: int | None = None, **clauses: Sequence[Query]) -> Query:
    described: Query = {name: list(queries) for name, queries in clauses.items() if queries}
    if minimum_should_match is not None:
        described["minimum_should_match"] = minimum_should_match
    return {"bool": described}


__all__ = [
    "BrokenQuery",
    "FieldFilter",
    "QueryCompiler",
    "SearchFields",
    "parsed",
    "require_text",
    "without_signs",
]
