"""Locks: one builder at a time for each index, whatever machine it is on.

`<prefix>-locks` is an alias of an index of searchapp's own with one document an index name: who holds it, since when,
and a beat that the holder raises every few seconds. Every change names the state it was made on (`create`, or
`if_seq_no` and `if_primary_term`), so that of several who try at once one succeeds.

A lock is taken over when its holder is known to be dead, which can be looked up on the machine it ran on, or when its
beat has not changed for `ABANDONED_SECONDS`, as seen by the one who waits: the clocks of two machines differ. A holder
that was only slow finds out with its next beat, or at the latest when its version is refused the alias: what keeps the
alias whole is the swap itself (see `versions`), the lock spares the work of building what is thrown away.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import psutil
from elasticsearch import ConflictError, NotFoundError

from searchapp.engines.elasticsearch.connection import SERVER_WAITS, Connection, is_blocked, is_there_already
from searchapp.errors import EngineError, EngineRefused


@dataclass(frozen=True, slots=True)
class Builder:
    """The process that builds an index: its machine, number, and start, in seconds since 1970.

    Numbers are given again to other processes; together with the start they are not. `booted` is when the machine
    started: two machines, or containers, may have one name.
    """

    host: str
    pid: int
    started: float
    booted: float

    @classmethod
    def this_process(cls) -> Builder:
        return cls(socket.gethostname(), os.getpid(), psutil.Process().create_time(), psutil.boot_time())

    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname() and abs(self.booted - psutil.boot_time()) < 60

    def is_this_process(self) -> bool:
        return self.pid == os.getpid() and self.is_alive()

    def is_alive(self) -> bool:
        """Whether the process is there; only this machine's processes can be looked up."""
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.started) < 1)
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


BEAT_SECONDS = 5.0
ABANDONED_SECONDS = 60.0
"""Longer than a cluster that loses a node keeps a write waiting."""

LOOK_SECONDS = 1.0
WAIT_SECONDS = 600.0
"""How long a builder waits for another one that is at work."""

FORMAT = 1
LOCKS_AT_MOST = 1000

_held_tokens: set[str] = set()
"""The tokens of the locks that this process holds."""


@dataclass(frozen=True, slots=True)
class LockState:
    """The document of one lock, and the place in its shard's history that the next change must name."""

    seq_no: int
    primary_term: int
    token: str
    holder: Builder | None
    since: str

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> LockState:
        source = answer["_source"]
        holder = Builder(**source["holder"]) if source["holder"] else None
        return cls(
            answer["_seq_no"],
            answer["_primary_term"],
            source["token"],
            holder,
            source["since"],
        )


class Overtaken(EngineRefused):
    """Somebody else holds the lock now: this builder did not answer for too long."""


class Lock:
    """A lock that is held."""

    def __init__(self, locks: Locks, name: str, state: LockState) -> None:
        self._locks = locks
        self._name = name
        self._state = state
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self._overtaken = False
        self._thread = threading.Thread(target=self._beat, name=f"lock of {name}", daemon=True)
        self._thread.start()

    @property
    def token(self) -> str:
        return self._state.token

    def require(self) -> None:
        """Make sure that nobody has taken the lock over, as far as is known.

        Raises:
            Overtaken: somebody has.
        """
        if self._overtaken:
            raise Overtaken(
                f"another builder took over {self._name} because this one did not answer for "
                f"{ABANDONED_SECONDS:.0f} s: index again when it is done"
            )

    def confirm(self, *, brief: bool = False) -> None:
        """Make sure that nobody has taken the lock over, by asking the server.

        Raises:
            Overtaken: somebody has.
            EngineError: the server does not answer.
        """
        self._change(brief=brief)

    def require_ours(self) -> None:
        """The same for tidying up: briefly, and by looking only where nothing can be written, as on a full disk.

        Raises:
            Overtaken: somebody has.
            EngineError: the server does not answer.
        """
        try:
            self.confirm(brief=True)
        except EngineRefused as error:
            if not is_blocked(error):
                raise
            # Nor can anybody else write that it is theirs.
            self._locks.require_holder(self._name, self.token)

    def release(self) -> None:
        """Let others build; a lock that can't be given back is taken over in time."""
        self._stop.set()
        self._thread.join(LOOK_SECONDS)  # a beat that is still on its way finds the lock changed
        _held_tokens.discard(self.token)
        if not self._overtaken:
            with suppress(EngineError, _Conflict):
                self._state = self._locks.write(self._name, self._state, holder=None, brief=True)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with suppress(EngineError):  # the next beat may come through
                self._change(brief=True)

    def _change(self, *, brief: bool = False) -> None:
        with self._changing:
            self.require()
            try:
                self._state = self._locks.write(
                    self._name, self._state, holder=self._state.holder, brief=brief
                )
            except _Conflict:
                self._overtaken = True
                self.require()


class _Conflict(Exception):
    """The lock is not what it was thought to be."""


class Locks:
    """The locks of everybody who uses the same server and prefix."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._alias = f"{prefix}-locks"
        self._index = f"{self._alias}-000001"

    @contextmanager
    def hold(self, name: str, *, wait: float | None = None) -> Iterator[Lock]:
        """Hold the lock of a name for the length of a `with` block.

        Another holder that is at work is waited for, `wait` seconds at most, `WAIT_SECONDS` by default; whether one on
        another machine is at work takes some seconds to see in any case.

        Raises:
            EngineRefused: the other one is still at work, or this user has not the rights.
            EngineError: the server does not answer.
        """
        token = secrets.token_hex(8)
        _held_tokens.add(token)
        try:
            lock = Lock(self, name, self._acquire(name, token, WAIT_SECONDS if wait is None else wait))
        except BaseException:
            _held_tokens.discard(token)
            raise
        try:
            yield lock
        finally:
            lock.release()

    def remove(self) -> None:
        """Delete the index of locks unless one is held.

        A process that takes a lock at the same moment loses it, and makes it again with the next beat.
        """
        client, alias = self._connection.client.options(ignore_status=404), self._alias
        self._connection.call(f"refresh {alias}", lambda: client.indices.refresh(index=alias))
        found = self._connection.call(
            f"look up {alias}", lambda: client.search(index=alias, size=LOCKS_AT_MOST)
        )
        if found.meta.status == 404:
            return
        hits = found["hits"]["hits"]
        if len(hits) < LOCKS_AT_MOST and not any(hit["_source"].get("holder") for hit in hits):
            index = self._index
            self._connection.call(f"delete {index}", lambda: client.indices.delete(index=index))

    def write(self, name: str, state: LockState, *, holder: Builder | None, brief: bool) -> LockState:
        """Change a lock that is `state`, or make it when it is not there; returns what it is then.

        Raises:
            _Conflict: it is something else by now.
            EngineError: the server does not answer.
        """
        connection = self._connection.tidying() if brief else self._connection
        document = {
            "token": state.token,
            "holder": asdict(holder) if holder else None,
            "since": state.since,
        }

        def put() -> Mapping[str, Any]:
            condition: dict[str, Any] = {"op_type": "create"}
            if state.seq_no >= 0:
                condition = {"if_seq_no": state.seq_no, "if_primary_term": state.primary_term}
            answer: Mapping[str, Any] = connection.client.index(
                index=self._alias,
                id=name,
                document=document,
                require_alias=True,
                timeout=SERVER_WAITS,
                **condition,
            ).body
            return answer

        try:
            written = connection.call(f"lock {name}", put)
        except EngineRefused as error:
            if not isinstance(error.__cause__, ConflictError | NotFoundError):
                raise
            now = self._read(name)
            if now is not None and now.token == state.token:
                # The answer to an earlier attempt was lost: it is ours, with what was written then.
                return self.write(
                    name,
                    replace(state, seq_no=now.seq_no, primary_term=now.primary_term),
                    holder=holder,
                    brief=brief,
                )
            if now is None and state.seq_no >= 0:
                self._make()
                return self.write(name, replace(state, seq_no=-1), holder=holder, brief=brief)
            raise _Conflict from error
        return replace(state, seq_no=written["_seq_no"], primary_term=written["_primary_term"], holder=holder)

    def is_held(self, name: str, token: str) -> bool:
        """Whether a token is the one that the lock of a name is held with, by a process that is not known to be dead.

        Raises:
            EngineError: the server does not answer.
        """
        now = self._read(name)
        return now is not None and now.holder is not None and now.token == token and not _is_dead(now)

    def require_holder(self, name: str, token: str) -> None:
        """Make sure that the lock of a name is held with this token.

        Raises:
            Overtaken: it is not.
            EngineError: the server does not answer.
        """
        now = self._read(name)
        if now is None or now.token != token:
            raise Overtaken(f"another builder took over {name}: index again when it is done")

    def _acquire(self, name: str, token: str, wait: float) -> LockState:
        """Take the lock when it is free, its holder is dead, or its beat has stopped."""
        seen: tuple[int, int] | None = None
        changed = began = time.monotonic()
        beats = 0
        told = ""
        while True:
            now = self._read_or_make(name)
            place = (now.seq_no, now.primary_term) if now else None
            if place != seen:
                beats += seen is not None
                seen, changed = place, time.monotonic()
            if now is None or now.holder is None or _is_dead(now):
                abandoned = True
            else:
                abandoned = time.monotonic() - changed > ABANDONED_SECONDS
            if abandoned:
                wanted = LockState(
                    now.seq_no if now else -1,
                    now.primary_term if now else 0,
                    token,
                    Builder.this_process(),
                    datetime.now(UTC).isoformat(timespec="seconds"),
                )
                try:
                    return self.write(name, wanted, holder=wanted.holder, brief=False)
                except _Conflict:
                    continue  # somebody else was faster
            assert now is not None and now.holder is not None
            at_work = f"{now.holder} is building {name} since {now.since}"
            if (beats or now.holder.is_here()) and time.monotonic() - began > wait:
                raise EngineRefused(f"{at_work}: wait until it is done")
            if told != now.token:
                told = now.token
                self._connection.notify(f"{at_work}: waiting until it is done, or does not answer any more")
            time.sleep(LOOK_SECONDS)

    def _read(self, name: str) -> LockState | None:
        client = self._connection.client.options(ignore_status=404)
        answer = self._connection.call(
            f"look up the lock of {name}", lambda: client.get(index=self._alias, id=name, realtime=True)
        )
        if answer.meta.status == 404:
            return None
        try:
            return LockState.from_answer(answer.body)
        except (KeyError, TypeError) as error:
            raise EngineRefused(
                f"{self._connection.url} has a lock of {name} in {self._alias} that searchapp did not write: "
                "remove the document, or choose another prefix with SEARCHAPP_INDEX_PREFIX"
            ) from error

    def _read_or_make(self, name: str) -> LockState | None:
        found = self._read(name)
        if found is None:
            self._make()
        return found

    def _make(self) -> None:
        """Make the index of locks unless it is there."""
        try:
            self._connection.call(
                f"create the index {self._index}",
                lambda: self._connection.client.indices.create(
                    index=self._index,
                    settings=self._connection.server.allowed(
                        {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
                    ),
                    mappings={
                        "dynamic": "false",  # nobody searches it
                        "_meta": {"searchapp": {"holds": "locks", "format": FORMAT}},
                    },
                    aliases={self._alias: {}},
                ),
            )
        except EngineRefused as error:
            if not is_there_already(error):
                raise


def _is_dead(state: LockState) -> bool:
    """Whether the holder is known not to be at work: its process is gone, or has lost sight of the lock."""
    assert state.holder is not None
    if not state.holder.is_here():
        return False
    if state.holder.is_this_process():
        return state.token not in _held_tokens
    return not state.holder.is_alive()
