"""No screen lets hostile text act on a terminal or hide in it, and all leave the terminal as it was."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from textual.screen import Screen

import searchapp.tui
from searchapp.text import visible
from tests.hostile import screens
from tests.hostile.payload import Hostile, turns
from tests.hostile.screens import Result
from tests.hostile.test_commands import judged_world
from tests.hostile.world import World

DRIVES = (
    screens.judge,
    screens.adjudicate,
    screens.search,
    screens.topics,
    screens.compare,
    screens.leave_unsaved,
    screens.crash,
    screens.config,
    screens.browse,
)
UNSEEN_ON_SCREENS = {
    "folder of the task", "task file", "gold file", "mapping file", "name of a column", "name of an analyzer",
    "name of a token filter", "name of a recipe", "title of the task", "about the task", "about a recipe",
    "name of a signal", "run directory", "further field of document 0", "note of annotator 1",
}  # fmt: skip
"""What only commands show, or screens not always."""


@pytest.fixture(scope="module", params=turns())
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return judged_world(tmp_path_factory.mktemp("screens"), Hostile(request.param))


@pytest.fixture(scope="module")
def results(world: World) -> dict[str, Result]:
    return {drive.__name__: drive(world) for drive in DRIVES}


def all_screens() -> Iterator[type[Screen[object]]]:
    """The screens that are shown: those of which no other one is made."""
    names = [module.name for module in pkgutil.walk_packages(searchapp.tui.__path__, "searchapp.tui.")]
    modules = [importlib.import_module(name) for name in names]  # all, before any is asked what is made of it
    for value in {value for module in modules for value in vars(module).values() if isinstance(value, type)}:
        if issubclass(value, Screen) and value.__module__ in names and not value.__subclasses__():
            yield value


def test_every_screen_is_driven(results: dict[str, Result]) -> None:
    driven = frozenset().union(*(result.seen for result in results.values()))
    there = {screen.__name__ for screen in all_screens()}
    assert driven == there, (
        "name it in SCREENS of tests/hostile/screens.py, and see() it in the drive that opens it"
    )


def test_they_end_as_they_should(results: dict[str, Result]) -> None:
    codes = dict.fromkeys(results, 0) | {"crash": 1}
    assert {name: result.code for name, result in results.items()} == codes


def test_nothing_acts_on_the_terminal(results: dict[str, Result]) -> None:
    assert not {name: result.written.wrong for name, result in results.items() if result.written.wrong}


def test_the_terminal_is_left_as_it_was(results: dict[str, Result]) -> None:
    for result in results.values():
        assert result.was_raw and not result.is_raw
        assert result.written.is_restored, result.written


def test_only_what_was_copied_goes_to_the_clipboard(results: dict[str, Result]) -> None:
    assert {
        name: len(result.written.copied) for name, result in results.items() if result.written.copied
    } == {
        "judge": 1,
        "search": 1,
        "topics": 1,
        "compare": 1,
    }
    for name in ("judge", "search", "topics", "compare"):
        (copied,) = results[name].written.copied
        assert copied.strip() and visible(copied) == copied


def test_every_field_is_shown_on_a_screen(results: dict[str, Result], world: World) -> None:
    shown = "".join(result.written.text for result in results.values())
    unseen = {name for mark, name in world.hostile.fields.items() if mark not in shown}
    assert unseen <= UNSEEN_ON_SCREENS
