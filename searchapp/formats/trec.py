"""TREC's run and qrels files.

    run     topic Q0 document rank score tag
    qrels   topic 0 document grade        or as BEIR has them: a header `query-id corpus-id score`, then such lines

Cells are separated by whitespace, so that no id can hold any. A file that is compressed with gzip is unpacked on the
way. The scores of a file order it, by the rule of trec_eval: see `read_by_score`. Only in `run.trec` of a run directory
the order of a topic's lines is its ranking, and the rank column must agree: 1, 2, 3, ...; engines order equal scores
by ascending id. `with_distinct_scores` makes a file of such a run that every reader orders alike.

`read_as_written` reads a run file in exactly the form that searchapp writes, many lines at a time, in half the time;
`read_run` reads every other file, line by line.
"""

from __future__ import annotations

import math
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from searchapp.errors import DataError
from searchapp.files import atomic_file
from searchapp.formats.encoding import SAVE_AS_UTF8, foreign_kind, open_unpacked
from searchapp.formats.problems import Problems, shown
from searchapp.model import Hits, Ranking, Run
from searchapp.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


if TYPE_CHECKING:
    Bytes: TypeAlias = NDArray[np.uint8]
    Places: TypeAlias = NDArray[np.int64]

_CELLS = 6
_BLANK, _LINE_END, _DELETE = 0x20, 0x0A, 0x7F

PIECE = 1 << 20
"""In bytes: what is read at a time, so that what it takes stays near the processor."""

LONGEST_LINE = 1 << 16
"""In bytes: of a longer one, a piece ends inside, and the file is not as searchapp writes it."""

LONGEST_CELL = 64
"""In bytes. Cells are held as a table as wide as the longest one: of longer ones it would be too large."""

_LONGEST_RANK = 9
_OF_SCORES = b"0123456789eE.+-\0"


class Reads(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""

    def readline(self, size: int, /) -> bytes:
        """The bytes to the end of the line, at most so many."""


def read_as_written(file: Reads) -> Run | None:
    """The run in an open file; None where a line, an id, a rank or a score is not as searchapp writes it.

    So must be: ASCII; six cells with one blank between them and LF behind; the lines of a topic together, with the
    ranks 1, 2, 3, ...; no document twice in a topic; scores that are finite as float32.
    """
    texts = _Texts()
    rankings: dict[bytes, Ranking | None] = {}
    tag = b""
    begun = _Begun(b"")
    for content in _pieces(file):
        piece = _piece(content)
        if piece is None:
            return None
        tag = tag or content[: content.index(b"\n")].rpartition(b" ")[2]
        documents = [texts[held] for held in _in_bytes(piece.documents)]
        scores = piece.scores.tolist()
        for topic, begin, end in _topics(piece):
            if topic != begun.topic:
                if topic in rankings or not begun.is_ended(rankings):
                    return None
                rankings[topic] = None
                begun = _Begun(topic)
            if not _follow(piece.ranks[begin:end], len(begun.documents)):
                return None
            begun.documents += documents[begin:end]
            begun.scores += scores[begin:end]
    if not tag or not begun.is_ended(rankings):
        return None
    return Run(tag.decode("ascii"), tuple(one for one in rankings.values() if one is not None))


class _Begun:
    """The ranking of a topic as far as it was read."""

    def __init__(self, topic: bytes) -> None:
        self.topic = topic
        self.documents: list[str] = []
        self.scores: list[float] = []

    def is_ended(self, rankings: dict[bytes, Ranking | None]) -> bool:
        """Put the ranking among the others, if no document is there twice."""
        if len(set(self.documents)) < len(self.documents):
            return False
        if self.topic:
            rankings[self.topic] = Ranking(self.topic.decode("ascii"), Hits(self.documents, self.scores))
        return True


def _pieces(file: Reads) -> Iterator[bytes]:
    """The content of a file in pieces of whole lines."""
    while held := file.read(PIECE) + file.readline(LONGEST_LINE):
        yield held


def _topics(piece: _Piece) -> Iterator[tuple[bytes, int, int]]:
    """The topics in a piece, and from where to where the lines of each reach."""
    import numpy as np

    differ = (piece.topics[1:] != piece.topics[:-1]).any(axis=1)
    begins = np.flatnonzero(np.concatenate(([True], differ)))
    ends = [*begins[1:].tolist(), len(piece.topics)]
    yield from zip(_in_bytes(piece.topics[begins]), begins.tolist(), ends, strict=True)


def _follow(ranks: Places, before: int) -> bool:
    """Whether ranks ascend by one from that behind the `before` first ones on."""
    import numpy as np

    return bool((ranks == np.arange(before + 1, before + 1 + len(ranks))).all())


class _Piece(NamedTuple):
    """The columns of some lines; ids as tables of bytes, a row a cell."""

    topics: Bytes
    documents: Bytes
    ranks: Places
    scores: NDArray[np.float64]


def _piece(content: bytes) -> _Piece | None:
    """The columns of whole lines; None where something is not as searchapp writes it."""
    import numpy as np

    held = np.frombuffer(content, dtype=np.uint8)
    if int(held.max()) >= _DELETE:
        return None
    blanks = np.flatnonzero(held <= _BLANK)
    if (
        not len(blanks)
        or len(blanks) % _CELLS
        or blanks[0] == 0
        or blanks[-1] != len(held) - 1
        or not (np.diff(blanks) > 1).all()
    ):
        return None
    ends = blanks.reshape(-1, _CELLS)
    between = held[ends]
    if not ((between[:, :-1] == _BLANK).all() and (between[:, -1] == _LINE_END).all()):
        return None
    starts = np.concatenate(([0], blanks[:-1] + 1)).reshape(-1, _CELLS)
    padded = np.concatenate((held, np.zeros(LONGEST_CELL, dtype=np.uint8)))
    columns = [_cells(padded, starts[:, place], ends[:, place]) for place in (0, 2, 3, 4)]
    if any(column is None for column in columns):
        return None
    topics, documents, ranks, written = (column for column in columns if column is not None)
    numbers, scores = _numbers(ranks), _scores(written)
    return None if numbers is None or scores is None else _Piece(topics, documents, numbers, scores)


class _Texts(dict[bytes, str]):
    """Ids by their bytes: of one that many topics rank there is one text."""

    def __missing__(self, held: bytes) -> str:
        found = self[held] = held.decode("ascii")
        return found


def _cells(padded: Bytes, starts: Places, ends: Places) -> Bytes | None:
    """A column of cells as a table of bytes, a row a cell, filled with NUL; None where one is too long."""
    import numpy as np

    widths = ends - starts
    widest = int(widths.max())
    if widest > LONGEST_CELL:
        return None
    table = np.lib.stride_tricks.sliding_window_view(padded, widest)[starts]
    table[np.arange(widest) >= widths[:, None]] = 0
    return table


def _in_bytes(table: Bytes) -> list[bytes]:
    cells: list[bytes] = table.view(f"S{table.shape[1]}").ravel().tolist()
    return cells


def _scores(table: Bytes) -> NDArray[np.float64] | None:
    """The float32 nearest to each score; None where one is no finite number."""
    import numpy as np

    allowed = np.zeros(256, dtype=bool)
    allowed[list(_OF_SCORES)] = True
    if not allowed[table].all():
        return None  # letters of nan and inf, and digits with _ between them, are none of searchapp's
    try:
        with np.errstate(over="ignore"):
            scores = np.array(list(map(float, _in_bytes(table)))).astype(np.float32)
    except ValueError:
        return None
    return scores.astype(np.float64) if np.isfinite(scores).all() else None


def _numbers(table: Bytes) -> Places | None:
    """The numbers in cells of digits; None where there is another character."""
    import numpy as np

    lines, widest = table.shape
    if widest > _LONGEST_RANK:
        return None
    there = table != 0
    digits = table.astype(np.int64) - ord("0")
    if (digits[there] < 0).any() or (digits[there] > 9).any():
        return None
    numbers = np.zeros(lines, dtype=np.int64)
    for place in range(widest):
        numbers = np.where(there[:, place], numbers * 10 + digits[:, place], numbers)
    return numbers


RUN = "topic Q0 document rank score tag"
QRELS = "topic 0 document grade"
BEIR = ["query-id", "corpus-id", "score"]
"""The first line of BEIR's qrels, whose lines have no second cell."""

_ACTING = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no white space, at which cells end."""
"""The cells of a line."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FLOAT32 = struct.Struct("<f")
_BEYOND_FLOAT32 = (2 - 2**-24) * 2.0**127
"""The least number that is infinite as a float32."""


class Writes(Protocol):
    """What bytes can be written to."""

    def write(self, piece: bytes, /) -> object:
        """Write some bytes."""


def read_run(path: Path, problems: Problems | None = None) -> Run:
    """The rankings of a run file, topics in the order of their first lines; the first line has the tag.

    Scores are rounded to float32. The lines of a topic may stand apart. Without `problems` a file that has
    any is rejected; with it they are added there, and a line that has one is left out. Ranks that do not
    ascend by one from 1 are the problem "ranks out of order", reported once per topic. Lenient `problems` let a
    gap pass, but not ranks that fall or repeat: nobody can tell which order was meant.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    if (run := _as_written(path)) is not None:
        return run
    found = Problems() if problems is None else problems
    topics: dict[str, dict[str, float]] = {}
    ranks: dict[str, int] = {}
    told: set[tuple[str, bool]] = set()
    tag = ""
    for line, cells in read_lines(path, found, RUN):
        topic, _, document, rank_text, score_text, tag_here = cells
        where, tag = f"line {line}", tag or tag_here
        previous = ranks.get(topic, 0)
        # Nearly all ranks are the ones expected, which is quicker seen than read.
        rank = previous + 1 if rank_text == str(previous + 1) else _rank(rank_text)
        score = score_of(score_text)
        if rank is None:
            found.add(path, "rank not an integer", where, shown(rank_text))
        elif rank != previous + 1:
            gap = topic not in ranks or rank > previous
            if (topic, gap) not in told:
                detail = f"topic {shown(topic)} has the rank {rank} where {previous + 1} is expected"
                found.add(path, "ranks out of order", where, detail, skippable=gap)
            told.add((topic, gap))
        ranks[topic] = previous + 1 if rank is None else rank
        if score is None:
            found.add(path, "score not a finite number", where, shown(score_text))
        repeated = topic in topics and document in topics[topic]
        if repeated:
            found.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        if rank is not None and score is not None and not repeated:
            topics.setdefault(topic, {})[document] = score
    if problems is None:
        found.raise_if_any()
    return Run(
        tag, tuple(Ranking(topic, Hits(list(hits), list(hits.values()))) for topic, hits in topics.items())
    )


def _as_written(path: Path) -> Run | None:
    """The run in a file that is as searchapp writes it, which is quicker to read; None for any other."""
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):  # what comes from a pipe comes once
            return None
        with open_unpacked(path) as file:
            return read_as_written(file)
    except (OSError, ValueError):
        return None  # which is told by whoever reads it line by line


@dataclass(frozen=True, slots=True)
class ByScore:
    """A run ordered by its scores; in `tied` topics, documents of equal scores stand in another order in the file."""

    run: Run
    tied: int


def read_by_score(path: Path) -> ByScore:
    """The rankings of any run file, ordered as trec_eval orders them.

    The documents of a topic are sorted by descending score and, among equal scores, by the bytes of the id, the last
    one first. Scores are rounded to float32 before, as trec_eval keeps them. The order of the lines and the rank column
    say nothing: ranks may begin with 0, repeat, or be no numbers. Topics stand in the order of their first lines, the
    tag is that of the first line.

    Raises:
        InvalidFiles: a line has too few or too many cells, a score is no finite number, a document stands twice in a
            topic, which trec_eval refuses too, or there is no line.
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
    return ByScore(Run(tag, tuple(rankings)), tied)


def by_score(scores: Mapping[str, float]) -> list[str]:
    """Documents as trec_eval orders them: by descending score, equal ones by descending id.

    >>> by_score({"a": 1.0, "c": 2.0, "b": 1.0})
    ['c', 'b', 'a']
    """
    by_id = sorted(scores, key=lambda document: document.encode("utf-8", "surrogatepass"), reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def reordered(run: Run) -> int:
    """How many topics' rankings a reader that sorts by score, as trec_eval does, takes for other ones."""
    return sum(by_score(dict(ranking.hits)) != list(ranking.hits.document_ids) for ranking in run)


def with_distinct_scores(run: Run) -> Run:
    """The same rankings with scores that fall from each rank to the next, so that sorting by them changes nothing.

    A score that is below the one before stays as it is. Any other becomes the next float32 below the one before: the
    smallest change that readers notice which keep scores in 32 bits. Numbers too small for all of their digits are
    passed over, since some readers take them for 0.

    Raises:
        DataError: there is no number left below a score.
    """
    return Run(run.tag, tuple(Ranking(one.topic_id, _falling(one)) for one in run))


def _falling(ranking: Ranking) -> Hits:
    scores: list[float] = []
    for score in ranking.hits.scores:
        scores.append(score if not scores or score < scores[-1] else _below(scores[-1]))
    if scores and scores[-1] == -math.inf:
        raise DataError(
            f"topic {shown(ranking.topic_id)} has equal scores, and no float32 is below them: rank with higher scores, "
            "or export them with --engine-scores"
        )
    return Hits(ranking.hits.document_ids, scores)


def _below(score: float) -> float:
    """The next float32 below a score, but for those between 0 and the smallest one with all digits."""
    import numpy as np

    smallest = float(np.finfo(np.float32).smallest_normal)
    if 0 < score <= smallest:
        return 0.0
    if -smallest < score <= 0:
        return -smallest
    with np.errstate(over="ignore"):  # below the last one is minus infinity
        return float(np.nextafter(np.float32(score), np.float32(-np.inf)))


def write_run(target: Path | Writes, run: Run) -> None:
    """Write a run file: UTF-8, LF, scores with the nine digits that a float32 needs to be read back the same.

    Each ranking is written by itself: a file that is open may have those before the one that was rejected, a file that
    is named appears whole or not at all.

    Raises:
        DataError: an id or the tag is empty or holds whitespace, a document stands twice in a ranking, a
            topic twice in the run, or a score is no finite float32.
    """
    _write(target, _written_rankings(run))


def read_qrels(path: Path, problems: Problems | None = None) -> dict[str, dict[str, int]]:
    """Grades by topic and document, in the order of the file; `problems` as in `read_run`.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    found = Problems() if problems is None else problems
    qrels: dict[str, dict[str, int]] = {}
    for line, (topic, _, document, grade) in read_lines(path, found, QRELS):
        where = f"line {line}"
        if not _INTEGER.fullmatch(grade):
            found.add(path, "grade not an integer", where, shown(grade))
        elif document in qrels.get(topic, {}):
            found.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        else:
            qrels.setdefault(topic, {})[document] = int(grade)
    if problems is None:
        found.raise_if_any()
    return qrels


def write_qrels(target: Path | Writes, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write grades; a topic without documents has no line. A file that is named appears whole or not at all.

    Raises:
        DataError: an id is empty or holds whitespace.
    """
    _write(
        target,
        (
            f"{_cell('topic', topic)} 0 {_cell('document', document)} {grade:d}\n"
            for topic, grades in qrels.items()
            for document, grade in grades.items()
        ),
    )


def read_lines(path: Path, problems: Problems, layout: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that has as many as `layout`, RUN or QRELS; blank lines are skipped."""
    columns = len(layout.split())
    offset, blank, is_beir = 0, True, False
    try:
        with open_unpacked(path) as file:
            if found := foreign_kind(file.head):
                problems.add(path, "unsupported file", detail=str(found), skippable=False)
                return
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    # The codec that drops a byte-order mark counts from behind it.
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
                    # searched for in the whole line, which is quicker; the tag is no id
                    bad = next((cell for cell in (cells[0], cells[2]) if _ACTING.search(cell)), None)
                    if bad is not None:
                        detail = f"{shown(bad)}: an id must not hold control characters, which can act on a terminal"
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
    """The float32 nearest to a number that is written in decimal; None of anything else, or of what is beyond them."""
    return _float32(float(text)) if _NUMBER.fullmatch(text) else None


def _float32(number: float) -> float | None:
    """The nearest float32; None when it would be infinite, or the number is not finite."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) else None


def _written_rankings(run: Run) -> Iterator[str]:
    """The lines of each ranking, as one text."""
    tag = _cell("run", run.tag)
    topics: set[str] = set()
    good: set[str] = set()  # most documents stand in many rankings, and are looked at once
    ranks: list[str] = []
    for ranking in run:
        topic = _cell("topic", ranking.topic_id)
        if topic in topics:
            raise DataError(f"topic {shown(topic)} has two rankings in the run {shown(run.tag)}")
        topics.add(topic)
        documents, scores = ranking.hits.document_ids, ranking.hits.scores
        if not documents:
            continue
        once = set(documents)
        new = once - good
        if not (len(once) == len(documents) and all(map(_is_cell, new)) and _are_float32(scores)):
            _require_sound(topic, ranking.hits)
        good |= new
        while len(ranks) < len(documents):
            ranks.append(f" {len(ranks) + 1} ")
        columns = zip(documents, ranks, scores, strict=False)
        yield "".join(
            [f"{topic} Q0 {document}{rank}{score:.9g} {tag}\n" for document, rank, score in columns]
        )


def _are_float32(scores: Sequence[float]) -> bool:
    """Whether all of some scores are finite float32 numbers; the sum shows one that is none."""
    return min(scores) > -_BEYOND_FLOAT32 and max(scores) < _BEYOND_FLOAT32 and not math.isnan(sum(scores))


def _require_sound(topic: str, hits: Hits) -> None:
    """Look at each document of a ranking, in its order.

    Raises:
        DataError: an id can't be written, a document comes twice, or a score is no finite float32.
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
    """Whether a text survives as an id in a line of cells, and does nothing to a terminal."""
    return _is_cell(text) and not _ACTING.search(text)


def _is_cell(text: str) -> bool:
    return text.split() == [text] and not text.startswith("\ufeff") and not _SURROGATE.search(text)


def _cell(noun: str, id_: str) -> str:
    """The id, if it survives in a line of cells."""
    if not _is_cell(id_):
        raise DataError(
            f"the {noun} id {id_!a} cannot stand in a TREC file: ids must not be empty, hold whitespace "
            "or half a surrogate pair, or begin with a byte-order mark"
        )
    return id_


def _write(target: Path | Writes, texts: Iterable[str]) -> None:
    if isinstance(target, Path):
        with atomic_file(target) as file:
            _write(file, texts)
    else:
        for text in texts:
            target.write(text.encode())
