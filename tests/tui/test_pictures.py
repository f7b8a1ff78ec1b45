"""The pictures of the documentation, which `scripts/pictures.py` makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.pictures import IMAGES, PICTURES, ROOT, SPLITS, Picture, draw_once
from searchapp.tui.gold.screen import GoldScreen
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search.panes import SearchView
from searchapp.tui.search.requests import RankingScreen
from tests.tui.conftest import Prepared
from tests.tui.pictures import pinned

NO_SCREEN = {WorkScreen, GoldScreen, RankingScreen, SearchView}
"""What other screens are made of."""


def every_screen(of: type[KeyScreen] = KeyScreen) -> Iterator[type[KeyScreen]]:
    for one in of.__subclasses__():
        if one.__module__.startswith("searchapp.") and one not in NO_SCREEN:
            yield one
        yield from every_screen(one)


def test_every_screen_has_a_picture() -> None:
    pictured = {one.screen for one in PICTURES}
    assert set(every_screen()) == pictured, "give each screen a line in PICTURES of scripts/pictures.py"
    assert {one.path for one in PICTURES} == set(IMAGES.glob("*.svg")), "run: make pictures"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_a_picture_is_shown_by_a_document_and_loads_nothing(picture: Picture) -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = f"images/{picture.name}.svg)"
    assert any(shown in one.read_text(encoding="utf-8") for one in documents), f"no document has ![](…{shown}"
    text = picture.path.read_text(encoding="utf-8")
    assert "font-face" not in text and "url(http" not in text and "href" not in text and "@import" not in text
    assert str(Path.home()) not in text and "/tmp" not in text


@pinned
@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_pictures_are_what_is_seen(picture: Picture, prepared: Prepared) -> None:
    runs = {task: prepared.run(task) for task in SPLITS}
    assert draw_once(picture, prepared.home, runs) == picture.path.read_text(encoding="utf-8"), (
        "run: make pictures"
    )
