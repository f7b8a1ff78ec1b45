"""The prediction file of the TextGraphs tasks: lines `topic<TAB>document`, best first.

The official scorers read it with `pandas.read_csv(sep=TAB, names=[...], dtype=str)`. This module reads the same cells
(recorded with pandas 2.3):

- lines end with LF, CRLF or CR; blank lines and a byte-order mark are skipped; - a cell that begins with a double quote
extends to the next single one, over tabs and line ends; - a cell ends at a NUL character; - the first row determines
the number of cells, of which the last two count; a shorter row is padded with missing
  values, a longer one is an error;
- an empty cell, and spellings such as NA, are missing values.

Not reproduced: after a CR without LF, pandas drops a tab, and with a space it may repeat rows without end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from searchapp.errors import DataError, NotScorable
from searchapp.files import open_file, read_bytes, unreadable
from searchapp.formats.encoding import GZIP, GZIP_SUFFIX, open_unpacked, undecodable
from searchapp.formats.problems import shown
from searchapp.model import Run

# The cells that are missing values.
MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null", "None", "<NA>"}
    | {"NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)

_CELL = re.compile(
    r'(?:"([^"]*+(?:""[^"]*+)*+)"([^\t\r\n]*+)'  # quoted, and the rest after the closing quote
    r'|([^\t\r\n"][^\t\r\n]*+)?)'  # plain; a quote inside is an ordinary character
    r"(\t|\r\n|\r|\n|\Z)"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNSAFE = re.compile('^["\ufeff]|[\t\r\n\0\ud800-\udfff]')
_PARSER_ERROR = "pandas.errors.ParserError: Error tokenizing data. C error: "


class TwoColumnRow(NamedTuple):
    """A row with its cells as they are; None is a missing value."""

    line: int
    topic_id: str | None
    document_id: str | None


K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """A dictionary that computes missing values from their keys; faster than `functools.cache`."""

    def __init__(self, compute: Callable[[K], V]) -> None:
        self._compute = compute

    def __missing__(self, key: K) -> V:
        value = self[key] = self._compute(key)
        return value


def read_two_column(path: Path) -> dict[str, list[str | None]]:
    """Return the ranking of each topic as the official scorers read it, topics by first row.

    Raises:
        NotScorable: the official scorers stop on this file.
        DataError: the file can't be opened.
    """
    return gather((row.topic_id, row.document_id) for row in read_rows(path))


def gather(rows: Iterable[tuple[str | None, str | None]]) -> dict[str, list[str | None]]:
    """Return the documents of each topic, in lower case, at their first position; rows without a topic do not count."""
    topics: dict[str, dict[str | None, None]] = {}
    for topic, document in rows:
        if topic is not None:
            documents = topics.setdefault(topic, {})
            documents[document if document is None else document.lower()] = None
    return {topic: list(documents) for topic, documents in topics.items()}


def of_run(run: Run) -> dict[str, list[str | None]]:
    """Return the rankings that a reader of the run's file gets."""
    # Like `gather`, but a ranking at a time: a run may have 20 million hits.
    topics: dict[str, list[str | None]] = {}
    lower = Memo(str.lower)  # all rankings share the lower-case form of an id
    for ranking in run:
        before = topics.get(ranking.topic_id, ())
        folded = map(lower.__getitem__, ranking.document_ids())
        topics[ranking.topic_id] = list(dict.fromkeys((*before, *folded)))
    return topics


def read_rows(path: Path) -> Iterator[TwoColumnRow]:
    """Yield every row of the file, without folding letter case.

    Raises:
        NotScorable: not UTF-8, an open quote, a row that is too long; after the last row: a column without values.
        DataError: the file can't be opened.
    """
    width, has_topic, has_document = 0, False, False
    for line, row, cells in split_cells(read_text(path), path):
        width = width or max(2, len(cells))  # the scorers name two columns
        if len(cells) > width:
            raise NotScorable(
                f"{path}: line {line}: {len(cells)} cells, where the earlier rows have {width}",
                f"{_PARSER_ERROR}Expected {width} fields in line {row}, saw {len(cells)}",
            )
        if len(cells) < width:
            cells += [""] * (width - len(cells))
        first, second = cells[-2:]
        topic = None if first in MISSING else first
        document = None if second in MISSING else second
        has_topic = has_topic or topic is not None
        has_document = has_document or document is not None
        yield TwoColumnRow(line, topic, document)
    if not (has_topic and has_document):
        column = "second" if has_topic else "first"
        raise NotScorable(
            f"{path}: {f'the {column} column has no value' if width else 'empty file'}; "
            "write one `topic<TAB>document` per line",
            "ValueError: invalid format of the prediction dataset, possibly the wrong separator",
        )


def read_text(path: Path) -> str:
    """Return the text of a table without its byte-order mark; like pandas, unpack only files named `.gz`.

    Raises:
        NotScorable: the file is not UTF-8, or not compressed although its name ends in `.gz`.
        DataError: the file can't be opened.
    """
    try:
        content = _unpacked(path) if path.name.lower().endswith(GZIP_SUFFIX) else read_bytes(path)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(content[: error.start].decode())) + 1
        raise NotScorable(undecodable(path, error, line), f"UnicodeDecodeError: {error}") from error


def _unpacked(path: Path) -> bytes:
    with open_file(path) as file:
        magic = file.read(len(GZIP))
    if magic != GZIP:
        message = (
            f"{path}: the name ends in {GZIP_SUFFIX}, but the file is not compressed with gzip: "
            "rename or compress it"
        )
        raise NotScorable(message, f"gzip.BadGzipFile: Not a gzipped file ({magic!r})")
    with open_unpacked(path) as unpacked:
        return unpacked.read()


def split_cells(text: str, path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield line number, row number and cells of each row that is not blank.

    Row numbers are as in pandas: blank lines are rows, lines inside a quoted cell are not.

    Raises:
        NotScorable: a quoted cell has no end.
    """
    if '"' in text or "\0" in text:
        yield from _split_quoted(text, path)
        return
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        if line and line.strip(" "):
            yield number, number, line.split("\t")


def _split_quoted(text: str, path: Path) -> Iterator[tuple[int, int, list[str]]]:
    position, line, row = 0, 1, 0
    while position < len(text):
        start, cells, end, row = position, [], "\t", row + 1
        while end == "\t":
            match = _CELL.match(text, position)
            if match is None:
                quote_line = line + len(_LINE_END.findall(text, start, position))
                message = f"{path}: line {quote_line}: a cell begins with a double quote that is never closed"
                raise NotScorable(message, f"{_PARSER_ERROR}EOF inside string starting at row {row - 1}")
            quoted, rest, plain, end = match.groups()
            cell = plain or "" if quoted is None else quoted.replace('""', '"') + rest
            cells.append(cell.partition("\0")[0])
            position = match.end()
        if len(cells) > 1 or text[start:position].strip(" \r\n"):
            yield line, row, cells
        line += len(_LINE_END.findall(text, start, position))


def write_two_column(target: BinaryIO, run: Run) -> None:
    """Write rankings that every reader reads back: UTF-8, LF, no quotes.

    Raises:
        DataError: an id would not be read back, or two documents of a topic differ only in letter case, which the
            scorers
            fold. Earlier rankings are written.
    """
    lower: dict[str, str] = {}  # most documents are in many rankings: each is checked once
    for ranking in run:
        topic, documents = ranking.topic_id, ranking.document_ids()
        _check_id("topic", topic)
        for document in documents:
            if document not in lower:
                _check_id("document", document)
                lower[document] = document.lower()
        if len({lower[document] for document in documents}) < len(documents):
            seen: set[str] = set()
            for document in documents:
                if lower[document] in seen:
                    raise DataError(
                        f"topic {shown(topic)}: document {shown(document)} is already in the ranking, "
                        "possibly in another letter case, which the official scorers ignore: rank it once"
                    )
                seen.add(lower[document])
        if documents:
            separator = f"\n{topic}\t"
            target.write(f"{topic}\t{separator.join(documents)}\n".encode())


def _check_id(noun: str, id_: str) -> None:
    if id_ in MISSING or _UNSAFE.search(id_):
        raise DataError(f"the {noun} id {id_!a} can't be represented in a two-column file: rename it")


class TwoColumnFiles:
    """The reading part of a scorer whose submission is one file of two columns."""

    files_make_one = False

    def read(self, files: Sequence[Path]) -> dict[str, list[str | None]]:
        (path,) = files
        return read_two_column(path)

    def predictions(self, run: Run) -> dict[str, list[str | None]]:
        return of_run(run)
