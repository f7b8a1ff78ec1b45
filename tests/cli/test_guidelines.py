"""Guidelines of a user's own task, from the task file to the agreement of annotators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, run_command

TASK = """name = "own"
{}
[documents]
file = "documents.jsonl"
[topics.dev]
file = "topics.tsv"
text = "question"
"""


@pytest.fixture
def task(offline: Cli, tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "documents.jsonl").write_text(
        "".join(f'{{"id": "d{n}", "text": "salt {n}"}}\n' for n in range(3))
    )
    (folder / "topics.tsv").write_text("id\tquestion\nt1\tsalt\n")
    path = folder / "own.toml"
    path.write_text(TASK.format(""))
    assert offline("index", path).code == 0
    return path


def judge(task: Path, name: str, typed: str) -> str:
    result = run_command("judge", task, "--annotator", name, "--plain", typed=typed)
    assert result.code == 0, result.stderr
    return result.stdout


def test_a_change_of_the_guidelines_is_reported(offline: Cli, task: Path, tmp_path: Path) -> None:
    assert "the task has no guidelines" in judge(task, "eve", "g\nq\n")
    guidelines = task.with_name("guidelines.md")
    guidelines.write_text("# Salt\n\n## 1 relevant\nsalty \x1b[31mred\n")
    shown = judge(task, "ann", "g\n1\n0\nq\n")
    assert "## 1 relevant" in shown and "\x1b[31m" not in shown
    result = offline("judgments", "agreement", task)
    assert result.code == 0 and "guidelines" not in result.stdout + result.stderr
    guidelines.write_text("# Salt\n\n## 1 relevant\nnot sweet\n")
    judge(task, "ben", "1\n1\nq\n")
    out = tmp_path / "all.jsonl"
    assert offline("judgments", "export", task, "--out", out).code == 0
    log = tmp_path / "again.sqlite"
    assert offline("judgments", "import", task, out, "--log", log).code == 0
    for options in ([], ["--log", log]):
        result = offline("judgments", "agreement", task, *options)
        assert "the guidelines changed during the study" in result.stderr
        versions = offline("judgments", "agreement", task, *options, "--json").json["guidelines"]
        assert versions["changed"]
        assert [(use["grades"], use["annotators"]) for use in versions["versions"]] == [
            (2, ["ann"]),
            (2, ["ben"]),
        ]
    assert "4 details" in offline("judgments", "verify").stderr
    bare = tmp_path / "bare.jsonl"
    assert offline("judgments", "export", task, "--no-details", "--out", bare).code == 0
    assert bare.read_text().count("\n") == 4 and out.read_text().count("\n") == 8


def test_the_key_guidelines_names_a_file(offline: Cli, task: Path) -> None:
    task.write_text(TASK.format('guidelines = "rules.md"'))
    result = offline("judge", task, "--plain", typed="q\n")
    assert result.code == 4
    assert "guidelines names 'rules.md', but" in result.stderr and "own.toml" in result.stderr
    task.with_name("rules.md").write_text("## 1\nsalty\n")
    assert "salty" in judge(task, "ann", "g\nq\n")
    task.with_name("rules.md").write_bytes(b"\xff")
    result = offline("judge", task, "--plain", typed="q\n")
    assert result.code == 4 and "rules.md: the guidelines are not UTF-8" in result.stderr
