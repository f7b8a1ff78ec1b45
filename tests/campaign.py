"""Random faults during builds of an index on Elasticsearch, and checks after each of them.

Faults are lost, truncated and shortened responses, doubled and delayed requests, and a killed builder whose request
reaches the server during the next build or later. A fault counts after it occurred. Removals and other documents happen
randomly between faults. Then every document of the live version is compared by own requests.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.errors import EngineError
from searchapp.model import Document
from tests.engines.conftest import spec_of
from tests.server.faults import FaultProxy, Request, Response
from tests.server.rest import Server

PATIENCE_SECONDS = 30.0
"""Patience of a builder; a killed builder has almost none."""

TIMEOUT_SECONDS, LATE_SECONDS = 1.5, 2.0
"""Timeout of requests, and the longer delay of a delayed one."""

KINDS: Mapping[str, tuple[str | None, str]] = {
    "create": ("PUT", r"-groups-\d+-\w+$"),
    "bulk": (None, r"/_bulk$"),
    "block": ("PUT", r"/_block/write$"),
    "refresh": (None, r"/_refresh$"),
    "flush": (None, r"/_flush$"),
    "settings": ("PUT", r"/_settings$"),
    "swap": (None, r"^/_aliases$"),
    "delete": ("DELETE", ""),
    "lock": ("PUT", r"-locks/_(doc|create)/"),
}
"""Methods and paths of the requests that change something."""

REQUEST_FAULTS: Mapping[str, Callable[..., None]] = {
    "dropped": lambda proxy, **fitting: proxy.lose(**fitting),
    "dropped behind a gateway": lambda proxy, **fitting: proxy.lose(status=504, **fitting),
    "broken off": lambda proxy, **fitting: proxy.cut(**fitting),
    "shortened": lambda proxy, **fitting: proxy.shorten(**fitting),
    "doubled": lambda proxy, **fitting: proxy.double(**fitting),
    "delayed": lambda proxy, **fitting: proxy.delay(LATE_SECONDS, **fitting),
}
"""Faults of a request whose builder continues."""


def collections(dice: random.Random) -> list[list[Document]]:
    """Return three collections that share ids and differ in texts and sizes."""
    return [
        [Document(str(number), f"text {dice.randrange(9)} of {number}") for number in range(size)]
        for size in dice.sample(range(25, 80), 3)
    ]


@dataclass
class Campaign:
    """A sequence of faults in the index `groups` of a prefix.

    `target` is the address of the node, which builders reach through proxies and which gets the requests of checks.
    `counts` counts the faults of each kind that occurred.
    """

    settings: Settings
    target: str
    seed: int
    shards: int = 1
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.server = Server(self.target)
        self.alias = f"{self.settings.index_prefix}-groups"
        self.collections: dict[str, list[Document]] = {}

    def fault(self) -> None:
        """Cause one fault, and check the live version."""
        before, first, second = collections(self.dice)
        for documents in (before, first, second):
            self.collections[self.spec(documents).digest] = documents
        if self.dice.random() < 0.3:  # otherwise the version of the previous fault is live
            self.try_remove(self.target)
        self.disturb(before, first, self.dice.choice([first, first, second]))
        self.require_sound()
        self.build(self.target, second)
        self.require_sound(second)
        assert list(self.indexes().values()) == [[self.alias]], self.indexes()

    def disturb(self, before: list[Document], documents: list[Document], after: list[Document]) -> None:
        """Cause a fault: alternately of a request and of a builder."""
        kind = self.dice.choice(list(KINDS))
        if sum(self.counts.values()) % 2:
            self.disturb_request(kind, before, documents)
        else:
            self.delay_request_of_killed_builder(kind, before, documents, after)

    def disturb_request(self, kind: str, before: list[Document], documents: list[Document]) -> None:
        """Disturb a request of a builder, which succeeds or ends with an error message."""
        fault = self.dice.choice(list(REQUEST_FAULTS))
        method, path = KINDS[kind]
        with FaultProxy(self.target) as proxy:
            REQUEST_FAULTS[fault](proxy, method=method, path=path)
            timeout = TIMEOUT_SECONDS if fault == "delayed" else 60.0
            built = self.try_build(proxy.url, documents, timeout=timeout)
            if proxy.open_rules:  # such as a deletion without an index to delete
                self.build(self.target, before)
                built = self.try_build(proxy.url, documents, timeout=timeout)
            assert not proxy.open_rules, f"no {kind} was {fault}"
            if built:
                self.require_sound(documents)
        self.count(f"{kind} {fault}")

    def delay_request_of_killed_builder(
        self, kind: str, before: list[Document], documents: list[Document], after: list[Document]
    ) -> None:
        """Kill a builder with a held request, which arrives during the next build or later."""
        method, path = KINDS[kind]
        number = self.dice.randint(1, 3) if kind in ("bulk", "swap", "lock") else 1
        with FaultProxy(self.target) as dying, FaultProxy(self.target) as meeting:
            removes = kind == "delete" and self.dice.random() < 0.5
            if kind == "delete":
                self.build(self.target, before)
            for position in (number, 1):
                if dying.held:
                    break
                dying.hold(position, method=method, path=path)
                if removes:
                    self.try_remove(dying.url)
                else:
                    self.try_build(dying.url, documents, patience=0.2)
                dying.heal()
            assert dying.held, f"no {kind} was held"
            between = self.dice.choice(["", "", "removed", "arrives at once"])
            if between == "removed":
                self.try_remove(self.target)
            if between == "arrives at once":
                dying.release()
                self.require_sound()
            release_before(self.dice.randint(1, 40), dying, meeting)
            built = self.try_build(meeting.url, after)
            dying.release()
            if built and not removes:  # a late removal can remove the new version
                self.require_sound(after)
        self.count(f"{kind} late")

    def build(self, url: str, documents: list[Document]) -> None:
        with closing(self.engine(url)) as engine:
            engine.build("groups", self.spec(documents), documents)

    def try_build(
        self,
        url: str,
        documents: list[Document],
        patience: float = PATIENCE_SECONDS,
        timeout: float = 60.0,
        source: Iterable[Document] | None = None,
    ) -> bool:
        """Build the documents, optionally read from a source, and return whether the build succeeded."""
        try:
            with closing(self.engine(url, patience, timeout)) as engine:
                engine.build("groups", self.spec(documents), documents if source is None else source)
        except EngineError as error:
            assert "\n" not in str(error)
            return False
        return True

    def try_remove(self, url: str) -> None:
        with suppress(EngineError), closing(self.engine(url, 0.2)) as engine:
            engine.remove("groups")

    def spec(self, documents: list[Document]) -> IndexSpec:
        return spec_of(documents, shards=self.shards)

    def engine(
        self, url: str, patience: float = PATIENCE_SECONDS, timeout: float = 60.0
    ) -> ElasticsearchEngine:
        settings = Settings(home=self.settings.home, url=url, index_prefix=self.settings.index_prefix)
        opened = Connection.open(settings, timeout=timeout)
        opened.own_patience = patience
        return ElasticsearchEngine(opened, settings.index_prefix)

    def indexes(self) -> dict[str, list[str]]:
        """Return the aliases of each version."""
        response = self.server.request("GET", f"/{self.alias}-*/_alias").json()
        return {name: sorted(index["aliases"]) for name, index in response.items()}

    def require_sound(self, expected: Sequence[Document] | None = None) -> None:
        """Check that the live version has each document of its collection once, and accepts no writes.

        With `expected`, there must be a live version with these documents.
        """
        live = [index for index, aliases in self.indexes().items() if self.alias in aliases]
        assert len(live) <= 1, live
        if expected is not None:
            assert live, f"no version is live: {self.indexes()}"
        for index in live:
            index_response = self.server.request("GET", f"/{index}").json()[index]
            documents = self.collections[index_response["mappings"]["_meta"]["searchapp"]["digest"]]
            assert expected is None or documents == expected, f"{index} has other documents"
            hits = self.server.request("GET", f"/{index}/_search?size=1000").json()["hits"]["hits"]
            assert {hit["_id"]: hit["_source"] for hit in hits} == {
                document.id: document.source() for document in documents
            }
            assert len(hits) == len(documents)
            stats = self.server.request("GET", f"/{index}/_stats/docs").json()
            assert stats["_all"]["total"]["docs"]["deleted"] == 0
            settings: dict[str, Any] = index_response["settings"]["index"]
            assert settings["blocks"]["write"] == "true", settings
            assert settings.get("refresh_interval") != "-1", settings
            assert settings.get("auto_expand_replicas") == "0-1", settings

    def count(self, fault: str) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1


def release_before(number: int, dying: FaultProxy, meeting: FaultProxy) -> None:
    """Release the held request just before the n-th request through another proxy."""

    def release(request: Request) -> Response | None:
        dying.release()
        return meeting._forward(request)

    meeting._add(release, None, "", 1, skip=number - 1)


@contextmanager
def short_waits() -> Iterator[None]:
    """Make builders wait for milliseconds and send small batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
        patch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)
        patch.setattr(connection, "TIDYING_SECONDS", 1.0)
        patch.setattr(indexing, "BATCH_DOCUMENTS", 10)
        yield


def run_batch(batch: str, campaign: Campaign, faults: int) -> None:
    """Cause the faults of a batch.

    The file in SEARCHAPP_TEST_CAMPAIGN lists the completed batches, so that an interrupted session can be resumed.
    """
    path = os.environ.get("SEARCHAPP_TEST_CAMPAIGN")
    completed = Path(path) if path else None
    batches = completed.read_text(encoding="utf-8").splitlines() if completed and completed.exists() else []
    if batch in batches:
        pytest.skip(f"{batch} was completed before: {completed}")
    with short_waits():
        for _ in range(faults):
            campaign.fault()
    print(f"{batch}: {faults} faults left no wrong document: {campaign.counts}")
    if completed is not None:
        with completed.open("a", encoding="utf-8") as file:
            file.write(f"{batch}\n")
