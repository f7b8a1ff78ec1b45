"""SHA-256 digests by which indexes and runs say what they were made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from searchapp.files import unreadable
from searchapp.inputs import open_file
from searchapp.model import Document


def digest_json(value: Any) -> str:
    """The digest of a JSON value, whatever the order of its keys and its spacing."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def digest_file(path: Path) -> str:
    """The digest of a file's bytes, read in pieces.

    Raises:
        DataError: the file can't be read.
    """
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def data_digests(data: Path, files: Iterable[Path]) -> dict[str, str]:
    """The digests of files by their paths inside a folder, see `data_name`.

    Raises:
        DataError: one can't be read.
    """
    return {data_name(data, file): digest_file(file) for file in files}


def data_name(data: Path, file: Path) -> str:
    """The path of a file inside a folder, with slashes; for a file outside of it, its whole path."""
    return (file.relative_to(data) if file.is_relative_to(data) else file.resolve()).as_posix()


class DocumentsDigest:
    """Counts and digests documents as they pass by, in their order.

    >>> seen = DocumentsDigest()
    >>> documents = list(seen.watch([Document("1", "Every field is a ring.")]))
    >>> seen.count
    1
    """

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, each one counted and digested before it is handed on."""
        for document in documents:
            self.count += 1
            self._hash.update(_canonical(document.source()))
            self._hash.update(b"\n")
            yield document

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _canonical(value: Any) -> bytes:
    text = _JSON.encode(value)
    return text.encode("utf-8", "backslashreplace")  # half a character as JSON's escape of it
