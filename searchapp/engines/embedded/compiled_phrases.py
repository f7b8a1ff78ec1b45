"""Where terms stand together, by the function of `phrases.c`: see `queries.leaves.phrase`."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

import numpy as np

from searchapp.engines.embedded.storage.reader import Numbers, Postings
from searchapp.engines.embedded.storage.term_positions import TermPositions

_TERM = struct.Struct("=12q")
"""`Term` of phrases.c."""


def postings(
    library: ctypes.CDLL, terms: Sequence[TermPositions], positions: Sequence[int], among: Numbers | None
) -> Postings:
    """The documents where terms stand at relative positions, of some documents, ascending, or of all; and how often.

    Raises:
        IndexError: a number points where nothing is: files were altered.
    """
    wanted = min((term.documents for term in terms), key=len) if among is None else among
    wanted = np.ascontiguousarray(wanted, np.int32)
    packed, kept = [], []
    for term, position in zip(terms, positions, strict=True):
        documents, frequencies, places = term.whole()
        types = documents.dtype.str, frequencies.dtype.kind, places.dtype.str
        if types != ("<i4", "u", "<i4") or len(documents) != len(frequencies):
            raise IndexError("the positions of a term are not those of documents")
        kept.append((documents, frequencies, places))
        packed.append(
            _TERM.pack(
                *(documents.ctypes.data, frequencies.ctypes.data, places.ctypes.data),
                *(len(documents), frequencies.itemsize, len(places), position - positions[0]),
                *(0, 0, 0, 0, 0),
            )
        )
    found, counts = np.empty(len(wanted), np.int32), np.empty(len(wanted), np.float32)
    size = library.searchapp_phrase(
        ctypes.create_string_buffer(b"".join(packed)),
        len(terms),
        wanted.ctypes.data,
        len(wanted),
        found.ctypes.data,
        counts.ctypes.data,
    )
    if size < 0:
        raise IndexError("the positions of a term are not those of documents")
    return Postings(found[:size].copy(), counts[:size].copy())
