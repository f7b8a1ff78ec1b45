"""Answer type prediction on the real data: valid files, figures, and the same bytes on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.tasks.smart_types.task import TASK_DBPEDIA as DBPEDIA
from searchapp.tasks.smart_types.task import TASK_WIKIDATA as WIKIDATA
from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import real_data

pytestmark = pytest.mark.data

EVERY = 4 if FULL else 8
"""Every EVERY-th question of the train file is used: enough for the figures, few enough to be quick."""

COMPARED = ("bm25", "neighbours") if FULL else ("neighbours",)
"""The recipes that also rank on the server."""


@pytest.fixture
def smart_data() -> Path:
    return real_data("smart-types-dbpedia")


@pytest.fixture
def fewer(smart_data: Path, tmp_path: Path) -> Path:
    """A folder with a part of the real questions, and all types of DBpedia."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("task1_dbpedia_train.json", "task1_wikidata_train.json"):
        questions = json.loads((smart_data / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(questions[::EVERY]), encoding="utf-8")
    (folder / "dbpedia_types.tsv").write_bytes((smart_data / "dbpedia_types.tsv").read_bytes())
    return folder


@pytest.mark.parametrize(("task", "questions"), [(DBPEDIA, 17_254), (WIKIDATA, 18_208)])
def test_the_official_files_have_no_problem(smart_data: Path, task: object, questions: int) -> None:
    assert isinstance(task, type(DBPEDIA) | type(WIKIDATA))
    problems = Problems()
    documents = list(task.collection(smart_data).documents.read(problems))
    assert task.collection(smart_data).check_split("fold0", problems) == questions
    problems.raise_if_any()
    assert len(documents) == len({document.id for document in documents}) > 700


@pytest.mark.parametrize(
    ("task", "minima"),
    [
        (
            "smart-types-dbpedia",
            {
                "bm25": {"Accuracy": 0.78, "NDCG@5": 0.43},
                "neighbours": {"Accuracy": 0.86, "NDCG@5": 0.63},
            },
        ),
        (
            "smart-types-wikidata",
            {
                "bm25": {"accuracy": 0.80, "MRR (whole labels)": 0.36},
                "neighbours": {"accuracy": 0.86, "MRR (whole labels)": 0.50},
            },
        ),
    ],
)
def test_a_fold_has_the_expected_figures_and_the_same_bytes_on_both_engines(
    server: Cli, fewer: Path, tmp_path: Path, task: str, minima: dict[str, dict[str, float]]
) -> None:
    for engine in ("embedded", "elasticsearch"):
        options = ["--data", fewer, "--engine", engine]
        assert server("index", task, *options).code == 0
        for recipe in minima if engine == "embedded" else COMPARED:
            out = tmp_path / f"{engine}-{recipe}"
            ranked = server("rank", task, *options, "--split", "fold1", "--recipe", recipe, "--out", out)
            assert ranked.code == 0, ranked.stderr
    for recipe, figures in minima.items():
        run = tmp_path / f"embedded-{recipe}"
        if recipe in COMPARED:
            other = tmp_path / f"elasticsearch-{recipe}"
            assert (run / "run.trec").read_bytes() == (other / "run.trec").read_bytes()
        official = server("evaluate", run, "--json", "--lenient").json["official"]
        for measure, minimum in figures.items():
            assert official["values"][measure] >= minimum
