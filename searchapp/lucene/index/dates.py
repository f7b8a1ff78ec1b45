"""Formats of dates, time zones and date math, as in Elasticsearch.

A date is a number of milliseconds since 1970. A format is compiled to a regular expression that reads a text as
`java.time` does: each part takes as much as it can, and never gives a character back.

Sources: `DateFormatters`, `Iso8601Parser`, `EpochTime` and `JavaDateMathParser` of Elasticsearch, and
`DateTimeFormatterBuilder` of the JDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import NotSupported, invalid, unsupported

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
EPOCH_MILLIS = "epoch_millis"

Zone: TypeAlias = "int | ZoneInfo"  # an offset from UTC in seconds, or a region

_SECOND = 1000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND

_MOST_YEARS = 999_999_999
_MOST_OFFSET = 18 * 3600


class _Mismatch(Exception):
    """A text does not have this format, but may have the next one."""


class _Check(Enum):
    """What happens with a date that does not exist."""

    NEXT = auto()  # the next format is tried (strict `java.time`)
    ISO = auto()  # the next format is tried only for months and days that no year has (`Iso8601Parser`)
    FAIL = auto()  # no other format is tried (`java.time` with years of an era)
    SHIFT = auto()  # the 32nd day is the first of the next month (lenient `java.time`)
    CLAMP = auto()  # the last day of the month stands for the days until the 31st (smart `java.time`)


# Parts of formats; the names of groups are letters of patterns.
_DATE = r"(?P<u>-?\d{4})(?:-(?P<M>\d\d)(?:-(?P<d>\d\d))?)?"
_FULL_DATE = r"(?P<u>-?\d{4})-(?P<M>\d\d)-(?P<d>\d\d)"
_TIME = r"(?P<H>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
_OPEN_TIME = r"(?P<H>\d\d)(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<S>\d{1,9}))?)?)?"
_LOOSE_DATE = r"(?P<u>-?\d{1,9})(?:-(?P<M>\d\d?)(?:-(?P<d>\d\d?))?)?"
_LOOSE_MINUTE = r"(?P<H>\d\d?):(?P<m>\d\d?)"
_LOOSE_TIME = rf"{_LOOSE_MINUTE}:(?P<s>\d\d?)"
_FRACTION = r"\.(?P<S>\d{1,9})"
_ZONE = r"(?P<z>[A-Za-z+-].*)"
_OFFSET = r"(?P<z>Z|[+-]\d\d(?::?\d\d)?)"
_BASIC_DATE = r"(?P<u>-?\d{4})(?P<M>\d\d)(?P<d>\d\d)"
_BASIC_TIME = r"T(?P<H>\d\d)(?P<m>\d\d)(?P<s>\d\d)"

_ISO = rf"{_DATE}(?:T(?:{_OPEN_TIME}{_ZONE}?)?)?"
_BUILT_IN: Mapping[str, tuple[_Check, str]] = {
    "strict_date_optional_time": (_Check.ISO, _ISO),
    "iso8601": (_Check.ISO, _ISO),
    "strict_date_optional_time_nanos": (
        _Check.ISO,
        rf"{_DATE}(?:T{_TIME}(?:[.,](?P<S>\d{{1,9}}))?{_ZONE}?)?",
    ),
    "strict_date_time": (_Check.ISO, rf"{_FULL_DATE}T{_TIME}(?:{_FRACTION})?{_ZONE}"),
    "strict_date_time_no_millis": (_Check.ISO, rf"{_FULL_DATE}T{_TIME}{_ZONE}"),
    "strict_date_hour_minute_second": (_Check.ISO, rf"{_FULL_DATE}T{_TIME}"),
    "strict_date_hour_minute_second_millis": (_Check.ISO, rf"{_FULL_DATE}T{_TIME}{_FRACTION}"),
    "strict_date_hour_minute_second_fraction": (_Check.ISO, rf"{_FULL_DATE}T{_TIME}{_FRACTION}"),
    "strict_year": (_Check.ISO, r"(?P<u>-?\d{4})"),
    "strict_year_month": (_Check.ISO, r"(?P<u>-?\d{4})-(?P<M>\d\d)"),
    "strict_year_month_day": (_Check.NEXT, _DATE),
    "strict_date": (
        _Check.SHIFT,
        r"(?P<u>-\d{4,10}|\+\d{5,10}|\d{4})-(?P<M>\d\d)-(?P<d>\d\d)",
    ),
    "basic_date": (_Check.NEXT, r"(?P<u>-?\d{1,4}+)(?P<M>\d{1,2}+)(?P<d>\d{1,2})"),
    "basic_date_time": (_Check.NEXT, rf"{_BASIC_DATE}{_BASIC_TIME}{_FRACTION}{_ZONE}"),
    "basic_date_time_no_millis": (_Check.NEXT, rf"{_BASIC_DATE}{_BASIC_TIME}{_ZONE}"),
    "date": (_Check.NEXT, _LOOSE_DATE),
    "date_hour": (_Check.NEXT, rf"{_LOOSE_DATE}T(?P<H>\d\d?)"),
    "date_hour_minute": (_Check.NEXT, rf"{_LOOSE_DATE}T{_LOOSE_MINUTE}"),
    "date_hour_minute_second": (_Check.NEXT, rf"{_LOOSE_DATE}T{_LOOSE_TIME}"),
    "date_hour_minute_second_millis": (_Check.NEXT, rf"{_LOOSE_DATE}T{_LOOSE_TIME}\.(?P<S>\d{{1,3}})"),
    "date_hour_minute_second_fraction": (_Check.NEXT, rf"{_LOOSE_DATE}T{_LOOSE_TIME}{_FRACTION}"),
    "date_optional_time": (
        _Check.NEXT,
        rf"{_LOOSE_DATE}(?:T(?:(?P<H>\d\d?)(?::(?P<m>\d\d?)(?::(?P<s>\d\d?))?(?:[.,](?P<S>\d{{1,9}}))?{_ZONE}?)?)?)?",
    ),
    "date_time": (
        _Check.NEXT,
        rf"{_LOOSE_DATE}T{_LOOSE_MINUTE}(?::(?P<s>\d\d?){_FRACTION})?{_OFFSET}",
    ),
    "date_time_no_millis": (_Check.NEXT, rf"{_LOOSE_DATE}T{_LOOSE_MINUTE}(?::(?P<s>\d\d?))?{_ZONE}?"),
    "year": (_Check.NEXT, r"(?P<u>-?\d{1,19})"),
    "year_month": (_Check.NEXT, r"(?P<u>-?\d{1,19})-(?P<M>\d{1,19})"),
    "year_month_day": (_Check.NEXT, r"(?P<u>-?\d{1,19})-(?P<M>\d{1,19})-(?P<d>\d{1,19})"),
}
# The digits after the point, beyond which a number of this unit has no more.
_EPOCHS = {EPOCH_MILLIS: (1, 6), "epoch_second": (_SECOND, 9)}

_OTHER_BUILT_IN = re.compile(r"(?:[a-z]+_)+[a-z]+|hour|time|weekyear")

_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = tuple(name[:3] for name in _MONTH_NAMES)
_WEEKDAYS = tuple(name[:3] for name in _WEEKDAY_NAMES)


@dataclass(frozen=True, slots=True)
class _LocalTime:
    """A date as written: milliseconds since 1970 in its own zone, None without one."""

    milliseconds: int
    zone: Zone | None


class DateFormats:
    """The formats of a field or a query, tried in order."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parsers = [_parser(part.strip(), pattern) for part in pattern.split("||")]

    def milliseconds(self, text: str, zone: Zone | None = None, *, round_up: bool = False) -> int:
        """Return the date of a text; `round_up` completes an incomplete one with its last millisecond.

        Args:
            text: a date
            zone: the time zone of a text without one; by default UTC

        Raises:
            ValueError: it has none of the formats.
            Refused: Elasticsearch reads it in a way that is not supported.
        """
        local = self._local(text, round_up)
        own = local.zone if local.zone is not None else zone
        return _fitting(_Zoned.of_local(local.milliseconds, own or 0).instant)

    def _local(self, text: str, round_up: bool) -> _LocalTime:
        for parse in self._parsers:
            try:
                return parse(text, round_up)
            except _Mismatch:
                continue
        raise ValueError(f"it has not the format {self.pattern}")

    def calculate(self, text: str, now: Callable[[], int], zone: Zone | None, *, round_up: bool) -> int:
        """Return the date of a text that may have date math, such as `now-1d/d` or `2020-01-01||+1M`.

        Raises:
            ValueError: it has none of the formats, or invalid date math.
            Refused: as `milliseconds`.
        """
        if text.startswith("now"):
            start, math = now(), text[len("now") :]
        else:
            written, bars, math = text.partition("||")
            if not bars:
                return self.milliseconds(text, zone, round_up=round_up)
            start = self.milliseconds(written, zone)
        moment = _Zoned.of_instant(start, zone or 0)
        while math:
            step = _STEP.match(math)
            if not step:
                raise ValueError(f"its date math is invalid from {math!r}")
            sign, digits, unit = step.groups()
            if sign == "/" and digits and int(digits) != 1:
                raise ValueError("its date math rounds to several units")
            if int(digits or 1) >= 1 << 31:
                raise ValueError("its date math has too great a number")
            if sign == "/":
                moment = moment.rounded(unit)
                if round_up:
                    moment = moment.plus(1, unit).plus(-1, "S")
            else:
                moment = moment.plus(int(f"{sign}{digits or 1}"), unit)
            math = math[step.end() :]
        return _fitting(moment.instant)


_STEP = re.compile(r"([+/-])(\d*)([yMwdhHms])")


def _fitting(milliseconds: int) -> int:
    if not -(1 << 63) <= milliseconds < 1 << 63:
        raise ValueError("it is too far from 1970")
    return milliseconds


@lru_cache(64)
def date_formats(pattern: str) -> DateFormats:
    """Return the formats of a pattern such as `yyyy-MM-dd||epoch_millis`.

    Raises:
        NotSupported: only Elasticsearch reads a format.
        Refused: a format is invalid.
    """
    return DateFormats(pattern)


_Parser = Callable[[str, bool], _LocalTime]


def _parser(part: str, pattern: str) -> _Parser:
    if not part or pattern.startswith("8"):  # Elasticsearch removes an 8 before a format
        raise invalid(f"the date format {pattern!r} has an empty part or begins with 8")
    if part in _EPOCHS:
        return _epoch_parser(*_EPOCHS[part])
    check, expression = _BUILT_IN.get(part) or _compiled(part)
    compiled = re.compile(expression, re.ASCII)
    default_zone = 0 if part == "basic_date" else None

    def parse(text: str, round_up: bool) -> _LocalTime:
        match = compiled.fullmatch(text)
        if not match:
            raise _Mismatch
        values: dict[str, str] = {}
        for group, value in match.groupdict().items():
            if value is not None and values.setdefault(group.rstrip("_0123456789"), value) != value:
                raise _Mismatch
        if round_up and check is not _Check.ISO:
            # Elasticsearch rounds with copies of Java's formatters, which lose their zone and their resolver style.
            return _LocalTime(_local_time(values, _Check.CLAMP, round_up), _own_zone(values, None))
        return _LocalTime(_local_time(values, check, round_up), _own_zone(values, default_zone))

    return parse


def _epoch_parser(unit: int, decimals: int) -> _Parser:
    expression = re.compile(rf"(-?)(\d{{1,19}})(?:\.(\d{{0,{decimals}}}))?", re.ASCII)

    def parse(text: str, round_up: bool) -> _LocalTime:
        match = expression.fullmatch(text)
        if not match or int(match[2]) >= 1 << 63:
            raise _Mismatch
        sign, whole, fraction = match.groups()
        if sign and unit == _SECOND and fraction is not None and not int(fraction or 0):
            if fraction:
                raise _Mismatch  # Elasticsearch computes an invalid number of nanoseconds
            fraction = None
        total = int(whole) * 10**decimals + int((fraction or "").ljust(decimals, "0"))
        milliseconds = (-total if sign else total) * unit // 10**decimals
        return _LocalTime(milliseconds + (unit - 1 if round_up and fraction is None else 0), 0)

    return parse


def _local_time(values: Mapping[str, str], check: _Check, round_up: bool) -> int:
    """Return the milliseconds since 1970 of the parts of a text; `round_up` fills the time of the day with 9s."""
    number = {name: int(values[name]) for name in values.keys() & set("uyMdHhms")}
    year = number.get("u", number.get("y", 0))
    for name in ("Y", "U"):  # two digits
        if name in values:
            year = 2000 + int(values[name])
    if "B" in values:
        number["M"] = 1 + _MONTHS.index(values["B"])
    if "h" in number and "a" in values:
        if not 1 <= number["h"] <= 12:
            raise _Mismatch
        number["H"] = number["h"] % 12 + 12 * (values["a"] == "PM")
    _require_order(number, values)
    last = {"H": 23, "m": 59, "s": 59}
    if any(number.get(name, 0) > greatest for name, greatest in last.items()):
        raise _Mismatch
    if check is not _Check.ISO and values.get("u", "").startswith("-") and not year:
        raise _Mismatch
    if abs(year) > _MOST_YEARS or ("y" in number and year < 1):
        raise _Mismatch
    hour, minute, second = (number.get(name, greatest if round_up else 0) for name, greatest in last.items())
    fraction = values.get("S", "999" if round_up else "0")
    time = hour * _HOUR + minute * _MINUTE + second * _SECOND + int(fraction[:3].ljust(3, "0"))
    days = _days(year, number.get("M", 1), number.get("d", 1), check)
    if check in (_Check.NEXT, _Check.CLAMP) and "E" in values and _WEEKDAYS[(days + 3) % 7] != values["E"]:
        raise _Mismatch
    return days * _DAY + time


def _require_order(number: Mapping[str, int], values: Mapping[str, str]) -> None:
    """Reject a part without the next larger one, such as a day without a month."""
    larger = {"d": "M", "H": "d", "m": "H", "s": "m"}
    missing = next((name for name, other in larger.items() if name in number and other not in number), None)
    is_odd = ("S" in values and "s" not in number) or ("h" in number) != ("a" in values)
    if missing or is_odd or not values.keys() & set("uyUY"):
        raise unsupported(
            "a date without its year, or with a day, hour, minute or second but no larger unit,"
        )


def _days(year: int, month: int, day: int, check: _Check) -> int:
    """Return the number of days since 1970 of a date."""
    if check is _Check.SHIFT:
        return _days_of(year + (month - 1) // 12, (month - 1) % 12 + 1, 1) + day - 1
    if check is _Check.CLAMP and 1 <= month <= 12 and 28 < day <= 31:
        day = min(day, _last_day(year, month))
    try:
        return _days_of(year, month, day)
    except ValueError:
        if check in (_Check.NEXT, _Check.CLAMP) or (check is _Check.ISO and (month > 12 or day > 31)):
            raise _Mismatch from None
        raise


_CYCLE = 400  # years after which the calendar repeats
_DAYS_OF_CYCLE = 146_097
_FIRST = date(_CYCLE, 1, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()


def _days_of(year: int, month: int, day: int) -> int:
    cycles, rest = divmod(year, _CYCLE)
    try:
        ordinal = date(_CYCLE + rest, month, day).toordinal()
    except (ValueError, OverflowError) as error:
        raise ValueError("there is no such day") from error
    return ordinal - _EPOCH + (cycles - 1) * _DAYS_OF_CYCLE


def _last_day(year: int, month: int) -> int:
    return _days_of(year + month // 12, month % 12 + 1, 1) - _days_of(year, month, 1)


def _date_of(days: int) -> tuple[int, int, int]:
    cycles, rest = divmod(days + _EPOCH - _FIRST, _DAYS_OF_CYCLE)
    day = date.fromordinal(_FIRST + rest)
    return day.year + cycles * _CYCLE, day.month, day.day


# Patterns

_OFFSETS = {
    "X": ("Z|[+-]{2}(?:{2})?", "Z|[+-]{4}", "Z|[+-]{2}:{2}", "Z|[+-]{4}(?:{2})?", "Z|[+-]{2}:{2}(?::{2})?"),
    "x": ("[+-]{2}(?:{2})?", "[+-]{4}", "[+-]{2}:{2}", "[+-]{4}(?:{2})?", "[+-]{2}:{2}(?::{2})?"),
    "Z": ("[+-]{4}", "[+-]{4}", "[+-]{4}", "", "Z|[+-]{2}:{2}(?::{2})?"),
}
_MOST_LETTERS = {
    **dict.fromkeys("dHhmsa", 2),
    "a": 1,
    "S": 9,
    "M": 5,
    "E": 5,
    "y": 19,
    "u": 19,
} | dict.fromkeys("XxZ", 5)
_OTHER_LETTERS = set("GDQqwWYLecFgBKknNAVvzOp")
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)


def _compiled(pattern: str) -> tuple[_Check, str]:
    """Return the regular expression of a pattern of `java.time`."""

    def reject(piece: str) -> NoReturn:
        raise NotSupported(f"{piece} in the date format `{pattern}`")

    if _OTHER_BUILT_IN.fullmatch(pattern):
        raise NotSupported(f"the date format `{pattern}`")
    pieces: list[str] = []
    letters = ""
    numbers: list[str] = []  # adjacent numbers, of which only the first has a variable width
    depth = 0

    def close() -> None:
        if numbers:
            pieces.append(f"(?>{''.join(numbers)})")
            numbers.clear()

    for index, token in enumerate(_TOKEN.finditer(pattern)):
        written, letter = token[0], token[2]
        if not letter:
            close()
            if written == "'" or written in "{}#" or (written == "]" and not depth):
                raise invalid(f"{written!r} in the date format {pattern!r} is invalid there")
            if written in "[]":
                depth += 1 if written == "[" else -1
                pieces.append("(?>(?:" if written == "[" else ")?)")
            else:
                literal = written if token[1] is None else (token[1].replace("''", "'") or "'")
                pieces.append(re.escape(literal))
            continue
        count = len(written)
        if letter in _OTHER_LETTERS:
            reject(f"the letter {letter}")
        if not 1 <= count <= _MOST_LETTERS.get(letter, 0):
            raise invalid(f"the date format {pattern!r} has an unknown letter, or {letter} too often")
        name, expression = _piece(letter, count)
        if not expression:
            reject(f"`{written}`")
        letters += letter
        group = f"(?P<{name}_{index}>{expression})"
        if name in "uyUYMdHhmsS":
            is_fixed = re.fullmatch(r"\\d\\d|\\d\{\d\}", expression) is not None
            if numbers and not is_fixed:
                reject(f"`{written}` directly after another number")
            numbers.append(group)
        else:
            close()
            pieces.append(group)
    close()
    pieces.append(")?)" * depth)
    if not {*letters} & {"y", "u"} or {"y", "u"} <= {*letters} or ("h" in letters) != ("a" in letters):
        reject("no year, two kinds of years, or a half of the day without its hour")
    return (_Check.FAIL if "y" in letters else _Check.NEXT), "".join(pieces)


def _piece(letter: str, count: int) -> tuple[str, str]:
    """Return the name and the regular expression of a letter of a pattern, repeated `count` times; "" for none."""
    if letter in "yu":
        if count == 2:
            return letter.upper(), r"\d\d"
        return letter, (
            rf"-?\d{{{count},19}}"
            if count < 4
            else rf"-\d{{{count},19}}|\+\d{{{min(count + 1, 19)},19}}|\d{{{count}}}"
        )
    if letter == "M" and count > 2:
        return "B", "|".join(_MONTHS) if count == 3 else ""  # Elasticsearch reads long names in `en` only
    if letter == "E":
        return "E", "|".join(_WEEKDAYS) if count <= 3 else ""
    if letter == "a":
        return "a", "AM|PM"
    if letter == "S":
        return "S", rf"\d{{{count}}}"
    if letter in _OFFSETS:
        digits = {"{2}": r"\d\d", "{4}": r"\d{4}"}
        expression = _OFFSETS[letter][count - 1]
        return "z", re.sub(r"\{[24]\}", lambda match: digits[match[0]], expression)
    return letter, r"\d\d" if count == 2 else r"\d{1,19}"


# Printing

_ISO_PRINTED = "uuuu-MM-dd'T'HH:mm:ss.SSSXXX"
_PRINTED = {
    **dict.fromkeys(("date_optional_time", "date_time", "date_optional_time_nanos"), _ISO_PRINTED),
    "date_time_no_millis": "uuuu-MM-dd'T'HH:mm:ssXXX",
    "date_hour_minute_second": "uuuu-MM-dd'T'HH:mm:ss",
    "date_hour_minute_second_millis": "uuuu-MM-dd'T'HH:mm:ss.SSS",
    "date_hour_minute_second_fraction": "uuuu-MM-dd'T'HH:mm:ss.SSS",
    "date_hour": "uuuu-MM-dd'T'HH",
    "date_hour_minute": "uuuu-MM-dd'T'HH:mm",
    "year": "uuuu",
    "year_month": "uuuu-MM",
    "year_month_day": "uuuu-MM-dd",
    "date": "uuuu-MM-dd",
    "iso8601": _ISO_PRINTED,
    "basic_date": "uuuuMMdd",
    "basic_date_time": "uuuuMMdd'T'HHmmss.SSSXXX",
    "basic_date_time_no_millis": "uuuuMMdd'T'HHmmssXXX",
}


def printed(pattern: str, milliseconds: int, zone: Zone = 0) -> str:
    """Return a date in the first format of a pattern, which `date_formats` may not support, as in a time zone.

    Raises:
        Refused: the embedded engine does not print this date in this format.
    """
    part = pattern.split("||")[0].strip()
    if part in _EPOCHS:
        whole, rest = divmod(milliseconds, _EPOCHS[part][0])
        if milliseconds < 0:
            raise unsupported(f"printing a date before 1970 in the date format `{part}`")
        return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)
    moment = _Zoned.of_instant(milliseconds, zone)
    days, time = divmod(moment.local, _DAY)
    year, month, day = _date_of(days)
    if not 1 <= year <= 9999:
        raise unsupported(f"printing a date of the year {year}")
    if part == "date_time_no_millis" and not isinstance(zone, int):
        raise unsupported(f"printing a date in the date format `{part}` in a time zone with a name")
    part = "u" if part == "year" else part
    hour = time // _HOUR
    numbers = {
        "u": year,
        "y": year,
        "M": month,
        "d": day,
        "H": hour,
        "h": (hour - 1) % 12 + 1,
        "m": time // _MINUTE % 60,
        "s": time // _SECOND % 60,
    }

    def piece(match: re.Match[str]) -> str:
        token, letter = match[0], match[2]
        count = len(token)
        if match[1] is not None:
            return match[1].replace("''", "'") or "'"
        if not letter:
            return "" if token in "[]" else token
        if letter == "M" and count in (3, 4):
            return _MONTH_NAMES[month - 1][: 3 if count == 3 else None]
        if letter == "E" and count < 5:
            return _WEEKDAY_NAMES[(days + 3) % 7][: 3 if count < 4 else None]
        if letter == "a":
            return "PM" if hour >= 12 else "AM"
        if letter == "S":
            return f"{time % _SECOND:03}000000"[:count]
        if letter in _OFFSETS:
            return _printed_offset(moment.offset, letter, count)
        if letter not in numbers or (letter == "M" and count > 4):
            raise unsupported(f"printing `{token}` of the date format `{part}`")
        number = numbers[letter]
        return f"{number % 100:02}" if letter in "uy" and count == 2 else f"{number:0{count}}"

    return _TOKEN.sub(piece, _PRINTED.get(part.removeprefix("strict_"), part))


def _printed_offset(seconds: int, letter: str, count: int) -> str:
    if not seconds and (letter == "X" or (letter, count) == ("Z", 5)):
        return "Z"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, odd_seconds = divmod(rest, 60)
    if odd_seconds:
        raise unsupported("printing an offset from UTC with seconds")
    sign = "-" if seconds < 0 else "+"
    if letter != "Z" and count == 1:
        return f"{sign}{hours:02}" + (f"{minutes:02}" if minutes else "")
    colon = ":" if (count in (3, 5) and letter != "Z") or count == 5 else ""
    return f"{sign}{hours:02}{colon}{minutes:02}"


# Time zones

_UTC = ("Z", "UTC", "GMT", "UT")
_PREFIX = "^(?:UTC|UT|GMT)(?=[+-]"
_NUMERIC_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?(?::(\d\d))?")
_SHORT_OFFSET = re.compile(r"([+-])(\d\d?)(?::?(\d\d))?(?::?(\d\d))?")
_ODD_ZONE = re.compile(r"[A-Z+-][A-Za-z0-9/_:+-]*", re.ASCII)
_REGION = re.compile(r"(?!(?:posix|right|SystemV)/)[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)+")


def time_zone(text: str) -> Zone:
    """Return a time zone, such as `+01:00`, `UTC` or `Europe/Paris`.

    Raises:
        ValueError: the text is no time zone, or is one that is not supported.
    """
    return 0 if text in _UTC else _zone(re.sub(f"{_PREFIX})", "", text), _SHORT_OFFSET)


def _zone(text: str, offset: re.Pattern[str]) -> Zone:
    if match := offset.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        total = hours * 3600 + minutes * 60 + seconds
        if total <= _MOST_OFFSET and minutes < 60 and seconds < 60:
            return -total if match[1] == "-" else total
    elif _REGION.fullmatch(text):
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # slow to import

        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise ValueError(f"{text!r} is no time zone that the embedded engine knows")


def _own_zone(values: Mapping[str, str], default: Zone | None) -> Zone | None:
    text = values.get("z")
    if text is None:
        return default
    try:
        return 0 if text in _UTC else _zone(re.sub(rf"{_PREFIX}\d\d:)", "", text), _NUMERIC_OFFSET)
    except ValueError:
        if _ODD_ZONE.fullmatch(text):
            raise unsupported(f"the time zone `{text}` of a date") from None
        raise _Mismatch from None


@dataclass(frozen=True, slots=True)
class _Zoned:
    """A local time in milliseconds and its offset from UTC in seconds, in a zone."""

    local: int
    offset: int
    zone: Zone

    @classmethod
    def of_local(cls, local: int, zone: Zone, preferred: int | None = None) -> _Zoned:
        """Follow `ZonedDateTime.ofLocal`: a skipped time moves forward, a repeated one may prefer an offset."""
        if isinstance(zone, int):
            return cls(local, zone, zone)
        first, second = (_offset(_naive(local).replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
        if first < second:  # the clock skips this time
            return cls(local + (second - first) * _SECOND, second, zone)
        return cls(local, second if preferred == second else first, zone)

    @classmethod
    def of_instant(cls, instant: int, zone: Zone) -> _Zoned:
        if isinstance(zone, int):
            return cls(instant + zone * _SECOND, zone, zone)
        offset = _offset(_naive(instant).replace(tzinfo=UTC).astimezone(zone))
        return cls(instant + offset * _SECOND, offset, zone)

    @property
    def instant(self) -> int:
        return self.local - self.offset * _SECOND

    def _at(self, local: int) -> _Zoned:
        return _Zoned.of_local(local, self.zone, self.offset)

    def plus(self, count: int, unit: str) -> _Zoned:
        if unit in _CLOCK_UNITS:
            return _Zoned.of_instant(self.instant + count * _CLOCK_UNITS[unit], self.zone)
        if unit in "dw":
            return self._at(self.local + count * (7 if unit == "w" else 1) * _DAY)
        days, time = divmod(self.local, _DAY)
        year, month, day = _date_of(days)
        months = year * 12 + month - 1 + count * (12 if unit == "y" else 1)
        year, month = months // 12, months % 12 + 1
        return self._at(_days_of(year, month, min(day, _last_day(year, month))) * _DAY + time)

    def rounded(self, unit: str) -> _Zoned:
        """Return the beginning of the unit that contains the time."""
        if unit in _CLOCK_UNITS:
            return self._at(self.local // _CLOCK_UNITS[unit] * _CLOCK_UNITS[unit])
        days = self.local // _DAY
        year, month, _day = _date_of(days)
        first = {
            "d": days,
            "w": days - (days + 3) % 7,
            "M": _days_of(year, month, 1),
            "y": _days_of(year, 1, 1),
        }
        return self._at(first[unit] * _DAY)


_CLOCK_UNITS = {"h": _HOUR, "H": _HOUR, "m": _MINUTE, "s": _SECOND, "S": 1}


def _naive(milliseconds: int) -> datetime:
    # The time zones of the systems differ before 1970, and Python ends with the year 9999.
    if milliseconds < 0 or milliseconds > 253_300_000_000_000:
        raise unsupported("a date before 1970 or after 9990 in a time zone with a name")
    return datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)


def _offset(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def local_of(instant: int, zone: Zone) -> int:
    """Return the local time of a date, as milliseconds since 1970 of a clock in UTC."""
    return _Zoned.of_instant(instant, zone).local


def instant_of(local: int, zone: Zone, before: int | None = None) -> int:
    """Return the date of a local time; of a repeated one the first date, or the last that is not after `before`.

    Raises:
        Refused: with `before`, the clock skips the time.
    """
    first = _Zoned.of_local(local, zone)
    if before is None:
        return first.instant
    if first.local != local:
        raise unsupported(f"an interval whose beginning the clock of {zone} skips")
    last = (
        local - _offset(_naive(local).replace(tzinfo=zone, fold=1)) * _SECOND
        if not isinstance(zone, int)
        else 0
    )
    return last if first.instant < last <= before else first.instant
