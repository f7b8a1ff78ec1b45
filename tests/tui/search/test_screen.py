"""The search screen: queries, hits, filters, recipes and keys."""

from __future__ import annotations

import shlex
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from searchapp.app.search import SearchRequest
from searchapp.ranking.paging import sources
from searchapp.ranking.query_language import BrokenQuery, FieldFilter
from searchapp.tui.kit import background
from searchapp.tui.search import requests
from searchapp.tui.search.choices import FilterDialog
from searchapp.tui.search.hits import PAGE, Listing
from searchapp.tui.search.requests import RankingLoader
from searchapp.tui.search.screen import SearchScreen
from tests.cli.conftest import run_command
from tests.tui.conftest import TIMEOUT_SECONDS, drive, screen_text, wait_until, wait_until_idle
from tests.tui.search.conftest import (
    SearchHarness,
    ids,
    press_and_wait,
    wait_for_training_topics,
    wait_until_answered,
)

P = Pilot[None]
SIZES = [(160, 45), (80, 24)]


def expected(screen: SearchScreen, text: str, **options: Any) -> list[str]:
    """Return the hits that the command `search` prints."""
    results = screen.searcher.search(SearchRequest(text, size=PAGE, **options))
    return [result.hit.document_id for result in results]


@pytest.mark.parametrize("size", SIZES)
def test_typing_searches(search_harness: SearchHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert screen.hits.count == 70  # an empty query finds all documents
        await press_and_wait(pilot, screen, *"prime", "space", *"number")
        assert ids(screen)[:PAGE] == expected(screen, "prime number") != []
        total = screen.searcher.counts(SearchRequest("prime number")).total
        text = screen_text(pilot)
        assert f"{total} documents · words" in text
        assert f"Document {ids(screen)[0]} · rank 1" in text
        await press_and_wait(pilot, screen, "ctrl+u")
        assert screen.hits.count == 70

    drive(search_harness.app(), steps, size)


def test_only_the_answer_to_the_last_query_is_shown(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", TIMEOUT_SECONDS)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        shown: list[str] = []
        show_ranking = screen.show_ranking

        def record_ranking(loader: RankingLoader, listing: Listing, cursor: int) -> None:
            shown.append(listing.request.text)
            show_ranking(loader, listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", record_ranking)
        index, before = search_harness.index, screen.hits.listing
        index.may_answer.clear()
        index.searches = 0
        await pilot.press("p")
        await wait_until(pilot, lambda: index.searches)
        await pilot.press(*"rime")
        assert screen.words.value == "prime"  # typing does not wait for answers
        assert screen.hits.listing is before
        await pilot.press("down", "down")  # nor do cursor keys
        assert screen.hits.cursor == 2
        index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert shown == ["prime"] and index.searches == 2
        assert ids(screen) == expected(screen, "prime") and screen.hits.cursor == 0

    drive(search_harness.app(), steps)


def test_fast_keys_cause_one_search(search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "QUIET_SECONDS", 0.5)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        search_harness.index.searches = 0
        await press_and_wait(pilot, screen, *"prime number")
        assert search_harness.index.searches <= 2  # the first letter, and the whole query
        assert screen.hits.listing.request.text == "prime number"

    drive(search_harness.app(), steps)


def test_a_broken_query_is_explained_below_its_error_and_the_hits_stay(
    search_harness: SearchHarness,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        await press_and_wait(pilot, screen, "space", *'"number')
        lines = screen_text(pilot).splitlines()
        position = next(number for number, line in enumerate(lines) if '"number' in line)
        assert lines[position + 1].index("▲") == lines[position].index('"')
        assert "this quotation mark is not closed" in lines[position + 1]
        assert ids(screen) == before
        await press_and_wait(pilot, screen, '"')
        assert "▲" not in screen_text(pilot)
        assert ids(screen) == expected(screen, 'prime "number"')

    drive(search_harness.app(), steps)


@pytest.mark.parametrize("sizes", [((80, 24), (200, 45)), ((200, 45), (80, 24))])
@pytest.mark.parametrize("query", ["normal subgroup", f'{"a" * 60} "b'])
def test_a_resized_terminal_shows_what_a_new_one_does(
    search_harness: SearchHarness, query: str, sizes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    drawings: list[str] = []

    async def draw(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = query
        screen.typed(query)
        await wait_until_answered(pilot, screen)
        await wait_for_training_topics(pilot, screen)
        gold_topics = screen.training_topics.topics
        assert gold_topics is not None
        screen.hits.move(
            next(position for position, document in enumerate(ids(screen)) if gold_topics.citing(document))
        )
        await wait_until_answered(pilot, screen)
        if app.size != sizes[1]:
            await press_and_wait(pilot, screen, "f1")
            await pilot.resize_terminal(*sizes[1])
            await wait_until_idle(pilot)
            await press_and_wait(pilot, screen, "escape")
        drawings.append(f"{screen_text(pilot)}\n{screen.reading._pane.text.plain}")

    for size in reversed(sizes):
        app = search_harness.app()
        drive(app, draw, size)
    assert drawings[0] == drawings[1]


@pytest.mark.parametrize("prefix_length", [0, 30, 60, 300])
def test_an_error_anywhere_in_a_query_is_explained(search_harness: SearchHarness, prefix_length: int) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = f'{"a" * prefix_length} "b'
        screen.typed(screen.words.value)
        await wait_until_answered(pilot, screen)
        (line,) = [line for line in screen_text(pilot).splitlines() if "▲" in line]
        assert "quotation mark" in line

    drive(search_harness.app(), steps, (80, 24))


def test_an_engine_that_fails_is_asked_again_until_it_answers(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "RETRY_SECONDS", 0.05)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        search_harness.index.fails = True
        await pilot.press("space", *"number")
        await wait_until(pilot, lambda: "the server does not answer" in screen_text(pilot))
        assert ids(screen) == before and "the hits below are from an earlier query" in screen_text(pilot)
        search_harness.index.fails = False
        await wait_until(pilot, lambda: screen.loader.is_current)
        await wait_until_answered(pilot, screen)
        assert ids(screen) == expected(screen, "prime number")
        assert "the server" not in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_further_pages_are_loaded_while_scrolling(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await pilot.press("enter")
        await press_and_wait(pilot, screen, "end")
        last = screen.searcher.search(SearchRequest("", size=1, first=69))[0].hit.document_id
        assert screen.hits.cursor == 69 and f"Document {last}" in screen_text(pilot)
        await press_and_wait(pilot, screen, "home", *["pagedown"] * 2)
        every = [one.document_id for one in screen.searcher.ranking(SearchRequest(""))]
        assert ids(screen) == every
        screen.hits.scroll_to(y=0, animate=False, immediate=True)
        await wait_until_answered(pilot, screen)
        assert "…" not in [
            line.split("│")[0].split()[-1] for line in screen_text(pilot).splitlines()[4:] if line.strip()
        ]

    drive(search_harness.app(), steps, (80, 24))


def test_late_pages_of_an_earlier_ranking_are_discarded(search_harness: SearchHarness) -> None:
    listing = Listing(SearchRequest("a"), 45)
    assert [
        listing.missing(range(45)),
        listing.missing(range(40, 90)),
        listing.missing(range(45, 50)),
    ] == [0, 2, None]

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await pilot.press("enter")
        search_harness.index.may_answer.clear()
        await pilot.press("end")
        await pilot.press("slash", *"prime")
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert ids(screen) == expected(screen, "prime") and screen.hits.cursor == 0

    drive(search_harness.app(), steps, (80, 24))


def test_filters_are_added_and_removed(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"jobs")
        all_documents = ids(screen)
        await press_and_wait(pilot, screen, "f2")
        assert "Only documents with" in screen_text(pilot)
        assert "○ debate: valley_governors" in screen_text(pilot)
        await press_and_wait(pilot, screen, *"speaker: castell", "enter")
        filters = (FieldFilter("speaker", "CASTELL"),)
        assert screen.loader.query.filters == filters
        assert ids(screen) == expected(screen, "jobs", filters=filters)
        assert "● speaker: CASTELL" in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape")
        assert "speaker: CASTELL " in screen_text(pilot) and screen.hits.count < len(all_documents)
        await press_and_wait(pilot, screen, "f2", "ctrl+x", "escape")
        assert ids(screen) == all_documents

    drive(search_harness.app("checkthat"), steps)


def test_late_values_of_filters_are_all_visible(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"jobs", "escape")
        search_harness.index.may_answer.clear()
        await pilot.press("f2")
        dialog = cast(FilterDialog, app.screen)
        await wait_until(pilot, lambda: dialog.rows.size.height)
        assert dialog.rows.count == 0 and "Only documents with" in screen_text(pilot)
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert dialog.rows.count == len(dialog.rows.visible_rows) == 7
        assert "○ speaker: HOST" in screen_text(pilot)
        before = dialog.rows.region
        await press_and_wait(pilot, screen, *"debate:")
        assert dialog.rows.count == 2 and dialog.rows.region == before  # typing does not move the list

    app = search_harness.app("checkthat")
    drive(app, steps, (80, 24))


def test_a_task_without_fields_reports_it(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "f2")
        assert "no fields to filter by" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_recipes_that_learn_rank_queries(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime number")
        await press_and_wait(pilot, screen, "alt+r", *"neighbours", "enter")
        assert screen.loader.query.recipe == "neighbours"
        assert ids(screen) == expected(screen, "prime number", recipe="neighbours")
        assert "documents · neighbours" in screen_text(pilot)
        await press_and_wait(pilot, screen, "enter", "w")
        assert "fused by" in screen_text(pilot)

    drive(search_harness.app(), steps)


@pytest.mark.parametrize("size", SIZES)
def test_why_shows_the_contribution_of_each_term(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime number", "enter", "w")
        text = screen_text(pilot)
        assert f"{ids(screen)[0]} is at rank 1, with the score" in text
        assert "text: prime" in text and "█" in text and "idf" in text and "df" in text
        await pilot.press("down", "escape")
        assert app.screen is screen

    app = search_harness.app()
    drive(app, steps, size)


def test_the_cursor_goes_to_an_id_or_its_absence_is_explained(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter")
        all_documents = [ranked.document_id for ranked in screen.searcher.ranking(SearchRequest(""))]
        listed = ids(screen)[2]
        missing = next(document for document in all_documents if document not in ids(screen))
        await press_and_wait(pilot, screen, "i", *listed, "enter")
        assert screen.hits.cursor == 2
        await press_and_wait(pilot, screen, "i", *missing, "enter")
        assert f"{missing} matches no part of the query" in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape", "i", *"none", "enter")
        assert "no document of nlps has this id" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_similar_documents_are_searched_and_left_again(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter")
        await pilot.press("down")
        first, chosen = ids(screen), ids(screen)[1]
        await press_and_wait(pilot, screen, "S")
        assert f"like {chosen} ›" in screen_text(pilot) and chosen not in ids(screen)
        text = str(sources(screen.searcher.index, [chosen])[chosen]["text"])
        similar = ids(screen)
        assert (
            similar[:PAGE] == [name for name in expected(screen, text, literal=True) if name != chosen][:PAGE]
        )
        await press_and_wait(pilot, screen, "backspace")
        assert ids(screen) == first and screen.hits.cursor == 1 and screen.words.value == "prime"
        await press_and_wait(pilot, screen, "alt+right")
        assert ids(screen) == similar
        await press_and_wait(pilot, screen, "slash", "x")
        assert "like" not in screen_text(pilot).splitlines()[1] and screen.words.value == "x"

    drive(search_harness.app(), steps)


def test_recent_queries_are_listed_in_the_next_session(search_harness: SearchHarness) -> None:
    async def first(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime number", "enter", "slash", "ctrl+u", *"ring", "enter")

    async def second(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, "ctrl+r")
        text = screen_text(pilot)
        assert text.index("ring") < text.index("prime number")
        await press_and_wait(pilot, screen, *"num", "enter")
        assert screen.words.value == "prime number"
        assert ids(screen) == expected(screen, "prime number")

    drive(search_harness.app(), first)
    drive(search_harness.app(), second)


def test_the_copied_command_finds_the_same_hits(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"-prime +number", "enter")
        await pilot.press("c")
        (command,) = copied
        _program, *arguments = shlex.split(command)
        options = ["--json", "--home", search_harness._samples.home]
        result = run_command(*arguments[:1], *options, *arguments[1:])
        assert result.code == 0, result.stderr
        assert [hit["id"] for hit in result.json["hits"]] == ids(screen)[: len(screen.hits.visible_rows)]
        await pilot.press("y")
        result_ = screen.hits.result
        assert result_ is not None and copied[-1] == result_.hit.document_id
        await pilot.press("Y")
        assert copied[-1] == result_.text

    copied: list[str] = []
    app = search_harness.app()
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    drive(app, steps)


def test_keys_are_text_in_the_query_and_actions_in_the_hits(
    search_harness: SearchHarness,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"qwsd")
        assert screen.words.value == "qwsd" and screen.words.has_focus
        assert "↵ to the hits" in screen_text(pilot)
        await press_and_wait(pilot, screen, "escape")
        assert screen.hits.has_focus and "/ search" in screen_text(pilot)
        await press_and_wait(pilot, screen, "x")
        assert "x does nothing here: ? lists the keys" in screen_text(pilot)
        await press_and_wait(pilot, screen, "slash", "f1")
        assert "these words next to each other" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_the_form_of_the_text_is_changed(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter")
        maths = screen_text(pilot)
        await press_and_wait(pilot, screen, "m")
        assert "raw text" in screen_text(pilot) and "$" in screen_text(pilot) and "$" not in maths
        await press_and_wait(pilot, screen, "m", "m")
        assert screen_text(pilot).splitlines()[3:] == maths.splitlines()[3:]

    drive(search_harness.app(), steps)


def test_neighbours_in_a_text_are_shown(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"jobs")
        result = screen.hits.result
        assert result is not None
        beside = screen.searcher.search(
            SearchRequest(f"debate:{result.source['debate']} line:{int(result.source['line']) + 1}")
        )
        assert beside[0].text.split()[0] in screen_text(pilot)
        assert "▎" in screen_text(pilot)

    drive(search_harness.app("checkthat"), steps)


def test_an_unexpected_failure_is_reported(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        monkeypatch.setattr(search_harness.index, "page", lambda *_given: 1 / 0)
        await press_and_wait(pilot, screen, "S")
        assert "the search failed: ZeroDivisionError" in screen_text(pilot)

    drive(search_harness.app(), steps)


def test_a_broken_query_is_not_retried(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"(a")
        assert isinstance(screen.error, BrokenQuery) and not screen.loader.tries_again

    drive(search_harness.app(), steps)


def test_hits_and_keys_can_be_clicked(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        await pilot.click("#hits", offset=(10, 4))  # below border and heads
        await wait_until_answered(pilot, screen)
        assert screen.hits.cursor == 2 and screen.hits.has_focus
        assert f"Document {ids(screen)[2]} · rank 3" in screen_text(pilot)
        line = screen_text(pilot).splitlines()[-1]
        await pilot.click("#keys", offset=(line.index("recipe"), 0))
        assert "Rank with" in screen_text(pilot)
        await pilot.click("#choices", offset=(5, 1))
        await wait_until_answered(pilot, screen)
        assert screen.loader.query.recipe == screen.searcher.recipes[1]

    drive(search_harness.app(), steps)


def test_panes_are_zoomed_hidden_and_focused(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter")
        await pilot.press("tab")
        assert screen.query_one("#document").has_focus
        await pilot.press("z")
        assert "documents · words" not in screen_text(pilot)
        await pilot.press("z", "b", "down")
        assert "documents · words" not in screen_text(pilot) and "rank 2" in screen_text(pilot)
        await pilot.press("b")
        assert "documents · words" in screen_text(pilot)
        await pilot.press(">", "<", "d", "d")

    drive(search_harness.app(), steps, (80, 24))


def test_matches_are_underlined_without_colours(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        strips = screen._compositor.render_strips()
        underlined = {
            segment.text for strip in strips for segment in strip if segment.style and segment.style.underline
        }
        assert any("prime" in text for text in underlined)

    drive(search_harness.app(), steps)


def test_hostile_text_in_the_query_is_escaped(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.value = "a\x1b[2Jb"
        assert screen.words.value == "a␛[2Jb"

    drive(search_harness.app(), steps)


def test_cursor_and_document_change_in_the_same_frame(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await press_and_wait(pilot, screen, "enter")
        for name in ("down", "down", "page_down", "up"):
            position = screen.hits.cursor
            screen.do(name)  # nothing is drawn before it returns
            assert screen.hits.cursor != position
            title = str(screen.query_one("#document").border_title)
            result = screen.hits.result
            assert result is not None and title == f"Document {result.hit.document_id}"
            await wait_until_answered(pilot, screen)

    drive(search_harness.app(), steps, SIZES[0])
