"""`searchapp demo`: the whole story on the sample collections that ship with searchapp."""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.common import command, stdout_console
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.engines.base import Engine

SAMPLE_NEAREST = 50
"""The official cut-off of 500 needs 500 premises a statement; the sample has 70 in all."""

WORDS = "a compact subset of a Hausdorff space"

NEXT = """
   searchapp index nlps --data FOLDER                    the real data: knowledge_base.json, train_set.json, ...
   searchapp search nlps "every subgroup of an abelian group is normal"
   searchapp rank nlps --data FOLDER --split dev --out runs/dev
   searchapp evaluate runs/dev                           the official figure of your ranking
   searchapp --help                                      everything else
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def demo(settings: Settings) -> None:
        """Index, search, rank and score a small sample collection, and say what to type next.

        Everything happens in a temporary folder and an index of its own, which are removed at the end.
        """
        from searchapp.engines import open_engine

        with tempfile.TemporaryDirectory(prefix="searchapp-demo-") as folder:
            sample = dataclasses.replace(
                settings, home=Path(folder), index_prefix=f"{settings.index_prefix}-demo"
            )
            with closing(open_engine(sample)) as engine:
                try:
                    _run_demo(engine, Path(__file__).parents[1] / "samples" / "nlps", Path(folder) / "run")
                finally:
                    engine.remove("nlps")


def _run_demo(engine: Engine, data: Path, run: Path) -> None:
    from rich.text import Text

    from searchapp import resources
    from searchapp.cli.evaluate import print_evaluations
    from searchapp.cli.search import print_results
    from searchapp.evaluation.base import ScorerOptions
    from searchapp.evaluation.evaluate import GoldSource, evaluate
    from searchapp.indexing import index_task
    from searchapp.progress import Silent
    from searchapp.ranking import recipes
    from searchapp.ranking.search import search
    from searchapp.runs.make import RunRequest, make_run
    from searchapp.tasks import load

    console = stdout_console()

    def heading(text: str) -> None:
        console.print(Text(f"\n{text}", style="bold"))

    task = load("nlps")
    heading("1. Index a sample of mathematical statements, with analyzers made for LaTeX")
    outcome = index_task(task, engine, data, Silent())
    info = engine.info()
    console.print(
        f"   {outcome.info.documents} statements are indexed, on the engine {info.name} {info.version}"
    )

    heading(f"2. Search: {WORDS}")
    words = recipes.load(task.name, task.search_recipe)
    print_results(search(engine.open(task.name), resources.index_mapping(task.mapping), words, WORDS, 3))

    heading("3. Rank all statements for each of 10 theorems: which of them does its proof use?")
    recipe = recipes.load(task.name, task.default_recipe)
    request = RunRequest(data, "dev", recipe, task.default_depth, "searchapp-demo")
    made = make_run(task, engine, request, run, Silent())
    console.print(f"   {made.manifest.topics} rankings of {made.manifest.hits} premises in all are written")

    heading("4. Score the rankings as the organisers of the shared task do, and honestly beside it")
    gold = GoldSource(data=data, split="dev", options=ScorerOptions(nearest=SAMPLE_NEAREST))
    (evaluation,) = evaluate([run], gold)
    print_evaluations([dataclasses.replace(evaluation, source="sample")])

    heading("Next")
    console.print(NEXT.strip("\n"))
