"""`searchapp judgments adjudicate`: decide where annotators disagree."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, TaskArgument, command
from searchapp.cli.judgments.options import LogOption, of_task, open_log, require_known
from searchapp.cli.output import say, warn
from searchapp.cli.progress import for_person
from searchapp.cli.terminal import has_screen
from searchapp.errors import DataError, EngineError, UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.pages import Pages
    from searchapp.judging.session import Session
    from searchapp.model import Topic
    from searchapp.tasks.base import Task


def register(group: typer.Typer) -> None:
    """Add the command."""

    @command(group)
    def adjudicate(
        settings: Settings,
        task: TaskArgument,
        annotator: Annotated[
            str,
            typer.Option(
                help="Name of the annotator who decides.",
                show_default=False,
                autocompletion=complete.annotators,
            ),
        ],
        between: Annotated[
            list[str] | None,
            typer.Option(
                help="Only between this annotator and others named, a model too; can be given several times. "
                "All people by default.",
                show_default=False,
                autocompletion=complete.annotators,
            ),
        ] = None,
        run: Annotated[
            Path | None,
            typer.Option(
                help="Run directory, or TREC run: its topics, and what its recipe matches.",
                show_default=False,
                autocompletion=complete.runs,
            ),
        ] = None,
        data: DataOption = None,
        topic: Annotated[
            str | None, typer.Option(help="Decide on this topic only.", show_default=False)
        ] = None,
        document: Annotated[
            str | None, typer.Option(help="Decide on this document only.", show_default=False)
        ] = None,
        grade: Annotated[
            int | None,
            typer.Option(min=0, help="The deciding grade, without being asked.", show_default=False),
        ] = None,
        reason: Annotated[
            str, typer.Option(help="With --grade: why, for the record.", show_default=False)
        ] = "",
        log: LogOption = None,
        plain: Annotated[
            bool, typer.Option("--plain", help="Ordinary prompts, for screen readers and simple terminals.")
        ] = False,
    ) -> None:
        """Go through the documents that annotators disagree on, and write deciding events.

        One key decides, saves and moves on. With --topic, --document and --grade one decision is written without a
        question. Without a terminal there are prompts.
        """
        from searchapp.app.sessions import PATIENCE_SECONDS
        from searchapp.judging.disputes import Adjudication
        from searchapp.judging.events import Action, Author, Channel
        from searchapp.judging.presence import Presence
        from searchapp.judging.session import Session
        from searchapp.tasks import load

        loaded = load(task)
        if not annotator.strip():
            raise UsageError("who decides? Name the annotator with --annotator NAME")
        if reason and grade is None:
            raise UsageError("--reason is that of --grade: on the screen and in prompts write it there")
        simple = plain or os.environ.get("TERM") == "dumb"
        simple = simple or grade is not None or not has_screen()
        with open_log(
            settings, log, loaded.name, patience=PATIENCE_SECONDS if grade is None else None
        ) as opened:
            _, view = of_task(opened, loaded.name)
            require_known(between, view, loaded.name)
            author = Author(annotator.strip(), channel=Channel.plain if simple else Channel.interface)
            session = Session(opened, loaded.name, author, (Action.adjudicate,))
            if grade is not None:
                _decide(settings, session, loaded, topic, document, grade, reason)
                return
            adjudication = Adjudication(session, between, topic, document)
            total = len(adjudication.disputes)
            if adjudication.next_open() is None and (simple or not total):
                told = f"all {total} disputed documents are decided" if total else "nobody disagrees"
                say(settings, f"there is nothing to decide: {told} on {loaded.name}")
                return
            title = f"{loaded.name} · {author.annotator} decides"
            wanted = {dispute.topic_id for dispute in adjudication.disputes}
            with (
                _pages(settings, loaded, run, data, wanted) as pages,
                Presence(opened.path, loaded.name, author.annotator) as presence,
            ):
                opened.damage.report = session.news.append
                if simple:
                    from searchapp.tui.adjudicate.prompts import AdjudicatePrompts

                    for other in presence.others:
                        warn(
                            f"{author.annotator} is at {loaded.name} in another window already ({other}): what is "
                            "said last holds"
                        )
                    AdjudicatePrompts(adjudication, pages, title).converse()
                else:
                    from searchapp.tui import keys
                    from searchapp.tui.adjudicate.app import AdjudicateApp

                    own = keys.load(settings.of_user, loaded.info.grades)
                    screen = AdjudicateApp(adjudication, pages, own, title, presence)
                    screen.run()
                    if screen.return_code:
                        raise typer.Exit(screen.return_code)
            opened.damage.report = warn
            for words in session.news:
                warn(words)
            say(settings, f"{adjudication.decided} of {total} disputed documents are decided")


def _decide(
    settings: Settings,
    session: Session,
    task: Task,
    topic: str | None,
    document: str | None,
    grade: int,
    reason: str,
) -> None:
    """Write one decision."""
    from searchapp.judging.session import SeenDocument

    if topic is None or document is None:
        raise UsageError("--grade decides on one document: name it with --topic and --document")
    if grade >= len(task.info.grades):
        raise UsageError(f"{task.name} has the grades 0 to {len(task.info.grades) - 1}, not {grade}")
    if not session.view.opinions(topic, document):
        raise UsageError(f"nobody has judged document {document} of topic {topic}: check both ids")
    outcome = session.adjudicate(SeenDocument(topic, document), grade, reason)
    if outcome.not_saved:
        raise outcome.not_saved
    say(settings, f"topic {topic}, document {document}: decided, grade {grade}")


@contextmanager
def _pages(
    settings: Settings, task: Task, run: Path | None, data: Path | None, wanted: Collection[str]
) -> Iterator[Pages]:
    """Topics and documents: of a run, or of the task's files and index; ids alone, where there are none."""
    from searchapp.app.index_sources import LocalFirst
    from searchapp.app.pages import Pages, topics_of
    from searchapp.app.run_pages import RunPages
    from searchapp.tasks.folders import data_folder

    with closing(LocalFirst(settings, for_person(settings), warn, copy=settings.shared)) as documents:
        if run is not None:
            yield RunPages.open(task, documents, run, data, home=settings.home)
            return
        folder: Path | None = None
        topics: dict[str, Topic] = {}
        try:
            folder = data_folder(task, settings.home, data)
            topics = topics_of(task, task.collection(folder), wanted)
        except DataError as error:
            warn(str(error))
        if not topics:
            warn("the texts of the topics are missing: name a run with --run, or their folder with --data")
        try:
            index = documents.index(task, folder)
        except EngineError as error:
            warn(f"the documents are missing: {error}")
            index = None
        yield Pages(
            task,
            index,
            topics,
            spare=lambda: documents.spare(task, folder),
            newer=lambda: documents.index(task, folder),
        )
