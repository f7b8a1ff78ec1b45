"""Faults by chance while an index on Elasticsearch is built, and what must hold after each of them.

A fault is one of these, and counts once it was hit: an answer that is lost, broken off, shortened or doubled, a request
that comes too late for its sender; a builder that dies with a request under way, which reaches the server while the
next builder works, or later. What happens in between is by chance too: a removal, other documents, nothing. Every
document of the version that serves is then compared, past the code under test.
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
"""Of a builder; one that dies has none."""

TIMEOUT_SECONDS, LATE_SECONDS = 1.5, 2.0
"""How long a request may take where one of them comes too late."""

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
"""The requests that change something, by method and path."""

LIVE: Mapping[str, Callable[..., None]] = {
    "dropped": lambda proxy, **fitting: proxy.lose(**fitting),
    "dropped behind a gateway": lambda proxy, **fitting: proxy.lose(status=504, **fitting),
    "broken off": lambda proxy, **fitting: proxy.cut(**fitting),
    "shortened": lambda proxy, **fitting: proxy.shorten(**fitting),
    "doubled": lambda proxy, **fitting: proxy.double(**fitting),
    "delayed": lambda proxy, **fitting: proxy.delay(LATE_SECONDS, **fitting),
}
"""What happens to a request of a builder that lives on."""


def collections(dice: random.Random) -> list[list[Document]]:
    """Some collections that share ids and differ in texts and numbers."""
    return [
        [Document(str(number), f"text {dice.randrange(9)} of {number}") for number in range(size)]
        for size in dice.sample(range(25, 80), 3)
    ]


@dataclass
class Campaign:
    """Faults one after the other in the index `groups` of a prefix.

    `target` is the address of the node that builders reach through proxies, and that is asked past the code under test.
    `counts` has how often each kind of fault was hit.
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
        self.known: dict[str, list[Document]] = {}

    def fault(self) -> None:
        """Make one fault that is hit, and look at what serves."""
        before, first, second = collections(self.dice)
        for documents in (before, first, second):
            self.known[self.spec(documents).digest] = documents
        if self.dice.random() < 0.3:  # else what the fault before left serves
            self.try_remove(self.target)
        self.disturb(before, first, self.dice.choice([first, first, second]))
        self.require_sound()
        self.build(self.target, second)
        self.require_sound(second)
        assert list(self.indexes().values()) == [[self.alias]], self.indexes()

    def disturb(self, before: list[Document], documents: list[Document], after: list[Document]) -> None:
        """Make a fault, in turn one that a builder survives and one that it does not."""
        kind = self.dice.choice(list(KINDS))
        if sum(self.counts.values()) % 2:
            self.live(kind, before, documents)
        else:
            self.late(kind, before, documents, after)

    def live(self, kind: str, before: list[Document], documents: list[Document]) -> None:
        """Disturb a request of a builder that lives on; it builds, or ends with a sentence."""
        what = self.dice.choice(list(LIVE))
        method, path = KINDS[kind]
        with FaultProxy(self.target) as proxy:
            LIVE[what](proxy, method=method, path=path)
            timeout = TIMEOUT_SECONDS if what == "delayed" else 60.0
            built = self.try_build(proxy.url, documents, timeout=timeout)
            if proxy.open_rules:  # as a deletion, where there is nothing to delete
                self.build(self.target, before)
                built = self.try_build(proxy.url, documents, timeout=timeout)
            assert not proxy.open_rules, f"no {kind} was {what}"
            if built:
                self.require_sound(documents)
        self.count(f"{kind} {what}")

    def late(
        self, kind: str, before: list[Document], documents: list[Document], after: list[Document]
    ) -> None:
        """Let a builder die with a request under way, which arrives while the next one works, or later."""
        method, path = KINDS[kind]
        number = self.dice.randint(1, 3) if kind in ("bulk", "swap", "lock") else 1
        with FaultProxy(self.target) as dying, FaultProxy(self.target) as meeting:
            removes = kind == "delete" and self.dice.random() < 0.5
            if kind == "delete":
                self.build(self.target, before)
            for which in (number, 1):
                if dying.held:
                    break
                dying.hold(which, method=method, path=path)
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
            releasing(self.dice.randint(1, 40), dying, meeting)
            built = self.try_build(meeting.url, after)
            dying.release()
            if built and not removes:  # a removal that comes late removes what it was asked to remove
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
        """Build, and tell whether that succeeded; a failure is one sentence. The documents may come from a source."""
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
        """The versions with their aliases."""
        result = self.server.request("GET", f"/{self.alias}-*/_alias").json()
        return {name: sorted(described["aliases"]) for name, described in result.items()}

    def require_sound(self, expected: Sequence[Document] | None = None) -> None:
        """Make sure that what serves holds the documents that it says it was built from, each once, and is closed.

        With `expected` it serves, and holds these.
        """
        serving = [index for index, aliases in self.indexes().items() if self.alias in aliases]
        assert len(serving) <= 1, serving
        if expected is not None:
            assert serving, f"nothing serves: {self.indexes()}"
        for index in serving:
            described = self.server.request("GET", f"/{index}").json()[index]
            documents = self.known[described["mappings"]["_meta"]["searchapp"]["digest"]]
            assert expected is None or documents == expected, f"{index} is of other documents"
            hits = self.server.request("GET", f"/{index}/_search?size=1000").json()["hits"]["hits"]
            assert {hit["_id"]: hit["_source"] for hit in hits} == {
                document.id: document.source() for document in documents
            }
            assert len(hits) == len(documents)
            stats = self.server.request("GET", f"/{index}/_stats/docs").json()
            assert stats["_all"]["total"]["docs"]["deleted"] == 0
            settings: dict[str, Any] = described["settings"]["index"]
            assert settings["blocks"]["write"] == "true", settings
            assert settings.get("refresh_interval") != "-1", settings
            assert settings.get("auto_expand_replicas") == "0-1", settings

    def count(self, fault: str) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1


def releasing(before: int, dying: FaultProxy, meeting: FaultProxy) -> None:
    """Let what is held arrive just before the n-th request through another proxy."""

    def act(request: Request) -> Response | None:
        dying.release()
        return meeting._forward(request)

    meeting._add(act, None, "", 1, skip=before - 1)


@contextmanager
def impatient() -> Iterator[None]:
    """Builders that wait for milliseconds, and send small batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
        patch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)
        patch.setattr(connection, "TIDYING_SECONDS", 1.0)
        patch.setattr(indexing, "BATCH_DOCUMENTS", 10)
        yield


def run_batch(batch: str, campaign: Campaign, faults: int) -> None:
    """Make some faults.

    The file that SEARCHAPP_TEST_CAMPAIGN names has the batches that were done before; a session that was interrupted
    goes on behind them.
    """
    named = os.environ.get("SEARCHAPP_TEST_CAMPAIGN")
    done = Path(named) if named else None
    if done is not None and done.exists() and batch in done.read_text(encoding="utf-8").splitlines():
        pytest.skip(f"{batch} was done before: {done}")
    with impatient():
        for _ in range(faults):
            campaign.fault()
    print(f"{batch}: {faults} faults were hit, none left a wrong document: {campaign.counts}")
    if done is not None:
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{batch}\n")
