"""The settings that the program runs with, made of the values that hold: where the server is, and who asks there.

What is said twice, or only half, is refused here: an address beside a Cloud ID, an API key beside a user name, a
password that a file holds and a command prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from searchapp.config.declared import BY_NAME, PLACES, TEAM, WAYS
from searchapp.config.found import Found, Origin
from searchapp.errors import UsageError
from searchapp.settings import DEFAULT_URL, Kept, Settings, address_of_cloud


def settings_of(found: Mapping[str, Found], own_home: Path, opaque_id: str) -> Settings:
    """The settings that the values which hold make together.

    `own_home` is the home folder with the user's own file, `opaque_id` what a server's owner knows requests by.

    Raises:
        UsageError: values that exclude each other, or one without the other that it needs.
    """

    _require_credentials(found)
    team = {
        one.name.partition(".")[2]: str(held) for one in TEAM if (held := found[one.name].value) is not None
    }
    made: dict[str, Any] = {
        "engine_chosen_by": found["engine"].chosen_by,
        "url": _address(found),
        "url_given": any(
            found[name].value and found[name].source.origin is not Origin.default for name in PLACES
        ),
        "api_key": _secret(found, "api_key"),
        "bearer_token": _secret(found, "bearer_token"),
        "password": _secret(found, "password"),
        "opaque_id": opaque_id,
        "own_home": own_home,
        "team": team,
    }
    # All other fields have the values of the settings of their names, in the types that the kinds of these read.
    of_name = [found[one.name] for one in fields(Settings) if one.name in found]
    plain: dict[str, Any] = {one.setting.name: one.value for one in of_name if one.value is not None}
    return Settings(**{"home": own_home, **plain, **made})


def _address(found: Mapping[str, Found]) -> str:
    """Where the server is.

    Raises:
        UsageError: it is said twice.
    """
    url, cloud_id = (found[name] for name in PLACES)
    if cloud_id.value is None:
        return str(url.value or DEFAULT_URL)
    if url.value is not None:
        raise UsageError(
            f"both an address and a Cloud ID are set: leave out {url.chosen_by} or {cloud_id.chosen_by}"
        )
    return address_of_cloud(str(cloud_id.value))


def _given(found: Mapping[str, Found], name: str) -> Found | None:
    """What a secret is had by, if it is: itself, a file or a command.

    Raises:
        UsageError: more than one.
    """
    given = [one for way in WAYS if (one := found[name + way]).value is not None]
    if len(given) > 1:
        raise UsageError(
            f"{given[0].chosen_by} and {given[1].chosen_by} are set, and either says what the other does: leave one out"
        )
    return given[0] if given else None


def _secret(found: Mapping[str, Found], name: str) -> str | Kept | None:
    """A secret, or where it is kept."""
    given = _given(found, name)
    if given is None:
        return None
    if given.key == name:
        return str(given.value)
    if isinstance(given.value, Path):
        return Kept(given.chosen_by, path=given.value)
    return Kept(given.chosen_by, command=str(given.value))


def _require_credentials(found: Mapping[str, Found]) -> None:
    """Make sure that there is one way at most to say who asks, and that it is whole."""
    username, password = found["username"], _given(found, "password")
    told = {
        "an API key": _given(found, "api_key"),
        "a bearer token": _given(found, "bearer_token"),
        "a user name": username if username.value else None,
    }
    given = [(what, one) for what, one in told.items() if one is not None]
    if len(given) > 1:
        (what, first), (other, second) = given[:2]
        raise UsageError(
            f"both {what} and {other} are set: leave out {first.chosen_by} or {second.chosen_by}"
        )
    if bool(username.value) != (password is not None):
        there, name = (username, "password") if password is None else (password, "username")
        missing = f"{name} there" if there.file is not None else BY_NAME[name].variable
        raise UsageError(f"{there.chosen_by} is set without {missing}: set both or neither")
