"""`searchapp tune`: its results, files and messages, and how it continues after an interruption."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchapp.app.experiments import tuning_space
from searchapp.app.experiments.tuning import TRIALS_FILE
from searchapp.files import exclusive_folder
from tests import profile
from tests.cli.conftest import SAMPLES, Cli, Result

SPACE = ("--param", "k=1,3,5", "--param", "direct=0.1:2:log", "--param", "k1=0.6:1.6")
OPTIONS = ("nlps", "--recipe", "neighbours", "--cutoff", 30, "--folds", 3)

Tune = Callable[..., Result]


@pytest.fixture
def tune(offline: Cli, indexed_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Tunes the recipe neighbours on the sample of nlps, in a new working folder."""
    shutil.copytree(indexed_home, tmp_path / "home")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Result:
        return offline("tune", *OPTIONS, *arguments)

    return run


def read_log(folder: Path) -> bytes:
    return (folder / TRIALS_FILE).read_bytes()


def test_the_best_recipe_is_written_and_has_the_tuned_figures(
    tune: Tune, offline: Cli, tmp_path: Path
) -> None:
    tuned = tune(*SPACE, "--trials", 6, "--out", "best.toml", "--json")
    assert tuned.code == 0, tuned.stderr
    output = tuned.json
    assert [Path(path).name for path in output["out"]] == ["best.toml", "best.mapping.json"]
    figures = [trial["value"] for trial in output["trials"]]
    assert figures == sorted(figures, reverse=True) and len(figures) == 7
    best, baseline = output["best"], output["baseline_trial"]
    assert best["value"] > baseline["value"]
    assert best["set"].keys() == {"k", "direct", "mapping.k1"}
    assert best["tests"]["mean"] == pytest.approx(best["value"] - baseline["value"])
    assert baseline["value"] <= output["cross_validated"] <= best["value"]
    low, high = output["interval"]
    assert low < best["value"] < high
    assert offline("index", "best.toml").code == 0
    assert offline("rank", "best.toml", "--split", "dev", "--out", "run").code == 0
    manifest = json.loads(Path("run/run.json").read_text())
    assert manifest["recipe"]["tuned"]["splits"] == ["train"] and manifest["variant"].endswith("best.toml")
    (votes,) = (signal for signal in manifest["recipe"]["signals"] if signal["signal"] == "neighbours")
    assert votes["k"] == best["set"]["k"]
    # Tuning changed only the scoring of the old index; a new index with the written mapping has the same figures.
    again = offline("tune", "best.toml", *OPTIONS[3:], "--param", "k=2,4", "--trials", 1, "--json")
    assert again.json["baseline_trial"]["value"] == best["value"], again.stderr
    assert "tuned" not in offline("evaluate", "run", "--cutoff", 30).stderr


def test_the_log_does_not_depend_on_workers_and_interruptions(tune: Tune, tmp_path: Path) -> None:
    assert tune(*SPACE, "--trials", 5, "--out", "one.toml", "--trials-dir", "one").code == 0
    assert tune(*SPACE, "--trials", 5, "--out", "two.toml", "--trials-dir", "two", "--workers", 2).code == 0
    lines = read_log(tmp_path / "one").splitlines(keepends=True)
    assert len(lines) == 7 and read_log(tmp_path / "two") == b"".join(lines)
    cuts = ((1, b""), (3, b"{"), (4, lines[4][:-1]), (6, lines[6][:-30] + b"\n"))
    for count, torn in cuts if profile.FULL else cuts[1:3]:
        Path("cut").mkdir(exist_ok=True)
        (tmp_path / "cut" / TRIALS_FILE).write_bytes(b"".join(lines[:count]) + torn)
        assert (
            tune(*SPACE, "--trials", 5, "--out", "cut.toml", "--trials-dir", "cut", "--overwrite").code == 0
        )
        assert read_log(tmp_path / "cut") == b"".join(lines)
    for name in ("one", "two", "cut"):
        text = Path(f"{name}.toml").read_text().replace(f"{name}.", "x.")
        assert text == Path("one.toml").read_text().replace("one.", "x.")
        assert Path(f"{name}.mapping.json").read_bytes() == Path("one.mapping.json").read_bytes()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_tuning_that_was_killed_can_be_continued(tune: Tune, tmp_path: Path, name: str) -> None:
    options = [*SPACE, "--trials", 6, "--out", "killed.toml"]
    command = [sys.executable, "-m", "searchapp", "tune", *OPTIONS, *options, "--trials-dir", "killed"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "killed" / TRIALS_FILE).exists() or read_log(tmp_path / "killed").count(b"\n") < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(getattr(signal, name))
    _, stderr = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in stderr and not Path("killed.toml").exists()
    if name == "SIGINT":
        assert process.returncode == 130 and "run the same command again to continue" in stderr
    assert tune(*options, "--trials-dir", "killed").code == 0
    assert tune(*options[:-1], "complete.toml", "--trials-dir", "complete").code == 0
    assert read_log(tmp_path / "killed") == read_log(tmp_path / "complete")
    assert Path("killed.mapping.json").read_bytes() == Path("complete.mapping.json").read_bytes()


def test_logs_of_running_and_other_tunings_and_damaged_logs_are_refused(tune: Tune, tmp_path: Path) -> None:
    with exclusive_folder(tmp_path / "log", ""):
        refused = tune(*SPACE, "--trials", 2, "--trials-dir", "log")
    assert refused.code == 1 and f"process {os.getpid()} is running this tuning in log" in refused.stderr
    assert tune(*SPACE, "--trials", 2, "--trials-dir", "log").code == 0
    result = tune(*SPACE, "--trials", 2, "--trials-dir", "log", "--seed", 1)
    assert result.code == 4 and "the log of another tuning" in result.stderr and "--restart" in result.stderr
    assert tune(*SPACE, "--trials", 2, "--trials-dir", "log", "--seed", 1, "--restart").code == 0
    path = tmp_path / "log" / TRIALS_FILE
    path.write_bytes(path.read_bytes().replace(b'"trial": 1', b'"trial": 2', 1))
    damaged = tune(*SPACE, "--trials", 2, "--trials-dir", "log", "--seed", 1)
    assert damaged.code == 4 and "line 3 was changed after it was written" in damaged.stderr


def test_a_full_disk_is_reported_and_tuning_can_be_continued(tune: Tune, tmp_path: Path) -> None:
    options = (*SPACE, "--trials", 4, "--trials-dir")
    assert tune(*options, "complete").code == 0
    complete = read_log(tmp_path / "complete")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / TRIALS_FILE).write_bytes(b"".join(complete.splitlines(keepends=True)[:2]))
    code = LIMITED % (len(complete) - 300)
    words = map(str, ("tune", *OPTIONS, *options, "full"))
    failed = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert failed.returncode == 1, failed.stderr
    assert "could not be written: " in failed.stderr
    assert "run the same command again to continue" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert complete.startswith(read_log(tmp_path / "full")) and read_log(tmp_path / "full").endswith(b"\n")
    assert tune(*options, "full").code == 0
    assert read_log(tmp_path / "full") == complete


LIMITED = """
import resource, sys
from searchapp.app.experiments.tuning import TrialLog
append = TrialLog.append
def append_limited(log, trial):  # the limit must not affect the larger indexes of the folds, which exist by now
    resource.setrlimit(resource.RLIMIT_FSIZE, (%d, resource.RLIM_INFINITY))
    append(log, trial)
TrialLog.append = append_limited
from searchapp.cli import run
sys.exit(run(sys.argv[1:]))
"""


def test_tuning_on_a_reported_split_is_refused_and_otherwise_warned_of_everywhere(
    tune: Tune, offline: Cli
) -> None:
    space = ("--param", "k=1,4", "--search", "grid")
    refused = tune(*space, "--split", "dev")
    assert refused.code == 2 and "results are reported for dev" in refused.stderr
    allowed = tune(*space, "--split", "dev", "--allow-reported", "--out", "dev.toml")
    assert allowed.code == 0 and "too optimistic" in allowed.stderr
    assert "too optimistic" in Path("dev.toml").read_text()
    for split in ("dev", "train"):
        assert offline("rank", "dev.toml", "--split", split, "--out", split).code == 0
        assert json.loads(Path(f"{split}/run.json").read_text())["recipe"]["tuned"]["reported"] is True
        assert "tuned on dev" in offline("evaluate", split, "--cutoff", 30).stderr
    again = offline("tune", "dev.toml", "--cutoff", 30, "--folds", 3, "--param", "k=2", "--out", "twice.toml")
    assert again.code == 0, again.stderr
    assert 'splits = ["dev", "train"]\nreported = true' in Path("twice.toml").read_text()
    assert offline("rank", "nlps", "--split", "dev", "--out", "shipped").code == 0
    both = ("shipped", "dev", "--cutoff", 30, "--permutations", 50)
    assert "tuned on dev, the split that is scored" in offline("compare", *both).stderr
    assert offline("report", *both, "--out", "r.html").code == 0
    assert "tuned on dev, the split that is scored" in Path("r.html").read_text()
    Path("b.toml").write_text(
        "permutations = 50\n[recipes.bm25]\n[recipes.tuned]\n[tasks.mine]\n"
        "task = 'dev.toml'\nsplits = 'dev'\ncutoff = 30\n"
    )
    benched = offline("bench", "b.toml")
    assert benched.code == 0 and "tuned on dev, the split that is scored" in benched.stderr, benched.stderr


def test_the_table_has_the_best_trial_first_and_the_original_recipe(tune: Tune) -> None:
    table = tune("--param", "k=1,3,5", "--search", "grid")
    assert table.code == 0, table.stderr
    lines = table.stdout.splitlines()
    assert lines[0].split()[:3] == ["trial", "k", "MAP@30"] and len(lines) == 5
    assert any(line.startswith("original") for line in lines)
    assert "3 folds, seed 2021; 3 trials, grid" in table.stderr


def test_a_depth_that_raises_a_window_has_the_warning_of_rank(tune: Tune) -> None:
    usual = tune("--param", "k=1,3", "--search", "grid", "--depth", 500)
    assert usual.code == 0 and "raises the window" not in usual.stderr
    deep = tune("--param", "k=1,3", "--search", "grid", "--depth", 501)
    assert deep.code == 0 and deep.stderr.count("the depth 501 raises the window 500 of") == 1


def test_halving_scores_the_best_trials_on_more_topics(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_space, "LEAST_TOPICS", 2)
    monkeypatch.chdir(tmp_path)
    assert offline("index", "nlps", "--data", SAMPLES / "nlps").code == 0
    halving = ("tune", *OPTIONS, *SPACE, "--trials", 9, "--search", "halving", "--json")
    halved = offline(*halving, "--trials-dir", "one")
    assert halved.code == 0, halved.stderr
    sizes = [trial["topics"] for trial in halved.json["trials"] if trial["trial"]]
    assert sizes == [12, 4, 4, *[12 // 9 or 1] * 6] or sorted(set(sizes)) == [4, 12], sizes
    best = next(trial for trial in halved.json["trials"] if trial["trial"] and trial["complete"])
    random = offline("tune", *OPTIONS, *SPACE, "--trials", 9, "--json", "--trials-dir", "all").json
    values = {trial["trial"]: trial["value"] for trial in random["trials"]}
    assert values[best["trial"]] == best["value"], "on all topics, a trial has the value of random search"
    assert offline(*halving, "--trials-dir", "two", "--workers", 2).code == 0
    assert read_log(tmp_path / "one") == read_log(tmp_path / "two")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no parameter to tune"),
        (("--param", "x=1,2"), 2, "has no parameter 'x'"),
        (("--param", "k=0,1"), 2, "k must be a whole number of at least 1, not 0"),
        (("--param", "k=a,b"), 2, "k must be a whole number of at least 1, not 'a'"),
        (("--param", "k=1.5,2"), 2, "k must be a whole number"),
        (("--param", "direct=-1:1"), 2, "must be a non-negative number, not -1.0"),
        (("--param", "b=0:2"), 2, "b must be a number from 0 to 1"),
        (("--param", "mapping.none.k1=1,2"), 2, "has no parameter 'mapping.none.k1'"),
        (("--param", "k=1,2", "--param", "neighbours.k=3,4"), 2, "k is given twice"),
        (("--param", "k1=1,2", "--param", "mapping.k1=3,4"), 2, "mapping.k1 is given twice"),
        (("--param", "k=1:999999:1000", "--param", "direct=0:1:1000", "--search", "grid"), 2, "combinations"),
        (("--param", "normalization=max,other"), 2, "choose max or none"),
        (("--param", "k=1,2", "--measure", "nothing"), 2, "there is no measure 'nothing'"),
        (("--param", "k=1,2", "--split", "none"), 2, "has no split"),
        (("--param", "k=1,2", "--recipe", "none"), 2, "has no recipe"),
        (("--param", "k=1,2", "--out", "x.json"), 2, "must end in .toml"),
        (("--param", "k=1,2", "--out", "none/x.toml"), 2, "there is no folder"),
        (("--space", "gone.toml"), 4, "gone.toml"),
        (("--param", "k=1,2", "--trials-dir", "file"), 1, "file is not writable"),
        (("--param", "\x1b[31mk=1,2"), 2, "has no parameter"),
    ],
)
def test_usage_errors_are_reported(tune: Tune, arguments: tuple[str, ...], code: int, message: str) -> None:
    Path("file").write_text("")
    refused = tune(*arguments)
    assert (refused.code, message in refused.stderr) == (code, True), refused.stderr
    assert "Traceback" not in refused.stderr and "\x1b[31m" not in refused.stderr and not refused.stdout


def test_a_failed_trial_is_reported_and_others_are_not_affected(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = "smart-relations-dbpedia"
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    tuned = offline(
        "tune", task, "--recipe", "best", "--param", "min_samples=2,500", "--search", "grid", "--json"
    )
    assert tuned.code == 0, tuned.stderr
    last: Any = tuned.json["trials"][-1]
    assert (last["set"], last["value"]) == ({"min_samples": 500}, None)
    assert "lower `min_samples`" in last["error"]
    assert "failed: " in tuned.stderr and tuned.json["splits"] == [f"fold{number}" for number in range(5)]


def test_an_own_task_is_tuned_and_its_variant_can_be_ranked(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "own", tmp_path / "own")
    assert offline("index", "own/cooking.toml").code == 0
    options = ("--recipe", "neighbours", "--param", "k=1,2", "--search", "grid", "--out")
    tuned = offline("tune", "own/cooking.toml", *options, "best.toml")
    assert tuned.code == 0, tuned.stderr
    assert 'extends = "own/cooking.toml"' in Path("best.toml").read_text()
    assert offline("rank", "best.toml", "--split", "dev", "--out", "run").code == 0
    assert offline("evaluate", "run").code == 0


def test_debates_are_left_out_one_at_a_time_and_not_halved(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert offline("index", "checkthat", "--data", SAMPLES / "checkthat").code == 0
    command = ("tune", "checkthat", "--recipe", "neighbours", "--param", "k=1,5", "--lenient")
    output = offline(*command, "--json").json
    assert (output["folds"], output["topics"], output["splits"]) == (3, 3, ["training"])
    assert output["measure"] == "MAP"
    # `rank` also leaves out one debate at a time.
    rank = ("rank", "checkthat", "--split", "training", "--recipe", "neighbours", "--out", "run")
    assert offline(*rank).code == 0
    scored = offline("evaluate", "run", "--lenient", "--json").json
    official = scored.get("runs", [scored])[0]["official"]
    assert output["baseline_trial"]["value"] == pytest.approx(official["value"], abs=1e-12)
    refused = offline(*command, "--search", "halving")
    assert refused.code == 2 and "requires all topics" in refused.stderr
