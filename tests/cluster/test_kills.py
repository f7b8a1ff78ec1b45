"""A node is killed, `KILLS` times, while commands index, rank and share judgments.

Every command continues with the other addresses and succeeds, every run equals the undisturbed one, and no judgment is
lost or duplicated. The full profile prints durations.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from searchapp.app.rank import RunRequest, make_run
from searchapp.app.sessions import exchange, team
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.elasticsearch import indexing, searching, shards
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.tasks import load
from tests.cli.conftest import Cli
from tests.cluster.collection import BATCH, Words, renamed, stored
from tests.cluster.conftest import KILLS, PREFIX
from tests.cluster.triggers import after
from tests.profile import FULL
from tests.server.cluster import Cluster
from tests.server.node import START_SECONDS, Node

pytestmark = pytest.mark.timeout(KILLS * 240 + 120)

SHARDS = 3
MEMBERS = ("ann", "ben")
EVENTS = 500 if FULL else 60
"""Events of each annotator in a round."""
POLL_SECONDS = 0.05 if FULL else 0.3
"""Between two checks whether a judgment is shared; the full profile prints when."""
PAUSE_SECONDS = 0.0 if FULL else 0.2
"""Between two runs, which without a pause use all processors."""

Report = Callable[[str, list[float]], None]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    """Return a function that prints the durations of a series of kills."""

    def print_durations(name: str, seconds: list[float]) -> None:
        figures = f"{min(seconds):.1f} to {max(seconds):.1f} s, median {statistics.median(seconds):.1f} s"
        with capsys.disabled():
            print(f"\n{name}: {figures} ({len(seconds)} times)", flush=True)

    return print_durations if FULL else lambda _name, _seconds: None


def victim(cluster: Cluster, number: int, dice: random.Random) -> Node:
    """Return the node to kill: every third time the master, otherwise another node."""
    master = cluster.master
    return master if number % 3 == 0 else dice.choice([node for node in cluster.nodes if node is not master])


class Kill:
    """Kill a node by SIGKILL; one that comes back is started again at once, as a service manager does."""

    def __init__(self, node: Node, *, comes_back: bool) -> None:
        self.node = node
        self._comes_back = comes_back
        self._killed = threading.Event()
        self.moment = 0.0

    def __call__(self) -> None:
        self.node.kill()
        self.moment = time.monotonic()
        self._killed.set()
        if self._comes_back:
            self.node.launch()

    @property
    def is_done(self) -> bool:
        return self._killed.is_set()

    def wait(self) -> None:
        assert self._killed.wait(120), "no node was killed in two minutes"


class RankingThread(threading.Thread):
    """Rank the topics of a task repeatedly, as `rank` does, until `stop`."""

    def __init__(self, settings: Settings, words: Words, folder: Path) -> None:
        super().__init__()
        self._settings = settings
        self._task = load(str(words.task))
        self._data = words.task.parent
        self._folder = folder
        self._stopped = threading.Event()
        self.runs: list[tuple[float, float, bytes]] = []
        """Begin, end and bytes of each run."""

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        recipe = recipes.load(self._task.recipe_book(), "bm25")
        while not self._stopped.is_set():
            out = self._folder / f"run{len(self.runs)}"
            request = RunRequest(self._task.collection(self._data), "dev", recipe, 50, "searchapp-bm25")
            start = time.monotonic()
            with closing(open_engine(self._settings)) as engine:
                make_run(self._task, engine, request, out, SilentProgress())
            self.runs.append((start, time.monotonic(), (out / "run.trec").read_bytes()))
            self._stopped.wait(PAUSE_SECONDS)


class Member(threading.Thread):
    """An annotator who judges with others, as `judge --shared` does, also after a node was killed.

    The session stays open until `leave`, because judgments made during the election of a master are sent in the
    background.
    """

    def __init__(self, name: str, settings: Settings, kill: Kill) -> None:
        super().__init__()
        self.settings = settings
        self.judged: list[tuple[float, Event]] = []
        """Judgments with their times."""
        self.messages: list[str] = []
        """The warnings of the exchange."""
        self._author = Author(name)
        self._kill = kill
        self._leaving = threading.Event()

    def leave(self) -> None:
        """End the session, after the last judgment."""
        self._leaving.set()
        self.join()

    def run(self) -> None:
        with JudgmentLog(self.settings.judgments) as log:
            with team(self.settings, log, "nlps", self.messages.append, self.messages.append):
                for number in range(EVENTS):
                    if number == EVENTS * 9 // 10:
                        self._kill.wait()
                    event = self._author.event("nlps", "t", f"d{number}", Action.grade, grade=number % 3)
                    log.append([event])
                    self.judged.append((time.monotonic(), event))
                    time.sleep(0.01 if self._kill.is_done or number < EVENTS // 2 else 0.1)
                assert self._leaving.wait(300), "the session was not ended in five minutes"

    def exchange(self) -> None:
        """Exchange events, as `judgments sync` does."""
        with JudgmentLog(self.settings.judgments) as log:
            exchange(self.settings, log)

    def events(self) -> list[str]:
        with closing(JudgmentLog(self.settings.judgments)) as log:
            return sorted(event.id for _, event in log.events())


def document_counts(cluster: Cluster, index: str) -> tuple[int, int, int]:
    """Return the numbers of indexes, documents, and deleted documents in all copies, by own requests."""
    response = cluster.server.request("GET", f"/{index}/_stats/docs", timeout=60).json()
    counts = response["_all"]
    return (
        len(response["indices"]),
        counts["primaries"]["docs"]["count"],
        counts["total"]["docs"]["deleted"],
    )


def await_replica(cluster: Cluster, index: str) -> None:
    """Wait until the index exists with all copies: if its only one were on the killed node, nothing could be shared."""
    target = f"/_cluster/health/{index}?wait_for_status=green&timeout=60s"
    assert cluster.server.request("GET", target, timeout=90).status == 200


class SharingMonitor(threading.Thread):
    """Wait until the index has a judgment that each annotator made after the kill.

    `seconds` is the time from the kill until then, None if it is longer than two minutes.
    """

    def __init__(self, cluster: Cluster, alias: str, members: list[Member], kill: Kill) -> None:
        super().__init__()
        self._server = next(node for node in cluster.nodes if node is not kill.node).server
        self._alias = alias
        self._members = members
        self._kill = kill
        self.seconds: float | None = None

    def run(self) -> None:
        self._kill.wait()
        moment = self._kill.moment
        waiting = list(self._members)
        while waiting and time.monotonic() < moment + 120:
            waiting = [member for member in waiting if not self._is_shared(member, moment)]
            time.sleep(POLL_SECONDS)
        if not waiting:
            self.seconds = time.monotonic() - moment

    def _is_shared(self, member: Member, moment: float) -> bool:
        later = [event for time_, event in list(member.judged) if time_ > moment]
        if not later:
            return False
        path = f"/{self._alias}/_doc/{later[0].id}?_source=false"
        return self._server.request("GET", path, timeout=60).status == 200


@pytest.mark.leaves_dead
def test_commands_continue_when_a_node_is_killed(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: Report,
) -> None:
    """In every other round the node comes back at once; otherwise the build of an index restarts without it.

    In the short profile it never comes back, which saves its start.
    """
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 100)
    monkeypatch.setattr(searching, "BATCH_BODIES", BATCH)
    if not FULL:
        monkeypatch.setattr(shards, "LOST_SECONDS", 3.0)
    dice = random.Random(3)
    settings = partial(Settings, engine="elasticsearch", url=",".join(cluster.urls))
    another = renamed(words.task, tmp_path / "another", "again")
    index = ("index", another, "--shards", SHARDS, "--rebuild")
    assert commands("index", words.task, "--shards", SHARDS).code == 0
    start = time.monotonic()
    assert commands(*index).code == 0
    usual_seconds = time.monotonic() - start
    additional: dict[bool, list[float]] = {True: [], False: []}
    ranking_seconds: list[float] = []
    sharing_seconds: list[float] = []
    for number in range(KILLS):
        cluster.recover()
        folder, prefix = tmp_path / str(number), f"{PREFIX}-{number}"
        comes_back = FULL and number % 2 == 0
        kill = Kill(victim(cluster, number, dice), comes_back=comes_back)
        ranking = RankingThread(settings(home=tmp_path / "home", index_prefix=PREFIX), words, folder)
        members = [Member(name, settings(home=folder / name, index_prefix=prefix), kill) for name in MEMBERS]
        ranking.start()
        for member in members:
            member.start()
        await_replica(cluster, f"{prefix}-judgments")
        monitor = SharingMonitor(cluster, f"{prefix}-judgments", members, kill)
        monitor.start()
        start = time.monotonic()
        with after(dice.randint(3, len(words) * 3 // 400), "/test-cluster-own-again-.*/_bulk$", kill):
            result = commands(*index)
        additional[comes_back].append(time.monotonic() - start - usual_seconds)
        ranking.stop()
        monitor.join()
        for member in members:
            member.leave()

        if comes_back:  # the checks send requests to any node
            kill.node.await_answer(time.monotonic() + START_SECONDS)
        else:  # no process of the node is left
            assert not kill.node.running and not kill.node.processes()
            with pytest.raises(ConnectionRefusedError):
                kill.node.server.request("GET", "/")
        assert monitor.seconds is not None, [member.messages for member in members]
        sharing_seconds.append(monitor.seconds)
        assert result.code == 0, result.stderr
        assert document_counts(cluster, f"{PREFIX}-own-again-*") == (1, len(words), 0)
        words.require_same(commands, folder / "again", task=another)
        assert {run for _, _, run in ranking.runs} == {words.runs["dev"]}
        ranking_seconds += [end - kill.moment for begin, end, _ in ranking.runs if begin <= kill.moment < end]
        late_member = Member("eve", settings(home=folder / "eve", index_prefix=prefix), kill)
        for member in (
            *members,
            *members,
            late_member,
        ):  # the second exchange gets events that were too late for the first
            member.exchange()
        judged_ids = sorted(event.id for member in members for _, event in member.judged)
        assert len(judged_ids) == len(set(judged_ids)) == len(MEMBERS) * EVENTS
        assert sorted(stored(cluster, f"{prefix}-judgments")) == judged_ids
        assert document_counts(cluster, f"{prefix}-judgments") == (1, len(judged_ids), 0)
        for member in (*members, late_member):
            assert member.events() == judged_ids
    for comes_back, seconds in additional.items():
        if seconds:
            state = "restarted" if comes_back else "missing"
            report(f"additional time of a build, usually {usual_seconds:.1f} s, with a {state} node", seconds)
    report("time until a run under way was complete", ranking_seconds)
    report(f"time until the next of {len(MEMBERS) * EVENTS:,} judgments was shared", sharing_seconds)
