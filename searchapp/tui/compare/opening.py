"""Makes the compare screen, for the command line and for other screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchapp.app.comparing import Comparing
from searchapp.judging.session import Session
from searchapp.settings import Settings
from searchapp.tui.compare import actions
from searchapp.tui.compare.screen import CompareScreen, Opened


def compare_screen(
    comparing: Comparing, settings: Settings, session: Callable[[], Session], start: str | None = None
) -> CompareScreen:
    """The screen of runs beside each other.

    `session` opens that of whoever judges there, if somebody does. `start` is the topic to begin with.

    Raises:
        UsageError: there is no topic `start`, or none at all.
        DataError: the settings file gives the screen's keys what they can't be.
    """
    for topics in comparing.topics:
        topics.require(start)
    keys = actions.load(settings.of_user, comparing.topics[0].task.info.grades).keys
    return CompareScreen(Opened(comparing, session, command(comparing), start), keys)


def command(comparing: Comparing) -> Sequence[str]:
    """The command that opens the same screen, up to the topic."""
    request = comparing.request
    options = {"--baseline": request.baseline, "--data": request.source.data, "--depth": request.depth}
    given = [str(one) for name, value in options.items() if value is not None for one in (name, value)]
    given += [one for name in request.source.measures for one in ("--measure", name)]
    given += [str(one) for path in request.source.gold for one in ("--gold", path)]
    given += ["--anyway"] if request.anyway else []
    given += ["--judgments"] if comparing.follows else []
    return ("searchapp", "compare", *map(str, request.runs), "--screen", *given)
