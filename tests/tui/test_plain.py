"""Judging through prompts."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from searchapp.errors import SearchappError
from searchapp.judging.event_log import NotSaved
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.kit import prompts
from tests.tui.conftest import Judging, typing


def talk(
    judging: Judging,
    *lines: str,
    task: str = "nlps",
    seed: int | None = None,
    depth: int | None = None,
    show_others: bool = False,
) -> str:
    """What is said when these lines are typed; the end of the input follows them."""
    out = io.StringIO()
    judging.app(task, seed=seed, depth=depth, show_others=show_others)
    JudgePrompts(judging.judging, judging.run_pages, "title", ask=typing(lines, out), out=out).converse()
    return out.getvalue()


def said(judging: Judging) -> list[tuple[str, int | None, str]]:
    return [(event.action.value, event.grade, event.text) for event in judging.events()]


def test_lines_grade_and_the_next_document_is_read(judging: Judging) -> None:
    shown = talk(judging, "1", "0 too general", "s", "x cut off", "n odd one", "q")
    assert said(judging) == [
        ("grade", 1, ""),
        ("grade", 0, "too general"),
        ("skip", None, ""),
        ("cant_tell", None, "cut off"),
        ("note", None, "odd one"),
    ]
    assert shown.count("saved. ") == 5 and "Document 5 of 69" in shown


def test_undo_and_redo(judging: Judging) -> None:
    shown = talk(judging, "1", "u", "u", "redo", "redo")
    assert [action for action, _grade, _text in said(judging)] == ["grade", "retract", "grade"]
    assert shown.count("nothing to undo or redo") == 2


def test_bulk_asks_first(judging: Judging) -> None:
    talk(judging, "bulk 2-4 0", "n", "bulk 2-4 1", "y", "bulk 0-3 1", "bulk 1-2 9")
    assert [event.rank for event in judging.events()] == [2, 3, 4]


def test_moving_about(judging: Judging) -> None:
    shown = talk(
        judging,
        "# 12",
        "+",
        "-",
        "# 1000",
        "i nobody",
        "]",
        "[",
        "G",
        "t 3",
        "t zzz",
        "t",
        "t 99",
        "/group",
        "/",
        "d",
    )
    assert "Document 12 of 69" in shown and "Document 13 of 69" in shown
    assert "no document has this number" in shown and "this topic has no document nobody" in shown
    assert (
        "Topic 3 of 10" in shown
        and "no topic has these words" in shown
        and "no topic has this number" in shown
    )
    assert "documents have these words" in shown


def test_the_rest_of_the_commands(judging: Judging) -> None:
    shown = talk(judging, "?", "m", "topic", "1", "score", "7", "what", "n", "")
    assert "redo" in shown and "unknown grade 7" in shown and "unknown command 'what'" in shown
    assert "AP 1.000" in shown and "write the note after n, as in: n see topic 7" in shown


def test_blind_prompts_hide_scores_and_others(judging: Judging) -> None:
    judging.app()
    topic = judging.judging.topics[0]
    judging.session("ben").grade(
        [SeenDocument(topic, one) for one in judging.judging.order(topic).documents], 1
    )
    shown = talk(judging, "score", "1", seed=3)
    assert "ben" not in shown and "AP" not in shown and "Blind" in shown
    assert "ben: 1 relevant" not in talk(judging, "d", "+", "-")
    assert "ben: 1 relevant" in talk(judging, "# 1", "1", "# 1")


def test_debates_are_read_with_their_context(judging: Judging) -> None:
    shown = talk(judging, "d", task="checkthat")
    assert "before: " in shown or "after: " in shown
    assert "speaker: " in shown


def test_what_is_not_saved_is_told_and_can_be_written_to_a_file(
    judging: Judging, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def full(self: JudgmentLog, events: Any) -> int:
        raise NotSaved("the disk is full")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(JudgmentLog, "append", full)
    shown = talk(judging, "1", "q", "s", "q", "t", "s", "q")
    assert "NOT SAVED. 1 judgment is waiting: the disk is full" in shown
    assert list(tmp_path.glob("searchapp-judgments-*.jsonl"))


def test_everything_judged_is_told(judging: Judging) -> None:
    topics = 10
    shown = talk(judging, *["1", "G"] * topics, depth=1)
    assert "all documents of this topic are judged" in shown
    assert "every document of every topic is judged" in shown


def test_prompts_end_at_the_end_of_the_input_with_an_unreadable_log(judging: Judging) -> None:
    judging.app()
    lines, out = iter(["1", "0"]), io.StringIO()

    def ask(_prompt: str) -> str:
        line = next(lines, None)
        if line == "0":
            make_unreadable(judging)
        if line is None:
            assert out.getvalue().count("error: ") < 3  # the end of the input is read once
            raise EOFError
        return line

    JudgePrompts(judging.judging, judging.run_pages, "title", ask=ask, out=out).converse()
    assert out.getvalue().count("error: ") == 1


def test_prompts_fail_at_the_end_of_the_input_if_judgments_would_be_lost(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_session: object) -> str:
        raise SearchappError("the disk is full")

    monkeypatch.setattr(prompts, "rescue", full)
    monkeypatch.setattr(judging.log, "append", lambda _events: make_unwritable())
    with pytest.raises(SearchappError, match="the disk is full"):
        talk(judging, "1")


def make_unreadable(judging: Judging) -> None:
    with closing(sqlite3.connect(judging.log.path)) as log:
        log.execute("DROP TABLE events")


def make_unwritable() -> None:
    raise NotSaved("the log can't be written")
