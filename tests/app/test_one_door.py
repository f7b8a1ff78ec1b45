"""A figure is the same wherever it is shown: all come through `app.evaluate`, and are equal to the last bit."""

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
DOOR = PACKAGE / "app" / "evaluate.py"


ASKING = re.compile(r"searchapp\.evaluation\.measures|ir_measures|pytrec_eval|\.score\b|measures\.measure")
"""A module without any of these asks for no figures, see `asks_for_figures`."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Those above the scorers."""
    for folder in ("app", "cli", "tui", "serving"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            yield path, ast.parse(source if ASKING.search(source) else "")


def asks_for_figures(module: ast.Module) -> Iterator[str]:
    """Where a module asks an official scorer, a breakdown apart, or ir-measures."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {one.name for one in node.names}
            if node.module == "searchapp.evaluation.measures" and "measure" in names:
                yield "imports measure"
            if node.module.split(".")[0] in ("ir_measures", "pytrec_eval"):
                yield f"imports from {node.module}"
        if isinstance(node, ast.Attribute) and node.attr == "score":
            of = ast.unparse(node.value)
            if "scorer" in of.casefold() or "official" in of.casefold():
                yield f"calls {of}.score"
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "measure"
            and ast.unparse(node) == "measures.measure"
        ):
            yield "calls measures.measure"


def data_of(task: str, folder: Path) -> Path:
    """The sample of a task; one of the debates is shorter than their scorer takes."""
    if task != "checkthat":
        return SAMPLES / task
    data = shutil.copytree(SAMPLES / task, folder / "data")
    debate = data / "training" / "harbour_mayor.tsv"
    debate.write_text("".join(debate.read_text().splitlines(keepends=True)[:44]))
    return data


def test_nothing_but_the_door_asks_for_figures() -> None:
    found = {path: list(asks_for_figures(module)) for path, module in modules()}
    assert set(found.pop(DOOR)) == {"calls scorer.score", "calls measures.measure"}
    assert {path: asked for path, asked in found.items() if asked} == {}


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
    found = read_bench(Path("plan"))
    runs = found.runs()
    evaluated = offline("evaluate", *runs, *options, "--by", "all", "--per-topic", "--json").json["runs"]
    compared = offline("compare", *runs, *options, "--by", "all", "--permutations", 100, "--json").json
    assert (
        sum(len(one["topics"]) for one in compared["difficulty"]["groups"])
        == compared["measures"][0]["topics"]
    )
    reported = offline("report", *runs, *options, "--out", "report.html", "--permutations", 100, "--json")
    assert reported.code == 0, reported.stderr
    (column,) = found.columns
    assert column.official is not None
    for place, run in enumerate(evaluated):
        official = run["official"]
        known = {**run["measures"], **official["values"]}
        assert column.official.figures[place] == official["value"] == compared["runs"][place]["official"]
        for measure in column.measures:
            assert measure.figures[place] == known[measure.name]
        for one in reported.json["figures"]:
            assert list(one["values"].values())[place] == known[one["name"]]
        for one in compared["measures"]:
            assert one["complete"]
            assert list(one["means"].values())[place] == known[one["measure"]]
            for pair in one["pairs"]:
                assert pair["tests"][("first", "second")[place]] == known[one["measure"]]
            if one["measure"] in run["per_topic"]:
                values = list(one["per_topic"].values())[place]
                assert list(values.values()) == list(run["per_topic"][one["measure"]].values())
        for name, breakdown in compared["breakdowns"].items():
            rows = {row["group"]: row for row in run["breakdowns"][name]["rows"]}
            for row in breakdown["rows"]:
                expected = rows.get(row["group"], {})
                assert all(
                    list(held.values())[place] == expected.get(figure)
                    for figure, held in row["values"].items()
                )
        if options == ["--lenient"]:
            screen_has_the_same(offline, task, runs[place], official, tmp_path)


def screen_has_the_same(
    offline: Cli, task: str, run: Path, official: dict[str, object], folder: Path
) -> None:
    """The screen of topics, by what it prints, and the home screen, where they score without options as well."""
    plain = offline("evaluate", run, "--json")
    shown = offline("topics", task, "--run", run, "--json").json
    if task == "checkthat":
        assert plain.code == 4 and "44 lines, too few for P@50" in shown["fallback_reason"]
        per_topic = official["per_topic"]
        assert isinstance(per_topic, dict) and shown["measure"] == "AP"
        assert [one["value"] for one in shown["topics"]] == pytest.approx(
            [one["AP"] for one in per_topic.values()], rel=0, abs=1e-12
        )
        return
    if plain.code or plain.json["official"]["value"] != official["value"]:
        return
    if shown["fallback_reason"] is None:
        per_topic = official["per_topic"]
        assert isinstance(per_topic, dict)
        values = [one["value"] for one in shown["topics"]]
        assert len(values) == len(per_topic)
        for value, given in zip(values, per_topic.values(), strict=True):
            assert value == given or (isinstance(given, dict) and value in (None, *given.values()))
    known = KnownRun(run.resolve(), read_manifest(run))
    figures = FigureCache(folder / "home")
    figures.evaluated(known)
    kept = FigureCache(folder / "home").known(known)
    assert kept is not None and kept.value == official["value"]
