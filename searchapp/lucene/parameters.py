"""Parameters of mappings, search bodies and documents, by type, and numbers as Java reads and prints them.

In Elasticsearch the parameter determines the type of its JSON token: `5`, `"5"` and `"5.0"` are equal for some
parameters only. A number of a document is read from its JSON text, a number of a query from text or a double, by the
type of the field; the resulting numbers can differ in the last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from searchapp.lucene.errors import invalid, unsupported

Precision = type[np.float32] | type[np.float64]

LONGEST_PLAIN, SHORTEST_PLAIN = 1e7, 1e-3  # Java prints numbers outside this range with an exponent

LONGEST_NUMBER = 1000  # maximum number of characters of a JSON number in Elasticsearch

_TRIMMED = "".join(map(chr, range(0x21)))
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_SPECIAL = {f"{sign}{name}": float(sign + name) for sign in ("", "+", "-") for name in ("NaN", "Infinity")}
_BIG_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")


def printed(value: float | np.float32, precision: Precision = np.float32) -> str:
    """Return a float32, or a double with `precision`, as Java prints it.

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


@lru_cache(maxsize=4096)  # explanations repeat parameters and statistics
def _digits(value: float, *, is_double: bool) -> str:
    number = np.float64(value) if is_double else np.float32(value)
    if SHORTEST_PLAIN <= abs(value) < LONGEST_PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    if mantissa.endswith(".0"):  # Java prints at least two digits, and chooses the closest
        mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def decimal(number: float) -> float:
    """Return the double of the shortest decimal fraction of a float32, which Elasticsearch writes in answers.

    >>> decimal(float(np.float32(0.1)))
    0.1
    """
    return float(printed(number))


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
    """Return the result of `Double.parseDouble`; too great numbers become infinite, `NaN` is accepted.

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
    raise ValueError(f"{text!r} is not a number")


def of_int(number: int) -> float:
    """Return the nearest double, infinite for too great integers."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def float32_of_text(text: str) -> float:
    """Return the result of `Float.parseFloat`: the float32 nearest to the decimal number."""
    parsed = double(text)
    rounded, other = _neighbours(parsed)
    if other is None:
        return rounded
    from fractions import Fraction  # slow to import

    match = _DECIMAL.fullmatch(text.strip(_TRIMMED))
    exact = Fraction(match[1]) if match else Fraction(parsed)
    if exact == Fraction(parsed):
        return rounded
    return max(rounded, other) if exact > Fraction(parsed) else min(rounded, other)


def float32_of_json(number: int | float) -> float:
    """Return the float32 nearest to a JSON number, which can differ from the one nearest to its double."""
    rounded, other = _neighbours(of_int(number) if isinstance(number, int) else number)
    return rounded if other is None else float32_of_text(json_text(number))


def _neighbours(value: float) -> tuple[float, float | None]:
    """Return the float32 nearest to a double and, if the double is exactly halfway, the other neighbour.

    The decimal form of such a double may be slightly above or below the middle.
    """
    rounded = to_float32(value)
    if rounded == value or not math.isfinite(rounded):
        return rounded, None
    towards = np.float32(math.copysign(math.inf, value - rounded))
    other = float(np.nextafter(np.float32(rounded), towards))
    return rounded, other if abs(value - rounded) == abs(other - value) else None


def to_float32(value: float) -> float:
    """Return the float32 nearest to a double, infinite for too great doubles."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def to_half(value: float) -> float:
    """Return the half float (16 bits) nearest to a float32, infinite for too great numbers."""
    with np.errstate(over="ignore"):
        return float(np.float16(np.float32(value)))


def big_decimal(text: str) -> Decimal:
    """Return the result of `new BigDecimal`, which rejects surrounding blanks.

    Raises:
        ValueError: it is no number.
    """
    if not _BIG_DECIMAL.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(f"{text!r} is not a number")
    return Decimal(text)


_EXACT = 1 << 24  # every integer up to this one is a float32

_SMALLEST, _LARGEST = 1e-30, 1e30  # numbers between these bounds are neither 0 nor infinite as float32

LARGEST_INTEGER = 2**31 - 1

LONGEST_TERM = 32_766  # bytes of UTF-8 of the longest term in Lucene


def mapping(value: Any, label: str) -> Mapping[str, Any]:
    """Read an object."""
    if type(value) is not dict and not isinstance(value, Mapping):  # the first check is much faster
        raise invalid(f"{label} must be an object, not {value!r}")
    return value


def single(value: Any, label: str) -> tuple[str, Any]:
    """Read the only entry of an object, such as a query's field."""
    entries = mapping(value, label)
    if len(entries) > 1 and any(
        entry is None or isinstance(entry, list | tuple) for entry in entries.values()
    ):
        raise unsupported(f"null or a list in {label} with other entries,")
    if len(entries) != 1:
        raise invalid(f"{label} must have exactly one entry, not {', '.join(entries) or 'none'}")
    (entry,) = entries.items()
    return entry


def any_number(value: Any, label: str) -> float:
    """Read a number as float32; text may also be infinite or `NaN`."""
    if type(value) is int and -_EXACT < value < _EXACT:  # fast path
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
        raise invalid(f"{label}: {error}") from error
    raise invalid(f"{label} must be a number, not {value!r}")


def number(value: Any, label: str) -> float:
    """Read a finite number, rounded to float32 like boosts and weights in Elasticsearch."""
    return finite(signless(value, label), label)


def signless(value: Any, label: str) -> float:
    """Read a number other than -0.0, which would rank below 0.0."""
    rounded = any_number(value, label)
    if rounded == 0 and math.copysign(1, rounded) < 0:
        raise unsupported(f"-0.0 as {label}")
    return rounded


def finite(number_: float, label: str) -> float:
    """Reject a number that is not finite."""
    if not math.isfinite(number_):
        raise invalid(f"{label} is {number_}, which is too large or not a number")
    return number_


def supported_finite(number_: float, label: str) -> float:
    """Reject a number that is not finite, but that Elasticsearch accepts."""
    if not math.isfinite(number_):
        raise unsupported(f"{number_} as {label}")
    return number_


def no_nan(number_: float, label: str) -> float:
    """Reject NaN, which Elasticsearch accepts."""
    if math.isnan(number_):
        raise unsupported(f"NaN as {label}")
    return number_


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number."""
    return (isinstance(value, float) and math.isfinite(value)) or type(value) is int


def integer(value: Any, label: str) -> int:
    """Read an integer of 32 bits; drop decimals."""
    if isinstance(value, str):
        try:
            number_: int | float = double(value)
        except ValueError as error:
            raise invalid(f"{label}: {error}") from error
    elif is_number(value):
        number_ = value
    else:
        raise invalid(f"{label} must be a number, not {value!r}")
    if number_ != number_:  # NaN; an integer may be too great for `math.isnan`
        return 0
    if not -LARGEST_INTEGER - 1 <= number_ <= LARGEST_INTEGER:
        raise invalid(f"{label} is {shown(value)}, which is not a 32-bit integer")
    return int(number_)


def flag(value: Any, label: str) -> bool:
    """Read true or false, also as text."""
    if isinstance(value, str) and value in ("true", "false", ""):
        return value == "true"
    if not isinstance(value, bool):
        raise invalid(f"{label} must be true or false, not {value!r}")
    return value


def name(value: Any, label: str) -> str:
    """Read the non-empty name of a field or of an analyzer."""
    text_ = raw_text(value, label)
    if not text_:
        raise invalid(f"{label} must be a name, not {value!r}")
    return text_


def listed(value: Any, label: str) -> Sequence[Any]:
    """Read a list."""
    if not isinstance(value, list | tuple):
        raise invalid(f"{label} must be a list, not {value!r}")
    return value


def boost(value: Any, label: str) -> float:
    """Read a boost, which must not be negative but may be infinite or `NaN`."""
    number_ = signless(value, f"the boost of {label}")
    if number_ < 0:
        raise invalid(f"the boost of {label} is {number_:g}, but must not be negative")
    return number_


def share(value: Any, label: str) -> float:
    """Read a number from 0 to 1."""
    number_ = no_nan(signless(value, label), label)
    if not 0 <= number_ <= 1:
        raise invalid(f"{label} is {number_:g}, but must be from 0 to 1")
    return number_


def text(value: Any, label: str) -> str:
    """Read a scalar to search for, as Java prints it."""
    if isinstance(value, float) and math.isfinite(value):
        return printed(value, np.float64)
    return raw_text(value, label)


def term(value: Any, label: str) -> str:
    """Read a text to search for as one term, of at most `LONGEST_TERM` bytes."""
    text_ = text(value, label)
    if len(text_) * 3 > LONGEST_TERM and len(text_.encode("utf-8", "surrogatepass")) > LONGEST_TERM:
        raise invalid(f"{label} has more than {LONGEST_TERM:,} bytes")
    return text_


def raw_text(value: Any, label: str) -> str:
    """Read a scalar as written in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        try:
            return json_text(value)
        except OverflowError as error:
            raise invalid(f"{label}: {error}") from error
    raise invalid(f"{label} must be text, not {value!r}")


def choice(value: Any, choices: Mapping[str, Any] | tuple[str, ...], label: str) -> str:
    """Read one of several words, in lower case."""
    word = raw_text(value, label).upper().lower()
    if word not in choices:
        raise invalid(f"{label} must be {' or '.join(choices)}, not {value!r}")
    return word


def without_lists(options: Mapping[str, Any], names: Sequence[str], label: str) -> None:
    """Reject parameters that are null or lists, which Elasticsearch ignores or unwraps."""
    for parameter in names:
        if parameter in options and (
            options[parameter] is None or isinstance(options[parameter], list | tuple)
        ):
            raise unsupported(f"`{parameter}` of {label} that is {options[parameter]!r}")


def without_null(options: Mapping[str, Any], names: Sequence[str], label: str) -> None:
    """Reject parameters that are null, which Elasticsearch does not replace by the default here."""
    for parameter in names:
        if parameter in options and options[parameter] is None:
            raise invalid(f"`{parameter}` of {label} is null")


def shown(value: Any) -> str:
    """Return a value for a message, shortened to 40 characters."""
    try:
        text = str(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
