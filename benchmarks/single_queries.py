"""Measure single searches and a batch in a large index of the embedded engine and of Elasticsearch.

    python -m tests.server --heap 1g -- python benchmarks/single_queries.py --data DIR [--documents 1000000]

Documents and queries are those of growth.py: synthetic texts with the words and lengths of the nlps knowledge base, and
queries of three to eight words, in one field with the built-in analyzer `english` (k1 1.2, b 0.75). Elasticsearch has
the same documents in one index of one shard without replicas, merged into one segment.

The embedded engine is measured with and without pruning; without compiled functions it has none. In each round, each
query is sent to each system in turn, so that all have the same load of the machine; a round to warm up is not counted.
The table has medians and 99th percentiles over all rounds in milliseconds: wall-clock time, processor time of this
process, and the time that Elasticsearch reports. Then a batch is sent to each engine; the table has the milliseconds
for each of its queries, and of the same queries one at a time. The script fails unless all systems have the same hits.

Indexes in the folder `--keep`, and on the server with the prefix `searchapp-single`, are used again.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from growth import MAPPING, NAME, PREFIX, SEED, Generator
from usage import make_parser

from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.model import Hits, float32
from searchapp.processes import cores

DEPTHS = (10, 1000)
SEARCH_TYPES = ("query_then_fetch", "dfs_query_then_fetch")

Body = dict[str, Any]
Answer = tuple[list[tuple[str, float]], float | None]
"""The hits, and the milliseconds that a server reports."""


class System:
    """A way to search, and its times in milliseconds by depth."""

    def __init__(self, name: str, ask: Callable[[Body], Answer]) -> None:
        self.name = name
        self.search = ask
        self.clock: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
        self.work: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
        self.took: dict[int, list[float]] = {depth: [] for depth in DEPTHS}

    def measure(self, body: Body, *, counts: bool) -> list[tuple[str, float]]:
        """Search and measure; return the hits."""
        work, begin = time.process_time(), time.perf_counter()
        hits, took = self.search(body)
        clock, work = time.perf_counter() - begin, time.process_time() - work
        if counts:
            depth = body["size"]
            self.clock[depth].append(clock * 1000)
            self.work[depth].append(work * 1000)
            self.took[depth] += [] if took is None else [took]
        return hits


class _NoPruner:
    """A pruner that never prunes."""

    def best(self, *_query: object, **_how: object) -> None:
        """Return None, so that all documents are scored."""


def body(words: str, depth: int) -> Body:
    """Return the search body for words."""
    return {
        "size": depth,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": {"query": words}}},
    }


def open_index(engine: Engine, generator: Generator, count: int) -> Index:
    """Open the index of this number of documents; build it unless it exists."""
    spec = IndexSpec(MAPPING, count, f"{SEED}-{count}")
    info = engine.index_info(NAME)
    if info is None or info.digest != spec.digest:
        begin = time.perf_counter()
        engine.build(NAME, spec, generator.documents(count))
        print(f"{engine.info().name}: indexed in {time.perf_counter() - begin:.0f} s", flush=True)
    return engine.open(NAME)


def embedded_systems(engine: EmbeddedEngine) -> list[System]:
    """Return the embedded engine with and without pruning."""
    unpruned = engine.open(NAME)
    unpruned.index.searchers[0].pruner = _NoPruner()  # type: ignore[assignment]

    def searching(index: EmbeddedIndex) -> Callable[[Body], Answer]:
        return lambda body: (list(*index.search([body])), None)

    return [
        System("embedded", searching(engine.open(NAME))),
        System("embedded, all scored", searching(unpruned)),
    ]


def server_systems(engine: ElasticsearchEngine) -> list[System]:
    """Merge the index of Elasticsearch; return Elasticsearch with each type of search and searchapp's client."""
    info = engine.index_info(NAME)
    assert info is not None
    client = engine.open(NAME)._connection.client
    client.options(request_timeout=3600).indices.forcemerge(index=info.version, max_num_segments=1)

    def searching(search_type: str) -> Callable[[Body], Answer]:
        def ask(body: Body) -> Answer:
            answer = client.search(
                index=info.version,
                search_type=search_type,
                body=body,
                filter_path=["took", "hits.hits._id", "hits.hits._score"],
            )
            hits = answer.get("hits", {}).get("hits", [])
            return [(hit["_id"], hit["_score"]) for hit in hits], answer["took"]

        return ask

    return [System(f"Elasticsearch, {kind}", searching(kind)) for kind in SEARCH_TYPES]


def require_same(query: str, answers: Sequence[Sequence[tuple[str, float]]]) -> None:
    """Exit if systems differ in ids, order or scores."""
    first, *others = ([(id_, float32(score)) for id_, score in hits] for hits in answers)
    if any(other != first for other in others):
        raise SystemExit(f"the systems have different hits for {query!r}")


def batch(index: Index, bodies: Sequence[Body]) -> tuple[list[Hits], float]:
    """Search all bodies at once; return the hits and the milliseconds per body."""
    begin = time.perf_counter()
    hits = list(index.search(bodies))
    return hits, (time.perf_counter() - begin) * 1000 / len(bodies)


def one_by_one(index: Index, bodies: Sequence[Body]) -> tuple[list[Hits], float]:
    """Search the bodies one after the other; return the hits and the milliseconds per body."""
    begin = time.perf_counter()
    hits = [answer for body in bodies for answer in index.search([body])]
    return hits, (time.perf_counter() - begin) * 1000 / len(bodies)


def main() -> None:
    """Measure and print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument(
        "--url",
        default=os.environ.get("SEARCHAPP_URL"),
        help="address of Elasticsearch, by default SEARCHAPP_URL; without it Elasticsearch is not measured",
    )
    parser.add_argument("--keep", type=Path, help="folder of the index, which is used again")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    generator = Generator(options.data)
    with tempfile.TemporaryDirectory(prefix="searchapp-single-") as scratch:
        settings = Settings(home=options.keep or Path(scratch), index_prefix=PREFIX, url=options.url)
        with closing(EmbeddedEngine.at(settings)) as embedded:
            engines: dict[str, Index] = {"embedded": open_index(embedded, generator, options.documents)}
            systems = embedded_systems(embedded)
            if not options.url:
                _measure(systems, engines, generator, options)
                return
            with closing(ElasticsearchEngine.connect(settings)) as server:
                engines["Elasticsearch"] = open_index(server, generator, options.documents)
                _measure(systems + server_systems(server), engines, generator, options)


def _measure(
    systems: list[System], engines: dict[str, Index], generator: Generator, options: argparse.Namespace
) -> None:
    queries = generator.queries(max(options.queries, options.batch))
    gc.collect()
    gc.freeze()  # the collector would search the objects of this script for 30 ms during a search
    for round_ in range(options.rounds + 1):
        for words in queries[: options.queries]:
            for depth in DEPTHS:
                answers = [system.measure(body(words, depth), counts=round_ > 0) for system in systems]
                require_same(words, answers)
    _print(systems, options)
    bodies = [body(words, DEPTHS[0]) for words in queries[: options.batch]]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for round_ in range(options.rounds + 1):
        for name, index in engines.items():
            batch_hits, batch_ms = batch(index, bodies)
            single_hits, single_ms = one_by_one(index, bodies)
            if batch_hits != single_hits:
                raise SystemExit(f"{name}: a batch and its single queries have different hits")
            if round_:
                times[name].append((batch_ms, single_ms))
    print(f"\nA batch of {len(bodies):,} queries to depth {DEPTHS[0]}: ms for each query\n")
    print("| engine | as a batch | one at a time | ratio |\n|---|---:|---:|---:|")
    for name, rounds in times.items():
        columns = [*zip(*rounds, strict=True), [batch_ms / single_ms for batch_ms, single_ms in rounds]]
        cells = (f"{statistics.median(values):.2f}" for values in columns)
        print(f"| {name} | {' | '.join(cells)} |")


def _print(systems: Sequence[System], options: argparse.Namespace) -> None:
    print(
        f"{options.documents:,} documents, {options.queries} queries one at a time, {options.rounds} rounds, "
        f"{cores()} cores; ms\n"
    )
    print("| system | depth | clock | 99 % | work | 99 % | took | 99 % | clock, ratio to embedded |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for depth in DEPTHS:
        base = systems[0].clock[depth]
        for system in systems:
            cells = [
                *_median_and_p99(system.clock[depth]),
                *_median_and_p99(system.work[depth]),
                *_median_and_p99(system.took[depth]),
            ]
            ratio = statistics.median(a / b for a, b in zip(system.clock[depth], base, strict=True))
            print(f"| {system.name} | {depth:,} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)


def _median_and_p99(values: Sequence[float]) -> tuple[str, str]:
    if not values:
        return "", ""
    return f"{statistics.median(values):.2f}", f"{statistics.quantiles(values, n=100)[98]:.2f}"


if __name__ == "__main__":
    main()
