"""Measure exact searches for the nearest vectors: both engines beside NumPy alone.

    python -m tests.server --heap 2g -- python benchmarks/vectors.py [--vectors 12000 100000 1000000]

The vectors have 256 random bytes; the field has the similarity `cosine` and the index options `flat`. Elasticsearch
has them in one index of one shard without replicas, merged into one segment. NumPy multiplies a matrix of float32 with
the vector, and selects the nearest ones; its matrix is in memory, four times as large as the bytes.

In each round, each system finds the 100 nearest vectors to the same vectors: one at a time (latency, milliseconds), and
as one batch (throughput, searches per second). A round to warm up is not counted. The table has medians over the
rounds, the ratio of the latency to that of the embedded engine, and the processor time of a single search, with that of
the server: on a busy machine, only this time is comparable. The script fails unless both engines have the same scores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from usage import cpu_seconds, make_parser

from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.model import Document
from searchapp.processes import cores

NAME, PREFIX, SEED = "vectors", "searchapp-vectors", 20261127
DIMENSIONS, NEAREST = 256, 100
FIELD = {
    "type": "dense_vector",
    "element_type": "byte",
    "dims": DIMENSIONS,
    "index_options": {"type": "flat"},
}
MAPPING = {
    "mappings": {
        "dynamic": "strict",
        "properties": {"id": {"type": "keyword"}, "text": {"type": "text"}, "vector": FIELD},
    },
}

Vectors = NDArray[np.int8]
Search = Callable[[Vectors], list[list[float]]]
"""Returns the scores of the vectors nearest to each of several vectors."""

Clock = Callable[[], float]
"""Returns the processor time, in seconds, that a system has used."""


def random_vectors(count: int, seed: int) -> Vectors:
    """Return vectors of random bytes."""
    return np.random.default_rng(seed).integers(-128, 128, (count, DIMENSIONS), np.int8)


def documents(vectors: Vectors) -> Iterator[Document]:
    """Yield a document for each vector."""
    for number, vector in enumerate(vectors):
        yield Document(str(number), "vector", {"vector": vector.tobytes().hex()})


def body(vector: NDArray[np.int8]) -> dict[str, Any]:
    """Return the search body for the vectors nearest to one."""
    nearest = {
        "field": "vector",
        "query_vector": vector.tobytes().hex(),
        "k": NEAREST,
        "num_candidates": NEAREST,
    }
    return {
        "size": NEAREST, "_source": False, "track_total_hits": False, "knn": nearest,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
    }  # fmt: skip


def built(engine: Engine, vectors: Vectors) -> Index:
    """Index the vectors and print the time."""
    begin = time.perf_counter()
    engine.build(NAME, IndexSpec(MAPPING, len(vectors), f"{SEED}-{len(vectors)}"), documents(vectors))
    print(f"{engine.info().name}: indexed in {time.perf_counter() - begin:.1f} s", flush=True)
    index = engine.open(NAME)
    if isinstance(engine, ElasticsearchEngine):
        client = index._connection.client  # type: ignore[attr-defined]
        client.options(request_timeout=3600).indices.forcemerge(index=index.info.version, max_num_segments=1)
    return index


def searching(index: Index) -> Search:
    """Return a search in an index."""
    return lambda vectors: [list(hits.scores) for hits in index.search([body(vector) for vector in vectors])]


def clock_with_server(index: Index) -> Clock:
    """Return a clock of this process and the server, which must run on this machine."""
    client = index._connection.client  # type: ignore[attr-defined]
    (node,) = client.nodes.info(metric="process")["nodes"].values()
    process = psutil.Process(node["process"]["id"])
    return lambda: cpu_seconds() + sum(process.cpu_times()[:2])


def with_numpy(vectors: Vectors) -> Search:
    """Return a search by NumPy alone."""
    matrix = vectors.astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1)[:, None]

    def search(queries: Vectors) -> list[list[float]]:
        found = []
        for query in queries.astype(np.float32):
            scores = matrix @ (query / np.linalg.norm(query))
            best = np.argpartition(scores, -NEAREST)[-NEAREST:]
            found.append(np.sort((1 + scores[best]) / 2)[::-1].tolist())
        return found

    return search


def main() -> None:
    """Measure and print a table for each number of vectors."""
    parser = make_parser(__doc__)
    parser.add_argument("--vectors", type=int, nargs="+", default=[12_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--url", default=os.environ.get("SEARCHAPP_URL"), help="address of Elasticsearch")
    options = parser.parse_args()
    for count in options.vectors:
        vectors = random_vectors(count, SEED)
        with tempfile.TemporaryDirectory(prefix="searchapp-vectors-") as scratch, ExitStack() as stack:
            settings = Settings(home=Path(scratch), index_prefix=PREFIX, url=options.url)
            embedded = stack.enter_context(closing(EmbeddedEngine.at(settings)))
            systems: dict[str, tuple[Search, Clock]] = {
                "embedded": (searching(built(embedded, vectors)), cpu_seconds)
            }
            if options.url:
                server = stack.enter_context(closing(ElasticsearchEngine.connect(settings)))
                index = built(server, vectors)
                systems["Elasticsearch"] = searching(index), clock_with_server(index)
            systems["NumPy"] = with_numpy(vectors), cpu_seconds
            _measure(systems, random_vectors(options.queries, SEED + 1), options.rounds, count)
            if options.url:
                server.remove(NAME)


def _measure(systems: dict[str, tuple[Search, Clock]], queries: Vectors, rounds: int, count: int) -> None:
    latencies: dict[str, list[float]] = {name: [] for name in systems}
    work: dict[str, list[float]] = {name: [] for name in systems}
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for round_ in range(rounds + 1):
        answers: dict[str, Sequence[list[float]]] = {}
        for name, (search, clock) in systems.items():
            begin, used = time.perf_counter(), clock()
            for query in queries:
                search(query[None])
            single, used = time.perf_counter(), clock() - used
            answers[name] = search(queries)
            if round_:
                latencies[name].append((single - begin) * 1000 / len(queries))
                work[name].append(used * 1000 / len(queries))
                rates[name].append(len(queries) / (time.perf_counter() - single))
        if answers.get("Elasticsearch", answers["embedded"]) != answers["embedded"]:
            raise SystemExit("the engines have different scores")
    print(f"\n{count:,} vectors, {len(queries)} searches, {rounds} rounds, {cores()} cores\n")
    print("| system | one at a time, ms | ratio | processor ms | as a batch, searches per second |")
    print("|---|---:|---:|---:|---:|")
    for name in systems:
        ratio = statistics.median(map(float.__truediv__, latencies[name], latencies["embedded"]))
        latency, used, rate = (statistics.median(values[name]) for values in (latencies, work, rates))
        print(f"| {name} | {latency:.2f} | {ratio:.2f} | {used:.2f} | {rate:.0f} |", flush=True)


if __name__ == "__main__":
    main()
