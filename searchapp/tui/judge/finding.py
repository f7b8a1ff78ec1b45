"""Searching the documents of a topic for words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.screen import Screen

from searchapp.app.run_pages import RunPages
from searchapp.tui.head import Head
from searchapp.tui.judge.lists import RankingRows
from searchapp.tui.keys import KeyMap


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
        head: Head,
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
        self._head.tell(f"“{' '.join(self.words)}”: {which} of {len(places)} documents ({again})")
