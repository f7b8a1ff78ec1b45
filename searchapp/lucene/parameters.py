"""Parameters of mappings, search bodies and documents, read by type, and numbers as Java reads and prints them.

In Elasticsearch the parameter decides the type of its JSON token: a float, an integer, a boolean, the text in the JSON,
or an object of Java that is printed later. `5`, `"5"` and `"5.0"` are the same to some parameters and not to others. A
number of a document is read from the text of its JSON, a number of a query from text or from a double, by the type of
the field; to the last bit these are different numbers.

Numbers follow `Double.parseDouble`, `Float.parseFloat`, `BigDecimal` and `Double.toString`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from searchapp.lucene.errors import invalid, unsupported

Precision = type[np.float32] | type[np.float64]

LONGEST_PLAIN, SHORTEST_PLAIN = 1e7, 1e-3
"""Java prints a number with an exponent from the first on, and below the second."""

LONGEST_NUMBER = 1000
"""Characters of the longest number in JSON that Elasticsearch reads."""

_TRIMMED = "".join(map(chr, range(0x21)))
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_SPECIAL = {f"{sign}{name}": float(sign + name) for sign in ("", "+", "-") for name in ("NaN", "Infinity")}
_BIG_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")


def printed(value: float | np.float32, precision: Precision = np.float32) -> str:
    """Return a float32, or with `precision` a double, as Java prints it.

    >>> [printed(value) for value in (1, 0.3, 12345678, 0.0001, 1e-45)]
    ['1.0', '0.3', '1.2345678E7', '1.0E-4', '1.4E-45']
    """
    number = precision(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "-Infinity" if np.signbit(number) else "Infinity"
    if number == 0:
        return "-0.0" if np.signbit(number) else "0.0"
    return _digits(float(number), is_double=precision is np.float64)


@lru_cache(maxsize=4096)  # an explanation has the same parameters and statistics again and again
def _digits(value: float, *, is_double: bool) -> str:
    number = np.float64(value) if is_double else np.float32(value)
    if SHORTEST_PLAIN <= abs(value) < LONGEST_PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    if mantissa.endswith(".0"):  # of two digits Java takes the best, not the shortest and a zero
        mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def json_text(number: int | float) -> str:
    """Return a finite number as in the JSON for Elasticsearch.

    Raises:
        OverflowError: it has too many digits for Elasticsearch.
    """
    # Python refuses to print integers of very many digits.
    is_printable = not isinstance(number, int) or number.bit_length() <= 4 * LONGEST_NUMBER
    if not is_printable or len(text := repr(number)) > LONGEST_NUMBER:
        raise OverflowError(f"a number has more than {LONGEST_NUMBER} digits")
    return text


def double(text: str) -> float:
    """Return the result of `Double.parseDouble`: numbers too great are infinite, `NaN` is read.

    >>> [double(text) for text in (" 1.5", "0x1p3", "5d", "1e400", "-Infinity")]
    [1.5, 8.0, 5.0, inf, -inf]

    Raises:
        ValueError: it is no number.
    """
    trimmed = text.strip(_TRIMMED)
    if trimmed in _SPECIAL:
        return _SPECIAL[trimmed]
    if match := _DECIMAL.fullmatch(trimmed):
        return float(match[1])
    if match := _HEXADECIMAL.fullmatch(trimmed):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return math.copysign(math.inf, -1 if trimmed.startswith("-") else 1)
    raise ValueError(f"{text!r} is no number")


def of_int(number: int) -> float:
    """Return the nearest double, which is infinite for integers that are too great."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def float32_of_text(text: str) -> float:
    """Return the result of `Float.parseFloat`: the float32 nearest to the number as it is written.

    Raises:
        ValueError: it is no number.
    """
    given = double(text)
    rounded, other = _neighbours(given)
    if other is None:
        return rounded
    exact = _fraction(text.strip(_TRIMMED))
    if exact == Fraction(given):
        return rounded
    return max(rounded, other) if exact > Fraction(given) else min(rounded, other)


def float32_of_json(number: int | float) -> float:
    """Return the float32 nearest to a number as written in JSON, which may not be the one nearest to the double."""
    rounded, other = _neighbours(of_int(number) if isinstance(number, int) else number)
    return rounded if other is None else float32_of_text(json_text(number))


def _neighbours(value: float) -> tuple[float, float | None]:
    """Return the float32 nearest to a double, and the other one if the double lies halfway between two of them.

    The written form of such a double may be a little more or less.
    """
    rounded = to_float32(value)
    if rounded == value or not math.isfinite(rounded):
        return rounded, None
    towards = np.float32(math.copysign(math.inf, value - rounded))
    other = float(np.nextafter(np.float32(rounded), towards))
    return rounded, other if abs(value - rounded) == abs(other - value) else None


def to_float32(value: float) -> float:
    """Return the float32 nearest to a double, which is infinite for doubles that are too great."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def big_decimal(text: str) -> Decimal:
    """Return the result of `new BigDecimal` for a text, which must have no blanks around it.

    Raises:
        ValueError: it is no number.
    """
    if not _BIG_DECIMAL.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f"{text!r} is no number")
    return Decimal(text)


def _fraction(text: str) -> Fraction:
    match = _DECIMAL.fullmatch(text)
    return Fraction(match[1]) if match else Fraction(double(text))


_EXACT = 1 << 24
"""The greatest integer up to which every integer is a float32."""

_SMALLEST, _LARGEST = 1e-30, 1e30
"""Bounds between which every number is a float32 other than 0 and infinity."""

LARGEST_INTEGER = 2**31 - 1

LONGEST_TERM = 32_766
"""Bytes of UTF-8: no index of Lucene has a longer term."""


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """Read an object."""
    if type(value) is not dict and not isinstance(value, Mapping):  # the first check is much faster
        raise invalid(f"{place} must be an object, not {value!r}")
    return value


def single(value: Any, place: str) -> tuple[str, Any]:
    """Read the only entry of an object, such as a query's field."""
    entries = mapping(value, place)
    if len(entries) > 1 and any(
        entry is None or isinstance(entry, list | tuple) for entry in entries.values()
    ):
        raise unsupported(f"null or a list in {place}, beside something else,")
    if len(entries) != 1:
        raise invalid(f"{place} must name one thing, not {', '.join(entries) or 'nothing'}")
    (entry,) = entries.items()
    return entry


def any_number(value: Any, place: str) -> float:
    """Read a number as a float32; given as text it may also be infinite or `NaN`."""
    if type(value) is int and -_EXACT < value < _EXACT:  # most are, and every query has some
        return float(value)
    if type(value) is float and _SMALLEST < value < _LARGEST:
        rounded = float(np.float32(value))
        return rounded if rounded == value else float32_of_json(value)
    try:
        if isinstance(value, str):
            return float32_of_text(value)
        if is_number(value):
            return float32_of_json(value)
    except (ValueError, OverflowError) as error:
        raise invalid(f"{place}: {error}") from error
    raise invalid(f"{place} must be a number, not {value!r}")


def number(value: Any, place: str) -> float:
    """Read a finite number, rounded to float32 as Elasticsearch keeps boosts and weights."""
    return finite(signless(value, place), place)


def signless(value: Any, place: str) -> float:
    """Read a number other than -0.0, whose scores rank below those of 0.0."""
    rounded = any_number(value, place)
    if rounded == 0 and math.copysign(1, rounded) < 0:
        raise unsupported(f"-0.0 as {place}")
    return rounded


def finite(given: float, place: str) -> float:
    """Reject numbers that are not finite."""
    if not math.isfinite(given):
        raise invalid(f"{place} is {given}, which is too great or no number")
    return given


def supported_finite(given: float, place: str) -> float:
    """Reject numbers that are not finite, which Elasticsearch takes."""
    if not math.isfinite(given):
        raise unsupported(f"{given} as {place}")
    return given


def no_nan(given: float, place: str) -> float:
    """Reject NaN, which Elasticsearch takes."""
    if math.isnan(given):
        raise unsupported(f"NaN as {place}")
    return given


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON."""
    return (isinstance(value, float) and math.isfinite(value)) or type(value) is int


def integer(value: Any, place: str) -> int:
    """Read an integer of 32 bits, without the decimals of a number."""
    if isinstance(value, str):
        try:
            given: int | float = double(value)
        except ValueError as error:
            raise invalid(f"{place}: {error}") from error
    elif is_number(value):
        given = value
    else:
        raise invalid(f"{place} must be a number, not {value!r}")
    if given != given:  # NaN; an integer may be too great for `math.isnan`
        return 0
    if not -LARGEST_INTEGER - 1 <= given <= LARGEST_INTEGER:
        raise invalid(f"{place} is {shown(value)}, which is no integer of 32 bits")
    return int(given)


def flag(value: Any, place: str) -> bool:
    """Read true or false, also as text."""
    if isinstance(value, str) and value in ("true", "false", ""):
        return value == "true"
    if not isinstance(value, bool):
        raise invalid(f"{place} must be true or false, not {value!r}")
    return value


def name(value: Any, place: str) -> str:
    """Read the name of a field or of an analyzer, which can't be empty."""
    given = raw_text(value, place)
    if not given:
        raise invalid(f"{place} must be a name, not {value!r}")
    return given


def listed(value: Any, place: str) -> Sequence[Any]:
    """Read a list."""
    if not isinstance(value, list | tuple):
        raise invalid(f"{place} must be a list, not {value!r}")
    return value


def boost(value: Any, place: str) -> float:
    """Read a boost: a number that is not negative; it may be infinite or `NaN` where it boosts nothing."""
    given = signless(value, f"the boost of {place}")
    if given < 0:
        raise invalid(f"the boost of {place} is {given:g}, but must not be negative")
    return given


def share(value: Any, place: str) -> float:
    """Read a number from 0 to 1."""
    given = no_nan(signless(value, place), place)
    if not 0 <= given <= 1:
        raise invalid(f"{place} is {given:g}, but must be from 0 to 1")
    return given


def text(value: Any, place: str) -> str:
    """Read a scalar to search for as Java prints it."""
    if isinstance(value, float) and math.isfinite(value):
        return printed(value, np.float64)
    return raw_text(value, place)


def term(value: Any, place: str) -> str:
    """Read a text to search for as one term, which can't be longer than any term of an index."""
    given = text(value, place)
    if len(given) * 3 > LONGEST_TERM and len(given.encode("utf-8", "surrogatepass")) > LONGEST_TERM:
        raise invalid(f"{place} has more than {LONGEST_TERM:,} bytes")
    return given


def raw_text(value: Any, place: str) -> str:
    """Read a scalar as text, as in the JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        try:
            return json_text(value)
        except OverflowError as error:
            raise invalid(f"{place}: {error}") from error
    raise invalid(f"{place} must be text, not {value!r}")


def choice(value: Any, choices: Mapping[str, Any] | tuple[str, ...], place: str) -> str:
    """Read one of several words, in lower case."""
    given = raw_text(value, place).upper().lower()
    if given not in choices:
        raise invalid(f"{place} must be {' or '.join(choices)}, not {value!r}")
    return given


def without_lists(given: Mapping[str, Any], names: Sequence[str], place: str) -> None:
    """Reject parameters that are null or lists, which Elasticsearch ignores or reads into."""
    for parameter in names:
        if parameter in given and (given[parameter] is None or isinstance(given[parameter], list | tuple)):
            raise unsupported(f"`{parameter}` of {place} that is {given[parameter]!r}")


def without_null(given: Mapping[str, Any], names: Sequence[str], place: str) -> None:
    """Reject parameters that are null, which Elasticsearch does not take for the default here."""
    for parameter in names:
        if parameter in given and given[parameter] is None:
            raise invalid(f"`{parameter}` of {place} is null")


def shown(value: Any) -> str:
    """Return a value for a message, the beginning of a long one."""
    try:
        text = str(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
