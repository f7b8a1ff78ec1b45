"""What is asked of the hits of a search, and what an answer says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchapp.engines.base import BEST_FIRST, BEYOND_FLOAT32, Body, Explanation, Found
from searchapp.errors import EngineRefused, QueryRefused
from searchapp.model import Hit, Hits, float32

ANSWER_FIELDS = [
    "responses.status",
    "responses.error",
    "responses.timed_out",
    "responses._shards.total",
    "responses._shards.successful",
    "responses._shards.failed",
    "responses._shards.failures",
    "responses.hits.hits._id",
    "responses.hits.hits._score",
    "responses.hits.hits.sort",
]
"""What is read of the answers to a batch of searches."""

_LEAVES_AS_IT_IS = frozenset({"type", "index", "store", "similarity", "norms", "copy_to", "fields", "meta"})


def sorts_by_id(properties: Mapping[str, Any]) -> bool:
    """Whether hits are sorted by ids as they are, by the `properties` of a mapping.

    The field `id` may fold its values or leave long ones out; options that are not known here may do so too.
    """
    field = properties.get("id", {})
    return bool(field.get("type") == "keyword" and field.keys() <= _LEAVES_AS_IT_IS)


def ids_and_scores(body: Body) -> Body:
    """The body of a search of whose hits nothing but ids and scores is wanted; the index must sort by id.

    The ids come with the values that the hits are sorted by. The stored ones lie in compressed blocks of documents, of
    which Elasticsearch decompresses one for each hit: half of what a ranking by one field to depth 500 takes.
    """
    if body.get("sort") != BEST_FIRST:
        return body
    return {**body, "_source": False, "stored_fields": "_none_"}


def hits_of(response: Mapping[str, Any], place: int) -> Hits:
    """The hits of the query at `place`.

    Raises:
        EngineRefused: equal scores can't be sorted by id.
    """
    hits = response.get("hits", {}).get("hits", ())  # filtered away when there are none
    return Hits([_id(hit) for hit in hits], [_score(hit, place) for hit in hits])


def _id(hit: Mapping[str, Any]) -> str:
    id_ = hit["_id"] if "_id" in hit else hit["sort"][-1]
    if not isinstance(id_, str):
        raise EngineRefused(
            "a document's id is left out of what hits are sorted by: index again by a mapping without the setting "
            "`index.mapping.ignore_above`"
        )
    return id_


def _score(hit: Mapping[str, Any], place: int) -> float:
    """The score of a hit of the query at `place`; one that is infinite or no number comes as text or null."""
    score = hit.get("_score")
    if not isinstance(score, int | float):
        raise QueryRefused(BEYOND_FLOAT32, place)
    return float32(score)


def found_of(hit: Mapping[str, Any]) -> Found:
    """One hit of a search that asked for more than ids and scores."""
    explanation = hit.get("_explanation")
    return Found(
        hit=Hit(hit["_id"], _score(hit, 0)),
        source=hit.get("_source", {}),
        highlights=hit.get("highlight", {}),
        explanation=Explanation.from_json(explanation) if explanation else None,
    )
