"""What the commands on judgments share."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.judgments.team import exchanging
from searchapp.cli.output import warn
from searchapp.names import meant
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from searchapp.judging.compact import Compact
    from searchapp.judging.events import Event
    from searchapp.judging.fold import View
    from searchapp.judging.log import JudgmentLog

LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log", help="File with the judgments.", show_default="judgments.sqlite in searchapp's folder"
    ),
]
AnnotatorOption = Annotated[
    str | None,
    typer.Option(
        help="Name of the annotator; by default SEARCHAPP_ANNOTATOR, or that of the account.",
        show_default=False,
        autocompletion=complete.annotators,
    ),
]
RankNowOption = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="Recipe to rank with, without a run: see `searchapp tasks show TASK`.",
        show_default="the task's own",
        autocompletion=complete.recipes,
    ),
]
AnnotatorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotator",
        help="Only what this annotator says, a model too, and decides; can be given several times. All people by "
        "default, and every decision.",
        show_default=False,
        autocompletion=complete.annotators,
    ),
]


def require_log(settings: Settings, path: Path | None) -> Path:
    """The file with the judgments: the one that is named, or the one in searchapp's folder.

    Raises:
        DataError: it is not there.
    """
    from searchapp.errors import DataError

    path = path or settings.judgments
    if not path.exists():
        raise DataError(f"{path}: there are no judgments yet: `searchapp judge` makes the first")
    return path


@contextmanager
def open_log(
    settings: Settings,
    path: Path | None,
    task: str,
    *,
    must_exist: bool = True,
    patience: float | None = None,
) -> Iterator[JudgmentLog]:
    """The log in a file, or in searchapp's folder, to be closed at the end; `patience` is that of the log.

    When SEARCHAPP_SHARED says that judgments are shared, the one in searchapp's folder takes in what others have
    written before, and sends what has been written here of the task afterwards.

    Raises:
        DataError: there is none although there must be.
    """
    from searchapp.judging.event_log import BUSY_SECONDS
    from searchapp.judging.log import JudgmentLog

    shared = settings.shared and path is None
    path = require_log(settings, path) if must_exist and not shared else path or settings.judgments
    with closing(JudgmentLog(path, BUSY_SECONDS if patience is None else patience, warn)) as log:
        if shared:
            with exchanging(settings, log, task):
                yield log
        else:
            yield log


def of_task(log: JudgmentLog, task: str) -> tuple[Compact, View]:
    """What the events of a task add up to, by numbers and to look at; as long as the log is open.

    Raises:
        DataError: there is none.
    """
    from searchapp.errors import DataError
    from searchapp.judging.fold import View
    from searchapp.judging.snapshot import compact

    folded = compact(log, task)
    if not folded.count:
        raise DataError(f"{log.path} has no judgments of {task}: `searchapp judge {task}` makes the first")
    return folded, View(base=folded)


def events_of(log: JudgmentLog, task: str) -> list[Event]:
    """The events of a task in their order, which is the same in every log that has them."""
    return sorted((event for _, event in log.events(task)), key=lambda event: event.order)


def name_of(task: str) -> str:
    """The name under which a task's judgments are in the log, whether it was named or its file was.

    Raises:
        UsageError: there is no such task.
    """
    from searchapp.tasks import load

    return load(task).name


def require_known(annotators: Collection[str] | None, view: View, task: str) -> None:
    """Refuse names of annotators who have judged nothing of a task.

    Raises:
        UsageError: with the names that there are.
    """
    from searchapp.errors import UsageError

    known = view.annotators()
    for name in annotators or ():
        if name not in known:
            named = f"{name!r}{meant(name, known)}"
            raise UsageError(f"no annotator {named} has judged {task}: there are {', '.join(known)}")
