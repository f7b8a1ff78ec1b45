"""Error messages, tracebacks, warnings and completions neutralise hostile text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from searchapp.cli.output import COMPLETION_VARIABLE
from searchapp.text import visible
from tests.hostile import world as worlds
from tests.hostile.output import read
from tests.hostile.payload import HALF, NUL, Hostile, marks, turns
from tests.hostile.test_commands import into_pipe, judged_world
from tests.hostile.world import World, quoted
from tests.terminal import Terminal


@pytest.fixture(scope="module", params=turns())
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return judged_world(tmp_path_factory.mktemp("errors"), Hostile(request.param))


MakeCommandLine = Callable[[World, str], list[object]]


def _file(world: World, text: str) -> Path:
    path = world.folder / "wrong"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def _task(world: World, line: str) -> Path:
    path = world.task.with_name("wrong.toml")
    path.write_text(f"{line}\n{world.task.read_text(encoding='utf-8')}", encoding="utf-8")
    return path


def _event(world: World, **fields: object) -> Path:
    event = {
        "id": "e", "time": "2026-01-01T00:00:00+00:00", "annotator": "ann", "kind": "person", "channel": "import",
        "task": worlds.TASK, "topic_id": world.topics[0], "document_id": world.documents[0], "action": "grade",
        "grade": 1, "text": "", "run": "", "rank": None, "refers": "",
    }  # fmt: skip
    return _file(world, json.dumps({**event, **fields}) + "\n")


def _import(world: World, **fields: object) -> list[object]:
    return ["judgments", "import", world.task, _event(world, **fields)]


def _settings(world: World, text: str) -> list[object]:
    (world.home / "settings.toml").write_text(text, encoding="utf-8")
    return ["judge", world.task, "--run", world.run, "--plain"]


WRONG: dict[str, MakeCommandLine] = {
    "command": lambda _, text: [text],
    "command of a group": lambda _, text: ["judgments", text],
    "option": lambda _, text: ["tasks", f"--{text}"],
    "task": lambda _, text: ["index", text],
    "engine": lambda w, text: ["search", w.task, "x", "--engine", text],
    "address": lambda w, text: ["search", w.task, "x", "--url", text.replace("@", "")],
    "split": lambda w, text: ["rank", w.task, "--split", text, "--out", w.folder / "x"],
    "recipe": lambda w, text: ["search", w.task, "x", "--recipe", text],
    "parameter": lambda w, text: ["rank", w.task, "--split", "dev", "--out", w.folder / "x", "--set", f"{text}=1"],
    "tag": lambda w, text: ["rank", w.task, "--split", "dev", "--out", w.folder / "x", "--tag", f"{text} x"],
    "field": lambda w, text: ["analyze", w.task, "x", "--field", text],
    "analyzer": lambda w, text: ["analyze", w.task, "x", "--analyzer", text],
    "run": lambda _, text: ["evaluate", text],
    "breakdown": lambda w, text: ["evaluate", w.run, "--by", text],
    "measure": lambda w, text: ["evaluate", w.run, "--measure", text],
    "annotator": lambda w, text: ["judgments", "list", w.task, "--annotator", text],
    "member": lambda w, text: ["judgments", "assign", w.task, "--split", "dev", "--out", "x", "--quota", text],
    "log": lambda w, text: ["judgments", "stats", w.task, "--log", w.folder / text.replace("/", "")[:60]],
    "index": lambda _, text: ["indexes", "remove", text, "--yes"],
    "gold": lambda w, text: ["evaluate", w.gold, "--task", w.task, "--gold", _file(w, f"{text}\n")],
    "score of a run": lambda w, text: ["evaluate", _file(w, f"t Q0 d 1 {_word(text)} tag\n"), "--qrels", w.gold],
    "id in a run": lambda w, text: ["evaluate", _file(w, f"t Q0 {_word(text)} 1 1 tag\n"), "--qrels", w.gold],
    "grade of qrels": lambda w, text: ["evaluate", w.run, "--qrels", _file(w, f"t 0 d {_word(text)}\n")],
    "TOML key": lambda w, text: ["tasks", "show", _task(w, f"{quoted(text)} = 1")],
    "TOML value": lambda w, text: ["index", _task(w, f"training_split = {quoted(text)}")],
    "no TOML": lambda w, text: ["index", _task(w, f"{text} ] = [[")],
    "annotator's name in an event": lambda w, text: _import(w, annotator=text + NUL + HALF),
    "field of an event": lambda w, text: _import(w, **{text: 1}),
    "action of an event": lambda w, text: _import(w, action=text),
    "time of an event": lambda w, text: _import(w, time=text),
    "topic of an event": lambda w, text: _import(w, topic_id=text),
    "document of an event": lambda w, text: _import(w, document_id=text),
    "task of an event": lambda w, text: _import(w, task=text),
    "setting": lambda w, text: _settings(w, f"[judge]\n{quoted(text)} = 1"),
    "theme": lambda w, text: _settings(w, f"[judge]\ntheme = {quoted(text)}"),
    "action of a key": lambda w, text: _settings(w, f"[judge.keys]\n{quoted(text)} = 'a'"),
    "key": lambda w, text: _settings(w, f"[judge.keys]\nundo = {quoted(text)}\nredo = {quoted(text)}"),
}  # fmt: skip
"""Wrong inputs, and functions that return the command line with a text as the wrong input."""


def _word(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("name", WRONG)
def test_messages_neutralise_wrong_input(world: World, name: str) -> None:
    text = world.hostile.text(f"wrong {name}")
    try:
        output, _ = into_pipe(world, [str(word) for word in WRONG[name](world, text)], ())
    finally:
        (world.home / "settings.toml").unlink(missing_ok=True)
    assert output.startswith(("searchapp: ", "warning: "))
    assert marks(output), output
    assert visible(output) == output
    assert not read(output.encode(), pipe=True).wrong
    assert "internal error" not in output


@pytest.mark.parametrize("id_", ["a\x1b[2Jb", "a\x9b2Jb", "a\x00b", "a\x7fb", "a\bb"])
def test_ids_with_control_characters_are_rejected(world: World, tmp_path: Path, id_: str) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps({"id": id_, "text": "x"}) + "\n")
    task = tmp_path / "task.toml"
    task.write_text('name = "ids"\n[documents]\nfile = "d.jsonl"\n')
    output, _ = into_pipe(world, ["index", str(task)], ())
    assert "an id must not contain control characters" in output
    assert visible(output) == output


def test_tracebacks_and_warnings_neutralise_hostile_text(world: World) -> None:
    program = (
        "import sys, threading, warnings; from searchapp import cli\n"
        "words = sys.argv.pop()\n"
        "def fail(*_):\n"
        "    warnings.warn(words)\n"
        "    thread = threading.Thread(target=lambda: {}[words] if not words else int(words), name=words)\n"
        "    thread.start(); thread.join()\n"
        "    raise ValueError(words)\n"
        "cli.run = fail; cli.main()"
    )
    with Terminal(
        world.hostile.text("argument of a failing program"), home=world.home, program=("-c", program)
    ) as terminal:
        assert terminal.wait_for_end() == 1
        output = read(terminal.raw)
    assert not output.wrong
    assert output.text.count("Traceback") == 2 and "UserWarning: Q" in output.text
    assert "ValueError: Q" in output.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_only_harmless_names(world: World, tmp_path: Path, shell: str) -> None:
    text = world.task.read_text(encoding="utf-8")
    for name in (world.task.name, "plain\nname.toml", "plain.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {
        COMPLETION_VARIABLE: f"complete_{shell}",
        "COMP_WORDS": "searchapp\nindex\n",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "searchapp index ",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "SEARCHAPP_HOME": str(world.home),
    }
    completion = subprocess.run(
        [sys.executable, "-m", "searchapp"],
        env=dict(os.environ) | environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"plain.toml" in completion.stdout
    assert not read(completion.stdout + completion.stderr, pipe=True).wrong
    assert b"name.toml" not in completion.stdout and not marks(completion.stdout.decode())
