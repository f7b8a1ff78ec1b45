"""What is taken from the screen to elsewhere: ids, texts, the command that opens what is seen."""

from __future__ import annotations

import shlex

from searchapp.tui.pager import show_in_pager
from searchapp.tui.topics.parts import GoldView
from searchapp.visible import visible


class Taking:
    """Copies the document that the cursor is on."""

    def __init__(self, screen: GoldView) -> None:
        self._screen = screen

    def copy_id(self) -> None:
        document = self._document()
        if document is not None:
            self._screen.app.copy_to_clipboard(visible(document))  # it may be pasted into a shell

    def copy_text(self) -> None:
        text = self._text()
        if text is not None:
            self._screen.app.copy_to_clipboard(visible(text))

    def copy_command(self) -> None:
        command = shlex.join([*self._screen.command, "--topic", self._screen.topic_id])
        self._screen.app.copy_to_clipboard(visible(command))

    def pager(self) -> None:
        document, text = self._screen.document_id, self._text()
        if text is not None:
            show_in_pager(self._screen.app, f"{document}\n\n{text}\n")

    def _document(self) -> str | None:
        document = self._screen.document_id
        if document is None:
            self._screen.head.tell("there is no document here", "$warning")
        return document

    def _text(self) -> str | None:
        """The text of the document, as far as it has come already."""
        document = self._document()
        text = None if document is None else self._screen.topics.pages.known_text(document)
        if document is not None and text is None:
            self._screen.head.tell("the text of this document is not there", "$warning")
        return text
