"""Points on the earth: their encoding, forms and distances.

Sources: org.apache.lucene.geo.GeoEncodingUtils, org.apache.lucene.util.SloppyMath, GeoUtils, GeoPoint and Geohash of
Elasticsearch, and the JDK's `StrictMath` (fdlibm), with which Lucene fills its tables of sines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters

Doubles = NDArray[np.float64]
Int64s = NDArray[np.int64]

EARTH_RADIUS = 6_371_008.7714  # mean, in metres
_RADIANS = 0.017453292519943295  # of a degree, Java's `Math.toRadians`
_LATITUDE_STEP, _LONGITUDE_STEP = 180 / 2**32, 360 / 2**32  # degrees


class Point(NamedTuple):
    """A point in degrees."""

    lat: float
    lon: float

    def __str__(self) -> str:
        return ", ".join(parameters.printed(degrees, np.float64) for degrees in self)

    @property
    def is_valid(self) -> bool:
        return abs(self.lat) <= 90 and abs(self.lon) <= 180

    def normalized(self) -> Point:
        """Wrap a point around the earth (`GeoUtils.normalizePoint`)."""
        lat, lon = self
        if abs(lat) > 90:
            lat = _centered(lat, 360)
            if abs(lat) > 90:
                lat = math.copysign(180, lat) - lat
                lon += 180
            lon = _centered(lon, 360)
        elif abs(lon) > 180:
            lon = _centered(lon, 360)
        return Point(lat, lon)


def _centered(dividend: float, divisor: float) -> float:
    remainder = math.fmod(dividend, divisor)
    remainder += divisor if remainder <= 0 else 0
    return remainder - divisor if remainder > divisor / 2 else remainder


# Encoding


def encoded_latitude(degrees: float) -> int:
    """Return a latitude as an integer of 32 bits, rounded down."""
    return math.floor(min(degrees, math.nextafter(90, 0)) / _LATITUDE_STEP)


def encoded_longitude(degrees: float) -> int:
    """Return a longitude as an integer of 32 bits, rounded down."""
    return math.floor(min(degrees, math.nextafter(180, 0)) / _LONGITUDE_STEP)


def encoded(point: Point) -> int:
    """Return a point as an integer of 64 bits, ordered by latitude first."""
    return encoded_latitude(point.lat) << 32 | encoded_longitude(point.lon) & 0xFFFFFFFF


def decoded(points: Int64s) -> tuple[Doubles, Doubles]:
    """Return the latitudes and longitudes of encoded points in degrees."""
    latitudes, longitudes = points >> 32, points.astype(np.int32)
    return np.asarray(latitudes * _LATITUDE_STEP), np.asarray(longitudes * _LONGITUDE_STEP)


# Forms

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WKT = re.compile(
    rf"\s*POINT\s*Z?\s*(?:EMPTY\b|\(\s*({_NUMBER})\s+({_NUMBER})(?:\s+({_NUMBER}))?\s*\))", re.IGNORECASE
)
_BASE_32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_MOST_CHARACTERS = 12  # of a geohash that count

Corner = Callable[
    [Point, Point], Point
]  # returns a corner of the cell of a geohash from its lowest and highest point


def read_point(value: Any, *, ignores_height: bool = True, corner: Corner | None = None) -> Point:
    """Read a point in any of Elasticsearch's forms (`GenericPointParser`).

    Args:
        value: an object, a list of longitude and latitude, or a text of coordinates, of a geohash or as WKT
        ignores_height: whether a third coordinate is accepted
        corner: of the cell of a geohash; by default the lowest

    Raises:
        ValueError: it is no point.
    """
    if isinstance(value, str):
        return _point_of_text(value, ignores_height, corner)
    if isinstance(value, Mapping):
        return _point_of_object(value, ignores_height)
    if not isinstance(value, list | tuple) or not all(map(parameters.is_number, value)):
        raise ValueError("it is no point")
    return _point_of_numbers(list(map(coordinate, value)), ignores_height)


def _point_of_numbers(numbers: list[float], ignores_height: bool) -> Point:
    if not 2 <= len(numbers) <= 2 + ignores_height:
        raise ValueError("it has not two coordinates, or a height without `ignore_z_value`")
    return Point(numbers[1], numbers[0])


def _point_of_object(value: Mapping[str, Any], ignores_height: bool) -> Point:
    if value.keys() - {"lat", "lon", "z", "type", "coordinates"} or ("coordinates" in value) == (
        "lat" in value
    ):
        raise ValueError("it has not the keys `lat` and `lon`, or `type` and `coordinates`")
    if not isinstance(value.get("type", ""), str):
        raise ValueError("its type is no text")
    height = [coordinate(value["z"])] if "z" in value else []
    if "lat" in value:
        return _point_of_numbers(
            [coordinate(value.get("lon")), coordinate(value["lat"]), *height], ignores_height
        )
    if value.get("type", "").lower() != "point" or not isinstance(value["coordinates"], list | tuple):
        raise ValueError("its type is not Point, or its coordinates are no list")
    return _point_of_numbers([*map(coordinate, value["coordinates"]), *height], ignores_height)


def coordinate(value: Any) -> float:
    """Read a coordinate, a number or text.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str) or parameters.is_number(value):
        return parameters.double(value) if isinstance(value, str) else parameters.of_int(value)
    raise ValueError("a coordinate is no number")


def _point_of_text(text: str, ignores_height: bool, corner: Corner | None) -> Point:
    if "point" in text.lower():
        match = _WKT.match(text)
        if not match:
            raise ValueError("it is no point in WKT")
        numbers = [float(part) for part in match.groups() if part is not None]
        return _point_of_numbers(numbers or [0.0, 0.0], ignores_height)
    if "," not in text:
        return point_of_geohash(text, corner)
    lat, lon, *height = map(parameters.double, text.rstrip(",").split(","))
    return _point_of_numbers([lon, lat, *height], ignores_height)


def point_of_geohash(geohash: str, corner: Corner | None = None) -> Point:
    """Return the lowest point of the cell of a geohash, or another one.

    Raises:
        ValueError: it is empty or has another character than those of geohashes.
    """
    if not geohash:
        raise ValueError("a geohash is empty")
    digits = geohash[:_MOST_CHARACTERS]
    bits = "".join(f"{_BASE_32.index(character):05b}" for character in digits)
    sizes = (180.0, 360.0)
    columns = bits[1::2], bits[::2]
    low, high = (
        Point(
            *(
                (int(column or "0", 2) + step) / 2 ** len(column) * size - size / 2
                for column, size in zip(columns, sizes, strict=True)
            )
        )
        for step in (0, 1)
    )
    return low if corner is None else corner(low, high)


# Distances

# Metres of a unit, by its names (`DistanceUnit`).
UNITS = {
    name: metres
    for names, metres in {
        ("in", "inch"): 0.0254,
        ("yd", "yards"): 0.9144,
        ("ft", "feet"): 0.3048,
        ("km", "kilometers"): 1000.0,
        ("nmi", "NM", "nauticalmiles"): 1852.0,
        ("mm", "millimeters"): 0.001,
        ("cm", "centimeters"): 0.01,
        ("mi", "miles"): 1609.344,
        ("m", "meters"): 1.0,
    }.items()
    for name in names
}


def metres(text: str, unit: float = 1.0) -> float:
    """Return a distance such as `10km` in metres; without a unit it is in a `unit` of that many metres.

    Raises:
        ValueError: it is no number with a unit.
    """
    for name, length in UNITS.items():
        if text.endswith(name):
            return parameters.double(text[: -len(name)].strip()) * length
    return parameters.double(text) * unit


_HALF_PI_HIGH, _HALF_PI_LOW = float.fromhex("0x1.921fb544p0"), float.fromhex("0x1.0b4611a626331p-34")
_CELLS = 1 << 11  # of the table of sines
_STEP_HIGH, _STEP_LOW = 4 * _HALF_PI_HIGH / _CELLS, 4 * _HALF_PI_LOW / _CELLS
_ARC_CELLS = 1 << 13  # of the table of arc sines


def _polynomial(x: Any, *coefficients: Any) -> Any:
    """Return c0 + x * (c1 + x * (c2 + ...))."""
    result: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = coefficient + x * result
    return result


# fmt: off
_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
    -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07,
    2.08757232129817482790e-09, -1.13596475577881948265e-11,
)
_ASIN_P = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05,
)
_ASIN_Q = (1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
           7.70381505559019352791e-02)
# fmt: on
_PIO2_HIGH, _PIO2_LOW = 1.57079632679489655800e00, 6.12323399573676603587e-17


def _without_low_word(numbers: Doubles) -> Doubles:
    return np.asarray((numbers.view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64))


def _sine_and_cosine(angles: Doubles) -> tuple[Doubles, Doubles]:
    """Return fdlibm's sines and cosines of angles from 0 to 2π, which are not next to other multiples of π/2."""
    quarters = np.where(angles <= math.pi / 4, 0.0, np.floor(angles * 6.36619772367581382433e-01 + 0.5))
    rest, low = angles - quarters * _HALF_PI_HIGH, quarters * _HALF_PI_LOW
    x = rest - low
    y = (rest - x) - low
    z = x * x
    v = z * x
    tail = _polynomial(z, *_SIN[1:])
    sines = np.where(y == 0, x + v * (_SIN[0] + z * tail), x - ((z * (0.5 * y - v * tail) - y) - v * _SIN[0]))
    r = z * _polynomial(z, *_COS)
    size = np.abs(x)
    q = np.where(size < 0.3, 0.0, np.where(size > 0.78125, 0.28125, _without_low_word(size / 4)))
    cosines = (1 - q) - ((0.5 * z - q) - (z * r - x * y))
    turned = quarters.astype(np.int64) % 4
    return (
        np.choose(turned, [sines, cosines, -sines, -cosines]),
        np.choose(turned, [cosines, -sines, -cosines, sines]),
    )


def _arc_sine(x: Doubles) -> Doubles:
    """Return fdlibm's arc sines of numbers from 0 to 0.975."""
    t = x * x
    small = x + x * (t * _polynomial(t, *_ASIN_P) / _polynomial(t, *_ASIN_Q))
    t = (1 - x) * 0.5
    ratio = t * _polynomial(t, *_ASIN_P) / _polynomial(t, *_ASIN_Q)
    root = np.sqrt(t)
    high = _without_low_word(root)
    c = (t - high * high) / (root + high)
    p = 2 * root * ratio - (_PIO2_LOW - 2 * c)
    return np.asarray(np.where(x < 0.5, small, math.pi / 4 - (p - (math.pi / 4 - 2 * high))))


@cache
def _sines() -> tuple[Doubles, Doubles]:
    numbers = np.arange(_CELLS + 1, dtype=np.float64)
    sines, cosines = _sine_and_cosine(numbers * _STEP_HIGH + numbers * _STEP_LOW)
    sines[[0, _CELLS // 2, _CELLS]] = cosines[[_CELLS // 4, 3 * _CELLS // 4]] = 0.0
    return sines, cosines


def _cosine(angles: Doubles) -> Doubles:
    """Return Lucene's cosines of angles within some turns."""
    sines, cosines = _sines()
    angles = np.abs(angles)
    cells = (angles * (1 / (_STEP_HIGH + _STEP_LOW)) + 0.5).astype(np.int64)
    delta = (angles - cells * _STEP_HIGH) - cells * _STEP_LOW
    cells &= _CELLS - 1
    sine, cosine = sines[cells], cosines[cells]
    return np.asarray(
        cosine
        + delta * (-sine + delta * (-cosine * (1 / 2) + delta * (sine * (1 / 6) + delta * cosine * (1 / 24))))
    )


@cache
def _arcs() -> tuple[float, tuple[Doubles, ...]]:
    """Return the width of a cell of the table, and the arc sines with four derivatives, divided by factorials."""
    ((greatest,), _) = _sine_and_cosine(np.array([73 * _RADIANS]))
    step = greatest / _ARC_CELLS
    x = np.arange(_ARC_CELLS + 1) * step
    inverse = 1.0 / (1 - x * x)
    first = np.sqrt(inverse)
    second, third, fourth = first * inverse, first * inverse * inverse, first * inverse * inverse * inverse
    return float(step), (
        _arc_sine(x),
        first,
        (x * second) * (1 / 2),
        ((1 + 2 * x * x) * third) * (1 / 6),
        ((5 + 2 * x * (2 + x * (5 - 2 * x))) * fourth) * (1 / 24),
    )


def _table_arc_sine(x: Doubles) -> Doubles:
    """Return Lucene's arc sines of numbers from 0 to 1."""
    step, tables = _arcs()
    cells = np.minimum(x * (1 / step) + 0.5, _ARC_CELLS).astype(np.int64)
    small = _polynomial(x - cells * step, *(table[cells] for table in tables))
    t = (1.0 - x) * 0.5
    root = np.sqrt(t)
    p, q = t * _polynomial(t, *_ASIN_P), _polynomial(t, *_ASIN_Q)
    z = root + root * (p / q)
    great = np.where(x < 1, _PIO2_HIGH - ((z + z) - _PIO2_LOW), math.pi / 2)
    return np.where(x <= step * _ARC_CELLS, small, great)


def sort_keys(lats: Doubles, lons: Doubles, origin: Point) -> Doubles:
    """Return numbers in the order of the distances of points from an origin (`SloppyMath.haversinSortKey`)."""
    lats, lat = lats * _RADIANS, np.array(origin.lat * _RADIANS)
    turns = _cosine((lons - origin.lon) * _RADIANS)
    keys = np.asarray((1 - _cosine(lats - lat)) + _cosine(lats) * _cosine(lat) * (1 - turns))
    return np.asarray((keys.view(np.int64) & ~np.int64(7)).view(np.float64))


def metres_of_keys(keys: Doubles) -> Doubles:
    """Return the distances in metres of `sort_keys`."""
    return EARTH_RADIUS * 2 * _table_arc_sine(np.minimum(1, np.sqrt(keys * 0.5)))


def distances(points: Int64s, origin: Point) -> Doubles:
    """Return the distances of encoded points from an origin in metres, on a sphere (`SloppyMath.haversinMeters`)."""
    return metres_of_keys(sort_keys(*decoded(points), origin))


@lru_cache(64)
def key_of_radius(radius: float) -> float:
    """Return the greatest sort key of the points within a radius (`GeoUtils.distanceQuerySortKey`)."""

    def metres_of(key: int) -> float:
        return float(metres_of_keys(np.array([key]).view(np.float64))[0])

    low, high = 0, int(np.array([np.finfo(np.float64).max]).view(np.int64)[0])
    if radius >= metres_of(high):
        return metres_of(high)
    while low <= high:
        middle = (low + high) // 2
        found = metres_of(middle)
        if found == radius:
            low = middle
            break
        if found > radius:
            high = middle - 1
        else:
            low = middle + 1
    return float(np.array([low]).view(np.float64)[0])
