"""The `rescore` of search bodies: other scores for the first hits.

org.elasticsearch.search.rescore.QueryRescorer
org.apache.lucene.search.QueryRescorer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only
from searchapp.lucene.index.mapping import RESULT_WINDOW
from searchapp.lucene.queries.query import Parser, Query, rewrite
from searchapp.lucene.similarity import Float32s

Combine = Callable[[Float32s, Float32s], Float32s]

_TWO = np.float32(2)

_MODES: dict[str, Combine] = {
    "total": np.add,
    "multiply": np.multiply,
    "avg": lambda first, second: (first + second) / _TWO,
    "max": np.maximum,
    "min": np.minimum,
}

_OPTIONS = {"rescore_query", "query_weight", "rescore_query_weight", "score_mode"}


@dataclass(frozen=True, slots=True)
class Rescore:
    """A query whose scores are combined with those of the first `window` hits."""

    query: Query
    window: int
    query_weight: np.float32
    rescore_weight: np.float32
    combine: Combine

    def apply(
        self, scores: Float32s, documents: NDArray[Any], second: Float32s, matches: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], Float32s]:
        """Return the new order of hits, which are `documents` of the index, and their scores in it.

        `second` are the scores of those hits that the query `matches`.
        """
        first = scores * self.query_weight
        window = slice(0, self.window)
        combined = self.combine(first, second * self.rescore_weight)
        first[window] = np.where(matches, combined, first)[window]
        order = np.lexsort([documents, -first])
        return order, first[order]


def read_rescores(value: Any, parser: Parser) -> Sequence[Rescore]:
    """Read the `rescore` of a search body.

    Raises:
        Refused: lists all problems with their JSON paths.
    """
    problems = ErrorCollector()
    rescores: list[Rescore] = []
    is_list = isinstance(value, list | tuple)
    for index, written in enumerate(value if is_list else [value]):
        path = f"rescore[{index}]" if is_list else "rescore"
        with problems.at():
            rescores.append(_rescore(written, path, parser))
    problems.raise_if_any()
    return rescores


def _rescore(written: Any, path: str, parser: Parser) -> Rescore:
    problems = ErrorCollector()
    query: Query | None = None
    with problems.at(path):
        parameters.mapping(written, "`rescore`")
    problems.raise_if_any()
    with problems.at(path):
        known_only(written, {"window_size", "query"}, "`rescore`")
        window = parameters.integer(written.get("window_size", 10), "`window_size`")
        if not 0 < window <= RESULT_WINDOW:
            raise invalid(f"`window_size` must be from 1 to {RESULT_WINDOW:,}, not {window}")
    with problems.at(f"{path}.query"):
        options = parameters.mapping(written.get("query"), "`query` of `rescore`")
        known_only(options, _OPTIONS, "`query` of `rescore`")
        mode = parameters.choice(options.get("score_mode", "total"), tuple(_MODES), "`score_mode`")
        query_weight, rescore_weight = (
            np.float32(
                parameters.finite(parameters.any_number(options.get(name, 1), f"`{name}`"), f"`{name}`")
            )
            for name in ("query_weight", "rescore_query_weight")
        )
        if "rescore_query" not in options:
            raise invalid("`rescore` lacks `rescore_query`")
    problems.raise_if_any()
    query = rewrite(parser.query_at(f"{path}.query.rescore_query", options["rescore_query"]))
    return Rescore(query, window, query_weight, rescore_weight, _MODES[mode])
