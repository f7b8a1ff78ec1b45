"""Index the nlps knowledge base and rank a split's topics to depth 500, with searchapp and other systems.

    pip install -e '.[bench]'
    python benchmarks/engines.py --data DIR --url http://127.0.0.1:9200 [--repeat 5]

All systems start from the same texts and end with the ids and scores of the best 500 documents of each topic. They run
in this process in turn, `--repeat` times. The table has medians, and for each system the ratio to the embedded engine
in the same round, so that a changing speed of the machine favours no system. `CPU s` is the processor time of ranking,
with that of Elasticsearch if `--server` names its process; on a busy machine, only this time is comparable.
`embedded-numpy-...` is the embedded engine without its compiled functions. `elasticsearch-stored-ids-...` requests the
stored field `_id`, like most programs; searchapp reads the sort values instead.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from usage import cpu_seconds, make_parser

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, IndexSpec
from searchapp.files import digest_json
from searchapp.model import Document, Topic
from searchapp.ranking import recipes
from searchapp.ranking.templates import Template

DEPTH = 500
NUMPY = "embedded-numpy"
STORED_IDS = "Elasticsearch-stored-ids"
K1, B = 0.9, 0.4


class System(Protocol):
    """A system that indexes and ranks texts."""

    name: str

    def index(self, documents: Sequence[Document]) -> None:
        """Index the documents until they can be searched."""

    def rank(self, topics: Sequence[Topic]) -> int:
        """Rank the documents for all topics; return the number of hits."""


@dataclass
class Searchapp:
    """An engine of searchapp with its own mapping and template."""

    name: str
    engine: Engine
    mapping: dict[str, Any]
    body: Callable[[Topic], dict[str, Any]]
    without_compiled: bool = False
    stored_ids: bool = False

    def index(self, documents: Sequence[Document]) -> None:
        """Build a new version, including synchronization with the disk."""
        spec = IndexSpec(self.mapping, len(documents), digest_json(time.time()))
        self.engine.build(self.name, spec, documents)

    def rank(self, topics: Sequence[Topic]) -> int:
        """Open the index and rank like `searchapp rank`."""
        from searchapp.lucene import native

        index = self.engine.open(self.name)
        if self.stored_ids:
            index._sorts_by_id = False  # type: ignore[attr-defined]
        with native.without() if self.without_compiled else contextlib.nullcontext():
            return sum(len(hits) for hits in index.search(self.body(topic) for topic in topics))


@dataclass
class Bm25s:
    """bm25s with its own tokenizer, English stop words and Snowball stemming, in two threads.

    Indexing includes the compilation by numba, so that ranking does not.
    """

    name: str = "bm25s"
    backend: str = "numpy"
    _stemmer: Any = None
    _index: Any = None
    _ids: list[str] = field(default_factory=list)

    def index(self, documents: Sequence[Document]) -> None:
        """Tokenize and compute the score matrix."""
        import bm25s
        import Stemmer

        self._stemmer = Stemmer.Stemmer("english")
        self._ids = [document.id for document in documents]
        tokens = bm25s.tokenize(
            [document.text for document in documents],
            stopwords="en",
            stemmer=self._stemmer,
            show_progress=False,
        )
        self._index = bm25s.BM25(k1=K1, b=B, backend=self.backend)
        self._index.index(tokens, show_progress=False)
        self.rank([Topic(document.id, document.text) for document in documents[:4]])

    def rank(self, topics: Sequence[Topic]) -> int:
        """Tokenize the topics and retrieve."""
        import bm25s

        texts = [topic.text for topic in topics]
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)
        numbers, scores = self._index.retrieve(tokens, k=DEPTH, show_progress=False, n_threads=2)
        rankings = [[self._ids[number] for number in row] for row in numbers]
        return sum(map(len, rankings)) if len(scores) else 0


@dataclass
class Tantivy:
    """tantivy with its English stemming tokenizer."""

    name: str = "tantivy"
    _index: Any = None

    def index(self, documents: Sequence[Document]) -> None:
        """Index in memory, in one thread and therefore into one segment."""
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(heap_size=200_000_000, num_threads=1)
        for document in documents:
            writer.add_document(tantivy.Document(id=document.id, text=document.text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def rank(self, topics: Sequence[Topic]) -> int:
        """Search each topic; tantivy has no batches."""
        searcher = self._index.searcher()
        hits = 0
        for topic in topics:
            words = " ".join(re.findall(r"\w+", topic.text))  # other characters are operators of its queries
            if words:
                query = self._index.parse_query(words, ["text"])
                best = searcher.search(query, DEPTH).hits
                hits += len([searcher.doc(address)["id"] for _score, address in best])
        return hits


@dataclass
class RankBm25:
    """rank-bm25 with words split at white space, as in its documentation."""

    name: str = "rank-bm25"
    _index: Any = None

    def index(self, documents: Sequence[Document]) -> None:
        """Count the words."""
        from rank_bm25 import BM25Okapi

        self._index = BM25Okapi([document.text.lower().split() for document in documents], k1=K1, b=B)

    def rank(self, topics: Sequence[Topic]) -> int:
        """Score all documents for each topic, then select the best."""
        import numpy as np

        hits = 0
        for topic in topics:
            scores = self._index.get_scores(topic.text.lower().split())
            best = np.argpartition(-scores, DEPTH)[:DEPTH]
            hits += len(best[np.argsort(-scores[best])])
        return hits


def systems(settings: Settings, url: str | None) -> list[System]:
    """Return the systems to compare, the embedded engine first."""
    from searchapp.engines.elasticsearch import ElasticsearchEngine
    from searchapp.engines.embedded import EmbeddedEngine

    engines: list[tuple[str, Engine]] = [
        ("embedded", EmbeddedEngine.at(settings)),
        (NUMPY, EmbeddedEngine.at(settings)),
    ]
    if url:
        server = dataclasses.replace(settings, url=url)
        for name in ("Elasticsearch", STORED_IDS):
            engines.append((name, ElasticsearchEngine.connect(server)))
    full = resources.index_mapping("premises")
    recipe = recipes.load("nlps", "bm25")
    one_field = _one_field(full)
    template = Template(_ONE_FIELD_QUERY, "one field")

    def short(topic: Topic) -> dict[str, Any]:
        return template.render({"topic.text": topic.text})

    compared: list[System] = []
    for name, engine in engines:
        options = {"without_compiled": name == NUMPY, "stored_ids": name == STORED_IDS}
        recipe_name, field_name = f"{name.lower()}-recipe-bm25", f"{name.lower()}-one-field"
        compared.append(
            Searchapp(recipe_name, engine, full, lambda topic: recipe.body(topic, DEPTH), **options)
        )
        compared.append(Searchapp(field_name, engine, one_field, short, **options))
    return [*compared, Bm25s(), Bm25s("bm25s-numba", "numba"), Tantivy(), RankBm25()]


_ONE_FIELD_QUERY = {
    "size": DEPTH,
    "_source": False,
    "track_total_hits": False,
    "sort": [{"_score": "desc"}, {"id": "asc"}],
    "query": {"match": {"text": {"query": "{{topic.text}}"}}},
}


def _one_field(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping with only the field `text`, like the other libraries."""
    text = {key: value for key, value in mapping["mappings"]["properties"]["text"].items() if key != "fields"}
    properties = {**mapping["mappings"]["properties"], "text": text}
    return {**mapping, "mappings": {**mapping["mappings"], "properties": properties}}


def _read(data: Path, split: str) -> tuple[list[Document], list[Topic]]:
    documents = json.loads((data / "knowledge_base.json").read_text(encoding="utf-8"))
    topics = json.loads((data / f"{split}_set.json").read_text(encoding="utf-8"))
    return (
        [Document(id_, text) for id_, text in documents.items()],
        [Topic(id_, entry["text"]) for id_, entry in topics.items()],
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Wall-clock time, and processor time including ended children, in seconds."""

    clock: float
    cpu: float

    @classmethod
    def measure(cls, work: Callable[[], object], server: int | None) -> Times:
        """Measure a function, with the processor time of children and of the server."""
        gc.collect()  # garbage of the system before must not count
        begin, cpu = time.perf_counter(), _cpu_seconds(server)
        work()
        return cls(time.perf_counter() - begin, _cpu_seconds(server) - cpu)


def _cpu_seconds(server: int | None) -> float:
    own = cpu_seconds()
    if server is None:
        return own
    import psutil

    times = psutil.Process(server).cpu_times()
    return own + float(times.user) + float(times.system)


def main() -> None:
    """Measure and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--url", help="address of Elasticsearch; omit it to exclude Elasticsearch")
    parser.add_argument("--server", type=int, help="process id of Elasticsearch on this machine")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--slow", action="store_true", help="include rank-bm25, which takes minutes per round"
    )
    options = parser.parse_args()
    documents, topics = _read(options.data, options.split)
    home = Path(tempfile.mkdtemp(prefix="searchapp-bench-"))
    try:
        compared = systems(Settings(home=home, index_prefix="searchapp-bench"), options.url)
        if not options.slow:
            compared = [system for system in compared if system.name != "rank-bm25"]
        times: dict[str, list[tuple[Times, Times]]] = {system.name: [] for system in compared}
        for _ in range(options.repeat):
            for system in compared:
                server = options.server if system.name.startswith("elasticsearch") else None
                indexing = Times.measure(partial(system.index, documents), server)
                ranking = Times.measure(partial(system.rank, topics), server)
                times[system.name].append((indexing, ranking))
    finally:
        shutil.rmtree(home)
    _print(times, len(documents), len(topics), options.repeat)


def _print(measured: dict[str, list[tuple[Times, Times]]], documents: int, topics: int, repeat: int) -> None:
    print(f"{documents:,} documents, {topics:,} topics to depth {DEPTH}; medians of {repeat}\n")
    print("| system | index s | rank s | rank, ratio to embedded | rank CPU s | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, rounds in measured.items():
        recipe = name.endswith("recipe-bm25")
        base = measured["embedded-recipe-bm25" if recipe else "embedded-one-field"]
        ranks = [ranking for _, ranking in rounds]
        pairs = list(zip(ranks, [ranking for _, ranking in base], strict=True))
        figures = [
            statistics.median(indexing.clock for indexing, _ in rounds),
            statistics.median(times.clock for times in ranks),
            statistics.median(times.clock / embedded.clock for times, embedded in pairs),
            statistics.median(times.cpu for times in ranks),
            statistics.median(times.cpu / embedded.cpu for times, embedded in pairs),
        ]
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
