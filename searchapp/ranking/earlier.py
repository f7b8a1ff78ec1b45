"""Recipes as they were written before they named their signals, brought into the form of now.

template = "bm25"                                          one signal `direct`
neighbours = { template, k, power, direct, scale }         `direct` with that weight, and `neighbours`, added
labelled = { template, k, power, rank_constant }           `direct` and `labelled`, fused by ranks
baseline = "tfidf"                                         the signal `tfidf`; the template is for searches
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchapp.errors import DataError
from searchapp.names import refused
from searchapp.ranking.tables import RecipeName

KEYS = frozenset({"neighbours", "labelled", "baseline"})
"""What only a recipe of the earlier form has."""

_NEIGHBOURS = ("template", "k", "power", "direct")
_LABELLED = ("template", "k", "power", "rank_constant")
_BASELINES = ("tfidf",)


def brought_up(place: RecipeName, described: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with `signals` and, for several, `fusion`; one that has signals is as it was.

    Raises:
        DataError: it mixes both forms, or a table is not what it should be.
    """
    if "signals" in described:
        mixed = sorted(KEYS & described.keys())
        if mixed:
            raise place.wrong(f"has signals and, of the earlier form, {mixed[0]}: keep one of them")
        return dict(described)
    both = sorted(key for key in KEYS if described.get(key))
    if len(both) > 1:
        raise place.wrong(f"has both {both[0]} and {both[1]}: list them as signals, with a fusion")
    now = {key: value for key, value in described.items() if key not in KEYS}
    direct: dict[str, Any] = {"signal": "direct", "template": described["template"]}
    signals = [direct]
    if "baseline" in described:
        if described["baseline"] not in _BASELINES:
            raise DataError(
                f"the recipe {place} has no baseline {refused(str(described['baseline']), _BASELINES)}"
            )
        signals = [{"signal": described["baseline"]}]
    if described.get("neighbours"):
        table = _complete(place, "neighbours", described, _NEIGHBOURS, "scale")
        direct["weight"] = table.pop("direct")
        now["fusion"] = {"by": "sum", "scale": table.pop("scale", "shares")}
        signals.append({"signal": "neighbours", **table})
    if described.get("labelled"):
        table = _complete(place, "labelled", described, _LABELLED)
        now["fusion"] = {"by": "ranks", "rank_constant": table.pop("rank_constant")}
        signals.append({"signal": "labelled", **table})
    return now | {"signals": signals}


def _complete(
    place: RecipeName, kind: str, described: Mapping[str, Any], keys: tuple[str, ...], *optional: str
) -> dict[str, Any]:
    table = described[kind]
    if table.keys() - {*optional} != {*keys}:
        raise DataError(
            f"the recipe {place}: `{kind}` must have {', '.join(keys)}: correct {place.book.file.name}"
        )
    return dict(table)
