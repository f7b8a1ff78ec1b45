"""What the panes of screens are for, which the help says of the one with the focus before all else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Typed = tuple[str, str]
"""Something that is typed, and what it means."""


@dataclass(frozen=True, slots=True)
class About:
    """A pane: what it is, what can be typed there, and the names of what else can be done there.

    In a `line` for words only those keys hold that type nothing.
    """

    title: str
    words: str
    typed: Sequence[Typed] = ()
    actions: Sequence[str] = ()
    line: bool = False


EDITING: Sequence[Typed] = (
    ("← →  home end", "move the cursor"),
    ("^w", "delete the word before it"),
    ("^u  ^k", "delete all before it, all behind it"),
)
"""What edits a line for words."""

FILTERING = ("a word", "leaves what has it; of several words all must be there")

TOPICS_FILTER = About(
    "The filter of the topics",
    "Enter goes to the topics that are left, escape drops the filter.",
    (FILTERING, *EDITING),
    ("jump",),
    line=True,
)
"""The line that filters a list of topics."""

TOPIC_SOUGHT = About("The topic", "What is sought. The arrows scroll it.", (), ("maths", "zoom", "next_pane"))
"""The topic whose ranking is looked at."""

DOCUMENT_READ = About(
    "The document",
    "The document that the cursor is on, whole. The arrows scroll it.",
    (),
    ("maths", "zoom", "pager", "copy_text", "why", "next_pane"),
)
"""The document of a ranking that is read."""
