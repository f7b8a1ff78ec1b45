"""`searchapp runs`: what can be done with run directories as such."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.commands import Group
from searchapp.cli.common import DataOption, JsonOption, OverwriteOption, RunArgument, command, data_of
from searchapp.cli.output import print_json, say, show, stdout_console, warn, warn_of_notes, warn_of_skipped
from searchapp.errors import DataError
from searchapp.settings import Settings
from searchapp.visible import visible_line


class ForeignFormat(StrEnum):
    """What a run of another tool may be."""

    trec = "trec"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=Group, help="Import, list, tag and verify run directories.", no_args_is_help=True)
    app.add_typer(group, name="runs")

    @group.callback()
    def _group() -> None:
        """Import, list, tag and verify run directories."""

    _register_import(group)
    _register_list(group)
    _register_show(group)
    _register_tag(group)
    _register_verify(group)


def _register_import(group: typer.Typer) -> None:
    @command(group, name="import")
    def import_(
        settings: Settings,
        file: Annotated[Path, typer.Argument(help="The run that another tool wrote.", show_default=False)],
        task: Annotated[
            str,
            typer.Option(
                help="Task that it is a run of.",
                show_default=False,
                metavar="TASK",
                autocompletion=complete.tasks,
            ),
        ],
        split: Annotated[
            str,
            typer.Option(help="Split that it ranks.", show_default=False, autocompletion=complete.splits),
        ],
        out: Annotated[Path, typer.Option(help="Run directory to write.", show_default=False)],
        format_: Annotated[
            ForeignFormat | None,
            typer.Option(
                "--format",
                help="What the file is: a TREC run, or a table, JSON lines or Parquet with the columns topic (or qid, "
                "query_id), document (docno, doc_id), score, rank.",
                show_default="by its name, or how it begins",
            ),
        ] = None,
        tag: Annotated[
            str | None,
            typer.Option(help="Name of the run in TREC files.", show_default="as in the file, or imported"),
        ] = None,
        tool: Annotated[
            str | None,
            typer.Option(help="What made the run, as `pyserini 1.2`, for its manifest.", show_default=False),
        ] = None,
        data: DataOption = None,
        lenient: Annotated[
            bool,
            typer.Option(
                "--lenient", help="Leave out lines that are wrong, and say which, instead of stopping."
            ),
        ] = False,
        overwrite: OverwriteOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Make a run directory of a run that another tool wrote.

        Topics and documents that the task does not have, documents that stand twice in a topic, and numbers that are
        none are reported with their lines, and refused unless they are left out with --lenient. Rankings are ordered by
        descending score and, among equal scores, by ascending id. From then on the run is judged, pooled, compared,
        exported and verified like any other.
        """
        from searchapp.app import known_runs
        from searchapp.app.import_run import ImportRequest, import_run
        from searchapp.cli.progress import for_person
        from searchapp.runs import directory
        from searchapp.tasks import load

        loaded = load(task)
        directory.require_writable(out, overwrite=overwrite)
        collection = loaded.collection(data_of(settings, loaded, data))
        request = ImportRequest(
            file, collection, split, None if format_ is None else format_.value, tag, tool, lenient
        )
        made = import_run(loaded, request, out, for_person(settings), overwrite=overwrite)
        known_runs.remember(settings.home, out)
        warn_of_skipped(made.problems.skipped)
        warn_of_notes(made.problems.notes)
        if made.shortfall:
            warn(f"the run has no official file: {made.shortfall}")
        manifest = made.manifest
        say(
            settings,
            f"{loaded.name} {split}: {manifest.hits:,} documents of {manifest.topics:,} topics are imported from "
            f"{file}, written to {out}",
        )
        if as_json:
            skipped, notes = made.problems.skipped, made.problems.notes
            print_json(
                {
                    "task": loaded.name,
                    "split": split,
                    "run": str(out),
                    "tag": manifest.tag,
                    "topics": manifest.topics,
                    "hits": manifest.hits,
                    "imported": dict(manifest.imported),
                    "left_out": {} if skipped is None else skipped.counts(),
                    "notes": {} if notes is None else notes.counts(),
                    "files": dict(manifest.files),
                }
            )


def _register_list(group: typer.Typer) -> None:
    @command(group, name="list")
    def list_(
        settings: Settings,
        task: Annotated[
            str | None,
            typer.Option(
                help="Only runs of this task.",
                show_default=False,
                metavar="TASK",
                autocompletion=complete.tasks,
            ),
        ] = None,
        tag: Annotated[
            list[str] | None,
            typer.Option(
                help="Only runs with this tag; given several times, with all of them.", show_default=False
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """List the runs that are known, and those in this folder and its folder runs, the latest first.

        A figure is shown where it has been computed before, on the home screen for instance.
        """
        from searchapp.app.listed_runs import listed
        from searchapp.cli.figures import Column, print_columns
        from searchapp.tasks import load

        named = None if task is None else load(task).name
        found = listed(settings.home, Path.cwd(), named, tuple(tag or ()))
        if as_json:
            print_json({"runs": [one.to_json() for one in found]})
            return
        if not found:
            say(
                settings,
                "no such run is known: `searchapp rank` makes one, `searchapp runs import` another tool's",
            )
            return
        print_columns(
            stdout_console(),
            Column("run", [one.shown for one in found], is_text=True),
            [
                Column("task", [f"{one.manifest.task} {one.manifest.split}" for one in found], is_text=True),
                Column("made by", [one.manifest.system for one in found], is_text=True),
                Column("topics", [f"{one.manifest.topics:,}" for one in found]),
                Column("depth", [f"{one.manifest.depth:,}" for one in found]),
                Column("official", [one.figure_shown for one in found]),
                Column("created", [one.manifest.created[:10] for one in found], is_text=True),
                Column("tags", [", ".join(one.tags) for one in found], is_text=True),
            ],
        )


def _register_show(group: typer.Typer) -> None:
    @command(group, name="show")
    def show_(settings: Settings, run: RunArgument, as_json: JsonOption = False) -> None:  # noqa: ARG001
        """Show what the manifest of a run says, and its tags."""
        from dataclasses import asdict

        from searchapp.runs import directory, tags

        manifest, held = directory.read_manifest(run), tags.of(run)
        if as_json:
            print_json({"run": str(run), "tags": list(held), **asdict(manifest)})
            return
        rows = [
            ("run", str(run)),
            ("tags", ", ".join(held)),
            ("task", f"{manifest.task} {manifest.split}"),
            ("made by", manifest.system),
            ("tag", manifest.tag),
            ("topics", f"{manifest.topics:,}"),
            ("documents", f"{manifest.hits:,}, at most {manifest.depth:,} a topic"),
            ("engine", " ".join(manifest.engine.values())),
            ("created", f"{manifest.created} by searchapp {manifest.searchapp}"),
            ("seconds", f"{manifest.seconds:g}"),
            ("data", manifest.data),
            *(("", f"{digest[:12]}  {name}") for name, digest in manifest.data_digests.items()),
            ("mapping", manifest.mapping_digest[:12]),
            ("documents", manifest.index_digest[:12]),
            ("files", ", ".join(manifest.files)),
            ("digest", manifest.digest),
        ]
        if manifest.imported:
            rows.insert(
                4, ("imported", f"{manifest.imported.get('file')} ({manifest.imported.get('format')})")
            )
        for name, value in rows:
            show(f"{name:<10} {visible_line(value)}".rstrip())
        for signal in manifest.recipe.get("signals", ()):
            show(
                f"{'signal':<10} "
                + visible_line(", ".join(f"{key} {value}" for key, value in signal.items()))
            )


def _register_tag(group: typer.Typer) -> None:
    @command(group)
    def tag(
        settings: Settings,
        run: RunArgument,
        tags: Annotated[list[str], typer.Argument(help="Names to find the run by.", show_default=False)],
        remove: Annotated[bool, typer.Option("--remove", help="Take the tags away.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Tag a run, to find it with `runs list --tag`. Tags stand beside the run and change none of its files."""
        from searchapp.runs import tags as of_runs

        held = of_runs.change(run, remove=tags) if remove else of_runs.change(run, add=tags)
        if as_json:
            print_json({"run": str(run), "tags": list(held)})
        say(settings, f"{run} has the tags {', '.join(held)}" if held else f"{run} has no tags")


def _register_verify(group: typer.Typer) -> None:
    @command(group)
    def verify(
        settings: Settings,
        run: RunArgument,
        as_json: JsonOption = False,
    ) -> None:
        """Check that the files of a run are those that were written, and its data unchanged since."""
        from searchapp.runs import directory

        found = directory.verify(run)
        if as_json:
            print_json(
                {
                    "run": str(run),
                    "intact": not found.problems,
                    "problems": found.problems,
                    "notes": found.notes,
                }
            )
        for note in found.notes:
            warn(note)
        if found.problems:
            head = f"{run} is not as it was written ({len(found.problems)}):"
            raise DataError(head, *found.problems)
        say(settings, f"{run}: every file is as it was written")
