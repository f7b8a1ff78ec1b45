"""Numbers as Java reads and prints them: `Double.parseDouble`, `Float.parseFloat`, `BigDecimal`, `Double.toString`.

Elasticsearch reads a number of a document from the text of its JSON, and one of a query from text or from a double,
by the type of the field. To the last bit these are different numbers.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

Precision = type[np.float32] | type[np.float64]

LONGEST_PLAIN, SHORTEST_PLAIN = 1e7, 1e-3
"""From where, and below where, Java prints a number with an exponent."""

LONGEST_NUMBER = 1000
"""Characters of a number in JSON that Elasticsearch reads."""

_TRIMMED = "".join(map(chr, range(0x21)))
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_SPECIAL = {f"{sign}{name}": float(sign + name) for sign in ("", "+", "-") for name in ("NaN", "Infinity")}
_BIG_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")


def printed(value: float | np.float32, precision: Precision = np.float32) -> str:
    """A float32, or with `precision` a double, as Java prints it.

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
    """A finite number other than 0 as Java prints it."""
    number = np.float64(value) if is_double else np.float32(value)
    if SHORTEST_PLAIN <= abs(value) < LONGEST_PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    if mantissa.endswith(".0"):  # of two digits Java takes the best, not the shortest and a zero
        mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def json_text(number: int | float) -> str:
    """A finite number as it stands in the JSON that is sent to Elasticsearch.

    Raises:
        OverflowError: it has more digits than Elasticsearch reads.
    """
    if isinstance(number, int) and number.bit_length() > 4 * LONGEST_NUMBER:
        raise OverflowError(f"a number has more than {LONGEST_NUMBER} digits")
    text = repr(number)
    if len(text) > LONGEST_NUMBER:
        raise OverflowError(f"a number has more than {LONGEST_NUMBER} digits")
    return text


def double(text: str) -> float:
    """What `Double.parseDouble` makes of a text: numbers too great are infinite, `NaN` is none.

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
    """The nearest double, which is infinite for what is too great."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def float32_of_text(text: str) -> float:
    """What `Float.parseFloat` makes of a text: the float32 that is nearest to the number as it is written.

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
    """The float32 nearest to a number as it is written in JSON, which need not be the one nearest to the double."""
    rounded, other = _neighbours(of_int(number) if isinstance(number, int) else number)
    return rounded if other is None else float32_of_text(json_text(number))


def _neighbours(value: float) -> tuple[float, float | None]:
    """The float32 nearest to a double, and the other one if the double lies halfway between two of them.

    What is written as such a double may be a little more or less.
    """
    rounded = to_float32(value)
    if rounded == value or not math.isfinite(rounded):
        return rounded, None
    towards = np.float32(math.copysign(math.inf, value - rounded))
    other = float(np.nextafter(np.float32(rounded), towards))
    return rounded, other if abs(value - rounded) == abs(other - value) else None


def to_float32(value: float) -> float:
    """The float32 nearest to a double, which is infinite for what is too great."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def big_decimal(text: str) -> Decimal:
    """What `new BigDecimal` makes of a text, which must have no blanks around it.

    Raises:
        ValueError: it is no number.
    """
    if not _BIG_DECIMAL.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f"{text!r} is no number")
    return Decimal(text)


def _fraction(text: str) -> Fraction:
    """The exact value of a text that `double` reads."""
    match = _DECIMAL.fullmatch(text)
    return Fraction(match[1]) if match else Fraction(double(text))
