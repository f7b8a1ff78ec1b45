"""Leases: one builder at a time for each index, on any machine.

`<prefix>-locks` is an alias of an index with one document per index name: the holder, its start, and a heartbeat.
Every change is conditional (`create`, or `if_seq_no` and `if_primary_term`).

A lock is taken over when its holder on this machine is dead, or when the heartbeat has not changed for
`ABANDONED_SECONDS` by the clock of the waiting process. A slow holder notices the loss at its next heartbeat, or when
its swap of the alias is rejected. The swap guarantees consistency (see `versions`); the lock only avoids vain builds.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import psutil
from elasticsearch import ConflictError, NotFoundError

from searchapp.engines.elasticsearch.connection import SERVER_WAITS, Connection, is_blocked
from searchapp.errors import EngineError, EngineRefused
from searchapp.lucene.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Builder:
    """The process that builds an index: machine, process number, and start in seconds since 1970."""

    host: str
    pid: int
    started: float  # distinguishes processes with a reused number
    booted: float  # distinguishes machines or containers with the same name

    @classmethod
    def this_process(cls) -> Builder:
        return cls(socket.gethostname(), os.getpid(), psutil.Process().create_time(), psutil.boot_time())

    def is_here(self) -> bool:
        return self.host == socket.gethostname() and abs(self.booted - psutil.boot_time()) < 60

    def is_this_process(self) -> bool:
        return self.pid == os.getpid() and self.is_alive()

    def is_alive(self) -> bool:
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.started) < 1)
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


BEAT_SECONDS = 5.0
ABANDONED_SECONDS = 60.0  # longer than a cluster that loses a node delays a write

LOOK_SECONDS = 1.0
WAIT_SECONDS = 600.0  # time limit of waiting for another builder

FORMAT = 1
LOCKS_AT_MOST = 1000

_held_tokens: set[str] = set()  # tokens of the locks that this process holds


@dataclass(frozen=True, slots=True)
class LockState:
    """The document of a lock, with the version for the next conditional change."""

    seq_no: int
    primary_term: int
    token: str
    holder: Builder | None
    since: str

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> LockState:
        source = answer["_source"]
        holder = Builder(**source["holder"]) if source["holder"] else None
        return cls(answer["_seq_no"], answer["_primary_term"], source["token"], holder, source["since"])

    @property
    def is_free(self) -> bool:
        """Whether the lock has no holder, or a holder on this machine that is dead or has forgotten it."""
        if self.holder is None:
            return True
        if not self.holder.is_here():
            return False
        if self.holder.is_this_process():
            return self.token not in _held_tokens
        return not self.holder.is_alive()


class Overtaken(EngineRefused):
    """Another builder has taken the lock over, because this one did not respond for too long."""


class Lock:
    """A lock that this process holds."""

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
        """Check that no other builder has taken the lock over, as far as this process knows.

        Raises:
            Overtaken: another builder has.
        """
        if self._overtaken:
            raise Overtaken(
                f"another builder took over {self._name} because this one was silent for "
                f"{ABANDONED_SECONDS:.0f} s: index again when it is done"
            )

    def require_ours(self) -> None:
        """Check the lock for clean-up as `confirm` does: with short requests, and by a read if the disk is full.

        Raises:
            Overtaken: another builder holds the lock.
        """
        try:
            self.confirm(brief=True)
        except EngineRefused as error:
            if not is_blocked(error):
                raise
            # No other builder can write either.
            self._locks.require_holder(self._name, self.token)

    def release(self) -> None:
        """Release the lock; if the server does not respond, it expires."""
        self._stop.set()
        self._thread.join(LOOK_SECONDS)  # a pending heartbeat fails on the changed lock
        _held_tokens.discard(self.token)
        if not self._overtaken:
            with suppress(EngineError, _Conflict):
                self._state = self._locks.write(self._name, self._state, holder=None, brief=True)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with suppress(EngineError):  # the next heartbeat may succeed
                self.confirm(brief=True)

    def confirm(self, *, brief: bool = False) -> None:
        """Write the heartbeat, which fails if another builder has taken the lock over.

        Raises:
            Overtaken: another builder has.
        """
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
    """The lock has another state than expected."""


class Locks:
    """The locks of all users of the same server and prefix."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._alias = f"{prefix}-locks"
        self._index = f"{self._alias}-000001"

    @contextmanager
    def hold(self, name: str, *, wait: float | None = None) -> Iterator[Lock]:
        """Hold the lock of a name during a `with` block.

        Wait for a live holder, at most `wait` seconds (default `WAIT_SECONDS`).

        Raises:
            EngineRefused: the other builder is still working, or the user lacks privileges.
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
        """Delete the index of locks unless a lock is held.

        A process that takes a lock concurrently loses it, and creates it again with its next heartbeat.
        """
        alias, index = self._alias, self._index
        self._connection.look_up(f"refresh {alias}", lambda client: client.indices.refresh(index=alias))
        answer = self._connection.look_up(
            f"look up {alias}", lambda client: client.search(index=alias, size=LOCKS_AT_MOST)
        )
        hits = answer["hits"]["hits"] if answer else []
        if answer and len(hits) < LOCKS_AT_MOST and not any(hit["_source"].get("holder") for hit in hits):
            self._connection.look_up(f"delete {index}", lambda client: client.indices.delete(index=index))

    def write(self, name: str, state: LockState, *, holder: Builder | None, brief: bool) -> LockState:
        """Change a lock from `state`, or create it, and return its new state.

        Raises:
            _Conflict: it has another state.
        """
        connection = self._connection.cleanup_connection() if brief else self._connection
        condition: dict[str, Any] = {"op_type": "create"}
        if state.seq_no >= 0:
            condition = {"if_seq_no": state.seq_no, "if_primary_term": state.primary_term}
        try:
            written = connection.call(
                f"lock {name}",
                lambda client: client.index(
                    index=self._alias,
                    id=name,
                    document={
                        "token": state.token,
                        "holder": asdict(holder) if holder else None,
                        "since": state.since,
                    },
                    require_alias=True,
                    timeout=SERVER_WAITS,
                    **condition,
                ),
            )
        except EngineRefused as error:
            if not isinstance(error.__cause__, ConflictError | NotFoundError):
                raise
            now = self._read(name)
            if now is not None and now.token == state.token:
                # The response to an earlier attempt was lost, but its write succeeded.
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
        """Return whether a lock is held with this token by a process not known to be dead."""
        now = self._read(name)
        return now is not None and now.token == token and not now.is_free

    def require_holder(self, name: str, token: str) -> None:
        """Check that the lock of a name is held with this token.

        Raises:
            Overtaken: it is not.
        """
        now = self._read(name)
        if now is None or now.token != token:
            raise Overtaken(f"another builder took over {name}: index again when it is done")

    def _acquire(self, name: str, token: str, wait: float) -> LockState:
        last: tuple[int, int] | None = None
        changed = began = time.monotonic()
        beats = 0
        reported_token = ""
        while True:
            now = self._read(name)
            if now is None:
                self._make()
            version = (now.seq_no, now.primary_term) if now else None
            if version != last:
                beats += last is not None
                last, changed = version, time.monotonic()
            if now is None or now.is_free or time.monotonic() - changed > ABANDONED_SECONDS:
                seq_no, primary_term = version or (-1, 0)
                holder, since = Builder.this_process(), datetime.now(UTC).isoformat(timespec="seconds")
                try:
                    state = LockState(seq_no, primary_term, token, holder, since)
                    return self.write(name, state, holder=holder, brief=False)
                except _Conflict:
                    continue  # another process was faster
            assert now.holder is not None
            at_work = f"{now.holder} is building {name} since {now.since}"
            if (beats or now.holder.is_here()) and time.monotonic() - began > wait:
                raise EngineRefused(f"{at_work}: wait until it is done")
            if reported_token != now.token:
                reported_token = now.token
                self._connection.notify(f"{at_work}: waiting until it is done or stops responding")
            time.sleep(LOOK_SECONDS)

    def _read(self, name: str) -> LockState | None:
        answer = self._connection.look_up(
            f"look up the lock of {name}",
            lambda client: client.get(index=self._alias, id=name, realtime=True),
        )
        if answer is None:
            return None
        try:
            return LockState.from_answer(answer)
        except (KeyError, TypeError) as error:
            raise EngineRefused(
                f"{self._connection.url} has a lock of {name} in {self._alias} that searchapp did not write: "
                "remove the document, or choose another prefix with SEARCHAPP_INDEX_PREFIX"
            ) from error

    def _make(self) -> None:
        self._connection.create_index(
            f"create the index {self._index}",
            self._index,
            settings=self._connection.server.supported_settings(
                {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
            ),
            mappings={
                "dynamic": "false",  # no search reads it
                "_meta": {"searchapp": {"holds": "locks", "format": FORMAT}},
            },
            aliases={self._alias: {}},
        )
