"""`searchapp index`: make a task's documents searchable."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, TaskArgument, command, data_of
from searchapp.cli.output import print_json, say, warn, warn_of_notes, warn_of_skipped
from searchapp.digests import data_name
from searchapp.errors import SearchappError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.index import ServingIndex
    from searchapp.tasks.base import Task


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def index(
        settings: Settings,
        task: TaskArgument,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder with the task's official files, which is remembered for all other commands; by default "
                "the remembered one, else the one that `data get` fills.",
                show_default=False,
            ),
        ] = None,
        rebuild: Annotated[
            bool, typer.Option("--rebuild", help="Build from all documents, even if nothing has changed.")
        ] = False,
        lenient: Annotated[
            bool, typer.Option("--lenient", help="Leave invalid entries out instead of stopping.")
        ] = False,
        shards: Annotated[
            int | None,
            typer.Option(
                min=1,
                max=64,
                help="Number of shards on Elasticsearch; by default those that the index has, and for a new one as "
                "many as its documents and the cluster's nodes ask for: one for less than half a million documents.",
                show_default=False,
            ),
        ] = None,
        replicas: Annotated[
            int | None,
            typer.Option(
                min=0,
                max=16,
                help="Copies of each shard on other nodes; by default those that the index has, and for a new one one "
                "where there is a second node.",
                show_default=False,
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Index a task's documents with the analyzers made for them.

        Nothing happens when the index already holds exactly these documents under this mapping. Otherwise a
        new version is built beside the one that serves, which is replaced only when the new one is complete.
        Without a server, documents that have not changed are taken over into it and not analyzed again. On
        Elasticsearch a build that was interrupted goes on where it was.
        """
        from searchapp.app.index import index_task
        from searchapp.app.index_report import sentences
        from searchapp.cli.progress import for_person
        from searchapp.engines import open_engine
        from searchapp.tasks import load

        loaded = load(task)
        collection = loaded.collection(data_of(settings, loaded, data))
        with closing(open_engine(settings, lambda sentence: say(settings, sentence))) as engine:
            outcome = index_task(
                loaded,
                engine,
                collection,
                for_person(settings),
                shards=shards,
                replicas=replicas,
                rebuild=rebuild,
                lenient=lenient,
            )
        info, skipped = outcome.info, outcome.problems.skipped
        warn_of_skipped(skipped)
        warn_of_notes(outcome.problems.notes)
        for line in sentences(loaded, collection, outcome):
            say(settings, line)
        if data is not None:
            _remember(settings, loaded, data)
        if as_json:
            print_json(
                {
                    "task": loaded.name,
                    "built": outcome.built,
                    "index": info.version,
                    "documents": info.documents,
                    "shards": info.shards,
                    "created": info.created,
                    "digest": info.digest,
                    "skipped": len(skipped.problems) if skipped else 0,
                    "indexes": [_described(index) for index in outcome.indexes],
                    "removed": list(outcome.removed),
                    "missing": [data_name(collection.folder, file) for file in outcome.missing],
                }
            )


def _described(index: ServingIndex) -> dict[str, object]:
    """An index as JSON has it."""
    info = index.info
    return {
        "index": info.version,
        "documents": info.documents,
        "created": info.created,
        "digest": info.digest,
        "taken_over": index.carried,
    }


def _remember(settings: Settings, task: Task, data: Path) -> None:
    """Let the other commands find the files; that it is not possible is no reason to call the index a failure."""
    from searchapp.tasks import folders

    try:
        if folders.remember(task, settings.home, data):
            say(settings, f"{task.name}: its files are looked for in {data.resolve()} from now on")
    except SearchappError as error:
        warn(f"the folder must be named with --data again: {error}")
