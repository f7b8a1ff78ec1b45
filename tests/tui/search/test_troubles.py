"""The search screen on an index that is built again, removed or damaged meanwhile, and on an engine that hangs."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.app.index import index_task
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.settings import INDEXES, Settings
from searchapp.engines import open_engine
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit import background
from searchapp.tui.search import screen as freshness
from searchapp.tui.search.requests import PAGE
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL
from tests.tui.conftest import SAMPLES, Prepared, drive, press, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, enter, ids, random_keys

P = Pilot[None]


@pytest.fixture
def own(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchingOn:
    """The screen on an index that a test may change."""
    monkeypatch.setattr(freshness, "LOOK_SECONDS", 0.05)
    monkeypatch.delenv("NO_COLOR", raising=False)
    prepared.run("nlps")
    home = tmp_path / "own"
    shutil.copytree(prepared.home / INDEXES, home / INDEXES)
    return SearchingOn(replace(prepared, home=home), tmp_path)


def build(searching: SearchingOn, without: str = "") -> None:
    """Index the sample again, without one of its documents."""
    loaded = load("nlps")
    data = searching.home / f"data-{without}"
    shutil.copytree(SAMPLES / "nlps", data, dirs_exist_ok=True)
    if without:
        file = data / "knowledge_base.json"
        documents = json.loads(file.read_text(encoding="utf-8"))
        del documents[without]
        file.write_text(json.dumps(documents), encoding="utf-8")
    with closing(open_engine(Settings(home=searching._prepared.home))) as engine:
        index_task(loaded, engine, loaded.collection(data), SilentProgress(), rebuild=True, lenient=True)


def test_an_index_that_is_built_again_is_searched_from_then_on(own: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter")
        await enter(pilot, screen, "down", "down")
        before = ids(screen)
        build(own, without=before[0])
        await until(pilot, lambda: "the index was rebuilt: hits now come from" in text_of(app))
        await answered(pilot, screen)
        assert text_of(app).startswith(" nlps · 69 documents")
        assert set(ids(screen)) == set(before[1:]) and screen.hits.cursor == 2
        with closing(open_engine(Settings(home=own._prepared.home))) as engine:
            index = engine.open("nlps")
            assert f"hits now come from {index.info.version}" in text_of(app)
        await enter(pilot, screen, "slash", "ctrl+u", *"ring")
        assert "built again" not in text_of(app)

    app = own.app()
    drive(app, steps)
    own.close()


def test_nothing_of_an_older_version_is_kept(own: SearchingOn) -> None:
    """Neither rankings of fused signals, nor their rankers, nor counts in a dialog."""

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "f3", *"neighbours", "enter")
        before, count = ids(screen), screen.hits.count
        build(own, without=before[0])
        await until(pilot, lambda: "the index was rebuilt" in text_of(app))
        await answered(pilot, screen)
        assert before[0] not in ids(screen) and screen.hits.count == count - 1
        await enter(pilot, screen, "f3", *"words", "enter")
        assert before[0] not in ids(screen) and screen.hits.count

    app = own.app()
    drive(app, steps)
    own.close()


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for the open files as Linux has them")
def test_files_of_versions_that_are_gone_are_given_back(own: SearchingOn) -> None:
    def held() -> list[str]:
        files = []
        for descriptor in Path("/proc/self/fd").iterdir():
            try:
                files.append(str(descriptor.readlink()))
            except OSError:
                continue  # that of this listing
        return [file for file in files if str(own._prepared.home) in file and "(deleted)" in file]

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        for _time in range(2):
            build(own)
            info = screen._info
            await until(pilot, lambda before=info: screen._info != before)  # type: ignore[misc]
            await answered(pilot, screen)
        await until(pilot, lambda: not held())

    drive(own.app(), steps)
    own.close()


def test_an_index_that_is_removed_is_waited_for(own: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        before = ids(screen)
        with closing(open_engine(Settings(home=own._prepared.home))) as engine:
            engine.remove("nlps")
        await until(pilot, lambda: "there is no index in" in text_of(app))
        assert "the hits below are from an earlier query" in text_of(app) and "Earlier query: " in text_of(
            app
        )
        assert ids(screen) == before
        await press(pilot, "space", *"number")
        build(own, without="101")  # whose number is that of the one that was removed
        await until(pilot, lambda: screen.loader.is_current)
        await answered(pilot, screen)
        assert screen.hits.listing.request.text == "prime number" and ids(screen)
        assert "earlier query" not in text_of(app).lower()
        assert text_of(app).startswith(" nlps · 69 documents")

    app = own.app()
    drive(app, steps)
    own.close()


def test_a_search_that_hangs_is_overtaken_and_its_answer_dropped(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        searching.index.may_answer.clear()
        begin = time.monotonic()
        await press(pilot, *" number")
        await until(pilot, lambda: screen.loader.is_current)
        assert time.monotonic() - begin < 10
        good = ids(screen)
        assert screen.hits.listing.request.text == "prime number"
        searching.index.may_answer.set()  # what hung is answered now
        await answered(pilot, screen)
        assert ids(screen) == good
        with closing(open_engine(Settings(home=searching._prepared.home))) as engine:
            fresh = TaskSearcher.open(load("nlps"), engine, SilentProgress(), searching.home)
            assert good == [
                one.hit.document_id for one in fresh.search(SearchRequest("prime number", size=PAGE))
            ]

    drive(searching.app(), steps)


def test_a_late_answer_is_waited_for_in_sight_of_everybody(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(freshness, "SLOW_SECONDS", 0.2)
    monkeypatch.setattr(background, "LANES", 1)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        good = ids(screen)
        searching.index.may_answer.clear()
        await press(pilot, "s")
        await until(pilot, lambda: "no answer for" in text_of(app))
        assert "the hits below are from an earlier query" in text_of(app) and "Earlier query: " in text_of(
            app
        )
        assert ids(screen) == good
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert "no answer" not in text_of(app) and "earlier query" not in text_of(app).lower()

    app = searching.app()
    drive(app, steps)


@pytest.mark.parametrize("seed", range(20 if FULL else 1))
def test_random_keys_leave_the_ranking_of_the_text(searching: SearchingOn, seed: int) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await random_keys(pilot, screen, seed, 500 if FULL else 150)

    drive(searching.app(), steps)
