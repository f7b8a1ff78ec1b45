"""The home screen: what there is, and what can be begun from here.

The screen shows and asks. What it does in the background has parts of its own: `watching` looks at engine, tasks and
runs, `maker` indexes, `opener` opens the screens that stand on this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widget import Widget

from searchapp.app.evaluate import Evaluation
from searchapp.app.known_runs import KnownRun
from searchapp.app.overview import Overview, TaskState
from searchapp.app.pages import every_topic
from searchapp.app.past import Past
from searchapp.config.sources import Resolution
from searchapp.errors import SearchappError
from searchapp.model import Topic
from searchapp.tui.bars import KeyLine
from searchapp.tui.content import Content, entitle
from searchapp.tui.home import about, details, elsewhere
from searchapp.tui.home.actions import IN_LAST_LINE
from searchapp.tui.home.head import HomeHead
from searchapp.tui.home.lists import RunRows, TaskRows
from searchapp.tui.home.maker import Maker
from searchapp.tui.home.opener import Opener
from searchapp.tui.home.report import Report
from searchapp.tui.home.watching import Watching
from searchapp.tui.keys import KeyMap
from searchapp.tui.line import Line
from searchapp.tui.notation import Notation
from searchapp.tui.palette import Offer
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import Rows, one_line
from searchapp.tui.screen import KeyScreen
from searchapp.tui.search.searching import Sought
from searchapp.tui.status import said_by
from searchapp.tui.text import TextPane

COLUMNS = {"tasks": "lists", "runs": "lists", "details": "details"}

RECENT_TEXTS = 20
"""Past searches of each task that the palette has."""


class HomeScreen(KeyScreen):
    """Tasks and runs, with what there is of the one that the cursor is on."""

    CSS_PATH = Path(__file__).with_name("home.tcss")
    AUTO_FOCUS = "#tasks"
    ABOUT = about.ABOUT
    SCROLLED = "#details"

    def __init__(self, resolution: Resolution, folder: Path, keys: KeyMap) -> None:
        super().__init__(keys, HomeHead(resolution.settings.engine), COLUMNS, ("tasks", "runs"))
        self._resolution = resolution
        self.settings = resolution.settings
        self.watching = Watching(self, self.settings, folder, self._later)
        self.opener = Opener(self, self.settings, self._later)
        self.maker = Maker(self, self.settings, self._later, self.watching.look)
        self.tasks = TaskRows()
        self.runs = RunRows(self.watching.figure)
        self._details = TextPane(id="details")
        self._current: Rows = self.tasks
        """The list that was last gone to."""
        self._described: object = None
        self._news: Sequence[str] = ()
        self._draw_others: Callable[[], object] = lambda: None
        """Draws the figures again of the runs that one may be compared with."""

    @property
    def head(self) -> HomeHead:
        assert isinstance(self._head, HomeHead)
        return self._head

    def compose(self) -> ComposeResult:
        yield self.head
        with Container(id="body"):
            with Vertical(id="lists"):
                yield self.tasks
                yield self.runs
            yield self._details
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        entitle(self.tasks, "Tasks")
        entitle(self.runs, "Runs")
        entitle(self._details, "Details")
        self.watching.begin()

    def on_screen_resume(self) -> None:
        self.watching.resume()

    def on_unmount(self) -> None:
        self.watching.close()

    def leave(self) -> None:
        indexing = self.maker.indexing
        if indexing is None:
            super().leave()
            return

        def stop() -> None:
            indexing.stop_and_wait()
            self.go_back()

        self.ask(f"{indexing.task.name} is being indexed. Stop that, and leave?", stop)

    def last_words(self) -> str | None:
        indexing = self.maker.indexing
        if indexing is None:
            return None
        indexing.stop_and_wait()
        return f"{indexing.task.name} was not indexed to the end: what was indexed before still serves"

    def leave_line(self, line: Line) -> None:
        """There is none."""

    def _later(self, what: Callable[[], object]) -> None:
        """Have something done here, whichever thread asks for it."""
        self.call_later(self._take_in, what)

    def _take_in(self, what: Callable[[], object]) -> None:
        with self.app.batch_update():
            what()

    def tell_error(self, error: Exception) -> None:
        """Say that something has failed."""
        lines = error.lines if isinstance(error, SearchappError) else (said_by(error),)
        self.tell_news(lines, "$error")

    def tell_news(self, sentences: Sequence[str], look: str) -> None:
        """Say what was done: the first sentence in the first line, all of them above the details until one moves."""
        self.head.tell(sentences[0], look)
        self._news = sentences
        self.describe()

    # What is seen

    def show_overview(self, overview: Overview) -> None:
        """Show how everything is now."""
        self.head.show_engine(self.settings.engine, overview)
        if self.tasks.states != overview.tasks:
            self.tasks.list(overview.tasks)
        if self.runs.runs != overview.runs:
            self.runs.list(overview.runs)
        self.describe()

    def show_figures(self) -> None:
        """Show what has become known of runs or files."""
        self.runs.refresh()
        self.describe()
        self._draw_others()

    def describe(self) -> None:
        """Describe what the cursor is on, in the list that was last gone to."""
        overview = self.watching.overview
        if overview is None:
            self._details.show(Content.styled("…", "$faint"))
            return
        run, state = self.run, self.tasks.state
        if run is not None:
            key: object = run.path
            text = details.of_run(run, self.watching.figure_words(run), self.keys)
            title = f"Run {run.path.name}"
        elif state is not None and not self._is_in_runs:
            key = state.task.reference
            text = details.of_task(state, self.watching.files(state), overview, self.keys)
            title = f"Task {state.task.name}"
        else:
            key, title = None, "Runs"
            text = Content("No run is known yet. `searchapp rank TASK --split SPLIT --out DIR` makes one.")
        notes = [Content.assemble(("! ", "bold $warning"), note) for note in overview.notes]
        news = [*map(Content, self._news), Content("")] if self._news else []
        text = Content("\n").join([*news, text, *([Content("")] if notes else []), *notes])
        entitle(self._details, title)
        key = key, self._news
        changed, self._described = key != self._described, key
        self._details.show(text, changed=changed)

    @property
    def _is_in_runs(self) -> bool:
        return self._current is self.runs

    @property
    def run(self) -> KnownRun | None:
        """The run that the cursor is on, if it is on one."""
        return self.runs.run if self._is_in_runs else None

    def cursor_moved(self, rows: Rows) -> None:  # noqa: ARG002  # the one with the focus
        self._news = ()
        self.describe()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        self.panes.focus(event.rows)
        self.describe()

    def watch_focused(self, focused: Widget | None) -> None:
        # At once: the next key may come before the message that a list has the focus.
        if isinstance(focused, Rows):
            self._current = focused
            self._news = ()

    def on_descendant_focus(self) -> None:
        self.describe()

    # Opening

    def _open(self) -> None:
        run = self.run
        if run is not None:
            self.opener.judge(run)
        elif not self._is_in_runs and (state := self._state()) is not None:
            self.search(state)

    def _state(self) -> TaskState | None:
        """The task that the cursor is on; says so if there is none."""
        state = self.tasks.state
        if state is None:
            self.head.tell("the tasks are still being looked for", "$warning")
        return state

    def search(self, state: TaskState, sought: Sought | None = None, topic: Topic | None = None) -> None:
        """Open the search screen on a task; one that is not indexed is indexed first, if somebody wants that."""
        if state.index is None:
            self.maker.ask(state)
        else:
            self.opener.search(state, sought, topic)

    def evaluate(self, run: KnownRun | None) -> None:
        """Show all figures of a run."""
        if run is None:
            self._tell_no_run()
            return
        self.head.wait(f"scoring {run.path.name} …")

        def scored(found: Evaluation) -> None:
            title = f"{run.path.name}: {run.manifest.task} {run.manifest.split}"
            if self.app.screen is self:  # or somebody has opened something else meanwhile
                self.head.came()
                self.app.push_screen(Report(title, details.of_evaluation(found)))
            else:
                self.head.tell(f"{title}: {self.watching.figure_words(run)}")

        self.watching.evaluate(run, scored)

    def _topics(self) -> None:
        run = self.run
        if run is None:
            self._tell_no_run()
        else:
            self.opener.topics(run)

    def _compare(self, run: KnownRun | None) -> None:
        """Ask for a run to compare another one with."""
        overview = self.watching.overview
        if run is None or overview is None:
            self._tell_no_run()
            return
        made = run.manifest
        others = [
            one
            for one in overview.runs
            if one.path != run.path and (one.task, one.manifest.split) == (run.task, made.split)
        ]
        if not others:
            self.head.tell(
                f"there is no other run of {made.task} {made.split} to compare it with", "$warning"
            )
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                self.opener.compare([run, others[place]])

        def question() -> str:
            return f"{run.path.name} ({run.recipe} {self.watching.figure(run)}) is compared with"

        def choices() -> list[Choice]:
            return [Choice(one.path.name, f"{one.recipe}  {self.watching.figure(one)}") for one in others]

        def draw() -> None:
            if dialog.is_attached:
                dialog.ask(question())
                dialog.replace(choices())

        dialog = Picking(question(), choices())
        self._draw_others = draw
        self.app.push_screen(dialog, chosen)

    def _tell_no_run(self) -> None:
        self.head.tell(f"no run is chosen: {self.keys.shown('next_pane')} goes to the runs", "$warning")

    def _refresh(self) -> None:
        self._news = ()
        self.head.tell("")
        self.watching.look()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "open": self._open,
            "index": lambda: self.maker.ask(state) if (state := self._state()) is not None else None,
            "own_task": self.maker.ask_own_task,
            "stop": self.maker.stop,
            "evaluate": lambda: self.evaluate(self.run),
            "topics": self._topics,
            "compare": lambda: self._compare(self.run),
            "settings": lambda: self.opener.settings(self._resolution),
            "doctor": self.opener.doctor,
            "refresh": self._refresh,
        }

    # The palette

    def offers_everywhere(self) -> Iterable[Offer]:
        overview = self.watching.overview
        if overview is None:
            return
        yield from elsewhere.tasks(overview, self.search)
        for state in overview.tasks:
            if state.index is None:
                yield Offer(f"index {state.task.name}", partial(self.maker.ask, state), "task")
        yield from elsewhere.runs(overview, "judge", self.opener.judge)
        yield from elsewhere.runs(overview, "evaluate", self.evaluate)
        yield from elsewhere.runs(overview, "topics of", self.opener.topics)
        yield from elsewhere.runs(overview, "compare", self._compare)

    def offers(self) -> Iterable[Offer]:
        overview = self.watching.overview
        for state in () if overview is None else overview.tasks:
            if state.index is not None:
                yield from self._recipes(state)

    def _recipes(self, state: TaskState) -> Iterable[Offer]:
        for name in sorted(state.task.recipe_book().recipes):
            sought = Sought(recipe=name)
            yield Offer(
                f"search {state.task.name} with {name}", partial(self.search, state, sought), "recipe"
            )

    def further_offers(self) -> Iterable[Offer]:
        overview = self.watching.overview
        for state in () if overview is None else overview.tasks:
            if state.index is not None:
                for text in Past(self.settings.home, state.task.name).texts[:RECENT_TEXTS]:
                    sought = Sought(text)
                    yield Offer(
                        f"{text}  ({state.task.name})", partial(self.search, state, sought), "searched"
                    )
        here = self.tasks.state
        if here is not None and here.index is not None and here.files is not None:
            for topic in every_topic(here.task, here.task.collection(here.files)):
                text = one_line(topic.text, Notation(here.task.info.markup))
                yield Offer(f"{topic.id} {text}", partial(self.search, here, None, topic), "topic")
