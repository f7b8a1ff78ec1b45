"""Themes have readable colours, and use those of the terminal or none if asked to."""

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
from tests.tui.conftest import JudgingHarness, drive, screen_text

P = Pilot[None]
OWN_THEMES = ("dark", "light")
TEXT_COLOURS = ("primary", "secondary", "accent", "success", "warning", "error", "match")
BACKGROUNDS = ("background", "surface", "panel", "cursor", "picked")
TEXT_CONTRAST, LARGE_CONTRAST = 4.5, 3.0
"""Lowest contrasts of text and of large or bold text by WCAG 2.2."""

PALETTES = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "VGA": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "Tango": "2e3436 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf "
    "555753 ef2929 8ae234 fce94f 729fcf ad7fa8 34e2e2 eeeeec",
}  # fmt: skip
"""The sixteen colours of common terminals."""


def contrast(first: Color, second: Color) -> float:
    """Compute the contrast of two colours, from 1 to 21, by WCAG 2."""

    def luminance(colour: Color) -> float:
        parts = [part / 255 for part in (colour.r, colour.g, colour.b)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    darker, brighter = sorted((luminance(first), luminance(second)))
    return (brighter + 0.05) / (darker + 0.05)


def theme_colours(theme: str) -> dict[str, Color]:
    """Return all colours of a theme by the names of their variables."""
    variables = BY_NAME[theme].to_color_system().generate() | BY_NAME[theme].variables
    return {
        name: Color.parse(variables[name])
        for name in (*TEXT_COLOURS, *BACKGROUNDS, "foreground", "faint", "line")
    }


@pytest.mark.parametrize("theme", OWN_THEMES)
def test_text_has_enough_contrast_with_its_background(theme: str) -> None:
    colours = theme_colours(theme)
    for background in BACKGROUNDS:
        for name in ("foreground", "faint"):
            assert contrast(colours[name], colours[background]) >= TEXT_CONTRAST, f"{name} on {background}"
        for name in TEXT_COLOURS:
            assert contrast(colours[name], colours[background]) >= LARGE_CONTRAST, f"{name} on {background}"
    for background in ("background", "surface"):
        for name in (*TEXT_COLOURS, "foreground"):
            assert contrast(colours[name], colours[background]) >= TEXT_CONTRAST, f"{name} on {background}"


@pytest.mark.parametrize("theme", OWN_THEMES)
def test_borders_of_panes_have_enough_contrast_with_their_background(theme: str) -> None:
    colours = theme_colours(theme)
    for background in ("background", "surface", "panel"):
        assert contrast(colours["line"], colours[background]) >= LARGE_CONTRAST, background


# The text and the background of terminals with these palettes, by theme.
TEXT_AND_BACKGROUND = {"ansi-dark": (7, 0), "ansi-light": (0, 15)}


# As most terminals dim; the Linux console, which has the VGA palette, shows dark grey instead.
DIMMED_SHARE = 2 / 3

# Lowest contrasts of dimmed text and of coloured text in a palette.
LOWEST = {
    "xterm": (TEXT_CONTRAST, TEXT_CONTRAST),
    "VGA": (4.3, TEXT_CONTRAST),
    "Tango": (4.1, LARGE_CONTRAST),
}


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("theme", TEXT_AND_BACKGROUND)
def test_dimmed_text_of_the_terminal_has_enough_contrast_in_common_palettes(theme: str, palette: str) -> None:
    palette_colours = [Color.parse(f"#{code}") for code in PALETTES[palette].split()]
    text, background = (palette_colours[number] for number in TEXT_AND_BACKGROUND[theme])
    dimmed = background.blend(text, DIMMED_SHARE)
    for name in ("faint", "line"):
        assert BY_NAME[theme].variables[name] == "ansi_bright_black"  # which is drawn as dimmed text
    assert contrast(dimmed, background) >= LOWEST[palette][0]
    assert contrast(text, background) >= TEXT_CONTRAST


def test_nothing_is_dimmed_on_the_linux_console(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "linux")
    (judging.home / "settings.toml").write_text('[judge]\ntheme = "ansi-dark"\n')
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert not any(style.dim for style in styles(screen))
        assert not any(style.color and style.color.number == BRIGHT_BLACK for style in styles(screen))

    drive(app, steps, (80, 24))


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("theme", "background"), [("ansi-dark", 0), ("ansi-light", 15)])
def test_terminal_colours_have_enough_contrast_in_common_palettes(
    theme: str, background: int, palette: str
) -> None:
    palette_colours = [Color.parse(f"#{code}") for code in PALETTES[palette].split()]
    colours = theme_colours(theme)
    for name in TEXT_COLOURS:
        number = colours[name].ansi
        assert number is not None and number >= 0
        assert contrast(palette_colours[number], palette_colours[background]) >= LOWEST[palette][1], name
    for name in (*BACKGROUNDS, "foreground"):
        assert colours[name].ansi == -1, f"{name} is not the terminal's own"


BRIGHT_BLACK = 8


def styles(screen: Screen[Any]) -> list[Style]:
    return [
        segment.style for strip in screen._compositor.render_strips() for segment in strip if segment.style
    ]


def colours_of(style: Style) -> list[RichColor]:
    return [colour for colour in (style.color, style.bgcolor) if colour is not None]


@pytest.mark.parametrize("no_color", [False, True], ids=["coloured", "NO_COLOR"])
def test_a_key_cycles_through_themes_that_draw_only_in_permitted_colours(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    app = judging.app()

    def require_right_colours(theme: str) -> None:
        segment_styles = styles(app.screen)
        colours = {colour for style in segment_styles for colour in colours_of(style)}
        if theme in OWN_THEMES:
            assert all(colour.triplet for colour in colours)
            is_grey = all(len(set(colour.triplet or ())) == 1 for colour in colours)
            assert is_grey == no_color
        elif no_color:
            assert all(colour.is_default for colour in colours)
        else:
            assert {colour.type for colour in colours} == {ColorType.DEFAULT, ColorType.STANDARD}
            assert not any(style.color and style.color.number == BRIGHT_BLACK for style in segment_styles)
        if theme not in OWN_THEMES:
            assert any(style.dim for style in segment_styles)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "s", "space")
        for theme in THEMES:
            assert theme_of(app) == theme
            require_right_colours(theme)
            is_reversed = any(style.reverse and style.bold for style in styles(screen))
            assert is_reversed == (theme not in OWN_THEMES)  # the line of the cursor
            await pilot.press("r")  # a question
            require_right_colours(theme)
            await pilot.press("escape", "d")
        assert theme_of(app) == THEMES[0] and f"theme {THEMES[0]}" in screen_text(pilot)

    drive(app, steps, (80, 24))


@pytest.mark.parametrize("name", ["ansi-light", "compact"])
def test_settings_choose_theme_and_spacing(judging: JudgingHarness, name: str) -> None:
    setting = "spacing" if name == "compact" else "theme"
    (judging.home / "settings.toml").write_text(f'[judge]\n{setting} = "{name}"\n')
    app = judging.app()
    assert app.has_class("-compact") == (name == "compact")
    assert theme_of(app) == (name if name in THEMES else "dark")


def test_compact_spacing_shows_more_lines(judging: JudgingHarness, tmp_path: Path) -> None:
    sizes: dict[str, tuple[int, int, int]] = {}

    for spacing in ("normal", "compact"):
        (judging.home / "settings.toml").write_text(f'[judge]\nspacing = "{spacing}"\n')
        app = judging.app()

        async def steps(pilot: P, screen: JudgeScreen, spacing: str = spacing) -> None:
            document = screen.query_one("#document")
            lines, cells = screen.ranking.page, document.scrollable_content_region.width
            await pilot.press("question_mark")
            help_lines = pilot.app.screen.query_one(".help").scrollable_content_region.height
            sizes[spacing] = lines, cells, help_lines

        drive(app, steps, (80, 24))
    assert all(larger > smaller for larger, smaller in zip(sizes["compact"], sizes["normal"], strict=True)), (
        sizes
    )
