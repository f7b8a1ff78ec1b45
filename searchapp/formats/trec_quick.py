"""Reads a run file that is as searchapp writes it, many lines at once.

A million lines take half of the time that `trec.read_run` takes, which looks at each of them. What is not of that
form in the least thing is not read at all, and left to that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from searchapp.model import Hits, Ranking, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
