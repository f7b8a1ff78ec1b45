"""`searchapp judgments adjudicate`: decide where annotators disagree."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import TaskArgument, command, say, stdout_console, visible
from searchapp.cli.judgments.options import LogOption, name_of, of_task, open_log
from searchapp.errors import EngineError, UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.judging.fold import Key, View
    from searchapp.judging.session import Session


def register(group: typer.Typer) -> None:
    """Add the command."""

    @command(group)
    def adjudicate(
        settings: Settings,
        task: TaskArgument,
        annotator: Annotated[str, typer.Option(help="Who decides.", show_default=False)],
        topic: Annotated[
            str | None, typer.Option(help="Decide on this topic only.", show_default=False)
        ] = None,
        document: Annotated[
            str | None, typer.Option(help="Decide on this document of the topic.", show_default=False)
        ] = None,
        grade: Annotated[
            int | None,
            typer.Option(min=0, help="The deciding grade, without being asked.", show_default=False),
        ] = None,
        reason: Annotated[str, typer.Option(help="Why, for the record.", show_default=False)] = "",
        log: LogOption = None,
    ) -> None:
        """Go through the documents that annotators disagree on, and write deciding events.

        With --topic, --document and --grade one decision is written without a question.
        """
        from searchapp.judging.events import Author, Channel
        from searchapp.judging.fold import judged
        from searchapp.judging.session import Place, Session

        task = name_of(task)
        with open_log(settings, log) as opened:
            _, view = of_task(opened, task)
            session = Session(opened, task, Author(annotator, channel=Channel.plain))
            disputed = [
                key for key in judged(view).disputed if topic in (None, key[0]) and document in (None, key[1])
            ]
            if grade is not None:
                if topic is None or document is None:
                    raise UsageError("--grade decides on one document: name it with --topic and --document")
                outcome = session.adjudicate(Place(topic, document), grade, reason)
                if outcome.not_saved:
                    raise outcome.not_saved
                say(settings, f"topic {topic}, document {document}: decided, grade {grade}")
                return
            if not disputed:
                say(settings, f"there is nothing to decide: nobody disagrees on {task}")
                return
            decided = _walk(settings, session, view, disputed)
        say(settings, f"{decided} of {len(disputed)} disputed documents are decided")


def _walk(settings: Settings, session: Session, view: View, disputed: list[Key]) -> int:
    """Ask for a decision on each document; returns how many were made."""
    from searchapp.judging.session import Place

    texts = _texts(settings, session.task, [document for _, document in disputed])
    console = stdout_console()
    decided = 0
    for number, (topic_id, document_id) in enumerate(disputed, 1):
        console.print(
            f"\n{number} of {len(disputed)}   topic {visible(topic_id)}   document {visible(document_id)}"
        )
        if document_id in texts:
            console.print(f"   {visible(texts[document_id])}", soft_wrap=True)
        for opinion in view.opinions(topic_id, document_id):
            said = opinion.action.value if opinion.grade is None else f"grade {opinion.grade}"
            note = f": {visible(opinion.note)}" if opinion.note else ""
            console.print(f"   {visible(opinion.annotator)} {said}{note}")
        answer = typer.prompt(
            "   deciding grade (enter to go on, q to stop)", default="", show_default=False, err=True
        )
        if answer.strip().lower() == "q":
            break
        if not answer.strip():
            continue
        if not answer.strip().isdecimal():
            say(settings, "   that is no grade: nothing is written")
            continue
        outcome = session.adjudicate(Place(topic_id, document_id), int(answer))
        if outcome.not_saved:
            raise outcome.not_saved
        decided += 1
    return decided


def _texts(settings: Settings, task: str, documents: list[str]) -> dict[str, str]:
    """The texts of documents from the index; none where there is no index, for the ids still say what is meant."""
    from searchapp.engines import open_engine

    body = {
        "size": len(set(documents)),
        "_source": ["text"],
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"terms": {"id": sorted(set(documents))}},
    }
    try:
        with closing(open_engine(settings)) as engine:
            return {
                found.hit.document_id: found.source.get("text", "") for found in engine.open(task).find(body)
            }
    except EngineError:
        return {}
