"""A learning curve in words, the same in a terminal and in its picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.app.learning_curve import LearningCurve


def heading(found: LearningCurve) -> str:
    """What is scored, by what and how it is ranked."""
    official = " (official)" if found.is_official else ""
    where = f"{found.task} {found.split}, recipe {found.recipe['name']}"
    return f"{where}: {found.measure}{official} of {found.unjudged:,} unjudged topics"


def legend(found: LearningCurve) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    who = "people" if found.by_people else "the organisers' gold, which stands in for a judge"
    yield (
        f"the same {found.unjudged:,} topics are scored at every point; of {found.can_be_judged:,} others growing "
        f"samples are judged, by {who}; {found.solved:,} topics are solved from the beginning"
    )
    if found.repetitions > 1:
        yield (
            f"score: mean over {found.repetitions:,} samples, drawn with seed {found.seed}, where samples of so many "
            "topics differ; lowest and highest are those of single samples"
        )
    yield (
        "gain: mean over topics of what the point has more than the first one; interval: BCa bootstrap over topics; "
        "p-values are two-sided, of the randomisation test"
    )
