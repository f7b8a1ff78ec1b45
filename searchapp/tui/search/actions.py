"""What can be done on the search screen, and by which keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.keys import Doing, ScreenSettings, grade_doings, load_section

SECTION = "search"

_SEARCH, _JUDGE, _MOVE, _LOOK, _ALL = "Search", "Judge", "Move", "Look", "All else"

DOINGS = (
    Doing(
        "words",
        _SEARCH,
        "To the words that are searched for, and back to the hits",
        ("slash", "escape"),
        "words",
    ),
    Doing("history", _SEARCH, "What was searched for before", ("ctrl+r",), "history"),
    Doing("filter", _SEARCH, "Filter by the values of fields", ("f", "f2"), "filter"),
    Doing("recipe", _SEARCH, "Rank with another recipe", ("r", "f3"), "recipe"),
    Doing("like", _SEARCH, "More like this document", ("s",), "similar"),
    Doing("back", _SEARCH, "Back to the search before", ("backspace", "alt+left"), "back"),
    Doing("forward", _SEARCH, "And on again", ("alt+right",)),
    Doing("why", _SEARCH, "Why the document is at its rank", ("w", "f6"), "why"),
    Doing("document", _SEARCH, "Go to a document by its id, or hear why it is not there", ("i",), "id"),
    Doing(
        "topic", _JUDGE, "Search for a topic of the task, whose documents can then be graded", ("t",), "topic"
    ),
    Doing("undo", _JUDGE, "Take the last grade back", ("u", "ctrl+z"), "undo"),
    Doing("down", _MOVE, "Next line", ("down", "j")),
    Doing("up", _MOVE, "Previous line", ("up", "k")),
    Doing("page_down", _MOVE, "A page down", ("pagedown", "space")),
    Doing("page_up", _MOVE, "A page up", ("pageup",)),
    Doing("first", _MOVE, "First line", ("home", "g")),
    Doing("last", _MOVE, "Last line", ("end", "G")),
    Doing("next_pane", _MOVE, "Next pane: hits, document", ("tab",)),
    Doing("previous_pane", _MOVE, "Previous pane", ("shift+tab",)),
    Doing("zoom", _LOOK, "Only the pane with the focus, and all of them again", ("z", "f4"), "zoom"),
    Doing("reading", _LOOK, "Hide the hits, and show them again", ("b", "f5")),
    Doing("wider", _LOOK, "Make the list wider", ("greater_than_sign", "f8")),
    Doing("narrower", _LOOK, "Make the list narrower", ("less_than_sign", "f7")),
    Doing("scroll_down", _LOOK, "Scroll the document down", ("ctrl+d", "right")),
    Doing("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
    Doing("maths", _LOOK, "LaTeX as Unicode mathematics, or as it is written", ("m", "f9"), "maths"),
    Doing("theme", _LOOK, "Dark or light", ("d",), "dark/light"),
    Doing("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
    Doing("copy_text", _ALL, "Copy the document's text", ("Y",)),
    Doing("copy_command", _ALL, "Copy the command that prints what is seen", ("c",), "copy command"),
    Doing("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
    Doing("copy", _ALL, "Copy the text that is selected with the mouse", ("ctrl+c", "super+c")),
    Doing("help", _ALL, "All keys", ("question_mark", "f1"), "keys"),
    Doing("quit", _ALL, "Leave", ("q", "ctrl+q"), "quit"),
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
    return load_section(home, SECTION, (*grade_doings(labels), *DOINGS))
