"""What the panes of the screen of settings are for."""

from __future__ import annotations

from searchapp.tui.about import About

ABOUT = {
    "settings": About(
        "The settings", "Every setting, its value, and where that comes from.", (), ("next_pane", "jump")
    ),
    "about": About("The setting", "What it is for, and what sets it.", (), ("next_pane",)),
}
