"""`function_score`: scores combined with weights and with numbers of the document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from searchapp.engines.embedded import java_numbers, parameters
from searchapp.engines.embedded.queries.boosts import boosted
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import is_nothing
from searchapp.engines.embedded.queries.nodes import Boost, FieldValue, Function, FunctionScore, Query
from searchapp.engines.embedded.queries.parse import Parser, required
from searchapp.engines.embedded.refusals import invalid, known_only, unsupported

SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
BOOST_MODES = ("multiply", "replace", "sum", "avg", "max", "min")
MODIFIERS = ("none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal")
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
    boost_mode = parameters.choice(given.get("boost_mode", "multiply"), BOOST_MODES, "boost_mode")
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
        parameters.choice(given.get("modifier", "none"), MODIFIERS, "modifier"),
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
        given = java_numbers.double(text)
    except ValueError as error:
        raise invalid(f"{place} must be a number, not {value!r}") from error
    if given == 0 and math.copysign(1, given) < 0:
        raise unsupported(f"-0.0 as {place}")
    if math.isnan(given):
        raise unsupported(f"NaN as {place}")
    return given
