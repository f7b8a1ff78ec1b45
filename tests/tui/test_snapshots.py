"""Pictures of the screens, compared with those that people have looked at.

SEARCHAPP_UPDATE_SNAPSHOTS=1 writes them again, after a change of the design or of Textual.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.judging import events
from searchapp.judging.session import SeenDocument
from searchapp.tui.work import WorkApp, WorkScreen
from tests.tui.conftest import Judging, drive, settled

FOLDER = Path(__file__).parent / "snapshots"
DOCS = Path(__file__).parents[2] / "docs" / "images"
"""Where the pictures are that the documentation shows: they are compared, and written again, like the others."""

PINNED = re.search(r'"textual==(.+)"', (Path(__file__).parents[2] / "pyproject.toml").read_text())

SCREENS = {
    "judging": ("1", "0", "1", "s", "x", "m"),
    "help": ("question_mark",),
    "question": ("space", "space", "space", "1"),
    "topics": ("t", "down"),
    "reason": ("r",),
    "note": ("n", *"seen before"),
    "judged": ("1", "0", "n", *"odd", "enter", "s", "l", "tab", "shift+tab"),
}
DECIDING = {
    "deciding": ("1", "r", "0", *"too general", "enter", "n", *"see 1.2", "enter"),
    "deciding-help": ("question_mark",),
}


pinned = pytest.mark.skipif(
    PINNED is None or PINNED[1] != version("textual"), reason="another Textual draws another picture"
)
looks = pytest.mark.parametrize("look", ["dark", "light"])
sizes = pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])


@pinned
@looks
@sizes
@pytest.mark.parametrize("name", SCREENS)
def test_screens_look_as_they_did(
    judging: Judging, name: str, size: tuple[int, int], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", TickingClock)  # so that pace and order are always the same ones
    monkeypatch.setattr(TickingClock, "ticks", 0)
    app = judging.app()
    topic = judging.judging.topics[0]
    documents = judging.judging.order(topic).documents
    judging.session("ben").grade([SeenDocument(topic, one) for one in documents[4:7]], 1, "by definition")
    judging.judging.refresh()
    compare(app, SCREENS[name], name, size, look)


@pinned
@looks
@sizes
@pytest.mark.parametrize("name", DECIDING)
def test_the_adjudicating_screen_looks_as_it_did(
    judging: Judging, name: str, size: tuple[int, int], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", StandingClock)
    compare(judging.adjudicating(("ann", "ben", "bot")), DECIDING[name], name, size, look)


@pinned
def test_the_pictures_of_the_documentation_are_what_is_seen(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "datetime", TickingClock)
    monkeypatch.setattr(TickingClock, "ticks", 0)
    app = judging.app(unscored=False)
    compare(
        app, ("m", "1", "0", "1", "n", *"see 102", "enter", "s", "x", "1"), "judging", (140, 36), "dark", DOCS
    )


@pinned
def test_the_picture_of_deciding_is_what_is_seen(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "datetime", StandingClock)
    pressed = ("1", "r", "0", *"too general", "enter")
    compare(judging.adjudicating(("ann", "ben", "bot")), pressed, "adjudicating", (140, 36), "dark", DOCS)


class StandingClock(datetime):
    """A clock that tells the same time in every picture."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> StandingClock:
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


class TickingClock(datetime):
    """A clock that goes on eleven seconds each time it is looked at."""

    ticks = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> TickingClock:
        cls.ticks += 11
        return cls(2026, 1, 2, 3, cls.ticks // 60 % 60, cls.ticks % 60, tzinfo=tz)


def compare(
    app: WorkApp,
    pressed: Sequence[str],
    name: str,
    size: tuple[int, int],
    look: str,
    folder: Path = FOLDER,
) -> None:
    """Press keys, and compare the picture with the one that is kept."""

    async def steps(pilot: Pilot[None], screen: WorkScreen) -> None:
        if look == "light":
            await pilot.press("d")
        await pilot.press(*pressed)
        await settled(pilot)
        pictures.append(app.export_screenshot(title="searchapp judge"))

    pictures: list[str] = []
    drive(app, steps, size)
    (picture,) = pictures
    update = bool(os.environ.get("SEARCHAPP_UPDATE_SNAPSHOTS"))
    if folder == DOCS:
        path = folder / f"{name}.svg"
        if update:
            path.write_text(picture, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == picture
        return
    path = folder / f"{name}-{size[0]}x{size[1]}-{look}.svg.gz"
    if update:
        path.write_bytes(gzip.compress(picture.encode(), mtime=0))
    assert gzip.decompress(path.read_bytes()).decode() == picture
