"""Keys of the settings file, and the help, which starts with the focused pane."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.settings import BY_NAME
from searchapp.errors import DataError
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.keys import KEY_ACTIONS, ScreenSettings, grade_actions, load
from tests.tui.conftest import JudgingHarness, drive, require_complete, screen_text

LABELS = ("not relevant", "relevant")


def settings(tmp_path: Path, text: str) -> Path:
    (tmp_path / "settings.toml").write_text(text)
    return tmp_path


def test_every_setting_of_a_screen_has_its_field() -> None:
    screens = {name.partition(".")[0] for name in BY_NAME if name.endswith(".keys")}
    declared = [name.partition(".") for name in BY_NAME]
    assert {key for screen, _, key in declared if screen in screens} == {
        field.name for field in fields(ScreenSettings)
    }, "give ScreenSettings in searchapp/tui/kit/keys.py a field of the setting's name"


def test_each_default_key_has_one_action() -> None:
    keys = [key for action in (*grade_actions([""] * 10), *KEY_ACTIONS) for key in action.keys]
    assert len(keys) == len(set(keys))


def test_without_a_file_the_defaults_apply(tmp_path: Path) -> None:
    own = load(tmp_path, LABELS)
    actions = [own.keys.action(key) for key in "1u2"]
    assert actions == ["grade_1", "undo", None] and own.theme == "dark"


def test_keys_are_assigned_to_other_actions(tmp_path: Path) -> None:
    own = load(settings(tmp_path, '[judge.keys]\nundo = ["z", "["]\nprevious_topic = "{"\n'), LABELS).keys
    assert (own.action("z"), own.action("left_square_bracket"), own.action("u")) == ("undo", "undo", None)
    assert own.shown("undo") == "z" and own.all_shown("undo") == "z ["


def test_a_grade_above_9_can_be_given_a_key(tmp_path: Path) -> None:
    labels = [str(grade) for grade in range(12)]
    assert load(tmp_path, labels).keys.shown("grade_11") == ""
    assert load(settings(tmp_path, '[judge.keys]\ngrade_11 = "e"\n'), labels).keys.action("e") == "grade_11"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[judge.keys]\nundone = "z"\n', r"unknown action 'undone' \(did you mean undo\?\)"),
        ('[judge.keys]\nundo = "z"\nredo = "z"\n', "assigns the key 'z' to both 'undo' and 'redo'"),
        ('[judge.keys]\nundo = "s"\n', "assigns the key of 'skip' to 'undo'"),
        ("[judge.keys]\nundo = 1\n", "'undo' in .* must be a key name"),
        ("[judge.keys]\nundo = []\n", "'undo' in .* must be a key name"),
        ('[judge]\ntheme = "pink"\n', "must be dark, light, ansi-dark or ansi-light, not 'pink'"),
        ('[judge]\nspacing = "tight"\n', r"judge\.spacing must be normal or compact, not 'tight'"),
        ("[judge]\nrestore = true\n", "unknown setting 'restore'"),
        ("[judge]\ncolour = 1\n", "unknown setting 'colour'"),
        ("judge = 1\n", "judge must be a table"),
        ("[judge.keys", "invalid TOML"),
    ],
)
def test_an_error_in_the_file_is_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(settings(tmp_path, text), LABELS)


P = Pilot[None]


async def help_lines(pilot: P, app: KeyApp) -> list[str]:
    """Return the lines of the help, which F1 opens."""
    await pilot.press("f1")
    assert isinstance(app.screen, Help)
    lines = [line.strip(" │") for line in screen_text(pilot).splitlines() if "│" in line]
    await pilot.press("escape")
    return [line for line in lines if line]


def test_the_help_of_judging_starts_with_the_focused_pane(judging: JudgingHarness) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        require_complete(screen)
        for name, title in (("ranking", "The ranking"), ("topic", "The topic"), ("document", "The document")):
            screen.set_focus(screen.query_one(f"#{name}"))
            assert any(title in line for line in (await help_lines(pilot, app))[:8])
        await pilot.press("f")
        lines = "\n".join(await help_lines(pilot, app))
        assert "The topic filter" in lines and screen.query_one("#filter").has_focus
        assert "^o " in lines and "' ^o" not in lines.split("Judge")[0]  # in an input line ' is text

    drive(app, steps)


def test_the_help_of_adjudication_starts_with_the_focused_pane(judging: JudgingHarness) -> None:
    app = judging.adjudicating()

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        require_complete(screen)
        assert any("The disagreements" in line for line in (await help_lines(pilot, app))[:8])

    drive(app, steps)
