"""Letters with marks, ligatures and full-width forms as ASCII, by the table of Lucene's `ASCIIFoldingFilter`.

The table is data, one line a replacement: `ss: df 1e9e`, with names for the two characters that
the file itself uses. What is not in it stays as it is.
"""

from __future__ import annotations

from functools import cache

from searchapp.analysis.unicode_tables import parse_ranges, read_table

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
    """The term in ASCII, as far as the table goes."""
    return term if term.isascii() else term.translate(_table())
