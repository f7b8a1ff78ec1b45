"""Runs of other programs: read their rows from TREC, tables, JSON lines or Parquet; write rankings and `ir_metadata`.

    trec       topic Q0 document rank score tag
    csv, tsv   a header that names the columns
    jsonl      a JSON object a line, whose keys are the columns
    parquet    a Parquet file, which takes the package pyarrow

Columns are known by the names that the field has for them, as `qid` or `query_id`; there must be a topic, a document,
and a score or a rank.

Rankings are written as a JSON object or a CSV row for each retrieved document, with the shortest decimal that is read
back as the same float32:

    {"topic": "7", "rank": 1, "document": "b12", "score": 8.2517}
    topic,rank,document,score

`write_ir_metadata` describes a run in YAML between two comment lines, which may precede the lines of a TREC run:

    T. Breuer, J. Keller, P. Schaer, ir_metadata: An Extensible Metadata Schema for IR Experiments, SIGIR 2022
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

from searchapp.errors import UsageError
from searchapp.formats import records, trec
from searchapp.formats.encoding import open_unpacked
from searchapp.formats.problems import Problems, shown
from searchapp.model import Run
from searchapp.resources import install_command

TREC, PARQUET = "trec", "parquet"
FORMATS = (TREC, *records.FORMATS, PARQUET)

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "qid", "query_id", "topic_id", "query-id", "queryid", "query"),
    "document": ("document", "docno", "doc_id", "docid", "document_id", "corpus-id", "did", "pid"),
    "rank": ("rank",),
    "score": ("score", "sim", "similarity"),
    "tag": ("tag", "run_id", "run", "runid", "system"),
}
"""What a column may be called, the first name that there is being taken."""

LARGEST_COLUMN = 1 << 28
"""The bytes of a column of a row group of a Parquet file, unpacked."""

LONGEST_TEXT = 1 << 12
"""The characters of a text in a Parquet file, in which few bytes can stand for a long one in every row."""

PARQUET_ROWS = 1 << 12
"""The rows of a Parquet file that are read at once."""

_SUFFIXES = {".trec": TREC, ".run": TREC, ".txt": TREC, ".res": TREC, ".parquet": PARQUET}
_MAGIC = b"PAR1"


class Row(NamedTuple):
    """A retrieved document; `where` is its place in the file. `rank` or `score` is None where there is none."""

    where: str
    topic: str
    document: str
    rank: int | None
    score: float | None
    tag: str = ""


def format_of(path: Path) -> str:
    """The format of a file, by its name or else by how it begins.

    Raises:
        OSError: it can't be read.
    """
    named = _SUFFIXES.get(records.suffix_of(path)) or records.format_of(path)
    if named is not None:
        return named
    with open_unpacked(path) as file:
        if file.head.startswith(_MAGIC):
            return PARQUET
        return "jsonl" if file.head.lstrip().startswith(b"{") else TREC


def read_rows(path: Path, format_: str, problems: Problems) -> Iterator[Row]:
    """The good rows of a file, in its order; what is wrong with the others goes to `problems`.

    Raises:
        UsageError: it takes a package that is not installed.
    """
    if format_ == TREC:
        for line, (topic, _, document, rank, score, tag) in trec.read_lines(path, problems, trec.RUN):
            found = _numbers(path, f"line {line}", rank, score, problems)
            if found is not None:
                # The rank column of other tools may hold anything: the score is what says the order.
                yield Row(f"line {line}", topic, document, *found, tag)
        return
    has_keys = format_ != PARQUET and records.has_keys(format_)
    held = _of_parquet(path, problems) if format_ == PARQUET else _of_records(path, format_, problems)
    named: dict[str, str] | None = None
    for where, values in held:
        if named is None or has_keys:
            named = _named(values)
            if not _has_columns(path, where, named, values, problems):
                if not has_keys:
                    return
                continue
        row = _row(path, where, {name: values.get(column) for name, column in named.items()}, problems)
        if row is not None:
            yield row


def _of_records(path: Path, format_: str, problems: Problems) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for record in records.read_records(path, format_, problems):
        yield f"line {record.line}", record.values


def _of_parquet(path: Path, problems: Problems) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise UsageError(
            f"{path} is a Parquet file, which takes the package pyarrow: install it with "
            f"`{install_command('parquet')}`, or save the run as CSV or JSONL"
        ) from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            texts, others = _parquet_columns(file, path, problems)
        if problems.stopped:
            return
        # As dictionaries: a text that many rows share is unpacked once.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(PARQUET_ROWS, columns=[*texts, *others]):
                for name in texts:
                    longest = max((len(text or "") for text in batch[name].dictionary.to_pylist()), default=0)
                    if longest > LONGEST_TEXT:
                        where = f"rows {number + 1} to {number + len(batch)}"
                        detail = f"{shown(name)} has a text of {longest:,} characters: the limit is {LONGEST_TEXT:,}"
                        problems.add(path, "text too long", where, detail, skippable=False)
                        return
                for values in batch.to_pylist():
                    number += 1
                    yield f"row {number}", values
    except OSError as error:
        problems.add_unopened(path, error)
        return
    except ArrowException as error:
        problems.add(path, "not Parquet", detail=str(error).splitlines()[0], skippable=False)
        return
    if not number:
        problems.add(path, "empty file", detail="it has no row", skippable=False)


def _parquet_columns(file: Any, path: Path, problems: Problems) -> tuple[list[str], list[str]]:
    """The columns of texts and the other ones that a run has; those that can't be read within limits are problems."""
    from pyarrow import types

    wanted = {name for names in COLUMN_NAMES.values() for name in names}
    fields = [field for field in file.schema_arrow if field.name.lower() in wanted]
    names = {field.name for field in fields}
    for field in fields:
        if types.is_nested(field.type):
            detail = f"{shown(field.name)} is of the type {field.type}, not a text or a number"
            problems.add(path, "wrong type", detail=detail, skippable=False)
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if column.path_in_schema in names and column.total_uncompressed_size > LARGEST_COLUMN:
                detail = (
                    f"{shown(column.path_in_schema)} takes {column.total_uncompressed_size:,} bytes unpacked: the "
                    f"limit in a row group is {LARGEST_COLUMN:,}: write smaller row groups"
                )
                problems.add(path, "column too large", f"row group {group + 1}", detail, skippable=False)
    is_text = {
        field.name: types.is_string(field.type)
        or types.is_large_string(field.type)
        or types.is_dictionary(field.type)
        for field in fields
    }
    return [name for name in is_text if is_text[name]], [name for name in is_text if not is_text[name]]


def _named(values: Iterable[str]) -> dict[str, str]:
    """The column of each thing that a run has, where there is one."""
    there: dict[str, str] = {}
    for column in values:
        there.setdefault(column.strip().lower(), column)
    found = {
        name: next((there[one] for one in names if one in there), None)
        for name, names in COLUMN_NAMES.items()
    }
    return {name: column for name, column in found.items() if column is not None}


def _has_columns(
    path: Path, where: str, named: Mapping[str, str], values: Iterable[str], problems: Problems
) -> bool:
    missing = [name for name in ("topic", "document") if name not in named]
    if not missing and "score" not in named and "rank" not in named:
        missing = ["score"]
    for name in missing:
        choice = ", ".join(COLUMN_NAMES[name][:4])
        detail = f"there is no {name} among {', '.join(map(shown, values))}: call it {choice}"
        problems.add(path, "missing column", where, detail, skippable=False)
    return not missing


def _row(path: Path, where: str, values: Mapping[str, Any], problems: Problems) -> Row | None:
    ids = []
    for name in ("topic", "document"):
        id_ = _id(values[name])
        if id_ is None:
            held = shown(repr(values[name]))
            detail = f"the {name} is {held}: a text without white space, or a whole number, is expected"
            problems.add(path, "unusable id", where, detail)
            return None
        ids.append(id_)
    found = _numbers(path, where, values.get("rank"), values.get("score"), problems, there=values.keys())
    return None if found is None else Row(where, ids[0], ids[1], *found, str(values.get("tag") or ""))


def _id(value: object) -> str | None:
    """An id as a run directory can hold it; None where the value is none."""
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    return text if trec.is_id(text) else None


def _numbers(
    path: Path,
    where: str,
    rank: object,
    score: object,
    problems: Problems,
    there: Iterable[str] = ("rank", "score"),
) -> tuple[int | None, float | None] | None:
    """Rank and score, of which the score must be good, or the rank where there is none; None where it is not."""
    found = _number(score) if "score" in there else None
    place = _number(rank) if "rank" in there else None
    if "score" in there and found is None:
        problems.add(path, "score not a finite number", where, shown(str(score)))
        return None
    if "score" not in there and (place is None or place != int(place)):
        problems.add(path, "rank not an integer", where, shown(str(rank)))
        return None
    return None if place is None or place != int(place) else int(place), found


def _number(value: object) -> float | None:
    """A number that is finite as float32; None of anything else."""
    if isinstance(value, str):
        return trec.score_of(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return trec.score_of(repr(value))
    return None


COLUMNS = ("topic", "rank", "document", "score")


def write_jsonl(target: BinaryIO, run: Run) -> None:
    """Write a run as a JSON object a line, UTF-8."""
    for row in _rows(run):
        line = json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False)
        target.write(f"{line}\n".encode())


def write_csv(target: BinaryIO, run: Run) -> None:
    """Write a run as a table with a header: UTF-8, LF, cells quoted where they have to be."""
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
            # NumPy prints the shortest decimal of a float32; as a double it has the same shortest one.
            yield ranking.topic_id, rank, hit.document_id, float(str(float32(hit.score)))


START, END = "# ir_metadata.start", "# ir_metadata.end"
SCHEMA_VERSION = 0.1
RUN_VERSION = 1.0

PARTS = ("platform", "research goal", "implementation", "method", "actor", "data")
"""Of the model PRIMAD, in the order of the schema."""


def write_ir_metadata(target: BinaryIO, tag: str, parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the metadata of a run: what of `PARTS` there is, without what is empty.

    Values are mappings, sequences, texts, numbers and truth values.
    """
    described = {"schema-version": SCHEMA_VERSION, "run-version": RUN_VERSION, "tag": tag}
    described |= {name: parts[name] for name in PARTS if name in parts}
    kept = _without_empty(described)
    target.write("\n".join([START, *_lines(kept, 0), END, ""]).encode("utf-8", "backslashreplace"))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(name): _without_empty(held) for name, held in value.items()}
        return {name: held for name, held in kept.items() if held not in (None, "", {}, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [held for one in value if (held := _without_empty(one)) not in (None, "", {}, [])]
    return value


def _lines(held: Mapping[str, Any], depth: int) -> Iterator[str]:
    """A mapping as YAML in blocks; whatever is a text is quoted as in JSON, which YAML reads the same."""
    for name, value in held.items():
        yield from _entry(f"{'  ' * depth}{_key(name)}:", value, depth + 1)


def _entry(before: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield before
        yield from _lines(value, depth)
    elif isinstance(value, list) and value:
        yield before
        for one in value:
            if isinstance(one, Mapping) and one:
                first, *rest = _lines(one, depth + 1)
                yield f"{'  ' * depth}- {first.strip()}"
                yield from rest
            else:
                yield f"{'  ' * depth}- {_scalar(one)}"
    else:
        yield f"{before} {_scalar(value)}"


_PLAIN = re.compile("[A-Za-z][A-Za-z0-9 _-]*[A-Za-z0-9]")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}
"""What YAML takes for something else than a text."""


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        digits, exponent, power = json.dumps(value).partition("e")
        # YAML 1.1 takes a number with an exponent for a text unless it has a point.
        return digits + ".0" * (exponent != "" and "." not in digits) + exponent + power
    if not isinstance(value, str):
        return json.dumps(value)
    return f'"{"".join(map(_character, value))}"'


def _character(one: str) -> str:
    """A character between double quotes, as YAML's escape where nobody would see it or a terminal would act on it."""
    if one in '"\\':
        return f"\\{one}"
    return one if one.isprintable() else f"\\U{ord(one):08x}"
