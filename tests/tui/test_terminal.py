"""Judging and adjudication in a real terminal."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.assignment import Assigned, Assignment, write
from searchapp.judging.events import Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tasks import load
from searchapp.tui.kit.content import Form, Notation
from searchapp.tui.kit.widgets import one_line
from tests.profile import FULL
from tests.terminal import Terminal
from tests.tui.conftest import SAMPLES, SampleRuns

TEXTS = json.loads((SAMPLES / "nlps" / "knowledge_base.json").read_text(encoding="utf-8"))


def label_pattern(document: str) -> str:
    """Return a pattern of the beginning of a document of the sample."""
    notation = Notation(load("nlps").info.markup, Form.rendered)
    return re.escape("“" + one_line(TEXTS[document], notation)[:8])


@pytest.fixture
def home(samples: SampleRuns, tmp_path: Path) -> Path:
    """Make a home directory with the indexes of the sample and without judgments."""
    samples.run("nlps")
    (tmp_path / "indexes").symlink_to(samples.home / "indexes")
    return tmp_path


@pytest.fixture
def terminal(samples: SampleRuns, home: Path) -> Iterator[Terminal]:
    run = samples.run("nlps")
    terminal = Terminal(
        "judge", "nlps", "--run", run, "--annotator", "ann", "--depth", "all", home=home, columns=80, lines=24
    )
    yield terminal
    terminal.close()


def events(home: Path) -> list[Event]:
    with JudgmentLog(home / "judgments.sqlite") as log:
        return [event for _position, event in log.events()]


GRADED, UNDONE, LEFT_UNDONE = (200, 40, 10) if FULL else (60, 12, 3)
"""Numbers of documents that are graded, then undone, and not redone."""


def test_many_grades_are_given_undone_redone_and_changed_by_keys_alone(
    terminal: Terminal, samples: SampleRuns, home: Path
) -> None:
    rows = [line.split() for line in (samples.run("nlps") / "run.trec").read_text().splitlines()]
    topics = list(dict.fromkeys(row[0] for row in rows))
    order = [(row[0], row[2]) for topic in topics for row in rows if row[0] == topic]
    terminal.wait_for("Document .* rank 1 ")
    expected: list[tuple[str, str, str, int | None]] = []
    for number, (topic, document) in enumerate(order[:GRADED]):
        if topic != order[number - 1][0] and number:
            terminal.wait_for("topic done: } goes on")
            terminal.press("}")
        terminal.wait_for(rf"Document {document} · rank")
        grade = number * 7 % 3 % 2
        terminal.press(str(grade))
        terminal.wait_for(rf"saved  {grade} .*{label_pattern(document)}")
        expected.append(("grade", topic, document, grade))
    for number in range(1, UNDONE + 1):
        topic, document = order[GRADED - number]
        terminal.press("u")
        terminal.wait_for(rf"saved  undone: {label_pattern(document)}")
        expected.append(("retract", topic, document, None))
    for number in range(UNDONE, LEFT_UNDONE, -1):
        topic, document = order[GRADED - number]
        terminal.press("U")
        terminal.wait_for(rf"saved  redone: {label_pattern(document)}")
        expected.append(("grade", topic, document, (GRADED - number) * 7 % 3 % 2))
    topic = order[GRADED - LEFT_UNDONE - 1][0]
    for _topic, document in [pair for pair in order[:GRADED] if pair[0] == topic][:5]:
        terminal.press("i")
        terminal.wait_for("Go to the document")
        terminal.press(document, "enter")
        terminal.wait_for(rf"Document {document} · rank")
        terminal.press("x")
        terminal.wait_for(rf"saved  can't tell, was [01] .*{label_pattern(document)}")
        expected.append(("cant_tell", topic, document, None))
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    assert [
        (event.action.value, event.topic_id, event.document_id, event.grade) for event in events(home)
    ] == expected
    assert all(event.annotator == "ann" and event.kind == "person" for event in events(home))


def test_a_grade_reported_as_saved_survives_a_kill(terminal: Terminal, home: Path) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.close()
    assert [event.grade for event in events(home)] == [1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_screen_cleanly(terminal: Terminal, home: Path, number: signal.Signals) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.signal(number)
    assert terminal.wait_for_end() == 128 + number
    assert b"\x1b[?1049l" in terminal.raw  # restores the terminal's earlier screen
    assert len(events(home)) == 1


def test_a_small_terminal_without_colours_works(samples: SampleRuns, home: Path) -> None:
    with Terminal(
        "judge", "nlps", "--run", samples.run("nlps"), home=home, columns=80, lines=24, NO_COLOR="1"
    ) as terminal:
        terminal.wait_for("Document .* rank 1 ")
        terminal.press("1", "?")
        terminal.wait_for("Grade 0: not relevant")
        terminal.press("escape")
        terminal.wait_for("Ranking")  # or the next key would make it Alt-Q
        colours = set(re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", terminal.raw))
        assert colours and all(red == green == blue for red, green, blue in colours)
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_prompts_work_on_a_dumb_terminal(samples: SampleRuns, home: Path) -> None:
    with Terminal(
        "judge", "nlps", "--run", samples.run("nlps"), "--annotator", "ann", home=home, TERM="dumb"
    ) as terminal:
        terminal.wait_for("> $|> \n|>  ")
        terminal.press("1", "enter")
        terminal.wait_for(r"saved\. ")
        assert b"\x1b[" not in terminal.raw
        terminal.press("q", "enter")
        assert terminal.wait_for_end() == 0
    (event,) = events(home)
    assert (event.channel, event.grade) == ("plain", 1)


def test_only_assigned_topics_are_judged(samples: SampleRuns, home: Path) -> None:
    run = samples.run("nlps")
    topics = list(dict.fromkeys(line.split()[0] for line in (run / "run.trec").read_text().splitlines()))
    own_topics = [topics[5], topics[2]]
    assigned = Assigned("nlps", "dev", Assignment({"ann": tuple(own_topics), "ben": (topics[0],)}, (), 0))
    with (home / "assignment.json").open("wb") as file:
        write(file, assigned)
    with Terminal(
        "judge", "nlps", "--run", run, "--annotator", "ann", "--assignment", home / "assignment.json",
        "--depth", 1, home=home,
    ) as terminal:  # fmt: skip
        terminal.wait_for(r"ann · 2 assigned")
        terminal.wait_for(f"Topic {own_topics[0]}")
        terminal.press("1")
        terminal.wait_for("topic done: } goes on")
        terminal.press("}")
        terminal.wait_for(f"Topic {own_topics[1]}")
        terminal.press("0", "}")
        terminal.wait_for("every document of every topic is judged")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    assert [(event.topic_id, event.grade) for event in events(home)] == [
        (own_topics[0], 1),
        (own_topics[1], 0),
    ]


def test_disagreements_are_decided_by_keys_alone(samples: SampleRuns, home: Path) -> None:
    rows = [line.split() for line in (samples.run("nlps") / "run.trec").read_text().splitlines()]
    topic = rows[0][0]
    documents = sorted(row[2] for row in rows[:3])
    with JudgmentLog(home / "judgments.sqlite") as log:
        for name, grade in (("ann", 1), ("ben", 0)):
            Session(log, "nlps", Author(name)).grade(
                [SeenDocument(topic, document) for document in documents], grade
            )
    with Terminal(
        "judgments", "adjudicate", "nlps", "--annotator", "kim", "--data", SAMPLES / "nlps",
        home=home, columns=80, lines=24, NO_COLOR="1",
    ) as terminal:  # fmt: skip
        terminal.wait_for(f"Document {documents[0]}")
        terminal.wait_for("0 of 3 decided")
        for number, (document, key) in enumerate(zip(documents, "101", strict=True), 1):
            terminal.wait_for(f"Document {document}")
            terminal.press(key)
            terminal.wait_for(rf"saved  decided {key} .*{label_pattern(document)}")
            terminal.wait_for(f"{number} of 3 decided")
        terminal.press("u")
        terminal.wait_for("2 of 3 decided")
        terminal.press("U", "q")
        assert terminal.wait_for_end() == 0
    assert b"3 of 3 disputed documents are decided" in terminal.raw
    decisions = [event for event in events(home) if event.annotator == "kim"]
    assert [event.action.value for event in decisions] == ["adjudicate"] * 3 + ["retract", "adjudicate"]
    assert [(event.document_id, event.grade) for event in decisions[:3]] == list(
        zip(documents, (1, 0, 1), strict=True)
    )


def test_a_key_directly_after_a_paste_finds_the_pasted_text(terminal: Terminal, home: Path) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("a")
    terminal.wait_for("(?i)note on")
    terminal.press("\x1b[200~from the paper\nand a second line\x1b[201~", "enter")
    terminal.wait_for("saved")
    (event,) = events(home)
    assert (event.action, event.text) == ("note", "from the paper and a second line")
