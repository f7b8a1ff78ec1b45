"""The search screen, driven by keys."""

from __future__ import annotations

import shlex
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from searchapp.app.search import SearchRequest
from searchapp.ranking.query_language import BrokenQuery, FieldFilter
from searchapp.tui.kit import background
from searchapp.tui.search import requests as searching_module
from searchapp.tui.search.choices import FilterDialog
from searchapp.tui.search.requests import PAGE, Listing
from searchapp.tui.search.screen import SearchScreen
from tests.cli.conftest import run_command
from tests.tui.conftest import PATIENCE_SECONDS, drive, settled, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, enter, ids, solved

P = Pilot[None]
SIZES = [(160, 45), (80, 24)]


def expected(screen: SearchScreen, text: str, **more: Any) -> list[str]:
    """What the use case finds, whose hits the command prints."""
    found = screen.searcher.search(SearchRequest(text, size=PAGE, **more))
    return [one.hit.document_id for one in found]


@pytest.mark.parametrize("size", SIZES)
def test_what_is_typed_is_searched_for(searching: SearchingOn, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        assert screen.hits.count == 70  # without words: all documents
        await enter(pilot, screen, *"prime", "space", *"number")
        assert ids(screen)[:PAGE] == expected(screen, "prime number") != []
        total = screen.searcher.counts(SearchRequest("prime number")).total
        shown = text_of(app)
        assert f"{total} documents · words" in shown
        assert f"Document {ids(screen)[0]} · rank 1" in shown
        await enter(pilot, screen, "ctrl+u")
        assert screen.hits.count == 70

    app = searching.app()
    drive(app, steps, size)


def test_only_the_answer_to_the_last_text_is_shown(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", PATIENCE_SECONDS)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        shown: list[str] = []
        found = screen.show_ranking

        def noted(listing: Listing, cursor: int) -> None:
            shown.append(listing.request.text)
            found(listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", noted)
        index, before = searching.index, screen.hits.listing
        index.may_answer.clear()
        index.finds = 0
        await pilot.press("p")
        await until(pilot, lambda: index.finds)
        await pilot.press(*"rime")
        assert screen.words.value == "prime"  # typing waits for nothing
        assert screen.hits.listing is before
        await pilot.press("down", "down")  # nor does moving
        assert screen.hits.cursor == 2
        index.may_answer.set()
        await answered(pilot, screen)
        assert shown == ["prime"] and index.finds == 2
        assert ids(screen) == expected(screen, "prime") and screen.hits.cursor == 0

    drive(searching.app(), steps)


def test_keys_that_follow_each_other_fast_are_one_search(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching_module, "QUIET_SECONDS", 0.5)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        searching.index.finds = 0
        await enter(pilot, screen, *"prime number")
        assert searching.index.finds <= 2  # the first letter, and all of them
        assert screen.hits.listing.request.text == "prime number"

    drive(searching.app(), steps)


def test_a_broken_query_is_explained_at_its_place_and_the_ranking_stays(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        good = ids(screen)
        await enter(pilot, screen, "space", *'"number')
        lines = text_of(app).splitlines()
        place = next(number for number, line in enumerate(lines) if '"number' in line)
        assert lines[place + 1].index("▲") == lines[place].index('"')
        assert "this quotation mark is not closed" in lines[place + 1]
        assert ids(screen) == good
        await enter(pilot, screen, '"')
        assert "▲" not in text_of(app)
        assert ids(screen) == expected(screen, 'prime "number"')

    app = searching.app()
    drive(app, steps)


@pytest.mark.parametrize("sizes", [((80, 24), (200, 45)), ((200, 45), (80, 24))])
@pytest.mark.parametrize("words", ["normal subgroup", f'{"a" * 60} "b'])
def test_another_size_of_the_terminal_is_drawn_with_all_that_comes_of_it(
    searching: SearchingOn, words: str, sizes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    seen: list[str] = []

    async def look(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = words
        screen.typed(words)
        await answered(pilot, screen)
        await solved(pilot, screen)
        known = screen.training_topics.topics
        assert known is not None
        screen.hits.move(next(place for place, one in enumerate(ids(screen)) if known.citing(one)))
        await answered(pilot, screen)
        if app.size != sizes[1]:
            await enter(pilot, screen, "f1")
            await pilot.resize_terminal(*sizes[1])
            await settled(pilot)
            await enter(pilot, screen, "escape")
        seen.append(f"{text_of(app)}\n{screen.reading._pane.text.plain}")

    for size in reversed(sizes):
        app = searching.app()
        drive(app, look, size)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("before", [0, 30, 60, 300])
def test_a_broken_query_is_explained_wherever_it_is_broken(searching: SearchingOn, before: int) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = f'{"a" * before} "b'
        screen.typed(screen.words.value)
        await answered(pilot, screen)
        (line,) = [line for line in text_of(app).splitlines() if "▲" in line]
        assert "quotation mark" in line

    app = searching.app()
    drive(app, steps, (80, 24))


def test_an_engine_that_fails_is_asked_again_until_it_answers(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching_module, "RETRY_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        good = ids(screen)
        searching.index.fails = True
        await pilot.press("space", *"number")
        await until(pilot, lambda: "the server does not answer" in text_of(app))
        assert ids(screen) == good and "the hits below are from an earlier query" in text_of(app)
        searching.index.fails = False
        await until(pilot, lambda: screen.loader.is_current)
        await answered(pilot, screen)
        assert ids(screen) == expected(screen, "prime number")
        assert "the server" not in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_pages_come_while_one_scrolls_to_any_depth(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await pilot.press("enter")
        await enter(pilot, screen, "end")
        last = screen.searcher.search(SearchRequest("", size=1, first=69))[0].hit.document_id
        assert screen.hits.cursor == 69 and f"Document {last} · rank 70" in text_of(app)
        await enter(pilot, screen, "home", *["pagedown"] * 2)
        every = [one.document_id for one in screen.searcher.ranking(SearchRequest(""))]
        assert ids(screen) == every
        screen.hits.scroll_to(y=0, animate=False, immediate=True)
        await answered(pilot, screen)
        assert "…" not in [
            line.split("│")[0].split()[-1] for line in text_of(app).splitlines()[4:] if line.strip()
        ]

    app = searching.app()
    drive(app, steps, (80, 24))


def test_pages_of_a_ranking_that_is_gone_are_not_mixed_in(searching: SearchingOn) -> None:
    listing = Listing(SearchRequest("a"), 45)
    assert [
        listing.missing(range(45)),
        listing.missing(range(40, 90)),
        listing.missing(range(45, 50)),
    ] == [0, 2, None]

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await pilot.press("enter")
        searching.index.may_answer.clear()
        await pilot.press("end")
        await pilot.press("slash", *"prime")
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert ids(screen) == expected(screen, "prime") and screen.hits.cursor == 0

    drive(searching.app(), steps, (80, 24))


def test_values_are_chosen_and_dropped_as_filters(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"jobs")
        every = ids(screen)
        await enter(pilot, screen, "f2")
        assert "Only documents with" in text_of(app) and "○ debate: valley_governors" in text_of(app)
        await enter(pilot, screen, *"speaker: castell", "enter")
        wanted = (FieldFilter("speaker", "CASTELL"),)
        assert screen.loader.query.filters == wanted
        assert ids(screen) == expected(screen, "jobs", filters=wanted)
        assert "● speaker: CASTELL" in text_of(app)
        await enter(pilot, screen, "escape")
        assert "speaker: CASTELL " in text_of(app) and screen.hits.count < len(every)
        await enter(pilot, screen, "f2", "ctrl+x", "escape")
        assert ids(screen) == every

    app = searching.app("checkthat")
    drive(app, steps)


def test_values_that_come_late_are_all_in_sight(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"jobs", "escape")
        searching.index.may_answer.clear()
        await pilot.press("f2")
        dialog = cast(FilterDialog, app.screen)
        await until(pilot, lambda: dialog.rows.size.height)
        assert dialog.rows.count == 0 and "Only documents with" in text_of(app)
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert dialog.rows.count == len(dialog.rows.visible_rows) == 7
        assert "○ speaker: HOST" in text_of(app)
        before = dialog.rows.region
        await enter(pilot, screen, *"debate:")
        assert dialog.rows.count == 2 and dialog.rows.region == before  # what is typed moves nothing

    app = searching.app("checkthat")
    drive(app, steps, (80, 24))


def test_a_task_without_fields_says_so(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, "f2")
        assert "no fields to filter by" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_recipes_that_learn_rank_what_is_typed(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime number")
        await enter(pilot, screen, "f3", *"neighbours", "enter")
        assert screen.loader.query.recipe == "neighbours"
        assert ids(screen) == expected(screen, "prime number", recipe="neighbours")
        assert "documents · neighbours" in text_of(app)
        await enter(pilot, screen, "enter", "w")
        assert "fused by" in text_of(app)

    app = searching.app()
    drive(app, steps)


@pytest.mark.parametrize("size", SIZES)
def test_why_shows_what_each_term_gave(searching: SearchingOn, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime number", "enter", "w")
        shown = text_of(app)
        assert f"{ids(screen)[0]} is at rank 1, with the score" in shown
        assert "text: prime" in shown and "█" in shown and "idf" in shown and "df" in shown
        await pilot.press("down", "escape")
        assert app.screen is screen

    app = searching.app()
    drive(app, steps, size)


def test_a_document_is_gone_to_by_its_id_or_why_it_is_not_there(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter")
        every = [one.document_id for one in screen.searcher.ranking(SearchRequest(""))]
        there = ids(screen)[2]
        missing = next(one for one in every if one not in ids(screen))
        await enter(pilot, screen, "i", *there, "enter")
        assert screen.hits.cursor == 2
        await enter(pilot, screen, "i", *missing, "enter")
        assert f"{missing} matches no part of the query" in text_of(app)
        await enter(pilot, screen, "escape", "i", *"none", "enter")
        assert "no document of nlps has this id" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_more_like_a_document_and_back(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter")
        await pilot.press("down")
        first, chosen = ids(screen), ids(screen)[1]
        await enter(pilot, screen, "s")
        assert f"like {chosen} ›" in text_of(app) and ids(screen)[0] == chosen
        result = screen.hits.listing.hit(0)
        assert result is not None
        assert ids(screen)[:PAGE] == expected(screen, result.text, literal=True)
        await enter(pilot, screen, "backspace")
        assert ids(screen) == first and screen.hits.cursor == 1 and screen.words.value == "prime"
        await enter(pilot, screen, "alt+right")
        assert ids(screen)[0] == chosen
        await enter(pilot, screen, "slash", "x")
        assert "like" not in text_of(app).splitlines()[1] and screen.words.value == "x"

    app = searching.app()
    drive(app, steps)


def test_what_was_searched_for_is_found_again_in_the_next_session(searching: SearchingOn) -> None:
    async def first(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime number", "enter", "slash", "ctrl+u", *"ring", "enter")

    async def second(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, "ctrl+r")
        shown = text_of(app)
        assert shown.index("ring") < shown.index("prime number")
        await enter(pilot, screen, *"num", "enter")
        assert screen.words.value == "prime number"
        assert ids(screen) == expected(screen, "prime number")

    drive(searching.app(), first)
    app = searching.app()
    drive(app, second)


def test_the_command_that_is_copied_finds_the_same(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"-prime +number", "enter")
        await pilot.press("c")
        (command,) = copied
        _program, *arguments = shlex.split(command)
        options = ["--json", "--home", searching._prepared.home]
        result = run_command(*arguments[:1], *options, *arguments[1:])
        assert result.code == 0, result.stderr
        assert [one["id"] for one in result.json["hits"]] == ids(screen)[: len(screen.hits.visible_rows)]
        await pilot.press("y")
        result_ = screen.hits.result
        assert result_ is not None and copied[-1] == result_.hit.document_id
        await pilot.press("Y")
        assert copied[-1] == result_.text

    copied: list[str] = []
    app = searching.app()
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    drive(app, steps)


def test_keys_of_the_hits_are_letters_in_the_line_and_the_other_way_round(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"qwsd")
        assert screen.words.value == "qwsd" and screen.words.has_focus
        assert "↵ to the hits" in text_of(app)
        await enter(pilot, screen, "escape")
        assert screen.hits.has_focus and "/ words" in text_of(app)
        await enter(pilot, screen, "x")
        assert "x does nothing here: ? lists the keys" in text_of(app)
        await enter(pilot, screen, "slash", "f1")
        assert "these words next to each other" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_the_form_of_the_text_is_changed(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter")
        maths = text_of(app)
        await enter(pilot, screen, "m")
        assert "raw text" in text_of(app) and "$" in text_of(app) and "$" not in maths
        await enter(pilot, screen, "m", "m")
        assert text_of(app).splitlines()[3:] == maths.splitlines()[3:]

    app = searching.app()
    drive(app, steps)


def test_neighbours_in_a_text_are_shown(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"jobs")
        result = screen.hits.result
        assert result is not None
        beside = screen.searcher.search(
            SearchRequest(f"debate:{result.source['debate']} line:{int(result.source['line']) + 1}")
        )
        assert beside[0].text.split()[0] in text_of(app)
        assert "▎" in text_of(app)

    app = searching.app("checkthat")
    drive(app, steps)


def test_a_failure_that_nobody_foresaw_is_told(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        monkeypatch.setattr(searching.index, "page", lambda *_given: 1 / 0)
        await enter(pilot, screen, "s")
        assert "the search failed: ZeroDivisionError" in text_of(app)

    app = searching.app()
    drive(app, steps)


def test_a_broken_query_is_none_of_the_engines_faults(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"(a")
        assert isinstance(screen.error, BrokenQuery) and not screen.loader.tries_again

    drive(searching.app(), steps)


def test_a_click_goes_to_a_hit_and_a_key_of_the_last_line_is_clicked(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        await pilot.click("#hits", offset=(10, 3))
        await answered(pilot, screen)
        assert screen.hits.cursor == 2 and screen.hits.has_focus
        assert f"Document {ids(screen)[2]} · rank 3" in text_of(app)
        line = text_of(app).splitlines()[-1]
        await pilot.click("#keys", offset=(line.index("recipe"), 0))
        assert "Rank with" in text_of(app)
        await pilot.click("#choices", offset=(5, 1))
        await answered(pilot, screen)
        assert screen.loader.query.recipe == screen.searcher.recipes[1]

    app = searching.app()
    drive(app, steps)


def test_panes_are_zoomed_hidden_and_gone_through(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter")
        await pilot.press("tab")
        assert screen.query_one("#document").has_focus
        await pilot.press("z")
        assert "documents · words" not in text_of(app)
        await pilot.press("z", "b", "down")
        assert "documents · words" not in text_of(app) and "rank 2" in text_of(app)
        await pilot.press("b")
        assert "documents · words" in text_of(app)
        await pilot.press(">", "<", "d", "d")

    app = searching.app()
    drive(app, steps, (80, 24))


def test_matches_are_underlined_without_colours(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        strips = screen._compositor.render_strips()
        words = {one.text for strip in strips for one in strip if one.style and one.style.underline}
        assert any("prime" in one for one in words)

    drive(searching.app(), steps)


def test_a_text_that_is_put_into_the_line_is_harmless(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = "a\x1b[2Jb"
        assert screen.words.value == "a␛[2Jb"

    drive(searching.app(), steps)


def test_the_document_goes_with_the_cursor_into_one_frame(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, "enter")
        for name in ("down", "down", "page_down", "up"):
            place = screen.hits.cursor
            screen.do(name)  # nothing is drawn before it is back
            assert screen.hits.cursor != place
            title = str(screen.query_one("#document").border_title)
            assert f"· rank {screen.hits.cursor + 1} ·" in title
            await answered(pilot, screen)

    drive(searching.app(), steps, SIZES[0])
