"""Saved searches in `searchapp search`: one that is named, and the list of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from searchapp.cli.output import print_json, say, stdout_console
from searchapp.settings import Settings
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.kept_searches import KeptSearch
    from searchapp.app.search import SearchRequest
    from searchapp.tasks.base import Task


def request_for(settings: Settings, task: Task, name: str, request: SearchRequest) -> SearchRequest:
    """A request for a saved search; a recipe and filters that are given take the place of its own.

    Raises:
        UsageError: there is none of that name.
    """
    from searchapp.app.kept_searches import Saved

    found = Saved(settings.home, task.name).search(name)
    return replace(
        request,
        text=found.text,
        literal=found.literal,
        recipe=request.recipe or found.recipe,
        filters=request.filters or found.filters,
    )


def list_saved(settings: Settings, task: Task, *, as_json: bool) -> None:
    """Print the saved searches of a task, the latest first."""
    from rich.text import Text

    from searchapp.app.kept_searches import Saved

    searches = Saved(settings.home, task.name).searches()
    if as_json:
        saved = [{"name": name, **_described(search)} for name, search in searches.items()]
        print_json({"task": task.name, "saved": saved})
        return
    for name, search in searches.items():
        words = search.text if search.like is None else f"like {search.like}"
        more = [search.recipe, *(f"{one.field}={one.value}" for one in search.filters)]
        line = Text.assemble((visible_line(name), "bold"), "  ", visible_line(words))
        line.append("".join(f"  {visible_line(one)}" for one in more if one), style="dim")
        stdout_console().print(line, soft_wrap=True)
    if not searches:
        say(settings, f"no search of {task.name} is saved: the search screen saves them")


def _described(search: KeptSearch) -> dict[str, object]:
    fields = search.to_json()
    return {"words": fields.pop("text"), **fields}
