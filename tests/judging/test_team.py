"""The background exchange of events with a team."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from searchapp.judging import team
from searchapp.judging.team import EventIndex, Synchronizer


def test_a_synchronizer_reports_an_unexpected_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect() -> EventIndex:
        raise ValueError("no such thing")

    monkeypatch.setattr(team, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(team, "FETCH_SECONDS", 0.02)
    synchronizer = Synchronizer(tmp_path / "log.sqlite", connect, "there")
    synchronizer.start()
    end = time.monotonic() + 10
    while synchronizer.trouble is None and time.monotonic() < end:
        time.sleep(0.01)
    synchronizer.stop(10)
    assert synchronizer.trouble == "judgments are no longer exchanged: ValueError: no such thing"
