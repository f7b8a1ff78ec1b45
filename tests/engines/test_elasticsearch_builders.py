"""Several builders of one index at once, as processes of their own, and what they leave."""

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
from tests.engines.conftest import GROUPS, match, spec_of, spoil
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


def indexes(url: str, prefix: str) -> dict[str, list[str]]:
    """The aliases of every version of the index `groups`."""
    found = Server(url).request("GET", f"/{prefix}-groups-*/_alias").json()
    return {name: sorted(described["aliases"]) for name, described in found.items()}


@contextmanager
def builders(url: str, prefix: str, count: int) -> Iterator[list[Program]]:
    """Processes that build as many of the documents as a line of their input says."""
    with ExitStack() as running:
        programs = [running.enter_context(Program(BUILDER, url, prefix)) for _ in range(count)]
        for program in programs:
            assert program.read_line() == "ready"
        yield programs


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builders that look often, and wait no longer than a test may."""
    monkeypatch.setattr(locks, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(locks, "ABANDONED_SECONDS", 2.0)


@pytest.mark.parametrize("first", [True, False], ids=["the first build", "a rebuild"])
@pytest.mark.parametrize("alike", [True, False], ids=["the same documents", "other documents"])
@pytest.mark.timeout(1800)
def test_builders_at_once_leave_one_version_behind_the_alias(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, first: bool, alike: bool
) -> None:
    with builders(elasticsearch_url, index_prefix, BUILDERS) as programs:
        for _ in range(ROUNDS):
            engine.remove("groups")
            before = None if first else engine.build("groups", spec_of(GROUPS), GROUPS).version
            sizes = [4] * BUILDERS if alike else [1, 2, 3, 4]
            for program, size in zip(programs, sizes, strict=True):
                program.write_line(str(size))
            built = [program.read_line() for program in programs]
            assert not [line for line in built if line.startswith("!")]
            serving = engine.index_info("groups")
            assert serving is not None and serving.version in built and serving.version != before
            assert indexes(elasticsearch_url, index_prefix) == {serving.version: [f"{index_prefix}-groups"]}
            assert len(engine.open("groups").find({"query": {"match_all": {}}})) == serving.documents
            if alike:  # what one of them built is what all were asked for
                assert set(built) == {serving.version}


def test_a_builder_waits_for_another_one_and_says_so(
    elasticsearch_url: str, settings_for: Callable[..., Settings], eager: None
) -> None:
    said: list[str] = []
    settings = settings_for(elasticsearch_url)
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> Iterator[Document]:
        begun.set()
        assert go_on.wait(30)
        yield from GROUPS

    with (
        closing(ElasticsearchEngine.connect(settings)) as slow,
        closing(ElasticsearchEngine.connect(settings, said.append)) as other,
    ):
        building = threading.Thread(target=lambda: slow.build("groups", spec_of(GROUPS), slowly()))
        building.start()
        assert begun.wait(30)
        waiting = threading.Thread(target=lambda: other.build("groups", spec_of(GROUPS[:2]), GROUPS[:2]))
        waiting.start()
        while not said:
            time.sleep(0.01)
        assert slow.index_info("groups") is None
        go_on.set()
        building.join(30)
        waiting.join(30)
        serving = other.index_info("groups")
    assert serving is not None and serving.documents == 2 and "-000002-" in serving.version
    (sentence,) = said
    assert f"process {os.getpid()} on " in sentence and "waiting until it is done" in sentence


def test_a_builder_does_not_wait_for_ever(
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


# A lock whose holder is gone, or only slow


def test_an_index_that_is_being_built_is_listed_as_such_and_not_removed(
    engine: ElasticsearchEngine, elasticsearch_url: str, settings_for: Callable[..., Settings], eager: None
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)

    def meanwhile() -> Iterator[Document]:
        assert [one.state for one in stored_versions(engine)] == [VersionState.live, VersionState.building]
        with (
            closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url))) as other,
            pytest.raises(EngineRefused, match=r"process \d+ on .* is building .*: wait until it is done"),
        ):
            other.remove("groups")
        yield from GROUPS[:2]

    new = engine.build("groups", spec_of(GROUPS[:2]), meanwhile())
    assert [(one.version, one.state) for one in stored_versions(engine)] == [(new.version, VersionState.live)]


@pytest.fixture
def connected(elasticsearch_url: str, settings_for: Callable[..., Settings]) -> Iterator[Connection]:
    with closing(Connection.open(settings_for(elasticsearch_url))) as connection:
        yield connection


def lock_document(url: str, prefix: str) -> dict[str, Any]:
    source: dict[str, Any] = Server(url).request("GET", f"/{prefix}-locks/_doc/x").json()["_source"]
    return source


def holder_of(url: str, prefix: str, **changes: object) -> None:
    """Write a lock as a holder left it that nobody answers for."""
    holder = {
        "host": "elsewhere.example",
        "pid": os.getpid(),
        "started": 1.0,
        "booted": 1.0,
        **changes,
    }
    source = {**lock_document(url, prefix), "holder": holder, "token": "another"}
    Server(url).request("PUT", f"/{prefix}-locks/_doc/x", source)


def test_a_lock_of_a_dead_process_of_this_machine_is_taken_over_at_once(
    connected: Connection, elasticsearch_url: str, index_prefix: str
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    this = Builder.this_process()
    holder_of(elasticsearch_url, index_prefix, host=this.host, booted=this.booted, started=this.started - 99)
    begun = time.monotonic()
    with own.hold("x"):
        pass
    assert time.monotonic() - begun < 5


def test_a_lock_of_another_machine_is_taken_over_when_its_beat_stops(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    holder_of(elasticsearch_url, index_prefix)
    begun = time.monotonic()
    with own.hold("x"):
        assert 2 < time.monotonic() - begun < 10


def test_a_lock_whose_beat_goes_on_is_not_taken_over(
    connected: Connection, index_prefix: str, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 4.0)  # twice what an abandoned one would have
    own, other = Locks(connected, index_prefix), Locks(connected, index_prefix)
    with own.hold("x") as lock:
        with pytest.raises(EngineRefused, match="is building x"):
            with other.hold("x"):
                pass
        lock.require()


def test_who_does_not_wait_for_another_machine_sees_first_whether_it_is_at_work(
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
        monkeypatch.setattr(locks.Lock, "confirm", lambda *_arguments, **_options: None)  # it stands still
        with other.hold("x", wait=0):
            pass


def test_who_was_overtaken_finds_out(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    with Locks(connected, index_prefix).hold("x") as lock:
        holder_of(elasticsearch_url, index_prefix)
        with pytest.raises(Overtaken, match="another builder took over x because this one was silent"):
            lock.confirm()
    assert lock_document(elasticsearch_url, index_prefix)["token"] == "another"  # not given back for them


def test_an_index_of_locks_that_was_deleted_is_made_again(
    connected: Connection, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    with Locks(connected, index_prefix).hold("x") as lock:
        Server(elasticsearch_url).request("DELETE", f"/{index_prefix}-locks-000001")
        lock.confirm()
        assert lock_document(elasticsearch_url, index_prefix)["token"] == lock.token


def test_a_lock_that_searchapp_did_not_write_is_refused(
    connected: Connection, elasticsearch_url: str, index_prefix: str
) -> None:
    own = Locks(connected, index_prefix)
    with own.hold("x"):
        pass
    Server(elasticsearch_url).request("PUT", f"/{index_prefix}-locks/_doc/x", {"a": 1})
    with pytest.raises(EngineRefused, match="a lock of x .* that searchapp did not write"):
        with own.hold("x"):
            pass


def test_a_builder_that_was_overtaken_lets_nothing_serve(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, eager: None
) -> None:
    """It stands still in the middle of its work until another one has built; then it goes on."""

    def paused() -> Iterator[Document]:
        yield GROUPS[0]
        lock = Server(elasticsearch_url).request("GET", f"/{index_prefix}-locks/_doc/{index_prefix}-groups")
        source = lock.json()["_source"] | {"token": "another", "holder": None}
        Server(elasticsearch_url).request("PUT", f"/{index_prefix}-locks/_doc/{index_prefix}-groups", source)
        engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        yield from GROUPS[1:]

    with pytest.raises(EngineRefused, match="another builder took over"):
        engine.build("groups", spec_of(GROUPS), paused())
    serving = engine.index_info("groups")
    assert serving is not None and serving.documents == 2
    assert indexes(elasticsearch_url, index_prefix) == {serving.version: [f"{index_prefix}-groups"]}


def test_a_builder_that_stands_still_is_overtaken_and_spoils_nothing(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    eager: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real process, stopped before its swap; it goes on when another has built."""
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

    def stopped(*arguments):
        print("complete", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        swap(*arguments)

    IndexVersions.swap = stopped
    """
)


# An alias on two versions


def copy_of(server: Server, version: str, name: str, aliases: Mapping[str, Any] | None = None) -> str:
    """An empty index that looks like another version."""
    described = server.request("GET", f"/{version}").json()[version]
    settings = {"analysis": described["settings"]["index"]["analysis"]}
    body = {"mappings": described["mappings"], "settings": settings, "aliases": dict(aliases or {})}
    assert server.request("PUT", f"/{name}", body, timeout=60).status == 200
    return name


@pytest.fixture
def split(engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str) -> tuple[str, str]:
    """An alias on two versions, and their names, the older one first."""
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


def test_an_alias_on_two_versions_is_told_with_what_repairs_it(
    engine: ElasticsearchEngine, split: tuple[str, str]
) -> None:
    for refused in (
        lambda: engine.open("groups"),
        lambda: engine.index_info("groups"),
        lambda: engine.build("groups", spec_of(GROUPS), GROUPS),
    ):
        with pytest.raises(Split, match=r"on 2 versions .*`searchapp indexes repair groups`"):
            refused()


def test_a_repair_keeps_the_newest_version(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, split: tuple[str, str]
) -> None:
    done = engine.repair("groups")
    assert (done.name, done.serving, done.removed, done.problem) == ("groups", split[1], (split[0],), "")
    assert indexes(elasticsearch_url, index_prefix) == {split[1]: [f"{index_prefix}-groups"]}
    assert len(engine.open("groups").find(match("group"))) == 2
    assert engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2]).documents == 2


def test_a_repair_keeps_the_version_that_is_sound(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, split: tuple[str, str]
) -> None:
    server = Server(elasticsearch_url)
    server.request("PUT", f"/{split[1]}/_settings", {"index.blocks.write": None})
    server.request("PUT", f"/{split[1]}/_doc/1?refresh=true", GROUPS[0].source())  # a deleted copy
    done = engine.repair("groups")
    assert (done.serving, done.removed, done.problem) == (split[0], (split[1],), "")


def test_a_repair_says_what_it_can_not_mend(
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


def test_a_repair_removes_what_builders_left(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    server = Server(elasticsearch_url)
    half, whole = (f"{index_prefix}-groups-00000{number}-0123abcd" for number in (4, 5))
    left = [
        copy_of(server, info.version, half, {f"{half}-building-0123456789abcdef": {}}),
        copy_of(server, info.version, whole),
    ]
    done = engine.repair("groups")
    assert (done.serving, sorted(done.removed)) == (info.version, left)
    assert "no version of" in engine.repair("nothing").problem


def test_a_repair_leaves_the_indexes_of_a_longer_prefix_alone(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    index_prefix: str,
) -> None:
    settings = replace(settings_for(elasticsearch_url), index_prefix=f"{index_prefix}-more")
    with closing(ElasticsearchEngine.connect(settings)) as other:

        def meanwhile() -> Iterator[Document]:
            assert stored_versions(engine) == []
            assert [one.state for one in stored_versions(other)] == [VersionState.building]
            yield from GROUPS

        assert other.build("groups", spec_of(GROUPS), meanwhile()).documents == 4


def test_the_last_index_that_is_removed_takes_the_locks_with_it(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    engine.build("others", spec_of(GROUPS), GROUPS)
    engine.remove("groups")
    assert engine.index_info("others") is not None
    engine.remove("others")
    assert Server(elasticsearch_url).request("GET", f"/_cat/indices/{index_prefix}*").body == b""


def test_of_two_copies_the_one_with_most_deleted_documents_counts() -> None:
    """Each copy merges when it likes: a replica may keep what the primary has merged away."""
    found = (Copy(0, True, 5, 0), Copy(0, False, 5, 2), Copy(1, True, 4, 1), Copy(1, False, 4, 0))
    assert Copies(found, shards=2, expected=2).deleted == 3
    assert Copies(found[1:], shards=3, expected=2).without_primary == [0, 2]
    assert Copies(found[1:], shards=3, expected=2).incomplete == [0, 2]
