"""The interface as people meet it: the program on a terminal, driven by keys alone."""

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
from tests.profile import FULL
from tests.terminal import Terminal
from tests.tui.conftest import SAMPLES, Prepared

TEXTS = json.loads((SAMPLES / "nlps" / "knowledge_base.json").read_text(encoding="utf-8"))


def begin(document: str) -> str:
    """What a document of the sample begins with, as a pattern."""
    return re.escape("“" + " ".join(TEXTS[document].replace("'''", "").split())[:8])


@pytest.fixture
def home(prepared: Prepared, tmp_path: Path) -> Path:
    """A home folder with the indexes of the sample and no judgments."""
    prepared.run("nlps")
    (tmp_path / "indexes").symlink_to(prepared.home / "indexes")
    return tmp_path


@pytest.fixture
def terminal(prepared: Prepared, home: Path) -> Iterator[Terminal]:
    run = prepared.run("nlps")
    terminal = Terminal(
        "judge", "nlps", "--run", run, "--annotator", "ann", "--depth", "all", home=home, columns=80, lines=24
    )
    yield terminal
    terminal.close()


def events(home: Path) -> list[Event]:
    with JudgmentLog(home / "judgments.sqlite") as log:
        return [event for _place, event in log.events()]


GRADED, UNDONE, LEFT_UNDONE = (200, 40, 10) if FULL else (60, 12, 3)
"""How many documents are graded, of how many of them that is undone, and of how many it is not redone."""


def test_many_documents_are_graded_undone_redone_and_changed_by_keys_alone(
    terminal: Terminal, prepared: Prepared, home: Path
) -> None:
    rows = [line.split() for line in (prepared.run("nlps") / "run.trec").read_text().splitlines()]
    topics = list(dict.fromkeys(row[0] for row in rows))
    order = [(row[0], row[2]) for topic in topics for row in rows if row[0] == topic]
    terminal.wait_for("Document .* rank 1 ")
    expected: list[tuple[str, str, str, int | None]] = []
    for place, (topic, document) in enumerate(order[:GRADED]):
        if topic != order[place - 1][0] and place:
            terminal.wait_for("topic done: G goes on")
            terminal.press("G")
        terminal.wait_for(rf"Document {document} · rank")
        grade = place * 7 % 3 % 2
        terminal.press(str(grade))
        terminal.wait_for(rf"saved  {grade} .*{begin(document)}")
        expected.append(("grade", topic, document, grade))
    for place in range(1, UNDONE + 1):
        topic, document = order[GRADED - place]
        terminal.press("u")
        terminal.wait_for(rf"saved  undone: {begin(document)}")
        expected.append(("retract", topic, document, None))
    for place in range(UNDONE, LEFT_UNDONE, -1):
        topic, document = order[GRADED - place]
        terminal.press("U")
        terminal.wait_for(rf"saved  redone: {begin(document)}")
        expected.append(("grade", topic, document, (GRADED - place) * 7 % 3 % 2))
    topic = order[GRADED - LEFT_UNDONE - 1][0]
    for _topic, document in [one for one in order[:GRADED] if one[0] == topic][:5]:
        terminal.press("i")
        terminal.wait_for("Go to the document")
        terminal.press(document, "enter")
        terminal.wait_for(rf"Document {document} · rank")
        terminal.press("x")
        terminal.wait_for(rf"saved  can't tell, was [01] .*{begin(document)}")
        expected.append(("cant_tell", topic, document, None))
    terminal.press("q")
    assert terminal.wait_for_end() == 0
    assert [(one.action.value, one.topic_id, one.document_id, one.grade) for one in events(home)] == expected
    assert all(one.annotator == "ann" and one.kind == "person" for one in events(home))


def test_what_was_shown_as_saved_survives_a_kill(terminal: Terminal, home: Path) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.close()
    assert [event.grade for event in events(home)] == [1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(terminal: Terminal, home: Path, number: signal.Signals) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("1")
    terminal.wait_for("saved")
    terminal.signal(number)
    assert terminal.wait_for_end() == 128 + number
    assert b"\x1b[?1049l" in terminal.raw  # the screen that was there before is there again
    assert len(events(home)) == 1


def test_a_small_terminal_without_colours_works(prepared: Prepared, home: Path) -> None:
    terminal = Terminal(
        "judge", "nlps", "--run", prepared.run("nlps"), home=home, columns=80, lines=24, NO_COLOR="1"
    )
    try:
        terminal.wait_for("Document .* rank 1 ")
        terminal.press("1", "?")
        terminal.wait_for("Grade 0: not relevant")
        terminal.press("escape")
        terminal.wait_for("Ranking.*Topic")  # or the next key would make it Alt-Q
        colours = set(re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", terminal.raw))
        assert colours and all(red == green == blue for red, green, blue in colours)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()


def test_prompts_work_on_a_terminal_that_can_do_nothing(prepared: Prepared, home: Path) -> None:
    terminal = Terminal(
        "judge", "nlps", "--run", prepared.run("nlps"), "--annotator", "ann", home=home, TERM="dumb"
    )
    try:
        terminal.wait_for("> $|> \n|>  ")
        terminal.press("1", "enter")
        terminal.wait_for(r"saved\. ")
        assert b"\x1b[" not in terminal.raw
        terminal.press("q", "enter")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()
    (event,) = events(home)
    assert (event.channel, event.grade) == ("plain", 1)


def test_an_assignment_leaves_the_annotators_topics(prepared: Prepared, home: Path) -> None:
    run = prepared.run("nlps")
    topics = list(dict.fromkeys(line.split()[0] for line in (run / "run.trec").read_text().splitlines()))
    own = [topics[5], topics[2]]
    assigned = Assigned("nlps", "dev", Assignment({"ann": tuple(own), "ben": (topics[0],)}, (), 0))
    with (home / "assignment.json").open("wb") as file:
        write(file, assigned)
    terminal = Terminal(
        "judge", "nlps", "--run", run, "--annotator", "ann", "--assignment", home / "assignment.json",
        "--depth", 1, home=home,
    )  # fmt: skip
    try:
        terminal.wait_for(r"ann · 2 assigned")
        terminal.wait_for(f"Topic {own[0]}")
        terminal.press("1")
        terminal.wait_for("topic done: G goes on")
        terminal.press("G")
        terminal.wait_for(f"Topic {own[1]}")
        terminal.press("0", "G")
        terminal.wait_for("every document of every topic is judged")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()
    assert [(event.topic_id, event.grade) for event in events(home)] == [(own[0], 1), (own[1], 0)]


def test_disagreements_are_decided_by_keys_alone(prepared: Prepared, home: Path) -> None:
    rows = [line.split() for line in (prepared.run("nlps") / "run.trec").read_text().splitlines()]
    topic = rows[0][0]
    documents = sorted(row[2] for row in rows[:3])
    with JudgmentLog(home / "judgments.sqlite") as log:
        for name, grade in (("ann", 1), ("ben", 0)):
            Session(log, "nlps", Author(name)).grade([SeenDocument(topic, one) for one in documents], grade)
    terminal = Terminal(
        "judgments", "adjudicate", "nlps", "--annotator", "kim", "--data", SAMPLES / "nlps",
        home=home, columns=80, lines=24, NO_COLOR="1",
    )  # fmt: skip
    try:
        terminal.wait_for(f"Document {documents[0]}")
        terminal.wait_for("0 of 3 decided")
        for number, (document, key) in enumerate(zip(documents, "101", strict=True), 1):
            terminal.wait_for(f"Document {document}")
            terminal.press(key)
            terminal.wait_for(rf"saved  decided {key} .*{begin(document)}")
            terminal.wait_for(f"{number} of 3 decided")
        terminal.press("u")
        terminal.wait_for("2 of 3 decided")
        terminal.press("U", "q")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()
    assert b"3 of 3 disputed documents are decided" in terminal.raw
    decided = [event for event in events(home) if event.annotator == "kim"]
    assert [event.action.value for event in decided] == ["adjudicate"] * 3 + ["retract", "adjudicate"]
    assert [(event.document_id, event.grade) for event in decided[:3]] == list(
        zip(documents, (1, 0, 1), strict=True)
    )


def test_a_key_behind_pasted_text_finds_the_text_there(terminal: Terminal, home: Path) -> None:
    terminal.wait_for("Document .* rank 1 ")
    terminal.press("n")
    terminal.wait_for("(?i)note")
    terminal.press("\x1b[200~from the paper\nand a second line\x1b[201~", "enter")
    terminal.wait_for("saved")
    (event,) = events(home)
    assert (event.action, event.text) == ("note", "from the paper")
