"""TREC's run and qrels files, possibly compressed with gzip.

    run     topic Q0 document rank score tag
    qrels   topic 0 document grade        or, as in BEIR, a header `query-id corpus-id score` and such lines

Scores determine the order of documents, by the rule of trec_eval: see `read_by_score`. Only in `run.trec` of a run
directory the order of lines is the ranking, and the rank column must agree.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from searchapp.errors import DataError
from searchapp.formats.encoding import SAVE_AS_UTF8, UnpackedFile, foreign_kind, open_unpacked
from searchapp.formats.problems import Problems, shown
from searchapp.formats.two_column import Memo
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Ranking, Run
from searchapp.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    ByteTable: TypeAlias = NDArray[np.uint8]
    Positions: TypeAlias = NDArray[np.int64]

_CELLS = 6
_BLANK, _LINE_END, _DELETE = 0x20, 0x0A, 0x7F

PIECE = 1 << 20  # bytes that are read at a time, few enough for the caches of a processor

LONGEST_LINE = 1 << 16  # in bytes: searchapp writes no longer line

LONGEST_CELL = 64  # in bytes: a table of cells is as wide as the longest one

_LONGEST_RANK = 9
_OF_SCORES = b"0123456789eE.+-\0"


def read_as_written(file: UnpackedFile | BinaryIO) -> Run | None:
    """Return a run that searchapp wrote, in half the time of `read_run`; None for any other file.

    The form: ASCII; six cells per line with one blank between them, and LF; topics as contiguous lines with the ranks
    1, 2, 3, ...; distinct documents; scores that are finite as float32.
    """
    import numpy as np

    ids = Memo[bytes, str](lambda id_: id_.decode("ascii"))  # all rankings share the text of an id
    rankings: dict[bytes, tuple[list[str], list[float]]] = {}
    tag, last_topic = b"", b""
    while content := file.read(PIECE) + file.readline(LONGEST_LINE):
        lines = _parse_lines(content)
        if lines is None:
            return None
        tag = tag or content[: content.index(b"\n")].rpartition(b" ")[2]
        piece_documents = list(map(ids.__getitem__, _as_bytes(lines.documents)))
        piece_scores = lines.scores.tolist()
        differ = (lines.topics[1:] != lines.topics[:-1]).any(axis=1)
        begins = np.flatnonzero(np.concatenate(([True], differ)))
        ends = [*begins[1:].tolist(), len(lines.topics)]
        for topic, begin, end in zip(_as_bytes(lines.topics[begins]), begins.tolist(), ends, strict=True):
            if topic != last_topic and topic in rankings:
                return None
            last_topic = topic
            documents, scores = rankings.setdefault(topic, ([], []))
            expected = np.arange(len(documents) + 1, len(documents) + 1 + end - begin)
            if not (lines.ranks[begin:end] == expected).all():
                return None
            documents += piece_documents[begin:end]
            scores += piece_scores[begin:end]
    if not tag or any(len(set(documents)) < len(documents) for documents, _scores in rankings.values()):
        return None
    return Run(
        tag.decode("ascii"),
        tuple(Ranking(topic.decode("ascii"), Hits(*hits)) for topic, hits in rankings.items()),
    )


class _ParsedLines(NamedTuple):
    """The columns of lines; ids as tables of bytes, a row for each cell."""

    topics: ByteTable
    documents: ByteTable
    ranks: Positions
    scores: NDArray[np.float64]


def _parse_lines(content: bytes) -> _ParsedLines | None:
    """Return the columns of complete lines; None if searchapp would write a cell differently."""
    import numpy as np

    characters = np.frombuffer(content, dtype=np.uint8)
    if int(characters.max()) >= _DELETE:
        return None
    blanks = np.flatnonzero(characters <= _BLANK)
    if (
        not len(blanks)
        or len(blanks) % _CELLS
        or blanks[0] == 0
        or blanks[-1] != len(characters) - 1
        or not (np.diff(blanks) > 1).all()
    ):
        return None
    ends = blanks.reshape(-1, _CELLS)
    between = characters[ends]
    if not ((between[:, :-1] == _BLANK).all() and (between[:, -1] == _LINE_END).all()):
        return None
    starts = np.concatenate(([0], blanks[:-1] + 1)).reshape(-1, _CELLS)
    padded = np.concatenate((characters, np.zeros(LONGEST_CELL, dtype=np.uint8)))
    columns = [_cells(padded, starts[:, column], ends[:, column]) for column in (0, 2, 3, 4)]
    if any(column is None for column in columns):
        return None
    topics, documents, ranks, written = (column for column in columns if column is not None)
    numbers, scores = _numbers(ranks), _scores(written)
    return None if numbers is None or scores is None else _ParsedLines(topics, documents, numbers, scores)


def _cells(padded: ByteTable, starts: Positions, ends: Positions) -> ByteTable | None:
    """Return a column as a table of bytes, a row for each cell, padded with NUL; None if a cell is too long."""
    import numpy as np

    widths = ends - starts
    widest = int(widths.max())
    if widest > LONGEST_CELL:
        return None
    table = np.lib.stride_tricks.sliding_window_view(padded, widest)[starts]
    table[np.arange(widest) >= widths[:, None]] = 0
    return table


def _as_bytes(table: ByteTable) -> list[bytes]:
    cells: list[bytes] = table.view(f"S{table.shape[1]}").ravel().tolist()
    return cells


def _scores(table: ByteTable) -> NDArray[np.float64] | None:
    """Return the float32 nearest to each score; None if a score is not a finite number."""
    import numpy as np

    allowed = np.zeros(256, dtype=bool)
    allowed[list(_OF_SCORES)] = True
    if not allowed[table].all():
        return None  # such as nan and inf, and digits with _ between them
    try:
        with np.errstate(over="ignore"):
            scores = np.array(list(map(float, _as_bytes(table)))).astype(np.float32)
    except ValueError:
        return None
    return scores.astype(np.float64) if np.isfinite(scores).all() else None


def _numbers(table: ByteTable) -> Positions | None:
    """Return the numbers in cells of digits; None for another character."""
    import numpy as np

    lines, widest = table.shape
    if widest > _LONGEST_RANK:
        return None
    is_filled = table != 0
    digits = table.astype(np.int64) - ord("0")
    if (digits[is_filled] < 0).any() or (digits[is_filled] > 9).any():
        return None
    numbers = np.zeros(lines, dtype=np.int64)
    for column in range(widest):
        numbers = np.where(is_filled[:, column], numbers * 10 + digits[:, column], numbers)
    return numbers


RUN = "topic Q0 document rank score tag"
QRELS = "topic 0 document grade"
BEIR = ["query-id", "corpus-id", "score"]  # the first line of BEIR's qrels, whose lines have no second cell

# Control characters that are not white space.
_ACTING = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FLOAT32 = struct.Struct("<f")
_BEYOND_FLOAT32 = (2 - 2**-24) * 2.0**127  # the least number that is infinite as a float32


def read_run(path: Path, problems: Problems | None = None) -> Run:
    """Read the rankings of a run file, in the order of lines; scores are rounded to float32.

    With `problems`, lines with problems are reported there and left out. Lenient problems accept a gap between ranks,
    but not ranks that fall or repeat.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    if (run := _as_written(path)) is not None:
        return run
    reported = Problems() if problems is None else problems
    topics: dict[str, dict[str, float]] = {}
    ranks: dict[str, int] = {}
    out_of_order: set[tuple[str, bool]] = set()
    tag = ""
    for line, cells in read_lines(path, reported, RUN):
        topic, _, document, rank_text, score_text, tag_here = cells
        where, tag = f"line {line}", tag or tag_here
        previous = ranks.get(topic, 0)
        # Nearly all ranks are the expected ones, which comparing detects faster than parsing.
        rank = previous + 1 if rank_text == str(previous + 1) else _rank(rank_text)
        score = score_of(score_text)
        if rank is None:
            reported.add(path, "rank not an integer", where, shown(rank_text))
        elif rank != previous + 1:
            gap = topic not in ranks or rank > previous
            if (topic, gap) not in out_of_order:
                detail = f"topic {shown(topic)} has the rank {rank} where {previous + 1} is expected"
                reported.add(path, "ranks out of order", where, detail, skippable=gap)
            out_of_order.add((topic, gap))
        ranks[topic] = previous + 1 if rank is None else rank
        if score is None:
            reported.add(path, "score not a finite number", where, shown(score_text))
        repeated = topic in topics and document in topics[topic]
        if repeated:
            reported.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        if rank is not None and score is not None and not repeated:
            topics.setdefault(topic, {})[document] = score
    if problems is None:
        reported.raise_if_any()
    return Run(
        tag, tuple(Ranking(topic, Hits(list(hits), list(hits.values()))) for topic, hits in topics.items())
    )


def _as_written(path: Path) -> Run | None:
    try:
        if not path.is_file():  # a pipe can be read only once
            return None
        with open_unpacked(path) as file:
            return read_as_written(file)
    except (OSError, ValueError):
        return None  # `read_run` reports it


@dataclass(frozen=True, slots=True)
class RunByScore:
    """A run ordered by its scores; in `tied` topics, equal scores change the order of the file."""

    run: Run
    tied: int


def read_by_score(path: Path) -> RunByScore:
    """Read the rankings of any run file in the order of trec_eval.

    Documents are sorted by descending score, rounded to float32, then by descending bytes of the id. The order of the
    lines and the rank column are ignored.

    Raises:
        InvalidFiles: a line has a wrong number of cells, a score is not a finite number, a document repeats in a topic,
            or
            there is no line.
    """
    problems = Problems()
    topics: dict[str, dict[str, float]] = {}
    tag = ""
    for line, (topic, _, document, _rank, score_text, tag_here) in read_lines(path, problems, RUN):
        where, tag = f"line {line}", tag or tag_here
        score = score_of(score_text)
        if score is None:
            problems.add(path, "score not a finite number", where, shown(score_text))
        elif document in topics.setdefault(topic, {}):
            problems.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        else:
            topics[topic][document] = score
    problems.raise_if_any(f"a TREC run has lines `{RUN}`")
    tied = 0
    rankings = []
    for topic, scores in topics.items():
        as_written = sorted(scores, key=lambda document: -scores[document])
        documents = by_score(scores)
        tied += documents != as_written
        rankings.append(Ranking(topic, Hits(documents, [scores[document] for document in documents])))
    return RunByScore(Run(tag, tuple(rankings)), tied)


def by_score(scores: Mapping[str, float]) -> list[str]:
    """Return documents in the order of trec_eval: by descending score, then by descending id."""
    by_id = sorted(scores, key=lambda document: document.encode("utf-8", "surrogatepass"), reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def reordered(run: Run) -> int:
    """Count the rankings that sorting by score, as in trec_eval, would change."""
    return sum(by_score(dict(ranking.hits)) != list(ranking.hits.document_ids) for ranking in run)


def with_distinct_scores(run: Run) -> Run:
    """Return the same rankings with strictly descending scores, so that sorting by them changes nothing.

    Raises:
        DataError: no number is below a score.
    """
    return Run(run.tag, tuple(Ranking(ranking.topic_id, _descending(ranking)) for ranking in run))


def _descending(ranking: Ranking) -> Hits:
    scores: list[float] = []
    for score in ranking.hits.scores:
        scores.append(score if not scores or score < scores[-1] else _below(scores[-1]))
    if scores and scores[-1] == -math.inf:
        raise DataError(
            f"topic {shown(ranking.topic_id)} has equal scores without a lower float32: rank with higher "
            "scores, or export with --engine-scores"
        )
    return Hits(ranking.hits.document_ids, scores)


def _below(score: float) -> float:
    """Return the next float32 below a score, or 0 instead of a subnormal number."""
    import numpy as np

    # Some readers take subnormal numbers for 0.
    smallest = float(np.finfo(np.float32).smallest_normal)
    if 0 < score <= smallest:
        return 0.0
    if -smallest < score <= 0:
        return -smallest
    with np.errstate(over="ignore"):  # below the last one is minus infinity
        return float(np.nextafter(np.float32(score), np.float32(-np.inf)))


def write_run(file: BinaryIO, run: Run) -> None:
    """Write a run file: UTF-8, LF, scores with the nine digits that identify a float32.

    Raises:
        DataError: an id or the tag is empty or contains white space, a topic or a document in it repeats, or a score is
            not a finite float32. Earlier rankings are written.
    """
    for text in _format_rankings(run):
        file.write(text.encode())


def read_qrels(path: Path, problems: Problems | None = None) -> dict[str, dict[str, int]]:
    """Read grades by topic and document, in the order of the file; `problems` as in `read_run`.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    reported = Problems() if problems is None else problems
    qrels: dict[str, dict[str, int]] = {}
    for line, (topic, _, document, grade) in read_lines(path, reported, QRELS):
        where = f"line {line}"
        if not _INTEGER.fullmatch(grade):
            reported.add(path, "grade not an integer", where, shown(grade))
        elif document in qrels.get(topic, {}):
            reported.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        else:
            qrels.setdefault(topic, {})[document] = int(grade)
    if problems is None:
        reported.raise_if_any()
    return qrels


def write_qrels(file: BinaryIO, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write grades; a topic without documents has no line.

    Raises:
        DataError: an id is empty or contains white space.
    """
    for topic, grades in qrels.items():
        for document, grade in grades.items():
            file.write(f"{_cell('topic', topic)} 0 {_cell('document', document)} {grade:d}\n".encode())


def read_lines(path: Path, problems: Problems, layout: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line with the columns of `layout`, RUN or QRELS; skip blank lines."""
    columns = len(layout.split())
    offset, blank, is_beir = 0, True, False
    try:
        with open_unpacked(path) as file:
            if foreign := foreign_kind(file.head):
                problems.add(path, "unsupported file", detail=str(foreign), skippable=False)
                return
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    # `utf-8-sig` counts from behind the byte-order mark.
                    start = error.start + len(raw) - len(error.object)
                    byte = f"byte 0x{raw[start]:02x} at offset {offset + start} of the file"
                    problems.add(path, "not UTF-8", f"line {number}", f"{byte}; {SAVE_AS_UTF8}")
                    blank = False
                    continue
                finally:
                    offset += len(raw)
                cells = text.split()
                if blank and cells == BEIR and layout == QRELS:
                    is_beir, blank = True, False
                    continue
                blank = blank and not cells
                if is_beir and len(cells) == len(BEIR):
                    cells.insert(1, "0")
                if len(cells) == columns and _ACTING.search(text):
                    # Searching the whole line first is faster; the tag is not an id.
                    bad = next((cell for cell in (cells[0], cells[2]) if _ACTING.search(cell)), None)
                    if bad is not None:
                        detail = f"{shown(bad)}: an id must not contain control characters, which can affect a terminal"
                        problems.add(path, "unusable id", f"line {number}", detail)
                        continue
                if len(cells) == columns:
                    yield number, cells
                elif cells:
                    detail = f"{counted(len(cells), 'cell')} instead of {columns} ({layout})"
                    problems.add(path, "wrong number of columns", f"line {number}", detail)
    except OSError as error:
        problems.add_unopened(path, error)
        return
    if blank:
        problems.add(path, "empty file", detail=f"lines `{layout}` are expected", skippable=False)


def _rank(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def score_of(text: str) -> float | None:
    """Return the float32 nearest to a decimal number; None for other text, or if it would be infinite."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0]
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) else None


def _format_rankings(run: Run) -> Iterator[str]:
    tag = _cell("run", run.tag)
    topics: set[str] = set()
    good: set[str] = set()  # most documents are in many rankings: each is checked once
    ranks: list[str] = []
    for ranking in run:
        topic = _cell("topic", ranking.topic_id)
        if topic in topics:
            raise DataError(f"topic {shown(topic)} has two rankings in the run {shown(run.tag)}")
        topics.add(topic)
        documents, scores = ranking.hits.document_ids, ranking.hits.scores
        if not documents:
            continue
        distinct = set(documents)
        new = distinct - good
        if not (len(distinct) == len(documents) and all(map(_is_cell, new)) and _are_float32(scores)):
            _require_sound(topic, ranking.hits)
        good |= new
        while len(ranks) < len(documents):
            ranks.append(f" {len(ranks) + 1} ")
        columns = zip(documents, ranks, scores, strict=False)
        yield "".join(
            [f"{topic} Q0 {document}{rank}{score:.9g} {tag}\n" for document, rank, score in columns]
        )


def _are_float32(scores: Sequence[float]) -> bool:
    # The sum detects a nan.
    return min(scores) > -_BEYOND_FLOAT32 and max(scores) < _BEYOND_FLOAT32 and not math.isnan(sum(scores))


def _require_sound(topic: str, hits: Hits) -> None:
    """Check each document of a ranking, in order.

    Raises:
        DataError: an id can't be written, a document is repeated, or a score is not a finite float32.
    """
    documents: set[str] = set()
    for document, score in hits:
        _cell("document", document)
        if document in documents:
            raise DataError(f"topic {shown(topic)}: document {shown(document)} is ranked twice")
        documents.add(document)
        if not abs(score) < _BEYOND_FLOAT32:
            raise DataError(f"topic {shown(topic)}: the score of {shown(document)} is {score}")


def is_id(text: str) -> bool:
    """Return whether a text can be an id in a line of cells, and has no control characters."""
    return _is_cell(text) and not _ACTING.search(text)


def _is_cell(text: str) -> bool:
    return text.split() == [text] and not text.startswith("\ufeff") and not _SURROGATE.search(text)


def _cell(noun: str, id_: str) -> str:
    if not _is_cell(id_):
        raise DataError(
            f"the {noun} id {id_!a} is not allowed in a TREC file: ids must not be empty, contain white "
            "space or half a surrogate pair, or begin with a byte-order mark"
        )
    return id_
