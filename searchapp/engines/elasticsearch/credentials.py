"""Who searchapp is to a server: read from where it is kept when a server is first asked, and shown nowhere."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from searchapp.config.settings import BY_NAME, DECLARED, Kept, Settings, holds_credentials
from searchapp.errors import UsageError
from searchapp.files import open_file

COMMAND_SECONDS = 60.0
"""Somebody may have to unlock what holds the secret."""

LARGEST = 1 << 14
"""In bytes: a token of a single sign-on has some thousand."""

_read: dict[Kept, str] = {}
"""What commands have printed and files held: nobody is asked twice for a pass phrase."""


def credentials(settings: Settings) -> dict[str, Any]:
    """The option of the client that says who asks; none if nobody has said it.

    Raises:
        UsageError: a secret can't be read, or be sent.
    """
    if settings.api_key is not None:
        return {"api_key": _sendable(_secret(settings.api_key), "api_key", settings.api_key)}
    if settings.bearer_token is not None:
        return {
            "bearer_auth": _sendable(_secret(settings.bearer_token), "bearer_token", settings.bearer_token)
        }
    if settings.username and settings.password is not None:
        return {"basic_auth": _basic(settings.username, _secret(settings.password))}
    of_addresses = {one for url in settings.urls if (one := _of_address(url)) is not None}
    if len(of_addresses) > 1:
        raise UsageError(
            "the addresses have different user names or passwords: leave them out there, and set SEARCHAPP_USERNAME "
            "and SEARCHAPP_PASSWORD"
        )
    return {"basic_auth": of_addresses.pop()} if of_addresses else {}


def forget() -> None:
    """Read secrets again when they are next asked for: a server has not accepted them."""
    _read.clear()


def _secret(kept: str | Kept) -> str:
    if isinstance(kept, str):
        return kept
    if kept not in _read:
        _read[kept] = _of_file(kept) if kept.path is not None else _of_command(kept)
    return _read[kept]


def _of_file(kept: Kept) -> str:
    assert kept.path is not None
    try:
        with open_file(kept.path) as file:
            held = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{kept.path} can't be read ({error.strerror or error}): "
            f"{kept.named} must name a file that holds the secret"
        ) from None
    return _one_line(held, f"{kept.path}, which {kept.named} names,")


def _of_command(kept: Kept) -> str:
    """What a command prints on its standard output; what it has to say to a person goes to theirs."""
    assert kept.command is not None
    until = time.monotonic() + COMMAND_SECONDS
    try:
        process = subprocess.Popen(
            shlex.split(kept.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=_without_secrets(os.environ),
        )
    except (OSError, ValueError, IndexError):
        # What Python says of it quotes the command, which may have the secret in it.
        raise UsageError(f"the command in {kept.named} can't be run: look at how it is written") from None
    with process:
        try:
            held = _printed(process, until)
            code = process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"the command in {kept.named} took longer than {COMMAND_SECONDS:.0f} s"
            ) from None
        except _TooLong:
            raise UsageError(
                f"the command in {kept.named} printed more than {LARGEST:,} bytes: it must give the secret alone, "
                "in one line"
            ) from None
        finally:
            process.kill()
    if code:
        raise UsageError(
            f"the command in {kept.named} failed with exit code {code}: run it yourself to see why"
        )
    return _one_line(held, f"the command in {kept.named}")


class _TooLong(Exception):
    """A command prints more than a secret may have."""


def _printed(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return all that a command prints on its standard output.

    Raises:
        _TooLong: it prints more than `LARGEST` bytes.
        subprocess.TimeoutExpired: it has not closed its output by the time `until`.
    """
    assert process.stdout is not None
    held = b""
    while len(held) <= LARGEST:
        seconds = max(until - time.monotonic(), 0)
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(process.args, seconds)
        piece = os.read(process.stdout.fileno(), LARGEST)
        if not piece:
            return held
        held += piece
    raise _TooLong


def _one_line(held: bytes, where: str) -> str:
    """The secret in what was read: all of it, without the line's end.

    Raises:
        UsageError: there is none, or more than one line.
    """
    try:
        text = held.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{where} gives no text in UTF-8") from None
    if len(held) > LARGEST or not text.strip() or "\n" in text:
        raise UsageError(f"{where} must give the secret alone, in one line")
    return text


def _without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for others, without the secrets that this program was given in its own."""
    may_hold = {one.variable: one for one in DECLARED if one.variable}
    return {
        name: value
        for name, value in environ.items()
        if name not in may_hold or not holds_credentials(may_hold[name], value)
    }


def _sendable(key: str, name: str, kept: str | Kept) -> str:
    """A key or token, if it can stand in the header of a request: the error on one that can't would show it."""
    if not re.fullmatch(r"[!-~]+", key):
        where = kept.named if isinstance(kept, Kept) else BY_NAME[name].variable
        what, made = (
            ("API key", "`encoded` with which the key was made")
            if name == "api_key"
            else ("token", "that was given")
        )
        raise UsageError(
            f"{where} holds a space, a line end or another character that no {what} has: "
            f"set it again, to the value {made}"
        )
    return key


def _basic(username: str, password: str) -> str:
    # Put together here: the client would refuse what is not ASCII, which the server takes.
    return b64encode(f"{username}:{password}".encode()).decode()


def _of_address(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None  # which others report
    if not parts.username and not parts.password:
        return None
    return _basic(unquote(parts.username or ""), unquote(parts.password or ""))
