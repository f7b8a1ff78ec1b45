"""Options on judgments: log, annotators, sharing with a team, gold or judgments to score against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from searchapp.cli.output import warn
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.judging.judgments import Aggregation, Rule, Unjudged, aggregate
from searchapp.lucene.dataclass import dataclass
from searchapp.options import flag, option

if TYPE_CHECKING:
    from collections.abc import Collection

    from searchapp.app.evaluate import GoldSource
    from searchapp.judging.log import JudgmentLog
    from searchapp.judging.view import JudgmentView
    from searchapp.tasks.base import Grades


LogOption = Annotated[
    Path | None,
    option("Judgment log.", "--log", show_default="judgments.sqlite in the home directory"),
]
AnnotatorOption = Annotated[
    str | None,
    option(
        "Name of the annotator; default: SEARCHAPP_ANNOTATOR, or the name of the account.",
        completes="annotators",
    ),
]
RankNowOption = Annotated[
    str | None,
    option(
        "Recipe to rank with if no run is given: see `searchapp tasks show TASK`.",
        "--recipe",
        show_default="the task's own",
        completes="recipes",
    ),
]
AnnotatorsOption = Annotated[
    list[str] | None,
    option(
        "Use only the grades and decisions of this annotator, a person or a model; repeatable. Default: the "
        "grades of all people, and every decision.",
        "--annotator",
        completes="annotators",
    ),
]


def require_log(settings: Settings, path: Path | None) -> Path:
    """Return the judgment log of `--log`, or the default one.

    Raises:
        DataError: the file does not exist.
    """
    path = path or settings.judgments
    if not path.exists():
        raise DataError(f"{path}: no judgments yet: create some with `searchapp judge`")
    return path


@contextmanager
def open_log(
    settings: Settings,
    path: Path | None,
    task: str,
    *,
    must_exist: bool = True,
    patience: float | None = None,
) -> Iterator[JudgmentLog]:
    """Open the judgment log of `--log`, or the default one, which SEARCHAPP_SHARED exchanges with the team.

    Raises:
        DataError: the file does not exist.
    """
    from searchapp.app.sessions import exchanging
    from searchapp.judging.event_log import BUSY_SECONDS
    from searchapp.judging.log import JudgmentLog

    shared = settings.shared and path is None
    path = require_log(settings, path) if must_exist and not shared else path or settings.judgments
    with (
        closing(JudgmentLog(path, BUSY_SECONDS if patience is None else patience, warn)) as log,
        exchanging(settings, log, task, warn) if shared else nullcontext(),
    ):
        yield log


@contextmanager
def open_judgments(
    settings: Settings,
    path: Path | None,
    task: str,
    annotators: Collection[str] | None = None,
    *,
    patience: float | None = None,
) -> Iterator[tuple[JudgmentLog, JudgmentView]]:
    """Open the log, and the view of a task's events.

    Raises:
        DataError: the task has no judgments.
        UsageError: one of `annotators` has not judged the task.
    """
    from searchapp.judging.view import open_view, require_annotators

    with open_log(settings, path, task, patience=patience) as log:
        view = open_view(log, task)
        if not view.count:
            raise DataError(
                f"{log.path} has no judgments of {task}: create some with `searchapp judge {task}`"
            )
        require_annotators(view, task, annotators or ())
        yield log, view


GoldOption = Annotated[
    list[Path] | None,
    option(
        "Gold file, instead of --data and --split; several in the order of the official files, as `--gold A "
        "B`, `--gold A,B` or `--gold A --gold B`."
    ),
]
ByOption = Annotated[
    list[str] | None,
    option(
        "Break the figures down by this group of topics (see `searchapp tasks show TASK`), or by `all`; repeatable.",
        metavar="GROUP",
        completes="breakdowns",
    ),
]


@dataclass(frozen=True, slots=True)
class RankingScorerOptions(ScorerOptions):
    """Options of the official scorer for a command that also ranks the topics."""

    lenient: bool = flag(
        "Skip invalid topics and training topics, and continue where the official scorer stops."
    )


RuleOption = Annotated[
    Rule,
    option(
        "--judgments: how the grades of several annotators become one, unless the document was adjudicated.",
        "--aggregation",
    ),
]


@dataclass(frozen=True, slots=True)
class JudgedOptions:
    """Options for scoring runs against judgments."""

    judgments: bool = flag("Score against judgments instead of gold.")
    qrels: Path | None = option("Score against the grades in a TREC or BEIR qrels file instead of gold.")
    unjudged: Unjudged = option(
        "Treatment of retrieved documents without a grade.", default=Unjudged.nonrelevant
    )
    rule: RuleOption = Rule.majority
    annotator: AnnotatorsOption = None
    held_out: bool = flag(
        "--judgments, --qrels: score only topics that the run was not trained on, see `rank --with-judgments`."
    )
    log: LogOption = None

    @property
    def aggregation(self) -> Aggregation:
        return Aggregation(self.rule, self.annotator)

    def replace_gold(self, source: GoldSource) -> bool:
        """Return whether runs are scored against judgments or a qrels file.

        Raises:
            UsageError: options contradict this choice.
        """
        if not self.judgments and self.qrels is None:
            if self.held_out:
                raise UsageError(
                    "--held-out requires --judgments or --qrels: the official gold is scored completely"
                )
            return False
        if source.gold or source.by:
            raise UsageError(
                "--gold and --by need the official gold: leave them out with --judgments or --qrels"
            )
        return True


def judged_grades(settings: Settings, task: str, aggregation: Aggregation, log: Path | None) -> Grades:
    """Aggregate the grades of a task's judgments."""
    with open_judgments(settings, log, task, aggregation.annotators) as (_, view):
        return aggregate(view, aggregation).grades
