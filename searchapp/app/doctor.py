"""Check the installation: versions, folder, disk, engine, privileges, and agreement of the engines."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import searchapp
from searchapp import tasks
from searchapp.app.index import index_task, remedy, stored_versions
from searchapp.config.settings import Settings
from searchapp.engines import lacks_compiled, open_engine, open_on_disk, open_server
from searchapp.engines.base import Engine, ShardedIndex, Survey, VersionState
from searchapp.errors import Damaged, EngineError, SearchappError
from searchapp.files import reason
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Ranking
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.signals.base import Inputs
from searchapp.resources import SAMPLES, untested_versions
from searchapp.tasks.base import Task
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.engines import EmbeddedEngine

NEEDED = "reading"  # the use that all others need
SILENT = SilentProgress()
LEAST_FREE_BYTES = 1 << 30
LIBRARIES = ("elasticsearch", "ir-measures", "numpy", "regex", "rich", "typer")


class Verdict(StrEnum):
    """The result of a check; after `failed` searchapp can't work."""

    ok = "ok"
    warning = "warning"
    failed = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """A checked item, and the finding."""

    name: str
    verdict: Verdict
    finding: str


def examine(settings: Settings, progress: Progress = SILENT) -> Iterator[Check]:
    """Yield every check; none stops the others, and trial indexes are removed again.

    Args:
        settings: the resolved settings, with home directory and engine
        progress: shows the verification of embedded indexes, which reads all bytes
    """
    yield _versions()
    yield _tested_versions()
    yield _compiled()
    yield _folder(settings)
    yield _disk(settings)
    yield Check("engine", Verdict.ok, _choice(settings))
    yield _reachable(settings)
    if settings.uses_server:
        yield from _rights(settings)
    yield from _server(settings)
    yield from _indexes(settings)
    yield from _files(settings, progress)
    yield _agreement(settings)


def _versions() -> Check:
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    python = f"Python {platform.python_version()} on {platform.system()}"
    finding = f"searchapp {searchapp.__version__}, {python}; {libraries}"
    return Check("versions", Verdict.ok if sys.version_info >= (3, 11) else Verdict.failed, finding)


def _tested_versions() -> Check:
    untested = untested_versions()
    if not untested:
        return Check("tested versions", Verdict.ok, "Python and all packages are in the tested range")
    named = ", ".join(
        f"{entry.package} {entry.version} (tested: {entry.lowest} to {entry.highest})" for entry in untested
    )
    finding = f"outside the tested range: {named}. If something fails, install a tested version"
    return Check("tested versions", Verdict.warning, finding)


def _compiled() -> Check:
    lacking = lacks_compiled()
    finding = f"the embedded engine ranks without them, more slowly: {lacking}" if lacking else "in use"
    return Check("compiled functions", Verdict.warning if lacking else Verdict.ok, finding)


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


def _folder(settings: Settings) -> Check:
    home = settings.home
    nearest = _nearest_folder(home)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        finding = f"{nearest} is not writable: choose another folder with --home or SEARCHAPP_HOME"
        return Check("folder", Verdict.failed, finding)
    state = "" if home.exists() else " (does not exist yet; created when needed)"
    return Check("folder", Verdict.ok, f"{home}{state}")


def _disk(settings: Settings) -> Check:
    nearest = _nearest_folder(settings.home)
    free = shutil.disk_usage(nearest).free
    finding = f"{free / 2**30:.1f} GiB free at {nearest}"
    if free < LEAST_FREE_BYTES:
        return Check("disk", Verdict.warning, f"{finding}: large collections may not fit")
    return Check("disk", Verdict.ok, finding)


def _choice(settings: Settings) -> str:
    where = f" at {settings.address}" if settings.uses_server else ""
    why = "default" if settings.engine_chosen_by == "default" else f"chosen by {settings.engine_chosen_by}"
    return f"{settings.engine}{where} ({why})"


def _reachable(settings: Settings) -> Check:
    try:
        with closing(open_engine(settings)) as engine:
            info = engine.info()
    except SearchappError as error:
        return Check("engine answers", Verdict.failed, str(error))
    return Check("engine answers", Verdict.ok, f"{info.name} {info.version} at {info.location}")


def _rights(settings: Settings) -> Iterator[Check]:
    """Yield a check for each use of the server; without the right to read the server is useless."""
    try:
        with closing(open_server(settings)) as server:
            uses = server.rights()
    except SearchappError as error:
        yield Check("rights", Verdict.warning, f"not checked: {error}")
        return
    if uses is None:
        yield Check("rights", Verdict.ok, "security is disabled on the server: every user has all rights")
        return
    for rights in uses:
        name = f"rights for {rights.use_name}"
        if rights.missing:
            verdict = Verdict.failed if rights.use_name == NEEDED else Verdict.warning
            finding = (
                f"missing: {'; '.join(rights.missing)}; needed for {rights.use}: `searchapp doctor --roles` "
                "prints a role with these rights"
            )
            yield Check(name, verdict, finding)
        else:
            yield Check(name, Verdict.ok, f"sufficient for {rights.use}")


def _server(settings: Settings) -> Iterator[Check]:
    if not settings.uses_server:
        return
    try:
        with closing(open_server(settings)) as engine:
            survey, stored = engine.survey(), engine.stored()
    except SearchappError:
        return
    yield _nodes(survey)
    names = {entry.version: entry.name for entry in stored if entry.state is VersionState.live}
    for version, index in survey.indexes.items():
        if version in names:
            yield _spread(names[version], index)


def _nodes(survey: Survey) -> Check:
    nodes = partial(Check, "nodes")
    if survey.is_serverless:
        finding = (
            "a serverless project, which manages shards and replicas and does not show them; the check "
            "“engines agree” compares scores"
        )
        return nodes(Verdict.ok, finding)
    if survey.nodes is None:
        return nodes(Verdict.ok, "not known: these credentials have no right to list nodes, and need none")
    each = " and ".join(f"{number} of version {version}" for version, number in survey.nodes.items())
    finding = f"{each}; cluster health {survey.health}"
    if len(survey.nodes) > 1:
        return nodes(Verdict.warning, f"{finding}: finish the upgrade of the cluster")
    if survey.health == "red":
        return nodes(Verdict.warning, f"{finding}: some shards are not allocated")
    return nodes(Verdict.ok, finding)


def _spread(name: str, index: ShardedIndex) -> Check:
    check = f"shards of {name}"
    parts = [
        counted(index.shards, "shard"),
        counted(index.replicas, "replica"),
        f"{index.size / 2**20:,.1f} MiB",
    ]
    if index.milliseconds:
        parts.append(f"{index.milliseconds:,.1f} ms per search on a shard")
    finding = ", ".join(parts)
    wanted = index.shards * (1 + index.replicas)
    if index.copies < wanted:
        return Check(
            check, Verdict.warning, f"{finding}; only {index.copies} of {wanted} shard copies are allocated"
        )
    if index.slow:
        return Check(check, Verdict.warning, f"{finding}; slow: {'; '.join(index.slow)}")
    return Check(check, Verdict.ok, finding)


def _indexes(settings: Settings) -> Iterator[Check]:
    try:
        with closing(open_engine(settings)) as engine:
            for name in tasks.names():
                yield _index(engine, name)
            yield from _other_indexes(engine)
    except SearchappError as error:
        yield Check("indexes", Verdict.failed, str(error))


def _index(engine: Engine, name: str) -> Check:
    check = partial(Check, f"index {name}")
    try:
        info = engine.index_info(name)
        flaw = engine.flaw(name)
    except SearchappError as error:
        return check(Verdict.failed, str(error))
    if flaw:
        return check(Verdict.failed, f"{flaw}: {remedy(name)}")
    if info is None and _should_serve(engine, name):
        return check(Verdict.warning, "no usable version: see its files below")
    if info is None:
        return check(Verdict.ok, f"not indexed yet: `searchapp index {name} --data DIR` builds the index")
    return check(Verdict.ok, f"{counted(info.documents, 'document')}, built {info.created}")


def _should_serve(engine: Engine, name: str) -> bool:
    return any(
        entry.name == name and entry.state in (VersionState.live, VersionState.unreadable)
        for entry in engine.stored()
    )


def _other_indexes(engine: Engine) -> Iterator[Check]:
    owners = {
        entry.name: entry.info.owner
        for entry in stored_versions(engine)
        if entry.info and entry.state is VersionState.live
    }
    for name in sorted(owners.keys() - set(tasks.names())):
        try:
            flaw = engine.flaw(name)
        except SearchappError as error:
            yield Check(f"index {name}", Verdict.failed, str(error))
        else:
            if flaw:
                yield Check(f"index {name}", Verdict.failed, f"{flaw}: {remedy(name, owners[name])}")


def _files(settings: Settings, progress: Progress) -> Iterator[Check]:
    """Yield checks of the files of embedded indexes; damage is only a warning if Elasticsearch ranks."""
    in_use = not settings.uses_server
    with closing(open_on_disk(settings)) as engine:
        try:
            names = engine.names()
        except OSError as error:
            yield Check(
                "files", Verdict.failed, f"the indexes in {settings.home} can't be listed: {reason(error)}"
            )
            return
        for name in names:
            check = _file_check(engine, name, progress)
            if check is not None and not in_use and check.verdict is Verdict.failed:
                check = dataclasses.replace(check, verdict=Verdict.warning)
            if check is not None:
                yield check


def _file_check(engine: EmbeddedEngine, name: str, progress: Progress) -> Check | None:
    check = partial(Check, f"files of {name}")
    try:
        info = engine.verify(name, progress)
    except Damaged as error:
        task = next(
            (task_name for task_name in tasks.names() if name in tasks.load(task_name).info.index_names), name
        )
        finding = f"damaged ({error.problem}): build it again with `searchapp index {task} --data DIR`"
        return check(Verdict.failed, finding)
    except SearchappError as error:
        return check(Verdict.failed, str(error))
    if info is None:
        return None  # removed a moment ago
    return check(Verdict.ok, "intact: every file matches its digest")


def _agreement(settings: Settings) -> Check:
    """Compare ids and scores of the sample's dev topics on both engines, in trial indexes."""
    agree = partial(Check, "engines agree")
    trial = dataclasses.replace(
        settings, index_prefix=f"{settings.index_prefix}-doctor-{secrets.token_hex(3)}"
    )
    try:
        server = open_server(trial)
    except EngineError as error:
        if settings.uses_server:
            return agree(Verdict.failed, f"not compared: {error}")
        finding = f"not compared: no Elasticsearch answers at {settings.address} (none is needed)"
        return agree(Verdict.ok, finding)
    embedded = open_on_disk(trial)
    with closing(server), closing(embedded):
        task = tasks.load("nlps")
        try:
            theirs, ours = (_trial_rankings(engine, task) for engine in (server, embedded))
        except SearchappError as error:
            return agree(Verdict.warning, f"not compared: {error}")
    different = [a.topic_id for a, b in zip(theirs, ours, strict=True) if a != b]
    if different:
        finding = (
            f"the engines rank topics of the sample differently ({', '.join(different)}): please report this"
        )
        return agree(Verdict.failed, finding)
    return agree(
        Verdict.ok, f"both engines return the same documents and scores for {len(ours)} sample topics"
    )


def _trial_rankings(engine: Engine, task: Task) -> tuple[Ranking, ...]:
    collection = task.collection(SAMPLES / task.name)
    recipe = recipes.load(task.recipe_book(), task.info.default_recipe)
    try:
        index_task(task, engine, collection, SilentProgress())
        topics = collection.topics("dev", Problems())
        ranker = Ranker(recipe, Inputs(engine.open(task.name)))
        return ranker.rank(topics, task.info.default_depth, "doctor").rankings
    finally:
        with suppress(SearchappError):  # an engine that fails at that has failed before, which is reported
            engine.remove(task.name)
