"""Leaving a screen in order: nobody loses judgments that are not saved without being asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from textual.app import App

from searchapp.errors import SearchappError
from searchapp.judging.session import Session
from searchapp.tui.dialogs import Choose
from searchapp.tui.saving import rescue


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

        question = f"{self._session.waiting} judgments are not saved: {why}"
        self._screen.app.push_screen(Choose(question, options), answer)
