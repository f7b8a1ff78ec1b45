"""What there is to work on: tasks, runs, figures, and what is remembered of them."""

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
    """A home folder with the index of a sample, and a run of it beside the folder."""
    home = tmp_path_factory.mktemp("overview") / "home"
    data = SAMPLES / TASK
    for command in (
        ["index", TASK, "--data", data],
        ["rank", TASK, "--split", "dev", "--out", home.parent / "far" / "dev", "--data", data],
    ):
        result = run_command(*command, "--home", home, environment=EMBEDDED)
        assert result.code == 0, result.stderr
    return home


def test_what_is_there_is_found(ranked: Path, tmp_path: Path) -> None:
    found = look(Settings(home=ranked), tmp_path)
    assert found.engine is not None and found.engine.name == "embedded" and not found.is_empty
    state = next(one for one in found.tasks if one.task.name == TASK)
    assert state.index is not None and state.has_files and state.is_sample
    assert state.files == state.folder == state.sample
    others = [one for one in found.tasks if one.task.name != TASK]
    assert len(others) == len(names()) - 1 and all(one.index is None and one.files is None for one in others)
    (run,) = found.runs
    assert (run.task, run.manifest.split, run.recipe) == (TASK, "dev", "bm25")
    assert look_into(state.task, state.folder).topics["dev"] == run.manifest.topics
    assert look_into(state.task, tmp_path).topics == {}


def test_an_engine_that_does_not_answer_leaves_the_rest(ranked: Path, tmp_path: Path) -> None:
    settings = Settings(home=ranked, engine="elasticsearch", url="http://127.0.0.1:9", url_given=True)
    found = look(settings, tmp_path)
    assert found.engine is None and "127.0.0.1:9" in found.trouble and not found.is_empty
    assert len(found.tasks) == len(names()) and len(found.runs) == 1


def test_damaged_files_of_the_home_folder_are_noted(tmp_path: Path) -> None:
    (tmp_path / "folders.json").write_text("[")
    (tmp_path / "judgments.sqlite").write_text("no log")
    found = look(Settings(home=tmp_path), tmp_path)
    assert len(found.tasks) == len(names())
    assert len(found.notes) == 2 and all(str(tmp_path) in note for note in found.notes)


def test_a_task_of_ones_own_is_there_while_its_file_is(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(SAMPLES / "own", own)
    home = tmp_path / "home"
    run_command("index", own / "cooking.toml", "--home", home)
    found = look(Settings(home=home), tmp_path)
    assert found.tasks[-1].task.info.file == own / "cooking.toml"
    (own / "cooking.toml").unlink()
    found = look(Settings(home=home), tmp_path)
    assert len(found.tasks) == len(names()) and "cooking.toml" in found.notes[0]


def test_runs_are_listed_once_the_latest_first_and_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"

    def run(path: Path, created: str) -> Path:
        path.mkdir(parents=True)
        described = {
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
        (path / "run.json").write_text(json.dumps(described))
        return path

    here = run(folder / "here", "2026-01-02")
    run(folder / "runs" / "below", "2026-01-03")
    run(home / "runs" / "at home", "2026-01-04")
    far = run(tmp_path / "far", "2026-01-01")
    gone = run(tmp_path / "gone", "2026-01-05")
    run(folder / ".hidden", "2026-01-06")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text('{"format": 1}')
    for path in (here, far, gone, far):
        runs.remember_run(home, path)
    with (home / runs.RUNS_FILE).open("a") as file:
        file.write('{"run": 3}\n[]\nno json\n{"run": "\\u0000"}\n')
    shutil.rmtree(gone)
    assert [one.path.name for one in recent_runs(home, folder)] == ["at home", "below", "here", "far"]
    assert recent_runs(tmp_path / "nowhere", tmp_path / "nowhere") == []


def test_the_oldest_lines_go_when_there_are_too_many(tmp_path: Path) -> None:
    kept = JsonLines(tmp_path / "kept.jsonl", 3)
    for number in range(7):
        kept.add({"number": number})
    assert [one["number"] for one in kept.read()] == [4, 5, 6]
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == 3


def test_a_figure_is_kept_as_long_as_run_and_gold_stay_the_same(ranked: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    run = tmp_path / "run"
    (known,) = recent_runs(ranked, tmp_path)
    shutil.copytree(known.path, run)
    mine = KnownRun(run, known.manifest)
    figures = FigureCache(home)
    assert figures.known(mine) is None
    found = figures.evaluated(mine)
    for again in (figures, FigureCache(home)):
        figure = again.known(mine)
        assert figure is not None and figure.value == found.official.value
    lines = (run / "run.trec").read_text().splitlines(keepends=True)
    (run / "run.trec").write_text("".join(lines[:-1]))
    assert FigureCache(home).known(mine) is None


def test_graded_documents_are_counted_without_what_was_undone(tmp_path: Path) -> None:
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
