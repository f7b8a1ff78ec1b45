"""What searchapp holds on a server: every version of every index of a prefix."""

from __future__ import annotations

import re

from searchapp.engines.base import State, StoredVersion
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.locks import Locks
from searchapp.engines.elasticsearch.versions import Version, Versions, look_up, meta_of
from searchapp.errors import EngineError


def all_stored(connection: Connection, locks: Locks, prefix: str) -> list[StoredVersion]:
    """Every version of every index whose name begins with a prefix, as far as searchapp has made it.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
    pattern = f"{prefix}-*"
    indexes = look_up(connection, pattern)
    sizes = _sizes(connection, pattern) if indexes else {}
    found = []
    for index, described in sorted(indexes.items()):
        alias = re.sub(r"-\d{6,}$", "", index)
        versions = Versions(connection, alias.removeprefix(f"{prefix}-"), alias)
        version = versions.version(index, described)
        name = meta_of(described).get("name")
        if version is None or name not in (None, versions.name):
            continue  # it is another's, or of an index with another prefix
        state = _state(version, alias, locks)
        size = sizes.get(index)
        found.append(
            StoredVersion(versions.name, index, state, version.info, size, says_name=name is not None)
        )
    return found


def _state(version: Version, alias: str, locks: Locks) -> State:
    if version.serves:
        return State.serves
    if version.may_be_at_work() or (not version.complete and locks.is_held(alias, version.lock)):
        return State.building
    return State.leftover


def _sizes(connection: Connection, pattern: str) -> dict[str, int]:
    """The bytes that indexes take on disk; nothing for a user who may not ask for that, and on a serverless project."""
    if connection.server.is_serverless:
        return {}
    client = connection.client.options(ignore_status=404)
    try:
        answer = connection.call(
            f"ask for the sizes of {pattern}", lambda: client.indices.stats(index=pattern, metric="store")
        )
        return {
            index: int(described["total"]["store"]["size_in_bytes"])
            for index, described in answer.body.get("indices", {}).items()
        }
    except (EngineError, KeyError, TypeError, ValueError):
        return {}
