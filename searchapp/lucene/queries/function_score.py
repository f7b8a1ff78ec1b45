"""The query `function_score`: a query whose scores are combined with functions of the document.

The functions are computed as in `org.elasticsearch.common.lucene.search.function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.errors import BEYOND_FLOAT32, Refused, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import MatchAll, is_nothing
from searchapp.lucene.queries.parser import Parser, required
from searchapp.lucene.queries.query import (
    Boost,
    Leaf,
    Query,
    boosted,
    exact,
    explained,
    only,
    product,
    require_few,
    rewrite,
)
from searchapp.lucene.queries.scores import Doubles, ScoreRows, Scores, restricted
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE, Float32s


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A number of the document's as a factor: modifier(value * factor).

    Two that differ in `missing` only are the same to Elasticsearch: as clauses of one `bool` the first one counts
    twice. `mapped` says whether the mapping has the field at all.
    """

    field: str
    factor: float
    modifier: str
    missing: float | None = dataclass_field(compare=False)
    mapped: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """One function of `function_score`: for the documents of `filter`, a weight times a field's value."""

    filter: Query | None
    weight: float | None
    value: FieldValue | None


@dataclass(frozen=True, slots=True)
class FunctionScore(Query):
    """A query whose scores are combined with functions of the document.

    `single` says that there is at most one function and that the function is for all documents, which
    Elasticsearch explains differently.
    """

    query: Query
    functions: tuple[Function, ...]
    score_mode: str
    boost_mode: str
    max_boost: float
    min_score: float | None
    single: bool

    def children(self) -> tuple[Query, ...]:
        return (self.query, *self._filters())

    def _filters(self) -> tuple[Query, ...]:
        return tuple(one.filter for one in self.functions if one.filter is not None)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        query, *filters = children
        others = iter(filters)
        functions = tuple(
            one if one.filter is None else replace(one, filter=next(others)) for one in self.functions
        )
        return replace(self, query=query, functions=functions)

    @property
    def clause_count(self) -> int:
        for condition in self._filters():
            require_few(condition.clause_count)
        return self.query.clause_count

    @property
    def reads_values(self) -> bool:
        inside = (child.reads_values for child in self.children())
        return any(one.value is not None for one in self.functions) or any(inside)

    @property
    def reads_scores(self) -> bool:
        return self.min_score is not None or any(child.reads_scores for child in self.children())

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        """Those of the query.

        Elasticsearch rewrites a `function_score` right inside another one before it looks into the inner one, and so
        finds no prefixes and lists of terms there. Where there is nothing to rewrite, it collects the terms, whatever
        the boost outside.
        """
        if not isinstance(self.query, FunctionScore):
            yield from self.query.leaves(boost)
            return
        found = list(self.query.leaves())
        stays = all(factor != 0 and not leaf.is_multi_term for leaf, factor in found)
        for leaf, factor in found:
            if not leaf.is_multi_term:
                yield leaf, factor if stays else product(factor, boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return self.query.scored_terms(boost)

    def rewritten(self) -> Query:
        children = self.children()
        simpler = (self.query.rewritten(), *map(rewrite, self._filters()))
        same = all(new is old for new, old in zip(simpler, children, strict=True))
        return self if same else self.with_children(simpler)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        if self.min_score is None:
            return self.query.matching(rows, boost, among)
        return self.scores(rows, boost, among).mask()

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        inner = self.query.scores(rows, boost, among)
        mask = inner.mask()
        if among is not None:
            mask = mask & among
        documents = np.flatnonzero(mask)
        applies = [
            None if one.filter is None else one.filter.matching(rows, among=mask)[documents]
            for one in self.functions
        ]
        values = np.zeros(rows.count, np.float32)
        values[documents] = function_scores(rows.reader, self, documents, inner.values[documents], applies)
        if self.min_score is not None:
            mask = mask & (values >= np.float32(self.min_score))
        return restricted(Scores(values, mask), mask)

    def notation(self, schema: Schema) -> str:
        if self.functions:
            # Elasticsearch prints the addresses of objects there, which are others each time.
            raise unsupported("the explanation of `function_score` inside a filter or a constant score")
        return f"function score ({self.query.notation(schema)}, functions: [])"

    def unscored(self) -> Query:
        return self.query.unscored() if self.min_score is None else self

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        among = only(document, rows)
        inner = self.query.explanation(rows, document, boost)
        if inner is None or not self.scores(rows, boost, among).mask()[document]:
            return None
        applies = [
            one.filter is None or bool(one.filter.matching(rows, among=among)[document])
            for one in self.functions
        ]
        found = _explained_functions(rows.reader, self, document, inner, applies)
        if self.min_score is not None and self.min_score > np.float32(exact(found)):
            # Elasticsearch explains then that the document does not match, though it found it.
            raise unsupported("the explanation of a score that reaches `min_score` by its rounding")
        return found


PositionSpans = NDArray[np.intp]

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
    documents: PositionSpans,
    scores: Float32s,
    applies: Sequence[NDArray[np.bool_] | None],
) -> Float32s:
    """The final scores of documents whose scores so far are given.

    `applies` tells for each function which of the documents it is for; None stands for all documents.

    Raises:
        Refused: a document has no value in the field of a function, or comes to a negative or infinite score.
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
        raise Refused(BEYOND_FLOAT32)
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
    reader: IndexReader, function: Function, documents: PositionSpans, where: NDArray[np.bool_] | None
) -> Doubles:
    """What a function gives for each document; 1 for documents that the function is not for."""
    values = np.ones(len(documents))
    if function.value is not None:
        chosen = documents if where is None else documents[where]
        values[slice(None) if where is None else where] = field_value(reader, function.value, chosen)
    with np.errstate(over="ignore", invalid="ignore"):
        return values if function.weight is None else values * function.weight


def field_value(reader: IndexReader, function: FieldValue, documents: PositionSpans) -> Doubles:
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


_HOW = {
    "multiply": "function score, product of:",
    "sum": "sum of",
    "avg": "avg of",
    "max": "max of:",
    "min": "min of",
}


def _explained_functions(
    reader: IndexReader,
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
        _applied(reader, function, place)
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
            function_values(reader, one, place, mask)
            for one, mask in zip(query.functions, masks, strict=True)
        ]
        (value,) = combined_factors(query, values, masks)
        factor = explained(value, f"function score, score mode [{query.score_mode}]", parts)
    return _combined(query, inner, factor)


def _applied(reader: IndexReader, function: Function, document: PositionSpans) -> Explanation:
    """What a function that is for the document gives it."""
    if function.value is None:
        found = explained(1, "constant score 1.0 - no function provided")
    else:
        (value,) = field_value(reader, function.value, document)
        found = explained(value, f"field value function: {_formula(function.value)}")
    if function.weight is not None:
        weight = explained(function.weight, "weight")
        found = explained(_float(found) * _float(weight), "product of:", (found, weight))
    if function.filter is None:
        return found
    filtered = explained(1, f"match filter: {function.filter.notation(reader.schema)}")
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


SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
LARGEST = 3.4028234663852886e38
"""The greatest float32, `max_boost` where none is given."""

_FUNCTION = ("weight", "field_value_factor")


def read_function_score(parser: Parser, content: Any) -> Query:
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
    boost_mode = parameters.choice(given.get("boost_mode", "multiply"), tuple(BOOST_MODES), "boost_mode")
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
        parameters.choice(given.get("modifier", "none"), tuple(MODIFIERS), "modifier"),
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
