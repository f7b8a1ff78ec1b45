"""`searchapp rank`, `rerun`, `train`, `runs` and `export`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    CommandGroup,
    DataOption,
    JsonOption,
    MaxCostOption,
    OverwriteOption,
    RunArgument,
    RunCommandOption,
    SetOption,
    TaskArgument,
    TrainingSplitOption,
    command,
    data_of,
    recipe_of,
    reporting_engine,
    reranking_of,
)
from searchapp.cli.judgment_options import AnnotatorsOption, LogOption, judged_grades
from searchapp.cli.output import (
    for_person,
    print_json,
    say,
    show,
    stdout_console,
    warn,
    warn_all,
    warn_of_notes,
    warn_of_skipped,
)
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.files import write_files
from searchapp.formats.problems import Problems
from searchapp.judging.judgments import Aggregation, Rule
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted, have, visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from searchapp.embeddings.reranking import Reranking
    from searchapp.model import Example
    from searchapp.ranking.signals.base import Inputs
    from searchapp.tasks.base import Writer


app = typer.Typer()


@command(app)
def rank(
    settings: Settings,
    task: TaskArgument,
    split: str = option("Split to rank: see `searchapp tasks`.", default=REQUIRED, completes="splits"),
    out: Path = option("Run directory to write.", default=REQUIRED),
    data: DataOption = None,
    recipe: str | None = option("Recipe to rank with: see `searchapp tasks show TASK`.", completes="recipes"),
    depth: int | None = option(
        "Documents per topic; default: the task's depth. A recipe with several signals fuses as many "
        "documents as its window, or the depth if it is larger.",
        min=1,
    ),
    set_: SetOption = None,
    training_split: TrainingSplitOption = None,
    tag: str | None = option("Name of the run in TREC files.", show_default="searchapp-<recipe>"),
    with_judgments: bool = flag("Use judged topics as training topics."),
    rule: Rule = option(
        "--with-judgments: how the grades of several annotators become one, unless the document was adjudicated.",
        "--aggregation",
        default=Rule.majority,
    ),
    annotator: AnnotatorsOption = None,
    log: LogOption = None,
    lenient: bool = flag("Skip invalid topics and training topics instead of stopping."),
    run_command: RunCommandOption = False,
    max_cost: MaxCostOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rank the documents for every topic of a split and write a run directory."""
    from searchapp.app import runs
    from searchapp.app.rank import RunRequest, make_run
    from searchapp.runs import directory

    loaded = load(task)
    directory.require_writable(out, overwrite=overwrite)  # before the slow work
    chosen = recipe_of(loaded, recipe, set_)
    collection = loaded.collection(data_of(settings, loaded, data))
    judged: tuple[Example, ...] = ()
    if with_judgments:
        grades = judged_grades(settings, loaded.name, Aggregation(rule, annotator), log)
        judged = tuple(
            collection.judged_example(topic, grades[topic.id])
            for topic in collection.topics(split, Problems(lenient=True))
            if topic.id in grades
        )
        if not judged:
            raise DataError(
                f"{loaded.name} {split} has no judged topic: judge with `searchapp judge {loaded.reference}`"
            )
        say(settings, f"training on {counted(len(judged), 'judged topic')}")
    reranking = reranking_of(settings, run_command=run_command, max_cost=max_cost)
    request = RunRequest(
        collection=collection,
        split=split,
        recipe=chosen,
        depth=depth or loaded.info.default_depth,
        tag=tag or f"searchapp-{chosen.name}",
        lenient=lenient,
        judged=judged,
        home=settings.home,
        training_splits=tuple(training_split or ()),
        reranking=reranking,
    )
    with reporting_engine(settings) as engine:
        written = make_run(loaded, engine, request, out, for_person(settings), overwrite=overwrite)
    _say_cost(settings, reranking)
    runs.remember_run(settings.home, out)
    warn_of_skipped(written.problems.skipped, written.training_problems.skipped)
    warn_all(written.all_warnings())
    say(settings, written.summary(out))
    manifest = written.manifest
    if as_json:
        print_json(
            {
                "task": loaded.name,
                "split": split,
                "run": str(out),
                "topics": manifest.topics,
                "hits": manifest.hits,
                "seconds": manifest.seconds,
                "files": dict(manifest.files),
            }
        )


@command(app)
def rerun(
    settings: Settings,
    run: RunArgument,
    out: Path = option("Run directory to write.", default=REQUIRED),
    data: Path | None = option(
        "Folder with the documents and topics; default: the folder that the run records."
    ),
    run_command: RunCommandOption = False,
    max_cost: MaxCostOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat a run from its stored inputs, and report whether the new files equal the old ones.

    The new run uses the copies of recipe, templates and mappings in the run directory, even if the task has changed,
    and the documents and topics in the data folder. If the task's mappings have changed, a separate index is built with
    the copies. If a file differs, the exit code is 4, as with `runs verify`.
    """
    from searchapp.app import rank as again
    from searchapp.app import runs
    from searchapp.runs import directory

    directory.require_writable(out, overwrite=overwrite)  # before the slow work
    reranking = reranking_of(settings, run_command=run_command, max_cost=max_cost)
    with reporting_engine(settings) as engine:
        result = again.rerun(
            run,
            engine,
            out,
            for_person(settings),
            data=data,
            home=settings.home,
            reranking=reranking,
            overwrite=overwrite,
        )
    _say_cost(settings, reranking)
    runs.remember_run(settings.home, out)
    written = result.made
    warn_of_skipped(written.problems.skipped, written.training_problems.skipped)
    warn_all([*written.warnings, *result.notes])
    if as_json:
        equal, differences = not result.differences, result.differences
        described = {"equal": equal, "differences": differences, "notes": result.notes}
        print_json({"run": str(run), "out": str(out), **described})
    if result.differences:
        raise DataError(f"{out} differs from {run}:", *result.differences)
    say(settings, f"{out} equals {run}: {counted(written.manifest.topics, 'topic')}")


def _say_cost(settings: Settings, reranking: Reranking) -> None:
    """Report the requests to rerankers, if any."""
    if (budget := reranking.budget).requests:
        requests, tokens = counted(budget.requests, "request"), counted(budget.tokens, "token")
        say(settings, f"reranked in {requests}, {tokens}, cost {budget.cost:.4g}")


RECIPE = "best"


@command(app)
def train(
    settings: Settings,
    task: TaskArgument,
    data: DataOption = None,
    split: str | None = option(
        "Split to rank later; its topics are excluded from training. Default: the last split with training topics.",
        completes="splits",
    ),
    recipe: str = option("Recipe whose models to train.", default=RECIPE, completes="recipes"),
    set_: SetOption = None,
    training_split: TrainingSplitOption = None,
    workers: int = option("Number of processes; it does not change the models.", default=1, min=1, max=64),
    run_command: RunCommandOption = False,
    max_cost: MaxCostOption = None,
    lenient: bool = flag("Skip invalid training topics instead of stopping."),
    rebuild: bool = flag("Train again even if the model exists."),
    as_json: JsonOption = False,
) -> None:
    """Train the models of a recipe on the training topics of a split.

    A model that fuses signals learns from the scores of the signals for training topics, so the task must be indexed.

    `rank`, `search` and `topics` train missing models themselves. Models are stored in the home directory under the
    digest of all training inputs: training topics, documents, parameters, seed, and the versions of searchapp, Python,
    scikit-learn, NumPy and SciPy. If an input changes, the model is trained again.
    """
    from searchapp.app import models
    from searchapp.app.index import open_index, require_documents
    from searchapp.app.models import last_trainable_split, signal_inputs

    loaded = load(task)
    chosen = recipe_of(loaded, recipe, set_)
    collection = loaded.collection(data_of(settings, loaded, data))
    ranked = loaded.info.require_split(split) if split else last_trainable_split(collection)
    if training_split:
        collection = collection.with_training_splits(training_split)
    problems = Problems(lenient=lenient)
    progress = for_person(settings)
    store = models.Models(loaded, collection, ranked, progress, settings.home, problems=problems)
    with ExitStack() as stack:

        def inputs() -> Inputs:
            engine = stack.enter_context(reporting_engine(settings))
            index = open_index(loaded, engine, collection.index_of(ranked))
            require_documents(loaded, index, collection)
            return signal_inputs(
                loaded,
                engine,
                index,
                lambda: (collection, ranked),
                progress,
                problems,
                reranking=reranking_of(settings, run_command=run_command, max_cost=max_cost),
            )

        trained = models.train(store, chosen, inputs, rebuild=rebuild, workers=workers)
    warn_of_skipped(problems.skipped)
    counts = [len(model.stored.header["withheld"]) for model in trained if "withheld" in model.stored.header]
    warn_all(models.withheld_warnings(counts, ranked))
    for model in trained:
        header = model.stored.header
        done = "trained on" if model.is_new else "already trained on"
        without = f" without {model.left_out}" if model.left_out else ""
        content = counted(len(header["labels"]), "label")
        if "trees" in header:
            content = f"{counted(header['trees'], 'tree')} of {counted(header['candidates'], 'candidate')}"
        say(
            settings,
            f"{loaded.name} {ranked}, {model.signal}{without}: {done} "
            f"{counted(header['training_topics'], 'training topic')}, {content}, "
            f"{counted(len(header['features']), 'feature')}; stored in {model.path}",
        )
    if as_json:
        described = [dict(models.described(model)) for model in trained]
        print_json({"task": loaded.name, "split": ranked, "recipe": chosen.name, "models": described})


class ForeignFormat(StrEnum):
    """Formats of other tools' runs."""

    trec = "trec"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


group = typer.Typer(
    cls=CommandGroup, help="Import, list, tag and verify run directories.", no_args_is_help=True
)
app.add_typer(group, name="runs")


@group.callback()
def _group() -> None:
    """Import, list, tag and verify run directories."""


@command(group, name="import")
def import_(
    settings: Settings,
    file: Path = argument("File with the run."),
    task: str = option("Task of the run.", default=REQUIRED, metavar="TASK", completes="tasks"),
    split: str = option("Split of the run.", default=REQUIRED, completes="splits"),
    out: Path = option("Run directory to write.", default=REQUIRED),
    format_: ForeignFormat | None = option(
        "Format of the file: a TREC run, or CSV, TSV, JSON lines or Parquet with the columns topic (or qid, "
        "query_id), document (or docno, doc_id), score and rank.",
        "--format",
        show_default="from its name or its first bytes",
    ),
    tag: str | None = option("Name of the run in TREC files.", show_default="as in the file, or imported"),
    tool: str | None = option("Tool that made the run, such as `pyserini 1.2`; recorded in the manifest."),
    data: DataOption = None,
    lenient: bool = flag("Skip invalid lines, and report them, instead of stopping."),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Import the run of another tool as a run directory.

    Unknown topics and documents, repeated documents and invalid numbers are reported with their lines; the import fails
    unless --lenient skips them. Rankings are ordered as in trec_eval: by descending score, rounded to float32, and
    equal scores by descending id. The imported run can be judged, pooled, compared, exported and verified like any
    other.
    """
    from searchapp.app import runs
    from searchapp.app.import_run import import_run
    from searchapp.runs import directory

    loaded = load(task)
    directory.require_writable(out, overwrite=overwrite)
    collection = loaded.collection(data_of(settings, loaded, data))
    written = import_run(
        loaded,
        collection,
        split,
        file,
        out,
        for_person(settings),
        format_=None if format_ is None else format_.value,
        tag=tag,
        tool=tool,
        lenient=lenient,
        overwrite=overwrite,
    )
    runs.remember_run(settings.home, out)
    warn_of_skipped(written.problems.skipped)
    warn_of_notes(written.problems.notes)
    if written.shortfall:
        warn(f"the run has no official file: {written.shortfall}")
    manifest = written.manifest
    say(
        settings,
        f"{loaded.name} {split}: imported {counted(manifest.hits, 'document')} for "
        f"{counted(manifest.topics, 'topic')} from {file}, wrote {out}",
    )
    if as_json:
        skipped, notes = written.problems.skipped, written.problems.notes
        print_json(
            {
                "task": loaded.name,
                "split": split,
                "run": str(out),
                "tag": manifest.tag,
                "topics": manifest.topics,
                "hits": manifest.hits,
                "imported": dict(manifest.imported),
                "skipped": {} if skipped is None else skipped.counts(),
                "notes": {} if notes is None else notes.counts(),
                "files": dict(manifest.files),
            }
        )


@command(group, name="list")
def list_(
    settings: Settings,
    task: str | None = option("Only runs of this task.", metavar="TASK", completes="tasks"),
    tag: list[str] | None = option("Only runs with this tag; if repeated, runs with all of them."),
    as_json: JsonOption = False,
) -> None:
    """List the known runs and those in the current folder and its subfolder `runs`, latest first.

    The official figure is shown if it has been computed before, for example on the home screen.
    """
    from searchapp.app.runs import list_runs
    from searchapp.cli.tables import ResultTable

    named = None if task is None else load(task).name
    result = list_runs(settings.home, Path.cwd(), named, tuple(tag or ()))
    if as_json:
        print_json({"runs": [known_run.to_json() for known_run in result]})
        return
    if not result:
        say(
            settings,
            "no such run: create one with `searchapp rank` or `searchapp runs import`",
        )
        return
    names = ("run", "task", "made by", "topics", "depth", "official", "created", "tags")
    rows = (
        (
            run.shown,
            f"{run.manifest.task} {run.manifest.split}",
            run.manifest.system,
            f"{run.manifest.topics:,}",
            f"{run.manifest.depth:,}",
            run.figure_shown,
            run.manifest.created[:10],
            ", ".join(run.tags),
        )
        for run in result
    )
    ResultTable.of_rows(names, rows, texts=(0, 1, 2, 6, 7)).print(stdout_console())


@command(group, name="show")
def show_(settings: Settings, run: RunArgument, as_json: JsonOption = False) -> None:  # noqa: ARG001
    """Show the manifest and the tags of a run."""

    from searchapp.runs import directory

    manifest, tags = directory.read_manifest(run), directory.tags_of(run)
    if as_json:
        print_json({"run": str(run), "tags": list(tags), **asdict(manifest)})
        return
    rows = [
        ("run", str(run)),
        ("tags", ", ".join(tags)),
        ("task", f"{manifest.task} {manifest.split}"),
        ("made by", manifest.system),
        ("tag", manifest.tag),
        ("topics", f"{manifest.topics:,}"),
        ("documents", f"{manifest.hits:,}, at most {manifest.depth:,} per topic"),
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
    tags: list[str] = argument("Tags to add."),
    remove: bool = flag("Remove the tags instead."),
    as_json: JsonOption = False,
) -> None:
    """Add tags to a run, for `runs list --tag`. Tags do not change the files of the run."""
    from searchapp.runs import directory

    run_tags = directory.change_tags(run, remove=tags) if remove else directory.change_tags(run, add=tags)
    if as_json:
        print_json({"run": str(run), "tags": list(run_tags)})
    say(settings, f"{run} has the tags {', '.join(run_tags)}" if run_tags else f"{run} has no tags")


@command(group)
def verify(
    settings: Settings,
    run: RunArgument,
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a run and its inputs have not changed.

    The inputs are the recipe with its templates, the mappings, the data files and, for your own task, the settings that
    describe how to read them. `searchapp rerun` repeats a run from its stored copies.
    """
    from searchapp.app.rank import verify_run as verified

    result = verified(run)
    if as_json:
        described = {"problems": result.problems, "notes": result.notes}
        print_json({"run": str(run), "intact": not result.problems, **described})
    warn_all(result.notes)
    if result.problems:
        head = f"{run} has changed since it was written:"
        raise DataError(head, *result.problems)
    say(settings, f"{run}: all files are intact")


class ExportFormat(StrEnum):
    """Formats of an exported run."""

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
        "File to write; - is stdout. If the task has several official files per run, a folder.",
        default=REQUIRED,
    ),
    format_: ExportFormat = option(
        "official: the task's file; trec: a TREC run; jsonl, csv: topic, rank, document and score; "
        "ir-metadata: the metadata of the run as YAML in the schema ir_metadata, with the settings [team].",
        "--format",
        default=ExportFormat.official,
    ),
    task: str | None = option(
        "Task file of the run; default: the file that the run records.",
        metavar="TASK",
        completes="tasks",
    ),
    data: Path | None = option(
        "Folder with the task's official files; default: the folder that the run records."
    ),
    cutoff: int | None = option(
        "nlps: required number of premises per statement in the official file; default: 500.", min=1
    ),
    engine_scores: bool = flag("trec: write the engine's scores unchanged, even if they are equal."),
    overwrite: OverwriteOption = False,
) -> None:
    """Write a run as the task's official file, or in a format of other tools.

    The order of the rows is the ranking. Scores are float32, written as the shortest exact decimals in JSON and CSV. In
    a TREC run, a score that is not below the previous one becomes the next lower float32, so that tools that sort by
    score, such as trec_eval, keep the ranking. With --engine-scores, all scores stay as the engine computed them.
    """
    from searchapp.app.evaluate import task_of
    from searchapp.evaluation.base import ScorerOptions
    from searchapp.formats import run_files, trec
    from searchapp.runs import directory
    from searchapp.tasks.base import DataSplit, NoOfficialFile

    if engine_scores and format_ is not ExportFormat.trec:
        raise UsageError(
            "--engine-scores requires --format trec: add --format trec, or leave out --engine-scores"
        )
    stored = directory.read(run)
    manifest = stored.manifest
    writers: Mapping[str, Writer]
    if format_ is ExportFormat.official:
        loaded = task_of(stored, task)
        collection = loaded.collection(data or Path(manifest.data))
        part = DataSplit(collection, manifest.split, ScorerOptions(cutoff))
        try:
            writers = loaded.official.files(stored.run, part)
        except NoOfficialFile as error:
            raise DataError(f"{run}: {error}") from error
    elif format_ is ExportFormat.ir_metadata:
        from searchapp.app.manifests import run_metadata

        metadata = run_metadata(task_of(stored, task), manifest, settings.team)
        writers = {"metadata": lambda file: run_files.write_ir_metadata(file, manifest.tag, metadata)}
    else:
        write = {"trec": trec.write_run, "jsonl": run_files.write_jsonl, "csv": run_files.write_csv}[
            format_.value
        ]
        distinct = format_ is ExportFormat.trec and not engine_scores
        written = trec.with_distinct_scores(stored.run) if distinct else stored.run
        writers = {"run": lambda file: write(file, written)}
    write_files(out, writers, replace=overwrite)
    content = "the metadata" if format_ is ExportFormat.ir_metadata else counted(len(stored.run), "ranking")
    say(settings, f"wrote {content} of {run} to {out}")
    if engine_scores and (tied := trec.reordered(stored.run)):
        say(
            settings,
            f"{tied:,} of them {have(tied)} equal scores, which trec_eval and other tools put in another order: "
            "leave out --engine-scores to keep the order",
        )
