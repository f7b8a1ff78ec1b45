"""Pictures of the search screen, compared with those that people have looked at: see `tests.tui.pictures`."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import drive
from tests.tui.pictures import pinned, require_same
from tests.tui.search.conftest import SearchingOn, answered, enter

STAGES = {
    "search": ("down",),
    "search-broken": (" ", '"', *"new"),
    "search-filters": ("backspace",) * 5 + ("f2", "down"),
    "search-why": ("escape", "enter", "w"),
    "search-topics": ("escape", "t"),
    "search-topic": ("down", "enter", "1", "0"),
    "search-jump": ("apostrophe",),
    "search-help": ("escape", "f1"),
}
"""What is pressed for each picture, one after the other; what each key brings is waited for."""

FEW = ("search", "search-filters")


@pinned
@pytest.mark.parametrize(
    ("size", "look", "names"),
    [
        ((80, 24), "dark", STAGES),
        ((160, 45), "dark", STAGES),
        ((80, 24), "light", FEW),
        ((80, 24), "ansi-dark", FEW),
        ((160, 45), "ansi-light", FEW),
        ((80, 24), "NO_COLOR", FEW),
        ((80, 24), "compact", FEW),
    ],
    ids=lambda one: one if isinstance(one, str) else "x".join(map(str, one))[:6],
)
def test_the_search_screen_looks_as_it_did(
    searching: SearchingOn,
    size: tuple[int, int],
    look: str,
    names: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if look == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    own = {"compact": 'spacing = "compact"', "NO_COLOR": ""}.get(look, f'theme = "{look}"')
    (searching.home / "settings.toml").write_text(f"[search]\n{own}\n")
    app = searching.app("checkthat")
    pictures: dict[str, str] = {}

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await answered(pilot, screen)
        await enter(pilot, screen, *"jobs")
        for name, keys in STAGES.items():
            if name in names or not set(names) <= pictures.keys():
                for key in keys:
                    await enter(pilot, screen, key)
            if name in names:
                await wait_for_rest(pilot)
                pictures[name] = app.export_screenshot(title="searchapp search")

    drive(app, steps, size)
    for name, picture in pictures.items():
        require_same(picture, name, size, look)
