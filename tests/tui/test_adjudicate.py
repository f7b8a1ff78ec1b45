"""Adjudication on the screen and through prompts."""

from __future__ import annotations

import io

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.pages import Pages
from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.judgments import Aggregation, aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session, disputes
from searchapp.tasks import load
from searchapp.tui.adjudicate.prompts import AdjudicatePrompts
from searchapp.tui.adjudicate.screen import OTHER, SAME, AdjudicateScreen
from searchapp.tui.kit.content import Form
from searchapp.tui.kit.keys import KEY_ACTIONS
from tests.tui.conftest import (
    JudgingHarness,
    drive,
    fail_to_save,
    question,
    screen_text,
    typing,
    wait_until_idle,
)

P = Pilot[None]


def decisions(judging: JudgingHarness) -> list[tuple[str, str, int | None, str]]:
    """Return the actions of kim: action, document, grade, text."""
    return [
        (event.action.value, event.document_id, event.grade, event.text)
        for event in judging.events()
        if event.annotator == "kim"
    ]


def test_one_key_decides_saves_and_moves_to_the_next_undecided_document(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        ids = [dispute.document_id for dispute in judging.adjudication.disputes]
        await pilot.press("1")
        assert screen.disputes.cursor == 1
        assert f"saved  decided 1 relevant: {judging.label(ids[0])}" in screen_text(pilot)
        assert "1 of 4 decided" in screen_text(pilot)
        assert judging.events()[-1].channel == "interface"
        await pilot.press("down", "0", "0")  # leaves the second undecided, which follows the last one
        assert screen.disputes.cursor == 1
        await pilot.press("1")
        assert "✓ all are decided" in screen_text(pilot) and "4 of 4 decided" in screen_text(pilot)
        assert decisions(judging) == [
            ("adjudicate", ids[number], grade, "") for number, grade in ((0, 1), (2, 0), (3, 0), (1, 1))
        ]
        assert aggregate(screen.session.view).disputed == ()
        await pilot.press("home", "0")  # a changed decision moves to the next line
        assert screen.disputes.cursor == 1 and decisions(judging)[-1] == ("adjudicate", ids[0], 0, "")
        await pilot.press("n", "7")
        assert len(decisions(judging)) == 5

    drive(judging.adjudicating(), steps)


def test_undo_redo_reason_and_note(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        ids = [dispute.document_id for dispute in judging.adjudication.disputes]
        await pilot.press("u")
        assert "nothing to undo" in screen_text(pilot)  # an earlier judgment of kim stays
        await pilot.press("R", "1", *"as 1.2 says", "enter", "u")
        assert screen.disputes.cursor == 0 and "0 of 4 decided" in screen_text(pilot)
        await pilot.press("U")
        assert "as 1.2 says" in screen_text(pilot) and "decided by kim" in screen_text(pilot)
        await pilot.press("n", "a", *"odd 1", "enter")
        assert "✎ odd 1" in screen_text(pilot)
        await pilot.press("0", "a")
        assert question(pilot).startswith(f"Note on {ids[1]}: ")  # it follows the decision
        await pilot.press(*" or not", "enter", "u", "u")
        assert decisions(judging) == [
            ("skip", ids[0], None, ""),
            ("adjudicate", ids[0], 1, "as 1.2 says"),
            ("retract", ids[0], None, ""),
            ("adjudicate", ids[0], 1, "as 1.2 says"),
            ("note", ids[1], None, "odd 1"),
            ("adjudicate", ids[1], 0, ""),
            ("note", ids[1], None, "odd 1 or not"),
            ("retract", ids[1], None, ""),
            ("retract", ids[1], None, ""),
        ]
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+y", "R", "escape", "R", "0", "escape", "a", "escape")
        assert [action for action, *_ in decisions(judging)][9:] == ["retract", "retract", "adjudicate"]

    judging.app()
    topic = judging.own_session.topics[0]
    judging.session("kim").skip(SeenDocument(topic, judging.own_session.order(topic).documents[0]))
    drive(judging.adjudicating(), steps)


def test_opinions_are_shown_with_the_kind_of_annotator(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        text = screen_text(pilot)
        assert "ann  1 relevant  a person" in text and "by definition" in text and "interface, 20" in text
        assert "eve  can't tell  a person" in text and "needs the whole page" in text
        assert "bot" not in text
        topic = screen.run_pages.topic(judging.adjudication.disputes[0].topic_id)
        assert topic.text.splitlines()[0][:30] in text
        content = screen.query_one("#document").text  # type: ignore[attr-defined]
        assert any("match" in str(span.style) for span in content.spans)

    drive(judging.adjudicating(), steps)


def test_grades_of_models_count_only_if_they_are_named(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert len(judging.adjudication.disputes) == 2
        text = screen_text(pilot)
        assert "bot  1 relevant   a model" in text and "cosine 0.83" in text
        # A model comes after all people, whatever their names are.
        order = [
            text.index(words) for words in ("ben  0 not", "zoe  can't tell  a person", "bot  1 relevant")
        ]
        assert order == sorted(order)
        await pilot.resize_terminal(80, 24)
        await pilot.press("down")
        text = screen_text(pilot)
        assert "ben  0 not relevant  a person" in text and "bot  1 relevant   a model" in text

    app = judging.adjudicating(("bot", "ben"))
    judging.session("zoe").cant_tell(judging.adjudication.disputes[0].seen)
    judging.adjudication.refresh()
    view = judging.adjudication.session.view
    assert len(disputes(view)) == 4
    assert {dispute.document_id for dispute in disputes(view, Aggregation(annotators=["bot", "ann"]))} == {
        dispute.document_id for dispute in judging.adjudication.disputes
    }
    drive(app, steps)


def test_models_are_counted_and_reached_below_many_people_on_a_small_terminal(
    judging: JudgingHarness,
) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        text = screen_text(pilot)
        assert "Opinions of 6 people and 3 models" in text and "a model" not in text
        await pilot.press("tab", "end")
        await pilot.pause()
        text = screen_text(pilot)
        assert "qwen  0 not relevant   a model" in text and "other words" in text
        await pilot.press("home")
        await pilot.pause()
        assert "ann  1 relevant  a person" in screen_text(pilot)
        await pilot.press("shift+tab", "down")
        await pilot.pause()
        assert "─Opinions of 2 people─" in screen_text(pilot)

    app = judging.adjudicating()
    seen = judging.adjudication.disputes[0].seen
    for name in ("carl", "dora", "zoe"):
        judging.session(name).grade([seen], 1, "the same statement")
    for name in ("gpt", "llama", "qwen"):
        Session(judging.log, "nlps", Author(name, Kind.model)).grade([seen], 0, "other words")
    judging.adjudication.refresh()
    drive(app, steps)


def test_moving_filtering_focus_and_themes(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        def cursor() -> int:
            return screen.disputes.cursor

        cursors = []
        for key in ("down", "j", "up", "k", "end", "home", "pagedown", "pageup", "]", "[", "n"):
            await pilot.press(key)
            cursors.append(cursor())
        assert cursors == [1, 2, 1, 0, 3, 0, 3, 0, 1, 0, 1]
        document = judging.adjudication.disputes[3].document_id
        topic = judging.adjudication.disputes[3].topic_id
        await pilot.press("f", *f"{topic} {document}", "enter")
        assert screen.dispute == judging.adjudication.disputes[3]
        assert "4 decided · 1 shown" in screen_text(pilot)
        await pilot.press("0")
        assert "✓ all shown are decided" in screen_text(pilot)
        await pilot.press("escape")
        assert screen.disputes.count == 4 and cursor() == 3
        await pilot.press("f", *"zzz", "enter", "0", "a", "R", "n", "]")
        assert "No disagreement to decide" in screen_text(pilot) and len(decisions(judging)) == 1
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
        assert screen._notation.form is Form.stored and app.theme == "searchapp-ansi-dark"
        await pilot.press("m", "question_mark")
        assert "Next undecided disagreement" in screen_text(pilot) and "Select" not in screen_text(pilot)
        await pilot.press("escape", "q")

    app = judging.adjudicating()
    drive(app, steps)


def test_the_mouse_works_and_all_panes_fit_in_a_small_terminal(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        for name in ("disputes", "opinions", "topic", "document"):
            assert screen.query_one(f"#{name}").region.area
        await pilot.click("#disputes", offset=(5, 4))  # below border and heads
        assert screen.disputes.cursor == 2
        await pilot.click("#grades", offset=(2, 0))
        assert [decision[2] for decision in decisions(judging)] == [0]
        await pilot.click("#keys", offset=(2, 0))
        assert decisions(judging)[-1][0] == "retract"
        await pilot.resize_terminal(20, 6)
        await pilot.resize_terminal(300, 90)
        await pilot.press("1")
        assert len(decisions(judging)) == 3

    drive(judging.adjudicating(), steps, size=(80, 24))


def test_the_keys_of_judge_in_the_settings_file_apply(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("L", "1", "z")
        assert [decision[0] for decision in decisions(judging)] == ["adjudicate", "retract"]
        assert app.theme == "searchapp-light"

    text = '[judge]\ntheme = "light"\n[judge.keys]\ngrade_1 = "L"\nundo = "z"\n'
    (judging.home / "settings.toml").write_text(text)
    app = judging.adjudicating()
    drive(app, steps)


def test_decisions_of_others_are_shown(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("down")
        second = screen.dispute
        assert second is not None
        first = judging.adjudication.disputes[0]
        judging.session("ben").grade([SeenDocument(*first.key)], 1)  # ben agrees now
        judging.session("lea").adjudicate(SeenDocument(*second.key), 1, "seen")
        screen.control.refresh()
        await wait_until_idle(pilot)
        assert screen.dispute == second and "decided by lea" in screen_text(pilot)
        assert "1 of 3 decided" in screen_text(pilot)

    drive(judging.adjudicating(), steps)


def test_an_unsaved_decision_is_reported_and_saved_later(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(JudgmentLog, "append", fail_to_save)
            await pilot.press("1", "q")
            assert "1 judgment NOT SAVED, retrying" in screen_text(pilot)
            assert "Try again" in screen_text(pilot)
            await pilot.press("escape")
        screen.control.refresh()
        assert "all waiting judgments" in screen_text(pilot) and len(decisions(judging)) == 1

    drive(judging.adjudicating(), steps)


def test_the_screen_has_the_actions_of_its_tables(judging: JudgingHarness) -> None:
    screen = judging.adjudicating().main
    assert isinstance(screen, AdjudicateScreen)
    assert {*OTHER, *SAME} <= {action.name for action in KEY_ACTIONS}
    named = {action.name for action in screen.keys.actions if not action.name.startswith("grade_")}
    assert named == {*OTHER, *SAME}


def run_adjudication_prompts(judging: JudgingHarness, *lines: str, pages: Pages | None = None) -> str:
    out = io.StringIO()
    judging.adjudicating()
    AdjudicatePrompts(
        judging.adjudication, pages or judging.run_pages, "title", typing(lines, out), out
    ).converse()
    return out.getvalue()


def test_prompts_save_decisions(judging: JudgingHarness) -> None:
    text = run_adjudication_prompts(
        judging,
        "1 as it says",
        "u",
        "U",
        "a odd",
        "n",
        "a dull",
        "+",
        "-",
        "# 4",
        "0",
        "m",
        "9",
        "#9",
        "?",
        "fly",
    )
    ids = [dispute.document_id for dispute in judging.adjudication.disputes]
    assert decisions(judging) == [
        ("adjudicate", ids[0], 1, "as it says"),
        ("retract", ids[0], None, ""),
        ("adjudicate", ids[0], 1, "as it says"),
        ("note", ids[0], None, "odd"),
        ("note", ids[1], None, "dull"),
        ("adjudicate", ids[3], 0, ""),
    ]
    for part in (
        "ann, a person: 1 relevant: by definition",
        "eve, a person: can't tell: needs the whole page",
        f"saved. decided 1 relevant: {judging.label(ids[0], Form.written)}",
        "decided by kim: 1 relevant: as it says",
        "your note: dull",
        "unknown grade 9: nothing was saved",
        "no disagreement has this number",
        "unknown command 'fly'",
        "next undecided disagreement",
    ):
        assert part in text


def test_prompts_work_without_topics_and_documents(judging: JudgingHarness) -> None:
    judging.app()
    text = run_adjudication_prompts(
        judging, "1", "1", "1", "1", pages=Pages(judging.run_pages.task, None, {})
    )
    assert "not in the index" in text and "every disagreement is decided: q leaves" in text
    assert [action for action, *_ in decisions(judging)] == [Action.adjudicate] * 4


def test_a_key_shows_the_guidelines(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("H")
        assert "the task has no guidelines" in screen_text(pilot)
        screen.session.guidelines = read_guidelines(load("nlps").info.guidelines)
        await pilot.press("H")
        text = screen_text(pilot)
        assert "Guidelines of nlps" in text and "Premises of mathematical statements" in text
        assert "n = 2k" not in text
        await pilot.press("end")
        assert "n = 2k" in screen_text(pilot)
        await pilot.press("escape")
        assert "Guidelines of nlps" not in screen_text(pilot)

    drive(judging.adjudicating(), steps, size=(80, 24))
