"""The search screen while its index is rebuilt or removed, and on an engine that hangs."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.index import index_task
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.settings import INDEXES
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit import background
from searchapp.tui.search import screen as screen_module
from searchapp.tui.search.hits import PAGE
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL
from tests.tui.conftest import SAMPLES, SampleRuns, drive, press, screen_text, wait_until
from tests.tui.search.conftest import (
    SearchHarness,
    ids,
    press_and_wait,
    press_random_keys,
    wait_until_answered,
)

P = Pilot[None]


@pytest.fixture
def private_harness(
    samples: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SearchHarness]:
    """Make a harness with an index that the test may change."""
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    monkeypatch.delenv("NO_COLOR", raising=False)
    samples.run("nlps")
    home = tmp_path / "own"
    shutil.copytree(samples.home / INDEXES, home / INDEXES)
    with closing(SearchHarness(replace(samples, home=home), tmp_path)) as harness:
        yield harness


def rebuild(search_harness: SearchHarness, without: str = "") -> None:
    """Index the sample again, optionally without one of its documents."""
    loaded = load("nlps")
    data = search_harness.home / f"data-{without}"
    shutil.copytree(SAMPLES / "nlps", data, dirs_exist_ok=True)
    if without:
        file = data / "knowledge_base.json"
        documents = json.loads(file.read_text(encoding="utf-8"))
        del documents[without]
        file.write_text(json.dumps(documents), encoding="utf-8")
    with search_harness.engine() as engine:
        index_task(loaded, engine, loaded.collection(data), SilentProgress(), rebuild=True, lenient=True)


def test_a_rebuilt_index_is_searched_from_then_on(private_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter")
        await press_and_wait(pilot, screen, "down", "down")
        before = ids(screen)
        rebuild(private_harness, without=before[0])
        await wait_until(pilot, lambda: "the index was rebuilt: hits now come from" in screen_text(pilot))
        await wait_until_answered(pilot, screen)
        assert screen_text(pilot).startswith(" nlps · 69 documents")
        assert set(ids(screen)) == set(before[1:]) and screen.hits.cursor == 2
        with private_harness.engine() as engine:
            index = engine.open("nlps")
            assert f"hits now come from {index.info.version}" in screen_text(pilot)
        await press_and_wait(pilot, screen, "slash", "ctrl+u", *"ring")
        assert "built again" not in screen_text(pilot)

    drive(private_harness.app(), steps)


def test_results_of_an_older_version_are_discarded(private_harness: SearchHarness) -> None:
    """This includes rankings of fused signals, their rankers and counts in a dialog."""

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "alt+r", *"neighbours", "enter")
        before, count = ids(screen), screen.hits.count
        rebuild(private_harness, without=before[0])
        await wait_until(pilot, lambda: "the index was rebuilt" in screen_text(pilot))
        await wait_until_answered(pilot, screen)
        assert before[0] not in ids(screen) and screen.hits.count == count - 1
        await press_and_wait(pilot, screen, "alt+r", *"words", "enter")
        assert before[0] not in ids(screen) and screen.hits.count

    drive(private_harness.app(), steps)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the open files from /proc")
def test_files_of_deleted_versions_are_closed(private_harness: SearchHarness) -> None:
    def deleted_files() -> list[str]:
        files = []
        for descriptor in Path("/proc/self/fd").iterdir():
            try:
                files.append(str(descriptor.readlink()))
            except OSError:
                continue  # the descriptor of this listing
        return [file for file in files if str(private_harness._samples.home) in file and "(deleted)" in file]

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        for _rebuild in range(2):
            rebuild(private_harness)
            info = screen._info
            await wait_until(pilot, lambda before=info: screen._info != before)  # type: ignore[misc]
            await wait_until_answered(pilot, screen)
        await wait_until(pilot, lambda: not deleted_files())

    drive(private_harness.app(), steps)


def test_a_removed_index_is_searched_again_once_rebuilt(private_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        with private_harness.engine() as engine:
            engine.remove("nlps")
        await wait_until(pilot, lambda: "there is no index in" in screen_text(pilot))
        assert "the hits below are from an earlier query" in screen_text(pilot)
        assert "Earlier query: " in screen_text(pilot)
        assert ids(screen) == before
        await press(pilot, "space", *"number")
        rebuild(private_harness, without="101")  # its version has the same number as the removed one
        await wait_until(pilot, lambda: screen.loader.is_current)
        await wait_until_answered(pilot, screen)
        assert screen.hits.listing.request.text == "prime number" and ids(screen)
        assert "earlier query" not in screen_text(pilot).lower()
        assert screen_text(pilot).startswith(" nlps · 69 documents")

    drive(private_harness.app(), steps)


def test_a_hanging_search_is_overtaken_and_its_answer_discarded(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        search_harness.index.may_answer.clear()
        start = time.monotonic()
        await press(pilot, *" number")
        await wait_until(pilot, lambda: screen.loader.is_current)
        assert time.monotonic() - start < 10
        before = ids(screen)
        assert screen.hits.listing.request.text == "prime number"
        search_harness.index.may_answer.set()  # the hanging search is answered now
        await wait_until_answered(pilot, screen)
        assert ids(screen) == before
        with search_harness.engine() as engine:
            searcher = TaskSearcher.open(load("nlps"), engine, SilentProgress(), search_harness.home)
            assert before == [
                result.hit.document_id for result in searcher.search(SearchRequest("prime number", size=PAGE))
            ]

    drive(search_harness.app(), steps)


def test_waiting_for_a_late_answer_is_shown(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(screen_module, "SLOW_SECONDS", 0.2)
    monkeypatch.setattr(background, "LANES", 1)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        search_harness.index.may_answer.clear()
        await press(pilot, "S")
        await wait_until(pilot, lambda: "no answer for" in screen_text(pilot))
        assert "the hits below are from an earlier query" in screen_text(pilot)
        assert "Earlier query: " in screen_text(pilot)
        assert ids(screen) == before
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert "no answer" not in screen_text(pilot) and "earlier query" not in screen_text(pilot).lower()

    drive(search_harness.app(), steps)


@pytest.mark.parametrize("seed", range(20 if FULL else 1))
def test_random_keys_end_with_the_hits_of_the_query(search_harness: SearchHarness, seed: int) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_random_keys(pilot, screen, seed, 500 if FULL else 150)

    drive(search_harness.app(), steps)
