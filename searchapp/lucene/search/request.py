"""Read a search body: query, size, sort, `_source`, highlights.

`Recurring`: a template makes the same query with other texts for every topic. Reading and rewriting it takes longer
than scoring it, and depends on a text only by its number of different terms (none, one or several). So that is done
once for all texts with the same, and the terms are substituted in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.errors import ErrorCollector, Refused, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import objects
from searchapp.lucene.queries.boolean import TermsDisjunction
from searchapp.lucene.queries.dsl import normal_body
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.query import MOST_CLAUSES, MarkedLeaf, Parser, Query, QueryText, rewrite
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Body
from searchapp.lucene.search.highlight import HIGHLIGHT_QUERY, Marks, read_marks


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """The properties to give; None stands for all of them."""

    includes: tuple[str, ...] | None
    excludes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Any) -> SourceFilter:
        """Read the `_source` of a search body: true, false, a name, names, or includes and excludes.

        Raises:
            Refused: has all problems, with their JSON paths.
        """
        if isinstance(given, bool):
            return cls(None if given else ())
        problems = ErrorCollector()
        if isinstance(given, Mapping):
            with problems.at("_source"):
                known_only(given, {"includes", "excludes"}, "`_source`")
            includes, excludes = (
                _names(given.get(key, ()), f"_source.{key}", problems, only_text=True)
                for key in ("includes", "excludes")
            )
        else:
            includes, excludes = _names(given, "_source", problems), ()
        problems.raise_if_any()
        return cls(includes or None, excludes)

    def apply(self, source: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in source.items()
            if (self.includes is None or _names_it(self.includes, name))
            and not _names_it(self.excludes, name)
        }


def _names_it(names: tuple[str, ...], property_name: str) -> bool:
    """Whether one of the names is that of a property, or of an object that the property lies in by its dots."""
    return property_name in names or any(above in names for above in objects(property_name))


def _names(given: Any, place: str, problems: ErrorCollector, *, only_text: bool = False) -> tuple[str, ...]:
    """One name or several; what is wrong with them goes to `problems`."""
    names: list[str] = []
    several: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    for number, name in enumerate(several):
        with problems.at(place if several is not given else f"{place}[{number}]"):
            if not isinstance(name, str) and (only_text or several is not given):
                raise invalid(f"`_source` must name properties, not {name!r}")
            names.append(_name(parameters.raw_text(name, "a name in `_source`")))
    return tuple(names)


def _name(name: str) -> str:
    if "*" in name or "." in name:
        raise unsupported(f"the pattern or path `{name}` in `_source`")
    return name


SHAPES = 4
"""So many queries are kept that are more than texts apart."""

RESULTS = 64
"""So many ways are kept in which the texts of one of them may turn out."""

Kind: TypeAlias = str | MatchNone
"""What a text comes to: "" for different terms of its field, the field for one term, or nothing."""

Path: TypeAlias = tuple[Any, ...]
"""The names of objects and the places in lists, from outside in, that lead to a text."""

Filled = Callable[[Sequence[Query]], Query]
"""Makes a rewritten query of what its texts come to."""


@dataclass(slots=True)
class _Shape:
    """A query but for its texts, where these stand in it, and what makes a query of each."""

    pattern: Any
    paths: Sequence[Path]
    read: Sequence[Callable[[str], Query]]
    results: dict[tuple[Kind, ...], tuple[Filled, int] | None] = field(default_factory=dict)
    """What was made of it by what the texts came to, and the clauses besides theirs; None if none can be made so."""

    def texts(self, body: Any) -> list[str] | None:
        """The texts of a query that is this one but for them, None for any other."""
        if self.pattern != body:  # the texts of the pattern say what they are equal to
            return None
        texts: list[str] = []
        for path in self.paths:
            value = body
            for key in path:
                value = value[key]
            texts.append(value)
        return texts


class Recurring:
    """Rewritten queries, for who reads many of a few templates."""

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []

    def rewritten(self, body: Any) -> Query | None:
        """The rewritten query of a body, None for one that must be read as a whole.

        Raises:
            Refused: a text can't be searched for.
        """
        for shape in self._shapes:
            texts = shape.texts(body)
            if texts is not None:
                found = [read(text) for read, text in zip(shape.read, texts, strict=True)]
                known = shape.results.get(_kinds(found))
                if known is None:
                    return None
                filled, others = known
                clauses = others + sum(one.clause_count for one in found)
                return filled(found) if clauses <= MOST_CLAUSES else None
        return None

    def learn(self, body: Any, noted: Sequence[QueryText], query: Query, rewritten: Query) -> None:
        """Keep what has become of a body, whose texts were noted while its `query` was read."""
        by_given = {id(one.given): one for one in noted}
        placed: list[tuple[QueryText, Path]] = []
        pattern = _pattern(body, by_given, placed, ())
        if not noted or len(noted) != len(placed) or len(noted) != len({id(one) for one, _path in placed}):
            return
        found = [one.query for one, _path in placed]
        shape = self._known(body) or _Shape(
            pattern, [path for _one, path in placed], [one.read for one, _path in placed]
        )
        if len(shape.results) < RESULTS:
            others = query.clause_count - sum(one.clause_count for one in found)
            filled = _filler(query, rewritten, found)
            shape.results.setdefault(_kinds(found), None if filled is None else (filled, others))
        if shape not in self._shapes:
            self._shapes = [shape, *self._shapes[: SHAPES - 1]]

    def _known(self, body: Any) -> _Shape | None:
        return next((shape for shape in self._shapes if shape.texts(body) is not None), None)


def _kinds(found: Sequence[Query]) -> tuple[Kind, ...]:
    return tuple(map(_kind, found))


def _kind(query: Query) -> Kind:
    """What a text comes to; "?" is none of the kinds, and has no result that could be kept."""
    if isinstance(query, TermsDisjunction):
        return ""
    if isinstance(query, Term):
        return query.field
    return query if isinstance(query, MatchNone) else "?"


class _AnyText:
    """What stands in a pattern for a text."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


class _Written:
    """A value that is written like this one: 1 and true are equal, and so are 0.0 and -0.0."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self._type = type(value)
        self._written = repr(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._type and repr(other) == self._written


def _pattern(
    node: Any, noted: Mapping[int, QueryText], placed: list[tuple[QueryText, Path]], path: Path
) -> Any:
    """What is equal to another part of a query that is this one but for its texts; `placed` gets these."""
    if isinstance(node, Mapping):
        one = noted.get(id(node))
        key = None
        if one is not None:
            key = one.key
            placed.append((one, (*path, key)))
        return {
            name: _AnyText() if name == key else _pattern(value, noted, placed, (*path, name))
            for name, value in node.items()
        }
    if isinstance(node, list):
        return [_pattern(value, noted, placed, (*path, place)) for place, value in enumerate(node)]
    return node if type(node) is str else _Written(node)


def _filler(query: Query, rewritten: Query, found: Sequence[Query]) -> Filled | None:
    """What makes the rewritten query with other terms in the place of those that were found; None if nothing does.

    The terms of a text must not be those of another clause, with which they could become one, and must have been left
    together.
    """
    terms = [one for one in found if isinstance(one, TermsDisjunction | Term)]
    if any(not isinstance(one, TermsDisjunction | Term | MatchNone) for one in found):
        return None
    fields = [leaf.field for leaf in _terms_inside(query)]
    if len(fields) != len(set(fields)) or set(fields) != {one.field for one in terms}:
        return None
    places: list[int] = []
    filled = _filled(rewritten, found, places)
    met = sorted(places)
    expected = [place for place, one in enumerate(found) if not isinstance(one, MatchNone)]
    return filled if met == expected else None


def _terms_inside(query: Query) -> list[TermsDisjunction | MarkedLeaf]:
    """The clauses of a query that have terms."""
    if isinstance(query, TermsDisjunction | MarkedLeaf):
        return [query]
    return list(chain.from_iterable(map(_terms_inside, query.children())))


def _filled(node: Query, found: Sequence[Query], places: list[int]) -> Filled:
    """What makes a part of the query; `places` get those of `found` that it meets."""
    for place, one in enumerate(found):
        if node is one:
            places.append(place)
            return lambda others: others[place]
    before = len(places)
    children = [_filled(child, found, places) for child in node.children()]
    if len(places) == before:
        return lambda _others: node
    return lambda others: node.with_children(tuple([child(others) for child in children]))


_KNOWN = {
    "query",
    "size",
    "from",
    "sort",
    "_source",
    "track_total_hits",
    "highlight",
    "explain",
    "track_scores",
    "search_after",
}
_DEFAULT_SIZE = 10

LARGEST_SCORE = float(np.finfo(np.float32).max)

MOST_HITS = 10_000
"""The last rank that a search reaches, as in Elasticsearch (`index.max_result_window`)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """All that a search body says but its queries.

    `after` is the score and the id of the hit behind which the hits begin, `highlight` the marks of each field.
    """

    first: int
    size: int
    after: tuple[float, str] | None
    source: SourceFilter
    highlight: Mapping[str, Marks] | None
    explain: bool

    @classmethod
    def of(cls, body: Body) -> Frame:
        """Read a search body without its query.

        Raises:
            Refused: has all problems, with their JSON paths.
        """
        problems = ErrorCollector()
        first, size, explain = 0, 0, False
        after: tuple[float, str] | None = None
        source = SourceFilter(None)
        highlight: Mapping[str, Marks] | None = None
        with problems.at():
            known_only(body, _KNOWN, "a search body")
        with problems.at("sort"):
            _require_known_order(body.get("sort"))
        with problems.at("from"):
            first = _count(body.get("from", 0), "from")
        with problems.at("size"):
            size = _count(body.get("size", _DEFAULT_SIZE), "size")
        with problems.at():
            if first + size > MOST_HITS:
                raise invalid(
                    f"`from` and `size` come to {first + size:,}, and hits are given to rank {MOST_HITS:,}"
                )
        with problems.at("track_scores"):
            parameters.flag(body.get("track_scores", True), "`track_scores`")
        with problems.at("track_total_hits"):
            _require_total(body.get("track_total_hits", True))
        if "search_after" in body:
            with problems.at("from"):
                if first > 0:
                    raise invalid("`from` must be 0 where `search_after` says where the hits begin")
            with problems.at("search_after"):
                after = _after(body["search_after"])
        with problems.at():
            source = SourceFilter.of(body.get("_source", True))
        if "highlight" in body:
            with problems.at():
                highlight = read_marks(body["highlight"])
        with problems.at("explain"):
            explain = parameters.flag(body.get("explain", False), "`explain`")
        problems.raise_if_any()
        return cls(first, size, after, source, highlight, explain)


@dataclass(frozen=True, slots=True)
class Request:
    """What a search body asks for: `query` is rewritten for scoring, `marked` says what to highlight."""

    query: Query
    marked: Query
    frame: Frame

    def from_first(self) -> Request:
        """The same for the hits before as well, and so what a part of an index must find for it."""
        frame = self.frame
        if not frame.first:
            return self
        return replace(self, frame=replace(frame, first=0, size=frame.first + frame.size))


class BodyReader:
    """Reads search bodies on one index. Those of a template differ in their queries only: the rest is read once."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._recurring = Recurring()
        self._last: tuple[str, Frame] | None = None

    def read(self, body: Body) -> Request:
        """Read a search body.

        Raises:
            Refused: the body makes no sense, or has something that the embedded engine does not support.
        """
        return self._read(normal_body(body), body)[0]

    def _read(self, normal: Body, body: Body) -> tuple[Request, list[QueryText]]:
        """The same of a body and its normal form, and the texts that were noted in its query."""
        try:
            return self._parsed(normal)
        except Refused:
            if normal is not body:
                self._parsed(body)  # the JSON paths of its problems are those that the user wrote
            raise

    def _parsed(self, body: Body) -> tuple[Request, list[QueryText]]:
        problems = ErrorCollector()
        query: Query | None = None
        marked: Query | None = None
        frame: Frame | None = None
        with problems.at():
            query, noted = self._parser.read(body["query"]) if "query" in body else (MatchAll(), [])
        with problems.at():
            frame = self.frame(body)
        described = body.get("highlight")
        # The `highlight_query` of one field is refused where the fields are read.
        if isinstance(described, Mapping) and described.get(HIGHLIGHT_QUERY) is not None:
            with problems.at():
                marked = self._parser.query_at(f"highlight.{HIGHLIGHT_QUERY}", described[HIGHLIGHT_QUERY])
        problems.raise_if_any()
        assert query is not None and frame is not None
        return Request(rewrite(query), query if marked is None else marked, frame), noted

    def ranked(self, body: Body) -> Request:
        """The same for those who only rank: nothing is `marked` but the rewritten query.

        Raises:
            as `read` does.
        """
        normal = normal_body(body)
        written = normal.get("query")
        query = self._recurring.rewritten(written)
        if query is not None:
            frame = self.frame(body)
            if frame.highlight is None:
                return Request(query, query, frame)
        request, noted = self._read(normal, body)
        if written is not None and request.frame.highlight is None:
            self._recurring.learn(written, noted, request.marked, request.query)
        return request

    def frame(self, body: Body) -> Frame:
        """All that a search body says but its query.

        Raises:
            as `read` does.
        """
        rest = {key: value for key, value in body.items() if key != "query"}
        written = repr(rest)  # 1 and true are equal, and so are 0.0 and -0.0
        last = self._last
        if last is None or last[0] != written:
            last = self._last = written, Frame.of(rest)
        return last[1]


def _require_known_order(sort: Any) -> None:
    """Scores descending, then ids ascending: any other order, the order without a clause included, is refused."""
    clauses = [_clause(clause) for clause in (sort if isinstance(sort, list | tuple) else [sort])]
    if clauses != [("_score", "desc"), ("id", "asc")]:
        raise unsupported(f'`sort: {sort}`, only [{{"_score": "desc"}}, {{"id": "asc"}}]')


def _clause(clause: Any) -> tuple[str, str]:
    if isinstance(clause, Mapping) and len(clause) == 1:
        name, order = next(iter(clause.items()))
        if isinstance(order, Mapping) and set(order) == {"order"}:
            order = order["order"]
        return str(name), str(order).lower()
    return str(clause), "desc" if clause == "_score" else "asc"


def _count(value: Any, name: str) -> int:
    count = parameters.integer(value, f"`{name}`")
    if count < 0:
        raise invalid(f"`{name}` must not be negative, but is {value!r}")
    return count


def _after(values: Any) -> tuple[float, str]:
    """What `search_after` says: a value for each clause of the sort."""
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise invalid("`search_after` must be a list of a score and an id, as the sort has them")
    score, id_ = values
    if isinstance(score, bool) or not isinstance(score, int | float) or not isinstance(id_, str):
        raise unsupported(f"`search_after: {values}`, only a number and a text")
    if not -LARGEST_SCORE <= score <= LARGEST_SCORE:
        raise invalid(f"`search_after` begins with {score!r}, which is not a finite float32 as scores are")
    return float(score), id_


def _require_total(value: Any) -> None:
    """Refuse a `track_total_hits` that is neither a number nor yes or no; hits are counted apart, see `counting`."""
    if isinstance(value, bool) or value in ("true", "false"):
        return
    if parameters.integer(value, "`track_total_hits`") < -1:
        raise invalid(f"`track_total_hits` must not be negative, but is {value!r}")
