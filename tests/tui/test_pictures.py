"""The pictures in the documentation, which `scripts/pictures.py` draws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.pictures import IMAGES, PICTURES, ROOT, SPLITS, Picture, draw_once
from searchapp.tui.gold.screen import GoldScreen
from searchapp.tui.kit.judging import GradingScreen, WorkScreen
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search.panes import SearchView
from searchapp.tui.search.requests import RankingScreen
from tests.tui.conftest import SampleRuns
from tests.tui.pictures import pinned

BASE_CLASSES = {WorkScreen, GradingScreen, GoldScreen, RankingScreen, SearchView}
"""Base classes of screens."""


def screen_classes(base: type[KeyScreen] = KeyScreen) -> Iterator[type[KeyScreen]]:
    for subclass in base.__subclasses__():
        if subclass.__module__.startswith("searchapp.") and subclass not in BASE_CLASSES:
            yield subclass
        yield from screen_classes(subclass)


def test_every_screen_has_a_picture() -> None:
    classes = {picture.screen for picture in PICTURES}
    assert set(screen_classes()) == classes, "give each screen a line in PICTURES of scripts/pictures.py"
    assert {picture.path for picture in PICTURES} == set(IMAGES.glob("*.svg")), "run: make pictures"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_used_in_the_documentation_and_loads_nothing(picture: Picture) -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    link = f"images/{picture.name}.svg)"
    assert any(link in document.read_text(encoding="utf-8") for document in documents), (
        f"no document has ![](…{link}"
    )
    text = picture.path.read_text(encoding="utf-8")
    assert "font-face" not in text and "url(http" not in text and "href" not in text and "@import" not in text
    assert str(Path.home()) not in text and "/tmp" not in text


@pinned
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_current(picture: Picture, samples: SampleRuns) -> None:
    runs = {task: samples.run(task) for task in SPLITS}
    assert draw_once(picture, samples.home, runs) == picture.path.read_text(encoding="utf-8"), (
        "run: make pictures"
    )
