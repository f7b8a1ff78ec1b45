"""How much each posting of a text field can give to a score, in one byte: its *impact*.

BM25 gives the score w - w / (1 + x) to a term of weight w, where x is its frequency over the norm of the document (see
`similarity`). Whatever w is, the score grows with x, in float32 too, since each rounded operation keeps the order. So
one number for each posting bounds its score in every query: x / (1 + x), in 255 steps, rounded up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index import arrays
from searchapp.lucene.similarity import Float32s

Impacts = NDArray[np.uint8]

IMPACTS, GREATEST = "impacts", "greatest-impacts"
"""The files of a field: the impact of each posting, and of each term the greatest one."""

CHUNK = 1 << 20
"""Postings whose impacts are computed at a time."""

COUNTED = 255
"""Frequencies from here on have the greatest impact, whatever the document."""


def _edges() -> Float32s:
    share = np.arange(255) / 255
    return np.append(share / (1 - share), np.inf).astype(np.float32)


EDGES: Float32s = _edges()
"""The greatest x that each of the 256 impacts stands for: 0 for nothing at all, infinity for the greatest."""


def table(norm_inverses: Float32s) -> Impacts:
    """The impact by the code of a document's length and by the frequency, of shape (256, COUNTED + 1).

    Of the inverses of some codes it has the rows of these.
    """
    frequencies = np.arange(COUNTED + 1, dtype=np.float32)
    with np.errstate(invalid="ignore"):  # 0 times infinity, of a frequency that no posting has
        x = frequencies * norm_inverses[:, None]
    found = np.searchsorted(EDGES, x, side="left").clip(0, 255).astype(np.uint8)
    found[:, COUNTED] = 255
    return found


def of_postings(
    table_: Impacts, frequencies: NDArray[np.unsignedinteger], norms: NDArray[np.uint8]
) -> Impacts:
    """The impacts of postings: `norms` are the codes of their documents' lengths."""
    # One number to look up by instead of two takes a sixth of the time.
    places = norms.astype(np.uint16)
    places *= np.uint16(COUNTED + 1)
    places += np.minimum(frequencies, COUNTED).astype(np.uint16)
    return table_.reshape(-1).take(places)


def write(folder: Path, prefix: str, norms: NDArray[np.uint8], norm_inverses: Float32s) -> None:
    """Write the impacts of a field whose postings are written; `norms` has a code for each document.

    Raises:
        OSError: the disk is full, or can't be written to for another reason.
    """
    documents = arrays.ArrayOnDisk(folder, f"{prefix}.documents")
    frequencies = arrays.ArrayOnDisk(folder, f"{prefix}.frequencies")
    starts = arrays.load(folder, f"{prefix}.starts")
    known = np.zeros((len(norm_inverses), COUNTED + 1), np.uint8)
    used = np.flatnonzero(np.bincount(norms))  # in a small index few of the lengths there can be
    known[used] = table(norm_inverses[used])
    greatest = np.zeros(len(starts) - 1, np.uint8)
    with arrays.ArrayFile(folder, f"{prefix}.{IMPACTS}", np.uint8, len(documents)) as file:
        for first in range(0, len(documents), CHUNK):
            part = slice(first, min(first + CHUNK, len(documents)))
            some = of_postings(known, frequencies[part], norms.take(documents[part], mode="clip"))
            file.append(some)
            # The terms that have postings here: the first and the last may have further ones elsewhere.
            begin = int(np.searchsorted(starts, part.start, "right")) - 1
            end = int(np.searchsorted(starts, part.stop, "left"))
            of_terms = np.maximum.reduceat(some, np.maximum(starts[begin:end] - first, 0))
            greatest[begin:end] = np.maximum(greatest[begin:end], of_terms)
    arrays.save(folder, f"{prefix}.{GREATEST}", greatest)
