"""The commands of the study with a model judge, run in order in an empty folder."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli, offline
from tests.profile import FULL
from tests.real import real_data
from tests.test_tutorial import Example, examples, normalise

__all__ = ["offline"]

PAGE = Path(__file__).parents[1] / "docs" / "use" / "model-judge-study.md"

LEFT_OUT = "[...]"
"""The line of the page in place of further lines of output."""


def run_study(offline: Cli, data: Path, folder: Path, topics: int) -> list[tuple[Example, str]]:
    """Run all commands but the download in a folder; return each with its output."""
    shutil.copytree(data, folder / "home" / "data" / "nlps")
    outputs = []
    for example in examples(PAGE):
        command = example.command.replace("=100", f"={topics}")
        if command.startswith("searchapp data get"):
            continue
        if command.startswith("searchapp "):
            _, *words = shlex.split(command.replace("python judge.py", f"{sys.executable} judge.py"))
            result = offline(*words)
            code, output = result.code, result.stdout + result.stderr
        else:
            script = command.replace("python published.py", f"{sys.executable} published.py")
            shell = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False)
            code, output = shell.returncode, shell.stdout + shell.stderr
        assert code == 0, f"{command}: {output}"
        outputs.append((example, output.replace(sys.executable, "python")))
    return outputs


def test_all_commands_of_the_study_work_on_the_sample(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = run_study(offline, SAMPLES / "nlps", tmp_path, topics=10)
    assert len(outputs) > 12
    trust = [output for example, output in outputs if "judgments trust" in example.command]
    assert len(trust) == 2
    for output in trust:
        assert re.search(r"^Of \d+ documents that people graded, \w+ graded [1-9]", output, re.MULTILINE)
        assert "Self-agreement of the model" in output and "tau-AP" in output
    qrels = (tmp_path / "published.qrels").read_text().splitlines()
    assert {line.split()[3] for line in qrels} == {"0", "1"}
    assert (tmp_path / "judgments.html").exists()


@pytest.mark.data
@pytest.mark.skipif(not FULL, reason="training the recipe `best` takes minutes")
def test_the_figures_of_the_study_are_those_of_its_commands(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for example, output in run_study(offline, real_data("nlps"), tmp_path, topics=100):
        shown = "\n".join(line for line in example.printed if line != LEFT_OUT)
        missing = Counter(words_of(shown, tmp_path)) - Counter(words_of(output, tmp_path))
        assert not missing, f"{PAGE.name} shows lines that `{example.command}` does not print"


def words_of(text: str, folder: Path) -> list[str]:
    """Return lines with single spaces, because the path of Python changes the widths of columns."""
    return [" ".join(line.split()) for line in normalise(text, folder)]
