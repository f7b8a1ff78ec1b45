"""The overview of the home screen: tasks, runs, their figures and the number of judged documents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from searchapp.app import runs
from searchapp.app.json_lines import JsonLines
from searchapp.app.overview import look, look_into
from searchapp.app.runs import FigureCache, KnownRun, recent_runs
from searchapp.config.settings import Settings
from searchapp.judging.agreement import judged_in
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.resources import SAMPLES
from searchapp.runs.directory import FORMAT
from searchapp.tasks import load, names
from tests.cli.conftest import EMBEDDED, run_command

TASK = "explanation-2019"


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with the index of a sample, and a run of the sample beside the directory."""
    home = tmp_path_factory.mktemp("overview") / "home"
    data = SAMPLES / TASK
    for command in (
        ["index", TASK, "--data", data],
        ["rank", TASK, "--split", "dev", "--out", home.parent / "far" / "dev", "--data", data],
    ):
        result = run_command(*command, "--home", home, environment=EMBEDDED)
        assert result.code == 0, result.stderr
    return home


def test_an_overview_has_engine_tasks_and_runs(ranked: Path, tmp_path: Path) -> None:
    overview = look(Settings(home=ranked), tmp_path)
    assert overview.engine is not None and overview.engine.name == "embedded" and not overview.is_empty
    state = next(task for task in overview.tasks if task.task.name == TASK)
    assert state.index is not None and state.has_files and state.is_sample
    assert state.files == state.folder == state.sample
    others = [task for task in overview.tasks if task.task.name != TASK]
    assert len(others) == len(names()) - 1
    assert all(task.index is None and task.files is None for task in others)
    (run,) = overview.runs
    assert (run.task, run.manifest.split, run.recipe) == (TASK, "dev", "bm25")
    assert look_into(state.task, state.folder).topics["dev"] == run.manifest.topics
    assert look_into(state.task, tmp_path).topics == {}


def test_tasks_and_runs_are_listed_without_the_engine(ranked: Path, tmp_path: Path) -> None:
    settings = Settings(home=ranked, engine="elasticsearch", url="http://127.0.0.1:9", url_given=True)
    overview = look(settings, tmp_path)
    assert overview.engine is None and "127.0.0.1:9" in overview.trouble and not overview.is_empty
    assert len(overview.tasks) == len(names()) and len(overview.runs) == 1


def test_damaged_files_of_the_home_directory_are_noted(tmp_path: Path) -> None:
    (tmp_path / "folders.json").write_text("[")
    (tmp_path / "judgments.sqlite").write_text("no log")
    overview = look(Settings(home=tmp_path), tmp_path)
    assert len(overview.tasks) == len(names())
    assert len(overview.notes) == 2 and all(str(tmp_path) in note for note in overview.notes)


def test_an_own_task_is_listed_until_its_file_is_deleted(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(SAMPLES / "own", own)
    home = tmp_path / "home"
    run_command("index", own / "cooking.toml", "--home", home)
    overview = look(Settings(home=home), tmp_path)
    assert overview.tasks[0].task.info.file == own / "cooking.toml"
    (own / "cooking.toml").unlink()
    overview = look(Settings(home=home), tmp_path)
    assert len(overview.tasks) == len(names()) and "cooking.toml" in overview.notes[0]


def test_runs_are_listed_once_and_latest_first_without_deleted_ones(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"

    def make_run(path: Path, created: str) -> Path:
        path.mkdir(parents=True)
        manifest = {
            **dict.fromkeys(("searchapp", "task", "split", "tag", "data", "mapping_digest"), ""),
            "index_digest": "",
            "created": created,
            "digest": path.name,
            "format": FORMAT,
            "seconds": 0.1,
            "depth": 1,
            "topics": 1,
            "hits": 1,
            "recipe": {},
            "engine": {},
            "data_digests": {},
        }
        (path / "run.json").write_text(json.dumps(manifest))
        return path

    beside = make_run(folder / "beside", "2026-01-02")
    make_run(folder / "runs" / "below", "2026-01-03")
    make_run(home / "runs" / "at home", "2026-01-04")
    far = make_run(tmp_path / "far", "2026-01-01")
    deleted = make_run(tmp_path / "deleted", "2026-01-05")
    make_run(folder / ".hidden", "2026-01-06")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text('{"format": 1}')
    for path in (beside, far, deleted, far):
        runs.remember_run(home, path)
    with (home / runs.RUNS_FILE).open("a") as file:
        file.write('{"run": 3}\n[]\nno json\n{"run": "\\u0000"}\n')
    shutil.rmtree(deleted)
    assert [run.path.name for run in recent_runs(home, folder)] == ["at home", "below", "beside", "far"]
    assert recent_runs(tmp_path / "nowhere", tmp_path / "nowhere") == []


def test_the_oldest_lines_above_the_limit_are_dropped(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "lines.jsonl", 3)
    for number in range(7):
        lines.add({"number": number})
    assert [line["number"] for line in lines.read()] == [4, 5, 6]
    assert len((tmp_path / "lines.jsonl").read_text().splitlines()) == 3


def test_a_figure_is_cached_until_the_run_changes(ranked: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (original,) = recent_runs(ranked, tmp_path)
    run = KnownRun(shutil.copytree(original.path, tmp_path / "run"), original.manifest)
    cache = FigureCache(home)
    assert cache.known(run) is None
    evaluated = cache.evaluated(run)
    for reader in (cache, FigureCache(home)):
        figure = reader.known(run)
        assert figure is not None and figure.value == evaluated.official.value
    trec = run.path / "run.trec"
    trec.write_text("".join(trec.read_text().splitlines(keepends=True)[:-1]))
    assert FigureCache(home).known(run) is None


def test_graded_documents_are_counted_without_undone_grades(tmp_path: Path) -> None:
    path = tmp_path / "judgments.sqlite"
    assert judged_in(path) == {}
    with JudgmentLog(path) as log:
        ann, ben = (Session(log, "nlps", Author(name)) for name in ("ann", "ben"))
        ann.grade([SeenDocument("1", "a"), SeenDocument("1", "b")], 1)
        ann.grade([SeenDocument("1", "a")], 0)
        ben.grade([SeenDocument("1", "a")], 1)
        ben.skip(SeenDocument("1", "c"))
        ann.undo()
        ann.undo()
        assert judged_in(path) == {"nlps": 1}
        ann.redo()
        assert judged_in(path) == {"nlps": 3}
        Session(log, "checkthat", Author("ann")).grade([SeenDocument("1", "a")], 1)
    assert judged_in(path) == {"nlps": 3, "checkthat": 1}
    assert look(Settings(home=tmp_path), tmp_path).tasks[0].judged == 3
    assert load("nlps").name == "nlps"
