"""`searchapp judgments audit` and `searchapp judgments report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import JsonOption, OverwriteOption, TaskArgument, command
from searchapp.cli.judgment_options import LogOption, open_judgments
from searchapp.cli.output import for_person, print_json, say, warn_all
from searchapp.cli.tables import print_tables
from searchapp.config.settings import Settings
from searchapp.files import atomic_file, require_place
from searchapp.judging.judgments import LEAST_SECONDS, WORDS_PER_MINUTE, ReadingTime
from searchapp.lucene.dataclass import dataclass
from searchapp.options import REQUIRED, option
from searchapp.tasks import load

if TYPE_CHECKING:
    from searchapp.app.judgment_report import AuditRequest

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit of judgments."""

    annotator: list[str] | None = option(
        "Audit and compare only the judgments of this annotator, a person or a model; repeatable. Default: people, and "
        "models, which are compared with the people.",
        completes="annotators",
    )
    window: int = option(
        "Number of documents with several grades in each window of the agreement over time.",
        default=50,
        min=2,
    )
    words_per_minute: float = option(
        "Count a judgment as too fast if the text has more words than can be read in its time at this rate.",
        default=WORDS_PER_MINUTE,
        min=1,
    )
    least_seconds: float = option(
        "Count a judgment as too fast if it took less than this time.", default=LEAST_SECONDS, min=0
    )
    log: LogOption = None

    def request(self) -> AuditRequest:
        from searchapp.app.judgment_report import AuditRequest

        return AuditRequest(
            self.annotator, ReadingTime(self.least_seconds, self.words_per_minute), self.window
        )


@command(app)
def audit(
    settings: Settings,
    task: TaskArgument,
    options: AuditOptions,
    as_json: JsonOption = False,
) -> None:
    """Show how judgments were made: agreement over time, pace, revised grades, and versions of the guidelines.

    Each annotator is compared with the decision of another one on the document, otherwise with the majority of the
    others' grades. The time of a judgment begins with the annotator's previous one; times above 5 minutes are breaks.
    """
    from searchapp.app.judgment_report import audit_judgments
    from searchapp.report.judgment_tables import audit_tables

    loaded = load(task)
    with open_judgments(settings, options.log, loaded.name, options.annotator) as (log, view):
        result = audit_judgments(log, view, loaded, options.request(), settings)
    if as_json:
        print_json(result.to_json())
    else:
        print_tables(audit_tables(result.audit, result.agreement.guidelines))
    warn_all(result.warnings)


@command(app)
def report(
    settings: Settings,
    task: TaskArgument,
    *,
    out: Path = option("HTML file to write; - is stdout.", default=REQUIRED),
    options: AuditOptions,
    calibration: Path | None = option(
        "Also show the results of a calibration, from the file that `judgments calibrate --results --json` prints.",
        metavar="FILE",
    ),
    disputed: int = option("Number of disputed documents to show.", default=100, min=0),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML file about the judgments of a task.

    The report contains the agreement of people, models apart from them, the numbers of `judgments audit`, those of
    `judgments trust` for each model that graded documents which people graded too, and the disputed documents with
    their decisions, but no texts. With --json it also prints the audit.
    """
    from searchapp.app.judgment_report import audit_judgments, read_calibration, report_judgments
    from searchapp.report.judgment_page import judgment_page

    require_place(out, replace=overwrite)
    loaded = load(task)
    calibrated = None if calibration is None else read_calibration(calibration, loaded.name)
    request = options.request()
    with open_judgments(settings, options.log, loaded.name, options.annotator) as (log, view):
        audited = audit_judgments(log, view, loaded, request, settings)
        content = report_judgments(
            log,
            view,
            loaded,
            audited,
            request,
            options.log,
            disputed,
            calibrated,
            settings,
            for_person(settings),
        )
    with atomic_file(out, replace=overwrite) as file:
        file.write(judgment_page(content))
    if as_json:
        print_json(audited.to_json())
    warn_all(content.warnings)
    say(settings, f"wrote the report of the judgments of {loaded.name} to {out}")
