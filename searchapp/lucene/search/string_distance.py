"""Similarities of two terms from 0 to 1, as float32 (org.apache.lucene.search.spell).

LevenshteinDistance, LuceneLevenshteinDistance, JaroWinklerDistance, NGramDistance
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from searchapp.lucene.analysis.characters import utf16_units
from searchapp.lucene.search.spelling import edit_distance

_ONE = np.float32(1)


def levenshtein(term: str, other: str) -> float:
    """Compare by edits of UTF-16 code units, without swaps."""
    first, second = utf16_units(term), utf16_units(other)
    if not first or not second:
        return float(first == second)
    row = list(range(len(second) + 1))
    for i, unit in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, other_unit in enumerate(second, start=1):
            edits = min(row[j - 1] + 1, row[j] + 1, before + (unit != other_unit))
            before, row[j] = row[j], edits
    return _rest(np.float32(row[-1]), max(len(first), len(second)))


def damerau_levenshtein(term: str, other: str) -> float:
    """Compare by edits of characters, with swaps."""
    if not term or not other:
        return float(max(len(term), len(other)))
    return _rest(np.float32(edit_distance(term, other)), min(len(term), len(other)))


def _rest(cost: np.float32, length: int) -> float:
    return float(_ONE - cost / np.float32(length))


_BOOSTED_FROM = np.float32(0.7)


def jaro_winkler(term: str, other: str) -> float:
    """Compare by common UTF-16 code units at similar places, and by the common beginning."""
    first, second = utf16_units(term), utf16_units(other)
    shorter, longer = (second, first) if len(first) > len(second) else (first, second)
    window = max(len(longer) // 2 - 1, 0)
    in_longer: set[int] = set()
    in_shorter: list[int] = []
    for place, unit in enumerate(shorter):
        near = range(max(place - window, 0), min(place + window + 1, len(longer)))
        match = next((index for index in near if index not in in_longer and longer[index] == unit), None)
        if match is not None:
            in_longer.add(match)
            in_shorter.append(place)
    if not in_shorter:
        return 0.0
    pairs = zip(in_shorter, sorted(in_longer), strict=True)
    swaps = sum(shorter[place] != longer[index] for place, index in pairs) // 2
    prefix = next((place for place, unit in enumerate(shorter) if unit != longer[place]), len(shorter))
    matches = np.float32(len(in_shorter))
    jaro = (
        matches / np.float32(len(first))
        + matches / np.float32(len(second))
        + (matches - np.float32(swaps)) / matches
    ) / np.float32(3)
    if jaro < _BOOSTED_FROM:
        return float(jaro)
    scale = min(np.float32(0.1), _ONE / np.float32(len(longer)))
    return float(jaro + scale * np.float32(prefix) * (_ONE - jaro))


def ngram(term: str, other: str) -> float:
    """Compare by edits of pairs of UTF-16 code units."""
    first, second = utf16_units(term), utf16_units(other)
    longest = max(len(first), len(second))
    if not first or not second:
        return float(first == second)
    if min(len(first), len(second)) < 2:
        equal = sum(unit == other_unit for unit, other_unit in zip(first, second, strict=False))
        return float(np.float32(equal) / np.float32(longest))
    padded, other_padded = f"\0{first}", f"\0{second}"
    before = [np.float32(index) for index in range(len(first) + 1)]
    for j in range(1, len(second) + 1):
        pair = other_padded[j - 1 : j + 1]
        row = [np.float32(j)]
        for i in range(1, len(first) + 1):
            own = padded[i - 1 : i + 1]
            cost = sum(unit != other_unit for unit, other_unit in zip(own, pair, strict=True))
            compared = 2 - sum(unit == other_unit == "\0" for unit, other_unit in zip(own, pair, strict=True))
            change = np.float32(cost) / np.float32(compared)
            row.append(min(row[i - 1] + _ONE, before[i] + _ONE, before[i - 1] + change))
        before = row
    return _rest(before[-1], longest)


DISTANCES: dict[str, Callable[[str, str], float] | None] = {
    "internal": None,  # the weight of the fuzzy query
    "levenshtein": levenshtein,
    "damerau_levenshtein": damerau_levenshtein,
    "jaro_winkler": jaro_winkler,
    "ngram": ngram,
}
