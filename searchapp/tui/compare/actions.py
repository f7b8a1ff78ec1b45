"""What can be done on the compare screen, and by which keys: those of the screen of topics, and what two runs bring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.keys import KeyAction, ScreenSettings, grade_actions, load_section
from searchapp.tui.topics import actions

SECTION = "compare"

_RUNS, _GOLD = "Runs", "Gold"

_OWN = (
    KeyAction("runs", _RUNS, "Choose which two of the runs are compared", ("r",), "runs"),
    KeyAction("measure", _RUNS, "The next measure", ("M",), "measure"),
    KeyAction(
        "other",
        _RUNS,
        "To the same document in the other run, or to where it was",
        ("a", "equals_sign"),
        "other run",
    ),
    KeyAction(
        "next_moved",
        _GOLD,
        "Document whose move between the runs counts most, then the next one",
        ("v",),
        "next moved",
    ),
    KeyAction("previous_moved", _GOLD, "Moved document that counts more", ("V",)),
)

_OTHERWISE = {
    "order": KeyAction(
        "order",
        "Topics",
        "Greatest gains first, greatest losses, greatest differences, as in the run",
        ("o",),
        "order",
    ),
    "worst_topic": KeyAction(
        "first_topic", "Topics", "To the first topic in this order", ("W",), "first topic"
    ),
    "why": KeyAction(
        "why", "Gold", "Why the document is at its rank in each run, or is missed", ("w", "f6"), "why"
    ),
    "next_pane": KeyAction(
        "next_pane",
        "Move",
        "Next pane: topics, both rankings and their missed gold, topic, document",
        ("tab",),
    ),
}
"""What is done otherwise than on the screen of topics."""

KEY_ACTIONS = (
    *_OWN,
    *(_OTHERWISE.get(one.name, one) for one in actions.KEY_ACTIONS if one.name != "failures"),
)

IN_LAST_LINE = ("next_moved", "other", "next_gold", "why", "judge", "next_topic", "next_missed", "topics", "order",
                "measure", "runs", "filter", "first_topic", "maths", "zoom", "document", "copy_id", "copy_command",
                "pager", "theme", "quit", "help")  # fmt: skip
"""What the last line says."""


def load(home: Path, labels: Sequence[str]) -> ScreenSettings:
    """The settings of the compare screen; `labels` are the names of the grades.

    Raises:
        as `keys.load` does.
    """
    return load_section(home, SECTION, (*grade_actions(labels), *KEY_ACTIONS))
