"""`searchapp runs import`, `list`, `show` and `tag`: runs of other tools become run directories like any other."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import pytest

from searchapp.app import import_run
from searchapp.cli.runs import ForeignFormat
from searchapp.errors import UsageError
from searchapp.formats import encoding, run_files, trec
from searchapp.model import float32
from searchapp.runs import directory
from searchapp.runs import directory as tags
from tests.cli.conftest import SAMPLES, Cli
from tests.programs import Program

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 20)
OF_NLPS = ("--task", "nlps", "--split", "dev")


@pytest.fixture
def nlps(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Commands in a folder with the sample of nlps in data, where nothing is indexed."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "nlps", "data")

    def run(*arguments: object) -> Any:
        more = (*OF_NLPS, "--data", "data") if arguments[:2] == ("runs", "import") else ()
        return offline(*arguments, *more)

    return run


def test_every_format_of_runs_can_be_named() -> None:
    assert {one.value for one in ForeignFormat} == set(run_files.FORMATS), (
        "add it to ForeignFormat in cli/runs.py"
    )


def topics() -> list[str]:
    return list(json.loads((SAMPLES / "nlps" / "dev_set.json").read_text()))


def documents() -> list[str]:
    described = json.loads((SAMPLES / "nlps" / "knowledge_base.json").read_text())
    return list(described)


Rows = list[tuple[str, str, int, float]]


def rows() -> Rows:
    """A run of thirty documents a topic, the scores of a topic falling."""
    return [
        (topic, document, rank, 10 - rank / 8)
        for place, topic in enumerate(topics())
        for rank, document in enumerate((documents() * 2)[place : place + 30], 1)
    ]


def as_trec(path: Path, held: Rows) -> None:
    """As pyserini writes it: ranks from 1 on, scores with six decimals, its own tag."""
    path.write_text("".join(f"{t} Q0 {d} {r} {s:.6f} Anserini\n" for t, d, r, s in held))


def as_csv(path: Path, held: Rows) -> None:
    """As PyTerrier writes it: ranks from 0 on."""
    path.write_text("qid,docno,rank,score\n" + "".join(f"{t},{d},{r - 1},{s}\n" for t, d, r, s in held))


def as_jsonl(path: Path, held: Rows) -> None:
    lines = ({"query_id": t, "doc_id": d, "score": s, "run_id": "mine"} for t, d, _, s in held)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def as_parquet(path: Path, held: Rows) -> None:
    from pyarrow import parquet, table

    columns = {
        "qid": [int(t) for t, *_ in held],
        "docno": [d for _, d, *_ in held],
        "score": [s for *_, s in held],
    }
    parquet.write_table(table(columns), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "other.trec": as_trec,
    "other.csv": as_csv,
    "other.jsonl": as_jsonl,
    "other.parquet": as_parquet,
    "no-name": as_parquet,
    "no-name-either": as_jsonl,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_run_of_any_format_becomes_a_run_directory(nlps: Cli, name: str) -> None:
    WRITERS[name](Path(name), rows())
    made = nlps("runs", "import", name, "--out", "runs/other", "--tool", "pyserini 1.2", "--json")
    assert made.code == 0, made.stderr
    stored = directory.read(Path("runs/other"))
    held = [(one.topic_id, document, score) for one in stored.run for document, score in one.hits]
    assert held == [(topic, document, float32(score)) for topic, document, _, score in rows()]
    manifest = stored.manifest
    assert (manifest.recipe, manifest.engine, manifest.depth, manifest.topics) == ({}, {}, 30, len(topics()))
    assert (
        manifest.imported["file"] == str(Path(name).resolve()) and manifest.imported["tool"] == "pyserini 1.2"
    )
    assert made.json["hits"] == len(rows()) and made.json["skipped"] == {}
    assert nlps("runs", "verify", "runs/other").code == 0


def test_a_file_that_is_packed_is_unpacked(nlps: Cli) -> None:
    as_trec(Path("plain"), rows())
    Path("other.trec.gz").write_bytes(gzip.compress(Path("plain").read_bytes()))
    assert nlps("runs", "import", "other.trec.gz", "--out", "other").code == 0


def test_an_imported_run_is_of_the_index_that_rank_uses(nlps: Cli, offline: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "other").code == 0
    assert offline("index", "nlps", "--data", "data").code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", "own").code == 0
    one, other = (directory.read_manifest(Path(name)) for name in ("own", "other"))
    assert (one.index_digest, one.mapping_digest) == (other.index_digest, other.mapping_digest)


def test_what_bm25s_finds_is_imported_compared_and_judged(nlps: Cli, offline: Cli) -> None:
    """End to end: another library ranks the same texts, and from then on its run is one like any other."""
    described = json.loads(Path("data/knowledge_base.json").read_text())
    texts = {
        id_: " ".join(map(str, one.values())) if isinstance(one, dict) else str(one)
        for id_, one in described.items()
    }
    statements = json.loads(Path("data/dev_set.json").read_text())
    asked = [
        " ".join(str(value) for value in statement.values() if isinstance(value, str))
        for statement in statements.values()
    ]
    retriever = bm25s.BM25(corpus=list(texts))
    retriever.index(bm25s.tokenize(list(texts.values()), show_progress=False), show_progress=False)
    found, scores = retriever.retrieve(bm25s.tokenize(asked, show_progress=False), k=40, show_progress=False)
    lines = [
        f"{topic} Q0 {document} {rank} {score} bm25s\n"
        for topic, some, of_topic in zip(statements, found, scores, strict=True)
        for rank, (document, score) in enumerate(zip(some, of_topic, strict=True), 1)
    ]
    Path("bm25s.trec").write_text("".join(lines))
    whole_story(nlps, offline, "bm25s.trec")


def test_a_pyserini_run_is_imported_compared_and_judged(nlps: Cli, offline: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    whole_story(nlps, offline, "other.trec")


def whole_story(nlps: Cli, offline: Cli, file: str) -> None:
    imported = nlps("runs", "import", file, "--out", "runs/other")
    assert imported.code == 0, imported.stderr
    assert offline("index", "nlps", "--data", "data").code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", "runs/own").code == 0
    compared = offline("compare", "runs/own", "runs/other", *CUTOFF, "--json")
    assert compared.code == 0, compared.stderr
    evaluated = offline("evaluate", "runs/other", *CUTOFF, "--json").json
    assert compared.json["runs"][1]["official"] == evaluated["official"]["value"]
    first = directory.read(Path("runs/other")).run.rankings[0]
    log = ("--log", "log.sqlite")
    line = f"{first.topic_id} 0 {first.document_ids()[0]} 1\n"
    Path("mine.qrels").write_text(line)
    judged = offline(
        "judgments", "import", "nlps", "mine.qrels", "--format", "qrels", "--annotator", "ann", *log
    )
    assert judged.code == 0, judged.stderr
    against = offline(
        "compare", "runs/own", "runs/other", "--judgments", "--measure", "RR", *CUTOFF, *log, "--json"
    )
    assert against.code == 0, against.stderr
    assert against.json["measures"][0]["means"]["other"] == 1.0
    pooled = offline("judgments", "pool", "runs/own", "runs/other", "--depth", "5", "--out", "runs/pool")
    assert pooled.code == 0, pooled.stderr
    walked = offline("topics", "nlps", "--run", "runs/other", "--plain", "--topic", first.topic_id)
    assert walked.code == 0, walked.stderr
    exported = offline(
        "export", "runs/other", "--format", "official", "--cutoff", "20", "--out", "predict.txt"
    )
    assert exported.code == 0, exported.stderr
    again = offline("export", "runs/other", "--format", "ir-metadata", "--out", "run.yml")
    assert again.code == 0, again.stderr


# What is wrong with a file


def bad(path: str, *lines: str) -> str:
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return path


def test_everything_that_is_wrong_is_reported_with_its_line(nlps: Cli) -> None:
    topic, (one, two, *_) = topics()[0], documents()
    file = bad(
        "bad.trec",
        f"{topic} Q0 {one} 1 3.5 t",
        f"{topic} Q0 {one} 2 3.0 t",
        f"{topic} Q0 nothing 3 2.5 t",
        f"none Q0 {two} 1 2.0 t",
        f"{topic} Q0 {two} 4 nan t",
        f"{topic} Q0 {two} 4 t",
    )
    refused = nlps("runs", "import", file, "--out", "out")
    assert refused.code == 4 and not Path("out").exists()
    for said in (
        f"line 2: duplicate document: {one} of topic {topic} is also on line 1",
        f"line 3: unknown document: nothing of topic {topic}",
        "line 4: unknown topic: none",
        "line 5: score not a finite number: nan",
        "line 6: wrong number of columns: 5 cells instead of 6",
        "--lenient",
    ):
        assert said in refused.stderr
    kept = nlps("runs", "import", file, "--out", "out", "--lenient", "--json")
    assert kept.code == 0 and "left out: 5 problems" in kept.stderr
    assert sum(kept.json["skipped"].values()) == 5 == kept.json["imported"]["skipped"]
    (ranking,) = directory.read(Path("out")).run
    assert ranking.document_ids() == (one,)
    assert f"{len(topics()) - 1} of the {len(topics())} topics of nlps dev have no ranking" in kept.stderr


def test_scores_say_the_order_and_ids_where_they_are_equal(nlps: Cli) -> None:
    topic, (one, two, three, four, *_) = topics()[0], sorted(documents())
    file = bad(
        "other.trec",
        f"{topic} Q0 {four} 1 1.0 t",
        f"{topic} Q0 {three} 2 2.0 t",
        f"{topic} Q0 {two} 3 1.0 t",
        f"{topic} Q0 {one} 4 0.5 u",
    )
    made = nlps("runs", "import", file, "--out", "out")
    assert made.code == 0
    (ranking,) = directory.read(Path("out")).run
    assert ranking.document_ids() == (three, four, two, one)
    assert (
        "line 2: ranks against the scores" in made.stderr
        and "rank 2 has a higher score than rank 1" in made.stderr
    )
    assert "several tags" in made.stderr and directory.read_manifest(Path("out")).tag == "t"


def test_equal_scores_that_the_ranks_order_otherwise_are_told(nlps: Cli) -> None:
    topic, (one, two, *_) = topics()[0], sorted(documents())
    file = bad("other.trec", f"{topic} Q0 {one} 1 1.0 t", f"{topic} Q0 {two} 2 1.0 t")
    made = nlps("runs", "import", file, "--out", "out", "--tag", "mine")
    assert made.code == 0 and "equal scores" in made.stderr and "descending id" in made.stderr
    stored = directory.read(Path("out"))
    assert stored.run.rankings[0].document_ids() == (two, one) and stored.manifest.tag == "mine"


def test_an_imported_run_scores_as_its_file(nlps: Cli) -> None:
    ids = sorted(documents())
    # 1e-9 apart are equal as float32.
    lines = [
        f"{topic} Q0 {document} 0 {1 + (place % 3) + place * 1e-9} t"
        for topic in topics()
        for place, document in enumerate(ids)
    ]
    file = bad("other.trec", *lines)
    bad("qrels", *(f"{topic} 0 {document} 1" for topic in topics() for document in ids[::4]))
    assert nlps("runs", "import", file, "--out", "out").code == 0
    assert nlps("export", "out", "--format", "trec", "--out", "again.trec").code == 0
    options = ("--qrels", "qrels", "--measure", "AP", *CUTOFF, "--json")
    scored = [nlps("evaluate", path, *options).json["measures"] for path in (file, "out", "again.trec")]
    assert scored[0] == scored[1] == scored[2]


@pytest.mark.parametrize(
    ("column", "values", "note"), [("rank", (2, 1), ""), ("score", (1, 2), "line 3: unsorted lines")]
)
def test_a_table_is_ordered_by_its_ranks_or_its_scores_whatever_the_lines(
    nlps: Cli, column: str, values: tuple[int, int], note: str
) -> None:
    topic, (one, two, *_) = topics()[0], documents()
    rows_ = (f"{topic},{document},{value}" for document, value in zip((one, two), values, strict=True))
    made = nlps("runs", "import", bad("other.csv", f"topic,document,{column}", *rows_), "--out", "out")
    assert made.code == 0 and note in made.stderr
    assert directory.read(Path("out")).run.rankings[0].document_ids() == (two, one)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.csv",
            "topic,score\n1,2\n",
            "there is no column document among topic, score: name it document, docno",
        ),
        (
            "a.csv",
            "topic,document\n1,2\n",
            "there is no column score among topic, document: name it score, sim",
        ),
        ("a.jsonl", '{"topic": "1", "document": null, "score": 1}\n', "unusable id"),
        ("a.jsonl", '{"topic": true, "document": "a", "score": 1}\n', "unusable id"),
        ("a.jsonl", '{"topic": "1", "document": "a b", "score": 1}\n', "unusable id"),
        ("a.jsonl", '{"topic": "1", "document": "a", "score": "x"}\n', "score not a finite number"),
        ("a.jsonl", '{"topic": "1", "document": "a", "rank": 1.5}\n', "rank not an integer"),
        ("a.parquet", "no parquet", "not Parquet"),
        ("a.trec", "", "empty file"),
        ("a.trec", "x Q0 y 1 1 t\n", "unknown topic"),
    ],
)
def test_what_is_no_run_is_refused(nlps: Cli, name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    refused = nlps("runs", "import", name, "--out", "out")
    assert refused.code == 4 and message in refused.stderr and "Traceback" not in refused.stderr
    assert not Path("out").exists()


def test_of_another_tasks_run_nothing_is_left(nlps: Cli) -> None:
    refused = nlps("runs", "import", bad("a.trec", "x Q0 y 1 1 t"), "--out", "out", "--lenient")
    assert refused.code == 4 and "check --task and --split" in refused.stderr
    missing = nlps("runs", "import", "nothing.trec", "--out", "out")
    assert missing.code == 4 and "nothing.trec" in missing.stderr
    assert nlps("runs", "import", "a.trec", "--out", "out", "--tag", "a b").code in (2, 4)


def refused_import(cli: Cli, file: str) -> str:
    refused = cli("runs", "import", file, "--out", "out")
    assert refused.code == 4 and file in refused.stderr and not Path("out").exists()
    return refused.stderr


def test_a_line_beyond_the_limit_is_refused_in_every_format(
    nlps: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "LONGEST_LINE", 1 << 20)
    for name in ("a.trec.gz", "a.csv.gz", "a.jsonl.gz"):
        Path(name).write_bytes(gzip.compress(b'{"topic": "' + b"x" * (1 << 23)))
        assert "line 1 is longer than 1,048,576 bytes" in refused_import(nlps, name)
    refused = nlps("judgments", "import", "nlps", "a.jsonl.gz", "--data", "data")
    assert refused.code == 4 and "line 1 is longer than" in refused.stderr


def test_problems_without_end_stop_the_reading(nlps: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_run, "MOST_PROBLEMS", 50)
    bad("a.trec", *["x Q0 y 1 1 t"] * 100)
    said = refused_import(nlps, "a.trec")
    assert "line 52: more than 50 problems; the first is a.trec: line 1: unknown topic" in said


def test_what_parquet_unpacks_to_is_bounded(nlps: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import array, parquet, table

    def write(documents: list[Any]) -> str:
        columns = {
            "topic": ["1"] * len(documents),
            "document": array(documents),
            "score": [1.0] * len(documents),
        }
        parquet.write_table(table(columns), "a.parquet", compression="zstd")
        return "a.parquet"

    said = refused_import(nlps, write(["x" * 200_000] * 500))
    assert Path("a.parquet").stat().st_size < 10_000
    assert "document has a text of 200,000 characters: the limit is 4,096" in said
    assert "document is of the type list<" in refused_import(nlps, write([["x"]]))
    monkeypatch.setattr(run_files, "LARGEST_COLUMN", 1000)
    said = refused_import(nlps, write([f"{number:04}" for number in range(1000)]))
    assert "row group 1: column too large: document has" in said and "limit of a row group, 1,000:" in said


def test_parquet_without_its_package_is_refused_in_a_sentence(
    nlps: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_parquet(Path("other.parquet"), rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = nlps("runs", "import", "other.parquet", "--out", "out")
    assert refused.code == 2 and "-m pip install 'pyarrow>=15'`" in refused.stderr


def test_ids_that_could_act_on_a_terminal_are_refused(nlps: Cli) -> None:
    file = bad("a.jsonl", json.dumps({"topic": "1", "document": "a\x1b[31m", "score": 1}))
    refused = nlps("runs", "import", file, "--out", "out")
    assert refused.code == 4 and "\x1b" not in refused.stderr


# Manifests, lists and tags


def test_a_manifest_from_before_there_were_imports_is_read_and_verified(nlps: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    path = Path("out") / directory.MANIFEST
    described = json.loads(path.read_text())
    imported = described.pop("imported")
    assert imported
    path.write_text(json.dumps(described))
    manifest = directory.read_manifest(Path("out"))
    assert manifest.imported == {} and "imported" not in json.loads(path.read_text())
    path.write_text(json.dumps({**described, "digest": manifest.own_digest()}))
    assert nlps("runs", "verify", "out").code == 0


def test_runs_are_listed_by_task_and_tag(nlps: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    for name in ("a", "b"):
        assert nlps("runs", "import", "other.trec", "--out", name).code == 0
    assert nlps("runs", "tag", "a", "best", "paper").code == 0
    every = nlps("runs", "list", "--json").json["runs"]
    assert {Path(one["run"]).name: one["tags"] for one in every} == {"a": ["best", "paper"], "b": []}
    assert [
        Path(run["run"]).name for run in nlps("runs", "list", "--tag", "best", "--json").json["runs"]
    ] == ["a"]
    assert nlps("runs", "list", "--tag", "best", "--tag", "x", "--json").json["runs"] == []
    assert nlps("runs", "list", "--task", "checkthat", "--json").json["runs"] == []
    shown = nlps("runs", "list", "--task", "nlps").stdout
    assert "best, paper" in shown and "imported" in shown
    assert "no such run" in nlps("runs", "list", "--tag", "x").stderr


def test_tags_change_nothing_of_the_run_and_go_again(nlps: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    before = {file.name: file.read_bytes() for file in Path("out").iterdir()}
    assert nlps("runs", "tag", "out", "best", "--json").json == {"run": "out", "tags": ["best"]}
    assert {
        file.name: file.read_bytes() for file in Path("out").iterdir() if file.name != directory.TAGS
    } == before
    assert nlps("runs", "verify", "out").code == 0
    shown = nlps("runs", "show", "out")
    assert (
        "best" in shown.stdout
        and "imported" in shown.stdout
        and directory.read_manifest(Path("out")).digest in shown.stdout
    )
    assert nlps("runs", "show", "out", "--json").json["tags"] == ["best"]
    assert nlps("runs", "tag", "out", "best", "--remove").stderr.startswith("out has no tags")
    refused = nlps("runs", "tag", "out", "best", "--remove")
    assert refused.code == 2 and "has no tag 'best'" in refused.stderr


@pytest.mark.parametrize("tag", ["", "a b", "-x", "a/b", "\x1b[31m", "x" * 65])
def test_what_is_no_tag_is_refused(nlps: Cli, tag: str) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    with pytest.raises(UsageError, match="is not a valid tag"):
        tags.change_tags(Path("out"), [tag])
    assert not (Path("out") / directory.TAGS).exists()


TAGGER = """
import sys
from pathlib import Path
from searchapp.runs.directory import change_tags
for place in range(5):
    change_tags(Path(sys.argv[1]), [f"t{sys.argv[2]}-{place}"])
"""


def test_processes_that_tag_at_once_lose_nothing(nlps: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    taggers = [Program(TAGGER, Path("out").resolve(), number) for number in range(3)]
    for tagger in taggers:
        with tagger:
            assert tagger.wait() == 0
    assert len(tags.tags_of(Path("out"))) == 15


def test_a_run_that_was_imported_reads_back_as_a_trec_run(nlps: Cli) -> None:
    as_trec(Path("other.trec"), rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    assert nlps("export", "out", "--format", "trec", "--out", "again.trec").code == 0
    assert trec.read_run(Path("again.trec")) == directory.read(Path("out")).run
