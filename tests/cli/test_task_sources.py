"""`tasks new --from` and `tasks export`: from files of other programs to an evaluated run."""

from __future__ import annotations

import gzip
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import SAMPLES, Cli, Result

DOCUMENTS = {
    "d1": ("Lentil soup", "Simmer red lentils with cumin until they are soft."),
    "d2": ("Bread", "Knead flour, water and salt; bake in a hot oven."),
    "d3": ("Flatbread", "Fry thin rounds of dough in a pan."),
    "d4": ("", "Roast the pumpkin and blend a soup & serve."),
    "d5": ("Pickles", "Put cucumbers into vinegar < 5 % acid."),
    "6": ("Café", "Grind the beans, crème on top."),
}
TOPICS = {"1": "soup with lentils", "2": "bake bread", "3": "coffee beans to grind"}
QRELS = {
    "dev": {"1": {"d1": 2, "d4": 1, "d2": 0}, "2": {"d3": 1, "d2": -1}},
    "test": {"3": {"6": 1}},
}
DESCRIPTION = "What to do?"


def lines(*values: Mapping[str, Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def qrels_text(split: str, layout: str = "{topic} 0 {document} {grade}\n") -> str:
    return "".join(
        layout.format(topic=topic, document=document, grade=grade)
        for topic, grades in QRELS[split].items()
        for document, grade in grades.items()
    )


def rows(split: str) -> list[dict[str, Any]]:
    return [
        {"query-id": topic, "corpus-id": document, "score": float(grade)}
        for topic, grades in QRELS[split].items()
        for document, grade in grades.items()
    ]


def write_beir(folder: Path) -> str:
    corpus = lines(*({"_id": id_, "title": title, "text": text} for id_, (title, text) in DOCUMENTS.items()))
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.encode("utf-8-sig")))
    queries = lines(*({"_id": id_, "text": text, "metadata": {}} for id_, text in TOPICS.items()))
    (folder / "queries.jsonl").write_bytes(queries.replace("\n", "\r\n").encode())
    (folder / "qrels").mkdir()
    for split in QRELS:
        table = "query-id\tcorpus-id\tscore\n" + qrels_text(split, "{topic}\t{document}\t{grade}\n")
        (folder / "qrels" / f"{split}.tsv").write_text(table)
    return f"beir:{folder}"


def sgml(ids: Iterator[str]) -> str:
    parts = []
    for id_ in ids:
        title, text = (part.replace("&", "&amp;").replace("<", "&lt;") for part in DOCUMENTS[id_])
        headline = f"<HEADLINE>\n<P>{title}</P>\n</HEADLINE>\n" if title else ""
        parts.append(f"<DOC>\n<DOCNO> {id_} </DOCNO>\n{headline}<TEXT>\n{text}\n</TEXT>\n</DOC>\n")
    return "".join(parts)


def write_trec(folder: Path) -> str:
    ids = list(DOCUMENTS)
    (folder / "disk").mkdir()
    (folder / "disk" / "a.gz").write_bytes(gzip.compress(sgml(iter(ids[:3])).encode()))
    (folder / "disk" / "b").write_bytes(sgml(iter(ids[3:])).replace("\n", "\r\n").encode("cp1252"))
    (folder / "topics.dev.txt").write_text(
        "\n".join(
            f"<top>\n<head> Tipster Topic Description\n<num> Number: 00{id_}\n<title> Topic: {TOPICS[id_]}\n"
            f"<desc> Description:\n{DESCRIPTION}\n<narr> Narrative:\nAll.\n</top>\n"
            for id_ in QRELS["dev"]
        )
    )
    (folder / "topics.test.xml").write_text(
        f'<?xml version="1.0"?>\n<topics><topic number="3" type="single"><query>{TOPICS["3"]}</query>'
        f"<description>{DESCRIPTION}</description></topic></topics>"
    )
    for split in QRELS:
        (folder / f"qrels.{split}.txt").write_text(qrels_text(split))
    (folder / "readme").write_text("Notes on the collection.\n")
    return f"trec:{folder}"


def write_tira(folder: Path) -> str:
    documents = ({"docno": id_, "title": title, "text": text} for id_, (title, text) in DOCUMENTS.items())
    (folder / "documents.jsonl").write_text(lines(*documents))
    for split, qrels in QRELS.items():
        (folder / split).mkdir()
        (folder / split / "qrels.txt").write_text(qrels_text(split))
        if split == "dev":
            queries = lines(*({"qid": int(id_), "query": TOPICS[id_]} for id_ in qrels))
            (folder / split / "queries.jsonl").write_text(queries)
        else:
            topics = (f'<topic number="{id_}"><query>{TOPICS[id_]}</query></topic>' for id_ in qrels)
            (folder / split / "queries.xml").write_text(f"<topics>{''.join(topics)}</topics>")
    return f"tira:{folder}"


README = """---
license: mit
dataset_info:
- config_name: corpus
  splits:
  - name: corpus
    num_examples: 6
configs:
- config_name: default
  data_files:
  - split: dev
    path: qrels/dev-*
  - split: test
    path:
    - "qrels/test.jsonl"
- config_name: corpus
  data_files:
  - split: corpus
    path: corpus/corpus-*
- config_name: queries
  data_files: queries.jsonl
---
# Cooking
"""


def write_hub(folder: Path) -> str:
    from pyarrow import Table, parquet

    (folder / "README.md").write_text(README)
    for name in ("corpus", "qrels"):
        (folder / name).mkdir()
    documents = [{"_id": id_, "title": title, "text": text} for id_, (title, text) in DOCUMENTS.items()]
    for number, part in enumerate((documents[:2], documents[2:])):
        table = Table.from_pylist(part)
        parquet.write_table(table, folder / "corpus" / f"corpus-0000{number}-of-00002.parquet")
    (folder / "queries.jsonl").write_text(
        lines(*({"_id": id_, "text": text} for id_, text in TOPICS.items()))
    )
    for number, row in enumerate(rows("dev")):
        parquet.write_table(Table.from_pylist([row]), folder / "qrels" / f"dev-0000{number}-of-00005.parquet")
    (folder / "qrels" / "test.jsonl").write_text(lines(*rows("test")))
    return f"hub:{folder}"


class TitledDoc(NamedTuple):
    doc_id: str
    title: str
    body: str

    def default_text(self) -> str:
        return f"{self.title} {self.body}"


def write_irds(folder: Path) -> str:
    """Register data sets of ir_datasets."""
    import ir_datasets
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel

    class Docs(BaseDocs):  # type: ignore[misc]
        def docs_iter(self) -> Iterator[Any]:
            return (TitledDoc(id_, *texts) for id_, texts in DOCUMENTS.items())

        def docs_cls(self) -> Any:
            return TitledDoc

    class Queries(BaseQueries):  # type: ignore[misc]
        def __init__(self, split: str) -> None:
            self.split = split

        def queries_iter(self) -> Iterator[Any]:
            return (GenericQuery(id_, TOPICS[id_]) for id_ in QRELS[self.split])

    class Qrels(BaseQrels):  # type: ignore[misc]
        def __init__(self, split: str) -> None:
            self.split = split

        def qrels_iter(self) -> Iterator[Any]:
            for topic, grades in QRELS[self.split].items():
                yield from (TrecQrel(topic, document, grade, "0") for document, grade in grades.items())

    name = f"cooking-{folder.parent.name}"
    ir_datasets.registry.register(name, ir_datasets.Dataset(Docs()))
    for split in QRELS:
        ir_datasets.registry.register(
            f"{name}/{split}", ir_datasets.Dataset(Docs(), Queries(split), Qrels(split))
        )
    return f"irds:{name}"


def write_parquet(folder: Path) -> tuple[str, ...]:
    from pyarrow import Table, parquet

    documents = [{"docno": id_, "title": title, "text": text} for id_, (title, text) in DOCUMENTS.items()]
    parquet.write_table(Table.from_pylist(documents), folder / "documents.parquet", row_group_size=2)
    topics = [{"qid": int(id_), "query": TOPICS[id_]} for id_ in QRELS["dev"]]
    parquet.write_table(Table.from_pylist(topics), folder / "topics.parquet")
    parquet.write_table(Table.from_pylist(rows("dev")), folder / "qrels.parquet")
    options = ("--topics", str(folder / "topics.parquet"), "--gold", str(folder / "qrels.parquet"))
    return (f"parquet:{folder / 'documents.parquet'}", *options)


WRITERS: Mapping[str, Callable[[Path], str | tuple[str, ...]]] = {
    "beir": write_beir,
    "trec": write_trec,
    "tira": write_tira,
    "hub": write_hub,
    "irds": write_irds,
    "parquet": write_parquet,
}


def new_task(cli: Cli, tmp_path: Path, *source: str) -> tuple[Path, Result]:
    """Make and index a task of a source; return its file and the result of `tasks new`."""
    task = tmp_path / "cooking.toml"
    made = cli("tasks", "new", task, "--from", *source)
    assert made.code == 0, made.stderr
    return task, made


def figures(cli: Cli, task: Path, split: str, out: Path) -> Any:
    """Rank and evaluate a split of an indexed task."""
    ranked = cli("rank", task, "--split", split, "--out", out)
    assert ranked.code == 0, ranked.stderr
    evaluated = cli("evaluate", out, "--json")
    assert evaluated.code == 0, evaluated.stderr
    return evaluated.json


@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_each_source_become_an_evaluated_run(offline: Cli, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source = WRITERS[kind](folder)
    task, made = new_task(offline, tmp_path, *([source] if isinstance(source, str) else source))
    settings = tomllib.loads(task.read_text())
    assert settings["grades"] == ["not relevant", "relevant, grade 1", "relevant, grade 2"]
    indexed = offline("index", task, "--json")
    assert indexed.code == 0, indexed.stderr
    assert indexed.json["documents"] == 6
    assert "negative grade: -1 counts as 0, not relevant" in indexed.stderr
    splits = ["dev"] if kind == "parquet" else ["dev", "test"]
    assert offline("tasks", "show", task, "--json").json["splits"] == splits
    for split in splits:
        result = figures(offline, task, split, tmp_path / split)
        assert result["topics"] == len(QRELS[split])
    # `Bread` is the only document with the words of topic 2 in its title and text, but only flatbread is relevant.
    assert figures(offline, task, "dev", tmp_path / "again")["measures"]["RR"] == 0.5
    hit = offline("search", task, "cafe", "--json").json["hits"][0]
    assert (hit["id"], hit["text"]) == ("6", "Café\nGrind the beans, crème on top.")
    is_converted = kind in ("trec", "tira", "hub", "irds")
    assert (tmp_path / "cooking-converted").exists() == is_converted
    assert ("converted files into" in made.stderr) == is_converted


@pytest.mark.parametrize("kind", ["beir", "trec", "tira"])
def test_an_exported_task_has_the_figures_of_the_original(offline: Cli, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    task, _ = new_task(offline, tmp_path, write_beir(folder))
    assert offline("index", task).code == 0
    out = tmp_path / "exported"
    exported = offline("tasks", "export", task, "--format", kind, "--out", out, "--json")
    assert exported.code == 0, exported.stderr
    assert exported.json["documents"] == 6
    assert exported.json["splits"] == [
        {"split": "dev", "topics": 2, "judged": 2},
        {"split": "test", "topics": 1, "judged": 1},
    ]
    again = tmp_path / "again.toml"
    assert offline("tasks", "new", again, "--from", f"{kind}:{out}").code == 0
    assert offline("index", again).code == 0
    for split in QRELS:
        results = [
            figures(offline, file, split, tmp_path / f"{file.stem}-{split}")["measures"]
            for file in (task, again)
        ]
        assert results[0] == results[1]
    refused = offline("tasks", "export", task, "--format", kind, "--out", out)
    assert refused.code == 2 and "exists already" in refused.stderr
    one = offline(
        "tasks", "export", task, "--format", kind, "--out", out, "--split", "test", "--overwrite", "--json"
    )
    assert [row["split"] for row in one.json["splits"]] == ["test"]
    if kind == "tira":
        assert (out / "qrels.txt").read_text() == "3 0 6 1\n"


@pytest.mark.parametrize(
    "name", ["nlps", "explanation-2019", "checkthat", "smart-types-dbpedia", "smart-relations-dbpedia"]
)
def test_shipped_tasks_are_exported_and_read_again(offline: Cli, tmp_path: Path, name: str) -> None:
    for kind in ("beir", "trec", "tira"):
        out = tmp_path / kind
        data = SAMPLES / name
        exported = offline("tasks", "export", name, "--data", data, "--format", kind, "--out", out, "--json")
        assert exported.code == 0, exported.stderr
        task = tmp_path / f"{kind}.toml"
        made = offline("tasks", "new", task, "--from", f"{kind}:{out}")
        assert made.code == 0, made.stderr
        assert offline("index", task, "--json").json["documents"] == exported.json["documents"]


def refused(cli: Cli, tmp_path: Path, source: str, *options: str) -> str:
    """Return the message of a `tasks new` that writes nothing."""
    before = set(tmp_path.iterdir())
    result = cli("tasks", "new", tmp_path / "cooking.toml", "--from", source, *options)
    assert result.code in (2, 4) and "Traceback" not in result.stderr
    assert set(tmp_path.iterdir()) == before
    return result.stderr


def test_all_missing_files_are_reported_together(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    message = refused(offline, tmp_path, f"beir:{folder}")
    assert "corpus.jsonl or corpus.jsonl.gz is expected" in message and "queries.jsonl or" in message
    message = refused(offline, tmp_path, f"tira:{folder}")
    assert "documents.jsonl or corpus.jsonl.gz is expected" in message and "queries.jsonl or" in message
    assert "no file has an element <DOC>" in refused(offline, tmp_path, f"trec:{folder}")
    message = refused(offline, tmp_path, f"hub:{folder}")
    assert "no single configuration corpus: it has no data files" in message
    for source in ("beir:none", "trec:none", "tira:none", "hub:none", "parquet:none.parquet"):
        assert "none" in refused(offline, tmp_path, source)
    assert "unknown source 'zip:x': name one of beir:DIR, irds:ID" in refused(offline, tmp_path, "zip:x")
    assert "ir_datasets has no data set 'no/such'" in refused(offline, tmp_path, "irds:no/such")


def test_problems_of_converted_files_are_reported_together_and_left_out(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source = write_trec(folder)
    (folder / "more").write_text("<DOC><DOCNO>d1</DOCNO>again</DOC>\n<DOC>no id</DOC>\n<DOC><DOCNO>x</DOCNO>")
    (folder / "topics.more.txt").write_text("<top><num>9<title></top>")
    message = refused(offline, tmp_path, source)
    for part in (
        "4 problems: duplicate id (1), missing id (1), unfinished document (1), blank text (1); --lenient",
        "more: line 1: duplicate id: d1; the first one counts",
        "more: line 2: missing id: the document has no <DOCNO>",
        "more: line 3: unfinished document: the file ends before </DOC>",
        "topics.more.txt: line 1: blank text",
    ):
        assert part in message
    lenient = offline("tasks", "new", tmp_path / "cooking.toml", "--from", source, "--lenient")
    assert lenient.code == 0, lenient.stderr
    assert "left out: 4 problems" in lenient.stderr and "unusual, but not an error" in lenient.stderr
    assert "b: line 16: not UTF-8: 1 document read as Windows-1252" in lenient.stderr
    assert "not read, because they have no documents, topics or qrels: readme" in lenient.stderr
    assert offline("index", tmp_path / "cooking.toml", "--json").json["documents"] == 6
    again = offline("tasks", "new", tmp_path / "cooking.toml", "--from", source, "--lenient", "--overwrite")
    assert again.code == 0, again.stderr


def test_broken_gzip_of_any_source_is_reported_with_its_file(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source = write_trec(folder)
    (folder / "disk" / "a.gz").write_bytes((folder / "disk" / "a.gz").read_bytes()[:-9])
    assert "a.gz: unreadable file: the gzip file ends too early" in refused(offline, tmp_path, source)
    beir = tmp_path / "beir"
    beir.mkdir()
    source = write_beir(beir)
    (beir / "corpus.jsonl.gz").write_bytes((beir / "corpus.jsonl.gz").read_bytes()[:-9])
    assert "corpus.jsonl.gz: unreadable file: the gzip file ends too early" in refused(
        offline, tmp_path, source
    )


def test_missing_qrels_unknown_documents_and_duplicate_ids_of_beir(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source = write_beir(folder)
    corpus = folder / "corpus.jsonl.gz"
    text = gzip.decompress(corpus.read_bytes()).decode("utf-8-sig")
    corpus.write_bytes(
        gzip.compress((text + lines({"_id": 7, "text": "no title"}, {"_id": "7", "text": "x"})).encode())
    )
    with (folder / "qrels" / "dev.tsv").open("a") as file:
        file.write("1\tgone\t1\n2\tgone too\t1\n2\tlost\t1\n")
    message = refused(offline, tmp_path, source)
    assert (
        "dev.tsv: line 8: unusable id: corpus-id: an id must not be empty or contain white space" in message
    )
    assert "--lenient leaves these entries out" in message
    task = tmp_path / "cooking.toml"
    made = offline("tasks", "new", task, "--from", source, "--lenient")
    assert made.code == 0 and "left out: " in made.stderr
    indexed = offline("index", task)
    assert indexed.code == 4
    assert "corpus.jsonl.gz: line 8: duplicate id: 7" in indexed.stderr
    assert "dev.tsv: line 8: unusable id" in indexed.stderr
    indexed = offline("index", task, "--lenient", "--json")
    assert indexed.json["documents"] == 7
    assert "unknown document (2)" in indexed.stderr
    for path in (folder / "qrels").iterdir():
        path.unlink()
    made = offline("tasks", "new", tmp_path / "other.toml", "--from", source)
    assert made.code == 0 and "the split test has no qrels: its runs can't be evaluated" in made.stderr


def test_a_hub_folder_with_several_collections_needs_a_prefix(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for language in ("en", "de"):
        for config, name, values in (
            ("corpus", "corpus", [{"_id": id_, "text": text} for id_, (_, text) in DOCUMENTS.items()]),
            ("queries", "queries", [{"_id": id_, "text": text} for id_, text in TOPICS.items()]),
            ("qrels", "test", rows("dev")),
        ):
            place = folder / f"{language}-{config}"
            place.mkdir()
            (place / f"{name}.jsonl").write_text(lines(*values))
    message = refused(offline, tmp_path, f"hub:{folder}")
    assert "de-corpus, en-corpus: choose with hub:" in message
    task, made = new_task(offline, tmp_path, f"hub:{folder}#en")
    assert "de-corpus" not in task.read_text() and "no qrels" not in made.stderr
    assert tomllib.loads(task.read_text())["topics"]["test"]["gold"]["file"] == "files/en-qrels/test.jsonl"


def test_options_that_contradict_a_source_are_refused(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source = write_beir(folder)
    queries = str(folder / "queries.jsonl")
    assert "has topics of its own" in refused(offline, tmp_path, source, "--topics", queries)
    assert "leave out --documents" in refused(offline, tmp_path, source, "--documents", queries)
    assert "gold needs topics" in refused(offline, tmp_path, source, "--gold", queries)


def test_without_their_packages_sources_name_the_command_to_install_them(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    source, *_ = write_parquet(folder)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    assert "-m pip install 'pyarrow>=" in refused(offline, tmp_path, source)
    assert "-m pip install 'ir-datasets>=" in refused(offline, tmp_path, "irds:vaswani")


def test_hostile_names_in_files_are_shown_as_text(offline: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: \x1b[31mcorpus\n  data_files: ../../etc/passwd\n---\n"
    )
    message = refused(offline, tmp_path, f"hub:{folder}")
    assert "\x1b" not in message and "missing file" in message
