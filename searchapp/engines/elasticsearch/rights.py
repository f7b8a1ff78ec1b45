"""The rights that searchapp needs on a server: the least role for each use, and which right an answer misses.

Each role is enough for its use, and no privilege of it is too much; the judgments of a team are in a role of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EVERYTHING = ""
BUT_JUDGMENTS = "but judgments"
JUDGMENTS = "judgments"

_READ = ("read", "view_index_metadata", "monitor")


@dataclass(frozen=True, slots=True)
class Role:
    """A use of the server: who has it, what for, and the privileges on the cluster and on groups of indexes."""

    name: str
    use: str
    cluster: tuple[str, ...]
    indices: Mapping[str, tuple[str, ...]]

    def body(self, prefix: str) -> dict[str, Any]:
        """What `PUT _security/role/NAME` takes, and an API key as a role descriptor."""
        return {
            "cluster": list(self.cluster),
            "indices": [
                {"names": [pattern(group, prefix)], "privileges": list(privileges)}
                for group, privileges in self.indices.items()
            ],
        }


ROLES = (
    Role("reading", "`search`, `rank`, `topics`, `judge`", (), {BUT_JUDGMENTS: _READ}),
    Role(
        "indexing",
        "`index`, `analyze`, `indexes list`, `indexes remove`, `indexes repair`, `rank` with solved topics that are "
        "not indexed yet; and all of reading",
        (),
        {BUT_JUDGMENTS: ("read", "create", "manage")},
    ),
    Role(
        "judging",
        "`judge --shared`, `judgments sync`; and all of reading",
        (),
        {BUT_JUDGMENTS: _READ, JUDGMENTS: (*_READ, "create", "maintenance")},
    ),
    Role(
        "administration",
        "the first `judgments sync` of a team; `index` that counts the cluster's nodes; and all of the others",
        ("monitor",),
        {EVERYTHING: ("read", "create", "manage")},
    ),
)


def pattern(group: str, prefix: str) -> str:
    """The names of a group of indexes, as a role has them: with `*`, or as a regular expression of Lucene's."""
    if group == EVERYTHING:
        return f"{prefix}-*"
    if group == JUDGMENTS:
        return f"{prefix}-judgments*"
    return f"/{prefix}-~(judgments.*)/"


def bodies(prefix: str) -> dict[str, dict[str, Any]]:
    """Every role by the name that it is made under."""
    return {f"{prefix}-{role.name}": role.body(prefix) for role in ROLES}


def lacks(detail: str) -> str | None:
    """What right an answer says is missing, as the middle of a sentence; None where it says something else.

    >>> lacks("action [indices:admin/create] is unauthorized for user [ann] on indices [a], this action is granted by "
    ...       "the index privileges [create_index,manage,all]")
    'the index privilege `manage` on a is missing'
    """
    found = _UNAUTHORIZED.search(detail)
    if found is None:
        return None
    privileges = [one.strip() for one in found["privileges"].split(",")]
    named = [one for one in privileges if one in _USED] or [one for one in privileges if one != "all"]
    on = f" on {', '.join(found['names'].split(','))}" if found["names"] else ""
    either = " or ".join(f"`{one}`" for one in named)
    return f"the {found['kind']} privilege {either}{on} is missing"


_UNAUTHORIZED = re.compile(
    r"^action \[[^\]]*\] is unauthorized for .*?(?: on (?:restricted )?indices \[(?P<names>[^\]]*)\])?"
    r", this action is granted by the (?P<kind>index|cluster) privileges \[(?P<privileges>[^\]]*)\]$",
    re.DOTALL,
)

_USED = {one for role in ROLES for some in (role.cluster, *role.indices.values()) for one in some}
