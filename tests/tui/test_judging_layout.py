"""How the judging screen divides its room, and which parts of ids it shows."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.judging.session import NearDuplicates, SeenDocument
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.widgets import TextPane, id_column, id_column_cells, shortened_id
from tests.tui.conftest import JudgingHarness, drive, screen_text
from tests.tui.test_prompts import run_prompts

P = Pilot[None]


def shown_lines(pane: TextPane) -> str:
    top = pane.scroll_offset.y
    return "\n".join(strip.text for strip in pane._lines[top : top + pane.size.height])


def test_a_narrow_screen_shows_the_document_in_full_width_below_the_ranking(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        ranking, document = (screen.query_one(name).region for name in ("#ranking", "#document"))
        assert ranking.width == document.width == 80 and ranking.bottom <= document.y
        assert ranking.height >= 5 and document.height >= 6
        await pilot.press("greater_than_sign")
        assert screen.query_one("#ranking").region.height == ranking.height + 2
        assert screen.query_one("#ranking").region.width == 80
        for _ in range(20):
            await pilot.press("greater_than_sign")
        assert screen.query_one("#right").region.height >= 4
        await pilot.resize_terminal(160, 45)
        await pilot.pause()
        assert screen.query_one("#ranking").region.height == screen.query_one("#right").region.height

    drive(judging.app(), steps, (80, 24))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_the_topic_uses_the_lines_that_the_document_does_not_need(
    judging: JudgingHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic = screen.query_one("#topic", TextPane)
        right = screen.query_one("#right").size.height
        assert "(C) ✓ it evaporates" in shown_lines(topic) and "(D)" in shown_lines(topic)
        if size[1] == 24:
            assert topic.size.height > right * 0.34  # more than its share
        await pilot.press("tab", "z")
        assert topic.size.height > 15
        await pilot.press("z")
        assert screen.query_one("#document").display and topic.size.height < 15

    drive(judging.app("explanation-2021"), steps, size)


def test_a_topic_without_enough_room_is_scrolled_to_the_right_option(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic = screen.query_one("#topic", TextPane)
        assert "(C) ✓ it evaporates" in shown_lines(topic)
        assert "After the rain" not in shown_lines(topic)
        await pilot.resize_terminal(50, 17)
        await pilot.pause()
        assert "(C) ✓ it evaporates" in shown_lines(topic)

    drive(judging.app("explanation-2021"), steps, (40, 16))


def test_ids_keep_their_beginning_and_end(judging: JudgingHarness) -> None:
    assert shortened_id("commons/valley_governors:16", 12) == "common…rs:16"
    assert shortened_id("漢字漢字漢字漢字", 9) == "漢字…漢字"
    assert shortened_id("ab", 1) == "…" and shortened_id("a\x1bb", 9) == "a␛b"
    assert id_column("dbo:City", 10) == "dbo:City    " and id_column("dbo:City", 0) == ""


def test_ids_that_say_nothing_have_no_column(judging: JudgingHarness) -> None:
    hidden = ["b1c1-e4dd-68b0-07d0", "17", "0f8fad5b-d9cb-469f-a165-70867728950e", "9e107d9d372bb6826bd81d35"]
    assert id_column_cells(hidden, 12) == 0
    for telling in ("dbo:City", "facade", "debate_2016:7", "a-b-c", "P31"):
        assert id_column_cells([*hidden, telling], 12) > 0

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.document_id
        assert document is not None
        assert f"Document {document}" in screen_text(pilot)
        assert screen_text(pilot).count(document) == 1  # only in the title

    app = judging.app("explanation-2021")
    drive(app, steps, (80, 24))


def test_ones_judgments_of_near_duplicates_are_above_the_document(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first, second = screen.ranking.documents[:2]
        assert "≈" not in screen_text(pilot)
        texts = {first: "The image of a point", second: "the image of a point."}
        screen._reading.near_duplicates = NearDuplicates(judging.own_session, texts.get)
        await pilot.press("1")
        lines = screen.query_one("#document", TextPane).text.plain.splitlines()
        assert lines[0] == f"≈ you judged the same text 1 relevant: document {first}"
        await pilot.press("u", "down")
        assert "≈" not in screen.query_one("#document", TextPane).text.plain

    app = judging.app()
    drive(app, steps)


def test_near_duplicates_of_earlier_sessions_are_fetched(judging: JudgingHarness) -> None:
    judging.app()
    topic = judging.own_session.topics[0]
    last = judging.own_session.order(topic).documents[-1]
    judging.session("ann").grade([SeenDocument(topic, last)], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert screen.run_pages.known_text(last) is not None

    drive(judging.app(), steps, (80, 24))


def test_prompts_read_near_duplicates(judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchapp.judging.session.LEAST_OVERLAP", 0.05)
    shown = run_prompts(judging, "1", "q")
    assert "you judged a similar text 1 relevant: “" in shown
