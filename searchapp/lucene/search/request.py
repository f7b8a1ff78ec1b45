"""Parser of search bodies: query, size, sort, `_source`, highlights."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from itertools import chain
from operator import getitem
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, Refused, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import RESULT_WINDOW
from searchapp.lucene.queries.boolean import TermsDisjunction
from searchapp.lucene.queries.dsl import normal_body
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.nested import may_match_nested, only_documents
from searchapp.lucene.queries.query import (
    MOST_CLAUSES,
    MarkedLeaf,
    Parser,
    Query,
    QueryText,
    check_clause_count,
    rewrite,
)
from searchapp.lucene.queries.scores import FiniteScores
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Body
from searchapp.lucene.search.highlight_options import (
    HighlightOptions,
    read_highlight,
    read_highlight_queries,
)
from searchapp.lucene.search.sorting import (
    NumberClause,
    SortClause,
    TermClause,
    read_collapse,
    read_sort,
)
from searchapp.lucene.search.source_filter import SourceFilter

if TYPE_CHECKING:
    from searchapp.lucene.search.aggregations import Aggregations
    from searchapp.lucene.search.knn import KnnSection
    from searchapp.lucene.search.rescoring import Rescore
    from searchapp.lucene.search.suggest import Suggest

DEFAULT_SIZE = 10

LARGEST_SCORE = float(np.finfo(np.float32).max)

KNOWN = frozenset(
    {
        *("query", "size", "from", "sort", "_source", "track_total_hits"),
        *("highlight", "explain", "track_scores", "search_after", "min_score", "collapse"),
        *("timeout", "version", "profile", "stored_fields"),
    }
)

# The parts that are read with the query, because they contain queries or depend on the time.
READ_WITH_QUERY = frozenset({"aggs", "aggregations", "suggest", "post_filter", "rescore", "knn"})

TRACKED_HITS = 10_000  # the default of `track_total_hits`


# Templates

MOST_TEMPLATES = 4  # cached templates

MOST_RESULTS = 64  # cached rewritten queries of a template, by the outcomes of its texts

# The outcome of a text: "" for several distinct terms, the field for a single term, or the query without hits.
TextOutcome: TypeAlias = str | MatchNone

JsonPath: TypeAlias = tuple[Any, ...]  # object keys and list indices that lead to a text

FindNearest = Callable[[Sequence["KnnSection"]], Mapping["KnnSection", Query]]

QueryBuilder = Callable[[Sequence[Query]], Query]  # builds a rewritten query from the queries of its texts


@dataclass(slots=True)
class _Template:
    """A search body without the texts of its query, their paths, and the function that parses each."""

    pattern: Any
    paths: Sequence[JsonPath]
    read: Sequence[Callable[[str], Query]]
    frame: Frame
    # By the outcomes of the texts: the builder, and the number of other clauses; None without a builder.
    results: dict[tuple[TextOutcome, ...], tuple[QueryBuilder, int] | None] = field(default_factory=dict)

    def texts(self, body: Any) -> list[str] | None:
        if self.pattern != body:  # `_AnyText` equals every text
            return None
        return [reduce(getitem, path, body) for path in self.paths]


class TemplateCache:
    """Caches the requests of templates."""

    # The bodies of different topics differ only in their texts. Parsing a body and rewriting its query takes longer
    # than scoring it, and depends only on the number of distinct terms of a text (none, one or several). Therefore it
    # happens once per outcome, and the terms are substituted in the result.
    def __init__(self) -> None:
        self._templates: list[_Template] = []

    def request(self, body: Body) -> Request | None:
        """Return the request of a body; None if it must be parsed."""
        for template in self._templates:
            texts = template.texts(body)
            if texts is not None:
                queries = [read(text) for read, text in zip(template.read, texts, strict=True)]
                result = template.results.get(_outcomes(queries))
                if result is None:
                    return None
                build, other_clauses = result
                if other_clauses + sum([query.clause_count for query in queries]) > MOST_CLAUSES:
                    return None
                query = build(queries)
                return Request(query, query, template.frame)
        return None

    def add(self, body: Body, query_texts: Sequence[QueryText], request: Request) -> None:
        """Add the request of a body, and the texts recorded while its `query` was parsed."""
        text_paths: list[tuple[QueryText, JsonPath]] = []
        pattern = _pattern(body, {id(text.options): text for text in query_texts}, text_paths, ())
        if (
            not query_texts
            or len(query_texts) != len(text_paths)
            or len(query_texts) != len({id(text) for text, _path in text_paths})
        ):
            return
        queries = [text.query for text, _path in text_paths]
        template = next((known for known in self._templates if known.texts(body) is not None), None)
        if template is None:
            template = _Template(
                pattern,
                [path for _text, path in text_paths],
                [text.read for text, _path in text_paths],
                request.frame,
            )
            self._templates = [template, *self._templates[: MOST_TEMPLATES - 1]]
        if len(template.results) < MOST_RESULTS:
            other_clauses = request.marked.clause_count - sum(part.clause_count for part in queries)
            build = _builder(request.marked, request.query, queries)
            template.results.setdefault(_outcomes(queries), None if build is None else (build, other_clauses))


def _outcomes(queries: Sequence[Query]) -> tuple[TextOutcome, ...]:
    return tuple(map(_outcome, queries))


def _outcome(query: Query) -> TextOutcome:
    if isinstance(query, TermsDisjunction):
        return ""
    if isinstance(query, Term):
        return query.field
    return query if isinstance(query, MatchNone) else "?"  # without a builder


class _AnyText:
    """Equals every text in a pattern."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


class _Literal:
    """Equals only values with the same notation: 1 is not true, and 0.0 not -0.0."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self._value = value
        self._written = repr(value)

    def __eq__(self, other: object) -> bool:
        return other is self._value or (type(other) is type(self._value) and repr(other) == self._written)


def _pattern(
    node: Any,
    query_texts: Mapping[int, QueryText],
    text_paths: list[tuple[QueryText, JsonPath]],
    path: JsonPath,
) -> Any:
    """Return a pattern that equals a part of a query with any texts; append the texts to `text_paths`."""
    if isinstance(node, Mapping):
        text = query_texts.get(id(node))
        key = None
        if text is not None:
            key = text.key
            text_paths.append((text, (*path, key)))
        return {
            name: _AnyText() if name == key else _pattern(value, query_texts, text_paths, (*path, name))
            for name, value in node.items()
        }
    if isinstance(node, list):
        return [_pattern(value, query_texts, text_paths, (*path, index)) for index, value in enumerate(node)]
    return node if type(node) is str else _Literal(node)


def _builder(query: Query, rewritten: Query, queries: Sequence[Query]) -> QueryBuilder | None:
    """Return a function that rebuilds the rewritten query from the queries of other texts, if possible.

    The terms of a text must not share a field with another clause, with which they might be merged, and must occur
    once in the rewritten query.
    """
    if any(not isinstance(part, TermsDisjunction | Term | MatchNone) for part in queries):
        return None
    fields = [leaf.field for leaf in _leaves_with_terms(query)]
    text_fields = {part.field for part in queries if isinstance(part, TermsDisjunction | Term)}
    if len(fields) != len(set(fields)) or set(fields) != text_fields:
        return None
    indices: list[int] = []
    build = _substitution(rewritten, queries, indices)
    expected = [index for index, part in enumerate(queries) if not isinstance(part, MatchNone)]
    return build if sorted(indices) == expected else None


def _leaves_with_terms(query: Query) -> list[TermsDisjunction | MarkedLeaf]:
    if isinstance(query, TermsDisjunction | MarkedLeaf):
        return [query]
    return list(chain.from_iterable(map(_leaves_with_terms, query.children())))


def _substitution(node: Query, queries: Sequence[Query], indices: list[int]) -> QueryBuilder:
    """Return a function that rebuilds a part of a query; append the indices of its `queries` to `indices`."""
    for index, query in enumerate(queries):
        if node is query:
            indices.append(index)
            return lambda others: others[index]
    count = len(indices)
    children = [_substitution(child, queries, indices) for child in node.children()]
    if len(indices) == count:
        return lambda _others: node
    return lambda others: node.with_children(tuple([child(others) for child in children]))


# Bodies


@dataclass(frozen=True, slots=True)
class Frame:
    """A search body without its query."""

    first: int
    size: int
    sort: Sequence[SortClause] | None  # None: scores descending, then ids ascending
    after: Sequence[Any] | None  # the sort values of the hit before the first one
    source: SourceFilter | None  # None: no sources
    highlight: Mapping[str, HighlightOptions] | None  # by name or pattern of fields
    explain: bool
    track_scores: bool
    tracked: float | None  # the greatest number of matching documents to report; None to report none
    min_score: float | None
    collapse: TermClause | NumberClause | None  # the field of whose values only the first hit counts

    @property
    def end(self) -> int:
        return self.first + self.size

    def is_total(self, hits: int) -> bool:
        """Return whether the number of returned hits is the total, or the total is not reported."""
        return self.tracked is None or (self.first == 0 and self.after is None and hits < self.size)

    def reported_total(self, matching: int, *, is_empty: bool) -> dict[str, Any]:
        """Return the `total` of a response.

        Args:
            matching: the number of all matching documents
            is_empty: whether the index has no documents
        """
        if self.tracked is None:
            return {}
        counts_nothing = (
            self.tracked == 0 and self.size == 0 and not is_empty
        )  # Lucene stops before the first document
        is_lower_bound = matching > self.tracked or counts_nothing
        value, relation = (self.tracked, "gte") if is_lower_bound else (matching, "eq")
        return {"total": {"value": value, "relation": relation}}

    @classmethod
    def of(cls, body: Body, parser: Parser) -> Frame:
        problems = ErrorCollector()
        first, size, explain, track_scores = 0, 0, False, False
        tracked: float | None = None
        sort: Sequence[SortClause] | None = None
        after: Sequence[Any] | None = None
        min_score: float | None = None
        collapse: TermClause | NumberClause | None = None
        source: SourceFilter | None = None
        highlight: Mapping[str, HighlightOptions] | None = None
        with problems.at():
            known_only(body, KNOWN, "a search body")
        with problems.at():
            sort = None if _is_best_first(written := body.get("sort")) else read_sort(written, parser)
        for name in WITHOUT_EFFECT.keys() & body.keys():
            with problems.at(name):
                WITHOUT_EFFECT[name](body[name], f"`{name}`")
        if "min_score" in body:
            with problems.at("min_score"):
                min_score = parameters.to_float32(parameters.any_number(body["min_score"], "`min_score`"))
        if "collapse" in body:
            with problems.at("collapse"):
                collapse = read_collapse(body["collapse"], parser.reader.schema)
                if "search_after" in body:
                    raise unsupported("`search_after` with `collapse`")
        with problems.at("from"):
            first = _count(body.get("from", 0), "from")
        with problems.at("size"):
            size = _count(body.get("size", DEFAULT_SIZE), "size")
        with problems.at():
            if first + size > RESULT_WINDOW:
                raise invalid(f"`from` + `size` is {first + size:,}, and the maximum is {RESULT_WINDOW:,}")
        with problems.at("track_scores"):
            track_scores = parameters.flag(body.get("track_scores", False), "`track_scores`")
        with problems.at("track_total_hits"):
            tracked = _tracked(body.get("track_total_hits", TRACKED_HITS))
        if "search_after" in body:
            with problems.at("from"):
                if first > 0:
                    raise invalid("`from` must be 0 with `search_after`")
            with problems.at("search_after"):
                after = _search_after(body["search_after"], sort)
        with problems.at():
            source = SourceFilter.of(body.get("_source", "stored_fields" not in body))
        if "highlight" in body:
            with problems.at():
                highlight = read_highlight(body["highlight"])
        with problems.at("explain"):
            explain = parameters.flag(body.get("explain", False), "`explain`")
        problems.raise_if_any()
        return cls(
            *(first, size, sort, after, source, highlight, explain, track_scores, tracked, min_score),
            collapse,
        )


class Request(NamedTuple):
    """A search body: its rewritten query, and the queries whose matches are highlighted."""

    query: Query
    marked: Query
    frame: Frame
    depends_on_time: bool = False
    aggregations: Aggregations | None = None
    suggest: Suggest | None = None
    marked_in: Mapping[str, Query] = MappingProxyType({})  # instead of `marked`, by fields of `highlight`
    post_filter: Query | None = None  # limits the hits and not the aggregations
    rescores: Sequence[Rescore] = ()
    filtered: Query | None = None  # before rewriting, if Elasticsearch adds a filter of nested objects

    @property
    def explained(self) -> Query:
        """The query that explanations show."""
        return self.query if self.filtered is None else rewrite(self.filtered)

    @property
    def is_plain(self) -> bool:
        """Whether the hits are the documents with the highest scores of the query."""
        frame = self.frame
        return (
            frame.sort is None
            and frame.min_score is None
            and frame.collapse is None
            and self.post_filter is None
            and not frame.track_scores
            and not self.rescores
        )

    def from_first(self) -> Request:
        """Return the request for one of several segments, which must also rank the hits before `first`."""
        frame = self.frame
        return self._replace(frame=replace(frame, first=0, size=frame.end)) if frame.first else self


class BodyReader:
    """Reads search bodies on one index; caches the frame, which bodies of a template share."""

    def __init__(self, parser: Parser, find_nearest: FindNearest) -> None:
        self._parser = parser
        self._find_nearest = find_nearest
        self._templates = TemplateCache()
        self._last_frame: tuple[str, Frame] | None = None

    def read(self, body: Body) -> Request:
        return self._read(normal_body(body), body)[0]

    def _read(self, normal: Body, body: Body) -> tuple[Request, list[QueryText]]:
        try:
            return self._parse(normal)
        except Refused:
            if normal is not body:
                self._parse(body)  # reports the JSON paths that the user wrote
            raise

    def _parse(self, body: Body) -> tuple[Request, list[QueryText]]:
        problems = ErrorCollector()
        query: Query | None = None
        marked: Query | None = None
        frame: Frame | None = None
        filtered: Query | None = None
        with problems.at():
            query, query_texts = self._parser.read(body.get("query", {"match_all": {}}))
            unresolved = self._parser.unresolved or query
        with problems.at():
            frame = self.frame(body)
        if query is not None and frame is not None:
            with problems.at():
                if body.get("knn", []) != []:
                    query, unresolved = self._with_nearest(body, query, unresolved, frame.size)
                if may_match_nested(unresolved, self._parser.reader.schema):
                    filtered = only_documents(query)
        aggregations: Aggregations | None = None
        suggest: Suggest | None = None
        for key in ("aggs", "aggregations"):
            if key in body:
                from searchapp.lucene.search.aggregations import read_aggregations  # slow to import

                with problems.at():
                    aggregations = read_aggregations(self._parser, body[key], key)
        if "suggest" in body:
            from searchapp.lucene.search.suggest import read_suggest

            with problems.at():
                suggest = read_suggest(body["suggest"], self._parser)
        marked_in: Mapping[str, Query] = {}
        with problems.at():
            marked, marked_in = read_highlight_queries(body.get("highlight"), self._parser)
        post_filter: Query | None = None
        rescores: Sequence[Rescore] = ()
        if "post_filter" in body:
            with problems.at():
                post_filter = rewrite(self._parser.query_at("post_filter", body["post_filter"]))
        if "rescore" in body:
            from searchapp.lucene.search.rescoring import read_rescores

            with problems.at():
                rescores = read_rescores(body["rescore"], self._parser)
            with problems.at("rescore"):
                if frame is not None:
                    _require_rescorable(frame)
        problems.raise_if_any()
        assert query is not None and frame is not None
        rewritten = rewrite(query)
        check_clause_count(rewritten.clause_count)  # a prefix may stand for many terms
        if aggregations and rewritten.reads_scores:
            raise unsupported("aggregations of a query whose matches depend on scores (`min_score`)")
        request = Request(
            *(rewritten, query if marked is None else marked, frame),
            depends_on_time=self._parser.has_used_now,
            aggregations=aggregations,
            suggest=suggest,
            marked_in=marked_in,
            post_filter=post_filter,
            rescores=rescores,
            filtered=filtered,
        )
        return request, query_texts

    def sections(self, body: Body) -> list[KnnSection]:
        """Read the sections `knn` of a search body on known fields.

        Raises:
            Refused: one is rejected.
        """
        from searchapp.lucene.search.knn import read_sections  # slow to import

        read = read_sections(normal_body(body)["knn"], self._parser, self.frame(body).size)
        return [section for section, _boost in read if section is not None]

    def _with_nearest(self, body: Body, query: Query, unresolved: Query, size: int) -> tuple[Query, Query]:
        """Return both forms of the query of a body with the documents of its sections `knn`."""
        from searchapp.lucene.search.knn import joined, read_sections

        sections = read_sections(body["knn"], self._parser, size)
        found = self._find_nearest([section for section, _boost in sections if section is not None])
        nearest = [(MatchNone() if section is None else found[section], boost) for section, boost in sections]
        if "query" not in body:
            return joined(None, nearest), joined(None, nearest)
        return joined(query, nearest), joined(unresolved, nearest)

    def ranked(self, body: Body) -> Request:
        """Read a search body for ranking, without the query to highlight."""
        request = self._templates.request(body)
        if request is None:
            with FiniteScores():
                request, query_texts = self._read(normal_body(body), body)
            is_template = request.frame.highlight is None and body.keys().isdisjoint(READ_WITH_QUERY)
            if is_template and not request.depends_on_time:
                self._templates.add(body, query_texts, request)
        return request

    def frame(self, body: Body) -> Frame:
        """Read the parts of a search body without queries."""
        rest = {key: value for key, value in body.items() if key != "query" and key not in READ_WITH_QUERY}
        written = repr(rest)  # 1 and true are equal, and so are 0.0 and -0.0
        last = self._last_frame
        # Filters of nested objects may contain dates such as `now`.
        if last is None or last[0] != written or "nested" in written:
            last = self._last_frame = written, Frame.of(rest, self._parser)
        return last[1]


def _is_best_first(sort: Any) -> bool:
    """Return whether a sort is scores descending, then ids ascending; so is a missing one."""
    if sort is None:
        return True
    clauses = [_sort_clause(clause) for clause in (sort if isinstance(sort, list | tuple) else [sort])]
    return clauses == [("_score", "desc"), ("id", "asc")]


def _require_rescorable(frame: Frame) -> None:
    """Reject parts of a body beside `rescore`."""
    if frame.sort is not None:
        raise unsupported("`sort` beside `rescore`, except by `_score`")
    if frame.collapse is not None or frame.explain or frame.after is not None:
        raise unsupported("`collapse`, `explain` and `search_after` beside `rescore`")


def _sort_clause(clause: Any) -> tuple[str, str]:
    if isinstance(clause, Mapping) and len(clause) == 1:
        name, order = next(iter(clause.items()))
        if isinstance(order, Mapping) and set(order) == {"order"}:
            order = order["order"]
        return str(name), str(order).lower()
    return str(clause), "desc" if clause == "_score" else "asc"


def _false(value: Any, label: str) -> None:
    if parameters.flag(value, label):
        raise unsupported(f"{label} that is true")


def _duration(value: Any, label: str) -> None:
    if not re.fullmatch(r"-1|\d+(nanos|micros|ms|[smhd])", parameters.raw_text(value, label)):
        raise invalid(f"{label} must be a time such as 2s, not {value!r}")


def _empty_list(value: Any, label: str) -> None:
    if value != []:
        raise unsupported(f"{label} with names")


WITHOUT_EFFECT: Mapping[str, Callable[[Any, str], None]] = {
    "timeout": _duration,
    "version": _false,
    "profile": _false,
    "stored_fields": _empty_list,
}


def _count(value: Any, name: str) -> int:
    count = parameters.integer(value, f"`{name}`")
    if count < 0:
        raise invalid(f"`{name}` must not be negative, but is {value!r}")
    return count


def _search_after(values: Any, sort: Sequence[SortClause] | None) -> Sequence[Any]:
    if sort is not None:
        if len(parameters.listed(values, "`search_after`")) != len(sort):
            raise invalid(f"`search_after` must have {len(sort)} values, like the sort with the id")
        return list(values)
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise invalid("`search_after` must be a list of a score and an id, like the sort")
    score, id_ = values
    if isinstance(score, bool) or not isinstance(score, int | float) or not isinstance(id_, str):
        raise unsupported(f"`search_after: {values}`, only a number and a text")
    if not -LARGEST_SCORE <= score <= LARGEST_SCORE:
        raise invalid(
            f"`search_after` begins with {score!r}, which is not a finite float32 number like a score"
        )
    return float(score), id_


def _tracked(value: Any) -> float | None:
    """Return the greatest total that `track_total_hits` reports; None for no total."""
    if isinstance(value, bool) or value in ("true", "false"):
        return math.inf if value in (True, "true") else None
    number = parameters.integer(value, "`track_total_hits`")
    if number < -1:
        raise invalid(f"`track_total_hits` must not be negative, but is {value!r}")
    return None if number == -1 else number
