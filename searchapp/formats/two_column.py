"""The prediction file of the TextGraphs tasks: `topic<TAB>document` a line, ranked in the order of lines.

The official scorers read it with `pandas.read_csv(sep=TAB, names=[...], dtype=str)`, whose habits decide
what a file means. They are kept here (recorded with pandas 2.3):

- lines end with LF, CRLF or CR; a line that is empty or only spaces is skipped; a byte-order mark is dropped;
- a cell that begins with a double quote runs to the next lone one, over tabs and line ends;
- a cell ends for good at a NUL character;
- the first row fixes the number of cells, the last two of which count; a shorter row is filled up with
  missing values and a longer one is an error;
- an empty cell, and spellings such as NA, are missing values.

One habit is left out: after a *lone* CR, pandas drops a tab, and with a space it may repeat rows without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from searchapp.errors import DataError, NotScorable
from searchapp.files import atomic_file, open_file, read_bytes, unreadable
from searchapp.formats.encoding import GZIP, GZIP_SUFFIX, opened, undecodable
from searchapp.formats.problems import shown
from searchapp.model import Run

MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null", "None", "<NA>"}
    | {"NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""The cells that are missing values."""

_CELL = re.compile(
    r'(?:"([^"]*+(?:""[^"]*+)*+)"([^\t\r\n]*+)'  # quoted, and what follows the closing quote
    r'|([^\t\r\n"][^\t\r\n]*+)?)'  # plain; a quote inside is an ordinary character
    r"(\t|\r\n|\r|\n|\Z)"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNSAFE = re.compile('^["\ufeff]|[\t\r\n\0\ud800-\udfff]')
_PARSER_ERROR = "pandas.errors.ParserError: Error tokenizing data. C error: "


class Row(NamedTuple):
    """A line of the file, as it stands there; None is a missing value."""

    line: int
    topic_id: str | None
    document_id: str | None


def read_two_column(path: Path) -> dict[str, list[str | None]]:
    """The ranking of each topic as the official scorers see it, topics in the order of their first rows.

    Raises:
        NotScorable: the official scorers stop on this file.
        DataError: the file cannot be opened.
    """
    return gather((row.topic_id, row.document_id) for row in read_rows(path))


def gather(rows: Iterable[tuple[str | None, str | None]]) -> dict[str, list[str | None]]:
    """The documents of each topic, in lower case and each once, at its first place.

    The rows of a topic may stand anywhere. Rows without a topic are dropped. All missing documents of a
    topic are one entry, None.
    """
    topics: dict[str, dict[str | None, None]] = {}
    for topic, document in rows:
        if topic is not None:
            documents = topics.setdefault(topic, {})
            documents[document if document is None else document.lower()] = None
    return {topic: list(documents) for topic, documents in topics.items()}


def of_run(run: Run) -> dict[str, list[str | None]]:
    """The rankings that the file of a run would be read as."""
    # As `gather`, a ranking at a time: a run may have 20 million hits.
    topics: dict[str, list[str | None]] = {}
    lower = _Lower()
    for ranking in run:
        before = topics.get(ranking.topic_id, ())
        folded = map(lower.__getitem__, ranking.document_ids())
        topics[ranking.topic_id] = list(dict.fromkeys((*before, *folded)))
    return topics


class _Lower(dict[str, str]):
    """Ids in lower case: of an id that many topics rank there is one text, not a million."""

    def __missing__(self, id_: str) -> str:
        self[id_] = id_.lower()
        return self[id_]


def read_rows(path: Path) -> Iterator[Row]:
    """Every row of the file, in order and with nothing folded.

    Raises:
        NotScorable: not UTF-8, an open quote, a row that is too long; after the last row: a column that has
            no value at all.
        DataError: the file cannot be opened.
    """
    width, topics, documents = 0, False, False
    for line, row, cells in split_cells(read_text(path), path):
        # Two columns are named, so that there are two at least.
        width = width or max(2, len(cells))
        if len(cells) > width:
            raise NotScorable(
                f"{path}: line {line}: {len(cells)} cells, where the earlier rows have {width}",
                f"{_PARSER_ERROR}Expected {width} fields in line {row}, saw {len(cells)}",
            )
        if len(cells) < width:
            cells = cells + [""] * (width - len(cells))
        first, second = cells[-2:]
        topic = None if first in MISSING else first
        document = None if second in MISSING else second
        topics = topics or topic is not None
        documents = documents or document is not None
        yield Row(line, topic, document)
    if not (topics and documents):
        column = "second" if topics else "first"
        raise NotScorable(
            f"{path}: {f'the {column} column has no value' if width else 'empty file'}; "
            "write `topic<TAB>document` a line",
            "ValueError: invalid format of the prediction dataset, possibly the wrong separator",
        )


def read_text(path: Path) -> str:
    """The text of a table that the official scorers read with pandas, without its byte-order mark.

    As pandas does, a file whose name ends in `.gz` is unpacked, and no other.

    Raises:
        NotScorable: it is not UTF-8, or its name says that it is compressed, and it is not.
        DataError: it cannot be opened.
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
        begins = file.read(len(GZIP))
    if begins != GZIP:
        message = f"{path}: the name ends in {GZIP_SUFFIX}, and it is not compressed with gzip: rename or compress it"
        raise NotScorable(message, f"gzip.BadGzipFile: Not a gzipped file ({begins!r})")
    with opened(path) as unpacked:
        return unpacked.read()


def split_cells(text: str, path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Line number, row number and cells of each row that is not blank; `path` is for the messages.

    The row number is the one that pandas counts: blank lines are rows, lines inside a quoted cell are not.

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
    """The same for a text with quotes or NUL characters, cell by cell."""
    place, line, row = 0, 1, 0
    while place < len(text):
        start, cells, end, row = place, [], "\t", row + 1
        while end == "\t":
            match = _CELL.match(text, place)
            if match is None:
                open_at = line + len(_LINE_END.findall(text, start, place))
                message = f"{path}: line {open_at}: a cell begins with a double quote that is never closed"
                raise NotScorable(message, f"{_PARSER_ERROR}EOF inside string starting at row {row - 1}")
            quoted, rest, plain, end = match.groups()
            cell = plain or "" if quoted is None else quoted.replace('""', '"') + rest
            cells.append(cell.partition("\0")[0])
            place = match.end()
        if len(cells) > 1 or text[start:place].strip(" \r\n"):
            yield line, row, cells
        line += len(_LINE_END.findall(text, start, place))


def write_two_column(target: Path | BinaryIO, rankings: Run | Mapping[str, Sequence[str]]) -> None:
    """Write rankings so that every reader gets back the same ids: UTF-8, LF, nothing quoted.

    A topic without documents has no row. Upper-case letters are written as they are, since the scorers fold
    them; two documents of one topic that differ in nothing else are refused, as one would be lost. Each ranking is
    written by itself: a file that is open may have those before the one that was refused, a file that is named appears
    whole or not at all.

    Raises:
        DataError: an id would not survive: it is empty, reads as a missing value, begins with a double
            quote or a byte-order mark, or holds a tab, a line end, NUL or half a surrogate pair.
    """
    if isinstance(target, Path):
        with atomic_file(target) as file:
            write_two_column(file, rankings)
        return
    if isinstance(rankings, Run):
        rankings = {ranking.topic_id: ranking.document_ids() for ranking in rankings}
    for text in _written_rankings(rankings):
        target.write(text.encode())


def _written_rankings(rankings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The lines of each ranking, as one text."""
    lower: dict[str, str] = {}  # most documents stand in many rankings, and are looked at once
    for topic, documents in rankings.items():
        _check_id("topic", topic)
        for document in documents:
            if document not in lower:
                _check_id("document", document)
                lower[document] = document.lower()
        if len({lower[document] for document in documents}) < len(documents):
            twice = _again(documents, lower)
            raise DataError(
                f"topic {shown(topic)}: document {shown(twice)} is in the ranking already, "
                "perhaps with other upper-case letters, which the official scorers fold; rank it once"
            )
        if documents:
            between = f"\n{topic}\t"
            yield f"{topic}\t{between.join(documents)}\n"


def _again(documents: Sequence[str], lower: Mapping[str, str]) -> str:
    """The first document whose lower-case id an earlier one has."""
    first = {lower[document]: place for place, document in reversed(list(enumerate(documents)))}
    return next(document for place, document in enumerate(documents) if first[lower[document]] < place)


def _check_id(noun: str, id_: str) -> None:
    if id_ in MISSING or _UNSAFE.search(id_):
        raise DataError(f"the {noun} id {id_!a} would not be read back from a two-column file: rename it")


class TwoColumnFiles:
    """A scorer whose submission is one file of two columns."""

    files_make_one = False

    def read(self, files: Sequence[Path]) -> dict[str, list[str | None]]:
        (path,) = files
        return read_two_column(path)

    def predictions(self, run: Run) -> dict[str, list[str | None]]:
        return of_run(run)
