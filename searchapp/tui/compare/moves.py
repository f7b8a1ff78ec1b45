"""From one moved document to the next, across to the other run, and why a document is where it is in both."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from searchapp.app.explain import Explained
from searchapp.tui.compare.lists import ComparedRows
from searchapp.tui.compare.why import ExplainedTwice
from searchapp.tui.rows import shortened
from searchapp.tui.topics.gold import Gold
from searchapp.tui.topics.parts import GoldView, Kind
from searchapp.tui.topics.reading import LONGEST_ID
from searchapp.tui.topics.side import Side


class ComparedView(GoldView, Protocol):
    """The compare screen, as far as this asks it: `pair` are its two runs, `beside` is the one that is not in sight."""

    @property
    def pair(self) -> tuple[Side, Side]: ...
    @property
    def beside(self) -> Side: ...
    @property
    def names(self) -> tuple[str, str]: ...


class Moves(Gold):
    """Goes to documents of the topic in sight, in either run, and asks why they are where they are."""

    def __init__(self, screen: ComparedView) -> None:
        super().__init__(screen)
        self._compared = screen

    def next_moved(self, step: int) -> None:
        """To the document whose move between the runs counts most, from there to the next one, or to that before it."""
        screen, ranking = self._compared, self._compared.ranking
        assert isinstance(ranking, ComparedRows)
        place = ranking.next_moved(step)
        screen.focus_rows(ranking)
        if place is None:
            screen.head.tell("no further document of this ranking has moved")
        else:
            ranking.move(place)
            screen.show_document()

    def across(self) -> None:
        """To the document of the cursor in the other run: in its ranking or its missed gold."""
        screen, document = self._compared, self._compared.document_id
        if document is None:
            screen.focus_rows(screen.beside.ranking)
            return
        for rows in screen.beside.lists:
            if document in rows.documents:
                rows.put(list(rows.documents).index(document))
                screen.focus_rows(rows)
                return
        name = screen.names[screen.pair.index(screen.beside)]
        key = screen.keys.shown("why")
        screen.focus_rows(screen.beside.ranking)
        screen.head.tell(
            f"{shortened(document, LONGEST_ID)} is not in {name}: {key} there says why of any id"
        )

    def go_to(self, document: str) -> bool:
        if super().go_to(document):
            return True
        for rows in self._compared.beside.lists:
            if document in rows.documents:
                rows.put(list(rows.documents).index(document))
                self._compared.focus_rows(rows)
                return True
        return False

    def _why(self, document: str) -> None:
        screen, topic = self._compared, self._compared.topic_id
        found: dict[int, Explained | Exception] = {}
        names = screen.names

        def came(number: int, explained: Explained | Exception) -> None:
            found[number] = explained
            if len(found) == len(names):
                screen.head.came()
                both = [(names[one], found[one]) for one in sorted(found)]
                dialog = ExplainedTwice(document, both, screen.topics.task.name)
                screen.when_in_front(lambda: screen.app.push_screen(dialog))

        screen.head.wait(f"looking for {shortened(document, LONGEST_ID)} …")
        for number, side in enumerate(screen.pair):
            side.slow.ask(
                Kind.why,
                lambda topics: topics.why(topic, document),
                partial(came, number),
                partial(came, number),
            )
