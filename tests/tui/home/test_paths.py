"""Dialogs that ask for a path, empty panes, and the order of the tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.kit.content import Plain
from searchapp.tui.kit.dialogs import PathDialog, path_completions
from searchapp.tui.kit.palette import Palette
from searchapp.tui.kit.widgets import TextLine
from tests.cli.conftest import EMBEDDED, run_command
from tests.tui.conftest import SAMPLES, screen_text
from tests.tui.home.conftest import HomeHarness, wait_for, wait_for_text

P = Pilot[None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("data-one", "data-two", "other", ".hidden", "odd\x1bname"):
        (root / name).mkdir(parents=True)
    for name in ("task.toml", "Task.TOML", "notes.txt"):
        (root / name).touch()
    return root


def test_paths_are_completed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert path_completions(f"{folder}/da") == [f"{folder}/data-one/", f"{folder}/data-two/"]
    assert path_completions(f"{folder}/") == [
        f"{folder}/{name}/" for name in ("data-one", "data-two", "other")
    ]
    assert path_completions(f"{folder}/ta", ".toml") == [f"{folder}/task.toml"]
    assert path_completions(f"{folder}/T", ".toml") == [f"{folder}/Task.TOML"]
    assert path_completions(f"{folder}/.h") == [f"{folder}/.hidden/"]
    monkeypatch.chdir(folder)
    assert path_completions("ot") == ["other/"]
    monkeypatch.setenv("HOME", str(folder))
    assert path_completions("~") == ["~/"] and path_completions("~/ot") == ["~/other/"]
    with pytest.raises(OSError):
        path_completions(f"{folder}/nowhere/x")


def line(pilot: P) -> str:
    return pilot.app.screen.query_one(TextLine).value


def news(pilot: P) -> str:
    return str(pilot.app.screen.query_one("#news", Plain).render())


def test_tab_completes_a_path_and_lists_several_ones(home_harness: HomeHarness, folder: Path) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "f", *f"{folder}/d", "tab")
        await wait_for(pilot, lambda: line(pilot) == f"{folder}/data-")
        await pilot.press("tab")
        await wait_for(pilot, lambda: news(pilot) == "data-one/  data-two/")
        await pilot.press("o")
        assert news(pilot) == ""
        await pilot.press("tab")
        await wait_for(pilot, lambda: line(pilot) == f"{folder}/data-one/")
        await pilot.press("x", "tab")
        await wait_for(pilot, lambda: news(pilot) == "no match")
        await pilot.press("ctrl+u", *f"{folder}/nowhere/x", "tab")
        await wait_for(pilot, lambda: news(pilot) == "no match")
        assert line(pilot) == f"{folder}/nowhere/x" and pilot.app.screen is not screen

    home_harness.drive(steps)


def test_a_mistyped_path_stays_for_correction(home_harness: HomeHarness, folder: Path) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("O")
        assert "↵ index    tab complete    esc back" in screen_text(pilot)
        await pilot.press("enter")
        assert news(pilot) == "type a path"
        await pilot.press(*"coking.toml", "enter")
        assert isinstance(pilot.app.screen, PathDialog) and line(pilot) == "coking.toml" and news(pilot)
        await pilot.press("escape", "O")
        assert line(pilot) == "coking.toml"  # the next dialog begins with it
        await pilot.press("ctrl+u", *str(SAMPLES / "own" / "cooking.toml"), "enter")
        await wait_for_text(pilot, "cooking: indexed ")
        await wait_for(pilot, lambda: screen.tasks.states[0].task.name == "cooking")  # own tasks come first

    home_harness.drive(steps, (80, 24))
    result = run_command("tasks", "--json", "--home", home_harness.home, environment=EMBEDDED)
    assert [task["task"] for task in json.loads(result.stdout)["tasks"]][:2] == ["cooking", "nlps"]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
def test_a_list_without_runs_says_how_to_make_one(home_harness: HomeHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert "No runs yet. Index a task first: I in the list of tasks." in screen_text(pilot)
        await pilot.press("I", "s")
        await wait_for_text(pilot, "No runs yet. K ranks the topics of the task under the cursor.")

    home_harness.drive(steps, size)


def test_the_palette_says_at_once_that_nothing_matches(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("ctrl+p", *"zzqq")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        await wait_for(pilot, lambda: palette._is_current)
        assert "no match" in screen_text(pilot)
        await pilot.press("enter")
        assert pilot.app.screen is palette
        await pilot.press("ctrl+u", *"theme")
        await wait_for(pilot, lambda: palette._is_current)  # type: ignore[attr-defined]
        assert "no match" not in screen_text(pilot)

    home_harness.drive(steps)
