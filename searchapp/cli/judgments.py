"""`searchapp judgments`: exchange, read, check and copy judgments; `cli/judging.py` has the commands that
make them."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, closing
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.calibration import app as calibration_app
from searchapp.cli.commands import CommandGroup, JsonOption, OverwriteOption, TaskArgument, command
from searchapp.cli.judging import judgments_app
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    LogOption,
    open_judgments,
    open_log,
    require_log,
)
from searchapp.cli.judgment_reports import app as reports_app
from searchapp.cli.output import print_json, say, show, stdout_console, warn, warn_all
from searchapp.cli.tables import ResultTable, print_line
from searchapp.cli.trust import app as trust_app
from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_engine
from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, write_files
from searchapp.formats.problems import Problems, shown
from searchapp.judging.events import Action, Kind, verdict_label
from searchapp.judging.judgments import Aggregation, Rule, aggregate
from searchapp.judging.log import JudgmentLog, LogVerification, back_up
from searchapp.judging.log import verify as verified
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import be, counted, have

if TYPE_CHECKING:
    from searchapp.judging.agreement import Agreement, SightCounts
    from searchapp.judging.events import Event
    from searchapp.judging.exchange import IncomingFile
    from searchapp.tasks.base import Collection, Grades, Task


app = typer.Typer()
group = typer.Typer(cls=CommandGroup, help="Manage judgments.", no_args_is_help=True)
checks = typer.Typer()
app.add_typer(group, name="judgments")
for commands in (judgments_app, calibration_app, reports_app, trust_app, checks):
    group.add_typer(commands)


@group.callback()
def _group() -> None:
    """Manage judgments: share the work, measure agreement, adjudicate, import and export."""


class JudgmentFormat(StrEnum):
    """The format of exported judgments."""

    jsonl = "jsonl"
    qrels = "qrels"
    trec = "trec"
    official = "official"


@command(group)
def export(
    settings: Settings,
    task: TaskArgument,
    out: Path = option("File to write; - is stdout.", default=REQUIRED),
    format_: JudgmentFormat = option(
        "jsonl: every event with its details; qrels: one grade per document; trec: every annotator's grade; "
        "official: the task's gold file.",
        "--format",
        default=JudgmentFormat.jsonl,
    ),
    data: Path | None = option("With official: folder with the task's official files."),
    split: str | None = option("With official: split of the topics.", completes="splits"),
    rule: Rule = option(
        "qrels, official: how the grades of several annotators become one, unless the document was adjudicated.",
        "--aggregation",
        default=Rule.majority,
    ),
    annotator: AnnotatorsOption = None,
    details: bool = option(
        "jsonl: also write the details of events, such as the digest of the guidelines; searchapp 0.3 reads only "
        "files without them.",
        "--details/--no-details",
        default=True,
    ),
    log: LogOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write the judgments of a task as a file."""
    from searchapp.formats import trec
    from searchapp.judging import exchange
    from searchapp.tasks.base import DataSplit
    from searchapp.tasks.folders import data_folder

    loaded = load(task)
    task = loaded.name
    if annotator and format_ is JudgmentFormat.jsonl:
        raise UsageError("jsonl contains every event: leave out --annotator, or choose another format")
    with open_judgments(settings, log, task, annotator) as (opened, view):
        events = (event for _, event in opened.events(task))
        if format_ in (JudgmentFormat.jsonl, JudgmentFormat.trec):
            with atomic_file(out, replace=overwrite) as file:
                if format_ is JudgmentFormat.jsonl:
                    written = exchange.write_jsonl(
                        file,
                        sorted(events, key=lambda event: event.order),
                        sorted(opened.details(task), key=lambda detail: detail.id) if details else (),
                    )
                else:
                    written = exchange.write_annotators(file, view, annotator)
            say(settings, f"wrote {counted(written, 'line')} to {out}")
            return
        grades = aggregate(view, Aggregation(rule, annotator)).grades
    if format_ is JudgmentFormat.official:
        if split is None:
            raise UsageError("give the split of the judged topics with --split")
        part = DataSplit(loaded.collection(data_folder(loaded, settings.home, data)), split)
        topics = {topic.id for topic in part.topics(Problems(lenient=True))}
        of_split = {topic: given for topic, given in grades.items() if topic in topics}
        write_files(out, loaded.official.gold(of_split, part), replace=overwrite)
        say(settings, f"wrote the gold of {counted(len(of_split), 'topic')} to {out}")
        return
    with atomic_file(out, replace=overwrite) as file:
        trec.write_qrels(file, grades)
    say(settings, f"wrote {counted(sum(map(len, grades.values())), 'line')} to {out}")


@command(group, "import")
def import_(
    settings: Settings,
    task: TaskArgument,
    file: Path = argument(
        "File with judgments; for official also a folder of gold files from `judgments export`."
    ),
    format_: JudgmentFormat = option(
        "jsonl: events; qrels or official (the task's gold file): grades of one annotator.",
        "--format",
        default=JudgmentFormat.jsonl,
    ),
    annotator: str | None = option("qrels, official: annotator of the grades.", completes="annotators"),
    kind: Kind = option("qrels, official: kind of annotator.", default=Kind.person),
    data: Path | None = option("Folder with the task's official files, to check the topics."),
    split: str | None = option("Split of the topics; default: any. The format official requires it."),
    lenient: bool = flag("Also import judgments of topics and documents that the task does not have."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import judgments from a file: all of them or, if one contradicts the log, none.

    A judgment is stored once: importing a file again changes nothing. Topics are checked against the task's files and
    documents against its index. To undo an import, find its number with `judgments imports` and give it to `judgments
    retract`; importing the file again restores its judgments.
    """
    from searchapp.judging import exchange
    from searchapp.tasks.folders import data_folder

    if format_ is JudgmentFormat.trec:
        raise UsageError("the format trec can only be exported: import jsonl, qrels or official")
    if (annotator is None) != (format_ is JudgmentFormat.jsonl):
        raise UsageError(
            "give the annotator of these grades with --annotator"
            if annotator is None
            else "a jsonl file contains its annotators: leave out --annotator, or give another --format"
        )
    loaded = load(task)
    highest = len(loaded.info.grades) - 1
    collection = loaded.collection(data_folder(loaded, settings.home, data))
    with open_log(settings, log, loaded.name, must_exist=False) as opened:
        if annotator is None:
            incoming = exchange.incoming_events(opened, file, loaded.name, highest)
        else:
            if format_ is JudgmentFormat.official:
                grades = _gold_grades(loaded, file, collection, split)
            else:
                grades = exchange.read_grades(file)
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            template = exchange.template(annotator, kind, loaded.name, now)
            incoming = exchange.incoming_grades(opened, grades, template, file, format_.value, highest)
        _check_ids(settings, loaded, incoming, collection, split, lenient=lenient)
        imported = exchange.import_file(opened, loaded.name, incoming)
    if as_json:
        print_json(
            {
                "file": str(file),
                "events": incoming.judgments,
                "new": imported.events if imported else 0,
                "import": imported.number if imported else None,
                "undone": incoming.undone,
            }
        )
    undone = ""
    if incoming.undone:
        were, stay = ("was", "stays") if incoming.undone == 1 else ("were", "stay")
        undone = f"; {incoming.undone:,} {were} undone since, and {stay} so"
    if imported is None:
        say(settings, f"{file}: {counted(incoming.judgments, 'judgment')}, none of them new{undone}")
        return
    again = shlex.join(["searchapp", "judgments", "retract", task, "--import", str(imported.number)])
    if log is not None:
        again += f" --log {shlex.quote(str(log))}"
    say(
        settings,
        f"{file}: {counted(incoming.judgments, 'judgment')}, {imported.events:,} of them new{undone}; this is import "
        f"{imported.number}: `{again}` retracts it",
    )


def _check_ids(
    settings: Settings,
    task: Task,
    incoming: IncomingFile,
    collection: Collection,
    split: str | None,
    *,
    lenient: bool,
) -> None:
    """Look up the topics and documents of imported judgments.

    Raises:
        DataError: some are unknown, and `lenient` is false.
    """
    from searchapp.app.index import open_index
    from searchapp.runs.lookup import look_up_documents, look_up_topics

    if not incoming.new:
        return
    with ExitStack() as stack:
        result = [
            look_up_topics(task, collection, split, dict.fromkeys(event.topic_id for event in incoming.new)),
            look_up_documents(
                lambda: open_index(task, stack.enter_context(closing(open_engine(settings)))),
                collection,
                dict.fromkeys(event.document_id for event in incoming.new),
            ),
        ]
    warn_all(
        f"the {looked_up.kind}s of {incoming.path} could not be checked: {looked_up.why_not}"
        for looked_up in result
        if looked_up.why_not
    )
    unknown = "; ".join(str(looked_up) for looked_up in result if looked_up.unknown)
    if unknown and not lenient:
        raise DataError(f"{incoming.path}: {unknown}: give their task, or import them anyway with --lenient")
    if unknown:
        warn(f"{incoming.path}: {unknown}")


def _gold_grades(task: Task, file: Path, collection: Collection, split: str | None) -> Grades:
    """Read the grades of a gold file, or of the split's files in a folder.

    Raises:
        UsageError: no split is given.
        DataError: a file is not gold of the task, or has unknown topics.
    """
    from searchapp.tasks.base import DataSplit

    if split is None:
        raise UsageError("give the split of the judged topics with --split")
    part = DataSplit(collection, split)
    files = [file]
    if file.is_dir():
        names = [path.name for path in collection.gold_files(split)]
        files = [path for name in names if (path := file / name).is_file()]
        if not files:
            raise DataError(f"{file} has no gold file of {task.name} {split}, such as {names[0]}")
    grades = task.official.grades(files, part)
    topics = {topic.id for topic in part.topics(Problems(lenient=True))}
    for topic in grades:
        if topic not in topics:
            raise DataError(f"{file}: {task.name} {split} has no topic {shown(topic)}: give another --split")
    return grades


@command(group)
def imports(
    settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False
) -> None:
    """List the imported files of judgments: number, time, and how many of their judgments are current.

    Judgments from the team's cluster are not imports. Each machine has its own list.
    """
    task = load(task).name
    with open_judgments(settings, log, task) as (opened, view):
        result = [
            (imported, sum(view.holds(event.id) for event in opened.events_of(imported.number)))
            for imported in opened.imports(task)
        ]
    if as_json:
        print_json(
            {"task": task, "imports": [{**asdict(imported), "active": hold} for imported, hold in result]}
        )
    elif not result:
        say(settings, f"no judgments of {task} were imported")
    else:
        names = ("import", "when", "format", "judgments", "current", "file")
        rows = (
            (
                str(imported.number),
                imported.time,
                imported.format,
                f"{imported.events:,}",
                f"{hold:,}",
                imported.file,
            )
            for imported, hold in result
        )
        ResultTable.of_rows(names, rows, texts=(1, 2, 5)).print(stdout_console())


@command(group)
def retract(
    settings: Settings,
    task: TaskArgument,
    number: int = option("Number of the import: see `judgments imports`.", "--import", default=REQUIRED),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retract the current judgments of an import, and restore the judgments that they replaced.

    Nothing is deleted: the log gets a retraction for each judgment. Importing the file again restores its judgments.
    """
    from searchapp.judging.exchange import retract_import

    task = load(task).name
    with open_judgments(settings, log, task) as (opened, view):
        known = {imported.number: imported for imported in opened.imports(task)}
        if number not in known:
            listed = ", ".join(map(str, known)) or "none"
            raise UsageError(f"{opened.path} has no import {number} of {task}: choose from {listed}")
        retracted = retract_import(opened, number, view)
    if as_json:
        print_json({"task": task, "import": number, "retracted": retracted})
    file = known[number].file
    if not retracted:
        say(settings, f"import {number} ({file}) has no current judgments: nothing was retracted")
    else:
        say(settings, f"retracted {counted(retracted, 'judgment')} of import {number} ({file})")


@command(checks)
def sync(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Exchange judgments of all tasks with all users of the same Elasticsearch and prefix.

    Send the events that the server lacks, and fetch those that the log lacks. Running it again changes nothing.
    """
    from searchapp.app.sessions import exchange

    address = judgments_address(settings)
    with closing(JudgmentLog(log or settings.judgments, report=warn)) as opened:
        result = exchange(settings, opened)
        waiting = opened.waiting(address)
    if as_json:
        print_json(
            {"index": address, "log": str(opened.path), "sent": result.sent, "fetched": result.fetched,
             "waiting": waiting}
        )  # fmt: skip
    say(
        settings,
        f"sent {counted(result.sent, 'judgment')} to {address}, received {result.fetched:,}"
        + (f"; {waiting:,} newer not sent yet" if waiting else ""),
    )


class ListedAction(StrEnum):
    """Actions that can be listed."""

    grade = "grade"
    skip = "skip"
    cant_tell = "cant_tell"
    note = "note"
    adjudicate = "adjudicate"


@command(group)
def stats(settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Show the number of judgments of each annotator, their grades, and the time per judgment."""
    from searchapp.judging.agreement import progress

    task = load(task).name
    with open_judgments(settings, log, task) as (_, view):
        result = progress(view)
    if as_json:
        print_json(
            {
                "task": task,
                "events": view.count,
                "annotators": [asdict(annotator_progress) for annotator_progress in result],
            }
        )
        return
    names = ("annotator", "kind", "topics", "graded", "can't tell", "skipped", "seconds each", "grades")
    rows = (
        (
            annotator_progress.annotator,
            annotator_progress.kind.value,
            *map(
                str,
                (
                    annotator_progress.topics,
                    annotator_progress.graded,
                    annotator_progress.cant_tell,
                    annotator_progress.skipped,
                ),
            ),
            "" if annotator_progress.seconds is None else f"{annotator_progress.seconds:.1f}",
            " ".join(f"{grade}:{count:,}" for grade, count in annotator_progress.grades.items()),
        )
        for annotator_progress in result
    )
    ResultTable.of_rows(names, rows, texts=(0, 1, 7)).print_folded()


@command(group)
def progress(
    settings: Settings,
    task: TaskArgument,
    sample: Path = option(
        "Pool of `judgments pool --by sample`, whose documents are judged.",
        default=REQUIRED,
        metavar="POOL",
        completes="runs",
    ),
    target: float = option(
        "Recall of the pool's relevant documents at which to stop.", default=0.9, min=0, max=1
    ),
    rule: Rule = option(
        "How the grades of several annotators become one, unless the document was adjudicated.",
        "--aggregation",
        default=Rule.majority,
    ),
    annotator: AnnotatorsOption = None,
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate how many relevant documents of a pool are not found yet, and recommend to stop or to go on.

    The estimate is Horvitz and Thompson's, from the judged documents of a stratified sample, with a 95 % interval. Stop
    if all topics have an estimate and the lower limit of the recall reaches the target. Documents outside the pool are
    not estimated.
    """
    from searchapp.app.pool import read_sample
    from searchapp.app.pooling import judging_progress

    task = load(task).name
    with open_judgments(settings, log, task, annotator) as (_, view):
        grades = aggregate(view, Aggregation(rule, annotator)).grades
    result = judging_progress(read_sample(sample, task), grades)
    missing = result.missing
    recall, low, high = (result.recall(number) for number in (missing.value, missing.high, missing.low))
    without = result.of_topics - result.topics
    is_enough = low >= target and not without
    if as_json:
        print_json(
            {
                "task": task,
                "topics": result.topics,
                "topics_without_estimate": without,
                "found": result.found,
                "unjudged": result.unjudged,
                "missing": asdict(missing),
                "recall": {"value": recall, "low": low, "high": high},
                "target": target,
                "stop": is_enough,
            }
        )
        return
    names = ("", "estimate", "low", "high")
    rows = [
        ("relevant documents found", f"{result.found:,}", "", ""),
        ("relevant documents not found", *(f"{number:,.1f}" for number in astuple(missing))),
        ("recall", *(f"{share:.4f}" for share in (recall, low, high))),
    ]
    ResultTable.of_rows(names, rows).print(stdout_console())
    if without:
        of = counted(result.of_topics, "topic")
        advice = f"go on: {without:,} of {of} of {sample} {have(without)} no judged document in a stratum"
    elif is_enough:
        advice = f"stop: the recall in {sample} is at least {target:g} with 95 % confidence"
    else:
        unjudged = counted(result.unjudged, "document")
        advice = (
            f"go on: the recall in {sample} may be {low:.2f}, below the target {target:g}; {unjudged} of the pool "
            f"{have(result.unjudged)} no grade"
        )
    print_line(stdout_console(), advice)


@command(group)
def agreement(
    settings: Settings,
    task: TaskArgument,
    annotator: AnnotatorsOption = None,
    disputed: int = option("Number of disputed documents to show.", default=10, min=0),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far annotators agree beyond chance, and where they disagree most.

    Kappa is Cohen's, unweighted and with linear and quadratic weights; alpha is Krippendorff's, ordinal. 1 is perfect
    agreement, 0 is agreement by chance. Models count as annotators. A grade given in view of others' judgments, or
    changed after they became visible, is not independent: the output counts such grades. If the guidelines changed, it
    shows how many grades were given under each version.
    """
    from searchapp.judging.agreement import agreement as measured
    from searchapp.judging.guidelines import GUIDELINES

    task = load(task).name
    with open_judgments(settings, log, task, annotator) as (opened, view):
        digests = {
            detail.event: str(detail.value.get("digest")) for detail in opened.details(task, GUIDELINES)
        }
        result = measured(view, annotator, digests)
    if as_json:
        print_json(_agreement_json(task, result))
    else:
        _print_agreement(result, disputed)
        warn_all(result.warnings)


@command(group, "list")
def list_(
    settings: Settings,
    task: TaskArgument,
    annotator: list[str] | None = option(
        "Only this annotator, a person or a model; repeatable.",
        show_default="everybody",
        completes="annotators",
    ),
    topic: list[str] | None = option("Only this topic; repeatable.", show_default="all"),
    action: list[ListedAction] | None = option(
        "Only grades, skips, “can't tell”, notes without a grade, or decisions; repeatable.",
        show_default="all",
    ),
    grade: list[int] | None = option("Only this grade; repeatable.", min=0, show_default="all"),
    with_notes: bool = flag("Only judgments with a note or a reason."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the current judgments: annotator, topic, document, grade, reason and time.

    Undone and replaced judgments are not listed; `judgments export` writes every event.
    """
    from searchapp.judging.judgments import JudgmentFilter, list_judgments

    loaded = load(task)
    for value in grade or ():
        if value >= len(loaded.info.grades):
            raise UsageError(f"{loaded.name} has the grades 0 to {len(loaded.info.grades) - 1}, not {value}")
    with open_judgments(settings, log, loaded.name, annotator) as (_, view):
        actions = None if action is None else [Action(listed.value) for listed in action]
        result = list_judgments(view, JudgmentFilter(annotator, topic, actions, grade, with_notes))
    if as_json:
        described = [asdict(judgment) for judgment in result]
        for judgment in described:
            judgment["note"] = judgment.pop("words")
        print_json({"task": loaded.name, "judgments": described})
    elif result:
        names = ("when (UTC)", "annotator", "topic", "document", "judgment", "rank", "note")
        rows = (
            (
                f"{datetime.fromisoformat(judgment.time).astimezone(UTC):%Y-%m-%d %H:%M}",
                judgment.annotator if judgment.kind.value == "person" else f"{judgment.annotator} (a model)",
                judgment.topic_id,
                judgment.document_id,
                f"{'decided ' if judgment.action is Action.adjudicate else ''}"
                f"{verdict_label(judgment.action, judgment.grade, loaded.info.grades)}",
                "" if judgment.rank is None else str(judgment.rank),
                judgment.words,
            )
            for judgment in result
        )
        ResultTable.of_rows(names, rows, texts=(0, 1, 2, 3, 4, 6)).print_folded()
    say(settings, counted(len(result), "judgment"))


def _print_agreement(result: Agreement, most: int) -> None:
    from searchapp.report.judgment_tables import guidelines_table

    console = stdout_console()
    if not result.documents:
        console.print(
            "no document has grades of several annotators: `judgments assign --overlap` shares topics"
        )
        return
    console.print(
        f"alpha {result.alpha:.4f} (Krippendorff, ordinal) over "
        f"{counted(result.documents, 'document')} with several grades"
    )
    console.print(_in_sight_words(result.saw_others))
    is_seen = result.saw_others.saw_others or result.saw_others.unknown
    seen = [
        (name, *map(str, (each.grades, each.saw_others, each.unknown)))
        for name, each in result.saw_others_by.items()
        if is_seen
    ]
    pairs = [
        (
            " and ".join(pair.annotators),
            str(pair.documents),
            *(f"{kappa:.4f}" for kappa in (pair.kappa, pair.linear, pair.quadratic)),
        )
        for pair in result.pairs
    ]
    topics = [(topic, str(documents), f"{alpha:.4f}") for topic, (documents, alpha) in result.topics.items()]
    disputed = [
        (
            *key,
            "  ".join(f"{name}: {grade}" for name, grade in grades.items()),
            _decided(result.decisions.get(key)),
        )
        for key, grades in result.disputed[:most]
    ]
    versions = guidelines_table(result.guidelines if len(result.guidelines) > 1 else ())
    for names, rows, texts in (
        (("annotator", "grades", "in view of others'", "not recorded"), seen, (0,)),
        (("annotators", "documents", "kappa", "linear", "quadratic"), pairs, (0,)),
        (("topic", "documents", "alpha"), topics, (0,)),
        (("topic", "document", "grades", "decided"), disputed, (0, 1, 2, 3)),
        (versions.headings, versions.rows, versions.texts),
    ):
        if rows:
            console.print()
            ResultTable.of_rows(names, rows, texts).print_folded()
    if result.disputed:
        total, decided = len(result.disputed), len(result.decisions)
        console.print(f"{decided:,} of {counted(total, 'disputed document')} {be(decided)} decided")


def _decided(decision: Event | None) -> str:
    return "" if decision is None else f"{decision.grade} by {decision.annotator}"


def _in_sight_words(sight_counts: SightCounts) -> str:
    """Describe the share of grades that were given in view of others'.

    >>> from searchapp.judging.agreement import SightCounts
    >>> _in_sight_words(SightCounts(200, 3, 0))
    "3 of 200 grades (1.5%) were given in view of others' judgments"
    """
    known = sight_counts.grades - sight_counts.unknown
    if not known:
        return "it is not recorded whether grades were given in view of others' judgments"
    share = f"{sight_counts.saw_others / known:.1%}"
    unknown = f"; not recorded for {sight_counts.unknown:,} more" if sight_counts.unknown else ""
    were = "was" if sight_counts.saw_others == 1 else "were"
    return (
        f"{sight_counts.saw_others:,} of {counted(known, 'grade')} ({share}) {were} given in view of others' "
        f"judgments{unknown}"
    )


def _agreement_json(task: str, result: Agreement) -> dict[str, object]:
    return {
        "task": task,
        "annotators": list(result.annotators),
        "documents": result.documents,
        "alpha": result.alpha,
        "saw_others": {
            **asdict(result.saw_others),
            "annotators": {name: asdict(of) for name, of in result.saw_others_by.items()},
        },
        "guidelines": {
            "changed": result.guidelines_changed,
            "versions": [asdict(use) for use in result.guidelines],
        },
        "pairs": [asdict(pair) for pair in result.pairs],
        "topics": {
            topic: {"documents": documents, "alpha": alpha}
            for topic, (documents, alpha) in result.topics.items()
        },
        "disputed": [
            {
                "topic": topic,
                "document": document,
                "grades": dict(grades),
                "decided": None if decision is None else {"by": decision.annotator, "grade": decision.grade},
            }
            for (topic, document), grades in result.disputed
            for decision in [result.decisions.get((topic, document))]
        ],
    }


# Maximum number of listed problems without --json.
SHOWN = 20


@command(checks)
def verify(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Check the whole log for damage: every event, its checksum, and the structure of the file.

    If anything is damaged, list the damaged or missing events and exit with code 4.
    """

    path = require_log(settings, log)
    with closing(JudgmentLog(path)) as opened:
        verdict = verified(opened)
    _report_check(settings, path, verdict, as_json)
    if not verdict.is_sound:
        raise DataError(
            f"{path} is damaged: damaged events are ignored; restore a backup, or copy the intact events "
            "with `searchapp judgments export` and `import --log` to a new log"
        )


@command(checks)
def backup(
    settings: Settings,
    file: Path = argument("New file to write."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the log to a new file, even during judging, and verify the copy.

    The copy is a single file for --log. An existing file is never replaced.
    """

    path = require_log(settings, log)
    with closing(JudgmentLog(path)) as opened:
        verdict = back_up(opened, file)
    _report_check(settings, file, verdict, as_json)
    if not verdict.is_sound:
        raise DataError(f"wrote {file}, but {path} and therefore the copy are damaged: keep earlier backups")


def _report_check(settings: Settings, path: Path, verdict: LogVerification, as_json: bool) -> None:
    if as_json:
        print_json({"log": str(path), "intact": verdict.is_sound, **asdict(verdict)})
        return
    for problem in verdict.problems[:SHOWN]:
        show(problem)
    if len(verdict.problems) > SHOWN:
        show(f"and {len(verdict.problems) - SHOWN:,} more: --json lists them all")
    if verdict.is_sound:
        details = f" and {counted(verdict.details, 'detail')}" if verdict.details else ""
        say(settings, f"{path}: {counted(verdict.events, 'event')}{details}, all intact")
