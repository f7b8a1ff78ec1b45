"""The settings screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.resolution import resolution, toml_literal
from searchapp.config.settings import DECLARED
from searchapp.errors import DataError
from searchapp.tui.config.screen import GRADES, ConfigScreen, SettingRows
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.dialogs import CheckedDialog, Help
from searchapp.tui.kit.keys import load
from tests.tui.conftest import press, require_complete, screen_text

P = Pilot[None]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


def make_app(home: Path, environ: Mapping[str, str] | None = None) -> KeyApp:
    own = load(home, GRADES)
    settings = resolution({}, {"SEARCHAPP_HOME": str(home), **(environ or {})}, home)
    return KeyApp(ConfigScreen(settings, own.keys), own.theme, own.spacing)


def drive(app: KeyApp, steps: Callable[[P], Awaitable[None]]) -> None:
    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())


def screen_lines(pilot: P) -> list[str]:
    return screen_text(pilot).split("\n")


def test_every_setting_is_in_the_list_and_described(home: Path) -> None:
    app = make_app(home)

    async def steps(pilot: P) -> None:
        for setting in DECLARED:
            text = screen_text(pilot)
            assert f"▶ {setting.name} " in text and f"─{setting.name}─" in text
            assert setting.about.split()[0] in text and "set by" in text
            await press(pilot, "down")
        await press(pilot, "home")
        assert "▶ engine " in screen_text(pilot)
        await press(pilot, "end")
        assert f"▶ {DECLARED[-1].name} " in screen_text(pilot)
        await press(pilot, "pageup", "k", "j")
        assert app.screen.query_one(SettingRows).cursor < len(DECLARED) - 1

    drive(app, steps)


def test_value_source_and_line_of_a_setting_are_shown(home: Path) -> None:
    (home / "settings.toml").write_text('# mine\nannotator = "ann"\n')
    app = make_app(home, {"SEARCHAPP_URL": "http://me:hunter2@there:9200", "SEARCHAPP_API_KEY": "opensesame"})

    async def steps(pilot: P) -> None:
        assert isinstance(app.screen, ConfigScreen)
        require_complete(app.screen)
        assert all(len(line) <= 80 for line in screen_lines(pilot)) and len(screen_lines(pilot)) == 24
        lines = screen_lines(pilot)
        assert any(
            "url " in line and "http://there:9200" in line and "SEARCHAPP_URL" in line for line in lines
        )
        assert any("api_key" in line and " set " in line for line in lines)
        app.screen.query_one(SettingRows).move([setting.name for setting in DECLARED].index("annotator"))
        await pilot.pause()
        lines = screen_lines(pilot)
        assert any("annotator" in line and "ann" in line and "user file" in line for line in lines)
        assert "settings.toml:2)" in "".join(screen_text(pilot).split())
        for _ in DECLARED:
            await press(pilot, "down")
            assert "hunter2" not in screen_text(pilot) and "opensesame" not in screen_text(pilot)

    drive(app, steps)


def test_hostile_values_are_escaped(home: Path) -> None:
    (home / "settings.toml").write_text('annotator = "\\u001b[2J\\u202e[bold]ann\\n2"\n')
    app = make_app(home)

    async def steps(pilot: P) -> None:
        app.screen.query_one(SettingRows).move([setting.name for setting in DECLARED].index("annotator"))
        await pilot.pause()
        text = screen_text(pilot)
        assert "␛[2J<U+202E>[bold]ann" in text and "\x1b" not in text

    drive(app, steps)


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q"])
def test_keys_leave_the_screen(home: Path, key: str) -> None:
    app = make_app(home)

    async def steps(pilot: P) -> None:
        await press(pilot, "1", "u", "question_mark")
        assert isinstance(app.screen, Help) and "Grade" not in screen_text(pilot)
        await press(pilot, "escape", "d")
        assert app.theme == "searchapp-light" and app.is_running
        await press(pilot, key)
        assert app._exit

    drive(app, steps)


def test_leaving_shows_the_screen_below(home: Path) -> None:
    app = make_app(home)

    async def steps(pilot: P) -> None:
        below = app.screen
        settings = resolution({}, {"SEARCHAPP_HOME": str(home)}, home)
        assert isinstance(below, ConfigScreen)
        await app.push_screen(ConfigScreen(settings, below.keys))
        await press(pilot, "q")
        assert app.screen is below and not app._exit

    drive(app, steps)


def test_keys_and_theme_of_the_user_file_apply(home: Path) -> None:
    (home / "settings.toml").write_text('[judge]\ntheme = "light"\n[judge.keys]\ndown = "v"\ngrade_7 = "h"\n')
    app = make_app(home)

    async def steps(pilot: P) -> None:
        assert app.theme == "searchapp-light"
        await press(pilot, "v", "h")
        assert "▶ url " in screen_text(pilot)

    drive(app, steps)
    (home / "settings.toml").write_text('[judge.keys]\ndown = "v"\nup = "v"\n')
    with pytest.raises(DataError, match="the key 'v'"):
        make_app(home)


def drive_change(home: Path, name: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    """Type another value of a setting; return the copied texts and the text of the screen."""
    app, copied = make_app(home), list[str]()
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    texts = []

    async def steps(pilot: P) -> None:
        app.screen.query_one(SettingRows).move([setting.name for setting in DECLARED].index(name))
        await press(pilot, "enter")
        if isinstance(app.screen, CheckedDialog):
            texts.append(app.screen._line.value)
            await press(pilot, "ctrl+u", *typed, "enter")
        await pilot.pause()
        texts.append(screen_text(pilot))
        assert isinstance(app.screen, ConfigScreen) or "copy as TOML" in texts[-1]

    drive(app, steps)
    return copied, " ".join(" ".join(texts).split())


@pytest.mark.parametrize(
    ("name", "typed", "copied", "place"),
    [
        ("seed", "7", "seed = 7", "as the first line of"),
        ("annotator", "ann o'hara", 'annotator = "ann o\'hara"', "in place of annotator in line 2 of"),
        ("judge.theme", "light", 'theme = "light"', "in place of theme in line 4 of"),
        ("judge.goal", "20", "goal = 20", "below line 3 of"),
        ("search.restore", "false", "[search]\nrestore = false", "at the end of"),
        ("topics.theme", "light", 'topics.theme = "light"', "below line 1 of"),
        ("trusted", '["/a"]', 'trusted = ["/a"]', "as the first line of"),
    ],
)
def test_another_value_is_copied_with_its_place_in_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, typed: str, copied: str, place: str
) -> None:
    file = home / "settings.toml"
    file.write_text('topics.spacing = "compact"\nannotator = "ann"  # me\n[judge]\ntheme = "dark"\n')
    texts, screen = drive_change(home, name, typed, monkeypatch)
    assert texts == [copied]
    assert f"copied: paste it {place}" in screen
    lines = file.read_text().splitlines()
    match place.split():
        case ["in", "place", *_, number, "of"]:
            lines[int(number) - 1] = copied
        case ["below", "line", number, "of"]:
            lines.insert(int(number), copied)
        case ["as", *_]:
            lines.insert(0, copied)
        case _:
            lines.append(copied)
    file.write_text("\n".join(lines))
    value = resolution({}, {"SEARCHAPP_HOME": str(home)}, home).values[name]
    assert value.file == file and value.value is not None and toml_literal(value.value) in copied


@pytest.mark.parametrize(
    ("name", "typed", "reason"),
    [
        ("engine", "lucene", "there is no engine 'lucene'"),
        ("judge.theme", "drak", "judge.theme must be dark, light, "),
        ("annotator", "true", "annotator must be a text in quotes"),
        ("judge.goal", "0", "judge.goal must be a whole number from 1"),
        ("judge.keys", "", "judge.keys can't be copied as TOML"),
        ("quiet", "", "quiet can't be copied as TOML: use --quiet"),
        ("seed", "", "type a value"),
    ],
)
def test_a_wrong_value_is_not_copied(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, typed: str, reason: str
) -> None:
    copied, screen = drive_change(home, name, typed, monkeypatch)
    assert not copied and reason in screen


def test_secrets_are_not_shown_when_they_are_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "settings.toml"
    file.write_text('url = "https://me:hunter2@there"\napi_key = "opensesame"\n')
    file.chmod(0o600)
    for name in ("url", "api_key"):
        copied, screen = drive_change(home, name, "https://new:hunter3@there", monkeypatch)
        assert copied == [f'{name} = "https://new:hunter3@there"']
        assert "hunter" not in screen and "opensesame" not in screen
