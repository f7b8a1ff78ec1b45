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
                min=1,
                help="Documents that are ranked, the task's own depth by default; what is behind is looked for deeper.",
                show_default=False,
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Say why a document is at its rank for a topic, or why it has none.

        The topic is ranked as `rank` does, and deeper where the document is behind that. What is said of a score is
        what it was made of: each signal of the recipe, the terms that matched, the solved topics that voted, the
        features that a model went by.
        """
        from searchapp.app.explain_topic import ExplainRequest
        from searchapp.app.explain_topic import explain as explained
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
        said = found.explained.said(
            loaded.name, f" for the topic {found.topic.id} ({loaded.name} {found.split})"
        )
        about = {
            "task": loaded.name,
            "split": found.split,
            "topic": found.topic.id,
            "recipe": chosen.name,
            "depth": found.depth,
            "deeper": found.explained.deeper,
        }
        print_why(found.explained.why, said, about, as_json=as_json)
