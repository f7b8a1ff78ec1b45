"""What `searchapp demo` prints, word for word and figure for figure, on both engines."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import Cli

GOLDEN = Path(__file__).parents[1] / "fixtures" / "golden" / "demo.txt"


def without_engine(text: str) -> str:
    return re.sub(r"on the engine \S+ \S+", "on the engine ENGINE", text)


def test_the_demonstration_prints_what_it_always_did(cli: Cli) -> None:
    result = cli("demo")
    assert result.code == 0, result.stderr
    assert without_engine(result.stdout) == GOLDEN.read_text(encoding="utf-8")
