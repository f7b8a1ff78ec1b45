"""What `searchapp demo` prints, word for word and figure for figure, on both engines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from searchapp.app import demo
from tests.cli.conftest import Cli
from tests.profile import FULL, UPDATED

ON_A_SERVER = ("nlps", "explanation-2021", "smart-relations-wikidata")  # the widest of each column
"""The samples that the short profile shows there; that both engines rank all of them the same is tested with them."""

CHANGED = "a new sample or recipe prints more: SEARCHAPP_UPDATE_SNAPSHOTS=1 writes demo.txt again, which somebody reads"

GOLDEN = Path(__file__).parents[1] / "fixtures" / "golden" / "demo.txt"


def without_engine(text: str) -> str:
    return re.sub(r"on the engine \S+ \S+", "on the engine ENGINE", text)


def printed_of(tasks: Sequence[str]) -> str:
    """What is printed of these samples."""
    if UPDATED:
        pytest.skip("demo.txt is being written")
    golden, every = GOLDEN.read_text(encoding="utf-8"), [sample.task.name for sample in demo.samples()]
    others = tuple(f"   {name} " for name in every if name not in tasks)
    lines = [line for line in golden.splitlines(keepends=True) if not line.startswith(others)]
    return "".join(lines).replace(f"Index {len(every)} sample", f"Index {len(tasks)} sample")


def test_the_demonstration_prints_what_it_always_did(offline: Cli) -> None:
    result = offline("demo")
    assert result.code == 0, result.stderr
    if UPDATED:
        GOLDEN.write_text(without_engine(result.stdout), encoding="utf-8")
    assert without_engine(result.stdout) == GOLDEN.read_text(encoding="utf-8"), CHANGED


def test_the_demonstration_on_a_server_prints_the_same(server: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [sample for sample in demo.samples() if FULL or sample.task.name in ON_A_SERVER]
    expected = printed_of([sample.task.name for sample in samples])
    monkeypatch.setattr(demo, "samples", lambda: samples)
    result = server("demo")
    assert result.code == 0, result.stderr
    assert without_engine(result.stdout) == expected
