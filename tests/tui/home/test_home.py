"""The home screen: what it shows, and what is begun from it."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual import events

from searchapp.app import overview, runs
from searchapp.app.evaluate import GoldSource, evaluate
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import VersionState
from searchapp.judging.log import JudgmentLog
from searchapp.lucene.index.writer import IndexWriter
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.home import overview as watching
from searchapp.tui.home.indexing import Indexing
from searchapp.tui.home.screen import KEY_ACTIONS, HomeApp, HomeScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.dialogs import Choose, Help, Picking, ReportDialog
from searchapp.tui.search.screen import SearchScreen
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import PATIENCE_SECONDS, SAMPLES, question, require_complete
from tests.tui.home.conftest import AtHome, P, comes, in_front, looked, seen, shows, to_run


def test_with_nothing_indexed_it_says_what_to_do(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        require_complete(screen)
        text = seen(pilot)
        assert "● embedded answers" in text and "nlps" in text and "checkthat" in text
        assert "Nothing is indexed yet. i indexes its sample" in text
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Choose) and "Index nlps from which source?" in seen(pilot)
        await pilot.press("escape", "tab")
        assert "No runs yet" in seen(pilot)
        await pilot.press("e")
        assert "no run is selected: tab goes to the runs" in seen(pilot)
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Help)
        await pilot.press("escape", "q")
        assert pilot.app._exit

    at_home.drive(steps, (80, 24))


def test_keys_that_come_before_anything_is_drawn_mean_the_same(at_home: AtHome) -> None:
    at_home.with_sample("explanation-2019")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await comes(pilot, lambda: screen.runs.runs)
        for key in ("tab", "z", "tab", "z", "tab", "tab", "e"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await comes(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))

    at_home.drive(steps)


def test_the_sample_is_indexed_and_searched_from_here(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "s")
        await shows(pilot, "nlps-sample: indexed 70 documents into searchapp-nlps-sample-000001")
        await comes(pilot, lambda: screen.tasks.states[-1].index)
        assert screen.tasks.states[0].index is None and screen.tasks.states[-1].task.name == "nlps-sample"
        await pilot.press("end")
        await shows(pilot, "train 12, dev 10")
        await pilot.press("enter")
        await in_front(pilot, SearchScreen)
        await pilot.press(*"compact")
        await shows(pilot, "5 documents")
        await pilot.press("escape", "t")
        await shows(pilot, "Judge documents for the topic")
        await pilot.press("escape", "q")
        assert pilot.app.screen is screen and not screen.opener._opened
        assert not (at_home.home / "folders.json").exists()

    at_home.drive(steps)


def test_an_index_is_replaced_by_other_documents_only_after_a_question(
    at_home: AtHome, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SAMPLES / "nlps", tmp_path / "other"))
    documents = json.loads((data / "knowledge_base.json").read_text())
    others = {name: f"{text} Not so." for name, text in documents.items()}
    index_here(at_home)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        (data / "knowledge_base.json").write_text(json.dumps(others))
        before = screen.tasks.states[0].index
        for answer in ("n", "y"):
            await pilot.press("i", "f", *str(data), "enter")
            await comes(pilot, lambda: "Replace the index with these documents?" in question(screen.app))  # type: ignore[arg-type]
            assert "shares only 0 of 70 documents with searchapp-nlps-000001. " in question(screen.app)  # type: ignore[arg-type]
            await looked(pilot, screen)
            assert screen.tasks.states[0].index == before
            await pilot.press(answer)
        await comes(pilot, lambda: screen.tasks.states[0].index != before)

    at_home.drive(steps)


class Slow:
    """Documents none of which is indexed before somebody stops that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go = threading.Event()
        self.read = 0
        original = IndexWriter._add

        def slowly(writer: IndexWriter, document_id: str, source: dict[str, Any]) -> None:
            self.read += 1
            self.may_go.wait(60)
            original(writer, document_id, source)

        monkeypatch.setattr(IndexWriter, "_add", slowly)
        stop = Indexing.stop

        def stop_and_go_on(indexing: Indexing) -> None:
            stop(indexing)
            self.may_go.set()

        monkeypatch.setattr(Indexing, "stop", stop_and_go_on)


def larger_sample(folder: Path) -> Path:
    """A folder with the sample and one document more."""
    shutil.copytree(SAMPLES / "nlps", folder)
    base = json.loads((folder / "knowledge_base.json").read_text())
    base["9999"] = "One more."
    (folder / "knowledge_base.json").write_text(json.dumps(base))
    return folder


def index_here(at_home: AtHome) -> None:
    """Index the sample in the home folder itself."""
    from searchapp.app.index import index_task
    from searchapp.progress import SilentProgress
    from searchapp.tasks import load

    task = load("nlps")
    with closing(open_engine(Settings(home=at_home.home))) as engine:
        index_task(task, engine, task.collection(SAMPLES / "nlps"), SilentProgress())


def test_what_is_stopped_leaves_the_old_index_and_nothing_else(
    at_home: AtHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_here(at_home)
    slow, data = Slow(monkeypatch), larger_sample(tmp_path / "larger")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "f", *str(data), "enter")
        await comes(pilot, lambda: slow.read)
        assert "x stops it" in seen(pilot)
        await pilot.press("down", "i")  # no key waits for it
        assert "nlps is being indexed: x stops it" in seen(pilot)
        await pilot.press("q")
        assert "Stop indexing and leave?" in seen(pilot)
        await pilot.press("n", "x")
        await shows(pilot, "nlps: indexing stopped, nothing was changed")
        await pilot.press("home", "enter")
        await in_front(pilot, SearchScreen)

    at_home.drive(steps)
    with closing(open_engine(Settings(home=at_home.home))) as engine:
        (version,) = engine.stored()
        assert (
            version.state is VersionState.live and version.info is not None and version.info.documents == 70
        )
    assert not list(at_home.home.rglob("*.tmp"))
    assert not (at_home.home / "folders.json").exists()


def test_a_folder_that_is_typed_is_indexed_and_remembered(at_home: AtHome, tmp_path: Path) -> None:
    data = larger_sample(tmp_path / "larger")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "f", *"nowhere", "enter")
        assert "there is no folder " in seen(pilot)
        await pilot.press("i", "f", *str(data), "enter")
        await shows(pilot, "nlps: indexed 71 documents into searchapp-nlps-000001")
        await comes(pilot, lambda: screen.tasks.states[0].has_files)
        await pilot.press("i")
        assert "Its files in " in seen(pilot)

    at_home.drive(steps)
    assert json.loads((at_home.home / "folders.json").read_text())["folders"] == {"nlps": str(data)}


TOO_LONG, NOBODYS = "x" * 300 + ".toml", "~nobody-of-this-name/x.toml"


@pytest.mark.parametrize("keys", [("i", "f"), ("n",)])
def test_a_path_that_no_file_can_have_is_refused(at_home: AtHome, keys: tuple[str, ...]) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        for path, said in ((TOO_LONG, "file name too long"), (NOBODYS, "no user on this machine")):
            await pilot.press(*keys)
            pilot.app.post_message(events.Paste(path))
            await pilot.pause()
            await pilot.press("enter")
            await comes(pilot, partial(contains, screen, said))

    def contains(screen: HomeScreen, said: str) -> bool:
        return said in screen._details.text.plain

    at_home.drive(steps)


def test_invalid_files_are_told_problem_by_problem(at_home: AtHome, tmp_path: Path) -> None:
    data = larger_sample(tmp_path / "larger")
    (data / "dev_set.json").write_text('{"1": {"stmt": 3}, "2": {"stmt": 4}}')

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "f", *str(data), "enter")
        await comes(pilot, lambda: screen.indexer.indexing is None)
        await shows(pilot, "problems")
        assert screen._details.text.plain.count("dev_set.json: statement") == 2

    at_home.drive(steps)


def test_leaving_while_something_is_indexed_stops_it(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "s")
        await comes(pilot, lambda: slow.read)
        await pilot.press("q", "y")
        assert pilot.app._exit

    at_home.drive(steps)
    with closing(open_engine(Settings(home=at_home.home))) as engine:
        assert engine.stored() == []


def test_a_signal_stops_what_is_indexed(at_home: AtHome, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("i", "s")
        await comes(pilot, lambda: slow.read)
        words = screen.last_words()
        assert words is not None and "indexing nlps-sample was stopped" in words
        with closing(open_engine(Settings(home=at_home.home))) as engine:
            assert engine.stored() == []

    at_home.drive(steps)


def test_a_task_of_ones_own_is_indexed_by_its_file(at_home: AtHome) -> None:
    file = SAMPLES / "own" / "cooking.toml"

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("n", *"notes.txt", "enter")
        assert "its name must end in .toml" in seen(pilot).replace("\n", "")
        await pilot.press("n", *str(file), "enter")
        await comes(pilot, lambda: [one for one in screen.tasks.states if one.task.info.file])
        await pilot.press("end")
        assert "task file" in seen(pilot)

    at_home.drive(steps)


def test_a_run_is_judged_and_what_was_done_is_told(at_home: AtHome) -> None:
    at_home.with_sample()

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("tab", "enter")
        await in_front(pilot, JudgeScreen)
        await pilot.press("1", "0", "u")
        await pilot.press("q")
        assert pilot.app.screen is screen and "judged 1 document" in seen(pilot)
        await shows(pilot, "1 judged")

    at_home.drive(steps)
    with JudgmentLog(at_home.home / "judgments.sqlite") as log:
        assert [event.annotator for _place, event in log.events()] == ["ann"] * 3
        assert log.windows("nlps", "ann", 0) == []


def test_the_topics_of_a_run_are_walked_from_here(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("t")
        assert "no run is selected" in seen(pilot)
        await pilot.press("tab", "t")
        await in_front(pilot, TopicsScreen)
        await shows(pilot, "missed")
        await pilot.press("q")
        assert pilot.app.screen is screen

    at_home.with_sample()
    at_home.drive(steps)


def test_a_run_is_compared_with_another_one_from_here(at_home: AtHome, tmp_path: Path) -> None:
    run = at_home.with_sample("explanation-2019")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("v")
        assert "no run is selected" in seen(pilot)
        await to_run(pilot, screen, run.name)
        await pilot.press("v")
        assert "there is no other run of explanation-2019 dev to compare it with" in seen(pilot)

    at_home.drive(steps)
    made = directory.read(run)
    turned = [Ranking(one.topic_id, Hits(one.document_ids()[::-1], one.hits.scores)) for one in made.run]
    folder = at_home.home / "runs"
    directory.write(folder / "turned", made.manifest, Run("turned", tuple(turned)), {})
    directory.write(folder / "fewer", made.manifest, Run("fewer", tuple(turned[1:])), {})

    async def compares(pilot: P, screen: HomeScreen) -> None:
        await to_run(pilot, screen, run.name)
        await pilot.press("v", *"turned", "enter")
        await in_front(pilot, CompareScreen)
        await shows(pilot, "by topic · largest gains first")
        await pilot.press("q")
        assert pilot.app.screen is screen
        await pilot.press("v", *"fewer", "enter")
        await comes(pilot, lambda: "Compare them anyway?" in question(screen.app))  # type: ignore[arg-type]
        await pilot.press("y")
        await in_front(pilot, CompareScreen)
        await shows(pilot, "the runs are compared although")

    at_home.drive(compares)


def test_the_official_figure_is_that_of_evaluate_and_is_computed_once(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at_home.with_sample("explanation-2019")
    (expected,) = evaluate([path], GoldSource())

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert f"{expected.official.value:.4f}" in seen(pilot)
        await pilot.press("tab")
        assert f"{expected.official.measure} {expected.official.value:.6f}" in seen(pilot)

    at_home.drive(steps)
    monkeypatch.setattr(runs, "evaluate", pytest.fail)
    at_home.drive(steps)


def test_a_run_is_evaluated_with_all_its_figures(at_home: AtHome) -> None:
    path = at_home.with_sample("explanation-2019")
    (expected,) = evaluate([path], GoldSource())

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("tab", "e")
        await comes(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        text = seen(pilot)
        assert f"{expected.official.value:.6f}  (official)" in text
        assert all(
            name in text and f"{value:.6f}" in text for name, value in expected.measures.values.items()
        )
        await pilot.press("escape")
        assert pilot.app.screen is screen

    at_home.drive(steps)


def test_runs_that_rank_has_written_are_found_wherever_they_are(at_home: AtHome, tmp_path: Path) -> None:
    path = at_home.with_sample()
    shutil.copytree(path, tmp_path / "elsewhere" / "far")
    shutil.copytree(path, at_home.folder / "near")
    (at_home.folder / "near.txt").write_text("no run")
    runs.remember_run(at_home.home, tmp_path / "elsewhere" / "far")
    runs.remember_run(at_home.home, tmp_path / "gone")

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert {run.path.name for run in screen.runs.runs} == {"nlps", "far", "near"}
        await to_run(pilot, screen, "far")
        shutil.rmtree(tmp_path / "elsewhere")
        await pilot.press("enter")
        await shows(pilot, "there is no run directory or TREC run")
        await pilot.press("r")
        await comes(pilot, lambda: len(screen.runs.runs) == 2)

    at_home.drive(steps)


def test_a_run_without_its_gold_says_why_it_has_no_figure(at_home: AtHome, tmp_path: Path) -> None:
    path = at_home.with_sample()
    run = at_home.folder / "without"
    shutil.copytree(path, run)
    (run / "run.json").write_text((run / "run.json").read_text().replace(str(SAMPLES / "nlps"), "/nowhere"))

    async def steps(pilot: P, screen: HomeScreen) -> None:
        await to_run(pilot, screen, "without")
        words = screen.monitor.figure_words(screen.runs.run)  # type: ignore[arg-type]
        assert words == "/nowhere/dev_set.json: no such file or directory"
        await pilot.press("enter")
        await shows(pilot, "folder of the run's topics, /nowhere, does not exist")

    at_home.drive(steps)


def test_an_engine_that_does_not_answer_is_told_and_keeps_no_key_waiting(at_home: AtHome) -> None:
    environ = {"SEARCHAPP_URL": "http://127.0.0.1:9"}

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert "▲ elasticsearch does not answer" in seen(pilot)
        assert "Nothing is indexed yet" not in seen(pilot)
        await pilot.press("s")
        assert isinstance(pilot.app.screen, ConfigScreen)
        await pilot.press("q", "down")
        assert screen.tasks.cursor == 1

    at_home.drive(steps, environ=environ)


def test_the_doctors_checks_come_one_by_one(at_home: AtHome) -> None:
    async def steps(pilot: P, screen: HomeScreen) -> None:
        await pilot.press("c")
        await comes(pilot, lambda: isinstance(pilot.app.screen, ReportDialog))
        await shows(pilot, "All checks are done.")
        assert "engine answers" in seen(pilot)
        await pilot.press("down", "end", "home", "escape")
        assert pilot.app.screen is screen

    at_home.drive(steps)


def test_what_changes_elsewhere_is_seen_here(at_home: AtHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchapp.tui.home.overview.EVERY_SECONDS", 0.1)

    async def steps(pilot: P, screen: HomeScreen) -> None:
        assert screen.tasks.states[0].index is None
        index_here(at_home)
        await comes(pilot, lambda: screen.tasks.states[0].index)
        await looked(pilot, screen)
        assert "70" in seen(pilot)

    at_home.drive(steps)


def test_the_documentation_has_every_action_and_its_keys() -> None:
    text = (Path(__file__).parents[3] / "docs" / "use" / "home.md").read_text(encoding="utf-8")
    for action in KEY_ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.keys)
        row = f"| `{action.name}` | {keys} | {action.about} |"
        assert row in text, f"docs/use/home.md lacks the row {row}"


def test_no_two_actions_have_one_key_by_default() -> None:
    every = [key for action in KEY_ACTIONS for key in action.keys]
    assert len(every) == len(set(every))


def test_figures_that_come_late_are_shown_where_a_run_is_chosen(at_home: AtHome) -> None:
    run = at_home.with_sample("explanation-2019")
    made = directory.read(run)
    turned = [Ranking(one.topic_id, Hits(one.document_ids()[::-1], one.hits.scores)) for one in made.run]
    directory.write(at_home.home / "runs" / "turned", made.manifest, Run("turned", tuple(turned)), {})

    async def steps(pilot: P, screen: HomeScreen) -> None:
        known = dict(screen.monitor._known)
        screen.monitor._known.clear()
        await to_run(pilot, screen, run.name)
        await pilot.press("v")
        app = pilot.app
        assert isinstance(app, HomeApp) and isinstance(app.screen, Picking)
        dialog = app.screen
        assert "…" in dialog.choices[0].about and "…)" in question(app)
        screen.monitor._known.update(known)
        screen.show_figures()
        await pilot.pause()
        assert "…" not in dialog.choices[0].about and "…)" not in question(app)

    at_home.drive(steps)


def test_what_changes_while_it_is_looked_is_looked_for_again(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, look = threading.Event(), overview.look
    looks: list[overview.Overview] = []

    def look_late(*arguments: Any) -> Any:
        found = look(*arguments)
        looks.append(found)
        assert gate.wait(PATIENCE_SECONDS)
        return found

    async def steps(pilot: P, screen: HomeScreen) -> None:
        monkeypatch.setattr(watching, "look", look_late)
        monkeypatch.setattr(watching, "EVERY_SECONDS", 10.0 * PATIENCE_SECONDS)
        await pilot.press("r")
        await comes(pilot, lambda: looks)
        made = directory.read(at_home._prepared.run("explanation-2019"))
        directory.write(at_home.home / "runs" / "later", made.manifest, made.run, {})
        await pilot.press("r", "r")
        gate.set()
        await comes(pilot, lambda: any(one.path.name == "later" for one in screen.runs.runs))
        assert len(looks) == 2

    at_home.drive(steps)
