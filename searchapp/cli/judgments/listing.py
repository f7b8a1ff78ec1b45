"""`searchapp judgments list`: what was said of which document."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.judgments.options import LogOption, of_task, open_log, require_known
from searchapp.cli.judgments.tables import print_table
from searchapp.cli.output import print_json, say
from searchapp.errors import UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.judging.listing import ListedJudgment


class What(StrEnum):
    """What can be said of a document, as it is named on the command line."""

    grade = "grade"
    skip = "skip"
    cant_tell = "cant_tell"
    note = "note"
    adjudicate = "adjudicate"


def register(group: typer.Typer) -> None:
    """Add the command."""

    @command(group, "list")
    def list_(
        settings: Settings,
        task: TaskArgument,
        annotator: Annotated[
            list[str] | None,
            typer.Option(
                help="Only this annotator, a model too; can be given several times.",
                show_default="everybody",
                autocompletion=complete.annotators,
            ),
        ] = None,
        topic: Annotated[
            list[str] | None,
            typer.Option(help="Only this topic; can be given several times.", show_default="all"),
        ] = None,
        action: Annotated[
            list[What] | None,
            typer.Option(
                help="Only grades, skips, “can't tell”, mere notes, or decisions; can be given several times.",
                show_default="all",
            ),
        ] = None,
        grade: Annotated[
            list[int] | None,
            typer.Option(min=0, help="Only this grade; can be given several times.", show_default="all"),
        ] = None,
        noted: Annotated[bool, typer.Option("--noted", help="Only what has a note or a reason.")] = False,
        log: LogOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """List the judgments that hold: annotator, topic, document, grade, reason and time.

        Judgments that were undone or replaced are not listed; `judgments export` has every event.
        """
        from searchapp.judging.events import Action
        from searchapp.judging.listing import Filter, listed
        from searchapp.tasks import load

        loaded = load(task)
        for one in grade or ():
            if one >= len(loaded.info.grades):
                raise UsageError(
                    f"{loaded.name} has the grades 0 to {len(loaded.info.grades) - 1}, not {one}"
                )
        with open_log(settings, log, loaded.name) as opened:
            _, view = of_task(opened, loaded.name)
            require_known(annotator, view, loaded.name)
            actions = None if action is None else [Action(one.value) for one in action]
            found = listed(view, Filter(annotator, topic, actions, grade, noted))
        if as_json:
            print_json({"task": loaded.name, "judgments": [asdict(one) for one in found]})
        elif found:
            _print(found, loaded.info.grades)
        say(settings, f"{len(found):,} listed")


def _print(found: Sequence[ListedJudgment], labels: Sequence[str]) -> None:
    from datetime import UTC, datetime

    from searchapp.judging.events import Action
    from searchapp.judging.words import said_of

    def what(said: ListedJudgment) -> str:
        words = said_of(said.action, said.grade, labels)
        return f"decided {words}" if said.action is Action.adjudicate else words

    rows = (
        (
            f"{datetime.fromisoformat(one.time).astimezone(UTC):%Y-%m-%d %H:%M}",
            one.annotator if one.kind.value == "person" else f"{one.annotator} (a model)",
            one.topic_id,
            one.document_id,
            what(one),
            "" if one.rank is None else str(one.rank),
            one.words,
        )
        for one in found
    )
    print_table(
        ("when (UTC)", "annotator", "topic", "document", "says", "rank", "note"), rows, (0, 1, 2, 3, 4, 6)
    )
