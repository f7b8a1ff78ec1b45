"""What the panes of the judging screen are for."""

from __future__ import annotations

from searchapp.tui.about import EDITING, TOPICS_FILTER, About

ABOUT = {
    "ranking": About(
        "The ranking",
        "The documents of the topic in the order of the run, with what you said of each before its rank.",
        (),
        ("skip", "cant_tell", "note", "reason", "undo", "select", "next_unjudged", "next_unjudged_topic",
         "search", "document", "jump"),
    ),
    "topics": About(
        "The topics",
        "The topics of the run with how much of each is judged. The ranking of a topic is shown once it is opened.",
        (),
        ("open", "filter", "topics", "next_unjudged_topic", "jump"),
    ),
    "topic": About(
        "The topic", "What the documents are judged for. The arrows scroll it.", (), ("maths", "zoom", "next_pane")
    ),
    "document": About(
        "The document",
        "The document that is graded, whole. The arrows scroll it; grade keys grade it from here as well.",
        (),
        ("maths", "zoom", "reading", "scroll_down", "note", "next_pane"),
    ),
    "filter": TOPICS_FILTER,
    "search": About(
        "The search in the topic's documents",
        "Enter goes to the first document that has all the words, escape goes back.",
        EDITING,
        ("jump",),
        line=True,
    ),
}  # fmt: skip
