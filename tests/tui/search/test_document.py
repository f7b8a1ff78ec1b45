"""The document on the search screen: its text, what is known of it, and what of that is folded."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app import search as solved_module
from searchapp.app.search import read_gold_topics
from searchapp.errors import DataError
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tasks import load
from searchapp.tui.search import panes as solved_view
from searchapp.tui.search.panes import Section
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import SAMPLES, drive, question, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, enter, ids, solved

P = Pilot[None]
NORMAL = "A subgroup N of G is normal if and only if g N g⁻¹ = N for all g ∈ G."


def looks(screen: SearchScreen, words: str) -> set[str]:
    """What some words of the document look like."""
    text = screen.reading._pane.text
    start = text.plain.index(words)
    return {str(one.style) for one in text.spans if one.start <= start and one.end >= start + len(words)}


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
def test_wiki_markup_is_shown_as_what_it_means(searching: SearchingOn, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"normal subgroup conjugate", "enter")
        texts = [one.text for place in range(9) if (one := screen.hits.listing.hit(place)) is not None]
        screen.hits.move(next(place for place, text in enumerate(texts) if "'''normal'''" in text))
        await answered(pilot, screen)
        text = " ".join(screen.reading._pane.text.plain.split())
        assert NORMAL in text
        assert "bold" in looks(screen, "normal") and "bold $match" in looks(screen, "normal")
        assert not [sign for sign in ("'''", "{{", "$") if sign in text_of(app)]
        await enter(pilot, screen, "m")
        assert "'''normal''' {{iff}} $g N g^{-1} = N$" in screen.reading._pane.text.plain
        assert "bold $match" in looks(screen, "normal")
        await enter(pilot, screen, "m")
        assert "normal if and only if $g N g^{-1} = N$" in screen.reading._pane.text.plain

    app = searching.app()
    drive(app, steps, size)


def test_topics_that_cite_a_document_are_listed_and_opened(searching: SearchingOn) -> None:
    task = load("nlps")
    known = read_gold_topics(task, task.collection(SAMPLES / "nlps"))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"normal subgroup", "enter")
        await solved(pilot, screen)
        place = next(place for place, one in enumerate(ids(screen)) if known.citing(one))
        document = ids(screen)[place]
        screen.hits.move(place)
        await answered(pilot, screen)
        citing = known.citing(document)
        assert f"▾ Training topics with it in their gold · {len(citing)}" in text_of(app)
        assert all(f"{one.topic.id} {one.split}" in text_of(app) for one in citing)
        await enter(pilot, screen, "e", "enter")
        first = citing[0]
        assert f"Training topic {first.topic.id} of {first.split}" in text_of(app)
        await until(pilot, lambda: f"{len(first.answers)} gold document" in text_of(app))
        assert all(one in text_of(app) for one in first.gold)
        await enter(pilot, screen, "escape")
        assert screen.hits.cursor == place

    app = searching.app()
    drive(app, steps)


def test_solved_topics_are_read_once_and_keep_no_key_waiting(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    may_read, reads = threading.Event(), []

    def slowly(*given: Any) -> Any:
        reads.append(given)
        may_read.wait(60)
        return solved_module.read_gold_topics(*given)

    monkeypatch.setattr(solved_view, "read_gold_topics", slowly)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"group", "enter")
        await enter(pilot, screen, "down", "down")
        assert screen.hits.cursor == 2 and "reading the training topics …" in text_of(app)
        await enter(pilot, screen, "e")
        assert "reading the training topics …" in text_of(app)
        may_read.set()
        await solved(pilot, screen)
        assert "reading the training topics" not in text_of(app)
        await enter(pilot, screen, "down", "up")
        assert len(reads) == 1

    app = searching.app()
    drive(app, steps)


def test_solved_topics_that_cannot_be_read_are_told(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: Any) -> Any:
        raise DataError("the folder is gone \x1b[2J")

    monkeypatch.setattr(solved_view, "read_gold_topics", broken)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"group", "enter")
        await solved(pilot, screen)
        assert "can't be read: the folder is gone ␛[2J" in " ".join(text_of(app).split())

    app = searching.app()
    drive(app, steps)


def test_gold_and_grades_are_shown_with_who_said_them(searching: SearchingOn) -> None:
    task = load("nlps")
    known = read_gold_topics(task, task.collection(SAMPLES / "nlps"))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await solved(pilot, screen)
        await enter(pilot, screen, "escape", "t")
        await enter(pilot, screen, "down", "enter")
        topic = screen.judging.topic
        assert topic is not None
        gold = known.topic(topic.id)
        assert gold is not None
        for place, document in enumerate(ids(screen)[:10]):
            if document != topic.id:
                screen.hits.move(place)
                await answered(pilot, screen)
                said = "1 relevant" if document in gold.gold else "0 not relevant"
                assert f"gold  {said}" in screen.reading._pane.text.plain
        with JudgmentLog(searching.home / "judgments.sqlite") as log:
            Session(log, "nlps", Author("ben")).grade([SeenDocument(topic.id, document)], 0)
        screen.judging.refresh()
        await pilot.pause()
        assert "ben  0" not in text_of(app), "others are seen once one has judged"
        await enter(pilot, screen, "1", "up")
        shown = text_of(app)
        assert "▾ Gold and grades" in shown and "you  1 relevant" in shown and "ben  0 not relevant" in shown

    app = searching.app()
    drive(app, steps)


def test_sections_are_folded_by_key_and_by_mouse(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"people", "enter")
        await solved(pilot, screen)
        whole = screen.reading._pane.text.plain
        assert "▾ Fields" in whole and "▎" in whole
        await enter(pilot, screen, "h")
        assert question(app) == "Sections shown below a document"
        await enter(pilot, screen, "enter", "down", "enter", "escape")
        assert screen.reading.folded == {Section.neighbours, Section.fields}
        folded = screen.reading._pane.text.plain
        assert "▸ Fields" in folded and "▎" not in folded and len(folded) < len(whole)
        await enter(pilot, screen, "down")
        assert "▸ Fields" in screen.reading._pane.text.plain, "so it stays for all documents"
        lines = text_of(app).splitlines()
        row = next(number for number, line in enumerate(lines) if "▸ Fields" in line)
        await pilot.click(offset=(lines[row].index("▸ Fields") + 3, row))
        await pilot.pause()
        assert "▾ Fields" in screen.reading._pane.text.plain

    app = searching.app("checkthat")
    drive(app, steps)


def test_neighbours_are_asked_for_once_for_each_document(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"people", "enter")
        await enter(pilot, screen, "down")
        await enter(pilot, screen, "up")
        before = searching.index.finds
        await enter(pilot, screen, "down", "up", "down")
        assert searching.index.finds == before

    drive(searching.app("checkthat"), steps)
