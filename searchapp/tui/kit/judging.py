"""An annotator's session on a screen: saving, judgments from elsewhere, and leaving with unsaved ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from searchapp.app.inspection.pages import Pages
from searchapp.errors import SearchappError
from searchapp.judging.events import Event
from searchapp.judging.log import Presence
from searchapp.judging.session import OthersOpinions, Outcome, SeenDocument, Session
from searchapp.judging.view import Opinion
from searchapp.tui.kit.descriptions import NO_GUIDELINES, arrivals_label, formatted_guidelines, opinion_sign
from searchapp.tui.kit.dialogs import Choose, ReportDialog, WordsDialog
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.prompts import not_saved, rescue
from searchapp.tui.kit.screen import KeyScreen, SessionBanner
from searchapp.tui.kit.widgets import RowPart

# The interval of reading others' judgments and of retries to save.
REFRESH_SECONDS = 5.0


class GradingScreen(KeyScreen):
    """A screen on which an annotator can grade documents."""

    SAVES_GRADES = True

    head: SessionBanner


class SessionControl:
    """Reports results of a session, retries, reads judgments from elsewhere, and handles leaving.

    Args:
        screen: shows the reports
        take_in: reads, shows and returns events from elsewhere
    """

    def __init__(self, screen: GradingScreen, take_in: Callable[[], Sequence[Event]]) -> None:
        # None until judging begins.
        self.session: Session | None = None
        self._screen = screen
        self._take_in = take_in
        # The error of the last refresh.
        self._trouble: SearchappError | None = None

    def begin(self, session: Session) -> None:
        self.session = self._screen.head.session = session
        self._screen.set_interval(REFRESH_SECONDS, self.refresh)

    def refresh(self) -> None:
        """Retry to save waiting judgments; without any, show events from elsewhere."""
        session, head = self.session, self._screen.head
        if session is None:
            return
        try:
            if session.waiting:
                self.tell(session.save_waiting(), "all waiting judgments")
            elif events := self._take_in():
                head.tell(arrivals_label(events, session.author.annotator), "$primary")
            self._trouble = None
        except SearchappError as error:
            trouble = self._trouble = error
            head.show_state(str(error), "$error", holds=lambda: self._trouble is trouble)
        head.clear_ended()

    def tell(self, outcome: Outcome, label: str) -> None:
        if outcome.is_saved:
            self._screen.head.tell(f"✓ saved  {label}", "$success")
        else:
            self._screen.head.draw()  # it shows unsaved judgments

    def leave(self) -> None:
        session = self.session
        if session is None or _is_saved(session):
            self._screen.go_back()
        else:
            self._ask(session, session.not_saved or "")

    def last_words(self) -> str | None:
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
            ("w", "Write them to a file for `judgments import`, and leave"),
            ("l", "Leave and lose them"),
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
    return not session.waiting or session.save_waiting().is_saved


class TopicJudging(SessionControl):
    """Judges documents of a topic on a screen for another purpose; a subclass names the topic and draws
    changes."""

    def __init__(
        self, screen: GradingScreen, labels: Sequence[str], open_session: Callable[[], Session]
    ) -> None:
        super().__init__(screen, self._refresh_session)
        self.labels = labels
        self._open_session = open_session
        self._others_opinions: OthersOpinions | None = None
        # Number of this screen's actions that can be undone.
        self._undoable = 0

    @property
    def topic_id(self) -> str | None:
        raise NotImplementedError

    def redraw(self, documents: Sequence[str] | None) -> None:
        raise NotImplementedError

    def open(self) -> Session:
        """Return the session; open it the first time.

        Raises:
            SearchappError: the log cannot be opened.
        """
        if self.session is None:
            session = self._open_session()
            self._others_opinions = OthersOpinions(session)
            self.begin(session)
            return session
        return self.session

    def opinion(self, document: str) -> Opinion | None:
        session, topic = self.session, self.topic_id
        return None if session is None or topic is None else session.opinion(topic, document)

    def mark(self, document: str) -> RowPart:
        return opinion_sign(self.opinion(document), len(self.labels) - 1)

    def others(self, document: str) -> Sequence[Opinion]:
        others, topic = self._others_opinions, self.topic_id
        return () if others is None or topic is None else others.others(topic, document)

    def words(self, document: str) -> str:
        session, topic = self.session, self.topic_id
        if session is None or topic is None:
            return ""
        return session.view.words(session.author.annotator, topic, document)

    def seen(self, document: str, run: str, rank: int | None) -> SeenDocument:
        assert self._others_opinions is not None and self.topic_id is not None
        saw_others = self._others_opinions.saw_others(self.topic_id, document)
        return SeenDocument(self.topic_id, document, run, rank, saw_others)

    def done(self, outcome: Outcome, label: str) -> None:
        self._undoable += 1
        self.tell(outcome, label)

    def take_back(self) -> Outcome | None:
        outcome = self.session.undo() if self.session is not None and self._undoable else None
        if outcome is not None:
            self._undoable -= 1
        return outcome

    def refresh(self) -> None:
        is_unsaved = self.session is not None and self.session.waiting > 0
        super().refresh()
        if is_unsaved:
            self.redraw(())  # the log now contains the saved judgments

    def _refresh_session(self) -> Sequence[Event]:
        events = () if self.session is None else self.session.refresh()
        if events:
            self.redraw(None)
        return events


# The interval of checks for exchanged judgments and other open windows.
TEAM_SECONDS = 0.5


class WorkScreen(GradingScreen):
    """A screen on which an annotator judges."""

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
        super().__init__(keys, SessionBanner(title, session, presence), columns, lists)
        self.session = session
        self.pages = pages
        self.labels = labels
        self.control = SessionControl(self, self.take_in)
        self._presence = presence
        self._fetched = 0

    def start_work(self) -> None:
        self.control.begin(self.session)
        if self.session.synchronizer is not None or self._presence is not None:
            self.set_interval(TEAM_SECONDS, self._show_changes_elsewhere)
        if self._presence is not None and self._presence.others:
            self._ask_about_windows(self._presence)

    def leave(self) -> None:
        self.control.leave()

    def last_words(self) -> str | None:
        return self.control.last_words()

    def give(self, grade: int, reason: str = "") -> None:
        raise NotImplementedError

    def take_in(self) -> Sequence[Event]:
        raise NotImplementedError

    def ask_grade(self, question: str, others: Mapping[str, Callable[[str], None]]) -> None:
        acts: dict[str, Callable[[str], None]] = {
            f"grade_{grade}": lambda reason, grade=grade: self.give(grade, reason)  # type: ignore[misc]
            for grade in range(len(self.labels))
        }
        acts |= others
        names = {key: name for name in acts if (key := self.keys.first(name))}

        def ask(key: str | None) -> None:
            if key is not None:
                act = acts[names[key]]
                self.app.push_screen(
                    WordsDialog("Reason"), lambda reason: act(reason) if reason is not None else None
                )

        options = [(key, self.keys[name].about) for key, name in names.items()]
        self.app.push_screen(Choose(question, options), ask)

    def ask_note(self, document: str, note: str, write: Callable[[str], None]) -> None:
        self.app.push_screen(
            WordsDialog(f"Note on {document}", note), lambda words: write(words) if words else None
        )

    def show_guidelines(self) -> None:
        guidelines = self.session.guidelines
        if guidelines is None:
            self.head.tell(NO_GUIDELINES, "$warning")
        else:
            text = formatted_guidelines(guidelines.text)
            self.app.push_screen(ReportDialog(f"Guidelines of {self.session.task}", text))

    def _ask_about_windows(self, presence: Presence) -> None:
        where = "; ".join(map(str, presence.others))
        name = self.session.author.annotator
        question = (
            f"{name} is already judging {self.session.task} in another window ({where}). "
            "The latest judgment counts; each window shows the judgments made in the other."
        )
        options = [("g", "Continue in this window too"), ("q", "Leave")]
        self.app.push_screen(
            Choose(question, options), lambda key: self.control.leave() if key == "q" else None
        )

    def _show_changes_elsewhere(self) -> None:
        synchronizer = self.session.synchronizer
        if synchronizer is not None and synchronizer.fetched != self._fetched:
            self._fetched = synchronizer.fetched
            self.control.refresh()
        self.head.draw_if_changed()
        for news in (self.session.news, self.pages.news):
            while news:
                self.head.tell(news.pop(0), "$warning")
