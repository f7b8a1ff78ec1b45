"""`searchapp index` and `indexes`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import CommandGroup, JsonOption, TaskArgument, command, data_of, reporting_engine
from searchapp.cli.output import (
    ask,
    for_person,
    print_json,
    say,
    show,
    stdout_console,
    warn,
    warn_of_notes,
    warn_of_skipped,
)
from searchapp.config.settings import Settings
from searchapp.engines import open_engine, open_on_disk, open_server
from searchapp.errors import EngineRefused, SearchappError, UsageError
from searchapp.files import data_name
from searchapp.options import argument, flag, option
from searchapp.progress import byte_count
from searchapp.tasks import folders, load
from searchapp.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from searchapp.app.index import ServingIndex
    from searchapp.engines import ElasticsearchEngine
    from searchapp.engines.base import Repair, StoredVersion
    from searchapp.tasks.base import Task


app = typer.Typer()


@command(app)
def index(
    settings: Settings,
    task: TaskArgument,
    data: Path | None = option(
        "Folder with the task's official files, which other commands remember; default: the remembered "
        "folder, or else the folder of `data get`."
    ),
    rebuild: bool = flag("Build the index from all documents, even if nothing has changed."),
    replace: bool = flag("Replace the index even if fewer than half of its documents stay unchanged."),
    lenient: bool = flag("Skip invalid entries instead of stopping."),
    copy: bool = flag(
        "For a task on an index of another program: copy its documents from the server of the settings into the "
        "embedded engine."
    ),
    shards: int | None = option(
        "Number of shards on Elasticsearch; default: as in the existing index. For a new index it depends on "
        "the number of documents and nodes: one below half a million documents.",
        min=1,
        max=64,
    ),
    replicas: int | None = option(
        "Copies of each shard on other nodes; default: as in the existing index. A new index has one if "
        "there is a second node.",
        min=0,
        max=16,
    ),
    as_json: JsonOption = False,
) -> None:
    """Index a task's documents with the analyzers of its mapping.

    If the index already contains exactly these documents under this mapping, nothing happens. Otherwise a new version
    is built beside the live one and replaces it when complete. The embedded engine copies unchanged documents and does
    not analyze them again. On Elasticsearch, an interrupted build resumes.

    If fewer than half of the indexed documents stay unchanged, --replace is required, because judgments refer to
    documents by their ids.
    """
    from searchapp.app.index import copy_index, index_task, outcome_sentences

    loaded = load(task)
    collection = loaded.collection(data_of(settings, loaded, data))
    if copy and not settings.uses_server:
        raise UsageError("--copy reads from an Elasticsearch server: give its address with --url")
    if loaded.info.foreign is not None and (shards is not None or replicas is not None):
        raise UsageError(f"{loaded.reference} builds no index on a server: leave out --shards and --replicas")
    with reporting_engine(settings) as engine, ExitStack() as stack:
        progress = for_person(settings)
        if copy:
            target = stack.enter_context(closing(open_on_disk(settings)))
            outcome = copy_index(loaded, engine, target, progress, rebuild=rebuild)
        else:
            outcome = index_task(
                loaded,
                engine,
                collection,
                progress,
                shards=shards,
                replicas=replicas,
                rebuild=rebuild,
                replace=replace,
                lenient=lenient,
            )
    info, skipped = outcome.info, outcome.problems.skipped
    warn_of_skipped(skipped)
    warn_of_notes(outcome.problems.notes)
    for line in outcome_sentences(loaded, collection, outcome):
        say(settings, line)
    if data is not None:
        _remember(settings, loaded, data)
    if as_json:
        print_json(
            {
                "task": loaded.name,
                "built": outcome.built,
                "index": info.version,
                "documents": info.documents,
                "shards": info.shards,
                "created": info.created,
                "digest": info.digest,
                "skipped": len(skipped.problems) if skipped else 0,
                "indexes": [_described_index(index) for index in outcome.indexes],
                "removed": list(outcome.removed),
                "missing": [data_name(collection.folder, file) for file in outcome.missing],
            }
        )


def _described_index(index: ServingIndex) -> dict[str, object]:
    info = index.info
    return {
        "index": info.version,
        "documents": info.documents,
        "created": info.created,
        "digest": info.digest,
        "reused": index.carried,
    }


def _remember(settings: Settings, task: Task, data: Path) -> None:
    """Store the folder of the data for other commands; a failure is only a warning."""
    try:
        if folders.remember(task, settings.home, data):
            say(settings, f"{task.name}: remembered the folder of its files, {data.resolve()}")
    except SearchappError as error:
        warn(f"the folder was not remembered; give it with --data again: {error}")


group = typer.Typer(cls=CommandGroup, help="List, remove and repair indexes.", no_args_is_help=True)
app.add_typer(group, name="indexes")


@command(group, "list")
def list_(settings: Settings, as_json: JsonOption = False) -> None:
    """List every index of the engine in use, including the indexes of training topics that `rank` builds.

    Each index has one live version. It can also have a version that is being built, and leftovers of killed builds,
    which the next build removes.
    """
    from searchapp.app import index

    with closing(open_engine(settings)) as engine:
        info, result = engine.info(), index.stored_versions(engine)
    if as_json:
        described = [_described_version(version) for version in result]
        print_json({"engine": info.name, "location": info.location, "indexes": described})
    elif result:
        _print(result)
    else:
        say(settings, f"{info.location} has no index yet: `searchapp index TASK` builds one")


@command(group)
def remove(
    settings: Settings,
    names: list[str] = argument(
        "Names of indexes: see `searchapp indexes list`.", metavar="NAME", completes="indexes"
    ),
    yes: bool = flag("Remove without confirmation.", "--yes", "-y"),
    as_json: JsonOption = False,
) -> None:
    """Remove indexes with all their versions, but no files, runs or judgments.

    Only indexes that searchapp built with this SEARCHAPP_INDEX_PREFIX can be removed.
    """
    from searchapp.app import index

    with closing(open_engine(settings)) as engine:
        result = index.named(index.stored_versions(engine), names)
        _require_consent(result, engine.info().location, yes=yes)
        for name in result:
            engine.remove(name)
    if as_json:
        print_json(
            {"removed": [_described_version(version) for versions in result.values() for version in versions]}
        )
    for name in result:
        say(settings, f"removed {name}")


@command(group)
def repair(
    settings: Settings,
    name: str | None = argument(
        "Name of an index: see `searchapp indexes list`; default: all indexes.", default=None
    ),
    as_json: JsonOption = False,
) -> None:
    """Repair Elasticsearch indexes whose alias points to two versions, and remove leftovers of builds.

    As long as the alias of an index points to two versions, every command rejects the index. The newer version that
    contains all of its documents becomes the only live one. Other faults of an index are reported.
    """
    from searchapp.app import index

    if not settings.uses_server:
        raise UsageError(
            "indexes of the embedded engine need no repair: give the address of an Elasticsearch with --url or "
            "SEARCHAPP_URL"
        )

    with closing(open_server(settings, lambda sentence: say(settings, sentence))) as engine:
        result = index.stored_versions(engine)
        chosen = index.named(result, [name] if name else [outcome.name for outcome in result])
        repaired = [_repaired(engine, versions) for versions in chosen.values()]
    if as_json:
        print_json({"indexes": [_described_repair(outcome) for outcome in repaired]})
    for outcome in repaired:
        if not as_json and (outcome.serving or outcome.removed):
            removed = f"; removed: {', '.join(outcome.removed)}" if outcome.removed else ""
            show(f"{outcome.name}: {outcome.serving or 'nothing'} is live{removed}")
    if not repaired:
        say(settings, f"{settings.address} has no index yet: `searchapp index TASK` builds one")
    if problems := [outcome.problem for outcome in repaired if outcome.problem]:
        raise EngineRefused(*problems)


def _described_repair(outcome: Repair) -> dict[str, object]:
    described = asdict(outcome)
    return {
        "name": outcome.name,
        "live": described.pop("serving"),
        **described,
        "problem": outcome.problem or None,
    }


def _require_consent(result: Mapping[str, Sequence[StoredVersion]], location: str, *, yes: bool) -> None:
    """Ask before removing indexes.

    Raises:
        UsageError: there is no terminal.
        SearchappError: the answer is no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to confirm the removal: add --yes")
    listing = ", ".join(f"{name} ({_content(versions)})" for name, versions in result.items())
    if ask(f"Remove {listing} from {location}? [y/N] ").lower() not in ("y", "yes"):
        raise SearchappError("nothing was removed")


def _content(versions: Iterable[StoredVersion]) -> str:
    documents = max(
        (version.info.documents for version in versions if version.info is not None), default=None
    )
    return "damaged" if documents is None else counted(documents, "document")


def _described_version(version: StoredVersion) -> dict[str, object]:
    from searchapp.app.index import task_of

    info = version.info
    return {
        "index": version.name,
        "version": version.version,
        "task": task_of(version),
        "owner": info.owner if info and info.owner else None,
        "state": version.state.value,
        "live": version.state.value == "live",
        "documents": None if info is None else info.documents,
        "shards": None if info is None else info.shards,
        "bytes": version.bytes,
        "created": None if info is None else info.created,
    }


def _repaired(engine: ElasticsearchEngine, versions: Sequence[StoredVersion]) -> Repair:
    """Repair an index; `problem` of the result is what remains, with advice."""
    from searchapp.app.index import remedy
    from searchapp.engines.base import Repair

    name = versions[0].name
    owner = next((version.info.owner for version in versions if version.info is not None), "")
    try:
        repaired = engine.repair(name)
    except EngineRefused as error:
        return Repair(name, None, (), str(error))
    if repaired.problem:
        return replace(repaired, problem=f"{repaired.problem}: {remedy(name, owner)}")
    return repaired


def _print(versions: Sequence[StoredVersion]) -> None:
    from searchapp.app.index import task_of
    from searchapp.cli.tables import ResultTable

    now = datetime.now(UTC)
    owners = ["" if version.info is None else version.info.owner for version in versions]
    with_owner = any(owners)
    rows = (
        (
            version.name,
            version.version,
            version.state.value,
            "" if version.info is None else f"{version.info.documents:,}",
            "" if version.bytes is None else byte_count(version.bytes),
            "" if version.info is None else _age(version.info.created, now),
            task_of(version),
            *([owner] if with_owner else []),
        )
        for version, owner in zip(versions, owners, strict=True)
    )
    names = ("index", "version", "state", "documents", "size", "age", "task", *["task file"] * with_owner)
    ResultTable.of_rows(names, rows, texts=(0, 1, 2, 6, 7)).print(stdout_console())


def _age(created: str, now: datetime) -> str:
    """Format an age in its largest unit.

    >>> _age("2024-05-01T12:00:00+00:00", datetime(2024, 5, 3, 18, tzinfo=UTC))
    '2 days'
    """
    try:
        seconds = max(0, int((now - datetime.fromisoformat(created)).total_seconds()))
    except (TypeError, ValueError):
        return ""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            number = seconds // length
            return counted(number, unit)
    return f"{seconds} s"
