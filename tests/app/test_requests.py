"""The number of requests to a server: with a distant server each request costs its latency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.app.index import index_task
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.settings import ON_DISK, SERVER, Settings
from searchapp.engines import open_engine
from searchapp.progress import SilentProgress
from searchapp.ranking.query_language import FieldFilter
from searchapp.resources import SAMPLES
from searchapp.tasks import load
from tests.server.faults import FaultProxy

pytestmark = pytest.mark.elasticsearch


class DistantSearch:
    """The sample of a task on a server behind a proxy and on the embedded engine."""

    def __init__(
        self, name: str, proxy: FaultProxy, distant: Settings, direct: Settings, embedded: Settings
    ) -> None:
        self._opened = ExitStack()
        self.proxy = proxy
        self.task = load(name)
        self.data = SAMPLES / name
        for settings in (direct, embedded):
            with closing(open_engine(settings)) as engine:
                index_task(self.task, engine, self.task.collection(self.data), SilentProgress(), rebuild=True)
        proxy.requests.clear()
        self.searcher = self._searcher(distant)
        self.opening = len(proxy.requests)
        self.expected = self._searcher(embedded)

    def _searcher(self, settings: Settings) -> TaskSearcher:
        engine = self._opened.enter_context(closing(open_engine(settings)))
        return TaskSearcher.open(self.task, engine, SilentProgress(), settings.home, self.data)

    def requests(self, request: SearchRequest) -> int:
        """Search, check the page against the embedded engine, and return the number of requests."""
        before = len(self.proxy.requests)
        page = self.searcher.first_page(request)
        count = len(self.proxy.requests) - before
        assert page == self.expected.first_page(request)
        return count

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(params=["checkthat"])
def distant(
    request: pytest.FixtureRequest,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    tmp_path: Path,
) -> Iterator[DistantSearch]:
    direct = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix, engine=SERVER)
    embedded = Settings(home=tmp_path, engine=ON_DISK)
    proxied = replace(direct, url=fault_proxy.url)
    with closing(DistantSearch(request.param, fault_proxy, proxied, direct, embedded)) as distant:
        yield distant


def test_an_index_is_opened_with_three_requests(distant: DistantSearch) -> None:
    assert distant.opening == 3  # the server's version, the live version of the index, its completeness


@pytest.mark.parametrize(
    "request_",
    [
        SearchRequest("", size=20),
        SearchRequest("jobs", size=20),
        SearchRequest("jobs economy", size=2),
        SearchRequest("american people think of unemployment and of the economy", size=20),
        SearchRequest('"the economy" -jobs', size=20),
        SearchRequest("+jobs econ* speaker:TRUMP", size=20),
        SearchRequest("(jobs taxes) +text:(we people)", size=20),
        SearchRequest("jobs", filters=(FieldFilter("speaker", "TRUMP"),), size=20),
        SearchRequest("nobodysaysthis", size=20),
    ],
    ids=lambda request: request.text or "empty",
)
def test_a_query_takes_one_request(distant: DistantSearch, request_: SearchRequest) -> None:
    assert distant.requests(request_) == 1


def test_common_words_beside_a_prefix_take_another_request_at_most_once(distant: DistantSearch) -> None:
    """Which words are rare enough to highlight depends on the hits; the answer is cached, for twins as well."""
    request = SearchRequest("american people think econ* unemployment", size=20)
    assert distant.requests(request) == 2
    assert distant.requests(request) == 1
    distant.searcher = distant.searcher.twin()
    assert distant.requests(replace(request, text=f"{request.text} think")) == 1


@pytest.mark.parametrize("distant", ["nlps"], indirect=True)
def test_a_recipe_of_several_signals_takes_one_request_for_all_and_one_for_the_documents(
    distant: DistantSearch,
) -> None:
    recipe = "neighbours"
    distant.requests(
        SearchRequest("kernel of a homomorphism", recipe, size=200)
    )  # indexes the training topics
    assert len(distant.searcher.recipe(recipe).signals) > 1
    assert distant.requests(SearchRequest("image of a compact set", recipe, size=200)) == 2
    # A third request checks that the hits below the page are still indexed.
    assert distant.requests(SearchRequest("kernel of a ring", recipe, size=5)) == 3
