"""The query language: words, and a few operators; it compiles to Elasticsearch's query DSL.

    normal subgroup            documents about these words, ranked by the recipe
    "normal subgroup"          also documents with the phrase
    +normal -abelian           must have, must not have
    algebr*                    words with this prefix
    speaker:CLINTON            a value of a field
    +(abelian "prime ideal")   groups

    query   = { clause }
    clause  = [ "+" | "-" ] atom
    atom    = word | word "*" | '"' phrase '"' | field ":" atom | "(" query ")"

Users type mathematics and prose, so an operator counts only where it is unambiguous: `+`, `-`, a quotation mark and a
parenthesis at the beginning of an atom, a colon after the name of a field, a star after a letter or digit at the end
of a word. `f(x)`, `x - 1`, `don't`, `a*b` and `f: A` are words. Text between two dollar signs is one word if they are
adjacent to their content and no number follows, as in TeX: `$5 and $6` are three words. A backslash escapes an
operator.

Words go to the recipe in their order, as the text of a topic does. An optional phrase, prefix, field or group adds
its score where it matches. Required words only filter, because the recipe scores them already; other required clauses
also add their score. Words that the analyzer removes, such as `the`, exclude no document.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias, assert_never

from searchapp.errors import UsageError
from searchapp.formats.problems import shown
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import MappedField, mapped_fields
from searchapp.ranking.highlighting import TextAnalyzer, index_analyzer, search_analyzer
from searchapp.text import choices_hint

# The greatest depth of nested groups.
MAX_DEPTH = 20

# The most clauses other than words. Each matches in a few fields, and servers allow 1,024 clauses or more.
MAX_OPERATORS = 250

# In characters without white space: engines differ for terms longer than 32,766 bytes.
MAX_WORD_LENGTH = 10_000

# In characters: engines reject more than 1,000, and the lower-case form may be longer.
MAX_PREFIX_LENGTH = 500

# In words: a server needs minutes for many more.
MAX_PHRASE_WORDS = 1_000


class BrokenQuery(UsageError):
    """A query that can't be parsed."""

    def __init__(self, what: str, at: int) -> None:
        self.what = what  # the reason
        self.at = at  # the index of the wrong character
        super().__init__(f"character {at + 1} of the query: {what}")


class Occur(Enum):
    """Whether documents may, must or must not match a clause."""

    may = ""
    must = "+"
    must_not = "-"


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A typed word, which analyzes to any number of terms."""

    text: str
    at: int = field(default=0, compare=False, repr=False)  # the index of its first character


@dataclass(frozen=True, slots=True)
class QueryPhrase:
    """Adjacent words."""

    text: str
    at: int = field(default=0, compare=False, repr=False)  # the index after the quotation mark


@dataclass(frozen=True, slots=True)
class QueryPrefix:
    """The beginning of a word."""

    text: str


@dataclass(frozen=True, slots=True)
class FieldQuery:
    """A query in one field."""

    field: str
    inner: Atom
    at: int  # the index after the colon


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Clauses in parentheses, or a whole query."""

    clauses: tuple[QueryClause, ...]


Atom: TypeAlias = QueryWord | QueryPhrase | QueryPrefix | FieldQuery | QueryGroup


@dataclass(frozen=True, slots=True)
class QueryClause:
    """An atom, and whether it must match."""

    occur: Occur
    atom: Atom


def parse_query(text: str, fields: Collection[str] = ()) -> QueryGroup:
    """Parse a query; `fields` are the field names that a colon may follow.

    >>> parsed('ring +"prime ideal" -(x*)').clauses[1]
    QueryClause(occur=<Occur.must: '+'>, atom=QueryPhrase(text='prime ideal'))

    Raises:
        BrokenQuery: a quotation mark or parenthesis is not closed, a limit is exceeded, or the text is not UTF-8.
    """
    require_text(text)
    reader = _Reader(text, fields)
    clauses = tuple(reader.clauses(0))
    if not reader.is_at_end:
        raise BrokenQuery('this ")" has no "(": put \\ before it to search for it', reader.at)
    return QueryGroup(clauses)


def without_signs(query: QueryGroup) -> QueryGroup:
    """Return the query's clauses as optional ones, without the excluded clauses.

    >>> without_signs(parsed("+ring -field")).clauses
    (QueryClause(occur=<Occur.may: ''>, atom=QueryWord(text='ring')),)
    """
    remaining = (clause for clause in query.clauses if clause.occur is not Occur.must_not)
    return QueryGroup(tuple(QueryClause(Occur.may, clause.atom) for clause in remaining))


def without_quotes(query: QueryGroup) -> QueryGroup:
    """Return a query with the words of its phrases in place of them."""

    def unquoted(atom: Atom) -> Atom:
        match atom:
            case QueryPhrase(text):
                return QueryWord(text, atom.at)
            case FieldQuery(name, inner, at):
                return FieldQuery(name, unquoted(inner), at)
            case QueryGroup():
                return without_quotes(atom)
            case _:
                return atom

    return QueryGroup(tuple(QueryClause(clause.occur, unquoted(clause.atom)) for clause in query.clauses))


def require_text(text: str) -> None:
    """Check that a text is valid Unicode, unlike some terminal input, and that its words have limited length.

    Raises:
        BrokenQuery: it is not.
    """
    surrogate = _SURROGATE.search(text)
    if surrogate is not None:
        raise BrokenQuery("invalid character: the text is not UTF-8", surrogate.start())
    word = _OVERLONG_WORD.search(text)
    if word is not None:
        raise BrokenQuery(f"this word has more than {MAX_WORD_LENGTH:,} characters", word.start())


_SURROGATE = re.compile("[\ud800-\udfff]")
_OVERLONG_WORD = re.compile(rf"(?<!\S)\S{{{MAX_WORD_LENGTH + 1}}}")
_SPACE = re.compile(r"\s*")
_FORMULA = re.compile(r"\$\$.+?\$\$|\$(?!\s)(?:[^$\\]|\\.)*(?<!\s)\$(?!\d)", re.DOTALL)
_QUOTED = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL)


class _Reader:
    def __init__(self, text: str, fields: Collection[str]) -> None:
        self.at = 0
        self._operators = 0
        self._text = text
        names = "|".join(sorted(map(re.escape, fields), key=len, reverse=True))
        self._field = re.compile(rf"({names}):(?=[^\s)])") if names else None

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self._text)

    def clauses(self, depth: int) -> Iterator[QueryClause]:
        while True:
            self._skip_space()
            if self.is_at_end or self._next() == ")":
                return
            start, occur = self.at, Occur.may
            if self._next() in "+-" and self._is_sign():
                occur = Occur(self._next())
                self.at += 1
            clause = QueryClause(occur, self._atom(depth))
            self._operators += depth > 0 or occur is not Occur.may or not isinstance(clause.atom, QueryWord)
            if self._operators > MAX_OPERATORS:
                raise BrokenQuery(
                    f"a query can have at most {MAX_OPERATORS} phrases, groups and signs: leave out "
                    "the rest from here",
                    start,
                )
            yield clause

    def _is_sign(self) -> bool:
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
            raise BrokenQuery("a field can't contain another field: leave one of them out", self.at)
        self.at = named.end()
        return FieldQuery(named[1], self._atom(depth, in_field=True), named.end())

    def _group(self, depth: int) -> QueryGroup:
        start = self.at
        if depth == MAX_DEPTH:
            raise BrokenQuery(f"groups are nested more than {MAX_DEPTH} deep", start)
        self.at += 1
        clauses = tuple(self.clauses(depth + 1))
        if self.is_at_end:
            raise BrokenQuery('this "(" is not closed: add ")" or put \\ before it', start)
        self.at += 1
        return QueryGroup(clauses)

    def _phrase(self) -> QueryPhrase:
        start = self.at
        quoted = _QUOTED.match(self._text, start + 1)
        if quoted is None:
            raise BrokenQuery("this quotation mark is not closed: add another or put \\ before it", start)
        if len(quoted[1].split()) > MAX_PHRASE_WORDS:
            raise BrokenQuery(f"a phrase can have at most {MAX_PHRASE_WORDS:,} words", start)
        self.at = quoted.end()
        return QueryPhrase(quoted[1].replace('\\"', '"'), start + 1)

    def _word(self, depth: int) -> QueryWord | QueryPrefix:
        """Read up to the next space, or to the parenthesis that closes the group; pairs of parentheses belong to the
        word.
        """
        start, depth_of_parentheses = self.at, 0
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
            elif character == ")" and depth_of_parentheses == 0 and depth:
                break
            else:
                depth_of_parentheses += (character == "(") - (character == ")" and depth_of_parentheses > 0)
            parts.append(self._text[self.at : self.at + step])
            self.at += step
        word = "".join(parts)
        if word.endswith("\\*"):
            return QueryWord(f"{word[:-2]}*", start)
        if word.endswith("*") and word[-2:-1].isalnum():
            if len(word) > MAX_PREFIX_LENGTH + 1:
                raise BrokenQuery(
                    f"the prefix before * can have at most {MAX_PREFIX_LENGTH} characters", start
                )
            return QueryPrefix(word[:-1])
        return QueryWord(word, start)

    def _is_escaped(self) -> bool:
        rest = self._text[self.at : self.at + 2]
        if rest[:1] != "\\":
            return False
        return rest[1:] in set('+-"()') or self._field_at(self.at + 1) is not None

    def _field_at(self, position: int) -> re.Match[str] | None:
        return self._field.match(self._text, position) if self._field is not None else None

    def _next(self) -> str:
        return self._text[self.at]

    def _skip_space(self) -> None:
        spaces = _SPACE.match(self._text, self.at)
        assert spaces is not None
        self.at = spaces.end()


ID = "id"

_INTEGERS = {"long", "integer", "short", "byte"}
_FLOATS = {"double", "float", "half_float"}


class FieldKind(Enum):
    """The content of a field: analyzed text, exact values, numbers."""

    text = "text"
    value = "value"
    integer = "integer"
    number = "number"


@dataclass(frozen=True, slots=True)
class SearchFields:
    """The fields of an index that queries can use."""

    kinds: Mapping[str, FieldKind]  # by full name
    searched: tuple[str, ...]  # text fields that match words without a field
    analyzers: Mapping[str, str]  # search analyzers of text fields
    indexed_by: Mapping[str, str]  # index analyzers of text fields
    filters: tuple[str, ...]  # fields whose values filter documents: all except text fields and the id

    @classmethod
    def of(cls, mapping: Mapping[str, Any], query: Mapping[str, Any]) -> SearchFields:
        """Return the fields of a create-index body; `query` is the recipe's, whose text fields words match."""
        fields = {
            field.name: field for field in mapped_fields(mapping.get("mappings", {}).get("properties", {}))
        }
        kinds = {name: kind for name, field in fields.items() if (kind := _kind(field)) is not None}
        # A query of a sub-field counts as one of its text: `text.prose` has only a part of the words of `text`.
        matched = {fields[name].source for name in _matched_fields(query) if name in fields}
        texts = [name for name, kind in kinds.items() if kind is FieldKind.text]
        whole_texts = [name for name in texts if name == fields[name].source]
        return cls(
            kinds,
            tuple(name for name in whole_texts if name in matched) or tuple(whole_texts),
            {name: search_analyzer(mapping, fields[name].described) for name in texts},
            {name: index_analyzer(mapping, fields[name].described) for name in texts},
            tuple(
                name
                for name, kind in kinds.items()
                if kind is not FieldKind.text and name != ID and name == fields[name].source
            ),
        )

    @property
    def facets(self) -> tuple[str, ...]:
        """The `filters` with counted values: numbers have too many values."""
        return tuple(name for name in self.filters if self.kinds[name] is FieldKind.value)


def _kind(mapped: MappedField) -> FieldKind | None:
    described = mapped.described
    if mapped.is_nested or described.get("index", True) in (False, "false"):
        return None
    if mapped.type == "keyword" and described.get("doc_values", True) in (False, "false"):
        return None  # its values can't be counted
    if mapped.type == "text":
        return FieldKind.text
    if mapped.type == "keyword":
        return FieldKind.value
    if mapped.type in _INTEGERS:
        return FieldKind.integer
    return FieldKind.number if mapped.type in _FLOATS else None


_BY_FIELD = ("match", "match_bool_prefix", "match_phrase", "match_phrase_prefix")


def _matched_fields(query: Any) -> Iterator[str]:
    if isinstance(query, Mapping):
        for key, content in query.items():
            if key in _BY_FIELD and isinstance(content, Mapping):
                yield from content
            elif key in ("multi_match", "combined_fields") and isinstance(content, Mapping):
                fields = content.get("fields", ())
                yield from (
                    name.partition("^")[0] for name in ([fields] if isinstance(fields, str) else fields)
                )
            else:
                yield from _matched_fields(content)
    elif isinstance(query, list | tuple):
        for clause in query:
            yield from _matched_fields(clause)


Query = dict[str, Any]

NOTHING: Query = {"match_none": {}}

# The least number that is out of range: of 64-bit integers, of float32.
_OUT_OF_RANGE = {FieldKind.integer: float(2**63), FieldKind.number: 3e38}

_MAX_DIGITS = 400
_INTEGER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)

# The most bytes of a value that an engine accepts in a query.
_MAX_VALUE_BYTES = 32_766

# The most characters of a text that is analyzed to check that a word remains: longer texts have one.
_MAX_ANALYZED_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """Limits a ranking to documents with a value in a field."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A typed query: words for the recipe, and clauses of a `bool`."""

    words: str
    should: tuple[Query, ...]
    must: tuple[Query, ...]
    required: tuple[Query, ...]  # words that must match and add no score
    filters: tuple[Query, ...]
    must_not: tuple[Query, ...]

    @property
    def is_words_alone(self) -> bool:
        return not (self.should or self.must or self.required or self.filters or self.must_not)

    def query(self, ranking: Mapping[str, Any] | None) -> Query:
        """Return the query, given the recipe's query for the words, if any.

        Without required and optional clauses, all documents match with the score 1.
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

    def filter_query(self) -> Query | None:
        """Return the query that selects documents, without scores; None if all match.

        For rankings that no single query makes.
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
    """Compiles queries for the fields of an index."""

    def __init__(self, fields: SearchFields, analyzed: TextAnalyzer) -> None:
        self._fields = fields
        self._analyzed = analyzed

    def compile(self, query: QueryGroup, filters: Sequence[FieldFilter] = ()) -> CompiledQuery:
        """Return the clauses of a query and of filters.

        Raises:
            BrokenQuery: a value is invalid for its field.
            UsageError: a filter's field is unknown or a text field.
        """
        words: list[str] = []
        clauses: dict[Occur, list[Query]] = {occur: [] for occur in Occur}
        required: list[Query] = []
        for clause in query.clauses:
            atom, occur = clause.atom, clause.occur
            query_ = None if isinstance(atom, QueryWord) and occur is Occur.may else self._matching(atom)
            if isinstance(atom, QueryWord) and occur is not Occur.must_not:
                words.append(atom.text)
                required += [query_] if query_ is not None else []
            elif query_ is not None:
                clauses[occur].append(query_)
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
        by_field: dict[str, list[Query]] = {}
        for filter_ in filters:
            if filter_.field not in self._fields.filters:
                raise UsageError(
                    f"unknown filter field {choices_hint(filter_.field, self._fields.filters)}"
                    if self._fields.filters
                    else "the documents of this task have no fields to filter by"
                )
            try:
                require_text(filter_.value)
                query = self._value(filter_.field, filter_.value, 0)
            except BrokenQuery as error:
                raise UsageError(f"the filter {filter_.field}={shown(filter_.value)}: {error.what}") from None
            by_field.setdefault(filter_.field, []).append(query)
        yield from by_field.values()

    def _matching(self, atom: Atom) -> Query | None:
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
        clauses: dict[Occur, list[Query]] = {occur: [] for occur in Occur}
        for clause in group.clauses:
            inner = (
                self._matching(clause.atom)
                if field is None
                else self._in_field(field[0], clause.atom, field[1])
            )
            if inner is not None:
                clauses[clause.occur].append(inner)
        should, must, must_not = clauses[Occur.may], clauses[Occur.must], clauses[Occur.must_not]
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
        queries = [self._in_text(name, atom) for name in self._fields.searched]
        matching = [query for query in queries if query is not None]
        return _one_of(matching) if matching else None

    def _in_field(self, name: str, inner: Atom, at: int) -> Query | None:
        if isinstance(inner, QueryGroup):
            return self._group(inner, (name, at))
        if isinstance(inner, FieldQuery):
            raise BrokenQuery("a field can't contain another field: leave one of them out", at)
        if self._fields.kinds[name] is FieldKind.text:
            return self._in_text(name, inner)
        if isinstance(inner, QueryPrefix):
            if self._fields.kinds[name] is not FieldKind.value:
                raise BrokenQuery(f"{name} is a number field, which has no prefixes: leave out the *", at)
            return {"prefix": {name: {"value": inner.text}}}
        return self._value(name, inner.text, at)

    def _in_text(self, name: str, atom: QueryWord | QueryPhrase | QueryPrefix) -> Query | None:
        match atom:
            case QueryPrefix(text):
                return _one_of(
                    [{"prefix": {name: {"value": beginning}}} for beginning in self._prefixes(name, text)]
                )
            case _ if not self._has_terms(name, atom.text):
                return None
            case QueryWord(text):
                return {"match": {name: {"query": text, "operator": "and"}}}
            case QueryPhrase(text):
                return {"match_phrase": {name: {"query": text}}}
            case _:
                assert_never(atom)

    def _has_terms(self, name: str, text: str) -> bool:
        if len(text) > _MAX_ANALYZED_LENGTH:
            return True
        return self._analyzed.has_tokens(self._fields.analyzers[name], text)

    def _prefixes(self, name: str, text: str) -> list[str]:
        terms = {token.term for token in self._analyzed.tokens(self._fields.indexed_by[name], text)}
        return sorted({text.lower(), *(terms if len(terms) == 1 else ())})

    def _value(self, name: str, text: str, at: int) -> Query:
        if self._fields.kinds[name] is FieldKind.value:
            if len(text.encode()) > _MAX_VALUE_BYTES:
                raise BrokenQuery(
                    f"a value of {name} can have at most {_MAX_VALUE_BYTES:,} bytes in UTF-8", at
                )
            return {"term": {name: {"value": text}}}
        return {"term": {name: {"value": self._number(name, text, at)}}}

    def _number(self, name: str, text: str, at: int) -> int | float:
        is_integer = self._fields.kinds[name] is FieldKind.integer
        if not (_INTEGER if is_integer else _NUMBER).fullmatch(text):
            expected = "whole numbers" if is_integer else "numbers"
            raise BrokenQuery(f"{name} is a field of {expected}, not {shown(text)!r}", at)
        number: int | float = math.inf
        if len(text) <= _MAX_DIGITS:
            number = int(text) if is_integer else float(text)
        if abs(number) >= _OUT_OF_RANGE[self._fields.kinds[name]]:
            raise BrokenQuery(f"{shown(text)} is out of range for {name}", at)
        return number


def _one_of(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else {"dis_max": {"queries": list(queries)}}


def _bool(minimum_should_match: int | None = None, **clauses: Sequence[Query]) -> Query:
    parts: Query = {name: list(queries) for name, queries in clauses.items() if queries}
    if minimum_should_match is not None:
        parts["minimum_should_match"] = minimum_should_match
    return {"bool": parts}


__all__ = [
    "BrokenQuery",
    "FieldFilter",
    "QueryCompiler",
    "SearchFields",
    "parse_query",
    "require_text",
    "without_quotes",
    "without_signs",
]
