"""Searching on the screen: what the keys do.

The screen holds its parts and lets them do their work: `searching` asks and takes in, `hits` and `reading` show,
`why` and `facets` are dialogs.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from searchapp.app.facets import Facet, facets, toggled
from searchapp.app.pages import every_topic
from searchapp.app.past import Past
from searchapp.app.search import FUSED_DEPTH, Searcher
from searchapp.app.why import Standing, Why, why
from searchapp.errors import SearchappError
from searchapp.judging.session import Outcome, Session
from searchapp.judging.words import graded
from searchapp.model import Topic
from searchapp.progress import Progress
from searchapp.ranking.language import BrokenQuery, Filter
from searchapp.ranking.search import SearchResult
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.content import Plain, entitle
from searchapp.tui.dialogs import Help, Words
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap
from searchapp.tui.leaving import Leaving
from searchapp.tui.line import Line
from searchapp.tui.pager import show_in_pager
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import Rows, one_line, shortened
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search.actions import IN_HITS, IN_LINE
from searchapp.tui.search.asking import Asker, Kind
from searchapp.tui.search.facets import Filtering
from searchapp.tui.search.hits import HitRows
from searchapp.tui.search.judging import Judging
from searchapp.tui.search.learning import Learning
from searchapp.tui.search.listing import Listing
from searchapp.tui.search.note import Note
from searchapp.tui.search.reading import LONGEST_ID, Form, Reading
from searchapp.tui.search.searching import RETRY_SECONDS, Position, Searching, Sought, Trail
from searchapp.tui.search.why import Explained
from searchapp.tui.status import beginning, came_in, instead_of
from searchapp.visible import visible

COLUMNS = {"hits": "list", "document": "text"}

OF_HIT = {"why", "document", "like", "copy_id", "copy_text", "copy_command", "pager"}
"""What is done with a hit, or with the ranking as it is."""

LANGUAGE = (
    ("these words", "documents about them, ranked by the recipe"),
    ('"a phrase"', "words that stand side by side"),
    ("+must  -without", "what must match, and what must not"),
    ("begin*", "words that begin so"),
    ("field:value", "what stands in a field"),
    ("+(these those)", "a group"),
    ("\\", "before a sign: the sign as it is"),
)


REFRESH_SECONDS = 5.0
"""How often what others have judged is taken in."""

SIGNS = '+-"()*:\\'
"""What may say more than words, which a command would take for what it says."""

NO_TOPIC = "no topic"


@dataclass(frozen=True)
class Opened:
    """What the search screen is opened with.

    `searcher` is the one for what is typed; `another` opens a further one, for what takes longer. `command` is how the
    program was called, up to the words. `session` opens that of whoever grades documents.
    """

    searcher: Searcher
    another: Callable[[Progress], Searcher]
    home: Path
    command: Sequence[str]
    sought: Sought
    session: Callable[[], Session]


class SearchScreen(KeyScreen):
    """Somebody searches a task's documents."""

    AUTO_FOCUS = "#words"

    def __init__(self, opened: Opened, keys: KeyMap) -> None:
        searcher = opened.searcher
        self.searched = searcher.task
        info = searcher.index.info
        title = f"{self.searched.name} · {info.documents:,} documents"
        super().__init__(keys, Banner(title), COLUMNS, ("hits",))
        self.searcher = searcher
        self._opened = opened
        self.learning = Learning(self._later, self.head)
        self.quick = Asker("search", lambda: searcher, self._later)
        self.slow = Asker("search aside", lambda: opened.another(self.learning), self._later)
        self.searching = Searching(self, self.quick, self.slow, self._is_quick)
        self.searching.sought = opened.sought
        self.words = Line(
            self._submitted, self._typed, text=opened.sought.text, hint="what to search for", id="words"
        )
        self.judging = Judging(opened.session, self.searched.info.grades)
        self.hits = HitRows(self.judging.mark)
        self.note = Note()
        self.reading = Reading(self.searched.info.context, self.searched.info.grades, keys.shown("pager"))
        self._trail = Trail()
        self._past = Past(opened.home, self.searched.name)
        self._error: Exception | None = None
        self._prompted: str | None = None
        self._put_off: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="ask"):
            yield Plain("› ", id="prompt")
            yield self.words
        yield self.note
        with Container(id="body"):
            with Vertical(id="list"):
                yield self.hits
            yield self.reading
        yield KeyLine([*self._grade_entries(), *self._entries("undo")], 1, id="grades")
        yield KeyLine(self._entries_in_line(), 1, id="keys-line")
        yield KeyLine(self._entries(*IN_HITS), 1, id="keys")

    def _entries_in_line(self) -> list[Entry]:
        """The keys that hold while somebody types."""
        own = self.keys
        entries = [
            Entry(one.name, own.shown_in_line(one.name), one.word)
            for one in own.actions
            if one.name in IN_LINE
        ]
        return [Entry("words", "↵", "to the hits"), *(one for one in entries if one.key)]

    def _grade_entries(self) -> list[Entry]:
        labels = enumerate(self.judging.labels)
        return [
            Entry(f"grade_{grade}", self.keys.shown(f"grade_{grade}"), label if label != str(grade) else "")
            for grade, label in labels
        ]

    def begin(self) -> None:
        entitle(self.hits, "Hits")
        self.reading.show_none("")
        self._draw_sought()
        self.searching.ask()

    def leave(self) -> None:
        session = self.judging.session
        if session is None:
            self.app.exit()
        else:
            Leaving(lambda: self.app, session, self.head.draw).leave()

    def last_words(self) -> str | None:
        session = self.judging.session
        return None if session is None else Leaving(lambda: self.app, session, self.head.draw).last_words()

    def on_unmount(self) -> None:
        self.quick.close()
        self.slow.close()

    def help(self) -> Help:
        return Help(self.keys, {"Words": LANGUAGE})

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
        if (name in OF_HIT or name.startswith("grade_")) and self.searching.is_waiting:
            self._put_off.append(name)
        elif name.startswith("grade_"):
            self._grade(int(name.removeprefix("grade_")))
        else:
            super().act(name)

    def _catch_up(self) -> None:
        """Do what was put off until there was an answer."""
        put_off, self._put_off = self._put_off, []
        for name in put_off:
            self.do(name)

    def leave_line(self, line: Line) -> None:  # noqa: ARG002  # there is one
        self.panes.focus(self.hits)

    def _submitted(self, text: str) -> None:
        self._past.add(text)
        self.panes.focus(self.hits)

    def _typed(self, text: str) -> None:
        self._error = None
        sought = self.searching.sought
        self.searching.typed(replace(sought, text=text, like=None, literal=False))
        if sought.like is not None:
            self._draw_sought()

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
        self._error = None
        self.hits.open(listing, cursor, self.judging.mark_cells)
        count = listing.total
        recipe = listing.request.recipe or self.searched.info.search_recipe
        first = "the first " if count == FUSED_DEPTH and not self._is_quick(recipe) else ""
        entitle(self.hits, f"{first}{count:,} document{'s' * (count != 1)} · {recipe}")
        self.head.tell("")
        self._draw_sought()
        self.show_document()
        self._catch_up()

    def page_came(self, places: range) -> None:
        self.hits.page_came(places)
        if self.hits.cursor in places:
            self.show_document()
        self._fetch()

    def failed(self, error: Exception) -> None:
        self._error = error
        if isinstance(error, BrokenQuery):
            self._draw_sought()
        elif isinstance(error, SearchappError):
            self.head.tell(str(error), "$error")
            self._draw_sought()
        else:
            self.head.tell(f"the search failed: {type(error).__name__}: {error}", "$error")
        self._put_off.clear()

    def _draw_sought(self) -> None:
        """Show what is sought, beside the words: whether they can be read, the filters, the recipe."""
        sought = self.searching.sought
        if sought.like != self._prompted:  # which lays out the whole screen again
            self._prompted = sought.like
            prompt = f"like {shortened(sought.like, LONGEST_ID)} › " if sought.like is not None else "› "
            self.query_one("#prompt", Plain).update(prompt)
        if isinstance(self._error, BrokenQuery):
            offset = self.words.content_region.x - self.words.scroll_offset.x - self.note.content_region.x
            self.note.show_broken(self._error, sought.text, offset)
        elif isinstance(self._error, SearchappError):
            self.note.show_error("the hits below are those from before")
        else:
            topic = self.judging.topic
            self.note.show_filters(
                sought.filters, self.keys.shown("filter"), "" if topic is None else topic.id
            )

    @on(HitRows.Wanted)
    def _wanted(self, event: HitRows.Wanted) -> None:
        event.stop()
        self._fetch()

    def _fetch(self) -> None:
        """Fetch what is in sight, and then what comes into sight next."""
        seen = self.hits.visible_places
        self.searching.fetch(range(seen.start, seen.stop))
        self.searching.fetch(range(seen.start - self.hits.page, seen.stop + self.hits.page))

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._fetch()
        self.show_document()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        self.panes.focus(self.hits)

    def show_document(self) -> None:
        """Show the document that the cursor is on."""
        result = self.hits.result
        if result is not None:
            document = result.hit.document_id
            others, words = self.judging.others(document), self.judging.words(document)
            self.reading.show(result, self.searching.asker, others, words)
        elif self.hits.count:
            self.reading.show_none("…")
        elif not self.searching.sought.text.strip() and not self._is_quick(self.searching.sought.recipe):
            self.reading.show_none("This recipe ranks documents for words: type some.")
        else:
            self.reading.show_none("No document matches.")

    # Filters, recipes, what was sought before

    def _seek(self, sought: Sought, cursor: int = 0) -> None:
        """Seek something else, and show it beside the words."""
        self._error = None
        self.words.value = "" if sought.like is not None else sought.text
        self.words.cursor_position = len(self.words.value)
        self.searching.seek(sought, cursor)
        self._draw_sought()

    @property
    def _position(self) -> Position:
        return Position(self.searching.sought, self.hits.cursor)

    def _filter(self) -> None:
        if not self.searcher.fields(self.searching.sought.recipe).facets:
            self.head.tell(f"the documents of {self.searched.name} have no fields to filter by", "$warning")
            return
        dialog = Filtering(lambda one: self._toggle(dialog, one), lambda: self._set_filters(dialog, ()))
        self.app.push_screen(dialog)
        self._count(dialog)

    def _toggle(self, dialog: Filtering, one: Filter) -> None:
        self._set_filters(dialog, toggled(self.searching.sought.filters, one))

    def _set_filters(self, dialog: Filtering, filters: tuple[Filter, ...]) -> None:
        self._seek(replace(self.searching.sought, filters=filters))
        self._count(dialog)

    def _count(self, dialog: Filtering) -> None:
        """Count what filters would leave, and show that in a dialog."""
        request = self.searching.sought.request

        def came(found: list[Facet]) -> None:
            if dialog.is_attached:
                dialog.show(found)

        self.searching.asker_of(request).ask(
            Kind.counts, lambda searcher: facets(searcher, request), came, self._tell_error
        )

    def _choose_recipe(self) -> None:
        names = self.searcher.recipes
        sought = self.searching.sought
        now = sought.recipe or self.searched.info.search_recipe
        choices = [
            Choice(name, self.searcher.recipe(name).about, "●" if name == now else "○") for name in names
        ]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._seek(replace(self.searching.sought, recipe=names[place]))
                if not self._is_quick(names[place]):
                    self.head.tell(f"{names[place]} is being prepared …")

        self.app.push_screen(Picking("Rank with", choices, names.index(now) if now in names else 0), chosen)

    def _recall(self) -> None:
        texts = self._past.texts
        if not texts:
            self.head.tell(f"nothing was searched for in {self.searched.name} before", "$warning")
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                self._trail.leave(self._position)
                self._seek(replace(self.searching.sought, text=texts[place], like=None, literal=False))

        self.app.push_screen(Picking("Searched for before", [Choice(text) for text in texts]), chosen)

    def _like(self) -> None:
        result = self._result()
        if result is None:
            return
        if not result.text.strip():
            self.head.tell("this document has no words that others could have too", "$warning")
            return
        self._trail.leave(self._position)
        self._seek(self.searching.sought.of_document(result))

    def _walk(self, step: Callable[[Position], Position | None], where: str) -> None:
        position = step(self._position)
        if position is None:
            self.head.tell(f"there is no search {where} this one")
        else:
            self._seek(position.sought, position.cursor)

    # Judging

    def _choose_topic(self) -> None:
        collection = self.searcher.collection
        if collection is None:
            self.head.tell(
                f"the topics of {self.searched.name} are not at hand: name their folder with --data",
                "$warning",
            )
            return
        self.head.tell("reading the topics …")
        self.quick.ask(
            Kind.topics,
            lambda _searcher: every_topic(self.searched, collection),
            self._offer_topics,
            self._tell_error,
        )

    def _offer_topics(self, topics: Sequence[Topic]) -> None:
        self.head.tell("")
        choices = [Choice(NO_TOPIC), *(Choice(one.id, one_line(one.text, maths=True)) for one in topics)]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._begin_topic(topics[place - 1] if place else None)

        self.app.push_screen(Picking("Judge documents for the topic", choices), chosen)

    def _begin_topic(self, topic: Topic | None) -> None:
        """Judge for a topic, and search for its text; a text is words alone, whatever signs are in it."""
        is_first = self.judging.session is None
        try:
            self.judging.choose(topic)
        except SearchappError as error:
            self.head.tell(str(error), "$error")
            return
        if is_first and topic is not None:
            self.set_interval(REFRESH_SECONDS, self.refresh_judgments)
        self.set_class(topic is not None, "-judging")
        if topic is None:
            self._seek(self.searching.sought)
            return
        self._trail.leave(self._position)
        self._seek(replace(self.searching.sought, text=" ".join(topic.text.split()), like=None, literal=True))
        self.panes.focus(self.hits)

    def _grade(self, grade: int) -> None:
        """Grade the hit that the cursor is on, and go on to the next one."""
        if self.judging.topic is None:
            self.head.tell(f"grades are for a topic: {self.keys.shown('topic')} chooses one", "$warning")
            return
        result = self._result()
        if result is None:
            return
        if self.searched.info.topics_are_documents and result.hit.document_id == self.judging.topic.id:
            self.head.tell("this document is the topic itself, which is not graded", "$warning")
            return
        recipe = self.searching.sought.recipe or self.searched.info.search_recipe
        document = result.hit.document_id
        what = instead_of(
            graded(grade, self.judging.labels), self.judging.opinion(document), self.judging.labels
        )
        outcome = self.judging.grade(result, recipe, grade)
        self._tell_outcome(outcome, f"{what}: {beginning(document, result.text, self.hits.maths)}")
        self.hits.redraw(self.hits.cursor)
        if self.hits.cursor + 1 < self.hits.count:
            self.hits.move(self.hits.cursor + 1)
        else:
            self.show_document()

    def _undo(self) -> None:
        outcome = self.judging.undo()
        if outcome is None:
            self.head.tell("there is no grade of this session to undo")
            return
        self._tell_outcome(outcome, f"undone: {', '.join(one.document_id for one in outcome.events)}")
        self.hits.refresh()
        self.show_document()

    def refresh_judgments(self) -> None:
        """Take in and show what was written elsewhere meanwhile."""
        session = self.judging.session
        if session is None or session.waiting:
            return
        try:
            came = session.refresh()
        except SearchappError as error:
            self._tell_error(error)
            return
        if came:
            self.head.tell(came_in(came, session.author.annotator), "$primary")
            self.hits.refresh()
            self.show_document()

    def _tell_outcome(self, outcome: Outcome, what: str) -> None:
        """Say that a grade is saved, or that it waits to be."""
        if outcome.is_saved:
            self.head.tell(f"✓ saved  {what}", "$success")
        else:
            self.head.tell(f"▲ NOT SAVED yet, tried again all the time: {outcome.not_saved}", "bold $error")
            self.set_timer(RETRY_SECONDS, self._save_waiting)

    def _save_waiting(self) -> None:
        session = self.judging.session
        if session is not None and session.waiting:
            self._tell_outcome(session.save_waiting(), "everything that was waiting")

    # Why

    def _result(self) -> SearchResult | None:
        """The hit that the cursor is on, of which something is wanted; says so if there is none."""
        result = self.hits.result
        if result is None:
            self.head.tell("there is no document here", "$warning")
        return result

    def _why(self) -> None:
        result, listing = self._result(), self.searching.listing
        if result is None or listing is None:
            return
        document = result.hit.document_id
        self.searching.asker.ask(
            Kind.why,
            lambda searcher: Why(
                document,
                Standing.ranked,
                result.rank,
                result.hit.score,
                searcher.explain(listing.request, document),
            ),
            self._show_why,
            self._tell_error,
        )

    def _ask_document(self) -> None:
        self.app.push_screen(Words("Go to the document with the id"), self._go_to)

    def _go_to(self, document: str | None) -> None:
        listing = self.searching.listing
        if not document or listing is None:
            return
        self.head.tell(f"looking for {shortened(document, LONGEST_ID)} …")
        asker = self.slow if self.searching.asker is self.slow else self.quick
        asker.ask(
            Kind.why, lambda searcher: why(searcher, listing.request, document), self._went, self._tell_error
        )

    def _went(self, found: Why) -> None:
        """Go to a document that is ranked; say why another one is not."""
        if found.rank is not None and found.rank <= self.hits.count:
            self.head.tell("")
            self.hits.move(found.rank - 1)
        else:
            self._show_why(found)

    def _show_why(self, found: Why) -> None:
        self.head.tell("")
        self.app.push_screen(Explained(found, self.searched.name))

    def _tell_error(self, error: Exception) -> None:
        is_ours = isinstance(error, SearchappError)
        self.head.tell(str(error) if is_ours else f"{type(error).__name__}: {error}", "$error")

    # Copying, and the rest

    def _copy_of(self, of: Callable[[SearchResult], str]) -> None:
        result = self._result()
        if result is not None:
            self.app.copy_to_clipboard(visible(of(result)))  # it may be pasted into a shell

    def command(self) -> str | None:
        """The command that prints what is seen; None where there is none."""
        sought = self.searching.sought
        if sought.like is not None or (sought.literal and set(SIGNS) & set(sought.text)):
            return None
        parts = list(self._opened.command)
        if sought.recipe is not None:
            parts += ["--recipe", sought.recipe]
        for one in sought.filters:
            parts += ["--filter", f"{one.field}={one.value}"]
        seen = self.hits.visible_places
        parts += ["--size", str(max(1, len(seen)))]
        if seen.start:
            parts += ["--from", str(seen.start + 1)]
        return shlex.join([*parts, "--", self.searched.reference, sought.text])

    def _copy_command(self) -> None:
        command = self.command()
        if command is None:
            self.head.tell(
                "no command takes this text as words alone: it has signs that say more", "$warning"
            )
        else:
            self.app.copy_to_clipboard(visible(command))

    def _pager(self) -> None:
        result = self._result()
        if result is None:
            return
        try:
            show_in_pager(self.app, f"{result.hit.document_id}\n\n{result.text}\n")
        except SearchappError as error:
            self.head.tell(str(error), "$error")

    def _next_form(self) -> None:
        forms = list(Form)
        form = forms[(forms.index(self.reading.form) + 1) % len(forms)]
        self.reading.form = form
        self.hits.show_maths(form is Form.maths)
        self.show_document()
        self.head.tell(form.value)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "words": self._to_words,
            "history": self._recall,
            "filter": self._filter,
            "recipe": self._choose_recipe,
            "like": self._like,
            "topic": self._choose_topic,
            "undo": self._undo,
            "back": lambda: self._walk(self._trail.back, "before"),
            "forward": lambda: self._walk(self._trail.forward, "behind"),
            "why": self._why,
            "document": self._ask_document,
            "maths": self._next_form,
            "copy_id": lambda: self._copy_of(lambda result: result.hit.document_id),
            "copy_text": lambda: self._copy_of(lambda result: result.text),
            "copy_command": self._copy_command,
            "pager": self._pager,
        }
