"""What Java knows about characters, frozen at one Unicode version.

Python, the `regex` package and the JVM each bring a Unicode version of their own. An index must not change when
one of them is updated, so the tables are files in `data/`: Unicode 16 as in Java 25, on which Elasticsearch 9.4
runs, and Unicode 12.1 for the word boundaries, to which Lucene's StandardTokenizer is bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

CATEGORIES = (
    *("Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp"),
    *("Cc", "Cf", "Co", "Cs", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf"),
)


def read_table(name: str) -> Iterator[tuple[str, str]]:
    """The lines `key: values` of a data file; `#` begins a comment line."""
    text = resources.files(__package__).joinpath("data", name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, values = line.partition(":")
            yield key, values.strip()


def parse_ranges(values: str) -> list[tuple[int, int]]:
    """`41-5a 61` as the pairs of first and last code point that it means."""
    pairs = (item.partition("-") for item in values.split())
    return [(int(low, 16), int(high or low, 16)) for low, _, high in pairs]


def as_set(ranges: list[tuple[int, int]]) -> str:
    """The ranges as what stands between the brackets of a regular expression."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" if low < high else f"\\U{low:08x}" for low, high in ranges)


@cache
def _categories() -> dict[str, str]:
    return dict(read_table("general_category.txt"))


@cache
def category_set(*names: str, last: int = 0x10FFFF) -> str:
    """The code points of these general categories (`Lu`, or `L` for all that begin so), for brackets."""
    chosen = [key for key in CATEGORIES if key.startswith(names)]
    ranges = merged([pair for key in chosen for pair in parse_ranges(_categories()[key])])
    return as_set([(low, min(high, last)) for low, high in ranges if low <= last])


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same code points in ascending order and as few ranges as possible."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return result


@cache
def _lower_cases() -> dict[int, int]:
    """Java's `Character.toLowerCase`: runs `first-last/step: distance`."""
    table = {}
    for run, distance in read_table("lower_case.txt"):
        span, _, step = run.partition("/")
        low, _, high = span.partition("-")
        for code in range(int(low, 16), int(high or low, 16) + 1, int(step or 1)):
            table[code] = code + int(distance)
    return table


@cache
def _cased() -> re.Pattern[str]:
    return re.compile(f"[{as_set(merged([(code, code) for code in _lower_cases()]))}]")


def lower(text: str) -> str:
    """The text in lower case, one code point at a time: no final sigma, and İ becomes a plain i."""
    if text.isascii():
        return text.lower()
    table = _lower_cases()
    return _cased().sub(lambda match: chr(table[ord(match[0])]), text)
