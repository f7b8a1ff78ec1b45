"""Reads a run file that is as searchapp writes it, all lines at once.

A million lines take half of the time that `trec.read_run` takes, which looks at each of them. What is not of that
form in the least thing is not read at all, and left to that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from searchapp.model import Hits, Ranking, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes: TypeAlias = NDArray[np.uint8]
    Places: TypeAlias = NDArray[np.int64]

_CELLS = 6
_BLANK, _LINE_END, _DELETE = 0x20, 0x0A, 0x7F

LARGEST = 1 << 28
"""In bytes: reading takes some four times as many of memory."""

PIECE = 1 << 20
"""In bytes: what is read at a time, so that what it takes stays near the processor."""

LONGEST_CELL = 64
"""In bytes. Cells are held as a table as wide as the longest one: of longer ones it would be too large."""

_LONGEST_RANK = 9
_OF_SCORES = b"0123456789eE.+-\0"


def read_as_written(content: bytes) -> Run | None:
    """The run in a file's content; None where a line, an id, a rank or a score is not as searchapp writes it.

    So must be: ASCII; six cells with one blank between them and LF behind; the lines of a topic together, with the
    ranks 1, 2, 3, ...; no document twice in a topic; scores that are finite as float32.
    """
    import numpy as np

    texts = _Texts()
    documents: list[str] = []
    scores: list[float] = []
    ranks: list[Places] = []
    begins: list[int] = []
    names: list[bytes] = []
    for begin, end in _pieces(content):
        piece = _piece(np.frombuffer(content, dtype=np.uint8, count=end - begin, offset=begin))
        if piece is None:
            return None
        changed = np.flatnonzero(
            np.concatenate(([True], (piece.topics[1:] != piece.topics[:-1]).any(axis=1)))
        )
        begun = _in_bytes(piece.topics[changed])
        goes_on = names[-1:] == begun[:1]  # the topic of the piece before
        begins += (changed + len(documents)).tolist()[goes_on:]
        names += begun[goes_on:]
        documents += map(texts.__getitem__, _in_bytes(piece.documents))
        scores += piece.scores.tolist()
        ranks.append(piece.ranks)
    if not names or not _are_ranks(np.concatenate(ranks), np.asarray(begins)):
        return None
    rankings = {}
    for name, begin, end in zip(names, begins, [*begins[1:], len(documents)], strict=True):
        some = documents[begin:end]
        if len(set(some)) < len(some) or name in rankings:
            return None
        rankings[name] = Ranking(name.decode("ascii"), Hits(some, scores[begin:end]))
    tag = content[: content.index(b"\n")].rpartition(b" ")[2]
    return Run(tag.decode("ascii"), tuple(rankings.values()))


def _pieces(content: bytes) -> Iterator[tuple[int, int]]:
    """Where pieces of whole lines begin and end."""
    begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin + PIECE) + 1 or len(content)
        yield begin, end
        begin = end


class _Piece(NamedTuple):
    """The columns of some lines; ids as tables of bytes, a row a cell."""

    topics: Bytes
    documents: Bytes
    ranks: Places
    scores: NDArray[np.float64]


def _piece(held: Bytes) -> _Piece | None:
    """The columns of whole lines; None where something is not as searchapp writes it."""
    import numpy as np

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


def _are_ranks(numbers: Places, begins: Places) -> bool:
    """Whether numbers are 1, 2, 3, ... from each of the places on where a topic begins."""
    import numpy as np

    lines = len(numbers)
    begun = np.repeat(begins, np.diff(begins, append=lines))
    return bool((numbers == np.arange(1, lines + 1) - begun).all())
