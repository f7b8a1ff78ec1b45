"""`searchapp judge` with prompts, on both engines; the screen is tested in tests/tui."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from searchapp.judging.events import Author, Event
from searchapp.judging.log import JudgmentLog, Presence
from searchapp.judging.session import SeenDocument, Session
from tests.cli.conftest import SAMPLE, Cli, Result, run_command

pytestmark = pytest.mark.shared_indexes

CHECKTHAT = SAMPLE.parent / "checkthat"


def judge(run: Path, *options: object, typed: str, task: str = "nlps") -> Result:
    return run_command("judge", task, "--run", run, "--annotator", "ann", "--plain", *options, typed=typed)


def events(tmp_path: Path) -> list[Event]:
    with JudgmentLog(tmp_path / "home" / "judgments.sqlite") as log:
        return [event for _number, event in log.events()]


def test_judging_through_prompts_writes_the_log(indexed: Cli, run: Path, tmp_path: Path) -> None:
    result = judge(run, typed="1\n0\nu\n/group\nm\nscore\nq\n")
    assert result.code == 0, result.stderr
    assert "saved. " in result.stdout and "documents have these words" in result.stdout
    assert [(event.action.value, event.grade) for event in events(tmp_path)] == [
        ("grade", 1),
        ("grade", 0),
        ("retract", None),
    ]
    assert "all judgments are saved in" in result.stderr
    stats = indexed("judgments", "stats", "nlps", "--json")
    assert stats.code == 0


def test_the_option_overrides_the_annotator_setting(
    indexed: Cli, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / "settings.toml").write_text('annotator = "kim"\n')
    command = ["judge", "nlps", "--run", str(run), "--plain"]
    for options in ([], ["--annotator", "ann"]):
        assert run_command(*command, *options, typed="1\nq\n").code == 0
    monkeypatch.setenv("SEARCHAPP_ANNOTATOR", "ben")
    assert run_command(*command, typed="1\nq\n").code == 0
    assert [event.annotator for event in events(tmp_path)] == ["kim", "ann", "ben"]


def test_a_line_is_shown_with_its_neighbours_in_the_debate(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "debates"
    assert cli("index", "checkthat", "--data", CHECKTHAT).code == 0
    assert cli("rank", "checkthat", "--data", CHECKTHAT, "--split", "training", "--out", out).code == 0
    first = (out / "run.trec").read_text().split()[0]
    text = judge(out, typed=f"i {first}:5\nq\n", task="checkthat").stdout
    document = text[text.index(f"{first}:5:") :]
    assert document.count("before: ") == 3 and document.count("after: ") == 3


def test_blind_judging_records_its_seed(run: Path, tmp_path: Path) -> None:
    judge(run, "--blind", typed="1\nq\n")
    judge(run, "--blind", "--seed", 4, "--depth", 5, typed="1\nq\n")
    first, second = events(tmp_path)
    assert "shuffled with seed " in first.run and second.run.endswith("shuffled with seed 4")
    assert second.rank is not None and second.rank <= 5


def test_the_depth_limits_the_documents_to_judge(offline: Cli, tmp_path: Path) -> None:
    facts = tmp_path / "data" / "facts.jsonl"
    facts.parent.mkdir()
    texts = [f"salt {number}" if number < 130 else f"pepper {number}" for number in range(150)]
    facts.write_text(
        "".join(json.dumps({"id": f"d{n:03}", "text": text}) + "\n" for n, text in enumerate(texts))
    )
    (tmp_path / "data" / "topics.tsv").write_text("id\tquestion\nt1\tsalt\nt2\tnothing at all\n")
    task = tmp_path / "data" / "own.toml"
    description = """name = "own"
depth = 200
{}
[documents]
file = "facts.jsonl"
[topics.dev]
file = "topics.tsv"
text = "question"
"""
    task.write_text(description.format(""))
    run = tmp_path / "run"
    assert offline("index", task).code == 0
    assert offline("rank", task, "--split", "dev", "--out", run).code == 0

    def count_offered(*options: object) -> str:
        output = judge(run, *options, typed="q\n", task=str(task)).stdout
        return str(output.split("documents judged")[0].split()[-1])

    ranked = sum(line.startswith("t1 ") for line in (run / "run.trec").read_text().splitlines())
    assert count_offered() == "100"
    assert count_offered("--depth", 110) == "110"
    assert count_offered("--depth", 999) == "130"
    assert count_offered("--depth", "all") == str(ranked)
    task.write_text(description.format("judging_depth = 7"))
    assert count_offered() == "7"
    for wrong in ("0", "-1", "some", "1.5"):
        result = judge(run, "--depth", wrong, typed="", task=str(task))
        assert result.code == 2 and f"--depth {wrong}: give a number from 1, or all" in result.stderr


def test_a_pool_is_judged_to_its_full_depth(indexed: Cli, run: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    assert indexed("judgments", "pool", run, "--depth", 60, "--out", pool).code == 0
    assert "Document 1 of 60" in judge(pool, typed="q\n").stdout
    assert "Document 1 of 5," in judge(pool, "--depth", 5, typed="q\n").stdout


def test_prompts_hide_ranks_and_measures_of_pools_and_assignments(
    indexed: Cli, run: Path, tmp_path: Path
) -> None:
    pool, assignment = tmp_path / "pool", tmp_path / "assignment.json"
    assert indexed("judgments", "pool", run, "--out", pool).code == 0
    data = ("--data", SAMPLE, "--split", "dev")
    assert indexed("judgments", "assign", "nlps", *data, "--quota", "ann=2", "--out", assignment).code == 0
    typed = "1\nscore\nq\n"
    assert "AP " in judge(run, "--annotator", "ann", typed=typed).stdout
    for hidden in ((pool,), (run, "--assignment", assignment), (pool, "--blind")):
        output = judge(*hidden, "--annotator", "ann", typed=typed).stdout
        assert "scores" in output and "are hidden" in output and "AP " not in output


def test_grades_of_others_are_hidden_until_the_document_is_judged(run: Path, tmp_path: Path) -> None:
    judge(run, "--annotator", "ben", typed="1 by definition\nq\n")
    assert "ben: " not in judge(run, typed="d\nq\n").stdout
    assert "ben: 1 relevant: by definition" in judge(run, "--show-others", typed="q\n").stdout
    assert "ben: 1 relevant: by definition" in judge(run, typed="0\n# 1\n1\nq\n").stdout
    assert [event.saw_others for event in events(tmp_path)] == [False, False, True]
    result = judge(run, "--blind", "--show-others", typed="")
    assert result.code == 2 and "--show-others and --blind exclude each other" in result.stderr


def test_a_second_window_causes_a_warning(run: Path, tmp_path: Path) -> None:
    log = tmp_path / "home" / "judgments.sqlite"
    with Presence(log, "nlps", "ann"):
        result = judge(run, typed="1\nq\n")
        other = judge(run, "--annotator", "ben", typed="q\n")
    assert "warning: ann is already judging nlps in another window (process " in result.stderr
    assert "saved. 1 relevant" in result.stdout and "another window" not in other.stderr
    assert "another window" not in judge(run, typed="q\n").stderr


def test_a_session_ends_with_a_summary(run: Path, tmp_path: Path) -> None:
    lines = judge(run, "--depth", 3, typed="1\n0\nx\na odd\nq\n").stderr.splitlines()
    assert lines[0].startswith("judged 3 documents of 1 topic")
    assert lines[0].endswith(": 1 × 0 not relevant, 1 × 1 relevant, 1 × can't tell, 1 × noted")
    assert lines[1].startswith("27 documents of 9 topics left")
    assert lines[2] == f"all judgments are saved in {tmp_path / 'home' / 'judgments.sqlite'}"
    assert judge(run, typed="q\n").stderr.startswith("all judgments are saved in")


def test_a_model_judges_as_a_model(run: Path, tmp_path: Path) -> None:
    options = ("--kind", "model", "--topic", "608", "--log", tmp_path / "own.sqlite")
    judge(run, *options, typed="1 by its embedding\nq\n")
    with JudgmentLog(tmp_path / "own.sqlite") as log:
        ((_number, event),) = log.events()
    assert (event.kind, event.topic_id, event.text) == ("model", "608", "by its embedding")


def write_assignment(path: Path, **members: object) -> Path:
    """Write an assignment of sample topics to two annotators, with some members replaced."""
    topics = {"ann": ["608", "1023"], "ben": ["608"]}
    content = {"task": "nlps", "split": "dev", "seed": 0, "shared": ["608"], "topics": topics, **members}
    path.write_text(json.dumps(content))
    return path


def test_an_assignment_has_the_topics_of_the_annotator_in_their_order(run: Path, tmp_path: Path) -> None:
    first, *_, last = dict.fromkeys(line.split()[0] for line in (run / "run.trec").read_text().splitlines())
    file = write_assignment(tmp_path / "a.json", topics={"ann": [last, first]})
    result = judge(run, "--assignment", file, "--depth", 1, typed="1\n0\ny\n}\n1\n}\nt\n]\nq\n")
    assert result.code == 0, result.stderr
    assert f"Topic 1 of 2, {last}" in result.stdout and f"Topic 2 of 2, {first}" in result.stdout
    assert "every document of every topic is judged" in result.stdout and "2 assigned" in result.stdout
    assert result.stdout.count(" 1 of 1 judged: ") == 2  # the list of topics
    assert {event.topic_id for event in events(tmp_path)} == {first, last}


def test_the_command_that_assign_prints_for_an_annotator_works(
    indexed: Cli, run: Path, tmp_path: Path
) -> None:
    file = tmp_path / "for us.json"
    options = ("--data", SAMPLE, "--split", "dev", "--quota", "ann=2", "--out", file)
    assigned = indexed("judgments", "assign", "nlps", *options)
    (line,) = [line for line in assigned.stderr.splitlines() if "searchapp judge" in line]
    command = shlex.split(line.partition("   (")[0].replace("DIR", str(run)))
    result = run_command(*command[1:], "--plain", typed="q\n")
    assert result.code == 0 and "Topic 1 of 2" in result.stdout


def test_an_assignment_that_does_not_fit_is_refused(run: Path, tmp_path: Path) -> None:
    refusals: list[tuple[dict[str, object], list[object], int, str]] = [
        ({"split": "test"}, [], 2, "the assignment is for nlps test, the run for nlps dev"),
        ({"task": "checkthat"}, [], 2, "the assignment is for checkthat dev"),
        ({"topics": {"anna": ["608"]}}, [], 2, "assigned to ann (did you mean anna?): name one of anna"),
        ({"topics": {"ben": ["608"], "eve": ["608"]}}, [], 2, "assigned to ann: name one of ben, eve"),
        ({"topics": {"ann": ["608", "x1", "x2"]}}, [], 2, "the run lacks 2 of the 3 topics"),
        (
            {"topics": {"ann": ["608"]}},
            ["--topic", "602"],
            2,
            "the topic '602' is assigned to other annotators",
        ),
        ({"topics": {"ann": ["608"]}}, ["--topic", "nobody"], 2, "the run has no topic 'nobody'"),
        ({"topics": 1}, [], 4, "'topics'"),
    ]
    for members, options, code, message in refusals:
        file = write_assignment(tmp_path / "a.json", **members)
        result = judge(run, "--assignment", file, *options, typed="")
        assert (result.code, message in result.stderr) == (code, True), result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--topic", "nobody"], "the run has no topic 'nobody'"),
        (["--seed", 1], "--seed requires --blind"),
        (["--data", "/nowhere"], "the folder of the run's topics, /nowhere, does not exist"),
    ],
)
def test_usage_errors_are_reported(run: Path, options: list[object], message: str) -> None:
    result = judge(run, *options, typed="")
    assert result.code == 2 and message in result.stderr


def test_without_a_run_live_rankings_are_judged(indexed: Cli, run: Path, tmp_path: Path) -> None:
    rows = [line.split() for line in (run / "run.trec").read_text().splitlines()]
    topics = list(dict.fromkeys(row[0] for row in rows))
    command = ["judge", "nlps", "--data", str(SAMPLE), "--annotator", "ann", "--plain"]
    result = run_command(*command, "--depth", 2, typed="1\n0\n}\n1\nq\n")
    assert result.code == 0, result.stderr
    expected = [
        (topic, row[2], int(row[3]))
        for topic in topics
        for row in rows
        if row[0] == topic and int(row[3]) < 3
    ]
    assert [(event.topic_id, event.document_id, event.rank) for event in events(tmp_path)] == expected[:3]
    assert {event.run for event in events(tmp_path)} == {"search bm25"}
    result = run_command(
        *command, "--recipe", "neighbours", "--split", "train", "--topic", "601", typed="1\nq\n"
    )
    assert result.code == 0, result.stderr
    last = events(tmp_path)[-1]
    assert (last.run, last.topic_id, last.rank) == ("search neighbours", "601", 1)
    exported = indexed("judgments", "export", "nlps", "--format", "qrels", "--out", tmp_path / "judged.qrels")
    assert exported.code == 0
    judged = {tuple(line.split()) for line in (tmp_path / "judged.qrels").read_text().splitlines()}
    assert {(row[0], row[2], row[3]) for row in judged} == {
        (event.topic_id, event.document_id, str(event.grade)) for event in events(tmp_path)
    }


def test_an_assignment_can_be_judged_without_a_run(indexed: Cli, tmp_path: Path) -> None:
    file = write_assignment(tmp_path / "a.json", topics={"ann": ["608", "602"]})
    command = ["judge", "nlps", "--data", SAMPLE, "--annotator", "ann", "--plain", "--assignment", file]
    result = run_command(*command, typed="1\nq\n")
    assert result.code == 0 and "2 assigned" in result.stdout, result.stderr
    assert [event.topic_id for event in events(tmp_path)] == ["608"]


def test_unknown_recipes_splits_and_topics_are_refused(indexed: Cli, run: Path) -> None:
    assert judge(run, "--recipe", "bm25", typed="").code == 2
    for options, message in (
        (["--recipe", "bm26"], "bm25"),
        (["--split", "devv"], "dev"),
        (["--topic", "x"], "has no topic 'x'"),
    ):
        refused = indexed("judge", "nlps", "--data", SAMPLE, "--plain", *options)
        assert refused.code == 2 and message in refused.stderr, refused.stderr


def test_a_run_of_another_task_is_refused(indexed: Cli, run: Path) -> None:
    result = judge(run, typed="", task="checkthat")
    assert result.code == 2 and "is a run of the task nlps, not of checkthat" in result.stderr


def test_without_a_terminal_the_screen_is_not_opened(indexed: Cli, run: Path) -> None:
    result = indexed("judge", "nlps", "--run", run)
    assert result.code == 2 and "use --plain" in result.stderr


def test_invalid_settings_are_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "settings.toml").write_text('[judge.keys]\nfly = "f"\n')
    result = judge(run, typed="")
    assert result.code == 4 and "unknown action 'fly'" in result.stderr


@pytest.mark.own_indexes
def test_a_run_whose_index_has_changed_can_still_be_judged(indexed: Cli, run: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    documents = json.loads((data / "knowledge_base.json").read_text())
    documents["9101"] = documents.pop("101")
    documents["103"] += " Or so."
    (data / "knowledge_base.json").write_text(json.dumps(documents))
    assert indexed("index", "nlps", "--data", data, "--lenient").code == 0
    result = judge(run, typed="i 101\nq\n")
    assert "the index has changed since the run was ranked" in result.stderr
    assert "It is no longer in the index" in result.stdout
    result = judge(run, typed="i 101\n1\ni 103\n1\ni 104\n1\nbulk 1-70 0\ny\nq\n")
    assert "document 101 is no longer in the index, so it was not graded: rank again" in result.stdout
    changed = "the text of document 103 has changed since it was ranked, so it was not graded: rank again"
    assert changed in result.stdout
    assert result.stdout.count("saved. ") == 1 and result.stdout.count("error: ") == 3
    with JudgmentLog(tmp_path / "home" / "judgments.sqlite") as log:
        topic = next(event.topic_id for _, event in log.events())
        for name, grade in (("ben", 0), ("eve", 1)):
            session = Session(log, "nlps", Author(name))
            session.grade([SeenDocument(topic, document) for document in ("101", "103", "104")], grade)

    def adjudicate(document: str, *options: object) -> tuple[int, str]:
        arguments = ("--annotator", "kim", "--topic", topic, "--document", document, "--grade", 1)
        result = indexed("judgments", "adjudicate", "nlps", *arguments, *options)
        return result.code, result.stderr

    code, stderr = adjudicate("101", "--run", run)
    assert code == 4 and "document 101 is no longer in the index, so it was not graded: rank again" in stderr
    code, stderr = adjudicate("103", "--run", run)
    assert code == 4 and changed in stderr
    assert adjudicate("104", "--run", run)[0] == 0
    assert adjudicate("103")[0] == 0, "without a run there is nothing to compare the text with"
    assert [event.document_id for event in events(tmp_path) if event.annotator == "kim"] == ["104", "103"]
