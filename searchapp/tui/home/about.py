"""What the panes of the home screen are for."""

from __future__ import annotations

from searchapp.tui.about import About

ABOUT = {
    "tasks": About(
        "The tasks",
        "Every task with its documents, topics and judgments, and whether it is indexed.",
        (),
        ("open", "index", "own_task", "palette", "jump"),
    ),
    "runs": About(
        "The runs",
        "The runs that were made last, with their official figure.",
        (),
        ("open", "topics", "compare", "evaluate", "palette", "jump"),
    ),
    "details": About(
        "The details", "All of the line that the cursor is on.", (), ("scroll_down", "zoom", "next_pane")
    ),
}
