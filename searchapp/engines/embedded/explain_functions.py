"""How the scores of `function_score` and of `boosting` came about.

Elasticsearch computes the values that it explains of a function again, in float32, while the score itself is in double
up to its end: the two may differ in the last digit, and so they do here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.base import Explanation
from searchapp.engines.embedded import functions
from searchapp.engines.embedded.describe import described
from searchapp.engines.embedded.explanations import exact, explained
from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.nodes import Boost, Boosting, FieldValue, Function, FunctionScore
from searchapp.engines.embedded.schema import Schema
from searchapp.engines.embedded.storage.reader import IndexReader

_HOW = {
    "multiply": "function score, product of:",
    "sum": "sum of",
    "avg": "avg of",
    "max": "max of:",
    "min": "min of",
}


def with_functions(
    reader: IndexReader,
    schema: Schema,
    query: FunctionScore,
    document: int,
    inner: Explanation,
    applies: Sequence[bool],
) -> Explanation:
    """How the functions of a query change the score that `inner` explains.

    `applies` tells for each function whether it is for the document.
    """
    if not query.functions:
        return inner
    place = np.array([document])
    parts = [
        _applied(reader, schema, function, place)
        for function, applying in zip(query.functions, applies, strict=True)
        if applying
    ]
    if not parts:
        factor = explained(1, "No function matched")
    elif query.single:
        factor = parts[0]
    else:
        masks = [np.array([applying]) for applying in applies]
        values = [
            functions.value(reader, one, place, mask)
            for one, mask in zip(query.functions, masks, strict=True)
        ]
        (value,) = functions.mode(query, values, masks)
        factor = explained(value, f"function score, score mode [{query.score_mode}]", parts)
    return _combined(query, inner, factor)


def lowered(
    query: Boosting,
    schema: Schema,
    inner: Explanation,
    matched: bool,
    boost: np.float32,
    score: np.float32,
) -> Explanation:
    """How `boosting` changes the score that `inner` explains; `matched` says whether by its negative query.

    `score` is what all comes to, with the boost. The product is a double, as Lucene's `DoubleValuesSource` has it.
    """
    changed = inner
    if matched:
        negative = query.negative.query if isinstance(query.negative, Boost) else query.negative
        factor = explained(query.factor, f"Matched boosting query score({described(negative, schema)})")
        changed = Explanation(exact(inner) * exact(factor), "product of:", (inner, factor))
    name = f"weight({described(query, schema)})"
    if boost == 1:
        return Explanation(changed.value, f"{name}, result of:", (changed,))
    return explained(score, f"{name}, product of:", (explained(boost, "boost"), changed))


def _applied(
    reader: IndexReader, schema: Schema, function: Function, document: NDArray[np.intp]
) -> Explanation:
    """What a function that is for the document gives it."""
    if function.value is None:
        found = explained(1, "constant score 1.0 - no function provided")
    else:
        (value,) = functions.field_value(reader, function.value, document)
        found = explained(value, f"field value function: {_formula(function.value)}")
    if function.weight is not None:
        weight = explained(function.weight, "weight")
        found = explained(_float(found) * _float(weight), "product of:", (found, weight))
    if function.filter is None:
        return found
    filtered = explained(1, f"match filter: {described(function.filter, schema)}")
    return explained(_float(found), "function score, product of:", (filtered, found))


def _formula(value: FieldValue) -> str:
    missing = "" if value.missing is None else f"?:{printed(value.missing, np.float64)}"
    return f"{value.modifier}(doc['{value.field}'].value{missing} * factor={printed(value.factor)})"


def _combined(query: FunctionScore, inner: Explanation, factor: Explanation) -> Explanation:
    limit = explained(query.max_boost, "maxBoost")
    limited = explained(min(_float(factor), _float(limit)), "min of:", (factor, limit))
    if query.boost_mode == "replace":
        return limited
    ours, theirs = _float(inner), _float(limited)
    values: dict[str, Callable[[], np.float32]] = {
        "multiply": lambda: ours * theirs,
        "sum": lambda: ours + theirs,
        "avg": lambda: np.float32(float(ours + theirs) / 2),
        "max": lambda: max(ours, theirs),
        "min": lambda: min(ours, theirs),
    }
    with np.errstate(over="ignore"):
        return explained(values[query.boost_mode](), _HOW[query.boost_mode], (inner, limited))


def _float(explanation: Explanation) -> np.float32:
    return np.float32(exact(explanation))
