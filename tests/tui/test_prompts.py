"""JudgingHarness through prompts."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from searchapp.errors import SearchappError
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.kit import prompts
from tests.tui.conftest import JudgingHarness, fail_to_save, typing


def run_prompts(
    judging: JudgingHarness,
    *lines: str,
    task: str = "nlps",
    seed: int | None = None,
    depth: int | None = None,
    show_others: bool = False,
) -> str:
    """Run the prompts with these lines of input, and return the output."""
    out = io.StringIO()
    judging.app(task, seed=seed, depth=depth, show_others=show_others)
    JudgePrompts(judging.own_session, judging.run_pages, "title", ask=typing(lines, out), out=out).converse()
    return out.getvalue()


def saved_actions(judging: JudgingHarness) -> list[tuple[str, int | None, str]]:
    return [(event.action.value, event.grade, event.text) for event in judging.events()]


def test_lines_grade_and_the_next_document_is_shown(judging: JudgingHarness) -> None:
    text = run_prompts(
        judging, "1", "0 too general", "s", "x cut off", "a odd one", "+", "a dull", "n odd", "q"
    )
    assert saved_actions(judging) == [
        ("grade", 1, ""),
        ("grade", 0, "too general"),
        ("skip", None, ""),
        ("cant_tell", None, "cut off"),
        ("note", None, "odd one"),
        ("note", None, "dull"),
    ]
    assert text.count("saved. ") == 6 and "Document 5 of 69" in text
    documents = judging.own_session.order(judging.own_session.topics[0]).documents
    assert [event.document_id for event in judging.events()[3:]] == [documents[3], documents[3], documents[5]]
    assert "write the note after a, as in: a see topic 7" in text


def test_undo_and_redo(judging: JudgingHarness) -> None:
    text = run_prompts(judging, "1", "u", "u", "U", "U")
    assert [action for action, _grade, _text in saved_actions(judging)] == ["grade", "retract", "grade"]
    assert text.count("nothing to undo or redo") == 2


def test_bulk_asks_for_confirmation(judging: JudgingHarness) -> None:
    run_prompts(judging, "bulk 2-4 0", "n", "bulk 2-4 1", "y", "bulk 0-3 1", "bulk 1-2 9")
    assert [event.rank for event in judging.events()] == [2, 3, 4]


def test_moving_between_documents_and_topics(judging: JudgingHarness) -> None:
    text = run_prompts(
        judging, "# 12", "+", "-", "# 1000", "i nobody", "]", "[", "}", "t 3", "t zzz", "t", "t 99", "/group", "/",
        "d",
    )  # fmt: skip
    assert "Document 12 of 69" in text and "Document 13 of 69" in text
    assert "no document has this number" in text and "this topic has no document nobody" in text
    assert "Topic 3 of 10" in text and "no topic has these words" in text
    assert "no topic has this number" in text
    assert "documents have these words" in text


def test_the_other_commands(judging: JudgingHarness) -> None:
    text = run_prompts(judging, "?", "m", "topic", "1", "score", "7", "what", "a", "")
    assert "annotate" in text and "unknown grade 7" in text and "unknown command 'what'" in text
    assert "AP 1.000" in text and "write the note after a, as in: a see topic 7" in text


def test_blind_prompts_hide_scores_and_others(judging: JudgingHarness) -> None:
    judging.app()
    topic = judging.own_session.topics[0]
    judging.session("ben").grade(
        [SeenDocument(topic, document) for document in judging.own_session.order(topic).documents], 1
    )
    text = run_prompts(judging, "score", "1", seed=3)
    assert "ben" not in text and "AP" not in text and "Blind" in text
    assert "ben: 1 relevant" not in run_prompts(judging, "d", "+", "-")
    assert "ben: 1 relevant" in run_prompts(judging, "# 1", "1", "# 1")


def test_debates_are_shown_with_their_context(judging: JudgingHarness) -> None:
    text = run_prompts(judging, "d", task="checkthat")
    assert "before: " in text or "after: " in text
    assert "speaker: " in text


def test_unsaved_judgments_are_reported_and_can_be_written_to_a_file(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(JudgmentLog, "append", fail_to_save)
    text = run_prompts(judging, "1", "q", "s", "q", "t", "s", "q")
    assert "NOT SAVED. 1 judgment is waiting: the disk is full" in text
    assert list(tmp_path.glob("searchapp-judgments-*.jsonl"))


def test_the_end_of_topics_and_of_the_run_is_reported(judging: JudgingHarness) -> None:
    topics = 10
    text = run_prompts(judging, *["1", "}"] * topics, depth=1)
    assert "all documents of this topic are judged" in text
    assert "every document of every topic is judged" in text


def test_prompts_end_at_the_end_of_the_input_with_an_unreadable_log(judging: JudgingHarness) -> None:
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

    JudgePrompts(judging.own_session, judging.run_pages, "title", ask=ask, out=out).converse()
    assert out.getvalue().count("error: ") == 1


def test_prompts_fail_at_the_end_of_the_input_if_judgments_would_be_lost(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_rescue(_session: object) -> str:
        raise SearchappError("no file could be written")

    monkeypatch.setattr(prompts, "rescue", fail_to_rescue)
    monkeypatch.setattr(judging.log, "append", fail_to_save)
    with pytest.raises(SearchappError, match="no file could be written"):
        run_prompts(judging, "1")


def make_unreadable(judging: JudgingHarness) -> None:
    with closing(sqlite3.connect(judging.log.path)) as log:
        log.execute("DROP TABLE events")
