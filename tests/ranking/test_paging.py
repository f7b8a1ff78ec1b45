"""Rankings deeper than the result window of an engine, on both engines and several numbers of shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Index
from searchapp.errors import QueryRefused
from searchapp.model import Document, Hits
from searchapp.ranking import paging
from tests.engines.conftest import match, spec_of
from tests.engines.conftest import settings_for as settings_for

COUNT = 10_400
KINDS = 5


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """More documents than the result window, with few different scores: most hits are ordered by their ids."""
    return [Document(f"d{number}", "group " * (1 + number % KINDS)) for number in range(COUNT)]


@pytest.fixture(params=[None, 1, 7], ids=["embedded", "1 shard", "7 shards"])
def index(
    request: pytest.FixtureRequest, documents: list[Document], settings_for: Callable[..., Settings]
) -> Iterator[Index]:
    shards = request.param
    url = request.getfixturevalue("elasticsearch_url")
    settings = settings_for(url, engine="elasticsearch" if shards else "embedded")
    with closing(open_engine(settings)) as engine:
        engine.build("groups", spec_of(documents, shards=shards or 1), documents)
        yield engine.open("groups")


def test_a_ranking_continues_after_the_10_000th_hit(index: Index, documents: list[Document]) -> None:
    first, second = paging.hits_of(index, [match("group", 2 * COUNT), match("group", COUNT - 100)])
    assert len(first) == COUNT
    scores = dict(zip(first.document_ids, first.scores, strict=True))
    assert len(set(scores.values())) == KINDS
    assert list(first.document_ids) == sorted(scores, key=lambda id_: (-scores[id_], id_.encode()))
    assert second == Hits(first.document_ids[:-100], first.scores[:-100])


def test_pages_add_up_to_one_search(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[dict[str, Any]] = [
        match("group", 30),
        match("nothing", 30),
        match("group", 7),
        match("group", 14),
    ]
    expected = list(index.search(bodies))
    monkeypatch.setattr(paging, "WINDOW", 7)
    monkeypatch.setattr(paging, "BATCH_SIZE", 3)
    done: list[int] = []
    assert list(paging.hits_of(index, iter(bodies), done.append)) == expected
    assert done == [3, 1]


def test_an_error_names_the_rejected_query_on_each_page(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 5)
    monkeypatch.setattr(paging, "BATCH_SIZE", 2)
    broken = match("group", 20) | {"query": {"nonsense": {}}}
    with pytest.raises(QueryRefused) as caught:
        list(paging.hits_of(index, [match("group", 20), match("group", 3), match("group", 3), broken]))
    assert caught.value.place == 3
