"""Warnings come after the output of a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from searchapp.cli.output import say, show, warn, warn_at_once, warnings_last
from searchapp.config.settings import Settings
from tests.cli.conftest import EMBEDDED, SAMPLE, run_command


def test_warnings_wait_for_the_end(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with warnings_last():
        warn("first", "  with a line")
        say(settings, "done")
        with warnings_last():  # a command in a command
            warn("inner")
            say(settings, "inner done")
        assert capfd.readouterr().err == "done\ninner done\nwarning: inner\n"
        show("result")
    assert capfd.readouterr() == ("result\n", "warning: first\n  with a line\n")
    warn("outside")
    assert capfd.readouterr().err == "warning: outside\n"


def test_warnings_are_printed_before_an_error_and_before_a_question(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ValueError, match="wrong"), warnings_last():
        warn("held")
        raise ValueError("wrong")
    assert capfd.readouterr().err == "warning: held\n"
    with warnings_last():
        warn("held")
        warn_at_once()
        assert capfd.readouterr().err == "warning: held\n"
        warn("at once")
        assert capfd.readouterr().err == "warning: at once\n"
    assert capfd.readouterr().err == ""


def test_warnings_about_settings_are_behind_the_hits(tmp_path: Path) -> None:
    home = tmp_path / "home"
    indexed = run_command("index", "nlps", "--data", SAMPLE, "--home", home, environment=EMBEDDED)
    assert indexed.code == 0, indexed.stderr
    (home / "settings.toml").write_text('password = "x"\n')
    (home / "settings.toml").chmod(0o644)
    command = [sys.executable, "-m", "searchapp", "--home", str(home), "search", "nlps", "abelian group"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    *hits, last = done.stdout.splitlines()
    assert last.startswith("warning: other users can read ")
    assert len(hits) > 10 and not any(line.startswith("warning") for line in hits)
