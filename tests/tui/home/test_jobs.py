"""Fetching official files and ranking splits from the home screen."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from searchapp.app.index import open_index
from searchapp.app.rank import RunRequest, make_run
from searchapp.config.settings import Settings
from searchapp.errors import SearchappError
from searchapp.fetching.fetch import STAGING
from searchapp.model import Run
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.runs.directory import RANKINGS, read_manifest
from searchapp.tasks import load
from searchapp.tasks.folders import remember_folder, remembered_folders
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.kit.dialogs import Choose, PathDialog, Picking
from tests.cli.test_data import BASE, sources_file, web  # noqa: F401  # fixtures
from tests.fetching.server import Fault, FileServer
from tests.tui.conftest import SAMPLES, question, screen_text
from tests.tui.home.conftest import HomeHarness, P, go_to_run, wait_for, wait_for_text

BASE_FILE = f"{BASE}knowledge_base.json"


@pytest.fixture
def mirror(web: FileServer) -> dict[str, str]:  # noqa: F811
    """The environment in which the server has the official files."""
    return {"SEARCHAPP_DATA_MIRROR": web.url}


async def wait_for_dialog(pilot: P, kind: type[object]) -> None:
    await wait_for(pilot, lambda: isinstance(pilot.app.screen, kind))


def details(screen: HomeScreen) -> str:
    return screen._details.text.plain


def test_official_files_are_fetched_after_consent_and_indexed(
    home_harness: HomeHarness,
    web: FileServer,  # noqa: F811
    mirror: dict[str, str],
    tmp_path: Path,
) -> None:
    folder = home_harness.home / "data" / "nlps"
    remember_folder(home_harness.home, "nlps", tmp_path / "gone")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert "C fetches its official files" in details(screen)
        for answer in ("n", "y"):
            assert not web.requests_of
            await pilot.press("C")
            await wait_for_dialog(pilot, Choose)
            asked = question(pilot)
            assert asked.startswith("Fetch the files of nlps and accept their terms?")
            assert "3 files, " in asked and f"into     {folder}" in asked
            assert f"from     {web.url}{BASE}" in asked and "terms    To be used with care." in asked
            await pilot.press(answer)
        await wait_for_text(pilot, "nlps: fetched 3 files into")
        await wait_for(pilot, lambda: screen.tasks.states[0].has_files)
        assert "I indexes them" in details(screen) and "C fetches" not in details(screen)
        await pilot.press("C")
        await wait_for_text(pilot, "nlps: all official files are already in")
        await pilot.press("I", "d")
        await wait_for_text(pilot, "nlps: indexed 70 documents")
        await wait_for(pilot, lambda: screen.tasks.states[0].index)

    home_harness.drive(steps, environ=mirror)
    assert remembered_folders(home_harness.home) == {}
    assert (folder / "fetched.json").exists()


def test_a_stopped_download_is_resumed(
    home_harness: HomeHarness,
    web: FileServer,  # noqa: F811
    mirror: dict[str, str],
) -> None:
    folder = home_harness.home / "data" / "nlps"
    web.faults[BASE_FILE] = [Fault(cut_after=1000), Fault(status=503, headers={"Retry-After": "100"})]

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("C")
        await wait_for_dialog(pilot, Choose)
        await pilot.press("y")
        await wait_for_text(pilot, " of 10.1 kB   esc stops it   ")
        await wait_for(pilot, lambda: screen.jobs.job is not None and "503" in screen.jobs.job.notice)
        await pilot.press("I")
        assert "fetching nlps is not finished: esc stops it" in screen_text(pilot)
        await pilot.press("escape")
        await wait_for_text(pilot, "fetching nlps was stopped: kept 1.0 kB, C resumes")
        assert [entry.name for entry in folder.iterdir()] == [STAGING]
        await pilot.press("C")
        await wait_for_dialog(pilot, Choose)
        assert "1.0 kB from an earlier attempt" in question(pilot)
        await pilot.press("y")
        await wait_for_text(pilot, "nlps: fetched 3 files into")

    home_harness.drive(steps, environ=mirror)
    assert web.ranges(BASE_FILE)[-1] == "bytes=1000-"


def test_a_failed_download_says_why_and_waiting_for_a_retry_can_be_stopped(
    home_harness: HomeHarness,
    web: FileServer,  # noqa: F811
    mirror: dict[str, str],
) -> None:
    web.faults[BASE_FILE] = [Fault(status=404), Fault(status=503, headers={"Retry-After": "100"})]

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("C")
        await wait_for_dialog(pilot, Choose)
        await pilot.press("y")
        await wait_for_text(pilot, "answers 404")
        await pilot.press("C")
        await wait_for_dialog(pilot, Choose)
        await pilot.press("y")
        await wait_for(pilot, lambda: screen.jobs.job is not None and "503" in screen.jobs.job.notice)
        started = time.monotonic()
        await pilot.press("escape")
        await wait_for_text(pilot, "fetching nlps was stopped: nothing was changed")
        assert time.monotonic() - started < 50

    home_harness.drive(steps, environ=mirror)
    assert not (home_harness.home / "data").exists()


def test_a_task_without_official_files_is_refused(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("O", *str(SAMPLES / "own" / "cooking.toml"), "enter")
        await wait_for(pilot, lambda: screen.tasks.states[0].task.name == "cooking")
        await pilot.press("home", "C")
        await wait_for_text(pilot, "cooking is a task of your own: its files can't be fetched")

    home_harness.drive(steps)


async def choose_run(pilot: P) -> PathDialog:
    """Choose the split dev and the recipe neighbours, and return the dialog for the directory."""
    await pilot.press("K")
    await wait_for_dialog(pilot, Picking)
    assert "Rank which split of nlps?" in question(pilot) and "▶ dev    10 topics" in screen_text(pilot)
    await pilot.press("enter")
    assert "Rank nlps dev with which recipe?" in question(pilot)
    await pilot.press(*"neighbours", "enter")
    dialog = pilot.app.screen
    assert isinstance(dialog, PathDialog)
    return dialog


def test_a_split_is_ranked_as_by_the_command(home_harness: HomeHarness, tmp_path: Path) -> None:
    home_harness.with_sample()
    made = home_harness.home / "runs" / "nlps-dev-neighbours"

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert "K ranks its topics" in details(screen)
        dialog = await choose_run(pilot)
        assert dialog._line.value == str(made) and "↵ rank" in screen_text(pilot)
        await pilot.press("enter")
        await wait_for_text(pilot, "nlps dev: ranked 10 topics to depth ")
        await wait_for(pilot, lambda: screen.runs.run is not None and screen.runs.run.path == made)
        first = read_manifest(made).created
        (made / "mine.txt").touch()
        for answer in ("n", "y"):
            dialog = await choose_run(pilot)
            assert dialog._line.value == (f"{made}-2" if answer == "n" else str(made))
            await pilot.press("ctrl+u", *str(made), "enter")
            assert "is a run already. Replace it?" in question(pilot)
            assert (made / "mine.txt").exists()
            await pilot.press(answer)
        await wait_for(pilot, lambda: not (made / "mine.txt").exists() and screen.jobs.job is None)
        assert read_manifest(made).created >= first
        dialog = await choose_run(pilot)
        await pilot.press("ctrl+u", *str(tmp_path), "enter")
        assert isinstance(pilot.app.screen, PathDialog) and dialog._line.value == str(tmp_path)
        assert "is not a run directory and is not replaced" in screen_text(pilot)

    home_harness.drive(steps)
    task, out = load("nlps"), tmp_path / "by-command"
    recipe = recipes.load(task.recipe_book(), "neighbours")
    request = RunRequest(
        task.collection(SAMPLES / "nlps"), "dev", recipe, task.info.default_depth, "searchapp-neighbours"
    )
    with home_harness.engine() as engine:
        make_run(task, engine, request, out, SilentProgress())
    assert (made / RANKINGS).read_bytes() == (out / RANKINGS).read_bytes()
    assert sorted(path.name for path in (home_harness.home / "runs").iterdir()) == [
        "first",
        "nlps-dev-neighbours",
    ]


def test_stopped_ranking_writes_nothing(home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    home_harness.with_sample()
    original = Ranker.rank
    ranked: list[object] = []

    def rank_slowly(
        ranker: Ranker, topics: object, depth: int, tag: str, advance: Callable[[int], None]
    ) -> Run:
        while len(ranked) < 10_000:
            ranked.append(1)
            time.sleep(0.01)
            advance(0)
        return original(ranker, topics, depth, tag, advance)  # type: ignore[arg-type]

    monkeypatch.setattr(Ranker, "rank", rank_slowly)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await choose_run(pilot)
        await pilot.press("enter")
        await wait_for(pilot, lambda: ranked)
        await wait_for_text(pilot, "nlps dev: ranking 0%   esc stops it")
        await pilot.press("f12")
        assert "f12 does nothing here" in screen.head.status.plain
        count = len(ranked)
        await wait_for(pilot, lambda: len(ranked) > count + 20)  # the progress has been reported again
        assert (
            "f12 does nothing here" in screen.head.status.plain and "ranking 0%" in screen.head.status.plain
        )
        await pilot.press("escape")
        await wait_for_text(pilot, "ranking nlps dev was stopped: no run was written")

    home_harness.drive(steps)
    assert [path.name for path in (home_harness.home / "runs").iterdir()] == ["first"]
    assert not (home_harness.home / "runs.jsonl").exists()


def test_ranking_without_index_or_topics_is_refused_as_by_the_command(home_harness: HomeHarness) -> None:
    task = load("nlps")
    settings = Settings(home=home_harness.home)

    async def without_index(pilot: P, screen: HomeScreen) -> None:
        with home_harness.engine() as engine, pytest.raises(SearchappError) as refusal:
            open_index(task, engine)
        await pilot.press("K")
        await wait_for(pilot, lambda: str(refusal.value) in details(screen))

    home_harness.drive(without_index)
    home_harness.with_sample()
    data = Path(shutil.copytree(SAMPLES / "nlps", settings.home / "data" / "nlps"))
    for name in ("train", "dev"):
        (data / f"{name}_set.json").unlink()

    async def without_topics(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("K")
        await wait_for_text(pilot, "train_set.json")
        assert pilot.app.screen is screen

    home_harness.drive(without_topics)


def test_a_run_made_in_the_background_does_not_open_dialogs_on_other_screens(
    home_harness: HomeHarness,
) -> None:
    home_harness.with_sample()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("K", "comma")  # the topics are read while the settings are open
        await wait_for(pilot, lambda: screen.jobs.job is None)
        assert not isinstance(pilot.app.screen, Picking)
        await pilot.press("q")
        await wait_for_dialog(pilot, Picking)
        await pilot.press("escape")
        await go_to_run(pilot, screen, "nlps")

    home_harness.drive(steps)
