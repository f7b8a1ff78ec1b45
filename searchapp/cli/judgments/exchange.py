"""`searchapp judgments export`, `import`, `imports`, `retract` and `sync`: judgments from and to files and teams."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.commands import JsonOption, OverwriteOption, TaskArgument, command
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    LogOption,
    events_of,
    name_of,
    of_task,
    open_log,
    require_known,
)
from searchapp.cli.output import print_json, say, stdout_console, warn
from searchapp.cli.tables import Column, print_columns
from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_engine
from searchapp.errors import DataError, UsageError
from searchapp.files import whole_file, write_files
from searchapp.judging.events import Kind
from searchapp.judging.judgments import Folding, Rule, judged
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.judging.exchange import Incoming
    from searchapp.judging.log import Import
    from searchapp.tasks.base import Collection, Grades, Task


app, syncing = typer.Typer(), typer.Typer()


class Format(StrEnum):
    """What judgments can be written as."""

    jsonl = "jsonl"
    qrels = "qrels"
    trec = "trec"
    official = "official"


DataOption = Annotated[Path | None, option("official: folder with the task's official files.")]
SplitOption = Annotated[str | None, option("official: the split that the topics are of.", completes="splits")]


@command(app)
def export(
    settings: Settings,
    task: TaskArgument,
    out: Path = option("File to write; - is stdout.", default=REQUIRED),
    format_: Format = option(
        "jsonl: every event; qrels: the grade that holds; trec: every annotator's grade; "
        "official: the task's own gold file.",
        "--format",
        default=Format.jsonl,
    ),
    data: DataOption = None,
    split: SplitOption = None,
    rule: Rule = option(
        "qrels, official: how several annotators' grades become one, where nobody has decided.",
        default=Rule.majority,
    ),
    annotator: AnnotatorsOption = None,
    log: LogOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write the judgments of a task as a file."""
    from searchapp.formats import trec
    from searchapp.formats.problems import Problems
    from searchapp.judging import exchange
    from searchapp.tasks.base import Part
    from searchapp.tasks.folders import data_folder

    loaded = load(task)
    task = loaded.name
    if annotator and format_ is Format.jsonl:
        raise UsageError("jsonl holds every event: leave out --annotator, or choose another format")
    with open_log(settings, log, loaded.name) as opened:
        _, view = of_task(opened, task)
        require_known(annotator, view, task)
        if format_ in (Format.jsonl, Format.trec):
            with whole_file(out, replace=overwrite) as file:
                if format_ is Format.jsonl:
                    written = exchange.write_jsonl(file, events_of(opened, task))
                else:
                    written = exchange.write_annotators(file, view, annotator)
            say(settings, f"{counted(written, 'line')} written to {out}")
            return
        grades = judged(view, Folding(rule, annotator)).grades
    if format_ is Format.official:
        if split is None:
            raise UsageError("name the split of the judged topics with --split")
        part = Part(loaded.collection(data_folder(loaded, settings.home, data)), split)
        own = {topic.id for topic in part.topics(Problems(lenient=True))}
        of_split = {topic: given for topic, given in grades.items() if topic in own}
        write_files(out, loaded.official.gold(of_split, part), replace=overwrite)
        say(settings, f"the gold of {counted(len(of_split), 'topic')} is written to {out}")
        return
    with whole_file(out, replace=overwrite) as file:
        trec.write_qrels(file, grades)
    say(settings, f"{counted(sum(map(len, grades.values())), 'line')} written to {out}")


@command(app, "import")
def import_(
    settings: Settings,
    task: TaskArgument,
    file: Path = argument(
        "A file with judgments; official: or the folder of gold files that export has written."
    ),
    format_: Format = option(
        "jsonl, or one annotator's grades: qrels, or official, the task's own gold file.",
        "--format",
        default=Format.jsonl,
    ),
    annotator: str | None = option("qrels, official: whose grades these are.", completes="annotators"),
    kind: Kind = option("qrels, official: a person's, or a model's.", default=Kind.person),
    data: Path | None = option("Folder with the task's official files: which topics there are."),
    split: str | None = option("The split that the topics are of; any by default. Official needs it."),
    lenient: bool = flag("Import judgments on topics and documents that the task does not have, too."),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import judgments from a file: all of them or, if one contradicts the log, none.

    A judgment is stored once: to import a file a second time changes nothing. Topics are looked up in the
    task's files and documents in its index. An import can be retracted: `judgments imports` lists the files,
    `judgments retract` retracts one, and to import it again restores its judgments.
    """
    from searchapp.judging import exchange
    from searchapp.tasks.folders import data_folder

    if format_ is Format.trec:
        raise UsageError("the format trec can only be written: import jsonl, qrels or official")
    if (annotator is None) != (format_ is Format.jsonl):
        raise UsageError(
            "name whose grades these are with --annotator"
            if annotator is None
            else "a file of the format jsonl names its annotators itself: leave out --annotator, or name "
            "another --format"
        )
    loaded = load(task)
    highest = len(loaded.info.grades) - 1
    collection = loaded.collection(data_folder(loaded, settings.home, data))
    with open_log(settings, log, loaded.name, must_exist=False) as opened:
        if annotator is None:
            incoming = exchange.incoming_events(opened, file, loaded.name, highest)
        else:
            if format_ is Format.official:
                grades = _of_gold(loaded, file, collection, split)
            else:
                grades = exchange.read_grades(file)
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            template = exchange.template(annotator, kind, loaded.name, now)
            incoming = exchange.incoming_grades(opened, grades, template, file, format_.value, highest)
        _check_ids(settings, loaded, incoming, collection, split, lenient=lenient)
        made = exchange.take_in(opened, loaded.name, incoming)
    if as_json:
        print_json(
            {
                "file": str(file),
                "events": incoming.judgments,
                "new": made.events if made else 0,
                "import": made.number if made else None,
                "undone": incoming.undone,
            }
        )
    undone = ""
    if incoming.undone:
        were, stay = ("was", "stays") if incoming.undone == 1 else ("were", "stay")
        undone = f"; {incoming.undone:,} {were} undone since, and {stay} so"
    if made is None:
        say(settings, f"{file}: {counted(incoming.judgments, 'judgment')}, none of them new{undone}")
        return
    again = shlex.join(["searchapp", "judgments", "retract", task, "--import", str(made.number)])
    if log is not None:
        again += f" --log {shlex.quote(str(log))}"
    say(
        settings,
        f"{file}: {counted(incoming.judgments, 'judgment')}, {made.events:,} of them new{undone}; this is import "
        f"{made.number}: `{again}` retracts it",
    )


def _check_ids(
    settings: Settings,
    task: Task,
    incoming: Incoming,
    collection: Collection,
    split: str | None,
    *,
    lenient: bool,
) -> None:
    """Look up the topics and documents that a file brings.

    Raises:
        DataError: the task does not have some of them, and `lenient` is not set.
    """

    from searchapp.app.index import open_index
    from searchapp.runs.lookup import look_up_documents, look_up_topics

    if not incoming.new:
        return
    with ExitStack() as stack:
        found = [
            look_up_topics(task, collection, split, dict.fromkeys(event.topic_id for event in incoming.new)),
            look_up_documents(
                lambda: open_index(task, stack.enter_context(closing(open_engine(settings)))),
                collection,
                dict.fromkeys(event.document_id for event in incoming.new),
            ),
        ]
    for one in found:
        if one.why_not:
            warn(
                f"whether {task.name} has the {one.kind}s of {incoming.path} could not be checked: {one.why_not}"
            )
    unknown = "; ".join(str(one) for one in found if one.unknown)
    if unknown and not lenient:
        raise DataError(
            f"{incoming.path}: {unknown}: name the task that they are of, or import them all the same with --lenient"
        )
    if unknown:
        warn(f"{incoming.path}: {unknown}")


def _of_gold(task: Task, file: Path, collection: Collection, split: str | None) -> Grades:
    """The grades of a gold file, or of those in a folder that go by the names of the split's.

    Raises:
        UsageError: the split is not said.
        DataError: a file can't be read as the task's gold, or has topics that the split has not.
    """
    from searchapp.formats.problems import Problems, shown
    from searchapp.tasks.base import Part

    if split is None:
        raise UsageError("name the split of the judged topics with --split")
    part = Part(collection, split)
    files = [file]
    if file.is_dir():
        names = [path.name for path in collection.gold_files(split)]
        files = [path for name in names if (path := file / name).is_file()]
        if not files:
            raise DataError(f"{file} has no gold file of {task.name} {split}, such as {names[0]}")
    grades = task.official.grades(files, part)
    known = {topic.id for topic in part.topics(Problems(lenient=True))}
    for topic in grades:
        if topic not in known:
            raise DataError(f"{file}: {task.name} {split} has no topic {shown(topic)}: name another --split")
    return grades


@command(app)
def imports(
    settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False
) -> None:
    """List the files that judgments were imported from: number, time, and how many judgments still hold.

    Judgments from the team's cluster are not imports, and each machine lists its own.
    """
    task = name_of(task)
    with open_log(settings, log, task) as opened:
        _, view = of_task(opened, task)
        found = [
            (one, sum(view.holds(event.id) for event in opened.events_of(one.number)))
            for one in opened.imports(task)
        ]
    if as_json:
        print_json({"task": task, "imports": [{**asdict(one), "hold": hold} for one, hold in found]})
    elif not found:
        say(settings, f"no judgments of {task} came from a file")
    else:
        _print_imports(found)


@command(app)
def retract(
    settings: Settings,
    task: TaskArgument,
    number: int = option("The import's number, see `judgments imports`.", "--import", default=REQUIRED),
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retract the judgments of an import that still hold; earlier judgments hold again.

    Nothing is deleted: the log gets a retraction for each judgment. Importing the file again restores them.
    """
    from searchapp.judging.exchange import take_back

    task = name_of(task)
    with open_log(settings, log, task) as opened:
        _, view = of_task(opened, task)
        known = {one.number: one for one in opened.imports(task)}
        if number not in known:
            listed = ", ".join(map(str, known)) or "none"
            raise UsageError(f"there is no import {number} of {task} in {opened.path}: it has {listed}")
        retracted = take_back(opened, number, view)
    if as_json:
        print_json({"task": task, "import": number, "retracted": retracted})
    file = known[number].file
    if not retracted:
        say(settings, f"nothing of import {number} ({file}) holds any more: nothing is retracted")
    else:
        say(settings, f"{counted(retracted, 'judgment')} of import {number} ({file}) retracted")


def _print_imports(found: Sequence[tuple[Import, int]]) -> None:
    imports = [one for one, _hold in found]
    print_columns(
        stdout_console(),
        Column("import", [str(one.number) for one in imports]),
        [
            Column("when", [one.time for one in imports], is_text=True),
            Column("format", [one.format for one in imports], is_text=True),
            Column("judgments", [f"{one.events:,}" for one in imports]),
            Column("still hold", [f"{hold:,}" for _one, hold in found]),
            Column("file", [one.file for one in imports], is_text=True),
        ],
    )


@command(syncing)
def sync(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
    """Exchange judgments of all tasks with everybody who uses the same Elasticsearch and prefix.

    Events that the server lacks are sent, events that the log lacks are fetched; a repetition changes nothing.
    """
    from searchapp.app.sessions import exchange
    from searchapp.judging.log import JudgmentLog

    address = judgments_address(settings)
    with closing(JudgmentLog(log or settings.judgments, report=warn)) as opened:
        found = exchange(settings, opened)
        waiting = opened.waiting(address)
    if as_json:
        print_json(
            {"index": address, "log": str(opened.path), "sent": found.sent, "fetched": found.fetched,
             "waiting": waiting}
        )  # fmt: skip
    say(
        settings,
        f"{counted(found.sent, 'judgment')} sent to {address}, {found.fetched:,} new from it"
        + (f"; {waiting:,} written since not sent yet" if waiting else ""),
    )
