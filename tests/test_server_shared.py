"""One server for several test processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

import pytest

from tests.server.errors import ServerFailed
from tests.server.faults import LoopbackServer, Request, Response
from tests.server.node import BRIEF_LIFE, Node, Plan
from tests.server.rest import Server
from tests.server.shared import SharedServer
from tests.server.unpacked import Unpacked


class Answers(LoopbackServer):
    """A node that is started in no time, and counts how often it is."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def respond(self, request: Request) -> Response:
        return Response.of_json(200, {})

    @property
    def server(self) -> Server:
        return Server(self.url)

    def start(self) -> Answers:
        with (self._folder / "starts").open("a") as file:
            file.write("started\n")
        return self.__enter__()


def sharing(folder: Path) -> SharedServer:
    return SharedServer(folder / "shared", lambda: cast(Node, Answers(folder)))


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text(encoding="utf-8").splitlines())


def answers(url: str) -> bool:
    try:
        return Server(url).request("GET", "/").status == 200
    except OSError:
        return False


def member(folder: Path, line: Connection) -> None:
    """Open the server, say its address, and close it on the word of the parent."""
    shared = sharing(folder)
    line.send((shared.open().url, shared.started_here))
    line.recv()
    shared.close()
    line.send("closed")


class Member:
    """A process that uses the shared server."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=member, args=(folder, theirs))
        self.process.start()
        theirs.close()

    def opened(self) -> tuple[str, bool]:
        """The address that it got, and whether it started the server."""
        assert self.line.poll(60)
        url, started = self.line.recv()
        return url, started

    def leave(self) -> None:
        self.line.send("close")

    def left(self, seconds: float = 60) -> bool:
        return self.line.poll(seconds)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[Member]]:
    """Three processes that come at the same time."""
    started = [Member(tmp_path) for _ in range(3)]
    yield started
    for one in started:
        one.process.kill()
        one.process.join()
        one.line.close()


def test_those_who_come_at_the_same_time_share_one_server(members: list[Member], tmp_path: Path) -> None:
    opened = [one.opened() for one in members]
    assert len({url for url, _ in opened}) == 1
    assert sorted(started for _, started in opened) == [False, False, True]
    assert starts(tmp_path) == 1


def test_the_server_is_there_until_the_last_one_is_done(members: list[Member]) -> None:
    opened = [one.opened() for one in members]
    url = opened[0][0]
    (starter,) = (one for one, (_, started) in zip(members, opened, strict=True) if started)
    others = [one for one in members if one is not starter]

    starter.leave()
    others[0].leave()
    assert others[0].left()
    assert not starter.left(1)
    assert answers(url)

    others[1].leave()
    assert starter.left()
    assert not answers(url)


def test_one_that_was_killed_keeps_nobody_waiting(members: list[Member]) -> None:
    opened = [one.opened() for one in members]
    for one, (_, started) in zip(members, opened, strict=True):
        if not started:
            one.process.kill()
            one.process.join()
    (starter,) = (one for one, (_, started) in zip(members, opened, strict=True) if started)
    starter.leave()
    assert starter.left()


def test_a_server_whose_starter_was_killed_is_started_again(members: list[Member], tmp_path: Path) -> None:
    opened = [one.opened() for one in members]
    (starter,) = (one for one, (_, started) in zip(members, opened, strict=True) if started)
    starter.process.kill()
    starter.process.join()
    shared = sharing(tmp_path)
    url = shared.open().url
    try:
        assert shared.started_here
        assert answers(url)
    finally:
        for one in members:
            one.process.kill()
            one.process.join()
        shared.close()


def test_after_the_last_one_is_gone_the_next_starts_another(tmp_path: Path) -> None:
    for _ in range(2):
        shared = sharing(tmp_path)
        assert answers(shared.open().url)
        shared.close()
    assert starts(tmp_path) == 2


def test_a_server_that_does_not_start_is_tried_by_the_next(tmp_path: Path) -> None:
    class Dies(Answers):
        def start(self) -> Answers:
            self._server.server_close()
            raise ServerFailed("the heap is too small")

    broken = SharedServer(tmp_path / "shared", lambda: cast(Node, Dies(tmp_path)))
    with pytest.raises(ServerFailed, match="the heap is too small"):
        broken.open()
    broken.close()
    shared = sharing(tmp_path)
    assert answers(shared.open().url)
    shared.close()


def test_the_options_of_a_nodes_java_reach_it(tmp_path: Path) -> None:
    plan = Plan("searchapp-test-1", tmp_path, 45678, "512m", java=BRIEF_LIFE)
    options = Unpacked(tmp_path, tmp_path).environment(plan)["ES_JAVA_OPTS"]
    assert options == f"-Xms512m -Xmx512m {' '.join(BRIEF_LIFE)}"
    assert "-XX:TieredStopAtLevel=1" in BRIEF_LIFE
