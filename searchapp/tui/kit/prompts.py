"""Conversations by prompts, and a file for judgments that the log rejects. Only this module of `tui` prints."""

from __future__ import annotations

import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from searchapp.app.inspection.pages import Pages
from searchapp.errors import SearchappError
from searchapp.files import reason
from searchapp.judging.events import grade_label
from searchapp.judging.exchange import write_jsonl
from searchapp.judging.session import Outcome, Session
from searchapp.judging.team import waiting_label
from searchapp.text import be, counted, visible
from searchapp.tui.kit.content import Form, Notation
from searchapp.tui.kit.descriptions import NO_GUIDELINES, document_label

# Prints a prompt and returns the typed line; raises EOFError at the end of the input.
Ask = Callable[[str], str]

NOTE = "write the note after a, as in: a see topic 7"


class Conversation(ABC):
    """A conversation with an annotator or adjudicator about the documents of `pages`."""

    def __init__(self, session: Session, pages: Pages, title: str, ask: Ask, out: TextIO | None) -> None:
        self.labels = pages.task.info.grades
        self._session = session
        self._pages = pages
        self._title = title
        self._ask: Ask = lambda prompt: ask(visible(prompt))
        self._out = out or sys.stdout
        self._notation = Notation(pages.task.info.markup, Form.written)
        self._has_trouble = False

    def converse(self) -> None:
        """Ask and answer until the annotator leaves or the input ends.

        Raises:
            SearchappError: leaving at the end of the input failed; judgments may be lost.
        """
        self._say(f"{self._title}. {self._grades()}. ? lists all commands.")
        self._begin()
        is_at_end = False
        while True:
            try:
                line = self._ask("> ").strip()
            except EOFError:
                line, is_at_end = "q", True
            try:
                if not self._obey(line):
                    return
            except SearchappError as error:
                if is_at_end:
                    raise
                self._say(f"error: {error}")

    @abstractmethod
    def _begin(self) -> None:
        pass

    @abstractmethod
    def _obey(self, line: str) -> bool:
        """Act on a line; return False to leave."""

    def _report(self, outcome: Outcome, label: str) -> None:
        if outcome.is_saved:
            self._say(f"saved. {label}")
            self._report_team()
        else:
            count = self._session.waiting
            things = "judgment is" if count == 1 else "judgments are"
            self._say(f"NOT SAVED. {count} {things} waiting: {outcome.not_saved}")

    def _report_team(self) -> None:
        synchronizer = self._session.synchronizer
        trouble = synchronizer is not None and synchronizer.trouble
        if trouble and not self._has_trouble:
            self._say(f"{waiting_label(self._session.unsent)}, saved on this machine until then: {trouble}")
        elif self._has_trouble and not trouble:
            self._say("the cluster answers again")
        self._has_trouble = bool(trouble)

    def _say_news(self, news: list[str]) -> None:
        while news:
            self._say(news.pop(0))

    def _agrees(self, question: str) -> bool:
        try:
            return self._ask(f"{question} (y/n) ").strip().lower() in ("y", "yes")
        except EOFError:
            return False

    def _name(self, document: str) -> str:
        return document_label(document, self._pages.known_text(document), self._notation)

    def _toggle_maths(self) -> None:
        self._notation = self._notation.next
        self._say(f"shown: {self._notation.about}")

    def _read_guidelines(self) -> None:
        guidelines = self._session.guidelines
        self._say(NO_GUIDELINES if guidelines is None else guidelines.text)

    def _grades(self) -> str:
        return f"The grades are {', '.join(grade_label(grade, self.labels) for grade in range(len(self.labels)))}"

    def _say(self, words: str) -> None:
        print(visible(words), file=self._out, flush=True)


def rescue(session: Session) -> str:
    """Write the waiting events to a new temporary file; return a sentence that names it.

    Raises:
        SearchappError: the file cannot be written.
    """
    waiting = session.waiting_events
    try:
        with tempfile.NamedTemporaryFile(
            "wb", prefix="searchapp-judgments-", suffix=".jsonl", delete=False
        ) as file:
            write_jsonl(cast(BinaryIO, file), waiting, session.details(waiting))
    except OSError as error:
        raise SearchappError(
            f"the judgments can't be written to {tempfile.gettempdir()}: {reason(error)}"
        ) from error
    are, them = ("is", "it") if len(waiting) == 1 else ("are", "them")
    sentence = f"{counted(len(waiting), 'judgment')} {are} in {Path(file.name)}"
    return f"{sentence}: `searchapp judgments import` imports {them}"


def not_saved(count: int) -> str:
    """Return the number of unsaved judgments in words."""
    return f"{counted(count, 'judgment')} {be(count)} not saved"


def leave_by_prompts(session: Session, say: Callable[[str], None], ask: Callable[[str], str]) -> bool:
    """Save waiting judgments, to a file if necessary; return whether the annotator may leave."""
    if not session.waiting or session.save_waiting().is_saved:
        return True
    say(f"{not_saved(session.waiting)}: {session.not_saved}")
    try:
        answer = ask("Try again (t), write them to a file and leave (w), stay (s)? ").strip()
    except EOFError:
        answer = "w"
    if answer == "w":
        say(rescue(session))
        return True
    return answer == "t" and leave_by_prompts(session, say, ask)
