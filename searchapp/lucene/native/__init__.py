"""The library of compiled functions: `kernels.c`, `maxscore.c` and `phrases.c`.

`library()` is None where no C compiler was found when searchapp was built, or where the file belongs to other
sources; all documents are scored by NumPy then.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from searchapp.lucene.native import compilation

try:
    _SOURCE = compilation.digest()
except OSError:
    _SOURCE = ""
"""What the library must have been compiled from: the sources beside this module as they were loaded, whatever is
installed meanwhile; empty without one, of which no library is."""

_is_off = False


@cache
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and why there is none."""
    path = compilation.LIBRARY
    if sys.byteorder != "little":
        return None, "they read the numbers of files as they are, which takes a little-endian processor"
    try:
        # The system trusts a library: one that is cut short ends the process, a turned bit changes scores.
        if not compilation.is_sound(path):
            return None, f"{path} is not as it was compiled: build searchapp again"
        library = ctypes.CDLL(str(path))
        made_of = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "searchapp_source")))
        if made_of.decode() != _SOURCE:
            return None, "they were compiled from another version of searchapp: build searchapp again"
    except FileNotFoundError:
        return None, "they were not compiled: build searchapp where there is a C compiler"
    except OSError as error:
        return (
            None,
            f"{path} can't be loaded ({(error.strerror or str(error)).lower()}): build searchapp again",
        )
    except (ValueError, AttributeError):
        return None, f"{path} is no library of searchapp's: build searchapp again"
    library.searchapp_best.argtypes = [ctypes.c_void_p]
    library.searchapp_best.restype = ctypes.c_int
    library.searchapp_search.argtypes = [ctypes.c_void_p]
    library.searchapp_search.restype = ctypes.c_int
    library.searchapp_phrase.argtypes = [
        *(ctypes.c_void_p, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_int64),
        *(ctypes.c_void_p, ctypes.c_void_p),
    ]
    library.searchapp_phrase.restype = ctypes.c_int64
    library.searchapp_mark.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    library.searchapp_mark.restype = ctypes.c_int
    library.searchapp_room.argtypes = [ctypes.c_int64] * 3
    library.searchapp_room.restype = ctypes.c_int64
    return library, ""


def library() -> ctypes.CDLL | None:
    """The compiled functions; None where there are none, or they are not wanted."""
    return None if _is_off else _loaded()[0]


def lacking() -> str:
    """Why there are no compiled functions, as a clause for people; empty if there are."""
    return _loaded()[1]


@contextmanager
def without() -> Iterator[None]:
    """Have NumPy do the work meanwhile, for comparisons."""
    global _is_off
    before, _is_off = _is_off, True
    try:
        yield
    finally:
        _is_off = before
