"""What can be done with topics beside their gold, and by which keys; all but one thing also on the compare screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.tui.kit.keys import KeyAction, ScreenSettings, grade_actions, load_section, shared

SECTION = "topics"

_TOPICS, _GOLD, _JUDGE = "Topics", "Gold", "Judge"
_MOVE, _LOOK, _ALL = "Move", "Look", "All else"

KEY_ACTIONS = (
    KeyAction("next_topic", _TOPICS, "Next topic", ("right_square_bracket",), "next topic"),
    KeyAction("previous_topic", _TOPICS, "Previous topic", ("left_square_bracket",), "previous"),
    KeyAction(
        "order",
        _TOPICS,
        "Worst topics first, then those with most missed, then as in the run",
        ("o",),
        "order",
    ),
    KeyAction("worst_topic", _TOPICS, "To the worst topic", ("W",), "worst"),
    KeyAction(
        "failures",
        _TOPICS,
        "Only topics that fail, with what is not relevant in their rankings, and all again",
        ("F",),
        "failures",
    ),
    KeyAction("topics", _TOPICS, "To the topics, and back", ("t",), "topics"),
    KeyAction("open", _TOPICS, "Open the topic of the line, back to its ranking", ("enter",)),
    KeyAction("filter", _TOPICS, "Filter the topics by words", ("f", "slash"), "filter"),
    KeyAction("next_gold", _GOLD, "Next relevant document in the ranking", ("g",), "next gold"),
    KeyAction("previous_gold", _GOLD, "Relevant document before it", ("G",)),
    KeyAction("next_missed", _GOLD, "Next missed document", ("e",), "next missed"),
    KeyAction("why", _GOLD, "Why the document is at its rank, or is missed", ("w", "f6"), "why"),
    KeyAction("document", _GOLD, "Go to a document by its id, or hear why it is not there", ("i",), "id"),
    KeyAction("judge", _JUDGE, "Judge: grade keys hold, and no longer", ("j", "J"), "judge"),
    KeyAction("undo", _JUDGE, "Take the last judgment back", ("u", "ctrl+z"), "undo"),
    KeyAction("redo", _JUDGE, "Redo what was taken back", ("U", "ctrl+y"), "redo"),
    KeyAction("skip", _JUDGE, "Skip: put the document off, which is no grade", ("s",), "skip"),
    KeyAction("cant_tell", _JUDGE, "Can't tell: the document can't be judged", ("x",), "can't tell"),
    KeyAction("note", _JUDGE, "Write a note on the document", ("n",), "note"),
    KeyAction("down", _MOVE, "Next line", ("down",)),
    *shared("up", "page_down", "page_up"),
    KeyAction("first", _MOVE, "First line", ("home",)),
    KeyAction("last", _MOVE, "Last line", ("end",)),
    KeyAction("next_pane", _MOVE, "Next pane: topics, ranking, missed gold, topic, document", ("tab",)),
    *shared("previous_pane"),
    KeyAction("clear", _MOVE, "Drop the filter, back to the ranking", ("escape",)),
    *shared("jump", "zoom"),
    KeyAction("reading", _LOOK, "Hide the lists, and show them again", ("b", "f5")),
    *shared("wider", "narrower", "scroll_down"),
    KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
    KeyAction(
        "maths",
        _LOOK,
        "Markup as what it means, the text as it stands, LaTeX as written",
        ("m", "f9"),
        "maths",
    ),
    *shared("theme"),
    KeyAction("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
    KeyAction("copy_text", _ALL, "Copy the document's text", ("Y",)),
    KeyAction("copy_command", _ALL, "Copy the command that opens what is seen", ("c",), "copy command"),
    KeyAction("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
    *shared("copy"),
    KeyAction("palette", _ALL, "Find an action by its words, and do it", ("ctrl+p",), "palette"),
    *shared("help", "quit"),
)

IN_LAST_LINE = ("next_gold", "next_missed", "next_topic", "order", "why", "judge", "topics", "failures", "worst_topic",
                "filter",
                "maths", "zoom", "document", "copy_id", "copy_command", "pager", "theme", "quit", "help")  # fmt: skip
"""What the last line says."""

GRADING = ("undo", "skip", "cant_tell", "note")
"""What stands beside the grades while somebody judges."""


def load(home: Path, labels: Sequence[str]) -> ScreenSettings:
    """The settings of the screen of topics; `labels` are the names of the grades.

    Raises:
        as `keys.load` does.
    """
    return load_section(home, SECTION, (*grade_actions(labels), *KEY_ACTIONS))
