"""Opens the topics of a run, or of what a recipe ranks now, with all that is needed to look at them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.index_sources import LocalFirst
from searchapp.app.ranked_now import Ranks, now_pages, usual_split
from searchapp.app.run_pages import RunPages
from searchapp.app.topics import RunTopics
from searchapp.engines import open_engine
from searchapp.errors import SearchappError, UsageError
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.ranking.recipe import Recipe
from searchapp.runs.directory import Manifest
from searchapp.settings import Settings
from searchapp.tasks.base import Grades, Task
from searchapp.tasks.folders import data_folder


@dataclass(frozen=True, slots=True)
class TopicsRequest:
    """Which topics are wanted: those of a `run` or, without one, of a split that a recipe ranks now.

    `data` is the folder of the topics, if they are not where the run or the task has them. Of each ranking the first
    `depth` documents count, all by default.
    """

    run: Path | None = None
    recipe: str | None = None
    split: str | None = None
    data: Path | None = None
    depth: int | None = None


def open_topics(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    warn: Callable[[str], None],
    gold: Callable[[], Grades] | None = None,
) -> RunTopics:
    """The topics of a request; what is opened for them is closed with `opened`, `gold` is that of `RunTopics`.

    Raises:
        UsageError: the request makes no sense.
        DataError: files can't be read.
        EngineError: the documents can't be had.
    """
    documents = opened.enter_context(closing(LocalFirst(settings, progress, warn, copy=False)))
    if request.run is None:
        pages, ranks = open_now(opened, task, request, settings, progress, documents)
        return RunTopics(task, pages, lambda: ranks, request.depth, gold)
    if request.recipe is not None:
        raise UsageError("--recipe ranks now, and --run names what was ranked: leave one of them out")
    pages = RunPages.open(task, documents, request.run, request.data, home=settings.home, split=request.split)
    recipe, split = _recipe_of(task, pages.manifest), pages.split
    if recipe is None or split is None:
        return RunTopics(task, pages, None, request.depth, gold)

    def ranks_of_run() -> Ranks:
        engine = opened.enter_context(closing(open_engine(settings)))
        return Ranks.open(task, engine, pages.collection, split, recipe, progress, settings.home)

    return RunTopics(task, pages, ranks_of_run, request.depth, gold)


def open_now(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    documents: LocalFirst,
) -> tuple[RunPages, Ranks]:
    """What a recipe ranks now for the topics of a split, and the recipe, ready to rank.

    Raises:
        as `open_topics` does.
    """
    recipe = recipes.load(task.recipe_book(), request.recipe or task.info.default_recipe)
    folder = data_folder(task, settings.home, request.data)
    collection = task.collection(folder)
    split = request.split or usual_split(task, collection)
    task.info.require_split(split)
    engine = opened.enter_context(closing(open_engine(settings)))
    ranks = Ranks.open(task, engine, collection, split, recipe, progress, settings.home)
    depth = max(task.info.default_depth, request.depth or 0)
    return now_pages(task, documents, collection, split, ranks, depth), ranks


def _recipe_of(task: Task, manifest: Manifest | None) -> Recipe | None:
    """The recipe that a run was made by; None where it is not known any more, or the run is none of searchapp's."""
    if manifest is None:
        return None
    try:
        return recipes.load(
            task.recipe_book(), str(manifest.recipe["name"]), manifest.recipe.get("parameters") or {}
        )
    except (SearchappError, KeyError):
        return None
