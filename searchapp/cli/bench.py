"""`searchapp bench`: recipes on the splits of tasks, each compared with a baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, command
from searchapp.cli.output import print_json, say, show, stdout_console, warn
from searchapp.cli.scoring_options import judged_grades
from searchapp.errors import SearchappError, UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.app.bench import BenchResult


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def bench(
        settings: Settings,
        file: Annotated[
            Path | None,
            typer.Argument(
                help="TOML file that names recipes, tasks and the baseline: see --example.",
                show_default=False,
            ),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option(
                help="Folder for the runs and the result.",
                show_default="what the file says, or a folder named like it",
            ),
        ] = None,
        jobs: Annotated[
            int | None,
            typer.Option(
                min=1, max=256, help="Cells that are ranked at once.", show_default="as many as processors"
            ),
        ] = None,
        overwrite: Annotated[
            bool, typer.Option("--overwrite", help="Rank every cell anew, also those that would be kept.")
        ] = False,
        example: Annotated[
            bool, typer.Option("--example", help="Print a file to start from, and do nothing else.")
        ] = False,
        as_csv: Annotated[
            bool, typer.Option("--csv", help="Print the figures as CSV, every one at full precision.")
        ] = False,
        as_latex: Annotated[
            bool, typer.Option("--latex", help="Print the figures as LaTeX tables for the package booktabs.")
        ] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the figures as Markdown tables.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Rank every recipe of a file on every split, and compare the figures with those of a baseline.

        Each cell is a run directory, which is kept as long as nothing has changed that it was made from: a bench that
        was stopped goes on where it was when it is run again. Cells that fail are reported, and the others go on. The
        figures and tests are those of `searchapp evaluate` and `searchapp compare`.
        """
        from searchapp.app import bench_file
        from searchapp.app.bench_work import BenchRequest, run_bench
        from searchapp.cli import bench_table
        from searchapp.cli.progress import for_person

        if sum((as_json, as_csv, as_latex, as_markdown)) > 1:
            raise UsageError("--json, --csv, --latex and --markdown are ways to print: choose one of them")
        if example:
            show(bench_file.EXAMPLE.rstrip("\n"))
            return
        if file is None:
            raise UsageError(
                "name the file of the bench; `searchapp bench --example` prints one to start from"
            )
        plan = bench_file.read(file, settings.home)
        if out is not None:
            plan = replace(plan, out=out)
        judged = {
            task.name: judged_grades(settings, task.task.name, task.judged.folding, task.judged.log)
            for task in plan.tasks
            if task.judged is not None
        }
        found = run_bench(BenchRequest(plan, settings, jobs, overwrite, judged), for_person(settings))
        if as_json:
            print_json(found.to_json())
        elif as_csv:
            show(bench_table.as_csv(found).rstrip("\n"))
        elif as_latex:
            show(bench_table.as_latex(found).rstrip("\n"))
        elif as_markdown:
            show(bench_table.as_markdown(found).rstrip("\n"))
        else:
            bench_table.print_bench(stdout_console(), found)
        _report(settings, found)


def _report(settings: Settings, found: BenchResult) -> None:
    """Say what was done, and end with the exit code of what has failed."""
    cells = [
        cell for column in found.columns if column.group is None for cell in column.cells if cell is not None
    ]
    made = sum(cell.made for cell in cells)
    for column in found.columns:
        for system, cell in zip(found.systems, column.cells, strict=True):
            for warning in () if cell is None or column.group is not None else cell.warnings:
                warn(f"{column.name}, {system.name}: {warning}")
        for warning in column.warnings:
            warn(f"{column.name}: {warning}")
    for system, column, cell in found.failed:
        lenient = f"; for --lenient write lenient = true in [tasks.{column.task}]"
        advice = lenient if "--lenient" in (cell.error or "") else ""
        warn(f"{column.name}, {system.name} has no figures: {cell.error}{advice}")
    failed = [cell for _, _, cell in found.failed]
    kept = len(cells) - made - sum(not cell.digest for cell in failed)
    say(settings, f"{made:,} of {len(cells):,} cells ranked, {kept:,} kept, in {found.folder}")
    if failed:
        error = SearchappError(f"{len(failed):,} of {len(cells):,} cells have no figures")
        codes = {cell.exit_code for cell in failed}
        error.exit_code = codes.pop() if len(codes) == 1 else 1
        raise error
