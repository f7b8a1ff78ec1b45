"""`searchapp demo` prints the expected text and figures on both engines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from searchapp.app import demo
from tests.cli.conftest import Cli
from tests.profile import FULL, UPDATED

ON_A_SERVER = ("nlps", "explanation-2021", "smart-relations-wikidata")  # the widest of each column
"""The samples of the short profile on a server; other tests compare the engines on all samples."""

CHANGED = "if a sample or recipe is new, write demo.txt with SEARCHAPP_UPDATE_SNAPSHOTS=1 and review it"

GOLDEN = Path(__file__).parents[1] / "fixtures" / "golden" / "demo.txt"


def without_engine(text: str) -> str:
    return re.sub(r"on the engine \S+ \S+", "on the engine ENGINE", text)


def expected_output(tasks: Sequence[str]) -> str:
    """Return the expected output for these samples only."""
    if UPDATED:
        pytest.skip("demo.txt is being written")
    golden, names = GOLDEN.read_text(encoding="utf-8"), [sample.task.name for sample in demo.samples()]
    other_rows = tuple(f"   {name} " for name in names if name not in tasks)
    lines = [line for line in golden.splitlines(keepends=True) if not line.startswith(other_rows)]
    return "".join(lines).replace(f"Index {len(names)} sample", f"Index {len(tasks)} sample")


def test_the_demonstration_prints_the_expected_output(offline: Cli) -> None:
    result = offline("demo")
    assert result.code == 0, result.stderr
    if UPDATED:
        GOLDEN.write_text(without_engine(result.stdout), encoding="utf-8")
    assert without_engine(result.stdout) == GOLDEN.read_text(encoding="utf-8"), CHANGED


def test_the_demonstration_on_a_server_prints_the_same(server: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [sample for sample in demo.samples() if FULL or sample.task.name in ON_A_SERVER]
    expected = expected_output([sample.task.name for sample in samples])
    monkeypatch.setattr(demo, "samples", lambda: samples)
    result = server("demo")
    assert result.code == 0, result.stderr
    assert without_engine(result.stdout) == expected
