"""Hits on two lines, with a bar for the score, on the search screen."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.tui.kit.jump import Jumping
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import drive, screen_text
from tests.tui.search.conftest import SearchHarness, ids, press_and_wait, wait_until_answered
from tests.tui.test_jumping import label_at

P = Pilot[None]
SIZES = [(160, 45), (80, 24), (40, 15)]


def lines_of_hits(pilot: P, screen: SearchScreen) -> list[str]:
    region = screen.hits.content_region
    lines = screen_text(pilot).splitlines()[region.y : region.bottom]
    return [line[region.x : region.right] for line in lines]


@pytest.mark.parametrize("size", SIZES)
def test_hits_have_two_lines_with_score_and_bar(search_harness: SearchHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime number", "enter")
        one_line, page = lines_of_hits(pilot, screen), screen.hits.page
        await press_and_wait(pilot, screen, "L")
        lines = lines_of_hits(pilot, screen)
        assert screen.hits.page == page // 2
        full = lines[0].count("█")
        for index in screen.hits.visible_rows:
            result = screen.hits.listing.hit(index)
            assert result is not None
            head, text = lines[2 * index : 2 * index + 2]
            assert f"{index + 1} {result.hit.document_id} " in head
            assert f"{result.hit.score:,.3f}" in head
            share = result.hit.score / screen.hits.listing.pages[0][0].hit.score
            assert abs(head.count("█") - share * full) <= 1 and full in (6, 12)
            assert text.strip() and result.hit.document_id not in text
        await press_and_wait(pilot, screen, "L")
        assert lines_of_hits(pilot, screen) == one_line

    drive(search_harness.app(), steps, size)


@pytest.mark.parametrize("size", SIZES)
def test_the_cursor_stays_in_sight_on_two_lines(search_harness: SearchHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "enter", *["down"] * 30, "L")
        rows = screen.hits
        for keys in ((), ("pagedown",), ("end",), ("up",), ("pageup",), ("home",), ("L",), ("end",), ("L",)):
            await press_and_wait(pilot, screen, *keys)
            lines = lines_of_hits(pilot, screen)
            (line,) = [number for number, line in enumerate(lines) if line.startswith("▶")]
            result = rows.result
            number = result and result.hit.document_id.partition(":")[2]
            assert number and f":{number} " in lines[line].replace("…nors:", ":")
            assert line + rows.row_height <= len(lines)  # all of the row is visible
            assert rows.scroll_offset.y % rows.row_height == 0

    drive(search_harness.app("checkthat"), steps, size)


def test_either_line_can_be_clicked_and_the_first_has_a_label(search_harness: SearchHarness) -> None:
    app = search_harness.app()

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter", "L")
        for line, index in ((4, 2), (3, 1), (1, 0)):
            x, y = screen.hits.content_region.offset
            await pilot.click(offset=(x + 5, y + line))
            await wait_until_answered(pilot, screen)
            assert screen.hits.cursor == index
        await pilot.press("apostrophe")
        assert isinstance(app.screen, Jumping)
        await press_and_wait(pilot, screen, *label_at(app, (x, y + 4)))
        assert screen.hits.cursor == 2

    drive(app, steps, (80, 24))


def test_the_setting_shows_two_lines_from_the_start(search_harness: SearchHarness) -> None:
    (search_harness.home / "settings.toml").write_text("[search]\ntwo_lines = true\n")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        assert screen.hits.row_height == 2 and lines_of_hits(pilot, screen)[0].count("█") == 12
        await press_and_wait(pilot, screen, "alt+v", *"bm25", "enter")
        assert all(loader.rows.row_height == 2 for loader in screen.loaders)
        assert screen_text(pilot).count("██████") >= 2
        await press_and_wait(pilot, screen, "ctrl+u")  # documents in the order of their ids have no scores
        assert screen.hits.row_height == 2 and ids(screen)[0] in lines_of_hits(pilot, screen)[0]
        assert "█" not in "".join(lines_of_hits(pilot, screen))

    drive(search_harness.app(), steps, (80, 24))
