"""Characters as in Java: properties of a fixed Unicode version, ASCII folding, UTF-16 code units and offsets.

The tables in `data/` make an index independent of the versions of Python, `regex` and the JVM: Unicode 16, as in Java
25 on which Elasticsearch 9.4 runs, and Unicode 12.1 for the word boundaries of Lucene's StandardTokenizer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from itertools import accumulate
from unicodedata import normalize

CATEGORIES = (
    *("Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp"),
    *("Cc", "Cf", "Co", "Cs", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf"),
)


def read_table(name: str) -> Iterator[tuple[str, str]]:
    """Yield the lines `key: values` of a data file without `#` comments."""
    text = resources.files(__package__).joinpath("data", name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, values = line.partition(":")
            yield key, values.strip()


def parse_ranges(values: str) -> list[tuple[int, int]]:
    """Parse first and last code points, such as `41-5a 61`."""
    pairs = (item.partition("-") for item in values.split())
    return [(int(low, 16), int(high or low, 16)) for low, _, high in pairs]


def as_set(ranges: list[tuple[int, int]]) -> str:
    """Return the ranges as the content of regular expression brackets."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" if low < high else f"\\U{low:08x}" for low, high in ranges)


@cache
def _categories() -> dict[str, str]:
    return dict(read_table("general_category.txt"))


def category_ranges(name: str) -> list[tuple[int, int]]:
    """Return the code points of a general category as ranges."""
    return parse_ranges(_categories()[name])


@cache
def category_set(*names: str, last: int = 0x10FFFF) -> str:
    """Return the code points of general categories (`Lu`, or the prefix `L`), for brackets."""
    chosen = [key for key in CATEGORIES if key.startswith(names)]
    ranges = merge_ranges([pair for key in chosen for pair in category_ranges(key)])
    return as_set([(low, min(high, last)) for low, high in ranges if low <= last])


def merge_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge adjacent and overlapping ranges."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return result


@cache
def _cases(name: str) -> dict[int, int]:
    """Read Java's `Character.toLowerCase` or `toUpperCase` from runs `first-last/step: distance`."""
    table = {}
    for run, distance in read_table(name):
        span, _, step = run.partition("/")
        low, _, high = span.partition("-")
        for code in range(int(low, 16), int(high or low, 16) + 1, int(step or 1)):
            table[code] = code + int(distance)
    return table


@cache
def _cased() -> re.Pattern[str]:
    return re.compile(f"[{as_set(merge_ranges([(code, code) for code in _cases('lower_case.txt')]))}]")


def lower(text: str) -> str:
    """Lower-case each code point separately: no final sigma, and İ becomes i."""
    if text.isascii():
        return text.lower()
    table = _cases("lower_case.txt")
    return _cased().sub(lambda match: chr(table[ord(match[0])]), text)


def upper(text: str) -> str:
    """Upper-case each code point separately: ß stays."""
    return text.upper() if text.isascii() else text.translate(_cases("upper_case.txt"))


_NAMED = {"colon": ":", "hash": "#"}


@cache
def _table() -> dict[int, str]:
    table = {}
    for replacement, values in read_table("ascii_folding.txt"):
        text = _NAMED.get(replacement, replacement)
        for low, high in parse_ranges(values):
            table.update(dict.fromkeys(range(low, high + 1), text))
    return table


def fold(term: str) -> str:
    """Replace characters by ASCII, as far as the table allows."""
    return term if term.isascii() else term.translate(_table())


@cache
def _digits() -> dict[int, str]:
    ranges = category_ranges("Nd")  # each begins with a zero
    return {code: str((code - low) % 10) for low, high in ranges for code in range(low, high + 1)}


def ascii_digits(term: str) -> str:
    """Replace decimal digits of any script by ASCII digits."""
    return term if term.isascii() else term.translate(_digits())


_USUAL_WIDTH = {
    code: normalize("NFKC", chr(code)) for code in (*range(0xFF01, 0xFF5F), *range(0xFF65, 0xFFA0))
}
_VOICED_KANA = re.compile("[\u30a6-\u30fd\uff66-\uff9d][\uff9e\uff9f]")


def usual_width(term: str) -> str:
    """Replace wide ASCII and narrow Katakana, and join voice marks, as Lucene's `CJKWidthFilter`."""
    if term.isascii():
        return term
    joined = _VOICED_KANA.sub(lambda match: normalize("NFC", match[0].translate(_USUAL_WIDTH)), term)
    return joined.translate(_USUAL_WIDTH)


_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_HALF = re.compile("[\ud800-\udfff]")


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text) + len(_ASTRAL.findall(text))


def utf16_units(text: str) -> str:
    """Replace each character beyond U+FFFF by its two surrogates."""
    return _ASTRAL.sub(lambda match: _surrogates(ord(match[0]) - 0x10000), text)


def _surrogates(code: int) -> str:
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def code_units_end(text: str, start: int, units: int) -> int:
    """Return the last index for which `text[start:index]` has at most this many UTF-16 code units."""
    end = min(start + units, len(text))
    while (excess := utf16_length(text[start:end]) - units) > 0:
        end -= (excess + 1) // 2
    return end


def from_utf16_units(units: str) -> str:
    """Join surrogates; lone ones become U+FFFD, as in a Lucene term."""
    if not _HALF.search(units):
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def joined_units(units: str) -> str:
    """Join surrogates; lone ones stay."""
    if not _HALF.search(units):
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def replace_halves(term: str) -> str:
    """Replace lone surrogates by U+FFFD, as in an indexed term."""
    return term if term.isascii() or not _HALF.search(term) else from_utf16_units(term)


def has_halves(terms: Iterable[str]) -> bool:
    """Return whether a term has a lone surrogate."""
    text = "".join(terms)
    return not text.isascii() and _HALF.search(text) is not None


def has_astral(text: str) -> bool:
    """Return whether a text has a character beyond U+FFFF."""
    return not text.isascii() and _ASTRAL.search(text) is not None


def utf16_offsets(text: str) -> list[int] | None:
    """Return the UTF-16 offset of each index of the text and of its end; None if all are equal."""
    if text.isascii() or not _ASTRAL.search(text):
        return None
    return list(accumulate((2 if char > "\uffff" else 1 for char in text), initial=0))


class Corrections:
    """Offset corrections of a char filter, as in Lucene's `BaseCharFilter`: from `offsets[i]` on, add `shifts[i]`.

    A filter runs while its output is read: a reader that stops at an offset ignores a removal there.
    """

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._shifts: list[int] = []
        self._before_removal: dict[int, int] = {}

    @property
    def total(self) -> int:
        return self._shifts[-1] if self._shifts else 0

    def add(self, offset: int, shift: int, *, removed: bool = False) -> None:
        """Set the shift from an output offset on; `removed`: the filter removed text there without a replacement."""
        if removed:
            self._before_removal.setdefault(offset, self.total)
        if self._offsets and self._offsets[-1] == offset:
            self._shifts[-1] = shift
        else:
            self._offsets.append(offset)
            self._shifts.append(shift)

    def correct(self, offset: int, *, unread: bool = False) -> int:
        """Convert an output offset to an input offset; `unread`: before reading on."""
        if unread and offset in self._before_removal:
            return max(0, offset + self._before_removal[offset])
        index = bisect_right(self._offsets, offset) - 1
        # An insertion at the beginning could lead to a negative offset.
        return max(0, offset + self._shifts[index]) if index >= 0 else offset
