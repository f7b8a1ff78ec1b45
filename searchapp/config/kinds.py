"""What a setting can hold: how it is read from a text and from a file, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from searchapp.names import meant, one_of, refused
from searchapp.settings import (
    DEFAULT_URL,
    ENGINES,
    address_of_cloud,
    addresses_in,
    without_credentials,
)

Headers: TypeAlias = tuple[tuple[str, str], ...]
Value: TypeAlias = str | bool | Path | tuple[Path, ...] | Headers

LONGEST = 1_000
"""In characters: no address, path or name is longer, and a message can repeat what is refused."""


class Kind:
    """What a setting holds; this one a text. `named` is the setting as the person knows it who is told of an error."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002  # for subclasses
        """The value that a flag or a variable holds.

        Raises:
            ValueError: it holds none; the message is a clause for people.
        """
        return text

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002  # for subclasses
        """The value that a file in `folder` holds.

        Raises:
            ValueError: it holds none; the message is a clause for people, in which no secret is repeated.
        """
        return self.from_text(_text(held, named), named)

    def shown(self, value: Value) -> str:
        return str(value)


class ApiKey(Kind):
    """A key for a server; one in a variable is checked by whoever connects."""

    word, made = "API key", "the value `encoded` with which the key was made"

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        text = _text(held, named)
        if not re.fullmatch(r"[!-~]+", text):
            raise ValueError(
                f"{named} holds a space, a line end or another character that no {self.word} has: "
                f"set it to {self.made}"
            )
        return text


class Token(ApiKey):
    """A bearer token; the same."""

    word, made = "token", "the value that was given with it"


class Addresses(Kind):
    """The addresses of a server's nodes, one or several; as a value, with commas between them."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        each = held if isinstance(held, list) and held else [held]
        texts = [one for text in each for one in addresses_in(_text(text, named))]
        return ",".join(str(Address().from_toml(text, named, folder)) for text in texts)

    def shown(self, value: Value) -> str:
        return ", ".join(map(without_credentials, addresses_in(str(value))))


class CloudId(Kind):
    """What Elastic Cloud names a deployment by."""

    def from_text(self, text: str, named: str) -> Value:
        try:
            address_of_cloud(text)
        except ValueError:
            raise ValueError(f"{named} is no Cloud ID: copy it from the deployment's page") from None
        return text


class Fingerprint(Kind):
    """The SHA-256 of a certificate; as a value, 64 small hexadecimal digits."""

    def from_text(self, text: str, named: str) -> Value:
        digits = text.strip().replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digits):
            raise ValueError(
                f"{named} is no SHA-256 fingerprint: one has 64 hexadecimal digits, with or without colons, as the "
                "server prints it at its first start"
            )
        return digits


class HeadersKind(Kind):
    """Headers of requests: a table in a file, a line each in a variable."""

    def from_text(self, text: str, named: str) -> Value:
        lines = [line for line in text.splitlines() if line.strip()]
        if any(":" not in line for line in lines):
            raise ValueError(f"{named} must hold one header a line, as in X-Team: search")
        return self._checked([line.partition(":")[::2] for line in lines], named)

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, Mapping):
            raise ValueError(f'{named} must be a table, as in {named} = {{X-Team = "search"}}')
        return self._checked([(name, _text(value, named)) for name, value in held.items()], named)

    def _checked(self, pairs: Sequence[Sequence[str]], named: str) -> Headers:
        headers = tuple((name.strip(), value.strip()) for name, value in pairs)
        for name, value in headers:
            if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", name) or not re.fullmatch(r"[ -~]+", value):
                raise ValueError(
                    f"{named} has a header whose name or value can't be sent: use ASCII characters"
                )
            if name.lower() in RESERVED_HEADERS:
                raise ValueError(f"{named} must not have {name}, which searchapp sets itself")
        return headers


RESERVED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "x-opaque-id",
    }
)
"""What searchapp says itself; a secret has settings of its own."""


class Engine(Kind):
    """The name of an engine."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002  # the message says what it is
        if text not in ENGINES:
            raise ValueError(f"there is no engine {refused(text, ENGINES)}")
        return text


class Prefix(Kind):
    """What names of indexes begin with."""

    def from_text(self, text: str, named: str) -> Value:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", text):
            raise ValueError(
                f"{text!r} can't begin the names of indexes: {named} takes small letters, digits, - and _"
            )
        return text


class Address(Kind):
    """The address of a server; a flag or a variable is checked by whoever connects."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        from urllib.parse import urlsplit

        text = _text(held, named)
        try:
            parts = urlsplit(text)
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or not text.isprintable():
            raise ValueError(f"{named} is no address: one looks like {DEFAULT_URL}")
        return text

    def shown(self, value: Value) -> str:
        return without_credentials(str(value))


class Proxy(Address):
    """The address of a proxy, which is spoken to without TLS; what goes through it to a server may have its own."""

    def from_text(self, text: str, named: str) -> Value:
        return self.from_toml(text, named, Path())

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        text = super().from_toml(held, named, folder)
        if not str(text).startswith("http://"):
            raise ValueError(f"{named} is no HTTP proxy: its address begins with http://")
        return text


class Switch(Kind):
    """On or off."""

    def from_text(self, text: str, named: str) -> Value:
        if text.lower() in ("0", "false", "no", "off"):
            return False
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        raise ValueError(f"{named} is {text!r}: set it to 1 or 0")

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, bool):
            raise ValueError(f"{named} must be true or false, without quotes")
        return held

    def shown(self, value: Value) -> str:
        return "true" if value else "false"


class PathKind(Kind):
    """A file or folder; in a file relative to the file's folder, where ~ is the user's own folder."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002
        return Path(text)

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        return _path(_text(held, named), named, folder)


class Folders(Kind):
    """Any number of folders; they are named in files only."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        if not isinstance(held, list):
            raise ValueError(f'{named} must be a list of folders, such as ["/home/me/project"]')
        return tuple(_path(_text(one, named), named, folder) for one in held)

    def shown(self, value: Value) -> str:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class OneOf(Kind):
    """One of several names."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def from_text(self, text: str, named: str) -> Value:
        if text not in self._names:
            raise ValueError(f"{named} must be {one_of(self._names)}, not {text!r}{meant(text, self._names)}")
        return text


class Keys(Kind):
    """Actions and the keys that they have instead of their own; which there are, and which go together, is not said."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, Mapping):
            raise ValueError(f"{named} must be a table: [{named}] begins one")
        return ", ".join(f"{name}: {_keys(keys, f'{named}.{name}')}" for name, keys in held.items())


def _keys(held: object, named: str) -> str:
    return " ".join(_text(one, named) for one in (held if isinstance(held, list) else [held]))


def _text(held: object, named: str) -> str:
    if not isinstance(held, str):
        raise ValueError(f"{named} must be a text in quotes")
    if not held.strip():
        raise ValueError(f"{named} is empty: give it a value, or leave it out")
    if len(held) > LONGEST:
        raise ValueError(f"{named} is longer than {LONGEST:,} characters")
    return held


def _path(text: str, named: str, folder: Path) -> Path:
    if "\0" in text:
        raise ValueError(f"{named} is no name that a file can have")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{named} begins with ~ and nobody knows whose folder that is") from error
