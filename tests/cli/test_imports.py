"""`searchapp judgments import`, `imports` and `retract`: imports can be retracted and repeated."""

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
    lines = [f"{topic} 0 {document} 1\n" for topic, documents in KNOWN.items() for document in documents]
    path.write_text("".join(lines))
    return path


def import_file(run: Cli, log: Path, file: Path, *options: object, name: str | None = "ann") -> Result:
    annotator = () if name is None else ("--format", "qrels", "--annotator", name)
    return run("judgments", "import", TASK, file, *annotator, "--log", log, *options)


def retract(run: Cli, log: Path, number: int) -> Result:
    return run("judgments", "retract", TASK, "--import", number, "--log", log, "--json")


def list_imports(run: Cli, log: Path) -> list[tuple[int, int, int]]:
    """Return number, judgments and current judgments of each import."""
    imports = run("judgments", "imports", TASK, "--log", log, "--json").json["imports"]
    return [(import_["number"], import_["events"], import_["active"]) for import_ in imports]


def events(log: Path) -> list[Event]:
    with JudgmentLog(log) as judgments:
        return [event for _, event in judgments.events()]


def grades(log: Path, name: str = "ann") -> dict[str, int | None]:
    """Return the current grade of an annotator for each document."""
    view = JudgmentView(events(log))
    opinions = {key[1]: view.opinion(name, *key) for key in view.judged_documents()}
    return {document: opinion.grade for document, opinion in opinions.items() if opinion is not None}


def judge(log: Path, document: str, grade: int, name: str = "ann") -> None:
    with JudgmentLog(log) as judgments:
        Session(judgments, TASK, Author(name)).grade([SeenDocument("608", document)], grade)


# Ids


def test_unknown_ids_are_refused_and_counted(cli: Cli, log: Path, qrels: Path) -> None:
    assert cli("index", TASK, "--data", SAMPLE).code == 0
    qrels.write_text(qrels.read_text() + "608 0 nothing 1\n999 0 nowhere 0\n999 0 101 1\n")
    result = import_file(cli, log, qrels, "--data", SAMPLE)
    assert result.code == 4
    assert "1 of 3 topics (999) is not in nlps train, dev (missing: test)" in result.stderr
    assert "2 of 5 documents (such as nothing) are not in the index " in result.stderr
    assert "--lenient" in result.stderr and "Traceback" not in result.stderr
    assert events(log) == []
    lenient = import_file(cli, log, qrels, "--data", SAMPLE, "--lenient", "--json")
    assert lenient.code == 0 and lenient.json["new"] == 6
    assert "warning" in lenient.stderr and "2 of 5 documents" in lenient.stderr
    # Judgments that the log has are not checked again.
    assert import_file(cli, log, qrels, "--data", SAMPLE).code == 0


def test_topics_outside_a_named_split_are_refused(offline: Cli, log: Path, qrels: Path) -> None:
    assert import_file(offline, log, qrels, "--data", SAMPLE, "--split", "train").code == 4
    assert import_file(offline, log, qrels, "--data", SAMPLE, "--split", "nonsense").code == 2
    assert import_file(offline, log, qrels, "--data", SAMPLE, "--split", "dev").code == 0


def test_without_an_index_documents_are_checked_against_the_files(
    offline: Cli, log: Path, qrels: Path
) -> None:
    qrels.write_text("608 0 nothing 1\n")
    result = import_file(offline, log, qrels, "--data", SAMPLE)
    assert result.code == 4 and "1 of 1 document (nothing) is not in the files in" in result.stderr


def test_ids_that_can_not_be_checked_are_reported(offline: Cli, log: Path, qrels: Path) -> None:
    result = import_file(offline, log, qrels)
    assert result.code == 0 and len(grades(log)) == 3
    for kind in ("topics", "documents"):
        assert f"the {kind} of {qrels} could not be checked" in result.stderr


def test_ids_of_events_are_checked_like_those_of_grades(offline: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    for document in ("101", "nothing"):
        judge(log, document, 1)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    other = tmp_path / "other.sqlite"
    result = import_file(offline, other, out, "--data", SAMPLE, name=None)
    assert result.code == 4 and "1 of 2 documents (nothing)" in result.stderr and events(other) == []


# Retractions


def test_qrels_without_their_format_are_refused(offline: Cli, log: Path, qrels: Path) -> None:
    qrels.write_bytes(b"\xef\xbb\xbf" + qrels.read_bytes().replace(b"\n", b"\r\n"))
    refused = import_file(offline, log, qrels, name=None)
    assert refused.code == 4 and refused.stderr == (
        f"searchapp: {qrels}: line 1: another format: this is a line of qrels: import the file with "
        "--format qrels, and name the annotator with --annotator\n"
    )
    refused = offline("judgments", "import", TASK, qrels, "--annotator", "ann", "--log", log)
    assert refused.code == 2 and "or give another --format" in refused.stderr
    assert import_file(offline, log, qrels, "--lenient").code == 0


def test_an_import_is_listed_and_can_be_retracted(offline: Cli, log: Path, qrels: Path) -> None:
    judge(log, "101", 1)
    judge(log, "104", 0)
    first = import_file(offline, log, qrels)
    assert f"`searchapp judgments retract nlps --import 1 --log {log}` retracts it" in first.stderr
    assert list_imports(offline, log) == [(1, 2, 2)]
    before = len(events(log))
    assert retract(offline, log, 1).json == {"task": TASK, "import": 1, "retracted": 2}
    assert grades(log) == {"101": 1, "104": 0}  # the judgments of ann herself remain
    assert len(events(log)) == before + 2 and {event.action for event in events(log)[before:]} == {
        Action.retract
    }
    assert list_imports(offline, log) == [(1, 2, 0)]
    again = retract(offline, log, 1)
    assert again.code == 0 and again.json["retracted"] == 0 and "has no current judgments" in again.stderr
    table = offline("judgments", "imports", TASK, "--log", log).stdout
    assert "current" in table and str(qrels) in table and "qrels" in table


def test_later_judgments_remain_when_an_import_is_retracted(offline: Cli, log: Path, qrels: Path) -> None:
    assert import_file(offline, log, qrels).code == 0
    judge(log, "101", 0)
    assert retract(offline, log, 1).json["retracted"] == 3
    assert grades(log) == {"101": 0}


def test_a_grade_that_an_import_replaced_is_restored(offline: Cli, log: Path, tmp_path: Path) -> None:
    judge(log, "101", 1)
    path = tmp_path / "later.jsonl"
    later = Author("ann").event(TASK, "608", "101", Action.grade, grade=0)
    path.write_text(json.dumps(later.to_json()))
    assert import_file(offline, log, path, name=None).code == 0 and grades(log) == {"101": 0}
    assert retract(offline, log, 1).code == 0 and grades(log) == {"101": 1}


@pytest.mark.parametrize("kind", ["qrels", "jsonl"])
def test_a_retracted_import_can_be_repeated(
    offline: Cli, log: Path, qrels: Path, tmp_path: Path, kind: str
) -> None:
    file, name = qrels, "ann"
    if kind == "jsonl":
        assert import_file(offline, tmp_path / "first", qrels).code == 0
        file = tmp_path / "all.jsonl"
        offline("judgments", "export", TASK, "--log", tmp_path / "first", "--out", file)

    def again() -> Result:
        return import_file(offline, log, file, "--json", name=None if kind == "jsonl" else name)

    assert again().json["import"] == 1
    imported = grades(log)
    assert len(imported) == 3
    for number in (1, 2, 3):
        assert retract(offline, log, number).json["retracted"] == 3
        assert grades(log) == {}
        assert again().json["import"] == number + 1
        assert grades(log) == imported
        assert again().json == {
            "file": str(file), "events": 3, "new": 0, "import": None, "undone": 0,
        }  # fmt: skip


def test_judgments_that_the_annotator_has_undone_are_not_imported_again(
    offline: Cli, log: Path, qrels: Path
) -> None:
    assert import_file(offline, log, qrels).code == 0
    with JudgmentLog(log) as judgments:
        Session(judgments, TASK, Author("ann")).undo()
    assert len(grades(log)) == 2
    result = import_file(offline, log, qrels, "--json")
    assert result.json["new"] == 0 and result.json["undone"] == 1
    assert "none of them new; 1 was undone since, and stays so" in result.stderr
    assert len(grades(log)) == 2


def test_retracted_imports_are_exported(offline: Cli, log: Path, qrels: Path, tmp_path: Path) -> None:
    judge(log, "104", 0)
    assert import_file(offline, log, qrels).code == 0
    assert retract(offline, log, 1).code == 0
    out, other = tmp_path / "all.jsonl", tmp_path / "other"
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    for new in (7, 0):
        assert import_file(offline, other, out, "--json", name=None).json["new"] == new
        assert grades(other) == grades(log) == {"104": 0}


def test_retractions_in_a_file_survive_a_round_trip(offline: Cli, log: Path, tmp_path: Path) -> None:
    first, out = tmp_path / "first", tmp_path / "all.jsonl"
    judge(first, "101", 1)
    with JudgmentLog(first) as judgments:
        session = Session(judgments, TASK, Author("ann"))
        session.grade([SeenDocument("608", "102")], 1)
        session.undo()
    assert offline("judgments", "export", TASK, "--log", first, "--out", out).code == 0
    assert grades(first) == {"101": 1}
    for number in (1, 2, 3):
        assert import_file(offline, log, out, "--json", name=None).json["import"] == number
        assert grades(log) == {"101": 1}
        assert import_file(offline, log, out, "--json", name=None).json["new"] == 0
        assert retract(offline, log, number).code == 0
        assert grades(log) == {}


def test_retracting_a_file_undoes_its_retractions(offline: Cli, log: Path, tmp_path: Path) -> None:
    judge(log, "101", 1)
    (grade,) = events(log)
    undo = Author("ann").event(TASK, "608", "101", Action.retract, refers=grade.id)
    path = tmp_path / "undo.jsonl"
    path.write_text(json.dumps(undo.to_json()))
    for number in (1, 2):
        assert import_file(offline, log, path, "--json", name=None).json["import"] == number
        assert grades(log) == {}
        assert retract(offline, log, number).code == 0
        assert grades(log) == {"101": 1}


def test_an_unknown_import_is_refused(offline: Cli, log: Path, qrels: Path) -> None:
    assert import_file(offline, log, qrels).code == 0
    result = retract(offline, log, 2)
    assert result.code == 2
    assert "has no import 2 of nlps" in result.stderr and "choose from 1" in result.stderr
    other = offline("judgments", "import", "explanation-2021", qrels, "--format", "qrels", "--annotator", "a",
                    "--log", log)  # fmt: skip
    assert other.code == 0
    result = retract(offline, log, 2)  # an import of explanation-2021
    assert result.code == 2 and "no import 2 of nlps" in result.stderr
    assert offline("judgments", "imports", TASK, "--log", log.with_name("none")).code == 4


def test_a_refused_file_is_no_import(offline: Cli, log: Path, qrels: Path) -> None:
    assert import_file(offline, log, qrels).code == 0
    bad = qrels.with_name("bad.qrels")
    bad.write_text("608 0 105 1\n608 0 101 0\n")
    assert import_file(offline, log, bad).code == 4
    assert list_imports(offline, log) == [(1, 3, 3)]
