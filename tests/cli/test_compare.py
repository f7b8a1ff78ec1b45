"""`searchapp compare` on the samples: its figures are those of `evaluate`, and incomparable runs are refused."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import scipy

from searchapp import processes
from searchapp.app import comparison
from searchapp.evaluation.overlap import rbo
from searchapp.evaluation.significance import PERMUTATIONS, SEED
from searchapp.formats import trec
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from tests.cli.conftest import SAMPLES, Cli, change_manifest

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 50)


@pytest.fixture
def ranked(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Commands in a folder with two runs of the sample of nlps, A and B."""
    monkeypatch.chdir(tmp_path)
    data = shutil.copytree(SAMPLES / "nlps", tmp_path / "data")
    assert offline("index", "nlps", "--data", data).code == 0
    for name, recipe in (("A", "bm25"), ("B", "neighbours")):
        assert offline("rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", name).code == 0
    return offline


def test_topics_have_their_ids_of_the_run_not_of_the_scorer(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "checkthat", "--data", SAMPLES / "checkthat").code == 0
    for recipe in ("bm25", "neighbours"):
        out = tmp_path / recipe
        assert offline("rank", "checkthat", "--split", "training", "--recipe", recipe, "--out", out).code == 0
    output = offline("compare", tmp_path / "bm25", tmp_path / "neighbours", "--json").json
    topics = {ranking.topic_id for ranking in directory.read(tmp_path / "bm25").run}
    assert {topic["id"] for topic in output["topics"]["pairs"][0]["topics"]} == topics


def test_statistics_and_moved_documents_follow_from_values_and_rankings(ranked: Cli) -> None:
    output = ranked("compare", "A", "B", *CUTOFF, "--depth", 3, "--json").json
    per_topic = output["measures"][0]["per_topic"]
    differences = [per_topic["B"][topic] - per_topic["A"][topic] for topic in per_topic["A"]]
    (pair,) = output["measures"][0]["pairs"]
    assert pair["tests"]["t_test"]["p"] == pytest.approx(
        scipy.stats.ttest_1samp(differences, 0).pvalue, abs=1e-12
    )
    assert pair["tests"]["mean"] == pytest.approx(math.fsum(differences) / len(differences), abs=1e-12)
    assert pair["tests"]["randomisation"]["exact"]
    assert (output["permutations"], output["seed"]) == (PERMUTATIONS, SEED)
    rankings = {
        name: {ranking.topic_id: ranking.document_ids() for ranking in directory.read(Path(name)).run}
        for name in "AB"
    }
    gold = {
        str(entry_id): set(map(str, entry["premises"]))
        for entry_id, entry in json.loads((SAMPLES / "nlps" / "dev_set.json").read_text()).items()
    }
    topics = output["topics"]["pairs"][0]["topics"]
    for topic in topics:
        first, second = (rankings[name][topic["id"]] for name in "AB")
        gained = {document["document_id"] for document in topic["gained"]}
        assert gained == (gold[topic["id"]] & set(second[:3])) - set(first[:3])
        lost = {document["document_id"] for document in topic["lost"]}
        assert lost == (gold[topic["id"]] & set(first[:3])) - set(second[:3])
        for document in (*topic["gained"], *topic["lost"], *topic["moved"]):
            id_ = document["document_id"]
            assert first[document["first"] - 1] == id_ == second[document["second"] - 1]
    assert topics == sorted(topics, key=lambda topic: -topic["difference"])
    overlap = output["overlap"][0]["rbo"]
    expected = [rbo(rankings["A"][topic], rankings["B"][topic]) for topic in rankings["A"]]
    assert overlap == pytest.approx(math.fsum(expected) / len(expected))


def test_large_runs_have_the_same_figures_from_worker_processes(
    ranked: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ranked("compare", "A", "B", *CUTOFF, "--by", "all", "--json").stdout
    pids: list[int] = []

    def map_with_pids(work: Any, numbers: Any, **options: Any) -> Any:
        for pid, result in processes.map_in_processes(
            lambda number: (os.getpid(), work(number)), numbers, 2, **options
        ):
            pids.append(pid)
            yield result

    monkeypatch.setattr(comparison, "LARGE", 1)
    monkeypatch.setattr(comparison, "map_in_processes", map_with_pids)
    assert ranked("compare", "A", "B", *CUTOFF, "--by", "all", "--json").stdout == expected
    assert os.getpid() not in pids or sys.platform != "linux"
    refused = ranked("compare", "A", "B", "--json")  # an error in a worker process is reported as here
    assert refused.code == 4 and "the official scorer would not score this file" in refused.stderr


def test_swapping_the_runs_negates_the_differences(ranked: Cli) -> None:
    tests, swapped = (
        ranked("compare", *runs, *CUTOFF, "--json").json["measures"][0]["pairs"][0]["tests"]
        for runs in ("AB", "BA")
    )
    assert tests["mean"] == -swapped["mean"] and tests["randomisation"] == swapped["randomisation"]
    assert (tests["interval"]["low"], tests["interval"]["high"]) == (
        -swapped["interval"]["high"],
        -swapped["interval"]["low"],
    )
    assert tests["outcomes"]["wins"] == swapped["outcomes"]["losses"]


def test_requested_measures_come_first(ranked: Cli) -> None:
    output = ranked("compare", "A", "B", "--measure", "nDCG@5", "--measure", "R@3", *CUTOFF, "--json").json
    assert [measure["measure"] for measure in output["measures"]] == ["nDCG@5", "R@3", "MAP@50"]
    assert output["topics"]["measure"] == "nDCG@5" and output["topics"]["depth"] == 5
    refused = ranked("compare", "A", "B", "--measure", "nDCX")
    assert refused.code == 2 and "there is no measure 'nDCX'" in refused.stderr


def test_several_runs_are_compared_in_pairs_or_with_the_baseline(ranked: Cli) -> None:
    assert ranked("rank", "nlps", "--split", "dev", "--recipe", "tfidf", "--out", "C").code == 0
    pairs = ranked("compare", "A", "B", "C", *CUTOFF, "--json").json["measures"][0]["pairs"]
    assert [(pair["first"], pair["second"]) for pair in pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert all(0 <= pair["tukey"] <= 1 and 0 < pair["randomised_tukey"] <= 1 for pair in pairs)
    assert all(
        test["p"] <= test["benjamini_hochberg"] <= test["holm"] or math.isclose(test["holm"], test["p"])
        for pair in pairs
        for test in pair["corrected"].values()
    )
    output = ranked("compare", "A", "B", "C", "--baseline", "B", *CUTOFF, "--json").json
    assert output["baseline"] == "B"
    assert [(pair["first"], pair["second"]) for pair in output["measures"][0]["pairs"]] == [
        ("B", "A"),
        ("B", "C"),
    ]
    # Tests that need all runs use all, also if only some pairs are shown.
    assert output["measures"][0]["pairs"][0]["tukey"] == pairs[0]["tukey"]
    assert (
        "corrected for 2 comparisons with the baseline"
        in ranked("compare", *"ABC", "--baseline", "B", *CUTOFF).stdout
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data_digests": {"knowledge_base.json": "0" * 64}},
            "their data differs: knowledge_base.json",
        ),
        ({"mapping_digest": "0" * 64}, "their index mappings differ"),
        ({"index_digest": "0" * 64}, "their indexed documents differ"),
        ({"split": "train"}, "their splits differ: train and dev"),
        ({"recipe": {"judged": {"digest": "x", "ids": []}}}, "only one of them was trained on judgments"),
    ],
)
def test_runs_of_different_inputs_are_refused_with_the_difference(
    ranked: Cli, changes: dict[str, Any], message: str
) -> None:
    change_manifest(Path("B"), **changes)
    refused = ranked("compare", "A", "B", *CUTOFF)
    assert (
        refused.code == 4 and message in refused.stderr and "--force" in refused.stderr and not refused.stdout
    )


def test_with_force_every_layout_names_the_difference(ranked: Cli) -> None:
    change_manifest(Path("B"), index_digest="0" * 64)
    for layout in ((), ("--json",), ("--markdown",), ("--latex",)):
        result = ranked("compare", "A", "B", "--force", *CUTOFF, *layout)
        assert result.code == 0 and "their indexed documents differ" in result.stdout
        assert "the runs are compared although their indexed documents differ" in result.stderr
    assert ranked("compare", "A", "B", "--force", *CUTOFF, "--json").json["comparable"] is False
    assert "although" in ranked("compare", "A", "B", "--force", *CUTOFF, "--csv").stderr


def test_a_run_that_lacks_topics_is_refused_with_the_topics(ranked: Cli) -> None:
    stored = directory.read(Path("B"))
    shorter = Run(stored.run.tag, stored.run.rankings[1:])
    directory.write(Path("C"), stored.manifest, shorter, {})
    refused = ranked("compare", "A", "C", *CUTOFF)
    assert refused.code == 4 and stored.run.rankings[0].topic_id in refused.stderr
    assert "does not rank 1 topic of the other run" in refused.stderr


def test_runs_of_two_tasks_are_never_compared(ranked: Cli) -> None:
    change_manifest(Path("B"), task="explanation-2019")
    refused = ranked("compare", "A", "B", "--force")
    assert refused.code == 4 and "compare runs of one task" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("A",), 2, "at least two runs are needed"),
        (("A", "./A"), 2, "is given twice"),
        (("A", "A/run.trec"), 2, "`searchapp runs import` makes one"),
        (("A", "B", "--baseline", "data"), 2, "is not among the runs"),
        (("A", "nothing"), 2, "is not a run directory"),
        (("A", "B", "--json", "--csv"), 2, "give one of them"),
        (("A", "B", "--held-out"), 2, "--held-out requires --judgments"),
        (("A", "B"), 4, "premises without repeats, not 500"),
        (("A", "B", "--cutoff", "50", "--by", "nothing"), 2, "has no breakdown"),
    ],
)
def test_usage_errors_are_reported(ranked: Cli, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = ranked("compare", *arguments)
    assert (
        (result.code, result.stdout) == (code, "")
        and message in result.stderr
        and "Traceback" not in result.stderr
    )


def test_csv_has_every_figure_at_full_precision(ranked: Cli) -> None:
    measures = ranked("compare", "A", "B", *CUTOFF, "--json").json["measures"]
    rows = list(csv.DictReader(io.StringIO(ranked("compare", "A", "B", *CUTOFF, "--csv").stdout)))
    assert [row["measure"] for row in rows] == [measure["measure"] for measure in measures]
    tests = measures[0]["pairs"][0]["tests"]
    assert float(rows[0]["difference"]) == tests["mean"]
    assert float(rows[0]["p_t_test"]) == tests["t_test"]["p"]
    assert int(rows[0]["wins"]) == tests["outcomes"]["wins"] and rows[0]["p_tukey"] == ""


def test_names_are_escaped_in_latex_and_markdown(ranked: Cli) -> None:
    Path("B").rename("b_&|<%$")
    latex = ranked("compare", "A", "b_&|<%$", *CUTOFF, "--latex").stdout
    assert r"A $\rightarrow$ b\_\&|$<$\%\$" in latex and latex.rstrip().endswith(r"\end{tabular}")
    markdown = ranked("compare", "A", "b_&|<%$", *CUTOFF, "--markdown").stdout
    assert r"A → b\_&\|\<%$" in markdown
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1


def test_the_text_shows_bars_documents_and_difficulty(ranked: Cli) -> None:
    text = ranked("compare", "A", "B", *CUTOFF, "--topics", 2).stdout
    assert "MAP@50 (official)" in text and "Topics by difficulty" in text and "█" in text and "░" in text
    assert "documents without gold count as not relevant" in text
    assert "by topic" not in ranked("compare", "A", "B", *CUTOFF, "--topics", 0).stdout


# Judgments and qrels


def write_qrels(path: str, *lines: str) -> str:
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_influence_of_unjudged_documents_is_bounded(ranked: Cli) -> None:
    """Compare two runs that swap the first two documents of a topic, one judged relevant and one unjudged."""
    stored = directory.read(Path("A"))
    topic, documents = stored.run.rankings[0].topic_id, stored.run.rankings[0].document_ids()
    for name, order in (("C", documents), ("D", (documents[1], documents[0], *documents[2:]))):
        hits = Hits(order, [float(-number) for number in range(len(order))])
        run = Run("x", (Ranking(topic, hits), *stored.run.rankings[1:]))
        directory.write(Path(name), stored.manifest, run, {})
    grades = write_qrels("some.qrels", f"{topic} 0 {documents[0]} 1")
    output = ranked("compare", "C", "D", "--qrels", grades, "--measure", "RR", *CUTOFF, "--json").json
    (pair,) = output["measures"][0]["pairs"]
    assert pair["tests"]["mean"] == -0.5
    unjudged = pair["unjudged"]
    # D would be no worse if its first document, which is not judged, were relevant.
    assert unjudged["due"] == "yes" and unjudged["reversed"] >= 0
    assert unjudged["low"] <= -0.5 <= unjudged["high"]
    assert unjudged["bounds"] == [[1.0, 1.0], [0.5, 1.0]]
    assert output["runs"][0]["judged"]["Judged@10"] == pytest.approx(0.1)
    assert "count as not relevant; judged among the retrieved documents: 1 of" in output["unjudged"]
    # Once the document is judged not relevant, the difference can't be due to it.
    lines = [f"{topic} 0 {documents[0]} 1", *(f"{topic} 0 {document} 0" for document in documents[1:])]
    judged = ranked(
        "compare", "C", "D", "--qrels", write_qrels("all.qrels", *lines), "--measure", "RR", *CUTOFF, "--json"
    ).json
    assert judged["measures"][0]["pairs"][0]["unjudged"]["due"] == "no"
    text = ranked("compare", "C", "D", "--qrels", grades, "--measure", "RR", *CUTOFF).stdout
    assert "possibly due to them alone" in text and "Judged@10" in text


def test_condensed_lists_leave_unjudged_documents_out(ranked: Cli) -> None:
    topic = directory.read(Path("A")).run.rankings[0]
    grades = write_qrels("some.qrels", f"{topic.topic_id} 0 {topic.document_ids()[4]} 1")
    output = ranked(
        "compare", "A", "B", "--qrels", grades, "--unjudged", "condensed", "--measure", "RR", "--json"
    ).json
    assert output["measures"][0]["means"] == {"A": 1.0, "B": 1.0}
    assert output["unjudged"] == "unjudged documents are removed from the rankings"
    refused = ranked("compare", "A", "B", "--qrels", grades, "--unjudged", "bounds")
    assert refused.code == 2 and "leave out --unjudged bounds" in refused.stderr


def test_the_figures_against_qrels_are_those_of_evaluate(ranked: Cli) -> None:
    run = trec.read_run(Path("A/run.trec"))
    lines = [f"{ranking.topic_id} 0 {ranking.document_ids()[number]} 1" for number, ranking in enumerate(run)]
    grades = write_qrels("some.qrels", *lines)
    output = ranked("compare", "A", "B", "--qrels", grades, *CUTOFF, "--json").json
    expected = ranked("evaluate", "A", "B", "--qrels", grades, *CUTOFF, "--json").json["runs"]
    assert output["measures"][0]["means"]["B"] == pytest.approx(expected[1]["official"]["value"], abs=1e-12)
    for measure in output["measures"][1:]:
        figure = expected[0]["measures"][measure["measure"]]
        assert measure["means"]["A"] == pytest.approx(figure, abs=1e-12)


def test_compare_accepts_the_gold_that_evaluate_accepts(offline: Cli, tmp_path: Path) -> None:
    def rank_both(task: str, split: str) -> tuple[Path, list[Path]]:
        data = shutil.copytree(SAMPLES / task, tmp_path / task)
        assert offline("index", task, "--data", data).code == 0
        runs = [tmp_path / recipe for recipe in ("bm25", "neighbours")]
        for run in runs:
            options = ("--split", split, "--recipe", run.name, "--out", run, "--overwrite")
            assert offline("rank", task, *options).code == 0
        return data, runs

    data, runs = rank_both("explanation-2019", "dev")
    gold = data / "questions" / "ARC-Elementary+EXPL-Dev.tsv"
    gold.write_text(gold.read_text().replace("questionID", "QuestionID", 1))
    for command, compared in (("evaluate", runs[:1]), ("compare", runs)):
        refused = offline(command, *compared)
        assert refused.code == 4 and "--lenient continues" in refused.stderr
    result = offline("compare", *runs, "--lenient", "--json")
    assert result.code == 0, result.stderr
    figure = offline("evaluate", runs[0], "--lenient", "--json").json["official"]["value"]
    assert result.json["runs"][0]["official"] == figure

    data, runs = rank_both("smart-types-dbpedia", "fold0")
    hierarchy = (data / "dbpedia_types.tsv").rename(tmp_path / "hierarchy.tsv")
    for command, compared in (("evaluate", runs[:1]), ("compare", runs)):
        result = offline(command, *compared, "--hierarchy", hierarchy)
        assert result.code == 0, result.stderr
