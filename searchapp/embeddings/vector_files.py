"""Files with the vectors of texts by id: NumPy arrays, JSON lines, Parquet.

documents.npy       an array (texts, dimensions); the file documents.txt beside it has one id per line
documents.jsonl     an object per line with `id` and `embedding`
documents.parquet   columns `id` and `embedding`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from searchapp.embeddings.cache import Floats32
from searchapp.errors import DataError
from searchapp.files import open_file, read_text, unreadable
from searchapp.formats import records
from searchapp.formats.problems import Problems, some
from searchapp.text import counted

ID, VECTOR = "id", "embedding"


def read_vectors(paths: Sequence[Path], ids: Sequence[str]) -> Floats32:
    """Return the vectors of texts with these ids, shape (ids, dimensions); files may have further ones.

    Raises:
        InvalidFiles: a file can't be read.
        DataError: a text has no vector, or two, or a vector is zero, not finite or of another length.
    """
    wanted = set(ids)
    vectors: dict[str, Any] = {}
    for path in paths:
        for id_, vector in _array_rows(path) if path.suffix.lower() == ".npy" else _record_rows(path):
            if id_ in wanted:
                if id_ in vectors:
                    raise DataError(f"{path} has a second vector of {id_}: remove one")
                vectors[id_] = vector
    missing = [id_ for id_ in ids if id_ not in vectors]
    names = some([str(path) for path in paths])
    if missing:
        raise DataError(f"{names} has no vector of {counted(len(missing), 'text')} ({some(missing)})")
    try:
        matrix = np.array([vectors[id_] for id_ in ids], np.float32)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{names} has vectors of different lengths, or with other values than numbers"
        ) from error
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise DataError(f"{names} has no vectors: each text needs a list of numbers")
    wrong = ~(np.isfinite(matrix).all(axis=1) & matrix.any(axis=1))
    if wrong.any():
        raise DataError(f"{names} has a vector that is zero or not finite, of {ids[int(wrong.argmax())]}")
    return matrix


def _array_rows(path: Path) -> Iterator[tuple[str, Any]]:
    names = path.with_suffix(".txt")
    try:
        ids = [line for line in read_text(names).splitlines() if line]
        with open_file(path):  # rejects devices and pipes
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise unreadable(path if names.is_file() else names, error) from error
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} is no array of numbers, or {names.name} is not UTF-8") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu" or len(array) != len(ids):
        raise DataError(
            f"{path} has the shape {array.shape} and the type {array.dtype}, but {names.name} has "
            f"{counted(len(ids), 'id')}: the array needs a row of numbers for each one"
        )
    yield from zip(ids, array, strict=True)


def _record_rows(path: Path) -> Iterator[tuple[str, Any]]:
    problems = Problems()
    format_ = records.format_of(path)
    if format_ not in ("jsonl", records.PARQUET):
        raise DataError(f"{path} must be a file .npy, .jsonl or .parquet")
    for record in records.read_records(path, format_, problems, required=[ID, VECTOR]):
        id_, vector = record.values.get(ID), record.values.get(VECTOR)
        if not isinstance(id_, str | int) or not isinstance(vector, list):
            problems.add(path, "wrong value", record.where, f"needs {ID} and {VECTOR}, a list of numbers")
        else:
            yield str(id_), vector
    problems.raise_if_any()
