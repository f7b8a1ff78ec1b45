"""The indexes of an engine: which there are, of which task each is, and the user's own tasks that have one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.solved_index import EXAMPLES
from searchapp.engines.base import Engine, State, StoredVersion
from searchapp.errors import UsageError
from searchapp.names import meant
from searchapp.tasks import catalogue

_VARIED = re.compile(r"-m[0-9a-f]{8}(-|$)")
"""In the name of an index that a variant with mappings of its own has, see `tasks.variant`."""


@dataclass(frozen=True, slots=True)
class OwnTask:
    """A task of the user's own that has an index: its name, the file that it was made for, which may be gone."""

    name: str
    file: Path
    documents: int


def versions(engine: Engine) -> list[StoredVersion]:
    """Every version of every index of the engine's prefix, by name and version.

    An index that does not say its own name is left out if it can as well be one with a longer prefix.
    """
    return [one for one in engine.stored() if one.says_name or _is_ours(one.name)]


def task_of(version: StoredVersion) -> str:
    """The name of the task that an index belongs to, with that of the split for solved topics of an own task."""
    name = version.name.removeprefix(EXAMPLES)
    return _shipped(name) or name.removeprefix(catalogue.OWN)


def remedy(name: str, owner: str = "") -> str:
    """What to do about an index that holds something else than it should, as the end of a sentence.

    `owner` is the task file that it was made for, empty for a task that searchapp ships.
    """
    if name.startswith(EXAMPLES):
        return "the next `searchapp rank` that needs it builds it again"
    if _VARIED.search(name):
        return f"build it again with `searchapp index FILE --rebuild`, FILE being the variant's, or remove {name}"
    return f"build it again with `searchapp index {owner or _shipped(name) or name} --rebuild`"


def own_tasks(stored: Iterable[StoredVersion]) -> list[OwnTask]:
    """The user's own tasks whose documents are indexed, in the order of their names."""
    return [
        OwnTask(task_of(one), Path(one.info.owner), one.info.documents)
        for one in stored
        if one.state is State.serves and one.info and one.info.owner
        if not one.name.startswith(EXAMPLES) and not _VARIED.search(one.name)
    ]


def named(stored: Iterable[StoredVersion], names: Iterable[str]) -> dict[str, list[StoredVersion]]:
    """The versions of the indexes of some names.

    Raises:
        UsageError: there is no index of such a name, or it is not ours.
    """
    found: dict[str, list[StoredVersion]] = {}
    for one in stored:
        found.setdefault(one.name, []).append(one)
    for name in names:
        if name not in found:
            there = f"there are {', '.join(found)}" if found else "there is none"
            raise UsageError(f"there is no index {name!r}{meant(name, found)} of searchapp's: {there}")
    return {name: found[name] for name in dict.fromkeys(names)}


def _is_ours(name: str) -> bool:
    inner = name.removeprefix(EXAMPLES)
    own = inner.removeprefix(catalogue.OWN)
    return _shipped(inner) is not None or (own != inner and _shipped(own) is None)


def _shipped(name: str) -> str | None:
    """The shipped task that an index belongs to, by a name that is the task's or begins with it."""
    found = [one for one in catalogue.names() if name == one or name.startswith(f"{one}-")]
    return max(found, key=len, default=None)
