"""Random queries and search bodies on the fields of `mappings`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.search import random_aggregations
from tests.search.drawing import Draw
from tests.search.mappings import (
    ADDRESSES,
    ANALYZERS,
    DATE_FIELDS,
    FORMATS,
    FRACTIONS,
    IDS,
    INTEGERS,
    NESTED_FIELDS,
    NETWORKS,
    NUMBER_FIELDS,
    POINT_FIELDS,
    RANGE_FIELDS,
    TAGS,
    VALUE_FIELDS,
    VECTOR_FIELDS,
    WORD_FIELDS,
    WORDS,
    Json,
    date,
    number,
    point,
    vector,
    words,
)

ORDER = [{"_score": "desc"}, {"id": "asc"}]
DEEPEST = 4

KINDS = {
    "match", "multi_match", "combined_fields", "match_phrase", "match_phrase_prefix", "term", "terms", "range",
    "exists", "prefix", "ids", "wildcard", "regexp", "fuzzy", "match_bool_prefix", "query_string",
    "simple_query_string", "more_like_this", "match_all", "match_none", "bool", "dis_max", "constant_score", "boosting",
    "function_score", "geo_distance", "geo_bounding_box", "nested", "terms_set", "distance_feature",
}  # fmt: skip
"""The names of all queries."""

# fmt: off
BOOSTS = [0, 0.1, 0.3, 1, 1.7, 33, 1e-7, 1e9, "2", 1.0000001788139343, 5]
MINIMUMS = [
    -3, -1, 0, 1, 2, 3, 4, "75%", "-25%", "50%", "110%", "-110%", "2<50%", "1<-1 3<60%", "0 < 2", "2", " 1 ", 1.0, None,
    "x", "0<1<2",
]
FACTORS = [0, 0.3, 1, 2, 1000]
ODD = [
    None, True, False, "5", 5, 5.5, -1, 0, -0.0, [], {}, "", "x", [1], {"a": 1}, 1e39, 10**400, "1e400", "NaN",
    "true", 2**31,
]
"""Values of wrong types or ranges."""
# fmt: on


def body(draw: Draw) -> Json:
    """Return a search body in searchapp's order."""
    request: Json = {"size": draw.choice([50, 50, 50, 10, 3, 0, "5"]), "sort": ORDER, "query": query(draw)}
    if draw.chance(0.5):
        request["explain"] = True
    if draw.chance(0.5):
        request["highlight"] = highlight(draw)
    more = {
        "from": lambda: draw.choice([0, 2, 100, "1"]),
        "_source": lambda: draw.choice(
            [
                True,
                False,
                "tag",
                "a",
                ["id", "kept"],
                {"excludes": ["a", "text"]},
                ["o", "place"],
                {"includes": "title"},
                ["", "a"],
                [],
                ["vec", "o"],
                ["*"],
                {"exclude_vectors": draw.choice([True, False, "false"])},
                {"exclude_vectors": False, "excludes": ["o.vec", "a"]},
                {"exclude_vectors": True, "excludes": ["text"]},
                {"exclude_vectors": True, "includes": ["o.*"]},
            ]
        ),
        "track_total_hits": lambda: draw.choice([False, True, 5, "true", -1]),
        "track_scores": lambda: draw.choice([True, False, "true"]),
    }
    request |= draw.some_of(more, 0.1)
    if draw.chance(0.3):
        request |= parts_of_answers(draw)
    if draw.chance(0.2):
        request[draw.choice(["aggs", "aggregations"])] = random_aggregations.aggregations(draw)
    if draw.chance(0.15):
        request["knn"] = draw.any_of(partial(_knn, draw), lambda: draw.several(partial(_knn, draw), 3))
        if draw.chance(0.5):
            del request["query"]
    if draw.chance(0.1):
        request = with_odd_value(draw, request)
    return request


def _knn(draw: Draw) -> Json:
    """Return a section `knn`."""
    name = draw.choice([*VECTOR_FIELDS]) if draw.chance(0.97) else draw.choice(["raw", "text", "nowhere", ""])
    k = draw.choice([1, 2, 3, 5, 10, 30])
    more: dict[str, Callable[[], Any]] = {
        "filter": lambda: draw.any_of(partial(query, draw), lambda: draw.several(partial(query, draw), 2)),
        "similarity": lambda: draw.choice([0, 0.5, -1, 1, 2, 3, -0.25, 5, 1e39, "0.7"]),
        "boost": lambda: draw.choice(BOOSTS),
        "_name": lambda: "near",
    }
    return {
        "field": name,
        "query_vector": vector(draw, VECTOR_FIELDS.get(name, 3), 0.03),
        **({"k": k} if draw.chance(0.8) else {}),
        **({"num_candidates": draw.choice([k, k + 3, 100, 1])} if draw.chance(0.7) else {}),
        **draw.some_of(more, 0.3),
    }


def parts_of_answers(draw: Draw) -> Json:
    """Return parts of a body that other programs send: sorts by fields, conditions on hits, and rescores."""
    parts: dict[str, Callable[[], Any]] = {
        "post_filter": lambda: query(draw),
        "min_score": lambda: draw.choice([0, 0.3, 1, "0.5", -1, 1.0000001]),
        "collapse": lambda: {"field": draw.choice(_SORTED_FIELDS)},
        "track_total_hits": lambda: draw.choice([True, 0, 1, 3, 100, False]),
        "_source": lambda: draw.any_of(
            partial(_source_pattern, draw),
            lambda: draw.several(partial(_source_pattern, draw), 3),
            lambda: {
                key: draw.several(partial(_source_pattern, draw), 2) for key in ("includes", "excludes")
            },
        ),
        "stored_fields": list,
        "timeout": lambda: draw.choice(["10m", "-1", "100000ms"]),
    }
    chosen = draw.some_of(parts, 0.2)
    if draw.chance(0.2):
        chosen["rescore"] = draw.any_of(
            partial(_rescore, draw), lambda: draw.several(partial(_rescore, draw), 3, 1)
        )
        chosen["sort"] = draw.choice([None, ["_score"]])
    elif draw.chance(0.8):
        chosen["sort"] = draw.any_of(
            partial(_sort_clause, draw), lambda: draw.several(partial(_sort_clause, draw), 3)
        )
    return chosen


_SORTED_FIELDS = [
    *NUMBER_FIELDS, *DATE_FIELDS, *VALUE_FIELDS, "o.n", "title.raw", "title", "hidden", "nowhere", "id",
]  # fmt: skip


def _sort_clause(draw: Draw) -> Any:
    if draw.chance(0.15):
        return _nested_sort_clause(draw)
    name = draw.choice([*_SORTED_FIELDS, "_score", "_score"])
    if draw.chance(0.3):
        return name
    if draw.chance(0.3):
        return {name: draw.choice(["asc", "desc", "DESC"])}
    options: dict[str, Callable[[], Any]] = {"order": lambda: draw.choice(["asc", "desc"])}
    if name != "_score":
        options |= {
            "mode": lambda: draw.choice(["min", "max", "sum", "avg", "median", "SUM", "x"]),
            "missing": lambda: draw.choice(
                ["_first", "_last", 3, -2.5, "b", "3", "0.1", None, 1e10, "", True]
            ),
            "unmapped_type": lambda: draw.choice(
                ["long", "integer", "keyword", "boolean", "date", "float", "double", "text"]
            ),
            "numeric_type": lambda: draw.choice(["long", "double"]),
            "format": lambda: draw.choice(["uuuu", "epoch_millis", "strict_date_optional_time", "x"]),
        }
    return {name: draw.some_of(options, 0.3)}


def _nested_sort_clause(draw: Draw) -> Json:
    """Return a sort by a field of nested objects, mostly a valid one."""
    path = draw.choice([*NESTED_FIELDS, "part.in"])

    def nested(path: str) -> Json:
        of_path = {"path": path if draw.chance(0.97) else draw.choice(["o", "text", "nowhere", ""])}
        filter_ = {"filter": lambda: with_fields(draw, query(draw, DEEPEST - 1), NESTED_FIELDS[path])}
        return {**of_path, **draw.some_of(filter_, 0.4)}

    most = draw.some_of({"max_children": lambda: draw.choice([0, 1, 1, 2, 3, "2", 1.7, -1])}, 0.3)
    inner = nested(path)
    outer = {**nested("part"), "nested": inner} if path == "part.in" and draw.chance(0.5) else inner
    name = NESTED_FIELDS[path][draw.choice(["tag", "number", "number", "number"])]
    if draw.chance(0.05):
        name = draw.choice([*NUMBER_FIELDS, *VALUE_FIELDS, "part.in.n", "nowhere"])
    options: dict[str, Callable[[], Any]] = {
        "order": lambda: draw.choice(["asc", "desc"]),
        "mode": lambda: draw.choice(["min", "max", "sum", "avg", "median"]),
        "missing": lambda: draw.choice(["_first", "_last", 3, -2.5, "b", "3", 1e10]),
        "unmapped_type": lambda: draw.choice(["long", "keyword"]),
        "numeric_type": lambda: draw.choice(["long", "double"]),
    }
    return {name: {"nested": {**outer, **most}, **draw.some_of(options, 0.3)}}


def _source_pattern(draw: Draw) -> str:
    return draw.choice(
        ["id", "a", "a.b", "a.*", "*.b", "*", "t*", "o", "o.*", "o.n", "*n", "o.n.x", "place", "*.*"]
    )


def _rescore(draw: Draw) -> Json:
    weights = ("query_weight", "rescore_query_weight")
    more: dict[str, Callable[[], Any]] = {
        "score_mode": lambda: draw.choice(["total", "multiply", "avg", "max", "min", "x"]),
        **dict.fromkeys(weights, lambda: draw.choice([0, 0.3, 1.7, 3])),
    }
    return {
        **({"window_size": draw.choice([1, 3, 10, 50])} if draw.chance(0.7) else {}),
        "query": {"rescore_query": query(draw), **draw.some_of(more, 0.5)},
    }


def highlight(draw: Draw) -> Json:
    """Return the highlighting of some fields, of complete values or of fragments."""
    names = [*WORD_FIELDS, *VALUE_FIELDS, "a.c", "year", "when", "nowhere", "t*", "*", "*.*", "o.item.tag"]
    whole = draw.chance(0.3)
    fields: Json = {
        name: {}
        if whole or draw.chance(0.6)
        else _highlight_parameters(draw, {"matched_fields": _matched_fields})
        for name in names
        if draw.chance(0.4)
    }
    tags = {"pre_tags": ["<"], "post_tags": [">"]}
    own = {"type": "plain", "number_of_fragments": 0} if whole else _highlight_parameters(draw, {})
    return {
        **own,
        "fields": fields if draw.chance(0.8) else [{name: options} for name, options in fields.items()],
        **(tags if draw.chance(0.8) else {}),
    }


def _matched_fields(draw: Draw) -> Any:
    return draw.choice(
        [["text.gaps"], ["title", "text"], "text", [], ["nowhere"], ["text.parts", "text.alike"]]
    )


def _highlight_parameters(draw: Draw, more: Json) -> Json:
    sizes = [0, 1, 5, 10, 18, 30, 50, 100, 200, "20"]
    options: dict[str, Callable[[], Any]] = {
        "type": lambda: draw.choice(["unified", "unified", "plain"]),
        "number_of_fragments": lambda: draw.choice([0, 1, 2, 3, 5, 10, 100, "2"]),
        "fragment_size": lambda: draw.choice(sizes),
        "order": lambda: draw.choice(["score", "none", "SCORE", "x"]),
        "no_match_size": lambda: draw.choice(sizes),
        "boundary_scanner": lambda: draw.choice(["sentence", "word", "WORD"]),
        "boundary_scanner_locale": lambda: draw.choice(["en", "root", "en-US"]),
        "fragmenter": lambda: draw.choice(["simple", "span"]),
        "require_field_match": lambda: draw.choice([True, "true", False]),
        "encoder": lambda: draw.choice(["html", "default", "x"]),
        "max_analyzed_offset": lambda: draw.choice([1, 5, 20, 100, 10000]),
        "boundary_chars": lambda: draw.choice([".", ",! ", ""]),
        "boundary_max_scan": lambda: draw.choice([0, 5, 20, 100]),
        "phrase_limit": lambda: draw.choice([1, 10, 256]),
        "highlight_query": lambda: query(draw),
        **{name: partial(choose, draw) for name, choose in more.items()},
    }
    chosen = draw.some_of(options, 0.25)
    if draw.chance(0.1):
        chosen["tags_schema"] = draw.choice(["styled", "default"])
    return chosen


def query(draw: Draw, depth: int = 0) -> Json:
    """Return a query, which may contain inner queries."""
    if depth == DEEPEST or draw.chance(0.35 + 0.15 * depth):
        return leaf(draw)
    if draw.chance(0.15):
        return nested(draw, lambda: query(draw, depth + 1))
    return compound(draw, lambda: query(draw, depth + 1))


def nested(draw: Draw, inner: Callable[[], Json]) -> Json:
    """Return a query of nested objects, mostly on their fields."""
    path = draw.choice([*NESTED_FIELDS])
    query = inner()
    options = {
        "score_mode": lambda: draw.choice(["avg", "sum", "min", "max", "none", "Avg", "total"]),
        "ignore_unmapped": lambda: draw.choice([True, False, "false"]),
    }
    parameters = {
        "path": path if draw.chance(0.97) else draw.choice(["o", "text", "nowhere", ""]),
        "query": with_fields(draw, query, NESTED_FIELDS[path]),
    }
    return {"nested": boosted(draw, {**parameters, **draw.some_of(options, 0.4)})}


_OBJECT_FIELDS = ["a", "o", "kept"]


def with_fields(draw: Draw, value: Any, fields: Json) -> Any:
    """Return a part of a query with most names of fields replaced by those of a nested object."""

    def renamed(name: Any) -> Any:
        field, caret, boost = name.partition("^") if isinstance(name, str) else (name, "", "")
        kinds = {"word": WORD_FIELDS, "tag": VALUE_FIELDS, "number": NUMBER_FIELDS, "object": _OBJECT_FIELDS}
        for kind, names in kinds.items():
            if field in names and draw.chance(0.8):
                return fields[kind] + caret + boost
        return name

    if isinstance(value, dict):
        return {renamed(key): with_fields(draw, item, fields) for key, item in value.items()}
    if isinstance(value, list):
        return [with_fields(draw, item, fields) for item in value]
    return renamed(value)


def boosted(draw: Draw, parameters: Json) -> Json:
    """Return parameters, sometimes with a boost."""
    return {**parameters, "boost": draw.choice(BOOSTS)} if draw.chance(0.4) else parameters


def _match_parameters(draw: Draw) -> Json:
    text: Any = (
        words(draw)
        if draw.chance(0.85)
        else draw.choice([5, 0.1, True, 1e-7, "", "true 5", 1e16, 7, "-0", "5.0"])
    )
    options = {
        "operator": lambda: draw.choice(["and", "or", "AND", "And"]),
        "minimum_should_match": lambda: draw.choice(MINIMUMS),
        "zero_terms_query": lambda: draw.choice(["all", "none", "ALL"]),
        "auto_generate_synonyms_phrase_query": lambda: draw.choice([False, "false", True]),
        "analyzer": lambda: draw.choice([*ANALYZERS, "standard", "keyword", "english", "default", "nowhere"]),
        "lenient": lambda: draw.choice([True, True, False, "true"]),
    }
    fuzzy = _fuzziness(draw) if draw.chance(0.25) else {}
    return boosted(draw, {"query": text, **draw.some_of(options, 0.2), **fuzzy})


def _fuzziness(draw: Draw, prefix: str = "fuzzy_") -> Json:
    options = {
        "prefix_length": lambda: draw.choice([0, 1, 1, 2, 9, -1, "1"]),
        "max_expansions": lambda: draw.choice([1, 2, 3, 50, 0, "5"]),
        f"{prefix}transpositions": lambda: draw.choice([True, False, "false"]),
        f"{prefix}rewrite": lambda: draw.choice(
            ["top_terms_2", "top_terms_50", "top_terms_blended_freqs_3", "constant_score"]
        ),
    }
    values = ["AUTO", "AUTO", 0, 1, 1, 2, 2, "2", "auto:0,3", "AUTO:2,4", "AUTO:4,2", "1.0", 1.5, 3]
    return {"fuzziness": draw.choice(values), **draw.some_of(options, 0.2)}


def fuzzy(draw: Draw) -> Json:
    """Return a query for terms that resemble a word with changed letters."""
    letters = list(draw.choice([*WORDS, *TAGS]))
    for _ in range(draw.number(0, 2)):
        place = draw.number(0, len(letters))
        letters[place : place + draw.number(0, 2)] = draw.choice(
            ["", "a", "é", "😀", *reversed(letters[place : place + 2])]
        )
    value = draw.choice(["".join(letters)] * 8 + [5, True, 0.1, ""])
    parameters = boosted(draw, {draw.choice(["value", "value", "term"]): value})
    if draw.chance(0.7):
        parameters |= _fuzziness(draw, "")
    field = draw.choice(
        [*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "a.c", "title.raw", "id", "nowhere", "year"]
    )
    return {"fuzzy": {field: parameters if draw.chance(0.8) else value}}


def match(draw: Draw) -> Json:
    """Return a query for a text in one field."""
    parameters = _match_parameters(draw)
    field = draw.choice(
        [*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "a.c", "title.raw", "nowhere", *NUMBER_FIELDS[:4]]
    )
    if field in NUMBER_FIELDS and draw.chance(0.8):
        parameters["query"] = draw.choice([number(draw), "5 7", "1 2 5", "0.1 5"])
    if field == "net" and draw.chance(0.8):
        parameters["query"] = draw.choice([*ADDRESSES, *NETWORKS])
    if draw.chance(0.05):
        field, parameters["query"] = draw.choice(DATE_FIELDS), date(draw)
    return {"match": {field: parameters if draw.chance(0.9) else parameters["query"]}}


TYPES = [
    *("best_fields", "most_fields", "boolean", "bool_prefix", "phrase", "phrase_prefix"),
    *("cross_fields", "cross_fields"),
]
"""The types of a `multi_match`."""

SLOPS = [0, "0", 0.5, 1, 2, 3, 5, 9, "20", 2**31 - 1, -1]


def multi_match(draw: Draw) -> Json:
    """Return a query for a text in several fields, some of them named twice."""

    def field() -> str:
        name = draw.choice([*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "nowhere", "year"])
        return name + draw.choice(["", "", "^2", "^0.3", "^0", "^1"])

    parameters = _match_parameters(draw)
    options = {
        "type": lambda: draw.choice(TYPES),
        "tie_breaker": lambda: draw.choice([0, 0.3, 1, "0.5"]),
    }
    if draw.chance(0.2):
        options["slop"] = lambda: draw.choice(SLOPS)
    fields = {"fields": draw.several(field, 4, 1)} if draw.chance(0.95) else {}
    return {"multi_match": {**parameters, **fields, **draw.some_of(options)}}


def combined_fields(draw: Draw) -> Json:
    """Return a query for a text in several fields, as if they were one."""
    parameters = _match_parameters(draw)
    for name in ("analyzer", "lenient", *FUZZY):
        parameters.pop(name, None)
    names = draw.several(lambda: draw.choice(COMBINED), 4, 1)
    fields = [name + draw.choice(["", "", "", "^2", "^1.5", "^1.7", "^0.3"]) for name in names]
    return {"combined_fields": {**parameters, "fields": fields if draw.chance(0.9) else fields[0]}}


FUZZY = ("fuzziness", "fuzzy_rewrite", "fuzzy_transpositions", "prefix_length", "max_expansions")

COMBINED = ["text", "title", "o.word", "all", "o.word", "all", "nowhere", "a.b", "tag"]
"""Fields of which most have the same analyzer."""


def _query_text(draw: Draw, operators: list[str]) -> str:
    """Return words between operators, mostly with blanks."""
    words = [*WORDS[:15], "ri", "Ri", "running", "foxes", "united states", "5", "0.1", "x", "É"]
    pieces = draw.several(lambda: draw.choice(words if draw.chance(0.6) else operators), 12, 1)
    return "".join(piece + draw.choice([" ", " ", ""]) for piece in pieces)


def _query_fields(draw: Draw) -> list[str]:
    patterns = ["text*", "t*", "*", "a.*", "part.*", "title.*", "tag*", "*.any", "o.*", "y*", "z*"]

    def field() -> str:
        names = [*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "nowhere", "year", "weight", *patterns]
        return draw.choice(names) + draw.choice(["", "", "^2", "^0.3", "^0", "^1"])

    return draw.several(field, 4, 1)


def simple_query_string(draw: Draw) -> Json:
    """Return a query for a text with simple operators."""
    operators = ["+", "|", "-", "(", ")", '"', "*", "\\", "~", "~0", "~1", '"~3 ', '" ', ' "', "(", ")", '"']
    options = {
        "default_operator": lambda: draw.choice(["and", "or", "AND"]),
        "flags": lambda: draw.choice(
            [
                "ALL",
                "NONE",
                "AND|OR|PREFIX",
                "not|phrase|whitespace",
                "",
                8,
                255,
                -1,
                "PRECEDENCE|AND|WHITESPACE",
            ]
        ),
        "minimum_should_match": lambda: draw.choice(MINIMUMS),
        "analyze_wildcard": lambda: draw.choice([True, False]),
        "lenient": lambda: draw.choice([True, False]),
        "auto_generate_synonyms_phrase_query": lambda: draw.choice([False, True]),
        "quote_field_suffix": lambda: draw.choice([".gaps", ".any", ".nowhere"]),
    }
    parameters = {"query": _query_text(draw, operators), **draw.some_of(options, 0.3)}
    if draw.chance(0.8):
        parameters["fields"] = _query_fields(draw)
    if draw.chance(0.1):
        parameters["analyzer"] = draw.choice([*ANALYZERS, "standard", "keyword", "english", "nowhere"])
    return {"simple_query_string": boosted(draw, parameters)}


def query_string(draw: Draw) -> Json:
    """Return a query for a text in Lucene's classic syntax, mostly valid."""
    options = {
        "default_operator": lambda: draw.choice(["and", "or", "OR"]),
        "minimum_should_match": lambda: draw.choice(MINIMUMS),
        "analyze_wildcard": lambda: draw.choice([True, False]),
        "allow_leading_wildcard": lambda: draw.choice([True, False]),
        "lenient": lambda: draw.choice([True, False]),
        "auto_generate_synonyms_phrase_query": lambda: draw.choice([False, True]),
        "quote_field_suffix": lambda: draw.choice([".gaps", ".any", ".nowhere"]),
        "quote_analyzer": lambda: draw.choice(["gaps", "alike", "nowhere"]),
        "type": lambda: draw.choice(["best_fields", "most_fields", "phrase", "bool_prefix", "phrase_prefix"]),
        "tie_breaker": lambda: draw.choice([0, 0.3, 1]),
        "escape": lambda: True,
        "phrase_slop": lambda: draw.choice([0, 1, 3]),
        "fuzziness": lambda: draw.choice(["AUTO", 0, 1, "2", "x"]),
        "fuzzy_prefix_length": lambda: draw.choice([0, 1, 3]),
        "fuzzy_max_expansions": lambda: draw.choice([1, 2, 50]),
        "fuzzy_transpositions": lambda: draw.choice([True, False]),
        "time_zone": lambda: draw.choice(["+01:00", "Europe/Paris", "x"]),
    }
    parameters = {"query": _classic_text(draw, 0), **draw.some_of(options, 0.12)}
    if draw.chance(0.4):
        parameters["lenient"] = True
    if draw.chance(0.5):
        parameters["fields"] = _query_fields(draw)
    elif draw.chance(0.8):
        names = [*WORD_FIELDS, *VALUE_FIELDS, *NUMBER_FIELDS, "*", "t*", "nowhere"]
        parameters["default_field"] = draw.choice(names)
    if draw.chance(0.1):
        parameters["analyzer"] = draw.choice([*ANALYZERS, "standard", "keyword", "english", "nowhere"])
    return {"query_string": boosted(draw, parameters)}


def _classic_text(draw: Draw, depth: int) -> str:
    """Return clauses with operators; some break the syntax."""
    if draw.chance(0.06):
        signs = [
            "+",
            "-",
            "!",
            "(",
            ")",
            ":",
            "^",
            "[",
            "]",
            "{",
            "}",
            '"',
            "~",
            "*",
            "?",
            "\\",
            "/",
            "&&",
            "TO",
            "AND",
        ]
        return _query_text(draw, [*signs, "^2", "text:", "\\u0041", "NOT", "OR", "||"])
    clauses = draw.several(lambda: _classic_clause(draw, depth), 6, 1)
    joints = [" ", " ", " ", " ", " AND ", " OR ", " && ", " || ", " NOT ", " AND NOT ", " -", " +", " ! "]
    return "".join(clause + draw.choice(joints) for clause in clauses[:-1]) + clauses[-1]


def _classic_clause(draw: Draw, depth: int) -> str:
    def word() -> str:
        return draw.choice(
            [*WORDS[:15], "Ring", "running", "foxes", "5", "x", "United", "usa", r"\u0041", r"a\:b"]
        )

    fields = [*WORD_FIELDS, *VALUE_FIELDS, "nowhere", "title.raw", r"te\*", r"t\*.gaps", "_exists_", "*"]
    prefix = f"{draw.choice(fields)}:" if draw.chance(0.25) else draw.choice(["", "", "", "", "+", "-"])
    boost = draw.choice(["^2", "^0.3", "^0", "^1", "^1.5"]) if draw.chance(0.15) else ""
    expression = draw.choice(
        [word(), f"{word()[:1]}.*", "[a-c]+", "r(i|u)ng", "~(a.*)", ".*ing?", "@&a.", "R.*", "a++"]
    )
    kind = draw.number(0, 19)
    if kind < 9:
        return f"{prefix}{word()}{boost}"
    if kind < 11:
        return f'{prefix}"{word()} {word()}"{draw.choice(["", "", "~0", "~", "~2", "~7"])}{boost}'
    if kind < 13 and depth < 3:
        return f"{prefix}({_classic_text(draw, depth + 1)}){boost}"
    if kind < 15:
        return f"{prefix}{word()[:2]}*{boost}"
    if kind == 15:
        pattern = draw.choice(["*", "r?ng", "*ing", "?", "R*G", "a*", r"r\in*g", "??*"])
        return f"{prefix}{pattern}{boost}"
    if kind == 16:
        number = draw.choice(["5", "-1", "2.5", "x", "*"])
        name = draw.choice([*NUMBER_FIELDS, *DATE_FIELDS])
        return f"{name}:{draw.choice(['>', '>=', '<', '<='])}{number}{boost}"
    if kind == 17:
        bounds = [word(), "*", "5", "-1", '"a b"', "m"]
        if draw.chance(0.3):
            bounds = [
                "2020-01-01",
                "2020",
                '"2020-02-29T23:59:59.999Z"',
                "now-3y",
                "*",
                "2020-01-01||+1M",
                "x",
                "5",
            ]
            name = draw.choice([*DATE_FIELDS, "net"])
        else:
            name = draw.choice([*VALUE_FIELDS, *NUMBER_FIELDS, "text"])
        low, high = (draw.choice(bounds) for _ in range(2))
        field = f"{name}:" if draw.chance(0.8) else ""
        return f"{field}{draw.choice('[{')}{low} TO {high}{draw.choice(']}')}{boost}"
    if kind == 18:
        return f"{draw.choice(['_exists_', 'nowhere'])}:{draw.choice([*WORD_FIELDS, 'year', 'a', 'nowhere'])}{boost}"
    return draw.choice(
        [
            "*:*",
            "*",
            f"{word()}~0",
            "the",
            "of",
            f"{prefix}/{expression}/{boost}",
            f"{word()}~1",
            f"{word()}~{boost}",
        ]
    )


def more_like_this(draw: Draw) -> Json:
    """Return a query for documents with the terms of texts and documents."""
    names = [*WORD_FIELDS, *WORD_FIELDS, "tag", "title.raw", "note", "same", "a.c", "year"]

    def like() -> Any:
        if draw.chance(0.5):
            return words(draw)
        fields = {"fields": lambda: draw.several(lambda: draw.choice(names), 3, 1)}
        document = {"text": words(draw), "title": [words(draw)], "tag": draw.choice(TAGS)}
        item: Json = {"doc": document} if draw.chance(0.2) else {"_id": draw.choice(IDS)}
        return {**item, **draw.some_of(fields, 0.2)}

    options = {
        "fields": lambda: draw.several(lambda: draw.choice(names), 3, 1),
        "min_term_freq": lambda: draw.choice([1, 1, 1, 2, 0, "1"]),
        "min_doc_freq": lambda: draw.choice([1, 1, 1, 2, 0]),
    }
    rare = {
        "unlike": lambda: draw.several(like, 2),
        "max_query_terms": lambda: draw.choice([1, 2, 3, 5, 100, 0]),
        "max_doc_freq": lambda: draw.choice([1, 3, 10]),
        "min_word_length": lambda: draw.choice([0, 2, 5]),
        "max_word_length": lambda: draw.choice([0, 1, 4]),
        "stop_words": lambda: draw.several(lambda: draw.choice(WORDS), 3),
        "analyzer": lambda: draw.choice([*ANALYZERS, "standard", "nowhere"]),
        "minimum_should_match": lambda: draw.choice(MINIMUMS),
        "boost_terms": lambda: draw.choice([0, 1, 2.5, -1]),
        "include": lambda: draw.choice([True, False]),
        "fail_on_unsupported_field": lambda: draw.choice([True, False]),
    }
    likes = draw.several(like, 3, 1) if draw.chance(0.5) else like()
    parameters = {"like": likes, **draw.some_of(options, 0.9), **draw.some_of(rare, 0.2)}
    return {"more_like_this": boosted(draw, parameters)}


def match_bool_prefix(draw: Draw) -> Json:
    """Return a query for a text in one field whose last word is a prefix."""
    parameters = _match_parameters(draw)
    for name in ("zero_terms_query", "lenient"):
        parameters.pop(name, None)
    if isinstance(parameters["query"], str) and draw.chance(0.5):
        parameters["query"] = parameters["query"][:-1]
    field = draw.choice([*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "a.c", "title.raw", "nowhere", "year"])
    return {"match_bool_prefix": {field: parameters if draw.chance(0.9) else parameters["query"]}}


def wildcard(draw: Draw) -> Json:
    """Return a query for terms that match a pattern."""
    word = draw.choice([*WORDS, *TAGS])
    pattern = "".join(
        draw.choice([character] * 6 + ["*", "?", f"*{character}", f"\\{character}", character.upper()])
        for character in word
    )
    value = draw.choice(
        [pattern, pattern, f"{pattern}*", f"*{pattern}", "*", "?", "", "??*", "\\", 5, True, 0.1]
    )
    options = {"case_insensitive": lambda: draw.choice([True, False, "true"])}
    parameters = boosted(
        draw, {draw.choice(["value", "value", "wildcard"]): value, **draw.some_of(options, 0.3)}
    )
    field = draw.choice([*WORD_FIELDS, *VALUE_FIELDS, "a.c", "title.raw", "id", "nowhere", "year"])
    return {"wildcard": {field: parameters if draw.chance(0.8) else value}}


def regexp(draw: Draw) -> Json:
    """Return a query for terms that match a regular expression."""

    def part(depth: int = 0) -> str:
        character = draw.choice(draw.choice([word for word in [*WORDS, *TAGS] if word]))
        simple = [character] * 8 + [
            *[
                ".",
                ".",
                "@",
                "#",
                "[a-k]",
                f"[^{character}]",
                f"[{character}b]",
                f'"{character}"',
                "<0-7>",
                "<1-10>",
            ],
            *["()", "\\d", "\\w", "\\S", f"\\{character}"],
        ]
        text = draw.choice(simple)
        if depth < 3 and draw.chance(0.3):
            text = draw.choice(["({})", "({})", "~({})"]).format(expression(depth + 1))
        return text + draw.choice([""] * 8 + ["*", "+", "?", "{2}", "{1,}", "{0,3}", "*?"])

    def expression(depth: int = 0) -> str:
        parts = draw.several(lambda: part(depth), 4, 1)
        return "".join(parts) + (draw.choice(["|", "&"]) + expression(depth + 1) if draw.chance(0.3) else "")

    word = draw.choice([*WORDS, *TAGS])
    start = draw.number(0, len(word))
    values = [
        expression(),
        expression() + ".*",
        word[:start] + expression(),
        f"{word[:start]}.*",
        f".*{word[start:]}",
    ]
    value = draw.choice([*values, *values, "", "(", 5, True, 0.1])
    options = {
        "case_insensitive": lambda: draw.choice([True, False, "true"]),
        "flags": lambda: draw.choice(
            ["ALL", "NONE", "", "INTERSECTION|COMPLEMENT", "interval", "EMPTY|ANYSTRING"]
        ),
        "max_determinized_states": lambda: draw.choice([10_000, 20_000, "10000"]),
    }
    parameters = boosted(draw, {"value": value, **draw.some_of(options, 0.2)})
    field = draw.choice([*WORD_FIELDS, *VALUE_FIELDS, "a.c", "title.raw", "id", "nowhere", "year"])
    return {"regexp": {field: parameters if draw.chance(0.8) else value}}


def match_phrase(draw: Draw) -> Json:
    """Return a phrase query, whose last term may be a prefix."""
    words_ = draw.choice([WORDS, WORDS[:7]])  # few words, so that they are repeated
    text = " ".join(draw.several(lambda: draw.choice(words_), draw.choice([2, 6]), draw.choice([0, 1, 1])))
    options = {
        "zero_terms_query": lambda: draw.choice(["all", "none"]),
        "analyzer": lambda: draw.choice(ANALYZERS),
    }
    parameters = boosted(
        draw, {"query": draw.choice([text, text, text, text, 5, True]), **draw.some_of(options, 0.1)}
    )
    if draw.chance(0.5):
        parameters["slop"] = draw.choice(SLOPS)
    kind = draw.choice(["match_phrase", "match_phrase_prefix"])
    if kind == "match_phrase_prefix":
        parameters["query"] = draw.choice([text[:-1], text])
        # Smaller limits choose terms by the division into segments.
        parameters |= draw.some_of({"max_expansions": lambda: draw.choice([20, "50", 10**6, -1])}, 0.2)
    return {kind: {draw.choice([*WORD_FIELDS, *WORD_FIELDS, *VALUE_FIELDS, "year", "nowhere"]): parameters}}


def term(draw: Draw) -> Json:
    """Return a query for a term or a number."""
    field = draw.choice(
        [
            *VALUE_FIELDS,
            "a.c",
            "title.raw",
            "text",
            "title",
            "id",
            "nowhere",
            *NUMBER_FIELDS,
            *NUMBER_FIELDS,
            *DATE_FIELDS,
            *DATE_FIELDS,
            "o.n",
        ]
    )
    if field in DATE_FIELDS:
        value: Any = date(draw)
    elif field in NUMBER_FIELDS:
        value = number(draw)
    elif field == "net":
        value = draw.choice([*ADDRESSES, *NETWORKS])
    else:
        value = draw.choice([*TAGS, *WORDS, 5, 0.1, True])
    if draw.chance(0.5):
        return {"term": {field: value}}
    return {"term": {field: boosted(draw, {draw.choice(["value", "value", "term"]): value})}}


def terms(draw: Draw) -> Json:
    """Return a query for any of several terms or numbers."""
    field = draw.choice([*VALUE_FIELDS, "a.c", "text", "nowhere", *NUMBER_FIELDS, *DATE_FIELDS])
    if field in DATE_FIELDS:
        values = draw.several(lambda: date(draw), 4)
    elif field in NUMBER_FIELDS:
        values = draw.several(lambda: draw.choice([*INTEGERS, *FRACTIONS[:5], "5", "-0"]), 4)
        if draw.chance(0.1):
            values.append(number(draw))
    elif field == "net":
        values = draw.several(lambda: draw.choice([*ADDRESSES * 4, *NETWORKS]), 4)
    else:
        values = draw.several(lambda: draw.choice([*TAGS, *WORDS[:8], 5, True, 0.1]), 4)
    return {"terms": boosted(draw, {field: values})}


def terms_set(draw: Draw) -> Json:
    """Return a query for several terms, of which a field has the number of required ones."""
    (field, values), *_boost = terms(draw)["terms"].items()
    fields = [*NUMBER_FIELDS, *NUMBER_FIELDS, "o.n", "flag", "when", "nowhere", "tag"]
    minimum: Json = (
        {"minimum_should_match_field": draw.choice(fields)}
        if draw.chance(0.7)
        else {"minimum_should_match": draw.choice(MINIMUMS)}
    )
    words = [*WORDS[:8], *TAGS[:3]]
    if draw.chance(0.5):
        field, values = (
            draw.choice([*WORD_FIELDS, *VALUE_FIELDS]),
            draw.several(lambda: draw.choice(words), 6, 1),
        )
    return {"terms_set": {field: boosted(draw, {"terms": values, **minimum})}}


def distance_feature(draw: Draw) -> Json:
    """Return a query that scores the distance of dates or points from an origin."""
    field = draw.choice([*DATE_FIELDS, *POINT_FIELDS, *POINT_FIELDS, "year", "text", "nowhere"])
    is_place = field in POINT_FIELDS
    parameters = {
        "field": field,
        "origin": point(draw) if is_place or draw.chance(0.05) else date(draw),
        "pivot": draw.choice(["1km", "10mi", "100", "0.5m", "20000 km", "1e3", "0m"])
        if is_place
        else draw.choice(["1d", "7d", "36h", "1ms", "20000d", "90 m", "0s", "5"]),
    }
    return {"distance_feature": boosted(draw, parameters)}


def range_(draw: Draw) -> Json:
    """Return a range of numbers, dates or terms, whose bounds may be named twice or null."""
    if draw.chance(0.4):
        return _date_range(draw)
    if draw.chance(0.2):
        return _range_of_ranges(draw)
    field = draw.choice(
        [*NUMBER_FIELDS, *NUMBER_FIELDS, *VALUE_FIELDS, "a.c", "text", "title.raw", "nowhere"]
    )
    bounds: Json = {}
    for bound in draw.several(lambda: draw.choice(["gt", "gte", "lt", "lte"]), 4):
        if field in NUMBER_FIELDS or draw.chance(0.1):
            value: Any = number(draw) if draw.chance(0.3) else draw.choice([*INTEGERS, *FRACTIONS[:6], None])
        elif field == "net" and draw.chance(0.95):
            value = draw.choice(ADDRESSES)
        else:
            value = draw.choice([*WORDS, *TAGS, "", "*", "m", "é", 5, True, None])
        bounds[bound] = value
    relation = {"relation": lambda: draw.choice(["within", "CONTAINS", "intersects", "disjoint"])}
    return {"range": {field: boosted(draw, {**bounds, **draw.some_of(relation, 0.05)})}}


def _range_of_ranges(draw: Draw) -> Json:
    """Return a range or a value for fields of ranges."""
    field = draw.choice([*RANGE_FIELDS])

    def value() -> Any:
        if field == "days":
            return draw.choice(
                ["2020-01-01", "2020-02", "2020-02-29||+1d/d", "2021", "2020-02-29T23:59:59.999Z"]
            )
        return draw.choice([1, 2, 3, 5, 7, "2", 1.5, "x"])

    if draw.chance(0.2):
        return {"term": {field: boosted(draw, {"value": value()})}}
    options = {draw.choice(["gt", "gte"]): value, draw.choice(["lt", "lte"]): value}
    relation = draw.choice(["intersects", "within", "CONTAINS"])
    return {"range": {field: boosted(draw, {**draw.some_of(options, 0.8), "relation": relation})}}


def _date_range(draw: Draw) -> Json:
    bounds = {draw.choice(["gt", "gte"]): date(draw), draw.choice(["lt", "lte"]): date(draw)}
    if draw.chance(0.5):
        del bounds[draw.choice(list(bounds))]
    options = {
        "format": lambda: draw.choice([*FORMATS, "week"]),
        "time_zone": lambda: draw.choice(["+01:00", "-05:30", "Z", "UTC+1", "Europe/Paris", "x", "+1"]),
    }
    field = draw.choice([*DATE_FIELDS, *DATE_FIELDS, *DATE_FIELDS, "year", "tag", "nowhere"])
    return {"range": {field: boosted(draw, {**bounds, **draw.some_of(options, 0.2)})}}


VALIDATIONS = ["STRICT", "coerce", "IGNORE_MALFORMED", "x"]


def _on_points(draw: Draw, value: Any) -> Json:
    options = {
        "validation_method": lambda: draw.choice(VALIDATIONS),
        "ignore_unmapped": lambda: draw.choice([True, False, "true"]),
    }
    return boosted(
        draw,
        {draw.choice([*POINT_FIELDS, *POINT_FIELDS, "nowhere", "tag"]): value, **draw.some_of(options, 0.2)},
    )


def geo_distance(draw: Draw) -> Json:
    """Return a query for points around another one."""
    valid = ["10km", "0.1mm", "100mi", 5e6, "5000km", "9000km", "20015km", "20100km", "1e5", "12 nmi", 112]
    lengths = [*valid, *valid, "0", "-1km", "x"]
    options = {
        "unit": lambda: draw.choice(["km", "mi", "yd", "inch", "X"]),
        "distance_type": lambda: draw.choice(["arc", "plane", "x"]),
    }
    return {
        "geo_distance": {
            "distance": draw.choice(lengths),
            **_on_points(draw, point(draw)),
            **draw.some_of(options, 0.2),
        }
    }


def geo_bounding_box(draw: Draw) -> Json:
    """Return a query for points in a box, mostly a valid one."""
    south, north = sorted(draw.choice([0, 1, 2, -90, 90, draw.fraction(-90, 90)]) for _ in range(2))
    west, east = (draw.choice([0, 1, 2, -180, 180, 170, 362, draw.fraction(-180, 180)]) for _ in range(2))
    if draw.chance(0.5):
        west, east = min(west, east), max(west, east)
    boxes = [
        {"top": north, "left": west, "bottom": south, "right": east},
        {"top_left": [west, north], "bottom_right": f"{south},{east}"},
        {"top_right": {"lat": north, "lon": east}, "bottom_left": f"POINT ({west} {south})"},
        {"wkt": f"BBOX ({west}, {east}, {north}, {south})"},
        {"top_left": point(draw), "bottom_right": point(draw)},
        {"top_left": draw.choice(["s0", "u3"]), "bottom_right": draw.choice(["s0", "s01"]), "right": east},
    ]
    return {"geo_bounding_box": _on_points(draw, draw.choice(boxes))}


_SELDOM_WITH_HITS: list[Callable[[Draw], Json]] = [
    *(geo_distance, geo_distance, geo_bounding_box, _range_of_ranges, _range_of_ranges),
    *(combined_fields, match_phrase, more_like_this, terms_set, terms_set, distance_feature, wildcard),
]


def leaf(draw: Draw) -> Json:
    """Return a query without inner queries."""
    kind = draw.number(0, 44)
    if kind < 7:
        return match(draw)
    if kind > 38:
        return draw.choice(_SELDOM_WITH_HITS)(draw)
    simple = {
        7: multi_match,
        8: multi_match,
        9: match_phrase,
        10: match_phrase,
        11: term,
        12: term,
        13: terms,
        14: range_,
        15: range_,
        20: wildcard,
        21: match_bool_prefix,
        22: match_bool_prefix,
        23: fuzzy,
        24: fuzzy,
        25: simple_query_string,
        26: simple_query_string,
        27: query_string,
        28: query_string,
        29: query_string,
        30: combined_fields,
        31: regexp,
        32: more_like_this,
        33: more_like_this,
        34: geo_distance,
        35: geo_bounding_box,
        36: terms_set,
        37: distance_feature,
    }
    if kind in simple:
        return simple[kind](draw)
    return draw.any_of(
        lambda: {
            "exists": boosted(
                draw,
                {
                    "field": draw.choice(
                        [
                            *WORD_FIELDS,
                            *NUMBER_FIELDS,
                            *DATE_FIELDS,
                            *VALUE_FIELDS,
                            *POINT_FIELDS,
                            *RANGE_FIELDS,
                            "a",
                            "attrs.b",
                            "attrs.b.c",
                            "o",
                            "part",
                            "o.item",
                            "kept",
                            "title.raw",
                            "nowhere",
                            "a.b.c",
                        ]
                    )
                },
            )
        },
        lambda: {
            "prefix": {
                draw.choice(["text", *VALUE_FIELDS, "title", "a.c"]): draw.choice(
                    ["r", "a", "é", "x", "", "0", 5, True, 0.1]
                )
            }
        },
        lambda: {"ids": boosted(draw, {"values": draw.several(lambda: draw.choice([*IDS, 7, 0.5]), 4)})},
        lambda: {"match_all": boosted(draw, {})},
        lambda: {"match_none": {}},
    )


def compound(draw: Draw, inner: Any) -> Json:
    """Return a query with inner queries."""
    kind = draw.number(0, 10)
    if kind < 5:
        return _bool(draw, inner)
    if kind == 10:
        return {"bool": boosted(draw, {draw.choice(["must", "should"]): [inner()]})}
    if kind == 5:
        tie = {"tie_breaker": draw.choice([0, 0.3, 1])} if draw.chance(0.7) else {}
        return {"dis_max": boosted(draw, {"queries": draw.several(inner, 3, 1), **tie})}
    if kind == 6:
        return {"constant_score": boosted(draw, {"filter": inner()})}
    if kind == 7:
        factor = draw.choice([0, 0.3, 1.5, "0.5"])
        return {
            "boosting": boosted(draw, {"positive": inner(), "negative": inner(), "negative_boost": factor})
        }
    return function_score(draw, inner)


def _bool(draw: Draw, inner: Any) -> Json:
    clauses: Json = {}
    for kind in ("must", "should", "filter", "must_not"):
        if draw.chance(0.45):
            clauses[kind] = draw.several(inner, 3) if draw.chance(0.9) else inner()
    if draw.chance(0.3):
        clauses["minimum_should_match"] = draw.choice(MINIMUMS)
    if draw.chance(0.05) and "should" in clauses:
        clauses["filter"] = clauses["should"]
    return {"bool": boosted(draw, clauses)}


def function_score(draw: Draw, inner: Any) -> Json:
    """Return a query whose scores are combined with functions."""
    parameters: Json = {"query": inner()} if draw.chance(0.8) else {}
    if draw.chance(0.8):
        parameters["functions"] = draw.several(lambda: _function(draw, inner), 3)
    else:
        function = _function(draw, inner)
        parameters |= {name: value for name, value in function.items() if name != "filter"}
    options = {
        "score_mode": lambda: draw.choice(["multiply", "sum", "avg", "first", "max", "min"]),
        "boost_mode": lambda: draw.choice(["multiply", "replace", "sum", "avg", "max", "min"]),
        "max_boost": lambda: draw.choice([0, 0.7, 3, "Infinity"]),
        "min_score": lambda: draw.choice([0, 0.5, 2]),
    }
    return {"function_score": boosted(draw, {**parameters, **draw.some_of(options, 0.4)})}


def _function(draw: Draw, inner: Any) -> Json:
    function: Json = {}
    kind = draw.number(0, 2)
    if kind != 1:
        value: Json = {"field": draw.choice(["weight", "weight", "year", "ratio", "long", "when", "nowhere"])}
        options = {
            "missing": lambda: draw.choice([0, 0.3, 1, 7]),
            "factor": lambda: draw.choice(FACTORS),
            "modifier": lambda: draw.choice(
                ["none", "log1p", "log2p", "ln1p", "ln2p", "square", "sqrt", "SQRT"]
            ),
        }
        function["field_value_factor"] = value | draw.some_of(options, 0.7)
    if draw.chance(0.6):
        function = _decay(draw)
    if kind:
        function["weight"] = draw.choice(FACTORS)
    if draw.chance(0.5):
        function["filter"] = inner()
    return function


def _decay(draw: Draw) -> Json:
    """Return a decay function on a number, a date or a point, mostly a valid one."""
    field = draw.choice([*NUMBER_FIELDS, *DATE_FIELDS, *POINT_FIELDS, "nowhere"])
    origins, lengths = [*INTEGERS, *FRACTIONS[:5], "5"], [*[1, 2.5, "5", 0.3, 1000] * 3, 0]
    if field in DATE_FIELDS:
        origins, lengths = [date(draw)], [*["10d", "36h", "90m", "5000d", "100ms"] * 3, "1 D", "5M", 10]
    elif field in POINT_FIELDS:
        origins, lengths = [point(draw)], [*["10km", "1000mi", 1e6, "5"] * 3, "km"]
    options = {
        "offset": lambda: draw.choice([*lengths, 0, "-1"]),
        "decay": lambda: draw.choice([*[0.5, 0.33, 0.9, "0.1", draw.fraction(0, 1)] * 3, 0, 1]),
    }
    decayed = {"origin": draw.choice(origins), "scale": draw.choice(lengths), **draw.some_of(options, 0.3)}
    mode = {"multi_value_mode": lambda: draw.choice(["min", "max", "avg", "sum", "MEDIAN"])}
    return {draw.choice(["gauss", "exp", "linear"]): {field: decayed, **draw.some_of(mode, 0.5)}}


def with_odd_value(draw: Draw, value: Json) -> Json:
    """Return a copy with one value replaced by an odd one, deleted or added."""
    changed = copy.deepcopy(value)
    positions = [position for position in _positions(changed) if position[1] != "sort"]
    if not positions:
        return changed
    parent, key = draw.choice(positions)
    kind = draw.number(0, 3)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(["boost", "query", "field", "fields", "value", "analyzer", "unknown"])] = (
            draw.choice(ODD)
        )
    else:
        parent[key] = draw.choice(ODD)
    return changed


def queries_in(value: Any) -> Iterator[Json]:
    """Yield the queries inside a value."""
    for parent, key in _positions(value):
        if isinstance(parent, dict) and isinstance(key, str) and key in KINDS:
            yield {key: parent[key]}


def _positions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parent and key of each value inside a JSON value."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    for key in keys:
        yield value, key
        yield from _positions(value[key])
