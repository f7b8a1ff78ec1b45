"""`searchapp train`: train the models of a recipe on solved topics."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, TaskArgument, command, data_of
from searchapp.cli.output import print_json, say, warn_of_skipped
from searchapp.cli.recipe_options import ExamplesOption, SetOption, parameters_of
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.ranking.signals.base import Inputs

RECIPE = "best"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def train(
        settings: Settings,
        task: TaskArgument,
        data: DataOption = None,
        split: Annotated[
            str | None,
            typer.Option(
                help="Split that will be ranked: its own topics are left out. By default the last one whose solved "
                "topics are there.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ] = None,
        recipe: Annotated[
            str,
            typer.Option(help="Recipe whose models are trained.", autocompletion=complete.recipes),
        ] = RECIPE,
        set_: SetOption = None,
        examples: ExamplesOption = None,
        workers: Annotated[
            int, typer.Option(min=1, max=64, help="Processes that train; their number changes nothing else.")
        ] = 1,
        lenient: Annotated[
            bool, typer.Option("--lenient", help="Leave invalid solved topics out instead of stopping.")
        ] = False,
        rebuild: Annotated[
            bool, typer.Option("--rebuild", help="Train even if the model is there already.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Train the models of a recipe on the solved topics that a split may be ranked by.

        A model that fuses signals learns from what they say of solved topics, so that the task must be indexed.

        `rank`, `search` and `topics` train what they need themselves, and keep it as this command does: in the home
        folder, under the digest of all that a model depends on. The same topics, seed and version of scikit-learn give
        the same model.
        """
        from searchapp.app import models
        from searchapp.app.index import open_index, require_documents
        from searchapp.app.signal_inputs import last_solved, signal_inputs
        from searchapp.cli.progress import for_person
        from searchapp.engines import open_engine
        from searchapp.formats.problems import Problems
        from searchapp.ranking import recipes
        from searchapp.tasks import load

        loaded = load(task)
        chosen = recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or []))
        collection = loaded.collection(data_of(settings, loaded, data))
        ranked = loaded.info.require_split(split) if split else last_solved(loaded, collection)
        if examples:
            collection = collection.solved_by(examples)
        problems = Problems(lenient=lenient)
        progress = for_person(settings)
        kept = models.Models(loaded, collection, ranked, progress, settings.home, problems=problems)
        with ExitStack() as opened:

            def inputs() -> Inputs:
                engine = open_engine(settings, lambda sentence: say(settings, sentence))
                opened.enter_context(closing(engine))
                index = open_index(loaded, engine, collection.index_of(ranked))
                require_documents(loaded, index, collection)
                split_of = (collection, ranked)
                return signal_inputs(loaded, engine, index, lambda: split_of, progress, problems)

            made = models.train(kept, chosen, inputs, rebuild=rebuild, workers=workers)
        warn_of_skipped(problems.skipped)
        for one in made:
            header = one.stored.header
            done = "trained on" if one.is_new else "was there already, of"
            without = f" without {one.left_out}" if one.left_out else ""
            made_of = "1 label" if len(header["labels"]) == 1 else f"{len(header['labels']):,} labels"
            if "trees" in header:
                made_of = f"{header['trees']:,} trees of {header['candidates']:,} candidates"
            say(
                settings,
                f"{loaded.name} {ranked}, {one.signal}{without}: {done} {header['solved']:,} solved topics, "
                f"{made_of}, {len(header['features']):,} features; kept in {one.path}",
            )
        if as_json:
            described = [dict(models.described(one)) for one in made]
            print_json({"task": loaded.name, "split": ranked, "recipe": chosen.name, "models": described})
