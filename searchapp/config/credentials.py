"""Read secrets that settings name: from a file, or from the output of a command."""

from __future__ import annotations

import ipaddress
import os
import select
import shlex
import subprocess
import time
from collections.abc import Mapping

from searchapp.config.settings import DECLARED, SecretSource
from searchapp.errors import UsageError
from searchapp.files import open_file

COMMAND_SECONDS = 60.0  # the user may have to unlock a password manager

LARGEST = 1 << 14  # bytes; a single sign-on token has several thousand

_secrets: dict[SecretSource, str] = {}  # caches secrets, so that a pass phrase is requested once


def forget_secrets() -> None:
    """Empty the cache of secrets, after a server has rejected one."""
    _secrets.clear()


def read_secret(source: str | SecretSource) -> str:
    """Return a secret.

    Raises:
        UsageError: its file or command gives none.
    """
    if isinstance(source, str):
        return source
    if source not in _secrets:
        _secrets[source] = _of_file(source) if source.path is not None else _of_command(source)
    return _secrets[source]


def _of_file(source: SecretSource) -> str:
    assert source.path is not None
    try:
        with open_file(source.path) as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{source.path} can't be read ({error.strerror or error}): "
            f"{source.setting} must name a file with the secret"
        ) from None
    return _one_line(content, f"{source.path}, which {source.setting} names,")


def _of_command(source: SecretSource) -> str:
    assert source.command is not None
    until = time.monotonic() + COMMAND_SECONDS
    try:
        process = subprocess.Popen(
            shlex.split(source.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=without_secrets(os.environ),
        )
    except (OSError, ValueError, IndexError):
        # Python's message quotes the command, which may contain the secret.
        raise UsageError(f"the command in {source.setting} can't be run: check its spelling") from None
    with process:
        try:
            output = _read_output(process, until)
            if len(output) > LARGEST:
                raise UsageError(
                    f"the command in {source.setting} printed more than {LARGEST:,} bytes: it must "
                    "print only the secret, in one line"
                )
            code = process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"the command in {source.setting} took longer than {COMMAND_SECONDS:.0f} s"
            ) from None
        finally:
            process.kill()
    if code:
        raise UsageError(
            f"the command in {source.setting} failed with exit code {code}: run it yourself to see why"
        )
    return _one_line(output, f"the command in {source.setting}")


def _read_output(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Read stdout up to slightly more than `LARGEST` bytes."""
    assert process.stdout is not None
    output = b""
    while len(output) <= LARGEST:
        seconds = max(until - time.monotonic(), 0)
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(process.args, seconds)
        piece = os.read(process.stdout.fileno(), LARGEST)
        if not piece:
            break
        output += piece
    return output


def _one_line(content: bytes, where: str) -> str:
    try:
        text = content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{where} is not UTF-8 text") from None
    if len(content) > LARGEST or not text.strip() or "\n" in text:
        raise UsageError(f"{where} must be only the secret, in one line")
    return text


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of settings that hold credentials."""
    may_hold = {setting.variable: setting for setting in DECLARED if setting.variable}
    return {
        name: value
        for name, value in environ.items()
        if name not in may_hold or not may_hold[name].holds_credentials(value)
    }


def is_this_machine(host: str) -> bool:
    """Return whether a host is a loopback address or `localhost`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
