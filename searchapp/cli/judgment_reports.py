"""`searchapp judgments audit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import JsonOption, TaskArgument, command
from searchapp.cli.judgment_options import LogOption, open_judgments
from searchapp.cli.output import print_json, stdout_console, warn, warn_all
from searchapp.cli.tables import ResultTable, print_line
from searchapp.config.settings import Settings
from searchapp.judging.judgments import LEAST_SECONDS, WORDS_PER_MINUTE, ReadingTime
from searchapp.options import option
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
        result = audit_judgments(log, view, loaded, options.request(), settings, warn)
    if as_json:
        print_json(result.to_json())
    else:
        console = stdout_console()
        for number, table in enumerate(audit_tables(result.audit, result.agreement.guidelines)):
            if number:
                console.print()
            print_line(console, table.caption, "bold")
            ResultTable.of_rows(table.headings, table.rows, table.texts).print_folded()
    warn_all(result.agreement.warnings)
