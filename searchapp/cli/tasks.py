"""`searchapp tasks`: what there is to work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from searchapp.cli.common import JsonOption, command, print_json, stdout_console
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.tasks.base import Task


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def tasks(settings: Settings, as_json: JsonOption = False) -> None:
        """List the tasks, their splits, recipes and official measures."""
        from searchapp.ranking import recipes
        from searchapp.tasks import load, names

        loaded = [load(name) for name in names()]
        if as_json:
            described = [_described(task, recipes.names(task.name), settings) for task in loaded]
            print_json({"tasks": described})
            return
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("task", "splits", "recipes", "official measure", "title"):
            table.add_column(heading)
        for task in loaded:
            found = " ".join(recipes.names(task.name))
            table.add_row(task.name, " ".join(task.splits), found, task.official_measure, task.title)
        stdout_console().print(table)


def _described(task: Task, recipes: list[str], settings: Settings) -> dict[str, object]:
    return {
        "task": task.name,
        "title": task.title,
        "about": task.about,
        "splits": list(task.splits),
        "recipes": recipes,
        "mapping": task.mapping,
        "official": {"measure": task.official_measure, "file": task.official_file},
        "data": str(settings.home / "data" / task.name),
    }
