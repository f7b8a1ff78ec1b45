"""Reads a run file that is as searchapp writes it, all lines at once.

A million lines take half of the time that `trec.read_run` takes, which looks at each of them. What is not of that
form in the least thing is not read at all, and left to that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

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

    held = np.frombuffer(content, dtype=np.uint8)
    if not len(held) or int(held.max()) >= _DELETE:
        return None
    blanks = np.flatnonzero(held <= _BLANK)
    if (
        len(blanks) % _CELLS
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
    scores = _scores(written)
    begins = np.flatnonzero(np.concatenate(([True], (topics[1:] != topics[:-1]).any(axis=1))))
    if scores is None or not _are_ranks(ranks, begins):
        return None
    texts = list(map(_Texts().__getitem__, _in_bytes(documents)))
    rankings = {}
    names = [name.decode("ascii") for name in _in_bytes(topics[begins])]
    for name, begin, end in zip(names, begins.tolist(), [*begins[1:].tolist(), len(texts)], strict=True):
        some = texts[begin:end]
        if len(set(some)) < len(some) or name in rankings:
            return None
        rankings[name] = Ranking(name, Hits(some, scores[begin:end].tolist()))
    return Run(content[starts[0, -1] : ends[0, -1]].decode("ascii"), tuple(rankings.values()))


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


def _are_ranks(table: Bytes, begins: Places) -> bool:
    """Whether the cells are 1, 2, 3, ... from each of the places on where a topic begins."""
    import numpy as np

    lines, widest = table.shape
    if widest > _LONGEST_RANK:
        return False
    there = table != 0
    digits = table.astype(np.int64) - ord("0")
    if (digits[there] < 0).any() or (digits[there] > 9).any():
        return False
    numbers = np.zeros(lines, dtype=np.int64)
    for place in range(widest):
        numbers = np.where(there[:, place], numbers * 10 + digits[:, place], numbers)
    begun = np.repeat(begins, np.diff(begins, append=lines))
    return bool((numbers == np.arange(1, lines + 1) - begun).all())
