"""Decay functions of `function_score`: `gauss`, `exp` and `linear` of the distance of a value from an origin.

Computed as in `DecayFunctionBuilder`, `GaussDecayFunctionBuilder`, `ExponentialDecayFunctionBuilder`,
`LinearDecayFunctionBuilder` and `MultiValueMode` of Elasticsearch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import geography, parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.geography import Point
from searchapp.lucene.index.doc_values import one_of_each
from searchapp.lucene.index.mapping import BOOLEAN, DATE, GEO_POINT, SCALED, Field
from searchapp.lucene.index.reader import FieldReader, IndexReader
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import number_range
from searchapp.lucene.queries.query import Parser, explain
from searchapp.lucene.queries.scores import Doubles
from searchapp.lucene.records import Explanation

SHAPES = ("gauss", "exp", "linear")

MODES = ("min", "max", "avg", "sum", "median")  # of several values


@dataclass(frozen=True, slots=True)
class Decay:
    """A factor that falls from 1 with the distance of a document's value from an origin; 1 without a value."""

    field: str
    shape: str
    origin: float | Point
    scale: float  # as `_processed_scale` returns it
    offset: float  # distances up to this one count as 0
    mode: str

    def values(self, reader: IndexReader, documents: NDArray[np.intp]) -> Doubles:
        field = reader.fields[self.field]
        return self._decayed(reduced(field, documents, self._distances(field), self.mode, missing=0.0))

    def _distances(self, field: FieldReader) -> Doubles:
        """Return the distance of each value of a segment, beyond the offset."""
        _documents, values = field.doc_values()
        if isinstance(self.origin, Point):
            distances = geography.distances(values, self.origin)
        else:
            distances = np.abs(values.astype(np.float64) - self.origin)
        return np.maximum(0.0, distances - self.offset)

    def _decayed(self, distances: Doubles) -> Doubles:
        if self.shape == "linear":
            return np.maximum(0.0, (self.scale - distances) / self.scale)
        with np.errstate(over="ignore"):
            exponents = (
                0.5 * (distances * distances) / self.scale
                if self.shape == "gauss"
                else self.scale * distances
            )
        # NumPy's exponential differs more often from Java's, and by the processor.
        return np.fromiter(map(math.exp, exponents.tolist()), np.float64, len(exponents))

    def explanation(self, reader: IndexReader, document: NDArray[np.intp]) -> Explanation:
        (value,) = self.values(reader, document)
        scale, negative = (printed(number, np.float64) for number in (self.scale, -1 * self.scale))
        values = self._explained_values(reader.fields[self.field], int(document[0]))
        formula = {
            "gauss": f"exp(-0.5*pow({values},2.0)/{negative})",
            "exp": f"exp(- {values} * {negative})",
            "linear": f"max(0.0, (({scale} - {values})/{scale})",
        }[self.shape]
        return explain(value, f"Function for field {self.field}:", [explain(value, formula)])

    def _explained_values(self, field: FieldReader, document: int) -> str:
        documents, values = field.doc_values()
        values = values[documents == document]
        name = self.mode.upper()
        if isinstance(self.origin, Point):
            name += " of: "
            origin, offset = str(self.origin), printed(self.offset, np.float64)
            parts = [
                f"Math.max(arcDistance({Point(*degrees)}(=doc value),{origin}(=origin)) - {offset}(=offset), 0)"
                for degrees in zip(*geography.decoded(values), strict=True)
            ]
        else:
            origin, offset = (printed(number, np.float64) for number in (self.origin, self.offset))
            parts = [
                f"Math.max(Math.abs({printed(value, np.float64)}(=doc value) - {origin}(=origin))) - "
                f"{offset}(=offset), 0)"
                for value in values.tolist()
            ]
        return f"{name}[{', '.join(parts) or '0.0'}]"


def reduced(
    field: FieldReader, documents: NDArray[np.intp], numbers: Doubles, mode: str, missing: float
) -> Doubles:
    """Return one number for each document: the least, greatest, mean, median or sum of those of its values.

    Args:
        field: of a segment
        documents: of shape (n,)
        numbers: one for each of `field.doc_values()`
        mode: one of `MODES`
        missing: the number of a document without a value
    """
    rows = np.full(field.documents, -1)
    rows[documents] = np.arange(len(documents))
    rows = rows[field.doc_values()[0]]
    numbers, rows = numbers[rows >= 0], rows[rows >= 0]
    ascending = numbers.argsort(kind="stable")
    return one_of_each(mode, rows[ascending], numbers[ascending], len(documents), missing)


def read_decay(parser: Parser, shape: str, described: Any) -> Decay:
    """Read a function such as `{"place": {"origin": "1,2", "scale": "10km"}, "multi_value_mode": "avg"}`."""
    label = f"`{shape}`"
    entries = parameters.mapping(described, label)
    mode = "min"
    name = ""
    options: Mapping[str, Any] = {}
    for key, value in entries.items():
        if isinstance(value, Mapping):  # of several fields the last one counts
            name, options = key, value
        elif key == "multi_value_mode":
            mode = parameters.choice(value, MODES, f"`multi_value_mode` of {label}")
        else:
            raise invalid(f"{label} has the parameter `{key}` beside its field, only `multi_value_mode`")
    if not name:
        raise invalid(f"{label} has no field")
    unknown = options.keys() - {"origin", "scale", "offset", "decay"}
    if unknown:
        raise invalid(f"{label} on {name} has the unknown parameter {', '.join(sorted(unknown))}")
    parameters.without_null(options, tuple(options), f"{label} on {name}")
    field = parser.field(name, GEO_POINT)
    if field is None:
        raise invalid(f"{label} on {name}, which is not in the mapping")
    if field.has_postings or field.type == SCALED:  # Elasticsearch takes booleans as numbers
        raise (unsupported if field.type == BOOLEAN else invalid)(
            f"{label} on {name}, which is {field.type}, only on numbers, dates and points"
        )
    if not field.has_doc_values:
        raise unsupported(f"{label} on {name}, which has no doc values")
    if "scale" not in options or ("origin" not in options and field.is_number and field.type != DATE):
        raise invalid(f"{label} on {name} needs `origin` and `scale`")
    origin, scale, offset = _measures(parser, field, options)
    decay = _double(options.get("decay", 0.5), f"`decay` of {label}")
    if not scale > 0 or not 0 < decay < 1 or not offset >= 0:
        raise invalid(f"{label} needs a `scale` above 0, an `offset` from 0 and a `decay` between 0 and 1")
    return Decay(field.name, shape, origin, _processed_scale(shape, scale, decay), offset, mode)


def _processed_scale(shape: str, scale: float, decay: float) -> float:
    if shape == "linear":
        return scale / (1.0 - decay)
    return 0.5 * (scale * scale) / math.log(decay) if shape == "gauss" else math.log(decay) / scale


def _measures(parser: Parser, field: Field, options: Mapping[str, Any]) -> tuple[float | Point, float, float]:
    """Return origin, scale and offset: numbers, milliseconds of a date, or a point and metres."""
    label = f"for {field.name}"
    texts = [options["scale"], options.get("offset", "0")]
    if field.type == DATE:
        written = options.get("origin", "now")
        # Elasticsearch reads the notation of a double, which may have an exponent.
        text = printed(written, np.float64) if isinstance(written, float) else written
        origin = float(number_range.date_of(parser, field, text))
        scale, offset = (milliseconds(parameters.raw_text(text, f"a time {label}")) for text in texts)
        return origin, scale, offset
    if field.is_geometry:
        try:
            point = geography.read_point(options.get("origin", "0,0"), ignores_height=False)
            scale, offset = (
                geography.metres(parameters.raw_text(text, f"a distance {label}")) for text in texts
            )
        except ValueError as error:
            raise invalid(f"the decay {label}: {error}") from error
        if not all(map(math.isfinite, point)):
            raise invalid(f"the origin {label} is not finite")
        return point, scale, offset
    origin, scale, offset = (_double(number, f"a number {label}") for number in (options["origin"], *texts))
    return origin, scale, offset


def _double(value: Any, label: str) -> float:
    try:
        number = parameters.double(parameters.raw_text(value, label))
    except ValueError as error:
        raise invalid(f"{label} must be a number, not {value!r}") from error
    return parameters.supported_finite(number, label)


_MILLISECONDS = {
    "nanos": 1e-6,
    "micros": 1e-3,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_TIME = re.compile(r"([+-]?\d+)\s*(nanos|micros|ms|s|m|h|d)|(0+)|-0*1", re.ASCII)


def milliseconds(text: str) -> float:
    """Read a time such as `10d` (`TimeValue.parseTimeValue`)."""
    trimmed = text.strip()
    match = _TIME.fullmatch(trimmed.lower() if not trimmed.endswith("M") else trimmed)
    if not match:
        raise invalid(f"{text!r} is no time with a unit: {', '.join(_MILLISECONDS)}")
    if match[1] is None:
        return 0.0 if match[3] else -1.0
    return float(math.trunc(int(match[1]) * _MILLISECONDS[match[2]]))
