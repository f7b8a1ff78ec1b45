"""The judging screen and the prompts of a team that shares a cluster, which is a real one."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Iterator
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
from tests.tui.conftest import Judging, drive, text_of

P = Pilot[None]


@pytest.fixture
def settings(fault_proxy: FaultProxy, index_prefix: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, engine="elasticsearch", url=fault_proxy.url, index_prefix=index_prefix)


@pytest.fixture
def synchronizer(
    judging: Judging, settings: Settings, monkeypatch: pytest.MonkeyPatch
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


async def shows(pilot: P, condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, text_of(pilot.app)  # type: ignore[arg-type]
        await asyncio.sleep(0.02)
        await pilot.pause()


def test_what_waits_for_the_cluster_is_shown_until_it_has_it(
    judging: Judging, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        fault_proxy.answer(503, times=None)
        await pilot.press("1", "0")
        assert "saved  " in text_of(app)
        await shows(pilot, lambda: "▲ 2 wait for the cluster" in text_of(app))
        fault_proxy.heal()
        await shows(pilot, lambda: "for the cluster" not in text_of(app))
        assert judging.log.waiting(synchronizer.address) == 0

    app = judging.app()
    judging.judging.session.synchronizer = synchronizer
    drive(app, steps)


def test_what_is_sent_at_once_is_not_said_to_wait_for_long(
    judging: Judging, synchronizer: Synchronizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key in ("1", "0", "1"):
            await pilot.press(key)
            await shows(pilot, lambda: "for the cluster" not in text_of(app))

    monkeypatch.setattr(work, "TEAM_SECONDS", 0.5)  # it is sent before anybody looks
    app = judging.app()
    judging.judging.session.synchronizer = synchronizer
    drive(app, steps)


def test_a_server_that_does_not_answer_keeps_no_key_waiting(
    judging: Judging, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        fault_proxy.delay(3.0, times=None)
        await pilot.press("1")
        await asyncio.sleep(0.3)  # now it is being sent
        begin = time.monotonic()
        await pilot.press("0", "1", "0")
        assert time.monotonic() - begin < 2.0
        assert len(judging.events()) == 4
        assert "4 wait for the cluster" in text_of(app)

    app = judging.app()
    judging.judging.session.synchronizer = synchronizer
    drive(app, steps)


def test_what_others_send_is_shown_as_it_comes(
    judging: Judging, synchronizer: Synchronizer, settings: Settings, tmp_path: Path
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
        await shows(pilot, lambda: "1 judgment by ben arrived" in text_of(app))
        await shows(pilot, lambda: "by definition" in text_of(app))
        assert judging.events() == [event]

    app = judging.app(show_others=True)
    judging.judging.session.synchronizer = synchronizer
    drive(app, steps)


def test_prompts_tell_what_waits(
    judging: Judging, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    fault_proxy.answer(503, times=None)
    app = judging.app()
    assert app is not None
    judging.judging.session.synchronizer = synchronizer
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        end = time.monotonic() + 20
        while judging.events() and synchronizer.trouble is None and time.monotonic() < end:
            time.sleep(0.02)
        return next(lines)

    out = io.StringIO()
    JudgePrompts(judging.judging, judging.run_pages, "nlps", ask=ask, out=out).converse()
    # Once for as long as it lasts, and not after each judgment.
    assert out.getvalue().count("for the cluster, saved on this machine until then: http") == 1
