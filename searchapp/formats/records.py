"""Records of a user's file: a table with named columns, or JSON lines.

    csv       commas; cells may be quoted as in RFC 4180
    tsv       tabs; without quoting, so that no cell contains a tab or a line end
    jsonl     a JSON object per line; blank lines are skipped
    parquet   a Parquet file, which needs the package pyarrow

Text files are UTF-8 and may be compressed with gzip. A byte-order mark and CRLF are accepted. All files are read as
streams. Every problem is reported with its line or row, and the record left out.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from searchapp.errors import UsageError
from searchapp.files import open_file
from searchapp.formats.encoding import SAVE_AS_UTF8, foreign_kind, open_unpacked
from searchapp.formats.json_files import type_name
from searchapp.formats.problems import MOST_KEYS, Problems, shown, some
from searchapp.resources import install_command
from searchapp.text import counted

PARQUET = "parquet"

# The suffix of each format.
FORMATS = {"csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", PARQUET: ".parquet"}

SEPARATORS = {"csv": "commas", "tsv": "tabs"}  # the separators of the cells of a table

PARQUET_ROWS = (
    1 << 9
)  # rows of a Parquet file that are read at once: a few bytes can repeat a long text in each

PARQUET_BUFFER = (
    1 << 20
)  # bytes of a column that are read at once: a column of a row group may exceed the memory

# Unpacked bytes of a column of a row group that may be many times its packed ones: no text is so repetitive.
LARGEST_COLUMN, GREATEST_RATIO = 1 << 24, 200


def has_keys(format_: str) -> bool:
    """Return whether every record has its own keys, as an object does; a table names its columns once."""
    return format_ == "jsonl"


_OTHER_SEPARATORS = (
    ("\t", "tabs", 'set format = "tsv" in the task file, or give the file a name that ends in .tsv'),
    (";", "semicolons", "save it with commas or with tabs"),
    ("|", "vertical bars", "save it with commas or with tabs"),
    (",", "commas", 'set format = "csv" in the task file, or give the file a name that ends in .csv'),
)

# In characters. Without a limit, an unclosed quote makes the rest of a large file one cell.
LONGEST_CELL = 1 << 24


class Record(NamedTuple):
    """The values of one record by column or key; `where` is its first line, or its row in a Parquet file."""

    where: str
    values: dict[str, Any]


def format_of(path: Path) -> str | None:
    """Return the format that a file's name indicates, or None."""
    suffix = suffix_of(path)
    suffix = ".jsonl" if suffix == ".ndjson" else suffix
    return next((name for name, own in FORMATS.items() if own == suffix), None)


def suffix_of(path: Path) -> str:
    """Return the suffix of a file's format in lower case: `.jsonl` for `a.jsonl.gz`."""
    name = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()


def read_records(
    path: Path,
    format_: str,
    problems: Problems,
    *,
    required: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> Iterator[Record]:
    """Yield the good records of a file.

    Args:
        required: columns that a table must have; the caller checks the keys of JSON objects. Of a Parquet file no other
            columns are read, unless there are none
        columns: names for a table without a header line

    Raises:
        UsageError: the format requires a package that is not installed.
    """
    lines = _DecodedLines(path, problems)
    try:
        if format_ == PARQUET:
            yield from _parquet_rows(path, problems, required)
        elif has_keys(format_):
            yield from _objects(lines)
        else:
            yield from _rows(lines, format_, required, columns)
    except Unsupported as error:
        problems.add(path, "unsupported file", detail=str(error), skippable=False)
    except OSError as error:
        problems.add_unopened(path, error)


class Unsupported(Exception):
    """A file is neither a table nor JSONL; the message has advice."""


def json_line(values: Mapping[str, Any]) -> bytes:
    """Return a line of JSONL; values of other types, such as dates, become text."""
    text = json.dumps(values, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace") + b"\n"  # a lone surrogate as a JSON escape


def read_rows(path: Path, format_: str) -> Iterator[list[str]]:
    """Yield the cells of every row of a table, including its first; a broken row ends the table.

    Raises:
        Unsupported: the file is not text.
        OSError: the file can't be read.
    """
    for _line, cells in _cells(_DecodedLines(path, Problems()), format_):
        yield cells


class _DecodedLines:
    """The lines of a file as text; a line that is not UTF-8 is reported, and makes its record bad."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self.number = 0
        self._is_bad = False

    def __iter__(self) -> Iterator[str]:
        offset = 0
        with open_unpacked(self.path) as file:
            if foreign := foreign_kind(file.head):
                raise Unsupported(str(foreign))
            for self.number, raw in enumerate(file, 1):
                try:
                    text = raw.decode()
                except UnicodeDecodeError as error:
                    byte = f"byte 0x{raw[error.start]:02x} at offset {offset + error.start}"
                    self.wrong("not UTF-8", f"{byte} is not valid there; {SAVE_AS_UTF8}")
                    text = raw.decode(errors="replace")
                offset += len(raw)
                yield text.removeprefix("\ufeff") if self.number == 1 else text

    def wrong(self, kind: str, detail: str, line: int | None = None, *, skippable: bool = True) -> None:
        self._is_bad = True
        where = f"line {line or self.number}"
        self.problems.add(self.path, kind, where, detail, skippable=skippable)

    def were_good(self) -> bool:
        """Return whether no problem was reported since the last call."""
        good, self._is_bad = not self._is_bad, False
        return good


def _rows(
    lines: _DecodedLines, format_: str, required: Sequence[str], columns: Sequence[str] | None
) -> Iterator[Record]:
    names = None if columns is None else list(columns)
    is_empty = True
    for start, cells in _cells(lines, format_):
        good = lines.were_good()
        if is_empty and (other := other_separator(cells, format_)) and cells[0] not in required:
            raise Unsupported(
                f"its cells are separated by {other[0]}, not by {SEPARATORS[format_]}: {other[1]}"
            )
        is_empty = False
        if names is None:
            names = cells
            if not good or not _check_header(lines, names, required, start):
                return
        elif len(cells) != len(names):
            expected = f"the {'header' if columns is None else 'task file'} has {len(names)}"
            lines.wrong("wrong number of cells", f"{counted(len(cells), 'cell')}, where {expected}", start)
            lines.were_good()
        elif good:
            yield Record(f"line {start}", dict(zip(names, cells, strict=True)))
    if is_empty:
        detail = "a header line is expected" if columns is None else "it has no rows"
        lines.problems.add(lines.path, "empty file", detail=detail, skippable=False)


def other_separator(cells: Sequence[str], format_: str) -> tuple[str, str] | None:
    """Return the separator, with advice, of a row that another format would split; otherwise None."""
    if len(cells) == 1:
        for mark, name, advice in _OTHER_SEPARATORS:
            if mark in cells[0] and name != SEPARATORS[format_]:
                return name, advice
    return None


def _cells(lines: _DecodedLines, format_: str) -> Iterator[tuple[int, list[str]]]:
    if format_ == "tsv":
        for text in lines:
            if line := text.rstrip("\r\n"):
                yield lines.number, line.split("\t")
        return
    before = csv.field_size_limit(LONGEST_CELL)  # a setting of the whole process
    try:
        reader = csv.reader(iter(lines), strict=True)
        start = 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                # The reader can't tell where the next row begins.
                lines.wrong(
                    "broken row", f"{error}; the rest of the file is not read", start, skippable=False
                )
                return
            if cells:
                yield start, cells
            start = reader.line_num + 1
    finally:
        csv.field_size_limit(before)


def _check_header(lines: _DecodedLines, names: Sequence[str], required: Sequence[str], line: int) -> bool:
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    for name in dict.fromkeys(repeated):
        lines.wrong("duplicate column", f"the header contains {shown(name)!r} twice", line, skippable=False)
    for name in dict.fromkeys(required):
        if name not in names:
            existing = ", ".join(map(shown, names))
            detail = f"there is no column {name!r}: the header has {existing}"
            lines.wrong("missing column", detail, line, skippable=False)
    return lines.were_good()


_ARRAY = re.compile(r"\s*\[\s*(\{.*)?", re.DOTALL)  # the first line of a JSON array of objects


def _objects(lines: _DecodedLines) -> Iterator[Record]:
    is_empty = True
    for text in lines:
        if not text.strip():
            continue
        if is_empty and _ARRAY.fullmatch(text):
            raise Unsupported(
                "it is a JSON array: write one object per line, for instance with `jq -c '.[]'`"
            )
        is_empty = False
        try:
            value = _DECODER.decode(text.rstrip())
        except _RepeatedKey as error:
            lines.wrong("duplicate key", f"the object has {shown(str(error))!r} twice")
        except json.JSONDecodeError as error:
            lines.wrong("not JSON", f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}")
        except (ValueError, RecursionError) as error:
            lines.wrong("not JSON", str(error))
        else:
            if not isinstance(value, dict):
                lines.wrong("wrong type", f"the line is {type_name(value)}, not an object")
            if lines.were_good():
                yield Record(f"line {lines.number}", value)
        lines.were_good()
    if is_empty:
        lines.problems.add(
            lines.path, "empty file", detail="one JSON object per line is expected", skippable=False
        )


def _parquet_rows(path: Path, problems: Problems, required: Sequence[str]) -> Iterator[Record]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            f"{path} is a Parquet file, which requires the package pyarrow: install it with "
            f"`{install_command(PARQUET)}`, or save the table as CSV or JSONL"
        ) from error
    number = 0
    try:
        # Without `pre_buffer`, which reads the columns of a whole row group.
        with (
            open_file(path) as opened,
            parquet.ParquetFile(opened, buffer_size=PARQUET_BUFFER, pre_buffer=False) as file,
        ):
            columns = list(dict.fromkeys(required)) or file.schema_arrow.names
            if not _check_parquet(file, columns, path, problems):
                return
            for batch in file.iter_batches(PARQUET_ROWS, columns=columns):
                for values in zip(*(batch[name].to_pylist() for name in columns), strict=True):
                    number += 1
                    yield Record(f"row {number}", dict(zip(columns, values, strict=True)))
    except UnicodeDecodeError:
        where = f"rows {number + 1} to {number + PARQUET_ROWS}"
        problems.add(path, "not UTF-8", where, "a text is not UTF-8; write the file again", skippable=False)
    except (ValueError, NotImplementedError) as error:  # the classes of pyarrow's errors
        problems.add(path, "not Parquet", detail=str(error).splitlines()[0], skippable=False)
    else:
        if not number:
            problems.add(path, "empty file", detail="it has no rows", skippable=False)


def _check_parquet(file: Any, columns: Sequence[str], path: Path, problems: Problems) -> bool:
    """Report missing columns, and columns that are much larger than the file; return whether there are none."""
    names = file.schema_arrow.names
    wrong = [
        ("missing column", f"there is no column {name!r}: the file has {some(names, MOST_KEYS)}")
        for name in columns
        if name not in names
    ]
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            unpacked, packed = column.total_uncompressed_size, column.total_compressed_size
            is_read = column.path_in_schema in columns
            if is_read and unpacked > max(LARGEST_COLUMN, GREATEST_RATIO * packed):
                detail = f"{shown(column.path_in_schema)} has {unpacked:,} bytes, packed in {packed:,}"
                wrong.append(("column too large", f"{detail}: write the file without compression"))
    for kind, detail in dict.fromkeys(wrong):
        problems.add(path, kind, detail=detail, skippable=False)
    return not wrong


class _RepeatedKey(ValueError):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _value in pairs]
        raise _RepeatedKey(next(name for index, name in enumerate(names) if name in names[:index]))
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"there is no {name} in JSON")


# Made once: `json.loads` makes one for each line.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
