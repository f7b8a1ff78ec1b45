"""The help begins with the pane that has the focus."""

from __future__ import annotations

from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.screen import KeyApp, KeyScreen
from searchapp.tui.kit.widgets import TextLine
from tests.tui.conftest import Judging, drive, text_of

P = Pilot[None]


def require_complete(screen: KeyScreen) -> None:
    """Every pane and every line for words is described, with actions that there are; every action does something."""
    about = f"about.py beside {type(screen).__module__}: "
    panes = {one.id for one in screen.query("*") if one.can_focus}
    assert panes == screen.ABOUT.keys(), f"{about}describe each pane that can have the focus, and no other"
    names = {one.name for one in screen.keys.actions}
    for one in screen.ABOUT.values():
        assert set(one.actions) <= names, f"{about}{one.title} names an action that no key has"
    lines = {one.id for one in screen.query(TextLine)}
    assert {name for name, one in screen.ABOUT.items() if one.line} == lines, (
        f"{about}lines for words have line=True"
    )
    done = {*screen._common(), *screen.actions()}
    idle = {name for name in names - done if not name.startswith("grade_")}
    assert not idle, "actions() in the screen's module says what these do"


async def helped(pilot: P, app: KeyApp) -> list[str]:
    """The first lines of the help, which F1 opens."""
    await pilot.press("f1")
    assert isinstance(app.screen, Help)
    shown = [line.strip(" │") for line in text_of(app).splitlines() if "│" in line]
    await pilot.press("escape")
    return [line for line in shown if line]


def test_the_judging_screen_says_what_its_panes_are_for(judging: Judging) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        require_complete(screen)
        for name, title in (("ranking", "The ranking"), ("topic", "The topic"), ("document", "The document")):
            screen.set_focus(screen.query_one(f"#{name}"))
            assert any(title in line for line in (await helped(pilot, app))[:8])
        await pilot.press("f")
        lines = "\n".join(await helped(pilot, app))
        assert "The filter of the topics" in lines and screen.query_one("#filter").has_focus
        assert "^o " in lines and "' ^o" not in lines.split("Judge")[0]  # ' would be typed

    drive(app, steps)


def test_the_adjudicating_screen_says_what_its_panes_are_for(judging: Judging) -> None:
    app = judging.adjudicating()

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        require_complete(screen)
        assert any("The disagreements" in line for line in (await helped(pilot, app))[:8])

    drive(app, steps)
