"""The screen with all settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.resolution import resolution
from searchapp.config.settings import DECLARED
from searchapp.errors import DataError
from searchapp.tui.config.screen import ConfigApp, ConfigScreen, SettingRows
from searchapp.tui.kit.dialogs import Help
from tests.tui.conftest import press, require_complete

P = Pilot[None]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


def opened(home: Path, environ: Mapping[str, str] | None = None) -> ConfigApp:
    return ConfigApp(resolution({}, {"SEARCHAPP_HOME": str(home), **(environ or {})}, home))


def drive(app: ConfigApp, steps: Callable[[P], Awaitable[None]]) -> None:
    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())


def lines_of(app: ConfigApp) -> list[str]:
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in line) for line in strips]


def text_of(app: ConfigApp) -> str:
    return "\n".join(lines_of(app))


def test_every_setting_is_in_the_list_and_described(home: Path) -> None:
    app = opened(home)

    async def steps(pilot: P) -> None:
        for setting in DECLARED:
            text = text_of(app)
            assert f"▶ {setting.name} " in text and f"─{setting.name}─" in text
            assert setting.about.split()[0] in text and "set by" in text
            await press(pilot, "down")
        await press(pilot, "home")
        assert "▶ engine " in text_of(app)
        await press(pilot, "end")
        assert f"▶ {DECLARED[-1].name} " in text_of(app)
        await press(pilot, "pageup", "k", "j")
        assert app.screen.query_one(SettingRows).cursor < len(DECLARED) - 1

    drive(app, steps)


def test_the_value_its_source_and_the_line_are_in_sight(home: Path) -> None:
    (home / "settings.toml").write_text('# mine\nannotator = "ann"\n')
    app = opened(home, {"SEARCHAPP_URL": "http://me:hunter2@there:9200", "SEARCHAPP_API_KEY": "opensesame"})

    async def steps(pilot: P) -> None:
        assert isinstance(app.screen, ConfigScreen)
        require_complete(app.screen)
        assert all(len(line) <= 80 for line in lines_of(app)) and len(lines_of(app)) == 24
        lines = lines_of(app)
        assert any(
            "url " in line and "http://there:9200" in line and "SEARCHAPP_URL" in line for line in lines
        )
        assert any("api_key" in line and " set " in line for line in lines)
        app.screen.query_one(SettingRows).move([one.name for one in DECLARED].index("annotator"))
        await pilot.pause()
        lines = lines_of(app)
        assert any("annotator" in line and "ann" in line and "user file" in line for line in lines)
        assert "settings.toml:2)" in "".join(text_of(app).split())
        for _ in DECLARED:
            await press(pilot, "down")
            assert "hunter2" not in text_of(app) and "opensesame" not in text_of(app)

    drive(app, steps)


def test_values_of_others_are_shown_harmlessly(home: Path) -> None:
    (home / "settings.toml").write_text('annotator = "\\u001b[2J\\u202e[bold]ann\\n2"\n')
    app = opened(home)

    async def steps(pilot: P) -> None:
        app.screen.query_one(SettingRows).move([one.name for one in DECLARED].index("annotator"))
        await pilot.pause()
        text = text_of(app)
        assert "␛[2J<U+202E>[bold]ann" in text and "\x1b" not in text

    drive(app, steps)


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q"])
def test_a_key_leaves(home: Path, key: str) -> None:
    app = opened(home)

    async def steps(pilot: P) -> None:
        await press(pilot, "1", "u", "question_mark")
        assert isinstance(app.screen, Help) and "Grade" not in text_of(app)
        await press(pilot, "escape", "d")
        assert app.theme == "searchapp-light" and app.is_running
        await press(pilot, key)
        assert app._exit

    drive(app, steps)


def test_above_another_screen_it_goes_back_to_that(home: Path) -> None:
    app = opened(home)

    async def steps(pilot: P) -> None:
        below = app.screen
        found = resolution({}, {"SEARCHAPP_HOME": str(home)}, home)
        assert isinstance(below, ConfigScreen)
        await app.push_screen(ConfigScreen(found, below.keys))
        await press(pilot, "q")
        assert app.screen is below and not app._exit

    drive(app, steps)


def test_keys_and_look_of_the_users_file_hold(home: Path) -> None:
    (home / "settings.toml").write_text('[judge]\ntheme = "light"\n[judge.keys]\ndown = "v"\ngrade_7 = "h"\n')
    app = opened(home)

    async def steps(pilot: P) -> None:
        assert app.theme == "searchapp-light"
        await press(pilot, "v", "h")
        assert "▶ url " in text_of(app)

    drive(app, steps)
    (home / "settings.toml").write_text('[judge.keys]\ndown = "v"\nup = "v"\n')
    with pytest.raises(DataError, match="the key 'v'"):
        opened(home)
