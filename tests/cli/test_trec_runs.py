"""TREC runs of other systems are judged, pooled and scored without a run directory."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import pytrec_eval

from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import SAMPLE, Cli, Result, read_rankings, run_command

pytestmark = pytest.mark.shared_indexes


@pytest.fixture
def other(run: Path, tmp_path: Path) -> Path:
    """The run as another system may write it: ranks from 0, lines in any order."""
    rows = [line.split() for line in (run / "run.trec").read_text().splitlines()]
    lines = [
        f"{topic}\tQ0\t{document}\t{int(rank) - 1}\t{score}\tother"
        for topic, _, document, rank, score, _ in rows
    ]
    random.Random(1).shuffle(lines)
    path = tmp_path / "other.trec"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    statements = json.loads((SAMPLE / "dev_set.json").read_text())
    path = tmp_path / "dev.qrels"
    lines = [
        f"{topic} 0 {premise} 1\n" for topic, entry in statements.items() for premise in entry["premises"]
    ]
    path.write_text("".join(lines))
    return path


def judge(file: Path, *options: object, typed: str = "q\n", task: str = "nlps") -> Result:
    return run_command("judge", task, "--run", file, "--annotator", "ann", "--plain", *options, typed=typed)


def by_trec_eval(run: Path, qrels: Path, *measures: str) -> dict[str, float]:
    """Compute means of measures with trec_eval."""
    scores: dict[str, dict[str, float]] = {}
    for line in run.read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        scores.setdefault(topic, {})[document] = float(score)
    grades: dict[str, dict[str, int]] = {}
    for line in qrels.read_text().splitlines():
        topic, _, document, grade = line.split()
        grades.setdefault(topic, {})[document] = int(grade)
    topics = pytrec_eval.RelevanceEvaluator(grades, set(measures)).evaluate(scores).values()
    return {name: sum(topic[name] for topic in topics) / len(topics) for name in measures}


# Judging


def test_a_trec_run_is_judged(run: Path, other: Path, tmp_path: Path) -> None:
    result = judge(other, "--data", SAMPLE, typed="1\n0\nq\n")
    assert result.code == 0, result.stderr
    with JudgmentLog(tmp_path / "home" / "judgments.sqlite") as log:
        events = [event for _, event in log.events()]
    assert [event.grade for event in events] == [1, 0]
    assert [event.rank for event in events] == [1, 2]
    assert {event.run.partition("@")[0] for event in events} == {"other.trec"}
    # The texts of topics and documents are shown.
    assert "nlps other.trec" in result.stdout and "The data no longer contains" not in result.stdout
    assert "no longer in the index" not in result.stdout


def test_the_file_run_trec_of_a_run_directory_can_be_judged(run: Path) -> None:
    result = judge(run / "run.trec", "--data", SAMPLE, "--split", "dev")
    assert result.code == 0 and "nlps dev" in result.stdout


def test_missing_information_about_a_trec_run_is_requested(run: Path, other: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = judge(other, "--data", tmp_path / "empty")
    assert result.code == 4 and "ranks no topic of nlps in" in result.stderr
    assert "--data" in result.stderr and "--split" in result.stderr
    result = judge(other, "--data", SAMPLE, "--split", "train")
    assert result.code == 4 and "ranks no topic of nlps train in" in result.stderr
    result = judge(tmp_path / "none", "--data", SAMPLE)
    assert result.code == 2 and "there is no run directory or TREC run" in result.stderr
    result = judge(SAMPLE / "dev_set.json", "--data", SAMPLE)
    assert result.code == 4 and "a TREC run has lines `topic Q0 document rank score tag`" in result.stderr
    assert judge(run, "--split", "train").code == 2


def test_unknown_topics_and_documents_are_reported(run: Path, other: Path) -> None:
    other.write_text(other.read_text() + "\nnobody Q0 nothing 0 1 x\n608 Q0 nowhere 0 99999 x\n")
    result = judge(other, "--data", SAMPLE)
    assert result.code == 0
    assert "1 of the 11 topics of" in result.stderr and "2 of 11 documents" in result.stderr


def test_an_assignment_names_the_split_of_a_trec_run(other: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    members = {"task": "nlps", "split": "dev", "seed": 0, "shared": [], "topics": {"ann": ["608"]}}
    file.write_text(json.dumps(members))
    result = judge(other, "--data", SAMPLE, "--assignment", file)
    assert result.code == 0 and "Topic 1 of 1" in result.stdout


def test_adjudication_takes_topics_from_a_trec_run(indexed: Cli, other: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name, grade in (("ann", 0), ("ben", 1)):
        file = tmp_path / name
        file.write_text(f"608 0 101 {grade}\n")
        options = ("--format", "qrels", "--annotator", name, "--log", log, "--data", SAMPLE)
        assert indexed("judgments", "import", "nlps", file, *options).code == 0
    arguments = ["judgments", "adjudicate", "nlps", "--annotator", "kim", "--log", log, "--run", other,
                 "--data", SAMPLE, "--plain"]  # fmt: skip
    result = run_command(*arguments, typed="1\nq\n")
    assert result.code == 0 and "1 of 1 disputed document is decided" in result.stderr


# Pools


def test_a_pool_takes_run_directories_and_trec_runs(
    indexed: Cli, run: Path, other: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.trec"
    more.write_text("608 Q0 113 5 0.5 more\n608 Q0 112 5 0.75 more\nelsewhere Q0 113 0 1 more\n")
    out = tmp_path / "pool"
    result = indexed("judgments", "pool", run, more, "--depth", 2, "--out", out)
    assert result.code == 0, result.stderr
    assert f"1 of 2 topics is left out, because {run} does not have it" in result.stderr
    pooled, own = (read_rankings(path)["608"] for path in (out, run))
    assert set(pooled) == {*own[:2], "112", "113"} and set(pooled[:2]) == {own[0], "112"}
    assert indexed("runs", "verify", out).code == 0
    assert judge(out).code == 0


def test_a_pool_of_trec_runs_alone_needs_their_task(
    indexed: Cli, run: Path, other: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pool"
    result = indexed("judgments", "pool", other, run / "run.trec", "--out", out)
    assert result.code == 2 and "give its task with --task and its split with --split" in result.stderr
    assert indexed("judgments", "pool", other, "--task", "nlps", "--out", out).code == 2
    options = ("--task", "nlps", "--data", SAMPLE)
    result = indexed("judgments", "pool", other, "--split", "train", *options, "--out", out)
    assert result.code == 4 and "ranks no topic of nlps train" in result.stderr
    result = indexed("judgments", "pool", other, run / "run.trec", "--split", "dev", *options, "--depth", 3,
                     "--out", out)  # fmt: skip
    assert result.code == 0, result.stderr
    assert indexed("runs", "verify", out).code == 0
    judged = judge(out)
    assert judged.code == 0 and "the index has changed" not in judged.stderr
    other.write_text(other.read_text() + "\n608 Q0 nothing 0 99999 x\n")
    result = indexed("judgments", "pool", other, "--split", "dev", *options, "--out", tmp_path / "more")
    assert result.code == 0 and "documents (nothing) is not in the index" in result.stderr
    # A run directory in the same pool must be of the same split.
    result = indexed("judgments", "pool", other, run, "--split", "train", *options, "--out", tmp_path / "x")
    assert result.code == 4 and "another split" in result.stderr


# Scoring


def test_any_run_is_scored_against_qrels_as_by_trec_eval(
    offline: Cli, run: Path, other: Path, qrels: Path
) -> None:
    result = offline("evaluate", other, "--qrels", qrels, "--json")
    assert result.code == 0, result.stderr
    expected = by_trec_eval(other, qrels, "map", "ndcg_cut_10", "recip_rank", "P_10", "recall_100")
    output = result.json
    names = {"AP": "map", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "P@10": "P_10", "R@100": "recall_100"}
    for name, of_trec_eval in names.items():
        assert output["measures"][name] == pytest.approx(expected[of_trec_eval], abs=1e-12)
    assert output["task"] is None and output["split"] is None and output["topics"] == 10
    assert output["official"] == {"measure": "AP", "value": None, "values": {}, "honest": {}}
    # In the file of a run directory, too, equal scores are ordered as by trec_eval.
    own = offline("evaluate", run / "run.trec", "--qrels", qrels, "--json")
    assert own.json["measures"]["AP"] == output["measures"]["AP"]
    assert "official" not in offline("evaluate", other, "--qrels", qrels).stdout


def test_equal_scores_are_ordered_by_descending_id_with_a_warning(offline: Cli, tmp_path: Path) -> None:
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels"
    run.write_text("t Q0 a 1 1 x\nt Q0 b 2 1 x\nt Q0 c 3 1 x\n")
    qrels.write_text("t 0 a 1\n")
    result = offline("evaluate", run, "--qrels", qrels, "--measure", "RR", "--json")
    assert result.json["measures"] == {"RR": pytest.approx(1 / 3)}
    assert "documents with equal scores in 1 topic: they are ordered by descending id" in result.stderr
    run.write_text("t Q0 c 0 1 x\nt Q0 b 0 1 x\nt Q0 a 0 1 x\n")
    assert offline("evaluate", run, "--qrels", qrels, "--measure", "RR").stderr == ""


def test_negative_grades_and_topics_without_relevance_count_as_in_trec_eval(
    offline: Cli, tmp_path: Path
) -> None:
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels"
    run.write_text(
        "".join(f"{topic} Q0 d{number} 0 {9 - number} x\n" for topic in "abc" for number in range(4))
    )
    qrels.write_text("a 0 d1 2\na 0 d0 -2\nb 0 d1 0\nd 0 d1 1\n")
    result = offline("evaluate", run, "--qrels", qrels, "--measure", "AP", "--measure", "P@2", "--json")
    expected = by_trec_eval(run, qrels, "map", "P_2")
    assert result.json["measures"] == {
        "AP": pytest.approx(expected["map"]), "P@2": pytest.approx(expected["P_2"]),
    }  # fmt: skip
    warning = "1 of the 3 ranked topics has no grades and 1 topic with grades is not ranked: 2 are scored"
    assert warning in result.stderr


def test_a_trec_run_with_a_task_has_official_figures(
    offline: Cli, run: Path, other: Path, qrels: Path
) -> None:
    options = ("--task", "nlps", "--data", SAMPLE, "--split", "dev", "--cutoff", 50)
    result = offline("evaluate", other, "--qrels", qrels, *options, "--json")
    assert result.code == 0, result.stderr
    by_gold = offline("evaluate", run, "--cutoff", 50, "--json").json
    assert result.json["official"]["value"] == pytest.approx(by_gold["official"]["value"], abs=0.02)
    assert result.json["task"] == "nlps"
    without = offline("evaluate", other, "--qrels", qrels, "--task", "nlps", "--json")
    assert without.json["official"]["value"] is None
    assert "no official figure of" in without.stderr and "--data and --split" in without.stderr


def test_judgments_of_a_trec_run_need_its_task(offline: Cli, run: Path, other: Path, tmp_path: Path) -> None:
    judge(other, "--data", SAMPLE, typed="1\n0\nq\n")
    refused = offline("evaluate", other, "--judgments")
    assert refused.code == 2 and "give it with --task" in refused.stderr
    result = offline("evaluate", other, "--judgments", "--task", "nlps", "--json")
    assert result.code == 0 and result.json["topics"] == 1 and result.json["judged"]["documents"] == 2
    refused = offline("evaluate", other, "--judgments", "--task", "nlps", "--held-out")
    assert refused.code == 2 and "does not record its training topics" in refused.stderr


def test_the_gate_of_a_run_without_a_task_applies_to_its_first_measure(
    offline: Cli, other: Path, qrels: Path
) -> None:
    command = ("evaluate", other, "--qrels", qrels)
    value = offline(*command, "--json").json["measures"]["AP"]
    assert offline(*command, "--fail-under", value).code == 0
    assert offline(*command, "--fail-under", value + 0.001).code == 5
    assert offline(*command, "--measure", "Judged@100", "--measure", "AP", "--fail-under", 1).code == 5
    assert offline(*command, "--fail-under", "nan").code == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a Q0 d1 0 1 t\na Q0 d1 1 0 t\n", "duplicate document"),
        ("602\t101\n602\t102\n", "2 cells instead of 6"),
        ("", "empty file"),
        ("nobody Q0 d1 0 1 t\n", "ranks no judged topic"),
    ],
)
def test_invalid_runs_and_runs_of_other_topics_are_refused(
    offline: Cli, qrels: Path, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "x.trec"
    path.write_text(content)
    result = offline("evaluate", path, "--qrels", qrels)
    assert result.code == 4 and message in result.stderr and "Traceback" not in result.stderr


def test_ids_that_the_gold_of_a_task_can_not_contain_are_refused(
    offline: Cli, run: Path, other: Path, tmp_path: Path
) -> None:
    qrels, out = tmp_path / "qrels", tmp_path / "gold"
    qrels.write_text("608 0 nope 1\n")
    refused = offline("evaluate", run, "--qrels", qrels, "--cutoff", 50)
    assert refused.code == 4
    assert "nope is not a premise, because premises have whole numbers as ids" in refused.stderr
    arguments = ("--format", "qrels", "--annotator", "ann", "--lenient")
    assert offline("judgments", "import", "nlps", qrels, *arguments, "--data", SAMPLE).code == 0
    official = ("--format", "official", "--data", SAMPLE, "--split", "dev", "--out", out)
    refused = offline("judgments", "export", "nlps", *official)
    assert refused.code == 4 and "nope is not a premise" in refused.stderr and not out.exists()
    debates = SAMPLE.parent / "checkthat"
    debate = next((debates / "training").glob("*.tsv")).stem
    other.write_text(f"{debate} Q0 nope 0 1 x\n")
    qrels.write_text(f"{debate} 0 nope 1\n")
    options = ("--task", "checkthat", "--data", debates, "--split", "training")
    refused = offline("evaluate", other, "--qrels", qrels, *options)
    assert refused.code == 4 and "contain topics or documents that checkthat does not have" in refused.stderr
