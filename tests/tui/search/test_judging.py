"""Grades that are given on the search screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tui.kit import judging as judging_module
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import drive, question, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, enter, ids

P = Pilot[None]


def events(home: Path) -> list[tuple[str, str, str, int | None, str, int | None]]:
    with JudgmentLog(home / "judgments.sqlite") as log:
        return [
            (one.action.value, one.topic_id, one.document_id, one.grade, one.run, one.rank)
            for _place, one in log.events()
        ]


async def choose_topic(pilot: P, screen: SearchScreen, words: str = "") -> None:
    await enter(pilot, screen, "escape", "t")
    await enter(pilot, screen, *words, *([] if words else ["down"]), "enter")


def test_hits_of_a_topic_are_graded_into_the_log(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        assert topic is not None and f"judging topic {topic.id}" in text_of(app)
        assert screen.words.value == " ".join(topic.text.split())
        first, second = ids(screen)[1:3]
        screen.hits.move(1)
        await pilot.press("1", "0")
        assert screen.hits.cursor == 3 and "✓ saved  0 not relevant" in text_of(app)
        wanted = [
            ("grade", topic.id, first, 1, "search words", 2),
            ("grade", topic.id, second, 0, "search words", 3),
        ]
        assert events(searching.home) == wanted
        assert [screen.judging.mark(one)[0] for one in (first, second)] == ["1", "0"]
        await pilot.press("u", "u", "u")
        assert [one[0] for one in events(searching.home)] == ["grade", "grade", "retract", "retract"]
        assert "no grade of this session to undo" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_j_judges_for_a_topic_ends_that_and_begins_again(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, "escape", "j")
        assert question(app) == "Judge documents for the topic"
        await enter(pilot, screen, "down", "enter")
        topic = screen.judging.topic
        assert topic is not None and screen.has_class("-judging")
        await enter(pilot, screen, "down", "1", "j")
        assert not screen.has_class("-judging")
        assert screen.hits.cursor == 2  # where it was
        await enter(pilot, screen, "1")
        assert "a grade needs a topic" in text_of(app)
        await enter(pilot, screen, "j", "0")
        assert screen.judging.topic == topic
        assert [(one[1], one[3], one[5]) for one in events(searching.home)] == [
            (topic.id, 1, 2),
            (topic.id, 0, 3),
        ]

    app = searching.app()
    drive(app, steps)


def test_who_wants_j_to_go_down_can_have_that(searching: SearchingOn) -> None:
    (searching.home / "settings.toml").write_text('[search.keys]\ndown = ["down", "j"]\n')

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, *"group")
        await enter(pilot, screen, "enter", "j", "j", "k")
        assert screen.hits.cursor == 1
        await enter(pilot, screen, "J")
        assert question(app) == "Judge documents for the topic"

    app = searching.app()
    drive(app, steps)


def test_grades_are_for_the_topic_whatever_is_typed(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        await enter(pilot, screen, "slash", "ctrl+u", *"prime", "enter")
        document = ids(screen)[0]
        await enter(pilot, screen, "1")
        assert topic is not None
        assert events(searching.home) == [("grade", topic.id, document, 1, "search words", 1)]

    drive(searching.app(), steps)


def test_without_a_topic_nothing_is_graded_and_no_log_is_made(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter", "1")
        assert "a grade needs a topic: j chooses one" in text_of(app)
        await enter(pilot, screen, "u")
        assert "no grade of this session" in text_of(app)

    app = searching.app()
    drive(app, steps)
    assert not (searching.home / "judgments.sqlite").exists()


def test_a_topic_is_not_graded_for_itself(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        assert topic is not None and topic.id in ids(screen)
        screen.hits.move(ids(screen).index(topic.id))
        await pilot.press("1")
        assert "is the topic itself" in text_of(app) and events(searching.home) == []

    app = searching.app()
    drive(app, steps)


def test_earlier_grades_are_seen_and_others_after_ones_own(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic, document = screen.judging.topic, ids(screen)[1]
        screen.hits.move(1)
        assert topic is not None
        with JudgmentLog(searching.home / "judgments.sqlite") as log:
            Session(log, "nlps", Author("ben")).grade([SeenDocument(topic.id, document)], 0)
        screen.judging.refresh()
        await pilot.pause()
        assert "1 judgment by ben arrived" in text_of(app) and "ben  0" not in text_of(app)
        await pilot.press("1", "up")
        assert "ben  0 not relevant" in text_of(app)
        await enter(pilot, screen, "t")
        await enter(pilot, screen, "enter")
        assert screen.judging.topic is None and "judging topic" not in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_a_grade_that_is_not_saved_is_told_and_tried_again(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging_module, "REFRESH_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        append = searching.log.append

        def fail(_events: object) -> None:
            raise NotSaved("the disk is full")

        monkeypatch.setattr(searching.log, "append", fail)
        await pilot.press("down", "1")  # the first hit is the topic itself
        assert "NOT SAVED, retrying" in text_of(app) and "the disk is full" in text_of(app)
        await pilot.press("q")
        assert "1 judgment is not saved" in question(app)
        await pilot.press("escape")
        monkeypatch.setattr(searching.log, "append", append)
        await until(pilot, lambda: "all waiting judgments" in text_of(app))

    app = searching.app()
    drive(app, steps)
    assert [one[0] for one in events(searching.home)] == [Action.grade.value]
