from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.files import digest_json
from searchapp.model import Document
from tests.server.faults import FaultProxy
from tests.server.rest import Server

MAPPING: dict[str, Any] = {
    "settings": {"analysis": {"analyzer": {"words": {"tokenizer": "standard", "filter": ["lowercase"]}}}},
    "mappings": {
        "dynamic": "strict",
        "properties": {"id": {"type": "keyword"}, "text": {"type": "text", "analyzer": "words"}},
    },
}

GROUPS = [
    Document("1", "Every subgroup of an abelian group is normal."),
    Document("2", "Every cyclic group is abelian."),
    Document("10", "The kernel of a homomorphism is a normal subgroup."),
    Document("3", "A field is a commutative ring."),
]


def spec_of(
    documents: Iterable[Document], mapping: Mapping[str, Any] = MAPPING, shards: int = 1
) -> IndexSpec:
    """An `IndexSpec` whose digests change with documents and mapping."""
    sources = [document.source() for document in documents]
    return IndexSpec(mapping, len(sources), digest_json([sources, mapping]), digest_json(sources), shards)


def match(words: str, size: int = 10) -> dict[str, Any]:
    """A search body that ranks as searchapp's templates do."""
    return {
        "size": size,
        "_source": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": words}},
    }


def deleted(url: str, index: str) -> int:
    """The deleted documents in every copy of an index, asked for past the code under test."""
    answer = Server(url).request("GET", f"/{index}/_stats/docs").json()
    count: int = answer["_all"]["total"]["docs"]["deleted"]
    return count


def spoil(url: str, alias: str) -> None:
    """Write a document of an index a second time, as a bulk request did whose answer was lost."""
    server = Server(url)
    (version,) = server.request("GET", f"/_alias/{alias}").json()
    server.request("PUT", f"/{version}/_settings", {"index.blocks.write": None})
    hit = server.request("GET", f"/{version}/_search?size=1").json()["hits"]["hits"][0]
    server.request("PUT", f"/{version}/_doc/{hit['_id']}?refresh=true", hit["_source"])
    assert deleted(url, version) >= 1  # on every copy


@pytest.fixture(scope="module")
def quick_collection() -> None:
    """Lets the garbage collector pass over what tests before have left, see `pytest_collection_finish`.

    For files whose every test has garbage collected: a process that has read real data takes half a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def settings_for(index_prefix: str, tmp_path: Path) -> Callable[..., Settings]:
    """Makes settings for a server, with the test's own prefix."""

    def make(url: str, **values: Any) -> Settings:
        return Settings(home=tmp_path, url=url, index_prefix=index_prefix, **values)

    return make


@pytest.fixture
def engine(elasticsearch_url: str, settings_for: Callable[..., Settings]) -> Iterator[ElasticsearchEngine]:
    with closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as engine:
        yield engine


@pytest.fixture
def behind_proxy(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> Iterator[ElasticsearchEngine]:
    """An engine that reaches the server through the proxy."""
    with closing(ElasticsearchEngine.connect(settings_for(fault_proxy.url))) as engine:
        yield engine
