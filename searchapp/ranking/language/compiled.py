"""Makes a search body of a typed query: the recipe ranks the words, the other clauses choose and add to the score.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from searchapp.errors import UsageError
from searchapp.formats.problems import shown
from searchapp.names import refused
from searchapp.ranking.analyzed import Analyzed
from searchapp.ranking.language.fields import Fields, Kind
from searchapp.ranking.language.syntax import (
    Atom,
    BrokenQuery,
    Group,
    InField,
    Occur,
    Phrase,
    Prefix,
    Word,
    require_text,
)

Query = dict[str, Any]

NOTHING: Query = {"match_none": {}}

_LARGEST = {Kind.integer: float(2**63), Kind.number: 3e38}
"""No number as large as these is sought: 64 bits hold no such integer, float32 no such number."""

_MOST_DIGITS = 400
_INTEGER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)

_LONGEST_VALUE = 32_766
"""The most bytes of a value that engines look for."""

_LONGEST_ANALYZED = 1_000
"""The most characters that are looked through for a word that the analyzer keeps: longer texts have one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The documents that have a value in a field."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class Compiled:
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


class Compiler:
    """Compiles queries for some fields of an index."""

    def __init__(self, fields: Fields, analyzed: Analyzed) -> None:
        self._fields = fields
        self._analyzed = analyzed

    def compiled(self, query: Group, filters: Sequence[Filter] = ()) -> Compiled:
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
            matching = None if isinstance(atom, Word) and occur is Occur.may else self._matching(atom)
            if isinstance(atom, Word) and occur is not Occur.must_not:
                words.append(atom.text)
                required += [matching] if matching is not None else []
            elif matching is not None:
                clauses[occur].append(matching)
            elif occur is Occur.may:
                clauses[occur].append(NOTHING)
        return Compiled(
            " ".join(words),
            tuple(clauses[Occur.may]),
            tuple(clauses[Occur.must]),
            tuple(required),
            tuple(_one_of(several) for several in self._by_field(filters)),
            tuple(clauses[Occur.must_not]),
        )

    def _by_field(self, filters: Sequence[Filter]) -> Iterator[list[Query]]:
        """The filters, those of one field together: any of its values will do."""
        by_field: dict[str, list[Query]] = {}
        for one in filters:
            if one.field not in self._fields.filters:
                raise UsageError(
                    f"documents can't be filtered by {refused(one.field, self._fields.filters)}"
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
            case Group():
                return self._group(atom)
            case InField(name, inner, at):
                return self._in_field(name, inner, at)
            case Word() | Phrase() | Prefix():
                return self._in_texts(atom)
            case _:
                assert_never(atom)

    def _group(self, group: Group, field: tuple[str, int] | None = None) -> Query | None:
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

    def _in_texts(self, atom: Word | Phrase | Prefix) -> Query | None:
        every = [self._in_text(name, atom) for name in self._fields.searched]
        said = [one for one in every if one is not None]
        return _one_of(said) if said else None

    def _in_field(self, name: str, inner: Atom, at: int) -> Query | None:
        if isinstance(inner, Group):
            return self._group(inner, (name, at))
        if isinstance(inner, InField):
            raise BrokenQuery("a field can't stand inside of another: leave one of them out", at)
        if self._fields.kinds[name] is Kind.text:
            return self._in_text(name, inner)
        if isinstance(inner, Prefix):
            if self._fields.kinds[name] is not Kind.value:
                raise BrokenQuery(f"{name} holds numbers, which have no beginnings: leave out the *", at)
            return {"prefix": {name: {"value": inner.text}}}
        return self._value(name, inner.text, at)

    def _in_text(self, name: str, atom: Word | Phrase | Prefix) -> Query | None:
        match atom:
            case Prefix(text):
                return _one_of([{"prefix": {name: {"value": one}}} for one in self._beginnings(name, text)])
            case _ if not self._says_something(name, atom.text):
                return None
            case Word(text):
                return {"match": {name: {"query": text, "operator": "and"}}}
            case Phrase(text):
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
        if self._fields.kinds[name] is Kind.value:
            if len(typed.encode()) > _LONGEST_VALUE:
                raise BrokenQuery(f"a value of {name} has at most {_LONGEST_VALUE:,} bytes in UTF-8", at)
            return {"term": {name: {"value": typed}}}
        return {"term": {name: {"value": self._number(name, typed, at)}}}

    def _number(self, name: str, typed: str, at: int) -> int | float:
        is_whole = self._fields.kinds[name] is Kind.integer
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
