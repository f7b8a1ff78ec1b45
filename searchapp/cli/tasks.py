"""`searchapp tasks`: what there is to work on."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import typer

from searchapp.cli.common import JsonOption, command, print_json, stdout_console, warn
from searchapp.errors import EngineError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.tasks.base import Task


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def tasks(settings: Settings, as_json: JsonOption = False) -> None:
        """List the tasks with their splits, recipes and official measures, their data, and what is indexed."""
        from searchapp.fetching.folder import has_data
        from searchapp.ranking import recipes
        from searchapp.tasks import data_folder, load, names

        loaded = [load(name) for name in names()]
        indexed = _indexed(settings, loaded)
        described = [
            {
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
            for task in loaded
        ]
        if as_json:
            print_json({"tasks": described})
            return
        for task in loaded:
            _print(settings, task, recipes.names(task.recipe_book()), indexed)


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


def _print(settings: Settings, task: Task, recipes: Sequence[str], indexed: dict[str, int]) -> None:
    from rich.text import Text

    from searchapp.fetching.folder import has_data
    from searchapp.tasks import data_folder

    folder = data_folder(task, settings.home)
    documents = indexed.get(task.name)
    state = "unknown" if documents is None else f"{documents:,} documents" if documents else "nothing yet"
    rows = [
        ("splits", " ".join(task.splits)),
        ("recipes", " ".join(recipes)),
        ("official", f"{task.official_measure}, {task.official_file}"),
        ("data", f"{folder}{'' if has_data(folder) else f' (not there: searchapp data get {task.name})'}"),
        ("indexed", state),
    ]
    console = stdout_console()
    console.print(Text.assemble((task.name, "bold"), f"  {task.title}"), soft_wrap=True)
    for name, value in rows:
        console.print(Text.assemble((f"  {name:<9}", "dim"), value), soft_wrap=True)
