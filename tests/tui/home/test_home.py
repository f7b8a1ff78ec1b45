"""The home screen: tasks, indexing, runs and the screens that it opens."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from textual import events

from searchapp.app import overview, runs
from searchapp.app.evaluate import GoldSource, evaluate
from searchapp.app.index import index_task
from searchapp.engines.base import VersionState
from searchapp.judging.log import JudgmentLog
from searchapp.lucene.index.writer import IndexWriter
from searchapp.model import Hits, Ranking, Run
from searchapp.progress import SilentProgress
from searchapp.runs import directory
from searchapp.tasks import load
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home import overview as overview_monitor
from searchapp.tui.home.jobs import BackgroundJob
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.content import Plain
from searchapp.tui.kit.dialogs import Choose, Help, Picking, ReportDialog
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import SAMPLES, TIMEOUT_SECONDS, question, require_complete, screen_text
from tests.tui.home.conftest import (
    HomeHarness,
    P,
    go_to_run,
    wait_for,
    wait_for_overview,
    wait_for_screen,
    wait_for_text,
)


def write_reversed(run: Path, path: Path, first_topic: int = 0) -> None:
    """Write a run with the documents of another one in reverse, from its topic number `first_topic` on."""
    stored = directory.read(run)
    rankings = [
        Ranking(ranking.topic_id, Hits(ranking.document_ids()[::-1], ranking.hits.scores))
        for ranking in stored.run
    ]
    directory.write(path, stored.manifest, Run(path.name, tuple(rankings[first_topic:])), {})


def test_without_an_index_the_screen_suggests_what_to_do(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        require_complete(screen)
        text = screen_text(pilot)
        assert "✓ embedded" in text and "nlps" in text and "checkthat" in text
        assert "Nothing is indexed yet. I indexes its sample" in text
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Choose)
        assert "Index nlps from which source?" in screen_text(pilot)
        await pilot.press("escape", "tab")
        assert "No runs yet" in screen_text(pilot)
        await pilot.press("E")
        assert "no run is selected: tab goes to the runs" in screen_text(pilot)
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Help)
        await pilot.press("escape", "q")
        assert pilot.app._exit

    home_harness.drive(steps, (80, 24))


def test_keys_typed_before_the_first_paint_have_the_same_effect(home_harness: HomeHarness) -> None:
    home_harness.with_sample("explanation-2019")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await wait_for(pilot, lambda: screen.runs.runs)
        for key in ("tab", "z", "tab", "z", "tab", "tab", "E"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_for(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))

    home_harness.drive(steps)


def test_the_sample_is_indexed_and_searched(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "s")
        await wait_for_text(pilot, "nlps-sample: indexed 70 documents into searchapp-nlps-sample-000001")
        await wait_for(pilot, lambda: screen.tasks.states[-1].index)
        assert screen.tasks.states[0].index is None and screen.tasks.states[-1].task.name == "nlps-sample"
        await pilot.press("end")
        await wait_for_text(pilot, "train 12, dev 10")
        await pilot.press("enter")
        await wait_for_screen(pilot, SearchScreen)
        await pilot.press(*"compact")
        await wait_for_text(pilot, "5 documents")
        await pilot.press("escape", "t")
        await wait_for_text(pilot, "Judge documents for the topic")
        await pilot.press("escape", "q")
        assert pilot.app.screen is screen and len(screen.opener._closing) == 1
        assert not (home_harness.home / "folders.json").exists()

    home_harness.drive(steps)


def test_an_index_is_replaced_by_other_documents_only_after_a_question(
    home_harness: HomeHarness, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "other"))
    documents = json.loads((data / "knowledge_base.json").read_text())
    others = {name: f"{text} Not so." for name, text in documents.items()}
    index_sample(home_harness)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        (data / "knowledge_base.json").write_text(json.dumps(others))
        before = screen.tasks.states[0].index
        for answer in ("n", "y"):
            await pilot.press("I", "f", "ctrl+u", *str(data), "enter")
            await wait_for(pilot, lambda: "Replace the index with these documents?" in question(pilot))
            assert "shares only 0 of 70 documents with searchapp-nlps-000001. " in question(pilot)
            await wait_for_overview(pilot, screen)
            assert screen.tasks.states[0].index == before
            await pilot.press(answer)
        await wait_for(pilot, lambda: screen.tasks.states[0].index != before)

    home_harness.drive(steps)


class BlockedIndexing:
    """Blocks each document that is being indexed until the indexing is stopped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_continue = threading.Event()
        self.read = 0
        original = IndexWriter._add

        def add_late(writer: IndexWriter, document_id: str, source: dict[str, Any]) -> None:
            self.read += 1
            self.may_continue.wait(60)
            original(writer, document_id, source)

        monkeypatch.setattr(IndexWriter, "_add", add_late)
        stop = BackgroundJob.stop

        def stop_and_continue(job: BackgroundJob) -> None:
            stop(job)
            self.may_continue.set()

        monkeypatch.setattr(BackgroundJob, "stop", stop_and_continue)


def larger_sample(folder: Path) -> Path:
    """Make a folder with the sample and an additional document."""
    shutil.copytree(SAMPLES / "nlps", folder)
    base = json.loads((folder / "knowledge_base.json").read_text())
    base["9999"] = "One more."
    (folder / "knowledge_base.json").write_text(json.dumps(base))
    return folder


def index_sample(home_harness: HomeHarness) -> None:
    """Index the sample in the home directory of the harness."""
    task = load("nlps")
    with home_harness.engine() as engine:
        index_task(task, engine, task.collection(SAMPLES / "nlps"), SilentProgress())


def test_stopped_indexing_leaves_only_the_old_index(
    home_harness: HomeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_sample(home_harness)
    indexing, data = BlockedIndexing(monkeypatch), larger_sample(tmp_path / "larger")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "f", *str(data), "enter")
        await wait_for(pilot, lambda: indexing.read)
        assert "esc stops it" in screen_text(pilot)
        await pilot.press("down", "I")  # keys work while it runs
        assert "indexing nlps is not finished: esc stops it" in screen_text(pilot)
        await pilot.press("q")
        assert "Stop indexing nlps and leave?" in screen_text(pilot)
        await pilot.press("n", "escape")
        await wait_for_text(pilot, "indexing nlps was stopped: nothing was changed")
        await pilot.press("home", "enter")
        await wait_for_screen(pilot, SearchScreen)

    home_harness.drive(steps)
    with home_harness.engine() as engine:
        (version,) = engine.stored()
        assert version.state is VersionState.live and version.info is not None
        assert version.info.documents == 70
    assert not list(home_harness.home.rglob("*.tmp"))
    assert not (home_harness.home / "folders.json").exists()


def test_a_typed_folder_is_indexed_and_remembered(home_harness: HomeHarness, tmp_path: Path) -> None:
    data = larger_sample(tmp_path / "larger")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "f", *"nowhere", "enter")
        assert "there is no folder " in screen_text(pilot)
        await pilot.press("ctrl+u", *str(data), "enter")
        await wait_for_text(pilot, "nlps: indexed 71 documents into searchapp-nlps-000001")
        await wait_for(pilot, lambda: screen.tasks.states[0].has_files)
        await pilot.press("I")
        assert "Its files in " in screen_text(pilot)

    home_harness.drive(steps)
    assert json.loads((home_harness.home / "folders.json").read_text())["folders"] == {"nlps": str(data)}


TOO_LONG, UNKNOWN_USER = "x" * 300 + ".toml", "~nobody-of-this-name/x.toml"


@pytest.mark.parametrize("keys", [("I", "f"), ("O",)])
def test_a_path_that_no_file_can_have_is_refused(home_harness: HomeHarness, keys: tuple[str, ...]) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        for path, said in ((TOO_LONG, "file name too long"), (UNKNOWN_USER, "no user on this machine")):
            await pilot.press(*keys, "ctrl+u")
            pilot.app.post_message(events.Paste(path))
            await pilot.pause()
            await pilot.press("enter")
            assert said in str(pilot.app.screen.query_one("#news", Plain).render())
            await pilot.press("escape")

    home_harness.drive(steps)


def test_each_problem_of_invalid_files_is_listed(home_harness: HomeHarness, tmp_path: Path) -> None:
    data = larger_sample(tmp_path / "larger")
    (data / "dev_set.json").write_text('{"1": {"stmt": 3}, "2": {"stmt": 4}}')

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "f", *str(data), "enter")
        await wait_for(pilot, lambda: screen.jobs.job is None)
        await wait_for_text(pilot, "problems")
        assert screen._details.text.plain.count("dev_set.json: statement") == 2

    home_harness.drive(steps)


def test_leaving_stops_indexing(home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    indexing = BlockedIndexing(monkeypatch)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "s")
        await wait_for(pilot, lambda: indexing.read)
        await pilot.press("q", "y")
        assert pilot.app._exit

    home_harness.drive(steps)
    with home_harness.engine() as engine:
        assert engine.stored() == []


def test_a_signal_stops_indexing(home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    indexing = BlockedIndexing(monkeypatch)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("I", "s")
        await wait_for(pilot, lambda: indexing.read)
        message = screen.last_words()
        assert message is not None and "indexing nlps-sample was stopped" in message
        with home_harness.engine() as engine:
            assert engine.stored() == []

    home_harness.drive(steps)


def test_an_own_task_is_indexed_by_its_file(home_harness: HomeHarness) -> None:
    file = SAMPLES / "own" / "cooking.toml"

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("O", *"notes.txt", "enter")
        assert "its name must end in .toml" in str(pilot.app.screen.query_one("#news", Plain).render())
        await pilot.press("ctrl+u", *str(file), "enter")
        await wait_for(pilot, lambda: [one for one in screen.tasks.states if one.task.info.file])
        await pilot.press("home")
        assert "task file" in screen_text(pilot)

    home_harness.drive(steps)


def test_a_run_is_judged_and_the_number_of_judgments_is_reported(home_harness: HomeHarness) -> None:
    home_harness.with_sample()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("tab", "enter")
        await wait_for_screen(pilot, JudgeScreen)
        await pilot.press("1", "0", "u")
        await pilot.press("q")
        assert pilot.app.screen is screen and "judged 1 document" in screen_text(pilot)
        await wait_for_text(pilot, "1 judged")

    home_harness.drive(steps)
    with JudgmentLog(home_harness.home / "judgments.sqlite") as log:
        assert [event.annotator for _position, event in log.events()] == ["ann"] * 3
        assert log.windows("nlps", "ann", 0) == []


def test_the_topics_of_a_run_are_opened(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("t")
        assert "no run is selected" in screen_text(pilot)
        await pilot.press("tab", "t")
        await wait_for_screen(pilot, TopicsScreen)
        await wait_for_text(pilot, "missed")
        await pilot.press("q")
        assert pilot.app.screen is screen

    home_harness.with_sample()
    home_harness.drive(steps)


def test_a_run_is_compared_with_another_one(home_harness: HomeHarness, tmp_path: Path) -> None:
    run = home_harness.with_sample("explanation-2019")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("v")
        assert "no run is selected" in screen_text(pilot)
        await go_to_run(pilot, screen, run.name)
        await pilot.press("v")
        assert "there is no other run of explanation-2019 dev to compare it with" in screen_text(pilot)

    home_harness.drive(steps)
    folder = home_harness.home / "runs"
    write_reversed(run, folder / "reversed")
    write_reversed(run, folder / "fewer", first_topic=1)

    async def compare_runs(pilot: P, screen: HomeScreen) -> None:
        await go_to_run(pilot, screen, run.name)
        await pilot.press("v", *"reversed", "enter")
        await wait_for_screen(pilot, CompareScreen)
        await wait_for_text(pilot, "by topic · largest gains first")
        await pilot.press("q")
        assert pilot.app.screen is screen
        await pilot.press("v", *"fewer", "enter")
        await wait_for(pilot, lambda: "Compare them anyway?" in question(pilot))
        await pilot.press("y")
        await wait_for_screen(pilot, CompareScreen)
        await wait_for_text(pilot, "the runs are compared although")

    home_harness.drive(compare_runs)


def test_the_official_figure_equals_evaluate_and_is_computed_once(
    home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home_harness.with_sample("explanation-2019")
    (evaluation,) = evaluate([path], GoldSource())

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert f"{evaluation.official.value:.4f}" in screen_text(pilot)
        await pilot.press("tab")
        assert f"{evaluation.official.measure} {evaluation.official.value:.6f}" in screen_text(pilot)

    home_harness.drive(steps)
    monkeypatch.setattr(runs, "evaluate", pytest.fail)
    home_harness.drive(steps)


def test_a_run_is_evaluated_with_all_its_figures(home_harness: HomeHarness) -> None:
    path = home_harness.with_sample("explanation-2019")
    (evaluation,) = evaluate([path], GoldSource())

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("tab", "E")
        await wait_for(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        text = screen_text(pilot)
        assert f"{evaluation.official.value:.6f}  (official)" in text
        assert all(
            name in text and f"{value:.6f}" in text for name, value in evaluation.measures.values.items()
        )
        await pilot.press("escape")
        assert pilot.app.screen is screen

    home_harness.drive(steps)


def test_runs_in_any_folder_are_listed(home_harness: HomeHarness, tmp_path: Path) -> None:
    path = home_harness.with_sample()
    shutil.copytree(path, tmp_path / "elsewhere" / "far")
    shutil.copytree(path, home_harness.folder / "near")
    (home_harness.folder / "near.txt").write_text("no run")
    runs.remember_run(home_harness.home, tmp_path / "elsewhere" / "far")
    runs.remember_run(home_harness.home, tmp_path / "gone")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert {run.path.name for run in screen.runs.runs} == {"nlps", "far", "near"}
        await go_to_run(pilot, screen, "far")
        shutil.rmtree(tmp_path / "elsewhere")
        await pilot.press("enter")
        await wait_for_text(pilot, "there is no run directory or TREC run")
        await pilot.press("f5")
        await wait_for(pilot, lambda: len(screen.runs.runs) == 2)

    home_harness.drive(steps)


def test_a_run_without_its_gold_shows_the_reason_instead_of_a_figure(
    home_harness: HomeHarness, tmp_path: Path
) -> None:
    path = home_harness.with_sample()
    run = home_harness.folder / "without"
    shutil.copytree(path, run)
    (run / "run.json").write_text((run / "run.json").read_text().replace(str(SAMPLES / "nlps"), "/nowhere"))

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await go_to_run(pilot, screen, "without")
        message = screen.monitor.figure_words(screen.runs.run)  # type: ignore[arg-type]
        assert message == "/nowhere/dev_set.json: there is no such file"
        await pilot.press("enter")
        await wait_for_text(pilot, "folder of the run's topics, /nowhere, does not exist")

    home_harness.drive(steps)


def test_an_unreachable_engine_is_reported_and_does_not_block_keys(home_harness: HomeHarness) -> None:
    environ = {"SEARCHAPP_URL": "http://127.0.0.1:9"}

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert "▲ elasticsearch does not answer" in screen_text(pilot)
        assert "Nothing is indexed yet" not in screen_text(pilot)
        await pilot.press("comma")
        assert isinstance(pilot.app.screen, ConfigScreen)
        await pilot.press("q", "down")
        assert screen.tasks.cursor == 1

    home_harness.drive(steps, environ=environ)


def test_the_checks_of_doctor_are_listed(home_harness: HomeHarness) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("D")
        await wait_for(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        await wait_for_text(pilot, "All checks are done.")
        assert "engine answers" in screen_text(pilot)
        await pilot.press("down", "end", "home", "escape")
        assert pilot.app.screen is screen

    home_harness.drive(steps)


def test_changes_by_other_programs_are_shown(
    home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("searchapp.tui.home.overview.EVERY_SECONDS", 0.1)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert screen.tasks.states[0].index is None
        index_sample(home_harness)
        await wait_for(pilot, lambda: screen.tasks.states[0].index)
        await wait_for_overview(pilot, screen)
        assert "70" in screen_text(pilot)

    home_harness.drive(steps)


def test_late_figures_are_added_to_the_list_of_runs(home_harness: HomeHarness) -> None:
    run = home_harness.with_sample("explanation-2019")
    write_reversed(run, home_harness.home / "runs" / "reversed")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        known = dict(screen.monitor._known)
        screen.monitor._known.clear()
        await go_to_run(pilot, screen, run.name)
        await pilot.press("v")
        app = pilot.app
        assert isinstance(app.screen, Picking)
        dialog = app.screen
        assert "…" in dialog.choices[0].about and "…)" in question(pilot)
        screen.monitor._known.update(known)
        screen.show_figures()
        await pilot.pause()
        assert "…" not in dialog.choices[0].about and "…)" not in question(pilot)

    home_harness.drive(steps)


def test_a_change_during_a_refresh_causes_another_refresh(
    home_harness: HomeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, read_overview = threading.Event(), overview.look
    overviews: list[overview.Overview] = []

    def read_late(*arguments: Any) -> Any:
        result = read_overview(*arguments)
        overviews.append(result)
        assert gate.wait(TIMEOUT_SECONDS)
        return result

    async def steps(pilot: P, screen: HomeScreen) -> None:
        monkeypatch.setattr(overview_monitor, "look", read_late)
        monkeypatch.setattr(overview_monitor, "EVERY_SECONDS", 10.0 * TIMEOUT_SECONDS)
        await pilot.press("f5")
        await wait_for(pilot, lambda: overviews)
        stored = directory.read(home_harness._samples.run("explanation-2019"))
        directory.write(home_harness.home / "runs" / "later", stored.manifest, stored.run, {})
        await pilot.press("f5", "f5")
        gate.set()
        await wait_for(pilot, lambda: any(run.path.name == "later" for run in screen.runs.runs))
        assert len(overviews) == 2

    home_harness.drive(steps)
