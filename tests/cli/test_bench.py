"""`searchapp bench`, on the samples: what is kept and what is ranked anew, what fails, and what others see of it."""

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
"""What a program takes that is killed before it is at work."""

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
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder `here` beside it, in which the plan was carried out."""
    folder = tmp_path_factory.mktemp("bench")
    here, home = folder / "here", folder / "here" / "home"
    shutil.copytree(SAMPLES / "nlps", here / "data")
    (here / "plan.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        result = run_command("bench", "plan.toml", "--home", home, environment=EMBEDDED)
    assert result.code == 0, result.stderr
    return Path(shutil.copytree(here, folder / "copy"))


@pytest.fixture
def benched(offline: Cli, carried_out: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The plan carried out, in the working folder, which is the same for all: runs go by where their data lie."""
    here = carried_out.with_name("here")
    shutil.rmtree(here)
    shutil.copytree(carried_out, here)
    monkeypatch.chdir(here)
    monkeypatch.setenv("SEARCHAPP_HOME", str(here / "home"))
    return offline


def made(result: Any) -> dict[str, bool]:
    """Which cells were ranked, by their runs."""
    return {
        cell["run"]: cell["ranked"]
        for column in result["columns"]
        if column["group"] is None
        for cell in column["cells"]
        if cell is not None
    }


BM25, NEAR = "nlps/dev/embedded/bm25", "nlps/dev/embedded/near"


def test_figures_are_those_of_evaluate_and_tests_those_of_compare(benched: Cli) -> None:
    found = benched("bench", "plan.toml", "--json").json
    assert [system["name"] for system in found["systems"]] == ["bm25", "near"] and found["baseline"] == 0
    (column,) = found["columns"]
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
        nothing, difference = measure["differences"]
        assert nothing is None and difference["corrected"] == pair["corrected"]
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


def test_what_has_not_changed_is_kept_and_only_that(benched: Cli) -> None:
    def again() -> dict[str, bool]:
        return made(benched("bench", "plan.toml", "--json").json)

    first = Path("plan", FILE).read_bytes()
    assert again() == {BM25: False, NEAR: False}
    kept, before = (json.loads(text) for text in (Path("plan", FILE).read_bytes(), first))
    assert kept["columns"][0]["measures"] == before["columns"][0]["measures"]

    Path("plan.toml").write_text(PLAN.replace("k = 3", "k = 4"))
    assert again() == {BM25: False, NEAR: True}

    with Path("plan", BM25, "run.trec").open("a") as file:
        file.write("altered\n")
    assert again() == {BM25: True, NEAR: False}

    shutil.rmtree(Path("plan", NEAR))
    assert again() == {BM25: False, NEAR: True}

    shutil.rmtree(Path("home", "indexes"))  # nothing needs it as long as the runs are there
    assert again() == {BM25: False, NEAR: False} and benched("search", "nlps", "ring").code == 0

    gold = json.loads(Path("data/dev_set.json").read_text())
    topic = next(iter(gold))
    gold[topic]["premises"] = gold[topic]["premises"][:1]
    Path("data/dev_set.json").write_text(json.dumps(gold))
    assert again() == {BM25: True, NEAR: True}

    assert made(benched("bench", "plan.toml", "--overwrite", "--json").json) == {BM25: True, NEAR: True}


def test_a_change_of_a_task_file_that_no_run_was_made_from_ranks_nothing_again(
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
        return list(made(result.json).values())

    assert again() == [True, True]
    task.write_text(task.read_text() + "\n[recipes.more]\ntemplate = 'bm25'\n")
    assert again() == [False, False]
    task.write_text(task.read_text().replace("half = 0.5", "half = 0.6"))
    assert again() == [False, True]
    template = task.with_name("half.json")
    template.write_text(template.read_text().replace("50%", "40%"))
    assert again() == [False, True]
    # Figures follow from the measure, which no run does.
    task.write_text(task.read_text().replace('measure = "nDCG@10"', 'measure = "AP"'))
    output = offline("bench", "plan.toml", "--json").json
    assert list(made(output).values()) == [False, False]
    assert output["columns"][0]["measures"][0]["name"] == "AP"


def test_figures_are_computed_again_when_the_runs_are_kept(benched: Cli) -> None:
    Path("plan.toml").write_text(f'measures = ["RR"]{PLAN}')
    found = benched("bench", "plan.toml", "--json").json
    assert made(found) == {BM25: False, NEAR: False}
    assert [measure["name"] for measure in found["columns"][0]["measures"]] == ["MAP@50", "RR"]


def test_groups_of_topics_have_columns_of_their_own(benched: Cli) -> None:
    topics = list(json.loads(Path("data/dev_set.json").read_text()))
    Path("some.txt").write_text("\n".join(topics[:3]))
    Path("plan.toml").write_text(
        f"{PLAN}[tasks.nlps.groups.listed]\ntopics = {json.dumps(topics[:3])}\n"
        '[tasks.nlps.groups.in-file]\nfile = "some.txt"\n[tasks.nlps.groups.none]\nwhere = { level = "hard" }\n'
    )
    done = benched("bench", "plan.toml", "--json")
    assert done.code == 0 and "the group none contains no topic of nlps dev" in done.stderr
    found = done.json
    assert made(found) == {BM25: False, NEAR: False}
    whole, listed, in_file, none = found["columns"]
    assert listed["measures"] == in_file["measures"] and none["measures"] == []
    runs = [Path("plan") / cell["run"] for cell in whole["cells"]]
    compared = benched("compare", *runs, "--cutoff", 50, "--json").json
    for measure, expected in zip(listed["measures"], compared["measures"], strict=True):
        assert measure["topics"] == 3
        for figure, values in zip(measure["figures"], expected["per_topic"].values(), strict=True):
            assert figure == pytest.approx(sum(values[topic] for topic in topics[:3]) / 3, abs=1e-12)
        difference = measure["differences"][1]["mean"]
        assert difference == pytest.approx(measure["figures"][1] - measure["figures"][0], abs=1e-12)


def test_a_cell_that_fails_is_reported_and_the_others_go_on(offline: Cli, plan: Path) -> None:
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
    assert made(result.json)[BM25] and made(result.json)["deep/dev/embedded/bm25"]
    assert result.json["columns"][0]["measures"] and not Path("plan/gone").exists()
    assert len(read_bench(Path("plan")).failed) == 4
    assert offline("bench", plan).code == 4  # the failure is kept, with its exit code

    plan.write_text(f"{PLAN}[tasks.deep]\ntask = 'nlps'\nsplits = 'dev'\ndata = 'data'\ncutoff = 9\n")
    assert offline("bench", plan).code == 0


def test_a_process_that_is_killed_fails_its_cell_alone(
    offline: Cli, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*arguments: Any, **options: Any) -> Any:
        if arguments[2].tag == "searchapp-near":
            os.kill(os.getpid(), signal.SIGKILL)
        return make_run(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(bench, "make_run", ended)
        result = offline("bench", plan)
    assert result.code == 1
    assert "nlps dev, near has no figures: a worker process was killed (SIGKILL)" in result.stderr
    assert made(offline("bench", plan, "--json").json) == {BM25: False, NEAR: True}


def test_two_at_once_on_a_folder_are_refused(benched: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from searchapp import files

    monkeypatch.setattr(files, "LEAVING_SECONDS", 0.2)
    with exclusive_folder(Path("plan"), BUSY % "plan"):
        refused = benched("bench", "plan.toml")
        assert refused.code == 1
        assert f"process {os.getpid()} is running this bench in " in refused.stderr
        assert benched("bench", "plan.toml", "--out", "other").code == 0
    assert benched("bench", "plan.toml").code == 0


def test_a_bench_that_was_killed_at_any_time_goes_on(offline: Cli, plan: Path) -> None:
    begun = time.monotonic()
    assert offline("bench", plan, "--out", "whole", "--home", "there").code == 0
    longest = 1.5 * (time.monotonic() - begun)
    expected = read_bench(Path("whole"))
    for number in range(KILLS):
        with Program(COMMAND, "bench", plan, "--out", "killed", "--overwrite", "--quiet") as program:
            time.sleep(STARTING_SECONDS + longest * number / KILLS)
            program.send_signal(signal.SIGKILL)
        for path in Path("killed").rglob("*"):
            if path.name == "run.json":
                assert offline("runs", "verify", path.parent).code == 0
    result = offline("bench", plan, "--out", "killed")
    assert result.code == 0, result.stderr
    found = read_bench(Path("killed"))
    assert [column.measures for column in found.columns] == [column.measures for column in expected.columns]
    for cell in (BM25, NEAR):
        assert Path("killed", cell, "run.trec").read_bytes() == Path("whole", cell, "run.trec").read_bytes()
    assert not [path for path in Path("killed").rglob(".*") if path.name != ".lock"]


def test_tables_fit_and_say_the_same_without_colours(benched: Cli) -> None:
    found = read_bench(Path("plan"))
    difference = found.columns[0].measures[0].differences[1]
    assert difference is not None
    for width in (30, 80, 200):
        text = drawn(found, width=width, no_color=True)
        table = text.partition("\nfigures equal those of")[0]
        assert max(map(len, table.splitlines())) <= max(width, 42)
        assert f"{difference.mean:+.4f}" in text and "\x1b" not in text
    assert "\x1b[" in drawn(found, width=80, color_system="truecolor", force_terminal=True)
    piped = benched("bench", "plan.toml").stdout
    assert "Difference from bm25" in piped and "near" in piped and ("█" in piped or "░" in piped)


def drawn(found: BenchResult, **options: Any) -> str:
    buffer = io.StringIO()
    experiment_tables.bench_printout(found).print(HarmlessConsole(file=buffer, **options))
    return buffer.getvalue()


def test_other_layouts_have_the_same_figures(benched: Cli) -> None:
    found = read_bench(Path("plan"))
    rows = list(csv.DictReader(io.StringIO(benched("bench", "plan.toml", "--csv").stdout)))
    assert len(rows) == len(found.columns[0].measures) * 2
    for row in rows:
        measure = next(measure for measure in found.columns[0].measures if measure.name == row["measure"])
        place = [system.name for system in found.systems].index(row["system"])
        assert float(row["value"]) == measure.figures[place]
        difference = measure.differences[place]
        assert row["difference"] == ("" if difference is None else repr(difference.mean))
    marked = benched("bench", "plan.toml", "--markdown").stdout
    assert marked.startswith("| task | measure | topics |") and "**Difference from bm25**" in marked
    assert benched("bench", "plan.toml", "--markdown", "--json").code == 2
    latex = benched("bench", "plan.toml", "--latex").stdout
    figure = found.columns[0].measures[0].figures[1]
    assert latex.startswith("% figures equal those of") and latex.count(r"\begin{tabular}") == 2
    assert rf"nlps dev & {found.columns[0].measures[0].name} (official) & " in latex
    assert f"{figure:.4f}" + r" \\" in latex and latex.rstrip().endswith(
        r"\bottomrule" + "\n" + r"\end{tabular}"
    )


def test_names_do_nothing_in_latex(benched: Cli) -> None:
    found = read_bench(Path("plan"))
    (first, second) = found.systems
    named = replace(found, systems=(first, replace(second, name=r"a_b & 100% $x$ \input{/etc/passwd} █")))
    latex = experiment_tables.bench_printout(named).text_in(Layout.latex)
    assert r"a\_b \& 100\% \$x\$ \textbackslash{}input\{/etc/passwd\} $\bullet$" in latex


def test_people_s_judgments_are_the_gold_where_the_file_says_so(benched: Cli) -> None:
    log = Path("log.sqlite")
    run = Path("plan/nlps/dev/embedded/near")
    ranked = directory.read(run).run.rankings
    with JudgmentLog(log) as opened:
        session = Session(opened, "nlps", Author("ann"))
        for ranking in ranked[:4]:
            for place, document in enumerate(ranking.document_ids()[:6]):
                session.grade([SeenDocument(ranking.topic_id, document)], int(place % 3 == 0))
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
    # What is judged since counts, without a cell being ranked anew.
    with JudgmentLog(log) as opened:
        seen = SeenDocument(ranked[4].topic_id, ranked[4].document_ids()[0])
        Session(opened, "nlps", Author("ann")).grade([seen], 1)
    assert benched("bench", "plan.toml", "--json").json["columns"][0]["measures"][0]["topics"] == 5


def test_judgments_that_are_no_gold_are_a_mistake(benched: Cli) -> None:
    for line, said in (
        ("judgments = 3", "judgments must be true, false, or the path of a judgment log in quotes"),
        ('judgments = true\naggregation = "most"', "aggregation is 'most'"),
        ('judgments = true\nunjudged = "bounds"', "unjudged is 'bounds'"),
        ('annotators = "ann"', "add judgments = true"),
    ):
        Path("plan.toml").write_text(f"{PLAN}{line}\n")
        refused = benched("bench", "plan.toml")
        assert refused.code == 4 and said in refused.stderr
    Path("plan.toml").write_text(f"{PLAN}judgments = true\n")
    refused = benched("bench", "plan.toml")
    assert refused.code == 4 and "no judgments yet: create some" in refused.stderr


def test_the_result_is_read_back_as_it_was_written(benched: Cli) -> None:
    found = read_bench(Path("plan"))
    assert [run.name for run in found.runs()] == ["bm25", "near"]
    assert found.columns[0].official is not None and found.columns[0].official.name == "MAP@50"
    with pytest.raises(UsageError, match="`searchapp bench` makes it"):
        read_bench(Path("data"))
    described = json.loads(Path("plan", FILE).read_text())
    for spoilt in (
        {**described, "format": 1},
        {**described, "baseline": 7},
        {**described, "columns": [{**described["columns"][0], "cells": []}]},
        {**described, "systems": [{"name": "x"}]},
        {key: value for key, value in described.items() if key != "notes"},
    ):
        Path("plan", FILE).write_text(json.dumps(spoilt))
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
def test_what_is_wrong_with_the_file_is_reported_with_its_line_before_anything_is_done(
    offline: Cli, plan: Path, change: str, where: str, message: str
) -> None:
    plan.write_text(change + PLAN if not change.startswith("[") else PLAN + change)
    refused = offline("bench", plan)
    assert refused.code == 4, refused.stderr
    assert f"plan.toml: {where}: " in refused.stderr and message in refused.stderr
    assert not Path("plan").exists()


def test_the_example_can_be_run(offline: Cli, plan: Path) -> None:
    printed = offline("bench", "--example").stdout
    plan.write_text(printed)
    for task in ("nlps", "explanation-2021"):
        assert offline("index", task, "--data", SAMPLES / task).code == 0
    plan.write_text(printed.replace("[tasks.nlps]", "[tasks.nlps]\ncutoff = 50"))
    result = offline("bench", plan, "--json")
    assert result.code == 0, result.stderr
    assert [len([cell for cell in column["cells"] if cell]) for column in result.json["columns"]] == [3, 2]
    assert offline("bench").code == 2


@pytest.mark.elasticsearch
def test_both_engines_have_the_same_figures(server: Cli, plan: Path) -> None:
    plan.write_text('engines = ["embedded", "elasticsearch"]' + PLAN)
    result = server("bench", plan, "--json")
    assert result.code == 0, result.stderr
    found = result.json
    assert [system["name"] for system in found["systems"]] == [
        f"{recipe} ({engine})" for recipe in ("bm25", "near") for engine in ("embedded", "elasticsearch")
    ]
    for measure in found["columns"][0]["measures"]:
        first, second, third, fourth = measure["figures"]
        assert first == second and third == fourth and measure["differences"][1]["mean"] == 0
    assert made(server("bench", plan, "--json").json) == dict.fromkeys(made(found), False)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1"])
def test_an_engine_that_is_not_there_fails_its_cells_alone(offline: Cli, plan: Path, address: str) -> None:
    plan.write_text('engines = ["embedded", "elasticsearch"]' + PLAN)
    result = offline("bench", plan, "--url", address, "--json")
    assert result.code == 3 and "2 of 4 cells have no figures" in result.stderr
    assert made(result.json)[BM25] and result.json["columns"][0]["measures"][0]["figures"][1] is None
