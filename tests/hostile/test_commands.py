"""Commands neutralise hostile text on a terminal, in a pipe and in JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchapp import cli
from searchapp.text import visible
from tests.hostile.cases import ONLY_SCREENS, Case, cases, commands
from tests.hostile.output import TerminalOutput, read
from tests.hostile.payload import Hostile, marks, turns
from tests.hostile.world import World, build, judge
from tests.terminal import Terminal

OPTIONS = dict(commands())
SHIPPED = {"demo"}
"""Commands that show only data shipped with the program."""

HARMLESS_IN_PIPES = SHIPPED | {"data get", "judgments adjudicate"}
"""Also commands that prompt only on a terminal, or whose second call in a pipe has no work left."""

SHOWN_IN_ERRORS = {"name of a column"}
"""See `test_errors`."""

ONLY_IN_JSON = {"tag of a TREC run", "run of an imported event", "file of a bench"}
"""Fields of runs, events and benches that only JSON output contains."""


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a case: on a terminal, in a pipe and, if the command has `--json`, as JSON."""

    case: Case
    output: TerminalOutput
    code: int
    piped: str
    json: str | None


def on_terminal(world: World, case: Case) -> tuple[TerminalOutput, int]:
    """Run a case on a terminal and return its output and exit code."""
    with Terminal(*case.line, home=world.home, columns=200) as terminal:
        for line in case.typed:
            terminal.press(line, "enter")
        code = terminal.wait_for_end(60)
    return read(terminal.raw), code


def into_pipe(world: World, line: list[str], typed: tuple[str, ...]) -> tuple[str, str]:
    """Run a command without a terminal and return both streams joined, and stdout."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
        for _ in range(2)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO("".join(f"{answer}\n" for answer in typed)))
        patch.setenv("SEARCHAPP_HOME", str(world.home))
        for name in ("URL", "ENGINE", "SHARED", "INDEX_PREFIX"):
            patch.delenv(f"SEARCHAPP_{name}", raising=False)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.run(line)
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in (out, err))
    return stdout + stderr, stdout


def judged_world(folder: Path, hostile: Hostile) -> World:
    """Build a world and index, rank and judge it."""
    world = build(folder, hostile)
    for line in (
        ["index", world.task, "--lenient"],
        ["rank", world.task, "--split", "dev", "--out", world.run],
    ):
        into_pipe(world, [str(word) for word in line], ())
    judge(world)
    return world


@pytest.fixture(scope="module", params=turns())
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("hostile"), Hostile(request.param))


@pytest.fixture(scope="module")
def outcomes(world: World) -> list[Outcome]:
    result = []
    for case in cases(world):
        output, code = on_terminal(world, case)
        piped = "" if case.command in SHIPPED else into_pipe(world, case.line, case.typed)[0]
        as_json = None
        if "--json" in OPTIONS[case.command]:
            as_json = into_pipe(world, [*case.line, "--json"], case.typed)[1]
        result.append(Outcome(case, output, code, piped, as_json))
    return result


def test_every_command_has_a_case(outcomes: list[Outcome]) -> None:
    tested = {outcome.case.command for outcome in outcomes} | ONLY_SCREENS
    assert tested == OPTIONS.keys(), "yield a Case of it in cases() of tests/hostile/cases.py"


def test_every_case_has_its_exit_code(outcomes: list[Outcome]) -> None:
    wrong = [
        (outcome.case.command, outcome.code, outcome.output.text[-1000:])
        for outcome in outcomes
        if outcome.code != outcome.case.code
    ]
    assert not wrong


def test_commands_write_only_allowed_sequences(outcomes: list[Outcome]) -> None:
    assert not {outcome.case.command: outcome.output.wrong for outcome in outcomes if outcome.output.wrong}
    assert all(outcome.output.is_restored and not outcome.output.copied for outcome in outcomes)


def test_pipes_get_no_control_or_invisible_characters(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        assert visible(outcome.piped) == outcome.piped, outcome.case.line
        assert not read(outcome.piped.encode(), pipe=True).wrong, outcome.case.line


def test_json_escapes_hostile_text_without_loss(outcomes: list[Outcome], world: World) -> None:
    as_json = {outcome.case.command: outcome.json for outcome in outcomes if outcome.json}
    for command, text in as_json.items():
        assert visible(text) == text, command
        json.loads(text)
    (first, *_) = json.loads(as_json["search"])["hits"]
    assert first["id"] in world.documents
    assert "\x1b]52;c;" in first["text"] and "\u202e" in first["text"] and "\x00" in first["text"]


def test_every_case_shows_hostile_text(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.case.command not in SHIPPED:
            assert marks(outcome.output.text), (
                f"{outcome.case.line}: add the command to SHIPPED if it shows no text of users"
            )
        if outcome.case.command not in HARMLESS_IN_PIPES:
            assert marks(outcome.piped), (
                f"{outcome.case.line}: add the command to HARMLESS_IN_PIPES if its piped output has no text of users"
            )


def test_every_field_is_shown_somewhere(outcomes: list[Outcome], world: World) -> None:
    shown = marks("".join(outcome.output.text for outcome in outcomes))
    unseen = {name for mark, name in world.hostile.fields.items() if mark not in shown}
    assert unseen == SHOWN_IN_ERRORS | ONLY_IN_JSON
