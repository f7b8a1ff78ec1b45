"""What Elasticsearch 8 is told besides, so that it makes the same terms of a text as 9.

Lucene 10, which 9.x is built on, carries a newer English stemmer of Snowball: of a stem of three letters that begins
with a, e or o, it keeps both consonants at the end. "adding" is `add` there, and `ad` for Lucene 9. Here such words
lose their endings before the older stemmer sees them, which then leaves the stem as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from searchapp.engines.elasticsearch.servers import Server

ADDED = "searchapp_short_stems"
"""The name of the filter that an index on a server of 8.x has more than its mapping says."""

SHORT_STEMS: Mapping[str, str] = {
    "type": "pattern_replace",
    # The stem, what the stemmer takes off it (-ed, -ing), and the plural and apostrophes that it takes off before that.
    "pattern": "^'?([aeo](?:bb|dd|ff|gg|mm|nn|pp|rr|tt))(?:ed|ing)(?:ly)?s?(?:'s'|'s|')?$",
    "replacement": "$1",
}


def analysis_for(server: Server, analysis: Mapping[str, Any]) -> dict[str, Any]:
    """The `analysis` of an index's settings for a server.

    One that may be of version 8 is told what one of version 8 is: on 9 that changes nothing.
    """
    adapted = copy.deepcopy(dict(analysis))
    if not server.may_be_older:
        return adapted
    filters: Mapping[str, Any] = adapted.get("filter") or {}
    stemming = {name for name, described in filters.items() if stems_english(described)}
    if "snowball" not in filters:
        stemming.add("snowball")  # the built-in one
    changed = False
    for kind in ("analyzer", "normalizer"):
        for described in (adapted.get(kind) or {}).values():
            names = described.get("filter") if isinstance(described, dict) else None
            listed = [names] if isinstance(names, str) else names
            if isinstance(listed, list) and stemming.intersection(
                one for one in listed if isinstance(one, str)
            ):
                described["filter"] = [
                    one for name in listed for one in ([ADDED] if name in stemming else []) + [name]
                ]
                changed = True
    if changed:
        adapted["filter"] = {**filters, ADDED: dict(SHORT_STEMS)}
    return adapted


def stems_english(described: object) -> bool:
    """Whether this is a token filter that is Snowball's English stemmer."""
    if not isinstance(described, Mapping):
        return False
    language = str(described.get("language", described.get("name", ""))).lower()
    if described.get("type") == "snowball":
        return language in ("", "english")
    return described.get("type") == "stemmer" and language == "porter2"


def without_added(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What a server says that each filter makes of a text, without the filter that only this module knows."""
    return [step for step in steps if step["name"] != ADDED]
