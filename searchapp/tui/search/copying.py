"""What is taken from the search screen to elsewhere: ids, texts, the command that prints what is seen."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from searchapp.ranking.search import SearchResult
from searchapp.tui.pager import show_in_pager
from searchapp.tui.search.parts import SearchView
from searchapp.visible import visible

SIGNS = '+-"()*:\\'
"""What may say more than words, which a command would take for what it says."""


class Copying:
    """Copies the hit that the cursor is on, or what was asked for."""

    def __init__(self, screen: SearchView) -> None:
        self._screen = screen

    def copy_id(self) -> None:
        self._copy(lambda result: result.hit.document_id)

    def copy_text(self) -> None:
        self._copy(lambda result: result.text)

    def _copy(self, of: Callable[[SearchResult], str]) -> None:
        result = self._screen.result()
        if result is not None:
            self._screen.app.copy_to_clipboard(visible(of(result)))  # it may be pasted into a shell

    def command(self) -> str | None:
        """The command that prints what is seen; None where there is none."""
        sought = self._screen.searching.sought
        if sought.like is not None or (sought.literal and set(SIGNS) & set(sought.text)):
            return None
        parts = list(self._screen.program)
        if sought.recipe is not None:
            parts += ["--recipe", sought.recipe]
        for one in sought.filters:
            parts += ["--filter", f"{one.field}={one.value}"]
        seen = self._screen.hits.visible_places
        parts += ["--size", str(max(1, len(seen)))]
        if seen.start:
            parts += ["--from", str(seen.start + 1)]
        return shlex.join([*parts, "--", self._screen.searched.reference, sought.text])

    def copy_command(self) -> None:
        command = self.command()
        if command is None:
            self._screen.head.tell(
                "no command takes this text as words alone: it has signs that say more", "$warning"
            )
        else:
            self._screen.app.copy_to_clipboard(visible(command))

    def pager(self) -> None:
        result = self._screen.result()
        if result is None:
            return
        show_in_pager(self._screen.app, f"{result.hit.document_id}\n\n{result.text}\n")
