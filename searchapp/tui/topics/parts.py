"""What the parts of the screen of topics may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from textual.app import App
from textual.timer import Timer

from searchapp.app.topic_figures import Figures, Order
from searchapp.app.topics import RunTopics, TopicRanking
from searchapp.judging.session import Session
from searchapp.tui.background import Background
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows
from searchapp.tui.topics.lists import DocumentRows, MissedRows, RankingRows, TopicRows
from searchapp.tui.topics.reading import Reading


class Kind(IntEnum):
    """What is asked in the background, the most urgent first."""

    topic = 0
    document = 1
    why = 2
    missed = 3
    texts = 4


@dataclass(frozen=True)
class Opened:
    """What the screen is opened with.

    `session` opens that of whoever judges. `command` is how the program was called, up to the topic. `start` is the
    topic to begin with.
    """

    topics: RunTopics
    title: str
    session: Callable[[], Session]
    command: Sequence[str]
    start: str | None = None
    order: Order = Order.file
    failing: bool = False


class GoldView(Protocol):
    """A screen with the rankings of a topic beside its gold, as far as its parts ask it.

    Of the runs on it `topics` is the one in sight, the one whose lists the cursor is in; its lists are `ranking` and
    `missed`, `lists` are those of all runs. `quick` is asked what is read, `slow` what its recipe must rank for.
    `ranked` is its ranking of the topic in sight; `in_missed` says whether the document that is shown is that of the
    missed gold's list. `command` is how the program was called, up to the topic.
    """

    keys: KeyMap
    reading: Reading
    sought: str
    """The topic that is to be in sight."""

    @property
    def topics(self) -> RunTopics: ...
    @property
    def command(self) -> Sequence[str]: ...
    @property
    def quick(self) -> Background[RunTopics]: ...
    @property
    def slow(self) -> Background[RunTopics]: ...
    @property
    def ranking(self) -> RankingRows: ...
    @property
    def missed(self) -> MissedRows: ...
    @property
    def lists(self) -> Sequence[DocumentRows]: ...
    @property
    def ranked(self) -> TopicRanking | None: ...
    @property
    def in_missed(self) -> bool: ...
    @property
    def topic_rows(self) -> TopicRows: ...
    @property
    def filter_line(self) -> Line: ...
    @property
    def app(self) -> App[None]: ...
    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more."""

    def go_back(self, message: str | None = None) -> None: ...
    @property
    def head(self) -> Banner: ...
    @property
    def topic_id(self) -> str:
        """The topic that is in sight, or the one that is to be."""

    @property
    def document_id(self) -> str | None:
        """The document that the cursor is on."""

    @property
    def rows(self) -> DocumentRows:
        """The list whose document is shown."""

    def open_topic(self, topic: str) -> None:
        """Show a topic, as soon as its rankings are there."""

    def focus_rows(self, rows: Rows) -> None:
        """Give a list the focus; of a list of documents that under the cursor is shown."""

    def show_document(self) -> None:
        """Show the document that the cursor is on, as soon as it is there."""

    def redraw(self, documents: Iterable[str] | None) -> None:
        """Draw again what was said of some documents, or of all."""

    def tell_failure(self, error: Exception, again: Callable[[], object]) -> None:
        """Say that something failed; an engine that does not answer is asked again after a while."""

    def set_timer(self, delay: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def set_interval(self, interval: float, callback: Callable[[], object] | None = None) -> Timer: ...
    def call_later(self, callback: Callable[[], object]) -> bool: ...


class TopicsView(GoldView, Protocol):
    """The screen that somebody walks the topics of one run on."""

    @property
    def is_untouched(self) -> bool:
        """Whether nobody has gone anywhere, nor asked for a topic."""

    @property
    def figures(self) -> Figures | None:
        """The figures of the topics, once they are known."""

    def take_figures(self, figures: Figures) -> None:
        """Let the figures be known."""

    def show_ranking(self) -> None:
        """Show those documents of the ranking that are asked for."""
