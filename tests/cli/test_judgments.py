"""`searchapp judgments`, as a group of annotators would use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from tests.cli.conftest import SAMPLE, Cli, run_command

pytestmark = pytest.mark.shared_indexes

TASK = "explanation-2021"
"""It has grades from 0 to 6."""

GRADES = {"ann": {"d1": 2, "d2": 0, "d3": 1}, "ben": {"d1": 2, "d2": 2, "d3": 1}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of two annotators and a model, who have judged three documents of a topic."""
    path = tmp_path / "log.sqlite"
    with JudgmentLog(path) as opened:
        for name, grades in GRADES.items():
            session = Session(opened, TASK, Author(name))
            for rank, (document, grade) in enumerate(grades.items(), 1):
                session.grade([SeenDocument("t1", document, "run", rank)], grade)
        Session(opened, TASK, Author("bot", Kind.model)).grade([SeenDocument("t1", "d2")], 0)
    return path


def rows(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


@pytest.mark.own_indexes
def test_the_whole_log_goes_out_and_in_without_loss(offline: Cli, log: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "all.jsonl", tmp_path / "again.sqlite"
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    result = offline("judgments", "import", TASK, out, "--log", again, "--json")
    assert result.json == {"file": str(out), "events": 7, "new": 7, "import": 1, "undone": 0}
    assert offline("judgments", "import", TASK, out, "--log", again, "--json").json["new"] == 0
    with JudgmentLog(log) as one, JudgmentLog(again) as two:
        assert list(one.events()) == list(two.events())


def test_a_file_that_contradicts_the_log_is_refused_whole(offline: Cli, log: Path, tmp_path: Path) -> None:
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
    with JudgmentLog(log) as opened:
        assert len(opened) == 7


def test_qrels_have_aggregated_grades_and_trec_all(offline: Cli, log: Path, tmp_path: Path) -> None:
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
    told = {"file": str(path), "events": 2, "new": 1, "import": 1, "undone": 0}
    assert offline(*arguments, "--json").json == told
    assert offline(*arguments, "--json").json == {**told, "new": 0, "import": None}
    path.write_text("t1 0 d1 0\nt2 0 d8 1\n")
    result = offline(*arguments)
    assert result.code == 4 and "grade 0 in the file, but grade 2 by ann in the log" in result.stderr
    with JudgmentLog(log) as opened:
        assert len(opened) == 8
    assert offline("judgments", "import", TASK, path, "--format", "qrels", "--log", log).code == 2


@pytest.mark.own_indexes
def test_one_judgment_is_counted_in_the_singular(offline: Cli, tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "given"
    path.write_text("t1 0 d1 2\n")
    given = ("judgments", "import", TASK, path, "--format", "qrels", "--annotator", "ann", "--log", log)
    assert f"{path}: 1 judgment, 1 of them new" in offline(*given).stderr
    assert f"{path}: 1 judgment, none of them new" in offline(*given).stderr
    for format_ in ("qrels", "trec", "jsonl"):
        out = tmp_path / format_
        result = offline("judgments", "export", TASK, "--format", format_, "--log", log, "--out", out)
        assert result.code == 0 and f"wrote 1 line to {out}" in result.stderr, result.stderr
    assert "1 event, all intact" in offline("judgments", "verify", "--log", log).stderr
    retracted = offline("judgments", "retract", TASK, "--import", 1, "--log", log)
    assert f"retracted 1 judgment of import 1 ({path})" in retracted.stderr


@pytest.mark.own_indexes
def test_grades_stay_in_the_order_of_their_file(offline: Cli, tmp_path: Path) -> None:
    # Some scorers go by the order of the gold.
    log, path, out = tmp_path / "log", tmp_path / "qrels", tmp_path / "out"
    path.write_text("".join(f"t{number % 3} 0 d{number * 7 % 50} 1\n" for number in range(50)))
    whose = ("--format", "qrels", "--annotator", "ann", "--log", log)
    assert offline("judgments", "import", TASK, path, *whose).code == 0
    assert offline("judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", out).code == 0
    of_topic = [[row for row in rows(path) if row[0] == topic] for topic in ("t0", "t1", "t2")]
    assert rows(out) == [row for some in of_topic for row in some]


def test_statistics_count_what_holds_now(offline: Cli, log: Path) -> None:
    with JudgmentLog(log) as opened:
        session = Session(opened, TASK, Author("ann"))
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


def test_agreement_of_people_and_of_a_model_with_them(offline: Cli, log: Path) -> None:
    result = offline(
        "judgments", "agreement", TASK, "--log", log, "--annotator", "ann", "--annotator", "ben", "--json"
    ).json
    (pair,) = result["pairs"]
    # ann 2 0 1, ben 2 2 1: agreement 2/3, by chance (1/3)(2/3) + (1/3)(1/3) = 1/3
    assert pair["documents"] == 3 and pair["kappa"] == pytest.approx(0.5)
    assert result["disputed"] == [{"topic": "t1", "document": "d2", "grades": {"ann": 0, "ben": 2}}]
    printed = offline("judgments", "agreement", TASK, "--log", log).stdout
    assert "ann and bot" in printed and "d2" in printed
    alone = offline("judgments", "agreement", TASK, "--log", log, "--annotator", "ann")
    assert "no document has grades of several annotators" in alone.stdout and "nan" not in alone.stdout
    refused = offline("judgments", "agreement", TASK, "--log", log, "--annotator", "eve")
    assert refused.code == 2 and "choose from ann, ben, bot" in refused.stderr


def test_agreement_says_which_grades_were_given_in_sight_of_others(offline: Cli, log: Path) -> None:
    both = ("--annotator", "ann", "--annotator", "ben")
    printed = offline("judgments", "agreement", TASK, "--log", log, *both).stdout
    assert "it is not recorded whether grades were given in view of others' judgments" in printed
    with JudgmentLog(log) as opened:
        for name, saw in (("ann", False), ("ben", True)):
            session = Session(opened, TASK, Author(name))
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
    told = "1 of 4 grades (25.0%) was given in view of others' judgments; not recorded for 2 more"
    assert told in printed and "in view of others'" in printed


@pytest.mark.own_indexes
def test_whether_others_were_in_sight_goes_out_and_in(offline: Cli, tmp_path: Path) -> None:
    log, out, again = tmp_path / "log.sqlite", tmp_path / "all.jsonl", tmp_path / "again.sqlite"
    with JudgmentLog(log) as opened:
        session = Session(opened, TASK, Author("ann"))
        for saw in (True, False, None):
            session.grade([SeenDocument("t", "d", saw_others=saw)], 1)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["saw_others"] for line in lines] == [True, False, None]
    assert offline("judgments", "import", TASK, out, "--log", again).code == 0
    with JudgmentLog(log) as one, JudgmentLog(again) as two:
        assert list(one.events()) == list(two.events())
    for wrong in ("yes", 1, 0):
        out.write_text(json.dumps({**lines[0], "id": "new", "saw_others": wrong}))
        result = offline("judgments", "import", TASK, out, "--log", again)
        assert result.code == 4 and "must be true or false, or left out" in result.stderr


def test_what_was_said_is_listed_and_filtered(offline: Cli, log: Path) -> None:
    with JudgmentLog(log) as opened:
        session = Session(opened, TASK, Author("ann"))
        session.cant_tell(SeenDocument("t2", "d1", "run", 4, True), "cut off")
        session.skip(SeenDocument("t2", "d2"))
        session.note(SeenDocument("t2", "d3"), "odd")
        Session(opened, TASK, Author("kim")).adjudicate(SeenDocument("t1", "d2"), 2, "as it says")

    def listed(*options: object) -> list[str]:
        result = offline("judgments", "list", TASK, "--log", log, "--json", *options).json["judgments"]
        return [f"{one['annotator']} {one['document_id']} {one['action']} {one['grade']}" for one in result]

    assert len(listed()) == 11
    assert listed("--annotator", "bot", "--annotator", "kim") == ["bot d2 grade 0", "kim d2 adjudicate 2"]
    assert listed("--topic", "t2", "--action", "skip", "--action", "note") == [
        "ann d2 skip None",
        "ann d3 note None",
    ]
    assert listed("--grade", 0) == ["ann d2 grade 0", "bot d2 grade 0"]
    assert listed("--with-notes") == ["ann d1 cant_tell None", "ann d3 note None", "kim d2 adjudicate 2"]
    assert listed("--topic", "nowhere") == []
    one = offline("judgments", "list", TASK, "--log", log, "--json", "--action", "cant_tell").json[
        "judgments"
    ][0]
    assert (one["note"], one["run"], one["rank"], one["saw_others"], one["topic_id"]) == (
        "cut off",
        "run",
        4,
        True,
        "t2",
    )
    printed = offline("judgments", "list", TASK, "--log", log)
    assert "bot (a model)" in printed.stdout and "decided 2 low" in printed.stdout
    assert "can't tell" in printed.stdout and "11 judgments" in printed.stderr
    for options, told in (
        (("--grade", 7), "explanation-2021 has the grades 0 to 6, not 7"),
        (("--annotator", "eve"), "explanation-2021 has no annotator 'eve'"),
        (("--action", "fly"), "fly"),
    ):
        refused = offline("judgments", "list", TASK, "--log", log, *options)
        assert refused.code == 2 and told in refused.stderr


def test_hostile_text_in_a_list_is_harmless(offline: Cli, tmp_path: Path) -> None:
    log, hostile = tmp_path / "log.sqlite", "a\x1b]52;c;eA==\a\u202eb\n[red]c"
    with JudgmentLog(log) as opened:
        Session(opened, TASK, Author(hostile)).grade([SeenDocument(hostile, hostile)], 1, hostile)
    printed = offline("judgments", "list", TASK, "--log", log).stdout
    assert "\x1b" not in printed and "\u202e" not in printed and "[red]" in printed
    assert len(printed.splitlines()) == 2
    as_json = offline("judgments", "list", TASK, "--log", log, "--json")
    assert "\x1b" not in as_json.stdout and as_json.json["judgments"][0]["note"] == hostile


def refused(offline: Cli, path: Path, log: Path, *more: object) -> str:
    """What is said of a file that is not taken in, and of which nothing has come into the log."""
    with JudgmentLog(log) as opened:
        before = len(opened)
    result = offline("judgments", "import", TASK, path, "--log", log, *more)
    assert result.code == 4 and "Traceback" not in result.stderr, result.stderr
    with JudgmentLog(log) as opened:
        assert len(opened) == before
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
    assert part in refused(offline, path, log)


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
    assert part in refused(offline, path, log)


@pytest.mark.own_indexes
def test_odd_names_and_ids_go_out_and_in_as_they_are(offline: Cli, tmp_path: Path) -> None:
    log, again, out = tmp_path / "log.sqlite", tmp_path / "again.sqlite", tmp_path / "all.jsonl"
    odd = ["Ann O'Neil", "\x1b[31mred", "\u202etfel", "a\x00b", "line\nline", "é", "e\u0301", '";--', "𝔸"]
    with JudgmentLog(log) as opened:
        for name in odd:
            Session(opened, TASK, Author(name)).grade([SeenDocument(f"t {name}", name)], 1, reason=name)
    assert offline("judgments", "export", TASK, "--log", log, "--out", out).code == 0
    assert offline("judgments", "import", TASK, out, "--log", again, "--json").json["new"] == len(odd)
    with JudgmentLog(log) as one, JudgmentLog(again) as two:
        assert list(one.events()) == list(two.events())
    for command in ("stats", "agreement"):
        result = offline("judgments", command, TASK, "--log", log)
        assert result.code == 0 and "\x1b" not in result.stdout and "\x00" not in result.stdout
    for format_ in ("qrels", "trec"):
        result = offline(
            "judgments", "export", TASK, "--format", format_, "--log", log, "--out", tmp_path / "x"
        )
        assert result.code == 4 and not (tmp_path / "x").exists()


def test_qrels_that_cannot_be_are_refused_in_a_sentence(offline: Cli, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    for line, part in (
        ("t9 0 d1 -1", "negative grade"),
        ("t9 0 d1 7", "are 0 to 6"),
        ("t9 0 d1 nan", "integer"),
    ):
        path.write_text(f"{line}\n")
        assert part in refused(offline, path, log, "--format", "qrels", "--annotator", "eve")
    path.write_text("t9 0 d1 1\n")
    whose = ("--format", "qrels", "--annotator", "bot")
    assert "bot is a model elsewhere" in refused(offline, path, log, *whose)


def test_every_annotators_grades_can_be_those_of_some(offline: Cli, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "trec"
    options = ("--format", "trec", "--log", log, "--out", out, "--annotator", "ben")
    assert offline("judgments", "export", TASK, *options).code == 0
    assert {row[1] for row in rows(out)} == {"ben"}


def test_a_decision_ends_a_dispute(offline: Cli, log: Path, tmp_path: Path) -> None:
    result = offline(
        "judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve",
        "--topic", "t1", "--document", "d2", "--grade", 1, "--reason", "half of it",
    )  # fmt: skip
    assert result.code == 0
    with JudgmentLog(log) as opened:
        last = [event for _, event in opened.events()][-1]
    assert (last.action, last.grade, last.text) == (Action.adjudicate, 1, "half of it")
    out = tmp_path / "qrels"
    offline("judgments", "export", TASK, "--format", "qrels", "--log", log, "--out", out)
    assert ["t1", "0", "d2", "1"] in rows(out)
    assert (
        "the only disputed document is decided"
        in offline("judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve").stderr
    )


def test_an_annotators_own_grades_are_exported(offline: Cli, log: Path, tmp_path: Path) -> None:
    decide = ("--topic", "t1", "--document", "d2", "--grade", 1, "--annotator", "eve", "--log", log)
    assert offline("judgments", "adjudicate", TASK, *decide).code == 0
    out = tmp_path / "qrels"

    def grade(*names: str) -> str:
        named = [word for name in names for word in ("--annotator", name)]
        options = ("--format", "qrels", "--log", log, "--out", out, "--overwrite", *named)
        assert offline("judgments", "export", TASK, *options).code == 0
        return next(row[3] for row in rows(out) if row[2] == "d2")

    assert [grade(), grade("ann"), grade("ben"), grade("ann", "ben"), grade("ann", "ben", "eve")] == [
        "1", "0", "2", "0", "1",
    ]  # fmt: skip


@pytest.mark.own_indexes
def test_disagreements_are_walked_through_with_prompts(offline: Cli, log: Path) -> None:
    arguments = ["judgments", "adjudicate", TASK, "--log", log, "--annotator", "eve", "--plain"]
    result = run_command(*arguments, typed="1 half of it\n")
    assert result.code == 0, result.stderr
    assert "1 of 1. Topic t1" in result.stdout and "saved. decided 1 least relevant: d2" in result.stdout
    assert "no texts of the topics" in result.stderr
    assert "no texts of the documents: " in result.stderr
    assert "1 of 1 disputed document is decided" in result.stderr
    again = offline(*arguments)
    assert again.code == 0 and "the only disputed document is decided" in again.stderr
    named = run_command(*arguments, "--between", "bot", "--between", "ben", typed="q\n")
    assert (
        "the only disputed document is decided" in named.stderr
    )  # the same document, on which bot differs from ben
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
    with JudgmentLog(log) as opened:
        assert len(opened) == 7


def test_without_judgments_it_says_how_to_make_some(offline: Cli, log: Path, tmp_path: Path) -> None:
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


def test_a_pool_unites_the_top_of_runs(indexed: Cli, two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "pool"
    result = indexed("judgments", "pool", *two_runs, "--depth", 3, "--out", out, "--json")
    assert result.code == 0
    top: dict[str, set[str]] = {}
    for run in two_runs:
        for topic, _, document, rank, *_ in rows(run / "run.trec"):
            if int(rank) <= 3:
                top.setdefault(topic, set()).add(document)
    pooled: dict[str, set[str]] = {}
    for topic, _, document, *_ in rows(out / "run.trec"):
        pooled.setdefault(topic, set()).add(document)
    assert pooled == top
    assert result.json["documents"] == sum(map(len, top.values()))
    assert indexed("runs", "verify", out).code == 0


def test_topics_are_shared_out_by_a_seed(offline: Cli, tmp_path: Path) -> None:
    def assigned(out: Path, *more: object) -> dict[str, object]:
        result = offline(
            "judgments", "assign", "nlps", "--data", SAMPLE, "--split", "dev", "--quota", "ann=4", "--quota", "ben=4",
            "--overlap", 0.5, "--out", out, "--json", *more,
        )  # fmt: skip
        assert result.code == 0, result.stderr
        found: dict[str, object] = json.loads(out.read_text())
        assert found == result.json
        return found

    first = assigned(tmp_path / "a.json")
    assert first == assigned(tmp_path / "b.json")
    assert first["topics"] != assigned(tmp_path / "c.json", "--seed", 1)["topics"]
    assert len(first["shared"]) == 2  # type: ignore[arg-type]
    refused = offline(
        "judgments",
        "assign",
        "nlps",
        "--data",
        SAMPLE,
        "--split",
        "dev",
        "--quota",
        "ann",
        "--out",
        tmp_path / "d",
    )
    assert refused.code == 2 and "NAME=TOPICS" in refused.stderr


def test_names_in_quotas_are_those_of_annotators(indexed_offline: Cli, tmp_path: Path) -> None:
    out, run = tmp_path / "a.json", tmp_path / "run"
    assert indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    options = ("nlps", "--data", SAMPLE, "--split", "dev", "--out", out)
    assert indexed_offline("judgments", "assign", *options, "--quota", " ann\u2028=2").code == 0
    assert list(json.loads(out.read_text())["topics"]) == ["ann"]
    assigned = ("--run", run, "--plain", "--assignment", out, "--annotator", " ann\u2028")
    assert indexed_offline("judge", "nlps", *assigned).code == 0
    for twice in ([" =2"], ["ann=2", " ann=1"]):
        more = [word for one in twice for word in ("--quota", one)]
        assert indexed_offline("judgments", "assign", *options, *more, "--overwrite").code == 2


def judge_like_gold(path: Path, topics: dict[str, list[str]], documents: dict[str, list[str]]) -> None:
    """A scripted person who grades every given document of some topics as the gold does."""
    with JudgmentLog(path) as opened:
        session = Session(opened, "nlps", Author("ann"))
        for topic, relevant in topics.items():
            for document in dict.fromkeys([*documents[topic], *relevant]):
                session.grade([SeenDocument(topic, document)], int(document in relevant))


@pytest.fixture
def gold() -> dict[str, list[str]]:
    statements = json.loads((SAMPLE / "dev_set.json").read_text())
    return {topic: list(map(str, entry["premises"])) for topic, entry in statements.items()}


def ranked(run: Path) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for topic, _, document, *_ in rows(run / "run.trec"):
        result.setdefault(topic, []).append(document)
    return result


def test_judgments_like_the_gold_score_like_it(
    offline: Cli, indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "log.sqlite"
    assert indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    judge_like_gold(log, gold, ranked(run))
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


def test_unjudged_documents_count_as_chosen(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log = tmp_path / "run", tmp_path / "log.sqlite"
    indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run)
    topic = next(iter(gold))
    first, _, third = ranked(run)[topic][:3]
    with JudgmentLog(log) as opened:
        session = Session(opened, "nlps", Author("ann"))
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
    judge_like_gold(log, half, ranked(before))
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
    qrels.write_text("".join(f"{topic} 0 {one} 1\n" for topic, relevant in gold.items() for one in relevant))
    by_qrels = indexed_offline("evaluate", run, "--qrels", qrels, "--cutoff", 50, "--json").json
    by_gold = indexed_offline("evaluate", run, "--cutoff", 50, "--json").json
    assert by_qrels["official"]["value"] == pytest.approx(by_gold["official"]["value"], abs=1e-12)


@pytest.fixture
def indexed_offline(offline: Cli) -> Cli:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    return offline


def test_official_files_of_judgments_score_as_gold(
    indexed_offline: Cli, gold: dict[str, list[str]], tmp_path: Path
) -> None:
    run, log, out = tmp_path / "run", tmp_path / "log.sqlite", tmp_path / "gold.json"
    indexed_offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run)
    judge_like_gold(log, gold, ranked(run))
    export = (
        "judgments",
        "export",
        "nlps",
        "--format",
        "official",
        "--data",
        SAMPLE,
        "--log",
        log,
        "--out",
        out,
    )
    assert indexed_offline(*export, "--split", "dev").code == 0
    own = indexed_offline("evaluate", run, "--cutoff", 50, "--gold", out, "--json").json["official"]
    official = indexed_offline("evaluate", run, "--cutoff", 50, "--json").json["official"]
    assert own["value"] == pytest.approx(official["value"], abs=1e-12)
    assert indexed_offline(*export, "--split", "dev").code == 2  # the file is there
    assert indexed_offline(*export, "--overwrite").code == 2  # which split?
