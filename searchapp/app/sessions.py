"""Open a judging session on a run, and exchange judgments with a team that shares a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from searchapp.app.inspection.pages import LocalFirst, RunPages, require_topic
from searchapp.app.inspection.topics import TopicsRequest, open_now
from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_judgments
from searchapp.errors import DataError, EngineError
from searchapp.judging.assignment import Assigned
from searchapp.judging.events import Author, annotator_name
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.judgments import Aggregation, aggregate
from searchapp.judging.log import JudgmentLog, Presence
from searchapp.judging.session import JudgingSession, Session
from searchapp.judging.team import Exchanged, Synchronizer, synchronize
from searchapp.judging.view import open_view
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Notify, Progress
from searchapp.tasks.base import Grades, Task
from searchapp.text import counted

PATIENCE_SECONDS = 2.0  # how long a key waits for other writers of the log before its judgment is queued


def usual_depth(run_pages: RunPages) -> int | None:
    """Return how many documents of each ranking are judged by default, None for all, as in a pool."""
    return None if run_pages.is_pool else run_pages.task.info.judging_depth


def grading_session(stack: ExitStack, log: Path, task: Task, annotator: str | None) -> Session:
    """Open a session on a log, which `stack` closes.

    Raises:
        UsageError: the annotator is unknown.
        SearchappError: the log can't be opened.
    """
    opened_log = stack.enter_context(JudgmentLog(log, PATIENCE_SECONDS))
    guidelines = read_guidelines(task.info.guidelines)
    return Session(opened_log, task.name, Author(annotator_name(annotator)), guidelines=guidelines)


def judging_session(
    session: Session,
    run_pages: RunPages,
    topics: Sequence[str],
    depth: int | None,
    seed: int | None = None,
    *,
    unscored: bool = False,
    show_others: bool = False,
    hide_ranks: bool = False,
) -> JudgingSession:
    """Return a session on `depth` documents of each topic of a run, with a `seed` a blind one."""
    return JudgingSession(
        session,
        topics,
        run_pages.ranking,
        run_pages.rankings.length if unscored else lambda topic: run_pages.scored(topic, depth),
        run_pages.name,
        depth,
        seed,
        show_others=show_others,
        hide_ranks=hide_ranks or run_pages.is_pool,
        require=run_pages.require_as_ranked,
    )


@dataclass(frozen=True, slots=True)
class JudgingRequest:
    """Topics to judge, and how."""

    task: Task
    author: Author
    run: Path | None = None  # run directory or TREC run; without one, `recipe` ranks now
    recipe: str | None = None
    split: str | None = None
    data: Path | None = None
    assigned: Assigned | None = None  # the topics of the author, if not all
    topic: str | None = None  # the first one to show
    depth: int | None = None  # documents with a score per topic, by default the usual number
    every_document: bool = False  # instead of `depth`
    seed: int | None = None  # the order of a blind session
    show_others: bool = False
    log: Path | None = None  # the log of judgments, if it is not the usual one
    shared: bool = False  # exchange judgments with a team


class OpenedJudging(NamedTuple):
    """An open session."""

    judging: JudgingSession
    pages: RunPages
    title: str
    presence: Presence


@contextmanager
def open_judging(
    request: JudgingRequest, settings: Settings, progress: Progress, warn: Notify, say: Notify
) -> Iterator[OpenedJudging]:
    """Open the pages of a run, and a session on its topics; afterwards `warn` gets its news.

    Args:
        request: the topics
        settings: the engine and the home directory
        progress: receives the stages of the work
        warn: receives warnings
        say: receives the result of an exchange with the team

    Raises:
        UsageError: the run, a topic or a split does not exist.
        DataError: a file is invalid.
        EngineError: the documents cannot be read.
    """
    task, name, run, split = request.task, request.author.annotator, request.run, request.split
    guidelines = read_guidelines(task.info.guidelines)
    with ExitStack() as stack:
        documents = LocalFirst(settings, progress, warn, copy=request.shared)
        stack.enter_context(closing(documents))
        log = stack.enter_context(JudgmentLog(request.log or settings.judgments, PATIENCE_SECONDS, warn))
        synchronizer = None
        if request.shared:
            synchronizer = stack.enter_context(team(settings, log, task.name, say, warn))
        presence = stack.enter_context(Presence(log.path, task.name, name))
        # A run directory has its split; for a TREC run, the assignment has it.
        if request.assigned is not None and (run is None or run.is_file()):
            split = split or request.assigned.split
        if run is None:
            ranked = TopicsRequest(recipe=request.recipe, split=split, data=request.data, depth=request.depth)
            pages, _ = open_now(stack, task, ranked, settings, progress, documents)
        else:
            pages = RunPages.open(task, documents, run, request.data, home=settings.home, split=split)
        topics = pages.topics
        title = f"{task.name} {pages.split or pages.name} · {name}"
        if request.assigned is not None:
            topics = request.assigned.topics_in(task.name, pages.split or "", topics, name)
            title += f" · {len(topics):,} assigned"
        require_topic(pages, topics, request.topic)
        for note in pages.notes:
            warn(note)
        judging = judging_session(
            Session(log, task.name, request.author, guidelines=guidelines),
            pages,
            topics,
            request.depth or (None if request.every_document else usual_depth(pages)),
            request.seed,
            unscored=request.every_document,
            show_others=request.show_others,
            hide_ranks=request.assigned is not None,
        )
        judging.session.synchronizer = synchronizer
        log.damage.report = judging.session.news.append
        yield OpenedJudging(judging, pages, title, presence)
        log.damage.report = warn
        for news in (*judging.session.news, *pages.news):
            warn(news)


def judged_by_now(log: Path, task: str, aggregation: Aggregation | None = None) -> Grades:
    """Return the present grades of a task's documents in a log, if there is one.

    Raises:
        SearchappError: the log can't be read.
    """
    if not log.exists():
        return {}
    with JudgmentLog(log) as opened:
        return aggregate(open_view(opened, task), aggregation).grades


FIRST_SECONDS = 5.0  # how long judging waits at first for the judgments of others
# How long leaving waits for a running exchange, and then for the answer to each request.
LEAVING_SECONDS = 2.0
TIMEOUT_SECONDS = 10.0  # how long a server may take for one request while the user may be waiting


def exchange(
    settings: Settings,
    log: JudgmentLog,
    task: str | None = None,
    *,
    attempts: int = 3,
    timeout: float = TIMEOUT_SECONDS,
) -> Exchanged:
    """Send judgments that the cluster lacks, of all tasks or one, and fetch judgments that the log lacks.

    Raises:
        UsageError: the engine is no cluster.
        EngineError: the cluster does not answer, or rejects; the message has the number of waiting judgments.
        DataError: both have different judgments of the same id.
    """
    address = judgments_address(settings)
    try:
        with closing(open_judgments(settings, attempts, timeout)) as index:
            return synchronize(log, index, task)
    except EngineError as error:
        raise type(error)(f"{error}; {_waiting_sentence(log, log.waiting(address, task))}") from error


def _waiting_sentence(log: JudgmentLog, waiting: int) -> str:
    return f"{counted(waiting, 'unsent judgment')} in {log.path}: send with `searchapp judgments sync`"


def exchange_if_possible(
    settings: Settings,
    log: JudgmentLog,
    task: str,
    warn: Notify,
    *,
    attempts: int = 3,
    timeout: float = TIMEOUT_SECONDS,
) -> bool:
    """Exchange judgments, or warn that it failed; return whether it succeeded."""
    try:
        exchange(settings, log, task, attempts=attempts, timeout=timeout)
    except (EngineError, DataError) as error:
        warn(str(error))
        return False
    return True


@contextmanager
def team(
    settings: Settings, log: JudgmentLog, task: str, say: Notify, warn: Notify
) -> Iterator[Synchronizer]:
    """Exchange judgments of one task before, during and after judging.

    Raises:
        UsageError: the engine is no cluster.
    """
    address = judgments_address(settings)
    synchronizer = Synchronizer(
        log.path, lambda: open_judgments(settings, attempts=1, timeout=TIMEOUT_SECONDS), address, task
    )
    if not synchronizer.start(FIRST_SECONDS):
        warn(
            f"{address} has not answered yet: you begin without the latest judgments of others; your "
            f"judgments are saved in {log.path} and sent when the server answers"
        )
    elif synchronizer.trouble is not None:
        warn(
            f"{synchronizer.trouble}; you can continue: your judgments are saved in {log.path} and sent later"
        )
    try:
        yield synchronizer
    finally:
        synchronizer.stop(LEAVING_SECONDS)
        if not log.waiting(address, task) or exchange_if_possible(
            settings, log, task, warn, attempts=1, timeout=LEAVING_SECONDS
        ):
            say(f"all judgments are shared at {address}")
        if others := log.waiting(address) - log.waiting(address, task):
            unsent = counted(others, "unsent judgment")
            say(f"{unsent} of other tasks: send with `searchapp judgments sync`")


@contextmanager
def exchanging(settings: Settings, log: JudgmentLog, task: str, warn: Notify) -> Iterator[None]:
    """Exchange judgments of a task before and after an operation.

    Raises:
        UsageError: the engine is no cluster.
    """
    address = judgments_address(settings)
    exchange_if_possible(settings, log, task, warn)
    before = log.waiting(address, task)
    yield
    if log.waiting(address, task) > before:
        exchange_if_possible(settings, log, task, warn)
