"""`searchapp judgments report`: numbers, labels, hostile text and rejected files."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Detail, Kind
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import Cli, Result

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"

TASK = "explanation-2021"

GRADES = {
    ("ann", Kind.person): {"d1": 2, "d2": 0, "d3": 1},
    (HOSTILE, Kind.person): {"d1": 2, "d2": 2, "d3": 1},
    ("bot", Kind.model): {"d2": 1},
    ("solo", Kind.model): {"d9": 1},
}

CALIBRATION = {
    "task": TASK,
    "documents": 20,
    "pass": 0.6,
    "annotators": [
        {
            "annotator": "ann",
            "gold": {"documents": 20, "share": 0.9, "kappa": 0.7331, "low": 0.4, "high": 1.0},
            "repeated": {"documents": 0, "share": "nan", "kappa": "nan", "low": "nan", "high": "nan"},
            "bias": -0.1,
            "passed": True,
        }
    ],
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite"
    with JudgmentLog(path) as events:
        for number, ((name, kind), grades) in enumerate(GRADES.items()):
            made = [
                Author(name, kind).event(TASK, "t1", document, Action.grade, grade=grade, rank=1)
                for document, grade in grades.items()
            ]
            events.append(made, [Detail(event.id, "guidelines", {"digest": f"v{number}"}) for event in made])
        events.append([Author("kim").event(TASK, "t1", "d2", Action.adjudicate, grade=2)])
    return path


def report(cli: Cli, log: Path, *options: object) -> tuple[Result, str]:
    out = log.with_name("report.html")
    result = cli("judgments", "report", TASK, "--log", log, "--out", out, *options)
    return result, out.read_text(encoding="utf-8") if out.exists() else ""


def test_a_report_has_people_and_labelled_models_apart(offline: Cli, log: Path) -> None:
    result, page = report(offline, log, "--json")
    assert result.code == 0, result.stderr
    assert "the guidelines changed during the study" in result.stderr
    assert result.json == offline("judgments", "audit", TASK, "--log", log, "--json").json
    people, models = (
        page.split(f'<section id="{name}"')[1].split("</section>")[0] for name in ("people", "models")
    )
    assert "bot (a model)" in models and "bot" not in people
    disputed = page.split('<section id="disputed"')[1].split("</section>")[0]
    for part in ("1 of 1 disputed document is decided", "bot: 1", "2 by kim", "ann: 0"):
        assert part in disputed, part
    assert "the guidelines changed during the study" in page and "below 2 s count as too fast" in page
    assert 'id="calibration"' not in page
    # Only `bot` judged a document that people judged: its decision has the grade 2.
    trust = page.split('<section id="trust-1"')[1].split("</section>")[0]
    assert "Trust in bot" in trust and "people graded, bot graded 1 (33.3%)" in trust and "-1.0000" in trust
    assert 'id="trust-2"' not in page
    command = ["judgments", "trust", TASK, "bot", "--log", str(log), "--json"]
    assert f"searchapp {shlex.join(command)}" in html.unescape(page)
    assert offline(*command).json["overall"]["bias"] == -1


def test_a_report_is_harmless_and_the_same_every_time(offline: Cli, log: Path) -> None:
    _, page = report(offline, log)
    assert page.count("<script>") == 1 and "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page and "\u202e" not in page
    assert "default-src &#39;none&#39;" in page
    assert not re.findall(r'(src|href)="(?!#|data:,)', page)
    refused, _ = report(offline, log)
    assert refused.code == 2 and "exists already" in refused.stderr
    assert report(offline, log, "--overwrite")[1] == page


def test_a_report_shows_the_results_of_a_calibration(offline: Cli, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps(CALIBRATION))
    result, page = report(offline, log, "--calibration", file)
    assert result.code == 0, result.stderr
    section = page.split('<section id="calibration"')[1].split("</section>")[0]
    assert "0.7331" in section and "passed" in section and "The pass mark on kappa is 0.6" in section


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "nlps"}, "the calibration is of the task 'nlps', not 'explanation-2021'"),
        ({"annotators": [{"annotator": "ann"}]}, "not the results of a calibration (KeyError('gold'))"),
        ({"documents": "many"}, "not the results of a calibration"),
        ({"annotators": 3}, "not the results of a calibration"),
    ],
)
def test_a_wrong_calibration_is_rejected(
    offline: Cli, log: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps({**CALIBRATION, **change}))
    result, page = report(offline, log, "--calibration", file)
    assert result.code == 4 and words in result.stderr and str(file) in result.stderr
    assert not page
