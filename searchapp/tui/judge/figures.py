"""The two lines of figures on the judging screen: what the run scores, how far one is, and how long the rest takes."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from searchapp.errors import SearchappError
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.pace import duration
from searchapp.tui import pages
from searchapp.tui.content import Content, Plain

TOPICS_AT_ONCE = 20
LATER_SECONDS = 0.01
"""Topics whose rankings are read between two keys, and the time left for keys."""

BAR_CELLS = 12


class Figures(Horizontal):
    """The figures of the topic that is open, and of all."""

    def __init__(self, judging: JudgingSession) -> None:
        super().__init__(id="figures")
        self._judging = judging
        self._topic = ""
        self._unreadable: set[str] = set()
        self._scores = Plain(id="scores")
        self._progress = Progress(judging)

    def compose(self) -> ComposeResult:
        yield self._scores
        yield self._progress

    def show(self, topic: str) -> None:
        """Show the figures of a topic."""
        self._topic = topic
        judging = self._judging
        if not judging.is_blind:
            here = pages.scores_line("this topic", judging.scores(topic))
            overall, topics = judging.mean_scores()
            every = pages.scores_line(f"{topics:,} topic{'s' * (topics != 1)}", overall)
            self._scores.update(Content("\n").join([here, every]), layout=False)
        self._progress.show(topic)

    def score_the_rest(self) -> None:
        """Score graded topics whose rankings are not read yet, a few at a time, so that keys are not kept waiting."""
        for topic in self._to_score()[:TOPICS_AT_ONCE]:
            try:
                self._judging.scores(topic)
            except SearchappError:
                self._unreadable.add(topic)  # why is said when it is opened
        if self._topic:
            self.show(self._topic)
        if self._to_score():
            self.set_timer(LATER_SECONDS, self.score_the_rest)

    def _to_score(self) -> list[str]:
        return [topic for topic in self._judging.unscored() if topic not in self._unreadable]


class Progress(Plain):
    """How much of a topic is judged, and how long the rest takes, for the room that there is."""

    def __init__(self, judging: JudgingSession) -> None:
        super().__init__(id="progress")
        self._judging = judging
        self._topic = ""

    def show(self, topic: str) -> None:
        """Show how far a topic is."""
        self._topic = topic
        self.update(self._lines(topic), layout=False)

    def on_resize(self) -> None:
        if self._topic:
            self.show(self._topic)

    def _lines(self, topic: str) -> Content:
        total, judged = self._judging.length(topic), self._judging.judged(topic)
        share = judged / total if total else 1.0
        count = f"{judged:,}/{total:,} · {1 - share:.1%} unjudged"
        cells = max(0, min(BAR_CELLS, self.size.width - len(count) - 1))
        full = round(share * cells)
        bar: list[str | tuple[str, str]]
        bar = [("━" * full, "$success"), ("━" * (cells - full), "$line"), " "] if cells else []
        seconds = self._judging.session.pace.seconds
        left = (total - judged) * (seconds or 0)
        pace = "" if seconds is None else f"{duration(seconds)} each"
        if left:
            pace += f" · {duration(left)} left"
            pace += " here" if len(pace) + len(" here") <= self.size.width else ""
        return Content.assemble(*bar, f"{count}\n", (pace, "$faint"))
