"""`searchapp bench`, `ablate`, `learning-curve` and `tune`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from searchapp.app.experiments.tuning_space import SearchMethod
from searchapp.cli.commands import (
    LEARNING_SEED,
    PERMUTATIONS,
    SEED,
    DataOption,
    DepthOption,
    JsonOption,
    MaxCostOption,
    OverwriteOption,
    PermutationsOption,
    RunCommandOption,
    SeedOption,
    SetOption,
    TaskArgument,
    command,
    data_of,
    parameters_of,
)
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    LogOption,
    RankingScorerOptions,
    RuleOption,
    judged_grades,
)
from searchapp.cli.output import for_person, print_json, remark, say, show, stdout_console, warn, warn_all
from searchapp.cli.tables import chosen_layout, print_result
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.files import STDOUT, atomic_file, require_folder, require_place
from searchapp.judging.judgments import Aggregation, Rule
from searchapp.lucene.dataclass import dataclass
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted, have

if TYPE_CHECKING:
    from searchapp.app.experiments.bench_result import BenchResult
    from searchapp.app.experiments.cross_validation import CrossValidationRequest
    from searchapp.app.experiments.tuning import TrialResult, TuneResult
    from searchapp.tasks.base import Task


app = typer.Typer()


@command(app)
def bench(
    settings: Settings,
    file: Path | None = argument(
        "TOML file with recipes, tasks and the baseline: see --example.", default=None
    ),
    out: Path | None = option(
        "Folder for the runs and the result.",
        show_default="`out` of the file, or a folder named like the file",
    ),
    workers: int | None = option(
        "Cells to rank at the same time.", min=1, max=256, show_default="the number of processors"
    ),
    overwrite: bool = flag("Rank every cell again, even if it is up to date."),
    run_command: RunCommandOption = False,
    example: bool = flag("Print an example file and exit."),
    as_csv: bool = flag("Print the figures as CSV with full precision.", "--csv"),
    as_latex: bool = flag("Print the figures as LaTeX tables for the package booktabs.", "--latex"),
    as_markdown: bool = flag("Print the figures as Markdown tables.", "--markdown"),
    as_json: JsonOption = False,
) -> None:
    """Rank every recipe of a file on every split, and compare the figures with those of a baseline.

    Each cell is a run directory. A finished cell is kept until one of its inputs changes, so an interrupted bench
    continues when you run it again. If a cell fails, the bench reports it and continues. Figures and tests equal those
    of `searchapp evaluate` and `searchapp compare`.
    """
    from searchapp.app.experiments import bench_plan
    from searchapp.app.experiments.bench import BenchRequest, run_bench
    from searchapp.cli import experiment_tables

    layout = chosen_layout(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    if example:
        show(bench_plan.EXAMPLE.rstrip("\n"))
        return
    if file is None:
        raise UsageError("give the file of a bench; `searchapp bench --example` prints an example")
    plan = bench_plan.read_plan(file, settings)
    if out is not None:
        require_folder(out)
        plan = replace(plan, out=out)
    judged = {
        task.name: judged_grades(settings, task.task.name, task.judged.aggregation, task.judged.log)
        for task in plan.tasks
        if task.judged is not None
    }
    result = run_bench(
        BenchRequest(plan, settings, workers, overwrite, run_command, judged), for_person(settings)
    )
    print_result(layout, result.to_json, lambda: experiment_tables.bench_printout(result))
    _report(settings, result)


def _report(settings: Settings, bench_result: BenchResult) -> None:
    cells = [cell for _, _, cell in bench_result.cells]
    ranked = sum(cell.ranked for cell in cells)
    for column in bench_result.columns:
        for system, cell in zip(bench_result.systems, column.cells, strict=True):
            for warning in () if cell is None or column.group is not None else cell.warnings:
                warn(f"{column.name}, {system.name}: {warning}")
        for warning in column.warnings:
            warn(f"{column.name}: {warning}")
    faults: dict[str, list[str]] = {}
    for system, column, cell in bench_result.failed:
        lenient = f"; in a bench, write lenient = true in [tasks.{column.task}]"
        advice = lenient if "--lenient" in (cell.error or "") else ""
        faults.setdefault(f"{cell.error}{advice}", []).append(f"{column.name}, {system.name}")
    for fault, names in faults.items():
        warn(f"{'; '.join(names)} {have(len(names))} no figures: {fault}")
    failed = [cell for _, _, cell in bench_result.failed]
    unchanged = len(cells) - ranked - sum(not cell.digest for cell in failed)
    say(
        settings,
        f"{ranked:,} of {counted(len(cells), 'cell')} ranked, {unchanged:,} kept, in {bench_result.folder}",
    )
    if failed:
        error = SearchappError(
            f"{len(failed):,} of {counted(len(cells), 'cell')} {have(len(failed))} no figures"
        )
        codes = {cell.exit_code for cell in failed}
        error.exit_code = codes.pop() if len(codes) == 1 else 1
        raise error


@dataclass(frozen=True, slots=True)
class RerankingOptions:
    """What rerankers may do and cost."""

    run_command: RunCommandOption = False
    max_cost: MaxCostOption = None


def _validation(
    settings: Settings,
    task: Task,
    data: Path | None,
    splits: list[str] | None,
    reranking: RerankingOptions,
    scorer: ScorerOptions,
    **more: Any,
) -> CrossValidationRequest:
    """Request the topics of splits in folds, by default all training topics; `more` are fields of the
    request."""
    from searchapp.app.experiments.cross_validation import CrossValidationRequest, training_splits
    from searchapp.embeddings.access import Access

    collection = task.collection(data_of(settings, task, data))
    chosen = tuple(dict.fromkeys(splits or training_splits(task, collection)))
    if not chosen:
        raise UsageError(
            f"{task.reference} has no training topics: give a split with --split, and add --allow-reported"
        )
    access = Access.of(settings, commands=reranking.run_command, max_cost=reranking.max_cost)
    return CrossValidationRequest(
        task, collection, chosen, lenient=scorer.lenient, options=scorer, access=access, **more
    )


RECIPE = "best"


@command(app)
def ablate(
    settings: Settings,
    *,
    task: TaskArgument,
    split: list[str] = option(
        "Split to rank: see `searchapp tasks`; repeatable, the topics of all splits are pooled.",
        default=REQUIRED,
        completes="splits",
    ),
    data: DataOption = None,
    recipe: str = option("Recipe to study.", default=RECIPE, completes="recipes"),
    set_: SetOption = None,
    measure: list[str] | None = option(
        "An additional measure in ir-measures' notation; repeatable.",
        metavar="NAME",
        completes="measures",
    ),
    depth: DepthOption = None,
    folds: int | None = option(
        "Number of folds for topics that are training topics themselves, such as those of train.",
        min=2,
        show_default="5; with fewer than 50 topics, one per topic",
    ),
    features: bool = flag("Also train a model without each kind of features; every kind needs one training."),
    permutations: PermutationsOption = PERMUTATIONS,
    seed: SeedOption = None,
    reranking: RerankingOptions,
    scorer: RankingScorerOptions,
    as_csv: bool = flag("Print the table as CSV with full precision.", "--csv"),
    as_latex: bool = flag("Print the table as LaTeX for the package booktabs.", "--latex"),
    as_markdown: bool = flag("Print the table in Markdown.", "--markdown"),
    as_json: JsonOption = False,
) -> None:
    """Run an ablation study: a recipe without each of its signals, and each signal alone.

    The table shows what each part gains and costs. Every signal ranks once, on this machine, for all variants. Figures
    equal those of `searchapp evaluate`; intervals and tests, paired by topic, those of `searchapp compare`. Topics that
    are training topics themselves are divided into folds, each ranked with the training topics of the other folds.
    Weights and parameters stay the same in all variants.
    """
    from searchapp.app.experiments.ablation import AblationRequest
    from searchapp.app.experiments.ablation import ablate as taken_apart
    from searchapp.cli import experiment_tables
    from searchapp.ranking import recipes

    layout = chosen_layout(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    loaded = load(task)
    request = AblationRequest(
        _validation(
            settings, loaded, data, split, reranking, scorer, folds=folds, depth=depth, models=settings.home
        ),
        recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
        measures=tuple(dict.fromkeys(measure or ())),
        features=features,
        permutations=permutations,
        seed=settings.seed_of(seed, SEED),
    )
    result = taken_apart(request, settings, for_person(settings))
    print_result(layout, result.to_json, lambda: experiment_tables.ablation_printout(result))
    warn_all([*request.recipe.raised(result.depth), *result.warnings])


REPETITIONS = 5  # as in `app.experiments.learning_curve`, which imports NumPy


@command(app)
def learning_curve(
    settings: Settings,
    *,
    task: TaskArgument,
    split: str = option(
        "Split with the topics to judge and score: see `searchapp tasks`.",
        default=REQUIRED,
        completes="splits",
    ),
    data: DataOption = None,
    recipe: str = option(
        "Recipe to rank with; it must learn from training topics.", default=RECIPE, completes="recipes"
    ),
    set_: SetOption = None,
    points: str | None = option(
        "Numbers of judged topics.",
        metavar="N,N,...",
        show_default="0, and 1/16, 1/8, 1/4, 1/2 and all of the topics to judge",
    ),
    test_topics: int | None = option(
        "Number of test topics: never judged, scored at every point.",
        min=1,
        show_default="half of them; with --judgments all unjudged topics",
    ),
    repetitions: int = option(
        "Samples of judged topics for each point.", default=REPETITIONS, min=1, max=1000
    ),
    seed: SeedOption = None,
    judgments_only: bool = flag("Learn only from judged topics, not from the training topics of the task."),
    judgments: bool = flag("Learn from people's judgments; by default from gold."),
    rule: RuleOption = Rule.majority,
    annotator: AnnotatorsOption = None,
    log: LogOption = None,
    measure: str | None = option(
        "Measure to score by, in ir-measures' notation.",
        metavar="NAME",
        show_default="the official one",
        completes="measures",
    ),
    depth: DepthOption = None,
    reranking: RerankingOptions,
    scorer: RankingScorerOptions,
    out: Path | None = option("SVG file for the curve; - is stdout."),
    overwrite: OverwriteOption = False,
    as_csv: bool = flag("Print the points as CSV with full precision.", "--csv"),
    as_markdown: bool = flag("Print the points as a Markdown table.", "--markdown"),
    as_json: JsonOption = False,
) -> None:
    """Show how judging improves the ranking: the score of unjudged topics by the number of judged topics.

    The test topics of the split are never judged, and only they are scored. Growing samples of the other topics become
    training topics, like those of train. Their grades come from the official gold, or with --judgments from people's
    judgments. The embedded engine ranks on this machine.
    """
    from searchapp.app.experiments.learning_curve import LearningRequest
    from searchapp.app.experiments.learning_curve import learning_curve as learned
    from searchapp.cli import experiment_tables
    from searchapp.ranking import recipes
    from searchapp.report.charts import curve_picture

    layout = chosen_layout(json=as_json, csv=as_csv, markdown=as_markdown)
    if out is not None:
        require_place(out, replace=overwrite)
    loaded = load(task)
    request = LearningRequest(
        _validation(settings, loaded, data, [split], reranking, scorer, measure=measure, depth=depth),
        recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
        points=_numbers(points),
        test_topics=test_topics,
        judged=judged_grades(settings, loaded.name, Aggregation(rule, annotator), log) if judgments else None,
        repetitions=repetitions,
        seed=settings.seed_of(seed, LEARNING_SEED),
        judgments_only=judgments_only,
    )
    result = learned(request, settings, for_person(settings))
    if out is not None:
        with atomic_file(out, replace=overwrite) as file:
            file.write(curve_picture(result))
        say(settings, f"wrote the curve to {out}")
    warn_all(request.recipe.raised(result.depth))
    if out != STDOUT:
        width = stdout_console().width
        print_result(layout, result.to_json, lambda: experiment_tables.curve_printout(result, width))


def _numbers(points: str | None) -> tuple[int, ...]:
    result = []
    for text in [] if points is None else points.split(","):
        if not text.strip().isdecimal():
            raise UsageError(f"--points {points}: give whole numbers separated by commas, such as 0,50,100")
        result.append(int(text))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class TuningScorerOptions(ScorerOptions):
    """Options of the official scorer without `--lenient`, which `tune` declares itself."""

    lenient: bool = False


@command(app)
def tune(
    settings: Settings,
    *,
    task: TaskArgument,
    param: list[str] | None = option(
        "Parameter to tune and its values: NAME=1,2,3, NAME=LOW:HIGH or NAME=LOW:HIGH:log; repeatable. NAME "
        "is a parameter of --set, or k1 or b of the mapping.",
        metavar="NAME=VALUES",
    ),
    space: Path | None = option("TOML file with a table [params]: the same names and values."),
    recipe: str | None = option("Recipe to tune.", show_default="the task's own", completes="recipes"),
    set_: SetOption = None,
    data: DataOption = None,
    split: list[str] | None = option(
        "Split to cross-validate; repeatable. Default: the splits of the training topics.",
        completes="splits",
    ),
    search: SearchMethod = option(
        "grid: all combinations; random: --trials random ones; halving: successive halving, which keeps the "
        "best third at each step on more topics.",
        default=SearchMethod.random,
    ),
    trials: int | None = option(
        "Number of combinations to try.", min=1, max=10_000, show_default="30; all of a grid"
    ),
    folds: int | None = option(
        "Number of folds.", min=2, show_default="5; with fewer than 50 topics, one per topic"
    ),
    seed: SeedOption = None,
    measure: str | None = option(
        "Measure to maximise, in ir-measures' notation or by its official name.",
        show_default="the official measure",
    ),
    depth: int | None = option("Documents per topic; default: the task's depth.", min=1),
    reranking: RerankingOptions,
    scorer: TuningScorerOptions,
    workers: int = option("Number of processes; it does not change the results.", default=1, min=1, max=64),
    out: Path | None = option("TOML file for the best recipe, to use as TASK of `rank`; - is stdout."),
    overwrite: OverwriteOption = False,
    trials_dir: Path | None = option(
        "Folder with the finished trials, from which an interrupted tuning continues.",
        show_default="a folder in the home directory",
    ),
    restart: bool = flag("Discard the finished trials."),
    allow_reported: bool = flag(
        "Allow tuning on a split for which results are reported; runs and tables record it."
    ),
    lenient: bool = flag(
        "Skip invalid topics and training topics, and continue where the official scorer stops."
    ),
    as_json: JsonOption = False,
) -> None:
    """Tune parameters of a recipe by cross-validation on training topics, and write the best recipe.

    Each topic is ranked with the training topics of the other folds. An interrupted tuning continues when you run the
    same command again. The embedded engine ranks on this machine; its results hold for Elasticsearch too, because both
    engines rank alike.
    """
    from searchapp.app.experiments import tuning
    from searchapp.app.experiments.tuning import TuneRequest
    from searchapp.app.experiments.tuning import tune as carry_out
    from searchapp.app.experiments.tuning_space import read_params, read_space

    loaded = load(task)
    if out is not None:
        tuning.require_places(out, overwrite=overwrite)
    dimensions = [*([] if space is None else read_space(space)), *read_params(param or [])]
    options = replace(scorer, lenient=lenient)
    request = TuneRequest(
        validation=_validation(
            settings,
            loaded,
            data,
            split,
            reranking,
            options,
            measure=measure,
            folds=folds,
            seed=settings.seed_of(seed, LEARNING_SEED),
            depth=depth,
        ),
        recipe=recipe or loaded.info.default_recipe,
        params=dimensions,
        set=parameters_of(set_ or []),
        search=search,
        trials=trials,
        workers=workers,
        reported=allow_reported,
        trials_dir=trials_dir,
        restart=restart,
    )
    try:
        result = carry_out(request, settings, for_person(settings))
    except KeyboardInterrupt:
        remark("finished trials are kept: run the same command again to continue")
        raise
    written = [] if out is None else tuning.write_recipe(result, out, overwrite=overwrite)
    if as_json:
        print_json({**result.to_json(), "out": [str(path) for path in written]})
    elif out != STDOUT:
        _print_trials(result)
    warn_all(result.warnings)
    for trial in result.trials:
        if trial.error is not None:
            warn(f"trial {trial.trial}, {_set(trial)}, failed: {trial.error}")
    if result.reported:
        warn(
            f"tuned on a split for which results are reported ({', '.join(result.reported)}): this recipe's "
            "figures there are too optimistic"
        )
    if written and out != STDOUT:
        index = f"`searchapp index {written[0]}`, then " if len(written) > 1 else ""
        say(
            settings,
            f"wrote {written[0]}: {index}`searchapp rank {written[0]} --split SPLIT --out DIR`",
        )


def _print_trials(tune_result: TuneResult) -> None:
    from searchapp.app.comparison import number
    from searchapp.cli.experiment_tables import trials_table

    trials_table(tune_result).print(stdout_console())
    request = tune_result.request
    remark(
        f"{request.validation.task.name}/{request.recipe}, {', '.join(request.validation.splits)}: "
        f"{counted(tune_result.folds, 'fold')}, seed {request.validation.seed}; "
        f"{counted(len(tune_result.trials) - 1, 'trial')}, {request.search.value}; differences from the "
        "original recipe, randomisation test"
    )
    if tune_result.chosen is not None:
        remark(
            "the best of many trials is too optimistic: cross-validated, with the best trial of the other "
            f"folds for each topic, the value is {number(tune_result.chosen)}"
        )


def _set(trial: TrialResult) -> str:
    return " ".join(f"{name}={value}" for name, value in trial.set.items()) or "–"
