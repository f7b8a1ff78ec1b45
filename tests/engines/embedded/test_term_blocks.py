"""Which absent terms Lucene takes for absent before it looks; what a server makes of them is recorded."""

from __future__ import annotations

from string import ascii_lowercase as letters
from string import ascii_uppercase as capitals

import pytest

from searchapp.engines.embedded.storage.term_blocks import TermBlocks

FULL = [first + second + third for first in "bdf" for second in letters for third in letters]
"""26 terms of each of 26 beginnings, three times: blocks in which there is nothing but blocks."""

TERMS = sorted([*FULL, "d7", *(f"f{letter}" for letter in capitals[:25])])
"""One term more beside the blocks of `d`, and beside those of `f` enough of them for a block of their own."""

LOOKED_FOR = ["bzz0", "d", "d9", "d{", "dab0", "f", "fB0", "fZ", "f`", "faa0"]
"""Absent terms whose place is in a block with terms."""

KNOWN_AS_ABSENT = ["", "a", "b", "b0", "ba0", "bA", "b{", "c", "e", "f{", "fzz0", "g", "é"]
"""Absent terms that come before or after all terms, or whose place is among nothing but blocks."""


@pytest.fixture(scope="module")
def blocks() -> TermBlocks:
    return TermBlocks(term.encode() for term in TERMS)


def test_a_term_is_looked_for_where_there_are_terms(blocks: TermBlocks) -> None:
    asked = [*LOOKED_FOR, *KNOWN_AS_ABSENT]
    assert [term for term in asked if blocks.may_hold(term.encode())] == LOOKED_FOR


def test_every_term_is_found(blocks: TermBlocks) -> None:
    assert all(blocks.may_hold(term.encode()) for term in TERMS)


def test_few_terms_are_one_block() -> None:
    few = TermBlocks([b"b", b"d"])
    assert [term for term in "abcde" if few.may_hold(term.encode())] == ["b", "c", "d"]


def test_long_terms_and_no_terms() -> None:
    assert not TermBlocks([]).may_hold(b"a")
    long = TermBlocks(sorted(b"a" * size + b"c" for size in range(2_000)))
    assert long.may_hold(b"ab")
    assert not long.may_hold(b"d")
