"""The compare screen in a real terminal."""

from __future__ import annotations

from pathlib import Path

from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import run_command
from tests.terminal import Terminal
from tests.tui.compare.conftest import CUTOFF, Runs


def test_runs_are_compared_and_judged_by_keys_alone(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "indexes").symlink_to(runs.home / "indexes")
    paths = [runs.path(recipe) for recipe in ("bm25", "neighbours")]
    with Terminal(
        "compare", *paths, "--screen", "--cutoff", CUTOFF, home=tmp_path, columns=80, lines=24,
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
        terminal.press("J", "1")
        terminal.wait_for("saved  1 relevant")
        terminal.wait_for(r"judged: MAP@50  \S+ → \S+")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    with JudgmentLog(tmp_path / "judgments.sqlite") as log:
        ((_position, event),) = log.events()
    assert (event.document_id, event.grade, event.rank, event.annotator) == (document, 1, 1, "ann")


def test_the_screen_is_refused_without_a_terminal_and_with_output_formats(runs: Runs, tmp_path: Path) -> None:
    paths = [runs.path(recipe) for recipe in ("bm25", "neighbours")]
    for options, message in (
        (["--screen"], "the compare screen needs a terminal: leave out --screen"),
        (
            ["--screen", "--json"],
            "--screen excludes --json, --csv, --latex and --markdown: give one of them",
        ),
        (["--topic", "1"], "--topic requires --screen"),
    ):
        result = run_command("--home", tmp_path, "compare", *paths, *options)
        assert result.code == 2 and result.stdout == ""
        assert result.stderr == f"searchapp: {message}\n"
