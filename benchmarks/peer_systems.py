"""The systems of `peers.py`: how each builds an index of a collection, and how each is measured.

All have k1 1.2 and b 0.75 (tantivy knows no others), index frequencies and positions where they can, split at white
space, and answer with ids and scores. A system is measured in a process of its own, which is new in each round.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
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

    def build(self, collection: Collection) -> None:
        """Index the documents, to one segment on disk."""
        raise NotImplementedError

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
        """What else is to be known of a round, such as the number of segments."""
        return {}

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


MAPPING: dict[str, Any] = {
    "settings": {"similarity": {"peers": {"type": "BM25", "k1": K1, "b": B}}},
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {"type": "text", "analyzer": "whitespace", "similarity": "peers"},
        },
    },
}


def body(terms: Query, depth: int) -> dict[str, Any]:
    """A search body as `searchapp rank` makes them: the best documents, ties by id, nothing counted."""
    return {
        "size": depth,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": {"query": " ".join(terms)}}},
    }


class Embedded(System):
    """The embedded engine; a batch is shared out among processes."""

    package = "searchapp"
    modules = ("searchapp.analysis", "searchapp.engines.embedded", "searchapp.settings")

    def build(self, collection: Collection) -> None:
        from searchapp.engines.base import IndexSpec
        from searchapp.model import Document

        spec = IndexSpec(MAPPING, collection.facts["documents"], "peers")
        self._engine().build("peers", spec, (Document(id_, text) for id_, text in lines(collection)))

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._index = self._engine().open("peers")

    def query(self, terms: Query, depth: int) -> Hits:
        (hits,) = self._index.search([body(terms, depth)])
        return hits.document_ids, hits.scores

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        return sum(len(hits) for hits in self._index.search(body(terms, depth) for terms in queries))

    def _engine(self) -> Any:
        from searchapp.engines.embedded import EmbeddedEngine
        from searchapp.settings import Settings

        return EmbeddedEngine.at(Settings(home=self.folder))


class Elasticsearch(System):
    """Elasticsearch through its Python client, as the engine asks it: `dfs_query_then_fetch`, `msearch` of 64."""

    package = "elasticsearch"
    modules = ("elasticsearch", "psutil")
    search_type = "dfs_query_then_fetch"
    at_once = 64
    index = "peers"

    @property
    def version(self) -> str:
        return str(self._client().info()["version"]["number"])

    def build(self, collection: Collection) -> None:
        from elasticsearch.helpers import parallel_bulk

        client = self._client()
        client.indices.delete(index=self.index, ignore_unavailable=True)
        settings = {**MAPPING["settings"], "number_of_shards": 1, "number_of_replicas": 0}
        client.indices.create(
            index=self.index,
            settings={**settings, "refresh_interval": "-1", "max_result_window": 10_000},
            mappings=MAPPING["mappings"],
        )
        actions = (
            {"_id": id_, "_source": {"id": id_, "text": text}, "_index": self.index}
            for id_, text in lines(collection)
        )
        for _ in parallel_bulk(client, actions, thread_count=2, chunk_size=2000, request_timeout=600):
            pass
        client.indices.forcemerge(index=self.index, max_num_segments=1, request_timeout=7200)
        client.indices.refresh(index=self.index)

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._es = self._client()

    def query(self, terms: Query, depth: int) -> Hits:
        answer = self._es.search(
            index=self.index,
            search_type=self.search_type,
            filter_path="took,hits.hits._id,hits.hits._score",
            **_keywords(body(terms, depth)),
        ).body
        self._took.append(answer["took"])
        found = answer.get("hits", {}).get("hits", [])
        return [hit["_id"] for hit in found], [hit["_score"] for hit in found]

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        waiting = iter(queries)
        hits = 0
        while some := list(islice(waiting, self.at_once)):
            searches = [part for terms in some for part in ({"index": self.index}, body(terms, depth))]
            answers = self._es.msearch(
                searches=searches,
                search_type=self.search_type,
                filter_path="responses.hits.hits._id,responses.hits.hits._score",
            ).body["responses"]
            hits += sum(len(answer["hits"]["hits"]) for answer in answers if answer)
        return hits

    def disk(self) -> int:
        stats = self._client().indices.stats(index=self.index, metric="store").body
        return int(stats["_all"]["total"]["store"]["size_in_bytes"])

    def facts(self) -> dict[str, Any]:
        segments = self._es.indices.stats(index=self.index, metric="segments").body["_all"]["total"]
        return {"segments": segments["segments"]["count"], "server MiB": self.server_memory()}

    def server_memory(self) -> float:
        """The server's resident memory in MiB, where it runs on this machine."""
        import psutil

        (node,) = self._client().nodes.info(metric="process").body["nodes"].values()
        try:
            return float(psutil.Process(node["process"]["id"]).memory_info().rss) / 2**20
        except psutil.Error:
            return float("nan")

    def _single(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        self._took: list[int] = []
        measured = super()._single(queries, workload, warm_up)
        return {**measured, "took ms": self._took[-len(queries) :]}

    def _client(self) -> Any:
        from elasticsearch import Elasticsearch as Client

        if self.url is None:
            raise Unavailable("no --url")
        return Client(self.url, request_timeout=600)


def _keywords(search: dict[str, Any]) -> dict[str, Any]:
    """A search body as arguments of the client."""
    return {{"_source": "source"}.get(name, name): value for name, value in search.items()}


class ElasticsearchWithoutDfs(Elasticsearch):
    """The same index without collecting statistics first, which one shard does not need."""

    search_type = "query_then_fetch"


class Tantivy(System):
    """tantivy through its Python binding; ids come from a fast field; a batch is shared out among threads."""

    package = "tantivy"
    modules = ("tantivy",)

    def build(self, collection: Collection) -> None:
        import tantivy

        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("id", fast=True)
        schema.add_text_field("text", tokenizer_name="whitespace")  # a tokenizer of tantivy's own
        index = tantivy.Index(schema.build(), path=str(self.folder))
        # One thread with as much memory as it may have: so there are as few segments as can be, mostly one.
        writer = index.writer(heap_size=3_900_000_000, num_threads=1)
        for id_, text in lines(collection):
            document = tantivy.Document()
            document.add_unsigned("id", int(id_))
            document.add_text("text", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        import tantivy

        self._tantivy = tantivy
        index = tantivy.Index.open(str(self.folder))
        self._schema, self._searcher = index.schema, index.searcher()

    def query(self, terms: Query, depth: int) -> Hits:
        query, should = self._tantivy.Query, self._tantivy.Occur.Should
        clauses = [(should, query.term_query(self._schema, "text", term)) for term in terms]
        found = self._searcher.search(query.boolean_query(clauses), depth, count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in found])
        return [str(id_) for id_ in ids], [score for score, _ in found]

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        with ThreadPoolExecutor(self.threads) as pool:
            return sum(len(ids) for ids, _ in pool.map(lambda terms: self.query(terms, depth), queries))

    def facts(self) -> dict[str, Any]:
        return {"segments": self._searcher.num_segments}


class Bm25s(System):
    """bm25s with method `lucene`, which has every score computed beforehand."""

    package = "bm25s"
    modules = ("bm25s",)
    backend = "numpy"

    def build(self, collection: Collection) -> None:
        import bm25s

        tokens, starts = collection.token_arrays()
        vocabulary = {f"w{number}": number for number in range(collection.facts["terms"])}
        index = bm25s.BM25(k1=K1, b=B, method="lucene", backend=self.backend)
        index.index(_Rows(tokens, starts).with_vocabulary(vocabulary), show_progress=False)
        index.save(str(self.folder), show_progress=False)

    def open(self, collection: Collection) -> None:
        import bm25s

        self._index = bm25s.BM25.load(str(self.folder), backend=self.backend)
        self._count = collection.facts["documents"]

    def query(self, terms: Query, depth: int) -> Hits:
        (documents,), (scores,) = self._index.retrieve(
            [list(terms)], k=min(depth, self._count), show_progress=False, n_threads=0
        )
        return [str(number) for number in documents.tolist()], scores.tolist()

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        documents, scores = self._index.retrieve(
            [list(terms) for terms in queries],
            k=min(depth, self._count),
            show_progress=False,
            n_threads=self.threads,
        )
        rankings = [[str(number) for number in row] for row in documents.tolist()]
        return sum(map(len, rankings)) if len(scores) else 0


class Bm25sNumba(Bm25s):
    """bm25s on its compiled backend, whose compilation is over before anything is timed."""

    backend = "numba"

    @property
    def version(self) -> str:
        return f"{super().version}, numba {importlib.metadata.version('numba')}"


class _Rows:
    """The documents' term numbers as bm25s takes them, made when they are asked for: Python's own would need 30 times
    the memory."""

    def __init__(self, tokens: Any, starts: Any) -> None:
        self._tokens, self._starts = tokens, starts
        self.ids: Iterable[Sequence[int]] = self
        self.vocab: dict[str, int] = {}

    def with_vocabulary(self, vocabulary: dict[str, int]) -> _Rows:
        self.vocab = vocabulary
        return self

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        for start, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True):
            yield self._tokens[start:end].tolist()


class Pisa(System):
    """PISA through pyterrier-pisa, its postings in SIMD-BP128 blocks; one of its algorithms.

    The package answers with data frames of pandas, a millisecond for each query; the function
    that it calls itself is called here instead.
    """

    package = "pyterrier-pisa"
    algorithm = "ranked_or"

    def build(self, collection: Collection) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._pisa().index({"docno": id_, "text": text} for id_, text in lines(collection))
        self._retriever()  # computes the greatest score of each block, once for all algorithms

    def measured(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        self._pisa()  # loads it
        return super().measured(collection, size, warm_up)

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._opened = self._retriever()

    def query(self, terms: Query, depth: int) -> Hits:
        ids, scores = self._answers([terms], depth, 1)
        return ids.tolist(), scores.tolist()

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        ids, scores = self._answers(queries, depth, self.threads)
        return min(len(ids.tolist()), len(scores.tolist()))

    def _answers(self, queries: Sequence[Query], depth: int, threads: int) -> tuple[Any, Any]:
        import numpy as np
        from pyterrier_pisa import _pisathon

        room = len(queries) * depth
        ids, scores = np.empty(room, object), np.empty(room, np.float32)
        size = _pisathon.retrieve(
            self._opened._ctxt,
            self.algorithm,
            [(number, " ".join(terms)) for number, terms in enumerate(queries)],
            k=depth,
            threads=threads,
            query_weighted=0,
            pretokenised=False,
            result_qidxs=np.empty(room, np.int32),
            result_docnos=ids,
            result_ranks=np.empty(room, np.int32),
            result_scores=scores,
        )
        return ids[:size], scores[:size]

    def _retriever(self) -> Any:
        return self._pisa().bm25(k1=K1, b=B, num_results=FIRST, threads=1, query_algorithm=self.algorithm)

    def _pisa(self) -> Any:
        try:
            from pyterrier_pisa import PisaIndex
        except (ImportError, KeyError, OSError) as error:
            raise Unavailable(f"pyterrier-pisa does not load: {error}") from error
        return PisaIndex(str(self.folder), text_field="text", stemmer="none", stops="none", threads=1)


class PisaMaxScore(Pisa):
    """PISA with MaxScore."""

    algorithm = "maxscore"


class PisaBlockMaxWand(Pisa):
    """PISA with block-max WAND."""

    algorithm = "block_max_wand"


class Lucene(System):
    """Plain Lucene through the Java program beside this file."""

    def __init__(self, folder: Path, threads: int, url: str | None = None) -> None:
        super().__init__(folder, threads, url)
        self._version = "see rounds"

    @property
    def version(self) -> str:
        return self._version

    def build(self, collection: Collection) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._java("index", collection.documents, self.folder, K1, B)

    def measured(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        asked: list[Any] = []
        for workload in workloads(size):
            kind = "batch" if workload.is_batch else "single"
            asked += [workload.name, collection.queries_file(workload.queries), workload.depth, kind]
        said = json.loads(self._java("search", self.folder, K1, B, self.threads, warm_up, *asked))
        return {
            "open": said["open ns"] / 1e6,
            "segments": said["segments"],
            "version": said["version"],
            "workloads": {
                name: {"ms": [one / 1e6 for one in took["ns"]], **{k: took[k] for k in took if k != "ns"}}
                for name, took in said["workloads"].items()
            },
        }

    @staticmethod
    def _java(*arguments: Any) -> str:
        home, jars, classes = os.environ["PEERS_JAVA"].split(os.pathsep)
        # Two threads of Java's own collector at most, and the vectors that Lucene uses where they are allowed.
        command = [f"{home}/bin/java", "-Xmx2g", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=2"]
        command += ["--add-modules", "jdk.incubator.vector", "-cp", f"{jars}/*{os.pathsep}{classes}", "Peers"]
        answer = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
        if answer.returncode:
            raise RuntimeError(answer.stderr)
        return answer.stdout


SYSTEMS: dict[str, type[System]] = {
    "embedded": Embedded,
    "lucene": Lucene,
    "elasticsearch-dfs": Elasticsearch,
    "elasticsearch": ElasticsearchWithoutDfs,
    "tantivy": Tantivy,
    "bm25s-numba": Bm25sNumba,
    "bm25s-numpy": Bm25s,
    "pisa-ranked-or": Pisa,
    "pisa-maxscore": PisaMaxScore,
    "pisa-bmw": PisaBlockMaxWand,
}
SAME_INDEX = {
    "elasticsearch": "elasticsearch-dfs",
    "bm25s-numpy": "bm25s-numba",
    "pisa-maxscore": "pisa-ranked-or",
    "pisa-bmw": "pisa-ranked-or",
}
"""Systems that search an index which another one has built."""
