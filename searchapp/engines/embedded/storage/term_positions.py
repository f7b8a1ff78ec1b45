"""The positions of a term in the documents of a field, read some documents at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage.columns import Column

FEW_AMONG = 16
"""Documents of which there are so many times fewer than of the term are searched for among these."""

LEFT_OUT = 2
"""Where so many times fewer documents are wanted than there are, leaving out the others takes less time."""

Numbers = NDArray[np.int32]


class TermPositions:
    """The positions of a term, ascending, read from the first document to the last."""

    def __init__(
        self,
        documents: Numbers,
        frequencies: NDArray[np.unsignedinteger],
        positions: Column,
        start: int,
        end: int,
    ) -> None:
        """The documents where the term stands, how often in each, and from which place on to which it has positions."""
        self.documents = documents
        self._frequencies = frequencies
        self._positions = positions
        self._start = start
        self._end = end
        self._first = 0
        """The first document that was not passed over, whose positions begin at `_start`."""

    def whole(self) -> tuple[Numbers, NDArray[np.unsignedinteger], Numbers]:
        """All documents, how often the term stands in each, and all positions; unless some were passed over."""
        return self.documents, self._frequencies, self._positions[self._start : self._end]

    def of(self, wanted: Numbers) -> tuple[Numbers, NDArray[np.int64], Numbers]:
        """Documents, how often the term stands in each, and its positions, one document after the other.

        `wanted` are some documents, ascending, that all have the term and come after those that were asked for before.
        Others between them may be in the answer too, where it would take longer to leave them out.
        """
        first = self._first + int(self.documents[self._first :].searchsorted(wanted[0]))
        end = first + int(self.documents[first:].searchsorted(wanted[-1], "right"))
        self._start += int(self._frequencies[self._first : first].sum(dtype=np.int64))
        self._first = first
        documents, frequencies = self.documents[first:end], self._frequencies[first:end]
        positions = self._positions[self._start : self._start + int(frequencies.sum(dtype=np.int64))]
        if len(wanted) * LEFT_OUT >= len(documents):
            return documents, frequencies.astype(np.int64), positions
        if len(wanted) * FEW_AMONG < len(documents):
            at = documents.searchsorted(wanted)
        else:
            marked = np.zeros(wanted[-1] - wanted[0] + 1, bool)
            marked[wanted - wanted[0]] = True
            at = np.flatnonzero(marked.take(documents - wanted[0]))
        counts = frequencies.take(at).astype(np.int64)
        # From each document to the next one; the first of all stands at the beginning.
        starts = np.cumsum(np.add.reduceat(frequencies, at, dtype=np.int64))
        return wanted, counts, positions.take(_ranges(np.append(0, starts[:-1]), counts))


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many numbers from each start on, one range after the other; no range is empty."""
    ends = np.cumsum(counts)
    steps = np.ones(ends[-1], np.int64)
    steps[0] = starts[0]
    steps[ends[:-1]] = starts[1:] - starts[:-1] - counts[:-1] + 1
    return np.cumsum(steps, out=steps)
