"""The query line and the line below it: words that find nothing, suggestions, and long queries."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.app.inspection.pages import every_topic
from searchapp.app.runs import recent_runs
from searchapp.app.search import QueryNotes, SearchRequest, TaskSearcher
from searchapp.formats.trec import read_run
from searchapp.ranking.query_language import FieldFilter
from searchapp.runs import directory
from searchapp.tui.search import requests
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import TIMEOUT_SECONDS, drive, press, screen_text, wait_until
from tests.tui.search.conftest import SearchHarness, ids, press_and_wait, wait_until_answered

P = Pilot[None]


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "PAUSE_SECONDS", 0.01)


def note(screen: SearchScreen) -> str:
    return str(screen.note.render())


async def noted(pilot: P, screen: SearchScreen, *words: str) -> None:
    await wait_until(pilot, lambda: all(word in note(screen) for word in words))


def test_words_that_find_nothing_are_explained_below_the_query(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"let abelain")
        await noted(
            pilot,
            screen,
            "abelain: in no document. Did you mean abelian? Tab accepts",
            "'let' is a stop word",
        )
        assert screen.hits.count == 0
        # The part that is still true stays while the text is changed.
        monkeypatch.setattr(requests, "PAUSE_SECONDS", TIMEOUT_SECONDS)
        await press(pilot, "x")
        assert "'let' is a stop word" in note(screen) and "abelian" not in note(screen)
        await press_and_wait(pilot, screen, "ctrl+u", *"ring")
        assert "a phrase" in note(screen)

    drive(search_harness.app(), steps, (80, 24))


def test_short_lines_name_the_suggestion_and_its_key(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"let abelain rqqg")
        await noted(pilot, screen, "abelain → abelian? Tab accepts")
        # The document pane shows all notes.
        assert screen.reading._pane.text.plain.splitlines()[:3] == [
            "abelain: in no document. Did you mean abelian? Tab accepts",
            "rqqg: in no document",
            "'let' is a stop word",
        ]
        await press_and_wait(pilot, screen, "tab")
        assert screen.words.value == "let abelian rqqg" and screen.hits.count
        assert "in no document" not in screen.reading._pane.text.plain

    drive(search_harness.app(), steps, (40, 15))


def test_tab_accepts_each_suggestion_and_is_the_next_pane_without_one(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"abelain rnig field")
        await noted(pilot, screen, "abelian", "rnig")
        await press(pilot, "tab", "tab")  # at once, before the answer to the first
        assert screen.words.value == "abelian ring field" and screen.words.cursor_position == 12
        await wait_until_answered(pilot, screen)
        assert ids(screen) == [
            result.hit.document_id
            for result in screen.searcher.search(SearchRequest("abelian ring field", size=20))
        ]
        await wait_until(pilot, lambda: "a phrase" in note(screen))
        assert screen.words.has_focus
        await press(pilot, "tab")
        assert screen.hits.has_focus

    drive(search_harness.app(), steps)


def test_outside_of_the_query_tab_changes_the_pane(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"abelain ring")
        await noted(pilot, screen, "abelian")
        assert "Tab accepts" in note(screen)
        await press(pilot, "enter")
        await wait_until(pilot, lambda: "abelian?" in note(screen) and "accepts" not in note(screen))
        await press(pilot, "tab")
        assert screen.words.value == "abelain ring" and screen.focused.id == "document"  # type: ignore[union-attr]

    drive(search_harness.app(), steps)


def test_notes_do_not_delay_hits_and_late_ones_are_dropped(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer, began = threading.Event(), threading.Event()
    notes = TaskSearcher.notes

    def late(searcher: TaskSearcher, request: SearchRequest, total: int) -> QueryNotes:
        if request.text == "abelain":
            began.set()
            assert may_answer.wait(TIMEOUT_SECONDS)
        return notes(searcher, request, total)

    monkeypatch.setattr(TaskSearcher, "notes", late)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press(pilot, *"abelain")
        await wait_until(pilot, began.is_set)
        assert not screen.loader.is_waiting  # the ranking is already there
        begin = time.monotonic()
        await press(pilot, "ctrl+u", *"ring")
        await wait_until(pilot, lambda: not screen.loader.is_waiting)  # another thread overtakes
        assert time.monotonic() - begin < 5 and screen.hits.count > 0
        may_answer.set()
        await wait_until_answered(pilot, screen)
        await asyncio.sleep(0.05)
        assert "abelain" not in note(screen)

    drive(search_harness.app(), steps)


def test_filters_that_exclude_every_hit_are_named(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        count = screen.searcher.counts(SearchRequest("jobs")).total
        await noted(pilot, screen, f"{count} document", "without the filters", "speaker: NOBODY")

    drive(search_harness.app("checkthat", "jobs", filters=(FieldFilter("speaker", "NOBODY"),)), steps)


def test_pasted_lines_are_one_query(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        pilot.app.post_message(events.Paste("\ufeffpri\u00adme\r\n  num\u200bber \n\n\nfield\n"))
        await pilot.pause()
        await wait_until_answered(pilot, screen)
        assert screen.words.value == "prime number field"
        assert screen.loader.query.text == "prime number field"

    drive(search_harness.app(), steps)


LONG = "every group of prime order is cyclic and the kernel of a homomorphism is a normal subgroup " * 4


def test_the_query_grows_to_three_lines_and_shows_the_cursor(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        def lines() -> list[str]:
            return screen_text(pilot).splitlines()[1:4]

        await press_and_wait(pilot, screen, *"ring")
        assert screen.words.size.height == 1
        screen.words.paste(f" {LONG}end")
        await wait_until_answered(pilot, screen)
        await wait_until(pilot, lambda: screen.words.size.height == 3)
        shown = lines()
        assert shown[2].rstrip().endswith("end") and "ring" not in "".join(shown)
        assert screen.words.cursor_screen_offset.y == 3
        # No word is cut.
        words = set(screen.words.value.split())
        assert words >= {word for line in shown for word in line.strip(" ›").split()}
        await press(pilot, "home")
        assert lines()[0].startswith(" › ring every group")
        assert screen.words.cursor_screen_offset == (3, 1)
        await press_and_wait(pilot, screen, "ctrl+k")
        await wait_until(pilot, lambda: screen.words.size.height == 1)

    app = search_harness.app()
    drive(app, steps, (80, 24))


def test_an_error_in_an_upper_line_is_named_by_its_number(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.paste(f'"{LONG}')
        await wait_until_answered(pilot, screen)
        await wait_until(pilot, lambda: "▲ character 1: this quotation mark" in note(screen))
        screen.words.value = ""
        screen.words.paste(f'{LONG[:78]} "x')
        await wait_until_answered(pilot, screen)
        await wait_until(pilot, lambda: note(screen).strip().startswith("▲ this quotation mark"))
        column = screen_text(pilot).splitlines()[2].index('"x')
        assert note(screen).index("▲") + screen.note.left == column

    app = search_harness.app()
    drive(app, steps, (80, 24))


def test_a_click_puts_the_cursor_into_the_line_that_was_clicked(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        screen.words.paste(LONG[:120])
        await wait_until_answered(pilot, screen)
        await wait_until(pilot, lambda: screen.words.size.height == 2)
        second = screen_text(pilot).splitlines()[2]
        await pilot.click("#words", offset=(4, 1))
        assert screen.words.value[screen.words.cursor_position :].startswith(second[3 + 4 :].strip()[:5])

    app = search_harness.app()
    drive(app, steps, (80, 24))


def test_documents_without_a_query_have_no_rank_and_no_score(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        shown = screen_text(pilot)
        assert "70 documents · sorted by id" in shown
        assert "1.000" not in shown and "rank" not in shown
        assert shown.splitlines()[4].startswith("▶ A group is a set")
        await press_and_wait(pilot, screen, *"ring")
        shown = screen_text(pilot)
        assert "· rank 1 ·" in shown and "sorted by id" not in shown
        assert shown.splitlines()[4].startswith("▶  1 ")

    app = search_harness.app()
    drive(app, steps, (80, 24))


def test_a_document_is_not_similar_to_itself(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"kernel", "enter")
        (first, *_) = ids(screen)
        await press_and_wait(pilot, screen, "S")
        assert screen.loader.query.like == first
        assert first not in ids(screen) and len(ids(screen)) > 3
        assert "in no document" not in note(screen)

    drive(search_harness.app(), steps)


def test_two_hits_are_compared_with_their_texts(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"abelian", "enter")
        assert ids(screen)[:2] == ["604", "602"]
        await press_and_wait(pilot, screen, "v", "down", "v")
        await wait_until(pilot, lambda: "Why 604 is above 602" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "Text of 604: the words that 602 lacks are marked" in shown
        assert shown.index("Every cyclic group is abelian.") < shown.index("Text of 602")
        assert "Every subgroup of an abelian group is normal." in shown[shown.index("Text of 602") :]
        strips = app.screen._compositor.render_strips()
        marked = {
            segment.text for strip in strips for segment in strip if segment.style and segment.style.underline
        }
        assert {"cyclic", "subgroup", "normal"} <= marked and "abelian" not in marked

    app = search_harness.app()
    drive(app, steps)


def test_hits_are_written_to_a_file_which_is_replaced_only_when_asked(search_harness: SearchHarness) -> None:
    path = search_harness.home / "hits.trec"

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter", "X")
        assert "↵ write" in screen_text(pilot)
        await press(pilot, "ctrl+u")
        pilot.app.post_message(events.Paste(str(path)))
        await pilot.pause()
        await press_and_wait(pilot, screen, "enter")
        await wait_until(pilot, path.exists)
        await wait_until_answered(pilot, screen)
        assert f"wrote {screen.hits.count} hits to" in screen_text(pilot)
        (ranking,) = read_run(path).rankings
        assert ranking.topic_id == "query" and list(ranking.document_ids())[: len(ids(screen))] == ids(screen)
        before = path.read_bytes()
        await press_and_wait(pilot, screen, "slash", "space", *"ring", "enter", "X")
        await press(pilot, "ctrl+u")
        pilot.app.post_message(events.Paste(str(path)))
        await pilot.pause()
        await press(pilot, "enter")
        assert "exists already. Replace it?" in screen_text(pilot)
        await press_and_wait(pilot, screen, "n")
        assert path.read_bytes() == before

    app = search_harness.app()
    drive(app, steps)


def test_hits_are_added_to_the_judging_queue_of_the_topic(search_harness: SearchHarness) -> None:
    path = search_harness.home / "runs" / "queue-nlps-dev"

    async def steps(pilot: P, screen: SearchScreen) -> None:
        async def queue(number: str) -> None:
            await press(pilot, "Q")
            assert "↵ add them" in screen_text(pilot)
            await press(pilot, "ctrl+u")
            await press_and_wait(pilot, screen, *number, "enter")
            await wait_until(
                pilot, lambda: "queued" in screen_text(pilot) or "not a number" in screen_text(pilot)
            )

        await press_and_wait(pilot, screen, *"prime", "enter", "Q")
        assert "the judging queue needs a topic" in screen_text(pilot)
        (topic,) = [
            topic
            for topic in every_topic(screen.searched, screen.searcher.collection)  # type: ignore[arg-type]
            if topic.id == "605"
        ]
        screen.judging.begin_topic(topic)
        await wait_until_answered(pilot, screen)
        assert ids(screen)[0] == "605"  # the topic, which is a document
        first = ids(screen)[1:4]
        await queue("4")
        assert "queued 3 new hits in queue-nlps-dev: searchapp judge nlps" in screen_text(pilot)
        (ranking,) = directory.read(path).run
        assert (ranking.topic_id, list(ranking.document_ids())) == ("605", first)
        await press_and_wait(pilot, screen, "slash", "ctrl+u", *"ideal", "enter")
        await queue("2")
        (ranking,) = directory.read(path).run
        assert set(ranking.document_ids()) == {*first, *ids(screen)[:2]}
        assert [run.path for run in recent_runs(search_harness.home, search_harness.home)] == [path.resolve()]
        await queue("0")
        assert "not a number from 1 to 1,000: 0" in screen_text(pilot)

    app = search_harness.app()
    drive(app, steps)
