"""How many requests a server far away is asked: one after the other, each of them takes its delay."""

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


class Far:
    """The sample of a task on a server behind a proxy, and on the embedded engine."""

    def __init__(self, name: str, proxy: FaultProxy, far: Settings, direct: Settings, here: Settings) -> None:
        self._opened = ExitStack()
        self.proxy = proxy
        self.task = load(name)
        self.data = SAMPLES / name
        for settings in (direct, here):
            with closing(open_engine(settings)) as engine:
                index_task(self.task, engine, self.task.collection(self.data), SilentProgress(), rebuild=True)
        proxy.requests.clear()
        self.searcher = self._searcher(far)
        self.opening = len(proxy.requests)
        self.expected = self._searcher(here)

    def _searcher(self, settings: Settings) -> TaskSearcher:
        engine = self._opened.enter_context(closing(open_engine(settings)))
        return TaskSearcher.open(self.task, engine, SilentProgress(), settings.home, self.data)

    def requests(self, request: SearchRequest) -> int:
        """How many requests a search takes, whose hits and marks are those of the embedded engine."""
        before = len(self.proxy.requests)
        page = self.searcher.first_page(request)
        count = len(self.proxy.requests) - before
        assert page == self.expected.first_page(request)
        return count

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(params=["checkthat"])
def far(
    request: pytest.FixtureRequest,
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    tmp_path: Path,
) -> Iterator[Far]:
    direct = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix, engine=SERVER)
    here = Settings(home=tmp_path, engine=ON_DISK)
    through = replace(direct, url=fault_proxy.url)
    with closing(Far(request.param, fault_proxy, through, direct, here)) as far:
        yield far


def test_an_index_is_opened_by_asking_who_answers_which_version_serves_and_whether_it_is_whole(
    far: Far,
) -> None:
    assert far.opening == 3


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
    ids=lambda one: one.text or "nothing",
)
def test_what_is_typed_takes_one_request(far: Far, request_: SearchRequest) -> None:
    assert far.requests(request_) == 1


def test_common_words_beside_a_prefix_take_another_request_at_most_once(far: Far) -> None:
    """What weighs enough to be marked is known when the hits are there; it is known from then on, to twins as well."""
    asked = SearchRequest("american people think econ* unemployment", size=20)
    assert far.requests(asked) == 2
    assert far.requests(asked) == 1
    far.searcher = far.searcher.twin()
    assert far.requests(replace(asked, text=f"{asked.text} think")) == 1


@pytest.mark.parametrize("far", ["nlps"], indirect=True)
def test_a_recipe_of_several_signals_takes_one_request_for_all_and_one_for_the_documents(far: Far) -> None:
    recipe = "neighbours"
    far.requests(SearchRequest("kernel of a homomorphism", recipe, size=200))  # prepares the solved topics
    assert len(far.searcher.recipe(recipe).signals) > 1
    assert far.requests(SearchRequest("image of a compact set", recipe, size=200)) == 2
    # Which of the hits that are not shown yet are still indexed takes a third.
    assert far.requests(SearchRequest("kernel of a ring", recipe, size=5)) == 3
