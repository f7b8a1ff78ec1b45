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
    ('"a phrase"', "these words next to each other"),
    ("+must  -without", "what must match, and what must not"),
    ("begin*", "words that begin with these letters"),
    ("field:value", "documents with this word or value in a field"),
    ("+(these those)", "a group"),
    ("\\", "before a sign: search for the sign itself"),
)

PANES = {
    "words": PaneHelp(
        "The query",
        "Each key searches again. The arrow and page keys move in the hits; enter and escape go to them.",
        (*LANGUAGE, *EDITING),
        ("history", "save", "saved", "filter", "recipe", "why", "maths", "jump"),
        line=True,
    ),
    "hits": PaneHelp(
        "The hits",
        "The documents in the order of the recipe: rank, id, the passage with the most matches, and the score.",
        (),
        ("words", "why", "like", "document", "filter", "recipe", "topic", "copy_id", "pager", "jump"),
    ),
    "document": PaneHelp(
        "The document",
        "The full document under the cursor, with matches in colour. The arrow keys scroll it.",
        (),
        ("maths", "zoom", "pager", "copy_text", "copy_id", "why", "like", "next_pane"),
    ),
}


SECTION = "search"

_SEARCH, _JUDGE, _MOVE, _LOOK, _ALL = "Search", "Judge", "Move", "View", "Other"

KEY_ACTIONS = (
    KeyAction(
        "words",
        _SEARCH,
        "Go to the query, or back to the hits",
        ("slash", "escape"),
        "words",
    ),
    KeyAction("history", _SEARCH, "List recent queries", ("ctrl+r",), "history"),
    KeyAction("save", _SEARCH, "Save the search under a name", ("ctrl+s",), "save"),
    KeyAction("saved", _SEARCH, "Open or delete a saved search", ("o", "ctrl+l"), "saved"),
    KeyAction("filter", _SEARCH, "Filter by field values", ("f", "f2"), "filter"),
    KeyAction("recipe", _SEARCH, "Rank with another recipe", ("r", "f3"), "recipe"),
    KeyAction("like", _SEARCH, "More like this document", ("s",), "similar"),
    KeyAction("back", _SEARCH, "Go back to the previous search", ("backspace", "alt+left"), "back"),
    KeyAction("forward", _SEARCH, "Go forward to the next search", ("alt+right",)),
    KeyAction("why", _SEARCH, "Explain the document's rank", ("w", "f6"), "why"),
    KeyAction("compare", _SEARCH, "Mark the hit; on another one: explain their order", ("v",), "compare"),
    KeyAction("citing", _SEARCH, "List training topics with the document in their gold", ("e",)),
    KeyAction(
        "analysis", _SEARCH, "Show how a field's analyzer changes document and query", ("a",), "analyze"
    ),
    KeyAction("document", _SEARCH, "Go to a document by its id, or see why it is not there", ("i",), "id"),
    KeyAction("topic", _JUDGE, "Choose a topic of the task to search for and judge", ("t",), "topic"),
    KeyAction("judge", _JUDGE, "Start or stop judging for a topic", ("j", "J"), "judge"),
    KeyAction("undo", _JUDGE, "Undo the last grade", ("u", "ctrl+z"), "undo"),
    KeyAction("down", _MOVE, "Next line", ("down",)),
    *shared("up", "page_down", "page_up"),
    KeyAction("first", _MOVE, "First line", ("home", "g")),
    KeyAction("last", _MOVE, "Last line", ("end", "G")),
    KeyAction("next_pane", _MOVE, "Next pane: hits, document", ("tab",)),
    *shared("previous_pane", "jump", "zoom"),
    KeyAction("reading", _LOOK, "Hide or show the hits", ("b", "f5")),
    *shared("wider", "narrower", "scroll_down"),
    KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
    KeyAction(
        "maths",
        _LOOK,
        "Switch between rendered text, raw text and LaTeX source",
        ("m", "f9"),
        "markup",
    ),
    KeyAction("fold", _LOOK, "Fold or unfold the sections below a document", ("h",)),
    *shared("theme"),
    KeyAction("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
    KeyAction("copy_text", _ALL, "Copy the document's text", ("Y",)),
    KeyAction("copy_command", _ALL, "Copy the command that prints these hits", ("c",), "copy command"),
    KeyAction("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
    *shared("copy"),
    KeyAction("palette", _ALL, "Search for an action, a recipe, a topic or a query", ("ctrl+p",), "palette"),
    *shared("help", "quit"),
)

# The actions in the last line while the user is typing, and in the hits.
IN_LINE = ("history", "saved", "filter", "recipe", "why", "maths", "jump", "zoom", "quit", "help")
IN_HITS = ("words", "filter", "recipe", "why", "compare", "like", "back", "judge", "topic", "document", "maths", "jump",
           "zoom", "copy_id", "copy_command", "pager", "saved", "history", "theme", "quit", "help")  # fmt: skip


def load(home: Path, labels: Sequence[str] = ()) -> ScreenSettings:
    """Return the settings of the search screen; see `keys.load`."""
    return keys.load(home, labels, SECTION, KEY_ACTIONS)
