"""Every command and screen shows the same figures, since all of them are computed by `app.evaluate`."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import searchapp
from searchapp.app.experiments.bench_result import read_bench
from searchapp.app.runs import FigureCache, KnownRun
from searchapp.runs.directory import read_manifest
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline

SPLITS = {
    "nlps": "dev",
    "explanation-2019": "dev",
    "explanation-2021": "dev",
    "checkthat": "training",
    "smart-types-dbpedia": "fold0",
    "smart-types-wikidata": "fold0",
    "smart-relations-dbpedia": "fold0",
    "smart-relations-wikidata": "fold0",
}
PACKAGE = Path(searchapp.__file__).parent
EVALUATE = PACKAGE / "app" / "evaluate.py"


SCORING = re.compile(r"searchapp\.evaluation\.measures|ir_measures|pytrec_eval|\.score\b|measures\.measure")
"""Matches the source of every module for which `scoring_calls` yields anything."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Parse the modules above the scorers, without those in which `SCORING` matches nothing."""
    for folder in ("app", "cli", "tui", "serving"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            yield path, ast.parse(source if SCORING.search(source) else "")


def scoring_calls(module: ast.Module) -> Iterator[str]:
    """Find where a module calls an official scorer or ir-measures; breakdowns may be computed anywhere."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            if node.module == "searchapp.evaluation.measures" and "measure" in names:
                yield "imports measure"
            if node.module.split(".")[0] in ("ir_measures", "pytrec_eval"):
                yield f"imports from {node.module}"
        if isinstance(node, ast.Attribute) and node.attr == "score":
            scorer = ast.unparse(node.value)
            if "scorer" in scorer.casefold() or "official" in scorer.casefold():
                yield f"calls {scorer}.score"
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "measure"
            and ast.unparse(node) == "measures.measure"
        ):
            yield "calls measures.measure"


def data_of(task: str, folder: Path) -> Path:
    """Return the sample of a task; one debate of checkthat is shortened below the minimum of its scorer."""
    if task != "checkthat":
        return SAMPLES / task
    data = shutil.copytree(SAMPLES / task, folder / "data")
    debate = data / "training" / "harbour_mayor.tsv"
    debate.write_text("".join(debate.read_text().splitlines(keepends=True)[:44]))
    return data


def test_only_evaluate_computes_figures() -> None:
    calls = {path: set(scoring_calls(module)) for path, module in modules()}
    assert {path: found for path, found in calls.items() if found} == {
        EVALUATE: {"calls scorer.score", "calls measures.measure"}
    }


@pytest.mark.parametrize("task", SPLITS)
def test_every_command_and_screen_has_the_same_figures_to_the_last_bit(
    task: str, offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / "home"))
    split = SPLITS[task]
    # The screens have no options for the scorer; nlps has too few premises in its sample for the official cut-off.
    options = ["--lenient", *(["--cutoff", "50"] if task == "nlps" else [])]
    Path("plan.toml").write_text(
        f"permutations = 100\n[recipes.bm25]\n[recipes.neighbours]\n[tasks.{task}]\nsplits = '{split}'\n"
        f"data = '{data_of(task, tmp_path)}'\nlenient = true\n{'cutoff = 50' if task == 'nlps' else ''}\n"
    )
    benched = offline("bench", "plan.toml")
    assert benched.code == 0, benched.stderr
    bench = read_bench(Path("plan"))
    runs = bench.runs()
    evaluated = offline("evaluate", *runs, *options, "--by", "all", "--per-topic", "--json").json["runs"]
    compared = offline("compare", *runs, *options, "--by", "all", "--permutations", 100, "--json").json
    assert (
        sum(len(group["topics"]) for group in compared["difficulty"]["groups"])
        == compared["measures"][0]["topics"]
    )
    reported = offline("report", *runs, *options, "--out", "report.html", "--permutations", 100, "--json")
    assert reported.code == 0, reported.stderr
    (column,) = bench.columns
    assert column.official is not None
    for number, run in enumerate(evaluated):
        official = run["official"]
        known = {**run["measures"], **official["values"]}
        assert column.official.figures[number] == official["value"] == compared["runs"][number]["official"]
        for measure in column.measures:
            assert measure.figures[number] == known[measure.name]
        for figure in reported.json["figures"]:
            assert list(figure["values"].values())[number] == known[figure["name"]]
        for comparison in compared["measures"]:
            name = comparison["measure"]
            assert comparison["complete"]
            assert list(comparison["means"].values())[number] == known[name]
            for pair in comparison["pairs"]:
                assert pair["tests"][("first", "second")[number]] == known[name]
            if name in run["per_topic"]:
                per_topic = list(comparison["per_topic"].values())[number]
                assert list(per_topic.values()) == list(run["per_topic"][name].values())
        for name, breakdown in compared["breakdowns"].items():
            rows = {row["group"]: row for row in run["breakdowns"][name]["rows"]}
            for row in breakdown["rows"]:
                expected = rows.get(row["group"], {})
                assert all(
                    list(values.values())[number] == expected.get(figure)
                    for figure, values in row["values"].items()
                )
        if options == ["--lenient"]:
            check_screens(offline, task, runs[number], official, tmp_path)


def check_screens(offline: Cli, task: str, run: Path, official: dict[str, object], folder: Path) -> None:
    """Check the figures of the topic screen, in the output of `topics`, and of the home screen.

    The screens have no options for the scorer, so that only figures of runs that need none are compared.
    """
    plain = offline("evaluate", run, "--json")
    screen = offline("topics", task, "--run", run, "--json").json
    if task == "checkthat":
        assert plain.code == 4 and "44 lines, too few for P@50" in screen["fallback_reason"]
        per_topic = official["per_topic"]
        assert isinstance(per_topic, dict) and screen["measure"] == "AP"
        assert [topic["value"] for topic in screen["topics"]] == pytest.approx(
            [figures["AP"] for figures in per_topic.values()], rel=0, abs=1e-12
        )
        return
    if plain.code or plain.json["official"]["value"] != official["value"]:
        return
    if screen["fallback_reason"] is None:
        per_topic = official["per_topic"]
        assert isinstance(per_topic, dict)
        values = [topic["value"] for topic in screen["topics"]]
        assert len(values) == len(per_topic)
        for value, figure in zip(values, per_topic.values(), strict=True):
            assert value == figure or (isinstance(figure, dict) and value in (None, *figure.values()))
    known = KnownRun(run.resolve(), read_manifest(run))
    FigureCache(folder / "home").evaluated(known)
    cached = FigureCache(folder / "home").known(known)
    assert cached is not None and cached.value == official["value"]
