"""The public Python API on the nlps sample, beside the commands."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import searchapp as sa
from searchapp.app.rank import rerun, verify_run
from searchapp.engines import open_engine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.formats import frames, trec
from searchapp.formats.problems import Problems
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.model import float32
from searchapp.progress import SilentProgress
from tests.cli.conftest import Result, run_command

HOSTILE = "<script>alert(1)</script>"


def command(*words: object, home: Path | None = None) -> Result:
    """Run a command with the embedded engine, which needs no home directory for saved runs."""
    options = ("--engine", "embedded", *(("--home", home) if home else ()))
    result = run_command(*words, *options)
    assert result.code == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def run(index: sa.Index) -> sa.Run:
    return index.rank("dev", recipe="bm25")


def test_importing_the_package_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import searchapp; print(*sorted(set(sys.modules) - before))"
    )
    modules = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    packages = {name.partition(".")[0] for name in modules}
    assert packages - set(sys.stdlib_module_names) == {"searchapp"}
    assert [name for name in modules if name.startswith("searchapp")] == ["searchapp"]


def test_every_public_name_exists() -> None:
    assert [name for name in sa.__all__ if getattr(sa, name, None) is None] == []
    assert set(dir(sa)) == set(sa.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Indx'"):
        _ = sa.Indx  # type: ignore[attr-defined]


def test_a_task_describes_its_files(task: sa.Task) -> None:
    assert task.splits == ("train", "dev", "test")
    assert "bm25" in task.recipes
    assert {topic.id for topic in task.topics("dev")} == set(task.qrels("dev"))
    with pytest.raises(sa.UsageError, match="no split 'de'"):
        task.topics("de")
    with pytest.raises(sa.UsageError, match="unknown task"):
        sa.task("nlsp")


def test_a_search_equals_the_command(home: Path, index: sa.Index) -> None:
    hits = index.search("commutative ring", size=3)
    result = command(
        "search",
        "nlps-sample",
        "commutative ring",
        "--size",
        3,
        "--json",
        "--home",
        home,
        "--engine",
        "embedded",
    )
    printed = json.loads(result.stdout)
    assert [(hit["id"], hit["score"]) for hit in printed["hits"]] == [tuple(result.hit) for result in hits]
    assert len(hits) == 3 and hits[0].rank == 1


def test_a_run_equals_the_command(home: Path, run: sa.Run, tmp_path: Path) -> None:
    saved = run.save(tmp_path / "api")
    command("rank", "nlps-sample", "--split", "dev", "--recipe", "bm25", "--out", tmp_path / "cli", home=home)
    assert (tmp_path / "api" / "run.trec").read_bytes() == (tmp_path / "cli" / "run.trec").read_bytes()
    manifests = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("api", "cli")]
    for manifest in manifests:
        for varying in ("created", "seconds", "digest"):
            del manifest[varying]
    assert manifests[0] == manifests[1]
    assert sa.read_run(tmp_path / "api").rankings == saved.rankings == run.rankings
    with pytest.raises(sa.UsageError, match="exists already"):
        run.save(tmp_path / "api")
    with pytest.raises(sa.UsageError, match="saved already"):
        saved.save(tmp_path / "again")


def test_nothing_is_written_without_save(
    run: sa.Run, index: sa.Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index.rank("dev", recipe="bm25", depth=5)
    assert list(tmp_path.iterdir()) == []
    assert run.path is None


def test_figures_equal_the_command(run: sa.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    result = command("evaluate", tmp_path / "run", "--cutoff", 10, "--measure", "AP", "--json")
    printed = json.loads(result.stdout)
    evaluation = run.evaluate(["AP"], cutoff=10)
    assert evaluation.official.values == printed["official"]["values"]
    assert evaluation.measures.values == printed["measures"]
    with pytest.raises(sa.NotScorable, match="not 500"):
        run.evaluate()


def test_grades_replace_the_gold(task: sa.Task, run: sa.Run) -> None:
    qrels = task.qrels("dev")
    frame = pd.DataFrame(
        [(topic, document, grade) for topic, grades in qrels.items() for document, grade in grades.items()],
        columns=["qid", "docno", "label"],
    )
    expected = run.evaluate(["AP", "nDCG@10"], cutoff=10).measures.values
    for grades in (qrels, frame, pl.from_pandas(frame)):
        measured = run.evaluate(["AP", "nDCG@10"], qrels=grades, cutoff=10).measures.values
        assert {name: measured[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("style", ["pyterrier", "ir_measures", "trec"])
def test_a_run_survives_a_data_frame(run: sa.Run, task: sa.Task, style: str, library: str) -> None:
    frame = run.to_frame(style, library=library)
    again = sa.Run.from_frame(frame, task=task, split="dev", tag=run.tag)
    assert [(topic, hits.document_ids) for topic, hits in again.items()] == [
        (topic, hits.document_ids) for topic, hits in run.items()
    ]
    bare = sa.Run.from_frame(frame)
    assert list(map(list, bare.values())) == list(map(list, again.values()))
    assert bare.to_frame(style, library=library).equals(frame)
    assert again.tag == run.tag and again.queries == run.queries
    assert again.evaluate(["nDCG@10"], cutoff=10).official.measure == "MAP@10"


def test_a_frame_of_pyterrier_has_queries_and_ranks_from_0(run: sa.Run) -> None:
    frame = run.to_frame()
    assert list(frame.columns) == ["qid", "query", "docno", "score", "rank"]
    first = frame[frame["qid"] == frame["qid"][0]]
    assert list(first["rank"]) == list(range(len(first)))
    assert list(first["score"]) == sorted(first["score"], reverse=True)


def test_scores_of_a_frame_decrease_unless_they_are_the_engines(index: sa.Index) -> None:
    run = index.rank("dev", recipe="neighbours")
    assert trec.reordered(run.rankings) > 0
    frame, engine_scores = run.to_frame(), run.to_frame(engine_scores=True)["score"]
    assert list(engine_scores) == [hit.score for hits in run.values() for hit in hits]
    assert list(frame["score"]) != list(engine_scores)
    for _, scores in frame.groupby("qid")["score"]:
        assert (scores.diff().dropna() < 0).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_grades_have_frames(task: sa.Task, run: sa.Run, tmp_path: Path, library: str) -> None:
    qrels = task.qrels("dev")
    columns = {
        "pyterrier": ["qid", "docno", "label"],
        "ir_measures": ["query_id", "doc_id", "relevance"],
        "trec": ["topic", "iteration", "document", "grade"],
    }
    for style, names in columns.items():
        frame = qrels.to_frame(style, library=library)
        assert list(frame.columns) == names
        assert frames.grades(frame) == qrels
    expected = run.evaluate(["AP"], qrels=qrels, cutoff=10).measures.values
    assert run.evaluate(["AP"], qrels=frame, cutoff=10).measures.values == expected
    empty = task.judgments(tmp_path / "none").to_frame(library=library)
    assert list(empty.columns) == columns["pyterrier"] and len(empty) == 0
    with pytest.raises(sa.UsageError, match="unknown style"):
        qrels.to_frame("terrier")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_comparisons_have_frames(index: sa.Index, library: str) -> None:
    result = sa.Experiment(index, "dev", ["bm25", "neighbours", "best"], cutoff=10).run()
    comparison = result.comparison
    official, *_ = comparison.measures
    runs = result.to_frame(library=library)
    assert list(runs["system"]) == ["bm25", "neighbours", "best"]
    assert list(runs[official.name]) == list(official.means)
    pairs = result.to_frame("pairs", library=library)
    assert len(pairs) == 3 * len(comparison.measures)
    first = official.pairs[0]
    row = {name: pairs[name][0] for name in pairs.columns}
    assert (row["measure"], row["first"], row["second"]) == (official.name, "bm25", "neighbours")
    assert row["difference"] == first.difference.mean and row["wins"] == first.difference.wins
    assert row["randomisation holm"] == first.difference.p
    topics = comparison.to_frame("topics", library=library)
    values = dict(
        zip(zip(topics["measure"], topics["run"], topics["topic"], strict=True), topics["value"], strict=True)
    )
    assert values[official.name, "bm25", "602"] == official.values[0]["602"]
    with pytest.raises(sa.UsageError, match=r"unknown rows of a comparison 'pair' \(did you mean pairs\?\)"):
        comparison.to_frame("pair")


def test_an_empty_run_has_an_empty_frame() -> None:
    empty = sa.Run.from_frame(pd.DataFrame({"qid": [], "docno": [], "score": []}))
    assert len(empty) == 0 and len(empty.to_frame()) == 0


def test_problems_of_frames_are_errors(task: sa.Task) -> None:
    with pytest.raises(sa.UsageError, match="no column docno, doc_id or document"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1"], "score": [1.0]}))
    with pytest.raises(sa.UsageError, match="neither a column score nor a column rank"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1"], "docno": ["2"]}))
    with pytest.raises(sa.UsageError, match="both the task and the split"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1"], "docno": ["2"], "score": [1.0]}), task=task)
    unknown = pd.DataFrame({"qid": ["602", "602"], "docno": ["nowhere", "neither"], "score": [1.0, 2.0]})
    with pytest.raises(sa.InvalidFiles, match="2 problems: unknown document"):
        sa.Run.from_frame(unknown, task=task, split="dev")
    with pytest.raises(
        sa.UsageError, match="row 2 of the data frame has the score nan, which is not a number"
    ):
        sa.Run.from_frame(
            pd.DataFrame({"qid": ["1", "1"], "docno": ["2", "3"], "score": [1.0, float("nan")]})
        )
    with pytest.raises(sa.UsageError, match="row 1 of the data frame has the rank 0.5: round it"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1"], "docno": ["2"], "rank": [0.5]}))
    with pytest.raises(sa.UsageError, match="row 2 of the data frame repeats 2 for 1"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1", "1"], "docno": ["2", "2"], "score": [1.0, 2.0]}))
    with pytest.raises(
        sa.UsageError, match="row 2 of the data frame has the document nan, which is not text"
    ):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1", "1"], "docno": ["2", None], "score": [1.0, 2.0]}))
    with pytest.raises(sa.UsageError, match="row 1 of the data frame has the topic 1.0, which is not text"):
        sa.Run.from_frame(pd.DataFrame({"qid": [1, None], "docno": ["2", "3"], "score": [1.0, 2.0]}))
    with pytest.raises(sa.UsageError, match="unknown style"):
        sa.Run.from_frame(pd.DataFrame({"qid": ["1"], "docno": ["2"], "score": [1.0]})).to_frame("terrier")


def test_own_topics_are_ranked_as_typed_words(index: sa.Index) -> None:
    texts = ["prime numbers", "commutative ring"]
    frame = pd.DataFrame({"qid": ["a", "b"], "query": texts})
    runs = [
        index.rank(topics, recipe="bm25", depth=5)
        for topics in (texts, {"a": texts[0], "b": {"text": texts[1]}}, frame, pl.from_pandas(frame))
    ]
    assert [list(run) for run in runs] == [["1", "2"], ["a", "b"], ["a", "b"], ["a", "b"]]
    assert len({tuple(run.values()) for run in runs}) == 1
    expected = index.search("prime numbers", recipe="bm25", size=5, literal=True)
    assert list(runs[0]["1"]) == [result.hit for result in expected]
    with pytest.raises(sa.UsageError, match="topic c is 3: give its text"):
        index.rank({"c": 3})
    with pytest.raises(sa.UsageError, match="topic a is given twice"):
        index.rank(pd.DataFrame({"qid": ["a", "a"], "query": texts}))
    assert len(index.rank([])) == 0


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_a_run_of_own_topics_is_verified_and_repeated(
    index: sa.Index, home: Path, recipe: str, tmp_path: Path
) -> None:
    run = index.rank({"a": "prime numbers", "b": HOSTILE}, recipe=recipe, depth=5)
    saved = run.save(tmp_path / "run")
    assert verify_run(tmp_path / "run").problems == ()
    engine = open_engine(index._settings)
    repeated = rerun(tmp_path / "run", engine, tmp_path / "again", SilentProgress(), home=home)
    engine.close()
    assert repeated.differences == ()
    assert sa.read_run(tmp_path / "again").rankings == saved.rankings
    with pytest.raises(sa.UsageError, match="no gold to score"):
        saved.evaluate()


def test_runs_are_compared(run: sa.Run, index: sa.Index, task: sa.Task, tmp_path: Path) -> None:
    other = index.rank("dev", recipe="neighbours")
    comparison = sa.compare(run, other, cutoff=10)
    run.save(tmp_path / "a"), other.save(tmp_path / "b")
    result = command("compare", tmp_path / "a", tmp_path / "b", "--cutoff", 10, "--json")
    assert json.loads(result.stdout)["measures"] == [
        {**measured.to_json(["a", "b"])} for measured in comparison.measures
    ]
    experiment = sa.Experiment(index, "dev", ["bm25", "neighbours"], baseline="bm25", cutoff=10).run()
    assert experiment.runs["bm25"].rankings.rankings == run.rankings.rankings
    assert experiment.comparison.measures[0].means == comparison.measures[0].means
    with pytest.raises(sa.UsageError, match="the baseline best is not among the recipes"):
        sa.Experiment(index, "dev", ["bm25"], baseline="best").run()
    with pytest.raises(sa.UsageError, match="the baseline searchapp-bm25 is not among the runs"):
        sa.compare(other, other, baseline=run)
    with pytest.raises(sa.UsageError, match="at least two runs"):
        sa.compare(run)
    with pytest.raises(sa.UsageError, match="of no task"):
        sa.compare(run, sa.Run.from_frame(other.to_frame()))
    own = index.rank(["prime numbers"], recipe="bm25")
    with pytest.raises(sa.DataError, match="their splits differ"):
        sa.compare(run, own, cutoff=10)


def test_judgments_are_read(task: sa.Task, run: sa.Run, tmp_path: Path) -> None:
    path = tmp_path / "judgments.sqlite"
    assert task.judgments(path) == {} and not path.exists()
    with JudgmentLog(path) as log:
        for name, grade in (("ann", 1), ("ben", 1), ("eve", 0)):
            log.append([Author(name).event("nlps-sample", "602", "301", Action.grade, grade=grade)])
        log.append([Author("ann").event("nlps", "602", "302", Action.grade, grade=1)])
    assert task.judgments(path) == {"602": {"301": 1}}
    assert task.judgments(path, annotators=["eve"]) == {"602": {"301": 0}}
    assert task.judgments(path, aggregation="unanimous") == {}
    with pytest.raises(sa.UsageError, match="unknown aggregation"):
        task.judgments(path, aggregation="mean")
    measured = run.evaluate(["P@5"], qrels=task.judgments(path), cutoff=10)
    assert measured.judged is not None and measured.judged["topics"] == 1


def test_progress_is_reported(index: sa.Index) -> None:
    reports: list[tuple[str, int, int | None]] = []
    index.rank("dev", recipe="bm25", depth=5, progress=lambda *report: reports.append(report))
    ranking = [(done, total) for stage, done, total in reports if stage == "ranking"]
    assert ranking[0] == (0, 10) and ranking[-1] == (10, 10)


def test_a_failing_callback_stops_the_work(index: sa.Index) -> None:
    def stop(_stage: str, done: int, _total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.rank("dev", recipe="bm25", progress=stop)
    assert len(index.rank("dev", recipe="bm25", depth=1)) == 10


def test_files_are_read_once_until_they_change(home: Path, task: sa.Task, tmp_path: Path) -> None:
    folder = shutil.copytree(task.folder, tmp_path / "data")
    copied = sa.task("nlps", home=home, data=folder, engine="embedded")
    first = copied._collection()
    assert copied._collection() is first
    assert copied._collection().topics("dev", Problems()) == task.topics("dev")
    changed = next(file for file in first.split_files("dev"))
    content = json.loads(changed.read_text())
    content.popitem()
    changed.write_text(json.dumps(content))
    assert copied._collection() is not first
    assert len(copied.topics("dev")) == len(task.topics("dev")) - 1


def test_a_twin_serves_another_thread(index: sa.Index) -> None:
    expected = [result.hit for result in index.search("ring", size=5)]
    answers: list[list[sa.Hit]] = []

    def search() -> None:
        with index.twin() as twin:
            answers.append([result.hit for result in twin.search("ring", size=5)])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


def test_everything_works_inside_an_event_loop(index: sa.Index) -> None:
    async def rank() -> sa.Run:
        return index.rank("dev", recipe="best", depth=5)

    assert len(asyncio.run(rank())) == 10


def test_documents_are_found_and_explained(index: sa.Index) -> None:
    (first, *_) = index.search("prime numbers")
    document = index.document(first.hit.document_id)
    assert document is not None and document.text == first.text
    assert index.document("nowhere") is None
    explanation = index.explain("prime numbers", first.hit.document_id)
    assert explanation is not None and float32(explanation.value) == first.hit.score
    assert index.explain("prime numbers", "nowhere") is None


def test_notebooks_show_escaped_tables(index: sa.Index, run: sa.Run) -> None:
    shown = index.search("prime ring integer number")._repr_html_()
    assert shown.count("<tr>") == 11 and "<td>1</td>" in shown
    frame = pd.DataFrame({"qid": [HOSTILE], "docno": [HOSTILE], "score": [1.0]})
    hostile = sa.Run.from_frame(frame)._repr_html_()
    assert HOSTILE not in hostile and "&lt;script&gt;" in hostile
    assert "10 topics" in run._repr_html_()


def test_notebooks_show_figures_differences_and_explanations(index: sa.Index, run: sa.Run) -> None:
    evaluation = run.evaluate(["AP"], cutoff=10)
    shown = evaluation._repr_html_()
    assert f"<td>MAP@10</td><td>{evaluation.official.value:.4f}</td>" in shown and "<td>AP</td>" in shown
    other = index.rank("dev", recipe="neighbours", tag=HOSTILE)
    compared = sa.compare(run, other, cutoff=10)
    shown = compared._repr_html_()
    assert shown.count("<table>") == 2 and HOSTILE not in shown
    assert f"<td>{compared.measures[0].means[1]:.4f}</td>" in shown
    assert f"<td>{compared.measures[0].pairs[0].difference.mean:+.4f}</td>" in shown
    (hit, *_) = index.search("prime numbers")
    explanation = index.explain("prime numbers", hit.hit.document_id)
    assert explanation is not None and "<summary>" in explanation._repr_html_()
    hostile = sa.Explanation(1.0, HOSTILE + "\u202e", (sa.Explanation(1.0, HOSTILE),))._repr_html_()
    assert HOSTILE not in hostile and "\u202e" not in hostile and hostile.count("&lt;script&gt;") == 2


def test_windows_is_refused_with_a_message() -> None:
    for statement in ("import searchapp; searchapp.task", "from searchapp.__main__ import main; main()"):
        code = f"import sys; sys.modules['fcntl'] = None; {statement}"
        failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1].endswith(
            "searchapp runs on Linux and macOS: on Windows, install it in WSL (`wsl --install`)"
        )


def test_rankings_use_the_index_that_is_open(index: sa.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(EmbeddedEngine, "open")
    assert len(index.rank(["prime numbers"], recipe="bm25", depth=5)["1"]) == 5


def test_an_index_that_is_not_built_is_reported(tmp_path: Path) -> None:
    with pytest.raises(sa.EngineError, match="searchapp index nlps-sample"):
        sa.task("nlps-sample", home=tmp_path, engine="embedded").index()
    assert not (tmp_path / "indexes").exists()


def test_a_server_gives_the_same_run(
    task: sa.Task, run: sa.Run, elasticsearch_url: str, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", index_prefix)
    with task.index(elasticsearch_url, build=True) as index:
        assert index.rank("dev", recipe="bm25").rankings == run.rankings
        own = index.rank(["prime numbers"], recipe="neighbours", depth=5)
        assert index.document(own["1"].document_ids[0]) is not None
    with pytest.raises(sa.EngineError), task.index("http://localhost:9"):
        pass
