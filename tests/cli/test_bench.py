"""`searchapp bench` on the samples: figures, reuse of runs, failures of cells and layouts."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchapp.app.experiments import bench
from searchapp.app.experiments.bench import BUSY
from searchapp.app.experiments.bench_result import FILE, BenchResult, read_bench
from searchapp.app.rank import make_run
from searchapp.cli import experiment_tables
from searchapp.cli.tables import Layout
from searchapp.console import HarmlessConsole
from searchapp.errors import DataError, UsageError
from searchapp.files import exclusive_folder
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.runs import directory
from tests.cli.conftest import EMBEDDED, SAMPLES, Cli, run_command
from tests.profile import FULL
from tests.programs import COMMAND, Program

KILLS = 40 if FULL else 4
STARTING_SECONDS = 0.3 if FULL else 0.0
"""The seconds that a program needs to start, before which no kill is of interest."""

PLAN = """
baseline = "bm25"
permutations = 1000
[recipes.bm25]
[recipes.near]
recipe = "neighbours"
set = { k = 3 }
[tasks.nlps]
splits = ["dev"]
data = "data"
cutoff = 50
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of two recipes on the sample of nlps, in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "nlps", "data")
    Path("plan.toml").write_text(PLAN)
    return Path("plan.toml")


@pytest.fixture(scope="module")
def finished_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the plan was run, as a copy of the folder `work` beside it."""
    folder = tmp_path_factory.mktemp("bench")
    work = folder / "work"
    shutil.copytree(SAMPLES / "nlps", work / "data")
    (work / "plan.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        result = run_command("bench", "plan.toml", "--home", work / "home", environment=EMBEDDED)
    assert result.code == 0, result.stderr
    return Path(shutil.copytree(work, folder / "copy"))


@pytest.fixture
def benched(offline: Cli, finished_bench: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Commands in the folder `work` with the finished bench; it stays in one place since runs record their data."""
    work = finished_bench.with_name("work")
    shutil.rmtree(work)
    shutil.copytree(finished_bench, work)
    monkeypatch.chdir(work)
    monkeypatch.setenv("SEARCHAPP_HOME", str(work / "home"))
    return offline


def newly_ranked(output: Any) -> dict[str, bool]:
    """Return by run whether a cell was ranked; otherwise its run was reused."""
    return {
        cell["run"]: cell["ranked"]
        for column in output["columns"]
        if column["group"] is None
        for cell in column["cells"]
        if cell is not None
    }


BM25, NEAR = "nlps/dev/embedded/bm25", "nlps/dev/embedded/near"


def test_figures_are_those_of_evaluate_and_tests_those_of_compare(benched: Cli) -> None:
    output = benched("bench", "plan.toml", "--json").json
    assert [system["name"] for system in output["systems"]] == ["bm25", "near"] and output["baseline"] == 0
    (column,) = output["columns"]
    runs = [Path("plan") / cell["run"] for cell in column["cells"]]
    evaluated = benched("evaluate", *runs, "--cutoff", 50, "--json").json["runs"]
    compared = benched("compare", *runs, "--cutoff", 50, "--permutations", 1000, "--json").json
    assert [measure["name"] for measure in column["measures"]] == [
        measure["measure"] for measure in compared["measures"]
    ]
    for measure, expected in zip(column["measures"], compared["measures"], strict=True):
        for figure, run in zip(measure["figures"], evaluated, strict=True):
            official = run["official"]["values"]
            assert figure == official.get(measure["name"], run["measures"].get(measure["name"]))
        (pair,) = expected["pairs"]
        tests = pair["tests"]
        of_baseline, difference = measure["differences"]
        assert of_baseline is None and difference["corrected"] == pair["corrected"]
        assert (difference["mean"], difference["low"], difference["high"], difference["effect"]) == (
            tests["mean"],
            tests["interval"]["low"],
            tests["interval"]["high"],
            tests["effect"],
        )
        assert (difference["wins"], difference["ties"], difference["losses"]) == tuple(
            tests["outcomes"].values()
        )
    assert benched("rank", "nlps", "--split", "dev", "--recipe", "bm25", "--out", "same").code == 0
    assert Path("same/run.trec").read_bytes() == (runs[0] / "run.trec").read_bytes()
    listed = {run["run"] for run in benched("runs", "list", "--json").json["runs"]}
    assert {str(run.resolve()) for run in runs} <= listed
    assert all(benched("runs", "verify", run).code == 0 for run in runs)


def test_only_cells_with_changed_inputs_are_ranked_again(benched: Cli) -> None:
    def again() -> dict[str, bool]:
        return newly_ranked(benched("bench", "plan.toml", "--json").json)

    def measures() -> Any:
        return json.loads(Path("plan", FILE).read_bytes())["columns"][0]["measures"]

    before = measures()
    assert again() == {BM25: False, NEAR: False}
    assert measures() == before

    Path("plan.toml").write_text(PLAN.replace("k = 3", "k = 4"))
    assert again() == {BM25: False, NEAR: True}

    with Path("plan", BM25, "run.trec").open("a") as file:
        file.write("altered\n")
    assert again() == {BM25: True, NEAR: False}

    shutil.rmtree(Path("plan", NEAR))
    assert again() == {BM25: False, NEAR: True}

    shutil.rmtree(Path("home", "indexes"))  # is not needed as long as the runs exist
    assert again() == {BM25: False, NEAR: False} and benched("search", "nlps", "ring").code == 0

    gold = json.loads(Path("data/dev_set.json").read_text())
    topic = next(iter(gold))
    gold[topic]["premises"] = gold[topic]["premises"][:1]
    Path("data/dev_set.json").write_text(json.dumps(gold))
    assert again() == {BM25: True, NEAR: True}

    assert newly_ranked(benched("bench", "plan.toml", "--overwrite", "--json").json) == {
        BM25: True,
        NEAR: True,
    }


def test_only_changes_of_a_task_file_that_affect_a_run_rank_it_again(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = Path(shutil.copytree(SAMPLES / "own", "own")) / "cooking.toml"
    Path("plan.toml").write_text(
        "baseline = 'bm25'\npermutations = 1000\n[recipes.bm25]\n[recipes.half]\n"
        "[tasks.cooking]\ntask = 'own/cooking.toml'\nsplits = ['dev']\n"
    )

    def again() -> list[bool]:
        result = offline("bench", "plan.toml", "--json")
        assert result.code == 0, result.stderr
        return list(newly_ranked(result.json).values())

    assert again() == [True, True]
    task.write_text(task.read_text() + "\n[recipes.more]\ntemplate = 'bm25'\n")
    assert again() == [False, False]
    task.write_text(task.read_text().replace("half = 0.5", "half = 0.6"))
    assert again() == [False, True]
    template = task.with_name("half.json")
    template.write_text(template.read_text().replace("50%", "40%"))
    assert again() == [False, True]
    # Figures depend on the measure, runs do not.
    task.write_text(task.read_text().replace('measure = "nDCG@10"', 'measure = "AP"'))
    output = offline("bench", "plan.toml", "--json").json
    assert list(newly_ranked(output).values()) == [False, False]
    assert output["columns"][0]["measures"][0]["name"] == "AP"


def test_figures_are_computed_again_for_reused_runs(benched: Cli) -> None:
    Path("plan.toml").write_text(f'measures = ["RR"]{PLAN}')
    output = benched("bench", "plan.toml", "--json").json
    assert newly_ranked(output) == {BM25: False, NEAR: False}
    assert [measure["name"] for measure in output["columns"][0]["measures"]] == ["MAP@50", "RR"]


def test_groups_of_topics_have_their_own_columns(benched: Cli) -> None:
    topics = list(json.loads(Path("data/dev_set.json").read_text()))
    Path("some.txt").write_text("\n".join(topics[:3]))
    Path("plan.toml").write_text(
        f"{PLAN}[tasks.nlps.groups.listed]\ntopics = {json.dumps(topics[:3])}\n"
        '[tasks.nlps.groups.in-file]\nfile = "some.txt"\n[tasks.nlps.groups.none]\nwhere = { level = "hard" }\n'
    )
    result = benched("bench", "plan.toml", "--json")
    assert result.code == 0 and "the group none contains no topic of nlps dev" in result.stderr
    assert newly_ranked(result.json) == {BM25: False, NEAR: False}
    all_topics, listed, in_file, none = result.json["columns"]
    assert listed["measures"] == in_file["measures"] and none["measures"] == []
    runs = [Path("plan") / cell["run"] for cell in all_topics["cells"]]
    compared = benched("compare", *runs, "--cutoff", 50, "--json").json
    for measure, expected in zip(listed["measures"], compared["measures"], strict=True):
        assert measure["topics"] == 3
        for figure, values in zip(measure["figures"], expected["per_topic"].values(), strict=True):
            assert figure == pytest.approx(sum(values[topic] for topic in topics[:3]) / 3, abs=1e-12)
        difference = measure["differences"][1]["mean"]
        assert difference == pytest.approx(measure["figures"][1] - measure["figures"][0], abs=1e-12)


def test_a_failed_cell_is_reported_and_others_are_not_affected(offline: Cli, plan: Path) -> None:
    plan.write_text(
        f'{PLAN}[tasks.gone]\ntask = "explanation-2019"\nsplits = "dev"\ndata = "nowhere"\n'
        '[tasks.deep]\ntask = "nlps"\nsplits = "dev"\ndata = "data"\n[tasks.deep.groups.all]\ntopics = ["x"]\n'
    )
    result = offline("bench", plan, "--json")
    assert result.code == 4, result.stderr
    assert "gone dev, bm25; gone dev, " in result.stderr and result.stderr.count("nowhere") == 1
    assert "deep dev, near has no figures: " in result.stderr
    assert "the official scorer would not score this file" in result.stderr
    assert "searchapp: 4 of 6 cells have no figures" in result.stderr and "Traceback" not in result.stderr
    assert newly_ranked(result.json)[BM25] and newly_ranked(result.json)["deep/dev/embedded/bm25"]
    assert result.json["columns"][0]["measures"] and not Path("plan/gone").exists()
    assert len(read_bench(Path("plan")).failed) == 4
    assert offline("bench", plan).code == 4  # the failure is kept, with its exit code

    plan.write_text(f"{PLAN}[tasks.deep]\ntask = 'nlps'\nsplits = 'dev'\ndata = 'data'\ncutoff = 9\n")
    assert offline("bench", plan).code == 0


def test_a_killed_process_fails_only_its_cell(
    offline: Cli, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_itself(*arguments: Any, **options: Any) -> Any:
        if arguments[2].tag == "searchapp-near":
            os.kill(os.getpid(), signal.SIGKILL)
        return make_run(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(bench, "make_run", kill_itself)
        result = offline("bench", plan)
    assert result.code == 1
    assert "nlps dev, near has no figures: a worker process was killed (SIGKILL)" in result.stderr
    assert newly_ranked(offline("bench", plan, "--json").json) == {BM25: False, NEAR: True}


def test_a_second_bench_in_a_folder_is_refused(benched: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from searchapp import files

    monkeypatch.setattr(files, "LEAVING_SECONDS", 0.2)
    with exclusive_folder(Path("plan"), BUSY % "plan"):
        refused = benched("bench", "plan.toml")
        assert refused.code == 1
        assert f"process {os.getpid()} is running this bench in " in refused.stderr
        assert benched("bench", "plan.toml", "--out", "other").code == 0
    assert benched("bench", "plan.toml").code == 0


def test_a_bench_that_was_killed_at_any_time_can_be_continued(offline: Cli, plan: Path) -> None:
    start = time.monotonic()
    assert offline("bench", plan, "--out", "complete", "--home", "other").code == 0
    duration = 1.5 * (time.monotonic() - start)
    expected = read_bench(Path("complete"))
    for number in range(KILLS):
        with Program(COMMAND, "bench", plan, "--out", "killed", "--overwrite", "--quiet") as program:
            time.sleep(STARTING_SECONDS + duration * number / KILLS)
            program.send_signal(signal.SIGKILL)
        for path in Path("killed").rglob("*"):
            if path.name == "run.json":
                assert offline("runs", "verify", path.parent).code == 0
    result = offline("bench", plan, "--out", "killed")
    assert result.code == 0, result.stderr
    continued = read_bench(Path("killed"))
    assert [column.measures for column in continued.columns] == [
        column.measures for column in expected.columns
    ]
    for cell in (BM25, NEAR):
        assert (
            Path("killed", cell, "run.trec").read_bytes() == Path("complete", cell, "run.trec").read_bytes()
        )
    assert not [path for path in Path("killed").rglob(".*") if path.name != ".lock"]


def test_tables_fit_the_width_and_need_no_colours(benched: Cli) -> None:
    result = read_bench(Path("plan"))
    difference = result.columns[0].measures[0].differences[1]
    assert difference is not None
    for width in (30, 80, 200):
        text = print_table(result, width=width, no_color=True)
        table = text.partition("\nfigures equal those of")[0]
        assert max(map(len, table.splitlines())) <= max(width, 42)
        assert f"{difference.mean:+.4f}" in text and "\x1b" not in text
    assert "\x1b[" in print_table(result, width=80, color_system="truecolor", force_terminal=True)
    piped = benched("bench", "plan.toml").stdout
    assert "Difference from bm25" in piped and "near" in piped and ("█" in piped or "░" in piped)


def print_table(result: BenchResult, **options: Any) -> str:
    buffer = io.StringIO()
    experiment_tables.bench_printout(result).print(HarmlessConsole(file=buffer, **options))
    return buffer.getvalue()


def test_other_layouts_have_the_same_figures(benched: Cli) -> None:
    result = read_bench(Path("plan"))
    measures = {measure.name: measure for measure in result.columns[0].measures}
    systems = [system.name for system in result.systems]
    rows = list(csv.DictReader(io.StringIO(benched("bench", "plan.toml", "--csv").stdout)))
    assert len(rows) == len(measures) * 2
    for row in rows:
        measure, system = measures[row["measure"]], systems.index(row["system"])
        assert float(row["value"]) == measure.figures[system]
        difference = measure.differences[system]
        assert row["difference"] == ("" if difference is None else repr(difference.mean))
    markdown = benched("bench", "plan.toml", "--markdown").stdout
    assert markdown.startswith("| task | measure | topics |") and "**Difference from bm25**" in markdown
    assert benched("bench", "plan.toml", "--markdown", "--json").code == 2
    latex = benched("bench", "plan.toml", "--latex").stdout
    first = result.columns[0].measures[0]
    assert latex.startswith("% figures equal those of") and latex.count(r"\begin{tabular}") == 2
    assert rf"nlps dev & {first.name} (official) & " in latex and f"{first.figures[1]:.4f}" + r" \\" in latex
    assert latex.rstrip().endswith(r"\bottomrule" + "\n" + r"\end{tabular}")


def test_names_are_escaped_in_latex(benched: Cli) -> None:
    result = read_bench(Path("plan"))
    (first, second) = result.systems
    renamed = replace(result, systems=(first, replace(second, name=r"a_b & 100% $x$ \input{/etc/passwd} █")))
    latex = experiment_tables.bench_printout(renamed).text_in(Layout.latex)
    assert r"a\_b \& 100\% \$x\$ \textbackslash{}input\{/etc/passwd\} $\bullet$" in latex


def test_a_plan_can_score_against_judgments(benched: Cli) -> None:
    log = Path("log.sqlite")
    run = Path("plan/nlps/dev/embedded/near")
    rankings = directory.read(run).run.rankings
    with JudgmentLog(log) as events:
        session = Session(events, "nlps", Author("ann"))
        for ranking in rankings[:4]:
            for index, document in enumerate(ranking.document_ids()[:6]):
                session.grade([SeenDocument(ranking.topic_id, document)], int(index % 3 == 0))
    Path("plan.toml").write_text(PLAN + 'judgments = "log.sqlite"\n')
    judged = benched("bench", "plan.toml", "--json")
    assert judged.code == 0, judged.stderr
    assert "0 of 2 cells ranked, 2 kept" in judged.stderr
    (column,) = read_bench(Path("plan")).columns
    figures = {measure.name: measure.figures[1] for measure in column.measures}
    expected = benched("evaluate", run, "--judgments", "--log", log, "--cutoff", 50, "--json").json
    assert expected["topics"] == 4
    for name, value in figures.items():
        assert value == {**expected["measures"], **expected["official"]["values"]}[name]
    assert "nlps is scored against judgments of 24 documents for 4 topics" in judged.json["notes"][0]
    # Later judgments count although no cell is ranked again.
    with JudgmentLog(log) as events:
        unseen = SeenDocument(rankings[4].topic_id, rankings[4].document_ids()[0])
        Session(events, "nlps", Author("ann")).grade([unseen], 1)
    assert benched("bench", "plan.toml", "--json").json["columns"][0]["measures"][0]["topics"] == 5


def test_invalid_judgments_in_a_plan_are_refused(benched: Cli) -> None:
    for line, message in (
        ("judgments = 3", "judgments must be true, false, or the path of a judgment log in quotes"),
        ('judgments = true\naggregation = "most"', "aggregation is 'most'"),
        ('judgments = true\nunjudged = "bounds"', "unjudged is 'bounds'"),
        ('annotators = "ann"', "add judgments = true"),
    ):
        Path("plan.toml").write_text(f"{PLAN}{line}\n")
        refused = benched("bench", "plan.toml")
        assert refused.code == 4 and message in refused.stderr
    Path("plan.toml").write_text(f"{PLAN}judgments = true\n")
    refused = benched("bench", "plan.toml")
    assert refused.code == 4 and "no judgments yet: create some" in refused.stderr


def test_a_result_can_be_read_and_a_damaged_one_is_refused(benched: Cli) -> None:
    result = read_bench(Path("plan"))
    assert [run.name for run in result.runs()] == ["bm25", "near"]
    assert result.columns[0].official is not None and result.columns[0].official.name == "MAP@50"
    with pytest.raises(UsageError, match="`searchapp bench` makes it"):
        read_bench(Path("data"))
    content = json.loads(Path("plan", FILE).read_text())
    for damaged in (
        {**content, "format": 1},
        {**content, "baseline": 7},
        {**content, "columns": [{**content["columns"][0], "cells": []}]},
        {**content, "systems": [{"name": "x"}]},
        {key: value for key, value in content.items() if key != "notes"},
    ):
        Path("plan", FILE).write_text(json.dumps(damaged))
        with pytest.raises(DataError, match="run the bench again"):
            read_bench(Path("plan"))


@pytest.mark.parametrize(
    ("change", "where", "message"),
    [
        ('basline = "x"\n', "line 1", "unknown key: the file has 'basline' (did you mean baseline?)"),
        ('engines = ["elastic"]\n', "line 1", "unknown engine: engines contains 'elastic'"),
        ("[tasks.nlps.groups.g]\n", "line 12", "the group g needs exactly one of topics, file and where"),
        ('[tasks.nlps.groups.g]\nfile = "none.txt"\n', "line 13", "unreadable file"),
        ('[recipes.wide]\nset = { depth = 3 }\nrecipe = "bm25"\n', "line 12", "has no parameter 'depth'"),
        ("[recipes.wide]\n", "line 12", "restrict the recipe to its tasks with tasks = [...]"),
        ('[tasks.nlp]\nsplits = "dev"\n', "line 12", "unknown task 'nlp' (did you mean nlps?)"),
        ('[tasks.two]\ntask = "nlps"\nsplits = "def"\n', "line 14", "nlps has no split 'def' (did you mean dev?)"),
        ('[tasks."a b"]\ntask = "nlps"\nsplits = "dev"\n', "line 12", "'a b' is not a valid name of a task"),
        ('[tasks.two]\ntask = "nlps"\nsplits = "dev"\nmeasures = "nDCX"\n', "line 15", "there is no measure 'nDCX'"),
        ('[tasks.two]\ntask = "nlps"\n', "line 12", "[tasks.two] needs splits"),
    ],
)  # fmt: skip
def test_errors_of_the_plan_are_reported_with_their_line_before_the_bench_starts(
    offline: Cli, plan: Path, change: str, where: str, message: str
) -> None:
    plan.write_text(change + PLAN if not change.startswith("[") else PLAN + change)
    refused = offline("bench", plan)
    assert refused.code == 4, refused.stderr
    assert f"plan.toml: {where}: " in refused.stderr and message in refused.stderr
    assert not Path("plan").exists()


def test_the_example_can_be_run(offline: Cli, plan: Path) -> None:
    example = offline("bench", "--example").stdout
    plan.write_text(example)
    for task in ("nlps", "explanation-2021"):
        assert offline("index", task, "--data", SAMPLES / task).code == 0
    plan.write_text(example.replace("[tasks.nlps]", "[tasks.nlps]\ncutoff = 50"))
    result = offline("bench", plan, "--json")
    assert result.code == 0, result.stderr
    assert [len([cell for cell in column["cells"] if cell]) for column in result.json["columns"]] == [3, 2]
    assert offline("bench").code == 2


@pytest.mark.elasticsearch
def test_both_engines_have_the_same_figures(server: Cli, plan: Path) -> None:
    plan.write_text('engines = ["embedded", "elasticsearch"]' + PLAN)
    result = server("bench", plan, "--json")
    assert result.code == 0, result.stderr
    assert [system["name"] for system in result.json["systems"]] == [
        f"{recipe} ({engine})" for recipe in ("bm25", "near") for engine in ("embedded", "elasticsearch")
    ]
    for measure in result.json["columns"][0]["measures"]:
        bm25, bm25_of_server, near, near_of_server = measure["figures"]
        assert bm25 == bm25_of_server and near == near_of_server and measure["differences"][1]["mean"] == 0
    cells = newly_ranked(result.json)
    assert newly_ranked(server("bench", plan, "--json").json) == dict.fromkeys(cells, False)


def test_an_unreachable_server_fails_only_its_cells(offline: Cli, plan: Path) -> None:
    plan.write_text('engines = ["embedded", "elasticsearch"]' + PLAN)
    result = offline("bench", plan, "--url", "http://127.0.0.1:1", "--json")
    assert result.code == 3 and "2 of 4 cells have no figures" in result.stderr
    assert newly_ranked(result.json)[BM25] and result.json["columns"][0]["measures"][0]["figures"][1] is None
