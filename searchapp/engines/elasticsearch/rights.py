"""Privileges on a server: a minimal role for each use, and the privilege whose lack an answer reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchapp.lucene.dataclass import dataclass

# Index names of a role, with `*` or as a regular expression of Lucene.
EVERYTHING = "{prefix}-*"
BUT_JUDGMENTS = "/{prefix}-~(judgments.*)/"
JUDGMENTS = "{prefix}-judgments*"

_READ = ("read", "view_index_metadata", "monitor")


@dataclass(frozen=True, slots=True)
class Role:
    """The privileges for one use of the server, on the cluster and on groups of indexes."""

    name: str
    use: str
    cluster: tuple[str, ...]
    indices: Mapping[str, tuple[str, ...]]

    def body(self, prefix: str) -> dict[str, Any]:
        """Return the body of `PUT _security/role/NAME`, also a role descriptor of an API key."""
        return {
            "cluster": list(self.cluster),
            "indices": [
                {"names": [names.format(prefix=prefix)], "privileges": list(privileges)}
                for names, privileges in self.indices.items()
            ],
        }


ROLES = (
    Role("reading", "`search`, `rank`, `topics`, `judge`", (), {BUT_JUDGMENTS: _READ}),
    Role(
        "indexing",
        "`index`, `analyze`, `indexes list`, `indexes remove`, `indexes repair`, `rank` with training "
        "topics that are not indexed yet; and all of reading",
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
        "the first `judgments sync` of a team; `index`, to count the cluster's nodes; and all of the others",
        ("monitor",),
        {EVERYTHING: ("read", "create", "manage")},
    ),
)

_UNAUTHORIZED = re.compile(
    r"^action \[[^\]]*\] is unauthorized for .*?(?: on (?:restricted )?indices \[(?P<names>[^\]]*)\])?"
    r", this action is granted by the (?P<kind>index|cluster) privileges \[(?P<privileges>[^\]]*)\]$",
    re.DOTALL,
)

_USED = {
    privilege for role in ROLES for group in (role.cluster, *role.indices.values()) for privilege in group
}


def missing_right(detail: str) -> str | None:
    """Return the privilege whose lack an answer reports, as a clause; None if it reports none.

    >>> missing_right("action [indices:admin/create] is unauthorized for user [ann] on indices [a], this action is "
    ...               "granted by the index privileges [create_index,manage,all]")
    'the index privilege `manage` on a is missing'
    """
    match = _UNAUTHORIZED.search(detail)
    if match is None:
        return None
    privileges = [privilege.strip() for privilege in match["privileges"].split(",")]
    named = [name for name in privileges if name in _USED] or [name for name in privileges if name != "all"]
    on = f" on {', '.join(match['names'].split(','))}" if match["names"] else ""
    either = " or ".join(f"`{name}`" for name in named)
    return f"the {match['kind']} privilege {either}{on} is missing"
