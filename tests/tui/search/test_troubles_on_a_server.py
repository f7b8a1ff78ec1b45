"""The search screen on an Elasticsearch that is slow, gone, busy, changed or closed to whoever asks."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.kit import background
from searchapp.tui.search import screen as freshness
from searchapp.tui.search.requests import Listing
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL
from tests.server.faults import FaultProxy
from tests.server.rest import Server
from tests.terminal import Terminal
from tests.tui.conftest import drive, text_of, until
from tests.tui.search.conftest import answered, enter, ids, random_keys
from tests.tui.search.on_server import OnServer, shows, typed

P = Pilot[None]

HANGS_SECONDS = 30.0
FROM_BEFORE = "the hits below are from an earlier query"


@pytest.fixture
def on_server(
    fault_proxy: FaultProxy,
    elasticsearch_url: str,
    index_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OnServer]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    on_server = OnServer(tmp_path, fault_proxy.url, elasticsearch_url, index_prefix)
    yield on_server
    on_server.close()


def test_what_is_typed_next_does_not_wait_for_a_request_that_hangs(
    on_server: OnServer, fault_proxy: FaultProxy
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        before = ids(screen)
        fault_proxy.delay(HANGS_SECONDS)
        begin = time.monotonic()
        await typed(pilot, screen, "s")
        await until(pilot, lambda: "no answer for" in text_of(app))
        assert FROM_BEFORE in text_of(app) and "Earlier query: " in text_of(app) and ids(screen) == before
        await typed(pilot, screen, " number")
        await shows(pilot, screen, "primes number")
        assert time.monotonic() - begin < HANGS_SECONDS / 2
        assert ids(screen) == on_server.expected("primes number")
        assert FROM_BEFORE not in text_of(app) and "Earlier query" not in text_of(app)

    app = on_server.app()
    begin = time.monotonic()
    drive(app, steps)
    assert time.monotonic() - begin < HANGS_SECONDS  # nor does leaving


def test_a_request_that_is_lost_is_made_again(
    on_server: OnServer, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "REQUEST_SECONDS", 0.7)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        fault_proxy.delay(HANGS_SECONDS, times=None)
        await typed(pilot, screen, "prime")
        await until(pilot, lambda: "did not answer in 1 s" in text_of(app))
        fault_proxy.heal()
        await shows(pilot, screen, "prime")
        assert ids(screen) == on_server.expected("prime")

    app = on_server.app()
    drive(app, steps)


def test_a_server_that_takes_its_time_with_everything_is_waited_for(
    on_server: OnServer, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "SLOW_SECONDS", 0.5)
    monkeypatch.setattr(freshness, "LOOK_SECONDS", 0.2)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        fault_proxy.delay(0.6, times=None)
        shown: list[str] = []
        taken = screen.show_ranking

        def noted(listing: Listing, cursor: int) -> None:
            shown.append(listing.request.text)
            taken(listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", noted)
        for text in ("prime", "prime num", "prime number"):
            await typed(pilot, screen, text.removeprefix(screen.words.value))
            await asyncio.sleep(0.5)
        await until(pilot, lambda: "no answer for" in text_of(app))
        await shows(pilot, screen, "prime number")
        assert shown == sorted(shown, key=len) and shown[-1] == "prime number"  # none overtakes a later one
        assert ids(screen) == on_server.expected("prime number")

    app = on_server.app()
    drive(app, steps)


def test_hits_come_after_one_request(
    on_server: OnServer, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server far away takes its time with each request."""

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        taken = screen.show_ranking
        requests: list[int] = []

        def noted(listing: Listing, cursor: int) -> None:
            requests.append(len(fault_proxy.requests))
            taken(listing, cursor)

        monkeypatch.setattr(screen, "show_ranking", noted)
        for key in "ring":
            before = len(fault_proxy.requests)
            requests.clear()
            await enter(pilot, screen, key)
            assert requests == [before + 1]
        assert ids(screen) == on_server.expected("ring")

    drive(on_server.app(), steps)


def gone(proxy: FaultProxy) -> None:
    proxy.refuse_from(1, path="")


def busy(proxy: FaultProxy) -> None:
    proxy.reject(None)


def without_shards(proxy: FaultProxy) -> None:
    proxy.unavailable(None)


def closed(proxy: FaultProxy) -> None:
    proxy.answer(401, "security_exception", "unable to authenticate", times=None)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (gone, "no Elasticsearch answers at http://127"),
        (busy, "is too busy to"),
        (without_shards, "could not"),
        (closed, "does not accept the credentials"),
    ],
)
def test_what_is_wrong_is_said_and_is_over_when_it_is_over(
    on_server: OnServer,
    fault_proxy: FaultProxy,
    fault: Callable[[FaultProxy], None],
    said: str,
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        before = ids(screen)
        fault(fault_proxy)
        await typed(pilot, screen, " number")
        await until(pilot, lambda: said in text_of(app).splitlines()[0])
        assert FROM_BEFORE in text_of(app) and ids(screen) == before
        fault_proxy.heal()
        begin = time.monotonic()
        await shows(pilot, screen, "prime number")  # by itself
        assert time.monotonic() - begin < 8
        assert ids(screen) == on_server.expected("prime number")
        assert said not in text_of(app) and FROM_BEFORE not in text_of(app)
        fault(fault_proxy)
        await typed(pilot, screen, "s")
        await until(pilot, lambda: said in text_of(app))
        fault_proxy.heal()
        await typed(pilot, screen, " and")  # at once
        await shows(pilot, screen, "prime numbers and")

    app = on_server.app()
    drive(app, steps)


def test_an_index_that_is_built_again_is_searched_from_then_on(on_server: OnServer) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime", "enter", "down")
        on_server.index()
        await enter(pilot, screen, "slash", *" number")
        assert "the index was rebuilt: hits now come from" in text_of(app)
        assert f"{on_server.settings.index_prefix}-nlps-000002" in text_of(app)
        assert ids(screen) == on_server.expected("prime number")
        on_server.index()
        await until(pilot, lambda: "nlps-000003" in text_of(app))  # also if nobody types
        await answered(pilot, screen)
        assert ids(screen) == on_server.expected("prime number")
        await enter(pilot, screen, "ctrl+u", *"ring")
        assert ids(screen) == on_server.expected("ring") and "nlps-000003" not in text_of(app)

    app = on_server.app()
    drive(app, steps)


def test_an_index_that_is_gone_is_waited_for(on_server: OnServer, elasticsearch_url: str) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"prime")
        before = ids(screen)
        Server(elasticsearch_url).delete_indices(on_server.settings.index_prefix)
        await typed(pilot, screen, " number")
        await until(pilot, lambda: "has no index" in text_of(app))
        assert FROM_BEFORE in text_of(app) and ids(screen) == before
        on_server.index()
        await shows(pilot, screen, "prime number")
        assert ids(screen) == on_server.expected("prime number")
        assert FROM_BEFORE not in text_of(app)

    app = on_server.app()
    drive(app, steps)


def test_random_keys_leave_the_ranking_of_the_text(on_server: OnServer) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await random_keys(pilot, screen, 1, 500 if FULL else 60)

    drive(on_server.app(), steps)


@pytest.mark.parametrize("leave", ["q", "SIGTERM"])
def test_leaving_waits_for_nothing(on_server: OnServer, fault_proxy: FaultProxy, leave: str) -> None:
    arguments = ("--url", fault_proxy.url, "search", "nlps")
    prefix = on_server.settings.index_prefix
    with Terminal(*arguments, home=on_server.home, SEARCHAPP_INDEX_PREFIX=prefix) as terminal:
        terminal.wait_for("70 documents · words", 60)
        fault_proxy.delay(HANGS_SECONDS, times=None)
        terminal.press("p")
        terminal.wait_for("no answer for")
        begin = time.monotonic()
        if leave == "q":
            terminal.press("enter", "q")
        else:
            terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_end() == (0 if leave == "q" else 128 + signal.SIGTERM)
        assert time.monotonic() - begin < HANGS_SECONDS / 3
