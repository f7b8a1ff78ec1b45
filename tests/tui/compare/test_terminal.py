"""The compare screen as people meet it: the program on a terminal, driven by keys alone."""

from __future__ import annotations

from pathlib import Path

from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import run_command
from tests.terminal import Terminal
from tests.tui.compare.conftest import CUTOFF, Runs


def test_runs_are_compared_and_judged_by_keys_alone(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "indexes").symlink_to(runs.home / "indexes")
    both = [runs.made(recipe) for recipe in ("bm25", "neighbours")]
    with Terminal(
        "compare", *both, "--screen", "--cutoff", CUTOFF, home=tmp_path, columns=80, lines=24,
        SEARCHAPP_ANNOTATOR="ann",
    ) as terminal:  # fmt: skip
        terminal.wait_for(r"bm25 → neighbours")
        terminal.wait_for(r"MAP@50  0\.\d+ → 0\.\d+  [+-]0\.\d+")
        terminal.wait_for(r"Topic \S+ · .* → ")
        terminal.press("w")
        terminal.wait_for("in both runs")
        terminal.press("escape")
        terminal.wait_for(r"(?s)\A(?!.*in both runs)")
        document = terminal.wait_for(r"Document (\S+) ")[1]
        terminal.press("j", "1")
        terminal.wait_for("saved  1 relevant")
        terminal.wait_for(r"judged: MAP@50  \S+ → \S+")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    with JudgmentLog(tmp_path / "judgments.sqlite") as log:
        ((_place, event),) = log.events()
    assert (event.document_id, event.grade, event.rank, event.annotator) == (document, 1, 1, "ann")


def test_without_a_terminal_or_beside_a_table_it_is_refused(runs: Runs, tmp_path: Path) -> None:
    both = [runs.made(recipe) for recipe in ("bm25", "neighbours")]
    for options, said in (
        (["--screen"], "the compare screen needs a terminal: leave out --screen"),
        (
            ["--screen", "--json"],
            "--screen excludes --json, --csv, --latex and --markdown: give one of them",
        ),
        (["--topic", "1"], "--topic requires --screen"),
    ):
        done = run_command("--home", tmp_path, "compare", *both, *options)
        assert done.code == 2 and done.stdout == ""
        assert done.stderr == f"searchapp: {said}\n"
