"""What annotators see of others, and what the log says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import JudgingSession, SeenDocument, Session

DOCUMENTS = ["a", "b", "c"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JudgmentLog]:
    """Ben has graded a and b, and before it was recorded what an annotator could see."""
    with JudgmentLog(tmp_path / "judgments.sqlite") as opened:
        Session(opened, "nlps", Author("ben")).grade([SeenDocument("t", "a"), SeenDocument("t", "b")], 1)
        yield opened


def judging(
    log: JudgmentLog, name: str = "ann", *, seed: int | None = None, show_others: bool = False
) -> JudgingSession:
    session = Session(log, "nlps", Author(name))
    return JudgingSession(
        session, ["t"], lambda _: DOCUMENTS, lambda _: 3, "run", seed=seed, show_others=show_others
    )


def names(judging: JudgingSession, document: str) -> list[str]:
    return [opinion.annotator for opinion in judging.others("t", document)]


def seen(log: JudgmentLog, name: str = "ann") -> list[tuple[str, str, bool | None]]:
    """What the log says of each event of an annotator: action, document, and whether others were in sight."""
    return [
        (one.action.value, one.document_id, one.saw_others)
        for _, one in log.events()
        if one.annotator == name and one.action != "retract"
    ]


def test_others_are_hidden_until_ones_own_opinion_stands(log: JudgmentLog) -> None:
    mine = judging(log)
    assert names(mine, "a") == []
    mine.skip("t", "a")
    mine.note("t", "a", "odd")
    assert names(mine, "a") == []
    mine.grade("t", ["a"], 0)
    assert names(mine, "a") == ["ben"] and names(mine, "b") == []
    mine.cant_tell("t", "b")
    assert names(mine, "b") == ["ben"]
    mine.undo()
    assert names(mine, "b") == []
    assert seen(log) == [
        ("skip", "a", False),
        ("note", "a", False),
        ("grade", "a", False),
        ("cant_tell", "b", False),
    ]


def test_a_grade_that_is_changed_after_others_could_be_seen_is_given_in_sight(log: JudgmentLog) -> None:
    mine = judging(log)
    mine.grade("t", ["a", "c"], 0)
    mine.grade("t", ["a", "c"], 1)
    assert seen(log)[2:] == [("grade", "a", True), ("grade", "c", False)]  # nobody else has judged c
    judging(log).grade("t", ["a"], 0)  # another day
    assert seen(log)[-1] == ("grade", "a", True)


def test_to_take_back_a_wrong_key_at_once_opens_nobodys_eyes(log: JudgmentLog) -> None:
    mine = judging(log)
    mine.grade("t", ["a"], 0)
    mine.undo()
    mine.grade("t", ["a"], 1)
    assert seen(log)[-1] == ("grade", "a", False)


def test_what_was_seen_stays_seen(log: JudgmentLog) -> None:
    mine = judging(log)
    mine.grade("t", ["a"], 0)
    assert names(mine, "a") == ["ben"]  # by going back to it
    mine.undo()
    mine.grade("t", ["a"], 1)
    assert seen(log)[-1] == ("grade", "a", True)
    mine.undo()
    mine.undo()
    judging(log, seed=1).grade("t", ["a"], 1)  # blind, but the log knows
    assert seen(log)[-1] == ("grade", "a", True)


def test_what_was_taken_back_on_another_day_may_have_been_looked_at(log: JudgmentLog) -> None:
    judging(log).grade("t", ["a"], 0)
    later = judging(log)
    later.undo()
    later.grade("t", ["a"], 1)
    assert seen(log)[-1] == ("grade", "a", True)


def test_who_wants_to_see_others_always_judges_in_their_sight(log: JudgmentLog) -> None:
    mine = judging(log, show_others=True)
    assert names(mine, "a") == ["ben"]
    mine.grade("t", ["a", "b", "c"], 1)
    assert seen(log) == [("grade", "a", True), ("grade", "b", True), ("grade", "c", False)]


def test_blind_annotators_see_nobody_even_after_their_own_grade(log: JudgmentLog) -> None:
    mine = judging(log, seed=3, show_others=True)
    mine.grade("t", ["a"], 1)
    assert names(mine, "a") == []
    mine.grade("t", ["a"], 0)
    assert seen(log) == [("grade", "a", False)] * 2


def test_of_what_was_said_before_it_was_recorded_it_is_not_known(log: JudgmentLog) -> None:
    Session(log, "nlps", Author("ann")).grade([SeenDocument("t", "a"), SeenDocument("t", "c")], 1)
    mine = judging(log, seed=3)
    mine.grade("t", ["a"], 0)
    mine.grade("t", ["c"], 0)
    assert seen(log)[2:] == [("grade", "a", None), ("grade", "c", False)]


def test_what_others_say_meanwhile_counts_from_then_on(log: JudgmentLog) -> None:
    mine = judging(log)
    mine.grade("t", ["c"], 1)
    assert names(mine, "c") == []
    judging(log, "ben").grade("t", ["c"], 0)
    mine.refresh()
    mine.grade("t", ["c"], 0)
    assert seen(log)[-1] == ("grade", "c", True)


def test_redoing_says_what_was_said_the_first_time(log: JudgmentLog) -> None:
    mine = judging(log)
    mine.grade("t", ["a"], 1)
    mine.undo()
    mine.redo()
    assert seen(log)[-1] == ("grade", "a", False)
