"""The library of compiled C functions, from the `.c` files beside this module.

`library()` is None if the build found no C compiler, or if the library was compiled from other sources. Then Python
and NumPy do the same, more slowly.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from searchapp.lucene.native import compilation

# Computed at import, in case of a later installation.
try:
    _SOURCE = compilation.digest()
except OSError:
    _SOURCE = ""  # matches no library

_REBUILD = "build searchapp again"

_is_off = False


@cache
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    path = compilation.LIBRARY
    if sys.byteorder != "little":
        return None, "they need a little-endian processor"
    try:
        # A truncated library would crash the process, an altered bit change scores.
        if not compilation.is_sound(path):
            return None, f"{path} has changed since it was compiled: {_REBUILD}"
        library = ctypes.CDLL(str(path))
        source = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "searchapp_source")))
        if source.decode() != _SOURCE:
            return None, f"they were compiled from another version of searchapp: {_REBUILD}"
    except FileNotFoundError:
        return None, "they were not compiled: build searchapp where there is a C compiler"
    except OSError as error:
        return None, f"{path} can't be loaded ({(error.strerror or str(error)).lower()}): {_REBUILD}"
    except (ValueError, AttributeError):
        return None, f"{path} is not a library of searchapp: {_REBUILD}"
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in (
        ("best", ctypes.c_int, [pointer]),
        ("search", ctypes.c_int, [pointer]),
        ("phrase", number, [pointer, number, pointer, number, pointer, pointer]),
        ("mark", ctypes.c_int, [pointer, pointer]),
        ("pack", None, [pointer, number, pointer, pointer]),
        ("unpack", ctypes.c_int, [pointer, pointer, pointer, number, number, pointer]),
        ("room", number, [number, number, number]),
        ("tokens", number, [pointer]),
        ("expand", number, [number, *[pointer] * 6]),
        ("invert", None, [pointer]),
        ("dots", None, [pointer, number, number, pointer, number, pointer]),
    ):
        function = getattr(library, f"searchapp_{name}")
        function.restype, function.argtypes = result, arguments
    return library, ""


def library() -> ctypes.CDLL | None:
    """Return the compiled functions; None if they are absent or switched off."""
    return None if _is_off else _loaded()[0]


def missing_reason() -> str:
    """Return why compiled functions are absent, as a clause; empty if they are available."""
    return _loaded()[1]


@contextmanager
def without() -> Iterator[None]:
    """Score with NumPy only, for comparisons."""
    global _is_off
    previous, _is_off = _is_off, True
    try:
        yield
    finally:
        _is_off = previous
