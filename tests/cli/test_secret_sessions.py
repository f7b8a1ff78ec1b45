"""Sessions with right and wrong secrets, had in every way: no form of one is in anything that is left or was seen."""

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

from searchapp.config.settings import DECLARED
from searchapp.engines.elasticsearch import client
from tests.cli.conftest import SAMPLE
from tests.profile import FULL
from tests.programs import Program
from tests.server.node import Node

ROOT = Path(__file__).parents[2]


def forms(*secrets: str) -> list[bytes]:
    """What would give secrets away: themselves, escaped for an address, in Base64, alone and behind a user name."""
    result: set[str] = set()
    for secret in secrets:
        result |= {secret, quote(secret, safe="")}
        for text in (secret, f"elastic:{secret}", f"me:{secret}"):
            for shift in range(3):  # Base64 of a text within another one depends on where it begins
                encoded = base64.b64encode(b"\0" * shift + text.encode()).decode()
                result.add(encoded[4 if shift else 0 :].rstrip("=")[:-1])
    return [one.encode() for one in result if len(one) >= 8]


TOGETHER = """
import json, sys
from searchapp.cli import run
commands, codes = sys.argv[1:]
found = [run(one) for one in json.loads(commands)]
open(codes, "w").write(json.dumps(found))
"""


@dataclass(frozen=True)
class Session:
    """Runs commands as a person does, in processes of their own, and keeps all that they say."""

    folder: Path
    environ: Mapping[str, str]
    said: list[bytes]

    def run_all(self, commands: list[tuple[object, ...]]) -> dict[str, int]:
        """Their exit codes by their names; in the short profile one process, a fork, runs all of them."""
        names = [str(command[0]) for command in commands]
        if FULL:
            return dict(zip(names, [self.run(*command) for command in commands], strict=True))
        codes = self.folder / "codes"
        lines = json.dumps([list(map(str, command)) for command in commands])
        with chdir(self.folder), Program(TOGETHER, lines, codes, environment=self.environ) as program:
            self.said.extend(text.encode() for text in program.communicate())
        assert program.returncode == 0, self.said
        return dict(zip(names, json.loads(codes.read_text()), strict=True))

    def run(self, *arguments: object) -> int:
        """The exit code of a command in a new Python."""
        result = subprocess.run(
            [sys.executable, "-m", "searchapp", *map(str, arguments)],
            cwd=self.folder,
            env=dict(self.environ),
            capture_output=True,
            timeout=120,
            check=False,
        )
        self.said.extend([result.stdout, result.stderr])
        return result.returncode

    def require_without(self, secrets: list[bytes], apart_from: tuple[Path, ...] = ()) -> None:
        """Make sure that none of the secrets was said, or written to any file but those that hold them on purpose."""
        for secret in secrets:
            assert not any(secret in one for one in self.said), secret
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in apart_from:
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
    client.forget_secrets()
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
    """A right password, key or token."""
    if kind == "password":
        assert node.password is not None
        return node.password
    if kind == "api_key":
        return str(node.server.request("POST", "/_security/api_key", {"name": "session"}).json()["encoded"])
    # The licence that a node begins with has no tokens of its own; that for a trial has.
    node.server.request("POST", "/_license/start_trial?acknowledge=true", timeout=60)
    body = {"grant_type": "password", "username": "elastic", "password": node.password}
    return str(node.server.request("POST", "/_security/oauth2/token", body).json()["access_token"])


KINDS, WAYS = ("password", "api_key", "bearer_token"), ("", "_file", "_command")
SESSIONS = list(product(KINDS, WAYS) if FULL else zip(KINDS, WAYS, strict=True))
"""The short profile has each kind of secret and each way to have it once."""


@pytest.mark.parametrize(("kind", "way"), SESSIONS)
def test_sessions_leave_no_secret(
    secured_node: Node, environ: dict[str, str], tmp_path: Path, kind: str, way: str
) -> None:
    right = secret(secured_node, kind)
    wrong = {
        "password": "hunter2hunter2",
        "api_key": "aHVudGVyMjpodW50ZXIyaHVudGVyMg==",
        "bearer_token": f"hunter2hunter2{right[14:]}",
    }[kind]
    kept = tmp_path / "kept"
    for given, is_right in ((wrong, False), (right, True)):
        kept.write_text(f"{given}\n", encoding="utf-8")
        value = {"": given, "_file": str(kept), "_command": f"cat {kept}"}[way]
        own = {**environ, f"SEARCHAPP_{kind}{way}".upper(): value}
        if kind == "password":
            own["SEARCHAPP_USERNAME"] = "elastic"
        session = Session(tmp_path, own, [])
        codes = session.run_all(commands(tmp_path))
        assert codes["config"] == 0
        for name in ("index", "search", "rank", "judgments"):
            assert codes[name] == (0 if is_right else 3), session.said
        session.require_without(forms(right, wrong), (kept,))
    assert (tmp_path / "run" / "run.json").is_file() and (tmp_path / "home").is_dir()


WATCHING = """\
#!/bin/sh
for process in $$ $PPID; do
  tr '\\0' '\\n' < /proc/$process/cmdline >> "$(dirname "$0")/command-lines"
done
tr '\\0' '\\n' < /proc/$$/environ >> "$(dirname "$0")/environ"
cat "$(dirname "$0")/kept"
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_processes_show_no_secret(secured_node: Node, environ: dict[str, str], tmp_path: Path) -> None:
    """A command that prints the password sees its own command line and environment, and searchapp's command line."""
    assert secured_node.password is not None
    (tmp_path / "kept").write_text(secured_node.password)
    script = tmp_path / "watching"
    script.write_text(WATCHING)
    script.chmod(0o700)
    # The proxy's password is in the environment of searchapp itself, and of no other.
    own = {**environ, "SEARCHAPP_USERNAME": "elastic", "SEARCHAPP_PASSWORD_COMMAND": str(script)}
    own |= {"SEARCHAPP_HEADERS": "X-Gate: opensesame123"}
    session = Session(tmp_path, own, [])
    assert session.run("index", "nlps", "--data", SAMPLE) == 0, session.said
    assert "searchapp" in (tmp_path / "command-lines").read_text()
    assert "SEARCHAPP_URL" in (tmp_path / "environ").read_text()
    session.require_without(forms(secured_node.password, "opensesame123"), (tmp_path / "kept",))


def test_secrets_in_project_files_are_refused(environ: dict[str, str], tmp_path: Path) -> None:
    for line, ways in (
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
        said = session.said[1].decode()
        assert "searchapp.toml: line 2: misplaced" in said and ways in said
        session.require_without(forms("hunter2hunter2"), (tmp_path / "searchapp.toml",))
