"""Judging on the screen: what the keys do."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial

from textual import events, on

from searchapp.errors import SearchappError
from searchapp.judging.session import Outcome
from searchapp.tui.judge import pages
from searchapp.tui.judge.bars import KeyLine
from searchapp.tui.judge.dialogs import Choose, Help, Words
from searchapp.tui.judge.moves import JudgeMoves
from searchapp.tui.judge.saving import rescue
from searchapp.tui.line import Line

REFRESH_SECONDS = 5.0
"""How often what others have judged is taken in, and what could not be saved is tried again."""


class JudgeScreen(JudgeMoves):
    """An annotator at work on a run."""

    def on_mount(self) -> None:
        self._entitle()
        self.open_topic(self.place_of_topic)
        self.topics.show(len(self.topics.places), self.place_of_topic)
        self.set_interval(REFRESH_SECONDS, self._every_while)
        self.call_after_refresh(self._score_the_rest)
        gc.freeze()  # what is there by now stays: to look for garbage in it would keep keys waiting

    def _places(self) -> list[int]:
        ranking = self.ranking
        return sorted(ranking.selected) if ranking.selected else [ranking.cursor] if ranking.documents else []

    def give(self, grade: int, reason: str = "") -> None:
        """Give the document, or after a question the selected ones, a grade, and move on."""
        places = self._places()
        if not places:
            return
        if len(places) == 1:
            self._give(places, grade, reason)
            return
        what = pages.graded(grade, self.labels)
        self.app.push_screen(
            Choose(f"Grade {len(places)} documents {what}?", [("y", "Yes"), ("n", "No")]),
            lambda answer: self._give(places, grade, reason) if answer == "y" else None,
        )

    def _give(self, places: Sequence[int], grade: int, reason: str) -> None:
        ranking = self.ranking
        documents = [ranking.documents[place] for place in places]
        was_judged = self.desk.session.is_judged(self.topic_id, documents[-1])
        outcome = self.desk.grade(self.topic_id, documents, grade, reason)
        what = documents[0] if len(documents) == 1 else f"{len(documents)} documents"
        self._done(outcome, f"{what}: {pages.graded(grade, self.labels)}")
        if len(places) > 1:
            ranking.selected.clear()
            ranking.cursor = places[-1]
            ranking.refresh()
        self._move_on(was_judged)

    def _skip(self) -> None:
        if self.document_id is not None:
            self._done(self.desk.skip(self.topic_id, self.document_id), f"{self.document_id}: skipped")
            self._move_on(True)

    def _cant_tell(self, reason: str = "") -> None:
        if self.document_id is not None:
            was_judged = self.desk.session.is_judged(self.topic_id, self.document_id)
            outcome = self.desk.cant_tell(self.topic_id, self.document_id, reason)
            self._done(outcome, f"{self.document_id}: can't tell")
            self._move_on(was_judged)

    def _note(self) -> None:
        document = self.document_id
        if document is None:
            return
        topic = self.topic_id

        def write(words: str | None) -> None:
            if words:
                self._done(self.desk.note(topic, document, words), f"{document}: a note")
                self._show_document()

        self.app.push_screen(
            Words(f"Note on {pages.safe(document)}", self.desk.said_in_words(topic, document)), write
        )

    def _reason(self) -> None:
        if self.document_id is None:
            return
        doings: dict[str, Callable[[str], None]]
        doings = {f"grade_{grade}": partial(self.give, grade) for grade in range(len(self.labels))}
        doings["cant_tell"] = self._cant_tell
        options = {self.keys.first(name): name for name in doings if self.keys.first(name)}
        about = {one.name: one.about for one in self.keys.doings}

        def ask(key: str | None) -> None:
            if key is not None:
                act = doings[options[key]]
                self.app.push_screen(
                    Words("Reason"), lambda reason: act(reason) if reason is not None else None
                )

        self.app.push_screen(
            Choose("Which grade, with a reason?", [(key, about[name]) for key, name in options.items()]), ask
        )

    def _move_on(self, was_judged: bool) -> None:
        """To the next document that is not judged; from one that was judged before, to the one below it."""
        ranking = self.ranking
        if was_judged:
            following: int | None = min(ranking.cursor + 1, len(ranking.documents) - 1)
        else:
            following = self.desk.next_unjudged(self.topic_id, ranking.cursor)
        if following is None:
            key = self.keys.shown("next_unjudged_topic")
            self._tell(f"topic done: {key} goes on", "$success", add=True)
            following = ranking.cursor
        self._go(following)

    def _again(self, outcome: Outcome | None, what: str) -> None:
        if outcome is None:
            self._tell(f"there is nothing to {what}")
            return
        event = outcome.events[0]
        self._done(outcome, f"{what}ne: {event.document_id}" if len(outcome.events) == 1 else
                   f"{what}ne: {len(outcome.events)} documents")  # fmt: skip
        if event.topic_id in self.desk.topics:
            place = self.desk.topics.index(event.topic_id)
            places = self.desk.order(event.topic_id).places
            if place != self.place_of_topic:
                self.open_topic(place, event.document_id)
            elif event.document_id in places:
                self._go(places[event.document_id])

    def _done(self, outcome: Outcome, what: str) -> None:
        """Say that an action is saved, or that it is not."""
        if outcome.is_saved:
            self._tell(f"✓ saved  {what}", "$success")
        else:
            self._tell("")
        self._show_figures()
        self.topics.redraw(self.topics.cursor)

    def _every_while(self) -> None:
        try:
            if self.desk.session.waiting:
                outcome = self.desk.save_waiting()
                if outcome.is_saved:
                    self._tell("✓ saved  everything that was waiting", "$success")
                else:
                    self._show_head()
            elif self.desk.refresh():
                self._score_the_rest()
                self.topics.refresh()
                self.ranking.refresh()
                self._show_document()
        except SearchappError as error:
            self._tell(str(error), "$error")

    # Keys

    def take(self, event: events.Key) -> bool:
        line = self.focused
        if isinstance(line, Line):
            if event.key == "escape":
                self._leave_line(line)
                return True
            return line.take(event)
        name = self.keys.doing(event.key)
        if name is not None:
            self.do(name)
        return name is not None

    @on(KeyLine.Pressed)
    def _pressed(self, event: KeyLine.Pressed) -> None:
        self.do(event.name)

    def do(self, name: str) -> None:
        """Do what a key stands for."""
        try:
            with self.app.batch_update():  # so that all that changes is drawn once
                if name.startswith("grade_"):
                    self.give(int(name.removeprefix("grade_")))
                else:
                    self._doings()[name]()
        except SearchappError as error:
            self._tell(str(error), "$error")

    def _doings(self) -> dict[str, Callable[[], object]]:
        document = self.query_one("#document")
        return {
            "undo": lambda: self._again(self.desk.undo(), "undo"),
            "redo": lambda: self._again(self.desk.redo(), "redo"),
            "skip": self._skip,
            "cant_tell": self._cant_tell,
            "note": self._note,
            "reason": self._reason,
            "select": self._select,
            "select_down": lambda: self._select_on(1),
            "select_up": lambda: self._select_on(-1),
            "clear": self._clear,
            "down": lambda: self._move(1),
            "up": lambda: self._move(-1),
            "page_down": lambda: self._move(1, by_page=True),
            "page_up": lambda: self._move(-1, by_page=True),
            "first": lambda: self._end(first=True),
            "last": lambda: self._end(first=False),
            "next_unjudged": self._next_unjudged,
            "next_topic": lambda: self.open_topic(min(self.place_of_topic + 1, len(self.desk.topics) - 1)),
            "previous_topic": lambda: self.open_topic(max(self.place_of_topic - 1, 0)),
            "next_unjudged_topic": self._next_unjudged_topic,
            "topics": self._to_topics,
            "open": lambda: self._open_line() if self.focused is self.topics else None,
            "filter": self._filter,
            "search": self._search,
            "next_match": lambda: self._next_match(1),
            "previous_match": lambda: self._next_match(-1),
            "document": self._ask_document,
            "next_pane": lambda: self._next_pane(1),
            "previous_pane": lambda: self._next_pane(-1),
            "scroll_down": lambda: document.scroll_relative(y=document.size.height // 2, animate=False),
            "scroll_up": lambda: document.scroll_relative(y=-(document.size.height // 2), animate=False),
            "maths": self._toggle_maths,
            "theme": self._toggle_look,
            "help": lambda: self.app.push_screen(Help(self.keys)),
            "quit": self._quit,
        }

    def _quit(self) -> None:
        if self.desk.session.waiting and not self.desk.save_waiting().is_saved:
            self._ask_about_unsaved()
        else:
            self.app.exit()

    def _write_and_leave(self) -> None:
        try:
            told = rescue(self.desk.session)
        except SearchappError as error:
            self._ask_about_unsaved(str(error))
        else:
            self.app.exit(message=told)

    def last_words(self) -> str | None:
        """Save what waits, in a file of its own if need be, when nobody can be asked; what is to be told of that."""
        if not self.desk.session.waiting or self.desk.save_waiting().is_saved:
            return None
        try:
            return rescue(self.desk.session)
        except SearchappError as error:
            return str(error)

    def _ask_about_unsaved(self, why: str | None = None) -> None:
        count = self.desk.session.waiting
        options = [
            ("t", "Try again"),
            ("w", "Write them to a file that `judgments import` takes, and leave"),
            ("l", "Leave without them: they are lost"),
        ]

        def answer(key: str | None) -> None:
            if key == "t":
                self._quit()
            elif key == "w":
                self._write_and_leave()
            elif key == "l":
                self.app.exit()
            self._show_head()

        self.app.push_screen(
            Choose(f"{count} judgments are not saved: {why or self.desk.session.not_saved}", options), answer
        )
