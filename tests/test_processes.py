"""Work in several processes has the results of one process, also if processes fail."""

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
from searchapp.errors import Damaged, EngineRefused, SearchappError

pytestmark = pytest.mark.timeout(120)

BEFORE: set[psutil.Process] = set()
"""Child processes of other tests, such as servers."""


@pytest.fixture(autouse=True)
def _before() -> None:
    BEFORE.clear()
    BEFORE.update(psutil.Process().children())


def new_children() -> set[psutil.Process]:
    """Return the running processes that the test has started."""
    return {*psutil.Process().children()} - BEFORE


ROUNDS = 100 if hypothesis.settings().max_examples > 100 else 4
"""Repetitions of faults whose effect depends on their time."""


class Unreadable(Exception):
    """An exception that can't be unpickled, because pickle calls the class with one argument."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def test_results_come_in_order_from_other_processes() -> None:
    mapped = processes.map_in_processes(lambda number: (number * 2, os.getpid()), range(50), processes=3)
    results = list(mapped)
    assert [number for number, _pid in results] == list(range(0, 100, 2))
    assert os.getpid() not in {pid for _number, pid in results}


def test_this_process_works_with_the_others_and_results_come_in_order() -> None:
    def work(number: int) -> tuple[int, int]:
        threading.Event().wait(0.02 if number % 9 == 4 else 0.001)
        return number * 2, os.getpid()

    results = list(processes.map_in_processes(work, range(50), processes=3, here=True))
    assert [number for number, _pid in results] == list(range(0, 100, 2))
    pids = {pid for _number, pid in results}
    assert os.getpid() in pids and len(pids) == 3
    assert not new_children()


def test_few_items_are_processed_in_this_process() -> None:
    items = range(processes.WORTH_IT - 1)
    assert set(processes.map_in_processes(lambda _: os.getpid(), items, processes=3)) == {os.getpid()}


@pytest.mark.parametrize("here", [False, True])
def test_items_are_read_as_needed(here: bool) -> None:
    drawn = []

    def items() -> Iterator[int]:
        for number in range(1000):
            drawn.append(number)
            yield number

    results = processes.map_in_processes(lambda number: number, items(), processes=2, here=here)
    assert next(results) == 0
    assert len(drawn) <= 2 * processes.IN_FLIGHT + processes.WORTH_IT
    results.close()  # type: ignore[attr-defined]
    assert not new_children()


@pytest.mark.parametrize("here", [False, True])
def test_an_error_in_a_process_is_raised_here(here: bool) -> None:
    def refuse(number: int) -> int:
        if number == 7:
            raise EngineRefused("seven is refused")
        return number

    with pytest.raises(EngineRefused, match="seven is refused"):
        list(processes.map_in_processes(refuse, range(50), processes=2, here=here))
    assert not new_children()


def test_an_error_in_this_process_is_raised_after_earlier_results() -> None:
    parent = os.getpid()

    def refuse(number: int) -> int:
        if os.getpid() == parent:
            raise EngineRefused(f"{number} is refused")
        threading.Event().wait(0.05)
        return number

    results: list[int] = []
    with pytest.raises(EngineRefused) as raised:
        results.extend(processes.map_in_processes(refuse, range(50), processes=2, here=True))
    assert str(raised.value) == f"{len(results)} is refused" and results == list(range(len(results))) != []
    assert not new_children()


@pytest.mark.parametrize("count", [0, 1, 64, 65, 320, 400, 449, 1_000, 1_913])
def test_the_last_of_many_batches_are_smaller(count: int) -> None:
    batches = list(processes.in_batches(iter(range(count)), 64, 16, processes=2))
    assert [number for batch in batches for number in batch] == list(range(count))
    sizes = list(map(len, batches))
    if count <= 64 * (processes.WORTH_IT + 1):
        assert sizes == [64] * (count // 64) + [count % 64] * (count % 64 > 0)
        return
    full = sizes.count(64)
    assert full == max(processes.WORTH_IT + 1, count // 64 - processes.LAST + 1)
    assert sizes[:full] == [64] * full
    assert all(16 <= size < 64 for size in sizes[full:]) and sizes[-1] < 32


def test_batches_that_cannot_be_smaller_have_one_size() -> None:
    assert list(map(len, processes.in_batches(range(100), 8, 8, processes=2))) == [8] * 12 + [4]
    assert list(map(len, processes.in_batches(range(900), 100, 2, processes=1))) == [100] * 9


@pytest.mark.parametrize("here", [False, True])
def test_the_work_of_a_killed_process_is_completed(here: bool) -> None:
    parent = os.getpid()

    def work(number: int) -> int:
        if number >= 9 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(processes.map_in_processes(work, range(60), processes=2, here=here)) == list(range(60))


def failing(kind: Callable[[], BaseException]) -> Callable[[bytes], bytes]:
    """Return a function that raises an exception from the eighth item on."""

    def work(item: bytes) -> bytes:
        if item[0] >= 7:
            raise kind()
        return item

    return work


@pytest.fixture(params=[1, 100_000])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of an item: 1, or more than the capacity of a pipe."""
    monkeypatch.setattr(processes, "PIPE_BYTES", 1 << 16)
    return int(request.param)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (lambda: Damaged("ids was altered"), Damaged),
        (lambda: Unreadable("first", "second"), RuntimeError),
        (lambda: type("Local", (Exception,), {})("of a local class"), RuntimeError),
        (lambda: MemoryError("no memory"), MemoryError),
        (lambda: SystemExit(3), SystemExit),
    ],
    ids=["Damaged", "Unreadable", "Local", "MemoryError", "SystemExit"],
)
def test_each_exception_in_a_process_ends_the_work(
    kind: Callable[[], BaseException], expected: type[BaseException], size: int
) -> None:
    for _ in range(ROUNDS):
        with pytest.raises(expected) as raised:
            items = (bytes([number] * size) for number in range(40))
            list(processes.map_in_processes(failing(kind), items, processes=2))
        assert str(kind()) in str(raised.value)
        assert not new_children()


def test_a_result_that_cannot_be_sent_ends_the_work() -> None:
    with pytest.raises(Exception, match="pickle"):
        list(processes.map_in_processes(lambda number: lambda: number, range(40), processes=2))


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_the_work_of_processes_that_are_ended_repeatedly_is_completed(name: str, size: int) -> None:
    """Processes end at any time, also while they receive an item or send a result, and with a signal handler."""
    parent = os.getpid()

    def work(item: bytes) -> bytes:
        if os.getpid() != parent and item[0] % 7 == 6:
            os.kill(os.getpid(), getattr(signal, name))
        return item

    handled = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # like in `searchapp`
    try:
        for _ in range(ROUNDS):
            items = [bytes([number] * size) for number in range(40)]
            assert list(processes.map_in_processes(work, items, processes=3)) == items
            assert not new_children()
    finally:
        signal.signal(signal.SIGTERM, handled)


def test_a_crash_is_reported_and_its_work_is_not_repeated() -> None:
    """The cause, such as an unreadable page of a file, would crash this process, too."""
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
    assert not new_children()


def test_a_memory_error_while_receiving_an_item_is_raised() -> None:
    parent = os.getpid()

    class Item:
        def __reduce__(self) -> tuple[object, ...]:
            return _fail_in_children, (parent,)

    results = processes.map_in_processes(
        lambda item: type(item).__name__, [Item() for _ in range(9)], processes=2
    )
    with pytest.raises(MemoryError):
        list(results)


def _fail_in_children(parent: int) -> str:
    if os.getpid() == parent:
        return "parent"
    raise MemoryError


@pytest.mark.parametrize("error", [BlockingIOError(11, "Resource temporarily unavailable"), MemoryError()])
def test_if_forking_fails_this_process_does_the_work(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fork = os.fork
    forks: list[str] = []

    def second_fails() -> int:
        if forks:
            raise error
        forks.append("fork")
        return fork()

    monkeypatch.setattr(os, "fork", second_fails)
    assert set(processes.map_in_processes(lambda _: os.getpid(), range(20), processes=3)) == {os.getpid()}
    assert forks and not new_children()


def test_all_descriptors_are_closed() -> None:
    before = psutil.Process().num_fds()
    assert list(processes.map_in_processes(lambda number: number, range(20), processes=3)) == list(range(20))
    cancelled = processes.map_in_processes(lambda number: number, range(20), processes=3)
    next(cancelled)
    assert psutil.Process().num_fds() > before
    cancelled.close()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="invalid literal"):
        list(processes.map_in_processes(int, ["1"] * 9 + ["x"], processes=3))
    assert psutil.Process().num_fds() == before


def test_processes_end_with_their_parent() -> None:
    """They inherit the lock of an index, which must be released when its builder is killed."""
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
    with os.fdopen(reads) as output:
        pids = {output.readline(), output.readline()}
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert output.read() == ""  # all processes have closed their end
    assert len(pids) == 2


def _work_by_item(item: str) -> tuple[str, int, int]:
    """Return, fail or crash, depending on the item."""
    if item == "raises":
        raise EngineRefused("no")
    if item in signal.Signals.__members__:
        faulthandler.disable()  # it would print a traceback
        os.kill(os.getpid(), signal.Signals[item])
    if item == "spreads":
        pids = set(processes.map_in_processes(lambda _number: os.getpid(), range(20), processes=2))
        assert os.getpid() not in pids
    return item, os.getpid(), processes.cores()


def test_each_item_has_its_own_process_and_failures_do_not_affect_others() -> None:
    before = psutil.Process().num_fds()
    waiting = deque(["first", "raises", "SIGKILL", "SIGSEGV", "spreads"])
    outcomes = {}
    for item, outcome in processes.process_each(_work_by_item, waiting, 2):
        outcomes[item] = outcome
        if item == "first":
            waiting.append("later")  # items can be added during the work
    assert str(outcomes["raises"]) == "no" and isinstance(outcomes["raises"], EngineRefused)
    assert "was killed (SIGKILL)" in str(outcomes["SIGKILL"])
    assert "crashed (SIGSEGV)" in str(outcomes["SIGSEGV"])
    done = [outcome for outcome in outcomes.values() if not isinstance(outcome, BaseException)]
    assert [item for item, _, _ in done] == ["first", "spreads", "later"] or len(done) == 3
    assert len({pid for _, pid, _ in done} | {os.getpid()}) == 4
    assert {cores for _, _, cores in done} == {max(1, processes.cores() // 2)}
    assert psutil.Process().num_fds() == before and not new_children()


def test_the_number_of_simultaneous_processes_is_limited(tmp_path: Path) -> None:
    def work(number: int) -> int:
        mark = tmp_path / str(number)
        mark.touch()
        running = len(list(tmp_path.iterdir()))
        threading.Event().wait(0.02)
        mark.unlink()
        return running

    outcomes = [outcome for _, outcome in processes.process_each(work, deque(range(8)), 2)]
    assert max(number for number in outcomes if isinstance(number, int)) <= 2 and len(outcomes) == 8


def test_if_forking_fails_this_process_works_on_each_item(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fails)
    outcomes = dict(processes.process_each(_work_by_item, deque(["item", "raises"]), 2))
    assert isinstance(outcomes["raises"], EngineRefused)
    assert outcomes["item"] == ("item", os.getpid(), processes.cores())


def test_cancelled_work_leaves_no_process() -> None:
    answers = processes.process_each(
        lambda number: number or threading.Event().wait(), deque(range(1, -9, -1)), 2
    )
    assert next(answers)[1] == 1
    answers.close()
    assert not new_children()
