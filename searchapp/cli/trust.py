"""`searchapp judgments trust`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, JsonOption, SeedOption, SpreadingCommand, TaskArgument, command
from searchapp.cli.judgment_options import AnnotatorsOption, LogOption, open_judgments
from searchapp.cli.output import for_person, print_json, stdout_console, warn_all
from searchapp.cli.tables import ResultTable, print_line
from searchapp.config.settings import Settings
from searchapp.judging.judgments import Rule
from searchapp.options import argument, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.trust import ModelTrust, SystemAgreement
    from searchapp.judging.trust import Coefficient, GroupAgreement, TrustCoverage

app = typer.Typer()

# As in `judging.agreement`.
RESAMPLES = 2_000


class RunsCommand(SpreadingCommand):
    """A command whose option `--runs` takes several words after the first argument."""

    spread = frozenset({"--runs"})


@command(app, cls=RunsCommand)
def trust(
    settings: Settings,
    task: TaskArgument,
    model: str = argument(
        "Annotator of the kind model, as `judge --model` names it.", completes="annotators"
    ),
    annotator: AnnotatorsOption = None,
    rule: Rule = option(
        "How the grades of several people become one, unless the document was adjudicated.",
        "--aggregation",
        default=Rule.majority,
    ),
    runs: list[Path] | None = option(
        "Compare the rankings of these runs, at least two, under the judgments of people and of the model.",
        metavar="RUN...",
        completes="runs",
    ),
    measure: str = option(
        "With --runs: measure of the runs in ir-measures' notation.",
        default="AP",
        metavar="NAME",
        completes="measures",
    ),
    split: str | None = option("With --runs: split of the topics of TREC runs.", completes="splits"),
    resamples: int = option("Bootstrap resamples of each interval.", default=RESAMPLES, min=100),
    seed: SeedOption = None,
    data: DataOption = None,
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how far the judgments of a model agree with people's, and with its own under other settings.

    Shown are the coverage, the confusion matrix, and the share of equal grades, the bias, Cohen's kappa (unweighted and
    with quadratic weights) and Krippendorff's alpha (ordinal), with 95 % bootstrap intervals over topics: for all
    documents, and by grade, topic, length and lexical overlap with the topic. With --runs, Kendall's tau-b and tau-AP
    compare the rankings of systems under both sets of judgments. Only documents that both have graded count.
    """
    from searchapp.app.trust import TrustRequest, measure_trust
    from searchapp.evaluation.measures import require_measures
    from searchapp.judging.trust import Resampling

    if runs:
        require_measures([measure])
    loaded = load(task)
    people = tuple(annotator) if annotator else None
    with open_judgments(settings, log, loaded.name, [model, *(people or ())]) as (opened, view):
        request = TrustRequest(
            loaded,
            model,
            people,
            rule,
            tuple(runs or ()),
            measure,
            data,
            split,
            Resampling(resamples, settings.seed_of(seed, 0)),
        )
        result = measure_trust(request, opened, view, settings, for_person(settings))
    if as_json:
        print_json({"task": loaded.name, **_described(result)})
    else:
        _print_trust(result)
    warn_all(result.warnings)


def _described(result: ModelTrust) -> dict[str, object]:
    described = asdict(result)
    for system in (described["systems"] or {}).get("systems", ()):
        system["run"] = str(system.pop("path"))
    for own in described["self_agreement"]:
        own |= own.pop("agreement")
        del own["name"]
    del described["overall"]["name"]
    return described


def _print_trust(result: ModelTrust) -> None:
    console = stdout_console()
    print_line(console, _coverage_sentence(result.model, result.coverage))
    labels = sorted({*result.confusion, *(grade for row in result.confusion.values() for grade in row)})
    confusion = [
        (f"people {known}", *(f"{result.confusion.get(known, {}).get(given, 0):,}" for given in labels))
        for known in labels
    ]
    grades = [
        (
            str(each.grade),
            *(f"{number:,}" for number in (each.people, each.model, each.both)),
            _with_interval(each.kappa),
        )
        for each in result.grades
    ]
    settings = [(each.name, f"{each.documents:,}") for each in result.settings]
    for names, rows, texts in (
        (("grades", *(f"model {given}" for given in labels)), confusion, (0,)),
        _group_table("documents", [result.overall]),
        (("grade", "people", "model", "both", "kappa"), grades, (0, 4)),
        _group_table("topic", result.topics),
        _group_table("characters", result.lengths),
        _group_table("lexical overlap", result.overlaps),
        (("settings of the model", "documents"), settings if len(settings) > 1 else [], (0,)),
        _group_table("self-agreement", [each.agreement for each in result.self_agreement]),
    ):
        if rows:
            console.print()
            ResultTable.of_rows(names, rows, texts).print_folded()
    if result.systems is not None:
        _print_systems(result.systems)


def _print_systems(systems: SystemAgreement) -> None:
    console = stdout_console()
    console.print()
    rows = [(str(each.path), f"{each.people:.4f}", f"{each.model:.4f}") for each in systems.systems]
    ResultTable.of_rows(
        ("run", f"{systems.measure}, people", f"{systems.measure}, model"), rows
    ).print_folded()
    for name, tau in (("tau-b", systems.tau_b), ("tau-AP", systems.tau_ap)):
        print_line(console, f"{name} {_with_interval(tau)} over {counted(systems.topics, 'topic')}")


Table = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]


def _group_table(heading: str, groups: Sequence[GroupAgreement]) -> Table:
    rows = [
        (
            each.name,
            f"{each.topics:,}",
            f"{each.documents:,}",
            f"{each.share:.2f}",
            f"{each.bias:+.2f}",
            *map(_with_interval, (each.kappa, each.quadratic, each.alpha)),
        )
        for each in groups
    ]
    names = (heading, "topics", "graded", "equal", "bias", "kappa", "quadratic", "alpha")
    return names, rows, (0, 5, 6, 7)


def _with_interval(coefficient: Coefficient) -> str:
    """Format a coefficient with its interval, if it has one.

    >>> from searchapp.judging.trust import Coefficient
    >>> _with_interval(Coefficient(0.5, 0.25, 0.75)), _with_interval(Coefficient(0.5, float("nan"), float("nan")))
    ('0.50 (0.25 to 0.75)', '0.50')
    """
    has_interval = not isnan(coefficient.low)
    return f"{coefficient.value:.2f}" + (
        f" ({coefficient.low:.2f} to {coefficient.high:.2f})" if has_interval else ""
    )


def _coverage_sentence(model: str, coverage: TrustCoverage) -> str:
    """Describe the coverage.

    >>> from searchapp.judging.trust import TrustCoverage
    >>> _coverage_sentence("tiny", TrustCoverage(200, 150, 30, 0, 20))
    'of 200 documents that people graded, tiny graded 150 (75.0%), abstained on 30, skipped 0 and has not judged 20'
    """
    share = f"{coverage.graded / coverage.documents:.1%}"
    return (
        f"of {counted(coverage.documents, 'document')} that people graded, {model} graded {coverage.graded:,} "
        f"({share}), abstained on {coverage.abstained:,}, skipped {coverage.skipped:,} and has not judged "
        f"{coverage.missing:,}"
    )
