"""Which of searchapp's roles a user has on a server, as the server itself says."""

from __future__ import annotations

from searchapp.engines.base import RightsOfUse
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.rights import ROLES, Role


def rights(connection: Connection, prefix: str) -> list[RightsOfUse] | None:
    """What the user lacks for each use; None where the server has its security off, so that everybody has all rights.

    Everybody may ask for their own rights.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
    client = connection.client.options(ignore_status=(400, 405))
    found = []
    for role in ROLES:
        body = role.body(prefix)
        asked = [{"names": one["names"], "privileges": one["privileges"]} for one in body["indices"]]
        answer = connection.call(
            "ask for the rights of this user",
            lambda body=body, asked=asked: client.security.has_privileges(  # type: ignore[misc]
                cluster=body["cluster"], index=asked
            ),
        )
        if answer.meta.status != 200:
            return None
        found.append(_missing(role, prefix, answer.body))
    return found


def _missing(role: Role, prefix: str, answer: dict[str, dict[str, dict[str, bool]]]) -> RightsOfUse:
    missing = [f"`{one}` on the cluster" for one, there in answer["cluster"].items() if not there]
    for entry in role.body(prefix)["indices"]:
        (name,) = entry["names"]
        privileges = [one for one in entry["privileges"] if not answer["index"][name][one]]
        if privileges:
            missing.append(f"{', '.join(f'`{one}`' for one in privileges)} on {name}")
    return RightsOfUse(role.name, role.use, tuple(missing))
