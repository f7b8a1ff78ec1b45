"""Random mappings and documents: few words, so that queries match, and values of every JSON type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.search import pieces
from tests.search.drawing import Draw
from tests.search.texts import SPECIAL, sentence

Json = dict[str, Any]

# fmt: off
WORDS = [
    "a", "b", "c", "a", "b", "ring", "Ring", "the", "of", "é", "e\u0301", "😀", r"\alpha", "$x^2$", "ﬁ", "x" * 300,
    "running", "foxes", "5", "true", "0.1", "united", "states", "usa", "a-b", "Ring5", "b's-C", "--",
]
TAGS = ["x", "y", "", "é", "É", "X", " x", "😀", "5", "true", "0.1", "a b", "A b"]
IDS = [*map(str, range(31)), "é", "😀", "a", "Z", "_id", "abcd", "ab-_", " ", "a b", "0123", "x" * 30]
INTEGERS = [0, 1, -1, 2, 5, 7, -5, 127, -128]
GREAT = [
    2**31 - 1, -(2**31), 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2**60 + 1, 2**63 - 1, -(2**63), 2**63, 10**20,
    16777217, 65504, 65520,
]
FRACTIONS = [0.0, -0.0, 0.1, 0.5, 1.5, -2.5, 1e10, 1e-7, 1e300, 3.4e38, 1.0000001788139343, 1e16, 5.0, 1e18, 9.3e18]
DATES = [
    "2020-01-01", "2020-01-01", "2020-01", "2020", "2020-02-29T23:59:59.999Z", "2020-01-01T00:00:00+05:30",
    1577836800000, "1969-12-31T23:59:59.999", "2019-12-31T23:00:00", "2021-06-15T10:11:12,5", "1577836800000", 0, -5,
    "-5", 1577836799999.5, "2020-01-01T10Z", "2020-06-01T00:00:00-0800", "1999-12-31T23:59:59.123456789", "0001-01-01",
]
DAYS = [
    "2020/01/01", "2020/1/1", "1/1/2020", "01 Jan 2020", "29 Feb 2020", "1577836800",
    1577836800, 1577836800.5, -1, "2019/12/31",
]
NO_DATES = [
    "2020-13-01", "2021-02-29", "20200101", "x", "", True, "2020/01/01 10", 5.5, "99999", "31 Feb 2020",
    "12:00",
]
DAY_FORMAT = "yyyy/MM/dd||dd MMM uuuu||epoch_second||d/M/yyyy||y/M/d"
FORMATS = [
    "strict_date_optional_time", "date_optional_time", "yyyy-MM-dd", "basic_date||yyyy", "epoch_millis",
    "epoch_second||year_month", "uuuu-MM-dd'T'HH:mm:ss[.SSS][XXX]", DAY_FORMAT, "strict_date||dd MMM yyyy",
    "date_time||iso8601",
]
COORDINATES = [0, 1, 2, -1, 1.0001, 45, 89.9999, 90, -90]
POINTS = [
    "1,2", [2, 1], {"lat": 1, "lon": 2}, {"lat": "1.0001", "lon": 2}, "POINT (2 1)", "s01", "u33dc0cpke7v",
    {"type": "Point", "coordinates": [2, 1]}, [180, 90], [-180, -90], [179.9999, 1],
]
NO_POINTS = ["1", "x", "", 5, True, [2], [2, 91], "1,181", {"lat": 1}, {"geohash": "s01"}, [2, 1, 3], "1,2,3", [[]]]
TEXTS_OF_NUMBERS = [
    "5", "-1", "0.1", " 5", "5 ", "1e2", "5d", "+5", "", "0x1p3", "NaN", "Infinity", "1e400", "x", "5.9",
    "-0",
]
ADDRESSES = [
    "10.0.0.1", "10.0.0.2", "10.0.1.255", "192.168.0.1", "0.0.0.0", "255.255.255.255", "::1", "::", "2001:db8::1",
    "2001:DB8:0:0::1", "::ffff:10.0.0.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
]
NETWORKS = [
    "10.0.0.0/8", "10.0.0.0/24", "10.0.0.1/32", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1/128", "192.168.0.1/31",
    "::ffff:10.0.0.1/120", "10.0.0.1/33", "10.0.0.1/x", "10.0.0", "x", "", 5, "1.2.3.04",
]
# fmt: on

WORD_FIELDS = [
    "text",
    "text.gaps",
    "text.alike",
    "text.parts",
    "title",
    "title.any",
    "a.b",
    "o.word",
    "all",
    "part.word",
]
POINT_FIELDS = ["place", "place", "spot"]
RANGE_FIELDS = {
    "span": ["integer_range", "long_range"],
    "reach": ["double_range", "float_range"],
    "days": ["date_range"],
}
"""Fields of ranges with their types."""
VALUE_FIELDS = ["tag", "tag", "tag", "flag", "note", "same", "part.tag", "net", "attrs", "attrs.a"]
"""Keywords, a boolean, an alias, an address and a flattened field."""
NUMBER_FIELDS = ["year", "long", "weight", "ratio", "short", "byte", "half", "half"]
DATE_FIELDS = ["when", "when", "day", "loose"]
TYPES = {
    "year": "integer",
    "long": "long",
    "weight": "double",
    "ratio": "float",
    "short": "short",
    "byte": "byte",
    "half": "half_float",
}
VECTOR_FIELDS = {"vec": 3, "flat": 3, "bits": 2, "o.vec": 3}
"""Fields of vectors with their bytes."""
NESTED_FIELDS = {
    "part": {"word": "part.word", "tag": "part.tag", "number": "part.n", "object": "part"},
    "part.in": {"word": "part.in.word", "tag": "part.in.tag", "number": "part.in.n", "object": "part.in"},
    "o.item": {"word": "o.item.word", "tag": "o.item.same", "number": "o.item.n", "object": "o.item"},
}
"""Fields of nested objects by their path."""
ADDED_FIELDS = [
    *(
        "tag",
        "flag",
        "note",
        "net",
        "attrs",
        "place",
        "spot",
        "title",
        "part",
        "o",
        "a",
        "a.b",
        "kept",
        "days",
        "span",
    ),
    *(*DATE_FIELDS, *NUMBER_FIELDS),
]
"""Fields that dynamic mapping adds, if a mapping lacks them."""
ANALYZERS = ["words", "gaps", "alike", "any", "synonyms", "pairs", "parts", "graph"]
"""Analyzers of every mapping."""


def words(draw: Draw) -> str:
    """Return a few words, many words or any characters."""
    kind = draw.number(0, 11)
    if kind < 7:
        return " ".join(draw.several(lambda: draw.choice(WORDS), 12))
    if kind < 9:
        return sentence(
            draw, lambda: draw.choice([*WORDS, *SPECIAL]) if draw.chance(0.1) else draw.choice(WORDS)
        )
    if kind < 11:
        return " ".join(draw.several(lambda: draw.choice(WORDS), 300, 30))
    return "".join(draw.several(lambda: draw.choice([*WORDS, *SPECIAL]), 12))


def number(draw: Draw) -> Any:
    """Return a number, sometimes as text."""
    kind = draw.number(0, 19)
    if kind < 10:
        return draw.choice(INTEGERS)
    if kind < 14:
        return draw.choice(FRACTIONS)
    if kind < 16:
        return draw.fraction(-10, 10)
    return draw.choice(GREAT) if kind < 18 else draw.choice(TEXTS_OF_NUMBERS)


def date(draw: Draw) -> Any:
    """Return a date of a query, often incomplete or with date math."""
    value = draw.choice([*DATES, *DAYS]) if draw.chance(0.95) else draw.choice(NO_DATES)
    if isinstance(value, str) and draw.chance(0.3):
        value += draw.choice(
            ["||/d", "||/M", "||+1M/y", "||-1d", "||/w", "||+36h/d", "||-90m/h", "||+1y-1s", "||", "||/2d"]
        )
    return value if draw.chance(0.95) else draw.choice(["now/y", "now-20y/y", "now+1M/y", "now/x"])


def point(draw: Draw, invalid: float = 0.04) -> Any:
    """Return a point in one of its forms, rarely an invalid one."""
    if draw.chance(invalid):
        return draw.choice(NO_POINTS)
    if draw.chance(0.4):
        return draw.choice(POINTS)
    lat, lon = (
        draw.choice([*COORDINATES, draw.fraction(-90, 90)]),
        draw.choice([*COORDINATES, draw.fraction(-180, 180)]),
    )
    return draw.choice([[lon, lat], f"{lat},{lon}", {"lat": lat, "lon": lon}, f"point({lon} {lat})"])


def vector(draw: Draw, length: int, invalid: float = 0.0) -> Any:
    """Return a vector of few different numbers, so that scores are often equal; rarely an invalid one."""
    small = [draw.choice([-2, -1, 0, 0, 1, 1, 2]) for _ in range(length)]
    kind = draw.number(0, 9)
    if draw.chance(invalid):
        return draw.choice([
            [1] * (length + 1), [], [0] * length, [128, *small[1:]], [-129, *small[1:]], [1.5, *small[1:]],
            ["1", *small[1:]], [None, *small[1:]], [True, *small[1:]], [small], [small, small], "00", "zz" * length,
            "0" * (2 * length - 1), 5, {"a": 1}, [1e300, *small[1:]], [10**30, *small[1:]],
        ])  # fmt: skip
    if kind == 0:
        return [draw.choice([-128, 127, -127, 100]) for _ in range(length)]
    small[0] = small[0] or 1
    return (
        bytes(number % 256 for number in small).hex()
        if kind == 1
        else [float(small[0]), *small[1:]]
        if kind == 2
        else small
    )


def _vectors(draw: Draw, **more: Any) -> Json:
    """Return a field of vectors of bytes."""
    similarity = {
        "similarity": lambda: draw.choice(["cosine", "dot_product", "max_inner_product", "l2_norm", None])
    }
    return {
        "type": "dense_vector",
        "element_type": "byte",
        "dims": 3,
        "index_options": {"type": "flat"},
        **draw.some_of(similarity, 0.8),
        **more,
    }


def mapping(draw: Draw) -> Json:
    """Return a mapping of the documents' fields, with random analyzers, gaps and similarities."""
    defined, analysis = _analysis(draw)
    similarity = {
        "flat": {
            "type": "BM25",
            "k1": draw.choice([0.9, "0.9", 0, 1.5]),
            "b": draw.choice([0.4, 0, 1, "0.75"]),
        },
        "steep": {"type": "BM25", "k1": 4.0, "b": 1.0},
        **draw.some_of({"default": lambda: {"type": "BM25", "k1": 2}}, 0.1),
    }

    def text(analyzer: str, **more: Any) -> Json:
        rare = {
            "norms": lambda: draw.chance(0.3),
            "position_increment_gap": lambda: draw.choice([0, 1, 2, "3"]),
            "search_quote_analyzer": lambda: draw.choice(["words", "gaps", "standard"]),
            "index_options": lambda: draw.choice(["docs", "freqs", "offsets"]),
        }
        similarity = {"similarity": lambda: draw.choice(["flat", "steep", "BM25", "boolean"])}
        more = {**draw.some_of(similarity), **draw.some_of(rare, 0.15), **more}
        if more.get("index_options") in ("docs", "freqs") and draw.chance(0.95):
            more.pop("position_increment_gap", None)
        return {"type": "text", "analyzer": analyzer, **more}

    normalizer = {"normalizer": lambda: draw.choice(["lowercase", "folded", "odd"])}
    counted = {"index_options": lambda: draw.choice(["docs", "freqs"]), "norms": lambda: True}
    unvalued = {"doc_values": lambda: False}
    splitting = {"split_queries_on_whitespace": lambda: True}
    keyword = {"type": "keyword", **draw.some_of({**splitting, **counted}, 0.3)}
    any_analyzer = draw.choice([*defined, "standard", "english"])
    properties = {
        "id": {"type": "keyword"},
        "text": text(
            "words",
            fields={
                "gaps": text("gaps"),
                "alike": text("words", search_analyzer="alike"),
                "parts": text("parts"),
            },
        ),
        "title": text(
            "words",
            fields={
                "any": text(any_analyzer),
                "raw": {
                    "type": "keyword",
                    **draw.some_of({"ignore_above": lambda: draw.number(0, 9), **normalizer}, 0.3),
                },
            },
            **draw.some_of({"copy_to": lambda: draw.choice(["o.word", ["all", "o.word"], "hidden"])}, 0.2),
        ),
        **draw.choice(
            [
                {"a.b": text("gaps"), "a.c": keyword},
                {"a": {"properties": {"b": text("gaps", store=True), "c": keyword}}},
            ]
        ),
        "tag": {
            "type": "keyword",
            **draw.some_of(
                {
                    "copy_to": lambda: draw.choice(["all", ["all"]]),
                    "store": lambda: True,
                    "similarity": lambda: draw.choice(["flat", "boolean", None]),
                    **counted,
                    **normalizer,
                    **unvalued,
                },
                0.3,
            ),
        },
        "kept": {"type": "object", "enabled": False},
        "flag": {
            "type": "boolean",
            **draw.some_of(
                {"null_value": lambda: draw.choice([True, "false"]), "store": lambda: True, **unvalued}
            ),
        },
        "note": {
            "type": "keyword",
            "ignore_above": draw.number(0, 4),
            **draw.some_of(
                {"null_value": lambda: draw.choice(["X", 0.1, True, "abcde"]), **normalizer, **unvalued}
            ),
        },
        "same": {"type": "alias", "path": draw.choice(["tag", "tag", "title.raw", "o.n", "o.word"])},
        "all": text("words", term_vector="yes", **draw.some_of({"store": lambda: True})),
        "o": {
            "dynamic": False,
            "properties": {
                "word": text("words"),
                "n": {"type": "byte"},
                "vec": _vectors(draw),
                "item": _nested(draw, {"same": {"type": "alias", "path": "o.item.tag"}}, text(any_analyzer)),
            },
        },
        "part": _nested(draw, {"in": _nested(draw, {}, text("words"))}, text("gaps")),
        "net": {
            "type": "ip",
            **draw.some_of(
                {
                    "null_value": lambda: draw.choice(["::1", "10.0.0.1", "x"]),
                    "copy_to": lambda: "all",
                    "ignore_malformed": lambda: draw.choice([True, True, "true"]),
                    **unvalued,
                },
                0.2,
            ),
        },
        "attrs": {
            "type": "flattened",
            **draw.some_of(
                {
                    "null_value": lambda: "none",
                    "ignore_above": lambda: 4,
                    "depth_limit": lambda: draw.choice([1, 2, "3"]),
                    "similarity": lambda: "flat",
                    "index_options": lambda: "freqs",
                    **splitting,
                    **unvalued,
                },
                0.2,
            ),
        },
        "vec": _vectors(draw),
        "flat": _vectors(draw),
        "bits": _vectors(draw, element_type="bit", dims=16, similarity=draw.choice(["l2_norm", None])),
        "raw": {"type": "dense_vector", "element_type": "byte", "dims": 3, "index": False},
        "hidden": {"type": draw.choice(["keyword", "text", "integer", "boolean"]), "index": False},
        "place": {
            "type": "geo_point",
            **draw.some_of(
                {"ignore_z_value": lambda: draw.chance(0.5), "store": lambda: True, **unvalued}, 0.1
            ),
        },
        **{
            name: {"type": draw.choice(types), **draw.some_of(unvalued, 0.1)}
            for name, types in RANGE_FIELDS.items()
        },
        "spot": {
            "type": "geo_point",
            "ignore_malformed": True,
            **draw.some_of({"null_value": lambda: draw.choice(POINTS)}, 0.3),
        },
        "when": {"type": "date", **draw.some_of({"null_value": lambda: draw.choice(DATES), **unvalued}, 0.2)},
        "day": {
            "type": "date",
            "format": DAY_FORMAT,
            **draw.some_of({"store": lambda: True, **unvalued}, 0.2),
        },
        "loose": {
            "type": "date",
            "format": draw.choice(FORMATS),
            "ignore_malformed": True,
            **draw.some_of({"locale": lambda: "en", "copy_to": lambda: "all"}, 0.2),
        },
        **{
            name: {
                "type": type_,
                **draw.some_of({"null_value": lambda: draw.choice([5, "5", "7.0", -1]), **unvalued}, 0.1),
            }
            for name, type_ in TYPES.items()
        },
    }
    return {
        "settings": {
            "analysis": analysis,
            "similarity": similarity,
            **draw.some_of({"index": lambda: {"codec": "best_compression"}}, 0.1),
            **draw.some_of({"index.mapping.exclude_source_vectors": lambda: draw.choice([True, False])}, 0.2),
            **draw.some_of(
                {
                    "index.query.default_field": lambda: draw.choice(
                        ["text", ["title^2", "text"], ["t*", "year"], ["nowhere"], "*"]
                    )
                },
                0.2,
            ),
        },
        "mappings": {**_dynamic(draw, properties), "properties": properties},
    }


def _dynamic(draw: Draw, properties: Json) -> Json:
    """Return the options of dynamic mapping; remove some properties that it adds again."""
    if draw.chance(0.6):
        return {"dynamic": draw.choice(["strict", False])}
    targets = {"all", "hidden", properties["same"]["path"].partition(".")[0]}
    for name in draw.several(lambda: draw.choice(ADDED_FIELDS), 8):
        if name not in targets:
            properties.pop(name, None)
    options = {
        "date_detection": lambda: draw.choice([True, False, "false"]),
        "numeric_detection": lambda: draw.choice([True, "true", False]),
        "dynamic_date_formats": lambda: draw.choice(
            ["none", "yyyy/MM/dd", [DAY_FORMAT, "year"], ["strict_date"]]
        ),
        "dynamic_templates": lambda: [{str(number): _template(draw)} for number in range(draw.number(0, 3))],
    }
    return {**draw.some_of({"dynamic": lambda: draw.choice([True, "true"])}), **draw.some_of(options, 0.3)}


def _template(draw: Draw) -> Json:
    conditions = {
        "match_mapping_type": lambda: draw.choice(
            ["string", "long", "double", "date", "object", "*", ["long", "boolean"]]
        ),
        "unmatch": lambda: draw.choice(["t*", ["day", "word"]]),
        "path_match": lambda: draw.choice(["*.*", "o.*", "part.in.*", "*"]),
        "path_unmatch": lambda: draw.choice(["*.n", "tag"]),
        "match_pattern": lambda: "simple",
    }
    mapping = draw.choice(
        [
            {"type": "keyword"},
            {"type": "{dynamic_type}", "store": True},
            {"type": "keyword", "doc_values": False},
            {"type": "text", "analyzer": "gaps", "meta": {"{name}": "{dynamic_type}"}},
            {"type": "object", "dynamic": False},
            {"type": "nested"},
            {"type": "flattened"},
            {"type": "double"},
        ]
    )
    return {
        "match": draw.choice(["*", "*e*", "n*", ["w*", "tag"]]),
        **draw.some_of(conditions, 0.4),
        "mapping": mapping,
    }


def _nested(draw: Draw, properties: Json, text: Json) -> Json:
    """Return a nested object with words, a keyword and a number."""
    number = {"type": draw.choice(["byte", "double"]), **draw.some_of({"null_value": lambda: 5}, 0.2)}
    options = {
        "include_in_parent": lambda: draw.choice([True, "true", False]),
        "include_in_root": lambda: True,
        "dynamic": lambda: False,
    }
    copied = draw.some_of({"copy_to": lambda: draw.choice(["all", ["o.word"]])}, 0.2)
    return {
        "type": "nested",
        "properties": {"word": {**text, **copied}, "tag": {"type": "keyword"}, "n": number, **properties},
        **draw.some_of(options, 0.25),
    }


def _analysis(draw: Draw) -> tuple[list[str], Json]:
    """Return the analyzers of a mapping and their definitions."""
    any_ = pieces.analyzer(draw)
    char_filters = {f"char{number}": piece for number, piece in enumerate(any_["char_filter"])}
    # A mapping cannot define a filter of type `keyword_repeat`.
    defined = (piece for piece in any_["filter"] if piece["type"] != "keyword_repeat")
    filters = {f"filter{number}": piece for number, piece in enumerate(defined)}
    gap = {"position_increment_gap": draw.choice([0, 1, 2, 3, "1"])}
    some_gap = gap if draw.chance(0.5) else {}
    lower = {"tokenizer": "whitespace"}
    analyzers: dict[str, Json] = {
        "words": {**lower, "filter": ["lowercase"], **some_gap},
        "gaps": {**lower, "filter": ["lowercase", "little"], **gap},
        "alike": {**lower, "filter": ["lowercase", "beginnings"]},
        "any": {"tokenizer": "any", "char_filter": [*char_filters], "filter": [*filters], **some_gap},
        "synonyms": {**lower, "filter": ["lowercase", "same"], **some_gap},
        "graph": {**lower, "filter": ["lowercase", *draw.choice([[], ["little"]]), "wide"], **some_gap},
        "pairs": {**lower, "filter": ["lowercase", "pairs"]},
        "parts": {**lower, "filter": ["parts", "lowercase"], **some_gap},
    }
    definitions = {
        "char_filter": char_filters,
        "tokenizer": {"any": any_["tokenizer"]},
        "filter": {
            "beginnings": {"type": "edge_ngram", "min_gram": 1, "max_gram": 3},
            "little": {"type": "stop", "stopwords": ["the", "of", "b"]},
            "same": {
                "type": "synonym",
                "synonyms": ["united states, usa", "a b, c", "ring => b c", "foxes, é"],
            },
            "wide": {
                "type": "synonym_graph",
                "synonyms": ["united states, usa, a c", "a b, c", "ring => b c, x", "foxes, é", "c a b, x"],
                "lenient": True,
            },
            "pairs": pieces.shingle(draw),
            "parts": pieces.word_delimiter(draw),
            **filters,
            **(
                odd := {
                    f"odd{number}": pieces.normalizing_filter(draw) for number in range(draw.number(0, 3))
                }
            ),
        },
        "analyzer": analyzers,
        "normalizer": {
            "folded": {"filter": ["lowercase", "asciifolding"]},
            "odd": {
                "type": "custom",
                "char_filter": [*char_filters] if draw.chance(0.3) else [],
                "filter": [*odd],
            },
        },
    }
    return list(analyzers), definitions


def documents(draw: Draw) -> list[Json]:
    """Return documents with different ids as JSON."""
    ids = list(dict.fromkeys(draw.several(lambda: draw.choice(IDS), 30, 1)))
    return [
        {"id": id_, "text": maybe_nested(draw, lambda: scalar_text(draw)), **_fields(draw)} for id_ in ids
    ]


def _fields(draw: Draw) -> Json:
    inner = {
        "word": lambda: maybe_nested(draw, lambda: scalar_text(draw)),
        "n": lambda: maybe_nested(draw, lambda: draw.number(-5, 5)),
        "unknown": lambda: draw.choice([1, "x", {"y": [1]}, None]),
        "item": lambda: maybe_nested(draw, lambda: _nested_object(draw, "item")),
        "item.word": lambda: maybe_nested(draw, lambda: scalar_text(draw)),
    }
    options = {
        "title": lambda: maybe_nested(draw, lambda: scalar_text(draw)),
        "a.b": lambda: maybe_nested(draw, lambda: scalar_text(draw)),
        "a.c": lambda: maybe_nested(draw, lambda: draw.choice(TAGS)),
        "tag": lambda: maybe_nested(draw, lambda: draw.choice([*TAGS, 5, 0.1, True, None])),
        "flag": lambda: maybe_nested(draw, lambda: draw.choice([True, False, "true", "", None])),
        "note": lambda: maybe_nested(draw, lambda: draw.choice([*TAGS, "abcd", "😀😀", "ééé", 0.1, None])),
        "hidden": lambda: maybe_nested(draw, lambda: draw.choice([True, "true", "5", 5, "", None])),
        "place": lambda: draw.choice([point(draw, 0.002), None, draw.several(lambda: point(draw, 0.002), 3)]),
        **{name: _ranges(draw, name) for name in RANGE_FIELDS},
        "spot": lambda: draw.choice(
            [point(draw, 0.01), None, [1000, -1000], draw.several(lambda: point(draw), 3)]
        ),
        "when": lambda: maybe_nested(draw, lambda: _stored_date(draw, [*DATES, None])),
        "day": lambda: maybe_nested(draw, lambda: _stored_date(draw, DAYS)),
        "loose": lambda: maybe_nested(draw, lambda: _stored_date(draw, [*DATES, *DAYS, *NO_DATES, None])),
        "net": lambda: maybe_nested(
            draw, lambda: draw.choice([*ADDRESSES * 8, *NETWORKS, 5, True, {"a": 1}, None])
        ),
        "attrs": lambda: maybe_nested(draw, lambda: _attributes(draw, 0)),
        "part": lambda: maybe_nested(draw, lambda: _nested_object(draw, "part")),
        "part.in": lambda: maybe_nested(draw, lambda: _nested_object(draw, "in")),
        "o.item": lambda: maybe_nested(draw, lambda: _nested_object(draw, "item")),
        **{name: _vector_maker(draw, name) for name in ("vec", "flat", "bits", "raw")},
        "kept": lambda: draw.choice([{"b": 1}, {}, [1, None], "x", None, {"a": {"b": [1]}}]),
        **{name: _maker(draw, name) for name in NUMBER_FIELDS},
    }
    fields = draw.some_of(options, 0.4)
    if draw.chance(0.4):
        fields["o"] = maybe_nested(draw, lambda: draw.some_of(inner, 0.6))
        if isinstance(fields["o"], dict):  # the server may fail to return vectors of objects in lists
            fields["o"] |= draw.some_of({"vec": lambda: vector(draw, 3, 0.005)})
    if draw.chance(0.3) and "a.b" in fields:
        fields["a"] = {"b": fields["a.b"], **({"c": fields.pop("a.c")} if "a.c" in fields else {})}
        if draw.chance(0.8):
            del fields["a.b"]
    if draw.chance(0.02):
        fields[draw.choice([*NUMBER_FIELDS, "tag", "title", "when", "day", "loose"])] = draw.choice(
            [number(draw), {"x": 1}, True, [True], draw.choice(NO_DATES)]
        )
    if draw.chance(0.03):
        name = draw.choice(
            [
                *("new", "new.x", "same", "text.x", "kept.x", "o", "o.new", "o.word.x", "a..b"),
                *("part", "part.new", "part.in.word.x", "o.item.same", "part.in", "o.item.new.x"),
            ]
        )
        fields[name] = draw.choice([number(draw), {"x": 1}, {}, [], None, "x"])
    return fields


def _attributes(draw: Draw, depth: int) -> Any:
    def value() -> Any:
        if depth < 3 and draw.chance(0.2):
            return _attributes(draw, depth + 1)
        return draw.choice([*TAGS, *WORDS[:8], 5, 0.1, True, None, 1e16])

    keys = draw.several(lambda: draw.choice(["a", "a", "b", "b.c", "c d", "😀", ""]), 3)
    return {key: maybe_nested(draw, value) for key in keys}


def _stored_date(draw: Draw, dates: list[Any]) -> Any:
    """Return a date; a fraction as text, because Elasticsearch reads it again as the next integer of a double field."""
    value = draw.choice(dates)
    return str(value) if isinstance(value, float) else value


def _nested_object(draw: Draw, name: str) -> Any:
    """Return a value of a nested object."""
    inner = {
        "word": lambda: maybe_nested(draw, lambda: scalar_text(draw)),
        "tag": lambda: maybe_nested(draw, lambda: draw.choice([*TAGS, 5, None])),
        "n": lambda: maybe_nested(draw, lambda: draw.choice([draw.number(-5, 5), None])),
    }
    if name == "part":
        inner["in"] = lambda: maybe_nested(draw, lambda: _nested_object(draw, "in"))
        inner["in.word"] = inner["word"]
    return draw.some_of(inner, 0.6) if draw.chance(0.97) else draw.choice([None, {}, {"n": "5"}])


def _ranges(draw: Draw, name: str) -> Callable[[], Any]:
    """Return a function that makes ranges, few of which end before they begin."""
    values: list[Any] = (
        ["2020-01-01", "2020-02", "2020-02-29T23:59:59.999Z", "2021"] if name == "days" else [1, 2, 5, 7]
    )

    def make() -> Json:
        low, high = sorted((draw.choice(values[:-1]), draw.choice(values[1:])), key=values.index)
        bounds = {
            draw.choice(["gte", "gte", "gte", "gt"]): low,
            draw.choice(["lte", "lte", "lte", "lt"]): high,
        }
        return {key: value for key, value in bounds.items() if len(key) == 2 or low != high}

    return lambda: draw.choice([make(), [make(), make()], None, {}])


def _vector_maker(draw: Draw, name: str) -> Callable[[], Any]:
    return lambda: None if draw.chance(0.05) else vector(draw, VECTOR_FIELDS.get(name, 3), 0.005)


def _maker(draw: Draw, name: str) -> Callable[[], Any]:
    return lambda: maybe_nested(draw, lambda: mostly_valid_number(draw, name))


def scalar_text(draw: Draw) -> Any:
    """Return a value of a text field, mostly words."""
    if draw.chance(0.93):
        return words(draw)
    return draw.choice([None, True, False, 5, 0.1, 1e16, 1e-7, 10**30, -0.0, "null", ""])


def mostly_valid_number(draw: Draw, name: str) -> Any:
    """Return a number that is usually valid in a field."""
    if draw.chance(0.3):
        return number(draw) if draw.chance(0.05) else draw.choice([None, 5.9, "5", " 5", "", 0.0])
    if name in ("weight", "ratio", "half"):
        return draw.any_of(
            lambda: draw.choice(
                [0.0, -0.0, 0.1, 0.5, 1.0000001788139343, 1e10 if name != "half" else 65519, 7]
            ),
            lambda: draw.fraction(-10, 10),
        )
    if name == "long" and draw.chance(0.5):
        return draw.choice([2**60, 2**60 + 1, 2**63 - 1, -(2**63), 2**53 + 1, 2**53])
    return draw.number(-5, 5)


def maybe_nested(draw: Draw, make: Any) -> Any:
    """Return a value, several values or nested arrays."""
    kind = draw.number(0, 9)
    if kind < 6:
        return make()
    if kind < 9:
        return draw.several(make, 4)
    return draw.several(lambda: draw.choice([make(), [make(), None], [[make()]]]), 3)
