"""Boundaries of sentences and words are those of Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.lucene.search.break_iterator import BreakIterator

RECORDED = Path(__file__).parents[2] / "fixtures" / "highlighting" / "break_iterator.txt"


@pytest.mark.parametrize("kind", ["sentence", "word"])
def test_boundaries_are_those_of_java(kind: str) -> None:
    cases = [
        line.split() for line in RECORDED.read_text(encoding="ascii").splitlines() if line.startswith(kind)
    ]
    assert len(cases) > 50
    for _kind, text, *calls in cases:
        units = "".join(chr(int(text[start : start + 4], 16)) for start in range(0, len(text), 4))
        boundaries = BreakIterator(kind, units)
        for call in calls:
            offset, result = map(int, call[1:].split("="))
            found = boundaries.following(offset) if call[0] == "f" else boundaries.preceding(offset)
            assert found == result, (units, call)
