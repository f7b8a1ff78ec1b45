"""The search screen while Elasticsearch is slow, unreachable, busy, changed or refuses credentials."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.kit import background
from searchapp.tui.search import screen as screen_module
from searchapp.tui.search.hits import Listing
from searchapp.tui.search.requests import RankingLoader
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL
from tests.server.faults import FaultProxy
from tests.server.rest import Server
from tests.terminal import Terminal
from tests.tui.conftest import drive, screen_text, wait_until
from tests.tui.search.conftest import ids, press_and_wait, press_random_keys, wait_until_answered
from tests.tui.search.on_server import ServerSearchHarness, type_text, wait_for_ranking

P = Pilot[None]

HANGS_SECONDS = 30.0
EARLIER_HITS = "the hits below are from an earlier query"


@pytest.fixture
def server_harness(
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ServerSearchHarness]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    server_harness = ServerSearchHarness(tmp_path, fault_proxy.url, elasticsearch_url, index_prefix)
    yield server_harness
    server_harness.close()


def test_the_next_query_does_not_wait_for_a_hanging_request(
    server_harness: ServerSearchHarness, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        fault_proxy.delay(HANGS_SECONDS)
        start = time.monotonic()
        await type_text(pilot, screen, "s")
        await wait_until(pilot, lambda: "no answer for" in screen_text(pilot))
        assert EARLIER_HITS in screen_text(pilot) and "Earlier query: " in screen_text(pilot)
        assert ids(screen) == before
        await type_text(pilot, screen, " number")
        await wait_for_ranking(pilot, screen, "primes number")
        assert time.monotonic() - start < HANGS_SECONDS / 2
        assert ids(screen) == server_harness.expected("primes number")
        assert EARLIER_HITS not in screen_text(pilot) and "Earlier query" not in screen_text(pilot)

    app = server_harness.app()
    start = time.monotonic()
    drive(app, steps)
    assert time.monotonic() - start < HANGS_SECONDS  # leaving does not wait either


def test_a_lost_request_is_repeated(
    server_harness: ServerSearchHarness, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "REQUEST_SECONDS", 0.7)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        fault_proxy.delay(HANGS_SECONDS, times=None)
        await type_text(pilot, screen, "prime")
        await wait_until(pilot, lambda: "did not answer in 1 s" in screen_text(pilot))
        fault_proxy.heal()
        await wait_for_ranking(pilot, screen, "prime")
        assert ids(screen) == server_harness.expected("prime")

    drive(server_harness.app(), steps)


def test_answers_of_a_slow_server_are_shown_in_order(
    server_harness: ServerSearchHarness, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_module, "SLOW_SECONDS", 0.5)
    monkeypatch.setattr(screen_module, "LOOK_SECONDS", 0.2)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        fault_proxy.delay(0.6, times=None)
        shown: list[str] = []
        show_ranking = screen.show_ranking

        def record_ranking(loader: RankingLoader, listing: Listing, cursor: int) -> None:
            shown.append(listing.request.text)
            show_ranking(loader, listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", record_ranking)
        for text in ("prime", "prime num", "prime number"):
            await type_text(pilot, screen, text.removeprefix(screen.words.value))
            await asyncio.sleep(0.5)
        await wait_until(pilot, lambda: "no answer for" in screen_text(pilot))
        await wait_for_ranking(pilot, screen, "prime number")
        # An earlier answer never replaces a later one.
        assert shown == sorted(shown, key=len) and shown[-1] == "prime number"
        assert ids(screen) == server_harness.expected("prime number")

    drive(server_harness.app(), steps)


def test_hits_need_one_request(
    server_harness: ServerSearchHarness, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a distant server each request adds latency."""

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        show_ranking = screen.show_ranking
        requests: list[int] = []

        def record_ranking(loader: RankingLoader, listing: Listing, cursor: int) -> None:
            requests.append(len(fault_proxy.requests))
            show_ranking(loader, listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", record_ranking)
        for key in "ring":
            before = len(fault_proxy.requests)
            requests.clear()
            await press_and_wait(pilot, screen, key)
            assert requests == [before + 1]
        assert ids(screen) == server_harness.expected("ring")

    drive(server_harness.app(), steps)


def stop_server(proxy: FaultProxy) -> None:
    proxy.refuse_from(1, path="")


def make_busy(proxy: FaultProxy) -> None:
    proxy.reject(None)


def make_shards_unavailable(proxy: FaultProxy) -> None:
    proxy.unavailable(None)


def refuse_credentials(proxy: FaultProxy) -> None:
    proxy.answer(401, "security_exception", "unable to authenticate", times=None)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (stop_server, "no Elasticsearch answers at http://127"),
        (make_busy, "is too busy to"),
        (make_shards_unavailable, "could not"),
        (refuse_credentials, "does not accept the credentials"),
    ],
)
def test_a_failure_is_shown_until_the_server_recovers(
    server_harness: ServerSearchHarness,
    fault_proxy: FaultProxy,
    fault: Callable[[FaultProxy], None],
    message: str,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        fault(fault_proxy)
        await type_text(pilot, screen, " number")
        await wait_until(pilot, lambda: message in screen_text(pilot).splitlines()[0])
        assert EARLIER_HITS in screen_text(pilot) and ids(screen) == before
        fault_proxy.heal()
        start = time.monotonic()
        await wait_for_ranking(pilot, screen, "prime number")  # without a key
        assert time.monotonic() - start < 8
        assert ids(screen) == server_harness.expected("prime number")
        assert message not in screen_text(pilot) and EARLIER_HITS not in screen_text(pilot)
        fault(fault_proxy)
        await type_text(pilot, screen, "s")
        await wait_until(pilot, lambda: message in screen_text(pilot))
        fault_proxy.heal()
        await type_text(pilot, screen, " and")  # retried at once by a key
        await wait_for_ranking(pilot, screen, "prime numbers and")

    drive(server_harness.app(), steps)


def test_a_rebuilt_index_is_searched_from_then_on(server_harness: ServerSearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime", "enter", "down")
        server_harness.index()
        await press_and_wait(pilot, screen, "slash", *" number")
        assert "the index was rebuilt: hits now come from" in screen_text(pilot)
        assert f"{server_harness.settings.index_prefix}-nlps-000002" in screen_text(pilot)
        assert ids(screen) == server_harness.expected("prime number")
        server_harness.index()
        await wait_until(pilot, lambda: "nlps-000003" in screen_text(pilot))  # also without a key
        await wait_until_answered(pilot, screen)
        assert ids(screen) == server_harness.expected("prime number")
        await press_and_wait(pilot, screen, "ctrl+u", *"ring")
        assert ids(screen) == server_harness.expected("ring") and "nlps-000003" not in screen_text(pilot)

    drive(server_harness.app(), steps)


def test_a_deleted_index_is_searched_again_once_rebuilt(
    server_harness: ServerSearchHarness, elasticsearch_url: str
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"prime")
        before = ids(screen)
        Server(elasticsearch_url).delete_indices(server_harness.settings.index_prefix)
        await type_text(pilot, screen, " number")
        await wait_until(pilot, lambda: "has no index" in screen_text(pilot))
        assert EARLIER_HITS in screen_text(pilot) and ids(screen) == before
        server_harness.index()
        await wait_for_ranking(pilot, screen, "prime number")
        assert ids(screen) == server_harness.expected("prime number")
        assert EARLIER_HITS not in screen_text(pilot)

    drive(server_harness.app(), steps)


def test_random_keys_end_with_the_hits_of_the_query(server_harness: ServerSearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_random_keys(pilot, screen, 1, 500 if FULL else 60)

    drive(server_harness.app(), steps)


@pytest.mark.parametrize("leave", ["q", "SIGTERM"])
def test_leaving_does_not_wait_for_requests(
    server_harness: ServerSearchHarness, fault_proxy: FaultProxy, leave: str
) -> None:
    arguments = ("--url", fault_proxy.url, "search", "nlps")
    prefix = server_harness.settings.index_prefix
    with Terminal(*arguments, home=server_harness.home, SEARCHAPP_INDEX_PREFIX=prefix) as terminal:
        terminal.wait_for("70 documents · sorted by id", 60)
        fault_proxy.delay(HANGS_SECONDS, times=None)
        terminal.press("p")
        terminal.wait_for("no answer for")
        start = time.monotonic()
        if leave == "q":
            terminal.press("enter", "q")
        else:
            terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_end() == (0 if leave == "q" else 128 + signal.SIGTERM)
        assert time.monotonic() - start < HANGS_SECONDS / 3
