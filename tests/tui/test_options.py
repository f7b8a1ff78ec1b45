"""The options of a question, with the right one marked, wherever a question is judged."""

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
from searchapp.tui.kit.content import AS_WRITTEN
from searchapp.tui.kit.descriptions import topic_page
from searchapp.tui.kit.judging import WorkApp
from tests.tui.conftest import Judging, drive, text_of
from tests.tui.test_plain import talk

P = Pilot[None]
TASKS = ["explanation-2019", "explanation-2021"]
SHOWN = ("(A)   it freezes", "(B)   it turns into rock", "(C) ✓ it evaporates", "(D)   it becomes salt")
READ = ("option A: it freezes", "option C (correct): it evaporates", "option D: it becomes salt")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_the_judging_screen_shows_them(judging: Judging, task: str, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        page = str(screen.query_one("#topic-text").render())
        assert all(option in page for option in SHOWN) and "answer" not in page
        if size[1] == 45:
            assert all(option in text_of(app) for option in SHOWN)

    app = judging.app(task)
    drive(app, steps, size=size)


@pytest.mark.parametrize("task", TASKS)
def test_prompts_read_them(judging: Judging, task: str) -> None:
    shown = talk(judging, "topic", task=task)
    assert all(shown.count(option) == 2 for option in READ)


@pytest.mark.parametrize("task", TASKS)
def test_who_decides_sees_them_too(judging: Judging, task: str) -> None:
    judging.app(task)
    topic = judging.judging.topics[0]
    document = SeenDocument(topic, judging.judging.order(topic).documents[0])
    for name, grade in (("ann", 0), ("ben", 1)):
        judging.session(name, task).grade([document], grade)
    adjudication = Adjudication(Session(judging.log, task, Author("kim"), (Action.adjudicate,)))

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert all(option in text_of(app) for option in SHOWN)

    settings = keys.load(judging.home, load(task).info.grades)
    app = WorkApp(AdjudicateScreen(adjudication, judging.run_pages, settings.keys, "title"), settings)
    drive(app, steps)
    out = io.StringIO()
    AdjudicatePrompts(adjudication, judging.run_pages, "title", lambda _prompt: "q", out).converse()
    assert all(option in out.getvalue() for option in READ)


def test_hostile_options_are_harmless() -> None:
    page = topic_page(Topic("t", "What?", options=(Option("A\x1b", "a\x1b[2J[bold]b", True),)), AS_WRITTEN)
    assert page.plain == "What?\n(A␛) ✓ a␛[2J[bold]b"
