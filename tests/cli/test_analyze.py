"""`searchapp analyze` shows every step of analysis in terminals of any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, Cli
from tests.terminal import Terminal


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_no_step_is_truncated(offline: Cli, tmp_path: Path, columns: int) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    words = ["analyze", "nlps", "commutative groups", "--field", "text"]
    with Terminal(*words, home=tmp_path / "home", columns=columns) as terminal:
        assert terminal.wait_for_end() == 0
    text = terminal.raw.decode()
    assert "step" in text and "…" not in text
