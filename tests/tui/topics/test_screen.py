"""The topics screen: keys, rankings, missed gold and judging."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.topics import MissedGold, RunTopics
from searchapp.app.topic_figures import FiguresByTopic, Order
from searchapp.errors import EngineUnreachable
from searchapp.judging.log import JudgmentLog
from searchapp.model import Hits, Ranking, Topic
from searchapp.tui.gold import screen as screen_module
from searchapp.tui.kit.keys import load
from searchapp.tui.topics.screen import KEY_ACTIONS, SECTION, TopicsScreen
from tests.hostile.payload import Hostile
from tests.tui.conftest import (
    SAMPLES,
    TIMEOUT_SECONDS,
    drive,
    fail_to_save,
    press,
    question,
    require_complete,
    screen_text,
    wait_until,
)
from tests.tui.topics.conftest import TopicsHarness, press_and_wait, wait_until_answered

P = Pilot[None]

DEPTH = 5
GOLD = {
    topic: [str(premise) for premise in entry["premises"]]
    for topic, entry in json.loads((SAMPLES / "nlps" / "dev_set.json").read_text(encoding="utf-8")).items()
}


def read_rankings(run: Path) -> dict[str, list[str]]:
    """Read the rankings of a run without searchapp."""
    rankings: dict[str, list[str]] = {}
    for line in (run / "run.trec").read_text().splitlines():
        rankings.setdefault(line.split()[0], []).append(line.split()[2])
    return rankings


def missed_gold(run: Path) -> dict[str, list[str]]:
    """Return the gold of each topic below rank DEPTH, ordered by rank."""
    return {
        topic: sorted(set(GOLD[topic]) - set(documents[:DEPTH]), key=documents.index)
        for topic, documents in read_rankings(run).items()
    }


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_gold_is_marked_at_its_ranks_and_missed_gold_is_listed_below(
    topics_harness: TopicsHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        documents = read_rankings(run)
        for topic in screen.topics.topics[:4]:
            assert screen.topic_id == topic and list(screen.ranking.documents) == documents[topic]
            assert list(screen.missed.documents) == missed_gold(run)[topic]
            text = screen_text(pilot)
            for rank, document in enumerate(documents[topic][:DEPTH], start=1):
                mark = "G" if document in GOLD[topic] else " "
                assert f"{mark} {rank:>2} " in text
            for document in missed_gold(run)[topic][:2]:
                assert f"G rank {documents[topic].index(document) + 1}" in text
            count = len(missed_gold(run)[topic])
            assert f"Missed gold · {count} of" in text if count else "Missed gold · none of" in text
            await press_and_wait(pilot, screen, "]")

    app = topics_harness.app(depth=DEPTH)
    run = topics_harness.run()
    drive(app, steps, size)


def test_keys_move_between_gold_and_to_missed_gold(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        require_complete(screen)
        run = topics_harness.run()
        topic = next(topic for topic, missed in missed_gold(run).items() if len(missed) > 1)
        while screen.topic_id != topic:
            await press_and_wait(pilot, screen, "]")
        documents, missed = read_rankings(run)[topic], missed_gold(run)[topic]
        positions = [position for position, document in enumerate(documents) if document in GOLD[topic]]
        if positions[0] == 0:  # the cursor is already there
            positions = positions[1:]
        for position in positions:
            await press_and_wait(pilot, screen, "n")
            assert screen.document_id == documents[position] and "relevant · rank" in screen_text(pilot)
        await press_and_wait(pilot, screen, "n")
        assert "no more gold in the ranking: e goes to the missed gold" in screen_text(pilot)
        await press_and_wait(pilot, screen, "N")
        assert screen.ranking.cursor == positions[-2]
        for document in [*missed, missed[0]]:
            await press_and_wait(pilot, screen, "e")
            assert screen.side.in_missed and screen.document_id == document
            rank = documents.index(document) + 1
            assert f"Document {document} · relevant · rank {rank}" in screen_text(pilot)
        await press_and_wait(pilot, screen, "i")
        await press(pilot, *documents[2], "enter")
        await wait_until_answered(pilot, screen)
        assert not screen.side.in_missed and screen.ranking.cursor == 2

    drive(topics_harness.app(depth=DEPTH), steps)


def test_the_worst_topics_come_first_when_asked(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        figures = screen.topic_rows.figures
        assert figures is not None and figures.name == "AP"
        assert "AP instead of MAP@500: " in screen_text(pilot)
        values = {topic: figure.value or 0.0 for topic, figure in figures.topics.items()}
        start = screen.topic_id
        await press_and_wait(pilot, screen, "o")
        assert [values[topic] for topic in screen.topic_rows.topics] == sorted(values.values())
        assert screen.topic_id == start and "worst first" in screen_text(pilot)
        await press_and_wait(pilot, screen, "W")
        assert screen.topic_id == screen.topic_rows.topics[0]
        assert values[screen.topic_id] == min(values.values())
        await press_and_wait(pilot, screen, "[")
        assert "this is the first topic of the list" in screen_text(pilot)
        await press_and_wait(pilot, screen, "o")
        counts = [figures.topics[topic].missed for topic in screen.topic_rows.topics]
        assert counts == sorted(counts, reverse=True) and counts[0] > 0
        await press_and_wait(pilot, screen, "o")
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    drive(topics_harness.app(depth=DEPTH), steps)


@pytest.mark.parametrize("from_start", [False, True])
def test_only_failures_with_their_irrelevant_documents_are_shown(
    topics_harness: TopicsHarness, from_start: bool
) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        if not from_start:
            all_documents = list(screen.ranking.documents)
            await press_and_wait(pilot, screen, "F")
        figures = screen.topic_rows.figures
        assert figures is not None
        failures = {topic for topic, figure in figures.topics.items() if figure.missed or figure.value != 1}
        assert set(screen.topic_rows.topics) == failures and len(failures) < len(screen.topics.topics)
        values = [figures.topics[topic].value or 0.0 for topic in screen.topic_rows.topics]
        assert values == sorted(values) and screen.topic_id == screen.topic_rows.topics[0]
        topic, documents = screen.topic_id, read_rankings(topics_harness.run())
        others = [document for document in documents[topic] if document not in GOLD[topic]]
        assert list(screen.ranking.documents) == others
        rank = documents[topic].index(others[0]) + 1
        assert f"Document {others[0]} · rank {rank} ·" in screen_text(pilot)
        assert "Not relevant · gold at" in screen_text(pilot)
        assert set(screen.missed.documents) == set(missed_gold(topics_harness.run())[topic])
        await press_and_wait(pilot, screen, "J", "0")
        assert [(event.document_id, event.rank) for event in topics_harness.events()] == [(others[0], rank)]
        assert list(screen.command[-1:]) == ["--failures"]
        await press_and_wait(pilot, screen, "F")
        assert len(screen.topic_rows.topics) == len(screen.topics.topics)
        assert list(screen.ranking.documents) == documents[screen.topic_id]
        assert from_start or len(all_documents) == len(screen.ranking.documents)

    drive(topics_harness.app(depth=DEPTH, failing=from_start), steps)


def test_the_screen_can_start_with_the_worst_topic(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        figures = screen.topic_rows.figures
        assert figures is not None
        most_missed = max(figure.missed for figure in figures.topics.values())
        assert figures.topics[screen.topic_id].missed == most_missed > 0

    drive(topics_harness.app(depth=DEPTH, order=Order.missed), steps)


def test_topics_are_filtered_by_words_and_opened_from_the_list(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        expected_topic = screen.topics.topics[3]
        await press(pilot, "f", *expected_topic, "enter")
        assert screen.topic_rows.topics == [expected_topic] and screen.topic_rows.has_focus
        await press_and_wait(pilot, screen, "[")
        assert screen.topic_id == expected_topic
        await press_and_wait(pilot, screen, "enter")
        assert screen.ranking.has_focus
        await press_and_wait(pilot, screen, "escape", "t", "down")
        assert screen.topic_id == screen.topics.topics[4] and screen.topic_rows.has_focus

    drive(topics_harness.app(), steps)


def test_why_explains_the_score_or_that_a_document_is_not_indexed(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        first = screen.ranking.documents[0]
        await press_and_wait(pilot, screen, "w")
        assert question(pilot).startswith(f"{first} is at rank 1, with the score")
        assert "idf" in screen_text(pilot)
        await press(pilot, "escape", "i", *"nowhere", "enter")
        await wait_until_answered(pilot, screen)
        assert question(pilot) == "nowhere is not indexed: no document of nlps has this id"
        await press(pilot, "escape")
        assert app.screen is screen

    app = topics_harness.app()
    drive(app, steps)


def test_judging_starts_with_the_keys_and_the_log_of_judge(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        topic, (first, second, third, *_) = screen.topic_id, screen.ranking.documents
        await press_and_wait(pilot, screen, "1")
        assert "J starts judging" in screen_text(pilot)
        assert not (topics_harness.home / "judgments.sqlite").exists()
        await press_and_wait(pilot, screen, "J", "1", "x", "s", "a")
        assert question(pilot).startswith(f"Note on {third}, rank 3: ")  # it follows the judgment
        await press_and_wait(pilot, screen, *"why?", "enter", "down", "up", "a", *"odd", "enter")
        await press_and_wait(pilot, screen, "e")
        missed = screen.document_id
        assert missed is not None and missed in GOLD[topic]
        await press_and_wait(pilot, screen, "0", "7")
        assert "unknown grade 7" in screen_text(pilot)
        rank = read_rankings(topics_harness.run())[topic].index(missed) + 1
        fourth = screen.ranking.documents[3]
        name = screen.topics.pages.name
        assert [
            (event.action.value, event.document_id, event.grade, event.rank)
            for event in topics_harness.events()
        ] == [
            ("grade", first, 1, 1),
            ("cant_tell", second, None, 2),
            ("skip", third, None, 3),
            ("note", third, None, 3),
            ("note", fourth, None, 4),
            ("grade", missed, 0, rank),
        ]
        assert {(event.topic_id, event.run, event.annotator) for event in topics_harness.events()} == {
            (topic, name, "ann")
        }
        marks = [screen.judging.mark(document)[0] for document in (first, second, third, fourth, missed)]
        assert marks == ["1", "?", "»", "·", "0"]
        await press_and_wait(pilot, screen, "u", "u", "U", "J", "0")
        assert [event.action.value for event in topics_harness.events()[6:]] == ["retract", "retract", "note"]
        assert screen.ranking.judged is None

    app = topics_harness.app(
        depth=DEPTH,
        start=next(topic for topic, missed in missed_gold(topics_harness.run()).items() if missed),
    )
    drive(app, steps)


def test_an_unsaved_grade_is_reported_and_saved_later(
    topics_harness: TopicsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, "J")
        with monkeypatch.context() as patch:
            patch.setattr(JudgmentLog, "append", fail_to_save)
            await press_and_wait(pilot, screen, "1", "0")
            assert "2 judgments NOT SAVED, retrying" in screen_text(pilot)
            assert "the disk is full" in screen_text(pilot)
            screen.judging.refresh()
            await pilot.press("q")
            assert "2 judgments are not saved" in question(pilot)
            await pilot.press("escape")
        screen.judging.refresh()
        await pilot.pause()
        assert "✓ saved  all waiting judgments" in screen_text(pilot)
        assert [event.grade for event in topics_harness.events()] == [1, 0]

    drive(topics_harness.app(), steps)


def test_rankings_of_a_recipe_are_shown_and_judged(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        run = read_rankings(topics_harness.run())
        assert list(screen.ranking.documents) == run[screen.topic_id]
        await press_and_wait(pilot, screen, "J", "1")
        (event,) = topics_harness.events()
        assert (event.run, event.rank, event.document_id) == ("search bm25", 1, run[screen.topic_id][0])

    drive(topics_harness.app(recipe="bm25"), steps)


def test_an_engine_that_fails_is_asked_again(
    topics_harness: TopicsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_module, "RETRY_SECONDS", 0.01)

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        texts, failures = screen.topics.pages.texts, [True]

        def texts_or_failure(documents: list[str]) -> list[str]:
            if failures[0]:
                raise EngineUnreachable("the server does not answer")
            return texts(documents)

        monkeypatch.setattr(screen.topics.pages, "texts", texts_or_failure)
        first, second = screen.topics.topics[:2]
        await press(pilot, "]")
        await wait_until(pilot, lambda: "the server does not answer" in screen_text(pilot))
        assert screen.topic_id == first and screen.target_topic == second
        await press(pilot, "f12")
        assert "the server does not answer" in screen_text(pilot)
        failures[0] = False
        await wait_until(pilot, lambda: screen.topic_id == second)
        await wait_until_answered(pilot, screen)
        assert "the server does not answer" not in screen_text(pilot)
        await press(pilot, "o")
        assert "topics worst first" in screen_text(pilot)
        await press(pilot, "down")
        assert "topics worst first" not in screen_text(pilot)

    drive(topics_harness.app(), steps)


def test_fast_keys_end_in_the_last_topic(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press(pilot, *"]]]]]]", *"[[", *"]]")
        await wait_until_answered(pilot, screen)
        expected_topic = screen.topics.topics[6]
        assert screen.target_topic == screen.topic_id == expected_topic
        assert list(screen.ranking.documents) == read_rankings(topics_harness.run())[expected_topic]
        assert isinstance(text := screen.documents._shown, tuple) and text[1] == expected_topic

    drive(topics_harness.app(), steps)


def test_hostile_text_is_shown_harmlessly(
    topics_harness: TopicsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = Hostile().text("all of it") + "[/" + "x" * 1_000_000

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        pages = screen.topics.pages
        topic = screen.topics.topics[1]
        monkeypatch.setattr(pages, "topic", lambda topic_id: Topic(topic_id, hostile[:5000]))
        monkeypatch.setattr(pages, "known_text", lambda _one: hostile)
        monkeypatch.setattr(pages, "texts", lambda documents: [hostile] * len(documents))
        documents = [hostile[:300], "b\x1b[2J", *screen.ranking.documents[:3]]
        hits = Hits(documents, [5.0, 4.0, 3.0, 2.0, 1.0])
        monkeypatch.setattr(pages.rankings, "ranking", lambda topic_id: Ranking(topic_id, hits))
        monkeypatch.setattr(pages.rankings, "scored", lambda *_: 5)
        gold = {topic: {documents[0]: 1, "[/]\x1b]0;a\x07\u202e": 1}}
        monkeypatch.setattr(screen.topics, "_given_gold", lambda: gold)
        screen.documents.forget_beginnings()
        await press_and_wait(pilot, screen, "]")
        await press_and_wait(pilot, screen, "e")
        await press_and_wait(pilot, screen, "w")
        assert "\x1b" not in screen_text(pilot) and "\u202e" not in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape", "J", "1", "o", "t", "escape")
        text = screen_text(pilot)
        assert not any(ord(character) < 32 and character != "\n" for character in text)
        assert "\u202e" not in text

    drive(topics_harness.app(), steps, (80, 24))


def test_old_settings_that_assign_j_still_work(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[topics.keys]\ndown = ["down", "j"]\n')
    keys = load(tmp_path, ("no", "yes"), SECTION, KEY_ACTIONS).keys
    assert keys.action("j") == "down" and keys.action("J") == "judge"


def test_late_reasons_of_missed_gold_do_not_move_the_cursor(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        topic = next(topic for topic, missed in missed_gold(topics_harness.run()).items() if len(missed) > 1)
        while screen.topic_id != topic:
            await press_and_wait(pilot, screen, "]")
        await press_and_wait(pilot, screen, "e", "e")
        document = screen.document_id
        await press_and_wait(pilot, screen, "shift+tab")
        assert not screen.side.in_missed and screen.side.ranked is not None
        screen.show_missed(screen.side, topic, MissedGold(screen.side.ranked.missed))
        assert screen.missed.document == document

    drive(topics_harness.app(depth=DEPTH), steps)


@pytest.mark.parametrize("keys", [["down"], ["question_mark"]])
def test_late_figures_do_not_change_the_topic(
    topics_harness: TopicsHarness, monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    gate, compute = threading.Event(), TopicsScreen.compute_figures

    def compute_late(screen: TopicsScreen, topics: RunTopics) -> FiguresByTopic | None:
        assert gate.wait(TIMEOUT_SECONDS)
        return compute(screen, topics)

    monkeypatch.setattr(TopicsScreen, "compute_figures", compute_late)

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until(pilot, lambda: screen.side.ranked is not None)
        first = screen.topics.topics[0]
        await press(pilot, *keys)
        gate.set()
        await wait_until_answered(pilot, screen)
        assert screen.topic_rows.figures is not None and screen.topic_id == first
        await press_and_wait(pilot, screen, *(["escape"] if app.screen is not screen else []), "W")
        assert screen.topic_id != first

    app = topics_harness.app(depth=DEPTH, order=Order.worst)
    drive(app, steps)


def test_every_pane_has_lines_in_a_small_terminal_while_judging(topics_harness: TopicsHarness) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press(pilot, "J")
        for side in screen.sides:
            assert side.ranking.size.height >= 2
        assert all(screen.query_one(f"#{name}").size.height >= 1 for name in ("topic", "document"))

    drive(topics_harness.app(), steps, (40, 15))
