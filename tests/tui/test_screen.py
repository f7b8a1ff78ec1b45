"""The judging screen, driven by keys and the mouse."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tui.judge.panes import Finder
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import PATIENCE_SECONDS, Judging, drive, settled, text_of

P = Pilot[None]


def said(judging: Judging) -> list[tuple[str, int | None]]:
    return [(event.action.value, event.grade) for event in judging.events()]


def test_one_key_grades_saves_and_moves_on(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first = screen.document_id
        await pilot.press("1")
        assert screen.ranking.cursor == 1 and screen.document_id != first
        (event,) = judging.events()
        assert (event.document_id, event.grade, event.rank, event.annotator) == (first, 1, 1, "ann")
        assert first is not None and f"saved  1 relevant: {judging.begin(first)}" in text_of(app)
        assert f"Document {screen.document_id}" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_skipping_and_not_knowing_are_no_grades(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("s", "x", "0")
        assert said(judging) == [("skip", None), ("cant_tell", None), ("grade", 0)]
        assert screen.ranking.cursor == 3
        await pilot.press("g", *["end"], "g")  # from the end it starts again: what was skipped still waits
        assert screen.ranking.cursor == 0

    drive(judging.app(), steps)


def test_undo_and_redo_go_back_to_the_document(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "1", "u", "u")
        assert screen.ranking.cursor == 1
        assert [action for action, _grade in said(judging)] == ["grade"] * 3 + ["retract"] * 2
        await pilot.press("U")
        assert said(judging)[-1] == ("grade", 0)
        await pilot.press("u", "u", "u")
        assert "nothing to undo" in text_of(app)
        assert judging.judging.judged(screen.topic_id) == 0

    app = judging.app()
    drive(app, steps)


def test_a_grade_is_changed_later(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "up", "up", "0")
        assert screen.ranking.cursor == 1  # from one that was judged to the one below it
        opinions = [judging.judging.opinion(screen.topic_id, one) for one in screen.ranking.documents[:2]]
        assert [opinion.grade for opinion in opinions if opinion] == [0, 1]

    drive(judging.app(), steps)


def test_several_documents_are_graded_after_a_question(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("space", "down", "shift+down", "shift+down", "0")
        assert "Grade 4 documents 0 not relevant?" in text_of(app)
        await pilot.press("n")
        assert judging.events() == []
        await pilot.press("0", "y")
        ids = [event.document_id for event in judging.events()]
        assert ids == [screen.ranking.documents[place] for place in (0, 2, 3, 4)]
        await pilot.press("u")
        assert judging.judging.judged(screen.topic_id) == 0  # one action, one undo

    app = judging.app()
    drive(app, steps)


def test_notes_and_reasons_go_into_the_log(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("n", *"odd", "enter")
        await pilot.press("r", "1", *"why not", "enter")
        events = judging.events()
        assert [(event.action, event.text, event.grade) for event in events] == [
            (Action.note, "odd", None),
            (Action.grade, "why not", 1),
        ]
        await pilot.press("r", "escape", "n", "escape", "r", "x", "escape")
        assert len(judging.events()) == 2
        await pilot.press("up")
        assert "✎ odd" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_graded_topics_are_gone_through_to_the_end(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first = screen.topic_id
        await pilot.press("0", "1", "0")
        assert "topic done: G goes on" in text_of(app)
        await pilot.press("G")
        assert screen.topic_id != first
        await pilot.press("[")
        assert screen.topic_id == first
        for _ in range(len(judging.judging.topics)):
            await pilot.press("G", "1", "1", "1")
        await pilot.press("G")
        assert "every document of every topic is judged" in text_of(app)

    app = judging.app(depth=3)
    drive(app, steps)


def test_topics_are_filtered_and_opened(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic = judging.judging.topics[-1]
        await pilot.press("f", *topic, "enter")
        assert len(screen.topics.indexes) == 1
        await pilot.press("enter")
        assert screen.topic_id == topic and screen.focused is screen.ranking
        await pilot.press("escape")
        assert len(screen.topics.indexes) == len(judging.judging.topics)
        await pilot.press("f", *"zzzzz", "enter", "enter")  # nothing is left to open
        assert screen.topic_id == topic

    drive(judging.app(), steps)


def test_searching_within_a_topic(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("slash", *"Group", "enter")
        await settled(pilot)
        texts = dict(zip(screen.ranking.documents, app_material(screen), strict=True))
        matching = [place for place, one in enumerate(texts.values()) if "group" in one.lower()]
        assert sorted(screen.ranking.matching) == matching and len(matching) > 2
        seen = [screen.ranking.cursor]
        await pilot.press(".", ".")
        seen.append(screen.ranking.cursor)
        await pilot.press("comma")
        seen.append(screen.ranking.cursor)
        assert set(seen) <= set(matching) and seen[1] > seen[2] >= seen[0]
        await pilot.press("escape")
        assert not screen.ranking.matching

    def app_material(screen: JudgeScreen) -> list[str]:
        return screen.run_pages.texts(screen.ranking.documents)

    drive(judging.app(), steps)


def test_jumping_to_a_document_by_its_id(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        wanted = screen.ranking.documents[40]
        await pilot.press("i", *wanted, "enter")
        assert screen.document_id == wanted
        await pilot.press("i", *"nobody", "enter")
        assert "this topic has no document nobody" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_the_mouse_does_what_keys_do(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.click("#ranking", offset=(10, 4))
        assert screen.ranking.cursor == 3
        await pilot.click("#grades", offset=(2, 0))
        assert said(judging) == [("grade", 0)]
        await pilot.click("#topics", offset=(10, 3))
        assert screen.topic_index == 2
        await pilot.click("#keys", offset=(2, 0))
        assert said(judging)[-1] == ("retract", None)

    drive(judging.app(), steps)


def test_latex_is_shown_as_unicode_mathematics_and_back(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = next(one for one in screen.ranking.documents if "\\" in screen.run_pages.texts([one])[0])
        await pilot.press("i", *document, "enter")
        before = screen.query_one("#document").text.plain  # type: ignore[attr-defined]
        await pilot.press("m")
        after = screen.query_one("#document").text.plain  # type: ignore[attr-defined]
        assert "$" in before and "$" not in after and "'''" not in before
        await pilot.press("m")
        assert "'''normal''' {{iff}} $g N g^{-1} = N$" in screen.query_one("#document").text.plain  # type: ignore[attr-defined]
        await pilot.press("m")
        assert screen.query_one("#document").text.plain == before  # type: ignore[attr-defined]

    drive(judging.app(), steps)


def test_matched_terms_stand_out(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        content = screen.query_one("#document").text  # type: ignore[attr-defined]
        marked = {
            content.plain[span.start : span.end].lower()
            for span in content.spans
            if "match" in str(span.style)
        }
        topic = screen.run_pages.topic(screen.topic_id).text.lower()
        assert any(word in topic for word in marked)

    drive(judging.app(), steps)


def test_blind_judging_shows_no_ranks_scores_or_others(judging: Judging) -> None:
    judging.app()
    topic = judging.judging.topics[0]
    documents = judging.judging.order(topic).documents
    judging.session("ben").grade([SeenDocument(topic, one) for one in documents], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert set(screen.ranking.documents) == set(documents) and screen.ranking.documents != documents
        shown = text_of(app)
        assert "rank " not in shown and "ben" not in shown and "AP" not in shown
        await pilot.press("1")
        event = judging.events()[-1]
        assert event.run.endswith("shuffled with seed 7")
        assert event.rank == documents.index(event.document_id) + 1

    app = judging.app(seed=7)
    drive(app, steps)


def test_others_grades_are_hidden_until_ones_own_is_given(judging: Judging) -> None:
    app = judging.app()
    first = SeenDocument(
        judging.judging.topics[0], judging.judging.order(judging.judging.topics[0]).documents[0]
    )
    judging.session("ben").grade([first], 1, "by definition")
    Session(judging.log, "nlps", Author("bot", Kind.model)).grade([first], 0)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        screen.control.refresh()
        await settled(pilot)
        shown = text_of(app)
        assert "2 judgments by ben and bot arrived" in shown
        assert "by definition" not in shown and "(a model)" not in shown
        await pilot.press("s", "up", "n", *"odd", "enter")
        assert "by definition" not in text_of(app)  # neither is an opinion
        await pilot.press("0", "up")
        shown = text_of(app)
        assert "ben  1 relevant: by definition" in shown and "bot  0 not relevant (a model)" in shown
        await pilot.press("1", "up", "u")
        assert [(one.action.value, one.saw_others) for one in judging.events() if one.annotator == "ann"] == [
            ("skip", False),
            ("note", False),
            ("grade", False),
            ("grade", True),
            ("retract", None),
        ]

    drive(app, steps)


def test_others_are_shown_always_to_who_wants_to_see_them(judging: Judging) -> None:
    judging.app()
    first = judging.judging.order(judging.judging.topics[0]).documents[0]
    judging.session("ben").grade([SeenDocument(judging.judging.topics[0], first)], 1, "by definition")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "ben  1 relevant: by definition" in text_of(app)
        await pilot.press("1", "1")
        assert [one.saw_others for one in judging.events()[1:]] == [True, False]

    app = judging.app(show_others=True)
    drive(app, steps)


def test_the_scores_follow_every_grade(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "no grades yet" in text_of(app)
        await pilot.press("1", "0", "1")
        assert "AP 0.833" in text_of(app) and "Judged@10 0.300" in text_of(app)
        assert "3/69" in text_of(app) and "95.7% unjudged" in text_of(app)
        await pilot.press("u")
        assert "AP 1.000" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_what_cannot_be_saved_is_told_and_saved_later(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: JudgmentLog, events: Any) -> int:
        raise NotSaved("the disk is full: free some space")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(JudgmentLog, "append", full)
            await pilot.press("1", "0")
            assert "2 judgments NOT SAVED" in text_of(app) and "the disk is full" in text_of(app)
            assert "✓ saved" not in text_of(app)
            await pilot.press("q")
            assert "2 judgments are not saved" in text_of(app)
            await pilot.press("t")
            assert "2 judgments are not saved" in text_of(app)
            await pilot.press("escape")
        screen.control.refresh()
        await pilot.pause()
        assert "all waiting judgments" in text_of(app)
        assert said(judging) == [("grade", 1), ("grade", 0)]

    app = judging.app()
    drive(app, steps)


def test_leaving_with_unsaved_judgments_can_write_them_to_a_file(
    judging: Judging, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def locked(self: JudgmentLog, events: Any) -> int:
        raise NotSaved("in use by another process for too long")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        monkeypatch.setattr(JudgmentLog, "append", locked)
        await pilot.press("1", "q", "w")

    drive(judging.app(), steps)
    (file,) = tmp_path.glob("searchapp-judgments-*.jsonl")
    assert '"grade": 1' in file.read_text()


def test_help_lists_every_key(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("question_mark")
        from textual.widgets import Static

        shown = " ".join(str(one.render()) for one in app.screen.query(Static))
        for action in screen.keys.actions:
            assert action.about in shown
            assert screen.keys.shown(action.name) in shown
        await pilot.press("pagedown", "end", "escape")
        assert app.screen is screen

    app = judging.app()
    drive(app, steps)


def test_keys_of_the_settings_file_are_those_that_work(judging: Judging) -> None:
    (judging.home / "settings.toml").write_text(
        '[judge]\ntheme = "light"\n[judge.keys]\ngrade_1 = ["y"]\nskip = "1"\n'
    )

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("y", "1")
        assert said(judging) == [("grade", 1), ("skip", None)]
        assert app.theme == "searchapp-light"
        await pilot.press("d")
        assert app.theme == "searchapp-ansi-dark"

    app = judging.app()
    drive(app, steps)


def test_a_narrow_terminal_shows_topics_on_demand(judging: Judging) -> None:
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
def test_no_size_breaks_it(judging: Judging, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "t", "down", "t", "tab", "tab", "down", "pagedown", "end", "home", "shift+tab")
        await pilot.resize_terminal(100, 30)
        await pilot.press("0")
        assert len(judging.events()) == 2

    drive(judging.app(), steps, size=size)


def test_without_colours_matches_and_cursor_can_be_told(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1")
        segments = [segment for line in screen._compositor.render_strips() for segment in line]
        assert any("▶" in segment.text for segment in segments)
        assert any(segment.style and segment.style.underline for segment in segments)

    drive(judging.app(), steps)


def test_all_grades_of_a_task_have_keys_and_labels(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("6", "5", "0", "7")
        assert said(judging) == [("grade", 6), ("grade", 5), ("grade", 0)]
        text = screen.query_one("#document").text.plain  # type: ignore[attr-defined]
        assert "table" in text  # the facts come from tables

    drive(judging.app("explanation-2021"), steps)


def test_a_sentence_is_shown_among_its_neighbours(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        debate = screen.topic_id
        order = judging.judging.order(debate)
        await pilot.press("i", *f"{debate}:5", "enter")
        shown = screen.query_one("#document").text.plain  # type: ignore[attr-defined]
        texts = screen.run_pages.texts([f"{debate}:{line}" for line in (4, 5, 6)])
        assert f"{debate}:5" in order.places
        assert shown.index(texts[0]) < shown.index(texts[1]) < shown.index(texts[2])

    drive(judging.app("checkthat"), steps)


def test_keys_that_come_at_once_are_taken_in_their_order(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        ids = screen.ranking.documents
        typed = ["i", *ids[30], "enter", "1", "n", *"a 1 b", "enter", "i", *ids[0], "enter", "x"]
        typed += ["r", "0", *"10", "enter", "slash", *"group 1", "enter", "u", "f", "0", "escape", "s"]
        for key in typed:  # without waiting for any of them
            character = {"space": " ", "slash": "/"}.get(key, key)
            screen.app.post_message(events.Key(key, character if len(character) == 1 else None))
        await settled(pilot)
        await pilot.pause()
        log = [(one.action.value, one.document_id, one.grade, one.text) for one in judging.events()]
        assert log[0] == ("grade", ids[30], 1, "")
        assert log[1] == ("note", ids[31], None, "a 1 b")
        assert log[2] == ("cant_tell", ids[0], None, "")
        assert log[3] == ("grade", ids[1], 0, "10")
        assert log[4][0] == "retract" and log[5] == ("skip", ids[1], None, "")
        assert len(log) == 6

    drive(judging.app(), steps)


def test_keys_that_come_while_documents_are_searched_go_on_from_what_is_found(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, find = threading.Event(), Finder._search

    def find_late(finder: Finder, documents: Sequence[str], sought: Sequence[str]) -> list[int]:
        assert gate.wait(PATIENCE_SECONDS)
        return find(finder, documents, sought)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("slash", *"group", "enter")
        await settled(pilot)
        await pilot.press(".", ".")
        expected, shown = screen.ranking.cursor, text_of(app).splitlines()[0]
        assert expected and "of" in shown
        await pilot.press("escape", "home")
        monkeypatch.setattr(Finder, "_search", find_late)
        await pilot.press("slash", "ctrl+u", *"group", "enter", ".", ".")
        assert "searching …" in text_of(app) and screen.ranking.cursor == 0
        gate.set()
        await settled(pilot)
        assert screen.ranking.cursor == expected and text_of(app).splitlines()[0] == shown
        gate.clear()
        await pilot.press("slash", "ctrl+u", *"group", "enter", "]")
        assert "searching …" not in text_of(app)  # nobody will say what was found
        gate.set()
        await settled(pilot)

    app = judging.app()
    drive(app, steps)
