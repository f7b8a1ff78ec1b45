"""`function_score`: scores combined with weights and with numbers of the document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from searchapp.engines.embedded.queries import parameters
from searchapp.engines.embedded.queries.nodes import (
    Boost,
    FieldValue,
    Function,
    FunctionScore,
    MatchAll,
    Query,
    is_nothing,
)
from searchapp.engines.embedded.queries.parse import Parser, boosted, reads, required
from searchapp.engines.embedded.refusals import invalid, known_only, unsupported

SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
BOOST_MODES = ("multiply", "replace", "sum", "avg", "max", "min")
MODIFIERS = ("none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal")
LARGEST = 3.4028234663852886e38
"""The greatest float32, `max_boost` where none is given."""

_FUNCTION = ("weight", "field_value_factor")


@reads("function_score")
def function_score(parser: Parser, content: Any) -> Query:
    """A query whose scores are combined with functions of the document."""
    known = ("query", "functions", "score_mode", "boost_mode", "max_boost", "min_score", *_FUNCTION)
    given = parser.options(content, "function_score", known)
    query = MatchAll() if given.get("query") is None else parser.query(given["query"])
    own = {name: given[name] for name in _FUNCTION if name in given}
    if own and "functions" in given:
        raise invalid("`function_score` has both `functions` and a function of its own")
    described = [own] if own else parameters.listed(given.get("functions", ()), "`functions`")
    functions = tuple(_function(parser, one) for one in described)
    if is_nothing(query):
        return query
    single = not functions or (len(functions) == 1 and functions[0].filter is None)
    score_mode = parameters.choice(given.get("score_mode", "multiply"), SCORE_MODES, "score_mode")
    min_score = given.get("min_score")
    found = FunctionScore(
        query,
        functions,
        # There is nothing to combine then, and so no weights that `avg` would divide by.
        "multiply" if single else score_mode,
        parameters.choice(given.get("boost_mode", "multiply"), BOOST_MODES, "boost_mode"),
        parameters.number(given.get("max_boost", LARGEST), "max_boost"),
        None if min_score is None else parameters.number(min_score, "min_score"),
        single=single,
    )
    return boosted(found, given, "function_score")


def _function(parser: Parser, described: Any) -> Function:
    given = parameters.mapping(described, "a function of `function_score`")
    known_only(given, {"filter", *_FUNCTION}, "a function of `function_score`")
    if not any(name in given for name in _FUNCTION):
        raise invalid("a function of `function_score` has neither weight nor field_value_factor")
    weight = given.get("weight")
    return Function(
        None if given.get("filter") is None else _filter(parser, given["filter"]),
        None if weight is None else parameters.boost(weight, "a function"),
        _field_value(parser, given["field_value_factor"]) if "field_value_factor" in given else None,
    )


def _filter(parser: Parser, described: Any) -> Query | None:
    """None for all documents: Elasticsearch forgets `match_all` and what it turns into that before it searches."""
    query = parser.query(described)
    everything = query.query if isinstance(query, Boost) else query
    if isinstance(everything, MatchAll) and next(iter(described)) in ("match_all", "bool"):
        return None
    return query


def _field_value(parser: Parser, described: Any) -> FieldValue:
    given: Mapping[str, Any] = parameters.mapping(described, "`field_value_factor`")
    known_only(given, {"field", "factor", "modifier", "missing"}, "`field_value_factor`")
    name = parameters.name(required(given, "field", "field_value_factor"), "`field` of `field_value_factor`")
    field = parser.field(name)
    if field is None or not field.is_number:
        raise unsupported(f"`field_value_factor` on {name}, which is no number of the mapping")
    missing = given.get("missing")
    return FieldValue(
        name,
        parameters.number(given.get("factor", 1), "factor"),
        parameters.choice(given.get("modifier", "none"), MODIFIERS, "modifier"),
        None if missing is None else _missing(missing),
    )


def _missing(value: Any) -> float:
    """The value of documents without one: a double, unlike the other numbers."""
    given = float(parameters.exact(value, "`missing` of `field_value_factor`"))
    if given == 0 and math.copysign(1, given) < 0:
        raise unsupported("-0.0 as `missing` of `field_value_factor`")
    return given
