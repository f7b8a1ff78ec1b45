"""`searchapp judgments import`, `imports` and `retract`: what came with a file can be taken back and brought back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.judging.view import JudgmentView
from tests.cli.conftest import SAMPLE, Cli, Result

TASK = "nlps"
KNOWN = {"608": ["101", "102"], "610": ["103"]}
"""Topics and documents of the sample."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    path = tmp_path / "ann.qrels"
    path.write_text("".join(f"{topic} 0 {one} 1\n" for topic, some in KNOWN.items() for one in some))
    return path


def take_in(run: Cli, log: Path, file: Path, *options: object, name: str | None = "ann") -> Result:
    whose = () if name is None else ("--format", "qrels", "--annotator", name)
    return run("judgments", "import", TASK, file, *whose, "--log", log, *options)


def take_back(run: Cli, log: Path, number: int) -> Result:
    return run("judgments", "retract", TASK, "--import", number, "--log", log, "--json")


def listed(run: Cli, log: Path) -> list[tuple[int, int, int]]:
    """Number, judgments, and how many of them hold, of each import."""
    result = run("judgments", "imports", TASK, "--log", log, "--json").json["imports"]
    return [(one["number"], one["events"], one["active"]) for one in result]


def events(log: Path) -> list[Event]:
    with JudgmentLog(log) as opened:
        return [event for _, event in opened.events()]


def held(log: Path, name: str = "ann") -> dict[str, int | None]:
    """What an annotator says of each document."""
    view = JudgmentView(events(log))
    result = {key[1]: view.opinion(name, *key) for key in view.judged_documents()}
    return {document: one.grade for document, one in result.items() if one is not None}


def judge(log: Path, document: str, grade: int, name: str = "ann") -> None:
    with JudgmentLog(log) as opened:
        Session(opened, TASK, Author(name)).grade([SeenDocument("608", document)], grade)


# Ids


def test_unknown_ids_are_refused_and_counted(cli: Cli, log: Path, qrels: Path) -> None:
    assert cli("index", TASK, "--data", SAMPLE).code == 0
    qrels.write_text(qrels.read_text() + "608 0 nothing 1\n999 0 nowhere 0\n999 0 101 1\n")
    result = take_in(cli, log, qrels, "--data", SAMPLE)
    assert result.code == 4
    assert "1 of 3 topics (999) is not in nlps train, dev (missing: test)" in result.stderr
    assert "2 of 5 documents (such as nothing) are not in the index " in result.stderr
    assert "--lenient" in result.stderr and "Traceback" not in result.stderr
    assert events(log) == []
    lenient = take_in(cli, log, qrels, "--data", SAMPLE, "--lenient", "--json")
    assert lenient.code == 0 and lenient.json["new"] == 6
    assert "warning" in lenient.stderr and "2 of 5 documents" in lenient.stderr
    # What the log has already is no news, and nobody is asked about it again.
    assert take_in(cli, log, qrels, "--data", SAMPLE).code == 0


def test_topics_outside_a_named_split_are_refused(offline: Cli, log: Path, qrels: Path) -> None:
    assert take_in(offline, log, qrels, "--data", SAMPLE, "--split", "train").code == 4
    assert take_in(offline, log, qrels, "--data", SAMPLE, "--split", "nonsense").code == 2
    assert take_in(offline, log, qrels, "--data", SAMPLE, "--split", "dev").code == 0


def test_without_an_index_documents_are_looked_up_in_the_files(offline: Cli, log: Path, qrels: Path) -> None:
    qrels.write_text("608 0 nothing 1\n")
    result = take_in(offline, log, qrels, "--data", SAMPLE)
    assert result.code == 4 and "1 of 1 document (nothing) is not in the files in" in result.stderr


def test_what_can_not_be_checked_is_told(offline: Cli, log: Path, qrels: Path) -> None:
    result = take_in(offline, log, qrels)
    assert result.code == 0 and len(held(log)) == 3
    for what in ("topics", "documents"):
        assert f"the {what} of {qrels} could not be checked" in result.stderr


def test_events_are_looked_up_as_grades_are(offline: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    for document in ("101", "nothing"):
        judge(log, document, 1)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    other = tmp_path / "other.sqlite"
    result = take_in(offline, other, out, "--data", SAMPLE, name=None)
    assert result.code == 4 and "1 of 2 documents (nothing)" in result.stderr and events(other) == []


# Taking back


def test_qrels_without_their_format_are_told(offline: Cli, log: Path, qrels: Path) -> None:
    qrels.write_bytes(b"\xef\xbb\xbf" + qrels.read_bytes().replace(b"\n", b"\r\n"))
    told = take_in(offline, log, qrels, name=None)
    assert told.code == 4 and told.stderr == (
        f"searchapp: {qrels}: line 1: another format: this is a line of qrels: import the file with "
        "--format qrels, and name the annotator with --annotator\n"
    )
    told = offline("judgments", "import", TASK, qrels, "--annotator", "ann", "--log", log)
    assert told.code == 2 and "or give another --format" in told.stderr
    assert take_in(offline, log, qrels, "--lenient").code == 0


def test_an_import_is_listed_and_taken_back(offline: Cli, log: Path, qrels: Path) -> None:
    judge(log, "101", 1)
    judge(log, "104", 0)
    first = take_in(offline, log, qrels)
    assert f"`searchapp judgments retract nlps --import 1 --log {log}` retracts it" in first.stderr
    assert listed(offline, log) == [(1, 2, 2)]
    before = len(events(log))
    assert take_back(offline, log, 1).json == {"task": TASK, "import": 1, "retracted": 2}
    assert held(log) == {"101": 1, "104": 0}  # what ann said herself stays
    assert len(events(log)) == before + 2 and {event.action for event in events(log)[before:]} == {
        Action.retract
    }
    assert listed(offline, log) == [(1, 2, 0)]
    again = take_back(offline, log, 1)
    assert again.code == 0 and again.json["retracted"] == 0 and "has no current judgments" in again.stderr
    table = offline("judgments", "imports", TASK, "--log", log).stdout
    assert "current" in table and str(qrels) in table and "qrels" in table


def test_what_was_said_since_holds_when_an_import_is_taken_back(offline: Cli, log: Path, qrels: Path) -> None:
    assert take_in(offline, log, qrels).code == 0
    judge(log, "101", 0)
    assert take_back(offline, log, 1).json["retracted"] == 3
    assert held(log) == {"101": 0}


def test_a_grade_that_an_import_replaced_holds_again(offline: Cli, log: Path, tmp_path: Path) -> None:
    judge(log, "101", 1)
    path = tmp_path / "later.jsonl"
    later = Author("ann").event(TASK, "608", "101", Action.grade, grade=0)
    path.write_text(json.dumps(later.to_json()))
    assert take_in(offline, log, path, name=None).code == 0 and held(log) == {"101": 0}
    assert take_back(offline, log, 1).code == 0 and held(log) == {"101": 1}


@pytest.mark.parametrize("kind", ["qrels", "jsonl"])
def test_a_retracted_import_can_be_repeated(
    offline: Cli, log: Path, qrels: Path, tmp_path: Path, kind: str
) -> None:
    file, name = qrels, "ann"
    if kind == "jsonl":
        assert take_in(offline, tmp_path / "first", qrels).code == 0
        file = tmp_path / "all.jsonl"
        offline("judgments", "export", TASK, "--log", tmp_path / "first", "--out", file)

    def again() -> Result:
        return take_in(offline, log, file, "--json", name=None if kind == "jsonl" else name)

    assert again().json["import"] == 1
    whole = held(log)
    assert len(whole) == 3
    for number in (1, 2, 3):
        assert take_back(offline, log, number).json["retracted"] == 3
        assert held(log) == {}
        assert again().json["import"] == number + 1
        assert held(log) == whole
        assert again().json == {
            "file": str(file), "events": 3, "new": 0, "import": None, "undone": 0,
        }  # fmt: skip


def test_what_the_annotator_has_undone_is_not_brought_back(offline: Cli, log: Path, qrels: Path) -> None:
    assert take_in(offline, log, qrels).code == 0
    with JudgmentLog(log) as opened:
        Session(opened, TASK, Author("ann")).undo()
    assert len(held(log)) == 2
    result = take_in(offline, log, qrels, "--json")
    assert result.json["new"] == 0 and result.json["undone"] == 1
    assert "none of them new; 1 was undone since, and stays so" in result.stderr
    assert len(held(log)) == 2


def test_retracted_imports_are_exported(offline: Cli, log: Path, qrels: Path, tmp_path: Path) -> None:
    judge(log, "104", 0)
    assert take_in(offline, log, qrels).code == 0
    assert take_back(offline, log, 1).code == 0
    out, other = tmp_path / "all.jsonl", tmp_path / "other"
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    for new in (7, 0):
        assert take_in(offline, other, out, "--json", name=None).json["new"] == new
        assert held(other) == held(log) == {"104": 0}


def test_retractions_in_a_file_survive_a_round_trip(offline: Cli, log: Path, tmp_path: Path) -> None:
    first, out = tmp_path / "first", tmp_path / "all.jsonl"
    judge(first, "101", 1)
    with JudgmentLog(first) as opened:
        session = Session(opened, TASK, Author("ann"))
        session.grade([SeenDocument("608", "102")], 1)
        session.undo()
    assert offline("judgments", "export", TASK, "--log", first, "--out", out).code == 0
    assert held(first) == {"101": 1}
    for number in (1, 2, 3):
        assert take_in(offline, log, out, "--json", name=None).json["import"] == number
        assert held(log) == {"101": 1}
        assert take_in(offline, log, out, "--json", name=None).json["new"] == 0
        assert take_back(offline, log, number).code == 0
        assert held(log) == {}


def test_retracting_a_file_undoes_its_retractions(offline: Cli, log: Path, tmp_path: Path) -> None:
    judge(log, "101", 1)
    (grade,) = events(log)
    undo = Author("ann").event(TASK, "608", "101", Action.retract, refers=grade.id)
    path = tmp_path / "undo.jsonl"
    path.write_text(json.dumps(undo.to_json()))
    for number in (1, 2):
        assert take_in(offline, log, path, "--json", name=None).json["import"] == number
        assert held(log) == {}
        assert take_back(offline, log, number).code == 0
        assert held(log) == {"101": 1}


def test_an_import_that_is_not_there_is_refused(offline: Cli, log: Path, qrels: Path) -> None:
    assert take_in(offline, log, qrels).code == 0
    result = take_back(offline, log, 2)
    assert (
        result.code == 2 and "has no import 2 of nlps" in result.stderr and "choose from 1" in result.stderr
    )
    other = offline("judgments", "import", "explanation-2021", qrels, "--format", "qrels", "--annotator", "a",
                    "--log", log)  # fmt: skip
    assert other.code == 0
    result = take_back(offline, log, 2)  # which is one of explanation-2021
    assert result.code == 2 and "no import 2 of nlps" in result.stderr
    assert offline("judgments", "imports", TASK, "--log", log.with_name("none")).code == 4


def test_a_refused_file_is_no_import(offline: Cli, log: Path, qrels: Path) -> None:
    assert take_in(offline, log, qrels).code == 0
    bad = qrels.with_name("bad.qrels")
    bad.write_text("608 0 105 1\n608 0 101 0\n")
    assert take_in(offline, log, bad).code == 4
    assert listed(offline, log) == [(1, 3, 3)]
