"""Open a judging session on a run, and exchange judgments with a team that shares a cluster."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from searchapp.app.inspection.pages import RunPages
from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_judgments
from searchapp.errors import DataError, EngineError, UsageError
from searchapp.judging.events import Author
from searchapp.judging.judgments import Aggregation, aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import JudgingSession, Session
from searchapp.judging.team import Exchanged, Synchronizer, synchronize
from searchapp.judging.view import open_view
from searchapp.progress import Notify
from searchapp.tasks.base import Grades
from searchapp.text import counted

PATIENCE_SECONDS = 2.0  # how long a key waits for other writers of the log before its judgment is queued


def usual_depth(run_pages: RunPages) -> int | None:
    """Return how many documents of each ranking are judged by default, None for all, as in a pool."""
    return None if run_pages.is_pool else run_pages.task.info.judging_depth


def grading_session(stack: ExitStack, log: Path, task: str, annotator: str | None) -> Session:
    """Open a session on a log, which `stack` closes.

    Raises:
        UsageError: the annotator is unknown.
        SearchappError: the log can't be opened.
    """
    opened_log = stack.enter_context(JudgmentLog(log, PATIENCE_SECONDS))
    return Session(opened_log, task, Author(annotator_name(annotator)))


def judging_session(
    session: Session,
    run_pages: RunPages,
    topics: Sequence[str],
    depth: int | None,
    seed: int | None = None,
    *,
    unscored: bool = False,
    show_others: bool = False,
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
        require=run_pages.require_as_ranked,
    )


def judged_by_now(log: Path, task: str, aggregation: Aggregation | None = None) -> Grades:
    """Return the present grades of a task's documents in a log, if there is one.

    Raises:
        SearchappError: the log can't be read.
    """
    if not log.exists():
        return {}
    with JudgmentLog(log) as opened:
        return aggregate(open_view(opened, task), aggregation).grades


def annotator_name(given: str | None) -> str:
    """Return the given name of the annotator, or the name of the account.

    Raises:
        UsageError: there is neither.
    """
    try:
        name = (given or getpass.getuser()).strip()
    except (OSError, KeyError):
        name = ""
    if not name:
        raise UsageError("no annotator: give your name with --annotator NAME")
    return name


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
