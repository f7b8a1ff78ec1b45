"""The themes: two with their own colours, two with the terminal's.

`ansi-dark` and `ansi-light` use text colours that differ from the background in common palettes, reverse the cursor's
line, and dim faint text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter, Monochrome, NoColor
from textual.theme import BUILTIN_THEMES, Theme

from searchapp.config.settings import SPACINGS, THEMES

# Prefix of the names in Textual, which has other themes called `ansi-dark` and `ansi-light`.
PREFIX = "searchapp-"

# The CSS class for compact spacing.
COMPACT = "-compact"

DARK = Theme(
    name=f"{PREFIX}dark",
    dark=True,
    background="#11141a",
    surface="#171b23",
    panel="#1f2530",
    foreground="#cbd3e1",
    primary="#82aaff",
    secondary="#7fd1c7",
    accent="#ffc777",
    success="#a3d977",
    warning="#ffc777",
    error="#ff7b86",
    variables={
        "match": "#ffc777",
        "faint": "#9da7b8",
        "line": "#626e87",
        "cursor": "#2a3548",
        "picked": "#23404a",
    },
)
LIGHT = Theme(
    name=f"{PREFIX}light",
    dark=False,
    background="#fbfaf6",
    surface="#f5f3ec",
    panel="#eae7dc",
    foreground="#2a2d34",
    primary="#2b5cad",
    secondary="#16756c",
    accent="#9a5200",
    success="#3b7a1a",
    warning="#9a5200",
    error="#b8202f",
    variables={
        "match": "#9a4a00",
        "faint": "#5f6269",
        "line": "#888375",
        "cursor": "#dde6f4",
        "picked": "#d3ebe6",
    },
)

# Variables of both themes with the terminal's colours; `ColorFilter` dims `ansi_bright_black`.
_OF_TERMINAL = {
    "surface": "ansi_default",
    "panel": "ansi_default",
    "faint": "ansi_bright_black",
    "line": "ansi_bright_black",
    "cursor": "ansi_default",
    "picked": "ansi_default",
    "border": "ansi_default",
    "border-blurred": "ansi_bright_black",
    "input-cursor-foreground": "ansi_default",
    "input-cursor-background": "ansi_default",
    "input-cursor-text-style": "reverse",
    "screen-selection-foreground": "ansi_black",
}

ANSI_DARK = Theme(
    name=f"{PREFIX}ansi-dark",
    dark=True,
    ansi=True,
    background="ansi_default",
    foreground="ansi_default",
    primary="ansi_cyan",
    secondary="ansi_bright_magenta",
    accent="ansi_bright_yellow",
    success="ansi_green",
    warning="ansi_bright_yellow",
    error="ansi_bright_red",
    variables=BUILTIN_THEMES["ansi-dark"].variables
    | _OF_TERMINAL
    | {"match": "ansi_bright_yellow", "screen-selection-background": "ansi_cyan"},
)
ANSI_LIGHT = Theme(
    name=f"{PREFIX}ansi-light",
    dark=False,
    ansi=True,
    background="ansi_default",
    foreground="ansi_default",
    primary="ansi_blue",
    secondary="ansi_magenta",
    accent="ansi_blue",
    success="ansi_blue",
    warning="ansi_magenta",
    error="ansi_red",
    variables=BUILTIN_THEMES["ansi-light"].variables
    | _OF_TERMINAL
    | {"match": "ansi_red", "screen-selection-background": "ansi_white"},
)

# By name in the settings, in the order of the theme key.
BY_NAME = dict(zip(THEMES, (DARK, LIGHT, ANSI_DARK, ANSI_LIGHT), strict=True))

_BRIGHT_BLACK = 8


class ColorFilter(LineFilter):
    """Removes colours for NO_COLOR, and dims faint text in the terminal's colours.

    In some palettes bright black, the usual faint colour, equals the background. The Linux console shows dimmed text
    in dark grey, so there it is not dimmed.
    """

    def __init__(self, app: App[None]) -> None:
        super().__init__()
        self._app = app
        self._shades, self._none = Monochrome(), NoColor()
        self._dims = os.environ.get("TERM") != "linux"

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        is_native = self._app.native_ansi_color
        if is_native:
            segments = [
                Segment(text, _with_faint(style, self._dims), control) for text, style, control in segments
            ]
        if self._app.no_color:
            # Shades of grey need known colours.
            segments = (self._none if is_native else self._shades).apply(segments, background)
        return segments


@lru_cache(1024)
def _with_faint(style: Style | None, dims: bool) -> Style | None:
    color = None if style is None else style.color
    if style is None or color is None:
        return style
    is_faint = color.type is ColorType.STANDARD and color.number == _BRIGHT_BLACK
    return style + Style(color="default", dim=dims) if is_faint else style


def dress(app: App[None], theme: str, spacing: str = SPACINGS[0]) -> None:
    """Set the theme and the spacing of an app."""
    app._filters = [each for each in app._filters if not isinstance(each, Monochrome | NoColor)]
    app._filters.append(ColorFilter(app))
    for registered in BY_NAME.values():
        app.register_theme(registered)
    _set_theme(app, theme)
    app.set_class(spacing == "compact", COMPACT)


def theme_of(app: App[None]) -> str:
    """Return the name of an app's theme in the settings."""
    return app.theme.removeprefix(PREFIX)


def next_theme(app: App[None], names: Sequence[str] = THEMES) -> str:
    """Switch an app to the next theme; return its name."""
    name = names[(names.index(theme_of(app)) + 1) % len(names)]
    _set_theme(app, name)
    return name


def _set_theme(app: App[None], name: str) -> None:
    theme = BY_NAME[name]
    app.theme = theme.name
    for each in app._filters:
        if isinstance(each, ColorFilter):
            each.enabled = app.no_color or theme.ansi  # it takes time for every line
