"""The palette: everything that can be done on the screen in front, found by words."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual import events
from textual.command import Command, CommandList, DiscoveryHit

from searchapp.app.saved_searches import RecentSearches, SearchQuery
from searchapp.config.settings import Settings
from searchapp.tasks import load, names
from searchapp.text import visible_line
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home import screen as actions
from searchapp.tui.home.opener import PaletteTargets, prepare_search
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.dialogs import ReportDialog
from searchapp.tui.kit.palette import LONGEST_CELLS, Offer, OfferMatcher, Palette
from searchapp.tui.kit.screen import KeyApp, front
from searchapp.tui.search.screen import SearchScreen
from tests.test_visible import HOSTILE, texts
from tests.tui.conftest import PATIENCE_SECONDS, SAMPLES, Judging, Prepared, drive, press, text_of
from tests.tui.home.conftest import AtHome, P, comes, in_front, seen, shows, to_run
from tests.tui.test_content import MARKUP


def listed(palette: Palette) -> list[str]:
    """What the list has."""
    return [str(option.prompt) for option in palette.query_one("CommandList")._options]  # type: ignore[attr-defined]


async def opened(pilot: P) -> Palette:
    await pilot.press("ctrl+p")
    palette = pilot.app.screen
    assert isinstance(palette, Palette)
    await comes(pilot, lambda: palette._listed is not None)
    return palette


def test_every_action_is_listed_with_its_key_and_nothing_of_textuals(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await opened(pilot)
        lines = listed(palette)
        for action in actions.KEY_ACTIONS:
            if action.name != "palette":
                assert any(action.about in line and screen.keys.shown(action.name) in line for line in lines)
        about = {action.about for action in actions.KEY_ACTIONS}
        others = [line for line in lines if not any(one in line for one in about)]
        assert all(": index " in line for line in others) and len(others) == len(names())
        await pilot.press("escape")
        assert pilot.app.screen is screen

    at_home.drive(steps)


def test_keys_that_are_typed_at_once_find_and_do_it(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        for key in ("ctrl+p", *"seting", "enter", "end"):  # without waiting for any of them
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await in_front(pilot, ConfigScreen)
        await pilot.press("q")
        palette = await opened(pilot)
        await pilot.press(*"workson", "enter")
        await comes(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        await pilot.press("escape")
        palette = await opened(pilot)
        await pilot.press(*"zzzzqq", "enter")
        assert pilot.app.screen is palette  # nothing goes with that

    at_home.drive(steps)


def test_arrows_choose_in_the_list(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await opened(pilot)
        await pilot.press(*"dark")
        await comes(pilot, lambda: palette._is_current)
        first, *_ = listed(palette)
        assert "Next theme" in first
        await pilot.press("down", "up", "enter")
        await comes(pilot, lambda: pilot.app.screen is screen)
        assert pilot.app.theme == "searchapp-light"

    at_home.drive(steps)


def test_what_is_found_late_leaves_the_line_that_somebody_went_to(at_home: AtHome) -> None:
    at_home.with_sample()
    RecentSearches(at_home.home, "nlps").add("themes")
    may_come = threading.Event()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        find = screen.further_offers

        def find_late() -> list[Offer]:
            may_come.wait(PATIENCE_SECONDS)
            return list(find())

        screen.further_offers = find_late  # type: ignore[method-assign]
        await pilot.press("ctrl+p", "down", "down")  # before there is a list
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        await comes(pilot, lambda: palette._listed == "" and palette.query_one(CommandList).highlighted == 2)
        await pilot.press(*"theme", "down")
        await comes(pilot, lambda: palette._listed == "theme")
        chosen = highlighted(palette)
        assert len(listed(palette)) > 1 and not any("searched: themes" in line for line in listed(palette))
        may_come.set()
        await comes(pilot, lambda: any("searched: themes" in line for line in listed(palette)))
        assert highlighted(palette) == chosen

    at_home.drive(steps)


def highlighted(palette: Palette) -> str:
    """The line that enter chooses."""
    commands = palette.query_one(CommandList)
    assert commands.highlighted is not None
    return str(commands.get_option_at_index(commands.highlighted).prompt)


def test_what_is_found_after_the_palette_was_closed_is_not_listed(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await opened(pilot)
        found = palette.query_one(CommandList)
        palette._list_visible = False
        await pilot.press("escape")
        await comes(pilot, lambda: not palette.query(CommandList))
        commands = [Command("late", DiscoveryHit("late", lambda: None), id="0")]
        palette._refresh_command_list(found, commands, clear_current=True)
        assert pilot.app.screen is screen

    drive(at_home.app(), steps)


def test_tasks_runs_recipes_searches_and_topics_are_found(at_home: AtHome) -> None:
    at_home.with_sample()
    RecentSearches(at_home.home, "nlps").add("hausdorff spaces")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await opened(pilot)
        await comes(pilot, lambda: any("topic: 602" in line for line in listed(palette)))
        lines = "\n".join(listed(palette))
        for words in (
            "task: search nlps",
            "run: judge nlps (nlps dev bm25)",
            "run: evaluate nlps",
            "recipe: search nlps with neighbours",
            "searched: hausdorff spaces  (nlps)",
        ):
            assert words in lines
        await pilot.press(*"topic602", "enter")
        await in_front(pilot, SearchScreen)
        await shows(pilot, "judging topic")
        await pilot.press("ctrl+p")
        palette = pilot.app.screen  # type: ignore[assignment]
        await comes(pilot, lambda: any("topic: 602" in line for line in listed(palette)))
        lines = "\n".join(listed(palette))
        assert "recipe: neighbours" in lines and "searched: hausdorff spaces" in lines
        assert "task: search nlps" in lines and "run: judge nlps" in lines
        await pilot.press(*"hausdorff", "enter")
        await shows(pilot, "› hausdorff spaces")

    at_home.drive(steps)


def test_a_search_screen_that_stands_alone_goes_elsewhere_too(at_home: AtHome, prepared: Prepared) -> None:
    at_home.with_sample()
    elsewhere = PaletteTargets(Settings(home=at_home.home, annotator="ann"), at_home.folder)
    prepared_search = prepare_search(
        Settings(home=at_home.home), load("nlps"), SearchQuery(), SAMPLES / "nlps"
    )
    alone = prepared_search.open()
    assert isinstance(alone, SearchScreen)
    alone.setup = replace(alone.setup, other_offers=elsewhere.offers)
    app = KeyApp(alone, "dark")

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await pilot.press("ctrl+p")
        palette = app.screen
        assert isinstance(palette, Palette)
        for _ in range(1000):
            await asyncio.sleep(0.01)
            await pilot.pause(0)
            if any("run: judge nlps" in line for line in listed(palette)):
                break
        assert any("task: search nlps" in line for line in listed(palette))
        await pilot.press(*"run judge nlps", "enter")
        for _ in range(1000):
            await asyncio.sleep(0.01)
            await pilot.pause(0)
            if isinstance(front(app), JudgeScreen):
                break
        await pilot.press("q")
        assert app.screen is screen and not app._exit

    drive(app, steps, (120, 36))
    elsewhere.close()
    prepared_search.close()


def test_it_is_there_on_the_judging_screen_and_its_key_can_be_another_one(judging: Judging) -> None:
    (judging.home / "settings.toml").write_text('[judge.keys]\npalette = "ctrl+o"\n')
    app = judging.app()

    async def steps(pilot: P, screen: object) -> None:
        await press(pilot, "ctrl+p")
        assert "does nothing here" in text_of(app)
        await press(pilot, "slash", "ctrl+o")  # in a line of words too
        assert isinstance(app.screen, Palette)
        await press(pilot, *"grade 1", "enter")
        for _ in range(100):
            await asyncio.sleep(0.01)
            await pilot.pause()
            if "saved" in text_of(app):
                break
        assert "saved" in text_of(app)

    drive(app, steps)
    assert [event.grade for event in judging.events()] == [1]


def test_hostile_names_of_runs_and_tasks_are_shown_harmlessly(at_home: AtHome) -> None:
    path = at_home.with_sample()
    run = at_home.folder / "\u202egnp [bold]x[@click=app.quit]\x1b[2J\n["
    shutil.copytree(path, run)
    manifest = json.loads((run / "run.json").read_text())
    manifest |= {"split": HOSTILE + MARKUP, "recipe": {"name": HOSTILE + MARKUP}, "created": HOSTILE + MARKUP}
    (run / "run.json").write_text(json.dumps(manifest))
    damaged = at_home.folder / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"format": 1, "recipe": []}')

    async def steps(pilot: P, screen: HomeScreen) -> None:
        def harmless() -> None:
            drawn = seen(pilot).replace("\n", "")
            assert visible_line(drawn) == drawn

        harmless()
        await to_run(pilot, screen, run.name)
        harmless()
        assert "<U+202E>gnp [bold]x[@click" in seen(pilot)
        palette = await opened(pilot)
        await pilot.press(*"bold")
        await comes(pilot, lambda: palette._is_current)
        assert "<U+202E>gnp [bold]x[@click" in seen(pilot)
        harmless()
        await pilot.press("escape", "e")
        await comes(pilot, lambda: "scoring" not in screen.head._status.plain)
        harmless()

    at_home.drive(steps)


class Offering(KeyApp):
    """A palette with some offers alone, on a screen that has none."""

    def __init__(self, judging: Judging, offers: list[Offer]) -> None:
        super().__init__(judging.app().main, "dark")
        self.palette = Palette(offers, list)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts(), min_size=1, max_size=30), texts())
def test_whatever_is_offered_is_drawn_harmlessly(judging: Judging, words: list[str], kind: str) -> None:
    app = Offering(judging, [Offer(one + MARKUP, lambda: None, kind, key="x") for one in words])

    async def steps(pilot: P, screen: object) -> None:
        await app.push_screen(app.palette)
        await until_listed(pilot, app.palette)
        drawn = text_of(app).replace("\n", "")
        assert visible_line(drawn) == drawn
        app.palette._line.paste(words[0] + HOSTILE)
        await until_listed(pilot, app.palette)
        drawn = text_of(app).replace("\n", "")
        assert visible_line(drawn) == drawn

    drive(app, steps, (100, 30))


async def until_listed(pilot: P, palette: Palette) -> None:
    for _ in range(500):
        await asyncio.sleep(0.005)
        await pilot.pause(0)
        if palette._is_current:
            await pilot.pause()
            return
    raise AssertionError("the list never came")


def test_the_letters_follow_each_other() -> None:
    assert OfferMatcher("srch nlps").score("task: search nlps") > 0
    assert OfferMatcher("nlps search").score("search nlps") == 0
    assert OfferMatcher("NLPS").score("search nlps") > OfferMatcher("sh").score("search nlps") > 0
    assert OfferMatcher("search nlps").score("search nlps") > OfferMatcher("search nlps").score(
        "search nlps with bm25"
    )
    offer = Offer("\x1b" * 500, lambda: None)
    assert len(offer.text) <= LONGEST_CELLS


def test_keys_of_the_home_screen_are_those_of_the_users_file(at_home: AtHome) -> None:
    (at_home.home / "settings.toml").write_text('[browse]\ntheme = "light"\n[browse.keys]\nsettings = "S"\n')

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert pilot.app.theme == "searchapp-light"
        await pilot.press("s")
        assert "does nothing here" in seen(pilot)
        await pilot.press("S")
        assert isinstance(pilot.app.screen, ConfigScreen)

    at_home.drive(steps)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_nothing_is_out_of_sight(at_home: AtHome, size: tuple[int, int]) -> None:
    at_home.with_sample()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        lines = seen(pilot).split("\n")
        assert len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
        text = "\n".join(lines)
        in_sight = screen.tasks.states if size[1] > 24 else screen.tasks.states[:8]  # a longer list scrolls
        assert all(one.task.name in text for one in in_sight)
        assert "↵ searches the documents" in text and "nlps dev bm25" in text and "? keys" in text
        await pilot.press("tab", "z")
        assert "Task nlps" not in seen(pilot) and "─Tasks" not in seen(pilot)
        await pilot.press("z", "tab", "z")
        assert "Run nlps" in seen(pilot) and "─Tasks" not in seen(pilot)

    at_home.drive(steps, size)
