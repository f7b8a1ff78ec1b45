"""The boosts of queries: float32 held in floats, multiplied in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from searchapp.engines.embedded import parameters
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import Boost, Query
from searchapp.engines.embedded.similarity import ONE


def boosted(query: Query, given: Mapping[str, Any], name: str) -> Query:
    """The query with the boost among its parameters."""
    return multiplied_by(query, parameters.boost(given.get("boost", 1), f"the query `{name}`"))


def multiplied_by(query: Query, boost: float) -> Query:
    """The query with a boost."""
    if boost == 1 or (isinstance(query, Leaf) and query.matches_nothing):
        return query
    return Boost(query, parameters.finite(boost, "the boost of a query"))


def without_boosts(query: Query, boost: np.float32 = ONE) -> tuple[Query, np.float32]:
    """What is inside the boosts of a query, and their product with the one outside, as a `Scorer` multiplies them."""
    while isinstance(query, Boost):
        boost, query = np.float32(query.boost) * boost, query.query
    return query, boost


def product(first: float, second: float) -> float:
    """The product of two boosts."""
    return float(np.float32(first) * np.float32(second))
