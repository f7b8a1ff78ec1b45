"""The options that say what runs are scored against, which several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.judgments.options import of_task, open_log, require_known
from searchapp.judging.fold import Folding, Rule
from searchapp.judging.treatment import Unjudged
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.tasks.base import Grades

GoldOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="Gold file, instead of --data and --split; several in the order of theirs, as `--gold A B`, "
        "`--gold A,B` or `--gold A --gold B`.",
        show_default=False,
    ),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP",
        help="Break the figures down: `searchapp tasks show TASK` says by what; `all` by each. Can be given "
        "several times.",
        show_default=False,
        autocompletion=complete.breakdowns,
    ),
]
NearestOption = Annotated[
    int | None, typer.Option(min=1, help="nlps: the scorer's cut-off; 500 by default.", show_default=False)
]
HierarchyOption = Annotated[
    Path | None,
    typer.Option(
        help="smart-types-dbpedia: the TSV file of the type hierarchy, where it is not in --data.",
        show_default=False,
    ),
]
KbOption = Annotated[
    str | None,
    typer.Option(
        help="smart-relations: the knowledge base that the organisers' script is given, by default the task's.",
        show_default=False,
    ),
]
LenientOption = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Continue, with a warning, where the official scorer stops. checkthat: leave debates that are "
        "too short for P@50 out of that figure; smart-types-wikidata: compare whole labels; explanation-2019: read "
        "questions in the layout of WorldTree 2. No effect on other tasks.",
    ),
]
JudgmentsOption = Annotated[
    bool, typer.Option("--judgments", help="Score against what people have judged, instead of gold.")
]
UnjudgedOption = Annotated[Unjudged, typer.Option(help="How retrieved documents without a grade count.")]
RuleOption = Annotated[
    Rule,
    typer.Option(help="--judgments: how several annotators' grades become one, where nobody has decided."),
]
UnseenOption = Annotated[
    bool,
    typer.Option(
        "--unseen",
        help="--judgments, --qrels: only topics that the run has not learned from, see `rank --with-judgments`.",
    ),
]


def judged_grades(settings: Settings, task: str, folding: Folding, log: Path | None) -> Grades:
    """The grades that people have given documents of a task."""
    from searchapp.judging.fold import judged

    with open_log(settings, log, task) as opened:
        _, view = of_task(opened, task)
        require_known(folding.annotators, view, task)
        return judged(view, folding).grades
