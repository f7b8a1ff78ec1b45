"""What the panes of the adjudicating screen are for."""

from __future__ import annotations

from searchapp.tui.about import EDITING, FILTERING, About

ABOUT = {
    "disputes": About(
        "The disagreements",
        "Documents that annotators grade differently, with their grades. A grade key decides, and goes on.",
        (),
        ("next_unjudged", "reason", "note", "undo", "filter", "jump"),
    ),
    "opinions": About(
        "Who said what", "The grades, reasons and notes of each annotator.", (), ("zoom", "next_pane")
    ),
    "topic": About("The topic", "What the document was judged for.", (), ("maths", "zoom", "next_pane")),
    "document": About(
        "The document",
        "The document that is disagreed on.",
        (),
        ("maths", "zoom", "scroll_down", "next_pane"),
    ),
    "filter": About(
        "The filter",
        "Enter goes to the disagreements that are left, escape drops the filter.",
        (FILTERING, *EDITING),
        ("jump",),
        line=True,
    ),
}
