"""Compound queries: `bool`, `dis_max`, `constant_score`, `boosting`, `function_score`.

The functions of `function_score` are computed as in `org.elasticsearch.common.lucene.search.function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.errors import Reported, beyond_float32, invalid, known_only, unsupported
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries.match_all import MatchAll, MatchNone, is_nothing
from searchapp.lucene.queries.parser import Parser, required, with_minimum
from searchapp.lucene.queries.query import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FieldValue,
    Function,
    FunctionScore,
    Query,
    boosted,
)
from searchapp.lucene.similarity import Float32s

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


def function_scores(
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
        function_values(reader, function, documents, where)
        for function, where in zip(query.functions, applies, strict=True)
    ]
    masks = [np.ones(len(documents), bool) if where is None else where for where in applies]
    with np.errstate(over="ignore", invalid="ignore"):
        limited = np.minimum(combined_factors(query, every, masks), query.max_boost)
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


def combined_factors(
    query: FunctionScore, every: Sequence[Doubles], masks: Sequence[NDArray[np.bool_]]
) -> Doubles:
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


def function_values(
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


_CLAUSES = ("must", "must_not", "should", "filter")


def _clauses(parser: Parser, described: Any, name: str) -> tuple[Query, ...]:
    if described is None:
        return ()
    if not isinstance(described, list | tuple | Mapping):
        raise invalid(f"`{name}` of the query `bool` must be a query or a list of them, not {described!r}")
    return parser.queries(described, f"bool.{name}")


def bool_(parser: Parser, content: Any) -> Query:
    """Clauses that must, should or must not match; without any, every document."""
    given = parser.options(content, "bool", (*_CLAUSES, "minimum_should_match"))
    clauses: dict[str, tuple[Query, ...]] = {}
    for name in _CLAUSES:
        with suppress(Reported):  # the others are still read, for their problems
            clauses[name] = _clauses(parser, given.get(name), name)
    if len(clauses) < len(_CLAUSES):
        raise Reported
    must, must_not, should, filters = clauses.values()
    query = Bool(must, must_not, should, filters)
    minimum = given.get("minimum_should_match")
    text = None if minimum is None else parameters.raw_text(minimum, "minimum_should_match")
    if not len(query):
        return boosted(MatchAll(), given, "bool")
    if _matches_nothing(query):
        return MatchNone()
    query = with_minimum(query, text)
    if len(query.must_not) == len(query):
        query = Bool(must_not=query.must_not, filter=(MatchAll(),))
    return boosted(query, given, "bool")


def _matches_nothing(query: Bool) -> bool:
    """What Elasticsearch sees in the clauses (`BoolQueryBuilder.doRewrite`)."""
    if any(map(is_nothing, (*query.must, *query.filter))) or any(map(_is_everything, query.must_not)):
        return True
    return len(query.should) == len(query) and all(map(is_nothing, query.should))


def _is_everything(query: Query) -> bool:
    inside = query.query if isinstance(query, Boost) else query
    return isinstance(inside, MatchAll) and not inside.late


def dis_max(parser: Parser, content: Any) -> Query:
    """The best of several queries."""
    given = parser.options(content, "dis_max", ("queries", "tie_breaker"))
    queries = parser.queries(required(given, "queries", "dis_max"), "dis_max.queries")
    if not queries:
        raise invalid("the query `dis_max` has no `queries`")
    tie_breaker = parameters.share(given.get("tie_breaker", 0), "tie_breaker")
    return boosted(DisMax(queries, tie_breaker), given, "dis_max")


def constant_score(parser: Parser, content: Any) -> Query:
    """A query as a filter: every document it matches has the same score."""
    given = parser.options(content, "constant_score", ("filter",))
    inner = parser.query(required(given, "filter", "constant_score"))
    return boosted(inner if is_nothing(inner) else Constant(inner), given, "constant_score")


def boosting(parser: Parser, content: Any) -> Query:
    """A query, and another one that lowers the score of what it matches."""
    described = parameters.mapping(content, "the query `boosting`")
    parameters.without_lists(described, ("boost", "negative_boost"), "the query `boosting`")
    given = parser.options(described, "boosting", ("positive", "negative", "negative_boost"))
    factor = parameters.signless(required(given, "negative_boost", "boosting"), "negative_boost")
    if not math.isfinite(factor):
        raise unsupported(f"{factor} as negative_boost")
    if factor < 0:
        raise invalid(f"negative_boost is {factor:g}, but must not be negative")
    positive = parser.query(required(given, "positive", "boosting"))
    negative = parser.query(required(given, "negative", "boosting"))
    if is_nothing(positive):
        return positive
    return boosted(Boosting(positive, negative, factor, as_written=negative), given, "boosting")


SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
BOOST_MODE_NAMES = ("multiply", "replace", "sum", "avg", "max", "min")
MODIFIER_NAMES = ("none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal")
LARGEST = 3.4028234663852886e38
"""The greatest float32, `max_boost` where none is given."""

_FUNCTION = ("weight", "field_value_factor")


def function_score(parser: Parser, content: Any) -> Query:
    """A query whose scores are combined with functions of the document."""
    known = ("query", "functions", "score_mode", "boost_mode", "max_boost", "min_score", *_FUNCTION)
    described = parameters.mapping(content, "the query `function_score`")
    # null is as if the parameter were not there
    present = {name: value for name, value in described.items() if value is not None}
    given = parser.options(present, "function_score", known)
    query = parser.query(given["query"]) if "query" in given else MatchAll()
    own = [name for name in _FUNCTION if name in given]
    if len(own) + ("functions" in given) > 1:
        raise invalid("`function_score` has several functions: list them in `functions`")
    listed = [{name: given[name] for name in own}] if own else given.get("functions", ())
    functions = tuple(_function(parser, one) for one in parameters.listed(listed, "`functions`"))
    single = not functions or (len(functions) == 1 and functions[0].filter is None)
    score_mode = parameters.choice(given.get("score_mode", "multiply"), SCORE_MODES, "score_mode")
    boost_mode = parameters.choice(given.get("boost_mode", "multiply"), BOOST_MODE_NAMES, "boost_mode")
    min_score = (
        _finite(parameters.signless(given["min_score"], "min_score"), "min_score")
        if "min_score" in given
        else None
    )
    max_boost = parameters.no_nan(
        parameters.any_number(given.get("max_boost", LARGEST), "max_boost"), "max_boost"
    )
    if is_nothing(query):
        parameters.boost(
            given.get("boost", 1), "the query `function_score`"
        )  # refused even where nothing matches
        return query
    for value in (function.value for function in functions):
        if value is not None and not value.mapped and value.missing is None:
            raise invalid(
                f"`field_value_factor` on {value.field}, which the mapping has not, needs `missing`"
            )
    found = FunctionScore(
        query,
        functions,
        # There is nothing to combine then, and so no weights that `avg` would divide by.
        "multiply" if single else score_mode,
        # Nor is there anything to combine the score with, where there is no function.
        boost_mode if functions else "multiply",
        max_boost,
        min_score,
        single=single,
    )
    return boosted(found, given, "function_score")


def _function(parser: Parser, described: Any) -> Function:
    given = parameters.mapping(described, "a function of `function_score`")
    known_only(given, {"filter", *_FUNCTION}, "a function of `function_score`")
    for name in ("filter", *_FUNCTION):
        if isinstance(given.get(name), list | tuple):  # Elasticsearch looks into it
            raise unsupported(f"a list as `{name}` of a function")
    weight, value = (given.get(name) for name in _FUNCTION)
    if weight is None and value is None:
        raise invalid("a function of `function_score` has neither weight nor field_value_factor")
    return Function(
        None if given.get("filter") is None else _filter(parser, given["filter"]),
        None if weight is None else _weight(weight),
        None if value is None else _field_value(parser, value),
    )


def _weight(given: Any) -> float:
    """A weight; Elasticsearch looks at it when a document is scored."""
    return _finite(parameters.boost(given, "a function"), "the weight of a function")


def _finite(given: float, place: str) -> float:
    """The number; others come to scores that both engines refuse, if there are documents to score."""
    if not math.isfinite(given):
        raise unsupported(f"{given} as {place}")
    return given


def _filter(parser: Parser, described: Any) -> Query | None:
    """None for all documents: Elasticsearch drops `match_all`, and a query that comes to it, before the search."""
    query = parser.query(described)
    everything = query.query if isinstance(query, Boost) else query
    if isinstance(everything, MatchAll) and next(iter(described)) in ("match_all", "bool"):
        return None
    return query


def _field_value(parser: Parser, described: Any) -> FieldValue:
    given: Mapping[str, Any] = parameters.mapping(described, "`field_value_factor`")
    known_only(given, {"field", "factor", "modifier", "missing"}, "`field_value_factor`")
    given = {name: value for name, value in given.items() if value is not None}
    parameters.without_lists(given, ("field", "modifier"), "`field_value_factor`")
    name = parameters.raw_text(
        required(given, "field", "field_value_factor"), "`field` of `field_value_factor`"
    )
    if not name:
        raise unsupported("`field_value_factor` on a field without a name")
    field = parser.field(name)
    if field is not None and not field.is_number:
        raise unsupported(f"`field_value_factor` on {name}, which is no number of the mapping")
    return FieldValue(
        name,
        _finite(parameters.signless(given.get("factor", 1), "factor"), "factor"),
        parameters.choice(given.get("modifier", "none"), MODIFIER_NAMES, "modifier"),
        _missing(given["missing"]) if "missing" in given else None,
        mapped=field is not None,
    )


def _missing(value: Any) -> float:
    """The value of documents without one: a double, unlike the other numbers."""
    place = "`missing` of `field_value_factor`"
    if isinstance(value, list | tuple):
        raise unsupported(f"a list as {place}")
    try:
        text = parameters.raw_text(value, place)
        given = parameters.double(text)
    except ValueError as error:
        raise invalid(f"{place} must be a number, not {value!r}") from error
    if given == 0 and math.copysign(1, given) < 0:
        raise unsupported(f"-0.0 as {place}")
    if math.isnan(given):
        raise unsupported(f"NaN as {place}")
    return given
