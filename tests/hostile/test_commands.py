"""No command lets hostile text act on a terminal or hide in it: on a terminal, into a pipe and as JSON."""

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
from tests.hostile.cases import SCREEN_ALONE, Case, cases, commands
from tests.hostile.payload import Hostile, marks, turns
from tests.hostile.world import World, build, judge
from tests.hostile.written import Written, read
from tests.terminal import Terminal

OPTIONS = dict(commands())
SHIPPED = {"demo"}
"""Commands that show nothing but what ships with the program."""

PIPED_OTHERWISE = SHIPPED | {"data get", "judgments adjudicate"}
"""Commands that ask only on a terminal, or for which the first time has left nothing to do."""

SHOWN_IN_ERRORS = {"name of a column"}
"""See `test_errors`."""

IN_JSON_ALONE = {"tag of a TREC run", "run of an imported event", "file of a bench"}
"""What runs, events and benches keep, and no table shows."""


@dataclass(frozen=True)
class Outcome:
    """What a case wrote, and how it ended: on a terminal, into pipes, and as JSON if it has that."""

    case: Case
    written: Written
    code: int
    piped: str
    json: str | None


def on_terminal(world: World, case: Case) -> tuple[Written, int]:
    with Terminal(*case.line, home=world.home, columns=200) as terminal:
        for line in case.typed:
            terminal.press(line, "enter")
        code = terminal.wait_for_end(60)
    return read(terminal.raw), code


def into_pipe(world: World, line: list[str], typed: tuple[str, ...]) -> tuple[str, str]:
    """What a command writes when nobody looks: both streams together, and stdout alone."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
        for _ in range(2)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO("".join(f"{one}\n" for one in typed)))
        patch.setenv("SEARCHAPP_HOME", str(world.home))
        for name in ("URL", "ENGINE", "SHARED", "INDEX_PREFIX"):
            patch.delenv(f"SEARCHAPP_{name}", raising=False)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.run(line)
    written = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return "".join(written), written[0]


def judged_world(folder: Path, hostile: Hostile) -> World:
    """A world that is indexed, ranked and judged."""
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
        written, code = on_terminal(world, case)
        piped = "" if case.command in SHIPPED else into_pipe(world, case.line, case.typed)[0]
        as_json = None
        if "--json" in OPTIONS[case.command]:
            as_json = into_pipe(world, [*case.line, "--json"], case.typed)[1]
        result.append(Outcome(case, written, code, piped, as_json))
    return result


def test_every_command_has_a_case(outcomes: list[Outcome]) -> None:
    tried = {outcome.case.command for outcome in outcomes} | SCREEN_ALONE
    assert tried == OPTIONS.keys(), "yield a Case of it in cases() of tests/hostile/cases.py"


def test_every_case_does_its_work(outcomes: list[Outcome]) -> None:
    wrong = [
        (outcome.case.command, outcome.code, outcome.written.text[-1000:])
        for outcome in outcomes
        if outcome.code != outcome.case.code
    ]
    assert not wrong


def test_nothing_acts_on_the_terminal(outcomes: list[Outcome]) -> None:
    wrong = {outcome.case.command: outcome.written.wrong for outcome in outcomes if outcome.written.wrong}
    assert not wrong
    assert all(outcome.written.is_restored and not outcome.written.copied for outcome in outcomes)


def test_nothing_acts_or_hides_in_a_pipe(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        assert visible(outcome.piped) == outcome.piped, outcome.case.line
        assert not read(outcome.piped.encode(), pipe=True).wrong, outcome.case.line


def test_json_holds_what_was_given_and_shows_it(outcomes: list[Outcome], world: World) -> None:
    as_json = {outcome.case.command: outcome.json for outcome in outcomes if outcome.json}
    for command, text in as_json.items():
        assert visible(text) == text, command
        json.loads(text)
    (first, *_) = json.loads(as_json["search"])["hits"]
    assert first["id"] in world.documents
    assert "\x1b]52;c;" in first["text"] and "\u202e" in first["text"] and "\x00" in first["text"]


def test_every_command_shows_hostile_text_or_nothing_would_be_tested(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.case.command not in SHIPPED:
            assert marks(outcome.written.text), (
                f"{outcome.case.line}: name it in SHIPPED above if it shows nothing of others"
            )
        if outcome.case.command not in PIPED_OTHERWISE:
            assert marks(outcome.piped), (
                f"{outcome.case.line}: or in PIPED_OTHERWISE if it shows less into a pipe"
            )


def test_every_field_is_shown_somewhere(outcomes: list[Outcome], world: World) -> None:
    shown = marks("".join(outcome.written.text for outcome in outcomes))
    unseen = {name for mark, name in world.hostile.fields.items() if mark not in shown}
    assert unseen == SHOWN_IN_ERRORS | IN_JSON_ALONE
