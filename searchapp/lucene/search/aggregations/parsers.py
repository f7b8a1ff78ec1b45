"""Reader of the `aggs` of a search body."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.arrays import Mask
from searchapp.lucene.index.mapping import ROOT
from searchapp.lucene.queries.query import Parser, Query, rewrite
from searchapp.lucene.queries.regexp import ALL, FLAGS, compile_expression
from searchapp.lucene.search.aggregations import buckets, metrics
from searchapp.lucene.search.aggregations.buckets import (
    COUNT,
    COUNT_DESCENDING,
    KEY,
    KEY_ASCENDING,
    Criterion,
    Inner,
    Named,
    Order,
    date_rounding,
    number_rounding,
)
from searchapp.lucene.search.aggregations.metrics import Json
from searchapp.lucene.search.aggregations.rounding import CALENDAR, Rounding, milliseconds
from searchapp.lucene.search.aggregations.values import ValueSource, read_source

_INNER = ("aggs", "aggregations")


@dataclass(frozen=True, slots=True)
class _Request:
    """An aggregation to read."""

    parser: Parser
    kind: str
    options: Any
    inner: Inner
    path: str
    outer: Sequence[str]  # the types of the aggregations around it
    inner_scope: str  # the path of the nested objects that inner aggregations read, see `Parser.scope`

    def read_options(self, known: Collection[str]) -> Mapping[str, Any]:
        options = parameters.mapping(self.options, self.label)
        known_only(options, {*known}, self.label)
        return options

    @property
    def label(self) -> str:
        return f"the aggregation `{self.kind}`"

    def of(self, parameter: str) -> str:
        return f"`{parameter}` of {self.label}"

    def query(self, path: str, body: Any) -> Query:
        return rewrite(self.parser.query_at(path, body))


def read_aggregations(parser: Parser, body: Any, path: str, outer: Sequence[str] = ()) -> Inner:
    """Read the object at a path of a search body that defines aggregations by name.

    Raises:
        Refused: lists all problems with their JSON paths.
    """
    problems = ErrorCollector()
    aggregations: dict[str, Named] = {}
    with problems.at(path):
        for name, content in parameters.mapping(body, "`aggs`").items():
            with problems.at():
                aggregations[name] = _read_named(parser, name, content, f"{path}.{name}", outer)
    problems.raise_if_any()
    return aggregations


def _read_named(parser: Parser, name: str, content: Any, path: str, outer: Sequence[str]) -> Named:
    problems = ErrorCollector()
    inner: Inner = {}
    meta: Mapping[str, Any] | None = None
    kinds: Sequence[str] = []
    with problems.at(path):
        if not name or re.search(r"[\[\]>]", name):
            raise invalid(f"the name {name!r} of an aggregation is empty or has one of the characters []>")
        options = parameters.mapping(content, f"the aggregation {name}")
        inner_names = [key for key in _INNER if key in options]
        kinds = [key for key in options if key not in (*_INNER, "meta")]
        if len(inner_names) > 1 or len(kinds) != 1:
            raise invalid(f"the aggregation {name} must have exactly one type, and `aggs` at most once")
        if "meta" in options:
            meta = parameters.mapping(options["meta"], f"`meta` of the aggregation {name}")
    problems.raise_if_any()
    kind, scope = kinds[0], parser.scope
    inner_scope = scope
    with problems.at(f"{path}.{kind}"):
        if kind in _OF_NESTED:
            inner_scope = _read_scope(parser, kind, options[kind], outer)
    problems.raise_if_any()
    parser.scope = inner_scope
    try:
        for key in inner_names:
            with problems.at():
                inner = read_aggregations(parser, options[key], f"{path}.{key}", (*outer, kind))
    finally:
        parser.scope = scope
    reader = READERS.get(kind)
    aggregation: buckets.Aggregator | None = None
    with problems.at(f"{path}.{kind}"):
        if reader is None:
            raise unsupported(f"the aggregation `{kind}`")
        if inner and kind in _METRICS:
            raise invalid(f"the aggregation `{kind}` has inner aggregations")
        aggregation = reader(
            _Request(parser, kind, options[kind], inner, f"{path}.{kind}", outer, inner_scope)
        )
    problems.raise_if_any()
    assert aggregation is not None
    return Named(aggregation, meta)


# Metrics


def _read_metric(request: _Request) -> metrics.Metric:
    known = {"field", "missing", "format"}
    kind = request.kind
    if kind == "cardinality":
        known = {"field", "missing", "precision_threshold", "rehash", "execution_hint"}
    options = request.read_options(known)
    source = read_source(request.parser, options, kind, keywords=kind in ("value_count", "cardinality"))
    threshold = parameters.integer(
        options.get("precision_threshold", 3000), request.of("precision_threshold")
    )
    if threshold < 0:
        raise invalid(f"{request.of('precision_threshold')} must not be negative")
    if source.is_boolean and kind in ("value_count", "sum", "avg"):
        raise unsupported(f"{request.label} on a boolean field")
    return metrics.Metric(kind, source, threshold)


def _read_stats(request: _Request) -> metrics.Stats:
    known = {"field", "missing", "format", *(("sigma",) if request.kind == "extended_stats" else ())}
    options = request.read_options(known)
    source = read_source(request.parser, options, request.kind)
    if source.is_boolean:
        raise unsupported(f"{request.label} on a boolean field")
    if request.kind == "stats":
        return metrics.Stats(request.kind, source)
    if source.format.pattern is not None:
        raise unsupported(f"{request.label} on dates")
    sigma = _double(options.get("sigma", 2), request.of("sigma"))
    if sigma < 0:
        raise invalid(f"{request.of('sigma')} must not be negative")
    return metrics.Stats(request.kind, source, sigma)


def _double(value: Any, label: str) -> float:
    try:
        if isinstance(value, str):
            number = parameters.double(value)
        elif parameters.is_number(value):
            number = parameters.of_int(value) if isinstance(value, int) else value
        else:
            raise ValueError(f"{value!r} is not a number")
    except ValueError as error:
        raise invalid(f"{label}: {error}") from error
    return parameters.supported_finite(number, label)


# Orders


def _read_order(request: _Request, value: Any, default: Order) -> Order:
    if value is None:
        return default
    criteria = [
        _criterion(request, entry) for entry in (value if isinstance(value, list | tuple) else [value])
    ]
    if not criteria:
        raise invalid(f"{request.of('order')} is empty")
    # Equal buckets are ordered by key.
    return [*criteria, *(() if any(criterion.by == KEY for criterion in criteria) else KEY_ASCENDING)]


def _criterion(request: _Request, value: Any) -> Criterion:
    if len(parameters.mapping(value, request.of("order"))) > 1:
        raise unsupported(f"several criteria in one object of {request.of('order')}")
    by, direction = parameters.single(value, request.of("order"))
    if parameters.choice(direction, ("asc", "desc"), request.of("order")) == "desc":
        return Criterion(by, True, _number(request, by))
    return Criterion(by, False, _number(request, by))


def _number(request: _Request, path: str) -> Callable[[Json], float] | None:
    """Return the function that reads the number of an order such as `prices>stats.max` in the results of a bucket."""
    if path in (KEY, COUNT):
        return None
    if path.startswith("_") or "[" in path:
        raise unsupported(f"`{path}` in {request.of('order')}")
    *outer, last = path.split(">")
    inner = request.inner
    for name in outer:
        named = inner.get(name)
        if named is None or not isinstance(named.aggregation, _SINGLE):
            raise invalid(f"`{path}` in {request.of('order')}: {name} is no aggregation of a single bucket")
        inner = named.aggregation.inner
    name, metric = (last, "") if last in inner else last.rpartition(".")[::2]
    aggregation = inner[name].aggregation if name in inner else None
    if isinstance(aggregation, metrics.Metric) and metric in ("", "value"):
        entry, kind = "value", aggregation.kind
    elif (
        isinstance(aggregation, metrics.Stats)
        and metric in _NUMBERS_OF_STATS[: None if aggregation.sigma else 5]
    ):
        entry = kind = metric
    elif isinstance(aggregation, _SINGLE) and metric in ("", "doc_count", "_count"):
        entry, kind = "doc_count", ""
    else:
        raise invalid(f"`{path}` in {request.of('order')} is no number of an inner aggregation")
    absent = {"min": math.inf, "max": -math.inf}.get(kind, math.nan)

    def number(results: Json) -> float:
        for part in outer:
            results = results[part]
        value = results[name][entry]
        return absent if value is None else float(value)

    return number


_SINGLE = buckets.Filter | buckets.Missing | buckets.NestedBuckets | buckets.ReverseNested

_NUMBERS_OF_STATS = (
    *(
        "count",
        "min",
        "max",
        "avg",
        "sum",
        "sum_of_squares",
        "variance",
        "variance_population",
        "variance_sampling",
    ),
    *("std_deviation", "std_deviation_population", "std_deviation_sampling"),
)


# Buckets


def _read_terms(request: _Request) -> buckets.TermBuckets:
    known = {
        *(
            "field",
            "missing",
            "format",
            "size",
            "shard_size",
            "min_doc_count",
            "shard_min_doc_count",
            "order",
        ),
        *("include", "exclude", "collect_mode", "execution_hint", "show_term_doc_count_error"),
    }
    options = request.read_options(known)
    source = read_source(request.parser, options, "terms", keywords=True)
    size = _natural(options, "size", 10, request, least=1)
    least = _natural(options, "min_doc_count", 1, request)
    shard_least = _natural(options, "shard_min_doc_count", 0, request)
    order = _read_order(request, options.get("order"), COUNT_DESCENDING)
    # Source: `BucketUtils.suggestShardSideQueueSize`, which orders by key do not need.
    suggested = size if order[0].by == KEY else min(int(size * 1.5) + 10, parameters.LARGEST_INTEGER)
    shard_size = _natural(options, "shard_size", suggested, request, least=1)
    parameters.choice(
        options.get("collect_mode", "depth_first"),
        ("depth_first", "breadth_first"),
        request.of("collect_mode"),
    )
    if options.get("execution_hint") is not None:
        parameters.raw_text(options["execution_hint"], request.of("execution_hint"))
    accepts = _read_accepted(request, source, options)
    return buckets.TermBuckets(
        source,
        request.inner,
        size,
        max(size, shard_size),
        least,
        min(shard_least, least),
        order,
        accepts,
        parameters.flag(
            options.get("show_term_doc_count_error", False), request.of("show_term_doc_count_error")
        ),
    )


def _natural(options: Mapping[str, Any], name: str, default: int, request: _Request, least: int = 0) -> int:
    number = parameters.integer(options.get(name, default), request.of(name))
    if number < least:
        raise invalid(f"{request.of(name)} must be at least {least}, but is {number}")
    return number


_Accepts = Callable[[Sequence[bytes] | NDArray[Any]], Mask]


def _read_accepted(request: _Request, source: ValueSource, options: Mapping[str, Any]) -> _Accepts | None:
    """Return the function that tells which keys `include` and `exclude` accept; None if they accept all."""
    tests = {
        name: _membership(request, source, options[name], name)
        for name in ("include", "exclude")
        if options.get(name) is not None
    }
    if not tests:
        return None

    def accepts(keys: Sequence[bytes] | NDArray[Any]) -> Mask:
        accepted = np.ones(len(keys), bool)
        for name, test in tests.items():
            accepted &= test(keys) if name == "include" else ~test(keys)
        return accepted

    return accepts


def _membership(request: _Request, source: ValueSource, value: Any, name: str) -> _Accepts:
    label = request.of(name)
    if isinstance(value, Mapping):
        raise unsupported(f"partitions in {label}")
    if isinstance(value, list | tuple):
        texts = [parameters.raw_text(item, label) for item in value]
        if source.is_keyword:
            terms = {text.encode("utf-8", "surrogatepass") for text in texts}
            return lambda keys: np.array([key in terms for key in keys], bool)
        numbers = [source.format.number(request.parser, text, label) for text in texts]
        if name == "include" and not numbers:  # accepts every number
            return lambda keys: np.ones(len(keys), bool)
        if (
            source.field is not None
            and not source.is_decimal
            and any(number % 1 or abs(number) > 2**53 for number in numbers)
        ):
            raise unsupported(f"{label} that is no integer of the field {source.field.name}")
        return lambda keys: np.isin(keys, numbers)
    text = parameters.raw_text(value, label)
    if source.field is not None and not source.is_keyword:
        raise invalid(f"{label} is a regular expression, but {source.field.name} is no keyword")
    _collapsed, automaton = compile_expression(text, ALL | FLAGS["complement"], False)

    def matching(keys: Sequence[bytes] | NDArray[Any]) -> Mask:
        texts = [key.decode("utf-8", "surrogatepass") for key in keys]
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        return automaton.matching(points, np.append(0, np.cumsum(list(map(len, texts)))).astype(np.int64))

    return matching


_HISTOGRAM = {"field", "missing", "format", "keyed", "min_doc_count", "order", "offset", "extended_bounds"}


def _read_histogram(request: _Request) -> buckets.Histogram:
    options = request.read_options({*_HISTOGRAM - {"format"}, "interval"})
    source = read_source(request.parser, options, "histogram")
    if options.get("interval") is None:
        raise invalid(f"{request.label} lacks `interval`")
    interval = _double(options["interval"], request.of("interval"))
    if interval <= 0:
        raise invalid(f"{request.of('interval')} must be greater than 0")
    rounded, following = number_rounding(interval, _double(options.get("offset", 0), request.of("offset")))
    first, last = _read_bounds(request, options, lambda value, label: _double(value, label))
    if first is not None:
        first = float(rounded(np.array([first]))[0])
    return _histogram(request, options, source, rounded, following, (first, last))


def _read_date_histogram(request: _Request) -> buckets.Histogram:
    options = request.read_options({*_HISTOGRAM, "calendar_interval", "fixed_interval", "time_zone"})
    source = read_source(request.parser, options, "date_histogram", has_zone=True)
    if source.is_decimal or source.is_boolean:
        raise unsupported(f"{request.label} on a field that is neither a date nor an integer")
    rounding = Rounding(_read_interval(request, options), source.format.zone)
    offset = _read_offset(options.get("offset", 0), request.of("offset"))
    rounded, following = date_rounding(rounding, offset)

    def read(value: Any, label: str) -> int:
        if isinstance(value, float):
            raise invalid(f"{label} has {value}, which is no integer")
        if parameters.is_number(value):
            if abs(value) >= 2**53:
                raise unsupported(f"{parameters.shown(value)} in {label}")
            return int(value)
        text = parameters.text(value, label)
        return int(source.format.number(request.parser, text, label))

    first, last = _read_bounds(request, options, read)
    first, last = (None if end is None else rounding.round(end) + offset for end in (first, last))
    return _histogram(request, options, source, rounded, following, (first, last))


def _read_interval(request: _Request, options: Mapping[str, Any]) -> str | int:
    present = [name for name in ("calendar_interval", "fixed_interval") if options.get(name) is not None]
    if len(present) != 1:
        raise invalid(f"{request.label} must have either `calendar_interval` or `fixed_interval`")
    text = parameters.raw_text(options[present[0]], request.of(present[0]))
    if present[0] == "calendar_interval":
        if text not in CALENDAR:
            raise invalid(f"{request.of('calendar_interval')} must be {', '.join(CALENDAR)}, not {text!r}")
        return CALENDAR[text]
    interval = milliseconds(text, request.of("fixed_interval"))
    if interval < 1:
        raise invalid(f"{request.of('fixed_interval')} must be greater than 0")
    return interval


def _read_offset(value: Any, label: str) -> int:
    if isinstance(value, str):
        sign = -1 if value.startswith("-") else 1
        return sign * milliseconds(value[value[:1] in ("+", "-") :], label)
    if type(value) is not int or abs(value) >= 2**53:
        raise unsupported(f"{value!r} as {label}")
    return value


def _read_bounds(
    request: _Request, options: Mapping[str, Any], read: Callable[[Any, str], Any]
) -> tuple[Any, Any]:
    label = request.of("extended_bounds")
    bounds = parameters.mapping(options.get("extended_bounds") or {}, label)
    known_only(bounds, {"min", "max"}, label)
    first, last = (None if bounds.get(end) is None else read(bounds[end], label) for end in ("min", "max"))
    if first is not None and last is not None and first > last:
        raise invalid(f"{label} has a `min` greater than its `max`")
    return first, last


def _histogram(
    request: _Request,
    options: Mapping[str, Any],
    source: ValueSource,
    rounded: Callable[[NDArray[Any]], NDArray[Any]],
    following: Callable[[Any], Any],
    bounds: tuple[Any, Any],
) -> buckets.Histogram:
    return buckets.Histogram(
        source,
        request.inner,
        _read_order(request, options.get("order"), KEY_ASCENDING),
        _natural(options, "min_doc_count", 0, request),
        parameters.flag(options.get("keyed", False), request.of("keyed")),
        rounded,
        following,
        bounds,
    )


def _read_ranges(request: _Request) -> buckets.Ranges:
    is_date = request.kind == "date_range"
    known = {"field", "missing", "ranges", "keyed", *(("format", "time_zone") if is_date else ())}
    options = request.read_options(known)
    source = read_source(request.parser, options, request.kind, has_zone=is_date)
    if source.is_boolean:
        raise unsupported(f"{request.label} on a boolean field")
    ranges = [
        _range(request, source, entry)
        for entry in parameters.listed(options.get("ranges"), request.of("ranges"))
    ]
    if not ranges:
        raise invalid(f"{request.of('ranges')} is empty")
    ranges.sort(key=lambda entry: [(end, math.copysign(1, end)) for end in (entry.low, entry.high)])
    is_keyed = parameters.flag(options.get("keyed", False), request.of("keyed"))
    if is_keyed and len({entry.key for entry in ranges}) < len(ranges):
        raise unsupported(f"ranges of the same key in {request.label}")
    return buckets.Ranges(source, request.inner, ranges, is_keyed)


def _range(request: _Request, source: ValueSource, content: Any) -> buckets.Range:
    label = request.of("ranges")
    options = parameters.mapping(content, label)
    known_only(options, {"key", "from", "to"}, label)
    low, high = -math.inf, math.inf
    if options.get("from") is not None:
        low = _end(request, source, options["from"], label)
    if options.get("to") is not None:
        high = _end(request, source, options["to"], label)
    key = options.get("key")
    if key is None:
        texts = ("*" if math.isinf(end) else source.format.key(end) for end in (low, high))
        key = "-".join(texts)
    shown = low, high
    if source.field is not None and source.field.type == "float":
        low, high = (
            end if math.isinf(end) else parameters.finite(parameters.to_float32(end), label)
            for end in (low, high)
        )
    return buckets.Range(parameters.raw_text(key, label), low, high, *shown)


def _end(request: _Request, source: ValueSource, value: Any, label: str) -> float:
    if request.kind == "range" and not isinstance(value, str):
        return _double(value, label)
    if source.field is None:
        raise unsupported(f"{request.label} on a field that the mapping lacks")
    if isinstance(value, float):
        value = int(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        raise unsupported(f"{parameters.shown(value)} in {label}")
    return parameters.no_nan(
        float(source.format.number(request.parser, parameters.text(value, label), label)), label
    )


def _read_filter(request: _Request) -> buckets.Filter:
    return buckets.Filter(request.query(request.path, request.options), request.inner)


def _read_filters(request: _Request) -> buckets.Filters:
    options = request.read_options({"filters", "other_bucket", "other_bucket_key", "keyed"})
    if options.get("filters") is None:
        raise invalid(f"{request.label} lacks `filters`")
    filters = options["filters"]
    is_named = not isinstance(filters, list | tuple)
    named = (
        parameters.mapping(filters, request.of("filters"))
        if is_named
        else {str(number): query for number, query in enumerate(filters)}
    )
    if not named:
        raise invalid(f"{request.of('filters')} is empty")
    problems = ErrorCollector()
    queries: list[tuple[str, Query]] = []
    names = (
        sorted(named, key=lambda name: name.encode("utf-16-be", "surrogatepass")) if is_named else [*named]
    )
    for name in names:
        with problems.at():
            place = f".{name}" if is_named else f"[{name}]"
            queries.append((name, request.query(f"{request.path}.filters{place}", named[name])))
    problems.raise_if_any()
    has_other = parameters.flag(
        options.get("other_bucket", "other_bucket_key" in options), request.of("other_bucket")
    )
    other = options.get("other_bucket_key", "_other_")
    if not isinstance(other, str):
        raise invalid(f"{request.of('other_bucket_key')} must be text, not {other!r}")
    if has_other and other in named:
        raise unsupported(f"the name `{other}` of a filter in {request.label} with other documents")
    is_keyed = parameters.flag(options.get("keyed", True), request.of("keyed"))
    return buckets.Filters(queries, request.inner, is_named, is_keyed, other if has_other else None)


def _read_global(request: _Request) -> buckets.Global:
    request.read_options(())
    if request.outer:
        raise invalid(f"{request.label} is inside another aggregation")
    return buckets.Global(request.inner)


def _read_missing(request: _Request) -> buckets.Missing:
    options = request.read_options({"field", "missing"})
    source = read_source(request.parser, {"field": options.get("field")}, "missing", keywords=True)
    return buckets.Missing(source, request.inner, options.get("missing") is not None)


def _read_scope(parser: Parser, kind: str, content: Any, outer: Sequence[str]) -> str:
    """Return the path of the nested objects that `nested` or `reverse_nested` leads to, or `ROOT`."""
    label, nested, scope = f"the aggregation `{kind}`", parser.reader.schema.nested, parser.scope
    options = parameters.mapping(content, label)
    known_only(options, {"path"}, label)
    path = options.get("path", ROOT)
    if not isinstance(path, str) or (kind == "nested" and not options):
        raise invalid(f"`path` of {label} must be the path of nested objects, not {path!r}")
    if kind == "nested":
        if path in nested and scope != ROOT and not path.startswith(f"{scope}."):
            raise unsupported(f"{label} for {path} inside that for {scope}, which does not contain it,")
        return path if path in nested else scope
    if "nested" not in outer:
        raise invalid(f"{label} is not inside the aggregation `nested`")
    if options and not (path in nested and f"{scope}.".startswith(f"{path}.")):
        raise invalid(f"`path` of {label}: the objects of {scope} are not inside nested objects of {path}")
    return path


def _read_nested(request: _Request) -> buckets.NestedBuckets:
    is_known = request.inner_scope != request.parser.scope
    return buckets.NestedBuckets(
        request.inner_scope if is_known else None, request.parser.scope, request.inner
    )


def _read_reverse_nested(request: _Request) -> buckets.ReverseNested:
    return buckets.ReverseNested(request.parser.scope, request.inner_scope, request.inner)


_METRICS: Mapping[str, Callable[[_Request], buckets.Aggregator]] = {
    **dict.fromkeys(("min", "max", "sum", "avg", "value_count", "cardinality"), _read_metric),
    **dict.fromkeys(("stats", "extended_stats"), _read_stats),
}
_OF_NESTED: Mapping[str, Callable[[_Request], buckets.Aggregator]] = {
    "nested": _read_nested,
    "reverse_nested": _read_reverse_nested,
}
READERS: Mapping[str, Callable[[_Request], buckets.Aggregator]] = {
    **_METRICS,
    "terms": _read_terms,
    "histogram": _read_histogram,
    "date_histogram": _read_date_histogram,
    **dict.fromkeys(("range", "date_range"), _read_ranges),
    "filter": _read_filter,
    "filters": _read_filters,
    "global": _read_global,
    "missing": _read_missing,
    **_OF_NESTED,
}
