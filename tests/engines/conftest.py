from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection
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
    """Return an `IndexSpec` whose digests change with documents and mapping."""
    sources = [document.source() for document in documents]
    return IndexSpec(mapping, len(sources), digest_json([sources, mapping]), digest_json(sources), shards)


def match(words: str, size: int = 10) -> dict[str, Any]:
    """Return a search body with the order of searchapp's templates."""
    return {
        "size": size,
        "_source": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"match": {"text": words}},
    }


def deleted(url: str, index: str) -> int:
    """Return the number of deleted documents in all copies of an index, by an own request."""
    response = Server(url).request("GET", f"/{index}/_stats/docs").json()
    count: int = response["_all"]["total"]["docs"]["deleted"]
    return count


def indexes(url: str, prefix: str) -> dict[str, list[str]]:
    """Return the aliases of every index with the prefix, without the index of locks."""
    response = Server(url).request("GET", f"/{prefix}-*,-{prefix}-locks-*/_alias", timeout=30).json()
    return {name: sorted(index["aliases"]) for name, index in response.items()}


def spoil(url: str, alias: str) -> None:
    """Write a document of an index again, as a repeated bulk request does."""
    server = Server(url)
    (version,) = server.request("GET", f"/_alias/{alias}").json()
    server.request("PUT", f"/{version}/_settings", {"index.blocks.write": None})
    hit = server.request("GET", f"/{version}/_search?size=1").json()["hits"]["hits"][0]
    server.request("PUT", f"/{version}/_doc/{hit['_id']}?refresh=true", hit["_source"])
    assert deleted(url, version) >= 1  # on every copy


@pytest.fixture(scope="module")
def quick_collection() -> None:
    """Exclude the objects of earlier tests from garbage collection, see `pytest_collection_finish`.

    Files whose every test collects garbage use it: after reading real data, a collection takes half a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def settings_for(index_prefix: str, tmp_path: Path) -> Callable[..., Settings]:
    """Return a function that makes settings for a server, with the test's own prefix."""

    def make(url: str, **values: Any) -> Settings:
        return Settings(home=tmp_path, url=url, index_prefix=index_prefix, **values)

    return make


@pytest.fixture(params=["embedded", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def engine_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Return the settings of each of the two engines."""
    if request.param == "embedded":
        return Settings(home=tmp_path)
    url: str = request.getfixturevalue("elasticsearch_url")
    make: Callable[..., Settings] = request.getfixturevalue("settings_for")
    return make(url, engine="elasticsearch")


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only milliseconds before a request is repeated."""
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)


@pytest.fixture
def engine(elasticsearch_url: str, settings_for: Callable[..., Settings]) -> Iterator[ElasticsearchEngine]:
    with closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as engine:
        yield engine


@pytest.fixture
def behind_proxy(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> Iterator[ElasticsearchEngine]:
    """Connect an engine through the proxy."""
    with closing(ElasticsearchEngine.connect(settings_for(fault_proxy.url))) as engine:
        yield engine
