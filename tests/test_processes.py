"""Work spread over processes gives what one process gives, whatever happens to the processes."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

from searchapp import processes
from searchapp import processes as forked
from searchapp.errors import Damaged, EngineRefused, SearchappError

pytestmark = pytest.mark.timeout(120)

BEFORE: set[psutil.Process] = set()
"""The processes of other tests, such as servers."""


@pytest.fixture(autouse=True)
def _before() -> None:
    BEFORE.clear()
    BEFORE.update(psutil.Process().children())


def left_over() -> set[psutil.Process]:
    """The processes that the test has started and that are still there."""
    return {*psutil.Process().children()} - BEFORE


ROUNDS = 100 if hypothesis.settings().max_examples > 100 else 4
"""How often a fault is tried that depends on what the processes are at when it strikes."""


class Unreadable(Exception):
    """Python calls its class with one argument to read it again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def test_results_come_in_order_from_other_processes() -> None:
    results = list(
        processes.map_in_processes(lambda number: (number * 2, os.getpid()), range(50), processes=3)
    )
    assert [number for number, _pid in results] == list(range(0, 100, 2))
    assert os.getpid() not in {pid for _number, pid in results}


def test_this_process_works_beside_the_others_and_results_come_in_order() -> None:
    def work(number: int) -> tuple[int, int]:
        threading.Event().wait(0.02 if number % 9 == 4 else 0.001)
        return number * 2, os.getpid()

    results = list(processes.map_in_processes(work, range(50), processes=3, here=True))
    assert [number for number, _pid in results] == list(range(0, 100, 2))
    pids = {pid for _number, pid in results}
    assert os.getpid() in pids and len(pids) == 3
    assert not left_over()


def test_little_work_stays_in_this_process() -> None:
    pids = set(
        processes.map_in_processes(lambda _number: os.getpid(), range(processes.WORTH_IT - 1), processes=3)
    )
    assert pids == {os.getpid()}


@pytest.mark.parametrize("here", [False, True])
def test_items_are_drawn_as_needed(here: bool) -> None:
    drawn = []

    def items() -> Iterator[int]:
        for number in range(1000):
            drawn.append(number)
            yield number

    results = processes.map_in_processes(lambda number: number, items(), processes=2, here=here)
    assert next(results) == 0
    assert len(drawn) <= 2 * processes.IN_FLIGHT + processes.WORTH_IT
    results.close()  # type: ignore[attr-defined]
    assert not left_over()


@pytest.mark.parametrize("here", [False, True])
def test_a_refusal_in_a_process_arrives(here: bool) -> None:
    def refuse(number: int) -> int:
        if number == 7:
            raise EngineRefused("seven is refused")
        return number

    with pytest.raises(EngineRefused, match="seven is refused"):
        list(processes.map_in_processes(refuse, range(50), processes=2, here=here))
    assert not left_over()


def test_a_refusal_in_this_process_waits_for_the_results_before_it() -> None:
    parent = os.getpid()

    def refuse(number: int) -> int:
        if os.getpid() == parent:
            raise EngineRefused(f"{number} is refused")
        threading.Event().wait(0.05)
        return number

    found: list[int] = []
    with pytest.raises(EngineRefused) as raised:
        found.extend(processes.map_in_processes(refuse, range(50), processes=2, here=True))
    assert str(raised.value) == f"{len(found)} is refused" and found == list(range(len(found))) != []
    assert not left_over()


@pytest.mark.parametrize("count", [0, 1, 64, 65, 320, 400, 449, 1_000, 1_913])
def test_the_last_batches_are_smaller_where_there_are_many(count: int) -> None:
    found = list(processes.in_batches(iter(range(count)), 64, 16, processes=2))
    assert [number for batch in found for number in batch] == list(range(count))
    sizes = list(map(len, found))
    if count <= 64 * (processes.WORTH_IT + 1):
        assert sizes == [64] * (count // 64) + [count % 64] * (count % 64 > 0)
        return
    whole = sizes.count(64)
    assert whole == max(processes.WORTH_IT + 1, count // 64 - processes.LAST + 1)
    assert sizes[:whole] == [64] * whole
    assert all(16 <= size < 64 for size in sizes[whole:]) and sizes[-1] < 32


def test_batches_that_cannot_be_smaller_have_one_size() -> None:
    assert list(map(len, processes.in_batches(range(100), 8, 8, processes=2))) == [8] * 12 + [4]
    assert list(map(len, processes.in_batches(range(900), 100, 2, processes=1))) == [100] * 9


@pytest.mark.parametrize("here", [False, True])
def test_the_work_of_a_killed_process_is_done_all_the_same(here: bool) -> None:
    parent = os.getpid()

    def work(number: int) -> int:
        if number >= 9 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(processes.map_in_processes(work, range(60), processes=2, here=here)) == list(range(60))


def of(kind: Callable[[], BaseException], parent: int | None = None) -> Callable[[bytes], bytes]:
    """Work that fails from some item on; with `parent`, in any process but that one."""

    def work(item: bytes) -> bytes:
        if item[0] >= 7 and os.getpid() != parent:
            raise kind()
        return item

    return work


@pytest.fixture(params=[1, 100_000])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of an item: next to nothing, or more than a pipe holds."""
    monkeypatch.setattr(forked, "PIPE_BYTES", 1 << 16)
    return int(request.param)


@pytest.mark.parametrize(
    ("kind", "arrives"),
    [
        (lambda: Damaged("ids was altered"), Damaged),
        (lambda: Unreadable("this", "that"), RuntimeError),
        (lambda: type("Local", (Exception,), {})("of a class that nobody finds"), RuntimeError),
        (lambda: MemoryError("no room"), MemoryError),
        (lambda: SystemExit(3), SystemExit),
    ],
    ids=["Damaged", "Unreadable", "Local", "MemoryError", "SystemExit"],
)
def test_whatever_a_process_raises_ends_the_work(
    kind: Callable[[], BaseException], arrives: type[BaseException], size: int
) -> None:
    for _ in range(ROUNDS):
        with pytest.raises(arrives) as raised:
            list(
                processes.map_in_processes(
                    of(kind), (bytes([number] * size) for number in range(40)), processes=2
                )
            )
        assert str(kind()) in str(raised.value)
        assert not left_over()


def test_a_result_that_cannot_be_sent_ends_the_work() -> None:
    with pytest.raises(Exception, match="pickle"):
        list(processes.map_in_processes(lambda number: lambda: number, range(40), processes=2))


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_the_work_of_processes_that_are_ended_again_and_again_is_done(name: str, size: int) -> None:
    """Whatever they are at: also while an item or a result is on its way, and as the program handles the signal."""
    parent = os.getpid()

    def work(item: bytes) -> bytes:
        if os.getpid() != parent and item[0] % 7 == 6:
            os.kill(os.getpid(), getattr(signal, name))
        return item

    handled = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as `searchapp` has it
    try:
        for _ in range(ROUNDS):
            items = [bytes([number] * size) for number in range(40)]
            assert list(processes.map_in_processes(work, items, processes=3)) == items
            assert not left_over()
    finally:
        signal.signal(signal.SIGTERM, handled)


def test_a_process_that_crashes_is_reported_and_its_work_not_tried_here() -> None:
    """What crashed that process, a page of a file that can't be read for instance, would crash this one."""
    parent = os.getpid()

    def work(number: int) -> int:
        if number == 9:
            assert os.getpid() != parent
            signal.signal(signal.SIGBUS, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGBUS)
        return number

    with pytest.raises(SearchappError, match=r"crashed \(SIGBUS\) .*: .* `searchapp doctor`") as raised:
        list(processes.map_in_processes(work, range(60), processes=2))
    assert raised.value.exit_code == 1
    assert not left_over()


def test_memory_that_a_process_lacks_for_an_item_is_looked_for_here() -> None:
    parent = os.getpid()

    class Item:
        def __reduce__(self) -> tuple[object, ...]:
            return _read_elsewhere, (parent,)

    results = processes.map_in_processes(
        lambda item: type(item).__name__, [Item() for _ in range(9)], processes=2
    )
    with pytest.raises(MemoryError):
        list(results)


def _read_elsewhere(parent: int) -> str:
    if os.getpid() == parent:
        return "here"
    raise MemoryError


@pytest.mark.parametrize("error", [BlockingIOError(11, "Resource temporarily unavailable"), MemoryError()])
def test_where_no_process_can_be_made_the_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fork = os.fork
    made: list[str] = []

    def second_fails() -> int:
        if made:
            raise error
        made.append("a process")
        return fork()

    monkeypatch.setattr(os, "fork", second_fails)
    assert set(processes.map_in_processes(lambda _: os.getpid(), range(20), processes=3)) == {os.getpid()}
    assert made and not left_over()


def test_no_descriptor_stays_open() -> None:
    before = psutil.Process().num_fds()
    assert list(processes.map_in_processes(lambda number: number, range(20), processes=3)) == list(range(20))
    broken_off = processes.map_in_processes(lambda number: number, range(20), processes=3)
    next(broken_off)
    assert psutil.Process().num_fds() > before
    broken_off.close()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="invalid literal"):
        list(processes.map_in_processes(int, ["1"] * 9 + ["one"], processes=3))
    assert psutil.Process().num_fds() == before


def test_processes_end_with_the_one_that_forked_them() -> None:
    """So that the lock of an index that they inherit is free as soon as its builder was killed."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        items = iter(range(1000))

        def work(number: int) -> None:
            os.write(writes, f"{os.getpid()}\n".encode())
            threading.Event().wait()

        list(processes.map_in_processes(work, items, processes=2))
        os._exit(1)
    os.close(writes)
    with os.fdopen(reads) as told:
        pids = {told.readline(), told.readline()}
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert told.read() == ""  # nobody has the other end any more
    assert len(pids) == 2


def _by_kind(item: str) -> tuple[str, int, int]:
    """What a process of `process_each` may come to."""
    if item == "raises":
        raise EngineRefused("no")
    if item in signal.Signals.__members__:
        faulthandler.disable()  # which would print the modules of this process
        os.kill(os.getpid(), signal.Signals[item])
    if item == "spreads":
        pids = set(processes.map_in_processes(lambda _number: os.getpid(), range(20), processes=2))
        assert os.getpid() not in pids
    return item, os.getpid(), processes.cores()


def test_each_item_has_a_process_of_its_own_and_one_that_fails_leaves_the_others_alone() -> None:
    before = psutil.Process().num_fds()
    waiting = deque(["first", "raises", "SIGKILL", "SIGSEGV", "spreads"])
    found = {}
    for item, outcome in processes.process_each(_by_kind, waiting, 2):
        found[item] = outcome
        if item == "first":
            waiting.append("later")  # what comes of an answer may be work as well
    assert str(found["raises"]) == "no" and isinstance(found["raises"], EngineRefused)
    assert "was killed (SIGKILL)" in str(found["SIGKILL"])
    assert "crashed (SIGSEGV)" in str(found["SIGSEGV"])
    done = [outcome for outcome in found.values() if not isinstance(outcome, BaseException)]
    assert [item for item, _, _ in done] == ["first", "spreads", "later"] or len(done) == 3
    assert len({pid for _, pid, _ in done} | {os.getpid()}) == 4
    assert {cores for _, _, cores in done} == {max(1, processes.cores() // 2)}
    assert psutil.Process().num_fds() == before and not left_over()


def test_no_more_processes_than_asked_for_work_at_a_time(tmp_path: Path) -> None:
    def work(number: int) -> int:
        mark = tmp_path / str(number)
        mark.touch()
        there = len(list(tmp_path.iterdir()))
        threading.Event().wait(0.02)
        mark.unlink()
        return there

    found = [outcome for _, outcome in processes.process_each(work, deque(range(8)), 2)]
    assert max(number for number in found if isinstance(number, int)) <= 2 and len(found) == 8


def test_where_no_process_can_be_made_each_item_is_worked_on_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fails)
    found = dict(processes.process_each(_by_kind, deque(["one", "raises"]), 2))
    assert isinstance(found["raises"], EngineRefused)
    assert found["one"] == ("one", os.getpid(), processes.cores())


def test_what_is_broken_off_leaves_no_process() -> None:
    answers = processes.process_each(
        lambda number: number or threading.Event().wait(), deque(range(1, -9, -1)), 2
    )
    assert next(answers)[1] == 1
    answers.close()
    assert not left_over()
