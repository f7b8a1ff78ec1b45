"""The home screen: tasks, runs, and the details of a task or run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widget import Widget

from searchapp.app.evaluate import Evaluation
from searchapp.app.inspection.pages import every_topic
from searchapp.app.overview import Files, Overview, TaskState
from searchapp.app.runs import KnownRun
from searchapp.app.saved_searches import RecentSearches, SearchQuery
from searchapp.config.resolution import Resolution
from searchapp.errors import SearchappError
from searchapp.fetching import sources
from searchapp.model import Topic
from searchapp.ranking import recipes
from searchapp.tasks import SAMPLE
from searchapp.text import counted
from searchapp.tui.home import opener
from searchapp.tui.home.jobs import HomeJobs
from searchapp.tui.home.opener import Opener
from searchapp.tui.home.overview import OverviewMonitor
from searchapp.tui.kit import keys
from searchapp.tui.kit.content import Content, Notation, entitle
from searchapp.tui.kit.descriptions import error_text, with_tilde
from searchapp.tui.kit.dialogs import Choice, Picking, ReportDialog
from searchapp.tui.kit.keys import KeyMap, PaneHelp, ScreenSettings, screen_actions
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.screen import Banner, KeyScreen
from searchapp.tui.kit.widgets import (
    KeyLine,
    RowList,
    RowPart,
    TextLine,
    TextPane,
    chip,
    fitted,
    one_line,
    shortened,
)

PANES = {
    "tasks": PaneHelp(
        "The tasks",
        "Every task with its documents, topics and judgments, and whether it is indexed.",
        (),
        ("open", "index", "own_task", "fetch", "rank", "palette", "jump"),
    ),
    "runs": PaneHelp(
        "The runs",
        "The latest runs with their official score.",
        (),
        ("open", "topics", "compare", "evaluate", "palette", "jump"),
    ),
    "details": PaneHelp(
        "The details", "The details of the selected task or run.", (), ("scroll_down", "zoom", "next_pane")
    ),
}


SECTION = "browse"

KEY_ACTIONS = screen_actions(
    *("index", "own_task", "fetch", "rank", "settings", "doctor", "refresh", "compare", "evaluate"),
    open="Search the selected task, or judge the selected run",
    clear=("Stop indexing, fetching or ranking", "stop"),
    topics="Browse the topics of the run with their gold",
    next_pane="Next pane: tasks, runs, details",
    scroll_down="Scroll the details down",
    scroll_up="Scroll the details up",
    palette="Search for an action, a task or a run",
)

IN_LAST_LINE = ("open", "index", "evaluate", "topics", "compare", "palette", "help", "quit")


def load(home: Path) -> ScreenSettings:
    """Return the settings of the home screen; see `keys.load`."""
    return keys.load(home, (), SECTION, KEY_ACTIONS)


# The share of a line for a name.
NAME_SHARE = 0.5

COUNT_CELLS = 11
JUDGED_CELLS = 14
FIGURE_CELLS = 9
WHEN_CELLS = 10
# Narrower lists omit columns that the details repeat.
NARROW_CELLS = 44


class TaskRows(RowList):
    """The tasks with their numbers of documents and judgments."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--rank"}

    def __init__(self) -> None:
        super().__init__(id="tasks", empty="Loading the tasks …")
        self.states: Sequence[TaskState] = ()

    @property
    def state(self) -> TaskState | None:
        return self.states[self.cursor] if self.states else None

    def list(self, states: Sequence[TaskState]) -> None:
        """Show tasks; the cursor stays on its task, or moves to its new sample."""
        current = self.state
        before = [state.task.reference for state in self.states]
        self.states = states
        names = [state.task.reference for state in states]
        index = self.cursor
        if current is not None:
            sample = f"{current.task.reference}{SAMPLE}"
            wanted = sample if sample in names and sample not in before else current.task.reference
            index = names.index(wanted) if wanted in names else index
        self.show(len(states), index)

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        state = self.states[index]
        is_narrow = width < NARROW_CELLS
        name_cells = self._name_cells(width)
        documents = "–" if state.index is None else f"{state.index.documents:,}"
        judged = f"{state.judged:,} judged" if state.judged else ""
        parts = [
            ("▶ " if index == self.cursor else "  ", "rows--begun"),
            (fitted(state.task.name, name_cells), "rows--text" if state.index else "rows--faint"),
            (f"{documents:>{COUNT_CELLS}}", "rows--done" if state.index else "rows--faint"),
        ]
        if not is_narrow:
            parts.append((f"{judged:>{JUDGED_CELLS}}", "rows--rank"))
        return parts

    def head(self, width: int) -> Sequence[str]:
        judgments = "" if width < NARROW_CELLS else f"{'judgments':>{JUDGED_CELLS}}"
        return "  ", fitted("task", self._name_cells(width)), f"{'documents':>{COUNT_CELLS}}", judgments

    def _name_cells(self, width: int) -> int:
        return width - 2 - COUNT_CELLS - (0 if width < NARROW_CELLS else JUDGED_CELLS)


class RunRows(RowList):
    """The runs, the latest first, with official figures."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--done", "rows--rank"}

    def __init__(self, figure: Callable[[KnownRun], str]) -> None:
        super().__init__(id="runs", empty="Loading the runs …")
        self.runs: Sequence[KnownRun] = ()
        self._figure = figure
        # The run that gets the cursor when it is listed.
        self._wanted: Path | None = None

    @property
    def run(self) -> KnownRun | None:
        return self.runs[self.cursor] if self.runs else None

    def list(self, runs: Sequence[KnownRun]) -> None:
        path = self.run.path if self.run is not None else None
        self.runs = runs
        paths = [run.path for run in runs]
        if self._wanted in paths:
            path, self._wanted = self._wanted, None
        self.show(len(runs), paths.index(path) if path in paths else self.cursor)

    def select(self, path: Path) -> None:
        self._wanted = path.resolve()
        self.list(self.runs)

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        run = self.runs[index]
        is_narrow = width < NARROW_CELLS
        left, name_cells = self._columns(width)
        parts = [
            ("▶ " if index == self.cursor else "  ", "rows--begun"),
            (fitted(run.path.name, name_cells - 1) + " ", "rows--text"),
            (
                fitted(f"{run.manifest.task} {run.manifest.split} {run.recipe}", left - name_cells),
                "rows--faint",
            ),
            (fitted(f"{self._figure(run):>{FIGURE_CELLS}}", FIGURE_CELLS), "rows--done"),
        ]
        if not is_narrow:
            parts.append((f"  {fitted(run.manifest.created[:WHEN_CELLS], WHEN_CELLS)}", "rows--rank"))
        return parts

    def head(self, width: int) -> Sequence[str]:
        left, name_cells = self._columns(width)
        about = fitted("task, split, recipe", left - name_cells)
        created = "" if width < NARROW_CELLS else "  created"
        return "  ", fitted("run", name_cells), about, f"{'score':>{FIGURE_CELLS}}", created

    def _columns(self, width: int) -> tuple[int, int]:
        left = width - 2 - FIGURE_CELLS - (0 if width < NARROW_CELLS else WHEN_CELLS + 2)
        return left, int(left * NAME_SHARE)


# Width of a path in the first line.
LONGEST_PATH = 60


class EngineBanner(Banner):
    """The first line, with the engine's state."""

    def __init__(self, engine: str) -> None:
        super().__init__("searchapp")
        self._chips = (chip(engine),)
        self._more = Content.styled("checking the engine …", "$faint")

    def show_engine(self, name: str, overview: Overview) -> None:
        engine = overview.engine
        if engine is None:
            self._chips = (chip(f"▲ {name} does not answer", "bold $error"),)
            self._more = Content.styled(overview.trouble, "$error")
        else:
            self._chips = (chip(f"✓ {engine.name}", "$success"),)
            location = shortened(with_tilde(engine.location), LONGEST_PATH)
            self._more = Content.styled(f"version {engine.version} at {location}", "$faint")
        self.draw()

    @property
    def status(self) -> Content:
        return super().status or self._more


LABEL_CELLS = 10

# A label and its value.
DetailRow = tuple[str, str]


def task_page(state: TaskState, files: Files | None, overview: Overview, keys: KeyMap) -> Content:
    """Return the details of a task with the next step."""
    info = state.task.info
    title = Content.styled(info.title, "bold")
    about = Content(info.about)
    hint = Content.styled(_next_step(state, overview, keys), "$accent")
    return Content("\n").join(
        [title, hint, Content(""), *_rows(_task_rows(state, files)), Content(""), about]
    )


def _task_rows(state: TaskState, files: Files | None) -> Iterator[DetailRow]:
    task = state.task
    if state.index is not None:
        yield "documents", f"{state.index.documents:,}"
        of_sample = ", the bundled sample" if state.is_sample else ""
        yield "indexed", f"{_when(state.index.created)}, as {state.index.version}{of_sample}"
    else:
        yield "documents", "not indexed"
    yield "topics", _topics(state, files)
    yield "judged", counted(state.judged, "document") if state.judged else "nothing yet"
    yield "files", with_tilde(str(state.files) if state.files is not None else f"none in {state.folder}")
    if task.info.file is not None:
        yield "task file", with_tilde(str(task.info.file))
    yield "recipes", " ".join(recipes.names(task.recipe_book()))
    yield "official", task.info.official_measure


def _topics(state: TaskState, files: Files | None) -> str:
    if state.files is None:
        return "unknown: the task's files were not found"
    if files is None:
        return "…"
    counts = ", ".join(f"{split} {count:,}" for split, count in files.topics.items())
    return counts or files.problem or "none in the files"


def _next_step(state: TaskState, overview: Overview, keys: KeyMap) -> str:
    if overview.engine is None:
        return f"The engine does not answer: {overview.trouble}"
    index, open_ = keys.shown("index"), keys.shown("open")
    fetch = f"{keys.shown('fetch')} fetches its official files" if can_fetch(state) else ""
    if state.index is not None:
        further = fetch if state.files is None else f"{keys.shown('rank')} ranks its topics"
        steps = [f"{open_} searches the documents", further, f"{index} indexes them again"]
        return f"{', '.join(filter(None, steps))}."
    ways = "its sample" if state.sample is not None and not state.has_files else "its files"
    first = "Nothing is indexed yet. " if overview.is_empty else ""
    further = f"; {fetch}" if fetch else ""
    return f"{first}{index} indexes {ways} or another folder{further}; then {open_} searches it."


def can_fetch(state: TaskState) -> bool:
    """Return whether a task lacks its files and `data get` can fetch them."""
    is_own = state.task.info.file is not None
    return not state.has_files and not is_own and state.task.name in sources.names()


def first_run_sentence(overview: Overview, keys: KeyMap) -> str:
    """Return how to make the first run."""
    state = next((state for state in overview.tasks if state.index is not None), None)
    if state is None:
        return f"No runs yet. Index a task first: {keys.shown('index')} in the list of tasks."
    return f"No runs yet. {keys.shown('rank')} ranks the topics of the task under the cursor."


def run_page(run: KnownRun, figure: str, keys: KeyMap) -> Content:
    """Return the details of a run with its actions."""
    manifest = run.manifest
    rows = [
        ("run", with_tilde(str(run.path))),
        ("task", f"{manifest.task} {manifest.split}"),
        ("recipe", run.recipe),
        (
            "ranked",
            f"{counted(manifest.topics, 'topic')} to depth {manifest.depth:,}, {_when(manifest.created)}",
        ),
        ("official", with_tilde(figure) or "…"),
        ("files", with_tilde(manifest.data)),
    ]
    hint = (
        f"{keys.shown('open')} judges it, {keys.shown('evaluate')} shows all measures, "
        f"{keys.shown('topics')} its topics, {keys.shown('compare')} compares it."
    )
    return Content("\n").join([Content.styled(hint, "$accent"), Content(""), *_rows(rows)])


def evaluation_page(evaluation: Evaluation) -> Content:
    """Return all figures of a run."""
    official = evaluation.official
    rows = [("topics", f"{evaluation.topics:,}")]
    rows += [(name, f"{value:.6f}  (official)") for name, value in official.values.items()]
    rows += [(name, f"{value:.6f}  (honest)") for name, value in official.honest.items()]
    rows += [(name, f"{value:.6f}") for name, value in evaluation.measures.values.items()]
    cells = max(len(name) for name, _value in rows) + 2
    lines = [Content.assemble((f"{name:<{cells}}", "$faint"), value) for name, value in rows]
    lines += [Content.assemble(("! ", "bold $warning"), warning) for warning in evaluation.warnings]
    return Content("\n").join(lines)


def _rows(rows: Iterator[DetailRow] | Sequence[DetailRow]) -> list[Content]:
    return [Content.assemble((f"{name:<{LABEL_CELLS}} ", "$faint"), value) for name, value in rows]


def _when(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return moment


COLUMNS = {"tasks": "lists", "runs": "lists", "details": "details"}

# Recent searches of each task in the palette.
RECENT_TEXTS = 20


class HomeScreen(KeyScreen):
    """Tasks and runs, and the details of the one under the cursor."""

    CSS_PATH = Path(__file__).with_name("home.tcss")
    AUTO_FOCUS = "#tasks"
    ABOUT = PANES
    SCROLLED = "#details"

    head: EngineBanner

    def __init__(self, resolution: Resolution, folder: Path, keys: KeyMap) -> None:
        super().__init__(keys, EngineBanner(resolution.settings.engine), COLUMNS, ("tasks", "runs"))
        self._resolution = resolution
        self.settings = resolution.settings
        self.monitor = OverviewMonitor(
            self, self.settings, folder, self.later, self.show_overview, self.show_figures
        )
        self.opener = Opener(self, self.settings, self.later)
        self.tasks = TaskRows()
        self.runs = RunRows(self.monitor.figure)
        self.jobs = HomeJobs(
            *(self, self.settings, self.later, self.tell_news, self.monitor.look_again, self.runs.select)
        )
        self._details = TextPane(id="details")
        # The last focused list.
        self._current: RowList = self.tasks
        self._described: object = None
        self._news: Sequence[str] = ()
        # Redraws the figures in the list of runs to compare with.
        self._draw_others: Callable[[], object] = lambda: None

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
        self.monitor.look()

    def on_screen_resume(self) -> None:
        self.monitor.resume()

    def on_unmount(self) -> None:
        self.monitor.close()

    def leave(self) -> None:
        job = self.jobs.job
        if job is None:
            super().leave()
            return

        def stop() -> None:
            job.stop_and_wait()
            self.go_back()

        self.ask(f"Stop {job.name} and leave?", stop)

    def last_words(self) -> str | None:
        job = self.jobs.job
        if job is None:
            return None
        job.stop_and_wait()
        return job.stopped_words

    def leave_line(self, line: TextLine) -> None:
        """Do nothing: the screen has no line of text."""

    def tell_error(self, error: Exception) -> None:
        lines = error.lines if isinstance(error, SearchappError) else (error_text(error),)
        self.tell_news(lines, "$error")

    def tell_news(self, sentences: Sequence[str], look: str) -> None:
        """Show the first sentence in the first line, and all sentences in the details."""
        self._news = sentences
        self.head.tell(sentences[0], look, holds=lambda: self._news is sentences)
        self.describe()

    # Drawing

    def show_overview(self, overview: Overview) -> None:
        self.head.show_engine(self.settings.engine, overview)
        if self.tasks.states != overview.tasks:
            self.tasks.list(overview.tasks)
        if self.runs.runs != overview.runs:
            self.runs.list(overview.runs)
        self.runs.show_empty(first_run_sentence(overview, self.keys))
        self.describe()
        self.head.clear_ended()

    def show_figures(self) -> None:
        self.runs.refresh()
        self.describe()
        self._draw_others()

    def describe(self) -> None:
        overview = self.monitor.overview
        if overview is None:
            self._details.show(Content.styled("…", "$faint"))
            return
        run, state = self.run, self.tasks.state
        if run is not None:
            key: object = run.path
            text = run_page(run, self.monitor.figure_words(run), self.keys)
            title = f"Run {run.path.name}"
        elif state is not None and not self._is_in_runs:
            key = state.task.reference
            text = task_page(state, self.monitor.files(state), overview, self.keys)
            title = f"Task {state.task.name}"
        else:
            key, title = None, "Runs"
            text = Content(first_run_sentence(overview, self.keys))
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
        return self.runs.run if self._is_in_runs else None

    def cursor_moved(self, rows: RowList) -> None:  # noqa: ARG002  # the one with the focus
        self._news = ()
        self.describe()
        self.head.clear_ended()

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        self.panes.focus(event.rows)
        self.describe()

    def watch_focused(self, focused: Widget | None) -> None:
        # Not in a message handler, because the next key may arrive before the message about the focus.
        if isinstance(focused, RowList):
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
        state = self.tasks.state
        if state is None:
            words = "the tasks are still being loaded"
            self.head.tell(words, "$warning", holds=lambda: self.tasks.state is None)
        return state

    def _on_task(self, act: Callable[[TaskState], object]) -> None:
        if (state := self._state()) is not None:
            act(state)

    def search(self, state: TaskState, query: SearchQuery | None = None, topic: Topic | None = None) -> None:
        if state.index is None:
            self.jobs.index(state)
        else:
            self.opener.search(state, query, topic)

    def evaluate(self, run: KnownRun | None) -> None:
        if run is None:
            self._tell_no_run()
            return
        self.head.wait(f"scoring {run.path.name} …")

        def scored(evaluation: Evaluation) -> None:
            title = f"{run.path.name}: {run.manifest.task} {run.manifest.split}"
            if self.app.screen is self:  # else the dialog would appear on another screen
                self.head.end_wait()
                self.app.push_screen(ReportDialog(title, evaluation_page(evaluation)))
            else:
                self.head.tell(f"{title}: {self.monitor.figure_words(run)}")

        self.monitor.evaluate(run, scored)

    def _topics(self) -> None:
        run = self.run
        if run is None:
            self._tell_no_run()
        else:
            self.opener.topics(run)

    def _compare(self, run: KnownRun | None) -> None:
        overview = self.monitor.overview
        if run is None or overview is None:
            self._tell_no_run()
            return
        manifest = run.manifest
        others = [
            other
            for other in overview.runs
            if other.path != run.path and (other.task, other.manifest.split) == (run.task, manifest.split)
        ]
        if not others:
            self.head.tell(
                f"there is no other run of {manifest.task} {manifest.split} to compare it with", "$warning"
            )
            return

        def question() -> str:
            return f"Compare {run.path.name} ({run.recipe} {self.monitor.figure(run)}) with"

        def choices() -> list[Choice]:
            return [Choice(run.path.name, f"{run.recipe}  {self.monitor.figure(run)}") for run in others]

        def draw() -> None:
            if dialog.is_attached:
                dialog.ask(question())
                dialog.replace(choices())

        dialog = Picking(question(), choices())
        self._draw_others = draw
        self.pick(dialog, lambda index: self.opener.compare([run, others[index]]))

    def _tell_no_run(self) -> None:
        self.head.tell(f"no run is selected: {self.keys.shown('next_pane')} goes to the runs", "$warning")

    def _refresh(self) -> None:
        self._news = ()
        self.monitor.look()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            "open": self._open,
            "index": lambda: self._on_task(self.jobs.index),
            "own_task": self.jobs.index_own_task,
            "fetch": lambda: self._on_task(self.jobs.fetch),
            "rank": lambda: self._on_task(self.jobs.rank),
            "clear": self.jobs.stop,
            "evaluate": lambda: self.evaluate(self.run),
            "topics": self._topics,
            "compare": lambda: self._compare(self.run),
            "settings": lambda: self.opener.settings(self._resolution),
            "doctor": self.opener.doctor,
            "refresh": self._refresh,
        }

    # The palette

    def offers_everywhere(self) -> Iterable[Offer]:
        overview = self.monitor.overview
        if overview is None:
            return
        yield from opener.task_offers(overview, self.search)
        for state in overview.tasks:
            if state.index is None:
                yield Offer(f"index {state.task.name}", partial(self.jobs.index, state), "task")
            else:
                yield Offer(f"rank {state.task.name}", partial(self.jobs.rank, state), "task")
            if can_fetch(state):
                yield Offer(f"fetch {state.task.name}", partial(self.jobs.fetch, state), "task")
        yield from opener.run_offers(overview, "judge", self.opener.judge)
        yield from opener.run_offers(overview, "evaluate", self.evaluate)
        yield from opener.run_offers(overview, "topics of", self.opener.topics)
        yield from opener.run_offers(overview, "compare", self._compare)

    def offers(self) -> Iterable[Offer]:
        overview = self.monitor.overview
        for state in () if overview is None else overview.tasks:
            if state.index is not None:
                yield from self._recipes(state)

    def _recipes(self, state: TaskState) -> Iterable[Offer]:
        for name in sorted(state.task.recipe_book().recipes):
            search = partial(self.search, state, SearchQuery(recipe=name))
            yield Offer(f"search {state.task.name} with {name}", search, "recipe")

    def further_offers(self) -> Iterable[Offer]:
        overview = self.monitor.overview
        for state in () if overview is None else overview.tasks:
            if state.index is not None:
                for text in RecentSearches(self.settings.home, state.task.name).texts[:RECENT_TEXTS]:
                    search = partial(self.search, state, SearchQuery(text))
                    yield Offer(f"{text}  ({state.task.name})", search, "searched")
        current = self.tasks.state
        if current is not None and current.index is not None and current.files is not None:
            for topic in every_topic(current.task, current.task.collection(current.files)):
                text = one_line(topic.text, Notation(current.task.info.markup))
                yield Offer(f"{topic.id} {text}", partial(self.search, current, None, topic), "topic")
