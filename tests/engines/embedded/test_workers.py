"""Work spread over processes gives what one process gives, whatever happens to the processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator

import pytest

from searchapp.engines.embedded import workers
from searchapp.errors import EngineRefused


def test_results_come_in_order_from_other_processes() -> None:
    results = list(workers.spread(lambda number: (number * 2, os.getpid()), range(50), processes=3))
    assert [number for number, _pid in results] == list(range(0, 100, 2))
    assert os.getpid() not in {pid for _number, pid in results}


def test_little_work_stays_in_this_process() -> None:
    pids = set(workers.spread(lambda _number: os.getpid(), range(workers.WORTH_IT - 1), processes=3))
    assert pids == {os.getpid()}


def test_items_are_drawn_as_needed() -> None:
    drawn = []

    def items() -> Iterator[int]:
        for number in range(1000):
            drawn.append(number)
            yield number

    results = workers.spread(lambda number: number, items(), processes=2)
    assert next(results) == 0
    assert len(drawn) <= 2 * workers.IN_FLIGHT + workers.WORTH_IT
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_a_refusal_in_a_process_arrives() -> None:
    def refuse(number: int) -> int:
        if number == 7:
            raise EngineRefused("seven is refused")
        return number

    with pytest.raises(EngineRefused, match="seven is refused"):
        list(workers.spread(refuse, range(50), processes=2))
    assert not multiprocessing.active_children()


def test_the_work_of_a_killed_process_is_done_all_the_same() -> None:
    parent = os.getpid()

    def work(number: int) -> int:
        if number == 9 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(workers.spread(work, range(60), processes=2)) == list(range(60))
