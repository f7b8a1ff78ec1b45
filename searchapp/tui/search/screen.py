"""Searching on the screen: what the keys do.

The screen holds its parts and lets them do their work: `searching` asks and takes in, `hits` and `reading` show,
`grading`, `choosing`, `reasons` and `copying` do what keys stand for, `why` and `facets` are dialogs. What these may
ask of the screen is in `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from searchapp.app.fused import FUSED_DEPTH
from searchapp.app.past import Past
from searchapp.app.search import Searcher
from searchapp.errors import SearchappError
from searchapp.ranking.language import BrokenQuery
from searchapp.ranking.search import SearchResult
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.content import entitle
from searchapp.tui.dialogs import Help
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.palette import Offer
from searchapp.tui.rows import Rows
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search import about
from searchapp.tui.search.actions import IN_HITS, IN_LINE
from searchapp.tui.search.asked import Asked, Words
from searchapp.tui.search.asking import LANES, Asker
from searchapp.tui.search.choosing import Choosing
from searchapp.tui.search.copying import Copying
from searchapp.tui.search.freshness import LOOK_SECONDS, Freshness, title_of
from searchapp.tui.search.grading import Grading
from searchapp.tui.search.hits import HitRows, prepare
from searchapp.tui.search.judging import Judging
from searchapp.tui.search.keeping import Keeping
from searchapp.tui.search.learning import Learning
from searchapp.tui.search.listing import Listing
from searchapp.tui.search.note import Note
from searchapp.tui.search.opening import Opened
from searchapp.tui.search.putting_off import PuttingOff
from searchapp.tui.search.reading import Reading
from searchapp.tui.search.reasons import Reasons
from searchapp.tui.search.searching import Position, Searching, Sought, Trail
from searchapp.tui.search.solved import Solved
from searchapp.tui.status import said_by

COLUMNS = {"hits": "list", "document": "text"}


class SearchScreen(KeyScreen):
    """Somebody searches a task's documents."""

    CSS_PATH = Path(__file__).with_name("search.tcss")
    AUTO_FOCUS = "#words"
    ABOUT = about.ABOUT

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        searcher = opened.searcher
        self.searched = searcher.task
        info = searcher.index.info
        super().__init__(keys, Banner(title_of(self.searched, info)), COLUMNS, ("hits",))
        self.searcher = searcher
        self._opened = opened
        self.learning = Learning(self._later, self.head)
        self._freshness = Freshness(self, info)
        self.quick: Asker = self._asker("search", self._first_searcher(), lambda: self.slow, LANES)
        # What a recipe has learned is in one searcher, so that nothing overtakes there.
        self.slow: Asker = self._asker("search aside", self._another, lambda: self.quick, 1)
        self.searching = Searching(self, self.quick, self.slow, self._is_quick)
        self.searching.sought = opened.sought
        self.words = Words(self._submitted, self.typed, self.point)
        self._asked = Asked(self.words)
        self.judging = Judging(opened.session, self.searched.info.grades)
        self.hits = HitRows(self.judging.mark, self.searched.info.markup)
        self.note = Note()
        self.solved = Solved(searcher, self._later)
        self.reading = Reading(self.searched.info, keys.shown("pager"), self.solved)
        self._trail = Trail()
        self._past = Past(opened.home, self.searched.name)
        self.grading = Grading(self, self.judging)
        self._choosing = Choosing(self, self._past)
        self._reasons = Reasons(self)
        self._keeping = Keeping(self, opened.home)
        self.copying = Copying(self)
        self.error: Exception | None = None
        """Why there is no ranking of what is sought; None while there is one, or may be."""
        self._put_off = PuttingOff(self.do)

    def compose(self) -> ComposeResult:
        yield self.head
        yield self._asked
        yield self.note
        with Container(id="body"):
            with Vertical(id="list"):
                yield self.hits
            yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, "undo"), 1, id="grades")
        yield KeyLine(self._entries_in_line(), 1, id="keys-line")
        yield KeyLine(self._entries(*IN_HITS), 1, id="keys")

    def _entries_in_line(self) -> list[Entry]:
        """The keys that hold while somebody types."""
        words = {one.name: one.word for one in self.keys.actions}
        entries = [Entry(name, self.keys.shown_in_line(name), words[name]) for name in IN_LINE]
        return [Entry("words", "↵", "to the hits"), *(one for one in entries if one.key)]

    def begin(self) -> None:
        entitle(self.hits, "Hits")
        self.reading.show_none("")
        if self._opened.restore and self._opened.sought == Sought() and self._keeping.restore():
            self.words.select_all()  # what is typed takes their place
        else:
            self.seek(self._opened.sought)
        self.set_interval(LOOK_SECONDS, self._freshness.look)

    def on_resize(self) -> None:
        if isinstance(self.error, BrokenQuery):
            self.call_after_refresh(
                self.draw_sought
            )  # its place depends on where the line of words is by then

    def leave(self) -> None:
        leaving = self.grading.leaving
        if leaving is None:
            self.go_back()
        else:
            leaving.leave()

    def last_words(self) -> str | None:
        leaving = self.grading.leaving
        return None if leaving is None else leaving.last_words()

    def on_unmount(self) -> None:
        if self._opened.restore:
            self._keeping.keep()
        self.quick.close()
        self.slow.close()

    def help(self) -> Help:
        of_words = {} if isinstance(self.focused, Line) else {"Words": about.LANGUAGE}
        return Help(self.keys, of_words, self.about_focused)

    def offers(self) -> Iterator[Offer]:
        return self._choosing.offers()

    def further_offers(self) -> Iterator[Offer]:
        yield from self.grading.offers()
        yield from self._opened.elsewhere(self)

    def _asker(
        self, name: str, searcher: Callable[[], Searcher], other: Callable[[], Asker], lanes: int
    ) -> Asker:
        return self._freshness.asker(name, searcher, self._later, self.set_timer, other, lanes)

    def _first_searcher(self) -> Callable[[], Searcher]:
        """Gives the searcher that the screen was opened with, and further ones for newer versions of the index."""
        given = [self._opened.searcher]
        return lambda: given.pop() if given else self._another()

    def _another(self) -> Searcher:
        return self._opened.another(self.learning)

    def _later(self, what: Callable[[], object]) -> None:
        """Have something done here, whichever thread asks for it."""
        self.call_later(self._take_in, what)

    def _take_in(self, what: Callable[[], object]) -> None:
        with self.app.batch_update():
            what()

    def _is_quick(self, recipe: str | None) -> bool:
        return self.searcher.recipe(recipe).is_one_query

    def on_descendant_focus(self) -> None:
        self.set_class(isinstance(self.focused, Line), "-typing")

    # Keys

    def take(self, event: events.Key) -> bool:
        if not isinstance(self.focused, Line):
            return super().take(event)
        if event.key == "escape":
            self.leave_line(self.focused)
        elif not self.focused.take(event):  # keys that edit nothing do here what they do elsewhere
            name = self.keys.action(event.key)
            if name is not None and not event.is_printable:
                self.do(name)
        return True

    def act(self, name: str) -> None:
        """Do what a name stands for; what is for a hit waits for the ranking that was asked for before."""
        if self.searching.is_waiting and self._put_off.takes(name):
            return
        if name.startswith("grade_"):
            self.grading.give(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    def leave_line(self, line: Line) -> None:  # noqa: ARG002  # there is one
        self.panes.focus(self.hits)

    def _submitted(self, text: str) -> None:
        self._past.add(text)
        self.panes.focus(self.hits)

    def typed(self, text: str) -> None:
        self.error = None
        self._freshness.begun()
        sought = self.searching.sought
        self.searching.typed(replace(sought, text=text, like=None, literal=False))
        if sought.like is not None:
            self.draw_sought()

    def _to_words(self) -> None:
        """To the words, or from there to the hits."""
        if isinstance(self.focused, Line):
            self._submitted(self.words.value)
            return
        if self.panes.is_reading:
            self.panes.toggle_reading()
        self.set_focus(self.words)

    # What comes of a search

    def found(self, listing: Listing, cursor: int) -> None:
        self.error = None
        self.hits.open(listing, cursor, self.judging.mark_cells)
        count = listing.total
        recipe = listing.request.recipe or self.searched.info.search_recipe
        first = "the first " if count == FUSED_DEPTH and not self._is_quick(recipe) else ""
        self._freshness.found(f"{first}{count:,} document{'s' * (count != 1)} · {recipe}")
        if lost := self._keeping.lost():
            self.head.tell(lost, "$warning", add=True)
        self.draw_sought()
        self.show_document()
        self._put_off.catch_up()

    @property
    def place(self) -> int:
        return self.hits.cursor

    def prepare(self, results: Sequence[SearchResult]) -> None:
        prepare(results, self.hits.notation)

    def forget_documents(self) -> None:
        self.reading.forget()
        self._choosing.count_again()

    def page_came(self, places: range) -> None:
        self.hits.page_came(places)
        if self.hits.cursor in places:
            self.show_document()
        self._fetch()

    def failed(self, error: Exception) -> None:
        self.error = error
        if not isinstance(error, BrokenQuery):
            before = "" if isinstance(error, SearchappError) else "the search failed: "
            self.head.tell(f"{before}{said_by(error)}", "$error", lasts=False)
        self.draw_sought()
        self._put_off.give_up()

    def draw_sought(self) -> None:
        """Show what is sought, beside the words: whether they can be read, the filters, the recipe."""
        self._freshness.draw()
        sought = self.searching.sought
        self._asked.show(self._freshness.title, sought.like)
        if isinstance(self.error, BrokenQuery):
            self.point()
        elif words := self._freshness.words:
            self.note.show_error(words)
        else:
            topic = self.judging.topic
            self.note.show_filters(
                sought.filters, self.keys.shown("filter"), "" if topic is None else topic.id
            )

    def point(self) -> None:
        """Point to what is wrong with the words, below where it stands."""
        if isinstance(self.error, BrokenQuery):
            offset = self.words.content_region.x - self.words.scroll_offset.x - self.note.left
            self.note.show_broken(self.error, self.searching.sought.text, offset)

    @on(HitRows.Wanted)
    def _wanted(self, event: HitRows.Wanted) -> None:
        event.stop()
        self._fetch()

    def _fetch(self) -> None:
        """Fetch what is in sight, and then what comes into sight next."""
        seen = self.hits.visible_places
        self.searching.fetch(range(seen.start, seen.stop))
        self.searching.fetch(range(seen.start - self.hits.page, seen.stop + self.hits.page))

    def cursor_moved(self, rows: Rows) -> None:  # noqa: ARG002  # there is one list
        self.show_document()
        if self.hits.result is None:
            self._fetch()
        else:
            self.call_after_refresh(self._fetch)  # what is fetched would take turns with what draws

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        self.panes.focus(self.hits)

    def show_document(self) -> None:
        """Show the document that the cursor is on."""
        result = self.hits.result
        if result is not None:
            self.reading.show(result, self.searching.asker, self.judging.said(result.hit.document_id))
        elif self.hits.count:
            self.reading.show_none("…")
        elif not self.searching.sought.text.strip() and not self._is_quick(self.searching.sought.recipe):
            self.reading.show_none("This recipe ranks documents for words: type some.")
        else:
            self.reading.show_none("No document matches.")

    # What is sought

    def seek(self, sought: Sought, cursor: int = 0) -> None:
        self.error = None
        self._freshness.begun()
        self.words.value = "" if sought.like is not None else sought.text
        self.words.cursor_position = len(self.words.value)
        self.searching.seek(sought, cursor)
        self.draw_sought()

    @property
    def _position(self) -> Position:
        return Position(self.searching.sought, self.hits.cursor)

    def _walk(self, step: Callable[[Position], Position | None], where: str) -> None:
        position = step(self._position)
        if position is None:
            self.head.tell(f"there is no search {where} this one")
        else:
            self.seek(position.sought, position.cursor)

    def leave_for(self, sought: Sought) -> None:
        self._trail.leave(self._position)
        self.seek(sought)

    # What the parts ask

    @property
    def program(self) -> Sequence[str]:
        return self._opened.command

    @property
    def recipe(self) -> str:
        return self.searching.sought.recipe or self.searched.info.search_recipe

    def result(self) -> SearchResult | None:
        result = self.hits.result
        if result is None:
            self.head.tell("there is no document here", "$warning")
        return result

    def _next_form(self) -> None:
        self.reading.notation = self.reading.notation.next
        self.hits.show_in(self.reading.notation)
        self.show_document()
        self.head.tell(self.reading.notation.about)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "words": self._to_words,
            "history": self._choosing.recall,
            "save": self._keeping.save,
            "saved": self._keeping.open,
            "filter": self._choosing.filter,
            "recipe": self._choosing.choose_recipe,
            "like": self._choosing.like,
            "topic": self.grading.choose_topic,
            "judge": self.grading.toggle,
            "undo": self.grading.undo,
            "back": lambda: self._walk(self._trail.back, "before"),
            "forward": lambda: self._walk(self._trail.forward, "behind"),
            "why": self._reasons.why,
            "document": self._reasons.ask_document,
            "compare": self._reasons.compare,
            "citing": self._reasons.citing,
            "analysis": self._reasons.analysis,
            "fold": self.reading.choose_sections,
            "maths": self._next_form,
            "copy_id": self.copying.copy_id,
            "copy_text": self.copying.copy_text,
            "copy_command": self.copying.copy_command,
            "pager": self.copying.pager,
        }
