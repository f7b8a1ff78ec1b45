"""Who judges, how a session of judging is opened on a run, and what a log says by now."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from searchapp.app.run_pages import RunPages
from searchapp.errors import UsageError
from searchapp.judging.events import Author
from searchapp.judging.fold import Folding, View, judged
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.judging.snapshot import compact
from searchapp.tasks.base import Grades

PATIENCE_SECONDS = 2.0
"""How long a key waits for another process that writes the log, before its judgment waits instead."""


def usual_depth(run_pages: RunPages) -> int | None:
    """How many documents of each ranking are judged where nobody says it; None for all, as of a pool."""
    return None if run_pages.is_pool else run_pages.task.info.judging_depth


def grading_session(held: ExitStack, log: Path, task: str, annotator: str | None) -> Session:
    """A session of whoever grades what a screen shows; its log is closed with `held`.

    Raises:
        UsageError: nobody knows who judges.
        SearchappError: the log can't be opened.
    """
    opened = held.enter_context(JudgmentLog(log, PATIENCE_SECONDS))
    return Session(opened, task, Author(annotator_name(annotator)))


def judging_session(
    session: Session,
    run_pages: RunPages,
    topics: Sequence[str],
    depth: int | None,
    seed: int | None = None,
    *,
    unscored: bool = False,
    see_others: bool = False,
) -> JudgingSession:
    """A session on `depth` documents of each of some topics of a run, `unscored` ones too.

    With a `seed` the annotator judges blind, in an order that follows from it.
    """
    return JudgingSession(
        session,
        topics,
        run_pages.ranking,
        run_pages.rankings.length if unscored else lambda topic: run_pages.scored(topic, depth),
        run_pages.name,
        depth,
        seed,
        see_others=see_others,
    )


def judged_by_now(log: Path, task: str, folding: Folding | None = None) -> Grades:
    """The grades that people have given documents of a task, as a log has them now; none where there is no log.

    Raises:
        SearchappError: the log can't be read.
    """
    if not log.exists():
        return {}
    with JudgmentLog(log) as opened:
        return judged(View(base=compact(opened, task)), folding).grades


def annotator_name(given: str | None) -> str:
    """Who judges: the name that was given, or that of the account.

    Raises:
        UsageError: there is neither.
    """
    try:
        name = (given or getpass.getuser()).strip()
    except (OSError, KeyError):
        name = ""
    if not name:
        raise UsageError("who judges? Name the annotator with --annotator NAME")
    return name
