"""An annotator's work on a screen: a key saves at once, others' judgments come in, unsaved ones are asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from textual import events
from textual.app import App

from searchapp.app.inspection.pages import Pages
from searchapp.errors import SearchappError
from searchapp.judging.events import Event
from searchapp.judging.log import Presence
from searchapp.judging.session import Session
from searchapp.tui.kit.dialogs import Choose, Words
from searchapp.tui.kit.keys import KeyMap, ScreenSettings
from searchapp.tui.kit.prompts import not_saved, rescue
from searchapp.tui.kit.screen import Head, KeyApp, KeyScreen
from searchapp.tui.kit.status import came_in, no_such_grade


class Leavable(Protocol):
    """A screen that can be left."""

    @property
    def app(self) -> App[None]: ...
    def go_back(self, message: str | None = None) -> None:
        """Back to the screen below, or out of the program; the message is said there."""


class Leaving:
    """The way out of a session on a screen; `stayed` is called when somebody stays after all."""

    def __init__(self, screen: Leavable, session: Session, stayed: Callable[[], None]) -> None:
        self._screen = screen
        self._session = session
        self._stayed = stayed

    def leave(self) -> None:
        """Leave, after a question if judgments are not saved."""
        if self._is_saved():
            self._screen.go_back()
        else:
            self._ask(self._session.not_saved or "")

    def last_words(self) -> str | None:
        """Save what waits, in a file of its own if need be, when nobody can be asked; a sentence that says where."""
        if self._is_saved():
            return None
        try:
            return rescue(self._session)
        except SearchappError as error:
            return str(error)

    def _is_saved(self) -> bool:
        return not self._session.waiting or self._session.save_waiting().is_saved

    def _write(self) -> None:
        try:
            where = rescue(self._session)
        except SearchappError as error:
            self._ask(str(error))
        else:
            self._screen.go_back(where)

    def _ask(self, why: str) -> None:
        options = [
            ("t", "Try again"),
            ("w", "Write them to a file that `judgments import` takes, and leave"),
            ("l", "Leave without them: they are lost"),
        ]

        def answer(key: str | None) -> None:
            if key == "t":
                self.leave()
            elif key == "w":
                self._write()
            elif key == "l":
                self._screen.go_back()
            self._stayed()

        question = f"{not_saved(self._session.waiting)}: {why}"
        self._screen.app.push_screen(Choose(question, options), answer)


REFRESH_SECONDS = 5.0
"""How often others' judgments are read, and what could not be saved is tried again."""

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
        self.leaving = Leaving(self, session, self.head.draw)
        self._presence = presence
        self._fetched = 0

    @property
    def head(self) -> Head:
        assert isinstance(self._head, Head)
        return self._head

    def begun(self) -> None:
        self.set_interval(REFRESH_SECONDS, self._every_while)
        if self.session.synchronizer is not None or self._presence is not None:
            self.set_interval(TEAM_SECONDS, self._look_around)
        if self._presence is not None and self._presence.others:
            self._ask_about_windows(self._presence)

    def leave(self) -> None:
        self.leaving.leave()

    def last_words(self) -> str | None:
        return self.leaving.last_words()

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
            Choose(question, options), lambda key: self.leaving.leave() if key == "q" else None
        )

    # What happens elsewhere

    def _every_while(self) -> None:
        try:
            if not self.session.waiting:
                came = self.take_in()
                if came:
                    self.head.tell(came_in(came, self.session.author.annotator), "$primary")
            elif self.session.save_waiting().is_saved:
                self.head.tell("✓ saved  everything that was waiting", "$success")
            else:
                self.head.draw()
        except SearchappError as error:
            self.head.tell(str(error), "$error")

    def _look_around(self) -> None:
        """Show what others have sent, how many judgments wait to be sent, and which windows are open.

        The network is left to the synchronizer.
        """
        synchronizer = self.session.synchronizer
        if synchronizer is not None and synchronizer.fetched != self._fetched:
            self._fetched = synchronizer.fetched
            self._every_while()
        self.head.look_around()
        for news in (self.session.news, self.pages.news):
            while news:
                self.head.tell(news.pop(0), "$warning")


class WorkApp(KeyApp):
    """Shows an annotator's screen until they leave it."""

    def __init__(self, work: WorkScreen, settings: ScreenSettings) -> None:
        super().__init__(work, settings.theme, settings.spacing)
        self.work = work
