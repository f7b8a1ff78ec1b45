"""Options of a question are shown with the correct one marked, on screens and by prompts."""

from __future__ import annotations

import io

import pytest
from textual.pilot import Pilot

from searchapp.judging.events import Action, Author
from searchapp.judging.session import Adjudication, SeenDocument, Session
from searchapp.model import Option, Topic
from searchapp.tasks import load
from searchapp.tui.adjudicate.prompts import AdjudicatePrompts
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.content import AS_WRITTEN
from searchapp.tui.kit.descriptions import topic_page
from searchapp.tui.kit.widgets import TextPane
from tests.tui.conftest import JudgingHarness, drive, screen_text
from tests.tui.test_prompts import run_prompts

P = Pilot[None]
TASKS = ["explanation-2019", "explanation-2021"]
SHOWN = ("(A)   it freezes", "(B)   it turns into rock", "(C) ✓ it evaporates", "(D)   it becomes salt")
READ = ("option A: it freezes", "option C (correct): it evaporates", "option D: it becomes salt")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_the_judging_screen_shows_options(judging: JudgingHarness, task: str, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        page = screen.query_one("#topic", TextPane).text.plain
        assert all(option in page for option in SHOWN) and "answer" not in page
        if size[1] == 45:
            assert all(option in screen_text(pilot) for option in SHOWN)

    drive(judging.app(task), steps, size=size)


@pytest.mark.parametrize("task", TASKS)
def test_prompts_show_options(judging: JudgingHarness, task: str) -> None:
    text = run_prompts(judging, "topic", task=task)
    assert all(text.count(option) == 2 for option in READ)


@pytest.mark.parametrize("task", TASKS)
def test_adjudication_shows_options(judging: JudgingHarness, task: str) -> None:
    judging.app(task)
    topic = judging.own_session.topics[0]
    document = SeenDocument(topic, judging.own_session.order(topic).documents[0])
    for name, grade in (("ann", 0), ("ben", 1)):
        judging.session(name, task).grade([document], grade)
    adjudication = Adjudication(Session(judging.log, task, Author("kim"), (Action.adjudicate,)))

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert all(option in screen_text(pilot) for option in SHOWN)

    settings = keys.load(judging.home, load(task).info.grades)
    drive(KeyApp(AdjudicateScreen(adjudication, judging.run_pages, settings.keys, "title"), "dark"), steps)
    out = io.StringIO()
    AdjudicatePrompts(adjudication, judging.run_pages, "title", lambda _prompt: "q", out).converse()
    assert all(option in out.getvalue() for option in READ)


def test_hostile_options_are_escaped() -> None:
    page = topic_page(Topic("t", "What?", options=(Option("A\x1b", "a\x1b[2J[bold]b", True),)), AS_WRITTEN)
    assert page.plain == "What?\n(A␛) ✓ a␛[2J[bold]b"
