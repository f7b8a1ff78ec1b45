"""Judgments of a team: log files, and an index that they share on a real cluster."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import judgments_address, open_judgments
from searchapp.engines.elasticsearch import judgments as module
from searchapp.engines.elasticsearch.judgments import JudgmentIndex
from searchapp.errors import DataError, EngineRefused, EngineUnreachable, UsageError
from searchapp.judging import team as shared
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Channel, Detail, Event, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.team import EventIndex, Exchanged, IndexState, Synchronizer, synchronize
from tests.profile import FULL
from tests.programs import Program
from tests.server.faults import FaultProxy
from tests.server.node import Node
from tests.server.rest import Server

ANN = Author("ann")

WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from searchapp.engines import open_judgments
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog, NotSaved
from searchapp.judging.team import synchronize
from searchapp.config.settings import Settings
home, name, count, url, prefix = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
settings = Settings(home=home, engine="elasticsearch", url=url, index_prefix=prefix)
with closing(open_judgments(settings)) as index, JudgmentLog(settings.judgments) as log:
    for number in range(count):
        event = Author(name).event("nlps", "t", f"d{number}", Action.grade, grade=number % 4)
        log.append([event])
        print(event.id, flush=True)
        if number % 3 == 0:
            synchronize(log, index)
    synchronize(log, index)
"""


def event(document: str = "d", grade: int = 1, author: Author = ANN) -> Event:
    return author.event("nlps", "t", document, Action.grade, grade=grade)


def events_of(log: JudgmentLog) -> list[Event]:
    return [entry for _, entry in log.events()]


class Team:
    """Annotators with a log each, on the same cluster."""

    def __init__(self, folder: Path, url: str, prefix: str) -> None:
        self.folder = folder
        self.url = url
        self.prefix = prefix
        self.server = Server(url)

    def settings(self, name: str, url: str | None = None) -> Settings:
        return Settings(
            home=self.folder / name, engine="elasticsearch", url=url or self.url, index_prefix=self.prefix
        )

    def log(self, name: str) -> JudgmentLog:
        return JudgmentLog(self.settings(name).judgments)

    def exchange(self, name: str, url: str | None = None) -> Exchanged:
        """Do what `judgments sync` does, with fewer attempts."""
        with closing(self.connect(name, url)) as index, self.log(name) as log:
            return synchronize(log, index)

    def connect(self, name: str, url: str | None = None) -> EventIndex:
        return open_judgments(self.settings(name, url), attempts=2, timeout=10)

    def events(self, name: str) -> list[Event]:
        with self.log(name) as log:
            return events_of(log)

    def waiting(self, name: str) -> int:
        with self.log(name) as log:
            return log.waiting(judgments_address(self.settings(name)))

    def stored(self) -> list[str]:
        """Return the ids in the index, by own requests."""
        self.server.request("POST", f"/{self.prefix}-judgments/_refresh")
        response = self.server.request("GET", f"/{self.prefix}-judgments/_search?size=10000").json()
        return sorted(hit["_id"] for hit in response["hits"]["hits"])

    def start(self, name: str, count: int) -> Program:
        return Program(WRITER, self.folder / name, name, count, self.url, self.prefix)


@pytest.fixture
def team(tmp_path: Path, elasticsearch_url: str, index_prefix: str) -> Team:
    return Team(tmp_path, elasticsearch_url, index_prefix)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "EVENTS_AT_ONCE", 3)


def ids(events: list[Event]) -> list[str]:
    return sorted(entry.id for entry in events)


def test_events_reach_other_annotators_unchanged(team: Team, small_batches: None) -> None:
    model = Author("bot", Kind.model, Channel.plain)
    events = [
        event("é 𝔸"),
        ANN.event(
            "nlps", "t", "d", Action.note, text='a "note"\nof two lines' + "x" * 40_000, run="r", rank=3
        ),
        ANN.event("nlps", "t", "d", Action.retract, refers="x"),
        model.event("nlps", "t", "d", Action.cant_tell, text="\x00\t\u2028"),
        ANN.event("checkthat", "t" * 9000, "d", Action.adjudicate, grade=2),
        replace(event(), id="long" * 200, time="20010203 040506+0130", channel=Channel.imported),
        *(event(f"d{number}") for number in range(10)),
    ]
    with team.log("ann") as log:
        log.append(events)
    assert team.exchange("ann") == Exchanged(sent=16, fetched=0)
    assert team.exchange("ben") == Exchanged(sent=0, fetched=16)
    assert team.events("ben") == events
    assert [team.exchange(name) for name in ("ann", "ben")] == [Exchanged(), Exchanged()]
    assert len(team.stored()) == 16


def details_of(team: Team, name: str) -> list[Detail]:
    with team.log(name) as log:
        return sorted(log.details(), key=lambda detail: detail.id)


def test_details_reach_other_annotators_unchanged(team: Team, small_batches: None) -> None:
    events = [event(f"d{number}") for number in range(7)]
    values = {"digest": "é\x00𝔸", "tokens": [1, 2.5, None], "nested": {"a.b": {}}, "long": "x" * 40_000}
    details = sorted((Detail(each.id, "model", values) for each in events), key=lambda detail: detail.id)
    with team.log("ann") as log:
        log.append(events, details)
    assert team.exchange("ann") == Exchanged(sent=7)
    assert team.exchange("ben") == Exchanged(fetched=7)
    assert details_of(team, "ben") == details
    other = Detail(events[0].id, "guidelines", {"digest": "0"})
    with team.log("ben") as log:
        log.append([], [other])
    assert [team.exchange(name) for name in ("ben", "ann", "ben")] == [Exchanged()] * 3
    assert details_of(team, "ann") == details_of(team, "ben") == sorted([*details, other], key=lambda d: d.id)


def test_details_that_differ_are_reported(team: Team) -> None:
    common = event()
    for name in ("ann", "ben"):
        with team.log(name) as log:
            log.append([common], [Detail(common.id, "guidelines", {"digest": name})])
    team.exchange("ann")
    with pytest.raises(DataError, match=f"different judgments with the id guidelines/{common.id}"):
        team.exchange("ben")


def test_an_index_of_an_earlier_version_gets_an_index_of_details_when_it_is_needed(team: Team) -> None:
    with team.log("ann") as log:
        log.append([event("a")])
    team.exchange("ann")
    details = f"/{team.prefix}-judgments-details"
    name = f"{details}-000001"
    assert team.server.request("DELETE", name).status == 200
    assert team.exchange("ann") == Exchanged()
    assert team.server.request("HEAD", details).status == 404
    with team.log("ann") as log:
        second = event("b")
        log.append([second], [Detail(second.id, "guidelines", {"digest": "0"})])
    assert team.exchange("ann") == Exchanged(sent=1)
    assert team.server.request("HEAD", details).status == 200
    team.exchange("ben")
    assert details_of(team, "ben") == details_of(team, "ann") != []


def test_two_annotators_exchange_their_events(team: Team) -> None:
    for name in ("ann", "ben"):
        with team.log(name) as log:
            log.append([event(author=Author(name))])
    team.exchange("ann")
    assert team.exchange("ben") == Exchanged(sent=1, fetched=1)
    assert team.waiting("ann") == 0
    assert team.exchange("ann") == Exchanged(sent=0, fetched=1)
    assert ids(team.events("ann")) == ids(team.events("ben")) == team.stored()


def test_nothing_is_exchanged_again_by_another_address(team: Team, fault_proxy: FaultProxy) -> None:
    with team.log("ann") as log:
        log.append([event(f"d{number}") for number in range(5)])
    assert team.exchange("ann") == Exchanged(sent=5)
    for url in (f"{team.url},{fault_proxy.url}", fault_proxy.url):
        assert team.exchange("ann", url) == Exchanged()
    assert fault_proxy.count(path="/_bulk$") == 0
    with team.log("ann") as log:
        log.append([event("new")])
        settings = team.settings("ann", f"http://127.0.0.1:9,{fault_proxy.url}")
        assert log.waiting(judgments_address(settings)) == 1
    assert team.exchange("ann", f"{fault_proxy.url},{team.url}") == Exchanged(sent=1)
    assert team.waiting("ann") == 0


def test_a_lost_response_makes_no_duplicate_event(team: Team, fault_proxy: FaultProxy) -> None:
    with team.log("ann") as log:
        log.append([event(f"d{number}") for number in range(5)])
    fault_proxy.cut(1, path="/_bulk$")
    # the first request stored all five
    assert team.exchange("ann", fault_proxy.url) == Exchanged(sent=0)
    assert fault_proxy.count(path="/_bulk$") == 2
    assert len(team.stored()) == 5


def test_events_that_an_unreachable_server_did_not_get_are_sent_later(
    team: Team, fault_proxy: FaultProxy, small_batches: None
) -> None:
    events = [event(f"d{number}") for number in range(8)]
    with team.log("ann") as log:
        log.append(events)
    fault_proxy.refuse_from(2)  # the first three events arrive
    with pytest.raises(EngineUnreachable):
        team.exchange("ann", fault_proxy.url)
    with team.log("ann") as log:
        address = judgments_address(team.settings("ann", fault_proxy.url))
        assert log.waiting(address) == 5
        log.append([event("during the failure")])
    with pytest.raises(EngineUnreachable):
        team.exchange("ann", fault_proxy.url)
    fault_proxy.heal()
    assert team.exchange("ann", fault_proxy.url) == Exchanged(sent=6)
    assert team.stored() == ids(team.events("ann"))


def test_events_that_a_busy_server_rejects_are_sent_again(team: Team, fault_proxy: FaultProxy) -> None:
    events = [event("a"), event("b")]
    with team.log("ann") as log:
        log.append(events)
    fault_proxy.reject_documents({events[0].id})
    assert team.exchange("ann", fault_proxy.url) == Exchanged(sent=2)
    fault_proxy.reject_documents({(third := event("c")).id}, times=None)
    with team.log("ann") as log:
        log.append([third])
    with pytest.raises(EngineRefused, match="it stays on this machine"):
        team.exchange("ann", fault_proxy.url)
    assert team.stored() == ids(events)


def test_a_deleted_index_is_filled_again_from_any_log(team: Team) -> None:
    with team.log("ann") as log:
        log.append([event("a"), event("b")])
    team.exchange("ann")
    team.exchange("ben")
    team.server.delete_indices(team.prefix)
    assert team.waiting("ben") == 0  # ben does not know of the deletion yet
    assert team.exchange("ben") == Exchanged(sent=2)
    assert team.exchange("ann") == Exchanged(sent=0)
    assert team.stored() == ids(team.events("ann"))


def test_an_index_restored_from_a_snapshot_gets_the_missing_events(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restored snapshot, sent events are missing, and the history of the shard has another id."""
    with team.log("ann") as log:
        log.append([event("a"), event("b")])
    team.exchange("ann")
    team.server.request("DELETE", f"/{team.prefix}-judgments/_doc/{team.stored()[0]}")
    assert team.exchange("ann") == Exchanged()
    primary = JudgmentIndex._primary

    def restored(index: JudgmentIndex) -> IndexState | None:
        state = primary(index)
        return None if state is None else replace(state, identity=f"{state.identity} restored")

    monkeypatch.setattr(JudgmentIndex, "_primary", restored)
    assert team.exchange("ann") == Exchanged(sent=1)
    assert len(team.stored()) == 2


@pytest.mark.parametrize("alias", [False, True])
def test_a_foreign_index_is_rejected(team: Team, alias: bool) -> None:
    name = f"{team.prefix}-judgments"
    body: dict[str, Any] = {"aliases": {name: {}}} if alias else {}
    team.server.request("PUT", f"/{name}-000001" if alias else f"/{name}", body, timeout=60)
    with team.log("ann") as log:
        log.append([event()])
    with pytest.raises(EngineRefused, match="that searchapp did not create: choose another prefix"):
        team.exchange("ann")
    assert team.stored() == [] and team.waiting("ann") == 1


def test_an_index_of_an_earlier_format_is_rejected_and_can_be_created_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.log("ann") as log:
        log.append([event("a"), event("b")])
    with monkeypatch.context() as earlier:
        earlier.setattr(module, "_EVENTS", replace(module._EVENTS, format=1))
        team.exchange("ann")
        team.exchange("ben")
    with team.log("ben") as log:
        log.append([event("c")])
    name = f"{team.prefix}-judgments-000001"
    with pytest.raises(
        EngineRefused, match=f"has the format 1, this searchapp reads 2: remove the index {name}, "
    ):
        team.exchange("ben")
    assert team.waiting("ben") == 1
    team.server.request("DELETE", f"/{name}")
    assert team.exchange("ben") == Exchanged(sent=3)
    assert team.exchange("ann") == Exchanged(fetched=1)
    assert team.stored() == ids(team.events("ann")) == ids(team.events("ben"))


def test_an_index_of_a_newer_version_is_rejected(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.exchange("ann")
    monkeypatch.setattr(module, "_EVENTS", replace(module._EVENTS, format=1))
    with team.log("ben") as log:
        log.append([event("kept")])
    with pytest.raises(EngineRefused, match="newer version of searchapp: update searchapp"):
        team.exchange("ben")
    assert team.waiting("ben") == 1


def test_an_index_without_its_alias_is_reported(team: Team) -> None:
    team.exchange("ann")
    name = f"{team.prefix}-judgments"
    team.server.request("DELETE", f"/{name}-000001/_alias/{name}")
    with pytest.raises(EngineRefused, match="add the alias, or remove the index"):
        team.exchange("ann")


def test_different_events_with_one_id_are_reported_and_all_others_exchanged(
    team: Team, small_batches: None
) -> None:
    events = [event(f"d{number}") for number in range(9)]
    with team.log("ann") as log:
        log.append(events)
    team.exchange("ann")
    with team.log("ben") as log:
        log.append([replace(events[4], grade=3), *(later := [event(f"e{number}") for number in range(5)])])
    for _ in range(2):  # every exchange reports it
        with pytest.raises(
            DataError, match=f"different judgments with the id {events[4].id}; everything else"
        ):
            team.exchange("ben")
    assert ids(team.events("ben")) == ids([*events, *later]) == team.stored()


def test_documents_that_are_not_judgments_are_reported_and_skipped(team: Team) -> None:
    team.exchange("ann")
    body = {"id": "x", "grade": -3}
    team.server.request("PUT", f"/{team.prefix}-judgments/_doc/foreign", body)
    with team.log("ann") as log:
        log.append([judgment := event()])
    with pytest.raises(DataError, match="has a document foreign that is not a judgment"):
        team.exchange("ann")
    with pytest.raises(DataError, match="has a document foreign"):
        team.exchange("ben")
    assert team.events("ben") == [judgment]


def confirmed_by(writers: Sequence[Program]) -> list[str]:
    """Wait until all writers have ended, and return the ids that they printed, sorted."""
    confirmed: list[str] = []
    for writer in writers:
        with writer:
            output, errors = writer.communicate()
        assert writer.returncode == 0, errors
        confirmed += output.split()
    return sorted(confirmed)


def test_a_third_log_gets_all_events_of_two_concurrent_writers(team: Team) -> None:
    writers = [team.start(name, 60) for name in ("ann", "ben")]
    ends = threading.Thread(target=lambda: [writer.wait() for writer in writers])
    ends.start()
    with closing(team.connect("eve")) as index, team.log("eve") as log:
        while ends.is_alive():
            synchronize(log, index)
        synchronize(log, index)
    confirmed = confirmed_by(writers)
    assert ids(team.events("eve")) == confirmed == team.stored()
    assert len(confirmed) == 120


def test_two_processes_share_a_log_and_its_index(team: Team) -> None:
    confirmed = confirmed_by([team.start("ann", 30) for _ in range(2)])
    assert ids(team.events("ann")) == confirmed == team.stored()
    assert team.waiting("ann") == 0


def test_every_confirmed_event_arrives_once_despite_kills(team: Team) -> None:
    confirmed: set[str] = set()
    for kill in range(8 if FULL else 4):
        with team.start("ann", 10_000) as writer:
            confirmed.add(writer.read_line())  # the writer is working
            time.sleep(0.03 * kill if FULL else 0.06 * kill)
            writer.send_signal(signal.SIGKILL)
            rest, _errors = writer.communicate()
        assert writer.returncode == -signal.SIGKILL  # it had not ended by itself
        confirmed |= {line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n")}
    team.exchange("ann")
    assert confirmed <= set(team.stored())
    assert team.stored() == ids(team.events("ann"))
    team.exchange("ben")
    assert ids(team.events("ben")) == team.stored()


@pytest.fixture
def synchronizer(
    team: Team, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Synchronizer]:
    monkeypatch.setattr(shared, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(shared, "FETCH_SECONDS", 0.1)
    settings = team.settings("ann", fault_proxy.url)
    synchronizer = Synchronizer(
        settings.judgments,
        lambda: open_judgments(settings, attempts=1, timeout=5),
        judgments_address(settings),
    )
    synchronizer.start()
    yield synchronizer
    synchronizer.stop(10)


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(0.02)


def test_a_synchronizer_sends_and_fetches_in_the_background(
    team: Team, synchronizer: Synchronizer, fault_proxy: FaultProxy
) -> None:
    with team.log("ann") as log:
        log.append([event("a")])
        until(lambda: log.waiting(synchronizer.address) == 0)
        fault_proxy.answer(503, times=None)
        log.append([event("b")])
        until(lambda: synchronizer.trouble is not None)
        assert log.waiting(synchronizer.address) == 1 and len(team.stored()) == 1
        fault_proxy.heal()
        until(lambda: synchronizer.trouble is None and log.waiting(synchronizer.address) == 0)
        with team.log("ben") as ben_log:
            ben_log.append([event("c", author=Author("ben"))])
        team.exchange("ben")
        until(lambda: synchronizer.fetched == 1)
        assert ids(events_of(log)) == team.stored()


def test_a_hanging_address_does_not_prevent_the_exchange(
    team: Team, elasticsearch_url: str, index_prefix: str
) -> None:
    """The test uses one attempt, as judging does; requests begin with a random address."""
    with FaultProxy(elasticsearch_url) as hangs, FaultProxy(elasticsearch_url) as answers:
        hangs.delay(20.0, None)
        settings = team.settings("ann", f"{hangs.url},{answers.url}")
        with team.log("ann") as log:
            for number in range(3):
                log.append([event(f"d{number}")])
                with closing(open_judgments(settings, attempts=1, timeout=1)) as index:
                    assert synchronize(log, index).sent == 1
        assert hangs.count() >= 1
    assert len(team.stored()) == 3


def test_the_embedded_engine_shares_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--url or SEARCHAPP_URL"):
        open_judgments(Settings(home=tmp_path))


def test_events_sent_before_a_kill_are_not_duplicated(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    with team.log("ann") as log:
        log.append([event("a"), event("b")])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(JudgmentLog, "sent", interrupt)
        team.exchange("ann")
    before = team.stored()
    assert len(before) == 2 and team.waiting("ann") == 2
    assert team.exchange("ann") == Exchanged(sent=0)
    assert team.waiting("ann") == 0 and team.stored() == before


def test_a_full_local_disk_loses_no_events_of_others(team: Team) -> None:
    with team.log("ann") as log:
        log.append([event(f"d{number}" * 20) for number in range(600)])
    team.exchange("ann")
    with closing(team.connect("ben")) as index, team.log("ben") as log:
        (pages,) = log._database.execute("PRAGMA page_count").fetchone()
        log._database.execute(f"PRAGMA max_page_count = {pages + 10}")
        with pytest.raises(NotSaved, match="the disk is full"):
            synchronize(log, index)
        log._database.execute("PRAGMA max_page_count = 1000000")
        assert len(log) + synchronize(log, index).fetched == 600
    assert team.events("ben") == team.events("ann")


def test_a_read_only_index_is_reported_and_gets_the_events_later(team: Team) -> None:
    team.exchange("ann")
    with team.log("ann") as log:
        log.append([event()])
    settings = f"/{team.prefix}-judgments/_settings"
    team.server.request("PUT", settings, {"index.blocks.write": True})
    with pytest.raises(EngineRefused, match="blocked by.*it stays on this machine"):
        team.exchange("ann")
    team.server.request("PUT", settings, {"index.blocks.write": None})
    assert team.exchange("ann") == Exchanged(sent=1)


def test_annotators_need_only_the_documented_rights(
    secured_node: Node, tmp_path: Path, index_prefix: str
) -> None:
    server = secured_node.server
    member = ["read", "create", "view_index_metadata", "monitor", "maintenance"]

    def exchange(name: str, rights: list[str]) -> Exchanged:
        role = {"indices": [{"names": [f"{index_prefix}-judgments*"], "privileges": rights}]}
        body = {"name": name, "role_descriptors": {"team": role}}
        settings = Settings(
            home=tmp_path / name,
            engine="elasticsearch",
            url=secured_node.url,
            api_key=server.request("POST", "/_security/api_key", body).json()["encoded"],
            ca_certs=secured_node.ca_certs,
            index_prefix=index_prefix,
        )
        with closing(open_judgments(settings)) as index, JudgmentLog(settings.judgments) as log:
            log.append(common)
            log.append([event(author=Author(name))])
            return synchronize(log, index)

    common = [event("a")]
    try:
        with pytest.raises(EngineRefused, match="does not allow this user to create the index"):
            exchange("ann", member)
        assert exchange("kim", [*member, "manage"]) == Exchanged(sent=2)
        assert exchange("ann", member) == Exchanged(sent=2, fetched=1)
        with pytest.raises(EngineRefused):
            exchange("eve", ["read"])
    finally:
        server.delete_indices(index_prefix)
