"""What a system of `peers.py` is: it builds an index of a collection, opens it, and is measured.

All have k1 1.2 and b 0.75 (tantivy knows no others), index frequencies and positions where they can, split at white
space, and answer with ids and scores. A system is measured in a process of its own, which is new in each round. An
index that is there is used again if its `key` is the same: that says what it was made of, and by what.
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
FIRST = 10
"""Hits of a query that are compared with those of the embedded engine."""

WARMING = 64
"""Queries of a batch that are answered to warm up."""

Hits = tuple[Sequence[str], Sequence[float]]
Query = Sequence[str]


class Unavailable(Exception):
    """A system that can't be measured here; the message says why."""


class System:
    """Builds an index in a folder, opens it, and answers queries with ids and scores, best first.

    `threads` is how many a batch may use; a single query has one.
    """

    package = ""
    modules: tuple[str, ...] = ()
    """What Python loads for it, before anything is timed."""

    def __init__(self, folder: Path, threads: int, url: str | None = None) -> None:
        self.folder = folder
        self.threads = threads
        self.url = url

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    @property
    def sources(self) -> Iterable[Path]:
        """The files, besides its packages, that make of documents what its index is."""
        return (Path(importlib.import_module(type(self).__module__).__file__ or ""),)

    def key(self, collection: Collection) -> str:
        """What the index depends on."""
        digest = hashlib.sha256(collection.facts["key"].encode())
        for package in (self.package, *self.modules):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
                digest.update(f"{package} {importlib.metadata.version(package)}".encode())
        for file in self.sources:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def is_ready(self, collection: Collection) -> bool:  # noqa: ARG002
        """Whether there is an index."""
        return self.folder.exists()

    def build(self, collection: Collection) -> None:
        """Index the documents, to one segment on disk."""
        raise NotImplementedError

    def keep(self, collection: Collection) -> None:  # most are where they stay
        """Keep the index for other runs of the benchmark."""

    def begin(self) -> None:  # for a server
        """A step begins, whose memory is to be counted."""

    def memory(self) -> dict[str, Any]:
        """What is to be counted as memory since `begin` instead of that of this process: `server MiB`."""
        return {}

    def open(self, collection: Collection) -> None:
        """Make the index ready for the first query."""
        raise NotImplementedError

    def query(self, terms: Query, depth: int) -> Hits:
        """The best documents of one query."""
        raise NotImplementedError

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        """Answer all queries; how many hits there were."""
        return sum(len(self.query(terms, depth)[0]) for terms in queries)

    def disk(self) -> int:
        """Bytes that the index takes."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def facts(self) -> dict[str, Any]:
        """What else is to be known of a round: the number of segments."""
        return {"segments": 1}

    def measured(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        """Open the index and measure each workload; all times in ms."""
        for module in self.modules:
            importlib.import_module(module)
        begin = time.perf_counter()
        self.open(collection)
        measured: dict[str, Any] = {"open": (time.perf_counter() - begin) * 1000, "workloads": {}}
        for workload in workloads(size):
            queries = collection.queries(workload.queries)
            took = self._batch(queries, workload, warm_up) if workload.is_batch else None
            measured["workloads"][workload.name] = took or self._single(queries, workload, warm_up)
        return {**measured, **self.facts()}

    def _single(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        _warm(lambda at: self.query(queries[at % len(queries)], workload.depth), len(queries), warm_up)
        times, first = [], []
        for terms in queries:
            begin = time.perf_counter()
            ids, _scores = self.query(terms, workload.depth)
            times.append((time.perf_counter() - begin) * 1000)
            first.append([int(id_) for id_ in ids[:FIRST]])
        return {"ms": times, "first": first}

    def _batch(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        _warm(lambda _: self.batch(queries[:WARMING], workload.depth), 1, warm_up)
        begin = time.perf_counter()
        self.batch(queries, workload.depth)
        return {"ms": [(time.perf_counter() - begin) * 1000]}


def _warm(work: Callable[[int], object], times: int, seconds: float) -> None:
    """Do some work so many times, and further until the seconds are over."""
    end = time.perf_counter() + seconds
    at = 0
    while at < times or time.perf_counter() < end:
        work(at)
        at += 1


def lines(collection: Collection) -> Iterator[tuple[str, str]]:
    """Ids and texts of the documents."""
    with collection.documents.open() as file:
        for number, line in enumerate(file):
            yield str(number), line.rstrip("\n")
