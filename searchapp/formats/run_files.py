"""Runs of other programs: read rows from TREC, tables, JSON lines or Parquet; write rankings and `ir_metadata`.

    trec       topic Q0 document rank score tag
    csv, tsv   a header that names the columns
    jsonl      a JSON object per line, whose keys are the columns
    parquet    a Parquet file, which needs the package pyarrow

Rankings are written as a JSON object or a CSV row for each document, with the shortest decimal of its float32 score:

    {"topic": "7", "rank": 1, "document": "b12", "score": 8.2517}
    topic,rank,document,score

Metadata: T. Breuer, J. Keller, P. Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments, SIGIR 2022
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from searchapp.formats import records, trec
from searchapp.formats.encoding import open_unpacked
from searchapp.formats.problems import EntryProblems, Problems, shown
from searchapp.model import Run

TREC = "trec"
FORMATS = (TREC, *records.FORMATS)

# The names of columns, by priority.
COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "qid", "query_id", "topic_id", "query-id", "queryid", "query"),
    "document": ("document", "docno", "doc_id", "docid", "document_id", "corpus-id", "did", "pid"),
    "rank": ("rank",),
    "score": ("score", "sim", "similarity"),
    "tag": ("tag", "run_id", "run", "runid", "system"),
}

_SUFFIXES = {".trec": TREC, ".run": TREC, ".txt": TREC, ".res": TREC}
_MAGIC = b"PAR1"


class RunRow(NamedTuple):
    """A retrieved document; `where` is its place in the file."""

    where: str
    topic: str
    document: str
    rank: int | None
    score: float | None
    tag: str = ""

    @property
    def order_score(self) -> float:
        """The score, or without one the negative rank, which orders the documents, too."""
        return -float(self.rank or 0) if self.score is None else self.score


def format_of(path: Path) -> str:
    """Detect the format of a file by its name, otherwise by its beginning.

    Raises:
        OSError: the file can't be read.
    """
    by_name = _SUFFIXES.get(records.suffix_of(path)) or records.format_of(path)
    if by_name is not None:
        return by_name
    with open_unpacked(path) as file:
        if file.head.startswith(_MAGIC):
            return records.PARQUET
        return "jsonl" if file.head.lstrip().startswith(b"{") else TREC


def read_rows(path: Path, format_: str, problems: Problems) -> Iterator[RunRow]:
    """Yield the good rows of a file.

    Raises:
        UsageError: the format requires a package that is not installed.
    """
    if format_ == TREC:
        for line, (topic, _, document, rank, score, tag) in trec.read_lines(path, problems, trec.RUN):
            entry = EntryProblems(path, f"line {line}", problems)
            # The rank column of other tools may have any content: the score determines the order.
            numbers = _numbers(entry, {"rank": rank, "score": score})
            if entry.good:
                yield RunRow(entry.where, topic, document, *numbers, tag)
        return
    has_keys = records.has_keys(format_)
    columns: dict[str, str] | None = None
    for where, values in records.read_records(path, format_, problems):
        entry = EntryProblems(path, where, problems)
        if columns is None or has_keys:
            columns = _columns(values)
            if not _has_columns(entry, columns, values):
                if not has_keys:
                    return
                continue
        row = _row(entry, {name: values.get(column) for name, column in columns.items()})
        if entry.good:
            yield row


def _columns(values: Iterable[str]) -> dict[str, str]:
    by_name: dict[str, str] = {}
    for column in values:
        by_name.setdefault(column.strip().lower(), column)
    columns = {
        name: next((by_name[alias] for alias in aliases if alias in by_name), None)
        for name, aliases in COLUMN_NAMES.items()
    }
    return {name: column for name, column in columns.items() if column is not None}


def _has_columns(entry: EntryProblems, columns: Mapping[str, str], values: Iterable[str]) -> bool:
    missing = [name for name in ("topic", "document") if name not in columns]
    if not missing and "score" not in columns and "rank" not in columns:
        missing = ["score"]
    for name in missing:
        choice = ", ".join(COLUMN_NAMES[name][:4])
        detail = f"there is no column {name} among {', '.join(map(shown, values))}: name it {choice}"
        entry.problems.add(entry.path, "missing column", entry.where, detail, skippable=False)
    return not missing


def _row(entry: EntryProblems, values: Mapping[str, Any]) -> RunRow:
    topic = _id(entry, "topic", values["topic"])
    document = _id(entry, "document", values["document"]) if entry.good else ""
    numbers = _numbers(entry, values) if entry.good else (None, None)
    return RunRow(entry.where, topic, document, *numbers, str(values.get("tag") or ""))


def _id(entry: EntryProblems, name: str, value: object) -> str:
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if not trec.is_id(text):
        expected = "a text without white space, or a whole number, is expected"
        entry.wrong("unusable id", f"the {name} is {shown(repr(value))}: {expected}")
    return text


def _numbers(entry: EntryProblems, values: Mapping[str, object]) -> tuple[int | None, float | None]:
    """Return rank and score; report a missing or invalid score, or rank if there is no score."""
    score, rank = _number(values.get("score")), _number(values.get("rank"))
    whole = None if rank is None or rank != int(rank) else int(rank)
    if "score" in values and score is None:
        entry.wrong("score not a finite number", shown(str(values["score"])))
    elif "score" not in values and whole is None:
        entry.wrong("rank not an integer", shown(str(values.get("rank"))))
    return whole, score


def _number(value: object) -> float | None:
    """Return a number that is finite as float32; None for any other value."""
    if isinstance(value, str):
        return trec.score_of(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return trec.score_of(repr(value))
    return None


COLUMNS = ("topic", "rank", "document", "score")


def write_jsonl(target: BinaryIO, run: Run) -> None:
    """Write a run as one JSON object per line."""
    for row in _rows(run):
        line = json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False)
        target.write(f"{line}\n".encode())


def write_csv(target: BinaryIO, run: Run) -> None:
    """Write a run as a table with a header: UTF-8, LF, cells quoted where necessary."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(run):
        writer.writerow(row)
        target.write(buffer.getvalue().encode())
        buffer.seek(0)
        buffer.truncate()


def _rows(run: Run) -> Iterator[tuple[Any, ...]]:
    from numpy import float32

    for ranking in run:
        for rank, hit in enumerate(ranking.hits, 1):
            # NumPy prints the shortest decimal of a float32, which is also the double's.
            yield ranking.topic_id, rank, hit.document_id, float(str(float32(hit.score)))


START, END = "# ir_metadata.start", "# ir_metadata.end"
SCHEMA_VERSION = 0.1
RUN_VERSION = 1.0

# The parts of the metadata, in the order of the schema.
PRIMAD = ("platform", "research goal", "implementation", "method", "actor", "data")


def write_ir_metadata(target: BinaryIO, tag: str, parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the metadata of a run as YAML between two comment lines, without empty values."""
    metadata = {"schema-version": SCHEMA_VERSION, "run-version": RUN_VERSION, "tag": tag}
    metadata |= {name: parts[name] for name in PRIMAD if name in parts}
    lines = _yaml_lines(_without_empty(metadata), 0)
    target.write("\n".join([START, *lines, END, ""]).encode("utf-8", "backslashreplace"))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = {str(name): _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in (None, "", {}, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [item for item in map(_without_empty, value) if item not in (None, "", {}, [])]
    return value


def _yaml_lines(mapping: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a mapping as YAML blocks; texts are quoted as in JSON."""
    for name, value in mapping.items():
        key, indent = f"{'  ' * depth}{_key(name)}:", "  " * (depth + 1)
        if isinstance(value, Mapping):
            yield key
            yield from _yaml_lines(value, depth + 1)
        elif isinstance(value, list):
            yield key
            for item in value:
                if isinstance(item, Mapping):
                    first, *rest = _yaml_lines(item, depth + 2)
                    yield f"{indent}- {first.strip()}"
                    yield from rest
                else:
                    yield f"{indent}- {_scalar(item)}"
        else:
            yield f"{key} {_scalar(value)}"


_PLAIN = re.compile("[A-Za-z][A-Za-z0-9 _-]*[A-Za-z0-9]")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}  # plain words that are not texts in YAML


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        digits, exponent, power = json.dumps(value).partition("e")
        # In YAML 1.1 a number with an exponent and without a point is a text.
        return digits + ".0" * (exponent != "" and "." not in digits) + exponent + power
    if not isinstance(value, str):
        return json.dumps(value)
    return f'"{"".join(map(_character, value))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
