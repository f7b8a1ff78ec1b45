"""The search screen.

A key that acts on a hit while another ranking is loading takes effect when that ranking is shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container

from searchapp.app.index import replacement_news
from searchapp.app.saved_searches import RecentSearches, SearchQuery
from searchapp.app.search import (
    FUSED_DEPTH,
    QUERY_TOPIC,
    QueryNotes,
    SearchRequest,
    TaskSearcher,
    export_hits,
)
from searchapp.app.sessions import grading_session
from searchapp.config.settings import Settings
from searchapp.embeddings.access import Access
from searchapp.engines import open_engine
from searchapp.errors import ModelUnavailable, SearchappError
from searchapp.judging.session import Session
from searchapp.lucene.dataclass import dataclass
from searchapp.model import IndexInfo
from searchapp.progress import Advance, Notify, Progress, SilentProgress, TextProgress
from searchapp.ranking import recipes
from searchapp.ranking.query_language import BrokenQuery
from searchapp.ranking.search_results import SearchResult
from searchapp.ranking.word_notes import corrected
from searchapp.tasks.base import Task
from searchapp.text import counted, visible
from searchapp.tui.kit.background import LANES, Post, SearchQueue, SearchRequestKind
from searchapp.tui.kit.content import entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Help, WordsDialog
from searchapp.tui.kit.keys import KeyMap, types_nothing
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.screen import Banner, KeyScreen, Part, SessionBanner, saves, show_in_pager
from searchapp.tui.kit.widgets import KeyEntry, KeyLine, RowList, TextLine, chip, judging_chip, shortened
from searchapp.tui.search import actions as about
from searchapp.tui.search.actions import IN_HITS, IN_LINE
from searchapp.tui.search.choices import QueryChoices, SavedQueries
from searchapp.tui.search.hits import HitRows, Listing
from searchapp.tui.search.judging import SearchJudging
from searchapp.tui.search.panes import (
    DocumentPane,
    Note,
    QueryBar,
    QueryLine,
    SearchView,
    TrainingTopicReader,
)
from searchapp.tui.search.reasons import Reasons
from searchapp.tui.search.requests import Position, PositionHistory, RankingLoader


class LearningProgress:
    """Shows the progress of training in the first line."""

    def __init__(self, post: Post, head: Banner) -> None:
        self.is_running = False

        def show(words: str) -> None:
            head.show_state(words, holds=lambda: self.is_running)

        self._text = TextProgress(lambda words: post(lambda: show(words)))

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        with self._text.stage(label, total, in_bytes=in_bytes) as advance:
            self.is_running = True
            try:
                yield advance
            finally:
                self.is_running = False


# Interval of checks for a late answer and for a new version of the index.
LOOK_SECONDS = 1.0

# After this time an answer is late, and the ranking on the screen is marked as old.
SLOW_SECONDS = 1.5

# Intervals between two checks for a new version.
LOOKS = 3

FROM_BEFORE = "the hits below are from an earlier query"
NONE_YET = "there are no hits yet"

# Actions on a hit or on the ranking, which wait for a loading ranking.
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
    "export",
    "pager",
    "queue",
}

# Actions that also wait after a waiting action of `OF_HIT`.
AFTER_IT = {"down", "up", "page_down", "page_up", "first", "last", "undo"}

# Messages cut longer names of recipes.
RECIPE_CELLS = 24

# Maximum hits of a file.
EXPORTED = 1_000

# Characters with a meaning in the query language.
SIGNS = '+-"()*:\\'


def title_of(task: Task, info: IndexInfo) -> str:
    """Return the beginning of the first line."""
    return f"{task.name} · {counted(info.documents, 'document')}"


@dataclass(frozen=True)
class SearchSetup:
    """The parts and options of a search screen."""

    searcher: TaskSearcher
    # Opens a further searcher, for recipes that take longer and for new versions of the index.
    open_searcher: Callable[[Progress], TaskSearcher]
    home: Path
    # The words of the command line before the task.
    command: Sequence[str]
    query: SearchQuery
    # Opens the session of the annotator.
    session: Callable[[], Session]
    # The palette's offers outside the task.
    other_offers: Callable[[KeyScreen], Iterable[Offer]] = lambda _screen: ()
    # Whether the screen opens at its last position if there is no query, and records its position.
    restore: bool = False
    # The name of the engine.
    engine: str = ""
    # Whether each hit is on two lines, with a bar for its score.
    two_lines: bool = False


# Attempts of a request while the user waits.
ATTEMPTS = 2


@contextmanager
def open_search_screen(
    task: Task,
    query: SearchQuery,
    settings: Settings,
    progress: Progress,
    warn: Notify,
    *,
    data: Path | None = None,
    annotator: str | None = None,
    access: Access | None = None,
    other_offers: Callable[[KeyScreen], Iterable[Offer]] = lambda _screen: (),
) -> Iterator[SearchScreen]:
    """Open the search screen of a task, in any thread.

    Raises:
        UsageError: the recipe is unknown, or needs more than words.
        EngineError: the task is not indexed, or the engine does not answer.
        DataError: the index is damaged, or the keys in the user file contradict each other.
    """
    access = access or Access.of(settings)
    own = about.load(settings.of_user, task.info.grades)
    book = task.recipe_book()
    recipes.require_words(book, recipes.load(book, query.recipe or task.info.search_recipe))
    with ExitStack() as stack:
        with progress.stage(f"opening the index of {task.name}"):
            engine = stack.enter_context(closing(open_engine(settings, attempts=ATTEMPTS)))
            searcher = TaskSearcher.open(task, engine, SilentProgress(), settings.home, data, access)
        for warning in searcher.warnings(query.recipe):
            warn(warning)
        setup = SearchSetup(
            searcher,
            lambda progress: TaskSearcher.open(task, engine, progress, settings.home, data, access),
            settings.home,
            ("searchapp", "search", *(("--data", str(data)) if data else ())),
            query,
            lambda: grading_session(stack, settings.judgments, task, annotator or settings.annotator),
            other_offers,
            restore=own.restore,
            engine=settings.engine,
            two_lines=own.two_lines,
        )
        yield SearchScreen(setup, own.keys)


COLUMNS = {"hits": "list", "second": "list", "document": "text"}


class SearchScreen(SearchView):
    """The screen that searches a task's documents."""

    CSS_PATH = Path(__file__).with_name("search.tcss")
    AUTO_FOCUS = "#words"
    ABOUT = about.PANES

    def __init__(self, setup: SearchSetup, keys: KeyMap) -> None:
        searcher = setup.searcher
        self.searched = searcher.task
        self._info = searcher.index.info
        super().__init__(
            keys, SessionBanner(title_of(self.searched, self._info)), COLUMNS, ("hits", "second")
        )
        self.searcher = searcher
        self.setup = setup
        self._learning = LearningProgress(self.later, self.head)
        self.add_class("-typing")  # the first frame shows the keys of the query, which gets the focus
        self.words = QueryLine(self._submitted, self.typed, self.point)
        self._bar = QueryBar(self.words)
        self.judging = SearchJudging(self, self.searched.info.grades, setup.session)
        self.queues: list[SearchQueue] = []
        unused = [searcher]
        open_first = lambda: unused.pop() if unused else self._open_searcher()  # noqa: E731
        self.loaders = self._new_loader(open_first), self._new_loader(self._open_searcher, is_second=True)
        self.loader = self.loaders[0]
        self.loader.query = setup.query
        self.quick = self.queues[0]
        self.note = Note()
        self.training_topics = TrainingTopicReader(searcher, self.later)
        self.reading = DocumentPane(self.searched.info, keys.shown("pager"), self.training_topics)
        self._history = PositionHistory()
        self._recent = RecentSearches(setup.home, self.searched.name)
        self._choices = QueryChoices(self, self._recent)
        self._reasons = Reasons(self)
        self._saved = SavedQueries(self, setup.home)
        # Actions that wait for the ranking.
        self._waiting_actions: list[str] = []
        # The sentence on a new version of the index, for the next ranking.
        self._news = ""
        # What finds nothing in the text of the query line.
        self._notes = QueryNotes()
        self._looks = 0

    def compose(self) -> ComposeResult:
        yield self.head
        yield self._bar
        yield self.note
        with Container(id="body"):
            with Container(id="list"):
                yield from (loader.rows for loader in self.loaders)
            yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, "undo"), 1, id="grades")
        yield KeyLine(self._entries_in_line(), 1, id="keys-line")
        yield KeyLine(self._entries(*IN_HITS), 1, id="keys")

    def _entries_in_line(self) -> list[KeyEntry]:
        entries = [
            KeyEntry(name, self.keys.shown(name, in_line=True), self.keys[name].word) for name in IN_LINE
        ]
        return [KeyEntry("search", "↵", "to the hits"), *(entry for entry in entries if entry.key)]

    def begin(self) -> None:
        entitle(self.hits, "Hits")
        self.hits.show_empty("Loading the hits …")
        self.reading.show_none("")
        if self.setup.restore and self.setup.query == SearchQuery() and self._saved.restore():
            self.words.select_all()  # typing replaces the words
        else:
            self.seek(self.setup.query)
        self.set_interval(LOOK_SECONDS, self._look)

    def on_resize(self) -> None:
        if isinstance(self.error, BrokenQuery):
            self.call_after_refresh(self.draw_query)  # the caret's column depends on the new layout

    def leave(self) -> None:
        self.judging.leave()

    def last_words(self) -> str | None:
        return self.judging.last_words()

    def on_unmount(self) -> None:
        if self.setup.restore:
            self._saved.keep_position()
        for queue in self.queues:
            queue.close()

    def help(self) -> Help:
        of_words = {} if isinstance(self.focused, TextLine) else {"Words": about.LANGUAGE}
        return Help(self.keys, of_words, self.about_focused)

    def offers(self) -> Iterator[Offer]:
        return self._choices.offers()

    def further_offers(self) -> Iterator[Offer]:
        yield from self.judging.offers()
        yield from self.setup.other_offers(self)

    def _new_loader(
        self, open_searcher: Callable[[], TaskSearcher], *, is_second: bool = False
    ) -> RankingLoader:
        rows = HitRows(
            self.judging.mark,
            self.searched.info.markup,
            is_second=is_second,
            row_height=2 if self.setup.two_lines else 1,
        )
        rows.disabled = is_second
        name = "search second" if is_second else "search"
        quick = self._queue(name, open_searcher, LANES)
        # One lane, because only one searcher holds a recipe's trained model.
        slow = self._queue(f"{name} aside", self._open_searcher, 1)
        external = self._queue(f"{name} models", self._open_searcher, 1)
        return RankingLoader(self, rows, quick, slow, external, self.searcher)

    def _queue(self, name: str, open_searcher: Callable[[], TaskSearcher], lanes: int) -> SearchQueue:
        def replaced() -> None:
            self.head.end_wait()  # the request was dropped
            for other in self.queues:
                if other is not queue:
                    other.renew()
            for loader in self._shown_loaders:
                loader.ask_again()

        queue = SearchQueue(
            name,
            open_searcher,
            self.later,
            self.set_timer,
            lanes=lanes,
            replaced=replaced,
            opened=self._version_opened,
        )
        self.queues.append(queue)
        return queue

    def _open_searcher(self) -> TaskSearcher:
        return self.setup.open_searcher(self._learning)

    def on_descendant_focus(self) -> None:
        self.set_class(isinstance(self.focused, TextLine), "-typing")
        self._follow_focus()
        if self._notes.suggestion is not None:  # the key accepts it in the query only
            self.show_notes(self._notes)

    # Keys

    def take_in_line(self, line: TextLine, event: events.Key) -> bool:
        if event.key == "escape":
            self.leave_line(line)
        elif self.keys.action(event.key) == "next_pane" and self._accept_suggestion():
            pass
        elif not line.take(event):  # other keys have their usual effect
            name = self.keys.action(event.key)
            if name is not None and types_nothing(event.key):
                self.do(name)
        return True

    def act(self, name: str) -> None:
        self._follow_focus()  # the event of a new focus may come after this key
        if saves(name) and (self.judging.awaits_hits or self.head.is_waiting):
            return  # the hit was not shown yet, or a requested dialog is opening
        is_of_hit = name in OF_HIT or name.startswith("grade_")
        if self.loader.is_waiting and (is_of_hit or (self._waiting_actions and name in AFTER_IT)):
            self._waiting_actions.append(name)
        else:
            super().act(name)

    def give(self, grade: int) -> None:
        self.judging.give(grade)

    def leave_line(self, line: TextLine) -> None:  # noqa: ARG002  # there is one
        self.panes.focus(self.hits)

    def _submitted(self, text: str) -> None:
        self._recent.add(text)
        self.panes.focus(self.hits)

    def typed(self, text: str) -> None:
        query = self.loader.query
        for loader in self._shown_loaders:
            loader.typed(replace(loader.query, text=text, like=None, literal=False))
        notes = QueryNotes(tuple(note for note in self._notes.words if note.holds_in(text)))
        if query.like is not None or notes != self._notes:
            self._notes = notes
            self.draw_query()

    def _accept_suggestion(self) -> bool:
        """Replace a word by the suggested one; return whether there is one."""
        note, text = self._notes.suggestion, self.words.value
        if note is None or not note.holds_in(text):
            return False
        corrected_text, end, others = corrected(text, note, self._notes.words)
        self._notes = QueryNotes(others)
        self.words.value = corrected_text
        self.words.cursor_position = end
        self.typed(corrected_text)
        self.draw_query()
        return True

    def _toggle_words(self) -> None:
        if isinstance(self.focused, TextLine):
            self._submitted(self.words.value)
            return
        if self.panes.is_reading:
            self.panes.toggle_reading()
        self.set_focus(self.words)

    # Answers

    @property
    def error(self) -> Exception | None:
        """Why a list does not show the ranking of the query; the list with the focus comes first."""
        loaders = (self.loader, *self._shown_loaders)
        return next((loader.error for loader in loaders if loader.error is not None), None)

    def show_ranking(self, loader: RankingLoader, listing: Listing, cursor: int) -> None:
        is_current = loader is self.loader
        if is_current and self.judging.awaits_hits:
            self.judging.awaits_hits = False
            self.await_paint()
        loader.rows.show_empty(self._why_empty(loader))
        loader.rows.open(listing, cursor, self.judging.mark_cells)
        self.head.clear_ended()
        news, self._news = self._news, ""
        if lost := self._saved.pop_lost():
            self.head.tell("   ".join(filter(None, (news, lost))), "$warning")
        elif news:
            self.head.tell(news, "$primary")
        self.show_moves()
        self.draw_query()
        if is_current:
            self.show_document()
            names, self._waiting_actions = self._waiting_actions, []
            for name in names:
                self.do(name)

    def show_page(self, loader: RankingLoader, indexes: range) -> None:
        loader.rows.redraw_page(indexes)
        if loader is self.loader and self.hits.cursor in indexes:
            self._link()
            self.show_document()
        self._fetch(loader)

    def show_notes(self, notes: QueryNotes) -> None:
        self._notes = notes
        self.draw_query()
        if not self.hits.count:
            self.show_document()

    def show_complete(self, loader: RankingLoader, listing: Listing, cursor: int, *, is_chosen: bool) -> None:
        rows = loader.rows
        rank, above, chosen = rows.cursor + 1, rows.cursor - rows.visible_rows.start, rows.result
        rows.open(listing, cursor, self.judging.mark_cells)
        if is_chosen and chosen is not None:
            rows.scroll_to_row(cursor - above)
            order = f"order of {shortened(loader.recipe, RECIPE_CELLS)}"
            if chosen.hit.document_id not in (listing.ids or ()):
                self.head.tell(f"{order}: the selected document is not among its hits", "$primary")
            elif cursor + 1 != rank:
                self.head.tell(
                    f"{order}: the selected document has rank {cursor + 1:,}, not {rank:,}", "$primary"
                )
        self.head.clear_ended()
        self.show_moves()
        self.draw_query()
        if loader is self.loader:
            self.show_document()

    def show_incomplete(self, loader: RankingLoader, error: Exception) -> None:
        words = error.finding if isinstance(error, ModelUnavailable) else error_text(error)
        listing = loader.listing
        is_shown = lambda: loader.listing is listing and loader in self._shown_loaders  # noqa: E731
        self.head.show_state(f"{self._which(loader)}{words}", "$warning", holds=is_shown)
        self.draw_query()

    def show_failure(self, loader: RankingLoader, error: Exception) -> None:
        if not isinstance(error, BrokenQuery):
            before = "" if isinstance(error, SearchappError) else "the search failed: "
            words = f"{self._which(loader)}{before}{error_text(error)}"
            listing = loader.listing
            is_shown = lambda: loader.listing is listing and loader in self._shown_loaders  # noqa: E731
            self.head.show_state(words, "$error", holds=is_shown)
            loader.rows.show_empty(words)
        self.draw_query()
        if loader is self.loader:
            self._waiting_actions.clear()

    # A second recipe

    @property
    def _is_split(self) -> bool:
        return not self.loaders[1].rows.disabled

    @property
    def _shown_loaders(self) -> Sequence[RankingLoader]:
        return self.loaders if self._is_split else self.loaders[:1]

    def _which(self, loader: RankingLoader) -> str:
        """Return the beginning of a sentence on one of two lists."""
        return f"{shortened(loader.recipe, RECIPE_CELLS)}: " if self._is_split else ""

    def _toggle_split(self) -> None:
        if self._is_split:
            self._end_split()
        else:
            self._choices.choose_second()

    def split(self, recipe: str) -> None:
        first, second = self.loaders
        self._set_split(is_on=True)
        second.rows.show_empty("Loading the hits …")
        first.ask_ids()
        second.seek(replace(first.query, recipe=recipe))
        self.draw_query()

    def _end_split(self) -> None:
        first, second = self.loaders
        if self.focused is second.rows:
            self.panes.focus(first.rows)
        self._turn_to(first.rows)
        second.stop()
        second.rows.open(Listing(SearchRequest("")), 0, 0)
        self._set_split(is_on=False)
        self.draw_query()

    def _set_split(self, *, is_on: bool) -> None:
        self.panes.show_all()
        self.panes.forget_sizes()  # they were chosen for one list
        self.set_class(is_on, "-split")
        self.loaders[1].rows.disabled = not is_on
        for loader in self.loaders:
            loader.rows.compare(is_on=is_on)

    def _loader_of(self, rows: RowList) -> RankingLoader:
        return self.loaders[rows is self.loaders[1].rows]

    def _follow_focus(self) -> None:
        if isinstance(self.focused, HitRows):
            self._turn_to(self.focused)

    def _turn_to(self, rows: RowList) -> None:
        """Let actions be about a list."""
        loader = self._loader_of(rows)
        if loader is not self.loader:
            self.loader = loader
            self._waiting_actions.clear()
            self._link()
            self.draw_query()
            self.show_document()

    def show_moves(self) -> None:
        first, second = (loader.listing for loader in self.loaders)
        if first is None or second is None:
            return
        is_same_query = replace(first.request, recipe=None) == replace(second.request, recipe=None)
        is_known = is_same_query and first.ids is not None and second.ids is not None
        for loader, other in zip(self.loaders, (second, first), strict=True):
            ranks = {document: rank for rank, document in enumerate(other.ids or (), 1)}
            loader.rows.set_other_ranks(ranks if is_known else None)
        self._link()

    def _link(self) -> None:
        """Put the cursor of the other list on the same document, or hide it."""
        result, ranks = self.hits.result, self.hits.other_ranks
        if result is None or ranks is None:
            return
        other = self.loaders[self.loader is self.loaders[0]]
        rank = ranks.get(result.hit.document_id)
        self.hits.shows_cursor, other.rows.shows_cursor = True, rank is not None
        other.rows.redraw(other.rows.cursor)
        if rank is not None and other.rows.put(rank - 1):
            self._fetch(other)

    # Late answers, and versions of the index

    @staticmethod
    def _is_late(loader: RankingLoader) -> bool:
        return loader.waited >= SLOW_SECONDS

    @staticmethod
    def _awaits_models_long(loader: RankingLoader) -> bool:
        return loader.waited_for_models >= SLOW_SECONDS

    def _look(self) -> None:
        late = next(filter(self._is_late, self._shown_loaders), None)
        if late is not None:
            if not self._learning.is_running:
                words = f"{self._which(late)}no answer for {int(late.waited)} s yet"
                self.head.show_state(words, "$warning", holds=partial(self._is_late, late))
            self.draw_query()
            return
        asking = next(filter(self._awaits_models_long, self._shown_loaders), None)
        if asking is not None:
            words = f"{self._which(asking)}no answer of the model for {int(asking.waited_for_models)} s yet"
            self.head.show_state(words, "$warning", holds=partial(self._awaits_models_long, asking))
        self._looks += 1
        is_waiting = any(loader.is_waiting for loader in self._shown_loaders)
        is_resting = not is_waiting and self.error is None and self.quick.is_idle
        if is_resting and self._looks % LOOKS == 0:
            self.quick.ask(
                SearchRequestKind.version,
                lambda searcher: searcher.require_serving(),
                lambda _nothing: None,
                lambda _error: None,  # the next search reports the error
            )

    def _version_opened(self, info: IndexInfo) -> None:
        if info == self._info:
            return
        self._info = info
        self._news = replacement_news(info, "hits")
        self.head.retitle(title_of(self.searched, info))
        self.reading.forget()
        self._choices.count_again()
        for loader in self._shown_loaders:
            if not loader.is_waiting:
                loader.ask_again()

    # Drawing

    def draw_query(self) -> None:
        self.head.show_chips(*self._chips())
        for loader in self._shown_loaders:
            entitle(loader.rows, self._title(loader))
        query = self.loader.query
        self._bar.show(self._title(self.loader), query.like)
        old = next(filter(self._is_old, self._shown_loaders), None)
        if isinstance(self.error, BrokenQuery):
            self.point()
        elif old is not None:
            self.note.show_error(self._which(old) + (NONE_YET if old.listing is None else FROM_BEFORE))
        else:
            topic = self.judging.topic
            self.note.show_query(
                query.filters,
                self.keys.shown("filter"),
                "" if topic is None else topic.id,
                self._notes,
                self._accept_key,
            )

    @property
    def _accept_key(self) -> str:
        """The key that accepts a suggestion in the query; elsewhere it goes to the next pane."""
        is_typing = isinstance(self.focused, TextLine)
        return self.keys.shown("next_pane", in_line=True).capitalize() if is_typing else ""

    def _is_old(self, loader: RankingLoader) -> bool:
        is_failure = loader.error is not None and not isinstance(loader.error, BrokenQuery)
        return is_failure or self._is_late(loader)

    def _title(self, loader: RankingLoader) -> str:
        listing = loader.listing
        if listing is None:
            return f"Hits · {loader.recipe}" if self._is_split else "Hits"
        count, recipe = listing.total, self.searcher.recipe_of(listing.request).name
        first = "the first " if count == FUSED_DEPTH and not loader.is_quick(listing.request) else ""
        if loader.awaits_models:
            recipe += " yet"
        order = recipe if listing.is_ranked else "sorted by id"
        earlier = "Earlier query: " if self._is_old(loader) else ""
        return f"{earlier}{first}{count:,} document{'s' * (count != 1)} · {order}"

    def _chips(self) -> Iterator[Part]:
        """Yield the chips of the first line, the most important first."""
        session = self.judging.session
        if self.judging.topic is not None and session is not None:
            yield judging_chip(session.author.annotator)
        for loader in self._shown_loaders:
            yield chip(loader.recipe, "$secondary")
        if filters := self.loader.query.filters:
            yield chip(counted(len(filters), "filter"), "$accent")
        if self.setup.engine:
            yield chip(self.setup.engine)

    def point(self) -> None:
        if isinstance(self.error, BrokenQuery):
            column = self.words.column(self.error.at)
            if column is not None:
                column += self.words.content_region.x - self.note.left
            self.note.show_broken(self.error, column)

    @on(HitRows.Wanted)
    def _wanted(self, event: HitRows.Wanted) -> None:
        event.stop()
        self._fetch(self._loader_of(event.rows))

    def _fetch(self, loader: RankingLoader) -> None:
        visible_rows, page = loader.rows.visible_rows, loader.rows.page
        loader.fetch(visible_rows)
        loader.fetch(range(visible_rows.start - page, visible_rows.stop + page))

    def cursor_moved(self, rows: RowList) -> None:
        self._turn_to(rows)
        self._link()
        self.show_document()
        if self.hits.result is None:
            self._fetch(self.loader)
        else:
            self.call_after_refresh(self._fetch, self.loader)  # fetching would compete with drawing

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        self.panes.focus(event.rows)

    def show_document(self) -> None:
        result = self.hits.result
        if result is not None:
            statements = self.judging.statements(result.hit.document_id)
            is_ranked = self.hits.listing.is_ranked
            self.reading.show(result, self.loader.queue, statements, is_ranked=is_ranked)
        elif self.hits.count or (self.loader.listing is None and self.loader.error is None):
            self.reading.show_none("…")
        else:  # the line below the query may be too short for all notes
            notes = self._notes.sentences(self._accept_key)
            self.reading.show_none("\n".join([*notes, self._why_empty(self.loader)]))

    def _why_empty(self, loader: RankingLoader) -> str:
        """Return why there are no hits, and what to do."""
        query = loader.query
        if not query.text.strip() and not loader.is_quick(loader.request):
            return "This recipe needs a query: type some words."
        if query.filters:
            return f"No document matches the query and the filters: {self.keys.shown('filter')} changes the filters."
        return "No document matches: type other words, or fewer with a +."

    def _next_form(self) -> None:
        self.reading.notation = self.reading.notation.next
        for loader in self.loaders:
            loader.rows.show_in(self.reading.notation)
        self.show_document()
        self.head.tell(self.reading.notation.about)

    def _toggle_lines(self) -> None:
        for loader in self.loaders:
            loader.rows.toggle_lines()

    # Queries

    def seek(self, query: SearchQuery, cursor: int = 0) -> None:
        self._notes = QueryNotes()
        self.words.value = "" if query.like is not None else query.text
        self.words.cursor_position = len(self.words.value)
        for loader in self._shown_loaders:
            if loader is self.loader:
                loader.seek(query, cursor)
            else:
                loader.seek(replace(query, recipe=loader.query.recipe))
        self.draw_query()

    @property
    def _position(self) -> Position:
        return Position(self.loader.query, self.hits.cursor)

    def _walk(self, step: Callable[[Position], Position | None], where: str) -> None:
        position = step(self._position)
        if position is None:
            self.head.tell(f"there is no search {where} this one")
        else:
            self.seek(position.query, position.cursor)

    def leave_for(self, query: SearchQuery) -> None:
        self._history.leave(self._position)
        self.seek(query)

    # Copying

    def _copy_of_hit(self, text_of: Callable[[SearchResult], str]) -> None:
        result = self.result()
        if result is not None:
            self.app.copy_to_clipboard(visible(text_of(result)))  # it may be pasted into a shell

    def command(self) -> str | None:
        """Return the command that prints the visible hits, or None."""
        query = self.loader.query
        if query.like is None and query.literal and set(SIGNS) & set(query.text):
            return None
        parts = list(self.setup.command)
        if query.recipe is not None:
            parts += ["--recipe", query.recipe]
        for chosen in query.filters:
            parts += ["--filter", f"{chosen.field}={chosen.value}"]
        visible_rows = self.hits.visible_rows
        parts += ["--size", str(max(1, len(visible_rows)))]
        if visible_rows.start:
            parts += ["--from", str(visible_rows.start + 1)]
        if query.like is not None:
            return shlex.join([*parts, f"--like={query.like}", "--", self.searched.reference])
        return shlex.join([*parts, "--", self.searched.reference, query.text])

    def _copy_command(self) -> None:
        command = self.command()
        if command is None:
            self.head.tell(
                "this query can't be copied as a command: it contains characters with a special meaning",
                "$warning",
            )
        else:
            self.app.copy_to_clipboard(visible(command))

    def _export(self) -> None:
        if self.app.is_web:  # the browser may run on another system than the program
            raise SearchappError("a browser can't export hits: use `searchapp search --out` on a terminal")
        question = (
            f"Write the first {EXPORTED:,} hits to this file (.jsonl, .csv, or any other for a TREC run)"
        )
        initial = f"{self.searched.name}-hits.trec"
        self.app.push_screen(
            WordsDialog(question, initial, action="write"), lambda name: self._export_to(name or "")
        )

    def _export_to(self, name: str) -> None:
        listing, path = self.loader.listing, Path(name).expanduser()
        if not name or listing is None:
            return
        if path.exists():
            self.ask(
                f"{path} exists already. Replace it?", lambda: self._write(listing, path, overwrite=True)
            )
        else:
            self._write(listing, path)

    def _write(self, listing: Listing, path: Path, *, overwrite: bool = False) -> None:
        request = replace(listing.request, size=EXPORTED)
        topic = QUERY_TOPIC if self.judging.topic is None else self.judging.topic.id
        self.head.wait(f"writing {path} …")
        self.loader.queue.ask(
            SearchRequestKind.export,
            lambda searcher: export_hits(searcher, request, path, topic, overwrite=overwrite),
            lambda count: self.head.tell(f"wrote {counted(count, 'hit')} to {path}", "$success"),
            self.tell_error,
        )

    def _show_in_pager(self) -> None:
        result = self.result()
        if result is not None:
            show_in_pager(self.app, f"{result.hit.document_id}\n\n{result.text}\n")

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "search": self._toggle_words,
            "clear": self._toggle_words,
            "history": self._choices.recall,
            "save": self._saved.save,
            "saved": self._saved.open,
            "filter": self._choices.filter,
            "recipe": self._choices.choose_recipe,
            "second": self._toggle_split,
            "like": self._choices.like,
            "topics": self.judging.choose_topic,
            "judge": self.judging.toggle,
            "undo": self.judging.undo,
            "next": lambda: self.judging.next_ungraded(1),
            "previous": lambda: self.judging.next_ungraded(-1),
            "back": lambda: self._walk(self._history.back, "before"),
            "forward": lambda: self._walk(self._history.forward, "behind"),
            "why": self._reasons.why,
            "document": self._reasons.ask_document,
            "compare": self._reasons.compare,
            "citing": self._reasons.citing,
            "analysis": self._reasons.analysis,
            "fold": self.reading.choose_sections,
            "markup": self._next_form,
            "lines": self._toggle_lines,
            "copy_id": lambda: self._copy_of_hit(lambda result: result.hit.document_id),
            "copy_text": lambda: self._copy_of_hit(lambda result: result.text),
            "copy_command": self._copy_command,
            "export": self._export,
            "queue": lambda: self.judging.queue(self.setup.home),
            "pager": self._show_in_pager,
        }
