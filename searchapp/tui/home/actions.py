"""What can be done on the home screen, and by which keys."""

from __future__ import annotations

from pathlib import Path

from searchapp.tui.keys import KeyAction, ScreenSettings, load_section, shared

SECTION = "browse"

_OPEN, _MAKE, _MOVE, _LOOK, _ALL = "Open", "Make", "Move", "Look", "All else"

KEY_ACTIONS = (
    KeyAction("open", _OPEN, "Search the task, or judge the run, that the cursor is on", ("enter",), "open"),
    KeyAction("topics", _OPEN, "Go through the topics of the run beside their gold", ("t",), "topics"),
    KeyAction("compare", _OPEN, "Compare the run with another one, topic by topic", ("v",), "compare"),
    KeyAction("settings", _OPEN, "Every setting, its value and where it comes from", ("s",), "settings"),
    KeyAction("doctor", _OPEN, "Check whether searchapp can work here", ("c", "f2"), "check"),
    KeyAction("index", _MAKE, "Index the task: its files, its sample, or another folder", ("i",), "index"),
    KeyAction("own_task", _MAKE, "Index a task of your own, by its TOML file", ("n",), "own task"),
    KeyAction("stop", _MAKE, "Stop what is being indexed", ("x", "escape"), "stop"),
    KeyAction(
        "evaluate", _MAKE, "Score the run as its organisers do, and show all figures", ("e",), "evaluate"
    ),
    KeyAction("refresh", _MAKE, "Look again at engine, tasks and runs", ("r", "f5"), "refresh"),
    KeyAction("down", _MOVE, "Next line", ("down", "j")),
    *shared("up", "page_down", "page_up"),
    KeyAction("first", _MOVE, "First line", ("home", "g")),
    KeyAction("last", _MOVE, "Last line", ("end", "G")),
    KeyAction("next_pane", _MOVE, "Next pane: tasks, runs, details", ("tab",), "next pane"),
    *shared("previous_pane", "jump", "zoom"),
    KeyAction("scroll_down", _LOOK, "Scroll the details down", ("ctrl+d", "right")),
    KeyAction("scroll_up", _LOOK, "Scroll the details up", ("ctrl+u", "left")),
    *shared("theme", "copy"),
    KeyAction("palette", _ALL, "Find an action, a task or a run by words", ("ctrl+p",), "palette"),
    *shared("help", "quit"),
)

IN_LAST_LINE = ("open", "index", "evaluate", "topics", "compare", "next_pane", "palette", "doctor", "settings",
                "own_task", "refresh", "zoom", "theme", "quit", "help")  # fmt: skip


def load(home: Path) -> ScreenSettings:
    """The settings of the home screen.

    Raises:
        as `keys.load` does.
    """
    return load_section(home, SECTION, KEY_ACTIONS)
