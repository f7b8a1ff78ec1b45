"""Which queries rank the same on several shards of Elasticsearch as on one.

`dfs_query_then_fetch` collects the statistics of all shards before any of them ranks. But each shard simplifies the
query first, and asks for no statistics in what it drops:

- A clause on numbers that no document of a shard matches, or every one, lets the shard drop the query around it, if the
  clause must match, filters or must not match.
- A phrase none of whose words is on a shard asks for nothing there, not even how many documents have the field. That
  does no harm where another clause scores words of the same field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.ranking.recipe import Recipe

NUMBERS = frozenset({"long", "integer", "short", "byte", "double", "float"})

_REQUIRED = ("must", "filter", "must_not")
_ONE = (None, 0, 1, "0", "1")


def warnings(recipe: Recipe, mapping: Mapping[str, Any], shards: int) -> Iterator[str]:
    """A sentence for each template of a recipe that may rank differently on this many shards than on one."""
    if shards == 1:
        return
    templates = {query.template.name: query.template for one in recipe.signals for query in one.queries}
    for name, template in templates.items():
        why = outside(template.body.get("query", {}), mapping)
        if why is not None:
            yield (
                f"{name} may rank differently on these {shards} shards than on one, for {why}: see docs/engines.md, "
                "or index with --shards 1"
            )


def outside(query: Mapping[str, Any], mapping: Mapping[str, Any]) -> str | None:
    """What in a query has other statistics on several shards; None if nothing has."""
    numbers = set(_number_fields(mapping))
    for kind, field in _required(query, required=False):
        if kind == "range" or field in numbers:
            return f"its `{kind}` on {field}, which must match, filters or excludes"
    words: set[str] = set()
    phrases: list[str] = []
    for kind, field in _scoring(query):
        if kind == "match_phrase":
            phrases.append(field)
        else:
            words.add(field)
    alone = [field for field in phrases if field not in words]
    return f"its `match_phrase` on {alone[0]}, where no `match` scores too" if alone else None


def _number_fields(mapping: Mapping[str, Any]) -> Iterator[str]:
    for name, described in mapping.get("mappings", {}).get("properties", {}).items():
        if described.get("type") in NUMBERS:
            yield name
        for inner, also in described.get("fields", {}).items():
            if also.get("type") in NUMBERS:
                yield f"{name}.{inner}"


def _required(query: Any, *, required: bool) -> Iterator[tuple[str, str]]:
    """The kinds and fields of what must match, filters or must not match somewhere in a query."""
    for kind, content in _queries(query):
        match kind:
            case "bool":
                for name in _REQUIRED:
                    yield from _required(content.get(name), required=True)
                all_of = content.get("minimum_should_match") not in _ONE
                yield from _required(content.get("should"), required=required or all_of)
            case "dis_max":
                yield from _required(content.get("queries"), required=required)
            case "constant_score":
                yield from _required(content.get("filter"), required=required)
            case "function_score":
                yield from _required(content.get("query"), required=required)
            case "boosting":
                yield from _required(content.get("positive"), required=required)
            case _ if required:
                yield from ((kind, field) for field in _fields(kind, content))


def _scoring(query: Any) -> Iterator[tuple[str, str]]:
    """The kinds and fields of what scores words or phrases in a query."""
    for kind, content in _queries(query):
        match kind:
            case "bool":
                yield from _scoring(content.get("must"))
                yield from _scoring(content.get("should"))
            case "dis_max":
                yield from _scoring(content.get("queries"))
            case "function_score":
                yield from _scoring(content.get("query"))
            case "boosting":
                yield from _scoring(content.get("positive"))
            case "match" | "multi_match" | "match_phrase" | "term":
                yield from ((kind, field) for field in _fields(kind, content))


def _queries(query: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The kind and content of a query, or of each of a list."""
    for one in query if isinstance(query, list) else [query]:
        if isinstance(one, Mapping):
            yield from ((kind, content) for kind, content in one.items() if isinstance(content, Mapping))


def _fields(kind: str, content: Mapping[str, Any]) -> Iterator[str]:
    if kind == "multi_match":
        fields = content.get("fields", ())
        for field in [fields] if isinstance(fields, str) else fields:
            yield str(field).partition("^")[0]
    elif kind not in ("exists", "ids", "match_all", "match_none"):
        yield from (name for name in content if name != "boost")
