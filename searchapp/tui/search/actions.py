"""The actions and keys of the search screen, and the help on its panes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.kit import keys
from searchapp.tui.kit.keys import EDITING, PaneHelp, ScreenSettings, screen_actions

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
        "Each key searches again. The arrow and page keys move in the hits; enter and escape go to them. "
        "Tab accepts a suggestion below the query; without one it goes to the next pane.",
        (*LANGUAGE, *EDITING),
        ("history", "save", "saved", "filter", "recipe", "second", "why", "markup", "jump"),
        line=True,
    ),
    "hits": PaneHelp(
        "The hits",
        "The documents in the order of the recipe: rank, id, the passage with the most matches, and the score.",
        (),
        (
            "search",
            "why",
            "like",
            "document",
            "filter",
            "recipe",
            "second",
            "lines",
            "topics",
            "copy_id",
            "export",
            "pager",
            "jump",
        ),
    ),
    "second": PaneHelp(
        "The hits with the second recipe",
        "The same query, ranked with a second recipe. In both lists an arrow shows by how many ranks the second recipe "
        "ranks a document higher (↑) or lower (↓) than the first; = means the same rank, and + that the other recipe "
        "does not have the document among its first 1,000 hits. The cursors of both lists are on the same document. "
        "Other actions are about the list with the focus.",
        (),
        ("second", "recipe", "why", "like", "document", "lines", "copy_id", "export", "next_pane", "jump"),
    ),
    "document": PaneHelp(
        "The document",
        "The full document under the cursor, with matches in colour. The arrow keys scroll it.",
        (),
        ("markup", "zoom", "pager", "copy_text", "copy_id", "why", "like", "next_pane"),
    ),
}


SECTION = "search"

KEY_ACTIONS = screen_actions(
    *(
        "history",
        "save",
        "saved",
        "recipe",
        "second",
        "like",
        "back",
        "forward",
        "why",
        "citing",
        "analysis",
        "document",
    ),
    *("wider", "narrower", "lines", "fold", "copy_id", "copy_text", "export", "pager", "queue"),
    search="Go to the query, or back to the hits",
    clear="Go to the query, or back to the hits",
    filter="Filter by field values",
    compare="Mark the hit; on another one: explain their order, and compare their texts",
    topics=("Choose a topic of the task to search for and judge", "topic"),
    judge="Start or stop judging for a topic",
    undo="Undo the last grade",
    next="Next hit without your grade",
    previous="Previous hit without your grade",
    next_pane="Next pane: hits, hits with the second recipe, document",
    reading="Hide or show the hits",
    markup=("Switch between rendered text, raw text and LaTeX source", "markup"),
    copy_command="Copy the command that prints these hits",
    palette="Search for an action, a recipe, a topic or a query",
)

# The actions in the last line while the user is typing, and in the hits.
IN_LINE = ("history", "filter", "recipe", "why", "jump", "help", "quit")
IN_HITS = ("search", "why", "filter", "recipe", "like", "topics", "help", "quit")


def load(home: Path, labels: Sequence[str] = ()) -> ScreenSettings:
    """Return the settings of the search screen; see `keys.load`."""
    return keys.load(home, labels, SECTION, KEY_ACTIONS)
