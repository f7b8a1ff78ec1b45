"""Exchanges judgments with everybody who uses the same cluster: at once, or around something that is done with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from searchapp.engines import judgments_address, open_judgments
from searchapp.errors import DataError, EngineError
from searchapp.judging.log import JudgmentLog
from searchapp.judging.shared import Exchanged, Synchronizer, synchronize
from searchapp.progress import Notify
from searchapp.settings import Settings

FIRST_SECONDS = 5.0
"""How long judging waits at its beginning for what others have judged."""
LEAVING_SECONDS = 2.0
"""How many seconds leaving waits for an exchange that has begun, and then for an answer to each request."""
TIMEOUT_SECONDS = 10.0
"""How long a server may take for one request while somebody is, or may be, waiting."""


def exchange(
    settings: Settings,
    log: JudgmentLog,
    task: str | None = None,
    *,
    attempts: int = 3,
    timeout: float = TIMEOUT_SECONDS,
) -> Exchanged:
    """Send what the cluster does not have, of one task if it is named, and fetch what the log does not have.

    Raises:
        UsageError: the engine is no cluster.
        EngineError: the cluster is gone or refuses; what waits is reported.
        DataError: both have different judgments of the same id.
    """
    address = judgments_address(settings)
    try:
        with closing(open_judgments(settings, attempts, timeout)) as index:
            return synchronize(log, index, task)
    except EngineError as error:
        raise type(error)(f"{error}; {_kept(log, log.waiting(address, task))}") from error


def _kept(log: JudgmentLog, waiting: int) -> str:
    things = "1 judgment waits" if waiting == 1 else f"{waiting:,} judgments wait"
    return f"{things} in {log.path}: `searchapp judgments sync` sends what waits"


def exchange_if_possible(
    settings: Settings,
    log: JudgmentLog,
    task: str,
    warn: Notify,
    *,
    attempts: int = 3,
    timeout: float = TIMEOUT_SECONDS,
) -> bool:
    """The same, with a warning when it is not possible: what is there can be worked with all the same."""
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
    """Exchange judgments before, while and after somebody judges a task.

    A server that is away keeps nobody waiting: everything is in the log first.

    Judgments of other tasks stay where they are: nobody has asked to send them. `say` is called with what was done,
    `warn` with what could not be.

    Raises:
        UsageError: the engine is no cluster.
    """
    address = judgments_address(settings)
    synchronizer = Synchronizer(
        log.path, lambda: open_judgments(settings, attempts=1, timeout=TIMEOUT_SECONDS), address, task
    )
    if not synchronizer.start(FIRST_SECONDS):
        warn(
            f"{address} has not answered yet: judging begins without what others have judged since; what you judge "
            f"waits in {log.path}, and is exchanged when the server answers"
        )
    elif synchronizer.trouble is not None:
        warn(f"{synchronizer.trouble}; judging goes on, and what you judge waits in {log.path}")
    try:
        yield synchronizer
    finally:
        synchronizer.stop(LEAVING_SECONDS)
        if not log.waiting(address, task) or exchange_if_possible(
            settings, log, task, warn, attempts=1, timeout=LEAVING_SECONDS
        ):
            say(f"the team has them in {address}")
        if others := log.waiting(address) - log.waiting(address, task):
            things = (
                "1 judgment of another task stays"
                if others == 1
                else f"{others:,} judgments of other tasks stay"
            )
            say(f"{things} here: `searchapp judgments sync` sends all")


@contextmanager
def exchanging(settings: Settings, log: JudgmentLog, task: str, warn: Notify) -> Iterator[None]:
    """Exchange judgments of a task before something is done with them, and what that writes afterwards.

    Raises:
        UsageError: the engine is no cluster.
    """
    address = judgments_address(settings)
    exchange_if_possible(settings, log, task, warn)
    before = log.waiting(address, task)
    yield
    if log.waiting(address, task) > before:
        exchange_if_possible(settings, log, task, warn)
