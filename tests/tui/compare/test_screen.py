"""The compare screen: keys, figures, rankings and judging."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.compare import CompareRequest, compare, compare_read
from searchapp.app.comparison import number, p_value, signed
from searchapp.app.evaluate import GoldSource, Judgments, evaluate_run
from searchapp.app.inspection import topic_comparison
from searchapp.app.inspection.explanation import RankStatus
from searchapp.errors import DataError, UsageError
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.model import Hits, Ranking, Topic
from searchapp.runs import directory
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.kit.dialogs import Picking
from tests.hostile.payload import Hostile
from tests.tui.compare.conftest import RECIPES, TASK, CompareHarness, press_and_wait, wait_until_answered
from tests.tui.conftest import (
    drive,
    press,
    question,
    require_complete,
    screen_text,
    wait_until,
)

P = Pilot[None]
DEPTH = 3

sizes = pytest.mark.parametrize("size", [(80, 24), (160, 45)])


def rankings(compare_harness: CompareHarness, recipe: str) -> dict[str, tuple[str, ...]]:
    return {
        ranking.topic_id: ranking.document_ids()
        for ranking in directory.read(compare_harness.runs.path(recipe)).run
    }


def delay_comparisons(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Make comparisons wait for the returned event."""
    gate = threading.Event()

    def compare_late(*arguments: Any) -> Any:
        assert gate.wait(60)
        return compare_read(*arguments)

    monkeypatch.setattr(topic_comparison, "compare_read", compare_late)
    return gate


@sizes
def test_the_screen_shows_the_figures_that_compare_prints(
    compare_harness: CompareHarness, size: tuple[int, int]
) -> None:
    comparison = compare(compare_harness.request())
    (pair,) = comparison.measures[0].pairs
    tests = pair.tests

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert screen.comparison == comparison
        line = screen_text(pilot).splitlines()[1]
        parts = (
            f"MAP@50  {number(tests.first)} → {number(tests.second)}  {signed(tests.mean)}",
            f"[{signed(tests.interval.low)}, {signed(tests.interval.high)}]",
            f"p {p_value(tests.randomisation.p)}",
        )
        assert all(part in line for part in parts), line
        outcomes = tests.outcomes
        wide = f"{outcomes.wins} won · {outcomes.ties} tied · {outcomes.losses} lost"
        assert (wide if size[0] > 100 else f"{outcomes.wins}/{outcomes.ties}/{outcomes.losses}") in line
        for position, run in enumerate(compare_harness.request().runs):
            official = evaluate_run(directory.read(run), compare_harness.request().source).official
            assert comparison.measures[0].means[position] == pytest.approx(
                official.values["MAP@50"], abs=1e-12
            )

    drive(compare_harness.app(), steps, size)


def test_topics_are_sorted_by_their_differences_with_bars(compare_harness: CompareHarness) -> None:
    differences = {topic.topic_id: topic for topic in compare(compare_harness.request()).topics[0].topics}

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        values = [differences[topic].difference for topic in screen.topic_rows.topics]
        assert values == sorted(values, reverse=True)
        assert screen.topic_id == screen.topic_rows.topics[0]
        await press_and_wait(pilot, screen, "t")
        for topic in screen.topic_rows.topics:
            difference = differences[topic].difference
            position = screen.topic_rows.content_region.y + screen.topic_rows.topics.index(topic)
            before, _zero, behind = screen_text(pilot).splitlines()[position].partition("│")
            assert f"{difference:+.3f}".replace("0.", ".") in before
            assert ("█" in before or "▐" in before) == (difference < -0.05)
            assert any(block in behind.split("│")[0] for block in "█▌▋▊▉▍▎▏") == (difference > 0.05)
        await press_and_wait(pilot, screen, "o")
        assert [differences[topic].difference for topic in screen.topic_rows.topics] == values[::-1]
        await press_and_wait(pilot, screen, "o")
        magnitudes = [abs(differences[topic].difference) for topic in screen.topic_rows.topics]
        assert magnitudes == sorted(magnitudes, reverse=True)
        await press_and_wait(pilot, screen, "W")
        assert screen.topic_id == screen.topic_rows.topics[0]
        await press_and_wait(pilot, screen, "o")
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    drive(compare_harness.app(), steps, (80, 24))


def test_two_rankings_are_shown_side_by_side_with_changes_of_ranks(compare_harness: CompareHarness) -> None:
    first, second = (rankings(compare_harness, recipe) for recipe in RECIPES[:2])

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        for _topic in range(3):
            topic = screen.topic_id
            assert [tuple(side.ranking.documents) for side in screen.sides] == [first[topic], second[topic]]
            text = screen_text(pilot)
            relevant = screen.topics.relevant(topic)
            for rank, document in enumerate(second[topic][:5], 1):
                moved = first[topic].index(document) + 1 - rank
                arrow = "=" if not moved else f"{'↑' if moved > 0 else '↓'}{abs(moved)}"
                mark = "G" if document in relevant else " "
                assert f"{mark} {arrow:<3} " in text, (document, arrow)
            await press_and_wait(pilot, screen, "]")

    drive(compare_harness.app(), steps, (80, 24))


def test_missed_gold_is_listed_below_each_ranking_with_its_rank(compare_harness: CompareHarness) -> None:
    recipe_rankings = [rankings(compare_harness, recipe) for recipe in RECIPES[:2]]

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        count = 0
        for _topic in range(6):
            for side, ranked in zip(screen.sides, recipe_rankings, strict=True):
                documents = ranked[screen.topic_id]
                gold = screen.topics.relevant(screen.topic_id)
                missed = sorted(set(gold) - set(documents[:DEPTH]), key=documents.index)
                assert list(side.missed.documents) == missed
                reasons = [document.reason for document in side.missed.missed]
                assert [reason.rank for reason in reasons if reason is not None] == [
                    documents.index(document) + 1 for document in missed
                ]
                assert all(reason is not None and reason.status is RankStatus.ranked for reason in reasons)
                count += len(missed)
            await press_and_wait(pilot, screen, "]")
        assert count > 3

    drive(compare_harness.app(depth=DEPTH), steps)


def test_keys_go_to_moved_documents_and_to_the_other_ranking(compare_harness: CompareHarness) -> None:
    first, second = (rankings(compare_harness, recipe) for recipe in RECIPES[:2])

    def weight(topic: str, document: str) -> float:
        ranks = [ranked[topic].index(document) + 1 for ranked in (first, second)]
        return abs(1 / math.log2(1 + ranks[0]) - 1 / math.log2(1 + ranks[1]))

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        topic = screen.topic_id
        order = sorted(second[topic], key=lambda document: -weight(topic, document))
        for document in order[:3]:
            await press_and_wait(pilot, screen, "n")
            assert weight(topic, str(screen.document_id)) == weight(topic, document)
            # The other list selects the same document.
            assert screen.sides[0].ranking.document == screen.document_id
        here = screen.document_id
        await press_and_wait(pilot, screen, "=")
        assert screen.side is screen.sides[0] and screen.document_id == here
        assert screen.ranking.has_focus and f"Document {here}" in screen_text(pilot)
        await press_and_wait(pilot, screen, ")", "=")
        assert screen.side is screen.sides[1]
        await press_and_wait(pilot, screen, "i")
        await press(pilot, *first[topic][4], "enter")
        await wait_until_answered(pilot, screen)
        assert screen.document_id == first[topic][4]

    drive(compare_harness.app(), steps)


def test_why_explains_the_scores_in_both_runs(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        document = str(screen.document_id)
        ranks = [
            rankings(compare_harness, recipe)[screen.topic_id].index(document) + 1 for recipe in RECIPES[:2]
        ]
        await press_and_wait(pilot, screen, "w")
        assert question(pilot) == f"{document} in both runs"
        text = screen_text(pilot)
        for recipe, rank in zip(RECIPES, ranks, strict=False):
            assert recipe in text and f"{document} is at rank {rank}, with the score" in text
        assert "fused by sum" in text and "training topic" in text
        await press(pilot, "escape")
        assert app.screen is screen

    app = compare_harness.app()
    drive(app, steps)


def test_judging_starts_and_each_grade_updates_the_figures(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, "1")
        assert "J starts judging" in screen_text(pilot) and not compare_harness.log.exists()
        await press_and_wait(pilot, screen, "J")
        assert "judged: no judgments on these topics yet" in screen_text(pilot)
        topic, (relevant, irrelevant, *_) = screen.topic_id, screen.ranking.documents
        await press_and_wait(pilot, screen, "1", "0")
        await press_and_wait(pilot, screen, "shift+tab", "shift+tab", "end")
        assert screen.side is screen.sides[0]
        last = str(screen.document_id)
        await press_and_wait(pilot, screen, "1")
        names = [side.topics.pages.name for side in screen.sides]
        rank = len(screen.ranking.documents)
        assert [(e.topic_id, e.document_id, e.grade, e.rank, e.run) for e in compare_harness.events()] == [
            (topic, relevant, 1, 1, names[1]),
            (topic, irrelevant, 0, 2, names[1]),
            (topic, last, 1, rank, names[0]),
        ]
        for grades in ({relevant: 1, irrelevant: 0, last: 1}, {relevant: 1, irrelevant: 0}):
            comparison = compare(compare_harness.request(judgments=Judgments({topic: grades})))
            tests = comparison.measures[0].pairs[0].tests
            assert f"judged: MAP@50  {number(tests.first)} → {number(tests.second)}" in screen_text(pilot)
            shares = " → ".join(f"{run.judged['Judged@10']:.0%}" for run in comparison.runs)
            assert f"1 topic · Judged@10 {shares}" in screen_text(pilot)
            await press_and_wait(pilot, screen, "u")
        assert "undone" in screen_text(pilot)
        await press_and_wait(pilot, screen, "J")
        assert "judged:" not in screen_text(pilot)

    drive(compare_harness.app(), steps)


def test_a_comparison_by_judgments_is_updated_by_each_grade(compare_harness: CompareHarness) -> None:
    topics = rankings(compare_harness, "bm25")
    with JudgmentLog(compare_harness.log) as log:
        session = Session(log, TASK, Author("ben"))
        for topic, documents in list(topics.items())[:3]:
            session.grade([SeenDocument(topic, documents[0])], 1)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert screen.comparison is not None and screen.comparison.measures[0].topics == 3
        assert set(screen.sides[0].ranking.relevant) == {topics[screen.topic_id][0]}
        before = screen.comparison
        order = list(screen.topic_rows.topics)
        tenth = str(screen.ranking.documents[9])
        await press_and_wait(pilot, screen, "J", *["down"] * 9, "1")
        assert screen.comparison is not before and "judged:" not in screen_text(pilot)
        assert screen.comparison.measures[0].values != before.measures[0].values
        assert all(tenth in side.ranking.relevant for side in screen.sides)
        assert list(screen.topic_rows.topics) == order

    drive(compare_harness.app(follows=True), steps)


def test_a_pair_of_three_runs_is_chosen(compare_harness: CompareHarness) -> None:
    comparison = compare(compare_harness.request(RECIPES, measures=("RR",)))

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert screen.names == ("bm25", "neighbours") and "Holm" in screen_text(pilot).splitlines()[1]
        await press_and_wait(pilot, screen, "v")
        assert isinstance(app.screen, Picking)
        await press_and_wait(pilot, screen, *"tfidf", "down", "enter")
        assert screen.names == ("neighbours", "tfidf")
        tests = comparison.measures[0].pairs[2].tests
        text = screen_text(pilot)
        assert f"{number(tests.first)} → {number(tests.second)}" in text.splitlines()[1]
        assert "neighbours → tfidf" in text.splitlines()[0]
        ranked = rankings(compare_harness, "tfidf")[screen.topic_id]
        assert tuple(screen.sides[1].ranking.documents) == ranked

    app = compare_harness.app(RECIPES, measures=("RR",))
    drive(app, steps)


def test_the_next_measure_sorts_the_topics_anew(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, "v")
        assert "there are only two runs" in screen_text(pilot)
        await press_and_wait(pilot, screen, "M")
        assert screen.measure == "RR" and screen_text(pilot).splitlines()[1].strip().startswith("RR ")
        values = compare(compare_harness.request(measures=("RR",))).topics[0].topics
        assert {topic: figure.difference for topic, figure in screen.topic_rows.differences.items()} == {
            figure.topic_id: figure.difference for figure in values
        }

    drive(compare_harness.app(measures=("nDCG@10", "RR")), steps)


def test_keys_work_while_the_runs_are_compared(
    compare_harness: CompareHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = delay_comparisons(monkeypatch)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until(pilot, lambda: all(side.ranked is not None for side in screen.sides))
        assert "reading runs" in screen_text(pilot).splitlines()[1]
        await press(pilot, "]", "o", "M")
        assert "still being compared" in screen_text(pilot)
        second = screen.topics.topics[1]
        await wait_until(pilot, lambda: screen.topic_id == second)
        gate.set()
        await wait_until_answered(pilot, screen)
        # The result does not move a user who has gone on.
        assert screen.comparison is not None and screen.topic_id == second

    drive(compare_harness.app(), steps)


def test_an_error_of_the_scorer_is_shown_beside_the_rankings(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        # Line breaks depend on the length of the path of the run.
        assert "the official scorer would not score this file" in " ".join(screen_text(pilot).split())
        assert len(screen.ranking.documents) > 60
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    drive(compare_harness.app(request=CompareRequest(compare_harness.request().runs, GoldSource())), steps)


def test_runs_that_cannot_be_compared_are_rejected_before_the_screen_opens(
    compare_harness: CompareHarness, tmp_path: Path
) -> None:
    run = directory.read(compare_harness.runs.path("bm25"))
    fewer = type(run.run)(run.run.tag, run.run.rankings[1:])
    directory.write(tmp_path / "fewer", run.manifest, fewer, {})
    with pytest.raises(DataError, match="does not rank 1 topic of the other run"):
        compare_harness.app(request=CompareRequest((run.path, tmp_path / "fewer"), GoldSource()))
    with pytest.raises(UsageError, match="given twice"):
        compare_harness.app(request=CompareRequest((run.path, run.path), GoldSource()))


def test_hostile_text_is_shown_harmlessly(
    compare_harness: CompareHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = Hostile().text("all of it") + "[/" + "x" * 100_000

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        topic = screen.topic_rows.topics[1]
        documents = [hostile[:300], "b\x1b[2J", *screen.ranking.documents[:3]]
        for side in screen.sides:
            pages = side.topics.pages
            monkeypatch.setattr(pages, "topic", lambda topic_id: Topic(topic_id, hostile[:5000]))
            monkeypatch.setattr(pages, "known_text", lambda _one: hostile)
            monkeypatch.setattr(pages, "texts", lambda documents: [hostile] * len(documents))
            hits = Hits(documents, [5.0, 4.0, 3.0, 2.0, 1.0])
            monkeypatch.setattr(
                pages.rankings, "ranking", lambda topic_id, hits=hits: Ranking(topic_id, hits)
            )
            monkeypatch.setattr(pages.rankings, "scored", lambda *_: 5)
            gold = {topic: {documents[0]: 1, "[/]\x1b]0;a\x07\u202e": 1}}
            monkeypatch.setattr(side.topics, "_given_gold", lambda gold=gold: gold)
            documents = documents[::-1]
        screen.documents.forget_beginnings()
        await press_and_wait(pilot, screen, "]", "e", "w")
        assert "\x1b" not in screen_text(pilot) and "\u202e" not in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape", "J", "1", "=", "n", "o", "t", "escape")
        text = screen_text(pilot)
        assert not any(ord(character) < 32 and character != "\n" for character in text)
        assert "\u202e" not in text

    drive(compare_harness.app(), steps, (80, 24))


@sizes
def test_a_pane_is_zoomed_and_restored(compare_harness: CompareHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        require_complete(screen)

        def visible_panes() -> set[str]:
            return {name for name in screen.ABOUT if screen.query_one(f"#{name}").region.area}

        all_panes = visible_panes()
        assert {"first", "second", "topic", "document"} <= all_panes
        for name in ("first", "second-missed", "topic"):
            screen.panes.focus(screen.query_one(f"#{name}"))
            await press(pilot, "z")
            assert visible_panes() == {name}
            await press(pilot, "z")
            assert visible_panes() == all_panes
        await press(pilot, "b")
        assert visible_panes() == {"topic", "document"}
        await press(pilot, "b", "t", "z")
        assert visible_panes() >= {"topics"} and not visible_panes() & {"first", "second", "document"}

    drive(compare_harness.app(depth=DEPTH), steps, size)


def test_a_click_moves_the_cursor_in_either_ranking(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        await pilot.click("#first", offset=(10, 4))  # below border and heads
        await wait_until_answered(pilot, screen)
        assert screen.side is screen.sides[0] and screen.ranking.cursor == 2
        await pilot.click("#second", offset=(10, 6))
        await wait_until_answered(pilot, screen)
        assert screen.side is screen.sides[1] and screen.ranking.cursor == 4

    drive(compare_harness.app(), steps)


def test_late_figures_are_added_to_the_list_of_pairs(
    compare_harness: CompareHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = delay_comparisons(monkeypatch)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until(pilot, lambda: all(side.ranked is not None for side in screen.sides))
        await press(pilot, "v")
        dialog = app.screen
        assert isinstance(dialog, Picking) and not any(choice.about for choice in dialog.choices)
        gate.set()
        await wait_until_answered(pilot, screen)
        assert len(dialog.choices) == 3 and all("RR" in choice.about for choice in dialog.choices)
        assert screen.topic_id == screen.topics.topics[0]  # unchanged below a dialog

    app = compare_harness.app(RECIPES, measures=("RR",))
    drive(app, steps)


def test_every_pane_has_lines_in_a_small_terminal_while_judging(compare_harness: CompareHarness) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press(pilot, "J")
        for side in screen.sides:
            assert side.ranking.size.height >= 2
        assert all(screen.query_one(f"#{name}").size.height >= 1 for name in ("topic", "document"))

    drive(compare_harness.app(), steps, (40, 15))
