"""The themes: what can be read in them, the terminal's own colours, and none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.color import Color as RichColor
from rich.color import ColorType
from rich.style import Style
from textual.color import Color
from textual.pilot import Pilot
from textual.screen import Screen

from searchapp.config.settings import THEMES
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.themes import BY_NAME, theme_of
from tests.tui.conftest import Judging, drive, text_of

P = Pilot[None]
OWN = ("dark", "light")
SAID_IN = ("primary", "secondary", "accent", "success", "warning", "error", "match")
BEHIND = ("background", "surface", "panel", "cursor", "picked")
READABLE, LARGE = 4.5, 3.0
"""Ratios of brightness that the Web's guidelines ask for: of text, and of large or bold text."""

PALETTES = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "VGA": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "Tango": "2e3436 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf "
    "555753 ef2929 8ae234 fce94f 729fcf ad7fa8 34e2e2 eeeeec",
}  # fmt: skip
"""The sixteen colours of terminals that many have."""


def contrast(one: Color, other: Color) -> float:
    """The ratio of two colours' brightness, from 1 to 21, as the Web's guidelines (WCAG 2) define it."""

    def luminance(colour: Color) -> float:
        parts = [part / 255 for part in (colour.r, colour.g, colour.b)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    less, more = sorted((luminance(one), luminance(other)))
    return (more + 0.05) / (less + 0.05)


def colours(theme: str) -> dict[str, Color]:
    """All colours of a theme by the names of their variables."""
    held = BY_NAME[theme].to_color_system().generate() | BY_NAME[theme].variables
    return {name: Color.parse(held[name]) for name in (*SAID_IN, *BEHIND, "foreground", "faint", "line")}


@pytest.mark.parametrize("theme", OWN)
def test_text_stands_out_from_what_is_behind_it(theme: str) -> None:
    every = colours(theme)
    for behind in BEHIND:
        assert contrast(every["foreground"], every[behind]) >= READABLE, behind
        for name in SAID_IN:
            assert contrast(every[name], every[behind]) >= LARGE, f"{name} on {behind}"
    for behind in ("background", "surface"):
        for name in (*SAID_IN, "foreground"):
            assert contrast(every[name], every[behind]) >= READABLE, f"{name} on {behind}"
        assert contrast(every["faint"], every[behind]) >= LARGE


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("theme", "behind"), [("ansi-dark", 0), ("ansi-light", 15)])
def test_colours_of_the_terminal_stand_out_in_usual_palettes(theme: str, behind: int, palette: str) -> None:
    sixteen = [Color.parse(f"#{one}") for one in PALETTES[palette].split()]
    every = colours(theme)
    for name in SAID_IN:
        number = every[name].ansi
        assert number is not None and number >= 0
        assert contrast(sixteen[number], sixteen[behind]) >= LARGE, name
    for name in (*BEHIND, "foreground"):
        assert every[name].ansi == -1, f"{name} is not the terminal's own"


BRIGHT_BLACK = 8


def styles(screen: Screen[Any]) -> list[Style]:
    return [one.style for strip in screen._compositor.render_strips() for one in strip if one.style]


def colours_of(style: Style) -> list[RichColor]:
    return [one for one in (style.color, style.bgcolor) if one is not None]


@pytest.mark.parametrize("without", [False, True], ids=["coloured", "NO_COLOR"])
def test_a_key_goes_through_the_themes_which_draw_in_the_colours_that_they_may(
    judging: Judging, monkeypatch: pytest.MonkeyPatch, without: bool
) -> None:
    if without:
        monkeypatch.setenv("NO_COLOR", "1")
    app = judging.app()

    def require_right_colours(theme: str) -> None:
        drawn = styles(app.screen)
        every = {one for style in drawn for one in colours_of(style)}
        if theme in OWN:
            assert all(one.triplet for one in every)
            assert all(len(set(one.triplet or ())) == 1 for one in every) == without  # shades of grey
        elif without:
            assert all(one.is_default for one in every)
        else:
            assert {one.type for one in every} == {ColorType.DEFAULT, ColorType.STANDARD}
            assert not any(style.color and style.color.number == BRIGHT_BLACK for style in drawn)
        if theme not in OWN:
            assert any(style.dim for style in drawn)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "s", "space")
        for theme in THEMES:
            assert theme_of(app) == theme
            require_right_colours(theme)
            is_reversed = any(style.reverse and style.bold for style in styles(screen))
            assert is_reversed == (theme not in OWN)  # the line with the cursor
            await pilot.press("r")  # a question
            require_right_colours(theme)
            await pilot.press("escape", "d")
        assert theme_of(app) == THEMES[0] and f"theme {THEMES[0]}" in text_of(app)

    drive(app, steps, (80, 24))


@pytest.mark.parametrize("name", ["ansi-light", "compact"])
def test_the_settings_name_looks(judging: Judging, name: str) -> None:
    what = "spacing" if name == "compact" else "theme"
    (judging.home / "settings.toml").write_text(f'[judge]\n{what} = "{name}"\n')
    app = judging.app()
    assert app.has_class("-compact") == (name == "compact")
    assert theme_of(app) == (name if name in THEMES else "dark")


def test_compact_screens_show_more(judging: Judging, tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int, int]] = {}

    for spacing in ("normal", "compact"):
        (judging.home / "settings.toml").write_text(f'[judge]\nspacing = "{spacing}"\n')
        app = judging.app()

        async def steps(pilot: P, screen: JudgeScreen, spacing: str = spacing) -> None:
            document = screen.query_one("#document")
            lines, cells = screen.ranking.page, document.scrollable_content_region.width
            await pilot.press("question_mark")
            help_lines = pilot.app.screen.query_one(".help").scrollable_content_region.height
            seen[spacing] = lines, cells, help_lines

        drive(app, steps, (80, 24))
    assert all(more > less for more, less in zip(seen["compact"], seen["normal"], strict=True)), seen
