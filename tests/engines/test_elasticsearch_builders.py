"""Several builders of one index in own processes, their locks, and repairs."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from searchapp.app.index import stored_versions
from searchapp.config.settings import Settings
from searchapp.engines.base import VersionState
from searchapp.engines.elasticsearch import ElasticsearchEngine, locks
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.locks import Builder, Locks, Overtaken
from searchapp.engines.elasticsearch.shards import Copies, Copy
from searchapp.engines.elasticsearch.versions import Split
from searchapp.errors import EngineRefused
from searchapp.model import Document
from tests.engines.conftest import GROUPS, indexes, match, spec_of, spoil
from tests.profile import FULL
from tests.programs import Program
from tests.server.rest import Server

ROUNDS = 100 if FULL else 2
BUILDERS = 4

BUILDER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from searchapp.engines.elasticsearch import ElasticsearchEngine, locks
    from searchapp.errors import SearchappError
    from searchapp.config.settings import Settings
    from tests.engines.conftest import GROUPS, spec_of

    locks.LOOK_SECONDS = 0.05
    engine = ElasticsearchEngine.connect(Settings(home=Path("."), url=sys.argv[1], index_prefix=sys.argv[2]))
    print("ready", flush=True)
    for line in sys.stdin:
        documents = GROUPS[: int(line)]
        try:
            print(engine.build("groups", spec_of(documents), documents).version, flush=True)
        except SearchappError as error:
            print(f"! {error}", flush=True)
    """
)


@contextmanager
def builders(url: str, prefix: str, count: int) -> Iterator[list[Program]]:
    """Start processes that build the number of documents in each line of their input."""
    with ExitStack() as running:
        programs = [running.enter_context(Program(BUILDER, url, prefix)) for _ in range(count)]
        for program in programs:
            assert program.read_line() == "ready"
        yield programs


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make builders check locks often and wait only briefly."""
    monkeypatch.setattr(locks, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(locks, "ABANDONED_SECONDS", 2.0)


@pytest.mark.parametrize("first", [True, False], ids=["the first build", "a rebuild"])
@pytest.mark.parametrize("same", [True, False], ids=["the same documents", "other documents"])
@pytest.mark.timeout(1800)
def test_concurrent_builders_leave_one_version_behind_the_alias(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, first: bool, same: bool
) -> None:
    with builders(elasticsearch_url, index_prefix, BUILDERS) as programs:
        for _ in range(ROUNDS):
            engine.remove("groups")
            before = None if first else engine.build("groups", spec_of(GROUPS), GROUPS).version
            sizes = [4] * BUILDERS if same else [1, 2, 3, 4]
            for program, size in zip(programs, sizes, strict=True):
                program.write_line(str(size))
            built = [program.read_line() for program in programs]
            assert not [line for line in built if line.startswith("!")]
            live = engine.index_info("groups")
            assert live is not None and live.version in built and live.version != before
            assert indexes(elasticsearch_url, index_prefix) == {live.version: [f"{index_prefix}-groups"]}
            assert len(engine.open("groups").find({"query": {"match_all": {}}})) == live.documents
            if same:  # all builders use the version that one of them built
                assert set(built) == {live.version}


def test_a_builder_waits_for_another_one_and_reports_it(
    elasticsearch_url: str, settings_for: Callable[..., Settings], eager: None
) -> None:
    messages: list[str] = []
    settings = settings_for(elasticsearch_url)
    started, resume = threading.Event(), threading.Event()

    def wait_for_resume() -> Iterator[Document]:
        started.set()
        assert resume.wait(30)
        yield from GROUPS

    with (
        closing(ElasticsearchEngine.connect(settings)) as slow,
        closing(ElasticsearchEngine.connect(settings, messages.append)) as second,
    ):
        building = threading.Thread(target=lambda: slow.build("groups", spec_of(GROUPS), wait_for_resume()))
        building.start()
        assert started.wait(30)
        waiting = threading.Thread(target=lambda: second.build("groups", spec_of(GROUPS[:2]), GROUPS[:2]))
        waiting.start()
        while not messages:
            time.sleep(0.01)
        assert slow.index_info("groups") is None
        resume.set()
        building.join(30)
        waiting.join(30)
        live = second.index_info("groups")
    assert live is not None and live.documents == 2 and "-000002-" in live.version
    (message,) = messages
    assert f"process {os.getpid()} on " in message and "waiting until it is done" in message


def test_a_builder_waits_only_for_a_limited_time(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    eager: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_for(elasticsearch_url)
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.5)
    with closing(Connection.open(settings)) as connection:
        with Locks(connection, settings.index_prefix).hold(f"{settings.index_prefix}-groups"):
            with pytest.raises(
                EngineRefused, match=r"process \d+ on .* is building .*: wait until it is done"
            ):
                engine.build("groups", spec_of(GROUPS), GROUPS)
    assert engine.build("groups", spec_of(GROUPS), GROUPS).documents == 4


# Locks of dead and slow holders


def test_a_version_being_built_is_listed_as_such_and_not_removed(
    engine: ElasticsearchEngine, elasticsearch_url: str, settings_for: Callable[..., Settings], eager: None
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)

    def check_during_build() -> Iterator[Document]:
        assert [index.state for index in stored_versions(engine)] == [
            VersionState.live,
            VersionState.building,
        ]
        with (
            closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as second,
            pytest.raises(EngineRefused, match=r"process \d+ on .* is building .*: wait until it is done"),
        ):
            second.remove("groups")
        yield from GROUPS[:2]

    new = engine.build("groups", spec_of(GROUPS[:2]), check_during_build())
    assert [(index.version, index.state) for index in stored_versions(engine)] == [
        (new.version, VersionState.live)
    ]


@pytest.fixture
def connected(elasticsearch_url: str, settings_for: Callable[..., Settings]) -> Iterator[Connection]:
    with closing(Connection.open(settings_for(elasticsearch_url))) as connection:
        yield connection


def lock_document(url: str, prefix: str) -> dict[str, Any]:
    source: dict[str, Any] = Server(url).request("GET", f"/{prefix}-locks/_doc/x").json()["_source"]
    return source


def write_lock(url: str, prefix: str, **changes: object) -> None:
    """Write a lock as an unknown holder left it."""
    holder = {
        "host": "elsewhere.example",
        "pid": os.getpid(),
        "started": 1.0,
        "booted": 1.0,
        **changes,
    }
    source = {**lock_document(url, prefix), "holder": holder, "token": "another"}
    Server(url).request("PUT", f"/{prefix}-locks/_doc/x", source)


def test_the_lock_of_a_dead_local_process_is_taken_over_at_once(
    connected: Connection, elasticsearch_url: str, index_prefix: str
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    process = Builder.this_process()
    write_lock(
        elasticsearch_url,
        index_prefix,
        host=process.host,
        booted=process.booted,
        started=process.started - 99,
    )
    start = time.monotonic()
    with own.hold("x"):
        pass
    assert time.monotonic() - start < 5


def test_the_lock_of_another_machine_is_taken_over_when_its_heartbeat_stops(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    write_lock(elasticsearch_url, index_prefix)
    start = time.monotonic()
    with own.hold("x"):
        assert 2 < time.monotonic() - start < 10


def test_a_lock_with_a_heartbeat_is_not_taken_over(
    connected: Connection, index_prefix: str, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 4.0)  # twice the time after which a lock is abandoned
    own, other = Locks(connected, index_prefix), Locks(connected, index_prefix)
    with own.hold("x") as lock:
        with pytest.raises(EngineRefused, match="is building x"):
            with other.hold("x"):
                pass
        lock.require()


def test_without_waiting_a_lock_is_taken_over_only_if_its_heartbeat_stopped(
    connected: Connection, index_prefix: str, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = Locks(connected, index_prefix), Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    monkeypatch.setattr(Builder, "is_here", lambda _: False)
    with own.hold("x"):
        with pytest.raises(EngineRefused, match="is building x .*: wait until it is done"):
            with other.hold("x", wait=0):
                pass
        monkeypatch.setattr(locks.Lock, "confirm", lambda *_arguments, **_options: None)  # no heartbeat
        with other.hold("x", wait=0):
            pass


def test_a_builder_detects_that_its_lock_was_taken_over(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    with Locks(connected, index_prefix).hold("x") as lock:
        write_lock(elasticsearch_url, index_prefix)
        with pytest.raises(Overtaken, match="another builder took over x because this one was silent"):
            lock.confirm()
    assert lock_document(elasticsearch_url, index_prefix)["token"] == "another"  # not released


def test_a_deleted_index_of_locks_is_created_again(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    with Locks(connected, index_prefix).hold("x") as lock:
        Server(elasticsearch_url).request("DELETE", f"/{index_prefix}-locks-000001")
        lock.confirm()
        assert lock_document(elasticsearch_url, index_prefix)["token"] == lock.token


def test_a_foreign_document_instead_of_a_lock_is_rejected(
    connected: Connection, elasticsearch_url: str, index_prefix: str
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    Server(elasticsearch_url).request("PUT", f"/{index_prefix}-locks/_doc/x", {"a": 1})
    with pytest.raises(EngineRefused, match="a lock of x .* that searchapp did not write"):
        with own.hold("x"):
            pass


def test_a_builder_whose_lock_was_taken_over_makes_nothing_live(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    """The builder pauses during its work until another one has built, and then continues."""

    def pause_and_build() -> Iterator[Document]:
        yield GROUPS[0]
        lock = Server(elasticsearch_url).request("GET", f"/{index_prefix}-locks/_doc/{index_prefix}-groups")
        source = lock.json()["_source"] | {"token": "another", "holder": None}
        Server(elasticsearch_url).request("PUT", f"/{index_prefix}-locks/_doc/{index_prefix}-groups", source)
        engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        yield from GROUPS[1:]

    with pytest.raises(EngineRefused, match="another builder took over"):
        engine.build("groups", spec_of(GROUPS), pause_and_build())
    live = engine.index_info("groups")
    assert live is not None and live.documents == 2
    assert indexes(elasticsearch_url, index_prefix) == {live.version: [f"{index_prefix}-groups"]}


def test_a_stopped_process_loses_its_lock_and_changes_nothing(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    eager: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process is stopped before its swap and continues after another build."""
    monkeypatch.setattr(locks, "ABANDONED_SECONDS", 6.0)
    script = BUILDER.replace(
        "locks.LOOK_SECONDS = 0.05", "locks.LOOK_SECONDS = 0.05\n" + STOP_BEFORE_THE_SWAP
    )
    with Program(script, elasticsearch_url, index_prefix) as program:
        assert program.read_line() == "ready"
        program.write_line("4")
        assert program.read_line() == "complete"
        new = engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        program.send_signal(signal.SIGCONT)
        assert program.read_line().startswith("! ")
    assert indexes(elasticsearch_url, index_prefix) == {new.version: [f"{index_prefix}-groups"]}
    assert engine.index_info("groups") == new


STOP_BEFORE_THE_SWAP = textwrap.dedent(
    """
    import os, signal
    from searchapp.engines.elasticsearch.versions import IndexVersions
    swap = IndexVersions.swap

    def stop_and_swap(*arguments):
        print("complete", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        swap(*arguments)

    IndexVersions.swap = stop_and_swap
    """
)


# Repairs


def copy_of(server: Server, version: str, name: str, aliases: Mapping[str, Any] | None = None) -> str:
    """Create an empty index with the mapping of a version."""
    original = server.request("GET", f"/{version}").json()[version]
    settings = {"analysis": original["settings"]["index"]["analysis"]}
    body = {"mappings": original["mappings"], "settings": settings, "aliases": dict(aliases or {})}
    assert server.request("PUT", f"/{name}", body, timeout=60).status == 200
    return name


@pytest.fixture
def split(engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str) -> tuple[str, str]:
    """Put an alias on two versions, and return their names, the older one first."""
    old = engine.build("groups", spec_of(GROUPS), GROUPS).version
    server = Server(elasticsearch_url)
    new = copy_of(server, old, f"{index_prefix}-groups-000007-0123abcd")
    for document in GROUPS:
        server.request("PUT", f"/{new}/_doc/{document.id}?refresh=true", document.source())
    server.request("PUT", f"/{new}/_settings", {"index.blocks.write": True})
    alias = f"{index_prefix}-groups"
    actions: list[dict[str, Any]] = [
        {"add": {"index": old, "alias": alias, "is_write_index": False}},
        {"add": {"index": new, "alias": alias}},
    ]
    assert server.request("POST", "/_aliases", {"actions": actions}).status == 200
    return old, new


def test_an_alias_on_two_versions_is_reported_with_the_repair_command(
    engine: ElasticsearchEngine, split: tuple[str, str]
) -> None:
    for use in (
        lambda: engine.open("groups"),
        lambda: engine.index_info("groups"),
        lambda: engine.build("groups", spec_of(GROUPS), GROUPS),
    ):
        with pytest.raises(Split, match=r"on 2 versions .*`searchapp indexes repair groups`"):
            use()


def test_a_repair_keeps_the_newest_version(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, split: tuple[str, str]
) -> None:
    repair = engine.repair("groups")
    assert (repair.name, repair.serving, repair.removed) == ("groups", split[1], (split[0],))
    assert repair.problem == ""
    assert indexes(elasticsearch_url, index_prefix) == {split[1]: [f"{index_prefix}-groups"]}
    assert len(engine.open("groups").find(match("group"))) == 2
    assert engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2]).documents == 2


def test_a_repair_keeps_the_undamaged_version(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, split: tuple[str, str]
) -> None:
    server = Server(elasticsearch_url)
    server.request("PUT", f"/{split[1]}/_settings", {"index.blocks.write": None})
    server.request("PUT", f"/{split[1]}/_doc/1?refresh=true", GROUPS[0].source())  # a deleted copy
    repair = engine.repair("groups")
    assert (repair.serving, repair.removed, repair.problem) == (split[0], (split[1],), "")


def test_a_repair_reports_what_it_can_not_fix(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    engine.build("others", spec_of(GROUPS), GROUPS)
    spoil(elasticsearch_url, f"{index_prefix}-groups")
    assert "deleted" in engine.repair("groups").problem
    others = engine.repair("others")
    assert (others.name, others.removed, others.problem) == ("others", (), "")
    Server(elasticsearch_url).request(
        "PUT", f"/{index_prefix}-strange", {"aliases": {f"{index_prefix}-groups": {}}}
    )
    with pytest.raises(EngineRefused, match="did not make"):
        engine.repair("groups")


def test_a_repair_removes_leftovers_of_builders(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    server = Server(elasticsearch_url)
    unfinished, complete = (f"{index_prefix}-groups-00000{number}-0123abcd" for number in (4, 5))
    leftovers = [
        copy_of(server, info.version, unfinished, {f"{unfinished}-building-0123456789abcdef": {}}),
        copy_of(server, info.version, complete),
    ]
    repair = engine.repair("groups")
    assert (repair.serving, sorted(repair.removed)) == (info.version, leftovers)
    assert "no version of" in engine.repair("nothing").problem


def test_indexes_with_a_longer_prefix_belong_to_another_engine(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    index_prefix: str,
) -> None:
    settings = replace(settings_for(elasticsearch_url), index_prefix=f"{index_prefix}-more")
    with closing(ElasticsearchEngine.connect(settings)) as second:

        def check_during_build() -> Iterator[Document]:
            assert stored_versions(engine) == []
            assert [index.state for index in stored_versions(second)] == [VersionState.building]
            yield from GROUPS

        assert second.build("groups", spec_of(GROUPS), check_during_build()).documents == 4


def test_removing_the_last_index_removes_the_locks(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    engine.build("others", spec_of(GROUPS), GROUPS)
    engine.remove("groups")
    assert engine.index_info("others") is not None
    engine.remove("others")
    assert Server(elasticsearch_url).request("GET", f"/_cat/indices/{index_prefix}*").body == b""


def test_the_copy_with_most_deleted_documents_counts() -> None:
    """Copies merge independently: a replica may still have deleted documents that the primary has merged."""
    copies = (Copy(0, True, 5, 0), Copy(0, False, 5, 2), Copy(1, True, 4, 1), Copy(1, False, 4, 0))
    assert Copies(copies, shards=2, expected=2).deleted == 3
    assert Copies(copies[1:], shards=3, expected=2).without_primary == [0, 2]
    assert Copies(copies[1:], shards=3, expected=2).incomplete == [0, 2]
