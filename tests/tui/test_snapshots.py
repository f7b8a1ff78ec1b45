"""Pictures of the screens, compared with those that people have looked at.

SEARCHAPP_UPDATE_SNAPSHOTS=1 writes them anew, after a change of the design or of Textual.
"""

from __future__ import annotations

import gzip
import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.judging.session import Place
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import Judging, drive, settled

FOLDER = Path(__file__).parent / "snapshots"
PINNED = re.search(r"(?m)^textual==(.+)$", (Path(__file__).parents[2] / "constraints.txt").read_text())

SCREENS = {
    "judging": ("1", "0", "1", "s", "x", "m"),
    "help": ("question_mark",),
    "question": ("space", "space", "space", "1"),
    "topics": ("t", "down"),
    "reason": ("r",),
    "note": ("n", *"seen before"),
}


@pytest.mark.skipif(
    PINNED is None or PINNED[1] != version("textual"), reason="another Textual draws another picture"
)
@pytest.mark.parametrize("look", ["dark", "light"])
@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
@pytest.mark.parametrize("name", SCREENS)
def test_screens_look_as_they_did(judging: Judging, name: str, size: tuple[int, int], look: str) -> None:
    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        if look == "light":
            await pilot.press("d")
        await pilot.press(*SCREENS[name])
        await settled(pilot)
        pictures.append(app.export_screenshot(title="searchapp judge"))

    pictures: list[str] = []
    app = judging.app()
    topic = judging.desk.topics[0]
    documents = judging.desk.order(topic).documents
    judging.session("ben").grade([Place(topic, one) for one in documents[4:7]], 1, "by definition")
    judging.desk.refresh()
    drive(app, steps, size)
    (picture,) = pictures
    path = FOLDER / f"{name}-{size[0]}x{size[1]}-{look}.svg.gz"
    if os.environ.get("SEARCHAPP_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(picture.encode(), mtime=0))
    assert gzip.decompress(path.read_bytes()).decode() == picture
