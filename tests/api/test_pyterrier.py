"""PyTerrier on the nlps sample, without Java and without the network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
import pytrec_eval

import searchapp as sa
from searchapp.app.rank import rerun
from searchapp.engines import open_engine
from searchapp.formats import trec
from searchapp.progress import SilentProgress
from searchapp.pyterrier import IndexArtifact, Retriever, RunArtifact
from tests.cli.conftest import run_command

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
"""PyTerrier 1.1.2 uses an argument that pandas 3.1 calls deprecated."""

HOSTILE = "<script>\x1b[31m {{topic.text}} \" ' OR + ( \x00"

BEST = pytest.param(
    "best", marks=pytest.mark.skipif(find_spec("sklearn") is None, reason="it trains a model")
)

MEASURES = {"map": "AP", "ndcg_cut_10": "nDCG@10", "P_5": "P@5", "recip_rank": "RR"}
"""Measures by the names of trec_eval."""

HYBRID = """
extends = "nlps"

[recipes.hybrid]
template = "bm25"
signals = [
  { signal = "direct", template = "bm25", window = 50 },
  { signal = "transformer", name = "other", weight = 0.5, window = 50 },
]

[recipes.reranked]
template = "bm25"
signals = [
  { signal = "direct", template = "bm25", window = 50, weight = 0.0 },
  { signal = "transformer", name = "other", input = "candidates" },
]
"""


def command(*words: object) -> str:
    """Run a command with the embedded engine, and return its standard output."""
    result = run_command(*words, "--engine", "embedded")
    assert result.code == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def dev(home: Path) -> Any:
    return pt.get_dataset("searchapp:nlps-sample/dev", home=home)


@pytest.fixture
def bm25(index: sa.Index) -> Retriever:
    return Retriever(index, "bm25", split="dev")


class TestConformance(pt.testing.TransformerTestCase):
    """PyTerrier's own tests; there is no index, so that none may be opened."""

    @classmethod
    def tearDownClass(cls) -> None:
        """Print no report, which would be a warning."""

    @staticmethod
    def get_transformer() -> pt.Transformer:
        return Retriever(sa.task("nlps-sample", home="/nowhere"), "bm25")


def test_importing_it_starts_no_java_and_writes_nothing(tmp_path: Path) -> None:
    program = (
        "import searchapp.pyterrier, pyterrier, sys; print(pyterrier.java.started(), 'jnius' in sys.modules)"
    )
    environment = {"HOME": str(tmp_path), "PATH": ""}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (result.stdout, result.stderr) == ("False False\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("recipe", ["bm25", BEST, "neighbours"])
def test_a_retriever_ranks_as_the_command(index: sa.Index, dev: Any, recipe: str) -> None:
    results = Retriever(index, recipe, split="dev").transform(dev.get_topics())
    expected = index.rank("dev", recipe=recipe).to_frame()
    pd.testing.assert_frame_equal(results, expected, check_dtype=False)


def test_four_programs_give_the_same_figures(index: sa.Index, dev: Any, tmp_path: Path) -> None:
    # Several documents have equal scores, which programs order in different ways.
    run = index.rank("dev", recipe="popular" if "popular" in index.task.recipes else "neighbours")
    assert trec.reordered(run.rankings) > 0
    run.save(tmp_path / "run")
    named = [word for measure in MEASURES.values() for word in ("--measure", measure)]
    printed = json.loads(command("evaluate", tmp_path / "run", "--cutoff", 10, *named, "--json"))
    expected = {name: printed["measures"][measure] for name, measure in MEASURES.items()}

    recipe = run.manifest.recipe["name"] if run.manifest else None
    systems = [Retriever(index, recipe, split="dev"), run.to_frame()]
    table = pt.Experiment(systems, dev.get_topics(), dev.get_qrels(), list(MEASURES))
    for row in table.to_dict("records"):
        assert {name: row[name] for name in MEASURES} == pytest.approx(expected, abs=1e-9)

    parsed = [ir_measures.parse_measure(measure) for measure in MEASURES.values()]
    qrels = index.task.qrels("dev").to_frame("ir_measures")
    calculated = ir_measures.calc_aggregate(parsed, qrels, run.to_frame("ir_measures"))
    assert list(map(calculated.get, parsed)) == pytest.approx(list(expected.values()), abs=1e-9)

    command("export", tmp_path / "run", "--format", "trec", "--out", tmp_path / "run.txt")
    with (tmp_path / "run.txt").open() as file:
        exported = pytrec_eval.parse_run(file)
    evaluator = pytrec_eval.RelevanceEvaluator(
        index.task.qrels("dev"), {"map", "ndcg_cut", "P", "recip_rank"}
    )
    per_topic = evaluator.evaluate(exported).values()
    means = {name: sum(topic[name] for topic in per_topic) / len(per_topic) for name in MEASURES}
    assert means == pytest.approx(expected, abs=1e-9)


def test_pipelines_are_expressions(index: sa.Index, bm25: Any, dev: Any) -> None:
    topics = dev.get_topics()
    neighbours: Any = Retriever(index, "neighbours", split="dev")
    ranked = bm25(topics)
    cut = (bm25 % 5)(topics)
    pd.testing.assert_frame_equal(cut, ranked[ranked["rank"] < 5].reset_index(drop=True))
    summed = (bm25 + neighbours)(topics)
    pairs = {tuple(pair) for frame in (ranked, neighbours(topics)) for pair in frame[["qid", "docno"]].values}
    assert {tuple(pair) for pair in summed[["qid", "docno"]].values} == pairs
    features = (bm25 % 3 >> (bm25**neighbours))(topics)
    assert list(map(len, features["features"])) == [2] * len(features)
    assert list(features["features"].str[0]) == list(features["score"])
    lower = pt.apply.query(lambda row: row["query"].lower())
    assert list((lower >> bm25)(topics).columns) == ["qid", "query_0", "query", "docno", "score", "rank"]
    found = bm25.search("prime numbers")
    assert list(found["docno"]) == list(index.rank(["prime numbers"], recipe="bm25")["1"].document_ids)


@pytest.mark.parametrize("recipe", ["bm25", BEST, "neighbours", "words"])
def test_a_cut_is_fused_where_it_changes_no_score(index: sa.Index, dev: Any, recipe: str) -> None:
    topics = dev.get_topics()
    whole: Any = Retriever(index, recipe, split="dev", depth=40)
    fused = (whole % 5).compile()
    assert isinstance(fused, Retriever) and fused.depth == 5 and whole.depth == 40
    ranked = whole(topics)
    pd.testing.assert_frame_equal(fused(topics), ranked[ranked["rank"] < 5].reset_index(drop=True))
    assert (whole % 50).compile() is whole or (whole % 50).compile().depth == 40
    deep = Retriever(index, "best", split="dev", depth=1000)
    assert deep.fuse_rank_cutoff(5) is None, "a window of its signals is below the depth"


def test_given_documents_get_the_scores_of_the_recipe(bm25: Any, dev: Any) -> None:
    topics = dev.get_topics().head(2)
    ranked = bm25(topics)
    shuffled = ranked.sample(frac=1, random_state=1).reset_index(drop=True)
    again = bm25(shuffled.drop(columns="rank").assign(score=0.0))
    assert dict(zip(zip(again["qid"], again["docno"], strict=True), again["score"], strict=True)) == dict(
        zip(zip(ranked["qid"], ranked["docno"], strict=True), ranked["score"], strict=True)
    )
    assert list(again["docno"]) == list(shuffled["docno"])
    unknown = ranked.head(1).assign(docno="nowhere")
    lowest = ranked[ranked["qid"] == ranked["qid"][0]]["score"].min()
    assert list(bm25(unknown)["score"]) == [min(0.0, lowest)]


def test_empty_frames_open_no_index(tmp_path: Path) -> None:
    retriever: Any = Retriever(sa.task("nlps-sample", home=tmp_path, engine="embedded"))
    results = retriever(pd.DataFrame({"qid": [], "query": []}))
    assert list(results.columns) == ["qid", "query", "docno", "score", "rank"] and results.empty
    given = retriever(pd.DataFrame({"qid": [], "query": [], "docno": []}))
    assert list(given.columns) == ["qid", "query", "docno", "score", "rank"] and given.empty
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(sa.EngineError, match="searchapp index nlps-sample"):
        retriever.search("prime")


def test_wrong_input_is_an_error(index: sa.Index, bm25: Any) -> None:
    with pytest.raises(KeyError, match="required columns"):
        bm25(pd.DataFrame({"qid": ["1"]}))
    with pytest.raises(sa.UsageError, match="row 2 of the data frame has the query nan, which is not text"):
        bm25(pd.DataFrame({"qid": ["1", "2"], "query": ["prime", float("nan")]}))
    with pytest.raises(sa.UsageError, match=r"no recipe 'bm52' \(did you mean bm25\?\)"):
        Retriever(index, "bm52")
    with pytest.raises(sa.UsageError, match="unknown task"):
        Retriever("nlsp")
    with pytest.raises(sa.UsageError, match="no split 'de'"):
        Retriever(index, split="de")
    for rank in (lambda: Retriever(index, depth=0), lambda: index.rank("dev", depth=-1)):
        with pytest.raises(sa.UsageError, match="give a number of at least 1"):
            rank()
    hostile = bm25(pd.DataFrame({"qid": [HOSTILE, HOSTILE], "query": [HOSTILE, "prime"]}))
    assert set(hostile["query"]) <= {HOSTILE, "prime"}
    assert "nlps-sample" in bm25._repr_html_(), "the picture needs no network"


def test_a_split_has_its_topics_and_its_training_topics(index: sa.Index, dev: Any) -> None:
    rewritten = dev.get_topics().assign(query="prime numbers")
    results = Retriever(index, "bm25", split="dev")(rewritten)
    expected = index.rank(dict.fromkeys(rewritten["qid"], "prime numbers"), recipe="bm25").to_frame()
    pd.testing.assert_frame_equal(results, expected, check_dtype=False)


def test_a_data_set_has_documents_topics_and_gold(task: sa.Task, dev: Any, tmp_path: Path) -> None:
    topics = task.topics("dev")
    assert dev.get_topics().to_dict("list") == {
        "qid": [topic.id for topic in topics],
        "query": [topic.text for topic in topics],
    }
    assert list(dev.get_qrels().columns) == ["qid", "docno", "label"]
    documents = list(dev.get_corpus_iter(verbose=False))
    assert [document["docno"] for document in documents] == [document.id for document in task.documents()]
    assert documents[0]["text"] == next(task.documents()).text
    names = pt.datasets.get_dataset.__globals__["_load_provider"]("searchapp").list_dataset_names()
    assert {"nlps", "nlps/dev", "nlps-sample/test"} <= set(names)
    for unknown in ("searchapp:nlsp", "searchapp:nlps/de"):
        with pytest.raises(KeyError, match="not found in provider"):
            pt.get_dataset(unknown)
    with pytest.raises(NotImplementedError, match="does not support get_topics"):
        pt.get_dataset("searchapp:nlps-sample").get_topics()
    with pytest.raises(sa.UsageError, match="has no 'answer'"):
        dev.get_topics("answer")
    own = tmp_path / "mine.toml"
    own.write_text('extends = "nlps"\n')
    assert repr(pt.get_dataset(f"searchapp:{own}/dev")) == f"TaskDataset('{own}/dev')"
    with pytest.raises(sa.SearchappError, match="absent"):
        pt.get_dataset("searchapp:nlps/dev", data=tmp_path / "absent").get_topics()


def test_a_run_is_an_artifact(index: sa.Index, dev: Any, tmp_path: Path) -> None:
    run = index.rank("dev", recipe="bm25", depth=5).save(tmp_path / "run")
    artifact = pt.Artifact.load(str(tmp_path / "run"))
    assert isinstance(artifact, RunArtifact) and artifact.run.rankings == run.rankings
    results = artifact.retriever().transform(dev.get_topics())
    assert list(results["docno"]) == list(run.to_frame()["docno"])
    package = artifact.build_package(str(tmp_path / "run.tar.lz4"), verbose=False)
    assert Path(package).stat().st_size > 0
    with pytest.raises(ValueError, match="No implementation found"):
        pt.Artifact.load(str(tmp_path))


def test_an_index_is_an_artifact(index: sa.Index, home: Path, bm25: Any, dev: Any, tmp_path: Path) -> None:
    artifact = pt.Artifact.load(str(home / "indexes" / "searchapp-nlps-sample"))
    assert isinstance(artifact, IndexArtifact)
    topics = dev.get_topics()
    pd.testing.assert_frame_equal(artifact.retriever("bm25", split="dev")(topics), bm25(topics))
    with pytest.raises(sa.UsageError, match="belongs to its home directory"):
        artifact.build_package(str(tmp_path / "index.tar.lz4"))
    with pytest.raises(sa.UsageError, match="is not an index of a task's documents"):
        IndexArtifact(tmp_path / "indexes" / "searchapp-nlps")


@pytest.fixture(scope="module")
def hybrid(home: Path, index: sa.Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Index]:
    file = tmp_path_factory.mktemp("task") / "hybrid.toml"
    file.write_text(HYBRID)
    with sa.task(file, home=home, data=index.task.folder, engine="embedded").index(build=True) as opened:
        yield opened


class Reversed(pt.Transformer):
    """Finds the documents of another transformer in the opposite order; candidates must have texts."""

    def __init__(self, other: pt.Transformer | None = None) -> None:
        self.other = other

    def transform(self, inp: Any) -> Any:
        if self.other is not None:
            inp = self.other(inp)
        else:
            assert inp["text"].str.len().min() > 0
        return pt.model.add_ranks(inp.assign(score=inp["rank"] + 1.0))


def test_a_transformer_is_a_signal(hybrid: sa.Index, tmp_path: Path) -> None:
    other = Retriever(hybrid, "bm25", split="dev", depth=50)
    run = hybrid.rank("dev", recipe="hybrid", transformers={"other": other}, depth=20)
    alone = hybrid.rank("dev", recipe="bm25", depth=20)
    assert [hits.document_ids for hits in run.values()] == [hits.document_ids for hits in alone.values()]
    reversed_run = hybrid.rank("dev", recipe="hybrid", transformers={"other": Reversed(other)}, depth=20)
    assert reversed_run.rankings != run.rankings
    saved = run.save(tmp_path / "run")
    assert saved.manifest is not None
    assert saved.manifest.recipe["models"]["other"]["transformer"].startswith("Retriever(")
    command("report", tmp_path / "run", "--cutoff", 10, "--out", tmp_path / "report")
    with closing(open_engine(hybrid._settings)) as engine:
        with pytest.raises(sa.UsageError, match="which only Python code can give"):
            rerun(tmp_path / "run", engine, tmp_path / "again", SilentProgress())


def test_a_transformer_scores_candidates(hybrid: sa.Index) -> None:
    run = hybrid.rank("dev", recipe="reranked", transformers={"other": Reversed()}, depth=50)
    direct = hybrid.rank("dev", recipe="bm25", depth=50)
    for topic, hits in run.items():
        assert hits.document_ids == direct[topic].document_ids[::-1]


def test_a_recipe_file_gives_no_transformer(hybrid: sa.Index, home: Path, tmp_path: Path) -> None:
    with pytest.raises(sa.UsageError, match="the signal other is a PyTerrier transformer"):
        hybrid.rank("dev", recipe="hybrid")
    with pytest.raises(sa.UsageError, match=r"no signal of the kind transformer named 'othr' \(did you mean"):
        hybrid.rank("dev", recipe="hybrid", transformers={"othr": pt.Transformer.identity()})
    with pytest.raises(
        sa.UsageError, match="the recipe bm25 has no signal of the kind transformer named 'x'"
    ):
        hybrid.rank("dev", recipe="bm25", transformers={"x": pt.Transformer.identity()})
    with pytest.raises(
        sa.DataError, match="the transformer of the signal other: the data frame has no column docno"
    ):
        hybrid.rank("dev", recipe="hybrid", transformers={"other": pt.Transformer.identity()})
