"""An index that serves again, out of what builders have left."""

from __future__ import annotations

from searchapp.engines.base import Repair
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.copies import copies, flaw
from searchapp.engines.elasticsearch.locks import Locks
from searchapp.engines.elasticsearch.versions import Version, Versions


def repair(connection: Connection, locks: Locks, versions: Versions) -> Repair:
    """Let one version of an index serve alone, and delete what builders have left.

    Of several versions that serve at once the newest one stays that holds what it was built from. What an index
    holds is not repaired, but what is wrong with it is said. An index that another process is building is waited for.

    Raises:
        EngineRefused: the alias is somebody else's, or the other process takes too long.
        EngineUnreachable: the server does not answer.
    """
    versions.behind()  # refuses a name that is not ours before anything is made
    with locks.hold(versions.alias):
        behind = versions.behind()
        kept, flaws = _best(connection, behind)
        removed = []
        if kept is not None and len(behind) > 1:
            others = [one.info.version for one in behind if one is not kept]
            versions.keep_only(kept.info.version, others)
            for index in others:
                versions.delete(index)
            removed += others
        removed += versions.remove_leftovers()
    if kept is None:
        return Repair(versions.name, None, tuple(removed), f"no version of {versions.alias} serves")
    return Repair(versions.name, kept.info.version, tuple(removed), flaws)


def _best(connection: Connection, behind: list[Version]) -> tuple[Version | None, str]:
    """The newest of several versions that is whole and has no flaw, else the newest, and its flaw."""
    newest, problem = None, ""
    for version in reversed(behind):
        found = flaw(connection, version.info)
        if not found and not copies(connection, version.info.version, version.info.shards).without_primary:
            return version, ""
        if newest is None:
            newest, problem = version, found
    return newest, problem
