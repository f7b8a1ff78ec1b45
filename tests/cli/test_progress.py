"""What bars say of the work that goes on, in terminals of any width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.terminal import Terminal

LABEL = "verifying smart-relations-wikidata"

DRAWN = f"""
from searchapp.cli.output import Bars
with Bars().stage("{LABEL}", 123_456, in_bytes=True) as advance:
    advance(2_800)
"""


def drawn(home: Path, columns: int) -> str:
    """Everything that was drawn, one line after the other."""
    with Terminal(home=home, columns=columns, program=["-c", DRAWN]) as terminal:
        assert terminal.wait_for_end() == 0
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.raw.decode())


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_nothing_of_a_bar_is_cut(tmp_path: Path, columns: int) -> None:
    shown = drawn(tmp_path, columns)
    assert "…" not in shown
    assert re.sub(r"\s", "", LABEL) in re.sub(r"\s", "", shown)
    assert ("2.8/123.5 kB" in shown) == (columns >= 60)
