"""Impacts: an upper bound of each posting's share of a score, in one byte.

BM25 gives the score w - w / (1 + x) to a term of weight w, where x is its frequency over the norm of the document (see
`similarity`). For every w the score grows with x, in float32 too, since each rounded operation is monotonic. So one
number for each posting bounds its score in every query: x / (1 + x), in 255 steps, rounded up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index import arrays
from searchapp.lucene.similarity import Float32s

Impacts = NDArray[np.uint8]

IMPACTS, GREATEST = "impacts", "greatest-impacts"
"""The arrays of a field: the impact of each posting, and the greatest one of each term."""

CHUNK = 1 << 20
"""Postings whose impacts are computed at a time."""

COUNTED = 255
"""Frequencies from here on have the greatest impact, whatever the document."""

_SHARES = np.arange(255) / 255

EDGES: Float32s = np.append(_SHARES / (1 - _SHARES), np.inf).astype(np.float32)
"""The greatest x of each of the 256 impacts, from 0 to infinity."""


def impact_table(norm_inverses: Float32s) -> Impacts:
    """Return the impact by the length code, given by its norm inverse, and by the frequency.

    The shape is (number of inverses, COUNTED + 1).
    """
    frequencies = np.arange(COUNTED + 1, dtype=np.float32)
    with np.errstate(invalid="ignore"):  # 0 times infinity, for a frequency that no posting has
        x = frequencies * norm_inverses[:, None]
    table = np.searchsorted(EDGES, x, side="left").clip(0, 255).astype(np.uint8)
    table[:, COUNTED] = 255
    return table


def of_postings(
    table: Impacts, frequencies: NDArray[np.unsignedinteger], norms: NDArray[np.uint8]
) -> Impacts:
    """Return the impacts of postings; `norms` are the codes of their documents' lengths."""
    # Looking up by one number instead of two takes a sixth of the time.
    places = norms.astype(np.uint16)
    places *= np.uint16(COUNTED + 1)
    places += np.minimum(frequencies, COUNTED).astype(np.uint16)
    return table.reshape(-1).take(places)


def write(folder: Path, prefix: str, norms: NDArray[np.uint8], norm_inverses: Float32s) -> None:
    """Write the impacts of a field whose postings are written; `norms` has a code for each document.

    Raises:
        OSError: the disk is full, or can't be written to for another reason.
    """
    documents = arrays.ArrayReader(folder, f"{prefix}.documents")
    frequencies = arrays.ArrayReader(folder, f"{prefix}.frequencies")
    starts = arrays.load(folder, f"{prefix}.starts")
    table = np.zeros((len(norm_inverses), COUNTED + 1), np.uint8)
    used = np.flatnonzero(np.bincount(norms))  # a small index has few different lengths
    table[used] = impact_table(norm_inverses[used])
    greatest = np.zeros(len(starts) - 1, np.uint8)
    with arrays.ArrayFile(folder, f"{prefix}.{IMPACTS}", np.uint8, len(documents)) as file:
        for first in range(0, len(documents), CHUNK):
            part = slice(first, min(first + CHUNK, len(documents)))
            impacts = of_postings(table, frequencies[part], norms.take(documents[part], mode="clip"))
            file.append(impacts)
            # The first and the last term of the chunk may have postings in others.
            begin = int(np.searchsorted(starts, part.start, "right")) - 1
            end = int(np.searchsorted(starts, part.stop, "left"))
            term_maxima = np.maximum.reduceat(impacts, np.maximum(starts[begin:end] - first, 0))
            greatest[begin:end] = np.maximum(greatest[begin:end], term_maxima)
    arrays.save(folder, f"{prefix}.{GREATEST}", greatest)
