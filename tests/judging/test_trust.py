"""`searchapp judgments trust`: agreement of a model with people equals reference libraries."""

from __future__ import annotations

import json
import math
import random
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from scipy import stats

from benchmarks.agreement_intervals import coverage_of
from searchapp.judging.agreement import cohen_kappa
from searchapp.judging.trust import (
    Resampling,
    agreement_by_grade,
    agreement_by_value,
    group_agreement,
)
from searchapp.judging.view import Key
from tests.cli.conftest import SAMPLES, Cli, change_manifest, read_rankings
from tests.cli.conftest import offline as offline
from tests.profile import FULL

FEW = Resampling(200, 3)

EXACT = 1e-12

JUDGE = """
import hashlib, json, sys
for line in sys.stdin:
    question = json.loads(line)
    name = sys.argv[1] + question["topic"]["id"] + question["document"]["id"]
    number = hashlib.sha256(name.encode()).digest()[0]
    print(json.dumps({"grade": None if number > 230 else number % 3}))
"""


def random_pairs(documents: int, topics: int, seed: int) -> dict[Key, tuple[int, int]]:
    rng = random.Random(seed)
    pairs = {}
    for number in range(documents):
        people = rng.randrange(3)
        model = people if rng.random() < 0.6 else rng.randrange(3)
        pairs[f"t{number % topics}", f"d{number}"] = people, model
    return pairs


def test_coefficients_and_intervals_equal_reference_libraries() -> None:
    from sklearn.metrics import cohen_kappa_score

    pairs = random_pairs(120, 12, 7)
    result = group_agreement("all", pairs, FEW)
    people, model = zip(*pairs.values(), strict=True)
    assert result.kappa.value == pytest.approx(cohen_kappa_score(people, model), abs=EXACT)
    quadratic = cohen_kappa_score(people, model, weights="quadratic")
    assert result.quadratic.value == pytest.approx(quadratic, abs=EXACT)
    assert result.alpha.value == pytest.approx(
        krippendorff.alpha(reliability_data=[people, model], level_of_measurement="ordinal"), abs=EXACT
    )
    assert (result.topics, result.documents) == (12, 120)
    assert result.bias == pytest.approx(np.mean(model) - np.mean(people))
    # The bootstrap draws whole topics, in the order of their ids.
    of_topics: dict[str, list[tuple[int, int]]] = {}
    for (topic, _), pair in pairs.items():
        of_topics.setdefault(topic, []).append(pair)
    names = sorted(of_topics)
    kappas, alphas = [], []
    for draw in np.random.default_rng(3).integers(12, size=(200, 12)):
        drawn = list(zip(*(pair for place in draw for pair in of_topics[names[place]]), strict=True))
        kappas.append(cohen_kappa_score(*drawn))
        alphas.append(krippendorff.alpha(reliability_data=drawn, level_of_measurement="ordinal"))
    # The standard deviation of a mean with the divisor n − 1, in units of that with n, and t quantiles.
    tail = stats.norm.cdf(math.sqrt(12 / 11) * stats.t.ppf(0.025, 11))
    for coefficient, values in ((result.kappa, kappas), (result.alpha, alphas)):
        wanted = np.quantile(values, [tail, 1 - tail])
        assert (coefficient.low, coefficient.high) == pytest.approx(wanted, abs=EXACT)
    for each in agreement_by_grade(pairs, FEW):
        has_grade = [grade == each.grade for grade in people], [grade == each.grade for grade in model]
        assert (each.people, each.model) == tuple(map(sum, has_grade))
        assert each.both == sum(map(all, zip(*has_grade, strict=True)))
        assert each.kappa.value == pytest.approx(cohen_kappa_score(*has_grade))
        assert each.kappa.low <= each.kappa.value <= each.kappa.high
    one = group_agreement("t0", {key: pair for key, pair in pairs.items() if key[0] == "t0"}, FEW)
    assert not math.isnan(one.kappa.value) and math.isnan(one.kappa.low)


@pytest.mark.parametrize("name", ["kappa", "quadratic-kappa", "alpha"])
def test_intervals_cover_the_value_of_the_population(name: str) -> None:
    """1,000 samples with `make test-full`; otherwise 60, with the bounds that chance allows these."""
    of = coverage_of(name, *((1000, 20, 1000) if FULL else (60, 20, 200)))
    assert abs(of.bias) < (0.005 if FULL else 0.03)
    low, high = (0.92, 0.98) if FULL else (0.83, 1.0)
    assert low <= of.coverage <= high


def test_groups_of_values_are_about_equal_and_keep_equal_values_together() -> None:
    pairs = random_pairs(30, 5, 1)
    values = {key: float(number // 2) for number, key in enumerate(pairs)}
    groups = agreement_by_value(pairs, values, ".0f", FEW)
    assert [(group.name, group.documents) for group in groups] == [
        ("0 to 4", 10),
        ("5 to 9", 10),
        ("10 to 14", 10),
    ]
    assert [
        group.documents for group in agreement_by_value(pairs, dict.fromkeys(pairs, 1.0), ".0f", FEW)
    ] == [30]
    assert agreement_by_value(pairs, {}, ".0f", FEW) == []


@pytest.fixture
def folder(offline: Cli, tmp_path: Path) -> Path:
    """The folder of an own task that two runs of a model and a person have judged, with runs `a` and `b`."""
    folder = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))
    task = folder / "cooking.toml"
    assert offline("index", task).code == 0
    for run, recipe in (("a", "bm25"), ("b", "half")):
        ranked = offline("rank", task, "--split", "dev", "--recipe", recipe, "--out", folder / run)
        assert ranked.code == 0, ranked.stderr
    judge = folder / "judge.py"
    judge.write_text(JUDGE, "utf-8")
    for annotator, word in (("tiny", "x"), ("again", "y"), ("same", "x")):
        command = shlex.join([sys.executable, str(judge), word])
        options = ("--depth", 5, "--command", command, "--model", "org/Tiny-1", "--annotator", annotator)
        judged = offline("judge", task, "--run", folder / "a", *options)
        assert judged.code == 0, judged.stderr
    lines = [
        f"{topic} 0 {document} {(place + len(topic)) % 3}\n"
        for topic, documents in read_rankings(folder / "a").items()
        for place, document in enumerate(documents[:6])
    ]
    (folder / "ann.qrels").write_text("".join(lines), "utf-8")
    grades = ("judgments", "import", task, folder / "ann.qrels", "--format", "qrels", "--annotator", "ann")
    assert offline(*grades).code == 0
    return folder


def test_a_model_is_compared_with_people_with_itself_and_by_the_systems_that_it_ranks(
    offline: Cli, folder: Path
) -> None:
    task = folder / "cooking.toml"
    change_manifest(
        folder / "b",
        recipe={"name": "half", "signals": [{"signal": "reranker", "source": {"model": "other/tiny-1"}}]},
    )
    reverse = folder / "reverse.trec"
    reverse.write_text(
        "".join(
            f"{topic} Q0 {document} 1 {place} reverse\n"
            for topic, documents in read_rankings(folder / "a").items()
            for place, document in enumerate(documents)
        ),
        "utf-8",
    )
    runs = ("--runs", folder / "a", folder / "b", reverse, "--split", "dev")
    words = ("judgments", "trust", task, "tiny", "--resamples", 200, *runs)
    result = offline(*words, "--measure", "nDCG@5", "--json")
    assert result.code == 0, result.stderr
    report = result.json
    listed = offline("judgments", "list", task, "--json").json["judgments"]
    opinions = {
        name: {
            (each["topic_id"], each["document_id"]): each["grade"]
            for each in listed
            if each["annotator"] == name
        }
        for name in ("ann", "tiny", "again", "same")
    }
    shared = [
        (grade, opinions["tiny"][key])
        for key, grade in opinions["ann"].items()
        if opinions["tiny"].get(key) is not None
    ]
    abstained = sum(key in opinions["ann"] and grade is None for key, grade in opinions["tiny"].items())
    assert abstained and opinions["tiny"] == opinions["same"]
    total = len(opinions["ann"])
    assert report["coverage"] == {
        "documents": total,
        "graded": len(shared),
        "abstained": abstained,
        "skipped": 0,
        "missing": total - len(shared) - abstained,
    }
    assert report["coverage"]["missing"]
    overall = report["overall"]
    assert overall["kappa"]["value"] == pytest.approx(cohen_kappa(shared))
    counts = Counter(shared)
    assert report["confusion"] == {
        str(known): {str(given): counts[known, given] for given in range(3) if counts[known, given]}
        for known in range(3)
    }
    for groups in ("topics", "lengths", "overlaps"):
        assert sum(group["documents"] for group in report[groups]) == len(shared)
    assert len(report["lengths"]) == 3

    # The annotator `same` has the stored answers of `tiny`, which are no second judgments.
    assert len(report["settings"]) == 2
    (own,) = report["self_agreement"]
    both = [
        (grade, opinions["again"][key])
        for key, grade in opinions["tiny"].items()
        if grade is not None and opinions["again"][key] is not None
    ]
    assert own["documents"] == len(both)
    assert own["kappa"]["value"] == pytest.approx(cohen_kappa(both))

    # The values of systems are those that `evaluate` computes from the grades of documents that both have graded.
    for name in ("ann", "tiny"):
        qrels = folder / "both.qrels"
        qrels.write_text(
            "".join(
                f"{topic} 0 {document} {grade}\n"
                for (topic, document), grade in opinions[name].items()
                if opinions["ann"].get((topic, document)) is not None
                and opinions["tiny"].get((topic, document)) is not None
            ),
            "utf-8",
        )
        for system in report["systems"]["systems"]:
            evaluated = offline("evaluate", system["run"], "--qrels", qrels, "--measure", "nDCG@5", "--json")
            value = system["people" if name == "ann" else "model"]
            assert value == pytest.approx(evaluated.json["measures"]["nDCG@5"]), evaluated.stderr
    systems = report["systems"]
    assert systems["topics"] == overall["topics"] and len(systems["systems"]) == 3
    values = [[system[judge] for system in systems["systems"]] for judge in ("people", "model")]
    assert len(set(values[0])) > 1
    assert systems["tau_b"]["value"] == pytest.approx(stats.kendalltau(*values).statistic)
    assert -1 <= systems["tau_ap"]["low"] <= systems["tau_ap"]["high"] <= 1
    assert (
        f"{folder / 'b'} was ranked with the model other/tiny-1, which also judges as tiny" in result.stderr
    )
    assert str(folder / "a") not in result.stderr
    text = offline(*words, "--annotator", "ann")
    assert text.code == 0 and "tau-AP" in text.stdout and "share of the topic's terms" in text.stdout


def test_errors_name_what_to_do(offline: Cli, folder: Path) -> None:
    task = folder / "cooking.toml"
    for words, code, message in (
        (["ann"], 2, "ann is a person: name an annotator of the kind model"),
        (["tin"], 2, "cooking has no annotator 'tin' (did you mean tiny?)"),
        (["tiny", "--annotator", "tiny"], 2, "tiny is the model itself: name other annotators"),
        (["tiny", "--runs", folder / "a"], 2, "--runs requires at least two runs"),
        (["tiny", "--runs", folder / "a", folder / "c"], 2, "there is no run directory or TREC run"),
        (["tiny", "--runs", folder / "a", folder / "b", "--measure", "nDGC"], 2, "nDGC"),
    ):
        result = offline("judgments", "trust", task, *words)
        assert result.code == code and message in result.stderr, (words, result.stderr)
    # Without the documents the agreement is still measured.
    assert offline("indexes", "remove", "own-cooking", "--yes").code == 0
    result = offline("judgments", "trust", task, "tiny", "--resamples", 100, "--json")
    assert result.code == 0 and "no agreement by length and lexical overlap: " in result.stderr
    assert json.loads(result.stdout)["lengths"] == []
