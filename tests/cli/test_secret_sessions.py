"""Sessions with right and wrong secrets from every source leave no secret in output, files and processes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from searchapp.config import credentials
from searchapp.config.settings import DECLARED
from tests.cli.conftest import SAMPLE
from tests.profile import FULL
from tests.programs import Program
from tests.server.node import Node

ROOT = Path(__file__).parents[2]


def forms(*secrets: str) -> list[bytes]:
    """List encodings of secrets: plain, escaped for an address, and in Base64 with and without a user name."""
    result: set[str] = set()
    for secret in secrets:
        result |= {secret, quote(secret, safe="")}
        for text in (secret, f"elastic:{secret}", f"me:{secret}"):
            for shift in range(3):  # Base64 of a text inside another one depends on its position
                encoded = base64.b64encode(b"\0" * shift + text.encode()).decode()
                result.add(encoded[4 if shift else 0 :].rstrip("=")[:-1])
    return [form.encode() for form in result if len(form) >= 8]


RUN_ALL = """
import json, sys
from searchapp.cli import run
commands, path = sys.argv[1:]
codes = [run(command) for command in json.loads(commands)]
open(path, "w").write(json.dumps(codes))
"""


@dataclass(frozen=True)
class Session:
    """Runs commands in processes and records their output."""

    folder: Path
    environ: Mapping[str, str]
    output: list[bytes]

    def run_all(self, commands: list[tuple[object, ...]]) -> dict[str, int]:
        """Return the exit codes of commands by name; in the short profile one forked process runs all."""
        names = [str(command[0]) for command in commands]
        if FULL:
            return dict(zip(names, [self.run(*command) for command in commands], strict=True))
        codes = self.folder / "codes"
        lines = json.dumps([list(map(str, command)) for command in commands])
        with chdir(self.folder), Program(RUN_ALL, lines, codes, environment=self.environ) as program:
            self.output.extend(text.encode() for text in program.communicate())
        assert program.returncode == 0, self.output
        return dict(zip(names, json.loads(codes.read_text()), strict=True))

    def run(self, *arguments: object) -> int:
        """Run a command in a new Python, and return its exit code."""
        result = subprocess.run(
            [sys.executable, "-m", "searchapp", *map(str, arguments)],
            cwd=self.folder,
            env=dict(self.environ),
            capture_output=True,
            timeout=120,
            check=False,
        )
        self.output.extend([result.stdout, result.stderr])
        return result.returncode

    def require_without(self, secrets: list[bytes], excepted: tuple[Path, ...] = ()) -> None:
        """Check that no secret was printed or written to a file, except to the given ones."""
        for secret in secrets:
            assert not any(secret in text for text in self.output), secret
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in excepted:
                content = path.read_bytes()
                assert not any(secret in content for secret in secrets), path


@pytest.fixture
def environ(secured_node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    for setting in DECLARED:
        if setting.variable:
            monkeypatch.delenv(setting.variable, raising=False)
    yield {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SEARCHAPP_HOME": str(tmp_path / "home"),
        "SEARCHAPP_URL": secured_node.url,
        "SEARCHAPP_CA_CERTS": str(secured_node.ca_certs),
        "SEARCHAPP_INDEX_PREFIX": "test-sessions",
    }
    credentials.forget_secrets()
    secured_node.server.delete_indices("test-sessions")


def commands(folder: Path) -> list[tuple[object, ...]]:
    return [
        ("index", "nlps", "--data", SAMPLE, "--verbose"),
        ("search", "nlps", "group", "--verbose"),
        (
            "rank",
            "nlps",
            "--data",
            SAMPLE,
            "--split",
            "dev",
            "--out",
            folder / "run",
            "--overwrite",
            "--verbose",
        ),
        ("judgments", "sync", "--verbose"),
        ("doctor", "--json", "--verbose"),
        ("config",),
        ("config", "--json"),
    ]


def secret(node: Node, kind: str) -> str:
    """Return a valid password, API key or bearer token."""
    if kind == "password":
        assert node.password is not None
        return node.password
    if kind == "api_key":
        return str(node.server.request("POST", "/_security/api_key", {"name": "session"}).json()["encoded"])
    # The basic licence of a new node does not include tokens, the trial licence does.
    node.server.request("POST", "/_license/start_trial?acknowledge=true", timeout=60)
    body = {"grant_type": "password", "username": "elastic", "password": node.password}
    return str(node.server.request("POST", "/_security/oauth2/token", body).json()["access_token"])


KINDS, SOURCES = ("password", "api_key", "bearer_token"), ("", "_file", "_command")
SESSIONS = list(product(KINDS, SOURCES) if FULL else zip(KINDS, SOURCES, strict=True))
"""The short profile has each kind of secret and each source once."""


@pytest.mark.parametrize(("kind", "source"), SESSIONS)
def test_sessions_leave_no_secret(
    secured_node: Node, environ: dict[str, str], tmp_path: Path, kind: str, source: str
) -> None:
    right = secret(secured_node, kind)
    wrong = {
        "password": "hunter2hunter2",
        "api_key": "aHVudGVyMjpodW50ZXIyaHVudGVyMg==",
        "bearer_token": f"hunter2hunter2{right[14:]}",
    }[kind]
    file = tmp_path / "secret"
    for value, is_right in ((wrong, False), (right, True)):
        file.write_text(f"{value}\n", encoding="utf-8")
        setting = {"": value, "_file": str(file), "_command": f"cat {file}"}[source]
        variables = {**environ, f"SEARCHAPP_{kind}{source}".upper(): setting}
        if kind == "password":
            variables["SEARCHAPP_USERNAME"] = "elastic"
        session = Session(tmp_path, variables, [])
        codes = session.run_all(commands(tmp_path))
        assert codes["config"] == 0
        for name in ("index", "search", "rank", "judgments"):
            assert codes[name] == (0 if is_right else 3), session.output
        session.require_without(forms(right, wrong), (file,))
    assert (tmp_path / "run" / "run.json").is_file() and (tmp_path / "home").is_dir()


WATCHING = """\
#!/bin/sh
for process in $$ $PPID; do
  tr '\\0' '\\n' < /proc/$process/cmdline >> "$(dirname "$0")/command-lines"
done
tr '\\0' '\\n' < /proc/$$/environ >> "$(dirname "$0")/environ"
cat "$(dirname "$0")/secret"
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_processes_show_no_secret(secured_node: Node, environ: dict[str, str], tmp_path: Path) -> None:
    """The command that prints the password records its command line and environment and searchapp's command line."""
    assert secured_node.password is not None
    (tmp_path / "secret").write_text(secured_node.password)
    script = tmp_path / "watching"
    script.write_text(WATCHING)
    script.chmod(0o700)
    # The secret of the header is in the environment of searchapp only.
    variables = {**environ, "SEARCHAPP_USERNAME": "elastic", "SEARCHAPP_PASSWORD_COMMAND": str(script)}
    variables |= {"SEARCHAPP_HEADERS": "X-Gate: opensesame123"}
    session = Session(tmp_path, variables, [])
    assert session.run("index", "nlps", "--data", SAMPLE) == 0, session.output
    assert "searchapp" in (tmp_path / "command-lines").read_text()
    assert "SEARCHAPP_URL" in (tmp_path / "environ").read_text()
    session.require_without(forms(secured_node.password, "opensesame123"), (tmp_path / "secret",))


def test_secrets_in_project_files_are_refused(environ: dict[str, str], tmp_path: Path) -> None:
    for line, alternatives in (
        ('password = "hunter2hunter2"', "SEARCHAPP_PASSWORD"),
        ('password_command = "echo hunter2hunter2"', "SEARCHAPP_PASSWORD_COMMAND"),
        ('bearer_token = "hunter2hunter2"', "SEARCHAPP_BEARER_TOKEN"),
        ('api_key_file = "key"', "SEARCHAPP_API_KEY_FILE"),
        ('headers = {X-Key = "hunter2hunter2"}', "SEARCHAPP_HEADERS"),
        ('url = "https://me:hunter2hunter2@there"', "SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD"),
        ("insecure = true", "--insecure, SEARCHAPP_INSECURE"),
    ):
        (tmp_path / "searchapp.toml").write_text(f"# ours\n{line}\n")
        session = Session(tmp_path, environ, [])
        assert session.run_all([("config",)]) == {"config": 4}
        message = session.output[1].decode()
        assert "searchapp.toml: line 2: misplaced" in message and alternatives in message
        session.require_without(forms("hunter2hunter2"), (tmp_path / "searchapp.toml",))
