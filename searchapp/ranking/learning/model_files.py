"""The file of a model: a header, which is JSON, and arrays of numbers, in one `.npz` of NumPy.

Nothing in it can be executed when it is read, which a pickle's content can: the arrays are numbers, or the file is
refused. The header has the digest of everything else, so that damage is found before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.errors import DataError
from searchapp.files import digest_json, open_file, parse_json, unreadable, whole_file

FORMAT = 1
"""The format of the files; models of another one are trained again."""

_HEADER = "header"
_NUMBERS = frozenset({"f", "i", "u"})
_MOST_BYTES = 4 << 30
"""What a file may have in it at most, unpacked: no model comes near."""


@dataclass(frozen=True, eq=False)
class Stored:
    """What a model is made of: a header, whose values are JSON, and NumPy arrays of numbers by their names.

    `digest` is that of both, see `digest_of`.
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Stored:
        """A model that was just trained."""
        return cls(header, arrays, digest_of(header, arrays))


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of a header, and of kind, shape and content of each array by its name."""
    import numpy as np

    found = hashlib.sha256(digest_json({**header, "format": FORMAT}).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write(path: Path, stored: Stored) -> None:
    """Write a model's file whole or not at all; the same model gives the same bytes.

    Raises:
        SearchappError: it can't be written.
    """
    import numpy as np

    header = {**stored.header, "format": FORMAT, "digest": stored.digest}
    text = json.dumps(header, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    arrays: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **stored.arrays}
    with whole_file(path) as file:
        np.savez_compressed(file, **arrays)


def read(path: Path) -> Stored:
    """The model in a file.

    Raises:
        DataError: the file can't be read, is none of a model, or damaged.
    """
    import numpy as np

    try:
        with open_file(path) as file, zipfile.ZipFile(file) as packed:
            if sum(one.file_size for one in packed.infolist()) > _MOST_BYTES:
                raise ValueError("it unpacks to more than any model")
        with open_file(path) as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        if not all(isinstance(one, np.ndarray) and one.dtype.kind in _NUMBERS for one in arrays.values()):
            raise ValueError("it has something else than numbers")
        header = parse_json(arrays.pop(_HEADER).tobytes().decode())
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
    except OSError as error:
        raise unreadable(path, error) from error
    except (
        ValueError,
        KeyError,
        EOFError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,  # NotImplementedError among them: what zip files can have and these do not
    ) as error:
        raise DataError(f"{path} is not a model of searchapp, or damaged: {_AGAIN}") from error
    if header.get("format") != FORMAT:
        raise DataError(f"{path} is a model of another version of searchapp: {_AGAIN}")
    digest = header.pop("digest", None)
    if digest != digest_of(header, arrays):
        raise DataError(f"{path} is damaged, for its digest is not that of its content: {_AGAIN}")
    return Stored(header, arrays, digest)


_AGAIN = "remove it, or train again with `searchapp train TASK --rebuild`"
