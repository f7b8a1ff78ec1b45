"""JudgingHarness on the search screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tui.kit import judging as judging_module
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import drive, fail_to_save, question, screen_text, wait_until
from tests.tui.search.conftest import SearchHarness, ids, press_and_wait, wait_until_answered

P = Pilot[None]


def events(home: Path) -> list[tuple[str, str, str, int | None, str, int | None]]:
    with JudgmentLog(home / "judgments.sqlite") as log:
        return [
            (event.action.value, event.topic_id, event.document_id, event.grade, event.run, event.rank)
            for _position, event in log.events()
        ]


async def choose_topic(pilot: P, screen: SearchScreen, words: str = "") -> None:
    await press_and_wait(pilot, screen, "escape", "t")
    await press_and_wait(pilot, screen, *words, *([] if words else ["down"]), "enter")


def test_grades_of_hits_are_saved_in_the_log(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        assert topic is not None and f"judging topic {topic.id}" in screen_text(pilot)
        assert screen.words.value == " ".join(topic.text.split())
        first, second = ids(screen)[1:3]
        screen.hits.move(1)
        await pilot.press("1", "0")
        assert screen.hits.cursor == 3 and "✓ saved  0 not relevant" in screen_text(pilot)
        expected = [
            ("grade", topic.id, first, 1, "search words", 2),
            ("grade", topic.id, second, 0, "search words", 3),
        ]
        assert events(search_harness.home) == expected
        assert [screen.judging.mark(document)[0] for document in (first, second)] == ["1", "0"]
        await pilot.press("u", "u", "u")
        assert [event[0] for event in events(search_harness.home)] == ["grade", "grade", "retract", "retract"]
        assert "no grade of this session to undo" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_j_starts_ends_and_resumes_judging(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, "escape", "J")
        assert question(pilot) == "Judge documents for the topic"
        await press_and_wait(pilot, screen, "down", "enter")
        topic = screen.judging.topic
        assert topic is not None and screen.has_class("-judging")
        await press_and_wait(pilot, screen, "down", "1", "J")
        assert not screen.has_class("-judging")
        assert screen.hits.cursor == 2  # unchanged
        await press_and_wait(pilot, screen, "1")
        assert "a grade needs a topic" in screen_text(pilot)
        await press_and_wait(pilot, screen, "J", "0")
        assert screen.judging.topic == topic
        assert [(event[1], event[3], event[5]) for event in events(search_harness.home)] == [
            (topic.id, 1, 2),
            (topic.id, 0, 3),
        ]

    drive(search_harness.app(), steps)


def test_the_keys_of_version_0_3_are_restored_and_can_be_changed(search_harness: SearchHarness) -> None:
    text = 'key_set = "0.3"\n[search.keys]\ndown = ["down", "j"]\n'
    (search_harness.home / "settings.toml").write_text(text)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, *"group")
        await press_and_wait(pilot, screen, "enter", "j", "j", "k")
        assert screen.hits.cursor == 1
        await press_and_wait(pilot, screen, "J")
        assert question(pilot) == "Judge documents for the topic"

    drive(search_harness.app(), steps)


def test_grades_apply_to_the_topic_after_other_queries(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        await press_and_wait(pilot, screen, "slash", "ctrl+u", *"prime", "enter")
        document = ids(screen)[0]
        await press_and_wait(pilot, screen, "1")
        assert topic is not None
        assert events(search_harness.home) == [("grade", topic.id, document, 1, "search words", 1)]

    drive(search_harness.app(), steps)


def test_without_a_topic_grades_are_refused_and_no_log_is_created(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter", "1")
        assert "a grade needs a topic: J chooses one" in screen_text(pilot)
        await press_and_wait(pilot, screen, "u")
        assert "no grade of this session" in screen_text(pilot)

    drive(search_harness.app(), steps)
    assert not (search_harness.home / "judgments.sqlite").exists()


def test_a_topic_cannot_be_graded_for_itself(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic = screen.judging.topic
        assert topic is not None and topic.id in ids(screen)
        screen.hits.move(ids(screen).index(topic.id))
        await pilot.press("1")
        assert "is the topic itself" in screen_text(pilot) and events(search_harness.home) == []

    drive(search_harness.app(), steps)


def test_a_grade_that_waits_for_hits_is_not_saved_after_the_screen_was_left(
    search_harness: SearchHarness,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        screen.hits.move(1)
        screen.loader.is_waiting = True  # for the hits of a new filter
        await pilot.press("1")
        screen.loader.is_waiting = False
        await pilot.press("q")
        screen.show_ranking(screen.loader, screen.hits.listing, 1)
        assert events(search_harness.home) == []

    drive(search_harness.app(), steps)


def test_grades_of_others_are_shown_after_the_own_grade(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        topic, document = screen.judging.topic, ids(screen)[1]
        screen.hits.move(1)
        assert topic is not None
        with JudgmentLog(search_harness.home / "judgments.sqlite") as log:
            Session(log, "nlps", Author("ben")).grade([SeenDocument(topic.id, document)], 0)
        screen.judging.refresh()
        await pilot.pause()
        assert "1 judgment by ben arrived" in screen_text(pilot) and "ben  0" not in screen_text(pilot)
        await pilot.press("1", "up")
        assert "ben  0 not relevant" in screen_text(pilot)
        await press_and_wait(pilot, screen, "t")
        await press_and_wait(pilot, screen, "enter")
        assert screen.judging.topic is None and "judging topic" not in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_an_unsaved_grade_is_reported_and_retried(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging_module, "REFRESH_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await choose_topic(pilot, screen)
        append = search_harness.log.append

        monkeypatch.setattr(search_harness.log, "append", fail_to_save)
        await pilot.press("down", "1")  # the first hit is the topic itself
        assert "NOT SAVED, retrying" in screen_text(pilot) and "the disk is full" in screen_text(pilot)
        await pilot.press("q")
        assert "1 judgment is not saved" in question(pilot)
        await pilot.press("escape")
        monkeypatch.setattr(search_harness.log, "append", append)
        await wait_until(pilot, lambda: "all waiting judgments" in screen_text(pilot))

    drive(search_harness.app(), steps)
    assert [event[0] for event in events(search_harness.home)] == [Action.grade.value]
