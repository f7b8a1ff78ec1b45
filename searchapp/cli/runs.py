"""`searchapp runs` and `export`: import, list, tag and verify run directories, and write them in other formats."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    DataOption,
    Group,
    JsonOption,
    OverwriteOption,
    RunArgument,
    command,
    data_of,
)
from searchapp.cli.output import (
    for_person,
    print_json,
    say,
    show,
    stdout_console,
    warn,
    warn_of_notes,
    warn_of_skipped,
)
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.files import write_files
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted, visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from searchapp.tasks.base import Writer


class ForeignFormat(StrEnum):
    """What a run of another tool may be."""

    trec = "trec"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


app = typer.Typer()

group = typer.Typer(cls=Group, help="Import, list, tag and verify run directories.", no_args_is_help=True)
app.add_typer(group, name="runs")


@group.callback()
def _group() -> None:
    """Import, list, tag and verify run directories."""


@command(group, name="import")
def import_(
    settings: Settings,
    file: Path = argument("The run that another tool wrote."),
    task: str = option("Task that it is a run of.", default=REQUIRED, metavar="TASK", completes="tasks"),
    split: str = option("Split that it ranks.", default=REQUIRED, completes="splits"),
    out: Path = option("Run directory to write.", default=REQUIRED),
    format_: ForeignFormat | None = option(
        "What the file is: a TREC run, or a table, JSON lines or Parquet with the columns topic (or qid, "
        "query_id), document (docno, doc_id), score, rank.",
        "--format",
        show_default="by its name, or how it begins",
    ),
    tag: str | None = option("Name of the run in TREC files.", show_default="as in the file, or imported"),
    tool: str | None = option("What made the run, as `pyserini 1.2`, for its manifest."),
    data: DataOption = None,
    lenient: bool = flag("Leave out lines that are wrong, and say which, instead of stopping."),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a run directory of a run that another tool wrote.

    Topics and documents that the task does not have, documents that stand twice in a topic, and numbers that are
    none are reported with their lines, and refused unless they are left out with --lenient. Rankings are ordered as
    trec_eval orders them: by descending score, rounded to float32, and equal scores by descending id. From then on
    the run is judged, pooled, compared, exported and verified like any other.
    """
    from searchapp.app import runs
    from searchapp.app.import_run import ImportRequest, import_run
    from searchapp.runs import directory

    loaded = load(task)
    directory.require_writable(out, overwrite=overwrite)
    collection = loaded.collection(data_of(settings, loaded, data))
    request = ImportRequest(
        file, collection, split, None if format_ is None else format_.value, tag, tool, lenient
    )
    made = import_run(loaded, request, out, for_person(settings), overwrite=overwrite)
    runs.remember_run(settings.home, out)
    warn_of_skipped(made.problems.skipped)
    warn_of_notes(made.problems.notes)
    if made.shortfall:
        warn(f"the run has no official file: {made.shortfall}")
    manifest = made.manifest
    say(
        settings,
        f"{loaded.name} {split}: {counted(manifest.hits, 'document')} of {counted(manifest.topics, 'topic')} "
        f"imported from {file}, written to {out}",
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


@command(group, name="list")
def list_(
    settings: Settings,
    task: str | None = option("Only runs of this task.", metavar="TASK", completes="tasks"),
    tag: list[str] | None = option("Only runs with this tag; given several times, with all of them."),
    as_json: JsonOption = False,
) -> None:
    """List the runs that are known, and those in this folder and its folder runs, the latest first.

    A figure is shown where it has been computed before, on the home screen for instance.
    """
    from searchapp.app.runs import list_runs
    from searchapp.cli.tables import Column, print_columns

    named = None if task is None else load(task).name
    found = list_runs(settings.home, Path.cwd(), named, tuple(tag or ()))
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


@command(group, name="show")
def show_(settings: Settings, run: RunArgument, as_json: JsonOption = False) -> None:  # noqa: ARG001
    """Show what the manifest of a run says, and its tags."""

    from searchapp.runs import directory

    manifest, held = directory.read_manifest(run), directory.tags_of(run)
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
        rows.insert(4, ("imported", f"{manifest.imported.get('file')} ({manifest.imported.get('format')})"))
    for name, value in rows:
        show(f"{name:<10} {visible_line(value)}".rstrip())
    for signal in manifest.recipe.get("signals", ()):
        show(f"{'signal':<10} " + visible_line(", ".join(f"{key} {value}" for key, value in signal.items())))


@command(group)
def tag(
    settings: Settings,
    run: RunArgument,
    tags: list[str] = argument("Names to find the run by."),
    remove: bool = flag("Take the tags away."),
    as_json: JsonOption = False,
) -> None:
    """Tag a run, to find it with `runs list --tag`. Tags stand beside the run and change none of its files."""
    from searchapp.runs import directory

    held = directory.change_tags(run, remove=tags) if remove else directory.change_tags(run, add=tags)
    if as_json:
        print_json({"run": str(run), "tags": list(held)})
    say(settings, f"{run} has the tags {', '.join(held)}" if held else f"{run} has no tags")


@command(group)
def verify(
    settings: Settings,
    run: RunArgument,
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a run are those that were written, and its inputs unchanged since.

    The inputs are the recipe with its templates, the mappings, the files of the data and how a task file says that
    they are read. `searchapp rerun` makes a run again of the copies that it keeps.
    """
    from searchapp.app.rank import verify_run as verified

    found = verified(run)
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


class Format(StrEnum):
    """What a run can be exported as."""

    official = "official"
    trec = "trec"
    jsonl = "jsonl"
    csv = "csv"
    ir_metadata = "ir-metadata"


@command(app)
def export(
    settings: Settings,
    run: RunArgument,
    out: Path = option(
        "File to write, - for stdout; a folder for a task with several official files a run.",
        default=REQUIRED,
    ),
    format_: Format = option(
        "The task's official file; a TREC run; topic, rank, document and score as JSON lines or CSV; or "
        "what the run was made from, as YAML in the schema ir_metadata, with the project's table [team].",
        "--format",
        default=Format.official,
    ),
    task: str | None = option(
        "The run's task file, if it is no longer where the run was made with it.",
        metavar="TASK",
        completes="tasks",
    ),
    data: Path | None = option(
        "Folder with the task's official files, if it is no longer where the run was made from it."
    ),
    nearest: int | None = option(
        "nlps: premises that each statement needs in the official file; 500 by default.", min=1
    ),
    engine_scores: bool = flag("trec: the engine's scores, of which equal ones follow each other."),
    overwrite: OverwriteOption = False,
) -> None:
    """Write a run as the file that the task's organisers accept, or as other programs read it.

    The order of the rows is the ranking. Scores are float32, written as their shortest decimals in JSON and CSV.
    In a TREC run a score that is not below the one before becomes the next float32 below it, so that tools which
    sort by score, such as trec_eval, keep the order of the ranking; all other scores are the engine's. With
    --engine-scores all are.
    """
    from searchapp.app.evaluate import task_of
    from searchapp.evaluation.base import ScorerOptions
    from searchapp.formats import run_files, trec
    from searchapp.runs import directory
    from searchapp.tasks.base import NoOfficialFile, Part, Submission

    if engine_scores and format_ is not Format.trec:
        raise UsageError("--engine-scores is for TREC runs: add --format trec")
    stored = directory.read(run)
    write = {
        Format.trec: trec.write_run,
        Format.jsonl: run_files.write_jsonl,
        Format.csv: run_files.write_csv,
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
        from searchapp.app.manifests import run_metadata
        from searchapp.formats import run_files

        parts = run_metadata(task_of(stored, task), stored.manifest, settings.team)
        writers = {"metadata": lambda file: run_files.write_ir_metadata(file, stored.manifest.tag, parts)}
    else:
        distinct = format_ is Format.trec and not engine_scores
        written = trec.with_distinct_scores(stored.run) if distinct else stored.run
        writers = {"run": lambda file: write[format_](file, written)}
    write_files(out, writers, replace=overwrite)
    what = "what is known" if format_ is Format.ir_metadata else counted(len(stored.run), "ranking")
    say(settings, f"{what} of {run} written to {out}")
    if engine_scores and (tied := trec.reordered(stored.run)):
        have = "has" if tied == 1 else "have"
        say(
            settings,
            f"{tied:,} of them {have} equal scores, which trec_eval and others that sort by score put in another "
            "order: leave out --engine-scores to keep it",
        )
