"""Plan of a bench, read from TOML: recipes, splits, and the baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from searchapp.app import index
from searchapp.app.comparison import Scoring
from searchapp.app.evaluate import GoldSource
from searchapp.config.settings import ENGINES, Settings
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.significance import PERMUTATIONS, SEED
from searchapp.files import read_text
from searchapp.formats.problems import Problems
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.judging.judgments import Aggregation, Rule, Unjudged
from searchapp.lucene.dataclass import dataclass
from searchapp.ranking import recipes
from searchapp.tasks import load
from searchapp.tasks import names as task_names
from searchapp.tasks.base import Task
from searchapp.tasks.folders import data_folder
from searchapp.text import choices_hint

# The name of a recipe, a task or a group, which is also a folder's name and part of a run's tag.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")

MAX_DEPTH = 1_000_000
MAX_PERMUTATIONS = 100_000_000

ADVICE = "`searchapp bench --example` prints a file to start from"

# The output of `searchapp bench --example`.
EXAMPLE = """\
# A bench ranks every recipe on every split and compares the results with the baseline. Run it with
# `searchapp bench FILE`. Finished runs are kept: you can stop the bench, extend it and run it again.

baseline = "bm25"                   # compared with all other recipes; default: the first one
# out = "bench"                     # folder of the runs and the result; default: named like this file
# engines = ["embedded"]            # embedded, elasticsearch or both; default: from the settings
# measures = ["nDCG@10", "R@100"]   # in addition to the official measures; default: those of the task

[recipes.bm25]                      # a recipe of the tasks, see `searchapp tasks show TASK`

[recipes.neighbours]

[recipes.narrow]
recipe = "neighbours"               # default: the name of the table
set = { k = 20 }                    # parameters, as with `searchapp rank --set`
tasks = ["nlps"]                    # default: all tasks of this file

[tasks.nlps]
splits = ["dev"]
# data = "data/nlps"                # default: the indexed folder
# depth = 500                       # documents per topic; default: from the task

[tasks.explanation-2021]
splits = ["dev"]

# judgments = true                  # score against judgments instead of the official gold
# [tasks.nlps.groups.long]          # a subset of the topics, in its own column
# file = "long.txt"                 # one id per line; or topics = ["12", "15"], or where = { field = "value" }
"""


@dataclass(frozen=True, slots=True)
class BenchRecipe:
    """A recipe under the name of its row."""

    name: str
    recipe: str
    parameters: Mapping[str, object]  # values of parameters, as in `rank --set`
    tasks: tuple[str, ...] | None = None  # the tables of the tasks that it ranks; None for all

    def is_for(self, task: BenchTask) -> bool:
        return self.tasks is None or task.name in self.tasks


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Topics of a task, selected by ids, or by the values of fields."""

    name: str
    topics: tuple[str, ...] = ()
    where: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class JudgedGold:
    """Judgments as gold, as in `evaluate --judgments`."""

    log: Path | None  # the file of the log; None for the log in the home directory
    aggregation: Aggregation
    unjudged: Unjudged


@dataclass(frozen=True, slots=True)
class BenchTask:
    """A task under the name of its table."""

    name: str
    task: Task
    data: Path  # the folder of its files
    splits: tuple[str, ...]
    depth: int
    measures: tuple[str, ...] = ()  # measures beside the official figures
    # Options of the scorer; `lenient` also applies to ranking.
    options: ScorerOptions = field(default_factory=ScorerOptions)
    groups: tuple[TopicGroup, ...] = ()
    judged: JudgedGold | None = None  # the gold, unless it is the official one


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """The content of the file."""

    path: Path
    out: Path  # the folder of the bench
    baseline: str
    engines: tuple[str, ...]  # empty for the engine of the settings
    recipes: tuple[BenchRecipe, ...]
    tasks: tuple[BenchTask, ...]
    permutations: int = PERMUTATIONS
    seed: int = SEED


def read_plan(path: Path, settings: Settings) -> BenchPlan:
    """Return the plan in a file; the settings' home directory knows the folders of indexed tasks.

    Raises:
        InvalidFiles: the file is missing or has problems, such as an unknown task, split, recipe or parameter.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    problems.raise_if_any(ADVICE)
    folder = path.absolute().parent
    out = root.text("out")
    measures = root.texts("measures", single=True) or ()
    engines = root.texts("engines", single=True) or ()
    for engine in engines:
        if engine not in ENGINES:
            root.wrong("unknown engine", f"engines contains {choices_hint(engine, ENGINES)}", "engines")
    task_names = [table.name for table in root.tables("tasks")]
    # An own task may be indexed on only one of several engines.
    stores = [replace(settings, engine=engine) for engine in engines if engine in ENGINES] or [settings]
    read_tasks = [_task(table, folder, stores, measures) for table in root.tables("tasks")]
    tasks = tuple(task for task in read_tasks if task is not None)
    bench_recipes = tuple(_recipe(table, task_names, tasks) for table in root.tables("recipes"))
    for key, tables in (("recipes", bench_recipes), ("tasks", task_names)):
        if not tables and isinstance(root.raw(key), dict | None):
            root.wrong("missing key", f"the file needs at least one table [{key}.NAME]", key)
    recipe_names = [recipe.name for recipe in bench_recipes]
    baseline = root.text("baseline") or next(iter(recipe_names), "")
    if recipe_names and baseline not in recipe_names:
        root.wrong("unknown recipe", f"baseline is {choices_hint(baseline, recipe_names)}", "baseline")
    plan = BenchPlan(
        path=path,
        out=folder / path.stem if out is None else folder / out,
        baseline=baseline,
        engines=engines,
        recipes=bench_recipes,
        tasks=tasks,
        permutations=root.whole("permutations", PERMUTATIONS, 1, MAX_PERMUTATIONS),
        seed=root.whole("seed", settings.seed_of(None, SEED), 0, 2**63 - 1),
    )
    root.finish()
    problems.raise_if_any(ADVICE)
    return plan


def _require_name(table: TomlTable, noun: str) -> None:
    if not NAME.fullmatch(table.name):
        table.wrong(
            "unusable name",
            f"{table.name!r} is not a valid name of {noun}: use up to 64 letters, digits and . _ + -, with a "
            "letter or digit first",
        )


def _recipe(table: TomlTable, task_names: list[str], tasks: tuple[BenchTask, ...]) -> BenchRecipe:
    _require_name(table, "a recipe")
    parameters: dict[str, object] = {}
    if (inner := table.table("set")) is not None:
        for key in inner.content:
            value = inner.raw(key)
            if isinstance(value, str | int | float | bool):
                parameters[key] = value
            else:
                inner.wrong("wrong value", f"{key} must be a number, a text in quotes, true or false", key)
        inner.finish()
    only = table.texts("tasks", single=True)
    for name in only or ():
        if name not in task_names:
            table.wrong("unknown task", f"tasks contains {choices_hint(name, task_names)}", "tasks")
    recipe = BenchRecipe(table.name, table.text("recipe", table.name) or "", parameters, only)
    table.finish()
    for task in tasks:
        if recipe.is_for(task):
            book = task.task.recipe_book()
            try:
                recipes.load(book, recipe.recipe, parameters)
            except (UsageError, DataError) as error:
                is_known = recipe.recipe in recipes.names(book)
                advice = "" if is_known else "; restrict the recipe to its tasks with tasks = [...]"
                table.wrong("unusable recipe", f"{error}{advice}")
    return recipe


def _task(
    table: TomlTable, folder: Path, stores: Sequence[Settings], measures: tuple[str, ...]
) -> BenchTask | None:
    """Return a task, or None if it is unknown; `stores` are the settings of each engine."""
    _require_name(table, "a task")
    reference = table.text("task", table.name) or ""
    if reference.endswith(".toml"):
        reference = str(folder / reference)
    elif reference not in task_names():
        own_files = (index.reference(settings, reference) for settings in stores)
        reference = next((file for file in own_files if file != reference), reference)
    data, hierarchy = table.text("data"), table.text("hierarchy")
    splits = table.texts("splits", single=True) or ()
    if not table.has("splits"):
        table.wrong("missing key", f"[tasks.{table.name}] needs splits, a list of the splits to rank")
    options = ScorerOptions(
        cutoff=table.whole("cutoff", 0, 1, MAX_DEPTH) or None,
        hierarchy=None if hierarchy is None else folder / hierarchy,
        knowledge_base=table.text("kb"),
        lenient=bool(table.truth("lenient")),
    )
    depth = table.whole("depth", 0, 1, MAX_DEPTH)
    own_measures = table.texts("measures", single=True) or ()
    groups = tuple(_group(inner, folder) for inner in table.tables("groups"))
    judged = _judged(table, folder)
    table.finish()
    try:
        task = load(reference)
        files = data_folder(task, stores[0].home, None if data is None else folder / data)
    except SearchappError as error:
        table.wrong("unusable task", str(error), "task")
        return None
    for split in splits:
        try:
            task.collection(files).split_files(split)
        except UsageError as error:
            table.wrong("unknown split", str(error), "splits")
    measures = tuple(dict.fromkeys((*own_measures, *measures)))
    try:
        require_measures(Scoring(GoldSource(measures=measures)).measures(task) if measures else ())
    except UsageError as error:
        table.wrong("unknown measure", str(error), "measures" if own_measures else None)
    return BenchTask(
        name=table.name,
        task=task,
        data=files,
        splits=splits,
        depth=depth or task.info.default_depth,
        measures=measures,
        options=options,
        groups=groups,
        judged=judged,
    )


def _judged(table: TomlTable, folder: Path) -> JudgedGold | None:
    value = table.raw("judgments")
    if not isinstance(value, bool | str | None):
        table.wrong(
            "wrong value",
            "judgments must be true, false, or the path of a judgment log in quotes",
            "judgments",
        )
    rule, unjudged = table.text("aggregation"), table.text("unjudged")
    annotators = table.texts("annotators", single=True)
    for key, name, known in (
        ("aggregation", rule, [*Rule]),
        ("unjudged", unjudged, [Unjudged.nonrelevant, Unjudged.condensed]),
    ):
        if name is not None and name not in known:
            table.wrong("unknown value", f"{key} is {choices_hint(name, known)}", key)
            return None
        if name is not None and not value:
            table.wrong("missing key", f"{key} requires judgments: add judgments = true", key)
    if annotators is not None and not value:
        table.wrong("missing key", "annotators requires judgments: add judgments = true", "annotators")
    if not value:
        return None
    return JudgedGold(
        folder / value if isinstance(value, str) else None,
        Aggregation(Rule(rule or Rule.majority), list(annotators) if annotators else None),
        Unjudged(unjudged or Unjudged.nonrelevant),
    )


def _group(table: TomlTable, folder: Path) -> TopicGroup:
    _require_name(table, "a group")
    topics, file, where = table.texts("topics", single=True), table.text("file"), table.mapping("where")
    if sum(table.has(key) for key in ("topics", "file", "where")) != 1:
        table.wrong("missing key", f"the group {table.name} needs exactly one of topics, file and where")
    elif file is not None:
        topics = _topic_ids(table, folder / file)
    table.finish()
    return TopicGroup(table.name, topics or (), where or None)


def _topic_ids(table: TomlTable, path: Path) -> tuple[str, ...]:
    try:
        lines = read_text(path, "utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8"
        table.wrong("unreadable file", f"{path} can't be read: {cause or error}", "file")
        return ()
    ids = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not ids:
        table.wrong("empty file", f"{path} contains no topic id", "file")
    return ids
