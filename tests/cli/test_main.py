from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from searchapp import __version__
from tests.cli.conftest import SAMPLE, Cli

COMMANDS = [
    "analyze",
    "data",
    "demo",
    "doctor",
    "evaluate",
    "export",
    "index",
    "rank",
    "runs",
    "search",
    "tasks",
    "validate",
]


def test_the_version_is_printed(offline: Cli) -> None:
    assert offline("--version").stdout == f"searchapp {__version__}\n"


def test_every_command_is_listed_with_a_sentence(offline: Cli) -> None:
    shown = offline("--help").stdout
    for name in COMMANDS:
        assert f" {name} " in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(offline: Cli, name: str) -> None:
    result = offline(name, "--help")
    assert result.code == 0
    assert "Usage:" in result.stdout


def test_global_options_are_accepted_before_and_after_the_command(offline: Cli) -> None:
    for arguments in (["--quiet", "tasks"], ["tasks", "--quiet"]):
        assert offline(*arguments).code == 0
    before = offline("--url", "http://127.0.0.1:7", "search", "nlps", "x")
    after = offline("search", "nlps", "x", "--url", "http://127.0.0.1:7")
    both = offline("--url", "http://127.0.0.1:5", "search", "nlps", "x", "--url", "http://127.0.0.1:7")
    for result in (before, after, both):
        assert "http://127.0.0.1:7" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["index", "chess"], 2, "there is no task 'chess': choose nlps"),
        (["search", "nlps", " "], 2, "there are no words to search for"),
        (["search", "nlps", "x", "--recipe", "magic"], 2, "nlps has no recipe 'magic': choose bm25"),
        (["search", "nlps", "x", "--recipe", "neighbours"], 2, "search with --recipe bm25 or words"),
        (["search", "nlps", "x", "--recipe", "tfidf"], 2, "nlps/tfidf needs more than words"),
        (["search", "checkthat", "x", "--recipe", "bm25"], 2, "search with --recipe words"),
        (["search", "explanation-2019", "x", "--recipe", "bm25"], 2, "search with --recipe words"),
        (["search", "nlps", "x"], 3, "make it with `searchapp index nlps`"),
        (
            ["search", "nlps", "x", "--url", "http://127.0.0.1:9"],
            3,
            "no Elasticsearch answers at http://127.0.0.1:9",
        ),
        (["index", "nlps", "--data", str(SAMPLE), "--shards", "3"], 2, "the embedded engine has no shards"),
        (["search", "nlps", "x", "--engine", "solr"], 2, "there is no engine 'solr'"),
        (["analyze", "nlps", "x", "--field", "body"], 2, "nlps has no text field 'body': choose text"),
        (["analyze", "nlps", "x", "--analyzer", "none"], 2, "nlps has no analyzer 'none'"),
        (["rank", "nlps", "--split", "dev", "--out", "r", "--set", "boost"], 2, "use the form NAME=VALUE"),
        (["evaluate", "nowhere"], 2, "nowhere"),
        (["export", "nowhere", "--out", "x"], 2, "nowhere is no run directory"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    offline: Cli, arguments: list[str], code: int, message: str
) -> None:
    result = offline(*arguments)
    assert result.code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_traceback_is_printed_only_when_asked_for(offline: Cli) -> None:
    assert "Traceback" in offline("index", "chess", "--verbose").stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    code = "import sys; from searchapp.cli import main; sys.argv = ['searchapp', 'tasks', '--json']; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 0


def test_starting_up_imports_nothing_heavy() -> None:
    code = (
        "import sys; from searchapp.cli import app\n"
        "heavy = {'elasticsearch', 'numpy', 'scipy', 'ir_measures', 'rich.table', 'ijson', 'textual', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert printed.stdout.strip() == "[]"


def test_interrupting_ends_with_130_and_one_line(tmp_path: Path) -> None:
    code = (
        "import sys, time; import searchapp.tasks as tasks\n"
        "def load(name): print('working', flush=True); time.sleep(60)\n"
        "tasks.load = load\n"
        "from searchapp.cli import main\n"
        f"sys.argv = ['searchapp', 'index', 'nlps', '--data', {str(SAMPLE)!r}]; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "working\n"
        time.sleep(0.1)
        process.send_signal(2)
        assert process.wait(30) == 130
        assert process.stderr.read() == "searchapp: interrupted\n"
