"""What the panes of the search screen are for."""

from __future__ import annotations

from searchapp.tui.about import EDITING, About

LANGUAGE = (
    ("these words", "documents about them, ranked by the recipe"),
    ('"a phrase"', "words that stand side by side"),
    ("+must  -without", "what must match, and what must not"),
    ("begin*", "words that begin so"),
    ("field:value", "what stands in a field"),
    ("+(these those)", "a group"),
    ("\\", "before a sign: the sign as it is"),
)

ABOUT = {
    "words": About(
        "The words that are searched for",
        "Every key searches. The arrows and the page keys move in the hits, enter and escape go to them.",
        (*LANGUAGE, *EDITING),
        ("history", "save", "saved", "filter", "recipe", "why", "maths", "jump"),
        line=True,
    ),
    "hits": About(
        "The hits",
        "The documents in the order of the recipe: rank, id, the piece with the most matches, and the score.",
        (),
        ("words", "why", "like", "document", "filter", "recipe", "topic", "copy_id", "pager", "jump"),
    ),
    "document": About(
        "The document",
        "The hit that the cursor is on, whole, with what matches in colour. The arrows scroll it.",
        (),
        ("maths", "zoom", "pager", "copy_text", "copy_id", "why", "like", "next_pane"),
    ),
}
