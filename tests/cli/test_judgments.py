"""`searchapp judgments`: exports, imports, agreement, decisions, pools, assignments and scoring."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from tests.cli.conftest import SAMPLE, Cli, read_rankings, run_command

pytestmark = pytest.mark.shared_indexes

TASK = "explanation-2021"
"""A task with grades from 0 to 6."""

GRADES = {"ann": {"d1": 2, "d2": 0, "d3": 1}, "ben": {"d1": 2, "d2": 2, "d3": 1}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in which two annotators and a model have judged documents of a topic."""
    path = tmp_path / "log.sqlite"
    with JudgmentLog(path) as events:
        for name, grades in GRADES.items():
            session = Session(events, TASK, Author(name))
            for rank, (document, grade) in enumerate(grades.items(), 1):
                session.grade([SeenDocument("t1", document, "run", rank)], grade)
        Session(events, TASK, Author("bot", Kind.model)).grade([SeenDocument("t1", "d2")], 0)
    return path


def rows(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


def events_of(log: Path) -> list[tuple[int, Event]]:
    with JudgmentLog(log) as events:
        return list(events.events())


@pytest.mark.own_indexes
def test_an_exported_log_can_be_imported_without_loss(offline: Cli, log: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "all.jsonl", tmp_path / "again.sqlite"
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    result = offline("judgments", "import", TASK, out, "--log", again, "--json")
    assert result.json == {"file": str(out), "events": 7, "new": 7, "import": 1, "undone": 0}
    assert offline("judgments", "import", TASK, out, "--log", again, "--json").json["new"] == 0
    assert events_of(again) == events_of(log)


def test_a_file_that_contradicts_the_log_is_refused_entirely(offline: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    offline("judgments", "export", TASK, "--log", log, "--out", out)
    lines = out.read_text().splitlines()
    changed = {**json.loads(lines[1]), "grade": 3}
    new = {**json.loads(lines[2]), "id": "new"}
    out.write_text("\n".join([json.dumps(new), json.dumps(changed), '{"id": 1}', "no json"]))
    result = offline("judgments", "import", TASK, out, "--log", log)
    assert result.code == 4
    for part in ("line 2", "a different event with the id", "line 3", "line 4"):
        assert part in result.stderr
    assert len(events_of(log)) == 7


def test_qrels_have_aggregated_grades_and_trec_has_all_grades(
    offline: Cli, log: Path, tmp_path: Path
) -> None:
    qrels, trec = tmp_path / "qrels", tmp_path / "trec"
    assert offline("judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", qrels).code == 0
    assert rows(qrels) == [["t1", "0", "d1", "2"], ["t1", "0", "d2", "0"], ["t1", "0", "d3", "1"]]
    offline(
        "judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", qrels, "--overwrite",
        "--aggregation", "unanimous",
    )  # fmt: skip
    assert [row[2] for row in rows(qrels)] == ["d1", "d3"]
    offline("judgments", "export", TASK, "--format", "trec", "--log", log, "--out", trec)
    assert ["t1", "ben", "d2", "2"] in rows(trec) and ["t1", "bot", "d2", "0"] in rows(trec)
    assert len(rows(trec)) == 7


@pytest.mark.own_indexes
def test_contradicting_qrels_are_refused(offline: Cli, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("t1 0 d1 2\nt2 0 d9 1\n")
    arguments = ("judgments", "import", TASK, path, "--format", "qrels", "--annotator", "ann", "--log", log)
    counts = {"file": str(path), "events": 2, "new": 1, "import": 1, "undone": 0}
    assert offline(*arguments, "--json").json == counts
    assert offline(*arguments, "--json").json == {**counts, "new": 0, "import": None}
    path.write_text("t1 0 d1 0\nt2 0 d8 1\n")
    result = offline(*arguments)
    assert result.code == 4 and "grade 0 in the file, but grade 2 by ann in the log" in result.stderr
    assert len(events_of(log)) == 8
    assert offline("judgments", "import", TASK, path, "--format", "qrels", "--log", log).code == 2


@pytest.mark.own_indexes
def test_messages_about_one_judgment_are_in_the_singular(offline: Cli, tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "grades"
    path.write_text("t1 0 d1 2\n")
    command = ("judgments", "import", TASK, path, "--format", "qrels", "--annotator", "ann", "--log", log)
    assert f"{path}: 1 judgment, 1 of them new" in offline(*command).stderr
    assert f"{path}: 1 judgment, none of them new" in offline(*command).stderr
    for format_ in ("qrels", "trec", "jsonl"):
        out = tmp_path / format_
        result = offline("judgments", "export", TASK, "--format", format_, "--log", log, "--out", out)
        assert result.code == 0 and f"wrote 1 line to {out}" in result.stderr, result.stderr
    assert "1 event, all intact" in offline("judgments", "verify", "--log", log).stderr
    retracted = offline("judgments", "retract", TASK, "--import", 1, "--log", log)
    assert f"retracted 1 judgment of import 1 ({path})" in retracted.stderr


@pytest.mark.own_indexes
def test_grades_stay_in_the_order_of_their_file(offline: Cli, tmp_path: Path) -> None:
    # The figures of some scorers depend on the order of the gold.
    log, path, out = tmp_path / "log", tmp_path / "qrels", tmp_path / "out"
    path.write_text("".join(f"t{number % 3} 0 d{number * 7 % 50} 1\n" for number in range(50)))
    options = ("--format", "qrels", "--annotator", "ann", "--log", log)
    assert offline("judgments", "import", TASK, path, *options).code == 0
    assert offline("judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", out).code == 0
    assert rows(out) == [row for topic in ("t0", "t1", "t2") for row in rows(path) if row[0] == topic]


def test_statistics_count_current_judgments(offline: Cli, log: Path) -> None:
    with JudgmentLog(log) as events:
        session = Session(events, TASK, Author("ann"))
        session.undo()
        session.cant_tell(SeenDocument("t2", "d1"))
    result = {
        annotator["annotator"]: annotator
        for annotator in offline("judgments", "stats", TASK, "--log", log, "--json").json["annotators"]
    }
    assert (result["ann"]["graded"], result["ann"]["cant_tell"], result["ann"]["topics"]) == (2, 1, 2)
    assert result["ben"]["grades"] == {"2": 2, "1": 1}
    assert result["bot"]["kind"] == "model"
    assert "can't tell" in offline("judgments", "stats", TASK, "--log", log).stdout


@pytest.mark.own_indexes
def test_an_audit_without_an_index_warns_and_labels_models(offline: Cli, log: Path) -> None:
    options = ("judgments", "audit", TASK, "--log", log)
    printed = offline(*options)
    assert printed.code == 0 and "bot (a model)" in printed.stdout
    assert "only judgments below 2 s count as too fast" in printed.stderr
    result = offline(*options, "--json").json
    ann, ben, bot = result["annotators"]
    assert (ann["others"]["documents"], ann["others"]["share"], bot["pace"]) == (3, 2 / 3, None)
    # Tests judge at once: within 0.05 s, or faster than 2 s.
    assert ben["pace"]["at_once"] + ben["pace"]["too_fast"] == 2
    patient = offline(*options, "--least-seconds", 0, "--json")
    assert patient.json["annotators"][1]["pace"]["too_fast"] == 0
    assert "below 0 s" in patient.stderr
    for name, value in (("--window", 1), ("--words-per-minute", 0), ("--least-seconds", -1)):
        refused = offline(*options, name, value)
        assert refused.code == 2 and name in refused.stderr
    assert "has no annotator 'be'" in offline(*options, "--annotator", "be").stderr


def test_an_audit_reads_the_lengths_of_texts_from_the_index(indexed: Cli, run: Path, tmp_path: Path) -> None:
    (topic, ranking), *_ = read_rankings(run).items()
    with JudgmentLog(tmp_path / "log.sqlite") as events:
        for number, document in enumerate(ranking[:2]):
            author = Author("ann").event("nlps", topic, document, Action.grade, grade=1, rank=number + 1)
            time = f"2026-03-01T09:00:{10 * number:02}+00:00"
            events.append([replace(author, time=time)])
    options = ("judgments", "audit", "nlps", "--log", tmp_path / "log.sqlite", "--json")
    assert indexed(*options).json["annotators"][0]["pace"]["too_fast"] == 0
    slow = indexed(*options, "--words-per-minute", 1)
    assert (slow.json["annotators"][0]["pace"]["too_fast"], slow.stderr) == (1, "")


def test_agreement_is_computed_between_people_and_models(offline: Cli, log: Path) -> None:
    result = offline(
        "judgments", "agreement", TASK, "--log", log, "--annotator", "ann", "--annotator", "ben", "--json"
    ).json
    (pair,) = result["pairs"]
    # ann 2 0 1, ben 2 2 1: agreement 2/3, by chance (1/3)(2/3) + (1/3)(1/3) = 1/3
    assert pair["documents"] == 3 and pair["kappa"] == pytest.approx(0.5)
    assert result["disputed"] == [
        {"topic": "t1", "document": "d2", "grades": {"ann": 0, "ben": 2}, "decided": None}
    ]
    printed = offline("judgments", "agreement", TASK, "--log", log).stdout
    assert "ann and bot" in printed and "d2" in printed
    single = offline("judgments", "agreement", TASK, "--log", log, "--annotator", "ann")
    assert "no document has grades of several annotators" in single.stdout and "nan" not in single.stdout
    refused = offline("judgments", "agreement", TASK, "--log", log, "--annotator", "eve")
    assert refused.code == 2 and "choose from ann, ben, bot" in refused.stderr


def test_agreement_marks_decided_disagreements(offline: Cli, log: Path) -> None:
    command = ("judgments", "agreement", TASK, "--log", log, "--annotator", "ann", "--annotator", "ben")
    assert "0 of 1 disputed document are decided" in offline(*command).stdout
    decide = ("judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve")
    assert offline(*decide, "--topic", "t1", "--document", "d2", "--grade", 1).code == 0
    (dispute,) = offline(*command, "--json").json["disputed"]
    assert dispute["decided"] == {"by": "eve", "grade": 1}
    printed = offline(*command).stdout
    assert re.search(r"t1 +d2 +ann: 0 +ben: 2 +1 by eve\n1 of 1 disputed document is decided\n", printed), (
        printed
    )


def test_agreement_counts_grades_that_were_given_in_view_of_others(offline: Cli, log: Path) -> None:
    both = ("--annotator", "ann", "--annotator", "ben")
    printed = offline("judgments", "agreement", TASK, "--log", log, *both).stdout
    assert "it is not recorded whether grades were given in view of others' judgments" in printed
    with JudgmentLog(log) as events:
        for name, saw in (("ann", False), ("ben", True)):
            session = Session(events, TASK, Author(name))
            session.grade(
                [SeenDocument("t1", "d1", "run", 1, saw), SeenDocument("t9", name, "run", 1, saw)], 2
            )
            session.grade([SeenDocument("t1", "d2", "run", 1, False)], 1)
    result = offline("judgments", "agreement", TASK, "--log", log, *both, "--json").json["saw_others"]
    assert result == {
        "grades": 6,
        "saw_others": 1,
        "unknown": 2,
        "annotators": {
            "ann": {"grades": 3, "saw_others": 0, "unknown": 1},
            "ben": {"grades": 3, "saw_others": 1, "unknown": 1},
        },
    }
    printed = offline("judgments", "agreement", TASK, "--log", log, *both).stdout
    sentence = "1 of 4 grades (25.0%) was given in view of others' judgments; not recorded for 2 more"
    assert sentence in printed and "in view of others'" in printed


@pytest.mark.own_indexes
def test_saw_others_can_be_exported_and_imported(offline: Cli, tmp_path: Path) -> None:
    log, out, again = tmp_path / "log.sqlite", tmp_path / "all.jsonl", tmp_path / "again.sqlite"
    with JudgmentLog(log) as events:
        session = Session(events, TASK, Author("ann"))
        for saw in (True, False, None):
            session.grade([SeenDocument("t", "d", saw_others=saw)], 1)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["saw_others"] for line in lines] == [True, False, None]
    assert offline("judgments", "import", TASK, out, "--log", again).code == 0
    assert events_of(again) == events_of(log)
    for wrong in ("yes", 1, 0):
        out.write_text(json.dumps({**lines[0], "id": "new", "saw_others": wrong}))
        result = offline("judgments", "import", TASK, out, "--log", again)
        assert result.code == 4 and "must be true or false, or left out" in result.stderr


def test_judgments_are_listed_and_filtered(offline: Cli, log: Path) -> None:
    with JudgmentLog(log) as events:
        session = Session(events, TASK, Author("ann"))
        session.cant_tell(SeenDocument("t2", "d1", "run", 4, True), "cut off")
        session.skip(SeenDocument("t2", "d2"))
        session.note(SeenDocument("t2", "d3"), "odd")
        Session(events, TASK, Author("kim")).adjudicate(SeenDocument("t1", "d2"), 2, "as it says")

    def listed(*options: object) -> list[str]:
        result = offline("judgments", "list", TASK, "--log", log, "--json", *options).json["judgments"]
        members = ("annotator", "document_id", "action", "grade")
        return [" ".join(str(judgment[name]) for name in members) for judgment in result]

    assert len(listed()) == 11
    assert listed("--annotator", "bot", "--annotator", "kim") == ["bot d2 grade 0", "kim d2 adjudicate 2"]
    assert listed("--topic", "t2", "--action", "skip", "--action", "note") == [
        "ann d2 skip None",
        "ann d3 note None",
    ]
    assert listed("--grade", 0) == ["ann d2 grade 0", "bot d2 grade 0"]
    assert listed("--with-notes") == ["ann d1 cant_tell None", "ann d3 note None", "kim d2 adjudicate 2"]
    assert listed("--topic", "nowhere") == []
    filtered = offline("judgments", "list", TASK, "--log", log, "--json", "--action", "cant_tell").json
    expected = {"note": "cut off", "run": "run", "rank": 4, "saw_others": True, "topic_id": "t2"}
    assert filtered["judgments"][0].items() >= expected.items()
    printed = offline("judgments", "list", TASK, "--log", log)
    assert "bot (a model)" in printed.stdout and "decided 2 low" in printed.stdout
    assert "can't tell" in printed.stdout and "11 judgments" in printed.stderr
    for options, message in (
        (("--grade", 7), "explanation-2021 has the grades 0 to 6, not 7"),
        (("--annotator", "eve"), "explanation-2021 has no annotator 'eve'"),
        (("--action", "fly"), "fly"),
    ):
        refused = offline("judgments", "list", TASK, "--log", log, *options)
        assert refused.code == 2 and message in refused.stderr


def test_hostile_text_in_a_list_is_harmless(offline: Cli, tmp_path: Path) -> None:
    log, hostile = tmp_path / "log.sqlite", "a\x1b]52;c;eA==\a\u202eb\n[red]c"
    with JudgmentLog(log) as events:
        Session(events, TASK, Author(hostile)).grade([SeenDocument(hostile, hostile)], 1, hostile)
    printed = offline("judgments", "list", TASK, "--log", log).stdout
    assert "\x1b" not in printed and "\u202e" not in printed and "[red]" in printed
    assert len(printed.splitlines()) == 2
    as_json = offline("judgments", "list", TASK, "--log", log, "--json")
    assert "\x1b" not in as_json.stdout and as_json.json["judgments"][0]["note"] == hostile


def refused_import(offline: Cli, path: Path, log: Path, *options: object) -> str:
    """Import a file that is refused, check that the log is unchanged, and return the message."""
    before = events_of(log)
    result = offline("judgments", "import", TASK, path, "--log", log, *options)
    assert result.code == 4 and "Traceback" not in result.stderr, result.stderr
    assert events_of(log) == before
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"grade": 7}, "7: the grades of the task are 0 to 6"),
        ({"grade": -1}, "from 0 to 2147483647"),
        ({"grade": 10**30}, "from 0 to 2147483647"),
        ({"grade": 1.0}, "a whole number"),
        ({"grade": float("nan")}, "a whole number"),
        ({"grade": True}, "a whole number"),
        ({"rank": 2**31}, "from 0 to 2147483647"),
        ({"grade": None}, "needs a grade"),
        ({"task": "checkthat"}, "the event is for checkthat, not for explanation-2021"),
        ({"annotator": " \t"}, "name in an event is blank"),
        ({"annotator": "ann", "kind": "model"}, "ann is a person elsewhere"),
        ({"document_id": "\ud83d"}, "half of a surrogate pair"),
        ({"time": "yesterday"}, "not ISO 8601"),
        ({"time": "2026-01-01T00:00:00"}, "no time zone"),
        ({"time": "9999-12-31T23:59:59.999999+00:00"}, "not from 1970 to 9998"),
        ({"time": "0001-01-01T00:00:00+14:00"}, "not from 1970 to 9998"),
        ({"action": "award"}, "a newer version of searchapp may know it"),
        ({"stars": 5}, "a newer version of searchapp may know it"),
        ({"id": ""}, "is empty"),
        ({"kind": []}, "can't be read"),
    ],
)
def test_invalid_events_are_refused(
    offline: Cli, log: Path, tmp_path: Path, changes: dict[str, object], part: str
) -> None:
    event = Author("eve").event(TASK, "t1", "d1", Action.grade, grade=1)
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({**event.to_json(), **changes}) + "\n")
    assert part in refused_import(offline, path, log)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"grade": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b"[1, 2]", "must be an object"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b"\x00\x00", "not JSON"),
    ],
)
def test_malformed_events_are_refused(
    offline: Cli, log: Path, tmp_path: Path, content: bytes, part: str
) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(content)
    assert part in refused_import(offline, path, log)


@pytest.mark.own_indexes
def test_unusual_names_and_ids_can_be_exported_and_imported(offline: Cli, tmp_path: Path) -> None:
    log, again, out = tmp_path / "log.sqlite", tmp_path / "again.sqlite", tmp_path / "all.jsonl"
    names = ["Ann O'Neil", "\x1b[31mred", "\u202etfel", "a\x00b", "line\nline", "é", "e\u0301", '";--', "𝔸"]
    with JudgmentLog(log) as events:
        for name in names:
            Session(events, TASK, Author(name)).grade([SeenDocument(f"t {name}", name)], 1, reason=name)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    assert offline("judgments", "import", TASK, out, "--log", again, "--json").json["new"] == len(names)
    assert events_of(again) == events_of(log)
    for command in ("stats", "agreement"):
        result = offline("judgments", command, TASK, "--log", log)
        assert result.code == 0 and "\x1b" not in result.stdout and "\x00" not in result.stdout
    for format_ in ("qrels", "trec"):
        options = ("--format", format_, "--log", log, "--out", tmp_path / "x")
        result = offline("judgments", "export", TASK, *options)
        assert result.code == 4 and not (tmp_path / "x").exists()


def test_invalid_qrels_are_refused(offline: Cli, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    for line, part in (
        ("t9 0 d1 -1", "negative grade"),
        ("t9 0 d1 7", "are 0 to 6"),
        ("t9 0 d1 nan", "integer"),
    ):
        path.write_text(f"{line}\n")
        assert part in refused_import(offline, path, log, "--format", "qrels", "--annotator", "eve")
    path.write_text("t9 0 d1 1\n")
    options = ("--format", "qrels", "--annotator", "bot")
    assert "bot is a model elsewhere" in refused_import(offline, path, log, *options)


def test_grades_of_single_annotators_can_be_exported(offline: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "trec"
    options = ("--format", "trec", "--log", log, "--out", out, "--annotator", "ben")
    assert offline("judgments", "export", TASK, *options).code == 0
    assert {row[1] for row in rows(out)} == {"ben"}


def test_adjudication_resolves_a_disagreement(offline: Cli, log: Path, tmp_path: Path) -> None:
    result = offline(
        "judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve",
        "--topic", "t1", "--document", "d2", "--grade", 1, "--reason", "half of it",
    )  # fmt: skip
    assert result.code == 0
    _, last = events_of(log)[-1]
    assert (last.action, last.grade, last.text) == (Action.adjudicate, 1, "half of it")
    out = tmp_path / "qrels"
    offline("judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", out)
    assert ["t1", "0", "d2", "1"] in rows(out)
    again = offline("judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve")
    assert "the only disputed document is decided" in again.stderr


def test_exported_grades_are_aggregated_over_the_chosen_annotators(
    offline: Cli, log: Path, tmp_path: Path
) -> None:
    decide = ("--topic", "t1", "--document", "d2", "--grade", 1, "--annotator", "eve", "--log", log)
    assert offline("judgments", "adjudicate", TASK, *decide).code == 0
    out = tmp_path / "qrels"

    def grade(*names: str) -> str:
        annotators = [word for name in names for word in ("--annotator", name)]
        options = ("--format", "qrels", "--log", log, "--out", out, "--overwrite", *annotators)
        assert offline("judgments", "export", TASK, *options).code == 0
        return next(row[3] for row in rows(out) if row[2] == "d2")

    assert [grade(), grade("ann"), grade("ben"), grade("ann", "ben"), grade("ann", "ben", "eve")] == [
        "1", "0", "2", "0", "1",
    ]  # fmt: skip


@pytest.mark.own_indexes
def test_disagreements_are_adjudicated_with_prompts(offline: Cli, log: Path) -> None:
    arguments = ["judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve", "--plain"]
    result = run_command(*arguments, typed="1 half of it\n")
    assert result.code == 0, result.stderr
    assert "1 of 1. Topic t1" in result.stdout and "saved. decided 1 least relevant: d2" in result.stdout
    assert "no texts of the topics" in result.stderr
    assert "no texts of the documents: " in result.stderr
    assert "1 of 1 disputed document is decided" in result.stderr
    again = offline(*arguments)
    assert again.code == 0 and "the only disputed document is decided" in again.stderr
    # Bot and ben disagree on the same document.
    decided = run_command(*arguments, "--between", "bot", "--between", "ben", typed="q\n")
    assert "the only disputed document is decided" in decided.stderr
    agreed = offline(*arguments, "--between", "bot", "--between", "ann")
    assert f"{TASK}: no grades disagree" in agreed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--between", "an"], "explanation-2021 has no annotator 'an' (did you mean ann?): choose from"),
        (["--between", "lea"], "explanation-2021 has no annotator 'lea': choose from ann, ben, bot"),
        (["--grade", 1, "--topic", "t1"], "--grade decides on one document"),
        (
            ["--grade", 7, "--topic", "t1", "--document", "d2"],
            "explanation-2021 has the grades 0 to 6, not 7",
        ),
        (["--grade", 1, "--topic", "t1", "--document", "d9"], "document d9 of topic t1 has no judgment"),
        (["--reason", "why"], "--reason requires --grade"),
        (["--run", "/nowhere"], "/nowhere"),
        (["--annotator", " "], "no annotator: give your name"),
    ],
)
def test_invalid_decisions_are_refused(offline: Cli, log: Path, options: list[object], message: str) -> None:
    result = offline("judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve", *options)
    assert (result.code, message in result.stderr) == (2, True), result.stderr
    assert len(events_of(log)) == 7


def test_without_judgments_the_message_names_the_command_to_judge(
    offline: Cli, log: Path, tmp_path: Path
) -> None:
    for command in ("stats", "agreement"):
        result = offline("judgments", command, TASK, "--log", tmp_path / "none")
        assert result.code == 4 and "`searchapp judge`" in result.stderr
        assert not (tmp_path / "none").exists()
        assert offline("judgments", command, "checkthat", "--log", log).code == 4


@pytest.fixture
def two_runs(indexed: Cli, tmp_path: Path) -> tuple[Path, Path]:
    runs = tmp_path / "bm25", tmp_path / "neighbours"
    for run in runs:
        arguments = ("--data", SAMPLE, "--split", "dev", "--recipe", run.name, "--out", run)
        assert indexed("rank", "nlps", *arguments).code == 0
    return runs


def test_a_pool_is_the_union_of_the_first_documents_of_runs(
    indexed: Cli, two_runs: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "pool"
    result = indexed("judgments", "pool", *two_runs, "--depth", 3, "--out", out, "--json")
    assert result.code == 0
    first, second = map(read_rankings, two_runs)
    expected = {topic: {*first[topic][:3], *second[topic][:3]} for topic in first}
    assert {topic: set(documents) for topic, documents in read_rankings(out).items()} == expected
    assert result.json["documents"] == sum(map(len, expected.values()))
    assert indexed("runs", "verify", out).code == 0


def test_pools_have_the_documents_that_their_order_puts_first(
    indexed: Cli, two_runs: tuple[Path, Path], tmp_path: Path
) -> None:
    def pool(name: str, *options: object) -> dict[str, list[str]]:
        result = indexed("judgments", "pool", *two_runs, "--out", tmp_path / name, *options)
        assert result.code == 0, result.stderr
        assert indexed("runs", "verify", tmp_path / name).code == 0
        return read_rankings(tmp_path / name)

    by_depth = pool("depth", "--size", 4)
    for by in ("rrf", "disagreement", "mtf"):
        ordered = pool(by, "--by", by, "--size", 4)
        assert ordered.keys() == by_depth.keys() and ordered != by_depth
        assert {len(documents) for documents in ordered.values()} == {4}
    topic, (first, *others) = next(iter(pool("mtf-before", "--by", "mtf").items()))
    qrels = tmp_path / "one.qrels"
    qrels.write_text(f"{topic} 0 {first} 1\n")
    assert indexed("judgments", "import", "nlps", qrels, "--format", "qrels", "--annotator", "ann").code == 0
    after = pool("mtf-after", "--by", "mtf")[topic]
    assert sorted(after) == sorted(others) and after != others  # the successful run goes on
    assert first not in pool("unjudged", "--unjudged")[topic]
    for options, message in (
        (("--by", "sample", "--size", 3), "--by sample excludes --size"),
        (("--strata", "10=1"), "--strata requires --by sample"),
        (("--seed", 1), "--seed requires --by sample"),
        (("--by", "sample", "--strata", "10"), "use the form RANK=SHARE"),
    ):
        result = indexed("judgments", "pool", *two_runs, "--out", tmp_path / "x", *options)
        assert result.code == 2 and message in result.stderr
        assert not (tmp_path / "x").exists()


def test_a_judged_sample_estimates_measures_and_the_rest_of_relevant_documents(
    indexed: Cli, two_runs: tuple[Path, Path], tmp_path: Path
) -> None:
    def draw(strata: str) -> Path:
        out = tmp_path / strata
        options = ("--by", "sample", "--strata", strata, "--seed", 3)
        assert indexed("judgments", "pool", *two_runs, "--out", out, *options).code == 0
        return out

    def judge(pool: Path) -> Path:
        qrels = tmp_path / f"{pool.name}.qrels"
        lines = [
            f"{topic} 0 {document} {int(document) % 3 == 0:d}\n"
            for topic, documents in read_rankings(pool).items()
            for document in documents
        ]
        qrels.write_text("".join(lines))
        return qrels

    census, sample = draw("100=1"), draw("5=1,100=0.5")
    complete = judge(census)
    measures = ("--measure", "AP", "--measure", "nDCG", "--cutoff", 10, "--json")
    full = indexed("evaluate", *two_runs, "--qrels", complete, *measures)
    exact = indexed("evaluate", *two_runs, "--qrels", complete, "--sample", census, "--json")
    part = indexed("evaluate", *two_runs, "--qrels", judge(sample), "--sample", sample, "--json")
    for of_full, of_exact, of_part in zip(
        *(result.json["runs"] for result in (full, exact, part)), strict=True
    ):
        for estimate, measure in (("xinfAP", "AP"), ("infNDCG", "nDCG")):
            values, value = of_exact["measures"], of_full["measures"][measure]
            for end in ("", " low", " high", " uncorrected"):
                assert values[estimate + end] == pytest.approx(value, abs=1e-12)
            values = of_part["measures"]
            assert values[f"{estimate} low"] < values[estimate] < values[f"{estimate} high"]
    imported = ("--format", "qrels", "--annotator", "ann")
    assert indexed("judgments", "import", "nlps", judge(sample), *imported).code == 0
    evaluated = indexed("evaluate", two_runs[0], "--judgments", "--sample", sample, "--json")
    assert evaluated.json["measures"] == part.json["runs"][0]["measures"]
    assert indexed("evaluate", two_runs[0], "--judgments", "--sample", sample, "--fail-under", 0.99).code == 5

    progress = indexed("judgments", "progress", "nlps", "--sample", sample, "--json").json
    lines = [line.split() for line in complete.read_text().splitlines()]
    relevant = sum(grade == "1" for *_, grade in lines)
    missing = relevant - progress["found"]
    assert progress["missing"]["low"] <= missing <= progress["missing"]["high"] and not progress["stop"]
    shown = indexed("judgments", "progress", "nlps", "--sample", sample, "--target", 0.1)
    assert f"stop: the recall in {sample} is at least 0.1 with 95 % confidence" in shown.stdout
    assert indexed("judgments", "import", "nlps", complete, *imported).code == 0
    done = indexed("judgments", "progress", "nlps", "--sample", sample, "--target", 1, "--json").json
    assert done["stop"] and done["found"] == relevant and done["recall"]["low"] == 1

    for options, message in (
        (("--sample", sample), "--sample requires --judgments or --qrels"),
        (("--judgments", "--sample", two_runs[0]), "is not a sampled pool"),
        (("--judgments", "--sample", sample, "--measure", "AP"), "--sample excludes --measure"),
        (("--judgments", "--sample", sample, "--unjudged", "bounds"), "--sample excludes --unjudged"),
    ):
        result = indexed("evaluate", two_runs[0], *options)
        assert result.code == 2 and message in result.stderr
    first, *judged = (tmp_path / f"{sample.name}.qrels").read_text().splitlines(keepends=True)
    (topic, *_) = first.split()
    without_first = tmp_path / "part.qrels"
    without_first.write_text("".join(judged))
    warnings = indexed("evaluate", two_runs[0], "--qrels", without_first, "--sample", sample).stderr
    assert "1 of " in warnings and "sampled documents has no grade" in warnings
    without_first.write_text("".join(line for line in judged if line.split()[0] != topic))
    warnings = indexed("evaluate", two_runs[0], "--qrels", without_first, "--sample", sample).stderr
    assert "1 topic has no estimate" in warnings
    record = sample / "inputs" / "sample.json"
    record.write_text(record.read_text().replace("0.5", "0.4", 1))
    result = indexed("judgments", "progress", "nlps", "--sample", sample)
    assert result.code == 4 and "changed since the run was written" in result.stderr


def test_topics_are_assigned_by_a_seed(offline: Cli, tmp_path: Path) -> None:
    def assign(out: Path, *more: object) -> dict[str, object]:
        result = offline(
            "judgments", "assign", "nlps", "--data", SAMPLE, "--split", "dev", "--quota", "ann=4", "--quota", "ben=4",
            "--overlap", 0.5, "--out", out, "--json", *more,
        )  # fmt: skip
        assert result.code == 0, result.stderr
        content: dict[str, object] = json.loads(out.read_text())
        assert content == result.json
        return content

    first = assign(tmp_path / "a.json")
    assert first == assign(tmp_path / "b.json")
    assert first["topics"] != assign(tmp_path / "c.json", "--seed", 1)["topics"]
    assert len(first["shared"]) == 2  # type: ignore[arg-type]
    options = ("--data", SAMPLE, "--split", "dev", "--quota", "ann", "--out", tmp_path / "d")
    refused = offline("judgments", "assign", "nlps", *options)
    assert refused.code == 2 and "NAME=TOPICS" in refused.stderr


def test_names_in_quotas_are_normalised_as_annotators(indexed_offline: Cli, tmp_path: Path) -> None:
    out, run = tmp_path / "a.json", tmp_path / "run"
    assert indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    options = ("nlps", "--data", SAMPLE, "--split", "dev", "--out", out)
    assert indexed_offline("judgments", "assign", *options, "--quota", " ann\u2028=2").code == 0
    assert list(json.loads(out.read_text())["topics"]) == ["ann"]
    judging = ("--run", run, "--plain", "--assignment", out, "--annotator", " ann\u2028")
    assert indexed_offline("judge", "nlps", *judging).code == 0
    for pair in ([" =2"], ["ann=2", " ann=1"]):
        quotas = [word for quota in pair for word in ("--quota", quota)]
        assert indexed_offline("judgments", "assign", *options, *quotas, "--overwrite").code == 2


def judge_like_gold(path: Path, topics: dict[str, list[str]], documents: dict[str, list[str]]) -> None:
    """Let an annotator grade every given document of some topics with the grade of the gold."""
    with JudgmentLog(path) as events:
        session = Session(events, "nlps", Author("ann"))
        for topic, relevant in topics.items():
            for document in dict.fromkeys([*documents[topic], *relevant]):
                session.grade([SeenDocument(topic, document)], int(document in relevant))


@pytest.fixture
def gold() -> dict[str, list[str]]:
    statements = json.loads((SAMPLE / "dev_set.json").read_text())
    return {topic: list(map(str, entry["premises"])) for topic, entry in statements.items()}


def test_judgments_with_the_grades_of_the_gold_have_its_figures(
    offline: Cli, indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "log.sqlite"
    assert indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    judge_like_gold(log, gold, read_rankings(run))
    by_gold = indexed_offline("evaluate", run, "--cutoff", 50, "--json", "--per-topic").json
    judged = indexed_offline(
        "evaluate", run, "--judgments", "--log", log, "--cutoff", 50, "--json", "--per-topic"
    ).json
    assert judged["official"]["values"] == pytest.approx(by_gold["official"]["values"], abs=1e-12)
    assert judged["official"]["per_topic"] == pytest.approx(by_gold["official"]["per_topic"], abs=1e-12)
    for name, value in by_gold["measures"].items():
        assert judged["measures"][name] == pytest.approx(value, abs=1e-12)
    assert judged["measures"]["Judged@10"] == 1
    assert judged["judged"]["topics"] == len(gold)
    condensed = indexed_offline(
        "evaluate", run, "--judgments", "--log", log, "--unjudged", "condensed", "--json"
    ).json
    assert condensed["official"]["value"] is None
    assert condensed["measures"]["AP"] == pytest.approx(by_gold["measures"]["AP"], abs=1e-12)


def test_unjudged_options_change_average_precision(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "log.sqlite"
    indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run)
    topic = next(iter(gold))
    first, _, third = read_rankings(run)[topic][:3]
    with JudgmentLog(log) as events:
        session = Session(events, "nlps", Author("ann"))
        session.grade([SeenDocument(topic, first)], 0)
        session.grade([SeenDocument(topic, third)], 1)

    def average_precision(*options: object) -> dict[str, float]:
        result = indexed_offline(
            "evaluate", run, "--judgments", "--log", log, "--cutoff", 50, "--json", *options
        )
        assert result.code == 0, result.stderr
        measures: dict[str, float] = result.json["measures"]
        return {name: value for name, value in measures.items() if name.startswith("AP")}

    assert average_precision() == {"AP": pytest.approx(1 / 3)}
    assert average_precision("--unjudged", "condensed") == {"AP": pytest.approx(1 / 2)}
    bounds = average_precision("--unjudged", "bounds")
    assert bounds["AP lower"] == pytest.approx(1 / 3) and bounds["AP upper"] > 0.6
    assert average_precision("--unjudged", "bounds", "--measure", "AP") == bounds
    assert indexed_offline("evaluate", run, "--judgments", "--log", log, "--by", "role").code == 2


def test_judging_half_the_topics_improves_the_rest(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    before, after, log = tmp_path / "before", tmp_path / "after", tmp_path / "log.sqlite"
    options = ("nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours")
    assert indexed_offline("rank", *options, "--out", before).code == 0
    half = dict(list(gold.items())[::2])
    judge_like_gold(log, half, read_rankings(before))
    result = indexed_offline("rank", *options, "--with-judgments", "--log", log, "--out", after)
    assert result.code == 0 and "5 judged topics" in result.stderr
    figures = []
    for run in (before, after):
        official = indexed_offline("evaluate", run, "--cutoff", 50, "--json", "--per-topic").json["official"]
        figures.append([official["per_topic"][topic] for topic in gold if topic not in half])
    assert sum(figures[1]) > sum(figures[0])
    manifest = json.loads((after / "run.json").read_text())
    assert manifest["recipe"]["judged"]["topics"] == 5
    refused = indexed_offline(
        "rank", *options[:-1], "bm25", "--with-judgments", "--log", log, "--out", tmp_path / "x"
    )
    assert refused.code == 2 and "does not learn from judged topics" in refused.stderr


def test_a_run_is_scored_against_qrels(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, qrels = tmp_path / "run", tmp_path / "qrels"
    indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run)
    lines = [f"{topic} 0 {document} 1\n" for topic, documents in gold.items() for document in documents]
    qrels.write_text("".join(lines))
    by_qrels = indexed_offline("evaluate", run, "--qrels", qrels, "--cutoff", 50, "--json").json
    by_gold = indexed_offline("evaluate", run, "--cutoff", 50, "--json").json
    assert by_qrels["official"]["value"] == pytest.approx(by_gold["official"]["value"], abs=1e-12)


@pytest.fixture
def indexed_offline(offline: Cli) -> Cli:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    return offline


def test_official_files_of_judgments_can_be_used_as_gold(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log, out = tmp_path / "run", tmp_path / "log.sqlite", tmp_path / "gold.json"
    indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run)
    judge_like_gold(log, gold, read_rankings(run))
    options = ("--format", "official", "--data", SAMPLE, "--log", log, "--out", out)
    export = ("judgments", "export", "nlps", *options)
    assert indexed_offline(*export, "--split", "dev").code == 0
    own = indexed_offline("evaluate", run, "--cutoff", 50, "--gold", out, "--json").json["official"]
    official = indexed_offline("evaluate", run, "--cutoff", 50, "--json").json["official"]
    assert own["value"] == pytest.approx(official["value"], abs=1e-12)
    assert indexed_offline(*export, "--split", "dev").code == 2  # the file exists
    assert indexed_offline(*export, "--overwrite").code == 2  # no split is named
