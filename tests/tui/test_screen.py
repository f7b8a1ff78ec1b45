"""The judging screen, driven by keys and the mouse."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tui.judge.panes import Finder
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.widgets import TextPane
from tests.tui.conftest import (
    TIMEOUT_SECONDS,
    JudgingHarness,
    drive,
    fail_to_save,
    question,
    screen_text,
    wait_until_idle,
)

P = Pilot[None]


def saved_actions(judging: JudgingHarness) -> list[tuple[str, int | None]]:
    return [(event.action.value, event.grade) for event in judging.events()]


def document_text(screen: JudgeScreen) -> str:
    """Return the text in the pane of the document."""
    return screen.query_one("#document", TextPane).text.plain


def test_one_key_grades_saves_and_moves_on(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first = screen.document_id
        await pilot.press("1")
        assert screen.ranking.cursor == 1 and screen.document_id != first
        (event,) = judging.events()
        assert (event.document_id, event.grade, event.rank, event.annotator) == (first, 1, 1, "ann")
        assert first is not None and f"saved  1 relevant: {judging.label(first)}" in screen_text(pilot)
        assert f"Document {screen.document_id}" in screen_text(pilot)

    drive(judging.app(), steps)


def test_skip_and_cannot_tell_are_not_grades(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("s", "x", "0")
        assert saved_actions(judging) == [("skip", None), ("cant_tell", None), ("grade", 0)]
        assert screen.ranking.cursor == 3
        # The search for the next unjudged document wraps around to the skipped one.
        await pilot.press("n", *["end"], "n")
        assert screen.ranking.cursor == 0

    drive(judging.app(), steps)


def test_undo_and_redo_go_back_to_the_document(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "1", "u", "u")
        assert screen.ranking.cursor == 1
        assert [action for action, _grade in saved_actions(judging)] == ["grade"] * 3 + ["retract"] * 2
        await pilot.press("U")
        assert saved_actions(judging)[-1] == ("grade", 0)
        await pilot.press("u", "u", "u")
        assert "nothing to undo" in screen_text(pilot)
        assert judging.own_session.judged(screen.topic_id) == 0

    drive(judging.app(), steps)


def test_a_grade_can_be_changed_later(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "up", "up", "0")
        assert screen.ranking.cursor == 1  # a change moves to the next line, judged or not
        opinions = [
            judging.own_session.opinion(screen.topic_id, document)
            for document in screen.ranking.documents[:2]
        ]
        assert [opinion.grade for opinion in opinions if opinion] == [0, 1]

    drive(judging.app(), steps)


def test_several_documents_are_graded_after_confirmation(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("space", "down", "shift+down", "shift+down", "0")
        assert "Grade 4 documents 0 not relevant?" in screen_text(pilot)
        await pilot.press("a")
        assert judging.events() == []
        await pilot.press("0", "y")
        ids = [event.document_id for event in judging.events()]
        assert ids == [screen.ranking.documents[position] for position in (0, 2, 3, 4)]
        await pilot.press("u")
        assert judging.own_session.judged(screen.topic_id) == 0  # one action, one undo

    drive(judging.app(), steps)


def test_notes_and_reasons_go_into_the_log(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("a", *"odd", "enter")
        await pilot.press("R", "1", *"why not", "enter")
        events = judging.events()
        assert [(event.action, event.text, event.grade) for event in events] == [
            (Action.note, "odd", None),
            (Action.grade, "why not", 1),
        ]
        await pilot.press("R", "escape", "a", "escape", "R", "x", "escape")
        assert len(judging.events()) == 2
        await pilot.press("up")
        assert "✎ odd" in screen_text(pilot)

    drive(judging.app(), steps)


def test_a_note_after_a_grade_belongs_to_the_graded_document_until_the_cursor_moves(
    judging: JudgingHarness,
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first, second = screen.ranking.documents[:2]
        await pilot.press("1", "a")
        assert question(pilot).startswith(f"Note on {first}, rank 1: ")
        await pilot.press("escape", "down", "up", "a")
        assert question(pilot).startswith(f"Note on {second}, rank 2: ")

    drive(judging.app(), steps)


@pytest.mark.parametrize(
    "keys", [(), ("a",), ("question_mark",), ("i", "1"), ("ctrl+p",), ("f",), ("slash", "x")]
)
def test_ctrl_q_leaves_from_dialogs_and_input_lines(judging: JudgingHarness, keys: tuple[str, ...]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press(*keys)
        await pilot.press("ctrl+q")
        assert pilot.app._exit

    drive(judging.app(), steps)
    assert judging.events() == []


def test_judging_goes_through_all_topics(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first = screen.topic_id
        await pilot.press("0", "1", "0")
        assert "topic done: } goes on" in screen_text(pilot)
        await pilot.press("}")
        assert screen.topic_id != first
        await pilot.press("[")
        assert screen.topic_id == first
        for _ in range(len(judging.own_session.topics)):
            await pilot.press("}", "1", "1", "1")
        await pilot.press("}")
        assert "every document of every topic is judged" in screen_text(pilot)

    drive(judging.app(depth=3), steps)


def test_topics_are_filtered_and_opened(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic = judging.own_session.topics[-1]
        await pilot.press("f", *topic, "enter")
        assert len(screen.topics.indexes) == 1
        await pilot.press("enter")
        assert screen.topic_id == topic and screen.focused is screen.ranking
        await pilot.press("escape")
        assert len(screen.topics.indexes) == len(judging.own_session.topics)
        await pilot.press("f", *"zzzzz", "enter", "enter")  # there is no topic to open
        assert screen.topic_id == topic

    drive(judging.app(), steps)


def test_searching_within_a_topic(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("slash", *"Group", "enter")
        await wait_until_idle(pilot)
        texts = dict(zip(screen.ranking.documents, document_texts(screen), strict=True))
        positions = [position for position, text in enumerate(texts.values()) if "group" in text.lower()]
        assert sorted(screen.ranking.matching) == positions and len(positions) > 2
        seen = [screen.ranking.cursor]
        await pilot.press(".", ".")
        seen.append(screen.ranking.cursor)
        await pilot.press("shift+f3")
        seen.append(screen.ranking.cursor)
        assert set(seen) <= set(positions) and seen[1] > seen[2] >= seen[0]
        await pilot.press("escape")
        assert not screen.ranking.matching

    def document_texts(screen: JudgeScreen) -> list[str]:
        return screen.run_pages.texts(screen.ranking.documents)

    drive(judging.app(), steps)


def test_jumping_to_a_document_by_its_id(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.ranking.documents[40]
        await pilot.press("i", *document, "enter")
        assert screen.document_id == document
        await pilot.press("i", *"nobody", "enter")
        assert "this topic has no document nobody" in screen_text(pilot)

    drive(judging.app(), steps)


def test_the_mouse_does_what_keys_do(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.click("#ranking", offset=(10, 5))  # below border and heads
        assert screen.ranking.cursor == 3
        await pilot.click("#grades", offset=(2, 0))
        assert saved_actions(judging) == [("grade", 0)]
        await pilot.click("#topics", offset=(10, 4))
        assert screen.topic_index == 2
        await pilot.click("#keys", offset=(2, 0))
        assert saved_actions(judging)[-1] == ("retract", None)

    drive(judging.app(), steps)


def test_latex_is_shown_as_unicode_mathematics_and_back(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = next(
            document for document in screen.ranking.documents if "\\" in screen.run_pages.texts([document])[0]
        )
        await pilot.press("i", *document, "enter")
        rendered = document_text(screen)
        await pilot.press("m")
        assert "'''normal''' {{iff}} $g N g^{-1} = N$" in document_text(screen)
        await pilot.press("m")
        written = document_text(screen)
        assert "$" in written and "$" not in rendered and "'''" not in written
        await pilot.press("m")
        assert document_text(screen) == rendered

    drive(judging.app(), steps)


def test_matched_terms_are_highlighted(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.query_one("#document", TextPane).text
        marked = {
            document.plain[span.start : span.end].lower()
            for span in document.spans
            if "match" in str(span.style)
        }
        topic = screen.run_pages.topic(screen.topic_id).text.lower()
        assert any(word in topic for word in marked)

    drive(judging.app(), steps)


def test_blind_judging_shows_no_ranks_scores_or_others(judging: JudgingHarness) -> None:
    judging.app()
    topic = judging.own_session.topics[0]
    documents = judging.own_session.order(topic).documents
    judging.session("ben").grade([SeenDocument(topic, document) for document in documents], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert set(screen.ranking.documents) == set(documents) and screen.ranking.documents != documents
        text = screen_text(pilot)
        assert "rank " not in text and "ben" not in text and "AP" not in text
        await pilot.press("1")
        event = judging.events()[-1]
        assert event.run.endswith("shuffled with seed 7")
        assert event.rank == documents.index(event.document_id) + 1

    drive(judging.app(seed=7), steps)


def test_pools_and_assignments_show_no_ranks_scores_or_measures_but_keep_their_order(
    judging: JudgingHarness,
) -> None:
    judging.app()
    topic = judging.own_session.topics[0]
    documents = judging.own_session.order(topic).documents
    judging.session("ben").grade([SeenDocument(topic, documents[0])], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert screen.ranking.documents == documents
        text = screen_text(pilot)
        assert "hidden in pools and assignments" in text and "Documents" in text and " blind " not in text
        await pilot.press("1", "up")
        text = screen_text(pilot)
        assert "rank " not in text and "AP" not in text and "ben  1 relevant" in text
        assert judging.events()[-1].rank == 1

    drive(judging.app(hide_ranks=True), steps)


def test_grades_of_others_are_hidden_until_the_own_grade_is_given(judging: JudgingHarness) -> None:
    app = judging.app()
    first = SeenDocument(
        judging.own_session.topics[0], judging.own_session.order(judging.own_session.topics[0]).documents[0]
    )
    judging.session("ben").grade([first], 1, "by definition")
    Session(judging.log, "nlps", Author("bot", Kind.model)).grade([first], 0)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        screen.control.refresh()
        await wait_until_idle(pilot)
        text = screen_text(pilot)
        assert "2 judgments by ben and bot arrived" in text
        assert "by definition" not in text and "(a model)" not in text
        await pilot.press("s", "up", "a", *"odd", "enter")
        assert "by definition" not in screen_text(pilot)  # a skip or a note is not a grade
        await pilot.press("0", "up")
        text = screen_text(pilot)
        assert "ben  1 relevant: by definition" in text and "bot  0 not relevant (a model)" in text
        await pilot.press("1", "up", "u")
        assert [
            (event.action.value, event.saw_others) for event in judging.events() if event.annotator == "ann"
        ] == [
            ("skip", False),
            ("note", False),
            ("grade", False),
            ("grade", True),
            ("retract", None),
        ]

    drive(app, steps)


def test_grades_of_others_can_always_be_shown(judging: JudgingHarness) -> None:
    judging.app()
    first = judging.own_session.order(judging.own_session.topics[0]).documents[0]
    judging.session("ben").grade([SeenDocument(judging.own_session.topics[0], first)], 1, "by definition")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "ben  1 relevant: by definition" in screen_text(pilot)
        await pilot.press("1", "1")
        assert [event.saw_others for event in judging.events()[1:]] == [True, False]

    drive(judging.app(show_others=True), steps)


def test_scores_are_updated_by_every_grade(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "no grades yet" in screen_text(pilot)
        await pilot.press("1", "0", "1")
        assert "AP 0.833" in screen_text(pilot) and "Judged@10 0.300" in screen_text(pilot)
        assert "3/69" in screen_text(pilot) and "95.7% unjudged" in screen_text(pilot)
        await pilot.press("u")
        assert "AP 1.000" in screen_text(pilot)

    drive(judging.app(), steps)


def test_an_unsaved_grade_is_reported_and_saved_later(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(JudgmentLog, "append", fail_to_save)
            await pilot.press("1", "0")
            assert "2 judgments NOT SAVED" in screen_text(pilot) and "the disk is full" in screen_text(pilot)
            assert "✓ saved" not in screen_text(pilot)
            await pilot.press("q")
            assert "2 judgments are not saved" in screen_text(pilot)
            await pilot.press("t")
            assert "2 judgments are not saved" in screen_text(pilot)
            await pilot.press("escape")
        screen.control.refresh()
        await pilot.pause()
        assert "all waiting judgments" in screen_text(pilot)
        assert saved_actions(judging) == [("grade", 1), ("grade", 0)]

    drive(judging.app(), steps)


def test_unsaved_judgments_can_be_written_to_a_file_on_leaving(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        monkeypatch.setattr(JudgmentLog, "append", fail_to_save)
        await pilot.press("1", "q", "w")

    drive(judging.app(), steps)
    (file,) = tmp_path.glob("searchapp-judgments-*.jsonl")
    assert '"grade": 1' in file.read_text()


def test_help_lists_every_key(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("question_mark")
        text = " ".join(str(widget.render()) for widget in app.screen.query(Static))
        for action in screen.keys.actions:
            assert action.about in text
            assert screen.keys.shown(action.name) in text
        await pilot.press("pagedown", "end", "escape")
        assert app.screen is screen

    app = judging.app()
    drive(app, steps)


def test_keys_of_the_settings_file_work(judging: JudgingHarness) -> None:
    (judging.home / "settings.toml").write_text(
        '[judge]\ntheme = "light"\n[judge.keys]\ngrade_1 = ["y"]\nskip = "1"\n'
    )

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("y", "1")
        assert saved_actions(judging) == [("grade", 1), ("skip", None)]
        assert app.theme == "searchapp-light"
        await pilot.press("d")
        assert app.theme == "searchapp-ansi-dark"

    app = judging.app()
    drive(app, steps)


def test_a_narrow_terminal_shows_topics_on_demand(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        def seen() -> list[str]:
            panes = ("topics", "ranking", "topic", "document")
            return [name for name in panes if screen.query_one(f"#{name}").region.area]

        assert seen() == ["ranking", "topic", "document"]
        await pilot.press("t")
        assert seen() == ["topics"]
        await pilot.press("down", "enter")
        assert screen.topic_index == 1 and seen() == ["ranking", "topic", "document"]
        await pilot.press("f")
        assert screen.query_one("#filter").has_focus
        await pilot.press("escape")
        assert screen.ranking.has_focus

    drive(judging.app(), steps, size=(80, 24))


@pytest.mark.parametrize("size", [(80, 24), (20, 6), (300, 90)])
def test_the_screen_works_in_any_size(judging: JudgingHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "t", "down", "t", "tab", "tab", "down", "pagedown", "end", "home", "shift+tab")
        await pilot.resize_terminal(100, 30)
        await pilot.press("0")
        assert len(judging.events()) == 2

    drive(judging.app(), steps, size=size)


def test_matches_and_cursor_are_visible_without_colours(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1")
        segments = [segment for line in screen._compositor.render_strips() for segment in line]
        assert any("▶" in segment.text for segment in segments)
        assert any(segment.style and segment.style.underline for segment in segments)

    drive(judging.app(), steps)


def test_all_grades_of_a_task_have_keys_and_labels(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("6", "5", "0", "7")
        assert saved_actions(judging) == [("grade", 6), ("grade", 5), ("grade", 0)]
        text = document_text(screen)
        assert "table" in text  # the facts come from tables

    drive(judging.app("explanation-2021"), steps)


def test_the_line_of_keys_has_every_grade_in_a_small_terminal(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        shown = "\n".join(screen_text(pilot).splitlines()[-3:-1])
        assert all(f" {grade} " in shown for grade in range(7)) and " 6 most…" in shown

    drive(judging.app("explanation-2021"), steps, (40, 15))


def test_a_sentence_is_shown_with_its_neighbours(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        debate = screen.topic_id
        order = judging.own_session.order(debate)
        await pilot.press("i", *f"{debate}:5", "enter")
        text = document_text(screen)
        texts = screen.run_pages.texts([f"{debate}:{line}" for line in (4, 5, 6)])
        assert f"{debate}:5" in order.places
        assert text.index(texts[0]) < text.index(texts[1]) < text.index(texts[2])

    drive(judging.app("checkthat"), steps)


def test_keys_without_pauses_are_handled_in_order(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        ids = screen.ranking.documents
        keys = ["i", *ids[30], "enter", "1", "a", *"a 1 b", "enter", "i", *ids[0], "enter", "x"]
        keys += ["R", "0", *"10", "enter", "slash", *"group 1", "enter", "u", "f", "0", "escape", "s"]
        for key in keys:  # without waiting for any of them
            character = {"space": " ", "slash": "/"}.get(key, key)
            screen.app.post_message(events.Key(key, character if len(character) == 1 else None))
        await wait_until_idle(pilot)
        await pilot.pause()
        log = [(event.action.value, event.document_id, event.grade, event.text) for event in judging.events()]
        assert log[0] == ("grade", ids[30], 1, "")
        assert log[1] == (
            "note",
            ids[30],
            None,
            "a 1 b",
        )  # a note after a grade belongs to the graded document
        assert log[2] == ("cant_tell", ids[0], None, "")
        assert log[3] == ("grade", ids[1], 0, "10")
        assert log[4][0] == "retract" and log[5] == ("skip", ids[1], None, "")
        assert len(log) == 6

    drive(judging.app(), steps)


def test_keys_during_a_search_continue_from_its_result(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, search = threading.Event(), Finder._search

    def search_late(finder: Finder, documents: Sequence[str], words: Sequence[str]) -> list[int]:
        assert gate.wait(TIMEOUT_SECONDS)
        return search(finder, documents, words)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("slash", *"group", "enter")
        await wait_until_idle(pilot)
        await pilot.press(".", ".")
        expected, text = screen.ranking.cursor, screen_text(pilot).splitlines()[0]
        assert expected and "of" in text
        await pilot.press("escape", "home")
        monkeypatch.setattr(Finder, "_search", search_late)
        await pilot.press("slash", "ctrl+u", *"group", "enter", ".", ".")
        assert "searching …" in screen_text(pilot) and screen.ranking.cursor == 0
        gate.set()
        await wait_until_idle(pilot)
        assert screen.ranking.cursor == expected and screen_text(pilot).splitlines()[0] == text
        gate.clear()
        await pilot.press("slash", "ctrl+u", *"group", "enter", "]")
        assert "searching …" not in screen_text(pilot)  # the result is discarded
        gate.set()
        await wait_until_idle(pilot)

    drive(judging.app(), steps)
