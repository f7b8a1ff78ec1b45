"""Output of commands contains no control characters and can be written to files or stdout."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from searchapp import cli
from searchapp.cli import output
from searchapp.cli.commands import guarded
from searchapp.config.settings import Settings
from searchapp.errors import DataError
from searchapp.text import visible
from tests.cli.conftest import SAMPLE, Cli
from tests.terminal import Terminal
from tests.test_visible import HOSTILE


def printed(capfd: pytest.CaptureFixture[str]) -> str:
    """Return the captured output, and check that all of it is visible."""
    captured = capfd.readouterr()
    text = captured.out + captured.err
    assert text
    assert visible(text) == text
    return text


def test_messages_are_harmless(capfd: pytest.CaptureFixture[str]) -> None:
    settings = Settings(home=Path())
    output.say(settings, HOSTILE)
    output.warn(HOSTILE)
    output.complain(HOSTILE)
    output.show(HOSTILE)
    assert printed(capfd).count("␛]52;c;") == 4


NEIGHBOURS = ("--recipe", "neighbours")


def test_out_can_be_stdout(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", "run").code == 0
    for arguments in (
        ("export", "run", "--format", "trec"),
        ("export", "run", "--cutoff", 50),
        ("report", "run", "--cutoff", 50),
        ("judgments", "assign", "nlps", "--split", "dev", "--quota", "ann=3", "--seed", 1),
        ("learning-curve", "nlps", "--split", "dev", *NEIGHBOURS, "--points", "0,3", "--cutoff", 30),
        ("tune", "nlps", *NEIGHBOURS, "--param", "k=1,3", "--folds", 2, "--cutoff", 30),
    ):
        result = offline(*arguments, "--out", "file.toml")
        assert result.code == 0, result.stderr
        to_stdout = offline(*arguments, "--out", "-")
        assert to_stdout.code == 0, to_stdout.stderr
        assert to_stdout.stdout == Path("file.toml").read_text().replace("file.toml", "FILE")
        Path("file.toml").unlink()
    assert not Path("-").exists()
    both = offline("report", "run", "--json", "--out", "-")
    assert (both.code, "--out - and --json both write to stdout" in both.stderr) == (2, True)


def test_a_folder_can_not_be_stdout(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.toml").write_text("")
    for arguments in (
        ("rank", "nlps", "--data", SAMPLE, "--split", "dev"),
        ("runs", "import", "x.trec", "--task", "nlps", "--data", SAMPLE, "--split", "dev"),
        ("judgments", "pool", "run"),
    ):
        refused = offline(*arguments, "--out", "-")
        assert (refused.code, "give a folder with --out" in refused.stderr) == (2, True), refused.stderr


def test_tables_lines_and_styles_are_harmless(capfd: pytest.CaptureFixture[str]) -> None:
    console = output.stdout_console()
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE, style="bold"))
    console.print(table)
    console.print(HOSTILE, soft_wrap=True)
    console.print(Text.assemble((HOSTILE, "red")))
    output.stderr_console().print(HOSTILE)
    printed(capfd)


def test_json_is_harmless_and_complete(capfd: pytest.CaptureFixture[str]) -> None:
    output.print_json({HOSTILE: [HOSTILE]})
    assert json.loads(printed(capfd)) == {HOSTILE: [HOSTILE]}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
def test_json_can_be_parsed_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    value = {"é": ["日本語 😀", HOSTILE, "\ud800"]}
    stdout = io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace", write_through=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    output.print_json(value)
    assert json.loads(stdout.buffer.getvalue().decode(encoding)) == value


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("error", [DataError(HOSTILE), RuntimeError(HOSTILE), OSError(28, HOSTILE, HOSTILE)])
def test_errors_and_tracebacks_are_escaped(
    capfd: pytest.CaptureFixture[str], error: Exception, verbose: bool
) -> None:
    def fail() -> None:
        raise error

    assert guarded(fail, verbose) != 0
    assert ("Traceback" in printed(capfd)) == verbose


@pytest.mark.parametrize(
    "arguments",
    [
        (HOSTILE,),
        ("tasks", f"--{HOSTILE}"),
        ("search", "nlps", "x", "--size", HOSTILE),
        ("rank", "nlps", HOSTILE),
        ("index", HOSTILE),
        ("evaluate", "--unjudged", HOSTILE, "x"),
    ],
)
def test_usage_errors_escape_arguments(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert cli.run(arguments) == 2
    message = printed(capfd)
    assert message.startswith("searchapp: ")
    assert message.count("\n") == 1


def test_a_mistyped_command_gets_a_suggestion(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["indx"]) == 2
    assert (
        printed(capfd) == "searchapp: no such command 'indx' (did you mean index?): see `searchapp --help`\n"
    )
    assert cli.run(["index"]) == 2
    assert printed(capfd) == "searchapp: missing argument 'TASK': see `searchapp index --help`\n"


@pytest.mark.parametrize("arguments", [["index", "nlps", "--data"], ["evaluate"], ["rank", "nlps", "--data"]])
def test_line_ends_in_names_are_escaped(offline: Cli, tmp_path: Path, arguments: list[str]) -> None:
    name = tmp_path / "x\nsearchapp: all is well\nwarning: go on"
    more = ["--split", "dev", "--out", tmp_path / "run"] if arguments[0] == "rank" else []
    result = offline(*arguments, name, *more)
    assert result.code != 0 and "all is well" in result.stderr
    assert [line for line in result.stderr.splitlines() if "all is well" in line] == [
        line for line in result.stderr.splitlines() if "x␊searchapp: all is well␊warning: go on" in line
    ]


LABEL = "verifying smart-relations-wikidata"

BAR = f"""
from searchapp.cli.output import Bars
with Bars().stage("{LABEL}", 123_456, in_bytes=True) as advance:
    advance(2_800)
"""


def draw_bar(home: Path, columns: int) -> str:
    """Return the output of the progress bar without escape sequences."""
    with Terminal(home=home, columns=columns, program=["-c", BAR]) as terminal:
        assert terminal.wait_for_end() == 0
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.raw.decode())


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_a_progress_bar_is_not_truncated(tmp_path: Path, columns: int) -> None:
    text = draw_bar(tmp_path, columns)
    assert "…" not in text
    assert re.sub(r"\s", "", LABEL) in re.sub(r"\s", "", text)
    assert ("2.8/123.5 kB" in text) == (columns >= 60)
