"""`searchapp indexes`: what the engine holds, what is no longer needed, and what must serve again."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.commands import Group
from searchapp.cli.common import JsonOption, command
from searchapp.cli.output import ask, print_json, say, show, stdout_console
from searchapp.errors import EngineRefused, SearchappError, UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from searchapp.engines.base import OnServer, Repair, StoredVersion


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=Group, help="List, remove and repair indexes.", no_args_is_help=True)
    app.add_typer(group, name="indexes")

    @command(group, "list")
    def list_(settings: Settings, as_json: JsonOption = False) -> None:
        """List every index of the engine in use, the solved topics that `rank` has indexed too.

        One version of an index serves. Beside it there may be one that is being built, and leftovers of builds that
        were killed, which the next build removes.
        """
        from searchapp.app import indexes
        from searchapp.engines import open_engine

        with closing(open_engine(settings)) as engine:
            info, found = engine.info(), indexes.versions(engine)
        if as_json:
            described = [_described(one) for one in found]
            print_json({"engine": info.name, "location": info.location, "indexes": described})
        elif found:
            _print(found)
        else:
            say(settings, f"{info.location} has no index yet: `searchapp index TASK` makes one")

    @command(group)
    def remove(
        settings: Settings,
        names: Annotated[
            list[str],
            typer.Argument(
                metavar="NAME",
                help="Indexes, as `searchapp indexes list` names them.",
                show_default=False,
                autocompletion=complete.indexes,
            ),
        ],
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without being asked.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Remove indexes with all their versions; files, runs and judgments are left alone.

        Only what searchapp has made with this SEARCHAPP_INDEX_PREFIX is removed.
        """
        from searchapp.app import indexes
        from searchapp.engines import open_engine

        with closing(open_engine(settings)) as engine:
            found = indexes.named(indexes.versions(engine), names)
            _require_consent(found, engine.info().location, yes=yes)
            for name in found:
                engine.remove(name)
        if as_json:
            print_json({"removed": [_described(one) for every in found.values() for one in every]})
        for name in found:
            say(settings, f"{name} is removed")

    @command(group)
    def repair(
        settings: Settings,
        name: Annotated[
            str | None,
            typer.Argument(
                help="An index, as `searchapp indexes list` names it; all of them by default.",
                show_default=False,
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Make one version of each index on an Elasticsearch serve, and remove leftovers of builds.

        Builders of an earlier searchapp could leave an alias on two versions, and then every command refuses. The
        newest of them that holds what it was built from then serves. Other faults of an index are reported.
        """
        from searchapp.app import indexes

        if not settings.uses_server:
            raise UsageError(
                "indexes of the embedded engine need no repair: give the address of an Elasticsearch with --url or "
                "SEARCHAPP_URL"
            )
        from searchapp.engines import open_server

        with closing(open_server(settings, lambda sentence: say(settings, sentence))) as engine:
            found = indexes.versions(engine)
            chosen = indexes.named(found, [name] if name else [one.name for one in found])
            repaired = [_repaired(engine, versions) for versions in chosen.values()]
        if as_json:
            print_json({"indexes": [_described_repair(one) for one in repaired]})
        for one in repaired:
            if not as_json and (one.serving or one.removed):
                removed = f"; removed: {', '.join(one.removed)}" if one.removed else ""
                show(f"{one.name}: {one.serving or 'nothing'} serves{removed}")
        if not repaired:
            say(settings, f"{settings.address} has no index yet: `searchapp index TASK` makes one")
        if problems := [one.problem for one in repaired if one.problem]:
            raise EngineRefused(*problems)


def _require_consent(found: Mapping[str, Sequence[StoredVersion]], location: str, *, yes: bool) -> None:
    """Make sure that somebody wants to lose these.

    Raises:
        UsageError: nobody is there to be asked.
        SearchappError: the answer is no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask on whether indexes may be removed: add --yes")
    what = ", ".join(f"{name} ({_content(every)})" for name, every in found.items())
    if ask(f"Remove {what} from {location}? [y/N] ").lower() not in ("y", "yes"):
        raise SearchappError("nothing was removed")


def _content(versions: Iterable[StoredVersion]) -> str:
    documents = max((one.info.documents for one in versions if one.info is not None), default=None)
    return "damaged" if documents is None else f"{documents:,} documents"


def _described(version: StoredVersion) -> dict[str, object]:
    from searchapp.app.indexes import task_of

    info = version.info
    return {
        "index": version.name,
        "version": version.version,
        "task": task_of(version),
        "owner": info.owner if info and info.owner else None,
        "state": version.state.value,
        "serves": version.state.value == "serves",
        "documents": None if info is None else info.documents,
        "shards": None if info is None else info.shards,
        "bytes": version.bytes,
        "created": None if info is None else info.created,
    }


def _repaired(engine: OnServer, versions: Sequence[StoredVersion]) -> Repair:
    """Repair the index of some versions; what can't be repaired is the result's problem, with what to do."""
    from searchapp.app.indexes import remedy
    from searchapp.engines.base import Repair

    name = versions[0].name
    owner = next((one.info.owner for one in versions if one.info is not None), "")
    try:
        repaired = engine.repair(name)
    except EngineRefused as error:
        return Repair(name, None, (), str(error))
    if repaired.problem:
        return replace(repaired, problem=f"{repaired.problem}: {remedy(name, owner)}")
    return repaired


def _described_repair(repair: Repair) -> dict[str, object]:
    return {
        "name": repair.name,
        "serving": repair.serving,
        "removed": list(repair.removed),
        "problem": repair.problem or None,
    }


def _print(found: Sequence[StoredVersion]) -> None:
    from rich.filesize import decimal

    from searchapp.app.indexes import task_of
    from searchapp.cli.figures import Column, print_columns

    def texts(heading: str, cells: Iterable[str]) -> Column:
        return Column(heading, list(cells), is_text=True)

    infos = [one.info for one in found]
    now = datetime.now(UTC)
    columns = [
        texts("version", (one.version for one in found)),
        texts("state", (one.state.value for one in found)),
        Column("documents", ["" if info is None else f"{info.documents:,}" for info in infos]),
        Column("size", ["" if one.bytes is None else decimal(one.bytes) for one in found]),
        Column("age", ["" if info is None else _age(info.created, now) for info in infos]),
        texts("task", map(task_of, found)),
    ]
    if any(info and info.owner for info in infos):
        columns.append(texts("task file", ("" if info is None else info.owner for info in infos)))
    print_columns(stdout_console(), texts("index", (one.name for one in found)), columns)


def _age(created: str, now: datetime) -> str:
    """How long ago something was made, in its largest unit.

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
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return f"{seconds} s"
