"""The two looks of the interface."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="searchapp-dark",
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
        "faint": "#7d8799",
        "line": "#2d3544",
        "cursor": "#2a3548",
        "picked": "#23404a",
    },
)
LIGHT = Theme(
    name="searchapp-light",
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
        "faint": "#6c6f76",
        "line": "#d6d1c2",
        "cursor": "#dde6f4",
        "picked": "#d3ebe6",
    },
)
