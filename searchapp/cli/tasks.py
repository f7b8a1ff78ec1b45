"""`searchapp tasks`: what there is to work on, and a start for a task of one's own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.output import print_json, say, stdout_console, warn
from searchapp.errors import EngineError, UsageError
from searchapp.settings import Settings
from searchapp.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from searchapp.tasks.base import Task


def register(app: typer.Typer) -> None:
    """Add the group; by itself it lists."""
    group = typer.Typer()
    app.add_typer(group, name="tasks")

    @command(group, of_group=True)
    def tasks(settings: Settings, as_json: JsonOption = False) -> None:
        """List the tasks with their splits, recipes and official measures, their data, and what is indexed."""
        from searchapp.tasks import load, names

        loaded = [load(name) for name in names()]
        indexed = _indexed(settings, loaded)
        if as_json:
            print_json({"tasks": [_described(settings, task, indexed) for task in loaded]})
            return
        for task in loaded:
            _print(task, _rows(settings, task, indexed))

    @command(group)
    def show(settings: Settings, task: TaskArgument, as_json: JsonOption = False) -> None:
        """Show everything about one task: its recipes, grades, measures and breakdowns too."""
        from searchapp.tasks import load

        loaded = load(task)
        indexed = _indexed(settings, [loaded])
        if as_json:
            described = _described(settings, loaded, indexed)
            further = {
                "file": None if loaded.file is None else str(loaded.file),
                "default_recipe": loaded.default_recipe,
                "search_recipe": loaded.search_recipe,
                "depth": loaded.default_depth,
                "judging_depth": loaded.judging_depth,
                "grades": list(loaded.grades),
                "measures": list(loaded.measures),
                "breakdowns": list(loaded.scorer.breakdowns),
            }
            print_json({**described, **further})
            return
        _print(loaded, [*_rows(settings, loaded, indexed), *_more_rows(loaded)])

    @command(group)
    def new(
        settings: Settings,
        path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("task.toml"),
        documents: Annotated[
            list[Path] | None,
            typer.Option(
                help="A file of documents: .jsonl, .csv or .tsv; may be repeated.", show_default=False
            ),
        ] = None,
        topics: Annotated[
            Path | None, typer.Option(help="A file of topics, likewise.", show_default=False)
        ] = None,
        gold: Annotated[
            Path | None,
            typer.Option(
                help="Grades of documents for the topics: TREC qrels, or likewise.", show_default=False
            ),
        ] = None,
        name: Annotated[
            str | None,
            typer.Option(help="Name of the task; by default that of the file.", show_default=False),
        ] = None,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    ) -> None:
        """Write a TOML file that describes a task of your own, to start from.

        The files that are given are looked at, and their columns filled in: check what has become of them.
        """
        from searchapp.files import whole_file
        from searchapp.formats import graded
        from searchapp.tasks import starter

        if path.suffix.lower() != ".toml":
            raise UsageError(f"{path}: a task file's name must end in .toml")
        text = starter.text_of(
            path,
            name or starter.name_for(path),
            [starter.look_at(file) for file in documents or ()],
            None if topics is None else starter.look_at(topics),
            None if gold is None else starter.look_at(gold, graded.FORMATS),
        )
        with whole_file(path, replace=overwrite) as file:
            file.write(text.encode())
        say(settings, f"{path} is written: look through it, and then `searchapp index {path}`")


def _described(settings: Settings, task: Task, indexed: Mapping[str, int]) -> dict[str, object]:
    from searchapp.fetching.folder import has_data
    from searchapp.ranking import recipes
    from searchapp.tasks import data_folder

    return {
        "task": task.name,
        "title": task.title,
        "about": task.about,
        "splits": list(task.splits),
        "recipes": recipes.names(task.recipe_book()),
        "mapping": task.mapping,
        "official": {"measure": task.official_measure, "file": task.official_file},
        "data": str(data_folder(task, settings.home)),
        "data_found": has_data(data_folder(task, settings.home)),
        "indexed": indexed.get(task.name),
    }


def _indexed(settings: Settings, tasks: Sequence[Task]) -> dict[str, int]:
    """The number of indexed documents of each task; without the tasks whose index can't be asked for."""
    from searchapp.engines import open_engine

    try:
        with closing(open_engine(settings)) as engine:
            found = {task.name: engine.index_info(task.index_name) for task in tasks}
    except EngineError as error:
        warn(str(error))
        return {}
    return {name: info.documents if info else 0 for name, info in found.items()}


def _rows(settings: Settings, task: Task, indexed: Mapping[str, int]) -> list[tuple[str, str]]:
    """What people read of each task in the list."""
    from searchapp.fetching.folder import has_data
    from searchapp.ranking import recipes
    from searchapp.tasks import data_folder

    folder = data_folder(task, settings.home)
    documents = indexed.get(task.name)
    state = "unknown" if documents is None else f"{documents:,} documents" if documents else "nothing yet"
    return [
        ("splits", " ".join(task.splits)),
        ("recipes", " ".join(recipes.names(task.recipe_book()))),
        ("official", f"{task.official_measure}, {task.official_file}"),
        ("data", f"{folder}{'' if has_data(folder) else f' (not there: searchapp data get {task.name})'}"),
        ("indexed", state),
    ]


def _more_rows(task: Task) -> list[tuple[str, str]]:
    """What people read of one task besides."""
    recipes = task.recipe_book().recipes
    return [
        ("about", task.about),
        ("mapping", task.mapping),
        ("depth", f"{task.default_depth:,} ranked, {task.judging_depth:,} judged"),
        ("grades", ", ".join(_grade(grade, label) for grade, label in enumerate(task.grades))),
        ("measures", " ".join(task.measures)),
        ("--by", " ".join(task.scorer.breakdowns) or "(no breakdowns)"),
        *((name, str(recipes[name].get("about", ""))) for name in sorted(recipes)),
    ]


def _print(task: Task, rows: Sequence[tuple[str, str]]) -> None:
    """Print a task's title and rows; on a terminal long values go on below themselves."""
    from textwrap import TextWrapper

    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((task.name, "bold"), f"  {visible(task.title)}"), soft_wrap=True)
    width = max(len("official"), *(len(name) for name, _value in rows))
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
        console.print(Text.assemble((f"  {name:<{width}} ", "dim"), below), soft_wrap=True)


def _grade(grade: int, label: str) -> str:
    """A grade and what it is called, if it has a name."""
    return label if label == str(grade) else f"{grade} {label}"
