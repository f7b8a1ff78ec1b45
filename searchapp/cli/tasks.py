"""`searchapp tasks`: what there is to work on, and a start for a task of one's own."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    Group,
    JsonOption,
    OverwriteOption,
    SetOption,
    TaskArgument,
    command,
    parameters_of,
)
from searchapp.cli.output import print_json, say, stdout_console, warn
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, EngineError, SearchappError, UsageError
from searchapp.files import whole_file
from searchapp.options import argument, option
from searchapp.tasks import folders, load, names
from searchapp.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from searchapp.app.index import OwnTask
    from searchapp.tasks.base import Task


app = typer.Typer()

group = typer.Typer(cls=Group)
app.add_typer(group, name="tasks")


@command(group, of_group=True)
def tasks(settings: Settings, as_json: JsonOption = False) -> None:
    """List the tasks with their splits, recipes and official measures, their data, and what is indexed."""
    loaded = [load(name) for name in names()]
    indexed, own = _indexed(settings, loaded)
    _warn_of_what_is_remembered(settings)
    unreadable = []
    for one in own:
        try:
            loaded.append(load(str(one.file)))
            indexed[loaded[-1].reference] = one.documents
        except SearchappError as error:
            unreadable.append({"task": one.name, "file": str(one.file), "indexed": one.documents})
            warn(f"{one.name}, with {counted(one.documents, 'document')} indexed, can't be read: {error}")
    if as_json:
        described = [_described(settings, task, indexed) for task in loaded]
        print_json({"tasks": described, "unreadable": unreadable})
        return
    for task in loaded:
        _print(task.name, task.info.title, _rows(settings, task, indexed))


@command(group)
def show(
    settings: Settings,
    task: TaskArgument,
    recipe: str | None = option(
        "Show what can be set of this recipe with --set, with the values that it has.",
        completes="recipes",
    ),
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything about one task: its recipes, grades, measures and breakdowns too."""
    loaded = load(task)
    if recipe is not None or set_:
        _show_recipe(loaded, recipe or loaded.info.default_recipe, set_ or [], as_json=as_json)
        return
    indexed, _own = _indexed(settings, [loaded])
    _warn_of_what_is_remembered(settings)
    if as_json:
        described = _described(settings, loaded, indexed)
        further = {
            "default_recipe": loaded.info.default_recipe,
            "search_recipe": loaded.info.search_recipe,
            "depth": loaded.info.default_depth,
            "judging_depth": loaded.info.judging_depth,
            "grades": list(loaded.info.grades),
            "measures": list(loaded.info.measures),
            "breakdowns": list(loaded.breakdowns),
        }
        print_json({**described, **further})
        return
    _print(loaded.name, loaded.info.title, [*_rows(settings, loaded, indexed), *_more_rows(loaded)])


@command(group)
def new(
    settings: Settings,
    path: Path = argument("The file to write.", default=Path("task.toml")),
    documents: list[Path] | None = option(
        "A file of documents: JSONL, CSV or TSV, also with gzip; may be repeated."
    ),
    topics: Path | None = option("A file of topics, likewise."),
    gold: Path | None = option("Grades of documents for the topics: TREC qrels, or likewise."),
    header: bool | None = option(
        "Whether the first lines of tables name their columns; by default detected, and reported.",
        "--header/--no-header",
    ),
    name: str | None = option("Name of the task; by default that of the file."),
    overwrite: OverwriteOption = False,
) -> None:
    """Write a TOML file that describes a task of your own, to start from.

    The given files are read, and their columns filled in: check the result.
    """
    from searchapp.tasks.own import starter

    if path.suffix.lower() != ".toml":
        raise UsageError(f"{path}: a task file's name must end in .toml")
    of_documents = [starter.look_at(file, header=header) for file in documents or ()]
    of_topics = None if topics is None else starter.look_at(topics, header=header)
    of_gold = None if gold is None else starter.look_at(gold, gold=True, header=header)
    text = starter.text_of(path, name or starter.name_for(path), of_documents, of_topics, of_gold)
    for seen in (*of_documents, of_topics, of_gold):
        if seen is not None and seen.assumed is not None:
            say(settings, seen.assumed)
    with whole_file(path, replace=overwrite) as file:
        file.write(text.encode())
    say(settings, f"{path} is written: look through it, and then `searchapp index {path}`")


def _show_recipe(task: Task, name: str, set_: list[str], *, as_json: bool) -> None:
    """Show what can be set of a recipe, and the values that it has, of which some may have been set already."""

    from searchapp.ranking import recipes

    book = task.recipe_book()
    recipe = recipes.load(book, name, parameters_of(set_))
    found = recipes.settable(book, recipe)
    if as_json:
        described = {"task": task.name, "recipe": name, "about": recipe.about}
        print_json({**described, "settable": [asdict(one) for one in found]})
        return
    rows = [(one.name, f"{_value(one.value)}: {one.about} ({one.kind})") for one in found]
    if not rows:
        rows = [("settable", "nothing: it has no parameters and no numbers")]
    _print(f"{task.name}/{name}", recipe.about, rows)


def _value(value: object) -> str:
    return "(left out)" if value is None else str(value)


def _described(settings: Settings, task: Task, indexed: Mapping[str, int]) -> dict[str, object]:
    from searchapp.fetching.sources import has_data
    from searchapp.ranking import recipes

    folder, remembered = _folder(settings, task)
    return {
        "task": task.name,
        "file": None if task.info.file is None else str(task.info.file),
        "variant": None if task.info.variant is None else str(task.info.variant),
        "title": task.info.title,
        "about": task.info.about,
        "splits": list(task.info.splits),
        "recipes": recipes.names(task.recipe_book()),
        "mapping": task.info.mapping,
        "official": {"measure": task.info.official_measure, "file": task.info.official_file},
        "data": str(folder),
        "data_found": has_data(folder),
        "data_remembered": remembered,
        "indexed": indexed.get(task.reference),
    }


def _folder(settings: Settings, task: Task) -> tuple[Path, bool]:
    """Where the files of a task are looked for, and whether that is remembered from `index --data`."""
    with suppress(DataError):
        found = folders.find(task, settings.home)
        return found.path, found.is_remembered
    return folders.own_folder(task, settings.home), False


def _warn_of_what_is_remembered(settings: Settings) -> None:
    """Say once that it can't be read; where the files are that were fetched is known all the same."""
    try:
        folders.remembered_folders(settings.home)
    except DataError as error:
        warn(str(error))


def _indexed(settings: Settings, tasks: Sequence[Task]) -> tuple[dict[str, int], list[OwnTask]]:
    """The number of indexed documents of each task, and the user's own tasks; nothing without an engine to ask."""
    from searchapp.app import index

    try:
        with closing(open_engine(settings)) as engine:
            found = {
                task.reference: next(filter(None, map(engine.index_info, task.info.index_names)), None)
                for task in tasks
            }
            own = index.own_tasks(index.stored_versions(engine))
    except EngineError as error:
        warn(str(error))
        return {}, []
    return {name: info.documents if info else 0 for name, info in found.items()}, own


def _rows(settings: Settings, task: Task, indexed: Mapping[str, int]) -> list[tuple[str, str]]:
    """What people read of each task in the list."""
    from searchapp.ranking import recipes

    documents = indexed.get(task.reference)
    state = "unknown" if documents is None else counted(documents, "document") if documents else "nothing yet"
    return [
        ("splits", " ".join(task.info.splits)),
        ("recipes", " ".join(recipes.names(task.recipe_book()))),
        ("official", f"{task.info.official_measure}, {task.info.official_file}"),
        *(("file", str(file)) for file in (task.info.file, task.info.variant) if file is not None),
        ("data", _data(settings, task)),
        ("indexed", state),
    ]


def _data(settings: Settings, task: Task) -> str:
    """The folder of a task's files, and what there is to know of it."""
    from searchapp.fetching.sources import has_data

    folder, remembered = _folder(settings, task)
    if has_data(folder):
        return f"{folder} (remembered from `index --data`)" if remembered else str(folder)
    advice = f"index {task.reference} --data DIR" if remembered else f"data get {task.name}"
    return f"{folder} (not there{' any more' if remembered else ''}: searchapp {advice})"


def _more_rows(task: Task) -> list[tuple[str, str]]:
    """What else is shown of one task."""
    recipes = task.recipe_book().recipes
    return [
        ("about", task.info.about),
        ("mapping", task.info.mapping),
        ("depth", f"{task.info.default_depth:,} ranked, {task.info.judging_depth:,} judged"),
        ("grades", ", ".join(_grade(grade, label) for grade, label in enumerate(task.info.grades))),
        ("measures", " ".join(task.info.measures)),
        ("--by", " ".join(task.breakdowns) or "(no breakdowns)"),
        *((name, str(recipes[name].get("about", ""))) for name in sorted(recipes)),
    ]


def _print(name: str, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a name, a title and rows; on a terminal long values go on below themselves."""
    from textwrap import TextWrapper

    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((visible(name), "bold"), f"  {visible(title)}"), soft_wrap=True)
    width = max(len("official"), *(len(visible(name)) for name, _value in rows))
    indent = " " * (width + 3)
    wrapper = TextWrapper(
        width=console.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for name, value in rows:
        below = wrapper.fill(visible(value)).removeprefix(indent)
        console.print(Text.assemble((f"  {visible(name):<{width}} ", "dim"), below), soft_wrap=True)


def _grade(grade: int, label: str) -> str:
    """A grade and what it is called, if it has a name."""
    return label if label == str(grade) else f"{grade} {label}"
