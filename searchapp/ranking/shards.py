"""Which queries rank the same on several shards of Elasticsearch as on one.

All that both engines support does: the engine sends it in a form that keeps the statistics whole. Of what Elasticsearch
alone supports some chooses words by what each shard holds, such as `more_like_this` and whatever is fuzzy; and of the
rest nobody has shown that it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.ranking.recipe import Recipe

_INSIDE: Mapping[str, tuple[str, ...]] = {
    "bool": ("must", "should", "filter", "must_not"),
    "dis_max": ("queries",),
    "constant_score": ("filter",),
    "function_score": ("query",),
    "boosting": ("positive", "negative"),
}
"""The queries that hold others, and where."""

_ALONE = frozenset(
    {
        "match",
        "multi_match",
        "match_phrase",
        "term",
        "terms",
        "ids",
        "exists",
        "prefix",
        "range",
        "match_all",
        "match_none",
    }
)
_OF_WORDS = (None, "best_fields", "most_fields")
"""The types of `multi_match` that score each field by its own words."""

_FUNCTIONS = frozenset({"filter", "weight", "field_value_factor"})


def warnings(recipe: Recipe, shards: int) -> Iterator[str]:
    """A sentence for each template of a recipe that may rank differently on this many shards than on one."""
    if shards == 1:
        return
    templates = {query.template.name: query.template for one in recipe.signals for query in one.queries}
    for name, template in templates.items():
        why = outside(template.body.get("query", {}))
        if why is not None:
            yield (
                f"{name} may rank differently on these {shards} shards than on one, for {why}: see docs/engines.md, "
                "or index with --shards 1"
            )


def outside(query: Any) -> str | None:
    """What in a query may have other statistics on several shards; None if nothing has."""
    return next(_outside(query), None)


def _outside(query: Any) -> Iterator[str]:
    for kind, content in _queries(query):
        if kind in _INSIDE:
            for name in _INSIDE[kind]:
                yield from _outside(content.get(name))
            if kind == "function_score":
                yield from _outside_functions(content)
        elif kind not in _ALONE:
            yield f"its `{kind}`"
        elif kind == "multi_match":
            if content.get("type") not in _OF_WORDS:
                yield f"its `multi_match` of the type {content['type']}"
            if "fuzziness" in content:
                yield "its fuzzy `multi_match`"
        elif kind == "match" and any(
            isinstance(asked, Mapping) and "fuzziness" in asked for asked in content.values()
        ):
            yield "its fuzzy `match`"


def _outside_functions(content: Mapping[str, Any]) -> Iterator[str]:
    functions = content.get("functions", [content])
    for function in functions if isinstance(functions, list) else []:
        if isinstance(function, Mapping):
            yield from _outside(function.get("filter"))
            for name, given in function.items():
                if name not in _FUNCTIONS and isinstance(given, Mapping) and name != "query":
                    yield f"its `{name}` in a `function_score`"


def _queries(query: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The kind and content of a query, or of each of a list."""
    for one in query if isinstance(query, list) else [query]:
        if isinstance(one, Mapping):
            yield from ((kind, content) for kind, content in one.items() if isinstance(content, Mapping))
