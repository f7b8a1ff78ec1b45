"""One query with two recipes side by side on the search screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.progress import Progress
from searchapp.tui.kit import background
from searchapp.tui.kit.widgets import DOWN, NOT_THERE, SAME, UP
from searchapp.tui.search import requests
from searchapp.tui.search.hits import PAGE, HitRows, Listing
from searchapp.tui.search.requests import RankingLoader
from searchapp.tui.search.screen import SearchScreen
from tests.test_visible import HOSTILE
from tests.tui.conftest import TIMEOUT_SECONDS, drive, press, question, screen_text, wait_until
from tests.tui.search.conftest import FickleIndex, SearchHarness, ids, press_and_wait, wait_until_answered
from tests.tui.search.test_judging import choose_topic, events
from tests.tui.test_content import MARKUP
from tests.tui.test_jumping import label_at

P = Pilot[None]
SIZES = [(160, 45), (80, 24), (40, 15)]
RECIPES = "words", "bm25"


def make_second_fickle(screen: SearchScreen, harness: SearchHarness) -> FickleIndex:
    """Let the index of the second recipe be made slow or fail."""
    fickle, open_searcher = FickleIndex(harness.index._index), screen.setup.open_searcher

    def open_fickle(progress: Progress) -> TaskSearcher:
        searcher = open_searcher(progress)
        fickle._index = searcher.index  # type: ignore[assignment]
        searcher.index = fickle  # type: ignore[assignment]
        return searcher

    screen.setup = replace(screen.setup, open_searcher=open_fickle)
    return fickle


async def split(pilot: P, screen: SearchScreen, recipe: str = RECIPES[1]) -> None:
    await press_and_wait(pilot, screen, "alt+v", *recipe, "enter")


def shown(rows: HitRows) -> list[str]:
    return [result.hit.document_id for result in rows.listing.pages.get(0, ())]


def expected(screen: SearchScreen, text: str, recipe: str) -> list[str]:
    results = screen.searcher.search(SearchRequest(text, recipe, size=PAGE))
    return [result.hit.document_id for result in results]


def assert_both(screen: SearchScreen, text: str, recipes: tuple[str, str] = RECIPES) -> None:
    """Require that both lists show the hits of their recipes for a query."""
    for loader, recipe in zip(screen.loaders, recipes, strict=True):
        assert loader.is_current and loader.recipe == recipe and loader.listing is loader.rows.listing
        assert shown(loader.rows) == expected(screen, text, recipe) != []


def line(rows: HitRows, index: int) -> str:
    return "".join(text for text, _look in rows.parts(index, rows.size.width))


@pytest.mark.parametrize("size", SIZES)
def test_a_query_is_ranked_with_two_recipes_while_typing(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        first, second = (loader.rows for loader in screen.loaders)
        await press_and_wait(pilot, screen, *"prime")
        whole = first.region
        await press(pilot, "alt+v")
        assert question(pilot) == "Beside words, rank with"
        await press_and_wait(pilot, screen, *"bm25", "enter")
        assert screen.words.has_focus
        assert_both(screen, "prime")
        for loader in screen.loaders:
            assert loader.rows.size.height >= 2
            assert f"documents · {loader.recipe}" in screen_text(pilot)
        await press_and_wait(pilot, screen, "space", *"number")
        assert_both(screen, "prime number")
        assert shown(first) != shown(second)
        await press_and_wait(pilot, screen, "enter", "tab", "b")
        assert screen.reading.size.height and not first.region and not second.region
        await press_and_wait(pilot, screen, "b")
        assert second.has_focus
        await press_and_wait(pilot, screen, "V")
        assert not second.region and first.region == whole and ids(screen) == shown(first)
        await press_and_wait(pilot, screen, "slash", "backspace")
        assert screen.loaders[1].listing is None  # it is not ranked any more

    drive(search_harness.app(), steps, size)


def test_arrows_show_the_moves_between_the_rankings(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"every finite ring")
        await split(pilot, screen)
        before, after = (
            [hit.document_id for hit in screen.searcher.ranking(SearchRequest("every finite ring", recipe))]
            for recipe in RECIPES
        )
        signs = set()
        for loader, own in zip(screen.loaders, (before, after), strict=True):
            for index, document in enumerate(own[: loader.rows.page]):
                if document in before and document in after:
                    move = before.index(document) - after.index(document)
                    sign = SAME if move == 0 else f"{UP if move > 0 else DOWN}{abs(move)}"
                else:
                    sign = NOT_THERE
                assert line(loader.rows, index).startswith(
                    f"{'▶' if index == loader.rows.cursor else ' '}{index + 1:>3} {sign} "
                )
                signs.add(sign[0])
        assert {UP, DOWN, SAME} <= signs
        rows = screen.loaders[1].rows
        rows.set_other_ranks({})
        assert line(rows, 1).startswith(f"   2 {NOT_THERE} ")

    drive(search_harness.app(), steps, (160, 45))


def test_a_list_that_is_loading_does_not_report_that_nothing_matches(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        second = make_second_fickle(screen, search_harness)
        second.may_answer.clear()
        await press_and_wait(pilot, screen, *"prime")
        await press(pilot, "alt+v", *"bm25", "enter", "enter", "tab")
        assert screen.loaders[1].rows.has_focus and "Loading the hits …" in screen_text(pilot)
        assert "No document matches" not in screen_text(pilot)
        second.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert_both(screen, "prime")

    drive(search_harness.app(), steps)


def test_the_same_recipe_twice_moves_nothing(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime number")
        await split(pilot, screen, "words")
        assert_both(screen, "prime number", ("words", "words"))
        for loader in screen.loaders:
            assert line(loader.rows, 1).startswith(f"   2 {SAME} ")

    drive(search_harness.app(), steps, (80, 24))


def test_the_cursors_are_on_the_same_document(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        first, second = (loader.rows for loader in screen.loaders)
        await press_and_wait(pilot, screen, *"every finite ring")
        await split(pilot, screen)
        await press_and_wait(pilot, screen, "enter", "down", "down")
        document = ids(screen)[2]
        assert shown(second)[second.cursor] == document
        await press_and_wait(pilot, screen, "tab", "down")
        assert second.has_focus and screen.hits is second
        document = shown(second)[second.cursor]
        assert shown(first)[first.cursor] == document
        assert f"Document {document} · rank {second.cursor + 1}" in screen_text(pilot)
        # A document that the other recipe does not rank hides the other cursor.
        first.set_other_ranks({})
        second.set_other_ranks({})
        await press_and_wait(pilot, screen, "down")
        assert not first.is_here(first.cursor) and second.is_here(second.cursor)
        await press_and_wait(pilot, screen, "shift+tab")
        assert first.has_focus and first.is_here(first.cursor)

    drive(search_harness.app(), steps, (80, 24))


def test_keys_do_not_wait_and_late_answers_of_a_recipe_are_discarded(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", TIMEOUT_SECONDS)
    monkeypatch.setattr(requests, "QUIET_SECONDS", 0.0)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        index = make_second_fickle(screen, search_harness)
        await wait_until_answered(pilot, screen)
        await split(pilot, screen)
        shown_texts: list[tuple[bool, str]] = []
        show_ranking = screen.show_ranking

        def record_ranking(loader: RankingLoader, listing: Listing, cursor: int) -> None:
            shown_texts.append((loader.rows.is_second, listing.request.text))
            show_ranking(loader, listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", record_ranking)
        index.may_answer.clear()
        index.searches = 0
        await press(pilot, "p")
        await wait_until(pilot, lambda: index.searches)
        await press(pilot, *"rime")
        await wait_until(pilot, lambda: not screen.loaders[0].is_waiting)
        assert screen.words.value == "prime" and shown(screen.loaders[0].rows) == expected(
            screen, "prime", "words"
        )
        assert screen.loaders[1].is_waiting and "▶" in screen_text(pilot)
        await press(pilot, "down")
        assert screen.hits is screen.loaders[0].rows and screen.hits.cursor == 1
        index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert [text for is_second, text in shown_texts if is_second] == ["prime"]
        assert_both(screen, "prime")
        # An answer that comes after the end of the comparison changes nothing.
        shown_texts.clear()
        index.may_answer.clear()
        await press(pilot, "space")
        await wait_until(pilot, lambda: screen.loaders[1].is_waiting and not screen.loaders[0].is_waiting)
        await press(pilot, "alt+v")
        index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert not any(is_second for is_second, _text in shown_texts)

    drive(search_harness.app(), steps)


@pytest.mark.parametrize("failing", [0, 1])
def test_a_recipe_that_fails_is_named_and_the_other_list_stays(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    monkeypatch.setattr(requests, "RETRY_SECONDS", 60.0)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        index = make_second_fickle(screen, search_harness)
        await press_and_wait(pilot, screen, *"prime")
        await split(pilot, screen)
        fickle = (search_harness.index, index)[failing]
        failed, other = screen.loaders[failing], screen.loaders[1 - failing]
        fickle.fails = True
        await press_and_wait(pilot, screen, "space", *"number")
        fickle.fails = False
        text = screen_text(pilot)
        assert other.is_current and shown(other.rows) == expected(screen, "prime number", other.recipe)
        assert f"{failed.recipe}: the server does not answer" in text
        assert f"▲ {failed.recipe}: the hits below are from an earlier query" in text
        assert text.count("Earlier query: ") == 1
        assert not failed.is_current and shown(failed.rows) == expected(screen, "prime", failed.recipe)
        assert other.rows.other_ranks is None  # rankings of different queries are not compared
        await press_and_wait(pilot, screen, "s")
        assert_both(screen, "prime numbers")
        assert "does not answer" not in screen_text(pilot) and "▲" not in screen_text(pilot)

    drive(search_harness.app(), steps, (160, 45))


def test_a_second_recipe_that_never_answered_says_why_its_list_is_empty(
    search_harness: SearchHarness,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        index = make_second_fickle(screen, search_harness)
        await press_and_wait(pilot, screen, *"prime")
        index.fails = True
        await split(pilot, screen)
        region = screen.loaders[1].rows.region
        lines = [line[region.x : region.right] for line in screen_text(pilot).splitlines()]
        assert any("bm25: the server does not answer" in line for line in lines[region.y : region.bottom])
        assert "▲ bm25: there are no hits yet" in screen_text(pilot)
        await press_and_wait(pilot, screen, "alt+v")
        assert "▲" not in screen_text(pilot) and "there are no hits" not in screen_text(pilot)

    drive(search_harness.app(), steps, (160, 45))


def test_a_syntax_error_is_explained_once(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        await split(pilot, screen)
        await press_and_wait(pilot, screen, "space", '"')
        assert screen_text(pilot).count("▲") == 1 and "Earlier query" not in screen_text(pilot)
        assert [shown(loader.rows) for loader in screen.loaders] == [
            expected(screen, "prime", recipe) for recipe in RECIPES
        ]

    drive(search_harness.app(), steps)


def test_a_hit_is_graded_in_the_list_with_the_focus(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        await choose_topic(pilot, screen)
        await split(pilot, screen)
        await press_and_wait(pilot, screen, "down", "1", "tab", "home", "down", "0", "shift+tab", "down", "1")
        saved = events(search_harness.home)
        assert [(grade, run) for _action, _topic, _document, grade, run, _rank in saved] == [
            (1, "search words"),
            (0, "search bm25"),
            (1, "search words"),
        ]
        for _action, _topic, document, _grade, run, rank in saved:
            rows = screen.loaders[run == "search bm25"].rows
            assert rank is not None and shown(rows)[rank - 1] == document
        # Both lists show the grades.
        graded = {event[2]: event[3] for event in saved}
        for loader in screen.loaders:
            for index, document in enumerate(shown(loader.rows)):
                if document in graded and index != loader.rows.cursor:
                    assert line(loader.rows, index).startswith(f" {graded[document]} ")

    drive(search_harness.app(), steps, (160, 45))


def test_actions_are_about_the_list_with_the_focus(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        second = screen.loaders[1]
        await press_and_wait(pilot, screen, *"every finite ring")
        await split(pilot, screen)
        await press_and_wait(pilot, screen, "enter", "tab", "v")
        assert second.rows.marked is not None and screen.loaders[0].rows.marked is None
        command = screen.command()
        assert command is not None and "--recipe bm25" in command
        # The export
        path = search_harness.home / "hits.trec"
        screen._export_to(str(path))
        await wait_until_answered(pilot, screen)
        ranked = [line.split()[2] for line in path.read_text().splitlines()]
        assert ranked[:PAGE] == shown(second.rows) != shown(screen.loaders[0].rows)
        # A saved search
        await press_and_wait(pilot, screen, "ctrl+s", *"mine", "enter")
        await press_and_wait(pilot, screen, "slash", "ctrl+u", *"prime", "enter")
        assert screen.hits is second.rows
        await press_and_wait(pilot, screen, "shift+tab", "ctrl+l", "enter")
        assert_both(screen, "every finite ring", ("bm25", "bm25"))
        # Another recipe
        await press_and_wait(pilot, screen, "r", *"words", "enter")
        assert_both(screen, "every finite ring")
        # Filters are those of both lists
        assert screen.loaders[0].query.filters == second.query.filters

    drive(search_harness.app(), steps, (160, 45))


def test_lists_are_chosen_by_keys_mouse_and_labels(search_harness: SearchHarness) -> None:
    app = search_harness.app()

    async def steps(pilot: P, screen: SearchScreen) -> None:
        first, second = (loader.rows for loader in screen.loaders)
        await press_and_wait(pilot, screen, *"every finite ring")
        await split(pilot, screen)
        await pilot.click("#second", offset=(5, 3))
        await wait_until_answered(pilot, screen)
        assert second.has_focus and screen.hits is second and second.cursor == 2
        for rows, index in ((first, 1), (second, 3)):
            await pilot.press("apostrophe")
            x, y = rows.content_region.offset
            await press_and_wait(pilot, screen, *label_at(app, (x, y + index)))
            assert rows.has_focus and screen.hits is rows and rows.cursor == index
        await press_and_wait(pilot, screen, "z")
        assert second.region and not first.region
        await press_and_wait(pilot, screen, "shift+tab")
        assert first.region and not second.region and first.has_focus
        await press_and_wait(pilot, screen, "V", "z")
        for _key in range(3):  # the hidden list is no pane
            await press_and_wait(pilot, screen, "tab")
            assert not second.region and (first.region or screen.reading.region)

    drive(app, steps, (80, 24))


def test_hostile_names_of_recipes_are_escaped(search_harness: SearchHarness, tmp_path: Path) -> None:
    name = HOSTILE + MARKUP
    quoted = "".join(f"\\U{ord(character):08x}" for character in name)
    variant = tmp_path / "mine.toml"
    variant.write_text(
        f'extends = "nlps"\n[recipes."{quoted}"]\nabout = "mine"\n'
        'signals = [{ signal = "direct", template = "bm25" }]\n'
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        index = make_second_fickle(screen, search_harness)
        await press_and_wait(pilot, screen, *"prime")
        screen.split(name)
        await wait_until_answered(pilot, screen)
        assert shown(screen.loaders[1].rows)
        assert "\x1b" not in screen_text(pilot) and "\u202e" not in screen_text(pilot)
        index.fails = True
        await press_and_wait(pilot, screen, "s")
        assert "does not answer" in screen_text(pilot)
        assert "\x1b" not in screen_text(pilot) and "\u202e" not in screen_text(pilot)

    drive(search_harness.app(variant=variant), steps, (160, 45))
