"""The topics screen in a real terminal."""

from __future__ import annotations

from pathlib import Path

from searchapp.judging.log import JudgmentLog
from tests.terminal import Terminal
from tests.tui.conftest import SampleRuns


def test_topics_of_a_run_are_shown_and_judged_by_keys_alone(samples: SampleRuns, tmp_path: Path) -> None:
    run = samples.run("nlps")
    (tmp_path / "indexes").symlink_to(samples.home / "indexes")
    rows = [line.split() for line in (run / "run.trec").read_text().splitlines()]
    topics = list(dict.fromkeys(row[0] for row in rows))
    first = {topic: next(row[2] for row in rows if row[0] == topic) for topic in topics}
    with Terminal(
        "topics",
        "nlps",
        "--run",
        run,
        "--annotator",
        "ann",
        "--depth",
        3,
        home=tmp_path,
        columns=80,
        lines=24,
    ) as terminal:
        terminal.wait_for(rf"Document {first[topics[0]]} .*rank 1 ")
        terminal.wait_for(rf"Topic {topics[0]} · AP \S+ · \d of \d missed")
        terminal.press("]")
        terminal.wait_for(rf"Topic {topics[1]} ")
        terminal.wait_for(rf"Document {first[topics[1]]} .*rank 1 ")
        terminal.press("w")
        terminal.wait_for(rf"{first[topics[1]]} is at rank 1, with the score")
        terminal.press("escape")
        terminal.wait_for(rf"Document {first[topics[1]]} .*rank 1 ")
        terminal.press("J", "1")
        terminal.wait_for("saved  1 relevant")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    with JudgmentLog(tmp_path / "judgments.sqlite") as log:
        ((_position, event),) = log.events()
    assert (event.topic_id, event.document_id, event.grade, event.rank) == (
        topics[1], first[topics[1]], 1, 1
    )  # fmt: skip
