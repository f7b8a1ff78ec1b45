"""What a user may do on the server, and the roles that give what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from searchapp.engines import open_server
from searchapp.errors import SearchappError
from searchapp.settings import Settings

NEEDED = "reading"
"""The use without which nothing works."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of the rights for one use; `enough` is None where it could not be found out."""

    name: str
    enough: bool | None
    needed: bool
    sentence: str


def findings(settings: Settings) -> Iterator[Finding]:
    """What the settings' user may do on the server, for each use of it."""
    try:
        with closing(open_server(settings)) as server:
            uses = server.rights()
    except SearchappError as error:
        yield Finding("rights", None, False, f"not looked at: {error}")
        return
    if uses is None:
        yield Finding(
            "rights", True, False, "the server's security is off: everybody may do everything there"
        )
        return
    for one in uses:
        if one.missing:
            sentence = (
                f"missing: {'; '.join(one.missing)}; needed for {one.use}: `searchapp doctor --roles` "
                "prints a role that has it"
            )
        else:
            sentence = f"all that it takes for {one.use}"
        yield Finding(f"rights for {one.use_name}", not one.missing, one.use_name == NEEDED, sentence)
