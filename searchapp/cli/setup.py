"""`searchapp demo`, `doctor` and `config`."""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import JsonOption, command, run_screen
from searchapp.cli.output import for_person, print_json, require_screen, show, stdout_console
from searchapp.config.resolution import Resolution, SettingValue
from searchapp.config.settings import Settings
from searchapp.engines import open_engine, server_roles
from searchapp.errors import SearchappError, UsageError
from searchapp.options import flag
from searchapp.text import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from searchapp.app.demo import Sample
    from searchapp.app.evaluate import Evaluation
    from searchapp.cli.output import Console
    from searchapp.engines.base import Engine
    from searchapp.progress import Progress
    from searchapp.tui.config.screen import ConfigScreen


# The sample on which the demonstration judges.
FIRST = "nlps"

WORDS = "a compact subset of a Hausdorff space"

FEW = """
   In neighbours, similar training topics vote for documents, with a weight that suits the
   official data with thousands of them. A sample has few: where bm25 is better, the sample
   is ranked again with `--set direct={direct}`, chosen on the samples, which gives bm25 more weight.
"""

NEXT = """
   searchapp tasks                                       list the shared tasks and their data
   searchapp data get nlps                               fetch the official files of a task
   searchapp index nlps
   searchapp search nlps "every subgroup of an abelian group is normal"
   searchapp rank nlps --split dev --recipe neighbours --out runs/dev
   searchapp evaluate runs/dev                           score your ranking as the official scorer does
   searchapp --help                                      list all commands
"""


app = typer.Typer()


@command(app)
def demo(settings: Settings) -> None:
    """Index, search, rank, score and judge small sample collections, and suggest next commands.

    The demonstration uses a temporary folder and its own indexes, and removes both at the end.
    """

    with tempfile.TemporaryDirectory(prefix="searchapp-demo-") as folder:
        sample = dataclasses.replace(
            settings, home=Path(folder), index_prefix=f"{settings.index_prefix}-demo"
        )
        with closing(open_engine(sample)) as engine:
            _Demonstration(engine, Path(folder)).run()


def _row(task: str, recipe: str, evaluation: Evaluation, training: str = "") -> tuple[str, ...]:
    official = evaluation.official
    return task, str(evaluation.topics), official.measure, recipe, training, f"{official.value:.6f}"


class _Demonstration:
    def __init__(self, engine: Engine, folder: Path) -> None:
        from searchapp.app import demo

        self._engine = engine
        self._folder = folder
        self._samples = demo.samples()
        self._first = next(sample for sample in self._samples if sample.task.name == FIRST)
        self._console: Console = stdout_console()

    def run(self) -> None:
        from searchapp.app.index import examples_name

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
            documents = demo.index_sample(sample, self._engine)
            self._console.print(
                f"   {sample.task.name:<28}{documents:>4} documents   {sample.task.info.title}"
            )

    def _search(self) -> None:
        from searchapp.app import demo
        from searchapp.cli.search import print_results

        self._heading(f"2. Search: {WORDS}")
        print_results(demo.search_sample(self._first, self._engine, WORDS, 3))

    def _rank(self, samples: Sequence[Sample]) -> None:
        from rich.table import Table

        from searchapp.app import demo

        self._heading(
            "3. Rank the documents for every topic, and score the rankings as the official scorers do"
        )
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("   task", "topics", "measure", "recipe", "training", "official"):
            table.add_column(name, justify="right" if name in ("topics", "training", "official") else "left")
        is_behind = False
        for sample in samples:
            figures = demo.compare_recipes(sample, self._engine, self._folder)
            task = f"   {sample.task.name}"
            table.add_row(*_row(task, demo.PLAIN, figures.plain))
            table.add_row(*_row(task, demo.LEARNING, figures.learning, str(figures.training_topics)))
            if figures.weighed is not None:
                is_behind = True
                table.add_row(
                    *_row(task, f"  direct={demo.DIRECT}", figures.weighed, str(figures.training_topics))
                )
        self._console.print(table)
        if is_behind:
            self._console.print(FEW.format(direct=demo.DIRECT).rstrip("\n"))

    def _judge(self) -> None:
        from searchapp.app import demo

        self._heading(f"4. Judge half of the topics of {FIRST}, and rank the other half again")
        learned = demo.measure_judging(self._first, self._engine, self._folder)
        self._console.print(
            f"   A script judged {len(learned.judged)} topics, such as:\n"
            f"   {learned.judged[0].text}\n"
            f"   {learned.measure} on the {learned.others} unjudged topics: "
            f"{learned.before:.6f} before, {learned.after:.6f} after"
        )

    def _heading(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(f"\n{text}", style="bold"))


@command(app)
def doctor(
    settings: Settings,
    roles: bool = flag(
        "Print the minimal role for each use of Elasticsearch instead, as JSON for its `POST "
        "_security/role`; each value is the body of `PUT _security/role/NAME`."
    ),
    as_json: JsonOption = False,
) -> None:
    """Check versions, folders, disk space, engine, index files and, with a server, that both engines agree.

    On Elasticsearch it also checks the rights of the current user.
    """
    if roles:
        print_json({"roles": server_roles(settings)})
        return
    from rich.text import Text

    from searchapp.app.doctor import Verdict, examine

    marks = {
        Verdict.ok: ("ok", "green"),
        Verdict.warning: ("!", "yellow"),
        Verdict.failed: ("FAILED", "red"),
    }
    console = stdout_console()
    checks = []
    for check in examine(settings, for_person(settings)):
        checks.append(check)
        if not as_json:
            mark, style = marks[check.verdict]
            line = Text.assemble((f"{mark:>6}  ", style), (f"{check.name}: ", "bold"), check.finding)
            console.print(line, soft_wrap=True)
    failed = [check.name for check in checks if check.verdict is Verdict.failed]
    if as_json:
        print_json({"ok": not failed, "checks": [dataclasses.asdict(check) for check in checks]})
    if failed:
        raise SearchappError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


@command(app, with_sources=True)
def config(
    resolution: Resolution,
    screen: bool = flag("Show the settings on a screen, with a description of each."),
    as_json: JsonOption = False,
) -> None:
    """Show every setting with its value and its source: flag, variable, file or default.

    The settings files are checked as by every other command: an error names file, line and key. Passwords and keys are
    never shown, only whether they are set.
    """
    if screen and as_json:
        raise UsageError("--screen and --json exclude each other: give one of them")
    if screen:
        _go_through(resolution)
    elif as_json:
        settings = [_described(value) for value in resolution.values.values()]
        print_json({"settings": settings, "files": _files(resolution)})
    else:
        _print(resolution)


def _print(resolution: Resolution) -> None:
    from searchapp.cli.tables import ResultTable

    rows = [
        (name, value.shown, str(value.source.origin), value.where)
        for name, value in resolution.values.items()
    ]
    ResultTable.of_rows(("setting", "value", "from", "where"), rows, texts=(0, 1, 2, 3)).print_folded()
    show("")
    for line in resolution.about_files:
        show(visible_line(line))


def _described(setting_value: SettingValue) -> dict[str, object]:
    return {
        "name": setting_value.setting.name,
        "value": setting_value.plain,
        "secret": setting_value.setting.secret,
        "from": str(setting_value.source.origin),
        "where": setting_value.source_name or None,
        "line": setting_value.line,
        "about": setting_value.setting.about,
    }


def _files(resolution: Resolution) -> dict[str, object]:
    project = resolution.project_file
    return {
        "user": {"path": str(resolution.user_file), "exists": resolution.is_user_file_there},
        "project": None
        if project is None
        else {"path": str(project), "used": resolution.is_project_file_used},
    }


def _go_through(resolution: Resolution) -> None:
    require_screen("settings", "leave out --screen")

    @contextmanager
    def opening(_progress: Progress) -> Iterator[ConfigScreen]:
        from searchapp.tui.config.screen import GRADES, ConfigScreen
        from searchapp.tui.kit.keys import load

        yield ConfigScreen(resolution, load(resolution.settings.of_user, GRADES).keys)

    run_screen(resolution.settings, "judge", "Settings", opening)
