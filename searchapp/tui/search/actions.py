"""The actions and keys of the search screen, and the help on its panes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.kit import keys
from searchapp.tui.kit.keys import (
    EDITING,
    KeyAction,
    PaneHelp,
    ScreenSettings,
    shared,
)

LANGUAGE = (
    ("these words", "documents about them, ranked by the recipe"),
    ('"a phrase"', "words that stand side by side"),
    ("+must  -without", "what must match, and what must not"),
    ("begin*", "words that begin so"),
    ("field:value", "what stands in a field"),
    ("+(these those)", "a group"),
    ("\\", "before a sign: the sign as it is"),
)

PANES = {
    "words": PaneHelp(
        "The words that are searched for",
        "Every key searches. The arrows and the page keys move in the hits, enter and escape go to them.",
        (*LANGUAGE, *EDITING),
        ("history", "save", "saved", "filter", "recipe", "why", "maths", "jump"),
        line=True,
    ),
    "hits": PaneHelp(
        "The hits",
        "The documents in the order of the recipe: rank, id, the piece with the most matches, and the score.",
        (),
        ("words", "why", "like", "document", "filter", "recipe", "topic", "copy_id", "pager", "jump"),
    ),
    "document": PaneHelp(
        "The document",
        "The hit that the cursor is on, whole, with what matches in colour. The arrows scroll it.",
        (),
        ("maths", "zoom", "pager", "copy_text", "copy_id", "why", "like", "next_pane"),
    ),
}


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
    KeyAction("save", _SEARCH, "Save the search under a name", ("ctrl+s",), "save"),
    KeyAction("saved", _SEARCH, "Saved searches: open one, delete one", ("o", "ctrl+l"), "saved"),
    KeyAction("filter", _SEARCH, "Filter by the values of fields", ("f", "f2"), "filter"),
    KeyAction("recipe", _SEARCH, "Rank with another recipe", ("r", "f3"), "recipe"),
    KeyAction("like", _SEARCH, "More like this document", ("s",), "similar"),
    KeyAction("back", _SEARCH, "Back to the search before", ("backspace", "alt+left"), "back"),
    KeyAction("forward", _SEARCH, "And on again", ("alt+right",)),
    KeyAction("why", _SEARCH, "Why the document is at its rank", ("w", "f6"), "why"),
    KeyAction(
        "compare", _SEARCH, "Mark the hit; at another one: why the one is above the other", ("v",), "compare"
    ),
    KeyAction("citing", _SEARCH, "Topics that cite the document, and their gold", ("e",)),
    KeyAction("analysis", _SEARCH, "Document and query through the analyzer of a field", ("a",), "analyze"),
    KeyAction("document", _SEARCH, "Go to a document by its id, or hear why it is not there", ("i",), "id"),
    KeyAction(
        "topic", _JUDGE, "Search for a topic of the task, whose documents can then be graded", ("t",), "topic"
    ),
    KeyAction("judge", _JUDGE, "Judge for a topic: grade keys hold, and no longer", ("j", "J"), "judge"),
    KeyAction("undo", _JUDGE, "Take the last grade back", ("u", "ctrl+z"), "undo"),
    KeyAction("down", _MOVE, "Next line", ("down",)),
    *shared("up", "page_down", "page_up"),
    KeyAction("first", _MOVE, "First line", ("home", "g")),
    KeyAction("last", _MOVE, "Last line", ("end", "G")),
    KeyAction("next_pane", _MOVE, "Next pane: hits, document", ("tab",)),
    *shared("previous_pane", "jump", "zoom"),
    KeyAction("reading", _LOOK, "Hide the hits, and show them again", ("b", "f5")),
    *shared("wider", "narrower", "scroll_down"),
    KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
    KeyAction(
        "maths",
        _LOOK,
        "Markup as what it means, the text as it stands, LaTeX as written",
        ("m", "f9"),
        "markup",
    ),
    KeyAction("fold", _LOOK, "Fold what is shown below a document, and unfold it", ("h",)),
    *shared("theme"),
    KeyAction("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
    KeyAction("copy_text", _ALL, "Copy the document's text", ("Y",)),
    KeyAction("copy_command", _ALL, "Copy the command that prints what is seen", ("c",), "copy command"),
    KeyAction("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
    *shared("copy"),
    KeyAction(
        "palette", _ALL, "Find an action, a recipe, a topic or a search by words", ("ctrl+p",), "palette"
    ),
    *shared("help", "quit"),
)

# The actions in the last line while the user is typing, and in the hits.
IN_LINE = ("history", "saved", "filter", "recipe", "why", "maths", "jump", "zoom", "quit", "help")
IN_HITS = ("words", "filter", "recipe", "why", "compare", "like", "back", "judge", "topic", "document", "maths", "jump",
           "zoom", "copy_id", "copy_command", "pager", "saved", "history", "theme", "quit", "help")  # fmt: skip


def load(home: Path, labels: Sequence[str] = ()) -> ScreenSettings:
    """Return the settings of the search screen; see `keys.load`."""
    return keys.load(home, labels, SECTION, KEY_ACTIONS)
