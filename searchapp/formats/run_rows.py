"""The rows of a run that any tool wrote: a TREC run, or a table or JSON lines or Parquet with named columns.

    trec       topic Q0 document rank score tag
    csv, tsv   a header that names the columns
    jsonl      a JSON object a line, whose keys are the columns
    parquet    a Parquet file, which takes the package pyarrow

Columns are known by the names that the field has for them, as `qid` or `query_id`; there must be a topic, a document,
and a score or a rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.errors import UsageError
from searchapp.formats import records, trec
from searchapp.formats.encoding import opened
from searchapp.formats.problems import Problems, shown

TREC, PARQUET = "trec", "parquet"
FORMATS = (TREC, *records.FORMATS, PARQUET)

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "qid", "query_id", "topic_id", "query-id", "queryid", "query"),
    "document": ("document", "docno", "doc_id", "docid", "document_id", "corpus-id", "did", "pid"),
    "rank": ("rank",),
    "score": ("score", "sim", "similarity"),
    "tag": ("tag", "run_id", "run", "runid", "system"),
}
"""What a column may be called, the first name that there is being taken."""

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
    with opened(path) as file:
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
            f"{path} is a Parquet file, which takes the package pyarrow: install it with `pip install "
            "'searchapp[parquet]'`, or save the run as CSV or JSONL"
        ) from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            wanted = [name for names in COLUMNS.values() for name in names]
            columns = [name for name in file.schema_arrow.names if name.lower() in wanted]
            for batch in file.iter_batches(columns=columns):
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


def _named(values: Iterable[str]) -> dict[str, str]:
    """The column of each thing that a run has, where there is one."""
    there: dict[str, str] = {}
    for column in values:
        there.setdefault(column.strip().lower(), column)
    found = {
        name: next((there[one] for one in names if one in there), None) for name, names in COLUMNS.items()
    }
    return {name: column for name, column in found.items() if column is not None}


def _has_columns(
    path: Path, where: str, named: Mapping[str, str], values: Iterable[str], problems: Problems
) -> bool:
    missing = [name for name in ("topic", "document") if name not in named]
    if not missing and "score" not in named and "rank" not in named:
        missing = ["score"]
    for name in missing:
        choice = ", ".join(COLUMNS[name][:4])
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
