"""`searchapp ablate`: what each part of a recipe gains, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, TaskArgument, command, data_of
from searchapp.cli.comparing_options import PERMUTATIONS, SEED, PermutationsOption, SeedOption
from searchapp.cli.output import print_json, show, stdout_console, warn
from searchapp.cli.recipe_options import DepthOption, LenientRankingOption, SetOption, parameters_of
from searchapp.cli.scoring_options import HierarchyOption, KbOption, NearestOption
from searchapp.errors import UsageError
from searchapp.settings import Settings

RECIPE = "best"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def ablate(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            list[str],
            typer.Option(
                help="Split whose topics are ranked: see `searchapp tasks`. Can be given several times: their topics "
                "count together.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ],
        data: DataOption = None,
        recipe: Annotated[
            str, typer.Option(help="Recipe that is taken apart.", autocompletion=complete.recipes)
        ] = RECIPE,
        set_: SetOption = None,
        measure: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME",
                help="A measure beside the official one: any that ir-measures knows. Can be given several times.",
                show_default=False,
                autocompletion=complete.measures,
            ),
        ] = None,
        depth: DepthOption = None,
        folds: Annotated[
            int | None,
            typer.Option(
                min=2,
                help="In how many folds topics are divided that are solved ones of each other, as those of train.",
                show_default="5, of less than 50 topics each is one",
            ),
        ] = None,
        features: Annotated[
            bool,
            typer.Option(
                "--features",
                help="Train models without each kind of features too, which takes as many trainings.",
            ),
        ] = False,
        permutations: PermutationsOption = PERMUTATIONS,
        seed: SeedOption = SEED,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientRankingOption = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the table as CSV, every figure at full precision.")
        ] = False,
        as_latex: Annotated[
            bool, typer.Option("--latex", help="Print the table as LaTeX for the package booktabs.")
        ] = False,
        as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Take a recipe apart: without each of its signals, and each signal alone, with what a part gains and costs.

        Every signal ranks once, on this machine, whatever the number of variants. The figures are those of `searchapp
        evaluate`, intervals and tests those of `searchapp compare`, paired by topic. Topics that are solved ones
        themselves are divided into folds, each ranked by the solved topics of the others. Weights and parameters stay
        what they are when a part is left out.
        """
        from searchapp.app.ablate import AblationRequest
        from searchapp.app.ablate import ablate as taken_apart
        from searchapp.cli import ablation_table
        from searchapp.cli.progress import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.ranking import recipes
        from searchapp.tasks import load

        if sum((as_json, as_csv, as_latex, as_markdown)) > 1:
            raise UsageError("--json, --csv, --latex and --markdown are ways to print: choose one of them")
        loaded = load(task)
        request = AblationRequest(
            task=loaded,
            collection=loaded.collection(data_of(settings, loaded, data)),
            splits=tuple(dict.fromkeys(split)),
            recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
            depth=depth or loaded.info.default_depth,
            measures=tuple(dict.fromkeys(measure or ())),
            features=features,
            folds=folds,
            lenient=lenient,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            permutations=permutations,
            seed=seed,
        )
        found = taken_apart(request, settings, for_person(settings))
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(ablation_table.as_csv(found).rstrip("\n"))
        elif as_latex:
            show(ablation_table.as_latex(found).rstrip("\n"))
        elif as_markdown:
            show(ablation_table.as_markdown(found).rstrip("\n"))
        else:
            ablation_table.print_ablation(stdout_console(), found)
        for warning in found.warnings:
            warn(warning)
