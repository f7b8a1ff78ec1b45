"""`searchapp explain`: why a document is at its rank for a topic."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, TaskArgument, command, data_of
from searchapp.cli.recipe_options import SetOption, parameters_of
from searchapp.cli.why_text import print_why
from searchapp.settings import Settings
from searchapp.visible import visible_line


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def explain(
        settings: Settings,
        task: TaskArgument,
        document: Annotated[str, typer.Argument(help="Id of the document.")],
        topic: Annotated[str, typer.Option(help="Id of the topic.", show_default=False)],
        data: DataOption = None,
        split: Annotated[
            str | None,
            typer.Option(
                help="Split of the topic; by default the first one that has it.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ] = None,
        recipe: Annotated[
            str | None,
            typer.Option(
                help="Recipe that ranks; the task's own by default.",
                show_default=False,
                autocompletion=complete.recipes,
            ),
        ] = None,
        set_: SetOption = None,
        depth: Annotated[
            int | None,
            typer.Option(
                min=1, help="Documents that are ranked; the task's own depth by default.", show_default=False
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Say why a document is at its rank for a topic, or why it has none.

        The topic is ranked as `rank` does. What is said of a score is what it was made of: each signal of the recipe,
        the terms that matched, the solved topics that voted, the features that a model went by.
        """
        from searchapp.app.explain import ExplainRequest
        from searchapp.app.explain import explain as explained
        from searchapp.app.why import Standing
        from searchapp.cli.progress import for_person
        from searchapp.engines import open_engine
        from searchapp.ranking import recipes
        from searchapp.tasks import load

        loaded = load(task)
        chosen = recipes.load(
            loaded.recipe_book(), recipe or loaded.info.default_recipe, parameters_of(set_ or [])
        )
        if split is not None:
            loaded.info.require_split(split)
        collection = loaded.collection(data_of(settings, loaded, data))
        request = ExplainRequest(loaded, collection, chosen, topic, document, split, depth)
        with closing(open_engine(settings)) as engine:
            found = explained(request, engine, for_person(settings), settings.home)
        why, of_topic = (
            found.why,
            f"of the topic {visible_line(found.topic.id)} ({loaded.name} {found.split})",
        )
        sentences = {
            Standing.ranked: f"is at rank {why.rank or 0:,} {of_topic}, with the score {why.score or 0.0:.4f}",
            Standing.unknown: f"is not indexed: no document of {loaded.name} has this id",
            Standing.behind: f"is not among the first {found.depth:,} documents {of_topic}: rank deeper with --depth",
            Standing.no_match: f"is not in the ranking {of_topic}: nothing that the recipe looks for is in it",
        }
        about = {
            "task": loaded.name,
            "split": found.split,
            "topic": found.topic.id,
            "recipe": chosen.name,
            "depth": found.depth,
        }
        print_why(why, sentences, about, as_json=as_json)
