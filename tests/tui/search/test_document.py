"""The document pane of the search screen: text, training topics, gold, grades and folded sections."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app import search as search_module
from searchapp.app.search import read_gold_topics
from searchapp.errors import DataError
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tasks import load
from searchapp.tui.search import panes
from searchapp.tui.search.panes import Section
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import SAMPLES, drive, question, screen_text, wait_until
from tests.tui.search.conftest import (
    SearchHarness,
    ids,
    press_and_wait,
    wait_for_training_topics,
    wait_until_answered,
)

P = Pilot[None]
NORMAL = "A subgroup N of G is normal if and only if g N g⁻¹ = N for all g ∈ G."


def styles_of(screen: SearchScreen, words: str) -> set[str]:
    """Return the styles of these words in the document pane."""
    text = screen.reading._pane.text
    start = text.plain.index(words)
    return {str(span.style) for span in text.spans if span.start <= start and span.end >= start + len(words)}


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
def test_wiki_markup_is_rendered(search_harness: SearchHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"normal subgroup conjugate", "enter")
        texts = [
            result.text for position in range(9) if (result := screen.hits.listing.hit(position)) is not None
        ]
        screen.hits.move(next(position for position, text in enumerate(texts) if "'''normal'''" in text))
        await wait_until_answered(pilot, screen)
        text = " ".join(screen.reading._pane.text.plain.split())
        assert NORMAL in text
        assert "bold" in styles_of(screen, "normal") and "bold $match" in styles_of(screen, "normal")
        assert not [sign for sign in ("'''", "{{", "$") if sign in screen_text(pilot)]
        await press_and_wait(pilot, screen, "m")
        assert "'''normal''' {{iff}} $g N g^{-1} = N$" in screen.reading._pane.text.plain
        assert "bold $match" in styles_of(screen, "normal")
        await press_and_wait(pilot, screen, "m")
        assert "normal if and only if $g N g^{-1} = N$" in screen.reading._pane.text.plain

    drive(search_harness.app(), steps, size)


def test_topics_that_cite_a_document_are_listed_and_opened(search_harness: SearchHarness) -> None:
    task = load("nlps")
    gold_topics = read_gold_topics(task, task.collection(SAMPLES / "nlps"))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"normal subgroup", "enter")
        await wait_for_training_topics(pilot, screen)
        position = next(
            position for position, document in enumerate(ids(screen)) if gold_topics.citing(document)
        )
        document = ids(screen)[position]
        screen.hits.move(position)
        await wait_until_answered(pilot, screen)
        citing = gold_topics.citing(document)
        assert f"▾ Training topics with it in their gold · {len(citing)}" in screen_text(pilot)
        assert all(f"{topic.topic.id} {topic.split}" in screen_text(pilot) for topic in citing)
        await press_and_wait(pilot, screen, "T", "enter")
        first = citing[0]
        assert f"Training topic {first.topic.id} of {first.split}" in screen_text(pilot)
        await wait_until(pilot, lambda: f"{len(first.answers)} gold document" in screen_text(pilot))
        assert all(document in screen_text(pilot) for document in first.gold)
        await press_and_wait(pilot, screen, "escape")
        assert screen.hits.cursor == position

    drive(search_harness.app(), steps)


def test_training_topics_are_read_once_without_blocking_keys(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, reads = threading.Event(), []

    def read_late(*arguments: Any) -> Any:
        reads.append(arguments)
        may_read.wait(60)
        return search_module.read_gold_topics(*arguments)

    monkeypatch.setattr(panes, "read_gold_topics", read_late)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"group", "enter")
        await press_and_wait(pilot, screen, "down", "down")
        assert screen.hits.cursor == 2 and "reading the training topics …" in screen_text(pilot)
        await press_and_wait(pilot, screen, "T")
        assert "reading the training topics …" in screen_text(pilot)
        may_read.set()
        await wait_for_training_topics(pilot, screen)
        assert "reading the training topics" not in screen_text(pilot)
        await press_and_wait(pilot, screen, "down", "up")
        assert len(reads) == 1

    drive(search_harness.app(), steps)


def test_an_error_in_training_topics_is_shown(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_read(*_arguments: Any) -> Any:
        raise DataError("the folder is gone \x1b[2J")

    monkeypatch.setattr(panes, "read_gold_topics", fail_to_read)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"group", "enter")
        await wait_for_training_topics(pilot, screen)
        assert "can't be read: the folder is gone ␛[2J" in " ".join(screen_text(pilot).split())

    drive(search_harness.app(), steps)


def test_gold_and_grades_are_shown_with_their_annotators(search_harness: SearchHarness) -> None:
    task = load("nlps")
    gold_topics = read_gold_topics(task, task.collection(SAMPLES / "nlps"))

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_for_training_topics(pilot, screen)
        await press_and_wait(pilot, screen, "escape", "t")
        await press_and_wait(pilot, screen, "down", "enter")
        topic = screen.judging.topic
        assert topic is not None
        gold = gold_topics.topic(topic.id)
        assert gold is not None
        for position, document in enumerate(ids(screen)[:10]):
            if document != topic.id:
                screen.hits.move(position)
                await wait_until_answered(pilot, screen)
                grade = "1 relevant" if document in gold.gold else "0 not relevant"
                assert f"gold  {grade}" in screen.reading._pane.text.plain
        with JudgmentLog(search_harness.home / "judgments.sqlite") as log:
            Session(log, "nlps", Author("ben")).grade([SeenDocument(topic.id, document)], 0)
        screen.judging.refresh()
        await pilot.pause()
        assert "ben  0" not in screen_text(pilot), "grades of others are shown after the own grade"
        await press_and_wait(pilot, screen, "1", "up")
        text = screen_text(pilot)
        assert "▾ Gold and grades" in text and "you  1 relevant" in text and "ben  0 not relevant" in text

    drive(search_harness.app(), steps)


def test_sections_are_folded_by_key_and_by_mouse(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"people", "enter")
        await wait_for_training_topics(pilot, screen)
        unfolded = screen.reading._pane.text.plain
        assert "▾ Fields" in unfolded and "▎" in unfolded
        await press_and_wait(pilot, screen, "h")
        assert question(pilot) == "Sections shown below a document"
        await press_and_wait(pilot, screen, "enter", "down", "enter", "escape")
        assert screen.reading.folded == {Section.neighbours, Section.fields}
        folded = screen.reading._pane.text.plain
        assert "▸ Fields" in folded and "▎" not in folded and len(folded) < len(unfolded)
        await press_and_wait(pilot, screen, "down")
        assert "▸ Fields" in screen.reading._pane.text.plain, "folding applies to all documents"
        lines = screen_text(pilot).splitlines()
        row = next(number for number, line in enumerate(lines) if "▸ Fields" in line)
        await pilot.click(offset=(lines[row].index("▸ Fields") + 3, row))
        await pilot.pause()
        assert "▾ Fields" in screen.reading._pane.text.plain

    drive(search_harness.app("checkthat"), steps)


def test_neighbours_are_requested_once_for_each_document(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"people", "enter")
        await press_and_wait(pilot, screen, "down")
        await press_and_wait(pilot, screen, "up")
        before = search_harness.index.searches
        await press_and_wait(pilot, screen, "down", "up", "down")
        assert search_harness.index.searches == before

    drive(search_harness.app("checkthat"), steps)
