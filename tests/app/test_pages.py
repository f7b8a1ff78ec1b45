"""The documents that annotators read come from one version of an index at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.app.index import index_task, open_index
from searchapp.app.inspection.pages import Pages
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import Replaced
from searchapp.model import Topic
from searchapp.progress import SilentProgress
from searchapp.resources import SAMPLES
from searchapp.tasks import load

SAMPLE = SAMPLES / "nlps"


@pytest.fixture
def server(elasticsearch_url: str, index_prefix: str, tmp_path: Path) -> Iterator[ElasticsearchEngine]:
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        yield engine


@pytest.mark.parametrize("follows", [False, True])
def test_pages_never_mix_an_index_with_the_one_built_after_it(
    server: ElasticsearchEngine, tmp_path: Path, *, follows: bool
) -> None:
    task = load("nlps")
    data = shutil.copytree(SAMPLE, tmp_path / "data")
    collection = task.collection(data)
    index_task(task, server, collection, SilentProgress())
    index = open_index(task, server)
    topic = Topic("t", "every group")
    pages = Pages(
        task,
        index,
        {topic.id: topic},
        newer=(lambda: open_index(task, server)) if follows else None,
    )
    first, second = sorted(
        document for (hits,) in [list(index.search([{}]))] for document in hits.document_ids
    )[:2]
    before = pages.page("t", first)
    assert not before.is_missing
    index_task(task, server, collection, SilentProgress(), rebuild=True)
    if not follows:
        with pytest.raises(Replaced, match=index.info.version):
            pages.page("t", second)
        return
    assert not pages.page("t", second).is_missing
    newest = server.open("nlps").info.version
    assert pages.news == [f"the index was rebuilt: documents now come from {newest}"]
    assert not pages.is_fetched(first), "documents of the old version are dropped"
    assert pages.page("t", first) == before
