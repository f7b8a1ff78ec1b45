"""`searchapp rank`, `rerun` and `train`: make a run, make it again, train the models that a recipe ranks with."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    DataOption,
    ExamplesOption,
    JsonOption,
    OverwriteOption,
    RunArgument,
    SetOption,
    TaskArgument,
    command,
    data_of,
    recipe_of,
)
from searchapp.cli.judgment_options import AnnotatorsOption, LogOption, of_task, open_log, require_known
from searchapp.cli.output import for_person, print_json, say, warn, warn_of_skipped
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError
from searchapp.formats.problems import Problems, some
from searchapp.judging.judgments import Folding, Rule
from searchapp.options import REQUIRED, flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.model import Example
    from searchapp.ranking.signals.base import Inputs
    from searchapp.tasks.base import Collection, Task


app = typer.Typer()


@command(app)
def rank(
    settings: Settings,
    task: TaskArgument,
    split: str = option(
        "Split whose topics are ranked: see `searchapp tasks`.", default=REQUIRED, completes="splits"
    ),
    out: Path = option("Run directory to write.", default=REQUIRED),
    data: DataOption = None,
    recipe: str | None = option("Recipe to rank with: see `searchapp tasks show TASK`.", completes="recipes"),
    depth: int | None = option(
        "Documents per topic; the task's own depth by default. Signals that are fused rank as many as "
        "their window says, and more above it.",
        min=1,
    ),
    set_: SetOption = None,
    examples: ExamplesOption = None,
    tag: str | None = option("Name of the run in TREC files.", show_default="searchapp-<recipe>"),
    with_judgments: bool = flag("Let topics that people have judged count as solved ones."),
    rule: Rule = option(
        "--with-judgments: how several annotators' grades become one, where nobody has decided.",
        default=Rule.majority,
    ),
    annotator: AnnotatorsOption = None,
    log: LogOption = None,
    lenient: bool = flag("Leave invalid topics and solved topics out instead of stopping."),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rank the documents for every topic of a split and write a run directory."""
    from searchapp.app import runs
    from searchapp.app.rank import RunRequest, make_run
    from searchapp.runs import directory

    loaded = load(task)
    directory.require_writable(out, overwrite=overwrite)  # before anything is done that takes time
    chosen = recipe_of(loaded, recipe, set_)
    collection = loaded.collection(data_of(settings, loaded, data))
    judged: tuple[Example, ...] = ()
    if with_judgments:
        judged = _judged(settings, loaded, collection, split, Folding(rule, annotator), log)
    request = RunRequest(
        collection=collection,
        split=split,
        recipe=chosen,
        depth=depth or loaded.info.default_depth,
        tag=tag or f"searchapp-{chosen.name}",
        lenient=lenient,
        judged=judged,
        home=settings.home,
        examples=tuple(examples or ()),
    )
    with closing(open_engine(settings, lambda sentence: say(settings, sentence))) as engine:
        made = make_run(loaded, engine, request, out, for_person(settings), overwrite=overwrite)
    runs.remember_run(settings.home, out)
    warn_of_skipped(made.problems.skipped)
    warn_of_skipped(made.solved_problems.skipped)
    for warning in made.warnings:
        warn(warning)
    if made.shortfall:
        warn(f"the run has no official file: {made.shortfall}")
    manifest = made.manifest
    if manifest.empty:
        warn(
            f"no document was found for {len(manifest.empty):,} of the {counted(manifest.topics, 'topic')}: "
            f"{some(manifest.empty)}"
        )
    say(
        settings,
        f"{loaded.name} {split}: {counted(manifest.topics, 'topic')} ranked to depth {manifest.depth} "
        f"in {manifest.seconds:.1f} s, written to {out}",
    )
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


def _judged(
    settings: Settings, task: Task, collection: Collection, split: str, folding: Folding, log: Path | None
) -> tuple[Example, ...]:
    """The split's topics that people have judged, as solved ones."""
    from searchapp.judging.judgments import judged

    with open_log(settings, log, task.name) as opened:
        _, view = of_task(opened, task.name)
        require_known(folding.annotators, view, task.name)
        grades = judged(view, folding).grades
    examples = tuple(
        collection.judged_example(topic, grades[topic.id])
        for topic in collection.topics(split, Problems(lenient=True))
        if topic.id in grades
    )
    if not examples:
        raise DataError(
            f"nobody has judged a topic of {task.name} {split} yet: `searchapp judge {task.reference}`"
        )
    say(settings, f"{counted(len(examples), 'judged topic')} counted as solved")
    return examples


@command(app)
def rerun(
    settings: Settings,
    run: RunArgument,
    out: Path = option("Run directory to write.", default=REQUIRED),
    data: Path | None = option(
        "Folder with the documents and topics, if they are not where the run had them."
    ),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a run again, and report whether its files are equal to those of the first run.

    It is ranked by the copies of recipe, templates and mappings in the run directory, whatever the task has now,
    and with the documents and topics in the folder of the data. If the mappings are not those of the task any more,
    an index of their own is made for them. The exit code is 4 if a file differs, as that of `runs verify`.
    """
    from searchapp.app import rank as again
    from searchapp.app import runs
    from searchapp.runs import directory

    directory.require_writable(out, overwrite=overwrite)  # before anything is done that takes time
    with closing(open_engine(settings, lambda sentence: say(settings, sentence))) as engine:
        found = again.rerun(
            run, engine, out, for_person(settings), data=data, home=settings.home, overwrite=overwrite
        )
    runs.remember_run(settings.home, out)
    warn_of_skipped(found.made.problems.skipped)
    warn_of_skipped(found.made.solved_problems.skipped)
    for note in (*found.made.warnings, *found.notes):
        warn(note)
    if as_json:
        print_json(
            {
                "run": str(run),
                "again": str(out),
                "equal": not found.differences,
                "differences": found.differences,
                "notes": found.notes,
            }
        )
    if found.differences:
        raise DataError(f"{out} is not equal to {run} ({len(found.differences)}):", *found.differences)
    say(settings, f"{out} is equal to {run}: {counted(found.made.manifest.topics, 'topic')}")


RECIPE = "best"


@command(app)
def train(
    settings: Settings,
    task: TaskArgument,
    data: DataOption = None,
    split: str | None = option(
        "Split that will be ranked: its own topics are left out. By default the last one whose solved "
        "topics are there.",
        completes="splits",
    ),
    recipe: str = option("Recipe whose models are trained.", default=RECIPE, completes="recipes"),
    set_: SetOption = None,
    examples: ExamplesOption = None,
    workers: int = option(
        "Processes that train; their number changes nothing else.", default=1, min=1, max=64
    ),
    lenient: bool = flag("Leave invalid solved topics out instead of stopping."),
    rebuild: bool = flag("Train even if the model is there already."),
    as_json: JsonOption = False,
) -> None:
    """Train the models of a recipe on the solved topics that a split may be ranked by.

    A model that fuses signals learns from what they say of solved topics, so that the task must be indexed.

    `rank`, `search` and `topics` train what they need themselves, and keep it as this command does: in the home
    folder, under the digest of everything that training reads: solved topics, documents, parameters, seed, and the
    versions of searchapp, Python, scikit-learn, NumPy and SciPy. When one of them changes, they train it again.
    """
    from searchapp.app import models
    from searchapp.app.index import open_index, require_documents
    from searchapp.app.models import last_solved, signal_inputs

    loaded = load(task)
    chosen = recipe_of(loaded, recipe, set_)
    collection = loaded.collection(data_of(settings, loaded, data))
    ranked = loaded.info.require_split(split) if split else last_solved(loaded, collection)
    if examples:
        collection = collection.solved_by(examples)
    problems = Problems(lenient=lenient)
    progress = for_person(settings)
    kept = models.Models(loaded, collection, ranked, progress, settings.home, problems=problems)
    with ExitStack() as opened:

        def inputs() -> Inputs:
            engine = open_engine(settings, lambda sentence: say(settings, sentence))
            opened.enter_context(closing(engine))
            index = open_index(loaded, engine, collection.index_of(ranked))
            require_documents(loaded, index, collection)
            split_of = (collection, ranked)
            return signal_inputs(loaded, engine, index, lambda: split_of, progress, problems)

        made = models.train(kept, chosen, inputs, rebuild=rebuild, workers=workers)
    warn_of_skipped(problems.skipped)
    counts = [len(one.stored.header["withheld"]) for one in made if "withheld" in one.stored.header]
    for warning in models.withheld_warnings(counts, ranked):
        warn(warning)
    for one in made:
        header = one.stored.header
        done = "trained on" if one.is_new else "was there already, of"
        without = f" without {one.left_out}" if one.left_out else ""
        made_of = counted(len(header["labels"]), "label")
        if "trees" in header:
            made_of = f"{counted(header['trees'], 'tree')} of {counted(header['candidates'], 'candidate')}"
        say(
            settings,
            f"{loaded.name} {ranked}, {one.signal}{without}: {done} "
            f"{counted(header['solved'], 'solved topic')}, {made_of}, "
            f"{counted(len(header['features']), 'feature')}; kept in {one.path}",
        )
    if as_json:
        described = [dict(models.described(one)) for one in made]
        print_json({"task": loaded.name, "split": ranked, "recipe": chosen.name, "models": described})
