"""The end of a judgment log, remembered in a small file beside it: so that events that got lost there are noticed.

A log whose last events are gone, with all that it says of them, is a sound one of an earlier time. That happens to what
is still in SQLite's write-ahead log (`-wal`): if that file is damaged, or left behind when the log is copied, SQLite
goes by what is before the damage, and says nothing.

The file is written after the events, and not waited for: it may be behind the log, never ahead of it. One that is
missing or makes no sense says nothing, and is written again with the next event.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path

from searchapp.judging.chain import Head

_LENGTH = 96


class HeadFile:
    """The file beside the log in `log`."""

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}-head")

    def read(self) -> Head | None:
        """What is remembered; None if nothing is, or the log was empty."""
        try:
            said, _, check = self.path.read_bytes()[:_LENGTH].rstrip().rpartition(b" ")
            events, sequence, checksum = said.split(b" ")
            if int(check, 16) != zlib.crc32(said) or int(events) < 1:
                return None
            return Head(int(events), int(sequence), bytes.fromhex(checksum.decode()))
        except (OSError, ValueError):
            return None

    def write(self, head: Head) -> None:
        """Remember the end of the log, if that is possible."""
        said = b"%d %d %s" % (head.events, head.sequence, head.checksum.hex().encode())
        line = (b"%s %08x" % (said, zlib.crc32(said))).ljust(_LENGTH - 1) + b"\n"
        with suppress(OSError):
            # Always as long, and in its place: a reader meanwhile sees one or the other, or an invalid value.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
