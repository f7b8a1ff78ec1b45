"""`searchapp demo`: the whole story on the sample collections that ship with searchapp."""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.common import command
from searchapp.cli.output import stdout_console
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.app.demo import Sample
    from searchapp.app.evaluate import Evaluation
    from searchapp.cli.output import Console
    from searchapp.engines.base import Engine

FIRST = "nlps"
"""The task that the story begins with, and on whose sample it judges."""

WORDS = "a compact subset of a Hausdorff space"

FEW = """
   neighbours lets solved topics vote, with the weight that suits the official data,
   which has thousands of them. A sample has few: where it falls behind bm25, it is
   ranked again with `--set direct={direct}`, chosen on the samples, so that bm25 counts more.
"""

NEXT = """
   searchapp tasks                                       the shared tasks, and what their data is
   searchapp data get nlps                               fetch the official files of one
   searchapp index nlps
   searchapp search nlps "every subgroup of an abelian group is normal"
   searchapp rank nlps --split dev --recipe neighbours --out runs/dev
   searchapp evaluate runs/dev                           the official figure of your ranking
   searchapp --help                                      everything else
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def demo(settings: Settings) -> None:
        """Index, search, rank, score and judge small sample collections, and say what to type next.

        Everything happens in a temporary folder and in indexes of its own, which are removed at the end.
        """
        from searchapp.engines import open_engine

        with tempfile.TemporaryDirectory(prefix="searchapp-demo-") as folder:
            sample = dataclasses.replace(
                settings, home=Path(folder), index_prefix=f"{settings.index_prefix}-demo"
            )
            with closing(open_engine(sample)) as engine:
                _Story(engine, Path(folder)).tell()


def _row(task: str, recipe: str, evaluation: Evaluation, solved: str = "") -> tuple[str, ...]:
    official = evaluation.official
    return task, str(evaluation.topics), official.measure, recipe, solved, f"{official.value:.6f}"


class _Story:
    """Tells the story, and removes the indexes that it made."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        from searchapp.app import demo

        self._engine = engine
        self._folder = folder
        self._samples = demo.samples()
        self._first = next(sample for sample in self._samples if sample.task.name == FIRST)
        self._console: Console = stdout_console()

    def tell(self) -> None:
        from searchapp.app.solved_index import examples_name

        try:
            self._index()
            self._search()
            self._rank(self._samples)
            self._judge()
        finally:
            for sample in self._samples:
                task = sample.task.name
                for judged in (False, True):
                    self._engine.remove(examples_name(task, sample.split, judged=judged))
                self._engine.remove(task)
        self._heading("Next")
        self._console.print(NEXT.strip("\n"))

    def _index(self) -> None:
        from searchapp.app import demo

        info = self._engine.info()
        self._heading(
            f"1. Index {len(self._samples)} sample collections, on the engine {info.name} {info.version}"
        )
        for sample in self._samples:
            documents = demo.indexed(sample, self._engine)
            self._console.print(
                f"   {sample.task.name:<28}{documents:>4} documents   {sample.task.info.title}"
            )

    def _search(self) -> None:
        from searchapp.app import demo
        from searchapp.cli.search import print_results

        self._heading(f"2. Search: {WORDS}")
        print_results(demo.found(self._first, self._engine, WORDS, 3))

    def _rank(self, samples: Sequence[Sample]) -> None:
        from rich.table import Table

        from searchapp.app import demo

        self._heading("3. Rank the documents for every topic, and score the rankings as the organisers do")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("   task", "topics", "measure", "recipe", "solved", "official"):
            table.add_column(name, justify="right" if name in ("topics", "solved", "official") else "left")
        is_behind = False
        for sample in samples:
            figures = demo.compared(sample, self._engine, self._folder)
            task = f"   {sample.task.name}"
            table.add_row(*_row(task, demo.PLAIN, figures.plain))
            table.add_row(*_row(task, demo.LEARNING, figures.learning, str(figures.solved)))
            if figures.weighed is not None:
                is_behind = True
                table.add_row(*_row(task, f"  direct={demo.DIRECT}", figures.weighed, str(figures.solved)))
        self._console.print(table)
        if is_behind:
            self._console.print(FEW.format(direct=demo.DIRECT).rstrip("\n"))

    def _judge(self) -> None:
        from searchapp.app import demo

        self._heading(f"4. Judge half of the topics of {FIRST}, and rank the other half again")
        learned = demo.learned(self._first, self._engine, self._folder)
        self._console.print(
            f"   A script has judged {len(learned.judged)} topics, such as:\n"
            f"   {learned.judged[0].text}\n"
            f"   {learned.measure} on the {learned.others} topics that nobody judged: "
            f"{learned.before:.6f} before, {learned.after:.6f} after"
        )

    def _heading(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(f"\n{text}", style="bold"))
