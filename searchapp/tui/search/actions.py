"""What can be done on the search screen, and by which keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.keys import KeyAction, ScreenSettings, grade_actions, load_section

SECTION = "search"

_SEARCH, _JUDGE, _MOVE, _LOOK, _ALL = "Search", "Judge", "Move", "Look", "All else"

KEY_ACTIONS = (
    KeyAction(
        "words",
        _SEARCH,
        "To the words that are searched for, and back to the hits",
        ("slash", "escape"),
        "words",
    ),
    KeyAction("history", _SEARCH, "What was searched for before", ("ctrl+r",), "history"),
    KeyAction("filter", _SEARCH, "Filter by the values of fields", ("f", "f2"), "filter"),
    KeyAction("recipe", _SEARCH, "Rank with another recipe", ("r", "f3"), "recipe"),
    KeyAction("like", _SEARCH, "More like this document", ("s",), "similar"),
    KeyAction("back", _SEARCH, "Back to the search before", ("backspace", "alt+left"), "back"),
    KeyAction("forward", _SEARCH, "And on again", ("alt+right",)),
    KeyAction("why", _SEARCH, "Why the document is at its rank", ("w", "f6"), "why"),
    KeyAction("document", _SEARCH, "Go to a document by its id, or hear why it is not there", ("i",), "id"),
    KeyAction(
        "topic", _JUDGE, "Search for a topic of the task, whose documents can then be graded", ("t",), "topic"
    ),
    KeyAction("undo", _JUDGE, "Take the last grade back", ("u", "ctrl+z"), "undo"),
    KeyAction("down", _MOVE, "Next line", ("down", "j")),
    KeyAction("up", _MOVE, "Previous line", ("up", "k")),
    KeyAction("page_down", _MOVE, "A page down", ("pagedown", "space")),
    KeyAction("page_up", _MOVE, "A page up", ("pageup",)),
    KeyAction("first", _MOVE, "First line", ("home", "g")),
    KeyAction("last", _MOVE, "Last line", ("end", "G")),
    KeyAction("next_pane", _MOVE, "Next pane: hits, document", ("tab",)),
    KeyAction("previous_pane", _MOVE, "Previous pane", ("shift+tab",)),
    KeyAction("zoom", _LOOK, "Only the pane with the focus, and all of them again", ("z", "f4"), "zoom"),
    KeyAction("reading", _LOOK, "Hide the hits, and show them again", ("b", "f5")),
    KeyAction("wider", _LOOK, "Make the list wider", ("greater_than_sign", "f8")),
    KeyAction("narrower", _LOOK, "Make the list narrower", ("less_than_sign", "f7")),
    KeyAction("scroll_down", _LOOK, "Scroll the document down", ("ctrl+d", "right")),
    KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
    KeyAction("maths", _LOOK, "LaTeX as Unicode mathematics, or as it is written", ("m", "f9"), "maths"),
    KeyAction("theme", _LOOK, "Dark or light", ("d",), "dark/light"),
    KeyAction("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
    KeyAction("copy_text", _ALL, "Copy the document's text", ("Y",)),
    KeyAction("copy_command", _ALL, "Copy the command that prints what is seen", ("c",), "copy command"),
    KeyAction("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
    KeyAction("copy", _ALL, "Copy the text that is selected with the mouse", ("ctrl+c", "super+c")),
    KeyAction("help", _ALL, "All keys", ("question_mark", "f1"), "keys"),
    KeyAction("quit", _ALL, "Leave", ("q", "ctrl+q"), "quit"),
)

IN_LINE = ("history", "filter", "recipe", "why", "maths", "zoom", "quit", "help")
IN_HITS = ("words", "filter", "recipe", "why", "like", "back", "topic", "document", "maths", "zoom", "copy_id",
           "copy_command", "pager", "history", "theme", "quit", "help")  # fmt: skip
"""What the last line says while somebody types, and while they go through the hits."""


def load(home: Path, labels: Sequence[str] = ()) -> ScreenSettings:
    """The settings of the search screen; `labels` are the names of the grades, where documents can be graded.

    Raises:
        as `keys.load` does.
    """
    return load_section(home, SECTION, (*grade_actions(labels), *KEY_ACTIONS))
