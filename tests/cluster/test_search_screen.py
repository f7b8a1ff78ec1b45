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
from tests.tui.conftest import drive, screen_text, wait_until
from tests.tui.search.conftest import ids, wait_until_answered
from tests.tui.search.on_server import ServerSearchHarness, type_text, wait_for_ranking

pytestmark = pytest.mark.timeout(600)


def test_the_screen_works_without_a_lost_node(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "REQUEST_SECONDS", 3.0)
    url = cluster.nodes[0].url
    index = f"{PREFIX}-nlps"

    async def steps(pilot: Pilot[None], screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        holder = cluster.holder(index)
        lost = holder if holder is not cluster.nodes[0] else cluster.holder(index, primary=False)
        lost.kill()
        for character in "prime number":
            await type_text(pilot, screen, character)
            await asyncio.sleep(0.1)
        await wait_for_ranking(pilot, screen, "prime number")
        assert ids(screen) == expected["prime number"]
        cluster.nodes[0].pause()  # the node of the requests hangs
        await type_text(pilot, screen, "s")
        await wait_until(
            pilot, lambda: "no answer for" in screen_text(pilot) or "did not answer" in screen_text(pilot)
        )
        assert "the hits below are from an earlier query" in screen_text(pilot)
        assert ids(screen) == expected["prime number"]
        await type_text(pilot, screen, " and")
        await wait_until(pilot, lambda: "did not answer" in screen_text(pilot))
        cluster.nodes[0].resume()
        await wait_for_ranking(pilot, screen, "prime numbers and")
        assert ids(screen) == expected["prime numbers and"]
        assert "earlier query" not in screen_text(pilot).lower()

    with closing(ServerSearchHarness(tmp_path, url, url, PREFIX)) as server_harness:
        cluster.await_complete()
        expected = {text: server_harness.expected(text) for text in ("prime number", "prime numbers and")}
        drive(server_harness.app(), steps)
