"""Run a server and end it, also when all processes that use it are gone.

    python supervisor.py --patience S --remove FOLDER [--user NAME] -- COMMAND...

Standard input is the line to whoever uses the server, one order a line:

    stop    SIGTERM, then SIGKILL after the patience is over
    kill    SIGKILL, as `kill -9` does
    pause   SIGSTOP to all that the command started
    resume  SIGCONT
    (end)   nobody holds the other end any more, as who holds it may be killed: stop the server, remove the folder

A pipe that closes is the one sign of a process's death that works on every system, and that survives the
change of user that Elasticsearch needs. This file uses the standard library only and is run by its path.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

GONE_SECONDS = 5.0
SIGNALS = {"pause": signal.SIGSTOP, "resume": signal.SIGCONT}


def main() -> int:
    """Run the command until it ends or an order comes; answers with its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=float)
    parser.add_argument("--remove")
    parser.add_argument("--user")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, _leave)
    account = pwd.getpwnam(options.user) if options.user else None
    # A session of its own: the server and all that it starts can then be ended as one group.
    child = subprocess.Popen(
        options.command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=[] if account else None,
    )
    order = ""
    try:
        order = _wait(child)
    finally:
        _end(child, 0 if order == "kill" else options.patience)
        if order == "":
            shutil.rmtree(options.remove, ignore_errors=True)
    return child.returncode


def _wait(child: subprocess.Popen[bytes]) -> str:
    """The order: `stop` or `kill`; `gone` when the child ended by itself, empty when nobody can order any more."""
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], 0.2)
        if not readable:
            continue
        orders = os.read(sys.stdin.fileno(), 64).decode().split()
        for order in orders or [""]:
            if order not in SIGNALS:
                sys.stdin.close()  # from here on nobody can open a named pipe as its writer
                return order
            os.killpg(child.pid, SIGNALS[order])
    return "gone"


def _end(child: subprocess.Popen[bytes], patience: float) -> None:
    if patience and child.poll() is None:
        os.killpg(child.pid, signal.SIGCONT)  # a paused one would hear nothing
        child.send_signal(signal.SIGTERM)  # to the launcher alone, which waits for its server to close
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    # Whatever is left of the group: mostly nothing, which macOS calls "not permitted" if it has zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        # A killed server with a large heap still holds its port and its lock on the data for a moment.
        deadline = time.monotonic() + GONE_SECONDS
        while time.monotonic() < deadline:
            os.killpg(child.pid, 0)
            time.sleep(0.02)
    child.wait()


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
