"""The functions of `function_score`, as `org.elasticsearch.common.lucene.search.function` computes them.

The functions are computed in double; the combination with the query's score is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.queries.nodes import FieldValue, Function, FunctionScore
from searchapp.engines.embedded.refusals import beyond_float32, invalid, unsupported
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.reader import IndexReader

Doubles = NDArray[np.float64]
Places = NDArray[np.intp]

MODIFIERS: dict[str, Callable[[Doubles], Doubles]] = {
    "none": lambda values: values,
    "log": np.log10,
    "log1p": lambda values: np.log10(values + 1),
    "log2p": lambda values: np.log10(values + 2),
    "ln": np.log,
    "ln1p": np.log1p,
    "ln2p": lambda values: np.log1p(values + 1),
    "square": np.square,
    "sqrt": np.sqrt,
    "reciprocal": lambda values: 1 / values,
}

BOOST_MODES: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "multiply": np.multiply,
    "replace": lambda _scores, factors: factors,
    "sum": np.add,
    "avg": lambda scores, factors: (factors + scores) / 2,
    "max": np.maximum,
    "min": np.minimum,
}


def combined(
    reader: IndexReader,
    query: FunctionScore,
    documents: Places,
    scores: Float32s,
    applies: Sequence[NDArray[np.bool_] | None],
) -> Float32s:
    """The final scores of documents whose scores so far are given.

    `applies` tells for each function which of the documents it is for; None stands for all documents.

    Raises:
        EngineRefused: a document has no value in the field of a function, or comes to a negative or infinite score.
    """
    if not query.functions:
        return scores
    if query.score_mode == "first":
        applies = _first_only(applies, len(documents))
    every = [
        value(reader, function, documents, where)
        for function, where in zip(query.functions, applies, strict=True)
    ]
    masks = [np.ones(len(documents), bool) if where is None else where for where in applies]
    with np.errstate(over="ignore", invalid="ignore"):
        limited = np.minimum(mode(query, every, masks), query.max_boost)
        final = BOOST_MODES[query.boost_mode](scores.astype(np.float64), limited).astype(np.float32)
    if len(final) and not final.min() >= 0:
        raise invalid("`function_score` comes to a negative score, or to none, for some document")
    if np.isinf(final).any():
        raise beyond_float32()
    return final


def _first_only(applies: Sequence[NDArray[np.bool_] | None], count: int) -> list[NDArray[np.bool_]]:
    """Each function for the documents that no earlier one is for: the values of others are not looked at."""
    left = np.ones(count, bool)
    found = []
    for where in applies:
        found.append(left if where is None else left & where)
        left = left & ~found[-1]
    return found


def mode(query: FunctionScore, every: Sequence[Doubles], masks: Sequence[NDArray[np.bool_]]) -> Doubles:
    """The functions' values as one factor a document: 1 where no function applies."""
    any_applies = np.logical_or.reduce(masks)
    match query.score_mode:
        case "multiply":
            factors = np.ones(len(any_applies))
            for values, mask in zip(every, masks, strict=True):
                factors[mask] *= values[mask]
            return factors
        case "first":
            factors = np.ones(len(any_applies))
            for values, mask in zip(reversed(every), reversed(masks), strict=True):
                factors[mask] = values[mask]
            return factors
        case "max" | "min":
            worst = -np.inf if query.score_mode == "max" else np.inf
            choose = np.maximum if query.score_mode == "max" else np.minimum
            factors = np.full(len(any_applies), worst)
            for values, mask in zip(every, masks, strict=True):
                factors[mask] = choose(factors[mask], values[mask])
            return np.where(any_applies, factors, 1.0)
    totals, weights = np.zeros(len(any_applies)), np.zeros(len(any_applies))
    for function, values, mask in zip(query.functions, every, masks, strict=True):
        totals[mask] += values[mask]
        weights[mask] += 1.0 if function.weight is None else function.weight
    known = weights != 0
    divisors = np.where(known, weights, 1.0) if query.score_mode == "avg" else 1.0
    return np.where(known, totals / divisors, 1.0)


def value(
    reader: IndexReader, function: Function, documents: Places, where: NDArray[np.bool_] | None
) -> Doubles:
    """What a function gives for each document; 1 for documents that the function is not for."""
    values = np.ones(len(documents))
    if function.value is not None:
        chosen = documents if where is None else documents[where]
        values[slice(None) if where is None else where] = field_value(reader, function.value, chosen)
    with np.errstate(over="ignore", invalid="ignore"):
        return values if function.weight is None else values * function.weight


def field_value(reader: IndexReader, function: FieldValue, documents: Places) -> Doubles:
    """modifier(value * factor), the value being the smallest that the document has in the field."""
    given = (
        reader.fields[function.field].smallest(documents)
        if function.mapped
        else np.full(len(documents), np.nan)
    )
    if function.missing is not None:
        given = np.where(np.isnan(given), function.missing, given)
    elif np.isnan(given).any():
        raise invalid(
            f"a document has no value in {function.field}: give `field_value_factor` a value for them with `missing`"
        )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        result = MODIFIERS[function.modifier](given * function.factor)
    if (result < 0).any():
        raise invalid(
            f"`field_value_factor` on {function.field} comes to a negative number for some document"
        )
    if (np.signbit(result) & (result == 0)).any():
        raise unsupported(f"`field_value_factor` on {function.field} that comes to -0.0 for some document")
    return result
