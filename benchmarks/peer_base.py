"""The base class of the systems of `peers.py`.

All systems use k1 1.2 and b 0.75 (tantivy has no other values), index frequencies and positions if they can, split at
white space, and return ids and scores. Each round measures a system in a new process. An existing index is used again
if its `key`, a digest of the documents and of the code that builds it, is equal.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from peer_collections import Collection, Workload, workloads

K1, B = 1.2, 0.75
COMPARED_HITS = 10
"""The first hits of a query, which are compared with those of the embedded engine."""

WARM_UP_QUERIES = 64
"""Queries of a batch that warm up a system."""

Hits = tuple[Sequence[str], Sequence[float]]
Query = Sequence[str]


class Unavailable(Exception):
    """A system can't be measured; the message has the reason."""


class System:
    """Builds an index in a folder, opens it, and answers queries with ids and scores, best first.

    `threads` is the number of threads of a batch; a single query uses one.
    """

    package = ""
    modules: tuple[str, ...] = ()
    """Modules that are imported before time is measured."""

    def __init__(self, folder: Path, threads: int, url: str | None = None) -> None:
        self.folder = folder
        self.threads = threads
        self.url = url

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    @property
    def sources(self) -> Iterable[Path]:
        """Source files, in addition to its packages, that the index depends on."""
        return (Path(importlib.import_module(type(self).__module__).__file__ or ""),)

    def key(self, collection: Collection) -> str:
        """Return a digest of all that the index depends on."""
        digest = hashlib.sha256(collection.facts["key"].encode())
        for package in (self.package, *self.modules):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
                digest.update(f"{package} {importlib.metadata.version(package)}".encode())
        for file in self.sources:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def is_ready(self, collection: Collection) -> bool:  # noqa: ARG002
        """Return whether the index exists."""
        return self.folder.exists()

    def build(self, collection: Collection) -> None:
        """Index the documents into one segment on disk."""
        raise NotImplementedError

    def keep(self, collection: Collection) -> None:  # most indexes stay in their folder
        """Keep the index for other runs of the benchmark."""

    def begin(self) -> None:  # servers reset their counter
        """Start to measure memory."""

    def memory(self) -> dict[str, Any]:
        """Return `server MiB`, the peak memory of a server since `begin`, if it replaces that of this process."""
        return {}

    def open(self, collection: Collection) -> None:
        """Make the index ready for the first query."""
        raise NotImplementedError

    def query(self, terms: Query, depth: int) -> Hits:
        """Return the best documents of a query."""
        raise NotImplementedError

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        """Answer all queries; return the number of hits."""
        return sum(len(self.query(terms, depth)[0]) for terms in queries)

    def disk(self) -> int:
        """Return the size of the index in bytes."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def facts(self) -> dict[str, Any]:
        """Return additional facts of a round: the number of segments."""
        return {"segments": 1}

    def measure(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        """Open the index and measure each workload; times are in ms."""
        for module in self.modules:
            importlib.import_module(module)
        begin = time.perf_counter()
        self.open(collection)
        result: dict[str, Any] = {"open": (time.perf_counter() - begin) * 1000, "workloads": {}}
        for workload in workloads(size):
            queries = collection.queries(workload.queries)
            times = self._batch(queries, workload, warm_up) if workload.is_batch else None
            result["workloads"][workload.name] = times or self._single(queries, workload, warm_up)
        return {**result, **self.facts()}

    def _single(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        _warm_up(
            lambda number: self.query(queries[number % len(queries)], workload.depth), len(queries), warm_up
        )
        times, first = [], []
        for terms in queries:
            begin = time.perf_counter()
            ids, _scores = self.query(terms, workload.depth)
            times.append((time.perf_counter() - begin) * 1000)
            first.append([int(id_) for id_ in ids[:COMPARED_HITS]])
        return {"ms": times, "first": first}

    def _batch(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        _warm_up(lambda _: self.batch(queries[:WARM_UP_QUERIES], workload.depth), 1, warm_up)
        begin = time.perf_counter()
        self.batch(queries, workload.depth)
        return {"ms": [(time.perf_counter() - begin) * 1000]}


def _warm_up(work: Callable[[int], object], times: int, seconds: float) -> None:
    """Call a function at least this number of times and for at least these seconds."""
    end = time.perf_counter() + seconds
    number = 0
    while number < times or time.perf_counter() < end:
        work(number)
        number += 1


def lines(collection: Collection) -> Iterator[tuple[str, str]]:
    """Yield ids and texts of the documents."""
    with collection.documents.open() as file:
        for number, line in enumerate(file):
            yield str(number), line.rstrip("\n")
