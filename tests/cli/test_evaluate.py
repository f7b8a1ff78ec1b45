"""`searchapp evaluate`: several runs, measures, breakdowns, and runs trained on judgments; and TREC exports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from tests.cli.conftest import SAMPLE, Cli

pytestmark = pytest.mark.shared_indexes

SAMPLES = SAMPLE.parent


@pytest.fixture
def indexed(offline: Cli) -> Cli:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    return offline


def rank(run: Cli, out: Path, *options: object, task: str = "nlps", split: str = "dev") -> Path:
    result = run("rank", task, "--data", SAMPLES / task, "--split", split, "--out", out, *options)
    assert result.code == 0, result.stderr
    return out


def table(text: str) -> list[list[str]]:
    """Return the rows of a table without its heading."""
    return [line.split("  ") for line in text.splitlines()[1:] if line]


# Several runs


def test_warnings_name_the_runs_they_concern(indexed: Cli, tmp_path: Path) -> None:
    first = rank(indexed, tmp_path / "first")
    second = rank(indexed, tmp_path / "second", "--recipe", "neighbours")
    qrels = tmp_path / "qrels"
    qrels.write_text("602 0 101 1\n")
    both = indexed("evaluate", first, second, "--cutoff", 50, "--qrels", qrels).stderr
    assert f"warning: {first}, {second}: 9 of the 10 ranked topics have no grades: 1 is scored" in both
    alone = indexed("evaluate", first, "--cutoff", 50, "--qrels", qrels).stderr
    assert "warning: 9 of the 10 ranked topics have no grades: 1 is scored" in alone
    # A warning that concerns one of the runs names it.
    (second / "run.trec").write_text((second / "run.trec").read_text() + "\n")
    lines = indexed("evaluate", first, second, "--cutoff", 50).stderr.splitlines()
    changed = [line for line in lines if "has changed since" in line]
    assert len(changed) == 1 and str(second) in changed[0] and str(first) not in changed[0]
    for line in lines:
        assert str(first) in line or str(second) in line


def test_the_reason_why_topics_are_not_scored_is_reported(offline: Cli, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    assert offline("index", "nlps", "--data", data).code == 0
    run = tmp_path / "run"
    assert offline("rank", "nlps", "--data", data, "--split", "dev", "--out", run).code == 0
    assert "scored" not in offline("evaluate", run, "--cutoff", 50).stderr
    gold = json.loads((data / "dev_set.json").read_text())
    fewer = tmp_path / "gold.json"
    fewer.write_text(json.dumps({topic: gold[topic] for topic in list(gold)[:7]}))
    result = offline("evaluate", run, "--cutoff", 50, "--gold", fewer)
    assert "7 of 10 ranked topics scored: 3 topics without gold" in result.stderr


@pytest.mark.parametrize(
    ("task", "split", "repeated"),
    [("checkthat", "training", ["AP", "RR", "Rprec", "P@10", "P@50"]), ("explanation-2019", "dev", ["AP"])],
)
def test_no_figure_is_repeated_in_the_table(
    offline: Cli, tmp_path: Path, task: str, split: str, repeated: list[str]
) -> None:
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    run = rank(offline, tmp_path / "run", task=task, split=split)
    shown = [row[0] for row in table(offline("evaluate", run, "--lenient").stdout)]
    assert not set(repeated) & set(shown) and "nDCG@10" in shown
    # The JSON output has them all.
    assert set(repeated) <= offline("evaluate", run, "--lenient", "--json").json["measures"].keys()


def test_the_measure_of_an_own_task_is_not_repeated(offline: Cli, tmp_path: Path) -> None:
    task = SAMPLES / "own" / "cooking.toml"
    assert offline("index", task).code == 0
    run = tmp_path / "run"
    assert offline("rank", task, "--split", "dev", "--out", run).code == 0
    result = offline("evaluate", run, "--measure", "nDCG@10", "--measure", "AP")
    assert [row[0] for row in table(result.stdout)] == ["topics", "nDCG@10 (official)", "AP"]


def test_similar_but_different_figures_are_both_shown(indexed: Cli, tmp_path: Path) -> None:
    run = rank(indexed, tmp_path / "run")
    # MAP@20 divides by the number of retrieved relevant documents, AP by the number of all relevant documents.
    shown = [row[0] for row in table(indexed("evaluate", run, "--cutoff", 20).stdout)]
    assert {"MAP@20 (official)", "AP"} <= set(shown)


# Measures


def test_any_measure_can_be_chosen(indexed: Cli, tmp_path: Path) -> None:
    run = rank(indexed, tmp_path / "run")
    chosen = ("Success@1", "nDCG(gains={0:0,1:5})@3", "IPrec@0.5", "Compat(p=0.8)", "Success@1")
    options = [word for name in chosen for word in ("--measure", name)]
    result = indexed("evaluate", run, "--cutoff", 50, *options, "--json", "--per-topic")
    assert result.code == 0, result.stderr
    assert list(result.json["measures"]) == list(dict.fromkeys(chosen))
    assert len(result.json["per_topic"]["Success@1"]) == 10
    shown = [row[0] for row in table(indexed("evaluate", run, "--cutoff", 50, *options).stdout)]
    assert shown == ["topics", "MAP@50 (official)", *dict.fromkeys(chosen)]
    qrels = tmp_path / "qrels"
    qrels.write_text("602 0 101 1\n")
    judged = indexed("evaluate", run, "--cutoff", 50, "--qrels", qrels, "--measure", "P@1", "--json")
    assert list(judged.json["measures"]) == ["P@1"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg@10", "did you mean nDCG@10?"),
        ("ndcg_cut_20", "did you mean nDCG@20?"),
        ("map", "did you mean AP?"),
        ("recip_rank", "did you mean RR?"),
        ("Sucess@5", "did you mean Success@5?"),
        ("P", "did you mean P@10?"),
        ("iprec_at_recall_0.20", "did you mean IPrec@0.20?"),
        ("alpha_nDCG@10", "it needs grades of subtopics"),
        ("beauty", "use ir-measures' notation"),
        ("P@0", "whole number of at least 1"),
    ],
)
def test_an_unknown_measure_is_refused_with_a_suggestion(
    offline: Cli, tmp_path: Path, name: str, message: str
) -> None:
    result = offline("evaluate", tmp_path / "none", "--measure", "AP", "--measure", name)
    assert result.code == 2 and message in result.stderr and repr(name) in result.stderr


@pytest.mark.parametrize(
    ("task", "split", "by", "topics"),
    [
        ("explanation-2019", "dev", "length", 7),
        ("checkthat", "training", "debate", 3),
        ("checkthat", "training", "event", 3),
        ("smart-types-dbpedia", "fold0", "category", 14),
        ("smart-types-wikidata", "fold0", "first-word", None),
        ("smart-relations-dbpedia", "fold0", "relations", None),
    ],
)
def test_breakdowns_have_the_chosen_measures(
    offline: Cli, tmp_path: Path, task: str, split: str, by: str, topics: int | None
) -> None:
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    run = rank(offline, tmp_path / "run", task=task, split=split)
    options = ("--lenient", "--by", by, "--measure", "R@5", "--measure", "NumRel", "--json", "--per-topic")
    result = offline("evaluate", run, *options)
    assert result.code == 0, result.stderr
    (breakdown,) = result.json["breakdowns"].values()
    rows = breakdown["rows"]
    per_topic, measures = result.json["per_topic"]["R@5"], result.json["measures"]
    assert topics is None or len(per_topic) == topics
    sums = sum(row["NumRel"] for row in rows)
    unit = next(key for key in ("topics", "questions", "debates", "lines") if key in rows[0])
    sizes = [1 if unit == "lines" else row[unit] for row in rows]
    assert sum(sizes) == len(per_topic)
    assert sums == measures["NumRel"]  # NumRel is summed, not averaged
    mean = sum(size * row["R@5"] for size, row in zip(sizes, rows, strict=True)) / sum(sizes)
    assert mean == pytest.approx(measures["R@5"])


def test_groups_of_documents_have_no_chosen_measures(offline: Cli, tmp_path: Path) -> None:
    task = "explanation-2019"
    assert offline("index", task, "--data", SAMPLES / task).code == 0
    run = rank(offline, tmp_path / "run", task=task)
    result = offline("evaluate", run, "--by", "role", "--measure", "R@5", "--json")
    assert all("R@5" not in row for row in result.json["breakdowns"]["role"]["rows"])


# Runs trained on judgments


@pytest.fixture
def trained_run(indexed: Cli, tmp_path: Path) -> tuple[Path, Path]:
    """A run that was trained on judgments of four topics, and a log with these and two more topics."""
    log, gold = tmp_path / "log", json.loads((SAMPLE / "dev_set.json").read_text())

    def judge(topics: list[str]) -> None:
        with JudgmentLog(log) as events:
            session = Session(events, "nlps", Author("ann"))
            for topic in topics:
                for document in gold[topic]["premises"]:
                    session.grade([SeenDocument(topic, str(document))], 1)

    judge(list(gold)[:4])
    run = rank(indexed, tmp_path / "run", "--recipe", "neighbours", "--with-judgments", "--log", log)
    judge(list(gold)[4:6])
    return run, log


def test_scoring_a_run_on_topics_it_was_trained_on_causes_a_warning(
    indexed: Cli, trained_run: tuple[Path, Path], tmp_path: Path
) -> None:
    run, log = trained_run
    options = ("--cutoff", 50, "--json")
    result = indexed("evaluate", run, "--judgments", "--log", log, *options)
    sentence = "was trained on judgments (rank --with-judgments) of 4 of the 6 scored topics"
    assert sentence in result.stderr and "--held-out scores only the other topics" in result.stderr
    assert result.json["topics"] == 6 and any(sentence in warning for warning in result.json["warnings"])
    unseen = indexed("evaluate", run, "--judgments", "--held-out", "--log", log, *options, "--per-topic")
    assert unseen.json["topics"] == 2 and "too optimistic" not in unseen.stderr
    assert "4 of 6 judged topics are left out" in unseen.stderr
    gold = json.loads((SAMPLE / "dev_set.json").read_text())
    assert list(unseen.json["per_topic"]["AP"]) == list(gold)[4:6]
    # Qrels and the official gold cause the same warning.
    qrels = tmp_path / "qrels"
    export = ("judgments", "export", "nlps", "--format", "qrels", "--log", log, "--out", qrels)
    assert indexed(*export).code == 0
    assert "of 4 of the 6 scored topics" in indexed("evaluate", run, "--qrels", qrels, *options).stderr
    by_gold = indexed("evaluate", run, *options)
    assert "of 4 of the 10 scored topics" in by_gold.stderr and "--per-topic --json prints" in by_gold.stderr


def test_a_run_that_was_not_trained_on_judgments_causes_no_warning(
    indexed: Cli, trained_run: tuple[Path, Path], tmp_path: Path
) -> None:
    _, log = trained_run
    run = rank(indexed, tmp_path / "plain", "--recipe", "neighbours")
    options = ("--judgments", "--log", log, "--cutoff", 50, "--json")
    plain, unseen = indexed("evaluate", run, *options), indexed("evaluate", run, *options, "--held-out")
    assert "trained on judgments" not in plain.stderr and plain.json == unseen.json
    assert indexed("evaluate", run, "--held-out").code == 2


def test_held_out_needs_topics_the_run_was_not_trained_on(
    indexed: Cli, trained_run: tuple[Path, Path], tmp_path: Path
) -> None:
    run, _ = trained_run
    qrels = tmp_path / "qrels"
    first = next(iter(json.loads((SAMPLE / "dev_set.json").read_text())))
    qrels.write_text(f"{first} 0 101 1\n")
    result = indexed("evaluate", run, "--qrels", qrels, "--cutoff", 50)
    assert "of the only scored topic" in result.stderr and "judge and score other topics" in result.stderr
    refused = indexed("evaluate", run, "--qrels", qrels, "--cutoff", 50, "--held-out")
    assert refused.code == 4 and "was trained on every judged topic" in refused.stderr


def test_a_manifest_that_does_not_name_the_judged_topics_is_refused(
    indexed: Cli, trained_run: tuple[Path, Path]
) -> None:
    run, log = trained_run
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["recipe"]["judged"]["topics"] == 4
    del manifest["recipe"]["judged"]["ids"]
    (run / "run.json").write_text(json.dumps(manifest))
    options = ("--judgments", "--log", log, "--cutoff", 50)
    for refused in (indexed("evaluate", run, *options), indexed("evaluate", run, *options, "--held-out")):
        assert refused.code == 4 and "judged has no list of ids" in refused.stderr


# Exports


def test_a_trec_export_has_distinct_scores_or_the_scores_of_the_engine(indexed: Cli, tmp_path: Path) -> None:
    run = rank(indexed, tmp_path / "run")
    plain, distinct = tmp_path / "plain.trec", tmp_path / "distinct.trec"
    result = indexed("export", run, "--format", "trec", "--engine-scores", "--out", plain)
    assert result.code == 0 and "equal scores" in result.stderr and "--engine-scores" in result.stderr
    assert plain.read_bytes() == (run / "run.trec").read_bytes()
    result = indexed("export", run, "--format", "trec", "--out", distinct)
    assert result.code == 0 and "equal scores" not in result.stderr
    order = [[line.split()[i] for i in (0, 2, 3)] for line in plain.read_text().splitlines()]
    assert [[line.split()[i] for i in (0, 2, 3)] for line in distinct.read_text().splitlines()] == order
    qrels = tmp_path / "qrels"
    gold = json.loads((SAMPLE / "dev_set.json").read_text())
    lines = [f"{topic} 0 {premise} 1\n" for topic, entry in gold.items() for premise in entry["premises"]]
    qrels.write_text("".join(lines))
    options = ("--qrels", qrels, "--cutoff", 50, "--measure", "AP", "--json")
    figures = [indexed("evaluate", path, *options).json["measures"] for path in (run, distinct, plain)]
    assert figures[0] == figures[1] != figures[2]
    refused = indexed("export", run, "--format", "csv", "--engine-scores", "--out", tmp_path / "x")
    assert refused.code == 2 and "add --format trec" in refused.stderr
