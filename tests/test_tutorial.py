"""The tutorial's commands, run in order in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, offline

__all__ = ["offline"]

PAGE = Path(__file__).parents[1] / "docs" / "start" / "tutorial.md"
FOLDER = "/home/ann/cooking"
"""The folder in which the page shows the commands."""

PROMPT = "> "


@dataclass(frozen=True)
class Example:
    """A command of the page, and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]

    @property
    def typed(self) -> str:
        """The input of the user at the prompts of the program."""
        answers = [line.removeprefix(PROMPT) for line in self.shown if line.startswith(PROMPT)]
        return "".join(f"{answer}\n" for answer in answers)

    @property
    def printed(self) -> list[str]:
        """The lines that the program prints."""
        return [line for line in self.shown if line and not line.startswith(PROMPT)]


def examples(page: Path) -> Iterator[Example]:
    """Yield the commands of a page's bash and console blocks in order."""
    text = page.read_text(encoding="utf-8")
    for kind, block in re.findall(r"^```(bash|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if kind == "bash":
            yield Example(block, ())
            continue
        for lines in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = lines.splitlines()
            yield Example(command, tuple(shown))


def normalise(text: str, folder: Path) -> list[str]:
    """Return lines without times, the real folder and white space at their ends."""
    text = re.sub(r"\d+\.\d s\b", "N s", text.replace(str(folder), FOLDER))
    return [line.removeprefix(PROMPT).rstrip() for line in text.splitlines()]


def test_the_commands_of_the_tutorial_print_what_it_shows(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = list(examples(PAGE))
    assert len(commands) > 12
    for example in commands:
        if example.command.startswith("searchapp "):
            _, *words = shlex.split(example.command)
            result = offline(*words, typed=example.typed)
            code, output = result.code, result.stdout + result.stderr
        else:
            shell = subprocess.run(
                ["bash", "-c", example.command], capture_output=True, text=True, check=False, cwd=tmp_path
            )
            code, output = shell.returncode, shell.stdout + shell.stderr
        assert code == 0, f"{example.command}: {output}"
        lines = Counter(normalise(output, tmp_path))
        missing = Counter(normalise("\n".join(example.printed), tmp_path)) - lines
        assert not missing, (
            f"{PAGE.name} shows lines that `{example.command}` does not print; it prints:\n{output}"
        )
