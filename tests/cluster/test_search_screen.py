"""The search screen on a cluster that loses a node, and then the node of its requests."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.kit import background
from searchapp.tui.search.screen import SearchScreen
from tests.cluster.conftest import PREFIX
from tests.server.cluster import Cluster
from tests.tui.conftest import drive, text_of, until
from tests.tui.search.conftest import answered, ids
from tests.tui.search.on_server import OnServer, shows, typed

pytestmark = pytest.mark.timeout(600)


def test_the_screen_works_without_a_lost_node(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "REQUEST_SECONDS", 3.0)
    url = cluster.nodes[0].url
    index = f"{PREFIX}-nlps"

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await answered(pilot, screen)
        holder = cluster.holder(index)
        lost = holder if holder is not cluster.nodes[0] else cluster.holder(index, primary=False)
        lost.kill()
        for character in "prime number":
            await typed(pilot, screen, character)
            await asyncio.sleep(0.1)
        await shows(pilot, screen, "prime number")
        assert ids(screen) == expected["prime number"]
        cluster.nodes[0].pause()  # the node of the requests hangs
        await typed(pilot, screen, "s")
        await until(pilot, lambda: "no answer for" in text_of(app) or "did not answer" in text_of(app))
        assert "the hits below are from an earlier query" in text_of(app)
        assert ids(screen) == expected["prime number"]
        await typed(pilot, screen, " and")
        await until(pilot, lambda: "did not answer" in text_of(app))
        cluster.nodes[0].resume()
        await shows(pilot, screen, "prime numbers and")
        assert ids(screen) == expected["prime numbers and"]
        assert "earlier query" not in text_of(app).lower()

    with closing(OnServer(tmp_path, url, url, PREFIX)) as on_server:
        cluster.await_complete()
        expected = {text: on_server.expected(text) for text in ("prime number", "prime numbers and")}
        app = on_server.app()
        drive(app, steps)
