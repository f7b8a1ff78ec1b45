"""`searchapp tune`: try values of a recipe's parameters by cross-validation, and write the best recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.app.tune_space import Search
from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, OverwriteOption, TaskArgument, command, data_of
from searchapp.cli.output import print_json, remark, say, stdout_console, warn
from searchapp.cli.recipe_options import SetOption, parameters_of
from searchapp.cli.scoring_options import HierarchyOption, KbOption, NearestOption
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.tune_result import Tried, TuneResult
    from searchapp.tasks.base import Collection, Task

SHOWN = 10
"""How many trials a table has."""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def tune(
        settings: Settings,
        task: TaskArgument,
        over: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=VALUES",
                help="What is tuned: NAME=1,2,3, or NAME=LOW:HIGH, also NAME=LOW:HIGH:log. NAME is what --set takes, "
                "or k1 or b of the mapping. Can be given several times.",
                show_default=False,
            ),
        ] = None,
        space: Annotated[
            Path | None,
            typer.Option(help="A TOML file with a table `over` of the same.", show_default=False),
        ] = None,
        recipe: Annotated[
            str | None,
            typer.Option(
                help="Recipe that is tuned.", show_default="the task's own", autocompletion=complete.recipes
            ),
        ] = None,
        set_: SetOption = None,
        data: DataOption = None,
        split: Annotated[
            list[str] | None,
            typer.Option(
                help="Split whose topics are cross-validated, by default those of solved topics; can be given several "
                "times.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ] = None,
        search: Annotated[
            Search,
            typer.Option(
                help="grid: all combinations; random: --trials of them; halving: the best third of them on ever more "
                "topics."
            ),
        ] = Search.random,
        trials: Annotated[
            int | None,
            typer.Option(
                min=1, max=10_000, help="How many are tried.", show_default="30, of a grid all of them"
            ),
        ] = None,
        folds: Annotated[
            int | None,
            typer.Option(
                min=2, help="Folds.", show_default="5, or one for each topic where there are fewer than 50"
            ),
        ] = None,
        seed: Annotated[int, typer.Option(min=0, help="Of the folds, and of what is tried.")] = 2021,
        measure: Annotated[
            str | None,
            typer.Option(
                help="What is tuned for, in ir-measures' notation or by its official name.",
                show_default="the official measure",
            ),
        ] = None,
        depth: Annotated[
            int | None,
            typer.Option(
                min=1, help="Documents per topic; the task's own depth by default.", show_default=False
            ),
        ] = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        workers: Annotated[
            int, typer.Option(min=1, max=64, help="Processes that try; their number changes nothing else.")
        ] = 1,
        out: Annotated[
            Path | None,
            typer.Option(
                help="TOML file for the best recipe, which `rank` takes as a task.", show_default=False
            ),
        ] = None,
        overwrite: OverwriteOption = False,
        log: Annotated[
            Path | None,
            typer.Option(
                help="Folder in which trials are kept that are done.", show_default="one in the home folder"
            ),
        ] = None,
        restart: Annotated[bool, typer.Option("--restart", help="Forget trials that are done.")] = False,
        on_reported: Annotated[
            bool,
            typer.Option(
                "--on-reported",
                help="Let a split be tuned on that figures are reported for; runs and tables say so then.",
            ),
        ] = False,
        lenient: Annotated[
            bool,
            typer.Option(
                "--lenient",
                help="Leave invalid topics and solved topics out, and go on where the official scorer stops.",
            ),
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Try values of a recipe's parameters by cross-validation on solved topics, and write the best recipe.

        Each topic is ranked with the solved topics of the other folds. A tuning that was ended goes on when the same
        command is given again. What is found is for the embedded engine as for Elasticsearch, which rank alike; the
        trials run on this machine.
        """
        from searchapp.app import tuned_file
        from searchapp.app.cross_validation import CrossValidationRequest
        from searchapp.app.tune import tune as carry_out
        from searchapp.app.tune_result import TuneRequest
        from searchapp.app.tune_space import read_over, read_space
        from searchapp.cli.progress import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.tasks import load

        loaded = load(task)
        if out is not None:
            tuned_file.require_places(out, overwrite=overwrite)
        dimensions = [*([] if space is None else read_space(space)), *read_over(over or [])]
        collection = loaded.collection(data_of(settings, loaded, data))
        request = TuneRequest(
            validation=CrossValidationRequest(
                loaded,
                collection,
                tuple(dict.fromkeys(split)) if split else _training(loaded, collection),
                measure=measure,
                folds=folds,
                seed=seed,
                depth=depth,
                lenient=lenient,
                options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            ),
            recipe=recipe or loaded.info.default_recipe,
            over=dimensions,
            set=parameters_of(set_ or []),
            search=search,
            trials=trials,
            workers=workers,
            reported=on_reported,
            log=log,
            restart=restart,
        )
        try:
            found = carry_out(request, settings, for_person(settings))
        except KeyboardInterrupt:
            remark("trials that are done are kept: the same command goes on from there")
            raise
        written = [] if out is None else tuned_file.write(found, out, overwrite=overwrite)
        if as_json:
            print_json({**found.to_json(), "out": [str(path) for path in written]})
        else:
            _print(found)
        for one in found.trials:
            if one.error is not None:
                warn(f"trial {one.number}, {_set(one)}, failed: {one.error}")
        if found.reported:
            warn(
                f"{', '.join(found.reported)} is what figures are reported for: those of this recipe there are too good"
            )
        if written:
            index = f"`searchapp index {written[0]}`, then " if len(written) > 1 else ""
            say(
                settings,
                f"{written[0]} is written: {index}`searchapp rank {written[0]} --split SPLIT --out DIR`",
            )


def _training(task: Task, collection: Collection) -> tuple[str, ...]:
    from searchapp.app.cross_validation import training_splits
    from searchapp.errors import UsageError

    found = training_splits(task, collection)
    if not found:
        raise UsageError(
            f"{task.reference} has no split of solved topics: name the one to tune on with --split, and --on-reported"
        )
    return found


def _print(found: TuneResult) -> None:
    """The best trials and the recipe as it was, with intervals and tests."""
    from searchapp.app.comparison import number, p_value, signed
    from searchapp.cli.figures import Column, print_columns
    from searchapp.report.wording import between

    best = [one for one in found.trials[:SHOWN] if one.error is None]
    best += [] if found.shipped in best else [found.shipped]
    first = Column(
        "trial", ["as it was" if one.number == 0 else str(one.number) for one in best], is_text=True
    )
    tests = [one.tests for one in best]
    columns = [
        *(
            Column(name, [str(one.set.get(name, "")) for one in best])
            for name in (dimension.name for dimension in found.request.over)
        ),
        *(
            []
            if all(one.complete for one in best)
            else [Column("topics", [f"{one.topics:,}" for one in best])]
        ),
        Column(found.measure, [number(one.value) for one in best]),
        Column("95% interval", [between(one.interval) for one in best]),
        Column("difference", ["" if one is None else signed(one.mean) for one in tests]),
        Column("95% interval", ["" if one is None else between(one.interval, sign=True) for one in tests]),
        Column("p", ["" if one is None else p_value(one.randomisation.p) for one in tests]),
    ]
    print_columns(stdout_console(), first, columns, bold=[0])
    request = found.request
    remark(
        f"{request.validation.task.name}/{request.recipe}, {', '.join(request.validation.splits)}: {found.folds} "
        f"folds, seed {request.validation.seed}; {len(found.trials) - 1} trials, {request.search.value}; differences "
        "from the recipe as it was, randomisation test"
    )
    if found.chosen is not None:
        remark(
            "the best of many looks better than it is: each topic by the trial that is best on the other folds gives "
            f"{number(found.chosen)}"
        )


def _set(one: Tried) -> str:
    return " ".join(f"{name}={value}" for name, value in one.set.items()) or "–"
