"""The queries of Elasticsearch's DSL: what reads each, and where a compound one holds others.

Modules are imported when the first query is read: the normal form, in which both engines search, needs names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """A query of the DSL.

    `module` of this package has the function `read_NAME`. `scored` names the parameters that hold queries whose scores
    count, `unscored` those that hold others.
    """

    module: str
    scored: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = {
    "bool": Kind("boolean", ("must", "should"), ("filter", "must_not")),
    "boosting": Kind("boosting", ("positive",), ("negative",)),
    "constant_score": Kind("match_all", (), ("filter",)),
    "dis_max": Kind("dis_max", ("queries",)),
    "exists": Kind("boolean"),
    "function_score": Kind("function_score", ("query",)),
    "ids": Kind("match_all"),
    "match": Kind("fulltext"),
    "match_all": Kind("match_all"),
    "match_none": Kind("match_all"),
    "match_phrase": Kind("fulltext"),
    "multi_match": Kind("fulltext"),
    "prefix": Kind("term"),
    "range": Kind("number_range"),
    "term": Kind("term"),
    "terms": Kind("term"),
}


@cache
def readers() -> Mapping[str, Callable[[Any, Any], Any]]:
    """What reads each query, by its name: a `Reader` of `parser`."""
    return {
        name: getattr(import_module(f"{__package__}.{kind.module}"), f"read_{name}")
        for name, kind in KINDS.items()
    }
