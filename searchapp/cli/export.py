"""`searchapp export`: write a run in the format that others read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import OverwriteOption, RunArgument, command
from searchapp.cli.output import say
from searchapp.errors import DataError, UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from searchapp.tasks.base import Writer


class Format(StrEnum):
    """What a run can be exported as."""

    official = "official"
    trec = "trec"
    jsonl = "jsonl"
    csv = "csv"
    ir_metadata = "ir-metadata"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def export(
        settings: Settings,
        run: RunArgument,
        out: Annotated[
            Path,
            typer.Option(
                help="File to write; a folder for a task with several official files a run.",
                show_default=False,
            ),
        ],
        format_: Annotated[
            Format,
            typer.Option(
                "--format",
                help="The task's official file; a TREC run; topic, rank, document and score as JSON lines or CSV; or "
                "what the run was made from, as YAML in the schema ir_metadata, with the project's table [team].",
            ),
        ] = Format.official,
        task: Annotated[
            str | None,
            typer.Option(
                help="The run's task file, if it is no longer where the run was made with it.",
                show_default=False,
                metavar="TASK",
                autocompletion=complete.tasks,
            ),
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder with the task's official files, if it is no longer where the run was made from it.",
                show_default=False,
            ),
        ] = None,
        nearest: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="nlps: premises that each statement needs in the official file; 500 by default.",
                show_default=False,
            ),
        ] = None,
        distinct_scores: Annotated[
            bool,
            typer.Option(
                "--distinct-scores",
                help="trec: scores that fall from each rank to the next, for tools that sort by score, such as "
                "trec_eval.",
            ),
        ] = False,
        overwrite: OverwriteOption = False,
    ) -> None:
        """Write a run as the file that the task's organisers accept, or as other programs read it.

        The order of the rows is the ranking. Scores are float32, written as their shortest decimals in JSON and CSV.
        In a TREC run equal scores may follow each other: tools that sort by score again, such as trec_eval, put those
        in another order. With --distinct-scores a score that is not below the one before becomes the next float32 below
        it; all others stay as they are.
        """
        from searchapp.app.evaluate import task_of
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import write_files
        from searchapp.formats import rankings, trec
        from searchapp.runs import directory
        from searchapp.tasks.base import NoOfficialFile, Part, Submission

        if distinct_scores and format_ is not Format.trec:
            raise UsageError("--distinct-scores is for TREC runs: add --format trec")
        stored = directory.read(run)
        write = {
            Format.trec: trec.write_run,
            Format.jsonl: rankings.write_jsonl,
            Format.csv: rankings.write_csv,
        }
        writers: Mapping[str, Writer]
        if format_ is Format.official:
            loaded = task_of(stored, task)
            manifest = stored.manifest
            part = Part(loaded.collection(data or Path(manifest.data)), manifest.split)
            try:
                writers = loaded.official.files(Submission(stored.run, part, ScorerOptions(nearest)))
            except NoOfficialFile as error:
                raise DataError(f"{run}: {error}") from error
        elif format_ is Format.ir_metadata:
            from searchapp.app.run_metadata import metadata
            from searchapp.formats import ir_metadata

            parts = metadata(task_of(stored, task), stored.manifest, settings.team)
            writers = {"metadata": lambda file: ir_metadata.write(file, stored.manifest.tag, parts)}
        else:
            written = trec.with_distinct_scores(stored.run) if distinct_scores else stored.run
            writers = {"run": lambda file: write[format_](file, written)}
        write_files(out, writers, replace=overwrite)
        what = "what is known" if format_ is Format.ir_metadata else f"{len(stored.run):,} rankings"
        say(settings, f"{what} of {run} {'is' if format_ is Format.ir_metadata else 'are'} written to {out}")
        if format_ is Format.trec and not distinct_scores and (tied := trec.reordered(stored.run)):
            have = "has" if tied == 1 else "have"
            say(
                settings,
                f"{tied:,} of them {have} equal scores, which trec_eval and others that sort by score put in another "
                "order: --distinct-scores writes scores that keep it",
            )
