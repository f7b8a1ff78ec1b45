"""`searchapp runs import`, `list`, `show` and `tag`: runs of other programs become run directories."""

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
from searchapp.formats import encoding, records, run_files, trec
from searchapp.model import float32
from searchapp.runs import directory
from tests.cli.conftest import SAMPLES, Cli
from tests.programs import Program

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 20)
OF_NLPS = ("--task", "nlps", "--split", "dev")


@pytest.fixture
def nlps(offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs commands in a folder with the sample of nlps in `data`, without an index."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "nlps", "data")

    def run(*arguments: object) -> Any:
        more = (*OF_NLPS, "--data", "data") if arguments[:2] == ("runs", "import") else ()
        return offline(*arguments, *more)

    return run


def test_every_format_of_runs_can_be_named() -> None:
    names = {format_.value for format_ in ForeignFormat}
    assert names == set(run_files.FORMATS), "add it to ForeignFormat in cli/runs.py"


def topics() -> list[str]:
    return list(json.loads((SAMPLES / "nlps" / "dev_set.json").read_text()))


def documents() -> list[str]:
    return list(json.loads((SAMPLES / "nlps" / "knowledge_base.json").read_text()))


Rows = list[tuple[str, str, int, float]]


def sample_rows() -> Rows:
    """Make a run with thirty documents for each topic and descending scores."""
    return [
        (topic, document, rank, 10 - rank / 8)
        for start, topic in enumerate(topics())
        for rank, document in enumerate((documents() * 2)[start : start + 30], 1)
    ]


def write_trec(path: Path, rows: Rows) -> None:
    """Write a run as pyserini does: ranks from 1 on, scores with six decimals, its own tag."""
    path.write_text("".join(f"{t} Q0 {d} {r} {s:.6f} Anserini\n" for t, d, r, s in rows))


def write_csv(path: Path, rows: Rows) -> None:
    """Write a run as PyTerrier does: ranks from 0 on."""
    path.write_text("qid,docno,rank,score\n" + "".join(f"{t},{d},{r - 1},{s}\n" for t, d, r, s in rows))


def write_jsonl(path: Path, rows: Rows) -> None:
    lines = ({"query_id": t, "doc_id": d, "score": s, "run_id": "mine"} for t, d, _, s in rows)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def write_parquet(path: Path, rows: Rows) -> None:
    from pyarrow import parquet, table

    columns = {
        "qid": [int(t) for t, *_ in rows],
        "docno": [d for _, d, *_ in rows],
        "score": [s for *_, s in rows],
    }
    parquet.write_table(table(columns), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "other.trec": write_trec,
    "other.csv": write_csv,
    "other.jsonl": write_jsonl,
    "other.parquet": write_parquet,
    "no-name": write_parquet,
    "no-name-either": write_jsonl,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_run_of_any_format_becomes_a_run_directory(nlps: Cli, name: str) -> None:
    WRITERS[name](Path(name), sample_rows())
    imported = nlps("runs", "import", name, "--out", "runs/other", "--tool", "pyserini 1.2", "--json")
    assert imported.code == 0, imported.stderr
    stored = directory.read(Path("runs/other"))
    scores = [
        (ranking.topic_id, document, score) for ranking in stored.run for document, score in ranking.hits
    ]
    assert scores == [(topic, document, float32(score)) for topic, document, _, score in sample_rows()]
    manifest = stored.manifest
    assert (manifest.recipe, manifest.engine, manifest.depth, manifest.topics) == ({}, {}, 30, len(topics()))
    assert manifest.imported["file"] == str(Path(name).resolve())
    assert manifest.imported["tool"] == "pyserini 1.2"
    assert imported.json["hits"] == len(sample_rows()) and imported.json["skipped"] == {}
    assert nlps("runs", "verify", "runs/other").code == 0


def test_a_compressed_file_is_decompressed(nlps: Cli) -> None:
    write_trec(Path("plain"), sample_rows())
    Path("other.trec.gz").write_bytes(gzip.compress(Path("plain").read_bytes()))
    assert nlps("runs", "import", "other.trec.gz", "--out", "other").code == 0


def test_an_imported_run_has_the_digests_of_the_index_that_rank_uses(nlps: Cli, offline: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "other").code == 0
    assert offline("index", "nlps", "--data", "data").code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", "own").code == 0
    own, other = (directory.read_manifest(Path(name)) for name in ("own", "other"))
    assert (own.index_digest, own.mapping_digest) == (other.index_digest, other.mapping_digest)


def test_a_run_of_bm25s_is_imported_compared_and_judged(nlps: Cli, offline: Cli) -> None:
    """Rank the texts with another library and use its run like any other."""
    knowledge_base = json.loads(Path("data/knowledge_base.json").read_text())
    texts = {
        id_: " ".join(map(str, entry.values())) if isinstance(entry, dict) else str(entry)
        for id_, entry in knowledge_base.items()
    }
    statements = json.loads(Path("data/dev_set.json").read_text())
    queries = [
        " ".join(str(value) for value in statement.values() if isinstance(value, str))
        for statement in statements.values()
    ]
    retriever = bm25s.BM25(corpus=list(texts))
    retriever.index(bm25s.tokenize(list(texts.values()), show_progress=False), show_progress=False)
    results = retriever.retrieve(bm25s.tokenize(queries, show_progress=False), k=40, show_progress=False)
    lines = [
        f"{topic} Q0 {document} {rank} {score} bm25s\n"
        for topic, documents, scores in zip(statements, *results, strict=True)
        for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
    ]
    Path("bm25s.trec").write_text("".join(lines))
    check_run_is_usable(nlps, offline, "bm25s.trec")


def test_a_pyserini_run_is_imported_compared_and_judged(nlps: Cli, offline: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    check_run_is_usable(nlps, offline, "other.trec")


def check_run_is_usable(nlps: Cli, offline: Cli, file: str) -> None:
    """Import a run, then compare, judge, pool, show and export it."""
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
    Path("mine.qrels").write_text(f"{first.topic_id} 0 {first.document_ids()[0]} 1\n")
    judged = offline(
        "judgments", "import", "nlps", "mine.qrels", "--format", "qrels", "--annotator", "ann", *log
    )
    assert judged.code == 0, judged.stderr
    by_judgments = offline(
        "compare", "runs/own", "runs/other", "--judgments", "--measure", "RR", *CUTOFF, *log, "--json"
    )
    assert by_judgments.code == 0, by_judgments.stderr
    assert by_judgments.json["measures"][0]["means"]["other"] == 1.0
    for arguments in (
        ("judgments", "pool", "runs/own", "runs/other", "--depth", "5", "--out", "runs/pool"),
        ("topics", "nlps", "--run", "runs/other", "--plain", "--topic", first.topic_id),
        ("export", "runs/other", "--format", "official", "--cutoff", "20", "--out", "predict.txt"),
        ("export", "runs/other", "--format", "ir-metadata", "--out", "run.yml"),
    ):
        result = offline(*arguments)
        assert result.code == 0, result.stderr


# Errors of files


def write_lines(path: str, *lines: str) -> str:
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return path


def test_all_errors_are_reported_with_their_lines(nlps: Cli) -> None:
    topic, (first, second, *_) = topics()[0], documents()
    file = write_lines(
        "bad.trec",
        f"{topic} Q0 {first} 1 3.5 t",
        f"{topic} Q0 {first} 2 3.0 t",
        f"{topic} Q0 nothing 3 2.5 t",
        f"none Q0 {second} 1 2.0 t",
        f"{topic} Q0 {second} 4 nan t",
        f"{topic} Q0 {second} 4 t",
    )
    refused = nlps("runs", "import", file, "--out", "out")
    assert refused.code == 4 and not Path("out").exists()
    for message in (
        f"line 2: duplicate document: {first} of topic {topic} is also on line 1",
        f"line 3: unknown document: nothing of topic {topic}",
        "line 4: unknown topic: none",
        "line 5: score not a finite number: nan",
        "line 6: wrong number of columns: 5 cells instead of 6",
        "--lenient",
    ):
        assert message in refused.stderr
    lenient = nlps("runs", "import", file, "--out", "out", "--lenient", "--json")
    assert lenient.code == 0 and "left out: 5 problems" in lenient.stderr
    assert sum(lenient.json["skipped"].values()) == 5 == lenient.json["imported"]["skipped"]
    (ranking,) = directory.read(Path("out")).run
    assert ranking.document_ids() == (first,)
    assert f"{len(topics()) - 1} of the {len(topics())} topics of nlps dev have no ranking" in lenient.stderr


def test_documents_are_sorted_by_score_and_then_by_id(nlps: Cli) -> None:
    topic, (a, b, c, d, *_) = topics()[0], sorted(documents())
    file = write_lines(
        "other.trec",
        f"{topic} Q0 {d} 1 1.0 t",
        f"{topic} Q0 {c} 2 2.0 t",
        f"{topic} Q0 {b} 3 1.0 t",
        f"{topic} Q0 {a} 4 0.5 u",
    )
    imported = nlps("runs", "import", file, "--out", "out")
    assert imported.code == 0
    (ranking,) = directory.read(Path("out")).run
    assert ranking.document_ids() == (c, d, b, a)
    assert "line 2: ranks against the scores" in imported.stderr
    assert "rank 2 has a higher score than rank 1" in imported.stderr
    assert "several tags" in imported.stderr and directory.read_manifest(Path("out")).tag == "t"


def test_equal_scores_in_another_order_than_the_ranks_are_reported(nlps: Cli) -> None:
    topic, (first, second, *_) = topics()[0], sorted(documents())
    file = write_lines("other.trec", f"{topic} Q0 {first} 1 1.0 t", f"{topic} Q0 {second} 2 1.0 t")
    imported = nlps("runs", "import", file, "--out", "out", "--tag", "mine")
    assert imported.code == 0 and "equal scores" in imported.stderr and "descending id" in imported.stderr
    stored = directory.read(Path("out"))
    assert stored.run.rankings[0].document_ids() == (second, first) and stored.manifest.tag == "mine"


def test_an_imported_run_has_the_figures_of_its_file(nlps: Cli) -> None:
    ids = sorted(documents())
    # Scores that differ by 1e-9 are equal as float32.
    lines = [
        f"{topic} Q0 {document} 0 {1 + (number % 3) + number * 1e-9} t"
        for topic in topics()
        for number, document in enumerate(ids)
    ]
    file = write_lines("other.trec", *lines)
    write_lines("qrels", *(f"{topic} 0 {document} 1" for topic in topics() for document in ids[::4]))
    assert nlps("runs", "import", file, "--out", "out").code == 0
    assert nlps("export", "out", "--format", "trec", "--out", "again.trec").code == 0
    options = ("--qrels", "qrels", "--measure", "AP", *CUTOFF, "--json")
    scored = [nlps("evaluate", path, *options).json["measures"] for path in (file, "out", "again.trec")]
    assert scored[0] == scored[1] == scored[2]


@pytest.mark.parametrize(
    ("column", "values", "note"), [("rank", (2, 1), ""), ("score", (1, 2), "line 3: unsorted lines")]
)
def test_a_table_in_any_order_is_sorted_by_rank_or_score(
    nlps: Cli, column: str, values: tuple[int, int], note: str
) -> None:
    topic, pair = topics()[0], documents()[:2]
    rows = (f"{topic},{document},{value}" for document, value in zip(pair, values, strict=True))
    file = write_lines("other.csv", f"topic,document,{column}", *rows)
    imported = nlps("runs", "import", file, "--out", "out")
    assert imported.code == 0 and note in imported.stderr
    assert directory.read(Path("out")).run.rankings[0].document_ids() == (pair[1], pair[0])


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
def test_a_file_that_is_no_run_is_refused(nlps: Cli, name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    refused = nlps("runs", "import", name, "--out", "out")
    assert refused.code == 4 and message in refused.stderr and "Traceback" not in refused.stderr
    assert not Path("out").exists()


def test_a_run_of_another_task_is_refused_even_with_lenient(nlps: Cli) -> None:
    refused = nlps("runs", "import", write_lines("a.trec", "x Q0 y 1 1 t"), "--out", "out", "--lenient")
    assert refused.code == 4 and "check --task and --split" in refused.stderr
    missing = nlps("runs", "import", "nothing.trec", "--out", "out")
    assert missing.code == 4 and "nothing.trec" in missing.stderr
    assert nlps("runs", "import", "a.trec", "--out", "out", "--tag", "a b").code in (2, 4)


def refused_import(cli: Cli, file: str) -> str:
    """Import a file that is refused, and return the message."""
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


def test_reading_stops_after_many_problems(nlps: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_run, "MOST_PROBLEMS", 50)
    write_lines("a.trec", *["x Q0 y 1 1 t"] * 100)
    message = refused_import(nlps, "a.trec")
    assert "line 52: more than 50 problems; the first is a.trec: line 1: unknown topic" in message


def test_the_decompressed_size_of_parquet_is_limited(nlps: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import array, parquet, table

    def write(documents: list[Any]) -> str:
        columns = {
            "topic": ["1"] * len(documents),
            "document": array(documents),
            "score": [1.0] * len(documents),
        }
        parquet.write_table(table(columns), "a.parquet", compression="zstd")
        return "a.parquet"

    message = refused_import(nlps, write(["x" * 200_000] * 500))
    assert Path("a.parquet").stat().st_size < 10_000
    assert "500 problems: unknown topic (500)" in message and len(message) < 10_000
    assert "the document is ['x']: a text without white space" in refused_import(nlps, write([["x"]]))
    monkeypatch.setattr(records, "LARGEST_COLUMN", 1000)
    message = refused_import(nlps, write(["x" * 200_000, "y"]))
    assert "column too large: document has" in message


def test_without_pyarrow_the_message_names_the_command_to_install_it(
    nlps: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(Path("other.parquet"), sample_rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = nlps("runs", "import", "other.parquet", "--out", "out")
    assert refused.code == 2 and "-m pip install 'pyarrow>=15'`" in refused.stderr


def test_ids_with_escape_sequences_are_refused(nlps: Cli) -> None:
    file = write_lines("a.jsonl", json.dumps({"topic": "1", "document": "a\x1b[31m", "score": 1}))
    refused = nlps("runs", "import", file, "--out", "out")
    assert refused.code == 4 and "\x1b" not in refused.stderr


# Manifests, lists and tags


def test_a_manifest_without_imported_is_read_and_verified(nlps: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    path = Path("out") / directory.MANIFEST
    content = json.loads(path.read_text())
    assert content.pop("imported")
    path.write_text(json.dumps(content))
    manifest = directory.read_manifest(Path("out"))
    assert manifest.imported == {} and "imported" not in json.loads(path.read_text())
    path.write_text(json.dumps({**content, "digest": manifest.own_digest()}))
    assert nlps("runs", "verify", "out").code == 0


def test_runs_are_listed_by_task_and_tag(nlps: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    for name in ("a", "b"):
        assert nlps("runs", "import", "other.trec", "--out", name).code == 0
    assert nlps("runs", "tag", "a", "best", "paper").code == 0

    def tags_of(*options: str) -> dict[str, list[str]]:
        runs = nlps("runs", "list", *options, "--json").json["runs"]
        return {Path(run["run"]).name: run["tags"] for run in runs}

    assert tags_of() == {"a": ["best", "paper"], "b": []}
    assert list(tags_of("--tag", "best")) == ["a"]
    assert tags_of("--tag", "best", "--tag", "x") == tags_of("--task", "checkthat") == {}
    text = nlps("runs", "list", "--task", "nlps").stdout
    assert "best, paper" in text and "imported" in text
    assert "no such run" in nlps("runs", "list", "--tag", "x").stderr


def test_tags_do_not_change_the_run_and_can_be_removed(nlps: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    before = {file: file.read_bytes() for file in Path("out").iterdir()}
    assert nlps("runs", "tag", "out", "best", "--json").json == {"run": "out", "tags": ["best"]}
    tags_file = Path("out", directory.TAGS)
    assert {file: file.read_bytes() for file in Path("out").iterdir() if file != tags_file} == before
    assert nlps("runs", "verify", "out").code == 0
    text = nlps("runs", "show", "out").stdout
    digest = directory.read_manifest(Path("out")).digest
    assert "best" in text and "imported" in text and digest in text
    assert nlps("runs", "show", "out", "--json").json["tags"] == ["best"]
    assert nlps("runs", "tag", "out", "best", "--remove").stderr.startswith("out has no tags")
    refused = nlps("runs", "tag", "out", "best", "--remove")
    assert refused.code == 2 and "has no tag 'best'" in refused.stderr


@pytest.mark.parametrize("tag", ["", "a b", "-x", "a/b", "\x1b[31m", "x" * 65])
def test_invalid_tags_are_refused(nlps: Cli, tag: str) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    with pytest.raises(UsageError, match="is not a valid tag"):
        directory.change_tags(Path("out"), [tag])
    assert not (Path("out") / directory.TAGS).exists()


TAGGER = """
import sys
from pathlib import Path
from searchapp.runs.directory import change_tags
for number in range(5):
    change_tags(Path(sys.argv[1]), [f"t{sys.argv[2]}-{number}"])
"""


def test_processes_that_tag_concurrently_lose_nothing(nlps: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    taggers = [Program(TAGGER, Path("out").resolve(), number) for number in range(3)]
    for tagger in taggers:
        with tagger:
            assert tagger.wait() == 0
    assert len(directory.tags_of(Path("out"))) == 15


def test_an_imported_run_can_be_exported_as_a_trec_run(nlps: Cli) -> None:
    write_trec(Path("other.trec"), sample_rows())
    assert nlps("runs", "import", "other.trec", "--out", "out").code == 0
    assert nlps("export", "out", "--format", "trec", "--out", "again.trec").code == 0
    assert trec.read_run(Path("again.trec")) == directory.read(Path("out")).run
