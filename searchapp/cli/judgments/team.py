"""How the commands share judgments through a cluster, see `searchapp.app.exchange`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.output import say, warn
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.judging.log import JudgmentLog
    from searchapp.judging.shared import Synchronizer

SharedOption = Annotated[
    bool | None,
    typer.Option(
        "--shared/--no-shared",
        help="Exchange judgments with everybody who uses the same Elasticsearch; default: SEARCHAPP_SHARED.",
        show_default=False,
    ),
]


@contextmanager
def team(settings: Settings, log: JudgmentLog, task: str, shared: bool) -> Iterator[Synchronizer | None]:
    """Exchange judgments before, while and after somebody judges a task; None when they are not shared.

    Raises:
        UsageError: they are to be shared, and the engine is no cluster.
    """
    from searchapp.app.exchange import team as together

    if not shared:
        yield None
        return
    with together(settings, log, task, lambda sentence: say(settings, sentence), warn) as synchronizer:
        yield synchronizer


@contextmanager
def exchanging(settings: Settings, log: JudgmentLog, task: str) -> Iterator[None]:
    """Exchange judgments of a task before a command, and what it writes after it.

    Raises:
        UsageError: the engine is no cluster.
    """
    from searchapp.app.exchange import exchanging as around

    with around(settings, log, task, warn):
        yield
