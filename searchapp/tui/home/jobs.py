"""Index, fetch and rank from the home screen: questions, work in a thread, progress and cancellation."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from searchapp.app.index import index_task, open_index, outcome_sentences
from searchapp.app.inspection.live_ranking import usual_split
from searchapp.app.manifests import NewRun
from searchapp.app.overview import TaskState, look_into
from searchapp.app.rank import RunRequest, make_run
from searchapp.app.runs import RUNS, remember_run
from searchapp.config.settings import Settings
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_engine
from searchapp.errors import DataError, OtherDocuments, SearchappError, UsageError
from searchapp.fetching import sources
from searchapp.fetching.download import Downloader
from searchapp.fetching.fetch import Plan, fetch, kept_bytes, make_plan, plan_facts
from searchapp.fetching.sources import Download
from searchapp.files import reason
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Advance, TextProgress, WorkStopped, byte_count, no_notice
from searchapp.ranking import recipes
from searchapp.runs.directory import require_writable
from searchapp.tasks import SAMPLE, folders, load
from searchapp.tasks.base import Task
from searchapp.text import counted
from searchapp.tui.kit.background import Post, in_background
from searchapp.tui.kit.dialogs import Choice, Choose, PathDialog, Picking
from searchapp.tui.kit.screen import KeyScreen

T = TypeVar("T")

# The program waits for this time for the removal of unfinished files.
LEAVING_SECONDS = 10.0

NOTHING_CHANGED = "nothing was changed"


class BackgroundJob:
    """Work in a thread, and the `Progress` of that work.

    Args:
        activity: what is done, such as "indexing"
        subject: with what, such as a task
        work: receives this progress
        then: receives the result of `work` in the screen's thread
        failed: receives its error, or `WorkStopped`
        post: calls a function in the screen's thread
        report: receives the progress in words there, and the latest notice
        state_if_stopped: returns what a stopped job leaves, as the end of a sentence
    """

    def __init__(
        self,
        activity: str,
        subject: str,
        work: Callable[[BackgroundJob], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
        post: Post,
        report: Callable[[str, str], object],
        state_if_stopped: Callable[[], str],
    ) -> None:
        self.subject = subject
        self.name = f"{activity} {subject}"
        self._state_if_stopped = state_if_stopped
        self.notice = ""
        self._progress = ""
        self._post = post
        self._report = report
        self._words = TextProgress(self._show_progress)
        self._stop = threading.Event()
        self._thread = in_background(self.name, lambda: work(self), then, failed, post)

    @property
    def stopped_words(self) -> str:
        """A sentence about the stopped job and what it leaves."""
        return f"{self.name} was stopped: {self._state_if_stopped()}"

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()

    def stop_and_wait(self) -> None:
        self.stop()
        self._thread.join(LEAVING_SECONDS)

    # In the thread

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        self._check_stop()
        with self._words.stage(label, total, in_bytes=in_bytes) as say:

            def advance(further: int) -> None:
                self._check_stop()
                say(further)

            yield advance

    def tell(self, notice: str) -> None:
        self._check_stop()
        self.notice = notice
        self._show()

    def _show_progress(self, words: str) -> None:
        self._progress = words
        self._show()

    def _show(self) -> None:
        self._post(lambda: self._report(self._progress, self.notice))

    def pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise WorkStopped


class HomeJobs:
    """Indexes, fetches and ranks, one job at a time.

    Args:
        home: the screen that asks and shows the progress
        settings: all settings
        post: calls a function in the screen's thread
        tell_news: shows sentences in a colour
        ended: called after each job
        made_run: called with the directory of a new run
    """

    def __init__(
        self,
        home: KeyScreen,
        settings: Settings,
        post: Post,
        tell_news: Callable[[Sequence[str], str], object],
        ended: Callable[[], object],
        made_run: Callable[[Path], object],
    ) -> None:
        self._home = home
        self._settings = settings
        self._post = post
        self._tell_news = tell_news
        self._ended = ended
        self._made_run = made_run
        self.job: BackgroundJob | None = None
        # The last typed path by question.
        self._typed_paths: dict[str, str] = {}

    def stop(self) -> None:
        if (job := self.job) is not None:
            job.stop()
            self._home.head.show_state(f"{job.name}: stopping …", "$warning", holds=lambda: self.job is job)

    def _start(
        self,
        activity: str,
        subject: str,
        work: Callable[[BackgroundJob], T],
        then: Callable[[T], object],
        state_if_stopped: Callable[[], str] = lambda: NOTHING_CHANGED,
    ) -> None:
        if self._is_busy():
            return

        def done(result: T) -> None:
            self.job = None
            self._home.head.clear_ended()
            then(result)
            self._ended()

        def failed(error: Exception) -> None:
            self.job = None
            self._home.head.clear_ended()
            if isinstance(error, WorkStopped):
                self._tell_news([job.stopped_words], "$warning")
            else:
                self._home.tell_error(error)
            self._ended()

        self.job = job = BackgroundJob(
            *(activity, subject, work, done, failed, self._post, self._report, state_if_stopped)
        )

    def _is_busy(self) -> bool:
        if self.job is None:
            return False
        stop = self._home.keys.shown("clear")
        words = f"{self.job.name} is not finished: {stop} stops it"
        self._home.head.tell(words, "$warning", holds=lambda: self.job is not None)
        return True

    def _report(self, words: str, notice: str) -> None:
        job = self.job
        if job is not None and not job.is_stopping:
            stop = self._home.keys.shown("clear")
            progress = f"{job.subject}: {words}   {stop} stops it   {notice}".rstrip()
            self._home.head.show_state(progress, "$primary", holds=lambda: self.job is job)

    def _ask(self, question: str, yes: Callable[[], object]) -> None:
        self._home.when_in_front(lambda: self._home.ask(question, yes))

    def _ask_path(
        self,
        question: str,
        action: str,
        prepare: Callable[[str], Callable[[], object]],
        suffix: str = "",
        default: str = "",
    ) -> None:
        """Ask for a path; begin with the last answer, which may have been wrong."""

        def prepare_or_explain(words: str) -> Callable[[], object]:
            self._typed_paths[question] = words
            try:
                return prepare(words)
            except OSError as error:  # the system may reject a long name
                raise DataError(f"{words} can't be read: {reason(error)}") from error

        initial = self._typed_paths.get(question, default)
        dialog = PathDialog(question, prepare_or_explain, action, suffix=suffix, initial=initial)
        self._home.app.push_screen(dialog, lambda start: start() if start is not None else None)

    # Indexing

    def index(self, state: TaskState) -> None:
        if self._is_busy():
            return
        task, sample = state.task, state.sample
        ways: list[tuple[str, str, Callable[[], object]]] = []
        if state.has_files:
            ways.append(("d", f"Its files in {state.folder}", lambda: self._index(task, state.folder)))
        if sample is not None:
            of_sample = load(f"{task.name}{SAMPLE}")
            about = f"The bundled sample, as the task {of_sample.name}"
            ways.append(("s", about, lambda: self._index(of_sample, sample)))
        if task.info.folder is None:
            ways.append(("f", "Another folder with its files", lambda: self._ask_folder(task)))
        acts = {key: act for key, _about, act in ways}
        question = f"Index {task.name} from which source?"
        if state.index is not None:
            question += (
                f" The present index ({counted(state.index.documents, 'document')}) stays live until then."
            )

        def answer(key: str | None) -> None:
            if key is not None:
                acts[key]()

        self._home.app.push_screen(Choose(question, [(key, about) for key, about, _act in ways]), answer)

    def index_own_task(self) -> None:
        if self._is_busy():
            return

        def prepare(words: str) -> Callable[[], object]:
            path = _path(words)
            if path.suffix.lower() != ".toml":
                raise UsageError(f"{path} is not a task file: its name must end in .toml")
            task = load(str(path))
            return lambda: self._index(task, path.parent)

        self._ask_path("The TOML file of your own task", "index", prepare, ".toml")

    def _ask_folder(self, task: Task) -> None:
        def prepare(words: str) -> Callable[[], object]:
            folder = _path(words)
            if not folder.is_dir():
                raise UsageError(f"there is no folder {folder}")
            return lambda: self._index(task, folder, remember=True)

        self._ask_path(f"The folder with the official files of {task.name}", "index", prepare)

    def _index(self, task: Task, folder: Path, *, remember: bool = False, replace: bool = False) -> None:
        """Index a task; without `replace`, ask before replacing other documents."""

        def work(job: BackgroundJob) -> Sequence[str] | OtherDocuments:
            collection = task.collection(folder)
            with closing(open_engine(self._settings, no_notice)) as engine:
                try:
                    outcome = index_task(task, engine, collection, job, replace=replace)
                except OtherDocuments as error:
                    return error
            sentences = list(outcome_sentences(task, collection, outcome))
            if remember:
                try:
                    folders.remember(task, self._settings.home, folder)
                except SearchappError as error:
                    sentences.append(f"the folder was not remembered: {error}")
            return sentences

        def then(result: Sequence[str] | OtherDocuments) -> None:
            if isinstance(result, OtherDocuments):
                question = f"{result.finding}. Replace the index with these documents?"
                self._ask(question, lambda: self._index(task, folder, remember=remember, replace=True))
            else:
                self._tell_news(result, "$success")

        self._start("indexing", task.name, work, then)

    # Fetching

    def fetch(self, state: TaskState) -> None:
        task = state.task
        folder = folders.download_folder(task.name, self._settings.home)

        def look_up(job: BackgroundJob) -> tuple[Plan, Mapping[Download, int], Sequence[tuple[str, str]]]:
            if task.info.file is not None:
                raise UsageError(f"{task.name} is a task of your own: its files can't be fetched")
            with job.stage("looking up sizes"), self._downloader(job) as downloader:
                plan = make_plan(sources.load(task.name), folder)
                sizes = downloader.sizes(plan.downloads)
                return plan, sizes, plan_facts(plan, downloader, sizes)

        def ask(found: tuple[Plan, Mapping[Download, int], Sequence[tuple[str, str]]]) -> None:
            plan, sizes, facts = found
            if plan.downloads:
                lines = [f"Fetch the files of {task.name} and accept their terms?", ""]
                lines += [f"{name:<8} {value}" for name, value in facts]
                self._ask("\n".join(lines), lambda: self._fetch(state, plan, sizes))
            else:
                self._use_fetched(state, folder)
                self._tell_news([f"{task.name}: all official files are already in {folder}"], "$success")

        self._start("looking up the files of", task.name, look_up, ask)

    def _fetch(self, state: TaskState, plan: Plan, sizes: Mapping[Download, int]) -> None:
        task, folder = state.task, plan.folder

        def work(job: BackgroundJob) -> int:
            with self._downloader(job) as downloader:
                return len(fetch(plan, downloader, sizes, job, job.tell))

        def then(count: int) -> None:
            self._use_fetched(state, folder)
            index = self._home.keys.shown("index")
            words = f"{task.name}: fetched {counted(count, 'file')} into {folder}"
            self._tell_news([words, f"{index} indexes them"], "$success")

        def state_if_stopped() -> str:
            received, again = kept_bytes(folder), self._home.keys.shown("fetch")
            return f"kept {byte_count(received)}, {again} resumes" if received else NOTHING_CHANGED

        self._start("fetching", task.name, work, then, state_if_stopped)

    @contextmanager
    def _downloader(self, job: BackgroundJob) -> Iterator[Downloader]:
        with closing(Downloader(self._settings.data_mirror, job.tell, job.pause)) as downloader:
            yield downloader

    def _use_fetched(self, state: TaskState, folder: Path) -> None:
        """Make the fetched files the task's, unless it has files in a folder of the user's."""
        if not state.has_files and state.folder != folder:
            with suppress(SearchappError):  # `index` can still be given the folder
                folders.remember(state.task, self._settings.home, folder)

    # Ranking

    def rank(self, state: TaskState) -> None:
        task = state.task

        def look_up(job: BackgroundJob) -> _RankOptions:
            with job.stage("reading topics"):
                with closing(open_engine(self._settings, no_notice)) as engine:
                    open_index(task, engine)
                folder = state.files or folders.require_data(task, self._settings.home)
                return _rank_options(task, folder)

        def ask(options: _RankOptions) -> None:
            self._home.when_in_front(lambda: self._choose_split(task, options))

        self._start("reading the topics of", task.name, look_up, ask)

    def _choose_split(self, task: Task, options: _RankOptions) -> None:
        splits = list(options.topics)
        choices = [Choice(split, counted(count, "topic")) for split, count in options.topics.items()]
        chosen = splits.index(options.usual_split) if options.usual_split in splits else 0
        dialog = Picking(f"Rank which split of {task.name}?", choices, chosen)
        self._home.pick(dialog, lambda index: self._choose_recipe(task, options, splits[index]))

    def _choose_recipe(self, task: Task, options: _RankOptions, split: str) -> None:
        names = [choice.name for choice in options.recipes]
        chosen = names.index(task.info.default_recipe) if task.info.default_recipe in names else 0
        dialog = Picking(f"Rank {task.name} {split} with which recipe?", options.recipes, chosen)
        self._home.pick(dialog, lambda index: self._ask_run(task, options.folder, split, names[index]))

    def _ask_run(self, task: Task, folder: Path, split: str, recipe: str) -> None:
        question = f"The directory of the run of {task.name} {split} with {recipe}"

        def start(out: Path, *, overwrite: bool = False) -> None:
            self._typed_paths.pop(question, None)
            self._rank(task, folder, split, recipe, out, overwrite=overwrite)

        def prepare(words: str) -> Callable[[], object]:
            out = _path(words)
            require_writable(out, overwrite=True)
            if not out.exists():
                return lambda: start(out)
            words = f"{out} is a run already. Replace it?"
            return lambda: self._ask(words, lambda: start(out, overwrite=True))

        name = re.sub(r"[^\w.-]+", "-", f"{task.name}-{split}-{recipe}")
        self._ask_path(question, "rank", prepare, default=str(_unused(self._settings.home / RUNS / name)))

    def _rank(self, task: Task, folder: Path, split: str, recipe: str, out: Path, *, overwrite: bool) -> None:
        def work(job: BackgroundJob) -> NewRun:
            request = RunRequest(
                collection=task.collection(folder),
                split=split,
                recipe=recipes.load(task.recipe_book(), recipe),
                depth=task.info.default_depth,
                tag=f"searchapp-{recipe}",
                home=self._settings.home,
                reranking=Reranking.of(self._settings),
            )
            with closing(open_engine(self._settings, job.tell)) as engine:
                made = make_run(task, engine, request, out, job, overwrite=overwrite)
            remember_run(self._settings.home, out)
            return made

        def then(made: NewRun) -> None:
            self._tell_news([made.summary(out), *made.all_warnings()], "$success")
            self._made_run(out)

        self._start("ranking", f"{task.name} {split}", work, then, lambda: "no run was written")


@dataclass(frozen=True, slots=True)
class _RankOptions:
    folder: Path
    # The numbers of topics of the splits that have some.
    topics: Mapping[str, int]
    usual_split: str
    recipes: Sequence[Choice]


def _rank_options(task: Task, folder: Path) -> _RankOptions:
    """Return the splits and recipes of a task with files in `folder`.

    Raises:
        DataError: there are no topics.
    """
    collection = task.collection(folder)
    topics = {split: count for split, count in look_into(task, folder).topics.items() if count}
    if not topics:
        split, problems = task.info.splits[0], Problems()
        collection.topics(split, problems)
        problems.raise_if_any()
        raise DataError(f"{folder}: the split {split} has no topics to rank")
    usual = ""
    with suppress(DataError):
        usual = usual_split(task, collection)
    book = task.recipe_book()
    choices = [Choice(name, str(book.recipes[name].get("about", ""))) for name in recipes.names(book)]
    return _RankOptions(folder, topics, usual, choices)


def _unused(path: Path) -> Path:
    candidate, number = path, 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _path(words: str) -> Path:
    try:
        return Path(words).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"{words} can't be found: no user on this machine has this name") from error
