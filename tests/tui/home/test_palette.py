"""The palette finds all actions of the current screen by words."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual import events
from textual.command import Command, CommandList, DiscoveryHit
from textual.geometry import Region

from searchapp.app.saved_searches import RecentSearches, SearchQuery
from searchapp.config.settings import Settings
from searchapp.progress import SilentProgress
from searchapp.tasks import load, names
from searchapp.text import visible_line
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home import screen as actions
from searchapp.tui.home.opener import PaletteTargets
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.dialogs import ReportDialog
from searchapp.tui.kit.palette import LONGEST_CELLS, Offer, OfferMatcher, Palette
from searchapp.tui.kit.screen import front
from searchapp.tui.search.screen import SearchScreen, open_search_screen
from tests.test_visible import HOSTILE, texts
from tests.tui.conftest import (
    SAMPLES,
    TIMEOUT_SECONDS,
    JudgingHarness,
    SampleRuns,
    drive,
    press,
    screen_text,
    wait_until,
)
from tests.tui.home.conftest import HomeHarness, P, go_to_run, wait_for, wait_for_screen, wait_for_text
from tests.tui.test_content import MARKUP


def prompts(palette: Palette) -> list[str]:
    """Return the lines of the list."""
    return [str(option.prompt) for option in palette.query_one("CommandList")._options]  # type: ignore[attr-defined]


async def open_palette(pilot: P) -> Palette:
    await pilot.press("ctrl+p")
    palette = pilot.app.screen
    assert isinstance(palette, Palette)
    await wait_for(pilot, lambda: palette._listed is not None)
    return palette


def test_every_action_is_listed_with_its_key_and_no_command_of_textual(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await open_palette(pilot)
        lines = prompts(palette)
        for action in actions.KEY_ACTIONS:
            if action.name != "palette":
                assert any(action.about in line and screen.keys.shown(action.name) in line for line in lines)
        about = {action.about for action in actions.KEY_ACTIONS}
        others = [line for line in lines if not any(text in line for text in about)]
        for verb in ("index", "fetch"):
            assert sum(f": {verb} " in line for line in others) == len(names())
        assert len(others) == 2 * len(names())
        await pilot.press("escape")
        assert pilot.app.screen is screen

    home_harness.drive(steps)


def test_keys_without_pauses_find_and_carry_out_an_action(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        for key in ("ctrl+p", *"seting", "enter", "end"):  # without waiting for any of them
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_for_screen(pilot, ConfigScreen)
        await pilot.press("q")
        palette = await open_palette(pilot)
        await pilot.press(*"workson", "enter")
        await wait_for(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        await pilot.press("escape")
        palette = await open_palette(pilot)
        await pilot.press(*"zzzzqq", "enter")
        assert pilot.app.screen is palette  # no line matches

    home_harness.drive(steps)


def test_arrows_choose_in_the_list(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await open_palette(pilot)
        await pilot.press(*"dark")
        await wait_for(pilot, lambda: palette._is_current)
        first, *_ = prompts(palette)
        assert "Next theme" in first
        await pilot.press("down", "up", "enter")
        await wait_for(pilot, lambda: pilot.app.screen is screen)
        assert pilot.app.theme == "searchapp-light"

    home_harness.drive(steps)


def test_a_page_key_before_the_list_is_drawn_is_harmless(
    home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, _screen: HomeScreen) -> None:
        palette = await open_palette(pilot)
        await pilot.press("down")
        with monkeypatch.context() as not_drawn:
            not_drawn.setattr(CommandList, "scrollable_content_region", Region())
            palette.query_one(CommandList)._clear_caches()
            await pilot.press("pagedown", "pageup")
        await pilot.press("pagedown")
        assert highlighted(palette) != prompts(palette)[0]

    home_harness.drive(steps)


def test_late_offers_do_not_change_the_selected_line(home_harness: HomeHarness) -> None:
    home_harness.with_sample()
    RecentSearches(home_harness.home, "nlps").add("themes")
    may_come = threading.Event()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        find = screen.further_offers

        def find_late() -> list[Offer]:
            may_come.wait(TIMEOUT_SECONDS)
            return list(find())

        screen.further_offers = find_late  # type: ignore[method-assign]
        await pilot.press("ctrl+p", "down", "down")  # before there is a list
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        await wait_for(
            pilot, lambda: palette._listed == "" and palette.query_one(CommandList).highlighted == 2
        )
        await pilot.press(*"theme", "down")
        await wait_for(pilot, lambda: palette._listed == "theme")
        selected = highlighted(palette)
        assert len(prompts(palette)) > 1 and not any("searched: themes" in line for line in prompts(palette))
        may_come.set()
        await wait_for(pilot, lambda: any("searched: themes" in line for line in prompts(palette)))
        assert highlighted(palette) == selected

    home_harness.drive(steps)


def highlighted(palette: Palette) -> str:
    """Return the selected line."""
    commands = palette.query_one(CommandList)
    assert commands.highlighted is not None
    return str(commands.get_option_at_index(commands.highlighted).prompt)


def test_offers_after_the_palette_was_closed_are_ignored(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await open_palette(pilot)
        commands_list = palette.query_one(CommandList)
        palette._list_visible = False
        await pilot.press("escape")
        await wait_for(pilot, lambda: not palette.query(CommandList))
        commands = [Command("late", DiscoveryHit("late", lambda: None), id="0")]
        palette._refresh_command_list(commands_list, commands, clear_current=True)
        assert pilot.app.screen is screen

    drive(home_harness.app(), steps)


def test_tasks_runs_recipes_searches_and_topics_are_found(home_harness: HomeHarness) -> None:
    home_harness.with_sample()
    RecentSearches(home_harness.home, "nlps").add("hausdorff spaces")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        palette = await open_palette(pilot)
        await wait_for(pilot, lambda: any("topic: 602" in line for line in prompts(palette)))
        lines = "\n".join(prompts(palette))
        for line in (
            "task: search nlps",
            "task: rank nlps",
            "task: fetch nlps",
            "run: judge nlps (nlps dev bm25)",
            "run: evaluate nlps",
            "recipe: search nlps with neighbours",
            "searched: hausdorff spaces  (nlps)",
        ):
            assert line in lines
        await pilot.press(*"topic602", "enter")
        await wait_for_screen(pilot, SearchScreen)
        await wait_for_text(pilot, "judging topic")
        await pilot.press("ctrl+p")
        palette = pilot.app.screen  # type: ignore[assignment]
        await wait_for(pilot, lambda: any("topic: 602" in line for line in prompts(palette)))
        lines = "\n".join(prompts(palette))
        assert "recipe: neighbours" in lines and "searched: hausdorff spaces" in lines
        assert "task: search nlps" in lines and "run: judge nlps" in lines
        await pilot.press(*"hausdorff", "enter")
        await wait_for_text(pilot, "› hausdorff spaces")

    home_harness.drive(steps)


def test_the_palette_of_search_opens_other_screens(home_harness: HomeHarness, samples: SampleRuns) -> None:
    home_harness.with_sample()
    targets = PaletteTargets(Settings(home=home_harness.home, annotator="ann"), home_harness.folder)
    settings = Settings(home=home_harness.home)
    opening = open_search_screen(
        *(load("nlps"), SearchQuery(), settings, SilentProgress(), pytest.fail),
        data=SAMPLES / "nlps",
        other_offers=targets.offers,
    )

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await pilot.press("ctrl+p")
        palette = app.screen
        assert isinstance(palette, Palette)
        await wait_until(pilot, lambda: any("run: judge nlps" in line for line in prompts(palette)))
        assert any("task: search nlps" in line for line in prompts(palette))
        await pilot.press(*"run judge nlps", "enter")
        await wait_until(pilot, lambda: isinstance(front(app), JudgeScreen))
        await pilot.press("q")
        assert app.screen is screen and not app._exit

    with closing(targets), opening as search_screen:
        app = KeyApp(search_screen, "dark")
        drive(app, steps, (120, 36))


def test_the_judging_screen_has_a_palette_with_a_configurable_key(judging: JudgingHarness) -> None:
    (judging.home / "settings.toml").write_text('[judge.keys]\npalette = "ctrl+o"\n')
    app = judging.app()

    async def steps(pilot: P, screen: object) -> None:
        await press(pilot, "ctrl+p")
        assert "does nothing here" in screen_text(pilot)
        await press(pilot, "slash", "ctrl+o")  # in an input line too
        assert isinstance(app.screen, Palette)
        await press(pilot, *"grade 1", "enter")
        await wait_until(pilot, lambda: "saved" in screen_text(pilot))

    drive(app, steps)
    assert [event.grade for event in judging.events()] == [1]


def test_hostile_names_of_runs_and_tasks_are_shown_harmlessly(home_harness: HomeHarness) -> None:
    path = home_harness.with_sample()
    run = home_harness.folder / "\u202egnp [bold]x[@click=app.quit]\x1b[2J\n["
    shutil.copytree(path, run)
    manifest = json.loads((run / "run.json").read_text())
    manifest |= {"split": HOSTILE + MARKUP, "recipe": {"name": HOSTILE + MARKUP}, "created": HOSTILE + MARKUP}
    (run / "run.json").write_text(json.dumps(manifest))
    damaged = home_harness.folder / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"format": 1, "recipe": []}')

    async def steps(pilot: P, screen: HomeScreen) -> None:
        def require_harmless() -> None:
            text = screen_text(pilot).replace("\n", "")
            assert visible_line(text) == text

        require_harmless()
        await go_to_run(pilot, screen, run.name)
        require_harmless()
        assert "<U+202E>gnp [bold]x[@click" in screen_text(pilot)
        palette = await open_palette(pilot)
        await pilot.press(*"bold")
        await wait_for(pilot, lambda: palette._is_current)
        assert "<U+202E>gnp [bold]x[@click" in screen_text(pilot)
        require_harmless()
        await pilot.press("escape", "E")
        await wait_for(pilot, lambda: "scoring" not in screen.head.status.plain)
        require_harmless()

    home_harness.drive(steps)


class PaletteApp(KeyApp):
    """A palette with given offers on a screen without offers."""

    def __init__(self, judging: JudgingHarness, offers: list[Offer]) -> None:
        super().__init__(judging.app().main, "dark")
        self.palette = Palette(offers, list)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts(), min_size=1, max_size=30), texts())
def test_any_offer_is_drawn_harmlessly(judging: JudgingHarness, words: list[str], kind: str) -> None:
    app = PaletteApp(judging, [Offer(text + MARKUP, lambda: None, kind, key="x") for text in words])

    async def steps(pilot: P, screen: object) -> None:
        await app.push_screen(app.palette)
        await wait_for(pilot, lambda: app.palette._is_current)
        text = screen_text(pilot).replace("\n", "")
        assert visible_line(text) == text
        app.palette._line.paste(words[0] + HOSTILE)
        await wait_for(pilot, lambda: app.palette._is_current)
        text = screen_text(pilot).replace("\n", "")
        assert visible_line(text) == text

    drive(app, steps, (100, 30))


def test_letters_match_in_their_order() -> None:
    assert OfferMatcher("srch nlps").score("task: search nlps") > 0
    assert OfferMatcher("nlps search").score("search nlps") == 0
    assert OfferMatcher("NLPS").score("search nlps") > OfferMatcher("sh").score("search nlps") > 0
    assert OfferMatcher("search nlps").score("search nlps") > OfferMatcher("search nlps").score(
        "search nlps with bm25"
    )
    offer = Offer("\x1b" * 500, lambda: None)
    assert len(offer.text) <= LONGEST_CELLS


def test_keys_of_the_home_screen_are_configurable(home_harness: HomeHarness) -> None:
    (home_harness.home / "settings.toml").write_text(
        '[browse]\ntheme = "light"\n[browse.keys]\nsettings = "S"\n'
    )

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert pilot.app.theme == "searchapp-light"
        await pilot.press("comma")
        assert "does nothing here" in screen_text(pilot)
        await pilot.press("S")
        assert isinstance(pilot.app.screen, ConfigScreen)

    home_harness.drive(steps)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_all_panes_fit_on_the_screen(home_harness: HomeHarness, size: tuple[int, int]) -> None:
    home_harness.with_sample()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        lines = screen_text(pilot).split("\n")
        assert len(lines) == size[1] and all(len(line) <= size[0] for line in lines)
        text = "\n".join(lines)
        # A small screen shows only the first tasks.
        visible_states = screen.tasks.states if size[1] > 24 else screen.tasks.states[:8]
        assert all(state.task.name in text for state in visible_states)
        assert "↵ searches the documents" in text and "nlps dev bm25" in text and "? keys" in text
        await pilot.press("tab", "z")
        assert "Task nlps" not in screen_text(pilot) and "─Tasks" not in screen_text(pilot)
        await pilot.press("z", "tab", "z")
        assert "Run nlps" in screen_text(pilot) and "─Tasks" not in screen_text(pilot)

    home_harness.drive(steps, size)
