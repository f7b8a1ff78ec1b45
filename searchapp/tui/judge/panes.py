"""The panes beside the lists: the topic, the document with the words that are searched for, the scores so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from searchapp.app.inspection.pages import RunPages
from searchapp.errors import SearchappError
from searchapp.judging.judgments import duration
from searchapp.judging.session import JudgingSession
from searchapp.text import counted
from searchapp.tui.judge.lists import RankingRows
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.content import Content, Form, Notation, Plain, entitle
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.screen import Banner, Pane
from searchapp.tui.kit.widgets import TextPane


class Finder:
    """Finds the documents with some words, and goes from one to the next.

    Args:
        screen: does the search in the background
        rows: the topic's documents
        run_pages: has their texts
        head: shows what was found
        keys: which keys go on
        go: puts the cursor on a document
    """

    def __init__(
        self,
        screen: Screen[None],
        rows: RankingRows,
        run_pages: RunPages,
        head: Banner,
        keys: KeyMap,
        go: Callable[[int], object],
    ) -> None:
        self.words: tuple[str, ...] = ()
        """What is sought, in lower case."""
        self._steps: list[int] | None = None
        """Where to go from the document that is being searched for; None while nothing is."""
        self._screen = screen
        self._rows = rows
        self._run_pages = run_pages
        self._head = head
        self._keys = keys
        self._go = go

    def find(self, words: str) -> None:
        """Search for words; for none, forget what was sought."""
        self.words = tuple(words.lower().split())
        if not self.words:
            self.forget()
            return
        self._head.wait("searching …")
        self._steps = []
        topic, documents, sought = self._rows.topic, self._rows.documents, self.words

        def work() -> None:
            found = self._found(documents, sought)
            self._screen.app.call_from_thread(self._show, topic, sought, found)

        self._screen.run_worker(
            work, "the search", "search", thread=True, exclusive=True, exit_on_error=False
        )

    def forget(self) -> None:
        """Seek nothing."""
        self.words = ()
        self._rows.matching = frozenset()
        if self._steps is not None:
            self._steps = None
            self._head.came()

    def next(self, step: int) -> None:
        """Go to the next document with the words, or to the one before."""
        rows = self._rows
        if self._steps is not None:
            self._steps.append(step)
            return
        if not rows.matching:
            self._head.tell(
                f"no document has {' and '.join(self.words)}"
                if self.words
                else f"search with {self._keys.shown('search')} first"
            )
            return
        places = sorted(rows.matching, reverse=step < 0)
        self._go(next((place for place in places if (place - rows.cursor) * step > 0), places[0]))
        self._say()

    def _found(self, documents: Sequence[str], sought: Sequence[str]) -> list[int]:
        texts = self._run_pages.texts(documents)
        return [
            place
            for place, (document, text) in enumerate(zip(documents, texts, strict=True))
            if all(word in f"{document} {text}".lower() for word in sought)
        ]

    def _show(self, topic: str, sought: tuple[str, ...], found: list[int]) -> None:
        rows = self._rows
        if topic != rows.topic or sought != self.words:
            return  # the person has moved on
        steps, self._steps = self._steps or [], None
        self._head.came()
        rows.matching = frozenset(found)
        rows.refresh()
        if rows.cursor in rows.matching:
            self._go(rows.cursor)
            self._say()
        else:
            self.next(1)
        for step in steps:
            self.next(step)

    def _say(self) -> None:
        places = sorted(self._rows.matching)
        which = places.index(self._rows.cursor) + 1 if self._rows.cursor in self._rows.matching else 0
        again = f"{self._keys.shown('previous_match')} {self._keys.shown('next_match')}"
        self._head.tell(f"“{' '.join(self.words)}”: {which} of {counted(len(places), 'document')} ({again})")


class Reading(Vertical):
    """The panes with a topic and one of its documents."""

    def __init__(self, judging: JudgingSession, run_pages: RunPages) -> None:
        super().__init__(id="right")
        self._judging = judging
        self._run_pages = run_pages
        self._topic = Pane(id="topic")
        self._topic_text = Plain(id="topic-text")
        self._document = TextPane(id="document")
        self._shown: tuple[str, str] | None = None
        self.notation = Notation(run_pages.task.info.markup, Form.written)

    def compose(self) -> ComposeResult:
        with self._topic:
            yield self._topic_text
        yield self._document

    def show_topic(self, topic: str) -> None:
        """Show a topic from its beginning."""
        self._topic_text.update(descriptions.topic_page(self._run_pages.topic(topic), self.notation))
        self._topic.scroll_home(animate=False)
        entitle(self._topic, f"Topic {topic}")

    def show_document(self, topic: str, document: str | None, finder: Finder) -> None:
        """Show a document with what was said of it: from its beginning, unless it is the one shown already."""
        pane, key = self._document, (topic, document or "")
        changed, self._shown = key != self._shown, key
        if document is None:
            entitle(pane, "Document")
            pane.show(Content.styled(self._why_none(topic), "$faint"))
            return
        entitle(pane, self._title(topic, document))
        try:
            page = self._run_pages.page(topic, document)
        except SearchappError as error:
            pane.show(Content.styled(str(error), "$error"))
            return
        others, words = self._judging.others(topic, document), self._judging.words(topic, document)
        labels = self._run_pages.task.info.grades
        text = descriptions.document_page(page, others, words, labels, self.notation, finder.words)
        pane.show(text, changed=changed)

    def _why_none(self, topic: str) -> str:
        if self._run_pages.ranking(topic):
            return "No document of this topic has a score: `--depth all` offers those without one too."
        return "This topic has no documents."

    def _title(self, topic: str, document: str) -> str:
        title = f"Document {document}"
        if self._judging.is_blind:
            return title
        rank, score = self._judging.order(topic).ranks[document], self._run_pages.score(topic, document)
        if score is None:
            return f"{title} · rank {rank:,}"
        known = rank <= self._run_pages.scored(topic)
        return f"{title} · rank {rank:,} · {f'{score:.4f}' if known else 'no score'}"


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
            here = descriptions.scores_line("this topic", judging.scores(topic))
            overall, topics = judging.mean_scores()
            every = descriptions.scores_line(f"{topics:,} topic{'s' * (topics != 1)}", overall)
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
