"""A search body, read as far as the embedded engine supports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from searchapp.engines.base import Body
from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.highlight import HIGHLIGHT_QUERY
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Noted, Parser
from searchapp.engines.embedded.queries.recurring import Recurring
from searchapp.engines.embedded.queries.rewrite import rewrite
from searchapp.engines.embedded.refusals import invalid, known_only, unsupported
from searchapp.engines.embedded.source import SourceFilter

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

MOST_HITS = 10_000
"""The last rank that a search reaches, as in Elasticsearch (`index.max_result_window`)."""


COUNTED = 10_000
"""Up to which number Elasticsearch counts hits if nothing is said."""


@dataclass(frozen=True, slots=True)
class Frame:
    """All that a search body says but its query; the module `highlight` reads `highlight`.

    `after` is the score and the id of the hit behind which the hits begin. `counts_all` says that all hits are to be
    counted, however many there are.
    """

    first: int
    size: int
    after: tuple[float, str] | None
    source: SourceFilter
    highlight: Mapping[str, Any] | None
    explain: bool
    counts_all: bool

    @classmethod
    def of(cls, body: Body) -> Frame:
        known_only(body, _KNOWN, "a search body")
        _require_known_order(body.get("sort"))
        first, size = _count(body.get("from", 0), "from"), _count(body.get("size", _DEFAULT_SIZE), "size")
        if first + size > MOST_HITS:
            raise invalid(
                f"`from` and `size` come to {first + size:,}, and hits are given to rank {MOST_HITS:,}"
            )
        parameters.flag(body.get("track_scores", True), "`track_scores`")
        total = _total(body.get("track_total_hits", COUNTED))
        if "highlight" in body and body["highlight"] is None:
            raise invalid("`highlight` is null")
        return cls(
            first=first,
            size=size,
            after=_after(body, first),
            source=SourceFilter.of(body.get("_source", True)),
            highlight=body.get("highlight"),
            explain=parameters.flag(body.get("explain", False), "`explain`"),
            counts_all=total == parameters.LARGEST_INTEGER,
        )


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
            EngineRefused: the body makes no sense, or has something that the embedded engine does not support.
        """
        return self._read(body)[0]

    def _read(self, body: Body) -> tuple[Request, list[Noted]]:
        """The same, and the texts that were noted in its query."""
        query, noted = self._parser.read(body["query"]) if "query" in body else (MatchAll(), [])
        rewritten = rewrite(query)
        frame = self.frame(body)
        # The `highlight_query` of one field is refused where the fields are read.
        marked = frame.highlight.get(HIGHLIGHT_QUERY) if isinstance(frame.highlight, Mapping) else None
        return Request(rewritten, query if marked is None else self._parser.query(marked), frame), noted

    def ranked(self, body: Body) -> Request:
        """The same for those who only rank: nothing is `marked` but the rewritten query.

        Raises:
            as `read` does.
        """
        written = body.get("query")
        query = self._recurring.rewritten(written)
        if query is not None:
            frame = self.frame(body)
            if frame.highlight is None:
                return Request(query, query, frame)
        request, noted = self._read(body)
        if written is not None:
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


def _after(body: Body, first: int) -> tuple[float, str] | None:
    """What `search_after` says, if it is there: a value for each clause of the sort."""
    if "search_after" not in body:
        return None
    values = body["search_after"]
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise invalid("`search_after` must be a list of a score and an id, as the sort has them")
    if first > 0:
        raise invalid("`from` must be 0 where `search_after` says where the hits begin")
    score, id_ = values
    if isinstance(score, bool) or not isinstance(score, int | float) or not isinstance(id_, str):
        raise unsupported(f"`search_after: {values}`, only a number and a text")
    return float(score), id_


def _total(value: Any) -> int:
    """Up to which number hits are counted: `track_total_hits` is one, or yes or no."""
    if isinstance(value, bool) or value in ("true", "false"):
        return parameters.LARGEST_INTEGER if value in (True, "true") else -1
    total = parameters.integer(value, "`track_total_hits`")
    if total < -1:
        raise invalid(f"`track_total_hits` must not be negative, but is {value!r}")
    return total
