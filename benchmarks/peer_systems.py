"""The systems of `peers.py`: the embedded engine, Elasticsearch, Lucene, and those of `peer_libraries`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from peer_base import K1, B, Hits, Query, System, Unavailable, lines
from peer_collections import Collection, Workload, workloads
from peer_libraries import Bm25s, Bm25sNumba, Pisa, PisaBlockMaxWand, PisaMaxScore, Tantivy
from peer_steps import LUCENE, snapshot_folder

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
    """Return a search body like those of `searchapp rank`: the best documents, ties by id, without total."""
    return {
        "size": depth,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": {"query": " ".join(terms)}}},
    }


class Embedded(System):
    """The embedded engine; processes share a batch."""

    package = "searchapp"
    modules = ("searchapp.lucene.search.searcher", "searchapp.engines.embedded", "searchapp.config.settings")

    def build(self, collection: Collection) -> None:
        from searchapp.engines.base import IndexSpec
        from searchapp.model import Document

        shutil.rmtree(self.folder, ignore_errors=True)
        spec = IndexSpec(MAPPING, collection.facts["documents"], "peers")
        self._engine().build("peers", spec, (Document(id_, text) for id_, text in lines(collection)))

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._index = self._engine().open("peers")

    def query(self, terms: Query, depth: int) -> Hits:
        (hits,) = self._index.search([body(terms, depth)])
        return hits.document_ids, hits.scores

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        return sum(len(hits) for hits in self._index.search(body(terms, depth) for terms in queries))

    @property
    def sources(self) -> Iterable[Path]:
        searchapp = Path(__file__).parents[1] / "searchapp"
        return sorted(file for file in searchapp.rglob("*") if file.suffix in (".py", ".c", ".h"))

    def _engine(self) -> Any:
        from searchapp.config.settings import Settings
        from searchapp.engines.embedded import EmbeddedEngine

        return EmbeddedEngine.at(Settings(home=self.folder))


class Elasticsearch(System):
    """Elasticsearch through its Python client, with `dfs_query_then_fetch` and `msearch` of 64, like the engine.

    Unlike the engine, it requests `_id`, like most programs.
    """

    package = "elasticsearch"
    modules = ("elasticsearch", "psutil")
    search_type = "dfs_query_then_fetch"
    batch_size = 64
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

    def key(self, collection: Collection) -> str:
        return f"{super().key(collection)}-{self.version}"

    def is_ready(self, collection: Collection) -> bool:
        """Return whether the server has the index; restore it from a snapshot if possible."""
        from elasticsearch import ApiError

        client = self._client()
        with contextlib.suppress(ApiError):
            if self._has(client, collection):
                return True
            self._register_snapshots(client)
            client.indices.delete(index=self.index, ignore_unavailable=True)
            client.snapshot.restore(**self._snapshot())
            client.cluster.health(index=self.index, wait_for_status="yellow", timeout="600s")
            return self._has(client, collection)
        return False

    def keep(self, collection: Collection) -> None:
        """Take a snapshot if the server can write it, because a started server has no indexes."""
        from elasticsearch import ApiError

        client = self._client()
        client.indices.put_mapping(index=self.index, meta={"key": self.key(collection)})
        with contextlib.suppress(ApiError):  # a given server keeps its index
            self._register_snapshots(client)
            client.options(ignore_status=404).snapshot.delete(repository=self.index, snapshot=self.index)
            client.snapshot.create(**self._snapshot())

    def _snapshot(self) -> dict[str, Any]:
        """Return the parameters for taking and restoring the snapshot."""
        names = dict.fromkeys(("repository", "snapshot", "indices"), self.index)
        return {**names, "wait_for_completion": True, "include_global_state": False}

    def _has(self, client: Any, collection: Collection) -> bool:
        if not client.indices.exists(index=self.index):
            return False
        mappings = client.indices.get_mapping(index=self.index).body[self.index]["mappings"]
        return bool(mappings.get("_meta", {}).get("key") == self.key(collection))

    def _register_snapshots(self, client: Any) -> None:
        folder = snapshot_folder(self.folder.parents[1]) / self.folder.parent.name
        client.snapshot.create_repository(
            name=self.index, repository={"type": "fs", "settings": {"location": str(folder)}}
        )

    def begin(self) -> None:
        if (process := self._server()) is not None:
            with contextlib.suppress(OSError):  # resets the peak memory, see proc(5)
                Path(f"/proc/{process.pid}/clear_refs").write_text("5")

    def memory(self) -> dict[str, Any]:
        """Return the peak resident memory of the server; None unless it is a process of this machine on Linux."""
        process = self._server()
        try:
            status = Path(f"/proc/{process.pid}/status").read_text() if process is not None else ""
        except OSError:
            status = ""
        peak = [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")]
        return {"server MiB": peak[0] if peak else None}

    def _server(self) -> Any:
        """Return the process of the server."""
        import psutil

        (node,) = self._client().nodes.info(metric="process").body["nodes"].values()
        try:
            process = psutil.Process(node["process"]["id"])
            # The process id of a server in a container belongs to another process.
            return process if any("elasticsearch" in part for part in process.cmdline()) else None
        except psutil.Error:
            return None

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._es = self._client()

    def measure(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        # The server always has the index open.
        return super().measure(collection, size, warm_up) | {"open": None}

    def query(self, terms: Query, depth: int) -> Hits:
        answer = self._es.search(
            index=self.index,
            search_type=self.search_type,
            filter_path="took,hits.hits._id,hits.hits._score",
            **_keywords(body(terms, depth)),
        ).body
        self._took.append(answer["took"])
        hits = answer.get("hits", {}).get("hits", [])
        return [hit["_id"] for hit in hits], [hit["_score"] for hit in hits]

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        remaining = iter(queries)
        hits = 0
        while part := list(islice(remaining, self.batch_size)):
            searches = [line for terms in part for line in ({"index": self.index}, body(terms, depth))]
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
        return {"segments": segments["segments"]["count"]}

    def _single(self, queries: Sequence[Query], workload: Workload, warm_up: float) -> dict[str, Any]:
        self._took: list[int] = []
        result = super()._single(queries, workload, warm_up)
        return {**result, "took ms": self._took[-len(queries) :]}

    def _client(self) -> Any:
        from elasticsearch import Elasticsearch as Client

        if self.url is None:
            raise Unavailable("no --url")
        return Client(self.url, request_timeout=600)


def _keywords(search: dict[str, Any]) -> dict[str, Any]:
    """Return a search body as arguments of the client."""
    return {{"_source": "source"}.get(name, name): value for name, value in search.items()}


class ElasticsearchWithoutDfs(Elasticsearch):
    """Elasticsearch with the same index, without collecting statistics first, which one shard does not need."""

    search_type = "query_then_fetch"


class Lucene(System):
    """Lucene through the Java program in `lucene/`."""

    def __init__(self, folder: Path, threads: int, url: str | None = None) -> None:
        super().__init__(folder, threads, url)
        self._version = "see rounds"

    @property
    def version(self) -> str:
        return self._version

    @property
    def sources(self) -> Iterable[Path]:
        return (LUCENE / "Peers.java", LUCENE / "pom.xml")

    def build(self, collection: Collection) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._java("index", collection.documents, self.folder, K1, B)

    def measure(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        arguments: list[Any] = []
        for workload in workloads(size):
            kind = "batch" if workload.is_batch else "single"
            arguments += [workload.name, collection.queries_file(workload.queries), workload.depth, kind]
        output = json.loads(self._java("search", self.folder, K1, B, self.threads, warm_up, *arguments))
        return {
            "open": output["open ns"] / 1e6,
            "segments": output["segments"],
            "version": output["version"],
            "workloads": {
                name: {"ms": [ns / 1e6 for ns in took["ns"]], **{k: took[k] for k in took if k != "ns"}}
                for name, took in output["workloads"].items()
            },
        }

    @staticmethod
    def _java(*arguments: Any) -> str:
        home, jars, classes = os.environ["PEERS_JAVA"].split(os.pathsep)
        # Limits the garbage collector to two threads, and allows the vector instructions that Lucene can use.
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
"""Systems that search the index of another system."""
