"""`searchapp judgments calibrate` with prompts; the screen is tested in tests/tui."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import SAMPLE, Cli, Result, run_command

pytestmark = pytest.mark.shared_indexes

SET = ("--data", SAMPLE, "--split", "dev", "--size", 6, "--repeats", 2)


def calibrate(name: str, typed: str, *options: object) -> Result:
    return run_command(
        "judgments", "calibrate", "nlps", *SET, "--annotator", name, "--plain", *options, typed=typed
    )


def test_annotators_judge_the_same_documents_with_feedback(indexed: Cli, tmp_path: Path) -> None:
    first = calibrate("ann", "1\n1\n1\nq\n")
    assert first.code == 0, first.stderr
    assert first.stdout.count("known grade is ") == 3 and "Example: " in first.stdout
    assert "not all documents are judged: the same command goes on" in first.stderr
    # The first grade counts, not the correction after the feedback.
    rest = calibrate("ann", "1\nu\n0\n1\n1\nq\n1\n1\nq\n", "--pass", 0.5)
    assert rest.code == 5, rest.stderr
    assert "ann: kappa 0.0000 on 6 of 6 documents misses the pass mark 0.5" in rest.stderr
    assert "2 documents again" in rest.stdout
    calibrate("ben", "1\n0\n1\n0\n1\n0\nq\n0\n1\nq\n")
    results = indexed("judgments", "calibrate", "nlps", *SET, "--results", "--json").json
    ann, ben = results["annotators"]
    assert (ann["gold"]["documents"], ann["gold"]["share"], ann["gold"]["kappa"]) == (6, 0.5, 0.0)
    assert (ann["repeated"]["documents"], ann["repeated"]["share"]) == (2, 1.0)
    assert ben["gold"]["documents"] == 6
    assert results["pairs"][0]["annotators"] == ["ann", "ben"] and results["pairs"][0]["share"] == 0.5
    # The study has no judgments.
    for command in ("stats", "agreement"):
        assert "has no judgments of nlps" in indexed("judgments", command, "nlps").stderr
    with JudgmentLog(tmp_path / "home" / "judgments.sqlite") as log:
        assert {event.task for _, event in log.events()} == {results["name"], f"{results['name']} again"}
    assert (
        indexed("judgments", "calibrate", "nlps", *SET, "--results", "--seed", 5, "--json").json["annotators"]
        == []
    )


def test_experts_judgments_can_be_the_known_grades(indexed: Cli, run: Path) -> None:
    judged = run_command(
        "judge", "nlps", "--run", run, "--annotator", "kim", "--plain", typed="1\n0\n1\n0\nq\n"
    )
    assert judged.code == 0, judged.stderr
    options = ("--expert", "kim", "--run", run, "--size", 4, "--repeats", 0)
    assert calibrate("ann", "1\n1\n1\n1\nq\n", *options).code == 0
    result = calibrate("ann", "", *options, "--results", "--json")
    assert result.json["annotators"][0]["gold"]["share"] == 0.5
    mixed = calibrate("ann", "q\n", *options, "--json")
    assert mixed.code == 2 and "--json requires --results" in mixed.stderr
    assert run_command("judgments", "stats", "nlps", "--json").json["events"] == 4
    wrong = calibrate("ann", "q\n", "--expert", "kin")
    assert wrong.code == 2 and "nlps has no annotator 'kin'" in wrong.stderr
    few = calibrate("ann", "q\n", *options, "--size", 5)
    assert few.code == 2 and "4 documents with a known grade, but 5 are wanted" in few.stderr
