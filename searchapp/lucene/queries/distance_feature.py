"""The query `distance_feature`: scores that fall with the distance of a date or a point from an origin.

org.apache.lucene.document.{LongDistanceFeatureQuery, LatLonPointDistanceFeatureQuery}
org.elasticsearch.index.query.DistanceFeatureQueryBuilder
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import geography, parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.geography import Point
from searchapp.lucene.index.doc_values import GREATEST_LONG
from searchapp.lucene.index.mapping import DATE, GEO_POINT, Schema
from searchapp.lucene.index.reader import Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import decay, number_range
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import Parser, Query, apply_boost_parameter, explain, required
from searchapp.lucene.queries.scores import Doubles, ScoreRows, Scores, restrict
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class DistanceFeature(Query):
    """Documents with a value; one at the distance `pivot` from the origin has half of the greatest score."""

    field: str
    origin: int | Point  # milliseconds since 1970, or a point
    pivot: float  # milliseconds or metres

    @property
    def clause_count(self) -> int:
        return 1

    def _distances(self, values: NDArray[Any]) -> Doubles:
        if isinstance(self.origin, Point):
            return geography.distances(values, self.origin)
        distances = np.maximum(values, self.origin) - np.minimum(values, self.origin)
        distances[distances < 0] = GREATEST_LONG  # after an overflow
        return np.asarray(distances, np.float64)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        mask = np.zeros(rows.count, bool)
        mask[rows.reader.fields[self.field].present] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        field = rows.reader.fields[self.field]
        distances = self._distances(field.doc_values()[1])
        least = decay.reduced(field, np.arange(rows.count), distances, "min", missing=np.inf)
        values = (float(boost) * (self.pivot / (self.pivot + least))).astype(np.float32)
        return restrict(Scores(values), self.matching(rows))

    def notation(self, schema: Schema) -> str:  # Lucene omits the name of the field
        if isinstance(self.origin, Point):
            lat, lon, pivot = (printed(number, np.float64) for number in (*self.origin, self.pivot))
            return f"LatLonPointDistanceFeatureQuery(field=,originLat={lat},originLon={lon},pivotDistance={pivot})"
        return f"LongDistanceFeatureQuery(field=,origin={self.origin},pivotDistance={int(self.pivot)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        if not self.matching(rows)[document]:
            return None
        documents, values = rows.reader.fields[self.field].doc_values()
        values = values[documents == document]
        distances = self._distances(values)
        if isinstance(self.origin, Point):
            nearest = int(distances.argmin())
            (lat,), (lon,) = geography.decoded(values[nearest : nearest + 1])
            formula = "abs(distance)"
            details = {
                "originLat": self.origin.lat,
                "originLon": self.origin.lon,
                "current lat": float(lat),
                "current lon": float(lon),
                "distance": float(distances[nearest]),
            }
        else:
            # The later one of two equally distant dates.
            nearest = len(values) - 1 - int(distances[::-1].argmin())
            formula = "abs(value - origin)"
            details = {"origin": self.origin, "current value": int(values[nearest])}
        description = (
            f"Distance score, computed as weight * pivotDistance / (pivotDistance + {formula}) from:"
        )
        pivot = self.pivot if isinstance(self.origin, Point) else int(self.pivot)
        parts = [explain(boost, "weight"), Explanation(pivot, "pivotDistance")]
        parts += [Explanation(value, name) for name, value in details.items()]
        return explain(self.scores(rows, boost).values[document], description, parts)


def read_distance_feature(parser: Parser, content: Any) -> Query:
    """Read `distance_feature`."""
    label = "the query `distance_feature`"
    options = parser.options(content, "distance_feature", ("field", "origin", "pivot"))
    parameters.without_null(options, tuple(options), label)
    name, origin, pivot = (required(options, key, "distance_feature") for key in ("field", "origin", "pivot"))
    if not isinstance(name, str) or not isinstance(pivot, str) or isinstance(origin, bool):
        raise invalid(f"`field` and `pivot` of {label} must be texts, and `origin` a date or a point")
    is_point = isinstance(origin, Mapping | list | tuple)
    field = parser.field(name, GEO_POINT)
    if field is not None and field.type not in (DATE, GEO_POINT):
        raise invalid(f"{label} on {name}, which is {field.type}, only on dates and points")
    if field is not None and not field.has_doc_values:
        raise unsupported(f"{label} on {name}, which has no doc values")
    place: int | Point = 0
    try:
        if is_point or (isinstance(origin, str) and field is not None and field.is_geometry):
            place = geography.read_point(origin, ignores_height=False)
        if field is None:
            return MatchNone(late=True)
        distance = geography.metres(pivot) if field.is_geometry else decay.milliseconds(pivot)
    except ValueError as error:
        raise invalid(f"{label} on {name}: {error}") from error
    if field.is_geometry != isinstance(place, Point) or (isinstance(place, Point) and not place.is_valid):
        raise invalid(f"`origin` of {label} on {name} is no point on the earth")
    if not isinstance(place, Point):
        written = int(origin) if isinstance(origin, float) else origin
        place = number_range.date_of(parser, field, written, round_up=True)
    if not 0 < distance < math.inf:
        raise invalid(f"`pivot` of {label} is {pivot!r}, but must be greater than 0")
    return apply_boost_parameter(DistanceFeature(field.name, place, distance), options, "distance_feature")
