"""Work in the background of a screen, so that no key waits for it.

`Background` asks one thing at a time in one thread; `Asker` asks a searcher in up to four, overtakes what hangs, and
drops the answers of an index that was replaced. Of what waits only the latest of each kind is asked. Answers come in
the thread of the screen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from searchapp.app.search import Searcher
from searchapp.engines.base import Patience, RequestCancelled
from searchapp.errors import Replaced
from searchapp.model import IndexInfo

S = TypeVar("S")
T = TypeVar("T")

Post = Callable[[Callable[[], object]], object]
"""Has something done by the screen, when it gets to it."""


class _Job(NamedTuple):
    work: Callable[[Any], Any]
    then: Callable[[Any], object]
    failed: Callable[[Exception], object]


class Background(Generic[S]):
    """Something in a thread of its own, which is asked one thing at a time.

    Of what waits only the latest of each kind is asked, the lowest number first: who types on wants no answer to what
    they typed before.

    Args:
        name: the thread's
        asked: opens what is asked, in the thread, when it is needed first and until that succeeds
        post: has the answers taken in, in the thread of the screen
    """

    def __init__(self, name: str, asked: Callable[[], S], post: Post) -> None:
        self._open = asked
        self._asked: S | None = None
        self._post = post
        self._waiting: dict[int, _Job] = {}
        self._changed = threading.Condition()
        self._is_busy = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def ask(
        self,
        kind: int,
        work: Callable[[S], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Ask for something; `then` gets the answer, or `failed` the error, unless something else of the kind is asked
        before this is its turn.
        """
        with self._changed:
            if not self._thread.is_alive() and not self._is_closed:
                self._thread.start()
            self._waiting[kind] = _Job(work, then, failed)
            self._changed.notify()

    def forget(self, kind: int) -> None:
        """Ask no longer for what waits of a kind."""
        with self._changed:
            self._waiting.pop(kind, None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked and nothing waits."""
        with self._changed:
            return not self._is_busy and not self._waiting

    def close(self) -> None:
        """Take no answers any more; what is being asked is not waited for."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                job = self._waiting.pop(min(self._waiting))
                self._is_busy = True
            self._answer(job)

    def _answer(self, job: _Job) -> None:
        try:
            if self._asked is None:
                self._asked = self._open()
            answer = job.work(self._asked)
        except Exception as error:  # whatever it is, it is the screen's to say
            self._post_unless_closed(lambda error=error: job.failed(error))  # type: ignore[misc]
        else:
            self._post_unless_closed(lambda: job.then(answer))

    def _post_unless_closed(self, what: Callable[[], object]) -> None:
        if not self._is_closed:
            self._post(what)


def in_background(
    name: str,
    work: Callable[[], T],
    then: Callable[[T], object],
    failed: Callable[[Exception], object],
    post: Post,
) -> threading.Thread:
    """Work in a thread of its own; `post` has `then` take in what comes of it, or `failed` the error."""

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # whatever it is, it is the screen's to say
            post(lambda error=error: failed(error))  # type: ignore[misc]
        else:
            post(lambda: then(result))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


Later = Callable[[float, Callable[[], object]], object]
"""Has something done by the screen after some seconds."""

REQUEST_SECONDS = 10.0
"""What a server is given for one request."""

PATIENCE_SECONDS = 1.0
"""How long an engine that refuses, or can't be reached, is asked again before the screen says so."""

OVERTAKE_SECONDS = 0.4
"""How long something waits for what was asked before; then it is asked beside that, which may hang."""

LANES = 4
"""How many things are asked at a time at most, all but the last one of which take longer than that."""


class Kind(IntEnum):
    """What is asked, the most urgent first."""

    search = 0
    document = 1
    page = 2
    why = 3
    counts = 4
    topics = 5
    version = 6


class _SearcherJob(NamedTuple):
    kind: Kind
    work: Callable[[Searcher], Any]
    then: Callable[[Any], object]
    failed: Callable[[Exception], object]


class _Lane:
    """A thread that asks one thing at a time, with a searcher of its own."""

    def __init__(self) -> None:
        self.job: _SearcherJob | None = None
        self.waiting = Patience(REQUEST_SECONDS, PATIENCE_SECONDS)
        self.searcher: Searcher | None = None
        self.age = 0
        """Of which searcher, counted from 0, this one is a twin."""


class Asker:
    """Asks a searcher in threads of its own, as a rule one thing at a time.

    Of what waits only the latest of each kind is asked: who types on wants no answer to what they typed before. A
    request that hangs is overtaken: what waits behind it is asked in a further thread, and what would have been asked
    after it is not. When the version of the index has made way for a newer one, another searcher is opened, and
    nothing that comes from the old one is handed on.

    Args:
        name: the threads'
        searcher: opens the searcher, in a thread, when it is needed first and until that succeeds, and then again for
            each newer version of the index
        post: has the answers taken in, in the thread of the screen
        later: has something done in that thread after a while
        lanes: how many things may be asked at a time
        replaced: is called in that thread when the searcher's version of the index is gone
        opened: is called in that thread when the searcher of another version is opened
    """

    def __init__(
        self,
        name: str,
        searcher: Callable[[], Searcher],
        post: Post,
        later: Later,
        *,
        lanes: int = LANES,
        replaced: Callable[[], object] = lambda: None,
        opened: Callable[[IndexInfo], object] = lambda _info: None,
    ) -> None:
        self._name = name
        self._open = searcher
        self._post = post
        self._later = later
        self._most = lanes
        self._replaced = replaced
        self._opened = opened
        self._lanes: list[_Lane] = []
        self._waiting: dict[Kind, _SearcherJob] = {}
        self._changed = threading.Condition()
        self._opening = threading.Lock()
        self._first: Searcher | None = None
        self._info: IndexInfo | None = None
        self._age = 0
        self._will_overtake = False
        self._is_closed = False

    def ask(
        self,
        kind: Kind,
        work: Callable[[Searcher], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Ask for something; `then` gets the answer, or `failed` the error.

        Neither is called if something else of the kind is asked before, or if the version of the index is gone.
        """
        with self._changed:
            if self._is_closed:
                return
            self._leave(kind)
            self._waiting[kind] = _SearcherJob(kind, work, then, failed)
            if not self._lanes:
                self._start()
            elif self._is_busy and len(self._lanes) < self._most and not self._will_overtake:
                self._will_overtake = True
                self._later(OVERTAKE_SECONDS, self._overtake)
            self._changed.notify()

    def forget(self, kind: Kind) -> None:
        """Ask no longer for what waits of a kind, and want no answer to what is being asked."""
        with self._changed:
            self._waiting.pop(kind, None)
            self._leave(kind)

    def renew(self) -> None:
        """Have everything from now on answered by a searcher that is opened anew."""
        with self._changed:
            self._age += 1
            self._first = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked and nothing waits."""
        with self._changed:
            return not self._waiting and all(lane.job is None for lane in self._lanes)

    def close(self) -> None:
        """Take no answers any more; what is being asked is not waited for."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            for lane in self._lanes:
                lane.waiting.leave()
            self._changed.notify_all()

    # In the thread of the screen, with the lock

    @property
    def _is_busy(self) -> bool:
        return all(lane.job is not None for lane in self._lanes)

    def _start(self) -> None:
        lane = _Lane()
        self._lanes.append(lane)
        threading.Thread(target=self._work, args=(lane,), name=self._name, daemon=True).start()

    def _leave(self, kind: Kind) -> None:
        """Want no answer to what is being asked of a kind."""
        for lane in self._lanes:
            if lane.job is not None and lane.job.kind == kind:
                lane.waiting.leave()

    def _overtake(self) -> None:
        """Ask what still waits beside what takes so long."""
        with self._changed:
            self._will_overtake = False
            if self._waiting and self._is_busy and len(self._lanes) < self._most and not self._is_closed:
                self._start()

    # In the threads that ask

    def _work(self, lane: _Lane) -> None:
        while (job := self._next(lane)) is not None:
            try:
                searcher = self._searcher(lane)
                with lane.waiting:
                    answer = job.work(searcher)
            except RequestCancelled:
                continue
            except Replaced:
                self._give_up(lane)
            except Exception as error:  # whatever it is, it is the screen's to say
                self._hand_on(lane, lambda job=job, error=error: job.failed(error))  # type: ignore[misc]
            else:
                self._hand_on(lane, lambda job=job, answer=answer: job.then(answer))  # type: ignore[misc]
        self._close(lane)

    def _close(self, lane: _Lane) -> None:
        """Close a lane's searcher, unless it is the first one, which others use: the engine closes that."""
        with self._changed:
            is_first = lane.searcher is self._first
        if lane.searcher is not None and not is_first:
            lane.searcher.close()
        lane.searcher = None

    def _next(self, lane: _Lane) -> _SearcherJob | None:
        """The most urgent of what waits, as soon as something does; None if the lane is needed no more."""
        with self._changed:
            lane.job = None
            if any(other.job is None for other in self._lanes if other is not lane):
                self._lanes.remove(lane)  # it was overtaken, and one is enough again
                return None
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return None
            lane.job = self._waiting.pop(min(self._waiting))
            lane.waiting = Patience(REQUEST_SECONDS, PATIENCE_SECONDS)
            return lane.job

    def _searcher(self, lane: _Lane) -> Searcher:
        """The searcher of a lane; it is opened whether or not anybody leaves meanwhile."""
        with self._changed:
            age = self._age
        if lane.searcher is not None and lane.age == age:
            return lane.searcher
        self._close(lane)
        with Patience(REQUEST_SECONDS, PATIENCE_SECONDS), self._opening:
            with self._changed:
                lane.age, first = self._age, self._first
            lane.searcher = self._open() if first is None else first.twin()
        if first is None:
            self._tell_opened(lane.age, lane.searcher)
        return lane.searcher

    def _tell_opened(self, age: int, searcher: Searcher) -> None:
        """Keep the first searcher of its age, and tell if it is of another version than the one before."""
        info = searcher.index.info
        with self._changed:
            if age != self._age:
                return
            self._first = searcher
            before, self._info = self._info, info
        if before not in (None, info):
            self._post_unless_closed(lambda: self._opened(info))

    def _give_up(self, lane: _Lane) -> None:
        """Tell that the version is gone that a lane has asked, unless that is known."""
        with self._changed:
            is_news = lane.age == self._age
            if is_news:
                self._age += 1
                self._first = None
        if is_news:
            self._post_unless_closed(self._replaced)

    def _hand_on(self, lane: _Lane, what: Callable[[], object]) -> None:
        """Hand an answer on, or an error, if it is still wanted and of the version that serves."""
        with self._changed:
            is_wanted = not lane.waiting.has_left and lane.age == self._age
        if is_wanted:
            self._post_unless_closed(what)

    def _post_unless_closed(self, what: Callable[[], object]) -> None:
        if not self._is_closed:
            self._post(what)
