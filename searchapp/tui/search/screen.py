"""The search screen, and how it is opened: what its keys do, and whether the ranking in sight is of what is sought.

What is done with a hit while another ranking is waited for is put off until that is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from searchapp.app.saved_searches import RecentSearches
from searchapp.app.search import FUSED_DEPTH, TaskSearcher
from searchapp.app.sessions import grading_session
from searchapp.config.settings import Settings
from searchapp.engines.base import Engine
from searchapp.errors import SearchappError
from searchapp.judging.session import Session
from searchapp.model import IndexInfo
from searchapp.progress import Advance, Progress, TextProgress
from searchapp.ranking.query_language import BrokenQuery
from searchapp.ranking.search_results import SearchResult
from searchapp.tasks.base import Task
from searchapp.text import counted, visible
from searchapp.tui.kit.background import LANES, Post, SearchQueue, SearchRequestKind
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.keys import KeyMap, ScreenSettings
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.screen import Banner, KeyApp, KeyScreen, saves, show_in_pager
from searchapp.tui.kit.widgets import KeyEntry, KeyLine, RowList, TextLine
from searchapp.tui.search import actions as about
from searchapp.tui.search.actions import IN_HITS, IN_LINE
from searchapp.tui.search.choices import Choosing, Keeping
from searchapp.tui.search.judging import Judging
from searchapp.tui.search.panes import Asked, HitRows, Note, Reading, SearchView, Solved, Words, prepare
from searchapp.tui.search.reasons import Reasons
from searchapp.tui.search.requests import Listing, Position, Searching, Sought, Trail


class Learning:
    """A `Progress` that says how far it is; `post` has that done in the thread of the screen."""

    def __init__(self, post: Post, head: Banner) -> None:
        self._words = TextProgress(lambda words: post(lambda: head.tell(words, lasts=False)))
        self.is_at_work = False

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        with self._words.stage(label, total, in_bytes=in_bytes) as advance:
            self.is_at_work = True
            try:
                yield advance
            finally:
                self.is_at_work = False


LOOK_SECONDS = 1.0
"""How often it is looked how long an answer takes."""

SLOW_SECONDS = 1.5
"""After which an answer is late, and the ranking in sight is called one from before."""

LOOKS = 3
"""Every how manyth time the engine is asked whether another version of the index serves, while nobody asks else."""

FROM_BEFORE = "the hits below are those from before"
NONE_YET = "there are no hits yet"


def title_of(task: Task, info: IndexInfo) -> str:
    """What the first line of the screen begins with."""
    return f"{task.name} · {counted(info.documents, 'document')}"


class Freshness:
    """Sees to it that nobody takes an old ranking for a new one."""

    def __init__(self, screen: SearchScreen, info: IndexInfo) -> None:
        self._screen = screen
        self._info = info
        self._news = ""
        self._title = "Hits"
        self._looks = 0
        self._was_old = False

    def asker(self, name: str, searcher: Callable[[], TaskSearcher], post: Post, later: Callable[..., object],
              other: Callable[[], SearchQueue], lanes: int) -> SearchQueue:  # fmt: skip
        """An asker that notices when the index is built again; the `other` one is told."""
        return SearchQueue(
            name,
            searcher,
            post,
            later,
            lanes=lanes,
            replaced=lambda: self._replaced(other()),
            opened=self._opened,
        )

    @property
    def is_old(self) -> bool:
        """Whether the ranking in sight is not that of what is sought, because the engine fails or is slow."""
        error = self._screen.error
        is_trouble = error is not None and not isinstance(error, BrokenQuery)
        return is_trouble or self._screen.searching.waited >= SLOW_SECONDS

    @property
    def words(self) -> str:
        """That the ranking is old, if it is."""
        if not self.is_old or not (self.is_late or isinstance(self._screen.error, SearchappError)):
            return ""
        return NONE_YET if self._screen.searching.listing is None else FROM_BEFORE

    @property
    def is_late(self) -> bool:
        return self._screen.searching.waited >= SLOW_SECONDS

    def begun(self) -> None:
        """Something else is searched for: what was said until now goes when it is found."""
        self._screen.head.lasts = False

    def found(self, title: str) -> None:
        """There is another ranking, of this title; tell the news of the index, if there is any."""
        self._title = title
        head = self._screen.head
        if not head.lasts:
            head.tell(self._news, "$primary", lasts=False)
        elif self._news:
            head.tell(self._news, "$primary", add=True, lasts=False)
        self._news = ""

    def draw(self) -> None:
        """Mark the ranking if it is old."""
        self._was_old = self.is_old
        entitle(self._screen.hits, self.title)

    @property
    def title(self) -> str:
        """What the ranking is, and whether it is old."""
        has_hits = self._screen.searching.listing is not None
        return f"From before: {self._title}" if self._was_old and has_hits else self._title

    def look(self) -> None:
        """Say how long an answer takes that is late; if nobody asks, look whether another version serves."""
        searching = self._screen.searching
        if self.is_late:
            if not self._screen.learning.is_at_work:
                self._screen.head.tell(
                    f"no answer for {int(searching.waited)} s yet", "$warning", lasts=False
                )
            if not self._was_old:
                self._screen.draw_sought()
            return
        self._looks += 1
        is_resting = not searching.is_waiting and self._screen.error is None and self._screen.quick.is_idle
        if is_resting and self._looks % LOOKS == 0:
            self._screen.quick.ask(
                SearchRequestKind.version,
                lambda searcher: searcher.require_serving(),
                lambda _nothing: None,
                lambda _error: None,  # what is searched for next says it
            )

    def _replaced(self, other: SearchQueue) -> None:
        """The version that was asked is gone: search in the one that serves."""
        other.renew()
        self._screen.searching.ask_again()

    def _opened(self, info: IndexInfo) -> None:
        """Another version is asked from now on."""
        if info == self._info:
            return
        self._info = info
        self._news = f"the index was built again: the hits are those of {info.version} from now on"
        self._screen.head.retitle(title_of(self._screen.searched, info))
        self._screen.forget_documents()
        if not self._screen.searching.is_waiting:
            self._screen.searching.ask_again()


OF_HIT = {
    "why",
    "compare",
    "citing",
    "analysis",
    "document",
    "like",
    "copy_id",
    "copy_text",
    "copy_command",
    "pager",
}
"""What is done with a hit, or with the ranking as it is."""

AFTER_IT = {"down", "up", "page_down", "page_up", "first", "last", "undo"}
"""What is put off too where one of these is: it goes on from there, or takes that back."""


class PuttingOff:
    """Keeps what is to be done with a hit until the ranking is there that somebody sees coming."""

    def __init__(self, do: Callable[[str], object]) -> None:
        self._do = do
        self._names: list[str] = []

    def takes(self, name: str) -> bool:
        """Whether something is done with a hit, or comes after that, and so is put off now."""
        is_of_hit = name in OF_HIT or name.startswith("grade_") or (bool(self._names) and name in AFTER_IT)
        if is_of_hit:
            self._names.append(name)
        return is_of_hit

    def catch_up(self) -> None:
        """Do what was put off."""
        names, self._names = self._names, []
        for name in names:
            self._do(name)

    def give_up(self) -> None:
        """Do none of it: there is no such ranking."""
        self._names.clear()


SIGNS = '+-"()*:\\'
"""What may say more than words, which a command would take for what it says."""


class Copying:
    """Copies the hit that the cursor is on, or what was asked for."""

    def __init__(self, screen: SearchScreen) -> None:
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


@dataclass(frozen=True)
class Opened:
    """What the search screen is opened with.

    `searcher` is the one for what is typed; `another` opens a further one, for what takes longer. `command` is how the
    program was called, up to the words. `session` opens that of whoever grades documents.
    `elsewhere` gives the palette what there is besides the task.
    """

    searcher: TaskSearcher
    another: Callable[[Progress], TaskSearcher]
    home: Path
    command: Sequence[str]
    sought: Sought
    session: Callable[[], Session]
    elsewhere: Callable[[KeyScreen], Iterable[Offer]] = lambda _screen: ()
    restore: bool = False
    """Whether it opens where it was left, unless something is sought, and keeps where it is left."""


def opened_search(
    searcher: TaskSearcher,
    engine: Engine,
    sought: Sought,
    settings: Settings,
    own: ScreenSettings,
    held: ExitStack,
    data: Path | None,
    annotator: str | None,
) -> Opened:
    """A search that begins with what is `sought`; the log of who grades there is closed with `held`.

    `data` is where the task's files are, if that was said.
    """
    task = searcher.task
    return Opened(
        searcher,
        lambda progress: TaskSearcher.open(task, engine, progress, settings.home, data),
        settings.home,
        ("searchapp", "search", *(("--data", str(data)) if data else ())),
        sought,
        lambda: grading_session(held, settings.judgments, task.name, annotator),
        restore=own.restore,
    )


COLUMNS = {"hits": "list", "document": "text"}


class SearchScreen(SearchView):
    """Somebody searches a task's documents."""

    CSS_PATH = Path(__file__).with_name("search.tcss")
    AUTO_FOCUS = "#words"
    SAVES_GRADES = True
    ABOUT = about.PANES

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        searcher = opened.searcher
        self.searched = searcher.task
        info = searcher.index.info
        super().__init__(keys, Banner(title_of(self.searched, info)), COLUMNS, ("hits",))
        self.searcher = searcher
        self._opened = opened
        self.learning = Learning(self._later, self.head)
        self._freshness = Freshness(self, info)
        self.quick: SearchQueue = self._asker("search", self._first_searcher(), lambda: self.slow, LANES)
        # What a recipe has learned is in one searcher, so that nothing overtakes there.
        self.slow: SearchQueue = self._asker("search aside", self._another, lambda: self.quick, 1)
        self.searching = Searching(self, self.quick, self.slow, self._is_quick)
        self.searching.sought = opened.sought
        self.words = Words(self._submitted, self.typed, self.point)
        self._asked = Asked(self.words)
        self.judging = Judging(self, self.searched.info.grades, opened.session)
        self.hits = HitRows(self.judging.mark, self.searched.info.markup)
        self.note = Note()
        self.solved = Solved(searcher, self._later)
        self.reading = Reading(self.searched.info, keys.shown("pager"), self.solved)
        self._trail = Trail()
        self._past = RecentSearches(opened.home, self.searched.name)
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

    def _entries_in_line(self) -> list[KeyEntry]:
        """The keys that hold while somebody types."""
        words = {one.name: one.word for one in self.keys.actions}
        entries = [KeyEntry(name, self.keys.shown(name, in_line=True), words[name]) for name in IN_LINE]
        return [KeyEntry("words", "↵", "to the hits"), *(one for one in entries if one.key)]

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
        self.judging.leave()

    def last_words(self) -> str | None:
        return self.judging.last_words()

    def on_unmount(self) -> None:
        if self._opened.restore:
            self._keeping.keep()
        self.quick.close()
        self.slow.close()

    def help(self) -> Help:
        of_words = {} if isinstance(self.focused, TextLine) else {"Words": about.LANGUAGE}
        return Help(self.keys, of_words, self.about_focused)

    def offers(self) -> Iterator[Offer]:
        return self._choosing.offers()

    def further_offers(self) -> Iterator[Offer]:
        yield from self.judging.offers()
        yield from self._opened.elsewhere(self)

    def _asker(
        self, name: str, searcher: Callable[[], TaskSearcher], other: Callable[[], SearchQueue], lanes: int
    ) -> SearchQueue:
        return self._freshness.asker(name, searcher, self._later, self.set_timer, other, lanes)

    def _first_searcher(self) -> Callable[[], TaskSearcher]:
        """Gives the searcher that the screen was opened with, and further ones for newer versions of the index."""
        given = [self._opened.searcher]
        return lambda: given.pop() if given else self._another()

    def _another(self) -> TaskSearcher:
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
        self.set_class(isinstance(self.focused, TextLine), "-typing")

    # Keys

    def take(self, event: events.Key) -> bool:
        if not isinstance(self.focused, TextLine):
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
        if saves(name) and (self.judging.awaits_hits or self.head.is_waiting):
            return  # no grade is saved for a hit that was not shown, or while a dialog that was asked for opens
        if self.searching.is_waiting and self._put_off.takes(name):
            return
        if name.startswith("grade_"):
            self.judging.give(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    def leave_line(self, line: TextLine) -> None:  # noqa: ARG002  # there is one
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
        if isinstance(self.focused, TextLine):
            self._submitted(self.words.value)
            return
        if self.panes.is_reading:
            self.panes.toggle_reading()
        self.set_focus(self.words)

    # What comes of a search

    def found(self, listing: Listing, cursor: int) -> None:
        self.error = None
        if self.judging.awaits_hits:
            self.judging.awaits_hits = False
            self.await_paint()
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
            self.head.tell(f"{before}{error_text(error)}", "$error", lasts=False)
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

    def cursor_moved(self, rows: RowList) -> None:  # noqa: ARG002  # there is one list
        self.show_document()
        if self.hits.result is None:
            self._fetch()
        else:
            self.call_after_refresh(self._fetch)  # what is fetched would take turns with what draws

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
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
            "topic": self.judging.choose_topic,
            "judge": self.judging.toggle,
            "undo": self.judging.undo,
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


class SearchApp(KeyApp):
    """Shows the search screen until whoever searches leaves it."""

    def __init__(self, opened: Opened, settings: ScreenSettings) -> None:
        self.search = SearchScreen(opened, settings.keys)
        super().__init__(self.search, settings.theme, settings.spacing)
