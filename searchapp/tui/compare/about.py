"""What the panes of the compare screen are for."""

from __future__ import annotations

from searchapp.tui.about import DOCUMENT_READ, TOPIC_SOUGHT, TOPICS_FILTER, About

_RANKING = (
    "The documents of the topic in the order of this run. An arrow says by how many ranks a document stands higher (↑) "
    "or lower (↓) in the second run than in the first; = says that its rank is the same, + that only this run has it."
)
_MISSED = "Relevant documents that are not in this ranking, each with its rank further down or the reason."
_ACTIONS = ("next_gold", "next_moved", "next_missed", "other", "why", "judge", "next_topic", "jump")

ABOUT = {
    "first": About("The ranking of the first run", _RANKING, (), _ACTIONS),
    "first-missed": About(
        "The missed gold of the first run", _MISSED, (), ("next_missed", "other", "why", "jump")
    ),
    "second": About("The ranking of the second run", _RANKING, (), _ACTIONS),
    "second-missed": About(
        "The missed gold of the second run", _MISSED, (), ("next_missed", "other", "why", "jump")
    ),
    "topics": About(
        "The differences by topic",
        "Each topic with the second run's figure less the first's, as a bar to the right where the second is better.",
        (),
        ("open", "order", "measure", "runs", "filter", "jump"),
    ),
    "topic": TOPIC_SOUGHT,
    "document": DOCUMENT_READ,
    "filter": TOPICS_FILTER,
}
