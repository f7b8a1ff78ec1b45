"""Impacts: an upper bound of each posting's score in one byte.

BM25 scores a term of weight w by w - w / (1 + x), where x is the frequency over the norm of the document (see
`similarity`). For every w the score grows with x, in float32 too, because each rounded operation is monotonic. So one
number bounds a posting's score in every query: x / (1 + x) in 255 steps, rounded up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import Int64s
from searchapp.lucene.index.packed import BLOCK
from searchapp.lucene.index.postings import open_postings
from searchapp.lucene.similarity import Float32s

Impacts = NDArray[np.uint8]

# Arrays of a field: per posting, and the greatest of each term and of each block of postings.
IMPACTS, GREATEST, OF_BLOCKS = "impacts", "greatest-impacts", "block-impacts"

CHUNK = 1 << 20  # postings processed at a time

COUNTED = 255  # from this frequency on, the impact is the maximum

_SHARES = np.arange(255) / 255

# The greatest x of each of the 256 impacts.
EDGES: Float32s = np.append(_SHARES / (1 - _SHARES), np.inf).astype(np.float32)


def impact_table(norm_inverses: Float32s) -> Impacts:
    """Return the impacts by length code and frequency, shape (inverses, COUNTED + 1)."""
    frequencies = np.arange(COUNTED + 1, dtype=np.float32)
    with np.errstate(invalid="ignore"):  # 0 times infinity, for a frequency that no posting has
        x = frequencies * norm_inverses[:, None]
    table = np.searchsorted(EDGES, x, side="left").clip(0, 255).astype(np.uint8)
    table[:, COUNTED] = 255
    return table


def of_postings(
    table: Impacts, frequencies: NDArray[np.unsignedinteger], norms: NDArray[np.uint8]
) -> Impacts:
    """Return the impacts of postings; `norms` are the length codes of their documents."""
    # A look-up by one flat index takes a sixth of the time.
    indices = norms.astype(np.uint16)
    indices *= np.uint16(COUNTED + 1)
    indices += np.minimum(frequencies, COUNTED).astype(np.uint16)
    return table.reshape(-1).take(indices)


def write(folder: Path, prefix: str, tokens: int, norms: NDArray[np.uint8], norm_inverses: Float32s) -> None:
    """Write the impacts of a field whose postings are written; `norms` has a length code per document.

    `tokens` is the number of positions.
    """
    postings = open_postings(lambda name: arrays.mapped(folder, name), prefix, tokens, is_packed=True)
    documents, frequencies, starts = postings.documents, postings.frequencies, postings.starts.all()
    table = np.zeros((len(norm_inverses), COUNTED + 1), np.uint8)
    used = np.flatnonzero(np.bincount(norms))  # a small index has few distinct lengths
    table[used] = impact_table(norm_inverses[used])
    greatest = np.zeros(len(starts) - 1, np.uint8)
    of_blocks = np.zeros(-(-len(documents) // BLOCK), np.uint8)
    block_starts = np.arange(len(of_blocks) + 1) * BLOCK
    with arrays.ArrayFile(folder, f"{prefix}.{IMPACTS}", np.uint8, len(documents)) as file:
        for first in range(0, len(documents), CHUNK):
            part = slice(first, min(first + CHUNK, len(documents)))
            impacts = of_postings(table, frequencies[part], norms.take(documents[part], mode="clip"))
            file.append(impacts)
            _raise_maxima(greatest, starts, impacts, part)
            _raise_maxima(of_blocks, block_starts, impacts, part)
    arrays.save(folder, f"{prefix}.{GREATEST}", greatest)
    arrays.save(folder, f"{prefix}.{OF_BLOCKS}", of_blocks)


def _raise_maxima(maxima: Impacts, starts: Int64s, impacts: Impacts, part: slice) -> None:
    """Raise the maxima of pieces, which begin at `starts`, to those of a part of all impacts."""
    # The first and the last piece of the part may continue in other parts.
    begin = int(np.searchsorted(starts, part.start, "right")) - 1
    end = int(np.searchsorted(starts, part.stop, "left"))
    of_part = np.maximum.reduceat(impacts, np.maximum(starts[begin:end] - part.start, 0))
    maxima[begin:end] = np.maximum(maxima[begin:end], of_part)
