"""Queries on points: `geo_distance` and `geo_bounding_box`.

Sources: `GeoDistanceQueryBuilder` and `GeoBoundingBoxQueryBuilder` of Elasticsearch, and of Lucene `LatLonPoint`,
`LatLonDocValuesField` and their queries. Elasticsearch encodes the points of queries like those of documents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import geography, parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.geography import Int64s, Point
from searchapp.lucene.index.mapping import GEO_POINT, Field, Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import Exists, MatchAll, MatchNone
from searchapp.lucene.queries.query import Leaf, Parser, Query, apply_boost_parameter, required

_LONGITUDES = 0xFFFFFFFF  # the bits of the longitude in an encoded point

_VALIDATION = ("strict", "coerce", "ignore_malformed")


def _degrees(number: float) -> str:
    return printed(number, np.float64)


@dataclass(frozen=True, slots=True)
class GeoDistance(Leaf):
    """Documents with a point within a radius, with the score 1."""

    field: str
    center: Point
    radius: float  # in metres

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        greatest = geography.key_of_radius(self.radius)

        def accepts(points: Int64s) -> Mask:
            return np.asarray(geography.sort_keys(*geography.decoded(points), self.center) <= greatest)

        band = math.degrees(self.radius / geography.EARTH_RADIUS) + 1e-5
        low, high = (
            geography.encoded_latitude(max(-90.0, min(90.0, self.center.lat + sign * band)))
            for sign in (-1, 1)
        )
        return reader.fields[self.field].documents_between(low << 32, high << 32 | _LONGITUDES, accepts)

    def notation(self, schema: Schema) -> str:
        by_index = f"{self.field}:{','.join(map(_degrees, self.center))} +/- {_degrees(self.radius)} meters"
        if not schema.fields[self.field].has_doc_values:
            return by_index
        return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={self.constant_notation(schema)})"

    def constant_notation(self, schema: Schema) -> str:
        if not schema.fields[self.field].has_doc_values:
            return self.notation(schema)
        center = ",".join(map(_degrees, self.center))
        return f"{self.field}:INTERSECTS:geometries([Circle([{center}] radius = {_degrees(self.radius)} meters)])"


@dataclass(frozen=True, slots=True)
class GeoBox(Leaf):
    """Documents with a point in a box, with the score 1; a box from east to west crosses the date line."""

    field: str
    low: Point  # the south-west corner
    high: Point
    covers_field: bool = False  # whether the box includes all points of the field

    @property
    def _latitudes(self) -> tuple[int, int]:
        return geography.encoded_latitude(self.low.lat), geography.encoded_latitude(self.high.lat)

    @property
    def _longitudes(self) -> tuple[int, int]:
        return geography.encoded_longitude(self.low.lon), geography.encoded_longitude(self.high.lon)

    @property
    def _crosses_date_line(self) -> bool:
        return self.high.lon < self.low.lon

    def resolved(self, reader: IndexReader) -> Leaf:
        """Follow `PointRangeQuery.rewrite` and `IndexOrDocValuesQuery.rewrite`."""
        values = reader.fields[self.field].index_values
        if not len(values):
            return MatchNone()
        (south, north), (west, east) = self._latitudes, self._longitudes
        lats, lons = values >> 32, values.astype(np.int32)
        if self._crosses_date_line:
            is_empty = south > lats.max() or north < lats.min() or (west > lons.max() and east < lons.min())
            return MatchNone() if is_empty else self
        covers_field = (
            south <= lats.min() and lats.max() <= north and west <= lons.min() and lons.max() <= east
        )
        if covers_field and reader.in_all(self.field):
            return MatchAll()
        is_empty = south > lats.max() or north < lats.min() or west > lons.max() or east < lons.min()
        return MatchNone() if is_empty else replace(self, covers_field=bool(covers_field))

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        (south, north), (west, east) = self._latitudes, self._longitudes

        def accepts(points: Int64s) -> Mask:
            lons = points.astype(np.int32)
            if self._crosses_date_line:
                return np.asarray((lons >= west) | (lons <= east))
            return np.asarray((lons >= west) & (lons <= east))

        return reader.fields[self.field].documents_between(south << 32, north << 32 | _LONGITUDES, accepts)

    def notation(self, schema: Schema) -> str:
        if self._crosses_date_line:
            raise unsupported("the explanation of a box across the date line inside another query")
        if not schema.fields[self.field].has_doc_values:
            return self.constant_notation(schema)
        by_index = Exists(self.field).notation(schema) if self.covers_field else self._by_index()
        return f"IndexOrDocValuesQuery(indexQuery={by_index}, dvQuery={self.constant_notation(schema)})"

    def _by_index(self) -> str:
        sides = zip(self.low, self.high, strict=True)
        return f"{self.field}:{','.join(f'[{_degrees(low)} TO {_degrees(high)}]' for low, high in sides)}"

    def constant_notation(self, schema: Schema) -> str:
        if not schema.fields[self.field].has_doc_values:
            if self._crosses_date_line:
                raise unsupported("the explanation of a box across the date line")
            return self._by_index()
        (south, west), (north, east) = (map(_degrees, corner) for corner in (self.low, self.high))
        return f"{self.field}:box(minLat={south}, maxLat={north}, minLon={west}, maxLon={east})"


def _rounded(point: Point) -> Point:
    """Return a point as it is encoded."""
    (lat,), (lon,) = geography.decoded(np.array([geography.encoded(point)]))
    return Point(float(lat), float(lon))


def _options(
    parser: Parser, content: Any, name: str, known: tuple[str, ...]
) -> tuple[str, Any, Mapping[str, Any]]:
    """Return the field, its value and the other parameters of a query."""
    content = parameters.mapping(content, f"the query `{name}`")
    known = (*known, "validation_method", "ignore_unmapped", "boost")
    fields = [key for key in content if key not in known]
    if len(fields) != 1:
        raise (unsupported if fields else invalid)(
            f"{len(fields)} fields or unknown parameters in the query `{name}`"
        )
    options = parser.options({key: content[key] for key in content if key in known}, name, known)
    parameters.without_null(options, tuple(options), f"the query `{name}`")
    return fields[0], content[fields[0]], options


def _field(parser: Parser, name: str, query: str, options: Mapping[str, Any]) -> Field | None:
    """Return a field of points; None for an unknown one, if the query ignores it."""
    field = parser.field(name, GEO_POINT)
    if field is None and not parameters.flag(options.get("ignore_unmapped", False), "`ignore_unmapped`"):
        raise invalid(f"the query `{query}` on {name}, which is not in the mapping")
    if field is not None and field.type != GEO_POINT:
        raise invalid(f"the query `{query}` on {name}, which is {field.type}")
    return field


def _validation(options: Mapping[str, Any]) -> str:
    return parameters.choice(options.get("validation_method", "strict"), _VALIDATION, "`validation_method`")


def read_geo_distance(parser: Parser, content: Any) -> Query:
    """Read `geo_distance`."""
    known = ("distance", "unit", "distance_type")
    if isinstance(content, Mapping):  # whose parameters without a value have no effect
        content = {key: value for key, value in content.items() if value is not None}
    name, value, options = _options(parser, content, "geo_distance", known)
    if "distance_type" in options:  # without an effect
        parameters.choice(options["distance_type"], ("arc", "plane"), "`distance_type`")
    unit = parameters.raw_text(options.get("unit", "m"), "`unit`")
    if unit not in geography.UNITS:
        raise invalid(f"unknown unit of distance {unit!r}")
    written = required(options, "distance", "geo_distance")
    if not isinstance(written, str) and not parameters.is_number(written):
        raise invalid(f"`distance` must be a number or text, not {written!r}")
    try:
        radius = geography.metres(parameters.raw_text(written, "`distance`"), geography.UNITS[unit])
        center = _center(value)
    except ValueError as error:
        raise invalid(f"the query `geo_distance` on {name}: {error}") from error
    if not 0 < radius < math.inf:
        raise invalid(f"`distance` is {written!r}, but must be greater than 0")
    is_strict = _validation(options) == "strict"
    field = _field(parser, name, "geo_distance", options)
    if field is None:
        return MatchNone(late=True)
    if not all(map(math.isfinite, center)) or (is_strict and not center.is_valid):
        raise invalid(f"the query `geo_distance` on {name} has a point that is not on the earth")
    query = GeoDistance(field.name, _rounded(center.normalized()), radius)
    return apply_boost_parameter(query, options, "geo_distance")


def _center(value: Any) -> Point:
    if isinstance(value, Mapping):
        if value.keys() == {"geohash"} and isinstance(value["geohash"], str):
            return geography.point_of_geohash(value["geohash"])
        if value.keys() != {"lat", "lon"}:
            raise ValueError("its point has other keys than `lat` and `lon`, or `geohash`")
    elif not isinstance(value, list | tuple):
        value = parameters.raw_text(value, "a point")
    return geography.read_point(value, ignores_height=False)


# Corners of a box: whether each is in the north and in the east.
_CORNERS = {
    "top_left": (True, False),
    "top_right": (True, True),
    "bottom_left": (False, False),
    "bottom_right": (False, True),
}
_BOX = re.compile(r"\s*BBOX\s*\(([^,()]+),([^,()]+),([^,()]+),([^,()]+)\)", re.IGNORECASE)


def read_geo_bounding_box(parser: Parser, content: Any) -> Query:
    """Read `geo_bounding_box`."""
    name, value, options = _options(parser, content, "geo_bounding_box", ())
    described = parameters.mapping(value, f"the box of {name}")
    try:
        sides = _sides(described)
    except ValueError as error:
        raise invalid(f"the box of {name}: {error}") from error
    top, left, bottom, right = (sides.get(side, math.nan) for side in ("top", "left", "bottom", "right"))
    if not all(map(math.isfinite, (top, left, bottom, right))) or top < bottom:
        raise invalid(f"the box of {name} lacks a side, or its top is below its bottom")
    low, high = Point(bottom, left), Point(top, right)
    validation = _validation(options)
    field = _field(parser, name, "geo_bounding_box", options)
    if field is None:
        return MatchNone(late=True)
    if validation == "coerce":
        is_whole_turn = right > left and math.fmod(right - left, 360) == 0
        low, high = low.normalized(), high.normalized()
        if is_whole_turn:
            low, high = Point(low.lat, -180.0), Point(high.lat, 180.0)
    if not (low.is_valid and high.is_valid):
        raise invalid(f"the box of {name} has a side that is not on the earth")
    query = GeoBox(field.name, _rounded(low), _rounded(high))
    return apply_boost_parameter(query, options, "geo_bounding_box")


def _sides(described: Mapping[str, Any]) -> dict[str, float]:
    """Return the sides of a box in degrees, by their names; the last definition of each counts."""
    if "wkt" in described:
        match = _BOX.match(described["wkt"]) if isinstance(described["wkt"], str) else None
        if match is None or len(described) > 1:
            raise ValueError("`wkt` is no BBOX, or beside other sides")
        left, right, top, bottom = map(parameters.double, match.groups())
        return {"top": top, "left": left, "bottom": bottom, "right": right}
    sides = {}
    for name, value in described.items():
        if name in ("top", "left", "bottom", "right"):
            sides[name] = geography.coordinate(value)
        elif name in _CORNERS:
            is_north, is_east = _CORNERS[name]

            def corner(low: Point, high: Point, north: bool = is_north, east: bool = is_east) -> Point:
                return Point((high if north else low).lat, (high if east else low).lon)

            point = geography.read_point(value, ignores_height=False, corner=corner)
            sides["top" if is_north else "bottom"] = point.lat
            sides["right" if is_east else "left"] = point.lon
        else:
            raise ValueError(f"it has the unknown side `{name}`")
    return sides
