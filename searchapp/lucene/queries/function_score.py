"""The query `function_score`: combines scores with functions of the document.

Computed as in `org.elasticsearch.common.lucene.search.function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field as dataclass_field
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BEYOND_FLOAT32, Refused, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import decay
from searchapp.lucene.queries.decay import Decay
from searchapp.lucene.queries.match_all import MatchAll, is_nothing
from searchapp.lucene.queries.query import (
    Boost,
    Leaf,
    Parser,
    Query,
    apply_boost_parameter,
    check_clause_count,
    document_mask,
    exact_value,
    explain,
    multiply_boosts,
    required,
    rewrite,
)
from searchapp.lucene.queries.scores import Doubles, ScoreRows, Scores, restrict
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE, Float32s

Bools = NDArray[np.bool_]
Numbers = NDArray[np.intp]

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

_EXPLAINED_MODES: dict[str, tuple[str, Callable[[np.float32, np.float32], np.float32]]] = {
    "multiply": ("function score, product of:", lambda score, factor: score * factor),
    "sum": ("sum of", lambda score, factor: score + factor),
    "avg": ("avg of", lambda score, factor: np.float32(float(score + factor) / 2)),
    "max": ("max of:", max),
    "min": ("min of", min),
}


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A number of the document as a factor: modifier(value * factor).

    Values that differ only in `missing` are equal, as in Elasticsearch: in a `bool` the first one then counts twice.
    """

    field: str
    factor: float
    modifier: str
    missing: float | None = dataclass_field(compare=False)
    mapped: bool = True  # whether the mapping has the field

    def values(self, reader: IndexReader, documents: Numbers) -> Doubles:
        """Return modifier(value * factor) for the smallest value of each document."""
        values = (
            reader.fields[self.field].smallest(documents) if self.mapped else np.full(len(documents), np.nan)
        )
        if self.missing is not None:
            values = np.where(np.isnan(values), self.missing, values)
        elif np.isnan(values).any():
            raise invalid(
                f"a document has no value in {self.field}: give `field_value_factor` a value for them with `missing`"
            )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            result = MODIFIERS[self.modifier](values * self.factor)
        if (result < 0).any():
            raise invalid(f"`field_value_factor` on {self.field} is negative for some document")
        if (np.signbit(result) & (result == 0)).any():
            raise unsupported(f"`field_value_factor` on {self.field} that is -0.0 for some document")
        return result

    def explanation(self, reader: IndexReader, document: Numbers) -> Explanation:
        (value,) = self.values(reader, document)
        missing = "" if self.missing is None else f"?:{printed(self.missing, np.float64)}"
        formula = f"{self.modifier}(doc['{self.field}'].value{missing} * factor={printed(self.factor)})"
        return explain(value, f"field value function: {formula}")


@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """A function of `function_score`: for the documents of `filter`, a weight times a function of a field."""

    filter: Query | None
    weight: float | None
    value: FieldValue | Decay | None

    def values(self, reader: IndexReader, documents: Numbers, applies: Bools) -> Doubles:
        """Return the factor of each document, 1 outside the filter."""
        values = np.ones(len(documents))
        if self.value is not None:
            values[applies] = self.value.values(reader, documents[applies])
        with np.errstate(over="ignore", invalid="ignore"):
            return values if self.weight is None else values * self.weight

    def explanation(self, reader: IndexReader, document: Numbers) -> Explanation:
        if self.value is None:
            factor = explain(1, "constant score 1.0 - no function provided")
        else:
            factor = self.value.explanation(reader, document)
        if self.weight is not None:
            weight = explain(self.weight, "weight")
            factor = explain(_float(factor) * _float(weight), "product of:", (factor, weight))
        if self.filter is None:
            return factor
        filtered = explain(1, f"match filter: {self.filter.notation(reader.schema)}")
        return explain(_float(factor), "function score, product of:", (filtered, factor))


@dataclass(frozen=True, slots=True)
class FunctionScore(Query):
    """Combines the scores of a query with functions of the document."""

    query: Query
    functions: tuple[ScoreFunction, ...]
    score_mode: str
    boost_mode: str
    max_boost: float
    min_score: float | None
    # Whether there is at most one function, without a filter; Elasticsearch explains this case differently.
    single: bool

    def children(self) -> tuple[Query, ...]:
        return (self.query, *self._filters())

    def _filters(self) -> tuple[Query, ...]:
        return tuple(function.filter for function in self.functions if function.filter is not None)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        query, *filters = children
        remaining = iter(filters)
        functions = tuple(
            function if function.filter is None else replace(function, filter=next(remaining))
            for function in self.functions
        )
        return replace(self, query=query, functions=functions)

    @property
    def clause_count(self) -> int:
        for condition in self._filters():
            check_clause_count(condition.clause_count)
        return self.query.clause_count

    @property
    def reads_values(self) -> bool:
        has_value = any(function.value is not None for function in self.functions)
        return has_value or any(child.reads_values for child in self.children())

    @property
    def reads_scores(self) -> bool:
        return self.min_score is not None or any(child.reads_scores for child in self.children())

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        if not isinstance(self.query, FunctionScore):
            yield from self.query.leaves(boost)
            return
        # Elasticsearch rewrites a `function_score` directly inside another one first, and then misses its prefixes and
        # lists of terms. Without anything to rewrite, it collects the terms and ignores the outer boost.
        leaves = list(self.query.leaves())
        is_rewritten = any(factor == 0 or leaf.is_multi_term for leaf, factor in leaves)
        for leaf, factor in leaves:
            if not leaf.is_multi_term:
                yield leaf, multiply_boosts(factor, boost) if is_rewritten else factor

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return self.query.scored_terms(boost)

    def rewritten(self) -> Query:
        simpler = (self.query.rewritten(), *map(rewrite, self._filters()))
        is_same = all(new is old for new, old in zip(simpler, self.children(), strict=True))
        return self if is_same else self.with_children(simpler)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        if self.min_score is None:
            return self.query.matching(rows, boost, scope)
        return self.scores(rows, boost, scope).mask()

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        inner = self.query.scores(rows, boost, scope)
        mask = inner.mask()
        if scope is not None:
            mask = mask & scope
        documents = np.flatnonzero(mask)
        values = np.zeros(rows.count, np.float32)
        values[documents] = self._final_scores(rows, documents, inner.values[documents], mask)
        if self.min_score is not None:
            mask = mask & (values >= np.float32(self.min_score))
        return restrict(Scores(values, mask), mask)

    def _final_scores(self, rows: ScoreRows, documents: Numbers, scores: Float32s, mask: Mask) -> Float32s:
        if not self.functions:
            return scores
        applies = self._applies(rows, documents, mask)
        if self.score_mode == "first":  # no values are needed where an earlier function applies
            remaining = np.ones(len(documents), bool)
            for index, function_applies in enumerate(applies):
                applies[index] = remaining & function_applies
                remaining = remaining & ~function_applies
        with np.errstate(over="ignore", invalid="ignore"):
            limited = np.minimum(self._factors(rows.reader, documents, applies), self.max_boost)
            final = BOOST_MODES[self.boost_mode](scores.astype(np.float64), limited).astype(np.float32)
        if len(final) and not final.min() >= 0:
            raise invalid("`function_score` is negative or not a number for some document")
        if np.isinf(final).any():
            raise Refused(BEYOND_FLOAT32)
        return final

    def _applies(self, rows: ScoreRows, documents: Numbers, mask: Mask) -> list[Bools]:
        return [
            np.ones(len(documents), bool)
            if function.filter is None
            else function.filter.matching(rows, scope=mask)[documents]
            for function in self.functions
        ]

    def _factors(self, reader: IndexReader, documents: Numbers, applies: Sequence[Bools]) -> Doubles:
        values = [
            function.values(reader, documents, function_applies)
            for function, function_applies in zip(self.functions, applies, strict=True)
        ]
        pairs = list(zip(values, applies, strict=True))
        factors = np.ones(len(documents))
        match self.score_mode:
            case "multiply":
                for value, mask in pairs:
                    factors[mask] *= value[mask]
                return factors
            case "first":
                for value, mask in reversed(pairs):
                    factors[mask] = value[mask]
                return factors
            case "max" | "min":
                worst, choose = (-np.inf, np.maximum) if self.score_mode == "max" else (np.inf, np.minimum)
                factors[np.logical_or.reduce(applies)] = worst
                for value, mask in pairs:
                    factors[mask] = choose(factors[mask], value[mask])
                return factors
        totals, weights = np.zeros(len(documents)), np.zeros(len(documents))
        for function, (value, mask) in zip(self.functions, pairs, strict=True):
            totals[mask] += value[mask]
            weights[mask] += 1.0 if function.weight is None else function.weight
        has_weight = weights != 0
        divisors = np.where(has_weight, weights, 1.0) if self.score_mode == "avg" else 1.0
        return np.where(has_weight, totals / divisors, 1.0)

    def notation(self, schema: Schema) -> str:
        if self.functions:
            # Elasticsearch prints memory addresses of objects there.
            raise unsupported("the explanation of `function_score` inside a filter or a constant score")
        return f"function score ({self.query.notation(schema)}, functions: [])"

    def unscored(self) -> Query:
        return self.query.unscored() if self.min_score is None else self

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        scope = document_mask(document, rows)
        inner = self.query.explanation(rows, document, boost)
        if inner is None or not self.scores(rows, boost, scope).mask()[document]:
            return None
        explanation = self._explained_functions(rows, document, inner) if self.functions else inner
        if self.min_score is not None and self.min_score > np.float32(exact_value(explanation)):
            # Elasticsearch then explains that the document does not match, although it is a hit.
            raise unsupported("the explanation of a score that reaches `min_score` by its rounding")
        return explanation

    def _explained_functions(self, rows: ScoreRows, document: int, inner: Explanation) -> Explanation:
        documents = np.array([document])
        applies = self._applies(rows, documents, document_mask(document, rows))
        parts = [
            function.explanation(rows.reader, documents)
            for function, (function_applies,) in zip(self.functions, applies, strict=True)
            if function_applies
        ]
        if not parts:
            factor = explain(1, "No function matched")
        elif self.single:
            factor = parts[0]
        else:
            (value,) = self._factors(rows.reader, documents, applies)
            factor = explain(value, f"function score, score mode [{self.score_mode}]", parts)
        limit = explain(self.max_boost, "maxBoost")
        limited = explain(min(_float(factor), _float(limit)), "min of:", (factor, limit))
        if self.boost_mode == "replace":
            return limited
        words, combine = _EXPLAINED_MODES[self.boost_mode]
        with np.errstate(over="ignore"):
            return explain(combine(_float(inner), _float(limited)), words, (inner, limited))


def _float(explanation: Explanation) -> np.float32:
    return np.float32(exact_value(explanation))


SCORE_MODES = ("multiply", "sum", "avg", "first", "max", "min")
LARGEST = 3.4028234663852886e38  # the greatest float32, the default of `max_boost`

FUNCTIONS = ("weight", "field_value_factor", *decay.SHAPES)

_REJECTED = {
    "script_score": "`script_score` (use `field_value_factor`, `gauss`, `exp` or `linear`)",
    "random_score": "`random_score`, whose numbers depend on the name of the index,",
}


def read_function_score(parser: Parser, content: Any) -> Query:
    """Read `function_score`."""
    known = ("query", "functions", "score_mode", "boost_mode", "max_boost", "min_score", *FUNCTIONS)
    described = parameters.mapping(content, "the query `function_score`")
    # Elasticsearch ignores parameters that are null.
    present = {name: value for name, value in described.items() if value is not None}
    _reject_functions(present)
    options = parser.options(present, "function_score", known)
    query = parser.query(options["query"]) if "query" in options else MatchAll()
    own = [name for name in FUNCTIONS if name in options]
    if len(own) + ("functions" in options) > 1:
        raise invalid("`function_score` has several functions: list them in `functions`")
    listed = [{name: options[name] for name in own}] if own else options.get("functions", ())
    # Elasticsearch reads no decay functions for a query that matches nothing.
    is_read = not is_nothing(query)
    functions = tuple(
        _function(parser, function, reads_decay=is_read)
        for function in parameters.listed(listed, "`functions`")
    )
    single = not functions or (len(functions) == 1 and functions[0].filter is None)
    score_mode = parameters.choice(options.get("score_mode", "multiply"), SCORE_MODES, "score_mode")
    boost_mode = parameters.choice(options.get("boost_mode", "multiply"), tuple(BOOST_MODES), "boost_mode")
    min_score = _finite_number(options["min_score"], "min_score") if "min_score" in options else None
    max_boost = parameters.no_nan(
        parameters.any_number(options.get("max_boost", LARGEST), "max_boost"), "max_boost"
    )
    if is_nothing(query):
        return query
    for value in (function.value for function in functions):
        if isinstance(value, FieldValue) and not value.mapped and value.missing is None:
            raise invalid(
                f"`field_value_factor` on {value.field}, which is not in the mapping, needs `missing`"
            )
    function_score = FunctionScore(
        query,
        functions,
        # A single function is not combined, so `avg` does not divide by its weight.
        "multiply" if single else score_mode,
        # Without functions the score is unchanged.
        boost_mode if functions else "multiply",
        max_boost,
        min_score,
        single=single,
    )
    return apply_boost_parameter(function_score, options, "function_score")


def _finite_number(value: Any, label: str) -> float:
    # Both engines reject other numbers once they score a document.
    return parameters.supported_finite(parameters.signless(value, label), label)


def _reject_functions(options: Mapping[str, Any]) -> None:
    for name, reason in _REJECTED.items():
        if name in options:
            raise unsupported(f"{reason} in `function_score`")


def _function(parser: Parser, described: Any, *, reads_decay: bool) -> ScoreFunction:
    options = parameters.mapping(described, "a function of `function_score`")
    _reject_functions(options)
    known_only(options, {"filter", *FUNCTIONS}, "a function of `function_score`")
    for name in ("filter", *FUNCTIONS):
        if isinstance(options.get(name), list | tuple):  # Elasticsearch reads its elements
            raise unsupported(f"a list as `{name}` of a function")
    weight = options.get("weight")
    named = [name for name in FUNCTIONS[1:] if options.get(name) is not None]
    if len(named) > 1:
        raise invalid(f"a function of `function_score` has both {' and '.join(named)}")
    if weight is None and not named:
        raise invalid(f"a function of `function_score` has none of {', '.join(FUNCTIONS)}")
    condition = None if options.get("filter") is None else _filter(parser, options["filter"])
    if weight is not None:
        weight = parameters.boost(weight, "a function")
        weight = parameters.supported_finite(weight, "the weight of a function")
    value: FieldValue | Decay | None = None
    if named and (reads_decay or named[0] not in decay.SHAPES):
        value = _value(parser, named[0], options[named[0]])
    return ScoreFunction(condition, weight, value)


def _value(parser: Parser, name: str, described: Any) -> FieldValue | Decay:
    if name == "field_value_factor":
        return _field_value(parser, described)
    return decay.read_decay(parser, name, described)


def _filter(parser: Parser, described: Any) -> Query | None:
    """Read a filter; None for all documents, because Elasticsearch drops `match_all` and an equivalent `bool`."""
    query = parser.query(described)
    everything = query.query if isinstance(query, Boost) else query
    if isinstance(everything, MatchAll) and next(iter(described)) in ("match_all", "bool"):
        return None
    return query


def _field_value(parser: Parser, described: Any) -> FieldValue:
    options: Mapping[str, Any] = parameters.mapping(described, "`field_value_factor`")
    known_only(options, {"field", "factor", "modifier", "missing"}, "`field_value_factor`")
    options = {name: value for name, value in options.items() if value is not None}
    parameters.without_lists(options, ("field", "modifier"), "`field_value_factor`")
    name = parameters.raw_text(
        required(options, "field", "field_value_factor"), "`field` of `field_value_factor`"
    )
    if not name:
        raise unsupported("`field_value_factor` on a field without a name")
    field = parser.field(name)
    if field is not None and not field.is_number:
        raise unsupported(f"`field_value_factor` on {name}, which is not a number field of the mapping")
    if field is not None and not field.has_doc_values:
        # Elasticsearch rejects it too, if it looks for values at all.
        raise unsupported(f"`field_value_factor` on {name}, which has no doc values")
    return FieldValue(
        field.name if field else name,
        _finite_number(options.get("factor", 1), "factor"),
        parameters.choice(options.get("modifier", "none"), tuple(MODIFIERS), "modifier"),
        _missing(options["missing"]) if "missing" in options else None,
        mapped=field is not None,
    )


def _missing(value: Any) -> float:
    """Read the value of documents without one: a double, unlike the other numbers."""
    label = "`missing` of `field_value_factor`"
    if isinstance(value, list | tuple):
        raise unsupported(f"a list as {label}")
    try:
        number = parameters.double(parameters.raw_text(value, label))
    except ValueError as error:
        raise invalid(f"{label} must be a number, not {value!r}") from error
    if number == 0 and math.copysign(1, number) < 0:
        raise unsupported(f"-0.0 as {label}")
    return parameters.no_nan(number, label)
