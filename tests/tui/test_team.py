"""The judging screen and the prompts of a team that shares a real cluster."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_judgments
from searchapp.judging import team
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.team import Synchronizer, synchronize
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import judging as work
from tests.server.faults import FaultProxy
from tests.tui.conftest import JudgingHarness, drive, screen_text, wait_until

P = Pilot[None]


@pytest.fixture
def settings(fault_proxy: FaultProxy, index_prefix: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, engine="elasticsearch", url=fault_proxy.url, index_prefix=index_prefix)


@pytest.fixture
def synchronizer(
    judging: JudgingHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Synchronizer]:
    monkeypatch.setattr(team, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(team, "FETCH_SECONDS", 0.1)
    monkeypatch.setattr(work, "TEAM_SECONDS", 0.02)
    synchronizer = Synchronizer(
        judging.log.path,
        lambda: open_judgments(settings, attempts=1, timeout=5),
        judgments_address(settings),
    )
    synchronizer.start()
    yield synchronizer
    synchronizer.stop(20)


def test_judgments_waiting_for_the_cluster_are_shown(
    judging: JudgingHarness, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        fault_proxy.answer(503, times=None)
        await pilot.press("1", "0")
        assert "saved  " in screen_text(pilot)
        await wait_until(pilot, lambda: "▲ 2 wait for the cluster" in screen_text(pilot))
        fault_proxy.heal()
        await wait_until(pilot, lambda: "for the cluster" not in screen_text(pilot))
        assert judging.log.waiting(synchronizer.address) == 0

    app = judging.app()
    judging.own_session.session.synchronizer = synchronizer
    drive(app, steps)


def test_judgments_that_are_sent_at_once_are_not_shown_as_waiting(
    judging: JudgingHarness, synchronizer: Synchronizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key in ("1", "0", "1"):
            await pilot.press(key)
            await wait_until(pilot, lambda: "for the cluster" not in screen_text(pilot))

    monkeypatch.setattr(work, "TEAM_SECONDS", 0.5)  # longer than sending takes
    app = judging.app()
    judging.own_session.session.synchronizer = synchronizer
    drive(app, steps)


def test_an_unresponsive_server_does_not_block_keys(
    judging: JudgingHarness, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        fault_proxy.delay(3.0, times=None)
        await pilot.press("1")
        await asyncio.sleep(0.3)  # the judgment is being sent by now
        start = time.monotonic()
        await pilot.press("0", "1", "0")
        assert time.monotonic() - start < 2.0
        assert len(judging.events()) == 4
        assert "4 wait for the cluster" in screen_text(pilot)

    app = judging.app()
    judging.own_session.session.synchronizer = synchronizer
    drive(app, steps)


def test_judgments_of_others_are_shown_on_arrival(
    judging: JudgingHarness, synchronizer: Synchronizer, settings: Settings, tmp_path: Path
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.document_id
        assert document is not None
        with JudgmentLog(tmp_path / "ben" / "judgments.sqlite") as log:
            event = Author("ben").event(
                "nlps", screen.topic_id, document, Action.grade, grade=1, text="by definition"
            )
            log.append([event])
            with closing(open_judgments(settings)) as index:
                synchronize(log, index)
        await wait_until(pilot, lambda: "1 judgment by ben arrived" in screen_text(pilot))
        await wait_until(pilot, lambda: "by definition" in screen_text(pilot))
        assert judging.events() == [event]

    app = judging.app(show_others=True)
    judging.own_session.session.synchronizer = synchronizer
    drive(app, steps)


def test_prompts_report_waiting_judgments_once(
    judging: JudgingHarness, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    fault_proxy.answer(503, times=None)
    judging.app()
    judging.own_session.session.synchronizer = synchronizer
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        deadline = time.monotonic() + 20
        while judging.events() and synchronizer.trouble is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return next(lines)

    out = io.StringIO()
    JudgePrompts(judging.own_session, judging.run_pages, "nlps", ask=ask, out=out).converse()
    # The failure is reported once, not after each judgment.
    assert out.getvalue().count("for the cluster, saved on this machine until then: http") == 1
