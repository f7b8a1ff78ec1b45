"""Write a task's documents, topics and gold in the formats of other programs.

    beir   corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv
    trec   documents.trec (SGML), topics.SPLIT.xml, qrels.SPLIT.txt
    tira   documents.jsonl; queries.jsonl and qrels.txt, in a folder for each split if there are several

`tasks new --from` reads each of them. An own task that indexes the field `title` as the first line of its texts gets
title and text apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.errors import DataError
from searchapp.files import atomic_folder
from searchapp.formats import trec, trec_collections
from searchapp.formats.problems import Problems, shown
from searchapp.formats.records import json_line
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Topic
from searchapp.progress import Progress
from searchapp.tasks.base import Collection, DataSplit, Grades, Task


@dataclass(frozen=True, slots=True)
class SplitContent:
    """The topics of a split, and their grades; empty without gold."""

    name: str
    topics: Sequence[Topic]
    grades: Grades


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """How many documents were written, and the splits."""

    documents: int
    splits: tuple[SplitContent, ...]


def export_task(
    task: Task,
    collection: Collection,
    format_: str,
    out: Path,
    progress: Progress,
    *,
    splits: Sequence[str] = (),
    overwrite: bool = False,
) -> ExportedTask:
    """Write a task into a folder, whole or not at all.

    Args:
        task: the task
        collection: its documents, topics and gold
        format_: a key of `WRITERS`
        out: the folder to write
        progress: receives the documents
        splits: by default all that the collection has files of
        overwrite: replace the folder

    Raises:
        UsageError: a split is unknown, or the folder exists.
        InvalidFiles: the task's files have problems.
        DataError: two topics have the same id, or the gold can't be read.
    """
    chosen = [task.info.require_split(split) for split in splits] or [
        split for split in task.info.splits if any(file.exists() for file in collection.split_files(split))
    ]
    problems = Problems()
    contents = tuple(
        SplitContent(split, collection.topics(split, problems), _grades(task, collection, split))
        for split in chosen
    )
    problems.raise_if_any()
    written = 0

    def documents() -> Iterator[Document]:
        nonlocal written
        # The first index has the documents of all others.
        source = collection.indexes.get(
            collection.renamed.get(task.info.index_names[0], task.info.index_names[0])
        )
        with progress.stage("writing documents") as advance:
            for document in (source or collection.documents).read(problems):
                advance(1)
                written += 1
                yield document

    with atomic_folder(out, replace=overwrite) as folder:
        WRITERS[format_](folder, documents(), contents)
        problems.raise_if_any()
    return ExportedTask(written, contents)


def _grades(task: Task, collection: Collection, split: str) -> Grades:
    if collection.why_no_gold(split) or not all(file.exists() for file in collection.gold_files(split)):
        return {}
    return task.official.grades(collection.gold_files(split), DataSplit(collection, split))


def _title_and_text(document: Document) -> tuple[str, str]:
    title = document.fields.get("title")
    if not isinstance(title, str):
        return "", document.text
    return title, "" if document.text == title else document.text.removeprefix(f"{title}\n")


def _other_fields(document: Document) -> dict[str, Any]:
    return {name: value for name, value in document.fields.items() if name != "title"}


def write_beir(folder: Path, documents: Iterator[Document], splits: Sequence[SplitContent]) -> None:
    """Write the files of BEIR; fields that it does not know are `metadata`."""
    with (folder / "corpus.jsonl").open("wb") as file:
        for document in documents:
            title, text = _title_and_text(document)
            metadata = _other_fields(document)
            file.write(json_line({"_id": document.id, "title": title, "text": text, "metadata": metadata}))
    known: dict[str, Topic] = {}
    with (folder / "queries.jsonl").open("wb") as file:
        for split in splits:
            for topic in split.topics:
                if known.setdefault(topic.id, topic).text != topic.text:
                    raise DataError(
                        f"the topic {shown(topic.id)} has another text in the split {split.name}, but BEIR has one "
                        "file for the topics of all splits: export one split with --split"
                    )
                if known[topic.id] is topic:
                    file.write(
                        json_line({"_id": topic.id, "text": topic.text, "metadata": dict(topic.fields)})
                    )
    (folder / "qrels").mkdir()
    for split in filter(lambda split: split.grades, splits):
        with (folder / "qrels" / f"{split.name}.tsv").open("wb") as file:
            file.write(b"query-id\tcorpus-id\tscore\n")
            for topic_id, grades in split.grades.items():
                for document_id, grade in grades.items():
                    file.write(f"{topic_id}\t{document_id}\t{grade}\n".encode())


def write_trec(folder: Path, documents: Iterator[Document], splits: Sequence[SplitContent]) -> None:
    """Write SGML documents, XML topics and qrels; fields of documents except the title are left out."""
    with (folder / "documents.trec").open("wb") as file:
        for document in documents:
            trec_collections.write_document(file, document.id, *_title_and_text(document))
    for split in splits:
        with (folder / f"topics.{split.name}.xml").open("wb") as file:
            trec_collections.write_topics(file, split.topics)
        if split.grades:
            with (folder / f"qrels.{split.name}.txt").open("wb") as file:
                trec.write_qrels(file, split.grades)


def write_tira(folder: Path, documents: Iterator[Document], splits: Sequence[SplitContent]) -> None:
    """Write the files of TIRA."""
    with (folder / "documents.jsonl").open("wb") as file:
        for document in documents:
            title, text = _title_and_text(document)
            values = {"docno": document.id, "title": title, "text": text}
            file.write(json_line({**values, "original_document": _other_fields(document)}))
    for split in splits:
        place = folder if len(splits) == 1 else folder / split.name
        place.mkdir(exist_ok=True)
        with (place / "queries.jsonl").open("wb") as file:
            for topic in split.topics:
                original = {"query_id": topic.id, "text": topic.text, **topic.fields}
                file.write(json_line({"qid": topic.id, "query": topic.text, "original_query": original}))
        if split.grades:
            with (place / "qrels.txt").open("wb") as file:
                trec.write_qrels(file, split.grades)


# The function that writes each format.
WRITERS: Mapping[str, Callable[[Path, Iterator[Document], Sequence[SplitContent]], None]] = {
    "beir": write_beir,
    "trec": write_trec,
    "tira": write_tira,
}
