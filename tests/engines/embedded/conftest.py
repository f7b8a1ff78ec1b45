"""Both engines side by side, on the same documents."""

from __future__ import annotations

import copy
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import Index, IndexSpec, SearchHit, search_hit
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene import native
from searchapp.lucene.native import compilation
from searchapp.model import Document
from tests.search import queries
from tests.search.comparing import comparable, comparable_between_versions, first_difference
from tests.search.queries import ComparedEngines
from tests.server.rest import Server

Query = Mapping[str, Any]

ORDER = [{"_score": "desc"}, {"id": "asc"}]

WORDS = {"tokenizer": "whitespace", "filter": ["lowercase"]}
MAPPING: dict[str, Any] = {
    "settings": {
        "analysis": {
            "filter": {
                "beginnings": {"type": "edge_ngram", "min_gram": 1, "max_gram": 3},
                "little": {"type": "stop", "stopwords": ["the", "of"]},
            },
            "analyzer": {
                "words": WORDS,
                "gaps": {"tokenizer": "whitespace", "filter": ["lowercase", "little"]},
                "alike": {"tokenizer": "whitespace", "filter": ["lowercase", "beginnings"]},
            },
        },
        "similarity": {
            "flat": {"type": "BM25", "k1": 0.9, "b": 0.4},
            "steep": {"type": "BM25", "k1": 4.0, "b": 1.0},
        },
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "analyzer": "words",
                "similarity": "flat",
                "fields": {
                    "gaps": {"type": "text", "analyzer": "gaps"},
                    "alike": {
                        "type": "text",
                        "analyzer": "words",
                        "search_analyzer": "alike",
                        "similarity": "steep",
                    },
                },
            },
            "tag": {"type": "keyword"},
            "year": {"type": "integer"},
            "long": {"type": "long"},
            "weight": {"type": "double"},
            "ratio": {"type": "float"},
        },
    },
}


def compiler() -> str:
    """Return the C compiler, or skip the test if there is none."""
    command = os.environ.get("CC") or "cc"
    if "CI" not in os.environ and shutil.which(command.split()[0]) is None:
        pytest.skip("there is no C compiler")
    return command


@contextmanager
def compiled_with(common: Path, *options: str) -> Iterator[Path]:
    """Compile the functions from their present sources and use them.

    All test processes share the libraries in the folder `common`, one for each set of options.
    """
    command = compiler()
    path: Path = common / "-".join(["compiled", *options]) / compilation.LIBRARY.name
    path.parent.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setenv("CC", " ".join([command, *options]))
        if not path.exists():
            assert compilation.compile_library(path) == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "LIBRARY", path)
        native._loaded.cache_clear()
        yield path
    native._loaded.cache_clear()


@pytest.fixture(scope="module")
def library(_common: Path) -> Iterator[Path]:
    """Use the functions compiled by `compiled_with`."""
    with compiled_with(_common) as path:
        yield path


def body(query: Query, size: int = 50, **more: Any) -> dict[str, Any]:
    """Return a search body in searchapp's order."""
    return {"size": size, "sort": ORDER, "query": query, **more}


def spec_of(
    documents: Sequence[Document], mapping: Mapping[str, Any] = MAPPING, digest: str = "1"
) -> IndexSpec:
    return IndexSpec(mapping, len(documents), digest)


@dataclass
class EnginePair:
    """The same documents in both engines."""

    embedded: EmbeddedIndex
    server: Index
    version: str

    def require_same_hits(self, query: Query, size: int = 50, **more: Any) -> list[str]:
        """Check for the same ids, order and float32 scores, and return the ids."""
        request = body(query, size, **more)
        (expected,) = self.server.search([request])
        (hits,) = self.embedded.search([request])
        assert hits == expected, f"the engines differ on {query}"
        return [hit.document_id for hit in hits]

    def require_same_details(self, query: Query, **more: Any) -> list[SearchHit]:
        """Check for the same hits, sources, highlights and explanations, and return the embedded engine's hits."""
        request = body(query, **more)
        hits, expected = (index.answer(request)["hits"]["hits"] for index in (self.embedded, self.server))
        ours, theirs = (list(map(comparable, outcome)) for outcome in (hits, expected))
        if ServerVersion(self.version).is_older:
            difference = first_difference(*map(comparable_between_versions, (ours, theirs)))
        else:
            difference = first_difference(ours, theirs)
        assert difference is None, f"on {query}: {difference}"
        return list(map(search_hit, hits))


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        yield engine


@pytest.fixture
def make_pair(
    elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> Iterator[Callable[..., EnginePair]]:
    """Return a function that indexes the same documents in both engines."""
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    with (
        closing(ElasticsearchEngine.connect(settings)) as server,
        closing(EmbeddedEngine.at(settings)) as embedded,
    ):

        def make(
            documents: Sequence[Document], mapping: Mapping[str, Any] = MAPPING, name: str = "both"
        ) -> EnginePair:
            spec = spec_of(documents, copy.deepcopy(dict(mapping)))
            server.build(name, spec, documents)
            embedded.build(name, spec, documents)
            return EnginePair(embedded.open(name), server.open(name), server.info().version)

        yield make


@pytest.fixture(scope="module")
def compared_engines(elasticsearch_url: str) -> Iterator[ComparedEngines]:
    with queries.engines(Server(elasticsearch_url)) as engines:
        yield engines


@pytest.fixture(params=["compiled", "numpy"])
def either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with the compiled functions, if searchapp was built with a compiler, and with NumPy."""
    if request.param == "compiled":
        yield
    else:
        with native.without():
            yield
