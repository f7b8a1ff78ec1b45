"""Single searches and a batch in a large index: the embedded engine in two ways, and Elasticsearch.

    python -m tests.server --heap 1g -- python benchmarks/single_queries.py --data DIR [--documents 1000000]

Documents and queries are those of growth.py: synthetic texts with the words and lengths of the nlps knowledge base, and
queries of three to eight words, in one field with the built-in analyzer `english` (k1 1.2, b 0.75). Elasticsearch gets
the same documents in one index of one shard without replicas, merged into one segment.

The embedded engine is asked as it is, and so that it scores all documents, as without compiled functions. In each round
every query is asked of every system in turn, so that all meet the same load of the machine; a round before the first
one warms up and is not counted. Printed are medians and 99th percentiles over all rounds, in milliseconds: by the
clock; of this process's own work, which other work on the machine lengthens less; and of Elasticsearch what it says
that it took. Then a batch is asked of both engines at once, by the milliseconds for each of its queries, beside what
the same queries take one at a time. All systems must give the same hits, or the script fails.

The index is kept in FOLDER, and on the server under the prefix `searchapp-single`, where one that is there is used
again.
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
from usage import parser_of

from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.model import Hits, float32
from searchapp.processes import cores

DEPTHS = (10, 1000)
SEARCH_TYPES = ("query_then_fetch", "dfs_query_then_fetch")

Body = dict[str, Any]
Answered = tuple[list[tuple[str, float]], float | None]
"""The hits, and how many milliseconds a server says that it took."""


class System:
    """One way to search, and the milliseconds that it took, by depth."""

    def __init__(self, name: str, ask: Callable[[Body], Answered]) -> None:
        self.name = name
        self.ask = ask
        self.clock: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
        self.work: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
        self.took: dict[int, list[float]] = {depth: [] for depth in DEPTHS}

    def measure(self, body: Body, *, counts: bool) -> list[tuple[str, float]]:
        """Ask for the hits of a body."""
        work, begin = time.process_time(), time.perf_counter()
        hits, took = self.ask(body)
        clock, work = time.perf_counter() - begin, time.process_time() - work
        if counts:
            depth = body["size"]
            self.clock[depth].append(clock * 1000)
            self.work[depth].append(work * 1000)
            self.took[depth] += [] if took is None else [took]
        return hits


class _Never:
    """In the place of what prunes."""

    def best(self, *_query: object, **_how: object) -> None:
        """Nothing: all documents are to be scored."""


def body(words: str, depth: int) -> Body:
    """The search for some words."""
    return {
        "size": depth,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": {"query": words}}},
    }


def built(engine: Engine, generator: Generator, count: int) -> Index:
    """The index of so many documents, built unless it is there."""
    spec = IndexSpec(MAPPING, count, f"{SEED}-{count}")
    info = engine.index_info(NAME)
    if info is None or info.digest != spec.digest:
        begin = time.perf_counter()
        engine.build(NAME, spec, generator.documents(count))
        print(f"{engine.info().name}: indexed in {time.perf_counter() - begin:.0f} s", flush=True)
    return engine.open(NAME)


def embedded_systems(engine: EmbeddedEngine) -> list[System]:
    """The embedded engine, as it is, and without pruning."""
    whole = engine.open(NAME)
    whole.index.searchers[0].pruner = _Never()  # type: ignore[assignment]

    def asking(index: EmbeddedIndex) -> Callable[[Body], Answered]:
        return lambda body: (list(*index.search([body])), None)

    return [
        System("embedded", asking(engine.open(NAME))),
        System("embedded, all scored", asking(whole)),
    ]


def server_systems(engine: ElasticsearchEngine) -> list[System]:
    """Elasticsearch with each type of search, over the client that searchapp uses; its index is merged first."""
    info = engine.index_info(NAME)
    assert info is not None
    client = engine.open(NAME)._connection.client
    client.options(request_timeout=3600).indices.forcemerge(index=info.version, max_num_segments=1)

    def asking(search_type: str) -> Callable[[Body], Answered]:
        def ask(body: Body) -> Answered:
            answer = client.search(
                index=info.version,
                search_type=search_type,
                body=body,
                filter_path=["took", "hits.hits._id", "hits.hits._score"],
            )
            hits = answer.get("hits", {}).get("hits", [])
            return [(hit["_id"], hit["_score"]) for hit in hits], answer["took"]

        return ask

    return [System(f"Elasticsearch, {kind}", asking(kind)) for kind in SEARCH_TYPES]


def require_same(query: str, found: Sequence[Sequence[tuple[str, float]]]) -> None:
    """Stop where two systems do not agree on ids, order or scores."""
    first, *others = ([(id_, float32(score)) for id_, score in hits] for hits in found)
    if any(other != first for other in others):
        raise SystemExit(f"the systems do not agree on {query!r}")


def batch(index: Index, bodies: Sequence[Body]) -> tuple[list[Hits], float]:
    """The answers to all bodies at once, and the milliseconds for each."""
    begin = time.perf_counter()
    found = list(index.search(bodies))
    return found, (time.perf_counter() - begin) * 1000 / len(bodies)


def one_by_one(index: Index, bodies: Sequence[Body]) -> tuple[list[Hits], float]:
    """The answers to the bodies one after the other, and the milliseconds for each."""
    begin = time.perf_counter()
    found = [hits for one in bodies for hits in index.search([one])]
    return found, (time.perf_counter() - begin) * 1000 / len(bodies)


def main() -> None:
    """Measure and print the tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument(
        "--url",
        default=os.environ.get("SEARCHAPP_URL"),
        help="an Elasticsearch, by default that of SEARCHAPP_URL; without it the server is left out",
    )
    parser.add_argument("--keep", type=Path, help="folder for the index, which is used again if it is there")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    generator = Generator(options.data)
    with tempfile.TemporaryDirectory(prefix="searchapp-single-") as scratch:
        settings = Settings(home=options.keep or Path(scratch), index_prefix=PREFIX, url=options.url)
        with closing(EmbeddedEngine.at(settings)) as embedded:
            engines: dict[str, Index] = {"embedded": built(embedded, generator, options.documents)}
            systems = embedded_systems(embedded)
            if not options.url:
                _measure(systems, engines, generator, options)
                return
            with closing(ElasticsearchEngine.connect(settings)) as server:
                engines["Elasticsearch"] = built(server, generator, options.documents)
                _measure(systems + server_systems(server), engines, generator, options)


def _measure(
    systems: list[System], engines: dict[str, Index], generator: Generator, options: argparse.Namespace
) -> None:
    queries = generator.queries(max(options.queries, options.batch))
    gc.collect()
    gc.freeze()  # to go through what this script has made takes the collector 30 ms, in the middle of some search
    for round_ in range(options.rounds + 1):
        for words in queries[: options.queries]:
            for depth in DEPTHS:
                found = [system.measure(body(words, depth), counts=round_ > 0) for system in systems]
                require_same(words, found)
    _print(systems, options)
    bodies = [body(words, DEPTHS[0]) for words in queries[: options.batch]]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for round_ in range(options.rounds + 1):
        for name, index in engines.items():
            together, of_batch = batch(index, bodies)
            alone, of_singles = one_by_one(index, bodies)
            if together != alone:
                raise SystemExit(f"{name}: a batch gives other hits than its queries one at a time")
            if round_:
                times[name].append((of_batch, of_singles))
    print(f"\nA batch of {len(bodies):,} queries to depth {DEPTHS[0]}: ms for each query\n")
    print("| engine | as a batch | one at a time | ratio |\n|---|---:|---:|---:|")
    for name, rounds in times.items():
        both = [*zip(*rounds, strict=True), [together / alone for together, alone in rounds]]
        print(f"| {name} | " + " | ".join(f"{statistics.median(values):.2f}" for values in both) + " |")


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
            cells = [*_of(system.clock[depth]), *_of(system.work[depth]), *_of(system.took[depth])]
            ratio = statistics.median(a / b for a, b in zip(system.clock[depth], base, strict=True))
            print(f"| {system.name} | {depth:,} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)


def _of(values: Sequence[float]) -> tuple[str, str]:
    if not values:
        return "", ""
    return f"{statistics.median(values):.2f}", f"{statistics.quantiles(values, n=100)[98]:.2f}"


if __name__ == "__main__":
    main()
