"""An annotator's work on a screen: a key saves at once, others' judgments come in, unsaved ones are asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual import events

from searchapp.app.inspection.pages import Pages
from searchapp.errors import SearchappError
from searchapp.judging.events import Event
from searchapp.judging.judgments import Opinion
from searchapp.judging.log import Presence
from searchapp.judging.session import OthersOpinions, Outcome, SeenDocument, Session
from searchapp.tui.kit.dialogs import Choose, Words
from searchapp.tui.kit.keys import KeyMap, ScreenSettings
from searchapp.tui.kit.prompts import not_saved, rescue
from searchapp.tui.kit.screen import Head, KeyApp, KeyScreen
from searchapp.tui.kit.status import came_in, mark, no_such_grade, unsaved
from searchapp.tui.kit.widgets import Part

REFRESH_SECONDS = 5.0
"""How often others' judgments are read, and what could not be saved is tried again."""


class SessionControl:
    """An annotator's session on a screen: outcomes, retries, judgments from elsewhere, and the way out.

    Args:
        screen: shows what happened, and has the timer
        take_in: reads and shows what was written elsewhere since; returns these events
    """

    def __init__(self, screen: KeyScreen, take_in: Callable[[], Sequence[Event]]) -> None:
        self.session: Session | None = None
        """None until judging begins."""
        self._screen = screen
        self._take_in = take_in

    def begin(self, session: Session) -> None:
        """Keep the screen up to date with a session from now on."""
        self.session = session
        self._screen.set_interval(REFRESH_SECONDS, self.refresh)

    def refresh(self) -> None:
        """Try again to save what is unsaved; if nothing is, show what was written elsewhere."""
        session, head = self.session, self._screen.head
        if session is None:
            return
        try:
            if session.waiting:
                self.tell(session.save_waiting(), "everything that was waiting")
            elif came := self._take_in():
                head.tell(came_in(came, session.author.annotator), "$primary")
        except SearchappError as error:
            head.tell(str(error), "$error")

    def tell(self, outcome: Outcome, what: str) -> None:
        """Say that an action is saved, or why it is not."""
        head, waiting = self._screen.head, 0 if self.session is None else self.session.waiting
        if outcome.is_saved:
            head.tell(f"✓ saved  {what}", "$success")
        else:
            head.tell(unsaved(waiting, str(outcome.not_saved)), "bold $error")

    # The way out

    def leave(self) -> None:
        """Leave the screen, after a question if judgments are not saved."""
        session = self.session
        if session is None or _is_saved(session):
            self._screen.go_back()
        else:
            self._ask(session, session.not_saved or "")

    def last_words(self) -> str | None:
        """Save what waits, in a file of its own if need be, when nobody can be asked; a sentence that says where."""
        session = self.session
        if session is None or _is_saved(session):
            return None
        try:
            return rescue(session)
        except SearchappError as error:
            return str(error)

    def _write(self, session: Session) -> None:
        try:
            where = rescue(session)
        except SearchappError as error:
            self._ask(session, str(error))
        else:
            self._screen.go_back(where)

    def _ask(self, session: Session, why: str) -> None:
        options = [
            ("t", "Try again"),
            ("w", "Write them to a file that `judgments import` takes, and leave"),
            ("l", "Leave without them: they are lost"),
        ]

        def answer(key: str | None) -> None:
            if key == "t":
                self.leave()
            elif key == "w":
                self._write(session)
            elif key == "l":
                self._screen.go_back()
            self._screen.head.draw()

        self._screen.app.push_screen(Choose(f"{not_saved(session.waiting)}: {why}", options), answer)


def _is_saved(session: Session) -> bool:
    """Whether everything is saved, if need be after another try."""
    return not session.waiting or session.save_waiting().is_saved


class TopicJudging(SessionControl):
    """Judging documents of a topic on a screen that is for something else, once the annotator asks for it.

    A subclass names the topic and draws what changes.

    Args:
        screen: shows what happened
        labels: the names of the grades
        open_session: opens the annotator's session, when judging begins
    """

    def __init__(self, screen: KeyScreen, labels: Sequence[str], open_session: Callable[[], Session]) -> None:
        super().__init__(screen, self._refreshed)
        self.labels = labels
        self._open_session = open_session
        self._others_opinions: OthersOpinions | None = None
        self._given = 0
        """How many actions of this screen can be undone."""

    @property
    def topic_id(self) -> str | None:
        """The topic that documents are judged for; None while there is none."""
        raise NotImplementedError

    def redraw(self, documents: Sequence[str] | None) -> None:
        """Draw again what was said of some documents of the topic, or of all."""
        raise NotImplementedError

    def open(self) -> Session:
        """The session, which is opened unless it is open.

        Raises:
            SearchappError: the log can't be opened.
        """
        if self.session is None:
            session = self._open_session()
            self._others_opinions = OthersOpinions(session)
            self.begin(session)
            return session
        return self.session

    # What was said

    def opinion(self, document: str) -> Opinion | None:
        """What the annotator says of a document."""
        session, topic = self.session, self.topic_id
        return None if session is None or topic is None else session.opinion(topic, document)

    def mark(self, document: str) -> Part:
        """What was said of a document, in a sign."""
        return mark(self.opinion(document), len(self.labels) - 1)

    def others(self, document: str) -> Sequence[Opinion]:
        """What others say of a document, once the annotator has judged it."""
        others, topic = self._others_opinions, self.topic_id
        return () if others is None or topic is None else others.others(topic, document)

    def words(self, document: str) -> str:
        """The annotator's words on a document."""
        session, topic = self.session, self.topic_id
        if session is None or topic is None:
            return ""
        return session.view.words(session.author.annotator, topic, document)

    # What is said

    def seen(self, document: str, run: str, rank: int | None) -> SeenDocument:
        """A document of the topic as the log is to know it."""
        assert self._others_opinions is not None and self.topic_id is not None
        saw_others = self._others_opinions.saw_others(self.topic_id, document)
        return SeenDocument(self.topic_id, document, run, rank, saw_others)

    def done(self, outcome: Outcome, what: str) -> None:
        """Say what an action came to, which can be undone from now on."""
        self._given += 1
        self.tell(outcome, what)

    def take_back(self) -> Outcome | None:
        """Undo the last action of this screen; None when there is none."""
        outcome = self.session.undo() if self.session is not None and self._given else None
        if outcome is not None:
            self._given -= 1
        return outcome

    def refresh(self) -> None:
        is_unsaved = self.session is not None and self.session.waiting > 0
        super().refresh()
        if is_unsaved:
            self.redraw(())  # what reads the log shows what is saved by now

    def _refreshed(self) -> Sequence[Event]:
        came = () if self.session is None else self.session.refresh()
        if came:
            self.redraw(None)
        return came


TEAM_SECONDS = 0.5
"""How often it is looked what has gone to, and come from, the cluster of a team, and who else has the log open."""


class WorkScreen(KeyScreen):
    """An annotator at work.

    Args:
        session: what the annotator writes into
        pages: what the annotator reads
        keys: what keys do
        labels: the names of the grades
        title: whose work it is, and on what
        columns: the panes and their columns, see `Panes`
        lists: those of them that are lists, the main one first
        presence: says who else has the log open; None where nobody looks
    """

    SAVES_GRADES = True

    def __init__(
        self,
        session: Session,
        pages: Pages,
        keys: KeyMap,
        labels: Sequence[str],
        title: str,
        columns: Mapping[str, str],
        lists: Sequence[str],
        presence: Presence | None = None,
    ) -> None:
        super().__init__(keys, Head(session, title, presence), columns, lists)
        self.session = session
        self.pages = pages
        self.labels = labels
        self.control = SessionControl(self, self.take_in)
        self._presence = presence
        self._fetched = 0

    @property
    def head(self) -> Head:
        assert isinstance(self._head, Head)
        return self._head

    def begun(self) -> None:
        self.control.begin(self.session)
        if self.session.synchronizer is not None or self._presence is not None:
            self.set_interval(TEAM_SECONDS, self._look_around)
        if self._presence is not None and self._presence.others:
            self._ask_about_windows(self._presence)

    def leave(self) -> None:
        self.control.leave()

    def last_words(self) -> str | None:
        return self.control.last_words()

    # What a screen says

    def give(self, grade: int, reason: str = "") -> None:
        """Give what the cursor is on a grade, and move on."""
        raise NotImplementedError

    def take_in(self) -> Sequence[Event]:
        """Read and show what was written elsewhere since; returns these events."""
        raise NotImplementedError

    # Keys

    def refuse(self, event: events.Key) -> None:
        if event.key.isdecimal():
            self.head.tell(no_such_grade(event.key, self.labels), "$warning")
        else:
            super().refuse(event)

    def act(self, name: str) -> None:
        if name.startswith("grade_"):
            self.give(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    def ask_grade(self, question: str, others: Mapping[str, Callable[[str], None]]) -> None:
        """Ask for a grade, or for what else can be said with a reason, and then for the reason."""
        acts: dict[str, Callable[[str], None]] = {
            f"grade_{grade}": lambda reason, grade=grade: self.give(grade, reason)  # type: ignore[misc]
            for grade in range(len(self.labels))
        }
        acts |= others
        options = {self.keys.first(name): name for name in acts if self.keys.first(name)}
        about = {one.name: one.about for one in self.keys.actions}

        def ask(key: str | None) -> None:
            if key is not None:
                act = acts[options[key]]
                self.app.push_screen(
                    Words("Reason"), lambda reason: act(reason) if reason is not None else None
                )

        self.app.push_screen(Choose(question, [(key, about[name]) for key, name in options.items()]), ask)

    def ask_note(self, document: str, said: str, write: Callable[[str], None]) -> None:
        self.app.push_screen(
            Words(f"Note on {document}", said), lambda words: write(words) if words else None
        )

    def _ask_about_windows(self, presence: Presence) -> None:
        """Say that the same annotator has another window open, and ask whether to go on."""
        where = "; ".join(map(str, presence.others))
        name = self.session.author.annotator
        question = (
            f"{name} judges {self.session.task} in another window already ({where}). "
            "The latest judgment counts, whichever window it is made in: each shows what comes from the other."
        )
        options = [("g", "Go on in this one too"), ("q", "Leave")]
        self.app.push_screen(
            Choose(question, options), lambda key: self.control.leave() if key == "q" else None
        )

    # What happens elsewhere

    def _look_around(self) -> None:
        """Show what others have sent, how many judgments wait to be sent, and which windows are open.

        The network is left to the synchronizer.
        """
        synchronizer = self.session.synchronizer
        if synchronizer is not None and synchronizer.fetched != self._fetched:
            self._fetched = synchronizer.fetched
            self.control.refresh()
        self.head.look_around()
        for news in (self.session.news, self.pages.news):
            while news:
                self.head.tell(news.pop(0), "$warning")


class WorkApp(KeyApp):
    """Shows an annotator's screen until they leave it."""

    def __init__(self, work: WorkScreen, settings: ScreenSettings) -> None:
        super().__init__(work, settings.theme, settings.spacing)
        self.work = work
