"""Completions of the Tab key, requested as shells do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from searchapp.cli import complete, run
from searchapp.cli.output import COMPLETION_VARIABLE
from searchapp.ranking import recipes
from tests.cli.conftest import SAMPLE, Cli
from tests.programs import COMMAND, Program

Complete = Callable[..., list[str]]

OWN = """
name = "cooking"
[documents]
file = "d.jsonl"
[topics.winter]
file = "t.jsonl"
[topics.summer]
file = "t.jsonl"
[recipes.spicy]
template = "bm25"
"""


@pytest.fixture
def bash(offline: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Complete:
    """Completes the last of the words of a line as Bash does; nothing else may be printed."""

    def complete_words(*words: object) -> list[str]:
        monkeypatch.setenv(COMPLETION_VARIABLE, "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["searchapp", *map(str, words)]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            sys.exit(complete.offer(run))
        monkeypatch.delenv(COMPLETION_VARIABLE)
        printed = capfd.readouterr()
        assert printed.err == ""
        assert ended.value.code in (0, None)
        return printed.out.split("\n")[:-1] if printed.out.strip() else []

    return complete_words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def runs(offline: Cli, folder: Path) -> Path:
    """A working folder with two runs of nlps and another folder."""
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    result = offline("rank", "nlps", "--split", "dev", "--data", SAMPLE, "--out", "runs/dev")
    assert result.code == 0, result.stderr
    shutil.copytree("runs/dev", "runs/my dev")
    (folder / "other").mkdir()
    return folder


def test_tasks_are_offered_by_every_command_that_takes_a_task(bash: Complete, folder: Path) -> None:
    for command in (
        ["index"],
        ["rank"],
        ["tasks", "show"],
        ["judgments", "stats"],
        ["validate", "f", "--task"],
    ):
        assert bash(*command, "n") == ["nlps"]
        assert bash(*command, "smart-types") == ["smart-types-dbpedia", "smart-types-wikidata"]
    assert bash("data", "get", "ch") == ["checkthat"]


def test_task_files_are_offered_and_other_toml_files_are_not(bash: Complete, folder: Path) -> None:
    (folder / "cooking.toml").write_text(OWN)
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (folder / "broken.toml").write_text("[[[")
    (folder / "sub").mkdir()
    (folder / "sub" / "task.toml").write_text(OWN)
    assert "cooking.toml" in bash("index", "")
    assert bash("index", "c") == ["cooking.toml", "checkthat"]
    assert bash("index", "p") == bash("index", "b") == []
    assert bash("index", "sub/") == ["sub/task.toml"]
    assert bash("index", f"{folder}/c") == [f"{folder}/cooking.toml"]
    assert bash("index", "nowhere/") == []


def test_splits_and_recipes_are_those_of_the_typed_task(bash: Complete, folder: Path) -> None:
    (folder / "cooking.toml").write_text(OWN)
    assert bash("rank", "nlps", "--split", "") == ["train", "dev", "test"]
    assert bash("rank", "cooking.toml", "--split", "w") == ["winter"]
    assert bash("rank", "--split", "dev", "nlps", "--recipe", "n") == ["neighbours"]
    assert bash("rank", "cooking.toml", "--recipe", "s") == ["spicy"]
    assert bash("search", "nlps", "--recipe", "") == recipes.names("nlps")
    assert bash("search", "checkthat", "--recipe", "") == ["words"]
    assert bash("validate", "f", "--task", "checkthat", "--split", "te") == ["test_annotated"]
    assert bash("judgments", "assign", "nlps", "--split", "d") == ["dev"]


def test_fields_analyzers_engines_and_choices_are_offered(bash: Complete, folder: Path) -> None:
    assert bash("analyze", "nlps", "--field", "text.p") == ["text.prose"]
    assert "statement" in bash("analyze", "nlps", "x", "--analyzer", "")
    assert bash("--engine", "e") == ["embedded", "elasticsearch"]
    assert bash("tasks", "--engine", "el") == ["elasticsearch"]
    assert bash("export", "r", "--format", "o") == ["official"]
    assert bash("evaluate", "--task", "smart-types-dbpedia", "--by", "") == [
        "category", "gold-types", "first-word", "all",
    ]  # fmt: skip
    assert "nDCG@10" in bash("evaluate", "--task", "nlps", "--measure", "nDCG")


def test_runs_are_offered_and_their_splits(bash: Complete, runs: Path) -> None:
    assert bash("evaluate", "") == ["runs/dev", r"runs/my\ dev"]
    assert bash("evaluate", "runs/d") == ["runs/dev"]
    assert bash("evaluate", r"runs/my\ d") == [r"runs/my\ dev"]
    assert bash("evaluate", '"runs/my d') == ["runs/my dev"]
    assert bash("runs", "verify", "./ru") == ["./runs/dev", r"./runs/my\ dev"]
    assert bash("export", f"{runs}/runs/d") == [f"{runs}/runs/dev"]
    assert bash("judge", "nlps", "--run", "runs/d") == ["runs/dev"]
    assert bash("judge", "checkthat", "--run", "runs/d") == []
    assert bash("evaluate", "runs/dev", "--split", "d") == ["dev"]
    assert bash("evaluate", "other/") == []


def test_annotators_of_the_task_are_offered(bash: Complete, offline: Cli, folder: Path) -> None:
    (folder / "g.qrels").write_text("602 0 1 1\n")
    for name in ("ann", "bob", "Ann Lee"):
        imported = offline("judgments", "import", "nlps", "g.qrels", "--format", "qrels", "--annotator", name)
        assert imported.code == 0, imported.stderr
    assert bash("judge", "nlps", "--annotator", "") == [r"Ann\ Lee", "ann", "bob"]
    assert bash("judgments", "agreement", "nlps", "--annotator", "b") == ["bob"]
    assert bash("judgments", "agreement", "checkthat", "--annotator", "") == []
    assert bash("judge", "nlps", "--log", "nowhere.sqlite", "--annotator", "") == []
    assert not (folder / "nowhere.sqlite").exists()


def test_invalid_lines_get_no_completions(
    bash: Complete, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ["rank", "chess", "--split", ""],
        ["rank", "--split", ""],
        ["analyze", "nlps", "--depth", "--field", "zz"],
        ["evaluate", "nowhere", "--by", ""],
        ["judge", "nlps", "--annotator", ""],
        ["rank", "broken.toml", "--split", ""],
    ):
        (folder / "broken.toml").write_text("name = [")
        assert bash(*words) == []
    assert bash("rank", "nlps", "--depth", "x", "--split", "d") == ["dev"]
    monkeypatch.setenv("SEARCHAPP_ENGINE", "solr")
    assert bash("judge", "nlps", "--annotator", "") == []
    monkeypatch.setenv("SEARCHAPP_URL", "http://127.0.0.1:9")
    assert bash("rank", "nlps", "--split", "d") == ["dev"]


def test_names_that_a_shell_would_run_are_not_offered(bash: Complete, runs: Path) -> None:
    for name in ("$(reboot)", "`x`", "a;b", "a'b", 'a"b', "a\\b", "a\nb"):
        (runs / "runs" / "dev").rename(runs / "runs" / name)
        assert bash("evaluate", "runs/") == [r"runs/my\ dev"]
        (runs / "runs" / name).rename(runs / "runs" / "dev")


def request_completion(variables: dict[str, str]) -> tuple[int, str, str]:
    """Run `searchapp` as a shell does, and return its exit code, output and error output."""
    with Program(COMMAND, environment=variables) as program:
        output = program.communicate()
        return program.wait(), *output


def test_zsh_and_fish_get_completions() -> None:
    line = {"_TYPER_COMPLETE_ARGS": "searchapp rank nlps --split d"}
    zsh = request_completion({COMPLETION_VARIABLE: "complete_zsh", **line})
    assert zsh == (0, "_arguments '*: :((\"dev\"))'\n", "")
    fish = {COMPLETION_VARIABLE: "complete_fish", **line}
    completions = request_completion({**fish, "_TYPER_COMPLETE_FISH_ACTION": "get-args"})
    assert completions == (0, "dev\n", "")
    assert request_completion({**fish, "_TYPER_COMPLETE_FISH_ACTION": "is-args"})[0] == 0
    nothing = {**fish, "_TYPER_COMPLETE_ARGS": "searchapp rank nlps --split z"}
    assert (
        request_completion({**nothing, "_TYPER_COMPLETE_FISH_ACTION": "is-args"})[0] == 1
    )  # fish then offers files


@pytest.mark.parametrize("variables", [{}, {"COMP_WORDS": "searchapp", "COMP_CWORD": "x"}])
def test_an_invalid_request_of_a_shell_gets_no_completions(variables: dict[str, str]) -> None:
    assert request_completion({COMPLETION_VARIABLE: "complete_bash", **variables}) == (1, "", "")


def test_completion_is_printed_and_installed_for_the_calling_shell(tmp_path: Path) -> None:
    searchapp = Path(sys.executable).with_name("searchapp")
    script = f"{searchapp} --install-completion && {searchapp} --show-completion; echo $?"
    result = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stderr == ""
    assert result.stdout.endswith("complete -o default -F _searchapp_completion searchapp\n0\n")
    (installed,) = (tmp_path / ".bash_completions").iterdir()
    assert installed.name == "searchapp.sh"
    # Bash calls the installed function in this way when Tab is pressed.
    line = (
        f'source {installed}; COMP_WORDS=(searchapp rank nlps --split ""); COMP_CWORD=4; '
        '_searchapp_completion searchapp; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    used = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "PATH": f"{searchapp.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (used.stdout, used.stderr) == ("train\ndev\ntest\n", "")


IMPORTS = """
import json, os, sys
from searchapp.cli import complete, run
from searchapp.cli.output import COMPLETION_VARIABLE
heavy = {"elasticsearch", "numpy", "scipy", "ir_measures", "rich", "textual", "httpx"}
for line in json.load(sys.stdin):
    if os.fork():
        os.wait()
        continue
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\\n".join(line), str(len(line) - 1)
    try:
        complete.offer(run)
    except SystemExit:
        pass
    imported = sorted((heavy | {"searchapp.engines.embedded"}) & set(sys.modules))
    print("imported", line, imported, flush=True)
    os._exit(0)
"""


def test_completing_imports_nothing_heavy() -> None:
    lines = [
        ["searchapp", *words]
        for words in (
            ["rank", "nlps", "--split", ""],
            ["rank", "checkthat", "--recipe", ""],
            ["analyze", "nlps", "--field", ""],
            ["evaluate", "--task", "smart-types-dbpedia", "--by", ""],
            ["index", ""],
            ["evaluate", ""],
            ["judge", "nlps", "--annotator", ""],
        )
    ]
    # A new Python, which has imported nothing, completes each line in a fork.
    result = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env={**os.environ, COMPLETION_VARIABLE: "complete_bash"},
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=60,
    )
    imported = [line for line in result.stdout.splitlines() if line.startswith("imported")]
    assert imported == [f"imported {line} []" for line in lines], result.stdout + result.stderr
