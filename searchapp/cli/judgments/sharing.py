"""`searchapp judgments pool` and `assign`: what is to be judged, and by whom."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, OverwriteOption, TaskArgument, command, data_of
from searchapp.cli.output import print_json, say, warn
from searchapp.errors import UsageError
from searchapp.settings import Settings


def register(group: typer.Typer) -> None:
    """Add the commands."""

    @command(group)
    def pool(
        settings: Settings,
        runs: Annotated[
            list[Path],
            typer.Argument(
                help="Run directories, or TREC runs.", show_default=False, autocompletion=complete.runs
            ),
        ],
        out: Annotated[Path, typer.Option(help="Run directory to write.", show_default=False)],
        depth: Annotated[int, typer.Option(min=1, help="Documents that each run gives a topic.")] = 10,
        task: Annotated[
            str | None,
            typer.Option(help="Task of TREC runs, where no run directory says it.", show_default=False),
        ] = None,
        split: Annotated[
            str | None, typer.Option(help="--task: the split of the topics.", show_default=False)
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(help="--task: folder with the task's official files.", show_default=False),
        ] = None,
        overwrite: OverwriteOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Make a pool of the top of several runs: a run directory that can be judged like any other.

        Documents come in the order of the best rank that a run gives them. TREC runs are ordered by score, as trec_eval
        does.
        """
        from searchapp.app.pool import scope_of, write_pool
        from searchapp.engines import open_engine
        from searchapp.tasks import load

        if (task is None) != (split is None):
            raise UsageError("name both the task and the split of TREC runs: --task and --split")
        with ExitStack() as stack:
            scope = None
            if task is not None and split is not None:
                loaded = load(task)
                engine = stack.enter_context(closing(open_engine(settings)))
                scope = scope_of(loaded, engine, data_of(settings, loaded, data), split)
            written = write_pool(runs, depth, out, scope, overwrite=overwrite)
        manifest = written.manifest
        for note in written.notes:
            warn(note)
        if as_json:
            print_json({"run": str(out), "topics": manifest.topics, "documents": manifest.hits})
        say(
            settings,
            f"{manifest.hits:,} documents of {manifest.topics:,} topics, the first {depth} of {len(runs)} runs, "
            f"are written to {out}",
        )

    @command(group)
    def assign(
        settings: Settings,
        task: TaskArgument,
        split: Annotated[
            str,
            typer.Option(
                help="Split whose topics are shared out.", show_default=False, autocompletion=complete.splits
            ),
        ],
        out: Annotated[
            Path, typer.Option(help="File to write, for `judge --assignment`.", show_default=False)
        ],
        quota: Annotated[
            list[str],
            typer.Option(
                "--to",
                metavar="NAME=TOPICS",
                help="An annotator and how many topics; can be given several times.",
                show_default=False,
            ),
        ],
        data: DataOption = None,
        overlap: Annotated[
            float, typer.Option(min=0, max=1, help="Share of each quota that several people judge.")
        ] = 0.2,
        per_topic: Annotated[int, typer.Option(min=2, help="How many people judge such a topic.")] = 2,
        seed: Annotated[
            int, typer.Option(help="Seed that decides which topics are drawn, and their order.")
        ] = 0,
        overwrite: OverwriteOption = False,
        as_json: JsonOption = False,
    ) -> None:
        """Share topics out among annotators, some of them to several, so that agreement can be measured."""
        from searchapp.files import whole_file
        from searchapp.formats.problems import Problems
        from searchapp.judging.assignment import Assigned, write
        from searchapp.judging.assignment import assign as shared_out
        from searchapp.tasks import load
        from searchapp.tasks.folders import data_folder

        quotas = _quotas(quota)
        problems = Problems()
        loaded = load(task)
        topics = loaded.collection(data_folder(loaded, settings.home, data)).topics(split, problems)
        problems.raise_if_any()
        found = shared_out(
            [topic.id for topic in topics], quotas, overlap if len(quotas) > 1 else 0, per_topic, seed
        )
        assigned = Assigned(loaded.name, split, found)
        with whole_file(out, replace=overwrite) as file:
            write(file, assigned)
        if as_json:
            print_json(assigned.to_json())
        say(settings, f"written to {out}; with DIR a run of {split}, each judges with:")
        for name, own in found.topics.items():
            judge = shlex.join(["judge", task, "--assignment", str(out), "--annotator", name])
            shared = len(set(own) & set(found.shared))
            say(settings, f"  searchapp {judge} --run DIR   ({len(own)} topics, {shared} of them shared)")


def _quotas(given: list[str]) -> dict[str, int]:
    """How many topics each takes, by the name that `judge --annotator` makes of theirs: without blanks around it."""
    quotas: dict[str, int] = {}
    for one in given:
        name, equals, number = one.rpartition("=")
        name = name.strip()
        if not equals or not name or not number.isdecimal():
            raise UsageError(f"--to {one}: use the form NAME=TOPICS, for instance ann=20")
        if name in quotas:
            raise UsageError(f"--to {one}: {name} has a quota already")
        quotas[name] = int(number)
    return quotas
