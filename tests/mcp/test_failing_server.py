"""The tools on an Elasticsearch that is slow or goes away."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from searchapp.config.resolution import resolve
from searchapp.mcp import tool_server
from searchapp.mcp.tool_server import ToolServer
from tests.mcp.test_tools import call, failure, with_client
from tests.server.faults import FaultProxy

pytestmark = [pytest.mark.elasticsearch, pytest.mark.parametrize("engine", ["elasticsearch"], indirect=True)]

SEARCH = {"task": "kitchen", "words": "lentils"}


@pytest.fixture
def server(home: Path, fault_proxy: FaultProxy, tmp_path: Path) -> Iterator[ToolServer]:
    made = ToolServer(resolve({"url": fault_proxy.url}, os.environ), tmp_path)
    yield made
    assert made.close()


def test_a_server_that_goes_away_is_reported_until_it_is_back(
    server: ToolServer, fault_proxy: FaultProxy
) -> None:
    assert call(server, "search", **SEARCH)["total"] == 3
    assert call(server, "ranking", run="kitchen", topic="t1")["total"] == 3
    fault_proxy.refuse_from(1, path="")
    for tool, arguments in (
        ("search", SEARCH),
        ("search", {"task": "nlps-sample", "words": "ring"}),
        ("document", {"task": "kitchen", "document": "inject"}),
        ("explain", {"task": "kitchen", "document": "inject", "words": "lentils"}),
        ("explain", {"task": "kitchen", "document": "inject", "topic": "t1"}),
    ):
        assert f"no Elasticsearch answers at {fault_proxy.url}" in failure(server, tool, **arguments), tool
    listed = call(server, "tasks")
    assert listed["engine"] is None and f"no Elasticsearch answers at {fault_proxy.url}" in listed["problem"]
    assert call(server, "evaluate", run="kitchen")["official"]  # needs no documents
    assert call(server, "topics", run="kitchen")["topics"][0]["value"]
    fault_proxy.heal()
    assert call(server, "search", **SEARCH)["total"] == 3
    assert call(server, "tasks")["problem"] == ""


def test_an_own_task_is_not_called_unknown_while_the_server_is_away(
    server: ToolServer, fault_proxy: FaultProxy
) -> None:
    fault_proxy.refuse_from(1, path="")
    message = failure(server, "search", **SEARCH)
    assert message.startswith(f"your own tasks are unknown: no Elasticsearch answers at {fault_proxy.url}")
    fault_proxy.heal()
    assert call(server, "search", **SEARCH)["total"] == 3
    assert "(did you mean kitchen?)" in failure(server, "search", task="kitchn", words="x")


def test_a_slow_server_is_reported_within_the_time_limit(
    server: ToolServer, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_server, "TIMEOUT_SECONDS", 0.5)
    assert call(server, "search", **SEARCH)["total"] == 3
    fault_proxy.delay(60.0, None, path="_m?search$")
    started = time.monotonic()
    assert f"{fault_proxy.url} did not answer" in failure(server, "search", **SEARCH)
    assert time.monotonic() - started < 10
    fault_proxy.heal()
    assert call(server, "search", **SEARCH)["total"] == 3


def test_a_cancelled_search_of_a_slow_server_delays_the_next_request_by_the_time_limit_at_most(
    server: ToolServer, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_server, "TIMEOUT_SECONDS", 2.0)
    assert call(server, "search", **SEARCH)["total"] == 3

    async def use(client: Client) -> None:
        before = len(fault_proxy.requests)
        fault_proxy.delay(60.0, path="_m?search$")
        cancelled = asyncio.create_task(client.call_tool("search", {"task": "kitchen", "words": "beans"}))
        while fault_proxy.open_rules:
            await asyncio.sleep(0.01)
        cancelled.cancel()
        found = await client.call_tool("search", SEARCH)
        assert (found.structured_content or {})["total"] == 3
        assert len(fault_proxy.requests) > before

    started = time.monotonic()
    with_client(server, use, "legacy")
    assert time.monotonic() - started < 10
