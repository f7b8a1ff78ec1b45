"""`searchapp learning-curve`: how well unjudged topics are ranked, by how many others are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, OverwriteOption, TaskArgument, command, data_of
from searchapp.cli.judgments.options import AnnotatorsOption, LogOption
from searchapp.cli.output import print_json, say, show, stdout_console
from searchapp.cli.recipe_options import DepthOption, LenientRankingOption, SetOption, parameters_of
from searchapp.cli.scoring_options import HierarchyOption, KbOption, NearestOption, RuleOption, judged_grades
from searchapp.errors import UsageError
from searchapp.judging.fold import Folding, Rule
from searchapp.settings import Settings

# Those of `app.learning`, which takes NumPy to be imported.
RECIPE = "best"
REPETITIONS = 5
SEED = 2021


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def learning_curve(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            str,
            typer.Option(
                help="Split whose topics are judged and scored: see `searchapp tasks`.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ],
        data: DataOption = None,
        recipe: Annotated[
            str, typer.Option(help="Recipe to rank with, which learns.", autocompletion=complete.recipes)
        ] = RECIPE,
        set_: SetOption = None,
        points: Annotated[
            str | None,
            typer.Option(
                metavar="N,N,...",
                help="Numbers of judged topics.",
                show_default="0 and 1/16, 1/8, 1/4, 1/2 and all of those that can be judged",
            ),
        ] = None,
        unjudged: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Topics that are never judged, and always scored.",
                show_default="half of them; with --judgments all that nobody has judged",
            ),
        ] = None,
        repetitions: Annotated[
            int, typer.Option(min=1, max=1000, help="Samples of judged topics for each point.")
        ] = REPETITIONS,
        seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn at random.")] = SEED,
        alone: Annotated[
            bool,
            typer.Option(
                "--alone", help="Learn from judged topics alone, and not from those that the task has solved."
            ),
        ] = False,
        judgments: Annotated[
            bool,
            typer.Option(
                "--judgments", help="Learn from what people have judged; by default gold stands in."
            ),
        ] = False,
        rule: RuleOption = Rule.majority,
        annotator: AnnotatorsOption = None,
        log: LogOption = None,
        measure: Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                help="Measure to score by: any that ir-measures knows.",
                show_default="the official one",
                autocompletion=complete.measures,
            ),
        ] = None,
        depth: DepthOption = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientRankingOption = False,
        out: Annotated[
            Path | None, typer.Option(help="SVG file to draw the curve into.", show_default=False)
        ] = None,
        overwrite: OverwriteOption = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the points as CSV, every figure at full precision.")
        ] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the points as a Markdown table.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Show what judging brings: the score of topics that nobody has judged, by how many others are judged.

        Some topics of the split are never judged, and these alone are scored. Of the others growing samples count as
        solved, like the topics of train. The organisers' gold says what is right, and stands in for a judge unless
        --judgments takes what people have judged. Topics rank on this machine.
        """
        from searchapp.app.learning import LearningRequest
        from searchapp.app.learning import learning_curve as learned
        from searchapp.cli import learning_table
        from searchapp.cli.progress import for_person
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.files import require_place, whole_file
        from searchapp.ranking import recipes
        from searchapp.report.learning_picture import picture
        from searchapp.tasks import load

        if sum((as_json, as_csv, as_markdown)) > 1:
            raise UsageError("--json, --csv and --markdown are ways to print: choose one of them")
        if out is not None:
            require_place(out, replace=overwrite)
        loaded = load(task)
        request = LearningRequest(
            task=loaded,
            collection=loaded.collection(data_of(settings, loaded, data)),
            split=split,
            recipe=recipes.load(loaded.recipe_book(), recipe, parameters_of(set_ or [])),
            depth=depth or loaded.info.default_depth,
            points=_numbers(points),
            unjudged=unjudged,
            judged=judged_grades(settings, loaded.name, Folding(rule, annotator), log) if judgments else None,
            repetitions=repetitions,
            seed=seed,
            alone=alone,
            measure=measure,
            lenient=lenient,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
        )
        found = learned(request, settings, for_person(settings))
        if out is not None:
            with whole_file(out, replace=overwrite) as file:
                file.write(picture(found))
            say(settings, f"the curve is drawn into {out}")
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(learning_table.as_csv(found).rstrip("\n"))
        elif as_markdown:
            show(learning_table.as_markdown(found).rstrip("\n"))
        else:
            learning_table.print_curve(stdout_console(), found)


def _numbers(points: str | None) -> tuple[int, ...]:
    """Whole numbers between commas."""
    found = []
    for one in [] if points is None else points.split(","):
        if not one.strip().isdecimal():
            raise UsageError(f"--points {points}: name whole numbers with commas between them, as 0,50,100")
        found.append(int(one))
    return tuple(found)
