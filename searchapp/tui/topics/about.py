"""What the panes of the screen of topics are for."""

from __future__ import annotations

from searchapp.tui.about import DOCUMENT_READ, TOPIC_SOUGHT, TOPICS_FILTER, About

ABOUT = {
    "ranking": About(
        "The ranking",
        "The documents of the topic in the order of the run or recipe, with what is relevant marked.",
        (),
        ("next_gold", "previous_gold", "next_missed", "why", "document", "judge", "next_topic", "jump"),
    ),
    "missed": About(
        "The missed gold",
        "Relevant documents that are not in the ranking, each with its rank further down or the reason.",
        (),
        ("next_missed", "why", "next_gold", "jump"),
    ),
    "topics": About(
        "The topics",
        "The topics with their figures. The ranking of a topic is shown once it is opened.",
        (),
        ("open", "order", "worst_topic", "failures", "filter", "jump"),
    ),
    "topic": TOPIC_SOUGHT,
    "document": DOCUMENT_READ,
    "filter": TOPICS_FILTER,
}
