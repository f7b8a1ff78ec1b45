"""`searchapp bench`, `ablate`, `learning-curve` and `tune`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.app.experiments.tuning_space import Search
from searchapp.cli import complete
from searchapp.cli.commands import (
    PERMUTATIONS,
    SEED,
    DataOption,
    DepthOption,
    JsonOption,
    LenientRankingOption,
    OverwriteOption,
    PermutationsOption,
    SeedOption,
    SetOption,
    TaskArgument,
    command,
    data_of,
    parameters_of,
)
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    HierarchyOption,
    KbOption,
    LogOption,
    NearestOption,
    RuleOption,
    judged_grades,
)
from searchapp.cli.output import print_json, remark, say, show, stdout_console, warn
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError, UsageError
from searchapp.judging.judgments import Folding, Rule
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.experiments.bench_result import BenchResult
    from searchapp.app.experiments.tuning import Tried, TuneResult
    from searchapp.tasks.base import Collection, Task


def register_bench(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def bench(
        settings: Settings,
        file: Annotated[
            Path | None,
            typer.Argument(
                help="TOML file that names recipes, tasks and the baseline: see --example.",
                show_default=False,
            ),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option(
                help="Folder for the runs and the result.",
                show_default="what the file says, or a folder named like it",
            ),
        ] = None,
        jobs: Annotated[
            int | None,
            typer.Option(
                min=1, max=256, help="Cells that are ranked at once.", show_default="as many as processors"
            ),
        ] = None,
        overwrite: Annotated[
            bool, typer.Option("--overwrite", help="Rank every cell anew, also those that would be kept.")
        ] = False,
        example: Annotated[
            bool, typer.Option("--example", help="Print a file to start from, and do nothing else.")
        ] = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the figures as CSV, every one at full precision.")
        ] = False,
        as_latex: Annotated[
            bool, typer.Option("--latex", help="Print the figures as LaTeX tables for the package booktabs.")
        ] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the figures as Markdown tables.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Rank every recipe of a file on every split, and compare the figures with those of a baseline.

        Each cell is a run directory, which is kept as long as nothing has changed that it was made from: a bench that
        was stopped goes on where it was when it is run again. Cells that fail are reported, and the others go on. The
        figures and tests are those of `searchapp evaluate` and `searchapp compare`.
        """
        from searchapp.app.experiments import bench_plan
        from searchapp.app.experiments.bench import BenchRequest, run_bench
        from searchapp.cli import experiment_tables
        from searchapp.cli.output import for_person
        from searchapp.files import require_folder

        if sum((as_json, as_csv, as_latex, as_markdown)) > 1:
            raise UsageError("--json, --csv, --latex and --markdown are ways to print: choose one of them")
        if example:
            show(bench_plan.EXAMPLE.rstrip("\n"))
            return
        if file is None:
            raise UsageError(
                "name the file of the bench; `searchapp bench --example` prints one to start from"
            )
        plan = bench_plan.read_plan(file, settings)
        if out is not None:
            require_folder(out)
            plan = replace(plan, out=out)
        judged = {
            task.name: judged_grades(settings, task.task.name, task.judged.folding, task.judged.log)
            for task in plan.tasks
            if task.judged is not None
        }
        found = run_bench(BenchRequest(plan, settings, jobs, overwrite, judged), for_person(settings))
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(experiment_tables.bench_csv(found).rstrip("\n"))
        elif as_latex:
            show(experiment_tables.bench_latex(found).rstrip("\n"))
        elif as_markdown:
            show(experiment_tables.bench_markdown(found).rstrip("\n"))
        else:
            experiment_tables.print_bench(stdout_console(), found)
        _report(settings, found)


def _report(settings: Settings, found: BenchResult) -> None:
    """Say what was done, and end with the exit code of what has failed."""
    cells = [
        cell for column in found.columns if column.group is None for cell in column.cells if cell is not None
    ]
    made = sum(cell.made for cell in cells)
    for column in found.columns:
        for system, cell in zip(found.systems, column.cells, strict=True):
            for warning in () if cell is None or column.group is not None else cell.warnings:
                warn(f"{column.name}, {system.name}: {warning}")
        for warning in column.warnings:
            warn(f"{column.name}: {warning}")
    faults: dict[str, list[str]] = {}
    for system, column, cell in found.failed:
        lenient = f"; for --lenient write lenient = true in [tasks.{column.task}]"
        advice = lenient if "--lenient" in (cell.error or "") else ""
        faults.setdefault(f"{cell.error}{advice}", []).append(f"{column.name}, {system.name}")
    for fault, names in faults.items():
        warn(f"{'; '.join(names)} {'has' if len(names) == 1 else 'have'} no figures: {fault}")
    failed = [cell for _, _, cell in found.failed]
    kept = len(cells) - made - sum(not cell.digest for cell in failed)
    say(settings, f"{made:,} of {counted(len(cells), 'cell')} ranked, {kept:,} kept, in {found.folder}")
    if failed:
        have = "has" if len(failed) == 1 else "have"
        error = SearchappError(f"{len(failed):,} of {counted(len(cells), 'cell')} {have} no figures")
        codes = {cell.exit_code for cell in failed}
        error.exit_code = codes.pop() if len(codes) == 1 else 1
        raise error


RECIPE = "best"


def register_ablate(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def ablate(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            list[str],
            typer.Option(
                help="Split whose topics are ranked: see `searchapp tasks`. Can be given several times: their topics "
                "count together.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ],
        data: DataOption = None,
        recipe: Annotated[
            str, typer.Option(help="Recipe that is taken apart.", autocompletion=complete.recipes)
        ] = RECIPE,
        set_: SetOption = None,
        measure: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME",
                help="A measure beside the official one: any that ir-measures knows. Can be given several times.",
                show_default=False,
                autocompletion=complete.measures,
            ),
        ] = None,
        depth: DepthOption = None,
        folds: Annotated[
            int | None,
            typer.Option(
                min=2,
                help="In how many folds topics are divided that are solved ones of each other, as those of train.",
                show_default="5, of less than 50 topics each is one",
            ),
        ] = None,
        features: Annotated[
            bool,
            typer.Option(
                "--features",
                help="Train models without each kind of features too, which takes as many trainings.",
            ),
        ] = False,
        permutations: PermutationsOption = PERMUTATIONS,
        seed: SeedOption = SEED,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientRankingOption = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the table as CSV, every figure at full precision.")
        ] = False,
        as_latex: Annotated[
            bool, typer.Option("--latex", help="Print the table as LaTeX for the package booktabs.")
        ] = False,
        as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Take a recipe apart: without each of its signals, and each signal alone, with what a part gains and costs.

        Every signal ranks once, on this machine, whatever the number of variants. The figures are those of `searchapp
        evaluate`, intervals and tests those of `searchapp compare`, paired by topic. Topics that are solved ones
        themselves are divided into folds, each ranked by the solved topics of the others. Weights and parameters stay
        what they are when a part is left out.
        """
        from searchapp.app.experiments.ablation import AblationRequest
        from searchapp.app.experiments.ablation import ablate as taken_apart
        from searchapp.cli import experiment_tables
        from searchapp.cli.output import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.ranking import recipes
        from searchapp.tasks import load

        if sum((as_json, as_csv, as_latex, as_markdown)) > 1:
            raise UsageError("--json, --csv, --latex and --markdown are ways to print: choose one of them")
        loaded = load(task)
        request = AblationRequest(
            task=loaded,
            collection=loaded.collection(data_of(settings, loaded, data)),
            splits=tuple(dict.fromkeys(split)),
            recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
            depth=depth or loaded.info.default_depth,
            measures=tuple(dict.fromkeys(measure or ())),
            features=features,
            folds=folds,
            lenient=lenient,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            permutations=permutations,
            seed=seed,
        )
        found = taken_apart(request, settings, for_person(settings))
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(experiment_tables.ablation_csv(found).rstrip("\n"))
        elif as_latex:
            show(experiment_tables.ablation_latex(found).rstrip("\n"))
        elif as_markdown:
            show(experiment_tables.ablation_markdown(found).rstrip("\n"))
        else:
            experiment_tables.print_ablation(stdout_console(), found)
        for warning in (*request.recipe.raised(request.depth), *found.warnings):
            warn(warning)


# Those of `app.learning`, which takes NumPy to be imported.
REPETITIONS = 5
CURVE_SEED = 2021


def register_learning_curve(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def learning_curve(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            str,
            typer.Option(
                help="Split whose topics are judged and scored: see `searchapp tasks`.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ],
        data: DataOption = None,
        recipe: Annotated[
            str, typer.Option(help="Recipe to rank with, which learns.", autocompletion=complete.recipes)
        ] = RECIPE,
        set_: SetOption = None,
        points: Annotated[
            str | None,
            typer.Option(
                metavar="N,N,...",
                help="Numbers of judged topics.",
                show_default="0 and 1/16, 1/8, 1/4, 1/2 and all of those that can be judged",
            ),
        ] = None,
        unjudged: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Topics that are never judged, and always scored.",
                show_default="half of them; with --judgments all that nobody has judged",
            ),
        ] = None,
        repetitions: Annotated[
            int, typer.Option(min=1, max=1000, help="Samples of judged topics for each point.")
        ] = REPETITIONS,
        seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn at random.")] = CURVE_SEED,
        alone: Annotated[
            bool,
            typer.Option(
                "--alone", help="Learn from judged topics alone, and not from those that the task has solved."
            ),
        ] = False,
        judgments: Annotated[
            bool,
            typer.Option(
                "--judgments", help="Learn from what people have judged; by default gold stands in."
            ),
        ] = False,
        rule: RuleOption = Rule.majority,
        annotator: AnnotatorsOption = None,
        log: LogOption = None,
        measure: Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                help="Measure to score by: any that ir-measures knows.",
                show_default="the official one",
                autocompletion=complete.measures,
            ),
        ] = None,
        depth: DepthOption = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientRankingOption = False,
        out: Annotated[
            Path | None,
            typer.Option(help="SVG file to draw the curve into; - is stdout.", show_default=False),
        ] = None,
        overwrite: OverwriteOption = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the points as CSV, every figure at full precision.")
        ] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the points as a Markdown table.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Show what judging brings: the score of topics that nobody has judged, by how many others are judged.

        Some topics of the split are never judged, and these alone are scored. Of the others growing samples count as
        solved, like the topics of train. The organisers' gold says what is right, and stands in for a judge unless
        --judgments takes what people have judged. Topics rank on this machine.
        """
        from searchapp.app.experiments.learning_curve import LearningRequest
        from searchapp.app.experiments.learning_curve import learning_curve as learned
        from searchapp.cli import experiment_tables
        from searchapp.cli.output import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import STDOUT, require_place, whole_file
        from searchapp.ranking import recipes
        from searchapp.report.charts import curve_picture
        from searchapp.tasks import load

        if sum((as_json, as_csv, as_markdown)) > 1:
            raise UsageError("--json, --csv and --markdown are ways to print: choose one of them")
        if out is not None:
            require_place(out, replace=overwrite)
        loaded = load(task)
        request = LearningRequest(
            task=loaded,
            collection=loaded.collection(data_of(settings, loaded, data)),
            split=split,
            recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
            depth=depth or loaded.info.default_depth,
            points=_numbers(points),
            unjudged=unjudged,
            judged=judged_grades(settings, loaded.name, Folding(rule, annotator), log) if judgments else None,
            repetitions=repetitions,
            seed=seed,
            alone=alone,
            measure=measure,
            lenient=lenient,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
        )
        found = learned(request, settings, for_person(settings))
        if out is not None:
            with whole_file(out, replace=overwrite) as file:
                file.write(curve_picture(found))
            say(settings, f"the curve is drawn into {out}")
        for warning in request.recipe.raised(request.depth):
            warn(warning)
        if out == STDOUT:
            return
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(experiment_tables.curve_csv(found).rstrip("\n"))
        elif as_markdown:
            show(experiment_tables.curve_markdown(found).rstrip("\n"))
        else:
            experiment_tables.print_curve(stdout_console(), found)


def _numbers(points: str | None) -> tuple[int, ...]:
    """Whole numbers between commas."""
    found = []
    for one in [] if points is None else points.split(","):
        if not one.strip().isdecimal():
            raise UsageError(f"--points {points}: name whole numbers with commas between them, as 0,50,100")
        found.append(int(one))
    return tuple(found)


SHOWN_TRIALS = 10
"""How many trials a table has."""


def register_tune(app: typer.Typer) -> None:
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
                help="TOML file for the best recipe, which `rank` takes as a task; - is stdout.",
                show_default=False,
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
        from searchapp.app.experiments import tuning
        from searchapp.app.experiments.cross_validation import CrossValidationRequest
        from searchapp.app.experiments.tuning import TuneRequest
        from searchapp.app.experiments.tuning import tune as carry_out
        from searchapp.app.experiments.tuning_space import read_over, read_space
        from searchapp.cli.output import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import STDOUT
        from searchapp.tasks import load

        loaded = load(task)
        if out is not None:
            tuning.require_places(out, overwrite=overwrite)
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
        written = [] if out is None else tuning.write_recipe(found, out, overwrite=overwrite)
        if as_json:
            print_json({**found.to_json(), "out": [str(path) for path in written]})
        elif out != STDOUT:
            _print_trials(found)
        for warning in found.warnings:
            warn(warning)
        for one in found.trials:
            if one.error is not None:
                warn(f"trial {one.number}, {_set(one)}, failed: {one.error}")
        if found.reported:
            warn(
                f"{', '.join(found.reported)} is what figures are reported for: those of this recipe there are too good"
            )
        if written and out != STDOUT:
            index = f"`searchapp index {written[0]}`, then " if len(written) > 1 else ""
            say(
                settings,
                f"{written[0]} is written: {index}`searchapp rank {written[0]} --split SPLIT --out DIR`",
            )


def _training(task: Task, collection: Collection) -> tuple[str, ...]:
    from searchapp.app.experiments.cross_validation import training_splits
    from searchapp.errors import UsageError

    found = training_splits(task, collection)
    if not found:
        raise UsageError(
            f"{task.reference} has no split of solved topics: name the one to tune on with --split, and --on-reported"
        )
    return found


def _print_trials(found: TuneResult) -> None:
    """The best trials and the recipe as it was, with intervals and tests."""
    from searchapp.app.comparison import number, p_value, signed
    from searchapp.cli.tables import Column, print_columns
    from searchapp.report.wording import between

    best = [one for one in found.trials[:SHOWN_TRIALS] if one.error is None]
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
        f"{request.validation.task.name}/{request.recipe}, {', '.join(request.validation.splits)}: "
        f"{counted(found.folds, 'fold')}, seed {request.validation.seed}; "
        f"{counted(len(found.trials) - 1, 'trial')}, {request.search.value}; differences "
        "from the recipe as it was, randomisation test"
    )
    if found.chosen is not None:
        remark(
            "the best of many looks better than it is: each topic by the trial that is best on the other folds gives "
            f"{number(found.chosen)}"
        )


def _set(one: Tried) -> str:
    return " ".join(f"{name}={value}" for name, value in one.set.items()) or "–"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    register_tune(app)
    register_bench(app)
    register_ablate(app)
    register_learning_curve(app)
