"""Walking topics on the screen: what keys do, and what is seen."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.topics import MissedGold, RunTopics
from searchapp.app.topic_figures import FiguresByTopic, Order
from searchapp.errors import EngineUnreachable
from searchapp.judging.event_log import NotSaved
from searchapp.judging.log import JudgmentLog
from searchapp.model import Hits, Ranking, Topic
from searchapp.tui.gold import screen as screen_module
from searchapp.tui.gold.screen import KEY_ACTIONS
from searchapp.tui.kit.keys import load
from searchapp.tui.topics.screen import SECTION, TopicsScreen
from tests.hostile.payload import Hostile
from tests.tui.conftest import (
    PATIENCE_SECONDS,
    SAMPLES,
    drive,
    press,
    question,
    require_complete,
    text_of,
    until,
)
from tests.tui.topics.conftest import Walked, answered, enter

P = Pilot[None]

DEPTH = 5
GOLD = {
    topic: [str(one) for one in entry["premises"]]
    for topic, entry in json.loads((SAMPLES / "nlps" / "dev_set.json").read_text(encoding="utf-8")).items()
}


def ranked(run: Path) -> dict[str, list[str]]:
    """The rankings of a run, read without searchapp."""
    rankings: dict[str, list[str]] = {}
    for line in (run / "run.trec").read_text().splitlines():
        rankings.setdefault(line.split()[0], []).append(line.split()[2])
    return rankings


def missed(run: Path) -> dict[str, list[str]]:
    """The gold of each topic that is behind DEPTH, in the order of its ranks."""
    return {
        topic: sorted(set(GOLD[topic]) - set(documents[:DEPTH]), key=documents.index)
        for topic, documents in ranked(run).items()
    }


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_gold_is_marked_at_its_ranks_and_missed_gold_stands_below(
    walked: Walked, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        documents = ranked(run)
        for topic in screen.topics.topics[:4]:
            assert screen.topic_id == topic and list(screen.ranking.documents) == documents[topic]
            assert list(screen.missed.documents) == missed(run)[topic]
            shown = text_of(app)
            for rank, document in enumerate(documents[topic][:DEPTH], start=1):
                mark = "●" if document in GOLD[topic] else " "
                assert f"{mark} {rank:>2} " in shown
            for document in missed(run)[topic][:2]:
                assert f"● rank {documents[topic].index(document) + 1}" in shown
            count = len(missed(run)[topic])
            assert f"Missed gold · {count} of" in shown if count else "Missed gold · none of" in shown
            await enter(pilot, screen, "]")

    app = walked.app(depth=DEPTH)
    run = walked._prepared.run("nlps")
    drive(app, steps, size)


def test_keys_go_from_gold_to_gold_and_to_what_is_missed(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        require_complete(screen)
        run = walked._prepared.run("nlps")
        topic = next(one for one, lost in missed(run).items() if len(lost) > 1)
        while screen.topic_id != topic:
            await enter(pilot, screen, "]")
        documents, lost = ranked(run)[topic], missed(run)[topic]
        places = [place for place, one in enumerate(documents) if one in GOLD[topic]]
        if places[0] == 0:  # where the cursor is already
            places = places[1:]
        for place in places:
            await enter(pilot, screen, "g")
            assert screen.document_id == documents[place] and "relevant · rank" in text_of(app)
        await enter(pilot, screen, "g")
        assert "no more gold in the ranking: e goes to the missed gold" in text_of(app)
        await enter(pilot, screen, "G")
        assert screen.ranking.cursor == places[-2]
        for document in [*lost, lost[0]]:
            await enter(pilot, screen, "e")
            assert screen.side.in_missed and screen.document_id == document
            rank = documents.index(document) + 1
            assert f"Document {document} · relevant · rank {rank}" in text_of(app)
        await enter(pilot, screen, "i")
        await press(pilot, *documents[2], "enter")
        await answered(pilot, screen)
        assert not screen.side.in_missed and screen.ranking.cursor == 2

    app = walked.app(depth=DEPTH)
    drive(app, steps)


def test_the_worst_topics_come_first_when_asked(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        figures = screen.topic_rows.figures
        assert figures is not None and figures.name == "AP"
        assert "AP instead of MAP@500: " in text_of(app)
        values = {topic: one.value or 0.0 for topic, one in figures.topics.items()}
        start = screen.topic_id
        await enter(pilot, screen, "o")
        assert [values[one] for one in screen.topic_rows.topics] == sorted(values.values())
        assert screen.topic_id == start and "worst first" in text_of(app)
        await enter(pilot, screen, "W")
        assert screen.topic_id == screen.topic_rows.topics[0] and values[screen.topic_id] == min(
            values.values()
        )
        await enter(pilot, screen, "[")
        assert "this is the first topic of the list" in text_of(app)
        await enter(pilot, screen, "o")
        counts = [figures.topics[one].missed for one in screen.topic_rows.topics]
        assert counts == sorted(counts, reverse=True) and counts[0] > 0
        await enter(pilot, screen, "o")
        assert tuple(screen.topic_rows.topics) == screen.topics.topics

    app = walked.app(depth=DEPTH)
    drive(app, steps)


@pytest.mark.parametrize("begun", [False, True])
def test_failures_alone_with_what_is_not_relevant_in_their_rankings(walked: Walked, begun: bool) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        if not begun:
            whole = list(screen.ranking.documents)
            await enter(pilot, screen, "F")
        figures = screen.topic_rows.figures
        assert figures is not None
        fails = {topic for topic, one in figures.topics.items() if one.missed or one.value != 1}
        assert set(screen.topic_rows.topics) == fails and len(fails) < len(screen.topics.topics)
        values = [figures.topics[one].value or 0.0 for one in screen.topic_rows.topics]
        assert values == sorted(values) and screen.topic_id == screen.topic_rows.topics[0]
        topic, documents = screen.topic_id, ranked(walked._prepared.run("nlps"))
        others = [one for one in documents[topic] if one not in GOLD[topic]]
        assert list(screen.ranking.documents) == others
        rank = documents[topic].index(others[0]) + 1
        assert f"Document {others[0]} · rank {rank} ·" in text_of(
            app
        ) and "Not relevant · gold at" in text_of(app)
        assert set(screen.missed.documents) == set(missed(walked._prepared.run("nlps"))[topic])
        await enter(pilot, screen, "j", "0")
        assert [(one.document_id, one.rank) for one in walked.events()] == [(others[0], rank)]
        assert list(screen.command[-1:]) == ["--failures"]
        await enter(pilot, screen, "F")
        assert len(screen.topic_rows.topics) == len(screen.topics.topics)
        assert list(screen.ranking.documents) == documents[screen.topic_id]
        assert begun or len(whole) == len(screen.ranking.documents)

    app = walked.app(depth=DEPTH, failing=begun)
    drive(app, steps)


def test_it_can_begin_with_the_worst_topic(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        figures = screen.topic_rows.figures
        assert figures is not None
        most = max(one.missed for one in figures.topics.values())
        assert figures.topics[screen.topic_id].missed == most > 0

    drive(walked.app(depth=DEPTH, order=Order.missed), steps)


def test_topics_are_filtered_by_words_and_opened_from_the_list(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        wanted = screen.topics.topics[3]
        await press(pilot, "f", *wanted, "enter")
        assert screen.topic_rows.topics == [wanted] and screen.topic_rows.has_focus
        await enter(pilot, screen, "[")
        assert screen.topic_id == wanted
        await enter(pilot, screen, "enter")
        assert screen.ranking.has_focus
        await enter(pilot, screen, "escape", "t", "down")
        assert screen.topic_id == screen.topics.topics[4] and screen.topic_rows.has_focus

    drive(walked.app(), steps)


def test_why_says_what_made_the_score_or_that_it_is_not_indexed(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        first = screen.ranking.documents[0]
        await enter(pilot, screen, "w")
        assert question(app).startswith(f"{first} is at rank 1, with the score")
        assert "idf" in text_of(app)
        await press(pilot, "escape", "i", *"nowhere", "enter")
        await answered(pilot, screen)
        assert question(app) == "nowhere is not indexed: no document of nlps has this id"
        await press(pilot, "escape")
        assert app.screen is screen

    app = walked.app()
    drive(app, steps)


def test_j_judges_with_the_keys_of_judging_into_the_same_log(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        topic, (first, second, third, *_) = screen.topic_id, screen.ranking.documents
        await enter(pilot, screen, "1")
        assert "j starts judging" in text_of(app) and not (walked.home / "judgments.sqlite").exists()
        await enter(pilot, screen, "j", "1", "x", "s", "n", *"why?", "enter")
        await enter(pilot, screen, "e")
        lost = screen.document_id
        assert lost is not None and lost in GOLD[topic]
        await enter(pilot, screen, "0", "7")
        assert "unknown grade 7" in text_of(app)
        rank = ranked(walked._prepared.run("nlps"))[topic].index(lost) + 1
        fourth = screen.ranking.documents[3]
        name = screen.topics.pages.name
        assert [(one.action.value, one.document_id, one.grade, one.rank) for one in walked.events()] == [
            ("grade", first, 1, 1),
            ("cant_tell", second, None, 2),
            ("skip", third, None, 3),
            ("note", fourth, None, 4),
            ("grade", lost, 0, rank),
        ]
        assert {(one.topic_id, one.run, one.annotator) for one in walked.events()} == {(topic, name, "ann")}
        marks = [screen.judging.mark(one)[0] for one in (first, second, third, fourth, lost)]
        assert marks == ["1", "?", "»", "·", "0"]
        await enter(pilot, screen, "u", "u", "U", "j", "0")
        assert [one.action.value for one in walked.events()[5:]] == ["retract", "retract", "note"]
        assert screen.ranking.judged is None

    app = walked.app(depth=DEPTH, start=next(one for one, lost in missed_of_sample(walked).items() if lost))
    drive(app, steps)


def test_a_grade_that_is_not_saved_is_told_and_saved_later(
    walked: Walked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: JudgmentLog, events: object) -> int:
        raise NotSaved("the disk is full")

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, "j")
        with monkeypatch.context() as broken:
            broken.setattr(JudgmentLog, "append", full)
            await enter(pilot, screen, "1", "0")
            assert "2 judgments NOT SAVED, retrying" in text_of(app) and "the disk is full" in text_of(app)
            screen.judging.refresh()
            await pilot.press("q")
            assert "2 judgments are not saved" in question(app)
            await pilot.press("escape")
        screen.judging.refresh()
        await pilot.pause()
        assert "✓ saved  all waiting judgments" in text_of(app)
        assert [one.grade for one in walked.events()] == [1, 0]

    app = walked.app()
    drive(app, steps)


def missed_of_sample(walked: Walked) -> dict[str, list[str]]:
    return missed(walked._prepared.run("nlps"))


def test_what_a_recipe_ranks_now_is_walked_and_judged(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        run = ranked(walked._prepared.run("nlps"))
        assert list(screen.ranking.documents) == run[screen.topic_id]
        await enter(pilot, screen, "j", "1")
        (event,) = walked.events()
        assert (event.run, event.rank, event.document_id) == ("search bm25", 1, run[screen.topic_id][0])

    drive(walked.app(recipe="bm25"), steps)


def test_an_engine_that_fails_is_asked_again(walked: Walked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "RETRY_SECONDS", 0.01)

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        texts, fails = screen.topics.pages.texts, [True]

        def fickle(documents: list[str]) -> list[str]:
            if fails[0]:
                raise EngineUnreachable("the server does not answer")
            return texts(documents)

        monkeypatch.setattr(screen.topics.pages, "texts", fickle)
        first, second = screen.topics.topics[:2]
        await press(pilot, "]")
        await until(pilot, lambda: "the server does not answer" in text_of(app))
        assert screen.topic_id == first and screen.target_topic == second
        fails[0] = False
        await until(pilot, lambda: screen.topic_id == second)

    app = walked.app()
    drive(app, steps)


def test_keys_that_come_fast_end_in_the_last_topic(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        await press(pilot, *"]]]]]]", *"[[", *"]]")
        await answered(pilot, screen)
        wanted = screen.topics.topics[6]
        assert screen.target_topic == screen.topic_id == wanted
        assert list(screen.ranking.documents) == ranked(walked._prepared.run("nlps"))[wanted]
        assert isinstance(shown := screen.documents._shown, tuple) and shown[1] == wanted

    drive(walked.app(), steps)


def test_hostile_text_does_nothing_to_the_screen(walked: Walked, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = Hostile().text("all of it") + "[/" + "x" * 1_000_000

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        pages = screen.topics.pages
        topic = screen.topics.topics[1]
        monkeypatch.setattr(pages, "topic", lambda one: Topic(one, hostile[:5000]))
        monkeypatch.setattr(pages, "known_text", lambda _one: hostile)
        monkeypatch.setattr(pages, "texts", lambda documents: [hostile] * len(documents))
        documents = [hostile[:300], "b\x1b[2J", *screen.ranking.documents[:3]]
        hits = Hits(documents, [5.0, 4.0, 3.0, 2.0, 1.0])
        monkeypatch.setattr(pages.rankings, "ranking", lambda one: Ranking(one, hits))
        monkeypatch.setattr(pages.rankings, "scored", lambda *_: 5)
        gold = {topic: {documents[0]: 1, "[/]\x1b]0;a\x07\u202e": 1}}
        monkeypatch.setattr(screen.topics, "_given_gold", lambda: gold)
        screen.documents.forget_beginnings()
        await enter(pilot, screen, "]")
        await enter(pilot, screen, "e")
        await enter(pilot, screen, "w")
        assert "\x1b" not in text_of(app) and "\u202e" not in text_of(app)
        await enter(pilot, screen, "escape", "j", "1", "o", "t", "escape")
        shown = text_of(app)
        assert not any(ord(one) < 32 and one != "\n" for one in shown) and "\u202e" not in shown

    app = walked.app()
    drive(app, steps, (80, 24))


def test_old_settings_that_give_j_and_other_keys_still_hold(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[topics.keys]\ndown = ["down", "j"]\n')
    keys = load(tmp_path, ("no", "yes"), SECTION, KEY_ACTIONS).keys
    assert keys.action("j") == "down" and keys.action("J") == "judge"


def test_the_page_lists_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "use" / "topics.md").read_text(encoding="utf-8")
    own = load(Path("/nowhere"), (), SECTION, KEY_ACTIONS).keys
    for one in own.actions:
        shown = " ".join(f"`{key}`" for key in own.all_shown(one.name).split())
        row = f"| {shown} | {one.about} |"
        assert row in text, f"docs/use/topics.md lacks the row {row}"


def test_what_became_of_missed_gold_comes_late_and_moves_nobody(walked: Walked) -> None:
    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await answered(pilot, screen)
        topic = next(one for one, lost in missed(walked._prepared.run("nlps")).items() if len(lost) > 1)
        while screen.topic_id != topic:
            await enter(pilot, screen, "]")
        await enter(pilot, screen, "e", "e")
        document = screen.document_id
        await enter(pilot, screen, "shift+tab")
        assert not screen.side.in_missed and screen.side.ranked is not None
        screen.show_missed(screen.side, topic, MissedGold(screen.side.ranked.missed))
        assert screen.missed.document == document

    drive(walked.app(depth=DEPTH), steps)


@pytest.mark.parametrize("keys", [["down"], ["question_mark"]])
def test_figures_that_come_late_leave_whoever_reads_where_they_are(
    walked: Walked, monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    gate, work = threading.Event(), TopicsScreen.compute_figures

    def wait(screen: TopicsScreen, topics: RunTopics) -> FiguresByTopic | None:
        assert gate.wait(PATIENCE_SECONDS)
        return work(screen, topics)

    monkeypatch.setattr(TopicsScreen, "compute_figures", wait)

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await until(pilot, lambda: screen.side.ranked is not None)
        first = screen.topics.topics[0]
        await press(pilot, *keys)
        gate.set()
        await answered(pilot, screen)
        assert screen.topic_rows.figures is not None and screen.topic_id == first
        await enter(pilot, screen, *(["escape"] if app.screen is not screen else []), "W")
        assert screen.topic_id != first

    app = walked.app(depth=DEPTH, order=Order.worst)
    drive(app, steps)
