"""What was judged in one sitting, and how much is left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from searchapp.errors import SearchappError
from searchapp.judging.events import Action
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.pace import seconds_each, tells_pace

COUNTING_SECONDS = 1.0
"""How long it may take to count how many documents are left, for which each ranking may have to be looked at."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What one annotator said in a sitting, as far as it holds at its end.

    `grades` counts documents by their grades. `seconds` is the median time from one judgment to the next, None without
    two in a row. `left` is how many documents of the run are still to be judged, and `topics_left` of how many topics;
    None where to count them takes too long.
    """

    topics: int
    grades: Mapping[int, int]
    cant_tell: int
    skipped: int
    noted: int
    seconds: float | None
    left: int | None
    topics_left: int | None

    @property
    def judged(self) -> int:
        """Documents with a grade, and those marked "can't tell"."""
        return sum(self.grades.values()) + self.cant_tell


def summary(judging: JudgingSession) -> Summary:
    """What was judged in this session since it was opened."""
    session = judging.session
    made = session.made_here
    opinions = {
        key: opinion
        for event in made
        if event.action is not Action.retract
        and (opinion := session.opinion(*(key := (event.topic_id, event.document_id)))) is not None
        and session.made(opinion.event)
    }
    actions = Counter(opinion.action for opinion in opinions.values())
    grades = Counter(opinion.grade for opinion in opinions.values() if opinion.grade is not None)
    noted = {
        (event.topic_id, event.document_id)
        for event in made
        if event.action is Action.note and session.view.holds(event.id)
    }
    left = _left(judging)
    return Summary(
        topics=len({topic for (topic, _), opinion in opinions.items() if opinion.action is not Action.skip}),
        grades=dict(sorted(grades.items())),
        cant_tell=actions[Action.cant_tell],
        skipped=actions[Action.skip],
        noted=len(noted),
        seconds=seconds_each(event.order[0] for event in made if tells_pace(event)),
        left=None if left is None else sum(left),
        topics_left=None if left is None else sum(1 for one in left if one),
    )


def _left(judging: JudgingSession) -> list[int] | None:
    """How many documents of each topic are still to be judged; None if that takes too long, or can't be read."""
    until = time.monotonic() + COUNTING_SECONDS
    left = []
    with suppress(SearchappError):
        for topic in judging.topics:
            if time.monotonic() > until:
                return None
            left.append(judging.length(topic) - judging.judged(topic))
        return left
    return None
