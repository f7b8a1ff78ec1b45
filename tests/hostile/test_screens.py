"""Screens neutralise control sequences and invisible characters and restore the terminal."""

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
"""Fields that only commands show, or that screens do not always show."""


@pytest.fixture(scope="module", params=turns())
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return judged_world(tmp_path_factory.mktemp("screens"), Hostile(request.param))


@pytest.fixture(scope="module")
def results(world: World) -> dict[str, Result]:
    return {drive.__name__: drive(world) for drive in DRIVES}


def all_screens() -> Iterator[type[Screen[object]]]:
    """Yield the concrete screen classes: those without subclasses."""
    names = [module.name for module in pkgutil.walk_packages(searchapp.tui.__path__, "searchapp.tui.")]
    modules = [
        importlib.import_module(name) for name in names
    ]  # all before the loop, because __subclasses__ knows only imported classes
    for value in {value for module in modules for value in vars(module).values() if isinstance(value, type)}:
        if issubclass(value, Screen) and value.__module__ in names and not value.__subclasses__():
            yield value


def test_every_screen_is_driven(results: dict[str, Result]) -> None:
    visited = frozenset().union(*(result.visited for result in results.values()))
    names = {screen.__name__ for screen in all_screens()}
    assert visited == names - {"LoadingScreen"}, (  # which precedes the first screen of each drive
        "add it to SCREENS of tests/hostile/screens.py and call wait_for_screen() where it opens"
    )


def test_programs_exit_with_the_expected_code(results: dict[str, Result]) -> None:
    codes = dict.fromkeys(results, 0) | {"crash": 1}
    assert {name: result.code for name, result in results.items()} == codes


def test_screens_write_only_allowed_sequences(results: dict[str, Result]) -> None:
    assert not {name: result.output.wrong for name, result in results.items() if result.output.wrong}


def test_the_terminal_is_restored(results: dict[str, Result]) -> None:
    for result in results.values():
        assert result.was_raw and not result.is_raw
        assert result.output.is_restored, result.output


def test_only_copying_writes_to_the_clipboard(results: dict[str, Result]) -> None:
    names = ("judge", "search", "topics", "compare")
    assert {
        name: len(result.output.copied) for name, result in results.items() if result.output.copied
    } == dict.fromkeys(names, 1)
    for name in names:
        (copied,) = results[name].output.copied
        assert copied.strip() and visible(copied) == copied


def test_every_field_is_shown_on_a_screen(results: dict[str, Result], world: World) -> None:
    text = "".join(result.output.text for result in results.values())
    unseen = {name for mark, name in world.hostile.fields.items() if mark not in text}
    assert unseen <= UNSEEN_ON_SCREENS
