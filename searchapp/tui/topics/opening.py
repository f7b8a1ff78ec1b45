"""Makes the screen of topics, for the command line and for other screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.app.open_topics import TopicsRequest
from searchapp.app.topic_figures import Order
from searchapp.app.topics import RunTopics
from searchapp.judging.session import Session
from searchapp.settings import Settings
from searchapp.tasks.base import Task
from searchapp.tui.topics import actions
from searchapp.tui.topics.parts import Opened
from searchapp.tui.topics.screen import TopicsScreen


def topics_screen(
    topics: RunTopics,
    request: TopicsRequest,
    settings: Settings,
    session: Callable[[], Session],
    start: str | None = None,
    order: Order = Order.file,
    *,
    failing: bool = False,
) -> TopicsScreen:
    """The screen of the topics that a request has opened.

    `session` opens that of whoever judges there, if somebody does. `start` is the topic to begin with; with `failing`
    only topics are listed that something is wrong with.

    Raises:
        UsageError: there is no topic `start`, or none at all.
        DataError: the settings file gives the screen's keys what they can't be.
    """
    topics.require(start)
    keys = actions.load(settings.of_user, topics.task.info.grades).keys
    again = command(topics.task, request)
    return TopicsScreen(Opened(topics, title(topics), session, again, start, order, failing), keys)


def title(topics: RunTopics) -> str:
    """What the first line calls the topics of a run."""
    pages = topics.pages
    name, _at, _digest = pages.name.rpartition("@")
    return f"{topics.task.name} {pages.split or ''} · {name or pages.name}"


def command(task: Task, request: TopicsRequest) -> Sequence[str]:
    """The command that opens the same screen, up to the topic."""
    options = {
        "--run": request.run,
        "--recipe": request.recipe,
        "--split": request.split,
        "--data": request.data,
        "--depth": request.depth,
    }
    given = [str(one) for name, value in options.items() if value is not None for one in (name, value)]
    return ("searchapp", "topics", task.reference, *given)
