"""`searchapp judgments trust` and `searchapp judgments probe`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, JsonOption, SeedOption, SpreadingCommand, TaskArgument, command
from searchapp.cli.judgment_options import AnnotatorsOption, LogOption, open_judgments
from searchapp.cli.model_options import ModelOptions, describe_budget, describe_model, spent, to_ask
from searchapp.cli.output import for_person, print_json, say, show, stdout_console, warn_all
from searchapp.cli.tables import ResultTable, print_line, print_tables
from searchapp.config.settings import Settings
from searchapp.errors import UsageError
from searchapp.judging.judgments import Rule
from searchapp.options import argument, option
from searchapp.report.judgment_tables import coverage_sentence, trust_tables, with_interval
from searchapp.tasks import load
from searchapp.text import be, counted

if TYPE_CHECKING:
    from searchapp.app.probing import ProbeReport
    from searchapp.app.trust import ModelTrust
    from searchapp.judging.probes import ProbeDifference, ProbeEffect

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
        console = stdout_console()
        print_line(console, coverage_sentence(result.model, result.coverage))
        console.print()
        print_tables(trust_tables(result))
    warn_all(result.warnings)


@command(app)
def probe(
    settings: Settings,
    task: TaskArgument,
    annotator: AnnotatorsOption = None,
    rule: Rule = option(
        "How the grades of several people become one, unless the document was adjudicated.",
        "--aggregation",
        default=Rule.majority,
    ),
    documents: int = option("Number of documents to probe that people graded 0.", default=20, min=1),
    relevant: int = option("Number of documents to probe that people graded above 0.", default=5, min=0),
    instruction: list[str] | None = option(
        "Instruction to insert instead of those of searchapp, such as one in the language of the documents; {grade} "
        "stands for the highest grade; repeatable.",
        metavar="TEXT",
    ),
    resamples: int = option("Bootstrap resamples of each interval.", default=RESAMPLES, min=100),
    seed: SeedOption = None,
    data: DataOption = None,
    log: LogOption = None,
    *,
    by_model: ModelOptions,
) -> None:
    """Measure whether texts that are inserted into documents change the grades of a model.

    People must have graded documents. The model grades some of them as they are, and with an instruction to give the
    highest grade, with words of the topic, and with a neutral text as a control, each at the beginning and at the end:
    up to 7 questions per document. Answers are stored as those of `judge`. The log of judgments is not changed.

    Shown are the share of documents whose grade rose or fell, and the mean change, with 95 % bootstrap intervals over
    topics, and the differences from the control.
    """
    from searchapp.app.probing import ProbeRequest, probe_model
    from searchapp.judging.probes import INSTRUCTIONS
    from searchapp.judging.trust import Resampling

    if not by_model.is_given:
        raise UsageError("no model to probe: give --command or --model-url")
    if not all(text.strip() for text in instruction or ()):
        raise UsageError("--instruction is empty: give a text to insert into documents")
    source, loaded = by_model.source(), load(task)
    prompt, limits = by_model.prompt_and_limits(loaded.info)
    people = tuple(annotator) if annotator else None
    with open_judgments(settings, log, loaded.name, people) as (_, view):
        result = probe_model(
            ProbeRequest(
                loaded,
                people,
                rule,
                documents,
                relevant,
                tuple(instruction or INSTRUCTIONS),
                data,
                Resampling(resamples, settings.seed_of(seed, 0)),
            ),
            source,
            prompt,
            limits,
            view,
            settings,
            for_person(settings),
            lambda sentence: say(settings, sentence),
        )
    if by_model.as_json:
        print_json(
            {
                "task": loaded.name,
                **describe_model(source, prompt),
                "not_relevant": asdict(result.not_relevant),
                "relevant": asdict(result.relevant),
                "questions": result.questions,
                "reused": result.reused,
                "asked": result.asked,
                "remaining": result.remaining,
                **describe_budget(result.budget),
                "estimated_tokens": result.estimated_tokens,
                "estimated_cost": result.estimated_cost,
            }
        )
    elif by_model.dry_run:
        show(result.example)
    else:
        _print_probes(source.model, result)
    known = f"{counted(result.questions, 'question')}: {result.reused:,} with a stored answer"
    if by_model.dry_run:
        say(settings, f"{known}, {to_ask(result)}")
    else:
        say(settings, f"{known}, {result.asked:,} asked in {spent(result.budget)}")
        if result.remaining:
            say(
                settings,
                f"{counted(result.remaining, 'question')} without an answer: the same command goes on",
            )
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


def _print_probes(model: str, result: ProbeReport) -> None:
    console = stdout_console()
    for group, graded in ((result.not_relevant, "0"), (result.relevant, "above 0")):
        if not group.documents:
            continue
        if group is result.relevant:
            console.print()
        moved = "lowered" if group is result.relevant else "raised"
        print_line(
            console,
            f"{model} on {counted(group.documents, 'document')} that people graded {graded}; {group.highest:,} "
            f"{be(group.highest)} given the highest grade unchanged",
            "bold",
        )
        _print_effects(("inserted", "graded", moved, "mean change"), group.effects, moved)
        if group is result.relevant:
            continue
        console.print()
        _print_effects(("minus the control", "graded", moved, "mean change"), group.differences, moved)
        if len(group.instructions) > 1:
            console.print()
            _print_effects(("instruction", "graded", moved, "mean change"), group.instructions, moved)
    outcomes: dict[str, Counter[str]] = {}
    for group in (result.not_relevant, result.relevant):
        for name, counts in group.outcomes.items():
            outcomes.setdefault(name, Counter()).update({outcome.value: n for outcome, n in counts.items()})
    if any(counts.total() > counts["graded"] for counts in outcomes.values()):
        console.print()
        names = list(next(iter(outcomes.values())))
        rows = [(name, *(f"{counts[outcome]:,}" for outcome in names)) for name, counts in outcomes.items()]
        ResultTable.of_rows(("answers to", *names), rows).print_folded()


def _print_effects(
    names: Sequence[str], effects: Sequence[ProbeEffect] | Sequence[ProbeDifference], moved: str
) -> None:
    rows = [
        (
            each.name,
            f"{each.documents:,}",
            with_interval(getattr(each, moved), "+.2f" if "control" in names[0] else ".2f"),
            with_interval(each.change, "+.2f"),
        )
        for each in effects
    ]
    ResultTable.of_rows(names, rows, (0, 2, 3)).print_folded()
