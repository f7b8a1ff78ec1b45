"""Deciding between annotators, on the screen and through prompts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.pages import Pages
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action
from searchapp.judging.judgments import Aggregation, aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, disputes
from searchapp.tui.adjudicate.prompts import AdjudicatePrompts
from searchapp.tui.adjudicate.screen import OTHER, SAME, AdjudicateScreen
from searchapp.tui.kit.content import Form
from searchapp.tui.kit.keys import KEY_ACTIONS
from tests.tui.conftest import Judging, drive, settled, text_of, typing

P = Pilot[None]


def decisions(judging: Judging) -> list[tuple[str, str, int | None, str]]:
    """What kim has done: action, document, grade, words."""
    return [
        (event.action.value, event.document_id, event.grade, event.text)
        for event in judging.events()
        if event.annotator == "kim"
    ]


def test_one_key_decides_saves_and_goes_on_to_the_next_open_one(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        ids = [dispute.document_id for dispute in judging.adjudication.disputes]
        await pilot.press("1")
        assert screen.disputes.cursor == 1
        assert f"saved  decided 1 relevant: {judging.begin(ids[0])}" in text_of(app)
        assert "1 of 4 decided" in text_of(app)
        assert judging.events()[-1].channel == "interface"
        await pilot.press("down", "0", "0")  # the second one is left open, and comes when the last is decided
        assert screen.disputes.cursor == 1
        await pilot.press("1")
        assert "✓ all are decided" in text_of(app) and "4 of 4 decided" in text_of(app)
        assert decisions(judging) == [
            ("adjudicate", ids[place], grade, "") for place, grade in ((0, 1), (2, 0), (3, 0), (1, 1))
        ]
        assert aggregate(screen.session.view).disputed == ()
        await pilot.press("home", "0")  # to change a decision goes on to the line below
        assert screen.disputes.cursor == 1 and decisions(judging)[-1] == ("adjudicate", ids[0], 0, "")
        await pilot.press("g", "7")
        assert len(decisions(judging)) == 5

    app = judging.adjudicating()
    drive(app, steps)


def test_undo_redo_reason_and_note(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        ids = [dispute.document_id for dispute in judging.adjudication.disputes]
        await pilot.press("u")
        assert "nothing to undo" in text_of(app)  # what kim once judged stays
        await pilot.press("r", "1", *"as 1.2 says", "enter", "u")
        assert screen.disputes.cursor == 0 and "0 of 4 decided" in text_of(app)
        await pilot.press("U")
        assert "as 1.2 says" in text_of(app) and "decided by kim" in text_of(app)
        await pilot.press("g", "n", *"odd 1", "enter")
        assert "✎ odd 1" in text_of(app)
        assert decisions(judging) == [
            ("skip", ids[0], None, ""),
            ("adjudicate", ids[0], 1, "as 1.2 says"),
            ("retract", ids[0], None, ""),
            ("adjudicate", ids[0], 1, "as 1.2 says"),
            ("note", ids[1], None, "odd 1"),
        ]
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+y", "r", "escape", "r", "0", "escape", "n", "escape")
        assert [action for action, *_ in decisions(judging)][5:] == ["retract", "retract", "adjudicate"]

    judging.app()
    topic = judging.judging.topics[0]
    judging.session("kim").skip(SeenDocument(topic, judging.judging.order(topic).documents[0]))
    app = judging.adjudicating()
    drive(app, steps)


def test_everybodys_opinion_is_shown_and_models_as_such(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        shown = text_of(app)
        assert "ann  1 relevant  a person" in shown and "by definition" in shown and "interface, 20" in shown
        assert "eve  can't tell  a person" in shown and "needs the whole page" in shown
        assert "bot" not in shown
        topic = screen.run_pages.topic(judging.adjudication.disputes[0].topic_id)
        assert topic.text.splitlines()[0][:30] in shown
        content = screen.query_one("#document").text  # type: ignore[attr-defined]
        assert any("match" in str(span.style) for span in content.spans)

    app = judging.adjudicating()
    drive(app, steps)


def test_a_model_is_decided_on_only_if_it_is_named(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert len(judging.adjudication.disputes) == 2
        shown = text_of(app)
        assert "bot  1 relevant   a model" in shown and "cosine 0.83" in shown

    app = judging.adjudicating(("bot", "ben"))
    view = judging.adjudication.session.view
    assert len(disputes(view)) == 4
    assert {dispute.document_id for dispute in disputes(view, Aggregation(annotators=["bot", "ann"]))} == {
        dispute.document_id for dispute in judging.adjudication.disputes
    }
    drive(app, steps)


def test_moving_filtering_and_looks(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        def cursor() -> int:
            return screen.disputes.cursor

        places = []
        for key in ("down", "j", "up", "k", "end", "home", "pagedown", "pageup", "]", "[", "g"):
            await pilot.press(key)
            places.append(cursor())
        assert places == [1, 2, 1, 0, 3, 0, 3, 0, 1, 0, 1]
        document = judging.adjudication.disputes[3].document_id
        topic = judging.adjudication.disputes[3].topic_id
        await pilot.press("f", *f"{topic} {document}", "enter")
        assert screen.dispute == judging.adjudication.disputes[3] and "4 decided · 1 shown" in text_of(app)
        await pilot.press("0")
        assert "✓ all shown are decided" in text_of(app)
        await pilot.press("escape")
        assert screen.disputes.count == 4 and cursor() == 3
        await pilot.press("f", *"zzz", "enter", "0", "n", "r", "g", "]")
        assert "No disagreement to decide" in text_of(app) and len(decisions(judging)) == 1
        await pilot.press("f", "escape")
        assert screen.disputes.has_focus
        panes = []
        for key in ("tab", "tab", "tab", "tab", "shift+tab"):
            await pilot.press(key)
            panes.append(screen.focused.id if screen.focused else None)
        assert panes == ["opinions", "topic", "document", "disputes", "document"]
        for key in ("right", "ctrl+d", "left", "ctrl+u", "down", "home"):
            await pilot.press(key)
        await pilot.press("d")
        assert app.theme == "searchapp-light"
        await pilot.press("d", "m")
        assert screen._notation.form is Form.rendered and app.theme == "searchapp-ansi-dark"
        await pilot.press("m", "question_mark")
        assert "Next undecided disagreement" in text_of(app) and "Select" not in text_of(app)
        await pilot.press("escape", "q")

    app = judging.adjudicating()
    drive(app, steps)


def test_the_mouse_does_what_keys_do_and_a_small_terminal_has_room(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        for name in ("disputes", "opinions", "topic", "document"):
            assert screen.query_one(f"#{name}").region.area
        await pilot.click("#disputes", offset=(5, 3))
        assert screen.disputes.cursor == 2
        await pilot.click("#grades", offset=(2, 0))
        assert [one[2] for one in decisions(judging)] == [0]
        await pilot.click("#keys", offset=(2, 0))
        assert decisions(judging)[-1][0] == "retract"
        await pilot.resize_terminal(20, 6)
        await pilot.resize_terminal(300, 90)
        await pilot.press("1")
        assert len(decisions(judging)) == 3

    drive(judging.adjudicating(), steps, size=(80, 24))


def test_keys_are_remapped_in_the_settings_file_of_judging(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("l", "1", "z")
        assert [one[0] for one in decisions(judging)] == ["adjudicate", "retract"]
        assert app.theme == "searchapp-light"

    text = '[judge]\ntheme = "light"\n[judge.keys]\ngrade_1 = "l"\nundo = "z"\n'
    (judging.home / "settings.toml").write_text(text)
    app = judging.adjudicating()
    drive(app, steps)


def test_what_others_decide_meanwhile_is_taken_in(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("down")
        second = screen.dispute
        assert second is not None
        first = judging.adjudication.disputes[0]
        judging.session("ben").grade([SeenDocument(*first.key)], 1)  # who no longer disagrees
        judging.session("lea").adjudicate(SeenDocument(*second.key), 1, "seen")
        screen.control.refresh()
        await settled(pilot)
        assert screen.dispute == second and "decided by lea" in text_of(app)
        assert "1 of 3 decided" in text_of(app)

    app = judging.adjudicating()
    drive(app, steps)


def test_a_decision_that_can_not_be_saved_says_so(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(JudgmentLog, "append", full)
            await pilot.press("1", "q")
            assert "1 judgment NOT SAVED, retrying" in text_of(app) and "Try again" in text_of(app)
            await pilot.press("escape")
        screen.control.refresh()
        assert "all waiting judgments" in text_of(app) and len(decisions(judging)) == 1

    def full(*_: object) -> int:
        raise NotSaved("the disk is full")

    app = judging.adjudicating()
    drive(app, steps)


def test_every_action_of_the_screen_does_something_and_is_documented(judging: Judging) -> None:
    screen = judging.adjudicating().work
    assert isinstance(screen, AdjudicateScreen)
    assert {*OTHER, *SAME} <= {action.name for action in KEY_ACTIONS}
    named = {action.name for action in screen.keys.actions if not action.name.startswith("grade_")}
    assert named == {*OTHER, *SAME}
    text = (Path(__file__).parents[2] / "docs" / "use" / "judge.md").read_text(encoding="utf-8")
    assert all(about in text for about, _word in OTHER.values())


def talk(judging: Judging, *lines: str, pages: Pages | None = None) -> str:
    out = io.StringIO()
    judging.adjudicating()
    AdjudicatePrompts(
        judging.adjudication, pages or judging.run_pages, "title", typing(lines, out), out
    ).converse()
    return out.getvalue()


def test_prompts_decide_too(judging: Judging) -> None:
    shown = talk(
        judging, "1 as it says", "u", "redo", "", "n odd", "+", "-", "# 4", "0", "m", "9", "#9", "?", "fly"
    )
    ids = [dispute.document_id for dispute in judging.adjudication.disputes]
    assert decisions(judging) == [
        ("adjudicate", ids[0], 1, "as it says"),
        ("retract", ids[0], None, ""),
        ("adjudicate", ids[0], 1, "as it says"),
        ("note", ids[1], None, "odd"),
        ("adjudicate", ids[3], 0, ""),
    ]
    for part in (
        "ann, a person: 1 relevant: by definition",
        "eve, a person: can't tell: needs the whole page",
        f"saved. decided 1 relevant: {judging.begin(ids[0])}",
        "decided by kim: 1 relevant: as it says",
        "your note: odd",
        "unknown grade 9: nothing was saved",
        "no disagreement has this number",
        "unknown command 'fly'",
        "next undecided disagreement",
    ):
        assert part in shown


def test_prompts_work_without_topics_and_documents(judging: Judging) -> None:
    judging.app()
    shown = talk(judging, "1", "1", "1", "1", pages=Pages(judging.run_pages.task, None, {}))
    assert "not in the index" in shown and "every disagreement is decided: q leaves" in shown
    assert [action for action, *_ in decisions(judging)] == [Action.adjudicate] * 4
