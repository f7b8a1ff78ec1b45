"""Random aggregations on the fields of `mappings`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.search import random_bodies
from tests.search.drawing import Draw
from tests.search.mappings import (
    DATE_FIELDS,
    DATES,
    DAYS,
    FORMATS,
    NESTED_FIELDS,
    NUMBER_FIELDS,
    TAGS,
    VALUE_FIELDS,
    Json,
    date,
    number,
)

DEEPEST = 4

KEYWORDS = [*VALUE_FIELDS, "a.c", "title.raw", "id"]
ANY_FIELDS = [*KEYWORDS, *NUMBER_FIELDS, *DATE_FIELDS, "o.n", "nowhere"]
NUMBERS = [*NUMBER_FIELDS, *NUMBER_FIELDS, *NUMBER_FIELDS, *DATE_FIELDS, "o.n", "nowhere", "flag"]
METRICS = [
    *["min", "max", "sum", "avg", "value_count", "cardinality", "stats", "extended_stats"] * 8,
    "nothing",
]
DATE_FORMATS = ["yyyy-MM-dd", "epoch_millis", "yyyy", "MMM uuuu", "date_time_no_millis", "yyyy-MM-dd HH:mm X"]
DIRECTIONS = ["asc", "desc", "desc", "DESC"]


def aggregations(draw: Draw, depth: int = 0, path: str = "") -> Json:
    """Return some aggregations by name, also inside each other, mostly on fields of the nested objects of a path."""
    count = draw.number(1, 3 if depth == 0 else 2)
    return {name: aggregation(draw, depth, path) for name in ["x", "y", "é z"][:count]}


def aggregation(draw: Draw, depth: int, path: str) -> Json:
    """Return an aggregation, mostly a valid one."""

    def on_path(options: Json) -> Json:
        return random_bodies.with_fields(draw, options, NESTED_FIELDS[path]) if path else options

    if draw.chance(0.35):
        kind = draw.choice(METRICS)
        content: Json = {kind: on_path(metric(draw, kind))}
        return {**content, **draw.some_of({"meta": lambda: {"a": [1, {"b": None}]}}, 0.1)}
    kinds = [*BUCKETS, "nested", *(["reverse_nested"] * 4 if path else [])]
    if draw.chance(0.95):  # only valid ones here
        absent = {"global": depth > 0, "reverse_nested": not path, "nested": path in ("part.in", "o.item")}
        kinds = [kind for kind in kinds if not absent.get(kind)]
    kind = draw.choice(kinds)
    options, inner_path = on_path(BUCKETS[kind](draw)), path
    if kind == "nested":
        if path == "part" and draw.chance(0.9):
            options["path"] = "part.in"
        inner_path = options["path"] if options["path"] in NESTED_FIELDS else path
    elif kind == "reverse_nested":
        inner_path = options.get("path", "")
    inner: Json = {}
    if depth < DEEPEST - 1 and draw.chance(0.5):
        inner = {draw.choice(["aggs", "aggregations"]): aggregations(draw, depth + 1, inner_path)}
    if kind in ("terms", "histogram", "date_histogram") and draw.chance(0.4):
        options["order"] = order(draw, next(iter(inner.values()), {}))
    if draw.chance(0.02):
        options = random_bodies.with_odd_value(draw, options)
    return {kind: options, **inner, **draw.some_of({"meta": dict}, 0.1)}


def order(draw: Draw, inner: Json) -> Any:
    """Return an order of buckets, mostly by numbers of inner aggregations."""

    def path(aggregations: Json) -> str:
        if not aggregations or draw.chance(0.2):
            return draw.choice(["_key", "_count"])
        name = draw.choice(list(aggregations))
        (kind, *_others) = (key for key in aggregations[name] if key != "meta")
        if kind in ("filter", "missing", "nested", "reverse_nested") and draw.chance(0.7):
            more = path(aggregations[name].get("aggs", {}))
            return name if more.startswith("_") else f"{name}>{more}"
        if kind in ("stats", "extended_stats"):
            return f"{name}.{draw.choice(['min', 'max', 'avg', 'sum', 'count', 'variance'])}"
        return draw.choice([name, name, f"{name}.value"])

    criteria = draw.several(lambda: {path(inner): draw.choice(DIRECTIONS)}, 3, 1)
    return criteria if len(criteria) > 1 or draw.chance(0.3) else criteria[0]


def metric(draw: Draw, kind: str) -> Json:
    """Return the parameters of a metric."""
    fields = ANY_FIELDS if kind in ("value_count", "cardinality") or draw.chance(0.05) else NUMBERS
    field = draw.choice(fields)
    more: dict[str, Callable[[], Any]] = {"missing": lambda: missing(draw, field)}
    if kind == "cardinality":
        more["precision_threshold"] = lambda: draw.choice([0, 1, 10, 100, 40_000, 100_000, "5"])
    if kind == "extended_stats":
        more["sigma"] = lambda: draw.choice([0, 1, 2.5, 3, "2"])
    if field in DATE_FIELDS and kind != "cardinality":
        more["format"] = lambda: draw.choice(DATE_FORMATS)
    return {"field": field, **draw.some_of(more, 0.15)}


def missing(draw: Draw, field: str) -> Any:
    """Return a value for documents without one."""
    if field in DATE_FIELDS:
        return date_of(draw, field)
    if field in (*NUMBER_FIELDS, "o.n"):
        return draw.choice([0, 5, "7", -3, number(draw), 0.5])
    return draw.choice([*TAGS, 5, True, 0.1, "zz"])


def date_of(draw: Draw, field: str) -> Any:
    """Return a date, mostly in a format of the field."""
    if draw.chance(0.1):
        return date(draw)
    return draw.choice(DAYS if field == "day" else DATES)


def terms(draw: Draw) -> Json:
    """Return the parameters of `terms`."""
    field = draw.choice(ANY_FIELDS)

    def values() -> Any:
        if field in KEYWORDS and draw.chance(0.4):
            return draw.choice(["x|y", ".*", "[a-zé]*", "5|t.*", "A?.b", "", "~x", "<1-5>", "(x", "@"])
        return draw.several(lambda: missing(draw, field), 4)

    return {
        "field": field,
        **draw.some_of(
            {
                "size": lambda: draw.choice([1, 2, 3, 100, "5", 50]),
                "shard_size": lambda: draw.choice([1, 2, 5, 100]),
                "min_doc_count": lambda: draw.choice([0, 0, 0, 1, 2, 3]),
                "shard_min_doc_count": lambda: draw.choice([0, 1, 2]),
                "missing": lambda: missing(draw, field),
                "include": values,
                "exclude": values,
                "show_term_doc_count_error": lambda: draw.chance(0.8),
                "collect_mode": lambda: draw.choice(["breadth_first", "depth_first"]),
                "execution_hint": lambda: draw.choice(["map", "global_ordinals"]),
            },
            0.2,
        ),
        **(draw.some_of({"format": lambda: draw.choice(DATE_FORMATS)}, 0.2) if field in DATE_FIELDS else {}),
    }


def histogram(draw: Draw) -> Json:
    """Return the parameters of `histogram`."""
    field = draw.choice(NUMBERS)
    return {
        "field": field,
        "interval": draw.choice([1, 2, 5, 0.5, 0.1, 1000, "3", 1e10, 1e18])
        if draw.chance(0.97)
        else draw.choice([0, -1]),
        **draw.some_of(
            {
                "offset": lambda: draw.choice([0, 1, 0.5, -3, 7]),
                "min_doc_count": lambda: draw.choice([0, 1, 1, 2]),
                "extended_bounds": lambda: bounds(draw, lambda: draw.number(-30, 30)),
                "keyed": lambda: draw.chance(0.5),
                "missing": lambda: missing(draw, field),
            },
            0.3,
        ),
    }


def bounds(draw: Draw, make: Callable[[], Any]) -> Json:
    """Return the bounds of a histogram, of which one may be absent."""
    ends = [make(), make()]
    if draw.chance(0.9):
        ends.sort(key=str)
    return draw.some_of({"min": lambda: ends[0], "max": lambda: ends[1]}, 0.8)


INTERVALS = [
    "minute",
    "1h",
    "hour",
    "day",
    "1d",
    "week",
    "1w",
    "month",
    "1M",
    "quarter",
    "1q",
    "year",
    "1y",
    "2d",
]
DURATIONS = ["1d", "7d", "3650d", "12h", "1h", "90m", "100d", "1ms", "1000d", "0d"]
ZONES = ["UTC", "+01:00", "-08:00", "+05:30", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Z"]


def date_histogram(draw: Draw) -> Json:
    """Return the parameters of `date_histogram`."""
    field = draw.choice([*DATE_FIELDS * 4, "year", "nowhere"])
    intervals = (
        {"calendar_interval": draw.choice(INTERVALS)}
        if draw.chance(0.6)
        else {"fixed_interval": draw.choice(DURATIONS)}
    )
    return {
        "field": field,
        **intervals,
        **draw.some_of(
            {
                "time_zone": lambda: draw.choice(ZONES),
                "offset": lambda: draw.choice(["+6h", "-1d", "1d", "5ms", 3600, "-90m"]),
                "format": lambda: draw.choice([*DATE_FORMATS, *FORMATS]),
                "extended_bounds": lambda: bounds(draw, lambda: date_of(draw, field)),
                "keyed": lambda: draw.chance(0.5),
                "missing": lambda: missing(draw, field),
            },
            0.25,
        ),
        **({"min_doc_count": draw.choice([0, 1, 1, 2])} if draw.chance(0.7) else {}),
    }


def ranges(draw: Draw) -> Json:
    """Return the parameters of `range`."""
    field = draw.choice(NUMBERS)
    return {
        "field": field,
        "ranges": draw.several(lambda: end_points(draw, lambda: number(draw)), 5, 1),
        **draw.some_of({"keyed": lambda: draw.chance(0.5), "missing": lambda: missing(draw, field)}, 0.2),
    }


def date_ranges(draw: Draw) -> Json:
    """Return the parameters of `date_range`."""
    field = draw.choice([*DATE_FIELDS * 4, "year", "nowhere"])
    return {
        "field": field,
        "ranges": draw.several(lambda: end_points(draw, lambda: date_of(draw, field)), 5, 1),
        **draw.some_of(
            {
                "keyed": lambda: draw.chance(0.5),
                "missing": lambda: missing(draw, field),
                "time_zone": lambda: draw.choice(ZONES),
                "format": lambda: draw.choice([*DATE_FORMATS, *FORMATS]),
            },
            0.2,
        ),
    }


def end_points(draw: Draw, make: Callable[[], Any]) -> Json:
    """Return a range whose ends may be absent."""
    return draw.some_of({"from": make, "to": make, "key": lambda: draw.choice(["a", "b", "c", 5])}, 0.6)


def query(draw: Draw) -> Json:
    """Return a query, mostly on values."""
    if draw.chance(0.2):
        return random_bodies.query(draw, random_bodies.DEEPEST - 1)
    return draw.choice(
        [
            {"term": {draw.choice(KEYWORDS): draw.choice(TAGS[:3])}},
            {"exists": {"field": draw.choice(ANY_FIELDS)}},
            {"range": {draw.choice(NUMBER_FIELDS): {"gte": draw.number(-5, 5)}}},
            {"match": {"text": "a b"}},
            {"match_all": {}},
        ]
    )


def filters(draw: Draw) -> Json:
    """Return the parameters of `filters`."""
    queries = draw.several(lambda: query(draw), 3, 1)
    named = dict(zip("abc", queries, strict=False))
    more = {
        "other_bucket": lambda: draw.chance(0.8),
        "other_bucket_key": lambda: draw.choice(["rest", "_other_", "rest", "others", "a"]),
        "keyed": lambda: draw.chance(0.5),
    }
    return {"filters": named if draw.chance(0.6) else queries, **draw.some_of(more, 0.4)}


BUCKETS: dict[str, Callable[[Draw], Json]] = {
    "terms": terms,
    "histogram": histogram,
    "date_histogram": date_histogram,
    "range": ranges,
    "date_range": date_ranges,
    "filter": query,
    "filters": filters,
    "missing": lambda draw: {"field": draw.choice(ANY_FIELDS), **draw.some_of({"missing": lambda: 5}, 0.1)},
    "nested": lambda draw: {
        "path": draw.choice([*NESTED_FIELDS])
        if draw.chance(0.97)
        else draw.choice(["o", "tag", "nowhere", ""])
    },
    "reverse_nested": lambda draw: draw.some_of(
        {"path": lambda: draw.choice(["part", "part", "o.item"])}, 0.4
    ),
    "global": lambda draw: {},
}
"""The parameters of the aggregations of buckets; the last one may not be inside others."""
