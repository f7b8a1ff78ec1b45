"""What can be done with topics beside their gold, and by which keys; all but one thing also on the compare screen."""

from __future__ import annotations

from searchapp.tui.kit.keys import KeyAction, shared

SECTION = "topics"

_TOPICS, _GOLD, _JUDGE = "Topics", "Gold", "Judge"
_MOVE, _ALL = "Move", "All else"

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
    *shared("skip", "cant_tell", "note", "down", "up", "page_down", "page_up", "first", "last"),
    KeyAction("next_pane", _MOVE, "Next pane: topics, ranking, missed gold, topic, document", ("tab",)),
    *shared("previous_pane"),
    KeyAction("clear", _MOVE, "Drop the filter, back to the ranking", ("escape",)),
    *shared("jump", "zoom"),
    *shared(
        "reading", "wider", "narrower", "scroll_down", "scroll_up", "maths", "theme", "copy_id", "copy_text"
    ),
    KeyAction("copy_command", _ALL, "Copy the command that opens what is seen", ("c",), "copy command"),
    *shared("pager", "copy", "palette", "help", "quit"),
)

IN_LAST_LINE = ("next_gold", "next_missed", "next_topic", "order", "why", "judge", "topics", "failures", "worst_topic",
                "filter",
                "maths", "zoom", "document", "copy_id", "copy_command", "pager", "theme", "quit", "help")  # fmt: skip
"""What the last line says."""

GRADING = ("undo", "skip", "cant_tell", "note")
"""What stands beside the grades while somebody judges."""
