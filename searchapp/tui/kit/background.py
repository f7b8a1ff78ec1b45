"""Background work of screens, so that no key waits; answers arrive in the screen's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from searchapp.engines.base import Patience, RequestCancelled
from searchapp.errors import Replaced
from searchapp.model import IndexInfo

if TYPE_CHECKING:
    from searchapp.app.search import TaskSearcher

S = TypeVar("S")
T = TypeVar("T")

# Calls a function in the screen's thread.
Post = Callable[[Callable[[], object]], object]

# Calls a function in the screen's thread after some seconds.
Later = Callable[[float, Callable[[], object]], object]

# The time limit of one request to a server.
REQUEST_SECONDS = 10.0

# Failed requests are retried for this time before the screen reports the error.
PATIENCE_SECONDS = 1.0

# After this time a waiting request gets a further thread.
OVERTAKE_SECONDS = 0.4

# Maximum threads of a `SearchQueue`.
LANES = 4


class _Job(NamedTuple):
    kind: int
    work: Callable[[Any], Any]
    then: Callable[[Any], object]
    failed: Callable[[Exception], object]


class _Lane(Generic[S]):
    def __init__(self) -> None:
        self.job: _Job | None = None
        self.resource: S | None = None
        self.generation = 0
        self.patience = Patience(REQUEST_SECONDS, PATIENCE_SECONDS)


class BackgroundQueue(Generic[S]):
    """Runs the latest request of each kind in a thread, the lowest kind first.

    Args:
        name: of the thread
        open_resource: called in the thread until it succeeds
        post: calls a function in the screen's thread
    """

    def __init__(self, name: str, open_resource: Callable[[], S], post: Post) -> None:
        self._name = name
        self._open_resource = open_resource
        self._post = post
        self._lanes: list[_Lane[S]] = []
        self._waiting: dict[int, _Job] = {}
        self._changed = threading.Condition()
        self.is_closed = False

    def ask(
        self,
        kind: int,
        work: Callable[[S], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Run `work` in the thread, then `then` with its result or `failed` with its error in the screen's.

        A newer request of the kind replaces one that has not begun.
        """
        with self._changed:
            if self.is_closed:
                return
            self._waiting[kind] = _Job(kind, work, then, failed)
            if not self._lanes:
                self._start_lane()
            self._changed.notify()

    def forget(self, kind: int) -> None:
        with self._changed:
            self._waiting.pop(kind, None)

    @property
    def is_idle(self) -> bool:
        with self._changed:
            return not self._waiting and all(lane.job is None for lane in self._lanes)

    def close(self) -> None:
        """Deliver no further answers; do not wait."""
        with self._changed:
            self.is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _start_lane(self) -> None:
        lane = _Lane[S]()
        self._lanes.append(lane)
        threading.Thread(target=self._run, args=(lane,), name=self._name, daemon=True).start()

    def _run(self, lane: _Lane[S]) -> None:
        while (job := self._next_job(lane)) is not None:
            try:
                answer = self._work(lane, job)
            except RequestCancelled:
                continue
            except Exception as error:  # the screen shows every error
                self._deliver(lane, partial(job.failed, error))
            else:
                self._deliver(lane, partial(job.then, answer))

    def _next_job(self, lane: _Lane[S]) -> _Job | None:
        with self._changed:
            lane.job = None
            self._changed.wait_for(lambda: self._waiting or self.is_closed)
            if not self.is_closed:
                lane.job = self._waiting.pop(min(self._waiting))
            return lane.job

    def _work(self, lane: _Lane[S], job: _Job) -> Any:
        if lane.resource is None:
            lane.resource = self._open_resource()
        return job.work(lane.resource)

    def _deliver(self, lane: _Lane[S], callback: Callable[[], object]) -> None:  # noqa: ARG002  # for subclasses
        if not self.is_closed:
            self._post(callback)


def in_background(
    name: str,
    work: Callable[[], T],
    then: Callable[[T], object],
    failed: Callable[[Exception], object],
    post: Post,
) -> threading.Thread:
    """Run `work` in its own thread; `post` calls `then` with its result or `failed` with its error."""

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # the screen shows every error
            post(partial(failed, error))
        else:
            post(partial(then, result))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class SearchRequestKind(IntEnum):
    """The kinds of requests to a searcher, the most urgent first."""

    search = 0
    document = 1
    page = 2
    ids = 3
    why = 4
    notes = 5
    counts = 6
    topics = 7
    export = 8
    queue = 9
    version = 10


class SearchQueue(BackgroundQueue["TaskSearcher"]):
    """Sends requests to a searcher, usually one at a time.

    A newer request of a kind cancels the running one. A further thread overtakes a request that hangs. A new
    version of the index gets a new searcher.

    Args:
        name: of the threads
        open_searcher: called for each version, in a thread, until it succeeds
        post: calls a function in the screen's thread
        later: calls a function there after some seconds
        lanes: maximum threads
        replaced: called in the screen's thread when the opened version is gone
        opened: called there when another version is open
    """

    def __init__(
        self,
        name: str,
        open_searcher: Callable[[], TaskSearcher],
        post: Post,
        later: Later,
        *,
        lanes: int = LANES,
        replaced: Callable[[], object] = lambda: None,
        opened: Callable[[IndexInfo], object] = lambda _info: None,
    ) -> None:
        super().__init__(name, open_searcher, post)
        self._later = later
        self._most_lanes = lanes
        self._replaced = replaced
        self._opened = opened
        self._opening = threading.Lock()
        # The searcher of this generation; other lanes have its twins.
        self._first: TaskSearcher | None = None
        self._info: IndexInfo | None = None
        self._generation = 0
        self._will_overtake = False

    def ask(
        self,
        kind: int,
        work: Callable[[TaskSearcher], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        with self._changed:
            self._cancel(kind)
            super().ask(kind, work, then, failed)
            if self._can_overtake and not self._will_overtake:
                self._will_overtake = True
                self._later(OVERTAKE_SECONDS, self._overtake)

    def forget(self, kind: int) -> None:
        with self._changed:
            super().forget(kind)
            self._cancel(kind)

    def renew(self) -> None:
        with self._changed:
            self._generation += 1
            self._first = None

    def close(self) -> None:
        with self._changed:
            for lane in self._lanes:
                lane.patience.cancel()
            super().close()

    def _cancel(self, kind: int) -> None:
        for lane in self._lanes:
            if lane.job is not None and lane.job.kind == kind:
                lane.patience.cancel()

    @property
    def _can_overtake(self) -> bool:
        is_busy = all(lane.job is not None for lane in self._lanes)
        return bool(self._waiting) and is_busy and len(self._lanes) < self._most_lanes

    def _overtake(self) -> None:
        with self._changed:
            self._will_overtake = False
            if self._can_overtake:
                self._start_lane()

    # In the threads of the lanes

    def _run(self, lane: _Lane[TaskSearcher]) -> None:
        super()._run(lane)
        self._close_searcher(lane)

    def _next_job(self, lane: _Lane[TaskSearcher]) -> _Job | None:
        with self._changed:
            lane.job = None
            if any(other.job is None for other in self._lanes if other is not lane):
                self._lanes.remove(lane)  # another lane overtook this one and is now free
                return None
            lane.patience = Patience(REQUEST_SECONDS, PATIENCE_SECONDS)
            return super()._next_job(lane)

    def _work(self, lane: _Lane[TaskSearcher], job: _Job) -> Any:
        try:
            searcher = self._searcher(lane)
            with lane.patience:
                return job.work(searcher)
        except Replaced:
            with self._changed:
                is_news = lane.generation == self._generation
                if is_news:
                    self.renew()
            if is_news and not self.is_closed:
                self._post(self._replaced)
            raise RequestCancelled from None

    def _searcher(self, lane: _Lane[TaskSearcher]) -> TaskSearcher:
        with self._changed:
            generation = self._generation
        if lane.resource is not None and lane.generation == generation:
            return lane.resource
        self._close_searcher(lane)
        # Not the job's patience: cancelling a request must not interrupt opening.
        with Patience(REQUEST_SECONDS, PATIENCE_SECONDS), self._opening:
            with self._changed:
                lane.generation, first = self._generation, self._first
            lane.resource = self._open_resource() if first is None else first.twin()
        if first is None:
            self._keep_first(lane.generation, lane.resource)
        return lane.resource

    def _close_searcher(self, lane: _Lane[TaskSearcher]) -> None:
        with self._changed:
            is_first = lane.resource is self._first  # the engine closes it
        if lane.resource is not None and not is_first:
            lane.resource.close()
        lane.resource = None

    def _keep_first(self, generation: int, searcher: TaskSearcher) -> None:
        info = searcher.index.info
        with self._changed:
            if generation != self._generation:
                return
            self._first = searcher
            before, self._info = self._info, info
        if before not in (None, info) and not self.is_closed:
            self._post(lambda: self._opened(info))

    def _deliver(self, lane: _Lane[TaskSearcher], callback: Callable[[], object]) -> None:
        with self._changed:
            is_wanted = not lane.patience.is_cancelled and lane.generation == self._generation
        if is_wanted:
            super()._deliver(lane, callback)
