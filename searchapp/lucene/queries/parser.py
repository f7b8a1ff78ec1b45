"""Read the query DSL: dispatch the name of a query to its reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from searchapp.lucene import parameters
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.errors import ErrorCollector, Refused, Reported, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import Field
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries.query import Query, require_few

Reader = Callable[["Parser", Any], Query]

R = TypeVar("R")
ReadsField = Callable[[str, Mapping[str, Any]], R]
"""Reads a query on a field from the field's name and the parameters."""

DEEPEST = 30
"""Queries inside one another, as in Elasticsearch (`indices.query.bool.max_nested_depth`)."""

REMEMBERED_TEXTS = 16
REMEMBERED_QUERIES = 256


@dataclass(frozen=True, slots=True, eq=False)
class QueryText:
    """A text of a query, which stands in `given` under a `key`; what reads another one, and what it has come to."""

    given: Mapping[str, Any]
    key: str
    read: Callable[[str], Query]
    query: Query


@dataclass
class Parser:
    """Reads queries on the fields of one index, of which `reader` is a part."""

    reader: IndexReader
    analyzers: AnalysisRegistry
    readers: Mapping[str, Reader]
    _noted: list[QueryText] | None = None
    _problems: ErrorCollector | None = None
    _path: list[str] = field(default_factory=list)
    _depth: int = 0
    _read: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _analyzed: dict[tuple[str, str], tuple[list[str], list[int]]] = field(default_factory=dict)
    _different: dict[tuple[str, str], tuple[str, ...] | None] = field(default_factory=dict)

    def read(self, body: Any) -> tuple[Query, list[QueryText]]:
        """The query of a search body, and the texts that were noted in it.

        These are not kept: they refer to this parser, which would outlive its index until garbage is searched for.

        Raises:
            Refused: as `query`, or the query has more clauses than Elasticsearch allows.
        """
        noted: list[QueryText] = []
        self._noted = noted
        try:
            query = self.query_at("query", body)
        finally:
            self._noted = None
        require_few(query.clause_count)
        return query, noted

    def query_at(self, place: str, body: Any) -> Query:
        """The query at a place of a search body, such as `highlight.highlight_query`.

        Raises:
            Refused: as `query`; has all problems of the query, with their JSON paths.
        """
        self._problems = problems = ErrorCollector()
        self._path = [place]
        query: Query | None = None
        try:
            with problems.at():
                query = self.query(body)
        finally:
            self._problems = None
            self._path = []
        problems.raise_if_any()
        assert query is not None
        return query

    def query(self, body: Any) -> Query:
        """The query that a `query` object of the DSL stands for.

        Raises:
            Refused: the query makes no sense, or has something that the embedded engine does not support.
        """
        name, content = parameters.single(body, "a query")
        reader = self.readers.get(name)
        if reader is None:
            raise unsupported(f"the query `{name}`")
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise invalid(f"more than {DEEPEST} queries inside one another")
            query = reader(self, content)
        finally:
            self._depth -= 1
        return query if self._depth else query.resolved(self.reader)

    def queries(self, bodies: Any, place: str) -> tuple[Query, ...]:
        """One query or several of them; `place` is where they stand in the query that has them, such as `bool.must`.

        Raises:
            Reported: some are refused, all of which were read.
            Refused: as `query`, where problems are not gathered.
        """
        listed = isinstance(bodies, list | tuple)
        several: Iterable[Any] = bodies if listed else [bodies]
        if self._problems is None:
            return tuple(self.query(body) for body in several)
        found: list[Query] = []
        count = 0
        for count, body in enumerate(several, 1):
            self._path.append(f"{place}[{count - 1}]" if listed else place)
            try:
                found.append(self.query(body))
            except Reported:
                pass
            except Refused as error:
                self._problems.add(error, ".".join(self._path))
            finally:
                self._path.pop()
        if len(found) < count:
            raise Reported
        return tuple(found)

    def field(self, name: str) -> Field | None:
        """A field; None for one that no document can have, which Elasticsearch lets match nothing."""
        if not name:
            raise invalid("the name of a field is empty")
        if "*" in name:
            raise unsupported(f"the pattern `{name}` for the names of fields")
        # Names such as `_id` are kept for fields that Elasticsearch adds by itself.
        if name.startswith("_") and name not in self.reader.schema.fields:
            raise unsupported(f"queries on `{name}`")
        return self.reader.schema.fields.get(name)

    def terms(self, analyzer: str, text: str) -> list[tuple[int, list[str]]]:
        """The terms that an analyzer makes of a text, by position."""
        terms, positions = self._tokens(analyzer, text)
        return [
            (position, [term for term, _position in group])
            for position, group in groupby(zip(terms, positions, strict=True), key=itemgetter(1))
        ]

    def different_terms(self, analyzer: str, text: str) -> tuple[str, ...] | None:
        """The terms of a text if each is alone on its position and none is repeated, which most texts come to."""
        key = analyzer, text
        known = self._different
        if key in known:
            return known[key]
        found = self._found_different(analyzer, text)
        if len(known) >= REMEMBERED_TEXTS:
            known = self._different = {}
        known[key] = found
        return found

    def _found_different(self, analyzer: str, text: str) -> tuple[str, ...] | None:
        different = self.analyzers.analyzer(analyzer).distinct_terms
        found = None if different is None else different(text)
        if found is not None:
            return found
        terms, positions = self._tokens(analyzer, text)
        if len(set(terms)) == len(terms) and len(set(positions)) == len(positions):
            return tuple(terms)
        return None

    def _tokens(self, analyzer: str, text: str) -> tuple[list[str], list[int]]:
        """Terms and positions; a body often asks for the same ones twice."""
        key = analyzer, text
        if key not in self._analyzed:
            if len(self._analyzed) >= REMEMBERED_TEXTS:
                self._analyzed.clear()
            self._analyzed[key] = self.analyzers.analyzer(analyzer).joined((text,))
        return self._analyzed[key]

    def remembered(self, name: str, given: Mapping[str, Any], text: str, read: ReadsField[R]) -> R:
        """What `read` makes of a query on a field, all but its text.

        A template gives every topic the same queries with other texts: all else is read once.
        """
        # 0.0 and -0.0 are equal, and so are 1 and true.
        key = (
            read.__qualname__,
            name,
            *((key, type(it), it or repr(it)) for key, it in given.items() if key != text),
        )
        try:
            if key not in self._read:
                if len(self._read) >= REMEMBERED_QUERIES:
                    self._read.clear()
                self._read[key] = read(name, given)
        except TypeError:  # a list or object among the parameters
            return read(name, given)
        known: R = self._read[key]
        return known

    def note(self, given: Mapping[str, Any], key: str, read: Callable[[str], Query]) -> Query:
        """What `read` makes of a text that a query is given, which is noted for who reads whole bodies like it."""
        query = read(given[key])
        if self._noted is not None and isinstance(given[key], str):
            self._noted.append(QueryText(given, key, read, query))
        return query

    def options(self, content: Any, name: str, known: Iterable[str]) -> Mapping[str, Any]:
        """The parameters of a query, all of which must be known."""
        given = parameters.mapping(content, f"the query `{name}`")
        known_only(given, {*known, "boost"}, f"the query `{name}`")
        parameters.boost(given.get("boost", 1), f"the query `{name}`")  # refused even where nothing matches
        return given

    def on_field(
        self, content: Any, name: str, value: str, known: Iterable[str]
    ) -> tuple[str, Mapping[str, Any]]:
        """The field of a query and its parameters; `{"match": {"text": "x"}}` is short for its `value`."""
        field, given = parameters.single(content, f"the query `{name}`")
        if not isinstance(given, Mapping):
            given = {value: given}
        return field, self.options(given, name, {*known, value})


def required(given: Mapping[str, Any], parameter: str, name: str) -> Any:
    """A parameter that a query must have."""
    if given.get(parameter) is None:
        raise invalid(f"the query `{name}` lacks `{parameter}`")
    return given[parameter]
