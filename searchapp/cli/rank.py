"""`searchapp rank`: rank the documents for every topic of a split and write a run directory."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, OverwriteOption, TaskArgument, command, data_of
from searchapp.cli.judgments.options import AnnotatorsOption, LogOption, of_task, open_log, require_known
from searchapp.cli.output import print_json, say, warn, warn_of_skipped
from searchapp.cli.recipe_options import ExamplesOption, SetOption, parameters_of
from searchapp.errors import DataError
from searchapp.formats.problems import some
from searchapp.judging.fold import Folding, Rule
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.model import Example
    from searchapp.tasks.base import Collection, Task


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def rank(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            str,
            typer.Option(
                help="Split whose topics are ranked: see `searchapp tasks`.", autocompletion=complete.splits
            ),
        ],
        out: Annotated[Path, typer.Option(help="Run directory to write.", show_default=False)],
        data: DataOption = None,
        recipe: Annotated[
            str | None,
            typer.Option(
                help="Recipe to rank with: see `searchapp tasks show TASK`.",
                show_default=False,
                autocompletion=complete.recipes,
            ),
        ] = None,
        depth: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Documents per topic; the task's own depth by default.",
                show_default=False,
            ),
        ] = None,
        set_: SetOption = None,
        examples: ExamplesOption = None,
        tag: Annotated[
            str | None, typer.Option(help="Name of the run in TREC files.", show_default="searchapp-<recipe>")
        ] = None,
        with_judgments: Annotated[
            bool,
            typer.Option("--with-judgments", help="Let topics that people have judged count as solved ones."),
        ] = False,
        rule: Annotated[
            Rule,
            typer.Option(
                help="--with-judgments: how several annotators' grades become one, where nobody has decided."
            ),
        ] = Rule.majority,
        annotator: AnnotatorsOption = None,
        log: LogOption = None,
        lenient: Annotated[
            bool,
            typer.Option("--lenient", help="Leave invalid topics and solved topics out instead of stopping."),
        ] = False,
        overwrite: OverwriteOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Rank the documents for every topic of a split and write a run directory."""
        from searchapp.app import known_runs
        from searchapp.app.rank import RunRequest, make_run
        from searchapp.cli.progress import for_person
        from searchapp.engines import open_engine
        from searchapp.ranking import recipes
        from searchapp.runs import directory
        from searchapp.tasks import load

        loaded = load(task)
        directory.require_writable(out, overwrite=overwrite)  # before anything is done that takes time
        chosen = recipes.load(
            loaded.recipe_book(), recipe or loaded.info.default_recipe, parameters_of(set_ or [])
        )
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
        known_runs.remember(settings.home, out)
        warn_of_skipped(made.problems.skipped)
        warn_of_skipped(made.solved_problems.skipped)
        for warning in made.warnings:
            warn(warning)
        if made.shortfall:
            warn(f"the run has no official file: {made.shortfall}")
        manifest = made.manifest
        if manifest.empty:
            warn(
                f"no document was found for {len(manifest.empty):,} of the {manifest.topics:,} topics: "
                f"{some(manifest.empty)}"
            )
        say(
            settings,
            f"{loaded.name} {split}: {manifest.topics:,} topics ranked to depth {manifest.depth} "
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
    from searchapp.formats.problems import Problems
    from searchapp.judging.fold import judged

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
    say(settings, f"{len(examples)} judged topics count as solved ones")
    return examples
