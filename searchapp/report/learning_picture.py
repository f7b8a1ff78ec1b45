"""The picture of a learning curve: one SVG file, which needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from searchapp.report.charts import Line, Mark, curve
from searchapp.report.learning_wording import heading

if TYPE_CHECKING:
    from searchapp.app.learning_curve import LearningCurve


def picture(found: LearningCurve) -> bytes:
    """The mean score by the number of judged topics as a line, and each sample as a dot, in UTF-8."""
    scores = Line(
        tuple(
            (one.judged, Mark(one.score, f"{one.judged:,} judged topics: {one.score:.4f}"))
            for one in found.points
        )
    )
    samples = Line(
        tuple(
            (one.judged, Mark(value, f"a sample of {one.judged:,} judged topics: {value:.4f}"))
            for one in found.points
            for value in one.values
            if len(one.values) > 1
        ),
        dots_only=True,
    )
    beside = (
        f"besides {found.solved:,} that were solved before" if found.solved else "none were solved before"
    )
    titles = (f"judged topics, {beside}", f"{found.measure} of unjudged topics")
    return curve([scores, samples], heading(found), titles).encode()
