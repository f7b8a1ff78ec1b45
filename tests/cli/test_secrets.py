"""Passwords and keys are in no output, error, traceback or file of any command."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.cli import run
from tests.cli.conftest import SAMPLE, Cli
from tests.server.node import Node

WRONG = [
    "http://me:hunter2@127.0.0.1:9",
    "https://me:hunter2@127.0.0.1:9",
    "me:hunter2@127.0.0.1:9",
    "http:/me:hunter2@127.0.0.1:9",
    "http://me:hunter2/x@127.0.0.1:9",
    "http://me:x#hunter2@127.0.0.1:9",
    "http://me:x?hunter2@127.0.0.1:9",
    "http://me:x@hunter2@127.0.0.1:9",
    "http://me:hunter2@127.0.0.1:port",
    "http://me:hunter2@[::1:9",
    "http://me:hunter2@",
    "ftp://me:hunter2@127.0.0.1",
]


def commands(tmp_path: Path) -> list[tuple[object, ...]]:
    return [
        ("doctor",),
        ("doctor", "--json"),
        ("tasks",),
        ("tasks", "--json"),
        ("tasks", "show", "nlps"),
        ("index", "nlps", "--data", SAMPLE),
        ("search", "nlps", "group"),
        ("analyze", "nlps", "group"),
        ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", tmp_path / "run"),
        ("judgments", "sync"),
        ("judgments", "stats", "nlps"),
        ("indexes", "list"),
        ("indexes", "list", "--json"),
        ("indexes", "remove", "nlps", "--yes"),
        ("indexes", "repair"),
        ("indexes", "repair", "--json"),
    ]


@pytest.mark.parametrize("url", WRONG)
def test_passwords_in_addresses_are_not_shown(
    offline: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    for command in commands(tmp_path):
        for options in (("--url", url), ("--url", url, "--verbose")):
            result = offline(*command, *options)
            assert "hunter2" not in result.stdout + result.stderr, command
            assert result.code == 2 and "--url contains a user name or a password" in result.stderr
        monkeypatch.setenv("SEARCHAPP_URL", url)
        for verbose in ([], ["--verbose"]):
            result = offline(*command, *verbose)
            assert "hunter2" not in result.stdout + result.stderr, command
        monkeypatch.delenv("SEARCHAPP_URL")


def test_errors_do_not_repeat_a_misplaced_password(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["doctor", "http://me:hunter2@127.0.0.1:9"]) == 2
    stderr = capsys.readouterr().err
    assert "http://127.0.0.1:9" in stderr and "hunter2" not in stderr


@pytest.mark.parametrize("mirror", ["http://me:hunter2@127.0.0.1:9", "me:hunter2@127.0.0.1:9"])
def test_passwords_of_mirrors_are_not_shown(
    offline: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mirror: str
) -> None:
    monkeypatch.setenv("SEARCHAPP_DATA_MIRROR", mirror)
    monkeypatch.setattr("searchapp.fetching.download.FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr("searchapp.fetching.download.LONGEST_WAIT_SECONDS", 0.01)
    for options in ((), ("--verbose",)):
        result = offline("data", "get", "nlps", "--out", tmp_path / "data", "--accept-terms", *options)
        assert result.code and "hunter2" not in result.stdout + result.stderr


@pytest.mark.parametrize("key", ["hunter2\r", "hunter2\n", "hunter2 ", "“hunter2”"])
def test_an_unsendable_key_is_not_shown(offline: Cli, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("SEARCHAPP_API_KEY", key)
    monkeypatch.setenv("SEARCHAPP_URL", "http://127.0.0.1:9")
    for options in ((), ("--verbose",)):
        result = offline("search", "nlps", "group", *options)
        assert result.code == 2 and "hunter2" not in result.stdout + result.stderr
        assert "SEARCHAPP_API_KEY contains a space, a line end or another character" in result.stderr


def test_written_files_contain_no_credentials(
    offline: Cli, secured_node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    password = secured_node.password
    assert password is not None
    monkeypatch.setenv("SEARCHAPP_CA_CERTS", str(secured_node.ca_certs))
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", "test-secrets")
    url = secured_node.url.replace("://", f"://{secured_node.username}:{password}@")
    monkeypatch.setenv("SEARCHAPP_URL", url)
    try:
        for command in commands(tmp_path):
            result = offline(*command, "--verbose")
            assert result.code == (4 if "stats" in command else 0), result.stderr  # there are no judgments
            assert password not in result.stdout + result.stderr
        assert offline("runs", "verify", tmp_path / "run").code == 0
    finally:
        secured_node.server.delete_indices("test-secrets")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"run.json", "run.trec", "judgments.sqlite"}
    for path in files:
        assert password.encode() not in path.read_bytes(), path
