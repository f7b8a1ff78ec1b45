"""What the commands on judgments share."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection

    from searchapp.judging.events import Event
    from searchapp.judging.fold import View
    from searchapp.judging.log import JudgmentLog

LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log", help="File with the judgments.", show_default="judgments.sqlite in searchapp's folder"
    ),
]
AnnotatorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotator",
        help="Only this annotator, a model too; can be given several times. All people by default.",
        show_default=False,
    ),
]


def open_log(settings: Settings, path: Path | None, *, must_exist: bool = True) -> closing[JudgmentLog]:
    """The log in a file, or in searchapp's folder, to be closed at the end.

    Raises:
        DataError: there is none although there must be.
    """
    from searchapp.errors import DataError
    from searchapp.judging.log import JudgmentLog

    path = path or settings.judgments
    if must_exist and not path.exists():
        raise DataError(f"{path}: there are no judgments yet: `searchapp judge` makes the first")
    return closing(JudgmentLog(path))


def of_task(log: JudgmentLog, task: str) -> tuple[list[Event], View]:
    """The events of a task in their order, which is the same in every log that has them, and what they add up to.

    Raises:
        DataError: there is none.
    """
    from searchapp.errors import DataError
    from searchapp.judging.fold import View

    events = sorted((event for _, event in log.events(task)), key=lambda event: event.order)
    if not events:
        raise DataError(f"{log.path} has no judgments of {task}: `searchapp judge {task}` makes the first")
    return events, View(events)


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
            raise UsageError(f"no annotator {name!r} has judged {task}: there are {', '.join(known)}")
