"""The vectors and answers that models have returned, in SQLite files: nothing stored is ever sent to a model again.

A vector is stored under the digest of its source (`EmbeddingSource.digest`) and of the text, an answer under those of
its source (`RerankerSource.digest`, `JudgeSource.digest`) and of the question. A batch is stored in one transaction,
which is on disk when `store` returns (`synchronous=FULL`).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import SearchappError

Floats32 = NDArray[np.float32]

# In the home directory.
FILE, SCORES_FILE, ANSWERS_FILE = "embeddings.sqlite", "reranker-scores.sqlite", "model-answers.sqlite"

WAIT_SECONDS = 30.0  # for another process that stores a batch

_LOOKED_UP = 500  # texts in one query


def text_key(text: str) -> bytes:
    """Return the key of a text, its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def pair_key(query: str, document: str) -> bytes:
    """Return the key of a query and the text of a document, the SHA-256 of their keys."""
    return hashlib.sha256(text_key(query) + text_key(document)).digest()


class EmbeddingCache:
    """The stored vectors of one source."""

    def __init__(self, database: sqlite3.Connection, source: str) -> None:
        self._database = database
        self._source = bytes.fromhex(source)

    @property
    def dimensions(self) -> int | None:
        """The number of elements of a stored vector; None without vectors."""
        row = self._database.execute(
            "SELECT length(vector) FROM vectors WHERE source = ? LIMIT 1", (self._source,)
        ).fetchone()
        return None if row is None else row[0] // 4

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct texts without a stored vector, in their order."""
        by_key = {text_key(text): text for text in texts}
        for (key,) in list(self._select("text", by_key)):
            del by_key[key]
        return list(by_key.values())

    def vectors(self, texts: Sequence[str]) -> Floats32:
        """Return the vectors of texts, shape (texts, dimensions); all must be stored."""
        if not texts:
            return np.zeros((0, self.dimensions or 1), np.float32)
        keys = [text_key(text) for text in texts]
        rows: dict[bytes, int] = {}
        stored: list[bytes] = []
        for key, vector in self._select("text, vector", dict.fromkeys(keys)):
            rows[key] = len(stored)
            stored.append(vector)
        if len({len(vector) for vector in stored}) > 1:
            raise SearchappError(
                "the stored vectors of this model have different lengths: change `version` in the task file, "
                "to embed all texts again"
            )
        matrix = np.frombuffer(b"".join(stored), np.dtype("<f4")).reshape(len(stored), -1)
        return matrix[[rows[key] for key in keys]].astype(np.float32, copy=False)

    def store(self, texts: Sequence[str], vectors: Floats32) -> None:
        """Store the vectors of texts, shape (texts, dimensions), all or none."""
        rows = [
            (self._source, text_key(text), vector.astype("<f4").tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)

    def _select(self, columns: str, keys: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
        query = f"SELECT {columns} FROM vectors WHERE source = ? AND text IN"
        return _selected(self._database, query, self._source, keys)


class AnswerCache:
    """The stored answers of one model: the scores of a reranker, or the texts of a judge."""

    def __init__(self, database: sqlite3.Connection, source: str) -> None:
        self._database = database
        self._source = bytes.fromhex(source)

    def answers(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """Return the answers to those questions that have one."""
        query = "SELECT question, answer FROM answers WHERE source = ? AND question IN"
        return dict(_selected(self._database, query, self._source, keys))

    def store(self, answers: Iterable[tuple[bytes, float | str]]) -> None:
        """Store the answers to questions, all or none; a stored answer stays."""
        rows = [(self._source, key, answer) for key, answer in answers]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", rows)


def _selected(
    database: sqlite3.Connection, query: str, source: bytes, keys: Iterable[bytes]
) -> Iterator[tuple[Any, ...]]:
    waiting = iter(keys)
    while batch := list(islice(waiting, _LOOKED_UP)):
        yield from database.execute(f"{query} ({', '.join('?' * len(batch))})", (source, *batch))


@contextmanager
def open_cache(home: Path, source: str) -> Iterator[EmbeddingCache]:
    """Open the cache of vectors in a home directory for the source of a digest.

    Raises:
        SearchappError: the file can't be used.
    """
    columns = "vectors (source BLOB, text BLOB, vector BLOB NOT NULL, PRIMARY KEY (source, text))"
    with _opened(home / FILE, columns, "embed all texts") as database:
        yield EmbeddingCache(database, source)


@contextmanager
def open_answers(home: Path, file: str, source: str) -> Iterator[AnswerCache]:
    """Open the answers in a file of the home directory, of the model of a digest.

    Raises:
        SearchappError: the file can't be used.
    """
    columns = (
        "answers (source BLOB, question BLOB, answer NOT NULL, PRIMARY KEY (source, question)) WITHOUT ROWID"
    )
    with _opened(home / file, columns, "ask the model") as database:
        yield AnswerCache(database, source)


@contextmanager
def _opened(path: Path, columns: str, work: str) -> Iterator[sqlite3.Connection]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=WAIT_SECONDS)
    except (OSError, sqlite3.Error) as error:
        raise SearchappError(f"{path} can't be opened: {error}") from error
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(f"CREATE TABLE IF NOT EXISTS {columns}")
        yield database
    except sqlite3.Error as error:
        raise SearchappError(
            f"{path} can't be used ({error}): free disk space, or remove the file, to {work} again"
        ) from error
    finally:
        database.close()
