"""Indexing the nlps knowledge base and ranking a split's topics to depth 500, with searchapp and its alternatives.

    pip install -e '.[bench]'
    python benchmarks/engines.py --data DIR --url http://127.0.0.1:9200 [--repeat 5]

Every system starts from the same raw texts and ends with the ids and scores of the best 500 documents of every
topic. All systems run in this process, in turn, `--repeat` times; medians are printed, and for each system the
ratio to the embedded engine in the same round, so that a machine whose speed drifts does not favour anyone. `CPU s`
is what ranking took of both cores, those of Elasticsearch's node included if `--server` names its process: where a
machine is busy with something else, only that can be compared. `embedded-numpy-...` is the embedded engine without
its compiled functions. `elasticsearch-stored-ids-...` is Elasticsearch as most programs ask it, for `_id`; searchapp
asks for what the hits are sorted by instead, and no stored field is read.
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

from usage import parser_of
from usage import work as work_so_far

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
    """Something that can index texts and rank them."""

    name: str

    def index(self, documents: Sequence[Document]) -> None:
        """Index the documents, from their texts to where they can be searched."""

    def rank(self, topics: Sequence[Topic]) -> int:
        """Rank the documents for every topic; returns the number of hits."""


@dataclass
class Searchapp:
    """searchapp on one of its engines, with a mapping and template of its own."""

    name: str
    engine: Engine
    mapping: dict[str, Any]
    body: Callable[[Topic], dict[str, Any]]
    without_compiled: bool = False
    stored_ids: bool = False

    def index(self, documents: Sequence[Document]) -> None:
        """Build a new version; an engine that keeps it on disk has written and synced it."""
        spec = IndexSpec(self.mapping, len(documents), digest_json(time.time()))
        self.engine.build(self.name, spec, documents)

    def rank(self, topics: Sequence[Topic]) -> int:
        """Rank as `searchapp rank` does, opening the index first."""
        from searchapp.lucene import native

        index = self.engine.open(self.name)
        if self.stored_ids:
            index._sorts_by_id = False  # type: ignore[attr-defined]
        with native.without() if self.without_compiled else contextlib.nullcontext():
            return sum(len(hits) for hits in index.search(self.body(topic) for topic in topics))


@dataclass
class Bm25s:
    """bm25s with its own tokenizer, English stop words and Snowball stemming, on both cores.

    What numba compiles is compiled with the first index, which is no part of ranking.
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
        places, scores = self._index.retrieve(tokens, k=DEPTH, show_progress=False, n_threads=2)
        rankings = [[self._ids[place] for place in row] for row in places]
        return sum(map(len, rankings)) if len(scores) else 0


@dataclass
class Tantivy:
    """tantivy with its English stemming tokenizer."""

    name: str = "tantivy"
    _index: Any = None

    def index(self, documents: Sequence[Document]) -> None:
        """Index in memory, in one thread and so into one segment."""
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
        """One search a topic: tantivy has no batches."""
        searcher = self._index.searcher()
        hits = 0
        for topic in topics:
            words = " ".join(
                re.findall(r"\w+", topic.text)
            )  # its query language gives other characters a meaning
            if words:
                query = self._index.parse_query(words, ["text"])
                found = searcher.search(query, DEPTH).hits
                hits += len([searcher.doc(address)["id"] for _score, address in found])
        return hits


@dataclass
class RankBm25:
    """rank-bm25 over words split at white space, as its documentation shows."""

    name: str = "rank-bm25"
    _index: Any = None

    def index(self, documents: Sequence[Document]) -> None:
        """Count the words."""
        from rank_bm25 import BM25Okapi

        self._index = BM25Okapi([document.text.lower().split() for document in documents], k1=K1, b=B)

    def rank(self, topics: Sequence[Topic]) -> int:
        """Score every document for every topic, then select."""
        import numpy as np

        hits = 0
        for topic in topics:
            scores = self._index.get_scores(topic.text.lower().split())
            best = np.argpartition(-scores, DEPTH)[:DEPTH]
            hits += len(best[np.argsort(-scores[best])])
        return hits


def systems(settings: Settings, url: str | None) -> list[System]:
    """The systems to compare, the embedded engine first."""
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
        recipe_name, one_name = f"{name.lower()}-recipe-bm25", f"{name.lower()}-one-field"
        compared.append(
            Searchapp(recipe_name, engine, full, lambda topic: recipe.body(topic, DEPTH), **options)
        )
        compared.append(Searchapp(one_name, engine, one_field, short, **options))
    return [*compared, Bm25s(), Bm25s("bm25s-numba", "numba"), Tantivy(), RankBm25()]


_ONE_FIELD_QUERY = {
    "size": DEPTH,
    "_source": False,
    "track_total_hits": False,
    "sort": [{"_score": "desc"}, {"id": "asc"}],
    "query": {"match": {"text": {"query": "{{topic.text}}"}}},
}


def _one_field(mapping: dict[str, Any]) -> dict[str, Any]:
    """The mapping with the field `text` alone: what the other libraries can do."""
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
class Took:
    """Seconds by the clock, and of all processors, what processes took that have ended included."""

    clock: float
    worked: float

    @classmethod
    def of(cls, work: Callable[[], object], server: int | None) -> Took:
        """What some work takes, in this process, those that it starts and the server's."""
        gc.collect()  # what the system before has left is none of its work
        begin, worked = time.perf_counter(), _worked(server)
        work()
        return cls(time.perf_counter() - begin, _worked(server) - worked)


def _worked(server: int | None) -> float:
    here = work_so_far()
    if server is None:
        return here
    import psutil

    times = psutil.Process(server).cpu_times()
    return here + float(times.user) + float(times.system)


def main() -> None:
    """Measure and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--url", help="an Elasticsearch; without it the server is left out")
    parser.add_argument("--server", type=int, help="process of that Elasticsearch, if it is on this machine")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--slow", action="store_true", help="with rank-bm25, which takes minutes a round")
    options = parser.parse_args()
    documents, topics = _read(options.data, options.split)
    home = Path(tempfile.mkdtemp(prefix="searchapp-bench-"))
    try:
        compared = systems(Settings(home=home, index_prefix="searchapp-bench"), options.url)
        if not options.slow:
            compared = [system for system in compared if system.name != "rank-bm25"]
        times: dict[str, list[tuple[Took, Took]]] = {system.name: [] for system in compared}
        for _ in range(options.repeat):
            for system in compared:
                server = options.server if system.name.startswith("elasticsearch") else None
                indexing = Took.of(partial(system.index, documents), server)
                ranking = Took.of(partial(system.rank, topics), server)
                times[system.name].append((indexing, ranking))
    finally:
        shutil.rmtree(home)
    _print(times, len(documents), len(topics), options.repeat)


def _print(times: dict[str, list[tuple[Took, Took]]], documents: int, topics: int, repeat: int) -> None:
    print(f"{documents:,} documents, {topics:,} topics to depth {DEPTH}; medians of {repeat}\n")
    print("| system | index s | rank s | rank, ratio to embedded | rank CPU s | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, rounds in times.items():
        recipe = name.endswith("recipe-bm25")
        base = times["embedded-recipe-bm25" if recipe else "embedded-one-field"]
        indexing = statistics.median(one[0].clock for one in rounds)
        ranks = [one[1] for one in rounds]
        pairs = list(zip(ranks, [one[1] for one in base], strict=True))
        figures = [
            indexing,
            statistics.median(one.clock for one in ranks),
            statistics.median(one.clock / other.clock for one, other in pairs),
            statistics.median(one.worked for one in ranks),
            statistics.median(one.worked / other.worked for one, other in pairs),
        ]
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
