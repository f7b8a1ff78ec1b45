"""Comparing runs on the screen: what keys do, and what is seen."""

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
from searchapp.tui.compare.screen import KEY_ACTIONS, SECTION, CompareScreen
from searchapp.tui.kit.dialogs import Picking
from searchapp.tui.kit.keys import load
from tests.hostile.payload import Hostile
from tests.tui.compare.conftest import RECIPES, TASK, Compared, answered, enter
from tests.tui.conftest import drive, press, question, require_complete, text_of, until

P = Pilot[None]
DEPTH = 3

sizes = pytest.mark.parametrize("size", [(80, 24), (160, 45)])


def rankings(compared: Compared, recipe: str) -> dict[str, tuple[str, ...]]:
    return {one.topic_id: one.document_ids() for one in directory.read(compared.runs.made(recipe)).run}


@sizes
def test_the_figures_are_those_that_compare_prints(compared: Compared, size: tuple[int, int]) -> None:
    found = compare(compared.request())
    (pair,) = found.measures[0].pairs
    tests = pair.tests

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        assert screen.comparison == found
        line = text_of(app).splitlines()[1]
        shown = (
            f"MAP@50  {number(tests.first)} → {number(tests.second)}  {signed(tests.mean)}",
            f"[{signed(tests.interval.low)}, {signed(tests.interval.high)}]",
            f"p {p_value(tests.randomisation.p)}",
        )
        assert all(one in line for one in shown), line
        outcomes = tests.outcomes
        wide = f"{outcomes.wins} won · {outcomes.ties} tied · {outcomes.losses} lost"
        assert (wide if size[0] > 100 else f"{outcomes.wins}/{outcomes.ties}/{outcomes.losses}") in line
        for place, run in enumerate(compared.request().runs):
            figure = evaluate_run(directory.read(run), compared.request().source).official.values["MAP@50"]
            assert found.measures[0].means[place] == pytest.approx(figure, abs=1e-12)

    app = compared.app()
    drive(app, steps, size)


def test_topics_are_sorted_by_their_differences_with_bars(compared: Compared) -> None:
    differences = {one.topic_id: one for one in compare(compared.request()).topics[0].topics}

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        by = [differences[one].difference for one in screen.topic_rows.topics]
        assert by == sorted(by, reverse=True) and screen.topic_id == screen.topic_rows.topics[0]
        await enter(pilot, screen, "t")
        for topic in screen.topic_rows.topics:
            one = differences[topic]
            place = screen.topic_rows.content_region.y + screen.topic_rows.topics.index(topic)
            before, _zero, behind = text_of(app).splitlines()[place].partition("│")
            assert f"{one.difference:+.3f}".replace("0.", ".") in before
            assert ("█" in before or "▐" in before) == (one.difference < -0.05)
            assert any(block in behind.split("│")[0] for block in "█▌▋▊▉▍▎▏") == (one.difference > 0.05)
        await enter(pilot, screen, "o")
        assert [differences[one].difference for one in screen.topic_rows.topics] == by[::-1]
        await enter(pilot, screen, "o")
        apart = [abs(differences[one].difference) for one in screen.topic_rows.topics]
        assert apart == sorted(apart, reverse=True)
        await enter(pilot, screen, "W")
        assert screen.topic_id == screen.topic_rows.topics[0]
        await enter(pilot, screen, "o")
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    app = compared.app()
    drive(app, steps, (80, 24))


def test_two_rankings_stand_side_by_side_with_what_has_moved(compared: Compared) -> None:
    first, second = (rankings(compared, recipe) for recipe in RECIPES[:2])

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        for _topic in range(3):
            topic = screen.topic_id
            one, other = screen.sides
            assert tuple(one.ranking.documents) == first[topic]
            assert tuple(other.ranking.documents) == second[topic]
            shown = text_of(app)
            relevant = screen.topics.relevant(topic)
            for rank, document in enumerate(second[topic][:5], 1):
                moved = first[topic].index(document) + 1 - rank
                arrow = "=" if not moved else f"{'↑' if moved > 0 else '↓'}{abs(moved)}"
                mark = "●" if document in relevant else " "
                assert f"{mark} {arrow:<3} " in shown, (document, arrow)
            await enter(pilot, screen, "]")

    app = compared.app()
    drive(app, steps, (80, 24))


def test_missed_gold_stands_below_each_ranking_with_its_rank(compared: Compared) -> None:
    both = [rankings(compared, recipe) for recipe in RECIPES[:2]]

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        seen = 0
        for _topic in range(6):
            for side, ranked in zip(screen.sides, both, strict=True):
                documents = ranked[screen.topic_id]
                gold = screen.topics.relevant(screen.topic_id)
                lost = sorted(set(gold) - set(documents[:DEPTH]), key=documents.index)
                assert list(side.missed.documents) == lost
                whys = [one.reason for one in side.missed.missed]
                assert [why.rank for why in whys if why is not None] == [
                    documents.index(one) + 1 for one in lost
                ]
                assert all(why is not None and why.status is RankStatus.ranked for why in whys)
                seen += len(lost)
            await enter(pilot, screen, "]")
        assert seen > 3

    drive(compared.app(depth=DEPTH), steps)


def test_keys_go_to_moved_documents_and_across(compared: Compared) -> None:
    first, second = (rankings(compared, recipe) for recipe in RECIPES[:2])

    def weight(topic: str, document: str) -> float:
        one, other = (ranked[topic].index(document) + 1 for ranked in (first, second))
        return abs(1 / math.log2(1 + one) - 1 / math.log2(1 + other))

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        topic = screen.topic_id
        order = sorted(second[topic], key=lambda one: -weight(topic, one))
        for document in order[:3]:
            await enter(pilot, screen, "v")
            assert weight(topic, str(screen.document_id)) == weight(topic, document)
            # The list beside stands on the same document.
            assert screen.sides[0].ranking.document == screen.document_id
        here = screen.document_id
        await enter(pilot, screen, "a")
        assert screen.side is screen.sides[0] and screen.document_id == here
        assert screen.ranking.has_focus and f"Document {here}" in text_of(app)
        await enter(pilot, screen, "g", "a")
        assert screen.side is screen.sides[1]
        await enter(pilot, screen, "i")
        await press(pilot, *first[topic][4], "enter")
        await answered(pilot, screen)
        assert screen.document_id == first[topic][4]

    app = compared.app()
    drive(app, steps)


def test_why_says_what_made_the_score_in_either_run(compared: Compared) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        document = str(screen.document_id)
        ranks = [rankings(compared, recipe)[screen.topic_id].index(document) + 1 for recipe in RECIPES[:2]]
        await enter(pilot, screen, "w")
        assert question(app) == f"{document} in both runs"
        shown = text_of(app)
        for recipe, rank in zip(RECIPES, ranks, strict=False):
            assert recipe in shown and f"{document} is at rank {rank}, with the score" in shown
        assert "fused by sum" in shown and "training topic" in shown
        await press(pilot, "escape")
        assert app.screen is screen

    app = compared.app()
    drive(app, steps)


def test_j_judges_into_the_same_log_and_the_figures_follow(compared: Compared) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, "1")
        assert "j starts judging" in text_of(app) and not compared.log.exists()
        await enter(pilot, screen, "j")
        assert "judged: no judgments on these topics yet" in text_of(app)
        topic, (one, two, *_) = screen.topic_id, screen.ranking.documents
        await enter(pilot, screen, "1", "0")
        await enter(pilot, screen, "shift+tab", "shift+tab", "end")
        assert screen.side is screen.sides[0]
        last = str(screen.document_id)
        await enter(pilot, screen, "1")
        names = [side.topics.pages.name for side in screen.sides]
        rank = len(screen.ranking.documents)
        assert [(e.topic_id, e.document_id, e.grade, e.rank, e.run) for e in compared.events()] == [
            (topic, one, 1, 1, names[1]),
            (topic, two, 0, 2, names[1]),
            (topic, last, 1, rank, names[0]),
        ]
        for at_all in (3, 2):
            grades = {topic: {one: 1, two: 0, last: 1}} if at_all == 3 else {topic: {one: 1, two: 0}}
            request = compared.request(judgments=Judgments(grades))
            found = compare(request)
            tests = found.measures[0].pairs[0].tests
            assert f"judged: MAP@50  {number(tests.first)} → {number(tests.second)}" in text_of(app)
            shares = " → ".join(f"{run.judged['Judged@10']:.0%}" for run in found.runs)
            assert f"1 topic · Judged@10 {shares}" in text_of(app)
            await enter(pilot, screen, "u")
        assert "undone" in text_of(app)
        await enter(pilot, screen, "j")
        assert "judged:" not in text_of(app)

    app = compared.app()
    drive(app, steps)


def test_compared_by_judgments_all_figures_follow(compared: Compared) -> None:
    topics = rankings(compared, "bm25")
    with JudgmentLog(compared.log) as log:
        session = Session(log, TASK, Author("ben"))
        for topic, documents in list(topics.items())[:3]:
            session.grade([SeenDocument(topic, documents[0])], 1)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        assert screen.comparison is not None and screen.comparison.measures[0].topics == 3
        assert set(screen.sides[0].ranking.relevant) == {topics[screen.topic_id][0]}
        before = screen.comparison
        order = list(screen.topic_rows.topics)
        tenth = str(screen.ranking.documents[9])
        await enter(pilot, screen, "j", *["down"] * 9, "1")
        assert screen.comparison is not before and "judged:" not in text_of(app)
        assert screen.comparison.measures[0].values != before.measures[0].values
        assert all(tenth in side.ranking.relevant for side in screen.sides)
        assert list(screen.topic_rows.topics) == order

    app = compared.app(follows=True)
    drive(app, steps)


def test_of_three_runs_a_pair_is_chosen(compared: Compared) -> None:
    found = compare(compared.request(RECIPES, measures=("RR",)))

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        assert screen.names == ("bm25", "neighbours") and "Holm" in text_of(app).splitlines()[1]
        await enter(pilot, screen, "r")
        assert isinstance(app.screen, Picking)
        await enter(pilot, screen, *"tfidf", "down", "enter")
        assert screen.names == ("neighbours", "tfidf")
        tests = found.measures[0].pairs[2].tests
        shown = text_of(app)
        assert f"{number(tests.first)} → {number(tests.second)}" in shown.splitlines()[1]
        assert "neighbours → tfidf" in shown.splitlines()[0]
        ranked = rankings(compared, "tfidf")[screen.topic_id]
        assert tuple(screen.sides[1].ranking.documents) == ranked

    app = compared.app(RECIPES, measures=("RR",))
    drive(app, steps)


def test_the_next_measure_orders_the_topics_anew(compared: Compared) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, "r")
        assert "there are only two runs" in text_of(app)
        await enter(pilot, screen, "M")
        assert screen.measure == "RR" and text_of(app).splitlines()[1].strip().startswith("RR ")
        values = compare(compared.request(measures=("RR",))).topics[0].topics
        assert {topic: one.difference for topic, one in screen.topic_rows.differences.items()} == {
            one.topic_id: one.difference for one in values
        }

    app = compared.app(measures=("nDCG@10", "RR"))
    drive(app, steps)


def test_keys_hold_while_the_runs_are_compared(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def waits(*arguments: Any) -> Any:
        assert gate.wait(60)
        return compare_read(*arguments)

    monkeypatch.setattr(topic_comparison, "compare_read", waits)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await until(pilot, lambda: all(side.ranked is not None for side in screen.sides))
        assert "reading runs" in text_of(app).splitlines()[1]
        await press(pilot, "]", "o", "M")
        assert "still being compared" in text_of(app)
        second = screen.topics.topics[1]
        await until(pilot, lambda: screen.topic_id == second)
        gate.set()
        await answered(pilot, screen)
        # Who has gone on is left where they are.
        assert screen.comparison is not None and screen.topic_id == second

    app = compared.app()
    drive(app, steps)


def test_what_the_scorer_refuses_is_said_and_the_rankings_are_there(compared: Compared) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        # Where its lines end depends on how long the path of the run is.
        assert "the official scorer would not score this file" in " ".join(text_of(app).split())
        assert len(screen.ranking.documents) > 60
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    app = compared.app(request=CompareRequest(compared.request().runs, GoldSource()))
    drive(app, steps)


def test_what_cannot_be_compared_is_refused_before_the_screen(compared: Compared, tmp_path: Path) -> None:
    made = directory.read(compared.runs.made("bm25"))
    fewer = type(made.run)(made.run.tag, made.run.rankings[1:])
    directory.write(tmp_path / "fewer", made.manifest, fewer, {})
    with pytest.raises(DataError, match="does not rank 1 topic of the other run"):
        compared.app(request=CompareRequest((made.path, tmp_path / "fewer"), GoldSource()))
    with pytest.raises(UsageError, match="given twice"):
        compared.app(request=CompareRequest((made.path, made.path), GoldSource()))


def test_hostile_text_does_nothing_to_the_screen(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = Hostile().text("all of it") + "[/" + "x" * 100_000

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        topic = screen.topic_rows.topics[1]
        documents = [hostile[:300], "b\x1b[2J", *screen.ranking.documents[:3]]
        for side in screen.sides:
            pages = side.topics.pages
            monkeypatch.setattr(pages, "topic", lambda one: Topic(one, hostile[:5000]))
            monkeypatch.setattr(pages, "known_text", lambda _one: hostile)
            monkeypatch.setattr(pages, "texts", lambda documents: [hostile] * len(documents))
            hits = Hits(documents, [5.0, 4.0, 3.0, 2.0, 1.0])
            monkeypatch.setattr(pages.rankings, "ranking", lambda one, hits=hits: Ranking(one, hits))
            monkeypatch.setattr(pages.rankings, "scored", lambda *_: 5)
            gold = {topic: {documents[0]: 1, "[/]\x1b]0;a\x07\u202e": 1}}
            monkeypatch.setattr(side.topics, "_given_gold", lambda gold=gold: gold)
            documents = documents[::-1]
        screen.documents.forget_beginnings()
        await enter(pilot, screen, "]", "e", "w")
        assert "\x1b" not in text_of(app) and "\u202e" not in text_of(app)
        await enter(pilot, screen, "escape", "j", "1", "a", "v", "o", "t", "escape")
        shown = text_of(app)
        assert not any(ord(one) < 32 and one != "\n" for one in shown) and "\u202e" not in shown

    app = compared.app()
    drive(app, steps, (80, 24))


@sizes
def test_one_pane_alone_and_all_again(compared: Compared, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        require_complete(screen)

        def seen() -> set[str]:
            return {name for name in screen.ABOUT if screen.query_one(f"#{name}").region.area}

        whole = seen()
        assert {"first", "second", "topic", "document"} <= whole
        for name in ("first", "second-missed", "topic"):
            screen.panes.focus(screen.query_one(f"#{name}"))
            await press(pilot, "z")
            assert seen() == {name}
            await press(pilot, "z")
            assert seen() == whole
        await press(pilot, "b")
        assert seen() == {"topic", "document"}
        await press(pilot, "b", "t", "z")
        assert seen() >= {"topics"} and not seen() & {"first", "second", "document"}

    drive(compared.app(depth=DEPTH), steps, size)


def test_a_click_goes_to_a_line_of_either_ranking(compared: Compared) -> None:
    async def steps(pilot: P, screen: CompareScreen) -> None:
        await answered(pilot, screen)
        await pilot.click("#first", offset=(10, 3))
        await answered(pilot, screen)
        assert screen.side is screen.sides[0] and screen.ranking.cursor == 2
        await pilot.click("#second", offset=(10, 5))
        await answered(pilot, screen)
        assert screen.side is screen.sides[1] and screen.ranking.cursor == 4

    drive(compared.app(), steps)


def test_the_page_lists_every_key_and_none_is_of_two_actions() -> None:
    text = (Path(__file__).parents[3] / "docs" / "use" / "compare.md").read_text(encoding="utf-8")
    own = load(Path("/nowhere"), (), SECTION, KEY_ACTIONS).keys
    for one in own.actions:
        shown = " ".join(f"`{key}`" for key in own.all_shown(one.name).split())
        row = f"| {shown} | {one.about} |"
        assert row in text, f"docs/use/compare.md lacks the row {row}"
    every = [key for one in own.actions for key in one.keys]
    assert len(every) == len(set(every))


def test_figures_that_come_late_are_shown_in_the_list_of_pairs_too(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def waits(*arguments: Any) -> Any:
        assert gate.wait(60)
        return compare_read(*arguments)

    monkeypatch.setattr(topic_comparison, "compare_read", waits)

    async def steps(pilot: P, screen: CompareScreen) -> None:
        await until(pilot, lambda: all(side.ranked is not None for side in screen.sides))
        await press(pilot, "r")
        dialog = app.screen
        assert isinstance(dialog, Picking) and not any(one.about for one in dialog.choices)
        gate.set()
        await answered(pilot, screen)
        assert len(dialog.choices) == 3 and all("RR" in one.about for one in dialog.choices)
        assert screen.topic_id == screen.topics.topics[0]  # it stays below a dialog

    app = compared.app(RECIPES, measures=("RR",))
    drive(app, steps)
