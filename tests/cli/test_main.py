"""The command line: help, global options, errors with suggestions, imports, and names that are not UTF-8."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import imports
from scripts.imports import measure_imports
from searchapp import __version__
from searchapp.cli import run
from searchapp.cli.commands import HEADINGS, MODULES, module_of
from searchapp.ranking import recipes
from tests.cli.conftest import SAMPLE, SAMPLES, Cli, run_command
from tests.programs import COMMAND, Program

FIRST_RECIPE = recipes.names("nlps")[0]


def test_the_version_is_printed(offline: Cli) -> None:
    assert offline("--version").stdout == f"searchapp {__version__}\n"


def test_every_command_is_listed(offline: Cli) -> None:
    text = offline("--help").stdout
    for name in MODULES:
        assert f" {name} " in text


@pytest.mark.parametrize("columns", ["60", "100"])
def test_commands_are_listed_under_their_heading(
    offline: Cli, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = offline("--help").stdout
    words = re.findall(rf"(?m)^(?:\W+ )?({'|'.join([*HEADINGS, *MODULES])})(?=:?$| {{2,}}| ─)", text)
    assert words == [word for heading, names in HEADINGS.items() for word in (heading, *names)]


@pytest.mark.parametrize("name", MODULES)
def test_every_command_has_help(offline: Cli, name: str) -> None:
    result = offline(name, "--help")
    assert result.code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("name", ["", *MODULES])
def test_narrow_terminals_truncate_no_help(offline: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    words = [*([name] if name else []), "--help"]
    monkeypatch.setenv("COLUMNS", "1000")
    wide = set(re.findall(r"[\w-]*\w", offline(*words).stdout)) - {
        "Global",
        "Judging",
        "options",
    }  # headings of tables
    for columns in (20, 40, 60, 79):
        monkeypatch.setenv("COLUMNS", str(columns))
        narrow = offline(*words).stdout
        assert "…" not in narrow
        assert {
            word for word in wide if word not in narrow and word not in re.sub(r"\s", "", narrow)
        } == set()


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
        (["index", "chess"], 2, "unknown task 'chess': choose nlps"),
        (["search", "nlps", " "], 2, "no query: put it in quotes"),
        (
            ["search", "nlps", "x", "--recipe", "magic"],
            2,
            f"nlps has no recipe 'magic': choose {FIRST_RECIPE}",
        ),
        (
            ["search", "checkthat", "x", "--recipe", "bm25"],
            2,
            "checkthat/bm25 needs a complete topic, as in `searchapp rank`: search with --recipe words",
        ),
        (["search", "checkthat", "x", "--recipe", "neighbours"], 2, "search with --recipe words"),
        (["search", "nlps", "x", "--filter", "speaker"], 2, "the filter 'speaker' is not FIELD=VALUE"),
        (["search", "nlps", "--explain-document", "1"], 2, "no query: put it in quotes"),
        (
            ["search", "nlps", "x", "--explain-document", "1", "--document", "1"],
            2,
            "--document and --explain-document exclude each other",
        ),
        (["search", "nlps", "x"], 3, "create it with `searchapp index nlps`"),
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
        (["export", "nowhere", "--out", "x"], 2, "nowhere is not a run directory"),
        (["nonsense"], 2, "No such command"),
        (["index", "nlp"], 2, "unknown task 'nlp' (did you mean nlps?): choose nlps or explanation-2019"),
        (["data", "get", "nlsp"], 2, "official data for 'nlsp' (did you mean nlps?): choose nlps or"),
        (
            ["search", "nlps", "x", "--recipe", "bm52"],
            2,
            f"no recipe 'bm52' (did you mean bm25?): choose {FIRST_RECIPE} or",
        ),
        (
            ["search", "nlps", "x", "--engine", "elastic"],
            2,
            "'elastic' (did you mean elasticsearch?): choose",
        ),
        (
            ["analyze", "nlps", "x", "--field", "text.pros"],
            2,
            "'text.pros' (did you mean text.prose?): choose",
        ),
        (
            ["analyze", "nlps", "x", "--analyzer", "statment"],
            2,
            "'statment' (did you mean statement?): choose",
        ),
    ],
)
def test_errors_have_a_message_and_an_exit_code(
    offline: Cli, arguments: list[str], code: int, message: str
) -> None:
    result = offline(*arguments)
    assert result.code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_verbose_prints_a_traceback(offline: Cli) -> None:
    assert "Traceback" in offline("index", "chess", "--verbose").stderr


def test_a_closed_output_pipe_is_no_error() -> None:
    with Program(COMMAND, "tasks", "--json") as program:
        program.stdout.close()
        assert program.stderr.read() == ""
        assert program.wait() == 0


def printed_by(code: str) -> str:
    """Return the output of a program."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return result.stdout.strip()


def test_no_command_imports_anything_heavy_before_it_runs() -> None:
    code = (
        "import sys; from importlib import import_module; from searchapp.cli.commands import MODULES, module_of\n"
        "for name in MODULES: import_module(module_of(name))\n"
        "heavy = {'elasticsearch', 'numpy', 'scipy', 'ir_measures', 'rich.table', 'textual', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert printed_by(code) == "[]"


# Packages and modules that no command of the report needs, and those that single commands do not need.
_NOWHERE = {"pydantic", "pydantic_core", "elasticsearch", "httpx", "textual", "scipy", "ir_measures"}
_WITHOUT_AN_INDEX = {"numpy", "regex", "searchapp.lucene.search", "searchapp.ranking.fusion"}
NOT_IMPORTED = {
    "--version": _WITHOUT_AN_INDEX | {"rich", "searchapp.tasks.base"},
    "tasks": _WITHOUT_AN_INDEX,
    "tasks show": _WITHOUT_AN_INDEX,
    "runs list": {"regex", "searchapp.lucene.search"},
    "indexes list": _WITHOUT_AN_INDEX,
    "search": {"sklearn", "importlib.metadata", "regex", "zoneinfo", "searchapp.lucene.index.writer"},
}


def test_commands_do_not_import_packages_that_they_do_not_need(tmp_path: Path) -> None:
    measure_imports(("index", imports.TASK), tmp_path)
    assert NOT_IMPORTED.keys() == imports.COMMANDS.keys()
    for command, words in imports.COMMANDS.items():
        imported = measure_imports(words, tmp_path).own_ms.keys()
        assert "searchapp.cli" in imported
        assert imported & (_NOWHERE | NOT_IMPORTED[command]) == set(), command


def test_only_the_given_command_is_imported() -> None:
    code = (
        "import sys; from searchapp.cli import run; from searchapp.cli.commands import MODULES, module_of\n"
        "run(sys.argv[1:] or ['--version'])\n"
        "run(['validate', '--help'])\n"
        "print({module_of(name) for name in MODULES if module_of(name) in sys.modules})"
    )
    first, *_help, last = printed_by(code).splitlines()
    assert first == f"searchapp {__version__}"
    assert last == str({module_of("validate")})


def test_the_help_names_the_task_and_no_type_of_flags(offline: Cli) -> None:
    for command in (["rank"], ["tasks", "show"], ["data", "get"], ["judgments", "export"]):
        text = offline(*command, "--help").stdout
        assert re.search(r"Usage: searchapp|Usage: root", text)
        assert re.search(rf"{command[-1]} \[OPTIONS\] TASK\b", text), text
        assert "<bool>" not in text
    for command in (["evaluate"], ["validate"], ["export"]):
        assert re.search(r"--task +TASK ", offline(*command, "--help").stdout)
    for group in ([], ["tasks"], ["data"], ["runs"], ["judgments"]):
        assert "<bool>" not in offline(*group, "--help").stdout


def test_interrupting_ends_with_130_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = (
        "import sys, time; import searchapp.cli.indexes as indexes\n"
        "def load(name): print('working', flush=True); time.sleep(60)\n"
        "indexes.load = load\n"
        "from searchapp.cli import main\n"
        f"sys.argv = ['searchapp', 'index', 'nlps', '--data', {str(SAMPLE)!r}]; main()"
    )
    with Program(code) as program:
        assert program.read_line() == "working"
        time.sleep(0.1)
        program.send_signal(signal.SIGINT)
        assert program.wait() == 130
        assert program.stderr.read() == "searchapp: interrupted\n"


TRAIN = "has no split 'trian' (did you mean train?): choose train or"


@pytest.mark.parametrize(
    ("task", "split", "message"),
    [
        ("nlps", "trian", TRAIN),
        ("explanation-2019", "trian", TRAIN),
        ("explanation-2021", "trian", TRAIN),
        ("checkthat", "trainin", "has no split 'trainin' (did you mean training?): choose training or"),
        ("smart-types-dbpedia", "fold9", "has no split 'fold9' (did you mean fold4?): choose "),
        ("smart-relations-wikidata", "tset", "has no split 'tset' (did you mean test?): choose "),
    ],
)
def test_a_mistyped_split_gets_a_suggestion(
    offline: Cli, tmp_path: Path, task: str, split: str, message: str
) -> None:
    result = offline("rank", task, "--split", split, "--data", SAMPLE.parent / task, "--out", tmp_path / "r")
    assert result.code == 2
    assert message in result.stderr


def test_a_mistyped_breakdown_gets_a_suggestion(offline: Cli, tmp_path: Path) -> None:
    sample = SAMPLE.parent / "smart-types-dbpedia"
    assert offline("index", "smart-types-dbpedia", "--data", sample).code == 0
    run = tmp_path / "run"
    ranked = offline("rank", "smart-types-dbpedia", "--split", "fold0", "--data", sample, "--out", run)
    assert ranked.code == 0, ranked.stderr
    result = offline("evaluate", run, "--by", "categories")
    assert result.code == 2
    assert "has no breakdown 'categories' (did you mean category?): choose category or" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "ndcg@10",
            "there is no measure 'ndcg@10': did you mean nDCG@10? Otherwise use ir-measures' notation",
        ),
        ("Ap(rel=2)", "there is no measure 'Ap(rel=2)': did you mean AP(rel=2)? Otherwise use"),
        ("quality", "there is no measure 'quality': use ir-measures' notation"),
        ("nDCG@x", "there is no measure 'nDCG@x': did you mean nDCG? Otherwise use ir-measures' notation"),
    ],
)
def test_a_mistyped_measure_gets_a_suggestion(offline: Cli, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "1", "text": "a"}\n')
    task = tmp_path / "own.toml"
    task.write_text(
        f'name = "own"\nmeasure = "{name}"\n[documents]\nfile = "d.jsonl"\n[topics.dev]\nfile = "d.jsonl"\n'
    )
    result = offline("index", task)
    assert result.code == 4
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rank", "nlps", "--out"], "option '--out' requires an argument: see `searchapp rank"),
        (["judgment"], "no such command 'judgment' (did you mean judgments?): see `searchapp --help`"),
        (["tasks", "shw"], "no such command 'shw' (did you mean show?): see `searchapp tasks --help`"),
        (
            ["compare", "a", "b", "--anyway"],
            "no such option: --anyway (did you mean --force?): see `searchapp",
        ),
        (
            ["data", "get", "nlps", "--into", "x"],
            "no such option: --into (did you mean --out?): see `searchapp",
        ),
        (
            ["rank", "nlps", "--spli", "dev"],
            "no such option: --spli (did you mean --split?): see `searchapp rank",
        ),
        (
            ["export", "x", "--format", "oficial"],
            "'oficial' (did you mean official?) is not one of 'official', 'trec', 'jsonl', 'csv', "
            "'ir-metadata': see `searchapp export",
        ),
        (
            ["search", "nlps", "x", "--size", "0"],
            "'-n': it should be greater than or equal to 1: see `searchapp",
        ),
        (["search", "nlps", "x", "--size", "x"], "'-n': it should be a valid integer, unable to parse"),
        (
            ["rank", "nlps", "--aggregation", "zzz"],
            "invalid value for '--aggregation': 'zzz' is not one of 'majority'",
        ),
    ],
)
def test_mistyped_words_get_suggestions(
    offline: Cli, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) == 2
    stderr = capfd.readouterr().err
    assert stderr.startswith("searchapp: ")
    assert message in stderr


OWN = SAMPLES / "own"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8."""
    path = Path(os.fsdecode(bytes(tmp_path / "f") + b"\xff \xf0\x9f"))
    try:
        path.mkdir()
    except OSError:
        pytest.skip("this file system allows only names in UTF-8")
    return path


def test_commands_accept_names_that_are_not_utf_8(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "home"))
    data, own = shutil.copytree(SAMPLE, folder / "data"), shutil.copytree(OWN, folder / "own")
    task, run, trec = own / "cooking.toml", folder / "run", folder / "run.trec"
    judged = folder / "judged.jsonl"

    def run_successfully(*arguments: object, typed: str | None = None) -> None:
        result = run_command(*arguments, typed=typed)
        assert result.code == 0, (arguments, result.stdout, result.stderr)

    run_successfully("index", "nlps", "--data", data)
    run_successfully("search", "nlps", "ring")
    run_successfully("rank", "nlps", "--split", "dev", "--out", folder / "nlps")
    run_successfully("runs", "verify", folder / "nlps")
    run_successfully("index", task)
    run_successfully("index", task)
    for recipe in ("bm25", "neighbours"):
        run_successfully("rank", task, "--split", "dev", "--recipe", recipe, "--out", run, "--overwrite")
        run_successfully("runs", "verify", run)
        run_successfully("evaluate", run, "--json")
    run_successfully("export", run, "--out", trec)
    run_successfully("validate", trec, "--task", task, "--split", "dev")
    run_successfully("evaluate", trec, "--qrels", own / "gold.txt")
    run_successfully("judge", task, "--run", run, "--plain", "--annotator", "ann", typed="2\n1\nq\n")
    run_successfully("judgments", "export", task, "--format", "jsonl", "--out", judged)
    run_successfully("judgments", "pool", run, "--depth", 3, "--out", folder / "pool")
    run_successfully(
        "judgments", "assign", task, "--split", "dev", "--out", folder / "a.json", "--quota", "ann=3"
    )
    run_successfully("tasks", "new", folder / "new.toml", "--documents", own / "recipes.jsonl")
    for listing in ("tasks", "doctor", ["indexes", "list"], ["data", "list"]):
        run_successfully(*([listing] if isinstance(listing, str) else listing), "--json")

    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "another home"))
    run_successfully("judgments", "import", task, judged)
    run_successfully("judgments", "imports", task)
    run_successfully("judgments", "stats", task, "--json")
    missing = offline("rank", "nlps", "--data", folder / "nothing", "--split", "dev", "--out", run)
    assert missing.code in (2, 3, 4)
